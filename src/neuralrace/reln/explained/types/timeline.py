"""What types of neurons do over time, in states, events, sentences and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.dataset import Dataset
from neuralrace.plot import draw_curves, style
from neuralrace.reln.explained.types.sliding import OFF, ON, SLIDING
from neuralrace.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLIDES = 0.02
"""A gate that is on for a share of the steps between this and one minus this slides."""

TOLD = 6
"""The number of types whose story is told, and that are drawn."""

EVENTS = 6
"""The number of events that are told of a type, the first ones."""

VERBS = {OFF: "switches off", ON: "switches on", SLIDING: "begins to slide"}
"""What a type does when it enters a state."""


@final
@dataclass(frozen=True, eq=False)
class Event:
    """From `time` on, a type (counted from 1) has a new state on some samples (counted from 0)."""

    time: float
    type: int
    state: int
    samples: Int[np.ndarray, " n"]


def states_of(shares: Float[np.ndarray, "I K N"]) -> Int[np.ndarray, "I K N"]:
    """On, off or sliding in every interval, from the share of its steps on which a gate is on.

    A gate slides if its share is a fraction in two intervals in a row. A single fraction is a
    switch in the middle of an interval; it counts as what follows it.
    """
    between = (shares > SLIDES) & (shares < 1 - SLIDES)
    again = np.zeros_like(between)
    again[:-1] |= between[1:]
    again[1:] |= between[:-1]
    slides = between & again
    states = np.where(shares >= 0.5, ON, OFF)
    single = between & ~slides
    states[:-1] = np.where(single[:-1], states[1:], states[:-1])
    return np.where(slides, SLIDING, states)


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


def where(samples: Int[np.ndarray, " n"], data: Dataset) -> str:
    """A set of samples in words, by the labels of the data where these name it."""
    count = data.n_samples
    if len(samples) == count:
        return "for all samples"
    if not len(samples):
        return "for no sample"
    labels = {name: np.asarray(values) for name, values in data.labels.items()}
    labels = {name: values for name, values in labels.items() if values.ndim == 1}
    for name, values in labels.items():
        mine = np.unique(values[samples])
        if len(mine) < len(np.unique(values)) and np.isin(values, mine).sum() == len(samples):
            return f"for {name} {_several([str(v) for v in mine])}"
    if len(samples) == 1 and labels:
        n = int(samples[0])
        return "for " + " and ".join(f"{name} {values[n]}" for name, values in labels.items())
    if len(samples) <= 4:
        return f"for sample{'s' * (len(samples) > 1)} {_several([str(n + 1) for n in samples])}"
    return f"for {len(samples)} samples"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _several(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def story(
    trajectory: Trajectory,
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, " K"],
    states: Int[np.ndarray, "T K N"],
    events: tuple[Event, ...],
    symmetric: str,
    data: Dataset,
) -> str:
    """What happens, in sentences."""
    settings, loss = trajectory.settings, trajectory.loss
    count = len(shares)
    lines = [
        f"{count} type{'s' * (count > 1)} of neurons in place of {settings['width']}. {symmetric}",
        f"Neurons align until t = {time[0]:.4g}. The loss falls from {loss[0]:.4g} to "
        f"{loss[-1]:.4g} at t = {time[-1]:.4g}, with {_counted(len(events), 'event')}.",
    ]
    for k in range(min(count, TOLD)):
        first = states[0, k]
        lines.append(
            f"Type {k + 1} has {100 * shares[k]:.0f} % of the strength at the end. "
            f"It starts on {where(np.flatnonzero(first == ON), data)}."
        )
        mine = [event for event in events if event.type == k + 1]
        lines += [
            f"  From t = {event.time:.4g} on, it {VERBS[event.state]} {where(event.samples, data)}."
            for event in mine[:EVENTS]
        ]
        if len(mine) > EVENTS:
            rest = len(mine) - EVENTS
            follow = f"{_counted(rest, 'more event')} follow{'s' * (rest == 1)}"
            slides = int((states[-1, k] == SLIDING).sum())
            lines.append(
                f"  {follow}; at the end it is on for {int((states[-1, k] == ON).sum())} samples "
                f"and slides for {slides}."
            )
    if count > TOLD:
        lines.append(f"The other {count - TOLD} have {100 * shares[TOLD:].sum():.0f} % together.")
    return "\n".join(lines)


def draw_timeline(
    runs: tuple[Trajectory, Trajectory],
    time: Float[np.ndarray, " T"],
    shares: Float[np.ndarray, "T K"],
    gates: Float[np.ndarray, "T K N"],
    data: Dataset,
) -> Figure:
    """The loss, the shares of types, and the gates of every type on every sample, over time."""
    import matplotlib.pyplot as plt

    rows = min(gates.shape[1], TOLD)
    names = [f"type {k + 1}" for k in range(rows)]
    with style():
        figure, axes = plt.subplots(
            2 + rows, 1, figsize=(6.4, 3.4 + 0.9 * rows), sharex=True, squeeze=False,
            layout="constrained", height_ratios=[1.6, 1.6, *[1.0] * rows],
        )  # fmt: skip
        top, second, *strips = axes[:, 0]
        for run, label, line in zip(runs, ("types", "wide limit"), ("--", ":"), strict=True):
            top.plot(run.time[1:], run.loss[1:], line, label=label)
        top.set(ylabel="loss", ylim=(0, None))
        top.legend(loc="upper right")
        top.set_title("a  loss", loc="left")
        draw_curves(
            time,
            {name: shares[:, k] for k, name in enumerate(names)},
            kind="theory",
            ylabel="share",
            ax=second,
        )
        second.set(xlabel="", ylim=(0, None))
        second.set_title("b  share of the strength", loc="left")
        edges = np.append(time, time[-1] + (time[-1] - time[-2]))
        for k, strip in enumerate(strips):
            strip.pcolormesh(
                edges, np.arange(data.n_samples + 1), gates[:, k].T, vmin=0, vmax=1,
                cmap="Greys", rasterized=True,
            )  # fmt: skip
            strip.set(ylabel=f"{names[k]}\nsample", ylim=(data.n_samples, 0))
        strips[0].set_title("c  gates: black is on, white is off, grey slides", loc="left")
        strips[-1].set(xlabel="time", xscale="log", xlim=(time[0] / 2, time[-1]))
        for which in (strips[-1].xaxis.set_major_formatter, strips[-1].xaxis.set_minor_formatter):
            which(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "125" else "")
        image = strips[0].collections[0]
        figure.colorbar(image, ax=strips, label="gate", shrink=0.9, aspect=12 * rows)
    return figure
