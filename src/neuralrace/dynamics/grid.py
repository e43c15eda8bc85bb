"""The members of an ensemble: every combination of datasets, scales, rates and seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from neuralrace.checks import entries, random_key
from neuralrace.dataset import Dataset
from neuralrace.dynamics.loop import SHARE, device_memory, on_accelerator
from neuralrace.dynamics.setup import Problem
from neuralrace.dynamics.systems import Batches, NetworkSystem, View
from neuralrace.dynamics.train import key_data
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import InitKind, Network
from neuralrace.trajectory import Trajectory, check_name
from neuralrace.types import ArrayLike, Key, Weights, WeightsLike
from neuralrace.weights import checked_weights, float_dtype

T = TypeVar("T")

Scales: TypeAlias = float | Mapping[str, float] | Sequence[float] | Sequence[Mapping[str, float]]
"""Scales of initial weights: one for all, one per edge, or several on the axis `scale`."""

MEMORY = 2**28
"""Bytes that the records and weights of a chunk of an ensemble may take by default, on a CPU."""


@final
@dataclass(frozen=True, eq=False)
class Starts:
    """How members begin: drawn at one of some scales for every seed, or from weights of their own.

    `by_edge` has one number per scale for every edge.
    """

    net: Network
    key: Array
    seeds: int | list[int]
    scale: Scales
    by_edge: dict[str, np.ndarray]
    kind: InitKind
    dtype: np.dtype | None
    own: Weights | None

    @staticmethod
    def of(
        net: Network, key: Key, seeds: int | Sequence[int], scale: Scales, kind: InitKind,
        dtype: Any = None, weights: WeightsLike | None = None,
    ) -> Starts:  # fmt: skip
        """Check everything."""
        several = one_row("scale", scale)
        each = [net.checked_scales(one, kind) for one in several.ravel().tolist()]
        by_edge = {edge: np.asarray([one[edge] for one in each]) for edge in net.arch.matrices}
        dtype = None if dtype is None else float_dtype(dtype)
        drawn = Starts(net, random_key(key), _seeds(seeds), scale, by_edge, kind, dtype, None)
        if weights is None:
            return drawn
        fix = "pass the `final` of an ensemble with as many seeds, and leave out scale"
        own = {edge: jnp.asarray(w) for edge, w in weights.items()}
        count = len(drawn.places)
        wrong = [edge for edge, stack in own.items() if stack.ndim < 2 or len(stack) != count]
        if wrong or several.ndim:
            raise NeuralRaceError(
                "weights of an ensemble are one start for every seed",
                got=f"shape {own[wrong[0]].shape} for edge {wrong[0]!r}, and {count} seeds"
                if wrong
                else "weights together with several scales",
                wanted=f"{{edge: array of shape ({count}, target, source)}}, and one scale or none",
                fix=fix,
            )
        checked_weights(net.arch, {edge: stack[0] for edge, stack in own.items()}, net.shapes)
        return replace(drawn, own=own)

    @property
    def places(self) -> np.ndarray:
        """The coordinates of the seeds."""
        return np.arange(self.seeds) if isinstance(self.seeds, int) else np.asarray(self.seeds)

    @property
    def sample(self) -> Weights | dict[str, np.ndarray]:
        """Weights of the shapes and the precision that members start from."""
        if self.own is not None:
            return {edge: stack[0] for edge, stack in self.own.items()}
        return {e: np.zeros(shape, self.dtype or float) for e, shape in self.net.shapes.items()}

    def keys(self) -> Array:
        """The random key of every seed."""
        if isinstance(self.seeds, int):
            return jax.random.split(self.key, self.seeds)
        return jax.vmap(lambda s: jax.random.fold_in(self.key, s))(
            jnp.asarray(self.seeds, np.uint32)
        )

    def weights(self, scale: Int[np.ndarray, " M"], seed: Int[np.ndarray, " M"]) -> Weights:
        """The initial weights of members, by the places of their scales and seeds."""
        if self.own is not None:
            return {edge: stack[seed] for edge, stack in self.own.items()}
        count = self.seeds if isinstance(self.seeds, int) else tuple(self.seeds)
        scales = {edge: each[scale] for edge, each in self.by_edge.items()}
        return _drawn((self.net, self.kind, self.dtype, count), self.key, seed, scales)

    @property
    def settings(self) -> dict[str, Any]:
        """What a trajectory says about them."""
        drawn = {"scale": jax.tree.map(float, self.scale), "kind": self.kind}
        told = drawn if self.own is None else {"weights": "given"}
        return told | {"key": key_data(self.key), "seeds": self.seeds}


@functools.partial(jax.jit, static_argnums=0)
def _drawn(
    fixed: tuple[Network, InitKind, np.dtype | None, int | tuple[int, ...]],
    key: Array,
    seed: Array,
    scales: dict[str, Array],
) -> Weights:
    """The initial weights of every member, as `net.init` makes them for one."""
    net, kind, dtype, seeds = fixed
    listed = seeds if isinstance(seeds, int) else list(seeds)
    keys = Starts(net, key, listed, 1.0, {}, kind, dtype, None).keys()[seed]
    return jax.vmap(lambda key, scale: net.init(key, scale, kind, dtype))(keys, scales)


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
    """All combinations of datasets, scales, rates and seeds; `problems` has one for each dataset.

    `rates` has the learning rate of every place along its axis.
    """

    problems: list[Problem]
    starts: Starts
    rates: Sequence[float | None]
    axes: dict[str, np.ndarray]

    @staticmethod
    def of(
        data: Dataset | Sequence[Dataset],
        posed: Callable[[Dataset], Problem],
        starts: Starts,
        rates: float | Sequence[float] | None,
        axis: tuple[str, ArrayLike] | None,
    ) -> Grid:
        """Check everything; `posed` makes the problem of a dataset."""
        each = [data] if isinstance(data, Dataset) else list(data)
        axes: list[tuple[str, Any]] = []
        if not isinstance(data, Dataset):
            axes.append(_axis_of_datasets(axis, len(each)))
        elif axis is not None:
            raise NeuralRaceError(
                f"axis {axis!r:.60} names an axis of datasets, but there is only one dataset",
                got="one Dataset",
                wanted="a sequence of datasets",
                fix="pass data=[…], or leave out axis",
            )
        for name, value in (("scale", starts.scale), ("learning_rate", rates)):
            if (row := one_row(name, value)).ndim:
                by_edge = any(isinstance(v, Mapping) for v in row)
                axes.append((name, np.arange(row.size) if by_edge else row.astype(float)))
        axes.append(("seed", starts.places))
        problems = [posed(one) for one in each]
        _check_one_shape([problem.system.data for problem in problems])
        recorder = problems[0].recorder
        recorded = [name for name, _ in (*recorder.what, *recorder.evaluated)]
        names = [*(name for name, _ in axes), "time", "loss", *recorded]
        require(
            len(set(names)) >= len(names),
            "two axes or values of the ensemble have one name",
            got=listed(names),
            wanted="names of their own",
            fix="call the axis of the datasets, or what is recorded, something else",
        )
        each_rate: list[Any] = [*rates] if isinstance(rates, list) else [rates]
        return Grid(problems, starts, each_rate, dict(axes))

    def __len__(self) -> int:
        return int(np.prod(self._counts))

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        scales = len(next(iter(self.starts.by_edge.values())))
        return len(self.problems), scales, len(self.rates), len(self.axes["seed"])

    @property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(len(coordinates) for coordinates in self.axes.values())

    @property
    def problem(self) -> Problem:
        """That of the first dataset, with all that they share."""
        return self.problems[0]

    @property
    def data(self) -> str | list[str]:
        """The digest of the data, or of each dataset."""
        digests = [problem.settings["data"] for problem in self.problems]
        return digests[0] if len(digests) == 1 else digests

    def chunks(self, stops: int, at_once: int | None) -> Iterator[Chunk]:
        """The members, that many at a time; the last chunk is padded with repeats."""
        at_once = self._that_fit(stops) if at_once is None else at_once
        rows = np.stack(np.unravel_index(np.arange(len(self)), self._counts), axis=-1)
        devices = len(jax.devices())
        size = min(at_once, len(self))
        size = -(-size // devices) * devices  # the same number on every device
        for low in range(0, len(self), size):
            real = min(size, len(self) - low)
            yield Chunk(np.resize(rows[low : low + real], (size, 4)), low, real)

    def _that_fit(self, stops: int) -> int:
        """How many members fit into memory, several copies of the weights included."""
        size = lambda tree: sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        problem = self.problem
        room = max(MEMORY, SHARE * device_memory()) if on_accelerator() else MEMORY
        records = problem.recorder.what or problem.recorder.evaluated
        recorded = size(jax.eval_shape(problem.system.observe, problem.weights)) if records else 0
        own = size(problem.system.data) if len(self.problems) > 1 else 0
        return max(1, int(room // (stops * (recorded + 8) + 8 * size(problem.weights) + own)))

    def weights(self, members: Chunk) -> Weights:
        """The initial weights of some members."""
        return spread(self.starts.weights(members.rows[:, 1], members.rows[:, 3]))

    def system(self, members: Chunk) -> NetworkSystem:
        """What some members learn: one dataset for all, or one for each."""
        whole = self.problem.system
        if len(self.problems) == 1:
            return whole
        datasets = [problem.system.data for problem in self.problems]
        each = jax.tree.map(lambda *leaves: jnp.stack(leaves), *datasets)
        data = spread(jax.tree.map(lambda leaf: leaf[members.rows[:, 0]], each))
        return replace(whole, data=data, view=View(whole.view.lift, data))

    @property
    def axes_of_system(self) -> PyTree:
        """What of a system is batched, as in `jax.vmap`."""
        if len(self.problems) == 1:
            return None
        whole = self.problem.system
        return replace(whole, data=0, view=View(None, 0), evaluations=None, schedule=None, law=None)  # type: ignore[arg-type]

    def rate(self, members: Chunk) -> Array:
        """The learning rate of every member."""
        rates = np.asarray(self.rates, self.problem.dtype)
        return spread(jnp.asarray(rates[members.rows[:, 2]]))

    def batches(self, members: Chunk, size: int | None) -> Batches | None:
        """Batches with a key of its own for every member."""
        if size is None:
            return None
        keys = self.starts.keys()[members.rows[:, 3]]
        keys = spread(jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys))
        return Batches(keys, size, self.problem.system.data.n_samples)

    @property
    def sample_weight(self) -> np.ndarray | None:
        """The sample weights of all members, or of each where datasets differ in them."""
        counts = [problem.system.data.n_samples for problem in self.problems]
        each = [
            np.full(n, 1 / n) if problem.sample_weight is None else problem.sample_weight
            for n, problem in zip(counts, self.problems, strict=True)
        ]
        if all(np.array_equal(w, each[0]) for w in each):
            return self.problem.sample_weight
        stack = np.stack(each).reshape(len(each), *[1] * (len(self._lengths) - 1), -1)
        return np.broadcast_to(stack, (*self._lengths, stack.shape[-1])).copy()

    def gathered(self, parts: Sequence[T]) -> T:
        """The chunks of a result as one, its arrays with the axes of the ensemble."""

        def whole(*arrays: np.ndarray) -> np.ndarray:
            array = np.concatenate(arrays) if arrays[1:] else arrays[0]
            return array[: len(self)].reshape(self._lengths + np.shape(array)[1:])

        return jax.tree.map(whole, *parts)

    def trajectory(
        self,
        time: np.ndarray,
        parts: Sequence[tuple[np.ndarray, PyTree, PyTree]],
        settings: Mapping[str, Any],
        steps: np.ndarray | None = None,
    ) -> Trajectory:
        """The chunks of losses, values and final weights as one trajectory."""
        loss, values, final = self.gathered(parts)
        data = {next(iter(self.axes)): self.data} if isinstance(self.data, list) else self.data
        told = self.problem.provenance(dict(settings) | self.starts.settings | {"data": data})
        told |= {"sample_weight": self.sample_weight, "axes": self.axes, "steps": steps}
        return Trajectory(time, loss, values=values, final=final, **told)


def spread(tree: Any) -> Any:
    """The members (the first axis of every leaf) spread over all devices."""
    devices = jax.devices()
    if len(devices) == 1:
        return tree
    mesh = jax.sharding.Mesh(np.array(devices), ("member",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))
    return jax.device_put(tree, place)


def _axis_of_datasets(
    axis: tuple[str, ArrayLike] | None, count: int
) -> tuple[str, Sequence[Any] | range]:
    """The name and the coordinates of the axis of the datasets."""
    axis = ("data", range(count)) if axis is None else axis
    name, coordinates = axis[0], entries("the coordinates of axis", axis[1])
    require(
        len(coordinates) == count and count,
        "axis names the datasets and says where each stands",
        got=f"{axis!r:.80} for {count} datasets",
        wanted="(name, coordinates), with one coordinate per dataset, and at least one",
        fix="for example axis=('delta', [0.0, 0.4, 0.8])",
    )
    check_name(name)
    return name, coordinates


def _seeds(seeds: Any) -> int | list[int]:
    """How many seeds there are, or which ones."""
    if not np.ndim(seeds):
        return int(seeds)
    each = [int(seed) for seed in seeds]
    require(
        each and len(set(each)) == len(each) and max(each) < 2**32,
        "seeds must be different and at least one",
        got=f"{each!r:.80}",
        wanted="each number once, below 2³²",
        fix="for example seeds=10, or seeds=[0, 3, 4]",
    )
    return each


def _check_one_shape(datasets: list[Dataset]) -> None:
    shapes = [jax.tree.map(jnp.shape, d) for d in datasets]
    for i, shape in enumerate(shapes):
        require(
            eqx.tree_equal(shape, shapes[0]),
            f"dataset {i} of the ensemble has another shape than dataset 0",
            got=f"x {_shapes(datasets[i].x)}, gates {_shapes(datasets[i].gates)}",
            wanted=f"x {_shapes(datasets[0].x)}, gates {_shapes(datasets[0].gates)}, and equal "
            "targets, labels and sample weights",
            fix="give all the same number of samples, the same gates and labels",
        )


def _shapes(arrays: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {tuple(a.shape)}" for name, a in sorted(arrays.items())) or "none"


def one_row(name: str, value: object) -> np.ndarray:
    """A value as an array of objects without axes, or several of them as a row."""
    row = np.asarray(value, object)
    require(
        row.ndim <= 1 and row.size,
        f"{name} must be a number or a sequence of numbers",
        got=f"shape {row.shape}",
        wanted="a number, or a sequence of at least one",
        fix=f"for example {name}=[0.01, 0.1]",
    )
    return row
