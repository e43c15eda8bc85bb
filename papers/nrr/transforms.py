"""What each domain does to images and classes: permutations and rotations (NRR App. D)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Int

from neuralrace.checks import generator, one_of, real_number
from neuralrace.errors import NeuralRaceError, whole_number
from neuralrace.types import Key

EMPTY = -1
"""In the table of a transform: a pixel that comes from outside the image, and is 0."""


def permutations(M: int, size: int, *, key: Key = 0) -> Int[np.ndarray, "M size"]:
    """M different random permutations of `size` things, one per row, drawn by `key`.

    As a transform of images, pixel p of the new image is pixel `table[i, p]` of the old one.

    ```python
    >>> from papers.nrr.transforms import permutations
    >>> permutations(2, 5)
    array([[2, 4, 3, 0, 1],
           [4, 1, 2, 0, 3]])

    ```
    """
    M, size = _counts(M, size)
    rng = generator(key)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < M:
        found[tuple(rng.permutation(size).tolist())] = None
    return np.array(list(found))


def rotations(
    M: int, shape: tuple[int, ...], *, span: float = 180.0
) -> Int[np.ndarray, "M pixels"]:
    """M rotations of images of this shape, by i · span / M degrees for i = 0 … M − 1 (NRR App. D).

    Counterclockwise about the centre, by the nearest pixel. Pixel p of the new image is pixel
    `table[i, p]` of the old one, or 0 where that is −1: it came from outside. Every channel is
    rotated alike.

    **Arguments:** `shape` is (height, width) or (channels, height, width). `span` is in degrees:
    180 in the text of the paper, 270 in the authors' code.

    ```python
    >>> from papers.nrr.transforms import rotations
    >>> rotations(2, (2, 2), span=180.0)
    array([[0, 1, 2, 3],
           [1, 3, 0, 2]])

    ```
    """
    M = whole_number("the number of domains M", M, fix="use M=1 or more")
    span = real_number("span", span, fix="in degrees, such as span=180.0")
    sides = isinstance(shape, (tuple, list)) and all(
        isinstance(n, (int, np.integer)) for n in shape
    )
    if not sides or len(shape) not in (2, 3) or min(shape) < 1:
        raise NeuralRaceError(
            "this is not the shape of an image",
            got=repr(shape)[:80],
            wanted="(height, width) or (channels, height, width)",
            fix="pass images.shape",
        )
    *channels, height, width = shape
    rows, columns = np.mgrid[:height, :width].reshape(2, -1)
    down, right = rows - (height - 1) / 2, columns - (width - 1) / 2
    angles = np.deg2rad(np.arange(M) * span / M)[:, None]
    cosine, sine = np.cos(angles), np.sin(angles)
    nearest = lambda place, middle: np.rint(place + middle).astype(int)
    row = nearest(cosine * down + sine * right, (height - 1) / 2)
    column = nearest(cosine * right - sine * down, (width - 1) / 2)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    flat = np.where(inside, row * width + column, EMPTY)
    area = height * width
    each = [np.where(flat < 0, EMPTY, flat + c * area) for c in range(math.prod(channels))]
    return np.concatenate(each, axis=1)


def label_maps(
    M: int, classes: int = 10, *, kind: str = "authors", key: Key = 0
) -> Int[np.ndarray, "M classes"]:
    """M different permutations of the classes: output domain j calls class c `table[j, c]`.

    **Arguments:** `kind` is `"authors"`, the first M in lexicographic order, as in the authors'
    code (with ten classes and M ≤ 120 classes 0–4 never move), or `"random"`, drawn by `key`.

    ```python
    >>> from papers.nrr.transforms import label_maps
    >>> label_maps(3, 4)
    array([[0, 1, 2, 3],
           [0, 1, 3, 2],
           [0, 2, 1, 3]])

    ```
    """
    M, classes = _counts(M, classes)
    one_of("kind of label maps", kind, ("authors", "random"), fix="kind='random'")
    if kind == "random":
        return permutations(M, classes, key=key)
    return np.array(list(itertools.islice(itertools.permutations(range(classes)), M)))


def _counts(M: int, size: int) -> tuple[int, int]:
    M = whole_number("the number of domains M", M, fix="use M=1 or more")
    size = whole_number("how many things to permute", size, fix="use 1 or more")
    if size < 21 and math.factorial(size) < M:
        raise NeuralRaceError(
            "there are not that many permutations",
            got=f"M = {M} of {size} things",
            wanted=f"at most {math.factorial(size)}",
            fix="fewer domains, or more things to permute",
        )
    return M, size


def transformed(images: np.ndarray, table: Int[np.ndarray, " pixels"]) -> np.ndarray:
    """Images, one per row of the last axis, through one transform."""
    return np.where(table < 0, 0, images[..., table])
