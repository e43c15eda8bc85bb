"""Weights in `.safetensors` and `.npz` files: read with nothing run from them, and written."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from neuralrace.architecture import Architecture
from neuralrace.checks import file_path
from neuralrace.dataset import Dataset
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
from neuralrace.interop.safetensors import (
    read_bytes,
    read_safetensors,
    write_safetensors,
    write_whole,
)
from neuralrace.interop.torch_out import exact_weights, known_network
from neuralrace.losses import SampleLoss
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory
from neuralrace.types import ArrayLike, Count, WeightsLike

NETWORK = "neuralrace_network"
"""The entry of a file that describes the network of the weights, in JSON."""

SUFFIXES = (".safetensors", ".npz")
"""The kinds of files that are read and written."""

PathLike: TypeAlias = str | os.PathLike[str]


@door
def from_file(
    paths: PathLike | Sequence[PathLike],
    data: Dataset,
    times: ArrayLike | None = None,
    *,
    leak: float | None = None,
    loss: str | SampleLoss = "squared",
    learning_rate: float | None = None,
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
        NETWORK not in net.arch.edges,
        f"no edge of a network that is written can be called {NETWORK!r}",
        got=f"edges {listed(net.arch.edges)}",
        wanted="another name: the file describes its network under this one",
        fix="rename the edge",
    )
    arrays = exact_weights(net, weights)
    graph = {"sizes": dict(net.arch.sizes), "edges": dict(net.arch.edges)}
    text = json.dumps(graph | ({"leak": net.leak} if isinstance(net, ReLUNetwork) else {}))
    try:
        if place.suffix == ".safetensors":
            return write_safetensors(place, arrays, {NETWORK: text})
        return write_whole(place, _npz(arrays | {NETWORK: np.array(text)}))
    except OSError as error:
        raise NeuralRaceError(
            f"cannot write {str(place)!r}",
            got=error.strerror or type(error).__name__,
            wanted="a folder that exists and is writable",
            fix="make the folder first",
        ) from error


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
    if leak is not None:
        raise NeuralRaceError(
            f"{path.name!r} knows its network, and so its leak",
            got=f"leak={leak!r:.40}",
            wanted="no leak",
            fix="leave out leak",
        )
    net = _described_network(path, described)
    if set(arrays) != set(net.arch.edges):
        raise NeuralRaceError(
            f"{path.name!r} does not contain the weights of its network",
            got=f"arrays {listed(arrays)}",
            wanted=f"arrays {listed(net.arch.edges)}",
            fix="write it again with nr.save_weights",
        )
    named = {
        e: checked_numbers(f"the weights of edge {e!r}", arrays[e], 2, "(target, source)")
        for e in net.arch.edges
    }
    return net, exact_weights(net, named)


def _described_network(path: Path, described: str) -> Network:
    try:
        graph = json.loads(described)
        edges = {edge: (source, target) for edge, (source, target) in graph["edges"].items()}
        arch = Architecture(graph["sizes"], edges)
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
