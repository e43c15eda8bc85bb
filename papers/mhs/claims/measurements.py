"""Measurements for claims of MHS: gates, patterns, matrices, and closed forms (App. F and G)."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from papers.mhs.contextual import STRUCTURES


def copied_and_frozen(seeds: int, steps: int) -> dict[str, list[float]]:
    """ReLU networks against a gated network with gates copied at every step, or fixed at the end's.

    `copied` is the largest distance of outputs over all samples and steps, relative to the initial
    error √(2 L(0)), on extended XoR and on the contextual task with one and two hidden layers.
    `frozen_xor` and `frozen` are the mean |ΔL|/L(0), on the first two tasks, of a gated network
    that starts from the same weights with each neuron's final gates; `floor_xor` and `floor` that
    of the ReLU network with another seed. One number per seed.
    """
    xor = nr.tasks.extended_xor(0.4)
    task = nr.tasks.contextual(structures=STRUCTURES, joined=True)
    cases = {
        "_xor": (nr.ReLUNetwork((3, 64, 1)), xor, 1e-4, 0.1, min(steps, 800)),
        "": (nr.ReLUNetwork((11, 40, 60)), task, 1e-4, 0.024, steps),
        "_deep": (nr.ReLUNetwork((11, 30, 30, 60)), task, 0.05, 0.024, steps // 2),
    }
    found: dict[str, list[float]] = {"copied": [0.0] * seeds}
    for name, (net, data, scale, rate, number) in cases.items():
        runs, frozen = [], []
        for seed in range(seeds):
            weights = net.init(seed, scale)
            record = {"weights": True, "outputs": True}
            run = nr.train(net, weights, data, learning_rate=rate, steps=number, record=record)
            apart = nr.reln.certify(run, nr.reln.copied_gates(run, data)).outputs_max
            found["copied"][seed] = max(found["copied"][seed], apart)
            gates = data.gated(nr.reln.activity(run, data).gates())
            fixed = nr.train(nr.GDLN(net.arch), weights, gates, learning_rate=rate, steps=number)
            frozen.append(nr.compare(run, fixed).mean)
            runs.append(nr.Trajectory(run.time, run.loss))
        found[f"frozen{name}"] = frozen
        next_one = [*runs[1:], runs[0]]
        found[f"floor{name}"] = [
            nr.compare(*pair).mean for pair in zip(runs, next_one, strict=True)
        ]
    return found


def nonlinear_boundary(deltas: tuple[float, ...], seeds: int) -> dict[str, list[float]]:
    """For each Δ, the share of inputs that ReLU networks do not decide by the third coordinate.

    This is the share of the box |x₁|, |x₂| ≤ 1, |x₃| ≤ Δ in which the output and x₃ have different
    signs, for each seed, with the settings of MHS Fig. 2. It is 0 if the boundary is the plane x₃ =
    0. Names are the values of Δ.
    """
    import jax

    from papers.mhs.fig2 import FIGURE

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
        up = [np.asarray(net(many.isel(delta=d, seed=i).final, points)["y"]) for i in range(seeds)]
        found[str(delta)] = [float(((y[:, 0] > 0) != (cube[:, 2] > 0)).mean()) for y in up]
    return found


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


def closed_forms_trained(seeds: int, steps: int) -> dict[str, list[float]]:
    """Singular values of pathways trained by themselves against their closed forms, MHS Fig. 5.

    The common pathway is trained on the targets, contextual pathways on the residual of a learned
    common one, as MHS App. F and G assume; widths and starts are those of Fig. 5. `common 3`,
    `others 3` and so on for 4 and 5 contexts: mean difference of the singular values (means over
    pathways) relative to the largest, one number per seed.
    """
    import jax
    import jax.numpy as jnp

    from papers.mhs import fig5
    from papers.mhs.contextual import case, pathway_maps, strengths
    from papers.mhs.table import gated_network, narrowed

    s = {name: setting.value for name, setting in fig5.SETTINGS.items()}
    s |= {"seeds": seeds, "steps": steps}
    found: dict[str, list[float]] = {}
    for contexts, hidden in zip(s["contexts"], s["hidden"], strict=True):
        this = case(s, {"contexts": contexts}, hidden)
        sizes = gated_network(this, "gated", s["rule"])[0].sizes
        width, other = sizes["common"], sizes["not1"]
        joined = nr.tasks.contextual(joined=True, **this.task)
        chain = nr.Architecture.chain(joined.x["x"].shape[1], width, joined.y["y"].shape[1])
        networks = {
            "common": (chain, joined),
            "others": nr.tasks.all_but_one(this.data, hidden=other),
        }
        for key, (name, (arch, data)) in enumerate(networks.items()):
            runs = nr.train_ensemble(
                nr.GDLN(arch),
                narrowed(data),
                key=jax.random.key(key),
                seeds=seeds,
                scale=this.scale,
                learning_rate=this.learning_rate,
                steps=steps,
                record_every=s["every"],
                record={"maps": pathway_maps(arch)},
                dtype=jnp.float32,
            )
            closed = fig5.closed_forms(this, width, other, runs.time)[1 + key]
            each = [np.asarray(m, float) for m in runs.values["maps"].values()]
            modes = closed.shape[1]
            trained = np.mean([[strengths([run], modes) for run in m] for m in each], axis=0)
            apart = np.abs(trained - closed).mean(axis=(1, 2)) / trained.max(axis=(1, 2))
            found[f"{name} {contexts}"] = apart.tolist()
    return found
