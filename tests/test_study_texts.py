"""No code decides by a text: with other words, numbers, tables, curves and verdicts stay equal."""

import csv

import numpy as np
import pytest

import neuralrace as nr
from neuralrace import report
from neuralrace.contests import Kept
from neuralrace.results import Sentence
from tests.test_study import xor

QUESTIONS = ["relu", "contest", "reduce", "modes", "predict", "train"]
QUESTIONS += ["discover", "certify", "explain"]
SECTIONS = {
    "training": {"steps": 40, "seeds": 2, "learning_rate": 0.2},
    "network": {"widths": 12, "scale": 0.1},
    "contest": {"check": True},
    "discover": {"most": 2},
    "explain": {"rows": ["gatings", "narrow"], "types": 2},
    "relu": {"networks": 2, "neurons": 60},
}


def without_words(part):
    """What a part of a page has beside its words."""
    match part:
        case report.Table():
            return part.head, part.rows
        case report.Curves():
            return [(c.name, c.kind, np.asarray(c.x), np.asarray(c.y)) for c in part.curves]
        case report.Section():
            return part.folded, [without_words(each) for each in part.parts]
    return type(part)


def content(result, folder):
    """All data of a study: frames, numbers, parts of the page, and the files beside it."""
    result.report(folder)
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".csv", ".py")}
    answers = {
        question: (
            answer.frame().to_csv(),
            answer.numbers,
            [without_words(part) for part in answer.parts],
            [said.id for said in answer.sentences()],
            [said.id for said in answer.top],
        )
        for question, answer in result.answers.items()
    }
    return answers, result.frame().to_csv(), files, list(result.refused)


@pytest.fixture
def silent(monkeypatch):
    """A function that makes all sentences say `x`."""

    def made():
        plain = Sentence.__new__
        monkeypatch.setattr(Sentence, "__new__", lambda cls, id, text: plain(cls, id, "x"))

    return made


@pytest.mark.filterwarnings("ignore")
def test_a_study_is_the_same_in_other_words(tmp_path, silent):
    study = xor(QUESTIONS, **SECTIONS)
    before = study.run()
    wanted = content(before, tmp_path / "before")
    verdicts = before["contest"].frame()["verdict"].to_list()
    silent()
    again = study.run()
    assert {said.text for said in again.sentences() if said.id != "left out"} == {"x"}
    np.testing.assert_equal(content(again, tmp_path / "again"), wanted)
    assert again["contest"].frame()["verdict"].to_list() == verdicts
    assert any(isinstance(verdict, Kept) for verdict in verdicts)


@pytest.mark.filterwarnings("ignore")
def test_a_sweep_is_the_same_in_other_words(tmp_path, silent):
    over = {"task.parameters.delta": [0.4, 1.2]}
    study = xor(["contest", "train"], **SECTIONS, sweep={"over": over})
    before = study.sweep()
    page = lambda found, name: found.report(tmp_path / name).parent
    tables = lambda folder: {p.name: p.read_text() for p in folder.glob("*.csv")}
    wanted = before.frame().to_csv(), tables(page(before, "before"))
    silent()
    again = study.sweep()
    assert (again.frame().to_csv(), tables(page(again, "again"))) == wanted
    assert {said.text for said in again.sentences()} == {"x"}


def test_the_table_of_a_contest_is_that_of_its_frame(tmp_path):
    """`nr.contest(…).frame().to_csv()` is what the study writes."""
    result = xor(["contest"]).run()
    result.report(tmp_path)
    data = result.problem.data
    pairs = {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}
    written = (tmp_path / "contest.csv").read_text()
    assert written == result["contest"].value.frame().to_csv(index=False)
    assert next(csv.DictReader(written.splitlines()))["candidate"] in pairs
