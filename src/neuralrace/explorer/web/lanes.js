// The race itself: one lane per candidate. How far a runner is says how much of the way to the
// criterion its loss has come down; the finish is the criterion.
// @ts-check
import { h, keepFocus, s, say, shown } from "./dom.js";
import { valueAt } from "./chart.js";

/**
 * @typedef {object} Lane
 * @property {string} name
 * @property {string} hue class with its colour
 * @property {ArrayLike<number>} time
 * @property {ArrayLike<number | null>} loss
 * @property {number | null} arrives when it reaches the criterion
 * @property {boolean} first whether it wins
 * @property {boolean} kind whether it is a trained network, which is drawn solid
 * @property {"kept" | "outrun" | "not reached" | "not kept" | "unknown"} [standing] what a ReLU network would do with its gates
 * @property {string} [place] first, or how much later it is, in words
 * @property {boolean} [chosen] whether it is the one that is edited
 */

/** A mark after the name, where a ReLU network would do something else. @param {Lane["standing"]} standing */
function mark(standing) {
  if (standing === "not kept") return h("span", { class: "doubted", title: "A ReLU network would not keep its gates." }, "⚠", h("span", { class: "aside" }, " not kept"));
  if (standing === "outrun") return h("span", { class: "doubted", title: "A ReLU network could keep its gates, but the aligned gates are faster." }, "»", h("span", { class: "aside" }, " outrun"));
  if (standing === "not reached") return h("span", { class: "doubted", title: "A ReLU network could keep its gates, but its neurons align to others first." }, "⚠", h("span", { class: "aside" }, " not reached"));
  return null;
}

export class Lanes {
  /** @param {(name: string) => void} choose called with the name of a lane */
  constructor(choose) {
    this.choose = choose;
    /** @type {Lane[]} */
    this.lanes = [];
    this.criterion = 0;
    /** @type {{ runner: SVGElement, trail: SVGElement, text: HTMLElement, dot: HTMLElement, later: HTMLElement, row: HTMLElement }[]} */
    this.rows = [];
    this.shape = "";
    this.element = h("ol", { class: "lanes", "aria-label": "The race: one lane per candidate" });
  }

  /** @param {Lane[]} lanes @param {number} criterion */
  show(lanes, criterion) {
    this.lanes = lanes;
    this.criterion = criterion;
    const shape = JSON.stringify(lanes.map(({ time, loss, arrives, place, ...rest }) => rest));
    if (shape !== this.shape) this.#make(shape);
  }

  /** @param {string} shape */
  #make(shape) {
    this.shape = shape;
    this.rows = this.lanes.map((lane) => {
      const runner = s("circle", { class: lane.kind ? "runner solid" : "runner", r: 5, cy: 9 });
      const trail = s("rect", { class: "trail", x: 0, y: 7.5, height: 3 });
      const text = h("span");
      const dot = h("span", { class: "dot" });
      const later = h("span", { class: "later" });
      const row = h(
        "li",
        { class: `${lane.hue}${lane.chosen ? " chosen" : ""}${lane.first ? " first" : ""}` },
        h(
          "button",
          { type: "button", class: "who", title: lane.kind ? lane.name : `Edit the gates of ${lane.name}`, "aria-pressed": lane.kind ? null : String(!!lane.chosen), onclick: () => this.choose(lane.name) },
          h("span", { class: "chip", "aria-hidden": "true" }),
          h("span", { class: "name" }, lane.name),
          mark(lane.standing)
        ),
        s("svg", { class: "track", "aria-hidden": "true", height: 18 }, s("line", { class: "ground", x1: "0", x2: "100%", y1: 9, y2: 9 }), trail, s("line", { class: "finish", x1: "100%", x2: "100%", y1: 0, y2: 18 }), runner),
        h("span", { class: "when" }, text, dot, later)
      );
      return { runner, trail, text, dot, later, row };
    });
    const name = this.element.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const again = () => [...this.element.querySelectorAll("button")].find((who) => who.textContent === name);
    keepFocus(this.element, () => this.element.replaceChildren(...this.rows.map(({ row }) => row)), again);
  }

  /** @param {number} time */
  setTime(time) {
    this.lanes.forEach((lane, i) => {
      const start = lane.loss[0] ?? 1;
      const now = valueAt(lane.time, lane.loss, time) ?? start;
      const share = Math.max(0, Math.min(1, (start - now) / Math.max(1e-300, start - this.criterion)));
      const arrived = lane.arrives !== null && time >= lane.arrives * (1 - 1e-9);
      const row = this.rows[i];
      const at = `${((arrived ? 1 : Math.min(share, 0.999)) * 100).toFixed(2)}%`;
      row.runner.setAttribute("cx", at);
      row.trail.setAttribute("width", at);
      row.row.classList.toggle("arrived", arrived);
      const place = lane.place ?? "";
      say(row.text, lane.arrives === null ? place || "never" : `t = ${shown(lane.arrives, 4)}`);
      say(row.dot, lane.arrives !== null && place ? " · " : "");
      say(row.later, lane.arrives === null ? "" : place);
    });
  }
}
