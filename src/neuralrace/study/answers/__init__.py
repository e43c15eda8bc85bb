"""The answers to the questions of a study, one function per question."""

from neuralrace.study.answers.answer import Answer

__all__ = ["Answer"]
