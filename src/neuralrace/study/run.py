"""Answering the questions of a study: here for its report, and for every cell of a sweep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralrace.study.answers import Answer
from neuralrace.study.places import StudyError
from neuralrace.study.questions import QUESTIONS
from neuralrace.study.result import Result
from neuralrace.study.work import Work

if TYPE_CHECKING:
    from neuralrace.study.study import Study


def run(study: Study, tell: Callable[[str], None]) -> Result:
    """All answers, in the order of the report."""
    begin = time.perf_counter()
    problem = study.check()
    answers, refused = answered(Work(problem, tell), shown=True)
    return Result(study, problem, answers, time.perf_counter() - begin, refused)


def answered(work: Work, *, shown: bool) -> tuple[dict[str, Answer], dict[str, StudyError]]:
    """The answers by question, and why each of the others is left out.

    With `shown`, what a report shows is made as well. Where no question has an answer, the first
    error is raised.
    """
    answers: dict[str, Answer] = {}
    refused = work.problem.refused
    for question, row in QUESTIONS.items():
        if not work.asks(question):
            continue
        work.tell(f"{question} …")
        try:
            with (work.problem.place / "questions").blamed(f"leave out {question!r}"):
                made = row.answer(work)
                _ = made.parts if shown else ()
            answers[question] = made
        except StudyError as error:
            error.add_note(f"while answering {question!r}")
            refused[question] = error
    if not answers:
        raise next(iter(refused.values()))
    return answers, refused
