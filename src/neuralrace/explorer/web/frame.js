// What is around the panels: the line at the top, the answer in words, messages, files that are dropped.
// @ts-check
import { button, h, keepFocus, listed, say } from "./dom.js";
import { STORIES } from "./stories.js";

/** @typedef {import("./app.js").App} App */

/** How long a message stays, in milliseconds. */
const READ = 7000;

/** Sentences below the first that are not folded away. */
const FEW = 3;

/** A sentence begins with a capital. @param {string} text */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;

export class Frame {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.lasting = 0;
    this.undo = button("↶", () => app.store.undo(), { "aria-label": "Undo", title: "Undo (Ctrl+Z)" });
    this.redo = button("↷", () => app.store.redo(), { "aria-label": "Redo", title: "Redo (Ctrl+Shift+Z)" });
    this.history = h("span", { class: "row" }, this.undo, this.redo);
    this.stories = h("summary", {}, "Stories");
    this.headline = h("p", { class: "headline", "aria-live": "polite" }, "Starting …");
    this.foreseen = h("p", { class: "foreseen", "aria-live": "polite" });
    this.further = h("p", { class: "further", "aria-live": "polite" });
    this.rest = h("p", { class: "further" });
    this.folded = h("details", { class: "more", hidden: true }, h("summary", {}, "More"), this.rest);
    this.lost = h("p", { class: "lost", role: "alert", hidden: true });
    this.toast = h("p", { class: "toast", role: "status", hidden: true, title: "Click to close", onclick: () => this.hush() });
  }

  /** Put everything on the page. */
  layout() {
    const { app } = this;
    const stories = h("details", { class: "menu" });
    const item = (/** @type {import("./stories.js").Story} */ story) => {
      const begin = () => {
        stories.open = false;
        app.story.begin(story.name);
      };
      return h("li", {}, h("button", { type: "button", onclick: begin }, h("b", {}, story.title), h("span", {}, story.about)));
    };
    stories.append(this.stories, h("ul", { class: "items" }, ...STORIES.map(item)));
    const top = h(
      "header",
      { class: "top" },
      h("p", { class: "brand" }, h("b", {}, "neuralrace"), " explorer"),
      this.history,
      stories,
      app.outputs.element
    );
    const main = h("div", { class: "main" }, h("div", { class: "first" }, app.story.element, app.task.element), app.gates.element, app.race.element);
    const second = h("div", { class: "second" }, app.relu.element, app.phases.element, app.formulas.element);
    const page = h("div", { class: "page" }, top, this.lost, h("div", { class: "answer" }, this.foreseen, this.headline, this.further, this.folded), h("main", {}, main, second));
    app.root.replaceChildren(page, this.toast);
    app.root.addEventListener("click", (event) => this.closeMenus(event.target));
    this.#drop();
  }

  /** @param {EventTarget | null} [inside] of which menu stays open */
  closeMenus(inside = null) {
    for (const menu of this.app.root.querySelectorAll("details.menu[open]"))
      if (!(inside instanceof Node && menu.contains(inside))) /** @type {HTMLDetailsElement} */ (menu).open = false;
  }

  /** Say something for a while, or until something else is said. @param {string} text @param {boolean} [bad] @param {boolean} [stays] */
  tell(text, bad = false, stays = false) {
    this.toast.hidden = false;
    this.toast.classList.toggle("bad", bad);
    say(this.toast, text);
    clearTimeout(this.lasting);
    if (!stays) this.lasting = window.setTimeout(() => (this.toast.hidden = true), READ);
  }

  /** What was said is about a state that is left. */
  hush() {
    this.toast.hidden = true;
  }

  /** A refusal is about a state that is changed now. */
  forgive() {
    if (this.toast.classList.contains("bad")) this.hush();
  }

  /** Say what went wrong, and what usually fixes it, until something changes or it is clicked away. @param {import("./types.js").Failure} failure */
  blame({ what, got, fix }) {
    this.tell([sentence(got ? `${what} (${got})` : what), fix && sentence(fix)].filter(Boolean).join(" "), true, true);
  }

  /** @param {boolean} open */
  connected(open) {
    this.app.root.classList.toggle("offline", !open);
    this.lost.hidden = open;
    if (!open) say(this.lost, "The server does not answer. What you see stays as it is; trying to connect again …");
  }

  update() {
    const { app } = this;
    const { predicted, failure } = app;
    const able = () => {
      this.undo.disabled = !app.store.canUndo;
      this.redo.disabled = !app.store.canRedo;
    };
    keepFocus(this.history, able, () => [this.undo, this.redo].find((one) => !one.disabled) ?? this.stories);
    const names = Object.keys(app.store.state.gatings ?? {});
    const other = predicted && names.length > 0 && !names.some((name) => name in predicted.gatings || name in predicted.failed);
    const first = failure ? sentence(failure.what) : other ? "Predicting …" : predicted?.sentences[0];
    if (first) say(this.headline, first);
    this.headline.classList.toggle("bad", !!failure);
    app.root.classList.toggle("stale", !!failure);
    const { wide, failed } = app.wideNow ?? {};
    const [answer, ...more] = wide?.sentences ?? [];
    say(this.foreseen, failed ? sentence(`The ReLU network is left out: ${failed}`) : answer ?? "Predicting the ReLU network …");
    const wrong = Object.keys(predicted?.failed ?? {});
    const rest = failure
      ? [failure.wanted && sentence(`wanted: ${failure.wanted}`), failure.fix && sentence(failure.fix)]
      : other ? []
      : [wrong.length > 0 && `Not in the race: ${listed(wrong)}.`, ...more, ...(app.keptNow?.sentences ?? []), ...(predicted?.sentences.slice(1) ?? [])];
    const lines = rest.filter(Boolean);
    say(this.further, lines.slice(0, FEW).join(" "));
    say(this.rest, lines.slice(FEW).join(" "));
    this.folded.hidden = lines.length <= FEW;
  }

  /** Files that are dropped on the page. */
  #drop() {
    const { root, task } = this.app;
    root.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      root.classList.add("dropping");
    });
    root.addEventListener("dragleave", (event) => {
      if (!(event.relatedTarget instanceof Node) || !root.contains(event.relatedTarget)) root.classList.remove("dropping");
    });
    root.addEventListener("drop", (event) => {
      root.classList.remove("dropping");
      const files = [...(event.dataTransfer?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      task.open(files);
    });
  }
}
