"""Path statistics against sums over samples, their laziness, and the flow through them."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import Case, brute_force_outputs, random_case
from neuralrace.statistics import class_factor, join_nodes, split_neurons
from tests.systems.rows import System
from tests.test_errors import refuses

seeds = st.integers(0, 2**32 - 1)


def gate_of(stats: nr.PathStatistics, path: nr.Path) -> np.ndarray:
    """g_p on every sample: the product of the gates of all nodes and edges on the path."""
    data, arch = stats.whole.data, stats.arch
    names = [path.source]
    for edge in path.edges:
        names += [edge, arch.edges[edge][1]]
    gate = np.ones(data.n_samples)
    for name in names:
        if name in data.gates:
            gate = gate * data.gates[name]
    return gate


def by_samples(weight, left, right) -> np.ndarray:
    """Σ_n weight_n left_n right_nᵀ, one sample after another."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for w, a, b in zip(weight, left, right, strict=True):
        total += w * np.outer(a, b)
    return total


# ---- the matrices -------------------------------------------------------------------------------


@given(seeds)
def test_statistics_equal_sums_over_samples(seed):
    case = random_case(np.random.default_rng(seed))
    stats = nr.path_statistics(case.arch, case.data)
    data, weight = stats.whole.data, np.asarray(case.data.probability)
    some = stats.paths[:12]
    gates = {p: gate_of(stats, p) for p in some}
    for p in some:
        wanted = by_samples(weight * gates[p], data.y[p.target], data.x[p.source])
        np.testing.assert_allclose(stats.yx[p], wanted, rtol=1e-10, atol=1e-12)
        assert stats.yx[p].dtype == np.float64
        for j in some:
            wanted = by_samples(weight * gates[j] * gates[p], data.x[j.source], data.x[p.source])
            np.testing.assert_allclose(stats.x[j, p], wanted, rtol=1e-10, atol=1e-12)


@given(seeds)
def test_velocity_is_minus_the_gradient(seed):
    case = random_case(np.random.default_rng(seed))
    wanted = System(case.arch, case.data, ()).truth().velocity(case.weights)
    velocity = nr.path_statistics(case.arch, case.data).velocity(case.weights)
    assert list(velocity) == list(case.arch.edges)
    scale = max(float(np.abs(v).max()) for v in wanted.values())
    for edge, v in wanted.items():
        np.testing.assert_allclose(velocity[edge], v, atol=1e-11 * max(scale, 1))


def test_velocity_checks_the_weights():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=4)
    stats = nr.path_statistics(arch, data)
    weights = nr.GDLN(arch).init(jax.random.key(0))
    weights.pop("x_sample1")
    with refuses("weights", "x_sample1"):
        stats.velocity(weights)


# ---- groups and laziness ------------------------------------------------------------------------


@given(seeds)
def test_groups_partition_the_paths_by_ends_and_gates(seed):
    case = random_case(np.random.default_rng(seed), neurons=bool(seed % 2))
    stats = nr.path_statistics(case.arch, case.data)
    grouped = [p for group in stats.groups for p in group.paths]
    assert len(grouped) == len(set(grouped)) == stats.arch.path_count()
    assert set(grouped) == set(stats.arch.paths()) == set(stats.paths)
    kinds = {}
    for i, group in enumerate(stats.groups):
        for p in group.paths:
            assert (p.source, p.target) == (group.source, group.target)
            kind = (p.source, p.target, tuple(np.round(gate_of(stats, p), 12) + 0.0))
            assert kinds.setdefault(kind, i) == i, "two groups hold paths of equal ends and gates"
    assert len(kinds) == len(stats.groups), "one group holds paths of different gates"


def test_equal_gates_share_one_computation():
    base = nr.tasks.xor()
    on = base.mask(positive=True)
    arch, data = nr.pathways(base, {"a": on, "b": on, "c": ~on, "d": on}, hidden=3)
    stats = nr.path_statistics(arch, data)
    assert [len(group.paths) for group in stats.groups] == [3, 1]
    a, b, d, c = stats.paths
    assert len(stats.yx) == len(stats.x) == 0, "nothing is built before it is asked for"
    assert stats.yx[a] is stats.yx[b] is stats.yx[d]
    assert len(stats.yx) == 1
    assert stats.yx[c] is not stats.yx[a]
    assert len(stats.yx) == 2
    assert stats.x[a, b] is stats.x[d, d]
    assert len(stats.x) == 1


def test_pairs_that_are_never_on_together_are_never_built():
    arch, data = nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5), total=4)
    stats = nr.path_statistics(arch, data)
    for i, j in enumerate(stats.paths):
        for k, p in enumerate(stats.paths):
            assert stats.x[j, p].shape == (3, 3)
            assert stats.x[j, p].any() == (i == k)
    assert len(stats.x) == 4


def test_a_path_that_is_never_on_has_zeros():
    base = nr.tasks.xor()
    arch, data = nr.pathways(base, {"on": None, "off": np.zeros(4)}, hidden=3)
    stats = nr.path_statistics(arch, data)
    on, off = (nr.Path((f"x_{name}", f"{name}_y"), "x", "y") for name in ("on", "off"))
    assert {g.paths: len(g.classes) for g in stats.groups} == {(on,): 1, (off,): 0}
    assert stats.yx[off].shape == (1, 2)
    assert not stats.yx[off].any()
    assert not stats.x[on, off].any()
    velocity = stats.velocity(nr.GDLN(arch).init(jax.random.key(0)))
    assert not velocity["x_off"].any() and velocity["x_on"].any()


# ---- the factor of a gate class -----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_of_many_samples_keeps_few_rows_and_all_moments(weighted):
    rng = np.random.default_rng(0)
    n = 300
    gate = rng.choice([0.0, 1.0, 2.0], n)
    gate[:4], gate[4:] = 5.0, np.where(gate[4:] == 5, 1.0, gate[4:])  # a class of only four
    data = nr.Dataset(
        {"a": rng.normal(size=(n, 3)), "b": rng.normal(size=(n, 4))},
        {"y": rng.normal(size=(n, 5)), "z": rng.normal(size=(n, 1))},
        gates={"h": gate},
        sample_weight=rng.uniform(size=n) if weighted else None,
    )
    factor = class_factor(data)
    assert factor.count == 4
    for c in range(4):
        samples = gate == factor.gates["h"][c]
        rows = factor.row_class == c
        assert rows.sum() == min(samples.sum(), 7)
        weight = np.asarray(data.probability)[samples]
        x, y = np.hstack([data.x["a"], data.x["b"]]), np.hstack([data.y["y"], data.y["z"]])
        kept_x = np.hstack([factor.x["a"], factor.x["b"]])[rows]
        kept_y = np.hstack([factor.y["y"], factor.y["z"]])[rows]
        np.testing.assert_allclose(
            kept_x.T @ kept_x, by_samples(weight, x[samples], x[samples]), atol=1e-13
        )
        np.testing.assert_allclose(
            kept_y.T @ kept_x, by_samples(weight, y[samples], x[samples]), atol=1e-13
        )


def test_velocity_with_many_samples_a_class():
    rng = np.random.default_rng(1)
    base = nr.Dataset({"x": rng.normal(size=(200, 3))}, {"y": rng.normal(size=(200, 2))})
    halves = np.arange(200) < 90
    arch, data = nr.pathways(base, {"all": None, "a": halves, "b": 0.5 * ~halves}, hidden=4)
    stats = nr.path_statistics(arch, data)
    assert len(stats.factor.row_class) == 6
    weights = nr.GDLN(arch).init(jax.random.key(0))
    weights = {e: np.asarray(w) for e, w in weights.items()}
    wanted = System(arch, data, ()).truth().velocity(weights)
    for edge, velocity in stats.velocity(weights).items():
        np.testing.assert_allclose(velocity, wanted[edge], atol=1e-13)


# ---- neurons with gates of their own ------------------------------------------------------------


@given(seeds)
def test_a_split_network_computes_what_the_whole_does(seed):
    case = random_case(np.random.default_rng(seed))
    split = split_neurons(case.arch, case.data)
    assert all(np.ndim(g) == 1 for g in split.data.gates.values())
    parts = split.split(case.weights)
    assert {e: w.shape for e, w in parts.items()} == {
        e: (split.arch.sizes[t], split.arch.sizes[s]) for e, (s, t) in split.arch.edges.items()
    }
    outputs = nr.GDLN(split.arch)(parts, split.data)
    for node, wanted in brute_force_outputs(case).items():
        found = np.full_like(wanted, np.nan)
        for name, neurons in split.parts[node]:
            found[:, neurons] = outputs[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    back = split.join(parts)
    assert list(back) == list(case.weights)
    for edge, w in case.weights.items():
        np.testing.assert_array_equal(back[edge], w)


def test_names_of_parts_do_not_collide():
    arch = nr.Architecture(
        {"x": 1, "h": 2, "h_1": 1, "y": 1},
        {"a": ("x", "h"), "b": ("h", "y"), "c": ("x", "h_1"), "d": ("h_1", "y")},
    )
    gates = {"h": [[1, 0], [0, 1]]}
    split = split_neurons(arch, nr.Dataset({"x": [[1.0]] * 2}, {"y": [[1.0]] * 2}, gates=gates))
    assert set(split.arch.sizes) == {"x", "h__1", "h__2", "h_1", "y"}


# ---- errors -------------------------------------------------------------------------------------


def test_too_many_paths_names_their_number():
    layers = {f"h{i}": 1 for i in range(17)}
    names = ["x", *layers, "y"]
    edges = {f"{side}{i}": pair for i, pair in enumerate(pairwise(names)) for side in ("a", "b")}
    arch = nr.Architecture({"x": 1, **layers, "y": 1}, edges)
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    for limit in ({}, {"limit": 2**18 - 1}):
        with pytest.raises(nr.NeuralRaceError, match=r"262.?144"):
            nr.path_statistics(arch, data, **limit)


def test_unknown_paths():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=4)
    stats = nr.path_statistics(arch, data)
    p = stats.paths[0]
    odd = nr.Path(("nowhere",), "x", "y")
    with refuses("nowhere"):
        stats.yx[odd]
    with refuses("nowhere"):
        stats.x[p, odd]
    with refuses("statistics"):
        stats.x[p]
    with refuses("statistics"):
        stats.yx[p, p]


@pytest.mark.parametrize("mixed", [False, True], ids=["sorted", "mixed"])
def test_a_factor_made_in_blocks_is_the_factor(mixed, monkeypatch):
    """Second moments of every class, by hand, and the norm of what no input reaches."""
    monkeypatch.setattr("neuralrace.statistics.factor.BLOCK", 16)
    rng = np.random.default_rng(0)
    n = 150
    which = rng.integers(0, 3, size=n) if mixed else np.repeat([0, 1, 2], n // 3)
    x = {"a": rng.normal(size=(n, 3)), "b": rng.normal(size=(n, 2)), "c": np.zeros((n, 1))}
    x["b"][which == 1] = 7.0  # of one rank, and switched off by its own gate below
    y = {"y": rng.normal(size=(n, 2)), "z": rng.normal(size=(n, 1))}
    gates = {"h": which == 0, "b": np.where(which == 1, 0.0, 2.0)}
    data = nr.Dataset(x, y, gates, sample_weight=rng.uniform(size=n))
    factor = class_factor(data)
    p = np.asarray(data.probability)
    index, left = data.gate_classes().index, 0.0
    for c in range(3):
        rows, mine = factor.row_class == c, index == c
        assert rows.sum() <= 5 < mine.sum()
        shown = {v: a * (data.gates[v] != 0)[:, None] if v in gates else a for v, a in x.items()}
        inputs = np.hstack(list(shown.values()))[mine]
        wanted = np.hstack(list(y.values()))[mine]
        X, Y = (np.hstack([a[rows] for a in f.values()]) for f in (factor.x, factor.y))
        np.testing.assert_allclose(X.T @ X, (inputs.T * p[mine]) @ inputs, atol=1e-13)
        np.testing.assert_allclose(Y.T @ X, (wanted.T * p[mine]) @ inputs, atol=1e-13)
        root = np.sqrt(p[mine])[:, None]
        best = np.linalg.lstsq(root * inputs, root * wanted)[0]
        left += ((root * (wanted - inputs @ best)) ** 2).sum()
        assert (X[:, -1] == 0).all()
    reached = sum((a**2).sum() for a in factor.y.values())
    total = sum((p @ np.asarray(a) ** 2).sum() for a in y.values())
    assert factor.left + reached == pytest.approx(total, rel=1e-12)
    assert factor.left <= left * (1 + 1e-12)
    # where targets are linear in the inputs nothing is left, to rounding
    linear = nr.Dataset(x, {"y": x["a"] @ np.ones((3, 1))}, {"h": which == 0})
    assert class_factor(linear).left < 1e-28


# ---- nodes between the same neighbours ----------------------------------------------------------


def parallel_case(rng):
    """A random graph whose hidden nodes have copies between the same neighbours."""
    case = random_case(rng)
    arch, data = case.arch, case.data
    sizes, edges = dict(arch.sizes), dict(arch.edges)
    gates = {n: g for n, g in data.gates.items() if n in sizes or rng.random() < 0.05}
    for v in arch.hidden:
        for copy in range(int(rng.integers(0, 3))):
            name = f"{v}_copy{copy}"
            sizes[name] = int(rng.integers(1, 4))
            if v in gates:
                gates[name] = rng.normal(size=data.n_samples)
            for e, (source, target) in list(edges.items()):
                if v in (source, target):
                    ends = (name, target) if source == v else (source, name)
                    edges[f"{e}_{name}"] = ends
    arch = nr.Architecture(sizes, edges)
    data = nr.Dataset(data.x, data.y, gates, data.sample_weight)
    shapes = {e: (arch.sizes[t], arch.sizes[s]) for e, (s, t) in arch.edges.items()}
    return arch, data, {e: rng.normal(size=shape) for e, shape in shapes.items()}


def test_joined_nodes_compute_and_learn_the_same():
    joins = 0
    for seed in range(40):
        arch, data, weights = parallel_case(np.random.default_rng(seed))
        one = join_nodes(arch, data.gates)
        if one is None:
            continue
        joins += 1
        assert len(one.arch.sizes) < len(arch.sizes)
        joined = one.join(weights)
        for edge, w in one.split(joined).items():
            np.testing.assert_array_equal(w, weights[edge])
        both = Case(arch, data, weights), Case(one.arch, one.data(data), joined)
        wanted, found = (brute_force_outputs(case) for case in both)
        for node, output in found.items():
            np.testing.assert_allclose(output, wanted[node], rtol=1e-9, atol=1e-9)
        moves = [nr.path_statistics(c.arch, c.data).velocity(c.weights) for c in both]
        for edge, w in one.split(moves[1]).items():
            np.testing.assert_allclose(w, moves[0][edge], rtol=1e-9, atol=1e-9)
    assert joins >= 12


def test_which_nodes_are_joined():
    data = nr.tasks.xor()
    arch, gated = nr.pathways(data, data.one_per_sample(), hidden=3)
    one = join_nodes(arch, gated.gates)
    assert one.arch.sizes == {"x": 2, "sample1": 12, "y": 1} and len(one.arch.edges) == 2
    assert one.data(gated).gates["sample1"].sum(axis=1).tolist() == [3.0] * 4
    assert join_nodes(arch, ["x_sample1", "sample2_y", "sample3"]).arch.sizes == {
        "x": 2, "sample1": 3, "sample2": 3, "sample3": 6, "y": 1
    }  # fmt: skip
    assert join_nodes(nr.Architecture.chain(2, 3, 4, 1)) is None


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_of_the_statistics_is_zero_if_all_is_learned(seed):
    """Against least squares over all samples, with classes that are off and with real gates."""
    rng = np.random.default_rng(seed)
    N, widths = 40, {"a": 3, "b": 2}
    masks = {"p": rng.choice([0.0, 0.3, 1.0, -2.0], N), "q": rng.integers(0, 2, N)}
    for mask in masks.values():
        mask[:8] = 0
    x = {v: rng.normal(size=(N, n)) for v, n in widths.items()}
    base = nr.Dataset(x, {"y": rng.normal(size=(N, 2))}, sample_weight=rng.uniform(0.5, 2, N))
    arch, data = nr.pathways(base, masks, 8, inputs={"q": ("a",)})
    stats = nr.path_statistics(arch, data)
    root = np.sqrt(np.asarray(data.probability))[:, None]
    reads = {"p": ("a", "b"), "q": ("a",)}
    table = np.concatenate([m[:, None] * x[v] for h, m in masks.items() for v in reads[h]], axis=1)
    best = np.linalg.lstsq(root * table, root * base.y["y"])[0]
    least = float(((root * (base.y["y"] - table @ best)) ** 2).sum() / 2)
    weights = {
        e: rng.normal(size=(arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()
    }
    assert least > 0.1
    assert stats.loss(weights) == pytest.approx(nr.GDLN(arch).loss(weights, data) - least)
    learned, at = {}, 0
    for h in masks:  # every pathway copies its inputs, and its last edge is the best map
        width = sum(widths[v] for v in reads[h])
        last = np.zeros((2, 8))
        last[:, :width] = best[at : at + width].T
        learned[f"{h}_y"], row = last, 0
        for v in reads[h]:
            learned[f"{v}_{h}"] = np.eye(8)[:, row : row + widths[v]]
            row += widths[v]
        at += width
    assert nr.GDLN(arch).loss(learned, data) == pytest.approx(least)
    assert stats.loss(learned) < 1e-20
