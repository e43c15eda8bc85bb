"""What the papers' pictures say: letters, labels, legends, colours; on stored or made-up data."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import papers
from neuralrace import behaviour
from neuralrace.plot import style
from papers.nrr import image_panels
from papers.talk import decisions, gating_structures
from tests.panels import panels
from tests.test_papers_fig5_fig6 import with_settings

STORE = Path(__file__).parent.parent / "docs/gallery"
STORED = sorted(str(p.relative_to(STORE).with_suffix("")) for p in STORE.rglob("*.nc"))


@pytest.fixture(autouse=True)
def in_style():
    with style():
        yield
    plt.close("all")


def picture_of(name):
    """A figure drawn from the data that the documentation stores."""
    return papers.find(name).draw(papers.load_figure(STORE / f"{name}.nc"))


def made_up(name, arrays, coords=None, **changes):
    """A figure drawn from invented data."""
    return papers.find(name).draw(with_settings(name, arrays, coords or {}, **changes))


def titles(picture):
    return list(panels(picture).values())


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def bars(picture):
    """The names of the colour bars."""
    some = [ax for ax in picture.axes if ax.get_label() == "<colorbar>"]
    return [ax.get_ylabel() or ax.get_xlabel() for ax in some]


def lightness(colour):
    return np.asarray(colour)[..., :3] @ [0.299, 0.587, 0.114]


def rising(*shape):
    """Curves that rise from 0 to 1 along the last axis, each a little later."""
    count = int(np.prod(shape[:-1], dtype=int))
    late = np.arange(count).reshape(*shape[:-1], 1)
    return 1 / (1 + np.exp(0.3 * shape[-1] + late - np.arange(shape[-1])))


@pytest.mark.parametrize("name", STORED)
def test_every_panel_has_a_letter_of_its_own(name):
    found = titles(picture_of(name))
    if len(found) > 1:
        letters = [re.match(r"\(\w+\)", title) for title in found]
        assert all(letters), found
        assert len({match[0] for match in letters}) == len(found)


# ---- the talk -----------------------------------------------------------------------------------


def test_structures_share_a_named_scale_by_row_and_grey_has_the_signs():
    picture = picture_of("talk/structures")
    assert bars(picture) == ["covariance / largest", "entry of mode / largest"]
    images = [ax.images[0] for ax in panels(picture) if ax.images]
    assert {image.get_clim() for image in images[:5]} == {(0, 1)}
    assert {image.get_clim() for image in images[5:]} == {(-1, 1)}
    assert (np.diff(lightness(images[-1].cmap(np.linspace(0, 1, 21)))) > 0).all()
    labels = {ax.get_xlabel() for ax in panels(picture)}
    assert labels == {"item", "features"}


def test_regimes_have_a_title_each_and_their_ticks_stand_upright():
    values = rising(3, 5, 2, 1)
    dims = ("shape", "lam", "scale", "seed")
    arrays = dict.fromkeys(("distance", "sharpness"), (dims, values))
    coords = {"lam": [-1.0, -0.5, 0.0, 0.5, 1.0], "scale": [0.1, 1.0]}
    picture = made_up("talk/regimes", arrays, coords)
    assert titles(picture)[0] == "(a) kernel, funnel (8–4–4)"
    assert titles(picture)[3] == "(d) wait, funnel (8–4–4)"
    ticks = picture.axes[3].get_xticklabels()
    assert [text.get_text() for text in ticks] == ["−1", "−0.5", "0", "0.5", "1"]
    assert {text.get_rotation() for text in ticks} == {90}


def test_saddles_are_named_at_their_lines_and_runs_are_grey():
    time = np.linspace(0, 10, 101)
    loss = np.stack([np.where(time < 4 + k, 10.0, 1e-9) for k in range(5)])
    away = np.where(time < 4, 0.0, 3.0)
    distance = np.tile(np.stack([away, 3 - away], axis=1), (5, 1, 1))
    arrays = {
        "loss": (("seed", "time"), loss),
        "distance": (("seed", "time", "point"), distance),
        "point_loss": ("point", [10.0, 0.0]),
    }
    left, right = made_up("talk/saddles", arrays, {"time": time, "point": ["{}", "{1}"]}).axes
    assert {to_hex(line.get_color()) for line in left.lines[:5]} == {"#5f5f5f"}
    assert legend(left) == ["5 runs, simulated", "loss at a saddle"]
    assert [text.get_text() for text in left.texts] == ["{}"]
    assert [text.get_text() for text in right.texts] == ["{}", "{1}"]
    assert left.get_xlim()[1] < 10  # what has been learned is cut off


def test_items_are_named_where_they_end():
    ends = np.array([(-1, 1), (-1, 1), (-1, -1), (-1, -1), (1, 1), (1, 1), (1, -1), (1, -1)])
    arrays = {
        "simulated": (("level", "time"), rising(4, 60)),
        "predicted": (("level", "time"), rising(4, 60)),
        "places": (("time", "item", "axis"), np.linspace(0, 1, 60)[:, None, None] * ends),
    }
    left, right = made_up("talk/differentiation", arrays, {"time": np.arange(60.0)}).axes
    assert [text.get_text() for text in right.texts] == [f"items {k}–{k + 1}" for k in (1, 3, 5, 7)]
    assert right.get_ylabel() == "second and third dimension"
    assert left.get_xlim()[1] < 40


def test_animals_are_grey_and_strategies_coloured():
    T, rng = 40, np.random.default_rng(0)
    dims = ("network", "animal", "time")
    arrays = {
        **{name: (dims, rng.random((2, 6, T))) for name in ("accuracy", "left", "right")},
        "strategy": (dims, rng.integers(0, 5, (2, 6, T))),
        "asymmetry": (("network", "when", "animal"), rng.normal(size=(2, 2, 6))),
        "correlation": (("network", "part"), [[0.6, 0.7, 0.8], [-0.01, 0.2, 0.4]]),
        "point_right": (("point", "stimulus"), rng.random((2, 4))),
        "point_strategy": ("point", np.array(["naive", "left"], object)),
        "point_left_use": ("point", [0.0, 0.5]),
        "point_right_use": ("point", [0.0, 0.0]),
    }
    coords = {
        "network": ["deep", "shallow"],
        "time": np.arange(T) * 1.0,
        "part": ["low", "value", "high"],
        "stimulus": [-1.0, -0.5, 0.5, 1.0],
    }
    picture = made_up("talk/decisions", arrays, coords)
    learning, paths, late = picture.axes[2], picture.axes[4], picture.axes[5]
    strategies = set(decisions.colours().values()) - {decisions.colours()["naive"]}
    for ax in (learning, late):
        assert not strategies & {to_hex(line.get_color()).upper() for line in ax.lines}
    assert len({to_hex(line.get_color()) for line in paths.lines[:6]}) == 1
    assert {line.get_linestyle() for line in learning.lines} == {"-"}
    assert late.get_legend().get_title().get_text() == "rank correlation (95 % interval)"
    assert legend(late)[1] == "shallow: 0.20 (−0.01 to 0.40)"
    assert late.get_ylabel() == "late: right minus left use"


def test_both_axes_of_a_plane_say_what_they_are():
    dims = ("network", "animal", "time", "side")
    quantities = [f"{w}_{s}" for w in ("value", "correct", "neural") for s in ("left", "right")]
    points = np.array([[0.1] * 6 + [1, 0], [0.5] * 6 + [0, 0], [0.5] * 6 + [0, 1]])
    arrays = {name: (dims, rising(2, 3, 5, 2)) for name in ("value", "correct", "neural")}
    arrays |= {
        "of_point": (("point", "quantity"), points),
        "strategy": ("point", np.array(["naive", "expert", "expert"], object)),
    }
    coords = {
        "network": ["deep", "shallow"],
        "side": ["left", "right"],
        "quantity": [*quantities, "index", "network_number"],
    }
    picture = made_up("talk/deep_and_shallow", arrays, coords)
    planes = [ax for ax in picture.axes if ax.axison]
    assert len(planes) == 6
    for ax in planes:
        assert ax.get_ylabel() == ax.get_xlabel().replace("left", "right")
    (named,) = picture.legends
    said = [text.get_text() for text in named.get_texts()]
    assert said == ["expert, stable", "naive, saddle", "one animal"]


def test_numbers_on_the_graph_of_strategies_are_explained():
    arrays = {
        "left_use": ("point", [0.0, 1.0]),
        "right_use": ("point", [0.0, 1.0]),
        "route": (("routes", "of_route"), [[0.0, 1.0, 0.074]]),
        "right": (("point", "stimulus"), [[0.5, 0.5], [0.1, 0.9]]),
        "strategy": ("point", np.array(["naive", "expert"], object)),
        "index": ("point", [2, 0]),
        "distance": (("animal", "time", "point"), rising(3, 20, 2)),
        "separation": ("point", [1.0, 1.0]),
    }
    picture = made_up("talk/saddle_graph", arrays, {"stimulus": [-1.0, 1.0], "time": np.arange(20)})
    graph, distances, _ = picture.axes
    assert "rate of escape" in graph.texts[-1].get_text()
    ways = [inset.get_title() for inset in graph.child_axes]
    assert ways == ["naive: 2 ways out", "expert: stable"]
    assert {line.get_linestyle() for line in distances.lines} == {"-"}
    assert len({line.get_marker() for line in distances.lines}) == 2
    assert set(behaviour.STRATEGIES) == set(decisions.MARKS)


def test_the_axis_of_the_transition_has_no_kink_and_points_do_not_fade():
    delta, time = np.array([0.0, 0.5, 1.0, 2.0, 5.0]), np.linspace(0, 50, 51)
    losses = 0.5 * (1 - rising(5, 2, 51))
    arrays = {
        "share": (("delta", "seed", "gating"), rising(5, 2, 2)),
        "relu": (("delta", "seed", "time"), losses),
        "predicted": (("delta", "gating", "time"), losses),
    }
    coords = {"delta": delta, "time": time, "gating": ["linear", "xor"]}
    picture = made_up("talk/transition", arrays, coords, shown=(0.0, 5.0))
    task, _, gates, times = picture.axes
    assert [ax.get_xscale() for ax in (gates, times)] == ["asinh"] * 2
    assert gates.get_xlabel() == "Δ (scale: arsinh Δ)"
    assert legend(times) == ["ReLU networks", "linear, predicted", "xor, predicted"]
    assert not any(points.get_depthshade() for points in task.collections if points.get_label())


def test_gatings_have_dashes_of_their_own_and_gates_are_explained():
    gatings = list(gating_structures.NAMES)
    each = ("delta", "gating")
    arrays = {
        "relu": (("delta", "seed", "time"), 1 - rising(2, 2, 30)),
        "predicted": ((*each, "time"), 1 - rising(2, 4, 30)),
        "kept": (each, np.ones((2, 4))),
        "possible": (each, np.ones((2, 4))),
    }
    coords = {"delta": [0.4, 1.2], "gating": gatings, "time": np.arange(30.0)}
    picture = made_up("talk/gating_structures", arrays, coords)
    assert all(ax.get_xlabel().startswith("sample (dark: on)") for ax in picture.axes[:4])
    dashes = {
        str(line._dash_pattern)
        for line in picture.axes[-1].lines
        if "predicted" in line.get_label()
    }
    assert len(dashes) == 4


def test_the_valley_is_drawn_where_the_loss_is_zero():
    figure = papers.find("talk/error_surface")
    left, _ = figure.draw(figure.run(figure.resolve(quick=True), quick=True)).axes[:2]
    assert legend(left) == ["descent", "saddle", "valley, loss 0"]
    (valley,) = (c for c in left.collections if len(getattr(c, "levels", ())) == 1)
    line = np.concatenate([path.vertices for path in valley.get_paths()])
    np.testing.assert_allclose(line.prod(axis=1), 1, atol=0.02)


@pytest.mark.parametrize(
    ("name", "words"),
    [("talk/continual", "next task"), ("talk/training_speed", "range of seeds")],
)
def test_lines_and_bands_are_named(name, words):
    (ax,) = picture_of(name).axes
    assert words in " ".join([ax.get_title(), *(text.get_text() for text in ax.texts)])


# ---- NRR ----------------------------------------------------------------------------------------


def test_colours_of_figure_1_count_paths_in_both_panels():
    above, below = picture_of("nrr/fig1").axes
    table = papers.load_figure(STORE / "nrr/fig1.nc")
    counts = dict(zip(table["module"].to_numpy(), table["paths"].to_numpy(), strict=True))
    of_count = {int(line.get_label()[0]): to_hex(line.get_color()) for line in below.lines}
    edges = {str(p.get_gid())[5:]: p for p in above.patches if "edge:" in str(p.get_gid())}
    for name, patch in edges.items():
        assert to_hex(patch.get_edgecolor()) == of_count[counts[name]]
    assert {line.get_linestyle() for line in below.lines} == {"--"}  # all of them are predicted
    assert "predicted" in below.get_title()
    assert [text.get_text()[:7] for text in below.texts] == ["6 paths", "4 paths", "3 paths"]
    values = [lightness(plt.matplotlib.colors.to_rgb(c)) for c in of_count.values()]
    assert np.diff(sorted(values)).min() > 0.15


def test_samples_of_figure_3_have_the_numbers_of_their_pathways():
    x = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    arrays = {
        "reads": (("seed", "neuron", "input"), np.tile(x, (2, 2, 1))),
        "x": (("sample", "input"), x),
        "y": ("sample", [-1, 1, 1, -1]),
        **{n: (("seed", "time"), 1 - rising(2, 30)) for n in ("relu", "simulated", "predicted")},
    }
    picture = made_up("nrr/fig3", arrays, {"time": np.arange(30.0)}, hidden=32)
    task = picture.axes[0]
    assert legend(task) == ["weights", "y = +1", "y = −1"]
    places = {text.get_text(): text.xy for text in task.texts}
    for k, at in enumerate(x):
        np.testing.assert_array_equal(places[str(k + 1)], at)


def test_networks_are_solid_and_the_race_is_dashed_in_figures_of_images():
    above, middle, below = picture_of("nrr/fig7").axes
    names = [image_panels.DRAWN[method][0] for method in image_panels.LOOKS]
    assert set(names) <= set(legend(above))
    race = image_panels.LOOKS["race"][0].lower()
    for ax in (above, middle):
        curves = [
            line for line in ax.lines if len(line.get_xdata()) > 1 and line.get_marker() in "o^s"
        ]
        for line in curves:
            assert line.get_linestyle() == ("--" if to_hex(line.get_color()) == race else "-")
    assert above.get_ylabel() == "accuracy ± std over seeds"
    assert legend(below) == ["as predicted"]


def test_a_panel_of_one_cell_says_so():
    _, below = picture_of("nrr/fig9").axes
    assert [text.get_text() for text in below.texts] == ["only K / M = 0.25\nhas been computed"]


# ---- MHS ----------------------------------------------------------------------------------------


def test_rows_of_figure_3_share_a_scale_around_zero():
    rng, context = np.random.default_rng(0), np.repeat([1, 2, 3], 8)
    gates = np.array([context > 0, context != 1, context != 2, context != 3], float)
    arrays = {
        "x": (("input", "sample"), rng.integers(0, 2, (11, 24))),
        "y": (("output", "sample"), rng.random((60, 24))),
        "gates": (("pathway", "sample"), gates),
        "outputs": (("seed", "pathway", "output", "sample"), rng.normal(size=(2, 4, 60, 24))),
        "context": ("sample", context),
    }
    coords = {"pathway": ["common", "not1", "not2", "not3"]}
    picture = made_up("mhs/fig3", arrays, coords)
    assert bars(picture) == ["target, output", "error"]
    by_letter = {title[:2]: set() for title in titles(picture)}
    for ax, title in panels(picture).items():
        if ax.images:
            by_letter[title[:2]].add(ax.images[0].get_clim())
    assert by_letter["(a"] == by_letter["(b"] and len(by_letter["(b"]) == 1
    ((low, high),) = by_letter["(d"]
    assert low == -high
    assert {"(e) inputs; dark: 1", "(f) gates of the ReLN's pathways; dark: on"} <= {
        *titles(picture)
    }


def test_panels_of_figure_5_have_a_letter_each_and_one_colour_for_the_reln():
    each, strength = ("contexts", "seed", "step"), ("contexts", "seed", "step", "mode")
    arrays = {n: (each, 1 - rising(2, 2, 30)) for n in ("relu", "gated", "predicted", "closed")}
    for name in ("common", "others"):
        arrays |= {n: (strength, rising(2, 2, 30, 3)) for n in (name, f"{name}_predicted")}
        arrays[f"{name}_closed"] = (("contexts", "step", "mode"), rising(2, 30, 3))
    picture = made_up("mhs/fig5", arrays, {"contexts": [3, 4], "step": np.arange(30)})
    assert [title[:4] for title in titles(picture)] == [
        *("(a1)", "(b1)", "(a2)", "(b2)", "(a3)", "(b3)"),
    ]
    first, _, *others = picture.axes
    (colour,) = (line.get_color() for line in first.lines if line.get_label() == "ReLN")
    assert all(colour in {line.get_color() for line in ax.lines} for ax in others)


def test_modes_of_figure_7_are_named_and_equal_ones_together():
    figure = papers.find("mhs/fig7")
    picture = figure.draw(figure.run(figure.resolve(quick=True, changes={"seeds": 2}), quick=True))
    (strengths,) = (ax for ax, title in panels(picture).items() if title.startswith("(c)"))
    assert {text.get_text() for text in strengths.texts} == {"mode 1", "mode 2", "modes 3, 4"}


def test_seeds_and_the_papers_number_are_in_the_legend_of_figure_9():
    (ax,) = picture_of("mhs/fig9").axes
    assert legend(ax) == ["one seed", "mean", "MHS: 4"]
