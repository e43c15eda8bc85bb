"""What the figures on animals that learn share: settings, agents and task.

The talk shows the losses and the graph; no number of the model is at hand, and no data of animals.
Every number here is ours. They were chosen after a look at stationary points and 50 trial animals,
and before early and late strategies were compared. Nothing is fitted to animals.
"""

from __future__ import annotations

import neuralrace as nr
from papers.figure import Setting, Settings

OURS = "ours; the talk gives no number"

MODEL = {
    "contrasts": Setting((0.125, 0.25, 0.5, 1.0), "contrasts of the stimuli", OURS),
    "beta": Setting(10.0, "inverse temperature of the softmax policy", OURS),
    "decay": Setting(0.01, "decay of all weights, so that learned associations can rest", OURS),
}
"""Settings of the task and of the agents."""


def task_of(settings: Settings) -> nr.Dataset:
    """Stimuli of these contrasts on both sides, equally often."""
    return nr.behaviour.decision_task(settings["contrasts"])


def deep_of(settings: Settings) -> nr.behaviour.Agent:
    """The network of the talk, with its three teaching signals."""
    return nr.behaviour.deep_agent(
        policy=nr.behaviour.Softmax(settings["beta"]), decay=settings["decay"]
    )


def shallow_of(settings: Settings) -> nr.behaviour.Agent:
    """The same without its first layer."""
    return nr.behaviour.shallow_agent(
        policy=nr.behaviour.Softmax(settings["beta"]), decay=settings["decay"]
    )
