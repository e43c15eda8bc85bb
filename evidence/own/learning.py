"""Claims about optimizers, mini-batches, other losses, and data that stays on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import numpy as np
import optax

import neuralrace as nr
from evidence.promise import Measurement, at_most, claim

SECTION = "Learning"


# ---- an independent loop in NumPy ----------------------------------------------------------------


def numpy_orders(key: int, samples: int, size: int) -> Iterator[np.ndarray]:
    """The samples of every step: one permutation per epoch, cut into batches, the last smaller."""
    epoch = 0
    while True:
        order = np.asarray(
            jax.random.permutation(jax.random.fold_in(jax.random.key(key), epoch), samples)
        )
        for low in range(0, samples, size):
            yield order[low : low + size]
        epoch += 1


def numpy_gradient(x: np.ndarray, y: np.ndarray, w: list, loss: str, leak: float) -> list:
    """∂L/∂W of a leaky ReLU network with one hidden layer, for the mean loss over these samples."""
    z = x @ w[0].T
    slope = np.where(z > 0, 1.0, leak)
    out = (slope * z) @ w[1].T
    if loss == "cross_entropy":
        e = np.exp(out - out.max(axis=1, keepdims=True))
        error = e / e.sum(axis=1, keepdims=True) - y
    else:
        error = out - y
    error = error / len(x)
    return [(slope * (error @ w[1])).T @ x, error.T @ (slope * z)]


def numpy_loss(x: np.ndarray, y: np.ndarray, w: list, loss: str, leak: float) -> float:
    z = x @ w[0].T
    out = (np.where(z > 0, 1.0, leak) * z) @ w[1].T
    if loss == "squared":
        return float(0.5 * ((out - y) ** 2).sum(axis=1).mean())
    from scipy.special import log_softmax

    return float(-(y * log_softmax(out, axis=1)).sum(axis=1).mean())


def numpy_momentum(rate: float, mu: float, nesterov: bool) -> Callable:
    memory: list = []

    def update(w: list, g: list) -> list:
        memory[:] = [mu * m + a for m, a in zip(memory, g, strict=True)] if memory else g
        step = [a + mu * m for m, a in zip(memory, g, strict=True)] if nesterov else memory
        return [a - rate * s for a, s in zip(w, step, strict=True)]

    return update


def numpy_adam(rate: float, decay: float = 0.0) -> Callable:
    first: list = []
    second: list = []
    count = 0

    def update(w: list, g: list) -> list:
        nonlocal count
        count += 1
        first[:] = [0.9 * (m if first else 0) + 0.1 * a for m, a in zip(first or g, g, strict=True)]
        second[:] = [
            0.999 * (v if second else 0) + 0.001 * a * a
            for v, a in zip(second or g, g, strict=True)
        ]
        hats = [
            (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
            for m, v in zip(first, second, strict=True)
        ]
        return [a - rate * (h + decay * a) for a, h in zip(w, hats, strict=True)]

    return update


METHODS = {
    "SGD": (optax.sgd(0.05), lambda: numpy_momentum(0.05, 0.0, False)),
    "momentum": (optax.sgd(0.02, momentum=0.9), lambda: numpy_momentum(0.02, 0.9, False)),
    "Nesterov": (
        optax.sgd(0.02, momentum=0.8, nesterov=True),
        lambda: numpy_momentum(0.02, 0.8, True),
    ),
    "Adam": (optax.adam(3e-3), lambda: numpy_adam(3e-3)),
    "AdamW": (optax.adamw(3e-3, weight_decay=0.01), lambda: numpy_adam(3e-3, 0.01)),
}
"""Each optimizer with its independent implementation in NumPy."""


def against_numpy(method: str, loss: str, steps: int) -> float:
    """The largest difference in weights and recorded losses between a run and the NumPy loop."""
    rng = np.random.default_rng(len(method))
    x = rng.normal(size=(23, 4))
    classes = rng.integers(0, 3, 23)
    y = np.eye(3)[classes] if loss == "cross_entropy" else rng.normal(size=(23, 3))
    net = nr.ReLUNetwork((4, 6, 3), leak=0.1)
    start = net.init(jax.random.key(1), 0.5)
    optimizer, reference = METHODS[method]
    run = nr.train(
        net,
        start,
        nr.Dataset({"x": x}, {"y": y}),
        optimizer=optimizer,
        steps=steps,
        batch_size=5,
        key=7,
        loss=loss,
        record_every=25,
    )
    w = [np.asarray(start["W1"]), np.asarray(start["W2"])]
    update, gap = reference(), 0.0
    for step, batch in zip(range(steps + 1), numpy_orders(7, 23, 5), strict=False):
        if step % 25 == 0:
            gap = np.maximum(gap, abs(numpy_loss(x, y, w, loss, 0.1) - float(run.loss[step // 25])))
        if step < steps:
            w = update(w, numpy_gradient(x[batch], y[batch], w, loss, 0.1))
    return max(gap, *(float(np.abs(run.final[e] - v).max()) for e, v in zip(start, w, strict=True)))


@claim(
    "learning/optimizers",
    SECTION,
    "SGD, momentum, Nesterov's momentum, Adam and AdamW with mini-batches (23 samples, batches of "
    "5, squared loss and cross-entropy) against a loop in NumPy, 500 steps",
    "weights and losses equal to 1e-10",
)
def optimizers(full: bool) -> Measurement:
    found = {
        f"{method}, {loss}": against_numpy(method, loss, 500 if full else 60)
        for method in METHODS
        for loss in ("squared", "cross_entropy")
    }
    worst = max(found, key=lambda name: found[name])
    return at_most(found[worst], 1e-10, f"worst: {worst}")


@claim(
    "learning/cross-entropy",
    SECTION,
    "cross-entropy and its gradient, two output nodes, sample weights, class indices: SciPy's "
    "log_softmax and central differences of it",
    "loss to 1e-13, gradient to 1e-8",
)
def cross_entropy(full: bool) -> Measurement:
    from scipy.special import log_softmax

    from neuralrace.losses import cross_entropy as measure

    gap = slope_gap = 0.0
    for seed in range(20 if full else 3):
        rng = np.random.default_rng(seed)
        arch = nr.Architecture(
            {"x": 3, "h": 5, "a": 4, "b": 2}, {"W": ("x", "h"), "A": ("h", "a"), "B": ("h", "b")}
        )
        net, scale = nr.GDLN(arch), 10.0 ** rng.uniform(-2, 2)
        w = {e: np.asarray(v) for e, v in net.init(jax.random.key(seed), scale**0.5).items()}
        x, weight = rng.normal(size=(6, 3)), rng.uniform(size=6)
        classes = {"a": rng.integers(0, 4, 6), "b": rng.integers(0, 2, 6)}
        y = {v: np.eye(arch.sizes[v])[c] for v, c in classes.items()}
        data = nr.Dataset({"x": x}, y, sample_weight=weight)

        def by_hand(w: dict, x: np.ndarray = x, y: dict = y, weight: np.ndarray = weight) -> float:
            h = x @ w["W"].T
            each = sum((y[v] * log_softmax(h @ w[v.upper()].T, axis=1)).sum(1) for v in y)
            return float(-(weight / weight.sum()) @ each)

        wanted = by_hand(w)
        gap = np.maximum(gap, abs(float(net.loss(w, data, measure)) - wanted) / max(1.0, wanted))
        _, step = net.loss_and_step(w, data, -1.0, measure)
        for edge, g in step.items():
            place = tuple(rng.integers(0, n) for n in g.shape)
            e = 1e-6 * max(1.0, float(np.abs(w[edge]).max()))
            nudged = [{**w, edge: w[edge] + d * _unit(w[edge].shape, place)} for d in (e, -e)]
            difference = (by_hand(nudged[0]) - by_hand(nudged[1])) / (2 * e)
            size = max(1.0, float(np.abs(g).max()))
            slope_gap = max(slope_gap, abs(float(g[place]) - difference) / size)
        indices = nr.Dataset(
            {"x": x}, {v: c[:, None] for v, c in classes.items()}, sample_weight=weight
        )
        run = nr.train(net, w, indices, learning_rate=1e-9, steps=1, loss="cross_entropy")
        gap = np.maximum(gap, abs(float(run.loss[0]) - wanted) / max(1.0, wanted))
    return Measurement(
        f"loss {gap:.1g}, gradient {slope_gap:.1g}", bool(gap <= 1e-13 and slope_gap <= 1e-8)
    )


def _unit(shape: tuple[int, ...], place: tuple) -> np.ndarray:
    one = np.zeros(shape)
    one[place] = 1.0
    return one
