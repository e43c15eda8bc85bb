"""A gated network whose pathways open in stages, as in MHS §6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

import neuralrace as nr

if TYPE_CHECKING:
    from neuralrace.types import Key

ALWAYS_OPEN = ("shared", "common")
"""Hidden nodes that are never closed: the first layer, and the common pathway."""


def closed(data: nr.Dataset, arch: nr.Architecture) -> nr.Dataset:
    """The data with all contextual pathways gated off."""
    off = {v: np.zeros(data.n_samples) for v in arch.hidden if v not in ALWAYS_OPEN}
    return data.gated({**data.gates, **off})


def staged_runs(
    arch: nr.Architecture,
    data: nr.Dataset,
    *,
    at: Int[np.ndarray, " T"],
    begins: int,
    opens: int,
    key: Key,
    **how: Any,
) -> tuple[Float[np.ndarray, "seeds T"], Float[np.ndarray, "seeds T samples outputs"]]:
    """The losses and outputs of a gated network that learns in stages, at the epochs `at`.

    Nothing is learned before epoch `begins`. From there the common pathway learns with all
    contextual pathways closed, and from epoch `opens` they learn together. Both epochs are the
    authors' choice, made by hand. `how` goes to `train_ensemble`; the initial weights are those
    of an ensemble with the same key whose pathways are open from the start.
    """
    if not 0 <= begins < opens:
        raise nr.NeuralRaceError(
            "the stages of the gated network are out of order",
            got=f"learning begins at epoch {begins}, contextual pathways open at {opens}",
            wanted="0 ≤ begins < opens",
            fix="for example --set begins=500 --set opens=12000",
        )
    net = nr.GDLN(arch)
    change, own = opens - begins, np.unique(np.maximum(at - begins, 0))
    stages = []
    for gated, low, high in ((closed(data, arch), 0, change), (data, change, int(own[-1]))):
        stop = min(high, int(own[-1]))
        if stop > low or not stages:
            inside = own[(own >= low) & (own <= stop)] - low
            more = {"weights": stages[-1].final} if stages else {}
            stages.append(
                nr.train_ensemble(
                    net,
                    gated,
                    key=key,
                    steps=max(stop - low, 1),
                    record_at=np.unique([0, *inside, max(stop - low, 1)]),
                    record={"outputs": True},
                    **how,
                    **more,
                )
            )
    whole = nr.join(*stages)
    index = np.searchsorted(np.asarray(whole.steps), np.maximum(at - begins, 0))
    outputs = np.asarray(whole.values["outputs"]["y"], np.float32)
    return whole.loss[:, index], outputs[:, index]
