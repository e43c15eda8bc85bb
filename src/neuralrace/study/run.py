"""Running a study in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralrace.study.answers import ANSWERS
from neuralrace.study.places import StudyError
from neuralrace.study.result import Result
from neuralrace.study.work import Work

if TYPE_CHECKING:
    from neuralrace.study.study import Study


def run(study: Study, tell: Callable[[str], None]) -> Result:
    """All answers, in the order of the report."""
    begin = time.perf_counter()
    problem = study.check()
    work = Work(problem, tell)
    answers = {}
    for question, answer in ANSWERS.items():
        if question not in study.settings.questions:
            continue
        tell(f"{question} …")
        try:
            with (problem.place / "questions").blamed(f"leave out {question!r}"):
                answers[question] = answer(work)
                _ = answers[question].parts  # what cannot be shown is an error of this question
        except StudyError as error:
            error.add_note(f"while answering {question!r}")
            raise
    return Result(study, problem, answers, time.perf_counter() - begin)
