"""The papers' figures: settings, small versions of each, and what they are judged by."""

import json
import shlex

import numpy as np
import pytest
import xarray

import evidence.own.papers
import papers
from evidence import Measure
from neuralrace.plot import style
from neuralrace.trajectory import save_table
from papers import Figure, Setting, gallery, settings_of
from papers.nrr import fig3, fig4
from papers.record import Record, command, load_figure, read_record
from tests.test_errors import says

SMALL = {
    "nrr/fig3": {"hidden": 32, "seeds": 2},
    "nrr/fig4": evidence.own.papers.SMALL,
    "nrr/appendix_a2": {"hidden": 20, "seeds": 2},
}


@pytest.fixture(scope="module")
def tables():
    """Small versions of the figures, each computed when it is first asked for."""
    made = {"nrr/fig4": evidence.own.papers.routing(False)}

    def table(name):
        if name not in made:
            figure = papers.find(name)
            made[name] = figure.run(figure.resolve(quick=True, changes=SMALL[name]), quick=True)
        return made[name]

    return table


# ---- every figure -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", papers.names())
def test_a_figure_is_in_order(name):
    figure = papers.find(name)
    assert figure.name == name
    assert figure.title and figure.states
    for setting in figure.settings.values():
        assert setting.about and setting.source
        if setting.quick is not None:
            assert type(setting.quick) is type(setting.value)
        json.dumps(setting.value)
    assert figure.resolve() == {k: s.value for k, s in figure.settings.items()}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_version_agrees_with_the_paper(name, tables):
    record = read_record(tables(name))
    within = papers.find(name).within(tables(name))
    assert within and [id for id, held in within.items() if not held] == []
    assert record.settings["seeds"]["value"] == SMALL[name]["seeds"]
    assert record.versions["neuralrace"]


@pytest.mark.parametrize("name", SMALL)
def test_it_is_drawn_from_its_file_alone(name, tables, tmp_path):
    figure = papers.find(name)
    file = save_table(tables(name), tmp_path / "data.nc")
    stored = load_figure(file)
    assert settings_of(stored) == settings_of(tables(name))
    written = figure.publish(stored, tmp_path)
    assert written.pdf.read_bytes().startswith(b"%PDF")
    xarray.testing.assert_identical(load_figure(written.data), tables(name))


# ---- NRR Fig. 3 ---------------------------------------------------------------------------------


def test_cell_types_are_told_by_direction():
    angles = np.deg2rad(np.arange(0, 360, 1.0) + 0.5)
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)[None]
    table = {"reads": ring, "writes": np.ones((1, 360)), "x": corners}
    table = {k: xarray.DataArray(v) for k, v in table.items()}
    np.testing.assert_allclose(fig3.cell_types(table, 20.0), 40 / 360)
    table["reads"] = xarray.DataArray(np.repeat(corners, [1, 2, 3, 4], axis=0)[None])
    table["writes"] = xarray.DataArray(-np.ones((1, 10)))
    np.testing.assert_allclose(fig3.cell_types(table, 20.0), [0.1, 0.2, 0.3, 0.4])


# ---- NRR Fig. 4 ---------------------------------------------------------------------------------

TARGETS = np.array(
    [[6, 6, 6, 6], [4, 4, 0, 0], [0, 0, 4, 4], *(3 * np.eye(4)).tolist()], dtype=float
)


def test_the_levels_and_ends_are_the_published_ones():
    np.testing.assert_allclose(fig4.stages(TARGETS) * 244, [244, 59, 18, 0], atol=1e-9)
    ends = fig4.final_hidden(TARGETS, 7, 0.08)
    np.testing.assert_allclose(ends, [4.563, 3.549, 2.754, 2.754], atol=5e-4)


def test_a_plateau_is_where_the_loss_rests():
    t = np.linspace(0, 30, 301)
    fall = [1 / (1 + np.exp(3 * (t - place))) for place in (5, 15, 25)]
    loss = 0.7 * fall[0] + 0.2 * fall[1] + 0.1 * fall[2]
    levels = np.array([1.0, 0.3, 0.1, 0.0])
    np.testing.assert_allclose(fig4.plateaus(levels, loss), [0.3, 0.1], atol=1e-3)
    assert np.isnan(fig4.plateaus(levels, loss[:60])[1])


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"hidden_end": 1.006}, "hidden-values"),
        ({"ends_end": 1.08}, "root-m"),
        ({"untrained_share": 1e6}, "untrained"),
        ({"by_hand": 1.00001}, "decoupled"),
        ({"loss_predicted": 1.5}, "random"),
        ({"hidden_predicted": 1.06}, "course-strongest"),
        ({"paths": 2}, "paths"),
        ({"shared": 0.9}, "shared"),
    ],
)
def test_a_wrong_number_does_not_agree(change, row, tables):
    table = tables("nrr/fig4")
    assert fig4.FIGURE.within(table)[row]
    wrong = table.assign({name: table[name] * factor for name, factor in change.items()})
    assert not fig4.FIGURE.within(wrong)[row]


def test_panels_have_the_letters_of_the_paper(tables):
    picture = fig4.FIGURE.draw(tables("nrr/fig4"))  # laid out where it is saved, above
    letters = [ax.get_title().split()[0] for ax in picture.axes if ax.get_title()]
    assert sorted(letters) == [f"({n})" for n in ("a", "b", "c", "d", "e1", "e2", "f", "g", "h")]


def test_names_stand_in_the_boxes_of_figure_3(tables):
    with style():
        network = fig3.FIGURE.draw(tables("nrr/fig3")).axes[1]
    inside = {text.get_text() for text in network.texts if "\n" in text.get_text()}
    assert inside == {"x\n2", "1\n8", "2\n8", "3\n8", "4\n8", "y\n1"}


# ---- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("like", "text", "value"),
    [
        (7, "5", 5),
        (0.2, "1e-3", 1e-3),
        (True, "no", False),
        (False, "True", True),
        ("xavier", "orthogonal", "orthogonal"),
        ((0.2, 2.5), "[0.1, 3]", (0.1, 3.0)),
        ([1, 4], "1,2,3", [1, 2, 3]),
        ((1,), "9", (9,)),
        (None, "none", None),
        (None, "0.08", 0.08),
        (None, "weights", "weights"),
    ],
)
def test_a_text_becomes_a_value_of_the_kind_of_the_default(like, text, value):
    found = Setting(like, "a", "b").parse("key", text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("like", "text", "wanted"),
    [
        (7, "5.5", "a whole number"),
        (0.2, "small", "a number"),
        (0.2, "nan", "a number"),
        (True, "maybe", "true or false"),
        ((0.2,), "0.1,x", "with commas between"),
        ((0.2,), "[]", "with commas between"),
        ("word", "", "a word"),
    ],
)
def test_another_text_is_an_error(like, text, wanted):
    with says("no value for the setting 'key'", got=repr(text), wanted=wanted, fix="--set key="):
        Setting(like, "a", "b").parse("key", text)


def test_choices_are_listed():
    figure = papers.find("nrr/fig4")
    with says("'init'", got="'xavir'", wanted="'orthogonal', 'xavier'", fix="'xavier'?"):
        figure.resolve(changes={"init": "xavir"})


def test_an_unknown_setting_or_figure_is_an_error_with_what_there_is():
    with says("no setting 'seed' of nrr/fig4", got="'seed'", wanted="learning_rate", fix="'seeds'"):
        papers.find("nrr/fig4").resolve(changes={"seed": 3})
    with says("no figure 'nrr/fig44'", got="fig44", wanted="nrr/appendix_a2", fix="'nrr/fig4'?"):
        papers.find("nrr/fig44")
    with says("no figure 'zzz'", got="zzz", wanted="all", fix="choose one"):
        papers.chosen(["zzz"])


def test_papers_and_all_stand_for_their_figures():
    assert papers.chosen(["nrr/fig4", "nrr", "nrr/fig4"])[0] == "nrr/fig4"
    assert set(papers.chosen(["nrr"])) == {n for n in papers.names() if n.startswith("nrr/")}
    assert papers.chosen(["all"]) == papers.names()


# ---- pages --------------------------------------------------------------------------------------


def record(**changes):
    settings = {
        "M": {"value": 5, "default": 7, "about": "domains", "source": "Fig. 4"},
        "scales": {"value": [0.2, 1.0], "default": (0.2, 1.0), "about": "σ", "source": "Fig. 6"},
    }
    agreement = [
        {"id": "a", "what": "a < b | c", "target": "≤ 1 %", "measured": "0.5 %", "holds": True},
        {"id": "b", "what": "other", "target": "0", "measured": "1", "holds": False},
        {"id": "c", "what": "more", "target": "reported", "measured": "3", "holds": None},
    ]
    made = {"name": "nrr/fig9", "title": "A <title>", "states": "x & y", "settings": settings}
    made |= {"quick": True, "versions": {"jax": "1"}, "seconds": 2.0, "agreement": agreement}
    return Record(**(made | changes))


def test_a_record_says_what_was_found_and_how_it_is_made_again():
    assert record().verdict == "1 of 2 agree" and record().changed == ("M",)
    assert command(record()) == "python -m papers reproduce nrr/fig9 --set M=5"


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (0.2, 0.1 + 0.2),
        (1.0, 123456789.0),
        ((0.2, 1.0), (1 / 3, 1e-7)),
        (None, 2 / 3),
        (7, 1234567),
        (True, False),
        ("word", "two words"),
    ],
)
def test_the_command_gives_every_digit_back(default, value):
    made = {"x": {"value": value, "default": default, "about": "a", "source": "b"}}
    *_, flag, text = shlex.split(command(record(settings=made)))
    assert flag == "--set"
    assert Setting(default, "a", "b").parse("x", text[2:]) == value


def toy(name, compute):
    return Figure(
        name=name,
        title="A <toy>",
        states="that it is",
        settings={"n": Setting(3, "how many", "here", quick=2)},
        compute=compute,
        draw=lambda table: __import__("matplotlib.pyplot").pyplot.figure(),
        measures=lambda _: (Measure("sum", "sum", lambda t: float(t["x"].sum()), least=1),),
    )


def test_a_figure_says_where_its_data_were_computed(tmp_path):
    figure = papers.find("talk/depth")
    table = figure.run(figure.resolve(quick=True), quick=True)
    made = read_record(table)
    assert "cpu" in made.device and made.device in made.origin
    assert json.loads(table.attrs["record"])["commit"] == made.commit
    older = json.loads(table.attrs["record"])
    del older["device"], older["commit"]
    assert read_record(table.assign_attrs(record=json.dumps(older))).origin == ""


def test_what_is_not_a_figure_cannot_be_loaded(tmp_path):
    (tmp_path / "no.nc").write_text("no")
    with says("cannot be read", got="", wanted="a netCDF file", fix="reproduce"):
        load_figure(tmp_path / "no.nc")


def test_the_gallery_shows_what_lies_in_the_folder_in_the_given_order(tmp_path):
    for name in ("nrr/a", "nrr/b"):
        figure = toy(name, lambda s: xarray.Dataset({"x": ("n", np.ones(s["n"]))}))
        figure.publish(figure.run(figure.resolve()), tmp_path)
    (tmp_path / "nrr" / "note.txt").write_text("no figure")
    page = gallery(tmp_path, ["nrr/b"]).read_text()
    assert page.index('id="nrr-b-a-toy"') < page.index('id="nrr-a-a-toy"')
    assert "A &lt;toy&gt;" in page
    assert "<toy>" not in page
    assert "2 of 2 measured lines agree with the papers, in 2 figures." in page
    assert "python -m papers reproduce nrr/a" in page
    for end in ("pdf", "png", "nc"):
        assert f'href="nrr/a.{end}"' in page
        assert (tmp_path / f"nrr/a.{end}").exists()
    (tmp_path / "nrr" / "a.pdf").unlink()
    again = gallery(tmp_path, ["nrr/b"]).read_text()
    assert "nrr/a.pdf" not in again
    assert "nrr/a.png" in again


def test_what_is_no_figure_is_not_read(tmp_path):
    xarray.Dataset({"x": ("n", [1.0])}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    with says("x.nc", got="format None", wanted="neuralrace figure 1", fix="reproduce"):
        load_figure(tmp_path / "x.nc")
    with says("none.nc", got="no file of that name", wanted="netCDF", fix="reproduce"):
        load_figure(tmp_path / "none.nc")
    (tmp_path / "file").write_text("")
    figure = toy("nrr/a", lambda s: xarray.Dataset({"x": ("n", np.ones(s["n"]))}))
    with says("cannot make the folder", got="Not a directory", wanted="a folder", fix="--out"):
        figure.publish(figure.run(figure.resolve()), tmp_path / "file")


def test_figure_4_compares_theory_and_simulation_at_the_same_times():
    """Also where the number of steps is no multiple of those between recordings."""
    figure = papers.find("nrr/fig4")
    small = {"M": 3, "K": 2, "hidden": 12, "steps": 23, "every": 5, "seeds": 1}
    table = figure.run(figure.resolve(changes=small))
    assert table["time"].to_numpy() == pytest.approx(0.16 * np.array([0, 5, 10, 15, 20, 23]))
    gap = np.abs(table["by_hand"] - table["decoupled"]).max() / table["decoupled"][0]
    assert float(gap) < 1e-12
