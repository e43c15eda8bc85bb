"""What the tests check at run time: kinds and shapes of the first calls of every function."""

import inspect

import numpy as np
import pytest
from jaxtyping import Float

import neuralrace as nr
from tests import typecheck


def _halved(values: Float[np.ndarray, " n"], count: int) -> Float[np.ndarray, " n"]:
    return np.full(count, values[0] / 2)


def test_the_package_is_checked():
    code = inspect.unwrap(nr.path_statistics).__code__
    assert nr.path_statistics.__code__ is not code
    nr.path_statistics(*nr.tasks.xor_pathways(nr.tasks.xor()))
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
        def _more(n: int) -> int:
            return n + size

        assert _more(1) == 1 + size
        with pytest.raises(TypeError, match="_more"):
            _more("1")
