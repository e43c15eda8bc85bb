"""ReLU networks as gated linear ones: what neurons can do, what they do, and gates found."""

from neuralrace.reln.discovery import Clusters, Discovery, discover, elbow
from neuralrace.reln.patterns import (
    Patterns,
    is_implementable,
    pattern_count,
    patterns,
    sample_patterns,
)

__all__ = [
    "Clusters",
    "Discovery",
    "Patterns",
    "discover",
    "elbow",
    "is_implementable",
    "pattern_count",
    "patterns",
    "sample_patterns",
]
