"""What stands beside the arrays of a trajectory: names, settings as JSON, versions."""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from neuralrace import __version__
from neuralrace.errors import NeuralRaceError, listed, require

RESERVED = ("final", "loss", "sample_weight", "steps", "time")
"""Names that every trajectory uses for itself."""


@functools.lru_cache(maxsize=4096)
def check_name(name: object) -> None:
    """Raise unless a recorded value, or an axis, of this name can be saved and read back.

    Dots join nested names in a file (`outputs.y`), slashes are folders of HDF5, and `RESERVED`
    names are taken.

    ```python
    >>> from neuralrace.trajectory import check_name
    >>> check_name("singular_values")
    >>> check_name("a/b")
    Traceback (most recent call last):
    neuralrace.errors.NeuralRaceError: the name 'a/b' cannot be saved.
      got:    'a/b'
      wanted: printable text without dots and slashes
      fix:    rename it, for example to 'a_b'

    ```
    """
    if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set("./"):
        text = str(name).translate(str.maketrans("./", "__")).strip()
        raise NeuralRaceError(
            f"the name {name!r} cannot be saved",
            got=repr(name),
            wanted="printable text without dots and slashes",
            fix=f"rename it, for example to {text if text.isprintable() and text else 'value'!r}",
        )
    require(
        name not in RESERVED,
        f"the name {name!r} is taken",
        got=repr(name),
        wanted=f"a name other than {listed(RESERVED)}",
        fix=f"rename it, for example to 'my_{name}'",
    )


def check_names(values: Mapping[str, object], axes: Mapping[str, object]) -> None:
    """Check every recorded name, inner ones included, and that no axis has the same name."""
    for name in (*axes, *values):
        check_name(name)
    both = sorted(set(axes) & set(values))
    if both:
        raise NeuralRaceError(
            f"an axis and a recorded value are both called {both[0]!r}",
            got=f"axes {listed(axes)}; values {listed(values)}",
            wanted="different names",
            fix="rename the recorded value",
        )
    for value in values.values():
        _check_inner(value)


def _check_inner(value: object) -> None:
    """Inner names may be any that can be saved: `losses.loss` is unambiguous."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in RESERVED:
                check_name(name)
            _check_inner(inner)


def with_versions(settings: Mapping[str, object] | None) -> dict[str, Any]:
    """A copy of settings that JSON can hold, with the versions of what made the numbers."""
    named = {} if settings is None else settings
    try:
        return json.loads(json.dumps({"versions": versions()} | dict(named)))
    except (TypeError, ValueError) as error:
        raise NeuralRaceError(
            "the settings cannot be stored",
            got=str(error),
            wanted="numbers, text, lists and dictionaries of them",
            fix="convert arrays with .tolist() and other values with str()",
        ) from error


@functools.cache
def versions() -> dict[str, str]:
    """The versions of everything that decides a number."""
    found = {"neuralrace": __version__, "python": platform.python_version()}
    for package in ("jax", "jaxlib", "equinox", "diffrax", "optax", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    """Nested dictionaries as one, names joined by dots."""
    found: dict[str, np.ndarray] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = np.asarray(value)
    return found


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of `flat`."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = value
    return tree
