"""The gating that a ReLU network aligns to by itself when it starts small."""

from __future__ import annotations

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import weight_scale
from neuralrace.dataset import Dataset, pathways, zero_loss
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.reln.explained.alignment import NEURONS, AlignedPatterns, aligned_patterns
from neuralrace.types import Key

LEARNED = 1e-6
"""Nothing remains to be learned below this share of the initial loss."""


def aligned(
    data: Dataset,
    *,
    width: int,
    key: Key = 0,
    stages: int = 1,
    scale: float | None = None,
    neurons: int = NEURONS,
    leak: float = 0.0,
) -> tuple[Architecture, Dataset]:
    """The gating that a ReLU network of this width takes by itself when it starts small.

    One pathway for each of the `aligned_patterns`, named `aligned1`, `aligned2`, … in order of
    their basins. Its width is the share of `width` neurons that falls into its basin, at least
    one; a basin that holds less than half a neuron is left out, and dead neurons are in no pathway.
    Widths are rounded, so that they sum to about `width`.

    With `stages=2` the question is asked again of what the first pathways leave
    (`AlignedPatterns.rest`), and its patterns are added as `later1`, `later2`, … . They too may
    recruit any of the `width` neurons, so that the widths of each stage sum to about `width`.

    **Arguments:** as in `aligned_patterns`; `scale`, the standard deviation of initial weights:
    with it, a warning says where neurons will not have aligned before the loss falls.

    **Returns:** `(arch, data)`, like any other gating.

    **Raises:** `NeuralRaceError` where no neuron learns (s* = 0).

    ```python
    >>> import neuralrace as nr
    >>> arch, data = nr.reln.aligned(nr.tasks.extended_xor(1.2), width=200)
    >>> len(arch.hidden), sum(arch.sizes[v] for v in arch.hidden)
    (6, 201)

    ```
    """
    width = whole_number("the width", width, fix="for example width=200")
    stages = whole_number("the number of stages", stages, fix="stages=1, or stages=2")
    if stages > 2:
        raise NeuralRaceError(
            "more than two stages are not supported",
            got=f"stages = {stages}",
            wanted="1 or 2",
            fix="gates change while the loss falls, so that further stages add nothing",
        )
    found = aligned_patterns(data, key=key, neurons=neurons, leak=leak)
    if scale is not None:
        found.warn_if_large(width, weight_scale(scale))
    rest = None
    if stages == 2:
        rest = _patterns_or_none(found.rest(), data, key=key, neurons=neurons, leak=leak)
    return gating_of(found, width, rest)


def gating_of(
    found: AlignedPatterns, width: int, rest: AlignedPatterns | None = None
) -> tuple[Architecture, Dataset]:
    """The gating of some aligned patterns, and of those on what they leave."""
    gating = _widths(found, width, "aligned")
    gating |= {} if rest is None else _widths(rest, width, "later")
    masks = {name: gate for name, (gate, _) in gating.items()}
    widths = {name: wide for name, (_, wide) in gating.items()}
    return pathways(found.data.gated({}), masks, hidden=widths)


def _widths(found: AlignedPatterns, width: int, name: str) -> dict[str, tuple[np.ndarray, int]]:
    """Gates and width of every pathway, from the patterns and their basins."""
    if np.isnan(found.fastest):
        raise NeuralRaceError(
            "no end point was found, so that the aligned gates are not known",
            got=f"{100 * found.moving:.1f} % of neurons still grow",
            wanted="neurons that come to rest",
            fix="bring the features to similar scales",
        )
    if not len(found):
        raise NeuralRaceError(
            "no neuron learns on this task, so that there are no aligned gates",
            got="s* = 0: in every direction the growth rate is 0",
            wanted="a task on which a small neuron grows",
            fix="add a bias (a column of ones) to the inputs, or start from larger weights; where "
            "identical inputs have targets that cancel, nothing can be learned",
        )
    wide = [(g, width * share) for g, share in zip(found.gates, found.shares, strict=True)]
    kept = [(g, w) for g, w in wide if w >= 0.5] or wide[:1]
    return {f"{name}{i + 1}": (g, max(1, round(w))) for i, (g, w) in enumerate(kept)}


def _patterns_or_none(
    rest: Dataset, data: Dataset, *, key: Key, neurons: int, leak: float
) -> AlignedPatterns | None:
    """The aligned patterns of the remaining targets, or None where nothing remains."""
    if zero_loss(rest) <= LEARNED * zero_loss(data):
        return None
    found = aligned_patterns(rest, key=key, neurons=neurons, leak=leak)
    return found if len(found) else None
