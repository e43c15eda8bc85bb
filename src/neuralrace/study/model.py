"""What may stand in a study: every section and every key, with its kind, default and meaning.

This module imports pydantic, which comes with the extra `study`; others import it where they need
it. A section also has the rules that its keys must follow together, and the largest values that the
explorer takes on, in the annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from neuralrace.errors import spelled
from neuralrace.study.limits import LIMITS
from neuralrace.study.places import Place, StudyError
from neuralrace.study.questions import QUESTIONS
from neuralrace.text import dotted

if TYPE_CHECKING:
    Question: TypeAlias = str
else:
    Question = Literal[tuple(QUESTIONS)]


# ---- kinds of values ----------------------------------------------------------------------------


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _one_or_more(value: Any) -> Any:
    return _as_tuple(value) if isinstance(value, list | tuple) else (value,)


def _columns(value: Any) -> Any:
    """A list of columns is one node, whose name is filled in by the reader: ''."""
    if isinstance(value, str):
        return {"": (value,)}
    if isinstance(value, list | tuple):
        return {"": tuple(value)}
    if isinstance(value, dict):
        return {node: _one_or_more(names) for node, names in value.items()}
    return value


def _ends(value: Any) -> Any:
    return {k: _as_tuple(v) for k, v in value.items()} if isinstance(value, dict) else value


def _flat(value: Any) -> Any:
    """Tables in tables as dotted keys: `task.steps = 1` and `"task.steps" = 1` mean the same."""
    spread = ("start", "stop", "count")
    return dict(dotted(value, leaves=spread)) if isinstance(value, dict) else value


_NAMES = {"type": "array", "items": {"type": "string"}}

Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Columns: TypeAlias = Annotated[
    dict[str, tuple[str, ...]],
    BeforeValidator(_columns),
    WithJsonSchema({"anyOf": [_NAMES, {"type": "object", "additionalProperties": _NAMES}]}),
]
Widths: TypeAlias = Annotated[
    tuple[PositiveInt, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema(
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
    ),
]
Numbers: TypeAlias = Annotated[tuple[float, ...], BeforeValidator(_as_tuple)]
Ends: TypeAlias = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_ends)]
Mask: TypeAlias = (
    str | Annotated[tuple[Literal[0, 1], ...], BeforeValidator(_as_tuple), Field(min_length=1)]
)
Edges: TypeAlias = Annotated[dict[str, tuple[str, str]], BeforeValidator(_ends)]


class Limit(NamedTuple):
    """The largest value that the explorer takes on, or of several values, or `entries` of them."""

    most: float
    what: str
    entries: bool = False


class Rule(NamedTuple):
    """What must hold of a section; where it does not, `key` of the section is at fault.

    A rule of one `question` leaves that out of the study; one of none ends it.
    """

    holds: object
    key: str
    problem: str
    got: object
    wanted: str
    fix: str
    question: str = ""

    def error(self, place: Place) -> StudyError:
        """The error of a study that breaks it."""
        at = Place(place.file, self.key)
        return at.error(self.problem, got=self.got, wanted=self.wanted, fix=self.fix)


class Section(BaseModel):
    """A table of a study: strict about kinds, closed to unknown keys, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    def rules(self) -> list[Rule]:
        """What its keys must follow together."""
        return []

    def given(self, *names: str) -> list[str]:
        """Those of these keys that have a value."""
        return [name for name in names if getattr(self, name) is not None]

    def exactly_one(self, ways: Sequence[str], example: str) -> Rule:
        """One of these keys is given, and no other."""
        there = self.given(*ways)
        return Rule(
            len(there) == 1,
            "",
            "several of these keys are given" if there else "one of these keys is needed",
            ", ".join(there) or "none of them",
            f"exactly one of {', '.join(ways)}",
            f"keep one of {', '.join(there)}" if there else f"for example {example}",
        )

    def only_with(self, ways: Sequence[str], *keys: str) -> list[Rule]:
        """These keys are written down only beside one of those ways."""
        meant = len(self.given(*ways)) > 0
        return [
            Rule(
                meant or key not in self.model_fields_set,
                key,
                "this key has no meaning here",
                f"{key} = {getattr(self, key)!r:.60}",
                f"{' or '.join(f'`{way}`' for way in ways)} with it",
                f"leave out {key}",
            )
            for key in keys
        ]


def sections(table: Any, at: str = "") -> Iterator[tuple[str, Section]]:
    """Every table of a study with what stands before its keys, the inner ones first."""
    is_section = isinstance(table, Section)
    for name, inner in table if is_section else table.items():
        if isinstance(inner, Section | dict):
            yield from sections(inner, f"{at}{name}.")
    if is_section:
        yield at, table


class Task(Section):
    """What is to be learned: exactly one of `builtin`, `file` and `python`."""

    builtin: str | None = Field(
        default=None, description="a function of nr.tasks", examples=["extended_xor"]
    )
    file: str | None = Field(
        default=None,
        description="a table: .csv, .npz or .nc, beside the study",
        examples=["my.csv"],
    )
    python: str | None = Field(
        default=None,
        description="module:function, which returns a Dataset; the module may lie beside the study",
        examples=["my_task:make"],
    )
    parameters: dict[str, Any] = Field(
        default={}, description="arguments of the function", examples=[{"delta": 0.4}]
    )
    x: Columns = Field(
        default={},
        description="columns of the file that are inputs, or {node = columns}",
        examples=[["a"]],
    )
    y: Columns = Field(
        default={},
        description="columns of the file that are targets, or {node = columns}",
        examples=[["c"]],
    )
    labels: Names = Field(
        default=(), description="columns that say what a sample is", examples=[["context"]]
    )
    weight: str | None = Field(
        default=None, description="the column of sample weights", examples=["weight"]
    )
    standardise: bool = Field(
        default=False,
        description="shift and scale input columns to mean 0, deviation 1, not codes of −1, 0, 1",
    )
    scale: dict[str, float] = Field(
        default={},
        description="factors of columns of x and y, after `standardise`: scale.a = 2 doubles a",
        examples=[{"side": 0.5}],
    )
    groups: dict[str, Names] = Field(
        default={},
        description="names for several columns that `scale` multiplies at once",
        examples=[{"cue": ["rule1", "rule2"]}],
    )

    def rules(self) -> list[Rule]:
        one = self.exactly_one(("builtin", "file", "python"), 'builtin = "extended_xor"')
        shown, wanted = ([n for names in end.values() for n in names] for end in (self.x, self.y))
        both = [name for name in shown if name in wanted]
        twice = Rule(
            not both,
            "x",
            "a column is an input and a target",
            ", ".join(both),
            "each column in x or in y",
            "leave it out of one of them; masks may name any column",
        )
        columns = ("x", "y", "labels", "weight", "standardise", "scale", "groups")
        rules = self.only_with(("builtin", "python"), "parameters")
        rules += self.only_with(("file",), *columns)
        return [one, *rules, twice] if one.holds else [one]


class Graph(Section):
    """A graph of layers; sizes of inputs and outputs are those of the task."""

    sizes: Annotated[
        dict[str, PositiveInt],
        Limit(LIMITS["nodes"], "hidden nodes", entries=True),
        Limit(LIMITS["width"], "the width of a hidden node"),
    ] = Field(description="neurons of every hidden node", examples=[{"h": 64}])
    edges: Annotated[Edges, Limit(LIMITS["edges"], "edges", entries=True)] = Field(
        description="source and target of every edge", examples=[{"W1": ["x", "h"]}]
    )


class Network(Section):
    """The network that is trained and predicted."""

    widths: Annotated[
        Widths,
        Limit(LIMITS["layers"], "hidden layers", entries=True),
        Limit(LIMITS["width"], "the width of a hidden layer"),
    ] = Field(default=(100,), description="neurons of the hidden layers", examples=[128, [64, 64]])
    depth: Annotated[PositiveInt | None, Limit(LIMITS["layers"], "the number of hidden layers")] = (
        Field(default=None, description="how many hidden layers, all of one width", examples=[2])
    )
    leak: NonNegativeFloat = Field(
        default=0.0, description="the slope of a ReLU neuron that is off", examples=[0.1]
    )
    bias: bool = Field(default=False, description="whether ReLU neurons and outputs have a bias")
    scale: Annotated[PositiveFloat, Limit(LIMITS["start"], "the standard deviation")] = Field(
        default=1e-3,
        description="the standard deviation of initial weights; 1 by default for kind = 'torch'",
        examples=[1e-3],
    )
    kind: Literal["gaussian", "xavier", "orthogonal", "torch"] = Field(
        default="gaussian",
        description="the kind of initial weights; 'torch' is PyTorch's own start",
    )
    graph: Graph | None = Field(default=None, description="a graph of your own, in place of widths")

    @property
    def layers(self) -> int:
        """How many hidden layers there are in a row."""
        return len(self.widths) * (self.depth or 1)

    @model_validator(mode="before")
    @classmethod
    def _as_torch(cls, keys: Any) -> Any:
        """PyTorch's own start is one of scale 1."""
        own = isinstance(keys, Mapping) and keys.get("kind") == "torch"
        return {"scale": 1.0, **keys} if own else keys

    def rules(self) -> list[Rule]:
        return [
            Rule(
                self.depth is None or len(self.widths) <= 1,
                "depth",
                "there are as many layers as widths",
                f"depth = {self.depth}, widths = {list(self.widths)}",
                "one width with a depth, or a list of widths",
                "leave out depth",
            ),
            Rule(
                self.widths,
                "widths",
                "the network has no hidden layer",
                "widths = []",
                "at least one width",
                "for example widths = 128",
            ),
            *(
                Rule(
                    self.graph is None or key not in self.model_fields_set,
                    key,
                    "a graph has its own sizes",
                    f"{key} and graph",
                    "one of them",
                    f"leave out {key}, or the graph",
                )
                for key in ("widths", "depth")
            ),
        ]


MASKED = ("masks", "each", "file")
"""Ways to say for each pathway where it is on."""


class Gating(Section):
    """Which pathway is on for which sample: exactly one of the first six keys."""

    masks: Annotated[
        dict[str, Mask] | None, Limit(LIMITS["pathways"], "pathways", entries=True)
    ] = Field(
        default=None,
        description="an expression on labels for every pathway, 'always' for all samples, or a "
        "list with 0 or 1 for every sample",
        examples=[{"one": "context == 1"}],
    )
    each: str | None = Field(
        default=None,
        description="one pathway for every value of this label, or 'sample' for each sample",
        examples=["context"],
    )
    file: str | None = Field(
        default=None,
        description="masks: .csv or .npz with one column per pathway",
        examples=["masks.csv"],
    )
    builtin: str | None = Field(
        default=None, description="a gating of nr.tasks", examples=["xor_pathways"]
    )
    gates: Annotated[dict[str, Mask] | None, Limit(LIMITS["nodes"], "gates", entries=True)] = Field(
        default=None,
        description="an expression, or a list, for nodes and edges of [network.graph]",
        examples=[{"h": "context == 1"}],
    )
    python: str | None = Field(
        default=None,
        description="module:function of the dataset, which returns (arch, data)",
        examples=["my_task:gating"],
    )
    parameters: dict[str, Any] = Field(
        default={}, description="arguments of `builtin` or `python`", examples=[{"total": 128}]
    )
    hidden: Annotated[
        PositiveInt | dict[str, PositiveInt] | None,
        Limit(LIMITS["width"], "the width of a pathway"),
    ] = Field(
        default=None,
        description="neurons of each pathway; the first hidden layer is divided equally by default",
        examples=[64, {"common": 64, "one": 32}],
    )
    inputs: Ends = Field(
        default={},
        description="input nodes of pathways that do not read all",
        examples=[{"one": ["x"]}],
    )
    outputs: Ends = Field(
        default={},
        description="output nodes of pathways that do not write all",
        examples=[{"one": ["y"]}],
    )

    @property
    def is_masked(self) -> bool:
        """Whether it says for each pathway where that is on."""
        return bool(self.given(*MASKED))

    def rules(self) -> list[Rule]:
        ways = ("masks", "each", "file", "builtin", "gates", "python")
        one = self.exactly_one(ways, 'masks = { one = "context == 1" }')
        called = self.only_with(("builtin", "python"), "parameters")
        masked = self.only_with(MASKED, "hidden", "inputs", "outputs")
        return [one, *called, *masked] if one.holds else [one]


class Optimizer(BaseModel):
    """An optimizer of optax by its name; all other keys are its arguments."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)
    name: str = Field(description="a function of optax", examples=["adam"])


class Training(Section):
    """How networks are trained: the options of nr.train, and how many seeds."""

    learning_rate: PositiveFloat | None = Field(
        default=None, description="the step of gradient descent; 0.1 by default", examples=[0.1]
    )
    optimizer: Optimizer | None = Field(
        default=None,
        description="in place of gradient descent",
        examples=[{"name": "adam", "learning_rate": 0.01}],
    )
    steps: Annotated[PositiveInt, Limit(LIMITS["steps"], "the number of steps")] = Field(
        default=1000, description="how many steps", examples=[1000]
    )
    seeds: Annotated[PositiveInt, Limit(LIMITS["seeds"], "the number of networks")] = Field(
        default=2, description="how many networks, each from its own start"
    )
    key: Annotated[NonNegativeInt, Limit(LIMITS["key"], "the key")] = Field(
        default=0, description="the number that all randomness comes from"
    )
    batch_size: PositiveInt | None = Field(
        default=None, description="samples of a step; all by default", examples=[8]
    )
    loss: Literal["squared", "cross_entropy"] = Field(
        default="squared", description="what is made small"
    )
    until: PositiveFloat | None = Field(
        default=None, description="end where the loss is at most this", examples=[1e-3]
    )
    record_every: Annotated[PositiveInt | None, Limit(LIMITS["steps"], "the number of steps")] = (
        Field(
            default=None,
            description="steps between two records; a two-hundredth of all steps by default",
            examples=[10],
        )
    )
    record_at: Annotated[
        Annotated[tuple[NonNegativeInt, ...], BeforeValidator(_as_tuple)] | None,
        Limit(1000, "records", entries=True),
    ] = Field(
        default=None,
        description="the steps to record, in place of record_every",
        examples=[[0, 10, 100]],
    )
    record: Annotated[
        tuple[Literal["weights", "outputs", "activity"], ...], BeforeValidator(_as_tuple)
    ] = Field(default=(), description="what else to keep in the data files", examples=[["outputs"]])
    evaluate: dict[str, Task] = Field(
        default={}, description="other tasks on which the loss is recorded", examples=[{}]
    )
    compress: bool | None = Field(
        default=None,
        description="simulate gated networks in a smaller equivalent, one seed at a time",
    )
    members_at_once: PositiveInt | None = Field(
        default=None, description="how many networks at a time, to bound the memory", examples=[10]
    )
    dtype: Literal["float32", "float64"] = Field(
        default="float64", description="precision of training"
    )
    checkpoint: str | None = Field(
        default=None, description="a folder, so that a killed run goes on", examples=["checkpoints"]
    )
    checkpoint_every: PositiveInt | None = Field(
        default=None, description="steps between checkpoints", examples=[1000]
    )

    @property
    def every(self) -> int:
        """Steps between two records, where `record_at` does not list them."""
        return self.record_every or max(1, self.steps // 200)

    @property
    def is_descent(self) -> bool:
        """Whether it is gradient descent on the squared loss."""
        return self.optimizer is None and self.loss == "squared"

    def rules(self) -> list[Rule]:
        return [
            Rule(
                len(self.given("learning_rate", "optimizer")) < 2,
                "learning_rate",
                "an optimizer has its own learning rate",
                "learning_rate and optimizer",
                "one of them",
                'write optimizer = { name = "adam", learning_rate = 0.01 }',
            ),
            Rule(
                len(self.given("record_at", "record_every")) < 2,
                "record_at",
                "record_every and record_at both say when to record",
                "record_every and record_at",
                "one of them",
                "leave out record_every",
            ),
        ]


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

    tolerance: PositiveFloat = Field(default=1e-8, description="couplings below it are dropped")


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
        >>> from neuralrace.study.model import Spread
        >>> Spread(start=0.0, stop=2.0, count=5).points()
        [0.0, 0.5, 1.0, 1.5, 2.0]

        ```
        """
        spaced = np.geomspace if self.log else np.linspace
        points = spaced(self.start, self.stop, self.count)
        return (points if self.log else points.round(12)).tolist()

    @property
    def is_right(self) -> bool:
        """Whether the values increase, and have logarithms where these are asked for."""
        return self.start < self.stop and not (self.log and self.start <= 0)

    def rules(self) -> list[Rule]:
        increase = self.start < self.stop
        return [
            Rule(
                self.is_right,
                "",
                "no logarithm" if increase else "these values do not increase",
                f"start = {self.start:g}, stop = {self.stop:g}",
                "start below stop" + (", both positive" if self.log else ""),
                "leave out log" if increase else "exchange them",
            )
        ]


Values: TypeAlias = Annotated[tuple[float | int | str | bool, ...], BeforeValidator(_as_tuple)]


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
        default=1e-9, description="of a crossover, as a share of the range"
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
        if isinstance(self.values, Spread) and not self.values.is_right:
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

    over: Annotated[dict[str, Spread | Values], BeforeValidator(_flat)] = Field(
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


TAKEN = ("aligned", "wide", "types", "trained")
"""Names that no gating can have: the reference of a contest, and whose times a sweep has."""


class Settings(Section):
    """A whole study."""

    title: str = Field(default="", description="the name of the study")
    about: str = Field(
        default="", description="the question in words, for the reader of the report"
    )
    questions: Annotated[tuple[Question, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = (
        Field(description="what to answer", examples=[["contest", "predict"]])
    )
    task: Task = Field(description="what is to be learned", examples=[{"builtin": "xor"}])
    network: Network = Field(default_factory=Network, description="the network")
    gatings: Annotated[dict[str, Gating], Limit(LIMITS["gatings"], "gatings", entries=True)] = (
        Field(default={}, description="candidate gatings by name")
    )
    training: Training = Field(default_factory=Training, description="how networks are trained")
    contest: ContestOptions = Field(
        default_factory=ContestOptions, description="options of the contest"
    )
    relu: ReluOptions = Field(default_factory=ReluOptions, description="options of relu")
    predict: PredictOptions = Field(
        default_factory=PredictOptions, description="which gating is predicted"
    )
    discover: DiscoverOptions = Field(
        default_factory=DiscoverOptions, description="options of discover"
    )
    reduce: ReduceOptions = Field(default_factory=ReduceOptions, description="options of reduce")
    modes: ModesOptions = Field(default_factory=ModesOptions, description="options of modes")
    types: TypesOptions = Field(default_factory=TypesOptions, description="options of types")
    explain: ExplainOptions = Field(
        default_factory=ExplainOptions, description="options of explain"
    )
    phase_diagram: PhaseOptions | None = Field(default=None, description="what is varied")
    sweep: Sweep | None = Field(default=None, description="many cells, on several workers")
    quick: Annotated[dict[str, Any], BeforeValidator(_flat)] = Field(
        default={},
        description="dotted keys and their values for `--quick`",
        examples=[{"training.steps": 100}],
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        """The rules of all sections at once, so that one error says all that is wrong."""
        broken = [
            rule._replace(key=f"{at}{rule.key}".removesuffix("."))
            for at, section in sections(self)
            for rule in section.rules()
            if not rule.holds and (not rule.question or not self.answerable)
        ]
        if broken:
            raise PydanticCustomError("broken", "keys do not fit together", {"rules": broken})
        return self

    @property
    def refused(self) -> dict[str, Rule]:
        """The questions that cannot be answered, each with the first rule that it breaks."""
        broken = [rule for rule in self._rules_of_questions() if not rule.holds and rule.question]
        first = {rule.question: rule for rule in reversed(broken)}
        return {name: first[name] for name in self.questions if name in first}

    @property
    def answerable(self) -> tuple[Question, ...]:
        """All other questions."""
        refused = self.refused
        return tuple(question for question in self.questions if question not in refused)

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The keys that a sweep varies, with their values."""
        return {} if self.sweep is None else self.sweep.axes

    def too_large(self) -> Iterator[tuple[str, str, float, float]]:
        """What is more than the explorer takes on: its key, what it is, how much, and the most."""
        for at, section in sections(self):
            for name, field in type(section).model_fields.items():
                value: Any = getattr(section, name)
                several = [*value.values()] if isinstance(value, dict) else value
                several = several if isinstance(several, list | tuple) else [value]
                numbers = [each for each in several if isinstance(each, int | float)]
                for limit in (each for each in field.metadata if isinstance(each, Limit)):
                    amount = len(several) if limit.entries else max(numbers, default=0)
                    if value is not None and amount > limit.most:
                        what = f"the number of {limit.what}" if limit.entries else limit.what
                        yield f"{at}{name}", what, amount, limit.most

    def rules(self) -> list[Rule]:
        return [*self._rules_of_gatings(), *self._rules_of_questions()]

    def _rules_of_gatings(self) -> Iterator[Rule]:
        chosen = self.predict.gating
        for name, gating in self.gatings.items():
            yield Rule(
                re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) and name not in TAKEN,
                f"gatings.{name}",
                f"{name!r:.60} cannot be the name of a gating",
                f"{name!r:.60}",
                f"letters, digits and _, a letter first; none of {', '.join(TAKEN)}",
                "rename it, for example [gatings.by_context]",
            )
            yield Rule(
                gating.gates is None or self.network.graph is not None,
                f"gatings.{name}.gates",
                "gates belong to the nodes and edges of a graph",
                "gates without [network.graph]",
                "a graph, or masks for pathways",
                "add [network.graph], or write masks in place of gates",
            )
        yield Rule(
            chosen is None or chosen in self.gatings,
            "predict.gating",
            f"there is no gating {chosen!r:.80}",
            f"{chosen!r:.80}",
            f"one of {', '.join(self.gatings)}",
            spelled(chosen, self.gatings, "choose one of these, or leave it out"),
        )

    def _rules_of_questions(self) -> Iterator[Rule]:
        asked, network, training = self.questions, self.network, self.training
        loss, start = training.loss, self.contest.start
        of_these = lambda *questions: [question for question in questions if question in asked]
        needing = lambda need: [q for q in asked if need in QUESTIONS[q].needs]
        several, one = network.layers > 1, (network.widths or (100,))[0]
        masked = [name for name, gating in self.gatings.items() if gating.is_masked]
        twice = [question for i, question in enumerate(asked) if question in asked[:i]]
        how = "an optimizer" if training.optimizer else loss
        yield Rule(
            self.sweep is None or training.checkpoint is None,
            "training.checkpoint",
            "all cells of a sweep would use the same checkpoint",
            repr(training.checkpoint),
            "no checkpoint: a sweep continues from its own store",
            "leave out checkpoint",
        )
        yield Rule(
            not twice,
            "questions",
            "a question is asked twice",
            ", ".join(twice),
            "each once",
            "leave one out",
        )
        yield Rule(
            self.phase_diagram or "phase_diagram" not in asked,
            "phase_diagram",
            "a phase diagram needs to know what is varied",
            "no section [phase_diagram]",
            "the key that is varied, and its values",
            'add [phase_diagram] with key = "task.parameters.delta" and values = [0, 1, 2]',
        )
        for question in needing("gatings"):
            graph = question == "reduce" and network.graph is not None
            yield Rule(
                self.gatings or graph,
                "questions",
                f"{question!r} is about gatings, and there are none",
                "no section [gatings.NAME]",
                "at least one gating" + " or a [network.graph]" * (question == "reduce"),
                'add [gatings.one] with masks = { all = "always" }',
                question,
            )
        for question in needing("descent"):
            yield Rule(
                training.is_descent,
                "questions",
                f"{question!r} is known for gradient descent on the squared loss",
                how,
                "learning_rate in place of optimizer, and loss = 'squared'",
                f"leave out {question!r}, or change [training]",
                question,
            )
        yield Rule(
            loss == "squared" or "certify" not in asked,
            "questions",
            "'certify' measures outputs in units of the squared loss",
            loss,
            "loss = 'squared'",
            "leave out 'certify', or change [training]",
            "certify",
        )
        yield Rule(
            training.is_descent or "discover" not in asked or self.discover.pathways != "elbow",
            "discover.pathways",
            "how many pathways it takes is decided by gated networks that follow gradient descent "
            "on the squared loss",
            how,
            "the number of pathways",
            "for example pathways = 4 in [discover], or change [training]",
            "discover",
        )
        for question in needing("gaussian"):
            yield Rule(
                network.kind == "gaussian" or (start is not None and question != "types"),
                "questions",
                f"{question!r} is known for Gaussian initial weights",
                f"network.kind = {network.kind!r}",
                "kind = 'gaussian' in [network]",
                f"leave out kind, or {question!r}",
                question,
            )
        yield Rule(
            not network.bias or "types" not in asked,
            "questions",
            "'types' is known for networks without a bias",
            "bias = true",
            "a column of ones in the task in its place",
            "leave out bias, or 'types'",
            "types",
        )
        for question in of_these("contest", "phase_diagram") if self.contest.check else ():
            yield Rule(
                not network.bias,
                "contest.check",
                "whether networks with output biases would keep the gates of a contest is not "
                "known",
                f"bias = true, and the question {question!r} with its check",
                "check = false in [contest], which leaves times and winner",
                "write check = false; or leave out bias and add a column of ones to the task, "
                "which is a bias of the hidden neurons",
                question,
            )
        for question in [q for q in asked if QUESTIONS[q].gated] if masked else ():
            yield Rule(
                not several,
                f"gatings.{masked[0]}",
                "pathways by masks have one hidden layer, and the network has several",
                f"{network.layers} hidden layers, and the question {question!r}",
                "one hidden layer, or the gates of a graph",
                ("leave out depth" if network.depth else f"write widths = {one}")
                + ", or write a [network.graph] with gates = { node = 'expression' }",
                question,
            )
        yield Rule(
            not several or start is not None or "modes" not in asked,
            "questions",
            "'modes' knows the average start of one hidden layer",
            "several hidden layers",
            "one width in [network], or an aligned start",
            "write widths = 64, or start = 0.1 in [contest]",
            "modes",
        )
        for question in needing("layer"):
            yield Rule(
                not several and network.graph is None,
                "questions",
                f"{question!r} is known for one hidden layer",
                "a graph" if network.graph else "several hidden layers",
                "one width in [network]",
                f"leave out {question!r}, or write widths = 128",
                question,
            )


def schema() -> dict[str, Any]:
    """The JSON schema of a study, for editors.

    ```python
    >>> from neuralrace.study.model import schema
    >>> sorted(schema()["required"])
    ['questions', 'task']

    ```
    """
    made = Settings.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def fields_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """The fields of a section by name."""
    return model.model_fields
