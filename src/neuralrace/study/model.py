"""What may stand in a study: every section and every key, with its kind, default and meaning.

This module imports pydantic, which comes with the extra `study`; others import it where they need
it. `read` turns a document into `Settings`, or raises an error that names file and key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

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
)

Question: TypeAlias = Literal[
    "contest",
    "reduce",
    "modes",
    "predict",
    "train",
    "types",
    "discover",
    "certify",
    "phase_diagram",
    "explain",
]

QUESTIONS: tuple[Question, ...] = get_args(Question)
"""What can be asked, in the order in which it is answered."""


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


def _flat(value: Any, before: str = "") -> Any:
    """Tables in tables as dotted keys: `task.steps = 1` and `"task.steps" = 1` mean the same."""
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, inner in value.items():
        key = f"{before}.{name}" if before else name
        nested = isinstance(inner, dict) and not set(inner) & {"start", "stop", "count"}
        found |= _flat(inner, key) if nested and inner else {key: inner}
    return found


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


class Section(BaseModel):
    """A table of a study: strict about kinds, closed to unknown keys, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


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


class Graph(Section):
    """A graph of layers; sizes of inputs and outputs are those of the task."""

    sizes: dict[str, PositiveInt] = Field(
        description="neurons of every hidden node", examples=[{"h": 64}]
    )
    edges: Edges = Field(
        description="source and target of every edge", examples=[{"W1": ["x", "h"]}]
    )


class Network(Section):
    """The network that is trained and predicted."""

    widths: Widths = Field(
        default=(100,), description="neurons of the hidden layers", examples=[128, [64, 64]]
    )
    depth: PositiveInt | None = Field(
        default=None, description="how many hidden layers, all of one width", examples=[2]
    )
    leak: NonNegativeFloat = Field(
        default=0.0, description="the slope of a ReLU neuron that is off", examples=[0.1]
    )
    bias: bool = Field(default=False, description="whether ReLU neurons and outputs have a bias")
    scale: PositiveFloat = Field(
        default=1e-3, description="the standard deviation of initial weights", examples=[1e-3]
    )
    kind: Literal["gaussian", "xavier", "orthogonal"] = Field(
        default="gaussian", description="the kind of initial weights"
    )
    graph: Graph | None = Field(default=None, description="a graph of your own, in place of widths")


class Gating(Section):
    """Which pathway is on for which sample: exactly one of the first six keys."""

    masks: dict[str, Mask] | None = Field(
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
    gates: dict[str, Mask] | None = Field(
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
    hidden: PositiveInt | dict[str, PositiveInt] | None = Field(
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
    steps: PositiveInt = Field(default=1000, description="how many steps", examples=[1000])
    seeds: PositiveInt = Field(default=2, description="how many networks, each from its own start")
    key: NonNegativeInt = Field(default=0, description="the number that all randomness comes from")
    batch_size: PositiveInt | None = Field(
        default=None, description="samples of a step; all by default", examples=[8]
    )
    loss: Literal["squared", "cross_entropy"] = Field(
        default="squared", description="what is made small"
    )
    until: PositiveFloat | None = Field(
        default=None, description="end where the loss is at most this", examples=[1e-3]
    )
    record_every: PositiveInt | None = Field(
        default=None,
        description="steps between two records; a two-hundredth of all steps by default",
        examples=[10],
    )
    record_at: Annotated[tuple[NonNegativeInt, ...], BeforeValidator(_as_tuple)] | None = Field(
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


class ContestOptions(Section):
    """Options of nr.contest, also for the phase diagram."""

    criterion: PositiveFloat | None = Field(
        default=None, description="the loss that counts as learned; 0.2 by default", examples=[0.2]
    )
    relative: bool = Field(
        default=False, description="whether the criterion is a share of the loss of answering zero"
    )
    start: PositiveFloat | None = Field(
        default=None,
        description="equal aligned starts, in place of random weights",
        examples=[0.01],
    )
    longest: PositiveFloat = Field(
        default=1e5,
        description="how long a race is followed, in units of one over its largest strength",
    )
    tolerance: PositiveFloat | None = Field(
        default=None, description="couplings below it are dropped", examples=[1e-8]
    )
    width: PositiveInt | None = Field(
        default=None, description="neurons of the reference; those of the network by default"
    )
    check: bool = Field(
        default=True, description="whether to ask if a ReLU network would keep the gates (seconds)"
    )


class PredictOptions(Section):
    """Which gating `predict` and `certify` follow."""

    gating: str | None = Field(
        default=None,
        description="a gating; the winner of the contest by default",
        examples=["linear"],
    )


class DiscoverOptions(Section):
    """Options of nr.reln.discover."""

    pathways: PositiveInt | Literal["elbow"] = Field(
        default="elbow", description="how many pathways, or 'elbow'", examples=[4]
    )
    most: PositiveInt = Field(default=6, description="the most pathways that are tried")
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

    types: PositiveInt = Field(default=8, description="how many types of neurons")
    neurons: PositiveInt = Field(
        default=2000, description="how many neurons the wide limit follows"
    )


class ExplainOptions(Section):
    """Options of nr.explain."""

    rows: Names = Field(
        default=("gatings", "discovered", "aligned", "staged", "types", "narrow"),
        description="which explanations to make",
        examples=[["gatings", "aligned", "narrow"]],
    )
    types: PositiveInt = Field(
        default=8, description="how many types, and neurons of the narrow network"
    )
    stages: PositiveInt = Field(default=64, description="how many stages")
    most: PositiveInt = Field(default=6, description="the most pathways that are tried")
    neurons: PositiveInt = Field(
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
    networks: NonNegativeInt = Field(
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


class Sweep(Section):
    """The questions at every combination of values, with seeds."""

    over: Annotated[dict[str, Spread | Values], BeforeValidator(_flat)] = Field(
        description="dotted keys and their values",
        examples=[{"task.parameters.delta": [0.4, 1.2]}],
    )
    seeds: PositiveInt = Field(default=1, description="repetitions of every combination")
    batch: PositiveInt = Field(default=16, description="cells that are computed together")


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
    gatings: dict[str, Gating] = Field(default={}, description="candidate gatings by name")
    training: Training = Field(default_factory=Training, description="how networks are trained")
    contest: ContestOptions = Field(
        default_factory=ContestOptions, description="options of the contest"
    )
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
