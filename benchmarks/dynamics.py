"""What a step costs: ensembles against a Python loop."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp

import neuralrace as nr
from benchmarks.timing import medians


def python_loop(net: nr.Network, weights: dict, data: nr.Dataset, rate: float, steps: int):
    """The usual trainer: a compiled step, called from Python, that reads the loss every time."""

    @jax.jit
    def step(weights: dict) -> tuple[dict, jax.Array]:
        loss, gradient = jax.value_and_grad(net.loss)(weights, data)
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradient), loss

    def run() -> list[float]:
        losses, current = [], weights
        for _ in range(steps):
            current, loss = step(current)
            losses.append(float(loss))
        return losses

    return run


def ensemble_ratio(seeds: int = 100, steps: int = 2000, repeats: int = 5) -> float:
    """Runs a second of `train_ensemble` on the XoR ReLU network, over those of a Python loop."""
    warnings.filterwarnings("ignore", message="float64 data is used in float32")
    net, data, key = nr.ReLUNetwork((2, 128, 1)), nr.tasks.xor(), jax.random.key(0)
    weights = net.init(key, scale=2e-4, dtype=jnp.float32)
    narrow = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), data)
    loop = python_loop(net, weights, narrow, 0.1, steps)

    def ensemble() -> nr.Trajectory:
        return nr.train_ensemble(
            net,
            data,
            key=key,
            seeds=seeds,
            scale=2e-4,
            learning_rate=0.1,
            steps=steps,
            dtype=jnp.float32,
        )

    loop(), ensemble()
    one, many = medians(loop, ensemble, repeats=repeats)
    return one / (many / seeds)
