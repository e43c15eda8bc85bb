"""Train the residual network whose features routing networks are shown for CIFAR-10 (NRR §5).

    PYTHONPATH=src python tools/train_features.py --data FOLDER --out resnet20.npz --seconds 45

ResNet20 on all training images, with random crops and flips, label smoothing, Nesterov momentum,
and a rate that rises and falls once. Everything is on the device, and an epoch is one program. The
file holds the weights, with batch normalisation folded into them, and how they were trained; its
place is `papers/nrr/data`. Needs nothing but JAX and what the package imports.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evidence.tables import made
from neuralrace import tasks
from papers.nrr.features import (
    ResidualNetwork,
    convolved,
    layer_shapes,
    residual,
)

MEAN = (0.4914, 0.4822, 0.4465)
"""Means of the three colours over the training images."""

SPREAD = (0.2470, 0.2435, 0.2616)
"""Their standard deviations."""

AROUND = 4
"""Black pixels around an image, from which crops of the old size are taken."""

SMOOTH = 0.05
"""Share of the target that goes to all classes alike."""

DECAY = 5e-4
"""Weight decay of kernels and readout."""

MOMENTUM = 0.9
"""Nesterov momentum."""

RISE = 0.2
"""Share of the steps in which the rate rises from 0 to its peak; it then falls to 0."""

MEMORY = 0.9
"""What running means and variances keep at each step."""

TINY = 1e-5
"""Added to variances."""

State = dict[str, Any]


def begin(key: jax.Array) -> State:
    """Gaussian kernels with variance 2 / inputs, a readout of zeros, and normalisation by ones."""
    shapes = layer_shapes()
    keys = jax.random.split(key, len(shapes))
    kernels = [
        jax.random.normal(k, (3, 3, *ends)) * jnp.sqrt(2 / (9 * ends[0]))
        for k, ends in zip(keys, shapes, strict=True)
    ]
    weights = {
        "kernels": kernels,
        "gain": [jnp.ones(n) for _, n in shapes],
        "shift": [jnp.zeros(n) for _, n in shapes],
        "readout": jnp.zeros((64, 10)),
        "readout_bias": jnp.zeros(10),
    }
    return {
        "weights": weights,
        "velocity": jax.tree.map(jnp.zeros_like, weights),
        "means": [jnp.zeros(n) for _, n in shapes],
        "variances": [jnp.ones(n) for _, n in shapes],
        "step": jnp.zeros((), int),
    }


def answers(weights: Any, x: jax.Array, low: Any) -> tuple[jax.Array, tuple[list, list]]:
    """Answers to a batch, and mean and variance of what each convolution gave."""
    means, variances = [], []

    def layer(k: int, x: jax.Array, stride: int = 1) -> jax.Array:
        raw = convolved(x, weights["kernels"][k], stride)
        wide = raw.astype(jnp.float32)
        mean = wide.mean(axis=(0, 1, 2))
        variance = jnp.maximum((wide**2).mean(axis=(0, 1, 2)) - mean**2, 0)
        means.append((k, mean)), variances.append((k, variance))
        scale = weights["gain"][k] / jnp.sqrt(variance + TINY)
        return (wide * scale + (weights["shift"][k] - mean * scale)).astype(low)

    last = residual(layer, x.astype(low), 3).astype(jnp.float32).mean(axis=(1, 2))
    in_order = lambda found: [value for _, value in sorted(found, key=lambda pair: pair[0])]
    found = last @ weights["readout"] + weights["readout_bias"]
    return found, (in_order(means), in_order(variances))


def shown(padded: jax.Array, index: jax.Array, key: jax.Array) -> jax.Array:
    """Images, each cropped at a random place and flipped or not, with normalised colours."""
    rows, columns, flips = jax.random.split(key, 3)
    size = 32
    draw = lambda k: jax.random.randint(k, (len(index), 1), 0, 2 * AROUND + 1)
    along = jnp.arange(size)
    flipped = jax.random.bernoulli(flips, shape=(len(index), 1))
    across = jnp.where(flipped, size - 1 - along, along) + draw(columns)
    down = along + draw(rows)
    taken = padded[index[:, None, None], down[:, :, None], across[:, None, :]]
    return (taken / 255.0 - jnp.array(MEAN)) / jnp.array(SPREAD)


@functools.partial(jax.jit, static_argnames=("size", "low"), donate_argnames="state")
def epoch(
    state: State, padded: jax.Array, labels: jax.Array, key: jax.Array, total: Any, peak: Any,
    *, size: int, low: str,
) -> tuple[State, jax.Array]:  # fmt: skip
    """All training images once, in random order; the mean loss."""
    count = len(padded) // size
    orders, crops = jax.random.split(key)
    order = jax.random.permutation(orders, len(padded))[: count * size].reshape(count, size)

    def step(state: State, given: Any) -> tuple[State, jax.Array]:
        index, own = given
        x = shown(padded, index, own)
        wanted = (1 - SMOOTH) * jax.nn.one_hot(labels[index], 10) + SMOOTH / 10

        def lost(weights: Any) -> Any:
            found, seen = answers(weights, x, low)
            return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(found), axis=1)), seen

        (loss, (means, variances)), gradient = jax.value_and_grad(lost, has_aux=True)(
            state["weights"]
        )
        done = (state["step"] + 1) / total
        rate = peak * jnp.minimum(done / RISE, (1 - done) / (1 - RISE))
        w, v = state["weights"], state["velocity"]
        decayed = {name: DECAY * (name in ("kernels", "readout")) for name in w}
        slope = {
            name: jax.tree.map(lambda g, a, d=decayed[name]: g + d * a, gradient[name], w[name])
            for name in w
        }
        v = jax.tree.map(lambda v, g: MOMENTUM * v + g, v, slope)
        w = jax.tree.map(lambda a, v, g: a - rate * (g + MOMENTUM * v), w, v, slope)
        keep = lambda old, new: jax.tree.map(lambda a, b: MEMORY * a + (1 - MEMORY) * b, old, new)
        state = {
            "weights": w,
            "velocity": v,
            "means": keep(state["means"], means),
            "variances": keep(state["variances"], variances),
            "step": state["step"] + 1,
        }
        return state, loss

    state, losses = jax.lax.scan(step, state, (order, jax.random.split(crops, count)))
    return state, losses.mean()


def folded(state: State, about: dict[str, Any]) -> ResidualNetwork:
    """The network with the running means and variances folded into kernels and biases."""
    w = state["weights"]
    scales = [g / jnp.sqrt(v + TINY) for g, v in zip(w["gain"], state["variances"], strict=True)]
    kernels = [k * s for k, s in zip(w["kernels"], scales, strict=True)]
    each = zip(w["shift"], state["means"], scales, strict=True)
    array = lambda a: np.asarray(a, np.float32)
    return ResidualNetwork(
        tuple(map(array, kernels)),
        tuple(array(shift - mean * scale) for shift, mean, scale in each),
        array(w["readout"]),
        array(w["readout_bias"]),
        array(MEAN),
        array(SPREAD),
        about,
    )


def write(network: ResidualNetwork, path: Path) -> None:
    """The file that `residual_features` reads."""
    arrays: dict[str, Any] = {
        name: getattr(network, name) for name in ("readout", "readout_bias", "mean", "spread")
    }
    for k, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
        arrays |= {f"kernel{k}": kernel, f"bias{k}": bias}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")  # nothing half written under the file's own name
    np.savez_compressed(part, about=np.array(json.dumps(dict(network.about))), **arrays)
    part.rename(path)


def main() -> None:
    """Train, test and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=45.0, help="where epochs are not given")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--peak", type=float, default=0.4, help="the largest rate")
    parser.add_argument("--low", default="bfloat16", help="the type of products")
    parser.add_argument("--take", type=int, default=None, help="fewer images, to try it")
    given = parser.parse_args()
    source = made()
    say = lambda text: sys.stdout.write(text + "\n") and sys.stdout.flush()

    clock = time.perf_counter()
    base = tasks.images("cifar10", given.data).take(given.take, given.take)
    pixels = np.rint(base.train * 255).astype(np.uint8).reshape(-1, 3, 32, 32)
    around = ((0, 0), (AROUND, AROUND), (AROUND, AROUND), (0, 0))
    padded = jnp.asarray(np.pad(pixels.transpose(0, 2, 3, 1), around))
    labels = jnp.asarray(base.labels)
    say(f"{len(pixels)} images read in {time.perf_counter() - clock:.1f} s")

    key = jax.random.key(given.seed)
    run = functools.partial(epoch, size=given.batch, low=given.low)
    start = lambda: begin(jax.random.fold_in(key, 0))
    timed = []
    for _ in range(2):  # the first compiles
        clock = time.perf_counter()
        jax.block_until_ready(run(start(), padded, labels, key, 1e9, given.peak))
        timed.append(time.perf_counter() - clock)
    say(f"compiled in {timed[0] - timed[1]:.1f} s, {timed[1]:.3f} s per epoch")
    epochs = given.epochs or max(1, int(given.seconds / timed[1]))
    total = epochs * (len(pixels) // given.batch)
    clock, state = time.perf_counter(), start()
    for number in range(epochs):
        own = jax.random.fold_in(key, number + 1)
        state, loss = run(state, padded, labels, own, total, given.peak)
        if number % 10 == 9 or number == epochs - 1:
            say(f"epoch {number + 1} of {epochs}: loss {float(loss):.4f}")
    jax.block_until_ready(state)
    seconds = time.perf_counter() - clock
    about = {
        "network": "ResNet20", "data": "CIFAR-10, 50 000 training images", "seed": given.seed,
        "epochs": epochs, "batch": given.batch, "peak": given.peak, "products": given.low,
        "seconds": round(seconds, 2),
    } | source  # fmt: skip
    if given.take:
        about["data"] = f"CIFAR-10, {given.take} training images"
    network = folded(state, about)
    right = {
        part: float(np.mean(network.classes(images) == classes))
        for part, images, classes in (
            ("accuracy", base.test, base.test_labels),
            ("training_accuracy", base.train[:10_000], base.labels[:10_000]),
        )
    }
    about |= {name: round(value, 4) for name, value in right.items()}
    write(network, given.out)
    say(json.dumps(about))


if __name__ == "__main__":
    main()
