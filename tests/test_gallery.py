"""The gallery of the documentation: complete, small, and as the library says."""

import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import papers
from docs import gallery, store
from neuralrace.report import Curve, Curves, Text
from neuralrace.trajectory import save_table
from tests.test_errors import refuses

ROOT = Path(__file__).parent.parent
FACTS = store.stored()
CELLS = [name for name in papers.names() if "origins" in FACTS[name]["agreement"]]


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
    if fact.get("nc"):
        assert 0 < (folder / fact["nc"]).stat().st_size <= store.DATA


def test_the_store_has_no_other_files():
    there = {p for p in (ROOT / "docs/gallery").rglob("*") if p.is_file()}
    named = {fact.get(kind) for fact in FACTS.values() for kind in ("picture", "nc")}
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


# ---- making it ----------------------------------------------------------------------------------


@pytest.fixture
def depth():
    figure = papers.find("talk/depth")
    return figure, figure.run(figure.resolve(quick=True), quick=True)


def test_a_quick_figure_is_stored_as_one_and_does_not_replace_a_full_one(tmp_path, depth):
    figure, table = depth
    folder, source = tmp_path / "store", tmp_path / "source"
    source.mkdir()
    save_table(table, source / "a.nc")
    assert store.update(source, folder) == ["talk/depth"]
    fact = store.stored(folder)["talk/depth"]
    assert fact["quick"] and fact["command"] == "python -m papers reproduce talk/depth --quick"
    (folder / "facts.json").write_text(json.dumps({"talk/depth": fact | {"quick": False}}))
    assert store.update(source, folder) == []
    other = figure.run(figure.resolve(quick=True, changes={"d": 2.0}))
    save_table(other, source / "a.nc")
    assert store.update(source, tmp_path / "else") == []


def test_an_unknown_example_is_told_with_those_that_there_are(tmp_path):
    with refuses("own_gatings"):
        store.run_examples(["own_gatings"], tmp_path)


def test_a_figure_that_is_not_stored_yet_is_left_out():
    page = gallery.page({"talk/depth": FACTS["talk/depth"]})
    assert "talk/depth" in page and "talk/stages" not in page


def test_pictures_of_figures_lead_to_their_evidence():
    links = re.findall(r"\(evidence/(\w+)\.md#([\w-]+)-figure\)", gallery.page(FACTS))
    assert {f"{paper}/{name}" for paper, name in links} == set(papers.names())
    for paper, name in links:
        page = (ROOT / f"docs/evidence/{paper}.md").read_text()
        assert f"### {name} (figure)" in page


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


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_figures_of_stored_cells_are_those_of_the_cells_that_are_here(name):
    figure = papers.find(name)
    table = figure.run(figure.resolve())
    found = store.by_id(papers.read_record(table).agreement)
    assert found == FACTS[name]["agreement"]
