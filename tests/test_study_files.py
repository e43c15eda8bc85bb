"""Files of studies: nothing of the user's is overwritten, and the copies in a report can be run."""

import json
import re
import runpy
import shutil
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas
import pytest

import neuralrace as nr
from neuralrace.study.build import pathway_names
from neuralrace.study.document import to_toml
from tests.test_errors import refuses, says
from tests.test_study import ROOT, run, xor

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


def test_a_new_study_has_a_pathway_for_each_member_of_a_code_and_value_of_a_text(tmp_path):
    rows = [
        [sign, i % 2, (i + 1) % 2, *np.eye(3, dtype=int)[i % 3], ["hot", "cold"][i // 6], sign]
        for i, sign in enumerate([-1, 1, 1] * 4)
    ]
    head = "sign,up,down,cue_a,cue_b,cue_c,season,answer"
    lines = [head, *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "my.csv").write_text("\n".join(lines) + "\n")
    path = nr.study.new_study(tmp_path / "my.toml", tmp_path / "my.csv")
    settings = nr.Study.load(path).settings
    assert settings.task.groups == {"group1": ("up", "down"), "cue": ("cue_a", "cue_b", "cue_c")}
    assert settings.questions[0] == "relu"
    assert (settings.contest.criterion, settings.contest.relative) == (0.1, True)
    pairs = nr.Study.load(path).check().candidates
    assert list(pairs) == ["one", "by_group1", "by_cue", "by_season"]
    for name, columns in (("by_group1", [1, 2]), ("by_cue", [3, 4, 5])):
        arch, data = pairs[name]
        gates = [data.gates[node] for node in arch.hidden]
        np.testing.assert_array_equal(gates, np.array(rows, object)[:, columns].T.astype(float))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "time"), [("", 33.5), ("scale = 1e-2", 23.6), ('kind = "torch"', 6.4)]
)
def test_from_a_table_to_the_right_time_in_three_commands(tmp_path, line, time):
    """Three signs, and a rule that says which of them to answer; times are those of networks."""
    shutil.copy(ROOT / "examples/studies/rule.csv", tmp_path / "my.csv")
    run("new", tmp_path / "my.toml", "--csv", tmp_path / "my.csv")
    if line:
        text = (tmp_path / "my.toml").read_text()
        (tmp_path / "my.toml").write_text(re.sub("^scale = .*$", line, text, flags=re.M))
    left_out = "torch" in line  # the contest knows Gaussian starts alone
    with pytest.raises(SystemExit) if left_out else nullcontext():
        run("run", tmp_path / "my.toml", "--out", tmp_path / "out")
    table = pandas.read_csv(tmp_path / "out" / "relu.csv").set_index("what")
    trained, wide = table.loc["trained networks"], table.loc["wide limit"]
    share = 0.25 if "torch" in line else 0.05
    assert wide["time"] == pytest.approx(time, rel=share)
    assert wide["time"] == pytest.approx(trained["time"], rel=share)
    page = json.loads((tmp_path / "out" / "page.json").read_text())["page"]
    assert f"t = {wide['time']:.4g} " in page["answer"][0].partition(". ")[0]


def test_pytorchs_own_start_needs_no_scale():
    network = {"kind": "torch", "widths": 4}
    for given, scale in ((network, 1.0), (network | {"scale": 0.5}, 0.5), ({"widths": 4}, 1e-3)):
        study = nr.Study.of(questions=["train"], task={"builtin": "xor"}, network=given)
        assert study.settings.network.scale == scale


def test_without_the_extra_a_study_says_what_is_missing(tmp_path, monkeypatch):
    study_in(tmp_path)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    monkeypatch.delitem(sys.modules, "neuralrace.study.model")
    monkeypatch.delattr(nr.study, "model")
    with says("studies need", got="pydantic", wanted="pydantic", fix="pip install '.[study]'"):
        nr.Study.load(tmp_path / "my.toml")
