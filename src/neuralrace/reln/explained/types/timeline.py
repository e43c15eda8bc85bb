"""What types of neurons do over time, in states, events, sentences and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.dataset import Dataset
from neuralrace.plot import COLOURS, draw_curves, letter_panels, style
from neuralrace.reln.explained.types.sliding import OFF, ON, SLIDING
from neuralrace.reln.naming import in_groups
from neuralrace.tolerances import BRIEF, FAINT, SLIDES
from neuralrace.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNKNOWN = -1
"""The state before the first interval."""


@final
@dataclass(frozen=True, eq=False)
class Event:
    """From `time` on, a type (counted from 1) has a new state on some samples (counted from 0).

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.types(nr.tasks.xor(), width=128, scale=2e-5, learning_rate=0.1,
    ...                       steps=600, types=2)
    >>> event = found.events[0]  # a type begins to slide where it is at the boundary
    >>> event.state, len(event.samples)
    (2, 2)
    >>> set(found.states[-1, event.type - 1, event.samples].tolist())  # and still does at the end
    {2}

    ```
    """

    time: float
    type: int
    state: int
    samples: Int[np.ndarray, " n"]


def states_of(shares: Float[np.ndarray, "I K N"]) -> Int[np.ndarray, "I K N"]:
    """On, off or sliding in every interval, from the share of its steps on which a gate is on.

    A gate slides if its share is a fraction. A single fraction between on and off is a switch in
    the middle of an interval, and so may one be in the first or last interval, beyond which nothing
    is known: it counts as what follows it, in the last interval as what it is for longer.
    """
    between = (shares > SLIDES) & (shares < 1 - SLIDES)
    longer = np.where(shares >= 0.5, ON, OFF)
    states = np.where(between, SLIDING, longer)
    before = np.concatenate([np.full_like(states[:1], UNKNOWN), states[:-1]])
    after = np.concatenate([states[1:], longer[-1:]])
    single = between & (before != SLIDING) & (after != SLIDING) & (before != after)
    last = np.zeros_like(between)
    last[-1] = between[-1] & (before[-1] != SLIDING)
    return np.where(single | last, after, states)


def without_chatter(
    time: Float[np.ndarray, " T"], states: Int[np.ndarray, "T K N"]
) -> Int[np.ndarray, "T K N"]:
    """The states in which a gate stays for a while; see `BRIEF`.

    Brief states that follow each other are one stretch. A stretch that is long as a whole is a
    gate that goes back and forth, which is to slide. A brief stretch counts as what follows it, and
    as its own last state at the end.
    """
    found = states.copy()
    flat = found.reshape(len(time), -1)
    for i in np.flatnonzero((flat[1:] != flat[:-1]).any(axis=0)):
        flat[:, i] = _settled(time, flat[:, i])
    return found


def _settled(time: Float[np.ndarray, " T"], states: Int[np.ndarray, " T"]) -> np.ndarray:
    """`without_chatter` for one gate."""
    starts = np.flatnonzero(np.append(True, states[1:] != states[:-1]))
    ends = np.append(starts[1:], len(time) - 1)
    lasts = time[ends] >= BRIEF * time[starts]
    found = states.copy()
    i = 0
    while i < len(starts):
        if lasts[i]:
            i += 1
            continue
        j = i
        while j < len(starts) and not lasts[j]:
            j += 1
        begin, end = starts[i], starts[j] if j < len(starts) else len(time)
        if time[end - 1] >= BRIEF * time[begin]:
            found[begin:end] = SLIDING
        else:
            found[begin:end] = states[min(end, len(time) - 1)]
        i = j
    return found


def events_of(time: Float[np.ndarray, " T"], states: Int[np.ndarray, "T K N"]) -> tuple[Event, ...]:
    """Every change of state, those of one type at one time to one state together."""
    found = []
    for i, k in np.argwhere((states[1:] != states[:-1]).any(axis=2)):
        before, after = states[i, k], states[i + 1, k]
        for state in (OFF, ON, SLIDING):
            samples = np.flatnonzero((before != after) & (after == state))
            if len(samples):
                found.append(Event(float(time[i + 1]), int(k) + 1, state, samples))
    return tuple(found)


def together(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Events of one type and kind that follow each other briefly, as one at the first time."""
    found: list[Event] = []
    for event in events:
        same = (e for e in found if (e.type, e.state) == (event.type, event.state))
        last = next((e for e in same if event.time < BRIEF * e.time), None)
        if last is None:
            found.append(event)
        else:
            every = np.union1d(last.samples, event.samples)
            found[found.index(last)] = Event(last.time, last.type, last.state, every)
    return tuple(found)


def strongest(
    states: Int[np.ndarray, "T K N"], shares: Float[np.ndarray, "T K"]
) -> list[list[int]]:
    """The groups of types to be told and drawn, the one with the largest share at the end first.

    They are those whose share is the largest at any moment: one that carries half of the strength
    for a while and loses it later is among them.
    Types of a group do the same: they go through the same states in the same order on every
    sample, if not at the same times.
    """
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for k in range(states.shape[1]):
        columns = states[:, k].T
        changes = [np.append(True, column[1:] != column[:-1]) for column in columns]
        orders = [column[new] for column, new in zip(columns, changes, strict=True)]
        groups.setdefault(tuple(o.tobytes() for o in orders), []).append(k)
    over_time = lambda group: shares[:, group].sum(axis=1)
    every = sorted(groups.values(), key=lambda group: -over_time(group).max())
    # the others are omitted
    told = every[:1] + [group for group in every[1:6] if over_time(group).max() >= FAINT]
    return sorted(told, key=lambda group: -over_time(group)[-1])


def _name(group: list[int]) -> str:
    """A short name of a group of types, counted from 1."""
    first = [str(k + 1) for k in sorted(group)]
    if len(first) == 1:
        return f"type {first[0]}"
    return f"types {', '.join(first)}" if len(first) <= 3 else f"{len(first)} types"


def _name_rows(ax: Axes, groups: dict[str, int], count: int) -> None:
    """Names of groups of rows, and lines between them; numbers where there are no groups."""
    ax.set_ylabel("sample")
    if not groups:
        ax.set_yticks([0.5, count - 0.5], ["1", str(count)])
        return
    sizes = np.array(list(groups.values()))
    ends = np.cumsum(sizes)
    ax.set_yticks(ends - sizes / 2, list(groups), fontsize=6)
    ax.tick_params(axis="y", length=0)
    for end in ends[:-1]:
        ax.axhline(end, color=COLOURS["neutral"], linewidth=0.9)


def draw_shares(
    ax: Axes,
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, "T K"],
    states: Int[np.ndarray, "T K N"],
) -> Axes:
    """The shares of types over time; those that do the same are drawn as one."""
    groups = strongest(states, shares)
    shown = {_name(group): shares[:, group].sum(axis=1) for group in groups}
    draw_curves(time, shown, kind="theory", ylabel="share of the strength", ax=ax)
    ax.set(ylim=(0, None), xscale="log", xlim=(time[0], time[-1]))
    named = "125" if time[-1] > 20 * time[0] else "1234568"
    for which in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        which(lambda value, _: f"{value:g}" if f"{value:e}"[0] in named else "")
    return ax


def draw_timeline(
    runs: tuple[Trajectory, Trajectory],
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, "T K"],
    states: Int[np.ndarray, "T K N"],
    gates: Float[np.ndarray, "T K N"],
    data: Dataset,
) -> Figure:
    """The loss, the shares of types, and the gates of every type on every sample, over time.

    It begins where neurons have formed types. Types that do the same are drawn as one, with the
    gates of the strongest.
    """
    import matplotlib.pyplot as plt

    groups = strongest(states, shares)
    names = [_name(group) for group in groups]
    rows = len(groups)
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    with style():
        figure, axes = plt.subplots(
            2 + rows, 1, figsize=(7.2, 3.4 + 0.9 * rows), sharex=True, squeeze=False,
            layout="constrained", height_ratios=[1.6, 1.6, *[1.0] * rows],
        )  # fmt: skip
        top, second, *strips = axes[:, 0]
        both = dict(zip(("types", "wide limit"), runs, strict=True))
        times = {name: run.time[1:] for name, run in both.items()}
        losses = {name: run.loss[1:] for name, run in both.items()}
        draw_curves(times, losses, kind="theory", xlabel="", ax=top)
        top.set(ylim=(0, None), title="loss")
        top.legend(**beside)
        draw_shares(second, time, shares, states)
        second.set(title="share of the strength", xlabel="", ylabel="share")
        second.legend(**beside)
        edges = np.append(time, time[-1] + (time[-1] - time[-2]))
        order, groups_of_rows = in_groups(data)
        for name, group, strip in zip(names, groups, strips, strict=True):
            strip.pcolormesh(
                edges, np.arange(data.n_samples + 1), gates[:, group[0]].T[order], vmin=0, vmax=1,
                cmap="Greys", rasterized=True,
            )  # fmt: skip
            strip.set(ylim=(data.n_samples, 0), title=f"gates of {name}")
            _name_rows(strip, groups_of_rows, data.n_samples)
        strips[0].set_title(f"gates of {names[0]}: black is on, white is off, grey slides")
        strips[-1].set_xlabel("time")
        image = strips[0].collections[0]
        figure.colorbar(image, ax=strips, label="gate", shrink=0.9, aspect=12 * rows)
        letter_panels(figure)
    return figure
