"""Claims of MHS App. A and H on linear networks: input correlations, Fig. 7, width and rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure, Read, Tables, once
from papers.figure import Table
from papers.mhs.contextual import STRUCTURES, apart

SIZES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Values of δ, the input correlation, for one and the same λ."""


def input_correlations(start: float) -> dict[str, float]:
    """The modes of MHS Fig. 7 with inputs of different size, Σ^yx the same.

    Inputs are multiplied by √δ and targets divided by it, so that Σ^x is multiplied by δ. `end`:
    largest difference of the final strengths from λ/δ, relative. `course`: the largest difference
    of the courses relative to their end over all δ, if the start is the same share of the end.
    `growth`: how much the first rate of growth varies with δ, relative. `half`: the largest
    relative change of the half-time with δ, if all start at `start`.
    """
    from papers.mhs.fig7 import task

    base = task()
    x, y = base.x["x"], base.y["y"]
    ends, courses, growths, halves = [], [], [], []
    for size in SIZES:
        data = nr.Dataset({"x": np.sqrt(size) * x}, {"y": y / np.sqrt(size)})
        race = nr.reduce(nr.Architecture.chain(4, 8, 7), data)
        times = np.linspace(0.0, 120.0, 1201)
        same = race.closed_form(race.start(start))
        scaled = race.closed_form(race.start(start / np.sqrt(size)))
        strength = np.linalg.svd(data.y["y"].T @ data.x["x"] / len(x), compute_uv=False)
        final = strength / (size / len(x))
        values = np.stack([m.value(times) for m in scaled.modes.values()])
        ends.append(np.abs(values[:, -1] / final - 1).max())
        courses.append(values / final[:, None])
        early = np.stack(
            [np.diff(np.log(m.value(np.array([0.0, 1e-6])))) for m in same.modes.values()]
        )
        growths.append(early[:, 0])
        halves.append(
            [float(m.time_to(f / 2)) for m, f in zip(same.modes.values(), final, strict=True)]
        )
    spread = lambda rows: float((np.ptp(rows, axis=0) / np.mean(rows, axis=0)).max())
    return {
        "end": float(max(ends)),
        "course": float(np.abs(np.array(courses) - courses[0]).max()),
        "growth": spread(growths),
        "half": spread(halves),
    }


def linear_widths(problems: int) -> dict[str, float]:
    """Linear networks with as many hidden neurons as the rank of the task, and with one less.

    Random targets of rank 2 … 4, gradient flow from small random weights. `wide`: the largest final
    loss relative to zero output with as many neurons as the rank. `narrow`: the largest difference
    of that loss with one neuron less from the part of the weakest mode.
    """
    import jax

    rng = np.random.default_rng(0)
    wide, narrow = [], []
    for k in range(problems):
        rank = 2 + k % 3
        left, right = (np.linalg.qr(rng.normal(size=(6, 6)))[0][:, :rank] for _ in range(2))
        values = np.linspace(3.0, 1.0, rank) * rng.uniform(0.9, 1.1, rank)
        targets = np.sqrt(6) * right * values @ left.T
        data = nr.Dataset({"x": np.sqrt(6) * np.eye(6)}, {"y": targets})
        lost = (values**2)[-1] / (values**2).sum()
        for width, found, wanted in ((rank, wide, 0.0), (rank - 1, narrow, lost)):
            net = nr.GDLN(nr.Architecture.chain(6, width, 6))
            end = nr.flow(net, net.init(jax.random.key(k), 0.05), data, times=[0.0, 60.0])
            found.append(abs(end.loss[-1] / nr.dataset.zero_loss(data) - wanted))
    return {"wide": float(max(wide)), "narrow": float(max(narrow))}


def pathway_widths(seeds: int, steps: int) -> dict[str, Any]:
    """The ReLN of MHS §4 with each pathway as wide as the rank of its Σ^yx.

    `gated`: the final loss relative to zero output, one number per seed; `full`: the same with 100
    neurons per pathway; `most`: the largest of these ranks.
    """
    import jax
    import jax.numpy as jnp

    from papers.mhs.table import narrowed

    base = nr.tasks.contextual(structures=STRUCTURES)
    arch, data = nr.tasks.common_and_all_but_one(base, 100)
    stats = nr.path_statistics(arch, data)
    needed = {v: _rank(stats, arch, v) for v in arch.hidden}
    losses = {}
    for name, widths in (("gated", needed), ("full", dict.fromkeys(arch.hidden, 100))):
        sized = nr.Architecture({**arch.sizes, **widths}, arch.edges)
        run = nr.train_ensemble(
            nr.GDLN(sized), narrowed(data), key=jax.random.key(0), seeds=seeds, scale=1e-3,
            learning_rate=0.024, steps=steps, record_at=[0, steps], dtype=jnp.float32,
        )  # fmt: skip
        losses[name] = (run.loss[:, -1] / nr.dataset.zero_loss(data)).tolist()
    return {"most": max(needed.values()), **losses}


def _rank(stats: nr.PathStatistics, arch: nr.Architecture, node: str) -> int:
    """The rank of Σ^yx of all paths through a hidden node, inputs side by side."""
    through = [p for p in stats.paths if any(arch.edges[e][1] == node for e in p.edges)]
    return int(np.linalg.matrix_rank(np.hstack([stats.yx[p] for p in through]), tol=1e-9))


def _linear(name: str) -> Read:
    return once(linear_widths, name, problems=6)


def _pathways(name: str) -> Read:
    return once(pathway_widths, name, seeds=5, steps=8000)


def _fig7(of: Callable[[Table], Any]) -> Read:
    def read(tables: Tables) -> Any:
        return of(tables("mhs/fig7"))

    return read


def modes_apart(table: Table, of: Callable[..., Any] = np.mean) -> np.ndarray:
    """|Δ| of the modes' strengths relative to the largest, over times and modes, by seed."""
    apart = np.abs(table["simulated"].to_numpy() - table["predicted"].to_numpy())
    return of(apart, axis=(1, 2)) / float(table["s"].max())


def losses_apart(table: Table) -> np.ndarray:
    """Mean |ΔL| / L(0) between closed form and training, by seed."""
    return apart(*(table[name].to_numpy() for name in ("time", "loss", "loss_predicted")))


CLAIMS = (
    Claim(
        "mhs/input-correlations",
        "App. A, after Eq. 7",
        "Σ^x decides where a mode's strength ends, and not how fast it is learned.",
        "The four items of Fig. 7 with Σ^yx fixed and Σ^x multiplied by δ = ¼ … 4, in closed "
        "form: final strengths against λ/δ, rates of growth, courses relative to their end from "
        "starts in proportion to it, and half-times from one and the same start, 0.03 for each "
        "edge.",
        (
            Measure(
                "final-strengths",
                "final strengths against λ/δ, largest difference, relative",
                once(input_correlations, "end", start=0.03),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
            Measure(
                "first-rate",
                "first rate of growth: change with δ, relative",
                once(input_correlations, "growth", start=0.03),
                most=0.01,
            ),
            Measure(
                "courses",
                "courses relative to their end, starts in proportion to it: largest difference",
                once(input_correlations, "course", start=0.03),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "half-times",
                "half-times from the same start: change from δ = ¼ to 4, relative",
                once(input_correlations, "half", start=0.03),
                most=0.01,
                otherwise="From one and the same start, the half-time changes by up to {:.0%} "
                "from δ = ¼ to 4: a larger δ ends lower, and so sooner. The rate 2λ/τ does not "
                "depend on δ.",
                rests=Basis.PAPER,
            ),
        ),
        quote="it is helpful to note that the time-course of the trajectory is only dependent on "
        "the Σ^{yx} singular values. Thus, Σ^x affects the stable point of the network singular "
        "values but not the time-course of learning.",
    ),
    Claim(
        "mhs/linear-match",
        "App. A.1, Fig. 7c",
        "On the hierarchy of four items, the closed form of the modes agrees nearly exactly with "
        "training.",
        "Linear networks from small random weights against the closed form from the same weights, "
        "nothing fitted: strengths of the four modes relative to the largest, mean over time and "
        "modes; loss, mean |ΔL| / L(0).",
        (
            Measure("strengths", "strengths of the modes", _fig7(modes_apart), most=0.01),
            Measure("loss", "loss", _fig7(losses_apart), most=0.01),
            Measure(
                "strengths-worst",
                "strengths of the modes, largest difference at any time",
                _fig7(lambda table: modes_apart(table, np.max)),
                most=0.05,
                otherwise="At single moments, a mode differs by up to {:.0%} of the largest: where "
                "it rises steeply, a small shift in time is a large difference.",
            ),
        ),
        quote="In this example we see near exact agreement between the closed-form predicted "
        "dynamics and the actual dynamics of training the neural network.",
    ),
    Claim(
        "mhs/width-rank",
        "App. A; App. H; §4",
        "As many hidden neurons as the rank of Σ^yx are enough. With fewer, the strongest modes "
        "are learned.",
        "Six linear networks on random targets of rank 2, 3 and 4, by gradient flow: final loss "
        "relative to zero output with as many neurons as the rank, and with one less, against the "
        "part of the weakest mode. The ReLN of §4 with each pathway as wide as the rank of its "
        "Σ^yx, after 8000 steps; beside it, 100 neurons per pathway.",
        (
            Measure("wide", "as wide as the rank: final loss, largest", _linear("wide"), most=1e-3),
            Measure(
                "narrow",
                "one neuron less: final loss minus the part of the weakest mode, largest",
                _linear("narrow"),
                most=1e-3,
            ),
            Measure(
                "gated-wide",
                "ReLN of §4, as wide as the ranks: final loss",
                _pathways("gated"),
                most=0.01,
            ),
            Measure(
                "gated-full",
                "ReLN of §4, 100 neurons per pathway: final loss, for comparison",
                _pathways("full"),
                most=0.01,
                otherwise="With 100 neurons per pathway, the final loss is {:.1%}.",
            ),
        ),
        quote="we only require as many hidden neurons as the rank of the input-output correlation "
        "matrix the linear pathway is aiming to solve. […] If this is not the case then the model "
        "will learn the top n_h singular values of the input-output mapping",
    ),
)
