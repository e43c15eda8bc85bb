"""Which gates small neurons align to before the loss falls: the aligned patterns of a task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float

from neuralrace.architecture import Architecture
from neuralrace.checks import generator
from neuralrace.dataset import Dataset, pathways
from neuralrace.errors import NeuralRaceError, check_kind, warn_user, whole_number
from neuralrace.reln.fixed_points import Samples, exact_gates, interior_fixed_points
from neuralrace.tasks.checks import finite_number

NEURONS = 2000
"""How many random neurons are followed."""

LIMIT = 2000
"""Up to this number of implementable patterns, all of them are checked for fixed points."""

STEP = 0.2
"""The first step of the flow, as the change of a neuron of unit length."""

STEPS = 600
"""How many steps are taken with the first step, with a tenth, and with a hundredth of it."""

SLIDES = 0.02
"""A gate that is on for a share of the time between this and one minus this slides."""

STILL = 1e-3
"""A neuron that grows by less than this, relative to √(⟨‖x‖²⟩⟨‖y‖²⟩), does not learn.

That product bounds the growth rate of any neuron.
"""

LOOKS = frozenset(range(0, 60, 2)) | frozenset(range(60, STEPS, 20))
"""At which of the first steps directions are kept, to see when neurons aligned."""

NEAR = 0.9
"""A neuron is aligned from when the cosine to its final direction stays above this."""


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
        """s*, the largest growth rate; 0 where no neuron learns."""
        return float(self.rates.max(initial=0.0))

    @property
    def sliding(self) -> Bool[np.ndarray, "P N"]:
        """Which gates slide: neither on nor off, but held at the boundary between the two."""
        return (self.gates > self.leak) & (self.gates < 1)

    def ratio(self, width: int, scale: float) -> float:
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
        return Dataset(self.data.x, parts, None, self.data.sample_weight, self.data.labels)

    def __str__(self) -> str:
        if not len(self):
            return f"No neuron learns: every direction stands still (s* = 0); {self.how}."
        many = f"{len(self)} aligned pattern{'s' * (len(self) != 1)}, found from {self.how}"
        lines = [f"{many}; {self.dead:.1%} of neurons die.".replace("%", " %")]
        lines.append(f"  {'rate':<9} {'basin':>7}  gates (▒ slides)")
        for rate, share, g in zip(self.rates[:20], self.shares, self.gates, strict=False):
            marks = np.where(g == 1, "█", np.where(g <= self.leak, "·", "▒"))
            basin = f"{100 * share:.1f} %"
            lines.append(f"  {rate:<9.4g} {basin:>7}  {''.join(marks[:100])}")
        if len(self) > 20:
            lines.append(f"  … and {len(self) - 20} more")
        return "\n".join(lines)


def aligned_patterns(
    data: Any, *, key: Any = 0, neurons: int = NEURONS, leak: float = 0.0, limit: int = LIMIT
) -> AlignedPatterns:
    """The gates that small random ReLU neurons align to, before the loss has begun to fall.

    While weights are small the residual is y, and neurons do not feel each other. A neuron with
    input weights w and output weights a then moves by

        dw/dt = ⟨ g(w·x) (a·y) x ⟩ ,   da/dt = ⟨ g(w·x) (w·x) y ⟩ ,   g(z) = 1 for z > 0, else leak

    (Maennel, Bousquet & Gelly 2018). Only its direction matters for its gates. The directions of
    many random neurons are followed until they come to rest. Three steps are used, each a tenth of
    the one before, so that a neuron that is pushed back to a boundary from both sides stays there:
    such a gate *slides*, and its effective value is a fraction g_n, for which
    Σ_m p_m g_m (x_n·x_m)(a·y_m) = 0 on all sliding samples n. It starts from the average over time
    and is then solved for.

    A pattern strictly inside its cell is an end point exactly where the leading singular vector v
    of ⟨g y xᵀ⟩ has this pattern itself, v·x_n > 0 just where g_n = 1. Where the inputs have at most
    `limit` implementable patterns, all of them are checked, and an end point that no neuron
    reached is added, with a basin of 0. Patterns with sliding gates always come from the flow.

    **Arguments:** `data`, the task; its gates are ignored. Several input nodes are read side by
    side. A bias is a column of ones. `key` (a JAX key or an integer) draws the neurons, all
    weights from one Gaussian. `neurons`, how many; a basin share has a standard error of up to
    ½/√neurons. `leak`, the slope of a neuron that is off.

    **Assumes** one hidden layer and a small start: see `AlignedPatterns.ratio`.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.reln.aligned_patterns(nr.tasks.contextual(items=4, joined=True), key=0))
    1 aligned pattern, found from 2000 random neurons and all 1066 patterns; 11.7 % of neurons die.
      rate        basin  gates (▒ slides)
      1.167      88.3 %  ████████████

    ```
    """
    check_kind("data", data, Dataset, "pass a Dataset, for example tasks.context_decision()")
    count = whole_number("the number of neurons", neurons, fix="for example neurons=2000")
    leak = finite_number("leak", leak, fix="leak=0.0 is the plain ReLU")
    samples = Samples.of(data)
    settled = _settle(samples, generator(key), count, leak)
    groups, live = settled.groups()
    found = [
        exact_gates(samples, settled.mean_gates(members), members_a, leak)
        for members, members_a in ((m, settled.a[m].mean(axis=0)) for m in groups)
    ]
    shares = [len(members) / count for members in groups]
    how = f"{count} random neurons"
    every = interior_fixed_points(samples, leak, limit)
    if every is not None:
        points, checked = every
        how += f" and all {checked} patterns"
        seen = {(np.round(point.gates, 6)).tobytes() for point in found}
        new = [p for p in points if np.round(p.gates, 6).tobytes() not in seen]
        new = [p for p in new if p.rate > STILL * samples.bound]
        found, shares = found + new, shares + [0.0] * len(new)
    order = sorted(range(len(found)), key=lambda i: (-shares[i], -found[i].rate))
    n, d, o = samples.shape
    return AlignedPatterns(
        np.array([found[i].gates for i in order]).reshape(-1, n),
        np.array([found[i].rate for i in order]),
        np.array([shares[i] for i in order]),
        np.array([found[i].w for i in order]).reshape(-1, d),
        np.array([found[i].a for i in order]).reshape(-1, o),
        1 - float(live.mean()),
        settled.aligned_at(live),
        how,
        leak,
        data,
    )


def aligned(
    data: Any,
    *,
    width: int,
    key: Any = 0,
    stages: int = 1,
    scale: float | None = None,
    neurons: int = NEURONS,
    leak: float = 0.0,
) -> tuple[Architecture, Dataset]:
    """The gating that a ReLU network of this width takes by itself when it starts small.

    One pathway for each of the `aligned_patterns`, named `aligned1`, `aligned2`, … in order of
    their basins. Its width is the share of `width` neurons that falls into its basin, at least
    one; a basin that holds less than half a neuron is left out, and dead neurons are in no pathway.

    With `stages=2` the question is asked again of what the first pathways leave
    (`AlignedPatterns.rest`), and its patterns are added as `later1`, `later2`, … . They too may
    recruit any of the `width` neurons, so that both stages have widths that sum to `width` at most.

    **Arguments:** as in `aligned_patterns`; `scale`, the standard deviation of initial weights:
    with it, a warning says where neurons will not have aligned before the loss falls.

    **Returns:** `(arch, data)`, like any other gating.

    **Raises:** `NeuralRaceError` where no neuron learns (s* = 0).

    ```python
    >>> import neuralrace as nr
    >>> arch, data = nr.reln.aligned(nr.tasks.extended_xor(1.2), width=200)
    >>> len(arch.hidden), sum(arch.sizes[v] for v in arch.hidden)
    (6, 199)

    ```
    """
    width = whole_number("the width", width, fix="for example width=200")
    stages = whole_number("the number of stages", stages, fix="stages=1, or stages=2")
    if stages > 2:
        raise NeuralRaceError(
            "more than two stages are not supported",
            got=f"stages = {stages}",
            wanted="1 or 2",
            fix="gates change while the loss falls, so that further stages add nothing",
        )
    found = aligned_patterns(data, key=key, neurons=neurons, leak=leak)
    if scale is not None and (ratio := found.ratio(width, scale)) > 1:
        warn_user(
            f"scale={scale:g} is too large for {width} neurons to align before the loss falls: "
            f"aligning takes {ratio:.3g} times as long as learning, so that the aligned gates say "
            "little about this network; start from smaller weights"
        )
    rest = None
    if stages == 2:
        rest = _patterns_or_none(found.rest(), samples_of=data, key=key, leak=leak)
    return gating_of(found, width, rest)


def gating_of(
    found: AlignedPatterns, width: int, rest: AlignedPatterns | None = None
) -> tuple[Architecture, Dataset]:
    """The gating of some aligned patterns, and of those on what they leave."""
    gating = _widths(found, width, "aligned")
    gating |= {} if rest is None else _widths(rest, width, "later")
    masks = {name: gate for name, (gate, _) in gating.items()}
    widths = {name: wide for name, (_, wide) in gating.items()}
    return pathways(found.data.gated({}), masks, hidden=widths)


def _widths(found: AlignedPatterns, width: int, name: str) -> dict[str, tuple[np.ndarray, int]]:
    """Gates and width of every pathway, from the patterns and their basins."""
    if not len(found):
        raise NeuralRaceError(
            "no neuron learns on this task, so that there are no aligned gates",
            got="s* = 0: in every direction the growth rate is 0",
            wanted="a task on which a small neuron grows",
            fix="add a bias (a column of ones) to the inputs, or start from larger weights",
        )
    wide = [(g, width * share) for g, share in zip(found.gates, found.shares, strict=True)]
    kept = [(g, w) for g, w in wide if w >= 0.5] or wide[:1]
    return {f"{name}{i + 1}": (g, max(1, round(w))) for i, (g, w) in enumerate(kept)}


def _patterns_or_none(
    rest: Dataset, *, samples_of: Dataset, key: Any, leak: float
) -> AlignedPatterns | None:
    """The aligned patterns of what is left, or None where nothing is."""
    left, whole = (
        sum(float((np.asarray(a) ** 2).sum()) for a in d.y.values()) for d in (rest, samples_of)
    )
    if left <= 1e-6 * whole:  # the loss would have fallen by all but a millionth
        return None
    found = aligned_patterns(rest, key=key, leak=leak)
    return found if len(found) else None


@final
@dataclass(frozen=True, eq=False)
class _Settled:
    """Random neurons at rest: directions, time averages of gates, growth, and when they aligned."""

    w: Float[np.ndarray, "M d"]
    a: Float[np.ndarray, "M o"]
    on: Float[np.ndarray, "M N"]
    growth: Float[np.ndarray, " M"]
    bound: float
    since: Float[np.ndarray, " M"]

    def groups(self) -> tuple[list[np.ndarray], Bool[np.ndarray, " M"]]:
        """The neurons at each end point, and which neurons learn."""
        live = self.growth > STILL * self.bound
        state = np.digitize(self.on, (SLIDES, 1 - SLIDES)).astype(np.int8)
        index = np.flatnonzero(live)
        if not len(index):
            return [], live
        _, group = np.unique(state[index], axis=0, return_inverse=True)
        group = np.asarray(group).ravel()
        return [index[group == k] for k in range(group.max() + 1)], live

    def mean_gates(self, members: np.ndarray) -> Float[np.ndarray, " N"]:
        """The average gates of some neurons, those that do not slide exactly 0 or 1."""
        mean = self.on[members].mean(axis=0)
        return np.where(mean <= SLIDES, 0.0, np.where(mean >= 1 - SLIDES, 1.0, mean))

    def aligned_at(self, live: np.ndarray) -> float:
        return float(np.median(self.since[live])) if live.any() else math.inf


def _settle(samples: Samples, rng: np.random.Generator, count: int, leak: float) -> _Settled:
    """Follow random neurons along the flow of their directions until they rest.

    Every neuron has unit length and takes steps of equal length: this passes through the same
    directions as the flow, at a pace of its own.
    """
    _, d, o = samples.shape
    both = _unit(rng.normal(size=(count, d + o)))
    time, since = np.zeros(count), np.zeros(count)
    path: list[tuple[np.ndarray, np.ndarray]] = []
    still = STILL**2 * samples.bound
    total = np.zeros((count, samples.shape[0]))
    growth = np.zeros(count)
    for stage, step in enumerate((STEP, STEP / 10, STEP / 100)):
        total[:], growth[:] = 0.0, 0.0
        for k in range(STEPS):
            if stage == 0 and k in LOOKS:
                path.append((both, time.copy()))
            velocity, on = _velocity(samples, both, leak)
            speed = np.linalg.norm(velocity, axis=1)
            pace = np.where(speed > still, step / np.maximum(speed, still), 0.0)
            if 2 * k >= STEPS:
                total += on
                growth += (velocity * both).sum(axis=1)
            both = _unit(both + pace[:, None] * velocity)
            time += pace
    since = np.zeros(count)
    for place, when in path:
        since = np.where((place * both).sum(axis=1) < NEAR, when, since)
    kept = STEPS - (STEPS + 1) // 2
    return _Settled(both[:, :d], both[:, d:], total / kept, growth / kept, samples.bound, since)


def _velocity(samples: Samples, both: np.ndarray, leak: float) -> tuple[np.ndarray, np.ndarray]:
    """How neurons (w, a) side by side move, and where they are on."""
    d = samples.shape[1]
    w, a = both[:, :d], both[:, d:]
    z = w @ samples.x.T
    on = z > 0
    slope = on if leak == 0 else np.where(on, 1.0, leak)
    pull = (slope * (a @ samples.y.T)) @ samples.px
    return np.concatenate([pull, (slope * z) @ samples.py], axis=1), on


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
