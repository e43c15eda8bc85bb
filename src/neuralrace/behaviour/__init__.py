"""Learning from rewards with several teaching signals (Talk, "A Deep RL Neural Network").

An `Agent` is a network whose edges each name the loss that trains them, with a policy. It is a
`Network`: `nr.flow` and `nr.flow_ensemble` solve its learning on average, `train_by_trials` draws
stimuli, choices and rewards one by one.
"""

from neuralrace.behaviour.agent import Agent as Agent
from neuralrace.behaviour.decisions import decision_task as decision_task
from neuralrace.behaviour.decisions import deep_agent as deep_agent
from neuralrace.behaviour.decisions import shallow_agent as shallow_agent
from neuralrace.behaviour.points import Route as Route
from neuralrace.behaviour.points import StationaryPoint as StationaryPoint
from neuralrace.behaviour.policies import EpsilonGreedy as EpsilonGreedy
from neuralrace.behaviour.policies import Softmax as Softmax
from neuralrace.behaviour.stationary import Rest as Rest
from neuralrace.behaviour.stationary import StationaryPoints as StationaryPoints
from neuralrace.behaviour.stationary import stationary_points as stationary_points
from neuralrace.behaviour.strategies import STRATEGIES as STRATEGIES
from neuralrace.behaviour.strategies import Correlation as Correlation
from neuralrace.behaviour.strategies import correct as correct
from neuralrace.behaviour.strategies import rank_correlation as rank_correlation
from neuralrace.behaviour.strategies import sensitivity as sensitivity
from neuralrace.behaviour.strategies import strategies as strategies
from neuralrace.behaviour.trials import train_by_trials as train_by_trials

__all__ = [
    "STRATEGIES",
    "Agent",
    "Correlation",
    "EpsilonGreedy",
    "Rest",
    "Route",
    "Softmax",
    "StationaryPoint",
    "StationaryPoints",
    "correct",
    "decision_task",
    "deep_agent",
    "rank_correlation",
    "sensitivity",
    "shallow_agent",
    "stationary_points",
    "strategies",
    "train_by_trials",
]
