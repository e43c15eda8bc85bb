"""ReLU networks as gated linear ones: what neurons can do, what they do, and gates found."""

from neuralrace.reln.patterns import (
    Patterns,
    is_implementable,
    pattern_count,
    patterns,
    sample_patterns,
)

__all__ = ["Patterns", "is_implementable", "pattern_count", "patterns", "sample_patterns"]
