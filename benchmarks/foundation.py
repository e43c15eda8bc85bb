"""The cost of the graph: gradients by depth, and the import."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np

import neuralrace as nr
from benchmarks.timing import medians


def ladder_ratio(repeats: int = 200, size: int = 64, samples: int = 256) -> float:
    """The time of one gradient of a ladder with two parallel edges per layer: 40 layers over 20."""
    from evidence.own.foundation import ladder

    rng = np.random.default_rng(0)
    data = nr.Dataset(
        {"x": rng.normal(size=(samples, size))}, {"y": rng.normal(size=(samples, size))}
    )

    def gradient(layers: int):
        net = nr.GDLN(ladder(layers, size))
        weights = net.init(jax.random.key(0), scale=0.3 / size**0.5)
        compiled = jax.jit(jax.grad(net.loss))
        run = lambda: jax.block_until_ready(compiled(weights, data))
        run()
        return run

    short, long = medians(gradient(20), gradient(40), repeats=repeats)
    return long / short


def import_ratio(repeats: int = 7) -> float:
    """The time of a process that imports every public name, over one that imports jax, equinox.

    Byte code is kept, as Python does unless `PYTHONDONTWRITEBYTECODE` is set: without it every
    process compiles a checkout anew, and the ratio is about half as large again.
    """
    ours = "import neuralrace as nr; [getattr(nr, name) for name in nr.__all__]"
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def process(code: str):
        run = lambda: subprocess.run([sys.executable, "-c", code], check=True, env=kept)
        run()
        return run

    theirs, mine = medians(process("import jax, equinox"), process(ours), repeats=repeats)
    return mine / theirs
