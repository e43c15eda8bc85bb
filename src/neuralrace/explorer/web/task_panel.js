// The task: which one, its parameters, the network that is trained on it, and the data as a picture.
// @ts-check
import { ColumnsPanel } from "./columns_panel.js";
import { count, h, listed, say, unique } from "./dom.js";
import { fieldOf } from "./fields.js";
import { isStarted, networkKnobs, taskKnobs } from "./knobs.js";
import { dataPicture, isSquares, sampleNamed } from "./picture.js";
import { get, same, set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Param} Param */
/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./fields.js").Field} Field */
/** @typedef {import("./knobs.js").Knob} Knob */

/** What is said below a number on which the race does not depend. */
const TRAINED = "Only trained networks use this: ";

/** Nodes that are named one by one beside the picture at most, and rows of a table. */
const NAMED = 4;
const ROWS = 24;

/** Input columns whose scales are not folded away at most. */
const FEW = 4;

/** Whether a number is the factor of an input column. @param {Knob} knob */
const isScale = ({ place }) => place.startsWith("task.scale.");

/** How high a row with a name is where samples are many: as a share of the width of the picture. */
const HIGH = 0.08;

/** Bytes of a message that an archive may be: it is sent as text, four letters for three bytes. */
const PACKED = 0.7;

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
    this.file = h("input", { type: "file", accept: ".csv,.toml,.zip,text/csv", multiple: true, hidden: true, onchange: () => this.#chosen() });
    this.note = h("p", { class: "caption", role: "status" });
    this.noted = ""; // which task the note is about
    this.columns = new ColumnsPanel(app);
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
      this.columns.element,
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
    const files = [...(this.file.files ?? [])];
    this.file.value = "";
    if (files.length) await this.open(files);
  }

  /** Read dropped or chosen files: a table, a study, both, or an archive of both. @param {File[]} files */
  async open(files) {
    const ending = (/** @type {string} */ end) => files.find((file) => file.name.toLowerCase().endsWith(end));
    const [archive, study] = [ending(".zip"), ending(".toml")];
    const file = archive ?? study ?? files[0];
    const { table = 1_000_000, message = 1_000_000 } = this.app.info?.limits ?? {};
    const most = archive ? PACKED * message : table;
    const large = files.find((one) => one.size > most);
    if (large) return this.app.tell(`${large.name} has ${large.size} bytes; at most ${most} can be read.`, true);
    try {
      const found = await this.#asked(file, archive ? "zip" : study ? "toml" : "csv", ending(".csv"));
      this.app.load(found.state);
      if (file !== archive && file !== study) this.columns.open();
      say(this.note, [`Read ${file.name}.`, ...(found.notes ?? [])].join(" "));
      this.noted = this.#read;
    } catch (error) {
      this.app.failed(error);
    }
  }

  /** @param {File} file @param {"zip" | "toml" | "csv"} kind @param {File | undefined} beside the table of a study */
  async #asked(file, kind, beside) {
    const { calls, store } = this.app;
    if (kind === "zip") return calls.ask("study", { zip: await base64(file) });
    const text = await file.text();
    if (kind === "csv") return calls.ask("csv", { name: file.name, text });
    const table = beside ? { name: beside.name, text: await beside.text() } : store.state.table; // the one that is open
    return calls.ask("study", { toml: text, ...(table ? { table } : {}) });
  }

  /** The state, the list of tasks or the answers have changed. */
  update() {
    const { info, store } = this.app;
    const { state } = store;
    if (!info) return;
    const name = state.task.builtin ?? "";
    const knobs = { task: taskKnobs(this.app), network: networkKnobs(this.app) };
    const built = JSON.stringify([info.version, name || state.title, info.tasks.length, knobs]);
    if (built !== this.built) this.#build(name, built, knobs);
    for (const [place, field] of this.fields) {
      const value = get(state, place.split("."));
      field.show(Array.isArray(value) ? value[0] : value);
      field.complain(this.app.complaintAt(place));
    }
    this.fields.get("network.widths")?.note(this.#widthsGiven ? "The candidates do not use this, each has its own; trained networks do, and the gates that they align to." : null);
    this.fields.get("network.scale")?.note(isStarted(state) ? `${TRAINED}the race begins at Start.` : null);
    this.fields.get("contest.criterion")?.note(state.contest?.relative ? "This is a share of the initial loss." : null);
    this.note.hidden = this.noted !== this.#read;
    this.columns.update();
    this.#draw();
  }

  /** Which task or table is shown, so that what was said of a file is said of no other one. */
  get #read() {
    const { task, table, title } = this.app.store.state;
    return JSON.stringify([task.builtin, table?.name, table?.text.length, title]);
  }

  /** Whether all gatings have widths of their own, so that the race does not depend on the network's. */
  get #widthsGiven() {
    const gatings = Object.values(this.app.store.state.gatings ?? {});
    return gatings.length > 0 && gatings.every((gating) => gating?.builtin || gating?.hidden !== undefined);
  }

  /** @param {string} name @param {string} built @param {{ task: Knob[], network: Knob[] }} knobs */
  #build(name, built, knobs) {
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
    const scales = h("div", { class: "fields" });
    for (const knob of knobs.network) this.#field(this.network, knob.place, knob);
    for (const knob of knobs.task) this.#field(isScale(knob) ? scales : this.parameters, knob.place, knob);
    const columns = knobs.task.filter(isScale).length;
    if (columns) this.parameters.append(h("details", { class: "more", open: columns <= FEW }, h("summary", {}, "Scale of the inputs"), scales));
  }

  #draw() {
    const data = this.app.data;
    const shown = [data, this.app.store.state.task.standardise];
    if (!data || same(shown, this.pictured)) return;
    this.pictured = shown;
    const matrices = data.nodes.map((node) => ({ name: node.name, role: node.end, values: node.values }));
    const rows = data.nodes.reduce((sum, node) => sum + (node.values[0]?.length ?? 0), 0);
    const byRow = isSquares(data) && rows <= ROWS && data.nodes.every((node) => node.features.length === node.values[0]?.length);
    const names = byRow ? rowNames(data) : nodeNames(data);
    const samples = data.nodes[0]?.values.length ?? data.samples;
    const picture = dataPicture(matrices, samples, byRow ? Math.max(1, HIGH * samples) : 1);
    this.picture.classList.toggle("by-row", byRow);
    this.picture.replaceChildren(h("div", { class: "node-names", "aria-hidden": "true" }, ...names), picture);
    say(this.sentence, described(data, !!shown[1]));
  }

  /** What a sample is, in words. @param {number} sample */
  named(sample) {
    return sampleNamed(sample, this.app.data?.labels ?? {});
  }
}

/** A name beside every row of the picture. @param {Data} data */
function rowNames(data) {
  return data.nodes.map((node) => {
    const group = h("span", { class: "row-names" }, ...node.features.map((feature) => h("span", { title: `${node.end} ${feature}` }, feature)));
    group.style.flexGrow = String(node.features.length);
    return group;
  });
}

/** A name beside every node, or beside each end where nodes are many. @param {Data} data */
function nodeNames(data) {
  const ends = /** @type {const} */ (["input", "output"]).map((end) => data.nodes.filter((node) => node.end === end));
  const groups = data.nodes.length > NAMED ? ends : data.nodes.map((node) => [node]);
  return groups.map((nodes) => {
    const name = nodes.length > 1 ? `${nodes[0].name} … ${nodes.at(-1)?.name}` : nodes[0]?.name;
    const label = h("span", { class: "node-name", title: nodes.map((node) => `${node.end} ${node.name}, ${node.size} features`).join("; ") }, name);
    label.style.flexGrow = String(nodes.reduce((sum, node) => sum + (node.values[0]?.length ?? 1), 0));
    return label;
  });
}

/** What the data are, and how the picture shows them. @param {Data} data @param {boolean} standardised */
function described(data, standardised) {
  const ends = /** @type {const} */ (["input", "output"]).map((end) => {
    const nodes = data.nodes.filter((node) => node.end === end);
    const sizes = new Set(nodes.map((node) => node.size));
    if (nodes.length > 1 && sizes.size === 1) return `${end}s ${nodes[0].name} to ${nodes.at(-1)?.name} of ${count(nodes[0].size, "number")} each`;
    return `${end} ${listed(nodes.map((node) => `${node.name} of ${count(node.size, "number")}`))}`;
  });
  const labels = Object.keys(data.labels);
  const cut = data.nodes.filter((node) => node.cut).map((node) => `Of ${node.name} only the first ${node.values[0].length} are drawn.`);
  const how = `One column per sample${isSquares(data) ? "; hollow is negative" : ""}.`;
  return [`${data.samples} samples: ${ends.join(", ")}.`, standardised && "Inputs are standardised: mean 0, standard deviation 1, but columns of −1, 0 and 1 alone stay as they are.", labels.length > 0 && `Labels: ${listed(labels)}.`, how, ...cut].filter(Boolean).join(" ");
}

/** The bytes of a file in letters. @param {File} file */
async function base64(file) {
  let text = "";
  for (const byte of new Uint8Array(await file.arrayBuffer())) text += String.fromCharCode(byte);
  return btoa(text);
}
