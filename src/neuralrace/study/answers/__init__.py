"""The answers to the questions of a study, one function per question."""

from neuralrace.study.answers.answer import Answer
from neuralrace.study.answers.results import race_sentence
from neuralrace.study.answers.theory import contest_places, contest_sentences

__all__ = ["Answer", "contest_places", "contest_sentences", "race_sentence"]
