"""Two modalities in one network: a figure and claims of our own."""

FIGURES = ("fusion",)
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
