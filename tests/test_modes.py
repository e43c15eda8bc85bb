"""The modes of a race in words: order, times, sides, ties."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reduction import ModeTable
from tests.test_errors import refuses, says

ITEMS = ["pine", "rose", "robin", "salmon", "cat"]
PROPERTIES = ["grow", "roots", "petals", "move", "wings", "swim", "fur"]
TABLE = np.array(
    [
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 0, 0, 1, 1, 0, 0],
        [1, 0, 0, 1, 0, 1, 0],
        [1, 0, 0, 1, 0, 0, 1],
    ],
    float,
)
SIGMA, WIDTH = 1e-3, 64


def living(table: np.ndarray = TABLE, names: list[str] | None = None) -> nr.reduction.Race:
    labels = {"item": ITEMS if names is None else names}
    data = nr.Dataset({"x": np.eye(len(table))}, {"y": table}, labels=labels)
    return nr.reduce(nr.Architecture.chain(len(table), WIDTH, table.shape[1]), data)


@pytest.fixture(scope="module")
def found() -> ModeTable:
    return living().modes(scale=SIGMA, names=PROPERTIES, seeds=5)


def test_modes_are_those_of_an_svd(found: ModeTable) -> None:
    u, s, vt = np.linalg.svd(TABLE.T / len(TABLE), full_matrices=False)
    np.testing.assert_allclose(found.drive, s, rtol=1e-9)
    np.testing.assert_allclose(found.final, s * len(TABLE), rtol=1e-9)
    alone = [k for k in range(len(s)) if np.sum(np.isclose(s, s[k], rtol=1e-6)) == 1]
    assert len(alone) >= 3
    for k in alone:
        v = vt[k] / np.abs(vt[k]).max()
        item, output = found.item_loading[k], found.output_loading[k]
        sign = np.sign(item @ v)
        np.testing.assert_allclose(item, sign * v, atol=1e-7)
        np.testing.assert_allclose(output, sign * u[:, k] / np.abs(u[:, k]).max(), atol=1e-7)


def test_half_times_follow_the_logistic_formula(found: ModeTable) -> None:
    s = np.linalg.svd(TABLE.T / len(TABLE), compute_uv=False)
    first, brake = WIDTH * SIGMA**2 / 2, 1 / len(TABLE)
    np.testing.assert_allclose(
        found.half_time, np.log(s / (brake * first) - 1) / (2 * s), rtol=1e-8
    )
    assert (np.diff(found.half_time) >= 0).all()


def test_half_times_are_those_of_gradient_descent() -> None:
    race = living()
    weights = nr.GDLN(race.arch).init(jax.random.key(3), scale=SIGMA)
    table, rate = race.modes(weights), 0.05
    u, s, vt = np.linalg.svd(TABLE.T / len(TABLE), full_matrices=False)
    w1, w2 = (np.array(weights[e], float) for e in ("W1", "W2"))
    reached = np.full(len(s), np.nan)
    for step in range(4000):
        strength = np.diag(u.T @ w2 @ w1 @ vt.T)
        reached[np.isnan(reached) & (strength >= s * len(TABLE) / 2)] = step * rate
        error = (TABLE.T - w2 @ w1) / len(TABLE)
        w1, w2 = w1 + rate * w2.T @ error, w2 + rate * error @ w1.T
    distinct = ~np.isclose(np.diff(s, prepend=np.inf), 0) & ~np.isclose(np.diff(s, append=0), 0)
    assert distinct.sum() >= 3
    np.testing.assert_allclose(table.half_time[distinct], reached[distinct], rtol=0.03)


def test_sides_and_outputs_are_named(found: ModeTable) -> None:
    assert found.meaning("mode1") == "what all share"
    sides = found.sides("mode2")
    assert {frozenset(side) for side in sides} == {
        frozenset({"pine", "rose"}),
        frozenset({"robin", "salmon", "cat"}),
    }
    plants = 1 if "pine" in sides[0] else -1
    strongest = found.strongest("mode2")
    assert ("+roots" if plants == 1 else "−roots") in strongest
    assert ("−move" if plants == 1 else "+move") in strongest
    assert "grow" not in "".join(strongest)  # all items share it


def test_small_loadings_are_left_out_by_the_stated_rule() -> None:
    every = living().modes(scale=SIGMA, least=1e-9)
    few = living().modes(scale=SIGMA, least=0.999)
    for name in every.names:
        assert len(few.sides(name)[0] + few.sides(name)[1]) >= 1
        loading = np.abs(every.item_loading[every.names.index(name)])
        assert sum(map(len, few.sides(name))) == (loading >= 0.999).sum()
        assert sum(map(len, every.sides(name))) == (loading >= 1e-8).sum()


def test_modes_of_equal_drive_say_that_they_may_be_mixed(found: ModeTable) -> None:
    s = np.linalg.svd(TABLE.T / len(TABLE), compute_uv=False)
    assert np.isclose(s, 1 / len(TABLE)).sum() == 2  # robin, salmon and cat are symmetric
    (group,) = found.equal
    assert len(group) == 2
    assert "only what they span together" in str(found)
    assert group in found.ties


def test_identical_items_are_never_told_apart() -> None:
    table = TABLE.copy()
    table[1] = table[0]
    assert living(table).modes(0.01).alike == (("pine", "rose"),)
    assert "pine and rose are the same" in str(living(table).modes(0.01))
    assert living().modes(0.01).alike == ()


def test_seeds_start_from_random_weights_of_the_network(found: ModeTable) -> None:
    race, net = living(), nr.GDLN(nr.Architecture.chain(5, WIDTH, 7))
    assert found.seed_times.shape == (5, 5)
    key = jax.random.split(jax.random.key(0), 5)[2]
    form = race.closed_form(race.start(net.init(key, SIGMA, dtype=np.float64)))
    for name, mode in form.modes.items():
        by_hand = float(mode.time_to(mode.final / 2))
        assert found.seed_times[2, found.names.index(name)] == pytest.approx(by_hand, rel=1e-9)
    low, high = found.ranges.T
    assert ((low <= found.half_time * 1.1) & (high >= found.half_time * 0.9)).all()
    first, second = found.names[:2]
    assert (first, second) not in found.ties
    assert found.swapped(first, second) == 0


def test_features_are_named_where_no_label_is_text() -> None:
    data = nr.Dataset({"x": np.eye(2)}, {"y": [[2.0, 0.0], [0.0, 1.0]]}, labels={"n": [1, 2]})
    table = nr.reduce(nr.Architecture.chain(2, 8, 2), data).modes(0.01)
    assert table.items == ("x[0]", "x[1]")
    assert [table.meaning(name) for name in table.names] == ["x[0] alone", "x[1] alone"]
    assert table.strongest("mode1") == ("+y[0]",)


def test_samples_of_one_name_are_averaged_and_gates_count() -> None:
    x = np.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]])
    data = nr.Dataset({"x": x}, {"y": x}, labels={"kind": ["a", "a", "b"]})
    arch, gated = nr.pathways(data, {"one": [1, 1, 0], "two": [0, 0, 1]}, hidden=8)
    table = nr.reduce(arch, gated).modes(0.01)
    assert table.items == ("a", "b")
    for name in table.names:  # every pathway is on for one of the names alone
        assert (np.abs(table.item_loading[table.names.index(name)]) > 1e-12).sum() == 1


def test_a_matrix_block_is_listed_without_words() -> None:
    x = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    y = np.array([[1.0, 0.3], [0.0, 1.0], [1.0, -1.0]])
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), nr.Dataset({"x": x}, {"y": y}))
    block = next(block for block in race.blocks if not block.is_scalar)
    table = race.modes(scale=SIGMA)
    assert set(table.unnamed) == {block.name}
    assert table.names[-1] == block.name
    assert np.isnan(table.half_time[-1])
    unnamed = [s.text for s in table.sentences() if s.id == "unnamed"]
    assert len(unnamed) == 1 and block.name in unnamed[0]
    order = next(s.text for s in table.sentences() if s.id == "order")
    assert block.name in order and f"{block.drive:.3g}" in order


def test_the_order_names_matrix_blocks_beside_modes() -> None:
    """Two pathways that are never on together: a mode, and a block of two directions."""
    x = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([[1.0, 0.3], [0.0, 1.0], [1.0, -1.0], [2.0, 0.0]])
    base = nr.Dataset({"x": x}, {"y": y})
    arch, gated = nr.pathways(base, {"three": [1, 1, 1, 0], "last": [0, 0, 0, 1]}, hidden=8)
    race = nr.reduce(arch, gated)
    (matrix,) = (block for block in race.blocks if not block.is_scalar)
    order = next(s.text for s in race.modes(scale=SIGMA).sentences() if s.id == "order")
    assert matrix.name in order and f"{matrix.drive:.3g}" in order


def test_notes_explain_only_columns_that_are_there() -> None:
    """A coupled mode has no half-time: neither from the average start nor from random ones."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(9, 3))}, {"y": rng.normal(size=(9, 1))})
    coupled = nr.reduce(nr.Architecture.chain(3, 8, 1), data).modes(scale=SIGMA, seeds=2)
    assert np.isnan(coupled.half_time).all() and np.isnan(coupled.seed_times).all()
    alone = nr.reduce(nr.Architecture.chain(1, 8, 1), nr.Dataset({"x": [[1.0]]}, {"y": [[2.0]]}))
    scalar = alone.modes(scale=SIGMA, seeds=2)
    for table, there in ((coupled, False), (scalar, True)):
        _, headings, *_ = str(table).splitlines()
        note = {sentence.id: sentence.text for sentence in table.sentences()}["start"]
        assert ("Half-time:" in note) == ("Named:" in note) == there
        assert ("half time" in headings) == ("range" in headings) == there


def test_a_start_past_half_has_half_time_zero_and_no_signal_has_no_modes() -> None:
    assert (living().modes(2.0).half_time == 0).all()
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.zeros((2, 1))})
    table = nr.reduce(nr.Architecture.chain(2, 4, 1), data).modes(0.1)
    assert str(table) == "No modes: nothing is learned."


def test_output_nodes_are_named_by_node() -> None:
    data = nr.Dataset({"x": np.eye(2)}, {"a": [[1.0], [0.0]], "b": [[1.0], [0.0]]})
    arch = nr.Architecture(
        {"x": 2, "h": 8, "a": 1, "b": 1}, {"xh": ("x", "h"), "ha": ("h", "a"), "hb": ("h", "b")}
    )
    table = nr.reduce(arch, data).modes(scale=SIGMA, names={"b": ["red"]})
    assert table.outputs == ("a[0]", "red")
    np.testing.assert_allclose(np.abs(table.output_loading), 1.0)
    wanted = "names for 'a', 'b'"
    with says("has several output nodes", got="one list", wanted=wanted, fix="names={node"):
        nr.reduce(arch, data).modes(0.1, names=["red", "blue"])


def test_deep_networks_start_from_a_number() -> None:
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    race = nr.reduce(nr.Architecture.chain(2, 8, 8, 2), data)
    form = race.closed_form(0.1).modes["mode1"]
    assert race.modes(0.1).half_time[0] == pytest.approx(float(form.time_to(form.final / 2)))
    with refuses("scale"):
        race.modes(scale=0.1)


def test_errors_say_what_is_missing() -> None:
    race = living()
    what, wanted, fix = "half-times need one start", "weights or a number", "race.modes(scale=1e-3)"
    with says(what, got="neither start nor scale", wanted=wanted, fix=fix):
        race.modes()
    with says(what, got="both start and scale", wanted=wanted, fix=fix):
        race.modes(0.1, scale=0.1)
    with refuses("scale"):
        race.modes(0.1, seeds=3)
    with refuses("items"):
        race.modes(0.1, items="object")
    with refuses("names"):
        race.modes(0.1, names=["grow"])
    with refuses("mode"):
        race.modes(0.1).meaning("mode9")
