"""Gates that are learned: figures and claims of our own."""

FIGURES = ("learners", "phase", "winner", "systematic")
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
