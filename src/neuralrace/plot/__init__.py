"""Style, curves, matrices and graphs: plain arrays and names in, matplotlib axes out."""

from neuralrace.plot.activity import draw_raster, draw_reach, draw_shares
from neuralrace.plot.curves import draw_curves, draw_matrix
from neuralrace.plot.graph import GraphLayout, draw_graph, graph_layout
from neuralrace.plot.look import FORMATS, Look, current_look, look, picture_bytes
from neuralrace.plot.style import (
    COLOURS,
    DASHES,
    SHADES,
    colour_places,
    cycle_colour,
    is_lone,
    is_unpaired,
    letter_panels,
    mark_line,
    shade,
    style,
)

__all__ = [
    "COLOURS",
    "DASHES",
    "FORMATS",
    "SHADES",
    "GraphLayout",
    "Look",
    "colour_places",
    "current_look",
    "cycle_colour",
    "draw_curves",
    "draw_graph",
    "draw_matrix",
    "draw_raster",
    "draw_reach",
    "draw_shares",
    "graph_layout",
    "is_lone",
    "is_unpaired",
    "letter_panels",
    "look",
    "mark_line",
    "picture_bytes",
    "shade",
    "style",
]
