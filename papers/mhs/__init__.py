"""Figures of Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)."""

FIGURES = tuple(f"fig{number}" for number in range(1, 10))
"""The modules that have a `FIGURE`, in the order of the paper."""

__all__ = [*FIGURES, "staged", "table", "tour"]
