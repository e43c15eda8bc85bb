"""What the figures on routing share: the network, the trained and the untrained routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from neuralrace.dataset import Dataset
    from neuralrace.gdln import GDLN


@final
@dataclass(frozen=True, eq=False)
class Routes:
    """The pathway network of NRR Fig. 4a with M domains on either side, K trained with each.

    `untrained` is `None` for K = M. `target` is what every route is to say to every item, one a
    column. `silent` is the loss of a network that says nothing, in fractions of which errors are
    given.
    """

    net: GDLN
    trained: Dataset
    untrained: Dataset | None
    matrix: Bool[np.ndarray, "M M"]
    target: Float[np.ndarray, "outputs items"]
    silent: float

    def trained_error(self, weights: Any) -> Any:
        """The loss on trained routes, as a fraction of a silent network's."""
        return self.net.loss(weights, self.trained) / self.silent

    def untrained_error(self, weights: Any) -> Any:
        """The loss on routes that were never trained, as a fraction of a silent network's."""
        return self.net.loss(weights, self.untrained) / self.silent

    def strength(self, weights: Any) -> Any:
        """How far the strongest mode is learned, in the mean over all routes: 1 at the end.

        uᵀ W₃ W₂ W₁ v over the largest singular value of the target, u and v its vectors.
        """
        import jax.numpy as jnp

        left, size, right = np.linalg.svd(self.target)
        M = len(self.matrix)
        reads = jnp.mean(jnp.stack([weights[f"in{i + 1}"] for i in range(M)]), axis=0)
        writes = jnp.mean(jnp.stack([weights[f"out{j + 1}"] for j in range(M)]), axis=0)
        u, v = (jnp.asarray(a, reads.dtype) for a in (left[:, 0], right[0]))
        return u @ writes @ weights["hidden"] @ reads @ v / size[0]

    def first_hidden(self, weights: Any) -> Float[np.ndarray, "M hidden items"]:
        """What every input domain writes into the first hidden layer, a column an item.

        Items are the unit vectors, so that this is the domain's matrix itself.
        """
        return np.stack([np.asarray(weights[f"in{i + 1}"]) for i in range(len(self.matrix))])

    def outputs(self, weights: Any) -> Float[np.ndarray, "Mout Min"]:
        """What every output domain says (rows) to every item of every input domain (columns)."""
        M = len(self.matrix)
        reads = np.concatenate([np.asarray(weights[f"in{i + 1}"]) for i in range(M)], axis=1)
        writes = np.concatenate([np.asarray(weights[f"out{j + 1}"]) for j in range(M)])
        return writes @ np.asarray(weights["hidden"]) @ reads

    def met(self) -> Bool[np.ndarray, "M M"]:
        """Which two input domains are trained with a common output."""
        shared = self.matrix.astype(int)
        return shared @ shared.T > 0


def make_routes(M: int, K: int, hidden: int) -> Routes:
    """The routing task and its shared network, K outputs trained with every input."""
    from neuralrace import tasks
    from neuralrace.gdln import GDLN

    trained, untrained = tasks.routing(M, K)
    arch, gated = tasks.routing_pathways(trained, hidden=hidden)
    rest = None if untrained is None else tasks.routing_pathways(untrained, hidden=hidden)[1]
    said = np.sum([np.asarray(y) for y in trained.y.values()], axis=0)
    target = said[: int(trained.labels["item"].max())].T
    silent = float((target**2).sum()) / target.shape[1] / 2
    return Routes(GDLN(arch), gated, rest, tasks.circulant_routes(M, K), target, silent)


def agreement_between(
    shown: Float[np.ndarray, "M hidden items"], pairs: Bool[np.ndarray, "M M"]
) -> float:
    """How alike two domains represent the same items: the mean cosine of their activity.

    ⟨H_i, H_j⟩ / ‖H_i‖‖H_j‖ over the given pairs i < j of domains, H the activity of all neurons on
    all items; 1 where a domain leaves no trace in what it writes, 0 for unrelated directions.
    NaN where there is no such pair.
    """
    flat = shown.reshape(len(shown), -1)
    flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    cosine = (flat @ flat.T)[np.triu(pairs, 1)]
    return float(cosine.mean()) if cosine.size else float("nan")
