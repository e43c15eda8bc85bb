"""The second process of `nr.live`: it reads what is recorded, computes, and draws."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.gdln import Network
from neuralrace.interop.files import read_network
from neuralrace.interop.recorder import records
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.watched import Expected, Watched
from neuralrace.relu import ReLUNetwork
from neuralrace.results import Result, Sentence, framed
from neuralrace.tolerances import PATTERNS_HOLD

PLAN, TOLD, ROWS, RESULT, PAGE, END = (
    "plan.npz", "told.jsonl", "rows.jsonl", "live.npz", "live.html", "end",
)  # fmt: skip
"""The files of a watched training: the first two and the last are the user's process's."""

PAUSE = 0.3
"""Seconds between two looks at the folder."""

MOMENTS = 400
"""At most this many moments of a race are computed evenly, and as many early ones."""


@final
@dataclass(frozen=True, eq=False)
class Plan(Result):
    """What the user's process says of a training, once."""

    data: Dataset
    loss: str
    learning_rate: float | None
    steps: int | None
    predict: bool
    why: str

    def frame(self) -> Any:
        """The learning rate and the number of steps."""
        return framed(("rate", "steps"), [{"rate": self.learning_rate, "steps": self.steps}])

    def sentences(self) -> tuple[Sentence, ...]:
        """What is watched."""
        return (Sentence("plan", f"Data of {self.data.n_samples} samples, loss {self.loss}."),)

    def plot(self, *, ax: Any = None) -> Any:
        """There is nothing to draw."""
        return ax


def expected(plan: Plan, net: Network | None, weights: Mapping[str, np.ndarray]) -> Expected:
    """What theory expects of a network from these weights, or why it expects nothing."""
    unknown = _unknown(plan, net)
    if unknown:
        return Expected(reason=unknown)
    assert net is not None and plan.learning_rate is not None and plan.steps is not None
    try:
        if isinstance(net, ReLUNetwork):
            return _wide_limit(plan, net, weights, plan.learning_rate, plan.steps)
        return _race(plan, net, weights, plan.learning_rate, plan.steps)
    except Exception as error:  # the page says it; the training is another process
        return Expected(reason=f"{type(error).__name__}: {error}".partition("\n")[0])


def _unknown(plan: Plan, net: Network | None) -> str:
    """Why nothing can be expected; empty where something can."""
    if not plan.predict:
        return "predict is False"
    if net is None:
        return plan.why or "the weights cannot be read"
    if plan.loss != "squared":
        return f"theory is about the squared loss, and this one is {plan.loss}"
    if plan.learning_rate is None:
        return "no learning rate was given, without which steps are not times"
    if plan.steps is None:
        return "the number of steps was not given"
    if isinstance(net, ReLUNetwork) and not _is_plain(net, plan.data):
        return "it is known for ReLU networks with one hidden layer and no other edges, all learned"
    return ""


def _is_plain(net: ReLUNetwork, data: Dataset) -> bool:
    """Whether `nr.predict` is about it: one hidden layer, biases in both or none, all learned."""
    arch = net.arch
    if len(arch.hidden) != 1 or len(arch.outputs) != 1 or arch.ties or arch.frozen:
        return False
    both = {node for node in arch.inputs if node not in data.x}  # an input of ones is the bias
    pairs = {(node, arch.hidden[0]) for node in arch.inputs}
    pairs |= {(node, arch.outputs[0]) for node in (*both, arch.hidden[0])}
    return pairs == set(arch.edges.values()) and len(pairs) == len(arch.edges)


def _race(
    plan: Plan, net: Network, weights: Mapping[str, np.ndarray], rate: float, steps: int
) -> Expected:
    """The race from these weights."""
    from neuralrace.reduction import reduce

    race = reduce(net.arch, plan.data)
    evenly, early = np.linspace(0, steps, MOMENTS), np.geomspace(1, steps, MOMENTS)
    moments = np.unique(np.concatenate([evenly, early]).astype(int))
    start = {edge: np.asarray(w, np.float64) for edge, w in weights.items()}
    run = race.solve(times=rate * moments, start=start, learning_rate=rate)
    taken = moments if run.steps is None else np.asarray(run.steps)
    reduces = len(race.blocks) > 1 or all(block.is_scalar for block in race.blocks)
    by = "the race from these weights, an approximation unless they are small"
    if not reduces:
        by = "this network itself, trained by plain descent: its race is one block"
    return Expected(by, taken, np.asarray(run.loss))


def _wide_limit(
    plan: Plan, net: ReLUNetwork, weights: Mapping[str, np.ndarray], rate: float, steps: int
) -> Expected:
    """The wide limit, and simulated networks of this width and spread of first weights."""
    from neuralrace.explanation import predict

    arch = net.arch
    (hidden,), (output,) = arch.hidden, arch.outputs
    spread = lambda edges: float(
        np.sqrt(np.mean(np.square(np.hstack([weights[e] for e in edges]))))
    )
    bias = [node for node in arch.inputs if node not in plan.data.x]
    into = [e for e in arch.incoming[hidden] if arch.edges[e][0] not in bias]
    scale = {"W1": spread(into), "W2": spread(arch.outgoing[hidden])}
    for node in (hidden, output):
        edges = [e for e in arch.incoming[node] if arch.edges[e][0] in bias]
        if bias:
            scale[f"bias_{'h' if node == hidden else 'y'}"] = spread(edges) if edges else 0.0
    found = predict(
        plan.data, width=arch.sizes[hidden], scale=scale, bias=bool(bias), leak=net.leak,
        learning_rate=rate, steps=steps,
    )  # fmt: skip
    moments = np.asarray(found.likely.steps)
    by = "the wide limit, from the width and the spread of the first weights"
    return Expected(by, moments, np.asarray(found.likely.loss), np.asarray(found.networks))


class Watcher:
    """Reads what is recorded, and keeps the table and the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = Plan.load(folder / PLAN)
        self.rows: list[dict[str, float]] = []
        self.expected: Expected | None = None
        self.failures: tuple[str, ...] = ()
        self.before: Moment | None = None
        self.drawn: tuple[object, ...] = ()

    def begin(self) -> threading.Thread:
        """Compute the prediction beside everything else."""

        def compute() -> None:
            there = records(self.folder)
            net, weights = read_network(there[0], None) if 0 in there else (None, {})
            self.expected = expected(self.plan, net, weights)

        thread = threading.Thread(target=compute, daemon=True)
        thread.start()
        return thread

    def look(self) -> None:
        """Read what is new."""
        path = self.folder / TOLD
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        for line in [line for line in lines if line.endswith(b"\n")][len(self.rows) :]:
            row = self._row(json.loads(line))
            self.rows.append(row)
            with (self.folder / ROWS).open("a") as file:
                latest = self.result().frame().iloc[-1].to_dict()
                finite = {k: v for k, v in latest.items() if np.isfinite(v)}
                file.write(json.dumps(finite) + "\n")

    def _row(self, said: dict[str, float]) -> dict[str, float]:
        """What is measured at a record."""
        path = self.folder / f"step-{int(said['step']):09d}.safetensors"
        row = {"loss": said.get("told", np.nan), **said}
        if not path.exists():
            return row
        try:
            return row | self._measured(Moment(path.name, *read_network(path, None)), said["step"])
        except Exception as error:  # said on the page; later records may be read
            said_once = f"Step {int(said['step'])}: {type(error).__name__}: {error}"
            self.failures = tuple(dict.fromkeys([*self.failures, said_once.partition("\n")[0]]))
            return row

    def _measured(self, moment: Moment, step: float) -> dict[str, float]:
        before, self.before = self.before, moment
        pair = [moment] if before is None else [before, moment]
        times = [step] if before is None else [step - 1, step]
        trained = Trained("a watched training", self.plan.loss, None, None)
        net, run = imported_run(pair, self.plan.data, times, trained)
        row = {"loss": float(run.loss[-1])}
        return row | (gates(run, self.plan.data) if isinstance(net, ReLUNetwork) else {})

    def result(self, ended: bool = False) -> Watched:
        """What is known by now."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        rows = {n: np.array([row.get(n, np.nan) for row in self.rows]) for n in names}
        if "step" in rows:
            rows["step"] = rows["step"].astype(int)
        return Watched(rows, self.expected, ended, self.failures)

    def draw(self, ended: bool = False) -> None:
        """Write the result and its page, if anything is new."""
        state = (len(self.rows), self.expected is None, ended)
        if state != self.drawn:
            self.drawn = state
            result = self.result(ended)
            result.save(self.folder / RESULT)
            result.to_html(self.folder / PAGE)


def gates(run: Any, data: Dataset) -> dict[str, float]:
    """How the gates of a ReLU network are at its last moment, compared with the first.

    Averages over neurons by their weight; see `Watched.frame`.
    """
    from neuralrace.reln import activity

    found = activity(run, data)
    p = np.asarray(data.probability)
    kept = on = total = 0.0
    patterns = 0
    for node, each in found.on.items():
        now, then, weight = each[-1], each[0], found.weight[node][-1]
        kept += float(p @ (now == then) @ weight)
        on += float(p @ now @ weight)
        total += float(weight.sum())
        _, which = np.unique(now, axis=1, return_inverse=True)
        held = np.sort(np.bincount(which.ravel(), weights=weight))[::-1].cumsum()
        patterns += int(np.searchsorted(held, PATTERNS_HOLD * held[-1]) + 1)
    row = {"on": on / total, "patterns": float(patterns)} if total > 0 else {}
    return row | ({"kept": kept / total} if len(run.time) > 1 and total > 0 else {})


def watch(folder: Path, parent: int) -> None:
    """Follow a training until it ends, or until the process that trains is gone."""
    watcher = Watcher(folder)
    thread = watcher.begin()
    while True:
        ended = (folder / END).exists() or os.getppid() != parent
        watcher.look()
        if ended:
            thread.join()
            watcher.draw(ended=True)
            return
        watcher.draw()
        time.sleep(PAUSE)


def main() -> None:
    """What the second process runs: its arguments are the folder, and the process that trains."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if hasattr(os, "nice"):
        os.nice(10)
    watch(Path(sys.argv[1]), int(sys.argv[2]))
