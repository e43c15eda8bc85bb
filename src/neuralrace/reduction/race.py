"""The neural race reduction: a gated network as a sum of small independent ones (NRR §3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import plain_number, write_whole
from neuralrace.dataset import Dataset, check_targets
from neuralrace.door import door
from neuralrace.dynamics import StoppedError
from neuralrace.dynamics.systems import Law, checked_law
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.reduction.block import Block
from neuralrace.reduction.closed_form import ClosedForm
from neuralrace.reduction.find_blocks import Exactness, find_blocks
from neuralrace.reduction.merging import MAX_VARIABLES
from neuralrace.reduction.mode_form import SHOWN, ModeForm, block_form
from neuralrace.reduction.modes import LEAST, ModeTable, modes_of
from neuralrace.reduction.page import RacePage, race_page
from neuralrace.reduction.polynomial import drive_when_on
from neuralrace.reduction.reconstruct import Source, evaluations
from neuralrace.reduction.rules import check_keeps_blocks
from neuralrace.reduction.solve import Request, checked_tolerance, one_thread, solve_blocks
from neuralrace.reduction.start import (
    Start,
    StartLike,
    StartsLike,
    check_start_known,
    many_starts,
    start_from_number,
    start_from_weights,
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
from neuralrace.reduction.system import RaceSystem, system_of
from neuralrace.reduction.words import (
    HEADINGS,
    block_frame,
    draw_blocks,
    latex,
    printed_rows,
    sentences,
)
from neuralrace.results import SENTENCES, Result, Sentence, framed
from neuralrace.statistics import SplitNetwork
from neuralrace.statistics.nodes import split_neurons
from neuralrace.text import table_lines
from neuralrace.tolerances import EXACT
from neuralrace.trajectory import Trajectory, concat
from neuralrace.types import ArrayLike, Inside, Key, Positive, WeightsLike
from neuralrace.weights import checked_weights

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import sympy
    from optax import GradientTransformation

    from neuralrace.dynamics import Stepper


PAGE_START = 1e-3
"""The small equal start from which a page draws a race if none is given."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Race(Result):
    """A gated network reduced to blocks that learn independently; see `reduce`.

    `split` is the network after nodes with gates per neuron are split, so that every gate is on a
    whole node; blocks refer to its nodes. `blocks` are ordered by their drive, the largest singular
    value of Σ^yx. `constant` is the loss outside all blocks, which no weights can remove; what
    a tolerance dropped is `dropped_loss` instead. `silent`
    counts, for every input and output node, the directions without a signal: weights along them
    learn nothing. (Weights along silent inputs that vary do decay; the race ignores this, and it
    matters only for large initial weights.) `exactness` says whether the reduction is exact, and if
    not, why; `residual` and `faint` are two of its parts. Directions smaller than 1e-6 of their
    node are judged as if they had that size; features smaller than others by 1e13 count as zero.

    ```python
    >>> import neuralrace as nr
    >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
    >>> race  # doctest: +ELLIPSIS
    Race(4 blocks, 4 of them scalar; residual ...)
    >>> race.is_decoupled, len(race.blocks), race.residual < 1e-8
    (True, 4, True)

    ```
    """

    arch: Architecture
    data: Dataset
    split: SplitNetwork
    blocks: tuple[Block, ...]
    constant: float
    silent: Mapping[str, int]
    tolerance: float
    exactness: Exactness

    @property
    def is_decoupled(self) -> bool:
        """Whether every block has one direction per node: MHS Assumption 2.1.1 holds."""
        return bool(self.blocks) and all(block.is_scalar for block in self.blocks)

    @property
    def is_exact(self) -> bool:
        """Whether the blocks are exact, and hidden nodes have a neuron for each direction.

        That is, only rounding was dropped, no feature is too small for float64, and `exactness`
        counts no class of nodes as too narrow.
        """
        return bool(self.exactness)

    @property
    def residual(self) -> float:
        """The largest relative size that was dropped; 0, up to rounding, for an exact reduction.

        It is the size of a coupling between blocks, relative to the sizes of the two directions it
        couples, or of a direction, relative to its node.
        """
        return self.exactness.residual

    @property
    def dropped_loss(self) -> float:
        """The loss at zero weights that a tolerance dropped; 0 for an exact reduction.

        It can be learned, but no block does so: in solutions it stays, and when the loss falls
        further than that is not known.
        """
        return self.exactness.dropped_loss

    @property
    def outside(self) -> float:
        """The loss outside all blocks, `constant` and `dropped_loss`, which stays in solutions."""
        return self.constant + self.dropped_loss

    @property
    def faint(self) -> tuple[str, ...]:
        """The nodes with directions so small beside others that float64 cannot resolve them."""
        return self.exactness.faint

    @property
    def reduces(self) -> bool:
        """Whether the problem splits into smaller parts at all."""
        return len(self.blocks) > 1 or self.is_decoupled

    @door
    def start(self, start: StartLike) -> Start:
        """Where the race starts: from actual weights, nothing fitted, or from one number.

        A mapping is taken as the network's initial weights. In a two-edge pathway, a mode starts
        from its growing half `c = ½ (W₁v + W₂ᵀu)`, or more precisely from the part of it that is
        orthogonal to the modes that grow faster. Pathways of other lengths are restricted to each
        block's directions. Where the weights are decoupled already (`alignment` is 1), the solution
        from there is exact. From other weights it is an approximation for small starts, which is
        not in the papers: the growing half is multiplied by e^{st} and the other half by e^{−st},
        so that only the first matters, and a learned mode expels later ones from its hidden
        direction (docs/reduction.md, "Random starts of deep networks", shows the limits). Where
        other pathways turn the error along a path around, the decaying half is the one that grows
        in the end, and hidden directions that modes share decide how soon: `solve` goes back to the
        weights there, and follows all modes of these hidden nodes together, which is exact. A
        number
        b gives an aligned start: b times weights of unit size along the singular vectors of Σ^yx,
        so that every edge of a mode starts at b or −b; in a matrix block, the parts of an edge that
        share a hidden node together have singular values b. Where hidden nodes have fewer neurons
        than the blocks have directions, the strongest take them all; the others start at 0 and stay
        there, and the solution is not called exact (`exactness.narrow`). `{edge: b}` sets one
        number per edge.
        `alignment` of the result is the share of the weights' squared norm that it carries, and
        `gap` the distance of its loss from that of the network, which says whether the weights are
        small enough. A `Start` is checked against the data and the blocks of this race, and
        returned. A start that JAX is tracing (`jax.grad`, `jax.vmap`, `jax.jit`) is refused.

        ```python
        >>> import jax, numpy as np, neuralrace as nr
        >>> arch = nr.Architecture.chain(8, 64, 15)
        >>> data = nr.Dataset({"x": np.eye(8)}, {"y": nr.tasks.hierarchy().T})
        >>> race = nr.reduce(arch, data)
        >>> start = race.start(nr.GDLN(arch).init(jax.random.key(0), scale=1e-3))
        >>> len(start.weights), race.start(1e-3).alignment
        (8, None)

        ```
        """
        check_start_known(start)
        if isinstance(start, Start):
            self._check_start(start)
            return start
        if isinstance(start, Mapping):
            plain = {edge: plain_number(value) for edge, value in start.items()}
            if any(_has_axes(w) for w in plain.values()):
                found = start_from_weights(self.blocks, self.split, self.outside, plain)
            else:
                found = start_from_number(self.blocks, self.split, plain)
        else:
            found = start_from_number(self.blocks, self.split, plain_number(start))
        return replace(found, data=self._digest)

    def _check_start(self, start: Start) -> None:
        """Raise where a start belongs to other data, or does not fit the blocks."""
        fits = len(start.weights) == len(self.blocks) and all(
            block.fits(w) for block, w in zip(self.blocks, start.weights, strict=True)
        )
        require(
            not (not fits or start.data not in (None, self._digest)),
            "this is the start of another race",
            got=f"{len(start.weights)} blocks: {start.description}"
            + (", of other data" if fits else ""),
            wanted=f"a start of the {len(self.blocks)} blocks of this race",
            fix="make it with race.start(…) of the same race",
        )

    @door
    def solve(
        self,
        *,
        times: ArrayLike,
        start: StartsLike,
        learning_rate: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        rates: Mapping[str, float] | None = None,
        optimizer: GradientTransformation | Stepper | None = None,
        evaluate: Mapping[str, Dataset] | None = None,
        rtol: float | None = None,
    ) -> Trajectory:
        """The solution of the race at `times`, as a `Trajectory` like any other.

        It follows gradient flow in every block or, with a `learning_rate`, gradient descent itself:
        in such small blocks the steps are taken one by one, so the step size adds no approximation.
        Times are then rounded to whole steps, and times that fall on one step are returned once.
        From weights that are not decoupled the solution is an approximation for small starts; see
        `start`. `values` holds the loss of each block (`"losses"`), every variable (`"variables"`,
        by block and edge) and, where there are at most 1000 paths in a block, the strength of every
        path (`"pathways"`, by block and path, edges joined by "-"): the product of its edges, or in
        a matrix block the Frobenius norm of this product. Modes that are followed together
        have as many hidden neurons as they reach hidden directions. Outputs on all samples are
        computed when asked for: `solution.outputs`, which a population has none of.

        **Other rules.** `weight_decay` λ and `rates={edge: η}` (1 if not named) are as in `nr.flow`
        and `nr.train`: every variable b of an edge has db/dt = η (… − λ b), and `loss` is that of
        the task alone. `momentum` goes with a learning rate. `optimizer` is any optax
        transformation, or a `dynamics.Stepper`, that keeps the blocks: it commutes with rotations
        of every node, and treats blocks one by one. That is tested on random weights and gradients
        (`nr.reduction.keeps_blocks`), and an error says which property fails: Adam scales every
        entry by itself, and clipping by the global norm couples the blocks. The rule is then
        applied to the weights of each block. Times are those of `nr.train`: learning_rate · step
        (over 1 − μ with momentum) where the optimizer is `optax.sgd`, with decay or without,
        otherwise the number of steps. From weights that are not decoupled, decay and momentum start
        from the growing halves as gradient flow does, which is an approximation; with rates that
        differ, and under any other optimizer, two-edge pathways that share hidden neurons are
        followed together, which is exact. Deeper ones start as `start` says under any rule.

        `evaluate={"untrained": data}` predicts the loss on other samples or with other gates, such
        as routes that are not trained, as `values["untrained"]["loss"]`. Inputs outside the
        directions of all blocks, and routes whose ends no block joins, give nothing there: along
        them nothing is learned.

        **Many starts.** A sequence of starts, or weights with one more axis in front, such as those
        of an ensemble, give a trajectory with the axis `start`. They are solved one by one.

        `rtol` is the relative tolerance of a step of the flow, where a block has no explicit
        solution. By default it is 1e-11; 1e-8 is enough for a picture and takes about half the
        time.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> sol = race.solve(times=np.linspace(0, 40, 5), start=0.01)
        >>> sol.loss[:2].round(3), bool(sol.loss[-1] < 1e-6)
        (array([0.5  , 0.367]), True)

        ```
        """
        check_start_known(start)
        starts = many_starts(start)
        if isinstance(starts, list):
            rule: dict[str, Any] = {
                "learning_rate": learning_rate, "momentum": momentum, "optimizer": optimizer,
                "weight_decay": weight_decay, "rates": rates, "evaluate": evaluate, "rtol": rtol,
            }  # fmt: skip
            parts = [self.solve(times=times, start=one, **rule) for one in starts]
            numbers = not any(isinstance(one, Start | Mapping) for one in starts)
            axis: Any = starts if numbers else np.arange(len(starts))
            return concat(parts, axis=("start", axis))
        start, others = self.start(starts), evaluations(self.split, evaluate)
        check_keeps_blocks(optimizer, self.split.arch)
        request = Request.of(
            times, learning_rate, rtol=checked_tolerance(rtol), momentum=momentum,
            law=self._law(weight_decay, rates), optimizer=optimizer,
        )  # fmt: skip
        try:
            solution = solve_blocks(self.blocks, start, request, self.outside, self.split)
        except StoppedError as error:
            error.trajectory = self._sourced(error.trajectory, others)
            raise
        return self._sourced(solution, others)

    def _sourced(self, solution: Trajectory, others: Mapping[str, Dataset]) -> Trajectory:
        """The solution with a reference to its data, to compute outputs and weights on request."""
        weight = self.data.sample_weight
        source = Source(self.blocks, self.split)
        others_loss = {name: {"loss": source.loss_on(solution, d)} for name, d in others.items()}
        return Trajectory(
            solution.time,
            solution.loss,
            values={**solution.values, **others_loss},
            settings=solution.settings | {"data": self._digest},
            sample_weight=None if weight is None else np.asarray(weight),
            steps=solution.steps,
            source=None if self.data.is_population else source,
        )

    @door
    def system(self, start: StartLike) -> RaceSystem:
        """The race in JAX from a start: loss, velocity, `b0` and coefficients as one pytree.

        `jax.grad`, `jax.vmap` and `jax.jit` work through any solution of it: fixed steps
        (`dynamics.unrolled_steps`, `jax.lax.scan`) or a solve of diffrax. Every block begins where
        `start` says; what a start from random weights leaves out, for which `solve` goes back to
        the network, stays out, so that from aligned and from decoupled weights alone both agree.
        The start itself cannot be traced by JAX: scale or replace `b0` in the function that is.

        ```python
        >>> import jax, neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> system = race.system(0.01)
        >>> bool(abs(system.loss(system.b0) - race.solve(times=[0, 1], start=0.01).loss[0]) < 1e-6)
        True
        >>> sorted(system.velocity(system.b0)["mode1"])
        ['sample1_y', 'x_sample1']

        ```
        """
        return system_of(self.blocks, self.start(start).weights, self.outside)

    def _law(self, weight_decay: float | None, rates: Mapping[str, float] | None) -> Law:
        """Weight decay and rates as those of the edges of the blocks."""
        law = checked_law(weight_decay, rates, self.arch.matrices)
        pieces = self.split.pieces
        return Law(law.weight_decay, {p: r for e, r in law.rates.items() for p in pieces[e]})

    @cached_property
    def _digest(self) -> str:
        return self.data.digest()

    @door
    def weights(self, solution: Trajectory, t: float, key: Key = 0) -> dict[str, np.ndarray]:
        """Full-size weights of the network at time `t` of a solution; at t = 0 a decoupled start.

        `t` must be one of `solution.time`, and the solution one of this race.
        Hidden directions are random orthonormal ones drawn from `key`:
        `W_e = Σ_blocks R_t(e) B_e R_s(e)ᵀ` (NRR Eq. 9).

        ```python
        >>> import jax, numpy as np, neuralrace as nr
        >>> arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
        >>> race = nr.reduce(arch, data)
        >>> sol = race.solve(times=np.linspace(0, 40, 5), start=0.01)
        >>> weights = race.weights(sol, 40, jax.random.key(0))
        >>> bool(nr.GDLN(arch).loss(weights, data) < 1e-6)
        True

        ```
        """
        require(
            solution.settings.get("data", self._digest) == self._digest,
            "this is the solution of another race",
            got="a trajectory on other data",
            wanted="what race.solve of this race returned",
            fix="pass the solution of this race",
        )
        return Source(self.blocks, self.split).weights(solution, t, key)

    # ---- in symbols ----------------------------------------------------------------------------

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
        weight_decay: float | None = None,
        rates: Mapping[str, float] | None = None,
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
        weight_decay: float | None = None,
        rates: Mapping[str, float] | None = None,
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
        weight_decay: float | None = None,
        rates: Mapping[str, float] | None = None,
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
        weight_decay: float | None = None,
        rates: Mapping[str, float] | None = None,
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
    def to_html(
        self,
        path: str | Path | None = None,
        *,
        start: StartLike = PAGE_START,
        until: Positive | None = None,
    ) -> RacePage:
        """One page with the equations, sliders and curves, solved in the browser; returns its text.

        It needs no server, no network and no installation: the equations as MathML, sliders for the
        drive S, the brake D and the start of every mode and for weight decay, and the loss and the
        strengths of the paths, by the method of Dormand and Prince. A notebook shows it by itself.
        Modes with the same equations and numbers share sliders. Blocks with too many variables to
        be written out are left out, and the page says so.

        **Arguments:** with a `path` the text is also written there. `start` is that of
        `race.start`. Curves end at `until`, by default where the loss has settled.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> text = race.to_html(start=1e-3)
        >>> text.count("<fieldset>"), "<math" in text, "://" in text
        (2, True, False)

        ```
        """
        page = race_page(self, self.start(start), until)
        if path is not None:
            write_whole(Path(path), page.encode())
        return page

    @door
    def modes(
        self,
        start: StartLike | None = None,
        *,
        scale: float | None = None,
        items: str | None = None,
        names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        seeds: int = 0,
        key: Key = 0,
        least: float = LEAST,
        weight_decay: float | None = None,
    ) -> ModeTable:
        """Which distinctions are learned, in which order, when, and how sure that is.

        Each mode has a drive s, the singular value of Σ^yx, and grows as a logistic function of
        time to its final strength s/d, d being the variance of the inputs along it; from strength
        a₀ it is half there at t = ln(s/(d a₀) − 1) / (2s), so that stronger distinctions come
        first (NRR Eq. 21; Saxe, McClelland & Ganguli 2019, Eq. 6, for items and properties). Other
        depths use their own closed form. A mode of a recurrent network, for which size and lateness
        of its inputs count, is solved: `final` is the strength of its strongest path, and it is
        half there when three quarters of the fall of its loss are done. Items stand on the two
        sides of a mode by the sign of their inputs along its input singular vector, and outputs by
        the sign of its output singular vector. Half-times assume gradient flow; in training, t is
        `learning_rate` times the number of steps.

        **Arguments:** `start` is as in `race.start`; or `scale` is the standard deviation of
        random weights, from which an average start is known for pathways of two edges. `items`
        is the label that names the samples, by default the first label that is text; samples of
        one name are averaged. Where there is none, input features are named. `names` are those of
        the outputs, or `{output node: names}`. `seeds` is the number of random starts of the
        network with this `scale`, drawn from `key`, whose half-times say which neighbours in the
        order are ties. Items and outputs smaller than `least` of the largest are not named.
        `weight_decay` λ takes λ from the drive of two-edge pathways, so that those with s ≤ λ end
        at 0 and have no half-time.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> items = ["pine", "rose", "robin", "salmon"]
        >>> y = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
        >>> data = nr.Dataset({"x": np.eye(4)}, {"y": y}, labels={"item": items})
        >>> race = nr.reduce(nr.Architecture.chain(4, 32, 4), data)
        >>> print(race.modes(scale=1e-3, names=["grow", "roots", "move", "swim"]))
        First what all share (t = 9.54), then salmon, robin against pine, rose (t = 15.1), then \
robin against salmon (t = 32.9).
        mode        s   final  half time  items                             outputs
        mode1   0.627   2.508      9.539  what all share                    +grow, +move, +roots
        mode2  0.3787   1.515      15.13  salmon, robin against pine, rose  −roots, +move, +swim
        mode3  0.1612  0.6448      32.89  robin against salmon              −swim, +move
        pine and rose are the same to this network: they are never told apart.
        Start: the average of random weights of standard deviation 0.001. Named: loadings of at \
least 0.33 of the largest in the mode. Half-time: to half of the final strength.

        ```
        """
        law = self._law(weight_decay, None)
        return modes_of(self, start, scale, items, names, seeds, key, least, law)

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
        if index in start.aside:
            return None
        return block_form(self.blocks[index], start.weights[index], law)

    # ---- in words ------------------------------------------------------------------------------

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """Where MHS Assumption 2.1.1 (all statistics diagonal in shared bases) fails, in words."""
        return tuple(block.failure for block in self.blocks if block.failure)

    def __repr__(self) -> str:
        count, scalar = len(self.blocks), sum(block.is_scalar for block in self.blocks)
        blocks = f"{count} block{'s' * (count != 1)}, {scalar} of them scalar"
        return f"Race({blocks}; residual {self.residual:.1e})"

    def frame(self) -> pandas.DataFrame:
        """One row per block, the strongest first.

        `block` is its name; `inputs` and `outputs`, how many directions it has at its ends; `s`,
        its drive; `growth_rate`, at which small weights grow; `scalar`, whether it is a mode;
        `weights`, how many numbers its network has; `loss`, its loss at zero weights; and
        `copy_of`, the first block that it equals.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.frame()[["block", "inputs", "s", "scalar"]].round(4).to_numpy().tolist()[0]
        ['mode1', 1, 0.3536, True]

        ```
        """
        return block_frame(self)

    def sentences(self) -> tuple[Sentence, ...]:
        """What the blocks are and how exact they are, and what else is worth a remark.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.sentences()[0].text
        '4 independent blocks, all of them scalar modes; exact (no coupling above 1e-08).'

        ```
        """
        return tuple(sentences(self))

    @door
    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """The drive of every block, the strongest first; returns the axes.

        Modes are filled dots, and blocks that are no modes are open ones.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
        >>> race.plot().get_ylabel()
        'drive s'

        ```
        """
        return draw_blocks(self, ax)

    def _printed(self) -> pandas.DataFrame | None:
        rows = [dict(zip(HEADINGS, row, strict=True)) for row in printed_rows(self)]
        return framed(HEADINGS, rows) if rows else None

    def __str__(self) -> str:  # as every result, but without pandas, which takes long to import
        return self.describe()

    @door
    def describe(self, *, full: bool = False) -> str:
        """The text that `print(race)` shows; with `full`, all modes and variables with all edges.

        ```python
        >>> import neuralrace as nr
        >>> race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=2, K=2)[0]))
        >>> "B1: 4 edges (in1, in2, out1, …)" in str(race)
        True
        >>> "B1: 4 edges (in1, in2, out1, out2)" in race.describe(full=True)
        True

        ```
        """
        first, *others = (sentence.text for sentence in sentences(self, full))
        left = len(others) - SENTENCES + 1
        if not full and left > 0:
            others[SENTENCES - 1 :] = [f"({left} more: sentences())"]
        rows = printed_rows(self, full)
        return "\n".join([first, *(table_lines(HEADINGS, rows) if rows else []), *others])


def _has_axes(value: object) -> bool:
    """Whether this is an array or a nested list rather than one number."""
    return isinstance(value, list | tuple) or getattr(value, "shape", ()) != ()


def _check_shared(arch: Architecture, tolerance: float) -> None:
    """Raise where shared or frozen weights are of a kind that the reduction does not know."""
    matrices = [e for e, value in arch.frozen.items() if not isinstance(value, float)]
    require(
        not matrices,
        "an edge that is frozen as a matrix fixes directions of hidden nodes, which do not reduce",
        got=f"frozen {listed(matrices)}",
        wanted="edges that are frozen as multiples of the identity",
        fix="nr.train and nr.flow know such networks",
    )
    require(
        tolerance <= EXACT or not (arch.ties or arch.frozen),
        "approximate reductions are not known for networks with shared or frozen weights",
        got=f"tolerance {tolerance:g}",
        wanted=f"an exact reduction, {EXACT:g}",
        fix="leave out tolerance",
    )


@door
def reduce(arch: Architecture, data: Dataset, *, tolerance: Inside = EXACT) -> Race:
    """The neural race reduction of any graph, gating and data (NRR Eqs. 7–10), found automatically.

    First, parts of the network that learn independently are separated. Then orthogonal bases at the
    input and output nodes are found that bring all statistics of a part to the finest common
    block-diagonal form. Scalar blocks are the papers' modes, each a network with one neuron per
    node; where the statistics do not commute, small matrix blocks remain, and the reduction still
    holds exactly. No path is listed: the cost grows with the edges and gate classes.

    **Arguments:** couplings between blocks smaller than `tolerance` are dropped, each relative to
    the sizes of the two directions it couples, |M_ij| against √(M_ii M_jj), so that the units of
    nodes and features do not matter. The default drops only rounding; a larger tolerance makes an
    approximate reduction, which says so (`is_exact`, `residual`) and also drops directions smaller
    than the tolerance, relative to their node.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0))))
    2 independent blocks, all of them scalar modes; exact (no coupling above 1e-08).
    block  directions  s    variables                             closed form
    mode1  x 1 → y 1   0.5  B1: 2 edges (x_positive, positive_y)  logistic
    mode2  x 1 → y 1   0.5  B1: 2 edges (x_negative, negative_y)  logistic
    s: largest singular value of Σ^yx in the block; B: a variable that its edges share
    silent directions: x 2

    ```
    """
    _check_shared(arch, tolerance)
    with one_thread():
        whole = split_neurons(arch, data)
        check_targets(arch, data)
        found = find_blocks(whole, tolerance)
    return Race(
        arch, data, whole, found.blocks, found.constant, found.silent, tolerance, found.exactness
    )
