"""Claims of the talk's third part: what a pathway's speed depends on, and ReLU networks."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure, once

STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Singular values s of a mode whose learning time is measured."""


def times_by_strength(start: float) -> dict[str, float]:
    """How far learning times of balanced chains are from being proportional to 1/s.

    The ratio of the largest to the smallest s · t, minus 1, over `STRENGTHS`: `relative` for two
    edges that start at the same share of their end; `same` for two edges that all start at `start`;
    `deep` for four edges that all start at `start`.
    """

    def off(depth: int, scaled: bool) -> float:
        products = []
        for s in STRENGTHS:
            begin = start * s**0.5 if scaled else start
            products.append(s * nr.linear.chain_time(depth, s=s, start=begin))
        return float(max(products) / min(products) - 1)

    return {"relative": off(2, True), "same": off(2, False), "deep": off(4, False)}


def times_trained(seeds: int) -> dict[str, list[float]]:
    """The same for three modes of one linear network from small random weights, one per seed."""
    import jax

    s = np.array([4.0, 2.0, 1.0])
    data = nr.Dataset({"x": np.sqrt(3) * np.eye(3)}, {"y": np.sqrt(3) * np.diag(s)})
    net = nr.GDLN(nr.Architecture.chain(3, 32, 3))
    found = []
    for key in jax.random.split(jax.random.key(0), seeds):
        run = nr.flow(
            net, net.init(key, 1e-3), data, times=np.linspace(0, 15, 1501), record={"weights": True}
        )
        strength = nr.linear.mode_strengths(run, data)
        half = nr.trajectory.crossing_time(run.time, strength.T, 0.5, rising=True)
        found.append(float((s * half).max() / (s * half).min() - 1))
    return {"off": found}


def random_chains(problems: int) -> dict[str, float]:
    """Chains with random s in 0.3 … 3 and starts b₀ in 1e-3 … 0.5, d = 1, time to half the end.

    `deeper`: the share of chains that each further edge makes slower, from 1 to 5 edges, all edges
    starting at b₀. `larger`: the share that a start twice as large makes faster, two edges.
    `imbalanced`: the share of two-edge chains that become faster if the first edge starts twice and
    the second half as large, so that the product is the same.
    """
    rng = np.random.default_rng(0)
    deeper, larger, imbalanced = [], [], []
    for _ in range(problems):
        s, start = np.exp(rng.uniform(np.log([0.3, 1e-3]), np.log([3.0, 0.5])))
        if start >= (0.5 * s) / 2 or (2 * start) ** 2 >= 0.5 * s:
            continue  # at the end already, or nearly
        times = [nr.linear.chain_time(D, s=s, start=start) for D in range(1, 6)]
        deeper.append(bool((np.diff(times) > 0).all()))
        larger.append(nr.linear.chain_time(2, s=s, start=2 * start) < times[1])
        data = nr.Dataset({"x": [[1.0]]}, {"y": [[float(s)]]})
        race = nr.reduce(nr.Architecture.chain(1, 1, 1), data)
        halves = []
        for factor in (1.0, 2.0):
            begin = race.start({"W1": float(start * factor), "W2": float(start / factor)})
            (mode,) = race.closed_form(begin).modes.values()
            halves.append(float(mode.time_to(s / 2)))
        imbalanced.append(halves[1] < halves[0])
    shares = {"deeper": deeper, "larger": larger, "imbalanced": imbalanced}
    return {name: float(np.mean(values)) for name, values in shares.items()}


def relu_exact(steps: int) -> dict[str, float]:
    """ReLU networks on extended XoR against the race, with and without the talk's assumptions.

    Decoupled weights: neuron k reads b x_k/‖x_k‖ and writes b y_k. The largest |ΔL|/L(0) over 400
    steps: `exact` for Δ = 0, 0.4 and 1.2, where each neuron is on for its own sample alone;
    `unmatched` for Δ = 1.6, where it is also on for another sample. `switched` is the number of
    gates that change in the first three. `moved`: the same as `exact` from weights in which
    neurons are turned by 30 degrees within the plane of the first two coordinates, Δ = 0.4.
    """
    rate, start = 0.05, 0.05

    def gap(delta: float, turn: float = 0.0) -> tuple[float, int]:
        data = nr.tasks.extended_xor(delta)
        x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
        c, s = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
        around = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        reads = start * (x / np.linalg.norm(x, axis=1, keepdims=True)) @ around.T
        relu = nr.ReLUNetwork((3, 4, 1))
        run = nr.train(
            relu, {"W1": reads, "W2": start * y.T}, data, learning_rate=rate, steps=steps,
            record={"weights": True},
        )  # fmt: skip
        arch, gated = nr.tasks.xor_pathways(data, total=4)
        weights = {}
        for k, v in enumerate(arch.hidden):
            weights[arch.incoming[v][0]] = start * x[[k]] / np.linalg.norm(x[k])
            weights[arch.outgoing[v][0]] = start * y[[k]]
        race = nr.reduce(arch, gated)
        theory = race.solve(times=run.time, start=race.start(weights), learning_rate=rate)
        on = np.asarray(run.values["weights"]["W1"]) @ x.T > 1e-9
        return float(np.abs(run.loss - theory.loss).max() / run.loss[0]), int((on != on[0]).sum())

    matched = [gap(delta) for delta in (0.0, 0.4, 1.2)]
    return {
        "exact": max(one for one, _ in matched),
        "switched": float(sum(count for _, count in matched)),
        "unmatched": gap(1.6)[0],
        "moved": gap(0.4, 30.0)[0],
    }


def _small_random(tables: Any) -> list[float]:
    """Mean |ΔL|/L(0) between ReLU networks on XoR and the predicted GDLN, by seed."""
    table = tables("nrr/fig3")
    time = table["time"].to_numpy()
    theory = nr.Trajectory(time, table["predicted"].to_numpy().mean(axis=0))
    return [nr.compare(theory, nr.Trajectory(time, run)).mean for run in table["relu"].to_numpy()]


SLIDE = "“The neural race reduction”"
"""The slide on what a pathway's speed depends on."""

CLAIMS = (
    Claim(
        "talk/time-by-strength",
        f"“Training speed”; {SLIDE}",
        "The time to learn a mode is inversely proportional to its singular value s.",
        "s times the half-time, for s = 0.5 … 8: the largest over the smallest, minus 1. Balanced "
        "chains in closed form, from starts in proportion to the end, or from one start of 0.01; "
        "and the three modes, s = 4, 2, 1, of linear networks from small random weights.",
        (
            Measure(
                "two-edges",
                "two edges, starts in proportion to the end",
                once(times_by_strength, "relative", start=0.01),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "four-edges",
                "four edges, one start for all",
                once(times_by_strength, "deep", start=0.01),
                most=0.01,
            ),
            Measure(
                "trained",
                "modes of trained networks, s = 4, 2, 1",
                once(times_trained, "off", seeds=5),
                most=0.25,
            ),
            Measure(
                "one-start",
                "two edges, one start for all, s = 0.5 … 8",
                once(times_by_strength, "same", start=0.01),
                most=0.01,
                otherwise="With two edges and one start for all, s · t varies by {:.0%}: it has a "
                "factor ln(s/a₀), which grows slowly with s.",
            ),
        ),
        quote="Time difference for deep net vs shallow net is t∞ − t₁ ≈ O(1/(s b₀^D)); Effective "
        "dataset (larger input-output correlation faster)",
        inferred=True,
    ),
    Claim(
        "talk/depth-and-start",
        SLIDE,
        "Deeper pathways are generally slower; larger and imbalanced starts are generally faster.",
        "200 random modes, time to half the end in closed form: the share of modes that each "
        "further edge slows down (1 to 5 edges, all starting alike), that a start twice as large "
        "speeds up, and that an imbalance speeds up (one edge twice, the other half as large). "
        "“Generally” is read as nine in ten.",
        (
            Measure(
                "deeper",
                "each further edge is slower",
                once(random_chains, "deeper", problems=200),
                least=0.9,
                origin=1.0,
            ),
            Measure(
                "larger",
                "a larger start is faster",
                once(random_chains, "larger", problems=200),
                least=1.0,
                rests=Basis.THEOREM,
            ),
            Measure(
                "imbalanced",
                "an imbalanced start is faster",
                once(random_chains, "imbalanced", problems=200),
                least=1.0,
                rests=Basis.THEOREM,
            ),
        ),
        quote="A pathway's learning speed depends on: […] Pathway depth (deeper generally slower); "
        "Initialization (larger/imbalanced generally faster)",
    ),
    Claim(
        "talk/exact-for-relu",
        "“Assumptions & caveats”",
        "The reduction is exact for a ReLU network if its gates match the activity, no neuron "
        "switches, and its weights start decoupled. From small random weights it is an "
        "approximation, and not always one.",
        "ReLU networks of four neurons on extended XoR that start decoupled, one neuron for each "
        "sample, against the race with the same step: the largest |ΔL| / L(0). Then gates that do "
        "not match the activity, and weights that are not decoupled; and ReLU networks from small "
        "random weights (NRR Fig. 3).",
        (
            Measure(
                "assumptions",
                "all assumptions met, Δ = 0, 0.4, 1.2",
                once(relu_exact, "exact", steps=400),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "switched",
                "gates that switched there",
                once(relu_exact, "switched", steps=400),
                most=0,
                form=".0f",
                rests=Basis.THEOREM,
            ),
            Measure(
                "unmatched",
                "gates that do not match, Δ = 1.6",
                once(relu_exact, "unmatched", steps=400),
                least=0.01,
            ),
            Measure(
                "coupled",
                "weights that are not decoupled, Δ = 0.4",
                once(relu_exact, "moved", steps=400),
                least=0.01,
            ),
            Measure(
                "small-random",
                "small random weights, XoR: mean |ΔL| / L(0)",
                _small_random,
                most=0.05,
            ),
        ),
        quote="Also exact for ReLU networks under the assumptions: Gates on each example match the "
        "activity set; No neurons switch their activity set; Initial weights are decoupled. Can "
        "approximate ReLU networks with small random weights, but not always",
    ),
)
