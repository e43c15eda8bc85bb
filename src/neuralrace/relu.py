"""ReLU networks on any graph, as gated networks whose gates are their own activity (MHS §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import jax.numpy as jnp
from jaxtyping import Array, Float

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.gdln import Network
from neuralrace.types import Finite, WeightsLike

__all__ = [
    "ReLUNetwork",
]


@final
@dataclass(frozen=True, init=False)
class ReLUNetwork(Network):
    """A network whose hidden nodes rectify: `h = z · slope(z)`, slope 1 for z > 0 and `leak` else.

    Input and output nodes are linear. Gates of a dataset are ignored: the network makes its own,
    which `activity` shows (MHS §3: relu(z) = step(z) z, so that at every moment the network is the
    GDLN whose gates are its activity).

    **Arguments:** `arch`, an `Architecture`, or the sizes of a chain; `leak`, the slope of a
    neuron that is off; `bias=True` adds an input node `bias`, clamped to one, joined to every
    hidden and output node (its weights are edges like any other).

    ```python
    >>> import jax, neuralrace as nr
    >>> relu = nr.ReLUNetwork((2, 128, 1), bias=True)
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    >>> weights = relu.init(jax.random.key(0), scale=0.1)
    >>> relu.activity(weights, data)["h"].shape
    (2, 128)
    >>> gated = data.gated(relu.activity(weights, data))
    >>> bool((nr.GDLN(relu.arch)(weights, gated)["y"] == relu(weights, data)["y"]).all())
    True

    ```
    """

    leak: float

    @door
    def __init__(
        self, arch: Architecture | Sequence[int], leak: Finite = 0.0, bias: bool = False
    ) -> None:
        arch = arch if isinstance(arch, Architecture) else Architecture.chain(*arch)
        object.__setattr__(self, "arch", arch.with_bias() if bias else arch)
        object.__setattr__(self, "leak", float(leak))

    @door
    def responses(self, weights: WeightsLike, data: Sampled) -> dict[str, Array]:
        return self._propagate(weights, data)[0]

    @door
    def activity(self, weights: WeightsLike, data: Sampled) -> dict[str, Float[Array, "N size"]]:
        """The slope of every hidden neuron on every sample: `{hidden node: (N, size)}`.

        1 where its pre-activation is positive and `leak` elsewhere; usable as gates.
        """
        return self._propagate(weights, data)[1]

    def _propagate(
        self, weights: WeightsLike, data: Dataset
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        ungated = data.gated({}) if data.gates else data
        weights, activity, gates = self.prepared(weights, ungated)
        slopes: dict[str, Array] = {}
        for node in self.arch.order:
            if node in self.arch.inputs:
                continue
            z = self.incoming(node, weights, activity, gates)
            if node in self.arch.hidden:
                slopes[node] = jnp.where(z > 0, 1.0, self.leak).astype(z.dtype)
                z = slopes[node] * z
            activity[node] = z
        return activity, slopes
