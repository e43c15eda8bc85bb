"""Data meets a graph: names and sizes checked, and pathways over a base dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import equinox as eqx
import numpy as np

from neuralrace.architecture import BIAS, Architecture, check_ends, joined
from neuralrace.dataset.samples import Dataset, weighed
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, spelled
from neuralrace.types import ArrayLike, Count


def matched(arch: Architecture, data: Dataset, classes: bool = False) -> Dataset:
    """`data` as `arch` needs it, with the bias filled in, or an error that says what is wrong.

    Every network and every theory calls this first, so that names and sizes are checked in one
    place; it works under `jit`, where it sees shapes alone. With `classes`, targets may also be one
    column of class indices.
    """
    if BIAS in arch.inputs:
        data = with_bias(data, arch.sizes[BIAS])
    x = data.x
    for field, values, nodes, kind in (
        ("x", x, arch.inputs, "input"),
        ("y", data.y, arch.outputs, "output"),
    ):
        for node in sorted(set(nodes) ^ set(values), key=str):
            missing = node in nodes
            raise NeuralRaceError(
                f"{kind} node {node!r} has no {field}"
                if missing
                else f"unknown name {node!r} in {field}",
                got=f"{field} for {listed(values)}",
                wanted=f"{field} for {listed(nodes)}, the {kind} nodes",
                fix=f"pass {field}={{{node!r}: …}}"
                if missing
                else spelled(
                    node,
                    nodes,
                    f"rename or leave out {node!r}; hidden nodes have no inputs or targets",
                ),
            )
        for node, value in values.items():
            if field == "x":
                _check_size(f"x[{node!r}]", value.shape, arch.sizes[node], node)
    if not classes:
        check_targets(arch, data)
    for name, gate in data.gates.items():
        if name not in arch.sizes and name not in arch.edges:
            raise NeuralRaceError(
                f"gates for an unknown name {name!r}",
                got=repr(name),
                wanted=f"a node ({listed(arch.sizes)}) or an edge ({listed(arch.edges)})",
                fix=spelled(
                    name,
                    [*arch.sizes, *arch.edges],
                    "check the spelling, or use the architecture the gates were made for",
                ),
            )
        require(
            gate.ndim != 2 or name not in arch.edges,
            f"edge {name!r} has one gate per sample",
            got=f"gates of shape {gate.shape}",
            wanted="shape (N,)",
            fix="gate the neurons of the edge's source or target node instead",
        )
        if gate.ndim == 2:
            _check_size(f"gates[{name!r}]", gate.shape, arch.sizes[name], name)
    return data


def with_bias(data: Dataset, size: int = 1) -> Dataset:
    """The same data with an input that is always one, if it has none."""
    if BIAS in data.x:
        return data
    require(
        not data.is_population,
        f"data has no moments of the input {BIAS!r}, which is always one",
        got=data,
        wanted=f"the means of inputs and targets, as the moments of a node {BIAS!r}",
        fix=f"xx[{BIAS!r}] = [[1]], with xx['x', {BIAS!r}] and yx['y', {BIAS!r}] the means",
    )
    x = {**data.x, BIAS: np.ones((data.n_samples, size))}
    return eqx.tree_at(lambda d: d.x, data, x)


@door
def pathways(
    base: Dataset,
    masks: Mapping[str, ArrayLike | None],
    hidden: Count | Mapping[str, Count],
    inputs: Mapping[str, Sequence[str]] | None = None,
    outputs: Mapping[str, Sequence[str]] | None = None,
    depth: Count = 1,
) -> tuple[Architecture, Dataset]:
    """Parallel gated pathways over a base dataset: the common way to write down a gating.

    **Arguments:** `masks` says for each pathway where it is on: `None` for always, or an array of
    shape `(N,)` of booleans or real gates. `hidden` is the width of all pathways or of each.
    `inputs` and `outputs` restrict a pathway to some nodes; a pathway they leave out has all.
    `depth` is the number of hidden layers of every pathway, each of its width and with its gates.

    **Returns:** the architecture (one hidden node per pathway, or for deeper ones `name_1`,
    `name_2`, … from the inputs on; edges named `source_target`) and the base dataset with these
    gates. Inputs that no pathway reads are left out.

    ```python
    >>> import neuralrace as nr
    >>> base = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [0.0]]}, labels={"context": [1, 2]})
    >>> arch, data = nr.pathways(base, {"common": None, "first": base.mask(context=1)}, hidden=10)
    >>> arch.hidden, data.gates
    (('common', 'first'), {'first': array([1., 0.])})
    >>> nr.pathways(base, {"first": base.mask(context=1)}, hidden=10, depth=2)[0].hidden
    ('first_1', 'first_2')

    ```
    """
    require(
        masks,
        "there are no pathways",
        got="empty masks",
        wanted="{name: mask or None}",
        fix="name at least one pathway, for example {'common': None}",
    )

    widths = dict(hidden) if isinstance(hidden, Mapping) else dict.fromkeys(masks, hidden)
    require(
        set(widths) == set(masks),
        "hidden must give a width to every pathway and to nothing else",
        got=f"widths for {listed(widths)}",
        wanted=f"widths for {listed(masks)}",
        fix="pass one number for all, or {name: width} with the names of the pathways",
    )
    layers = {name: _layers(name, depth) for name in masks}
    nodes = [node for each in layers.values() for node in each]
    taken = sorted(set(nodes) & ({*base.x, *base.y}))
    if taken:
        raise NeuralRaceError(
            f"pathway {taken[0]!r} has the name of an input or output",
            got=listed(nodes),
            wanted=f"names other than {listed({*base.x, *base.y})}",
            fix="rename the pathway",
        )
    inputs = {} if inputs is None else inputs
    check_ends(inputs, masks, base.x, "input")
    reads = {name: inputs.get(name, tuple(base.x)) for name in masks}
    read = {v for ends in reads.values() for v in ends}
    arch = Architecture.parallel(
        {v: x.shape[1] for v, x in base.x.items() if v in read},
        {name: widths[name] for name in masks},
        {v: y.shape[1] for v, y in base.y.items()},
        reads=reads,
        writes=outputs,
    )
    if depth > 1:
        arch = _deeper(arch, layers)
    dropped = (set(base.x) - read) | set(arch.hidden)
    gates = {name: gate for name, gate in base.gates.items() if name not in dropped}
    gates |= {
        node: mask for name, mask in masks.items() if mask is not None for node in layers[name]
    }
    x = {v: x for v, x in base.x.items() if v in read}
    return arch, matched(arch, replace(base, x=x, gates=gates))


def _layers(name: str, depth: int) -> list[str]:
    """The hidden nodes of a pathway, from the inputs on."""
    return [name] if depth == 1 else [f"{name}_{i}" for i in range(1, depth + 1)]


def _deeper(arch: Architecture, layers: Mapping[str, Sequence[str]]) -> Architecture:
    """A graph with a chain of nodes in place of every hidden one."""
    ends = {v: (nodes[0], nodes[-1]) for v, nodes in layers.items()}
    pairs = [pair for nodes in layers.values() for pair in pairwise(nodes)]
    pairs += [(ends.get(s, (s, s))[1], ends.get(t, (t, t))[0]) for s, t in arch.edges.values()]
    sizes = {node: n for v, n in arch.sizes.items() for node in layers.get(v, [v])}
    return Architecture(sizes, joined(pairs))


def check_targets(arch: Architecture, data: Dataset) -> None:
    """Raise where targets do not have one column per neuron of their node."""
    for node, value in data.y.items():
        indices = value.shape[1] == 1 and arch.sizes[node] > 1
        fix = (
            "class indices need loss='cross_entropy'; np.eye(classes)[indices] makes rows"
            if indices
            else SIZE_FIX
        )
        _check_size(f"y[{node!r}]", value.shape, arch.sizes[node], node, fix)


SIZE_FIX = "change the node's size or the array; samples are the first axis"


def _check_size(
    what: str,
    shape: tuple[int, ...],
    size: int,
    node: str,
    fix: str = SIZE_FIX,
) -> None:
    require(
        shape[1] == size,
        f"{what} does not fit node {node!r}",
        got=f"shape {shape}",
        wanted=f"shape (N, {size}), since node {node!r} has {size} neurons",
        fix=fix,
    )


@door
def zero_loss(data: Dataset) -> float:
    """½⟨Σ_v w_v ‖y_v‖²⟩, the squared loss of a network whose outputs are zero.

    ```python
    >>> import neuralrace as nr
    >>> from neuralrace.dataset import zero_loss
    >>> zero_loss(nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[2.0], [4.0]]}))
    5.0

    ```
    """
    rows = np.asarray(data.probability, np.float64)
    targets = (np.asarray(y, np.float64) for y in weighed(data).y.values())
    return sum(float((rows @ y**2).sum()) for y in targets) / 2
