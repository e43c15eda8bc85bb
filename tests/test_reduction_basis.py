"""Shared bases: all statistics of all paths in block form, against `path_statistics`."""

from collections import Counter
from itertools import chain, repeat

import jax
import jax.flatten_util
import numpy as np
import pytest

import neuralrace as nr
from evidence.own.cases import random_case
from evidence.own.reduction import found_sizes, planted
from neuralrace.reduction import basis
from tests.test_errors import refuses

TASKS = {
    "hierarchy": lambda: (
        nr.Architecture.chain(8, 20, 15),
        nr.Dataset({"x": np.eye(8)}, {"y": nr.tasks.hierarchy().T}),
    ),
    "xor": lambda: nr.tasks.xor_pathways(nr.tasks.extended_xor(0.7)),
    "linear": lambda: nr.tasks.linear_pathways(nr.tasks.extended_xor(0.7)),
    "routing": lambda: nr.tasks.routing_pathways(nr.tasks.routing(4, 2)[0]),
    "routing with distractors": lambda: nr.tasks.routing_pathways(
        nr.tasks.routing(3, 2, distractors=True, key=1)[0]
    ),
    "per context": lambda: nr.tasks.pathway_per_context(nr.tasks.contextual_classification()),
    "one pathway": lambda: nr.tasks.single_pathway(nr.tasks.contextual_classification(order=3)),
    "all but one": lambda: nr.tasks.common_and_all_but_one(nr.tasks.contextual(3)),
    "single contexts": lambda: nr.tasks.common_and_single(nr.tasks.contextual(3, items=4)),
    "all subsets": lambda: nr.tasks.all_subsets(nr.tasks.contextual(3, items=4)),
}


def breach(race: nr.Race) -> float:
    """The largest part of a statistic that leads out of a block, relative to its kind.

    For every block: what Σ^x(j,p), for two paths with one target, makes of the block's directions
    at s(p) must lie in its directions at s(j), and must be zero where path j is not in the block.
    And the blocks together must hold all of Σ^yx(p).
    """
    stats = nr.path_statistics(race.split.arch, race.split.data)
    sizes = {"yx": [1e-300], "x": [1e-300]}
    found = {"yx": [0.0], "x": [0.0]}

    def inside(path: nr.Path) -> list[nr.reduction.Block]:
        return [b for b in race.blocks if set(path.edges) <= set(b.arch.edges)]

    def projector(block: nr.reduction.Block, node: str) -> np.ndarray:
        return block.basis[node] @ block.basis[node].T

    for p in stats.paths:
        yx = stats.yx[p]
        held = sum(
            (projector(b, p.target) @ yx @ projector(b, p.source) for b in inside(p)),
            np.zeros_like(yx),
        )
        sizes["yx"].append(float(np.abs(yx).max()))
        found["yx"].append(float(np.abs(yx - held).max()))
        for j in stats.paths:
            if j.target != p.target:
                continue
            x = stats.x[j, p]
            sizes["x"].append(float(np.abs(x).max()))
            for b in inside(p):
                seen = x @ b.basis[p.source]
                if set(j.edges) <= set(b.arch.edges):
                    seen = seen - projector(b, j.source) @ seen
                found["x"].append(float(np.abs(seen).max()))
    return max(max(found[kind]) / max(sizes[kind]) for kind in found)


def is_orthonormal(race: nr.Race) -> bool:
    """Whether the directions are orthonormal, over all blocks that share an edge."""
    for a in race.blocks:
        for b in race.blocks:
            if not set(a.arch.edges) & set(b.arch.edges):
                continue
            for node in set(a.basis) & set(b.basis):
                left, right = a.basis[node], b.basis[node]
                wanted = np.eye(left.shape[1]) if a is b else 0.0
                if np.abs(left.T @ right - wanted).max() > 1e-10:
                    return False
    return True


def dims(race: nr.Race) -> Counter:
    return Counter(tuple(sorted(b.dims.items())) for b in race.blocks)


def rotation(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


# ---- every statistic in block form --------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_tasks_of_the_papers_are_in_block_form(task):
    race = nr.reduce(*TASKS[task]())
    assert breach(race) < 1e-8
    assert is_orthonormal(race)
    assert race.is_exact and race.reduces and len(race.blocks) > 0


@pytest.mark.parametrize("seed", range(6))
def test_random_gated_networks_are_in_block_form(seed):
    """Any graph and gates, a neuron too; what does not reduce must still be held whole."""
    case = random_case(np.random.default_rng(seed), samples=9)
    race = nr.reduce(case.arch, case.data)
    assert breach(race) < 1e-8
    assert is_orthonormal(race)


def test_planted_blocks_are_found_and_in_block_form():
    rng, cases, repeated = np.random.default_rng(21), 0, 0
    while cases < 5:
        arch, data, blocks = planted(rng)
        race = nr.reduce(arch, data)
        assert breach(race) < 1e-8
        assert is_orthonormal(race)
        cases += 1
        assert found_sizes(race) == Counter(blocks)
        assert len(race.blocks) == len(blocks)
        repeated += max(Counter(blocks).values()) > 1
    assert repeated


def test_planted_blocks_under_noise():
    rng, cases = np.random.default_rng(22), 0
    while cases < 4:
        arch, data, blocks = planted(rng, 1e-6)
        race = nr.reduce(arch, data, tolerance=1e-4)
        cases += 1
        assert found_sizes(race) == Counter(blocks)
        assert 1e-9 < race.residual <= 1e-4
        assert not race.is_exact
        strict = nr.reduce(arch, data)  # to all digits, the noise joins everything
        assert len(strict.blocks) < len(race.blocks)


def test_blocks_do_not_depend_on_the_seed_of_the_mixtures():
    """Other mixtures of the same statistics, the same blocks."""
    arch, data = TASKS["all but one"]()
    mixer = basis.Mixer(arch, nr.path_statistics(arch, data).factor)
    found = [basis.shared_basis(mixer, 1e-8, seed=seed) for seed in range(3)]
    counted = [
        Counter(tuple(sorted((v, d.shape[1]) for v, d in f.of(k).items())) for k in range(f.count))
        for f in found
    ]
    assert counted[0] == counted[1] == counted[2]


def test_pathways_that_are_never_on_together_have_bases_of_their_own():
    """Neither is diagonal in the other's, and they need not be: Σ^x between them is zero."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    on = np.arange(40) < 20
    arch, data = nr.pathways(nr.Dataset({"x": x}, {"y": y}), {"a": on, "b": ~on}, hidden=6)
    race = nr.reduce(arch, data)
    assert [b.dims for b in race.blocks] == [{"x": 3, "y": 2}] * 2
    assert breach(race) < 1e-8


# ---- degenerate values, sizes, names ------------------------------------------------------------


def test_degenerate_singular_values_of_the_hierarchy():
    arch, data = TASKS["hierarchy"]()
    race = nr.reduce(arch, data)
    expected = np.linalg.svd(nr.tasks.hierarchy() / 8, compute_uv=False)
    assert len(set(expected.round(8))) < 8  # there are equal ones
    np.testing.assert_allclose([b.drive for b in race.blocks], expected, atol=1e-12)
    assert race.is_decoupled
    assert [b.name for b in race.blocks] == [f"mode{i}" for i in range(1, 9)]
    for block in race.blocks:
        u, v = block.basis["y"][:, 0], block.basis["x"][:, 0]
        assert u @ (nr.tasks.hierarchy() / 8) @ v == pytest.approx(block.drive)
        assert block.dims == {"x": 1, "y": 1}
        assert dict(block.arch.sizes) == {"x": 1, "h": 1, "y": 1}


def test_wholly_degenerate():
    """y = x: every basis is as good as any other, and one must still be found."""
    rng = np.random.default_rng(3)
    data = nr.Dataset({"x": np.eye(6)}, {"y": rotation(rng, 6)})
    race = nr.reduce(nr.Architecture.chain(6, 6, 6), data)
    assert len(race.blocks) == 6 and race.is_decoupled
    assert breach(race) < 1e-8


def test_generic_data_does_not_reduce():
    """Correlated inputs: Σ^x is not diagonal in the singular vectors of Σ^yx."""
    rng = np.random.default_rng(4)
    data = nr.Dataset({"x": rng.normal(size=(9, 4))}, {"y": rng.normal(size=(9, 3))})
    race = nr.reduce(nr.Architecture.chain(4, 6, 3), data)
    (block,) = race.blocks
    assert block.dims == {"x": 4, "y": 3}
    assert not race.reduces and not race.is_decoupled and race.is_exact
    assert "does not reduce" in str(race) and "exact" in str(race)
    assert race.failures and "Assumption 2.1.1" in str(race) and "fails" in str(race)
    assert "Σ^" in race.failures[0] and "'x'" in race.failures[0]


def test_matrix_blocks_say_what_fails():
    race = nr.reduce(*TASKS["all but one"]())
    assert race.reduces and not race.is_decoupled
    assert len(race.failures) == len(race.blocks)
    assert race.failures[0].startswith("block1: ")
    assert str(race).startswith("8 independent blocks, none of them a scalar mode; exact")
    decoupled = nr.reduce(*TASKS["routing"]())
    assert decoupled.failures == () and "Assumption" not in str(decoupled)


def test_contexts_have_one_block_an_item_mode():
    """MHS §5, THEORY: 7 blocks 1 → C, and the constant item mode with the contexts."""
    for C in (3, 4):
        race = nr.reduce(*nr.tasks.common_and_all_but_one(nr.tasks.contextual(C)))
        alone, joined = {"item": 1, "y": C}, {"item": 1, "context": C, "y": C}
        assert dims(race) == Counter(
            {tuple(sorted(alone.items())): 7, tuple(sorted(joined.items())): 1}
        )


def test_contexts_with_different_structures():
    base = nr.tasks.contextual(structures=("hierarchy", "ring", "crossed"))
    race = nr.reduce(*nr.tasks.common_and_all_but_one(base))
    large, small = sorted(race.blocks, key=lambda b: -sum(b.dims.values()))
    assert large.dims == {"item": 7, "context": 3, "y": 21}
    assert small.dims == {"item": 1, "y": 3}
    assert race.silent == {"item": 0, "context": 0, "y": 36}


# ---- parts that learn by themselves -------------------------------------------------------------


def test_xor_pathways_are_four_scalar_parts():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 4 and race.is_decoupled
    assert {b.arch.hidden for b in race.blocks} == {(h,) for h in arch.hidden}
    for block in race.blocks:
        sample = int(block.arch.hidden[0].removeprefix("sample")) - 1
        shown = np.asarray(data.x["x"])[sample]
        assert abs(block.basis["x"][:, 0] @ shown) == pytest.approx(np.linalg.norm(shown))
        assert block.drive == pytest.approx(np.sqrt(2) / 4)


def test_contextual_classification_per_context():
    """NRR Eqs. 26–29: Σ^yx of pathway c is e_c/6 and Σ^x is I/6 there, 0 between pathways."""
    arch, data = nr.tasks.pathway_per_context(nr.tasks.contextual_classification())
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 2 and race.is_decoupled
    for block in race.blocks:
        context = int(block.arch.hidden[0].removeprefix("only"))
        np.testing.assert_allclose(
            np.abs(block.basis["x"][:, 0]), np.eye(2)[context - 1], atol=1e-12
        )
        assert block.drive == pytest.approx(1 / 6)
        assert np.mean(np.asarray(block.data.x["x"]) ** 2) == pytest.approx(1 / 6)
    assert race.silent == {"x": 0, "y": 0}


def test_contextual_classification_with_one_pathway():
    """NRR Eqs. 24–25: Σ^yx = (1, 1)/6, Σ^x = I/3; half of the variance cannot be learned."""
    race = nr.reduce(*nr.tasks.single_pathway(nr.tasks.contextual_classification()))
    (block,) = race.blocks
    assert block.is_scalar and race.reduces
    assert block.drive == pytest.approx(np.sqrt(2) / 6)
    np.testing.assert_allclose(np.abs(block.basis["x"][:, 0]), np.sqrt([0.5, 0.5]))
    assert race.silent == {"x": 1, "y": 0}
    assert race.constant == pytest.approx(1 / 12)
    assert "loss outside all blocks: 0.0833" in str(race)


def test_parts_are_joined_by_correlated_inputs_alone():
    u = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    v = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    arch = nr.Architecture({"u": 1, "v": 1, "y": 1}, {"uy": ("u", "y"), "vy": ("v", "y")})
    apart = nr.reduce(arch, nr.Dataset({"u": u, "v": v}, {"y": u + 2 * v}))
    assert sorted(tuple(b.dims) for b in apart.blocks) == [("u", "y"), ("v", "y")]
    together = nr.reduce(arch, nr.Dataset({"u": u, "v": v + 0.1 * u}, {"y": u + 2 * v}))
    assert [set(b.dims) for b in together.blocks] == [{"u", "v", "y"}]


# ---- many unknowns, silence, tolerance ----------------------------------------------------------


def two_paths(first: np.ndarray, second: np.ndarray) -> tuple[nr.Architecture, nr.Dataset]:
    """White inputs, and two pathways with different gates that see two different Σ^yx."""
    n = len(first)
    x = np.concatenate([np.eye(n), np.eye(n)])
    base = nr.Dataset({"x": x}, {"y": np.concatenate([first.T, second.T])})
    return nr.pathways(base, {"a": None, "b": np.repeat([0.0, 1.0], n)}, hidden=2 * n)


def test_a_rotation_between_two_pathways_makes_blocks_of_two():
    """Σ^yx(1) = 1 + P and Σ^yx(2) = P, a cyclic shift: a frequency is a plane, and no line in it
    is left alone. Only frequency 0 and, for even n, n/2 are scalar."""
    for n in (7, 8):
        rng = np.random.default_rng(n)
        left, right, shift = rotation(rng, n), rotation(rng, n), np.roll(np.eye(n), 1, axis=0)
        race = nr.reduce(*two_paths(left @ right, left @ shift @ right))
        sizes = Counter((b.dims["x"], b.dims["y"]) for b in race.blocks)
        scalar = 1 + (n % 2 == 0)
        assert sizes == Counter({(1, 1): scalar, (2, 2): (n - scalar) // 2})
        assert breach(race) < 1e-8 and is_orthonormal(race)


def test_many_identical_copies_of_a_matrix_block():
    """One block of 2 → 3, five times over, behind rotations: found five times."""
    rng = np.random.default_rng(11)
    x, y, copies = rng.normal(size=(7, 2)), rng.normal(size=(7, 3)), np.eye(5)
    data = nr.Dataset(
        {"x": np.kron(copies, x) @ rotation(rng, 10)}, {"y": np.kron(copies, y) @ rotation(rng, 15)}
    )
    race = nr.reduce(nr.Architecture.chain(10, 8, 15), data)
    assert [b.dims for b in race.blocks] == [{"x": 2, "y": 2}] * 5
    assert breach(race) < 1e-8 and is_orthonormal(race)


def test_nearly_equal_singular_values_are_told_apart():
    """White inputs have scalar modes however close their strengths are."""
    rng, n = np.random.default_rng(12), 6
    strengths = 1 + np.array([0.0, 1e-6, 2e-6, 1e-3, 0.5, 0.5])
    y = rotation(rng, n) @ np.diag(strengths) @ rotation(rng, n)
    race = nr.reduce(nr.Architecture.chain(n, n, n), nr.Dataset({"x": np.eye(n)}, {"y": y}))
    assert len(race.blocks) == n and race.is_decoupled and race.is_exact
    np.testing.assert_allclose(
        [n * b.drive for b in race.blocks], np.sort(strengths)[::-1], rtol=1e-12
    )


def test_silent_directions_are_those_that_no_statistic_touches():
    race = nr.reduce(*TASKS["all but one"]())
    stats = nr.path_statistics(race.arch, race.data)
    heard = {
        v: np.linalg.matrix_rank(
            np.concatenate([stats.yx[p] for p in stats.paths if p.target == v], axis=1)
        )
        for v in race.arch.outputs
    }
    assert race.silent == {"item": 0, "context": 0, "y": 60 - heard["y"]} and heard["y"] == 24
    assert "silent directions: y 36" in str(race)


def test_rank_deficient_inputs():
    """Inputs that span 2 of 5 directions; the rest is silent and the blocks are exact."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(7, 2)) @ rng.normal(size=(2, 5))
    y = rng.normal(size=(7, 3))
    race = nr.reduce(nr.Architecture.chain(5, 6, 3), nr.Dataset({"x": x}, {"y": y}))
    assert race.silent == {"x": 3, "y": 1}
    assert breach(race) < 1e-8
    q = np.linalg.qr(x)[0][:, :2]
    unlearnable = ((y - q @ (q.T @ y)) ** 2).sum() / 14
    assert race.constant == pytest.approx(unlearnable)


def weakly_coupled(epsilon: float) -> tuple[nr.Architecture, nr.Dataset]:
    """Σ^yx = diag(2, 1)/2 and Σ^x = (1, ε; ε, 1)/2, so that ε alone joins the modes."""
    x = np.linalg.cholesky(np.array([[1.0, epsilon], [epsilon, 1.0]])).T
    y = np.linalg.solve(x.T, np.diag([2.0, 1.0]))
    return nr.Architecture.chain(2, 6, 2), nr.Dataset({"x": x}, {"y": y})


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2])
def test_residual_is_the_coupling_that_was_dropped(epsilon):
    arch, data = weakly_coupled(epsilon)
    exact, loose = nr.reduce(arch, data), nr.reduce(arch, data, tolerance=10 * epsilon)
    assert not exact.reduces and exact.residual < 1e-8
    assert len(loose.blocks) == 2 and loose.is_decoupled and not loose.is_exact
    assert 0.2 * epsilon < loose.residual <= 2 * epsilon
    assert breach(loose) == pytest.approx(epsilon, rel=0.9)
    assert f"approximate: couplings up to {loose.residual:.1e} dropped" in str(loose)
    assert loose.tolerance == 10 * epsilon


def test_couplings_above_the_tolerance_are_kept():
    arch, data = weakly_coupled(1e-2)
    race = nr.reduce(arch, data, tolerance=1e-3)
    assert not race.reduces and race.is_exact


@pytest.mark.parametrize("tolerance", [0.0, -1e-8, 1.0, 2.0, float("nan"), float("inf")])
def test_bad_tolerance(tolerance):
    arch, data = weakly_coupled(0.1)
    with refuses("tolerance"):
        nr.reduce(arch, data, tolerance=tolerance)


def test_data_that_do_not_fit_the_network():
    _, data = weakly_coupled(0.1)
    with refuses("x"):
        nr.reduce(nr.Architecture.chain(3, 6, 2), data)


# ---- gates of neurons, thousands of gate classes ------------------------------------------------


def test_gates_of_neurons_are_split_first():
    """Neurons with gates of their own are pathways under another name."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    left, right = np.arange(8) < 5, np.arange(8) >= 5
    gates = np.stack([left, right, left, right, right], axis=1).astype(float)
    whole = nr.reduce(nr.Architecture.chain(3, 5, 2), nr.Dataset({"x": x}, {"y": y}, {"h": gates}))
    arch, data = nr.pathways(
        nr.Dataset({"x": x}, {"y": y}), {"left": left, "right": right}, hidden=3
    )
    paths = nr.reduce(arch, data)
    assert sorted(n for v, n in whole.split.arch.sizes.items() if v.startswith("h")) == [2, 3]
    assert dims(whole) == dims(paths)
    np.testing.assert_allclose([b.drive for b in whole.blocks], [b.drive for b in paths.blocks])
    assert breach(whole) < 1e-8


def test_thousands_of_gate_classes_that_share_a_basis():
    """A real gate for every sample; commuting data reduce to modes as ever."""
    rng, n = np.random.default_rng(7), 3000
    left, right = rotation(rng, 3), rotation(rng, 3)
    item = np.tile(np.arange(3), n // 3)
    x, y = np.eye(3)[item] @ right.T, (np.eye(3)[item] * [3.0, 2.0, 1.0]) @ left.T
    gate = rng.uniform(0.5, 1.5, n)
    race = nr.reduce(nr.Architecture.chain(3, 4, 3), nr.Dataset({"x": x}, {"y": y}, {"h": gate}))
    assert len(race.blocks) == 3 and race.is_decoupled
    expected = sorted(
        (np.array([3.0, 2.0, 1.0])[k] * gate[item == k].sum() / n for k in range(3)), reverse=True
    )
    np.testing.assert_allclose([b.drive for b in race.blocks], expected)
    assert breach(race) < 1e-8


def test_thousands_of_gate_classes_that_share_none():
    rng, n = np.random.default_rng(8), 3000
    data = nr.Dataset({"x": rng.normal(size=(n, 3))}, {"y": rng.normal(size=(n, 2))})
    arch, data = nr.pathways(data, {f"p{i}": rng.normal(size=n) for i in range(4)}, hidden=3)
    race = nr.reduce(arch, data)
    assert not race.reduces
    assert "does not reduce" in str(race)
    assert breach(race) < 1e-8


# ---- closed outputs, empty inputs, gates that cancel ---------------------------------------------


def test_an_output_that_no_open_path_reaches():
    arch = nr.Architecture(
        {"x": 2, "h": 4, "y": 2, "z": 1},
        {"xh": ("x", "h"), "hy": ("h", "y"), "hz": ("h", "z")},
    )
    data = nr.Dataset(
        {"x": np.eye(2)}, {"y": np.diag([2.0, 1.0]), "z": np.ones((2, 1))}, {"hz": np.zeros(2)}
    )
    race = nr.reduce(arch, data)
    assert race.is_decoupled and len(race.blocks) == 2
    assert race.constant == pytest.approx(0.5)


def test_inputs_that_show_nothing():
    data = nr.Dataset({"x": np.zeros((4, 3))}, {"y": np.ones((4, 2))})
    race = nr.reduce(nr.Architecture.chain(3, 4, 2), data)
    assert race.blocks == () and race.constant == pytest.approx(1.0)
    np.testing.assert_allclose(race.solve(times=[0.0, 1.0], start=0.1).loss, 1.0)


def test_failure_names_the_statistic_that_fails():
    """One Σ^yx and one Σ^x: each has singular vectors; they are not those of the other."""
    rng = np.random.default_rng(4)
    data = nr.Dataset({"x": rng.normal(size=(9, 4))}, {"y": rng.normal(size=(9, 3))})
    (failure,) = nr.reduce(nr.Architecture.chain(4, 6, 3), data).failures
    off = float(failure.split("off by ")[1].split()[0].rstrip(")"))
    assert off > 1e-3, failure


def test_failure_with_uncorrelated_inputs():
    rng = np.random.default_rng(0)
    none, one = np.zeros((2, 2)), np.eye(2)
    data = nr.Dataset(
        {"u": np.r_[one, none], "v": np.r_[none, one]}, {"y": rng.normal(size=(4, 2))}
    )
    arch = nr.Architecture(
        {"u": 2, "v": 2, "h": 5, "y": 2}, {"uh": ("u", "h"), "vh": ("v", "h"), "hy": ("h", "y")}
    )
    assert "Assumption 2.1.1" in str(nr.reduce(arch, data))


def test_couplings_dropped_between_parts_are_in_the_residual():
    u = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    v = np.array([[1.0], [-1.0], [1.0], [-1.0]]) + 0.02 * u
    arch = nr.Architecture({"u": 1, "v": 1, "y": 1}, {"uy": ("u", "y"), "vy": ("v", "y")})
    race = nr.reduce(arch, nr.Dataset({"u": u, "v": v}, {"y": u + 2 * v}), tolerance=0.05)
    assert len(race.blocks) == 2
    assert race.residual > 1e-3 and not race.is_exact
    assert "approximate" in str(race)


def test_pathways_that_are_gated_against_each_other():
    """Gates 1 and −1: the sum of path gates is zero, what can be learned is not."""
    arch = nr.Architecture({"x": 1, "y": 1}, {"a": ("x", "y"), "b": ("x", "y")})
    data = nr.Dataset(
        {"x": [[1.0], [2.0]]}, {"y": [[1.0], [2.0]]}, {"a": [1.0, 1.0], "b": [-1.0, -1.0]}
    )
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 1 and race.blocks[0].drive == pytest.approx(2.5)


def test_of_equally_fine_bases_the_one_that_drops_least_is_taken(monkeypatch):
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])})
    turn = lambda a: np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    tried = [{"x": turn(a), "y": turn(a)} for a in (0.1, 1e-3, 0.05, 0.1, 0.1)]
    left = chain(tried, repeat(tried[1]))  # couplings of a third of the angle
    monkeypatch.setattr(basis, "aligned", lambda *_: next(left))
    monkeypatch.setattr(basis, "polished", lambda mixer, draws, directions, block: directions)
    race = nr.reduce(nr.Architecture.chain(2, 4, 2), data, tolerance=0.2)
    assert len(race.blocks) == 2
    assert 1e-4 < race.residual < 2e-3


def test_polishing_finds_the_least_that_must_be_dropped():
    """Two modes joined by ε: turned by 30 ε they drop 30 ε, polished about ε."""
    arch, data = weakly_coupled(1e-4)
    race = nr.reduce(arch, data, tolerance=0.02)
    mixer = basis.Mixer(arch, nr.path_statistics(arch, data).factor)
    draws = [mixer.draw(np.random.default_rng(0))]
    wrong = np.array([[1.0, -3e-3], [3e-3, 1.0]]) / np.sqrt(1 + 9e-6)
    turned = {"x": np.eye(2), "y": wrong}
    better = basis.polished(mixer, draws, turned, {"x": np.arange(2), "y": np.arange(2)})

    def dropped(directions: dict) -> float:
        found = basis._couplings(mixer.seen_in(directions), draws).values()
        return max(float(np.abs(m[~np.eye(2, dtype=bool)]).max()) for m in found)

    assert dropped(turned) > 1e-3
    assert dropped(better) < 2e-4
    assert race.residual == pytest.approx(dropped(better), rel=1.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("two modes", "2 independent blocks, all of them scalar modes; exact"),
        ("one mode", "1 independent block, a scalar mode; exact"),
        ("mixed", "2 independent blocks, 1 of them a scalar mode; exact"),
    ],
)
def test_the_head_of_a_printed_race_is_grammatical(name, words):
    x = np.random.default_rng(0).normal(size=(6, 2))
    on = np.array([1, 1, 0, 0, 1, 1])
    base = nr.Dataset({"x": x}, {"y": x @ [[1.0, 0.5], [-0.3, 2.0]]})
    arch, data = {
        "two modes": lambda: (nr.Architecture.chain(2, 3, 2), eye_task([2.0, 1.0])),
        "one mode": lambda: (nr.Architecture.chain(2, 3, 2), eye_task([2.0, 0.0])),
        "mixed": lambda: with_a_scalar_pathway(base, on),
    }[name]()
    assert str(nr.reduce(arch, data)).startswith(words)


def eye_task(strengths):
    return nr.Dataset({"x": np.eye(2)}, {"y": np.diag(strengths)})


def with_a_scalar_pathway(base, on):
    """A network of one matrix block beside an independent chain of one mode."""
    arch, data = nr.pathways(base, {"all": None, "some": on}, hidden=4)
    sizes = dict(arch.sizes) | {"u": 1, "g": 2, "v": 1}
    edges = dict(arch.edges) | {"ug": ("u", "g"), "gv": ("g", "v")}
    u = np.arange(1.0, 7.0)[:, None]
    whole = nr.Dataset(dict(data.x) | {"u": u}, dict(data.y) | {"v": u}, dict(data.gates))
    return nr.Architecture(sizes, edges), whole


def test_blocks_that_never_settle_are_not_called_exact(monkeypatch):
    """After the last round the blocks are checked once more, and the result says what it found."""
    arch, data = TASKS["all but one"]()
    monkeypatch.setattr(basis, "_largest_dropped", lambda *_: 0.5)
    monkeypatch.setattr(basis, "MAX_ROUNDS", 1)
    race = nr.reduce(arch, data)
    assert not race.is_exact and race.residual >= 0.5
    assert "not settled" in str(race)


# ---- drive and growth rate ----------------------------------------------------------------------


def fastest_growth(arch: nr.Architecture, data: nr.Dataset) -> float:
    """The largest eigenvalue of the flow linearised at zero weights, by autodiff."""
    zero = {e: np.zeros((arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()}
    flat, shaped = jax.flatten_util.ravel_pytree(zero)
    slopes = jax.jit(jax.hessian(lambda w: -nr.GDLN(arch).loss(shaped(w), data)))(flat)
    return max(0.0, float(np.linalg.eigvalsh(slopes)[-1]))


@pytest.mark.parametrize("seed", range(4))
def test_growth_rate_is_that_of_the_linearised_flow(seed):
    """Random graphs with skips, and real gates on nodes and edges."""
    case = random_case(np.random.default_rng(seed))
    race = nr.reduce(case.arch, case.data)
    rates = [block.growth_rate for block in race.blocks]
    assert max(rates, default=0.0) == pytest.approx(fastest_growth(case.arch, case.data), abs=1e-9)


@pytest.mark.parametrize(
    ("edges", "drive", "rate"),
    [
        ({"a": "xh", "b": "hy"}, 3.0, 3.0),
        ({"a": "xh", "b": "hy", "c": "hy"}, 6.0, 3 * np.sqrt(2)),
        ({"a": "xh", "b": "hy", "c": "hk", "d": "ky"}, 3.0, 3.0),
        ({"a": "xh", "b": "hk", "c": "ky"}, 3.0, 0.0),
        ({"a": "xh", "b": "hk", "c": "hk", "d": "ky"}, 6.0, 0.0),
        ({"a": "xy"}, 3.0, 0.0),
    ],
)
def test_drive_and_growth_rate_of_paths_that_share_edges(edges, drive, rate):
    ends = {e: (s, t) for e, (s, t) in edges.items()}
    arch = nr.Architecture({v: 1 for v in "xhky" if any(v in e for e in ends.values())}, ends)
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[3.0]]})
    race = nr.reduce(arch, data)
    (block,) = race.blocks
    assert fastest_growth(arch, data) == pytest.approx(rate, abs=1e-12)
    assert block.growth_rate == pytest.approx(rate) and block.drive == pytest.approx(drive)
    if race.closed_form(0.1).is_complete:  # the drive is the s of the closed form
        assert pytest.approx(drive) == race.closed_form(0.1).modes[block.name].race.S
    entrant = nr.contest({"a": race}, start=0.01).entrants["a"]
    assert (entrant.strength, entrant.growth_rate) == (block.drive, block.growth_rate)
