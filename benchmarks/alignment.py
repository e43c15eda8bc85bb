"""The cost of aligned patterns and kept shares, by number of samples and of inputs."""

from __future__ import annotations

import neuralrace as nr
from benchmarks.timing import medians
from neuralrace import tasks

NEURONS = 1000
"""The number of random neurons in each measurement."""


def _patterns(samples: int, inputs: int) -> object:
    """The aligned patterns of a random task, from random neurons alone."""
    data = tasks.gaussian(samples=samples, inputs=inputs, key=0)
    return nr.reln.aligned_patterns(data, neurons=NEURONS, limit=1)


def samples_ratio(few: int = 16, many: int = 64) -> float:
    """The time for many samples over the time for few, with 4 inputs."""
    small, large = medians(lambda: _patterns(few, 4), lambda: _patterns(many, 4), repeats=3)
    return large / small


def inputs_ratio(few: int = 4, many: int = 64) -> float:
    """The time for many inputs over the time for few, with 16 samples.

    More inputs than samples cost little: the flow is computed in the space that the samples span.
    """
    small, large = medians(lambda: _patterns(16, few), lambda: _patterns(16, many), repeats=3)
    return large / small


def consistency_ratio() -> float:
    """The time of the kept share of aligned gates over that of aligned patterns, random task."""
    data = tasks.gaussian(key=1)
    arch, gated = nr.reln.aligned(data, width=200)
    patterns, share = medians(
        lambda: nr.reln.aligned_patterns(data),
        lambda: nr.reln.consistency(arch, gated, scale=1e-3),
        repeats=3,
    )
    return share / patterns
