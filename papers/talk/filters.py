"""How structured the filters of a first layer are: two measures, both between 0 and 1.

Neither has anything to optimize: frequencies are counted, and Gabor functions are taken from a
fixed list. White noise is not at 0: among many Gabor functions one always explains something, and
more the fewer pixels there are (0.36 for one channel of 5 × 5 pixels, 0.08 for three channels of
9 × 9). Compare values with `of_noise`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import product

import numpy as np
from jaxtyping import Float

LOW = 0.25
"""Cycles per pixel up to which a spatial frequency is low: half of the highest one."""

ORIENTATIONS = 8
"""Orientations of the Gabor functions, equally spaced."""

FREQUENCIES = (0.06, 0.12, 0.18, 0.25)
"""Spatial frequencies of the Gabor functions, in cycles per pixel."""

WIDTHS = (0.12, 0.2, 0.3)
"""Standard deviations of their Gaussian envelopes, relative to the width of the filter."""

NOISES = 400
"""Filters of white noise over which its shares are averaged: to about a hundredth of each."""

CENTRES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where their centres are in either direction, relative to the width of the filter."""


def low_frequency_share(filters: Float[np.ndarray, "F C k k"]) -> Float[np.ndarray, " F"]:
    """The share of each filter's energy at spatial frequencies up to `LOW`, all channels together.

    The energy is Σ|f̂|², f̂ the discrete Fourier transform. On average, white noise has the share of
    such frequencies among all: 21 of 81 for 9 × 9 pixels.

    ```python
    >>> import numpy as np
    >>> from papers.talk.filters import low_frequency_share
    >>> row = np.cos(2 * np.pi * np.arange(8) / 8)
    >>> slow, fast = row + 0 * row[:, None], (-1.0) ** np.arange(8) + 0 * row[:, None]
    >>> low_frequency_share(np.stack([slow, fast])[:, None]).round(6)
    array([1., 0.])

    ```
    """
    along = np.fft.fftfreq(filters.shape[-1])
    low = np.hypot(along[:, None], along) <= LOW
    energy = (np.abs(np.fft.fft2(filters)) ** 2).sum(axis=1)
    return energy[:, low].sum(axis=1) / energy.sum(axis=(1, 2))


def gabor_share(filters: Float[np.ndarray, "F C k k"]) -> Float[np.ndarray, " F"]:
    """The share of each filter's energy that its best Gabor function explains.

    A Gabor function is a Gaussian envelope times a plane wave. Centre, width, orientation and
    frequency are those of the list that explain most; amplitude and phase follow from projection,
    for each channel.

    ```python
    >>> import numpy as np
    >>> from papers.talk.filters import gabor_share
    >>> y, x = np.mgrid[:9, :9] / 9 + 1 / 18
    >>> gabor = np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.08) * np.cos(9 * 2 * np.pi * 0.18 * x)
    >>> noise = np.random.default_rng(0).normal(size=(9, 9))
    >>> gabor_share(np.stack([gabor, noise])[:, None]).round(2)
    array([1.  , 0.13])

    ```
    """
    count, channels, size, _ = filters.shape
    pairs = _gabors(size)
    flat = filters.reshape(count * channels, size * size)
    along = np.tensordot(flat, pairs, axes=([1], [1]))  # filter and channel, function, phase
    explained = (along**2).sum(axis=2).reshape(count, channels, -1).sum(axis=1)
    return explained.max(axis=1) / (filters**2).sum(axis=(1, 2, 3))


@functools.cache
def of_noise(share: Callable[[np.ndarray], np.ndarray], channels: int, size: int) -> float:
    """The mean share of white noise, of as many channels and pixels as the filters have.

    ```python
    >>> from papers.talk.filters import gabor_share, low_frequency_share, of_noise
    >>> [round(of_noise(share, 1, 5), 1) for share in (low_frequency_share, gabor_share)]
    [0.2, 0.4]

    ```
    """
    noise = np.random.default_rng(0).normal(size=(NOISES, channels, size, size))
    return float(share(noise).mean())


@functools.cache
def _gabors(size: int) -> Float[np.ndarray, "G pixels 2"]:
    """Orthonormal pairs that span all phases of each Gabor function."""
    y, x = ((axis + 0.5) / size for axis in np.mgrid[:size, :size])
    angles = np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    found = []
    for row, column, width, angle, frequency in product(
        CENTRES, CENTRES, WIDTHS, angles, FREQUENCIES
    ):
        envelope = np.exp(-((x - column) ** 2 + (y - row) ** 2) / (2 * width**2))
        phase = 2 * np.pi * frequency * size * (np.cos(angle) * x + np.sin(angle) * y)
        found.append(np.stack([envelope * np.cos(phase), envelope * np.sin(phase)], axis=-1))
    return np.linalg.qr(np.stack(found).reshape(len(found), size * size, 2))[0]
