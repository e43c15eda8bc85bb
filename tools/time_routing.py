"""Time one step of routing networks by statistics: as it is, and with two large products.

    PYTHONPATH=src python tools/time_routing.py --domains 40 --inputs 717 --runs 10

The second form keeps encoders in coordinates in which inputs are white, Ã = A Λ^½, with the rows
of P Λ^−½ below them. One product of this array with itself then gives T = A Λ Aᵀ and R = P Aᵀ; a
second one, with [N, −B], gives the step of the encoders but for a factor Λ. Both forms take the
same steps, which is checked. Prints microseconds per step and run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from evidence.tables import made
from neuralrace import tasks
from papers.nrr.bounded import BoundedDescent
from papers.nrr.routed import RoutedMoments, lengths

CLASSES = 10


def system_of(M: int, D: int, K: int, rng: np.random.Generator) -> RoutedMoments:
    """Random moments; the spectrum falls like that of images."""
    variance = 5.0 / np.arange(1, D + 1) ** 1.2
    cross = 0.1 * rng.normal(size=(1, CLASSES, D)) * np.sqrt(variance)
    real = lambda a: jnp.asarray(a, jnp.float32)
    return RoutedMoments(
        routes=real(tasks.circulant_routes(M, K)), test=jnp.zeros((1, 1, D)),
        test_labels=jnp.zeros(1, int), horizon=real(1e9), variance=real(variance)[None],
        cross=real(cross), power=real(0.9),
    )  # fmt: skip


def as_now(system: RoutedMoments, state: Any) -> Any:
    """One step of bounded descent as the package takes it."""
    return BoundedDescent(2.0).step(system, state, None, None)[0]


def begun(system: RoutedMoments, state: Any) -> Any:
    """The state of the second form."""
    root = jnp.sqrt(system.variance)[:, None, :]
    below = jnp.broadcast_to(system.cross / root, (len(system.routes), *system.cross.shape[1:]))
    whole = jnp.concatenate([state["encoders"] * root, below], axis=1)
    return {k: v for k, v in state.items() if k != "encoders"} | {"whole": whole}


def fused(system: RoutedMoments, state: Any) -> Any:
    """The same step with two large products."""
    whole, W, C, probe = (state[k] for k in ("whole", "hidden", "decoders", "probe"))
    H, G = W.shape[0], system.routes
    F = C @ W
    N = jnp.einsum("ij,jhk->ihk", G, F.mT @ F)
    B = jnp.einsum("ij,jch->ihc", G, F)
    gram = whole @ whole.mT
    T, R = gram[:, :H, :H], gram[:, H:, :H]
    X, Y = (jnp.einsum("ij,ihk->jhk", G, each) for each in (T, R))
    applied = {
        "in": jnp.einsum("ihk,ik->ih", N, probe["in"]),
        "mid": jnp.einsum("jhk,jk->jh", X, probe["mid"]),
        "out": jnp.einsum("jhk,jk->jh", X, probe["out"] @ W) @ W.T,
        "all": jnp.einsum("jch,jc->h", C, jnp.einsum("jch,h->jc", C, probe["all"])),
    }
    sizes, turned = lengths(applied)
    bound = jnp.max(sizes["in"]) * jnp.max(system.variance) + jnp.max(sizes["out"])
    bound = (bound + sizes["all"] * jnp.max(sizes["mid"])) / jnp.sum(G)
    n = jnp.minimum(2.0, 1.0 / jnp.maximum(bound, 1e-30)) / jnp.sum(G)
    step = (jnp.concatenate([-n * N, n * B], axis=2) @ whole) * system.variance[:, None, :]
    to_F = n * (Y - F @ X)
    return {
        "whole": whole.at[:, :H].add(step),
        "hidden": W + jnp.einsum("jch,jck->hk", C, to_F),
        "decoders": C + to_F @ W.T,
        "time": state["time"] + n * jnp.sum(G),
        "probe": turned,
    }


def timed(step: Any, system: RoutedMoments, states: Any, count: int) -> tuple[Any, float]:
    """The states after `count` steps, and seconds for them."""
    many = jax.vmap(lambda s: step(system, s))
    run = jax.jit(lambda s: jax.lax.fori_loop(0, count, lambda _, s: many(s), s))
    ended = jax.block_until_ready(run(states))
    clock = time.perf_counter()
    jax.block_until_ready(run(states))
    return ended, time.perf_counter() - clock


def main() -> None:
    """Time both forms, and compare where they end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", type=int, default=40)
    parser.add_argument("--inputs", type=int, default=717)
    parser.add_argument("--routes", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    given = parser.parse_args()
    M, D, H = given.domains, given.inputs, given.hidden
    system = system_of(M, D, given.routes, np.random.default_rng(0))

    def start(key: jax.Array) -> Any:
        draw = lambda i, *shape: 0.05 * jax.random.normal(jax.random.fold_in(key, i), shape)
        state = {"encoders": draw(0, M, H, D), "hidden": draw(1, H, H)}
        state |= {"decoders": draw(2, M, CLASSES, H), "time": jnp.zeros(())}
        return state | {"probe": system.probe(state)}

    states = jax.vmap(start)(jax.random.split(jax.random.key(0), given.runs))
    one, first = timed(as_now, system, states, given.steps)
    two, second = timed(fused, system, jax.vmap(lambda s: begun(system, s))(states), given.steps)
    each = lambda seconds: round(1e6 * seconds / given.steps / given.runs, 1)
    gap = {
        name: float(jnp.abs(one[name] - two[name]).max() / jnp.abs(one[name]).max())
        for name in ("hidden", "decoders", "time")
    }
    found = {"as_now_us": each(first), "fused_us": each(second), "relative_gap": gap}
    sys.stdout.write(json.dumps(vars(given) | made() | found) + "\n")


if __name__ == "__main__":
    main()
