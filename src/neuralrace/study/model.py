"""What may stand in a study: every section and every key, with its kind, default and meaning.

This module imports pydantic, which comes with the extra `study`; others import it where they need
it. A section also has the rules that its keys must follow together, and the largest values that the
explorer takes on, in the annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from neuralrace.study.document import LIMITS
from neuralrace.study.options import (
    ContestOptions,
    DiscoverOptions,
    ExplainOptions,
    ModesOptions,
    PhaseOptions,
    PredictOptions,
    ReduceOptions,
    ReluOptions,
    Sweep,
    TypesOptions,
)
from neuralrace.study.questions import QUESTIONS
from neuralrace.study.rules import rules_of_gatings, rules_of_questions
from neuralrace.study.sections import (
    Columns,
    Edges,
    Ends,
    Limit,
    Mask,
    Names,
    Rule,
    Section,
    Widths,
    as_tuple,
    flat,
)

if TYPE_CHECKING:
    Question: TypeAlias = str
else:
    Question = Literal[tuple(QUESTIONS)]


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
    recurrent: bool = Field(
        default=False,
        description="whether it is recurrent, unrolled over the steps of a task of sequences",
    )

    @property
    def layers(self) -> int:
        """How many hidden layers there are in a row."""
        return len(self.widths) * (self.depth or 1)

    @property
    def in_a_row(self) -> bool:
        """Whether it is layers in a row, neither a graph nor recurrent."""
        return self.graph is None and not self.recurrent

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
            Rule(
                not self.recurrent or (self.graph is None and self.layers == 1),
                "recurrent",
                "a recurrent network has one hidden layer, at every step",
                "recurrent = true and " + ("graph" if self.graph else f"{self.layers} layers"),
                "one width, and no graph",
                "leave out recurrent, or write widths = 40",
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
    momentum: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="of gradient descent", examples=[0.9]
    )
    weight_decay: NonNegativeFloat = Field(
        default=0.0, description="λ; contests, modes and predictions decay, too", examples=[0.01]
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
        Annotated[tuple[NonNegativeInt, ...], BeforeValidator(as_tuple)] | None,
        Limit(1000, "records", entries=True),
    ] = Field(
        default=None,
        description="the steps to record, in place of record_every",
        examples=[[0, 10, 100]],
    )
    record: Annotated[
        tuple[Literal["weights", "outputs", "activity"], ...],
        BeforeValidator(as_tuple),
        Limit(0, "kinds of values that are kept", entries=True),
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

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the squared loss moves the weights, and without momentum."""
        return self.is_descent and not (self.momentum or self.weight_decay)

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
                not self.momentum or self.optimizer is None,
                "momentum",
                "an optimizer has its own momentum",
                "momentum and optimizer",
                "one of them",
                'write optimizer = { name = "sgd", learning_rate = 0.1, momentum = 0.9 }',
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


class Settings(Section):
    """A whole study."""

    title: str = Field(default="", description="the name of the study")
    about: str = Field(
        default="", description="the question in words, for the reader of the report"
    )
    questions: Annotated[tuple[Question, ...], BeforeValidator(as_tuple), Field(min_length=1)] = (
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
    quick: Annotated[dict[str, Any], BeforeValidator(flat)] = Field(
        default={},
        description="dotted keys and their values for `--quick`",
        examples=[{"training.steps": 100}],
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        """The rules of all sections at once, so that one error says all that is wrong."""
        if broken := [*self.broken()]:
            raise PydanticCustomError("broken", "keys do not fit together", {"rules": broken})
        return self

    @property
    def refused(self) -> dict[str, Rule]:
        """The questions that cannot be answered, each with the first rule that it breaks."""
        broken = [rule for rule in rules_of_questions(self) if not rule.holds and rule.question]
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

    def rules(self) -> list[Rule]:
        ends = lambda rule: not rule.question or not self.answerable
        return [*rules_of_gatings(self), *filter(ends, rules_of_questions(self))]


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
