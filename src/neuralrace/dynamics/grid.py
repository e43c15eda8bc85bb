"""The members of an ensemble: every combination of datasets, scales, rates and seeds."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.checks import by_name, entries, random_key, real_number
from neuralrace.dataset import Dataset
from neuralrace.dynamics.loop import SHARE, device_memory, on_accelerator
from neuralrace.dynamics.methods import Clock
from neuralrace.dynamics.setup import Problem, pose
from neuralrace.dynamics.systems import Batches, NetworkSystem, View
from neuralrace.dynamics.train import key_data
from neuralrace.errors import NeuralRaceError, check_kind, listed, whole_number
from neuralrace.gdln import Network
from neuralrace.trajectory import check_name
from neuralrace.types import Weights
from neuralrace.weights import checked_weights, float_dtype

MEMORY = 2**28
"""Bytes that the records and weights of a chunk of an ensemble may take by default, on a CPU."""


@final
@dataclass(frozen=True, eq=False)
class Chunk:
    """Members that run together: rows of the grid, of which the first `real` are new."""

    rows: np.ndarray
    low: int
    real: int

    def __len__(self) -> int:
        return len(self.rows)


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """All combinations of datasets, scales, rates and seeds, and how each begins."""

    net: Network
    problem: Problem
    datasets: list[Dataset]
    scales: Any
    by_edge: Any
    rates: list[float]
    key: Any
    seeds: int | list[int]
    kind: str
    dtype: Any
    axes: dict[str, Any]
    digests: list[str]
    sample_weights: list[Any]
    given: Weights | None = None

    @staticmethod
    def of(
        net: Any, data: Any, key: Any, seeds: Any, scale: Any, kind: str, dtype: Any, axis: Any,
        learning_rate: Any, rates: list[float], record: Any, weights: Any = None, **options: Any,
    ) -> Grid:  # fmt: skip
        """Check everything, and pose the first combination."""
        check_kind("net", net, Network, "wrap the graph: nr.GDLN(arch) or nr.ReLUNetwork(arch)")
        fix = "one Dataset, or a list of them"
        given = [data] if isinstance(data, Dataset) else entries("data", data, fix)
        for each in given:
            check_kind("data", each, Dataset, fix)
        scales = _scales(scale)
        dtype = None if dtype is None else float_dtype(dtype)
        for name, value in (("record", record), ("evaluate", options.get("evaluate"))):
            if value is not None:
                by_name(name, value, f"for example {name}={{'weights': True}}")
        seeds = _seeds(seeds)
        taken = {**(record or {}), **(options.get("evaluate") or {})}
        axes = _ensemble_axes(data, given, scale, learning_rate, seeds, axis, taken)
        key = random_key(key, "an ensemble")
        begin = None if weights is None else _given(net, weights, len(axes["seed"]), scale)
        spelled = [net.checked_scales(each, kind) for each in scales]
        sample = (
            {
                edge: np.zeros(shape, dtype or jnp.zeros(()).dtype)
                for edge, shape in net.shapes.items()
            }
            if begin is None
            else {edge: stack[0] for edge, stack in begin.items()}
        )
        posed = [pose(net, sample, each, record=record, **options) for each in given]
        datasets = [problem.system.data for problem in posed]
        _check_one_shape(datasets)
        by_edge = jax.tree.map(lambda *values: np.asarray(values), *spelled)
        digests = [problem.settings["data"] for problem in posed]
        return Grid(
            net, posed[0], datasets, scales if _is_list(scale) else scale, by_edge, rates,
            key, seeds, kind, dtype, axes, digests, [each.sample_weight for each in posed], begin,
        )  # fmt: skip

    def __len__(self) -> int:
        return int(np.prod(self._counts))

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        scales = len(jax.tree.leaves(self.by_edge)[0])
        return len(self.datasets), scales, max(1, len(self.rates)), len(self.axes["seed"])

    def that_fit(self, stops: np.ndarray) -> int:
        """How many members keep within `MEMORY`, several copies of the weights included."""
        size = lambda tree: sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        problem = self.problem
        room = max(MEMORY, SHARE * device_memory()) if on_accelerator() else MEMORY
        records = problem.recorder.what or problem.recorder.evaluated
        recorded = size(jax.eval_shape(problem.system.observe, problem.weights)) if records else 0
        own = size(self.datasets[0]) if len(self.datasets) > 1 else 0
        return max(1, int(room // (len(stops) * (recorded + 8) + 8 * size(problem.weights) + own)))

    def chunks(self, at_once: int) -> Iterator[Chunk]:
        """The members, that many at a time; the last are filled up with some again."""
        rows = np.stack(np.unravel_index(np.arange(len(self)), self._counts), axis=-1)
        devices = len(jax.devices())
        size = min(at_once, len(self))
        size = -(-size // devices) * devices  # the same number on every device
        for low in range(0, len(self), size):
            real = min(size, len(self) - low)
            yield Chunk(np.resize(rows[low : low + real], (size, 4)), low, real)

    def weights(self, members: Chunk) -> Weights:
        """The initial weights of some members."""
        _, scale, _, seed = members.rows.T
        if self.given is not None:
            return spread({edge: stack[seed] for edge, stack in self.given.items()})
        fixed = (self.net, self.kind, self.dtype, self.seeds if isinstance(self.seeds, int) else 0)
        seeds = None if isinstance(self.seeds, int) else np.asarray(self.seeds, np.uint32)
        scales = jax.tree.map(lambda leaf: leaf[scale], self.by_edge)
        return spread(_init(fixed, self.key, seeds, seed, scales))

    def system(self, members: Chunk) -> NetworkSystem:
        """What some members learn: one dataset for all, or one for each."""
        if len(self.datasets) == 1:
            return self.problem.system
        each = jax.tree.map(lambda *leaves: jnp.stack(leaves), *self.datasets)
        data = spread(jax.tree.map(lambda leaf: leaf[members.rows[:, 0]], each))
        whole = self.problem.system
        return replace(whole, data=data, view=View(whole.view.lift, data))

    @property
    def axes_of_system(self) -> Any:
        """What of a system is batched, as in `jax.vmap`."""
        if len(self.datasets) == 1:
            return None
        whole = self.problem.system
        return replace(whole, data=0, view=View(None, 0), evaluations=None)  # type: ignore[arg-type]

    def rate(self, members: Chunk, clock: Clock) -> np.ndarray:
        """The learning rate of every member."""
        rates = self.rates or [clock.rate]
        return np.asarray(rates)[members.rows[:, 2]]

    def batches(self, members: Chunk, size: int, samples: int) -> Batches:
        """Batches with a key of its own for every member."""
        keys = _keys(self.key, self.seeds)[members.rows[:, 3]]
        return Batches(spread(jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys)), size, samples)

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The sample weights of all members, or of each where datasets differ in them."""
        each = [
            np.full(len(np.asarray(d.probability)), 1 / d.n_samples) if w is None else w
            for w, d in zip(self.sample_weights, self.datasets, strict=True)
        ]
        if all(np.array_equal(w, each[0]) for w in each):
            return self.sample_weights[0]
        lengths = tuple(len(c) for c in self.axes.values())
        own = np.stack(each).reshape(len(each), *[1] * (len(lengths) - 1), -1)
        return np.broadcast_to(own, (*lengths, own.shape[-1])).copy()

    def provenance(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a trajectory of the ensemble says about where it came from."""
        told = self.problem.provenance(dict(settings) | self.settings)
        return told | {"sample_weight": self.sample_weight}

    def gathered(self, parts: Any) -> np.ndarray:
        """The chunks of a result as one array with the axes of the ensemble."""
        whole = np.concatenate(parts)[: len(self)] if len(parts) > 1 else parts[0][: len(self)]
        lengths = tuple(len(c) for c in self.axes.values())
        return whole.reshape(*lengths, *whole.shape[1:])

    @property
    def settings(self) -> dict[str, Any]:
        """What a trajectory says about its members."""
        drawn = {"scale": jax.tree.map(float, self.scales), "kind": self.kind}
        return {
            **(drawn if self.given is None else {"weights": "given"}),
            "key": key_data(self.key),
            "seeds": self.seeds,
            "data": self.digests[0]
            if len(self.digests) == 1
            else {next(iter(self.axes)): self.digests},
        }


def spread(tree: Any) -> Any:
    """The members (the first axis of every leaf) spread over all devices."""
    devices = jax.devices()
    if len(devices) == 1:
        return tree
    mesh = jax.sharding.Mesh(np.array(devices), ("member",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))
    return jax.device_put(tree, place)


def _ensemble_axes(
    data: Any,
    datasets: list[Dataset],
    scale: Any,
    rate: Any,
    seeds: int | list[int],
    axis: Any,
    record: Mapping[str, Any],
) -> dict[str, Any]:
    axes: list[tuple[str, Any]] = []
    if not isinstance(data, Dataset):
        axis = ("data", range(len(datasets))) if axis is None else axis
        if not isinstance(axis, tuple | list) or len(axis) != 2:
            raise NeuralRaceError(
                "axis names the datasets and says where each stands",
                got=repr(axis),
                wanted="(name, coordinates)",
                fix="for example axis=('delta', [0.0, 0.4, 0.8])",
            )
        name, coordinates = axis
        check_name(name)
        coordinates = entries("the coordinates of axis", coordinates)
        if len(coordinates) != len(datasets) or not datasets:
            raise NeuralRaceError(
                f"axis {name!r} does not fit the datasets",
                got=f"{len(coordinates)} coordinates for {len(datasets)} datasets",
                wanted="one coordinate a dataset, and at least one of each",
                fix="pass axis=(name, coordinates) with as many coordinates as datasets",
            )
        axes.append((name, coordinates))
    elif axis is not None:
        named = axis[0] if isinstance(axis, tuple | list) and axis else axis
        raise NeuralRaceError(
            f"axis {named!r:.60} names an axis of datasets, but there is only one dataset",
            got="one Dataset",
            wanted="a sequence of datasets",
            fix="pass data=[…], or leave out axis",
        )
    for name, value in (("scale", scale), ("learning_rate", rate)):
        if value is None:
            continue
        if np.ndim(value) > 1 or np.size(value) == 0:
            raise NeuralRaceError(
                f"{name} must be a number or a sequence of numbers",
                got=f"shape {np.shape(value)}",
                wanted="a number, or a sequence of at least one",
                fix=f"for example {name}=[0.01, 0.1]",
            )
        if np.ndim(value) == 1:
            by_edge = any(isinstance(v, Mapping) for v in value)
            axes.append((name, range(len(value)) if by_edge else [float(v) for v in value]))
    axes.append(("seed", np.arange(seeds) if isinstance(seeds, int) else np.asarray(seeds)))
    names = [*(name for name, _ in axes), "time", "loss", *record]
    if len(set(names)) < len(names):
        raise NeuralRaceError(
            "two axes or values of the ensemble have one name",
            got=listed(names),
            wanted="names of their own",
            fix="call the axis of the datasets, or what is recorded, something else",
        )
    return dict(axes)


def _seeds(seeds: Any) -> int | list[int]:
    """How many seeds there are, or which ones."""
    fix = "for example seeds=10, or seeds=[0, 3, 4]"
    if not _is_list(seeds) and not isinstance(seeds, range):
        return whole_number("seeds", seeds, fix=fix)
    found = [whole_number("a seed", seed, least=0, fix=fix) for seed in seeds]
    if not found or len(set(found)) < len(found) or max(found) >= 2**32:
        raise NeuralRaceError(
            "seeds must be different and at least one",
            got=f"{found!r:.80}",
            wanted="each number once, below 2³²",
            fix=fix,
        )
    return found


def _keys(key: Any, seeds: Any) -> Any:
    """The random key of every seed."""
    if isinstance(seeds, int):
        return jax.random.split(key, seeds)
    return jax.vmap(lambda s: jax.random.fold_in(key, s))(jnp.asarray(seeds, np.uint32))


def _given(net: Network, weights: Any, seeds: int, scale: Any) -> Weights:
    """The weights that each seed starts from, where they are given and not drawn."""
    fix = "pass the `final` of an ensemble with as many seeds, and leave out scale"
    stacked = {edge: jnp.asarray(w) for edge, w in by_name("weights", weights, fix).items()}
    wrong = [edge for edge, stack in stacked.items() if stack.ndim < 2 or len(stack) != seeds]
    if wrong or _is_list(scale):
        raise NeuralRaceError(
            "weights of an ensemble are one start for every seed",
            got=f"shape {stacked[wrong[0]].shape} for edge {wrong[0]!r}, and {seeds} seeds"
            if wrong
            else "weights together with several scales",
            wanted=f"{{edge: array of shape ({seeds}, target, source)}}, and one scale or none",
            fix=fix,
        )
    checked_weights(net.arch, {edge: stack[0] for edge, stack in stacked.items()}, net.shapes)
    return stacked


@functools.partial(jax.jit, static_argnums=0)
def _init(fixed: Any, key: Any, seeds: Any, places: Any, scales: Any) -> Weights:
    """The initial weights of every member, as `net.init` makes them for one."""
    net, kind, dtype, count = fixed
    keys = _keys(key, count if seeds is None else seeds)[places]
    return jax.vmap(lambda key, scale: net.init(key, scale, kind, dtype))(keys, scales)


def _check_one_shape(datasets: list[Dataset]) -> None:
    shapes = [jax.tree.map(jnp.shape, d) for d in datasets]
    for i, shape in enumerate(shapes):
        if not eqx.tree_equal(shape, shapes[0]):
            raise NeuralRaceError(
                f"dataset {i} of the ensemble has another shape than dataset 0",
                got=f"x {_shapes(datasets[i].x)}, gates {_shapes(datasets[i].gates)}",
                wanted=f"x {_shapes(datasets[0].x)}, gates {_shapes(datasets[0].gates)}, and equal "
                "targets, labels and sample weights",
                fix="give all the same number of samples, the same gates and labels",
            )


def _shapes(arrays: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {tuple(a.shape)}" for name, a in sorted(arrays.items())) or "none"


def _is_list(scale: Any) -> bool:
    """Whether a list of scales was given, and not one for all members."""
    return isinstance(scale, list | tuple) or len(getattr(scale, "shape", ())) == 1


def _scales(scale: Any) -> list[Any]:
    """The scales of an ensemble; each of them is checked where it is used."""
    if not _is_list(scale):
        return [scale]
    fix = "for example scale=[0.01, 0.1]"
    found = entries("scale", scale, fix)
    for each in found:
        for value in each.values() if isinstance(each, Mapping) else (each,):
            real_number("a scale", value, fix=fix)
    return found
