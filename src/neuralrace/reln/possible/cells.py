"""The cells into which inputs cut the space of a neuron's weights, and weights inside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.errors import NeuralRaceError
from neuralrace.tolerances import DEGENERATE, LINEAR_PROGRAM, MARGIN, VANISHING

SCALINGS = 3
"""How often inputs and features are scaled in turn; the orthonormal basis does the rest."""

PRECISE = {f"{side}_feasibility_tolerance": LINEAR_PROGRAM for side in ("primal", "dual")}
"""Options of the linear program."""


@final
@dataclass(frozen=True)
class Lines:
    """Different inputs, in coordinates of one scale, and which samples they stand for.

    Sample n lies on `x[line[n]]`, on the side `side[n]` of it: 1, −1, or 0 where it vanishes.
    Opposite inputs share a line unless cells are closed, where both can be off. Weights w in
    these coordinates are `basis.T @ w` for the inputs as they were given.
    """

    x: Float[np.ndarray, "m r"]
    basis: Float[np.ndarray, "r d"]
    line: Int[np.ndarray, " N"]
    side: Int[np.ndarray, " N"]
    off_margin: float

    @staticmethod
    def of(given: Float[np.ndarray, "N d"], bias: bool, closed: bool) -> Lines:
        """The lines of the inputs `given`; with a `bias`, the last weight is that of the bias."""
        unit, basis, live = _on_one_scale(given, bias)
        line, side = np.zeros(len(given), int), np.zeros(len(given), int)
        kept: list[int] = []
        for n in np.flatnonzero(live):
            cosine = unit[kept] @ unit[n]
            near = np.linalg.norm(unit[kept] - np.sign(cosine)[:, None] * unit[n], axis=1) <= MARGIN
            near &= (cosine > 0) | (not closed)
            if near.any():
                line[n] = int(np.argmax(near))
                side[n] = int(np.sign(cosine[line[n]]))
            else:
                line[n], side[n] = len(kept), 1
                kept.append(int(n))
        return Lines(unit[kept], basis, line, side, 0.0 if closed else 1.0)

    def patterns(self, signs: Bool[np.ndarray, "P m"]) -> Bool[np.ndarray, "P N"]:
        """The pattern on all samples of a pattern on the lines."""
        if not len(self.x):
            return np.zeros((len(signs), len(self.line)), bool)
        return (signs[:, self.line] == (self.side > 0)) & (self.side != 0)

    def signs(self, on: Bool[np.ndarray, " N"]) -> Bool[np.ndarray, " m"]:
        """The pattern on the lines, read off the first sample that lies on each."""
        first = [np.argmax((self.line == m) & (self.side > 0)) for m in range(len(self.x))]
        return on[np.array(first, int)]

    def weights(self, w: Float[np.ndarray, "P r"]) -> Float[np.ndarray, "P d"]:
        return w @ self.basis


def _on_one_scale(
    given: Float[np.ndarray, "N d"], bias: bool
) -> tuple[Float[np.ndarray, "N r"], np.ndarray, Bool[np.ndarray, " N"]]:
    """Every input as a unit vector in coordinates that all inputs use alike.

    Patterns do not change under an invertible map of the features, a positive factor of any
    input, or, with a bias, another origin. So the features are centred where there is a bias,
    features and inputs are divided by their sizes in turn, and the features are replaced by an
    orthonormal basis of the functions of the samples that they span. Returns the unit vectors,
    the matrix that leads from weights there to weights for `given`, and which inputs are not zero.
    """
    middle = given.mean(axis=0) if bias else np.zeros(given.shape[1])
    table = given - middle
    if bias:
        table = np.hstack([table, np.ones((len(table), 1))])
    size = np.abs(table).max(axis=0, initial=0.0)
    table = table / np.where(size > 0, size, 1.0)
    live = np.abs(table).max(axis=1) > VANISHING
    table = np.where(live[:, None], table, 0.0)
    for _ in range(SCALINGS):
        table = table / np.where(live, np.linalg.norm(table, axis=1), 1.0)[:, None]
        again = np.abs(table).max(axis=0, initial=0.0)
        again = np.where(again > 0, again, 1.0)
        table, size = table / again, size * again
    left, values, right = np.linalg.svd(table, full_matrices=False)
    keep = values > DEGENERATE * values.max(initial=0)
    back = right[keep] / values[keep, None] / np.where(size > 0, size, 1.0)
    if bias:
        back[:, -1] -= back[:, :-1] @ middle
    unit = left[:, keep]
    norm = np.linalg.norm(unit, axis=1, keepdims=True)
    return unit / np.where(norm > 0, norm, 1.0), back, live


def enumerated(
    lines: Lines, limit: int, bound: int, is_exact: bool
) -> tuple[Bool[np.ndarray, "P m"], Float[np.ndarray, "P r"]]:
    """All sign patterns on the lines, each with weights inside its cell.

    Where cells are open, −w has the opposite pattern of w: only the half with the first
    line on is searched.
    """
    mirrored = lines.off_margin > 0 and len(lines.x) > 0
    if mirrored:
        on, weights = np.ones((1, 1), bool), lines.x[:1].copy()
    else:
        on, weights = np.zeros((1, 0), bool), np.zeros((1, lines.x.shape[1]))
    for k in range(on.shape[1], len(lines.x)):
        x = lines.x[: k + 1]
        if lines.off_margin > 0:
            weights = _off_the_plane(x, weights)
        here = weights @ x[k] > MARGIN * np.linalg.norm(weights, axis=1)
        there = np.hstack([on, ~here[:, None]])
        found = _other_side(x, there, weights, lines.off_margin)
        kept = np.isfinite(found).all(axis=1)
        on = np.concatenate([np.hstack([on, here[:, None]]), there[kept]])
        weights = np.concatenate([weights, found[kept]])
        if (1 + mirrored) * len(on) > limit:
            got = f"{(1 + mirrored) * len(on):,} patterns on the first {k + 1} different inputs"
            raise too_many(got, bound, is_exact, limit)
    if mirrored:
        on, weights = np.concatenate([on, ~on]), np.concatenate([weights, -weights])
    return on, weights


def _off_the_plane(x: Float[np.ndarray, "k r"], w: Float[np.ndarray, "P r"]) -> np.ndarray:
    """The weights, moved within their cell where they lie on the plane of the newest input."""
    z = np.abs(w @ x.T)
    on_it = z[:, -1] <= 10 * MARGIN * np.linalg.norm(w, axis=1)
    return w + np.where(on_it, z[:, :-1].min(axis=1) / 2, 0.0)[:, None] * x[-1]


def _other_side(
    x: Float[np.ndarray, "k r"],
    on: Bool[np.ndarray, "P k"],
    weights: Float[np.ndarray, "P r"],
    off_margin: float,
    at_once: int = 32,
) -> Float[np.ndarray, "P r"]:
    """Weights with each of these patterns, NaN where there are none.

    All open patterns are relaxed from the weights of the neighbouring cell; then linear programs
    settle a few of them, and their proofs close many others. This is repeated until none is open.
    """
    found = np.full(weights.shape, np.nan)
    open_ = np.arange(len(on))
    start = weights - 2 * (weights @ x[-1])[:, None] * x[-1]
    while len(open_):
        start[open_] = _relaxed(x, on[open_], start[open_], off_margin)
        inside = _is_inside(x, on[open_], start[open_], off_margin)
        found[open_[inside]] = start[open_[inside]]
        open_ = open_[~inside]
        for _ in range(at_once):
            if not len(open_):
                break
            first, open_ = open_[0], open_[1:]
            w, proof = solved(x, on[first], off_margin)
            if w is not None:
                found[first] = w
                continue
            same = (on[open_][:, proof] == on[first, proof]).all(axis=1)
            if off_margin > 0:
                same |= (on[open_][:, proof] != on[first, proof]).all(axis=1)
            open_ = open_[~same]
    return found


def _relaxed(
    x: np.ndarray, on: np.ndarray, w: np.ndarray, off_margin: float, steps: int = 60
) -> np.ndarray:
    """Agmon's relaxation: over and over, reflect at the most violated inequality.

    Inequalities are ±w·x ≥ a small margin of ‖w‖; weights that meet all of them stand still.
    """
    w = w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), MARGIN)
    signs = np.where(on, 1.0, -1.0)
    margin = np.where(on, 1.0, off_margin) / (4 * len(x))
    moving = np.arange(len(w))
    for _ in range(steps):
        slack = signs[moving] * (w[moving] @ x.T) - margin[moving]
        worst = slack.argmin(axis=1)
        least = slack[np.arange(len(moving)), worst]
        going = least < 0
        moving, worst, least = moving[going], worst[going], least[going]
        if not len(moving):
            break
        w[moving] -= (2 * least * signs[moving, worst])[:, None] * x[worst]
    return w


def _is_inside(x: np.ndarray, on: np.ndarray, w: np.ndarray, off_margin: float) -> np.ndarray:
    """Whether the weights have the pattern, by more than rounding."""
    z = w @ x.T
    size = 10 * MARGIN * np.linalg.norm(w, axis=1, keepdims=True)
    return (np.where(on, z, -z) > np.where(on, size, off_margin * size)).all(axis=1) & (
        (size[:, 0] > 0) | ~on.any(axis=1)
    )


def solved(
    x: Float[np.ndarray, "k r"], on: Bool[np.ndarray, " k"], off_margin: float
) -> tuple[Float[np.ndarray, " r"] | None, Int[np.ndarray, " s"]]:
    """Weights with this pattern, or `None` and the samples that prove that there are none.

    Maximise t with w·x ≥ t where on, −w·x ≥ t where off (≥ 0 where cells are closed), |w| ≤ 1 in
    every coordinate. The multipliers of a program with t = 0 are the proof: non-negative numbers λ,
    at most r + 1 of them above zero, with Σ ±λ x = 0.
    """
    from scipy.optimize import linprog

    count, rank = x.shape
    if not count or (off_margin == 0 and not on.any()):
        return np.zeros(rank), np.zeros(0, int)
    signed = np.where(on, 1.0, -1.0)[:, None] * x
    rows = np.hstack([-signed, np.where(on, 1.0, off_margin)[:, None]])
    limits = [(-1, 1)] * rank + [(0, 1)]
    done: Any = linprog(
        np.append(np.zeros(rank), -1.0), A_ub=rows, b_ub=np.zeros(count), bounds=limits,
        method="highs-ds", options=PRECISE,
    )  # fmt: skip
    if done.x[-1] > MARGIN:
        return done.x[:rank], np.zeros(0, int)
    weight = -np.asarray(done.ineqlin.marginals)
    proof = np.flatnonzero(weight > MARGIN * weight.max())
    rest = np.linalg.norm(weight[proof] @ signed[proof])
    if rest > math.sqrt(MARGIN) * weight.max():
        proof = np.arange(count)  # rounding: it rules out this pattern only
    return None, proof


def too_many(got: str, bound: int, is_exact: bool, limit: int) -> NeuralRaceError:
    there = "there are" if is_exact else "there may be up to"
    return NeuralRaceError(
        "there are too many patterns to list",
        got=f"{got}; {there} {bound:,}",
        wanted=f"at most {limit:,}",
        fix="use sample_patterns(X), or raise limit where memory allows",
    )
