"""Equations of modes of recurrent networks, as sums over powers of the shared weight."""

import numpy as np
import pytest
import sympy

import neuralrace as nr


def race_of(steps, decays=(0.9, 0.5)):
    data = nr.tasks.sequence_teacher(2, 2, steps, (2.0, 1.0), decays)
    return nr.reduce(nr.Architecture.recurrent(2, 6, 2, steps), data)


def velocities(race, at, start):
    """The right-hand sides of the first mode at these values of W_x, W_h and W_y."""
    values, found = race.coefficients(start)["mode1"], {}
    named = {v.edges: v.name for v in race.variables(start) if v.mode == "mode1"}
    sides = {str(e.lhs.args[1].args[0])[:3]: e.rhs for e in race.equations(start)["mode1"]}
    number = {f"B_{name[1:]}": at[edges[0]] for edges, name in named.items()}
    for edges, name in named.items():
        side = sides[f"B_{name[1:]}"].doit().subs(values)
        functions = side.atoms(sympy.core.function.AppliedUndef)
        found[edges] = float(side.subs({f: number[str(f)[:3]] for f in functions}))
    return found


@pytest.mark.parametrize("steps", [4, 12])
@pytest.mark.parametrize("apart", [False, True])
def test_sums_are_those_of_a_network_of_one_neuron(steps, apart):
    """a' = Σ c b^k e_k, c' = Σ a b^k e_k, b' = Σ k b^(k−1) a c e_k, e_k = s_k − c b^k a."""
    race = race_of(steps)
    start = {"Wx": 0.1, "Wh": 0.2, "Wy": 0.3} if apart else None
    k = np.arange(steps)
    for seed in range(2):
        a, b, c = np.random.default_rng(seed).uniform(0.3, 1.1, 3)
        c = c if apart else a
        found = velocities(race, {"Wx": a, "Wh": b, "Wy": c}, start)
        left = 2 * 0.9**k - c * b**k * a
        ends = {("Wx",): c, ("Wy",): a} if apart else {("Wx", "Wy"): a}
        wanted = {edges: other * (b**k @ left) for edges, other in ends.items()}
        wanted |= {("Wh",): a * c * ((k * b ** (k - 1.0)) @ left)}
        assert found.keys() == wanted.keys()
        for edges, value in wanted.items():
            assert found[edges] == pytest.approx(value, rel=1e-9)


def test_fifty_steps_can_be_read():
    race = race_of(50)
    for equations in race.equations().values():
        for equation in equations:
            assert len(str(equation.rhs)) < 120
            assert equation.rhs.atoms(sympy.Sum)
    seen = {str(n): float(v) for n, v in race.coefficients()["mode1"].items()}
    assert seen["D"] == pytest.approx(1)
    for k in (0, 7, 49):
        assert seen[f"S[{k}]"] == pytest.approx(2 * 0.9**k)
    text = race.latex()
    assert text.count(r"\sum") == 2  # both modes have the same
    assert len(text) < 1500


def test_few_paths_keep_their_letters():
    for each in race_of(3).equations().values():
        assert not any(equation.rhs.atoms(sympy.Sum) for equation in each)


def test_half_times_of_recurrent_modes():
    """From a number, an average and weights: when three quarters of a mode's loss are gone."""
    race = race_of(6, decays=(0.9, 0.2))
    arch = race.arch
    rng = np.random.default_rng(0)
    weights = {n: 1e-3 * rng.normal(size=shape) for n, shape in arch.shapes.items()}
    for start in (0.01, nr.contests.expected_start(race, 1e-3), weights):
        table = race.modes(start)
        times = np.linspace(0, 30, 30001)
        losses = race.solve(times=times, start=start).values["losses"]
        for name, half, final in zip(table.names, table.half_time, table.final, strict=True):
            loss = losses[:, [b.name for b in race.blocks].index(name)]
            assert half == pytest.approx(times[np.argmax(loss <= loss[0] / 4)], rel=1e-3)
            assert final == pytest.approx({"mode1": 2, "mode2": 1}[name], rel=1e-3)
    assert race.modes(scale=1e-3).names == ("mode1", "mode2")


def test_the_half_time_after_a_delay_is_not_known_from_random_weights():
    late = nr.tasks.delayed_report(1, steps=3)
    race = nr.reduce(nr.Architecture.recurrent(1, 6, 1, 3), late)
    weights = {n: np.full(shape, 1e-3) for n, shape in race.arch.shapes.items()}
    weights["Wh"] = np.random.default_rng(0).normal(size=(6, 6)) * 1e-3
    assert np.isnan(race.modes(weights).half_time).all()
    assert np.isfinite(race.modes(0.1).half_time).all()  # one path: a closed form
