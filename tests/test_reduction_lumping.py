"""Scalar races as polynomials, and the merging of variables that stay equal."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from evidence.own.cases import random_architecture, random_gate
from neuralrace.reduction.merging import merged
from neuralrace.reduction.polynomial import (
    PolynomialSystem,
    ScalarRace,
    merged_system,
    scalar_race,
)


def random_blocks(seed: int) -> tuple[nr.reduction.Block, ...]:
    """Scalar blocks of a random graph with one neuron per node, gates and real data."""
    rng = np.random.default_rng(seed)
    arch = random_architecture(rng, max_size=1)
    n = 6
    gates = {
        name: random_gate(rng, str(rng.choice(["binary", "real"])), n, 1)
        for name in (*arch.sizes, *arch.edges)
        if rng.integers(4) == 0
    }
    x = {v: rng.normal(size=(n, 1)) for v in arch.inputs}
    y = {v: rng.normal(size=(n, 1)) for v in arch.outputs}
    return nr.reduce(arch, nr.Dataset(x, y, gates)).blocks


def base_values() -> np.ndarray:
    """Singular values of the map that every route of the routing task learns."""
    base = nr.tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))
    return np.linalg.svd(base / 4, compute_uv=False)


def routing_block(M: int, K: int, P: int | None = None, mode: int = 0) -> nr.reduction.Block:
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, K)[0], P=P, hidden=4)
    return nr.reduce(arch, data).blocks[mode]


def merged_from(race: ScalarRace, start: np.ndarray) -> list[list[int]]:
    """The classes that stay equal from these start values."""
    return merged(race, np.unique(start, return_inverse=True)[1])


def class_sizes(classes: list[list[int]]) -> list[int]:
    return sorted(len(members) for members in classes)


def evaluated(system: PolynomialSystem, b: np.ndarray) -> tuple[np.ndarray, float]:
    """The velocity and the loss of the merged equations, monomial by monomial."""
    monomials = np.array(
        [np.prod([v**k for v, k in zip(b, p, strict=True)]) for p in system.powers]
    )
    return system.velocity @ monomials, float(((system.errors @ monomials) ** 2).sum() / 2)


def is_consistent(race: ScalarRace, label: tuple[int, ...], rng: np.random.Generator) -> bool:
    """Whether variables with one label stay equal, wherever they are."""
    for _ in range(3):
        b = rng.uniform(0.5, 1.5, max(label) + 1)[list(label)]
        v = race.velocity(b)
        for k in set(label):
            here = v[np.array(label) == k]
            if np.ptp(here) > 1e-9 * np.abs(v).max():
                return False
    return True


def partitions(n: int) -> list[tuple[int, ...]]:
    """Every partition of n things, as labels."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*p, k) for p in found for k in range(max(p) + 2)]
    return found


# ---- the polynomials are the network ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_velocity_and_loss_are_those_of_the_block(seed):
    """NRR Eq. 10 against automatic differentiation of the block's loss, at any sign."""
    rng = np.random.default_rng(seed)
    blocks = random_blocks(seed)
    assert blocks
    for block in blocks:
        race, net = scalar_race(block), nr.GDLN(block.arch)
        each = merged_system(race, [[i] for i in range(len(race.edges))])
        slope = jax.value_and_grad(net.loss)
        for _ in range(2):
            b = rng.normal(size=len(race.edges))
            weights = {e: jnp.full((1, 1), v) for e, v in zip(race.edges, b, strict=True)}
            loss, gradient = slope(weights, block.data)
            expected = [-float(gradient[e][0, 0]) for e in race.edges]
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(race.velocity(b), expected, atol=1e-11 * scale)
            velocity, value = evaluated(each, b)
            np.testing.assert_allclose(velocity, expected, atol=1e-11 * scale)
            assert value == pytest.approx(float(loss), rel=1e-10)


@pytest.mark.parametrize("seed", range(12, 17))
def test_merged_velocity_is_the_full_one_where_variables_are_equal(seed):
    rng = np.random.default_rng(seed)
    blocks = random_blocks(seed)
    assert blocks
    for block in blocks:
        race = scalar_race(block)
        start = rng.choice([0.3, 0.7], len(race.edges))
        for classes in (merged(race), merged_from(race, start)):
            assert sorted(i for members in classes for i in members) == list(range(len(race.edges)))
            each = merged_system(race, [[i] for i in range(len(race.edges))])
            system = merged_system(race, classes)
            for _ in range(3):
                values = rng.normal(size=len(classes))
                b = np.zeros(len(race.edges))
                for value, members in zip(values, classes, strict=True):
                    b[members] = value
                full = race.velocity(b)
                velocity, loss = evaluated(system, values)
                scale = max(1.0, np.abs(full).max())
                for v, members in zip(velocity, classes, strict=True):
                    np.testing.assert_allclose(full[members], v, atol=1e-10 * scale)
                assert loss == pytest.approx(evaluated(each, b)[1], rel=1e-9)
        for members in merged_from(race, start):
            assert np.ptp(start[members]) == 0


def test_classes_are_the_coarsest_that_stay_equal():
    """Against all partitions of up to six edges."""
    compared, larger = 0, 0
    rng = np.random.default_rng(0)
    for seed in range(60):
        for block in random_blocks(seed):
            if not 2 <= len(block.arch.edges) <= 6:
                continue
            race = scalar_race(block)
            classes = merged(race)
            label = np.zeros(len(race.edges), int)
            for k, members in enumerate(classes):
                label[members] = k
            assert is_consistent(race, tuple(label.tolist()), rng)
            coarsest = min(
                (p for p in partitions(len(race.edges)) if is_consistent(race, p, rng)), key=max
            )
            assert len(classes) == max(coarsest) + 1
            compared += 1
            larger += 1 < len(classes) < len(race.edges)
    assert compared >= 20 and larger >= 3


# ---- routing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", range(4))
def test_routing_merges_to_two_variables(mode):
    """NRR §4: the edge in the middle, and all edges at the ends, with 1 and 1/M of the drive."""
    M, K = 5, 3
    block = routing_block(M, K, mode=mode)
    race = scalar_race(block)
    classes = merged(race)
    assert class_sizes(classes) == [1, 2 * M]
    classes.sort(key=len)  # the middle first
    system = merged_system(race, classes)
    s, d = base_values()[mode], 1 / 4
    assert block.drive == pytest.approx(s / M)  # all M × M pairs of domains side by side
    terms = [
        {tuple(p): c for p, c in zip(system.powers.tolist(), row, strict=True) if abs(c) > 1e-12}
        for row in system.velocity
    ]
    middle, ends = terms
    assert middle == pytest.approx({(0, 2): s, (1, 4): -d})
    assert ends == pytest.approx({(1, 1): s / M, (2, 3): -d / M})


def test_routing_with_other_starts_at_the_two_ends_has_three_classes():
    M = 5
    block = routing_block(M, 3)
    race = scalar_race(block)
    into = np.array([block.arch.edges[e][0] in block.arch.inputs for e in race.edges])
    out = np.array([block.arch.edges[e][1] in block.arch.outputs for e in race.edges])
    start = np.where(into, 0.1, np.where(out, 0.2, 0.3))
    classes = merged_from(race, start)
    assert class_sizes(classes) == [1, M, M]
    start = np.where(into | out, 0.1, 0.3)
    assert class_sizes(merged_from(race, start)) == [1, 2 * M]
    start = np.full(len(race.edges), 0.1)
    assert class_sizes(merged_from(race, start)) == [1, 2 * M]
    start[np.flatnonzero(into)[0]] = 0.4  # one route apart breaks the symmetry of all
    assert len(merged_from(race, start)) > 3


def test_irregular_routes_merge_less():
    routes = [(1, 1), (1, 2), (2, 2), (3, 3), (3, 1), (3, 2)]
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(3, routes=routes)[0], hidden=4)
    race = scalar_race(nr.reduce(arch, data).blocks[0])
    assert len(merged(race)) > 2


@pytest.mark.parametrize(("M", "P"), [(4, 4), (6, 9)])
def test_pathways_shared_by_P_routes(M, P):
    """THEORY: τ dB₁ = (√P/M²) B₂B₁[S − B₂B₁²D], τ dB₂ = (P/M²) B₁²[S − B₂B₁²D]."""
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, M)[0], P=P, hidden=4)
    blocks = nr.reduce(arch, data).blocks
    root = round(np.sqrt(P))
    assert len(blocks) == 4 * (M // root) ** 2
    race = scalar_race(blocks[0])
    classes = sorted(merged(race), key=len)
    assert [len(c) for c in classes] == [1, 2 * root]
    system = merged_system(race, classes)
    s, d = base_values()[0], 1 / 4
    b2, b1 = 0.7, 1.3
    velocity, _ = evaluated(system, np.array([b2, b1]))
    error = s - b2 * b1**2 * d
    assert velocity[0] == pytest.approx(P / M**2 * b1**2 * error)
    assert velocity[1] == pytest.approx(root / M**2 * b2 * b1 * error)


def test_dedicated_pathways_have_one_variable():
    """P = 1: three edges in a row, with equal starts one variable."""
    block = routing_block(3, 2, P=1)
    race = scalar_race(block)
    assert len(race.edges) == 3
    assert class_sizes(merged(race)) == [3]
    assert class_sizes(merged_from(race, np.array([0.1, 0.2, 0.1]))) == [1, 2]


def test_routing_of_many_domains_is_merged_quickly():
    """Cost and answer follow the classes: 400 paths through 41 edges, two variables."""
    race = scalar_race(routing_block(20, 8))
    assert class_sizes(merged(race)) == [1, 40]


# ---- parallel pathways --------------------------------------------------------------------------


def test_equal_pathways_merge_and_unequal_ones_do_not():
    data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [1.5]]})
    arch, data = nr.pathways(data, {"a": None, "b": None, "c": [1.0, 0.0]}, hidden=3)
    (block,) = nr.reduce(arch, data).blocks
    race = scalar_race(block)
    classes = merged(race)
    names = sorted(tuple(sorted(race.edges[i] for i in c)) for c in classes)
    assert names == [("a_y", "b_y", "x_a", "x_b"), ("c_y", "x_c")]


def test_the_solution_keeps_merged_variables_equal():
    """From equal starts, all edges at the ends of routing have one value; from others not."""
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(3, 2)[0], hidden=4)
    race = nr.reduce(arch, data)
    times = np.linspace(0, 3, 4)
    at = race.solve(times=times, start=0.3, learning_rate=0.1).values["variables"]["mode1"]
    block = race.blocks[0]
    ends = [
        e
        for e, st in block.arch.edges.items()
        if set(st) & {*block.arch.inputs, *block.arch.outputs}
    ]
    assert len(ends) == 6
    for one, other in pairwise(ends):
        np.testing.assert_array_equal(at[one], at[other])
    start = race.start(0.3)
    start.weights[0][ends[0]][:] = 0.5
    at = race.solve(times=times, start=start, learning_rate=0.1).values["variables"]["mode1"]
    assert at[ends[0]][0] == 0.5
    assert np.abs(at[ends[0]] - at[ends[1]]).min() > 1e-3
