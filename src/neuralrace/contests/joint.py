"""All candidates in one gated network, trained from one start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np
from jaxtyping import Float

from neuralrace.architecture import TRANSPOSED, Architecture
from neuralrace.checks import random_key
from neuralrace.contests.pictures import candidate_colours
from neuralrace.contests.times import Candidates, Entrant
from neuralrace.dataset import Dataset, zero_loss
from neuralrace.door import door
from neuralrace.dynamics import flow
from neuralrace.errors import NeuralRaceError, listed, require, whole_number
from neuralrace.gdln import GDLN
from neuralrace.plot import draw_curves, shade, style
from neuralrace.text import numbered, percent
from neuralrace.tolerances import STACKED
from neuralrace.trajectory import Trajectory
from neuralrace.types import Array, ArrayLike, Key

if TYPE_CHECKING:
    import matplotlib.axes


@final
@dataclass(frozen=True, eq=False)
class Joint:
    """Candidates trained together; made by `Contest.joint`.

    The network's output is the sum of its candidates' outputs, o = Σ_c o_c. `carried[c]`, of shape
    `(seeds, T)`, is ⟨o_c·y⟩/⟨‖y‖²⟩, the part of the targets that candidate c supplies. These parts
    sum to 1 once everything is learned. `runs` are the trajectories, one per seed.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.2)
    >>> found = nr.contest({"linear": nr.tasks.linear_pathways(data),
    ...                     "xor": nr.tasks.xor_pathways(data)}, scale=1e-3)
    >>> together = found.joint(seeds=2)
    >>> together.winners, together.carried["xor"].shape
    (('xor', 'xor'), (2, 201))

    ```
    """

    arch: Architecture
    data: Dataset
    time: Float[np.ndarray, " T"]
    runs: tuple[Trajectory, ...]
    carried: Mapping[str, Float[np.ndarray, "seeds T"]]

    @property
    def winners(self) -> tuple[str, ...]:
        """For every seed, the candidate that supplies most of the targets at the end."""
        names = list(self.carried)
        last = np.array([self.carried[name][:, -1] for name in names])
        return tuple(names[k] for k in last.argmax(axis=0))

    @property
    def winner(self) -> str:
        """The candidate that supplies most of the targets at the end, on average over seeds."""
        return max(self.carried, key=lambda name: self.carried[name][:, -1].mean())

    @door
    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """How much of the targets each candidate supplies over time, stacked, mean over seeds."""
        import matplotlib.pyplot as plt

        with style():
            ax = plt.subplots()[1] if ax is None else ax
            parts = {name: part.mean(axis=0) for name, part in self.carried.items()}
            colours = candidate_colours(parts)
            if all((part > -STACKED).all() for part in parts.values()):
                light = [shade(colour, 0.35) for colour in colours.values()]
                ax.stackplot(self.time, *parts.values(), labels=list(parts), colors=light)
                ax.legend(loc="upper left")
            else:  # a negative part cannot be stacked
                draw_curves(self.time, parts, color=colours, ax=ax)
            ax.set(xlabel="time", ylabel="part of the targets supplied")
            ax.set_xlim(0, self.time[-1])
        return ax

    def __str__(self) -> str:
        seeds = len(self.runs)
        many = numbered(seeds, "seed", "1")
        lines = [f"{self.winner} supplies most after training together ({many}):"]
        for name, part in self.carried.items():
            wins = self.winners.count(name)
            end = percent(part[:, -1].mean())
            lines.append(f"  {name}: {end} of the targets at the end; most in {wins} of {seeds}")
        return "\n".join(lines)


def train_together(
    candidates: Candidates,
    entrants: Mapping[str, Entrant],
    scale: float | None,
    key: Key,
    times: ArrayLike,
    seeds: int,
    weight_decay: float | None,
) -> Joint:
    """Gradient flow of all candidates side by side, from random weights, in float64."""
    seeds = whole_number("seeds", seeds, fix="for example seeds=5")
    arch, data = side_by_side(candidates)
    net = GDLN(arch)
    key = random_key(key, "Contest.joint")
    by_edge = {
        _name(name, edge): size
        for name, (part, _) in candidates.items()
        for edge, size in _sizes(part, entrants[name], scale).items()
    }
    runs, shares = [], []
    with jax.enable_x64(True):
        for seed_key in jax.random.split(key, seeds):
            weights = net.init(seed_key, by_edge)
            run = flow(
                net, weights, data, times=times, record={"weights": True}, weight_decay=weight_decay
            )
            kept = run.values["weights"]
            shares.append({n: _supplied(n, *pair, kept) for n, pair in candidates.items()})
            runs.append(Trajectory(run.time, run.loss, final=run.final, net=net))
    carried = {name: np.stack([share[name] for share in shares]) for name in candidates}
    return Joint(arch, data, runs[0].time, tuple(runs), carried)


def _supplied(
    name: str, arch: Architecture, data: Dataset, weights: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " T"]:
    """⟨o_c·y⟩/⟨‖y‖²⟩ of one candidate c at every recorded time."""
    mine = {edge: weights[_name(name, edge)] for edge in arch.matrices}
    outputs = jax.vmap(lambda w: GDLN(arch)(w, data))(mine)
    p = np.asarray(data.probability)[:, None]
    got = sum((p * np.asarray(outputs[v]) * np.asarray(y)).sum((1, 2)) for v, y in data.y.items())
    return np.asarray(got) / (2 * zero_loss(data))


def _sizes(arch: Architecture, entrant: Entrant, scale: float | None) -> dict[str, float]:
    """The standard deviation of every edge; if all edges start at one value b, it is b √(2/N)."""
    if scale is not None:
        return dict.fromkeys(arch.matrices, scale)
    require(
        entrant.number is not None and arch.path_lengths == {2} and not arch.ties,
        "it is not known which random weights correspond to this start",
        got=entrant.start.description,
        wanted="a contest by scale, or by one number on pathways of two edges",
        fix="joint(scale=1e-3) gives the standard deviation of the random weights",
    )
    return {
        edge: abs(entrant.number or 0.0)
        * float(np.sqrt(2 / arch.sizes[t if s in arch.inputs else s]))
        for edge, (s, t) in arch.matrix_ends.items()
    }


def side_by_side(candidates: Candidates) -> tuple[Architecture, Dataset]:
    """One network that holds every candidate between the same inputs and outputs.

    A hidden node or an edge is named `candidate__name`. Gates of inputs and outputs, which would
    act on all candidates, are moved to the edges next to them.
    """
    names = [
        _name(name, part)
        for name, (arch, _) in candidates.items()
        for part in (*arch.hidden, *arch.edges, *arch.ties)
    ]
    require(
        len(set(names)) == len(names),
        "two candidates cannot be told apart in the joint network",
        got=f"candidates {listed(candidates)}, of which two give one name to a node or edge",
        wanted="names that differ in more than spaces and signs",
        fix="rename one of them",
    )
    first = next(iter(candidates.values()))[1]
    sizes: dict[str, int] = {}
    edges: dict[str, tuple[str, str]] = {}
    ties: dict[str, list[str]] = {}
    frozen: dict[str, Any] = {}
    gates: dict[str, np.ndarray] = {}
    x: dict[str, Array] = {}
    for name, (arch, data) in candidates.items():
        ends = {*arch.inputs, *arch.outputs}
        place = {v: v if v in ends else _name(name, v) for v in arch.sizes}
        sizes |= {place[v]: size for v, size in arch.sizes.items()}
        x |= dict(data.x)
        for v, gate in data.gates.items():
            if v not in ends:
                gates[_name(name, v)] = np.asarray(gate)
            elif np.ndim(gate) == 2:
                raise NeuralRaceError(
                    f"candidate {name!r} gates single neurons of {v!r}",
                    got=f"gates of shape {np.shape(gate)}",
                    wanted="one gate per sample for inputs and outputs",
                    fix="gate hidden nodes instead",
                )
        frozen |= {_name(name, edge): value for edge, value in arch.frozen.items()}
        for tie, members in arch.ties.items():
            parts = ((m.removesuffix(TRANSPOSED), m.endswith(TRANSPOSED)) for m in members)
            ties[_name(name, tie)] = [_name(name, e) + TRANSPOSED * turned for e, turned in parts]
        for edge, (s, t) in arch.edges.items():
            edges[_name(name, edge)] = (place[s], place[t])
            for v in (s, t):
                if v in ends and v in data.gates:
                    gates[_name(name, edge)] = gates.get(_name(name, edge), 1.0) * np.asarray(
                        data.gates[v]
                    )
    return Architecture(sizes, edges, ties, frozen), replace(first, x=x, gates=gates)


def _name(candidate: str, part: str) -> str:
    """A node or edge of a candidate in the joint network; signs in its name become `_`."""
    word = re.sub(r"\W", "_", candidate, flags=re.ASCII)
    return f"{word if word[:1].isalpha() else 'c' + word}__{part}"
