// The whole state in the part of the address after "#": compressed JSON, in letters and digits.
// @ts-check

/** The longest address that is written, in characters; a longer state stays out of it. */
const LONGEST = 60_000;

/** The largest state that is read back, in bytes, so that a crafted link cannot fill the memory. */
const LARGEST = 2_000_000;

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
    return found && typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}
