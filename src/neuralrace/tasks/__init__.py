"""The papers' tasks and their gatings, and small decision tasks.

A task returns an ungated `Dataset` with labels; a gating takes that dataset and returns
`(arch, data)`. Every number is a parameter, with the papers' values as defaults.
"""

from neuralrace.tasks.attention import in_context_regression
from neuralrace.tasks.classification import (
    contextual_classification,
    pathway_per_context,
    single_pathway,
)
from neuralrace.tasks.combinations import combinations as combinations
from neuralrace.tasks.combinations import modular as modular
from neuralrace.tasks.combinations import split_held_out as split_held_out
from neuralrace.tasks.contextual import (
    all_but_one,
    all_subsets,
    common_and_all_but_one,
    common_and_single,
    contextual,
)
from neuralrace.tasks.decisions import (
    context_decision,
    gaussian,
    parity,
    ring_classification,
    teacher,
    transitive_inference,
)
from neuralrace.tasks.images import Images, images, read_idx
from neuralrace.tasks.natural import answers, natural_gatings
from neuralrace.tasks.routing import (
    circulant_routes,
    random_routes,
    route_matrix,
    route_ratio,
    routing,
    routing_pathways,
)
from neuralrace.tasks.semantics import (
    World,
    chain_world,
    grid_world,
    partition_world,
    ring_world,
    tree_world,
)
from neuralrace.tasks.sequences import (
    common_pathway,
    cued_accumulation,
    delayed_report,
    integration,
    pathway_per_cue,
    recurrent_pathways,
    sequence_teacher,
    sequences,
)
from neuralrace.tasks.structures import (
    crossed_hierarchy,
    hierarchy,
    partition,
    random_tree,
    ring,
    structure,
)
from neuralrace.tasks.xor import extended_xor, linear_pathways, xor, xor_pathways

__all__ = [
    "Images",
    "World",
    "all_but_one",
    "all_subsets",
    "answers",
    "chain_world",
    "circulant_routes",
    "combinations",
    "common_and_all_but_one",
    "common_and_single",
    "common_pathway",
    "context_decision",
    "contextual",
    "contextual_classification",
    "crossed_hierarchy",
    "cued_accumulation",
    "delayed_report",
    "extended_xor",
    "gaussian",
    "grid_world",
    "hierarchy",
    "images",
    "in_context_regression",
    "integration",
    "linear_pathways",
    "modular",
    "natural_gatings",
    "parity",
    "partition",
    "partition_world",
    "pathway_per_context",
    "pathway_per_cue",
    "random_routes",
    "random_tree",
    "read_idx",
    "recurrent_pathways",
    "ring",
    "ring_classification",
    "ring_world",
    "route_matrix",
    "route_ratio",
    "routing",
    "routing_pathways",
    "sequence_teacher",
    "sequences",
    "single_pathway",
    "split_held_out",
    "structure",
    "teacher",
    "transitive_inference",
    "tree_world",
    "xor",
    "xor_pathways",
]
