"""Rare neurons: the chance that a network of finite width lacks what the wide limit rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from neuralrace.reln.explained.types.crowd import Crowd, Descended, Neurons, descend
from neuralrace.reln.explained.types.grouping import Wide
from neuralrace.reln.explained.types.limit import Limit
from neuralrace.reln.explained.types.symmetries import Symmetries
from neuralrace.text import percent
from neuralrace.tolerances import FALLEN, LEADING, RARE


@final
@dataclass(frozen=True)
class Rest:
    """A rest of the loss, and the few neurons by which the wide limit leaves it; see `types`.

    From `time` until at least twice that time the loss stays at `level`, a part of its initial
    value, within 1 % of it; later it falls further. Of `drawn` random neurons, dead ones among
    them, `count` live outside of the patterns that lead then. Under the symmetries of the task
    their patterns have at least `images` images, of each of which a network needs one. `left` is
    the part of the loss that the wide limit leaves at the end, and `without` what it leaves without
    any of these neurons, None where it was not asked since a network of this `width` has them.

    ```python
    >>> from neuralrace.reln import Rest
    >>> rest = Rest(time=20.0, level=0.16, count=29, drawn=40_000, width=100, without=0.16)
    >>> round(rest.chance, 2), [round(bound, 2) for bound in rest.interval]
    (0.93, [0.9, 0.95])

    ```
    """

    time: float
    level: float
    count: int
    drawn: int
    width: int
    images: int = 1
    without: float | None = None
    left: float = 0.0

    @property
    def share(self) -> float:
        """p, the share of drawn neurons that live outside of the leading patterns."""
        return self.count / self.drawn

    @property
    def chance(self) -> float:
        """The chance that a network has no such neuron, in at least one of the images.

        (1 − p)^H for width H; 1 − (1 − (1 − p/m)^H)^m for m images.
        """
        return self._lacking(self.share)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the chance, from that of the share (Clopper & Pearson 1934)."""
        from scipy.stats import beta

        k, n = self.count, self.drawn
        low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
        high = float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0
        return self._lacking(high), self._lacking(low)

    @property
    def matters(self) -> bool:
        """Whether the prediction rests on these neurons: without them it ends elsewhere.

        Elsewhere is more than 1 % of the initial loss away. False where the chance is at most 5 %.
        """
        return self.without is not None and abs(self.without - self.left) > FALLEN

    def _lacking(self, share: float) -> float:
        one = (1 - share / self.images) ** self.width
        return 1 - (1 - one) ** self.images

    def __str__(self) -> str:
        low, high = (f"{100 * bound:.0f}" for bound in self.interval)
        each = f" in one of {self.images} images" * (self.images > 1)
        said = (
            f"A network of width {self.width} may end elsewhere: the chance that it lacks the "
            f"neurons by which the loss leaves its rest at t = {self.time:.4g}{each} is "
            f"{100 * self.chance:.0f} % (95 % interval {low} to {high} %; {self.count} of "
            f"{self.drawn} random neurons are such)."
        )
        if self.without is None:
            return said
        return (
            f"{said} Without them {percent(self.without)} of the initial loss is left at the end, "
            f"with them {percent(self.left)}."
        )


def rests_of(
    limit: Limit, random: np.random.Generator
) -> tuple[tuple[Rest, Descended | None], ...]:
    """Every rest after which the wide limit learns more, with the neurons it rests on.

    Beside it is what becomes of the others without them, from the rest on, where that was asked.
    More neurons are drawn where few are found, as many as cost no more than the wide limit did.
    """
    wide, crowd, symmetries, rate = limit.wide, limit.crowd, limit.symmetries, limit.rate
    initial, width = float(wide.loss[0]), limit.start.width
    left = float(wide.loss[-1]) / initial
    many = len(limit.first["w"])
    here, now = limit.first, 0
    found: list[tuple[Rest, Descended | None]] = []
    for i in _resting(wide, initial):
        at = int(wide.stops[i])
        here, now = descend(crowd, here, rate, np.array([now, at])).final, at
        outside, images = _outside(crowd, symmetries, here)
        count, draws = int(outside.sum()), many
        if not count:
            continue  # those that lead go on by themselves
        more = min(20 * many, many * int(wide.stops[-1]) // at)
        if count < 20 and more > many:  # too few to count them
            then = descend(crowd, limit.drawn(random, more), rate, np.array([0, at])).final
            count, draws = int(_outside(crowd, symmetries, then)[0].sum()), more
        level = float(wide.loss[i]) / initial
        rest, done = Rest(rate * at, level, count, draws, width, images, None, left), None
        if rest.chance > RARE:
            kept = {**here, **{name: here[name][~outside] for name in ("w", "a")}}
            done = descend(crowd, kept, rate, wide.stops[i:])
            rest = replace(rest, without=float(done.loss[-1]) / initial)
        found.append((rest, done))
    return tuple(found)


def _resting(wide: Wide, initial: float) -> list[int]:
    """The moments from which the loss rests, each before it falls further."""
    found, level = [], np.inf
    begins = len(wide.stops) if wide.begins is None else wide.begins
    for i in range(begins, len(wide.stops)):
        twice = 2 * wide.stops[i]
        if twice > wide.stops[-1]:
            break
        then = float(np.interp(twice, wide.stops, wide.loss))
        new = wide.loss[i] < level - FALLEN * initial
        if new and wide.loss[i] - then <= FALLEN * initial:
            level = then
            if then - wide.loss[-1] > FALLEN * initial:
                found.append(i)
    return found


def _outside(
    crowd: Crowd, symmetries: Symmetries, neurons: Neurons
) -> tuple[Bool[np.ndarray, " M"], int]:
    """Which living neurons are outside the leading patterns, and how few images they have."""
    w, a = neurons["w"], neurons["a"]
    on = w @ np.asarray(crowd.x).T > 0
    strength = np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)
    orbit, images = _orbits(on, symmetries)
    leads = np.bincount(orbit, strength) >= LEADING * strength.sum()
    alive = on.any(axis=1) | (crowd.leak > 0)
    outside = alive & ~leads[orbit]
    return outside, int(images[orbit[outside]].min(initial=2**31)) if outside.any() else 1


def _orbits(
    on: Bool[np.ndarray, "M N"], symmetries: Symmetries
) -> tuple[Int[np.ndarray, " M"], Int[np.ndarray, " O"]]:
    """Neurons whose patterns are images of each other have one label; how many images each has."""
    patterns, which = np.unique(on, axis=0, return_inverse=True)
    label: dict[bytes, int] = {}
    images: list[int] = []
    for pattern in patterns:
        if pattern.tobytes() not in label:
            every = np.unique(pattern[symmetries.elements], axis=0)
            label |= {image.tobytes(): len(images) for image in every}
            images.append(len(every))
    of_pattern = np.array([label[pattern.tobytes()] for pattern in patterns])
    return of_pattern[which.ravel()], np.array(images)
