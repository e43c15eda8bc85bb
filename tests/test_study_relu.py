"""The question `relu`: a prediction, trained networks and gatings in one answer and one picture."""

import json

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.study.questions import output_of
from neuralrace.study.sweep_page import curves
from neuralrace.study.sweeping import answer_cells
from tests.test_study import xor

FEW = {"networks": 2, "neurons": 200, "types": False}
SECTIONS = {
    "relu": FEW,
    "network": {"widths": 64, "scale": 1e-2},
    "training": {"steps": 400, "learning_rate": 0.1, "seeds": 2},
    "contest": {"check": False, "criterion": 0.2, "relative": True},
}


def test_a_report_begins_with_what_the_network_will_do_beside_networks_and_gatings():
    result = xor(["train", "contest", "relu"], **SECTIONS).run()
    assert list(result.answers) == ["relu", "contest", "train"]
    answer = result["relu"]
    data = result.problem.data
    own = nr.predict(
        data, width=64, scale=1e-2, learning_rate=0.1, steps=400, criterion=0.2, networks=2,
        neurons=200,
    )  # fmt: skip
    table = answer.frame().set_index("what")
    time, low, high = own.time_to(0.2)
    assert table.loc["wide limit", ["time", "low", "high"]].tolist() == [time, low, high]
    runs = result["train"].value
    times = [
        t[loss <= 0.2 * loss[0]][0] for t, loss in zip([runs.time] * 2, runs.loss, strict=True)
    ]
    step = runs.time[1] - runs.time[0]
    trained = table.loc["trained networks"]
    assert np.mean(times) - step <= trained["time"] <= np.mean(times)
    assert table["late"]["wide limit"] == pytest.approx(time / trained["time"] - 1)
    race = result["contest"].value.entrants["xor"]
    assert table["time"]["xor"] == race.time
    solved = race.race.solve(times=runs.time, start=race.start)
    far = np.mean([nr.compare(runs.isel(seed=i), solved).mean for i in range(2)])
    assert table["distance"]["xor"] == pytest.approx(far, rel=0.02)
    names = [curve.name for curve in answer.parts[0].curves]
    assert names == ["trained networks", "simulated networks", "wide limit", "linear", "xor"]
    assert answer.top[0].id == "answer"
    assert result.sentences()[0] == answer.sentences()[0]


@pytest.mark.parametrize(
    "sections",
    [
        {"network": {"widths": [8, 8]}},
        {"network": {"widths": 8, "kind": "orthogonal"}},
        {"training": {"steps": 30, "batch_size": 2}},
        {"training": {"steps": 30, "optimizer": {"name": "adam", "learning_rate": 0.01}}},
    ],
)
def test_what_is_not_known_is_left_out_and_the_others_are_answered(sections):
    result = xor(["relu", "train"], gatings={}, **({"relu": FEW} | sections)).run()
    assert list(result.answers) == ["train"] and list(result.refused) == ["relu"]


@pytest.mark.parametrize(
    ("questions", "sections", "left"),
    [
        (["train", "types"], {"network": {"widths": 8, "bias": True}}, ["types"]),
        (["train", "contest"], {"network": {"widths": 8, "bias": True}, "contest": {}},
         ["contest"]),
        (["train", "types", "explain"], {"network": {"widths": [4, 4]}}, ["types", "explain"]),
        (["predict", "discover", "train"],
         {"training": {"steps": 20, "optimizer": {"name": "adam", "learning_rate": 0.01}}},
         ["predict", "discover"]),
        (["reduce", "predict", "train"], {"gatings": {}}, ["reduce", "predict"]),
    ],
)  # fmt: skip
def test_what_a_rule_forbids_one_question_ends_neither_a_report_nor_a_cell(
    questions, sections, left
):
    study = xor(questions, **({"training": {"steps": 20, "seeds": 2}} | sections))
    result = study.run()
    assert {*result.answers} == {*questions} - {*left} and [*result.refused] == left
    said = [s.text for s in result.sentences() if s.id == "left out"]
    for name, text in zip(result.refused, said, strict=True):
        assert name in text and result.refused[name].problem in text
        assert any(line.startswith(name) for line in study.check().sentences)
        with pytest.raises(nr.study.StudyError):
            xor([name], **({"training": {"steps": 20}} | sections))
    [cell] = answer_cells([{"seed": 1}], study=dict(study.document.content), folder=".")
    assert {*json.loads(cell["refused"])} == {*left}
    assert np.isfinite(cell["final_loss"]) == ("train" in result.answers)


def test_types_that_cannot_form_leave_the_times_of_a_cell():
    """From a large start neurons do not align; the wide limit and the networks have their times."""
    sections = SECTIONS | {"relu": FEW | {"types": True}, "gatings": {}}
    study = xor(["relu", "train"], **sections)
    cells = [{"network.scale": scale, "seed": 1} for scale in (0.1, 1e-2)]
    found = answer_cells(cells, study=dict(study.document.content), folder=".")
    for cell in found:
        assert isinstance(cell, dict) and json.loads(cell["refused"] or "{}") == {}
        assert cell["time_wide"] == pytest.approx(cell["time_trained"], rel=0.2)
        assert all(output_of(name) is not None for name in cell)
    assert np.isnan(found[0]["time_types"])


def test_predicted_and_trained_times_of_a_sweep_are_in_one_chart():
    def times(cells):
        names = ("time_wide", "time_types", "time_trained", "time_xor", "time_linear")
        return [{name: cell["x"] + i for i, name in enumerate(names)} for cell in cells]

    found = nr.sweep(times, {"x": [1.0, 2.0, 3.0], "seed": [1, 2]})
    [chart] = curves(found, ["time_wide", "time_types", "time_trained"])
    assert [(c.name, c.kind) for c in chart.curves] == [
        ("time_wide", "theory"), ("time_types", "theory"), ("time_trained", "relu"),
    ]  # fmt: skip
    assert np.asarray(chart.curves[2].y).tolist() == [[3.0, 4.0, 5.0]] * 2
    [other] = curves(found, ["time_xor", "time_linear"])
    assert other.file != chart.file


def test_runs_in_which_the_loss_has_hardly_fallen_do_not_confirm_a_prediction():
    from neuralrace.study.answers.networks import Predicted

    data = nr.Dataset(x={"x": np.eye(2)}, y={"y": np.eye(2)})
    race = nr.reduce(nr.Architecture.chain(2, 4, 2), data)
    texts = []
    for end in (0.96, 0.02):
        run = nr.Trajectory([0, 1, 2], [1.0, 0.99, end])
        found = Predicted("all", race, [nr.compare(run, run)], [nr.compare(run, run)])
        assert found.fell == pytest.approx(1 - end)
        texts.append(next(s.text for s in found.sentences() if s.id == "networks"))
    assert texts[0] != texts[1]
