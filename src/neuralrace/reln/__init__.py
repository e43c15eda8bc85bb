"""ReLU networks as gated ones: what neurons can do, what they do, and the gates found in them."""

from neuralrace.reln.activity import Activity, Switches, activity
from neuralrace.reln.alignment import AlignedPatterns, aligned, aligned_patterns
from neuralrace.reln.certificate import Certificate, certify, evidence
from neuralrace.reln.clusters import Clusters
from neuralrace.reln.consistency import Consistency, consistency
from neuralrace.reln.discovery import Discovery, discover, elbow
from neuralrace.reln.horizon import Horizons, Stages, copied_gates, horizons
from neuralrace.reln.patterns import (
    Patterns,
    is_implementable,
    pattern_count,
    patterns,
    sample_patterns,
)
from neuralrace.reln.pictures import draw_activity
from neuralrace.reln.refinement import refine
from neuralrace.reln.shares import Shares, subsets

__all__ = [
    "Activity",
    "AlignedPatterns",
    "Certificate",
    "Clusters",
    "Consistency",
    "Discovery",
    "Horizons",
    "Patterns",
    "Shares",
    "Stages",
    "Switches",
    "activity",
    "aligned",
    "aligned_patterns",
    "certify",
    "consistency",
    "copied_gates",
    "discover",
    "draw_activity",
    "elbow",
    "evidence",
    "horizons",
    "is_implementable",
    "pattern_count",
    "patterns",
    "refine",
    "sample_patterns",
    "subsets",
]
