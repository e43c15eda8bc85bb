"""Pictures: what is drawn is what was given."""

import ast
import warnings
from pathlib import Path

import matplotlib
import matplotlib.font_manager
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import neuralrace
from neuralrace.errors import NeuralRaceError
from neuralrace.plot import (
    COLOURS,
    cycle_colour,
    draw_curves,
    draw_graph,
    draw_matrix,
    shade,
    style,
)

CHAIN = ({"x": 4, "h": 10, "y": 2}, {"xh": ("x", "h"), "hy": ("h", "y")})


def artists(ax, kind):
    """Artists by name, of one kind: node, edge or gate."""
    found = {}
    for artist in ax.get_children():
        gid = artist.get_gid() or ""
        if gid.startswith(f"{kind}:"):
            found[gid.split(":", 1)[1]] = artist
    return found


def texts(ax):
    return [text.get_text() for text in ax.texts]


def dedicated(domains, *, deep=False):
    """Every input domain joined to every output domain by a pathway of its own."""
    sizes = {f"x{i}": 4 for i in range(domains)}
    edges = {}
    for i in range(domains):
        for j in range(domains):
            first, last = f"h{i}{j}", f"k{i}{j}" if deep else f"h{i}{j}"
            sizes |= {first: 64, last: 64}
            edges |= {f"in{i}{j}": (f"x{i}", first), f"out{i}{j}": (last, f"y{j}")}
            if deep:
                edges[f"mid{i}{j}"] = (first, last)
    return sizes | {f"y{j}": 7 for j in range(domains)}, edges


@pytest.mark.parametrize(
    ("sizes", "edges"), [CHAIN, dedicated(3), dedicated(5, deep=True)], ids=["chain", "9", "25"]
)
def test_one_box_a_node_and_one_arrow_an_edge(sizes, edges):
    ax = draw_graph(sizes, edges)
    boxes, arrows = artists(ax, "node"), artists(ax, "edge")
    assert set(boxes) == set(sizes) and set(arrows) == set(edges)
    assert all(isinstance(box, FancyBboxPatch) for box in boxes.values())
    assert all(isinstance(arrow, FancyArrowPatch) for arrow in arrows.values())
    for source, target in edges.values():
        assert boxes[source].get_x() + boxes[source].get_width() < boxes[target].get_x()


def test_boxes_stand_inside_the_axes_and_apart():
    gates = {f"h{i}{j}": np.arange(25) == 5 * i + j for i in range(5) for j in range(5)}
    ax = draw_graph(*dedicated(5), gates=gates)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    boxes = [box.get_bbox() for box in artists(ax, "node").values()]
    assert all(left < b.x0 and b.x1 < right and low < b.y0 and b.y1 < high for b in boxes)
    apart = [not a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert all(apart)


def test_inputs_and_outputs_have_their_own_columns():
    sizes = {"a": 1, "b": 1, "h": 2, "k": 2, "y": 1, "z": 1}
    edges = {
        "ah": ("a", "h"),
        "hk": ("h", "k"),
        "bk": ("b", "k"),
        "ky": ("k", "y"),
        "hz": ("h", "z"),
    }
    boxes = artists(draw_graph(sizes, edges), "node")
    assert boxes["a"].get_x() == boxes["b"].get_x()
    assert boxes["y"].get_x() == boxes["z"].get_x() > boxes["k"].get_x()


def test_hidden_nodes_are_ordered_to_avoid_crossings():
    sizes = {"x1": 1, "x2": 1, "low": 2, "high": 2, "y1": 1, "y2": 1}
    edges = {"a": ("x2", "low"), "b": ("low", "y2"), "c": ("x1", "high"), "d": ("high", "y1")}
    boxes = artists(draw_graph(sizes, edges), "node")
    assert boxes["high"].get_y() > boxes["low"].get_y()


def test_branches_differ_in_colour_and_chains_do_not():
    sizes, edges = dedicated(2, deep=True)
    boxes = artists(draw_graph(sizes, edges), "node")
    colours = {node: box.get_edgecolor() for node, box in boxes.items()}
    assert len({colours[f"h{i}{j}"] for i in range(2) for j in range(2)}) == 4
    assert all(colours[f"h{i}{j}"] == colours[f"k{i}{j}"] for i in range(2) for j in range(2))


def test_parallel_edges_take_distinct_ways():
    edges = {"a": ("x", "h"), "b": ("x", "h"), "c": ("x", "h"), "d": ("h", "y")}
    ax = draw_graph(CHAIN[0], edges)
    ways = [artists(ax, "edge")[e]._path_original.vertices for e in "abc"]
    gaps = [np.abs(ways[i] - ways[j]).max() for i in range(3) for j in range(i)]
    assert min(gaps) > 0.1
    assert {"a", "b", "c"} <= set(texts(ax))


def test_skip_connections_go_around_nodes():
    ax = draw_graph(CHAIN[0], {**CHAIN[1], "skip": ("x", "y")})
    box = artists(ax, "node")["h"].get_bbox()
    way = artists(ax, "edge")["skip"]._path_original.interpolated(50)
    curve = way.cleaned(curves=False).vertices
    assert not any(box.contains(x, y) for x, y in curve)
    assert curve[:-1, 1].max() < ax.get_ylim()[1]


def test_strips_show_the_gates():
    neurons = (np.arange(60).reshape(6, 10) % 3 == 0).astype(float)
    gates = {"h": neurons, "y": [0, 0.5, 1, 1, 0, 0], "xh": np.arange(6) < 3}
    ax = draw_graph(*CHAIN, gates=gates)
    strips = {name: np.asarray(image.get_array()) for name, image in artists(ax, "gate").items()}
    np.testing.assert_array_equal(strips["h"], neurons.T)
    np.testing.assert_array_equal(strips["y"], [gates["y"]])
    np.testing.assert_array_equal(strips["xh"], [[1, 1, 1, 0, 0, 0]])
    assert "strip: gate on each of 6 samples" in texts(ax)


def test_many_neurons_are_averaged():
    gate = np.eye(5, 40)
    ax = draw_graph({"x": 4, "h": 40, "y": 2}, CHAIN[1], gates={"h": gate})
    np.testing.assert_allclose(artists(ax, "gate")["h"].get_array(), [gate.mean(axis=1)])


def test_no_strips_without_gates():
    for gates in (None, {}):
        ax = draw_graph(*CHAIN, gates=gates)
        assert not ax.images
        assert not any("strip" in text for text in texts(ax))


def test_crowded_columns_are_counted_and_lose_their_names():
    shown = texts(draw_graph(*dedicated(7)))
    assert "49 × 64" in shown
    assert not any(text.startswith("h") for text in shown)
    assert "x0\n4" in texts(draw_graph(*dedicated(3)))


def test_nodes_without_edges():
    assert set(artists(draw_graph({"x": 3, "y": 2}, {}), "node")) == {"x", "y"}


def test_labels_rename():
    shown = texts(draw_graph(*CHAIN, labels={"h": "hidden", "xh": "$W_1$"}))
    assert "hidden\n10" in shown and "$W_1$" in shown and "xh" not in shown


def test_graph_fills_the_axes_given():
    figure, (left, right) = plt.subplots(1, 2)
    assert draw_graph(*CHAIN, ax=right) is right
    assert not left.patches and right.get_figure() is figure


@pytest.mark.parametrize(
    ("sizes", "edges", "gates", "message"),
    [
        ({"x": 1, "y": 1}, {"xh": ("x", "h")}, None, "edge 'xh' names an unknown node"),
        ({"x": 1, "y": 1}, {"a": ("x", "y"), "b": ("y", "x")}, None, "form a cycle"),
        (*CHAIN, {"k": [1, 0]}, "neither a node nor an edge"),
        (*CHAIN, {"h": np.ones((2, 3))}, "wrong shape"),
        (*CHAIN, {"h": [1, 0], "y": [1, 0, 1]}, "wrong shape"),
        ({}, {}, None, "no nodes"),
    ],
)
def test_graphs_that_cannot_be_drawn(sizes, edges, gates, message):
    with pytest.raises(NeuralRaceError, match=message):
        draw_graph(sizes, edges, gates=gates)


def test_style_restores_what_was_before():
    before = dict(matplotlib.rcParams)
    with style():
        assert matplotlib.rcParams["pdf.fonttype"] == 42
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(RuntimeError), style():
        raise RuntimeError
    assert dict(matplotlib.rcParams) == before


def test_theory_is_told_from_simulation_without_colour():
    t = np.linspace(0, 1, 20)
    ax = draw_curves(t, {"run": t, "race": t}, kind={"run": "simulation", "race": "theory"})
    run, race = ax.lines
    assert run.get_linestyle() == "-" and race.get_linestyle() == "--"
    assert run.get_linewidth() > race.get_linewidth() and run.get_zorder() < race.get_zorder()
    luminance = [np.mean(matplotlib.colors.to_rgb(line.get_color())) for line in (run, race)]
    assert luminance[0] > luminance[1] + 0.3
    assert run.get_color() == COLOURS["simulation"]


def test_several_theories_alone_differ_in_dashes_and_are_not_dark():
    t = np.linspace(0, 1, 20)
    names = ("one", "two", "three", "four")
    ax = draw_curves(t, dict.fromkeys(names, t), kind="theory")
    assert len({str(line._dash_pattern) for line in ax.lines}) == 4
    assert [line.get_color() for line in ax.lines] == [cycle_colour(i) for i in range(4)]
    ax = draw_curves(t, dict.fromkeys(names, t))
    draw_curves(t, dict.fromkeys(names, t), kind="theory", ax=ax)
    assert ax.lines[4].get_color() == shade(cycle_colour(0), -0.55)


def test_seeds_are_faint_and_their_mean_is_named():
    t, seeds = np.arange(5.0), np.arange(15.0).reshape(3, 5)
    ax = draw_curves(t, {"run": seeds}, ylabel="error", log=True)
    named = [line for line in ax.lines if line.get_label() == "run"]
    assert len(ax.lines) == 4 and len(named) == 1
    np.testing.assert_array_equal(named[0].get_ydata(), seeds.mean(axis=0))
    assert ax.get_ylabel() == "error" and ax.get_yscale() == "log"


@pytest.mark.parametrize("band", ["std", "range", None])
def test_bands(band):
    ax = draw_curves(np.arange(5), {"run": np.arange(15.0).reshape(3, 5)}, band=band)
    assert len(ax.lines) == 1 and len(ax.collections) == (band is not None)


def test_simulation_and_theory_of_one_name_share_a_legend_entry():
    t = np.arange(5.0)
    curves = {"common": t, "not1": 2 * t}
    ax = draw_curves(t, curves)
    predicted = {name: curve[:3] for name, curve in curves.items()}
    draw_curves(dict.fromkeys(curves, t[:3]), predicted, kind="theory", ax=ax)
    assert len(ax.lines) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["common", "not1"]


@pytest.mark.parametrize(
    ("time", "curve", "kind", "message"),
    [
        (np.arange(4), np.arange(5), "simulation", "does not fit its time"),
        (np.arange(5), np.zeros((2, 2, 5)), "simulation", "does not fit its time"),
        (np.arange(5), np.arange(5), "guess", "not known"),
        (np.arange(5), np.arange(5), {"other": "theory"}, "not known"),
        ({"other": np.arange(5)}, np.arange(5), "theory", "no time"),
    ],
)
def test_curves_that_cannot_be_drawn(time, curve, kind, message):
    with pytest.raises(NeuralRaceError, match=message):
        draw_curves(time, {"run": curve}, kind=kind)


def test_signed_matrices_are_centred_at_zero():
    image = draw_matrix(np.array([[-1.0, 3.0], [0.0, 2.0]]), title="targets").images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-3, 3)
    plain = draw_matrix(np.array([[0.5, 3.0]])).images[0]
    assert (plain.norm.vmin, plain.norm.vmax) == (0, 3)


def test_blocks_are_separated_and_named():
    blocks = {"rows": {"item": 3, "context": 1}, "columns": {"c1": 2, "c2": 2}}
    ax = draw_matrix(np.eye(4), blocks=blocks, columns=list("abcd"), rows="feature")
    assert [line.get_ydata()[0] for line in ax.lines[:1]] == [2.5]
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [1.5]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["item", "context"]
    assert [text.get_text() for text in ax.get_xticklabels()] == list("abcd")
    (above,) = ax.child_axes
    assert [text.get_text() for text in above.get_xticklabels()] == ["c1", "c2"]
    assert ax.get_ylabel() == "feature"
    assert len(ax.get_figure().axes) == 1, "a matrix of zeros and ones needs no scale"


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.zeros(3), {}, "not a matrix"),
        (np.eye(3), {"rows": ["a", "b"]}, "rows do not add up"),
        (np.eye(3), {"blocks": {"columns": {"a": 2}}}, "columns do not add up"),
    ],
)
def test_matrices_that_cannot_be_drawn(matrix, options, message):
    with pytest.raises(NeuralRaceError, match=message):
        draw_matrix(matrix, **options)


# ---- fonts --------------------------------------------------------------------------------------


def signs():
    """Every character beyond ASCII in the package's texts: what a label may hold."""
    found = set()
    for path in Path(neuralrace.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {sign for sign in node.value if ord(sign) > 127}
    return sorted(found)


def missing(family):
    """The warnings that matplotlib gives where it draws all these characters in a font."""
    figure = plt.figure()
    for i, sign in enumerate(signs()):
        figure.text(i % 20 / 20, i // 20 / 20, sign, family=family)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.canvas.draw()
    return [str(w.message) for w in caught if "missing" in str(w.message)]


# cmr10 comes with matplotlib and lacks most of these characters
@pytest.mark.slow
@pytest.mark.parametrize("first", [[], ["cmr10"]], ids=["style", "another font first"])
def test_every_sign_is_drawn(first):
    assert {"σ", "₀", "ᵀ"} <= set(signs())
    with style():
        family = matplotlib.rcParams["font.family"]
        assert missing([*first, *family]) == []


def test_a_missing_sign_would_be_found():
    assert any("Glyph" in message for message in missing(["cmr10"]))


def test_the_font_comes_with_matplotlib():
    with style():
        families = matplotlib.rcParams["font.family"]
    shipped = Path(matplotlib.get_data_path(), "fonts", "ttf").glob("*.ttf")
    names = {matplotlib.font_manager.get_font(font).family_name for font in shipped}
    assert set(families) <= names
