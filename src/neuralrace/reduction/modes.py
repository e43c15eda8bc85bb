"""The modes of a race in words: what each tells apart, when it is learned, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, final

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.checks import entries, one_of, random_key, real_number, weight_scale
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed, whole_number
from neuralrace.gdln import GDLN
from neuralrace.reduction.blocks.block import Block
from neuralrace.reduction.equations.symbols import block_form
from neuralrace.reduction.solving.initial import (
    Start,
    StartLike,
    check_start_known,
    start_from_scale,
)
from neuralrace.text import table_lines
from neuralrace.types import Key

if TYPE_CHECKING:
    from neuralrace.reduction.race import Race

LEAST = 1 / 3
"""Items and outputs are named if they are at least this part of the largest of their mode."""

NAMED = 6
"""The most items of one side, and the most outputs, that a text names."""

SAME = 1e-6
"""Loadings and drives that differ by less than this, relative to the largest, are equal."""

HEADINGS = ("mode", "s", "final", "half-time", "range", "items", "outputs")
"""The columns of the printed table."""

NO_WORDS = "not a scalar mode"
"""What stands in place of the items of a matrix block."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModeTable:
    """The modes of a race in the order in which they are learned; see `Race.modes`.

    M modes are ordered by `half_time`; those without one, and blocks that are not scalar, come
    last. `drive` `(M,)` is s, `final` `(M,)` the strength after learning, and `half_time` `(M,)`
    the time to half of it. `seed_times` `(seeds, M)` are the half-times from random starts.
    `items` are names of samples or of input features, and `item_loading` `(M, items)` says how far
    and on which side each stands; `outputs` and `output_loading` `(M, outputs)` say the same of
    outputs. The largest loading of a mode is 1 among its items, and 1 in size among its outputs:
    where items are positive, so are these outputs. `unnamed` gives, for each block without words,
    the reason. `alike` are groups of items with equal loadings everywhere: they are never told
    apart. `equal` are groups of modes with the same drive: only what they span together has a
    meaning. `start` is the start that the half-times are from. Unknown numbers are NaN.

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

    def sides(self, mode: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The items on the positive and on the negative side of a mode, the largest first."""
        return _named(self.items, self.item_loading[self._index(mode)], self.least)

    def strongest(self, mode: str) -> tuple[str, ...]:
        """The strongest outputs of a mode with their signs, the largest first."""
        loading = self.output_loading[self._index(mode)]
        order = _by_size(np.abs(loading), self.least)
        return tuple(f"{'+' if loading[i] > 0 else '−'}{self.outputs[i]}" for i in order[:NAMED])

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

    def __str__(self) -> str:
        if not self.names:
            return "No modes: nothing is learned."
        rows = [self._row(i) for i in range(len(self.names))]
        lines = table_lines(HEADINGS, rows, right=HEADINGS[1:5])
        return "\n".join([*lines, *self._notes()])

    def _row(self, i: int) -> tuple[str, ...]:
        name, (low, high) = self.names[i], self.ranges[i]
        number = lambda value: "" if np.isnan(value) else f"{value:.4g}"
        span = "" if np.isnan(low) else f"{low:.4g} to {high:.4g}"
        outputs = "" if name in self.unnamed else ", ".join(self.strongest(name))
        numbers = (number(v[i]) for v in (self.drive, self.final, self.half_time))
        return (name, *numbers, span, self.meaning(name), outputs)

    def _notes(self) -> list[str]:
        """What the columns mean, and what the table cannot say."""
        timed = np.isfinite(self.half_time).any()
        lines = ["half-time: to half of the final strength"] if timed else []
        lines.append(f"start: {self.start.description}")
        if np.isfinite(self.ranges).any():
            lines.append(
                f"range: least and largest half-time predicted from {len(self.seed_times)} starts"
            )
        if len(self.unnamed) < len(self.names):
            share = f"{self.least:.2g} of the largest in the mode"
            lines.append(f"named: loadings of at least {share}")
        elif not timed:
            lines.append("no half-times: they are known for scalar modes with a closed form")
        count = len(self.seed_times)
        for a, b in self.ties:
            other = f", in the other order in {self.swapped(a, b)} of {count} starts"
            lines.append(f"tie: {a} and {b}{other if count else ''}")
        mixed = "only what they span together has a meaning"
        lines += [f"equal s: {_some(group)}; {mixed}" for group in self.equal]
        lines += [f"never told apart: {_some(group)}" for group in self.alike]
        return [*lines, *(f"no words for {name}: {why}" for name, why in self.unnamed.items())]


def modes_of(
    race: Race,
    start: StartLike | None,
    scale: float | None,
    items: str | None,
    names: Sequence[str] | Mapping[str, Sequence[str]] | None,
    seeds: int,
    key: Key,
    least: float,
) -> ModeTable:
    """The table of `Race.modes`."""
    check_start_known(start)
    begin = _start(race, start, scale)
    seeds = whole_number("seeds", seeds, least=0, fix="for example seeds=10")
    least = real_number("least", least, above=0, below=1, fix="leave it out for a third")
    if seeds and scale is None:
        raise NeuralRaceError(
            "random starts need the scale of the weights",
            got=f"seeds = {seeds}, without scale",
            wanted="the standard deviation of initial weights",
            fix="race.modes(scale=1e-3, seeds=10)",
        )
    final, half = _times(race, begin)
    drawn = [_times(race, race.start(w))[1] for w in _weights(race, scale, seeds, key)]
    by_seed = np.array(drawn).reshape(seeds, len(race.blocks))
    label = _label(race.data, items)
    loadings = [_loadings(race, block, label) for block in race.blocks]
    item_names, outputs = _item_names(race, label), _output_names(race, names)
    order = np.lexsort((np.arange(len(half)), half))  # NaN comes last
    blocks = [race.blocks[i] for i in order]
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
        _equal([block for block in blocks if block.is_scalar]),
        begin,
    )


# ---- when ---------------------------------------------------------------------------------------


def _start(race: Race, start: StartLike | None, scale: float | None) -> Start:
    if (start is None) == (scale is None):
        raise NeuralRaceError(
            "half-times need one start",
            got="neither start nor scale" if start is None else "both start and scale",
            wanted="weights or a number as start, or the scale of random weights",
            fix="race.modes(scale=1e-3), or race.modes(0.01)",
        )
    if start is not None:
        return race.start(start)
    found = start_from_scale(race.blocks, race.split, weight_scale(scale))
    if found is None:
        raise NeuralRaceError(
            "the average start from random weights is known for pathways of two edges alone",
            got=f"scale = {scale:g}, and pathways of other lengths",
            wanted="pathways input → hidden → output",
            fix="race.modes(0.1) starts every edge at that number",
        )
    return found


def _times(race: Race, start: Start) -> tuple[np.ndarray, np.ndarray]:
    """The final strength and the half-time of every block; NaN where no closed form is known."""
    found = np.full((2, len(race.blocks)), np.nan)
    for i, block in enumerate(race.blocks):
        form = block_form(block, start.weights[i]) if block.is_scalar else None
        if form is not None and np.isfinite(form.final):
            past = form.initial >= form.final / 2
            found[:, i] = form.final, 0.0 if past else float(form.time_to(form.final / 2))
    return found[0], found[1]


def _weights(race: Race, scale: float | None, seeds: int, key: Key) -> list[dict[str, np.ndarray]]:
    """Random initial weights of the network, one per seed."""
    if not seeds:
        return []
    net = GDLN(race.arch)
    with jax.enable_x64(True):
        keys = jax.random.split(random_key(key, "modes"), seeds)
        drawn = [net.init(each, weight_scale(scale), dtype=np.float64) for each in keys]
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
        if len(outputs) > 1:
            raise NeuralRaceError(
                "the network has several output nodes",
                got="one list of names",
                wanted=f"names for {listed(outputs)}",
                fix="names={node: [name, …]}",
            )
        given = {node: entries("names", names) for node in outputs}
    for node, texts in given.items():
        if len(texts) != sizes[node]:
            raise NeuralRaceError(
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
    kept = np.flatnonzero((rounded >= least - SAME) & (rounded > 0))
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
        near = np.abs(seen[:, : i + 1] - seen[:, i : i + 1]).max(axis=0, initial=0.0) <= SAME
        groups.setdefault(int(np.argmax(near)), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _equal(modes: Sequence[Block]) -> tuple[tuple[str, ...], ...]:
    """Groups of modes with the same drive and the same ends."""
    groups: list[list[Block]] = []
    for mode in modes:
        alike = lambda group, mode=mode: (
            set(group[0].basis) == set(mode.basis)
            and set(group[0].arch.edges) == set(mode.arch.edges)
            and abs(group[0].drive - mode.drive) <= SAME * mode.drive
        )
        group = next(filter(alike, groups), None)
        groups.append([mode]) if group is None else group.append(mode)
    return tuple(tuple(mode.name for mode in group) for group in groups if len(group) > 1)
