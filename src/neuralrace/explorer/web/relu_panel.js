// The ReLU network: its gates as they fill in while it learns, types of neurons beside it, and how
// it is trained.
// @ts-check
import { button, h, percent, s, say, shown } from "./dom.js";
import { fieldOf } from "./fields.js";
import { get, set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./fields.js").Field} Field */

/** Rows of a map of gates at most. */
const ROWS = 14;

const TRAINING = [
  { place: "training.seeds", label: "Networks", kind: "integer", min: 1, max: 6, default: 2, about: "how many networks, each from its own random start" },
  { place: "training.steps", label: "Steps", kind: "integer", min: 100, max: 5000, step: 50, default: 1000, about: "steps of gradient descent" },
  { place: "training.learning_rate", label: "Learning rate", kind: "number", min: 0.001, max: 0.5, log: true, default: 0.05, about: "the step of gradient descent" },
  { place: "training.key", label: "First seed", kind: "integer", min: 0, max: 99, default: 0, about: "the number that all randomness comes from" },
];

export class ReluPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    const controls = h("div", { class: "fields" });
    for (const { place, ...param } of TRAINING) {
      const field = fieldOf(/** @type {any} */ ({ name: place, ...param }), (value) => app.store.change((state) => set(state, place.split("."), value), place));
      this.fields.set(place, field);
      controls.append(field.element);
    }
    this.train = button("Train", () => app.train(), { class: "primary" });
    this.types = button("Predict by types", () => app.learning.predictTypes(), { title: "From the task, the width and the initial scale alone" });
    this.status = h("p", { class: "caption", role: "status" });
    this.map = h("div", { class: "gate-map" });
    this.mapTitle = h("h3", {}, "Its gates");
    this.rest = h("p", { class: "caption", hidden: true });
    this.typesTitle = h("h3", { hidden: true }, "Types of neurons");
    this.typesMap = h("div", { class: "gate-map" });
    this.typesNote = h("p", { class: "caption" }, "A type stands for its images under the symmetries of the task too.");
    this.told = h("div", { class: "told" });
    this.drawn = "";
    this.drawnTypes = "";
    this.element = h(
      "section",
      { class: "panel relu", "aria-label": "ReLU network" },
      h("div", { class: "row spread" }, h("h2", {}, h("span", { class: "letter" }, "D"), "ReLU network"), h("span", { class: "row" }, this.types, this.train)),
      this.status,
      this.mapTitle,
      this.map,
      this.rest,
      h("p", { class: "caption" }, "One row per pattern of gates, one column per sample; the bar is its share of the weights."),
      h("p", { class: "caption key" }, h("span", {}, key("1"), "on"), h("span", {}, key("0"), "off"), h("span", {}, key("2"), "sliding: held at the boundary, a fraction")),
      this.typesTitle,
      this.typesMap,
      this.typesNote,
      this.told,
      h("details", { class: "more" }, h("summary", {}, "How it is trained"), controls)
    );
  }

  update() {
    const { app } = this;
    for (const [place, field] of this.fields) {
      field.show(get(app.store.state, place.split(".")));
      field.complain(app.complaintAt(place));
    }
    const { trained } = app;
    say(this.train, trained?.running ? "Stop" : trained ? "Train again" : "Train");
    this.train.classList.toggle("primary", !trained?.running);
    say(this.types, app.types?.running ? "Predicting …" : "Predict by types");
    const told = app.learning.sentences;
    const status = !trained
      ? "Not trained yet. Its loss will stream onto the race, and its gates will fill in here."
      : trained.running ? `Training: ${percent(trained.share)} done.`
      : trained.stale ? "Trained on another state: train again to compare." : told[0] ?? "Trained.";
    say(this.status, status);
    this.element.classList.toggle("old", !!trained?.stale);
    const lines = [...(trained && !trained.running ? told.slice(1) : []), ...(app.types?.sentences ?? [])];
    if (this.told.dataset.text !== JSON.stringify(lines)) {
      this.told.dataset.text = JSON.stringify(lines);
      this.told.replaceChildren(...lines.map((line) => h("p", {}, line)));
    }
    this.setTime(app.time);
  }

  /** Show the gates at a time, or at the nearest recorded moment. @param {number} time */
  setTime(time) {
    const { trained, types } = this.app;
    const all = trained?.gates ?? [];
    const at = trained?.running ? all.length - 1 : nearest(all.map((one) => one.time), time);
    const record = all[at];
    say(this.mapTitle, record ? `Its gates at t = ${moment(record.time, trained?.running ? record.time : time)}` : "Its gates");
    const drawn = record ? `${at} ${record.time} ${all.length}` : `none ${this.app.data?.samples}`;
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.#leftOut(record);
      this.map.replaceChildren(record ? gateMap(record.patterns, "Activity patterns of the network, strongest first") : emptyMap(this.app.data?.samples ?? 4));
    }
    this.#types(time, types);
  }

  /** Say how many patterns are not shown. @param {import("./types.js").Gates | undefined} record */
  #leftOut(record) {
    const all = record?.patterns.length ?? 0;
    this.rest.hidden = all <= ROWS;
    if (!record || all <= ROWS) return;
    const shares = record.patterns.slice(0, ROWS).reduce((sum, { share }) => sum + share, 0);
    say(this.rest, `The strongest ${ROWS} of ${record.rest > 0 ? `more than ${all}` : all} patterns; the others hold ${percent(Math.max(0, 1 - shares))} of the weights.`);
  }

  /** @param {number} time @param {any} types */
  #types(time, types) {
    const there = !!types?.moments?.length;
    this.typesTitle.hidden = this.typesMap.hidden = this.typesNote.hidden = !there;
    if (!there) return;
    const at = nearest(types.moments, time);
    say(this.typesTitle, `Types of neurons at t = ${moment(types.moments[at], time)}`);
    const drawn = `${at} ${types.moments.length}`;
    if (drawn === this.drawnTypes) return;
    this.drawnTypes = drawn;
    say(this.typesNote, `A type stands for its images under the symmetries of the task too.${types.types.length > ROWS ? ` The first ${ROWS} of ${types.types.length} types are drawn.` : ""}`);
    const rows = types.types.map((/** @type {any} */ one) => ({ states: one.states[at], share: one.share[at], neurons: one.neurons }));
    this.typesMap.replaceChildren(gateMap(rows, "Types of neurons and their gates"));
  }
}

/** The index of the time that is nearest to another one. @param {number[]} times increasing @param {number} time */
function nearest(times, time) {
  let at = 0;
  while (at + 1 < times.length && times[at + 1] - time < time - times[at]) at++;
  return at;
}

/** A recorded moment, which is told from the time that is shown. @param {number} recorded @param {number} time */
const moment = (recorded, time) => (shown(recorded) === shown(time) ? shown(time) : `${shown(recorded)}, the nearest recorded moment`);

/** One state of a gate, for the key. @param {string} state */
const key = (state) => s("svg", { class: "key-cell", viewBox: "0 0 10 10", "aria-hidden": "true" }, ...cellsOf([{ states: state }], 1));

/** @param {{ states: string }[]} rows @param {number} samples */
function cellsOf(rows, samples) {
  /** @type {Record<string, string>} */
  const paths = { 1: "", 2: "", 3: "" };
  rows.forEach(({ states }, j) =>
    [...states].forEach((state, i) => {
      if (state === "1") paths[1] += `M${i * 10} ${j * 10}h10v10h-10z`;
      if (state === "2") paths[2] += `M${i * 10} ${j * 10 + 10}l10 -10v10z`;
      paths[3] += `M${i * 10 + 0.25} ${j * 10 + 0.25}h9.5v9.5h-9.5z`;
    })
  );
  return [
    s("rect", { class: "off", width: samples * 10, height: rows.length * 10 }),
    s("path", { class: "on", d: paths[1] }),
    s("path", { class: "slides", d: paths[2] }),
    s("path", { class: "lines", d: paths[3] }),
  ];
}

/**
 * Patterns as rows, with a bar for the share of each.
 * @param {{ states: string, share: number, neurons?: number }[]} patterns
 * @param {string} label
 */
export function gateMap(patterns, label) {
  const rows = patterns.slice(0, ROWS);
  const samples = rows[0]?.states.length ?? 1;
  const words = rows.map(({ states, share }, i) => `${i + 1}: ${percent(share)}, on for ${[...states].filter((state) => state === "1").length} of ${samples}, sliding on ${[...states].filter((state) => state === "2").length}`);
  const cells = s("svg", { class: "cells", viewBox: `0 0 ${samples * 10} ${rows.length * 10}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}. ${words.join("; ")}` }, ...cellsOf(rows, samples));
  const bars = h(
    "ol",
    { class: "bars", "aria-hidden": "true" },
    ...rows.map(({ share, neurons }) => {
      const bar = h("span", { class: "bar" });
      bar.style.width = `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%`;
      return h("li", { title: neurons === undefined ? "" : `${neurons} neurons` }, bar, h("span", { class: "value" }, percent(share)));
    })
  );
  const made = h("div", { class: "map" }, cells, bars);
  made.style.setProperty("--count", String(rows.length));
  return made;
}

/** A map with nothing in it yet. @param {number} samples */
function emptyMap(samples) {
  const made = gateMap(Array.from({ length: 4 }, () => ({ states: "0".repeat(samples), share: 0 })), "No gates yet");
  made.classList.add("empty");
  return made;
}
