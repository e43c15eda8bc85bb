"""Whether a ReLU network would keep the gates of a contest, and what to expect if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.checks import random_key
from neuralrace.contests.times import Candidates, Entrant, Rule, initial_loss
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.progress import progress
from neuralrace.reln.explained.aligned import gating_of
from neuralrace.reln.explained.alignment import AlignedPatterns, aligned_patterns
from neuralrace.reln.explained.consistency import KEPT, OUTRUN, kept_share
from neuralrace.reln.explained.fall import END
from neuralrace.reln.possible.patterns import is_implementable
from neuralrace.types import Key

RELIABLE = 0.85
"""Below this kept share of the aligned gates themselves, no constant gating is reliable."""

COMPARABLE = 0.5
"""t·s/s* is an estimate where the growth rate s of a gating is at least this times s*."""

ALIGNED = "aligned"
"""The name of the reference in a contest."""


@final
@dataclass(frozen=True, eq=False)
class Check:
    """What a ReLU network would do with the gates of a contest; see `Contest.check`.

    `kept[name]` is the kept share of a candidate (`reln.consistency`), that of the reference under
    `"aligned"`, and NaN where there is none. `implementable[name]` says whether single neurons can
    have the gates at all: for information, since it predicts little. `reference` is the race of
    the aligned gates (`reln.aligned`), or None where there is none. `fastest` is s*, the largest
    growth rate of a small neuron. `ratio` is the time that neurons take to align over the time that
    the network takes to learn (`AlignedPatterns.ratio`), or NaN where the start does not tell.
    """

    entrants: Mapping[str, Entrant]
    kept: Mapping[str, float]
    implementable: Mapping[str, bool]
    reference: Entrant | None
    fastest: float
    ratio: float

    def verdict(self, name: str) -> str:
        """What a ReLU network would do with a candidate's gates, in words."""
        if not self.fastest:
            return "a small ReLU network never starts to learn this task (s* = 0)"
        entrant, share = self.entrants[name], self.kept[name]
        if np.isnan(share):
            return "not checked: it learns nothing, or gates more than hidden neurons"
        if share >= KEPT:
            if self.reference is None or not np.isfinite(self.reference.time):
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

    def expected(self, winner: str | None) -> float | None:
        """When to expect a ReLU network at the criterion, or None where nothing reliable is known.

        The winner's time if it is kept, else that of the aligned gates. Infinite where a small
        network never starts to learn. None where a constant gating is not reliable: neurons do not
        align before the loss falls, the aligned gates keep too little of themselves, or the
        criterion comes after the part of learning that the check covers.
        """
        if not self.fastest:
            return np.inf
        kept = winner is not None and winner in self.entrants and self.is_kept(winner)
        trusted = self.entrants[str(winner)] if kept else self.reference
        if trusted is None or not np.isfinite(trusted.time) or not covers(trusted):
            return None
        return None if self._is_unaligned or self._is_unreliable else trusted.time

    @property
    def _is_unaligned(self) -> bool:
        return self.ratio > 1

    @property
    def _is_unreliable(self) -> bool:
        return self.kept.get(ALIGNED, np.nan) < RELIABLE

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
        kept = winner is not None and winner != ALIGNED and self.is_kept(winner)
        if not kept and self.reference is not None:
            said += self._what_the_aligned_gates_say(self.reference, alone=winner == ALIGNED)
        if self.reference is None:
            said.append("There is no reference: the aligned gates cannot start as the others do.")
        if self._is_unaligned:
            said.append(
                "The start is too large for neurons to align before the loss falls: aligning takes "
                f"{self.ratio:.3g} times as long as learning, so that the check says little."
            )
        if self._is_unreliable:
            said.append(
                "No constant gating is reliable here: gates change while the network learns, and "
                f"the kept share of the aligned gates themselves is {self.kept[ALIGNED]:.2f}."
            )
        every = [*self.entrants.values(), *([self.reference] if self.reference else [])]
        if any(e.criterion < 0.5 * initial_loss(e.race) for e in every):
            said.append(
                "The check covers the first half of learning only, and the criterion is below that."
            )
        return said

    def _what_the_aligned_gates_say(self, reference: Entrant, *, alone: bool) -> list[str]:
        """What to expect where the winner is not kept, by the gates that neurons align to."""
        time = f"t = {reference.time:.4g}"
        if not np.isfinite(reference.time):
            return [
                "The gates that it aligns to do not reach the criterion"
                + (" either." if not alone else ".")
            ]
        if not covers(reference):
            part = 1 - reference.race.constant / initial_loss(reference.race)
            return [
                f"The gates that it aligns to reach the criterion at {time}, but they can learn "
                f"only {100 * part:.0f} % of the loss, and the criterion is at the end of that. "
                "The network will have changed its gates by then, so this time is not reliable."
            ]
        if self._is_unaligned or self._is_unreliable:
            return [] if alone else [f"The gates that it aligns to would take {time}."]
        if alone:
            return []
        return [f"Expect it to learn at about {time}, by the gates that it aligns to."]


def covers(entrant: Entrant) -> bool:
    """Whether the criterion is reached within the part of learning over which gates are checked.

    The check ends when the loss is a tenth of its initial value, or nine tenths of what the gating
    can learn are learned, whichever comes first (`reln.consistency`).
    """
    initial, least = initial_loss(entrant.race), entrant.race.constant
    return entrant.criterion >= max(END * initial, least + END * (initial - least))


def fastest_pathway(entrant: Entrant) -> float:
    """The growth rate of the fastest pathway by itself: the largest singular value of ⟨g y xᵀ⟩.

    The strength of a block where pathways overlap is that of their sum. Of networks with more than
    one hidden layer, the strength of the strongest block.
    """
    arch, data = entrant.race.split.arch, entrant.race.split.data
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


def task_of(candidates: Candidates) -> Dataset:
    """The task that all candidates learn, with every input that any of them reads, ungated."""
    first = next(iter(candidates.values()))[1]
    x = {v: a for _, data in candidates.values() for v, a in data.x.items()}
    return Dataset(x, first.y, None, first.sample_weight, first.labels)


def width_of(candidates: Candidates) -> int:
    """The total width of the widest candidate."""
    return max(sum(arch.sizes[v] for v in arch.hidden) for arch, _ in candidates.values())


def check(
    task: Dataset, entrants: Mapping[str, Entrant], rule: Rule, width: int, key: Key
) -> Check:
    """Compare every candidate with the gates that a ReLU network aligns to."""
    random = random_key(key, "contest")
    with progress(len(entrants) + 3, "checking gates", "gatings") as advance:
        patterns = aligned_patterns(task, key=key)
        advance(1)
        reference = entrants.get(ALIGNED) or _reference(patterns, rule, width)
        advance(1)
        every = dict(entrants) | ({ALIGNED: reference} if reference is not None else {})
        kept = {}
        for name, entrant in every.items():
            kept[name] = _share(entrant, random)
            advance(1)
    can = {name: _implementable(entrant, task) for name, entrant in entrants.items()}
    scale = rule.random_scale(width)
    ratio = np.nan if scale is None else patterns.ratio(width, scale)
    return Check(entrants, kept, can, reference, patterns.fastest, ratio)


def _reference(patterns: AlignedPatterns, rule: Rule, width: int) -> Entrant | None:
    """The race of the aligned gates, or None where no neuron learns or the start does not fit."""
    if not len(patterns):
        return None
    started = rule.of_first()
    if started is None:
        return None
    try:
        return started.enter({ALIGNED: gating_of(patterns, width)})[ALIGNED]
    except NeuralRaceError:  # such as a start at which these gates meet the criterion already
        return None


def _share(entrant: Entrant, key: Key) -> float:
    try:
        return kept_share(entrant.race, entrant.start, key=key).share
    except NeuralRaceError:
        return np.nan


def _implementable(entrant: Entrant, task: Dataset) -> bool:
    """Whether single neurons that read all inputs can have the gates of every pathway."""
    x = np.concatenate([np.asarray(a, np.float64) for a in task.x.values()], axis=1)
    gates = [np.asarray(g) for g in entrant.race.split.data.gates.values()]
    gates += [np.ones(len(x))] * any(
        v not in entrant.race.split.data.gates for v in entrant.race.split.arch.hidden
    )
    return all(bool(np.isin(g, (0, 1)).all()) and is_implementable(g, x) for g in gates)
