"""What the numbers of the answers are: one sentence for each, for sweeps and their reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Output:
    """A number of an answer; `name` ends in `_NAME` where there is one per gating.

    `missing` says why a value can be missing. `followed` says whether it is about the gating that
    is predicted and certified, which may be another one in every cell. `chief` is the one output
    of a question that the report sums up in a sentence. `when` says which studies have it: all that
    ask the question, or only those that check gates (`checked`), train ReLU networks (`trained`),
    or train several of them (`several`), which a cell of a sweep does not. Outputs with the same
    `chart` are drawn together.
    """

    name: str
    question: str
    what: str
    missing: str = ""
    followed: bool = False
    chief: bool = False
    when: str = ""
    chart: str = ""


NEVER = "the criterion is never reached"
SHORT = "the loss does not get there within the steps of training"
SEE = "see `left_out`"
NO_CHECK = "the check does not apply to these gates"


def _outputs_of(what: str) -> str:
    return (
        f"the mean distance of the outputs of {what} from those of the ReLU network, as a share of "
        "its initial root mean square error"
    )


OUTPUTS = (
    Output("time_wide", "relu", "when the loss of the ReLU network falls to the criterion, in the "
           "wide limit", SHORT, chief=True, chart="relu_time"),
    Output("time_types", "relu", "when the loss of the ReLU network falls to the criterion, by "
           "types of neurons", "no types form, or " + SHORT, chart="relu_time"),
    Output("time_trained", "relu", "when the loss of the trained ReLU network falls to the "
           "criterion", SHORT, chief=True, when="trained", chart="relu_time"),
    Output("wide_distance", "relu", "the mean distance of the loss in the wide limit from that of "
           "the trained ReLU network, as a share of the initial loss", "the network diverged",
           when="trained"),
    Output("likely_chance", "relu", "the chance of the most likely way to end"),
    Output("time_aligned", "contest", "when the gates that small neurons align to by themselves, "
           "the reference, reach the criterion, in theory", "there is no such reference, or its "
           "time is not known", when="checked"),
    Output("time_NAME", "contest", "when the loss of this gating falls to the criterion, in theory",
           "its time is not known"),
    Output("kept_aligned", "contest", "the share of the reference's gates that a ReLU network "
           "would keep", NO_CHECK, when="checked"),
    Output("kept_NAME", "contest", "the share of this gating's gates that a ReLU network would "
           "keep", NO_CHECK, when="checked"),
    Output("winner", "contest", "the gating that reaches the criterion first, in theory",
           "no gating is known to reach the criterion"),
    Output("crossovers", "phase_diagram", "how often the winner changes over the phase diagram",
           chief=True),
    Output("first_crossover", "phase_diagram", "the least value at which the winner changes",
           "the winner does not change"),
    Output("last_crossover", "phase_diagram", "the largest value at which the winner changes",
           "the winner does not change"),
    Output("blocks_NAME", "reduce", "how many independent blocks this gating reduces to"),
    Output("residual_NAME", "reduce", "the largest relative size that the reduction of this gating "
           "drops; 0, up to rounding, where it is exact"),
    Output("modes_NAME", "modes", "how many modes this gating learns"),
    Output("first_mode_NAME", "modes", "the half-time of the first mode of this gating",
           "no mode has a closed form"),
    Output("last_mode_NAME", "modes", "the half-time of the last mode of this gating",
           "no mode has a closed form"),
    Output("ties_NAME", "modes", "how many neighbours in the order of this gating's modes are "
           "ties over random starts"),
    Output("followed", "predict", "the gating that `predict` and `certify` are about: the winner, "
           "or `predict.gating`"),
    Output("prediction_error", "predict", "the mean distance of the predicted loss from that of "
           "the gated network, as a share of the initial loss", followed=True),
    Output("prediction_error_max", "predict", "the largest distance of the predicted loss from "
           "that of the gated network, as a share of the initial loss", followed=True),
    Output("gated_final_loss", "predict", "the loss of the gated network at the end",
           followed=True),
    Output("relu_distance", "predict", "the mean distance of the predicted loss from that of the "
           "ReLU network, as a share of the initial loss", followed=True, chief=True,
           when="trained"),
    Output("relu_distance_after_shift", "predict", "the mean distance of the predicted loss from "
           "that of the ReLU network, after the shift in time that makes it least, as a share of "
           "the initial loss", followed=True, when="trained"),
    Output("initial_loss", "train", "the loss of the ReLU network before training"),
    Output("final_loss", "train", "the loss of the ReLU network at the end", chief=True),
    Output("half_time", "train", "when the loss of the ReLU network is half of the initial one",
           SHORT),
    Output("learning_time", "train", "when the loss of the ReLU network falls to the criterion",
           SHORT),
    Output("types_gap", "types", "the mean distance of the loss by types of neurons from that of "
           "the wide limit, as a share of the initial loss", chief=True),
    Output("types_distance", "types", "the mean distance of the loss by types of neurons from "
           "that of the ReLU network, as a share of the initial loss", when="trained"),
    Output("pathways_found", "discover", "how many pathways are found in the activity of the ReLU "
           "network", chief=True),
    Output("discovery_gap", "discover", "the mean distance of the loss with the discovered gates "
           "from that of the ReLU network, as a share of the initial loss", "the gates found are "
           "withheld"),
    Output("outputs_distance", "certify", _outputs_of("the gated network"), followed=True,
           chief=True),
    Output("outputs_distance_max", "certify", _outputs_of("the gated network").replace(
           "mean", "largest", 1) + ", over samples and time", followed=True),
    Output("outputs_floor", "certify", _outputs_of("another seed of the ReLU network"),
           when="several"),
    Output("error_discovered", "explain", _outputs_of("the discovered pathways"), SEE),
    Output("error_aligned", "explain", _outputs_of("the gates that small neurons align to"), SEE),
    Output("error_staged", "explain", _outputs_of("the network's own gates in stages"), SEE),
    Output("error_types", "explain", _outputs_of("a few types of neurons"), SEE),
    Output("error_narrow", "explain", _outputs_of("a narrow ReLU network"), SEE),
    Output("error_NAME", "explain", _outputs_of("this gating"), SEE),
    Output("left_out", "explain", "which explanations could not be made, and why, as JSON"),
    Output("refused", "", "which questions have no answer in this cell, and why, as JSON; there "
           "where a study asks several"),
)  # fmt: skip
"""Every output of a sweep, in the order of the questions."""

TEXTS = ("winner", "followed", "left_out", "refused")
"""Outputs that are text."""


def output_of(name: str) -> Output | None:
    """What an output is; None for one that is not of a study.

    ```python
    >>> from neuralrace.study.outputs import output_of
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
    >>> from neuralrace.study.outputs import described
    >>> described("time_linear")
    'time_linear: when the loss of the gating linear falls to the criterion, in theory'

    ```
    """
    return ": ".join(filter(None, [name, about(name)]))
