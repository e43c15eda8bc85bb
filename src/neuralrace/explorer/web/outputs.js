// What leaves the page: a script, a study, a picture, a report.
// @ts-check
import { button, count, download, h, say } from "./dom.js";
import { pictureOf } from "./figure.js";
import { written } from "./address.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {{ name: string, base64: string }} Archive */

export class Outputs {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.text = h("textarea", { class: "script", readonly: true, spellcheck: "false", "aria-label": "The script", rows: 22 });
    /** @type {Archive | null} the script with the tables that it reads */
    this.archive = null;
    this.copied = h("p", { class: "caption", role: "status" });
    this.dialog = h(
      "dialog",
      { class: "dialog", "aria-label": "The same in Python" },
      h("div", { class: "row spread" }, h("h2", {}, "The same in Python"), button("Close", () => this.dialog.close(), { class: "quiet" })),
      this.copied,
      this.text,
      h("div", { class: "row" }, button("Copy", () => this.#copy()), button("Save", () => this.#save(this.archive, "race.py", this.text.value, "text/x-python")))
    );
    this.report = button("Report", () => this.#report(), { title: "Run the whole study, and save its report: takes about as long as neuralrace run" });
    this.element = h(
      "span",
      { class: "row outputs" },
      app.options.address && button("Copy link", () => this.#link(), { title: "The address of this state, for this machine while the explorer runs" }),
      button("Copy as Python", () => this.#python(), { title: "A script that gives the same numbers" }),
      button("Save study", () => this.#study(), { title: "A TOML file for neuralrace run, with its table" }),
      button("Save picture", () => this.#picture(), { title: "Network, gates and race as SVG" }),
      this.report,
      this.dialog
    );
  }

  async #python() {
    try {
      const { script, archive } = await this.app.calls.ask("python", { state: this.app.sent });
      this.text.value = script;
      this.archive = archive;
      this.dialog.showModal();
      await this.#copy();
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
    const table = this.archive ? ` It reads a table: Save packs both into ${this.archive.name}.` : "";
    try {
      await navigator.clipboard.writeText(this.text.value);
      say(this.copied, `Copied ${lines}.${table}`);
    } catch {
      this.text.select();
      say(this.copied, `${lines}, selected: copy them with Ctrl+C.${table}`);
    }
  }

  async #study() {
    try {
      const { toml, archive } = await this.app.calls.ask("study", { state: this.app.sent });
      this.#save(archive, "study.toml", toml, "application/toml");
      this.app.tell(archive ? `Saved ${archive.name}: the study, its table, and a script. Drop it on the page, or unpack it: neuralrace run study.toml` : "Saved study.toml. Run it with: neuralrace run study.toml");
    } catch (error) {
      this.app.failed(error);
    }
  }

  /** Save an archive, or a text where there is none. @param {Archive | null} archive @param {string} name @param {string} text @param {string} type */
  #save(archive, name, text, type) {
    if (!archive) return download(name, text, type);
    download(archive.name, Uint8Array.from(atob(archive.base64), (letter) => letter.charCodeAt(0)), "application/zip");
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
    const told = (/** @type {string} */ line) => this.app.tell(`${line} The whole study is run for the report, which takes about as long as neuralrace run.`, false, true);
    told("Running the study …");
    try {
      const { archive } = await this.app.calls.ask("report", { state: this.app.sent }, (part, result) => part === "progress" && told(result.line));
      this.#save(archive, "", "", "");
      this.app.tell(`Saved ${archive.name}: unpack it, and open index.html.`);
    } catch (error) {
      this.app.failed(error);
    }
    this.report.removeAttribute("aria-disabled");
  }
}
