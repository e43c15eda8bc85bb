"""Numbers that several claims of MHS read, and sentences on what ReLU networks do instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neuralrace.papers.claims import Measure, Read, Remark, Tables
from neuralrace.papers.claims.mhs.networks import explained, gates_over_time
from neuralrace.papers.mhs import fig4

FULL = {"seeds": 5, "steps": 8000, "hidden": 700}
"""The sizes of measurements on the task of MHS §4: those of its Table 1, with five seeds."""

QUICK = {"seeds": 2, "steps": 800, "hidden": 80}
"""The same for `--quick`."""

DEFAULT = "sign"
"""The rule for the widths with which Fig. 4 is drawn."""


def measured(function: Callable[..., Any], name: str) -> Read:
    """A number of a measurement on the task of MHS §4, one per seed."""
    return lambda tables: measurement(tables, function)[name]


def measurement(tables: Tables, function: Callable[..., Any]) -> Any:
    """All numbers of a measurement on the task of MHS §4."""
    return tables.once(function, **(QUICK if tables.quick else FULL))


def best(name: str, otherwise: str = "") -> Measure:
    """A measure of Fig. 4 with the rule for the widths of pathways that comes nearest.

    Each rule uses the width of the ReLU network alone. Taking the best of four favours the paper,
    which gives none that fits its text (see the errata).
    """
    measure = fig4.MEASURES[name]

    def read(tables: Tables) -> Any:
        rules = fig4.SETTINGS["rule"].choices
        each = [measure.read(tables("mhs/fig4", **_rule(rule))) for rule in rules]
        return min(each, key=np.mean)

    what = f"{measure.what}; nearest of four rules for the widths"
    return replace(measure, what=what, read=read, otherwise=otherwise)


def _rule(name: str) -> dict[str, str]:
    return {} if name == DEFAULT else {"rule": name}


def over(name: str, other: str) -> Read:
    """The mean of one number of `explained` over that of another."""

    def read(tables: Tables) -> float:
        found = measurement(tables, explained)
        return float(np.mean(found[name]) / np.mean(found[other]))

    return read


KEPT = Remark(
    "If a ReLU network had the weights that common + all-but-one learns, it would keep {:.0%} of "
    "these gates; 90 % counts as kept (`nr.reln.consistency`).",
    (measured(explained, "kept"),),
)
"""Consistency: whether a ReLU network would keep the gating of MHS §4."""

SLIDING = Remark(
    "At epoch 3000, {:.0%} of the weight is in neurons that are held at the boundary of some "
    "sample, pushed back from both sides. Their gates are fractions, neither on nor off "
    "(`nr.reln.sliding_gates`).",
    (measured(explained, "sliding"),),
)
"""Sliding gates."""

TYPES = Remark(
    "For comparison, the wide limit of neuron types (`nr.reln.types`), in which each neuron makes "
    "its own gates, knows the task, the width and the initial scale alone. It is {:.1f} times as "
    "far from the ReLU network as another seed in loss, and {:.1f} times in outputs.",
    (over("wide", "floor"), over("wide_outputs", "floor_outputs")),
)
"""Types."""

ITEMS = Remark(
    "At the end of training, {:.0%} of the weight is on for some but not all items of some "
    "context; {:.1%} depends on the context alone.",
    (measured(gates_over_time, "part"), measured(gates_over_time, "exact")),
)
"""Gates depend on items too."""
