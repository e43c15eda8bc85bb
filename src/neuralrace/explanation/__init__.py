"""What a ReLU network will do, and which small model explains it."""

from neuralrace.explanation.explain import explain
from neuralrace.explanation.predict import predict
from neuralrace.explanation.prediction import Band, Outcome, Prediction, TimeTo
from neuralrace.explanation.table import Explanation, Row

__all__ = [
    "Band",
    "Explanation",
    "Outcome",
    "Prediction",
    "Row",
    "TimeTo",
    "explain",
    "predict",
]
