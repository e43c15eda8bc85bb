"""The package's own errors: what was got, what was wanted, what usually fixes it."""

from __future__ import annotations

import difflib
import operator
import sys
import warnings
from collections.abc import Iterable

__all__ = [
    "NeuralRaceError",
    "check_kind",
    "install_extra",
    "listed",
    "nearest_name",
    "require",
    "spelled",
    "warn_user",
    "whole_number",
]


class NeuralRaceError(ValueError):
    """An input that cannot mean what was asked, with the way to fix it.

    The message replays the call (names, shapes, values), so that it can be fixed without a
    debugger. Being a `ValueError`, it is caught wherever those are.

    **Arguments:** `what` is wrong, `got` what was passed, `wanted` what would have been right,
    `fix` what usually fixes it.

    ```python
    >>> from neuralrace.errors import NeuralRaceError
    >>> print(NeuralRaceError("node 'h' has no neurons", got=0, wanted="a positive size",
    ...                       fix="give it at least one neuron"))
    node 'h' has no neurons.
      got:    0
      wanted: a positive size
      fix:    give it at least one neuron

    ```
    """

    def __init__(self, what: str, *, got: object, wanted: object, fix: str) -> None:
        self.what, self.got, self.wanted, self.fix = what, got, wanted, fix
        super().__init__(f"{what}.\n  got:    {got}\n  wanted: {wanted}\n  fix:    {fix}")

    def __reduce__(self) -> tuple:
        return _rebuild, (type(self), self.what, str(self.got), str(self.wanted), self.fix)


def _rebuild(
    kind: type[NeuralRaceError], what: str, got: str, wanted: str, fix: str
) -> NeuralRaceError:
    return kind(what, got=got, wanted=wanted, fix=fix)


def require(ok: object, what: str, *, got: object, wanted: object, fix: str) -> None:
    """Raise the package's error, with these four parts, unless something holds.

    ```python
    >>> from neuralrace.errors import require
    >>> require(1 > 0, "steps must be positive", got=1, wanted="at least 1", fix="steps=1000")

    ```
    """
    if not ok:
        raise NeuralRaceError(what, got=got, wanted=wanted, fix=fix)


def install_extra(name: str) -> str:
    """How to install the packages of an extra: from a clone, because no index has a release yet.

    ```python
    >>> from neuralrace.errors import install_extra
    >>> install_extra("study")
    "pip install '.[study]' in a clone of the repository"

    ```
    """
    return f"pip install '.[{name}]' in a clone of the repository"


def listed(names: object) -> str:
    """Names as they are shown in a message: sorted, quoted, or a dash when there are none."""
    return ", ".join(repr(name) for name in sorted(map(str, names))) or "-"  # type: ignore[call-overload]


def nearest_name(name: object, known: Iterable[object]) -> str | None:
    """The name among those known that is most like the one given, if any is alike.

    ```python
    >>> from neuralrace.errors import nearest_name
    >>> nearest_name("hiden", ["x", "hidden", "y"])
    'hidden'

    ```
    """
    close = difflib.get_close_matches(str(name), list(map(str, known)), n=1, cutoff=0.5)
    return close[0] if close else None


def spelled(name: object, known: Iterable[object], fix: str) -> str:
    """What usually fixes an unknown name: the nearest known one, if any is alike, and `fix`.

    ```python
    >>> from neuralrace.errors import spelled
    >>> spelled("hiden", ["x", "hidden"], "add the node to sizes")
    "did you mean 'hidden'? If not: add the node to sizes"
    >>> spelled("q", ["x", "hidden"], "add the node to sizes")
    'add the node to sizes'

    ```
    """
    close = nearest_name(name, known)
    return fix if close is None else f"did you mean {close!r}? If not: {fix}"


def whole_number(what: str, value: object, *, least: int = 1, fix: str) -> int:
    """`value` as an integer of at least `least`, or an error that says `what` it is.

    NumPy's integers are taken, booleans and floats are not.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # an array, or no number at all
        number = None
    if number is None or number < least:
        raise NeuralRaceError(
            f"{what} must be a whole number of at least {least}",
            got=f"{value!r:.80}",
            wanted=f"an integer of at least {least}",
            fix=fix,
        )
    return number


def check_kind(what: str, value: object, kind: type | tuple[type, ...], fix: str) -> None:
    """Raise where an argument is of another kind than was asked for."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise NeuralRaceError(
            f"{what} is of the wrong kind",
            got=type(value).__name__,
            wanted=" or ".join(k.__name__ for k in kinds),
            fix=fix,
        )


def warn_user(message: str) -> None:
    """Warn with the line of the user's code that led here, not one of the package's own."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _is_ours(module: str) -> bool:
    """Whether a module belongs to the package, or to JAX and equinox that call back into it."""
    return module.partition(".")[0] in ("neuralrace", "jax", "equinox", "jaxtyping", "beartype")
