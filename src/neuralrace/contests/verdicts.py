"""Whether a ReLU network would keep the gates of a contest, and what to expect if not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never, final

import numpy as np

from neuralrace.architecture import BIAS
from neuralrace.checks import one_of, random_key
from neuralrace.contests.times import (
    Candidates,
    Entrant,
    Rule,
    initial_loss,
    moments,
)
from neuralrace.dataset import Dataset, with_bias
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.progress import progress
from neuralrace.reln.explained.aligned import gating_of
from neuralrace.reln.explained.alignment import LARGE, AlignedPatterns, aligned_patterns
from neuralrace.reln.explained.consistency import kept_share
from neuralrace.reln.possible.patterns import is_implementable
from neuralrace.results import Sentence
from neuralrace.tolerances import COMPARABLE, END, KEPT, OUTRUN, RELIABLE
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key

CHANGING = "For the whole curve, see nr.predict."
"""What to use where no constant gating says when a ReLU network learns."""

ALIGNED = "aligned"
"""The name of the reference in a contest."""

NEVER = "a small ReLU network never starts to learn this task (s* = 0)"
"""The verdict on every candidate if no small neuron grows."""

LAYERS = "checked layer by layer only; how long a deeper network takes is not known"
"""The note on candidates with more than one hidden layer."""


SHARED = "what neurons that share weights align to is not known"
"""Why there is no reference for candidates with shared weights."""

PAST = "an output bias learns past all gates; what neurons align to beside it is not known"
"""Why there is no reference where candidates have an output bias."""


@final
class Kept(StrEnum):
    """What becomes of a candidate's gates in a ReLU network; see `contest`.

    They are kept and learned in time (`KEPT`), kept but slower than the aligned gates (`OUTRUN`),
    faster than neurons can align to them (`NOT_REACHED`), or not produced by the weights that they
    learn (`NOT_KEPT`). `UNKNOWN` where the check cannot tell.

    ```python
    >>> import neuralrace as nr
    >>> nr.contests.Kept("not kept")
    <Kept.NOT_KEPT: 'not kept'>

    ```
    """

    KEPT = "kept"
    OUTRUN = "outrun"
    NOT_REACHED = "not reached"
    NOT_KEPT = "not kept"
    UNKNOWN = "unknown"


BECOMES = {
    Kept.KEPT: "would keep the gates of {}",
    Kept.OUTRUN: "would keep the gates of {}, but is faster with others",
    Kept.NOT_REACHED: "would keep the gates of {}, but cannot align to them in time",
    Kept.NOT_KEPT: "would not keep the gates of {}",
    Kept.UNKNOWN: "may or may not keep the gates of {}",
}
"""What a ReLU network does with the gates of the winner."""

DESCRIBED = {
    Kept.OUTRUN: "kept, but outrun {}",
    Kept.NOT_REACHED: "not reached: {}",
    Kept.NOT_KEPT: "not kept; {}",
}
"""A verdict with its detail, where these are not the detail alone."""


@final
@dataclass(frozen=True, eq=False)
class Check:
    """What a ReLU network would do with the gates of a contest; made by `Contest.check`.

    `kept[name]` is the kept share of a candidate (`reln.consistency`), with the reference under
    `"aligned"`; it is NaN if it could not be measured, and `unchecked[name]` says why.
    `implementable[name]` says whether single neurons can have the gates at all. It is only for
    information, since it predicts little, and None for deeper candidates. `reference` is the race
    of the aligned gates (`reln.aligned`), or None if there is none, and `reason` says why.
    `fastest` is s*, the largest growth rate of a small neuron, or NaN if it is not known. `ratio`
    is the time that neurons take to align over the time that the network takes to learn
    (`AlignedPatterns.ratio`), or NaN if the start does not determine it. `unaligned` is the reason
    why neurons do not align before the loss falls (`AlignedPatterns.too_large`), or None. `curve`
    is the predicted loss of the reference, where no candidate is the reference.

    Aligned gates and s* are known for one hidden layer. If any candidate is deeper, there is no
    reference, and each of its layers is checked while the other layers follow their given gates.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.4)
    >>> check = nr.contest({"xor": nr.tasks.xor_pathways(data)}, scale=1e-3).check()
    >>> check.verdict("xor").name, bool(check.kept["xor"] > 0.9)
    ('KEPT', True)

    ```
    """

    entrants: Mapping[str, Entrant]
    kept: Mapping[str, float]
    implementable: Mapping[str, bool | None]
    reference: Entrant | None
    fastest: float
    ratio: float
    reason: str = ""
    unchecked: Mapping[str, str] = field(default_factory=dict)
    unaligned: str | None = None
    curve: Trajectory | None = None

    @door
    def verdict(self, name: str) -> Kept:
        """What a ReLU network would do with a candidate's gates; `describe` has it in words."""
        if self.fastest == 0:
            return Kept.NOT_KEPT
        one_of("name", name, self.entrants, "a candidate of this contest")
        entrant, share = self.entrants[name], self.kept[name]
        if np.isnan(share) or is_deep(entrant):
            return Kept.UNKNOWN
        if share < KEPT:
            return Kept.NOT_KEPT
        if self.reference is None or self.reference.is_unknown or entrant.is_unknown:
            return Kept.UNKNOWN
        behind = self._behind(entrant)
        if behind * OUTRUN < 1:
            return Kept.NOT_REACHED
        return Kept.KEPT if behind <= OUTRUN else Kept.OUTRUN

    @property
    def verdicts(self) -> dict[str, Kept]:
        """The verdict on every candidate that was measured."""
        return {name: self.verdict(name) for name in self.entrants if name in self.kept}

    @door
    def detail(self, name: str) -> str:
        """What there is to add to a verdict: numbers or a reason; empty where there is nothing."""
        entrant, share, verdict = self.entrants[name], self.kept[name], self.verdict(name)
        behind = self._behind(entrant)
        match verdict:
            case Kept.KEPT:
                return ""
            case Kept.OUTRUN:
                later = "never learns" if np.isinf(behind) else f"{behind:.2f} times their time"
                return f"by the aligned gates ({later})"
            case Kept.NOT_REACHED:
                return f"the gates that small neurons align to need {1 / behind:.2f} times as long"
            case Kept.NOT_KEPT:
                if self.fastest == 0:
                    return NEVER
                estimate = self._estimate(entrant)
                return "" if estimate is None else f"expect about t·s/s* = {estimate:.4g}"
            case Kept.UNKNOWN:
                if np.isnan(share):
                    return f"not checked: {self.unchecked.get(name, 'its share is not known')}"
                if is_deep(entrant):
                    return f"kept share {share:.2f}, {LAYERS}"
                if entrant.is_unknown:
                    return "kept; when it learns is not known"
                return f"kept share {share:.2f}, not compared with the aligned gates"
        assert_never(verdict)

    @door
    def describe(self, name: str) -> str:
        """The verdict on a candidate in words, with its numbers."""
        verdict, detail = self.verdict(name), self.detail(name)
        form = "{}" if self.fastest == 0 else DESCRIBED.get(verdict, "{}")
        return form.format(detail) if detail else verdict.value

    def _behind(self, entrant: Entrant) -> float:
        """The time of a candidate over that of the aligned gates; 1 if these never learn."""
        if self.reference is None or np.isinf(self.reference.time):
            return 1.0
        return entrant.time / self.reference.time

    def _estimate(self, entrant: Entrant) -> float | None:
        """t·s/s* of a gating that is not kept, or None if it is no usable estimate."""
        if self.reference is not None or not np.isfinite(entrant.time) or is_late(entrant):
            return None
        rate = entrant.growth_rate
        return entrant.time * rate / self.fastest if rate >= COMPARABLE * self.fastest else None

    @door
    def keeps(self, name: str) -> bool | None:
        """Whether a candidate is kept, reached and not outrun; None if the check cannot tell."""
        return {Kept.KEPT: True, Kept.UNKNOWN: None}.get(self.verdict(name), False)

    @door
    def is_kept(self, name: str) -> bool:
        """Whether a candidate is known to be kept, reached and not outrun."""
        return self.verdict(name) is Kept.KEPT

    @door
    def expected(self, winner: str | None) -> float | None:
        """When a ReLU network should reach the criterion, or None if nothing reliable is known.

        This is the winner's time if the winner is kept, otherwise the time of the aligned gates. It
        is infinite if a small network never starts to learn. It is None if a constant gating is not
        reliable: neurons do not align before the loss falls, the kept share of the aligned gates is
        too small, or the criterion comes after the part of learning that the check covers.
        """
        if self.fastest == 0:
            return np.inf
        kept = winner is not None and winner in self.entrants and self.is_kept(winner)
        trusted = self.entrants[str(winner)] if kept else self.reference
        if trusted is None or not np.isfinite(trusted.time) or not covers(trusted):
            return None
        return None if self._is_unaligned or self._is_unreliable else trusted.time

    @property
    def _is_unaligned(self) -> bool:
        return self.unaligned is not None

    @property
    def _is_unreliable(self) -> bool:
        return self.kept.get(ALIGNED, np.nan) < RELIABLE

    @door
    def sentences(self, winner: str | None) -> tuple[Sentence, ...]:
        """The conclusion from the contest as a whole, in sentences."""
        return tuple(self._sentences(winner))

    def _sentences(self, winner: str | None) -> Iterator[Sentence]:
        if self.fastest == 0:
            yield Sentence("never", f"{NEVER[0].upper()}{NEVER[1:]}.")
            return
        kept = winner is not None and winner != ALIGNED and self.is_kept(winner)
        if winner is not None and winner != ALIGNED:
            yield Sentence("kept", self._what_becomes_of(winner))
        if not kept and self.reference is not None:
            text = self._what_the_aligned_gates_say(self.reference, alone=winner == ALIGNED)
            if text:
                yield Sentence("expected", text)
        if self._is_unaligned:
            yield Sentence(
                "unaligned",
                f"{LARGE[0].upper()}{LARGE[1:]}: {self.unaligned}, so the check says little.",
            )
        if self._is_unreliable:
            yield Sentence(
                "unreliable",
                "No constant gating is reliable here: gates change while the network learns, and "
                f"the kept share of the aligned gates themselves is {self.kept[ALIGNED]:.2f}.",
            )
        if self.reference is None:
            text = f"There is no reference: {self.reason or 'it is not known'}."
            yield Sentence("no reference", text)
        every = [*self.entrants.values(), *([self.reference] if self.reference else [])]
        if any(is_late(entrant) for entrant in every):
            yield Sentence(
                "late",
                "The check covers the first half of learning only, and the criterion is below "
                "that.",
            )
        inputs = [set(entrant.race.arch.inputs) for entrant in self.entrants.values()]
        if self.reference is not None and any(each != inputs[0] for each in inputs):
            yield Sentence(
                "inputs",
                "Candidates read different inputs; the aligned gates are those of a network that "
                f"reads all of them, side by side: {', '.join(sorted(set().union(*inputs)))}.",
            )
        if self.reference is not None and not self._is_unaligned and self.expected(winner) is None:
            yield Sentence("changing", CHANGING)

    def _what_becomes_of(self, winner: str) -> str:
        """The verdict on the winner."""
        if not self.detail(winner):
            return f"A ReLU network {BECOMES[self.verdict(winner)].format(winner)}."
        if np.isnan(self.kept[winner]):
            reason = self.unchecked.get(winner, "their kept share is not known")
            return f"The gates of {winner} were not checked: {reason}."
        are = " are" if self.fastest and self.verdict(winner) in DESCRIBED else ":"
        return f"The gates of {winner}{are} {self.describe(winner)}."

    def _what_the_aligned_gates_say(self, reference: Entrant, *, alone: bool) -> str:
        """What to expect if the winner is not kept, according to the aligned gates."""
        time = f"t = {reference.time:.4g}"
        if reference.is_unknown:
            return (
                "When the gates that it aligns to reach the criterion is not known: "
                f"{reference.unknown}."
            )
        if not np.isfinite(reference.time):
            either = "" if alone else " either"
            return f"The gates that it aligns to do not reach the criterion{either}."
        if is_at_its_end(reference):
            return (
                f"The gates that it aligns to reach the criterion at {time}, but the criterion is "
                f"near the least loss that they can reach, {100 * (1 - reference.learns):.2g} % of "
                "the initial loss. The network will have changed its gates by then, so this time "
                "is not reliable."
            )
        if alone:
            return ""
        if self._is_unaligned or self._is_unreliable or is_late(reference):
            return f"The gates that it aligns to would take {time}."
        return f"Expect a ReLU network to learn at about {time}, with the gates that it aligns to."


def covers(entrant: Entrant) -> bool:
    """Whether the criterion is reached within the part of learning that the check covers.

    That is the first half of the loss, and at most nine tenths of what the gating can learn.
    """
    return not is_late(entrant) and not is_at_its_end(entrant)


def is_late(entrant: Entrant) -> bool:
    """Whether the criterion is below half of the initial loss."""
    return entrant.criterion < 0.5 * initial_loss(entrant.race)


def is_at_its_end(entrant: Entrant) -> bool:
    """Whether the criterion comes after nine tenths of what the gating can learn."""
    initial, least = initial_loss(entrant.race), entrant.race.constant
    return entrant.criterion < least + END * (initial - least)


def is_deep(entrant: Entrant) -> bool:
    """Whether an edge leads from one hidden node to another."""
    return max(entrant.race.split.arch.path_lengths) > 2


def has_output_bias(entrant: Entrant) -> bool:
    """Whether an edge leads from the bias straight to an output."""
    arch = entrant.race.arch
    return any(s == BIAS and t in arch.outputs for s, t in arch.edges.values())


def task_of(candidates: Candidates) -> Dataset:
    """The task that all candidates learn, with every input that any of them reads, ungated."""
    first = next(iter(candidates.values()))[1]
    x = {v: a for _, data in candidates.values() for v, a in data.x.items()}
    task = replace(first, x=x, gates=None)
    return with_bias(task) if any(BIAS in arch.inputs for arch, _ in candidates.values()) else task


def width_of(candidates: Candidates) -> int:
    """The total width of the widest candidate."""
    return max(sum(arch.sizes[v] for v in arch.hidden) for arch, _ in candidates.values())


def check(
    task: Dataset,
    entrants: Mapping[str, Entrant],
    rule: Rule,
    width: int,
    key: Key,
    *,
    only: str | None = None,
) -> Check:
    """Compare every candidate, or only one, with the gates that a ReLU network aligns to."""
    random = random_key(key, "contest")
    fastest, ratio, unaligned = np.nan, np.nan, None
    kept: dict[str, float] = {}
    unchecked: dict[str, str] = {}
    with progress(len(entrants) + 3, "checking gates", "gatings") as advance:
        archs = [entrant.race.arch for entrant in entrants.values()]
        if any(arch.ties or arch.frozen for arch in archs):
            reference, reason = None, SHARED
        elif any(is_deep(entrant) for entrant in entrants.values()):
            reference, reason = None, f"some candidates have several hidden layers, {LAYERS}"
        elif any(has_output_bias(entrant) for entrant in entrants.values()):
            reference, reason = None, PAST
        else:
            patterns = aligned_patterns(task, key=key, leak=rule.leak)
            fastest, scale = patterns.fastest, rule.random_scale(width)
            if scale is not None:
                ratio = patterns.ratio(width, scale)
                unaligned = patterns.too_large(width, scale)
            advance(1)
            reference, reason = entrants.get(ALIGNED), ""
            if reference is None:
                reference, reason = _reference(patterns, rule, width)
        advance(1)
        every = dict(entrants) | ({ALIGNED: reference} if reference is not None else {})
        measured = every if only is None else {only: every[only]}
        for name, entrant in measured.items():
            if not entrant.race.arch.hidden:
                kept[name], unchecked[name] = np.nan, "it has no hidden neurons"
                continue
            try:
                kept[name] = kept_share(
                    entrant.race, entrant.start, key=random, leak=rule.leak
                ).share
            except NeuralRaceError as error:
                kept[name], unchecked[name] = np.nan, error.what
            advance(1)
    can = {n: _implementable(e, task, rule.leak) for n, e in entrants.items() if only in (None, n)}
    curve = None
    if reference is not None and ALIGNED not in entrants and only is None:
        times = moments(every.values())
        curve = reference.race.solve(times=times, start=reference.start, rtol=rule.rtol)
    return Check(
        entrants, kept, can, reference, fastest, ratio, reason, unchecked, unaligned, curve
    )


def _reference(
    patterns: AlignedPatterns, rule: Rule, width: int
) -> tuple[Entrant, str] | tuple[None, str]:
    """The race of the aligned gates, or None and the reason why there is none."""
    if not len(patterns):
        return None, "no gates that small neurons align to were found"
    started = rule.of_first()
    if started is None:
        return None, "the candidates start in a way that cannot be given to other gates"
    try:
        return started.enter({ALIGNED: gating_of(patterns, width)})[ALIGNED], ""
    except NeuralRaceError as error:  # for example, these gates meet the criterion at the start
        return None, error.what


def _implementable(entrant: Entrant, task: Dataset, leak: float) -> bool | None:
    """Whether single neurons that read all inputs can have the gates of every pathway.

    Such a gate is 1 where the neuron is on and `leak` elsewhere. None for deeper networks, in which
    not every neuron reads the inputs, and for networks without hidden neurons.
    """
    if is_deep(entrant) or not entrant.race.arch.hidden:
        return None
    x = np.concatenate([np.asarray(a, np.float64) for a in task.x.values()], axis=1)
    gates = [np.asarray(g) for g in entrant.race.split.data.gates.values()]
    gates += [np.ones(len(x))] * any(
        v not in entrant.race.split.data.gates for v in entrant.race.split.arch.hidden
    )
    return all(bool(np.isin(g, (leak, 1)).all()) and is_implementable(g == 1, x) for g in gates)
