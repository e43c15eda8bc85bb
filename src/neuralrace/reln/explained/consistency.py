"""Would a ReLU network keep these gates: do the weights that a gating learns produce its gates?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, final, overload

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import random_key
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import GDLN
from neuralrace.plot import draw_curves, draw_matrix, letter_panels, mark_line, style
from neuralrace.reduction import Race, Start, reduce
from neuralrace.reduction.reconstruct import Source
from neuralrace.reduction.start import start_from_scale
from neuralrace.reln.explained.alignment import aligned_patterns
from neuralrace.reln.explained.fall import over_the_fall
from neuralrace.reln.explained.handover import handover, kept_by_neurons, seen_by_neurons
from neuralrace.reln.naming import in_groups, name_columns, name_of
from neuralrace.reln.possible.patterns import is_implementable
from neuralrace.results import KEPT_SHARE, SHARE, Result, Sentence, framed
from neuralrace.statistics import SplitNetwork
from neuralrace.text import several
from neuralrace.tolerances import KEPT, OUTRUN, TINY
from neuralrace.trajectory import Trajectory
from neuralrace.types import Key, Scale, Share, WeightsLike
from neuralrace.weights import check_untied

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WHICH = "which gates are kept"
"""What is not known of networks that share weights."""

COLUMNS = ("pathway", "kept", "worst", "lost", "implementable")
"""The columns of `Consistency.frame`."""


@final
@dataclass(frozen=True, eq=False)
class Consistency(Result):
    """How far a ReLU network would keep the gates of a gating; see `consistency`.

    `share` is the kept share of the whole gating, `pathways[name]` that of one pathway: `share` is
    their mean, in which a pathway counts as much as it has of the weights while the loss falls.
    `time`, `loss` and `over_time[name]` show it over the predicted race. `lost[name]`, of shape
    `(N,)`, says which samples the rest is lost on: the entries of a pathway sum to what it does not
    keep, where that is less than all. `data` has the gates. `implementable[name]` says for every
    pathway that reads the inputs alone whether *any* neuron can have its gates; gates that are
    fractions are left out. `handover` is the half-time of a ReLU network that takes over, divided
    by that of the gating, or None where it was not asked for.

    ```python
    >>> import neuralrace as nr
    >>> arch, data = nr.tasks.linear_pathways(nr.tasks.extended_xor(1.2))
    >>> print(nr.reln.consistency(arch, data, scale=1e-3))
    The weights of this gating produce its gates: its kept share is 1.00.
    pathway   kept
    positive  1.00
    negative  1.00
    nr.contest says whether a faster gating outruns it.

    ```
    """

    share: float
    pathways: Mapping[str, float]
    time: Float[np.ndarray, " T"]
    loss: Float[np.ndarray, " T"]
    over_time: Mapping[str, Float[np.ndarray, " T"]]
    lost: Mapping[str, Float[np.ndarray, " N"]]
    data: Dataset
    implementable: Mapping[str, bool] = field(default_factory=dict)
    handover: float | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether the gating's own weights produce its gates.

        The kept share must be at least .9. Where a hand-over was made, it decides instead: the
        half-time must change by at most 15 %. That a gating is *kept* also means that no faster
        gating outruns it, which `nr.contest` checks.
        """
        if self.handover is not None:
            return abs(self.handover - 1) <= OUTRUN - 1
        return self.share >= KEPT

    def frame(self) -> pandas.DataFrame:
        """One row per pathway.

        `pathway`; `kept`, its kept share; `worst`, the sample, counted from 0, on which most of the
        rest is lost, and `lost`, the part that is lost on it: missing where nothing is lost;
        `implementable`, whether any neuron can have its gates, missing where that is not known, as
        for pathways that read others.
        """
        rows = []
        for name, share in self.pathways.items():
            worst = int(np.argmax(self.lost[name]))
            lost = float(self.lost[name][worst])
            worst, lost = (float(worst), lost) if lost > 0 else (np.nan, np.nan)
            can = self.implementable.get(name)
            rows.append(dict(zip(COLUMNS, (name, share, worst, lost, can), strict=True)))
        return framed(COLUMNS, rows, {"kept": KEPT_SHARE, "lost": SHARE})

    def _printed(self) -> pandas.DataFrame:
        """With samples counted from 1, as in sentences."""
        table = self.frame()
        table["worst"] = [f"sample {n + 1:.0f}" if n >= 0 else "" for n in table["worst"]]
        if all(self.implementable.values()):
            table = table.drop(columns="implementable")
        return table.rename(columns={"worst": "lost mostly on"})

    def sentences(self) -> tuple[Sentence, ...]:
        """Whether the weights of the gating produce its gates, and where they are lost."""
        produce = "produce" if self.is_consistent else "do not produce"
        text = f"The weights of this gating {produce} its gates: its kept share is {self.share:.2f}"
        if self.handover is not None:
            text += ", and a ReLU network that takes over has "
            text += f"{self.handover:.3f} times its half-time"
        elif not self.is_consistent:
            text += f", below {KEPT:g}"
        said = [Sentence("kept", f"{text}.")]
        if self.is_consistent:
            said.append(Sentence("race", "nr.contest says whether a faster gating outruns it."))
        least = min(self.pathways, key=lambda name: self.pathways[name], default="")
        if least and self.pathways[least] < KEPT:
            worst = name_of(int(np.argmax(self.lost[least])), self.data)
            text = f"{least} keeps least, {self.pathways[least]:.2f}, and loses most of the rest"
            said.append(Sentence("lost", f"{text} on {worst}."))
        never = [name for name, can in self.implementable.items() if not can]
        if never:
            text = f"No neuron that reads the inputs can have the gates of {several(never)}"
            said.append(Sentence("implementable", f"{text}: they are not linearly separable."))
        return tuple(said)

    @overload
    def plot(self, *, ax: None = None) -> Figure: ...
    @overload
    def plot(self, *, ax: Axes) -> Axes: ...
    @door
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The kept share of every pathway over time, and the samples on which gates are lost.

        With `ax`, the first of these alone.
        """
        import matplotlib.pyplot as plt

        names = list(self.pathways)
        with style():
            if ax is not None:
                return self._draw_shares(ax)
            figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8), width_ratios=(1, 1.3))
            self._draw_shares(left)
            matrix = np.stack([self.lost[name] for name in names])[:, in_groups(self.data)[0]]
            rows = names if len(names) <= 12 else "pathway"
            draw_matrix(matrix, rows=rows, scale="share lost", ax=right)
            name_columns(right, self.data)
            right.set(title="share lost on each sample" + ": none" * (not matrix.any()))
            letter_panels(figure)
        return figure

    def _draw_shares(self, ax: Axes) -> Axes:
        draw_curves(self.time, dict(self.over_time), kind="theory", ylabel="kept share", ax=ax)
        ax.set(ylim=(0, 1.05), xlim=(self.time[0], self.time[-1]))
        mark_line(ax, f"kept from {KEPT:g}", y=KEPT, before=True)
        ax.set_title("gates kept over time")
        return ax


@door
def consistency(
    arch: Architecture,
    data: Sampled,
    *,
    scale: Scale | None = None,
    start: float | Mapping[str, float] | WeightsLike | Start | None = None,
    key: Key = 0,
    check: Literal["handover"] | None = None,
    leak: Share = 0.0,
) -> Consistency:
    """The kept share of a gating: whether the weights it learns produce its gates.

    A gated network obeys any gates. A ReLU network has only those that its own weights produce:
    that *some* weights have a pattern (`is_implementable`) is not enough. The race is solved; at
    time t, a neuron with input weights w, output weights a and gates g sees z_n = w·x_n and
    q_n = z_n (a·r_n), r the residual. Its kept share is

        k = max(0, 1 − min_± Σ_n p_n |g_n − 1[±z_n > 0]| |q_n| / Σ_n p_n g_n |q_n|) ,

    the part of its drive on which its own gates agree with those it was given; the sign of a
    hidden neuron is free. k is also computed with the z and r of a ReLU network with these weights
    and signs, and the smaller one counts: with one-hot targets, a neuron that is on for samples of
    another class has no error of the gated network there, but spoils the outputs of the ReLU
    network. Neurons are averaged by ‖w‖‖a‖, times by how much the
    loss falls, from 1 % of its fall until it is 10 % of the initial loss (or has made 90 % of its
    fall, if it cannot get so far). Samples at the boundary do not count, since q → 0 there. Found
    by experiment, not in the papers. The threshold .9 is a convention, set before it was tested.

    The neurons of a pathway are random combinations of its modes, as they are after a small random
    start, drawn by `key`. In deeper networks z is the input of a hidden neuron and a·r the error
    that reaches it, once with all other gates obeyed, and once with every neuron's own gates, layer
    by layer. The first alone would miss a neuron that is on where a later gate is off: no error of
    the gated network reaches it there.

    A weak spot is a pathway that is always on and whose z takes both signs: in a ReLU network it
    needs pairs of opposite neurons, which this check counts as lost.

    **Arguments:** `arch` and `data`, a gating, its gates on hidden nodes; one of `scale`, the
    standard deviation of random weights (two-edge pathways start where such weights start them on
    average, others from weights drawn by `key`, a JAX key or an integer), and `start`, what
    `Race.start` takes. `check="handover"` also continues the gated network, from 1 % of the
    fall of its loss, as a ReLU network, each neuron with the sign that fits best, and compares
    half-times: it costs one training, and is right more often. `leak`, the slope of a neuron that
    is off, from 0 to 1. Biases are edges like any other: pass the `arch` of
    `ReLUNetwork(…, bias=True)`. Identical inputs may have different targets and even different
    gates; no ReLU network keeps the latter.

    With `scale`, a warning says where neurons will not have aligned before the loss falls.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.context_decision(cue=1.0)
    >>> by_answer = nr.tasks.natural_gatings(data)["answer"]
    >>> nr.reln.consistency(*by_answer, scale=1e-3).is_consistent
    False

    ```
    """
    if (scale is None) == (start is None):
        raise NeuralRaceError(
            "the race needs one way to start",
            got="neither start nor scale" if scale is None else "both start and scale",
            wanted="scale=, the standard deviation of random weights, or start=",
            fix="scale=1e-3",
        )
    check_untied(arch, WHICH)
    race = reduce(arch, data)
    random = random_key(key, "consistency")
    if scale is not None:
        aligned_start = start_from_scale(race.blocks, race.split, race.outside, scale)
        if aligned_start is not None:
            width = sum(arch.sizes[v] for v in arch.hidden)
            small = aligned_patterns(data, key=key, neurons=200, leak=leak, limit=1)  # a probe
            small.warn_if_large(width, scale)
        start = aligned_start or GDLN(arch).init(random, scale=scale)
    assert start is not None
    found = kept_share(race, race.start(start), key=random, leak=leak)
    found = replace(found, implementable=_implementable(race.split))
    if check is None:
        return found
    weights = start if scale is None else GDLN(arch).init(random, scale=scale)
    if not isinstance(weights, Mapping) or any(np.ndim(w) != 2 for w in weights.values()):
        raise NeuralRaceError(
            "a hand-over needs actual weights",
            got="a start that is not the weights of the network",
            wanted="scale=, or start={edge: matrix}",
            fix="scale=1e-3 draws random weights by key",
        )
    return replace(found, handover=handover(arch, data, weights, leak))


def kept_share(race: Race, start: Start, *, key: Key, leak: float = 0.0) -> Consistency:
    """The kept share of a race from a start; see `consistency`."""
    check_untied(race.arch, WHICH)
    _check_gates(race.split)
    solution = over_the_fall(race, start)
    wide = _widened(race, solution)
    nodes = wide.arch.hidden
    kept = {v: np.zeros(len(solution.time)) for v in nodes}
    mass = {v: np.zeros(len(solution.time)) for v in nodes}
    lost = {v: np.zeros((len(solution.time), race.data.n_samples)) for v in nodes}
    p = np.asarray(wide.data.probability)
    gate = {v: np.asarray(wide.data.gates.get(v, np.ones(len(p)))) for v in nodes}
    for i, t in enumerate(solution.time):
        weights = Source(race.blocks, wide).weights(solution, float(t), key)
        seen = seen_by_neurons(wide, weights)
        gated = {v: kept_by_neurons(z, e, gate[v], p, leak) for v, (z, e, _) in seen.items()}
        own = _own_view(wide, weights, {v: each[2] for v, each in gated.items()}, leak)
        for node, (_, _, weight) in seen.items():
            each, off, _ = gated[node]
            relu = kept_by_neurons(*own[node][:2], gate[node], p, leak)
            worse = relu[0] < each
            each, off = np.where(worse, relu[0], each), np.where(worse, relu[1], off)
            total = weight.sum() or 1.0
            kept[node][i] = each @ weight / total
            mass[node][i] = weight.sum()
            lost[node][i] = off @ weight / total
    fall = np.abs(np.gradient(solution.loss))
    fall = fall if fall.any() else np.ones(len(fall))
    whole = np.maximum(sum(mass.values()), TINY)
    counts = {v: fall * mass[v] / whole for v in nodes}  # so that pathways add up to the gating
    part = {v: _mean(lost[v], counts[v]) for v in nodes}
    shares = {v: float(_mean(kept[v], counts[v])) for v in nodes}
    share = float(sum(kept[v] @ counts[v] for v in nodes) / fall.sum())
    return Consistency(share, shares, solution.time, solution.loss, kept, part, wide.data)


def _implementable(net: SplitNetwork) -> dict[str, bool]:
    """Whether one neuron can have the gates of every pathway that reads inputs alone."""
    arch, data = net.arch, net.data
    found = {}
    for node in arch.hidden:
        reads = [arch.edges[e][0] for e in arch.incoming[node]]
        gate = np.asarray(data.gates.get(node, np.ones(data.n_samples)))
        if set(reads) <= set(arch.inputs) and np.isin(gate, (0, 1)).all():
            x = np.concatenate([np.asarray(data.x[v], np.float64) for v in reads], axis=1)
            found[node] = is_implementable(gate, x)
    return found


def _own_view(
    net: SplitNetwork,
    weights: Mapping[str, np.ndarray],
    signs: Mapping[str, Float[np.ndarray, " size"]],
    leak: float,
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """What each neuron sees if all have gates of their own, those of a ReLU network.

    Layer by layer, since the inputs of a neuron depend on the gates below it.
    """
    gates = {v: np.ones((net.data.n_samples, net.arch.sizes[v])) for v in net.arch.hidden}
    seen = seen_by_neurons(net, weights, gates)
    for node in (v for v in net.arch.order if v in gates):
        gates[node] = np.where(signs[node] * seen[node][0] > 0, 1.0, leak)
        seen = seen_by_neurons(net, weights, gates)
    return seen


def _mean(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean over time, or zero where nothing weighs anything."""
    return np.asarray(np.tensordot(weight, values, axes=1) / (weight.sum() or 1.0))


def _widened(race: Race, solution: Trajectory) -> SplitNetwork:
    """The network of the race with enough neurons for every block to have its own directions."""
    arch = race.split.arch
    needed = dict.fromkeys(arch.hidden, 0)
    for block in race.blocks:
        at = solution.values["variables"][block.name]
        for node in block.arch.hidden:
            needed[node] += np.shape(at[block.arch.incoming[node][0]])[1]
    sizes = {v: max(size, needed.get(v, 0)) for v, size in arch.sizes.items()}
    wide = Architecture(sizes=sizes, edges=dict(arch.edges))
    parts = {v: ((v, np.arange(size)),) for v, size in sizes.items()}
    return SplitNetwork(wide, race.split.data, wide, parts, {e: (e,) for e in arch.edges})


def _check_gates(net: SplitNetwork) -> None:
    odd = set(net.data.gates) - set(net.arch.hidden)
    if odd:
        raise NeuralRaceError(
            "a ReLU network gates its hidden neurons only",
            got=f"gates on {listed(odd)}",
            wanted=f"gates on hidden nodes: {listed(net.arch.hidden)}",
            fix="move the gates of edges to the hidden node they lead to or come from",
        )
