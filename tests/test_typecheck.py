"""What the tests check at run time: kinds and shapes of the first calls of every function."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Float

import neuralrace as nr
from tests import typecheck


def _halved(values: Float[np.ndarray, " n"], count: int) -> Float[np.ndarray, " n"]:
    return np.full(count, values[0] / 2)


def test_the_package_is_checked():
    distance = nr.analysis.kernel_distance
    code = inspect.unwrap(distance).__code__
    assert distance.__code__ is not code
    assert distance(np.eye(2), np.eye(2)) == pytest.approx(0, abs=1e-7)
    assert typecheck.calls[id(code)] == 1


@pytest.mark.parametrize("wrong", [(np.ones((3, 1)), 3), (np.ones(3), 3.5), (np.ones(3), 2)])
def test_the_first_calls_are_checked_whatever_was_called_before(wrong):
    """Kinds and shapes of what goes in, and that what comes out has the shape it should."""
    halved = typecheck.jaxtyped(typechecker=None)(_halved)
    for _ in range(2):
        for _ in range(typecheck.ENOUGH - 1):
            halved(np.ones(3), 3)
        with pytest.raises(TypeError, match="_halved"):
            halved(*wrong)
        assert typecheck.calls[id(_halved.__code__)] == typecheck.ENOUGH
        assert len(halved(np.ones(3), 2)) == 2
        typecheck.calls.clear()


@pytest.mark.parametrize("size", range(3))
def test_local_functions_are_checked_as_they_are_made(size):
    for _ in range(2):

        @typecheck.jaxtyped(typechecker=None)
        def _more(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
            return values + size

        assert _more(np.ones(2))[0] == 1 + size
        with pytest.raises(TypeError, match="_more"):
            _more(np.ones((1, 1)))


Numbers = Float[np.ndarray, " n"]


@dataclass
class _Plain:
    values: list[float]


@dataclass
class _WithArray(_Plain):
    more: "Numbers"


def test_only_what_names_shapes_is_checked():
    """Also by another name, in a list, or in a class; the rest is what the static checker reads."""

    def named(values: "list[Numbers]") -> None: ...

    def plain(values: "list[float]", count: int) -> None: ...

    assert typecheck.has_shapes(named) and typecheck.has_shapes(_WithArray)
    assert typecheck.jaxtyped(typechecker=None)(plain) is plain
    assert not typecheck.has_shapes(_Plain)
