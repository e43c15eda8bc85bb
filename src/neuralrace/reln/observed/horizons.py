"""How long frozen gates stay valid, and in how few stages they cover all of training."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import real_number
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.dynamics import Descent, System, Until, take_steps
from neuralrace.dynamics.setup import prepared
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN
from neuralrace.progress import progress
from neuralrace.reln.observed.activity import activity
from neuralrace.reln.observed.runs import (
    check_trained_on,
    descent_of,
    gates_over_time,
    recorded_weights,
    relu_of,
)
from neuralrace.text import percent
from neuralrace.tolerances import BOUNDARY
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measure: TypeAlias = Literal["outputs", "loss"]
"""What can be compared between the two networks."""


@final
@dataclass(frozen=True)
class Horizons:
    """How far a gated network with frozen gates follows the ReLU network; see `horizons`.

    `gap[i, j]` `(T, T)` is the discrepancy at `time[j]` of the gated network that started from the
    ReLU network's weights at `time[i]` with its gates of that moment; infinite before the start
    and after it has passed `tolerance`. `loss` is that of the ReLU network.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> gap = np.array([[0.0, 0.01, 0.2], [np.inf, 0.0, 0.01], [np.inf, np.inf, 0.0]])
    >>> loss = np.array([1.0, 0.9, 0.0])
    >>> found = nr.reln.Horizons(np.arange(3.0), loss, gap, 0.05, "outputs", 1e-3)
    >>> found.reach(), len(found.stages()), found.stages().fall.round(1)
    (array([1, 2, 2]), 2, array([0.1, 0.9]))

    ```
    """

    time: Float[np.ndarray, " T"]
    loss: Float[np.ndarray, " T"]
    gap: Float[np.ndarray, "T T"]
    tolerance: float
    measure: str
    boundary: float

    @door
    def reach(self, tolerance: float | None = None) -> Int[np.ndarray, " T"]:
        """For each start the last recorded moment until which it stays within the tolerance.

        The horizon of start i is `time[reach[i]] − time[i]`; the network leaves the tolerance
        before the recorded moment that follows. `tolerance` may be smaller than the one measured.
        """
        limit = self._limit(tolerance)
        out = ~(self.gap <= limit) & (
            np.arange(len(self.time)) > np.arange(len(self.time))[:, None]
        )
        end = np.where(out.any(axis=1), out.argmax(axis=1), len(self.time))
        return end - 1

    @door
    def stages(self, tolerance: float | None = None) -> Stages:
        """The fewest stages of frozen gates that cover all of training within the tolerance.

        Each stage starts at a recorded moment from the ReLU network's own weights and gates, and
        may end at any recorded moment up to its reach. Among all starts that the stages so far
        can arrive at, the next stage takes the one that reaches furthest: this is optimal without
        any assumption on the horizons, for starts at recorded moments. Where no stage crosses a
        gap between two recorded moments it is crossed nevertheless, counted as a stage, and
        listed in `unresolved`: the true number is then larger or the recording too coarse.
        """
        reach = self.reach(tolerance)
        last, starts, unresolved = len(self.time) - 1, [0], []
        arrived = int(reach[0])
        while arrived < last:
            among = np.arange(starts[-1], arrived + 1)
            best = int(among[reach[among].argmax()])
            if reach[best] > arrived:
                starts.append(best)
                arrived = int(reach[best])
            else:  # no stage gets further: one gap is crossed nevertheless
                unresolved.append(arrived)
                if arrived > starts[-1]:
                    starts.append(arrived)
                arrived += 1
        ends = [*starts[1:], last]
        fall = -np.diff(self.loss[[*starts, last]]) / self.loss[0]
        return Stages(
            start=self.time[starts],
            end=self.time[ends],
            fall=fall,
            unresolved=self.time[unresolved],
            tolerance=self._limit(tolerance),
            measure=self.measure,
        )

    @door
    def plot(self, tolerance: float | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw how far each start reaches, and the stages that cover training."""
        from neuralrace.plot import draw_reach

        stages = self.stages(tolerance)
        reach = self.time[self.reach(tolerance)]
        return draw_reach(self.time, reach, np.append(stages.start, stages.end[-1]), ax=ax)

    def __str__(self) -> str:
        return str(self.stages())

    def _limit(self, tolerance: float | None) -> float:
        if tolerance is None:
            return self.tolerance
        tolerance = real_number("tolerance", tolerance, fix="for example tolerance=0.01")
        if not 0 < tolerance <= self.tolerance:
            raise NeuralRaceError(
                "nothing was measured beyond the tolerance of the horizons",
                got=f"tolerance = {tolerance}",
                wanted=f"a positive number of at most {self.tolerance}",
                fix="call nr.reln.horizons with the largest tolerance that is of interest",
            )
        return tolerance


@final
@dataclass(frozen=True)
class Stages:
    """Stages of frozen gates that cover a training run; see `Horizons.stages`.

    `start` and `end` `(S,)` are times; `fall` `(S,)` is by how much the ReLU network's loss falls
    in each, as a share of the initial loss. `races` counts the stages in which it falls by more
    than the tolerance: the others are waiting times, in which the gates change before much is
    learned. `unresolved` lists the recorded moments from which no stage reaches the next.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> start, end, fall = np.array([[0.0, 10.0], [10.0, 40.0], [0.01, 0.9]])
    >>> stages = nr.reln.Stages(start, end, fall, unresolved=np.array([]), tolerance=0.05,
    ...                         measure="outputs")
    >>> len(stages), stages.races
    (2, 1)

    ```
    """

    start: Float[np.ndarray, " S"]
    end: Float[np.ndarray, " S"]
    fall: Float[np.ndarray, " S"]
    unresolved: Float[np.ndarray, " U"]
    tolerance: float
    measure: str

    def __len__(self) -> int:
        return len(self.start)

    @property
    def races(self) -> int:
        """In how many stages the loss falls by more than the tolerance."""
        return int((self.fall > self.tolerance).sum())

    def __str__(self) -> str:
        least = "at least " if len(self.unresolved) else ""
        parts = ", ".join(
            f"{a:.4g}–{b:.4g} ({percent(fall)})"
            for a, b, fall in zip(self.start, self.end, self.fall, strict=True)
        )
        many = (
            "1 stage of frozen gates follows"
            if len(self) == 1
            else (f"{len(self)} stages of frozen gates follow")
        )
        text = (
            f"{least}{many} the {self.measure} within {self.tolerance:.2g}, {self.races} of them "
            f"with a race; times and fall of the loss: {parts}"
        )
        if len(self.unresolved):
            text += f"; no stage reaches the next recorded moment at {len(self.unresolved)} moments"
        return text + "."


@door
def horizons(
    run: Trajectory,
    data: Sampled,
    *,
    tolerance: Positive = 0.05,
    measure: Measure = "outputs",
    boundary: float = BOUNDARY,
    gates: Mapping[str, ArrayLike] | None = None,
) -> Horizons:
    """How long a gated network with frozen gates follows the ReLU network, from every moment.

    At every recorded moment t₀ a GDLN starts from the ReLU network's own weights, with the gates
    that the network has at t₀ (MHS §3), and descends with the same step until it leaves the
    tolerance. Its discrepancy at time t is, by `measure`,

    - `"outputs"`: √(⟨‖o_ReLU − o_GDLN‖²⟩ / 2 L(0)), ⟨·⟩ by the sample weights, a part of the
      initial root mean square error;
    - `"loss"`: |L_ReLU − L_GDLN| / L(0),

    L(0) the run's initial loss. Discrepancies are seen at recorded moments only.

    **Arguments:** `run`, of `nr.train` with a `ReLUNetwork` and `record={"weights": True}`: its
    recorded moments are both the starts and the moments of comparison; fifty to a
    hundred of them are usual. `boundary` decides what is on, as in `activity`: gates frozen on
    where a neuron hops about z = 0 end a horizon at once. `gates`, in place of these, are gates of
    every neuron at every recorded moment, `{node: (T, N, size)}`; they may be fractions, such as
    those of `nr.reln.sliding_over`. One compiled program serves all starts;
    the cost is the sum of the horizons.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(1.5), nr.ReLUNetwork((3, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data, learning_rate=0.1,
    ...                steps=300, record_every=20, record={"weights": True})
    >>> found = nr.reln.horizons(run, data, tolerance=0.05)
    >>> found.reach().shape, found.stages().races
    ((16,), 1)

    ```
    """
    recorded_weights(run)
    check_trained_on(run, data)
    relu = relu_of(run)
    rate, steps = descent_of(run)
    if gates is None:
        on = activity(run, data, boundary=boundary).on
        held = {node: np.where(pattern, 1.0, relu.leak) for node, pattern in on.items()}
    else:
        held = gates_over_time(run, data, gates)
    net, arch = GDLN(relu.arch), relu.arch
    start = {e: run.values["weights"][e][0] for e in arch.matrices}
    weights, frozen = prepared(net, start, data.gated({n: g[0] for n, g in held.items()}))
    dtype = jnp.result_type(*weights.values())
    at_moments = {node: jnp.asarray(g, dtype) for node, g in held.items()}
    path = {e: jnp.asarray(w, dtype) for e, w in run.values["weights"].items()}
    targets = (_outputs(relu, path, frozen), jnp.asarray(run.loss, dtype))
    initial, limit = (jnp.asarray(v, dtype) for v in (run.loss[0], tolerance))
    method = Descent(jnp.asarray(rate, dtype))
    gap = np.full((len(run.time), len(run.time)), np.inf)
    with progress(len(run.time), "horizons", "starts") as advance:
        for i in range(len(run.time)):
            pick = lambda tree, i=i: jax.tree.map(lambda leaf: leaf[i], tree)
            gated = frozen.gated(pick(at_moments))
            follower = _Follower(net, measure == "loss", gated, pick(targets), initial, limit)
            done = take_steps(
                follower, pick(path), method, steps, first=i, moments=targets, until=_LEFT
            )
            gap[i, i : i + len(done.stops)] = done.values["gap"]
            advance(1)
    return Horizons(
        time=run.time,
        loss=np.asarray(run.loss, np.float64),
        gap=gap,
        tolerance=float(tolerance),
        measure=measure,
        boundary=float(boundary),
    )


@final
class _Follower(System):
    """A gated network that is held against the recorded moments of another run.

    `target` has the outputs and the loss of the other at the present moment.
    """

    net: GDLN = eqx.field(static=True)
    by_loss: bool = eqx.field(static=True)
    data: Any
    target: Any
    initial: Any
    tolerance: Any

    def during(self, moment: Any) -> _Follower:
        return eqx.tree_at(lambda s: s.target, self, moment)

    def loss(self, state: Any) -> Any:
        return self.net.loss(state, self.data)

    def loss_and_step(self, state: Any, rate: Any, batch: Any = None) -> Any:
        return self.net.loss_and_step(state, self.data, rate)

    def observe(self, state: Any) -> dict[str, Any]:
        return {"gap": self.gap(state)}

    def gap(self, state: Any) -> Any:
        """How far the two are apart at the present moment."""
        wanted, loss = self.target
        if self.by_loss:
            return jnp.abs(self.loss(state) - loss) / self.initial
        outputs = self.net(state, self.data)
        square = sum(jnp.sum((o - wanted[node]) ** 2, axis=1) for node, o in outputs.items())
        return jnp.sqrt(jnp.dot(self.data.probability, square) / (2 * self.initial))


def _has_left(system: Any, state: Any) -> Any:
    """Whether a follower is beyond its tolerance, or is not finite."""
    return ~(system.gap(state) <= system.tolerance)


_LEFT = Until(function=_has_left)


@functools.partial(jax.jit, static_argnums=0)
def _outputs(net: Any, path: Any, data: Any) -> Any:
    return jax.lax.map(lambda weights: net(weights, data), path)
