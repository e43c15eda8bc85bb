"""Ensembles of ReLU networks on one accelerator: `python -m benchmarks.gpu [STEPS …]`.

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
    width = 420
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


CASES = (
    ((11, 420, 420, 60), (100,)),
    ((11, 700, 60), (1, 100, 1000)),
)
"""The networks of MHS §6 and §4, and how many seeds of each are trained at once."""


def steps_of(sizes: tuple[int, ...], seeds: int, steps: int) -> tuple[float, float, float]:
    """Microseconds per step of `train_ensemble` and of a plain vmap; the bytes of the floor."""
    data = in_single_precision(nr.tasks.contextual(joined=True, structures=["hierarchy"] * 3))
    net = nr.ReLUNetwork(sizes)
    rate = SUMMED_RATE * data.n_samples
    key = jax.random.key(0)
    starts = jax.vmap(lambda k: net.init(k, SCALE, dtype=jnp.float32))(jax.random.split(key, seeds))
    plain = plain_scan(net, data, rate, steps)

    def ours() -> object:
        return nr.train_ensemble(
            net, data, key=key, seeds=seeds, scale=SCALE, learning_rate=rate, steps=steps,
            members_at_once=seeds, dtype=jnp.float32,
        ).loss  # fmt: skip

    times = [1e6 * seconds(run) / steps for run in (ours, lambda: plain(starts))]
    return times[0], times[1], 3 * 4 * sum(w.size for w in starts.values())


def main(*steps: int) -> None:
    speed = bandwidth()
    print(f"{jax.devices()[0].device_kind}: a simple stream reaches {speed / 1e12:.2f} TB/s")
    print("network            seeds   steps   µs per step   plain vmap   ratio   floor")
    for sizes, counts in CASES:
        for seeds in counts:
            for number in steps or (2000, 5000, 20_000):
                ours, plain, floor = steps_of(sizes, seeds, number)
                name = "-".join(map(str, sizes))
                print(
                    f"{name:17} {seeds:6} {number:7} {ours:13.1f} {plain:12.1f} "
                    f"{ours / plain:7.2f} {1e6 * floor / speed:7.1f}",
                    flush=True,
                )
    for name, each in parts(100, 24).items():
        print(f"  {name}: {each:.1f} µs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
