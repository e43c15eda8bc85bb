"""Recurrent networks of PyTorch, with modules that look like its own."""

import numpy as np
import pytest

import neuralrace as nr
from tests import fake_torch as nn
from tests.test_errors import refuses


def task(readout="last", steps=4, seed=0):
    rng = np.random.default_rng(seed)
    count = 1 if readout == "last" else steps
    x, y = rng.normal(size=(6, steps, 2)), rng.normal(size=(6, count, 3))
    return x, nr.tasks.sequences(x, y, readout)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("readout", ["last", "all"])
def test_a_recurrent_layer_and_its_readout(bias, head, readout):
    x, data = task(readout)
    model = nn.Sequential(nn.RNN(2, 5, "relu", bias), nn.Linear(5, 3, head, seed=1))
    net, run = nr.from_torch(model, data)
    assert isinstance(net, nr.ReLUNetwork) and net.leak == 0
    wanted = model(x)
    for node in net.arch.outputs:
        t = 3 if node == "y" else int(node[1:]) - 1
        np.testing.assert_allclose(run.outputs[node][0], wanted[:, t], rtol=1e-12)
    (later,) = {net.arch.matrix_ends[n][0] for n in ("Wh",)}
    assert later == "h1"
    alone = nr.from_torch(model.state_dict(), data, leak=0.0)[1]
    np.testing.assert_array_equal(alone.loss, run.loss)
    assert nr.from_torch([model.state_dict()], data, model=model)[1].loss == run.loss


def test_a_cell_of_three_linear_layers():
    x, data = task()
    parts = nn.Linear(2, 5, True, 1), nn.Linear(5, 5, False, 2), nn.Linear(5, 3, True, 3)

    class Cell(nn.Module):
        def __call__(self, x):
            h = np.zeros((len(x), 5))
            for t in range(x.shape[1]):
                h = np.maximum(parts[0](x[:, t]) + parts[1](h), 0)
            return parts[2](h)

    model = Cell(*parts)
    _, run = nr.from_torch(model, data)
    np.testing.assert_allclose(run.outputs["y"][0], model(x), rtol=1e-12)
    linear = nr.from_torch(model, data, leak=1.0)[0]
    assert isinstance(linear, nr.GDLN)
    with refuses("layers"):
        nr.from_torch(nn.Sequential(parts[1], parts[0], parts[2]), data)
    with refuses("layers"):
        nr.from_torch(nn.Sequential(*parts[1:]), data)


def test_a_run_of_plain_descent_is_followed():
    """Weights over steps of descent here, under PyTorch's names: the rate is checked and kept."""
    _, data = task()
    arch = nr.Architecture.recurrent(2, 5, 3, 4)
    net = nr.ReLUNetwork(arch)
    run = nr.train(net, net.init(1, scale=0.5), data, learning_rate=0.02, steps=4,
                   record={"weights": True})  # fmt: skip
    names = {"Wx": "rnn.weight_ih_l0", "Wh": "rnn.weight_hh_l0", "Wy": "head.weight"}
    states = [
        {names[n]: np.asarray(w[k]) for n, w in run.values["weights"].items()} for k in range(5)
    ]
    read, same = nr.from_torch(states, data, leak=0.0, learning_rate=0.02)
    assert read == net
    np.testing.assert_allclose(same.loss, run.loss, rtol=1e-6)
    assert nr.reln.discover(same, data, 1).followed
    with refuses("learning_rate"):
        nr.from_torch(states, data, leak=0.0, learning_rate=0.5)


REFUSED = {
    "tanh": lambda: nn.RNN(2, 5),
    "two layers": lambda: nn.RNN(2, 5, "relu", num_layers=2),
    "GRU": lambda: nn.GRU(2, 5),
    "LSTM": lambda: nn.LSTM(2, 5),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_recurrent_layers_that_cannot_be_represented(kind):
    _, data = task()
    with refuses("0"):
        nr.from_torch(nn.Sequential(REFUSED[kind](), nn.Linear(5, 3)), data)


def test_what_does_not_fit_a_recurrent_layer():
    x, data = task()
    rnn = nn.RNN(2, 5, "relu")
    state = nn.Sequential(rnn, nn.Linear(5, 3)).state_dict()
    with refuses("RNN"):
        nr.from_torch(state, data)  # relu or tanh?
    with refuses("learning_rate"):
        nr.from_torch([state], data, leak=0.0, learning_rate=0.1)
    with refuses("1"):
        nr.from_torch(nn.Sequential(rnn, nn.RNN(5, 5, "relu"), nn.Linear(5, 3)), data)
    with refuses("data"):
        nr.from_torch(state, nr.Dataset({"x": x[:, 0]}, {"y": x[:, 0]}), leak=0.0)
    with refuses("data"):
        nr.from_torch(nn.Sequential(rnn, nn.Linear(5, 2)), data)
