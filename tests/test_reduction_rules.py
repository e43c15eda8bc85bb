"""The race under weight decay, momentum, rates of edges and other optimizers."""

import jax
import numpy as np
import optax
import pytest
import sympy
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.own.rules import (
    REFUSED,
    RULES,
    STRENGTHS,
    gap_to_training,
    is_refused,
    modes_of,
    momentum_gap,
    random_race,
)
from neuralrace.reduction import Property, keeps_blocks
from tests.test_errors import refuses


@pytest.fixture(scope="module")
def races():
    found = (random_race(seed) for seed in range(30))
    return [race for race in found if race is not None][:3]


@pytest.mark.parametrize("name", RULES)
def test_random_graphs_learn_as_their_blocks_do(races, name):
    """Every rule on one of two graphs; the evidence asks more."""
    race, rule = races[list(RULES).index(name) % 2], dict(RULES[name])
    if "rates" in rule:
        rule["rates"] = {e: r for e, r in rule["rates"].items() if e in race.arch.edges}
    if name in REFUSED:
        assert is_refused(race, **rule)
    else:
        assert gap_to_training(race, **rule) < 1e-8


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_momentum_is_that_of_a_loop_on_the_full_network(decay):
    race = modes_of()
    weights = race.weights(race.solve(times=[0, 1], start=0.1), 0)
    assert momentum_gap(decay, weights, 200) < 1e-12


def test_shared_hidden_neurons_are_followed_together_under_any_rule():
    race = modes_of((3.0, 1.0), hidden=5)
    weights = nr.GDLN(race.arch).init(0, scale=0.1)
    rules = {"optimizer": nr.dynamics.muon(0.013)}, {"rates": {"W1": 0.3}, "learning_rate": 0.05}
    for rule in rules:
        run = nr.train(nr.GDLN(race.arch), weights, race.data, steps=80, **rule)
        solved = race.solve(times=run.time, start=weights, **rule)
        np.testing.assert_allclose(solved.loss, run.loss, atol=1e-9 * run.loss[0])


# ---- which rules keep the blocks -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "lacks"),
    [
        (optax.sgd(0.1, momentum=0.9, nesterov=True), ()),
        (optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.1)), ()),
        (nr.dynamics.muon(0.1, momentum=0.9), ()),
        (optax.adam(0.1), (Property.ROTATIONS,)),
        (optax.chain(optax.clip_by_global_norm(100.0), optax.sgd(0.1)), (Property.BLOCKS,)),
        (optax.scale_by_trust_ratio(), (Property.BLOCKS,)),
        (optax.clip_by_block_rms(10.0), (Property.BLOCKS, Property.PADDING)),
        (optax.contrib.muon(0.1), (Property.BLOCKS, Property.PADDING)),
    ],
)
def test_which_property_a_rule_lacks(rule, lacks):
    check = keeps_blocks(rule)
    assert check.fails == lacks or set(check.fails) == set(lacks)
    assert check.holds == (not lacks)
    assert list(check.frame()["property"]) == list(Property)


def test_what_is_refused():
    race = modes_of((2.0, 1.0), hidden=4)
    with refuses("optimizer"):
        race.solve(times=[0, 5], start=0.1, optimizer=optax.adam(0.1))
    with refuses("momentum"):
        race.solve(times=[0, 5], start=0.1, momentum=0.9)
    with refuses("weight_decay"):
        race.solve(times=[0, 5], start=0.1, weight_decay=-0.1)
    with refuses("rates"):
        race.solve(times=[0, 5], start=0.1, rates={"W7": 2.0})


def test_optax_descent_is_descent_with_the_same_clock():
    race = modes_of((2.0, 1.0), hidden=4)
    times = np.linspace(0, 5, 6)
    rule = optax.chain(optax.add_decayed_weights(0.2), optax.sgd(0.05, momentum=0.5))
    one = race.solve(times=times, start=0.1, optimizer=rule)
    two = race.solve(times=times, start=0.1, learning_rate=0.05, momentum=0.5, weight_decay=0.2)
    np.testing.assert_allclose(one.loss, two.loss, rtol=1e-12)
    np.testing.assert_allclose(one.time, two.time)
    assert one.clock == two.clock == "approximate flow"
    assert one.settings["weight_decay"] == two.settings["weight_decay"] == 0.2


# ---- weight decay in closed form -----------------------------------------------------------------


def test_modes_under_decay_end_at_s_minus_decay():
    race = modes_of()
    form = race.closed_form(1e-2, weight_decay=0.3)
    np.testing.assert_allclose(
        [m.final for m in form.modes.values()], [3.7, 2.7, 1.7, 1.2, 0.7, 0.2], rtol=1e-12
    )
    mode, s = form.modes["mode3"], STRENGTHS[2]
    times = np.linspace(0, 5, 11)
    b = solve_ivp(
        lambda t, b: (s - 0.3 - b**2) * b, (0, 5), [1e-2], t_eval=times, rtol=1e-11, atol=1e-13
    ).y[0]
    np.testing.assert_allclose(mode.value(times), b**2, rtol=1e-8)
    half = float(mode.time_to(0.85))
    assert half == pytest.approx(np.log(1.7 / 1e-4 - 1) / (2 * 1.7))
    table = race.modes(1e-2, weight_decay=0.3)
    np.testing.assert_allclose(table.final, form_finals(form))
    assert table.half_time[2] == pytest.approx(half)


def form_finals(form):
    return [mode.final for mode in form.modes.values()]


def test_a_mode_that_decay_outweighs_ends_at_zero():
    race = modes_of((2.0, 0.2), hidden=4)
    assert race.closed_form(0.1, weight_decay=0.3).without == ("mode2",)
    assert race.modes(0.1, weight_decay=0.3).final.tolist() == pytest.approx([1.7, 0.0])
    end = race.solve(times=[0, 100], start=0.1, weight_decay=0.3)
    assert abs(end.values["pathways"]["mode2"]["W1-W2"][-1]) < 1e-8


@pytest.mark.parametrize("which", [1, 2])
def test_flow_with_decay_and_rates_is_that_of_the_network(races, which):
    race = races[which]
    weights = race.weights(race.solve(times=[0, 1e-3], start=0.3), 0)
    edge = next(iter(race.arch.edges))
    law = {"weight_decay": 0.1, "rates": {edge: 0.5}}
    times = np.linspace(0, 4, 5)
    run = nr.flow(nr.GDLN(race.arch), weights, race.data, times=times, **law)
    solved = race.solve(times=times, start=0.3, **law)
    np.testing.assert_allclose(solved.loss, run.loss, atol=1e-7 * run.loss[0])


def test_equations_and_conserved_quantities_name_the_decay():
    race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))
    decay, t = sympy.Symbol("lambda", positive=True), sympy.Symbol("t", real=True)
    plain, decayed = race.equations(), race.equations(weight_decay=0.2)
    for mode, equations in plain.items():
        for one, two in zip(equations, decayed[mode], strict=True):
            b = one.lhs.atoms(sympy.Function).pop()
            assert sympy.simplify(two.rhs - one.rhs + decay * b) == 0
    assert race.coefficients(weight_decay=0.2)["mode1"][decay] == 0.2
    solved = race.solve(times=np.linspace(0, 9, 4), start={"in1": 1.0} | dict.fromkeys(
        [e for e in race.arch.edges if e != "in1"], 0.1), weight_decay=0.2)  # fmt: skip
    start = {"in1": 1.0} | dict.fromkeys([e for e in race.arch.edges if e != "in1"], 0.1)
    kept = race.conserved(start, weight_decay=0.2)["mode1"]
    variables = race.variables(start)
    values = {
        sympy.Symbol(f"B_{v.name[1:]}", real=True): solved.values["variables"]["mode1"][v.edges[0]]
        for v in variables
        if v.mode == "mode1"
    }
    assert kept
    tau = sympy.Symbol("tau", positive=True)
    for form in kept:
        numbers = sympy.lambdify([*values, t, decay, tau], form)(
            *(abs(w[:, 0, 0]) for w in values.values()), solved.time, 0.2, 1.0
        )
        np.testing.assert_allclose(numbers, numbers[0], rtol=1e-6, atol=1e-8)


def test_muon_moves_every_mode_at_one_speed():
    race, rate = modes_of(), 1e-2
    solved = race.solve(times=np.arange(220), start=1e-3, optimizer=nr.dynamics.muon(rate))
    for name, s in zip((b.name for b in race.blocks), STRENGTHS, strict=True):
        strength = solved.values["pathways"][name]["W1-W2"]
        time = rate * np.argmax(strength >= 0.9 * s)
        assert time == pytest.approx(np.sqrt(0.9 * s), abs=1.5 * rate)


def test_the_polar_factor_is_exact():
    rng = np.random.default_rng(0)
    gradient = {"W": rng.normal(size=(4, 3)) @ np.diag([1.0, 1e-5, 0.0])}
    rule = nr.dynamics.muon(0.5)
    with jax.enable_x64(True):
        moved = np.asarray(rule.update(gradient, rule.init(gradient))[0]["W"])
    np.testing.assert_allclose(np.linalg.svd(moved)[1], [0.5, 0.5, 0.0], atol=1e-9)
    assert (np.sum(moved * gradient["W"])) == pytest.approx(
        -0.5 * np.linalg.svd(gradient["W"])[1].sum()
    )


@pytest.mark.parametrize(("decay", "until"), [(3.0, 1000.0), (0.8, 3000.0)])
def test_weights_that_decay_to_nothing_are_followed_to_the_end(decay, until):
    """Two modes of s = 1.5 and .5, d = .5: those that decay outweighs end at 0."""
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    ends = np.maximum((np.array([1.5, 0.5]) - decay) / 0.5, 0.0)
    wanted = (((np.array([3.0, 1.0]) - ends) ** 2) / 4).sum()
    loss = race.solve(times=[0, until], start=1e-3, weight_decay=decay).loss
    assert loss[-1] == pytest.approx(wanted, rel=1e-8)


def test_muon_leaves_directions_without_a_gradient_alone():
    """Weights in float32 learn inputs of two directions of six."""
    rng = np.random.default_rng(1)
    x = np.float32(rng.normal(size=(50, 2)) @ rng.normal(size=(2, 6)))
    data = nr.Dataset({"x": x}, {"y": x[:, :2]})
    net = nr.GDLN(nr.Architecture.chain(6, 20, 2))
    begin = {e: np.float32(w) for e, w in net.init(0, scale=1e-3).items()}
    rule = nr.dynamics.muon(1e-3)
    end = nr.train(net, begin, data, optimizer=rule, steps=300).final
    aside = np.linalg.svd(x)[2][2:]
    moved = np.asarray(end["W1"], float) - begin["W1"]
    assert np.linalg.norm(moved @ aside.T) < 1e-4 * np.linalg.norm(moved)
