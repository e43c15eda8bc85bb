"""Learning from rewards with several teaching signals: agents, trials, strategies."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.behaviour import (
    Agent,
    EpsilonGreedy,
    Softmax,
    correct,
    decision_task,
    deep_agent,
    rank_correlation,
    sensitivity,
    shallow_agent,
    stationary_points,
    strategies,
    train_by_trials,
)
from tests.test_errors import refuses, says

ARCH = nr.Architecture(
    {"s": 2, "one": 1, "h": 3, "a": 2, "b": 2},
    {"sh": ("s", "h"), "ha": ("h", "a"), "sa": ("s", "a"), "ob": ("one", "b")},
)
LOSSES = {"total": ["a", "b"], "a": ["a"], "b": ["b"]}
TRAINED = {"sh": "total", "ha": "a", "sa": "total", "ob": "b"}


def task(paid=1.0):
    rng = np.random.default_rng(0)
    reward = paid * np.array([[1, 0], [0, 1], [0.5, 0.2]])
    return nr.Dataset(
        {"s": rng.normal(size=(3, 2)), "one": np.ones((3, 1))},
        {"a": reward, "b": reward},
        sample_weight=[0.5, 0.3, 0.2],
    )


def by_enumeration(agent, weights, data):
    """Average learning, by going through every stimulus, choice and reward."""
    w = {e: np.asarray(v) for e, v in weights.items()}
    moved = {e: np.zeros_like(v) for e, v in w.items()}
    rates, decay = dict(agent.rates), dict(agent.decay)
    for n, c, paid in itertools.product(range(3), range(2), (0, 1)):
        s, one = data.x["s"][n], data.x["one"][n]
        h = w["sh"] @ s
        q = {"a": w["ha"] @ h + w["sa"] @ s, "b": w["ob"] @ one}
        values = q["a"] + q["b"]
        pi = np.exp(5 * values) / np.exp(5 * values).sum()
        p = data.y["a"][n, c]
        often = data.probability[n] * pi[c] * (p if paid else 1 - p)
        delta = {"total": paid - values[c], "a": paid - q["a"][c], "b": paid - q["b"][c]}
        chosen = np.eye(2)[c]
        moved["sh"] += often * delta["total"] * np.outer(w["ha"][c], s)
        moved["ha"] += often * delta["a"] * np.outer(chosen, h)
        moved["sa"] += often * delta["total"] * np.outer(chosen, s)
        moved["ob"] += often * delta["b"] * np.outer(chosen, one)
    return {e: rates[e] * (moved[e] - decay[e] * w[e]) for e in w}


def test_average_learning_is_the_sum_over_stimuli_choices_and_rewards():
    agent = Agent(ARCH, LOSSES, TRAINED, rates={"sh": 0.3}, decay={"ha": 0.2, "ob": 0.1})
    weights = agent.init(0, scale=0.7)
    found = agent.velocity(weights, task())
    for edge, wanted in by_enumeration(agent, weights, task()).items():
        np.testing.assert_allclose(found[edge], wanted, atol=1e-13)


def test_trials_average_to_the_velocity():
    agent, data = Agent(ARCH, LOSSES, TRAINED, decay=0.1), task()
    weights = agent.init(1, scale=0.7)
    keys = jax.random.split(jax.random.key(0), 40_000)
    steps = jax.vmap(lambda k: agent.trial(weights, data, 1.0, k)[1])(keys)
    wanted = agent.velocity(weights, data)
    for edge, each in steps.items():
        error = np.std(each, axis=0) / np.sqrt(len(keys))
        assert (np.abs(np.mean(each, axis=0) - wanted[edge]) <= 5 * error + 1e-12).all()


def test_only_the_choice_taken_learns():
    agent, data = Agent(ARCH, LOSSES, TRAINED), task()
    step = agent.trial(agent.init(0), data, 1.0, jax.random.key(3))[1]
    rows = np.flatnonzero(np.abs(np.asarray(step["ob"])).sum(axis=1))
    assert len(rows) == 1
    assert (np.asarray(step["ha"])[1 - rows[0]] == 0).all()


def test_one_signal_and_a_fixed_policy_is_the_gradient_of_the_loss():
    """With random choices the loss does not depend on the policy: learning is gradient flow."""
    agent = Agent(ARCH, LOSSES, dict.fromkeys(ARCH.edges, "total"), Softmax(0.0))
    weights, data = agent.init(0, scale=0.5), task()
    slope = jax.grad(lambda w: agent.loss(w, data))(weights)
    for edge, moved in agent.velocity(weights, data).items():
        np.testing.assert_allclose(moved, -slope[edge], atol=1e-14)


def test_the_flow_is_the_limit_of_small_average_steps():
    agent, data = deep_agent(decay=0.01), decision_task()
    start = agent.init(0, scale=0.3)
    flow = nr.flow(agent, start, data, times=[0, 5.0], record={"choices": agent.choices})
    gaps = []
    for rate in (0.1, 0.05):
        steps = nr.train(agent, start, data, learning_rate=rate, steps=round(5 / rate))
        gaps.append(max(float(np.abs(steps.final[e] - flow.final[e]).max()) for e in flow.final))
    assert gaps[0] < 0.05
    assert 1.8 < gaps[0] / gaps[1] < 2.2
    assert flow.values["choices"].shape == (2, 8, 2)


@pytest.mark.slow
def test_animals_are_reproducible_and_start_as_members_of_an_ensemble_do():
    agent, data = deep_agent(), decision_task()
    options = {"key": 3, "learning_rate": 0.1, "trials": 50, "record_every": 25}
    run = train_by_trials(agent, data, animals=3, scale=0.2, **options)
    again = train_by_trials(agent, data, animals=3, scale=0.2, **options)
    np.testing.assert_array_equal(run.loss, again.loss)
    assert len(np.unique(run.loss[:, -1])) == 3
    many = nr.flow_ensemble(agent, data, key=3, seeds=3, scale=0.2, times=[0, 1])
    np.testing.assert_allclose(run.loss[:, 0], many.loss[:, 0], rtol=1e-12)
    assert run.axes["animal"].tolist() == [0, 1, 2]
    assert run.time.tolist() == [0, 2.5, 5.0]


def test_recording_does_not_change_the_trials():
    agent, data = deep_agent(), decision_task()
    options = {"key": 0, "learning_rate": 0.1, "trials": 20, "animals": 2}
    each = train_by_trials(agent, data, **options, record_every=1)
    few = train_by_trials(agent, data, **options, record_every=10)
    np.testing.assert_allclose(each.loss[:, ::10], few.loss, rtol=1e-12)
    for edge in each.final:
        np.testing.assert_allclose(each.final[edge], few.final[edge], rtol=1e-12)


def test_an_agent_survives_a_file(tmp_path):
    agent, data = deep_agent(policy=EpsilonGreedy(0.2), rates={"see_left": 0.5}), decision_task()
    run = train_by_trials(agent, data, key=0, learning_rate=0.1, trials=10, animals=2)
    again = nr.load(run.save(tmp_path / "run.nc"))
    assert again.net == agent
    assert hash(again.net) == hash(agent)
    assert again.net != deep_agent()


# ---- the task and its strategies ----------------------------------------------------------------


def test_the_task_shows_one_side_and_rewards_it():
    data = decision_task((0.2, 0.8), left=0.7, reliability=0.9)
    assert (data.x["left"] * data.x["right"] == 0).all()
    shown = data.x["left"] > 0
    np.testing.assert_allclose(data.y["q_stim"], 0.9 * np.hstack([shown, ~shown]))
    np.testing.assert_allclose(data.probability[shown.ravel()].sum(), 0.7)


def psychometric(left, right):
    """Choices that are correct with these probabilities, on contrasts .5 and 1 of each side."""
    p = np.array([*left, *(1 - np.array(right))])
    return np.stack([p, 1 - p], axis=-1)


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ((0.5, 0.5), (0.5, 0.5), "naive"),
        ((0.9, 0.9), (0.1, 0.1), "naive"),
        ((0.5, 0.9), (0.7, 0.7), "left"),
        ((0.5, 0.5), (0.6, 0.95), "right"),
        ((0.5, 0.7), (0.5, 0.7), "balanced"),
        ((0.8, 1.0), (0.8, 1.0), "expert"),
        ((0.99, 1.0), (0.98, 1.0), "expert"),
        ((0.95, 1.0), (0.7, 0.99), "expert"),
        ((0.8, 1.0), (0.5, 0.7), "balanced"),
    ],
)
def test_strategies_by_hand(left, right, name):
    data, choices = decision_task((0.5, 1.0)), psychometric(left, right)
    assert strategies(choices, data) == name
    np.testing.assert_allclose(correct(choices, data), [*left, *right])
    np.testing.assert_allclose(sensitivity(choices, data)["left"], left[1] - left[0])


def test_use_is_measured_against_contrast_zero_where_it_is_shown():
    """Right at all contrasts of the left, and guessing right without a stimulus."""
    data = decision_task((0.0, 0.5, 1.0))
    assert (data.x["left"][[0, 3]] == 0).all() and (data.x["right"][[0, 3]] == 0).all()
    p_left = np.array([0.3, 0.9, 0.95, 0.3, 0.3, 0.3])
    choices = np.stack([p_left, 1 - p_left], axis=-1)
    found = sensitivity(choices, data)
    np.testing.assert_allclose([found["left"], found["right"]], [0.65, 0.0], atol=1e-12)
    assert strategies(choices, data) == "left"
    seen = decision_task((0.5, 1.0))
    assert strategies(choices[[1, 2, 4, 5]], seen) == "naive"  # the lowest contrast is clear
    np.testing.assert_allclose(correct(choices, data), [0.3, 0.9, 0.95, 0.7, 0.7, 0.7])


def test_experts_need_not_guess_contrast_zero():
    p_left = np.array([0.5, 0.9, 0.95, 0.5, 0.1, 0.05])
    choices = np.stack([p_left, 1 - p_left], axis=-1)
    assert strategies(choices, decision_task((0.0, 0.5, 1.0)), expert=0.9) == "expert"


def test_a_trial_without_a_side_is_the_lowest_contrast_of_both():
    """A task of one's own, in which either choice is rewarded half of the time at contrast 0."""
    reward = np.array([[0.5, 0.5], [1, 0], [0, 1]])
    data = nr.Dataset(
        {"x": [[0.0], [-1.0], [1.0]]},
        {"q": reward},
        labels={"side": ["none", "left", "right"], "contrast": [0.0, 1.0, 1.0]},
    )
    choices = np.array([[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]])
    np.testing.assert_allclose(correct(choices, data), [1, 0.7, 0.9])
    found = sensitivity(choices, data)
    np.testing.assert_allclose([found["left"], found["right"]], [0.1, 0.5], atol=1e-12)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [1, 0, 3, 2, 4]])
def test_stimuli_of_one_contrast_are_averaged_whatever_their_order(order):
    reward = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1]])
    side = np.array(["left", "left", "left", "right", "right"])
    data = nr.Dataset(
        {"x": np.eye(5)[order]},
        {"q": reward[order]},
        labels={"side": side[order], "contrast": np.array([1, 1, 0.5, 0.5, 1])[order]},
        sample_weight=np.array([3.0, 1, 2, 2, 2])[order],
    )
    p_left = np.array([0.9, 0.1, 0.5, 0.4, 0.4])[order]
    found = sensitivity(np.stack([p_left, 1 - p_left], axis=-1), data)
    np.testing.assert_allclose(found["left"], (3 * 0.9 + 0.1) / 4 - 0.5)
    np.testing.assert_allclose(found["right"], 0, atol=1e-12)


def test_rank_correlation_is_that_of_scipy_and_its_interval_covers():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    early = rng.normal(size=200)
    late = early + rng.normal(size=200)
    found = rank_correlation(early, late.round(1))
    assert abs(found.value - spearmanr(early, late.round(1)).statistic) < 1e-10
    assert found.low < found.value < found.high
    assert 0.03 < found.high - found.low < 0.3
    assert rank_correlation(early, np.ones(200)).value == 0
    null = [rank_correlation(*rng.normal(size=(2, 60)), resamples=300) for _ in range(40)]
    assert sum(c.low <= 0 <= c.high for c in null) >= 33


# ---- errors -------------------------------------------------------------------------------------


def test_edges_need_a_loss():
    with refuses("losses"):
        Agent(ARCH, LOSSES, {e: n for e, n in TRAINED.items() if e != "sa"})
    with refuses("trained_by"):
        Agent(ARCH, LOSSES, TRAINED | {"sa": "totl"})
    with refuses("trained_by"):
        Agent(ARCH, LOSSES, TRAINED | {"sx": "total"})
    with refuses("trained_by"):
        Agent(ARCH, LOSSES, TRAINED | {"ob": "a"})


def test_losses_need_a_reward():
    for nodes in ([], ["h"], ["a", "a"]):
        with refuses("losses"):
            Agent(ARCH, LOSSES | {"total": nodes}, TRAINED)
    agent = Agent(ARCH, LOSSES, TRAINED)
    with says("no choice is ever rewarded", got="0 for every", wanted="at least one"):
        nr.flow(agent, agent.init(0), task(0.0), times=[1.0])
    with says("rewards must be probabilities", got="to 2", wanted="from 0 to 1"):
        nr.flow(agent, agent.init(0), task(2.0), times=[1.0])
    other = task()
    mixed = nr.Dataset(other.x, {"a": other.y["a"], "b": 1 - other.y["b"]})
    with refuses("b"):
        train_by_trials(agent, mixed, key=0, learning_rate=0.1, trials=1)


@pytest.mark.parametrize(
    ("policy", "what", "got"),
    [
        (lambda q: q, "not a distribution", "a probability of -30"),
        (lambda q: 0.4 + 0 * q, "not a distribution", "a sum of 0.8"),
        (lambda q: jax.nn.softmax(q.ravel()), "not a distribution", "shape (14,)"),
        (lambda q: 0.5 + q / 20 * jnp.array([1, -1]), "not a distribution", "a probability of"),
        (lambda q: jnp.sqrt(q + 2) / jnp.sqrt(q + 2) / 2, "not a distribution", "NaN"),
        (lambda q: q @ q, "cannot be evaluated", "TypeError"),
        ("softmax", "must be a function", "softmax"),
    ],
)
def test_policies_must_be_distributions(policy, what, got):
    with says(what, got=got, wanted="sum 1", fix="Softmax"):
        Agent(ARCH, LOSSES, TRAINED, policy)


def test_stimuli_must_occur():
    agent = Agent(ARCH, LOSSES, TRAINED)
    never = nr.Dataset(task().x, task().y, sample_weight=[0.5, 0.0, 0.5])
    with refuses("data"):
        nr.flow(agent, agent.init(0), never, times=[1.0])
    for left in (0.0, 1.0):
        with refuses("left"):
            decision_task(left=left)


@pytest.mark.parametrize(
    "contrasts", [0.0, (0.5, 1.5), (-0.5, 1.0), (0.5, 0.5), (0.0, 0.0, 1.0), (), np.nan]
)
def test_contrasts_out_of_range(contrasts):
    with refuses("contrasts"):
        decision_task(contrasts)


def test_rates_that_diverge():
    agent, data = deep_agent(), decision_task()
    with pytest.raises(nr.StoppedError) as caught:
        train_by_trials(agent, data, key=0, learning_rate=50.0, trials=200, animals=3, scale=1.0)
    assert "too large" in caught.value.what
    assert "3 of 3 animals" in caught.value.what
    assert "below 50" in caught.value.fix
    assert np.isfinite(caught.value.trajectory.loss[:, 0]).all()
    with refuses("see_left"):
        deep_agent(rates={"see_left": -1})
    with refuses("decay"):
        deep_agent(decay={"see": 0.1})


def test_an_agent_has_losses_of_its_own():
    agent, data = Agent(ARCH, LOSSES, TRAINED), task()
    with refuses("loss"):
        agent.loss(agent.init(0), data, "cross_entropy")
    with refuses("loss"):
        nr.train(
            agent, agent.init(0), data, learning_rate=0.1, steps=1,
            loss=lambda outputs, targets: jnp.sum(outputs["a"], axis=1),
        )  # fmt: skip


def test_a_layer_with_rate_zero_stays():
    agent, data = deep_agent(rates={"see_left": 0.0}), decision_task()
    start = agent.init(0, scale=0.5)
    run = nr.flow(agent, start, data, times=[5.0])
    np.testing.assert_array_equal(run.final["see_left"], start["see_left"])
    assert np.abs(run.final["see_right"] - start["see_right"]).max() > 1e-3


def test_other_bad_input():
    with refuses("sizes"):
        Agent(nr.Architecture({"x": 1, "q": 1}, {"e": ("x", "q")}), {"t": ["q"]}, {"e": "t"})
    with refuses("signals"):
        deep_agent(signals="two")
    with refuses("agent"):
        train_by_trials(nr.GDLN(ARCH), task(), key=0, learning_rate=0.1, trials=1)
    with refuses("contrasts"):
        sensitivity(np.full((2, 2), 0.5), decision_task((1.0,)))
    with refuses("side"):
        strategies(np.full((3, 2), 0.5), task())
    with refuses("choices"):
        correct(np.full((3, 2), 0.5), decision_task())
    with refuses("early"):
        rank_correlation([1, 2], [1, 2])
    with refuses("early"):
        rank_correlation([1, 2, np.nan], [1, 2, 3])


def test_rewards_must_have_one_column_per_choice():
    agent, data = shallow_agent(), decision_task()
    wide = nr.Dataset(data.x, {node: np.full((8, 3), 0.5) for node in data.y})
    for call in (
        lambda: agent.velocity(agent.init(0), wide),
        lambda: agent.loss(agent.init(0), wide),
        lambda: stationary_points(agent, wide),
        lambda: agent.check(wide),
    ):
        with says("one reward per choice", got="(8, 3)", wanted="(N, 2)", fix="column"):
            call()


@pytest.mark.parametrize("bad", [7.0, np.nan, -0.5])
def test_choices_must_be_probabilities(bad):
    with refuses("choices"):
        strategies(np.full((8, 2), bad), decision_task())


def test_a_policy_that_fails_at_learned_values_is_named():
    """Its fault shows only between the values on which it is tried at first."""

    def policy(q):
        odd = (jnp.abs(q[:, :1]) > 0.05) & (jnp.abs(q[:, :1]) < 0.2)
        return jnp.where(odd, jnp.nan, jax.nn.softmax(q, axis=-1))

    with pytest.raises(nr.StoppedError) as caught:
        train_by_trials(
            shallow_agent(policy=policy), decision_task(), key=0, learning_rate=0.05, trials=50,
            animals=2, scale=0.01,
        )  # fmt: skip
    assert "the policy is not a distribution" in caught.value.what
    assert "NaN" in caught.value.got


def test_policies_of_ones_own_that_jump_have_no_stationary_points():
    greedy = shallow_agent(policy=lambda q: jax.nn.one_hot(jnp.argmax(q, axis=-1), 2))
    with says("policy that is smooth", got="jumps", wanted="continuously"):
        stationary_points(greedy, decision_task())


def test_numbers_of_a_run():
    with refuses("trials"):
        train_by_trials(shallow_agent(), decision_task(), key=0, learning_rate=0.1, trials=0)
    with refuses("scale"):
        train_by_trials(
            shallow_agent(), decision_task(), key=0, learning_rate=0.1, trials=1, scale=-1.0
        )


def test_shallow_agents_have_no_first_layer_and_learn():
    agent, data = shallow_agent(), decision_task()
    assert set(agent.arch.edges) == {"from_left", "from_right", "from_constant"}
    run = nr.flow(
        agent, agent.init(0, scale=0.0), data, times=[0, 200.0], record={"p": agent.choices}
    )
    assert strategies(run.values["p"], data).tolist() == ["naive", "expert"]
    assert jnp.allclose(run.values["p"].sum(axis=-1), 1)
