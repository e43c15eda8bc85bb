"""Sweeps in the process: definitions, batches, results, stores, failures, pictures."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace.sweeps.cells import run_cells
from neuralrace.sweeps.definition import Definition, defined
from neuralrace.sweeps.results import SECONDS, InMemory, Results
from neuralrace.sweeps.store import tell, writing
from tests import sweep_cells

pytest.importorskip("zarr")

ROOT = Path(__file__).parent.parent
AXES = {"mean": [0.0, 1.0, 3.0], "seed": range(7)}


def definition(axes, batch, **more) -> Definition:
    return defined(sweep_cells.moments, axes, None, batch, more.get("dims"), more.get("coords"))[0]


def tells(caught, *words) -> bool:
    """Whether an error has all its parts, and these words in its message."""
    error = caught.value
    parts = (error.what, error.got, error.wanted, error.fix)
    return all(str(part) for part in parts) and all(word in str(error) for word in words)


def content(store) -> dict[str, bytes]:
    """Every file of a store, but for how long it took."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(Path(store).rglob("*"))
        if path.is_file() and path.name != SECONDS
    }


# ---- batches ------------------------------------------------------------------------------------


@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3), batch=st.integers(1, 60))
def test_batches_hold_every_cell_once_and_no_more_than_asked(lengths, batch):
    names = "abc"[: len(lengths)]
    axes = {name: range(n) for name, n in zip(names, lengths, strict=True)}
    told = definition(axes, batch)
    batches = [told.cells_of(b) for b in range(told.batches)]
    assert max(map(len, batches)) <= batch
    cells = [tuple(cell.values()) for cells in batches for cell in cells]
    assert sorted(cells) == list(itertools.product(*(range(n) for n in lengths)))
    for b, cells in enumerate(batches):
        grid = np.arange(told.cells).reshape(told.shape)[told.box(b)].ravel()
        places = [np.ravel_multi_index(tuple(c.values()), told.shape) for c in cells]
        assert grid.tolist() == places


def test_the_size_of_a_batch_along_every_axis():
    axes = {"a": range(4), "b": range(10)}
    assert definition(axes, 10).batch == (1, 10)
    assert definition(axes, 25).batch == (2, 10)
    assert definition(axes, 6).batch == (1, 5)  # two equal parts, not 6 and 4
    assert definition(axes, 1000).batch == (4, 10)
    assert definition(axes, {"b": 3}).batch == (4, 3)


def test_a_definition_survives_its_text():
    told = definition(
        {"a.b": [1, 2.5], "kind": ["x", "y"], "widths": [[2, 3], [4]]}, 2,
        dims={"rows": "time"}, coords={"time": [0.1, 0.2, 0.3]},
    )  # fmt: skip
    assert Definition.from_json(told.to_json()) == told
    assert told.differences(Definition.from_json(told.to_json())) == {}
    assert told.cells_of(0)[0] == {"a.b": 1.0, "kind": "x", "widths": [2, 3]}


# ---- results ------------------------------------------------------------------------------------


def test_every_cell_has_the_value_of_the_function():
    found = nr.sweep(sweep_cells.moments, AXES, batch=4)
    assert found.data["trace"].dims == ("mean", "seed")
    assert found.data["rows"].dims == ("mean", "seed", "rows.0")
    for mean, seed in itertools.product(*AXES.values()):
        (alone,) = sweep_cells.moments([{"mean": mean, "seed": seed}])
        here = found.data.sel(mean=mean, seed=seed)
        assert here["trace"] == alone["trace"]
        np.testing.assert_array_equal(here["rows"], alone["rows"])
    assert found.missing == 0 and found.failed == () and bool(found.done.all())


def test_memory_and_store_agree_and_the_store_opens_again(tmp_path):
    memory = nr.sweep(sweep_cells.moments, AXES, batch=4, dims={"rows": "row"})
    stored = nr.sweep(
        sweep_cells.moments, AXES, batch=4, dims={"rows": "row"}, store=tmp_path / "s.zarr"
    )
    again = nr.open_sweep(tmp_path / "s.zarr")
    for other in (stored, again):
        xarray.testing.assert_identical(memory.data, other.data)
        xarray.testing.assert_identical(memory.done, other.done)
        assert other.definition == memory.definition
    plain = xarray.open_zarr(tmp_path / "s.zarr", consolidated=False, chunks=None)
    np.testing.assert_array_equal(plain["trace"], memory.data["trace"])
    assert plain["trace"].dims == ("mean", "seed")
    assert plain.attrs.keys() == {"sweep"}


def test_coordinates_of_results_and_axes_of_text_and_lists(tmp_path):
    axes = {"mean": [0.0], "seed": [1, 2], "kind": ["a", "b"], "widths": [[2, 3], [4]]}
    found = nr.sweep(
        sweep_cells.moments, axes, dims={"rows": "time"}, coords={"time": [0.1, 0.2, 0.4]},
        store=tmp_path / "s.zarr",
    )  # fmt: skip
    assert found.data["time"].values.tolist() == [0.1, 0.2, 0.4]
    assert found.data["kind"].values.tolist() == ["a", "b"]
    assert found.data["widths"].values.tolist() == ["[2, 3]", "[4]"]
    assert found.data["rows"].sel(kind="b", time=0.2, widths="[4]").shape == (1, 2)
    xarray.testing.assert_identical(found.data, nr.open_sweep(tmp_path / "s.zarr").data)


def test_the_order_in_which_batches_come_changes_nothing():
    told = definition({"x": range(6)}, 2)
    results = {
        0: ["ValueError: no", "ValueError: no"],
        1: [{"y": np.asarray(1.0)}, {"y": np.asarray(2.0)}],
        2: [{"y": np.ones(3)}, {"y": np.asarray(3.0)}],  # the first does not fit
    }
    tables = []
    for order in itertools.permutations(range(3)):
        found = Results(told, InMemory(told))
        assert sum(found.write(batch, results[batch]) for batch in order) == 6
        assert found.missing() == []
        tables.append((found.table(), found.failures()))
    assert len(tables) == 6
    for table, failures in tables[1:]:
        xarray.testing.assert_identical(table, tables[0][0])
        assert failures == tables[0][1]
    assert tables[0][0]["y"].values.tolist()[2:4] == [1.0, 2.0]
    assert "shape" in tables[0][1][2].error


def test_results_that_wait_for_a_batch_that_is_given_up_are_kept():
    told = definition({"x": range(4)}, 2)
    found = Results(told, InMemory(told))
    assert found.write(1, [{"y": np.asarray(1.0)}] * 2) == 0
    assert found.give_up(0) == 2
    assert found.missing() == [0]


# ---- failures -----------------------------------------------------------------------------------


def test_a_cell_that_fails_is_recorded_and_the_rest_goes_on(tmp_path):
    store = tmp_path / "s.zarr"
    cells = {"x": range(6)}
    with pytest.warns(UserWarning, match="3 of 6 cells failed, the first with x=1: ValueError"):
        found = nr.sweep(sweep_cells.odd_ones_fail, cells, batch=4, store=store)
    np.testing.assert_array_equal(found.data["half"], [0, np.nan, 1, np.nan, 2, np.nan])
    assert [failure.cell for failure in found.failed] == [{"x": 1}, {"x": 3}, {"x": 5}]
    assert nr.open_sweep(store).failed == found.failed
    before = content(store)
    with pytest.warns(UserWarning, match="3 of 6 cells failed"):
        nr.sweep(sweep_cells.odd_ones_fail, cells, batch=4, store=store)
    assert content(store) == before  # what failed is not tried again
    assert (
        str(nr.sweeps.status(store)) == "6 cells: 3 done, 0 running, 3 failed, 0 missing; complete"
    )
    assert "failed: x=5: ValueError: 5 is odd" in str(found)


def test_a_function_may_return_an_exception_in_the_place_of_a_cell():
    def inverse(cells):
        return [{"y": 1 / c["x"]} if c["x"] else ZeroDivisionError("none") for c in cells]

    found = nr.sweep(inverse, {"x": [0, 2]})
    assert found.failed[0].error == "ZeroDivisionError: none"
    assert found.data["y"].values[1] == 0.5


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (3.0, "not {name: array or number}"),
        ({}, "not {name: array or number}"),
        ({"y": ["a", "b"]}, "'y' is no number, text or array"),
        ({"status": 1.0}, "'status' cannot be the name"),
        ({"z": 1.0}, "returned 'z', the first one 'y'"),
        ({"y": 1}, "int64"),
    ],
)
def test_a_result_that_does_not_fit_is_a_failed_cell(result, words):
    found = nr.sweep(lambda cells: [{"y": 1.0}, result], {"x": [0, 1]})
    assert words in found.failed[0].error
    assert found.data["y"].values[0] == 1.0


# ---- going on -----------------------------------------------------------------------------------


def test_a_second_run_computes_only_what_is_missing(tmp_path):
    axes, store = {"x": range(12)}, tmp_path / "s.zarr"
    how = {"settings": {"folder": str(tmp_path)}, "batch": 3, "store": store}
    whole = nr.sweep(sweep_cells.noted, axes, **how)
    full = content(store)
    for path in (store / "status" / "c" / "1", store / "status" / "c" / "3"):
        path.unlink()  # as if the process had been killed before these marks
    (store / "square" / "c" / "1").unlink()
    (store / "square" / "c" / "7.abc.partial").touch()
    assert str(nr.sweeps.status(store)).endswith("6 missing; stopped; the same call continues it")
    assert nr.open_sweep(store).missing == 6
    assert np.isnan(nr.open_sweep(store).data["square"].values[3:6]).all()
    again = nr.sweep(sweep_cells.noted, axes, **how)
    assert (tmp_path / "calls").read_text().split() == ["0", "3", "6", "9", "3", "9"]
    xarray.testing.assert_identical(whole.data, again.data)
    assert content(store) == full


CHILD = """
import sys
import neuralrace as nr
from tests import sweep_cells
store, folder = sys.argv[1:]
nr.sweep(sweep_cells.noted, {"x": range(20)}, settings={"folder": folder}, batch=1, store=store)
"""


def test_a_kill_loses_only_the_batch_in_flight(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralrace.sweeps.store.PATIENCE", 0.1)
    store = tmp_path / "s.zarr"
    command = [sys.executable, "-c", CHILD, str(store), str(tmp_path)]
    calls, hold = tmp_path / "calls", tmp_path / "hold-4"
    hold.touch()
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": "src:."})
    try:
        while not calls.exists() or len(calls.read_text().split()) < 5:
            assert process.poll() is None
            time.sleep(0.02)
        status = nr.sweeps.status(store)
        assert (status.active, status.done, status.running, status.missing) == (True, 4, 1, 15)
        definition = nr.open_sweep(store).definition
        with pytest.raises(nr.NeuralRaceError) as caught, writing(store, definition):
            pass
        assert tells(caught, "another process writes", f"process {process.pid}")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not nr.sweeps.status(store).active
    hold.unlink()
    how = {"settings": {"folder": str(tmp_path)}, "batch": 1}
    with jax.enable_x64(False):
        found = nr.sweep(sweep_cells.noted, {"x": range(20)}, **how, store=store)
        fresh = nr.sweep(sweep_cells.noted, {"x": range(20)}, **how, store=tmp_path / "t.zarr")
    done = calls.read_text().split()
    assert len(done) == 5 + 16 + 20
    assert content(store) == content(tmp_path / "t.zarr")
    xarray.testing.assert_identical(found.data, fresh.data)


def test_status_tells_the_time_left(tmp_path, monkeypatch):
    store = tmp_path / "s.zarr"
    told = definition({"mean": [0.0], "seed": range(10)}, 1)
    with writing(store, told) as results:
        for batch in range(4):
            results.write(batch, run_cells(sweep_cells.moments, told.cells_of(batch), {}))
        with monkeypatch.context() as clock:
            clock.setattr("neuralrace.sweeps.store.time.time", lambda: 8.0)
            tell(store, 0.0, 0, 1)
        status = nr.sweeps.status(store)
        assert (status.done, status.running, status.missing) == (4, 1, 5)
        assert status.seconds_left == pytest.approx(12.0)
        assert str(status).endswith("5 missing; about 12 s left")
    assert not nr.sweeps.status(store).active


def test_a_store_of_another_definition_is_refused_with_the_keys(tmp_path):
    store = tmp_path / "s.zarr"
    nr.sweep(sweep_cells.moments, AXES, settings={"size": 10}, batch=4, store=store)
    before = content(store)
    other = AXES | {"seed": range(8)}
    with pytest.raises(nr.NeuralRaceError) as caught:
        nr.sweep(sweep_cells.moments, other, settings={"size": 20}, batch=4, store=store)
    assert tells(
        caught, "belongs to another sweep", "axes.seed", "settings.size: 10 there, 20 here"
    )
    assert "axes.mean" not in str(caught.value) and "function" not in str(caught.value)
    with jax.enable_x64(False), pytest.raises(nr.NeuralRaceError, match="float64: True there"):
        nr.sweep(sweep_cells.moments, AXES, settings={"size": 10}, batch=4, store=store)
    assert content(store) == before


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"function": "nowhere:at_all"}, ("cannot be imported", "No module named 'nowhere'")),
        ({"function": "tests.sweep_cells:none"}, ("cannot be imported", "no attribute 'none'")),
        ({"function": None}, ("function is not valid",)),
        ({"function": 3}, ("function is not valid",)),
        ({"function": "tests.sweep_cells:short"}, ("one result per cell", "list of 20 for 21")),
        ({"axes": {}}, ("at least one axis",)),
        ({"axes": [1, 2]}, ("axes is not valid",)),
        ({"axes": {"a b": [1]}}, ("'a b' cannot be the name of an axis",)),
        ({"axes": {"status": [1]}}, ("'status' cannot be the name",)),
        ({"axes": {"x": []}}, ("axis 'x' must be finite", "no values")),
        ({"axes": {"x": [1, 2, 1]}}, ("axis 'x' must be finite", "1 twice")),
        ({"axes": {"x": [np.inf]}}, ("axis 'x' must be finite", "inf")),
        ({"axes": {"x": 3}}, ("axes is not valid",)),
        ({"axes": {"x": [object()]}}, ("numbers, text, lists or mappings",)),
        ({"settings": {"nonsense": 3}}, ("does not take these settings", "'nonsense'")),
        ({"settings": {"size": lambda: 3}}, ("settings.size", "what a JSON file can hold")),
        ({"batch": 0}, ("batch must be a whole number",)),
        ({"batch": {"delta": 3}}, ("axis 'delta' that the sweep does not have",)),
        ({"dims": {"rows": "seed"}}, ("'seed' is both an axis",)),
        ({"dims": {"rows": ("a", "b")}}, ("do not fit the result 'rows'",)),
        ({"coords": {"time": [1]}}, ("no result has the dimension 'time'",)),
        (
            {"dims": {"rows": "time"}, "coords": {"time": [1]}},
            ("do not fit the result 'rows'",),
        ),
        ({"axes": {"trace": [1], "mean": [0.0], "seed": [0]}}, ("name 'trace' of an axis",)),
        ({"workers": -1}, ("workers must be a whole number",)),
        ({"scheduler": 3}, ("scheduler is not valid",)),
        ({"scheduler": "tcp://x:1", "workers": 2}, ("a scheduler has workers of its own",)),
        ({"slurm": ["cpu"]}, ("slurm is not valid",)),
        ({"slurm": {"cores": "many"}}, ("slurm cores must be a whole number",)),
        ({"function": lambda cells: cells, "workers": 1}, ("workers cannot import",)),
        ({"store": ""}, ("no path of a file",)),
    ],
)  # fmt: skip
def test_what_cannot_be_swept_is_said(change, words):
    good = {"function": sweep_cells.moments, "axes": AXES}
    with pytest.raises(nr.NeuralRaceError) as caught:
        nr.sweep(**good | change)
    assert tells(caught, *words)


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(nr.NeuralRaceError, match="is no store of a sweep"):
        nr.sweep(sweep_cells.moments, AXES, store=tmp_path)
    with pytest.raises(nr.NeuralRaceError, match="cannot write to"):
        nr.sweep(sweep_cells.moments, AXES, store=tmp_path / "thesis.tex" / "s.zarr")
    with pytest.raises(nr.NeuralRaceError):
        nr.sweep(sweep_cells.moments, AXES, store=tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    for read in (nr.open_sweep, nr.sweeps.status):
        for path in (tmp_path, tmp_path / "nothing"):
            with pytest.raises(nr.NeuralRaceError, match="is no store of a sweep"):
                read(path)


def test_without_the_extra_a_sweep_runs_in_the_process_and_says_what_is_missing(tmp_path):
    code = """
import sys
for name in ("dask", "distributed", "zarr", "dask_jobqueue"):
    sys.modules[name] = None
import neuralrace as nr
from tests import sweep_cells
print(nr.sweep(sweep_cells.moments, {"mean": [0.0], "seed": [0, 1]}).data["trace"].shape)
for how in ({"store": "x.zarr"}, {"workers": 2}, {"scheduler": "tcp://x:1"}, {"slurm": {}}):
    try:
        nr.sweep(sweep_cells.moments, {"mean": [0.0], "seed": [0, 1]}, **how)
    except nr.NeuralRaceError as error:
        print(error.what, error.fix)
"""
    path = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=path
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "(1, 2)"
    assert "'zarr'" in lines[1] and all("'distributed'" in line for line in lines[2:])
    assert all("pip install '.[study]'" in line for line in lines[1:])


# ---- trained networks ---------------------------------------------------------------------------

HOW = {"task": "extended_xor", "hidden": 8, "scale": 0.05, "learning_rate": 0.2, "steps": 60}


def test_cells_of_a_batch_are_the_runs_they_would_be_alone():
    axes = {"delta": [0.0, 0.7], "scale": [0.05, 0.1], "learning_rate": [0.1, 0.2], "seed": [3, 5]}
    found = nr.sweep(nr.sweeps.train_relu, axes, settings=HOW)
    net = nr.ReLUNetwork((3, 8, 1))
    for delta, scale, rate, seed in itertools.product(*axes.values()):
        start = net.init(jax.random.fold_in(jax.random.key(0), seed), scale)
        run = nr.train(
            net, start, nr.tasks.extended_xor(delta), learning_rate=rate, steps=HOW["steps"]
        )
        here = found.data.sel(delta=delta, scale=scale, learning_rate=rate, seed=seed)
        np.testing.assert_allclose(here["loss"], run.loss[-1], rtol=1e-9)
        when = nr.trajectory.crossing_time(run.time, run.loss, 0.2)
        np.testing.assert_allclose(here["time"], when, rtol=1e-9)


def test_tasks_of_several_shapes_and_runs_that_diverge():
    axes = {"contexts": [2, 3], "learning_rate": [0.01, 1e300], "seed": [0]}
    how = HOW | {"task": "contextual", "parameters": {"joined": True}}
    del how["learning_rate"]
    found = nr.sweep(nr.sweeps.train_relu, axes, settings=how)
    assert [failure.cell["learning_rate"] for failure in found.failed] == [1e300, 1e300]
    assert "stopped being finite" in found.failed[0].error
    assert np.isfinite(found.data["loss"].sel(learning_rate=0.01)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "nonsense"}, ("unknown task 'nonsense'",)),
        ({"scale": None}, ("the cells have no scale",)),
        ({"parameters": {"nonsense": 1}}, ("does not take these parameters", "nonsense")),
        ({"task": "routing"}, ("does not take these parameters",)),
    ],
)
def test_what_cannot_be_trained_is_said(change, words):
    with pytest.raises(nr.NeuralRaceError) as caught:
        nr.sweeps.train_relu([{"delta": 0.5, "seed": 0}], **HOW | change)
    assert tells(caught, *words)


def names(cells):
    return [
        {"name": "low" if cell["x"] < 2 else "much higher"} if cell["x"] else ValueError("zero")
        for cell in cells
    ]


@pytest.mark.parametrize("kept", [True, False], ids=["store", "memory"])
def test_results_can_be_text(kept, tmp_path):
    store = tmp_path / "s.zarr" if kept else None
    found = nr.sweep(names, {"x": [1, 0, 2]}, store=store, batch=1)
    assert found.data["name"].values.tolist() == ["low", "", "much higher"]
    if store is not None:
        xarray.testing.assert_identical(nr.open_sweep(store).data, found.data)
    with pytest.raises(nr.NeuralRaceError):
        found.plot("name")


def slow(cells):
    time.sleep(0.05)
    if cells[0]["x"] == 1 and SLOW.pop("stop", False):
        raise KeyboardInterrupt
    return [{"y": 1.0} for _ in cells]


SLOW = {}


def test_the_time_of_a_sweep_is_that_of_all_calls(tmp_path):
    store = tmp_path / "s.zarr"
    SLOW["stop"] = True
    with pytest.raises(KeyboardInterrupt):
        nr.sweep(slow, {"x": [0, 1, 2]}, store=store, batch=1)
    first = nr.open_sweep(store).seconds
    assert first >= 0.05
    assert nr.sweep(slow, {"x": [0, 1, 2]}, store=store, batch=1).seconds >= first + 0.1
    again = nr.sweep(slow, {"x": [0, 1, 2]}, store=store, batch=1).seconds
    assert again == nr.open_sweep(store).seconds  # nothing was left to compute


# ---- pictures -----------------------------------------------------------------------------------


def test_the_picture_over_one_axis_and_over_two():
    found = nr.sweep(sweep_cells.moments, AXES)
    ax = found.plot("trace")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean", "trace")
    mean = found.data["trace"].mean("seed").values
    assert any(np.allclose(line.get_ydata(), mean) for line in ax.lines if len(line.get_ydata()))
    both = nr.sweep(sweep_cells.moments, AXES | {"size": [2, 3]})
    ax = both.plot("trace", over="size")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "mean")
    shown = ax.collections[0].get_array()
    np.testing.assert_allclose(shown, both.data["trace"].mean("seed").values)
    for call in (
        lambda: found.plot("rows"),
        lambda: found.plot("no"),
        lambda: found.plot("trace", over="no"),
    ):
        with pytest.raises(nr.NeuralRaceError):
            call()
