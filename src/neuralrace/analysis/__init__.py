"""What was learned: arrays in, arrays out, in float64.

Functions of weights accept the weights of one network, of a run (`run.values["weights"]`, recorded
by `record={"weights": True}`) or of an ensemble. Leading axes, the last of which is time, are kept.
"""

from neuralrace.analysis.kernel import kernel_distance, kernel_travel, tangent_kernel
from neuralrace.analysis.modes import (
    Modes,
    alignment,
    diagonal_share,
    follow_modes,
    projected,
    singular_values,
)
from neuralrace.analysis.representations import Scaling, hidden, mds, similarity

__all__ = [
    "Modes",
    "Scaling",
    "alignment",
    "diagonal_share",
    "follow_modes",
    "hidden",
    "kernel_distance",
    "kernel_travel",
    "mds",
    "projected",
    "similarity",
    "singular_values",
    "tangent_kernel",
]
