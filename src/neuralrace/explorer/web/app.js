// The whole explorer: panels around one state, and the questions that changes of it ask.
// @ts-check
import { perFrame, shown } from "./dom.js";
import { read, written } from "./address.js";
import { EquationsPanel } from "./equations_panel.js";
import { Frame } from "./frame.js";
import { GatesPanel } from "./gates_panel.js";
import { followTheme } from "./look.js";
import { Outputs } from "./outputs.js";
import { PhasesPanel } from "./phases_panel.js";
import { RacePanel } from "./race_panel.js";
import { ReluPanel } from "./relu_panel.js";
import { same, set, Store } from "./store.js";
import { StoryPanel } from "./story_panel.js";
import { TaskPanel } from "./task_panel.js";
import { Training } from "./training.js";
import { Calls, Cancelled, Lost, Newest, Refused } from "./transport.js";

/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Tasks} Tasks */
/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Predicted} Predicted */
/** @typedef {import("./types.js").Kept} Kept */
/** @typedef {import("./types.js").Wide} Wide */
/** @typedef {import("./types.js").Failure} Failure */
/** @typedef {import("./chart.js").Curve} Curve */
/** @typedef {import("./transport.js").Link} Link */

/** How long nothing must change before slow questions are asked, in milliseconds. */
const IDLE = 250;

/** Trained networks are shown until this many times the time at which the first is there. */
const AFTER = 1.6;

/** What the reference is: a candidate of aligned gates has them rounded. */
const REFERENCE = "The gates that small neurons align to, as they are: some lie between on and off. A candidate made of them has every gate on or off.";

/** What the predicted loss of a ReLU network is. */
const WIDE = "The wide limit: from the task, the width and the size of the first weights alone, without training the network.";

/** An answer that takes longer than this, in milliseconds, is waited for visibly. */
const SLOW = 600;

/**
 * @typedef {object} Options
 * @property {Link} link
 * @property {any} uPlot
 * @property {boolean} address whether the address of the page holds the state
 * @property {EventTarget} keys where keys are listened to
 * @property {State} [first] what to show first, in place of what the server says
 * @property {(state: State) => void} [keep] called with every state that is shown for a moment
 */

/** Whether text is typed here. @param {EventTarget | null} target @returns {target is HTMLInputElement} */
const isText = (target) => target instanceof HTMLInputElement && target.type === "text";

export class App {
  /** @param {HTMLElement} root @param {Options} options */
  constructor(root, options) {
    this.root = root;
    this.options = options;
    root.classList.add("nr-explorer");
    this.calls = new Calls(options.link);
    /** @type {Tasks | null} */
    this.info = null;
    /** @type {Data | null} */
    this.data = null;
    /** @type {Predicted | null} */
    this.predicted = null;
    /** @type {Failure | null} */
    this.failure = null;
    /** @type {{ kept: Kept, of: any } | null} */
    this.kept = null;
    /** @type {string | null} */
    this.keptFailed = null;
    /** @type {{ wide: Wide | null, failed?: string, of: any } | null} */
    this.wide = null;
    /** @type {{ gating: string, parts: any[], of: any } | null} */
    this.equations = null;
    /** @type {{ kept: any, state: any, answer: Kept | null }} */
    this.known = { kept: null, state: null, answer: null };
    this.phasesRunning = false;
    this.playTime = 0;
    this.idle = 0;
    this.store = new Store({ task: {}, view: {} });
    this.learning = new Training(this);
    this.task = new TaskPanel(this);
    this.story = new StoryPanel(this);
    this.gates = new GatesPanel(this);
    this.relu = new ReluPanel(this);
    this.race = new RacePanel(this, options.uPlot);
    this.phases = new PhasesPanel(this, options.uPlot);
    this.formulas = new EquationsPanel(this);
    this.outputs = new Outputs(this);
    this.frame = new Frame(this);
    this.frame.layout();
    this.refresh = perFrame(() => this.#update());
    this.predict = new Newest(this.calls, "predict", (result, since) => this.#predicted(result, since), (error, since) => this.#unpredicted(error, since));
    this.describe = new Newest(this.calls, "data", (result) => { this.data = result; this.refresh(); }, () => {});
    this.store.listen((state, before) => this.#changed(state, before));
    this.calls.listen((open) => this.#connected(open));
    this.unfollow = followTheme(root, () => this.restyle());
    /** @param {Event} event */
    this.key = (event) => this.#key(/** @type {KeyboardEvent} */ (event));
    options.keys.addEventListener("keydown", this.key);
    root.addEventListener("pointerdown", () => this.store.hold(), true);
    this.release = () => this.store.release();
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, this.release);
    root.addEventListener("input", ({ target }) => isText(target) && (target.dataset.typed = "true"));
    root.addEventListener("change", ({ target }) => isText(target) && !target.hasAttribute("aria-invalid") && delete target.dataset.typed);
    this.moved = () => this.#fromAddress();
    if (options.address) window.addEventListener("hashchange", this.moved);
  }

  destroy() {
    clearTimeout(this.idle);
    clearTimeout(this.addressTimer);
    this.unfollow();
    this.race.destroy();
    this.phases.destroy();
    this.options.keys.removeEventListener("keydown", this.key);
    for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, this.release);
    window.removeEventListener("hashchange", this.moved);
    this.calls.close();
  }

  /** The study: the state without what is looked at. */
  get sent() {
    const { view, ...study } = this.store.state;
    return study;
  }

  /** The end of the time axis. */
  get end() {
    return Math.max(this.predicted?.times.at(-1) || 1, this.#needed);
  }

  /** How long the reference and trained networks take to learn, and a little more; 0 where there are none. */
  get #needed() {
    const reference = this.keptNow?.aligned?.times.at(-1) ?? 0;
    const seed = this.learning.compared?.seeds[0];
    const last = seed?.time.at(-1) ?? 0;
    const index = seed?.loss.findIndex((loss) => loss <= (this.predicted?.criterion ?? 0)) ?? -1;
    const reached = seed && index >= 0 ? AFTER * seed.time[index] : last; // not all of a long training
    const wide = this.wideNow?.wide;
    const foreseen = wide ? Math.min(wide.times.at(-1) ?? 0, AFTER * (wide.high ?? wide.time ?? 0)) : 0;
    return Math.max(reference, foreseen, Math.min(last, reached));
  }

  /** @type {number | undefined} how long the prediction is asked to last, where longer than by itself */
  #until = undefined;

  /** Ask for a prediction that lasts as long as what is drawn beside it. */
  lengthen() {
    if (!this.predicted) return;
    const needed = this.#needed;
    const until = needed > (this.predicted.end ?? Infinity) ? needed : undefined;
    if (until === this.#until) return;
    this.#until = until;
    this.#predict();
  }

  #predict() {
    this.predict.ask({ state: this.sent, ...(this.#until && { until: this.#until }) });
  }

  /** Where the play head is: where it was put, otherwise at the finish of the winner. */
  get time() {
    if (this.race.playing) return this.playTime;
    const wanted = this.store.state.view?.time;
    if (typeof wanted === "number") return Math.max(0, Math.min(this.end, wanted));
    const winner = this.predicted?.winner;
    return (winner && this.predicted?.gatings[winner]?.time) || this.end;
  }

  /** The index of a time among those of the prediction. @param {number} time */
  indexAt(time) {
    const times = this.predicted?.times ?? [0];
    let [low, high] = [0, times.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle;
    }
    return time - times[low] < times[high] - time ? low : high;
  }

  /** What is known of kept gates, if it is about the state that is shown. */
  get keptNow() {
    const { kept } = this;
    const { state } = this.store;
    if (this.known.kept !== kept || this.known.state !== state)
      this.known = { kept, state, answer: kept && same(kept.of, this.#asked) ? kept.kept : null };
    return this.known.answer;
  }

  /** What ReLU networks will do, if it is about the state that is shown. */
  get wideNow() {
    return this.wide && same(this.wide.of, this.#foretold) ? this.wide : null;
  }

  /** The sections on which that depends. */
  get #foretold() {
    const { gatings, title, predict, phase_diagram, ...rest } = this.sent;
    return rest;
  }

  /** Whether the equations are those of the state and the gating that are shown. */
  get equationsNow() {
    return this.equations?.gating === this.gates.chosen && same(this.equations.of, this.#asked);
  }

  /** The sections on which kept gates and equations depend. */
  get #asked() {
    const { training, title, ...rest } = this.sent;
    return rest;
  }

  get trained() {
    return this.learning.trained;
  }

  get types() {
    return this.learning.types;
  }

  /** Curves of trained networks and of types. @returns {Curve[]} */
  get reluCurves() {
    const { types } = this;
    /** @type {Curve[]} */
    const curves = (this.learning.compared?.seeds ?? []).map((seed, i) => ({
      name: i ? `ReLU network ${i + 1}` : "ReLU network", x: seed.time, y: seed.loss, colour: "--relu", width: 4, faint: i ? 0.55 : 1, unlisted: i > 0,
    }));
    const foreseen = this.wideNow?.wide;
    if (foreseen) curves.push({ name: "ReLU network, predicted", about: WIDE, x: foreseen.times, y: foreseen.loss, colour: "--relu", dash: [7, 4], width: 2.6 });
    if (types?.loss && !types.stale) curves.push({ name: "types of neurons", x: types.time, y: types.loss, colour: "--soft", dash: [3, 3], width: 1.6 });
    const aligned = this.keptNow?.aligned;
    if (aligned?.loss?.length) curves.push({ name: "reference (aligned gates)", about: REFERENCE, x: aligned.times, y: aligned.loss, colour: "--soft", dash: [1, 3], width: 1.6 });
    return curves;
  }

  /** A loss in words: as a share where the criterion is one. @param {number} loss */
  lossNamed(loss) {
    const zero = this.predicted?.zero_loss;
    if (!this.store.state.contest?.relative || !zero) return `a loss of ${shown(loss, 3)}`;
    return `a share of ${shown(loss / zero, 3)} of the initial loss`;
  }

  /** The criterion in words, with its unit. */
  get criterionNamed() {
    return `criterion: ${this.lossNamed(this.predicted?.criterion ?? 0)}`;
  }

  /** What a sample is, in words. @param {number} sample */
  named(sample) {
    return this.task.named(sample);
  }

  /** What the server says is wrong with a value. @param {string} place dotted @returns {string | null} */
  complaintAt(place) {
    const failure = this.failure;
    if (!failure || failure.key !== place) return null;
    return [failure.what, failure.wanted && `wanted: ${failure.wanted}`].filter(Boolean).join("; ");
  }

  /** Show another state. @param {State} state */
  load(state) {
    this.race.playing = false;
    this.frame.hush();
    this.store.replace({ ...state, view: state.view ?? {} });
  }

  /** Say something for a while, or until something else is said. @param {string} text @param {boolean} [bad] @param {boolean} [stays] */
  tell(text, bad = false, stays = false) {
    this.frame.tell(text, bad, stays);
  }

  /** Say why something did not work. @param {unknown} error */
  failed(error) {
    if (error instanceof Cancelled || error instanceof Lost) return;
    if (!(error instanceof Refused)) throw error;
    this.frame.blame(error.failure);
  }

  // ---- questions ---------------------------------------------------------------------------------

  /** @param {boolean} open */
  async #connected(open) {
    this.frame.connected(open);
    if (!open) return this.refresh();
    try {
      /** @type {Tasks} */
      const info = await this.calls.ask("tasks", {});
      const first = this.info === null;
      this.info = info;
      if (first) await this.#first(info);
      else this.#askAll();
      this.learning.resume();
    } catch (error) {
      this.failed(error);
    }
  }

  /** @param {Tasks} info */
  async #first(info) {
    const hash = this.options.address ? location.hash.slice(1) : "";
    const found = hash ? await read(hash) : null;
    if (hash && !found) this.tell("The address holds no state that can be read; this is the first page.", true);
    const state = found ?? this.options.first ?? info.state;
    this.store.state = { ...state, view: state.view ?? {} };
    this.store.past = [];
    this.#askAll();
  }

  async #fromAddress() {
    const found = await read(location.hash.slice(1));
    if (found && !same(found, this.store.state)) this.load(found);
  }

  #askAll() {
    this.describe.ask({ state: this.sent });
    this.#predict();
    this.refresh();
  }

  /** @param {State} state @param {State} before */
  #changed(state, before) {
    this.refresh();
    this.#keepAddress();
    const { view: _, ...now } = state;
    const { view: __, ...then } = before;
    if (same(now, then)) {
      if (state.view?.gating !== before.view?.gating) this.#soon();
      return;
    }
    this.frame.forgive();
    if (now.task.builtin !== then.task.builtin) [this.equations, this.#until] = [null, undefined];
    this.learning.changed();
    this.#predict();
    if (!same([now.task, now.table], [then.task, then.table])) this.describe.ask({ state: now });
    this.#wait();
  }

  /** Dim what is old, if an answer takes long. */
  #wait() {
    clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => this.root.classList.toggle("waiting", this.predict.busy), SLOW);
  }

  /** @type {number | undefined} */
  waiting = undefined;


  #keepAddress() {
    clearTimeout(this.addressTimer);
    this.addressTimer = window.setTimeout(async () => {
      this.options.keep?.(this.store.state);
      if (!this.options.address) return;
      const text = await written(this.store.state);
      history.replaceState(null, "", text === null ? location.pathname + location.search : `#${text}`);
      if (text === null && !this.toldLarge) this.tell("The state is too large for the address: use Save study.", true);
      this.toldLarge ||= text === null;
    }, IDLE);
  }

  /** @type {number | undefined} */
  addressTimer = undefined;

  /** Whether it has been said that the state does not fit into the address. */
  toldLarge = false;

  /** @param {Predicted} result @param {number} since */
  #predicted(result, since) {
    this.predicted = result;
    this.failure = null;
    this.since = since;
    this.root.classList.remove("waiting");
    this.refresh();
    this.#soon();
  }

  /** @type {number | null} when the change happened that is drawn next */
  since = null;

  /** @param {Error} error @param {number} since */
  #unpredicted(error, since) {
    if (!(error instanceof Refused)) return;
    this.failure = error.failure;
    this.root.classList.remove("waiting");
    this.since = since;
    this.refresh();
  }

  /** Ask slow questions when nothing has changed for a moment. */
  #soon() {
    clearTimeout(this.idle);
    this.idle = window.setTimeout(() => this.#slow(), IDLE);
  }

  async #slow() {
    const gating = this.gates.chosen;
    const asked = this.#asked;
    if (this.predicted?.gatings[gating])
      this.calls.ask("equations", { state: this.sent, gating }).then(
        (found) => { this.equations = { ...found, of: asked }; this.refresh(); },
        () => {}
      );
    this.#foresee();
    if (this.kept && same(this.kept.of, asked)) return this.lengthen();
    this.keptFailed = null;
    try {
      this.kept = { kept: await this.calls.ask("kept", { state: this.sent }), of: asked };
    } catch (error) {
      if (!(error instanceof Refused)) return this.refresh(); // a newer one is asked
      this.keptFailed = `Kept gates: ${error.failure.what}.`;
    }
    this.lengthen();
    this.refresh();
  }

  /** Ask what ReLU networks will do, and show the wide limit as soon as it comes. */
  async #foresee() {
    if (this.wideNow) return;
    const of = this.#foretold;
    const mine = (this.wide = { wide: /** @type {Wide | null} */ (null), of });
    const show = (/** @type {Partial<{ wide: Wide, failed: string }>} */ found) => {
      if (this.wide?.of !== of) return; // a newer one is asked
      this.wide = { ...mine, ...found };
      this.lengthen();
      this.refresh();
    };
    try {
      show({ wide: await this.calls.ask("wide", { state: this.sent }, (_, wide) => show({ wide })) });
    } catch (error) {
      if (error instanceof Refused) show({ failed: error.failure.what });
      else if (this.wide?.of === of) this.wide = null;
    }
  }

  /** Train ReLU networks, or stop. */
  train() {
    this.learning.toggle();
  }

  /** Put a gating that the server finds into the race. @param {"aligned" | "discover"} kind */
  async fetchGating(kind) {
    const { full } = this.gates.candidates;
    if (full) return this.tell(full, true);
    this.tell(kind === "aligned" ? "Finding the gates that small neurons align to …" : "Training networks, and looking for gates in their activity …");
    try {
      const { task, table } = this.store.state;
      const { name: wanted, gating, sentences } = await this.calls.ask(kind, { state: this.sent });
      const now = this.store.state;
      if (!same([task, table], [now.task, now.table])) return this.tell("The task has changed since: its gates were not added.", true);
      const name = this.gates.candidates.free(wanted);
      const found = kind === "discover" ? [...(now.view?.found ?? []), gating] : now.view?.found;
      this.store.change((state) => set(set(set(state, ["gatings", name], gating), ["view", "gating"], name), ["view", "found"], found));
      this.tell((sentences ?? []).join(" ") || `Added ${name}.`);
    } catch (error) {
      this.failed(error);
    }
  }

  // ---- drawing -----------------------------------------------------------------------------------

  #update() {
    const begun = performance.now();
    this.frame.update();
    this.story.update();
    this.task.element.hidden = !this.story.element.hidden;
    this.task.update();
    this.gates.update();
    this.race.update();
    this.relu.update();
    this.phases.update();
    this.formulas.update();
    const since = this.since;
    this.since = null;
    const now = performance.now();
    this.root.dispatchEvent(new CustomEvent("redrawn", { detail: { script: now - begun, since: since === null ? null : now - since } }));
  }

  restyle() {
    this.race?.restyle();
    this.phases?.restyle();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const typing = isText(event.target) && !!event.target.dataset.typed; // the browser undoes what is typed
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
      event.preventDefault();
      if (event.shiftKey) this.store.redo();
      else this.store.undo();
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "y" && !typing) {
      event.preventDefault();
      this.store.redo();
    }
    if (event.key === "Escape") {
      this.frame.closeMenus();
      this.frame.forgive();
    }
  }
}
