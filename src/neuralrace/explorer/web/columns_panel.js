// The columns of a table, and a choice of what each of them is.
// @ts-check
import { count, h, unique } from "./dom.js";
import { inputsOf, roleOf, ROLES, targetsOf, withRole } from "./columns.js";
import { same } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./columns.js").Role} Role */

export class ColumnsPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.list = h("div", { class: "columns" });
    this.standardise = h("input", { type: "checkbox", onchange: () => this.#task({ ...app.store.state.task, standardise: this.standardise.checked }) });
    this.element = h(
      "details",
      { class: "more", hidden: true },
      h("summary", {}, "Columns"),
      this.list,
      h("div", { class: "field switch" }, h("label", { title: "shift and scale input columns to mean 0 and standard deviation 1, but those of −1, 0 and 1 alone" }, this.standardise, " standardise inputs"))
    );
    /** @type {import("./types.js").Column[]} those of the table */
    this.columns = [];
    /** @type {Map<string, HTMLSelectElement>} */
    this.choices = new Map();
  }

  /** Show the columns. */
  open() {
    this.element.open = true;
  }

  update() {
    const { app } = this;
    const { task } = app.store.state;
    this.element.hidden = !task.file || !app.data?.columns?.length;
    if (this.element.hidden || !app.data) return;
    if (!same(app.data.columns, this.columns)) this.#fill(app.data.columns);
    for (const [name, choice] of this.choices) choice.value = roleOf(task, name);
    this.standardise.checked = !!task.standardise;
  }

  /** @param {import("./types.js").Column[]} columns */
  #fill(columns) {
    this.columns = columns;
    this.choices.clear();
    const rows = columns.map(({ name, text, values }) => {
      const id = unique("column");
      const roles = Object.entries(ROLES).filter(([role]) => !(text && role === "weight"));
      const choice = h("select", { id, onchange: () => this.#chosen(name, /** @type {Role} */ (choice.value)) }, ...roles.map(([role, words]) => h("option", { value: role }, words)));
      this.choices.set(name, choice);
      return h("div", { class: "field choice" }, h("label", { for: id, title: `${name}: ${text ? "text" : "numbers"}, ${count(values, "value")}` }, name), choice);
    });
    this.list.replaceChildren(...rows);
  }

  /** @param {string} name @param {Role} role */
  #chosen(name, role) {
    const made = withRole(this.app.store.state.task, name, role, this.columns.map((column) => column.name));
    const lacks = !inputsOf(made).length ? "input" : !targetsOf(made).length ? "target" : null;
    if (!lacks) return this.#task(made);
    this.update();
    this.app.tell(`A task needs at least one ${lacks}: choose another column as ${lacks} first.`, true);
  }

  /** @param {Record<string, any>} task */
  #task(task) {
    this.app.store.change((state) => ({ ...state, task }));
  }
}
