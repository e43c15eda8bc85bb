"""Networks of this package as modules of PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from neuralrace.dataset import Sampled, matched
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.gdln import GDLN, Network
from neuralrace.interop.layers import BIAS, checked_numbers, layers_of_network
from neuralrace.relu import ReLUNetwork
from neuralrace.types import WeightsLike
from neuralrace.weights import checked_weights

if TYPE_CHECKING:
    from types import ModuleType

    from neuralrace.interop.torch_in import TorchModule


@door
def to_torch(net: Network, weights: WeightsLike, data: Sampled | None = None) -> TorchModule:
    """A network as an `nn.Module` of PyTorch, in the precision of the weights.

    A chain without gates is an `nn.Sequential` of `Linear` and `ReLU`. Any other graph, and gates,
    make a module whose parameters are `weights.<edge>`, or `weights.<tie>` for shared weights: it
    takes a tensor, or `{input node: tensor}`, and `gates=`, a dictionary such as `data.gates`; it
    returns the outputs of its one output node, or `{output node: tensor}`. Numbers are copied bit
    by bit. Needs PyTorch.

    **Arguments:** `net`, a `GDLN` or a `ReLUNetwork`; `weights`, by edge; `data`, whose gates the
    module then uses unless it is called with others. Gates belong to samples: inputs must then be
    those of `data`, in order.

    ```python
    >>> import jax, neuralrace as nr
    >>> net = nr.ReLUNetwork((2, 8, 1), bias=True)
    >>> weights = net.init(jax.random.key(0))
    >>> try:
    ...     kind = type(nr.to_torch(net, weights)).__name__
    ... except nr.NeuralRaceError as error:  # where PyTorch is not installed
    ...     kind = "Sequential" if "PyTorch" in str(error) else ""
    >>> kind
    'Sequential'

    ```
    """
    net = known_network(
        net, "become modules of PyTorch", "write the module yourself; run.final has the weights"
    )
    arrays = exact_weights(net, weights)
    gates: dict[str, np.ndarray] = {}
    if data is not None and isinstance(net, GDLN):
        full = matched(net.arch, data)
        gates = {name: np.asarray(gate) for name, gate in full.gates.items()}
    torch = _torch()
    layers = None if gates else layers_of_network(net, arrays)
    if layers is None:
        return _graph(torch, net, arrays, gates)
    leak = net.leak if isinstance(net, ReLUNetwork) else 1.0
    parts = []
    for layer in layers:
        linear = torch.nn.Linear(*layer.weight.shape[::-1], bias=layer.bias is not None)
        linear.weight = torch.nn.Parameter(torch.from_numpy(np.array(layer.weight)))
        if layer.bias is not None:
            linear.bias = torch.nn.Parameter(torch.from_numpy(np.array(layer.bias)))
        parts.append(linear)
        if leak != 1 and layer is not layers[-1]:
            parts.append(torch.nn.ReLU() if leak == 0 else torch.nn.LeakyReLU(leak))
    return torch.nn.Sequential(*parts)


def known_network(net: Network, become: str, fix: str) -> GDLN | ReLUNetwork:
    """A network of a kind that other libraries and files know, or an error."""
    if not isinstance(net, GDLN | ReLUNetwork):
        raise NeuralRaceError(
            f"only gated linear and ReLU networks {become}",
            got=type(net).__name__,
            wanted="a GDLN or a ReLUNetwork",
            fix=fix,
        )
    return net


def exact_weights(net: Network, weights: WeightsLike) -> dict[str, np.ndarray]:
    """The weights of a network as NumPy arrays, with shapes checked and every bit kept."""
    checked_weights(net.arch, weights)
    return {
        edge: checked_numbers(f"the weights of edge {edge!r}", weights[edge], 2, "(target, source)")
        for edge in net.arch.matrices
    }


def _torch() -> ModuleType:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise NeuralRaceError(
            "PyTorch is not installed here",
            got=str(error),
            wanted="a Python that can import torch",
            fix="pip install torch; nr.save_weights writes files without it",
        ) from error


def _graph(
    torch: ModuleType,
    net: GDLN | ReLUNetwork,
    arrays: Mapping[str, np.ndarray],
    stored: Mapping[str, np.ndarray],
) -> TorchModule:
    """A module for any graph: h_v = ρ(g_v Σ_e g_e W_e h_s(e)), as in `GDLN` and `ReLUNetwork`."""
    leak = net.leak if isinstance(net, ReLUNetwork) else 1.0

    class GatedNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = net
            self.weights = torch.nn.ParameterDict(
                {edge: torch.from_numpy(np.array(w)) for edge, w in arrays.items()}
            )
            dtype = next(iter(arrays.values())).dtype
            for name, gate in stored.items():
                tensor = torch.from_numpy(np.array(gate, dtype))
                self.register_buffer(f"gate_{name}", tensor, persistent=False)

        def transposed(self, edge, like):
            if edge in net.arch.frozen:
                value = net.arch.frozen[edge]
                eye = np.eye(net.arch.sizes[net.arch.edges[edge][0]])
                matrix = value * eye if isinstance(value, float) else np.array(value).T
                return torch.from_numpy(matrix).to(like)
            matrix, turned = net.arch.matrix_of[edge]
            return self.weights[matrix] if turned else self.weights[matrix].T

        def forward(self, x, gates=None):
            arch = net.arch
            named = [node for node in arch.inputs if node != BIAS]
            inputs = dict(x) if isinstance(x, Mapping) else {named[0]: x}
            first = next(iter(inputs.values()))
            if BIAS in arch.inputs and BIAS not in inputs:
                inputs[BIAS] = torch.ones_like(first[:, :1])
            if gates is None:
                gates = {name: getattr(self, f"gate_{name}") for name in stored}
            gated = {
                name: g[:, None] if g.ndim == 1 else g
                for name, g in ((name, torch.as_tensor(g).to(first)) for name, g in gates.items())
            }
            for name, gate in gated.items():
                if len(gate) != len(first):
                    raise ValueError(
                        f"the gate {name!r} has {len(gate)} samples, the input {len(first)}"
                    )
            activity = {}
            for node in arch.order:
                if node in arch.inputs:
                    z = inputs[node]
                else:
                    z = sum(
                        gated.get(edge, 1.0)
                        * (activity[arch.edges[edge][0]] @ self.transposed(edge, first))
                        for edge in arch.incoming[node]
                    )
                z = z * gated[node] if node in gated else z
                if leak != 1 and node in arch.hidden:
                    z = torch.where(z > 0, z, leak * z)
                activity[node] = z
            outputs = {node: activity[node] for node in arch.outputs}
            return outputs if len(outputs) > 1 else next(iter(outputs.values()))

    return GatedNetwork()  # pyright: ignore[reportReturnType]
