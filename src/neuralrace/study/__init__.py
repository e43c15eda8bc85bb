"""Studies: a question in a file, its answers, and a report on them."""

from neuralrace.study.document import value_of
from neuralrace.study.files import read_masks, read_table, read_task
from neuralrace.study.places import StudyError
from neuralrace.study.study import Study

__all__ = ["Study", "StudyError", "read_masks", "read_table", "read_task", "value_of"]
