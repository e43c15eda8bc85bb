"""The answers to the questions of a study, one function per question."""

from collections.abc import Callable, Mapping

from neuralrace.study.answers.answer import Answer
from neuralrace.study.answers.gates import discover, explain, types
from neuralrace.study.answers.modes import modes
from neuralrace.study.answers.networks import certify, predict, train
from neuralrace.study.answers.phases import phase_diagram
from neuralrace.study.answers.relu import relu
from neuralrace.study.answers.results import race_sentence
from neuralrace.study.answers.theory import (
    contest,
    contest_places,
    contest_sentences,
    reduce,
)
from neuralrace.study.work import Work

ANSWERS: Mapping[str, Callable[[Work], Answer]] = {
    "relu": relu,
    "contest": contest,
    "phase_diagram": phase_diagram,
    "reduce": reduce,
    "modes": modes,
    "predict": predict,
    "train": train,
    "types": types,
    "discover": discover,
    "certify": certify,
    "explain": explain,
}
"""In the order in which they are answered and shown."""

__all__ = [
    "ANSWERS",
    "Answer",
    "contest_places",
    "contest_sentences",
    "race_sentence",
]
