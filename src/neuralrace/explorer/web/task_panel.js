// The task: which one, its parameters, the network that is trained on it, and the data as a picture.
// @ts-check
import { count, h, listed, say, unique } from "./dom.js";
import { fieldOf } from "./fields.js";
import { dataPicture, isSquares, sampleNamed } from "./picture.js";
import { get, same, set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Param} Param */
/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./fields.js").Field} Field */

/** What every network has, whatever the task. Bounds are those of the sliders; fields take more. */
const NETWORK = [
  { place: "network.widths", label: "Neurons", kind: "integer", min: 4, max: 512, step: 4, default: 100, about: "hidden neurons of the ReLU network" },
  { place: "network.scale", label: "Initial σ", kind: "number", min: 1e-6, max: 0.1, default: 1e-3, log: true, about: "standard deviation of the initial weights" },
  { place: "contest.start", label: "Start", kind: "number", min: 1e-4, max: 0.5, default: 0.05, log: true, about: "strength of every edge when the race begins" },
  { place: "contest.criterion", label: "Criterion", kind: "number", min: 0.01, max: 1, step: 0.01, default: 0.2, about: "the loss that counts as learned" },
];

/** The criterion where it is a share. */
const RELATIVE = { max: 0.99, about: "the share of the initial loss that counts as learned" };

/** What is said below a number on which the race does not depend. */
const TRAINED = "Only trained networks use this: ";

/** Nodes that are named one by one beside the picture at most. */
const NAMED = 4;

export class TaskPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const id = unique("task");
    this.list = h("select", { id, onchange: () => this.#load(this.list.value) });
    this.about = h("p", { class: "about" });
    this.parameters = h("div", { class: "fields" });
    this.network = h("div", { class: "fields" });
    this.picture = h("div", { class: "data-frame" });
    this.sentence = h("p", { class: "caption" });
    this.file = h("input", { type: "file", accept: ".csv,.toml,text/csv", hidden: true, onchange: () => this.#chosen() });
    this.note = h("p", { class: "caption", role: "status" });
    this.noted = ""; // which task the note is about
    /** @type {Map<string, Field>} */
    this.fields = new Map();
    this.built = "";
    /** @type {any} */
    this.pictured = null;
    this.element = h(
      "section",
      { class: "panel task", "aria-label": "Task" },
      h("h2", {}, h("span", { class: "letter" }, "A"), "Task"),
      h("div", { class: "field choice tight" }, h("label", { for: id }, "Task"), this.list),
      this.about,
      this.parameters,
      h("h3", {}, "Data"),
      this.picture,
      this.sentence,
      h("h3", {}, "Network and contest"),
      this.network,
      h(
        "div",
        { class: "drop" },
        h("button", { type: "button", class: "quiet", title: "Or drop it on the page", onclick: () => this.file.click() }, "Open a CSV table or a study…"),
        this.file
      ),
      this.note
    );
  }

  /** @param {HTMLElement} where @param {string} place dotted @param {Param & { log?: boolean }} param */
  #field(where, place, param) {
    const field = fieldOf(param, (value) => {
      const keys = place.split(".");
      this.app.store.change((state) => {
        const before = get(state, keys); // one number for each of several layers
        return set(state, keys, Array.isArray(before) ? before.map(() => value) : value);
      }, place);
    });
    this.fields.set(place, field);
    where.append(field.element);
  }

  /** @param {string} name */
  #load(name) {
    const found = this.app.info?.tasks.find((task) => task.name === name);
    if (found) this.app.load(found.state);
  }

  async #chosen() {
    const file = this.file.files?.[0];
    this.file.value = "";
    if (file) await this.open(file);
  }

  /** Read a dropped or chosen file. @param {File} file */
  async open(file) {
    const most = this.app.info?.limits.table ?? 1_000_000;
    if (file.size > most) return this.app.tell(`${file.name} has ${file.size} bytes; at most ${most} can be read.`, true);
    const text = await file.text();
    const study = file.name.toLowerCase().endsWith(".toml");
    try {
      const found = await this.app.calls.ask(study ? "study" : "csv", study ? { toml: text } : { name: tableName(file.name), text });
      this.app.load(found.state);
      say(this.note, [`Read ${file.name}.`, ...(found.notes ?? [])].join(" "));
      this.noted = this.#read;
    } catch (error) {
      this.app.failed(error);
    }
  }

  /** The state, the list of tasks or the answers have changed. */
  update() {
    const { info, store } = this.app;
    const { state } = store;
    if (!info) return;
    const name = state.task.builtin ?? "";
    const built = `${info.version} ${name || state.title} ${info.tasks.length} ${!!state.contest?.relative} ${this.#started}`;
    if (built !== this.built) this.#build(name, built);
    for (const [place, field] of this.fields) {
      const value = get(state, place.split("."));
      field.show(Array.isArray(value) ? value[0] : value);
      field.complain(this.app.complaintAt(place));
    }
    this.fields.get("network.widths")?.note(this.#widthsGiven ? `${TRAINED}every gating has its own.` : null);
    this.fields.get("network.scale")?.note(this.#started ? `${TRAINED}the race begins at Start.` : null);
    this.fields.get("contest.criterion")?.note(state.contest?.relative ? "This is a share of the initial loss." : null);
    this.note.hidden = this.noted !== this.#read;
    this.#draw();
  }

  /** Which task or table is shown, so that what was said of a file is said of no other one. */
  get #read() {
    const { task, table, title } = this.app.store.state;
    return JSON.stringify([task.builtin, table?.name, table?.text.length, title]);
  }

  /** Whether the race has a start of its own, so that it does not depend on σ. */
  get #started() {
    return typeof this.app.store.state.contest?.start === "number";
  }

  /** Whether all gatings have widths of their own, so that the race does not depend on the network's. */
  get #widthsGiven() {
    const gatings = Object.values(this.app.store.state.gatings ?? {});
    return gatings.length > 0 && gatings.every((gating) => gating?.builtin || gating?.hidden !== undefined);
  }

  /** @param {string} name @param {string} built */
  #build(name, built) {
    this.built = built;
    const tasks = this.app.info?.tasks ?? [];
    const task = tasks.find((one) => one.name === name);
    const own = task ? [] : [h("option", { value: "" }, this.app.store.state.title || "a table")];
    this.list.replaceChildren(...own, ...tasks.map((one) => h("option", { value: one.name }, one.title)));
    this.list.value = name;
    say(this.about, task?.about ?? "");
    this.fields.clear();
    this.parameters.replaceChildren();
    this.network.replaceChildren();
    const relative = !!this.app.store.state.contest?.relative;
    const shown = NETWORK.filter(({ place }) => place !== "contest.start" || this.#started);
    for (const { place, ...param } of shown) this.#field(this.network, place, /** @type {Param} */ ({ name: place, ...param, ...(relative && place === "contest.criterion" ? RELATIVE : {}) }));
    for (const param of task?.parameters ?? []) this.#field(this.parameters, `task.parameters.${param.name}`, param);
  }

  #draw() {
    const data = this.app.data;
    if (!data || same(data, this.pictured)) return;
    this.pictured = data;
    const matrices = data.nodes.map((node) => ({ name: node.name, role: node.end, values: node.values }));
    const ends = /** @type {const} */ (["input", "output"]).map((end) => data.nodes.filter((node) => node.end === end));
    const groups = data.nodes.length > NAMED ? ends : data.nodes.map((node) => [node]);
    const names = groups.map((nodes) => {
      const name = nodes.length > 1 ? `${nodes[0].name} … ${nodes.at(-1)?.name}` : nodes[0]?.name;
      const label = h("span", { class: "node-name", title: nodes.map((node) => `${node.end} ${node.name}, ${node.size} features`).join("; ") }, name);
      label.style.flexGrow = String(nodes.reduce((sum, node) => sum + (node.values[0]?.length ?? 1), 0));
      return label;
    });
    this.picture.replaceChildren(h("div", { class: "node-names", "aria-hidden": "true" }, ...names), dataPicture(matrices, data.nodes[0]?.values.length ?? data.samples));
    say(this.sentence, described(data));
  }

  /** What a sample is, in words. @param {number} sample */
  named(sample) {
    return sampleNamed(sample, this.app.data?.labels ?? {});
  }
}

/** What the data are, and how the picture shows them. @param {Data} data */
function described(data) {
  const ends = /** @type {const} */ (["input", "output"]).map((end) => {
    const nodes = data.nodes.filter((node) => node.end === end);
    const sizes = new Set(nodes.map((node) => node.size));
    if (nodes.length > 1 && sizes.size === 1) return `${end}s ${nodes[0].name} to ${nodes.at(-1)?.name} of ${count(nodes[0].size, "number")} each`;
    return `${end} ${listed(nodes.map((node) => `${node.name} of ${count(node.size, "number")}`))}`;
  });
  const labels = Object.keys(data.labels);
  const cut = data.nodes.filter((node) => node.cut).map((node) => `Of ${node.name} only the first ${node.values[0].length} are drawn.`);
  const how = `One column per sample${isSquares(data) ? "; hollow is negative" : ""}.`;
  return [`${data.samples} samples: ${ends.join(", ")}.`, labels.length > 0 && `Labels: ${listed(labels)}.`, how, ...cut].filter(Boolean).join(" ");
}

/** A name of a table that the server takes: other characters become "_". @param {string} name */
function tableName(name) {
  const stem = name.replace(/\.csv$/i, "").normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^A-Za-z0-9_ -]/g, "_").slice(0, 60);
  return `${/^[A-Za-z0-9_]/.test(stem) ? "" : "table"}${stem}.csv`;
}
