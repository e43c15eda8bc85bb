"""Which gates small neurons align to before the loss falls: the aligned patterns of a task."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.checks import generator
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import warn_user
from neuralrace.reln.explained.fixed_points import (
    FixedPoint,
    Samples,
    fixed_point,
    interior_fixed_points,
)
from neuralrace.reln.explained.settling import settle
from neuralrace.text import numbered, percent
from neuralrace.tolerances import FALLEN, GROWN, NOISE, ROUNDING
from neuralrace.types import Count, Key, Scale, Share

NEURONS = 2000
"""How many random neurons are followed."""

LIMIT = 2000
"""Up to this number of implementable patterns, all of them are checked for fixed points."""


LARGE = "the start is too large for neurons to align before the loss falls"
"""What is said, everywhere, where `AlignedPatterns.too_large` gives a reason."""


@final
@dataclass(frozen=True, eq=False)
class AlignedPatterns:
    """Where small random neurons end up before the loss falls; see `aligned_patterns`.

    Patterns are in decreasing order of their basin. `gates[p, n]` is the gate of pattern p on
    sample n, between 0 and 1 where it slides. `rates[p]` is its growth rate s: weights grow as
    e^{st}. `shares[p]` is the share of all neurons that end there, and `dead` the share of those
    that stop learning instead. `w[p]` and `a[p]` are the directions of input and output weights.
    `aligned_at` is the median time a neuron takes to align. `how` says how they were found, and
    `data` is the task.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.aligned_patterns(nr.tasks.extended_xor(0.4), key=0)
    >>> len(found), found.rates.max().round(4), found.dead
    (6, np.float64(0.3674), 0.0)

    ```
    """

    gates: Float[np.ndarray, "P N"]
    rates: Float[np.ndarray, " P"]
    shares: Float[np.ndarray, " P"]
    w: Float[np.ndarray, "P d"]
    a: Float[np.ndarray, "P o"]
    dead: float
    aligned_at: float
    how: str
    leak: float
    data: Dataset

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def fastest(self) -> float:
        """s*, the largest growth rate; 0 where no neuron learns.

        NaN where no end point was found although some neurons still grow: s* is not known then.
        """
        if not len(self) and self.moving > ROUNDING:
            return math.nan
        return float(self.rates.max(initial=0.0))

    @property
    def sliding(self) -> Bool[np.ndarray, "P N"]:
        """Which gates slide: neither on nor off, but held at the boundary between the two."""
        return (self.gates > self.leak) & (self.gates < 1)

    @property
    def moving(self) -> float:
        """The share of neurons that had not come to rest when they were last looked at."""
        return max(0.0, 1.0 - self.dead - float(self.shares.sum()))

    @door
    def ratio(self, width: Count, scale: Scale) -> float:
        """The time to align over the time to learn, from random weights of this width and scale.

        Learning takes about ln(a/a₀)/(2 s*), with a₀ = N σ²/2 the strength at the start and
        a = √(⟨‖y‖²⟩/⟨‖x‖²⟩) one at which outputs are as large as targets. Well below 1, neurons
        align first, and the aligned patterns are those that learn. Infinite where the network
        starts at the size of the targets.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.aligned_patterns(nr.tasks.extended_xor(0.4), key=0)
        >>> found.ratio(200, 1e-3) < 0.3, found.ratio(200, 0.1) > 1
        (True, True)

        ```
        """
        samples = Samples.of(self.data)
        folds = math.log(samples.size / (width * scale**2 / 2))
        if folds <= 0 or not self.fastest:
            return math.inf if self.fastest else 0.0
        return self.aligned_at * 2 * self.fastest / folds

    @door
    def growth(self, width: Count, scale: Scale) -> float:
        """By which factor squared weights have grown when 1 % of the loss has gone.

        Aligned neurons of total strength a lower the loss by a s*, of ½⟨‖y‖²⟩, and have squared
        weights of 2a in sum. With those of the start, N σ² (d + o) for inputs and targets that span
        d and o dimensions, the factor at a fall by the share f = 1 % is

            1 + f ⟨‖y‖²⟩ / (s* N σ² (d + o)) .

        Neurons whose weights have not doubled still point in their first directions. NaN where s*
        is not known or zero.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.aligned_patterns(nr.tasks.extended_xor(0.4), key=0)
        >>> found.growth(200, 1e-3) > 30, found.growth(200, 0.01) < 2
        (True, True)

        ```
        """
        if not self.fastest > 0:
            return math.nan
        samples = Samples.of(self.data)
        spanned = sum(int(np.linalg.matrix_rank(v)) for v in (samples.x, samples.y))
        squares = float((samples.p @ samples.y**2).sum())
        return 1 + FALLEN * squares / (self.fastest * width * scale**2 * spanned)

    @door
    def too_large(self, width: int, scale: float) -> str | None:
        """Why neurons of this start do not align before the loss falls, or None where they do.

        Squared weights must at least double (`growth`). This is the one rule: `aligned`,
        `consistency` and contests warn by it, and `types` refuses by it.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.aligned_patterns(nr.tasks.extended_xor(0.4), key=0)
        >>> found.too_large(200, 1e-3) is None
        True
        >>> found.too_large(200, 0.01)
        'squared weights grow by a factor of only 1.34 until 1 % of the loss has gone'

        ```
        """
        growth = self.growth(width, scale)
        if not growth < GROWN:
            return None
        gone = f"until {100 * FALLEN:g} % of the loss has gone"
        return f"squared weights grow by a factor of only {growth:.3g} {gone}"

    @door
    def warn_if_large(self, width: int, scale: float) -> None:
        """Warn where neurons of this start have not aligned before the loss falls."""
        if (reason := self.too_large(width, scale)) is not None:
            warn_user(
                f"{LARGE}: {reason} (scale={scale:g}, {width} neurons), so that the aligned gates "
                "say little about this network; start from smaller weights"
            )

    def rest(self) -> Dataset:
        """The task with what the aligned patterns leave of its targets once they are learned.

        Each pattern contributes its own direction, g_n (w·x_n) a, with the strength that fits the
        targets best together with the others. Ask for the aligned patterns of the result to see
        which gates form next.

        ```python
        >>> import neuralrace as nr
        >>> found = nr.reln.aligned_patterns(nr.tasks.extended_xor(0.4), key=0)
        >>> left = found.rest().y["y"]
        >>> bool((left**2).mean() < 1e-6)
        True

        ```
        """
        samples = Samples.of(self.data)
        y = samples.y
        if len(self):
            from scipy.optimize import nnls

            each = (self.gates * (self.w @ samples.x.T))[:, :, None] * self.a[:, None, :]
            root = np.sqrt(samples.p)[:, None]
            columns = (root * each).reshape(len(self), -1).T
            strength = nnls(columns, (root * y).ravel())[0]
            y = y - np.tensordot(strength, each, axes=1)
        cuts = np.cumsum([np.shape(a)[1] for a in self.data.y.values()])[:-1]
        parts = dict(zip(self.data.y, np.split(y, cuts, axis=1), strict=True))
        return replace(self.data, y=parts, gates=None)

    def __str__(self) -> str:
        if not len(self) and self.moving > ROUNDING:
            moving = percent(self.moving)
            moving += " of neurons still grow"
            return f"No end point was found, and {moving}: s* is not known; {self.how}."
        if not len(self):
            return f"No neuron learns: every direction stands still (s* = 0); {self.how}."
        many = f"{numbered(len(self), 'aligned pattern', '1')}, found from {self.how}"
        late = f", {percent(self.moving)} are still moving" if self.moving > ROUNDING else ""
        lines = [f"{many}; {percent(self.dead)} of neurons die{late}."]
        lines.append(f"  {'rate':<9} {'basin':>7}  gates (▒ slides)")
        for rate, share, g in zip(self.rates[:20], self.shares, self.gates, strict=False):
            marks = np.where(g == 1, "█", np.where(g <= self.leak, "·", "▒"))
            basin = f"{100 * share:.1f} %"
            lines.append(f"  {rate:<9.4g} {basin:>7}  {''.join(marks[:100])}")
        if len(self) > 20:
            lines.append(f"  … and {len(self) - 20} more")
        return "\n".join(lines)


@door
def aligned_patterns(
    data: Sampled, *, key: Key = 0, neurons: Count = NEURONS, leak: Share = 0.0, limit: int = LIMIT
) -> AlignedPatterns:
    """The gates that small random ReLU neurons align to, before the loss has begun to fall.

    While weights are small the residual is y, and neurons do not feel each other. A neuron with
    input weights w and output weights a then moves by

        dw/dt = ⟨ g(w·x) (a·y) x ⟩ ,   da/dt = ⟨ g(w·x) (w·x) y ⟩ ,   g(z) = 1 for z > 0, else leak

    (Maennel, Bousquet & Gelly 2018). Only its direction matters for its gates. The directions of
    many random neurons are followed until they come to rest, in the end with small steps, so that
    a neuron that is pushed back to a boundary from both sides stays there. Such a gate *slides*,
    and its effective value is a fraction g_n, for which Σ_m p_m g_m (x_n·x_m)(a·y_m) = 0 on all
    sliding samples n. Which gates slide is first guessed from the flow and then solved for, so
    that every pattern returned holds itself exactly.

    A pattern strictly inside its cell is an end point exactly where the leading singular vector v
    of ⟨g y xᵀ⟩ has this pattern itself, v·x_n > 0 just where g_n = 1. Where the inputs have at most
    `limit` implementable patterns, all of them are checked, and an end point that no neuron
    reached is added, with a basin of 0. Patterns with sliding gates always come from the flow.

    **Arguments:** `data`, the task; its gates are ignored. Several input nodes are read side by
    side. A bias of hidden neurons is a column of ones. Samples with identical inputs have one gate,
    and count as one sample with their mean target. `key` (a JAX key or an integer) draws the
    neurons, all weights from one Gaussian. `neurons`, how many; a basin share has a standard error
    of up to ½/√neurons. `leak`, the slope of a neuron that is off, from 0 to 1.

    **Assumes** one hidden layer and a small start: see `AlignedPatterns.ratio`.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.reln.aligned_patterns(nr.tasks.contextual(items=4, joined=True), key=0))
    1 aligned pattern, found from 2000 random neurons and all 1066 patterns; 8.5 % of neurons die.
      rate        basin  gates (▒ slides)
      1.167      91.5 %  ████████████

    ```
    """
    samples = Samples.of(data)
    settled = settle(samples, generator(key), neurons, leak)
    ends: dict[bytes, tuple[FixedPoint, float]] = {}
    zero = NOISE * samples.bound
    dead = 1 - float(settled.live.mean())
    for members in settled.groups:
        point = fixed_point(samples, settled.gates(members), settled.direction(members), leak)
        if point is not None and point.rate <= zero:
            dead += len(members) / neurons
        elif point is not None and settled.is_near(members, point):
            same = _fingerprint(point)
            ends[same] = (point, ends.get(same, (point, 0.0))[1] + len(members) / neurons)
    how = f"{neurons} random neurons"
    every = interior_fixed_points(samples, leak, limit)
    if every is not None:
        how += f" and all {every[1]} patterns"
        for point in every[0]:
            if point.rate > zero:
                ends.setdefault(_fingerprint(point), (point, 0.0))
    found, shares = [point for point, _ in ends.values()], [share for _, share in ends.values()]
    order = sorted(range(len(found)), key=lambda i: (-shares[i], -found[i].rate))
    n, d, o = samples.shape
    return AlignedPatterns(
        np.array([found[i].gates for i in order]).reshape(-1, n),
        np.array([found[i].rate for i in order]),
        np.array([shares[i] for i in order]),
        np.array([found[i].w for i in order]).reshape(-1, d),
        np.array([found[i].a for i in order]).reshape(-1, o),
        dead,
        settled.aligned_at,
        how,
        leak,
        data,
    )


def _fingerprint(point: FixedPoint) -> bytes:
    """The same for fixed points with the same gates."""
    return np.round(point.gates, 6).tobytes()
