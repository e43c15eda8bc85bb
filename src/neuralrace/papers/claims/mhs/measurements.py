"""Measurements for claims of MHS that no figure makes, each a function of a few sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr
from neuralrace.papers.mhs.contextual import COMMON, case

if TYPE_CHECKING:
    from neuralrace.papers.mhs.table import Setting as Case

STRUCTURES = ("hierarchy", "ring", "crossed")
"""The contextual task of MHS §4."""


def copied_and_frozen(steps: int) -> dict[str, float]:
    """ReLU networks against a gated network with gates copied at every step, or fixed at the end's.

    `copied` is the largest distance of outputs over all samples and steps, relative to the initial
    error √(2 L(0)), on extended XoR and on the contextual task with one and two hidden layers.
    `frozen_xor` and `frozen` are the mean |ΔL|/L(0), on the first two tasks, of a gated network
    that starts from the same weights with each neuron's final gates.
    """
    import jax

    xor = nr.tasks.extended_xor(0.4)
    task = nr.tasks.contextual(structures=STRUCTURES, joined=True)
    cases = {
        "xor": (nr.ReLUNetwork((3, 64, 1)), xor, 1e-4, 0.1, min(steps, 800)),
        "": (nr.ReLUNetwork((11, 40, 60)), task, 1e-4, 0.024, steps),
        "deep": (nr.ReLUNetwork((11, 30, 30, 60)), task, 0.05, 0.024, steps // 2),
    }
    found = {"copied": 0.0}
    for name, (net, data, scale, rate, number) in cases.items():
        weights = net.init(jax.random.key(0), scale)
        record = {"weights": True, "outputs": True}
        run = nr.train(net, weights, data, learning_rate=rate, steps=number, record=record)
        apart = nr.reln.certify(run, nr.reln.copied_gates(run, data)).outputs_max
        found["copied"] = max(found["copied"], apart)
        gates = data.gated(nr.reln.activity(run, data).gates())
        frozen = nr.train(nr.GDLN(net.arch), weights, gates, learning_rate=rate, steps=number)
        found[f"frozen_{name}".rstrip("_")] = nr.compare(run, frozen).mean
    return found


def nonlinear_boundary(deltas: tuple[float, ...], seeds: int) -> dict[float, float]:
    """For each Δ, the share of inputs that ReLU networks do not decide by the third coordinate.

    This is the share of the box |x₁|, |x₂| ≤ 1, |x₃| ≤ Δ in which the output and x₃ have different
    signs, mean over seeds, with the settings of MHS Fig. 2. It is 0 if the boundary is the plane x₃
    = 0.
    """
    import jax

    from neuralrace.papers.mhs.fig2 import FIGURE

    s = FIGURE.resolve()
    net = nr.ReLUNetwork((3, s["hidden"], 1))
    many = nr.train_ensemble(
        net,
        [nr.tasks.extended_xor(delta) for delta in deltas],
        key=jax.random.key(s["key"]),
        seeds=seeds,
        scale=float(np.sqrt(s["variance"] / s["hidden"])),
        learning_rate=s["learning_rate"],
        steps=s["steps"],
        axis=("delta", deltas),
    )
    cube = np.random.default_rng(0).uniform(-1, 1, (4000, 3))
    found = {}
    for d, delta in enumerate(deltas):
        points = nr.Dataset({"x": cube * [1, 1, delta]}, {"y": np.zeros((len(cube), 1))})
        wrong = [
            (np.asarray(net(many.isel(delta=d, seed=i).final, points)["y"])[:, 0] > 0)
            != (cube[:, 2] > 0)
            for i in range(seeds)
        ]
        found[delta] = float(np.mean(wrong))
    return found


def gates_over_time(seeds: int, steps: int) -> dict[str, float]:
    """The gates of ReLU networks on the task of MHS §4, as shares of the weight.

    Means over seeds. `changed`: on how many of 24 samples a neuron's pattern differs between epoch
    500 and the end. `all_first`: the share that is exactly all-on at epoch 500. At the end,
    `exact`: the share that depends exactly on the context; `admitted`: that, or on for only one
    sample (MHS Lemma 4.1); `one`, `two`, `all`: the share nearest to patterns that are on in that
    many contexts; `distance`: on how many samples patterns differ from these.
    """
    import jax

    from neuralrace.papers.mhs.contextual import relu_runs, shares_by_number

    this = _section_4(seeds, steps)
    data = nr.tasks.contextual(joined=True, **this.task)
    by_context = nr.reln.subsets(data)
    admitted = {**by_context, **data.one_per_sample()}
    many = relu_runs(this, jax.random.key(0), min(steps, 500), record={"weights": True})
    rows = []
    for run in (many.isel(seed=i) for i in range(seeds)):
        found = nr.reln.activity(run, data)
        pure = found.shares(by_context)
        one, two, everywhere = shares_by_number(this, run)
        rows.append(
            {
                "changed": found.changed(found.time[1]),
                "all_first": float(pure.exact["all"][1]),
                "exact": 1 - float(pure.exact["other"][-1]),
                "admitted": 1 - float(found.shares(admitted).exact["other"][-1]),
                "one": one,
                "two": two,
                "all": everywhere,
                "distance": float(pure.distance[-1]),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _section_4(seeds: int, steps: int) -> Case:
    """The task, networks and descent of MHS §4."""
    settings = {name: setting.value for name, setting in COMMON.items()}
    return case(settings | {"seeds": seeds, "steps": steps}, {"structures": STRUCTURES}, 700)


def competition(seeds: int, steps: int) -> dict[str, float]:
    """All pathways by context in one gated network: the strength of each kind relative to pairs.

    The seven pathways of MHS Table 1 on the task of §4, widths by the sign rule, trained jointly.
    The strength of a pathway is the Frobenius norm of its map: `single` is the strongest pathway
    for one context over the strongest for two, at the end; `single_ever` is the largest value of
    this ratio after the loss has begun to fall; both are means over seeds.
    """
    import jax

    from neuralrace.papers.mhs.contextual import gated_runs
    from neuralrace.papers.mhs.table import gated_network

    this = _section_4(seeds, steps)
    arch, data = gated_network(this, "subsets", COMMON["rule"].value)
    found = []
    for run in gated_runs(arch, data, this, jax.random.key(1), max(20, steps // 100)):
        size = {v: np.linalg.norm(m, axis=(1, 2)) for v, m in run.values["maps"].items()}
        one, two = (
            np.max([s for v, s in size.items() if v != "common" and v.count("_") == k], axis=0)
            for k in (0, 1)
        )
        learning = run.loss < 0.99 * run.loss[0]
        ratio = one / two
        found.append((ratio[-1], ratio[learning].max() if learning.any() else np.nan))
    last, ever = np.mean(found, axis=0)
    return {"single": float(last), "single_ever": float(ever)}


def census(contexts: int, items: int) -> dict[str, float]:
    """The patterns that one ReLU neuron can have on items × contexts, by what they depend on.

    `all` counts all of them; `admitted` those that MHS Lemma 4.1 allows: patterns that depend only
    on the context, or are on for one sample; `by_item` those that do not depend on the context at
    all (ruled out in the proof as useless). `crossed` says whether the pattern that is on only for
    item 1 in context 1 and item 2 in context 2 is among them, which the proof excludes.
    """
    one = np.eye(items)
    data = nr.tasks.contextual(contexts, items, structures=one, common=one, joined=True)
    on = nr.reln.patterns(data.x["x"]).on.reshape(-1, contexts, items)
    by_context = (on == on[:, :, :1]).all(axis=(1, 2))
    by_item = (on == on[:, :1]).all(axis=(1, 2)) & ~by_context
    single = on.sum(axis=(1, 2)) == 1
    crossed = np.zeros((contexts, items), bool)
    crossed[0, 0] = crossed[1, 1] = True
    return {
        "all": len(on),
        "admitted": int((by_context | single).sum()),
        "by_item": int(by_item.sum()),
        "crossed": int((on == crossed).all(axis=(1, 2)).sum()),
    }


def interlacing(trials: int) -> dict[str, float]:
    """Singular values of random submatrices against those of the whole, MHS App. E.

    With p rows and columns removed, σ_{j+p} ≤ σ_j(sub) ≤ σ_j (Thompson 1972). `above` and `below`
    are the largest violations of either side, relative to the largest singular value. `positive` is
    the largest gain of the first singular value of ⟨g y xᵀ⟩ when samples are gated off and nothing
    is negative; `signed` is the share of trials in which it grows when entries have both signs.
    """
    rng = np.random.default_rng(0)
    above, below, positive, signed = [], [], [], []
    for _ in range(trials):
        rows, columns = rng.integers(2, 12, 2)
        whole = rng.normal(size=(rows, columns))
        kept = [np.flatnonzero(rng.random(n) < 0.7) for n in (rows, columns)]
        kept = [k if len(k) else np.array([0]) for k in kept]
        sigma, part = (np.linalg.svd(m, compute_uv=False) for m in (whole, whole[np.ix_(*kept)]))
        gone = rows + columns - len(kept[0]) - len(kept[1])
        above.append((part - sigma[: len(part)]).max() / sigma[0])
        low = sigma[gone : gone + len(part)]
        below.append((low - part[: len(low)]).max() / sigma[0] if len(low) else 0.0)
        x, y = rng.normal(size=(12, rows)), rng.normal(size=(12, columns))
        gate = rng.random(12) < 0.7
        first = lambda x, y: np.linalg.norm(y.T @ x, 2)
        ax, ay = np.abs(x), np.abs(y)
        positive.append(first(ax[gate], ay[gate]) / first(ax, ay) - 1)
        signed.append(first(x[gate], y[gate]) > first(x, y))
    return {
        "above": float(max(above)),
        "below": float(max(below)),
        "positive": float(max(positive)),
        "signed": float(np.mean(signed)),
    }


def growth_on_residual(items: int) -> dict[str, float]:
    """Early growth of every implementable pattern, on the targets and on their residual.

    The task of MHS §4 (three contexts; with fewer than 8 items the hierarchy in each). `first`:
    all-on over the fastest of all patterns, on the targets. On the residual of a learned common
    pathway, `faster`: the share of all patterns that grow faster than all-but-one; `ahead`: the
    fastest over all-but-one; `single`: single contexts over all-but-one.
    """
    from neuralrace.contests import growth_rates

    structures: Any = STRUCTURES if items == 8 else "hierarchy"
    data = nr.tasks.contextual(3, items, structures=structures, joined=True)
    on, context = nr.reln.patterns(data.x["x"]).on, np.asarray(data.labels["context"])
    left = data.residual()
    everywhere = growth_rates(data, np.ones((1, data.n_samples)))[0]
    each = [np.array([test(context, c) for c in (1, 2, 3)]) for test in (np.not_equal, np.equal)]
    pairs, single = (growth_rates(left, masks).max() for masks in each)
    rates = growth_rates(left, on)
    return {
        "first": float(everywhere / growth_rates(data, on).max()),
        "faster": float((rates > pairs * (1 + 1e-9)).mean()),
        "ahead": float(rates.max() / pairs),
        "single": float(single / pairs),
    }


def halves_off(data: nr.Dataset) -> Mapping[str, np.ndarray]:
    """All patterns that are off on one half of the items of one context.

    They are implementable, and most of a trained network's weight has patterns of this kind.
    """
    context, item = (np.asarray(data.labels[name]) for name in ("context", "item"))
    high = item > item.max() / 2
    return {
        f"off{c}_{'high' if half else 'low'}": ~((context == c) & (high == half))
        for c, half in [(c, half) for c in np.unique(context) for half in (False, True)]
    }


def other_gating(seeds: int, steps: int) -> dict[str, float]:
    """Common + pathways off on half the items of one context, against common + all-but-one.

    Both are trained on the task of MHS §4 and compared with ReLU networks. Widths follow the sign
    rule, and every item-dependent pathway reads all inputs, as a ReLU neuron does. `gap` and
    `gap_reln`: mean |ΔL|/L(0) against the ReLU networks; `earlier`: the epoch at which the
    item-dependent gating's loss falls to 5 % of its initial value, divided by that epoch of common
    + all-but-one; means over seeds.
    """
    import jax

    from neuralrace.papers.mhs.contextual import gated_runs, relu_runs
    from neuralrace.papers.mhs.table import gated_network

    this = _section_4(seeds, steps)
    masks = halves_off(this.data)
    arch, data = nr.pathways(this.data, {"common": None, **masks}, hidden=350 // len(masks))
    arch = nr.Architecture({**arch.sizes, "common": 350}, arch.edges)
    of_relu, of_gated = jax.random.split(jax.random.key(0))
    relu = relu_runs(this, of_relu, 20, record={})
    other = gated_runs(arch, data, this, of_gated, 20)
    reln = gated_runs(*gated_network(this, "gated", COMMON["rule"].value), this, of_gated, 20)
    below = lambda run: float((run.loss <= 0.05 * run.loss[0]).argmax())
    rows = [
        (
            nr.compare(relu.isel(seed=i), other[i]).mean,
            nr.compare(relu.isel(seed=i), reln[i]).mean,
            below(other[i]) / below(reln[i]) if below(reln[i]) else np.nan,
        )
        for i in range(seeds)
    ]
    return dict(zip(("gap", "gap_reln", "earlier"), np.mean(rows, axis=0).tolist(), strict=True))
