"""Features of images: those of a small residual network for CIFAR-10, and a user's own (NRR §5)."""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Array, Float, Int

from neuralrace.checks import file_path, real_array
from neuralrace.errors import NeuralRaceError
from neuralrace.tasks import Images

STAGES = ((16, 1), (32, 2), (64, 2))
"""Channels of each stage of the residual network, and the stride of its first block."""

BLOCKS = 3
"""Residual blocks in a stage; each has two convolutions."""

POOL = 4
"""Features are means over squares of `POOL` × `POOL` positions after the second stage."""

LAYERS = 1 + 2 * BLOCKS * len(STAGES)
"""Convolutions of the network: 19, which with the classifier are the 20 layers of ResNet20."""

ROWS = 1000
"""Images that the network sees at once."""

WEIGHTS = "data/resnet20.npz"
"""The weights that are kept here, written by `tools/train_features.py`."""


@final
@dataclass(frozen=True, eq=False)
class ResidualNetwork:
    """ResNet20 for images of 3 × 32 × 32 pixels (He et al. 2016); made by `residual_features`.

    Called with images, one per row, it returns the 512 features that NRR §5 puts into routing
    networks: 32 channels after the second of three stages, in means over 4 × 4 squares of
    positions. (The text of NRR says ResNet18; the authors' code takes ResNet20.) `classes` names
    the class of each image.

    `kernels` and `biases` are those of its convolutions, with batch normalisation folded into them;
    `readout` maps the 64 channels of the last stage to classes. `mean` and `spread` normalise the
    colours. Where a block halves the image, its shortcut takes every second pixel, and fills up the
    new channels with zeros. `about` says how the weights were trained.

    ```python
    >>> import numpy as np
    >>> from papers.nrr.features import residual_features
    >>> black = np.zeros((2, 3072), np.float32)
    >>> residual_features()(black).shape
    (2, 512)

    ```
    """

    kernels: tuple[Float[np.ndarray, "3 3 _ _"], ...]
    biases: tuple[Float[np.ndarray, " _"], ...]
    readout: Float[np.ndarray, "64 classes"]
    readout_bias: Float[np.ndarray, " classes"]
    mean: Float[np.ndarray, " 3"]
    spread: Float[np.ndarray, " 3"]
    about: Mapping[str, Any]

    def __call__(self, images: Float[np.ndarray, "N pixels"] | Array) -> Float[Array, "N features"]:
        """The features of images, one per row, with pixels from 0 to 1."""
        return self._in_parts(self._features, images)

    def classes(self, images: Float[np.ndarray, "N pixels"] | Array) -> Int[np.ndarray, " N"]:
        """The class of each image."""
        return np.asarray(self._in_parts(self._answers, images)).argmax(axis=1)

    def _in_parts(self, function: Callable[[Array], Array], images: Any) -> Array:
        """A function of images, on `ROWS` of them at a time."""
        import jax.numpy as jnp

        wanted = "(N, 3072): 3 colours of 32 × 32 pixels, as of images('cifar10')"
        fix = "use tasks.images('cifar10', data=…), or features of your own"
        if getattr(getattr(images, "dtype", None), "kind", "O") not in "fiub":
            images = real_array("images", images, wanted=wanted, fix=fix)
        if np.ndim(images) != 2 or np.shape(images)[1] != 3 * 32 * 32:
            raise NeuralRaceError(
                "the residual network is for other images",
                got=f"images of shape {np.shape(images)}",
                wanted=wanted,
                fix=fix,
            )
        there = jnp.asarray(images, jnp.float32)
        parts = []
        for low in range(0, len(there), ROWS):
            part = there[low : low + ROWS]
            short = min(ROWS, len(there)) - len(part)
            parts.append(function(jnp.pad(part, ((0, short), (0, 0))))[: len(part)])
        return jnp.concatenate(parts)

    @functools.cached_property
    def _features(self) -> Callable[[Array], Array]:
        import jax

        def features(images: Array) -> Array:
            there = self._stages(images, 2)
            N, height, width, channels = there.shape
            squares = there.reshape(N, height // POOL, POOL, width // POOL, POOL, channels)
            return squares.mean(axis=(2, 4)).transpose(0, 3, 1, 2).reshape(N, -1)

        return jax.jit(features)

    @functools.cached_property
    def _answers(self) -> Callable[[Array], Array]:
        import jax

        def answers(images: Array) -> Array:
            last = self._stages(images, len(STAGES)).mean(axis=(1, 2))
            return last @ self.readout + self.readout_bias

        return jax.jit(answers)

    def _stages(self, images: Array, count: int) -> Array:
        """What is there after that many stages: (N, height, width, channels)."""
        x = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        x = (x - self.mean) / self.spread
        layer = lambda k, x, stride=1: convolved(x, self.kernels[k], stride) + self.biases[k]
        return residual(layer, x, count)


def residual(layer: Callable[..., Array], x: Array, stages: int) -> Array:
    """The stages of ResNet20 on normalised colours (N, 32, 32, 3).

    `layer(k, x, stride)` is convolution k with its normalisation, from 0 on.
    """
    import jax
    import jax.numpy as jnp

    x = jax.nn.relu(layer(0, x))
    k = 1
    for channels, first in STAGES[:stages]:
        for block in range(BLOCKS):
            stride = first if block == 0 else 1
            inner = layer(k + 1, jax.nn.relu(layer(k, x, stride)))
            past = x[:, ::stride, ::stride]
            more = (channels - past.shape[-1]) // 2
            x = jax.nn.relu(inner + jnp.pad(past, ((0, 0), (0, 0), (0, 0), (more, more))))
            k += 2
    return x


def convolved(x: Array, kernel: Array | np.ndarray, stride: int = 1) -> Array:
    """3 × 3 convolution of (N, height, width, channels), with zeros around the image."""
    import jax
    import jax.numpy as jnp

    return jax.lax.conv_general_dilated(
        x,
        jnp.asarray(kernel, x.dtype),
        (stride, stride),
        ((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def layer_shapes() -> list[tuple[int, int]]:
    """Channels in and out of every convolution."""
    found, now = [(3, STAGES[0][0])], STAGES[0][0]
    for channels, _ in STAGES:
        for _ in range(BLOCKS):
            found += [(now, channels), (channels, channels)]
            now = channels
    return found


def residual_features(path: str | os.PathLike[str] | None = None) -> ResidualNetwork:
    """A residual network trained on CIFAR-10, whose features routing networks are shown (NRR §5).

    **Arguments:** `path` is a file of weights that `tools/train_features.py` wrote; by default the
    one that is kept here. Its `about` holds seed, accuracy on test images, device and
    commit.

    ```python
    >>> from papers.nrr.features import residual_features
    >>> network = residual_features()
    >>> network.about["network"], network.about["accuracy"], network.about["seed"]
    ('ResNet20', 0.9219, 0)

    ```
    """
    if path is None:
        there = importlib.resources.files("papers.nrr").joinpath(WEIGHTS)
        path = Path(str(there))
    arrays = _arrays(path, "weights of a residual network, from tools/train_features.py")
    names = [f"{what}{k}" for k in range(LAYERS) for what in ("kernel", "bias")]
    rest = ["readout", "readout_bias", "mean", "spread"]
    _check_names(path, arrays, [*names, *rest, "about"])
    kernels = tuple(arrays[f"kernel{k}"].astype(np.float32) for k in range(LAYERS))
    for k, (kernel, ends) in enumerate(zip(kernels, layer_shapes(), strict=True)):
        if kernel.shape != (3, 3, *ends):
            raise NeuralRaceError(
                f"{path} holds the weights of another network",
                got=f"kernel{k} of shape {kernel.shape}",
                wanted=f"shape {(3, 3, *ends)}",
                fix="write the file by tools/train_features.py",
            )
    return ResidualNetwork(
        kernels,
        tuple(arrays[f"bias{k}"].astype(np.float32) for k in range(LAYERS)),
        **{name: arrays[name].astype(np.float32) for name in rest},
        about=json.loads(str(arrays["about"])),
    )


def read_features(path: str | os.PathLike[str]) -> Images:
    """Features of your own in place of images, from a NumPy file (`.npz`).

    **Arguments:** the file holds `train` and `test`, one row of features per image, and `labels`
    and `test_labels`, their classes from 0 on. Domains can permute features, but not rotate them.

    ```python
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from papers.nrr.features import read_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "own.npz"
    ...     np.savez(file, train=np.ones((4, 3)), labels=[0, 1, 0, 1],
    ...              test=np.ones((2, 3)), test_labels=[0, 1])
    ...     read_features(file).train.shape
    (4, 3)

    ```
    """
    arrays = _arrays(path, "a file of numpy.savez with train, labels, test and test_labels")
    _check_names(path, arrays, ["train", "labels", "test", "test_labels"])
    for name, classes in (("train", "labels"), ("test", "test_labels")):
        features, labels = arrays[name], arrays[classes]
        real = features.dtype.kind in "fiu" and features.ndim == 2 and features.size > 0
        if not real or not np.isfinite(features).all():
            raise _unfit(
                path,
                f"{name} of shape {features.shape} and {features.dtype}"
                + ", not all finite" * real,
                "finite numbers, one row per image",
            )
        if labels.dtype.kind not in "iu" or labels.shape != (len(features),) or labels.min() < 0:
            raise _unfit(
                path,
                f"{classes} of shape {labels.shape} and {labels.dtype}",
                f"{len(features)} whole numbers from 0 on, one per row of {name}",
            )
    long, short = (arrays[name].shape[1] for name in ("train", "test"))
    if long != short:
        raise _unfit(
            path,
            f"{long} features of each training image, {short} of each test image",
            "as many features for testing as for training",
        )
    return Images(
        Path(path).stem,
        arrays["train"].astype(np.float32),
        arrays["labels"].astype(int),
        arrays["test"].astype(np.float32),
        arrays["test_labels"].astype(int),
        (long,),
    )


def _arrays(path: str | os.PathLike[str], wanted: str) -> dict[str, np.ndarray]:
    """The arrays of a `.npz` file."""
    path = file_path(path, "features.npz")
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise NeuralRaceError(
            f"{path} cannot be read",
            got=f"{type(error).__name__}: {error}" if path.exists() else "no such file",
            wanted=wanted,
            fix="correct the path, or write the file again",
        ) from error


def _check_names(path: Any, arrays: Mapping[str, Any], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in arrays]
    if missing:
        raise _unfit(
            path,
            f"{', '.join(missing[:4])} missing" + " …" * (len(missing) > 4),
            "the arrays " + ", ".join(wanted[:4]) + " …" * (len(wanted) > 4),
        )


def _unfit(path: Any, got: str, wanted: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{path} does not hold what is needed",
        got=got,
        wanted=wanted,
        fix="write it again by numpy.savez, or by tools/train_features.py for weights",
    )
