"""The network that is to be explained: trained here, or brought as a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, final

import jax
import numpy as np
from jaxtyping import Int

from neuralrace.architecture import BIAS, Architecture
from neuralrace.checks import random_key
from neuralrace.dataset import Dataset
from neuralrace.dynamics import train as trained
from neuralrace.dynamics import train_ensemble
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.explanation.table import GATING, Row
from neuralrace.gdln import GDLN, Network
from neuralrace.reduction import reduce
from neuralrace.reln import consistency
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    first_weights,
    relu_of,
    single_runs,
    single_weights,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.text import numbered
from neuralrace.trajectory import Trajectory, compare, half_time
from neuralrace.types import Key


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """The options of `explain`, checked."""

    rows: tuple[str, ...]
    types: int
    stages: int
    most: int
    neurons: int
    seeds: int
    key: Key


@final
@dataclass(frozen=True, eq=False)
class Question:
    """The network to explain: `runs` of it, `others` to measure the distance of seeds by."""

    net: ReLUNetwork
    data: Dataset
    spreads: Mapping[str, float]
    rate: float
    stops: Int[np.ndarray, " T"]
    runs: tuple[Trajectory, ...]
    others: tuple[Trajectory, ...]
    made: str

    @property
    def begins_late(self) -> bool:
        """Whether the run was first recorded after step 0, so that its start is not known."""
        return bool(self.stops[0] > 0)

    @property
    def width(self) -> int:
        return self.net.arch.sizes[self.net.arch.hidden[0]]

    @property
    def scale(self) -> float:
        """One standard deviation for all weights, biases aside: the root mean square over edges.

        A neuron that grows with equal weights before and after it does so from the mean of the
        two: its growing part (w·u + a·v)/√2 has the variance (σ_w² + σ_a²)/2.
        """
        ends = self.net.arch.matrix_ends
        squares = [s**2 for name, s in self.spreads.items() if ends[name][0] != BIAS]
        return float(np.sqrt(np.mean(squares)))

    def spreads_on(self, arch: Architecture) -> dict[str, float]:
        """The spreads of this network for the edges of another graph of the same task.

        An edge takes that of the network's edges between the same ends, where hidden nodes of one
        depth are the same; one that the network has no like of takes the common `scale`.
        """
        mine: dict[tuple[str | int, str | int], list[float]] = {}
        own, roles = self.net.arch.matrix_of, _roles(arch)
        for edge, ends in _roles(self.net.arch).items():
            if edge in own:
                mine.setdefault(ends, []).append(self.spreads[own[edge][0]] ** 2)
        return {
            name: float(np.sqrt(np.mean(mine.get(roles[members[0][0]], self.scale**2))))
            for name, members in arch.matrices.items()
        }

    @property
    def floor(self) -> tuple[float, float] | None:
        """The mean distance of two seeds, in loss and in outputs."""
        alone = len(self.runs) == 1
        pairs = [(self.runs[0], b) for b in self.others] if alone else combinations(self.runs, 2)
        found = _mean_distance(pairs)
        return None if found is None or found[1] is None else (found[0], found[1])

    def row(
        self,
        name: str,
        kind: str,
        many: Sequence[Trajectory],
        variables: int,
        runs: Sequence[Trajectory],
    ) -> Row:
        """A row with its errors: the mean over pairs of its runs and those it is compared with."""
        loss, outputs = _mean_distance(product(runs, many)) or (None, None)
        return Row(name, kind, many[0], variables, loss, outputs, pace=_pace(runs, many))

    def narrow(self, most: int) -> tuple[ReLUNetwork, dict[str, float]]:
        """A network of at most `most` neurons per hidden node, and spreads that keep its strength.

        An edge is √r times as strong where r of the neurons at its hidden end are one, with the
        geometric mean of two hidden ends.
        """
        arch, hidden = self.net.arch, set(self.net.arch.hidden)
        sizes = {v: min(n, most) if v in hidden else n for v, n in arch.sizes.items()}
        few = ReLUNetwork(arch.with_sizes(sizes), leak=self.net.leak)
        spreads = dict(self.spreads)
        for name, ends in arch.matrix_ends.items():
            inside = [(arch.sizes[v] / sizes[v]) ** 0.5 for v in ends if v in hidden]
            spreads[name] *= float(np.prod(inside) ** (1 / max(len(inside), 1)))
        return few, spreads

    def gating(
        self,
        name: str,
        arch: Architecture,
        data: Dataset,
        asked: Asked,
        follows: tuple[Trajectory, ...] = (),
    ) -> Row:
        """The row of a gating: it `follows` the first network, or starts from random weights."""
        many = follows or self.ensemble(GDLN(arch), data, self.spreads_on(arch), asked)
        runs = self.runs[:1] if follows else self.runs
        made = self.row(name, GATING, many, _variables(arch, data), runs)
        draws = asked.seeds if hidden_layers(arch) > 1 else 1  # one layer starts as on average
        keys = [asked.key, *jax.random.split(random_key(asked.key, "explain"), draws - 1)]
        every = [_kept(arch, data, self.scale, self.net.leak, key) for key in keys]
        known = [kept for kept in every if kept is not None]
        return replace(made, kept=min(known, default=None))

    def ensemble(
        self,
        net: Network,
        data: Dataset,
        spreads: Mapping[str, float],
        asked: Asked,
        weights: bool = False,
    ) -> list[Trajectory]:
        """Networks from random weights of these spreads, trained as the one to explain.

        Their outputs are recorded, and their weights if asked for.
        """
        many = train_ensemble(
            net,
            data,
            key=asked.key,
            seeds=asked.seeds,
            scale=spreads,
            learning_rate=self.rate,
            steps=int(self.stops[-1]),
            record_at=self.stops,
            record={"outputs": True, "weights": weights},
        )
        return [many.isel(seed=i) for i in range(asked.seeds)]


def of_data(
    task: Dataset,
    data: Dataset | None,
    given: Mapping[str, Any],
    asked: Asked,
    train: bool,
) -> Question:
    """Networks trained here, or none."""
    missing = [name for name, value in given.items() if value is None]
    require(
        not missing and data is None,
        "explain needs to know the network" if missing else "data was given twice",
        got=f"data without {listed(missing)}" if missing else "a dataset and data=",
        wanted="width=, scale=, learning_rate= and steps= with data, data= with a run",
        fix="nr.explain(data, width=100, scale=1e-4, learning_rate=0.1, steps=1000)",
    )
    task = task.gated({})
    width, steps = int(given["width"]), int(given["steps"])
    scale, rate = float(given["scale"]), float(given["learning_rate"])
    net = ReLUNetwork(_one_layer(task, width))
    half = 100  # of about 200 records; the others are even in log time
    stops = np.append(np.linspace(0, steps, half + 1), np.geomspace(1, steps, half))
    stops = np.unique(stops.round().astype(int))
    spreads = {edge: float(scale) for edge in net.arch.edges}
    said = "Predictions; nothing was trained."
    question = Question(net, task, spreads, rate, stops, (), (), said)
    if not train:
        return question
    first = trained(
        net,
        net.init(jax.random.fold_in(random_key(asked.key, "explain"), 1), scale=scale),
        task,
        learning_rate=rate,
        steps=steps,
        record_at=stops,
        record={"outputs": True, "weights": True},
    )
    more = replace(asked, seeds=asked.seeds - 1)
    others = question.ensemble(net, task, spreads, more) if more.seeds else []
    many = numbered(asked.seeds, "ReLU network", "1")
    were = "was" if asked.seeds == 1 else "were"
    made = f"{many} of width {width} {were} trained on this data."
    return replace(question, runs=(first, *others), made=made)


def checked_run(
    run: Trajectory, data: Dataset | None, given: Mapping[str, Any]
) -> tuple[tuple[Trajectory, ...], Dataset]:
    """The runs of an ensemble, or the one that was given, and their data, checked."""
    twice = [name for name, value in given.items() if value is not None]
    if data is None or twice:
        raise NeuralRaceError(
            "a run needs its data" if data is None else "the run knows its own settings",
            got="no data=" if data is None else f"{listed(twice)} besides a run",
            wanted="the run and data=, the dataset that it was trained on",
            fix="nr.explain(run, data=data)",
        )
    runs = single_runs(run)
    single_weights(runs[0])
    check_trained_on(runs[0], data)
    return runs, data.gated({})


def of_run(runs: tuple[Trajectory, ...], task: Dataset, asked: Asked, train: bool) -> Question:
    """The first run, and others to compare it with."""
    first, *others = runs
    net = relu_of(first)
    rate, stops = descent_of(first)
    spreads = {e: float(np.sqrt(np.mean(w**2))) for e, w in first_weights(first).items()}
    known = [_with_outputs(each, net, task) for each in (first, *others)]
    question = Question(net, task, spreads, rate, stops, tuple(known[:1]), tuple(known[1:]), "")
    require(
        question.scale,
        "the weights of the run are all zero at first, so that nothing moves",
        got="a scale of 0",
        wanted="a run from random weights",
        fix="start from net.init(key, scale=1e-3)",
    )
    many = len(first.time)
    made = f"One run of a ReLU network, recorded at {many} moments"
    if others:
        made += f"; the other seed is the mean of {numbered(len(others), 'other member')}."
    elif question.begins_late:
        made += f", from step {stops[0]} on; its start is not known, so that no seed was trained."
    elif train and asked.seeds > 1:
        more = question.ensemble(net, task, spreads, replace(asked, seeds=asked.seeds - 1))
        question = replace(question, others=tuple(more))
        many = f"{len(more)} more seed" + ("s were" if len(more) > 1 else " was")
        made += f"; {many} trained, with the spread of its first weights on every edge."
    else:
        made += "; no other seed was trained."
    return replace(question, made=made)


def _with_outputs(run: Trajectory, net: ReLUNetwork, data: Dataset) -> Trajectory:
    """The run with its outputs, computed from its weights where it did not record them."""
    if run.outputs is not None:
        return run
    seen = Trajectory.from_weights(net, run.values["weights"], data, run.time)
    values = {**run.values, "outputs": seen.values["outputs"]}
    return Trajectory(
        run.time, run.loss, values=values, final=run.final, net=run.net, steps=run.steps,
        sample_weight=run.sample_weight, settings=run.settings,
    )  # fmt: skip


def _one_layer(task: Dataset, width: int) -> Architecture:
    """One hidden layer between all inputs and all outputs."""
    sizes = {v: np.shape(a)[1] for v, a in task.x.items()} | {"h": width}
    sizes |= {v: np.shape(a)[1] for v, a in task.y.items()}
    edges = {f"{v}_h": (v, "h") for v in task.x} | {f"h_{v}": ("h", v) for v in task.y}
    return Architecture(sizes, edges)


def hidden_layers(arch: Architecture) -> int:
    """The number of hidden layers: the most hidden nodes on the way from an input to an output."""
    places = (place for ends in _roles(arch).values() for place in ends)
    return max((place for place in places if isinstance(place, int)), default=0)


def _roles(arch: Architecture) -> dict[str, tuple[str | int, str | int]]:
    """The ends of every edge: inputs and outputs by name, hidden nodes by their depth."""
    place: dict[str, str | int] = {}
    depth: dict[str, int] = {}
    for v in arch.order:
        above = [depth[arch.edges[e][0]] for e in arch.incoming[v]]
        depth[v] = 1 + max(above) if above else 0
        place[v] = depth[v] if v in arch.hidden else v
    return {edge: (place[s], place[t]) for edge, (s, t) in arch.edges.items()}


def _mean_distance(
    pairs: Iterable[tuple[Trajectory, Trajectory]],
) -> tuple[float, float | None] | None:
    """The mean distance of pairs of runs in loss and in outputs; None where there are none."""
    found = [compare(a, b) for a, b in pairs]
    if not found:
        return None
    outputs = [each.outputs for each in found]
    known = [each for each in outputs if each is not None]
    loss = float(np.mean([each.mean for each in found]))
    return loss, float(np.mean(known)) if len(known) == len(found) else None


def _pace(runs: Sequence[Trajectory], many: Sequence[Trajectory]) -> float | None:
    """The half-time of a row over the mean of the networks, for the start that is furthest off.

    It is infinite where one does not get there while the networks do, and None where these do not.
    """
    if not runs:
        return None
    halves = lambda each: np.array([half_time(run.time, run.loss) for run in each])
    theirs = float(halves(runs).mean())
    if not theirs > 0:
        return None
    ratios = np.nan_to_num(halves(many) / theirs, nan=np.inf)
    return float(ratios[np.abs(ratios - 1).argmax()])


def neuron_count(arch: Architecture) -> int:
    return sum(arch.sizes[v] for v in arch.hidden)


def weight_count(arch: Architecture) -> int:
    """How many weights a network has."""
    return sum(rows * columns for rows, columns in arch.shapes.values())


def _variables(arch: Architecture, data: Dataset) -> int:
    """How many weights the blocks of a gating have after its reduction."""
    return sum(weight_count(block.arch) for block in reduce(arch, data).blocks)


def _kept(arch: Architecture, data: Dataset, scale: float, leak: float, key: Key) -> float | None:
    """The kept share, or None where it cannot be asked for, such as with gates on inputs.

    It is measured here whatever the scale; warnings that scales are large are for predictions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return consistency(arch, data, scale=scale, leak=leak, key=key).share
    except NeuralRaceError:
        return None
