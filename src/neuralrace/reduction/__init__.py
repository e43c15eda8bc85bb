"""The neural race reduction: shared bases, the block race, merged equations, closed forms."""

from neuralrace.reduction.block import Block as Block
from neuralrace.reduction.closed_form import ClosedForm as ClosedForm
from neuralrace.reduction.coupled import Stage as Stage
from neuralrace.reduction.mode_form import ModeForm as ModeForm
from neuralrace.reduction.modes import ModeTable as ModeTable
from neuralrace.reduction.race import Race as Race
from neuralrace.reduction.race import reduce as reduce
from neuralrace.reduction.rules import Property as Property
from neuralrace.reduction.rules import RuleCheck as RuleCheck
from neuralrace.reduction.rules import keeps_blocks as keeps_blocks
from neuralrace.reduction.specialisation import Splits as Splits
from neuralrace.reduction.specialisation import race_of as race_of
from neuralrace.reduction.specialisation import splits as splits
from neuralrace.reduction.start import Start as Start
from neuralrace.reduction.symbols import Variable as Variable
from neuralrace.reduction.system import RaceSystem as RaceSystem

__all__ = [
    "Block",
    "ClosedForm",
    "ModeForm",
    "ModeTable",
    "Property",
    "Race",
    "RaceSystem",
    "RuleCheck",
    "Splits",
    "Stage",
    "Start",
    "Variable",
    "keeps_blocks",
    "race_of",
    "reduce",
    "splits",
]
