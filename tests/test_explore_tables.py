"""Tables of one's own in the explorer: columns, scales, studies and scripts that work elsewhere."""

import base64
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.explorer import limits
from neuralrace.explorer.saving import MEMBERS
from neuralrace.explorer.trust import Trust, trust_of
from tests.explorer_help import error, result

ANIMALS = [
    ("mouse", 0.1, 1), ("owl", 0.5, 1), ("fox", 0.8, 1), ("bat", 0.1, 1), ("hare", 0.6, 0),
    ("deer", 2.0, 0), ("lynx", 1.1, 1), ("elk", 2.4, 0), ("crow", 0.4, 0), ("wolf", 1.5, 1),
    ("boar", 1.6, 1), ("swan", 0.9, 0),
]  # fmt: skip
TEXT = "animal,size,night,season,active,hunts\n" + "".join(
    f"{name},{size},{night},{season},{1 if season == 'summer' else -1},{1 if size > 0.7 else -1}\n"
    for name, size, night in ANIMALS
    for season in ("summer", "winter")
)


@pytest.fixture
def trust(tmp_path):
    return Trust(tmp_path / "tables")


@pytest.fixture
def state(trust):
    """The table with both targets and a small training, as a page would have it."""
    made = result("csv", trust, name="animals.csv", text=TEXT)["state"]
    made["task"] |= {"x": ["size", "night", "season"], "y": ["active", "hunts"]}
    made["network"] = {"widths": 8, "scale": 1e-2}
    made["training"] = {"learning_rate": 0.1, "steps": 20, "seeds": 1, "key": 0}
    made["contest"] |= {"check": False, "criterion": 0.5}
    return made


def _unpack(archive, folder):
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive["base64"]))) as file:
        file.extractall(folder)
        return set(file.namelist())


# ---- columns ------------------------------------------------------------------------------------


def test_a_task_of_a_table_names_its_columns_and_what_each_number_is(trust, state):
    found = result("data", trust, state=state)
    assert [column["name"] for column in found["columns"]] == TEXT.splitlines()[0].split(",")
    assert [c["name"] for c in found["columns"] if c["text"]] == ["animal", "season"]
    assert found["columns"][0]["values"] == len(ANIMALS)
    x, y = found["nodes"]
    assert x["features"] == ["size", "night", "season summer", "season winter"]
    assert y["features"] == ["active", "hunts"]
    size = np.array([row[x["features"].index("size")] for row in x["values"]])
    assert abs(size.mean()) < 1e-5 and size.std() == pytest.approx(1, abs=1e-4)  # standardised
    targets = np.array([line.split(",")[-2:] for line in TEXT.splitlines()[1:]], float)
    np.testing.assert_array_equal(y["values"], targets)
    builtin = result("data", trust, state={"task": {"builtin": "xor"}})
    assert builtin["columns"] == [] and builtin["nodes"][0]["features"] == []


def test_the_scale_of_a_column_can_be_varied(trust, state):
    """The diagram's times are those of contests on tables whose column was multiplied by hand."""
    key = "task.scale.size"
    found = result("phases", trust, state=state, over=[
        {"key": key, "start": 0.5, "stop": 2, "count": 2}])  # fmt: skip
    assert "scale of size from 0.5 to 2" in " ".join(found["sentences"])
    table = nr.study.read_table(next(trust.tables.rglob("animals.csv")))
    for k, factor in enumerate((0.5, 2.0)):
        size = factor * (table["size"] - table["size"].mean()) / table["size"].std()
        season = np.stack([table["season"] == "summer", table["season"] == "winter"], axis=1)
        x = np.column_stack([size, table["night"], season])  # codes are not standardised
        y = np.column_stack([table["active"], table["hunts"]])
        data = nr.Dataset({"x": x}, {"y": y})
        pair = nr.pathways(data, {"all": None}, 8)
        who = nr.contest({"one": pair}, scale=1e-2, criterion=0.5, relative=True)
        assert found["times"]["one"][k] == pytest.approx(who.times["one"], rel=1e-5)


# ---- out and in again ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_saved_study_with_a_table_runs_elsewhere(trust, state, tmp_path):
    """Unpacked in an empty folder, the study and the script give the times of the page."""
    page = result("predict", trust, state=state)
    found = result("study", trust, state=state | {"questions": ["contest"]})
    folder = tmp_path / "elsewhere"
    names = _unpack(found["archive"], folder)
    assert names == {"study.toml", "study.py", "files/animals.csv"}
    assert (folder / "files" / "animals.csv").read_text() == TEXT
    assert (folder / "study.toml").read_text() == found["toml"]
    who = nr.Study.load(folder / "study.toml").run()["contest"].value
    for name, time in who.times.items():
        assert page["gatings"][name]["time"] == pytest.approx(time, rel=1e-6)
    run = subprocess.run(
        [sys.executable, str(folder / "study.py")], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert who.winner in run.stdout


def test_a_script_with_a_table_comes_with_it_and_one_without_comes_alone(trust, state, tmp_path):
    found = result("python", trust, state=state)
    names = _unpack(found["archive"], tmp_path / "script")
    assert "files/animals.csv" in names
    assert (tmp_path / "script" / "study.py").read_text() == found["script"]
    for kind in ("study", "python"):
        assert result(kind, trust, state={"task": {"builtin": "xor"}})["archive"] is None


def test_the_files_of_a_study_of_the_command_line_are_saved_too(tmp_path):
    (tmp_path / "own.csv").write_text("a,b\n1,2\n2,1\n0,1\n")
    (tmp_path / "masks.csv").write_text("p,q\n1,0\n0,1\n1,1\n")
    study = nr.Study.of(
        questions=["contest"],
        task={"file": "own.csv", "x": ["a"], "y": ["b"]},
        gatings={"g": {"file": "masks.csv"}},
        contest={"check": False},
    )
    study.save(tmp_path / "s.toml")
    trust = trust_of(tmp_path / "s.toml", tmp_path / "tables")
    found = result("study", trust, state=result("tasks", trust)["state"])
    names = _unpack(found["archive"], tmp_path / "elsewhere")
    assert {"files/own.csv", "files/masks.csv"} <= names
    nr.Study.load(tmp_path / "elsewhere" / "study.toml").check()


def test_a_saved_study_is_opened_again(trust, state, tmp_path):
    """From its archive, or its text beside the table that is open; not from the text alone."""
    found = result("study", trust, state=state)
    new = Trust(tmp_path / "others")
    packed = result("study", new, zip=found["archive"]["base64"])["state"]
    beside = result("study", new, toml=found["toml"], table=state["table"])["state"]
    for again in (packed, beside):
        assert again["table"] == state["table"] and again["task"]["file"] == "animals.csv"
        first, second = (result("predict", new, state=one) for one in (state, again))
        assert {n: g["time"] for n, g in first["gatings"].items()} == {
            n: g["time"] for n, g in second["gatings"].items()
        }
    alone = error("study", new, toml=found["toml"])
    assert alone["key"] == "task.file" and "together with its table" in alone["fix"]
    other = {"name": "other.csv", "text": TEXT}
    assert error("study", new, toml=found["toml"], table=other)["key"] == "task.file"


def _zip(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_toml", ".toml"), content)
    return base64.b64encode(packed.getvalue()).decode()


TASK = 'questions = ["train"]\n[task]\n'
ODD = {
    "no archive": "aGVsbG8=",
    "no base64": "§",
    "no text": 5,
    "empty": _zip(),
    "no study": _zip(readme="hello"),
    "a study that is none": _zip(study_toml="a ="),
    "a table that is not there": _zip(study_toml=TASK + 'file = "t.csv"\nx = ["a"]\ny = ["b"]'),
    "a path out": _zip(study_toml=TASK + 'file = "../../etc/passwd"\nx = ["a"]\ny = ["b"]'),
    "no text in it": _zip(study_toml=b"\xff\xfe\x00"),
    "much of nothing": _zip(study_toml=b" " * 5_000_000),
    "many files": _zip(**{f"f{i}": "" for i in range(MEMBERS + 1)}),
}


@pytest.mark.parametrize("archive", ODD.values(), ids=ODD)
def test_an_archive_that_is_none_is_an_error(archive, trust):
    found = error("study", trust, zip=archive)
    assert found["key"] and found["fix"] and "could not be computed" not in found["what"]


def test_a_study_in_a_folder_of_an_archive_reads_the_table_beside_it(trust):
    toml = TASK + 'file = "t.csv"\nx = ["a"]\ny = ["b"]'
    archive = _zip(report__study_toml=toml, **{"report/t.csv": "a,b\n1,2\n2,1\n"})
    assert result("study", trust, zip=archive)["state"]["table"]["text"].startswith("a,b")
    assert len(archive) < limits.MESSAGE


def test_a_diagram_goes_on_where_nobody_learns_at_its_end(trust, state):
    """Without the size nobody can tell who hunts; next to that, times grow beyond all bounds."""
    state["task"] |= {"y": ["hunts"], "x": ["size", "night"]}
    over = [{"key": "task.scale.size", "start": 0, "stop": 1, "count": 6}]
    found = result("phases", trust, state=state, over=over)
    assert found["winners"][0] is None and None not in found["winners"][1:]
    assert "scale of size from 0 to 1, the first is nobody up to" in found["sentences"][0]
    times = np.array(found["times"]["one"][1:])
    np.testing.assert_array_less(np.diff(times), 0)


def test_a_diagram_over_a_column_that_is_no_input_any_more_hides_nothing(trust, state):
    state["phase_diagram"] = {"key": "task.scale.night", "values": [0.5, 1.0]}
    state["task"] |= {"x": ["size"], "y": ["hunts"]}
    assert result("data", trust, state=state)["nodes"][0]["features"] == ["size"]
    assert result("predict", trust, state=state)["winner"]
    assert error("study", trust, state=state)["key"].startswith("phase_diagram")
