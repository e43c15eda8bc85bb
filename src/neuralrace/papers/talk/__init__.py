"""Figures of Saxe's talk *Models of representation learning dynamics*."""

__all__ = [
    "continual",
    "convolution",
    "delayed_rich",
    "depth",
    "differentiation",
    "early_layers",
    "edge_sharing",
    "error_surface",
    "filters",
    "gating_structures",
    "grokking",
    "lambda_trajectories",
    "regimes",
    "relative_scale",
    "saddles",
    "stages",
    "structures",
    "tour",
    "training_speed",
    "transition",
]
