"""The paths inside one network: how strong each is at a stated moment, and which one leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import one_of
from neuralrace.contests.times import Entrant, Rule, foremost
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reduction import Block, Race
from neuralrace.reduction.solve import RECORDED_PATHS

NETWORK = "the network"
"""What the one network is called in sentences and errors."""


@final
@dataclass(frozen=True, eq=False)
class PathRace:
    """How strong the paths of one network are at a moment; made by `phase_diagram(race="paths")`.

    `entrant` is the network's race and start, and when it reaches the criterion. `moment` is that
    time, or another one that was asked for; `strengths` are those of the paths at that moment, by
    their edges, joined by "-". A path's strength is the product of its edges, with its sign, in a
    mode and in any block with one direction at its ends: along these directions or, where a node
    has one neuron, as the network has it. In other blocks it is the Frobenius norm of the product
    of its matrices, and over several blocks the root of the squared sum. It is NaN where the moment
    is not known or never comes.

    ```python
    >>> import neuralrace as nr
    >>> def build(size):
    ...     arch = nr.Architecture({"x": 1, "h": 4, "g": 4, "y": 1}, {
    ...         "a": ("x", "h"), "b": ("h", "y"), "c": ("x", "g"), "d": ("g", "y")})
    ...     return arch, nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[size], [1.0]]}, {"g": [0, 1.0]})
    >>> found = nr.phase_diagram(build, "size", [1, 2], race="paths", start=1e-3)
    >>> cell = found.contest_at(2.0)
    >>> cell.winner, round(cell.strengths["a-b"], 2), round(cell.strengths["c-d"], 4)
    ('a-b', 1.11, 0.0001)

    ```
    """

    entrant: Entrant
    moment: float
    strengths: Mapping[str, float]

    @property
    def entrants(self) -> dict[str, Entrant]:
        """The network, under a name, as in a `Contest`."""
        return {NETWORK: self.entrant}

    @property
    def winner(self) -> str | None:
        """The strongest path, or None where the moment is not known or never comes."""
        return next(iter(foremost({n: abs(s) for n, s in self.strengths.items()})), None)


def path_race(
    rule: Rule, pair: tuple[Architecture, Dataset] | Race, mode: str | None, at: float | None
) -> PathRace:
    """The paths of one network when its loss reaches the criterion, or at a time."""
    if at is None:
        entrant = rule.enter({NETWORK: pair}, begun=True)[NETWORK]
    else:
        race, start, number = rule.begin(NETWORK, rule.ready({NETWORK: pair})[NETWORK])
        entrant = Entrant(race, start, np.nan, at, "a stated time", number)
    race, moment = entrant.race, entrant.time
    names = [block.name for block in race.blocks]
    if mode is not None:
        one_of("mode", mode, names, "a block of this race")
        names = [mode]
    if not np.isfinite(moment):
        every = {"-".join(path.edges) for block in race.blocks for path in block.arch.paths()}
        return PathRace(entrant, moment, dict.fromkeys(sorted(every), np.nan))
    begun = moment == 0
    times = [0.0, 1.0 if begun else moment]
    solution = race.solve(
        times=times, start=entrant.start, rtol=rule.rtol, weight_decay=rule.weight_decay
    )
    pathways = solution.values["pathways"]
    missing = [name for name in names if name not in pathways]
    if missing:
        raise NeuralRaceError(
            "there are too many paths to compare each of them",
            got=f"more than {RECORDED_PATHS} in {missing[0]}",
            wanted=f"at most {RECORDED_PATHS} in a block",
            fix="merge edges that are alike, or ask for mode= with fewer paths",
        )
    each = [
        {
            path: float(strength[0 if begun else -1]) * _turns(block)[path]
            for path, strength in pathways[block.name].items()
        }
        for block in race.blocks
        if block.name in names
    ]
    if len(each) == 1:
        return PathRace(entrant, moment, each[0])
    every = dict.fromkeys(p for block in each for p in block)
    sums = {p: float(np.linalg.norm([block.get(p, 0.0) for block in each])) for p in every}
    return PathRace(entrant, moment, sums)


def _turns(block: Block) -> dict[str, float]:
    """The sign of every path's strength in the network over that in a block, by its edges.

    The direction of a node with one neuron is ±1. A path between other ends keeps its sign.
    """
    ends = {v: float(b[0, 0]) if b.shape == (1, 1) else 1.0 for v, b in block.basis.items()}
    one = {v for v, b in block.basis.items() if b.shape[1] == 1}
    found = {}
    for path in block.arch.paths():
        source, target = block.arch.edges[path.edges[0]][0], block.arch.edges[path.edges[-1]][1]
        signed = {source, target} <= one
        found["-".join(path.edges)] = ends[source] * ends[target] if signed else 1.0
    return found
