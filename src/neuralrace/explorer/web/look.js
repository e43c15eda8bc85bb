// Colours and dashes. Colours are the package's own (Okabe–Ito); nothing is told by colour alone.
// @ts-check

/** How many colours the style sheet has, `--hue0` to `--hue7`. */
const HUES = 8;

/** Dashes of theory: one for each candidate, so that they differ in grey too. */
const DASHES = [[8, 4], [2, 3], [12, 3, 2, 3], [5, 2], [1, 5], [14, 5], [4, 2, 1, 2], [9, 2, 2, 2]];

/** The colours of candidates, in an order of their own: those of pathways begin elsewhere. */
const RACERS = [5, 6, 4, 7, 2, 3, 0, 1];

/** The class with the colour of the n-th pathway. @param {number} n */
export const hue = (n) => `hue${((n % HUES) + HUES) % HUES}`;

/** The class with the colour of the n-th candidate. @param {number} n */
export const racer = (n) => hue(RACERS[n % RACERS.length]);

/** The dash of the n-th candidate. @param {number} n */
export const dash = (n) => DASHES[n % DASHES.length];

/**
 * Tell a root element which theme it has, and call back when that changes. Inside JupyterLab the
 * theme is the one chosen there, elsewhere that of the system.
 * @param {HTMLElement} root
 * @param {() => void} changed
 * @returns {() => void} which stops looking
 */
export function followTheme(root, changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const body = document.body;
  const look = () => {
    const lab = body.getAttribute("data-jp-theme-light");
    const dark = lab === null ? system.matches : lab === "false";
    if ((root.dataset.theme === "dark") === dark && root.dataset.theme) return;
    root.dataset.theme = dark ? "dark" : "light";
    changed();
  };
  const watch = new MutationObserver(look);
  watch.observe(body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  system.addEventListener("change", look);
  look();
  return () => {
    watch.disconnect();
    system.removeEventListener("change", look);
  };
}
