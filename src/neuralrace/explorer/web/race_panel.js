// The race: lanes, a time axis that can be played, the predicted loss and what every pathway learns.
// @ts-check
import { button, count, h, keepFocus, say, shown } from "./dom.js";
import { Chart } from "./chart.js";
import { Lanes } from "./lanes.js";
import { dash, hue, racer } from "./look.js";
import { Totals } from "./totals.js";
import { arrival } from "./training.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./chart.js").Curve} Curve */

/** How long the whole race takes to play, in milliseconds. */
const LASTS = 7000;

/** Steps of the slider of time. */
const STEPS = 1000;

/** Curves of strength that are drawn at most; more cannot be told apart. */
const MOST = 12;

/** What strengths are. */
const STRENGTH = "How strongly inputs are mapped to outputs: outputs are this times inputs. So it is above the size of the targets where inputs are small, and below it where they are large.";
const MODE = `${STRENGTH} A mode is one direction of inputs with one direction of outputs, and learns by itself.`;
const PATHWAY = `${STRENGTH} That of a pathway is the Frobenius norm of the product of its weights: the root of the sum of the squares of its modes.`;

export class RacePanel {
  /** @param {App} app @param {any} uPlot */
  constructor(app, uPlot) {
    this.app = app;
    this.playing = false;
    this.lanes = new Lanes((name) => name in (app.store.state.gatings ?? {}) && app.store.look({ gating: name }));
    const seek = (/** @type {number} */ time) => this.seek(time);
    const zoom = (/** @type {[number, number] | null} */ range) => app.store.look({ zoom: range });
    this.loss = new Chart(uPlot, { root: app.root, ylabel: "loss", what: "The loss of every candidate over time: predicted, and of trained networks", seek, zoom });
    this.strengths = new Chart(uPlot, { root: app.root, ylabel: "strength", what: "How far every pathway has learned, over time", seek, zoom });
    this.play = button("▶ Play", () => this.toggle(), { class: "play", "aria-label": "Play the race" });
    this.slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, class: "time", "aria-label": "Time" });
    this.slider.addEventListener("input", () => this.seek((Number(this.slider.value) / STEPS) * app.end));
    this.now = h("output", { class: "now" });
    this.finish = button("Photo finish", () => this.photo(), { class: "quiet", title: "The moment at which the winner reaches the criterion" });
    this.log = button("log", () => app.store.look({ log: !app.store.state.view?.log }), { class: "quiet", title: "Logarithmic axis of the loss" });
    this.nearer = button("+", () => this.#zoom(0.5), { class: "quiet", "aria-label": "Zoom in at the time shown", title: "Zoom in" });
    this.whole = button("whole range", () => app.store.look({ zoom: null }), { class: "quiet" });
    this.by = "pathways";
    this.switch = button("modes", () => { this.by = this.by === "modes" ? "pathways" : "modes"; this.update(); }, { class: "quiet" });
    this.train = button("Train ReLU networks", () => app.train(), { class: "primary" });
    this.progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Training" });
    this.strengthTitle = h("h3", {});
    this.leftOut = h("p", { class: "caption left-out", role: "status", hidden: true });
    this.totals = new Totals(app);
    this.element = h(
      "section",
      { class: "panel race", "aria-label": "Race" },
      h("div", { class: "row spread" }, h("h2", {}, h("span", { class: "letter" }, "C"), "Race"), h("span", { class: "row" }, this.progress, this.train)),
      this.lanes.element,
      this.totals.element,
      h("div", { class: "row player" }, this.play, this.slider, this.now, this.finish),
      h("div", { class: "row spread" }, h("h3", {}, "Loss: dashed predicted, solid trained"), h("span", { class: "row" }, this.log, this.nearer, this.whole)),
      this.loss.element,
      h("div", { class: "row spread" }, this.strengthTitle, this.switch),
      this.strengths.element,
      this.leftOut
    );
  }

  destroy() {
    this.playing = false;
    this.loss.destroy();
    this.strengths.destroy();
  }

  /** Colours have changed. */
  restyle() {
    this.loss.restyle();
    this.strengths.restyle();
  }

  update() {
    const { app } = this;
    const { predicted } = app;
    const view = app.store.state.view ?? {};
    this.log.setAttribute("aria-pressed", String(!!view.log));
    keepFocus(this.whole, () => (this.whole.disabled = !view.zoom), () => this.nearer);
    this.loss.setLog(!!view.log);
    this.#training();
    if (!predicted) return;
    this.totals.update();
    const names = Object.keys(app.store.state.gatings ?? {});
    const there = names.filter((name) => predicted.gatings[name]);
    this.lanes.show([...this.#lanes(there, names), ...this.#reluLane()], predicted.criterion ?? 0);
    /** @type {Curve[]} */
    const theory = there.map((name) => {
      const i = names.indexOf(name);
      return { name, x: predicted.times, y: predicted.gatings[name].loss, colour: `--${racer(i)}`, dash: dash(i), width: name === app.gates.chosen ? 2.6 : 1.8 };
    });
    const range = /** @type {[number, number]} */ ([0, app.end]);
    this.loss.setZoom(view.zoom ?? null);
    this.strengths.setZoom(view.zoom ?? null);
    this.loss.show({ curves: [...app.reluCurves, ...theory], range, line: predicted.criterion, lineName: app.criterionNamed, lineShort: "criterion" });
    this.#strengths(range);
    this.setTime(app.time);
  }

  /** @param {string[]} there @param {string[]} names */
  #lanes(there, names) {
    const { app } = this;
    const order = app.predicted?.order ?? [];
    const sorted = [...there].sort((a, b) => place(order, a) - place(order, b));
    return sorted.map((name) => ({
      name, hue: racer(names.indexOf(name)), time: app.predicted?.times ?? [], loss: app.predicted?.gatings[name].loss ?? [],
      arrives: app.predicted?.gatings[name].time ?? null, first: name === app.predicted?.winner, kind: false,
      chosen: name === app.gates.chosen, standing: app.keptNow?.gatings[name]?.standing, place: app.predicted?.gatings[name].place,
    }));
  }

  #reluLane() {
    const trained = this.app.learning.compared;
    const first = trained?.seeds[0];
    if (!trained || !first?.time.length) return [];
    const arrives = arrival(first, this.app.predicted?.criterion ?? 0);
    const name = trained.seeds.length > 1 ? "ReLU network 1" : "ReLU network";
    return [{ name, hue: "relu", time: first.time, loss: first.loss, arrives, first: false, kind: true, waiting: trained.running }];
  }

  /** @param {[number, number]} range */
  #strengths(range) {
    const { app } = this;
    const prediction = app.predicted?.gatings[app.gates.chosen];
    say(this.switch, this.by === "modes" ? "by pathway" : "by mode");
    this.strengthTitle.textContent = `Strength of ${this.by === "modes" ? "the modes" : "the pathways"} of ${app.gates.chosen}`;
    this.strengthTitle.title = this.by === "modes" ? MODE : PATHWAY;
    this.leftOut.hidden = true;
    if (!prediction) return this.strengths.show({ curves: [], range });
    const modes = this.by === "modes";
    const parts = modes ? prediction.modes.filter((mode) => mode.strength) : prediction.pathways;
    const all = modes ? prediction.modes.length + prediction.modes_cut : parts.length;
    const drawn = Math.min(MOST, parts.length);
    this.leftOut.hidden = drawn === all;
    if (drawn < all) say(this.leftOut, `The ${modes ? "strongest" : "first"} ${drawn} of ${all} ${this.by} are drawn.`);
    const times = app.predicted?.times ?? [];
    const curves = parts.slice(0, MOST).map((part, i) => {
      const branch = "branch" in part ? part.branch : i;
      return { name: part.name, x: times, y: part.strength ?? [], colour: `--${hue(branch)}`, dash: dash(i), width: 2 };
    });
    this.strengths.show({ curves, range });
  }

  #training() {
    const { trained, store } = this.app;
    const seeds = store.state.training?.seeds ?? 2;
    const running = !!trained?.running;
    say(this.train, running ? "Stop" : `Train ${count(seeds, "ReLU network")}`);
    this.train.classList.toggle("primary", !running);
    this.progress.hidden = !running;
    this.progress.value = trained?.share ?? 0;
  }

  /** Show a part of the time axis, around the play head. @param {number} share of what is shown */
  #zoom(share) {
    const { app } = this;
    const [low, high] = app.store.state.view?.zoom ?? [0, app.end];
    const half = (share * (high - low)) / 2;
    const middle = Math.max(half, Math.min(app.end - half, app.time));
    app.store.look({ zoom: [middle - half, middle + half] });
  }

  /** Put the play head somewhere. @param {number} time */
  setTime(time) {
    this.lanes.setTime(time);
    this.loss.setTime(time);
    this.strengths.setTime(time);
    const at = String(Math.round((time / this.app.end) * STEPS));
    if (this.slider.value !== at) this.slider.value = at;
    const text = `t = ${shown(time)}`;
    this.slider.setAttribute("aria-valuetext", text);
    say(this.now, text);
    this.app.gates.setTime(time);
    this.app.relu.setTime(time);
  }

  /** @param {number} time */
  seek(time) {
    this.playing = false;
    this.#button();
    this.app.store.look({ time: Math.max(0, Math.min(this.app.end, time)) });
  }

  photo() {
    this.playing = false;
    this.#button();
    this.app.store.look({ time: undefined });
  }

  #button() {
    say(this.play, this.playing ? "❚❚ Pause" : "▶ Play");
    this.play.setAttribute("aria-label", this.playing ? "Pause the race" : "Play the race");
  }

  toggle() {
    this.playing = !this.playing;
    this.#button();
    if (!this.playing) return this.app.store.look({ time: this.app.time });
    const from = this.app.time < 0.999 * this.app.end && this.app.store.state.view?.time !== undefined ? this.app.time / this.app.end : 0;
    let begun = 0;
    const frame = (/** @type {number} */ now) => {
      if (!this.playing) return;
      begun ||= now - from * LASTS;
      const share = Math.min(1, (now - begun) / LASTS);
      this.app.playTime = share * this.app.end;
      this.setTime(this.app.time);
      if (share < 1) return requestAnimationFrame(frame);
      this.playing = false;
      this.#button();
      this.app.store.look({ time: this.app.end });
    };
    requestAnimationFrame(frame);
  }
}

/** @param {string[]} order @param {string} name */
const place = (order, name) => (order.includes(name) ? order.indexOf(name) : 999);
