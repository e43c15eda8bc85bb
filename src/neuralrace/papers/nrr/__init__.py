"""Figures of Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)."""

__all__ = [
    "appendix_a2",
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "fig10",
    "image_routes",
    "transition",
]
