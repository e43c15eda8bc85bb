"""Networks and runs from PyTorch, read without importing it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from neuralrace.architecture import BIAS
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import Network
from neuralrace.interop.cells import (
    INPUT,
    cell_of_layers,
    cell_of_rnn,
    has_steps,
    network_of_cell,
)
from neuralrace.interop.layers import (
    PRECISIONS,
    Layer,
    checked_layer,
    checked_numbers,
    half_precision,
    named_layers,
    network_of_layers,
)
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.structure import (
    Linear,
    Piece,
    Recurrence,
    Slope,
    check_same,
    hidden_slope,
    refused,
)
from neuralrace.losses import SampleLoss
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Finite, Positive


@runtime_checkable
class TorchTensor(Protocol):
    """As much of a tensor of PyTorch as is read."""

    def detach(self) -> TorchTensor: ...
    def cpu(self) -> TorchTensor: ...
    def numpy(self) -> np.ndarray: ...
    def data_ptr(self) -> int: ...


StateDict: TypeAlias = Mapping[str, Any]
"""What `model.state_dict()` returns, tensors by name, or the same with NumPy arrays."""


@runtime_checkable
class TorchModule(Protocol):
    """As much of a module of PyTorch as is read."""

    training: bool
    _modules: Mapping[str, TorchModule]
    _parameters: Mapping[str, TorchTensor]

    def state_dict(self) -> StateDict: ...
    def __call__(self, x: object) -> TorchTensor: ...


Checkpoint: TypeAlias = TorchModule | StateDict
"""A model, or its state dict."""


@door
def from_torch(
    checkpoints: Checkpoint | Sequence[Checkpoint],
    data: Sampled,
    times: ArrayLike | None = None,
    *,
    model: TorchModule | None = None,
    leak: Finite | None = None,
    loss: str | SampleLoss = "squared",
    learning_rate: Positive | None = None,
    batch_size: Count | None = None,
) -> tuple[Network, Trajectory]:
    """A network trained in PyTorch, and its run: one model, or its state dicts over training.

    **What can be read:** `Linear` layers with or without bias, with the same `ReLU` or `LeakyReLU`
    between all of them; `Identity`, `Flatten` and `Dropout` in eval mode change nothing. In a
    module with its own `forward`, layers are taken in the order in which they were assigned, and
    ReLU is assumed between them. A model is then run on the first 16 samples: an import that
    computes something else is refused. State dicts without a model are layers in their own order,
    with `leak` as the slope below zero (0 if left out).

    **Recurrent networks.** With data of sequences (`nr.tasks.sequences`): an `nn.RNN` with
    `nonlinearity="relu"`, of one layer, and a `Linear` that reads it after the steps that have
    targets; or a module with three `Linear` layers that its `forward` uses at every step, assigned
    in the order in which they read the inputs, hand on and write. The weights are then `Wx`, `Wh`
    and `Wy`. The two biases of a cell become one, their sum, which moves twice as fast: a
    `learning_rate` needs a cell with one bias or none. State dicts alone do not say that an `RNN`
    rectifies: pass `model=`, or `leak=0`. `tanh`, `GRU` and `LSTM` are refused.

    **Arguments:** `checkpoints`, a model, a state dict, or a list of them; `data`, with one input
    node `x` and one output node `y`; `times`, the step of every checkpoint (0, 1, 2, … if left
    out); `model`, which says how the layers of state dicts are joined; `leak`, the slope below
    zero where it cannot be read; `loss`, the loss the network was trained on: `"squared"`,
    `"cross_entropy"` or a function, as in `nr.train`. If the run was plain gradient descent
    with a fixed rate, give it as `learning_rate`, and `batch_size` if it used mini-batches: time is
    then rate · step. With the squared loss on all samples, theory and gated networks can follow.
    PyTorch's `MSELoss` over K outputs is 2/K times the loss here: its rate η is 2η/K here.
    A rate that does not lead from a checkpoint to the next is an error (the shortest interval is
    replayed, unless it is long or in mini-batches).

    **Returns:** the network and a `Trajectory` with `weights`, `outputs` and `loss`, in the
    precision of the model. A layer that is used several times, and weights under several names, are
    a tie: one matrix `W2_and_W3`.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> state = {"0.weight": np.ones((3, 2)), "0.bias": np.zeros(3), "2.weight": np.ones((1, 3))}
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [-1.0, 0.0]]}, {"y": [[6.0], [1.0]]})
    >>> net, run = nr.from_torch(state, data)  # or a model of torch.nn
    >>> run.outputs["y"].tolist(), run.loss.tolist()
    ([[[6.0], [0.0]]], [0.25])

    ```
    """
    given = _listed_checkpoints(checkpoints)
    if model is None and isinstance(given[0], TorchModule):
        model = given[0]
    if model is not None:
        list(_pieces(model, "", False))  # a layer that cannot be read is named before all else
    states = [each.state_dict() if isinstance(each, TorchModule) else each for each in given]
    _check_apart(states)
    tied = _tied(states[0] if model is None else model.state_dict())
    arrays = [arrays_of(state, f"checkpoint {k}", tied) for k, state in enumerate(states, 1)]
    moments = [
        Moment(f"checkpoint {k}", *network_of_torch(model, each, leak, data))
        for k, each in enumerate(arrays, 1)
    ]
    net, first = moments[0].net, moments[0].weights
    biases = [key for key in arrays[0] if "bias" in key]
    read = any(s == BIAS and t in net.arch.outputs for s, t in net.arch.edges.values())
    require(
        learning_rate is None or not has_steps(data) or len(biases) - read < 2,
        "two biases of a cell move twice as fast together, which one learning_rate cannot say",
        got=f"a learning_rate, and {listed(biases)}",
        wanted="no learning_rate, or a cell with one bias or none",
        fix="nn.RNN(…, bias=False), or leave out learning_rate",
    )
    if isinstance(given[0], TorchModule):
        check_against(given[0], net, first, data)
    elif model is not None and set(model.state_dict()) == set(states[-1]):
        own = arrays_of(model.state_dict(), "model")
        check_against(model, net, network_of_torch(model, own, leak, data)[1], data)
    return imported_run(moments, data, times, Trained("PyTorch", loss, learning_rate, batch_size))


def _listed_checkpoints(checkpoints: Any) -> list[TorchModule | Mapping[str, object]]:
    """One model or state dict, or several, as a list."""
    given = list(checkpoints) if isinstance(checkpoints, list | tuple) else [checkpoints]
    require(
        given,
        "there are no checkpoints",
        got="an empty list",
        wanted="an nn.Module, its state_dict(), or a list of them",
        fix="leave out what has no checkpoints",
    )
    return given


def arrays_of(
    state: Mapping[str, object],
    what: str,
    tied: Mapping[str, str] | None = None,
    *,
    anywhere: bool = False,
) -> dict[str, np.ndarray]:
    """The tensors of a state dict as NumPy arrays, copied; one array where they are tied.

    `tied` names the first name of tensors that have several, which copies do not show. `anywhere`
    also takes tensors of other devices, which are copied from there.
    """
    if not state or not all(isinstance(key, str) for key in state):
        raise NeuralRaceError(
            f"{what} is not a state dict",
            got=f"keys {listed(list(state)[:5])}",
            wanted="tensors by name",
            fix="pass model.state_dict()",
        )
    tied = {**_tied(state), **(tied or {})}
    found = {key: _array(f"{key!r} of {what}", t, anywhere) for key, t in state.items()}
    for key, first in tied.items():
        if key in found and first in found:
            require(
                np.array_equal(found[key], found[first], equal_nan=True),
                f"{what}: {first!r} and {key!r} share memory, and are not the same matrix",
                got=f"shapes {found[first].shape} and {found[key].shape}",
                wanted="weights of their own, or one matrix for both",
                fix="give the graph as nr.Architecture(…, ties=…), 'e.T' for a transposed edge, "
                "and the weights over time to nr.Trajectory.from_weights",
            )
            found[key] = found[first]
    return found


def _tied(state: Mapping[str, object]) -> dict[str, str]:
    """The first name of every tensor that a state dict has under several, by the others."""
    names: dict[int, list[str]] = {}
    for key, tensor in state.items():
        names.setdefault(_place(tensor), []).append(key)
    return {key: of[0] for place, of in names.items() if place for key in of[1:]}


def _place(tensor: object) -> int:
    """Where the numbers of a tensor lie in memory; 0 where that is unknown."""
    pointer = getattr(tensor, "data_ptr", None)
    if pointer is not None:
        try:
            return int(pointer())
        except (RuntimeError, NotImplementedError):
            return 0
    return id(tensor)


def _array(what: str, tensor: object, anywhere: bool) -> np.ndarray:
    """A tensor as a NumPy array with separate memory."""
    if not isinstance(tensor, TorchTensor):
        require(
            isinstance(tensor, np.ndarray),
            f"{what} is not a tensor",
            got=type(tensor).__name__,
            wanted="a tensor of PyTorch or a NumPy array",
            fix="pass model.state_dict(); a whole training checkpoint often has it under "
            "'model' or 'state_dict'",
        )
        return np.array(tensor)
    device = str(getattr(getattr(tensor, "device", None), "type", "cpu"))
    require(
        device == "cpu" or (anywhere and device != "meta"),
        f"{what} is not in the memory of this computer's processor",
        got=f"device {device!r}",
        wanted="device 'cpu'",
        fix="model.cpu(), or torch.load(path, map_location='cpu', weights_only=True)",
    )
    dtype = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if "float" in dtype and dtype not in PRECISIONS:
        raise half_precision(what, dtype)
    return np.array(tensor.detach().cpu().numpy())


def _check_apart(states: Sequence[Mapping[str, object]]) -> None:
    """Raise where two checkpoints are the same memory, and so all hold the last weights."""
    seen: dict[int, int] = {}
    for k, state in enumerate(states, 1):
        for place in {_place(tensor) for tensor in state.values()} - {0}:
            if place in seen and seen[place] != k:
                raise NeuralRaceError(
                    f"checkpoints {seen[place]} and {k} are the same memory",
                    got="state dicts that were not copied: all hold the latest weights",
                    wanted="a copy of the weights at every moment",
                    fix="states.append({k: v.clone() for k, v in model.state_dict().items()}), "
                    "or use nr.TorchRecorder",
                )
            seen[place] = k


# ---- structure ----------------------------------------------------------------------------------


def network_of_torch(
    model: TorchModule | None,
    arrays: Mapping[str, np.ndarray],
    leak: float | None,
    data: Dataset | None = None,
    *,
    training: bool = False,
) -> tuple[Network, dict[str, np.ndarray]]:
    """The network and the weights of a state dict, with the structure of a model if there is one.

    `training` allows dropout that is switched on, which weights alone do not show.
    """
    if model is None:
        rnn = next((k for k in arrays if k.endswith(f"weight_{INPUT}")), None)
        if rnn is not None:
            return _of_rnn_alone(arrays, rnn.removesuffix(f"weight_{INPUT}"), leak, data)
        layers = named_layers(arrays, "state dict")
        return _of_layers(layers, 0.0 if leak is None else leak, data)
    ours = getattr(model, "network", None)
    if isinstance(ours, Network):
        return ours, _by_edge(ours, arrays)
    pieces = list(_pieces(model, "", training))
    cells = [piece for piece in pieces if isinstance(piece, Recurrence)]
    if cells:
        others = [piece for piece in pieces if piece not in cells]
        if len(cells) > 1 or len(others) != 1 or not isinstance(others[0], Linear):
            raise refused(cells[-1].name, "RNN", "is not followed by one Linear layer alone")
        return network_of_cell(cell_of_rnn(arrays, cells[0].name, others[0].name), 0.0, data)
    slope = hidden_slope(pieces, leak, visible=_torch_kind(model) == "Sequential")
    names = [piece.name for piece in pieces if isinstance(piece, Linear)]
    wanted = {f"{name}.weight".removeprefix(".") for name in names}
    biases = {f"{name}.bias".removeprefix(".") for name in names}
    odd = sorted((set(arrays) - wanted - biases) | (wanted - set(arrays)))
    if odd:
        raise NeuralRaceError(
            "the state dict is not that of the model",
            got=f"keys {listed(arrays)}",
            wanted=f"keys {listed(wanted)}, and biases",
            fix=f"look at {odd[0]!r}: it is in one and not in the other",
        )
    layers = [
        checked_layer(
            f"layer {name!r}",
            arrays[f"{name}.weight".removeprefix(".")],
            arrays.get(f"{name}.bias".removeprefix(".")),
        )
        for name in names
    ]
    return _of_layers(layers, slope, data)


def _of_layers(
    layers: Sequence[Layer], slope: float, data: Dataset | None
) -> tuple[Network, dict[str, np.ndarray]]:
    """The network of layers in a row, or of the cell that they are."""
    if not has_steps(data):
        return network_of_layers(layers, slope, tied=True)
    require(
        len({layer.read[0] for layer in layers}) == len(layers),
        "the layers of a cell share one matrix",
        got="one tensor under two names",
        wanted="weights of their own for what reads, hands on and writes",
        fix="give the graph as nr.Architecture(…, ties=…) and the weights over time to "
        "nr.Trajectory.from_weights",
    )
    return network_of_cell(cell_of_layers(layers), slope, data)


def _of_rnn_alone(
    arrays: Mapping[str, np.ndarray], prefix: str, leak: float | None, data: Dataset | None
) -> tuple[Network, dict[str, np.ndarray]]:
    """The network of an `nn.RNN` whose state dict is all that is known."""
    if leak is None:
        raise NeuralRaceError(
            "the weights of an RNN do not say what rectifies it, which is tanh unless asked for",
            got=f"keys {listed(arrays)}",
            wanted="model=, or leak=0 for nonlinearity='relu'",
            fix="nr.from_torch(states, data, model=model)",
        )
    own = (k for k in arrays if not k.startswith(f"{prefix}weight_") and k.endswith("weight"))
    readout = next(own, "readout.weight").removesuffix(".weight")
    cell = cell_of_rnn(arrays, prefix.removesuffix("."), readout)
    return network_of_cell(cell, leak, data)


def _by_edge(net: Network, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights of a module that `to_torch` made of a graph."""
    weights = {edge: arrays.get(f"weights.{edge}") for edge in net.arch.matrices}
    missing = [edge for edge, w in weights.items() if w is None]
    if missing:
        raise NeuralRaceError(
            "the state dict is not that of the model",
            got=f"keys {listed(arrays)}",
            wanted=f"'weights.{missing[0]}' among them",
            fix="pass the state dict of the module that nr.to_torch made",
        )
    return {
        edge: checked_numbers(f"the weights of edge {edge!r}", w, 2, "(target, source)")
        for edge, w in weights.items()
        if w is not None
    }


def _pieces(module: TorchModule, name: str, training: bool) -> Iterator[Piece]:
    """The layers and activations of a module in the order in which they were assigned."""
    kind, own = _torch_kind(module), type(module).__name__
    if isinstance(getattr(module, "network", None), Network):
        return
    if kind == "Linear":
        yield Linear(name)
    elif kind == "ReLU":
        yield Slope(name, 0.0)
    elif kind == "LeakyReLU":
        yield Slope(name, float(getattr(module, "negative_slope", 0.01)))
    elif kind == "RNN":
        plain = {"num_layers": 1, "bidirectional": False, "nonlinearity": "relu"}
        for what, wanted in plain.items():
            if (value := getattr(module, what, wanted)) != wanted:
                raise refused(name, own, f"has {what}={value!r}, which cannot be represented")
        yield Recurrence(name)
    elif kind == "Dropout":
        if module.training and getattr(module, "p", 0.5) > 0 and not training:
            raise refused(name, own, "is switched on")
    elif kind in ("Identity", "Flatten"):
        return
    elif kind in ("Module", "Sequential", "ModuleList") and module._modules:
        loose = [key for key, value in module._parameters.items() if value is not None]
        if loose:
            raise refused(f"{name}.{loose[0]}".removeprefix("."), f"a parameter of {own}")
        for child, part in module._modules.items():
            if part is not None:
                yield from _pieces(part, f"{name}.{child}".removeprefix("."), training)
    else:
        raise refused(name or "model", own)


def _torch_kind(module: object) -> str:
    """The name of the class of torch.nn that a module is an instance of."""
    for kind in type(module).__mro__:
        if kind.__module__.startswith("torch.nn"):
            return kind.__name__
    return type(module).__name__


def check_against(
    model: TorchModule, net: Network, weights: dict[str, np.ndarray], data: Dataset
) -> None:
    """Run the model on a few samples, where PyTorch is loaded and the network is a chain."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return
    if isinstance(getattr(model, "network", None), Network):
        return
    parameter = next(iter(model.state_dict().values()))

    def run(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            inputs = torch.as_tensor(x, device=parameter.device)  # pyright: ignore
            return model(inputs).detach().cpu().numpy()

    parts: Any = model
    first = (m.batch_first for m in parts.modules() if hasattr(m, "batch_first"))
    check_same(net, weights, data, run, batch_first=bool(next(first, True)))
