"""The protocol of results: columns that are documented, sentences for people, one printing."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas
import pytest

import neuralrace as nr
from neuralrace import results
from neuralrace.contests import Contest, Kept, PhaseDiagram
from neuralrace.explanation import Explanation, Row
from neuralrace.reduction import ModeTable, Race
from neuralrace.results import Result, Sentence, framed

COLUMNS = {
    Contest: "candidate time margin kept verdict least_loss learns strength implementable residual "
    "exact method reference rough",
    PhaseDiagram: "value candidate time first kept",
    ModeTable: "mode s final half_time least largest plus minus outputs",
    Race: "block inputs outputs s growth_rate scalar weights loss copy_of",
    Explanation: "explanation kind loss loss_per_seed outputs outputs_per_seed kept variables "
    "half_time left differ pace near",
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
    return [
        nr.contest(gatings(0.4), scale=1e-3, check=True),
        nr.phase_diagram(gatings, "delta", [0.0, 2.0], scale=1e-3),
        explanation(),
        race(),
        race().modes(0.01),
    ]


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
    pictures = [[t.get_text() for t in each.plot().texts] for each in every]
    for module in (nr.contests.outcome, nr.contests.verdicts, nr.contests.phases,
                   nr.explanation.table, nr.reduction.words, nr.reduction.modes):  # fmt: skip
        monkeypatch.setattr(module, "Sentence", lambda name, _: Sentence(name, "x"))
    for each, frame, picture in zip(every, frames, pictures, strict=True):
        assert {sentence.text for sentence in each.sentences()} == {"x"}
        pandas.testing.assert_frame_equal(each.frame(), frame)
        assert [t.get_text() for t in each.plot().texts] == picture
        assert str(each).startswith("x\n")


def test_printing_shows_the_answer_the_table_and_at_most_five_sentences(every):
    for each in every:
        lines = str(each).splitlines()
        texts = [sentence.text for sentence in each.sentences()]
        assert lines[0] == texts[0]
        assert [text for text in texts if text in lines] == texts[: results.SENTENCES]
        assert (f"({len(texts) - 5} more: sentences())" in lines) == (len(texts) > 5)
        page = each._repr_html_()
        assert page.count("<table") == 1 and page.count("<p>") >= min(len(texts), 5)


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
