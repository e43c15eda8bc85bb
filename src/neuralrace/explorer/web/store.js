// The state of the page: one JSON document, its history, and who wants to know of changes.
// @ts-check

/** @typedef {import("./types.js").State} State */

/** Steps that undo goes back at most. */
const DEEPEST = 200;

/** Changes of one slider that follow each other within this many milliseconds are one step. */
const TOGETHER = 800;

/**
 * States are never changed in place: every change makes a new one, so that the history can hold
 * them all at little cost.
 */
export class Store {
  /** @param {State} state */
  constructor(state) {
    /** @type {State} */
    this.state = state;
    /** @type {State[]} */
    this.past = [];
    /** @type {State[]} */
    this.future = [];
    /** @type {Set<(state: State, before: State) => void>} */
    this.listeners = new Set();
    this.last = { what: "", at: 0 };
    this.held = false;
  }

  /** The pointer goes down: what changes until it goes up is one step of the history. */
  hold() {
    this.last = { what: "", at: 0 };
    this.held = true;
  }

  release() {
    this.held = false;
  }

  /**
   * Change the state. Changes with the same `what` in quick succession are one step of the history.
   * @param {(state: State) => State} change
   * @param {string} [what]
   */
  change(change, what = "") {
    const before = this.state;
    const after = change(before);
    if (same(after, before)) return;
    const now = performance.now();
    const together = what !== "" && what === this.last.what && (this.held || now - this.last.at < TOGETHER);
    if (!together || this.past.length === 0) {
      this.past.push(before);
      if (this.past.length > DEEPEST) this.past.shift();
    }
    this.last = { what, at: now };
    this.future = [];
    this.#become(after);
  }

  /**
   * Change what is looked at, which is no step of the history.
   * @param {Partial<State["view"]>} view
   */
  look(view) {
    const after = { ...this.state, view: { ...this.state.view, ...view } };
    if (!same(after, this.state)) this.#become(after);
  }

  /** Start again from another state; undo goes back to this one. @param {State} state */
  replace(state) {
    this.change(() => state);
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.future.push(this.state);
    this.last = { what: "", at: 0 };
    this.#become({ ...before, view: this.state.view });
  }

  redo() {
    const after = this.future.pop();
    if (!after) return;
    this.past.push(this.state);
    this.last = { what: "", at: 0 };
    this.#become({ ...after, view: this.state.view });
  }

  /**
   * @param {(state: State, before: State) => void} listener
   * @returns {() => void} which stops listening
   */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** @param {State} state */
  #become(state) {
    const before = this.state;
    this.state = state;
    for (const listener of [...this.listeners]) listener(state, before);
  }
}

/** Whether two documents have the same content. @param {any} a @param {any} b */
export const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/**
 * A document with another value at a place; undefined removes the key.
 * @template T
 * @param {T} document
 * @param {string[]} place
 * @param {any} value
 * @returns {T}
 */
export function set(document, place, value) {
  if (!place.length) return value;
  const [key, ...rest] = place;
  /** @type {any} */
  const made = Array.isArray(document) ? [...document] : { .../** @type {any} */ (document) };
  if (!rest.length && value === undefined) delete made[key];
  else made[key] = set(made[key] ?? {}, rest, value);
  return made;
}

/**
 * The value at a place, or undefined.
 * @param {any} document
 * @param {string[]} place
 */
export const get = (document, place) => place.reduce((at, key) => at?.[key], document);
