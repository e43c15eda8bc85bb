"""Another look of pictures: parameters of matplotlib, size, formats of files."""

import io
import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import report
from neuralrace.plot import draw_curves, look, picture_bytes, style
from neuralrace.plot.look import SIZES
from tests.test_errors import refuses


def inches(svg):
    """The size that an SVG file states, in inches."""
    width, height = re.search(rb'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    return float(width) / 72, float(height) / 72


def figure():
    with style():
        made, ax = plt.subplots()
        ax.plot([0, 1], [0, 1])
        ax.set_xlabel("time")
    return made


def test_parameters_go_over_the_style_and_end_with_the_block():
    before = dict(matplotlib.rcParams)
    with look(rc={"font.family": "serif", "axes.linewidth": "2"}), style():
        assert matplotlib.rcParams["font.family"] == ["serif"]
        assert matplotlib.rcParams["axes.linewidth"] == 2.0
        assert matplotlib.rcParams["axes.spines.top"] is False  # the style is below
    assert dict(matplotlib.rcParams) == before
    with style():
        assert matplotlib.rcParams["font.family"] == ["DejaVu Sans"]


def test_all_text_follows_the_size_of_the_font():
    with style():
        plain = {name: matplotlib.rcParams[name] for name in ("font.size", *SIZES)}
    with look(rc={"font.size": 2 * plain["font.size"]}), style():
        assert {name: matplotlib.rcParams[name] / 2 for name in plain} == plain
    with look(rc={"font.size": 20, "axes.labelsize": 9}), style():
        assert matplotlib.rcParams["axes.labelsize"] == 9


def test_a_picture_has_the_size_and_the_fonts_of_the_look():
    plain = report.Picture.of(figure(), alt="a line")
    with look(figsize=(5, 2)):
        wide = report.Picture.of(figure(), alt="a line")
    with look(rc={"font.family": "serif"}):
        serif = report.Picture.of(figure(), alt="a line")
    assert inches(plain.source) == pytest.approx((3.4, 2.4))
    assert inches(wide.source) == pytest.approx((5, 2))
    assert b"DejaVuSerif" in serif.source and b"DejaVuSans" not in serif.source
    assert plain.copies == {}


@pytest.mark.parametrize(
    ("kind", "head"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_a_picture_is_the_same_bytes_each_time(kind, head):
    first, second = (picture_bytes(figure(), kind) for _ in range(2))
    assert first == second and first.startswith(head)
    plt.close("all")


def test_a_report_has_its_pictures_and_curves_as_files(tmp_path):
    curves = report.Curves(
        [
            report.Curve("a", [0, 1, 2], [[1.0, 0.5, np.nan], [1.0, 0.6, 0.3]]),
            report.Curve("a", [0, 1], [1.0, 0.5], "theory"),
        ],
        ylog=True,
    )
    png = io.BytesIO()
    made = figure()
    made.savefig(png, format="png")
    plt.close(made)
    with look(formats=("pdf", "svg"), figsize=(4, 2)):
        drawn = report.Picture.of(figure(), alt="a line")
        inner = report.Section("Inside", [curves], folded=True)
        given = report.Picture(png.getvalue(), alt="given")
        page = report.Page("T", sections=[report.Section("One", [drawn, given, inner])])
        text = report.write(page, tmp_path).read_text()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["figure_1.pdf", "figure_1.svg", "figure_3.pdf", "figure_3.svg", "index.html"]
    assert all(f'href="{name}"' in text for name in names[:4])
    assert (tmp_path / "figure_1.svg").read_bytes() == drawn.source
    assert inches((tmp_path / "figure_3.svg").read_bytes()) == pytest.approx((4, 2))
    assert (tmp_path / "figure_3.pdf").read_bytes().startswith(b"%PDF")


def test_a_report_without_a_look_has_no_files_of_pictures(tmp_path):
    page = report.Page("T", sections=[report.Section("S", [report.Picture.of(figure(), alt="a")])])
    report.write(page, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_what_is_no_look_is_an_error():
    with refuses("font.famly"):
        look(rc={"font.famly": "serif"}).__enter__()
    with refuses("backend"):
        look(rc={"backend": "svg"}).__enter__()
    with refuses("axes.linewidth"):
        look(rc={"axes.linewidth": "wide"}).__enter__()
    for wrong in [(0, 1), (1,), (640, 480), (float("nan"), 1)]:
        with refuses("figsize"):
            look(figsize=wrong).__enter__()
    with refuses("formats"):
        look(formats=["jpg"]).__enter__()


def test_curves_follow_the_size_of_the_look():
    with look(figsize=(6, 1.5)):
        made = draw_curves([0, 1], {"a": [1.0, 0.5]}).figure
        assert inches(picture_bytes(made, "svg")) == pytest.approx((6, 1.5))
    plt.close(made)


def test_text_of_a_network_follows_the_size_of_the_font():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor())

    def drawn(size):
        with look(rc={"font.size": size}):
            figure = arch.draw(data).figure
        texts = {text.get_text(): text.get_fontsize() for text in figure.axes[0].texts}
        return figure.get_size_inches(), texts

    (own, small), (twice, large) = drawn(8), drawn(16)
    np.testing.assert_allclose(twice, 2 * own)
    assert small.keys() == large.keys() and small
    assert all(large[text] == pytest.approx(2 * small[text]) for text in small)


def test_names_stay_in_a_picture_that_is_too_small_for_the_font():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
    with look(rc={"font.size": 20}), style():
        _, ax = plt.subplots(figsize=(3.5, 2.5))
        arch.draw(data, ax=ax)
    ax.figure.canvas.draw()
    for patch in (p for p in ax.patches if str(p.get_gid()).startswith("node:")):
        name, box = patch.get_gid().removeprefix("node:"), patch.get_window_extent()
        text = next(t for t in ax.texts if t.get_text().split("\n")[0] == name)
        inside = text.get_window_extent()
        assert box.x0 <= inside.x0 and inside.x1 <= box.x1, name


def test_lines_of_curves_follow_the_width_of_lines():
    curves = {"a": np.arange(10.0).reshape(2, 5), "b": np.arange(5.0)}

    def widths(**rc):
        with look(rc=rc):
            ax = draw_curves(np.arange(5), curves)
        return np.array([line.get_linewidth() for line in ax.lines])

    np.testing.assert_allclose(widths(**{"lines.linewidth": 3}), 2 * widths())
    np.testing.assert_allclose(widths(**{"lines.linewidth": 1.5}), widths())
