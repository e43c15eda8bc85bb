"""Checks of arguments that many public functions share: numbers, arrays, names, switches, keys.

Each returns the argument as the function wants it, or raises an error that names the argument,
says what was got and what was wanted, and how to fix it.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from neuralrace.errors import (
    NeuralRaceError,
    check_kind,
    listed,
    require,
    spelled,
    whole_number,
)

if TYPE_CHECKING:
    import jax

    from neuralrace.types import Key

__all__ = [
    "by_name",
    "check_known",
    "check_subsets",
    "entries",
    "file_path",
    "generator",
    "is_traced",
    "kind_of",
    "list_of_names",
    "not_overwritten",
    "one_of",
    "plain_array",
    "plain_number",
    "put_file",
    "random_key",
    "real_array",
    "real_number",
    "shown",
    "switch",
    "writable_folder",
    "write_whole",
]

SHOWN = 80
"""Characters of a value that a message shows."""


MOST_IN_SUBSETS = 12
"""The most values of which all subsets are made: 4096."""


def shown(value: object) -> str:
    """A value as it appears in a message: its kind, and the beginning of what it is."""
    return f"{type(value).__name__} {value!r:.{SHOWN}}"


def check_subsets(what: str, count: int) -> None:
    """Raise where something has so many values that its 2ⁿ subsets would fill the memory."""
    require(
        count <= MOST_IN_SUBSETS,
        f"{what} has too many values for all of their subsets",
        got=f"{count} values, which have 2^{count} subsets",
        wanted=f"at most {MOST_IN_SUBSETS} values",
        fix="merge some of the values, or build the subsets that you need with data.mask(…)",
    )


def is_traced(value: object) -> bool:
    """Whether JAX is tracing this value, as under `jit`, so that its entries cannot be read."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def check_known(
    what: str, values: Mapping[str, object], fix: str = "call this outside jit, grad and vmap"
) -> None:
    """Raise where JAX is tracing one of these arrays."""
    for name, value in values.items():
        require(
            not is_traced(value),
            f"{what} must be known before tracing",
            got=f"{name!r}, an array that JAX is tracing",
            wanted="arrays whose entries can be read",
            fix=fix,
        )


def kind_of(array: object) -> str:
    """The kind of an array's entries in NumPy's letters, or "" for random keys and others."""
    return getattr(getattr(array, "dtype", None), "kind", "")


def is_number(value: Any) -> bool:
    """Whether this is one real number, which may be traced; booleans are none."""
    if isinstance(value, bool | np.bool_ | str | bytes) or np.ma.is_masked(value):
        return False
    if hasattr(value, "dtype"):
        floating = kind_of(value) in "fiu" or "float" in str(value.dtype)  # such as bfloat16
        return value.shape == () and kind_of(value) != "" and floating
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def is_integer(value: Any) -> bool:
    """Whether this is one integer, which may be traced; booleans are none."""
    if hasattr(value, "dtype"):
        return value.shape == () and kind_of(value) in ("i", "u")
    return hasattr(value, "__index__") and not isinstance(value, bool)


# ---- numbers ------------------------------------------------------------------------------------


def real_number(
    what: str,
    value: object,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    infinite: bool = False,
    wanted: str | None = None,
    fix: str,
) -> float:
    """`value` as a float between the bounds; NaN never, infinity only where `infinite` is set.

    Python's and NumPy's numbers and arrays without axes are taken; booleans and text are not.
    """
    number = _as_float(value)
    inside = least <= number <= most  # never for NaN
    inside &= number > above or above == -math.inf
    inside &= number < below or below == math.inf
    if not inside or not (infinite or math.isfinite(number)):
        limits = {"at least": least, "above": above, "at most": most, "below": below}
        within = " and ".join(f"{k} {v:g}" for k, v in limits.items() if math.isfinite(v))
        alone = within == "above 0"
        raise NeuralRaceError(
            f"{what} must be a positive number"
            if alone
            else f"{what} must be one {'' if infinite else 'finite '}number {within}".rstrip(),
            got="a value that JAX is tracing" if is_traced(value) else f"{value!r:.{SHOWN}}",
            wanted=wanted or f"one {'' if infinite else 'finite '}number {within}".rstrip(),
            fix=fix,
        )
    return number


def _as_float(value: Any) -> float:
    """A real number as a float, or NaN where it is something else."""
    if isinstance(value, bool | str | bytes) or is_traced(value) or np.ma.is_masked(value):
        return math.nan
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        return math.nan
    if getattr(value, "shape", ()) != ():
        return math.nan
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind not in "fiu" and "float" not in str(getattr(value, "dtype", "")):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def plain_number(value: object) -> Any:
    """An array without axes as the number that it holds; anything else, traced too, unchanged."""
    array: Any = value
    plain = kind_of(value) in ("f", "i", "u") and np.ndim(array) == 0 and not is_traced(value)
    return array.item() if plain else value


# ---- arrays -------------------------------------------------------------------------------------


def plain_array(what: str, value: object, *, wanted: str, fix: str) -> np.ndarray:
    """`value` as a NumPy array whose entries can be read: not ragged, masked or traced."""
    if np.ma.is_masked(value):
        raise NeuralRaceError(
            f"{what} has masked entries",
            got=f"{np.ma.count_masked(value)} masked entries",
            wanted=wanted,
            fix="drop them, or fill them in: array.filled(…)",
        )
    if is_traced(value):
        raise NeuralRaceError(
            f"{what} must be known before tracing",
            got="an array that JAX is tracing",
            wanted=wanted,
            fix="call this outside jit, grad and vmap, or pass it as a NumPy array",
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise NeuralRaceError(
            f"{what} is no array",
            got=f"{shown(value)}: {str(error).partition('.')[0]}",
            wanted=wanted,
            fix=fix,
        ) from error


def real_array(
    what: str, value: object, *, wanted: str = "an array of numbers", fix: str
) -> np.ndarray:
    """`value` as a NumPy array in float64: numeric and real, of any shape, NaN allowed."""
    array = plain_array(what, value, wanted=wanted, fix=fix)
    floats = array.dtype.kind in "fiub" or "float" in array.dtype.name
    if not floats:
        raise NeuralRaceError(
            f"{what} must hold real numbers",
            got=f"{shown(value)} of dtype {array.dtype}",
            wanted=wanted,
            fix="take the real part" if array.dtype.kind == "c" else fix,
        )
    return array.astype(np.float64)


def entries(what: str, value: object, fix: str = "pass a list or a tuple") -> list[Any]:
    """`value`, a list, a tuple or whatever else can be gone through, as a list."""
    without_axes = getattr(value, "shape", None) == ()
    if not isinstance(value, Iterable) or isinstance(value, str | bytes) or without_axes:
        raise NeuralRaceError(f"{what} must be a list", got=shown(value), wanted="a list", fix=fix)
    if is_traced(value):
        plain_array(what, value, wanted="a list", fix=fix)
    return list(value)


# ---- names, switches, mappings ------------------------------------------------------------------


def one_of(what: str, value: object, among: Iterable[str], fix: str) -> str:
    """`value`, a name that is among those known, or an error that lists them."""
    known = tuple(among)
    if not isinstance(value, str) or value not in known:
        raise NeuralRaceError(
            f"unknown {what} {value!r:.{SHOWN}}",
            got=f"{value!r:.{SHOWN}}",
            wanted=f"one of {listed(known)}",
            fix=spelled(value, known, fix),
        )
    return value


def switch(what: str, value: object) -> bool:
    """`value` as True or False; 1 and 0 are taken too."""
    if not isinstance(value, bool | np.bool_ | int) or int(value) not in (0, 1):
        raise NeuralRaceError(
            f"{what} is either True or False",
            got=f"{value!r:.{SHOWN}}",
            wanted="True or False",
            fix=f"{what}=True or {what}=False",
        )
    return bool(value)


def by_name(what: str, value: Any, fix: str) -> Mapping[str, Any]:
    """`value`, a mapping whose keys are names."""
    check_kind(what, value, Mapping, fix)
    odd = [key for key in value if not isinstance(key, str)]
    if odd:
        raise NeuralRaceError(
            f"the names in {what} must be text",
            got=shown(odd[0]),
            wanted="keys of type str",
            fix=fix,
        )
    return value


def list_of_names(what: str, value: object) -> list[str]:
    """`value` as a list of names; a single name is refused, since its letters are not meant."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    names = entries(what, value) if several else []
    if not several or not all(isinstance(name, str) for name in names):
        raise NeuralRaceError(
            f"{what} must be a list of names",
            got=shown(value),
            wanted="a list of text",
            fix=f"for example {what}=['a', 'b']",
        )
    return names


def file_path(path: object, example: str) -> Path:
    """`path` as a path of a file."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise NeuralRaceError(
            "this is no path of a file",
            got=shown(path),
            wanted="a text or a pathlib.Path",
            fix=f"for example {example}",
        )
    return Path(path)


def not_overwritten(path: Path, kept: Iterable[Path]) -> Path:
    """A path to write to, or an error where it is one of the files that are to be kept."""
    require(
        path.resolve() not in {each.resolve() for each in kept},
        f"the report would overwrite {path.name!r}",
        got=str(path),
        wanted="another folder than that of the study",
        fix="choose one with --out, or report(folder)",
    )
    return path


def writable_folder(folder: Path, what: str = "the folder") -> Path:
    """A folder, made if it is not there, in which files can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NeuralRaceError(
            f"cannot write to {what} {str(folder)!r}",
            got=error.strerror or type(error).__name__,
            wanted="a folder that is writable, or that can be made",
            fix="choose another folder, such as --out out/figures",
        ) from error
    return folder


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all: beside it first, then moved into place."""
    require(
        path.name and (path.is_file() or not path.exists()),
        f"{str(path)!r} is not a file",
        got="the path of a folder or of a device",
        wanted="the path of a file",
        fix="name the file: folder / 'run.nc'",
    )
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise NeuralRaceError(
            f"cannot write to the folder {str(path.parent)!r}",
            got=f"{error.strerror or error}, writing {path.name!r} ({len(content)} bytes)",
            wanted="a folder that exists, is writable and has room",
            fix="make the folder, free some space or choose another; call again",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return path


def put_file(path: Path, content: bytes) -> Path:
    """Write a file, in a folder that is made where it is missing."""
    return write_whole(writable_folder(path.parent) / path.name, content)


# ---- random keys ---------------------------------------------------------------------------------


def random_key(key: Key | None, what: str = "this") -> jax.Array:
    """A key of `jax.random`, or the one that an integer seed stands for."""
    import jax
    import jax.numpy as jnp

    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape == ():
            return key
    elif getattr(key, "dtype", None) == np.uint32 and getattr(key, "shape", None) == (2,):
        return key  # type: ignore[return-value]  # a key of the older kind
    elif _is_seed(key):
        return jax.random.key(int(key))
    raise NeuralRaceError(
        f"{what} needs a random key",
        got=f"{key!r:.{SHOWN}}",
        wanted="one key of jax.random, or a seed",
        fix="for example key=0 or key=jax.random.key(0)",
    )


def _is_seed(key: Any) -> TypeGuard[int]:
    """Whether this is an integer that JAX makes a key of."""
    integral = isinstance(key, int | np.integer) and not isinstance(key, bool)
    kind = getattr(getattr(key, "dtype", None), "kind", "")
    zero_axes = getattr(key, "shape", None) == () and kind in ("i", "u")
    return (integral or zero_axes) and (is_traced(key) or -(2**31) <= int(key) < 2**32)


def generator(key: Key, what: str = "this") -> np.random.Generator:
    """A NumPy generator from a JAX key or an integer of at least 0.

    ```python
    >>> from neuralrace.checks import generator
    >>> bool(generator(0).normal() == generator(0).normal())
    True

    ```
    """
    if hasattr(key, "__index__") and not hasattr(key, "dtype"):
        return np.random.default_rng(whole_number("key", key, least=0, fix="for example key=0"))
    import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(random_key(key, what))).ravel())
