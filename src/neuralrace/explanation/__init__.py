"""Which small model explains a ReLU network: all that the package can offer, side by side."""

from neuralrace.explanation.explain import explain
from neuralrace.explanation.table import Explanation, Row

__all__ = [
    "Explanation",
    "Row",
    "explain",
]
