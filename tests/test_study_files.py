"""Files of studies: nothing of the user's is overwritten, and the copies in a report can be run."""

import runpy
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.study.build import pathway_names
from neuralrace.study.document import to_toml
from tests.test_errors import refuses, says
from tests.test_study import xor

TABLE = "a,b,kind,c\n1.0,0.5,p+,1\n0.5,1.0,p-,0\n-1.0,0.2,p+,1\n-0.5,-1.0,p-,0\n"


def study_in(folder, file="train.csv", text=TABLE, **sections):
    """A study of a table, in a file of its own."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    content = {
        "questions": ["reduce"],
        "task": {"file": file, "x": ["a", "b"], "y": ["c"], "labels": ["kind"]},
        "gatings": {"one": {"masks": {"all": "always"}}},
    }
    path = folder / "my.toml"
    path.write_text(to_toml(content | sections))
    return nr.Study.load(path)


def test_a_report_never_overwrites_the_files_of_the_study(tmp_path):
    study = study_in(tmp_path, file="reduce.csv")  # the name of a table of the report
    with refuses("folder"):
        study.run().report(tmp_path)
    assert (tmp_path / "reduce.csv").read_text() == TABLE
    study_in(tmp_path, file="mine.csv").save(tmp_path / "study.toml")
    own = nr.Study.load(tmp_path / "study.toml")
    with refuses("study"):
        own.run().report(tmp_path)


@pytest.mark.parametrize("file", ["reduce.csv", "below/my.csv", "../beside.csv"])
def test_the_copies_in_a_report_are_the_study(tmp_path, file, monkeypatch):
    """Also where a file has the name of a table of the report, or another folder."""
    home = tmp_path / "home"
    home.mkdir()
    masks = {"file": "masks/" + Path(file).name}
    (home / "masks").mkdir()
    (home / masks["file"]).write_text("all\n1\n1\n1\n1\n")
    study = study_in(home, file, gatings={"one": masks})
    out = tmp_path / "out"
    result = study.run()
    result.report(out)
    again = nr.Study.load(out / "study.toml")
    np.testing.assert_array_equal(again.check().data.x["x"], result.problem.data.x["x"])
    assert again.run().numbers == result.numbers
    names = runpy.run_path(str(out / "study.py"))
    np.testing.assert_array_equal(names["data"].x["x"], result.problem.data.x["x"])


def test_modules_of_a_study_are_copied_with_their_folders(tmp_path):
    home = tmp_path / "home"
    (home / "tasks_of_mine").mkdir(parents=True)
    text = "import neuralrace as nr\ndef make():\n    return nr.tasks.xor()\n"
    (home / "tasks_of_mine" / "one.py").write_text(text)
    path = home / "my.toml"
    task = {"python": "tasks_of_mine.one:make"}
    gatings = {"one": {"masks": {"all": "always"}}}
    path.write_text(to_toml({"questions": ["reduce"], "task": task, "gatings": gatings}))
    nr.Study.load(path).run().report(tmp_path / "out")
    assert (tmp_path / "out" / "tasks_of_mine" / "one.py").read_text() == text
    assert "data" in runpy.run_path(str(tmp_path / "out" / "study.py"))


@pytest.mark.parametrize("target", ["/etc/passwd:make", "../other:make", "a b:make", ".x:make"])
def test_a_module_is_named_by_identifiers(target):
    study = nr.Study.of(questions=["train"], task={"python": target})
    with says("names no function", got=target, wanted="module:function", fix="my_task:make"):
        study.check()


def test_texts_of_a_study_are_not_code_in_its_script():
    evil = 'a\\N{x}"""\nraise SystemExit(1)\n'
    phases = {"key": "task.parameters.delta", "values": [0.2, 0.5], "name": evil}
    study = xor(["phase_diagram"], title=evil, phase_diagram=phases)
    from neuralrace.study.script import script_of

    text = script_of(study.check())
    compile(text, "study.py", "exec")
    assert not [line for line in text.splitlines() if line.startswith("raise")]


def test_every_value_of_a_label_has_a_pathway_of_its_own():
    for values in (["p+", "p-", "p_"], [0.1234567, 0.1234568], ["größe", "grüße"], [True, False]):
        names = pathway_names("kind", np.unique(values))
        assert list(names.values()) == np.unique(values).tolist()
        assert len(names) == len(values)
        assert all(name.isascii() and name.isidentifier() for name in names)
    assert list(pathway_names("context", np.array([1, 2]))) == ["context1", "context2"]
    seasons = pathway_names("season", np.array(["summer", "winter"]))
    assert list(seasons) == ["season_summer", "season_winter"]


def test_values_that_look_alike_stay_apart(tmp_path):
    study = study_in(tmp_path, gatings={"kinds": {"each": "kind"}})
    problem = study.check()
    assert len(problem.candidates["kinds"][0].hidden) == 2


def test_dates_can_be_written():
    text = "day = 2026-01-31\nmoment = 2026-01-31T10:00:00\nhour = 10:00:00\n"
    assert tomllib.loads(to_toml(tomllib.loads(text))) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "größe,y\n1.5,0\n2.5,1\n3.5,0\n",  # no bare key of TOML
        "größe,y\nklein,0\ngroß,1\nklein,0\n",
        "lambda,y\n1.5,0\n2.5,1\n3.5,0\n",  # a word of Python
        "constant,b,y\n1.5,0.5,0\n1.5,2.5,1\n1.5,2.5,1\n",
        "reaction time,y\n1.5,0\n2.5,1\n3.5,0\n",
    ],
)
def test_a_new_study_of_a_table_is_right(tmp_path, text):
    (tmp_path / "my.csv").write_text(text, encoding="utf-8")
    path = nr.study.new_study(tmp_path / "my.toml", tmp_path / "my.csv")
    nr.Study.load(path).check()


def test_without_the_extra_a_study_says_what_is_missing(tmp_path, monkeypatch):
    study_in(tmp_path)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    monkeypatch.delitem(sys.modules, "neuralrace.study.model")
    monkeypatch.delattr(nr.study, "model")
    with says("studies need", got="pydantic", wanted="pydantic", fix="pip install '.[study]'"):
        nr.Study.load(tmp_path / "my.toml")
