"""Your own graph: two senses, two answers, and one layer that all must share."""

import sys
from pathlib import Path

import jax
import numpy as np

import neuralrace as nr

jax.config.update("jax_enable_x64", True)
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# Any graph without cycles: nodes with their sizes, edges with their two ends.
arch = nr.Architecture(
    sizes={"sight": 3, "sound": 3, "eye": 20, "ear": 20, "shared": 40, "name": 3, "act": 3},
    edges={
        "sight_eye": ("sight", "eye"),
        "sound_ear": ("sound", "ear"),
        "eye_shared": ("eye", "shared"),
        "ear_shared": ("ear", "shared"),
        "shared_name": ("shared", "name"),
        "shared_act": ("shared", "act"),
    },
)
# Three objects, each seen (samples 1–3) or heard (4–6). Targets differ in size, so drives do too.
seen = np.repeat([1.0, 0.0], 3)
thing, answer = np.tile(np.eye(3), (2, 1)), np.tile(np.diag([3.0, 2.0, 1.0]), (2, 1))
data = nr.Dataset(
    x={"sight": thing, "sound": thing},
    y={"name": answer, "act": answer},
    gates={"eye": seen, "ear": 1 - seen},  # one sense at a time: gates can be on nodes or edges
)
race = nr.reduce(arch, data)
print(f"{arch.path_count()} paths through the graph\n{race}\n{race.latex()}")
sol = race.solve(times=np.linspace(0, 30, 301), start=0.05)
print(f"the loss falls from {sol.loss[0]:.3g} to {sol.loss[-1]:.3g}")
arch.draw(data).figure.savefig(out / "own_graph.png")
