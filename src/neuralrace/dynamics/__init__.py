"""Simulation: full-batch gradient descent, gradient flow, and ensembles of descents.

Each is one compiled program that keeps only what it is asked to record. Time is
`learning_rate · step` in descent and τ = 1 in flow, so that both share one axis with theory.
"""

from neuralrace.dynamics.descent import train as train
from neuralrace.dynamics.ensemble import train_ensemble as train_ensemble
from neuralrace.dynamics.flow import flow as flow
from neuralrace.dynamics.setup import Record as Record
from neuralrace.dynamics.setup import StoppedError as StoppedError
