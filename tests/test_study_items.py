"""Studies of items and their properties: the reader of tables, and the question `modes`."""

import re
import runpy

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.explorer.trust import Trust
from tests.explorer_help import result as explored
from tests.test_errors import refuses
from tests.test_study import run, texts

TABLE = """thing,alive,grows,flies,barks
robin,1,1,1,0
wren,1,1,1,0
dog,1,1,0,1
stone,0,0,0,0
moss,1,1,0,0
"""
PROPERTIES = ("alive", "grows", "flies", "barks")


@pytest.fixture
def things(tmp_path):
    path = tmp_path / "things.csv"
    path.write_text(TABLE)
    return path


def asked(things, *questions, **sections):
    task = {"file": str(things), "x": ["thing"], "y": list(PROPERTIES), "labels": ["thing"]}
    network = {"widths": 32} | sections.pop("network", {})
    return nr.Study.of(questions=list(questions), task=task, network=network, **sections)


# ---- tables of items ----------------------------------------------------------------------------


def test_a_table_of_items_is_read_as_one(things, tmp_path):
    path = nr.study.new_study(tmp_path / "a.toml", things)
    settings = nr.Study.load(path).settings
    assert settings.task.x == {"": ("thing",)}
    assert settings.task.y == {"": PROPERTIES}
    assert settings.task.labels == ("thing",)
    assert not settings.task.standardise
    assert settings.questions == ("relu", "modes", "predict", "train")
    assert "Every row is an item, named by\n# 'thing'" in path.read_text()
    data = nr.Study.load(path).check().data
    assert sorted(data.x["x"].sum(axis=0)) == [1.0] * 5
    np.testing.assert_array_equal(data.y["y"][:, 2], [1, 1, 0, 0, 0])


@pytest.mark.parametrize(
    "text",
    [
        "name,size,sweet\npear,1.5,0\nfig,0.5,1\nplum,0.7,1\n",  # sizes are no yes and no
        "name,kind,a,b\nx,u,0,1\ny,v,1,0\nz,u,1,1\n",  # two columns of text
        "name,a,b\nx,0,1\nx,1,0\nz,1,1\n",  # names that are not distinct
        "name,a\nx,0\ny,1\nz,1\n",  # one property: no table of properties
        "a,b,c\n0,1,1\n1,0,0\n1,1,0\n",  # no names
    ],
)
def test_other_tables_have_their_last_column_as_target(tmp_path, text):
    (tmp_path / "my.csv").write_text(text)
    last = text.split("\n")[0].split(",")[-1]
    if text.startswith("name,a\n"):
        with refuses("csv"):
            nr.study.new_study(tmp_path / "a.toml", tmp_path / "my.csv")
        return
    settings = nr.Study.load(nr.study.new_study(tmp_path / "a.toml", tmp_path / "my.csv")).settings
    assert settings.task.y == {"": (last,)}
    assert settings.task.standardise
    assert "modes" not in settings.questions


def test_options_say_what_the_columns_are(things, tmp_path):
    task = lambda name, **how: (
        nr.Study.load(nr.study.new_study(tmp_path / name, things, **how)).settings.task
    )
    barks = task("a.toml", y=["barks"])
    assert barks.y == {"": ("barks",)}
    assert barks.x == {"": ("alive", "grows", "flies")}
    assert barks.standardise
    both = task("b.toml", x=["flies"], y=["alive", "barks"])
    assert (both.x, both.y) == ({"": ("flies",)}, {"": ("alive", "barks")})
    some = task("c.toml", items="thing", y=["flies", "barks"])
    assert (some.x, some.y) == ({"": ("thing",)}, {"": ("flies", "barks")})
    assert task("d.toml", x=["flies"]).y == {"": ("barks",)}


def test_properties_of_any_size_are_read_if_items_are_named(tmp_path):
    (tmp_path / "my.csv").write_text("name,size,sweet\npear,1.5,0\nfig,0.5,1\nplum,0.7,1\n")
    plain = nr.study.new_study(tmp_path / "a.toml", tmp_path / "my.csv").read_text()
    assert "--csv my.csv --items name" in plain
    path = nr.study.new_study(tmp_path / "b.toml", tmp_path / "my.csv", items="name")
    data = nr.Study.load(path).check().data
    np.testing.assert_array_equal(data.y["y"], [[1.5, 0], [0.5, 1], [0.7, 1]])


def test_columns_that_cannot_be_meant_are_errors(things, tmp_path):
    new = lambda **how: nr.study.new_study(tmp_path / "a.toml", things, **how)
    with refuses("csv"):
        new(items="animal")
    with refuses("items"):
        new(items="alive")
    with refuses("items"):
        new(items="thing", x=["alive"])
    with refuses("items"):
        nr.study.new_study(tmp_path / "a.toml", items="thing")
    with refuses("csv"):
        new(x=["thing", *PROPERTIES])


def test_the_command_line_has_the_options(things, tmp_path):
    options = ["--items", "thing", "--y", "flies", "--y", "barks"]
    run("new", tmp_path / "a.toml", "--csv", things, *options)
    assert nr.Study.load(tmp_path / "a.toml").settings.task.y == {"": ("flies", "barks")}


def test_the_explorer_reads_a_table_of_items(tmp_path):
    trust = Trust(tmp_path)
    found = explored("csv", trust, name="things.csv", text=TABLE)
    assert found["notes"][0].startswith("Every row was taken as an item, named by thing, and")
    task = found["state"]["task"]
    assert (task["x"], task["y"]) == (["thing"], list(PROPERTIES))
    assert "modes" in found["state"]["questions"]


# ---- the question -------------------------------------------------------------------------------


def test_modes_say_order_times_ties_and_twins(things):
    result = asked(things, "modes").run()
    answer, table = result["modes"], result["modes"].value["graph"]
    s = np.linalg.svd(np.loadtxt(TABLE.splitlines()[1:], delimiter=",", usecols=range(1, 5)).T / 5)
    np.testing.assert_allclose(table.drive, s[1][s[1] > 1e-9], rtol=1e-9)
    said = {sentence.id: sentence.text for sentence in answer.sentences()}
    first = next(text for id, text in said.items() if id.endswith("order"))
    places = [first.index(f"{t:.3g}") for t in table.half_time]
    assert places == sorted(places)
    assert all(first.index(name) < places[0] for name in ("robin", "wren", "dog", "moss"))
    assert table.outputs == PROPERTIES
    twins = [text for id, text in said.items() if id.endswith("alike")]
    assert len(twins) == 1 and "robin" in twins[0] and "wren" in twins[0] and "dog" not in twins[0]
    assert re.search(r"\b10 steps\b", answer.parts[0].caption)
    assert answer.numbers["modes_graph"] == len(table.names)
    assert answer.numbers["first_mode_graph"] == table.half_time[0]
    assert result["modes"].frame()["half_time"].to_list() == table.half_time.tolist()


def test_neighbours_that_overlap_are_a_warning(tmp_path):
    path = tmp_path / "even.csv"
    path.write_text("thing,a,b,c\none,1,0,0\ntwo,0,1.05,0\nthree,0,0,3\n")
    task = {"file": str(path), "x": ["thing"], "y": ["a", "b", "c"], "labels": ["thing"]}
    study = nr.Study.of(questions=["modes"], task=task, network={"widths": 8})
    answer = study.run()["modes"]
    table = answer.value["graph"]
    (_, high), (least, _) = table.ranges[1:]
    assert high >= least  # of `two` and `one`, whose drives are near
    assert table.ties == (table.names[1:],)
    warned = [text for text in texts(answer.top) if "is not sure" in text]
    assert warned and "two alone; one alone" in warned[0]
    assert f"{table.swapped(*table.names[1:])} of them have the other order" in warned[0]
    assert not any("The order is the same" in text for text in texts(answer.sentences()))
    calm = study.changed({"network.widths": 4000}).run()["modes"]
    assert "The order that is predicted is the same from all of 10 random starts." in texts(
        calm.sentences()
    )


def test_every_gating_has_its_modes_and_the_script_the_same(things, tmp_path):
    gatings = {"one": {"masks": {"all": "always"}}, "each": {"each": "thing"}}
    result = asked(things, "modes", gatings=gatings, modes={"seeds": 2}).run()
    assert list(result["modes"].value) == ["one", "each"]
    assert texts(result.sentences())[0].startswith("one: First")
    result.report(tmp_path / "out")
    names = runpy.run_path(str(tmp_path / "out" / "study.py"))
    for name, table in result["modes"].value.items():
        np.testing.assert_array_equal(names["modes"][name].seed_times, table.seed_times)
    assert (tmp_path / "out" / "files" / "modes_one.csv").exists() or list(
        (tmp_path / "out").rglob("modes_one.csv")
    )


def test_the_script_of_a_plain_network_has_its_graph(things, tmp_path):
    result = asked(things, "modes", contest={"start": 0.01}).run()
    assert result["modes"].value["graph"].seed_times.size == 0
    result.report(tmp_path / "out")
    names = runpy.run_path(str(tmp_path / "out" / "study.py"))
    expected = result["modes"].value["graph"].half_time
    np.testing.assert_array_equal(names["modes"]["graph"].half_time, expected)


def test_a_property_may_be_made_stronger(things):
    task = {"file": str(things), "x": ["thing"], "y": list(PROPERTIES), "labels": ["thing"]}
    study = nr.Study.of(questions=["modes"], task=task | {"scale": {"barks": 3.0}})
    table = study.run()["modes"].value["graph"]
    before = asked(things, "modes").run()["modes"].value["graph"]
    barking = lambda t: [n for n in t.names if t.strongest(n)[0].endswith("barks")]
    assert barking(before) == ["mode3"]
    assert barking(table) == ["mode1", "mode2"]  # three times as strong, it comes first
    assert table.sides("mode1")[0][0] == "dog"


def test_modes_need_a_known_start(things):
    with refuses("network"):
        asked(things, "modes", network={"widths": [8, 8]}).check()
    deep = asked(things, "modes", network={"widths": [8, 8]}, contest={"start": 0.1})
    assert np.isfinite(deep.run()["modes"].value["graph"].half_time).all()
    with refuses("network"):
        asked(things, "modes", network={"kind": "xavier"}).check()
