"""Figures of Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)."""

__all__ = [
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "staged",
    "table",
    "tour",
]
