// The numbers of a state that can be moved: where they stand, what they are called, and how far they go. Sliders
// and the axes of phase diagrams share them.
// @ts-check
import { inputsOf } from "./columns.js";
import { get } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Param} Param */
/** @typedef {import("./types.js").State} State */
/** @typedef {Param & { place: string, log?: boolean }} Knob a parameter, and its dotted place in the state */

/** What every network has, whatever the task. Bounds are those of the sliders; fields take more. */
const NETWORK = /** @type {Knob[]} */ ([
  { place: "network.widths", label: "Neurons", kind: "integer", min: 4, max: 512, step: 4, default: 100, about: "hidden neurons of the ReLU network" },
  { place: "network.scale", label: "Initial σ", kind: "number", min: 1e-6, max: 0.1, default: 1e-3, log: true, about: "standard deviation of the initial weights" },
  { place: "contest.start", label: "Start", kind: "number", min: 1e-4, max: 0.5, default: 0.05, log: true, about: "strength of every edge when the race begins" },
  { place: "contest.criterion", label: "Criterion", kind: "number", min: 0.01, max: 1, step: 0.01, default: 0.2, about: "the loss that counts as learned" },
]);

/** The criterion where it is a share. */
const RELATIVE = { max: 0.99, about: "the share of the initial loss that counts as learned" };

/** The factor of an input column: from none of it to twice as much; 1 leaves it as it is. */
const FACTOR = /** @type {const} */ ({ kind: "number", min: 0, max: 2, step: 0.02, default: 1 });

/** Whether the race has a start of its own, so that it does not depend on σ. @param {State} state */
export const isStarted = (state) => typeof state.contest?.start === "number";

/** Numbers of the network and of the contest. @param {App} app @returns {Knob[]} */
export function networkKnobs({ store: { state } }) {
  const criterion = (/** @type {Knob} */ knob) => (state.contest?.relative && knob.place === "contest.criterion" ? { ...knob, ...RELATIVE } : knob);
  return NETWORK.filter(({ place }) => place !== "contest.start" || isStarted(state)).map(criterion);
}

/** What the task can be given: parameters of a builtin one; those of a study; the scale of every input column. @param {App} app @returns {Knob[]} */
export function taskKnobs(app) {
  const { state } = app.store;
  const builtin = app.info?.tasks.find((one) => one.name === state.task.builtin);
  const every = (builtin?.parameters ?? []).map((param) => ({ ...param, place: `task.parameters.${param.name}` }));
  const found = every.filter(({ place }) => !isOfList(place) || get(state, place.split(".")) !== undefined);
  if (!builtin) found.push(...parametersOf(app), ...[...inputsOf(state.task), ...Object.keys(state.task.groups ?? {})].filter(isPlain).map(factor));
  const own = diagramKnob(app, found);
  if (own && !found.some(({ place }) => place === own.place)) found.push(own);
  return found;
}

/** The number that the study's own phase diagram varies, over its range. @param {App} app @param {Knob[]} known @returns {Knob | null} */
export function diagramKnob({ store: { state } }, known) {
  const { key, values, name } = state.phase_diagram ?? {};
  const listed = Array.isArray(values) ? values : [values?.start, values?.stop];
  const [min, max] = [Math.min(...listed), Math.max(...listed)];
  if (typeof key !== "string" || !(min < max)) return null;
  const knob = known.find(({ place }) => place === key);
  if (knob) return { ...knob, min, max, log: !!values.log };
  const label = typeof name === "string" ? name : key.split(".").at(-1) ?? key;
  return { name: key, place: key, label, kind: "number", min, max, step: (max - min) / 100, log: !!values.log, about: `varied by the study: ${key}` };
}

/** Whether a place is that of one of several numbers. @param {string} place */
export const isOfList = (place) => /\.\d+$/.test(place);

/** Whether a column can be part of a dotted place. @param {string} name */
const isPlain = (name) => name !== "" && !name.includes(".");

/** @param {string} column @returns {Knob} */
const factor = (column) => ({ ...FACTOR, name: column, place: `task.scale.${column}`, label: `scale of ${column}`, about: "a factor of this input column; 0 takes it away" });

/** Numbers among the parameters of a study's own task: up to twice what the study says. @param {App} app @returns {Knob[]} */
function parametersOf({ info, store: { state } }) {
  /** @type {Record<string, unknown>} */
  const values = state.task.parameters ?? {};
  return Object.entries(values).filter(([name]) => isPlain(name)).flatMap(([name, now]) => {
    const first = get(info?.state, ["task", "parameters", name]) ?? now; // the range stays where it is while the number moves
    if (typeof first !== "number" || typeof now !== "number") return [];
    const whole = Number.isInteger(first);
    const [min, max] = first === 0 ? [-1, 1] : [Math.min(0, 2 * first), Math.max(0, 2 * first)];
    const about = "a parameter of the study's task";
    return [{ name, place: `task.parameters.${name}`, label: name.replaceAll("_", " "), kind: /** @type {Param["kind"]} */ (whole ? "integer" : "number"), min: whole && first > 0 ? 1 : min, max, step: whole ? 1 : (max - min) / 100, default: first, about }];
  });
}
