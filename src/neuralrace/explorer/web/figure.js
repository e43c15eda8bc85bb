// The page as one picture: network with gates, and the race; an SVG file that stands by itself.
// @ts-check
import { s, shown } from "./dom.js";
import { dash, racer } from "./look.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Prediction} Prediction */

/** Colours of the package (Okabe–Ito); those of pathways and candidates in their order. */
const HUES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933"];
const INK = "#1c1e21";
const SOFT = "#565b63";
const FAINT = "#e3e5e8";
const RELU = "#f2c063";

const WIDTH = 900;
/** The width of a letter of the legend, with room for wide fonts. */
const LETTER = 7.4;

const PLOT = { left: 60, right: 24, top: 34, bottom: 44 };

/** The colour of the n-th pathway. @param {number} n */
const hueOf = (n) => HUES[n % HUES.length];

/** The colour of the n-th candidate. @param {number} n */
const racerOf = (n) => HUES[Number(racer(n).slice(3))];

/** Round numbers between two ends. @param {number} low @param {number} high */
export function ticks(low, high) {
  const rough = (high - low) / 5 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((m) => m * unit >= rough * (1 - 1e-9)) ?? 10);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high * (1 + 1e-9); n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}

/** @param {number} x @param {number} y @param {string} text @param {Record<string, any>} [more] */
const word = (x, y, text, more = {}) => s("text", { x, y, fill: INK, "font-size": 13, ...more }, text);

/**
 * A picture of what is shown, or null where nothing is predicted.
 * @param {App} app
 * @returns {SVGSVGElement | null}
 */
export function pictureOf(app) {
  const predicted = app.predicted;
  const prediction = predicted?.gatings[app.gates.chosen];
  if (!predicted || !prediction) return null;
  const network = networkOf(prediction, 60, 330);
  const high = Math.max(360, network.height + 90);
  const picture = s("svg", {
    xmlns: "http://www.w3.org/2000/svg", width: WIDTH, height: high + 40, viewBox: `0 0 ${WIDTH} ${high + 40}`,
    "font-family": "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif", role: "img",
  });
  picture.append(
    s("title", {}, app.frame.headline.textContent ?? ""),
    s("rect", { width: WIDTH, height: high + 40, fill: "#ffffff" }),
    word(20, 26, app.frame.headline.textContent ?? "", { "font-size": 15, "font-weight": 600 }),
    word(20, 58, "A", { "font-weight": 700 }),
    word(38, 58, app.gates.chosen, { fill: SOFT }),
    s("g", { transform: "translate(20 66)" }, network.drawing),
    word(390, 58, "B", { "font-weight": 700 }),
    word(408, 58, "loss", { fill: SOFT })
  );
  picture.append(s("g", { transform: "translate(380 50)" }, ...lossOf(app, WIDTH - 390, high - 40)));
  return picture;
}

/**
 * @param {Prediction} prediction
 * @param {number} least
 * @param {number} wide
 */
function networkOf(prediction, least, wide) {
  const { graph, gates } = prediction;
  const unit = wide / graph.width;
  const high = Math.max(least, graph.height * unit);
  const flip = (/** @type {number} */ y) => (graph.height - y) * unit;
  const drawing = s("g", {});
  for (const edge of graph.edges) {
    const [a, b, c, d] = edge.path.map(([x, y]) => `${(x * unit).toFixed(1)} ${flip(y).toFixed(1)}`);
    drawing.append(s("path", { d: `M${a}C${b} ${c} ${d}`, fill: "none", stroke: edge.branch === null ? SOFT : hueOf(edge.branch), "stroke-width": 1.4 }));
  }
  for (const node of graph.nodes) {
    const [x, y, w, tall] = [node.x * unit, flip(node.y), node.w * unit, node.h * unit];
    const colour = node.branch === null ? SOFT : hueOf(node.branch);
    drawing.append(s("rect", { x: x - w / 2, y: y - tall / 2, width: w, height: tall, rx: 4, fill: "#ffffff", stroke: colour, "stroke-width": 1.4 }));
    const size = Math.min(11, tall / 2.6, (w / (node.name.length + 1)) * 1.5);
    if (size >= 4) drawing.append(word(x, y - 0.1 * size, node.name, { "font-size": size, "text-anchor": "middle" }), word(x, y + 1.05 * size, String(node.size), { "font-size": 0.86 * size, "text-anchor": "middle", fill: SOFT }));
    const gate = gates[node.name];
    if (!gate) continue;
    const cell = w / gate.length;
    gate.forEach((value, i) => value > 0 && drawing.append(s("rect", { x: (x - w / 2 + i * cell).toFixed(2), y: y + tall / 2 + 3, width: cell.toFixed(2), height: 6, fill: INK, "fill-opacity": value })));
    drawing.append(s("rect", { x: x - w / 2, y: y + tall / 2 + 3, width: w, height: 6, fill: "none", stroke: colour, "stroke-width": 0.7 }));
  }
  return { drawing, height: high };
}

/** @param {App} app @param {number} wide @param {number} high */
function lossOf(app, wide, high) {
  const predicted = /** @type {NonNullable<App["predicted"]>} */ (app.predicted);
  const names = Object.keys(app.store.state.gatings ?? {});
  const [x0, x1, y0, y1] = [PLOT.left, wide - PLOT.right, high - PLOT.bottom, PLOT.top];
  const curves = [
    ...app.reluCurves.map((curve) => ({ ...curve, stroke: curve.colour === "--relu" ? RELU : SOFT })),
    ...names.filter((name) => predicted.gatings[name]).map((name) => ({ name, x: predicted.times, y: predicted.gatings[name].loss, stroke: racerOf(names.indexOf(name)), dash: dash(names.indexOf(name)), width: 2, faint: 1, unlisted: false })),
  ];
  const top = Math.max(...curves.flatMap((curve) => Array.from(curve.y, (v) => v ?? 0)), 1e-9) * 1.05;
  const across = (/** @type {number} */ t) => x0 + (t / app.end) * (x1 - x0);
  const up = (/** @type {number} */ v) => y0 + (v / top) * (y1 - y0);
  /** @type {SVGElement[]} */
  const parts = [];
  for (const t of ticks(0, app.end)) parts.push(s("path", { d: `M${across(t).toFixed(1)} ${y0}V${y1}`, stroke: FAINT }), word(across(t), y0 + 17, shown(t), { "text-anchor": "middle", "font-size": 11, fill: SOFT }));
  for (const v of ticks(0, top)) parts.push(s("path", { d: `M${x0} ${up(v).toFixed(1)}H${x1}`, stroke: FAINT }), word(x0 - 7, up(v) + 4, shown(v), { "text-anchor": "end", "font-size": 11, fill: SOFT }));
  parts.push(word((x0 + x1) / 2, y0 + 36, "time", { "text-anchor": "middle", fill: SOFT }));
  const level = up(predicted.criterion ?? 0);
  parts.push(s("path", { d: `M${x0} ${level.toFixed(1)}H${x1}`, stroke: SOFT }), word(x1, level - 4, app.criterionNamed, { "text-anchor": "end", "font-size": 11, fill: SOFT }));
  for (const curve of curves) {
    let d = "";
    for (let i = 0; i < curve.x.length; i++) {
      const value = curve.y[i];
      if (value !== null && curve.x[i] <= app.end * 1.0001) d += `${d ? "L" : "M"}${across(curve.x[i]).toFixed(1)} ${up(value).toFixed(1)}`;
    }
    parts.push(s("path", { d, fill: "none", stroke: curve.stroke, "stroke-width": curve.width ?? 2, "stroke-dasharray": curve.dash?.join(" "), "stroke-opacity": curve.faint ?? 1, "stroke-linejoin": "round" }));
  }
  const listed = curves.filter((curve) => !curve.unlisted);
  const named = (/** @type {{ name: string, dash?: number[] }} */ curve) => `${curve.name}${curve.dash ? ", theory" : ""}`;
  const legend = Math.max(198, ...listed.map((curve) => 54 + LETTER * named(curve).length));
  parts.push(s("rect", { x: x1 - legend, y: y1 - 2, width: legend, height: 18 * listed.length + 8, fill: "#ffffff", "fill-opacity": 0.85 }));
  listed.forEach((curve, i) => {
    const y = y1 + 12 + 18 * i;
    parts.push(s("path", { d: `M${x1 - legend + 8} ${y}h34`, stroke: curve.stroke, "stroke-width": curve.width ?? 2, "stroke-dasharray": curve.dash?.join(" ") }), word(x1 - legend + 50, y + 4, named(curve), { "font-size": 12 }));
  });
  return parts;
}
