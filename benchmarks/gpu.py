"""A hundred seeds of the two-hidden-layer task on one accelerator: `python -m benchmarks.gpu`.

It is the same code as on a CPU. It prints the time per step of `train_ensemble` and of a plain vmap
of a scan, the bandwidth that a simple stream reaches on this device, and the *floor*: the time per
step at that bandwidth if every weight is read, its gradient read and the weight written once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

import neuralrace as nr
from benchmarks.dynamics import in_single_precision, plain_scan

SIZES = (11, 420, 420, 60)
"""Inputs, two hidden layers and outputs of the network of MHS §6."""

SCALE = 6e-4
"""The standard deviation of initial weights of MHS §6, from its scripts."""

SUMMED_RATE = 0.001
"""The step of MHS §6, which refers to the summed loss."""


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few runs, after one to compile."""
    jax.block_until_ready(run())
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        jax.block_until_ready(run())
        found.append(time.perf_counter() - begun)
    return min(found)


def bandwidth(size: int = 2**28, times: int = 20) -> float:
    """Bytes per second of reading and writing one long array repeatedly."""
    array = jnp.ones(size, jnp.float32)
    stream = jax.jit(lambda a: jax.lax.fori_loop(0, times, lambda _, b: 1.0001 * b + 1.0, a))
    return 2 * times * array.nbytes / seconds(lambda: stream(array))


def parts(seeds: int, samples: int, steps: int = 300) -> dict[str, float]:
    """Microseconds of each product with the large matrix alone, in a scan."""
    width = SIZES[1]
    keys = jax.random.split(jax.random.key(0), 3)
    weights = jax.random.normal(keys[0], (seeds, width, width))
    h = jax.random.normal(keys[1], (seeds, samples, width))
    kinds = {
        "forward, h Wᵀ": lambda w, h: (w, jnp.einsum("sni,soi->sno", h, w) / width),
        "backward, δ W": lambda w, h: (w, jnp.einsum("sno,soi->sni", h, w) / width),
        "update, W + δᵀ h": lambda w, h: (w + 1e-6 * jnp.einsum("sno,sni->soi", h, h), h),
    }
    found = {}
    for name, kind in kinds.items():
        program = jax.jit(
            lambda w, h, k=kind: jax.lax.scan(lambda c, _: (k(*c), None), (w, h), length=steps)
        )
        found[name] = 1e6 * seconds(lambda p=program: p(weights, h)) / steps
    return found


def main(seeds: int = 100, steps: int = 30_000) -> None:
    data = in_single_precision(nr.tasks.contextual(joined=True, structures=["hierarchy"] * 3))
    net = nr.ReLUNetwork(SIZES)
    rate = SUMMED_RATE * data.n_samples
    key = jax.random.key(0)

    def ours() -> object:
        return nr.train_ensemble(
            net, data, key=key, seeds=seeds, scale=SCALE, learning_rate=rate, steps=steps,
            members_at_once=seeds, dtype=jnp.float32,
        ).loss  # fmt: skip

    starts = jax.vmap(lambda k: net.init(k, SCALE, dtype=jnp.float32))(jax.random.split(key, seeds))
    plain = plain_scan(net, data, rate, steps)
    weights = sum(w.size for w in starts.values())
    speed = bandwidth()
    floor = 3 * 4 * weights / speed
    print(f"{jax.devices()[0].device_kind}: {speed / 1e12:.2f} TB/s, {weights:,} weights")
    print(f"floor {1e6 * floor:.1f} µs per step")
    for name, run in {
        "train_ensemble": ours,
        "plain vmap of a scan": lambda: plain(starts),
    }.items():
        each = seconds(run, repeats=1) / steps
        print(
            f"{name}: {1e6 * each:.1f} µs per step, {each / floor:.2f} floors, {steps * each:.2f} "
            "s in all"
        )
    for name, each in parts(seeds, data.n_samples).items():
        print(f"  {name}: {each:.1f} µs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
