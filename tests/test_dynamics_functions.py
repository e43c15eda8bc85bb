"""When two functions of a user count as one."""

import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace.dynamics.functions import ByCode

FACTOR = 2.0
package = types.ModuleType("package")
package.sub = types.ModuleType("package.sub")


def same(make, *arguments):
    """Whether the function or optimizer that a call makes equals that of another call."""
    one, other = (ByCode(make(*given)) for given in (arguments or ((), ())))
    assert (one == other) == (hash(one) == hash(other))
    return one == other


def scaled(by):
    return lambda w: by * jnp.sum(w["W1"])


def nested(by):
    inner = scaled(by)
    return lambda w: math.sqrt(2) * inner(w)


def test_equal_code_with_equal_numbers():
    for make in (scaled, nested, optax.adam, optax.sgd, lambda b: optax.sgd(0.1, momentum=b)):
        assert same(make, (0.5,), (0.5,))
        assert not same(make, (0.5,), (0.25,))
    assert not same(scaled, (1,), (1.0,))
    assert same(lambda n: optax.sgd(optax.linear_schedule(1.0, 0.0, n)), (10,), (10,))
    assert not same(lambda n: optax.sgd(optax.linear_schedule(1.0, 0.0, n)), (10,), (11,))


def test_arrays_objects_and_own_modules_are_not_inspected():
    weights = np.ones(2)
    assert not same(lambda: lambda w: weights @ w["W1"])
    assert not same(lambda: lambda w: package.sub.factor * w["W1"])
    function = scaled(weights)
    assert ByCode(function) == ByCode(function)


def test_numbers_and_functions_that_are_named(monkeypatch):
    make = lambda: lambda w: FACTOR * scaled(1.0)(w)
    assert same(make)
    before = ByCode(make())
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert ByCode(make()) != before
    before = ByCode(make())
    monkeypatch.setitem(globals(), "scaled", lambda by: jnp.sum)
    assert ByCode(make()) != before


def test_a_function_that_calls_itself():
    def make(base):
        def power(n):
            return base * power(n - 1) if n else 1

        return power

    assert same(make, (2,), (2,))
    assert not same(make, (2,), (3,))


NET, DATA = nr.ReLUNetwork((2, 4, 1)), nr.tasks.xor()


@pytest.mark.parametrize("what", ["loss", "record"])
def test_a_number_that_changes_elsewhere_counts_in_the_next_run(what):
    def first():
        if what == "loss":
            function = lambda o, t: package.sub.factor * jnp.sum((o["y"] - t["y"]) ** 2, axis=1)
            options = {"loss": function}
        else:
            function = lambda w: package.sub.factor * jnp.sum(w["W1"] ** 2)
            options = {"record": {"size": function}}
        weights = NET.init(jax.random.key(0), 0.5)
        run = nr.train(NET, weights, DATA, learning_rate=0.1, steps=3, **options)
        return run.loss[0] if what == "loss" else run.values["size"][0]

    package.sub.factor = 1.0
    once = first()
    package.sub.factor = 2.0
    assert first() == pytest.approx(2 * once)


class Weighted:
    """A loss that can be called and not hashed."""

    __hash__ = None

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return True

    def __call__(self, outputs, targets):
        return self.factor * jnp.sum((outputs["y"] - targets["y"]) ** 2, axis=1)


def test_a_loss_without_a_hash():
    weights = NET.init(jax.random.key(0), 0.5)
    losses = [
        float(nr.train(NET, weights, DATA, loss=Weighted(f), learning_rate=0.1, steps=1).loss[0])
        for f in (1.0, 2.0)
    ]
    assert losses[1] == pytest.approx(2 * losses[0])
    assert float(NET.loss(weights, DATA, Weighted(2.0))) == pytest.approx(losses[1])
    run = nr.flow(NET, weights, DATA, loss=Weighted(1.0), times=[0.0, 1.0])
    assert run.loss[0] == pytest.approx(losses[0])
    many = nr.train_ensemble(NET, DATA, key=0, loss=Weighted(1.0), learning_rate=0.1, steps=1)
    assert np.isfinite(many.loss).all()
