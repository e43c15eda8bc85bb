"""Figures of Saxe's talk *Models of representation learning dynamics*, its first two parts."""

__all__ = [
    "continual",
    "delayed_rich",
    "depth",
    "differentiation",
    "error_surface",
    "lambda_trajectories",
    "regimes",
    "saddles",
    "stages",
    "structures",
    "training_speed",
]
