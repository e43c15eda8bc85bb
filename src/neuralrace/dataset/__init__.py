"""Inputs, targets and gates of samples; gate classes; pathways over a base dataset."""

from neuralrace.dataset.checks import AnyArray as AnyArray
from neuralrace.dataset.checks import GateClasses as GateClasses
from neuralrace.dataset.checks import check_moments as check_moments
from neuralrace.dataset.checks import checked_weight as checked_weight
from neuralrace.dataset.checks import is_concrete as is_concrete
from neuralrace.dataset.matching import check_targets as check_targets
from neuralrace.dataset.matching import matched as matched
from neuralrace.dataset.matching import pathways as pathways
from neuralrace.dataset.matching import with_bias as with_bias
from neuralrace.dataset.matching import zero_loss as zero_loss
from neuralrace.dataset.moments import Moments as Moments
from neuralrace.dataset.samples import Dataset as Dataset
from neuralrace.dataset.samples import Sampled as Sampled
from neuralrace.dataset.samples import check_unweighed as check_unweighed
from neuralrace.dataset.samples import require_samples as require_samples
from neuralrace.dataset.samples import weighed as weighed
from neuralrace.dataset.samples import weighed_by as weighed_by

__all__ = [
    "Dataset",
    "GateClasses",
    "Moments",
    "pathways",
    "zero_loss",
]
