"""Claims of the talk on what depth does: curves, saddles, stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import neuralrace as nr
from evidence import Basis, Claim, Measure
from papers.figure import Table, settings_of
from papers.talk.claims.reads import first_over_steepest, gap, read
from papers.talk.claims.structure import level_gap

OTHER_RATE = {"d": 2.0, "depths": (1,)}
"""The chain with λ = 2, s = 1, for which the printed rates differ from the correct ones."""


def depth_curves(table: Table) -> np.ndarray:
    """The strengths of every depth and of the limit, relative to the final strength."""
    s = settings_of(table)
    return np.stack([*table["exact"].to_numpy(), table["limit"].to_numpy()]) * s["d"] / s["s"]


def sharper_chains(table: Table) -> float:
    """The smallest factor of `wait_over_rise` from one depth to the next; the limit is last."""
    sharp = wait_over_rise(table["time"].to_numpy(), depth_curves(table))
    return float((sharp[1:] / sharp[:-1]).min())


def _reached(time: np.ndarray, curves: np.ndarray, part: float) -> np.ndarray:
    return nr.trajectory.crossing_time(time, curves, part, rising=True)


def deep_over_limit(table: Table) -> float:
    """The half-time of the deepest chain relative to the limit's, both in units of τ/D."""
    times = _reached(table["time"].to_numpy(), depth_curves(table), 0.5)
    return float(times[-2] / times[-1])


def as_printed(table: Table, which: str) -> float:
    """The largest error, relative to s/λ, of the rate printed for D = 1 or for many edges."""
    s = settings_of(table)
    time, final = table["time"].to_numpy(), s["s"] / s["d"]
    if which == "shallow":
        right, left_over = table["exact"].to_numpy()[0], np.exp(-time)
        printed = final * (1 - left_over) + s["start"] * left_over
    else:  # … − t/τ in place of … − (s²/λ) t/τ: time runs too fast by λ/s²
        right = table["limit"].to_numpy()
        printed = nr.linear.deep_limit(
            time * s["d"] / s["s"] ** 2, s=s["s"], d=s["d"], start=s["start"], depth=1
        )
    return float(np.abs(printed - right).max() / final)


def slowing(table: Table) -> float:
    """The slowest step of the descent before the loss has halved, over the fastest step of all."""
    speed = np.linalg.norm(np.diff(table["path"].to_numpy(), axis=0), axis=1)
    loss = table["path_loss"].to_numpy()
    return float(speed[: int((loss <= loss[0] / 2).argmax())].min() / speed.max())


def wait_over_rise(time: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """(K,): the half-time of curves (K, T) that go to 1, over their time from 10 to 90 %."""
    low, half, high = (_reached(time, curves, f) for f in (0.1, 0.5, 0.9))
    return half / (high - low)


def apart(depth: int) -> Callable[[Table], float]:
    """The half-time, measured from its start, of the weakest mode over that of the strongest."""

    def measured(table: Table) -> float:
        curves = table["simulated"].to_numpy()[depth]
        gone = (curves - curves[0]) / (1 - curves[0])
        times = _reached(table["at"].to_numpy()[depth], gone.T, 0.5)
        return float(times[-1] / times[0])

    return measured


def sharper(table: Table) -> float:
    """The factor by which another edge sharpens the transitions, smallest over modes and depths."""
    from papers.talk.stages import sharpness

    sharp = sharpness(table)
    return float((sharp[1:] / sharp[:-1]).min())


CLAIMS = (
    Claim(
        "talk/trajectories-by-depth",
        "“Analytic learning trajectory”",
        "A shallow chain learns exponentially, a deep one along a sigmoid, a very deep one after "
        "a long wait; each follows a known formula.",
        "Closed forms against flows of chains of D = 1, 2, 10 edges from a₀ = 0.05; the initial "
        "rate of change over the largest (1 for an exponential), and the half-time over the time "
        "from 10 to 90 %, for each depth and the limit of many edges.",
        (
            Measure(
                "closed-forms",
                "closed forms against flows, largest difference relative to s/λ",
                read("depth", gap("exact", "simulated")),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
            Measure(
                "bend-shallow",
                "initial over largest rate of change, D = 1",
                read("depth", lambda t: first_over_steepest(depth_curves(t))[0]),
                least=0.99,
                origin=1.0,
            ),
            Measure(
                "bend-deeper",
                "the same, largest of the deeper ones",
                read("depth", lambda t: first_over_steepest(depth_curves(t))[1:].max()),
                most=0.5,
            ),
            Measure(
                "wait-over-rise",
                "wait over rise, smallest factor from one depth to the next",
                read("depth", sharper_chains),
                least=1.1,
                origin=1.0,
            ),
            Measure(
                "printed-shallow",
                "D = 1 as printed, λ = 2, s = 1: largest difference relative to s/λ",
                read("depth", lambda t: as_printed(t, "shallow"), **OTHER_RATE),
                most=1e-6,
                rests=Basis.THEOREM,
                otherwise="The rate printed for D = 1, e^(−t/τ), is correct for λ = 1; with λ = 2 "
                "it is off by up to {:.0%} of s/λ. The correct rate is e^(−λt/τ).",
            ),
            Measure(
                "printed-limit",
                "D → ∞ as printed, λ = 2, s = 1: largest difference relative to s/λ",
                read("depth", lambda t: as_printed(t, "limit"), **OTHER_RATE),
                most=1e-6,
                rests=Basis.THEOREM,
                otherwise="The exponent printed for many edges, … − t/τ, is correct for s² = λ; "
                "with λ = 2, s = 1 it is off by up to {:.0%} of s/λ. The correct one is … − "
                "(s²/λ) t/τ, in units τ/D.",
            ),
            Measure(
                "deepest-over-limit",
                "half-time, deepest chain over the limit",
                read("depth", deep_over_limit),
                least=0.9,
                origin=1.0,
                most=1.1,
                otherwise="The formula headed D ≥ 3 is the limit of many edges: the deepest chain "
                "here reaches half after {:.2f} of the time that it gives.",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/saddle-by-depth",
        "“Error surface”",
        "Depth introduces a saddle point, and descent slows down near it.",
        "The chain of two edges: its stationary point at zero, and a descent that passes by.",
        (
            Measure(
                "escapes",
                "directions of escape at zero",
                read("error_surface", lambda t: t["index"]),
                least=1,
                most=1,
                rests=Basis.THEOREM,
            ),
            Measure(
                "curvature",
                "curvature over −s, distance from 1",
                read(
                    "error_surface",
                    lambda t: abs(float(t["curvature"]) / settings_of(t)["s"] + 1),
                ),
                most=1e-9,
                rests=Basis.THEOREM,
            ),
            Measure(
                "slowing",
                "slowest step before the loss has halved, over the fastest",
                read("error_surface", slowing),
                most=0.5,
            ),
            Measure(
                "final-loss",
                "final over initial loss",
                read("error_surface", lambda t: t["path_loss"][-1] / t["path_loss"][0]),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/several-chains",
        "“Full networks act like several 1D chains”",
        "A deep linear network learns each mode as a chain of scalars does.",
        "Mode strengths in flows from small aligned weights against closed forms of chains, D = "
        "1, 2, 3; and, from small random weights, half-times of the levels of a tree against "
        "chains that start at the expected strength and learn infinitely many features.",
        (
            Measure(
                "aligned",
                "aligned starts: largest difference of a mode's strength",
                read("stages", gap("exact", "simulated")),
                most=1e-6,
                rests=Basis.THEOREM,
            ),
            Measure(
                "random",
                "random starts: half-times relative to chains, minus 1, worst level",
                read("differentiation", level_gap("limit")),
                most=0.05,
                otherwise="From random weights and with sampled features, chains that know only "
                "width and scale are an approximation: the half-time of the worst level of a tree "
                "is off by {:.1%}.",
            ),
        ),
        inferred=True,
    ),
    Claim(
        "talk/stages-by-depth",
        "“Depth introduces stage-like transitions”",
        "In a shallow network all modes learn at once, in a deep one each waits and then "
        "transitions.",
        "Modes of singular values 4, 2, 1, by depth: the half-time of the weakest mode over that "
        "of the strongest; and the factor by which each edge raises the ratio of half-time to the "
        "time from 10 to 90 %, smallest over modes and depths.",
        (
            Measure(
                "shallow",
                "weakest over strongest, shallow",
                read("stages", apart(0)),
                least=0.95,
                origin=1.0,
                most=1.05,
            ),
            Measure(
                "deepest",
                "weakest over strongest, deepest",
                read("stages", apart(-1)),
                least=1.5,
                origin=1.0,
            ),
            Measure(
                "sharpening",
                "factor by which each edge sharpens transitions",
                read("stages", sharper),
                least=1.1,
                origin=1.0,
            ),
        ),
        inferred=True,
    ),
)
