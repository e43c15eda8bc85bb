// The candidates of the race: which gating is shown, and a menu that adds, renames and removes them.
// @ts-check
import { h, keepFocus } from "./dom.js";
import { racer } from "./look.js";
import { set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Gating} Gating */

/** Names of gatings and pathways. */
const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/** Names that the server keeps for itself. */
const TAKEN = ["aligned"];

/** Labels with more values than this are not offered as one pathway per value. */
const VALUES = 12;

/** Gatings in one race at most, until the server has said it. */
const MOST = 8;

/** What a name must be. */
export const NAMED = "A name is made of letters, digits and _, begins with a letter, and is used once.";

/** Whether a gating or pathway may have a name. @param {string} name */
export const isName = (name) => NAME.test(name) && !TAKEN.includes(name);

export class Candidates {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.built = "";
    this.tabs = h("div", { class: "tabs", role: "group", "aria-label": "Candidate gatings" });
    this.name = h("input", { class: "name", "aria-label": "Name of this gating", maxlength: 40, onchange: () => this.#rename() });
    this.items = h("ul", { class: "items" });
    this.summary = h("summary", { title: "Add, rename or remove gatings" }, "Gatings…");
    this.menu = h("details", { class: "menu" }, this.summary, this.items);
    this.menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#close();
    });
    this.element = h("div", { class: "row" }, this.tabs, this.menu);
  }

  get names() {
    return Object.keys(this.app.store.state.gatings ?? {});
  }

  /** The gating that is shown: the one that was asked for, otherwise the winner. */
  get chosen() {
    const { names } = this;
    const wanted = this.app.store.state.view?.gating;
    if (wanted && names.includes(wanted)) return wanted;
    const winner = this.app.predicted?.winner;
    return winner && names.includes(winner) ? winner : names[0] ?? "";
  }

  /** Why no gating can be added, or null. */
  get full() {
    const most = this.app.info?.limits.gatings ?? MOST;
    return this.names.length < most ? null : `At most ${most} gatings can race: remove one to add another.`;
  }

  update() {
    const { app } = this;
    const { names, chosen } = this;
    const built = JSON.stringify([names, chosen, app.predicted?.winner, app.info?.version, app.store.state.task.builtin, app.data?.labels && Object.keys(app.data.labels)]);
    if (built === this.built) return;
    this.built = built;
    const tab = (/** @type {string} */ name, /** @type {number} */ i) =>
      h(
        "button",
        { type: "button", class: `tab ${racer(i)}`, "aria-pressed": String(name === chosen), onclick: () => app.store.look({ gating: name }) },
        h("span", { class: "chip", "aria-hidden": "true" }),
        name,
        name === app.predicted?.winner && h("span", { class: "won", title: "learns first" }, " ★")
      );
    keepFocus(this.tabs, () => this.tabs.replaceChildren(...names.map(tab)), () => /** @type {HTMLElement | null} */ (this.tabs.querySelector("[aria-pressed=true]")));
    keepFocus(this.items, () => this.#fill(), (before) => (before.isConnected ? before : this.summary));
  }

  #close() {
    this.menu.open = false;
    this.summary.focus();
  }

  #fill() {
    const { app, full } = this;
    const item = (/** @type {string} */ text, /** @type {string} */ about, /** @type {() => void} */ act, disabled = false) =>
      h("li", {}, h("button", { type: "button", disabled, onclick: () => { this.#close(); act(); } }, h("b", {}, text), h("span", {}, about)));
    const more = (/** @type {string} */ text, /** @type {string} */ about, /** @type {() => void} */ act) => item(text, about, act, !!full);
    this.name.value = this.chosen;
    const present = [
      h("li", { class: "line" }, this.name),
      more("Duplicate", `A copy of ${this.chosen}, to change.`, () => this.#put(this.chosen, app.gates.editable ?? app.store.state.gatings?.[this.chosen] ?? {})),
      this.names.length > 1 && item("Remove", `Take ${this.chosen} out of the race.`, () => app.store.change((state) => set(state, ["gatings", this.chosen], undefined))),
    ].filter((one) => one instanceof HTMLElement);
    this.items.replaceChildren(
      ...(this.names.length ? [h("li", { class: "head" }, "This gating"), ...present] : []),
      h("li", { class: "head" }, "Add to the race"),
      ...(full ? [h("li", { class: "full" }, full)] : []),
      ...this.#offered.map(({ name, text, about, gating }) => more(text, about, () => this.#put(name, gating))),
      more("aligned", "The gates that small ReLU neurons align to by themselves.", () => app.fetchGating("aligned")),
      more("discover", "Train ReLU networks, and find the gates in their activity.", () => app.fetchGating("discover"))
    );
  }

  /** The gatings of the task's list; for a task without one, those that every table has. */
  get #offered() {
    const { app } = this;
    const task = app.info?.tasks.find((one) => one.name === app.store.state.task.builtin);
    if (task) return task.gatings.map(({ short, about, gating }) => ({ name: short, text: short.replaceAll("_", " "), about, gating }));
    const labels = Object.entries(app.data?.labels ?? {}).filter(([label, values]) => label !== "sample" && new Set(values).size <= VALUES);
    const all = { masks: { all: Array(app.data?.samples ?? 0).fill(1) } };
    return [
      ...labels.map(([label]) => ({ name: `by_${label}`, text: `each ${label}`, about: `One pathway per value of ${label}.`, gating: { each: label } })),
      { name: "all_on", text: "all on", about: "One pathway that is always on: a linear network.", gating: all },
    ];
  }

  /** A name that no gating has. @param {string} wanted */
  free(wanted) {
    let name = wanted;
    for (let n = 2; this.names.includes(name) || TAKEN.includes(name); n++) name = `${wanted}_${n}`;
    return name;
  }

  /** @param {string} wanted name @param {Gating} gating */
  #put(wanted, gating) {
    const name = this.free(wanted);
    this.app.store.change((state) => set(set(state, ["gatings", name], gating), ["view", "gating"], name));
  }

  #rename() {
    const [before, after] = [this.chosen, this.name.value.trim()];
    if (after === before) return;
    if (!isName(after) || this.names.includes(after)) {
      this.name.value = before;
      return this.app.tell(NAMED, true);
    }
    const entries = Object.entries(this.app.store.state.gatings ?? {}).map(([name, gating]) => [name === before ? after : name, gating]);
    this.app.store.change((state) => set(set(state, ["gatings"], Object.fromEntries(entries)), ["view", "gating"], after));
  }
}
