// Small helpers for the page: making elements, writing numbers, saying things to screen readers.
// @ts-check

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @param {Element} made
 * @param {Record<string, any>} attributes
 * @param {Child[]} children
 */
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      made.append(child instanceof Node ? child : String(child));
}

/**
 * An HTML element. Text is always text: nothing is ever parsed as markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [attributes] `onclick` and the like are listeners
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  fill(made, attributes, children);
  return made;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(made, attributes, children);
  return made;
}

let counted = 0;

/** A name that no other element of the document has. @param {string} [what] */
export const unique = (what = "id") => `nrx-${what}-${++counted}`;

/**
 * A number with few digits; a dash where there is none.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export function shown(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const small = value !== 0 && Math.abs(value) < 1e-3;
  const text = small ? Number(value.toPrecision(digits)).toExponential() : String(Number(value.toPrecision(digits)));
  return text.replace("e+", "e").replaceAll("-", "−");
}

/** A share as per cent: whole ones from 10 on, two digits below, as in all sentences. @param {number | null | undefined} value */
export function percent(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value > 0 && value < 1e-6) return "less than 0.0001 %";
  return `${value >= 0.0995 ? (100 * value).toFixed(0) : String(Number((100 * value).toPrecision(2))).replace("-", "−")} %`;
}

/** How many of what, such as "1 step" and "2 steps". @param {number} n @param {string} one */
export const count = (n, one, several = `${one}s`) => `${n} ${n === 1 ? one : several}`;

/** Names in a sentence: a, b and c. @param {string[]} names */
export const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/**
 * Numbers as ranges, such as 1–3, 5.
 * @param {number[]} numbers increasing whole numbers
 */
export function ranges(numbers) {
  /** @type {string[]} */
  const parts = [];
  for (let i = 0; i < numbers.length; ) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) j++;
    parts.push(j === i ? `${numbers[i]}` : j === i + 1 ? `${numbers[i]}, ${numbers[j]}` : `${numbers[i]}–${numbers[j]}`);
    i = j + 1;
  }
  return parts.join(", ");
}

/**
 * A button.
 * @param {string} text
 * @param {(event: MouseEvent) => void} act
 * @param {Record<string, any>} [attributes]
 */
export const button = (text, act, attributes = {}) =>
  h("button", { type: "button", ...attributes, onclick: act }, text);

/**
 * Replace what an element shows, but only if its text changed, so that screen readers stay quiet.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Do what may remove or disable the element that has the focus, and give the focus to another one.
 * @param {Element} within where the focus must be for this to do anything
 * @param {() => void} act
 * @param {(before: HTMLElement) => HTMLElement | null | undefined} next where the focus goes
 */
export function keepFocus(within, act, next) {
  const before = document.activeElement;
  const inside = within.contains(before);
  act();
  if (!inside || !(before instanceof HTMLElement)) return;
  if (before !== document.activeElement || before.matches(":disabled")) next(before)?.focus();
}

/**
 * A value of the page's style, such as `--ink`.
 * @param {Element} element
 * @param {string} name
 */
export const styleOf = (element, name) => getComputedStyle(element).getPropertyValue(name).trim();

/**
 * Call a function at most once per animation frame.
 * @param {() => void} act
 */
export function perFrame(act) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}

/**
 * Save text or bytes as a file.
 * @param {string} name
 * @param {BlobPart} content
 * @param {string} type
 */
export function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
