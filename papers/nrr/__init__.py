"""Figures of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

FIGURES = (*(f"fig{number}" for number in range(1, 11)), "appendix_a2")
"""The modules that have a `FIGURE`, in the order of the paper."""

__all__ = [*FIGURES, "image_routes", "transition"]
