// Curves over time with uPlot: drag to zoom, click to move the time, hide curves by their names.
// @ts-check
import { h, keepFocus, perFrame, s, shown, styleOf } from "./dom.js";

/**
 * @typedef {object} Curve
 * @property {string} name as the legend has it
 * @property {ArrayLike<number>} x
 * @property {ArrayLike<number | null>} y
 * @property {string} colour name of a colour of the style sheet, such as "--hue0"
 * @property {number[]} [dash]
 * @property {number} [width]
 * @property {number} [faint] opacity, 1 if missing
 * @property {string} [about] what it is, where the name does not say it
 * @property {boolean} [unlisted] whether the legend leaves it out (further seeds)
 */

/**
 * @typedef {object} Drawn
 * @property {Curve[]} curves
 * @property {[number, number]} [range] of x; that of the curves if missing
 * @property {number | null} [line] a height to mark, such as the criterion
 * @property {string} [lineName]
 * @property {string} [lineShort] its name where there is little room
 * @property {{ x: number, name: string }[]} [uprights] places on the axis below to mark, such as a crossover
 */

/** Powers of ten between two positive ends; where there are few, 2 and 5 times them too. @param {number} low @param {number} high */
function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 5));
  /** @type {number[]} */
  const found = [];
  for (let n = first; n <= last; n += step) found.push(Number(`1e${n}`));
  if (found.length > 2) return found;
  const finer = [];
  for (let n = first - 1; n <= last; n++) for (const m of [1, 2, 5]) finer.push(Number(`${m}e${n}`));
  const inside = finer.filter((v) => v >= low && v <= high);
  return inside.length > 2 || !(high > low) ? inside : even(low, high);
}

/** Evenly spaced round numbers between two ends. @param {number} low @param {number} high */
function even(low, high) {
  const size = 10 ** Math.floor(Math.log10(high - low));
  const step = [0.2, 0.5, 1, 2, 5].map((m) => m * size).find((one) => (high - low) / one <= 5) ?? size;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

/** Numbers on an axis, with as many digits as tell them apart. @param {(number | null)[]} values */
function apart(values) {
  const there = values.filter((value) => value !== null);
  let digits = 4;
  while (digits < 12 && new Set(there.map((value) => shown(value, digits))).size < there.length) digits++;
  return values.map((value) => (value === null ? "" : shown(value, digits)));
}

export class Chart {
  /**
   * @param {any} uPlot the library
   * @param {object} options
   * @param {HTMLElement} options.root which has the colours
   * @param {string} options.ylabel
   * @param {string} [options.xlabel]
   * @param {boolean} [options.xlog] whether the axis below is logarithmic
   * @param {string} options.what what the chart shows, for those who cannot see it
   * @param {(time: number) => void} options.seek called when a time is clicked
   * @param {(range: [number, number] | null) => void} options.zoom called when a range was dragged
   */
  constructor(uPlot, options) {
    this.uPlot = uPlot;
    this.options = options;
    this.log = false;
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** @type {Drawn} */
    this.drawn = { curves: [] };
    /** @type {[number, number] | null} */
    this.zoomed = null;
    this.time = 0;
    /** @type {any} */
    this.plot = null;
    this.shape = "";
    /** @type {any[]} what was drawn last */
    this.content = [];
    [this.family, this.soft, this.paper] = ["sans-serif", "grey", "white"];
    this.room = { width: 0, height: 0 }; // known without asking for the layout
    this.head = h("div", { class: "playhead" });
    this.place = h("div", { class: "chart", role: "img", "aria-label": options.what, title: "Drag to zoom; click to go there; click twice for the whole range" });
    this.legend = h("ul", { class: "legend" });
    this.element = h("figure", { class: "curves" }, this.place, this.legend);
    this.redraw = perFrame(() => this.#draw());
    this.watch = new ResizeObserver(([entry]) => this.#resized(entry.contentRect));
    this.watch.observe(this.place);
  }

  destroy() {
    this.watch.disconnect();
    this.plot?.destroy();
  }

  /** @param {Drawn} drawn */
  show(drawn) {
    this.drawn = drawn;
    this.place.setAttribute("aria-label", [this.options.what, drawn.lineName].filter(Boolean).join("; "));
    this.#draw();
  }

  /** @param {boolean} log */
  setLog(log) {
    if (log === this.log) return;
    this.log = log;
    this.shape = "";
    this.redraw();
  }

  /** Colours have changed. */
  restyle() {
    this.shape = "";
    this.redraw();
  }

  /** @param {[number, number] | null} range */
  setZoom(range) {
    this.zoomed = range;
    this.redraw();
  }

  /** @param {number} time */
  setTime(time) {
    this.time = time;
    this.#moveHead();
  }

  #moveHead() {
    if (!this.plot) return;
    const at = this.plot.valToPos(this.time, "x");
    const out = !Number.isFinite(at) || at < -1 || at > this.plot.bbox.width / devicePixelRatio + 1;
    this.head.hidden = out;
    if (!out) this.head.style.transform = `translateX(${at.toFixed(1)}px)`;
  }

  #size() {
    return { width: Math.max(200, this.room.width), height: Math.max(90, this.room.height) };
  }

  /** @param {DOMRectReadOnly} room */
  #resized(room) {
    this.room = { width: Math.round(room.width), height: Math.round(room.height) };
    if (!this.plot) return this.redraw();
    const size = this.#size();
    if (size.width !== this.plot.width || size.height !== this.plot.height) this.plot.setSize(size);
    this.#moveHead();
    this.redraw(); // what came while there was no room
  }

  get #whole() {
    if (this.drawn.range) return this.drawn.range;
    let low = Infinity;
    let high = -Infinity;
    for (const { x } of this.drawn.curves)
      if (x.length) {
        low = Math.min(low, x[0]);
        high = Math.max(high, x[x.length - 1]);
      }
    return /** @type {[number, number]} */ (low < high ? [low, high] : [0, 1]);
  }

  #draw() {
    const { curves, range, line } = this.drawn;
    const content = [this.log, this.zoomed, range?.[0], range?.[1], line, this.shape, this.hidden.size, ...curves.flatMap(({ y, name }) => [y, y.length, name])];
    if (this.shape && content.length === this.content.length && content.every((part, i) => part === this.content[i])) return;
    if (!this.room.width) return;
    const positive = (/** @type {number | null} */ y) => (y === null || (this.log && y <= 0) ? null : y);
    const tables = curves.map(({ x, y }) => [x, this.log ? Array.from(y, positive) : y]);
    const columns = tables.length ? this.uPlot.join(tables) : [[0, 1]];
    const shape = JSON.stringify([curves.map(({ x, y, ...look }) => look), this.log, [...this.hidden], this.drawn.lineName]);
    if (this.plot && shape === this.shape) this.plot.setData(columns);
    else this.#make(columns, shape);
    content[5] = this.shape;
    this.content = content;
    this.#moveHead();
  }

  /** @param {any} columns @param {string} shape */
  #make(columns, shape) {
    this.shape = shape;
    this.plot?.destroy();
    const { root, ylabel, xlabel = "time", xlog = false } = this.options;
    this.family = getComputedStyle(root).fontFamily;
    const font = `12px ${this.family}`;
    const soft = styleOf(root, "--soft");
    this.soft = soft;
    this.paper = styleOf(root, "--paper");
    const faint = styleOf(root, "--faint");
    const axis = (/** @type {string} */ label) => ({
      label, font, labelFont: font, labelSize: 18, labelGap: 0, stroke: soft, gap: 4,
      grid: { stroke: faint, width: 1 }, ticks: { show: false },
      values: (/** @type {any} */ _, /** @type {number[]} */ splits) => apart(splits),
    });
    const yaxis = { ...axis(ylabel), size: 46, space: 24 };
    const xaxis = { ...axis(xlabel), size: 22 };
    for (const [log, one] of /** @type {const} */ ([[this.log, yaxis], [xlog, xaxis]])) if (log) Object.assign(one, { splits: (/** @type {any} */ _u, /** @type {any} */ _i, /** @type {number} */ a, /** @type {number} */ b) => decades(a, b), filter: (/** @type {any} */ _u, /** @type {any} */ all) => all });
    const room = (/** @type {number} */ a, /** @type {number} */ b) => (b > a ? (b / a) ** 0.04 : 2);
    const least = (/** @type {any} */ _, /** @type {number | null} */ low, /** @type {number} */ high) => {
      if (low === null) return this.log ? [0.1, 1] : [0, 1];
      if (this.log) return [low / room(low, high), high * room(low, high)];
      const top = high > low ? high + 0.06 * (high - low) : high + 1;
      return [low >= 0 ? 0 : low - 0.06 * (high - low), top];
    };
    this.plot = new this.uPlot(
      {
        ...this.#size(), padding: [8, 12, 0, 0], legend: { show: false },
        series: [{}, ...this.drawn.curves.map((curve) => this.#series(curve))],
        scales: { x: { time: false, distr: xlog ? 3 : 1, range: () => this.zoomed ?? this.#whole }, y: { distr: this.log ? 3 : 1, range: least } },
        axes: [xaxis, yaxis],
        cursor: { drag: { x: true, y: false, dist: 6, setScale: false }, y: false, points: { size: 6 } },
        hooks: {
          setCursor: [(/** @type {any} */ u) => this.#read(u)],
          setSelect: [(/** @type {any} */ u) => this.#selected(u)],
          draw: [(/** @type {any} */ u) => this.#marks(u), () => this.#moveHead()],
        },
      },
      columns,
      this.place
    );
    const over = this.plot.over;
    over.append(this.head);
    let from = 0;
    over.addEventListener("mousedown", (/** @type {MouseEvent} */ event) => (from = event.clientX));
    over.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      if (Math.abs(event.clientX - from) > 5) return;
      this.options.seek(this.plot.posToVal(event.clientX - over.getBoundingClientRect().left, "x"));
    });
    over.addEventListener("dblclick", () => this.options.zoom(null));
    this.#list();
  }

  /** @param {Curve} curve */
  #series(curve) {
    const stroke = styleOf(this.options.root, curve.colour);
    return {
      show: !this.hidden.has(curve.name), stroke, width: curve.width ?? 2, dash: curve.dash,
      alpha: curve.faint ?? 1, points: { show: false }, spanGaps: true, label: curve.name,
    };
  }

  #list() {
    const listed = this.drawn.curves.filter((curve) => !curve.unlisted);
    const name = this.legend.contains(document.activeElement) ? document.activeElement?.querySelector("output")?.dataset.name : undefined;
    const again = () => [...this.legend.querySelectorAll("button")].find((one) => one.querySelector("output")?.dataset.name === name);
    const items = listed.map((curve) => {
        const line = s("line", { x1: 1, x2: 31, y1: 5, y2: 5, "stroke-width": curve.width ?? 2, "stroke-dasharray": curve.dash?.join(" ") });
        line.style.stroke = `var(${curve.colour})`;
        const toggle = h(
          "button",
          {
            type: "button", "aria-pressed": String(!this.hidden.has(curve.name)), title: [curve.about, "Show or hide this curve."].filter(Boolean).join(" "),
            onclick: () => {
              if (!this.hidden.delete(curve.name)) this.hidden.add(curve.name);
              this.redraw();
            },
          },
          s("svg", { viewBox: "0 0 32 10", "aria-hidden": "true" }, line),
          h("span", {}, curve.name),
          h("output", { "data-name": curve.name })
        );
        return h("li", {}, toggle);
      });
    keepFocus(this.legend, () => this.legend.replaceChildren(...items), again);
  }

  /** @param {any} u */
  #read(u) {
    const index = u.cursor.idx;
    for (const output of this.legend.querySelectorAll("output")) {
      const k = this.drawn.curves.findIndex((curve) => curve.name === output.dataset.name);
      const value = index === null || index === undefined || k < 0 ? null : nearest(u.data[k + 1], index);
      output.textContent = value === null ? "" : shown(value, 3);
    }
  }

  /** @param {any} u */
  #selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    const range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.options.zoom(/** @type {[number, number]} */ (range));
  }

  /** Marked heights and places. @param {any} u */
  #marks(u) {
    const { line, lineName = "", lineShort = lineName, uprights = [] } = this.drawn;
    const { left, top, width, height } = u.bbox;
    const pen = u.ctx;
    const unit = devicePixelRatio;
    pen.save();
    pen.strokeStyle = pen.fillStyle = this.soft;
    pen.lineWidth = unit;
    pen.setLineDash([]);
    pen.font = `${11 * unit}px ${this.family}`;
    pen.textBaseline = "alphabetic"; // the axes leave another one behind
    const rule = (/** @type {number[]} */ ends, /** @type {string} */ name, /** @type {"left" | "right"} */ side, /** @type {number} */ x, /** @type {number} */ y) => {
      pen.beginPath();
      pen.moveTo(ends[0], ends[1]);
      pen.lineTo(ends[2], ends[3]);
      pen.stroke();
      pen.textAlign = side;
      pen.save(); // curves do not cross the words
      pen.strokeStyle = this.paper;
      pen.lineWidth = 4 * unit;
      pen.lineJoin = "round";
      pen.strokeText(name, x, y);
      pen.restore();
      pen.fillText(name, x, y);
    };
    const y = line === null || line === undefined || (this.log && line <= 0) ? NaN : u.valToPos(line, "y", true);
    if (y >= top && y <= top + height) rule([left, y, left + width, y], pen.measureText(lineName).width > 0.5 * width ? lineShort : lineName, "right", left + width - 4 * unit, y - 4 * unit);
    for (const { x, name } of uprights) {
      const at = u.valToPos(x, "x", true);
      if (at >= left && at <= left + width) rule([at, top, at, top + height], name, "left", at + 4 * unit, top + 11 * unit);
    }
    pen.restore();
  }
}

/** The value at an index or the nearest one that there is. @param {ArrayLike<number | null | undefined>} values @param {number} index */
function nearest(values, index) {
  for (let d = 0; d < 400; d++)
    for (const i of [index - d, index + d]) {
      const value = values[i];
      if (value !== undefined && value !== null) return value;
    }
  return null;
}

/**
 * The value of a curve at a time, by linear interpolation; its end values outside.
 * @param {ArrayLike<number>} x
 * @param {ArrayLike<number | null>} y
 * @param {number} time
 * @returns {number | null}
 */
export function valueAt(x, y, time) {
  if (!x.length) return null;
  let low = 0;
  let high = x.length - 1;
  if (time <= x[low]) return y[low];
  if (time >= x[high]) return y[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= time) low = middle;
    else high = middle;
  }
  const [a, b] = [y[low], y[high]];
  if (a === null || b === null) return a ?? b;
  return a + ((b - a) * (time - x[low])) / (x[high] - x[low]);
}
