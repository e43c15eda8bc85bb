"""In-context regression in linear attention: a figure and claims of our own."""

FIGURES = ("plateaus",)
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
