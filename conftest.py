"""Tests run in float64, without a display, and with programs that XLA compiles quickly.

Most of the tests' time is the compilation of small programs that run once. Without LLVM's
optimisations and with the older emitters of fused loops it takes a third of the time. What is
computed is the same up to rounding; `make verify` and `make bench` compile as usual.
"""

import os

import jax
import matplotlib
import pytest
from hypothesis import settings

import tests.typecheck  # noqa: F401  (must be there before the package is imported)

# read when JAX first computes; processes that tests start inherit it
QUICK_COMPILATION = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{QUICK_COMPILATION} {os.environ.get('XLA_FLAGS', '')}".strip()

pytest_plugins = ["tests.browser_help"]

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")
settings.register_profile("neuralrace", deadline=None, derandomize=True)
settings.load_profile("neuralrace")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")
