"""Labelled images from the standard files: MNIST, CIFAR-10, and digits that need no file."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, final

import numpy as np
from jaxtyping import Float32, Int, UInt8

from neuralrace.checks import file_path, generator
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, require
from neuralrace.types import Count, Key

FOLDER = "NEURALRACE_DATA"
"""The environment variable that names the folder of the files."""

MNIST = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
"""The files of MNIST, and the MD5 sum of each when it is not compressed."""

CIFAR_BINARY = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
"""The files of CIFAR-10 in its binary version: one byte for the class, then 3 × 32 × 32."""

CIFAR_SHEETS = tuple(name.replace(".bin", ".png") for name in CIFAR_BINARY)
"""CIFAR-10 as PNG sheets: one image per row of 1024 pixels."""

CIFAR_LABELS = (
    ("train_labels.json", "train_lables.json"),
    ("test_labels.json", "test_lables.json"),
)
"""The classes of the sheets as lists in JSON; the second spelling is that of a known package."""

SHEET = 10_000
"""Images in a file of CIFAR-10; there are five files for training and one for testing."""

CIFAR = {"train": "33586133bdd401ef94727cadb53d38db", "test": "803d5f7f4d78ea53de84dbe85f74fb6d"}
"""The MD5 sums of all training and test images in the binary version, in the order of the files."""

USUAL = {
    "mnist": "the page of Yann LeCun's MNIST database and its mirrors; TensorFlow, PyTorch and "
    "npm packages also ship them",
    "cifar10": "the CIFAR page of the University of Toronto ('binary version', unpacked)",
}
"""Where people usually get the files."""

TESTED = 5
"""Of the digits of scikit-learn, which have no test set, every `TESTED`-th image is one."""


@final
@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images, for training and for testing.

    `train` and `test` hold one image per row, with pixels from 0 to 1; `labels` and `test_labels`
    the class of each. `shape` is (height, width) or (channels, height, width) of an image.

    ```python
    >>> from neuralrace import tasks
    >>> digits = tasks.images("digits")
    >>> digits.train.shape, digits.test.shape, digits.shape, digits.classes
    ((1437, 64), (360, 64), (8, 8), 10)
    >>> digits.take(100, 50).train.shape
    (100, 64)

    ```
    """

    name: str
    train: Float32[np.ndarray, "N pixels"]
    labels: Int[np.ndarray, " N"]
    test: Float32[np.ndarray, "T pixels"]
    test_labels: Int[np.ndarray, " T"]
    shape: tuple[int, ...]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(max(self.labels.max(), self.test_labels.max())) + 1

    @door
    def take(
        self, train: Count | None = None, test: Count | None = None, *, key: Key = 0
    ) -> Images:
        """That many images for training and testing, drawn by `key`; None keeps all."""
        rng = generator(key)
        chosen = []
        for what, count, there in (("train", train, self.train), ("test", test, self.test)):
            number = len(there) if count is None else count
            require(
                number <= len(there),
                f"there are not that many {what} images",
                got=f"{what}={number}",
                wanted=f"at most {len(there)}",
                fix=f"leave {what} out to keep all",
            )
            whole = number == len(there)
            chosen.append(np.arange(number) if whole else rng.permutation(len(there))[:number])
        first, second = chosen
        return replace(
            self,
            train=self.train[first],
            labels=self.labels[first],
            test=self.test[second],
            test_labels=self.test_labels[second],
        )


@door
def images(
    name: Literal["mnist", "cifar10", "digits"] = "digits",
    data: str | os.PathLike[str] | None = None,
) -> Images:
    """Labelled images: `"mnist"`, `"cifar10"`, or `"digits"`, which need no file.

    **Arguments:** `data` is the folder that holds the files; by default the one that the
    environment variable `NEURALRACE_DATA` names. A folder in it that is called like `name` is
    looked into as well. Nothing is downloaded. Checksums must be those of the published data.

    - `"mnist"`: the four idx files, compressed (`.gz`) or not.
    - `"cifar10"`: the six files of the binary version, or six PNG sheets with 10 000 rows of 1024
      pixels and the classes in `train_labels.json` and `test_labels.json`.
    - `"digits"`: 1797 images of 8 × 8 pixels, part of scikit-learn; one in five is for testing.

    ```python
    >>> from neuralrace import tasks
    >>> tasks.images("digits").labels[:5]
    array([1, 2, 3, 4, 6])
    >>> tasks.images("mnist", data="nowhere")
    Traceback (most recent call last):
    neuralrace.errors.NeuralRaceError: the files of mnist were not found.
      got:    'train-images-idx3-ubyte' missing in nowhere, nowhere/mnist
      wanted: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, \
t10k-labels-idx1-ubyte, each as it is or with .gz
      fix:    put them there; people usually get them from the page of Yann LeCun's MNIST \
database and its mirrors; TensorFlow, PyTorch and npm packages also ship them. \
images('digits') needs no file

    ```
    """
    return _READERS[name](_folders(name, data))


def _folders(name: str, data: str | os.PathLike[str] | None) -> list[Path]:
    """Where the files may be; empty where no folder was named."""
    given = os.environ.get(FOLDER) if data is None else os.fspath(data)
    return [] if not given else [Path(given), Path(given) / name]


# ---- the sets -----------------------------------------------------------------------------------


def _digits(folders: list[Path]) -> Images:
    from sklearn.datasets import load_digits

    data, classes = map(np.asarray, load_digits(return_X_y=True))
    pixels = (data / 16).astype(np.float32)
    tested = np.arange(len(pixels)) % TESTED == 0
    return Images(
        "digits",
        pixels[~tested],
        classes[~tested],
        pixels[tested],
        classes[tested],
        (8, 8),
    )


def _mnist(folders: list[Path]) -> Images:
    paths = [_found("mnist", file, folders, list(MNIST)) for file in MNIST]
    parts = [
        read_idx(path, checksum=checksum)
        for path, checksum in zip(paths, MNIST.values(), strict=True)
    ]
    train, labels, test, test_labels = parts
    flat = lambda a: (a.reshape(len(a), -1) / np.float32(255)).astype(np.float32)
    return Images(
        "mnist",
        flat(train),
        labels.astype(int),
        flat(test),
        test_labels.astype(int),
        train.shape[1:],
    )


def _cifar10(folders: list[Path]) -> Images:
    sheets = any((folder / CIFAR_SHEETS[0]).exists() for folder in folders)
    read = _cifar_sheets if sheets else _cifar_binary
    parts = read(folders)
    for (part, checksum), (pixels, labels) in zip(CIFAR.items(), parts, strict=True):
        whole = np.concatenate([labels.astype(np.uint8)[:, None], pixels], axis=1)
        _check_sum(f"the {part} images of cifar10", whole.tobytes(), checksum)
    (train, labels), (test, test_labels) = parts
    scaled = lambda a: (a / np.float32(255)).astype(np.float32)
    return Images(
        "cifar10",
        scaled(train),
        labels.astype(int),
        scaled(test),
        test_labels.astype(int),
        (3, 32, 32),
    )


_READERS: Mapping[str, Callable[[list[Path]], Images]] = {
    "digits": _digits,
    "mnist": _mnist,
    "cifar10": _cifar10,
}

Part = tuple[UInt8[np.ndarray, "_ pixels"], Int[np.ndarray, " _"]]
"""Pixels, one image per row, and the class of each."""


def _cifar_binary(folders: list[Path]) -> tuple[Part, Part]:
    rows = []
    for file in CIFAR_BINARY:
        path = _found("cifar10", file, folders, list(CIFAR_BINARY))
        content = _content(path)
        if len(content) != SHEET * 3073:
            raise _wrong_size(path, f"{len(content)} bytes", f"{SHEET * 3073} bytes")
        rows.append(np.frombuffer(content, np.uint8).reshape(-1, 3073))
    train, test = np.concatenate(rows[:5]), rows[5]
    return (train[:, 1:], train[:, 0].astype(int)), (test[:, 1:], test[:, 0].astype(int))


def _cifar_sheets(folders: list[Path]) -> tuple[Part, Part]:
    from PIL import Image

    sheets = []
    for file in CIFAR_SHEETS:
        path = _found("cifar10", file, folders, list(CIFAR_SHEETS))
        try:
            with Image.open(path) as sheet:
                pixels = np.asarray(sheet.convert("RGB"))
        except (OSError, SyntaxError) as error:
            raise _wrong_size(path, f"{type(error).__name__}: {error}", "a PNG sheet") from error
        if pixels.shape != (SHEET, 1024, 3):
            raise _wrong_size(path, f"shape {pixels.shape}", f"shape ({SHEET}, 1024, 3)")
        sheets.append(pixels.transpose(0, 2, 1).reshape(SHEET, 3072))
    labels = [
        _labels(names, folders, n)
        for names, n in zip(CIFAR_LABELS, (5 * SHEET, SHEET), strict=True)
    ]
    return (np.concatenate(sheets[:5]), labels[0]), (sheets[5], labels[1])


def _labels(names: tuple[str, ...], folders: list[Path], count: int) -> Int[np.ndarray, " N"]:
    there = [folder / name for folder in folders for name in names if (folder / name).exists()]
    path = there[0] if there else _found("cifar10", names[0], folders, [names[0]])
    try:
        labels = np.asarray(json.loads(path.read_text()))
    except ValueError as error:
        raise _wrong_size(path, "no JSON", f"a list of {count} classes") from error
    if labels.shape != (count,) or labels.dtype.kind != "i":
        raise _wrong_size(path, f"shape {labels.shape}", f"a list of {count} classes")
    return labels


# ---- files --------------------------------------------------------------------------------------


@door
def read_idx(
    path: str | os.PathLike[str], *, checksum: str | None = None
) -> UInt8[np.ndarray, ...]:
    """An array of bytes from a file in the idx format of MNIST, compressed (`.gz`) or not.

    **Arguments:** `checksum`, where given, is the MD5 sum that the uncompressed file must have.

    ```python
    >>> import pathlib, tempfile
    >>> from neuralrace import tasks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "labels"
    ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    ...     tasks.read_idx(file)
    array([5, 0, 4], dtype=uint8)

    ```
    """
    path = file_path(path, "train-labels-idx1-ubyte.gz")
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != 8:
        raise _wrong_size(path, f"a file that begins with {content[:4]!r}", "an idx file of bytes")
    rank = content[3]
    begin = 4 + 4 * rank
    shape = tuple(np.frombuffer(content[4:begin], ">u4").tolist())
    if len(shape) != rank or len(content) - begin != int(np.prod(shape)):
        raise _wrong_size(
            path, f"{len(content)} bytes", f"{begin + int(np.prod(shape))} bytes for shape {shape}"
        )
    if checksum is not None:
        _check_sum(str(path), content, checksum)
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


def _content(path: Path) -> bytes:
    """The bytes of a file, uncompressed."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, zlib.error) as error:
        raise _wrong_size(path, f"{type(error).__name__}: {error}", "a whole file") from error


def _found(name: str, file: str, folders: list[Path], wanted: list[str]) -> Path:
    """The path of a file, as it is or compressed, or an error that says what is wanted."""
    for folder in folders:
        for path in (folder / file, folder / f"{file}.gz"):
            if path.is_file():
                return path
    places = ", ".join(map(str, folders))
    raise NeuralRaceError(
        f"the files of {name} were not found",
        got=f"{file!r} missing in {places}" if folders else "no folder",
        wanted=f"{', '.join(wanted)}, each as it is or with .gz",
        fix=("put them there" if folders else f"name their folder: data=… or {FOLDER}=…")
        + f"; people usually get them from {USUAL[name]}. images('digits') needs no file",
    )


def _check_sum(what: str, content: bytes, checksum: str) -> None:
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    require(
        found == checksum,
        f"the checksum of {what} is wrong",
        got=found,
        wanted=checksum,
        fix="get the file again: it was changed or damaged on the way",
    )


def _wrong_size(path: Path, got: str, wanted: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{path} cannot be read",
        got=got,
        wanted=wanted,
        fix="get the file again: it may be truncated, or another kind of file",
    )
