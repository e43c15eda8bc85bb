"""Start values from actual weights: against formulas written out here, and against simulation."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.own.cases import random_case
from evidence.own.reduction import planted
from neuralrace.reduction.block import groups_of_copies
from tests.systems.rows import System
from tests.test_errors import refuses

KEY = jax.random.key(0)


def rotation(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def modes(
    s: list[float], inputs: int, outputs: int, seed: int = 0
) -> tuple[nr.Dataset, np.ndarray, np.ndarray]:
    """White inputs and targets with these singular values of Σ^yx, and its singular vectors."""
    rng = np.random.default_rng(seed)
    u, v = rotation(rng, outputs)[:, : len(s)], rotation(rng, inputs)[:, : len(s)]
    x = np.sqrt(inputs) * np.eye(inputs)
    y = x @ (u @ np.diag(s) @ v.T).T
    return nr.Dataset({"x": x}, {"y": y}), u, v


def gaussian(arch: nr.Architecture, seed: int, scale: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        e: scale * rng.normal(size=(arch.sizes[t], arch.sizes[s]))
        for e, (s, t) in arch.edges.items()
    }


def halves(weights: dict, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """½ (W₁v + W₂ᵀu) of every mode, in columns."""
    return (weights["W1"] @ v + weights["W2"].T @ u) / 2


def values(start: nr.reduction.Start) -> np.ndarray:
    """The product of the two edges of every scalar block; balanced, as it must be."""
    for w in start.weights:
        assert w["W1"].shape == w["W2"].shape == (1, 1)
        assert w["W1"][0, 0] > 0
        assert w["W1"][0, 0] == pytest.approx(w["W2"][0, 0], rel=1e-9)
    return np.array([w["W1"][0, 0] * w["W2"][0, 0] for w in start.weights])


# ---- two-edge pathways --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_one_mode_starts_at_its_growing_half(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(6, 1)), rng.normal(size=(6, 1))
    arch = nr.Architecture.chain(1, 32, 1)
    weights = gaussian(arch, seed, 1e-3)
    race = nr.reduce(arch, nr.Dataset({"x": x}, {"y": y}))
    sign = np.sign((x * y).sum())  # W₁ and W₂ᵀ grow together if positive, against each other if not
    c = (weights["W1"][:, 0] + sign * weights["W2"][0]) / 2
    assert values(race.start(weights))[0] == pytest.approx(c @ c, rel=1e-12)


def test_one_mode_is_exact_in_the_limit_of_small_weights():
    """One mode from unaligned hidden vectors: the loss error falls with their size squared."""
    arch = nr.Architecture.chain(1, 16, 1)
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    race, net, errors = nr.reduce(arch, data), nr.GDLN(arch), []
    for scale in (1e-2, 1e-3):
        weights = gaussian(arch, 3, scale)
        run = nr.train(net, weights, data, learning_rate=0.1, steps=300)
        stepped = race.solve(times=run.time, start=race.start(weights), learning_rate=0.1)
        errors.append(nr.compare(run, stepped).max)
    assert errors[1] < 1e-4
    assert errors[1] < errors[0] / 50


@pytest.mark.parametrize("hidden", [5, 24])
def test_modes_start_at_their_distance_from_faster_ones(hidden):
    data, u, v = modes([4.0, 3.0, 2.0, 1.0], 5, 6)
    arch = nr.Architecture.chain(5, hidden, 6)
    weights = gaussian(arch, 1, 1e-3)
    race = nr.reduce(arch, data)
    np.testing.assert_allclose([b.drive for b in race.blocks], [4, 3, 2, 1])
    taken, expected = [], []
    for c in halves(weights, u, v).T:  # Gram–Schmidt, fastest first
        left = c.copy()
        for direction in taken:
            left -= (direction @ left) * direction
        expected.append(left @ left)
        taken.append(left / np.linalg.norm(left))
    np.testing.assert_allclose(values(race.start(weights)), expected, rtol=1e-9)


def test_start_does_not_depend_on_d():
    """Inputs twice as large with targets half as large: Σ^yx is the same."""
    data, _, _ = modes([3.0, 2.0, 1.0], 3, 3)
    other = nr.Dataset({"x": 2 * np.asarray(data.x["x"])}, {"y": np.asarray(data.y["y"]) / 2})
    arch = nr.Architecture.chain(3, 8, 3)
    weights = gaussian(arch, 2, 1e-3)
    one, two = (values(nr.reduce(arch, d).start(weights)) for d in (data, other))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_equal_modes_start_at_the_eigenvalues_of_their_projected_gram_matrix():
    data, u, v = modes([3.0, 2.0, 2.0, 2.0, 1.0, 1.0], 6, 7)
    arch = nr.Architecture.chain(6, 20, 7)
    weights = gaussian(arch, 5, 1e-3)
    race = nr.reduce(arch, data)
    found = values(race.start(weights))
    c = halves(weights, u, v)
    for low, high in ((0, 1), (1, 4), (4, 6)):
        faster = np.linalg.qr(c[:, :low])[0] if low else np.zeros((20, 0))
        left = c[:, low:high] - faster @ (faster.T @ c[:, low:high])
        gram = left.T @ left
        assert found[low:high].prod() == pytest.approx(np.linalg.det(gram), rel=1e-8)
        np.testing.assert_allclose(np.sort(found[low:high]), np.linalg.eigvalsh(gram), rtol=1e-8)


def test_too_few_hidden_neurons_leave_slow_modes_nothing():
    """Three directions for five modes: the last two are expelled from all of them."""
    data, _, _ = modes([5.0, 4.0, 3.0, 2.0, 1.0], 5, 5)
    arch = nr.Architecture.chain(5, 3, 5)
    weights = gaussian(arch, 6, 1e-2)
    start = nr.reduce(arch, data).start(weights)
    sizes = [float(w["W1"][0, 0]) for w in start.weights]
    assert min(sizes[:3]) > 1e-5
    assert max(sizes[3:]) < 1e-12


def test_race_from_small_random_weights_follows_the_simulation():
    """8-item hierarchy, degenerate modes, nothing fitted."""
    data = nr.Dataset({"x": np.eye(8)}, {"y": nr.tasks.hierarchy().T})
    arch = nr.Architecture.chain(8, 32, 15)
    net, race, rate = nr.GDLN(arch), nr.reduce(arch, data), 0.1
    weights = net.init(jax.random.key(3), scale=1e-5)
    slowest = min(block.drive for block in race.blocks)
    steps = int(np.log(1e9) / slowest / rate)
    run = nr.train(net, weights, data, learning_rate=rate, steps=steps, record_every=steps // 200)
    start = race.start(weights)
    stepped = race.solve(times=run.time, start=start, learning_rate=rate)
    assert nr.compare(run, stepped).mean < 1e-4
    assert run.loss[-1] < 0.02 * run.loss[0]
    plain = nr.reduction.Start(
        tuple({e: np.full((1, 1), 1e-5 * 4) for e in w} for w in start.weights), None, "N_h σ²/2"
    )  # the expected value: worse, or the test above would show nothing
    worse = race.solve(times=run.time, start=plain, learning_rate=rate)
    assert nr.compare(run, worse).mean > 5 * nr.compare(run, stepped).mean


def test_contexts_from_small_random_weights_follow_the_simulation():
    """Matrix blocks: common and contextual pathways together."""
    arch, data = nr.tasks.common_and_all_but_one(nr.tasks.contextual(3, items=4), hidden=40)
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    weights = net.init(jax.random.key(1), scale=1e-5)
    rate = 0.05
    run = nr.train(net, weights, data, learning_rate=rate, steps=1500, record_every=10)
    start = race.start(weights)
    stepped = race.solve(times=run.time, start=start, learning_rate=rate)
    assert nr.compare(run, stepped).mean < 1e-3
    assert run.loss[-1] < 0.5 * run.loss[0]
    assert 0 < start.alignment < 1


# ---- decoupled weights --------------------------------------------------------------------------


def test_decoupled_two_edge_weights_start_where_they_are():
    data = nr.Dataset({"x": np.eye(4)}, {"y": nr.tasks.hierarchy(depth=2).T})
    race = nr.reduce(nr.Architecture.chain(4, 9, 7), data)
    solution = race.solve(times=[0.0, 1.0], start=0.05)
    again = race.start(race.weights(solution, 0.0, KEY))
    assert again.alignment == pytest.approx(1.0, rel=1e-10)
    np.testing.assert_allclose(values(again), 0.05**2, rtol=1e-9)
    later = race.start(race.weights(solution, 1.0, KEY))
    grown = [float(solution.values["pathways"][b.name]["W1-W2"][-1]) for b in race.blocks]
    np.testing.assert_allclose(values(later), grown, rtol=1e-9)


def test_decoupled_three_edge_weights_start_where_they_are():
    data = nr.Dataset({"x": np.eye(4)}, {"y": nr.tasks.hierarchy(depth=2).T})
    race = nr.reduce(nr.Architecture.chain(4, 5, 6, 7), data)
    times, rate = [0.0, 2.0, 4.0, 6.0], 0.1
    solution = race.solve(times=times, start=0.3, learning_rate=rate)
    again = race.start(race.weights(solution, 0.0, KEY))
    assert again.alignment == pytest.approx(1.0, rel=1e-10)
    assert "restricted to the directions of each block" in again.description
    for w in again.weights:
        assert {e: m.shape for e, m in w.items()} == {"W1": (5, 1), "W2": (6, 5), "W3": (7 - 6, 6)}
        assert np.linalg.norm(w["W1"]) == pytest.approx(0.3)
        assert np.linalg.norm(w["W3"]) == pytest.approx(0.3)
        assert (w["W3"] @ w["W2"] @ w["W1"])[0, 0] == pytest.approx(0.3**3)
    np.testing.assert_allclose(
        race.solve(times=times, start=again, learning_rate=rate).loss, solution.loss, rtol=1e-9
    )


@pytest.mark.parametrize("scale", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize("sizes", [(3, 20, 20, 2), (2, 30, 20, 30, 2)])
def test_hidden_directions_that_are_left_out_change_nothing(sizes, scale):
    """Deep blocks from random weights against all hidden neurons, in steps of descent."""
    rng = np.random.default_rng(len(sizes))
    data = nr.Dataset({"x": rng.normal(size=(9, sizes[0]))}, {"y": rng.normal(size=(9, 2))})
    arch = nr.Architecture.chain(*sizes)
    weights = {e: w * scale / np.sqrt(w.shape[1]) for e, w in gaussian(arch, 9, 1.0).items()}
    race = nr.reduce(arch, data)
    assert not race.reduces
    rate = 0.02
    run = nr.train(nr.GDLN(arch), weights, data, learning_rate=rate, steps=400, record_every=40)
    solution = race.solve(times=run.time, start=weights, learning_rate=rate)
    np.testing.assert_allclose(solution.loss, run.loss, rtol=1e-9)
    (variables,) = solution.values["variables"].values()
    assert len(sizes) == 4 or variables["W2"].shape[2] < sizes[1]  # of 30, those that 20 reach


@pytest.mark.parametrize(("seed", "scale"), [(0, 0.1), (1, 1e-2), (2, 1e-4), (3, 1e-6)])
def test_the_smallest_weights_need_all_hidden_directions_as_well(seed, scale):
    """Three wide edges until most of the loss is gone, against SciPy: t is about 1/scale."""
    rng = np.random.default_rng(seed)
    arch = nr.Architecture.chain(1, *rng.integers(8, 15, 2).tolist(), 1)
    weights = gaussian(arch, seed, scale)
    shapes = [w.shape for w in weights.values()]
    ends = np.cumsum([w.size for w in weights.values()])

    def apart(flat):
        return [w.reshape(shape) for w, shape in zip(np.split(flat, ends), shapes, strict=False)]

    def velocity(_, flat):
        a, b, c = apart(flat)
        left = 1 - c @ b @ a
        return np.concatenate(
            [g.ravel() for g in ((c @ b).T @ left, c.T @ left @ a.T, left @ (b @ a).T)]
        )

    def loss(flat):
        a, b, c = apart(flat)
        return (1 - c @ b @ a).item() ** 2 / 2

    def learned(_, flat):
        return loss(flat) - 0.1

    learned.terminal = True
    start = np.concatenate([w.ravel() for w in weights.values()])
    true = solve_ivp(velocity, [0, 1e3 / scale], start, "DOP853", rtol=1e-11, atol=1e-14 * scale,
                     events=learned, dense_output=True)  # fmt: skip
    times = np.linspace(0, true.t[-1], 20)
    race = nr.reduce(arch, nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    solved = race.solve(times=times, start=weights)
    wanted = [loss(true.sol(t)) for t in times]
    assert wanted[-1] == pytest.approx(0.1)
    np.testing.assert_allclose(solved.loss, wanted, atol=2e-5)


def test_one_block_keeps_all_of_the_weights():
    """Where nothing reduces, three edges: the race is the network, from any weights."""
    rng = np.random.default_rng(8)
    data = nr.Dataset({"x": rng.normal(size=(9, 2))}, {"y": rng.normal(size=(9, 2))})
    arch = nr.Architecture.chain(2, 3, 3, 2)
    race = nr.reduce(arch, data)
    assert not race.reduces
    weights = gaussian(arch, 9, 0.4)
    start = race.start(weights)
    assert start.alignment == pytest.approx(1.0, rel=1e-10)
    run = nr.train(nr.GDLN(arch), weights, data, learning_rate=0.1, steps=50, record_every=10)
    solution = race.solve(times=run.time, start=start, learning_rate=0.1)
    np.testing.assert_allclose(solution.loss, run.loss, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_alignment_of_random_weights_is_a_share(seed):
    case = random_case(np.random.default_rng(seed))
    race = nr.reduce(case.arch, case.data)
    start = race.start(case.weights)
    if race.blocks:
        assert 0 < start.alignment <= 1 + 1e-10
    assert len(start.weights) == len(race.blocks)
    for block, weights in zip(race.blocks, start.weights, strict=True):
        assert set(weights) == set(block.arch.edges)
        assert all(np.isfinite(w).all() for w in weights.values())


def test_wide_random_weights_are_little_aligned():
    """Of N_h (inputs + outputs) numbers, a mode carries N_h/2 of N_h each in two edges."""
    data, _, _ = modes([2.0], 4, 6)
    arch = nr.Architecture.chain(4, 4000, 6)
    start = nr.reduce(arch, data).start(gaussian(arch, 0, 1e-3))
    assert start.alignment == pytest.approx(2 * (1 / 2) / (4 + 6), rel=0.1)


# ---- copies of a block --------------------------------------------------------------------------


def test_identical_scalar_modes():
    data, _, _ = modes([3.0, 2.0, 2.0, 2.0, 1.0], 5, 5)
    race = nr.reduce(nr.Architecture.chain(5, 8, 5), data)
    assert [block.copy_of for block in race.blocks] == ["mode1", *3 * ["mode2"], "mode5"]


def check_copies(race: nr.Race, group: list[int]) -> None:
    """The network in the directions of each copy has the statistics of the first, path by path."""
    first = race.blocks[group[0]]
    one = nr.path_statistics(first.arch, first.data)
    data = race.split.data
    for block in (race.blocks[i] for i in group):
        x, y = (
            {v: np.asarray(field[v]) @ block.basis[v] for v in nodes}
            for field, nodes in ((data.x, first.arch.inputs), (data.y, first.arch.outputs))
        )
        names = {*first.arch.sizes, *first.arch.edges}
        gates = {name: gate for name, gate in data.gates.items() if name in names}
        seen = nr.Dataset(x, y, gates, data.sample_weight)
        arch = nr.Architecture(first.arch.sizes | first.dims, first.arch.edges)
        two = nr.path_statistics(arch, seen)
        for p, q in zip(one.paths, two.paths, strict=True):
            np.testing.assert_allclose(one.yx[p], two.yx[q], atol=1e-7)
            for j, k in zip(one.paths, two.paths, strict=True):
                if j.target == p.target:
                    np.testing.assert_allclose(one.x[j, p], two.x[k, q], atol=1e-7)


def test_identical_matrix_blocks_have_the_directions_of_the_first():
    """Every Σ^yx(p) and Σ^x(j,p) of planted repeats."""
    rng, seen = np.random.default_rng(41), 0
    while seen < 3:
        arch, data, sizes = planted(rng)
        race = nr.reduce(arch, data)
        groups = groups_of_copies(race.blocks)
        repeats = len(sizes) > len(set(sizes)) and sizes[-1] == sizes[0]
        if not groups:
            continue
        assert repeats
        seen += 1
        (group,) = groups
        assert len(group) == 2
        check_copies(race, group)


@pytest.mark.parametrize("n", [3, 24])
def test_large_blocks_have_copies(n):
    """Two copies of a block with n inputs and outputs."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, 3 * n, n))
    data = nr.Dataset(
        {"x": np.kron(np.eye(2), x) @ rotation(rng, 2 * n)},
        {"y": np.kron(np.eye(2), y) @ rotation(rng, 2 * n)},
    )
    race = nr.reduce(nr.Architecture.chain(2 * n, 4 * n, 2 * n), data)
    assert [block.dims for block in race.blocks] == [{"x": n, "y": n}] * 2
    assert groups_of_copies(race.blocks) == [[0, 1]]
    check_copies(race, [0, 1])


@pytest.mark.parametrize("copies", [2, 3])
def test_copies_whose_directions_come_in_pairs(copies):
    """Rotations by two angles: no symmetric element tells the two directions of a pair apart."""
    turn = lambda a: np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    n, rng = 2 * copies, np.random.default_rng(0)
    x = np.eye(n)
    y = [np.kron(np.eye(copies), turn(a)) @ x for a in (0.4, 1.9)]
    data = nr.Dataset(
        {"x": np.concatenate([x, x]) @ rotation(rng, n)},
        {"y": np.concatenate(y) @ rotation(rng, n)},
    )
    masks = {"all": None, "second": np.repeat([0, 1], n)}
    race = nr.reduce(*nr.pathways(data, masks, 8))
    assert [block.dims for block in race.blocks] == [{"x": 2, "y": 2}] * copies
    assert groups_of_copies(race.blocks) == [list(range(copies))]
    check_copies(race, list(range(copies)))


def test_blocks_on_other_edges_are_no_copies():
    """XoR: four pathways with equal numbers, but each with edges of its own."""
    race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    assert len({round(b.drive, 10) for b in race.blocks}) == 1
    assert groups_of_copies(race.blocks) == []


# ---- starts from numbers, and bad ones ----------------------------------------------------------


def test_start_from_a_number():
    race = nr.reduce(*nr.tasks.common_and_all_but_one(nr.tasks.contextual(3, items=4)))
    start = race.start(0.07)
    assert start.alignment is None
    assert start.description == "aligned, 0.07"
    assert len(start.weights) == len(race.blocks)
    for block, weights in zip(race.blocks, start.weights, strict=True):
        for e, (s, t) in block.arch.edges.items():
            assert weights[e].shape == (block.arch.sizes[t], block.arch.sizes[s])
        for node in block.arch.hidden:  # all it reads, and all it writes, side by side
            reads = np.hstack([weights[e] for e in block.arch.incoming[node]])
            writes = np.vstack([weights[e] for e in block.arch.outgoing[node]])
            for matrix in (reads, writes):
                np.testing.assert_allclose(np.linalg.svd(matrix, compute_uv=False), 0.07)


def test_start_from_a_number_agrees_with_the_singular_vectors():
    """Each pathway by itself would learn: W_p has a positive product with Σ^yx(p)."""
    race = nr.reduce(*nr.tasks.common_and_all_but_one(nr.tasks.contextual(3, items=4)))
    for block, weights in zip(race.blocks, race.start(0.1).weights, strict=True):
        stats = nr.path_statistics(block.arch, block.data)
        for node in block.arch.hidden:
            total = sum(
                float(np.sum((weights[p.edges[1]] @ weights[p.edges[0]]) * stats.yx[p]))
                for p in stats.paths
                if block.arch.edges[p.edges[0]][1] == node
            )
            assert total > 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([0.1, 0.2])])
def test_a_start_that_is_no_number(value):
    race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    with refuses("start"):
        race.start(value)


def test_weights_with_nan():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    weights = gaussian(arch, 0, 0.1)
    weights["x_sample2"][0, 1] = np.nan
    with refuses("x_sample2"):
        nr.reduce(arch, data).start(weights)


def test_weights_of_another_network():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    race = nr.reduce(arch, data)
    weights = gaussian(arch, 0, 0.1)
    with refuses("key"):
        race.start({e: w for e, w in weights.items() if e != "x_sample4"})
    with refuses("x_sample1"):
        race.start(weights | {"x_sample1": np.ones((2, 3))})


# ---- negative drive, tiny values, the start of another race --------------------------------------


def test_small_start_values_that_differ_are_not_merged():
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    arch, data = nr.pathways(data, {"a": None, "b": None, "c": None}, hidden=1)
    race = nr.reduce(arch, data)
    size = {"a": 0.3, "b": 3e-10, "c": 1e-10}
    weights = {e: np.full((1, 1), size[e.strip("xy_")]) for e in arch.edges}
    solution = race.solve(times=[0.0, 1.0], start=race.start(weights))
    found = solution.values["pathways"]["mode1"]
    np.testing.assert_allclose(found["x_b-b_y"][0], 9e-20)
    np.testing.assert_allclose(found["x_c-c_y"][0], 1e-20)


def test_solving_from_the_start_of_another_race():
    other = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0), total=8))
    with pytest.raises(nr.NeuralRaceError):
        nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor(), total=8)).solve(
            times=[0.0, 1.0], start=other.start(0.1)
        )


def test_growing_half_of_a_pathway_with_negative_drive():
    """Two pathways, gates 1 and −½: in the second, W₁v − W₂ᵀu is what grows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 1))
    base = nr.Dataset({"x": x}, {"y": x})
    arch, data = nr.pathways(base, {"a": np.ones(6), "b": -0.5 * np.ones(6)}, hidden=16)
    race = nr.reduce(arch, data)
    w = {
        e: 1e-3 * rng.normal(size=(arch.sizes[t], arch.sizes[s]))
        for e, (s, t) in arch.edges.items()
    }
    (start,) = race.start(w).weights
    plus = (w["x_a"][:, 0] + w["a_y"][0]) / 2
    minus = (w["x_b"][:, 0] - w["b_y"][0]) / 2
    assert abs(start["x_a"] * start["a_y"])[0, 0] == pytest.approx(plus @ plus)
    assert (start["x_b"] * start["b_y"])[0, 0] == pytest.approx(-(minus @ minus))


def test_aligned_start_of_a_pathway_with_negative_drive():
    """A number starts every pathway on the side where it learns."""
    base = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]})
    arch, data = nr.pathways(base, {"a": [1.0, 1.0], "b": [-0.5, -0.5]}, hidden=2)
    race = nr.reduce(arch, data)
    (block,), (start,) = race.blocks, race.start(0.1).weights
    stats = nr.path_statistics(block.arch, block.data)
    for p in stats.paths:
        assert (start[p.edges[0]] * start[p.edges[1]] * stats.yx[p])[0, 0] > 0, p


@pytest.mark.parametrize("value", ["small", None, 1j])
def test_a_start_of_another_kind(value):
    with refuses("start"):
        nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor(), total=8)).start(value)


@pytest.mark.parametrize("first", [0.3, 0.0])
@pytest.mark.parametrize("second", [-0.3, 0.0, 0.2])
def test_decoupled_starts_that_grow_little_or_not_at_all(first, second):
    """W₁v = −W₂ᵀu, or one layer zero, in the fastest mode or in all: the race starts there too."""
    rng = np.random.default_rng(3)
    data = nr.Dataset({"x": np.eye(3)}, {"y": np.diag([3.0, 2.0, 1.0]) @ rotation(rng, 3)})
    arch = nr.Architecture.chain(3, 5, 3)
    race, hidden = nr.reduce(arch, data), rotation(rng, 5)
    truth = System(arch, data, ()).truth()
    for which in ([0], [0, 1, 2], [1]):
        w1, w2 = np.zeros((5, 3)), np.zeros((3, 5))
        for i, block in enumerate(race.blocks):
            into, out = (first, second) if i in which else (0.25, 0.25)
            w1 += into * np.outer(hidden[:, i], block.basis["x"][:, 0])
            w2 += out * np.outer(block.basis["y"][:, 0], hidden[:, i])
        weights = {"W1": w1, "W2": w2}
        solution = race.solve(times=np.linspace(0, 3, 7), start=race.start(weights))
        losses, _ = truth.flow(weights, solution.time)
        np.testing.assert_allclose(solution.loss, losses, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 0.05, 0.5])
def test_the_gap_of_a_start_is_that_of_the_losses(scale):
    """The alignment does not see the scale of the weights; the gap does."""
    rng = np.random.default_rng(5)
    arch = nr.Architecture(
        {"x": 4, "h": 30, "y": 3}, {"in": ("x", "h"), "out": ("h", "y"), "skip": ("x", "y")}
    )
    data = nr.Dataset(
        {"x": np.eye(4)}, {"y": rng.normal(size=(4, 3))}, sample_weight=[0.1, 0.2, 0.3, 0.4]
    )
    net, race = nr.GDLN(arch), nr.reduce(arch, data)
    weights = {e: np.asarray(w, float) for e, w in net.init(1, scale=scale).items()}
    start = race.start(weights)
    out = weights["skip"] + weights["out"] @ weights["in"]
    error = np.asarray(data.y["y"]) - out.T
    real = 0.5 * np.asarray([0.1, 0.2, 0.3, 0.4]) @ (error**2).sum(axis=1)
    found = race.solve(times=[0.0, 1.0], start=start).loss[0]
    assert start.gap == pytest.approx(abs(found - real) / real, rel=1e-6, abs=1e-12)
    assert "initial loss off by" in repr(start)
    exact = race.weights(race.solve(times=[0.0, 1.0], start=0.3), 0.0, 0)
    assert race.start(exact).gap == pytest.approx(0, abs=1e-10)
    assert race.start(0.3).gap is None


@pytest.mark.parametrize("transform", ["grad", "vmap", "jit"])
@pytest.mark.parametrize(
    "use",
    [
        lambda race, b: race.solve(times=[0, 1.5], start=b).loss[-1],
        lambda race, b: race.closed_form(b).time_to_loss(0.5),
        lambda race, b: race.modes(b).half_time[0],
        lambda race, b: nr.contest({"a": race}, start=b).times["a"],
        lambda race, b: nr.contest({"a": race}, start={"a": b}).times["a"],
    ],
    ids=["solve", "closed form", "modes", "contest", "contest by name"],
)
def test_a_traced_start_is_refused_by_name(use, transform):
    """What is not differentiable must not answer with a gradient of zero."""
    data, _, _ = modes([4.0, 2.0], 3, 3)
    race = nr.reduce(nr.Architecture.chain(3, 8, 3), data)
    starts = [
        lambda b: b,
        lambda b: {"W1": b, "W2": 0.1},
        lambda b: {"W1": b * np.ones((8, 3)), "W2": np.ones((3, 8))},
        lambda b: {"W1": [[b] * 3] * 8, "W2": np.ones((3, 8))},
    ]
    where = np.array([0.1, 0.2]) if transform == "vmap" else 0.1
    for start in starts:
        with pytest.raises(nr.NeuralRaceError, match="start"):
            getattr(jax, transform)(lambda b, start=start: use(race, start(b)))(where)
