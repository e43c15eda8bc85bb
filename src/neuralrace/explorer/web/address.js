// The whole state in the part of the address after "#": compressed JSON, in letters and digits.
// @ts-check

/** The longest address that is written, in characters; a longer state stays out of it. */
const LONGEST = 60_000;

/** The largest state that is read back, in bytes, so that a crafted link cannot fill the memory. */
const LARGEST = 2_000_000;

/** @param {any} value */
const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** @param {any} value */
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/**
 * What is looked at, without anything that this page would not have written.
 * @param {any} view
 * @returns {import("./types.js").View}
 */
export function cleanView(view) {
  if (!isTable(view)) return {};
  /** @type {import("./types.js").View} */
  const made = {};
  if (typeof view.gating === "string") made.gating = view.gating;
  if (isNumber(view.time)) made.time = view.time;
  if (Array.isArray(view.zoom) && view.zoom.length === 2 && view.zoom.every(isNumber) && view.zoom[0] < view.zoom[1]) made.zoom = view.zoom;
  if (typeof view.log === "boolean") made.log = view.log;
  if (typeof view.paint === "string") made.paint = view.paint;
  if (isTable(view.story) && typeof view.story.name === "string" && Number.isInteger(view.story.step)) made.story = { name: view.story.name, step: view.story.step };
  if (Array.isArray(view.found) && view.found.every(isTable)) made.found = view.found;
  if (Array.isArray(view.over) && view.over.every((/** @type {any} */ one) => isTable(one) && typeof one.key === "string")) made.over = view.over;
  return made;
}

/**
 * @param {any} state
 * @returns {Promise<string | null>} null where it would be too long
 */
export async function written(state) {
  const packed = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  const safe = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return safe.length > LONGEST ? null : safe;
}

/**
 * @param {string} text
 * @returns {Promise<any>} null where the text is no state
 */
export async function read(text) {
  try {
    const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.getReader();
    const parts = [];
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > LARGEST) {
        await reader.cancel();
        return null;
      }
      parts.push(value);
    }
    const found = JSON.parse(await new Blob(parts).text());
    if (!isTable(found) || !isTable(found.task) || ![found.gatings ?? {}, found.network ?? {}, found.training ?? {}, found.contest ?? {}].every(isTable)) return null;
    const gatings = Object.values(found.gatings ?? {});
    if (!gatings.every((gating) => isTable(gating) && isTable(gating.masks ?? {}))) return null;
    return { ...found, view: cleanView(found.view) };
  } catch {
    return null;
  }
}
