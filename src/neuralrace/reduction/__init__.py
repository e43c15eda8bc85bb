"""The neural race reduction: shared bases, the block race, merged equations, closed forms."""

from neuralrace.reduction.block import Block as Block
from neuralrace.reduction.closed_form import ClosedForm as ClosedForm
from neuralrace.reduction.closed_form import ModeForm as ModeForm
from neuralrace.reduction.equations import Variable as Variable
from neuralrace.reduction.initial import Start as Start
from neuralrace.reduction.limit import deep_limit as deep_limit
from neuralrace.reduction.race import Race as Race
from neuralrace.reduction.race import reduce as reduce

__all__ = [
    "Block",
    "ClosedForm",
    "ModeForm",
    "Race",
    "Start",
    "Variable",
    "deep_limit",
    "reduce",
]
