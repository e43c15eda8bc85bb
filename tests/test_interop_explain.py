"""What can be said of a run that was trained elsewhere, and what is withheld, with the reason."""

import inspect
import json
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import neuralrace as nr
from tests.test_errors import refuses, says

DATA = nr.tasks.extended_xor(1.2)
CLASSES = nr.Dataset(DATA.x, {"y": np.eye(2)[(DATA.y["y"][:, 0] > 0).astype(int)]})


def states_of(run):
    """The weights of a run as another library would hold them."""
    w = run.values["weights"]
    return [{"0.weight": w["W1"][k], "2.weight": w["W2"][k]} for k in range(len(run.time))]


@pytest.fixture(scope="module")
def descent():
    net = nr.ReLUNetwork((3, 32, 1))
    return nr.train(
        net,
        net.init(jax.random.key(0), scale=1e-4),
        DATA,
        learning_rate=0.1,
        steps=400,
        record_every=40,
        record={"weights": True, "outputs": True},
    )


@pytest.fixture(scope="module")
def adam():
    net = nr.ReLUNetwork((3, 32, 2))
    return nr.train(
        net,
        net.init(jax.random.key(0), scale=1e-2),
        CLASSES,
        optimizer=optax.adam(0.01),
        loss="cross_entropy",
        batch_size=2,
        key=0,
        steps=300,
        record_every=30,
        record={"weights": True, "outputs": True},
    )


def test_a_learning_rate_that_the_checkpoints_do_not_follow_is_refused(descent, adam):
    """The rate of torch's MSELoss is another one, and Adam has none."""
    states = states_of(descent)
    with refuses("checkpoints"):
        nr.from_torch(states, DATA, times=descent.steps, learning_rate=0.05)
    with refuses("checkpoints"):
        nr.from_torch(states, DATA, times=descent.steps, learning_rate=100.0)
    with refuses("checkpoints"):
        nr.from_torch(
            states_of(adam), CLASSES, times=adam.steps, learning_rate=0.01, loss="cross_entropy"
        )


REDUCTIONS = {
    "mean over samples and outputs": (lambda e: (e**2).mean(), "MSELoss() over K = 3"),
    "sum over samples and outputs": (lambda e: (e**2).sum(), "MSELoss(reduction='sum') over N = 7"),
    "mean over samples, no half": (lambda e: (e**2).sum(axis=1).mean(), "without the ½"),
    "sum over samples, half": (lambda e: 0.5 * (e**2).sum(), "summed over the N = 7 samples"),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_error_names_how_the_loss_was_averaged(reduction):
    """Descent by autodiff on a loss of another reduction: the error knows the rate of ours."""
    own, said = REDUCTIONS[reduction]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 4)), rng.normal(size=(7, 3))
    first = {"0.weight": rng.normal(size=(6, 4)) / 4, "2.weight": rng.normal(size=(3, 6)) / 4}
    net, here = nr.ReLUNetwork((4, 6, 3)), nr.Dataset({"x": x}, {"y": y})

    def loss(w):
        return own(y - jax.numpy.maximum(x @ w["0.weight"].T, 0) @ w["2.weight"].T)

    rate, states, slope = 0.002, [first], jax.jit(jax.grad(loss))
    for _ in range(5):
        g = slope(states[-1])
        states.append({name: np.asarray(w - rate * g[name]) for name, w in states[-1].items()})
    with pytest.raises(nr.NeuralRaceError, match="do not follow") as caught:
        nr.from_torch([states[0], states[5]], here, times=[0, 5], learning_rate=rate)
    assert said in caught.value.fix and "1/(1 − μ)" in caught.value.fix
    right = float(caught.value.fix.partition("learning_rate=")[2].partition(",")[0])
    assert nr.from_torch(states, here, learning_rate=right)[0] == net


@pytest.mark.parametrize("rate", [0.1, 0.13])
def test_a_rate_that_checkpoints_cannot_tell_is_said_to_be_unchecked(descent, rate):
    """Once a run has converged, many rates lead from its first weights to its last ones."""
    states = states_of(descent)
    with pytest.warns(UserWarning, match="was not checked: from step 0 to 400"):
        nr.from_torch([states[0], states[-1]], DATA, times=[0, 400], learning_rate=rate)


def test_steps_are_asked_for_where_checkpoints_are_further_apart_than_told(descent):
    states = states_of(descent)
    with refuses("checkpoints"):
        nr.from_torch(states, DATA, learning_rate=0.1)


def test_momentum_is_named_where_its_factor_is_that_of_a_reduction():
    """Momentum .9 is like 10 times the rate, and so is a sum over 10 samples."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, 4)), rng.normal(size=(10, 3))
    w, speed, states = rng.normal(size=(3, 4)) / 4, np.zeros((3, 4)), []
    for _ in range(1001):
        states.append({"0.weight": w})
        speed = 0.9 * speed + (w @ x.T - y.T) @ x / 10
        w = w - 1e-3 * speed
    said = "10 times this: a loss that is summed over the N = 10.*momentum.*1/\\(1 − μ\\)"
    with pytest.raises(nr.NeuralRaceError, match=said):
        nr.from_torch([states[0], states[1000]], nr.Dataset({"x": x}, {"y": y}), times=[0, 1000],
                      learning_rate=1e-3)  # fmt: skip


def test_plain_descent_from_elsewhere_is_explained_like_our_own(descent):
    _, run = nr.from_torch(states_of(descent), DATA, times=descent.steps, learning_rate=0.1)
    np.testing.assert_allclose(run.time, descent.time)
    np.testing.assert_allclose(run.loss, descent.loss, 0, 1e-12)
    ours, theirs = (nr.reln.discover(r, DATA, pathways=2) for r in (descent, run))
    assert theirs.withheld is None
    assert theirs.discrepancy == pytest.approx(ours.discrepancy, rel=1e-6)
    np.testing.assert_array_equal(ours.patterns["h"], theirs.patterns["h"])


def test_other_dynamics_are_withheld_with_the_reason(adam):
    _, run = nr.from_torch(states_of(adam), CLASSES, times=adam.steps, loss="cross_entropy")
    np.testing.assert_allclose(run.loss, adam.loss, 0, 1e-12)
    np.testing.assert_allclose(run.outputs["y"], adam.values["outputs"]["y"], 0, 1e-12)
    for each, reason in ((run, "unknown optimizer (PyTorch)"), (adam, "optimizer")):
        found = nr.reln.discover(each, CLASSES, pathways=2)
        assert reason in found.withheld
        assert found.followed == () and np.isnan(found.discrepancy)
        assert found.withheld in str(found) and "discrepancy" not in str(found)
        assert found.share["h"].sum() == pytest.approx(1)
        assert found.arch.hidden and found.data.gates
        with says("cannot take the steps", got=found.withheld, wanted="gradient descent"):
            found.train()
    activity = nr.reln.activity(run, CLASSES)
    assert "switched" in str(activity)


def test_the_elbow_is_refused_before_anything_is_computed(adam, monkeypatch):
    names = inspect.unwrap(nr.reln.discover).__globals__
    monkeypatch.setattr(names["ActivitySamples"], "of", lambda *a: pytest.fail("computed already"))
    with refuses("pathways"):
        nr.reln.discover(adam, CLASSES, pathways="elbow")


def test_what_is_wrong_is_said_before_anything_is_computed(adam, monkeypatch):
    names = inspect.unwrap(nr.reln.discover).__globals__
    monkeypatch.setitem(names, "activity_of", lambda *a: pytest.fail("computed already"))
    bare = nr.Trajectory(adam.time, adam.loss, net=adam.net, settings=adam.settings)
    for call, what in {
        lambda: nr.reln.discover([adam, bare], CLASSES): "did not record its weights",
        lambda: nr.reln.discover(adam, CLASSES, pathways=0): "the number of pathways",
        lambda: nr.reln.discover(adam, CLASSES, pathways="elbwo"): "the number of pathways",
        lambda: nr.reln.discover(adam, CLASSES, pathways={"k": 2}): "a number to every hidden node",
        lambda: nr.reln.discover(adam, DATA.take([0, 1])): "not what the run was trained on",
        lambda: nr.reln.discover(adam, CLASSES, key="k"): "key",
    }.items():
        with pytest.raises(nr.NeuralRaceError, match=what):
            call()


def test_a_single_checkpoint_gives_what_it_can(adam):
    _, run = nr.from_torch(states_of(adam)[-1], CLASSES, loss="cross_entropy")
    activity = nr.reln.activity(run, CLASSES)
    assert activity.on["h"].shape == (1, 4, 32)
    assert "patterns" in str(activity) and "switched" not in str(activity)
    shares = activity.shares(CLASSES.one_per_sample())
    assert sum(s[0] for s in shares.rounded.values()) == pytest.approx(1)
    found = nr.reln.discover(run, CLASSES, pathways=3)
    assert len(found.layers["h"]) <= 3 and found.withheld
    _, alone = nr.from_torch(states_of(adam)[-1], CLASSES, learning_rate=0.1)
    assert nr.reln.discover(alone, CLASSES, pathways=2).withheld == "a single recorded moment"


def test_certificates_of_other_losses_are_in_units_of_how_far_outputs_moved(adam):
    _, run = nr.from_torch(states_of(adam), CLASSES, times=adam.steps, loss="cross_entropy")
    other = nr.Trajectory(
        run.time,
        run.loss,
        values={"outputs": {"y": run.outputs["y"] + np.array([3.0, 4.0])}},  # everywhere 5 away
        settings=run.settings,
    )
    found = nr.reln.certify(run, other)
    o = run.outputs["y"]
    moved = np.sqrt(((o[-1] - o[0]) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(found.outputs, 5 / moved)
    assert "moved" in str(found) and "initial error" not in str(found)
    still = nr.Trajectory(
        run.time, run.loss, values={"outputs": {"y": 0 * o}}, settings=run.settings
    )
    with refuses("run"):
        nr.reln.certify(still, run)


def test_explain_says_what_it_can_of_a_run_that_nothing_can_follow(adam):
    """The part of the samples on which neurons differ is counted here neuron by neuron."""
    _, run = nr.from_torch(states_of(adam), CLASSES, times=adam.steps, loss="cross_entropy")
    gatings = {
        "mine": nr.tasks.xor_pathways(DATA),
        "one": (nr.Architecture.chain(3, 4, 1), DATA.gated({"h": [1, 1, 0, 0]})),
        "edges": (nr.Architecture.chain(3, 4, 1), DATA.gated({"W1": [1, 1, 0, 0]})),
    }
    gatings = {
        name: (two(arch), CLASSES.gated(data.gates)) for name, (arch, data) in gatings.items()
    }
    found = nr.explain(run, gatings, data=CLASSES, most=3)
    assert found.runs == (run,) and found.floor is None and found.best is None
    w = {e: np.asarray(v, float) for e, v in run.values["weights"].items()}
    total = []
    for k in range(len(run.time)):
        on = np.asarray(CLASSES.x["x"]) @ w["W1"][k].T > 0  # (N, size)
        weight = np.linalg.norm(w["W1"][k], axis=1) * np.linalg.norm(w["W2"][k], axis=0)
        apart = (on != np.array([1, 1, 0, 0], bool)[:, None]).sum(axis=0)
        total.append(weight @ apart / weight.sum() / 4)
    assert found["one"].differ == pytest.approx(np.mean(total), rel=1e-9)
    clusters = nr.reln.discover(run, CLASSES, pathways=3).layers["h"]
    (name,) = (row.name for row in found.rows if "discovered" in row.name)
    assert found[name].differ == pytest.approx(clusters.share @ clusters.mismatch / 4)
    assert [r.error for r in found.rows] == sorted(r.error for r in found.rows)
    text = str(found)
    assert "an unknown optimizer (PyTorch)" in found.made
    assert "aligned, staged, types and narrow are left out: no other network can take" in text
    assert "edges is left out: patterns of neurons are compared with gates" in text
    assert "differ" in text and "per seed" not in text
    assert "nearest to" in found.advice and "by their weights" in found.advice
    assert "plain gradient descent" in found.made and "only which neurons are on" in found.made
    assert len(found.plot().lines) == 1


def two(arch):
    """The same graph with two outputs."""
    return nr.Architecture({**arch.sizes, "y": 2}, dict(arch.edges))


def test_explain_of_a_single_checkpoint_and_of_batches(adam, descent):
    _, one = nr.from_torch(states_of(adam)[-1], CLASSES, loss="cross_entropy")
    found = nr.explain(one, data=CLASSES, most=2)
    assert "one checkpoint" in found.made and len(found) == 1
    assert "one recorded moment alone" in found.left_out["types"]
    assert "steps" not in str(found)
    _, alone = nr.from_torch(states_of(descent)[-1], DATA, learning_rate=0.1)
    assert "one checkpoint" in str(nr.explain(alone, data=DATA, rows=["discovered"]))
    last = descent.isel(time=[-1])
    ended = nr.explain(last, data=DATA, most=2, rows=["discovered", "staged"])
    assert ended.rows[0].differ == nr.explain(alone, data=DATA, most=2).rows[0].differ
    with refuses("run"):
        nr.reln.staged(last, DATA)
    _, batches = nr.from_torch(
        states_of(descent), DATA, times=descent.steps, learning_rate=0.1, batch_size=2
    )
    found = nr.explain(batches, data=DATA, rows=["discovered", "types"])
    assert "kept gates and types are left out" in str(found)
    assert "batches of 2 samples" in found.left_out["types"]


@pytest.mark.slow
def test_explain_of_plain_descent_from_elsewhere_is_complete(descent):
    _, run = nr.from_torch(states_of(descent), DATA, times=descent.steps, learning_rate=0.1)
    options = {"data": DATA, "seeds": 2, "rows": ["discovered", "types", "narrow"], "types": 2,
               "most": 2, "neurons": 200}  # fmt: skip
    ours, theirs = nr.explain(descent, **options), nr.explain(run, **options)
    assert len(theirs) == 3 and not theirs.left_out
    for row in ours.rows:
        assert theirs[row.name].loss == pytest.approx(row.loss, rel=1e-6)
    late = states_of(descent)[2:]
    _, part = nr.from_torch(late, DATA, times=descent.steps[2:], learning_rate=0.1)
    found = nr.explain(part, **options)
    assert [row.kind for row in found.rows] == ["gating"]
    assert set(found.left_out) == {"types", "narrow"}
    assert "from step 80 on" in found.made and "start is not known" in str(found)


def test_consistency_of_gates_found_in_an_imported_run(descent):
    _, run = nr.from_torch(states_of(descent), DATA, times=descent.steps)
    found = nr.reln.discover(run, DATA, pathways=2)
    kept = nr.reln.consistency(found.arch, found.data, scale=1e-3)
    assert 0 <= kept.share <= 1


# ---- the recording of the example, against NumPy alone ------------------------------------------


def test_every_number_of_the_digits_example_is_right():
    from sklearn.datasets import load_digits

    pixels, digit = load_digits(n_class=3, return_X_y=True)
    data = nr.Dataset({"x": pixels / 16}, {"y": np.eye(3)[digit]}, labels={"digit": digit})
    data = data.sorted_by("digit")
    folder = Path(__file__).parent.parent / "examples" / "digits_in_torch"
    _, run = nr.from_recording(folder, data, loss="cross_entropy")
    activity = nr.reln.activity(run, data, boundary=0)
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    for k in range(len(run.time)):
        w = {edge: w[k].astype(float) for edge, w in run.values["weights"].items()}
        z1 = x @ w["W1"].T + w["bias_h1"][:, 0]
        z2 = np.maximum(z1, 0) @ w["W2"].T + w["bias_h2"][:, 0]
        out = np.maximum(z2, 0) @ w["W3"].T + w["bias_y"][:, 0]
        loss = np.log(np.exp(out).sum(axis=1)) - (out * y).sum(axis=1)
        np.testing.assert_allclose(run.outputs["y"][k], out, 0, 1e-4)
        np.testing.assert_allclose(run.loss[k], loss.mean(), 0, 1e-5)
        for node, z in (("h1", z1), ("h2", z2)):
            assert (activity.on[node][k] == (z > 0)).all()
    assert run.steps.tolist() == [0, 50, 100, 150, 200, 250, 300]


def test_the_notebook_is_the_example():
    folder = Path(__file__).parent.parent / "examples"
    script = (folder / "explain_my_torch_network.py").read_text()
    notebook = json.loads((folder / "explain_my_torch_network.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    known = {line.strip() for line in script.splitlines()}
    other = [line for line in lines if line.strip() not in known]
    assert len(other) == 2  # where the recording is, and the picture, which is not saved
    assert all("digits_in_torch" in line or "plot" in line for line in other)
    assert sum(bool(cell["outputs"]) for cell in cells) == 3


@pytest.fixture(scope="module")
def checkpoint():
    """Weights of one moment, imported with any data of three inputs."""
    layers = {"0.weight": np.random.default_rng(0).normal(size=(8, 3)), "2.weight": np.ones((1, 8))}

    def imported(data, scale=1.0):
        return nr.from_torch({name: scale * w for name, w in layers.items()}, data)[1]

    return imported


def test_samples_of_no_weight_do_not_change_on_how_many_neurons_differ(checkpoint):
    arch, mine = nr.tasks.xor_pathways(DATA)
    more = np.random.default_rng(1).normal(size=(12, 3))
    wide = nr.Dataset(
        {"x": np.concatenate([DATA.x["x"], more])},
        {"y": np.concatenate([DATA.y["y"], np.zeros((12, 1))])},
        sample_weight=np.append(np.ones(4), np.zeros(12)),
    )
    gates = {v: np.append(g, np.zeros(12)) for v, g in mine.gates.items()}
    few = nr.explain(checkpoint(DATA), {"mine": (arch, mine)}, data=DATA, most=2)
    many = nr.explain(checkpoint(wide), {"mine": (arch, wide.gated(gates))}, data=wide, most=2)
    assert len(few) == 2 and few.rows[1].differ > 0
    assert [r.name for r in few.rows] == [r.name for r in many.rows]
    assert [r.differ for r in few.rows] == pytest.approx([r.differ for r in many.rows])


def test_neurons_without_weights_are_near_to_nothing(checkpoint):
    gatings = {"mine": nr.tasks.xor_pathways(DATA)}
    found = nr.explain(checkpoint(DATA, scale=0.0), gatings, data=DATA, rows=["gatings"])
    assert "no neuron has any weight" in found.left_out["mine"]
    assert found.advice == "No explanation could be made."
