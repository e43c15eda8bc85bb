"""Sections of a study that say how a question is answered, or what is varied."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from neuralrace.study.document import LIMITS
from neuralrace.study.sections import (
    Limit,
    Names,
    Numbers,
    Rule,
    Section,
    as_tuple,
    flat,
)
from neuralrace.tolerances import CROSSOVER, EXACT


class ContestOptions(Section):
    """Options of nr.contest, also for the phase diagram."""

    criterion: PositiveFloat | None = Field(
        default=None, description="the loss that counts as learned; 0.2 by default", examples=[0.2]
    )
    relative: bool = Field(
        default=False, description="whether the criterion is a share of the loss of answering zero"
    )
    start: Annotated[PositiveFloat | None, Limit(LIMITS["start"], "the start")] = Field(
        default=None,
        description="equal aligned starts, in place of random weights",
        examples=[0.01],
    )
    longest: Annotated[PositiveFloat, Limit(LIMITS["longest"], "the longest time")] = Field(
        default=1e5,
        description="how long a race is followed, in units of one over its largest strength",
    )
    tolerance: PositiveFloat | None = Field(
        default=None, description="couplings below it are dropped", examples=[1e-8]
    )
    width: Annotated[PositiveInt | None, Limit(LIMITS["width"], "the number of neurons")] = Field(
        default=None, description="neurons of the reference; those of the network by default"
    )
    check: bool = Field(
        default=True, description="whether to ask if a ReLU network would keep the gates (seconds)"
    )

    def rules(self) -> list[Rule]:
        return [
            Rule(
                not self.relative or (self.criterion or 0) < 1,
                "criterion",
                "a relative criterion is a share of the loss of answering zero",
                f"criterion = {self.criterion}, relative = true",
                "a share below 1",
                "for example criterion = 0.5; or leave out relative",
            )
        ]


class PredictOptions(Section):
    """Which gating `predict` and `certify` follow."""

    gating: str | None = Field(
        default=None,
        description="a gating; the winner of the contest by default",
        examples=["linear"],
    )


class ReluOptions(Section):
    """Options of nr.predict, for what a ReLU network will do."""

    networks: Annotated[NonNegativeInt, Limit(100, "the number of simulated networks")] = Field(
        default=19, description="how many networks of the width are simulated for the interval"
    )
    neurons: Annotated[PositiveInt, Limit(5000, "the number of neurons")] = Field(
        default=2000, description="how many neurons the wide limit follows"
    )
    types: bool = Field(
        default=True, description="whether to look for types of neurons too, where these form"
    )


class DiscoverOptions(Section):
    """Options of nr.reln.discover."""

    pathways: Annotated[PositiveInt | Literal["elbow"], Limit(16, "the number of pathways")] = (
        Field(default="elbow", description="how many pathways, or 'elbow'", examples=[4])
    )
    most: Annotated[PositiveInt, Limit(12, "the number of pathways")] = Field(
        default=6, description="the most pathways that are tried"
    )
    weighted: bool = Field(default=True, description="whether neurons count by their strength")
    rounded: bool = Field(default=True, description="whether gates are rounded to 0 and 1")
    boundary: NonNegativeFloat = Field(default=0.0, description="how near to zero counts as off")
    networks: PositiveInt | None = Field(
        default=None, description="how many of the trained networks to look at; all by default"
    )


class ReduceOptions(Section):
    """Options of nr.reduce."""

    tolerance: PositiveFloat = Field(default=EXACT, description="couplings below it are dropped")


class ModesOptions(Section):
    """Options of `modes`, the distinctions that are learned."""

    seeds: NonNegativeInt = Field(
        default=10, description="how many random starts say which neighbours in the order are ties"
    )
    items: str | None = Field(
        default=None,
        description="the label that names the items; the first one of text by default",
        examples=["object"],
    )
    least: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=1 / 3, description="items smaller than this part of the largest are not named"
    )


class TypesOptions(Section):
    """Options of nr.reln.types."""

    types: Annotated[PositiveInt, Limit(32, "the number of types")] = Field(
        default=8, description="how many types of neurons"
    )
    neurons: Annotated[PositiveInt, Limit(5000, "the number of neurons")] = Field(
        default=2000, description="how many neurons the wide limit follows"
    )


class ExplainOptions(Section):
    """Options of nr.explain."""

    rows: Names = Field(
        default=("gatings", "discovered", "aligned", "staged", "types", "narrow"),
        description="which explanations to make",
        examples=[["gatings", "aligned", "narrow"]],
    )
    types: Annotated[PositiveInt, Limit(32, "the number of types")] = Field(
        default=8, description="how many types, and neurons of the narrow network"
    )
    stages: Annotated[PositiveInt, Limit(128, "the number of stages")] = Field(
        default=64, description="how many stages"
    )
    most: Annotated[PositiveInt, Limit(12, "the number of pathways")] = Field(
        default=6, description="the most pathways that are tried"
    )
    neurons: Annotated[PositiveInt, Limit(5000, "the number of neurons")] = Field(
        default=2000, description="how many neurons the wide limit follows"
    )


class Spread(Section):
    """Evenly spaced values."""

    start: float = Field(description="the first value", examples=[0.0])
    stop: float = Field(description="the last value", examples=[2.0])
    count: Annotated[int, Field(ge=2)] = Field(description="how many values", examples=[21])
    log: bool = Field(
        default=False, description="whether they are evenly spaced in their logarithm"
    )

    def points(self) -> list[float]:
        """The values.

        ```python
        >>> from neuralrace.study.options import Spread
        >>> Spread(start=0.0, stop=2.0, count=5).points()
        [0.0, 0.5, 1.0, 1.5, 2.0]

        ```
        """
        spaced = np.geomspace if self.log else np.linspace
        points = spaced(self.start, self.stop, self.count)
        return (points if self.log else points.round(12)).tolist()

    def rules(self) -> list[Rule]:
        increase = self.start < self.stop
        return [
            Rule(
                increase and not (self.log and self.start <= 0),
                "",
                "no logarithm" if increase else "these values do not increase",
                f"start = {self.start:g}, stop = {self.stop:g}",
                "start below stop" + (", both positive" if self.log else ""),
                "leave out log" if increase else "exchange them",
            )
        ]


Values: TypeAlias = Annotated[tuple[float | int | str | bool, ...], BeforeValidator(as_tuple)]


class PhaseOptions(Section):
    """A contest over a number of the study, and ReLU networks trained beside it."""

    key: str = Field(
        description="the dotted key that is varied", examples=["task.parameters.delta"]
    )
    values: Spread | Numbers = Field(
        description="increasing values, or {start, stop, count}", examples=[[0.0, 1.0, 2.0]]
    )
    name: str | None = Field(
        default=None, description="how the number is called on the page", examples=["Δ"]
    )
    networks: Annotated[NonNegativeInt, Limit(LIMITS["seeds"], "the number of networks")] = Field(
        default=0,
        description="how many ReLU networks to train at each of networks_at",
        examples=[3],
    )
    networks_at: Numbers | None = Field(
        default=None,
        description="values with trained networks; all by default",
        examples=[[0.4, 1.2]],
    )
    precision: PositiveFloat = Field(
        default=CROSSOVER, description="of a crossover, as a share of the range"
    )

    @property
    def points(self) -> list[float]:
        """The values."""
        return list(self.values) if isinstance(self.values, tuple) else self.values.points()

    @property
    def trained_at(self) -> list[float]:
        """The values with trained networks."""
        return list(self.networks_at or self.points)

    @property
    def called(self) -> str:
        """What the number is called."""
        return self.name or self.key.rpartition(".")[2]

    def rules(self) -> list[Rule]:
        if isinstance(self.values, Spread) and [*self.values.broken()]:
            return []  # which says so itself
        points = self.points
        odd = sorted({*(self.networks_at or ())} - {*points})
        return [
            Rule(
                len(points) > 1 and all(a < b for a, b in pairwise(points)),
                "values",
                "the values must increase",
                f"{points[:6]}",
                "two or more increasing numbers",
                "sort them, and leave out what stands twice",
            ),
            Rule(
                self.key.split(".")[0] in ("task", "gatings"),
                "key",
                "a phase diagram varies the task or its gatings",
                self.key,
                "a key of task or gatings",
                "for example task.parameters.delta; [sweep] varies any key",
            ),
            Rule(
                not odd,
                "networks_at",
                "networks are trained at some of the values",
                f"{odd[:4]}",
                "values of the phase diagram",
                "add them to values, or leave them out",
            ),
        ]


FIXED = ("sweep", "phase_diagram", "quick", "questions", "title", "about")
"""Sections and keys that a sweep does not vary."""

MOST = 1_000_000
"""Cells of a sweep. More would be a slip of the pen."""


class Sweep(Section):
    """The questions at every combination of values, with seeds."""

    over: Annotated[dict[str, Spread | Values], BeforeValidator(flat)] = Field(
        description="dotted keys and their values",
        examples=[{"task.parameters.delta": [0.4, 1.2]}],
    )
    seeds: PositiveInt = Field(default=1, description="repetitions of every combination")
    batch: PositiveInt = Field(default=16, description="cells that are computed together")

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The keys that are varied, with their values."""
        return {k: list(v) if isinstance(v, tuple) else v.points() for k, v in self.over.items()}

    def rules(self) -> list[Rule]:
        cells = self.seeds * prod(len(v) if isinstance(v, tuple) else v.count
                                  for v in self.over.values())  # fmt: skip
        return [
            *(
                Rule(
                    values != (),
                    f"over.{key}",
                    "there are no values",
                    "[]",
                    "at least one",
                    "list some values",
                )
                for key, values in self.over.items()
            ),
            *(
                Rule(
                    key.split(".")[0] not in FIXED and key != "training.seeds",
                    f"over.{key}",
                    "this key cannot be varied",
                    key,
                    "a key of task, network, gatings, training or contest",
                    "set sweep.seeds" if key == "training.seeds" else "try task.parameters.delta",
                )
                for key in self.over
            ),
            Rule(
                self.over or self.seeds > 1,
                "over",
                "the sweep varies nothing",
                "no keys, and one seed",
                "at least one dotted key with values, or several seeds",
                'for example "task.parameters.delta" = [0.4, 1.2]',
            ),
            Rule(
                cells <= MOST,
                "over",
                "the sweep has too many cells",
                f"{cells} cells",
                f"at most {MOST}",
                "take fewer values, or split the study",
            ),
        ]
