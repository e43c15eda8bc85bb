"""Learning, written once: *what* is integrated, *how*, and one driver for both.

What: a `System`, such as a network with its data (`systems`). How: a `Stepper`, such as plain
descent or any optax transformation, or gradient flow (`methods`). `take_steps` is the one step
loop, `solve_flow` the one flow. Time is the sum of learning rates in descent and τ = 1 in flow, so
that both share one axis with theory.
"""

from neuralrace.dynamics.ensemble import flow_ensemble as flow_ensemble
from neuralrace.dynamics.ensemble import train_ensemble as train_ensemble
from neuralrace.dynamics.flow import FlowResult as FlowResult
from neuralrace.dynamics.flow import flow as flow
from neuralrace.dynamics.flow import solve_flow as solve_flow
from neuralrace.dynamics.loop import Members as Members
from neuralrace.dynamics.loop import StepResult as StepResult
from neuralrace.dynamics.loop import take_steps as take_steps
from neuralrace.dynamics.loop import unrolled_steps as unrolled_steps
from neuralrace.dynamics.methods import Descent as Descent
from neuralrace.dynamics.methods import Flow as Flow
from neuralrace.dynamics.methods import Optimized as Optimized
from neuralrace.dynamics.methods import Stepper as Stepper
from neuralrace.dynamics.methods import Until as Until
from neuralrace.dynamics.muon import muon as muon
from neuralrace.dynamics.record import Record as Record
from neuralrace.dynamics.schedule import Schedule as Schedule
from neuralrace.dynamics.setup import StoppedError as StoppedError
from neuralrace.dynamics.systems import Batch as Batch
from neuralrace.dynamics.systems import NetworkSystem as NetworkSystem
from neuralrace.dynamics.systems import State as State
from neuralrace.dynamics.systems import System as System
from neuralrace.dynamics.train import train as train

__all__ = [
    "Batch",
    "Descent",
    "Flow",
    "FlowResult",
    "Members",
    "NetworkSystem",
    "Optimized",
    "Record",
    "Schedule",
    "State",
    "StepResult",
    "Stepper",
    "StoppedError",
    "System",
    "Until",
    "flow",
    "flow_ensemble",
    "muon",
    "solve_flow",
    "take_steps",
    "train",
    "train_ensemble",
    "unrolled_steps",
]
