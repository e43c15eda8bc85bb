"""Ensembles of ReLU networks on one accelerator: `python -m benchmarks.gpu [STEPS …]`.

It is the same code as on a CPU. It prints the time per step of `train_ensemble` and of a plain vmap
of a scan, with and without compilation; the bandwidth that a simple stream reaches on this device;
and the *floor*: the time per step at that bandwidth if every weight is read, its gradient read and
the weight written once. Then it compares small runs with the same runs on the CPU, which
`--smoke` does alone.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import neuralrace as nr
from benchmarks.dynamics import in_single_precision, plain_scan
from benchmarks.timing import every

SCALE = 6e-4
"""The standard deviation of initial weights of MHS §6, from its scripts."""

SUMMED_RATE = 0.001
"""The step of MHS §6, which refers to the summed loss."""

CASES = (
    ((11, 420, 420, 60), (100,)),
    ((11, 700, 60), (1, 100, 1000)),
)
"""The networks of MHS §6 and §4, and how many seeds of each are trained at once."""

# ---- speed --------------------------------------------------------------------------------------


def timed(*runs: Callable[[], object], repeats: int = 3) -> list[tuple[float, float]]:
    """The first time of every function, which compiles, and the shortest of a few more, in turn."""
    ready = [lambda run=run: jax.block_until_ready(run()) for run in runs]
    return [(first, min(rest)) for first, *rest in every(ready, 1 + repeats)]


def bandwidth(size: int = 2**28, times: int = 20) -> float:
    """Bytes per second of reading and writing one long array repeatedly."""
    array = jnp.ones(size, jnp.float32)
    stream = jax.jit(lambda a: jax.lax.fori_loop(0, times, lambda _, b: 1.0001 * b + 1.0, a))
    return 2 * times * array.nbytes / timed(lambda: stream(array))[0][1]


def parts(seeds: int, samples: int, steps: int = 300) -> dict[str, float]:
    """Microseconds of each product with the large matrix alone, in a scan."""
    width = 420
    keys = jax.random.split(jax.random.key(0), 3)
    weights = jax.random.normal(keys[0], (seeds, width, width))
    h = jax.random.normal(keys[1], (seeds, samples, width))
    rates = jnp.full((seeds, 1, 1), 1e-6)
    slope = lambda h: jnp.einsum("sno,sni->soi", h, h)
    kinds = {
        "forward, h Wᵀ": lambda w, h: (w, jnp.einsum("sni,soi->sno", h, w) / width),
        "backward, δ W": lambda w, h: (w, jnp.einsum("sno,soi->sni", h, w) / width),
        "update, W − number · (δᵀ h)": lambda w, h: (w - 1e-6 * slope(h), h),
        "update, W − rates · (δᵀ h)": lambda w, h: (w - rates * slope(h), h),
        "update, W + (rates · δ)ᵀ h": lambda w, h: (
            w + jnp.einsum("sno,sni->soi", -rates * h, h),
            h,
        ),
    }
    found = {}
    for name, kind in kinds.items():
        program = jax.jit(
            lambda w, h, k=kind: jax.lax.scan(lambda c, _: (k(*c), None), (w, h), length=steps)
        )
        found[name] = 1e6 * timed(lambda p=program: p(weights, h))[0][1] / steps
    return found


class Case:
    """An ensemble of one network: by `train_ensemble`, and by a plain vmap of a scan.

    Both hand over the losses and the last weights as NumPy arrays.
    """

    def __init__(self, sizes: tuple[int, ...], seeds: int, steps: int) -> None:
        self.net, self.seeds, self.steps, self.key = nr.ReLUNetwork(sizes), seeds, steps, 0
        task = nr.tasks.contextual(joined=True, structures=["hierarchy"] * 3)
        self.data = in_single_precision(task)
        self.rate = SUMMED_RATE * task.n_samples
        keys = jax.random.split(jax.random.key(self.key), seeds)
        self.starts = jax.vmap(lambda k: self.net.init(k, SCALE, dtype=jnp.float32))(keys)
        self.program = plain_scan(self.net, self.data, self.rate, steps)

    def ours(self) -> object:
        return nr.train_ensemble(
            self.net, self.data, key=self.key, seeds=self.seeds, scale=SCALE,
            learning_rate=self.rate, steps=self.steps, dtype=jnp.float32,
        ).loss  # fmt: skip

    def plain(self) -> object:
        return jax.tree.map(np.asarray, self.program(self.starts))

    @property
    def moved(self) -> int:
        """The bytes that a step reads and writes at least."""
        return 3 * 4 * sum(w.size for w in self.starts.values())


def speed(*steps: int) -> None:
    """A row of the table for every case."""
    stream = bandwidth()
    print(f"{jax.devices()[0].device_kind}: a simple stream reaches {stream / 1e12:.2f} TB/s")
    print("                                   µs per step                  with compilation, s")
    print("network           seeds   steps    ours   plain  ratio  floor     ours  plain  ratio")
    for sizes, counts in CASES:
        for seeds in counts:
            for number in steps or (2000, 5000):
                case = Case(sizes, seeds, number)
                (first, ours), (compiled, plain) = timed(case.ours, case.plain)
                print(
                    f"{'-'.join(map(str, sizes)):17} {seeds:5} {number:7} "
                    f"{1e6 * ours / number:7.1f} {1e6 * plain / number:7.1f} {ours / plain:6.2f} "
                    f"{1e6 * case.moved / stream:6.1f}   {first:6.2f} {compiled:6.2f} "
                    f"{first / compiled:6.2f}",
                    flush=True,
                )
    for name, each in parts(100, 24).items():
        print(f"  {name}: {each:.1f} µs")


# ---- agreement with the CPU ---------------------------------------------------------------------


def small_runs() -> dict[str, Callable[[], nr.Trajectory]]:
    """Small runs of every kind, in the precision of their weights."""
    relu, gated = nr.ReLUNetwork((2, 16, 1)), nr.GDLN(nr.Architecture.chain(2, 8, 1))
    data, start = nr.tasks.xor(), lambda net: net.init(0, 0.3)
    many: dict[str, Any] = {"key": 0, "seeds": 5, "scale": 0.3}

    def train(net: nr.Network, **how: Any) -> nr.Trajectory:
        return nr.train(net, start(net), data, steps=200, **how)

    def checkpointed() -> nr.Trajectory:
        with tempfile.TemporaryDirectory() as folder:
            how = {"learning_rate": 0.1, "checkpoint": folder, "checkpoint_every": 64}
            train(relu, **how)
            return train(relu, **how)

    def diverging() -> nr.Trajectory:
        try:
            return train(gated, learning_rate=50.0, record_every=3)
        except nr.StoppedError as error:
            return error.trajectory

    return {
        "train, a gated network": lambda: train(gated, learning_rate=0.1),
        "train, a ReLU network": lambda: train(relu, learning_rate=0.1),
        "train, every seventh step": lambda: train(relu, learning_rate=0.1, record_every=7),
        "train, outputs and weights": lambda: train(
            relu, learning_rate=0.1, record={"outputs": True, "weights": True}
        ),
        "train, until a loss": lambda: train(relu, learning_rate=0.1, until=0.2),
        "train, batches": lambda: train(relu, learning_rate=0.1, batch_size=3, key=0),
        "train, momentum": lambda: train(relu, optimizer=optax.sgd(0.02, momentum=0.8)),
        "train, Adam": lambda: train(relu, optimizer=optax.adam(0.01)),
        "train, checkpoints": checkpointed,
        "train, a run that diverges": diverging,
        "train_ensemble": lambda: nr.train_ensemble(
            relu, data, learning_rate=[0.05, 0.1], steps=200, **many
        ),
        "train_ensemble, two at once": lambda: nr.train_ensemble(
            relu, data, learning_rate=0.1, steps=200, members_at_once=2, **many
        ),
        "flow": lambda: nr.flow(gated, start(gated), data, times=np.linspace(0, 20, 11)),
        "flow_ensemble": lambda: nr.flow_ensemble(gated, data, times=[0, 10, 20], **many),
    }


def smoke() -> bool:
    """Whether small runs on this device agree with those on the CPU."""
    host, fine = jax.devices("cpu")[0], True
    for double, bound in ((True, 1e-6), (False, 1e-2)):
        with jax.enable_x64(double), jax.default_matmul_precision("highest"):
            for name, run in small_runs().items():
                here = run()
                with jax.default_device(host):
                    there = run()
                alike = here.loss.shape == there.loss.shape
                error = float(np.abs(here.loss - there.loss).max()) if alike else np.inf
                error /= float(np.abs(there.loss).max())
                fine = fine and error <= bound
                print(f"  {here.loss.dtype} {name}: {error:.1e} of the largest loss", flush=True)
    print(f"{jax.devices()[0].device_kind} and CPU {'agree' if fine else 'DISAGREE'}")
    return fine


def main(arguments: list[str]) -> None:
    steps = [int(word) for word in arguments if not word.startswith("--")]
    if "--smoke" not in arguments:
        speed(*steps)
    sys.exit(0 if smoke() else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
