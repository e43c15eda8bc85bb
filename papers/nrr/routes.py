"""Common parts of the figures on routing: the network, its trained and untrained routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float

import neuralrace as nr

if TYPE_CHECKING:
    from neuralrace.types import Weights
    from papers.nrr.route_errors import RouteErrors


@final
@dataclass(frozen=True, eq=False)
class Routes:
    """The pathway network of NRR Fig. 4a on M domains, K outputs trained with each input.

    `untrained` is `None` for K = M. `target` is the target of every route, one column per item.
    Errors are relative to zero output.
    """

    net: nr.GDLN
    trained: nr.Dataset
    untrained: nr.Dataset | None
    target: Float[np.ndarray, "outputs items"]

    def errors(self, weights: Weights) -> RouteErrors:
        """Errors on trained and untrained routes; leading axes of the weights are kept."""
        from papers.nrr.route_errors import route_errors

        return route_errors(self.net, weights, self.trained, self.untrained)

    def strength(self, weights: Weights) -> Any:
        """How far the strongest mode is learned, on average over all routes: 1 at the end.

        It is uᵀ W₃ W₂ W₁ v over the largest singular value of the target, with u and v its vectors.
        """
        import jax.numpy as jnp

        left, size, right = np.linalg.svd(self.target)
        reads, writes = (
            jnp.mean(jnp.stack([w for e, w in weights.items() if e.startswith(end)]), axis=0)
            for end in ("in", "out")
        )
        u, v = (jnp.asarray(a, reads.dtype) for a in (left[:, 0], right[0]))
        return u @ writes @ weights["hidden"] @ reads @ v / size[0]

    def shared(self, weights: Weights, *, apart: bool = False) -> Float[np.ndarray, "*runs"]:
        """How far input domains share one representation (`domain_similarity`).

        `apart` counts only domains never trained with a common output; NaN if there are none.
        """
        from papers.nrr.domains import domain_similarity, domains_that_met

        strangers = ~domains_that_met(self.trained)
        if apart and not strangers.any():
            return np.full(np.shape(weights["hidden"])[:-2], np.nan)
        shown = nr.analysis.hidden(self.net, weights, self.trained, "h")
        label = self.trained.labels
        return domain_similarity(
            shown, label["input"], label["item"], pairs=strangers if apart else None
        ).shared


def make_routes(M: int, K: int, hidden: int) -> Routes:
    """The routing task and its shared network."""
    trained, untrained = nr.tasks.routing(M, K)
    arch, gated = nr.tasks.routing_pathways(trained, hidden=hidden)
    rest = None if untrained is None else nr.tasks.routing_pathways(untrained, hidden=hidden)[1]
    said = np.sum([np.asarray(y) for y in trained.y.values()], axis=0)
    return Routes(nr.GDLN(arch), gated, rest, said[: trained.labels["item"].max()].T)


def map_of_all_routes(weights: Mapping[str, Any]) -> Float[np.ndarray, "outputs inputs"]:
    """The outputs of every output domain (rows) for every item of every input domain (columns)."""
    reads = np.concatenate([np.asarray(w) for e, w in weights.items() if e.startswith("in")], 1)
    writes = np.concatenate([np.asarray(w) for e, w in weights.items() if e.startswith("out")])
    return writes @ np.asarray(weights["hidden"]) @ reads
