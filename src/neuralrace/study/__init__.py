"""Studies: a question in a file, its answers, and a report on them."""

from neuralrace.study.again import Rewritten, write_again
from neuralrace.study.answers import Answer
from neuralrace.study.build import Problem
from neuralrace.study.document import LIMITS, value_of
from neuralrace.study.files import read_masks, read_table, read_task
from neuralrace.study.naming import feature_names
from neuralrace.study.new import draft, new_study
from neuralrace.study.places import StudyError
from neuralrace.study.questions import OUTPUTS, QUESTIONS
from neuralrace.study.result import Result
from neuralrace.study.study import Study
from neuralrace.study.sweeping import STORE, SweepResult
from neuralrace.study.targets import GATINGS, TASKS
from neuralrace.study.work import Work

__all__ = [
    "GATINGS",
    "LIMITS",
    "OUTPUTS",
    "QUESTIONS",
    "STORE",
    "TASKS",
    "Answer",
    "Problem",
    "Result",
    "Rewritten",
    "Study",
    "StudyError",
    "SweepResult",
    "Work",
    "draft",
    "feature_names",
    "new_study",
    "read_masks",
    "read_table",
    "read_task",
    "value_of",
    "write_again",
]
