"""The gallery of the documentation: complete, small, and as the library says."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import papers
from docs import drawn, gallery, store
from neuralrace.report import Curve, Curves, Text
from papers.claims import ledger, table_file
from papers.record import pack
from tests.test_errors import refuses

ROOT = Path(__file__).parent.parent
FACTS = store.stored()
CELLS = [n for n in papers.names() if "Stored cells" in gallery.page({n: FACTS[n]})]
ANCHORS = set(re.findall(r"^### ([\w-]+)", (ROOT / "docs/claims.md").read_text(), re.MULTILINE))


def test_every_figure_and_example_is_there_and_nothing_else():
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    studies = {f"studies/{path.stem}" for path in (ROOT / "examples/studies").glob("*.toml")}
    assert set(FACTS) == {*papers.names(), *examples, *studies}


def test_the_page_is_current():
    assert (ROOT / "docs/gallery.md").read_text() == gallery.page(FACTS), (
        "`python -m docs.gallery` writes it"
    )


@pytest.mark.parametrize("name", FACTS)
def test_files_are_there_and_small(name):
    fact = FACTS[name]
    folder = ROOT / "docs/gallery"
    picture = (folder / fact["picture"]).read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) <= store.PICTURE
    assert b"pHYs" in picture, "the site shows all pictures at one scale"
    width = int.from_bytes(picture[16:20])
    assert width in store.WIDTHS
    for kind, most in (("csv", store.CURVES), ("nc", store.DATA)):
        if fact.get(kind):
            assert 0 < (folder / fact[kind]).stat().st_size <= most


def test_the_store_has_no_other_files():
    there = {p for p in (ROOT / "docs/gallery").rglob("*") if p.is_file()}
    named = {fact.get(kind) for fact in FACTS.values() for kind in ("picture", "csv", "nc")}
    wanted = {ROOT / "docs/gallery" / n for n in named | {store.FACTS} if n}
    assert there == wanted
    assert sum(path.stat().st_size for path in there) < 5_000_000


@pytest.mark.parametrize("name", papers.names())
def test_a_figure_has_the_settings_of_the_library(name):
    fact, figure = FACTS[name], papers.find(name)
    assert fact["settings"] == store.plain(figure.resolve(quick=fact["quick"])), (
        "`python -m docs.gallery --from FOLDER` stores the figure again"
    )
    words = fact["command"].split()
    assert words[4] == name and ("--quick" in words) is fact["quick"]
    assert fact["agreement"] and fact["seconds"] >= 0


def test_panels_have_a_letter_each():
    for name, fact in FACTS.items():
        letters = [found[1] for p in fact["panels"] if (found := re.match(r"\((\w+)\)", p))]
        assert len(letters) == len(set(letters)), name
        if len(fact["panels"]) > 1:
            assert len(letters) == len(fact["panels"]), name


def test_claims_are_those_of_the_ledger():
    known = {claim.name for claim in ledger()}
    assert {name.split("/")[1].lower() for name in known} <= {a.lower() for a in ANCHORS}
    stored = {name: FACTS[name]["claims"] for name in papers.names()}
    assert {claim for claims in stored.values() for claim in claims} <= known
    for name, claims in gallery.feeds().items():
        assert set(claims) <= set(stored[name])
    sources = (ROOT / "papers/claims").rglob("*.py")
    words = set(re.findall(r'"(\w+/\w+)"', "".join(path.read_text() for path in sources)))
    assert all(stored[name] for name in words & set(papers.names()))


@pytest.mark.slow
def test_every_claim_stands_beside_its_figures():
    """In a process of its own, where types are not checked."""
    code = "import json; from docs import gallery; print(json.dumps(gallery.feeds()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    fed = json.loads(done.stdout)
    assert fed == {name: c for name in papers.names() if (c := FACTS[name]["claims"])}


# ---- making it ----------------------------------------------------------------------------------


@pytest.fixture
def depth():
    figure = papers.find("talk/depth")
    return figure, figure.run(figure.resolve(quick=True), quick=True)


def test_a_quick_figure_is_stored_as_one_and_does_not_replace_a_full_one(tmp_path, depth):
    figure, table = depth
    folder, source = tmp_path / "store", tmp_path / "source"
    source.mkdir()
    pack(table, source / "a.npz")
    assert store.update(source, folder) == ["talk/depth"]
    fact = store.stored(folder)["talk/depth"]
    assert fact["quick"] and fact["command"] == "python -m papers reproduce talk/depth --quick"
    assert "A quick version" in gallery.page({"talk/depth": fact})
    (folder / "facts.json").write_text(json.dumps({"talk/depth": fact | {"quick": False}}))
    assert store.update(source, folder) == []
    other = figure.run(figure.resolve(quick=True, changes={"d": 2.0}))
    pack(other, source / "a.npz")
    assert store.update(source, tmp_path / "else") == []


def test_an_unknown_example_is_told_with_those_that_there_are(tmp_path):
    with refuses("own_gatings"):
        store.run_examples(["own_gatings"], tmp_path)


def test_the_parts_of_the_page_are_linked_at_its_top():
    text = gallery.page(FACTS)
    (line,) = [line for line in text.splitlines() if line.startswith("Parts: ")]
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert re.findall(r"\[(.+?)\]\(#", line) == headings and len(headings) >= 5
    assert text.index(line) < text.index("## Overview")


def test_a_figure_that_is_not_stored_yet_is_left_out():
    facts = {"talk/depth": FACTS["talk/depth"]}
    assert list(gallery.with_ledger(facts, {"tables": {}})) == ["talk/depth"]
    assert "talk/stages" not in gallery.page(facts)


def cells_of(content, figure, shape):
    """The colours of the middles of the cells of the first image of a stored picture."""
    picture = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), int)
    box = figure.axes[0].get_position()
    height, width = picture.shape[:2]
    x = (box.x0 + (np.arange(shape[1]) + 0.5) / shape[1] * box.width) * width
    y = (1 - box.y1 + (np.arange(shape[0]) + 0.5) / shape[0] * box.height) * height
    return picture[y.astype(int)][:, x.astype(int)]


@pytest.mark.parametrize("name", ["RdBu_r", "Blues", "viridis"])
def test_colour_maps_survive_in_stored_pictures(name):
    values = np.linspace(0, 1, 96).reshape(8, 12)
    figure, (left, right) = plt.subplots(1, 2, figsize=(5.0, 2.4))
    left.imshow(values, cmap=name, aspect="auto")
    for k in range(8):
        right.plot([0, 1], [k, k + 3], label=f"curve {k}")
    right.legend()
    wanted = 255 * plt.get_cmap(name)(values)[..., :3]
    far = np.abs(cells_of(store.thumbnail(figure), figure, values.shape) - wanted)
    plt.close(figure)
    assert far.max() <= store.NEAR and far.mean() <= 1


def test_a_picture_of_more_colours_than_a_palette_has_keeps_all_of_them():
    values = np.random.default_rng(0).uniform(size=(30, 40, 3))
    figure, ax = plt.subplots()
    ax.imshow(values, aspect="auto", interpolation="nearest")
    far = np.abs(cells_of(store.thumbnail(figure), figure, values.shape) - 255 * values)
    plt.close(figure)
    assert far.max() <= 1


@pytest.mark.parametrize("size", [(40, 30), (2, 2), (1, 1)])
def test_a_picture_without_areas_is_returned_itself(size):
    """No pixel is like those beside it, or has four beside it."""
    across, down = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    content = np.stack([across % 2 * 255, down % 2 * 255, across * 5], axis=2).astype(np.uint8)
    image = Image.fromarray(content)
    assert store.with_few_colours(image) is image


def test_the_most_telling_curves_of_a_study_are_shown():
    theory = Curves([Curve("xor", [0, 1], [1, 0], "theory")])
    relu = Curves([Curve("ReLU networks", [0, 1], [1, 0], "relu")])
    diagram = Curves([Curve("xor", [0, 1], [1, 0], "theory")], xlabel="Δ")
    every = {"contest": [theory], "phase_diagram": [diagram], "predict": [relu]}
    assert store.telling(every) is diagram
    assert store.telling({"contest": [theory], "predict": [Text("none"), relu]}) is relu
    assert store.telling({"contest": [theory]}) is theory
    (ax,) = store.draw_study(relu).axes
    assert [line.get_label() for line in ax.lines] == ["ReLU networks"]
    plt.close("all")


# ---- what is older than its code ----------------------------------------------------------------


def test_commits_come_from_the_ledger_where_data_have_none():
    known = FACTS["nrr/fig5"]
    file = table_file("nrr/fig5", known["settings"])
    kept = {"tables": {file: {"commit": "abc1234 (adopted)"}}}
    blank = known | {"commit": "", "device": ""}
    found = gallery.with_ledger({"nrr/fig5": blank}, kept)["nrr/fig5"]
    assert found["commit"] == "abc1234 (adopted)"
    page = gallery.page({"nrr/fig5": found})
    assert "at commit abc1234, which first reported its numbers, or before" in page
    own = gallery.with_ledger({"nrr/fig5": known | {"commit": "fff"}}, kept)["nrr/fig5"]
    assert own["commit"] == "fff"


def test_stored_cells_are_shown_with_device_and_commit():
    text = gallery.page({"talk/grokking": FACTS["talk/grokking"]})
    assert re.search(r"Stored cells: 35 on NVIDIA H200, commit [0-9a-f]{7}\. Put together on", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_figures_of_stored_cells_are_those_of_the_cells_that_are_here(name):
    figure = papers.find(name)
    found = store.by_id(figure.agreement(figure.run(figure.resolve())))
    assert found == FACTS[name]["agreement"]


# ---- what is drawn ------------------------------------------------------------------------------


def test_what_is_drawn_becomes_rows():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], label="loss")
    left.axhline(1.0)
    left.scatter([7.0], [8.0])
    left.set_title("(a) both")
    right.imshow(np.array([[1.0, 2.0]]))
    right.bar([1.0], [5.0])
    rows = list(drawn.rows(figure))
    assert ("a", "curve", 1, "loss", "1", "4", "") in rows
    assert ("a", "points", 2, "", "7", "8", "") in rows
    assert ("panel 2", "map", 2, "", "1", "0", "2") in rows
    assert ("panel 2", "bars", 1, "", "1", "5", "") in rows
    assert len(rows) == 3 + 1 + 2 + 1
    plt.close(figure)


def parts(ax, kind):
    """Name, x, y and value of the rows of one kind in a panel."""
    found = [row[3:] for row in drawn.rows(ax.figure) if row[1] == kind]
    plt.close(ax.figure)
    return [(name, *(float(v) for v in numbers if v)) for name, *numbers in found]


def test_bars_end_where_they_are_drawn():
    _, ax = plt.subplots()
    ax.barh([10.0, 20.0], [3.0, -4.0], height=2.0, label="flat")
    ax.bar([1.0], [5.0], width=0.5, label="upright")
    assert parts(ax, "bars") == [("flat", 3, 10), ("flat", -4, 20), ("upright", 1, 5)]


def test_error_bars_go_from_end_to_end_and_their_caps_are_no_curves():
    _, ax = plt.subplots()
    ax.errorbar([1.0, 2.0], [5.0, 6.0], yerr=[[0.5, 1.0], [2.0, 3.0]], capsize=3, label="both")
    ax.errorbar([1.0], [7.0], xerr=0.25, fmt="o", label="along")
    curves = parts(ax, "curve")
    assert curves == [("both", 1, 5), ("both", 2, 6), ("along", 1, 7)]
    assert parts(ax, "error bars") == [("both", 1, 4.5, 7), ("both", 2, 5, 9)]
    assert parts(ax, "error bars along x") == [("along", 0.75, 7, 1.25)]


@pytest.mark.parametrize("step", [None, "post"])
def test_areas_have_both_edges(step):
    x, low, high = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 0.0]), np.array([4.0, 2.0, 5.0])
    _, ax = plt.subplots()
    ax.fill_between(x, low, high, step=step, label="band")
    rows = [("band", *row) for row in zip(x, low, high, strict=True)]
    if step:  # a value holds until the next one
        rows[1:1] = [("band", 1, 1, 4)]
        rows[3:3] = [("band", 3, 2, 2)]
    assert parts(ax, "area") == rows


def test_stacked_areas_stand_on_each_other():
    _, ax = plt.subplots()
    ax.stackplot([0.0, 1.0], [[1.0, 2.0], [3.0, 4.0]], labels=["one", "two"])
    assert parts(ax, "area") == [
        ("one", 0, 0, 1),
        ("one", 1, 0, 2),
        ("two", 0, 1, 4),
        ("two", 1, 2, 6),
    ]


@pytest.mark.parametrize("edges", [True, False])
def test_meshes_are_maps(edges):
    _, ax = plt.subplots()
    x, y = ([0.0, 2.0, 6.0], [0.0, 1.0]) if edges else ([1.0, 4.0], [0.5])
    ax.pcolormesh(x, y, [[7.0, 8.0]], shading="flat" if edges else "nearest")
    assert parts(ax, "map") == [("", 1, 0.5, 7), ("", 4, 0.5, 8)]


def test_shading_between_points_is_a_map_of_these_points():
    _, ax = plt.subplots()
    ax.pcolormesh([0.0, 1.0], [0.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], shading="gouraud")
    assert parts(ax, "map") == [("", 0, 0, 1), ("", 1, 0, 2), ("", 0, 2, 3), ("", 1, 2, 4)]


def test_insets_belong_to_their_panel():
    _, ax = plt.subplots()
    inset = ax.inset_axes((0.5, 0.5, 0.2, 0.2))
    inset.plot([1.0, 2.0], [3.0, 4.0])
    inset.set_title("one")
    assert parts(ax, "curve") == [("one", 1, 3), ("one", 2, 4)]


def test_axes_with_words_alone_are_no_panel():
    figure, (left, middle, right) = plt.subplots(1, 3)
    left.plot([0.0, 1.0], [1.0, 0.0])
    for ax in (middle, right):
        ax.set_axis_off()
        ax.text(0.5, 0.5, "a note")
    right.add_patch(plt.Rectangle((0, 0), 1, 1))  # a graph has no axes either
    assert list(drawn.panels(figure)) == [left, right]
    plt.close(figure)


def test_long_curves_are_thinned_until_they_fit_and_short_ones_are_whole():
    figure, ax = plt.subplots()
    ax.plot(np.arange(1000.0), np.arange(1000.0), label="long")
    ax.plot(np.arange(15.0), np.arange(15.0), label="short")
    whole = drawn.table(figure, 100_000)
    assert whole is not None and whole.points is None
    assert len(list(csv.reader(whole.text.splitlines()))) == 1 + 1000 + 15
    less = drawn.table(figure, len(whole.text) // 3)
    assert less is not None and less.points == 300 and less.maps
    assert len(less.text) <= len(whole.text) // 3
    rows = list(csv.DictReader(less.text.splitlines()))
    long, short = ([float(r["x"]) for r in rows if r["name"] == n] for n in ("long", "short"))
    assert len(long) == 300 and (long[0], long[-1]) == (0, 999) and set(np.diff(long)) <= {3, 4}
    assert short == list(range(15))
    assert drawn.table(figure, 100) is None
    plt.close(figure)


def test_large_maps_are_left_out_rather_than_everything():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0.0, 1.0], [1.0, 0.0])
    right.imshow(np.ones((50, 50)))
    found = drawn.table(figure, 1000)
    assert found is not None and not found.maps and found.text.count("\n") == 3
    plt.close(figure)
