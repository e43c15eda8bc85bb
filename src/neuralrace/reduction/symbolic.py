"""A race in symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.door import door
from neuralrace.dynamics.systems import Law
from neuralrace.errors import NeuralRaceError
from neuralrace.reduction.closed_form import ClosedForm
from neuralrace.reduction.merging import MAX_VARIABLES
from neuralrace.reduction.mode_form import SHOWN, ModeForm, block_form
from neuralrace.reduction.polynomial import drive_when_on
from neuralrace.reduction.reduced import Reduced
from neuralrace.reduction.start import (
    Start,
    StartLike,
)
from neuralrace.reduction.symbols import (
    Form,
    Variable,
    WrittenMode,
    conserved,
    equations,
    statistics_in_symbols,
    written_mode,
)
from neuralrace.reduction.words import latex
from neuralrace.types import NotNegative, Positive, WeightsLike
from neuralrace.weights import checked_weights

if TYPE_CHECKING:
    import sympy


class Symbolic(Reduced):
    """A race in symbols: variables, equations, what is conserved, and closed forms."""

    def _written(
        self, start: StartLike | None, law: Law | None = None
    ) -> tuple[list[WrittenMode], list[str]]:
        """The merged modes, and the names of the blocks that are too large to be written out."""
        written, left_out = [], []
        start = None if start is None else self.start(start)
        for i, block in enumerate(self.blocks):
            weights = None if start is None else start.weights[i]
            mode = written_mode(block, weights, exact=self.exactness.is_split, law=law)
            if mode is None:
                left_out.append(block.name)
            else:
                written.append(replace(mode, S=drive_when_on(block, self.split.data)))
        return written, left_out

    def _modes(self, start: StartLike | None, law: Law | None = None) -> list[WrittenMode]:
        """The merged modes, or an error where every block is too large to be written out."""
        written, left_out = self._written(start, law)
        if left_out and not written:
            count = {b.name: sum(w.size for w in b.aligned.values()) for b in self.blocks}
            raise NeuralRaceError(
                "the equations of this race have too many variables to be written out",
                got=", ".join(f"{name}: {count[name]} weights" for name in left_out[:SHOWN]),
                wanted=f"a matrix block of at most {MAX_VARIABLES} variables from this start",
                fix="race.solve(times=…, start=…) solves it all the same; nr.GDLN(block.arch) on "
                "block.data is the network of a block of race.blocks",
            )
        return written

    @door
    def is_written_out(self, start: StartLike | None = None) -> bool:
        """Whether `equations` has all blocks, and there are any.

        ```python
        >>> import neuralrace as nr
        >>> nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor())).is_written_out()
        True

        ```
        """
        written, left_out = self._written(start)
        return bool(written) and not left_out

    @door
    def variables(self, start: StartLike | None = None) -> tuple[Variable, ...]:
        """The variables of the race, with multiplicities; those that must stay equal are merged.

        Without a `start` (a `Start`, a number or weights), all edges of a block are assumed to
        start alike. Blocks with too many variables to be written out are left out; if all are, it
        is an error.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> str(race.variables()[0])
        'B1: 2 edges (x_sample1, sample1_y)'

        ```
        """
        return tuple(v for mode in self._modes(start) for v in mode.variables)

    @door
    def equations(
        self,
        start: StartLike | None = None,
        *,
        form: Form = "paths",
        weight_decay: NotNegative | None = None,
        rates: Mapping[str, Positive] | None = None,
    ) -> dict[str, list[sympy.Eq]]:
        """The merged equations of every mode in SymPy (NRR Eq. 10 and its consequences).

        Each velocity is the rest of a path times what is left to learn on it, S − Σ D T: S and D
        are those of a single pathway, or S_1, D_12, … of groups of paths that share their
        statistics, in the order of `paths`; `coefficients` has their values. With `form="merged"`,
        and where that would take more than a dozen letters, equations of several groups are
        polynomials with their numbers. Blocks with too many variables to be written out are left
        out; if all are, it is an error. `weight_decay` λ, a symbol in the equations, and `rates` of
        edges are as in `solve`.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
        >>> race.equations()["mode1"][0].rhs
        (-D*B_1(t)**2*B_2(t) + S)*B_1(t)*B_2(t)/7
        >>> race.equations(weight_decay=0.05)["mode1"][0].rhs
        -lambda*B_1(t) + (-D*B_1(t)**2*B_2(t) + S)*B_1(t)*B_2(t)/7

        ```
        """
        law = self._law(weight_decay, rates)
        return {mode.block.name: equations(mode, form) for mode in self._modes(start, law)}

    @door
    def coefficients(
        self,
        start: StartLike | None = None,
        *,
        form: Form = "paths",
        weight_decay: NotNegative | None = None,
        rates: Mapping[str, Positive] | None = None,
    ) -> dict[str, dict[sympy.Symbol, float]]:
        """The values of the letters in `equations` of the same form, for every mode.

        The keys are SymPy's symbols, so that the values can be put into the equations. A mode whose
        equations hold numbers in place of letters has none.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0)))
        >>> values = race.coefficients()["mode1"]
        >>> {str(symbol): round(float(value), 6) for symbol, value in values.items()}
        {'S': 1.0, 'D': 1.0}
        >>> race.equations()["mode1"][0].rhs.subs(values).free_symbols
        {t}

        ```
        """
        modes = self._modes(start, self._law(weight_decay, rates))
        return {mode.block.name: statistics_in_symbols(mode, form) for mode in modes}

    @door
    def paths(self, start: StartLike | None = None) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The paths of every group 1, 2, … in `equations`, by mode; edges are joined by "-".

        Paths of one group are on for the same samples and see the same inputs, so that they share
        S_1 and what is left to learn. Groups of a block that is not a mode have no names.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture({"x": 1, "h": 2, "g": 2, "y": 1}, {
        ...     "a": ("x", "h"), "b": ("h", "y"), "c": ("x", "g"), "d": ("g", "y")})
        >>> data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]}, {"g": [0.0, 1.0]})
        >>> race = nr.reduce(arch, data)
        >>> race.paths()["mode1"]
        (('a-b',), ('c-d',))
        >>> print(race.equations()["mode1"][0].rhs)
        (-D_11*B_1(t)**2 - D_12*B_2(t)**2 + S_1)*B_1(t)

        ```
        """
        return {mode.block.name: mode.path_names for mode in self._modes(start)}

    @door
    def latex(
        self, start: StartLike | None = None, *, full: bool = False, form: Form = "paths"
    ) -> str:
        """The merged equations as LaTeX, as in `equations`; modes of equal form share one system.

        S and D are Σ^yx and Σ^x of a path along the mode, given that the path is on (NRR Eq. 40);
        where paths overlap or differ in a single pathway, they are coefficients of the merged
        equations, and of several groups of paths every one has its own. The text says which. The
        edges that each B stands for are named below the equations: at most three, or all
        with `full`.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0)))
        >>> print(race.latex())  # doctest: +ELLIPSIS
        \\begin{aligned}
        \\tau \\frac{d}{d t} B_{1} &= \\frac{\\left(- D B_{1}^{2} + S\\right) B_{1}}{2}
        \\end{aligned}
        \\qquad \\mathrm{mode1, mode2}: S = 1, D = 1
        <BLANKLINE>
        \\text{$S$, $D$: $\\Sigma^{yx}$ and $\\Sigma^{x}$ of a path along the mode...
        <BLANKLINE>
        \\mathrm{mode1}:\\quad B_{1}: \\text{x\\_positive, positive\\_y}
        <BLANKLINE>
        \\mathrm{mode2}:\\quad B_{1}: \\text{x\\_negative, negative\\_y}

        ```
        """
        return latex(*self._written(start), full=full, form=form)

    @door
    def conserved(
        self,
        start: StartLike | None = None,
        *,
        weight_decay: NotNegative | None = None,
        rates: Mapping[str, Positive] | None = None,
    ) -> dict[str, list[sympy.Expr]]:
        """Quadratic quantities of every mode that learning conserves, in SymPy.

        Under `weight_decay` λ they fall as e^{−2λt}, and what is conserved is e^{2λt} times them.
        `rates` η of edges divide squares: b_1²/η_1 − b_2²/η_2. With both, only forms of variables
        with one rate are conserved.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
        >>> race.conserved()["mode1"]
        [7*B_1**2 - B_2**2]
        >>> race.conserved(weight_decay=0.05)["mode1"]
        [(7*B_1**2 - B_2**2)*exp(2*lambda*t/tau)]

        ```
        """
        law = self._law(weight_decay, rates)
        return {mode.block.name: conserved(mode) for mode in self._modes(start, law)}

    @door
    def conserved_matrices(self, weights: WeightsLike) -> dict[str, np.ndarray]:
        """Σ_out WᵀW − Σ_in WWᵀ of every class of hidden nodes, which gradient flow conserves.

        For a recurrent network, WyᵀWy + WhᵀWh − WxWxᵀ − WhWhᵀ: each shared matrix counts once, and
        frozen edges do not. A class is named by its first node; nodes with a gate per neuron are
        taken apart first (`split`). Classes that have an input or an output among them, such as
        those of a given initial state, or a matrix that also stands transposed, as in a tied
        autoencoder, have no such matrix and are left out.

        ```python
        >>> import neuralrace as nr
        >>> arch = nr.Architecture.recurrent(2, 8, 2, steps=3)
        >>> race = nr.reduce(arch, nr.tasks.integration(2, steps=3))
        >>> found = race.conserved_matrices(nr.GDLN(arch).init(0))
        >>> {node: matrix.shape for node, matrix in found.items()}
        {'h1': (8, 8)}

        ```
        """
        parts = self.split.split(checked_weights(self.arch, weights))
        arch, found = self.split.arch, dict[str, np.ndarray]()
        ends = {arch.class_of[v] for v in (*arch.inputs, *arch.outputs)}
        for node in dict.fromkeys(arch.class_of[v] for v in arch.hidden):
            near = {n: e for n, e in arch.matrix_ends.items() if node in map(arch.class_of.get, e)}
            both = any(len({turned for _, turned in arch.matrices[n]}) > 1 for n in near)
            if node in ends or both:
                continue
            found[node] = np.zeros((arch.sizes[node], arch.sizes[node]))
            for name, (s, t) in near.items():
                w = np.asarray(parts[name], np.float64)
                found[node] += w.T @ w if arch.class_of[s] == node else 0.0
                found[node] -= w @ w.T if arch.class_of[t] == node else 0.0
        return found

    @door
    def closed_form(
        self,
        start: StartLike,
        *,
        weight_decay: NotNegative | None = None,
        rates: Mapping[str, Positive] | None = None,
    ) -> ClosedForm:
        """The closed form of every mode that has one, from the given start.

        They are recognised from the merged equations: single pathways of any depth, balanced or
        not, from any graph. `without` of the result names the modes for which none is known, and
        `is_complete` says whether there are no such modes. Under `weight_decay` λ, balanced paths
        of two edges stay logistic, with s − λ in place of s and the final strength (s − λ)/d
        (where the edges of a path move at unequal paces γ, λ is divided by them); those of one edge
        have d + λ in place of d. `rates` of edges are as in `solve`.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> form = race.closed_form(0.01)
        >>> form.modes["mode1"].formula
        Eq(a(t), s/(d*(-(1 - s/(a_0*d))*exp(-2*s*t/tau) + 1)))

        ```
        """
        start = self.start(start)
        law = self._law(weight_decay, rates)
        forms = {block.name: self._form(i, start, law) for i, block in enumerate(self.blocks)}
        known = {name: form for name, form in forms.items() if form is not None}
        without = tuple(name for name, form in forms.items() if form is None)
        return ClosedForm(known, self.constant, without, self.dropped_loss)

    @door
    def complete_form(
        self, start: StartLike, *, weight_decay: float | None = None
    ) -> ClosedForm | None:
        """The closed form of the whole race, or None if a mode has none: quicker to ask.

        `weight_decay` is as in `closed_form`.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.complete_form(0.01).is_complete
        True

        ```
        """
        start, law = self.start(start), self._law(weight_decay, None)
        known = {}
        for i, block in enumerate(self.blocks):
            form = self._form(i, start, law)
            if form is None:
                return None
            known[block.name] = form
        return ClosedForm(known, self.constant, dropped=self.dropped_loss) if known else None

    def _form(self, index: int, start: Start, law: Law | None = None) -> ModeForm | None:
        """The closed form of a block, if there is one and the start leaves out nothing of it."""
        if start.is_measured and index in start.halved:
            return None
        return block_form(self.blocks[index], start.weights[index], law)
