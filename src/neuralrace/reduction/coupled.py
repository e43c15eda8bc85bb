"""When coupled pathways are learned, one after another: times to leading order in a small start.

A pathway of D edges that is small grows by ȧ = D a^{2−2/D} r, with r = S − Σ_j D_j a_j what the
learned pathways leave of its drive. So b = a^{1/D} needs ∫ r dt = ln(b*/b₀) for two edges, and
b₀^{2−D}/(D−2) for more. A pathway that is learned counts as switched on at once, with the strengths
that the learned ones then have together, the solution of Σ_j D_ij a_j = S_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np

from neuralrace.dynamics import StoppedError
from neuralrace.reduction.block import Block
from neuralrace.reduction.polynomial import scalar_race
from neuralrace.reduction.start import Start
from neuralrace.text import percent, several
from neuralrace.tolerances import EQUAL, NOISE

if TYPE_CHECKING:
    from neuralrace.reduction.race import Race

MOST = 12
"""The most coupled pathways of a block whose times are worked out."""

SEEN = 4001
"""Times at which the solution is looked at, to say how far the leading order is off."""


@final
@dataclass(frozen=True)
class Stage:
    """A pathway of a coupled block that is learned at a time, to leading order.

    `alone` is the rate S of the pathway at zero weights, and `rate` that at which it grew last,
    when those before it were learned. `level` is its strength when it is learned and `time` the
    time to half of it. `solved` is that time in the solution from the same start; NaN where it is
    not reached within one and a half times the last of these times, or not known.

    ```python
    >>> import neuralrace as nr
    >>> late = nr.Architecture.parallel({"a": 1, "b": 1}, {"ha": 50, "hb": 50}, {"y": 1},
    ...                                 reads={"ha": ["a"], "hb": ["b"]})
    >>> moments = {"a": [[4.0]], "b": [[1.0]], ("a", "b"): [[1.0]]}
    >>> data = nr.Dataset.from_moments(moments, {("y", "a"): [[5.0]], ("y", "b"): [[2.0]]})
    >>> first, second = nr.reduce(late, data).modes(scale=1e-3).stages
    >>> first.path, second.path, round(second.alone, 6), round(second.rate, 6)
    ('a_ha-ha_y', 'b_hb-hb_y', 2.0, 0.75)
    >>> round(second.time / first.time, 2), abs(second.error) < 0.01
    (4.86, True)

    ```
    """

    block: str
    path: str
    alone: float
    rate: float
    level: float
    time: float
    solved: float

    @property
    def error(self) -> float:
        """How far the leading order is off, as a part of the time in the solution."""
        return self.time / self.solved - 1


def told(stages: Sequence[Stage], compared: bool = True) -> str:
    """In a sentence, in which order the pathways of a block are learned, and why.

    `compared` says whether the solution was asked for its times.
    """
    first = stages[0]
    text = f"{first.block}: {first.path} is learned first (t = {first.time:.3g})"
    for before, stage in pairwise(stages):
        change = ""
        if abs(stage.rate - stage.alone) > EQUAL * abs(stage.alone):
            slower = stage.rate < stage.alone
            changed = "slowed" if slower else "sped up"
            change = (
                f", {changed} by what is learned from s = {stage.alone:.3g} to {stage.rate:.3g}"
            )
        word = "then" if stage.time > before.time else "with it"
        text += f", {word} {stage.path} (t = {stage.time:.3g}{change})"
    known = [abs(stage.error) for stage in stages if stage.error == stage.error]
    off = f"; from this start they are off by at most {percent(max(known))}" if known else ""
    if compared and len(known) < len(stages):
        missing = several([stage.path for stage in stages if stage.error != stage.error])
        off += f"; whether {missing} gets there from this start is not known"
    return f"{text}. These times are to leading order in a small start{off}."


def stages_of(race: Race, start: Start, solve: bool = True) -> tuple[Stage, ...]:
    """The stages of all blocks that are scalar and have several pathways without common edges.

    Without `solve`, the times in the solution are left unknown.
    """
    found = []
    for i, block in enumerate(race.blocks):
        if block.is_scalar and not (block.arch.ties or block.arch.frozen):
            weights = {e: float(w[0, 0]) for e, w in start.weights[i].items() if w.shape == (1, 1)}
            known = _stages(block, weights)
            found += _timed(race, i, start, known) if known and solve else known
    return tuple(found)


def _stages(block: Block, weights: dict[str, float]) -> list[Stage]:
    """Without the times of the solution."""
    form = scalar_race(block)
    rows = [[form.edges[e] for e in row if e >= 0] for row in form.paths]
    used = [edge for row in rows for edge in row]
    single = len(set(used)) == len(used) and len(form.S) == len(rows) and set(used) <= set(weights)
    if not single or not 1 < len(rows) <= MOST or min(map(len, rows)) < 2:
        return []
    order = np.argsort(form.group)
    rows = [rows[k] for k in order]
    start = np.array([_growing([weights[e] for e in row]) for row in rows])
    sign = np.sign(start)
    if not sign.all():
        return []
    S, brake = sign * form.S, sign[:, None] * form.D.toarray() * sign
    if not (brake - np.diag(np.diagonal(brake))).any():
        return []
    depth = np.array([len(row) for row in rows])
    done = np.where(depth == 2, np.log(np.abs(start)) / 2, 0.0)
    deep = depth > 2
    done[deep] = -(np.abs(start[deep]) ** (2 / depth[deep] - 1)) / (depth[deep] - 2)
    learned: list[int] = []
    stages: list[Stage] = []
    time, strength = 0.0, np.zeros(len(rows))
    while True:
        rate = S - brake @ strength
        rate[np.abs(rate) <= NOISE * np.abs(S).max()] = 0.0
        waiting = [k for k in range(len(rows)) if k not in learned and rate[k] > 0]
        levels = {k: _together(S, brake, [*learned, k]) for k in waiting}
        wait = {
            k: max(0.0, (_goal(levels[k][k], int(depth[k])) - done[k]) / rate[k])
            for k in waiting
            if levels[k][k] > 0
        }
        if not wait:
            return stages
        least = min(wait.values())
        now = [k for k in wait if wait[k] - least <= EQUAL * (time + least)]  # at once
        time += least
        done += rate * least
        strength = _together(S, brake, [*learned, *now])
        learned = [j for j in (*learned, *now) if strength[j] > 0]
        for k in now:
            name, level = "-".join(rows[k]), float(sign[k] * strength[k])
            numbers = (float(S[k]), float(rate[k]), level, float(time), math.nan)
            stages.append(Stage(block.name, name, *numbers))
        if len(stages) > 2 * len(rows):
            return []


def _growing(weights: list[float]) -> float:
    """The strength a pathway starts from, with its sign: the growing half of two edges."""
    if len(weights) == 2:
        a, b = weights
        sign = 1.0 if a * b > 0 else -1.0
        return sign * ((a + sign * b) / 2) ** 2
    return float(np.prod(weights))


def _goal(level: float, depth: int) -> float:
    """Where ∫ r dt has to come: a small start of more than two edges leaves the level no part."""
    return math.log(level) / 2 if depth == 2 else 0.0


def _together(S: np.ndarray, brake: np.ndarray, which: list[int]) -> np.ndarray:
    """The strengths at which these pathways rest together, all others being zero.

    A pathway that would turn negative falls back to zero.
    """
    while True:
        found = np.zeros(len(S))
        found[which] = np.linalg.lstsq(brake[np.ix_(which, which)], S[which])[0]
        low = [k for k in which[:-1] if found[k] <= 0]
        if not low:
            return found
        which = [k for k in which if k not in low]


def _timed(race: Race, index: int, start: Start, stages: list[Stage]) -> list[Stage]:
    """With the times to half of each level in the solution of the block from this start."""
    last = stages[-1].time
    if not last > 0:
        return stages
    near = [np.linspace(0.8 * stage.time, 1.2 * stage.time, SEEN // 4) for stage in stages]
    times = np.unique(np.concatenate([np.linspace(0.0, 1.5 * last, SEEN), *near]))
    try:
        solution = race.solve(times=times, start=start)
    except StoppedError:  # the solver gave up: how far the leading order is off is not known
        return stages
    strengths = solution.values.get("pathways", {}).get(race.blocks[index].name, {})
    found = []
    for stage in stages:
        curve = np.asarray(strengths.get(stage.path, np.zeros(len(times)))) / (stage.level / 2)
        later = np.flatnonzero(curve >= 1)
        solved = math.nan
        if len(later) and later[0] > 0:
            at = slice(later[0] - 1, later[0] + 1)
            solved = float(np.interp(1.0, curve[at], times[at]))
        found.append(replace(stage, solved=solved))
    return found
