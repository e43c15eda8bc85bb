"""A task of your own: what will a network learn, and when? Nothing is fitted."""

import sys
from pathlib import Path

import jax
import numpy as np

import neuralrace as nr

jax.config.update("jax_enable_x64", True)
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# Samples are rows. Four animals, one-hot, and what each does: move, fly, swim, sing, bark.
animal = np.eye(4)
does = np.array([[1, 1, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 0, 1]])
data = nr.Dataset(x={"animal": animal}, y={"does": does})

# The network: animal → 50 hidden neurons → does. Gates are 1 where none are given.
arch = nr.Architecture(
    sizes={"animal": 4, "hidden": 50, "does": 5},
    edges={"W1": ("animal", "hidden"), "W2": ("hidden", "does")},
)
race = nr.reduce(arch, data)  # the independent modes of the task, and whether they are exact
print(race)

# Train the network, and predict the result from the same initial weights.
net = nr.GDLN(arch)
weights = net.init(jax.random.key(0), scale=1e-3)
run = nr.train(net, weights, data, learning_rate=0.1, steps=800)
sol = race.solve(times=run.time, start=race.start(weights), learning_rate=0.1)
print(f"predicted against trained loss: {nr.compare(run, sol)}")

ax = run.plot(label="trained")
sol.plot(label="predicted", ax=ax)
ax.figure.savefig(out / "own_task.png")
