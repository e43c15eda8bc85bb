// A field for a number, a switch or a choice of the state; numbers have a slider too.
// @ts-check
import { h, say, shown, unique } from "./dom.js";

/** @typedef {import("./types.js").Param} Param */

/** Labels of at most this many letters are signs, which mean nothing by themselves. */
const SIGN = 2;

/**
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {(value: any) => void} show
 * @property {(message: string | null) => void} complain say what is wrong with the value
 * @property {(message: string | null) => void} note say what the value does not do here
 */

/**
 * What is said of a field: what it is, what it does not do here, and what is wrong with its value. What
 * it is can be seen where its label is a mere sign, such as Δ; elsewhere it is a tooltip.
 * @param {HTMLElement} element
 * @param {HTMLElement} input
 * @param {Param} param
 */
function sayings(element, input, param) {
  const [about, note, wrong] = [unique("about"), unique("note"), unique("wrong")];
  const sign = param.label.length <= SIGN;
  const lines = {
    note: h("p", { class: "caption note", id: note, hidden: true }),
    wrong: h("p", { class: "wrong", id: wrong, role: "status", hidden: true }),
  };
  if (param.about) element.append(h("p", { class: sign ? "caption" : "aside", id: about }, sign ? `${param.label}: ${param.about}` : param.about));
  element.append(lines.note, lines.wrong);
  input.setAttribute("aria-describedby", [param.about && about, note, wrong].filter(Boolean).join(" "));
  const put = (/** @type {HTMLElement} */ line, /** @type {string | null} */ message) => {
    line.hidden = !message;
    say(line, message ?? "");
  };
  return {
    note: (/** @type {string | null} */ message) => put(lines.note, message),
    complain: (/** @type {string | null} */ message) => {
      put(lines.wrong, message);
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

/**
 * A number with a slider beside it. With `log` the slider moves in its logarithm.
 * @param {Param & { log?: boolean }} param
 * @param {(value: number) => void} changed
 * @returns {Field}
 */
export function numberField(param, changed) {
  const id = unique("field");
  const whole = param.kind === "integer";
  const step = param.step ?? (whole ? 1 : 0.01);
  const [min, max] = [param.min ?? 0, param.max ?? 1];
  const bounded = param.min !== undefined && param.max !== undefined && param.min !== null && param.max !== null;
  const outer = param.log ? Math.log10 : (/** @type {number} */ v) => v;
  const inner = (/** @type {number} */ v) => {
    if (param.log) return Number((10 ** v).toPrecision(2));
    return whole ? Math.round(v) : Number(v.toPrecision(12));
  };
  const number = h("input", {
    id, type: "text", inputmode: whole ? "numeric" : "decimal", class: "number", autocomplete: "off", spellcheck: "false",
  });
  const slider = h("input", {
    type: "range", min: outer(min), max: outer(max), step: param.log ? 0.05 : step, "aria-label": `${param.label}, slider`,
  });
  slider.hidden = !bounded;
  let value = Number(param.default ?? min);
  const take = (/** @type {number} */ v) => {
    value = v;
    changed(v);
  };
  slider.addEventListener("input", () => {
    const v = inner(Number(slider.value));
    number.value = plain(v);
    if (param.log) slider.setAttribute("aria-valuetext", shown(v));
    take(v);
  });
  const typed = () => {
    const v = Number(number.value.trim().replace("−", "-").replace(",", "."));
    if (number.value.trim() === "" || !Number.isFinite(v) || (whole && !Number.isInteger(v)))
      return complain(`${param.label} must be a ${whole ? "whole " : ""}number`);
    complain(null);
    delete number.dataset.typed;
    slider.value = String(outer(v));
    take(v);
  };
  number.addEventListener("change", typed);
  number.addEventListener("keydown", (event) => {
    if (event.key === "Enter") typed();
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const next = param.log ? Number((value * 10 ** (0.1 * direction)).toPrecision(2)) : Number((value + direction * step).toPrecision(12));
    number.value = plain(bounded ? Math.max(min, Math.min(max, next)) : next);
    typed();
  });
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: id, title: param.about ?? null }, param.label),
    slider,
    number
  );
  const { complain, note } = sayings(element, number, param);
  return {
    element,
    complain,
    note,
    show(v) {
      value = Number(v ?? param.default ?? min);
      if (document.activeElement !== number || !number.dataset.typed) number.value = plain(value);
      slider.value = String(outer(value));
      if (param.log) slider.setAttribute("aria-valuetext", shown(value));
    },
  };
}

/** A number as it is typed. @param {number} value */
export const plain = (value) =>
  !Number.isFinite(value) ? "" : value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);

/**
 * @param {Param} param
 * @param {(value: boolean) => void} changed
 * @returns {Field}
 */
export function switchField(param, changed) {
  const box = h("input", { type: "checkbox", onchange: () => changed(box.checked) });
  const element = h("div", { class: "field switch" }, h("label", { title: param.about ?? null }, box, ` ${param.label}`));
  return { element, ...sayings(element, box, param), show: (v) => (box.checked = Boolean(v ?? param.default)) };
}

/**
 * @param {Param} param
 * @param {(value: any) => void} changed
 * @returns {Field}
 */
export function choiceField(param, changed) {
  const id = unique("field");
  const choices = param.choices ?? [];
  const list = h(
    "select",
    { id, onchange: () => changed(choices[Number(list.value)]) },
    ...choices.map((choice, i) => h("option", { value: i }, String(choice)))
  );
  const element = h("div", { class: "field choice" }, h("label", { for: id, title: param.about ?? null }, param.label), list);
  return {
    element,
    ...sayings(element, list, param),
    show: (v) => {
      const at = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(v ?? param.default));
      if (at < 0 && !list.querySelector('option[value=""]')) list.prepend(h("option", { value: "", disabled: true }, v === undefined || v === null ? "by default" : String(v)));
      list.value = at < 0 ? "" : String(at);
    },
  };
}

/**
 * The field that suits a parameter.
 * @param {Param & { log?: boolean }} param
 * @param {(value: any) => void} changed
 * @returns {Field}
 */
export function fieldOf(param, changed) {
  if (param.kind === "switch") return switchField(param, changed);
  if (param.kind === "choice") return choiceField(param, changed);
  return numberField(param, changed);
}
