"""Style, curves, matrices and graphs: plain arrays and names in, matplotlib axes out."""

from neuralrace.plot.curves import draw_curves, draw_matrix
from neuralrace.plot.graph import draw_graph
from neuralrace.plot.style import COLOURS, style

__all__ = ["COLOURS", "draw_curves", "draw_graph", "draw_matrix", "style"]
