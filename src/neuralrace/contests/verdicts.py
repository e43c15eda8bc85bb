"""Whether a ReLU network would keep the gates of a contest, and what to expect if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, final

import jax
import numpy as np

from neuralrace.contests.times import Candidates, Entrant, Rule
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reduction.race import plain_number
from neuralrace.reln.explained.aligned import gating_of
from neuralrace.reln.explained.alignment import AlignedPatterns, aligned_patterns
from neuralrace.reln.explained.consistency import KEPT, OUTRUN, kept_share
from neuralrace.reln.possible.patterns import is_implementable

RELIABLE = 0.85
"""Below this kept share of the aligned gates themselves, no constant gating is reliable."""

COMPARABLE = 0.5
"""t·s/s* is an estimate where the growth rate s of a gating is at least this times s*."""

ALIGNED = "aligned"
"""The name of the reference in a contest."""


@final
@dataclass(frozen=True, eq=False)
class Check:
    """What a ReLU network would make of the gates of a contest; see `Contest.check`.

    `kept[name]` is the kept share of a candidate (`reln.consistency`), that of the reference under
    `"aligned"`, and NaN where there is none. `implementable[name]` says whether single neurons can
    have the gates at all: for information, since it predicts little. `reference` is the race of
    the aligned gates (`reln.aligned`), or None where there is none, and `fastest` is s*, the
    largest growth rate of a small neuron.
    """

    entrants: Mapping[str, Entrant]
    kept: Mapping[str, float]
    implementable: Mapping[str, bool]
    reference: Entrant | None
    fastest: float

    def verdict(self, name: str) -> str:
        """What a ReLU network would do with a candidate's gates, in words."""
        if not self.fastest:
            return "a small ReLU network never starts to learn this task (s* = 0)"
        entrant, share = self.entrants[name], self.kept[name]
        if np.isnan(share):
            return "not checked: it learns nothing, or gates more than hidden neurons"
        known = self.reference is not None and np.isfinite(self.reference.time)
        if share >= KEPT:
            if self.reference is None or not known:
                return "kept"
            behind = entrant.time / self.reference.time
            if behind <= OUTRUN:
                return "kept"
            later = "never learns" if np.isinf(behind) else f"{behind:.2f} times their time"
            return f"kept, but outrun by the aligned gates ({later})"
        growth = fastest_pathway(entrant)
        if np.isfinite(entrant.time) and growth >= COMPARABLE * self.fastest:
            expected = entrant.time * growth / self.fastest
            return f"not kept; expect about t·s/s* = {expected:.4g}"
        return "not kept"

    def is_kept(self, name: str) -> bool:
        """Whether a candidate is kept, and not outrun."""
        return self.verdict(name) == "kept"

    def sentences(self, winner: str | None) -> list[str]:
        """What to make of the contest as a whole."""
        if not self.fastest:
            return ["A small ReLU network never starts to learn this task (s* = 0)."]
        said = []
        if winner is not None and winner != ALIGNED:
            if self.is_kept(winner):
                said.append(f"A ReLU network would keep the gates of {winner}.")
            elif self.kept[winner] < KEPT:
                said.append(f"A ReLU network would not keep the gates of {winner}.")
            else:
                said.append(f"The gates of {winner}: {self.verdict(winner)}.")
            if not self.is_kept(winner) and self.reference is not None:
                time = self.reference.time
                said.append(
                    f"Expect it to learn at about t = {time:.4g}, by the gates that it aligns to."
                    if np.isfinite(time)
                    else "The gates that it aligns to do not reach the criterion either."
                )
        share = self.kept.get(ALIGNED, np.nan)
        if share < RELIABLE:
            said.append(
                "No constant gating is reliable here: gates change while the network learns, and "
                f"the kept share of the aligned gates themselves is {share:.2f}."
            )
        every = [*self.entrants.values(), *([self.reference] if self.reference else [])]
        if any(e.criterion < 0.5 * initial_loss(e) for e in every):
            said.append(
                "The check covers the first half of learning only, and the criterion is below that."
            )
        return said


def fastest_pathway(entrant: Entrant) -> float:
    """The growth rate of the fastest pathway by itself: the largest singular value of ⟨g y xᵀ⟩.

    The strength of a block where pathways overlap is that of their sum. Of networks with more than
    one hidden layer, the strength of the strongest block.
    """
    arch, data = entrant.race.whole.arch, entrant.race.whole.data
    ends = {*arch.inputs, *arch.outputs}
    if any((s in ends) == (t in ends) for s, t in arch.edges.values()):
        return entrant.strength
    found = 0.0
    for node in arch.hidden:
        x = np.concatenate([data.x[arch.edges[e][0]] for e in arch.incoming[node]], axis=1)
        y = np.concatenate([data.y[arch.edges[e][1]] for e in arch.outgoing[node]], axis=1)
        weight = np.asarray(data.probability) * np.asarray(data.gates.get(node, 1.0))
        found = max(found, float(np.linalg.norm((weight[:, None] * y).T @ x, 2)))
    return found


def initial_loss(entrant: Entrant) -> float:
    """½⟨‖y‖²⟩ of the candidate's task."""
    race = entrant.race
    return race.constant + sum(block.initial_loss for block in race.blocks)


def task_of(candidates: Candidates) -> Dataset:
    """The task that all candidates learn, with every input that any of them reads, ungated."""
    first = next(iter(candidates.values()))[1]
    x = {v: a for _, data in candidates.values() for v, a in data.x.items()}
    return Dataset(x, first.y, None, first.sample_weight, first.labels)


def width_of(candidates: Candidates) -> int:
    """The total width of the widest candidate."""
    return max(sum(arch.sizes[v] for v in arch.hidden) for arch, _ in candidates.values())


def check(
    task: Dataset, entrants: Mapping[str, Entrant], rule: Rule, width: int, key: Any
) -> Check:
    """Compare every candidate with the gates that a ReLU network aligns to."""
    random = key if hasattr(key, "dtype") else jax.random.key(key)
    patterns = aligned_patterns(task, key=key)
    reference = entrants.get(ALIGNED) or _reference(patterns, rule, width)
    every = dict(entrants) | ({ALIGNED: reference} if reference is not None else {})
    kept = {name: _share(entrant, random) for name, entrant in every.items()}
    can = {name: _implementable(entrant, task) for name, entrant in entrants.items()}
    return Check(entrants, kept, can, reference, patterns.fastest)


def _reference(patterns: AlignedPatterns, rule: Rule, width: int) -> Entrant | None:
    """The race of the aligned gates, or None where no neuron learns or the start is not its own."""
    started = _started(rule)
    if not len(patterns) or started is None:
        return None
    return started.enter({ALIGNED: gating_of(patterns, width)})[ALIGNED]


def _started(rule: Rule) -> Rule | None:
    """The rule with a start that fits the reference: that of the first candidate."""
    start = rule.start
    if isinstance(start, Mapping):
        start = next(iter(start.values()), None)
    start = plain_number(start)
    if rule.scale is not None or isinstance(start, Real):
        return replace(rule, start=start)
    if isinstance(start, Mapping) and all(np.ndim(w) == 2 for w in start.values()):
        entries = np.concatenate([np.ravel(np.asarray(w)) for w in start.values()])
        return replace(rule, start=None, scale=float(np.sqrt(np.mean(entries**2))))
    return None


def _share(entrant: Entrant, key: Any) -> float:
    try:
        return kept_share(entrant.race, entrant.start, key=key).share
    except NeuralRaceError:
        return np.nan


def _implementable(entrant: Entrant, task: Dataset) -> bool:
    """Whether single neurons that read all inputs can have the gates of every pathway."""
    x = np.concatenate([np.asarray(a, np.float64) for a in task.x.values()], axis=1)
    gates = [np.asarray(g) for g in entrant.race.whole.data.gates.values()]
    gates += [np.ones(len(x))] * any(
        v not in entrant.race.whole.data.gates for v in entrant.race.whole.arch.hidden
    )
    return all(bool(np.isin(g, (0, 1)).all()) and is_implementable(g, x) for g in gates)
