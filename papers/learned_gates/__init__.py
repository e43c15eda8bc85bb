"""Gates that are learned: figures and claims of our own."""

FIGURES = ("learners", "phase", "winner")
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
