"""Who wins where? The contest between gatings over a parameter of your task."""

import sys
from pathlib import Path

import numpy as np

import neuralrace as nr

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)


def gatings(cue):
    """Left or right: a cue of this strength says which, and so does the parity of two bits."""
    bits = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    side = -bits[:, :1] * bits[:, 1:]  # the parity: right where the bits differ
    data = nr.Dataset(x={"x": np.hstack([bits, cue * side])}, y={"y": 2 * side})
    right = side[:, 0] > 0
    return {
        "by the cue": nr.pathways(data, {"right": right, "left": ~right}, hidden=64),
        "by the bits": nr.pathways(data, data.one_per_sample(), hidden=32),
    }


# Equal total width: 2 × 64 = 4 × 32 neurons. With `start=` in place of `scale=`, all start equal.
found = nr.phase_diagram(gatings, "cue", np.linspace(0.2, 2, 10), scale=1e-3)
print(found)
for crossover in found.crossovers:
    print(f"{crossover.below} below a cue of {crossover.value:.6f}, {crossover.above} above")
found.plot().figure.savefig(out / "phase_diagram.png")
