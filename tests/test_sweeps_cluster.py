"""Sweeps on real worker processes: the same bits, deaths of workers and of the main process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray

import neuralrace as nr
from tests import sweep_cells
from tests.test_sweeps import AXES, content, tells

pytest.importorskip("distributed")
pytest.importorskip("zarr")

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:::distributed"),
    pytest.mark.filterwarnings("ignore:::tornado"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def address():
    """The scheduler of two worker processes."""
    from neuralrace.sweeps.engine import _local_cluster

    with _local_cluster(2) as cluster:
        yield cluster.scheduler_address


def test_workers_give_the_same_bits_as_this_process(address, tmp_path):
    stores = {"here": tmp_path / "here.zarr", "there": tmp_path / "there.zarr"}
    here = nr.sweep(sweep_cells.moments, AXES, batch=2, store=stores["here"])
    there = nr.sweep(sweep_cells.moments, AXES, batch=2, store=stores["there"], scheduler=address)
    xarray.testing.assert_identical(here.data, there.data)
    assert content(stores["here"]) == content(stores["there"])


@pytest.mark.slow
def test_networks_trained_on_workers_are_the_same(address):
    axes = {"delta": [0.0, 0.5, 1.0, 1.5], "seed": range(3)}
    how = {"task": "extended_xor", "hidden": 8, "scale": 0.1, "learning_rate": 0.2, "steps": 20}
    here = nr.sweep(nr.sweeps.train_relu, axes, settings=how, batch=6)
    there = nr.sweep(nr.sweeps.train_relu, axes, settings=how, batch=6, scheduler=address)
    assert here.data["loss"].dtype == np.float64
    xarray.testing.assert_identical(here.data, there.data)


def test_failed_cells_are_recorded(address):
    found = nr.sweep(sweep_cells.odd_ones_fail, {"x": range(8)}, batch=3, scheduler=address)
    assert [failure.cell["x"] for failure in found.failed] == [1, 3, 5, 7]
    assert found.missing == 0


def test_what_a_function_must_return_is_said(address):
    with pytest.raises(nr.NeuralRaceError, match="one result per cell"):
        nr.sweep(sweep_cells.short, {"x": range(8)}, batch=3, scheduler=address)


def test_a_worker_that_dies_is_no_failed_cell(address, tmp_path):
    how = {"settings": {"folder": str(tmp_path)}, "batch": 1}
    found = nr.sweep(sweep_cells.dies_once, {"x": range(6)}, **how, scheduler=address)
    assert len(list(tmp_path.glob("died-*"))) == 2
    assert found.failed == () and found.missing == 0
    np.testing.assert_array_equal(found.data["square"], np.arange(6.0) ** 2)


@pytest.mark.slow
def test_a_batch_that_kills_every_worker_stays_missing_and_the_rest_is_done(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralrace.sweeps.engine.DEATHS", 0)
    store = tmp_path / "s.zarr"
    how = {"settings": {"victim": 1}, "batch": 1, "store": store, "workers": 1}
    with pytest.raises(nr.NeuralRaceError) as caught:
        nr.sweep(sweep_cells.always_dies, {"x": range(3)}, **how)
    assert tells(caught, "1 of 3 batches died again and again", "{'x': 1}", "smaller batch")
    assert nr.open_sweep(store).done.values.tolist() == [True, False, True]


def test_no_scheduler_there_is_said(monkeypatch):
    monkeypatch.setattr("neuralrace.sweeps.engine.CONNECTING", 0.5)
    with pytest.raises(nr.NeuralRaceError) as caught:
        nr.sweep(sweep_cells.moments, AXES, scheduler="tcp://127.0.0.1:9")
    assert tells(caught, "no scheduler at 'tcp://127.0.0.1:9'", "dask scheduler")


# ---- kills --------------------------------------------------------------------------------------

MAIN = """
import sys
import neuralrace as nr
from tests import sweep_cells
if __name__ == "__main__":
    store, folder, cells = sys.argv[1:]
    nr.sweep(sweep_cells.noted, {"x": range(int(cells))}, batch=1, store=store, workers=2,
             settings={"folder": folder, "seconds": 0.1})
"""


@pytest.mark.slow
def test_kills_of_workers_and_of_the_main_process_lose_nothing(tmp_path):
    import psutil

    store, calls = tmp_path / "s.zarr", tmp_path / "calls"
    (tmp_path / "main.py").write_text(MAIN)
    command = [sys.executable, str(tmp_path / "main.py"), str(store), str(tmp_path), "40"]
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def count() -> int:
        return len(calls.read_text().split()) if calls.exists() else 0

    for kill in ("worker", "main", None):
        process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
        before = count()
        if kill is not None:
            while count() < before + 6:
                assert process.poll() is None
                time.sleep(0.02)
            family = psutil.Process(process.pid).children(recursive=True)
            workers = [child for child in family if "spawn_main" in " ".join(child.cmdline())]
            assert len(workers) == 2
            (workers[0] if kill == "worker" else process).send_signal(signal.SIGKILL)
            if kill == "worker":
                while count() < before + 12:
                    assert process.poll() is None
                    time.sleep(0.02)
                process.send_signal(signal.SIGKILL)
            psutil.wait_procs(family, timeout=600)
            assert not [child for child in family if child.is_running()]
        process.wait()
    assert process.returncode == 0
    assert nr.open_sweep(store).missing == 0 and nr.open_sweep(store).failed == ()
    assert 40 <= count() <= 40 + 4 + 4 + 1  # two deaths of main, one of a worker
    fresh = tmp_path / "t.zarr"
    subprocess.run([*command[:2], str(fresh), *command[3:]], env=env, check=True)
    assert content(store) == content(fresh)
