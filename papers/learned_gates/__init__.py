"""Gates that are learned: figures and claims of our own."""

FIGURES: tuple[str, ...] = ()
"""The modules that have a `FIGURE`."""

__all__ = [*FIGURES]
