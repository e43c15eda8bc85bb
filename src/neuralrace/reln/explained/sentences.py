"""What types of neurons do, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from neuralrace.dataset import Dataset
from neuralrace.reln.explained.types.sliding import OFF, ON, SLIDING
from neuralrace.reln.explained.types.timeline import Event, strongest
from neuralrace.reln.naming import where
from neuralrace.results import Sentence
from neuralrace.text import numbered, percent, several
from neuralrace.tolerances import ROUNDING, SMALL

EVENTS = 6
"""The number of events that are told of a type, the first ones."""

VERBS = {OFF: "switches off", ON: "switches on", SLIDING: "begins to slide"}
"""What a type does when it enters a state."""

VERBS_OF_SEVERAL = {OFF: "switch off", ON: "switch on", SLIDING: "begin to slide"}
"""The same for several types."""


def _sentences_of(
    group: list[int],
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, "T K"],
    states: Int[np.ndarray, "T K N"],
    events: tuple[Event, ...],
    data: Dataset,
) -> list[str]:
    """What the types of a group do, told for the strongest of them, while they count.

    Each event has the share of the strength that the group has then.
    """
    k, share = group[0], shares[:, group].sum(axis=1)
    plural = len(group) > 1
    it, has, verbs = ("they", "have", VERBS_OF_SEVERAL) if plural else ("it", "has", VERBS)
    s = "" if plural else "s"
    who = f"Types {several([str(each + 1) for each in group])}" if plural else f"Type {k + 1}"
    every = [event for event in events if event.type == k + 1]
    then = {event: float(share[np.searchsorted(time, event.time)]) for event in every}
    mine = [event for event in every if then[event] >= SMALL]
    alike = " in all and do the same" if plural else ""
    if plural and mine:
        alike += f", each at its own times; those of type {k + 1} are told"
    lines = [f"{who} {has} {percent(share[-1])} of the strength at the end{alike}."]
    peak = _peak(share)
    if share[peak] > share[-1] + SMALL and peak > 0:
        lines[0] = lines[0].replace(" at the end", f" at the end, {_at_most(share, time)}", 1)
    counts = share >= SMALL
    be = "are" if plural else "is"
    if counts[0]:
        lines[0] += (
            f" {it.capitalize()} start{s} with {percent(share[0])}, {_on(states[0, k], data)}."
        )
    told = {event.time: [] for event in mine}
    for event in mine:
        what = f"{it} {verbs[event.state]} {where(event.samples, data)}"
        told[event.time].append(f"From t = {event.time:.4g} on ({percent(then[event])}), {what}.")
    for i in np.flatnonzero(counts[1:] & ~counts[:-1]) + 1:  # it begins to count
        last = np.flatnonzero(counts[:i])
        since = time[last[-1]] if len(last) else -np.inf
        if not len(last) or any(since < e.time <= time[i] and then[e] < SMALL for e in every):
            again = "again " * bool(len(last))
            told.setdefault(float(time[i]), []).insert(
                0,
                f"From t = {time[i]:.4g} on {it} {has} {percent(SMALL)} or more {again}"
                f"and {be} {_on(states[i, k], data)}.",
            )
    in_order = [line for when in sorted(told) for line in told[when]]
    lines += in_order[:EVENTS]
    if len(in_order) > EVENTS:
        rest = len(in_order) - EVENTS
        follow = f"{numbered(rest, 'more event', '1')} follow{'s' * (rest == 1)}"
        on, slide = (int((states[-1, k] == state).sum()) for state in (ON, SLIDING))
        lines.append(
            f"{follow}; at the end {it} {be} on for {numbered(on, 'sample', '1')} and "
            f"slide{s} for {slide}."
        )
    faint = len(every) - len(mine)
    if faint:
        left = f"{numbered(faint, 'event', '1')} {'is' if faint == 1 else 'are'} left out"
        lines.append(f"{left}: {it} {has} less than {percent(SMALL)} of the strength then.")
    return lines


def _on(states: Int[np.ndarray, " N"], data: Dataset) -> str:
    """Where a type is on, and where it slides."""
    slides = np.flatnonzero(states == SLIDING)
    sliding = f", sliding {where(slides, data)}" if len(slides) else ""
    return f"on {where(np.flatnonzero(states == ON), data)}{sliding}"


def _at_most(share: Float[np.ndarray, " T"], time: Float[np.ndarray, " T"]) -> str:
    peak = _peak(share)
    return f"at most {percent(share[peak])}, at t = {time[peak]:.4g}"


def story(
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, "T K"],
    states: Int[np.ndarray, "T K N"],
    events: tuple[Event, ...],
    data: Dataset,
) -> Iterator[Sentence]:
    """What happens from when neurons have aligned, type by type."""
    many = f" Then {'follows' if len(events) == 1 else 'follow'} "
    many += f"{numbered(len(events), 'event', '1')}; in brackets is the share of the strength."
    yield Sentence("begin", f"Neurons align until t = {time[0]:.4g}.{many * bool(events)}")
    told = strongest(states, shares)
    for group in told:
        lines = _sentences_of(group, time, shares, states, events, data)
        yield from (Sentence("type", line) for line in lines)
    rest = shares.shape[1] - sum(map(len, told))
    if rest:
        other = 1 - shares[:, [k for group in told for k in group]].sum(axis=1)
        who = "The other one has" if rest == 1 else f"The other {rest} together have"
        yield Sentence("others", f"{who} {100 * other[-1]:.1f} %.")


def _peak(share: Float[np.ndarray, " T"]) -> int:
    """The first moment at which a share is largest, up to rounding."""
    return int(np.argmax(share >= (1 - ROUNDING) * share.max()))
