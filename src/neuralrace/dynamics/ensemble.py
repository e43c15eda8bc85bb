"""Many descents in one compiled program."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.dynamics.descent import Descent, descend
from neuralrace.dynamics.setup import (
    Record,
    Recorder,
    make_recorder,
    positive_rate,
    prepared,
    recording_steps,
)
from neuralrace.errors import NeuralRaceError, listed, whole_number
from neuralrace.gdln import Network, Weights
from neuralrace.progress import progress
from neuralrace.trajectory import Trajectory


def train_ensemble(
    net: Network,
    data: Any,
    *,
    key: Any,
    seeds: int = 1,
    scale: Any = 1.0,
    kind: str = "gaussian",
    learning_rate: Any,
    steps: int,
    record_every: int = 1,
    record_at: Any = None,
    record: Any = None,
    axis: Any = None,
    members_at_once: int | None = None,
    dtype: Any = None,
) -> Trajectory:
    """Many descents in one program: over seeds, and over datasets, scales and learning rates.

    Every combination is run. Run i of the seeds starts from
    `net.init(jax.random.split(key, seeds)[i], scale, kind)` and gives the numbers that `train`
    gives from there.

    **Arguments:** `data`, one dataset or several of one shape (a task over a parameter), whose
    axis in the result is `axis = (name, coordinates)`, `("data", 0 … n−1)` by default; `scale`
    and `learning_rate`, a number each or a sequence; `members_at_once` bounds the memory by
    running so many at a time (by default as many as keep the recorded values of a call small).

    **Returns:** a `Trajectory` whose axes are those of `data`, `scale`, `learning_rate` that are
    sequences, in this order, then `seed`. Learning rates give different times to equal steps:
    with several, `time` counts steps.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.ReLUNetwork((2, 16, 1))
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> many = nr.train_ensemble(net, data, key=jax.random.key(0), seeds=3, scale=[0.01, 0.1],
    ...                          learning_rate=0.1, steps=100, record_every=50)
    >>> many.loss.shape, list(many.axes)
    ((2, 3, 3), ['scale', 'seed'])

    ```
    """
    datasets = [data] if isinstance(data, Dataset) else list(data)
    scales = list(scale) if np.ndim(scale) == 1 else [scale]
    rates = [positive_rate(r) for r in np.atleast_1d(learning_rate)]
    seeds = whole_number("seeds", seeds, fix="for example seeds=10")
    axes = _ensemble_axes(data, datasets, scale, learning_rate, seeds, axis, record or {})
    counts = (len(datasets), len(scales), len(rates), seeds)
    grid = np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=-1)

    keys = jax.random.split(key, seeds)
    by_edge = [s if isinstance(s, Mapping) else dict.fromkeys(net.arch.edges, s) for s in scales]
    by_edge = jax.tree.map(lambda *values: jnp.asarray(values), *by_edge)
    sample = net.init(keys[0], scales[0], kind, dtype)
    checked = [prepared(net, sample, d)[1] for d in datasets]
    _check_one_shape(checked)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *checked)
    recorder = make_recorder(net, record, sample, checked[0])
    stops = recording_steps(steps, record_every, record_at)
    fitting = (
        _members_that_fit(recorder, sample, checked[0], stops)
        if members_at_once is None
        else whole_number("members_at_once", members_at_once, fix="leave it out for a default")
    )
    at_once = min(fitting, len(grid))
    several = len(datasets) > 1
    done: list[Descent] = []
    with progress(int(stops[-1]) * len(grid), "ensemble") as advance:
        for low in range(0, len(grid), at_once):
            members = min(at_once, len(grid) - low)
            chunk = np.resize(grid[low : low + members], (at_once, 4))  # the last is filled up
            which_data, which_scale, which_rate, which_seed = chunk.T
            done.append(
                descend(
                    net,
                    recorder,
                    _init(net, kind, dtype, keys[which_seed], _picked(by_edge, which_scale)),
                    _picked(stacked, which_data) if several else checked[0],
                    np.asarray(rates)[which_rate],
                    stops,
                    lambda amount, members=members: advance(amount * members),
                    batched=(True, several, True),
                )
            )
    lengths = tuple(len(c) for c in axes.values())

    def gathered(*parts: np.ndarray) -> np.ndarray:
        whole = np.concatenate(parts)[: len(grid)]
        return whole.reshape(*lengths, *whole.shape[1:])

    settings = {
        "method": "gradient descent",
        "learning_rate": rates if len(rates) > 1 else rates[0],
        "scale": jax.tree.map(float, scales if np.ndim(scale) == 1 else scale),
        "kind": kind,
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "seeds": seeds,
        "steps": int(stops[-1]),
        "dtype": str(jnp.result_type(*sample.values())),
        "clock": "steps" if len(rates) > 1 else "flow",
    }
    run = Trajectory(
        (rates[0] if len(rates) == 1 else 1.0) * stops,
        gathered(*(part.loss for part in done)),
        values=jax.tree.map(gathered, *(part.values for part in done)),
        final=jax.tree.map(gathered, *(part.final for part in done)),
        net=net,
        axes=axes,
        settings=settings,
    )
    _warn_of_stopped(run)
    return run


def _ensemble_axes(
    data: Any,
    datasets: list[Dataset],
    scale: Any,
    rate: Any,
    seeds: int,
    axis: Any,
    record: Record,
) -> dict[str, Any]:
    axes: list[tuple[str, Any]] = []
    if not isinstance(data, Dataset):
        axis = axis or ("data", range(len(datasets)))
        if isinstance(axis, str) or len(axis) != 2:
            raise NeuralRaceError(
                "axis names the datasets and says where each stands",
                got=repr(axis),
                wanted="(name, coordinates)",
                fix="for example axis=('delta', [0.0, 0.4, 0.8])",
            )
        name, coordinates = axis
        coordinates = list(coordinates)
        if len(coordinates) != len(datasets) or not datasets:
            raise NeuralRaceError(
                f"axis {name!r} does not fit the datasets",
                got=f"{len(coordinates)} coordinates for {len(datasets)} datasets",
                wanted="one coordinate a dataset, and at least one of each",
                fix="pass axis=(name, coordinates) with as many coordinates as datasets",
            )
        axes.append((name, coordinates))
    elif axis is not None:
        raise NeuralRaceError(
            f"axis {axis[0]!r} names an axis of datasets, but there is only one dataset",
            got="one Dataset",
            wanted="a sequence of datasets",
            fix="pass data=[…], or leave out axis",
        )
    for name, value in (("scale", scale), ("learning_rate", rate)):
        by_edge = np.ndim(value) == 1 and any(isinstance(v, Mapping) for v in value)
        if np.ndim(value) > 1 or np.size(value) == 0 or by_edge:
            raise NeuralRaceError(
                f"{name} must be a number or a sequence of numbers",
                got="scales by edge, several" if by_edge else f"shape {np.shape(value)}",
                wanted="a number, or a sequence of at least one",
                fix="of scales by edge, {edge: scale}, there can be one: call again for each",
            )
        if np.ndim(value) == 1:
            axes.append((name, [float(v) for v in value]))
    axes.append(("seed", np.arange(seeds)))
    names = [*(name for name, _ in axes), "time", "loss", *record]
    if len(set(names)) < len(names):
        raise NeuralRaceError(
            "two axes or values of the ensemble have one name",
            got=listed(names),
            wanted="names of their own",
            fix="call the axis of the datasets, or what is recorded, something else",
        )
    return dict(axes)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _init(net: Network, kind: str, dtype: Any, keys: Any, scales: Any) -> Weights:
    """The initial weights of every member, as `net.init` makes them for one."""
    return jax.vmap(lambda key, scale: net.init(key, scale, kind, dtype))(keys, scales)


def _picked(tree: Any, index: np.ndarray) -> Any:
    """These entries along the first axis of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


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


MEMORY = 2**28
"""Bytes that the recorded values and weights of one chunk of an ensemble may take by default."""


def _members_that_fit(
    recorder: Recorder, weights: Weights, data: Dataset, stops: np.ndarray
) -> int:
    """How many runs of an ensemble keep within `MEMORY`, several copies of the weights included."""
    size = lambda tree: sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))  # noqa: E731
    recorded = size(jax.eval_shape(recorder, weights, data))
    return max(1, int(MEMORY // (len(stops) * (recorded + 8) + 8 * size(weights))))


def _warn_of_stopped(run: Trajectory) -> None:
    bad = int((~np.isfinite(run.loss).all(axis=-1)).sum())
    if bad:
        logging.getLogger(__name__).warning(
            "the loss of %d of %d runs stopped being finite; they are not finite from there on. "
            "A smaller learning rate usually mends it.",
            bad,
            run.loss[..., 0].size,
        )
