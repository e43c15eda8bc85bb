"""Training routing networks on images: many routes, scales and seeds in one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

import neuralrace as nr
from neuralrace.checks import entries, one_of, random_key, real_number
from neuralrace.errors import NeuralRaceError, check_kind, whole_number
from neuralrace.progress import progress
from neuralrace.tasks import route_matrix
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key
from neuralrace.weights import float_dtype
from papers.nrr.bounded import Batches, BoundedDescent, Method, Optimized, State, descend
from papers.nrr.image_routing import ImageRouting, Moments
from papers.nrr.routed import LEARNED, RoutedMoments, RoutedNetwork
from papers.nrr.routed_images import RoutedImages, moved

if TYPE_CHECKING:
    from optax import GradientTransformation

ROW = 8
"""Inputs come in multiples of this: a GPU multiplies other matrices more slowly.

With 40 domains of 717 inputs, one step of one run takes 72 µs on an H200, and 57 µs with 720.
"""

STEPS = 1_000_000
"""The most steps that a run may take by default; it ends at its time, usually long before."""


def train_routing(
    task: Moments | ImageRouting,
    *,
    time: float,
    routes: Sequence[Bool[np.ndarray, "_ _"]] | None = None,
    axis: tuple[str, Sequence[Any]] | None = None,
    scale: float | Sequence[float] = 0.1,
    seeds: int = 1,
    key: Key = 0,
    hidden: int = 128,
    decoders: str = "xavier",
    leak: float = 1.0,
    batch_size: int = 512,
    sampled: int | None = 4,
    optimizer: GradientTransformation | None = None,
    largest_step: float = 2.0,
    caution: float = 1.0,
    record_every: int = 1000,
    steps: int = STEPS,
    dtype: str | type = "float32",
    products: str = "float32",
    callback: Callable[[int, float], None] | None = None,
) -> Trajectory:
    """Train routing networks on images, or by second moments alone (NRR §5).

    M encoders A_i, a shared hidden layer W and M decoders C_j answer C_j W A_i x to input x of
    domain i. The loss is the mean over images and trained routes (i, j). Given `Moments`, it is
    the squared loss ½‖y − C_j W A_i x‖², and no image is looked at; given an `ImageRouting`, it is
    cross-entropy, on batches of images. Steps are min(`largest_step`, `caution` / curvature), up to
    the flow time `time`, which is the sum of all steps.

    **Arguments:** `task` of `image_routing(…)`, or its `.moments()`. Every combination of
    `routes` (several matrices, whose axis in the result is `axis = (name, coordinates)`, by default
    `("routes", 0 … n − 1)`; those of the task if left out), of `scale` and of `seeds` is run at
    once. Weights start from Xavier's Gaussian, times `scale`: standard deviation √(2 / (in + out))
    for every matrix. `decoders="authors"` gives decoders √(2 / (classes · (hidden + M))), as the
    authors' code does by taking the fans of the whole array. `record_every` counts steps.

    **Of images only:** `leak`, the slope below 0 of both hidden layers (NRR Fig. 9: 0.01; 1 is a
    linear network); `batch_size`; `sampled`, through how many of its trained outputs each input
    domain answers at each step (None: all); `optimizer`, an `optax.sgd` in
    place of bounded descent (the authors': `optax.sgd(1e-4, momentum=0.9)` with `batch_size=8` and
    `sampled=None`), which ends at the first recorded step past `time`; `products`, `"bfloat16"` for
    faster products on a GPU.

    **Returns:** a `Trajectory` with `values` `trained` and `untrained`, the mean accuracy on test
    images of these routes, and `elapsed`, the flow time of each run; its own `time` counts steps.

    ```python
    >>> from neuralrace import tasks
    >>> from papers.nrr.image_routing import image_routing
    >>> from papers.nrr.routing import train_routing
    >>> task = image_routing(tasks.images("digits"), M=4, K=3)
    >>> run = train_routing(task.moments(), time=300.0, hidden=32, seeds=2, scale=0.3)
    >>> run.loss.shape[0], bool((run.values["trained"][:, -1] > 0.7).all())
    (2, True)

    ```
    """
    fix = "pass image_routing(…), or its moments"
    check_kind("task", task, (Moments, ImageRouting), fix)
    horizon = real_number("time", time, above=0, fix="for example time=7500.0")
    M, real = len(task.routes), float_dtype(dtype)
    fix = "for example routes=[tasks.circulant_routes(40, 8)]"
    given = [task.routes] if routes is None else entries("routes", routes, fix)
    matrices = np.stack([route_matrix(each, M) for each in given])
    if isinstance(task, Moments):
        width = -(-task.inputs_seen // ROW) * ROW
        system, batches = _of_moments(task, matrices[0], horizon, real, width), None
    else:
        leak = real_number("leak", leak, least=0, most=1, fix="leak=0.01, or 1 for linear")
        if sampled is not None:
            sampled = whole_number("sampled", sampled, fix="sampled=None answers through all")
        one_of("products", products, ("float32", "bfloat16", "float64"), fix="products='float32'")
        system = _of_images(task, matrices[0], horizon, real, leak, sampled, products)
        batches = whole_number("batch_size", batch_size, fix="batch_size=512")
        if batches > len(task.images.train):
            raise NeuralRaceError(
                "batch_size is larger than the images for training",
                got=f"batch_size={batches} for {len(task.images.train)} images",
                wanted=f"a whole number from 1 to {len(task.images.train)}",
                fix=f"batch_size={len(task.images.train)}",
            )
    sizes = (task.pixels, task.inputs_seen, hidden, task.classes)
    method: Method = BoundedDescent(
        real_number("largest_step", largest_step, above=0, fix="largest_step=2.0"),
        real_number("caution", caution, above=0, below=2, fix="caution=1.0"),
    )
    if optimizer is not None:
        method = Optimized(optimizer, LEARNED)
    return _trained(
        system, matrices, sizes, real, horizon, method, batches,
        axis=axis, routed=routes is not None, scale=scale, seeds=seeds, key=key,
        decoders=decoders, record_every=record_every, steps=steps, callback=callback,
    )  # fmt: skip


def routing_system(
    task: Moments, *, time: float = np.inf, dtype: str | type = "float32"
) -> RoutedMoments:
    """A routing network seen through second moments, as an object for the one driver.

    Its state is `{"encoders": (M, H, D), "hidden": (H, H), "decoders": (M, classes, H)}`, with or
    without a clock `"time"`.

    ```python
    >>> import jax.numpy as jnp
    >>> from papers.nrr.image_routing import image_routing
    >>> from papers.nrr.routing import routing_system
    >>> system = routing_system(image_routing(M=4, K=2).moments())
    >>> silent = {"encoders": jnp.zeros((4, 8, 61)), "hidden": jnp.zeros((8, 8)),
    ...           "decoders": jnp.zeros((4, 10, 8))}
    >>> round(float(system.loss(silent)), 3)
    0.45

    ```
    """
    check_kind("task", task, Moments, "pass image_routing(…).moments()")
    return _of_moments(task, task.routes, time, float_dtype(dtype))


def _of_moments(
    task: Moments, routes: np.ndarray, horizon: float, real: Any, width: int = 0
) -> RoutedMoments:
    """The system of these moments, with as many inputs that are always zero as `width` needs."""
    return RoutedMoments(
        routes=jnp.asarray(routes, real),
        test=_widened(jnp.asarray(task.test, np.float32), width),
        test_labels=jnp.asarray(task.test_labels),
        horizon=jnp.asarray(horizon, real),
        variance=_widened(jnp.asarray(task.variance, real), width),
        cross=_widened(jnp.asarray(task.cross, real), width),
        power=jnp.asarray(task.power, real),
    )


def _widened(array: Array, width: int) -> Array:
    """The array with zeros added to its last axis, up to this length."""
    more = max(0, width - array.shape[-1])
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])


def _of_images(
    task: ImageRouting, routes: np.ndarray, horizon: float, real: Any, leak: float,
    sampled: int | None, products: str,
) -> RoutedImages:  # fmt: skip
    if task.features is not None:
        tables = None
        shown, test = (part.astype(products) for part in task.seen_features)
        test = test.astype(np.float32)
    else:
        tables = None if task.alike else jnp.asarray(task.inputs)
        centred = lambda images: jnp.asarray(images - task.mean.astype(np.float32), products)
        shown = centred(task.images.train)
        test = moved(centred(task.images.test).astype(np.float32), tables)
    return RoutedImages(
        routes=jnp.asarray(routes, real),
        test=test,
        test_labels=jnp.asarray(task.images.test_labels),
        horizon=jnp.asarray(horizon, real),
        images=shown,
        labels=jnp.asarray(task.images.labels),
        tables=tables,
        spread=jnp.asarray(task.largest_variance, real),
        leak=leak,
        sampled=sampled,
        dtype=products,
    )


def _trained(
    system: RoutedNetwork, matrices: np.ndarray, sizes: tuple[int, int, int, int], dtype: Any,
    horizon: float, method: Method, batch_size: int | None, *, axis: Any, routed: bool,
    scale: Any, seeds: int, key: Key, decoders: str, record_every: int, steps: int, callback: Any,
) -> Trajectory:  # fmt: skip
    """Run every combination of routes, scales and seeds in one program."""
    seeds = whole_number("seeds", seeds, fix="for example seeds=10")
    scales = [real_number("a scale", s, above=0, fix="scale=0.1") for s in np.atleast_1d(scale)]
    every = whole_number("record_every", record_every, fix="record_every=1000")
    last = whole_number("steps", steps, fix="leave it out")
    whole_number("hidden", sizes[2], fix="for example hidden=128")
    one_of("decoders", decoders, ("xavier", "authors"), fix="decoders='xavier'")
    axes = _axes(matrices, axis, routed, scale, scales, seeds)
    keys = jax.random.split(random_key(key, "an ensemble"), seeds)
    rows = np.array(list(itertools.product(range(len(matrices)), range(len(scales)), range(seeds))))
    stds = initial_stds(*sizes, M=matrices.shape[1], decoders=decoders)
    shapes = initial_shapes(*sizes, M=matrices.shape[1])
    factor = jnp.asarray(scales, dtype)[rows[:, 1]]
    state = jax.vmap(lambda k, s: drawn(k, s, stds, shapes, dtype))(keys[rows[:, 2]], factor)
    state["encoders"] = _widened(state["encoders"], system.test.shape[-1])
    state["time"] = jnp.zeros(len(rows), dtype)
    state["probe"] = jax.vmap(system.probe)(state)
    put = lambda system, routes: eqx.tree_at(
        lambda s: s.routes, system, routes, is_leaf=lambda leaf: leaf is None
    )
    batched = put(system, jnp.asarray(matrices[rows[:, 0]], dtype))
    batches = None
    if batch_size is not None and isinstance(system, RoutedImages):
        own = jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys[rows[:, 2]])
        batches = Batches(own, batch_size, len(system.labels))
    stops = np.unique(np.append(np.arange(0, last + 1, every), last))
    elapsed = None
    if isinstance(method, Optimized):
        stops, elapsed = _clocked(method.transformation, stops, horizon)
    past = [0]
    with progress(last * len(rows), "routing networks") as advance:

        def seen(step: int, loss: float) -> None:
            advance(float(step - past[-1]) * len(rows))
            past.append(step)
            if callback is not None:
                callback(step, loss)

        done = descend(batched, state, method, stops, batches, seen)
    if elapsed is not None:
        done.values["elapsed"] = np.broadcast_to(elapsed, done.loss.shape)
    shaped = lambda a: a.reshape(*(len(c) for c in axes.values()), *a.shape[1:])
    weights = {name: done.final[name] for name in LEARNED}
    weights["encoders"] = weights["encoders"][..., : sizes[1]]
    return Trajectory(
        done.steps.astype(float),
        shaped(done.loss),
        values=jax.tree.map(shaped, done.values),
        final=jax.tree.map(shaped, weights),
        axes=axes,
        steps=done.steps,
        settings={
            "method": type(method).__name__,
            "system": type(system).__name__,
            "clock": "steps",
            "flow_time": horizon,
            "batch_size": batch_size,
            "scale": scales,
            "decoders": decoders,
            "hidden": sizes[2],
            "seeds": seeds,
            "key": int(key) if hasattr(key, "__index__") else jax.random.key_data(key).tolist(),
            "dtype": str(np.dtype(dtype)),
        },
    )


def _clocked(
    optimizer: GradientTransformation, stops: Int[np.ndarray, " T"], horizon: float
) -> tuple[Int[np.ndarray, " stops"], Float[np.ndarray, " stops"]]:
    """The stops up to a flow time, and the flow time at each, of descent or momentum.

    `nr.train` knows what time means for an optimizer, whatever the network.
    """
    net = nr.GDLN(nr.Architecture.chain(1, 1))
    still = nr.Dataset({"x": [[1.0]]}, {"y": [[0.0]]})
    run = nr.train(
        net, net.init(0, scale=0.0), still, optimizer=optimizer, steps=int(stops[-1]),
        record_at=stops,
    )  # fmt: skip
    if run.settings["clock"] == "steps":
        raise NeuralRaceError(
            "the optimizer has no flow time at which a run could end",
            got="optimizer= neither plain descent nor descent with momentum",
            wanted="optax.sgd(…), with or without momentum",
            fix="leave out optimizer, or for example optimizer=optax.sgd(1e-4, momentum=0.9)",
        )
    end = int(np.searchsorted(run.time, horizon * (1 - 1e-6))) + 1
    return stops[:end], run.time[:end]


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
