"""The protocol of results: columns that are documented, sentences for people, one printing."""

import json
import re
from dataclasses import dataclass, replace

import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest

import neuralrace as nr
from neuralrace import results
from neuralrace.behaviour import StationaryPoints, decision_task, shallow_agent, stationary_points
from neuralrace.contests import Contest, Kept, PhaseDiagram
from neuralrace.explanation import Explanation, Prediction, Row
from neuralrace.interop import Watched
from neuralrace.reduction import ModeTable, Race, Splits
from neuralrace.reln import Certificate, Consistency, Discovery, NeuronTypes
from neuralrace.results import Result, Sentence, framed
from neuralrace.trajectory import Comparison
from tests.test_errors import refuses

COLUMNS = {
    Comparison: "mean max outputs start end whole shift mean_after_shift",
    Certificate: "quantity node mean max seed_mean seed_max per_seed",
    Consistency: "pathway kept worst lost implementable",
    Discovery: "node pathway share neurons on_for differ",
    NeuronTypes: "type neurons share_first share on_for slides_on events",
    StationaryPoints: "point learned loss index stable neutral family rate residual",
    Contest: "candidate time margin kept verdict least_loss learns strength implementable residual "
    "exact method reference rough",
    PhaseDiagram: "value other candidate time strength first kept",
    ModeTable: "mode s final half_time least largest plus minus outputs",
    Splits: "split growth doubling value gate",
    Race: "block inputs outputs s growth_rate scalar weights loss copy_of",
    Explanation: "explanation kind loss loss_per_seed outputs outputs_per_seed kept variables "
    "half_time time left differ pace near",
    Prediction: "share time low high gap",
    Watched: "step seconds loss told predicted low high distance floors kept on patterns",
}


def gatings(delta):
    data = nr.tasks.extended_xor(delta)
    return {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}


def explanation():
    run = nr.Trajectory([0, 1], [0.5, 0.1])
    rows = (Row("types", "types", run, 24, loss=0.01, outputs=0.02),
            Row("xor", "gating", run, 8, loss=0.02, outputs=0.03))  # fmt: skip
    return Explanation(rows, floor=(0.01, 0.02), runs=(run,), made="two rows")


def race():
    return nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(0.5)))


@pytest.fixture(scope="module")
def every():
    data, relu = nr.tasks.extended_xor(0.4), nr.ReLUNetwork((3, 16, 1))
    run = nr.train(relu, relu.init(jax.random.key(0), scale=1e-4), data, learning_rate=0.1,
                   steps=400, record_every=20,
                   record={"weights": True, "outputs": True})  # fmt: skip
    found = nr.reln.discover(run, data, pathways=2)
    return [
        nr.contest(gatings(0.4), scale=1e-3, check=True),
        nr.phase_diagram(gatings, "delta", [0.0, 2.0], scale=1e-3),
        explanation(),
        nr.compare(run, run.isel(time=slice(None, None, 2))),
        nr.reln.certify(run, found.train(record={"outputs": True}), floor=run),
        nr.reln.consistency(*gatings(0.4)["xor"], scale=1e-3),
        found,
        nr.reln.types(data, width=64, scale=1e-4, learning_rate=0.1, steps=400, types=2,
                      neurons=200),
        race(),
        race().modes(0.01),
        Splits("task", (1, 2), np.array([2.0]), np.array([[0.6, -0.8]]), np.ones(2), {}),
        stationary_points(shallow_agent(), decision_task(), starts=8),
        nr.predict(data, width=64, scale=1e-3, learning_rate=0.1, steps=400, neurons=200),
        Watched({"step": np.arange(3), "loss": np.array([1.0, 0.5, 0.3])}),
    ]  # fmt: skip


def test_files_are_of_the_kind_that_their_ending_says(tmp_path):
    run = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    for save in (run.save, nr.compare(run, run).save):
        with refuses("path", ".csv"):
            save(tmp_path / "x.csv")
    with refuses("path"):
        nr.compare(run, run).save(3)
    assert not list(tmp_path.iterdir())


def test_every_result_has_the_columns_that_it_documents(every):
    assert {type(each) for each in every} == {*COLUMNS}
    for each in every:
        columns = COLUMNS[type(each)].split()
        assert list(each.frame().columns) == columns
        said = type(each).frame.__doc__
        assert [name for name in columns if f"`{name}`" not in said] == []
        assert {*each.frame().attrs["units"]} <= {*columns}


def test_nothing_depends_on_the_texts_of_sentences(every, monkeypatch):
    frames = [each.frame() for each in every]
    plain = Sentence.__new__
    monkeypatch.setattr(Sentence, "__new__", lambda cls, id, text: plain(cls, id, "x"))
    for each, frame in zip(every, frames, strict=True):
        assert {sentence.text for sentence in each.sentences()} == {"x"}
        pandas.testing.assert_frame_equal(each.frame(), frame)
        assert str(each).startswith("x")


def test_every_result_is_drawn_on_the_axes_that_are_asked_for(every):
    for each in every:
        figure, ax = plt.subplots()
        before = figure.axes[:]
        assert each.plot(ax=ax) is ax and ax.has_data(), type(each)
        assert ax.get_ylabel() or ax.get_images(), type(each)  # rows of a matrix have names
        assert {a for a in figure.axes if a not in before} == {
            image.colorbar.ax for image in ax.get_images() if image.colorbar
        }
        assert each.plot().figure is not figure
        plt.close("all")


def test_printing_shows_the_answer_the_table_and_at_most_five_sentences(every):
    for each in every:
        lines = str(each).splitlines()
        texts = [sentence.text for sentence in each.sentences()]
        assert lines[0] == texts[0]
        assert [text for text in texts if text in lines] == texts[: results.SENTENCES]
        assert (f"({len(texts) - 5} more: sentences())" in lines) == (len(texts) > 5)
        page = each._repr_html_()
        assert page.count("<table") == (each._printed() is not None) and page.count("<p>") >= min(
            len(texts), 5
        )


def test_the_frame_of_a_contest_is_what_the_contest_found(every):
    found, frame = every[0], every[0].frame().set_index("candidate")
    assert (
        frame.loc["xor", "verdict"] is Kept.KEPT and frame.loc["linear", "verdict"] is Kept.OUTRUN
    )
    assert frame.loc["aligned", "verdict"] is None and bool(frame.loc["aligned", "reference"])
    for name, time in {**found.times, "aligned": found.check().reference.time}.items():
        assert frame.loc[name, "time"] == time
        assert frame.loc[name, "margin"] == pytest.approx(time / found.times["xor"] - 1, abs=1e-12)
        assert frame.loc[name, "kept"] == found.kept[name]
    table = pandas.read_csv(pandas.io.common.StringIO(found.frame().to_csv(index=False)))
    assert table["verdict"][:2].tolist() == ["kept", "outrun"]


def test_a_phase_diagram_has_a_row_per_value_and_candidate(every):
    found, frame = every[1], every[1].frame()
    wide = frame.pivot(index="value", columns="candidate", values="time")
    for name, times in found.times.items():
        np.testing.assert_array_equal(wide[name], times)
    assert frame.loc[frame["first"], "candidate"].tolist() == list(found.winners)


def test_a_time_that_is_not_known_is_nan_and_one_that_never_comes_is_infinite():
    found = nr.contest(gatings(0.0), scale=1e-3)
    never = found.frame().set_index("candidate").loc["linear", "time"]
    assert never == np.inf
    entrants = {n: replace(e, unknown="why") if n == "linear" else e
                for n, e in found.entrants.items()}  # fmt: skip
    frame = replace(found, entrants=entrants).frame().set_index("candidate")
    assert np.isnan(frame.loc["linear", "time"]) and np.isnan(frame.loc["linear", "margin"])


@dataclass(frozen=True)
class Made(Result):
    rows: tuple
    texts: tuple

    def frame(self):
        names = ("name", "time", "share", "verdict", "sure")
        rows = [dict(zip(names, row, strict=True)) for row in self.rows]
        return framed(names, rows, {"time": "time", "share": "share"})

    def sentences(self):
        return tuple(Sentence("id", text) for text in self.texts)

    def plot(self, *, ax=None):
        raise NotImplementedError


def test_cells_are_printed_by_kind_and_unit():
    rows = (("<a>", 1.23456, 0.25, Kept.KEPT, True), ("b", np.inf, np.nan, None, None))
    made = Made(rows, ("x < y",))
    assert [re.split(r"  +", line) for line in str(made).splitlines()] == [
        ["x < y"],
        ["name", "time", "share", "verdict", "sure"],
        ["<a>", "1.235", "25 %", "kept", "yes"],
        ["b", "never", "–", "–", "–"],
    ]
    page = made._repr_html_()
    assert "x &lt; y" in page and "&lt;a&gt;" in page and "<a>" not in page
    assert made.frame()["verdict"].tolist() == [Kept.KEPT, None]


def test_long_results_say_what_they_leave_out():
    made = Made((("a", 1.0, 0.5, None, False),) * 23, tuple("abcdefg"))
    lines = str(made).splitlines()
    assert len(lines) == 1 + 1 + results.ROWS + 1 + 4 + 1
    assert "(3 more rows: frame())" in lines and lines[-1] == "(2 more: sentences())"


def test_every_result_is_stored_and_loaded(every, tmp_path, monkeypatch):
    """Nothing is computed again: solving and training are out of order."""
    frames = [each.frame() for each in every]
    texts = [str(each) for each in every]
    paths = [each.save(tmp_path / f"{type(each).__name__}.npz") for each in every]
    for name in ("solve", "start"):
        owner = next(kind for kind in nr.reduction.Race.__mro__ if name in vars(kind))
        monkeypatch.delattr(owner, name)
    for each, frame, text, path in zip(every, frames, texts, paths, strict=True):
        again = Result.load(path)
        assert type(again) is type(each) is type(type(each).load(path))
        pandas.testing.assert_frame_equal(again.frame(), frame)
        assert str(again) == text
        assert again.sentences() == each.sentences()
        ax = plt.figure().add_subplot()
        assert len(again.plot(ax=ax).lines) == len(each.plot(ax=plt.figure().add_subplot()).lines)
        plt.close("all")


def test_files_that_hold_no_result_of_ours_are_refused(every, tmp_path):
    path = every[2].save(tmp_path / "explanation.npz")
    with refuses("file"):
        Contest.load(path)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with refuses("file"):
        Result.load(tmp_path / "other.npz")
    for name in ("os:system", "neuralrace.results:np", "neuralrace.no:Thing", "subprocess:Popen"):
        text = {"result": {"object": 0}, "objects": [{"class": name, "fields": {}}]}
        np.savez(tmp_path / "odd.npz", text=np.array(json.dumps(text)))
        with refuses("file"):
            Result.load(tmp_path / "odd.npz")


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_page_of_results_is_current(kind):
    from docs import results as page

    assert page.section(kind) in page.PAGE.read_text(), "`python -m docs.results` writes it"
    assert kind in page.results()
