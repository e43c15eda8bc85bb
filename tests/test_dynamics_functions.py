"""When two functions of a user count as one."""

import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace.dynamics.functions import ByCode
from neuralrace.dynamics.methods import clock_of

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


class Settings:
    """An object of one's own."""

    factor = 1.0

    def scale(self, w):
        return self.factor * w["W1"]


settings = Settings()


def test_arrays_count_by_their_numbers():
    weights = np.ones(2)
    function = lambda w: weights @ w["W1"]
    before = ByCode(function)
    assert ByCode(function) == before
    weights[0] = 2.0
    assert ByCode(function) != before


def test_what_may_change_unseen_equals_nothing_made_at_another_time():
    for function in (lambda w: settings.scale(w), Settings().scale):
        once = ByCode(function)
        assert once == once and hash(once) == hash(once)
        assert ByCode(function) != once


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


def factored(outputs, targets):
    """A loss with a factor that is an attribute of itself."""
    return factored.factor * jnp.sum((outputs["y"] - targets["y"]) ** 2, axis=1)


def squares(outputs, targets):
    return jnp.sum((outputs["y"] - targets["y"]) ** 2, axis=1)


READ = {
    "of a module": (package.sub, lambda: package.sub.factor),
    "of an object": (settings, lambda: settings.scale({"W1": 1.0})),
    "of a function": (factored, lambda: factored.factor),
    "by globals": (settings, lambda: globals()["settings"].factor),
    "by vars": (settings, lambda: vars(settings)["factor"]),
    "by getattr": (settings, lambda: getattr(settings, "fac" + "tor")),
    "by eval": (settings, lambda: eval("settings.factor")),
    "of a function's module": (settings, lambda: squares.__globals__["settings"].factor),
}
"""Ways to read a number that another part of a program may set."""


@pytest.mark.parametrize(("what", "anew"), [("loss", False), ("record", True)])
@pytest.mark.parametrize("how", READ)
def test_a_number_that_changes_elsewhere_counts_in_the_next_run(what, how, anew):
    where, number = READ[how]

    def functions():
        if how == "of a function":
            return factored, lambda w: factored.factor * jnp.sum(w["W1"] ** 2)
        if how == "by eval":
            return (
                lambda o, t: eval("settings.factor") * squares(o, t),
                lambda w: eval("settings.factor") * jnp.sum(w["W1"] ** 2),
            )
        return (
            lambda o, t: number() * squares(o, t),
            lambda w: number() * jnp.sum(w["W1"] ** 2),
        )

    made = functions()

    def first():
        loss, record = functions() if anew else made
        options = {"loss": loss} if what == "loss" else {"record": {"size": record}}
        weights = NET.init(jax.random.key(0), 0.5)
        run = nr.train(NET, weights, DATA, learning_rate=0.1, steps=3, **options)
        return run.loss[0] if what == "loss" else run.values["size"][0]

    where.factor = 1.0
    once = first()
    where.factor = 2.0
    assert first() == pytest.approx(2 * once)


def test_values_that_cannot_be_read_end_in_no_error_of_ours():
    class Broken:
        @property
        def factor(self):
            raise RuntimeError("not now")

    endless, broken = [], Broken()
    endless.append(endless)
    functions = (lambda w: len(endless) * w["W1"], lambda w: (broken, w["W1"])[1])
    for function in functions:
        once = ByCode(function)
        assert once == once and ByCode(function) != once
        run = nr.train(
            NET, NET.init(0, 0.5), DATA, learning_rate=0.1, steps=1, record={"first": function}
        )
        assert np.isfinite(run.values["first"]).all()
    assert clock_of(optax.GradientTransformation(functions[0], functions[0]), 1).name == "other"


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


FILE, LOOSE = "weights.npy", np.array([1.0, None], dtype=object)
RECORD = np.zeros(1, [("factor", float)])[0]


@functools.wraps(jnp.tanh)
def disguised(x):
    return FACTOR * x


def imported(w):
    import numpy

    return numpy.load(FILE) * w


def drawn(w):
    from numpy.random import normal

    return normal() * w  # noqa: NPY002


def drawn_by_name(w):
    return np.random.normal() * w  # noqa: NPY002


@pytest.mark.parametrize(
    "function",
    [
        *(lambda w: np.load(FILE) * w, lambda w: np.loadtxt(FILE) * w, imported, drawn),
        *(lambda w: np.genfromtxt(FILE), lambda w: np.fromfile(FILE), lambda w: np.memmap(FILE)),
        *(lambda w: jnp.load(FILE), drawn_by_name, lambda w: RECORD["factor"]),
        *(lambda w: LOOSE[0] * w, lambda w: disguised(w), jax.jit(disguised), disguised),
    ],
)
def test_what_reads_files_states_or_addresses_equals_nothing_made_at_another_time(function):
    assert ByCode(function) != ByCode(function)


def test_what_is_set_in_a_package_counts(monkeypatch):
    function, made = lambda w: jnp.added_here(w), []
    for value in (jnp.sin, lambda x: x, lambda x: 2 * x, jnp.float32(0.1), jnp.float32(0.2)):
        monkeypatch.setattr(jnp, "added_here", value, raising=False)
        made.append(ByCode(function))
        assert made[-1] == ByCode(function)
    assert len({*made}) == len(made)


def test_functions_of_packages_are_equal_to_themselves():
    for function in (
        lambda w: jnp.sum(jax.nn.relu(jnp.add(w["W1"], 1))) + np.sum(w["W1"]),
        lambda w: jax.random.normal(w["key"]) + jnp.linalg.norm(jnp.where(w["W1"] > 0, 1.0, 0.0)),
    ):
        assert ByCode(function) == ByCode(function)
