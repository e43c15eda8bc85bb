"""PyTorch itself, where it is installed: models in, models out, recorded while they train."""

import jax
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace import losses
from tests.test_errors import says

torch = pytest.importorskip("torch")
nn = torch.nn
torch.set_num_threads(1)

EXACT = {"float32": 1e-6, "float64": 1e-12}


def random_data(seed, sizes):
    rng = np.random.default_rng(seed)
    return nr.Dataset({"x": rng.normal(size=(6, sizes))}, {"y": np.eye(3)[rng.integers(0, 3, 6)]})


@pytest.mark.parametrize("kind", EXACT)
def test_random_networks(kind):
    from tests.fixtures.make_torch_fixtures import random_network

    dtype, tolerance = getattr(torch, kind), EXACT[kind]
    for seed in range(8):
        torch.manual_seed(seed + 50)
        model, leak = random_network(seed, dtype)
        data = random_data(seed, model[0].in_features)
        x, y = (torch.tensor(a["xy"[k]], dtype=dtype) for k, a in enumerate((data.x, data.y)))
        net, run = nr.from_torch(model, data, loss="cross_entropy")
        assert getattr(net, "leak", 1.0) == (leak if len(net.arch.hidden) else 1.0)
        loss = nn.functional.cross_entropy(model(x), y.argmax(1))
        loss.backward()
        np.testing.assert_allclose(run.outputs["y"][0], model(x).detach().numpy(), 0, tolerance)
        np.testing.assert_allclose(run.loss[0], loss.item(), 0, tolerance)
        narrow = nr.Dataset({"x": x.numpy()}, {"y": y.numpy()})
        step = step_of(net, run.final, narrow)
        gradients = [p.grad.numpy() for p in model.parameters()]
        mine = [-np.asarray(step[edge]) for edge in _in_order(net)]
        for theirs, ours in zip(gradients, mine, strict=True):
            np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, 0, tolerance)
        back = nr.to_torch(net, run.final)
        for a, b in zip(model.parameters(), back.parameters(), strict=True):
            assert a.dtype == b.dtype and torch.equal(a, b)
        assert torch.equal(model(x), back(x))


def step_of(net, weights, data):
    return jax.jit(lambda w: net.loss_and_step(w, data, 1.0, losses.cross_entropy)[1])(weights)


def _in_order(net):
    """The edges in the order of a model's parameters: weights, then bias, layer by layer."""
    for k, node in enumerate([*net.arch.hidden, *net.arch.outputs], 1):
        yield f"W{k}"
        if f"bias_{node}" in net.arch.edges:
            yield f"bias_{node}"


def test_adam_recorded_while_it_trains(tmp_path):
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(30, 5))}, {"y": np.eye(3)[rng.integers(0, 3, 30)]})
    x, y = torch.tensor(data.x["x"]), torch.tensor(data.y["y"])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    recorder = nr.TorchRecorder(model, data, every=20, folder=tmp_path)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        recorder.step()
    net, run = nr.from_recording(tmp_path, data, loss="cross_entropy")
    start = {edge: w[0] for edge, w in run.values["weights"].items()}
    again = nr.train(
        net,
        start,
        data,
        optimizer=optax.adam(0.01),
        loss="cross_entropy",
        steps=200,
        record_every=20,
        record={"weights": True},
    )
    np.testing.assert_allclose(run.loss, again.loss, 0, 1e-8)
    for edge, w in again.values["weights"].items():
        np.testing.assert_allclose(run.values["weights"][edge], w, 0, 1e-8)


def test_modules_with_their_own_forward():
    class Own(nn.Module):
        def __init__(self, squash):
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 3)
            self.act, self.squash = nn.ReLU(), squash

        def forward(self, x):
            return self.b(self.squash(self.a(x.flatten(1))))

    data = random_data(0, 4)
    net, _ = nr.from_torch(Own(torch.relu), data)
    assert net.leak == 0
    with says("does not compute", got="differ", wanted="same outputs"):
        nr.from_torch(Own(torch.tanh), data)


def test_gates_go_with_a_graph():
    data = random_data(1, 4)
    arch, gated = nr.pathways(data, {"a": None, "b": [1, 0, 1, 0, 1, 1]}, hidden=3)
    net = nr.GDLN(arch)
    weights = net.init(0)
    model = nr.to_torch(net, weights, gated)
    x = torch.tensor(data.x["x"])
    np.testing.assert_allclose(model(x).detach(), net(weights, gated)["y"], 0, 1e-12)
    other = {"b": np.zeros(6)}
    np.testing.assert_allclose(
        model(x, gates=other).detach(), net(weights, data.gated(other))["y"], 0, 1e-12
    )
    with pytest.raises(ValueError, match="6 samples, the input 2"):
        model(x[:2])
    again, run = nr.from_torch(model, gated)
    assert again == net
    assert all(run.final[e].tobytes() == np.asarray(w).tobytes() for e, w in weights.items())


def test_a_relu_network_on_a_graph_and_per_neuron_gates():
    data = random_data(2, 4)
    arch = nr.Architecture(
        {"x": 4, "h": 5, "y": 3}, {"xh": ("x", "h"), "hy": ("h", "y"), "xy": ("x", "y")}
    )
    relu = nr.ReLUNetwork(arch, leak=0.1, bias=True)
    weights = relu.init(0)
    x = torch.tensor(data.x["x"])
    out = nr.to_torch(relu, weights)(x)
    np.testing.assert_allclose(out.detach(), relu(weights, data)["y"], 0, 1e-12)
    gated = data.gated(relu.activity(weights, data))
    model = nr.to_torch(nr.GDLN(relu.arch), weights, gated)
    np.testing.assert_allclose(model(x).detach(), out.detach(), 0, 1e-12)


def test_real_tensors_that_are_refused():
    data = random_data(0, 4)
    linear = nn.Linear(4, 4)
    for model, what, got in (
        (nn.Sequential(nn.Linear(4, 3)).half(), "precision", "float16"),
        (nn.Sequential(nn.Linear(4, 3)).bfloat16(), "precision", "bfloat16"),
        (nn.Sequential(nn.Linear(4, 3)).to("meta"), "'0.weight'", "meta"),
        (nn.Sequential(linear, nn.ReLU(), linear, nn.ReLU(), nn.Linear(4, 3)), "tied", "two names"),
        (nn.TransformerEncoderLayer(4, 2), "model", "TransformerEncoderLayer"),
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), "'1'", "BatchNorm1d"),
        (nn.Sequential(nn.Linear(4, 3), nn.PReLU(), nn.Linear(3, 3)), "'1'", "PReLU"),
    ):
        with says(what, got=got, wanted=""):
            nr.from_torch(model, data)
    model = nn.Sequential(nn.Linear(4, 3))
    with says("same memory", got="not copied", wanted="a copy"):
        nr.from_torch([model.state_dict(), model.state_dict()], data)


def test_the_safetensors_library_reads_our_files(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    net = nr.ReLUNetwork((4, 5, 3), bias=True)
    weights = net.init(0)
    read = numpy.load_file(nr.save_weights(net, weights, tmp_path / "net.safetensors"))
    assert {e: w.tobytes() for e, w in read.items()} == {
        e: np.asarray(w).tobytes() for e, w in weights.items()
    }


def test_losses_of_torch_are_named_here():
    data, model = random_data(0, 4), nn.Sequential(nn.Linear(4, 3))
    for loss, name in (
        (nn.MSELoss(), "squared"),
        (nn.functional.mse_loss, "squared"),
        (nn.CrossEntropyLoss(), "cross_entropy"),
        (nn.functional.cross_entropy, "cross_entropy"),
    ):
        with says("unknown loss", got="", wanted="'squared'", fix=f"loss='{name}'"):
            nr.from_torch(model, data, loss=loss)
    with says("unknown loss", got="L1Loss", wanted="'squared'", fix="a function"):
        nr.from_torch(model, data, loss=nn.L1Loss())


def test_a_module_that_computes_something_else_is_not_watched_as_its_layers():
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 8, bias=False), nn.Linear(8, 1, bias=False)

        def forward(self, x):
            return self.b(self.a(x))

    data = nr.tasks.extended_xor(0.4)
    watching = nr.live(Linear().double(), data, 1, learning_rate=0.1, steps=3)
    watching.step(torch.tensor(0.25))
    result = watching.close()
    assert result.frame()["loss"].tolist()[1:] == [0.25]
    assert not result.expected.is_known
