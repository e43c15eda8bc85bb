"""Weights written while a model trains: what is on disk, going on after a break, bad folders."""

import gc
import tracemalloc

import numpy as np
import pytest

import neuralrace as nr
from tests import fake_torch as nn
from tests.test_errors import refuses

DATA = nr.Dataset({"x": np.random.default_rng(0).normal(size=(5, 3))}, {"y": np.zeros((5, 2))})


def model(width=4):
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Dropout(), nn.Linear(width, 2, seed=1))


def first_weight(of):
    return of._modules["0"]._parameters["weight"].array


def train(of, recorder, steps):
    for _ in range(steps):
        first_weight(of)[:] += 0.01
        recorder.step()


def test_records_are_the_weights_of_their_steps(tmp_path):
    net = model().train()
    start = first_weight(net).copy()
    recorder = nr.TorchRecorder(net, DATA, every=3, folder=tmp_path / "run")
    train(net, recorder, 7)
    recorder.record()  # after the last step
    found, run = nr.from_recording(tmp_path / "run", DATA, loss="squared")
    assert found == nr.ReLUNetwork((3, 4, 2), bias=True)
    assert run.steps.tolist() == [0, 3, 6, 7]
    for k, step in enumerate(run.steps):
        np.testing.assert_allclose(run.values["weights"]["W1"][k], start + 0.01 * step, 0, 1e-12)
    assert (run.final["W1"] == first_weight(net)).all()
    assert run.outputs["y"].shape == (4, 5, 2)


def test_a_run_goes_on_after_a_break(tmp_path):
    whole, broken = model(), model()
    recorder = nr.TorchRecorder(whole, DATA, every=2, folder=tmp_path / "whole")
    train(whole, recorder, 8)
    recorder = nr.TorchRecorder(broken, DATA, every=2, folder=tmp_path / "broken")
    train(broken, recorder, 4)
    saved = first_weight(broken).copy()
    train(broken, recorder, 3)  # lost: the machine stops, the checkpoint of step 4 is loaded
    first_weight(broken)[:] = saved
    recorder = nr.TorchRecorder(broken, DATA, every=2, folder=tmp_path / "broken", resume_at=4)
    train(broken, recorder, 4)
    a, b = (nr.from_recording(tmp_path / name, DATA)[1] for name in ("whole", "broken"))
    assert a.steps.tolist() == b.steps.tolist() == [0, 2, 4, 6, 8]
    for edge, w in a.values["weights"].items():
        np.testing.assert_array_equal(w, b.values["weights"][edge])


def test_memory_does_not_grow_with_the_records(tmp_path):
    net = model(200)
    recorder = nr.TorchRecorder(net, DATA, every=1, folder=tmp_path)
    train(net, recorder, 2)
    tracemalloc.start()
    train(net, recorder, 20)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 200 * 5 * 8 * 4  # a few copies of the weights, not twenty


def test_folders_that_do_not_fit(tmp_path):
    net = model()
    recorder = nr.TorchRecorder(net, DATA, every=2, folder=tmp_path / "run")
    train(net, recorder, 4)
    with refuses("folder"):
        nr.TorchRecorder(net, DATA, folder=tmp_path / "run")
    with refuses("folder"):
        (tmp_path / "empty").mkdir()
        nr.TorchRecorder(net, DATA, folder=tmp_path / "empty", resume_at=4)
    with refuses("model"):
        nr.TorchRecorder(net, DATA, folder=tmp_path / "run", resume_at=2)
    with refuses("model"):
        nr.TorchRecorder(model(5), DATA, folder=tmp_path / "run", resume_at=4)
    assert len(list((tmp_path / "run").glob("step-*"))) == 3  # a refusal drops nothing
    with refuses("data"):
        nr.from_recording(tmp_path / "run", DATA.take([0, 1]))
    _, run = nr.from_recording(tmp_path / "run", DATA.take([0, 1]), other_data=True)
    assert run.outputs["y"].shape == (3, 2, 2)
    other = nr.ReLUNetwork((5, 7, 2))
    added = tmp_path / "run" / "step-000000009.safetensors"
    nr.save_weights(other, other.init(0), added)
    with refuses("run"):
        nr.from_recording(tmp_path / "run", DATA)
    added.unlink()
    (tmp_path / "run" / "step-000000002.safetensors").write_bytes(b"cut")
    with refuses("step-000000002.safetensors"):
        nr.from_recording(tmp_path / "run", DATA)


def test_models_that_do_not_fit(tmp_path):
    with refuses("model"):
        nr.TorchRecorder({}, DATA, folder=tmp_path)  # type: ignore[arg-type]
    with refuses("model"):
        nr.TorchRecorder(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d()), DATA, folder=tmp_path)
    with pytest.raises(nr.NeuralRaceError, match="every"):
        nr.TorchRecorder(model(), DATA, every=0, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing was written for them
