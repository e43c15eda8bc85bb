"""Deep linear networks: the λ-balanced solution, sequences of tasks, saddles, learning times."""

from neuralrace.linear.balanced import Balance as Balance
from neuralrace.linear.balanced import aligned_weights as aligned_weights
from neuralrace.linear.balanced import balance as balance
from neuralrace.linear.balanced import balanced_weights as balanced_weights
from neuralrace.linear.balanced import grown_weights as grown_weights
from neuralrace.linear.chain import Plateau as Plateau
from neuralrace.linear.chain import Visit as Visit
from neuralrace.linear.chain import chain_time as chain_time
from neuralrace.linear.chain import deep_limit as deep_limit
from neuralrace.linear.chain import leading_time as leading_time
from neuralrace.linear.chain import maps_of as maps_of
from neuralrace.linear.chain import mode_strengths as mode_strengths
from neuralrace.linear.chain import plateaus as plateaus
from neuralrace.linear.exact import lambda_balanced as lambda_balanced
from neuralrace.linear.exact import task_sequence as task_sequence
from neuralrace.linear.saddles import Escape as Escape
from neuralrace.linear.saddles import Saddle as Saddle
from neuralrace.linear.saddles import Saddles as Saddles
from neuralrace.linear.saddles import saddles as saddles

__all__ = [
    "Balance",
    "Escape",
    "Plateau",
    "Saddle",
    "Saddles",
    "Visit",
    "aligned_weights",
    "balance",
    "balanced_weights",
    "chain_time",
    "deep_limit",
    "grown_weights",
    "lambda_balanced",
    "leading_time",
    "maps_of",
    "mode_strengths",
    "plateaus",
    "saddles",
    "task_sequence",
]
