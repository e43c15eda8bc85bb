"""Weight decay, momentum and rates of edges in runs of whole networks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import neuralrace as nr
from tests.test_errors import refuses


def problem(seed=0):
    """A random chain with its weights and data."""
    rng = np.random.default_rng(seed)
    net = nr.GDLN(nr.Architecture.chain(3, 5, 2))
    data = nr.Dataset({"x": rng.normal(size=(6, 3))}, {"y": rng.normal(size=(6, 2))})
    return net, net.init(seed, scale=0.3), data


def by_hand(weights, data, steps, rate, decay=0.0, mu=0.0, rates=(1.0, 1.0)):
    """The weights of a chain of two edges after some steps, in plain NumPy."""
    w = [np.asarray(weights["W1"]), np.asarray(weights["W2"])]
    v = [0.0, 0.0]
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    for _ in range(steps):
        error = (y - x @ w[0].T @ w[1].T) / len(x)
        slopes = [-(error @ w[1]).T @ x, -error.T @ (x @ w[0].T)]
        pull = zip(rates, slopes, w, strict=True)
        v = [mu * a + r * (g + decay * b) for a, (r, g, b) in zip(v, pull, strict=True)]
        w = [a - rate * b for a, b in zip(w, v, strict=True)]
    return {"W1": w[0], "W2": w[1]}


@pytest.mark.parametrize("decay", [None, 0.1])
@pytest.mark.parametrize("mu", [None, 0.9])
@pytest.mark.parametrize("rates", [None, {"W1": 0.5}])
def test_a_run_takes_the_steps_of_a_plain_loop(decay, mu, rates):
    net, weights, data = problem()
    run = nr.train(
        net, weights, data, learning_rate=0.05, weight_decay=decay, momentum=mu, rates=rates,
        steps=40,
    )  # fmt: skip
    each = ((rates or {}).get("W1", 1.0), 1.0)
    wanted = by_hand(weights, data, 40, 0.05, decay or 0.0, mu or 0.0, each)
    for edge, w in wanted.items():
        np.testing.assert_allclose(run.final[edge], w, atol=1e-14)
    assert run.clock == ("approximate flow" if mu else "flow")
    np.testing.assert_allclose(run.time[-1], 40 * 0.05 / (1 - (mu or 0.0)))
    assert run.settings.get("weight_decay", 0.0) == (decay or 0.0)
    assert run.settings.get("rates", {}) == (rates or {})
    assert run.loss[-1] == pytest.approx(float(net.loss(run.final, data)))  # without the penalty


def test_the_flow_is_the_limit_of_small_steps():
    net, weights, data = problem(1)
    law = {"weight_decay": 0.2, "rates": {"W2": 2.0}}
    flow = nr.flow(net, weights, data, times=[0.0, 1.0], **law)
    gaps = []
    for rate in (1e-2, 5e-3):
        run = nr.train(net, weights, data, learning_rate=rate, steps=round(1 / rate), **law)
        gaps.append(abs(run.loss[-1] - flow.loss[-1]))
    assert gaps[0] < 1e-2
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.05)  # an error of first order


@pytest.mark.parametrize("compress", [False, True])
def test_compressed_networks_decay_as_wide_ones(compress):
    rng = np.random.default_rng(2)
    net = nr.GDLN(nr.Architecture.chain(3, 30, 2))
    data = nr.Dataset({"x": rng.normal(size=(40, 3))}, {"y": rng.normal(size=(40, 2))})
    weights = net.init(0, scale=0.3)
    run = nr.train(net, weights, data, learning_rate=0.05, weight_decay=0.1, steps=30,
                   compress=compress)  # fmt: skip
    for edge, w in by_hand(weights, data, 30, 0.05, 0.1).items():
        np.testing.assert_allclose(run.final[edge], w, atol=1e-13)


def test_decay_of_optax_is_flow_time_too():
    net, weights, data = problem()
    rule = optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.05))
    run = nr.train(net, weights, data, optimizer=rule, steps=40)
    same = nr.train(net, weights, data, learning_rate=0.05, weight_decay=0.1, steps=40)
    assert run.clock == "flow"
    assert run.settings["weight_decay"] == 0.1
    np.testing.assert_allclose(run.loss, same.loss, rtol=1e-12)
    assert nr.compare(run, same).max < 1e-12
    assert nr.compare(run, same).notes == ()
    other = nr.train(net, weights, data, learning_rate=0.05, weight_decay=0.3, steps=40)
    assert len(nr.compare(run, other).notes) == 1
    adam = nr.train(net, weights, data, optimizer=optax.adamw(0.05, weight_decay=0.1), steps=4)
    assert adam.clock == "steps"


def test_a_certificate_trains_the_gated_network_with_the_same_decay():
    data = nr.tasks.xor()
    net = nr.ReLUNetwork((2, 8, 1))
    weights = net.init(0, scale=0.1)
    run = nr.train(net, weights, data, learning_rate=0.1, weight_decay=0.02, steps=60,
                   record={"weights": True})  # fmt: skip
    gates = {"h": np.asarray((run.values["weights"]["W1"][0] @ data.x["x"].T > 0).T, float)}
    from neuralrace.reln.observed.runs import followed_by

    gated = followed_by(run, data.gated(gates))
    assert gated.settings["weight_decay"] == 0.02
    arch = nr.GDLN(net.arch)
    slope = jax.grad(lambda w: arch.loss(w, data.gated(gates)))
    w = {e: jnp.asarray(a) for e, a in weights.items()}
    for _ in range(60):
        g = slope(w)
        w = {e: a - 0.1 * (g[e] + 0.02 * a) for e, a in w.items()}
    np.testing.assert_allclose(gated.loss[-1], arch.loss(w, data.gated(gates)), rtol=1e-9)


def test_what_is_refused():
    net, weights, data = problem()
    with refuses("weight_decay"):
        nr.train(net, weights, data, learning_rate=0.1, weight_decay=-1.0, steps=3)
    with refuses("momentum"):
        nr.train(net, weights, data, learning_rate=0.1, momentum=1.0, steps=3)
    with refuses("momentum"):
        nr.train(net, weights, data, optimizer=optax.sgd(0.1), momentum=0.5, steps=3)
    with refuses("rates"):
        nr.flow(net, weights, data, times=[0, 1], rates={"W9": 1.0})
    with refuses("rates"):
        nr.flow(net, weights, data, times=[0, 1], rates={"W1": 0.0})
