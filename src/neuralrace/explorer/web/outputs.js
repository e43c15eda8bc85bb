// What leaves the page: a script, a study, a picture, a report.
// @ts-check
import { button, count, download, h, say } from "./dom.js";
import { pictureOf } from "./figure.js";
import { written } from "./address.js";

/** @typedef {import("./app.js").App} App */

export class Outputs {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.text = h("textarea", { class: "script", readonly: true, spellcheck: "false", "aria-label": "The script", rows: 22 });
    this.copied = h("p", { class: "caption", role: "status" });
    this.dialog = h(
      "dialog",
      { class: "dialog", "aria-label": "The same in Python" },
      h("div", { class: "row spread" }, h("h2", {}, "The same in Python"), button("Close", () => this.dialog.close(), { class: "quiet" })),
      this.copied,
      this.text,
      h("div", { class: "row" }, button("Copy", () => this.#copy()), button("Save", () => download("race.py", this.text.value, "text/x-python")))
    );
    this.report = button("Report", () => this.#report(), { title: "Run the study, and save its report" });
    this.element = h(
      "span",
      { class: "row outputs" },
      app.options.address && button("Copy link", () => this.#link(), { title: "The address of this state, for this machine while the explorer runs" }),
      button("Copy as Python", () => this.#python(), { title: "A script that gives the same numbers" }),
      button("Save study", () => this.#study(), { title: "A TOML file for neuralrace run" }),
      button("Save picture", () => this.#picture(), { title: "Network, gates and race as SVG" }),
      this.report,
      this.dialog
    );
  }

  async #python() {
    try {
      const { script, files } = await this.app.calls.ask("python", { state: this.app.sent });
      this.text.value = script;
      this.dialog.showModal();
      await this.#copy();
      this.#files(files);
    } catch (error) {
      this.app.failed(error);
    }
  }

  async #link() {
    const { app } = this;
    const text = await written(app.store.state);
    if (text === null) return app.tell("The state is too large for a link: use Save study.", true);
    history.replaceState(null, "", `#${text}`);
    try {
      await navigator.clipboard.writeText(location.href);
      app.tell("Copied. The link works on this machine while the explorer runs; to share the state, use Save study.");
    } catch {
      app.tell("The browser does not let the page copy: the link is in the address bar.", true);
    }
  }

  async #copy() {
    const lines = count(this.text.value.split("\n").length, "line");
    try {
      await navigator.clipboard.writeText(this.text.value);
      say(this.copied, `Copied ${lines}.`);
    } catch {
      this.text.select();
      say(this.copied, `${lines}, selected: copy them with Ctrl+C.`);
    }
  }

  /** @param {Record<string, string> | undefined} files */
  #files(files) {
    for (const [name, text] of Object.entries(files ?? {})) download(name, text, "text/csv");
  }

  async #study() {
    try {
      const { toml, files } = await this.app.calls.ask("study", { state: this.app.sent });
      download("study.toml", toml, "application/toml");
      this.#files(files);
      this.app.tell("Saved study.toml. Run it with: neuralrace run study.toml");
    } catch (error) {
      this.app.failed(error);
    }
  }

  #picture() {
    const drawing = pictureOf(this.app);
    if (!drawing) return this.app.tell("There is nothing to draw yet.", true);
    download("race.svg", new XMLSerializer().serializeToString(drawing), "image/svg+xml");
    this.app.tell("Saved race.svg.");
  }

  async #report() {
    if (this.report.getAttribute("aria-disabled")) return; // it keeps the focus
    this.report.setAttribute("aria-disabled", "true");
    this.app.tell("Running the study …");
    try {
      const { name, base64 } = await this.app.calls.ask("report", { state: this.app.sent }, (part, result) => part === "progress" && this.app.tell(result.line));
      download(name, Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)), "application/zip");
      this.app.tell(`Saved ${name}: unpack it, and open index.html.`);
    } catch (error) {
      this.app.failed(error);
    }
    this.report.removeAttribute("aria-disabled");
  }
}
