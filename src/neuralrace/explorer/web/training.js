// ReLU networks that learn while one looks, and the prediction by types of neurons.
// @ts-check
import { same } from "./store.js";
import { Cancelled, Lost } from "./transport.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./types.js").Trained} Trained */

/**
 * When a network comes down to a loss, by a line between the moments on both sides; null if never.
 * @param {{ time: number[], loss: number[] }} seed
 * @param {number} criterion
 */
export function arrival({ time, loss }, criterion) {
  const after = loss.findIndex((value) => value <= criterion);
  if (after <= 0) return after < 0 ? null : time[0];
  const share = (loss[after - 1] - criterion) / (loss[after - 1] - loss[after]);
  return time[after - 1] + share * (time[after] - time[after - 1]);
}

export class Training {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {(Trained & { of: any }) | null} */
    this.trained = null;
    /** @type {any} */
    this.types = null;
  }

  /** Networks whose loss is drawn on the prediction: of this state, and over time, not over steps. */
  get compared() {
    const { trained } = this;
    return trained && !trained.stale && trained.clock === "time" ? trained : null;
  }

  /** What is said of trained networks; a sentence on another criterion is none. @returns {string[]} */
  get sentences() {
    const { trained } = this;
    if (!trained) return [];
    const steps = trained.clock === "step" && !trained.running ? ["An optimizer counts steps, not time: its loss is not drawn on the prediction."] : [];
    const { contest } = this.app.store.state;
    const other = !trained.running && trained.share === 1 && !same(trained.contest, contest);
    return [...(other ? ["The criterion has changed since the training; the lane shows when it is reached now."] : trained.sentences), ...steps];
  }

  /** The sections on which a trained network depends. */
  get #sections() {
    const { task, table, network, training } = this.app.store.state;
    return { task, table, network, training };
  }

  /** The state has changed: a network of another state is no longer compared with the prediction. */
  changed() {
    const { trained } = this;
    const now = this.#sections;
    if (trained && !same(trained.of, now)) {
      if (trained.running) this.app.calls.cancel("train");
      this.trained = { ...trained, running: false, stale: true };
    } else if (trained?.stale) this.trained = { ...trained, stale: false };
    if (this.types && !same(this.types.of, now)) {
      if (this.types.running) this.app.calls.cancel("types");
      this.types = null;
    }
  }

  /** Train, or stop. */
  toggle() {
    if (!this.trained?.running) return this.train();
    this.app.calls.cancel("train");
    this.trained = { ...this.trained, running: false, sentences: ["Stopped."] };
    this.app.refresh();
  }

  /** Begin again what was interrupted when the server went away. */
  resume() {
    if (this.trained?.running) this.train();
    if (this.types?.running) this.predictTypes();
  }

  async train() {
    const { app } = this;
    const of = this.#sections;
    /** @type {Trained & { of: any }} */
    const mine = { seeds: [], gates: [], share: 0, running: true, stale: false, sentences: [], clock: "time", contest: app.store.state.contest, of };
    this.trained = mine;
    app.refresh();
    try {
      const end = await app.calls.ask("train", { state: app.sent }, (name, result) => {
        if (this.trained !== mine) return;
        this.#part(mine, name, result);
        app.refresh();
      });
      if (this.trained === mine) this.trained = { ...mine, running: false, share: 1, sentences: end.sentences ?? [] };
    } catch (error) {
      const gone = error instanceof Lost; // it is trained again when the server is back
      if (this.trained === mine && !gone) this.trained = { ...mine, running: false, sentences: [error instanceof Cancelled ? "Stopped." : "Training failed."] };
      app.failed(error);
    }
    app.lengthen();
    app.refresh();
  }

  /** @param {Trained} mine @param {string} name @param {any} result */
  #part(mine, name, result) {
    if (name === "begin") mine.clock = result.clock;
    if (name === "begin") mine.seeds = Array.from({ length: result.seeds }, () => ({ time: [], loss: [] }));
    if (name === "gates") mine.gates.push(result);
    if (name !== "chunk") return;
    mine.seeds[result.seed].time.push(...result.time);
    mine.seeds[result.seed].loss.push(...result.loss);
    mine.share = result.share;
  }

  /** Predict by types of neurons. */
  async predictTypes() {
    const { app } = this;
    const mine = { running: true, of: this.#sections };
    this.types = mine;
    app.refresh();
    try {
      const found = await app.calls.ask("types", { state: app.sent });
      if (this.types === mine) this.types = { ...found, of: mine.of };
    } catch (error) {
      if (this.types === mine && !(error instanceof Lost)) this.types = null;
      app.failed(error);
    }
    app.refresh();
  }
}
