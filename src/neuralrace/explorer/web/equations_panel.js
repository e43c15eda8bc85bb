// The equations of the race, typeset; what is exact, and what was dropped.
// @ts-check
import { h, say, shown } from "./dom.js";

/** @typedef {import("./app.js").App} App */

/** The elements of a formula; anything else is left out, whatever the server says. */
const ELEMENTS = new Set(["math", "mi", "mn", "mo", "mrow", "mfrac", "msup", "msub", "msubsup", "msqrt", "mroot", "mtext", "mtable", "mtr", "mtd", "munder", "mover", "munderover", "mspace", "mstyle", "mpadded", "menclose", "mfenced"]);

/** Attributes that a formula may have. */
const ATTRIBUTES = new Set(["display", "displaystyle", "mathvariant", "width", "columnspan", "alttext", "stretchy", "fence", "separator", "linethickness"]);

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** A formula of the server as elements of the page. @param {string} text @returns {Node} */
export function typeset(text) {
  const parsed = new DOMParser().parseFromString(text, "text/html").querySelector("math");
  return parsed ? copied(parsed) : document.createTextNode(text);
}

/** @param {Element} element @returns {Node} */
function copied(element) {
  const name = element.localName.toLowerCase();
  if (!ELEMENTS.has(name)) return document.createTextNode(element.textContent ?? "");
  const made = document.createElementNS(MATHML, name);
  for (const { name: key, value } of element.attributes) if (ATTRIBUTES.has(key)) made.setAttribute(key, value);
  for (const child of element.childNodes)
    if (child instanceof Element) made.append(copied(child));
    else if (child.nodeType === Node.TEXT_NODE) made.append(child.textContent ?? "");
  return made;
}

/** One part of the answer. @param {any} part @returns {HTMLElement} */
function shownPart(part) {
  if (part.kind === "equation") {
    const formula = h("div", { class: "equation", tabindex: "0", role: "group", "aria-label": "Formula" }, typeset(part.mathml));
    return h("figure", { class: "formula" }, formula, part.caption && h("figcaption", {}, part.caption));
  }
  if (part.kind === "section") {
    const inner = part.parts.map(shownPart);
    if (!part.folded) return h("div", {}, h("h3", {}, part.title), ...inner);
    return h("details", { class: "more" }, h("summary", {}, part.title), ...inner);
  }
  if (part.kind === "table") {
    const row = (/** @type {any[]} */ cells, /** @type {"th" | "td"} */ cell) => h("tr", {}, ...cells.map((text) => h(cell, {}, typeof text === "number" ? shown(text) : String(text ?? "–"))));
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, h("table", {}, h("thead", {}, row(part.head, "th")), h("tbody", {}, ...part.rows.map((/** @type {any[]} */ cells) => row(cells, "td")))));
  }
  if (part.kind === "code") return h("pre", { class: "scroll" }, part.text);
  return h("p", { class: "caption" }, part.text);
}

export class EquationsPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.exact = h("p", { class: "exact" });
    this.own = h("p", { class: "caption", hidden: true }, "Variables belong to their mode: two modes may both have a variable of one name, such as B1, with different values.");
    this.start = h("p", { class: "caption" });
    this.list = h("div", { class: "equations" });
    this.waiting = h("p", { class: "caption", hidden: true });
    this.notes = h("ul", { class: "notes" });
    this.drawn = "";
    this.element = h(
      "section",
      { class: "panel equations-panel", "aria-label": "Equations" },
      h("h2", {}, h("span", { class: "letter" }, "F"), "Equations"),
      this.exact,
      this.waiting,
      this.list,
      this.own,
      this.notes,
      this.start
    );
  }

  update() {
    const { app } = this;
    const name = app.gates.chosen;
    const prediction = app.predicted?.gatings[name];
    this.element.classList.toggle("old", !app.equationsNow);
    this.waiting.hidden = !!prediction && !!app.equations?.parts;
    say(this.waiting, app.predicted?.failed[name] ? `${name} is not in the race.` : "Typesetting the equations …");
    for (const part of [this.exact, this.list, this.notes, this.start]) part.hidden = !prediction;
    this.own.hidden = (prediction?.modes.length ?? 0) < 2;
    if (!prediction) return;
    say(this.exact, `${name}: ${prediction.reduction}`);
    this.exact.classList.toggle("low", !prediction.exact);
    say(this.start, `Start: ${app.predicted?.start}. Solved by: ${prediction.method}. It comes down to ${app.lossNamed(prediction.least)}.`);
    const notes = JSON.stringify(prediction.notes);
    if (this.notes.dataset.text !== notes) {
      this.notes.dataset.text = notes;
      this.notes.replaceChildren(...prediction.notes.map((note) => h("li", {}, note)));
    }
    const parts = app.equations?.parts ?? [];
    const drawn = JSON.stringify(parts);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.replaceChildren(...parts.map(shownPart));
  }
}
