"""ReLU networks as gated ones: what neurons can do, what they do, and the gates found in them."""

from neuralrace.reln.explained.aligned import aligned
from neuralrace.reln.explained.alignment import AlignedPatterns, aligned_patterns
from neuralrace.reln.explained.certificate import Certificate, certify
from neuralrace.reln.explained.clusters import Clusters, Sampling
from neuralrace.reln.explained.consistency import Consistency, consistency
from neuralrace.reln.explained.discovery import Discovery, discover, elbow
from neuralrace.reln.explained.refinement import refine
from neuralrace.reln.explained.types.neuron_types import NeuronTypes, types
from neuralrace.reln.explained.types.rare import Rest
from neuralrace.reln.explained.types.sliding import SlidingGates, sliding_gates, sliding_over
from neuralrace.reln.explained.types.staged import staged
from neuralrace.reln.explained.types.symmetries import Symmetries, symmetries
from neuralrace.reln.explained.types.timeline import Event
from neuralrace.reln.explained.types.type_stages import TypeStage, TypeStages
from neuralrace.reln.observed.activity import Activity, Switches, activity
from neuralrace.reln.observed.evidence import copied_gates, evidence
from neuralrace.reln.observed.horizons import Horizons, Stages, horizons
from neuralrace.reln.observed.pictures import draw_activity
from neuralrace.reln.observed.shares import Shares, subsets
from neuralrace.reln.possible.patterns import (
    Patterns,
    is_implementable,
    pattern_count,
    patterns,
    sample_patterns,
)

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
    "Rest",
    "Sampling",
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
    "sliding_over",
    "staged",
    "subsets",
    "symmetries",
    "types",
]
