"""Training routing networks on images: many routes, scales and seeds in one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from neuralrace.checks import entries, one_of, random_key, real_number
from neuralrace.dynamics.bounded import BoundedDescent, arrived
from neuralrace.dynamics.driver import take_steps
from neuralrace.dynamics.program import Members
from neuralrace.dynamics.routed import RoutedMoments, RoutedNetwork
from neuralrace.dynamics.systems import State
from neuralrace.dynamics.train import key_data
from neuralrace.dynamics.until import Until
from neuralrace.errors import NeuralRaceError, check_kind, whole_number
from neuralrace.progress import progress
from neuralrace.tasks import Moments
from neuralrace.tasks.routing import route_matrix
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key
from neuralrace.weights import float_dtype

STEPS = 1_000_000
"""The most steps that a run may take by default; it ends at its time, usually long before."""


def train_routing(
    task: Moments,
    *,
    time: float,
    routes: Sequence[Bool[np.ndarray, "_ _"]] | None = None,
    axis: tuple[str, Sequence[Any]] | None = None,
    scale: float | Sequence[float] = 0.1,
    seeds: int = 1,
    key: Key = 0,
    hidden: int = 128,
    decoders: str = "xavier",
    largest_step: float = 2.0,
    caution: float = 1.0,
    record_every: int = 1000,
    steps: int = STEPS,
    dtype: str | type = "float32",
    callback: Callable[[int, float], None] | None = None,
) -> Trajectory:
    """Train routing networks with squared loss by second moments alone (NRR §5).

    L = ½ ⟨‖y − C_j W A_i x_i‖²⟩, the mean over images and trained routes (i, j); M encoders A_i, a
    shared hidden layer W, M decoders C_j. Descent with steps min(`largest_step`, `caution` /
    curvature), up to the flow time `time`, which is the sum of all steps.

    **Arguments:** `task` of `tasks.image_routing(…).moments()`. Every combination of `routes`
    (several matrices, whose axis in the result is `axis = (name, coordinates)`, by default
    `("routes", 0 … n − 1)`; those of the task if left out), of `scale` and of `seeds` is run at
    once. Weights start from Xavier's Gaussian, times `scale`: standard deviation √(2 / (in + out))
    for every matrix. `decoders="authors"` gives decoders √(2 / (classes · (hidden + M))), as the
    authors' code does by taking the fans of the whole array. `record_every` counts steps.

    **Returns:** a `Trajectory` with `values` `trained` and `untrained`, the mean accuracy on test
    images of these routes, and `elapsed`, the flow time of each run; its own `time` counts steps.

    ```python
    >>> from neuralrace import tasks
    >>> from neuralrace.dynamics import train_routing
    >>> task = tasks.image_routing(tasks.images("digits"), M=4, K=3)
    >>> run = train_routing(task.moments(), time=300.0, hidden=32, seeds=2, scale=0.3)
    >>> run.loss.shape[0], bool((run.values["trained"][:, -1] > 0.7).all())
    (2, True)

    ```
    """
    check_kind("task", task, Moments, "pass tasks.image_routing(…).moments()")
    horizon = real_number("time", time, above=0, fix="for example time=7500.0")
    M, real = len(task.routes), float_dtype(dtype)
    fix = "for example routes=[tasks.circulant_routes(40, 8)]"
    given = [task.routes] if routes is None else entries("routes", routes, fix)
    matrices = np.stack([route_matrix(each, M) for each in given])
    system = RoutedMoments(
        routes=jnp.asarray(matrices[0], real),
        test=jnp.asarray(task.test, np.float32),
        test_labels=jnp.asarray(task.test_labels),
        horizon=jnp.asarray(horizon, real),
        variance=jnp.asarray(task.variance, real),
        cross=jnp.asarray(task.cross, real),
        power=jnp.asarray(task.power, real),
    )
    sizes = (task.pixels, task.variance.shape[1], hidden, task.classes)
    return _trained(
        system, matrices, sizes, real, axis=axis, routed=routes is not None, scale=scale,
        seeds=seeds, key=key, decoders=decoders, largest_step=largest_step, caution=caution,
        record_every=record_every, steps=steps, callback=callback,
    )  # fmt: skip


def _trained(
    system: RoutedNetwork, matrices: np.ndarray, sizes: tuple[int, int, int, int], dtype: Any, *,
    axis: Any, routed: bool, scale: Any, seeds: int, key: Key, decoders: str,
    largest_step: float, caution: float, record_every: int, steps: int, callback: Any,
) -> Trajectory:  # fmt: skip
    """Run every combination of routes, scales and seeds in one program."""
    seeds = whole_number("seeds", seeds, fix="for example seeds=10")
    scales = [real_number("a scale", s, above=0, fix="scale=0.1") for s in np.atleast_1d(scale)]
    every = whole_number("record_every", record_every, fix="record_every=1000")
    last = whole_number("steps", steps, fix="leave it out")
    largest = real_number("largest_step", largest_step, above=0, fix="largest_step=2.0")
    caution = real_number("caution", caution, above=0, below=2, fix="caution=1.0")
    whole_number("hidden", sizes[2], fix="for example hidden=128")
    one_of("decoders", decoders, ("xavier", "authors"), fix="decoders='xavier'")
    axes = _axes(matrices, axis, routed, scale, scales, seeds)
    keys = jax.random.split(random_key(key, "an ensemble"), seeds)
    rows = np.array(list(itertools.product(range(len(matrices)), range(len(scales)), range(seeds))))
    stds = initial_stds(*sizes, M=matrices.shape[1], decoders=decoders)
    shapes = initial_shapes(*sizes, M=matrices.shape[1])
    factor = jnp.asarray(scales, dtype)[rows[:, 1]]
    state = jax.vmap(lambda k, s: drawn(k, s, stds, shapes, dtype))(keys[rows[:, 2]], factor)
    state["time"] = jnp.zeros(len(rows), dtype)
    state["probe"] = jax.vmap(system.probe)(state)
    put = lambda system, routes: eqx.tree_at(
        lambda s: s.routes, system, routes, is_leaf=lambda leaf: leaf is None
    )
    batched = put(system, jnp.asarray(matrices[rows[:, 0]], dtype))
    places = put(jax.tree.map(lambda leaf: None, system), 0)
    stops = np.unique(np.append(np.arange(0, last + 1, every), last))
    past = [0]
    with progress(last * len(rows), "routing networks") as advance:

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[-1]) * len(rows))
            past.append(step)
            if callback is not None:
                callback(step, loss)

        done = take_steps(
            batched,
            state,
            BoundedDescent(largest, caution),
            stops,
            until=Until(function=arrived),
            members=Members(len(rows), places, None),
            seen=seen,
        )
    shaped = lambda a: a.reshape(*(len(c) for c in axes.values()), *a.shape[1:])
    weights = {name: w for name, w in done.final.items() if name not in ("time", "probe")}
    return Trajectory(
        done.stops.astype(float),
        shaped(done.loss),
        values=jax.tree.map(shaped, done.values),
        final=jax.tree.map(shaped, weights),
        axes=axes,
        steps=done.stops,
        settings={
            "method": "gradient descent, bounded by curvature",
            "clock": "steps",
            "flow_time": float(system.horizon),
            "largest_step": largest,
            "caution": caution,
            "scale": scales,
            "decoders": decoders,
            "hidden": sizes[2],
            "seeds": seeds,
            "key": key_data(key),
            "dtype": str(np.dtype(dtype)),
        },
    )


def initial_shapes(
    pixels: int, inputs: int, hidden: int, classes: int, *, M: int
) -> dict[str, tuple[int, ...]]:
    """The shapes of encoders, hidden layer and decoders."""
    return {
        "encoders": (M, hidden, inputs),
        "hidden": (hidden, hidden),
        "decoders": (M, classes, hidden),
    }


def initial_stds(
    pixels: int, inputs: int, hidden: int, classes: int, *, M: int, decoders: str
) -> dict[str, float]:
    """Xavier's standard deviations; that of the encoders follows all pixels, seen or not."""
    fans = classes * (hidden + M) if decoders == "authors" else classes + hidden
    fan = {"encoders": pixels + hidden, "hidden": 2 * hidden, "decoders": fans}
    return {name: float(np.sqrt(2 / each)) for name, each in fan.items()}


def drawn(
    key: Array, scale: Array, stds: dict[str, float], shapes: dict[str, tuple[int, ...]], dtype: Any
) -> State:
    """Gaussian weights of these sizes."""
    keys = jax.random.split(key, len(shapes))
    return {
        name: scale * stds[name] * jax.random.normal(k, shapes[name], dtype)
        for k, name in zip(keys, shapes, strict=True)
    }


def _axes(
    matrices: np.ndarray, axis: Any, routed: bool, scale: Any, scales: list[float], seeds: int
) -> dict[str, Any]:
    axes: dict[str, Any] = {}
    if routed:
        name, places = ("routes", range(len(matrices))) if axis is None else axis
        places = list(places)
        if len(places) != len(matrices):
            raise NeuralRaceError(
                f"axis {name!r} does not fit the routes",
                got=f"{len(places)} coordinates for {len(matrices)} matrices",
                wanted="one coordinate per matrix",
                fix="for example axis=('K', [2, 4, 8])",
            )
        axes[name] = places
    if np.ndim(scale):
        axes["scale"] = scales
    return axes | {"seed": np.arange(seeds)}
