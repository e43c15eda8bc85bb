"""What commands share: the look of pictures, JSON, exit codes, completion; and BibTeX."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import neuralrace as nr
import papers
from neuralrace import cli
from neuralrace.cli.citing import PAPERS, entries
from neuralrace.plot import Look, current_look
from tests.test_cli import group_of, run, toy  # noqa: F401
from tests.test_errors import refuses, says
from tests.test_house import HEAVY, in_a_fresh_process
from tests.test_look import inches
from tests.test_study import ROOT, xor

# ---- the look -----------------------------------------------------------------------------------


def test_a_figure_has_the_look_and_the_formats(toy, tmp_path):  # noqa: F811
    output = run(
        *("reproduce", "toy/one", "--out", tmp_path, "--format", "svg,pdf"),
        *("--figsize", "6x2", "--rc", "font.family=serif"),
    )
    svg = tmp_path / "toy/one.svg"
    assert str(svg) in output and (tmp_path / "toy/one.png").exists()
    assert inches(svg.read_bytes()) == pytest.approx((6, 2))
    assert b"DejaVuSerif" in svg.read_bytes()
    assert 'href="toy/one.svg"' in (tmp_path / "index.html").read_text()
    assert current_look() == Look()


def test_a_stored_figure_is_drawn_again_with_another_look(toy, tmp_path):  # noqa: F811
    run("reproduce", "toy/one", "--out", tmp_path / "a")
    assert toy.computed == ["toy/one"]
    again = ["--from", tmp_path / "a/toy/one.nc", "--format", "svg", "--figsize", "2,3"]
    run("reproduce", *again, "--out", tmp_path / "b")
    assert toy.computed == ["toy/one"]
    assert inches((tmp_path / "b/toy/one.svg").read_bytes()) == pytest.approx((2, 3))


def test_a_report_has_its_pictures_as_files(tmp_path):
    path = xor(["contest"]).save(tmp_path / "study.toml")
    look = ["--format", "pdf,svg", "--figsize", "4,3", "--rc", "font.family=serif"]
    run("run", path, "--out", tmp_path / "out", *look)
    found = sorted(p.name for p in (tmp_path / "out").glob("figure_*"))
    assert found and {name.split(".")[1] for name in found} == {"pdf", "svg"}
    page = (tmp_path / "out/index.html").read_text()
    assert all(f'href="{name}"' in page for name in found)
    for svg in (tmp_path / "out").glob("*.svg"):
        assert inches(svg.read_bytes()) == pytest.approx((4, 3))
        assert b"DejaVuSerif" in svg.read_bytes()


def test_a_look_that_cannot_be_drawn_is_found_before_anything_is_computed(toy, tmp_path):  # noqa: F811
    begin = ("reproduce", "toy/one", "--out", tmp_path / "out")
    with says("format", got="'gif'", wanted="svg, pdf, png", fix="formats"):
        run(*begin, "--format", "svg,gif")
    with refuses("--figsize"):
        run(*begin, "--figsize", "big")
    with says("no size", got="640", wanted="inches", fix="3.4"):
        run(*begin, "--figsize", "640,480")
    with refuses("font.famili"):
        run(*begin, "--rc", "font.famili=serif")
    with refuses("--rc"):
        run(*begin, "--rc", "serif")
    with refuses("out"):
        run(*begin, "--rc", "figure.subplot.left=2", "--rc", "figure.constrained_layout.use=false")
    assert toy.computed == [] and not (tmp_path / "out").exists()


# ---- JSON ---------------------------------------------------------------------------------------


def output(capsys, monkeypatch, *arguments):
    """Exit code and standard output of the whole command."""
    monkeypatch.setattr(sys, "argv", ["neuralrace", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main(group_of(arguments[0]))
    return caught.value.code, capsys.readouterr().out


def test_figures_as_json(toy, tmp_path, capsys, monkeypatch):  # noqa: F811
    listed = json.loads(run("list", "--json", "--settings"))
    assert [row["name"] for row in listed] == ["toy/one", "toy/two"]
    assert listed[0]["settings"]["rate"] == {"value": 0.1, "about": "a rate", "source": "here"}
    command = ("reproduce", "toy/one", "--out", tmp_path, "--json", "--seeds", "4")
    code, printed = output(capsys, monkeypatch, *command)
    (row,) = json.loads(printed)
    assert code == 0 and row["verdict"] == "0 of 1 agree" and row["changed"] == ["seeds"]
    assert str(tmp_path / "toy/one.nc") in row["files"]


def test_studies_as_json(tmp_path, capsys, monkeypatch):
    path = xor(["contest"]).save(tmp_path / "study.toml")
    code, printed = output(capsys, monkeypatch, "check", path, "--json", "--seeds", "3")
    found = json.loads(printed)
    assert code == 0 and found["questions"] == ["contest"]
    assert any(line.startswith("task: 4 samples") for line in found["found"])
    with refuses("seeds"):
        run("check", path, "--seeds", "0")


# ---- exit codes ---------------------------------------------------------------------------------


def swept(folder, values):
    sweep = {"over": {"contest.longest": values}, "batch": 1}
    contest = {"check": False, "criterion": 1e-30}
    return xor(["predict"], sweep=sweep, contest=contest).save(folder / "study.toml")


def test_exit_codes(tmp_path, capsys, monkeypatch):
    assert output(capsys, monkeypatch, "list")[0] == 0
    assert output(capsys, monkeypatch, "--help")[0] == 0
    assert "no figure" in output(capsys, monkeypatch, "list", "nothing")[0]  # SystemExit(text) is 1
    assert output(capsys, monkeypatch, "lisst")[0] == 2
    assert output(capsys, monkeypatch, "run")[0] == 2


def test_failed_cells_have_an_exit_code_of_their_own(tmp_path, capsys, monkeypatch):
    pytest.importorskip("zarr")
    path = swept(tmp_path, [1.0])
    code, _ = output(capsys, monkeypatch, "run", path, "--out", tmp_path / "out")
    assert code == 3
    code, printed = output(capsys, monkeypatch, "status", tmp_path / "out", "--json")
    found = json.loads(printed)
    assert code == 0 and (found["cells"], found["failed"], found["missing"]) == (1, 1, 0)


def test_ctrl_c_has_the_exit_code_of_shells(toy, tmp_path, capsys, monkeypatch):  # noqa: F811
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(papers.Figure, "run", interrupted)
    code, _ = output(capsys, monkeypatch, "reproduce", "toy/one", "--out", tmp_path)
    assert code == 130


# ---- completion ---------------------------------------------------------------------------------


def offered(*words):
    """What a shell offers for the last word."""
    complete = ShellComplete(cli.commands, {}, "neuralrace", "_X")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_a_shell_is_offered_commands_names_and_keys(tmp_path):
    assert set(offered("r")) == {"run", "report"}
    assert offered("cite", "mh") == ["mhs"]
    path = xor(["contest"]).save(tmp_path / "study.toml")
    assert offered("run", str(path), "--set", "training.s") == ["training.steps="]
    assert offered("run", str(tmp_path / "none.toml"), "--set", "t") == []
    path.write_text("no toml")
    assert offered("check", str(path), "--set", "t") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell):
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    script = run("completion", shell)
    assert f"_NEURALRACE_COMPLETE={shell}_complete" in script


def test_bash_completes():
    """A real bash reads the script and asks the command."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    code = (
        f'neuralrace() {{ "{sys.executable}" -m neuralrace "$@"; }}\n'
        'eval "$(neuralrace completion bash)"\n'
        "COMP_WORDS=(neuralrace stat) COMP_CWORD=1\n"
        '_NEURALRACE_COMPLETE=bash_complete COMP_WORDS="neuralrace stat" COMP_CWORD=1 neuralrace\n'
        "complete -p neuralrace\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    told = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, env=environment, timeout=600
    )
    assert "plain,status" in told.stdout and "_neuralrace_completion" in told.stdout


def test_completion_and_citations_import_nothing_heavy():
    heavy = (*HEAVY, "pydantic", "dask", "zarr")
    code = (
        "import sys\nfrom neuralrace.cli import commands\n"
        "from click.shell_completion import ShellComplete\n"
        "complete = ShellComplete(commands, {}, 'neuralrace', '_X')\n"
        "complete.get_completions(['run', 'examples/studies/demo.toml', '--set'], '')\n"
        "commands(['cite'], standalone_mode=False)\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    assert in_a_fresh_process(code).splitlines()[-1] == "[]"


# ---- citations ----------------------------------------------------------------------------------


def cff():
    """Title, year, family names, DOI and pages of every work in CITATION.cff."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_bibtex_says_what_the_citation_file_says():
    whole, found = cff(), list(entries().values())
    assert whole["version"] == nr.__version__ and f"version {nr.__version__}" in found[0]
    year = re.search(r"Copyright \(c\) (\d{4})", (ROOT / "LICENSE").read_text())
    assert year is not None and f"year = {{{year[1]}}}" in found[0]
    assert len(found) == 1 + len(whole["references"])
    for work, entry in zip(whole["references"], found[1:], strict=True):
        entry = entry.replace(r"{\'e}", "é")
        names = [f"{a['family-names']}, {a['given-names']}" for a in work["authors"]]
        assert f"title = {{{work['title']}}}" in entry
        assert f"author = {{{' and '.join(names)}}}" in entry
        for key, form in {
            "year": "{}",
            "volume": "{}",
            "issue": "{}",
            "doi": "{}",
            "url": "{}",
        }.items():
            if key in work:
                name = {"issue": "number"}.get(key, key)
                assert f"{name} = {{{form.format(work[key])}}}" in entry
        if "start" in work:
            assert f"pages = {{{work['start']}--{work['end']}}}" in entry


def test_cite_chooses_by_paper_figure_and_key():
    whole = run("cite")
    assert len(re.findall(r"^@", whole, re.MULTILINE)) == len(entries())
    assert whole.count("{") == whole.count("}")
    assert run("cite", "nrr/fig4") == run("cite", "nrr") == run("cite", PAPERS["nrr"])
    assert list(json.loads(run("cite", "mhs", "neuralrace", "--json"))) == [
        PAPERS["mhs"],
        "neuralrace",
    ]
    assert set(PAPERS) == {name.split("/")[0] for name in papers.names()}
    with refuses("cite"):
        run("cite", "nrrr")


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_has_every_command_and_option():
    """And names no command for an option that does not have it."""
    page = (ROOT / "docs" / "cli.md").read_text()
    rows = dict(re.findall(r"^\| (`--[^|]*?) \| ([^|]*?) \|", page, re.MULTILINE))
    assert set(re.findall(r"^\| `neuralrace (\w+)", page, re.MULTILINE)) == set(
        cli.commands.commands
    )
    told = {}
    for options, commands in rows.items():
        for option in re.findall(r"`(--[\w-]+)", options):
            told[option] = set(re.findall(r"`(\w+)`", commands))
    told["--json"] = set(cli.commands.commands) - told["--json"]  # "all but"
    real = {}
    for name, command in cli.commands.commands.items():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    real.setdefault(option, set()).add(name)
    assert told == real
