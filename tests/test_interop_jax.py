"""Networks from Equinox, and from Flax where it is installed."""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest

import neuralrace as nr
from tests.test_errors import refuses, says

DATA = nr.Dataset({"x": np.random.default_rng(0).normal(size=(5, 3))}, {"y": np.zeros((5, 2))})
KEY = jax.random.key(0)


def linear(n_in, n_out, bias=True):
    return eqx.nn.Linear(n_in, n_out, use_bias=bias, key=KEY)


def leaky(slope):
    return functools.partial(jax.nn.leaky_relu, negative_slope=slope)


class Own(eqx.Module):
    first: eqx.nn.Linear
    second: eqx.nn.Linear
    width: int = 4

    def __init__(self):
        self.first, self.second = linear(3, 4), linear(4, 2, bias=False)

    def __call__(self, x):
        return self.second(jax.nn.relu(self.first(x)))


class Squashed(Own):
    def __call__(self, x):
        return self.second(jax.numpy.tanh(self.first(x)))


MODELS = {
    "mlp": (eqx.nn.MLP(3, 2, 6, depth=2, activation=leaky(0.2), key=KEY), 0.2),
    "shallow": (eqx.nn.MLP(3, 2, 6, depth=1, use_bias=False, key=KEY), 0.0),
    "sequential": (
        eqx.nn.Sequential([linear(3, 4), eqx.nn.Lambda(jax.nn.relu), linear(4, 2, bias=False)]),
        0.0,
    ),
    "own": (Own(), 0.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_equinox(name):
    model, leak = MODELS[name]
    net, run = nr.from_equinox(model, DATA)
    assert net.leak == leak
    np.testing.assert_allclose(run.outputs["y"][0], jax.vmap(model)(DATA.x["x"]), 0, 1e-12)


def test_models_over_training():
    first, _ = MODELS["shallow"]
    second = jax.tree.map(lambda a: 2 * a if eqx.is_array(a) else a, first)
    _, run = nr.from_equinox([first, second], DATA, times=[0, 7])
    np.testing.assert_array_equal(*(run.values["weights"]["W1"] * np.array([2, 1])[:, None, None]))
    with refuses("models"):
        nr.from_equinox([first, first], DATA)
    with says("checkpoint 2 is of another network", got="'h': 4", wanted="'h': 6"):
        nr.from_equinox([first, MODELS["own"][0]], DATA)


def test_what_cannot_be_read():
    shared = linear(3, 3)
    relu, gelu = eqx.nn.Lambda(jax.nn.relu), eqx.nn.Lambda(jax.nn.gelu)
    for layers, what, got in (
        ([linear(3, 4), gelu, linear(4, 2)], "'1' cannot", "gelu"),
        ([linear(3, 4), eqx.nn.LayerNorm(4), linear(4, 2)], "LayerNorm", "LayerNorm"),
        ([linear(3, 4), eqx.nn.Dropout(0.5), linear(4, 2)], "switched on", "Dropout"),
        ([linear(3, 2), relu], "no place", "after the last"),
    ):
        with says(what, got=got, wanted="fully connected"):
            nr.from_equinox(eqx.nn.Sequential(layers), DATA)
    with says("tied", got="one matrix", wanted="their own"):
        nr.from_equinox(eqx.nn.Sequential([shared, relu, shared, relu, linear(3, 2)]), DATA)
    with refuses("data"):
        nr.from_equinox(Squashed(), DATA)
    half = jax.tree.map(lambda a: a.astype("float16") if eqx.is_array(a) else a, linear(3, 2))
    with refuses("model"):
        nr.from_equinox(half, DATA)
    with refuses("0"):
        nr.from_equinox(eqx.nn.Sequential([linear(3, 4), relu, linear(5, 2)]), DATA)
    with refuses("times"):
        nr.from_equinox([linear(3, 2), linear(3, 2)], DATA, times=[7, 3])
    with refuses("models"):
        nr.from_equinox(3, DATA)  # type: ignore[arg-type]


# ---- Flax, where it is installed ----------------------------------------------------------------


def test_flax():
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(
        nnx.Linear(3, 4, rngs=rngs), leaky(0.1), nnx.Linear(4, 2, use_bias=False, rngs=rngs)
    )
    net, run = nr.from_flax(model, DATA)
    assert net.leak == 0.1
    np.testing.assert_allclose(run.outputs["y"][0], model(DATA.x["x"]), 0, 1e-6)

    class Module(nnx.Module):
        def __init__(self):
            self.a, self.b = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)
            self.drop = nnx.Dropout(0.1, deterministic=True)

        def __call__(self, x):
            return self.b(nnx.relu(self.drop(self.a(x))))

    own = Module()
    _, run = nr.from_flax([own, nnx.clone(own)], DATA)
    np.testing.assert_allclose(run.outputs["y"][1], own(DATA.x["x"]), 0, 1e-6)
    with says("BatchNorm", got="BatchNorm", wanted="fully connected"):
        nr.from_flax(nnx.Sequential(nnx.Linear(3, 2, rngs=rngs), nnx.BatchNorm(2, rngs=rngs)), DATA)
