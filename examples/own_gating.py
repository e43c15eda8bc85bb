"""Your own gatings: a task with two rules, and which way to divide it learns first."""

import sys
from pathlib import Path

import numpy as np

import neuralrace as nr

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

# Four stimuli under two rules. The first answer is the same under both, the second is reversed.
stimulus, rule = np.tile(np.eye(4), (2, 1)), np.repeat([1, 2], 4)
same = np.tile([1.0, 1.0, -1.0, -1.0], 2)
reversed_ = np.tile([1.0, -1.0, 1.0, -1.0], 2) * np.where(rule == 1, 1, -1)
task = nr.Dataset(
    x={"stimulus": stimulus},
    y={"answer": np.stack([same, reversed_], axis=1)},
    labels={"rule": rule},
)
# A gating says which pathway is on for which samples; every gating has 64 neurons in total.
apart = {"rule1": task.mask(rule=1), "rule2": task.mask(rule=2)}
gatings = {
    "one pathway": nr.pathways(task, {"all": None}, hidden=64),
    "a pathway per rule": nr.pathways(task, apart, hidden=32),
    "a pathway per sample": nr.pathways(task, task.one_per_sample(), hidden=8),
}
found = nr.contest(gatings, scale=1e-3, criterion=0.1, relative=True)
print(found)  # who is first, how exact each prediction is, and which gatings never learn the task
found.plot().figure.savefig(out / "own_gating.png")
