"""The gating that a ReLU network aligns to by itself when it starts small."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset, Sampled, pathways, zero_loss
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.explained.alignment import NEURONS, AlignedPatterns, aligned_patterns
from neuralrace.tolerances import COVERED, EQUAL, ROUNDING
from neuralrace.types import Count, Key, Scale, Share

MOST = 32
"""The largest number of pathways: a race of more takes long to solve."""


@door
def aligned(
    data: Sampled,
    *,
    width: Count,
    key: Key = 0,
    stages: Count = 1,
    scale: Scale | None = None,
    neurons: Count = NEURONS,
    leak: Share = 0.0,
) -> tuple[Architecture, Dataset]:
    """The gating that a ReLU network of this width takes by itself when it starts small.

    One pathway for each of the `aligned_patterns`, named `aligned1`, `aligned2`, … in order of
    their basins, with as many neurons as fall into its basin. Neurons are shared out in the order
    of their growth rates: neuron i of `width` has the pattern that stands at (i − ½)/width of all
    random neurons, the fastest first, and so belongs to no pathway if it dies. A pattern whose
    basin holds many neurons gets its share, within one. Where there are more patterns than neurons,
    as for one-hot inputs, those that are chosen are as fast as all of them. There are at most 32
    pathways; where there would be more, neurons at 32 equally spaced places stand for the others.

    With `stages=2` the question is asked again of what the first pathways leave
    (`AlignedPatterns.rest`), and its patterns are added as `later1`, `later2`, … . They too may
    recruit any of the `width` neurons, so that the widths of each stage sum to at most `width`.

    **Arguments:** as in `aligned_patterns`; `scale`, the standard deviation of initial weights:
    with it, a warning says where neurons will not have aligned before the loss falls.

    **Returns:** `(arch, data)`, like any other gating.

    **Raises:** `NeuralRaceError` where no neuron learns (s* = 0); where the gates of fewer than
    nine tenths of those that learn are known; and where `width` neurons are so few that some sample
    would be in no pathway, although there are patterns that are on for it.

    ```python
    >>> import neuralrace as nr
    >>> arch, data = nr.reln.aligned(nr.tasks.extended_xor(1.2), width=200)
    >>> len(arch.hidden), sum(arch.sizes[v] for v in arch.hidden)
    (6, 200)

    ```
    """
    if stages > 2:
        raise NeuralRaceError(
            "more than two stages are not supported",
            got=f"stages = {stages}",
            wanted="1 or 2",
            fix="gates change while the loss falls, so that further stages add nothing",
        )
    found = aligned_patterns(data, key=key, neurons=neurons, leak=leak)
    if scale is not None:
        found.warn_if_large(width, scale)
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
    known = float(found.shares.sum())
    if known < COVERED * (known + found.moving):
        raise NeuralRaceError(
            "the aligned gates are known for too few of the neurons that learn",
            got=f"{100 * known / (known + found.moving):.0f} %; the others have not come to rest",
            wanted=f"at least {100 * COVERED:.0f} %",
            fix="bring the features to similar scales",
        )
    counts = neurons_of(found, width)
    reached, shown = (found.gates[c > 0].max(axis=0, initial=0) for c in (found.shares, counts))
    if missed := int(((reached > found.leak) & (shown <= found.leak)).sum()):
        raise NeuralRaceError(
            "the network is too narrow for its aligned gates to be typical",
            got=f"{width} neurons for {np.count_nonzero(found.shares)} patterns: {missed} of "
            f"{found.gates.shape[1]} samples would be in no pathway, although neurons learn them",
            wanted="a pathway for every such sample",
            fix="take a larger width; networks of this one differ from each other",
        )
    kept = np.flatnonzero(counts)
    return {f"{name}{k + 1}": (found.gates[p], int(counts[p])) for k, p in enumerate(kept)}


def neurons_of(found: AlignedPatterns, width: int) -> Int[np.ndarray, " P"]:
    """How many of `width` neurons have each pattern: neurons in order of growth, equally spaced."""
    order = np.argsort(-np.round(found.rates / (ROUNDING * found.fastest)), kind="stable")
    upto = np.cumsum(found.shares[order])
    total = _rounded(width * upto)
    if np.count_nonzero(np.diff(total, prepend=0)) > MOST:
        total = _rounded(width / MOST * _rounded(MOST * upto))
    counts = np.zeros(len(found), int)
    counts[order] = np.diff(total, prepend=0)
    return counts


def _rounded(values: Float[np.ndarray, " P"]) -> Int[np.ndarray, " P"]:
    """Rounded to whole numbers, halves up, whatever rounding did to a half."""
    return np.floor(values + 0.5 + ROUNDING).astype(int)


def _patterns_or_none(
    rest: Dataset, data: Dataset, *, key: Key, neurons: int, leak: float
) -> AlignedPatterns | None:
    """The aligned patterns of the remaining targets, or None where nothing remains."""
    if zero_loss(rest) <= EQUAL * zero_loss(data):
        return None
    found = aligned_patterns(rest, key=key, neurons=neurons, leak=leak)
    return found if len(found) else None
