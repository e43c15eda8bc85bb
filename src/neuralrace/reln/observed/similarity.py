"""Hidden similarity, as something that a run records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.errors import check_kind
from neuralrace.gdln import Network

SIMILARITY = "similarity"
"""The name under which `evidence` records the hidden similarity structure."""


def evidence(net: Network, data: Dataset) -> dict[str, bool | Callable[..., dict[str, jax.Array]]]:
    """What `certify` looks at, as a record for `nr.train`: outputs and hidden similarity.

    The similarity of layer d is K_nm = √(p_n p_m) Σ_v h_v(x_n)·h_v(x_m), over all hidden nodes v
    at depth d (edges on the longest way from an input), p the weights of the samples: pathways
    side by side are one layer. Shape `(N, N)` at each time.

    ```python
    >>> import jax, neuralrace as nr
    >>> data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 16, 1))
    >>> run = nr.train(relu, relu.init(jax.random.key(0)), data, learning_rate=0.1, steps=10,
    ...                record=nr.reln.evidence(relu, data))
    >>> run.values["similarity"]["layer1"].shape
    (11, 4, 4)

    ```
    """
    check_kind("net", net, Network, "wrap the graph: nr.GDLN(arch) or nr.ReLUNetwork(arch)")
    check_kind("data", data, Dataset, "gatings return (arch, data): pass the data alone")
    return {"outputs": True, SIMILARITY: Similarity(net, data, _content(data))}


@final
@dataclass(frozen=True)
class Similarity:
    """Hidden similarity as a function of the weights, equal to any other of the same content.

    Being equal, two of them share one compiled program.
    """

    net: Network
    data: Dataset = field(compare=False)
    content: bytes

    def __call__(self, weights: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        return self.on(weights, self.data)

    def on(self, weights: Mapping[str, jax.Array], data: Dataset) -> dict[str, jax.Array]:
        """The same on other data, such as the same samples with other gates."""
        h = self.net.responses(weights, data)
        root = jnp.sqrt(jnp.asarray(data.probability))[:, None]
        found = {}
        for layer, nodes in hidden_layers(self.net.arch).items():
            side_by_side = jnp.concatenate([h[v] for v in nodes], axis=1)
            scaled = side_by_side * jnp.asarray(root, side_by_side.dtype)
            found[layer] = scaled @ scaled.T
        return found


def _content(data: Dataset) -> bytes:
    """A digest of all that hidden values depend on: inputs, gates and sample weights."""
    digest = blake2b()
    named = {**data.x, **{f"gate {name}": g for name, g in data.gates.items()}}
    for name, values in (*sorted(named.items()), ("weights", data.probability)):
        array = np.ascontiguousarray(values)
        digest.update(f"{name} {array.shape} {array.dtype}".encode())
        digest.update(array.data)
    return digest.digest()


def hidden_layers(arch: Architecture) -> dict[str, tuple[str, ...]]:
    """The hidden nodes by depth: `layer1`, `layer2`, …

    The depth of a node is the number of edges on the longest way to it.
    """
    depth: dict[str, int] = {}
    for node in arch.order:
        sources = (arch.edges[e][0] for e in arch.incoming.get(node, ()))
        depth[node] = 1 + max((depth[s] for s in sources), default=-1)
    levels = sorted({depth[v] for v in arch.hidden})
    return {f"layer{d}": tuple(v for v in arch.hidden if depth[v] == d) for d in levels}
