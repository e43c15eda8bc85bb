"""Figures of Saxe's talk *Models of representation learning dynamics*."""

FIGURES = (
    "depth",
    "error_surface",
    "stages",
    "training_speed",
    "structures",
    "differentiation",
    "saddles",
    "decisions",
    "saddle_graph",
    "deep_and_shallow",
    "lambda_trajectories",
    "regimes",
    "delayed_rich",
    "continual",
    "early_layers",
    "grokking",
    "gating_structures",
    "edge_sharing",
    "transition",
)
"""The modules that have a `FIGURE`, in the order of the talk."""

__all__ = [*FIGURES, "convolution", "filters", "relative_scale", "tour"]
