"""What the neurons of a ReLU network do over training: their patterns, weights and switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset, Sampled, matched
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, spelled
from neuralrace.progress import progress
from neuralrace.reln.observed.packed_patterns import (
    PackedPatterns,
    blocks,
    different,
    on_for,
    packed,
)
from neuralrace.reln.observed.runs import gates_over_time, relu_of, single_weights
from neuralrace.reln.observed.shares import OTHER, Shares, added, checked_prototypes
from neuralrace.relu import ReLUNetwork
from neuralrace.text import percent
from neuralrace.tolerances import BOUNDARY, LEAST, MENTIONED, ROUNDING
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Finite, NotNegative
from neuralrace.weights import by_edge

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class Activity:
    """Which neurons of a ReLU network are on, for which samples and when; see `activity`.

    By hidden node, T recorded moments, N samples: `on[node]` is `(T, N, size)`, kept as bits and
    unpacked whenever it is asked for; `weight[node]`,
    `(T, size)`, is ‖w_in‖‖w_out‖ of each neuron; `undecided[node]`, `(T,)`, the part of all
    neurons and samples whose pre-activation is within the boundary, weighted by `weight`: where
    it is not small the patterns depend on the rule. `boundary` is that rule, `leak` the slope of
    a neuron that is off. `fractions[node]`, `(T, N, size)`, are the gates that were given in place
    of the rule, or None: `on` is then where they are nearer to 1 than to `leak`, and `undecided`
    the part that is neither. `data` are the samples, whose labels group them in pictures.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(0.5), nr.ReLUNetwork((3, 32, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=0.01), data, learning_rate=0.1,
    ...                steps=400, record_every=20, record={"weights": True})
    >>> found = nr.reln.activity(run, data)
    >>> found.on["h"].shape, found.weight["h"].shape
    ((21, 4, 32), (21, 32))

    ```
    """

    time: Float[np.ndarray, " T"]
    on: Mapping[str, np.ndarray]
    weight: dict[str, np.ndarray]
    undecided: dict[str, np.ndarray]
    boundary: float
    leak: float
    fractions: dict[str, np.ndarray] | None = None
    data: Dataset | None = None

    @cached_property
    def packed(self) -> PackedPatterns:
        """The same as `on`, as bits."""
        return PackedPatterns.of(self.on)

    @door
    def index(self, at: Finite | None = None) -> int:
        """The recorded moment nearest to time `at`; the last if that is `None`."""
        if at is None:
            return len(self.time) - 1
        return int(np.abs(self.time - at).argmin())

    @door
    def gates(self, at: float | None = None) -> dict[str, Float[np.ndarray, "N size"]]:
        """The patterns at the recorded moment nearest to `at` (the last by default), as gates.

        1 where a neuron is on and `leak` where it is off, or the `fractions` that were given:
        `data.gated(found.gates())` freezes every neuron's own gates (MHS §3).
        """
        k = self.index(at)
        if self.fractions is not None:
            return {node: gates[k].copy() for node, gates in self.fractions.items()}
        return {n: np.where(self.packed.moment(n, k), 1.0, self.leak) for n in self.on}

    @door
    def counted(self, node: str, least: Finite = LEAST) -> Float[np.ndarray, "T size"]:
        """The weight of every neuron of `node` as a part of all, at every moment: `(T, size)`.

        Neurons below `least` times the largest weight of that moment have none, the rest sum to
        one (to zero where all weights are zero).
        """
        weight = self.weight[self._known(node)]
        kept = np.where(weight >= least * weight.max(axis=1, keepdims=True), weight, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        return np.divide(kept, total, out=np.zeros_like(kept), where=total > 0)

    @door
    def shares(
        self, prototypes: Mapping[str, ArrayLike], node: str | None = None, *, least: float = LEAST
    ) -> Shares:
        """How much of the weight of a layer follows which of some prototypes.

        **Arguments:** `prototypes` maps names to patterns `(N,)` of booleans; `node`, which may
        be left out of a network with one hidden node; `least` as in `counted`.

        **Returns:** `Shares`: the weight of neurons whose pattern *is* a prototype, and of those
        for which it is the nearest.

        ```python
        >>> import jax, neuralrace as nr
        >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 64, 1))
        >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data,
        ...                learning_rate=0.1, steps=400, record={"weights": True})
        >>> shares = nr.reln.activity(run, data).shares(data.one_per_sample())
        >>> bool(sum(share[-1] for share in shares.exact.values()) > 0.9)
        True

        ```
        """
        node = self._known(node)
        bits, weight = self.packed.bits[node], self.counted(node, least)
        masks = checked_prototypes(prototypes, self.packed.samples)
        table = np.packbits(np.stack(list(masks.values())), axis=1)
        # the number of samples on which a neuron and a prototype differ, (T, size, P)
        apart = np.stack(
            [np.stack([on_for(now ^ mask) for mask in table], axis=-1) for now in bits]
        )
        nearest = apart == apart.min(axis=-1, keepdims=True)
        exact = np.einsum("ts,tsp->tp", weight, apart == 0)
        rounded = np.einsum("ts,tsp->tp", weight, nearest / nearest.sum(axis=-1, keepdims=True))
        rest = np.maximum(weight.sum(axis=1) - exact.sum(axis=1), 0.0)
        return Shares(
            time=self.time,
            exact={name: exact[:, p] for p, name in enumerate(masks)} | {OTHER: rest},
            rounded={name: rounded[:, p] for p, name in enumerate(masks)},
            distance=np.einsum("ts,ts->t", weight, apart.min(axis=-1)),
            nearest_index=apart.argmin(axis=-1),
            samples=self.packed.samples,
            node=node,
        )

    @door
    def changed(
        self,
        start: float,
        end: float | None = None,
        node: str | None = None,
        *,
        least: float = LEAST,
    ) -> float:
        """On how many samples a neuron's pattern differs between two moments, on average.

        Weighted as `counted` at `end` (the last moment by default).
        """
        node = self._known(node)
        i, j = self.index(start), self.index(end)
        bits = self.packed.bits[node]
        return float(self.counted(node, least)[j] @ on_for(bits[i] ^ bits[j]))

    @door
    def switches(self, node: str | None = None) -> Switches:
        """When and how often the neurons of a layer change their patterns.

        Only recorded moments are compared: a switch and its reversal in between are not seen.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> on = np.array([[[0, 1]], [[1, 1]], [[0, 1]]], bool)  # 3 moments, 1 sample, 2 neurons
        >>> found = nr.reln.Activity(np.arange(3.0), {"h": on}, {"h": np.ones((3, 2))},
        ...                          {"h": np.zeros(3)}, 1e-3, 0.0)
        >>> found.switches().count, found.switches().last
        (array([2, 0]), array([ 2., nan]))

        ```
        """
        node = self._known(node)
        bits = self.packed.bits[node]
        size = bits.shape[1]
        flips = np.zeros((len(bits) - 1, size), int)
        for k, (before, after) in enumerate(pairwise(bits)):
            flips[k] = on_for(before ^ after)
        moved = flips > 0
        never = ~moved.any(axis=0)
        first = self.time[1:][moved.argmax(axis=0)] if len(moved) else np.zeros(size)
        last = self.time[1:][::-1][moved[::-1].argmax(axis=0)] if len(moved) else first
        return Switches(
            time=self.time,
            flips=flips,
            first=np.where(never, np.nan, first),
            last=np.where(never, np.nan, last),
            weight=self.counted(node, 0.0),
            node=node,
        )

    @door
    def plot(
        self,
        prototypes: Mapping[str, ArrayLike],
        node: str | None = None,
        *,
        at: Sequence[float] | None = None,
        samples: Mapping[str, int] | None = None,
        least: float = LEAST,
    ) -> Figure:
        """Rasters of the patterns at a few moments and shares over time; see `draw_activity`."""
        from neuralrace.reln.observed.pictures import draw_activity

        return draw_activity(self, prototypes, node, at=at, samples=samples, least=least)

    def __str__(self) -> str:
        return "\n".join(self._sentence(node) for node in self.on)

    def _sentence(self, node: str) -> str:
        if not np.isfinite(self.weight[node][-1]).all():
            return f"{node}: weights are not finite at t = {self.time[-1]:g}; the run has diverged."
        bits, switches = self.packed.bits[node][-1], self.switches(node)
        last = self.counted(node)[-1]
        kinds = len(different(bits[last > 0])[0])
        carry, size = int((last > 0).sum()), len(last)
        text = (
            f"{node}: {carry} of {size} neurons count at t = {self.time[-1]:g}, with {kinds} "
            f"pattern{'s' * (kinds != 1)}, on for {last @ on_for(bits):.1f} of "
            f"{self.packed.samples} samples on average"
        )
        if len(self.time) > 1:
            text += f"; since t = {self.time[0]:g} they switched {switches.mean(last):.1f} times"
        late = switches.last[last > 0]
        if np.isfinite(late).any():
            text += f", the last time at t = {np.nanmax(late):g}"
        if self.undecided[node][-1] > MENTIONED:
            text += f"; {percent(self.undecided[node][-1])} of their activity is on the boundary"
        return text + "."

    def _known(self, node: str | None) -> str:
        if node is None and len(self.on) == 1:
            return next(iter(self.on))
        if not isinstance(node, str) or node not in self.on:
            raise NeuralRaceError(
                "say which layer is meant" if node is None else f"no hidden node {node!r}",
                got=repr(node),
                wanted=f"one of {listed(self.on)}",
                fix=spelled(node, self.on, "each hidden node is a layer: ask for one at a time"),
            )
        return node


@final
@dataclass(frozen=True, repr=False)
class Switches:
    """When and how often the neurons of a layer changed patterns; see `Activity.switches`.

    `flips` `(T − 1, size)` counts the samples on which a neuron switched between one recorded
    moment and the next; `first` and `last` `(size,)` are the recorded times at which a switch was
    first and last seen, NaN for neurons that never did. `weight` `(T, size)` is each neuron's
    part of the layer's weight.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 16, 1))
    >>> run = nr.train(relu, relu.init(0, scale=1e-3), data, learning_rate=0.1, steps=200,
    ...                record_every=20, record={"weights": True})
    >>> found = nr.reln.activity(run, data).switches()
    >>> found.flips.shape
    (10, 16)
    >>> np.array_equal(np.isnan(found.last), found.count == 0)
    True

    ```
    """

    time: Float[np.ndarray, " T"]
    flips: Int[np.ndarray, "T_1 size"]
    first: Float[np.ndarray, " size"]
    last: Float[np.ndarray, " size"]
    weight: Float[np.ndarray, "T size"]
    node: str

    @property
    def count(self) -> Int[np.ndarray, " size"]:
        """How often each neuron switched, over all samples and moments."""
        return self.flips.sum(axis=0)

    @property
    def rate(self) -> Float[np.ndarray, " T_1"]:
        """Switches per neuron and unit of time between recorded moments, weighted at the later."""
        return np.einsum("ts,ts->t", self.weight[1:], self.flips) / np.diff(self.time)

    def __repr__(self) -> str:
        return f"Switches({self})"

    def __str__(self) -> str:
        ever = np.isfinite(self.last)
        text = (
            f"{self.node}: {int(ever.sum())} of {len(ever)} neurons switched between t = "
            f"{self.time[0]:g} and {self.time[-1]:g}, seen at {len(self.time)} moments"
        )
        if ever.any():
            text += (
                f"; on average {self.mean():.1f} times, the last at t = {self.last[ever].max():g}"
            )
        return text

    @door
    def mean(self, weight: ArrayLike | None = None) -> float:
        """How often a neuron switched on average, weighted as at the end or as given."""
        if weight is None:
            return float(self.weight[-1] @ self.count)
        form, fix = f"shape {self.count.shape}", "for example switches.weight[-1]"
        given = real_array("weight", weight, wanted=form, fix=fix)
        if given.shape != self.count.shape:
            raise NeuralRaceError(
                "weight does not fit the neurons", got=f"shape {given.shape}", wanted=form, fix=fix
            )
        return float(given @ self.count)


@door
def activity(
    run: Trajectory,
    data: Sampled,
    *,
    boundary: NotNegative = BOUNDARY,
    gates: Mapping[str, ArrayLike] | None = None,
) -> Activity:
    """The pattern of every hidden neuron over samples and training, and its weight.

    The weight of a neuron is ‖w_in‖‖w_out‖: w_in all its incoming weights, those of several edges
    (a bias among them) side by side, and w_out likewise all its outgoing ones. It counts as on
    where its pre-activation

        z > boundary · ‖w_in‖ ‖x‖ ,

    x what its sources send, side by side. With `boundary=0` that is the ReLU's own rule; without
    a margin, pre-activations that are zero up to rounding gate at random. A neuron may also be
    held at z = 0 from both sides (XoR at Δ = 0), where it hops about zero by a length in
    proportion to the learning rate; a margin must be larger to ignore this. The network
    itself uses its own rule, leak included; the margin only decides what is counted.

    **Arguments:** `run`, a single run of a `ReLUNetwork` recorded with `record={"weights": True}`;
    `data`, the dataset it was trained on (or any other with the same nodes). `gates`, in place of
    the boundary, are gates of every neuron at every recorded moment, `{node: (T, N, size)}`; they
    may be fractions, such as those of `nr.reln.sliding_over`.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 64, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-3), data, learning_rate=0.1,
    ...                steps=400, record_every=20, record={"weights": True})
    >>> found = nr.reln.activity(run, data)
    >>> frozen = nr.train(nr.GDLN(relu.arch), relu.init(jax.random.key(0), scale=1e-3),
    ...                   data.gated(found.gates()), learning_rate=0.1, steps=400)
    >>> nr.compare(run, frozen).mean < 0.01
    True

    ```
    """
    weights = single_weights(run)
    net, moments, samples = relu_of(run), len(run.time), data.n_samples
    x = {n: np.asarray(value) for n, value in matched(net.arch, data.gated({})).x.items()}
    size = {node: net.arch.sizes[node] for node in net.arch.hidden}
    bits = {n: np.zeros((moments, m, -(-samples // 8)), np.uint8) for n, m in size.items()}
    weight = {node: np.empty((moments, m)) for node, m in size.items()}
    undecided = {node: np.empty(moments) for node in size}
    with progress(moments * samples, "activity", "samples") as advance:
        for k in range(moments):
            now = {name: np.asarray(w[k], np.float64) for name, w in weights.items()}
            now = by_edge(net.arch, now)
            into = {node: each[k] for node, each in bits.items()}
            for node, seen in _moment(net, now, x, float(boundary), into, advance).items():
                weight[node][k], undecided[node][k] = seen
    on = PackedPatterns(bits, samples)
    found = Activity(run.time, on, weight, undecided, float(boundary), net.leak, data=data)
    return found if gates is None else _with_fractions(found, gates_over_time(run, data, gates))


def opened(gates: Float[np.ndarray, ...], leak: float) -> Float[np.ndarray, ...]:
    """How open gates are: 0 at the `leak`, 1 where a neuron is on, and everywhere if leak = 1."""
    return np.ones_like(gates) if leak == 1 else (gates - leak) / (1 - leak)


def _with_fractions(found: Activity, gates: Mapping[str, np.ndarray]) -> Activity:
    """The activity with gates that were given in place of its own."""
    on, undecided = {}, {}
    for node, values in gates.items():
        share = opened(np.asarray(values, np.float64), found.leak)
        weight = found.weight[node]
        total = np.where((sums := weight.sum(axis=1)) > 0, sums, 1.0)
        on[node] = share > 0.5
        between = ((share > ROUNDING) & (share < 1 - ROUNDING)).mean(axis=1)
        undecided[node] = (between * weight).sum(axis=1) / total
    fractions = {node: np.asarray(values, np.float64) for node, values in gates.items()}
    return replace(found, on=on, undecided=undecided, fractions=fractions)


def _moment(
    net: ReLUNetwork,
    weights: Mapping[str, np.ndarray],
    x: Mapping[str, np.ndarray],
    boundary: float,
    bits: Mapping[str, np.ndarray],
    advance: Callable[[float], None],
) -> dict[str, tuple[np.ndarray, float]]:
    """For every hidden node at one moment: weight `(size,)`, part undecided; `bits` are filled in.

    Pre-activations of all samples would be 64 times as large as the bits, so that samples are
    taken block by block.
    """
    arch = net.arch
    nodes = [node for node in arch.order if node in arch.hidden]
    into = {n: [(arch.edges[e][0], weights[e]) for e in arch.incoming[n]] for n in nodes}
    w_in = {n: np.sqrt(added((w**2).sum(axis=1) for _, w in into[n])) for n in nodes}
    w_out = {
        n: np.sqrt(added((weights[e] ** 2).sum(axis=0) for e in arch.outgoing[n])) for n in nodes
    }
    sources = {source for pairs in into.values() for source, _ in pairs}
    samples = len(next(iter(x.values())))
    close = {n: np.zeros(arch.sizes[n]) for n in nodes}
    for rows in blocks(samples, max(arch.sizes.values()), 8):
        h = {node: np.asarray(value[rows], np.float64) for node, value in x.items()}
        for node in nodes:
            z = added(h[source] @ w.T for source, w in into[node])
            sent = np.sqrt(added((h[source] ** 2).sum(axis=1) for source, _ in into[node]))
            margin = boundary * w_in[node] * sent[:, None]
            close[node] += np.count_nonzero(np.abs(z) <= margin, axis=0)
            bits[node][:, rows.start // 8 : -(-rows.stop // 8)] = packed(z > margin)
            if node in sources:
                h[node] = np.where(z > 0, z, net.leak * z)
        advance(rows.stop - rows.start)
    found = {}
    for node in nodes:
        weight = w_in[node] * w_out[node]
        total = weight.sum()
        part = float(close[node] / samples @ weight)
        found[node] = weight, part / total if total > 0 else 0.0
    return found
