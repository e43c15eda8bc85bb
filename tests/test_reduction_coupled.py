"""Leading-order times of coupled pathways, against the equations solved by SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr


def late(xx, yx, yy, hidden=50):
    """One input of one feature per modality, each with a hidden node of its own."""
    names = [f"m{i}" for i in range(len(xx))]
    moments = {(a, b): [[xx[i, j]]] for i, a in enumerate(names) for j, b in enumerate(names)}
    data = nr.Dataset.from_moments(
        moments, {("y", a): [[yx[i]]] for i, a in enumerate(names)}, [[yy]]
    )
    sizes = dict.fromkeys(names, 1) | {f"h{a}": hidden for a in names} | {"y": 1}
    edges = {f"{a}_in": (a, f"h{a}") for a in names} | {f"{a}_out": (f"h{a}", "y") for a in names}
    return nr.Architecture(sizes, edges), data


def crossings(xx, yx, start, levels, end):
    """When each strength reaches half its level, of ȧ_i = 2 a_i (s_i − Σ_j d_ij a_j)."""

    def velocity(t, logs):
        return 2 * np.abs(yx) - 2 * (sign[:, None] * xx * sign) @ np.exp(np.minimum(logs, 5.0))

    sign = np.sign(yx)
    times = np.linspace(0, end, 40_001)
    done = solve_ivp(
        velocity, (0, end), np.full(len(yx), np.log(start)), t_eval=times, rtol=1e-9, atol=1e-9
    )
    found = []
    for i, level in levels:
        later = int(np.argmax(done.y[i] >= np.log(abs(level) / 2)))
        at = slice(later - 1, later + 1)
        found.append(np.interp(np.log(abs(level) / 2), done.y[i, at], times[at]))
    return found


def test_random_modalities_come_in_the_order_and_near_the_times_that_are_predicted():
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(25):
        count = int(rng.integers(2, 5))
        root = rng.normal(size=(count, 8)) * rng.uniform(0.5, 2.0, (count, 1))
        xx = root @ root.T / 8
        teacher = rng.uniform(0.3, 1.0, count)
        yx, yy = xx @ teacher, teacher @ xx @ teacher + 0.1
        if (yx <= 0.05).any():
            continue
        arch, data = late(xx, yx, yy)
        found = nr.reduce(arch, data).modes(1e-10).stages
        at = [int(stage.path[1]) for stage in found]
        assert len(set(at)) == len(at)
        levels = [(i, stage.level) for i, stage in zip(at, found, strict=True)]
        exact = crossings(xx, yx, 1e-20, levels, 1.3 * found[-1].time)
        for stage, time in zip(found, exact, strict=True):
            assert stage.solved == pytest.approx(time, rel=2e-3)
            assert stage.time == pytest.approx(time, rel=0.05)
            compared += 1
    assert compared > 40


def test_two_modalities_have_the_ratio_of_theory():
    for correlation in (0.0, 0.2, 0.5, -0.3):
        cross = 2 * correlation
        xx, yx = np.array([[4.0, cross], [cross, 1.0]]), np.array([4 + cross, 1 + cross])
        arch, data = late(xx, yx, 5 + 2 * cross)
        table = nr.reduce(arch, data).modes(1e-30)
        if correlation == 0.0:
            assert table.stages == ()
            ratio = table.half_time[1] / table.half_time[0]
        else:
            ratio = table.stages[1].time / table.stages[0].time
        expected = 1 + (yx[0] - yx[1]) / (yx[1] - yx[0] / 4 * cross)
        assert ratio == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_errors_fall_with_the_start_at_every_depth(depth):
    nodes = {v: [f"{v}{k}" for k in range(1, depth)] for v in "ab"}
    chains = {v: [v, *nodes[v], "y"] for v in "ab"}
    edges = {f"{s}_{t}": (s, t) for chain in chains.values() for s, t in pairwise(chain)}
    sizes = {"a": 1, "b": 1, "y": 1} | {n: 5 for each in nodes.values() for n in each}
    data = nr.Dataset.from_moments(
        {"a": [[4.0]], "b": [[1.0]], ("a", "b"): [[1.0]]},
        {("y", "a"): [[5.0]], ("y", "b"): [[2.0]]},
        [[7.0]],
    )
    race = nr.reduce(nr.Architecture(sizes, edges), data)
    worst = [max(abs(stage.error) for stage in race.modes(b).stages) for b in (3e-2, 3e-3, 3e-4)]
    assert worst[0] > worst[1] > worst[2] - 1e-3 and worst[2] < 0.02


def test_the_contest_says_why_one_comes_later():
    xx, yx = np.array([[4.0, 1.0], [1.0, 1.0]]), np.array([5.0, 2.0])
    candidate = late(xx, yx, 7.0)
    ids = [said.id for said in nr.contest({"late": candidate}, scale=1e-3).sentences()]
    assert "stages" in ids
    table = nr.reduce(*candidate).modes(scale=1e-3)
    assert "stages" in [said.id for said in table.sentences()]
    alone = nr.Architecture.chain(1, 4, 1)
    plain = nr.Dataset.from_moments([[1.0]], [[0.5]])
    assert nr.reduce(alone, plain).modes(1e-3).stages == ()


@pytest.mark.parametrize("shared", [0.5, 1.0])
def test_pathways_that_are_alike_are_learned_at_once(shared):
    """Mirror images, and two that see the same input: both rest at 1 / (1 + correlation)."""
    arch, data = late(np.array([[1, shared], [shared, 1]]), np.ones(2), 4.0)
    stages = nr.reduce(arch, data).modes(1e-8).stages
    assert [stage.path[1] for stage in stages] == ["0", "1"]
    assert stages[0].time == stages[1].time
    for stage in stages:
        assert stage.level == pytest.approx(1 / (1 + shared))
        assert abs(stage.error) < 0.05


def test_a_stage_that_the_solver_does_not_reach_has_no_error():
    """One input is a millionth of the other."""
    arch, data = late(np.array([[4, 1e-6], [1e-6, 1e-12]]), np.array([5, 2e-6]), 8.0)
    stages = nr.reduce(arch, data).modes(1e-3).stages
    assert [stage.path[1] for stage in stages] == ["0", "1"]
    assert np.isnan(stages[1].solved) or abs(stages[1].error) < 0.01


def test_stages_are_those_of_plain_gradient_flow():
    arch, data = late(np.array([[4.0, 1], [1, 1]]), np.array([5.0, 2]), 8.0)
    race = nr.reduce(arch, data)
    assert race.modes(1e-3).stages and not race.modes(1e-3, weight_decay=0.5).stages
