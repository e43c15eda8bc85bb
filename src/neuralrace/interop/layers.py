"""Chains of layers, as other libraries hold them, and as networks and weights of this package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import plain_array
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.gdln import GDLN, Network
from neuralrace.relu import ReLUNetwork
from neuralrace.types import ArrayLike, Finite, WeightsLike

BIAS = "bias"
"""The node that carries the biases, as in `ReLUNetwork(…, bias=True)`."""

PRECISIONS = ("float32", "float64")
"""The precisions in which weights are taken."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One affine map: `weight` of shape (out, in), `bias` of shape (out,) or None.

    `read` are the identities of the arrays that both were copied from, by which ties are known.
    """

    name: str
    weight: np.ndarray
    bias: np.ndarray | None
    read: tuple[int, int] = (0, 0)


@door
def from_layers(
    layers: Sequence[Sequence[ArrayLike | None]], leak: Finite = 0.0
) -> tuple[Network, dict[str, Float[np.ndarray, "target source"]]]:
    """A network and its weights from a list of matrices and biases.

    h_l = ρ(W_l h_{l−1} + b_l), with ρ(z) = z for z > 0 and leak · z elsewhere, and no ρ after the
    last layer. The edges are called `W1`, `W2`, …; a bias is the edge `bias_h1` from the node
    `bias`, which is clamped to one. Numbers keep their precision, float32 or float64.

    **Arguments:** `layers`, one pair `(W, b)` per layer in the order in which they are applied, `W`
    of shape (out, in), `b` of shape (out,) or None; `leak`, the slope below zero. With `leak=1`
    nothing is rectified, and the network is a `GDLN`.

    **Returns:** the network, a `ReLUNetwork` unless `leak` is 1, and its weights by edge.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> net, weights = nr.from_layers([(np.ones((4, 2)), np.zeros(4)), (np.ones((1, 4)), None)])
    >>> net.arch.hidden, {edge: w.shape for edge, w in weights.items()}
    (('h',), {'W1': (4, 2), 'W2': (1, 4), 'bias_h': (4, 1)})

    ```
    """
    pairs: list[Layer] = []
    for place, pair in enumerate(layers, 1):
        require(
            len(pair) == 2,
            f"layer {place} is not a pair of weights and bias",
            got=f"{type(pair).__name__} of {len(pair)}",
            wanted="(W, b), with None for a layer without bias",
            fix="for example nr.from_layers([(W1, b1), (W2, None)])",
        )
        pairs.append(checked_layer(f"layer {place}", *pair))
    return network_of_layers(pairs, leak)


def checked_layer(name: str, weight: ArrayLike | None, bias: ArrayLike | None) -> Layer:
    """A layer whose arrays have the right shapes, numbers and precision, copied."""
    matrix = checked_numbers(f"the weights of {name}", weight, 2, "(out, in)")
    offset = None
    if bias is not None:
        offset = checked_numbers(f"the bias of {name}", bias, 1, f"({len(matrix)},)")
        require(
            len(offset) == len(matrix),
            f"the bias of {name} does not fit its weights",
            got=f"{len(offset)} biases for weights of shape {matrix.shape}",
            wanted=f"{len(matrix)} biases, one per row",
            fix="weights have shape (out, in); transpose them if yours are (in, out)",
        )
    return Layer(name, matrix, offset, (id(weight), id(bias)))


def checked_numbers(what: str, value: ArrayLike | None, ndim: int, shape: str) -> np.ndarray:
    """A copy of an array of finite numbers in float32 or float64, with that many axes."""
    wanted = f"finite numbers of shape {shape}"
    array = plain_array(what, value, wanted=wanted, fix="pass NumPy arrays")
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.name not in PRECISIONS:
        raise half_precision(what, array.dtype.name)
    require(
        array.ndim == ndim and array.size,
        f"wrong shape: {what}",
        got=f"shape {array.shape}",
        wanted=f"shape {shape}",
        fix="pass the matrix of a fully connected layer; convolutions have no such matrix"
        if ndim == 2
        else "a bias has one number per neuron",
    )
    if not np.isfinite(array).all():
        raise NeuralRaceError(
            f"NaN or infinity among {what}",
            got=f"{int((~np.isfinite(array)).sum())} such values",
            wanted=wanted,
            fix="take a checkpoint from before the run diverged",
        )
    return np.array(array)


def half_precision(what: str, dtype: str) -> NeuralRaceError:
    """The error for numbers in another precision than float32 and float64."""
    return NeuralRaceError(
        f"single or double precision is needed: {what}",
        got=dtype,
        wanted=" or ".join(PRECISIONS),
        fix="convert them first: model.float() in PyTorch, array.astype('float32') in NumPy",
    )


def network_of_layers(
    layers: Sequence[Layer], leak: float, *, tied: bool = False
) -> tuple[Network, dict[str, np.ndarray]]:
    """The network of checked layers and its weights, or an error where they do not chain.

    With `tied`, weights and biases that were read from one array are one matrix.
    """
    require(
        layers,
        "there are no layers",
        got="no weights",
        wanted="at least one layer",
        fix="pass the layers in the order in which they are applied",
    )
    for first, second in pairwise(layers):
        require(
            len(first.weight) == second.weight.shape[1],
            f"{first.name} and {second.name} do not chain",
            got=f"{len(first.weight)} outputs, then {second.weight.shape[1]} inputs",
            wanted="as many inputs as the layer before has outputs",
            fix="check the order of the layers; weights have shape (out, in)",
        )
    kinds = sorted({array.dtype.name for layer in layers for array in _arrays(layer)})
    require(
        len(kinds) == 1,
        "the layers have different precisions",
        got=", ".join(kinds),
        wanted="one precision for all",
        fix="convert all of them to float64, which changes no number",
    )
    chain = Architecture.chain(layers[0].weight.shape[1], *(len(each.weight) for each in layers))
    weights: dict[str, np.ndarray] = {}
    biases: dict[str, np.ndarray] = {}
    for (edge, (_, node)), layer in zip(chain.edges.items(), layers, strict=True):
        weights[edge] = layer.weight
        if layer.bias is not None:
            biases[f"{BIAS}_{node}"] = layer.bias[:, None]
    sizes, edges = dict(chain.sizes), dict(chain.edges)
    if biases:
        sizes |= {BIAS: 1}
        edges |= {edge: (BIAS, edge.removeprefix(f"{BIAS}_")) for edge in biases}
    ties = dict[str, tuple[str, ...]]()
    for k in (0, 1) if tied else ():
        users: dict[int, list[str]] = {}
        for (edge, (_, node)), layer in zip(chain.edges.items(), layers, strict=True):
            users.setdefault(layer.read[k], []).append(f"{BIAS}_{node}" if k else edge)
        ties |= {"_and_".join(e): tuple(e) for e in users.values() if e[0] in edges and len(e) > 1}
    weights |= biases
    for tie, members in ties.items():
        weights[tie] = weights[members[0]]
    arch = Architecture(sizes, edges, ties)
    weights = {name: weights[name] for name in arch.matrices}
    return GDLN(arch) if leak == 1 else ReLUNetwork(arch, leak=float(leak)), weights


def _arrays(layer: Layer) -> list[np.ndarray]:
    return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]


def layers_of_network(net: Network, weights: WeightsLike) -> list[Layer] | None:
    """The layers of a network that is a chain, biases aside; None for any other graph."""
    arch = net.arch
    if (
        arch.ties
        or arch.frozen
        or len(arch.outputs) != 1
        or len([v for v in arch.inputs if v != BIAS]) != 1
    ):
        return None
    layers: list[Layer] = []
    for node in arch.order:
        if node in arch.inputs:
            continue
        ways = [e for e in arch.incoming[node] if arch.edges[e][0] != BIAS]
        biases = [e for e in arch.incoming[node] if arch.edges[e][0] == BIAS]
        before = next(v for v in arch.inputs if v != BIAS) if not layers else layers[-1].name
        if len(ways) != 1 or len(biases) > 1 or arch.edges[ways[0]][0] != before:
            return None
        bias = np.asarray(weights[biases[0]])[:, 0] if biases else None
        layers.append(Layer(node, np.asarray(weights[ways[0]]), bias))
    return layers if arch.sizes.get(BIAS, 1) == 1 else None


# ---- layers by name -----------------------------------------------------------------------------


def named_layers(arrays: Mapping[str, ArrayLike], what: str) -> list[Layer]:
    """The layers among arrays called `<layer>.weight` and `<layer>.bias`, in the order given."""
    names: list[str] = []
    for key in arrays:
        match = re.fullmatch(r"(?:(.*)\.)?(weight|bias)", key)
        if match is None:
            raise NeuralRaceError(
                f"{what}: the key {key!r} belongs to no fully connected layer",
                got=f"{key!r}, an array of shape {np.shape(arrays[key])}",
                wanted="keys such as '0.weight' and '0.bias', one pair per layer",
                fix="networks of fully connected layers with ReLU can be read; leave out "
                "batch normalisation and buffers",
            )
        name = match[1] or ""
        if name not in names:
            names.append(name)
    prefixes = {name: f"{name}." if name else "" for name in names}
    for name, prefix in prefixes.items():
        require(
            f"{prefix}weight" in arrays,
            f"{what}: layer {name!r} has a bias and no weights",
            got=f"{prefix}bias",
            wanted=f"{prefix}weight too",
            fix="check that the whole state dict was saved",
        )
    return [
        checked_layer(f"layer {name!r}", arrays[f"{p}weight"], arrays.get(f"{p}bias"))
        for name, p in prefixes.items()
    ]


def check_order(layers: Sequence[Layer], what: str) -> None:
    """Raise where only the alphabet tells the order of layers that also chain in another order."""
    if len({re.sub(r"\d+", "#", layer.name) for layer in layers}) <= 1:
        return
    shapes = [layer.weight.shape for layer in layers]
    given = tuple(range(len(layers)))
    others = (order for order in _chains(shapes, ()) if order != given)
    if (other := next(others, None)) is not None:
        raise NeuralRaceError(
            f"{what}: the names of the layers do not tell their order",
            got=f"{', '.join(layer.name for layer in layers)}, which also fit as "
            + ", ".join(layers[i].name for i in other),
            wanted="names that differ in their numbers alone, such as 'layer1.weight'",
            fix="rename them, or pass them in order: nr.from_layers([(W1, b1), (W2, b2)])",
        )


def _chains(shapes: Sequence[tuple[int, ...]], begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every order of layers in which each reads as many numbers as the one before it writes."""
    if len(begun) == len(shapes):
        yield begun
    for i, (_, reads) in enumerate(shapes):
        if i not in begun and (not begun or shapes[begun[-1]][0] == reads):
            yield from _chains(shapes, (*begun, i))


def natural(key: str) -> list[tuple[int, str]]:
    """A sorting key in which "10" comes after "2"."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", key)]
