"""The gallery of the documentation: complete, small, and as the library says."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from docs import drawn, gallery
from neuralrace import papers
from neuralrace.papers.claims import ledger
from neuralrace.papers.record import pack

ROOT = Path(__file__).parent.parent
FACTS = gallery.stored()
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
    assert picture.startswith(b"\x89PNG") and len(picture) <= gallery.PICTURE
    assert int.from_bytes(picture[16:20]) in gallery.WIDTHS
    for kind, most in (("csv", gallery.CURVES), ("nc", gallery.DATA)):
        if fact.get(kind):
            assert 0 < (folder / fact[kind]).stat().st_size <= most


def test_the_store_has_no_other_files():
    there = {p for p in (ROOT / "docs/gallery").rglob("*") if p.is_file()}
    named = {fact.get(kind) for fact in FACTS.values() for kind in ("picture", "csv", "nc")}
    wanted = {ROOT / "docs/gallery" / n for n in named | {gallery.FACTS} if n}
    assert there == wanted
    assert sum(path.stat().st_size for path in there) < 5_000_000


@pytest.mark.parametrize("name", papers.names())
def test_a_figure_has_the_settings_of_the_library(name):
    fact, figure = FACTS[name], papers.find(name)
    assert fact["settings"] == gallery.plain(figure.resolve(quick=fact["quick"])), (
        "`python -m docs.gallery --from FOLDER` stores the figure again"
    )
    words = fact["command"].split()
    assert words[2] == name and ("--quick" in words) is fact["quick"]
    assert fact["agreement"] and fact["seconds"] >= 0


def test_panels_have_a_letter_each():
    for name, fact in FACTS.items():
        letters = [found[1] for p in fact["panels"] if (found := re.match(r"\((\w+)\)", p))]
        assert len(letters) == len(set(letters)), name


def test_claims_are_those_of_the_ledger():
    known = {claim.name for claim in ledger()}
    assert {name.split("/")[1].lower() for name in known} <= {a.lower() for a in ANCHORS}
    stored = {name: FACTS[name]["claims"] for name in papers.names()}
    assert {claim for claims in stored.values() for claim in claims} <= known
    for name, claims in gallery.feeds().items():
        assert set(claims) <= set(stored[name])
    sources = (ROOT / "src/neuralrace/papers/claims").rglob("*.py")
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
    store, source = tmp_path / "store", tmp_path / "source"
    source.mkdir()
    pack(table, source / "a.npz")
    assert gallery.update(source, store) == ["talk/depth"]
    fact = gallery.stored(store)["talk/depth"]
    assert fact["quick"] and fact["command"] == "neuralrace reproduce talk/depth --quick"
    assert "A quick version" in gallery.page({"talk/depth": fact})
    (store / "facts.json").write_text(json.dumps({"talk/depth": fact | {"quick": False}}))
    assert gallery.update(source, store) == []
    other = figure.run(figure.resolve(quick=True, changes={"d": 2.0}))
    pack(other, source / "a.npz")
    assert gallery.update(source, tmp_path / "else") == []


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


def test_long_curves_are_thinned_until_they_fit():
    figure, ax = plt.subplots()
    ax.plot(np.arange(1000.0), np.arange(1000.0))
    whole = drawn.table(figure, 100_000)
    assert whole is not None
    assert whole.every == 1 and len(list(csv.reader(whole.text.splitlines()))) == 1001
    less = drawn.table(figure, len(whole.text) // 3)
    assert less is not None
    assert less.every == 5 and less.maps and len(less.text) <= len(whole.text) // 3
    assert drawn.table(figure, 100) is None
    plt.close(figure)


def test_large_maps_are_left_out_rather_than_everything():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0.0, 1.0], [1.0, 0.0])
    right.imshow(np.ones((50, 50)))
    found = drawn.table(figure, 1000)
    assert found is not None and not found.maps and found.text.count("\n") == 3
    plt.close(figure)
