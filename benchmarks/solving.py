"""The cost of a first answer: a small race solved, against compiled flows of its blocks.

Each number is measured in its own process, since the first call after all imports counts: a
compiled program is fast only from its second call on.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

PRELUDE = """
import time
import numpy as np, jax
jax.config.update("jax_enable_x64", True)
import neuralrace as nr, diffrax, scipy.integrate, sympy
from neuralrace import tasks
[getattr(nr, name) for name in nr.__all__]
"""
"""The imports of every script: they are not part of the measured time."""

TASKS = {
    "xor": "tasks.xor_pathways(tasks.xor())",
    "routing": "tasks.routing_pathways(tasks.routing(M=7, K=4)[0])",
    "contexts": "tasks.common_and_all_but_one(tasks.contextual(contexts=3))",
}
"""The code that makes each task."""


def first_solution(task: str = "xor", rate: float | None = None) -> tuple[float, float]:
    """(compiled over `race.solve`, seconds of the latter): a first solution at 101 times.

    Compiled means `nr.flow` or, with a rate, `nr.train` of every block as a network.
    """
    code = f"""
race = nr.reduce(*{TASKS[task]})
start, times, rate = race.start(0.05), np.linspace(0, 40, 101), {rate}
begun = time.perf_counter()
SOLVED
print(time.perf_counter() - begun)
"""
    run = "nr.flow(*block, times=times)"
    if rate is not None:
        run = "nr.train(*block, learning_rate=rate, steps=round(40 / rate))"
    each = "[(nr.GDLN(b.arch), w, b.data) for b, w in zip(race.blocks, start.weights)]"
    slow, fast = (
        _seconds(code.replace("SOLVED", f"for block in {each}: {run}")),
        _seconds(
            code.replace("SOLVED", "race.solve(times=times, start=start, learning_rate=rate)")
        ),
    )
    return slow / fast, fast


def end_time_ratio() -> float:
    """The time of the λ-balanced solution up to t = 10⁹ over that up to t = 1, at 11 times each."""
    code = """
net = nr.GDLN(nr.Architecture.chain(20, 10, 20))
data = nr.Dataset({"x": np.sqrt(20) * np.eye(20)}, {"y": np.eye(20)})
weights = nr.linear.balanced_weights(net, 0.0, scale=1e-3)
def seconds(end):
    begun = time.perf_counter()
    nr.linear.lambda_balanced(net, weights, data, times=np.linspace(0, end, 11))
    return time.perf_counter() - begun
seconds(1.0)
print(np.median([seconds(1e9) for _ in range(5)]) / np.median([seconds(1.0) for _ in range(5)]))
"""
    return _seconds(code, repeats=1)


def _seconds(code: str, repeats: int = 3) -> float:
    """The median of the numbers that fresh processes print."""
    found = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, check=True
        )
        found.append(float(done.stdout.split()[-1]))
    return statistics.median(found)
