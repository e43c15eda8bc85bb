"""Prototypes of activity, and which part of a layer's weight follows each of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from neuralrace.checks import check_subsets, plain_array
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, whole_number
from neuralrace.text import percent
from neuralrace.types import ArrayLike

OTHER = "other"
"""The name of what no prototype matches exactly."""


@final
@dataclass(frozen=True)
class Shares:
    """Which part of a layer's weight follows which prototype; see `Activity.shares`.

    `exact[name]` `(T,)`, `"other"` included, and `rounded[name]` `(T,)` each sum to one.
    `rounded` gives a neuron to the prototype that differs from its pattern on the fewest samples,
    in equal parts if there are several. `distance` `(T,)` is the number of those samples, on
    average: what the rounding hides. `nearest_index` `(T, size)` numbers each neuron's (first)
    nearest prototype, in the order of `rounded`; it is no share.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> a = nr.reln.Shares(np.zeros(1), {"all": np.ones(1), "other": np.zeros(1)},
    ...                    {"all": np.ones(1)}, np.zeros(1), np.zeros((1, 4), int), 3, "h")
    >>> str(a).partition(";")[0]
    'h at t = 0: exactly all 100 %'

    ```
    """

    time: Float[np.ndarray, " T"]
    exact: dict[str, np.ndarray]
    rounded: dict[str, np.ndarray]
    distance: Float[np.ndarray, " T"]
    nearest_index: Int[np.ndarray, "T size"]
    samples: int
    node: str

    @door
    def together(self, groups: Mapping[str, Iterable[str]]) -> Shares:
        """The same with prototypes added up: `groups` maps a new name to names it stands for.

        ```python
        >>> import numpy as np, neuralrace as nr
        >>> share = np.full(1, 0.5)
        >>> a = nr.reln.Shares(np.zeros(1), {"1": share, "2": share, "other": 0 * share},
        ...                    {"1": share, "2": share}, 0 * share, np.array([[0, 1]]), 3, "h")
        >>> a.together({"single": ("1", "2")}).rounded
        {'single': array([1.])}

        ```
        """
        old = list(self.rounded)

        groups = {new: list(names) for new, names in groups.items()}
        if not all(groups.values()):
            raise NeuralRaceError(
                "a group has no prototypes",
                got=listed(new for new, names in groups.items() if not names),
                wanted="at least one name in every group",
                fix="leave out empty groups",
            )
        if OTHER in groups:
            raise NeuralRaceError(
                f"no group can be called {OTHER!r}",
                got=listed(groups),
                wanted=f"other names: {OTHER!r} is the weight that follows no prototype exactly",
                fix="rename the group",
            )
        named = [name for names in groups.values() for name in names]
        if sorted(named) != sorted(old):
            raise NeuralRaceError(
                "every prototype must be in one group",
                got=listed(named),
                wanted=listed(old),
                fix="name each once",
            )
        place = {name: g for g, names in enumerate(groups.values()) for name in names}
        add = lambda old: {new: added(old[n] for n in names) for new, names in groups.items()}
        return Shares(
            self.time,
            add(self.exact) | {OTHER: self.exact[OTHER]},
            add(self.rounded),
            self.distance,
            np.array([place[name] for name in old])[self.nearest_index],
            self.samples,
            self.node,
        )

    def __str__(self) -> str:
        return (
            f"{self.node} at t = {self.time[-1]:g}: exactly {_named_shares(self.exact)}; rounded "
            f"to the nearest prototype, {self.distance[-1]:.1f} of {self.samples} samples away, "
            f"{_named_shares(self.rounded)}."
        )


@door
def subsets(data: Sampled, label: str = "context") -> dict[str, Bool[np.ndarray, " N"]]:
    """A prototype for every set of values of a label: on for samples with one of these values.

    `"all"` for all of them, else the values joined by underscores, small sets first: the patterns
    that gate by context alone (MHS Lemma 4.1). n values have 2ⁿ − 1 sets;
    more than 12 values are refused.

    ```python
    >>> import neuralrace as nr
    >>> list(nr.reln.subsets(nr.tasks.contextual(contexts=3)))
    ['1', '2', '3', '1_2', '1_3', '2_3', 'all']

    ```
    """
    data.mask(**{label: data.labels.get(label, ())})  # an unknown label is an error
    values = np.unique(np.asarray(data.labels[label])).tolist()
    whole_number("the number of labels", len(values), least=2, fix="one value has one subset")
    check_subsets(f"the label {label!r}", len(values))
    found = {
        "_".join(map(str, chosen)): data.mask(**{label: chosen})
        for size in range(1, len(values))
        for chosen in combinations(values, size)
    }
    return found | {"all": np.ones(data.n_samples, bool)}


def checked_prototypes(
    prototypes: Mapping[str, ArrayLike], samples: int
) -> dict[str, Bool[np.ndarray, " N"]]:
    """Prototypes as booleans, all different, or an error."""
    if not prototypes or OTHER in prototypes:
        raise NeuralRaceError(
            f"prototypes are patterns by name, none of them {OTHER!r}",
            got=listed(prototypes),
            wanted="{name: (N,) booleans}",
            fix="for example data.one_per_sample(), or nr.reln.subsets(data)",
        )
    masks: dict[str, np.ndarray] = {}
    for name, pattern in prototypes.items():
        wanted, fix = f"shape ({samples},), true or false", "data.mask(label=value) makes one"
        mask = plain_array(f"prototype {name!r}", pattern, wanted=wanted, fix=fix)
        if mask.shape != (samples,) or not np.isin(mask, (0, 1)).all():
            raise NeuralRaceError(
                f"prototype {name!r} is no pattern over the samples",
                got=f"shape {mask.shape} of {mask.dtype}",
                wanted=wanted,
                fix=fix,
            )
        twin = next((other for other, m in masks.items() if (m == mask).all()), None)
        if twin is not None:
            raise NeuralRaceError(
                "two prototypes are the same pattern",
                got=f"{twin!r} and {name!r}",
                wanted="patterns that differ",
                fix="leave one out",
            )
        masks[name] = mask.astype(bool)
    return masks


def added(terms: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of arrays, at least one."""
    return functools.reduce(np.add, terms)


def _named_shares(shares: Mapping[str, np.ndarray]) -> str:
    """The last shares of at least one per cent, largest first."""
    last = sorted(((float(s[-1]), name) for name, s in shares.items()), reverse=True)
    return ", ".join(f"{name} {percent(share)}" for share, name in last if share >= 0.005)
