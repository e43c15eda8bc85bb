"""Files of weights: round trips bit by bit, and every kind of damage."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.interop.files import read_safetensors, write_safetensors
from tests.test_errors import refuses, says

DATA = nr.Dataset({"x": np.random.default_rng(0).normal(size=(5, 3))}, {"y": np.zeros((5, 2))})


def nets():
    gated, data = nr.pathways(DATA, {"a": None, "b": [1, 0, 1, 0, 1]}, hidden=2)
    return [
        (nr.ReLUNetwork((3, 4, 2), leak=0.1, bias=True), DATA),
        (nr.GDLN(gated), data),
        (nr.GDLN(nr.Architecture.chain(3, 2)), DATA),
    ]


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("case", range(3))
def test_round_trip_is_exact(tmp_path, suffix, dtype, case):
    net, data = nets()[case]
    weights = net.init(jax.random.key(0), dtype=dtype)
    path = nr.save_weights(net, weights, tmp_path / f"net.{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing temporary stays
    again, run = nr.from_file(path, data)
    assert again == net
    for edge, w in weights.items():
        assert run.final[edge].dtype == dtype
        assert run.final[edge].tobytes() == np.asarray(w).tobytes()
    narrow = jax.tree.map(lambda a: np.asarray(a, dtype), data)
    wanted = np.asarray(net(weights, narrow)["y"])
    np.testing.assert_allclose(run.outputs["y"][0], wanted, 0, 10 * np.finfo(wanted.dtype).eps)


def test_layers_come_in_natural_order(tmp_path):
    sizes = [3, *range(4, 15), 2]  # twelve layers: "10" must come after "2"
    arrays = {}
    for k in range(12):
        arrays[f"net.{k}.weight"] = np.full((sizes[k + 1], sizes[k]), 0.1)
    path = tmp_path / "net.npz"
    np.savez(path, **{key: arrays[key] for key in sorted(arrays)})
    net, _ = nr.from_file(path, DATA, leak=1)
    assert net == nr.GDLN(nr.Architecture.chain(*sizes))


def test_names_that_do_not_tell_the_order(tmp_path):
    """An autoencoder: 3 → 2 → 3, or by the alphabet 2 → 3 → 2."""
    path = tmp_path / "net.npz"
    np.savez(path, **{"encoder.weight": np.ones((2, 3)), "decoder.weight": np.ones((3, 2))})
    with says("do not tell their order", got="decoder", wanted="numbers", fix="from_layers"):
        nr.from_file(path, nr.Dataset({"x": np.ones((2, 3))}, {"y": np.ones((2, 3))}))
    np.savez(path, **{"hidden.weight": np.ones((4, 3)), "out.weight": np.ones((2, 4))})
    net, _ = nr.from_file(path, DATA)  # in one order only do these chain
    assert list(net.arch.sizes.values()) == [3, 4, 2]


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_edges_may_be_called_as_they_like(tmp_path, suffix):
    names = ("file", "args", "allow_pickle", "self")
    edges = {name: ("x", "y") if i else ("x", "h") for i, name in enumerate(names)}
    arch = nr.Architecture({"x": 3, "h": 2, "y": 2}, edges | {"out": ("h", "y")})
    net = nr.GDLN(arch)
    weights = net.init(0)
    again, run = nr.from_file(nr.save_weights(net, weights, tmp_path / f"net.{suffix}"), DATA)
    assert again == net
    assert all(run.final[e].tobytes() == np.asarray(weights[e]).tobytes() for e in weights)


def test_the_description_of_the_network_has_its_own_name(tmp_path):
    net = nr.GDLN(nr.Architecture({"x": 3, "y": 2}, {"neuralrace_network": ("x", "y")}))
    with refuses("neuralrace_network"):
        nr.save_weights(net, net.init(0), tmp_path / "net.npz")


def test_a_batch_of_all_samples_is_no_batch(tmp_path):
    net = nr.ReLUNetwork((3, 4, 2))
    path = nr.save_weights(net, net.init(0), tmp_path / "net.npz")
    for size, kept in ((DATA.n_samples, None), (1, 1)):
        _, run = nr.from_file(path, DATA, learning_rate=0.1, batch_size=size)
        assert run.settings.get("batch_size") == kept


def test_several_files_over_training(tmp_path):
    net = nr.ReLUNetwork((3, 4, 2))
    paths = [
        nr.save_weights(net, net.init(jax.random.key(k)), tmp_path / f"{k}.safetensors")
        for k in range(3)
    ]
    _, run = nr.from_file(paths, DATA, times=[0, 10, 30])
    assert run.steps.tolist() == [0, 10, 30] and run.values["weights"]["W1"].shape == (3, 4, 3)
    other = nr.ReLUNetwork((3, 5, 2))
    last = nr.save_weights(other, other.init(0), tmp_path / "other.npz")
    with refuses("other.npz"):
        nr.from_file([*paths, last], DATA)
    with refuses("times"):
        nr.from_file(paths, DATA, times=[0, 30, 10])
    single = nr.save_weights(net, net.init(0, dtype="float32"), tmp_path / "single.npz")
    with refuses("single.npz"):
        nr.from_file([*paths, single], DATA)


def test_only_known_networks_are_written(tmp_path):
    class Tanh(nr.Network):
        def responses(self, weights, data):
            return {}

    net = Tanh(nr.Architecture.chain(2, 1))
    with refuses("weights"):
        nr.save_weights(net, {"W1": np.ones((1, 2))}, tmp_path / "net.npz")
    assert not list(tmp_path.iterdir())


# ---- damage -------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    net = nr.ReLUNetwork((3, 4, 2))
    return nr.save_weights(net, net.init(jax.random.key(0)), tmp_path / "net.safetensors")


def test_every_truncation_is_an_error(file):
    content = file.read_bytes()
    for length in range(0, len(content), 7):
        file.write_bytes(content[:length])
        with pytest.raises(nr.NeuralRaceError):
            nr.from_file(file, DATA)
    file.write_bytes(content + b"\0")
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)


def header(path, **entries):
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 8)


def test_headers_that_lie(file):
    entry = {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    header(file, **{"0.weight": entry})
    arrays, _ = read_safetensors(file)
    assert arrays["0.weight"].shape == (1, 2)
    for change in (
        {"shape": [2, 2]},
        {"shape": [-1, -2]},
        {"shape": [True, 2]},
        {"data_offsets": [8, 16]},
        {"data_offsets": [0]},
        {"data_offsets": None},
    ):
        header(file, **{"0.weight": entry | change})
        with refuses("net.safetensors"):
            nr.from_file(file, DATA)
    header(file, a=entry, b=entry)
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)
    header(file, **{"0.weight": entry | {"dtype": "BF16"}})
    with refuses("0.weight"):
        nr.from_file(file, DATA)
    header(file, __metadata__={"a": 1})
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)
    twice = b'{"a":1,"a":2}'
    file.write_bytes(len(twice).to_bytes(8, "little") + twice)
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)
    file.write_bytes(b"\xff" * 64)
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)


def test_other_networks_and_keys_in_a_file(file, tmp_path):
    arrays, metadata = read_safetensors(file)
    write_safetensors(file, {"W1": arrays["W1"]}, metadata)
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)
    write_safetensors(file, arrays, {"neuralrace_network": "{}"})
    with refuses("net.safetensors"):
        nr.from_file(file, DATA)
    write_safetensors(file, arrays, metadata)
    with refuses("leak"):
        nr.from_file(file, DATA, leak=0.1)
    write_safetensors(file, {"0.weight": np.ones((2, 3), np.float16)}, {})
    with refuses("0"):
        nr.from_file(file, DATA)


class Harmful:
    def __reduce__(self):
        return (open, ("harmed.txt", "w"))


def test_nothing_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("net.npz", **{"0.weight": np.array([Harmful()], dtype=object)})
    with refuses("net.npz"):
        nr.from_file("net.npz", DATA)
    assert not (tmp_path / "harmed.txt").exists()
    for name in ("net.pt", "net.ckpt"):
        with says(f"'{name}'", got="ending", wanted=".safetensors", fix="weights_only=True"):
            nr.from_file(name, DATA)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "net.npz").read_bytes()[:100])
    with refuses("cut.npz"):
        nr.from_file("cut.npz", DATA)
    with refuses("nowhere.npz"):
        nr.from_file("nowhere.npz", DATA)
    with refuses("data"):
        nr.from_file([], DATA)


def test_saving_where_it_cannot(tmp_path):
    net = nr.GDLN(nr.Architecture.chain(3, 2))
    with refuses("net"):
        nr.save_weights(net, net.init(0), tmp_path / "nowhere" / "net.npz")
    with refuses("net"):
        nr.save_weights(net, net.init(0), tmp_path / "net.txt")
