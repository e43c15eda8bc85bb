"""The questions of a study, one entry for each: steps, answer, numbers, and what it needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, final

if TYPE_CHECKING:
    from neuralrace.study.answers import Answer
    from neuralrace.study.work import Work


@final
@dataclass(frozen=True)
class Output:
    """A number of an answer; `name` ends in `_NAME` where there is one per gating.

    `missing` says why a value can be missing. `followed` says whether it is about the gating that
    is predicted and certified, which may be another one in every cell. `chief` is the one output
    of a question that the report sums up in a sentence. `when` says which studies have it: all that
    ask the question, or only those that check gates (`checked`), train ReLU networks (`trained`),
    or train several of them (`several`), which a cell of a sweep does not. Outputs with the same
    `chart` are drawn together. `text` says whether it is text. `question` is the one it answers.
    """

    name: str
    what: str
    missing: str = ""
    followed: bool = False
    chief: bool = False
    when: str = ""
    chart: str = ""
    text: bool = False
    question: str = ""


Need = Literal["gatings", "descent", "gaussian", "layer"]
"""Gatings; gradient descent on the squared loss; Gaussian weights; one hidden layer."""


@final
@dataclass(frozen=True)
class Question:
    """What can be asked in a study.

    `module` of `neuralrace.study.answers` has the function that answers it, of the same name.
    `steps` are what is computed for it, by name; the last one makes its answer. `outputs` are its
    numbers in a sweep, `needs` what it needs of the study, `gated` whether it is about its gatings,
    and `weights` whether it looks at the weights of the ReLU networks over time.

    ```python
    >>> from neuralrace.study import QUESTIONS
    >>> QUESTIONS["train"].trains, [output.name for output in QUESTIONS["types"].outputs]
    (True, ['types_gap', 'types_distance'])

    ```
    """

    name: str
    module: str
    steps: tuple[str, ...]
    outputs: tuple[Output, ...]
    needs: Collection[Need] = ()
    gated: bool = False
    weights: bool = False

    @property
    def trains(self) -> bool:
        """Whether ReLU networks are trained for it."""
        return {*RELU} <= {*self.steps}

    def answer(self, work: Work) -> Answer:
        """Its answer for one study."""
        module = import_module(f"neuralrace.study.answers.{self.module}")
        return getattr(module, self.name)(work)


RELU = ("relu", "samples", "relu_runs")
"""The steps that train ReLU networks."""

GATED = ("pair", "net", "gated_samples", "gated_runs")
"""The steps that train gated networks."""

NEVER = "the criterion is never reached"
SHORT = "the loss does not get there within the steps of training"
SEE = "see `left_out`"
NO_CHECK = "the check does not apply to these gates"


def _outputs_of(what: str) -> str:
    return (
        f"the mean distance of the outputs of {what} from those of the ReLU network, as a share of "
        "its initial root mean square error"
    )


_QUESTIONS = (
    Question(
        "relu",
        "relu",
        ("relu_prediction",),
        (
            Output(
                "time_wide",
                "when the loss of the ReLU network falls to the criterion, in the wide limit",
                SHORT,
                chief=True,
                chart="relu_time",
            ),
            Output(
                "time_types",
                "when the loss of the ReLU network falls to the criterion, by types of neurons",
                "no types form, or " + SHORT,
                chart="relu_time",
            ),
            Output(
                "time_trained",
                "when the loss of the trained ReLU network falls to the criterion",
                SHORT,
                chief=True,
                when="trained",
                chart="relu_time",
            ),
            Output(
                "wide_distance",
                "the mean distance of the loss in the wide limit from that of "
                "the trained ReLU network, as a share of the initial loss",
                "the network diverged",
                when="trained",
            ),
            Output("likely_chance", "the chance of the most likely way to end"),
        ),
    ),
    Question(
        "contest",
        "theory",
        ("who",),
        (
            Output(
                "time_aligned",
                "when the gates that small neurons align to by themselves, "
                "the reference, reach the criterion, in theory",
                "there is no such reference, or its time is not known",
                when="checked",
            ),
            Output(
                "time_NAME",
                "when the loss of this gating falls to the criterion, in theory",
                "its time is not known",
            ),
            Output(
                "kept_aligned",
                "the share of the reference's gates that a ReLU network would keep",
                NO_CHECK,
                when="checked",
            ),
            Output(
                "kept_NAME",
                "the share of this gating's gates that a ReLU network would keep",
                NO_CHECK,
                when="checked",
            ),
            Output(
                "winner",
                "the gating that reaches the criterion first, in theory",
                "no gating is known to reach the criterion",
                text=True,
            ),
        ),
        needs=("gaussian",),
        gated=True,
    ),
    Question(
        "phase_diagram",
        "phases",
        ("phases",),
        (
            Output("crossovers", "how often the winner changes over the phase diagram", chief=True),
            Output(
                "first_crossover",
                "the least value at which the winner changes",
                "the winner does not change",
            ),
            Output(
                "last_crossover",
                "the largest value at which the winner changes",
                "the winner does not change",
            ),
        ),
        needs=("gatings", "gaussian"),
        gated=True,
    ),
    Question(
        "reduce",
        "theory",
        ("races",),
        (
            Output("blocks_NAME", "how many independent blocks this gating reduces to"),
            Output(
                "residual_NAME",
                "the largest relative size that the reduction of this gating "
                "drops; 0, up to rounding, where it is exact",
            ),
        ),
        needs=("gatings",),
        gated=True,
    ),
    Question(
        "modes",
        "theory",
        ("races", "modes"),
        (
            Output("modes_NAME", "how many modes this gating learns"),
            Output(
                "first_mode_NAME",
                "the half-time of the first mode of this gating",
                "no mode has a closed form",
            ),
            Output(
                "last_mode_NAME",
                "the half-time of the last mode of this gating",
                "no mode has a closed form",
            ),
            Output(
                "ties_NAME",
                "how many neighbours in the order of this gating's modes are "
                "ties over random starts",
            ),
        ),
        needs=("gaussian",),
        gated=True,
    ),
    Question(
        "predict",
        "networks",
        (*GATED, "race", "predicted"),
        (
            Output(
                "followed",
                "the gating that `predict` and `certify` are about: the winner, "
                "or `predict.gating`",
                text=True,
            ),
            Output(
                "prediction_error",
                "the mean distance of the predicted loss from that of "
                "the gated network, as a share of the initial loss",
                followed=True,
            ),
            Output(
                "prediction_error_max",
                "the largest distance of the predicted loss from "
                "that of the gated network, as a share of the initial loss",
                followed=True,
            ),
            Output("gated_final_loss", "the loss of the gated network at the end", followed=True),
            Output(
                "relu_distance",
                "the mean distance of the predicted loss from that of the "
                "ReLU network, as a share of the initial loss",
                followed=True,
                chief=True,
                when="trained",
            ),
            Output(
                "relu_distance_after_shift",
                "the mean distance of the predicted loss from "
                "that of the ReLU network, after the shift in time that makes it least, as a "
                "share of the initial loss",
                followed=True,
                when="trained",
            ),
        ),
        needs=("gatings", "descent"),
        gated=True,
    ),
    Question(
        "train",
        "networks",
        RELU,
        (
            Output("initial_loss", "the loss of the ReLU network before training"),
            Output("final_loss", "the loss of the ReLU network at the end", chief=True),
            Output(
                "half_time", "when the loss of the ReLU network is half of the initial one", SHORT
            ),
            Output(
                "learning_time", "when the loss of the ReLU network falls to the criterion", SHORT
            ),
        ),
    ),
    Question(
        "types",
        "gates",
        ("types",),
        (
            Output(
                "types_gap",
                "the mean distance of the loss by types of neurons from that of "
                "the wide limit, as a share of the initial loss",
                chief=True,
            ),
            Output(
                "types_distance",
                "the mean distance of the loss by types of neurons from "
                "that of the ReLU network, as a share of the initial loss",
                when="trained",
            ),
        ),
        needs=("descent", "gaussian", "layer"),
    ),
    Question(
        "discover",
        "gates",
        (*RELU, "runs", "found"),
        (
            Output(
                "pathways_found",
                "how many pathways are found in the activity of the ReLU network",
                chief=True,
            ),
            Output(
                "discovery_gap",
                "the mean distance of the loss with the discovered gates "
                "from that of the ReLU network, as a share of the initial loss",
                "the gates found are withheld",
            ),
        ),
        weights=True,
    ),
    Question(
        "certify",
        "networks",
        (*RELU, *GATED, "certificates"),
        (
            Output("outputs_distance", _outputs_of("the gated network"), followed=True, chief=True),
            Output(
                "outputs_distance_max",
                _outputs_of("the gated network").replace("mean", "largest", 1)
                + ", over samples and time",
                followed=True,
            ),
            Output(
                "outputs_floor", _outputs_of("another seed of the ReLU network"), when="several"
            ),
        ),
        needs=("gatings",),
        gated=True,
    ),
    Question(
        "explain",
        "gates",
        (*RELU, "explanation"),
        (
            Output("error_discovered", _outputs_of("the discovered pathways"), SEE),
            Output("error_aligned", _outputs_of("the gates that small neurons align to"), SEE),
            Output("error_staged", _outputs_of("the network's own gates in stages"), SEE),
            Output("error_types", _outputs_of("a few types of neurons"), SEE),
            Output("error_narrow", _outputs_of("a narrow ReLU network"), SEE),
            Output("error_NAME", _outputs_of("this gating"), SEE),
            Output("left_out", "which explanations could not be made, and why, as JSON", text=True),
        ),
        needs=("descent", "layer"),
        weights=True,
    ),
)

REFUSED = Output(
    "refused",
    "which questions have no answer in this cell, and why, as JSON; there where a study asks "
    "several",
    text=True,
)

QUESTIONS = {question.name: question for question in _QUESTIONS}
"""Every question of a study, in the order in which they are answered and shown."""

TRAINED = tuple(question.name for question in _QUESTIONS if question.trains)
"""Those for which ReLU networks are trained."""

OUTPUTS = (
    *(replace(o, question=q.name) for q in _QUESTIONS for o in q.outputs),
    REFUSED,
)
"""Every output of a sweep, in the order of the questions."""


def output_of(name: str) -> Output | None:
    """What an output is; None for one that is not of a study.

    ```python
    >>> from neuralrace.study.questions import output_of
    >>> output_of("time_linear").what
    'when the loss of this gating falls to the criterion, in theory'

    ```
    """
    for output in OUTPUTS:
        if output.name == name:
            return output
    for output in OUTPUTS:
        front, gating, _ = output.name.partition("NAME")
        if gating and name.startswith(front):
            return output
    return None


def about(name: str) -> str:
    """What an output is, with the name of its gating; empty for one that is not of a study."""
    output = output_of(name)
    if output is None:
        return ""
    front, gating, _ = output.name.partition("NAME")
    named = f"the gating {name.removeprefix(front)}" if gating else "this gating"
    return output.what.replace("this gating", named)


def described(name: str) -> str:
    """The sentence that defines an output, without its full stop.

    ```python
    >>> from neuralrace.study.questions import described
    >>> described("time_linear")
    'time_linear: when the loss of the gating linear falls to the criterion, in theory'

    ```
    """
    return ": ".join(filter(None, [name, about(name)]))
