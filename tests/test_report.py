"""Reports: what is on the page, that everything is escaped, files, curves, formulas, browsers."""

import base64
import csv
import hashlib
import html
import io
import json
import re
import shutil
import subprocess
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from pathlib import Path

import jax
import numpy as np
import pytest
import sympy

import neuralrace as nr
from neuralrace import mathml, report
from neuralrace.report import (
    Code,
    Curve,
    Curves,
    Equation,
    File,
    Page,
    Picture,
    Provenance,
    Section,
    Setting,
    Table,
    Text,
    chart,
    markup,
    writing,
)
from tests.test_errors import refuses, says

ROOT = Path(__file__).parent.parent
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="100pt" height="50pt"></svg>'
TIME = np.linspace(0.0, 10.0, 51)


class Elements(HTMLParser):
    """Every element with its attributes, and the text of each kind of element."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.texts = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "line", "rect", "path", "img", "circle", "mspace"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, "elements are nested"

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def example(**changed):
    """A page with one of everything."""
    curves = Curves(
        [
            Curve("xor", TIME, [np.exp(-TIME), np.exp(-1.2 * TIME)]),
            Curve("xor", TIME[::2], np.exp(-1.1 * TIME[::2]), "theory"),
            Curve("ReLU", TIME, np.exp(-TIME / 2), "relu"),
        ],
        file="losses.csv",
    )
    a, t = sympy.symbols("a t")
    given = {
        "title": "A study",
        "question": "Which one?",
        "answer": ["`xor` wins."],
        "sections": [
            Section("Contest", [Text("One.\n\nTwo."), Table(("a", "b"), [("x", 1.0)]), curves]),
            Section("More", [Equation(sympy.Eq(a, t**2)), Picture(SVG, alt="a picture")]),
            Section("Code", [Section("Script", [Code("x = 1")], folded=True)]),
        ],
        "settings": [Setting("steps", 500, "study.toml", "how many", default=200)],
        "files": [File("study.py", "a script", "import neuralrace\n")],
        "provenance": Provenance("0.2.0", "abc123", "2026-01-31", (0, 1), ("cpu",), {"jax": "1"}),
    }
    return Page(**(given | changed))


# ---- what is on the page ------------------------------------------------------------------------


def test_a_page_has_everything_that_was_given():
    page = Elements(report.html(example()))
    assert page.open == []
    words = " ".join(text for texts in page.texts.values() for text in texts)
    for word in ("A study", "Which one?", "wins.", "One.", "Two.", "study.toml", "how many"):
        assert word in words
    for word in ("0.2.0", "abc123", "2026-01-31", "0, 1", "cpu", "jax 1", "(default 200)"):
        assert word in words
    assert [a["href"] for a in page.named("a") if "#" not in a["href"]] == [
        "losses.csv",
        "study.py",
    ]
    assert page.texts["code"][0] == "xor"
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [a["href"][1:] for a in page.named("a") if a["href"].startswith("#")]
    assert links[:3] == ["contest", "more", "code"]
    assert set(links) <= set(ids)
    assert "script" not in links, "what is folded is not among the contents"
    assert page.named("img")[1]["alt"] == "a picture"
    assert page.named("math")[0]["alttext"] == "a = t^{2}"


def test_settings_at_the_default_are_folded():
    settings = [
        report.Setting("steps", 5, "a.toml", "how many", default=9),
        report.Setting("rate", 0.125, "default", "how far"),
        report.Setting("seeds", 3, "default", "how often"),
    ]
    page = report.html(Page("A study", settings=settings))
    start, end = (
        page.index("<details><summary>2 more settings at the default"),
        page.index("</details>"),
    )
    assert page.index("steps") < start < page.index("0.125") < end
    assert page.count(">from<") == 1, "the source of the folded ones is known"
    bare = report.html(Page("A study", settings=settings[:1]))
    assert "<details>" not in bare


def test_the_answer_comes_first_and_what_is_empty_is_left_out():
    page = report.html(example())
    order = [page.index(f">{word}<") for word in ("A study", "Contest", "Settings", "Files")]
    assert order == sorted(order)
    assert page.index("wins.") < page.index('id="contest"')
    bare = report.html(Page("Only a title"))
    for word in ('class="question"', 'class="answer"', "<nav", "<dl", "<table", "<script"):
        assert word not in bare


def test_a_number_stays_with_its_per_cent_sign():
    page = Page("P", sections=[Section("S", [Table(("later",), [("13.4 %",)])])])
    assert "<td>13.4\u00a0%</td>" in report.html(page)


def test_cells_of_a_table_are_shown_by_their_kind():
    rows = [("a", 0.123456, True, None), ("b", np.float64(12.0), np.bool_(False), "`c`")]
    page = report.html(Page("T", sections=[Section("S", [Table("nxht", rows)])]))
    assert '<td class="number">0.1235</td>' in page
    assert '<td class="number">12</td>' in page
    assert 'aria-label="yes">✓' in page
    assert 'aria-label="no">✗' in page
    assert "<td>–</td>" in page
    assert "<td><code>c</code></td>" in page
    assert '<th scope="col" class="number">x</th>' in page


# ---- everything is escaped ----------------------------------------------------------------------

EVIL = '<b onclick="x()">&amp;\'`</style></script><script>alert(1)</script><!-- '


def evil_page():
    """A page of which every text is markup."""
    file = "a<b>\"'&.csv"
    function, symbol = sympy.Function(EVIL), sympy.Symbol(EVIL)
    matrix = sympy.MatrixSymbol(EVIL, 2, 2)
    return Page(
        EVIL,
        question=EVIL,
        answer=[EVIL, f"`{EVIL}`"],
        sections=[
            Section(
                EVIL,
                [
                    Text(EVIL),
                    Code(EVIL),
                    Table((EVIL,), [(EVIL,)], caption=EVIL, file=file),
                    Curves([Curve(EVIL, [0, 1], [1, 2])], EVIL, EVIL, caption=EVIL, alt=EVIL),
                    Picture(SVG, alt=EVIL, caption=EVIL),
                    Equation([symbol**2, function(symbol), matrix, symbol], caption=EVIL),
                    File("b" + file, EVIL, "x"),
                    Section(EVIL, [Text(EVIL)], folded=True),
                ],
            )
        ]
        * 3,
        settings=[Setting(EVIL, EVIL, EVIL, EVIL, EVIL + "other")],
        files=[File("c" + file, EVIL, "x")],
        provenance=Provenance(EVIL, EVIL, EVIL, EVIL, (EVIL,), {EVIL: EVIL}, EVIL, 1.0),
    )


def test_markup_in_a_text_is_text():
    page = Elements(report.html(evil_page()))
    assert page.open == []
    assert not page.named("b")
    assert len(page.named("script")) == 3 + 2, "the numbers of three drawings, and two scripts"
    for _, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on")]
    data = [json.loads(text) for text in page.texts["script"] if text.startswith("{")]
    assert data[0]["xlabel"] == EVIL
    for tag in ("title", "h1", "h2", "h3", "p", "td", "th", "code", "dd", "mi", "button"):
        assert "<script>alert(1)</script>" in "".join(page.texts[tag]), tag
    assert page.named("img")[0]["alt"] == EVIL
    assert "<script>alert(1)</script>" in page.named("math")[0]["alttext"]


def test_every_field_that_holds_text_is_in_the_page_of_markup():
    """So that a field that is added later is tried too."""

    def texts(value, path):
        if isinstance(value, str):
            yield path, value
        elif is_dataclass(value):
            for field in fields(value):
                yield from texts(getattr(value, field.name), f"{type(value).__name__}.{field.name}")
        elif isinstance(value, dict):
            for pair in value.items():
                yield from texts(list(pair), path)
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from texts(one, path)

    found = {path for path, text in texts(evil_page(), "") if EVIL in text or "<b>" in text}
    wanted = {
        f"{kind.__name__}.{field.name}"
        for kind in (getattr(report, name) for name in report.__all__)
        if is_dataclass(kind)
        for field in fields(kind)
        if "str" in str(field.type)
    }
    chosen = {"Curve.kind", "Curves.file", "File.content", "Picture.source", "Picture.copies"}
    chosen |= {"Table.data", "Table.right"}
    assert wanted - chosen == found - {"Table.rows", "Setting.value", "Setting.default"}


def test_the_page_allows_its_own_scripts_alone():
    page = Elements(report.html(example()))
    policy = next(
        m["content"] for m in page.named("meta") if "content" in m and "src" in m["content"]
    )
    scripts = [text for text in page.texts["script"] if not text.startswith("{")]
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "unsafe" not in policy.split("script-src")[1]
    assert "Leon Sorokin" in scripts[0], "the licence comes with the library"


def test_the_page_loads_nothing_from_elsewhere():
    page = Elements(report.html(example()))
    for tag, attributes in page.found:
        for name in ("src", "href"):
            address = attributes.get(name, "")
            assert not re.match(r"(\w+:)?//", address), f"{tag} loads {address}"
    assert "@import" not in "".join(page.texts["style"])
    assert "url(" not in "".join(page.texts["style"])


# ---- files --------------------------------------------------------------------------------------


def test_files_are_written_beside_the_page(tmp_path):
    page = report.write(example(), tmp_path / "new" / "folder")
    assert page.name == "index.html"
    found = {path.name: path for path in page.parent.iterdir()}
    assert set(found) == {"index.html", "losses.csv", "study.py"}
    rows = list(csv.DictReader(io.StringIO(found["losses.csv"].read_text())))
    assert len(rows) == 2 * 51 + 26 + 51
    second = [row for row in rows if row["curve"] == "xor" and row["seed"] == "2"]
    assert [float(row["time"]) for row in second] == TIME.tolist()
    assert [float(row["loss"]) for row in second] == np.exp(-1.2 * TIME).tolist()
    assert found["study.py"].read_text() == "import neuralrace\n"


def test_the_same_page_gives_the_same_bytes(tmp_path):
    def bytes_of(folder):
        axes = nr.plot.draw_curves(TIME, {"a": TIME})
        picture = Picture.of(axes.figure, alt="a line")
        page = example(sections=[*example().sections, Section("Picture", [picture])])
        report.write(page, folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_a_picture_that_is_a_file_is_linked_with_its_width(tmp_path):
    from matplotlib.figure import Figure

    Figure(figsize=(4, 2)).savefig(tmp_path / "p.png", dpi=200)
    section = Section("S", [Picture("p.png", alt="x"), File("p.png")])
    (image,) = Elements(report.write(Page("T", sections=[section]), tmp_path).read_text()).named(
        "img"
    )
    assert image["src"] == "p.png"
    assert float(image["width"]) == 4 * 72 * 1.75


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x.csv", "a/../../b", "index.html", "javascript:x", "a\nb", None]
)
def test_a_file_stands_below_the_folder_of_the_page(name):
    with says(
        "the name of a file beside the page", got=repr(name)[:10], wanted="below", fix="losses"
    ):
        File(name)


def test_bad_files_are_refused(tmp_path):
    missing = Page("T", files=[File("run.nc", "the run")])
    with refuses("page"):
        report.write(missing, tmp_path)
    assert not (tmp_path / "index.html").exists()
    twice = Page("T", files=[File("a.csv", "", "1"), File("a.csv", "", "2")])
    with refuses("a.csv"):
        report.write(twice, tmp_path)
    (tmp_path / "run.nc").write_bytes(b"data")
    report.write(missing, tmp_path)
    assert (tmp_path / "run.nc").read_bytes() == b"data"
    with refuses("page"):
        report.write("page", tmp_path)


def test_the_wheel_has_the_files_of_the_page():
    from hatchling.builders.wheel import WheelBuilder

    there = {file.relative_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    folder = ROOT / "src/neuralrace/report/assets"
    wanted = {str(path.relative_to(ROOT)) for path in folder.iterdir()}
    assert len(wanted) == 5
    templates = {"report/templates/page.html", "study/templates/new.toml"}
    assert wanted | {f"src/neuralrace/{name}" for name in templates} <= there


# ---- curves -------------------------------------------------------------------------------------


def test_colours_are_those_of_the_style():
    assert [f"#{c}" for c in chart.COLOURS] == [
        nr.plot.cycle_colour(i) for i in range(len(chart.COLOURS))
    ]
    light, dark = chart.palette(dark=False), chart.palette(dark=True)
    assert light.count("--") == dark.count("--") == 4 * len(chart.COLOURS) + 3
    assert "--simulation0: #4095c5;" in light, "a quarter of the way from #0072b2 to white"
    assert "--theory: #1a1a1a;" in light and "--theory: #e8e8e8;" in dark
    assert "--relu: #f2c063;" in light


def test_the_page_has_the_colours_and_dashes_of_the_file(tmp_path):
    """Each curve of the file, drawn by matplotlib, against the variable that the page uses."""
    from matplotlib.colors import to_hex

    from neuralrace.report.chart import drawn_curves

    several = [
        Curve("ReLU networks", [0, 1], [1, 0], "relu"),
        Curve("a", [0, 1], [1, 0.1]),
        Curve("b", [0, 1], [1, 0.2]),
        *(Curve(name, [0, 1], [1, 0.3], "theory") for name in "bcd"),
    ]
    light = dict(re.findall(r"(--\w+): (#\w+);", chart.palette(dark=False)))
    for those in (several, several[3:], several[:2], several[1:4], several[4:]):
        curves = Curves(those)
        ax = drawn_curves(curves)
        for curve, look in zip(those, chart.looks(curves), strict=True):
            line = next(x for x in ax.lines if x.get_gid() == f"curve:{curve.kind}:{curve.name}")
            variable, dash = re.fullmatch(r"stroke:var\((.*?)\)(.*)", look).groups()
            assert light[variable] == to_hex(line.get_color())
            units = line._unscaled_dash_pattern[1]
            if dash:
                pixels = dash.removeprefix(";stroke-dasharray:").split()
                np.testing.assert_allclose([float(x) / chart.DASH for x in pixels], units)
            else:
                assert units == (None if curve.kind != "theory" else (3.2, 1.6))


def test_the_axis_ends_where_the_last_curve_comes_to_rest():
    time = np.arange(0.0, 101.0)
    falls = lambda at: np.where(time < at, 1.0, 0.0)
    seeds = np.stack([falls(10), falls(20)])
    of = lambda *values: Curves([Curve(f"c{i}", time, v) for i, v in enumerate(values)])
    assert chart.shown_until(of(falls(10))) == 12.5
    assert chart.shown_until(of(seeds, np.ones(101))) == 25.0
    assert chart.shown_until(of(falls(10), falls(85))) is None
    assert chart.shown_until(of(time)) is None and chart.shown_until(of(np.ones(101))) is None
    assert chart.shown_until(Curves([Curve("a", time, falls(10))], ylog=True)) is None
    assert chart.drawn_curves(of(falls(10))).get_xlim()[1] == 12.5
    assert '"until":12.5' in chart.numbers(of(falls(10)))


def test_curves_of_one_name_share_a_colour_and_kinds_differ():
    curves = example().sections[0].parts[2]
    assert chart.strokes(curves) == ["var(--simulation)", "var(--theory)", "var(--relu)"]
    more = Curves(
        [*curves.curves, Curve("b", [0, 1], [0, 1]), Curve("b", [0, 1], [0, 1], "theory")]
    )
    found = chart.strokes(more)
    assert found[:2] == ["var(--simulation0)", "var(--theory0)"]
    assert found[3:] == ["var(--simulation2)", "var(--theory2)"]  # orange is that of relu
    assert [chart.label(c) for c in curves.curves] == ["xor", "xor, theory", "ReLU"]
    many = Curves([Curve(f"c{i}", [0, 1], [i, i]) for i in range(12)])
    assert len(set(chart.strokes(many))) == 12


def test_a_drawing_has_the_points_of_its_curves():
    (line,) = chart.drawn_curves(Curves([Curve("a", [0, 1, 4], [0.0, 1.0, 0.5])])).get_lines()
    np.testing.assert_array_equal(line.get_xydata(), [[0, 0], [1, 1], [4, 0.5]])
    assert line.get_marker() == "o", "few points are marked"


def test_gaps_and_axes_without_a_value_can_be_drawn():
    gap = Curves([Curve("a", range(5), [1.0, 2.0, np.nan, 3.0, 4.0])])
    assert json.loads(chart.numbers(gap))["curves"][0]["y"] == [1.0, 2.0, None, 3.0, 4.0]
    logarithmic = Curves([Curve("a", [0, 1, 10, 100], [0.0, 1.0, 0.1, 0.01])], xlog=True, ylog=True)
    ax = chart.drawn_curves(logarithmic)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    nothing = Curves([Curve("a", [0, 1], [np.nan, np.nan]), Curve("b", [0], [0.0])], ylog=True)
    assert b"<svg" in chart.drawings(nothing)["svg"]


@pytest.mark.parametrize("text", ["$x", "a_b", "_hidden", "$\\frac$", "ε % #"])
def test_texts_of_a_drawing_are_not_formulas(text):
    curves = Curves([Curve(text, [0, 1], [1.0, 2.0])], xlabel=text, ylabel=text)
    assert b"<svg" in chart.drawings(curves)["svg"]


def test_the_numbers_on_the_page_are_those_of_the_curves():
    curves = example().sections[0].parts[2]
    found = json.loads(chart.numbers(curves))["curves"]
    assert found[0]["low"] == pytest.approx(np.exp(-1.2 * TIME), rel=1e-5)
    assert found[0]["high"] == pytest.approx(np.exp(-TIME), rel=1e-5)
    assert found[0]["y"] == pytest.approx((np.exp(-TIME) + np.exp(-1.2 * TIME)) / 2, rel=1e-5)
    assert found[1]["x"] == pytest.approx(TIME[::2])
    assert [one["kind"] for one in found] == ["simulation", "theory", "relu"]


def test_long_curves_are_thinned_but_keep_their_peaks():
    y = np.sin(np.arange(50_000) / 3000)
    y[[17, 31_234]] = 5.0, -7.0
    y[40_000:40_500] = np.nan
    kept = chart.thinned(y)
    assert len(kept) <= chart.POINTS
    assert {0, 17, 31_234, 49_999} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    assert np.isnan(y[kept]).any(), "a gap stays a gap"


def test_counts_have_whole_ticks():
    of = lambda x: chart.drawn_curves(Curves([Curve("gap", x, [3.0, 2.0, 1.0])])).get_xticks()
    assert (of([1, 2, 3]) == np.round(of([1, 2, 3]))).all()
    assert (of([1, 2.5, 3]) != np.round(of([1, 2.5, 3]))).any()


def test_bad_curves_and_tables_are_refused():
    with refuses("x"):
        Curve("a", [0, 1], [1, 2, 3])
    with refuses("x"):
        Curve("a", [1, 0], [1, 2])
    with refuses("kind"):
        Curve("a", [0, 1], [1, 2], "dashed")
    with refuses("curves"):
        Curves([])
    with refuses("curves"):
        Curves([Curve("a", [0], [1]), Curve("a", [0], [2])])
    with refuses("head"):
        Table(("a", "b"), [(1, 2), (3,)])
    with refuses("parts"):
        Section("S", "text")
    with refuses("S"):
        Section("S", ["text"])
    with refuses("answer"):
        Page("T", answer="yes")
    with refuses("sections"):
        Page("T", sections=[Text("a")])
    with refuses("alt"):
        Picture(b"GIF89a", alt="")
    with says("expression of SymPy", got="str", wanted="SymPy", fix="race.equations"):
        report.html(Page("T", sections=[Section("S", [Equation("a = b")])]))


# ---- formulas -----------------------------------------------------------------------------------


def letters(expression):
    """The signs of a formula in order, without those that are not seen."""
    text = mathml.formula(expression)
    seen = "".join("".join(texts) for texts in [re.findall(r">([^<]+)<", text)])
    return seen.replace("&InvisibleTimes;", "")


def test_formulas_read_as_in_papers():
    t = sympy.Symbol("t")
    B, S, D, tau = sympy.Function("B_1")(t), *sympy.symbols("S D tau")
    race = sympy.Eq(tau * sympy.Derivative(B, t), (S - D * B**2) * B)
    assert letters(race) == "&#964;dB1dt=(S−DB12)B1"
    assert "<msubsup><mi>B</mi><mi>1</mi><mn>2</mn></msubsup>" in mathml.formula(race)
    assert letters(S * sympy.exp(-2 * t)) == "Se−2t", "e^(−2t) does not go below a line"
    assert letters(sympy.Derivative(B, t, 2)) == "d2B1dt2"
    assert letters(sympy.Integral(1 / t, (t, 0, S))).endswith("dt")
    power = mathml.formula(sympy.Symbol("B_1^0") ** 2)
    assert "<mo>(</mo><msubsup>" in power
    assert mathml.formula([race, race]).count("<mtr>") == 2


def test_what_cannot_be_written_as_mathml_is_written_as_latex():
    assert "<mtext>" not in mathml.formula(sympy.Symbol("x"))
    text = mathml.formula(sympy.Function("sin")(sympy.MatrixSymbol("<b>", 2, 2)[0, 0]))
    assert "<b>" not in text
    assert not mathml._is_plain("<mi>x</mi><a href='x'>y</a>")
    assert not mathml._is_plain("<mi onclick='x'>x</mi>")
    assert not mathml._is_plain("<!-- x -->")
    assert mathml._is_plain("<mrow><mi>x</mi><mo>&lt;</mo></mrow>")


@pytest.mark.parametrize("hidden", [(), (1,), (1, 1)])
def test_every_kind_of_formula_of_a_race_is_typeset(hidden):
    """Exponential, logistic, and by quadrature."""
    task = nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]})
    race = nr.reduce(nr.Architecture.chain(1, *hidden, 1), task)
    (form,) = race.closed_form(0.01).modes.values()
    for expression in (*race.equations().values(), form.formula):
        text = mathml.formula(expression)
        assert "<mtext>" not in text
        assert Elements(text).open == []


# ---- runs and races -----------------------------------------------------------------------------


def test_curves_of_runs_know_what_they_are():
    seeds = {"time": TIME, "loss": np.ones((3, 51)), "axes": {"seed": [0, 1, 2]}}
    gated = nr.Trajectory(**seeds)
    free = nr.Trajectory(**seeds, net=nr.ReLUNetwork((2, 8, 1)))
    solved = nr.Trajectory([0.0, 1.0, 2.0], [1.0, 0.5, 0.2], settings={"method": "race"})
    curves = report.curves_of({"xor": gated, "xor, theory": solved, "ReLU": free}, file="l.csv")
    assert [(c.name, c.kind) for c in curves.curves] == [
        ("xor", "simulation"),
        ("xor", "theory"),
        ("ReLU", "relu"),
    ]
    assert curves.curves[0].seeds.shape == (3, len(gated.time))
    assert (curves.curves[1].mean == solved.loss).all()
    assert (curves.xlabel, curves.ylabel, curves.file) == ("time", "loss", "l.csv")
    steps = nr.Trajectory([0, 1], [1.0, 0.5], settings={"clock": "steps"})
    assert report.curves_of({"adam": steps}).xlabel == "step"
    with refuses("runs"):
        report.curves_of({"xor": solved, "adam": steps})
    with refuses("xor"):
        report.curves_of({"xor": [1, 2]})


def test_equations_of_a_race_say_which_modes_they_hold_for():
    race = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0)))
    equation, meaning, folded = report.equations_of(race)
    assert equation.caption == "mode1, mode2: S = 1, D = 1"
    assert equation.expressions == race.equations()["mode1"]
    assert meaning.text.startswith("S and D are")
    assert folded.folded
    assert len(folded.parts[0].rows) == len(race.variables())
    with refuses("race"):
        report.equations_of("race")


def test_modes_whose_numbers_differ_by_rounding_alone_read_the_same():
    values = {"mode1": {"D": 0.15125 - 3e-17}, "mode2": {"D": 0.15125 + 3e-17}}
    assert len({v["D"] for v in values.values()}) == 2
    assert report.parts._caption(["mode1", "mode2"], values).startswith("mode1, mode2: D = 0.151")


def test_equations_of_matrices_are_folded_and_short():
    data = nr.tasks.extended_xor(1 / 3)
    masks = {"left": data.x["x"][:, 0] > 0, "right": data.x["x"][:, 0] < 0, "all": np.ones(4)}
    race = nr.reduce(*nr.pathways(data, masks, hidden=4))
    assert not race.is_decoupled
    long = [f for eqs in race.equations().values() for e in eqs for f in e.atoms(sympy.Float)]
    assert any(len(str(f)) > 6 for f in long)
    parts = report.equations_of(race)
    assert not any(isinstance(part, Equation) for part in parts)
    (section,) = (p for p in parts if isinstance(p, Section) and "not scalar" in p.title)
    assert section.folded
    for equation in section.parts:
        numbers = [f for e in equation.expressions for f in e.atoms(sympy.Float)]
        assert numbers and all(f == sympy.Float(f, 3) for f in numbers)


def test_the_coefficients_are_those_of_the_equations():
    """The equations with these values are the velocity of the race itself."""
    race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=3, K=2)[0]))
    step, b = 1e-5, 0.3
    begin = race.start(b)
    solved = race.solve(times=[0.0, step], start=begin)
    rates = []
    for name, values in race.coefficients(begin).items():
        for equation in race.equations(begin)[name]:
            found = equation.rhs.subs(values)
            functions = found.atoms(sympy.core.function.AppliedUndef)
            starts = {v.name: v.start for v in race.variables(begin) if v.mode == name}
            at = {f: starts[f.func.__name__.replace("_", "")] for f in functions}
            rates.append(float(found.subs(at)) ** 2 * _count(race, begin, name, equation))
    slope = (solved.loss[1] - solved.loss[0]) / step
    assert -slope == pytest.approx(sum(rates), rel=1e-3)


def _count(race, start, mode, equation):
    """How many edges the variable of an equation stands for."""
    variable = equation.lhs.atoms(sympy.Derivative).pop().expr.func.__name__.replace("_", "")
    (found,) = (v for v in race.variables(start) if (v.mode, v.name) == (mode, variable))
    return found.multiplicity


def test_the_commit_is_that_of_the_source(tmp_path):
    assert writing.commit(tmp_path) == ""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert writing.commit(package) == "", "not tracked there"
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert writing.commit(package)
    assert head.startswith(writing.commit(package))
    (package / "__init__.py").write_text("x = 1")
    assert writing.commit(package).endswith("+")


def test_provenance_is_collected():
    made = report.provenance(seeds=[1, 2], command="make demo", seconds=1.5)
    assert made.version == nr.__version__
    assert made.seeds == (1, 2)
    worded = report.html(Page("P", provenance=report.provenance(seeds="3, drawn from key 0")))
    assert "<dt>seeds</dt><dd>3, drawn from key 0</dd>" in worded
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", made.date)
    assert made.packages["jax"] == jax.__version__
    assert made.devices


def test_places_on_a_page_are_apart():
    places = markup._Places()
    found = [places(title) for title in ("A", "a", "a 2", "a!", "Δ", "")]
    assert found == ["a", "a-2", "a-2-2", "a-3", "part", "part-2"]


# ---- in a browser -------------------------------------------------------------------------------

HANDLED = """
const until = async (ready) => {
  for (let turn = 0; turn < 400 && !ready(); turn++) await new Promise((go) => setTimeout(go, 10));
};
const move = (over, name, x, y) => {
  const at = over.getBoundingClientRect();
  const place = { clientX: at.left + x * at.width, clientY: at.top + y * at.height };
  over.dispatchEvent(new MouseEvent(name, { bubbles: true, movementX: 9, ...place }));
};
(async () => {
  const figure = document.querySelector("figure.curves");
  const [log, whole] = figure.querySelectorAll(".tools button");
  const output = () => [...figure.querySelectorAll("output")].map((o) => o.textContent);
  const over = () => figure.querySelector(".u-over");
  const found = { live: figure.classList.contains("live"), whole: [whole.disabled] };
  await until(over);
  move(over(), "mouseenter", 0.5, 0.5);
  move(over(), "mousemove", 0.5, 0.5);
  await until(() => output().every(Boolean));
  found.hovered = output();
  found.at = figure.querySelector(".at").textContent;
  figure.querySelector(".legend button").click();
  await until(() => output()[0] === "");
  found.hidden = output();
  found.pressed = figure.querySelector(".legend button").getAttribute("aria-pressed");
  move(over(), "mousedown", 0.2, 0.5);
  move(over(), "mousemove", 0.4, 0.5);
  move(over(), "mouseup", 0.4, 0.5);
  await until(() => !whole.disabled);
  found.whole.push(whole.disabled);
  whole.click();
  await until(() => whole.disabled);
  found.whole.push(whole.disabled);
  log.click();
  await until(() => log.getAttribute("aria-pressed") === "true");
  found.log = log.getAttribute("aria-pressed");
  found.canvas = figure.querySelectorAll("canvas").length;
  found.wide = document.documentElement.scrollWidth <= window.innerWidth;
  document.body.dataset.found = JSON.stringify(found);
})();
"""


def dumped(page, *options):
    """The page as a browser has it after its scripts, and what the browser says of them."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium")
    usual = ["--headless", "--no-sandbox", "--virtual-time-budget=5000", "--enable-logging=stderr"]
    command = [chromium, *usual, "--dump-dom", *options, page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, said


@pytest.mark.browser
def test_curves_can_be_hovered_hidden_and_zoomed_in_a_browser(tmp_path):
    page = report.write(example(), tmp_path)
    text = page.read_text()
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)[0]
    text = text.replace(policy, "").replace("</body>", f"<script>{HANDLED}</script></body>")
    page.write_text(text)
    text, said = dumped(page, "--window-size=500,900")
    assert said == []
    found = json.loads(html.unescape(re.search(r'data-found="([^"]*)"', text)[1]))
    middle = float(found["at"].removeprefix("time "))
    assert found["live"]
    assert middle == pytest.approx(5.0, abs=0.25)
    assert float(found["hovered"][2]) == pytest.approx(np.exp(-middle / 2), rel=1e-3)
    assert all(found["hovered"])
    assert found["hidden"][0] == ""
    assert found["hidden"][2] == found["hovered"][2]
    assert found["pressed"] == "false"
    assert found["whole"] == [True, False, True]
    assert found["log"] == "true"
    assert found["canvas"] == 1
    assert found["wide"]


@pytest.mark.browser
def test_a_browser_runs_the_page_as_it_is(tmp_path):
    """Under its own policy, with markup in every text: nothing is refused, nothing else runs."""
    text, said = dumped(report.write(evil_page(), tmp_path))
    assert said == []
    assert text.count('class="uplot') == 3


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "times.csv").mkdir()
    table = report.Table(("gating",), [("xor",)], file="times.csv")
    page = report.Page("XoR", sections=[report.Section("Contest", [table])])
    with refuses("folder"):
        report.write(page, tmp_path)


def test_files_to_keep_are_not_overwritten(tmp_path):
    kept = tmp_path / "times.csv"
    kept.write_text("mine")
    table = report.Table(("gating",), [("xor",)], file="times.csv")
    page = report.Page("XoR", sections=[report.Section("Contest", [table])])
    with refuses("folder"):
        report.write(page, tmp_path, keep=[kept])
    assert kept.read_text() == "mine" and not (tmp_path / "index.html").exists()
