"""The explicit solution of one pathway: its strength over time, and the inverse function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from neuralrace.checks import real_array
from neuralrace.door import door
from neuralrace.dynamics.systems import Law
from neuralrace.errors import require
from neuralrace.reduction.block import Block
from neuralrace.reduction.merging import MonomialRace, block_system, recognised
from neuralrace.reduction.polynomial import PolynomialSystem
from neuralrace.reduction.symbols import decays_of, mode_formula
from neuralrace.tolerances import CONVERGED, LEARNED_LOGIT, NOISE, TINY
from neuralrace.types import ArrayLike, Matrix

if TYPE_CHECKING:
    import sympy

Values = np.ndarray | np.floating
"""Numbers in float64, one or many."""

SHOWN = 8
"""How many modes, blocks or failures of an assumption are shown one by one."""


NEWTON_STEPS = 200
"""The most steps of Newton's method for z; from a tiny start it must double z many times."""

INVERSE_STEPS = 50
"""The most steps of Newton's method for w, which starts from a table."""

PANEL = 0.5
"""The length in w of one panel of the quadrature."""

ORDER = 12
"""The points of the quadrature in each panel: its error is below rounding.

dt/dw is analytic up to a distance of π/2 from the real axis, six times half of a panel.
"""

SHALLOW = 6
"""Panels of pathways with more edges than this are shorter."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModeForm:
    """The solution of one mode: its pathway strength M(t), its variables, and the inverse of M(t).

    Assumes gradient flow (τ = 1) from `start`, the values of the variables at t = 0. `kind` names
    the type of solution; `formula` is the solution in SymPy. s and d are the coefficients of
    db_k/dt = γ_k (M/b_k)(s − d M), the largest rate γ_k being 1 (`race.S`, `race.D`).

    ```python
    >>> import neuralrace as nr
    >>> data = nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]})
    >>> race = nr.reduce(nr.Architecture.chain(1, 1, 1, 1), data)
    >>> mode = race.closed_form(0.1).modes["mode1"]
    >>> mode.kind, mode.final, mode.time_to(1.0).round(4), mode.value(mode.time_to(1.0)).round(9)
    ('quadrature', 2.0, np.float64(4.6613), np.float64(1.0))
    >>> mode
    ModeForm(quadrature, 3 edges, s = 2, d = 1, strength 0.001 → 2)

    ```
    """

    race: MonomialRace
    start: tuple[float, ...]
    names: tuple[str, ...]
    system: PolynomialSystem

    # ---- what it is ----------------------------------------------------------------------------

    @cached_property
    def kind(self) -> str:
        """`"exponential"`, `"logistic"`, `"unbalanced"` (explicit) or `"quadrature"`."""
        if self.race.depth == 1:
            return "exponential"
        if self.race.depth == 2:
            return "logistic" if self._is_balanced else "unbalanced"
        return "quadrature"

    @property
    def assumes(self) -> str:
        """What the solution assumes."""
        balance = "equal edges" if self._is_balanced else "any start of positive strength"
        return f"gradient flow, one pathway of {self.race.depth} edges, {balance}"

    @property
    def _is_balanced(self) -> bool:
        scaled = np.array(self.start) ** 2 / np.array(self.race.rates)
        return bool(np.ptp(scaled) <= NOISE * scaled.max())

    @property
    def initial(self) -> float:
        """M(0)."""
        return float(np.prod(np.array(self.start) ** np.array(self.race.powers)))

    @property
    def final(self) -> float:
        """M(∞) = S/D, or infinity without a brake."""
        return self.race.S / self.race.D if self.race.D else np.inf

    # ---- values --------------------------------------------------------------------------------

    @door
    def value(self, t: ArrayLike) -> Values:
        """The pathway strength M(t)."""
        time = _times(t)
        if self.kind == "exponential":
            rate, limit = self._exponential
            return limit + (self.start[0] - limit) * np.exp(-rate * time)
        if self.kind == "logistic":
            return self._logistic(time)
        if self.kind == "unbalanced":
            return self._unbalanced(time)
        return self.final * np.exp(self._log_left(self._inverted(time)))

    @door
    def variables(self, t: ArrayLike) -> dict[str, Values]:
        """Every variable at the times t."""
        if self.race.depth == 1:
            return {self.names[0]: self.value(t)}
        if self.kind == "quadrature":
            squares = self._squares(self._inverted(_times(t)))
        else:
            rates, k, M = np.array(self.race.rates), self._ratios[0], self.value(t) / self._pace
            least = M * (2 * M / (k + np.hypot(k, 2 * M)))  # of the two b²/γ, which differ by k
            more = np.array(self.start) ** 2 / rates
            squares = (more - more.min() + np.expand_dims(least, -1)) * rates
        roots = np.sqrt(np.maximum(squares, 0.0)) * np.where(np.array(self.start) < 0, -1.0, 1.0)
        return {name: roots[..., k] for k, name in enumerate(self.names)}

    @door
    def loss(self, t: ArrayLike) -> Values:
        """The loss of the mode's block."""
        found = self.variables(t)
        return self.system.loss_at(np.stack([found[name] for name in self.names], axis=-1))

    @door
    def time_to(self, value: ArrayLike) -> Values:
        """The time at which M(t) reaches a value: the inverse of `value`.

        Infinite for values at or beyond the fixed point, NaN for values before the start.
        """
        strength = real_array("value", value, fix="pass strengths between initial and final")
        begin, end = self.initial, self.final
        way = (strength - begin) / (end - begin) if np.isfinite(end) else strength - begin
        inside = (way >= 0) & ((way < 1) | np.isinf(end))
        safe = np.where(inside, strength, begin)
        if self.kind == "exponential":
            rate, limit = self._exponential
            found = np.log((self.start[0] - limit) / (safe - limit)) / rate
        elif self.kind == "logistic":
            growth = 2 * self._pace * self.race.S
            found = np.log((end / begin - 1) / (end / safe - 1)) / growth
        elif self.kind == "unbalanced":
            found = self._unbalanced_time(safe)
        else:
            found = self._passed(self._place(safe))[0]
        return np.where(inside, found, np.where(way >= 1, np.inf, np.nan))

    # ---- the explicit ones ---------------------------------------------------------------------

    @property
    def _exponential(self) -> tuple[float, float]:
        return self.race.D, self.final

    @property
    def _pace(self) -> float:
        """√(γ₁γ₂), the speed of a two-edge pathway relative to one with γ = 1."""
        rates = [
            r for r, n in zip(self.race.rates, self.race.powers, strict=True) for _ in range(n)
        ]
        return float(np.sqrt(np.prod(rates)))

    def _logistic(self, t: Values) -> Values:
        """(S/D) / (1 − (1 − S/(D a₀)) e^{−2St}), with t scaled by `_pace` (NRR Eq. 21)."""
        decay = np.exp(-2 * self._pace * self.race.S * t)
        return self.final / (1 - (1 - self.final / self.initial) * decay)

    @property
    def _ratios(self) -> tuple[float, float, float, float, float, float]:
        """k and ω; u at the start and at the end; and (1 − u)/k of both. See `_unbalanced`."""
        b = np.abs(self.start) / np.sqrt(self.race.rates)
        small, large = float(b.min()), float(b.max())
        s, d = self._pace * self.race.S, self._pace**2 * self.race.D
        k = (large - small) * (large + small)
        half = d * k / 2
        omega = np.hypot(s, half)
        gap = d / 2 * (1 + half / (omega + s)) / (omega + half)
        gap0 = 1 / (large * (large + small))
        return k, omega, small / large, s / (omega + half), gap0, gap

    def _unbalanced(self, t: Values) -> Values:
        """M(t) by u, the smaller of b₁ and b₂ over the larger: du/dt = s (1 − u²) − d k u.

        k = |b₂² − b₁²| is conserved. With ω² = s² + d²k²/4 the roots are u₊ = s/(ω + dk/2) and
        −1/u₊, and the strength is k u/(1 − u²). Numerators and denominators are sums of positive
        terms, and 1 − u is in units of k, so that nothing cancels for tiny or nearly balanced
        starts.
        """
        k, omega, u0, end, gap0, gap = self._ratios
        left, gone = np.exp(-2 * omega * t), -np.expm1(-2 * omega * t)
        u = u0 * (end + left / end) + gone
        over = u0 * gone + 1 / end + end * left
        away = (1 + 1 / end) * (gap * gone + gap0 * left) - gap * gap0 * k
        return self._pace * u * over / (away * (over + u))

    def _unbalanced_time(self, M: Values) -> Values:
        """The inverse: e^{−2ωt} = (1 + u₀u₊)(u₊ − u) / ((u₊ − u₀)(1 + u u₊))."""
        k, omega, u0, end, gap0, gap = self._ratios
        inverse = k * self._pace / M  # u² + u/x = 1 with x = u/(1 − u²)
        u = 2 / (inverse + np.hypot(inverse, 2))
        left = (self._pace * u / (M * (1 + u)) - gap) / (gap0 - gap)
        return -np.log(left * (1 + u0 * end) / (1 + u * end)) / (2 * omega)

    # ---- by quadrature -------------------------------------------------------------------------
    # Every b_k²/γ_k grows by the same z, from 0 to Z. With β the smallest of them at the start and
    # w = log((z + β)/(Z − z)), dt/dw is smooth and positive, and nothing cancels.

    @cached_property
    def _scales(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """γ, b_k(0)² − γ_k β, β, and Z + β."""
        rates, squares = np.array(self.race.rates), np.array(self.start) ** 2
        least = float(np.min(squares / rates))
        return (
            rates,
            squares - rates * least,
            least,
            float(self._growth(np.float64(self.final))) + least,
        )

    def _squares(self, w: Values) -> np.ndarray:
        """b_k², in the last axis."""
        rates, more, _, whole = self._scales
        return more + np.multiply.outer(whole / (1 + np.exp(-w)), rates)

    def _log_left(self, w: Values) -> Values:
        """log(M D/S)."""
        rates, more, _, whole = self._scales
        end = more + whole * rates
        missing = np.multiply.outer(whole / (1 + np.exp(np.maximum(w, 0.0))), rates / end)
        early = np.expand_dims(w < 0, -1)
        each = np.where(early, np.log(self._squares(w) / end), np.log1p(-missing))
        return (each * np.array(self.race.powers) / 2).sum(axis=-1)

    def _place(self, M: Values) -> Values:
        """w where the strength is M."""
        _, _, least, whole = self._scales
        z = self._growth(M) + least
        return np.log(z / np.maximum(whole - z, TINY))

    def _growth(self, M: Values) -> Values:
        """z with M(z) = M, by Newton's method on log M, which is increasing and concave in z."""
        target = np.log(np.maximum(M, TINY))
        rates, powers = np.array(self.race.rates), np.array(self.race.powers)
        start = np.array(self.start) ** 2
        floor = -float(np.min(start / rates))
        # M^(2/depth) lies between the least and the largest of z + b_k²/γ_k, up to the rates
        scaled = np.exp(2 / powers.sum() * (target - (powers * np.log(rates)).sum() / 2))
        z = np.maximum(0.0, scaled - np.max(start / rates))
        for _ in range(NEWTON_STEPS):
            squares = start + np.multiply.outer(z, rates)
            slope = (powers * rates / (2 * squares)).sum(axis=-1)
            reached = (np.log(np.maximum(squares, TINY)) * powers / 2).sum(axis=-1)
            moved = np.maximum(z + (target - reached) / slope, floor + (z - floor) / 2)
            near = np.abs(moved - z) <= CONVERGED * (np.abs(moved) + np.min(start / rates))
            z = moved
            if near.all():
                break
        return z

    def _slowness(self, w: Values) -> Values:
        """dt/dw, from dz/dt = 2 M (S − D M)."""
        log_left = self._log_left(w)
        moved = self._scales[-1] / (2 + 2 * np.cosh(w))
        return moved / (-2 * self.race.S * self.final * np.exp(log_left) * np.expm1(log_left))

    @property
    def _panel(self) -> float:
        """The length of a panel: dt/dw grows by a bounded factor in it."""
        return PANEL * min(1.0, SHALLOW / self.race.depth)

    def _passed(self, w: Values) -> tuple[Values, Values]:
        """∫ dt/dw from the start to w, by Gauss–Legendre quadrature on short panels, and dt/dw."""
        nodes, weights = _gauss_legendre()
        passed, edges = self._table
        index = np.clip(((w - edges[0]) / self._panel).astype(int), 0, len(edges) - 1)
        half = (w - edges[index]) / 2
        points = (edges[index] + half)[..., None] + half[..., None] * np.append(nodes, 1.0)
        slowness = np.asarray(self._slowness(points))
        return passed[index] + slowness[..., :-1] @ weights * half, slowness[..., -1]

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """The times at the edges of all panels, and these edges, up to the end of learning."""
        _, _, least, whole = self._scales
        begin, length = float(np.log(least / (whole - least))), self._panel
        edges = begin + length * np.arange(int(np.ceil((LEARNED_LOGIT - begin) / length)) + 1)
        nodes, weights = _gauss_legendre()
        points = (edges[1:] + edges[:-1])[:, None] / 2 + length / 2 * nodes
        passed = np.cumsum(self._slowness(points) @ weights) * length / 2
        return np.concatenate([[0.0], passed]), edges

    def _inverted(self, t: Values) -> Values:
        """w at the times t: Newton's method on the quadrature, started from the table."""
        elapsed, edges = self._table
        w = np.interp(t, elapsed, edges)
        for _ in range(INVERSE_STEPS):
            passed, slowness = self._passed(w)
            step = (t - passed) / slowness
            moved = np.clip(w + np.clip(step, -self._panel, self._panel), edges[0], edges[-1])
            near = np.abs(moved - w) <= CONVERGED
            w = moved
            if near.all():
                break
        return w

    # ---- in symbols ----------------------------------------------------------------------------

    @cached_property
    def formula(self) -> sympy.Eq:
        """The solution as a SymPy equation in t (or, by quadrature, for t as an integral).

        a is the strength M and a_0 its start; `print(mode)` shows the values of s and d. In
        unbalanced solutions k = |b₁² − b₂²| is conserved and y_0 is the start of (b₁ + b₂)², both
        in units of the rates. By quadrature, z is the growth of every b_k²/γ_k, Z its value at time
        t, and B_k^0 the start of variable k.
        """
        return mode_formula(self)

    def __str__(self) -> str:
        edges = f"{self.race.depth} edge{'s' * (self.race.depth != 1)}"
        return (
            f"{self.kind}, {edges}, s = {self.race.S:.4g}, d = {self.race.D:.4g}, "
            f"strength {self.initial:.4g} → {self.final:.4g}"
        )

    def __repr__(self) -> str:
        return f"ModeForm({self})"


def _times(t: ArrayLike) -> np.ndarray:
    time = real_array("t", t, wanted="a time, or an array of them", fix="for example t=1.0")
    require(
        not np.isnan(time).any(),
        "t is not a time",
        got="NaN",
        wanted="times without NaN",
        fix="for example t=1.0",
    )
    return time


@cache
def _gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the quadrature in each panel."""
    return np.polynomial.legendre.leggauss(ORDER)


def mode_form(
    system: PolynomialSystem,
    start: Float[np.ndarray, " K"],
    names: tuple[str, ...],
    decay: Float[np.ndarray, " K"] | float = 0.0,
) -> ModeForm | None:
    """The closed form of merged equations from these start values, or None where none is known.

    `decay` is the weight decay λ of each variable, −λb in its equation. One edge is exponential
    with it, too. Two balanced ones stay so where their decay is equal: their strength M has
    dM/dt = 2γM (s − dM) − 2λM, which is logistic with s − λ/γ in place of s.
    """
    race, decays = recognised(system), np.broadcast_to(decay, len(start))
    if race is None or race.S <= 0 or race.D <= 0:
        return None
    form = ModeForm(race, tuple(float(b) for b in start), names, system)
    if decays.any() and (form.kind not in ("exponential", "logistic") or np.ptp(decays)):
        return None
    if decays.any():
        one = race.depth == 1
        race = replace(
            race,
            S=race.S - (0.0 if one else float(decays[0]) / form._pace),
            D=race.D + (float(decays[0]) if one else 0.0),
        )
        form = replace(form, race=race)
        if race.S <= 0:
            return None
    if race.depth > 1 and not (form.initial > 0 and min(np.abs(form.start)) > 0):
        return None
    if form.kind == "quadrature" and form.initial >= form.final:
        return None
    return form


def block_form(
    block: Block, start: Mapping[str, Matrix], law: Law | None = None
) -> ModeForm | None:
    """The closed form of a block from these weights, or None where none is known."""
    found = block_system(block, start, None if law is None else law.rates)
    if found is None:
        return None
    names = tuple(f"B{k + 1}" for k in range(len(found[1])))
    return mode_form(*found, names, 0.0 if law is None else decays_of(found[0], law))
