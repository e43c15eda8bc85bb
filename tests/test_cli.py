"""The command line, with figures of its own that take no time."""

import sys
import types

import numpy as np
import pytest
import xarray
from click.testing import CliRunner

import papers
from evidence import Basis
from neuralrace import NeuralRaceError, cli
from papers import Figure, Setting, commands, load_figure, read_record, stated
from tests.test_errors import refuses, says
from tests.test_house import HEAVY, in_a_fresh_process


class Toy:
    """Two figures; `computed` counts how often each was computed."""

    def __init__(self):
        self.computed = []

    def figure(self, name, settings):
        import matplotlib.pyplot as plt

        def compute(values):
            self.computed.append(name)
            return xarray.Dataset({"x": ("n", np.arange(values["seeds"] * 1.0))})

        def draw(table):
            figure, ax = plt.subplots()
            ax.plot(table["x"])
            return figure

        def measures(table):
            n = table.sizes["n"]
            rests = Basis.THEOREM
            return (stated("length", "length", "3", str(n), n, least=3, most=3, rests=rests),)

        return Figure(name, f"Toy {name}", "nothing", settings, compute, draw, measures)


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    seeds = Setting(3, "repetitions", "here", quick=2)
    settings = {
        "one": {"seeds": seeds, "rate": Setting(0.1, "a rate", "here")},
        "two": {"seeds": seeds, "scales": Setting((0.1, 1.0), "scales", "here")},
    }
    for name, those in settings.items():
        module = types.SimpleNamespace(FIGURE=made.figure(f"toy/{name}", those))
        monkeypatch.setitem(sys.modules, f"papers.toy.{name}", module)
    monkeypatch.setattr(papers, "_FIGURES", {"toy": ("one", "two")})
    return made


def group_of(command):
    """The commands of the papers, or those of the package."""
    return commands.commands if command in commands.commands.commands else cli.commands


def run(command, *arguments):
    result = CliRunner().invoke(group_of(command), [command, *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.output


def settings(path):
    return {name: s["value"] for name, s in read_record(load_figure(path)).settings.items()}


def test_list_imports_nothing_heavy():
    code = (
        "import sys\nfrom papers.commands import commands\n"
        "commands(['list', '--settings'], standalone_mode=False)\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    lines = in_a_fresh_process(code).splitlines()
    assert lines[-1] == "[]"
    named = [line.split()[0] for line in lines if line and not line.startswith((" ", "["))]
    assert named == list(papers.names())


def test_list_has_a_line_a_figure(toy):
    assert run("list").splitlines() == ["toy/one  Toy toy/one", "toy/two  Toy toy/two"]
    assert "    rate=0.1  a rate (here)" in run("list", "toy/one", "--settings")
    assert toy.computed == []


def test_reproduce_writes_everything(toy, tmp_path):
    output = run("reproduce", "toy", "--out", tmp_path)
    assert toy.computed == ["toy/one", "toy/two"]
    assert "toy/one: 1 of 1 agree" in output
    assert "✓ length: 3 (3)" in output
    for name in ("one", "two"):
        for end in ("pdf", "png", "nc"):
            assert (tmp_path / f"toy/{name}.{end}").stat().st_size > 0
    assert "toy/two.png" in (tmp_path / "index.html").read_text()
    record = read_record(load_figure(tmp_path / "toy/one.nc"))
    assert not record.quick
    assert {"neuralrace", "jax", "numpy"} <= set(record.versions)


def test_quick_seeds_and_settings_reach_the_figures_that_have_them(toy, tmp_path):
    run("reproduce", "toy/one", "toy/two", "--quick", "--set", "scales=1,2,3", "--out", tmp_path)
    assert settings(tmp_path / "toy/one.nc") == {"seeds": 2, "rate": 0.1}
    assert settings(tmp_path / "toy/two.nc") == {"seeds": 2, "scales": [1.0, 2.0, 3.0]}
    output = run("reproduce", "toy/one", "--quick", "--seeds", "5", "--out", tmp_path)
    assert settings(tmp_path / "toy/one.nc")["seeds"] == 5
    assert "✗ length: 5 (3)" in output
    page = (tmp_path / "index.html").read_text()
    assert "python -m papers reproduce toy/one --set seeds=5" in page


def test_other_settings_are_told_and_counts_are_at_least_one(toy, tmp_path):
    assert "not default" not in run("reproduce", "toy/one", "--out", tmp_path)
    output = run("reproduce", "toy/one", "--quick", "--out", tmp_path)
    assert "bounds are those for the default settings; not default: seeds" in output
    assert "Bounds are those for the default" in (tmp_path / "index.html").read_text()
    with refuses("seeds"):
        run("reproduce", "toy/one", "--seeds", "0")


def test_from_a_file_nothing_is_computed(toy, tmp_path):
    run("reproduce", "toy/one", "--seeds", "4", "--out", tmp_path / "a")
    assert toy.computed == ["toy/one"]
    run("reproduce", "--from", tmp_path / "a/toy/one.nc", "--out", tmp_path / "b")
    assert toy.computed == ["toy/one"]
    first, second = (load_figure(tmp_path / f"{x}/toy/one.nc") for x in "ab")
    xarray.testing.assert_identical(first, second)
    pictures = [(tmp_path / f"{x}/toy/one.png").read_bytes() for x in "ab"]
    assert pictures[0] == pictures[1]
    assert (tmp_path / "b/index.html").exists()


def test_what_is_not_there_is_an_error_before_anything_is_computed(toy, tmp_path):
    with refuses("toy/on"):
        run("reproduce", "toy/on")
    with refuses("seeds"):
        run("reproduce", "toy/one", "--set", "rat=1")
    with refuses("--set"):
        run("reproduce", "toy", "--set", "rate=fast")
    with refuses("seeds"):
        run("reproduce", "toy", "--seeds", "many")
    with refuses("--set"):
        run("reproduce", "toy", "--set", "rate")
    with refuses("quick"):
        run("reproduce")
    with refuses("out"):
        run("reproduce", "toy", "--from", "x.nc")
    with refuses("x"):
        run("reproduce", "--from", tmp_path / "x.nc")
    assert toy.computed == []


@pytest.mark.parametrize("name", ["talk/depth", "talk/continual"])
def test_seeds_of_a_figure_without_any_are_an_error_that_says_so(name):
    has = ", ".join(papers.find(name).settings)
    with says(f"no seeds in {name}", got="a number of seeds", wanted=has, fix="leave out"):
        run("reproduce", name, "--seeds", 3)


def test_an_error_is_a_message_and_not_a_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["papers", "reproduce", "nrr/nothing"])
    with pytest.raises(SystemExit, match=r"error: there is no figure 'nrr/nothing'") as caught:
        cli.main(commands.commands, "python -m papers")
    assert "nrr/fig4" in str(caught.value)


@pytest.mark.parametrize("name", ["list", "reproduce"])
def test_a_command_that_moved_says_where(name, monkeypatch):
    with pytest.raises(NeuralRaceError) as caught:
        cli.commands([name, "nrr/fig4", "--quick"], standalone_mode=False)
    assert name in str(caught.value.got) and f"python -m papers {name}" in caught.value.fix
    assert name in commands.commands.commands and name not in cli.commands.commands
    monkeypatch.setattr(sys, "argv", ["neuralrace", name, "--help"])
    with pytest.raises(SystemExit, match=f"python -m papers {name}"):
        cli.main()


@pytest.mark.parametrize("command", [("reproduce", "toy/one")])
def test_a_place_that_cannot_be_written_is_found_before_computing(
    toy, tmp_path, monkeypatch, capsys, command
):
    (tmp_path / "file").write_text("no folder")
    out = tmp_path / "file" / "inside" / "page.md"
    monkeypatch.setattr(sys, "argv", ["papers", *command, "--out", str(out)])
    with pytest.raises(SystemExit) as caught:
        cli.main(commands.commands, "python -m papers")
    assert "error: cannot write to the folder" in str(caught.value.code)
    assert "fix:" in str(caught.value.code)
    assert toy.computed == []
    assert capsys.readouterr().out == ""


def test_claims_are_measured_by_the_evidence():
    with pytest.raises(NeuralRaceError) as caught:
        cli.commands(["claims", "nrr"], standalone_mode=False)
    assert "python -m evidence" in caught.value.fix
