"""Types of neurons on samples that they do not learn from, against networks written out."""

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.checks import generator
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types import evaluation
from neuralrace.reln.explained.types.limit import Start
from tests.test_errors import refuses

XOR = nr.tasks.extended_xor(0.4)
OFF = nr.Dataset(
    {"x": [[1.0, 0.3, 0.2], [-0.4, 0.9, 0.0], [0.1, 0.2, 1.0]]}, {"y": [[0.4], [-0.6], [0.2]]},
    sample_weight=[1, 2, 3],
)  # fmt: skip
"""Samples that break every symmetry of the task."""


def conditions() -> nr.Dataset:
    """A response to odour and room: A and B depend on the room, C and D do not."""
    both = [(odour, room) for odour in "ABCD" for room in (1, 2)]
    go = [{"A": r == 1, "B": r == 2, "C": True, "D": False}[o] for o, r in both]
    shown = {
        "odour": [np.eye(4)["ABCD".index(o)] for o, _ in both],
        "room": [np.eye(2)[r - 1] for _, r in both],
    }
    return nr.Dataset(
        shown,
        {"act": [[1.0, 0.0] if each else [0.0, 1.0] for each in go]},
        labels={"odour": [o for o, _ in both], "room": [r for _, r in both]},
    )


def test_the_wide_limit_is_a_network_of_all_images_written_out():
    """Plain gradient descent of every image of every neuron, which are told of no symmetry."""
    width, scale, rate, steps = 12, 1e-3, 0.1, 300
    found = nr.reln.types(
        XOR, width=width, scale=scale, learning_rate=rate, steps=steps, types=1, neurons=width,
        evaluate={"off": OFF, "own": XOR.take([1, 3])},
    )  # fmt: skip
    symmetries, samples = nr.reln.symmetries(XOR), Samples.of(XOR)
    assert symmetries.order == 8
    first = Start.equal(XOR, width, scale).crowd(generator(0), width)
    w0, a0 = first["w"], first["a"]
    every = symmetries.elements
    w = np.concatenate([w0 @ symmetries.inputs(p).T for p in every]) / np.sqrt(len(every))
    a = np.concatenate([a0 @ symmetries.outputs(p).T for p in every]) / np.sqrt(len(every))
    x, y, other = samples.x, samples.y, np.asarray(OFF.x["x"])
    seen, own = [], []
    for _ in range(steps + 1):
        seen.append(np.maximum(other @ w.T, 0) @ a)
        h = np.maximum(x @ w.T, 0)
        own.append(h @ a)
        r = (y - own[-1]) / len(x)
        w, a = w + rate * ((h > 0) * (r @ a.T)).T @ x, a + rate * h.T @ r
    at = found.wide.steps
    values = found.wide.values
    assert np.allclose(values["off"]["outputs"]["y"], np.array(seen)[at], atol=1e-8)
    assert np.allclose(values["own"]["outputs"]["y"], np.array(own)[at][:, [1, 3]], atol=1e-8)
    assert np.ptp(values["off"]["outputs"]["y"][-1]) > 0.3, "something is learned"
    wanted = 0.5 * ((np.array(seen)[at] - OFF.y["y"]) ** 2)[..., 0] @ [1 / 6, 1 / 3, 1 / 2]
    assert np.allclose(values["off"]["loss"], wanted, atol=1e-8)


@pytest.fixture(scope="module")
def left_out() -> tuple[nr.reln.NeuronTypes, nr.Trajectory]:
    """One condition left out: the prediction, and trained networks."""
    task = conditions()
    out = task.mask(odour="A", room=2)
    data = task.take(~out)
    sets = {
        "A2": task.take(out),
        "AB": data.take(data.mask(odour=("A", "B"))),
        "CD": data.take(data.mask(odour=("C", "D"))),
    }
    options = {"scale": 1e-3, "learning_rate": 0.1, "steps": 1200, "evaluate": sets}
    found = nr.reln.types(data, width=200, types=8, neurons=1000, **options)
    net = nr.ReLUNetwork(
        nr.Architecture(
            {"odour": 4, "room": 2, "h": 200, "act": 2},
            {"oh": ("odour", "h"), "rh": ("room", "h"), "ha": ("h", "act")},
        )
    )
    runs = nr.train_ensemble(net, data, key=1, seeds=4, record_every=10, **options)
    return found, runs


@pytest.mark.parametrize("name", ["A2", "AB", "CD"])
def test_a_condition_that_is_left_out_is_predicted(left_out, name):
    """The wide limit is no further from trained networks than these are from each other."""
    found, runs = left_out
    losses = np.asarray(runs.values[name]["loss"])
    apart = lambda one, other: np.abs(one - other).mean() / losses[0, 0]
    floor = np.mean([apart(losses[i], losses[i - 1]) for i in range(4)])
    for prediction, times in ((found.wide, 1.5), (found.trajectory, 3)):
        curve = np.interp(runs.time, prediction.time, prediction.values[name]["loss"])
        assert np.mean([apart(loss, curve) for loss in losses]) < times * floor
    assert found.wide.values[name]["accuracy"][-1] == (0 if name == "A2" else 1)
    assert np.array_equal(np.asarray(runs.values[name]["accuracy"])[:, -1],
                          [found.wide.values[name]["accuracy"][-1]] * 4)  # fmt: skip


def test_a_subset_has_the_outputs_of_its_samples(left_out):
    found, _ = left_out
    at = found.data.mask(odour=("A", "B"))
    for run in (found.wide, found.trajectory):
        assert np.allclose(run.values["AB"]["outputs"]["act"], run.outputs["act"][:, at])
        whole = [run.values[name]["loss"] for name in ("AB", "CD")]
        assert np.allclose((3 * whole[0] + 4 * whole[1]) / 7, run.loss)


def test_evaluating_changes_nothing_else_and_is_saved(left_out, tmp_path):
    found, _ = left_out
    plain = nr.reln.types(
        found.data, width=200, scale=1e-3, learning_rate=0.1, steps=1200, types=8, neurons=1000
    )
    assert np.array_equal(plain.trajectory.loss, found.trajectory.loss)
    assert set(plain.trajectory.values) == {"outputs"}
    assert set(found.wide.settings["evaluate"]) == {"A2", "AB", "CD"}
    found.wide.save(tmp_path / "wide.nc")
    again = nr.load(tmp_path / "wide.nc")
    assert np.array_equal(again.values["A2"]["loss"], found.wide.values["A2"]["loss"])


def test_inputs_in_directions_that_no_sample_has_count_as_nothing():
    x = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    data = nr.Dataset({"x": x}, {"y": [[1.0], [-1.0]]})
    other = nr.Dataset({"x": x + np.array([0, 0, 5.0])}, {"y": [[1.0], [-1.0]]})
    found = nr.reln.types(data, width=50, scale=1e-3, learning_rate=0.1, steps=400, types=2,
                          neurons=100, evaluate={"far": other})  # fmt: skip
    for run in (found.wide, found.trajectory):
        assert np.allclose(run.values["far"]["loss"], run.loss)


OPTIONS = {
    "width": 20,
    "scale": 1e-4,
    "learning_rate": 0.1,
    "steps": 300,
    "types": 1,
    "neurons": 50,
}


@pytest.mark.parametrize(
    ("evaluate", "name"),
    [
        ({"outputs": OFF}, "outputs"),
        ({"test": nr.tasks.xor()}, "test"),
        ({"test": nr.Dataset({"z": OFF.x["x"]}, OFF.y)}, "test"),
        ({"test": "off"}, "evaluate"),
        ([OFF], "evaluate"),
        ({1: OFF}, "evaluate"),
    ],
)
def test_wrong_evaluations(evaluate, name):
    with refuses(name):
        nr.reln.types(XOR, **OPTIONS, evaluate=evaluate)


def test_too_many_images_are_refused(monkeypatch):
    monkeypatch.setattr(evaluation, "MOST_NUMBERS", 1000)
    with refuses("evaluate"):
        nr.reln.types(XOR, **OPTIONS, evaluate={"off": OFF})
