"""Measurements on trained networks for claims of MHS §4, each a function of a few sizes.

All return one number per seed for every name. `hidden` is the width of the ReLU network (700 in the
paper), `steps` the number of epochs (8000).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

import neuralrace as nr
from papers.mhs.contextual import COMMON, STRUCTURES, case

if TYPE_CHECKING:
    from papers.mhs.table import Case

EVERY = 20
"""Epochs between recorded moments."""

ALIGNED = 500
"""The epoch at which the common pathway is learned and contextual ones are not."""

SLIDES = 3000
"""The epoch from which most of the weight slides."""


def section_4(seeds: int, steps: int, hidden: int) -> Case:
    """The task, networks and descent of MHS §4."""
    settings = {name: setting.value for name, setting in COMMON.items()}
    return case(settings | {"seeds": seeds, "steps": steps}, {"structures": STRUCTURES}, hidden)


def _relu(this: Case, every: int, record: object = None) -> list[nr.Trajectory]:
    """ReLU networks, the same seeds in every measurement here."""
    import jax

    from papers.mhs.contextual import relu_runs

    many = relu_runs(this, jax.random.key(0), every, record=record)
    return [many.isel(seed=i) for i in range(this.seeds)]


def gates_over_time(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """The gates of ReLU networks on the task of MHS §4, as shares of the weight ‖w_in‖‖w_out‖.

    `changed`: on how many of 24 samples a neuron's pattern differs between epoch 500 and the end.
    `off_first`, `off_last`: the share that is off for some sample at epoch 500 and at the end. At
    the end, `exact`: the share that depends exactly on the context; `admitted`: that, or on for
    only one sample (MHS Lemma 4.1); `specific`: the share that is on in one context only, for some
    or all of its items; `one`, `two`, `all`: the share nearest to patterns that are on in that many
    contexts; `distance`: on how many samples patterns differ from these; `part`: the share that is
    on for some but not all items of some context.
    """
    from papers.mhs.contextual import shares_by_number

    this = section_4(seeds, steps, hidden)
    data = nr.tasks.contextual(joined=True, **this.task)
    by_context = nr.reln.subsets(data)
    admitted = {**by_context, **data.one_per_sample()}
    found: dict[str, list[float]] = {}
    for run in _relu(this, min(steps, ALIGNED), {"weights": True}):
        activity = nr.reln.activity(run, data)
        pure = activity.shares(by_context)
        one, two, everywhere = shares_by_number(this, run)
        always = [float(pure.exact["all"][k]) for k in (1, -1)]
        row = {
            "changed": activity.changed(activity.time[1]),
            "off_first": 1 - always[0],
            "off_last": 1 - always[1],
            "exact": 1 - float(pure.exact["other"][-1]),
            "admitted": 1 - float(activity.shares(admitted).exact["other"][-1]),
            "one": one,
            "two": two,
            "all": everywhere,
            "distance": float(pure.distance[-1]),
            **_in_contexts(activity, np.asarray(data.labels["context"])),
        }
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def _in_contexts(activity: nr.reln.Activity, context: np.ndarray) -> dict[str, float]:
    """At the end: the share of the weight on in one context only, and on for part of a context."""
    weight, on = activity.counted("h")[-1], activity.on["h"][-1]  # (size,), (N, size)
    each = np.stack([on[context == c].mean(axis=0) for c in np.unique(context)])
    specific, part = (each > 0).sum(axis=0) == 1, ((each > 0) & (each < 1)).any(axis=0)
    return {"specific": float(weight @ specific), "part": float(weight @ part)}


def explained(seeds: int, steps: int, hidden: int, neurons: int = 2000) -> dict[str, list[float]]:
    """What a ReLU network does on the task of MHS §4, in the terms of this library.

    `kept`: the share of its gates that a ReLU network with the weights of common + all-but-one
    would keep (`nr.reln.consistency`); `sliding`: the share of the ReLU networks' weight, at the
    recorded moment nearest to epoch 3000, in neurons that are held at the boundary of some sample,
    so that their gate is a fraction (`nr.reln.sliding_gates`); `wide`: mean |ΔL|/L(0) between the
    ReLU networks and the wide limit of `nr.reln.types`, which knows the task, the width and the
    initial scale alone; `wide_outputs`: the same for outputs; `floor`, `floor_outputs`: another
    seed.
    """
    from papers.mhs.table import gated_network

    this = section_4(seeds, steps, hidden)
    data = nr.tasks.contextual(joined=True, **this.task)
    arch, gated = gated_network(this, "gated", COMMON["rule"].value)
    runs = _relu(this, EVERY, {"weights": True, "outputs": True})
    wide = nr.reln.types(
        data,
        width=hidden,
        scale=this.scale,
        learning_rate=this.learning_rate,
        steps=steps,
        types=1,
        neurons=neurons,
    ).wide
    near = [nr.compare(run, wide) for run in runs]
    seed = [nr.compare(run, runs[(i + 1) % seeds]) for i, run in enumerate(runs)]
    at = int(np.abs(runs[0].time - SLIDES * this.learning_rate).argmin())
    return {
        "kept": [
            nr.reln.consistency(arch, gated, scale=this.scale, key=k).share for k in range(seeds)
        ],
        "sliding": [_sliding(run, hidden, data, at, this.learning_rate) for run in runs],
        "wide": [c.mean for c in near],
        "wide_outputs": [_outputs(c) for c in near],
        "floor": [c.mean for c in seed],
        "floor_outputs": [_outputs(c) for c in seed],
    }


def _outputs(found: nr.trajectory.Comparison) -> float:
    """The distance of the outputs, which both runs recorded."""
    return float("nan") if found.outputs is None else found.outputs


def _sliding(run: nr.Trajectory, hidden: int, data: nr.Dataset, at: int, rate: float) -> float:
    """The share of the weight that slides at a recorded moment."""
    weights = {e: np.asarray(w[at], float) for e, w in run.values["weights"].items()}
    net = nr.ReLUNetwork((data.x["x"].shape[1], hidden, data.y["y"].shape[1]))
    return nr.reln.sliding_gates(net, weights, data, learning_rate=rate).share()


def own_network(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """The gated network of the authors' scripts against ReLU networks.

    `loss`, `outputs`: its distances from the ReLU network, mean |ΔL|/L(0) and mean distance over
    the initial error; `floor`, `floor_outputs`: the same between the ReLU network and its next
    seed. In the network with pathways for one and for two contexts, at the end, `single`: the
    strongest map of a pathway for one context over the strongest for two; `rise`: by how much the
    loss rises when all pathways for one context are silenced, relative to the initial loss.
    """
    import jax

    from papers.mhs.authors import authors_runs

    this = section_4(seeds, steps, hidden)
    relu = _relu(this, EVERY)
    own = authors_runs(this, jax.random.key(1), EVERY)
    both = authors_runs(this, jax.random.key(2), EVERY, "both")
    proofs = [
        nr.reln.certify(run, own[i], floor=relu[(i + 1) % seeds]) for i, run in enumerate(relu)
    ]
    floors = [proof.floor for proof in proofs if proof.floor is not None]
    return {
        "loss": [proof.loss.mean for proof in proofs],
        "outputs": [proof.outputs_mean for proof in proofs],
        "floor": [other.loss.mean for other in floors],
        "floor_outputs": [other.outputs_mean for other in floors],
        "rise": [float((run.values["silenced"][-1] - run.loss[-1]) / run.loss[0]) for run in both],
        "single": [
            float(max(m[-1] for v, m in maps.items() if v.startswith("only")))
            / float(max(m[-1] for v, m in maps.items() if v.startswith("not")))
            for maps in (run.values["maps"] for run in both)
        ],
    }


def competition(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """All pathways by context in one gated network: `single`, the strongest for one over two.

    The seven pathways of MHS Table 1 on the task of §4, widths by the sign rule, trained jointly.
    The strength of a pathway is the Frobenius norm of its map at the end.
    """
    import jax

    from papers.mhs.contextual import gated_runs
    from papers.mhs.table import gated_network

    this = section_4(seeds, steps, hidden)
    arch, data = gated_network(this, "subsets", COMMON["rule"].value)
    found = []
    for run in gated_runs(arch, data, this, jax.random.key(1), max(EVERY, steps // 100)):
        size = {v: float(np.linalg.norm(m[-1])) for v, m in run.values["maps"].items()}
        one, two = (
            max(s for v, s in size.items() if v != "common" and v.count("_") == k) for k in (0, 1)
        )
        found.append(one / two)
    return {"single": found}


RIVALS = ("single", "halves", "one more", "one less")
"""Gatings besides common + all-but-one that ReLU neurons can have; see `rival_masks`."""


def rival_masks(data: nr.Dataset, kind: str) -> Mapping[str, np.ndarray]:
    """Three pathways besides the common one, in one of several gatings.

    `reln`: each is off in one context (MHS §4). `single`: on in one context. `halves`: off on the
    first half of the items of one context. `one more`: as `reln`, but on for item 1 of the context
    it is off in; `one less`: off also for item 1 of the next context.
    """
    context, item = (np.asarray(data.labels[name]) for name in ("context", "item"))
    values = np.unique(context)
    first, low = item == 1, item <= item.max() / 2
    after = {c: values[(k + 1) % len(values)] for k, c in enumerate(values)}
    one = {
        "reln": lambda c: context != c,
        "single": lambda c: context == c,
        "halves": lambda c: ~((context == c) & low),
        "one more": lambda c: (context != c) | first,
        "one less": lambda c: (context != c) & ~((context == after[c]) & first),
    }[kind]
    return {f"p{c}": one(c) for c in values}


def rivals(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """Other gatings against common + all-but-one, with the same widths and initial weights.

    For each of `RIVALS`: `kind`, its mean |ΔL|/L(0) from the ReLU networks over that of common +
    all-but-one, and `kind: earlier`, the epoch at which its loss falls to 5 % of the initial one
    over that of common + all-but-one. Widths follow the sign rule; contextual pathways read items.
    """
    import jax

    from papers.mhs.contextual import gated_runs
    from papers.mhs.table import RULES

    this = section_4(seeds, steps, hidden)
    common, other = RULES[COMMON["rule"].value](hidden, len(STRUCTURES))
    relu = _relu(this, EVERY, {})
    gap, when = {}, {}
    for kind in ("reln", *RIVALS):
        three = rival_masks(this.data, kind)
        arch, data = nr.pathways(
            this.data,
            {"common": None, **three},
            hidden=other,
            inputs=dict.fromkeys(three, ("item",)),
        )
        arch = nr.Architecture({**arch.sizes, "common": common}, arch.edges)
        runs = gated_runs(arch, data, this, jax.random.key(1), EVERY)
        gap[kind] = np.array([nr.compare(a, b).mean for a, b in zip(relu, runs, strict=True)])
        when[kind] = np.array([first_below(run, 0.05) for run in runs])
    found = {kind: (gap[kind] / gap["reln"]).tolist() for kind in RIVALS}
    return found | {f"{kind}: earlier": (when[kind] / when["reln"]).tolist() for kind in RIVALS}


def first_below(run: nr.Trajectory, level: float) -> float:
    """The time at which a loss first falls to a share of its initial value; NaN if never."""
    from neuralrace.trajectory import crossing_time

    return float(crossing_time(run.time, run.loss / run.loss[0], level))


def other_gating(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """Common + six pathways that are off on half the items of one context: `earlier`, `gap`.

    They are implementable, and most of a trained network's weight has patterns of this kind. The
    total width is that of common + all-but-one, and pathways read all inputs, as ReLU neurons do.
    `earlier`: the epoch at 5 % of the initial loss over that of common + all-but-one; `gap`: the
    distance from the ReLU networks over its distance.
    """
    import jax

    from papers.mhs.contextual import gated_runs
    from papers.mhs.table import gated_network

    this = section_4(seeds, steps, hidden)
    six = halves_off(this.data)
    arch, data = nr.pathways(this.data, {"common": None, **six}, hidden=hidden // 2 // len(six))
    arch = nr.Architecture({**arch.sizes, "common": hidden // 2}, arch.edges)
    relu, key = _relu(this, EVERY, {}), jax.random.key(1)
    other = gated_runs(arch, data, this, key, EVERY)
    reln = gated_runs(*gated_network(this, "gated", COMMON["rule"].value), this, key, EVERY)
    gap = [
        [nr.compare(a, b).mean for a, b in zip(relu, runs, strict=True)] for runs in (other, reln)
    ]
    when = [[first_below(run, 0.05) for run in runs] for runs in (other, reln)]
    return {
        "earlier": (np.array(when[0]) / when[1]).tolist(),
        "gap": (np.array(gap[0]) / gap[1]).tolist(),
    }


def mixed_gating(seeds: int, steps: int, hidden: int) -> dict[str, list[float]]:
    """Common + all-but-one with a seventh of the contextual width given to `halves_off`.

    The common pathway and the total width are those of common + all-but-one, for each rule for the
    widths: by the sign rule 350, three of 100 and six of 8 neurons, which a search for a rival
    found. For each rule: `rule`, the distance from the ReLU networks over that of common +
    all-but-one, and `rule: earlier`, the epoch at 5 % of the initial loss over its epoch. Pathways
    other than the common one read items.
    """
    import jax

    from papers.mhs.contextual import gated_runs
    from papers.mhs.table import RULES

    this = section_4(seeds, steps, hidden)
    three, six = dict(rival_masks(this.data, "reln")), dict(halves_off(this.data))
    relu, found = _relu(this, EVERY, {}), {}
    for rule, widths in RULES.items():
        common, other = widths(hidden, len(three))
        part = other // 7
        sizes = {
            "reln": dict.fromkeys(three, other),
            "mixed": dict.fromkeys(three, other - part) | dict.fromkeys(six, max(1, part // 2)),
        }
        gap, when = {}, {}
        for kind, width in sizes.items():
            arch, data = nr.pathways(
                this.data,
                {"common": None, **{v: (three | six)[v] for v in width}},
                hidden={"common": common, **width},
                inputs=dict.fromkeys(width, ("item",)),
            )
            runs = gated_runs(arch, data, this, jax.random.key(2), EVERY)
            gap[kind] = np.array([nr.compare(a, b).mean for a, b in zip(relu, runs, strict=True)])
            when[kind] = np.array([first_below(run, 0.05) for run in runs])
        found[rule] = (gap["mixed"] / gap["reln"]).tolist()
        found[f"{rule}: earlier"] = (when["mixed"] / when["reln"]).tolist()
    return found


def halves_off(data: nr.Dataset) -> Mapping[str, np.ndarray]:
    """All patterns that are off on one half of the items of one context."""
    context, item = (np.asarray(data.labels[name]) for name in ("context", "item"))
    high = item > item.max() / 2
    return {
        f"off{c}_{'high' if half else 'low'}": ~((context == c) & (high == half))
        for c, half in [(c, half) for c in np.unique(context) for half in (False, True)]
    }
