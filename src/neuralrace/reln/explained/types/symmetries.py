"""Exact symmetries of a task: permutations of its samples that inputs and targets follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import real_array
from neuralrace.dataset import Dataset, Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.text import numbered
from neuralrace.tolerances import ROUNDING, ROUNDINGS
from neuralrace.types import ArrayLike

MOST_SAMPLES = 1000
"""Tasks with more samples are not searched for symmetries."""

MOST_ELEMENTS = 20_000
"""A group with more elements is replaced by a subgroup that has at most this number."""

EFFORT = 5_000
"""The number of refinements after which the search for one symmetry gives up."""


@final
@dataclass(frozen=True, eq=False)
class Symmetries:
    """The symmetries of a task; see `symmetries`.

    `generators`, of shape `(G, N)`, are permutations π: sample n goes to sample π(n). All others
    are products of these. `order` counts them all, the identity included. `elements`, of shape
    `(order, N)`, lists them. `complete` says whether these are all symmetries of the task, and
    `searched` whether the task was searched at all. Inner products count as equal if they differ by
    at most `tolerance`, relative to the largest.

    ```python
    >>> import neuralrace as nr
    >>> found = nr.reln.symmetries(nr.tasks.extended_xor(0.4))
    >>> found.order, len(found.orbits)
    (8, 1)

    ```
    """

    generators: Int[np.ndarray, "G N"]
    samples: Samples
    complete: bool = True
    searched: bool = True
    tolerance: float = ROUNDING

    @cached_property
    def elements(self) -> Int[np.ndarray, "order N"]:
        """Every permutation of the group."""
        return _closure(self.generators)

    @property
    def order(self) -> int:
        """How many symmetries were found, the identity included."""
        return len(self.elements)

    @cached_property
    def orbits(self) -> tuple[Int[np.ndarray, " n"], ...]:
        """The sets of samples that the symmetries map to each other."""
        return tuple(np.unique(self.elements[:, n]) for n in self._firsts)

    @property
    def _firsts(self) -> Int[np.ndarray, " n"]:
        return np.unique(self.elements.min(axis=0))

    @door
    def inputs(self, permutation: ArrayLike) -> Float[np.ndarray, "d d"]:
        """The orthogonal map P of inputs that follows a permutation: P x_n = x_π(n)."""
        return _map(self.samples.x, self._checked(permutation), self.tolerance)

    @door
    def outputs(self, permutation: ArrayLike) -> Float[np.ndarray, "o o"]:
        """The orthogonal map O of outputs that follows a permutation: O y_n = y_π(n)."""
        return _map(self.samples.y, self._checked(permutation), self.tolerance)

    def _checked(self, permutation: ArrayLike) -> Int[np.ndarray, " N"]:
        """A permutation of the samples, or an error."""
        wanted, n = "one of Symmetries.elements", len(self.samples.x)
        fix = "for example symmetries.elements[0]"
        given = real_array("the permutation", permutation, wanted=wanted, fix=fix)
        if given.shape != (n,) or not np.array_equal(np.sort(given), np.arange(n)):
            raise NeuralRaceError(
                "this is not a permutation of the samples",
                got=f"an array of shape {given.shape}",
                wanted=f"the numbers from 0 to {n - 1}, each once",
                fix=fix,
            )
        return given.astype(np.int64)

    @cached_property
    def basis(self) -> Float[np.ndarray, "k N o"]:
        """An orthonormal basis E of the outputs that respect the symmetries, o_π(n) = O o_n.

        Projecting outputs on it, o → E Eᵀ o, averages them over all images of a network. Outputs
        that no target has any part of are left out: there the average is zero.

        On an orbit, such outputs are fixed by those of one sample, which must not change under the
        symmetries that keep this sample in place.
        """
        y = self.samples.y
        span = row_space(y, self.tolerance)
        found = []
        for first, orbit in zip(self._firsts, self.orbits, strict=True):
            to = {int(n): self.elements[self.elements[:, first] == n][0] for n in orbit}
            keeps = self.elements[self.elements[:, first] == first]
            fixed = _fixed(span, y, keeps, self.tolerance)
            part = np.zeros((fixed.shape[1], *y.shape))
            for n, permutation in to.items():
                part[:, n] = (self.outputs(permutation) @ fixed).T / np.sqrt(len(orbit))
            found.append(part)
        return np.concatenate(found)

    def __str__(self) -> str:
        if not self.searched:
            most = f"it has more than {MOST_SAMPLES} samples"
            return f"The task was not searched for symmetries: {most}."
        if self.order == 1:
            if self.complete:
                return "The task has no symmetry."
            return "No symmetry was found, but the search gave up before its end."
        many = len(self.orbits)
        orbits = numbered(many, "orbit", "1")
        if self.complete:
            return f"The task has {self.order} symmetries; its samples form {orbits}."
        return (
            f"The task has at least {self.order} symmetries; under these its samples form {orbits}."
        )


@door
def symmetries(data: Sampled) -> Symmetries:
    """Permutations of the samples that an orthogonal map of inputs and one of outputs follow.

    A permutation π is a symmetry where P x_n = x_π(n) and O y_n = y_π(n) for orthogonal P and O:
    exactly where it leaves the inner products XXᵀ and YYᵀ and the sample weights unchanged. A
    network that starts from Gaussian weights is, on average over starts, as symmetric as its task.

    They are the automorphisms of a graph on the samples whose edges are coloured by inner products.
    The search individualises one sample after another and refines colours in between; it keeps the
    generators of the group. It gives up where it takes too long (`EFFORT`), keeps a subgroup of
    groups with more than 20 000 elements, and does not search tasks with more than 1000 samples:
    `complete` is then False.

    **Arguments:** `data`, the task; its gates are ignored. Inputs and outputs of several nodes are
    read side by side. Numbers in single precision are compared to within their rounding.

    ```python
    >>> import neuralrace as nr
    >>> print(nr.reln.symmetries(nr.tasks.contextual(contexts=3, joined=True)))
    The task has 768 symmetries; its samples form 1 orbit.

    ```
    """
    return symmetries_of(Samples.of(data), tolerance_of(data))


def tolerance_of(data: Dataset) -> float:
    """By how much inner products may differ, given the precision of inputs and targets."""
    kinds = [np.asarray(a).dtype for a in (*data.x.values(), *data.y.values())]
    rounding = max((float(np.finfo(kind).eps) for kind in kinds if kind.kind == "f"), default=0.0)
    return max(ROUNDING, ROUNDINGS * rounding)


def symmetries_of(samples: Samples, tolerance: float = ROUNDING) -> Symmetries:
    """The symmetries of a task that is given as plain matrices."""
    n = len(samples.x)
    if n > MOST_SAMPLES:
        return Symmetries(np.arange(n)[None], samples, False, False, tolerance)
    colour = np.zeros((n, n), np.int64)
    for gram in (samples.x @ samples.x.T, samples.y @ samples.y.T, np.diag(samples.p)):
        kinds = _kinds(gram, tolerance)
        colour = colour * (kinds.max() + 1) + kinds
    found, complete = _generators(colour)
    while len(found) > 1 and _order_beyond(np.array(found), MOST_ELEMENTS):
        found, complete = found[:-1], False
    generators = np.array(found).reshape(-1, n)
    return Symmetries(generators, samples, complete, tolerance=tolerance)


def fold(
    symmetries: Symmetries,
    looks: Sequence[tuple[Float[np.ndarray, "M d"], Float[np.ndarray, "M o"]]],
) -> Int[np.ndarray, "M N"]:
    """For each neuron the permutation that takes it to the representative of its orbit.

    The representative is the image that is most in the direction of one fixed generic vector,
    summed over `looks`, pairs of w and a at several times: neurons move together with their
    images, so that one permutation serves for all times.
    """
    many = len(looks[0][0])
    if symmetries.order == 1:
        return np.tile(symmetries.elements, (many, 1))
    generic = np.random.default_rng(0).normal(size=(2, len(symmetries.samples.x)))
    score = np.zeros((symmetries.order, many))
    both = (symmetries.samples.x, symmetries.samples.y)
    for k, (weight, values) in enumerate(zip(generic, both, strict=True)):
        seen = sum(values @ look[k].T for look in looks) / np.linalg.norm(values)
        score += weight[symmetries.elements] @ seen
    return symmetries.elements[score.argmax(axis=0)]


def moved(
    symmetries: Symmetries,
    permutations: Int[np.ndarray, "M N"],
    w: Float[np.ndarray, "M d"],
    a: Float[np.ndarray, "M o"],
) -> tuple[Float[np.ndarray, "M d"], Float[np.ndarray, "M o"]]:
    """Each neuron under its own permutation: P w and O a."""
    back = np.argsort(permutations, axis=1)
    both = []
    for values, rows in ((symmetries.samples.x, w), (symmetries.samples.y, a)):
        seen = rows @ values.T
        change = np.take_along_axis(seen, back, axis=1) - seen
        both.append(rows + change @ np.linalg.pinv(values).T)
    return both[0], both[1]


def _kinds(values: Float[np.ndarray, "N N"], tolerance: float) -> Int[np.ndarray, "N N"]:
    """The entries of a matrix as whole numbers, the same for those that count as equal."""
    flat = np.sort(values.ravel())
    gap = tolerance * max(abs(flat[0]), abs(flat[-1]))
    starts = flat[np.append(True, np.diff(flat) > gap)]
    return np.searchsorted(starts, values + gap / 2, side="right") - 1


# ---- the search ---------------------------------------------------------------------------------


def _generators(colour: Int[np.ndarray, "N N"]) -> tuple[list[Int[np.ndarray, " N"]], bool]:
    """Generators of the permutations that leave a coloured graph unchanged, and if all of them."""
    n = len(colour)
    diagonal = np.unique(np.diag(colour), return_inverse=True)[1].ravel()
    cells = [_refined(colour, diagonal[None])[0]]
    base: list[int] = []
    while (point := _branch(cells[-1])) is not None:
        base.append(point)
        cells.append(_refined(colour, _marked(cells[-1], point)[None])[0])
    found: list[np.ndarray] = [np.arange(n)]
    complete = True
    for level in reversed(range(len(base))):
        before = cells[level]
        orbit = _orbit(base[level], found)
        for target in np.flatnonzero(before == before[base[level]]):
            if int(target) in orbit:
                continue
            start = np.stack([_marked(before, base[level]), _marked(before, int(target))])
            effort = [EFFORT]
            image = _extended(colour, start, base[level + 1 :], effort)
            complete &= effort[0] >= 0
            if image is not None:
                found.append(image)
                orbit = _orbit(base[level], found)
    return found, complete


def _extended(
    colour: np.ndarray, both: Int[np.ndarray, "2 N"], base: list[int], effort: list[int]
) -> np.ndarray | None:
    """A symmetry that maps the first colouring of samples to the second, or None."""
    effort[0] -= 1
    if effort[0] < 0:
        return None
    one, other = _refined(colour, both)
    if not np.array_equal(np.sort(one), np.sort(other)):
        return None
    point = next((b for b in base if (one == one[b]).sum() > 1), None)
    if point is None:
        image = np.argsort(other)[np.argsort(np.argsort(one))]
        return image if np.array_equal(colour[np.ix_(image, image)], colour) else None
    for target in np.flatnonzero(other == one[point]):
        start = np.stack([_marked(one, point), _marked(other, int(target))])
        image = _extended(colour, start, base, effort)
        if image is not None:
            return image
    return None


def _refined(colour: np.ndarray, cells: Int[np.ndarray, "c N"]) -> Int[np.ndarray, "c N"]:
    """Split cells of samples until all of a cell see the same colours in every cell."""
    count, n = cells.shape
    kinds = len(np.unique(cells))
    while True:
        labels = np.unique(cells, return_inverse=True)[1].reshape(cells.shape)
        sees = colour[None] * (labels.max() + 1) + labels[:, None, :]
        rows = np.concatenate([labels[..., None], np.sort(sees, axis=2)], axis=2)
        new = np.unique(rows.reshape(count * n, n + 1), axis=0, return_inverse=True)[1]
        cells = np.asarray(new).reshape(count, n)
        if len(np.unique(cells)) == kinds:
            return cells
        kinds = len(np.unique(cells))


def _branch(cells: np.ndarray) -> int | None:
    """The first sample of the smallest cell with more than one, or None."""
    _, first, counts = np.unique(cells, return_index=True, return_counts=True)
    several = counts > 1
    if not several.any():
        return None
    return int(first[several][counts[several].argmin()])


def _marked(cells: np.ndarray, point: int) -> np.ndarray:
    """The cells with one sample in a cell by itself."""
    marked = 2 * cells
    marked[point] += 1
    return marked


def _orbit(point: int, generators: list[np.ndarray]) -> set[int]:
    """Where products of the generators take a sample."""
    seen, new = {point}, [point]
    while new:
        here = new.pop()
        for image in {int(g[here]) for g in generators} - seen:
            seen.add(image)
            new.append(image)
    return seen


# ---- groups -------------------------------------------------------------------------------------


def _closure(generators: np.ndarray, most: int | None = None) -> np.ndarray:
    """All products of some permutations, or the first found where there are more than `most`."""
    n = generators.shape[1]
    kind = np.int16 if n < 2**15 else np.int64
    steps = generators.astype(kind)
    found = np.arange(n, dtype=kind)[None]
    new = found
    while len(new) and (most is None or len(found) <= most):
        images = np.unique(np.concatenate([new[:, g] for g in steps]), axis=0)
        known = {row.tobytes() for row in found}
        new = images[[row.tobytes() not in known for row in images]]
        found = np.concatenate([found, new])
    return found.astype(np.int64)


def _order_beyond(generators: np.ndarray, most: int) -> bool:
    return len(_closure(generators, most)) > most


def row_space(values: Float[np.ndarray, "N d"], tolerance: float) -> Float[np.ndarray, "d r"]:
    """An orthonormal basis of what the rows span."""
    _, s, vt = np.linalg.svd(values, full_matrices=False)
    return vt[s > tolerance * s[0]].T


def _map(
    values: Float[np.ndarray, "N d"], permutation: np.ndarray, tolerance: float
) -> Float[np.ndarray, "d d"]:
    """The orthogonal map that takes every row to that of its image, the identity elsewhere."""
    inverse = np.linalg.pinv(values, rcond=tolerance)
    return np.eye(values.shape[1]) + (inverse @ (values[permutation] - values)).T


def _fixed(
    span: Float[np.ndarray, "o r"],
    y: Float[np.ndarray, "N o"],
    keeps: Int[np.ndarray, "s N"],
    tolerance: float,
) -> Float[np.ndarray, "o k"]:
    """The vectors of a span that no map of some permutations changes.

    The mean of all maps of a group is the projector on what they leave unchanged.
    """
    n = len(y)
    often = np.stack([np.bincount(keeps[:, m], minlength=n) for m in range(n)]) / len(keeps)
    mean = span.T @ (np.linalg.pinv(y, rcond=tolerance) @ (often @ y)).T @ span
    values, vectors = np.linalg.eigh((mean + mean.T) / 2)
    return span @ vectors[:, values > 0.5]
