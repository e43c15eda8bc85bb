"""The fall of the loss in a race, at losses that are evenly spaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from jaxtyping import Float

from neuralrace.errors import NeuralRaceError
from neuralrace.reduction import Race, Start
from neuralrace.reduction.start import later
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.tolerances import END, FALLEN, LONGEST, NOISE, RESTING
from neuralrace.trajectory import Trajectory

S = TypeVar("S")

FIRST = 8.0
"""How long the first stretch lasts, in units of one over the largest growth rate."""


def stretches(
    solve: Callable[[S, float], Trajectory],
    follow: Callable[[S, Trajectory], S],
    start: S,
    first: float,
    longest: float,
    *,
    growth: float = 1.0,
) -> Iterator[tuple[float, S, Trajectory]]:
    """The solution piece by piece: when each piece begins, where it starts, and the piece.

    The first one lasts `first`, each other one `growth` times as long as all before it, and the
    last one ends at `longest`. Whoever goes through them stops when enough is known.

    **Arguments:** `solve(start, lasts)` solves one piece, and `follow(start, piece)` is the start
    of the next one.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.reln.explained.fall import stretches
    >>> halved = lambda start, lasts: nr.Trajectory([0, lasts], [start, start / 2])
    >>> last = lambda start, piece: piece.loss[-1]
    >>> for begin, loss, piece in stretches(halved, last, 8.0, first=1.0, longest=7.0):
    ...     print(begin, loss, piece.time[-1])
    0.0 8.0 1.0
    1.0 4.0 1.0
    2.0 2.0 2.0
    4.0 1.0 3.0

    ```
    """
    begin, end = 0.0, first
    while begin < longest:
        end = min(end, longest)
        piece = solve(start, end - begin)
        yield begin, start, piece
        start = follow(start, piece)
        begin, end = end, (1 + growth) * end


def over_the_fall(race: Race, start: Start) -> Trajectory:
    """The race at losses evenly from 1 % of the fall to 10 % of the initial loss.

    Where the loss cannot fall that far, the end is 90 % of the fall that the pathways allow, or
    the loss at which the race comes to rest.

    It is not known in advance how long the fall takes. So the race is solved in stretches, each as
    long as all before it, and each from the weights at which the last one ended.

    **Returns:** times, losses, and the variables of every block.

    **Raises:** `NeuralRaceError` where the gating learns nothing.
    """
    strength = max((block.drive for block in race.blocks), default=0.0)
    if strength <= NOISE * Samples.of(race.data).bound:
        raise NeuralRaceError(
            "this gating learns nothing, so that there are no weights to keep its gates",
            got="no pathway is driven: every Σ^yx is 0",
            wanted="a gating that starts to learn",
            fix="see nr.reln.aligned_patterns(data) for the gates that do",
        )
    pieces: list[_Stretch] = []
    first = end = noise = 0.0
    for begin, at, solution in stretches(
        lambda at, lasts: race.solve(times=np.linspace(0.0, lasts, 401), start=at),
        lambda at, solution: later(race.blocks, at, solution),
        start,
        FIRST / strength,
        LONGEST / strength,
    ):
        pieces.append(_Stretch(begin + solution.time, at, solution))
        if begin == 0:
            noise = NOISE * pieces[0].sizes(0).max(initial=0.0)
            first = float(solution.loss[0])
            end = max(END * first, race.outside + END * (first - race.outside))
        if solution.loss[-1] <= end or (len(pieces) > 1 and pieces[-1].rests(noise)):
            break
    time = np.concatenate([each.time for each in pieces])
    lowest = np.minimum.accumulate(np.concatenate([each.loss for each in pieces]))
    falling = np.concatenate([[True], np.diff(lowest) < 0])
    begin = first - FALLEN * (first - race.outside)
    levels = np.linspace(begin, max(end, float(lowest[-1])), 40)
    times = np.unique(np.interp(-levels, -lowest[falling], time[falling]))
    return _joined([part for each in pieces for part in each.at(race, times)])


@final
@dataclass(frozen=True, eq=False)
class _Stretch:
    """A part of a race that was solved by itself: its times in the whole race, and its start."""

    time: Float[np.ndarray, " T"]
    start: Start
    solution: Trajectory

    @property
    def loss(self) -> Float[np.ndarray, " T"]:
        return np.asarray(self.solution.loss)

    def sizes(self, when: int) -> Float[np.ndarray, " n"]:
        """The sizes of all weights at one of the moments."""
        variables = self.solution.values["variables"].values()
        return np.abs(np.concatenate([np.ravel(w[when]) for of in variables for w in of.values()]))

    def rests(self, noise: float) -> bool:
        """Whether nothing above the noise moves any more; see `RESTING`.

        What starts small counts: near a saddle it is what leads away.
        """
        first, last = self.sizes(0), self.sizes(-1)
        seen = last > noise
        return bool((np.abs(last - first) <= RESTING * last)[seen].all())

    def at(self, race: Race, times: Float[np.ndarray, " T"]) -> list[tuple[float, Trajectory]]:
        """The solution at those of the times that fall into this stretch, and when it begins."""
        begin, end = self.time[0], self.time[-1]
        mine = times[(times >= begin) & ((times < end) | ((times == end) & (end == times[-1])))]
        if not len(mine):
            return []
        grid = np.unique(np.concatenate([[0.0], mine - begin]))
        solution = race.solve(times=grid, start=self.start)
        return [
            (float(begin), solution if mine[0] == begin else solution.isel(time=slice(1, None)))
        ]


def _joined(parts: Sequence[tuple[float, Trajectory]]) -> Trajectory:
    """Solutions one after the other, each with the time at which it begins."""
    solutions = [solution for _, solution in parts]
    variables = {
        block: {e: _one_shape([s.values["variables"][block][e] for s in solutions]) for e in of}
        for block, of in solutions[0].values["variables"].items()
    }
    return Trajectory(
        np.concatenate([begin + solution.time for begin, solution in parts]),
        np.concatenate([solution.loss for solution in solutions]),
        values={"variables": variables},
        settings={"method": "race"},
    )


def _one_shape(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Weights `(T, |t|, |s|)` one after the other; a neuron that some of them lack is zero there.

    A mode has a second one from where its decaying half matters.
    """
    shape = np.max([part.shape[1:] for part in parts], axis=0)
    pads = ([(0, 0), *((0, n - k) for n, k in zip(shape, p.shape[1:], strict=True))] for p in parts)
    return np.concatenate([np.pad(part, pad) for part, pad in zip(parts, pads, strict=True)])
