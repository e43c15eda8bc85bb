"""What learning sees of the data: Σ^yx(p) and Σ^x(j,p), and the gradient flow through them.

NRR Eqs. 2–6, MHS Eqs. 3–4. Everything here is float64 NumPy.
"""

from neuralrace.statistics.factor import ClassFactor as ClassFactor
from neuralrace.statistics.factor import class_factor as class_factor
from neuralrace.statistics.factor import reachable as reachable
from neuralrace.statistics.factor import restricted as restricted
from neuralrace.statistics.factor import threads_for as threads_for
from neuralrace.statistics.nodes import JoinedNodes as JoinedNodes
from neuralrace.statistics.nodes import Place as Place
from neuralrace.statistics.nodes import SplitNetwork as SplitNetwork
from neuralrace.statistics.nodes import cut_out as cut_out
from neuralrace.statistics.nodes import join_nodes as join_nodes
from neuralrace.statistics.nodes import split_neurons as split_neurons
from neuralrace.statistics.paths import PathGroup as PathGroup
from neuralrace.statistics.paths import PathStatistics as PathStatistics
from neuralrace.statistics.paths import factored_statistics as factored_statistics
from neuralrace.statistics.paths import path_statistics as path_statistics

__all__ = [
    "PathGroup",
    "PathStatistics",
    "path_statistics",
]
