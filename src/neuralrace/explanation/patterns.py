"""What can be said of a run whose steps no other network can take: the patterns of its neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.contests.times import Candidates
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.explanation.table import GATING, Explanation, Row
from neuralrace.reln import Activity, activity, discover
from neuralrace.text import numbered
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key

COLUMNS = ("loss", "outputs", "kept gates")
"""Columns that need a network that follows the run, or its dynamics."""


def of_patterns(
    run: Trajectory,
    data: Dataset,
    reason: str,
    rows: Sequence[str],
    gatings: Candidates,
    most: int,
    key: Key,
) -> Explanation:
    """Gatings by how nearly the neurons have their patterns; the rest is left out, with `reason`.

    A neuron is compared with the nearest pathway of a gating at every recorded moment, counted by
    its part of the weight of its layer. Averages are over moments and hidden nodes. All samples
    count alike, whatever their weights, but for those of weight 0, which do not count.
    """
    counts = np.asarray(data.probability) > 0
    jobs: list[tuple[str, Callable[[], Row]]] = []
    if "discovered" in rows:
        jobs.append(("discovered", lambda: _discovered(run, data, int(counts.sum()), most, key)))
    if "gatings" in rows and gatings:
        seen = activity(run, data.take(counts), boundary=0.0)
        jobs += [
            (name, partial(_given, name, arch, gated.take(counts), seen))
            for name, (arch, gated) in gatings.items()
        ]
    one = len(run.time) == 1
    why = (
        "they compare runs, and there is one recorded moment alone"
        if one
        else f"no other network can take the steps of this run ({reason})"
    )
    left_out = dict.fromkeys(COLUMNS, why)
    left_out |= {row: why for row in rows if row not in ("discovered", "gatings")}
    made: list[Row] = []
    for name, job in jobs:
        try:
            made.append(job())
        except NeuralRaceError as error:
            left_out[name] = error.what
    what = "what is compared is only which neurons are on for which samples"
    made_of = (
        f"one checkpoint: {what}."
        if one
        else f"recorded at {len(run.time)} moments: {reason}. The theory is about plain gradient "
        f"descent on all samples (gradient flow), so that {what}, at these moments."
    )
    return Explanation(
        rows=tuple(sorted(made, key=lambda row: row.error)),
        floor=None,
        runs=(run,),
        made=f"One run of a ReLU network, {made_of}",
        left_out=left_out,
    )


def _discovered(run: Trajectory, data: Dataset, counted: int, most: int, key: Key) -> Row:
    """As many pathways as are allowed: the elbow needs networks that follow."""
    found = discover(run, data, most, key=key)
    apart = [each.share @ each.mismatch / counted for each in found.layers.values()]
    count = sum(map(len, found.layers.values()))
    name = numbered(count, "discovered pathway", "1")
    return Row(name, GATING, None, None, differ=float(np.mean(apart)), found=found)


def _given(name: str, arch: Architecture, gated: Dataset, seen: Activity) -> Row:
    """A gating of the user's own, for one hidden layer."""
    if len(seen.on) != 1:
        raise NeuralRaceError(
            "its patterns are known for one hidden layer only",
            got=f"hidden nodes {listed(seen.on)}",
            wanted="one",
            fix="leave out this gating",
        )
    on_edges = [edge for edge in gated.gates if edge not in arch.hidden]
    columns = [np.asarray(gated.gates.get(node, np.ones(gated.n_samples))) for node in arch.hidden]
    every = np.concatenate([c.reshape(gated.n_samples, -1) for c in columns], axis=1)
    if on_edges or not np.isin(every, (0, 1)).all():
        raise NeuralRaceError(
            "patterns of neurons are compared with gates of zero and one on hidden nodes",
            got=f"gates of {listed(on_edges)}" if on_edges else "fractions",
            wanted="gates of hidden nodes, 0 or 1",
            fix="leave out this gating",
        )
    table = np.unique(every.astype(bool), axis=1).T
    weighed = seen.counted(next(iter(seen.on)), 0.0).any(axis=1)
    if not weighed.any():
        raise NeuralRaceError(
            "no neuron has any weight",
            got="weights of zero, or not finite, at every recorded moment",
            wanted="a network with incoming and outgoing weights",
            fix="import the weights of a network that has learned",
        )
    shares = seen.shares({str(k): row for k, row in enumerate(table)}, least=0.0)
    apart = shares.distance[weighed].mean() / shares.samples
    return Row(name, GATING, None, None, differ=float(apart))
