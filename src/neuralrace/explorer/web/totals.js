// How many neurons each candidate has: with random weights more of them start ahead, so that a race is fair at
// equal totals only.
// @ts-check
import { button, h, listed, say } from "./dom.js";
import { isStarted } from "./knobs.js";
import { set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Gating} Gating */
/** @typedef {{ name: string, total: number, pathways: string[] }} Total */

export class Totals {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.text = h("span", {});
    this.fix = button("", () => this.#equal(), { class: "quiet" });
    this.element = h("p", { class: "caption totals", role: "status", hidden: true }, this.text, " ", this.fix);
  }

  /** The totals of all candidates in the race. @returns {Total[]} */
  get #totals() {
    return Object.entries(this.app.predicted?.gatings ?? {}).map(([name, { pathways }]) => ({
      name, total: pathways.reduce((sum, { width }) => sum + width, 0), pathways: pathways.map((pathway) => pathway.name),
    }));
  }

  /** Neurons of the network that is trained. */
  get #neurons() {
    const widths = this.app.store.state.network?.widths ?? 100;
    return Number(Array.isArray(widths) ? widths[0] : widths);
  }

  update() {
    const totals = this.#totals;
    const sizes = totals.map(({ total }) => total);
    const rounding = Math.max(...totals.map(({ pathways }) => pathways.length)); // less than a neuron per pathway
    this.element.hidden = isStarted(this.app.store.state) || totals.length < 2 || Math.max(...sizes) - Math.min(...sizes) <= rounding;
    if (this.element.hidden) return;
    say(this.text, `Unequal numbers of neurons (${listed(totals.map(({ name, total }) => `${name} ${total}`))}): more neurons start ahead. Compare at equal total width.`);
    say(this.fix, `Give each ${this.#neurons}`);
    this.fix.hidden = !totals.every(({ name }) => isWide(this.app.store.state.gatings?.[name]));
  }

  /** All candidates with as many neurons as the network that is trained, in one step. */
  #equal() {
    const totals = this.#totals;
    const neurons = this.#neurons;
    this.app.store.change((state) => totals.reduce((made, one) => set(made, ["gatings", one.name], widened(state.gatings?.[one.name] ?? {}, one, neurons)), state));
  }
}

/** Whether the widths of a gating can be set. @param {Gating | undefined} gating */
const isWide = (gating) => !!(gating?.masks || gating?.each || gating?.builtin);

/** A gating with so many neurons in all. @param {Gating} gating @param {Total} now @param {number} neurons @returns {Gating} */
function widened(gating, { pathways }, neurons) {
  const each = Math.max(1, Math.floor(neurons / pathways.length));
  if (gating.builtin) {
    const wide = gating.parameters && "total" in gating.parameters ? { total: neurons } : { hidden: Math.max(1, Math.round(neurons / pathways.length)) };
    return { ...gating, parameters: { ...gating.parameters, ...wide } };
  }
  const more = Math.max(0, neurons - each * pathways.length); // the first pathways take what is left over
  return { ...gating, hidden: Object.fromEntries(pathways.map((name, i) => [name, each + (i < more ? 1 : 0)])) };
}
