"""How a trajectory came about: its settings as JSON, and the versions of what made it."""

from __future__ import annotations

import functools
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from neuralrace import __version__
from neuralrace.checks import by_name
from neuralrace.errors import NeuralRaceError


def with_versions(settings: Mapping[str, object] | None) -> dict[str, Any]:
    """A copy of settings that JSON can hold, with the versions of what made the numbers."""
    named = {} if settings is None else by_name("settings", settings, "for example {'seed': 0}")
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
