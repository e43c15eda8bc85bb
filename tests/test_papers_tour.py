"""Tours: figures of a paper in the order of a talk, on one page."""

import sys
import types

import pytest

import papers
from evidence import claims
from papers import Stop, Tour, write_tour
from tests.test_cli import run, toy  # noqa: F401
from tests.test_errors import refuses

STOPS = (
    Stop("Second first", "toy/two", "This <is> shown first.", "Finding 1: so it is.", ("toy/a",)),
    Stop("Then one", "toy/one", "And this after it."),
    Stop("Two again", "toy/two", "Once more."),
)


@pytest.fixture
def tour(toy, monkeypatch):  # noqa: F811
    made = Tour("toy/tour", "A toy tour", "What does it show?", STOPS)
    module = types.SimpleNamespace(TOUR=made)
    monkeypatch.setitem(sys.modules, "papers.toy.tour", module)
    monkeypatch.setattr(papers, "_TOURS", ("toy/tour",))
    return made


def test_a_tour_makes_its_figures_and_one_page(tour, toy, tmp_path):  # noqa: F811
    output = run("tour", "toy/tour", "--quick", "--out", tmp_path)
    assert toy.computed == ["toy/two", "toy/one"]  # each once, in the order of the tour
    assert f"The tour: {tmp_path / 'toy/tour/index.html'}" in output
    page = (tmp_path / "toy/tour/index.html").read_text()
    places = [page.index(f"{k + 1}. {stop.title}") for k, stop in enumerate(STOPS)]
    assert places == sorted(places)
    assert "The slides say: “Finding 1: so it is.”" in page
    assert "This &lt;is&gt; shown first." in page
    assert page.count("data:image/png") == 3  # pictures are part of the page
    assert "3 stops" in page and "of 2 measured lines agree" in page
    assert "which settle nothing" in page
    assert (tmp_path / "index.html").is_file()


def test_a_tour_needs_its_figures(tour, tmp_path):
    run("reproduce", "toy/one", "--out", tmp_path)
    with refuses("tour"):
        write_tour(tour, tmp_path)


def test_a_name_that_is_no_tour():
    with refuses("mhs/toor"):
        papers.find_tour("mhs/toor")


@pytest.mark.parametrize("name", papers.tours())
def test_a_tour_is_in_order(name):
    tour = papers.find_tour(name)
    assert tour.name == name and tour.title and tour.question
    assert set(tour.figures) <= set(papers.names())
    known = {claim.name for claim in claims()}
    for stop in tour.stops:
        assert stop.caption
        assert set(stop.claims) <= known


def test_the_slides_of_mhs_have_five_findings():
    found = [stop.finding for stop in papers.find_tour("mhs/tour").stops if stop.finding]
    assert [text.split(":")[0] for text in found] == [f"Finding {n}" for n in range(1, 6)]
