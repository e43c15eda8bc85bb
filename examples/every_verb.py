"""Every verb of the library on one small task, in the order in which one meets them."""

import sys
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import neuralrace as nr

jax.config.update("jax_enable_x64", True)  # pyright: ignore[reportUnknownMemberType]
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# Data, a gating, and the statistics that learning depends on.
data = nr.tasks.extended_xor(0.4)
arch, gated = nr.pathways(data, data.one_per_sample(), hidden=16)
stats = nr.path_statistics(arch, gated)
print(f"{len(stats.paths)} paths in {len(stats.groups)} groups")

# Theory: the race, its start from actual weights, its solution.
net = nr.GDLN(arch)
weights = net.init(key=jax.random.key(0), scale=1e-2)
race: nr.Race = nr.reduce(arch, gated)
start = race.start(weights)
times = np.linspace(0.0, 40.0, 201)
solution = race.solve(times=times, start=start)
print(f"time to a loss of 0.1: {float(race.closed_form(start).time_to_loss(0.1)):.2f}")
limit = nr.linear.deep_limit(1.0, s=1, d=1, start=0.1, depth=9)
print(f"a chain of 9 edges has learned {float(limit):.2f} at t = 1")

# Simulation: the flow, descent, and many seeds at once.
flow = nr.flow(net, weights, gated, times=times)
print(f"flow against theory: {nr.compare(flow, solution)}")
run = nr.train(net, weights, gated, learning_rate=0.1, steps=200)
more = nr.train(net, run.final, gated, learning_rate=0.1, steps=200)
whole = nr.join(run, more)
many = nr.train_ensemble(net, gated, key=0, seeds=4, scale=1e-2, learning_rate=0.1, steps=400)
flows = nr.flow_ensemble(net, gated, key=0, seeds=2, scale=1e-2, times=times)
pair = nr.concat([flows.isel(seed=0), flows.isel(seed=1)], "start")
print(f"{many.loss.shape[0]} seeds, {pair.loss.shape[0]} flows, {whole.time[-1]:g} units of time")
small = nr.compress(net, weights, gated)
print(small.summary)


# Which gating learns first, and where that changes.
def gatings(delta: float) -> dict[str, tuple[nr.Architecture, nr.Dataset]]:
    base = nr.tasks.extended_xor(delta)
    return {"linear": nr.tasks.linear_pathways(base, 8), "xor": nr.tasks.xor_pathways(base, 8)}


print(f"first: {nr.contest(gatings(0.4), start=0.01).winner}")
diagram = nr.phase_diagram(gatings, "delta", [0.5, 1.0], start=0.01)
print(f"changes at {diagram.crossovers[0].value:.3f}")

# A ReLU network on the same task, and a file to keep.
relu = nr.ReLUNetwork((3, 64, 1))
first = relu.init(key=jax.random.key(1), scale=1e-3)
seen = nr.train(relu, first, data, learning_rate=0.1, steps=400, record={"weights": True})
found = nr.reln.discover(seen, data, pathways=4)
print(f"gates found: {found.patterns['h'].round().tolist()}")
print(nr.linear.balance(nr.GDLN(nr.Architecture.chain(1, 1, 1)), {"W1": [[1.0]], "W2": [[1.0]]}))
whole.save(out / "every_verb.nc")
ax = nr.load(out / "every_verb.nc").plot(label="trained")
solution.plot(label="predicted", ax=ax)
plt.savefig(out / "every_verb.png")  # pyright: ignore[reportUnknownMemberType]
