"""What types of neurons do, told in sentences."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from neuralrace.dataset import Dataset
from neuralrace.reln.explained.types.sliding import OFF, ON, SLIDING
from neuralrace.reln.explained.types.timeline import Event, strongest
from neuralrace.reln.explained.words import in_a_row, where
from neuralrace.trajectory import Trajectory

EVENTS = 6
"""The number of events that are told of a type, the first ones."""

VERBS = {OFF: "switches off", ON: "switches on", SLIDING: "begins to slide"}
"""What a type does when it enters a state."""

VERBS_OF_SEVERAL = {OFF: "switch off", ON: "switch on", SLIDING: "begin to slide"}
"""The same for several types."""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _sentences_of(
    group: list[int],
    share: float,
    states: Int[np.ndarray, "T K N"],
    events: tuple[Event, ...],
    data: Dataset,
) -> list[str]:
    """What the types of a group do, told for the strongest of them."""
    k = group[0]
    first = states[0, k]
    several = len(group) > 1
    who = f"Types {in_a_row([str(each + 1) for each in group])}" if several else f"Type {k + 1}"
    mine = [event for event in events if event.type == k + 1]
    alike = " in all and do the same" if several else ""
    if several and mine:
        alike += f", each at its own times; those of type {k + 1} are told"
    begin = f"{who} {'have' if several else 'has'} {100 * share:.0f} % of the strength at the end"
    it, s = ("they", "") if several else ("it", "s")
    starts = where(np.flatnonzero(first == ON), data)
    slides = np.flatnonzero(first == SLIDING)
    line = f"{begin}{alike}. {it.capitalize()} start{s} on {starts}"
    lines = [f"{line}, sliding {where(slides, data)}." if len(slides) else f"{line}."]
    verbs = VERBS_OF_SEVERAL if several else VERBS
    lines += [
        f"  From t = {event.time:.4g} on, {it} {verbs[event.state]} {where(event.samples, data)}."
        for event in mine[:EVENTS]
    ]
    if len(mine) > EVENTS:
        rest = len(mine) - EVENTS
        follow = f"{_counted(rest, 'more event')} follow{'s' * (rest == 1)}"
        on, slide = (int((states[-1, k] == state).sum()) for state in (ON, SLIDING))
        verb = "are" if several else "is"
        lines.append(
            f"  {follow}; at the end {it} {verb} on for {_counted(on, 'sample')} and "
            f"slide{s} for {slide}."
        )
    return lines


def story(
    head: list[str],
    trajectory: Trajectory,
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, " K"],
    states: Int[np.ndarray, "T K N"],
    events: tuple[Event, ...],
    data: Dataset,
) -> str:
    """What happens, in sentences, after those of the `head`."""
    loss = trajectory.loss
    lines = [
        *head,
        f"Neurons align until t = {time[0]:.4g}. The loss falls from {loss[0]:.4g} to "
        f"{loss[-1]:.4g} at t = {time[-1]:.4g}, with {_counted(len(events), 'event')}.",
    ]
    told = strongest(states, shares)
    for group in told:
        lines += _sentences_of(group, float(shares[group].sum()), states, events, data)
    rest = len(shares) - sum(map(len, told))
    if rest:
        part = 100 * (1 - sum(shares[group].sum() for group in told))
        who = "The other one has" if rest == 1 else f"The other {rest} together have"
        lines.append(f"{who} {part:.1f} %.")
    return "\n".join(lines)
