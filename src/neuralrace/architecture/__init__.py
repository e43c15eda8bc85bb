"""The graph Γ: nodes, edges, paths, path counting. No arrays."""

from neuralrace.architecture.build import TRANSPOSED as TRANSPOSED
from neuralrace.architecture.build import check_ends as check_ends
from neuralrace.architecture.build import joined as joined
from neuralrace.architecture.graph import BIAS as BIAS
from neuralrace.architecture.graph import Architecture as Architecture
from neuralrace.architecture.graph import Path as Path

__all__ = [
    "Architecture",
    "Path",
]
