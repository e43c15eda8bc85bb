"""Sliding gates: those of a neuron that is held at its boundary from both sides."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.tolerances import MARGIN


def held_gates(
    x: Float[np.ndarray, "N d"],
    drive: Float[np.ndarray, " N"],
    gates: Float[np.ndarray, " N"],
    slides: Bool[np.ndarray, " N"],
    guess: Float[np.ndarray, " S"],
    leak: float = 0.0,
) -> Float[np.ndarray, " S"]:
    """The effective gates g of the samples on which a neuron slides.

    Pushed back to w·x_n = 0 from both sides, a neuron is on for a fraction g_n of the time, such
    that on average it does not move across:

        Σ_m g_m drive_m (x_n·x_m) = 0   for every sliding sample n

    (a sliding mode in the sense of Filippov). Samples whose inputs point in the same direction
    have one gate, and those with opposite inputs gates that sum to 1 + leak: exactly one of the
    two is on. Where this does not settle all gates, the solution nearest to `guess` is taken.

    **Arguments:** inputs `x`; `drive`, p_m (a·r_m) with p the sample weights, a the output weights
    and r the residual; `gates` of the samples that do not slide; `slides`, which do.

    **Returns:** one gate per sliding sample, not necessarily between `leak` and 1: outside of
    that range the sample does not slide.
    """
    if not slides.any():
        return np.zeros(0)
    here = x[slides]
    line, side = lines_of(here)
    # on line l the gate is γ_l for inputs on its positive side, and 1 + leak − γ_l on the other
    part = (side[:, None] * (np.arange(line.max() + 1) == line[:, None])).astype(np.float64)
    fixed = np.where(side < 0, 1 + leak, 0.0)
    kernel = (here @ here.T) * drive[slides]
    still = ~slides
    pushed = here @ (x[still].T @ (gates[still] * drive[still])) + kernel @ fixed
    start = np.linalg.lstsq(part, guess - fixed, rcond=None)[0]
    step = np.linalg.lstsq(kernel @ part, -(pushed + kernel @ part @ start), rcond=MARGIN)[0]
    return fixed + part @ (start + step)


def lines_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line through the origin that every input lies on, and on which side of it: 1 or −1."""
    from scipy.spatial import KDTree

    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
    tree = KDTree(unit)
    near, opposite = (tree.query_ball_point(s * unit, MARGIN) for s in (1, -1))
    first = np.array([min(a + b) for a, b in zip(near, opposite, strict=True)], int)
    first = first[first]  # of three inputs in a row, the outer two can be further apart
    line = np.unique(first, return_inverse=True)[1].ravel()
    return line, np.where(np.einsum("nd,nd->n", unit, unit[first]) >= 0, 1, -1)
