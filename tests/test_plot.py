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
    letter_panels,
    mark_line,
    shade,
    style,
)
from tests.test_errors import refuses

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


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


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
    assert "gates: black = on, grey = partly (6 samples)" in texts(ax)


def test_samples_with_equal_gates_are_neighbours_in_every_strip():
    turns = np.arange(6) % 2
    ax = draw_graph(*CHAIN, gates={"h": turns, "xh": 1 - turns})
    strips = {name: np.asarray(image.get_array()) for name, image in artists(ax, "gate").items()}
    np.testing.assert_array_equal(strips["h"], [[0, 0, 0, 1, 1, 1]])
    np.testing.assert_array_equal(strips["xh"], [[1, 1, 1, 0, 0, 0]])
    assert "gates: black = on (6 samples, sorted by gate)" in texts(ax)


def test_the_note_says_what_has_no_strip():
    sizes = {"x": 2, "h": 4, "k": 4, "y": 1}
    edges = {"xh": ("x", "h"), "xk": ("x", "k"), "hy": ("h", "y"), "ky": ("k", "y")}
    note = "gates: black = on (2 samples); no strip = not gated"
    assert note in texts(draw_graph(sizes, edges, gates={"h": [1, 0]}))
    narrow = plt.figure(figsize=(2.6, 2)).add_subplot()
    assert {*note.split("; ")} <= {*texts(draw_graph(sizes, edges, gates={"h": [1, 0]}, ax=narrow))}


def test_strips_of_edges_cover_neither_boxes_nor_names_nor_each_other():
    sizes = {"word": 3, "ink": 3, "hidden": 60, "answer": 3}
    edges = {"see": ("word", "hidden"), "look": ("ink", "hidden"), "say": ("hidden", "answer")}
    gates = {"see": [1, 0], "look": [0, 1], "say": [1, 1]}
    for width in (2.4, 3.4, 6.0):
        given = plt.figure(figsize=(width, 1.8), layout="none").add_axes((0, 0, 1, 1))
        ax = draw_graph(sizes, edges, gates=gates, ax=given)
        ax.figure.draw_without_rendering()
        boxes = [box.get_window_extent() for box in artists(ax, "node").values()]
        names = [text.get_window_extent() for text in ax.texts if text.get_text() in edges]
        strips = [strip.get_window_extent() for strip in artists(ax, "gate").values()]
        assert len(names) == len(strips) == 3
        for i, strip in enumerate(strips):
            assert not any(strip.overlaps(other) for other in [*boxes, *names, *strips[:i]]), width


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
    names = [f"theory {i}" for i in range(8)]
    ax = draw_curves(t, dict.fromkeys(names, t), kind="theory")
    dashes = [np.divide(line._dash_pattern[1], line.get_linewidth()) for line in ax.lines]
    assert len({tuple(np.round(dash, 3)) for dash in dashes}) == 8
    assert [line.get_color() for line in ax.lines] == [cycle_colour(i) for i in range(8)]
    widths = [line.get_linewidth() for line in ax.lines]
    assert widths == sorted(widths, reverse=True), "the lower of two that coincide is seen"
    ax = draw_curves(t, dict.fromkeys(names, t))
    draw_curves(t, dict.fromkeys(names, t), kind="theory", ax=ax)
    assert ax.lines[8].get_color() == shade(cycle_colour(0), -0.55)


def luminance(colour):
    """L* of CIELAB: 0 is black, 100 white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    y = np.dot(linear, (0.2126, 0.7152, 0.0722))
    return 116 * np.cbrt(y) - 16


def test_the_first_four_colours_differ_in_grey():
    first = [matplotlib.colors.to_rgb(cycle_colour(i)) for i in range(4)]
    luma = [255 * np.dot(colour, (0.299, 0.587, 0.114)) for colour in first]  # as programs convert
    for grey, least in ((sorted(map(luminance, first)), 9), (sorted(luma), 25)):
        assert np.diff(grey).min() > least


def test_colours_may_be_given_by_name():
    t = np.arange(3.0)
    ax = draw_curves(t, {"a": t, "b": t, "c": t}, color={"a": "red", "c": (0, 0, 1)})
    chosen = [line.get_color() for line in ax.lines]
    assert chosen == ["red", shade(cycle_colour(1), 0.25), (0, 0, 1)]
    with pytest.raises(NeuralRaceError, match="no such colour"):
        draw_curves(t, {"a": t}, color={"a": "reed"})


def test_seeds_are_faint_and_their_mean_is_named():
    t, seeds = np.arange(5.0), np.arange(15.0).reshape(3, 5)
    ax = draw_curves(t, {"run": seeds}, ylabel="error", log=True)
    named = [line for line in ax.lines if line.get_label() == "run"]
    assert len(ax.lines) == 4 and len(named) == 1
    np.testing.assert_array_equal(named[0].get_ydata(), seeds.mean(axis=0))
    assert ax.get_ylabel() == "error" and ax.get_yscale() == "log"
    assert legend(ax) == ["run", "single seeds"]


def test_seeds_of_a_theory_are_dashed():
    ax = draw_curves(np.arange(5.0), {"race": np.arange(15.0).reshape(3, 5)}, kind="theory")
    assert len(ax.lines) == 4 and {line.get_linestyle() for line in ax.lines} == {"--"}


@pytest.mark.parametrize(
    ("band", "word"),
    [("std", ["± standard deviation"]), ("range", ["range over seeds"]), (None, [])],
)
def test_bands(band, word):
    ax = draw_curves(np.arange(5), {"run": np.arange(15.0).reshape(3, 5)}, band=band)
    assert len(ax.lines) == 1 and len(ax.collections) == (band is not None)
    assert legend(ax) == ["run", *word]


def test_simulation_and_theory_of_one_name_share_a_legend_entry():
    t = np.arange(5.0)
    curves = {"common": t, "not1": 2 * t}
    ax = draw_curves(t, curves)
    predicted = {name: curve[:3] for name, curve in curves.items()}
    draw_curves(dict.fromkeys(curves, t[:3]), predicted, kind="theory", ax=ax)
    assert len(ax.lines) == 4
    assert legend(ax) == ["common", "not1", "simulated", "predicted"]
    solid, dashed = ax.get_legend().legend_handles[-2:]
    assert solid.get_linestyle() == "-" and dashed.get_linestyle() == "--"


def test_kinds_of_different_names_need_no_words():
    t = np.arange(5.0)
    ax = draw_curves(t, {"trained": t, "race": t}, kind={"trained": "relu", "race": "theory"})
    assert legend(ax) == ["trained", "race"]


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


# ---- letters and marks --------------------------------------------------------------------------


def test_letters_go_before_titles_wherever_they_stand_and_only_once():
    figure, (left, middle, right) = plt.subplots(1, 3)
    left.set_title("loss", loc="left")
    middle.set_title("gates")
    for _ in range(2):
        letter_panels(figure)
    assert (left.get_title("left"), left.get_title()) == ("(a) loss", "")
    assert (middle.get_title(), right.get_title()) == ("(b) gates", "(c)")


def test_marked_lines_say_what_they_mark():
    _, ax = plt.subplots()
    mark_line(ax, "criterion", y=0.2)
    mark_line(ax, "equal", x=0.8, before=True)
    level, upright = ax.lines
    assert set(level.get_ydata()) == {0.2} and set(upright.get_xdata()) == {0.8}
    assert texts(ax) == ["criterion", "equal"]
    assert [text.get_ha() for text in ax.texts] == ["right", "right"]
    assert [text.get_va() for text in ax.texts] == ["bottom", "top"]
    for given in ({}, {"x": 1.0, "y": 1.0}):
        with refuses("at"):
            mark_line(ax, "both or none", **given)


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


def test_a_legend_of_many_lines_is_beside_the_axes():
    t = np.linspace(0, 1, 5)
    few, many = (
        draw_curves(t, {f"curve {i}": t + i for i in range(n)}, kind="theory") for n in (4, 6)
    )
    beside = lambda ax: ax.get_legend().get_bbox_to_anchor().x0 >= ax.bbox.x1 - 1
    assert not beside(few) and beside(many)
    assert many.figure.get_figwidth() > few.figure.get_figwidth()
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in many.lines}) == 6
    import matplotlib.pyplot as plt

    panel = plt.subplots(1, 2)[1][0]
    draw_curves(t, {f"curve {i}": t + i for i in range(6)}, ax=panel)
    assert not beside(panel), "another panel is there"


def test_words_on_shares_do_not_overlap_and_colours_do_not_repeat():
    t = np.linspace(0, 10, 100)
    ax = neuralrace.plot.draw_shares(
        t, {f"part {i}": np.full(100, 0.1) for i in range(10)}, exact=np.full(100, 0.5)
    )
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 11
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.overlaps(b) for a, b in pairs)
    assert len({tuple(c.get_facecolor()[0]) for c in ax.collections}) == 10
