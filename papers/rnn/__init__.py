"""Linear recurrent networks: figures and claims of our own."""

FIGURES = ("order", "cued")
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
