"""The neural race reduction: shared bases, the block race, merged equations, closed forms."""

from neuralrace.reduction.blocks.block import Block as Block
from neuralrace.reduction.equations.closed_form import ClosedForm as ClosedForm
from neuralrace.reduction.equations.mode_form import ModeForm as ModeForm
from neuralrace.reduction.equations.symbols import Variable as Variable
from neuralrace.reduction.modes import ModeTable as ModeTable
from neuralrace.reduction.race import Race as Race
from neuralrace.reduction.race import reduce as reduce
from neuralrace.reduction.solving.initial import Start as Start

__all__ = [
    "Block",
    "ClosedForm",
    "ModeForm",
    "ModeTable",
    "Race",
    "Start",
    "Variable",
    "reduce",
]
