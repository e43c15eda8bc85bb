"""Gates found in the activity of ReLU networks, and the gated network built from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import one_of, real_array
from neuralrace.dataset import Dataset, Sampled, zero_loss
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, whole_number
from neuralrace.reln.explained.clusters import (
    ActivitySamples,
    Clusters,
    activity_of,
    clustered,
    hidden_classes,
    seed_of,
)
from neuralrace.reln.naming import in_groups, name_columns, where
from neuralrace.reln.observed.activity import opened
from neuralrace.reln.observed.runs import (
    check_trained_on,
    first_weights,
    followed_by,
    leak_of,
    network_of,
    not_descent,
    single_runs,
    weights_of,
)
from neuralrace.relu import ReLUNetwork
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.statistics import SplitNetwork, split_neurons
from neuralrace.text import numbered, percent, several
from neuralrace.tolerances import COARSE, ELBOW_GAIN, EQUAL, NOISE
from neuralrace.trajectory import Comparison, Trajectory, compare
from neuralrace.trajectory.compare import largest_fall
from neuralrace.types import ArrayLike, Key

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

ELBOW = "elbow"
"""The value of `pathways` that chooses their number."""

PATHWAYS = 4
"""How many pathways are found where nothing is said."""

COLUMNS = ("node", "pathway", "share", "neurons", "on_for", "differ")
"""The columns of `Discovery.frame`."""


@final
@dataclass(frozen=True, eq=False)
class Discovery(Result):
    """A gated network found in runs of a ReLU network; see `discover`.

    `layers[node]` are the `Clusters` of each hidden node. `arch`, `data` and `weights` are the
    gated network, its gated data and its start values for the first run; `network(i)` has those
    for any run. `followed[i]` says how closely that network follows run i, and `curve`, where the
    number of pathways was chosen by the elbow, the mean discrepancy for every number tried.
    `withheld` says why no network could follow, for runs whose steps a gated network cannot take or
    that have nothing left to learn; `followed` is then empty, and `discrepancy` NaN.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 64, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-4), data, learning_rate=0.1,
    ...                steps=1000, record_every=20, record={"weights": True})
    >>> found = nr.reln.discover(run, data, pathways=2)
    >>> found.patterns["h"]
    array([[0., 1., 1., 0.],
           [1., 0., 0., 1.]])
    >>> found.arch.hidden, found.followed[0].mean < 0.01
    (('h_1', 'h_2'), True)

    ```
    """

    layers: dict[str, Clusters]
    followed: tuple[Comparison, ...]
    curve: dict[int, float]
    runs: tuple[Trajectory, ...]
    base: Dataset
    withheld: str | None = None

    @property
    def patterns(self) -> dict[str, Float[np.ndarray, "K N"]]:
        """The gates of the pathways of each hidden node, `(K, N)`."""
        return {node: clusters.pattern for node, clusters in self.layers.items()}

    @property
    def share(self) -> dict[str, Float[np.ndarray, " K"]]:
        """The part of the activity that belongs to each pathway of each hidden node, `(K,)`."""
        return {node: clusters.share for node, clusters in self.layers.items()}

    @property
    def discrepancy(self) -> float:
        """The mean over runs of (1/T) ∫ |L_ReLU − L_GDLN| dt / L(0); NaN where `withheld`.

        L(0) is the initial loss of a run. A part that was cut from a run does not know it: its unit
        is ½⟨‖y‖²⟩, the loss of answering zero, while `followed` is always in units of the first
        recorded loss.
        """
        if not self.followed:
            return np.nan
        pairs = zip(self.followed, self.runs, strict=True)
        return float(np.mean([f.mean * float(r.loss[0]) / self._unit(r) for f, r in pairs]))

    @property
    def _whole(self) -> str:
        """What discrepancies are a part of, in words."""
        part = any(_is_part(run) for run in self.runs)
        return "the loss of answering zero" if part else "the initial loss"

    def _unit(self, run: Trajectory) -> float:
        """The loss that discrepancies are a part of."""
        return zero_loss(self.base) if _is_part(run) else float(run.loss[0])

    @property
    def has_elbow(self) -> bool | None:
        """Whether more pathways follow better: the least discrepancy is at most half that of one.

        None where the number of pathways was given.
        """
        if not self.curve:
            return None
        first, *others = self.curve.values()
        return bool(max(min(others, default=first), EQUAL) <= ELBOW_GAIN * first)

    @property
    def arch(self) -> Architecture:
        """The gated network for the first run: a hidden node for every pathway."""
        return self.network().arch

    @property
    def data(self) -> Dataset:
        """The data with the gates of the pathways, for the first run."""
        return self.network().data

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The start values of the gated network: the first run's own initial weights."""
        return self.network().split(first_weights(self.runs[0]))

    @door
    def gates(self, run: int = 0) -> dict[str, Float[np.ndarray, "N size"]]:
        """The gates of every neuron of a run: those of its pathway."""
        run = self._run(run)
        return {node: each.pattern[each.member[run]].T for node, each in self.layers.items()}

    @door
    def network(self, run: int = 0) -> SplitNetwork:
        """The gated network for a run: `.arch`, `.data`, and `.split(weights)` for start values.

        The neurons of pathway k of node `h` form the hidden node `h_k`, counted from 1, the rows
        of `patterns["h"]`; a single pathway is `h` itself. A pathway that wins no neuron of this
        run has no node.
        """
        run = self._run(run)
        return split_neurons(
            network_of(self.runs[run]).arch,
            self.base.gated(self.gates(run)),
            groups={node: each.member[run] for node, each in self.layers.items()},
            counts={node: len(each) for node, each in self.layers.items()},
        )

    @door
    def train(self, run: int = 0, **options: Any) -> Trajectory:
        """Train the gated network from the initial weights of a run, with its step and length.

        The hidden nodes keep their names, with gates for every neuron. `options` go to `nr.train`.
        """
        return followed_by(self.runs[self._run(run)], self.base.gated(self.gates(run)), **options)

    def _run(self, run: int) -> int:
        """The number of a run, counted from 0, or from −1 backwards."""
        fix = f"runs are counted from 0 to {len(self.runs) - 1}"
        number = whole_number("the number of a run", run, least=-len(self.runs), fix=fix)
        if number >= len(self.runs):
            raise NeuralRaceError(
                "there is no such run",
                got=number,
                wanted=f"a number below {len(self.runs)}",
                fix=fix,
            )
        return number

    @door
    def plot(
        self, node: str | None = None, *, label: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw how often the members of each pathway are on, one column per sample (MHS Fig. 8).

        Like all gates they are black where on. The number beside a pathway is its part of all
        activity, `share`. Samples are grouped by `label`, a label of the dataset such as
        `"context"`, or by one that makes a few groups.
        """
        from neuralrace.plot import draw_matrix

        node = next(iter(self.layers)) if node is None else node
        clusters = self.layers[one_of("node", node, self.layers, "leave out node for the first")]
        if label is not None:
            one_of("label", label, self.base.labels, "or leave it out")
        rows = [f"{node}_{k + 1}, {percent(s)}" for k, s in enumerate(clusters.share)]
        order, _ = in_groups(self.base, label)
        ax = draw_matrix(clusters.centroid[:, order], rows=rows, scale="how often on", ax=ax)
        name_columns(ax, self.base, label)
        ax.set_ylabel("pathway,\nshare of activity")
        (image,) = ax.get_images()
        image.set(clim=(0, 1), cmap="Greys")
        if image.colorbar is not None:
            image.colorbar.set_ticks([0.0, 0.5, 1.0])
        return ax

    def frame(self) -> pandas.DataFrame:
        """One row per pathway of every hidden node.

        `node`; `pathway`, its node in the gated network; `share`, its part of the activity of the
        node; `neurons`, how many are its members, in all runs; `on_for`, the number of samples for
        which it is on; `differ`, the number of samples on which its members differ from it, on
        average.
        """
        leak = leak_of(self.runs[0])
        rows = []
        for node, each in self.layers.items():
            on = (opened(each.pattern, leak) > 0.5).sum(axis=1)
            count = np.bincount(each.member.ravel(), minlength=len(each))
            for k in range(len(each)):
                name = f"{node}_{k + 1}" if len(each) > 1 else node
                values = (node, name, each.share[k], count[k], on[k], each.mismatch[k])
                rows.append(dict(zip(COLUMNS, values, strict=True)))
        return framed(COLUMNS, rows, {"share": SHARE})

    def _printed(self) -> pandas.DataFrame:
        """With the samples in words."""
        table = self.frame()
        table["where"] = [said.removeprefix("for ") for said in self.words.values()]
        return table.drop(columns="node")

    @property
    def words(self) -> dict[str, str]:
        """For which samples every pathway is on, in words, by the labels of the data.

        Where no label has just these samples, the nearest name is given with its exceptions and
        the part of the samples in either that are in both: `for rule 1, except sample 3; 92 %`.
        """
        leak = leak_of(self.runs[0])
        patterns = [on for each in self.layers.values() for on in opened(each.pattern, leak)]
        names = self.frame()["pathway"]
        said = (where(np.flatnonzero(on > 0.5), self.base) for on in patterns)
        return dict(zip(names, said, strict=True))

    @property
    def in_words(self) -> tuple[str, ...]:
        """Every pathway with its share of the activity of its node, in words, the largest first."""
        table, words = self.frame(), self.words
        table = table.sort_values("share", ascending=False, kind="stable")
        shares = zip(table["pathway"], table["share"], strict=True)
        return tuple(f"{name} ({percent(share)}) is on {words[name]}" for name, share in shares)

    @property
    def name(self) -> str:
        """How many pathways there are, for deeper networks from the inputs on."""
        *first, last = (len(self.layers[node]) for node in self._classes)
        before = "".join(f"{count} + " for count in first)
        return f"{before}{numbered(last, 'discovered pathway', '1')}"

    @property
    def _classes(self) -> dict[str, list[str]]:
        """The hidden nodes that have the same neurons, by the first of them."""
        return hidden_classes(network_of(self.runs[0]).arch)

    def sentences(self) -> tuple[Sentence, ...]:
        """How well fixed gates follow, how well neurons fit them, and how many pathways to take."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        layers, ends = self.layers.items(), {n[0]: n[-1] for n in self._classes.values()}
        many = several(
            [
                f"{numbered(len(self.layers[node]), 'pathway', '1')} in {node}"
                + f" to {last}" * (last != node)
                for node, last in ends.items()
            ]
        )
        if self.withheld is not None:
            text = f"{many}; no gated network was trained to follow: {self.withheld}."
            yield Sentence("withheld", text)
        else:
            text = f"A gated network with {many} follows {numbered(len(self.runs), 'run', '1')} "
            text += f"with a mean discrepancy of {percent(self.discrepancy)} of {self._whole}"
            elbow = ", but no number of pathways stands out" * (self.has_elbow is False)
            yield Sentence("follows", f"{text}{elbow}.")
            fall = max(largest_fall(r.loss) * float(r.loss[0]) / self._unit(r) for r in self.runs)
            if fall > COARSE:
                text = f"The loss falls by {percent(fall)} between two records, and differences "
                yield Sentence("coarse", f"{text}there are not seen: record more often.")
        for node, each in layers:
            off, empty = float(each.share @ each.mismatch), len(each) - len(np.unique(each.member))
            text = f"Neurons of {node} differ from their pathway on {off:.1f} of "
            text += f"{each.pattern.shape[1]} samples, on average"
            text += f"; {numbered(empty, 'pathway', '1')} without neurons" * bool(empty)
            text += f"; {each.sampling}" if each.sampling else ""
            yield Sentence("differ", f"{text}.")
        if self.curve:
            tried = ", ".join(f"{k}: {percent(value)}" for k, value in self.curve.items())
            yield Sentence("curve", f"By number of pathways: {tried}.")
        if self.has_elbow is False:
            text = f"No elbow: {no_elbow(self.curve, self._whole)}."
            yield Sentence("no elbow", text)


@door
def discover(
    runs: Trajectory | Iterable[Trajectory],
    data: Sampled,
    pathways: int | str | Mapping[str, int] = PATHWAYS,
    *,
    weighted: bool = True,
    rounded: bool = True,
    boundary: float = 0.0,
    gates: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]] | None = None,
    most: int = 6,
    key: Key = 0,
) -> Discovery:
    """Find the pathways of a ReLU network in its activity (MHS Algorithm 1), and build its ReLN.

    **Gates.** Every neuron of every run is, at every recorded moment, one binary activity sample
    of length N. These are clustered by K-means, separately for each hidden node; the centroids are
    the gates, rounded at one half. Clusters that round to the same gates are joined.

    **Shared weights.** Hidden nodes that share weights, such as the time steps of a recurrent
    network, have the same neurons. A pattern is then over samples and steps together, a neuron has
    one pathway at all of them, and `patterns["h3"]` are the gates at step 3.

    **When.** All recorded moments count alike, from the first to the last: gates that change while
    the network learns are mixed. Cut a part from the run to ask for a window, such as
    `run.sel(time=slice(20, 40))`, or for the end, `run.isel(time=[-1])`. The gated network then
    starts from the first weights of that part; it is `withheld` where there is a single moment, or
    nothing left to learn: a loss of at most a millionth of that of answering zero.

    **Pathways.** Nothing is fitted. A neuron belongs to the pathway that most of its own samples
    over training are nearest to; a pathway is as wide as it has neurons, and starts from their
    own initial weights. So the gated network has the neurons and the initial weights of the ReLU
    network, and gates that are fixed and few. It is trained with the ReLU network's step, and the
    distance of its loss is reported for every run.

    **The elbow.** With `pathways="elbow"` all numbers K from 1 to `most` are tried, each judged by
    the `discrepancy` E(K) of the gated network (mean over runs of (1/T) ∫|ΔL|dt / L(0)), not by the
    spread of the clusters. The elbow is the K at which the gain so far, as a part of the largest,
    is furthest ahead of the pathways spent, as a part of all that were tried:
    max_K [log E(1) − log E(K)] / [log E(1) − log min E] − (K − 1)/(most − 1).

    **Arguments:** `runs`, of a `ReLUNetwork` recorded with `record={"weights": True}`: one run,
    several, or an ensemble over seeds (MHS samples every 100 epochs, over several runs). A run of
    a `GDLN` with a gate for every neuron is described by these gates. `data`, what they were
    trained on: it is checked that the runs have the loss on it that they recorded. Any optimizer,
    batch size and loss will do for the pathways; only a run of gradient descent on all samples
    with the squared loss can be followed by a gated network, and `withheld` gives the reason for
    any other.
    `pathways`, K for every hidden node, `{node: K}`, or `"elbow"`. `weighted=False` counts every
    neuron alike, as published; by default a neuron counts by its part of the layer's ‖w_in‖‖w_out‖
    at that moment. `rounded=False` uses the centroids themselves as gates. `boundary` decides
    what is on, as in `activity`, but is 0 unless given: the ReLU's own rule, as published.
    Averaged over time, a neuron that slides along z = 0 is on for a fraction of it, which any
    other rule would round away. `gates`, in place of the boundary, are gates of every neuron at
    every recorded moment, `{node: (T, N, size)}`, for several runs a list of these; they may be
    fractions, such as those of `nr.reln.sliding_over`. Their centroids are fractions too with
    `rounded=False`. `key`, a JAX key or an integer, is that of K-means.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 64, 1))
    >>> many = nr.train_ensemble(relu, data, key=jax.random.key(0), seeds=2, scale=1e-4,
    ...                          learning_rate=0.1, steps=500, record_every=10,
    ...                          record={"weights": True})
    >>> found = nr.reln.discover(many, data, pathways="elbow", most=6)
    >>> found.patterns["h"]
    array([[0., 0., 0., 1.],
           [0., 0., 1., 0.],
           [0., 1., 0., 0.],
           [1., 0., 0., 0.]])
    >>> found.discrepancy < 0.01
    True

    ```
    """
    singles = single_runs(runs)
    seed = seed_of(key)
    classes = hidden_classes(network_of(singles[0]).arch)
    counts = _counts(pathways, most, classes)  # all that can be wrong is said before the work
    for run in singles:
        if isinstance(run.net, ReLUNetwork):
            weights_of(run)
        if "weights" in run.values:  # otherwise activity says first what it needs
            check_trained_on(run, data)
    reasons = (not_descent(run) or _nothing_left(run, data) for run in singles)
    withheld = next((reason for reason in reasons if reason), None)
    if _is_elbow(pathways) and withheld is not None:
        raise NeuralRaceError(
            "the elbow needs a gated network that follows the run",
            got=withheld,
            wanted="gradient descent on all samples with one learning rate and the squared loss, "
            "and something left to learn",
            fix="give the number of pathways: pathways=4",
        )
    given = None if gates is None else _gates_of_runs(singles, gates)
    layers = activity_of(singles, data, boundary, given)
    samples = {
        first: ActivitySamples.of(layer, data, weighted, len(classes[first]))
        for first, layer in layers.items()
    }
    for run in singles:
        weights_of(run)
    leak = leak_of(singles[0])

    def found(counts: Mapping[str, int]) -> Discovery:
        layers: dict[str, Clusters] = {}
        for first, nodes in classes.items():
            each = clustered(samples[first], counts[first], rounded, leak, seed, len(nodes))
            layers |= dict(zip(nodes, each, strict=True))
        draft = Discovery(layers, (), {}, singles, data, withheld)
        if withheld is not None:
            return draft
        every = tuple(compare(run, draft.train(i)) for i, run in enumerate(singles))
        return Discovery(layers, every, {}, singles, data)

    if not _is_elbow(pathways):
        return found(counts[0])
    every = [found(each) for each in counts]
    curve = {k: each.discrepancy for k, each in enumerate(every, 1)}
    best = every[elbow(list(curve.values())) - 1]
    return Discovery(best.layers, best.followed, curve, singles, data)


def _is_part(run: Trajectory) -> bool:
    """Whether a run was cut from one that began earlier."""
    return bool(run.time[0] > 0)


def _nothing_left(run: Trajectory, data: Dataset) -> str | None:
    """Why there is nothing to compare where the task is learned already; None where it is not."""
    first, whole = float(run.loss[0]), zero_loss(data)
    if first > EQUAL * whole:
        return None
    return (
        f"nothing is left to learn, with a loss of {first:.2g} at t = {run.time[0]:g}, of "
        f"{whole:.2g} for answering zero"
    )


def _counts(
    pathways: int | str | Mapping[str, int], most: int, classes: Mapping[str, Sequence[str]]
) -> list[dict[str, int]]:
    """The numbers of pathways by the first hidden node of every class that shares weights.

    One choice, or for the elbow all that are tried.
    """
    hidden = [node for nodes in classes.values() for node in nodes]
    if _is_elbow(pathways):
        return [dict.fromkeys(classes, k) for k in range(1, _count(most) + 1)]
    if not isinstance(pathways, Mapping):
        return [dict.fromkeys(classes, _count(pathways))]
    for nodes in classes.values():
        several = {pathways[node] for node in nodes if node in pathways}
        require(
            len(several) < 2,
            "pathways gives different numbers to hidden nodes that share weights",
            got=f"{sorted(several)} for {listed(nodes)}",
            wanted="one number: they have the same neurons",
            fix="pass one number for all of them",
        )
    if set(pathways) != set(hidden):
        raise NeuralRaceError(
            "pathways must give a number to every hidden node and to nothing else",
            got=f"numbers for {listed(pathways)}",
            wanted=f"numbers for {listed(hidden)}",
            fix="pass one number for all of them, {node: number}, or 'elbow'",
        )
    return [{first: _count(pathways[first]) for first in classes}]


def _is_elbow(pathways: object) -> bool:
    return isinstance(pathways, str) and pathways == ELBOW


def _gates_of_runs(
    runs: Sequence[Trajectory], gates: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]]
) -> Sequence[Mapping[str, ArrayLike]]:
    """The gates of every run; a single run may come without a list."""
    every = [gates] if isinstance(gates, Mapping) else list(gates)
    if len(every) != len(runs) or not all(isinstance(run.net, ReLUNetwork) for run in runs):
        raise NeuralRaceError(
            "gates must be given for every run of a ReLU network",
            got=f"gates for {len(every)} and {len(runs)} runs",
            wanted="{node: (T, N, size)} for each of them",
            fix="gates=[nr.reln.sliding_over(run, data) for run in runs]",
        )
    return every


@door
def elbow(discrepancy: ArrayLike) -> int:
    """The number of pathways at the elbow of E(1), E(2), …, as `discover` defines it.

    ```python
    >>> import neuralrace as nr
    >>> nr.reln.elbow([0.8, 0.18, 0.09, 0.003, 0.0028, 0.0025])
    4

    ```
    """
    fix = "for example list(found.curve.values())"
    values = real_array(
        "discrepancy", discrepancy, wanted="one discrepancy for each number of pathways", fix=fix
    )
    if values.ndim != 1 or not values.size:
        raise NeuralRaceError(
            "discrepancy must be a list of numbers",
            got=f"shape {values.shape}",
            wanted="shape (K,), at least one number",
            fix=fix,
        )
    log = np.log(np.maximum(values, NOISE))  # 0 for exact copies
    if log.argmin() == 0:
        return 1
    gained = (log[0] - log) / (log[0] - log.min())
    above = gained - np.linspace(0, 1, len(log))
    return len(log) - int(above[::-1].argmax())


def no_elbow(curve: Mapping[int, float], whole: str = "the initial loss") -> str:
    """How the discrepancy depends on the number of pathways where no number stands out."""
    best = min(curve, key=lambda k: curve[k])
    first = f"{percent(curve[1])} of {whole} with one pathway"
    if best == 1:
        return f"the loss is off by {first}, and by no less with more"
    return f"the loss is off by {first}, and still by {percent(curve[best])} with {best}"


def _count(value: object) -> int:
    return whole_number("the number of pathways", value, fix="for example pathways=4, or 'elbow'")
