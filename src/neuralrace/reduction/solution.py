"""A race over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics import StoppedError
from neuralrace.errors import require
from neuralrace.reduction.reconstruct import Source, evaluations
from neuralrace.reduction.reduced import Reduced
from neuralrace.reduction.rules import check_keeps_blocks
from neuralrace.reduction.solve import Request, solve_blocks
from neuralrace.reduction.start import (
    Start,
    StartLike,
    StartsLike,
    check_start_known,
    many_starts,
)
from neuralrace.reduction.system import RaceSystem, system_of
from neuralrace.statistics import threads_for
from neuralrace.tolerances import ALONE
from neuralrace.trajectory import Trajectory, concat
from neuralrace.types import ArrayLike, BelowOne, Key, NotNegative, Positive, Tolerance

if TYPE_CHECKING:
    from optax import GradientTransformation

    from neuralrace.dynamics import Stepper


class Solvable(Reduced):
    """A race over time: its solution, the system in JAX, and weights of full size."""

    @door
    def solve(
        self,
        *,
        times: ArrayLike,
        start: StartsLike,
        learning_rate: Positive | None = None,
        momentum: BelowOne | None = None,
        weight_decay: NotNegative | None = None,
        rates: Mapping[str, Positive] | None = None,
        optimizer: GradientTransformation | Stepper | None = None,
        evaluate: Mapping[str, Dataset] | None = None,
        rtol: Tolerance | None = None,
        accuracy: Positive | None = ALONE,
    ) -> Trajectory:
        """The solution of the race at `times`, as a `Trajectory` like any other.

        It follows gradient flow in every block or, with a `learning_rate`, gradient descent itself:
        in such small blocks the steps are taken one by one, so the step size adds no approximation.
        Times are then rounded to whole steps, and times that fall on one step are returned once.
        From weights that are not decoupled the solution is an approximation for small starts; see
        `start`. `values` holds the loss of each block (`"losses"`), every variable (`"variables"`,
        by block and edge) and, where there are at most 1000 paths in a block, the strength of every
        path (`"pathways"`, by block and path, edges joined by "-"): the product of its edges, or in
        a matrix block the Frobenius norm of this product. Modes that are followed together, and
        deep pathways from weights, have as many hidden neurons as learning reaches hidden
        directions, up to rounding. Outputs on all samples are
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

        **Shared weights.** What the start of a recurrent network leaves out of random weights (all
        but one hidden direction per mode) is not known to be small, so it is measured: the whole
        network is followed from its own weights, too. `settings["error_alone"]` is the largest
        |ΔL| / L(0) of the blocks solved one by one, at the times asked for. Up to `accuracy` they
        are the solution. Beyond it, the solution is that of the network: blocks have all hidden
        neurons then, and `loss` has more than theirs, since they disturb each other and silent
        directions are not at rest. `settings["error"]` is that of the solution: 0 for the network
        itself. `accuracy=None` solves the blocks alone, which is quick for large networks, and says
        nothing of the error. Networks without shared weights are not measured.

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
                "accuracy": accuracy,
            }  # fmt: skip
            parts = [self.solve(times=times, start=one, **rule) for one in starts]
            numbers = not any(isinstance(one, Start | Mapping) for one in starts)
            axis: Any = starts if numbers else np.arange(len(starts))
            return concat(parts, axis=("start", axis))
        start, others = self.start(starts), evaluations(self.split, evaluate)
        check_keeps_blocks(optimizer, self.split.arch)
        request = Request.of(
            times, learning_rate, rtol=rtol, momentum=momentum,
            law=self._law(weight_decay, rates), optimizer=optimizer,
        )  # fmt: skip
        try:
            with threads_for(self._width):
                solution = solve_blocks(
                    self.blocks, start, request, self.outside, self.split, accuracy=accuracy,
                    settings={"data": self._digest}, sample_weight=self.data.sample_weight,
                    source=None if self.data.is_population else Source(self.blocks, self.split),
                )  # fmt: skip
        except StoppedError as error:
            error.trajectory = self._evaluated(error.trajectory, others)
            raise
        return self._evaluated(solution, others)

    def _evaluated(self, solution: Trajectory, others: Mapping[str, Dataset]) -> Trajectory:
        """The solution with its loss on other data."""
        source = Source(self.blocks, self.split)
        losses = {name: {"loss": source.loss_on(solution, d)} for name, d in others.items()}
        return replace(solution, values={**solution.values, **losses}) if losses else solution

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
