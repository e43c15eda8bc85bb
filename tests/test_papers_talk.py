"""The talk's figures: quick versions agree, are drawn from their files, and miss when wrong."""

import pytest

import papers
from neuralrace.trajectory import save_table
from papers import load_figure
from papers.talk import continual, differentiation, regimes, saddles

TALK = papers.chosen(["talk"])
SLOW = {"talk/depth", "talk/stages", "talk/training_speed", "talk/delayed_rich"}
SLOW |= {"talk/edge_sharing", "talk/gating_structures", "talk/transition"}
SLOW |= {"talk/decisions", "talk/saddle_graph", "talk/deep_and_shallow"}
"""Many programs to compile: these are run by the claim that all of the talk's figures agree."""

PRACTICE = {"talk/early_layers", "talk/grokking"}
"""Networks that are trained for minutes; see `tests/test_papers_relative_scale.py`."""


@pytest.fixture(scope="module")
def tables():
    made = {}

    def table(name):
        if name not in made:
            figure = papers.find(name)
            made[name] = figure.run(figure.resolve(quick=True), quick=True)
        return made[name]

    return table


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TALK if name not in SLOW | PRACTICE])
def test_a_quick_version_agrees_and_is_drawn_from_its_file(name, tables, tmp_path):
    figure = papers.find(name)
    within = figure.within(tables(name))
    assert within and [id for id, held in within.items() if not held] == []
    stored = load_figure(save_table(tables(name), tmp_path / "data.nc"))
    assert figure.within(stored) == within
    assert all(ax.has_data() for ax in figure.draw(stored).axes)


def test_all_pictures_are_there():
    assert len(TALK) == 19


@pytest.mark.parametrize(
    ("figure", "change", "row"),
    [
        (continual, {"exact": 1.001}, "flow"),
        (differentiation, {"predicted": 2.0}, "predicted"),
        (regimes, {"distance": 1e-3}, "rich"),
        (saddles, {"point_loss": 1.02}, "plateaus"),
    ],
)
def test_a_wrong_number_does_not_agree(figure, change, row, tables):
    table = tables(figure.FIGURE.name)
    assert figure.FIGURE.within(table)[row]
    wrong = table.assign({name: table[name] * factor for name, factor in change.items()})
    assert not figure.FIGURE.within(wrong)[row]


def test_whether_large_weights_are_lazy_is_read_from_the_data(tables):
    table = tables("talk/regimes")
    lazy = table.assign(distance=table["distance"].where(table["scale"] < 1, 1e-4))
    said = [regimes.measures(data)[-1].read(data).text for data in (table, lazy)]
    assert [text.endswith(": lazy") for text in said] == [False, True]
