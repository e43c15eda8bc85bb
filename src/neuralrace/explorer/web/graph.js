// The network as the library draws it. While the race is played, edges grow with what they learn.
// @ts-check
import { h, s } from "./dom.js";
import { hue } from "./look.js";
import { drawnStrip } from "./strip.js";

/** @typedef {import("./types.js").Graph} Graph */

/** Units of the drawing per inch of the layout. */
const UNIT = 100;

/** Height of the strip under a node, and its distance, in units. */
const STRIP = 7;
const BELOW = 3;

export class GraphView {
  /** @param {(node: string | null) => void} point called with the node under the pointer */
  constructor(point) {
    this.point = point;
    this.element = h("div", { class: "graph" });
    /** @type {{ line: SVGPathElement, source: string, target: string }[]} */
    this.lines = [];
    this.shape = "";
    /** @type {Graph | null} */
    this.graph = null;
  }

  /**
   * @param {Graph} graph
   * @param {Record<string, number[]>} gates
   */
  show(graph, gates) {
    if (graph === this.graph) return;
    this.graph = graph;
    const shape = JSON.stringify([graph, gates]);
    if (shape === this.shape) return;
    this.shape = shape;
    const flip = (/** @type {number} */ y) => (graph.height - y) * UNIT;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    const covers = (/** @type {number} */ x, /** @type {number} */ y) => {
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    };
    this.lines = graph.edges.map((edge) => {
      const points = edge.path.map(([x, y]) => /** @type {[number, number]} */ ([x * UNIT, flip(y)]));
      const [a, b, c, d] = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
      const bend = 0.125 * (points[0][1] + 3 * points[1][1] + 3 * points[2][1] + points[3][1]);
      covers(points[0][0], bend);
      const line = s("path", { class: `edge ${edge.branch === null ? "plain" : hue(edge.branch)}`, d: `M${a}C${b} ${c} ${d}` });
      line.append(s("title", {}, `${edge.name}: ${edge.source} to ${edge.target}`));
      return { line, source: edge.source, target: edge.target };
    });
    const nodes = graph.nodes.map((node) => {
      const [x, y, w, tall] = [node.x * UNIT, flip(node.y), node.w * UNIT, node.h * UNIT];
      const gate = gates[node.name];
      covers(x - w / 2, y - tall / 2);
      covers(x + w / 2, y + tall / 2 + (gate ? STRIP + BELOW : 0));
      const size = Math.min(11, tall / 2.6, (w / (node.name.length + 1)) * 1.5);
      const group = s(
        "g",
        { class: `node ${node.branch === null ? node.kind : hue(node.branch)}` },
        s("rect", { class: "box", x: x - w / 2, y: y - tall / 2, width: w, height: tall, rx: Math.min(5, tall / 4) })
      );
      if (size >= 4.5)
        group.append(
          s("text", { x, y: y - 0.16 * size, "font-size": size }, node.name),
          s("text", { class: "size", x, y: y + 0.98 * size, "font-size": 0.86 * size }, String(node.size))
        );
      group.append(s("title", {}, `${node.name}: ${node.size} ${node.size === 1 ? "neuron" : "neurons"}`));
      if (gate) {
        const strip = drawnStrip(gate, "");
        const wide = gate.length * 10;
        strip.setAttribute("transform", `translate(${x - w / 2} ${y + tall / 2 + BELOW}) scale(${w / wide} ${STRIP / 16})`);
        strip.setAttribute("class", "under");
        group.append(strip);
      }
      group.addEventListener("pointerenter", () => this.point(node.name));
      group.addEventListener("pointerleave", () => this.point(null));
      return group;
    });
    const pad = 5;
    const names = graph.nodes.map((node) => node.name).join(", ");
    this.element.replaceChildren(
      s(
        "svg",
        {
          viewBox: `${left - pad} ${top - pad} ${right - left + 2 * pad} ${bottom - top + 2 * pad}`, role: "img",
          "aria-label": `The network: ${names}`,
        },
        ...this.lines.map(({ line }) => line),
        ...nodes
      )
    );
  }

  /**
   * @param {(node: string) => number | null} strength of a pathway, 0 to 1, on one scale for all of
   * them; null where it is not known
   */
  setStrength(strength) {
    for (const { line, source, target } of this.lines) {
      const share = strength(source) ?? strength(target);
      const now = share === null ? 0.5 : Math.max(0, Math.min(1, share));
      line.style.strokeWidth = (0.8 + 3.4 * now).toFixed(2);
      line.style.opacity = (share === null ? 0.7 : 0.35 + 0.65 * now).toFixed(2);
    }
  }

  /** Mark a node, such as that of the strip under the pointer. @param {string | null} name */
  mark(name) {
    for (const node of this.element.querySelectorAll(".node"))
      node.classList.toggle("marked", name !== null && node.querySelector("title")?.textContent?.startsWith(`${name}:`));
  }
}
