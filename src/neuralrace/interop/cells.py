"""Recurrent networks of other libraries: one cell for all time steps, and a readout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuralrace.architecture import BIAS
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import GDLN, Network
from neuralrace.interop.layers import Layer, checked_layer
from neuralrace.relu import ReLUNetwork
from neuralrace.tasks.sequences import recurrent_of

INPUT, HIDDEN = "ih_l0", "hh_l0"
"""How PyTorch names what a cell reads, and what it hands on."""


@dataclass(frozen=True, eq=False)
class Cell:
    """What a step does: h ← slope(reads(x) + hands(h)), and what is read from h."""

    reads: Layer
    hands: Layer
    writes: Layer


def has_steps(data: Dataset | None) -> bool:
    """Whether a dataset is one of sequences, `x1`, `x2`, …"""
    return data is not None and "x" not in data.x and "x1" in data.x


def cell_of_rnn(arrays: Mapping[str, np.ndarray], rnn: str, readout: str) -> Cell:
    """The cell of an `nn.RNN` and the `Linear` that reads it, by their names in a state dict."""
    prefix = f"{rnn}." if rnn else ""
    part = lambda name: checked_layer(
        f"layer {rnn!r}", arrays[f"{prefix}weight_{name}"], arrays.get(f"{prefix}bias_{name}")
    )
    known = {f"{prefix}{kind}_{name}" for kind in ("weight", "bias") for name in (INPUT, HIDDEN)}
    known |= {f"{readout}.weight", f"{readout}.bias"}
    odd = sorted(set(arrays) - known)
    require(
        not odd and {f"{prefix}weight_{INPUT}", f"{readout}.weight"} <= set(arrays),
        "the state dict is not that of one recurrent layer and a Linear that reads it",
        got=f"keys {listed(arrays)}",
        wanted=f"keys {listed(sorted(known))}, biases or not",
        fix="nn.RNN(inputs, hidden, nonlinearity='relu') of one layer, then nn.Linear",
    )
    writes = checked_layer(
        f"layer {readout!r}", arrays[f"{readout}.weight"], arrays.get(f"{readout}.bias")
    )
    return Cell(part(INPUT), part(HIDDEN), writes)


def cell_of_layers(layers: Sequence[Layer]) -> Cell:
    """The cell that three fully connected layers form, in the order reads, hands on, writes."""
    shapes = [layer.weight.shape for layer in layers]
    fits = len(layers) == 3 and shapes[1][0] == shapes[1][1] == shapes[0][0] == shapes[2][1]
    require(
        fits,
        "these layers do not form the cell of a recurrent network",
        got=f"shapes {shapes}",
        wanted="three layers: (hidden, inputs), (hidden, hidden), (outputs, hidden)",
        fix="assign them in this order: what reads the inputs, what hands on, what writes",
    )
    return Cell(*layers)


def network_of_cell(
    cell: Cell, leak: float, data: Dataset | None
) -> tuple[Network, dict[str, np.ndarray]]:
    """The network of a cell on the steps of some data, and its weights."""
    if data is None or not has_steps(data):
        raise NeuralRaceError(
            "a recurrent network needs data of sequences",
            got=f"x for {listed(data.x)}" if data is not None else "no data",
            wanted="x for 'x1' … 'xT', y for 'y', or for 'y1' … 'yT'",
            fix="nr.tasks.sequences(x, y), x of shape (N, T, inputs)",
        )
    arch = recurrent_of(data, len(cell.hands.weight))
    sizes = (arch.sizes["x1"], arch.sizes[arch.outputs[0]])
    require(
        sizes == (cell.reads.weight.shape[1], len(cell.writes.weight)),
        "the network does not fit the data",
        got=f"{cell.reads.weight.shape[1]} inputs and {len(cell.writes.weight)} outputs",
        wanted=f"{sizes[0]} inputs and {sizes[1]} outputs, as the data have",
        fix="x has shape (N, T, inputs), y (N, outputs) or (N, R, outputs)",
    )
    weights = {"Wx": cell.reads.weight, "Wh": cell.hands.weight, "Wy": cell.writes.weight}
    offsets = [b for b in (cell.reads.bias, cell.hands.bias) if b is not None]
    if offsets or cell.writes.bias is not None:
        whole = arch.with_bias()
        nodes = {
            *(arch.hidden if offsets else ()),
            *(arch.outputs if cell.writes.bias is not None else ()),
        }
        arch = whole.part([e for e, (s, t) in whole.edges.items() if s != BIAS or t in nodes])
        for name, (_, node) in arch.matrix_ends.items():
            if arch.edges[arch.matrices[name][0][0]][0] == BIAS:
                bias = sum(offsets) if node in arch.hidden else cell.writes.bias
                weights[name] = np.asarray(bias)[:, None]
    weights = {name: weights[name] for name in arch.matrices}
    return GDLN(arch) if leak == 1 else ReLUNetwork(arch, leak=float(leak)), weights


def sequences_in(data: Dataset) -> np.ndarray:
    """The inputs of all steps, (N, T, inputs)."""
    return np.stack([np.asarray(data.x[f"x{t}"]) for t in range(1, len(data.x) + 1)], axis=1)


def steps_read(data: Dataset) -> list[int]:
    """The steps after which there is a target, counted from 0."""
    return [len(data.x) - 1 if y == "y" else int(y[1:]) - 1 for y in data.y]
