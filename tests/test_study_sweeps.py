"""Sweeps of studies: the numbers of a cell are its own, and have the same names everywhere."""

import json

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.report import Picture
from neuralrace.study import QUESTIONS, Work
from neuralrace.study.questions import OUTPUTS, output_of
from neuralrace.study.sweep_page import curves
from neuralrace.study.sweeping import SweepResult, _names, answer_cells
from tests.test_errors import refuses, says
from tests.test_study import texts, xor

TRAINED = {"steps": 30, "learning_rate": 0.2}
GRAPH = {"sizes": {"h": 4, "k": 4}, "edges": {"a": ["x", "h"], "b": ["h", "k"], "c": ["k", "y"]}}


def check_alone(study, cells):
    """Cells of one batch have the numbers that each has alone, and differ from each other."""
    content = dict(study.document.content)
    together = answer_cells(cells, study=content, folder=".")
    for cell, found in zip(cells, together, strict=True):
        [alone] = answer_cells([cell], study=content, folder=".")
        assert found.keys() == alone.keys()
        numbers = [k for k, v in found.items() if not isinstance(v, str)]
        assert all(found[k] == alone[k] for k in found if k not in numbers)
        np.testing.assert_allclose(
            [found[k] for k in numbers], [alone[k] for k in numbers], rtol=1e-9
        )
    assert len({found["final_loss"] for found in together}) == len(cells)


@pytest.mark.slow
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
    with says("checkpoint", got="kept", wanted="sweep", fix="leave out"):
        xor(["train"], training=training, sweep={"over": {"network.scale": [0.1, 0.2]}})


def test_seeds_of_a_sweep_are_those_of_its_section():
    with refuses("key"):
        xor(["train"], sweep={"over": {"training.seeds": [1, 2]}})


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
    page = SweepResult(study, swept).report(tmp_path).read_text(encoding="utf-8")
    assert "<code>sweep.over.task.parameters.delta</code>" in page
    assert "<code>sweep.seeds</code>" in page
    assert "8 of 9 curves" in page


def test_failed_cells_are_in_the_table_with_their_errors(tmp_path):
    def inverses(cells):
        return [{"inverse": 1.0 / cell["x"]} for cell in cells]

    swept = nr.sweep(inverses, {"x": [0.0, 2.0], "seed": [0, 1]})
    SweepResult(xor(["contest"]), swept).report(tmp_path)
    lines = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "x,seed,inverse,error"
    assert [line.partition("ZeroDivisionError")[1] != "" for line in lines[1:]] == [
        True,
        True,
        False,
        False,
    ]
    assert lines[3] == "2.0,0,0.5,"


# ---- the report of a sweep ----------------------------------------------------------------------


def told(cells):
    """Numbers like those of a study: linear wins above x = 1, and is then followed."""
    found = []
    for cell in cells:
        x = cell["network.scale"]
        winner = "linear" if x > 1 else "xor"
        numbers = {"time_linear": 5 - x, "time_xor": x if x > 0.1 else np.inf}
        texts = {
            "winner": winner,
            "followed": winner,
            "left_out": '{"types": "it refused"}' * (x > 1),
        }
        found.append(
            numbers | texts | {"relu_distance": x, "error_types": np.nan if x > 1 else 1.0}
        )
    return found


@pytest.fixture(scope="module")
def swept():
    return nr.sweep(told, {"network.scale": [0.1, 1.0, 10.0, 100.0], "seed": [1, 2]})


def test_the_headline_of_a_sweep_says_where_the_winner_changes(swept):
    study = xor(["contest"], sweep={"over": {"network.scale": [0.1, 1.0]}})
    first, *rest = texts(SweepResult(study, swept).sentences())
    assert first == (
        "xor learns first from scale = 0.1 to 1; linear learns first from scale = 10 to 100."
    )
    assert any("relu_distance" in s and "0.1 at scale = 0.1, 100 at" in s for s in rest)
    assert any(s.startswith("time_xor has no value in 2 of 8 cells: the criterion") for s in rest)
    assert "Left out of `explain` in 4 cells: types: it refused." in rest


def test_values_of_different_gatings_are_not_joined(swept):
    [chart] = curves(swept, ["relu_distance"])
    assert [curve.name for curve in chart.curves] == ["xor", "linear"]
    np.testing.assert_array_equal(chart.curves[0].mean, [0.1, 1.0, np.nan, np.nan])
    assert chart.xlog and "as a share of the initial loss" in chart.caption
    assert curves(swept, ["winner"]) == []
    [times] = curves(swept, ["time_linear", "time_xor"])
    assert [curve.name for curve in times.curves] == ["linear", "xor"]
    assert "when the loss of each gating falls to the criterion" in times.caption


def test_the_page_defines_every_output_and_marks_what_is_swept(swept, tmp_path):
    study = xor(["contest"], sweep={"over": {"network.scale": [0.1, 1.0, 10.0, 100.0]}, "seeds": 2})
    page = SweepResult(study, swept).report(tmp_path).read_text(encoding="utf-8")
    assert "when the loss of the gating xor falls to the criterion" in page
    assert "<code>sweep.batch</code>" in page and "<code>training.seeds</code>" not in page
    assert "swept" in page
    lines = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("network.scale,seed,") and "winner" in lines[0]


SMALL = {"types": 2, "neurons": 40}
NARROW = {"network.widths": [1, 16]}
"""A network of one neuron cannot have two types, nor be explained by them."""


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def with_types(questions, **sections):
    return xor(questions, types=SMALL, training=TRAINED | {"seeds": 1}, **sections)


def test_a_refused_question_is_missing_from_its_cell_alone(tmp_path):
    study = with_types(["reduce", "types"], sweep={"over": NARROW})
    found = study.sweep()
    assert not found.sweep.failed
    data = found.sweep.data
    assert np.isfinite(data["blocks_xor"]).all()
    assert np.isfinite(data["types_gap"].values.ravel()).tolist() == [False, True]
    first, second = data["refused"].values.ravel()
    assert list(json.loads(first)) == ["types"] and second == ""
    said = [text for text in texts(found.sentences()) if "types" in text]
    assert any("`types` has no answer in 1 of 2 cells" in text for text in said)
    assert not any(text.startswith("types_gap has no value") for text in said)
    found.report(tmp_path)
    lines = (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3 and "more types than neurons" in lines[1]


@pytest.mark.parametrize(
    ("questions", "sections"),
    [
        (["reduce", "modes", "types"], {"gatings": {"xor": {"each": "sample"}}}),
        (["contest", "reduce"], {"gatings": {}, "network": {"graph": GRAPH}}),
        slow(["contest", "predict"], {"contest": {"check": True}}),
        slow(["contest", "train"], {"gatings": {}}),
    ],
)
def test_a_cell_has_the_same_numbers_whatever_is_refused(questions, sections):
    study = with_types(questions, **sections)
    work = Work(study.check(), seeds=[1])
    made = {k for q in questions if q != "types" for k in QUESTIONS[q].answer(work).numbers}
    assert {n for n in _names(work) if not n.startswith("types_")} == made


def test_a_cell_in_which_every_question_is_refused_fails():
    study = with_types(["types"])
    bad, good = answer_cells(
        [{"network.widths": 1, "seed": 0}, {"network.widths": 16, "seed": 0}],
        study=dict(study.document.content), folder=".",
    )  # fmt: skip
    assert isinstance(bad, nr.study.StudyError) and "refused" not in good


def test_networks_that_diverge_leave_the_theory_of_their_cell():
    study = xor(["contest", "train", "discover"], training=TRAINED)
    cells = [{"training.learning_rate": rate, "seed": 1} for rate in (0.2, 500.0)]
    good, bad = answer_cells(cells, study=dict(study.document.content), folder=".")
    assert good.keys() == bad.keys() and good["time_xor"] == bad["time_xor"]
    assert np.isnan(bad["final_loss"]) and set(json.loads(bad["refused"])) == {"train", "discover"}


def test_a_reference_that_does_not_learn_is_one():
    """An infinite time is that of a gating or reference that is there; NaN that of none."""

    def times(cells):
        aligned = {1: np.inf, 2: np.nan, 3: 4.0}
        return [{"time_aligned": aligned[cell["x"]], "time_xor": np.inf} for cell in cells]

    said = texts(SweepResult(xor(["contest"]), nr.sweep(times, {"x": [1, 2, 3]})).sentences())
    infinite, none = [text for text in said if text.startswith("time_aligned")]
    assert (
        "1 of 3 cells" in infinite and "never reached" in infinite and "reference" not in infinite
    )
    assert "1 of 3 cells" in none and "no such reference" in none
    assert any(text.startswith("time_xor has no value in 3 of 3 cells: the crit") for text in said)


def test_a_contest_that_is_refused_has_no_winner():
    def winners(cells):
        why = json.dumps({"contest": "it is refused"})
        texts = [{"winner": "a", "refused": ""}, {"winner": "", "refused": why}]
        return [texts[cell["x"]] for cell in cells]

    first = texts(SweepResult(xor(["contest"]), nr.sweep(winners, {"x": [0, 1]})).sentences())[0]
    assert first.startswith("a learns first in all 1 cells") and "criterion" not in first


@pytest.mark.slow
def test_every_output_of_a_study_is_defined():
    questions = ["relu", "contest", "reduce", "predict", "train", "types", "discover", "certify"]
    questions += ["explain"]
    study = xor(questions, training=TRAINED, explain={"rows": ["gatings", "narrow"]})
    [found] = answer_cells([{"seed": 1}], study=dict(study.document.content), folder=".")
    assert isinstance(found, dict), found
    for name in found:
        output = output_of(name)
        assert output is not None and output.question in ("", *questions), name
    assert found["winner"] in ("linear", "xor") and found["followed"] == found["winner"]
    assert len({output.name for output in OUTPUTS}) == len(OUTPUTS)


def test_cells_that_failed_have_no_winner():
    def winners(cells):
        return [ValueError("no") if c["x"] > 1 else {"winner": "ab"[c["x"]]} for c in cells]

    found = nr.sweep(winners, {"x": [0, 1, 2]})
    first = texts(SweepResult(xor(["contest"]), found).sentences())[0]
    assert first.startswith("a learns first at x = 0; b learns first at x = 1; ")
    assert first.endswith("no cell has an answer at x = 2.")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_networks_that_diverge_are_an_error_of_the_learning_rate():
    training = TRAINED | {"learning_rate": 500.0, "seeds": 1}
    study = xor(["train", "discover"], training=training)
    with refuses("study"):
        study.run()
    cells = [{"training.learning_rate": rate, "seed": 1} for rate in (0.2, 500.0)]
    good, bad = answer_cells(cells, study=dict(xor(["train"]).document.content), folder=".")
    assert good["final_loss"] < 1 and isinstance(bad, nr.study.StudyError)
