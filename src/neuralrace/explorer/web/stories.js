// Three guided stories: what to look at, in which order, with pieces that are alive.
// @ts-check
import { percent, shown } from "./dom.js";
import { set } from "./store.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").State} State */

/**
 * A piece of text: words, a slider of the state, a number that follows, or something to do.
 * @typedef {string | { slider: string } | { live: (app: App) => string } | { action: string, act: (app: App) => void }} Piece
 */

/**
 * @typedef {object} Step
 * @property {string} title
 * @property {Piece[][]} text paragraphs
 * @property {(app: App) => State | null} [begin] the state that the step begins with
 */

/** @typedef {{ name: string, title: string, about: string, steps: Step[] }} Story */

/** The first state of a task. @param {App} app @param {string} name @returns {State | null} */
const of = (app, name) => app.info?.tasks.find((task) => task.name === name)?.state ?? null;

/** @param {State | null} state @param {Record<string, any>} values by dotted key */
function with_(state, values) {
  return state && Object.entries(values).reduce((made, [place, value]) => set(made, place.split("."), value), state);
}

/** @type {(name: string) => Piece} */
const time = (name) => ({ live: (app) => shown(app.predicted?.gatings[name]?.time ?? null) });

/** @type {Piece} */
const winner = { live: (app) => app.predicted?.winner ?? "nobody" };

/** @type {Piece} */
const play = { action: "Play the race", act: (app) => app.race.toggle() };

/** @type {Piece} */
const train = { action: "Train ReLU networks", act: (app) => app.train() };

const XOR = { linear: { builtin: "linear_pathways" }, xor: { builtin: "xor_pathways" } };

const DECISION = {
  answer: { masks: { left: "y < 0", right: "y > 0" } },
  context: { each: "context" },
};

/** @type {Story[]} */
export const STORIES = [
  {
    name: "xor",
    title: "XoR, from linear to nonlinear",
    about: "One number decides whether a network solves XoR with a line or sample by sample.",
    steps: [
      {
        title: "Four points",
        begin: (app) => with_(of(app, "extended_xor"), { "task.parameters.delta": 0.4, gatings: XOR }),
        text: [
          ["Four points at the corners of a square; the two diagonals have different answers. No line separates them. That is XoR."],
          ["Now a third coordinate is added, +Δ for one class and −Δ for the other. With it, a plane separates the classes."],
          [{ slider: "task.parameters.delta" }],
          ["So there are two ways to learn this task. One uses the new coordinate; the other learns each point by itself. Which one comes first?"],
        ],
      },
      {
        title: "Two ways, two gatings",
        text: [
          ["A gated network makes the two ways explicit. In ", "linear", ", one pathway is on for each class. In ", "xor", ", one pathway is on for each point. Look at the strips under B: a filled cell means that the pathway is on for that sample."],
          ["Each gating is a set of equations that can be solved before anything is trained. The first to bring its loss down to the criterion wins the race."],
          [play],
        ],
      },
      {
        title: "The winner changes",
        text: [
          ["Move Δ slowly up, and watch the lanes."],
          [{ slider: "task.parameters.delta" }],
          ["xor arrives at t = ", time("xor"), ", linear at t = ", time("linear"), ". First is ", winner, "."],
          ["The two are level at Δ = √(2/3) ≈ 0.8165. There the larger coordinate has made the pathway of a class grow as fast as the pathway of a point."],
          [{ action: "Go to the crossover", act: (app) => app.store.change((state) => set(state, ["task", "parameters", "delta"], 0.8165), "delta") }],
        ],
      },
      {
        title: "Does a ReLU network agree?",
        text: [
          ["A ReLU network has no gates given to it: each neuron switches itself. Train one, and its loss is drawn on the prediction."],
          [train],
          ["Under D its neurons are sorted by the samples for which they are on. Compare with the winner's strips."],
          [{ slider: "task.parameters.delta" }],
        ],
      },
      {
        title: "Your own gates",
        text: [
          ["Click a cell of a strip to switch that gate, and see what it costs. The column “kept” says which share of the gates a ReLU network would keep; a cross marks a sample on which it would not."],
          ["Undo takes everything back, and the address of this page holds the state, so that a reload brings it back. The address works on this machine only: to share what you found, use Save study."],
        ],
      },
    ],
  },
  {
    name: "contexts",
    title: "Contexts, and when the contest is wrong",
    about: "The fastest gating wins, unless a ReLU network cannot keep it.",
    steps: [
      {
        title: "Two streams and a cue",
        begin: (app) => with_(of(app, "context_decision"), { "task.parameters.cue": 1, gatings: DECISION, "contest.criterion": 0.5, "contest.relative": true }),
        text: [
          ["Two streams of evidence, and a cue that says which of them counts: report the sign of that stream."],
          ["Two gatings come to mind. One pathway per ", "answer", ", or one per ", "context", ". The cue can be weak or strong:"],
          [{ slider: "task.parameters.cue" }],
          ["First is ", winner, ", at t = ", { live: (app) => shown(app.predicted?.gatings[app.predicted?.winner ?? ""]?.time ?? null) }, "."],
        ],
      },
      {
        title: "A gating must be kept",
        text: [
          ["A gated network obeys any gates. A ReLU network makes its own: it keeps a gating only if the weights which that gating learns produce the same gates."],
          [{ live: (app) => app.keptNow?.sentences[0] ?? "Asking …" }],
          ["Of the gates of answer, ", { live: (app) => percent(app.keptNow?.gatings.answer?.share) }, " would be kept; of context, ", { live: (app) => percent(app.keptNow?.gatings.context?.share) }, ". Crosses on the strips show where they break."],
        ],
      },
      {
        title: "What happens instead",
        text: [
          ["Small neurons align to gates of their own before the loss moves. These can be computed from the data alone."],
          [{ action: "Add the aligned gates", act: (app) => app.fetchGating("aligned") }],
          ["Now train, and see which prediction the network follows."],
          [train],
        ],
      },
      {
        title: "A contest that is right",
        begin: (app) => of(app, "ring_classification"),
        text: [
          ["Not every contest is wrong. Here points on a circle belong to three classes, each an arc. There may be one pathway per class or one per point."],
          [play],
          ["First is ", winner, ". ", { live: (app) => app.keptNow?.sentences[0] ?? "Asking whether its gates are kept …" }],
        ],
      },
    ],
  },
  {
    name: "routing",
    title: "Routing and sharing",
    about: "Why a network that shares a pathway among routes learns faster.",
    steps: [
      {
        title: "Many routes",
        begin: (app) => of(app, "routing"),
        text: [
          ["One of several input domains shows an item; one of several output domains must report its properties. Gates open the route of each sample."],
          ["Every route could have a pathway of its own, or all could share one."],
          [{ slider: "task.parameters.M" }],
        ],
      },
      {
        title: "Sharing is faster",
        text: [
          ["A shared pathway is trained by every sample, a pathway of one route only by its own. Play the race and watch the lines grow: they are as thick as what the pathway has learned, on one scale for all pathways of both candidates."],
          [play],
          ["First is ", winner, "."],
        ],
      },
      {
        title: "Few equations",
        text: [
          ["All routes look alike, so they stay alike. However many domains there are, the race reduces to a few equations: see F."],
          [{ live: (app) => app.predicted?.gatings[app.gates.chosen]?.reduction ?? "" }],
          [{ slider: "task.parameters.M" }, { slider: "task.parameters.K" }],
          ["Change the number of domains, and see what happens to their number."],
        ],
      },
    ],
  },
];
