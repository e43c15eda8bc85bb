"""Files in the safetensors format: read with every length checked, written whole or not at all.

A file is eight bytes with the length of a header, the header in JSON (for every array its kind of
number, shape and place), and then the numbers themselves. Nothing in it can run.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neuralrace.errors import NeuralRaceError

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


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all: a reader never sees a part of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path
