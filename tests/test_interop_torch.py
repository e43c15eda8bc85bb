"""Networks from PyTorch: against numbers that PyTorch computed, and what cannot be read."""

import json
from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace import losses
from tests import fake_torch as nn
from tests.test_errors import refuses, says

FIXTURES = Path(__file__).parent / "fixtures"
EXACT = {"float32": 1e-6, "float64": 1e-12}


@pytest.fixture(scope="module")
def networks():
    """What PyTorch computed for 20 random networks, by precision and number."""
    with np.load(FIXTURES / "torch_networks.npz") as file:
        found: dict = {}
        for key in file.files:
            kind, seed, name = key.split("/", 2)
            found.setdefault((kind, int(seed)), {})[name] = file[key]
    return found


def part(case, prefix):
    return {k.removeprefix(prefix): v for k, v in case.items() if k.startswith(prefix)}


def by_edge(net, state):
    """Gradients by the names of PyTorch as gradients by edge."""
    layers = list(dict.fromkeys(key.split(".")[0] for key in state))
    nodes = [*net.arch.hidden, *net.arch.outputs]
    found = {}
    for k, (layer, node) in enumerate(zip(layers, nodes, strict=True), 1):
        found[f"W{k}"] = state[f"{layer}.weight"]
        if f"{layer}.bias" in state:
            found[f"bias_{node}"] = state[f"{layer}.bias"][:, None]
    return found


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_outputs_losses_and_gradients_are_those_of_torch(networks, kind, depth):
    """One network of each depth; `evidence/own/interop.py` has all twenty and both losses."""
    tolerance, case = EXACT[kind], networks[kind, 4 + depth - 1]
    loss = ("squared", "cross_entropy")[depth % 2]
    data = nr.Dataset({"x": case["x"]}, {"y": case["y"]})
    state = part(case, "state/")
    net, run = nr.from_torch(state, data, leak=float(case["leak"]), loss=loss)
    assert run.outputs["y"].dtype == kind
    assert len(net.arch.hidden) == depth - 1
    np.testing.assert_allclose(run.outputs["y"][0], case["outputs"], 0, tolerance)
    np.testing.assert_allclose(run.loss[0], case[f"loss/{loss}"], 0, tolerance)
    measure = getattr(losses, loss)
    step = jax.jit(lambda w: net.loss_and_step(w, data, 1.0, measure)[1])(run.final)
    wanted = by_edge(net, part(case, f"grad/{loss}/"))
    assert set(wanted) == set(step)
    for edge, gradient in wanted.items():
        np.testing.assert_allclose(-np.asarray(step[edge]), gradient, 0, tolerance)


def test_float64_is_kept_where_jax_computes_in_float32(networks):
    case = networks["float64", 3]
    data = nr.Dataset({"x": case["x"]}, {"y": case["y"]})
    with jax.enable_x64(False):
        _, run = nr.from_torch(part(case, "state/"), data, leak=float(case["leak"]))
    np.testing.assert_allclose(run.outputs["y"][0], case["outputs"], 0, 1e-12)
    assert run.final["W1"].dtype == np.float64


def test_adam_in_torch_is_adam_here():
    with np.load(FIXTURES / "torch_adam.npz") as file:
        arrays = {key: file[key] for key in file.files}
    data = nr.Dataset({"x": arrays.pop("x")}, {"y": arrays.pop("y")})
    steps = sorted({int(key.split("/")[0]) for key in arrays})
    states = [part(arrays, f"{step}/") for step in steps]
    net, run = nr.from_torch(states, data, times=steps, loss="cross_entropy")
    assert run.steps.tolist() == steps and run.clock == "steps"
    start = {edge: w[0] for edge, w in run.values["weights"].items()}
    again = nr.train(
        net,
        start,
        data,
        optimizer=optax.adam(0.01),
        loss="cross_entropy",
        steps=steps[-1],
        record_every=20,
        record={"weights": True},
    )
    assert run.loss[-1] < 0.8 * run.loss[0]
    np.testing.assert_allclose(run.loss, again.loss, 0, 1e-8)
    for edge, w in again.values["weights"].items():
        np.testing.assert_allclose(run.values["weights"][edge], w, 0, 1e-8)


def test_a_file_of_the_safetensors_library():
    expected = json.loads((FIXTURES / "torch_mlp.json").read_text())
    data = nr.Dataset({"x": expected["x"]}, {"y": np.zeros((4, 2))})
    net, run = nr.from_file(FIXTURES / "torch_mlp.safetensors", data)
    assert net == nr.ReLUNetwork((3, 4, 2), bias=True)
    np.testing.assert_allclose(run.outputs["y"][0], expected["outputs"], 0, 1e-6)


# ---- structure ----------------------------------------------------------------------------------

DATA = nr.Dataset({"x": np.random.default_rng(0).normal(size=(5, 3))}, {"y": np.zeros((5, 2))})


def test_layers_that_change_nothing_are_left_out():
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(3, 4, seed=1),
        nn.LeakyReLU(0.2),
        nn.Dropout(),
        nn.Sequential(nn.Linear(4, 6, bias=False, seed=2), nn.Identity()),
        nn.LeakyReLU(0.2),
        nn.Linear(6, 2, seed=3),
    )
    net, run = nr.from_torch(model, DATA)
    assert net.leak == 0.2
    assert set(net.arch.edges) == {"W1", "W2", "W3", "bias_h1", "bias_y"}
    np.testing.assert_allclose(run.outputs["y"][0], model(DATA.x["x"]), 0, 1e-13)


def test_nothing_rectified_is_a_linear_network():
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 2, bias=False))
    net, _ = nr.from_torch(model, DATA)
    assert net == nr.GDLN(nr.Architecture.chain(3, 4, 2))


class Own(nn.Module):
    """A module with its own forward, and one ReLU for all layers, assigned last."""


def test_a_module_with_its_own_forward():
    layers = {"first": nn.Linear(3, 4, seed=1), "second": nn.Linear(4, 2, seed=2)}
    assert nr.from_torch(Own(**layers), DATA)[0].leak == 0
    assert nr.from_torch(Own(**layers, act=nn.LeakyReLU(0.1)), DATA)[0].leak == 0.1
    assert nr.from_torch(Own(**layers), DATA, leak=0.3)[0].leak == 0.3


def test_an_import_that_computes_something_else_is_refused():
    from neuralrace.interop.structure import check_same

    net, weights = nr.from_layers([(np.ones((2, 3)), None)])
    check_same(net, weights, DATA, lambda x: x @ np.ones((3, 2)))
    with refuses("data"):
        check_same(net, weights, DATA, lambda x: x @ np.ones((3, 2)) + 0.01)
    with refuses("data"):
        check_same(net, weights, DATA, lambda x: x[:, :1])
    with refuses("data"):
        check_same(net, weights, DATA, lambda x: 1 / 0)


L1, L2, L3 = nn.Linear(3, 4), nn.Linear(4, 4, seed=1), nn.Linear(4, 2, seed=2)
REFUSED = {
    "batch norm": ((L1, nn.BatchNorm1d(), L3), "'1'", "BatchNorm1d", "fold"),
    "attention": ((nn.MultiheadAttention(),), "'0'", "MultiheadAttention", "feed-forward"),
    "convolution": ((nn.Conv2d(), L3), "'0'", "Conv2d", "flattened"),
    "softmax": ((L1, nn.ReLU(), L3, nn.Softmax()), "'3'", "Softmax", "cross_entropy"),
    "tanh": ((L1, nn.Tanh(), L3), "'1'", "Tanh", "ReLU"),
    "rectified outputs": ((L1, nn.ReLU(), L3, nn.ReLU()), "'3'", "after the last", "Linear"),
    "rectified inputs": ((nn.ReLU(), L1, nn.ReLU(), L3), "'0'", "before the first", "Linear"),
    "two in a row": ((L1, nn.ReLU(), nn.ReLU(), L3), "'2'", "second activation", "Linear"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_layers_that_cannot_be_represented(name):
    modules, layer, kind, fix = REFUSED[name]
    with says(layer, got=kind, wanted="fully connected", fix=fix):
        nr.from_torch(nn.Sequential(*modules), DATA)


def test_dropout_that_is_on_and_mixed_slopes():
    model = nn.Sequential(L1, nn.ReLU(), nn.Dropout(), L3)
    nr.from_torch(model, DATA)
    with refuses("model"):
        nr.from_torch(nn.Sequential(L1, nn.ReLU(), nn.Dropout(), L3).train(), DATA)
    mixed = nn.Sequential(L1, nn.ReLU(), L2, nn.LeakyReLU(0.1), L3)
    with says("same slope", got="'0': 0, '2': 0.1", wanted="one slope", fix="same activation"):
        nr.from_torch(mixed, DATA)
    with refuses("leak"):
        nr.from_torch(nn.Sequential(L1, nn.ReLU(), L3), DATA, leak=0.1)


# ---- bad state dicts ----------------------------------------------------------------------------


def state(*sizes, **changes):
    arrays = {}
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        arrays[f"{2 * k}.weight"] = np.full((n_out, n_in), 0.1)
        arrays[f"{2 * k}.bias"] = np.zeros(n_out)
    return arrays | {k.replace("_", "."): v for k, v in changes.items()}


def test_shapes_that_do_not_chain_and_other_keys():
    broken = {"0.weight": np.ones((4, 3)), "2.weight": np.ones((2, 5))}
    with refuses("0"):
        nr.from_torch(broken, DATA)
    with refuses("1.running_mean"):
        nr.from_torch(state(3, 4, 2) | {"1.running_mean": np.zeros(4)}, DATA)
    with refuses("5.bias"):
        nr.from_torch(state(3, 4, 2) | {"5.bias": np.zeros(4)}, DATA)
    with refuses("0"):
        nr.from_torch(state(3, 4, 2) | {"0.bias": np.zeros(3)}, DATA)
    with refuses("0"):
        nr.from_torch({"0.weight": np.ones((4, 3, 3))}, DATA)
    with refuses("0"):
        nr.from_torch({"0.weight": np.array([[1.0, np.nan, 0.0]])}, DATA)
    with refuses("model"):
        nr.from_torch({"model": {}, "epoch": 3}, DATA)
    with refuses("model"):
        nr.from_torch({}, DATA)
    with refuses("checkpoints"):
        nr.from_torch("model.pt", DATA)


def test_the_state_dict_of_another_model():
    model = nn.Sequential(L1, nn.ReLU(), L3)
    with refuses("model"):
        nr.from_torch(state(3, 4, 4, 2), DATA, model=model)
    net, run = nr.from_torch([state(3, 4, 2), state(3, 4, 2)], DATA, times=[0, 5], model=model)
    assert run.steps.tolist() == [0, 5] and net.leak == 0


def test_checkpoints_of_different_networks_out_of_order_or_not_copied():
    with refuses("checkpoints"):
        nr.from_torch([state(3, 4, 2), state(3, 5, 2)], DATA)
    two = [state(3, 4, 2), state(3, 4, 2)]
    with refuses("checkpoints"):
        nr.from_torch(two, DATA, times=[9, 5])
    with refuses("times"):
        nr.from_torch(two, DATA, times=[1, 2, 3])
    same = state(3, 4, 2)
    with refuses("checkpoints"):
        nr.from_torch([same, dict(same)], DATA)


def test_tied_half_and_distant_tensors():
    tensor = nn.Tensor(np.arange(9.0).reshape(3, 3))
    turned = {"0.weight": tensor, "2.weight": nn.Tensor(tensor.array.T)}
    with refuses("0.weight"):
        nr.from_torch(turned, DATA)
    half = {"0.weight": nn.Tensor(np.ones((2, 3), np.float16))}
    with refuses("model"):
        nr.from_torch(half, DATA)
    brain = {"0.weight": nn.Tensor(np.ones((2, 3)), dtype="bfloat16")}
    with refuses("model"):
        nr.from_torch(brain, DATA)
    cuda = {"0.weight": nn.Tensor(np.ones((2, 3)), device="cuda")}
    with refuses("model"):
        nr.from_torch(cuda, DATA)
    mixed = {"0.weight": np.ones((4, 3)), "2.weight": np.ones((2, 4), np.float32)}
    with says("different precisions", got="float32, float64", wanted="one precision"):
        nr.from_torch(mixed, DATA)


def test_imported_weights_do_not_change_with_the_model():
    model = nn.Sequential(nn.Linear(3, 2))
    _, run = nr.from_torch(model, DATA)
    before = run.final["W1"].copy()
    model._modules["0"]._parameters["weight"].array[:] = 7
    assert (run.final["W1"] == before).all()


def test_a_learning_rate_makes_time_flow():
    first = {key: w for key, w in state(3, 4, 2).items() if key.endswith("weight")}
    net, start = nr.from_torch(first, DATA)
    ours = nr.train(net, start.final, DATA, learning_rate=0.1, steps=10).final
    two = [first, {key: np.asarray(ours[edge]) for key, edge in zip(first, ours, strict=True)}]
    _, run = nr.from_torch(two, DATA, times=[0, 10], learning_rate=0.1)
    assert run.clock == "flow" and run.time.tolist() == [0, 1]
    with refuses("times"):
        nr.from_torch(two, DATA, times=[0, 0.5], learning_rate=0.1)


@pytest.mark.filterwarnings("ignore:float64 data is used in float32")
@pytest.mark.filterwarnings("ignore:the learning rate .* was not checked")
@pytest.mark.parametrize("rate", [1e-7, 1e-6, 1e-5, 1e-3])
def test_rounding_does_not_refuse_a_right_rate(rate):
    """Trained in float64 and kept in float32, the weights moving by about their rounding."""
    first = {key: np.float32(w) for key, w in state(3, 4, 2).items() if key.endswith("weight")}
    net, start = nr.from_torch(first, DATA)
    weights = {edge: np.float64(w) for edge, w in start.final.items()}
    later = nr.train(net, weights, DATA, learning_rate=rate, steps=10).final
    last = {key: np.float32(later[edge]) for key, edge in zip(first, later, strict=True)}
    _, run = nr.from_torch([first, last], DATA, times=[0, 10], learning_rate=rate)
    assert run.clock == "flow"


def test_data_and_losses_that_do_not_fit():
    good = state(3, 4, 2)
    with pytest.raises(nr.NeuralRaceError, match="'x'"):
        nr.from_torch(good, nr.Dataset({"x": np.ones((2, 5))}, {"y": np.ones((2, 2))}))
    with pytest.raises(nr.NeuralRaceError, match="'y'"):
        nr.from_torch(good, nr.Dataset({"x": np.ones((2, 3))}, {"y": np.ones((2, 5))}))
    with pytest.raises(nr.NeuralRaceError, match="not classes"):
        nr.from_torch(good, DATA, loss="cross_entropy")
    with refuses("loss"):
        nr.from_torch(good, DATA, loss=lambda outputs, targets: np.array(0.0))  # type: ignore
    with refuses("loss"):
        nr.from_torch(good, DATA, loss="hinge")
    for name in ("mse", "MSE", "MSELoss", "mse_loss", "mean_squared_error"):
        with says("unknown loss", got=name, wanted="'squared'", fix="loss='squared'"):
            nr.from_torch(good, DATA, loss=name)
    with refuses("loss"):
        nr.from_torch(good, DATA, loss=lambda outputs, targets: outputs.size)  # type: ignore


def test_losses_of_torch_are_named_here():
    class MSELoss:
        """A loss module, which is called with tensors."""

        def state_dict(self):
            return {}

        def __call__(self, outputs, targets):
            return outputs.size

    for loss in (MSELoss(), MSELoss):
        for call in (
            lambda loss=loss: nr.from_torch(state(3, 4, 2), DATA, loss=loss),
            lambda loss=loss: nr.ReLUNetwork((3, 2)).loss({"W1": np.ones((2, 3))}, DATA, loss),
        ):
            with refuses("function"):
                call()


# ---- from_layers and back -----------------------------------------------------------------------


def test_from_layers_is_the_network_with_biases():
    net, weights = nr.from_layers([(np.ones((4, 3)), np.ones(4)), (np.ones((2, 4)), np.ones(2))])
    assert net == nr.ReLUNetwork((3, 4, 2), bias=True)
    assert weights["bias_h"].shape == (4, 1)
    with refuses("layer 1"):
        nr.from_layers([np.ones((4, 3))])  # type: ignore[list-item]
    with refuses("layers"):
        nr.from_layers([])


def test_to_torch_needs_torch_and_a_known_network():
    class Tanh(nr.Network):
        def responses(self, weights, data):
            return {}

    net = Tanh(nr.Architecture.chain(2, 1))
    with refuses("weights"):
        nr.to_torch(net, {"W1": np.ones((1, 2))})
    with refuses("weights"):
        nr.to_torch(nr.GDLN(nr.Architecture.chain(2, 1)), {})


@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_that_is_used_twice_is_a_tie(bias):
    """Outputs of the model, and descent of the one matrix against finite differences."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    data = nr.Dataset({"x": x}, {"y": y})
    shared = nn.Linear(4, 4, bias, seed=1)
    first, last = nn.Linear(3, 4, bias, seed=2), nn.Linear(4, 2, bias, seed=3)
    model = nn.Sequential(first, nn.ReLU(), shared, nn.ReLU(), shared, nn.ReLU(), last)
    net, run = nr.from_torch(model, data)
    assert set(net.arch.ties.values()) == {("W2", "W3")} | (
        {("bias_h2", "bias_h3")} if bias else set()
    )
    np.testing.assert_allclose(run.outputs["y"][0], model(x), rtol=1e-12)
    weights = {name: np.asarray(w[0]) for name, w in run.values["weights"].items()}
    state = shared._parameters["weight"].array
    (name,) = (tie for tie, edges in net.arch.ties.items() if "W2" in edges)
    found, step = np.asarray(net.velocity(weights, data)[name]), 1e-6
    for at in np.ndindex(state.shape):
        losses = []
        for sign in (1, -1):
            state[at] += sign * step
            losses.append(((y - model(x)) ** 2).sum() / 12)
            state[at] -= sign * step
        assert found[at] == pytest.approx(-(losses[0] - losses[1]) / (2 * step), abs=1e-6)
    run = nr.train(net, weights, data, learning_rate=0.01, steps=3, record={"weights": True})
    copies = []
    for k in range(4):
        at = {e: np.asarray(w[k]) for e, w in run.values["weights"].items()}
        keys = {"W1": "0", name: "2", "W4": "6"}
        copy = {f"{layer}.weight": at[e] for e, layer in keys.items()}
        copy["4.weight"] = copy["2.weight"].copy()
        if bias:
            tie = next(t for t, edges in net.arch.ties.items() if "bias_h2" in edges)
            for e, layer in {"bias_h1": "0", tie: "2", "bias_y": "6"}.items():
                copy[f"{layer}.bias"] = at[e][:, 0]
            copy["4.bias"] = copy["2.bias"].copy()
        copies.append(copy)
    again, same = nr.from_torch(copies, data, model=model, learning_rate=0.01)
    assert again == net
    np.testing.assert_allclose(same.loss, run.loss, rtol=1e-9)
    copies[2]["4.weight"] = copies[2]["4.weight"] + 1
    with refuses("4.weight"):
        nr.from_torch(copies, data, model=model)
