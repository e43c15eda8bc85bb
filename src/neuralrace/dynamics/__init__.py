"""Learning, written once: *what* is integrated, *how*, and one driver for both.

What: a `System`, such as a network with its data (`systems`). How: plain descent, any optax
transformation, or gradient flow (`methods`). Time is the sum of learning rates in descent and
τ = 1 in flow, so that both share one axis with theory.
"""

from neuralrace.dynamics.ensemble import flow_ensemble as flow_ensemble
from neuralrace.dynamics.ensemble import train_ensemble as train_ensemble
from neuralrace.dynamics.flow import flow as flow
from neuralrace.dynamics.record import Record as Record
from neuralrace.dynamics.setup import StoppedError as StoppedError
from neuralrace.dynamics.train import train as train

__all__ = [
    "Record",
    "StoppedError",
    "flow",
    "flow_ensemble",
    "train",
    "train_ensemble",
]
