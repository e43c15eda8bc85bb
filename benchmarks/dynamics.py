"""The cost of a step: single runs and ensembles against the usual ways to write them."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp

import neuralrace as nr
from benchmarks.timing import medians, shortest


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


def plain_scan(net: nr.Network, data: nr.Dataset, rate: float, steps: int):
    """The least code that trains many networks at once: a vmap of a scan over value_and_grad."""

    def one(weights: dict) -> tuple[dict, jax.Array]:
        def step(weights: dict, _: None) -> tuple[dict, jax.Array]:
            loss, gradient = jax.value_and_grad(net.loss)(weights, data)
            return jax.tree.map(lambda w, g: w - rate * g, weights, gradient), loss

        return jax.lax.scan(step, weights, length=steps)

    return jax.jit(jax.vmap(one))


def in_single_precision(data: nr.Dataset) -> nr.Dataset:
    warnings.filterwarnings("ignore", message="float64 data is used in float32")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), data)


def matrix_product_peak(size: int = 1024, repeats: int = 10) -> float:
    """The most multiplications and additions per second in a float32 matrix product."""
    matrix = jax.random.normal(jax.random.key(0), (size, size), jnp.float32)
    product = jax.jit(jnp.matmul)
    run = lambda: jax.block_until_ready(product(matrix, matrix))
    run()
    return 2 * size**3 / min(medians(run, repeats=1)[0] for _ in range(repeats))


def relu_ratio(steps: int = 8000, hidden: int = 700, repeats: int = 3) -> tuple[float, float]:
    """The three-context ReLU network, loss at every epoch, float32.

    **Returns:** how many times faster `nr.train` is than the Python loop, and its arithmetic rate
    as a share of the matrix-product peak. A step has five products: two forward, three back.
    """
    data = in_single_precision(nr.tasks.contextual(joined=True))
    (x,), (y,) = data.x.values(), data.y.values()
    net = nr.ReLUNetwork((x.shape[1], hidden, y.shape[1]))
    weights = net.init(jax.random.key(0), scale=0.005 / hidden, dtype=jnp.float32)
    rate = 0.001 * len(x)  # MHS sums the loss over samples
    loop = python_loop(net, weights, data, rate, steps)

    def train() -> nr.Trajectory:
        return nr.train(net, weights, data, learning_rate=rate, steps=steps)

    loop(), train()
    slow, fast = medians(loop, train, repeats=repeats)
    arithmetic = 2 * len(x) * hidden * (2 * x.shape[1] + 3 * y.shape[1]) * steps
    return slow / fast, arithmetic / fast / matrix_product_peak()


def vmap_ratio(seeds: int = 100, steps: int = 2000, repeats: int = 5) -> float:
    """The time of a plain vmap of a scan over that of `train_ensemble`, XoR ReLU network."""
    net, key = nr.ReLUNetwork((2, 128, 1)), jax.random.key(0)
    data = in_single_precision(nr.tasks.xor())
    settings = {"scale": 2e-4, "dtype": jnp.float32}
    starts = jax.vmap(lambda k: net.init(k, **settings))(jax.random.split(key, seeds))
    program = plain_scan(net, data, 0.1, steps)

    def plain() -> object:
        return jax.block_until_ready(program(starts))

    def ours() -> nr.Trajectory:
        return nr.train_ensemble(
            net, data, key=key, seeds=seeds, learning_rate=0.1, steps=steps, **settings
        )

    plain(), ours()
    bare, checked = shortest(plain, ours, repeats=repeats)
    return bare / checked


def ensemble_ratio(seeds: int = 100, steps: int = 2000, repeats: int = 5) -> float:
    """Runs per second of `train_ensemble` on the XoR ReLU network, over those of a Python loop."""
    net, key = nr.ReLUNetwork((2, 128, 1)), jax.random.key(0)
    data = in_single_precision(nr.tasks.xor())
    weights = net.init(key, scale=2e-4, dtype=jnp.float32)
    loop = python_loop(net, weights, data, 0.1, steps)

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
