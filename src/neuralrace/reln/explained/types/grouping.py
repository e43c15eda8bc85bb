"""The wide limit of a ReLU network, and the few types that its neurons are grouped into."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace.reln.explained.types.crowd import Crowd, Descended, Neurons, descend
from neuralrace.reln.explained.types.symmetries import Symmetries, fold, moved
from neuralrace.tolerances import ENOUGH, FALLS, GROWN

COUNTS = (1, 2, 4, 8, 16, 32)
"""The numbers of types that are tried where none is asked for."""

BEFORE = 200
"""The number of moments, evenly in time and again in log time, at which alignment is watched."""

# ---- the wide limit -----------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Wide:
    """The wide limit: loss and outputs, the moment at which it begins to learn, and neurons then.

    `begins` is None where the loss does not begin to fall in this time. `looks` are the neurons at
    a few moments, the first of them when it does. `others` are the outputs on further samples,
    where the crowd is observed there.
    """

    stops: Int[np.ndarray, " T"]
    loss: Float[np.ndarray, " T"]
    outputs: Float[np.ndarray, "T N o"]
    others: dict[str, Float[np.ndarray, "T n o"]]
    begins: int | None
    looks: list[Neurons]


def wide_limit(crowd: Crowd, neurons: Neurons, rate: float, steps: int) -> Wide:
    """All neurons together, from their start to the end."""
    even = np.linspace(0, steps, BEFORE + 1)
    grid = np.unique(np.append(even, np.geomspace(1, steps, BEFORE)).round().astype(int))
    part = descend(crowd, neurons, rate, grid[:1])
    initial, begins = float(part.loss[0]), 0
    for share in FALLS:  # from larger weights, the loss begins to fall before neurons have aligned
        part = descend(crowd, neurons, rate, grid, until=(1 - share) * initial)
        begins = len(part.stops) - 1
        if not part.loss[-1] <= (1 - share) * initial or begins > len(grid) - 3:
            if begins < len(grid) - 1:
                part = descend(crowd, neurons, rate, grid)
            others = part.values.get("others", {})
            return Wide(part.stops, part.loss, part.values["outputs"], others, None, [])
        if _squares(part.final) >= GROWN * _squares(neurons):
            break
    stops, loss, seen = [part.stops], [part.loss], [part.values]
    looks = [part.final]
    # even in log time
    cuts = np.unique(np.geomspace(part.stops[-1], steps, 9).round().astype(int))
    for i, j in pairwise(cuts):
        some = np.unique(np.linspace(i, j, 33).round().astype(int))
        part = descend(crowd, looks[-1], rate, some)
        stops.append(part.stops[1:])
        loss.append(part.loss[1:])
        seen.append(jax.tree.map(lambda values: values[1:], part.values))
        looks.append(part.final)
    joined = np.concatenate
    values = jax.tree.map(lambda *parts: joined(parts), *seen)
    others = values.get("others", {})
    return Wide(joined(stops), joined(loss), values["outputs"], others, begins, looks)


def _squares(neurons: Neurons) -> float:
    return float((neurons["w"] ** 2).sum() + (neurons["a"] ** 2).sum())


# ---- clusters -----------------------------------------------------------------------------------


def chosen_types(
    crowd: Crowd,
    symmetries: Symmetries,
    wide: Wide,
    count: int | None,
    most: int,
    rate: float,
    random: np.random.Generator,
) -> tuple[Descended, Int[np.ndarray, " K"], str]:
    """Types of the number that was asked for, or of the smallest that is enough, and what to say.

    Enough is a mean distance of `ENOUGH` from the outputs of the wide limit.
    """
    counts = [k for k in COUNTS if k <= most] if count is None else [count]
    said = ""
    for few in counts:
        done, members, apart = _nearest(crowd, symmetries, wide, few, rate, random)
        enough = apart <= ENOUGH
        if count is None:
            near = f", the fewest that stay within {100 * ENOUGH:g} % of the wide limit"
            said = near if enough else ", the most that were tried"
        if enough or few == counts[-1]:
            return done, members, said
    raise AssertionError("one type is always tried")


def _nearest(
    crowd: Crowd,
    symmetries: Symmetries,
    wide: Wide,
    count: int,
    rate: float,
    random: np.random.Generator,
) -> tuple[Descended, Int[np.ndarray, " K"], float]:
    """Types that stay close to the wide limit: what became of them, their members, how close.

    That is the mean distance of outputs over √(2 L(0)), from the time they start.
    """
    directions = _Directions.of(symmetries, wide.looks)
    stops, wanted = wide.stops[wide.begins :], wide.outputs[wide.begins :]
    size = np.sqrt(2 * wide.loss[0]) * (stops[-1] - stops[0])
    best: tuple[Descended, np.ndarray] | None = None
    least = np.inf
    for split in (False, True) if count % 2 == 0 else (False,):
        for _ in range(4 if 1 < count - split < len(directions.weight) else 1):
            start, members = directions.clustered(count, split, int(random.integers(2**31)))
            done = descend(crowd, start, rate, stops, counting=True)
            squares = ((done.values["outputs"] - wanted) ** 2).sum(axis=2) @ np.asarray(crowd.p)
            apart = float(np.trapezoid(np.sqrt(squares), stops) / size)
            apart = apart if np.isfinite(apart) else np.inf  # types that diverged
            if best is None or apart < least:
                best, least = (done, members), apart
    assert best is not None
    return *best, least


@final
@dataclass(frozen=True, eq=False)
class _Directions:
    """Folded neurons: unit directions at every look, squared norms at first, and mean strengths."""

    units: list[np.ndarray]
    squares: Float[np.ndarray, " M"]
    weight: Float[np.ndarray, " M"]
    inputs: int

    @staticmethod
    def of(symmetries: Symmetries, looks: list[Neurons]) -> _Directions:
        every = [np.concatenate([n["w"], n["a"]], axis=1) for n in looks]
        d = looks[0]["w"].shape[1]
        squares = [(both**2).sum(axis=1) for both in every]
        units = [both / np.sqrt(size)[:, None] for both, size in zip(every, squares, strict=True)]
        pairs = [(unit[:, :d], unit[:, d:]) for unit in units]
        images = fold(symmetries, pairs)
        units = [np.concatenate(moved(symmetries, images, w, a), axis=1) for w, a in pairs]
        weight = np.mean([size / size.sum() for size in squares], axis=0)
        return _Directions(units, squares[0], weight, d)

    def clustered(self, count: int, split: bool, seed: int) -> tuple[Neurons, np.ndarray]:
        """The types at their start, and how many neurons each has as members."""
        from sklearn.cluster import KMeans

        options: dict[str, Any] = {"n_init": 1, "random_state": seed}
        means = KMeans(count // 2 if split else count, **options)
        label = means.fit(np.concatenate(self.units, axis=1), sample_weight=self.weight).labels_
        types, members = [], []
        for k in range(means.n_clusters):  # type: ignore[arg-type]
            mine = np.asarray(label) == k
            unit, size = self.units[0][mine], self.squares[mine]
            total = size.sum()
            mean = size @ unit / total
            spread = np.zeros_like(mean)
            if split:
                _, s, vt = np.linalg.svd(
                    np.sqrt(size / total)[:, None] * (unit - mean), full_matrices=False
                )
                spread = s[0] * vt[0]
            for sign in (1, -1) if split else (1,):
                place = mean + sign * spread
                length = float(np.linalg.norm(place)) or 1.0
                types.append(place / length * np.sqrt(total / (1 + split)))
                members.append(int(mine.sum()))
        both = np.array(types)
        return {"w": both[:, : self.inputs], "a": both[:, self.inputs :]}, np.array(members)
