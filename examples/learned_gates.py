"""Gates that are learned: which pathway each context gets, how fast, and what was predicted."""

import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import neuralrace as nr

jax.config.update("jax_enable_x64", True)
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# Two contexts with a teacher each, and two pathways that begin nearly equal.
rng = np.random.default_rng(0)
teachers = rng.normal(size=(2, 3, 6)) / np.sqrt(6)
context, x = np.arange(200) % 2, rng.normal(size=(200, 6))
y = np.einsum("nij,nj->ni", teachers[context], x)
data = nr.Dataset({"x": x}, {"y": y}, labels={"context": context})
arch = nr.Architecture.parallel({"x": 6}, {"a": 20, "b": 20}, {"y": 3})
net = nr.LearnedGates(arch, labels={"context": (0, 1)}, rate=4.0, budget=1.0)

# The theory: the state in which pathways are equal, and the rate at which they split from it.
found = nr.reduction.splits(net, data)
start = {e: w + 1e-6 * rng.normal(size=w.shape) for e, w in found.weights.items()}
run = nr.flow(net, start, data, times=np.linspace(0, 60, 601), record={"activity": True})
a, b = (run.values["activity"][node][:, :2] for node in "ab")  # samples 0, 1: contexts 0, 1
apart = np.linalg.norm(a - b, axis=1) / 2  # of each pathway from the mean of both
early, late, half = (int(np.argmax(apart > level)) for level in (1e-4, 1e-2, 0.5))
measured = np.log(apart[late] / apart[early]) / (run.time[late] - run.time[early])
predicted = run.time[early] + found.time(float(apart[early]))
for value, winner in enumerate(np.where(b[-1] > a[-1], "b", "a")):
    print(f"context {value} gets pathway {winner}")
print(f"half apart at t = {run.time[half]:.1f}, predicted {predicted:.1f}")
print(f"split at the rate {measured:.4f}, predicted {found.growth[0]:.4f}")
with nr.plot.style():
    figure, axes = plt.subplots()
    axes.semilogy(run.time, apart, label="gates, apart")
    growing = apart[early] * np.exp(found.growth[0] * (run.time - run.time[early]))
    axes.plot(run.time, growing, "--", label="predicted, while small")
    axes.set(xlabel="time", xlim=(0, 2 * predicted), ylim=(1e-6, 2))
    axes.legend()
    figure.savefig(out / "learned_gates.png")
