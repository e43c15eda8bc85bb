"""The gated network of the authors' scripts for MHS §4, in which pathways do not share an error.

Its common pathway learns from the targets alone, and its contextual pathways learn from what the
common one leaves at that moment (MHS App. F: they “are then trained on this residual”). No gradient
passes between them, so that it is no gated network in the sense of MHS Eq. 1–3: `nr.train` cannot
train it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import neuralrace as nr

if TYPE_CHECKING:
    from neuralrace.types import Key
    from papers.mhs.table import Case

WIDTH = 100
"""The width of every pathway (MHS Table 1)."""

GATINGS = ("double", "single", "both")
"""Pathways besides the common one: on in all contexts but one, in one context, or all of these."""


def masks(data: nr.Dataset, kind: str) -> dict[str, np.ndarray]:
    """The samples on which each contextual pathway is on; names are those of `tasks`."""
    context = np.asarray(data.labels["context"])
    double = {f"not{c}": context != c for c in np.unique(context)}
    single = {f"only{c}": context == c for c in np.unique(context)}
    return {"double": double, "single": single, "both": {**single, **double}}[kind]


def authors_runs(case: Case, key: Key, every: int, kind: str = "double") -> list[nr.Trajectory]:
    """The authors' network in float32, one run for every seed, recorded every few steps.

    They record what `certify` compares, the size of each pathway's map by its name, and `silenced`,
    the loss without the pathways for one context. The common pathway reads all inputs and the
    contextual ones the items, each of `WIDTH` neurons from weights of the case's standard
    deviation. The loss is that of the sum of all pathways.
    """
    import jax
    import jax.numpy as jnp

    data = case.data
    gates = masks(data, kind)
    item, context = (np.asarray(data.x[name], np.float32) for name in ("item", "context"))
    y = jnp.asarray(data.y["y"], jnp.float32)
    inputs = {"common": jnp.asarray(np.concatenate([item, context], axis=1))} | {
        name: jnp.asarray(item * on[:, None]) for name, on in gates.items()
    }
    count = len(y)

    def start(key: Key) -> dict[str, tuple[Any, Any]]:
        keys = jax.random.split(key, 2 * len(inputs)).reshape(len(inputs), 2)
        draw = partial(jax.random.normal, dtype=jnp.float32)
        return {
            name: (
                case.scale * draw(keys[k][0], (x.shape[1], WIDTH)),
                case.scale * draw(keys[k][1], (WIDTH, y.shape[1])),
            )
            for k, (name, x) in enumerate(inputs.items())
        }

    def errors(weights: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
        """What the common pathway leaves, and what all pathways leave."""
        out = {name: inputs[name] @ a @ b for name, (a, b) in weights.items()}
        left = y - out.pop("common")
        return left, left - sum(out.values())

    def step(weights: dict[str, tuple[Any, Any]], _: None) -> tuple[Any, None]:
        left, rest = errors(weights)
        moved = {}
        for name, (a, b) in weights.items():
            error = left if name == "common" else rest
            to_b, to_a = (inputs[name] @ a).T @ error, inputs[name].T @ error @ b.T
            moved[name] = a + case.step * to_a, b + case.step * to_b
        return moved, None

    def seen(weights: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
        rest = errors(weights)[1]
        single = [inputs[n] @ a @ b for n, (a, b) in weights.items() if n.startswith("only")]
        hidden = jnp.concatenate([inputs[name] @ a for name, (a, _) in weights.items()], axis=1)
        return {
            "loss": 0.5 * (rest**2).sum() / count,
            "silenced": 0.5 * ((rest + sum(single)) ** 2).sum() / count,
            "outputs": y - rest,
            "similarity": hidden @ hidden.T / count,
            "maps": {name: jnp.linalg.norm(a @ b) for name, (a, b) in weights.items()},
        }

    def chunk(weights: dict[str, tuple[Any, Any]], _: None) -> tuple[Any, dict[str, Any]]:
        weights, _ = jax.lax.scan(step, weights, None, length=every)
        return weights, seen(weights)

    def run(key: Key) -> tuple[dict[str, Any], dict[str, Any]]:
        weights = start(key)
        return seen(weights), jax.lax.scan(chunk, weights, None, length=case.steps // every)[1]

    # at its default precision, a GPU rounds the factors of products
    with jax.default_matmul_precision("float32"):
        first, later = jax.jit(jax.vmap(run))(jax.random.split(key, case.seeds))
    whole = jax.tree.map(
        lambda a, b: np.concatenate([np.asarray(a)[:, None], np.asarray(b)], axis=1), first, later
    )
    time = case.learning_rate * every * np.arange(case.steps // every + 1)
    return [
        nr.Trajectory(
            time,
            whole["loss"][k],
            values={
                "outputs": {"y": whole["outputs"][k]},
                "similarity": {"layer1": whole["similarity"][k]},
                "maps": {name: size[k] for name, size in whole["maps"].items()},
                "silenced": whole["silenced"][k],
            },
        )
        for k in range(case.seeds)
    ]
