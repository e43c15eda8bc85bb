"""Tests run in float64, without a display."""

import jax
import matplotlib
import pytest
from hypothesis import settings

import tests.typecheck  # noqa: F401  (must be there before the package is imported)

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")
settings.register_profile("neuralrace", deadline=None, derandomize=True)
settings.load_profile("neuralrace")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")
