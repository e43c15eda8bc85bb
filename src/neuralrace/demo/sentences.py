"""What was found, in sentences made of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from neuralrace.contests import PhaseDiagram
from neuralrace.demo.arc import Arc
from neuralrace.trajectory import Comparison


def on_phases(phases: PhaseDiagram, deltas: np.ndarray, times: np.ndarray) -> str:
    """Where the winner changes, and whether trained networks `(V, seeds)` take its time.

    `deltas` are among the values of the diagram.
    """
    places = ", ".join(
        f"from {c.below} to {c.above} at {phases.parameter} = {c.value:.4f}"
        for c in phases.crossovers
    )
    first = np.min(list(phases.times.values()), axis=0)
    last = np.max(list(phases.times.values()), axis=0)
    at = np.searchsorted(phases.values, deltas)
    fast, slow = first[at], last[at]
    gap = np.abs(times / fast[:, None] - 1)
    nearer = (gap < np.abs(times / slow[:, None] - 1))[np.isfinite(times)]
    worst = int(np.nanmax(gap, axis=1).argmax())
    return (
        f"Without training anything, the gating that learns first is predicted to change {places}. "
        f"Of {nearer.size} ReLU networks trained at {len(deltas)} values of {phases.parameter}, "
        f"{nearer.sum()} are nearer to the time of the faster gating than to that of the slower: "
        f"{percent(float(np.nanmean(gap)))} off on average, {percent(np.nanmax(gap))} at most "
        f"({phases.parameter} = {deltas[worst]:g})."
    )


def on_contest(found: Arc) -> str:
    """Who is first, by how much, and when the ReLU networks are there."""
    held = found.contest
    times = found.relu_times
    margin = held.margins[found.second]
    text = (
        f"The {found.winner} gating is predicted to learn first, at t = "
        f"{held.times[found.winner]:.4g}, the {found.second} gating "
        f"{f'{percent(margin)} later' if np.isfinite(margin) else 'never'}"
    )
    if np.isfinite(times).all():
        early = times.mean() / held.times[found.winner] - 1
        text += (
            f"; {numbered(len(times), 'ReLU network')} {'are' if len(times) > 1 else 'is'} there "
            f"at t = {times.mean():.4g}, "
            f"{percent(abs(early))} {'later' if early > 0 else 'earlier'} than the first"
        )
    return text + "."


def on_prediction(found: Arc) -> str:
    """What it reduces to, how exact that is and why, and how near the ReLU networks are."""
    race, seeds = found.race, len(found.predicted)
    scalar = sum(block.is_scalar for block in race.blocks)
    kind = "scalar modes" if scalar == len(race.blocks) else f"blocks, {scalar} of them scalar"
    what = f"reduces to {len(race.blocks)} independent {kind}"
    if not race.reduces:
        what = "does not reduce: one block holds all, and is solved"
    how = (
        "exactly: no coupling is dropped"
        if race.is_exact
        else f"approximately: couplings up to {race.residual:.1e} are dropped"
    )
    networks = f"{seeds} ReLU networks of the same scale are"
    if seeds == 1:
        networks = "One ReLU network of the same scale is"
    apart = "" if found.floor is None else f", and {percent(found.floor)} from each other"
    return (
        f"The {found.winner} gating {what}, {how}. From the initial weights, with nothing fitted, "
        f"this predicts the loss of the gated network within {percent(mean(found.theory))} of the "
        f"initial loss on average "
        f"({percent(largest(found.theory))} at most): the rest is that random weights are not "
        f"quite aligned with the modes. {networks} "
        f"{percent(mean(found.follows))} from the prediction "
        f"({percent(mean(found.follows, lambda c: c.mean_after_shift))} once shifted in time)"
        f"{apart}."
    )


def on_gates(found: Arc) -> str:
    """Whether the gates found in the activity are the winner's."""
    there, wanted, both = found.recovered
    curve = found.found.curve
    match = (
        f"exactly the {wanted} patterns of the {found.winner} gating"
        if there == wanted == both
        else f"{both} of the {wanted} patterns of the {found.winner} gating, beside "
        f"{there - both} others"
    )
    clusters = next(iter(found.found.layers.values()))
    off = float(clusters.share @ clusters.mismatch)
    exact = 1 - found.activity.shares(found.prototypes).exact["other"][-1]
    return (
        f"MHS Algorithm 1, shown nothing but the activity of "
        f"{numbered(len(found.found.runs), 'ReLU network')}, settles on {there} pathways (of "
        f"{min(curve)} to {max(curve)} tried) and finds {match}. A gated network with these gates "
        f"and the ReLU network's own initial weights is {percent(found.found.discrepancy)} from "
        f"it. What is rounded away: over training a neuron differs from its pathway on "
        f"{off:.1f} of {clusters.pattern.shape[1]} samples, and at the end "
        f"{percent(exact)} of the weight follows one of the gating's patterns to the letter."
    )


def on_certificate(found: Arc) -> str:
    """MHS Definition 3.1, measured, against what another seed, if there is one, makes of it."""
    mine = found.certificates
    floors = [c.floor for c in mine if c.floor is not None]
    average = float(np.mean([c.outputs_mean for c in mine]))
    text = (
        f"On every sample at every moment, the outputs of the {found.winner} gating are "
        f"{percent(average)} from those of the ReLU network on average and "
        f"{percent(max(c.outputs_max for c in mine))} at most, as parts of its initial root mean "
        "square error √(2 L(0))"
    )
    same = "the gated network is not the same function to the last digit (MHS Definition 3.1)"
    if not floors:
        return f"{text}. So {same}."
    other = float(np.mean([c.outputs_mean for c in floors]))
    return (
        f"{text}; two seeds of the ReLU network are "
        f"{percent(other)} and {percent(max(c.outputs_max for c in floors))} apart. So {same}, but "
        f"{average / other:.2g} times as far away as another seed of the ReLU network itself."
    )


def mean(
    compared: Sequence[Comparison], what: Callable[[Comparison], float] = lambda c: c.mean
) -> float:
    return float(np.mean([what(c) for c in compared]))


def largest(compared: Sequence[Comparison]) -> float:
    return max(c.max for c in compared)


def percent(value: float) -> str:
    """Two digits; what is below a ten-thousandth of a per cent is written as such.

    ```python
    >>> from neuralrace.demo.sentences import percent
    >>> percent(0.1234), percent(0.00071), percent(1e-9)
    ('12 %', '0.071 %', 'less than 0.0001 %')

    ```
    """
    if 0 <= value < 1e-6:
        return "less than 0.0001 %"
    digits = f"{100 * value:.0f}" if value >= 0.0995 else f"{100 * value:.2g}"
    return f"{digits} %"


def numbered(count: int, what: str) -> str:
    return f"{count} {what}s" if count != 1 else f"one {what}"
