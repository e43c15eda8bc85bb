// The candidates and their gates: which pathway is on for which sample, painted by hand.
// @ts-check
import { Candidates, isName, NAMED } from "./candidates.js";
import { button, h, listed, percent, say, unique } from "./dom.js";
import { fieldOf, plain } from "./fields.js";
import { GraphView } from "./graph.js";
import { hue } from "./look.js";
import { same, set } from "./store.js";
import { Strip } from "./strip.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Gating} Gating */
/** @typedef {import("./types.js").Predicted} Predicted */

/** A share of the drive of a pathway that is lost on one sample, from which on the sample is marked. */
const DOUBT = 0.02;

/** Pathways of a gating at most, until the server has said it. */
const MOST = 64;

/** Samples, or values of a label, that are named one by one below the strips at most. */
const FEW = 16;

/** Up to this many samples are all numbered above the strips; of more, the first and every fifth. */
const DIGITS = 9;

/** Strips of more samples than this have a line of their own. */
const LONG = 24;

/** What a kept share is, and how those of pathways make that of the gating. */
const KEPT = "The share of the gates that a ReLU network would keep, over the fall of the loss. The share of the gating is the mean of its pathways, weighted by strength: each counts by how much of the weights it has.";

/** Why gates that networks had need not be kept. */
const FOUND = "These gates were found in trained networks and rounded to constant ones. The gates of the networks change while they learn, so that these may take another time, and may not be kept.";

export class GatesPanel {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.candidates = new Candidates(app);
    this.graph = new GraphView((node) => this.#mark(node));
    this.rows = h("ul", { class: "pathways" });
    this.axis = h("p", { class: "caption pointed", "aria-hidden": "true" });
    this.verdict = h("p", { class: "verdict", role: "status", title: KEPT });
    this.found = h("p", { class: "caption", hidden: true }, FOUND);
    this.message = h("div", { class: "message", role: "alert", hidden: true });
    const paint = unique("paint");
    this.paint = h("select", { id: paint, onchange: () => app.store.look({ paint: this.paint.value }) });
    this.parameters = h("div", { class: "fields" });
    /** @type {Map<string, import("./fields.js").Field>} */
    this.fields = new Map();
    this.fieldsOf = "";
    this.samples = h("div", { class: "samples", "aria-hidden": "true" });
    this.add = h("button", { type: "button", class: "quiet", onclick: () => this.#addPathway() }, "Add a pathway");
    /** @type {Map<string, { strip: Strip, row: HTMLElement, width: HTMLInputElement, kept: HTMLElement, name: HTMLInputElement }>} */
    this.strips = new Map();
    /** @type {{ name: string, sample: number } | null} what is under the pointer */
    this.at = null;
    this.full = h("span", { class: "caption" });
    this.never = h("p", { class: "message never", role: "status", hidden: true });
    this.element = h(
      "section",
      { class: "panel gates", "aria-label": "Network and gates" },
      h("h2", {}, h("span", { class: "letter" }, "B"), "Network and gates"),
      this.candidates.element,
      this.graph.element,
      h(
        "div",
        { class: "row tools" },
        h("span", { class: "row" }, h("label", { for: paint }, "Switch gates by"), this.paint),
        this.add,
        this.full
      ),
      this.rows,
      this.never,
      this.parameters,
      this.axis,
      this.message,
      this.verdict,
      this.found
    );
  }

  /** The name of the gating that is shown. */
  get chosen() {
    return this.candidates.chosen;
  }

  /** The gating as it can be edited, or null. @returns {Gating | null} */
  get editable() {
    const given = this.app.store.state.gatings?.[this.chosen];
    if (given?.masks && Object.values(given.masks).every(Array.isArray)) return given;
    return this.app.predicted?.gatings[this.chosen]?.editable ?? null;
  }

  update() {
    const { app } = this;
    this.candidates.update();
    const name = this.chosen;
    const prediction = app.predicted?.gatings[name];
    const failure = app.predicted?.failed[name];
    if (failure) {
      const text = [failure.what, failure.got && `got ${failure.got}`, failure.fix].filter(Boolean).join("; ");
      const sentence = text.charAt(0).toUpperCase() + text.slice(1);
      if (this.message.firstChild?.textContent !== sentence) this.message.replaceChildren(h("p", {}, sentence));
    }
    if (prediction) this.graph.show(prediction.graph, prediction.gates);
    this.graph.element.classList.toggle("old", !prediction);
    this.#parameters();
    this.#paintings();
    this.#pathways();
    this.message.hidden = !failure || !this.never.hidden;
    this.#samples();
    this.#caption();
    this.#kept();
    this.found.hidden = !app.store.state.view?.found?.some((found) => same(found, app.store.state.gatings?.[name]));
  }

  /** @param {string | null} node */
  #mark(node) {
    this.graph.mark(node);
    for (const [name, { row }] of this.strips) row.classList.toggle("marked", name === node);
  }

  /** Fields for the parameters of a gating of the task's own list. */
  #parameters() {
    const { app } = this;
    const name = this.chosen;
    const gating = app.store.state.gatings?.[name];
    const known = app.info?.tasks.flatMap((task) => task.gatings).find((one) => one.name === gating?.builtin);
    const of = `${name} ${gating?.builtin} ${known?.parameters.length}`;
    if (of !== this.fieldsOf) {
      this.fieldsOf = of;
      this.fields.clear();
      for (const param of known?.parameters ?? []) {
        const place = ["gatings", name, "parameters", param.name];
        this.fields.set(param.name, fieldOf({ ...param, default: param.kind === "choice" ? undefined : param.default }, (value) => app.store.change((state) => set(state, place, value), place.join("."))));
      }
      this.parameters.replaceChildren(...[...this.fields.values()].map((field) => field.element));
    }
    for (const [param, field] of this.fields) {
      field.show(gating?.parameters?.[param]);
      const failure = app.predicted?.failed[name];
      field.complain(failure?.key === `gatings.${name}.parameters.${param}` ? failure.what : null);
    }
  }

  /** What is where on the strips: numbers of samples, or values of a label where samples are many. */
  #samples() {
    const samples = this.app.data?.samples ?? 0;
    const painted = this.paint.value;
    const labels = Object.entries(this.app.data?.labels ?? {}).filter(([name]) => name !== "sample");
    const runs = (/** @type {any[]} */ values) => {
      /** @type {{ value: any, length: number }[]} */
      const found = [];
      for (const value of values) {
        const last = found.at(-1);
        if (last && last.value === value) last.length++;
        else found.push({ value, length: 1 });
      }
      return found;
    };
    labels.sort(([a], [b]) => Number(b === painted) - Number(a === painted));
    const [label, parts] = samples <= FEW ? ["", []] : labels.map(([name, values]) => /** @type {const} */ ([name, runs(values)])).find(([, found]) => found.length > 1 && found.length <= FEW) ?? ["", []];
    this.samples.parentElement?.classList.toggle("long", samples > LONG);
    const text = JSON.stringify([samples, label, parts]);
    if (this.samples.dataset.text === text) return;
    this.samples.dataset.text = text;
    const numbers = samples <= FEW ? Array.from({ length: samples }, (_, i) => h("span", {}, samples <= DIGITS || i === 0 || (i + 1) % 5 === 0 ? i + 1 : "")) : [h("span", {}, `1 to ${samples}`)];
    const spans = parts.map(({ value, length }) => {
      const span = h("span", { title: `${label} ${value}` }, String(value));
      span.style.flexGrow = String(length);
      return span;
    });
    this.samples.replaceChildren(h("b", {}, label || "sample"), h("div", { class: spans.length ? "ticks" : "ticks numbers" }, ...(spans.length ? spans : numbers)));
  }

  #paintings() {
    const labels = Object.entries(this.app.data?.labels ?? {}).filter(([label]) => label !== "sample");
    const names = ["sample", ...labels.map(([label]) => label)];
    if (!same([...this.paint.options].map((option) => option.value), names))
      this.paint.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    const wanted = this.app.store.state.view?.paint ?? "sample";
    this.paint.value = names.includes(wanted) ? wanted : "sample";
  }

  /** The samples that switch together with one. @param {number} sample */
  #together(sample) {
    const values = this.paint.value === "sample" ? null : this.app.data?.labels[this.paint.value];
    if (!values) return [sample];
    return values.map((value, i) => (value === values[sample] ? i : -1)).filter((i) => i >= 0);
  }

  #pathways() {
    const { app } = this;
    const chosen = this.chosen;
    const editable = this.editable;
    const shown = app.predicted?.gatings[chosen]?.pathways ?? [];
    const given = editable?.masks
      ? Object.entries(editable.masks).map(([name, mask]) => ({ name, mask: /** @type {number[]} */ (mask) }))
      : shown.map(({ name, mask }) => ({ name, mask }));
    const most = app.info?.limits.pathways ?? MOST;
    this.add.disabled = !editable || given.length >= most;
    say(this.full, given.length >= most ? `${most} pathways at most` : "");
    const off = given.filter(({ mask }) => !mask.some((gate) => gate > 0)).map(({ name }) => name);
    this.never.hidden = !off.length;
    if (off.length) say(this.never, `${listed(off)} ${off.length > 1 ? "are" : "is"} on for no sample, so ${off.length > 1 ? "they learn" : "it learns"} nothing. Switch a gate on, or remove the pathway.`);
    const names = given.map(({ name }) => name);
    if (!same([...this.strips.keys()], names)) this.#makeRows(names);
    given.forEach(({ name, mask }, i) => {
      const made = this.strips.get(name);
      if (!made) return;
      const branch = shown.find((pathway) => pathway.name === name)?.branch ?? i;
      if (!made.row.classList.contains(hue(branch))) made.row.className = `pathway ${hue(branch)}`;
      made.row.classList.toggle("long", mask.length > LONG);
      made.strip.options.paint = editable ? (gates, done) => this.#painted(name, gates, done) : undefined;
      const kept = app.keptNow?.gatings[chosen]?.pathways[name];
      made.strip.show(mask, kept?.lost.map((lost) => lost > DOUBT) ?? []);
      const width = widthOf(editable, name) ?? shown.find((pathway) => pathway.name === name)?.width;
      if (document.activeElement !== made.width || !made.width.dataset.typed) made.width.value = plain(width ?? NaN);
      made.width.disabled = made.name.disabled = !editable;
      const share = kept?.share;
      const low = share !== undefined && share !== null && share < (app.keptNow?.threshold ?? 0.9);
      const never = !mask.some((gate) => gate > 0);
      const unknown = app.keptNow || app.predicted?.failed[chosen] ? "–" : "…";
      say(made.kept, never ? "⚠ all off" : share === undefined || share === null ? unknown : `${low ? "⚠ " : ""}${percent(share)}`);
      made.kept.classList.toggle("low", low || never);
      made.kept.title = never ? "This pathway is on for no sample: switch a gate on, or remove the pathway." : low ? "A ReLU network would not keep these gates; crossed samples are those it would switch." : "the share of these gates that a ReLU network would keep";
    });
  }

  /** @param {string[]} names */
  #makeRows(names) {
    const before = [...this.strips.values()];
    const at = before.findIndex(({ row }) => row.contains(document.activeElement)); // the row with the focus
    const column = at < 0 ? -1 : [...before[at].row.children].findIndex((child) => child === document.activeElement);
    const focused = [...this.strips.keys()][at];
    this.strips.clear();
    this.at = null;
    const rows = names.map((name, i) => {
      const strip = new Strip({
        name, hue: hue(i), together: (sample) => this.#together(sample), named: (sample) => this.app.named(sample),
        point: (sample) => this.#pointed(name, sample),
      });
      const field = h("input", { class: "name", value: name, title: name, "aria-label": `Name of the pathway ${name}`, maxlength: 40, onchange: () => this.#renamePathway(name, field) });
      const width = h("input", { class: "number", inputmode: "numeric", "aria-label": `Neurons of ${name}`, title: "neurons", onchange: () => this.#width(name, width) });
      const kept = h("span", { class: "kept" });
      const remove = button("×", () => this.#edit(name, undefined), { class: "remove", "aria-label": `Remove the pathway ${name}`, disabled: names.length < 2 });
      const row = h("li", { class: "pathway" }, field, width, strip.element, kept, remove);
      this.strips.set(name, { strip, row, width, kept, name: field });
      return row;
    });
    const head = h("li", { class: "pathway head", "aria-hidden": "true" }, h("span", {}, "pathway"), h("span", {}, "neurons"), this.samples, h("span", { title: KEPT }, "kept"), h("span", {}));
    this.rows.replaceChildren(head, ...rows);
    const row = at < 0 ? undefined : this.strips.get(focused) ?? [...this.strips.values()][Math.min(at, names.length - 1)];
    const same = row?.row.children[column];
    if (row) (same instanceof HTMLElement && !same.matches(":disabled") ? same : row.strip.element).focus();
  }

  /** @param {string} name @param {number | null} sample */
  #pointed(name, sample) {
    this.#mark(sample === null ? null : name);
    this.at = sample === null ? null : { name, sample };
    this.#caption();
  }

  /** What is under the pointer; where nothing is, what can be done with the strips that are shown. */
  #caption() {
    const { at } = this;
    const gate = at && this.strips.get(at.name)?.strip.gates[at.sample];
    if (at && gate !== null && gate !== undefined) return say(this.axis, `${this.app.named(at.sample)}: ${at.name} is ${gate > 0 ? "on" : "off"}`);
    if (!this.strips.size) return say(this.axis, "");
    say(this.axis, this.editable ? "Click or drag on a strip to switch gates." : "These gates are on inputs, outputs or edges: they can be looked at, not painted.");
  }

  #kept() {
    const { app } = this;
    const kept = app.keptNow;
    const one = kept?.gatings[this.chosen];
    this.verdict.classList.toggle("low", ["not kept", "not reached", "outrun"].includes(one?.standing ?? ""));
    if (app.predicted?.failed[this.chosen]) return say(this.verdict, "");
    if (!kept) return say(this.verdict, app.keptFailed ?? "Asking whether a ReLU network would keep these gates …");
    if (!one) return say(this.verdict, "");
    const low = Object.values(one.pathways).some((pathway) => pathway.share !== null && pathway.share < kept.threshold);
    const mean = low && one.standing !== "not kept" ? ": the mean of its pathways, weighted by strength" : "";
    const share = one.share === null ? "" : ` (${percent(one.share)} kept${mean})`;
    const why = one.detail ? `: ${one.detail}` : "";
    const texts = {
      kept: `A ReLU network would keep these gates${share}.`,
      outrun: `» A ReLU network could keep these gates${share}, but they are outrun ${one.detail}.`,
      "not reached": `⚠ A ReLU network could keep these gates${share}, but its neurons align to others first${why}.`,
      "not kept": `⚠ A ReLU network would not keep these gates${share}${why}.`,
      unknown: `Whether a ReLU network would keep these gates is not known${why}.`,
    };
    say(this.verdict, texts[one.standing]);
  }

  /**
   * Put other masks into the chosen gating, which becomes one of masks if it was not.
   * @param {string} pathway
   * @param {number[] | undefined} gates
   * @param {string} [what]
   */
  #edit(pathway, gates, what = "") {
    const chosen = this.chosen;
    const editable = this.editable;
    if (!editable) return;
    let made = set(editable, ["masks", pathway], gates);
    if (gates === undefined)
      for (const part of /** @type {const} */ (["hidden", "inputs", "outputs"]))
        if (made[part] && typeof made[part] === "object") made = set(made, [part, pathway], undefined);
    this.app.store.change((state) => set(set(state, ["gatings", chosen], made), ["view", "gating"], chosen), what);
  }

  /** @param {string} name @param {number[]} gates @param {boolean} done */
  #painted(name, gates, done) {
    this.#edit(name, gates.map((gate) => (gate > 0 ? 1 : 0)), done ? "" : `paint ${name}`);
  }

  #addPathway() {
    const editable = this.editable;
    if (!editable?.masks) return;
    let n = 1;
    while (`path${n}` in editable.masks) n++;
    const name = `path${n}`;
    const widths = typeof editable.hidden === "object" ? Object.values(editable.hidden) : [];
    const samples = this.app.data?.samples ?? Object.values(editable.masks)[0].length;
    let made = set(editable, ["masks", name], Array(samples).fill(1));
    if (widths.length) made = set(made, ["hidden", name], Math.round(widths.reduce((a, b) => a + b, 0) / widths.length));
    this.app.store.change((state) => set(set(state, ["gatings", this.chosen], made), ["view", "gating"], this.chosen));
  }

  /** @param {string} name @param {HTMLInputElement} field */
  #renamePathway(name, field) {
    const after = field.value.trim();
    const editable = this.editable;
    if (!editable?.masks || after === name) return;
    if (!isName(after) || after in editable.masks) {
      field.value = name;
      return this.app.tell(NAMED, true);
    }
    const renamed = (/** @type {any} */ table) => table && typeof table === "object" ? Object.fromEntries(Object.entries(table).map(([key, value]) => [key === name ? after : key, value])) : table;
    const made = { ...editable };
    for (const part of /** @type {const} */ (["masks", "hidden", "inputs", "outputs"])) if (made[part]) made[part] = renamed(made[part]);
    this.app.store.change((state) => set(set(state, ["gatings", this.chosen], made), ["view", "gating"], this.chosen));
  }

  /** @param {string} name @param {HTMLInputElement} field */
  #width(name, field) {
    const value = Number(field.value);
    const editable = this.editable;
    if (!editable?.masks) return;
    if (!Number.isInteger(value) || value < 1) {
      field.value = String(widthOf(editable, name) ?? "");
      return this.app.tell("A pathway has a whole number of neurons, at least 1.", true);
    }
    const widths = Object.fromEntries(Object.keys(editable.masks).map((key) => [key, widthOf(editable, key) ?? this.app.predicted?.gatings[this.chosen]?.pathways.find((one) => one.name === key)?.width ?? value]));
    const made = { ...editable, hidden: { ...widths, [name]: value } };
    this.app.store.change((state) => set(state, ["gatings", this.chosen], made), `width ${name}`);
  }

  /** @type {{ of: Predicted | null, most: number }} */
  #scale = { of: null, most: 0 };

  /** The largest strength of any pathway of any candidate: the scale of all lines. @param {Predicted} predicted */
  #strongest(predicted) {
    if (this.#scale.of !== predicted) {
      const most = Object.values(predicted.gatings).flatMap(({ pathways }) => pathways.flatMap(({ strength }) => strength)).reduce((a, b) => Math.max(a, b ?? 0), 0);
      this.#scale = { of: predicted, most };
    }
    return this.#scale.most;
  }

  /** Where the race is now: edges grow with the strength of their pathway. @param {number} time */
  setTime(time) {
    const { app } = this;
    const prediction = app.predicted?.gatings[this.chosen];
    if (!prediction || !app.predicted) return;
    const index = app.indexAt(time);
    const most = this.#strongest(app.predicted);
    const shares = new Map(
      prediction.pathways.flatMap(({ name, nodes, strength }) => {
        const share = most > 0 ? (strength[index] ?? 0) / most : 0;
        return (nodes ?? [name]).map((node) => /** @type {const} */ ([node, share]));
      })
    );
    this.graph.setStrength((node) => shares.get(node) ?? null);
  }
}

/** @param {Gating | null} gating @param {string} name */
function widthOf(gating, name) {
  if (typeof gating?.hidden === "number") return gating.hidden;
  return gating?.hidden?.[name];
}
