"""Numbers that several claims of MHS read, and sentences on what ReLU networks do instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from evidence import Measure, Read, Remark, Tables
from papers.mhs.claims.networks import (
    explained,
    gates_over_time,
    mixed_gating,
    own_network,
)
from papers.mhs.contextual import COMMON
from papers.mhs.fig4_measures import MEASURES

FULL = {"seeds": 5, "steps": 8000, "hidden": 700}
"""The sizes of measurements on the task of MHS §4: those of its Table 1, with five seeds."""

QUICK = {"seeds": 2, "steps": 800, "hidden": 80}
"""The same for `--quick`."""

JUDGED = "authors"
"""The rule for the widths that entries on the ReLN of MHS §4 are judged by: MHS Table 1."""

WIDTHS = {
    "authors": "100 neurons per pathway",
    "sign": "350 neurons and three times 116",
    "equal": "175 neurons per pathway",
    "half": "350 neurons per pathway",
}
"""The widths of the common and of the contextual pathways by each rule, for 700 ReLU neurons."""

AS_PRINTED = (
    "Pathways have 100 neurons, as MHS Table 1 says, and are trained together. Rows with other "
    "widths use three rules that know the width of the ReLU network alone "
    "(`papers.mhs.table`); none looks at a curve."
)
"""Which widths an entry on the ReLN of MHS §4 is judged by."""


def measured(function: Callable[..., Any], name: str) -> Read:
    """A number of a measurement on the task of MHS §4, one per seed."""
    return lambda tables: measurement(tables, function)[name]


def measurement(tables: Tables, function: Callable[..., Any]) -> Any:
    """All numbers of a measurement on the task of MHS §4."""
    return tables.once(function, **(QUICK if tables.quick else FULL))


@cache
def by_rule(name: str, otherwise: str = "", rule: str = JUDGED) -> Measure:
    """A measure of Fig. 4 with the widths of a rule."""
    measure = MEASURES[name]
    changes = {} if rule == COMMON["rule"].value else {"rule": rule}

    def read(tables: Tables) -> Any:
        return measure.read(tables("mhs/fig4", **changes))

    return replace(
        measure,
        id=f"{measure.id}-{rule}",
        what=f"{measure.what}; {WIDTHS[rule]}",
        read=read,
        otherwise=otherwise,
    )


def other_rules(name: str, otherwise: str) -> tuple[Measure, ...]:
    """Limits: a measure of Fig. 4 with the widths of each other rule.

    `[widths]` in the sentence stands for these widths.
    """
    said = lambda rule: otherwise.replace("[widths]", WIDTHS[rule])
    return tuple(by_rule(name, said(rule), rule) for rule in WIDTHS if rule != JUDGED)


def own_over_floor(of: str, floor: str) -> Read:
    """A distance of the authors' network over that of another seed, one number per seed."""

    def read(tables: Tables) -> np.ndarray:
        found = measurement(tables, own_network)
        return np.array(found[of]) / np.mean(found[floor])

    return read


OWN_LOSS = own_over_floor("loss", "floor")
"""How far the loss of the authors' network is from the ReLU network, over another seed."""

OWN_OUTPUTS = own_over_floor("outputs", "floor_outputs")
"""The same for its outputs."""


MIXTURE = "all-but-one, a seventh of whose width goes to six pathways off on half a context"
"""The contextual pathways of the mixed gating, in words."""

MIXED = measured(mixed_gating, JUDGED)
"""The distance of the mixed gating over that of common + all-but-one, widths of MHS Table 1."""


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
