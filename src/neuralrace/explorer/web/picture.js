// The data as a picture: one column per sample, one row per feature; size shows magnitude, and a
// hollow square a negative number, so that it reads the same in grey.
// @ts-check
import { s, shown } from "./dom.js";

/** Above this many cells a picture is drawn in shades and not as squares. */
const SQUARES = 1200;

/** Shades of a picture with many cells. */
const LEVELS = 8;

/** Space between two nodes, in cells. */
const GAP = 0.6;

/**
 * @typedef {object} Matrix
 * @property {string} name of the node
 * @property {string} role such as "input"
 * @property {number[][]} values one row per sample
 */

/** Whether a task is drawn as squares, hollow ones for negative numbers. @param {import("./types.js").Data} data */
export const isSquares = ({ nodes }) => nodes.reduce((sum, { values }) => sum + values.length * (values[0]?.length ?? 0), 0) <= SQUARES;

/**
 * @param {Matrix[]} matrices
 * @param {number} samples
 * @param {number} [pitch] from row to row, in cells
 * @returns {SVGSVGElement}
 */
export function dataPicture(matrices, samples, pitch = 1) {
  const largest = Math.max(1e-300, ...matrices.map((m) => most(m.values)));
  const rows = matrices.reduce((sum, m) => sum + (m.values[0]?.length ?? 0), 0);
  const height = rows * pitch + GAP * (matrices.length - 1);
  const squares = rows * samples <= SQUARES;
  const drawing = s("svg", {
    class: "data", viewBox: `0 0 ${samples} ${height}`, role: "img", preserveAspectRatio: squares ? "xMinYMid meet" : "none",
    "aria-label": matrices.map((m) => `${m.role} ${m.name}: ${m.values[0]?.length ?? 0} features`).join("; ") + `, ${samples} samples`,
  });
  drawing.style.aspectRatio = `${samples} / ${squares ? height : Math.min(height, samples)}`;
  let top = 0;
  for (const matrix of matrices) {
    const size = matrix.values[0]?.length ?? 0;
    drawing.append(s("rect", { class: "ground", y: top, width: samples, height: size * pitch }));
    if (squares) drawing.append(...hinton(matrix.values, top, largest, pitch));
    else drawing.append(shades(matrix.values, top, largest));
    top += size * pitch + GAP;
  }
  return drawing;
}

/** @param {number[][]} values */
function most(values) {
  let found = 0;
  for (const row of values) for (const v of row) found = Math.max(found, Math.abs(v));
  return found;
}

/** @param {number[][]} values @param {number} top @param {number} largest @param {number} pitch */
function hinton(values, top, largest, pitch) {
  let filled = "";
  let hollow = "";
  values.forEach((row, n) =>
    row.forEach((value, i) => {
      const side = 0.86 * Math.sqrt(Math.abs(value) / largest);
      if (side < 0.02) return;
      const x = n + (1 - side) / 2;
      const y = top + i * pitch + (pitch - side) / 2;
      const box = `M${x.toFixed(3)} ${y.toFixed(3)}h${side.toFixed(3)}v${side.toFixed(3)}h${(-side).toFixed(3)}z`;
      if (value > 0) filled += box;
      else {
        const line = Math.min(0.14, side / 4);
        const inner = side - 2 * line;
        hollow += `${box}M${(x + line).toFixed(3)} ${(y + line).toFixed(3)}v${inner.toFixed(3)}h${inner.toFixed(3)}v${(-inner).toFixed(3)}z`;
      }
    })
  );
  return [s("path", { class: "plus", d: filled }), s("path", { class: "minus", d: hollow })];
}

/** Shades of many cells: one path for each of a few levels, equal cells of a row joined. @param {number[][]} values @param {number} top @param {number} largest */
function shades(values, top, largest) {
  const negative = values.some((row) => row.some((v) => v < 0));
  const paths = Array.from({ length: LEVELS + 1 }, () => "");
  const level = (/** @type {number} */ v) => Math.round(LEVELS * (negative ? (v / largest + 1) / 2 : v / largest));
  for (let i = 0; i < values[0].length; i++)
    for (let n = 0; n < values.length; ) {
      const here = level(values[n][i]);
      let end = n + 1;
      while (end < values.length && level(values[end][i]) === here) end++;
      if (here > 0) paths[here] += `M${n} ${top + i}h${end - n}v1h${n - end}z`;
      n = end;
    }
  return s("g", { class: "shades" }, ...paths.map((d, k) => d && s("path", { d, "fill-opacity": k / LEVELS })));
}

/**
 * What one sample is, in words.
 * @param {number} sample counted from 0
 * @param {Record<string, (number | string | boolean)[]>} labels
 */
export function sampleNamed(sample, labels) {
  const told = Object.entries(labels)
    .filter(([name]) => name !== "sample")
    .map(([name, values]) => {
      const value = values[sample];
      if (typeof value === "boolean") return value ? name : `not ${name}`;
      return `${name} ${typeof value === "number" ? shown(value) : value}`;
    });
  return [`sample ${sample + 1}`, ...told].join(", ");
}
