// The shapes of what the page and the server tell each other; no code.
// @ts-check

/**
 * A parameter of a task or of a gating, with its bounds.
 * @typedef {object} Param
 * @property {string} name
 * @property {string} label
 * @property {"number" | "integer" | "switch" | "choice"} kind
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [step]
 * @property {any} [default]
 * @property {any[]} [choices]
 * @property {string} [about]
 */

/**
 * @typedef {object} TaskInfo
 * @property {string} name
 * @property {string} title
 * @property {string} about
 * @property {Param[]} parameters
 * @property {{ name: string, short: string, about: string, gating: Gating, parameters: Param[] }[]} gatings
 * @property {State} state a whole state to begin with
 */

/**
 * A gating of a study: exactly one of masks, each, builtin and gates.
 * @typedef {object} Gating
 * @property {Record<string, number[] | string>} [masks]
 * @property {string} [each]
 * @property {string} [builtin]
 * @property {Record<string, any>} [parameters]
 * @property {Record<string, number[] | string>} [gates]
 * @property {number | Record<string, number>} [hidden]
 * @property {Record<string, string[]>} [inputs]
 * @property {Record<string, string[]>} [outputs]
 */

/**
 * What is looked at; no part of the study.
 * @typedef {object} View
 * @property {string} [gating] the one whose gates are edited
 * @property {number} [time] of the play head
 * @property {[number, number] | null} [zoom]
 * @property {boolean} [log]
 * @property {string} [paint] "sample", or the label by which gates are switched
 * @property {{ name: string, step: number } | null} [story]
 * @property {Gating[]} [found] gatings as they were found in trained networks
 * @property {Over[]} [over] what the phase diagram varies
 */

/**
 * The sections of a study, and the view.
 * @typedef {object} State
 * @property {string} [title]
 * @property {Record<string, any>} task
 * @property {Record<string, any>} [network]
 * @property {Record<string, Gating>} [gatings]
 * @property {Record<string, any>} [training]
 * @property {Record<string, any>} [contest]
 * @property {Record<string, any>} [predict]
 * @property {Record<string, any>} [phase_diagram]
 * @property {{ name: string, text: string }} [table]
 * @property {View} [view]
 */

/** @typedef {{ key: string, start: number, stop: number, count: number, log?: boolean, whole?: boolean }} Over */

/** @typedef {{ what: string, got?: string, wanted?: string, fix?: string, key?: string }} Failure */

/**
 * @typedef {object} Tasks
 * @property {TaskInfo[]} tasks
 * @property {State} state what to show first
 * @property {boolean} given
 * @property {Record<string, number>} limits
 * @property {string[]} [colours]
 * @property {string} version
 */

/** @typedef {{ name: string, text: boolean, values: number }} Column of a table: whether it holds text, and how many values */

/**
 * @typedef {object} Data
 * @property {number} samples
 * @property {{ name: string, end: "input" | "output", size: number, values: number[][], cut: boolean, features: string[] }[]} nodes
 * @property {Column[]} columns of the table that the task is from
 * @property {Record<string, (number | string | boolean)[]>} labels
 * @property {number} zero_loss
 * @property {string} sentence
 */

/** @typedef {{ name: string, width: number, mask: number[], expression?: string, branch: number, nodes?: string[], strength: number[] }} Pathway */

/** @typedef {{ name: string, scalar: boolean, drive: number, pathways: string[], strength: number[] | null, loss: number[] }} Mode */

/** @typedef {{ name: string, size: number, kind: "input" | "hidden" | "output", x: number, y: number, w: number, h: number, branch: number | null }} GraphNode */

/** @typedef {{ name: string, source: string, target: string, path: [number, number][], branch: number | null }} GraphEdge */

/** @typedef {{ width: number, height: number, nodes: GraphNode[], edges: GraphEdge[] }} Graph */

/**
 * @typedef {object} Prediction of one gating
 * @property {number | null} time
 * @property {number | null} margin how much later than the first, as a share of its time
 * @property {string} place "first", or how much later it is, in words
 * @property {number} least the loss that it comes down to
 * @property {number} strength
 * @property {string} method
 * @property {number[]} loss
 * @property {boolean} exact
 * @property {string} reduction
 * @property {string[]} notes
 * @property {Pathway[]} pathways
 * @property {Mode[]} modes
 * @property {number} modes_cut
 * @property {Record<string, number[]>} gates
 * @property {Graph} graph
 * @property {Gating | null} editable
 */

/**
 * @typedef {object} Predicted
 * @property {number[]} times
 * @property {number | null} end of the times that the candidates need; there are more where they were asked for
 * @property {number | null} criterion
 * @property {number} zero_loss
 * @property {string} start
 * @property {string | null} winner
 * @property {string[]} order
 * @property {string[]} sentences
 * @property {Record<string, Prediction>} gatings
 * @property {Record<string, Failure>} failed
 */

/**
 * @typedef {object} Kept
 * @property {number} threshold
 * @property {Record<string, { share: number | null, standing: "kept" | "outrun" | "not reached" | "not kept" | "unknown", detail: string, implementable: boolean | null, pathways: Record<string, { share: number | null, lost: number[] }> }>} gatings
 * @property {string[]} sentences
 * @property {{ time: number | null, loss: number[], times: number[] } | null} aligned
 */

/** @typedef {{ time: number | null, low: number | null, high: number | null, networks: number, level: number, times: number[], loss: number[], sentences: string[] }} Wide what ReLU networks of a width will do */

/** @typedef {{ states: string, share: number, neurons: number }} Pattern */

/** @typedef {{ seed: number, time: number, patterns: Pattern[], rest: number, sliding: number }} Gates */

/**
 * @typedef {object} Trained
 * @property {{ time: number[], loss: number[] }[]} seeds
 * @property {Gates[]} gates of the first seed, over time
 * @property {number} share of the work that is done
 * @property {boolean} running
 * @property {boolean} stale whether the study has changed since
 * @property {string[]} sentences
 * @property {"time" | "step"} clock what its times count
 * @property {any} contest the criterion that its sentences are about
 */

export {};
