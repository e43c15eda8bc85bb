"""Races solved without compiling: against closed forms, compiled code and the network itself."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.own.cases import random_case
from neuralrace.reduction import scipy_solver
from neuralrace.reduction import solve as solution
from neuralrace.reduction.merging import block_system
from neuralrace.reduction.scipy_solver import NetworkFlow, PolynomialFlow
from neuralrace.reduction.solve import Request, solve_blocks
from tests.test_errors import refuses

COMMON = nr.tasks.common_and_all_but_one(nr.tasks.contextual(3, items=2), hidden=6)
PAIR = nr.pathways(
    nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [1.0]]}),
    {"common": None, "second": [0, 1]},
    hidden=4,
)
"""Two scalar pathways that overlap: no closed form."""


@pytest.fixture
def nothing_compiled(monkeypatch):
    def refuse(*_):
        raise AssertionError("a program was compiled")

    monkeypatch.setattr(solution, "flow", refuse)
    monkeypatch.setattr(solution, "train", refuse)


@pytest.mark.parametrize(
    ("powers", "start"),
    [(p, b) for p in [(2,), (1, 1)] for b in (0.3, 1e-6, 1e-12)]
    + [(p, b) for p in [(3,), (2, 1)] for b in (0.3, 0.01)],
)
def test_the_solver_follows_closed_forms_out_of_any_start(powers, start):
    """db_k/dt = γ_k (M/b_k)(S − D M): early growth, the fall of the loss, and the end."""
    from tests.test_reduction_closed_form import single_path

    begin = np.full(len(powers), start)
    system = single_path(powers, (1.0, 0.4)[: len(powers)], S=1.3, D=0.9)
    form = solution.mode_form(system, begin, tuple(f"B{k}" for k in range(len(powers))))
    assert form is not None
    half = float(form.time_to(0.5 * form.final))
    times = np.concatenate([half * np.linspace(0, 2, 41), half * np.array([10.0, 1e4])])
    problem = PolynomialFlow(system, begin)
    states = scipy_solver.flowed(problem, times)
    assert states is not None
    np.testing.assert_allclose(problem.losses(states), form.loss(times), atol=1e-8)
    np.testing.assert_allclose(
        np.prod(states ** np.array(powers), axis=1)[:20], form.value(times)[:20], rtol=1e-6
    )


def test_matrix_blocks_follow_their_closed_form_out_of_a_plateau(nothing_compiled):
    race = nr.reduce(*nr.tasks.all_but_one(nr.tasks.contextual(3, items=4), hidden=8))
    form = race.closed_form(1e-12)
    times = np.linspace(0, 2.5 * float(form.time_to_loss(0.05)), 31)
    found = race.solve(times=times, start=1e-12)
    assert found.settings["solvers"] == ["LSODA"]
    assert found.loss[-1] < 1e-3 * found.loss[0]
    np.testing.assert_allclose(found.loss, form.loss(times), atol=1e-8 * found.loss[0])


@pytest.mark.parametrize(("pair", "rate"), [(PAIR, None), (COMMON, 0.05)])
def test_small_and_compiled_solutions_agree(pair, rate, monkeypatch):
    race = nr.reduce(*pair)
    start = race.start(nr.GDLN(race.arch).init(jax.random.key(0), scale=0.02))
    times = np.linspace(0, 30, 31)
    ours = race.solve(times=times, start=start, learning_rate=rate)
    monkeypatch.setattr(solution, "COMPILING", 0.0)
    monkeypatch.setattr(solution, "mode_form", lambda *_: None)
    theirs = race.solve(times=times, start=start, learning_rate=rate)
    assert theirs.settings["solvers"] == ["flow" if rate is None else "train"]
    bound = 1e-8 if rate is None else 1e-12
    for name, edges in theirs.values["variables"].items():
        for edge, w in edges.items():
            np.testing.assert_allclose(ours.values["variables"][name][edge], w, atol=1e-6)
    assert np.abs(ours.loss - theirs.loss).max() < bound * theirs.loss[0]
    assert ours.loss[-1] < 0.9 * ours.loss[0]


def test_the_end_of_a_flow_is_its_end_and_a_saddle_is_not(nothing_compiled):
    """A network at rest on one mode goes on to the second, however late it is."""
    data = nr.Dataset({"x": [[1.0, 0.0], [0.0, 1.0]]}, {"y": [[4.0, 0.0], [0.0, 0.4]]})
    arch = nr.Architecture.chain(2, 2, 2)
    weights = {"W1": np.diag([1.0, 1e-15]), "W2": np.diag([1.0, 1e-15])}
    problem = NetworkFlow(arch, weights, data)
    times = np.array([0.0, 50.0, 120.0, 2000.0, 1e7])
    states = scipy_solver.flowed(problem, times)
    assert states is not None
    losses = problem.losses(states)
    # ½⟨‖y‖²⟩ = 4.04, of which the second mode has 0.04; it grows as e^{0.2 t} from 1e-15
    assert losses[1:3] == pytest.approx([0.04, 0.04], rel=1e-6)
    assert losses[3] < 1e-12 and losses[4] < 1e-12


def test_the_network_in_numpy_is_the_network():
    race = nr.reduce(*COMMON)
    rng = np.random.default_rng(0)
    for block in race.blocks:
        net = nr.GDLN(block.arch)
        weights = {e: rng.normal(size=w.shape) for e, w in block.aligned.items()}
        loss, wanted = float(net.loss(weights, block.data)), net.velocity(weights, block.data)
        for joining in (False, True):
            ours = NetworkFlow(block.arch, weights, block.data, joining=joining)
            velocity = ours.weights(ours.velocity(ours.start))
            for edge, v in wanted.items():
                np.testing.assert_allclose(velocity[edge], v, atol=1e-12)
            assert ours.losses(ours.start[None])[0] == pytest.approx(loss, rel=1e-12)


def test_merged_equations_are_solved_as_scipy_solves_them():
    race = nr.reduce(*PAIR)
    system, _ = block_system(race.blocks[0])
    begin = np.linspace(0.1, 0.4, len(system.parts))
    times = np.linspace(0, 20, 21)
    states = scipy_solver.flowed(PolynomialFlow(system, begin), times)
    wanted = solve_ivp(
        lambda _, b: system.velocity_at(b), (0, 20), begin, "DOP853", times, rtol=1e-12, atol=1e-14
    ).y.T
    np.testing.assert_allclose(states, wanted, atol=1e-9)


def test_large_problems_are_compiled_and_small_ones_are_not(monkeypatch):
    """Judged by the problem alone: no call changes how the next one is solved."""
    arch = nr.Architecture.chain(2, 16, 16, 2)
    race = nr.reduce(arch, nr.Dataset({"x": np.eye(2)}, {"y": np.diag([2.0, 1.0])}))
    start = race.start(nr.GDLN(arch).init(0, scale=0.1))
    times = np.array([0.0, 4.0, 8.0])
    first = race.solve(times=times, start=start)
    for _ in range(3):
        again = race.solve(times=times, start=start)
        assert again.settings == first.settings and np.array_equal(again.loss, first.loss)
    assert first.settings["solvers"] == ["DOP853"]
    monkeypatch.setattr(solution, "COMPILING", 1e6)
    large = race.solve(times=times, start=start)
    assert large.settings["solvers"] == ["flow"]
    np.testing.assert_allclose(large.loss, first.loss, rtol=1e-7)


def test_blocks_of_very_different_sizes_do_not_share_their_tolerances():
    """Two equal matrix blocks side by side, one from a large start and one from a tiny one."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    gate = np.repeat([[1.0, 0.0], [0.0, 1.0]], 4, axis=0)
    shown, wanted = np.concatenate([x, x]), np.concatenate([y, 1.1 * y])
    data = nr.Dataset({"x": shown}, {"y": wanted}, {"h": gate[:, 0], "k": gate[:, 1]})
    arch = nr.Architecture(
        {"x": 2, "h": 4, "k": 4, "y": 2},
        {"xh": ("x", "h"), "xk": ("x", "k"), "hy": ("h", "y"), "ky": ("k", "y")},
    )
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 2 and not any(block.is_scalar for block in race.blocks)
    sizes = (1.0, 1e-15)
    start = nr.reduction.Start(
        tuple(
            {e: size * rng.normal(size=w.shape) for e, w in block.aligned.items()}
            for size, block in zip(sizes, race.blocks, strict=True)
        ),
        None,
        "of two sizes",
    )
    times = np.linspace(0, 200, 81)
    found = solve_blocks(race.blocks, start, Request.of(times), 0.0).values["losses"]
    block = race.blocks[1]
    alone = nr.reduction.Start((start.weights[1],), None, "alone")
    wanted = solve_blocks((block,), alone, Request.of(times), 0.0).values["losses"]
    assert wanted[-1, 0] < 0.5 * wanted[0, 0]
    np.testing.assert_allclose(found[:, 1], wanted[:, 0], atol=1e-8 * wanted[0, 0])


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e-6])
def test_what_is_at_rest_does_not_depend_on_the_units_of_the_variables(ratio):
    """db_k/dt = (M/b_k)(1 − M), M = b₁²b₂²: stable where M = 1, unstable where M is small."""
    from tests.test_reduction_closed_form import single_path

    system = single_path((2, 2), (1.0, 1.0), S=1.0, D=1.0)
    sizes = np.array([ratio, 1 / ratio])
    for level, stable in ((1.0, True), (0.5, False)):
        state = level * sizes
        problem = PolynomialFlow(system, state)
        span = 100 / np.abs(problem.velocity(0.5 * sizes) / sizes).max()  # many growth times
        assert scipy_solver._is_stable(problem, state, np.abs(state), span) == stable


def side_by_side(one, other):
    """Two independent systems as one."""
    from scipy.linalg import block_diag

    tables = ("powers", "velocity", "errors")
    joined = {name: block_diag(getattr(one, name), getattr(other, name)) for name in tables}
    return replace(one, parts=(*one.parts, *other.parts), **joined)


def test_a_slow_variable_beside_a_large_one_is_not_at_rest():
    """One variable has grown by 1e6 and rests; the other grows as db/dt = S b² all the time."""
    from tests.test_reduction_closed_form import single_path

    fast, slow = single_path((1, 1), (1.0, 1.0), 1.0, 1.0), single_path((3,), (1.0,), 1e-4, 1e-4)
    times = np.array([0.0, 40.0, 80.0])
    problem = PolynomialFlow(side_by_side(fast, slow), np.array([1e-6, 1e-6, 1e-3]))
    states = scipy_solver.flowed(problem, times)
    assert states is not None
    np.testing.assert_allclose(states[-1, :2], 1.0, rtol=1e-9)
    np.testing.assert_allclose(states[:, 2], 1 / (1e3 - 1e-4 * times), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_networks_in_numpy_move_as_the_network_does(seed):
    """Random graphs with missing and parallel edges, gates per node, per edge and per neuron."""
    case = random_case(np.random.default_rng(seed))
    net = nr.GDLN(case.arch)
    weights = {e: np.asarray(w, np.float64) for e, w in net.init(seed, scale=1.0).items()}
    wanted = net.velocity(weights, case.data)
    for joining in (False, True):
        flow = NetworkFlow(case.arch, weights, case.data, joining=joining)
        for edge, v in flow.weights(flow.velocity(flow.start)).items():
            np.testing.assert_allclose(v, wanted[edge], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("gating", "contexts"), [("common_and_single", 2), ("common_and_all_but_one", 3)]
)
def test_copies_are_solved_once_and_each_has_the_solution_that_it_has_alone(
    gating, contexts, monkeypatch
):
    made = getattr(nr.tasks, gating)
    race = nr.reduce(*made(nr.tasks.contextual(contexts, items=4), hidden=8))
    times, calls = np.linspace(0, 60, 31), []
    solve = scipy_solver.solve_small
    monkeypatch.setattr(scipy_solver, "solve_small", lambda *a: calls.append(a) or solve(*a))
    together = race.solve(times=times, start=1e-3)
    assert len(calls) == len({block.copy_of for block in race.blocks}) < len(race.blocks)
    assert together.loss[-1] < 0.5 * together.loss[0]
    start = race.start(1e-3)
    for i, block in enumerate(race.blocks):
        seen = race.split.data
        x, y = (
            {v: np.asarray(a) @ block.basis[v] for v, a in field.items() if v in block.basis}
            for field in (seen.x, seen.y)
        )
        names = {*block.arch.sizes, *block.arch.edges}
        gates = {name: gate for name, gate in seen.gates.items() if name in names}
        data = nr.Dataset(x, y, gates, seen.sample_weight)
        flow = NetworkFlow(block.arch, start.weights[i], data)
        found = solve_ivp(
            lambda _, w, flow=flow: flow.velocity(w), (0, times[-1]), flow.start,
            t_eval=times, rtol=1e-10, atol=1e-14, method="DOP853",
        )  # fmt: skip
        losses = flow.losses(found.y.T)
        out = losses[0] - together.values["losses"][0, i]  # targets that no input reaches
        np.testing.assert_allclose(together.values["losses"][:, i], losses - out, atol=1e-7)
        for edge, w in flow.weights(found.y.T).items():
            here = together.values["variables"][block.name][edge]
            np.testing.assert_allclose(here, w, rtol=1e-5, atol=1e-6)


def test_copies_that_start_otherwise_have_their_own_solutions(monkeypatch):
    """Weights that are small beside the samples are compared as closely as these."""
    race = nr.reduce(*nr.tasks.common_and_single(nr.tasks.contextual(contexts=3), hidden=8))
    start, calls, solve = race.start(1e-7), [], scipy_solver.solve_small
    copies = [i for i, block in enumerate(race.blocks) if block.copy_of == race.blocks[-1].copy_of]
    assert len(copies) > 1
    edge = next(iter(start.weights[-1]))
    start.weights[-1][edge] = start.weights[-1][edge] * (1 + 1e-9)
    monkeypatch.setattr(scipy_solver, "solve_small", lambda *a: calls.append(a) or solve(*a))
    race.solve(times=[0.0, 1.0], start=start)
    assert len(calls) == len({block.copy_of for block in race.blocks}) + 1


def test_equal_scalar_races_are_solved_once(monkeypatch):
    """Routing with a pathway for every route: 3 × 2 routes of 4 modes, which differ in 4 ways."""
    race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=3, K=2)[0], P=1))
    times, calls = np.linspace(0, 40, 9), []
    solve = solution._by_equations
    monkeypatch.setattr(solution, "_by_equations", lambda *a: calls.append(a) or solve(*a))
    together = race.solve(times=times, start=0.1)
    distinct = {round(block.drive, 9) for block in race.blocks}
    assert len(race.blocks) == 6 * 4 and len(calls) == len(distinct)
    assert together.loss[-1] < 0.5 * together.loss[0]
    for i, (block, weights) in enumerate(zip(race.blocks, race.start(0.1).weights, strict=True)):
        flow = NetworkFlow(block.arch, weights, block.data)
        wanted = flow.losses(scipy_solver.flowed(flow, times))
        np.testing.assert_allclose(together.values["losses"][:, i], wanted, atol=1e-9)


def test_a_larger_tolerance_takes_fewer_steps_and_is_nearly_as_accurate(monkeypatch):
    race, times, calls = nr.reduce(*COMMON), np.linspace(0, 120, 41), []
    velocity = NetworkFlow.velocity
    monkeypatch.setattr(NetworkFlow, "velocity", lambda *a: calls.append(1) or velocity(*a))
    close = race.solve(times=times, start=1e-5)
    many = len(calls)
    rough = race.solve(times=times, start=1e-5, rtol=1e-8)
    assert len(calls) - many < 0.7 * many
    assert close.loss[-1] < 1e-3 * close.loss[0]
    np.testing.assert_allclose(rough.loss, close.loss, atol=2e-6 * close.loss[0])
    assert not np.array_equal(rough.loss, close.loss)
    assert rough.settings["rtol"] == 1e-8 and "rtol" not in close.settings


@pytest.mark.parametrize("rtol", [0.0, -1e-8, 1.0, 1e-15, np.nan, "small"])
def test_a_tolerance_that_is_none_is_an_error(rtol):
    race = nr.reduce(*PAIR)
    with refuses("rtol"):
        race.solve(times=[0.0, 1.0], start=0.1, rtol=rtol)


def test_compiled_code_has_the_same_tolerance(monkeypatch):
    monkeypatch.setattr(solution, "COMPILING", 0.0)
    race, times = nr.reduce(*PAIR), np.linspace(0, 30, 7)
    found = {rtol: race.solve(times=times, start=1e-3, rtol=rtol).loss for rtol in (None, 1e-4)}
    assert 1e-9 < np.abs(found[1e-4] - found[None]).max() < 1e-2


def test_modes_whose_numbers_agree_are_evaluated_once():
    race = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    form = race.complete_form(0.01)
    assert [count for _, count in form._distinct] == [4]
    np.testing.assert_allclose(form.loss(8.0), sum(m.loss(8.0) for m in form.modes.values()))
    different = nr.reduce(*nr.tasks.common_and_single(nr.tasks.contextual(contexts=2), hidden=8))
    assert different.complete_form(0.01) is None


def many_pathways(seed=0, pathways=60):
    """Random gates on targets with noise: one block of more variables than have a Jacobian."""
    rng = np.random.default_rng(seed)
    data = nr.Dataset({"x": 3 * rng.normal(size=(8, 3))}, {"y": rng.normal(size=(8, 2))})
    gates = {f"p{k}": rng.random(8) < 0.5 for k in range(pathways)}
    return nr.pathways(data, {name: g for name, g in gates.items() if g.any()}, hidden=1)


def test_races_of_many_variables_are_solved_as_the_network_learns(nothing_compiled):
    arch, data = many_pathways()
    race, net = nr.reduce(arch, data), nr.GDLN(arch)
    weights = net.init(0, scale=0.05)
    times = np.array([0.0, 0.5, 1.0, 2.0, 50.0])
    solved = race.solve(times=times, start=race.start(weights))
    assert sum(w.size for w in race.start(weights).weights[0].values()) > scipy_solver.DENSE
    assert solved.settings["solvers"] == ["DOP853"]
    run = nr.flow(net, weights, data, times=times)
    np.testing.assert_allclose(solved.loss, run.loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", ["_lsoda", "_dop853"])
def test_a_solution_whose_loss_rises_is_not_believed(monkeypatch, solver):
    """A solver that says that it succeeded, and whose state has left the flow."""
    right = getattr(scipy_solver, solver)

    def wrong(problem, start, times, *tolerances):
        states = right(problem, start, times, *tolerances)
        states[-1] *= 1.5
        return states

    arch, data = many_pathways() if solver == "_dop853" else COMMON
    race = nr.reduce(arch, data)
    times = np.linspace(0, 20, 11)
    start = race.start(nr.GDLN(arch).init(0, scale=0.05))
    asked = (race.blocks, start, Request.of(times), race.constant)
    believed = solve_blocks(*asked)
    monkeypatch.setattr(scipy_solver, solver, wrong)
    found = solve_blocks(*asked)
    assert "flow" in found.settings["solvers"]
    np.testing.assert_allclose(found.loss, believed.loss, rtol=1e-5, atol=1e-6)
