"""Routing with real images (NRR §5): M input transforms, M label maps, some routes trained."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from neuralrace.checks import generator, one_of, plain_array, switch
from neuralrace.errors import NeuralRaceError, check_kind, whole_number
from neuralrace.tasks import Images, circulant_routes, images, route_matrix
from neuralrace.types import Key
from papers.nrr.transforms import label_maps, permutations, rotations, transformed

SILENT = 1e-9
"""Input directions with less than this share of the largest variance count as never seen."""


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """All that the squared loss sees of the images of a routing task.

    Of every input domain, in coordinates in which its covariance is diagonal: `variance` λ, of
    shape `(domains, D)`; `cross` P = ⟨y xᵀ⟩, `(domains, classes, D)`; and `test`, its test images,
    `(domains, T, D)`. Where all domains have the same moments there is one for all. Classes are
    called by their names in the images, so that the label maps of the outputs do not appear: they
    only rename the rows of a decoder. `power` is ⟨‖y‖²⟩, `test_labels` the class of each test
    image, `pixels` how many inputs a domain has, and `basis`, `(domains, D, pixels)`, maps centred
    images to these coordinates.

    ```python
    >>> from neuralrace import tasks
    >>> from papers.nrr.image_routing import image_routing
    >>> task = image_routing(tasks.images("digits"), M=4, K=2)
    >>> moments = task.moments()
    >>> moments.variance.shape, moments.cross.shape
    ((1, 61), (1, 10, 61))
    >>> task.moments(whiten=True).class_modes().variance
    array([[1., 1., 1., 1., 1., 1., 1., 1., 1.]])

    ```
    """

    variance: Float[np.ndarray, "domains D"]
    cross: Float[np.ndarray, "domains classes D"]
    power: float
    test: Float[np.ndarray, "domains T D"]
    test_labels: Int[np.ndarray, " T"]
    basis: Float[np.ndarray, "domains D pixels"]
    routes: Bool[np.ndarray, "M M"]

    @property
    def M(self) -> int:
        """The number of domains on either side."""
        return len(self.routes)

    @property
    def pixels(self) -> int:
        """How many inputs a domain has."""
        return self.basis.shape[2]

    @property
    def inputs_seen(self) -> int:
        """How many coordinates of its inputs are ever seen."""
        return self.variance.shape[1]

    @property
    def classes(self) -> int:
        """How many outputs a domain has."""
        return self.cross.shape[1]

    def class_modes(self) -> Moments:
        """The race of the class modes: nothing but the directions that tell classes apart.

        Of white inputs only the rows of P have anything to learn. Weights from other directions
        just decay, and matter no more where they start small; what is dropped is the noise
        that they add at first. Needs `moments(whiten=True)`.
        """
        seen = self.variance > 0
        if not np.allclose(self.variance[seen], 1.0):
            raise NeuralRaceError(
                "class modes are a reduction of white inputs",
                got="inputs that are not white",
                wanted="a covariance of ones",
                fix="task.moments(whiten=True).class_modes()",
            )
        _, strengths, modes = np.linalg.svd(self.cross, full_matrices=False)
        kept = min(self.classes - 1, modes.shape[1])
        modes = modes[:, :kept] * (strengths[:, :kept, None] > 0)
        return replace(
            self,
            variance=np.ones(modes.shape[:2]),
            cross=self.cross @ modes.transpose(0, 2, 1),
            test=(self.test @ modes.transpose(0, 2, 1)).astype(np.float32),
            basis=modes @ self.basis,
        )


@final
@dataclass(frozen=True, eq=False)
class ImageRouting:
    """A routing task on images; made by `image_routing`.

    `inputs` are the transforms of the input domains as tables (`permutations`, `rotations`),
    `outputs` the label maps of the output domains, `routes` the trained routes, `mean` the image
    that is subtracted before all else. Where there are `features`, domains show these of the
    transformed images, less the mean features of their training images.

    ```python
    >>> from neuralrace import tasks
    >>> from papers.nrr.image_routing import image_routing
    >>> task = image_routing(tasks.images("digits"), M=4, K=2)
    >>> task.M, task.pixels, task.classes, task.routes.sum(axis=0)
    (4, 64, 10, array([2, 2, 2, 2]))

    ```
    """

    images: Images
    inputs: Int[np.ndarray, "M pixels"]
    outputs: Int[np.ndarray, "M classes"]
    routes: Bool[np.ndarray, "M M"]
    mean: Float[np.ndarray, " pixels"]
    kind: str
    features: Callable[[Any], Any] | None = None
    centre: bool = True

    @property
    def M(self) -> int:
        """The number of domains on either side."""
        return len(self.routes)

    @functools.cached_property
    def pixels(self) -> int:
        """How many inputs a domain has: pixels, or features."""
        some = self.images.train[:1]
        return self.inputs.shape[1] if self.features is None else self.features(some).shape[1]

    @property
    def inputs_seen(self) -> int:
        """How many of its inputs are looked at: all."""
        return self.pixels

    @property
    def classes(self) -> int:
        """How many outputs a domain has."""
        return self.outputs.shape[1]

    @functools.cached_property
    def largest_variance(self) -> float:
        """The largest variance of any input domain, in any direction."""
        own = (self._second_moments(i)[0] for i in range(1 if self.alike else self.M))
        return max(float(np.linalg.eigvalsh(each)[-1]) for each in own)

    @property
    def alike(self) -> bool:
        """Whether all input domains are the same but for the names of their pixels."""
        permuted = (np.sort(self.inputs, axis=1) == np.arange(self.inputs.shape[1])).all()
        return bool(permuted) and self.features is None

    def shown(self, input: int, *, test: bool = False) -> Float[np.ndarray, "N inputs"]:
        """What an input domain shows of every image, centred; domains are counted from 0."""
        if self.features is not None:
            return np.asarray(self.seen_features[int(switch("test", test))][input], float)
        pixels = self.images.test if switch("test", test) else self.images.train
        return transformed(pixels.astype(float) - self.mean, self.inputs[input])

    @functools.cached_property
    def seen_features(
        self,
    ) -> tuple[Float[Array, "M N inputs"], Float[Array, "M T inputs"]]:
        """The centred features of all training and test images in every domain.

        Computed once, on the device of JAX, and kept there: 4 M (N + T) · inputs bytes.
        """
        import jax.numpy as jnp

        assert self.features is not None
        pixels = [jnp.asarray(part) for part in (self.images.train, self.images.test)]
        parts: tuple[list[Array], list[Array]] = ([], [])
        for table in jnp.asarray(self.inputs):
            through = lambda part, table=table: jnp.where(table < 0, 0, part[:, table])
            train, test = (
                jnp.concatenate([
                    jnp.asarray(self.features(through(part[low : low + ROWS])))
                    for low in range(0, len(part), ROWS)
                ])
                for part in pixels
            )  # fmt: skip
            middle = train.mean(axis=0) if self.centre else jnp.zeros(train.shape[1])
            parts[0].append(train - middle)
            parts[1].append(test - middle)
        return jnp.stack(parts[0]), jnp.stack(parts[1])

    def samples(
        self, input: int, output: int, *, test: bool = False
    ) -> tuple[Float[np.ndarray, "N pixels"], Float[np.ndarray, "N classes"]]:
        """What one route is shown and what it should answer (centred classes), from 0 on.

        ```python
        >>> from neuralrace import tasks
        >>> from papers.nrr.image_routing import image_routing
        >>> x, y = image_routing(tasks.images("digits"), M=4, K=2).samples(0, 3)
        >>> x.shape, y.shape
        ((1437, 64), (1437, 10))

        ```
        """
        switch("test", test)
        for name, domain in (("input", input), ("output", output)):
            number = whole_number(name, domain, least=0, fix="for example samples(0, 1)")
            if number >= self.M:
                raise NeuralRaceError(
                    f"there is no {name} domain of this number",
                    got=f"{name} = {number}",
                    wanted=f"a whole number from 0 to {self.M - 1}",
                    fix="domains are counted from 0",
                )
        there = self.images
        labels = there.test_labels if test else there.labels
        x = self.shown(input, test=test)
        y = _one_hot(labels, there.classes)
        y = y - _one_hot(there.labels, there.classes).mean(axis=0)
        renamed = np.empty_like(y)
        renamed[:, self.outputs[output]] = y
        return x, renamed

    def moments(self, *, whiten: bool = False, fold: bool = True) -> Moments:
        """The second moments of every input domain, from all training images.

        A transform is a linear map R of images, so that a domain's moments are R S Rᵀ and P Rᵀ of
        the base images' S = ⟨x xᵀ⟩ and P = ⟨y xᵀ⟩. Rotating a domain's inputs to the eigenvectors
        of its covariance changes nothing that is learned.

        **Arguments:** `whiten` divides each of these coordinates by its standard deviation: another
        learning problem, with the same solution in the end. `fold=False` computes each domain's
        moments by themselves, also where permutations make them all alike.
        """
        folded = switch("fold", fold) and self.alike
        parts = []
        for i in range(1 if folded else self.M):
            own, cross = self._base if folded else self._second_moments(i)
            test = (
                self.images.test.astype(float) - self.mean if folded else self.shown(i, test=True)
            )
            values, vectors = np.linalg.eigh(own)
            kept = np.flatnonzero(values > SILENT * values[-1])[::-1]
            basis, variance = vectors[:, kept].T, values[kept]
            if switch("whiten", whiten):
                basis, variance = basis / np.sqrt(variance)[:, None], np.ones(len(kept))
            parts.append((variance, cross @ basis.T, (test @ basis.T).astype(np.float32), basis))
        longest = max(len(variance) for variance, *_ in parts)
        filled = lambda a, axis: np.pad(
            a, [(0, longest - n if k == axis else 0) for k, n in enumerate(a.shape)]
        )
        one_hot = _one_hot(self.images.labels, self.images.classes)
        return Moments(
            np.stack([filled(p[0], 0) for p in parts]),
            np.stack([filled(p[1], 1) for p in parts]),
            float(one_hot.var(axis=0).sum()),
            np.stack([filled(p[2], 1) for p in parts]),
            self.images.test_labels,
            np.stack([filled(p[3], 0) for p in parts]),
            self.routes,
        )

    def _second_moments(self, input: int) -> tuple[np.ndarray, np.ndarray]:
        """⟨x xᵀ⟩ and ⟨y xᵀ⟩ of an input domain."""
        if self.features is not None:
            return self._moments_of_features[input]
        (covariance, cross), table = self._base, self.inputs[input]
        return transformed(transformed(covariance, table).T, table), transformed(cross, table)

    @functools.cached_property
    def _moments_of_features(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """⟨x xᵀ⟩ and ⟨y xᵀ⟩ of every input domain."""
        none = np.zeros(self.pixels)
        return [self._moments_of(shown, none) for shown in self.seen_features[0]]

    @functools.cached_property
    def _base(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨x xᵀ⟩ and ⟨y xᵀ⟩ of the images themselves, after the mean is subtracted."""
        return self._moments_of(self.images.train, self.mean)

    def _moments_of(self, shown: Any, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = _one_hot(self.images.labels, self.classes)
        y = y - y.mean(axis=0)
        covariance, cross = np.zeros((len(mean), len(mean))), np.zeros((self.classes, len(mean)))
        for low in range(0, len(y), ROWS):
            x = np.asarray(shown[low : low + ROWS], float) - mean
            covariance, cross = covariance + x.T @ x, cross + y[low : low + ROWS].T @ x
        return covariance / len(y), cross / len(y)


ROWS = 10_000
"""Images that are read at once."""


def image_routing(
    base: Images | None = None,
    M: int = 40,
    K: int = 8,
    *,
    routes: Bool[np.ndarray, "_ _"] | Sequence[tuple[int, int]] | None = None,
    inputs: str | Int[np.ndarray, "_ pixels"] = "permuted",
    outputs: str | Int[np.ndarray, "_ classes"] = "authors",
    span: float = 180.0,
    centre: bool = True,
    features: Callable[[Any], Any] | None = None,
    key: Key = 0,
) -> ImageRouting:
    """Classify what any one of M input domains shows, in the terms of any output domain (NRR §5).

    Input domain i shows the images through transform i; output domain j permutes the classes.

    **Arguments:** `base` are the images (`tasks.images`; scikit-learn's digits by default). Each
    input is trained with `K` outputs by `circulant_routes`, or with those of `routes`, as in
    `routing`. `inputs` are `"permuted"`, `"rotated"` (by up to `span` degrees) or `"same"`, or
    tables as of `permutations`; `outputs` are `"authors"` or `"random"` label maps, or `"same"`, or
    tables. `centre` subtracts the mean image, or the mean features. `features` is a function of
    images, one per row, that returns one row of features for each: domains then show features of
    the transformed images, as NRR does for CIFAR-10 (`residual_features`). `key` draws what is
    random.

    Permuting pixels or classes leaves the task exactly what it was, for independent initial
    weights: the permutations fold into encoders and decoders. Only rotations make domains differ.

    ```python
    >>> from neuralrace import tasks
    >>> from papers.nrr.image_routing import image_routing
    >>> task = image_routing(tasks.images("digits"), M=10, K=4, inputs="rotated")
    >>> task.inputs.shape, task.outputs.shape, int(task.routes.sum()), task.alike
    ((10, 64), (10, 10), 40, False)

    ```
    """
    there = images() if base is None else base
    check_kind("base", there, Images, "make it by tasks.images('digits')")
    M = whole_number("the number of domains M", M, fix="use M=1 or more")
    matrix = circulant_routes(M, K) if routes is None else route_matrix(routes, M)
    pixels, classes = there.train.shape[1], there.classes
    drawn = generator(key).integers(2**31, size=2).tolist()
    if isinstance(inputs, str):
        one_of("inputs", inputs, ("permuted", "rotated", "same"), fix="inputs='permuted'")
        tables = {
            "permuted": lambda: permutations(M, pixels, key=drawn[0]),
            "rotated": lambda: rotations(M, there.shape, span=span),
            "same": lambda: np.tile(np.arange(pixels), (M, 1)),
        }[inputs]()
    else:
        tables = _tables("inputs", inputs, M, pixels, least=-1)
    if isinstance(outputs, str):
        one_of("outputs", outputs, ("authors", "random", "same"), fix="outputs='random'")
        maps = (
            np.tile(np.arange(classes), (M, 1))
            if outputs == "same"
            else label_maps(M, classes, kind=outputs, key=drawn[1])
        )
    else:
        maps = _tables("outputs", outputs, M, classes, least=0)
        if not (np.sort(maps, axis=1) == np.arange(classes)).all():
            raise NeuralRaceError(
                "a label map must be a permutation of the classes",
                got="a class that is named twice",
                wanted=f"each of 0 … {classes - 1} once in every row",
                fix="make them by label_maps",
            )
    mean = there.train.mean(axis=0, dtype=float) if switch("centre", centre) else np.zeros(pixels)
    kind = inputs if isinstance(inputs, str) else "given"
    if features is not None:
        _check_features(features, there)
    return ImageRouting(there, tables, maps, matrix, mean, kind, features, centre)


def _check_features(features: Any, base: Images) -> None:
    """Whether a function gives features: two images, two rows of finite numbers."""
    fix = "for example features=residual_features()"
    check_kind("features", features, Callable, fix)  # type: ignore[arg-type]
    some = base.train[:2]
    found = np.asarray(features(some))
    if found.ndim != 2 or len(found) != len(some) or not np.isfinite(found).all():
        raise NeuralRaceError(
            "features must be one row of finite numbers per image",
            got=f"shape {found.shape} for {len(some)} images",
            wanted=f"shape ({len(some)}, any number of features)",
            fix=fix,
        )


def _tables(what: str, given: object, M: int, size: int, least: int) -> Int[np.ndarray, "M size"]:
    fix = "make them by permutations, rotations or label_maps"
    tables = plain_array(what, given, wanted=f"whole numbers of shape ({M}, {size})", fix=fix)
    if tables.shape != (M, size) or tables.dtype.kind not in "iu":
        raise NeuralRaceError(
            f"{what} must be one table per domain",
            got=f"shape {tables.shape} of {tables.dtype}",
            wanted=f"whole numbers of shape ({M}, {size})",
            fix=fix,
        )
    if tables.min() < least or tables.max() >= size:
        raise NeuralRaceError(
            f"{what} point outside",
            got=f"{tables.min()} … {tables.max()}",
            wanted=f"{least} … {size - 1}",
            fix=fix,
        )
    return tables


def _one_hot(labels: Int[np.ndarray, " N"], classes: int) -> Float[np.ndarray, "N classes"]:
    return np.eye(classes)[labels]
