"""Weights in `.safetensors` and `.npz` files: read with nothing run from them, and written."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import file_path, write_whole
from neuralrace.dataset import Sampled
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.gdln import GDLN, Network
from neuralrace.interop.layers import (
    check_order,
    checked_numbers,
    named_layers,
    natural,
    network_of_layers,
)
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.torch_out import exact_weights, known_network
from neuralrace.losses import SampleLoss
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, Finite, Positive, WeightsLike

KINDS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U8": "<u1",
    "BOOL": "|b1",
}
"""The kinds of numbers that are read, by their names in the header."""

METADATA = "__metadata__"
"""The entry of the header that contains text by name and no array."""

LONGEST_HEADER = 100_000_000
"""The format's own limit for the header, in bytes."""


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a file and its metadata, or an error that says what is wrong with it."""
    content = read_bytes(path)
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(LONGEST_HEADER, len(content) - 8):
        raise _damaged(path, f"a header of {length} bytes in a file of {len(content)}")
    try:
        header = json.loads(content[8 : 8 + length].decode(), object_pairs_hook=_unique)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _damaged(path, f"a header that is not JSON: {error}"[:120]) from error
    if not isinstance(header, dict):
        raise _damaged(path, "a header without names")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged(path, "metadata that is not text")
    body, arrays, end = memoryview(content)[8 + length :], {}, 0
    places = {name: _place(path, name, entry) for name, entry in header.items()}
    for name, (kind, shape, low, high) in sorted(places.items(), key=lambda item: item[1][2:]):
        if low != end or high > len(body):
            raise _damaged(path, f"{name!r} at bytes {low} to {high} of {len(body)}, after {end}")
        arrays[name] = np.frombuffer(body[low:high], kind).reshape(shape)
        end = high
    if end != len(body):
        raise _damaged(path, f"{len(body) - end} bytes that belong to no array")
    return {name: arrays[name] for name in places}, metadata


def _place(path: Path, name: str, entry: object) -> tuple[str, tuple[int, ...], int, int]:
    """Kind, shape, first and last byte of an array, or an error where they do not agree."""
    fields = entry if isinstance(entry, dict) else {}
    kind, shape = fields.get("dtype"), _whole_numbers(fields.get("shape"))
    ends = _whole_numbers(fields.get("data_offsets"))
    if kind not in KINDS:
        raise NeuralRaceError(
            f"the array {name!r} of {path.name!r} is of a kind that is not read",
            got=f"{kind!r:.40}",
            wanted=f"one of {', '.join(KINDS)}",
            fix="save the weights in single or double precision: model.float()",
        )
    if shape is None or ends is None or len(ends) != 2:
        raise _damaged(path, f"{name!r}, described by {entry!r:.80}")
    if ends[1] - ends[0] != np.dtype(KINDS[kind]).itemsize * math.prod(shape):
        raise _damaged(path, f"{ends[1] - ends[0]} bytes for {name!r}, {kind} of shape {shape}")
    return KINDS[kind], tuple(shape), ends[0], ends[1]


def _whole_numbers(values: object) -> list[int] | None:
    """A list of integers that are not negative, or None where this is something else."""
    if isinstance(values, list) and all(type(v) is int and v >= 0 for v in values):
        return values
    return None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name that occurs twice")
    return dict(pairs)


def read_bytes(path: Path) -> bytes:
    """The content of a file, or an error that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise NeuralRaceError(
            f"cannot read the file {str(path)!r}",
            got=error.strerror or type(error).__name__,
            wanted="a file with weights",
            fix="check its name and folder",
        ) from error


def _damaged(path: Path, got: str) -> NeuralRaceError:
    return NeuralRaceError(
        f"{path.name!r} is not a safetensors file, or it is damaged",
        got=got,
        wanted="a header that describes every byte of the file",
        fix="save it again; a file cut off while it was copied looks like this",
    )


def write_safetensors(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> Path:
    """Write arrays in the order given, under a temporary name until all is written."""
    names = {np.dtype(kind): name for name, kind in KINDS.items()}
    header: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    parts, end = [], 0
    for name, array in arrays.items():
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        parts.append(little.tobytes())
        place = [end, end := end + len(parts[-1])]
        header[name] = {
            "dtype": names[little.dtype],
            "shape": list(array.shape),
            "data_offsets": place,
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format aligns the numbers to eight bytes
    return write_whole(path, b"".join([len(text).to_bytes(8, "little"), text, *parts]))


NETWORK = "neuralrace_network"
"""The entry of a file that describes the network of the weights, in JSON."""

SUFFIXES = (".safetensors", ".npz")
"""The kinds of files that are read and written."""

PathLike: TypeAlias = str | os.PathLike[str]


@door
def from_file(
    paths: PathLike | Sequence[PathLike],
    data: Sampled,
    times: ArrayLike | None = None,
    *,
    leak: Finite | None = None,
    loss: str | SampleLoss = "squared",
    learning_rate: Positive | None = None,
    batch_size: Count | None = None,
) -> tuple[Network, Trajectory]:
    """A network and its run from files of weights: one file, or several over training.

    **Naming rule.** Arrays are called `<layer>.weight`, of shape (out, in), and `<layer>.bias`, of
    shape (out,), as in a state dict of PyTorch. Layers are applied in the natural order of their
    names (`2` before `10`), with ReLU between them. Names that differ in more than their numbers do
    not tell the order: where the layers also fit in another order, this is an error. A file of
    `nr.save_weights` also knows its graph and its leak, and comes back as the same network. Loading
    never runs code from a file.

    **Arguments:** `paths`, `.safetensors` or `.npz`; `leak`, the slope below zero, where the file
    does not know it; the others as in `nr.from_torch`.

    ```python
    >>> import tempfile, numpy as np, neuralrace as nr
    >>> net, weights = nr.from_layers([(np.ones((3, 2)), None), (np.ones((1, 3)), None)])
    >>> data = nr.Dataset({"x": [[1.0, 1.0], [-1.0, 0.0]]}, {"y": [[6.0], [1.0]]})
    >>> path = nr.save_weights(net, weights, f"{tempfile.mkdtemp()}/net.safetensors")
    >>> again, run = nr.from_file(path, data)
    >>> again == net, run.loss.tolist()
    (True, [0.25])

    ```
    """
    example = "nr.from_file('net.safetensors', data)"
    given = list(paths) if isinstance(paths, list | tuple) else [paths]
    every = [file_path(path, example) for path in given or [None]]
    read = [read_network(path, leak) for path in every]
    moments = [Moment(repr(p.name), *pair) for p, pair in zip(every, read, strict=True)]
    return imported_run(moments, data, times, Trained("files", loss, learning_rate, batch_size))


@door
def save_weights(net: Network, weights: WeightsLike, path: PathLike) -> Path:
    """Write weights to a `.safetensors` or `.npz` file, whole or not at all; see `from_file`.

    Arrays are called by their edges, bit by bit as they are; the graph goes with them as text.

    ```python
    >>> import tempfile, jax, neuralrace as nr
    >>> net = nr.ReLUNetwork((2, 8, 1))
    >>> path = f"{tempfile.mkdtemp()}/net.npz"
    >>> nr.save_weights(net, net.init(jax.random.key(0)), path).name
    'net.npz'

    ```
    """
    net = known_network(
        net, "are written to files of weights", "np.savez(path, **weights) writes the arrays alone"
    )
    place = _known_suffix(file_path(path, "nr.save_weights(net, weights, 'net.safetensors')"))
    require(
        NETWORK not in net.arch.matrices,
        f"no edge of a network that is written can be called {NETWORK!r}",
        got=f"weights of {listed(net.arch.matrices)}",
        wanted="another name: the file describes its network under this one",
        fix="rename the edge",
    )
    arrays = exact_weights(net, weights)
    graph = net.arch.describe()
    text = json.dumps(graph | ({"leak": net.leak} if isinstance(net, ReLUNetwork) else {}))
    if place.suffix == ".safetensors":
        return write_safetensors(place, arrays, {NETWORK: text})
    return write_whole(place, _npz(arrays | {NETWORK: np.array(text)}))


def read_network(path: Path, leak: float | None) -> tuple[Network, dict[str, np.ndarray]]:
    """The network and the weights of one file."""
    if _known_suffix(path).suffix == ".npz":
        arrays, described = _read_npz(path)
    else:
        arrays, metadata = read_safetensors(path)
        described = metadata.get(NETWORK)
    if described is None:
        by_name = {key: arrays[key] for key in sorted(arrays, key=natural)}
        layers = named_layers(by_name, path.name)
        check_order(layers, path.name)
        return network_of_layers(layers, 0.0 if leak is None else leak)
    require(
        leak is None,
        f"{path.name!r} knows its network, and so its leak",
        got=f"leak={leak!r:.40}",
        wanted="no leak",
        fix="leave out leak",
    )
    net = _described_network(path, described)
    require(
        set(arrays) == set(net.arch.matrices),
        f"{path.name!r} does not contain the weights of its network",
        got=f"arrays {listed(arrays)}",
        wanted=f"arrays {listed(net.arch.matrices)}",
        fix="write it again with nr.save_weights",
    )
    named = {
        e: checked_numbers(f"the weights of edge {e!r}", arrays[e], 2, "(target, source)")
        for e in net.arch.matrices
    }
    return net, exact_weights(net, named)


def _described_network(path: Path, described: str) -> Network:
    try:
        graph = json.loads(described)
        arch = Architecture.from_description(graph)
        return ReLUNetwork(arch, leak=graph["leak"]) if "leak" in graph else GDLN(arch)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NeuralRaceError(
            f"the network of {path.name!r} cannot be read",
            got=str(error).partition("\n")[0][:120],
            wanted="a graph as nr.save_weights writes it",
            fix="write it again with nr.save_weights",
        ) from error


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], str | None]:
    """The arrays of an `.npz` file, and the description of the network if there is one."""
    content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise ValueError("a single array without a name")
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise NeuralRaceError(
            f"{path.name!r} is not an .npz file of numbers, or it is damaged",
            got=f"{type(error).__name__}: {error}"[:160],
            wanted="what np.savez or nr.save_weights wrote",
            fix="save it again; objects that only pickle can read are refused",
        ) from error
    described = arrays.pop(NETWORK, None)
    return arrays, None if described is None else str(described)


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as an `.npz` file. `np.savez` cannot store an array called `file`."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return content.getvalue()


def _known_suffix(path: Path) -> Path:
    if path.suffix not in SUFFIXES:
        pickled = path.suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl")
        raise NeuralRaceError(
            f"{path.name!r} is of a kind that is not read here",
            got=f"the ending {path.suffix!r}",
            wanted=" or ".join(SUFFIXES),
            fix="it may run code when it is read: use your own PyTorch, "
            "nr.from_torch(torch.load(path, weights_only=True), data)"
            if pickled
            else "save the weights as .safetensors or .npz",
        )
    return path
