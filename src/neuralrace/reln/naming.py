"""Samples by the labels of their data: sets in words, names and groups in pictures."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int, Shaped

from neuralrace.dataset import Dataset
from neuralrace.plot import COLOURS
from neuralrace.text import percent, several
from neuralrace.tolerances import DESCRIBED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 4
"""The most samples or values of a label that are named one by one."""

NUMBERED = 20
"""The most samples of a picture that have a name each."""

GROUPS = 6
"""The most groups into which the samples of a picture are sorted by a label."""

SEARCHED = 12
"""The most labels among which words are sought for a set."""

TOGETHER = 4
"""The most labels that name a set together."""

Labels = dict[str, Shaped[np.ndarray, " N"]]
"""The labels of a dataset with one value per sample."""

Values = dict[str, np.ndarray]
"""Some of the values of labels."""


def labels_of(data: Dataset) -> Labels:
    """Labels that differ between samples, or columns of inputs with few values if there are none.

    Column i of input node x is called `x[i]`, counted from 0 as in studies.
    """
    labels = {name: np.asarray(values) for name, values in data.labels.items()}
    labels = {name: v for name, v in labels.items() if v.shape == (data.n_samples,)}
    if not labels:
        columns = {
            f"{node}[{i}]": np.asarray(column) for node, x in data.x.items()
            for i, column in enumerate(np.asarray(x).T)
        }  # fmt: skip
        few = {name: v for name, v in columns.items() if len(np.unique(v[:64])) <= NAMED}
        labels = {name: v for name, v in few.items() if len(np.unique(v)) <= NAMED}
    return {name: v for name, v in labels.items() if len(np.unique(v)) > 1}


def where(samples: Int[np.ndarray, " n"], data: Dataset) -> str:
    """A set of samples in words, by the labels of the data where these name it.

    Sets that labels name only nearly are named with their exceptions, and with the part of the
    samples in the set or in its name that are in both.
    """
    if len(samples) == data.n_samples:
        return "for all samples"
    if not len(samples):
        return "for no sample"
    on = np.zeros(data.n_samples, bool)
    on[samples] = True
    labels = labels_of(data)
    exact = _exactly(on, labels)
    if exact is not None:
        return f"for {exact}"
    without = _exactly(~on, labels)
    if without is not None:
        return f"for all but {without}"
    return f"for {_nearly(on, labels) or f'{len(samples)} samples'}"


def _exactly(on: Bool[np.ndarray, " N"], labels: Labels) -> str | None:
    """A set by values of labels, or by the numbers of a few samples; None where neither does."""
    samples = np.flatnonzero(on)
    mine = {name: np.unique(values[samples]) for name, values in labels.items()}
    mine = {name: some for name, some in mine.items() if len(some) < len(np.unique(labels[name]))}

    def meant(names: list[str]) -> int:
        return int(np.all([np.isin(labels[name], mine[name]) for name in names], axis=0).sum())

    short = {name: some for name, some in mine.items() if len(some) <= NAMED}
    for many in range(1, min(len(short), TOGETHER) + 1):  # labels that do not matter are left out
        tried = combinations([*short][:SEARCHED], many)
        enough = [names for names in tried if meant([*names]) == len(samples)]
        if enough:
            names = min(enough, key=lambda names: sum(len(short[name]) for name in names))
            return _spelled({name: short[name] for name in names})
    if len(samples) <= NAMED:
        return f"sample{'s' * (len(samples) > 1)} {several([str(n + 1) for n in samples])}"
    return None


def _spelled(values: Values) -> str:
    word = "and" if len(values) == 1 else "or"
    short = lambda v: f"{v:g}" if isinstance(v, np.floating) else str(v)
    parts = [f"{name} {several([short(v) for v in some], word)}" for name, some in values.items()]
    return " and ".join(parts)


def _nearly(on: Bool[np.ndarray, " N"], labels: Labels) -> str | None:
    """The best name of a set by at most two labels, its exceptions and how good it is, or None."""
    searched = dict(list(labels.items())[:SEARCHED])
    best, name, inside = DESCRIBED, None, np.ones(len(on), bool)
    for names in ((), *((each,) for each in searched), *combinations(searched, 2)):
        values = _most(on, {each: searched[each] for each in names})
        if any(not 0 < len(some) <= NAMED for some in values.values()):
            continue
        meant = _chosen(values, labels, len(on))
        overlap = float((meant & on).sum() / (meant | on).sum())
        if overlap > best:
            best, name, inside = overlap, _spelled(values) or "all samples", meant
    if name is None:
        return None
    wrong = [_exactly(part, labels) if part.any() else "" for part in (inside & ~on, on & ~inside)]
    if None in wrong:
        return f"{name}; {percent(best)}"
    words = (word for part, word in zip(wrong, ("except", "and also"), strict=True) if part)
    parts = [f"{word} {part}" for word, part in zip(words, filter(None, wrong), strict=True)]
    return f"{name}, {', '.join(parts)}; {percent(best)}"


def _most(on: Bool[np.ndarray, " N"], labels: Labels) -> Values:
    """The values of labels for which most samples are in a set, given the values of the others."""
    values = {name: np.unique(each) for name, each in labels.items()}
    for name in [*labels, *labels]:
        others = {each: some for each, some in values.items() if each != name}
        among = _chosen(others, labels, len(on))
        every = np.unique(labels[name])
        some = [among & (labels[name] == value) for value in every]
        values[name] = every[[2 * (each & on).sum() > each.sum() for each in some]]
    return values


def _chosen(values: Values, labels: Labels, count: int) -> Bool[np.ndarray, " N"]:
    """The samples that have these values."""
    chosen = np.ones(count, bool)
    for name, some in values.items():
        chosen &= np.isin(labels[name], some)
    return chosen


def name_of(sample: int, data: Dataset) -> str:
    """One sample, counted from 0, by its number and its labels: `sample 3 (context 1)`."""
    labels = {name: v for name, v in labels_of(data).items() if name in data.labels}
    said = ", ".join(f"{name} {values[sample]}" for name, values in labels.items())
    return f"sample {sample + 1}" + f" ({said})" * bool(said)


def names_of(data: Dataset) -> tuple[list[str], str]:
    """A short name of every sample, and what it tells.

    These are its labels where they tell samples apart, else its number.
    """
    labels = {name: v for name, v in labels_of(data).items() if name in data.labels}
    names = [" ".join(map(str, row)) for row in zip(*labels.values(), strict=True)]
    if len(set(names)) == data.n_samples:
        return names, f"sample ({', '.join(labels)})"
    return [str(n + 1) for n in range(data.n_samples)], "sample"


def in_groups(
    data: Dataset, label: str | None = None
) -> tuple[Int[np.ndarray, " N"], dict[str, int]]:
    """The order in which samples are drawn, and groups of them by name with their sizes.

    They are grouped by `label`, or by the label with the most values, of those that have at most
    `GROUPS` and at least two samples each on average; the first of these. Within a group samples
    keep their order. Without such a label there are no groups.
    """
    count = data.n_samples
    labels = {name: v for name, v in labels_of(data).items() if name in data.labels}
    kinds = {name: len(np.unique(v)) for name, v in labels.items()}
    usable = [name for name, many in kinds.items() if 2 <= many <= min(GROUPS, count // 2)]
    if label is None and not usable:
        return np.arange(count), {}
    name = max(usable, key=lambda each: kinds[each]) if label is None else label
    values, place, sizes = np.unique(data.labels[name], return_inverse=True, return_counts=True)
    groups = {f"{name} {value}": int(n) for value, n in zip(values, sizes, strict=True)}
    return np.argsort(place, kind="stable"), groups


def name_columns(ax: Axes, data: Dataset, label: str | None = None) -> None:
    """Name the columns of a picture that has one per sample, in the order of `in_groups`.

    Groups are named above, with lines between them, samples below where they are few.
    """
    order, groups = in_groups(data, label)
    few = len(order) <= NUMBERED
    ticks = np.arange(len(order)) if few else np.array([0, len(order) - 1])
    every, told = names_of(data)
    names = np.array(every)[order][ticks] if few else [str(n + 1) for n in ticks]
    long = max(map(len, names)) > 2
    ax.set_xticks(ticks, list(names), fontsize=6, rotation=90 if long else 0)
    ax.set_xlabel(told if few else "sample")
    if not groups:
        return
    sizes = np.array(list(groups.values()))
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        ax.axvline(end - 0.5, color=COLOURS["neutral"], linewidth=0.9)
    above = ax.secondary_xaxis("top")
    above.set_xticks(ends - sizes / 2 - 0.5, list(groups), fontsize=6)
    above.tick_params(length=0)
