// A gate strip: one cell per sample, on or off, painted with the mouse, a finger or the keyboard.
// @ts-check
import { h, ranges, s, say, unique } from "./dom.js";
import { same } from "./store.js";

/** Height of a strip in units of its drawing; a sample is 10 wide. */
const CELL = 10;
const HEIGHT = 16;

/** Samples up to which doubted gates are crossed, and not struck through once. */
const CROSSES = 16;

/**
 * @typedef {object} StripOptions
 * @property {string} name of the pathway
 * @property {string} hue class with its colour
 * @property {(gates: number[], done: boolean) => void} [paint] called while and after painting
 * @property {(sample: number | null) => void} [point] called with the sample under the pointer
 * @property {(sample: number) => number[]} together the samples that switch together with one
 * @property {(sample: number) => string} named what a sample is, in words
 */

/** The cells of a strip as one path. @param {number[]} gates @param {(gate: number) => boolean} which */
function cells(gates, which) {
  let d = "";
  for (let i = 0; i < gates.length; ) {
    let j = i;
    while (j < gates.length && which(gates[j])) j++;
    if (j > i) d += `M${i * CELL} 0h${(j - i) * CELL}v${HEIGHT}h${(i - j) * CELL}z`;
    i = Math.max(j, i + 1);
  }
  return d;
}

/**
 * A drawing of gates, not editable: dark where on, empty where off, hatched between.
 * @param {number[]} gates
 * @param {string} hue
 */
export function drawnStrip(gates, hue) {
  const wide = gates.length * CELL;
  const partly = gates.map((gate, i) => ({ gate, i })).filter(({ gate }) => gate > 0 && gate < 1);
  return s(
    "g",
    { class: hue },
    s("rect", { class: "off", width: wide, height: HEIGHT }),
    s("path", { class: "on", d: cells(gates, (gate) => gate >= 1) }),
    ...partly.map(({ gate, i }) =>
      s("rect", { class: "partly", x: i * CELL, y: HEIGHT * (1 - gate), width: CELL, height: HEIGHT * gate })
    )
  );
}

export class Strip {
  /** @param {StripOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {number[]} */
    this.gates = [];
    /** @type {boolean[]} samples on which a ReLU network would not keep the gate */
    this.doubts = [];
    this.at = 0;
    /** @type {{ value: number, seen: Set<number> } | null} */
    this.painting = null;
    const help = unique("help");
    this.drawing = s("svg", { class: "strip-cells", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.now = h("span", { class: "aside", "aria-live": "polite" });
    this.element = h(
      "div",
      { class: `strip ${options.hue}`, role: "group", tabindex: "0", "aria-roledescription": "gate strip", "aria-describedby": help },
      this.drawing,
      this.now,
      h("span", { class: "aside", id: help }, "Arrow keys move along the samples, the space bar switches the gate, A switches all.")
    );
    this.element.addEventListener("pointerdown", (event) => this.#down(event));
    this.element.addEventListener("pointermove", (event) => this.#move(event));
    this.element.addEventListener("pointerup", () => this.#up());
    this.element.addEventListener("pointercancel", () => this.#up());
    this.element.addEventListener("pointerleave", () => this.options.point?.(null));
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focus", () => this.draw());
    this.element.addEventListener("blur", () => this.draw());
  }

  /** @param {number[]} gates @param {boolean[]} [doubts] */
  show(gates, doubts = []) {
    if (this.painting || (same(gates, this.gates) && same(doubts, this.doubts))) return;
    this.gates = gates;
    this.doubts = doubts;
    this.at = Math.min(this.at, Math.max(0, gates.length - 1));
    this.draw();
  }

  draw() {
    const { gates, drawing } = this;
    const wide = gates.length * CELL;
    drawing.setAttribute("viewBox", `0 0 ${wide} ${HEIGHT}`);
    const cross = gates.length <= CROSSES ? `m0 ${6 - HEIGHT}l${3 - CELL} ${HEIGHT - 6}` : ""; // one stroke where cells are narrow
    const doubt = this.doubts.map((yes, i) => (yes ? `M${i * CELL + 1.5} 3l${CELL - 3} ${HEIGHT - 6}${cross}` : "")).join("");
    const lines = gates.length <= 64 ? gates.map((_, i) => (i ? `M${i * CELL} 0v${HEIGHT}` : "")).join("") : "";
    const focused = this.element.ownerDocument.activeElement === this.element;
    drawing.replaceChildren(
      drawnStrip(gates, this.options.hue),
      s("path", { class: "lines", d: lines }),
      s("path", { class: "doubt halo", d: doubt }),
      s("path", { class: "doubt", d: doubt }),
      ...(focused ? [s("rect", { class: "cursor", x: this.at * CELL, width: CELL, height: HEIGHT })] : [])
    );
    const on = gates.map((gate, i) => (gate > 0 ? i + 1 : 0)).filter(Boolean);
    const where = on.length === gates.length ? "all samples" : on.length > 1 ? `samples ${ranges(on)}` : on.length ? `sample ${on[0]}` : "no sample";
    this.element.setAttribute("aria-label", `Gates of ${this.options.name}: on for ${where}`);
  }

  /** The sample at a place of the page. @param {PointerEvent} event */
  #sample(event) {
    const { left, width } = this.drawing.getBoundingClientRect();
    const at = Math.floor(((event.clientX - left) / width) * this.gates.length);
    return Math.max(0, Math.min(this.gates.length - 1, at));
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0 || !this.gates.length || !this.options.paint) return;
    this.element.setPointerCapture(event.pointerId);
    const sample = this.#sample(event);
    this.painting = { value: this.gates[sample] > 0 ? 0 : 1, seen: new Set() };
    this.#touch(sample);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (!this.gates.length) return;
    const sample = this.#sample(event);
    this.options.point?.(sample);
    if (this.painting && !this.painting.seen.has(sample)) this.#touch(sample);
  }

  #up() {
    if (!this.painting) return;
    this.painting = null;
    this.options.paint?.(this.gates, true);
  }

  /** @param {number} sample */
  #touch(sample) {
    if (!this.painting) return;
    const value = this.painting.value;
    this.painting.seen.add(sample);
    this.at = sample;
    const gates = [...this.gates];
    for (const other of this.options.together(sample)) gates[other] = value;
    this.gates = gates;
    this.draw();
    this.options.point?.(sample);
    this.options.paint?.(gates, false);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.gates.length - 1;
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last, PageUp: this.at - 10, PageDown: this.at + 10 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in places) {
      this.at = Math.max(0, Math.min(last, places[event.key]));
      this.options.point?.(this.at);
    } else if (event.key === " " && this.options.paint) {
      const value = this.gates[this.at] > 0 ? 0 : 1;
      const gates = [...this.gates];
      for (const other of this.options.together(this.at)) gates[other] = value;
      this.gates = gates;
      this.options.paint(gates, true);
    } else if ((event.key === "a" || event.key === "A") && this.options.paint) {
      const value = this.gates.every((gate) => gate > 0) ? 0 : 1;
      this.gates = this.gates.map(() => value);
      this.options.paint(this.gates, true);
    } else return;
    event.preventDefault();
    this.draw();
    say(this.now, `${this.options.named(this.at)}: ${this.gates[this.at] > 0 ? "on" : "off"}`);
  }
}
