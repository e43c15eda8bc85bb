"""The merged race in symbols: equations, conserved quantities, closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.door import door
from neuralrace.dynamics.systems import Law
from neuralrace.reduction.block import Block
from neuralrace.reduction.merging import block_system, echelon, recognised
from neuralrace.reduction.polynomial import (
    PathForm,
    PolynomialSystem,
    block_statistics,
    is_noise,
    natural_unit,
    path_form,
    without_noise,
)
from neuralrace.tolerances import DEPENDENT, EXACT, ROUNDING
from neuralrace.types import Matrix

if TYPE_CHECKING:
    import sympy

    from neuralrace.reduction.mode_form import ModeForm

Form: TypeAlias = Literal["paths", "merged"]
"""Equations by what is left to learn on each path, or as polynomials with their numbers."""

TAU = "tau"
"""The name of the time constant."""

NAMED = 3
"""The number of a variable's edges that are named by default."""

LETTERS = 12
"""Equations by groups of paths are written with at most this many letters, and as many products."""

SIMPLE = 10_000
"""The largest numerator or denominator with which a float is written as a fraction or root."""


@final
@dataclass(frozen=True)
class Variable:
    """A merged variable of a race: its name, its mode, and the edges it stands for.

    `directions[e]` says how it enters the weights of edge e, in the bases of its block: the weights
    are the sum over variables of value times direction. In a scalar mode, directions are ±1.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
    >>> [(v.name, v.multiplicity) for v in race.variables() if v.mode == "mode1"]
    [('B1', 14), ('B2', 1)]

    ```
    """

    name: str
    mode: str
    edges: tuple[str, ...]
    start: float
    directions: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def multiplicity(self) -> int:
        """How many edges it stands for."""
        return len(self.edges)

    def __str__(self) -> str:
        return self.described()

    @door
    def described(self, full: bool = False) -> str:
        """Its name and its edges: how many, and up to three of them by name (all with `full`).

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=2, K=2)[0]))
        >>> print(race.variables()[0])
        B1: 4 edges (in1, in2, out1, …)
        >>> print(race.variables()[0].described(full=True))
        B1: 4 edges (in1, in2, out1, out2)

        ```
        """
        return f"{self.name}: {self.multiplicity} edge{'s' * (self.multiplicity != 1)} (" + (
            ", ".join(first_few(self.edges, full)) + ")"
        )


@final
@dataclass(frozen=True, eq=False)
class WrittenMode:
    """The merged system of one block, ready to be written down.

    `S` is the drive of a path given that it is on, Σ^yx(p) / Pr(on) (NRR Eq. 40), if it is the same
    for all paths of the block and none overlap.
    """

    block: Block
    system: PolynomialSystem
    start: np.ndarray
    S: float | None = None
    exact: bool = True
    law: Law = field(default_factory=Law)

    @property
    def names(self) -> tuple[str, ...]:
        """B1, B2, … in the order of their depth."""
        return tuple(f"B{k + 1}" for k in range(len(self.system.parts)))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The merged variables with what they stand for."""
        rows = zip(self.names, self.system.parts, self.start.tolist(), strict=True)
        return tuple(
            Variable(name, self.block.name, tuple(part), b, dict(part)) for name, part, b in rows
        )

    @cached_property
    def products(self) -> dict[tuple[int, ...], list[str]]:
        """The paths of a scalar block by the product of variables that each of them is."""
        if not self.block.is_scalar:
            return {}
        place = {edge: k for k, part in enumerate(self.system.parts) for edge in part}
        named: dict[tuple[int, ...], list[str]] = {}
        for group in block_statistics(self.block).groups:
            for path in group.paths if len(group.classes) else ():
                of = [
                    self.block.arch.matrix_of[e][0]
                    for e in path.edges
                    if e in self.block.arch.matrix_of
                ]
                powers = np.bincount([place[e] for e in of], minlength=len(self.names))
                named.setdefault(tuple(powers.tolist()), []).append("-".join(path.edges))
        return named

    @cached_property
    def paths(self) -> PathForm:
        """The equations by groups of paths that share their statistics."""
        counts = {powers: len(names) for powers, names in self.products.items()}
        return path_form(self.system, counts, faint=EXACT if self.exact else DEPENDENT)

    @cached_property
    def powers(self) -> PowerSum | None:
        """The paths as powers of one shared weight, where there are several and they are such.

        In a recurrent network, the path of the input t steps before the end has W_h t times.
        """
        if not (self.block.is_scalar and self.block.arch.ties):
            return None
        paths = self.paths
        least = paths.powers.min(axis=0, initial=len(paths.powers))
        varies = np.flatnonzero((paths.powers != least).any(axis=0))
        diagonal = np.diag(paths.D)
        if (
            len(paths.S) != len(paths.powers)
            or len(paths.powers) <= NAMED
            or len(varies) != 1
            or (paths.count != 1).any()
            or (np.diag(diagonal) != paths.D).any()
        ):
            return None
        (b,) = varies.tolist()
        steps = paths.powers[:, b]
        order = np.argsort(steps)
        if (np.diff(steps[order]) != 1).any():
            return None
        S, D = (values[paths.group][order] for values in (paths.S, diagonal))
        alike = bool(np.ptp(D) <= EXACT * D.max())
        return PowerSum(b, int(steps.min()), least, S, D[:1] if alike else D)

    @property
    def path_names(self) -> tuple[tuple[str, ...], ...]:
        """The paths of every group of `paths`; without a name, the products of directions."""
        names: list[tuple[str, ...]] = [()] * len(self.paths.S)
        for powers, g in zip(self.paths.powers.tolist(), self.paths.group, strict=True):
            names[g] += tuple(self.products.get(tuple(powers), ()))
        return tuple(names)


@final
@dataclass(frozen=True, eq=False)
class PowerSum:
    """Paths c b^k, k = first, first + 1, …, of a mode, b the variable at `place`.

    `powers` are those of the other variables. `S[i]` is the drive of the path with k = first + i,
    and `D` its brake, one number if all have the same.
    """

    place: int
    first: int
    powers: Int[np.ndarray, " K"]
    S: Float[np.ndarray, " P"]
    D: Float[np.ndarray, " _"]

    @property
    def last(self) -> int:
        return self.first + len(self.S) - 1

    @property
    def ratio(self) -> float | None:
        """S_{k+1} / S_k, where it is always the same: a mode that decays."""
        if self.S[0] == 0:
            return None
        ratio = float(self.S[1] / self.S[0])
        even = self.S[0] * ratio ** np.arange(len(self.S))
        return ratio if np.abs(self.S - even).max() <= EXACT * np.abs(self.S).max() else None


def written_mode(
    block: Block,
    start: Mapping[str, Matrix] | None = None,
    *,
    exact: bool = True,
    law: Law | None = None,
) -> WrittenMode | None:
    """The merged system of a block, or None where it is too large to be written down.

    In an `exact` race, terms that are rounding compared with others are left out.
    """
    law = law or Law()
    found = block_system(block, start, law.rates)
    if found is None:
        return None
    system, begin = found
    shown = without_noise(system) if exact else system
    return WrittenMode(block, shown, begin, exact=exact, law=law)


def rates_of(system: PolynomialSystem, law: Law) -> Float[np.ndarray, " K"]:
    """The rate of every variable, which is that of its edges."""
    return np.array([law.rates.get(next(iter(part), ""), 1.0) for part in system.parts])


def decays_of(system: PolynomialSystem, law: Law) -> Float[np.ndarray, " K"]:
    """The weight decay of every variable, times its rate."""
    return law.weight_decay * rates_of(system, law)


def first_few(names: Sequence[str], full: bool) -> list[str]:
    """All names; if there are more than three, the first three and an ellipsis."""
    return list(names) if full or len(names) <= NAMED else [*names[:NAMED], "…"]


def symbols(names: Sequence[str]) -> list[sympy.Symbol]:
    import sympy

    return [sympy.Symbol(subscripted(name), real=True) for name in names]


def subscripted(name: str) -> str:
    return f"{name[0]}_{name[1:]}"


def equations(mode: WrittenMode, form: Form = "paths") -> list[sympy.Eq]:
    """One SymPy equation per variable: τ dB/dt = ….

    Equations of a single pathway are written as in the papers: if its paths do not overlap and have
    the same drive, S and D are the statistics *given that the path is on*, so that the coefficients
    count paths, (number of paths) × Pr(on) (NRR Eqs. 13–14, 16–17, 44–46); otherwise they are
    coefficients of the merged equations, scaled so that the largest path count is 1. Others are
    sums over groups of paths: the rest of the path times what is left to learn on it, S_g − Σ_h
    D_gh T_h (NRR Eq. 10). Where that takes too many letters, and with `form="merged"`, they are
    polynomials with their numbers.
    """
    import sympy

    t, tau = sympy.Symbol("t", real=True), sympy.Symbol(TAU, positive=True)
    B = [sympy.Function(subscripted(name))(t) for name in mode.names]
    race = recognised(mode.system)
    pace = [number(rate) for rate in rates_of(mode.system, mode.law)]
    if race is not None:
        S, D = _drive_and_brake()
        strength = monomial(B, race.powers)
        counts = (number(rate * race.S / (mode.S or race.S)) for rate in race.rates)
        right = [n * strength / b * (S - strength * D) for n, b in zip(counts, B, strict=True)]
    elif form == "paths" and (mode.powers is not None or _has_letters(mode)):
        by = _by_paths if mode.powers is None else _by_powers
        right = [n * side for n, side in zip(pace, by(mode, B), strict=True)]
    else:
        right = [_polynomial(mode.system, k, B) for k in range(len(B))]
    if mode.law.weight_decay:
        right = [side - n * _decay() * b for n, side, b in zip(pace, right, B, strict=True)]
    return [equation(tau * sympy.Derivative(b, t), side) for b, side in zip(B, right, strict=True)]


def _has_letters(mode: WrittenMode) -> bool:
    """Whether the equations of a mode by groups of paths are short enough to be read."""
    paths = mode.paths
    letters = np.count_nonzero(paths.S) + np.count_nonzero(np.triu(paths.D))
    return int(letters) <= LETTERS and len(paths.powers) <= LETTERS


def _letters(
    mode: WrittenMode,
) -> tuple[dict[int, sympy.Symbol], dict[tuple[int, int], sympy.Symbol]]:
    """S_g and D_gh of the statistics of a mode that are not zero, counted from 1."""
    import sympy

    paths = mode.paths
    S = {g: sympy.Symbol(f"S_{g + 1}", real=True) for g in np.flatnonzero(paths.S).tolist()}
    between = "" if len(paths.S) < 10 else "_"
    D = {
        (g, h): sympy.Symbol(f"D_{g + 1}{between}{h + 1}", real=True)
        for g, h in np.argwhere(np.triu(paths.D)).tolist()
    }
    return S, D


def _by_paths(mode: WrittenMode, B: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """The velocity of every variable as in `PathForm`."""
    import sympy

    paths, (S, D) = mode.paths, _letters(mode)
    products = list(zip(paths.group.tolist(), paths.powers.tolist(), paths.count, strict=True))

    def total(g: int) -> sympy.Expr:
        return sympy.Add(*(number(n) * monomial(B, p) for at, p, n in products if at == g))

    count = range(len(paths.S))
    errors = [
        S.get(g, sympy.Integer(0))
        - sympy.Add(*(D[min(g, h), max(g, h)] * total(h) for h in count if paths.D[g, h]))
        for g in count
    ]
    slopes = [
        [
            sympy.Add(
                *(
                    number(n * p[k]) * monomial(B, [q - (i == k) for i, q in enumerate(p)])
                    for at, p, n in products
                    if at == g and p[k]
                )
            )
            for g in count
        ]
        for k in range(len(B))
    ]
    return [
        sympy.Add(
            *(
                number(share) * slopes[m][g] * errors[g]
                for m, share in enumerate(row)
                for g in count
                if share
            )
        )
        for row in paths.mix
    ]


def _by_power() -> tuple[Any, Any]:
    """S_k and D_k, of the path with k steps; SymPy's own annotation of what [k] gives is wider."""
    import sympy

    return sympy.IndexedBase("S", real=True), sympy.IndexedBase("D", real=True)


def _by_powers(mode: WrittenMode, B: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    """The velocity of every variable as a sum over the powers of one of them."""
    import sympy

    S, D = _by_power()
    of = mode.powers
    assert of is not None
    k = sympy.Symbol("k", integer=True, nonnegative=True)
    powers: list[Any] = of.powers.tolist()
    powers[of.place] = k
    slope: Callable[[int | None], Any] = lambda m: sympy.Mul(
        *(b ** (n - int(i == m)) for i, (b, n) in enumerate(zip(B, powers, strict=True)))
    )
    strength = slope(None)
    brake = _drive_and_brake()[1] if len(of.D) == 1 else D[k]
    error = S[k] - brake * strength
    slopes = [n * slope(m) for m, n in enumerate(powers)]
    right: list[Any] = [
        sympy.Sum(
            error * sympy.Add(*(number(x) * s for x, s in zip(row, slopes, strict=True) if x)),
            (k, of.first, of.last),
        )
        for row in mode.paths.mix
    ]
    return right


def _polynomial(system: PolynomialSystem, k: int, B: Sequence[sympy.Expr]) -> sympy.Expr:
    """The velocity of variable k: the weights that its terms share, times the sum of the rest."""
    import sympy

    there = np.flatnonzero(system.velocity[k])
    powers = system.powers[there]
    common = powers.min(axis=0, initial=int(powers.max(initial=0)))
    terms = zip(system.velocity[k, there], (powers - common).tolist(), strict=True)
    total = sympy.Add(*(number(c) * monomial(B, p) for c, p in terms))
    return monomial(B, common.tolist()) * total


def _decay() -> sympy.Symbol:
    """The weight decay λ, as it stands in `equations`."""
    import sympy

    return sympy.Symbol("lambda", positive=True)


def _drive_and_brake() -> tuple[sympy.Symbol, sympy.Symbol]:
    """S and D, as they stand in the equations of a single pathway."""
    import sympy

    return sympy.Symbol("S", positive=True), sympy.Symbol("D", positive=True)


def statistics_in_symbols(mode: WrittenMode, form: Form = "paths") -> dict[sympy.Symbol, float]:
    """The values of the letters in `equations`; none where numbers stand in their place."""
    race = recognised(mode.system)
    decay = {_decay(): mode.law.weight_decay} if mode.law.weight_decay else {}
    if race is not None:
        drive = mode.S or race.S
        S, D = _drive_and_brake()
        return {S: drive, D: drive * race.D / race.S} | decay
    if form == "merged" or not (mode.powers is not None or _has_letters(mode)):
        return decay
    if mode.powers is not None:
        S, D = _by_power()
        powers = mode.powers
        numbers: dict[Any, float] = {S[powers.first + i]: float(s) for i, s in enumerate(powers.S)}
        if len(powers.D) == 1:
            return numbers | {_drive_and_brake()[1]: float(powers.D[0])} | decay
        return numbers | {D[powers.first + i]: float(d) for i, d in enumerate(powers.D)} | decay
    drives, brakes = _letters(mode)
    numbers = {letter: float(mode.paths.S[g]) for g, letter in drives.items()}
    return numbers | {letter: float(mode.paths.D[at]) for at, letter in brakes.items()} | decay


def conserved(mode: WrittenMode) -> list[sympy.Expr]:
    """Quadratic forms in the variables that the flow conserves.

    These are the forms q with Σ_kl q_kl (b_k db_l/dt + b_l db_k/dt) = 0 identically in b. Under
    weight decay λ a form of variables that share their rate η decays as e^{−2ηλt}; what is
    conserved is the form times e^{2ηλt}.
    """
    import sympy

    B, t, tau = symbols(mode.names), sympy.Symbol("t", real=True), sympy.Symbol(TAU, positive=True)
    pace, found = rates_of(mode.system, mode.law), []
    for form in conserved_forms(mode):
        shared = {pace[k] for pair in form for k in pair}
        if not mode.law.weight_decay or len(shared) == 1:
            rate = number(shared.pop()) * _decay() if mode.law.weight_decay else 0
            grown = sympy.exp(2 * rate * t / tau)
            terms = (number(c) * B[k] * B[m] for (k, m), c in form.items())
            found.append(sympy.Add(*terms) * grown)
    return found


def conserved_forms(mode: WrittenMode) -> list[dict[tuple[int, int], float]]:
    """The conserved quadratic forms: one coefficient per pair of variables."""
    K = len(mode.names)
    pairs = [(k, m) for k in range(K) for m in range(k, K)]
    unit = natural_unit(mode.system)
    columns = [_derivative(mode.system, k, m) for k, m in pairs]
    monomials = sorted({p for column in columns for p in column})
    table = np.array(
        [[column.get(p, 0.0) * unit ** sum(p) for column in columns] for p in monomials]
    )
    if not len(table):
        return []
    _, s, vt = np.linalg.svd(table, full_matrices=True)
    null = vt[int((s > EXACT * s[0]).sum()) :]
    return [
        {pair: float(c) for pair, c in zip(pairs, row, strict=True) if c}
        for row in (_rational_rows(null) if len(null) else [])
    ]


def _derivative(system: PolynomialSystem, k: int, m: int) -> dict[tuple[int, ...], float]:
    """d(b_k b_m)/dt as a polynomial."""
    found: dict[tuple[int, ...], float] = {}
    for a, b in ((k, m), (m, k)):
        for power, c in zip(system.powers.tolist(), system.velocity[a], strict=True):
            if c:
                raised = tuple(n + (i == b) for i, n in enumerate(power))
                found[raised] = found.get(raised, 0.0) + c
    return found


def _rational_rows(rows: np.ndarray) -> np.ndarray:
    """The same space in echelon form, with small whole numbers where possible."""
    found = echelon(rows)
    found[is_noise(found)] = 0.0
    return found / np.array([[np.abs(row[row != 0]).min()] for row in found])


def number(value: float) -> sympy.Expr:
    """A float as the simple exact number it stands for, if there is one: 1/7, √2/4."""
    import sympy

    value = float(value)
    if value == 0:
        return sympy.Integer(0)
    for square in (False, True):
        target = value**2 if square else value
        ratio = sympy.nsimplify(target, rational=True, tolerance=ROUNDING / 10 * abs(target))
        near = abs(float(ratio) - target) <= ROUNDING * abs(target)
        if near and max(abs(ratio.p), ratio.q) <= SIMPLE:
            return sympy.sign(value) * sympy.sqrt(ratio) if square else ratio
    return sympy.Float(value, 6)


def equation(left: sympy.Expr, right: sympy.Expr) -> sympy.Eq:
    """left = right, unevaluated; SymPy's own annotation allows for results that do not occur."""
    import sympy

    return sympy.Eq(left, right)  # pyright: ignore[reportReturnType]


def monomial(B: Sequence[sympy.Expr], powers: Sequence[int]) -> sympy.Expr:
    import sympy

    return sympy.Mul(*(b**n for b, n in zip(B, powers, strict=True)))


def mode_formula(form: ModeForm) -> sympy.Eq:
    """The closed form of a mode in SymPy: a(t) explicitly, or t as an integral over z.

    s and d are the coefficients of the merged equations, db_k/dt = γ_k (M/b_k)(s − d M) with the
    largest rate γ_k = 1: for one path they are Σ^yx and Σ^x (NRR Eq. 21), otherwise these times the
    number of paths through the fastest variable. They are not conditioned on the path being on. a
    is the strength M of the pathway and a_0 its start; k = |b₁² − b₂²|, in units of the rates, is
    conserved, and y_0 is the start of y = b₁² + b₂² + 2 b₁b₂ in the same units. By quadrature, z is
    the growth of every b_k²/γ_k, Z its value at time t, and B_k^0 the start of variable k.
    """
    import sympy

    t, tau = sympy.Symbol("t", nonnegative=True), sympy.Symbol(TAU, positive=True)
    S, D, a0 = (sympy.Symbol(n, positive=True) for n in ("s", "d", "a_0"))
    a = sympy.Function("a")(t)
    g = number(form._pace) if form.race.depth == 2 else sympy.Integer(1)
    if form.kind == "exponential":
        return equation(a, S / D + (a0 - S / D) * sympy.exp(-D * t / tau))
    if form.kind == "logistic":
        return equation(a, (S / D) / (1 - (1 - S / (D * a0)) * sympy.exp(-2 * g * S * t / tau)))
    if form.kind == "unbalanced":
        k, y0 = sympy.Symbol("k", nonnegative=True), sympy.Symbol("y_0", positive=True)
        omega = sympy.sqrt((g * S) ** 2 + (g**2 * D) ** 2 * k**2 / 4)
        high, low = (2 / (g**2 * D) * (g * S + sign * omega) for sign in (1, -1))
        q = (y0 - high) / (y0 - low) * sympy.exp(-2 * omega * t / tau)
        y = (high - low * q) / (1 - q)
        return equation(a, g * (y - k**2 / y) / 4)
    z, end = sympy.symbols("z Z", nonnegative=True)
    starts = [sympy.Symbol(f"{subscripted(name)}^0", positive=True) for name in form.names]
    strength = sympy.Mul(
        *(
            (b**2 + number(rate) * z) ** sympy.Rational(n, 2)
            for b, rate, n in zip(starts, form.race.rates, form.race.powers, strict=True)
        )
    )
    return equation(t / tau, sympy.Integral(1 / (2 * strength * (S - D * strength)), (z, 0, end)))
