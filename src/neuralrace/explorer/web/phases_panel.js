// The phase diagram: who wins over one or two parameters, and where that changes.
// @ts-check
import { button, h, s, say, shown, unique } from "./dom.js";
import { Chart } from "./chart.js";
import { plain } from "./fields.js";
import { diagramKnob, isOfList, isStarted, networkKnobs, taskKnobs } from "./knobs.js";
import { dash, racer } from "./look.js";
import { get, same, set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Over} Over */
/** @typedef {import("./types.js").State} State */

/** Values of one parameter, and of each of two. */
const ALONE = 41;
const EACH = 15;

/** Marks of candidates in a cell of a diagram over two parameters, so that it reads in grey. */
const MARKS = ["", "M3 5h4", "M5 3v4M3 5h4", "M3 3l4 4m0 -4l-4 4", "M5 4.2a.8 .8 0 1 0 .01 0", "M3 7l4 -4", "M3 3l4 4", "M5 3v4"];

/** What the panel says before anything is drawn. */
const ABOUT = "Who wins at each value, and where that changes.";

/** Where no loss is left to learn, as a share of the initial one: a criterion above it starts no race. */
const NOTHING = 0.99;

/** @typedef {import("./knobs.js").Knob} Knob */

export class PhasesPanel {
  /** @param {App} app @param {any} uPlot */
  constructor(app, uPlot) {
    this.app = app;
    const [first, second] = [unique("over"), unique("over")];
    this.first = h("select", { id: first, onchange: () => this.#chosen() });
    this.second = h("select", { id: second, onchange: () => this.#chosen() });
    this.ranges = [0, 1].map((k) => this.#range(k));
    this.draw = button("Draw", () => this.ask(), { class: "primary" });
    this.status = h("p", { class: "caption", role: "status" }, ABOUT);
    this.chart = new Chart(uPlot, {
      root: app.root, ylabel: "learning time (log)", xlabel: "value", what: "Learning time of every candidate over the parameter",
      seek: (value) => this.#go(value), zoom: (range) => this.chart.setZoom(range),
    });
    this.map = h("div", { class: "phase-map" });
    this.chart.element.hidden = true;
    this.choices = "";
    /** @type {any} */
    this.result = null;
    /** @type {string | undefined} */
    this.task = undefined;
    this.outside = h("p", { class: "caption outside", role: "status", hidden: true });
    this.earlier = h("p", { class: "caption earlier", hidden: true }, "This diagram is of an earlier state: draw it again.");
    this.element = h(
      "section",
      { class: "panel phases", "aria-label": "Phase diagram" },
      h("div", { class: "row spread" }, h("h2", {}, h("span", { class: "letter" }, "E"), "Phase diagram"), this.draw),
      h("div", { class: "row" }, h("span", { class: "row" }, h("label", { for: first }, "over"), this.first), this.ranges[0].element),
      h("div", { class: "row" }, h("span", { class: "row" }, h("label", { for: second }, "and"), this.second), this.ranges[1].element),
      this.status,
      this.outside,
      this.earlier,
      this.chart.element,
      this.map
    );
  }

  destroy() {
    this.chart.destroy();
  }

  restyle() {
    this.chart.restyle();
  }

  /** From where to where an axis goes. @param {number} k which axis */
  #range(k) {
    const which = ["the first number", "the second number"][k];
    const field = (/** @type {string} */ word) => h("input", { class: "number", inputmode: "decimal", autocomplete: "off", "aria-label": `${word} this value of ${which}`, onchange: () => this.#ranged(k) });
    const [start, stop] = [field("From"), field("To")];
    return { start, stop, element: h("span", { class: "row range" }, "from", start, "to", stop) };
  }

  /** What can be varied, over the range of its slider, or of the study's own diagram. @returns {Knob[]} */
  get #parameters() {
    const { app } = this;
    const task = taskKnobs(app);
    const own = diagramKnob(app, task);
    const unmoved = ["network.widths", ...(isStarted(app.store.state) ? ["network.scale"] : [])]; // widths are those of the gatings
    const knobs = [...task.map((knob) => (own && knob.place === own.place ? own : knob)), ...networkKnobs(app).filter(({ place }) => !unmoved.includes(place))];
    const relative = !!app.store.state.contest?.relative;
    return knobs.filter(({ kind, min, max, place }) => !isOfList(place) && (kind === "number" || kind === "integer") && typeof min === "number" && typeof max === "number").map((knob) => {
      if (knob.place !== "contest.criterion") return knob;
      if (relative) return { ...knob, label: "Criterion (share of the initial loss)" };
      return { ...knob, max: Math.min(knob.max ?? 1, Number((NOTHING * (app.data?.zero_loss ?? Infinity)).toPrecision(2))) };
    });
  }

  /** The keys that are chosen. */
  get #keys() {
    return [this.first.value, this.second.value].filter(Boolean);
  }

  #chosen() {
    if (this.second.value === this.first.value) this.second.value = "";
    this.app.store.look({ over: this.#keys.map((key, k) => this.#over(key, k)) });
  }

  /** A range was typed. @param {number} k which axis */
  #ranged(k) {
    const [start, stop] = [this.ranges[k].start, this.ranges[k].stop].map(({ value }) => (value.trim() === "" ? NaN : Number(value.trim().replace("−", "-").replace(",", "."))));
    const fine = Number.isFinite(start) && Number.isFinite(stop) && start < stop;
    if (!fine) this.app.tell("A range goes from a number to a larger one.", true);
    const over = this.#keys.map((key, i) => this.#over(key, i));
    if (fine && over[k]) over[k] = this.#axis({ ...this.#knob(over[k].key), min: start, max: stop });
    this.app.store.look({ over });
    this.#shown();
  }

  /** @param {string} key */
  #knob(key) {
    return this.#parameters.find((one) => one.place === key) ?? this.#parameters[0];
  }

  /** One axis: as it was set, otherwise over its whole range. @param {string} key @param {number} k @returns {Over} */
  #over(key, k) {
    const found = this.#knob(key);
    const set = this.app.store.state.view?.over?.[k];
    const own = set?.key === found.place && Number.isFinite(set.start) && Number.isFinite(set.stop) && set.start < set.stop;
    return this.#axis(own ? { ...found, min: set.start, max: set.stop } : found);
  }

  /** @param {Knob} knob @returns {Over} */
  #axis({ place, min = 0, max = 1, log, kind }) {
    const whole = kind === "integer";
    const [start, stop] = whole ? [Math.round(min), Math.round(max)] : [min, max];
    const most = this.second.value ? EACH : ALONE;
    return { key: place, start, stop, count: whole ? Math.min(most, stop - start + 1) : most, log: !!log && start > 0, whole };
  }

  /** Write the ranges into their fields, and leave out of the second list what the first one has. */
  #shown() {
    const keys = this.#keys;
    this.ranges.forEach(({ start, stop, element }, k) => {
      element.hidden = k >= keys.length;
      if (element.hidden) return;
      const over = this.#over(keys[k], k);
      for (const [field, value] of /** @type {const} */ ([[start, over.start], [stop, over.stop]])) if (document.activeElement !== field) field.value = plain(Number(value.toPrecision(6)));
    });
    for (const option of this.second.options) option.hidden = option.disabled = option.value !== "" && option.value === this.first.value;
  }

  async ask() {
    const { app } = this;
    if (app.phasesRunning) return app.calls.cancel("phases");
    const keys = this.#keys;
    const over = keys.map((key, k) => this.#over(key, k));
    app.phasesRunning = true;
    this.update();
    say(this.status, "Racing at every value …");
    const labels = keys.map((key) => this.#knob(key).label);
    /** @type {any} */
    const partial = { over: over.map((one) => ({ ...one, values: spread(one) })), winners: [], labels, names: Object.keys(app.store.state.gatings ?? {}), two: keys.length > 1, of: fixed(app.sent, keys) };
    const task = this.#task;
    try {
      const result = await app.calls.ask("phases", { state: app.sent, over }, (name, row) => {
        if (name !== "row" || task !== this.#task) return;
        partial.winners[row.row] = row.winners;
        this.result = { ...partial };
        this.#show();
      });
      if (task === this.#task) this.#done(partial, result);
    } catch (error) {
      say(this.status, ABOUT);
      app.failed(error);
    }
    app.phasesRunning = false;
    this.update();
  }

  /** Everything is known. @param {any} partial @param {any} result */
  #done(partial, result) {
    this.result = { ...partial, ...result, over: partial.over.map((/** @type {any} */ one, /** @type {number} */ k) => ({ ...one, ...result.over[k] })) };
    this.#show();
    const click = partial.two ? ["Click a cell to go there."] : [];
    say(this.status, [...(result.sentences ?? []), ...click].join(" "));
  }

  /** Which task is shown, without its parameters. */
  get #task() {
    const { task, table } = this.app.store.state;
    const { parameters, scale, ...rest } = task;
    return JSON.stringify([rest, table]);
  }

  /** A diagram of another task is dropped, and one of an earlier state is marked. */
  #age() {
    const { result } = this;
    const task = this.#task;
    if (task !== this.task && this.task !== undefined) {
      if (this.app.phasesRunning) this.app.calls.cancel("phases");
      this.result = null;
      say(this.status, ABOUT);
      this.#show();
    }
    this.task = task;
    const old = !!this.result && !same(result.of, fixed(this.app.sent, result.over.map((/** @type {any} */ one) => one.key)));
    this.earlier.hidden = !old;
    this.element.classList.toggle("old", old);
  }

  update() {
    this.#age();
    const parameters = this.#parameters;
    const choices = JSON.stringify(parameters.map(({ place, label }) => [place, label]));
    if (choices !== this.choices) {
      this.choices = choices;
      const options = () => parameters.map(({ place, label }) => h("option", { value: place }, label));
      this.first.replaceChildren(...options());
      this.second.replaceChildren(h("option", { value: "" }, "nothing else"), ...options());
      const wanted = this.app.store.state.view?.over ?? [];
      const known = (/** @type {string | undefined} */ key) => parameters.some(({ place }) => place === key);
      const first = parameters.find(({ place, kind }) => kind === "number" && place.startsWith("task.")) ?? parameters[0];
      this.first.value = [wanted[0]?.key, this.app.store.state.phase_diagram?.key, first.place].find(known) ?? first.place;
      this.second.value = [wanted[1]?.key].find((key) => known(key) && key !== this.first.value) ?? "";
      this.result = null;
      this.#show();
    }
    this.#shown();
    say(this.draw, this.app.phasesRunning ? "Stop" : "Draw");
    this.#here();
  }

  /** Mark where the state is. */
  #here() {
    const { result } = this;
    if (!result) return void (this.outside.hidden = true);
    /** @type {number[]} */
    const values = result.over.map((/** @type {Over} */ { key }) => Number(get(this.app.store.state, key.split(".")) ?? this.#knob(key).default ?? NaN));
    const unknown = values.some((value) => !Number.isFinite(value)); // left to its default
    const out = values.map((value, k) => ({ value, label: result.labels[k], ends: result.over[k].values })).filter(({ value, ends }) => value < ends[0] || value > ends.at(-1));
    this.outside.hidden = unknown || !out.length;
    if (out.length) say(this.outside, out.map(({ value, label, ends }) => `You are at ${label} = ${shown(value)}, outside the range that is drawn (${shown(ends[0])} to ${shown(ends.at(-1))}).`).join(" "));
    const mark = this.map.querySelector(".here");
    mark?.toggleAttribute("hidden", unknown || out.length > 0);
    if (unknown) return;
    if (!result.two) return this.chart.setTime(values[0]);
    const at = values.map((/** @type {number} */ value, /** @type {number} */ k) => position(result.over[k].values, value, result.over[k].log));
    if (mark) {
      mark.setAttribute("cx", String(10 * at[0] + 5));
      mark.setAttribute("cy", String(10 * (result.over[1].values.length - 1 - at[1]) + 5));
    }
  }

  /** Move the state to the values of what was varied, in one step. @param {...number} values */
  #go(...values) {
    /** @type {Over[]} */
    const over = this.result?.over ?? [];
    const rounded = values.map((value, k) => (over[k]?.whole ? Math.round(value) : Number(value.toPrecision(3))));
    const moved = (/** @type {State} */ state) => over.reduce((made, { key }, k) => set(made, key.split("."), rounded[k]), state);
    this.app.store.change(moved, over.map(({ key }) => key).join(" "));
  }

  #show() {
    const { result } = this;
    this.chart.element.hidden = !result || result.two;
    this.map.hidden = !result?.two;
    if (!result) return this.map.replaceChildren();
    if (result.two) return this.#cells();
    const names = result.names.filter((/** @type {string} */ name) => result.times?.[name]);
    this.chart.options.xlabel = axis(result, 0);
    this.chart.options.xlog = !!result.over[0].log;
    this.chart.log = true; // times differ by orders of magnitude
    this.chart.restyle();
    this.chart.show({
      uprights: (result.crossovers ?? []).map((/** @type {any} */ one) => ({ x: one.value, name: shown(one.value) })),
      curves: names.map((/** @type {string} */ name) => {
        const i = result.names.indexOf(name);
        return { name, x: result.over[0].values, y: result.times[name], colour: `--${racer(i)}`, dash: dash(i), width: 2.2 };
      }),
    });
    requestAnimationFrame(() => this.#here());
  }

  /** Two parameters: one cell per pair of values. */
  #cells() {
    const { result } = this;
    const [across, up] = result.over;
    const [wide, high] = [across.values.length, up.values.length];
    const groups = result.names.map(() => ({ cells: "", marks: "" }));
    for (let j = 0; j < high; j++)
      for (let i = 0; i < wide; i++) {
        const k = result.names.indexOf(result.winners[j]?.[i]);
        if (k < 0) continue;
        const [x, y] = [10 * i, 10 * (high - 1 - j)];
        groups[k].cells += `M${x} ${y}h10v10h-10z`;
        groups[k].marks += moved(MARKS[k % MARKS.length], x, y);
      }
    const drawing = s(
      "svg",
      { viewBox: `0 0 ${10 * wide} ${10 * high}`, preserveAspectRatio: "none", role: "img", "aria-label": `The winner over ${result.labels.join(" and ")}` },
      s("rect", { class: "ground", width: 10 * wide, height: 10 * high }),
      ...groups.map((/** @type {any} */ group, /** @type {number} */ k) => s("g", { class: racer(k) }, s("path", { class: "cell", d: group.cells }), s("path", { class: "mark", d: group.marks }))),
      s("circle", { class: "here", r: 4 })
    );
    drawing.addEventListener("click", (event) => {
      const box = drawing.getBoundingClientRect();
      const i = Math.min(wide - 1, Math.floor(((event.clientX - box.left) / box.width) * wide));
      const j = Math.min(high - 1, Math.floor((1 - (event.clientY - box.top) / box.height) * high));
      this.#go(across.values[i], up.values[j]);
    });
    const ends = (/** @type {number[]} */ values) => [shown(values[0], 3), shown(values[values.length - 1], 3)];
    const [x, y] = [ends(across.values), ends(up.values)];
    this.map.replaceChildren(
      h("span", { class: "y" }, h("span", {}, y[1]), h("b", {}, axis(result, 1)), h("span", {}, y[0])),
      drawing,
      h("span", { class: "x" }, h("span", {}, x[0]), h("b", {}, axis(result, 0)), h("span", {}, x[1])),
      h("ul", { class: "legend" }, ...result.names.map((/** @type {string} */ name, /** @type {number} */ k) => h("li", { class: racer(k) }, s("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" }, s("path", { class: "cell", d: "M0 0h10v10h-10z" }), s("path", { class: "mark", d: MARKS[k % MARKS.length] })), name)))
    );
    this.#here();
  }
}

/** What a diagram depends on: the study without the training and what is varied. @param {any} study @param {string[]} keys */
function fixed({ title, training, ...study }, keys) {
  return keys.reduce((made, key) => set(made, key.split("."), undefined), study);
}

/** The values between two ends. @param {Over} over */
function spread({ start, stop, count, log }) {
  const [a, b] = log ? [Math.log(start), Math.log(stop)] : [start, stop];
  return Array.from({ length: count }, (_, i) => {
    const value = a + ((b - a) * i) / Math.max(1, count - 1);
    return log ? Math.exp(value) : value;
  });
}

/** The name of an axis. @param {any} result @param {number} k */
const axis = (result, k) => `${result.labels[k]}${result.over[k].log ? " (log)" : ""}`;

/** Where a value is among others, in steps. @param {number[]} values @param {number} value @param {boolean} log */
function position(values, value, log) {
  const f = log ? Math.log : (/** @type {number} */ v) => v;
  const [a, b] = [f(values[0]), f(values[values.length - 1])];
  return Math.max(-0.5, Math.min(values.length - 0.5, ((f(value) - a) / (b - a || 1)) * (values.length - 1)));
}

/** A small path at another place. @param {string} path @param {number} x @param {number} y */
const moved = (path, x, y) => path.replace(/M(-?[\d.]+) (-?[\d.]+)/g, (_, a, b) => `M${x + Number(a)} ${y + Number(b)}`);
