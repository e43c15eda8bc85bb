"""Tests run in float64, without a display, and with programs that XLA compiles quickly.

Most of the tests' time is the compilation of small programs that run once. Without LLVM's
optimisations and with the older emitters of fused loops it takes a third of the time; a program
compiled in one piece takes half of the maps of memory (`MAPS`). What is computed is the same up to
rounding; `make evidence` and `make bench` compile as usual.

Files run in three classes, instant, short and long; with several processes, `--dist loadfile
--no-loadscope-reorder` keeps the order, and what a file has compiled in one process.
"""

import gc
import os
from importlib.metadata import version
from pathlib import Path

import jax
import matplotlib
import pytest
from hypothesis import settings

from tests import typecheck  # must be there before the package is imported

# read when JAX first computes; processes that tests start inherit it
QUICK_COMPILATION = "--xla_backend_optimization_level=0"
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):  # unknown to later ones, which stop
    QUICK_COMPILATION += " --xla_cpu_use_fusion_emitters=false"
    QUICK_COMPILATION += " --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{QUICK_COMPILATION} {os.environ.get('XLA_FLAGS', '')}".strip()

pytest_plugins = ["tests.browser_help"]

# The search for cycles goes through all that JAX keeps. By default it takes a tenth of the time.
gc.set_threshold(100_000, 20, 20)

jax.config.update("jax_enable_x64", True)
matplotlib.use("Agg")
settings.register_profile("neuralrace", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("neuralrace")

INSTANT = (
    "test_errors.py",
    "test_checks.py",
    "test_doors.py",
    "test_ids.py",
    "test_house.py",
    "test_architecture.py",
    "test_dataset.py",
)
"""Files that find a wrong import or a broken rule in seconds; they run first."""
LONG = (
    "test_shared.py",
    "test_systems.py",
    "test_contests.py",
    "test_predict.py",
    "test_explore_answers.py",
    "test_explanation.py",
    "test_docs.py",
    "test_papers_routing.py",
    "test_dynamics_optimizers.py",
    "test_reduction_scipy_solver.py",
    "test_dynamics_own.py",
    "test_contests_kept.py",
    "test_study_texts.py",
    "test_reduction_halves.py",
    "test_reln_consistency.py",
    "test_behaviour.py",
    "test_reln_types.py",
    "test_reln_alignment.py",
    "test_reln_discovery.py",
    "test_dynamics_ensemble.py",
    "test_reduction_rules.py",
    "test_reduction_system.py",
    "test_reduction_edge_cases.py",
    "test_contests_times.py",
    "test_study_relu.py",
    "test_reduction_race.py",
    "test_papers.py",
    "test_gdln.py",
    "test_results.py",
)
"""Files that take longest, longest first, so that two processes that share files end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: i - len(INSTANT) for i, name in enumerate(INSTANT)}
    place |= {name: i for i, name in enumerate(LONG, start=1)}
    items.sort(key=lambda item: place.get(item.path.name, 0))


MAPS, MOST_MAPS = Path("/proc/self/maps"), 25_000
"""Linux lets a process map 65 530 pieces of memory. Compiled programs take some each and stay, and
the compiler crashes at the limit, so that they are dropped between files once there are so many."""


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path == item.path or not MAPS.exists():
        return
    if MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def _afresh():
    """Every test counts the calls that are checked from zero, and leaves no figure open."""
    typecheck.calls.clear()
    yield
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")
