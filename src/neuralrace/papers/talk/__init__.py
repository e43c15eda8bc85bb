"""Figures of Saxe's talk *Models of representation learning dynamics*, its first two parts."""

__all__ = [
    "continual",
    "decisions",
    "deep_and_shallow",
    "delayed_rich",
    "depth",
    "differentiation",
    "error_surface",
    "lambda_trajectories",
    "regimes",
    "saddle_graph",
    "saddles",
    "stages",
    "structures",
    "training_speed",
]
