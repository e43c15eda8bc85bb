"""XoR, plain and with a linearly separable third coordinate, and its two gatings."""

from __future__ import annotations

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, pathways
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require, whole_number
from neuralrace.tasks.natural import label
from neuralrace.types import Finite, NotNegative


@door
def xor(sign: Finite = 1.0) -> Dataset:
    """Exclusive-or of two signs (NRR App. A.1, Fig. 3a).

    Four samples at (±1, ±1), in the order of MHS Eq. 11: (−1, −1), (1, −1), (−1, 1), (1, 1). The
    target is `sign` where exactly one coordinate is 1 and −`sign` elsewhere, so (1, 1) → −1 by
    default, as in NRR's definition and MHS Eq. 12. (NRR's worked example, Eq. 18, has (1, 1) → 1,
    which is `sign=-1.0`. No loss or rate depends on the sign.)

    **Returns:** `x["x"]` of shape (4, 2), `y["y"]` of shape (4, 1); labels `sample` (1 … 4) and
    `positive` (whether the target is positive).

    **Gatings:** one pathway per sample (`xor_pathways`), or one per answer (`linear_pathways`).

    ```python
    >>> from neuralrace import tasks
    >>> tasks.xor().y["y"][:, 0]
    array([-1.,  1.,  1., -1.])

    ```
    """
    return _corners(None, sign)


@door
def extended_xor(delta: NotNegative, sign: Finite = 1.0) -> Dataset:
    """XoR in two coordinates, linearly separable with margin 2Δ in a third (MHS Eqs. 11–12).

    **Arguments:** `delta` is Δ ≥ 0: the third coordinate is Δ where the exclusive-or is true and
    −Δ elsewhere. The XoR gating grows faster below Δ = √(2/3), the linear one above (MHS Eq. 26).
    `sign` as in `xor`.

    **Returns:** as `xor`, with `x["x"]` of shape (4, 3).

    **Gatings:** one pathway per sample (`xor_pathways`), or one per answer (`linear_pathways`).

    ```python
    >>> from neuralrace import tasks
    >>> tasks.extended_xor(0.5).x["x"].T
    array([[-1. ,  1. , -1. ,  1. ],
           [-1. , -1. ,  1. ,  1. ],
           [-0.5,  0.5,  0.5, -0.5]])

    ```
    """
    return _corners(delta, sign)


def _corners(delta: float | None, sign: float) -> Dataset:
    fix = "sign=1.0 has +1 where the exclusive-or is true, sign=-1.0 has −1"
    require(
        sign != 0,
        "the two classes need targets of opposite sign",
        got=f"sign = {sign}",
        wanted="a finite number other than 0",
        fix=fix,
    )
    x = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    truth = -x[:, :1] * x[:, 1:]
    y = sign * truth
    return Dataset(
        x={"x": x if delta is None else np.hstack([x, delta * truth])},
        y={"y": y},
        labels={"sample": np.arange(1, 5), "positive": y[:, 0] > 0},
    )


@door
def xor_pathways(data: Dataset, total: int = 128) -> tuple[Architecture, Dataset]:
    """Four pathways, each on for one sample (NRR Fig. 3b, MHS Fig. 2c).

    `total` neurons are divided equally among the pathways `sample1` … `sample4`; 128 is N_h of
    NRR Fig. 3 and MHS Fig. 2.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.xor_pathways(tasks.xor())
    >>> arch.sizes["sample1"], data.gates["sample2"]
    (32, array([0., 1., 0., 0.]))

    ```
    """
    masks = data.one_per_sample()
    return pathways(data, masks, hidden=_each(total, len(masks)))


@door
def linear_pathways(data: Dataset, total: int = 128) -> tuple[Architecture, Dataset]:
    """Two pathways, on for the positive and for the negative samples (MHS Fig. 2b).

    `total` neurons are divided equally between the pathways `positive` and `negative`, so that by
    default this gating has as many neurons as `xor_pathways` (MHS Fig. 2: N_h = 128).

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.linear_pathways(tasks.extended_xor(1.0))
    >>> arch.sizes["positive"], data.gates["positive"]
    (64, array([0., 1., 1., 0.]))

    ```
    """
    positive = label(data, "positive", "tasks.extended_xor(delta)").astype(bool)
    return pathways(data, {"positive": positive, "negative": ~positive}, hidden=_each(total, 2))


def _each(total: int, count: int) -> int:
    """The width of one of `count` equal pathways."""
    total = whole_number(
        "the total width", total, least=count, fix=f"give each of {count} a neuron"
    )
    if total % count:
        raise NeuralRaceError(
            f"the neurons cannot be divided equally among {count} pathways",
            got=f"total = {total}",
            wanted=f"a multiple of {count}",
            fix=f"use total={total - total % count + count}",
        )
    return total // count
