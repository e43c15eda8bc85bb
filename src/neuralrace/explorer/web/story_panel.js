// A guided story in the place of the task: text with live pieces, one step at a time.
// @ts-check
import { button, h, keepFocus, say } from "./dom.js";
import { fieldOf } from "./fields.js";
import { get, set } from "./store.js";
import { STORIES } from "./stories.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./stories.js").Piece} Piece */

export class StoryPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.title = h("h2", { tabindex: "-1" });
    this.step = h("h3", {});
    this.body = h("div", { class: "story-text" });
    this.where = h("span", { class: "caption" });
    this.back = button("Back", () => this.#go(-1));
    this.next = button("Next", () => this.#go(1), { class: "primary" });
    this.drawn = "";
    /** @type {(() => void)[]} */
    this.alive = [];
    this.element = h(
      "section",
      { class: "panel story", "aria-label": "Story", hidden: true },
      h("div", { class: "row spread" }, this.title, button("×", () => this.#leave(), { class: "remove", "aria-label": "Leave the story" })),
      this.step,
      this.body,
      h("div", { class: "row spread turn" }, this.back, this.where, this.next)
    );
  }

  /** Begin a story. @param {string} name */
  begin(name) {
    this.#to(name, 0);
    this.title.focus();
  }

  /** @param {string} name @param {number} step */
  #to(name, step) {
    const story = STORIES.find((one) => one.name === name);
    const state = story?.steps[step]?.begin?.(this.app);
    if (state) this.app.load({ ...state, view: { story: { name, step } } });
    else this.app.store.look({ story: { name, step } });
  }

  /** @param {number} by */
  #go(by) {
    const now = this.app.store.state.view?.story;
    const story = STORIES.find((one) => one.name === now?.name);
    if (!now || !story) return;
    const step = now.step + by;
    if (step >= story.steps.length) return this.#leave();
    if (by < 0 || !story.steps[step].begin) this.app.store.look({ story: { name: now.name, step } });
    else this.#to(now.name, step);
    this.element.scrollTop = 0;
  }

  #leave() {
    this.app.store.look({ story: null });
    this.app.frame.stories.focus();
  }

  update() {
    const now = this.app.store.state.view?.story;
    const story = STORIES.find((one) => one.name === now?.name);
    this.element.hidden = !story;
    if (!story || !now) return;
    const at = Math.max(0, Math.min(story.steps.length - 1, now.step));
    const task = this.app.store.state.task.builtin;
    const drawn = `${story.name} ${at} ${task} ${this.app.info?.version}`;
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      const step = story.steps[at];
      say(this.title, story.title);
      say(this.step, step.title);
      say(this.where, `${at + 1} of ${story.steps.length}`);
      keepFocus(this.back, () => (this.back.disabled = at === 0), () => this.next);
      say(this.next, at + 1 === story.steps.length ? "End" : "Next");
      this.alive = [];
      this.body.replaceChildren(...step.text.map((pieces) => this.#paragraph(pieces)));
    }
    for (const piece of this.alive) piece();
  }

  /** @param {Piece[]} pieces */
  #paragraph(pieces) {
    const made = h("div", { class: "paragraph" });
    for (const piece of pieces) {
      if (typeof piece === "string") made.append(piece);
      else if ("live" in piece) {
        const place = h("output", { class: "live" });
        this.alive.push(() => say(place, piece.live(this.app)));
        made.append(place);
      } else if ("action" in piece) made.append(button(piece.action, () => piece.act(this.app), { class: "act" }));
      else made.append(this.#slider(piece.slider) ?? "");
    }
    return made;
  }

  /** @param {string} place dotted */
  #slider(place) {
    const { app } = this;
    const name = place.split(".").at(-1);
    const task = app.info?.tasks.find((one) => one.name === app.store.state.task.builtin);
    const param = task?.parameters.find((one) => one.name === name);
    if (!param) return null;
    const field = fieldOf(param, (value) => app.store.change((state) => set(state, place.split("."), value), place));
    this.alive.push(() => field.show(get(app.store.state, place.split("."))));
    return field.element;
  }
}
