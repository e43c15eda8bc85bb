"""Where average learning stands still: the stationary points of an agent, and how they connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.behaviour.agent import Agent
from neuralrace.behaviour.points import (
    Route,
    StationaryPoint,
    distinct,
    find_routes,
    gap,
    is_rest,
    point_at,
    simplest,
)
from neuralrace.behaviour.policies import jumps
from neuralrace.behaviour.vectors import (
    flat,
    roots,
    symmetries,
)
from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.plot import COLOURS, style
from neuralrace.results import Result, Sentence, framed
from neuralrace.text import numbered, several
from neuralrace.tolerances import ARRIVED, DIGITS, STATIONARY
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Key, NotNegative, Positive

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

COLUMNS = (
    "point", "learned", "loss", "index", "stable", "neutral", "family", "rate", "residual"
)  # fmt: skip
"""The columns of `StationaryPoints.frame`."""

SPREAD = (0.01, 3.0)
"""The sizes between which standard deviations of the random starts are drawn."""

MOST = 12
"""The most hidden nodes whose subsets are gone through."""


@final
@dataclass(frozen=True)
class Rest:
    """A time at which values hardly change, with the nearest stationary point and its distance.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
    >>> agent, task = shallow_agent(), decision_task()
    >>> run = nr.flow_ensemble(agent, task, key=0, seeds=1, scale=0.01,
    ...                        times=range(0, 1000, 5), record={"outputs": True})
    >>> points = stationary_points(agent, task, starts=16)
    >>> (rest,) = points.rests(run, speed=1e-3, least=20.0)[0]
    >>> rest.start <= rest.at < rest.end, rest.distance < 0.1
    (True, True)

    ```
    """

    start: float
    end: float
    at: float
    point: int
    distance: float


@door
def stationary_points(
    agent: Agent, data: Sampled, *, starts: Count = 256, key: Key = 0
) -> StationaryPoints:
    """All stationary points of the average learning of an agent that a search finds.

    For every set of hidden nodes, the weights of all other nodes are set to zero, where they would
    stay, and zeros of the velocity are sought from `starts` random starts. Half of them first
    follow the flow to where learning rests; then all go by the method of Levenberg, Marquardt and
    Newton. Where task and agent are symmetric, such as between left and right, the mirror images
    of what was found are added. Points with equal values on all stimuli are one. Where a choice is
    never taken (with probability below 1e-6, or below 1e-10 among the stimuli of one input) its
    values hardly move, whatever they are: that is not listed.

    **Families.** If rescaling a hidden node (its incoming weights times a, its outgoing ones over
    a) leaves a point stationary, the point listed has equal norms on both sides of the node. Nodes
    that contribute nothing have weights zero. The sign of a node is free: its largest incoming
    weight is positive.

    **Returns:** `StationaryPoints`, those with few learned nodes first. Computed in float64. A
    search can miss points: `starts` and `key` say how hard it looks.

    ```python
    >>> from neuralrace.behaviour import decision_task, deep_agent, stationary_points
    >>> found = stationary_points(deep_agent(decay=0.01), decision_task(), starts=32)
    >>> [(point.learned, point.index) for point in found.points]
    [((), 2), (('cortex_left',), 1), (('cortex_right',), 1), (('cortex_left', 'cortex_right'), 0)]

    ```
    """
    agent.check(data)
    require(
        not jumps(agent.policy, agent.n_choices),
        "stationary points need a policy that is smooth",
        got=f"{agent.policy}, which jumps where values cross",
        wanted="probabilities that change continuously with the values",
        fix="policy=behaviour.Softmax(5.0)",
    )
    hidden = agent.arch.hidden
    require(
        len(hidden) <= MOST,
        "there are too many sets of hidden nodes",
        got=f"{len(hidden)} hidden nodes",
        wanted=f"at most {MOST}",
        fix="several neurons per node instead of several nodes",
    )
    rng = generator(key)
    sets = list(chain.from_iterable(combinations(hidden, k) for k in range(len(hidden) + 1)))
    with jax.enable_x64(True):
        given = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), data)
        rows = np.concatenate([_starts(agent, learned, starts, rng) for learned in sets])
        relaxed = jnp.arange(len(rows)) % 2 == 0
        ends, residual = map(np.asarray, roots(agent, given, jnp.asarray(rows), relaxed))
        fine = np.isfinite(ends).all(axis=1) & (residual <= STATIONARY)
        best = distinct(agent, given, ends[fine][np.argsort(residual[fine], kind="stable")])
        images = [best, *(best[:, order] for order in symmetries(agent, given))]
        best = distinct(agent, given, np.concatenate(images))
        at_rest = [row for row in best if is_rest(agent, given, row)]
        points = [point_at(agent, given, simplest(agent, given, row)) for row in at_rest]
    order = {learned: k for k, learned in enumerate(sets)}
    points.sort(key=lambda p: (order[p.learned], round(p.loss, 9), *-p.choices.ravel().round(6)))
    return StationaryPoints(agent, data, tuple(points))


@final
@dataclass(frozen=True, eq=False)
class StationaryPoints(Result):
    """The stationary points of an agent on a task; see `stationary_points`.

    ```python
    >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
    >>> found = stationary_points(shallow_agent(), decision_task())
    >>> len(found.points), found.routes
    (1, ())

    ```
    """

    agent: Agent
    data: Dataset
    points: tuple[StationaryPoint, ...]

    _asked = ("routes",)

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """Which point leads to which, along every unstable direction of a single node.

        Where several directions grow at the same rate, those of a basis are followed: mixtures of
        them may lead elsewhere.
        """
        hidden = self.agent.arch.hidden
        silent = [[v for v in hidden if v not in point.learned] for point in self.points]

        def nearest(weights: Mapping[str, np.ndarray]) -> int | None:
            far = self.distances(jax.tree.map(np.asarray, self.agent(weights, self.data)))
            return int(far.argmin()) if far.size and far.min() <= ARRIVED else None

        with jax.enable_x64(True):
            weights = [point.weights for point in self.points]
            return find_routes(self.agent, self.data, weights, silent, nearest)

    def frame(self) -> pandas.DataFrame:
        """One row per point, those with few learned nodes first.

        `point`, its place in `points`; `learned`, the hidden nodes that contribute; `loss`;
        `index`, how many directions lead away; `stable`, whether none does, None where
        eigenvalues do not decide; `neutral`, directions in which nothing changes to first order;
        `family`, whether the point can be moved along them; `rate`, the largest real part of an
        eigenvalue; `residual`, the largest entry of the velocity.
        """
        rows = [
            {
                "point": k,
                "learned": point.learned,
                "loss": point.loss,
                "index": point.index,
                "stable": point.is_stable,
                "neutral": point.neutral,
                "family": point.is_family,
                "rate": float(np.real(point.eigenvalues).max()),
                "residual": point.residual,
            }
            for k, point in enumerate(self.points)
        ]
        return framed(COLUMNS, rows)

    def sentences(self) -> tuple[Sentence, ...]:
        """How many points were found, where learning can end, and what is not decided."""
        ends = [point for point in self.points if point.is_stable]
        open_ = sum(point.is_stable is None for point in self.points)
        text = f"A search found {numbered(len(self.points), 'stationary point')}"
        text += f", {len(ends)} of them stable" if len(self.points) > 1 else ""
        text += ", which is stable" if len(self.points) == len(ends) == 1 else ""
        said = [Sentence("count", f"{text}; a search can miss some.")]
        for point in ends:
            learned = several(point.learned) if point.learned else "no hidden node"
            text = f"Learning can end at loss {point.loss:.4g}, with {learned} learned."
            said.append(Sentence("end", text))
        if open_:
            text = f"Of {numbered(open_, 'point')} eigenvalues do not decide the stability."
            said.append(Sentence("undecided", text))
        return tuple(said)

    @door
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The loss of every point over the number of directions that lead away.

        Stable points are filled, others open. Arrows are `routes`, where these were asked for.
        """
        import matplotlib.pyplot as plt

        with style():
            ax = plt.subplots()[1] if ax is None else ax
            at = [(point.index, round(point.loss, DIGITS)) for point in self.points]
            names: dict[tuple[int, float], list[str]] = {}
            for point, place in zip(self.points, at, strict=True):
                face = COLOURS["theory"] if point.is_stable else "white"
                ax.plot(*place, "o", color=COLOURS["theory"], markerfacecolor=face)
                names.setdefault(place, []).append(", ".join(point.learned) or "nothing learned")
            for place, said in names.items():
                text = "\n".join(said)
                ax.annotate(text, place, (6, 3), textcoords="offset points", fontsize="small")
            for route in self.__dict__.get("routes", ()):
                if route.target is not None:
                    ends = {"xy": at[route.target], "xytext": at[route.source]}
                    arrow = {"arrowstyle": "->", "color": COLOURS["neutral"], "shrinkB": 5}
                    ax.annotate("", **ends, arrowprops=arrow)
            most = max((index for index, _ in at), default=0)
            ax.set(xlabel="directions that lead away", ylabel="loss", xticks=range(most + 1))
            ax.set(xlim=(most + 0.6, -0.6), title="filled: stable")
            ax.margins(y=0.15)
        return ax

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph`: nodes are places in `points`, edges the routes between them.

        ```python
        >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
        >>> len(stationary_points(shallow_agent(), decision_task()).to_networkx())
        1

        ```
        """
        import networkx

        graph = networkx.DiGraph()
        for k, point in enumerate(self.points):
            graph.add_node(k, learned=point.learned, index=point.index, loss=point.loss)
        for route in self.routes:
            if route.target is not None:
                graph.add_edge(route.source, route.target, node=route.node, rate=route.rate)
        return graph

    @door
    def distances(self, outputs: Mapping[str, ArrayLike]) -> Float[np.ndarray, "*shape points"]:
        """The distance of values from those of every point, in the order of `points`.

        √⟨Σ_v ‖h_v − h_v*‖²⟩ over output nodes v, ⟨·⟩ the mean over stimuli.

        **Arguments:** `outputs`, `{output node: (…, N, choices)}`, such as `run.values["outputs"]`
        of a run with `record={"outputs": True}`.

        ```python
        >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
        >>> found = stationary_points(shallow_agent(), decision_task())
        >>> found.distances(found.points[0].outputs)
        array([0.])

        ```
        """
        count, nodes = self.data.n_samples, self.agent.arch.outputs
        form = f"(…, {count}, {self.agent.n_choices})"
        fix = "run.values['outputs'] of a run with record={'outputs': True}"
        given = []
        for node in nodes:
            require(
                node in outputs,
                f"there are no outputs of {node!r}",
                got=listed(outputs),
                wanted=listed(nodes),
                fix=fix,
            )
            one = real_array(f"outputs[{node!r}]", outputs[node], wanted=form, fix=fix)
            require(
                one.ndim >= 2 and one.shape[-2:] == (count, self.agent.n_choices),
                "the outputs do not fit the task",
                got=f"{node!r} of shape {one.shape}",
                wanted=form,
                fix=fix,
            )
            given.append(one)
        here = np.stack(np.broadcast_arrays(*given), axis=-3)
        far = np.empty((*here.shape[:-3], len(self.points)))
        for k, point in enumerate(self.points):
            far[..., k] = gap(self.data, here, np.stack([point.outputs[v] for v in nodes]))
        return far

    @door
    def rests(
        self, run: Trajectory, *, speed: Positive, least: NotNegative
    ) -> tuple[tuple[Rest, ...], ...]:
        """Where runs rest: spans of at least `least` in which values move slower than `speed`.

        Speeds are distances (see `distances`) per unit of time between recorded moments. They are
        found without reference to stationary points; each rest is then given the nearest one, at
        its slowest moment.

        **Arguments:** `run` with recorded `outputs` and one axis, such as of `nr.flow_ensemble`.

        **Returns:** the rests of every member, in order of time.

        ```python
        >>> import neuralrace as nr
        >>> from neuralrace.behaviour import decision_task, shallow_agent, stationary_points
        >>> agent, task = shallow_agent(), decision_task()
        >>> run = nr.flow_ensemble(agent, task, key=0, seeds=1, scale=0.01,
        ...                        times=range(0, 1000, 5), record={"outputs": True})
        >>> rests = stationary_points(agent, task).rests(run, speed=1e-3, least=20.0)
        >>> [rest.point for rest in rests[0]]
        [0]

        ```
        """
        outputs = run.values.get("outputs")
        if not isinstance(outputs, Mapping) or run.loss.ndim != 2:
            raise NeuralRaceError(
                "the run has no outputs of several members",
                got=f"values {listed(run.values)}, axes {listed(run.axes)}",
                wanted="recorded 'outputs', and one axis",
                fix="nr.flow_ensemble(…, record={'outputs': True})",
            )
        far = self.distances(outputs)
        seen = np.stack([np.asarray(outputs[v], float) for v in self.agent.arch.outputs], axis=-3)
        speeds = gap(self.data, seen[:, 1:], seen[:, :-1]) / np.diff(run.time)
        return tuple(
            tuple(_rests(run.time, *member, speed, least))
            for member in zip(speeds, far, strict=True)
        )


def _rests(
    time: np.ndarray, speeds: np.ndarray, far: np.ndarray, slow: float, least: float
) -> Sequence[Rest]:
    flagged = np.concatenate([[False], speeds <= slow, [False]])
    begins = np.flatnonzero(flagged[1:] & ~flagged[:-1])
    ends = np.flatnonzero(~flagged[1:] & flagged[:-1])
    found = []
    for a, b in zip(begins, ends, strict=True):
        if time[b] - time[a] >= least:
            at = a + int(speeds[a:b].argmin())
            point = int(far[at].argmin())
            begin, end, slowest = (float(time[k]) for k in (a, b, at))
            found.append(Rest(begin, end, slowest, point, float(far[at, point])))
    return found


def _starts(
    agent: Agent, learned: Sequence[str], count: int, rng: np.random.Generator
) -> Float[np.ndarray, "K n"]:
    """Random weights in which only these hidden nodes take part."""
    mask = {
        edge: np.full(
            (agent.arch.sizes[t], agent.arch.sizes[s]),
            all(v in learned for v in (s, t) if v in agent.arch.hidden),
            float,
        )
        for edge, (s, t) in agent.arch.edges.items()
    }
    on = flat(agent, mask)
    low, high = np.log(SPREAD)
    sizes = np.exp(rng.uniform(low, high, (count, 1)))
    return on * sizes * rng.normal(size=(count, len(on)))
