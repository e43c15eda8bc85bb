"""Errors on trained and untrained routes (NRR §4, Fig. 4h, 5c and 6b)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from neuralrace.dataset import Dataset, zero_loss
from neuralrace.errors import NeuralRaceError, check_kind, listed
from neuralrace.gdln import Network
from neuralrace.types import Weights, WeightsLike


@final
@dataclass(frozen=True, eq=False)
class RouteErrors:
    """Errors of a network on trained and on untrained routes; see `route_errors`.

    `trained` and `untrained` `(…)` are losses; `silent_trained` and `silent_untrained` are the
    losses of a network whose output is zero. The shares are the former divided by the latter.

    ```python
    >>> import numpy as np
    >>> from papers.nrr.route_errors import RouteErrors
    >>> RouteErrors(np.array(0.1), np.array(3.0), 1.0, 4.0).untrained_share
    array(0.75)

    ```
    """

    trained: Float[np.ndarray, "*runs"]
    untrained: Float[np.ndarray, "*runs"]
    silent_trained: float
    silent_untrained: float

    @property
    def trained_share(self) -> Float[np.ndarray, "*runs"]:
        """The error on trained routes, relative to a network whose output is zero."""
        return np.asarray(self.trained / self.silent_trained)

    @property
    def untrained_share(self) -> Float[np.ndarray, "*runs"]:
        """The error on untrained routes, relative to a network whose output is zero."""
        return np.asarray(self.untrained / self.silent_untrained)


def route_errors(
    net: Network, weights: WeightsLike, trained: Dataset, untrained: Dataset | None
) -> RouteErrors:
    """The error L = ½⟨‖y − h‖²⟩ (NRR Eq. 1) on trained and on untrained routes.

    This measures zero-shot generalisation. A network that has learned the routes it was shown and
    nothing about the others has an `untrained_share` of about 1 (or more); one that generalises
    perfectly has 0 (NRR Fig. 4h, 6b).

    **Arguments:** `weights[edge]` of shape `(…, |t|, |s|)`: one network's, a run's, an ensemble's.
    `trained` and `untrained`, both gated, as by `tasks.routing_pathways`; `untrained=None`, which
    `tasks.routing` returns if all routes are trained, gives NaN.

    ```python
    >>> import jax, neuralrace as nr
    >>> from papers.nrr.route_errors import route_errors
    >>> trained, untrained = nr.tasks.routing(M=3, K=2)
    >>> arch, trained = nr.tasks.routing_pathways(trained, hidden=8)
    >>> _, untrained = nr.tasks.routing_pathways(untrained, hidden=8)
    >>> net = nr.GDLN(arch)
    >>> silent = net.init(jax.random.key(0), scale=0.0)
    >>> found = route_errors(net, silent, trained, untrained)
    >>> round(float(found.untrained), 6), round(float(found.untrained_share), 6)
    (30.5, 1.0)

    ```
    """
    check_kind("trained", trained, Dataset, "pass the gated dataset: routing_pathways(trained)[1]")
    if untrained is None:
        errors = _losses(net, weights, trained)
        return RouteErrors(errors, np.full_like(errors, np.nan), zero_loss(trained), np.nan)
    check_kind("untrained", untrained, Dataset, "pass the gated dataset: routing_pathways(…)[1]")
    if set(trained.gates) != set(untrained.gates):
        raise NeuralRaceError(
            "trained and untrained routes are gated differently",
            got=f"gates of {listed(trained.gates)} and of {listed(untrained.gates)}",
            wanted="the same gates for both",
            fix="tasks.routing_pathways(untrained)[1] gates the untrained routes",
        )
    return RouteErrors(
        _losses(net, weights, trained),
        _losses(net, weights, untrained),
        zero_loss(trained),
        zero_loss(untrained),
    )


RUNS_AT_ONCE = 32
"""How many sets of weights are processed at a time, to bound the memory."""


def _losses(net: Network, weights: WeightsLike, data: Dataset) -> Float[np.ndarray, "*runs"]:
    """The loss for every set of weights, in float64, with leading axes kept."""
    with jax.enable_x64(True):
        whole = {edge: jnp.asarray(w, jnp.float64) for edge, w in weights.items()}
        lead = next(iter(whole.values())).shape[:-2]
        each = {edge: w.reshape(-1, *w.shape[-2:]) for edge, w in whole.items()}
        return np.asarray(_mapped(net, each, data)).reshape(lead)


@functools.partial(jax.jit, static_argnums=0)
def _mapped(net: Network, each: Weights, data: Dataset) -> jax.Array:
    return jax.lax.map(lambda w: net.loss(w, data), each, batch_size=RUNS_AT_ONCE)
