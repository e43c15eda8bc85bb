"""Sweeps of studies: the numbers of a cell are its own, and have the same names everywhere."""

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.report import Picture
from neuralrace.study.sweeping import SweepResult, answer_cells
from tests.test_errors import says
from tests.test_study import xor

TRAINED = {"steps": 30, "learning_rate": 0.2}


def check_alone(study, cells):
    """Cells of one batch have the numbers that each has alone, and differ from each other."""
    content = dict(study.document.content)
    together = answer_cells(cells, study=content, folder=".")
    for cell, found in zip(cells, together, strict=True):
        [alone] = answer_cells([cell], study=content, folder=".")
        assert found.keys() == alone.keys()
        np.testing.assert_allclose(list(found.values()), list(alone.values()), rtol=1e-9)
    assert len({found["final_loss"] for found in together}) == len(cells)


@pytest.mark.parametrize(
    ("training", "cells"),
    [
        ({}, [{"training.key": 0}, {"training.key": 1}]),
        ({"until": 0.4, "record_every": 1}, [{"network.scale": 0.1}, {"network.scale": 0.3}]),
        ({"batch_size": 2}, [{"network.scale": 0.1}, {"network.scale": 0.3}]),
    ],
    ids=["key", "until", "batches"],
)
def test_a_cell_does_not_depend_on_the_others_of_its_batch(training, cells):
    study = xor(["train"], training=TRAINED | training)
    check_alone(study, [cell | {"seed": 0} for cell in cells])


def test_phase_diagrams_with_other_crossovers_have_the_same_numbers():
    """The names of the numbers are those of the first cell: they must not depend on the answer."""
    phases = {"key": "task.parameters.delta", "values": [0.2, 0.5, 1.4]}
    study = xor(["phase_diagram"], phase_diagram=phases)
    none = study.changed({"phase_diagram.values": [0.2, 0.5]})
    crossed, same = (
        answer_cells([{"seed": 0}], study=dict(each.document.content), folder=".")[0]
        for each in (study, none)
    )
    assert crossed.keys() == same.keys()
    assert (crossed["crossovers"], same["crossovers"]) == (1, 0)
    assert 0.5 < crossed["first_crossover"] == crossed["last_crossover"] < 1.4
    assert np.isnan(same["first_crossover"])


def test_a_cell_draws_no_pictures(monkeypatch):
    """A sweep keeps numbers alone, and pictures take longer than many answers."""
    monkeypatch.setattr(Picture, "of", lambda *a, **b: pytest.fail("a picture was drawn"))
    study = xor(["predict"], training=TRAINED | {"seeds": 1})
    [found] = answer_cells([{"seed": 0}], study=dict(study.document.content), folder=".")
    assert found["prediction_error"] < 1e-2


def test_checkpoints_are_not_shared_by_the_cells_of_a_sweep(tmp_path):
    training = TRAINED | {"checkpoint": str(tmp_path / "kept")}
    study = xor(["train"], training=training, sweep={"over": {"network.scale": [0.1, 0.2]}})
    with says("checkpoint", got="kept", wanted="sweep", fix="leave out"):
        study.check()


def test_seeds_of_a_sweep_are_those_of_its_section():
    study = xor(["train"], sweep={"over": {"training.seeds": [1, 2]}})
    with says("cannot be varied", got="training.seeds", wanted="key", fix="sweep.seeds"):
        study.check()


def test_another_title_is_the_same_sweep(tmp_path):
    pytest.importorskip("zarr")
    study = xor(["contest"], sweep={"over": {"task.parameters.delta": [0.4, 1.2]}})
    study.sweep(store=tmp_path / "s.zarr")
    found = study.changed({"title": "T", "about": "A"}).sweep(store=tmp_path / "s.zarr")
    assert found.sweep.missing == 0
    with pytest.raises(nr.NeuralRaceError, match="another sweep"):
        study.changed({"network.scale": 0.5}).sweep(store=tmp_path / "s.zarr")


def test_the_page_of_a_sweep_tells_what_it_varies_and_what_it_leaves_out(tmp_path):
    def products(cells):
        return [{"product": cell["x"] * cell["z"]} for cell in cells]

    study = xor(["contest"], sweep={"over": {"task.parameters.delta": [0.4, 1.2]}, "seeds": 2})
    swept = nr.sweep(products, {"x": [1.0, 2.0], "z": [float(i) for i in range(9)]})
    page = SweepResult(study, swept, 0.0).report(tmp_path).read_text(encoding="utf-8")
    assert "<code>sweep.over.task.parameters.delta</code>" in page
    assert "<code>sweep.seeds</code>" in page
    assert "8 of 9 curves" in page


def test_failed_cells_are_in_the_table_with_their_errors(tmp_path):
    def inverses(cells):
        return [{"inverse": 1.0 / cell["x"]} for cell in cells]

    swept = nr.sweep(inverses, {"x": [0.0, 2.0], "seed": [0, 1]})
    SweepResult(xor(["contest"]), swept, 0.0).report(tmp_path)
    lines = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "x,seed,inverse,error"
    assert [line.partition("ZeroDivisionError")[1] != "" for line in lines[1:]] == [
        True,
        True,
        False,
        False,
    ]
    assert lines[3] == "2.0,0,0.5,"
