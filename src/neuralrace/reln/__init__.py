"""ReLU networks as gated ones: what neurons can do, what they do, and the gates found in them."""

from neuralrace.reln.activity import Activity, Switches, activity
from neuralrace.reln.alignment import AlignedPatterns, aligned, aligned_patterns
from neuralrace.reln.certificate import Certificate, certify, evidence
from neuralrace.reln.clusters import Clusters
from neuralrace.reln.consistency import Consistency, consistency
from neuralrace.reln.discovery import Discovery, discover, elbow
from neuralrace.reln.horizon import Horizons, Stages, copied_gates, horizons
from neuralrace.reln.neuron_types import NeuronTypes, types
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
from neuralrace.reln.sliding import SlidingGates, sliding_gates
from neuralrace.reln.staged import staged
from neuralrace.reln.symmetries import Symmetries, symmetries
from neuralrace.reln.timeline import Event
from neuralrace.reln.type_stages import TypeStage, TypeStages

__all__ = [
    "Activity",
    "AlignedPatterns",
    "Certificate",
    "Clusters",
    "Consistency",
    "Discovery",
    "Event",
    "Horizons",
    "NeuronTypes",
    "Patterns",
    "Shares",
    "SlidingGates",
    "Stages",
    "Switches",
    "Symmetries",
    "TypeStage",
    "TypeStages",
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
    "sliding_gates",
    "staged",
    "subsets",
    "symmetries",
    "types",
]
