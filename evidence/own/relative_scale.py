"""Relative scale of layers in practice (talk): what was measured on a GPU, and the networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim
from papers import TooSlow, find
from papers.talk import convolution, early_layers, grokking, relative_scale

SECTION = "Figures"


def by_seed(values: np.ndarray) -> str:
    """One number per seed, in words."""
    return ", ".join(f"{v:.3g}" for v in values)


def read(name: str, judge: Callable[[Any], tuple[str, bool]]) -> Measurement:
    """What the stored cells of a figure say, with their device and commit."""
    figure = find(name)
    try:
        table = figure.run(figure.resolve())
    except TooSlow:
        return Measurement("nothing is stored", False, "It has not been measured on a GPU yet.")
    text, met = judge(table)
    missing = int(table.attrs["missing"])
    note = f"{missing} cells are missing." if missing else ""
    return Measurement(f"{text} ({relative_scale.origins(table)})", met and not missing, note)


@claim(
    "talk/filters",
    SECTION,
    "Talk, “Promotes interpretability of early layers” (read from the numbers measured on a GPU): "
    "CIFAR-10, 5 seeds, last over first layer = 64 against 1: gain of the first filters' energy at "
    "low frequencies, and in one Gabor function, over the usual scales and over white noise",
    f"≥ {early_layers.MARGIN} each in every seed; the direction is inferred",
    slow=True,
)
def early_layers_are_structured(full: bool) -> Measurement:
    def judge(table: Any) -> tuple[str, bool]:
        told, met = [], True
        for name, gain in early_layers.GAINS.items():
            over = [np.asarray(m.read(table)) for m in (gain, early_layers.OVER_NOISE[name])]
            noise = float(table[f"{name}_of_noise"])
            told.append(f"{name} by seed {by_seed(over[0])}; noise {noise:.2g}, over it ")
            told[-1] += by_seed(over[1])
            met = met and all(bool((each >= early_layers.MARGIN).all()) for each in over)
        return "; ".join(told), met

    return read("talk/early_layers", judge)


def random_network(rng: np.random.Generator) -> tuple[Any, nr.Dataset]:
    """A convolutional network of random sizes, and random images."""
    image = (int(rng.integers(1, 4)), int(rng.integers(9, 13)), int(rng.integers(9, 13)))
    net = convolution.Convolutional.of(
        image, 3, channels=(int(rng.integers(2, 6)), int(rng.integers(2, 6))),
        kernels=(int(rng.integers(1, 5)), int(rng.integers(1, 4))),
        strides=(int(rng.integers(1, 3)), int(rng.integers(1, 3))),
    )  # fmt: skip
    size = net.arch.sizes["x"]
    return net, nr.Dataset({"x": rng.normal(size=(7, size))}, {"y": rng.normal(size=(7, 3))})


@claim(
    "talk/convolutions",
    SECTION,
    "the convolutional network on the base `nr.Network` against JAX's own convolutions, random "
    "sizes: outputs and gradients, largest difference",
    "≤ 1e-10",
    most=1e-10,
)
def convolutions(full: bool) -> Iterator[float]:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for _ in range(20 if full else 2):
            net, data = random_network(rng)
            weights = net.init(0, 0.4)
            x, y = (jnp.asarray(a) for a in (data.x["x"], data.y["y"]))

            def ordinary(w: Any, net: Any = net, x: Any = x) -> Any:
                h = x.reshape(-1, *net.image)
                for i, stride in enumerate(net.strides):
                    h = jax.nn.relu(jax.lax.conv(h, w[f"K{i + 1}"], (stride, stride), "VALID"))
                return h.mean(axis=(2, 3)) @ w["readout"].T

            lost = lambda w, of=ordinary, y=y: jnp.sum((of(w) - y) ** 2) / (2 * len(y))
            yield float(jnp.abs(net(weights, data)["y"] - ordinary(weights)).max())
            steps, gradient = net.velocity(weights, data), jax.grad(lost)(weights)
            yield from (float(jnp.abs(steps[e] + gradient[e]).max()) for e in steps)


@claim(
    "talk/equal-outputs",
    SECTION,
    "the ratio of scales leaves the initial outputs as they are: convolutional networks and "
    "networks for sums, ratios 1/50, 1 and 50, largest relative difference",
    "≤ 1e-10",
    most=1e-10,
)
def equal_outputs(full: bool) -> Iterator[float]:
    with jax.enable_x64(True):
        net, data = random_network(np.random.default_rng(1))
        adds = grokking.network(7, 16)
        cases = [(net, data, ("K1",)), (adds, grokking.sums(7, 0.5, 0)[0], ("embed_a", "embed_b"))]
        for net, data, first in cases:
            usual = dict.fromkeys(net.arch.edges, 0.5)
            outputs = []
            for ratio in (1 / 50, 1.0, 50.0):
                early, late = relative_scale.early_and_late(ratio)
                scales = usual | dict.fromkeys(first, 0.5 * early) | {"readout": 0.5 * late}
                outputs.append(np.asarray(net(net.init(2, scales, dtype="float64"), data)["y"]))
            size = np.abs(outputs[1]).max()
            yield from (float(np.abs(y - outputs[1]).max() / size) for y in outputs)
