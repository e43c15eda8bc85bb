"""The event-driven form of neuron types: a sequence of gated networks with rank-one pathways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import final

import jax
import numpy as np
from jaxtyping import Float, Int

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types.crowd import Crowd, Neurons, descend
from neuralrace.reln.explained.types.staged import split_outputs
from neuralrace.reln.explained.types.symmetries import Symmetries, moved
from neuralrace.tolerances import DIGITS
from neuralrace.trajectory import Trajectory

MOST_IMAGES = 5000
"""The most neurons that a stage may have, all images of all types counted."""


@final
@dataclass(frozen=True, eq=False)
class TypeStage:
    """One stage: a gated network whose gates hold from `start` to `end`.

    `arch`, `data` and `weights` are that network with the weights at its start. Its hidden node `h`
    has one neuron for each type and image, with its own gates; `type_of` says of which type it is.

    ```python
    >>> import neuralrace as nr
    >>> data = nr.tasks.extended_xor(0.4)
    >>> found = nr.reln.types(data, width=128, scale=2e-5, learning_rate=0.1, steps=600, types=1)
    >>> stage = found.stages()[0]
    >>> i = int(found.trajectory.time.searchsorted(stage.start))
    >>> loss = nr.GDLN(stage.arch).loss(stage.weights, stage.data)
    >>> bool(abs(loss - found.trajectory.loss[i]) < 1e-6)
    True

    ```
    """

    start: float
    end: float
    types: Neurons = field(repr=False)
    gates: Float[np.ndarray, "K N"] = field(repr=False)
    symmetries: Symmetries = field(repr=False)
    task: Dataset = field(repr=False)

    @property
    def arch(self) -> Architecture:
        """The graph: every input node to `h`, and `h` to every output node."""
        sizes = {name: np.shape(v)[1] for name, v in {**self.task.x, **self.task.y}.items()}
        edges = {f"from_{name}": (name, "h") for name in self.task.x}
        edges |= {f"to_{name}": ("h", name) for name in self.task.y}
        return Architecture(sizes=sizes | {"h": len(self.type_of)}, edges=edges)

    @property
    def data(self) -> Dataset:
        """The task with the gates of this stage."""
        return self.task.gated({"h": self._images[2].T})

    @property
    def weights(self) -> dict[str, Float[np.ndarray, "_ _"]]:
        """The weights at the start of this stage."""
        w, a, _, _ = self._images
        found = {}
        parts = (("from", self.task.x, w), ("to", self.task.y, a))
        for way, nodes, rows in parts:
            cuts = np.cumsum([np.shape(v)[1] for v in nodes.values()])[:-1]
            for name, block in zip(nodes, np.split(rows, cuts, axis=1), strict=True):
                found[f"{way}_{name}"] = block if way == "from" else block.T
        return found

    @property
    def type_of(self) -> Int[np.ndarray, " M"]:
        """The type of every neuron, counted from 0."""
        return self._images[3]

    @cached_property
    def _images(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """w, a and gates of all different images of all types, and which type they are of."""
        elements, samples = self.symmetries.elements, self.symmetries.samples
        found = []
        for k, gates in enumerate(self.gates):
            w, a = self.types["w"][k], self.types["a"][k]
            seen = np.concatenate([samples.x @ w, samples.y @ a])
            seen = seen / (np.abs(seen).max() or 1.0)
            back = np.argsort(elements, axis=1)
            n = len(samples.x)
            views = np.concatenate([seen[:n][back], seen[n:][back], gates[back]], axis=1)
            _, first, often = np.unique(
                np.round(views, DIGITS), axis=0, return_index=True, return_counts=True
            )
            if sum(len(f[0]) for f in found) + len(first) > MOST_IMAGES:
                raise NeuralRaceError(
                    "the types have too many images for one network",
                    got=f"{len(self.gates)} types and {self.symmetries.order} symmetries",
                    wanted=f"at most {MOST_IMAGES} neurons",
                    fix="ask for fewer types; the trajectory of the stages needs no images",
                )
            size = np.sqrt(often / len(elements))[:, None]
            many = len(first)
            rows = moved(
                self.symmetries, elements[first], np.tile(w, (many, 1)), np.tile(a, (many, 1))
            )
            found.append((size * rows[0], size * rows[1], gates[back[first]], np.full(many, k)))
        w, a, gates, types = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return w, a, gates, types


@final
@dataclass(frozen=True, eq=False)
class TypeStages:
    """The stages of neuron types, in order, and the `trajectory` of all of them together.

    ```python
    >>> from itertools import pairwise
    >>> import neuralrace as nr
    >>> found = nr.reln.types(nr.tasks.xor(), width=128, scale=2e-5, learning_rate=0.1,
    ...                       steps=600, types=1)
    >>> stages = found.stages(tolerance=0.3)
    >>> len(stages) > 1, all(a.end == b.start for a, b in pairwise(stages))
    (True, True)
    >>> float(found.time[0]) == stages[0].start, float(found.time[-1]) == stages[-1].end
    (True, True)

    ```
    """

    stages: tuple[TypeStage, ...]
    trajectory: Trajectory

    def __len__(self) -> int:
        return len(self.stages)

    def __getitem__(self, index: int) -> TypeStage:
        return self.stages[index]

    def __iter__(self) -> Iterator[TypeStage]:
        return iter(self.stages)

    def __str__(self) -> str:
        first = ", ".join(f"{stage.start:.4g}–{stage.end:.4g}" for stage in self.stages[:8])
        more = f", … and {len(self) - 8} more" if len(self) > 8 else ""
        return f"{len(self)} stages of constant gates, at times {first}{more}."


def event_driven(
    reduced: tuple[Samples, Symmetries, np.ndarray, np.ndarray],
    data: Dataset,
    trajectory: Trajectory,
    time: Float[np.ndarray, " T"],
    gates: Float[np.ndarray, "T K N"],
    states: Int[np.ndarray, "T K N"],
    start: Neurons,
    rate: float,
    tolerance: float,
) -> TypeStages:
    """Cut the history of types into stages, and follow the gated network through them."""
    samples, symmetries, inputs, outputs = reduced
    begins = [0]
    for i in range(1, len(time) - 1):
        switched = (states[i] != states[i - 1]).any()
        drifted = np.abs(gates[i] - gates[begins[-1]]).max() > tolerance
        if switched or drifted:
            begins.append(i)
    cuts = np.array([*begins, len(time) - 1])
    steps = np.rint(time / rate).astype(int)
    length = np.diff(steps)[:, None, None]
    mean = np.stack(
        [(length[i:j] * gates[i:j]).sum(axis=0) / length[i:j].sum() for i, j in pairwise(cuts)]
    )
    stage = np.searchsorted(cuts[:-1], np.arange(len(time)), side="right") - 1
    small = {"w": start["w"] @ inputs, "a": start["a"] @ outputs}
    with jax.enable_x64(True):
        crowd = Crowd.of(samples, symmetries, 0.0)
    table = mean[stage].swapaxes(1, 2)
    done = descend(crowd, small, rate, steps, counting=True, gates=table)
    before = len(trajectory.time) - len(time)
    known = trajectory.outputs
    assert known is not None  # types record them
    later = split_outputs(done.values["outputs"] @ outputs.T, data)
    whole = Trajectory(
        trajectory.time,
        np.append(trajectory.loss[:before], done.loss),
        values={"outputs": {v: np.concatenate([known[v][:before], later[v]]) for v in later}},
        steps=trajectory.steps,
        sample_weight=data.sample_weight,
        settings=trajectory.settings | {"method": f"{len(mean)} stages of types of neurons"},
    )
    full = replace(symmetries, samples=Samples.of(data))
    found = tuple(
        TypeStage(
            float(time[i]),
            float(time[j]),
            {
                "w": done.values["w"][i] @ inputs.T,
                "a": done.values["a"][i] @ outputs.T,
            },
            mean[s],
            full,
            data,
        )
        for s, (i, j) in enumerate(pairwise(cuts))
    )
    return TypeStages(found, whole)
