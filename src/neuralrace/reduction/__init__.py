"""The neural race reduction: shared bases, the block race, start values without a fit."""

from neuralrace.reduction.block import Block as Block
from neuralrace.reduction.initial import Start as Start
from neuralrace.reduction.race import Race as Race
from neuralrace.reduction.race import reduce as reduce
