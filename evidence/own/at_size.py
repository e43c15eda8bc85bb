"""Claims about networks of the size of real data: 60 000 samples, two layers of 2048 neurons."""

from __future__ import annotations

from evidence.promise import Measurement, claim, run_script

SECTION = "Networks from elsewhere"

PLANTED = """
import sys, time
import numpy as np, neuralrace as nr

samples, size, moments, kinds = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
x = rng.normal(size=(samples, 784)).astype(np.float32)
digit = rng.integers(0, 10, samples)
data = nr.Dataset({"x": x}, {"y": np.eye(10, dtype=np.float32)[digit]})
kind = {"h1": rng.integers(0, kinds, size), "h2": rng.integers(0, kinds, size)}
first = rng.normal(size=(kinds, 784))[kind["h1"]]
second = rng.normal(size=(kinds, kinds))[kind["h2"]][:, kind["h1"]]
state = lambda: {
    "0.weight": (first + 0.5 * rng.normal(size=first.shape)).astype(np.float32) / 28,
    "2.weight": (second + 0.05 * rng.normal(size=second.shape)).astype(np.float32) / size,
    "4.weight": rng.normal(size=(10, size)).astype(np.float32) / size,
}
begin = time.perf_counter()
states = [state() for _ in range(moments)]
_, run = nr.from_torch(states, data, times=range(moments), loss="cross_entropy")
found = nr.reln.discover(run, data, pathways=kinds)
seconds = time.perf_counter() - begin
wrong = 0
for node, true in kind.items():
    member = found.layers[node].member[0]
    wrong += sum(
        int((member[true == k] != np.bincount(member[true == k]).argmax()).sum())
        for k in range(kinds)
        if (true == k).any()
    )
    wrong += size * (len(found.layers[node]) != kinds)
sampling = [each.sampling for each in found.layers.values() if each.sampling]
moved = max((each.moved for each in sampling), default=0.0)
drawn = min((each.samples for each in sampling), default=samples)
print(peak_memory() / 1024, wrong, moved, drawn, seconds)
"""
"""Neurons that are noisy copies of a few, and differ at every moment; kinds are found again."""


@claim(
    "elsewhere/clustering-memory",
    SECTION,
    "60 000 samples, 784–2048–2048–10, 3 checkpoints, neurons that are noisy copies of 8: peak "
    "memory of a process that imports the network and clusters its patterns, and neurons that are "
    "not put with their kind",
    "< 4 GB, none",
)
def at_size(full: bool) -> Measurement:
    sizes = (60_000, 2048, 3, 8) if full else (2000, 64, 2, 4)
    memory, wrong, moved, drawn, seconds = run_script(PLANTED, *sizes)
    text = (
        f"{memory:.2f} GB, {wrong:.0f} of {2 * sizes[1]} (first guess on {drawn:.0f} samples, "
        f"{100 * moved:.2g} % moved in the last round; {seconds:.0f} s)"
    )
    return Measurement(text, memory < 4 and wrong == 0)
