"""`neuralrace report`: a report again from what was computed."""

import json
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sympy

import neuralrace as nr
from neuralrace import report
from neuralrace.plot import style
from neuralrace.study import write_again
from tests.sweep_cells import odd_ones_fail
from tests.test_errors import refuses, says
from tests.test_look import inches
from tests.test_study import run, xor


def page():
    """A page with one of everything."""
    with style():
        figure, ax = plt.subplots()
        ax.plot([0, 1])
    a, t = sympy.Function("a"), sympy.Symbol("t")
    flow = sympy.Eq(sympy.Derivative(a(t), t), 2 * a(t) * (1 - a(t)))
    curve = report.Curve("a", [0, 1, 2], [[1.0, np.nan, 0.5], [1.0, 0.1, 1 / 3]], "relu")
    parts = [
        report.Text("<b> `code` & more"),
        report.Code("x = 1\n  y"),
        report.Table(
            ("a", "b"), [("x", np.float64(1 / 3)), (None, True), (np.inf, 2)], "c", "t.csv"
        ),
        report.Curves([curve], ylog=True, alt="falls", file="c.csv"),
        report.Picture.of(figure, alt="a line", caption="A line"),
        report.Equation([flow, sympy.Symbol("b") / 3], "Flow"),
        report.Section("Inside", [report.File("x.txt", "a file", "text")], folded=True),
    ]
    return report.Page(
        "Title",
        question="Why?",
        answer=["So."],
        sections=[report.Section("S", parts)],
        settings=[report.Setting("n", [1, 2.5, "x"], "here", "about", [1])],
        files=[report.File("y.txt", "other", b"bytes")],
        provenance=report.provenance(seeds=(1, 2), command="c", seconds=1.5, date="now"),
    )


def test_a_page_is_the_same_after_it_was_kept(tmp_path):
    first = report.write(page(), tmp_path).read_bytes()
    kept = report.to_json(page())
    json.loads(kept, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    again = report.from_json(kept)
    tables = {p.name: p.read_bytes() for p in tmp_path.glob("*.csv")}
    assert report.write(again, tmp_path).read_bytes() == first
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.csv")} == tables
    assert len(tables) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"is": "Text"', '"is": "os.system"'),
        ('"neuralrace page 1"', '"neuralrace page 9"'),
        ('"title": "Title"', '"titel": "Title"'),
        ('"is": "Page"', '"is": "Text"'),
        ('"base64": "', '"base64": "?'),
        ("{", ""),
    ],
)
def test_what_is_no_page_is_an_error(old, new):
    kept = report.to_json(page())
    assert old in kept
    with says("cannot be read as the page", got="", wanted="neuralrace page 1", fix="run"):
        report.from_json(kept.replace(old, new, 1))


@pytest.mark.parametrize("evil", ["<script>x</script>", '<mi onclick=\\"x\\">a</mi>', "<!-- -->"])
def test_a_kept_formula_is_mathml_alone(evil):
    kept = report.to_json(page()).replace("<mtable", f"{evil}<mtable", 1)
    with says("formula", got="<math", wanted="MathML", fix="SymPy"):
        report.html(report.from_json(kept))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    xor(["contest", "reduce"]).save(folder / "my.toml")
    run("run", folder / "my.toml", "--out", folder / "out")
    return folder / "out"


def test_a_report_is_written_again_without_computing(written, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "neuralrace.study.work.answered", lambda *_, **__: pytest.fail("it was run")
    )
    before = (written / "index.html").read_bytes()
    there = {path.name for path in written.iterdir()}
    (written / "index.html").unlink()
    assert (written / "index.html").resolve().as_uri() in run("report", written)
    assert (written / "index.html").read_bytes() == before
    run("report", written, "--out", tmp_path / "b")
    assert (tmp_path / "b/index.html").read_bytes() == before
    assert {path.name for path in (tmp_path / "b").iterdir()} >= there - {"my.toml"}
    run("report", tmp_path / "b")  # what was copied is whole


def test_a_report_gets_another_look(written, tmp_path):
    look = ["--format", "svg,pdf", "--figsize", "5,2", "--rc", "font.family=serif"]
    run("report", written, "--out", tmp_path / "b", *look)
    sizes = [inches(path.read_bytes()) for path in sorted((tmp_path / "b").glob("*.svg"))]
    assert (5, 2) in [(round(w, 6), round(h, 6)) for w, h in sizes]  # curves
    assert (3.5, 5.0) in [(round(w, 6), round(h, 6)) for w, h in sizes]  # a picture, as it was
    assert list((tmp_path / "b").glob("*.pdf"))


def test_a_folder_that_is_no_report_is_an_error(written, tmp_path):
    with refuses("out"):
        run("report", tmp_path)
    run("report", written, "--out", tmp_path / "b")
    (tmp_path / "b/study.py").unlink()
    with refuses("file"):
        run("report", tmp_path / "b", "--out", tmp_path / "c")


# ---- sweeps -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    pytest.importorskip("zarr")
    folder = tmp_path_factory.mktemp("sweep")
    over = {"task.parameters.delta": {"start": 0.4, "stop": 1.2, "count": 2}}
    study = xor(["contest"], sweep={"over": over, "batch": 1, "seeds": 2}, title="T")
    run("run", study.save(folder / "my.toml"), "--out", folder / "out")
    return folder / "out"


def test_a_sweep_is_reported_from_its_store(swept, tmp_path):
    cells = (swept / "cells.csv").read_bytes()
    output = run("report", swept, "--out", tmp_path / "b", "--format", "pdf")
    assert "The report: " in output and "missing" not in output
    assert (tmp_path / "b/cells.csv").read_bytes() == cells
    assert (tmp_path / "b/study.toml").read_bytes() == (swept / "study.toml").read_bytes()
    assert list((tmp_path / "b").glob("figure_*.pdf"))
    found = json.loads(run("report", swept / "sweep.zarr", "--out", tmp_path / "c", "--json"))
    assert (found["missing"], found["failed"]) == (0, 0)


def test_a_sweep_is_reported_before_it_is_complete(swept, tmp_path, monkeypatch):
    """A store without the files of a report, and with half of its batches."""
    module = sys.modules["neuralrace.sweeps.sweep"]
    computed = module._computed

    def half(results, engine, todo, path):
        assert len(todo) == 4
        return computed(results, engine, todo[:2], path)

    monkeypatch.setattr(module, "_computed", half)
    nr.Study.load(swept / "study.toml").sweep(store=tmp_path / "out/sweep.zarr")
    output = run("report", tmp_path / "out")
    assert "2 cells are missing, 0 failed" in output
    page = (tmp_path / "out/index.html").read_text()
    assert "2 done, 0 failed, 2 missing" in page
    again = nr.Study.load(tmp_path / "out/study.toml").settings.sweep
    assert again.seeds == 2 and list(again.over.values()) == [(0.4, 1.2)]


def test_a_sweep_of_something_else_is_refused(tmp_path):
    pytest.importorskip("zarr")
    nr.sweep(odd_ones_fail, {"x": [2, 4]}, store=tmp_path / "s.zarr")
    with refuses("s.zarr"):
        write_again(tmp_path / "s.zarr")
