"""The modes of a race in words: what each tells apart, when it is learned, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, final

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.checks import entries, one_of, random_key
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.dynamics.systems import Law
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import GDLN
from neuralrace.reduction.block import Block, groups_of_copies
from neuralrace.reduction.coupled import Stage, stages_of, told
from neuralrace.reduction.start import (
    LARGE_HOLDS,
    Start,
    StartLike,
    check_start_known,
    start_from_scale,
)
from neuralrace.results import TIME, Result, Sentence, framed
from neuralrace.text import numbered, percent, several
from neuralrace.tolerances import E_FOLDS, EQUAL, FALL_DONE, NOISE, PICTURE
from neuralrace.types import Key

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

    from neuralrace.reduction.race import Race

NAMED = 6
"""The most items of one side, and the most outputs, that a text names."""


HEADINGS = ("mode", "s", "final", "half_time", "range", "items", "outputs")
"""The columns of the printed table."""

SAID = 5
"""The most modes that the first sentence names."""

MOMENTS = 4001
"""The number of times at which modes that are solved for are followed."""

NO_WORDS = "not a scalar mode"
"""What stands in place of the items of a matrix block."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModeTable(Result):
    """The modes of a race in the order in which they are learned; see `Race.modes`.

    M modes are ordered by `half_time`; those without one, and blocks that are not scalar, come
    last. `drive` `(M,)` is s, `final` `(M,)` the strength after learning, and `half_time` `(M,)`
    the time to half of it. `seed_times` `(seeds, M)` are the half-times from random starts.
    `items` are names of samples or of input features, and `item_loading` `(M, items)` says how far
    and on which side each stands; `outputs` and `output_loading` `(M, outputs)` say the same of
    outputs. The largest loading of a mode is 1 among its items, and 1 in size among its outputs:
    where items are positive, so are these outputs. `unnamed` gives, for each block without words,
    the reason. `alike` are groups of items with equal loadings everywhere: they are never told
    apart. `equal` are groups of modes that are copies of one: only what they span together has a
    meaning. `start` is the start that the half-times are from. `stages` are the times, to leading
    order in a small start, of pathways that are coupled and learned one after another. Unknown
    numbers are NaN.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> data = nr.Dataset({"x": np.eye(3)}, {"y": [[1, 1, 0], [1, 0.9, 0], [1, 0, 1]]},
    ...                   labels={"item": ["cup", "jug", "fork"]})
    >>> found = nr.reduce(nr.Architecture.chain(3, 16, 3), data).modes(scale=1e-3)
    >>> found.names, found.meaning("mode2"), found.half_time[:2].round(1)
    (('mode1', 'mode2', 'mode3'), 'fork against cup, jug', array([ 8.8, 16. ]))

    ```
    """

    names: tuple[str, ...]
    drive: Float[np.ndarray, " M"]
    final: Float[np.ndarray, " M"]
    half_time: Float[np.ndarray, " M"]
    seed_times: Float[np.ndarray, "seeds M"]
    items: tuple[str, ...]
    item_loading: Float[np.ndarray, "M items"]
    outputs: tuple[str, ...]
    output_loading: Float[np.ndarray, "M outputs"]
    least: float
    unnamed: Mapping[str, str]
    alike: tuple[tuple[str, ...], ...]
    equal: tuple[tuple[str, ...], ...]
    start: Start
    stages: tuple[Stage, ...] = ()

    @door
    def sides(self, mode: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The items on the positive and on the negative side of a mode, the largest first."""
        return _named(self.items, self.item_loading[self._index(mode)], self.least)

    @door
    def strongest(self, mode: str) -> tuple[str, ...]:
        """The strongest outputs of a mode with their signs, the largest first."""
        loading = self.output_loading[self._index(mode)]
        order = _by_size(np.abs(loading), self.least)
        return tuple(f"{'+' if loading[i] > 0 else '−'}{self.outputs[i]}" for i in order[:NAMED])

    @door
    def meaning(self, mode: str) -> str:
        """What a mode tells apart, in words, or what items on its only side share."""
        if mode in self.unnamed:
            return NO_WORDS
        plus, minus = self.sides(mode)
        if not minus:
            whole = len(plus) == len(self.items)
            shared = f"what {'all' if whole else _some(plus)} share"
            return shared if whole or len(plus) > 1 else f"{_some(plus)} alone"
        return f"{_some(plus)} against {_some(minus)}"

    @property
    def ranges(self) -> Float[np.ndarray, "M 2"]:
        """The least and the largest half-time over the random starts; NaN without any."""
        if not len(self.seed_times):
            return np.full((len(self.names), 2), np.nan)
        return np.stack([self.seed_times.min(axis=0), self.seed_times.max(axis=0)], axis=1)

    @property
    def ties(self) -> tuple[tuple[str, str], ...]:
        """Neighbours in the order that are ties.

        Their ranges of half-times over the random starts overlap, or they have the same drive.
        """
        least, largest = self.ranges.T
        overlap = [*(largest[:-1] >= least[1:])]
        pairs = pairwise(self.names)
        equal = lambda pair: any(set(pair) <= set(group) for group in self.equal)
        return tuple(p for p, over in zip(pairs, overlap, strict=True) if over or equal(p))

    @door
    def swapped(self, earlier: str, later: str) -> int:
        """In how many of the random starts the `later` mode is learned before the `earlier` one."""
        times = self.seed_times
        return int((times[:, self._index(later)] < times[:, self._index(earlier)]).sum())

    def _index(self, mode: str) -> int:
        one_of("mode", mode, self.names, "pass a name of table.names")
        return self.names.index(mode)

    def __repr__(self) -> str:
        count = f"{len(self.names)} modes of {len(self.items)} items"
        return f"ModeTable({count}; {self.start.description})"

    def frame(self) -> pandas.DataFrame:
        """One row per mode, in the order in which they are learned.

        `mode` is its name, `s` its drive, `final` its strength after learning and `half_time` the
        time to half of it, with the `least` and the `largest` half-time over the random starts;
        `plus` and `minus` are the items on its two sides, and `outputs` its strongest outputs with
        their signs. Unknown numbers are NaN; a block without words has no names.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> items = {"item": ["a", "b"]}
        >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[1, 1], [1, 0]]}, labels=items)
        >>> race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
        >>> race.modes(scale=1e-3).frame()[["mode", "plus", "minus"]].to_numpy().tolist()
        [['mode1', ('a', 'b'), ()], ['mode2', ('b',), ('a',)]]

        ```
        """
        names = ("mode", "s", "final", "half_time", "least", "largest", "plus", "minus", "outputs")
        rows = []
        for i, mode in enumerate(self.names):
            said = (
                ((), (), ()) if mode in self.unnamed else (*self.sides(mode), self.strongest(mode))
            )
            row = (mode, self.drive[i], self.final[i], self.half_time[i], *self.ranges[i], *said)
            rows.append(dict(zip(names, row, strict=True)))
        return framed(names, rows, dict.fromkeys(("half_time", "least", "largest"), TIME))

    def sentences(self) -> tuple[Sentence, ...]:
        """The order of the modes, how sure it is, and what the table cannot say.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> data = nr.Dataset({"x": np.eye(3)}, {"y": [[1, 1, 0], [1, 0.9, 0], [1, 0, 1]]},
        ...                   labels={"item": ["cup", "jug", "fork"]})
        >>> race = nr.reduce(nr.Architecture.chain(3, 16, 3), data)
        >>> race.modes(scale=1e-3).sentences()[0].text.split(", then ")
        ['First what all share (t = 8.76)', 'fork against cup, jug (t = 16)', 'jug against cup \
(t = 305).']

        ```
        """
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        if self.start.is_large and self.start.gap:
            text = "The start is too large for half-times to be known: the loss of the race there "
            text += f"is off by {percent(self.start.gap)}. {LARGE_HOLDS}"
            yield Sentence("large", text)
        yield Sentence("order", self._order())
        for block in dict.fromkeys(stage.block for stage in self.stages or ()):
            yield Sentence("stages", told([s for s in self.stages if s.block == block]))
        if not self.names:
            return
        count = len(self.seed_times)
        starts = numbered(count, "random start")
        for a, b in self.ties:
            text = (
                f"Which of these two comes first is not sure: {self.meaning(a)}; {self.meaning(b)}."
            )
            if count:
                (low, high), (least, most) = (self.ranges[self._index(mode)] for mode in (a, b))
                text += (
                    f" Over {starts} their half-times are {low:.3g} to {high:.3g} and {least:.3g} "
                    f"to {most:.3g}, and {self.swapped(a, b)} of them have the other order."
                )
            yield Sentence("tie", text)
        if count > 1 and len(self.names) > 1 and not self.ties:
            text = f"The order that is predicted is the same from all of {starts}."
            yield Sentence("sure", text)
        for names in self.alike:
            text = f"{several(names)} are the same to this network: they are never told apart."
            yield Sentence("alike", text)
        for name, why in self.unnamed.items():
            yield Sentence("unnamed", f"{name} could not be named: {why}.")
        for names in self.equal:
            text = f"{_some(names)} have equal s: only what they span together has a meaning."
            yield Sentence("equal", text)
        named = f" Named: loadings of at least {self.least:.2g} of the largest in the mode."
        named *= int(len(self.unnamed) < len(self.names))
        timed = " Half-time: to half of the final strength." * bool(
            np.isfinite(self.half_time).any()
        )
        yield Sentence("start", f"Start: {self.start.description}.{named}{timed}")

    def _order(self) -> str:
        """The modes in their order, the first of them by what they tell apart."""
        if not self.names:
            return "No modes: nothing is learned."
        known = np.isfinite(self.half_time)
        timed, others = np.flatnonzero(known).tolist(), np.flatnonzero(~known).tolist()
        at_once: list[list[int]] = []
        for i in timed:
            if at_once and self.half_time[i] <= (1 + EQUAL) * self.half_time[at_once[-1][0]]:
                at_once[-1].append(i)
            else:
                at_once.append([i])
        said = [
            f"{self._meanings(those)} (t = {self.half_time[those[0]]:.3g})" for those in at_once
        ]
        later = sum(map(len, at_once[SAID:]))
        more = f", and {numbered(later, 'more mode')} later" if later else ""
        order = f"First {', then '.join(said[:SAID])}{more}" * bool(timed)
        if not others:
            return f"{order}."
        words = {n: n if n in self.unnamed else self.meaning(n) for n in self.names}
        named = [f"{words[self.names[i]]} (s = {self.drive[i]:.3g})" for i in others[:SAID]]
        named += [f"{len(others) - SAID} more"] * (len(others) > SAID)
        which = several(named)
        if not timed:
            return f"No half-time is known: {which}. race.solve has their course."
        return f"{order}; no half-time is known for {which}, which may come at any time."

    def _meanings(self, modes: Sequence[int]) -> str:
        """What modes of one half-time tell apart; what several of them do is said once."""
        every = [*dict.fromkeys(self.meaning(self.names[i]) for i in modes)]
        among = f" in {len(modes)} modes" * (len(every) < len(modes))
        more = f" and {len(every) - SAID} more" * (len(every) > SAID)
        return "; ".join(every[:SAID]) + more + among

    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """How far, and on which side, every item stands in every mode; returns the axes.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> items = {"item": ["a", "b"]}
        >>> data = nr.Dataset({"x": np.eye(2)}, {"y": [[1, 1], [1, 0]]}, labels=items)
        >>> found = nr.reduce(nr.Architecture.chain(2, 8, 2), data).modes(scale=1e-3)
        >>> [text.get_text() for text in found.plot().get_yticklabels()]
        ['mode1', 'mode2']

        ```
        """
        from neuralrace.plot import draw_matrix

        require(
            self.names,
            "there are no modes to draw",
            got="a race without blocks",
            wanted="at least one mode",
            fix="print(race) says why nothing is learned",
        )
        ax = draw_matrix(
            np.nan_to_num(self.item_loading),
            rows=self.names,
            columns=self.items,
            scale="loading of the item",
            ax=ax,
        )
        ax.set_ylabel("mode")
        return ax

    def _printed(self) -> pandas.DataFrame | None:
        frame = self.frame()
        spans = frame[["least", "largest"]].to_numpy().tolist()
        frame["range"] = ["" if low != low else f"{low:.4g} to {high:.4g}" for low, high in spans]
        frame["items"] = [self.meaning(name) for name in self.names]
        return frame.loc[:, list(HEADINGS)] if self.names else None


def modes_of(
    race: Race,
    start: StartLike | None,
    scale: float | None,
    items: str | None,
    names: Sequence[str] | Mapping[str, Sequence[str]] | None,
    seeds: int,
    key: Key,
    least: float,
    law: Law | None = None,
) -> ModeTable:
    """The table of `Race.modes`; `law` is what moves the weights besides the loss."""
    check_start_known(start)
    begin = _start(race, start, scale)
    require(
        not (seeds and scale is None),
        "random starts need the scale of the weights",
        got=f"seeds = {seeds}, without scale",
        wanted="the standard deviation of initial weights",
        fix="race.modes(scale=1e-3, seeds=10)",
    )
    final, half = _times(race, begin, law)
    drawn = [_times(race, race.start(w), law)[1] for w in _weights(race, scale, seeds, key)]
    by_seed = np.array(drawn).reshape(seeds, len(race.blocks))
    label = _label(race.data, items)
    loadings = [_loadings(race, block, label) for block in race.blocks]
    item_names, outputs = _item_names(race, label), _output_names(race, names)
    order = np.lexsort((np.arange(len(half)), half))  # NaN comes last
    blocks = [race.blocks[i] for i in order]
    scalar = [block for block in blocks if block.is_scalar]
    rows = lambda arrays, width: np.array([arrays[i] for i in order]).reshape(len(order), width)
    return ModeTable(
        tuple(block.name for block in blocks),
        np.array([block.drive for block in blocks]),
        final[order],
        half[order],
        by_seed[:, order],
        item_names,
        rows([found[0] for found in loadings], len(item_names)),
        outputs,
        rows([found[1] for found in loadings], len(outputs)),
        least,
        {block.name: _reason(block) for block in blocks if not block.is_scalar},
        () if label is None else _alike(item_names, [found[2] for found in loadings]),
        tuple(tuple(scalar[i].name for i in group) for group in groups_of_copies(scalar)),
        begin,
        () if law and law.settings else stages_of(race, begin),
    )


# ---- when ---------------------------------------------------------------------------------------


def _start(race: Race, start: StartLike | None, scale: float | None) -> Start:
    require(
        (start is None) != (scale is None),
        "half-times need one start",
        got="neither start nor scale" if start is None else "both start and scale",
        wanted="weights or a number as start, or the scale of random weights",
        fix="race.modes(scale=1e-3), or race.modes(0.01)",
    )
    if start is not None:
        return race.start(start)
    assert scale is not None
    found = start_from_scale(race.blocks, race.split, race.outside, scale)
    if found is None:
        raise NeuralRaceError(
            "the average start of these pathways from random weights is not known",
            got=f"scale = {scale:g}, and pathways of other than two edges, or shared weights "
            "that decide which modes grow",
            wanted="pathways input → hidden → output, or scalar modes of a recurrent network "
            "without delay",
            fix="race.modes(0.1) starts every edge at that number",
        )
    return found


def _times(race: Race, start: Start, law: Law | None) -> tuple[np.ndarray, np.ndarray]:
    """The final strength and the half-time of every block; NaN where no closed form is known.

    A mode that weight decay outweighs ends at 0, and has no half-time.
    """
    found = np.full((2, len(race.blocks)), np.nan)
    for i, block in enumerate(race.blocks):
        form = race._form(i, start, law) if block.is_scalar else None
        if form is None and law is not None and law.weight_decay and block.is_scalar:
            plain = race._form(i, start)
            if plain is not None and plain.kind == "logistic":
                found[0, i] = 0.0
        if form is not None and np.isfinite(form.final):
            past = form.initial >= form.final / 2
            found[:, i] = form.final, 0.0 if past else float(form.time_to(form.final / 2))
    if race.arch.ties and not (law and law.settings):
        _solved_times(race, start, found)
    return found[0], found[1]


def _solved_times(race: Race, start: Start, found: np.ndarray) -> None:
    """Fill in what is not known in closed form of modes with shared weights, by solving the race.

    Such a mode has one strength per path: `final` is that of its strongest path, and it is half
    there when its loss has done three quarters of its fall, which is the same for a single path.
    It stays unknown where small weights do not grow at first, and where the loss still falls in the
    last quarter of the time, three times as long as the slowest needs to grow.
    """
    spans = {}
    for i, block in enumerate(race.blocks):
        size = max((float(np.abs(w).max()) for w in start.weights[i].values()), default=0.0)
        grows = block.growth_rate > NOISE * block.drive and size > 0
        if np.isnan(found[1, i]) and block.is_scalar and grows:
            ahead = np.log1p(block.natural_size / size)
            spans[i] = 3 * (ahead + E_FOLDS) / block.growth_rate
    if not spans:
        return
    times = np.linspace(0.0, max(spans.values()), MOMENTS)
    run = race.solve(times=times, start=start, rtol=PICTURE)
    strengths = run.values.get("pathways", {})
    for i in spans:
        loss, name = run.values["losses"][:, i], race.blocks[i].name
        fall = loss[0] - loss[-1]
        if loss[3 * len(loss) // 4] - loss[-1] > FALL_DONE * fall or not fall > 0:
            continue
        found[1, i] = np.interp(0.25 * fall + loss[-1], loss[::-1], times[::-1])
        paths = [abs(float(strength[-1])) for strength in strengths.get(name, {}).values()]
        found[0, i] = max(paths, default=np.nan)


def _weights(race: Race, scale: float | None, seeds: int, key: Key) -> list[dict[str, np.ndarray]]:
    """Random initial weights of the network, one per seed."""
    if not seeds:
        return []
    assert scale is not None  # checked by `modes_of`
    net = GDLN(race.arch)
    with jax.enable_x64(True):
        keys = jax.random.split(random_key(key, "modes"), seeds)
        drawn = [net.init(each, scale, dtype=np.float64) for each in keys]
    return [{edge: np.asarray(w) for edge, w in weights.items()} for weights in drawn]


# ---- what ---------------------------------------------------------------------------------------


def _label(data: Dataset, items: str | None) -> np.ndarray | None:
    """The text of every sample that names it, or None where features are named."""
    if items is not None:
        one_of("label", items, data.labels, "items names a label of the dataset")
        return np.asarray(data.labels[items]).astype(str)
    texts = (np.asarray(label) for label in data.labels.values())
    return next((text for text in texts if text.dtype.kind == "U"), None)


def _item_names(race: Race, label: np.ndarray | None) -> tuple[str, ...]:
    if label is not None:
        return tuple(dict.fromkeys(label.tolist()))
    sizes = race.arch.sizes
    return tuple(f"{v}[{i}]" for v in race.arch.inputs for i in range(sizes[v]))


def _output_names(
    race: Race, names: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> tuple[str, ...]:
    outputs, sizes = tuple(race.arch.outputs), race.arch.sizes
    given = {v: [f"{v}[{i}]" for i in range(sizes[v])] for v in outputs}
    if isinstance(names, Mapping):
        for node, texts in names.items():
            one_of("output node", node, outputs, "names takes {output node: names}")
            given[node] = entries(f"names of {node}", texts)
    elif names is not None:
        require(
            not len(outputs) > 1,
            "the network has several output nodes",
            got="one list of names",
            wanted=f"names for {listed(outputs)}",
            fix="names={node: [name, …]}",
        )
        given = {node: entries("names", names) for node in outputs}
    for node, texts in given.items():
        require(
            len(texts) == sizes[node],
            f"output {node!r} needs one name for each of its numbers",
            got=f"{len(texts)} names",
            wanted=f"{sizes[node]} names",
            fix="name the columns of y in their order",
        )
    return tuple(str(text) for node in outputs for text in given[node])


def _loadings(
    race: Race, block: Block, label: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The loadings of items and outputs, and all numbers in which the block sees the items.

    The network of a mode, with unit weights along its singular vectors, answers each sample with
    one number per output node: the sample's loading times the node's. Gates that are off give 0.
    """
    whole, data = race.split, race.split.data
    if label is None:  # every feature by itself, with all gates on
        sizes = [race.arch.sizes[v] for v in race.arch.inputs]
        parts = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
        shown, gates = dict(zip(race.arch.inputs, parts, strict=True)), {}
        weight = np.full(sum(sizes), 1 / sum(sizes))
    else:
        shown = {v: np.asarray(x, float) for v, x in data.x.items()}
        gates = {n: g for n, g in data.gates.items() if n in (*block.arch.sizes, *block.arch.edges)}
        weight = np.asarray(data.probability, float)
    count = len(weight)
    seen = {v: shown[v] @ block.basis[v] for v in block.arch.inputs}
    targets = {v: np.zeros((count, block.arch.sizes[v])) for v in block.arch.outputs}
    with jax.enable_x64(True):
        answers = GDLN(block.arch)(block.aligned, Dataset(seen, targets, gates))
    table = np.concatenate([np.asarray(answers[v]) for v in block.arch.outputs], axis=1)
    by_item = _by_label(table, weight, label)
    outputs = np.zeros(sum(race.arch.sizes[v] for v in race.arch.outputs))
    if not block.is_scalar:
        return np.full(len(by_item), np.nan), np.full(len(outputs), np.nan), by_item.T
    node = np.linalg.svd(np.sqrt(weight)[:, None] * table)[2][0]
    item = by_item @ node
    sign = np.sign(item[_by_size(np.abs(item), 1.0)[0]]) or 1.0
    first = 0
    for v in race.arch.outputs:
        for part, neurons in whole.parts[v]:
            if part in block.basis:
                share = node[block.arch.outputs.index(part)]
                outputs[first + np.asarray(neurons)] = share * block.basis[part][:, 0]
        first += race.arch.sizes[v]
    unit = lambda values: values * sign / (np.abs(values).max() or 1.0)
    return unit(item), unit(outputs), by_item.T / (np.abs(by_item).max() or 1.0)


def _by_label(table: np.ndarray, weight: np.ndarray, label: np.ndarray | None) -> np.ndarray:
    """The weighted mean over the samples of each name, in the order of their first samples."""
    if label is None:
        return table
    on = np.array([label == name for name in dict.fromkeys(label.tolist())]) * weight
    total = on.sum(axis=1, keepdims=True)
    return on @ table / np.where(total > 0, total, 1.0)


def _by_size(size: np.ndarray, least: float) -> list[int]:
    """The places of values of at least this part of the largest, in falling order, ties by place.

    What the sizes differ by is compared to eight digits, so that rounding does not order them.
    """
    rounded = np.round(size / (size.max(initial=0.0) or 1.0), 8)
    kept = np.flatnonzero((rounded >= least - EQUAL) & (rounded > 0))
    return sorted(kept.tolist(), key=lambda i: -rounded[i]) or [0]


def _named(
    names: Sequence[str], loading: np.ndarray, least: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    order = [i for i in _by_size(np.abs(loading), least) if np.isfinite(loading[i])]
    plus, minus = ([names[i] for i in order if side * loading[i] > 0] for side in (1, -1))
    return tuple(plus), tuple(minus)


def _some(names: Sequence[str]) -> str:
    """All names, or the first few and the number of the others."""
    more = f", … ({len(names) - NAMED} more)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _reason(block: Block) -> str:
    """Why a block has no single direction."""
    return (block.failure or "paths with conflicting signs").removeprefix(f"{block.name}: ")


def _alike(names: Sequence[str], tables: Sequence[np.ndarray]) -> tuple[tuple[str, ...], ...]:
    """Groups of items that no block tells apart; tables have one column per item."""
    groups: dict[int, list[str]] = {}
    seen = np.concatenate([np.zeros((1, len(names))), *tables])
    for i, name in enumerate(names):
        near = np.abs(seen[:, : i + 1] - seen[:, i : i + 1]).max(axis=0, initial=0.0) <= EQUAL
        groups.setdefault(int(np.argmax(near)), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
