"""Odd races: no signal but rounding, equal modes that are no copies, other races' solutions."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reduction.block import groups_of_copies
from neuralrace.reduction.merging import block_system
from tests.test_errors import refuses

KEY = jax.random.key(0)


def xor() -> nr.Race:
    return nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor(), total=8))


@pytest.mark.parametrize("seed", range(3))
def test_no_signal_but_rounding(seed):
    """Every input is shown with a target and with its negative: Σ^yx is zero but for rounding."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    data = nr.Dataset({"x": np.concatenate([x, x])}, {"y": np.concatenate([y, -y])})
    race = nr.reduce(nr.Architecture.chain(3, 4, 2), data)
    assert race.blocks == ()
    assert "No signal" in str(race)


def test_modes_with_equal_s_and_other_d_are_no_copies():
    data = nr.Dataset({"x": np.diag([2.0, 1.0])}, {"y": np.diag([1.0, 2.0])})
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    assert [round(b.drive, 10) for b in race.blocks] == [1.0, 1.0]
    assert groups_of_copies(race.blocks) == []


def test_weights_from_the_solution_of_another_race():
    other = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0), total=8))
    solution = other.solve(times=[0.0, 1.0], start=0.1)
    with pytest.raises(nr.NeuralRaceError, match="another race"):
        xor().weights(solution, 0.0, KEY)


def twice_the_targets() -> nr.Race:
    """The graph of `xor` and other data: blocks of the same names, edges and shapes."""
    data = nr.tasks.xor()
    twice = nr.Dataset(data.x, {v: 2 * np.asarray(y) for v, y in data.y.items()}, data.gates)
    return nr.reduce(*nr.tasks.xor_pathways(twice, total=8))


def test_a_start_or_solution_of_other_data_on_the_same_graph_is_refused():
    other = twice_the_targets()
    with pytest.raises(nr.NeuralRaceError, match="start of another race"):
        xor().solve(times=[0.0, 1.0], start=other.start(0.1))
    with pytest.raises(nr.NeuralRaceError, match="solution of another race"):
        xor().weights(other.solve(times=[0.0, 1.0], start=0.1), 0.0, KEY)
    assert xor().solve(times=[0.0, 1.0], start=xor().start(0.1)).loss[0] > 0


def test_a_start_of_other_shapes_is_refused():
    race = xor()
    wide = tuple({e: np.ones((2, 2)) for e in b.arch.edges} for b in race.blocks)
    with pytest.raises(nr.NeuralRaceError, match="start of another race"):
        race.start(nr.reduction.Start(wide, None, "by hand"))


def test_a_solution_with_a_step_is_recorded_at_whole_steps():
    solution = xor().solve(times=[0.0, 0.12, 0.13, 1.0], start=0.1, learning_rate=0.05)
    np.testing.assert_allclose(solution.time, [0.0, 0.1, 0.15, 1.0])


def test_times_that_fall_on_one_step_are_returned_once():
    solution = xor().solve(times=[0.0, 0.99, 1.01], start=0.1, learning_rate=0.5)
    np.testing.assert_array_equal(solution.time, [0.0, 1.0])


def test_a_descent_that_diverges_before_the_first_time_says_when():
    from neuralrace.dynamics import StoppedError

    with pytest.raises(StoppedError, match=r"after step \d") as caught:
        xor().solve(times=[1000.0], start=1.0, learning_rate=30.0)
    assert len(caught.value.trajectory.loss) == 0


def test_polynomials_of_too_many_terms_are_not_fitted(monkeypatch):
    """A matrix block of four variables is written out, unless it may have too many terms."""
    from evidence.own.cases import random_case
    from neuralrace.reduction import merging as system

    case = random_case(np.random.default_rng(138), samples=9)
    race = nr.reduce(case.arch, case.data)
    assert not race.blocks[0].is_scalar and str(race).count("not merged") == 1
    monkeypatch.setattr(system, "MAX_TERMS", 4)
    assert str(nr.reduce(case.arch, case.data)).count("not merged") == 2


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_weights_at_times_in_any_unit(unit):
    """Times a millionth of the spacing apart are the same; half a spacing is another time."""
    data = nr.Dataset({"x": [[1 / np.sqrt(unit)]]}, {"y": [[1 / np.sqrt(unit)]]})
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), data)
    solution = race.solve(times=unit * np.linspace(0, 4, 5), start=0.1)
    race.weights(solution, 3.0000001 * unit, KEY)
    with pytest.raises(nr.NeuralRaceError, match="no time"):
        race.weights(solution, 2.5 * unit, KEY)


def test_a_chain_of_very_many_edges():
    """Nothing recurses from edge to edge, and no product along the path vanishes unseen."""
    arch = nr.Architecture.chain(*[2] * 1501)
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([1.0, 2.0])})
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 2
    assert [v.multiplicity for v in race.variables()] == [1500, 1500]
    assert "quadrature" in str(race)
    times = np.linspace(0, 0.005, 5)
    exact = race.closed_form(0.999).loss(times)
    np.testing.assert_allclose(race.solve(times=times, start=0.999).loss, exact, atol=1e-6)
    assert exact[-1] < exact[0] / 2


def beside(shallow: int, deep: int) -> nr.Race:
    """Two chains from x to y; where the first is off, targets have other singular vectors."""
    sizes, edges = {"x": 2, "y": 2}, {}
    for name, depth in (("a", shallow), ("b", deep)):
        nodes = ["x", *(f"{name}{i}" for i in range(depth)), "y"]
        sizes |= dict.fromkeys(nodes[1:-1], 2)
        edges |= {f"{name}_{i}": pair for i, pair in enumerate(pairwise(nodes))}
    cos, sin = np.cos(0.6), np.sin(0.6)
    turn = np.array([[cos, -sin], [sin, cos]])
    y = np.vstack([np.diag([2.0, 1.0]), turn @ np.diag([3.0, 1.0]) @ turn.T])
    data = nr.Dataset({"x": np.vstack([np.eye(2)] * 2)}, {"y": y}, {"a0": [1.0, 1.0, 0.0, 0.0]})
    return nr.reduce(nr.Architecture(sizes, edges), data)


@pytest.mark.parametrize(("shallow", "deep"), [(1, 1), (1, 600), (1500, 1500)])
def test_couplings_through_long_paths_are_seen(shallow, deep):
    """However long paths are, none is drawn so faintly that blocks fall apart."""
    assert [block.dims for block in beside(shallow, deep).blocks] == [{"x": 2, "y": 2}]


def test_a_chain_of_any_length_has_a_signal():
    race = nr.reduce(nr.Architecture.chain(*[1] * 4001), nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    assert len(race.blocks) == 1


# ---- any scale ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), [(1e-6, 10.0), (1e-6, 1e6), (1e6, 1e-6), (1.0, 1.0)])
def test_one_weight_after_another_at_any_scale(x, y):
    """Σ^x is far smaller than the loss, and still it is what stops the growth."""
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), nr.Dataset({"x": [[x]]}, {"y": [[y]]}))
    limit = np.sqrt(y / x)
    solution = race.solve(times=np.array([0.0, 30.0]) / (x * y), start=0.1 * limit)
    begin, end = solution.loss / (y**2 / 2)
    assert race.is_exact and begin == pytest.approx((1 - 0.01) ** 2) and abs(end) < 1e-9


@pytest.mark.parametrize("small", [1.0, 1e-2, 1e-4, 1e-6])
def test_small_features_are_coupled_as_much_as_large_ones(small):
    """A correlation of 0.8 is one whatever the units, and Σ^x goes with the square of these."""
    shown = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 3)))[0] * np.sqrt(40)
    x = shown @ np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.8], [0.0, 0.0, 0.6]])
    y = np.linalg.solve(x.T @ x / 40, x.T).T @ np.diag([3.0, 2.0, 1.0])  # ⟨y xᵀ⟩ is diagonal
    data = nr.Dataset({"x": x * [1.0, small, small]}, {"y": y})
    race = nr.reduce(nr.Architecture.chain(3, 6, 3), data)
    assert [block.dims["x"] for block in race.blocks] in ([1, 2], [2, 1])
    assert race.constant < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_found_among_features_of_very_different_size(seed):
    """Two blocks of features, sizes from 1e-6 to 1, a rotation in each node inside every block."""
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=(20, 2)) * 10 ** rng.uniform(-6, 0, 2) for _ in range(3)]
    y = [rng.normal(size=(20, 2)) * 10 ** rng.uniform(-6, 0, 2) for _ in range(3)]
    wide = [np.kron(np.eye(3)[i], part) for i, part in enumerate(x)]
    wanted = [np.kron(np.eye(3)[i], part) for i, part in enumerate(y)]
    data = nr.Dataset({"x": np.concatenate(wide)}, {"y": np.concatenate(wanted)})
    race = nr.reduce(nr.Architecture.chain(6, 6, 6), data)
    assert [block.dims for block in race.blocks] == [{"x": 2, "y": 2}] * 3
    assert race.is_exact


def test_edges_that_differ_only_in_their_brake_are_not_merged():
    """Two inputs with the same Σ^yx, and Σ^x that are tiny beside it and differ threefold."""
    data = nr.Dataset({"a": [[1e-6], [0.0]], "b": [[0.0], [3e-6]]}, {"y": [[3e6, 0.0], [0.0, 1e6]]})
    arch = nr.Architecture(
        {"a": 1, "b": 1, "h": 2, "y": 2}, {"ah": ("a", "h"), "bh": ("b", "h"), "hy": ("h", "y")}
    )
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 2
    one = nr.Dataset({"a": [[1e-6], [0.0]], "b": [[0.0], [3e-6]]}, {"y": [[3e6], [1e6]]})
    (block,) = nr.reduce(nr.Architecture(dict(arch.sizes) | {"y": 1}, arch.edges), one).blocks
    from neuralrace.reduction.merging import merged
    from neuralrace.reduction.polynomial import scalar_race

    assert [0, 1] not in merged(scalar_race(block))


def test_blocks_are_not_kept_alive():
    import gc
    import weakref

    race = xor()
    str(race)
    left = weakref.ref(race.blocks[0])
    del race
    gc.collect()
    assert left() is None


@pytest.mark.parametrize(("size", "exact"), [(1e-5, True), (1e-12, False)])
def test_features_that_cannot_be_told_from_rounding_are_not_called_exact(size, exact):
    x = np.diag([1.0, size])
    race = nr.reduce(nr.Architecture.chain(2, 4, 2), nr.Dataset({"x": x}, {"y": np.eye(2)}))
    assert race.is_exact == exact
    assert ("not checked: directions of x" in str(race)) == (not exact)
    assert race.constant >= 0


@pytest.mark.parametrize(("apart", "exact"), [(1e-3, True), (1e-11, False)])
def test_directions_that_cannot_be_told_from_rounding_are_not_called_exact(apart, exact):
    """Two features of equal size, nearly collinear: their difference is a faint direction."""
    x = np.array([[1.0, 1.0 + apart], [1.0, 1.0], [-1.0, -1.0 + apart]])
    y = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    race = nr.reduce(nr.Architecture.chain(2, 4, 2), nr.Dataset({"x": x}, {"y": y}))
    assert race.is_exact == exact
    assert race.faint == (() if exact else ("x",))


def test_the_loss_outside_all_blocks_counts_every_target_once():
    """Two pathways on together, one with dependent inputs there: blocks share no target."""
    x = {"a": [[1.0, 1.0], [0.0, 0.0], [1.0, 0.3], [0.0, 2.0]], "b": [[0.0], [1.0], [0.0], [0.0]]}
    y = np.random.default_rng(0).normal(size=(4, 2))
    arch = nr.Architecture(
        {"a": 2, "b": 1, "h": 3, "k": 3, "y": 2},
        {"ah": ("a", "h"), "bk": ("b", "k"), "hy": ("h", "y"), "ky": ("k", "y")},
    )
    data = nr.Dataset(x, {"y": y}, {"h": [1, 1, 0.5, 0.5], "k": [1, 1, 0, 0]})
    race = nr.reduce(arch, data)
    zero = {e: np.zeros((arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()}
    total = race.constant + sum(block.initial_loss for block in race.blocks)
    assert total == pytest.approx(float(nr.GDLN(arch).loss(zero, data)), rel=1e-12)
    assert race.constant >= 0


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_a_small_loss_outside_all_blocks_is_said_in_any_unit(unit):
    """The same input with two targets: half of their difference cannot be explained."""
    data = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[unit], [1.0001 * unit]]})
    race = nr.reduce(nr.Architecture.chain(1, 2, 1), data)
    assert race.constant == pytest.approx((0.5e-4 * unit) ** 2 / 2, rel=1e-6)
    assert "loss outside all blocks" in str(race)
    assert "loss outside all blocks" in repr(race.closed_form(0.01))


def test_the_loss_that_cannot_be_learned_is_never_negative():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(9, 3)) * 10.0 ** rng.uniform(-3, 3)
        data = nr.Dataset({"x": x}, {"y": x @ rng.normal(size=(3, 2))})
        race = nr.reduce(nr.Architecture.chain(3, 8, 2), data)
        assert race.constant >= 0
        assert (race.solve(times=[0.0, 2e3 / (x**2).sum()], start=0.1).loss >= 0).all()


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_the_units_of_an_output_change_no_block(unit):
    """Two inputs and two outputs through one node need two neurons there, in whatever units."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    arch = nr.Architecture(
        {"a": 1, "b": 1, "h": 4, "y": 1, "z": 1},
        {"ah": ("a", "h"), "bh": ("b", "h"), "hy": ("h", "y"), "hz": ("h", "z")},
    )
    data = nr.Dataset(
        {"a": x[:, :1], "b": x[:, 1:] / unit}, {"y": y[:, :1] / unit, "z": unit * y[:, 1:]}
    )
    (block,) = nr.reduce(arch, data).blocks
    assert block.arch.sizes["h"] == 2


@pytest.mark.parametrize(("x", "y"), [(1e-6, 1e6), (1e6, 1e-6)])
def test_equations_of_matrix_blocks_at_any_scale(x, y):
    """Pathways whose outputs overlap by −1/2: the merged equations of a block, in other units."""
    arch, data = nr.tasks.all_but_one(nr.tasks.contextual(contexts=3), hidden=20)
    other = nr.Dataset(
        {v: x * np.asarray(a) for v, a in data.x.items()},
        {v: y * np.asarray(a) for v, a in data.y.items()},
        data.gates,
    )
    (plain, _), (found, _) = (
        block_system(race.blocks[0]) for race in (nr.reduce(arch, data), nr.reduce(arch, other))
    )
    np.testing.assert_array_equal(found.powers, plain.powers)
    weight = np.sqrt(y / x) ** plain.powers.sum(axis=1)
    scaled = found.errors * weight / y  # rows are known up to a rotation
    np.testing.assert_allclose(scaled.T @ scaled, plain.errors.T @ plain.errors, atol=1e-9)
    rate = np.sqrt(y / x) * x * y
    np.testing.assert_allclose(found.velocity * weight / rate, plain.velocity, atol=1e-9)


def test_class_indices_are_refused_and_rows_are_asked_for():
    data = nr.Dataset({"x": np.eye(3)}, {"y": [[0], [1], [2]]})
    for given in (nr.reduce, nr.path_statistics):
        with refuses("y"):
            given(nr.Architecture.chain(3, 4, 3), data)


def test_masks_that_are_never_on_are_named():
    base = nr.Dataset({"x": np.eye(3)}, {"y": np.eye(3)})
    arch, data = nr.pathways(base, {"a": None, "b": [0, 0, 0], "c": [1, 0, 0]}, hidden=3)
    said = str(nr.reduce(arch, data))
    assert "never on, so that it learns nothing: b" in said
    arch, data = nr.pathways(base, {"b": [0, 0, 0], "c": [0, 0, 0]}, hidden=3)
    assert "never on, so that they learn nothing: b, c" in str(nr.reduce(arch, data))
    arch, data = nr.pathways(base, {"a": None, "c": [1, 0, 0]}, hidden=3)
    assert "never on" not in str(nr.reduce(arch, data))


def test_paths_with_conflicting_signs_are_no_failure_of_the_assumption():
    """y = a + b and z = a − b through one node: every statistic is one number."""
    a, b = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]])[..., None]
    arch = nr.Architecture(
        {"a": 1, "b": 1, "h": 4, "y": 1, "z": 1},
        {"ah": ("a", "h"), "bh": ("b", "h"), "hy": ("h", "y"), "hz": ("h", "z")},
    )
    race = nr.reduce(arch, nr.Dataset({"a": a, "b": b}, {"y": a + b, "z": a - b}))
    assert [block.has_sign_conflict for block in race.blocks] == [True]
    assert race.failures == ()
    assert "conflicting signs" in str(race) and "Assumption" not in str(race)


@pytest.mark.parametrize(("case", "place"), [(44, 0), (79, 0), (319, 3)])
def test_blocks_whose_nodes_differ_in_size_by_many_orders(case, place):
    """Edges of one race that differ by 1e10, and inputs of one block that differ by 1e9."""
    from evidence.own.scales import block_error, problem

    rng = np.random.default_rng([8, case])
    race = nr.reduce(*problem(rng))
    assert race.exactness.is_split  # some have fewer neurons than directions
    assert block_error(race, race.blocks[place], rng) < 1e-8


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_what_a_tolerance_drops_is_no_loss_that_cannot_be_learned(seed, noise):
    """Two inputs that are correlated by chance: a reduction that drops this knows no time."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 10_000, 4))
    y = (
        a @ rng.normal(size=(4, 3))
        + b @ rng.normal(size=(4, 3))
        + noise * rng.normal(size=(10_000, 3))
    )
    x = np.concatenate([a, b], axis=1)
    least = float(((y - x @ np.linalg.lstsq(x, y)[0]) ** 2).sum() / 2 / len(y))
    reads = {"h": ("a",), "k": ("b",)}
    arch = nr.Architecture.parallel({"a": 4, "b": 4}, {"h": 8, "k": 8}, {"y": 3}, reads=reads)
    race = nr.reduce(arch, nr.Dataset({"a": a, "b": b}, {"y": y}), tolerance=0.1)
    assert len(race.blocks) > 4 and not race.is_exact
    assert race.constant == pytest.approx(least, abs=1e-10) and race.dropped_loss > 0.05
    assert race.outside == race.constant + race.dropped_loss
    at_zero = race.outside + sum(block.initial_loss for block in race.blocks)
    assert at_zero == pytest.approx(float((y**2).sum()) / 2 / len(y))
    form = race.closed_form(0.05)
    assert np.isfinite(form.time_to_loss(race.outside + 0.1))
    assert np.isnan(form.time_to_loss(race.constant + 0.01))  # it can be learned; when?
    assert np.isinf(form.time_to_loss(race.constant - 0.01))
    assert race.solve(times=[1e3], start=0.05).loss[0] == pytest.approx(race.outside)
    entrant = nr.contest({"a": race}, start=0.05, criterion=race.constant + 0.01).entrants["a"]
    assert np.isinf(entrant.time) and entrant.is_unknown and entrant.lateness == "unknown"
    assert f"dropped: {race.dropped_loss:.4g}" in str(race) and "dropped" in repr(form)
