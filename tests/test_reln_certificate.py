"""Certificates, copied gates and horizons, against plain runs and brute force."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace.reln.observed.evidence import hidden_layers
from tests.test_errors import refuses, says

RATE = 0.1


def solution(time, outputs, similarity=None, loss=1.0):
    """A trajectory with these outputs (T, N, size), without any training."""
    values = {"outputs": {"y": np.asarray(outputs, float)}}
    if similarity is not None:
        values["similarity"] = {"layer1": np.asarray(similarity, float)}
    return nr.Trajectory(time, np.full(len(time), loss), values=values)


@pytest.fixture(scope="module")
def deep():
    """A leaky network with two hidden layers on extended XoR, recorded at every step."""
    data = nr.tasks.extended_xor(0.5)
    relu = nr.ReLUNetwork((3, 12, 10, 1), leak=0.05)
    weights = relu.init(jax.random.key(3), scale=0.3)
    run = nr.train(relu, weights, data, learning_rate=RATE, steps=300,
                   record={"weights": True, **nr.reln.evidence(relu, data)})  # fmt: skip
    assert run.loss[-1] < 0.1 * run.loss[0]
    return run, data


def thinned(run, every):
    """The same run as if it had been recorded less often."""
    values = jax.tree.map(lambda v: v[::every], run.values)
    return nr.Trajectory(run.time[::every], run.loss[::every], values=values, final=run.final,
                         net=run.net, settings=run.settings)  # fmt: skip


# ---- certificates -------------------------------------------------------------------------------


def test_outputs_on_every_sample_and_time():
    rng = np.random.default_rng(0)
    time, other_time = np.array([0.0, 1.0, 4.0]), np.array([0.0, 1.5, 2.0, 3.0])
    a, b = rng.normal(size=(3, 5, 2)), rng.normal(size=(4, 5, 2))
    run, other = solution(time, a, loss=2.0), solution(other_time, b)
    found = nr.reln.certify(run, other)
    assert found.time.tolist() == [0, 1, 3]
    at_1 = a[1] - b[0] / 3 - b[1] * 2 / 3
    np.testing.assert_allclose(found.outputs[1], np.sqrt((at_1**2).sum(axis=1) / 4), rtol=1e-12)
    assert found.outputs_mean == pytest.approx(nr.compare(run, other).outputs)
    sample, when = found.worst
    assert found.outputs[found.time == when, sample] == found.outputs_max
    assert found.similarity == {}
    assert "was not compared" in str(found)
    assert "no other seed" in str(found)


def test_similarity_is_blind_to_scale_and_rotation_and_sees_structure():
    rng = np.random.default_rng(1)
    time, outputs, h = [0.0, 1.0], np.zeros((2, 4, 1)), rng.normal(size=(2, 4, 6))
    turned = 3.0 * h @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    kernel = lambda h: h @ np.swapaxes(h, 1, 2)
    run = solution(time, outputs, kernel(h))
    assert nr.reln.certify(run, solution(time, outputs, kernel(turned))).similarity[
        "layer1"
    ] == pytest.approx([0, 0], abs=1e-12)
    one, two = np.zeros((2, 4, 4)), np.zeros((2, 4, 4))
    one[:, 0, 0], two[:, 1, 1] = 1.0, 5.0
    apart = nr.reln.certify(solution(time, outputs, one), solution(time, outputs, two))
    assert apart.similarity_mean["layer1"] == pytest.approx(1.0)


def test_evidence_joins_pathways_and_weighs_samples():
    base = nr.Dataset({"x": np.eye(3)}, {"y": np.ones((3, 1))}, sample_weight=[1.0, 2.0, 1.0])
    arch, data = nr.pathways(base, {"a": [1, 1, 0], "b": [0, 1, 1]}, hidden=2)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0))
    kernel = np.asarray(nr.reln.evidence(net, data)["similarity"](weights)["layer1"])
    rows = [np.outer([1, 1, 0], [1, 1]), np.outer([0, 1, 1], [1, 1])]
    h = np.hstack([g * np.asarray(weights[f"x_{v}"]).T for g, v in zip(rows, "ab", strict=True)])
    root = np.sqrt([0.25, 0.5, 0.25])
    np.testing.assert_allclose(kernel, np.outer(root, root) * (h @ h.T), rtol=1e-6)


def test_layers_are_counted_along_the_longest_way():
    edges = {"a": ("x", "h"), "b": ("x", "k"), "c": ("h", "k"), "d": ("h", "y"), "e": ("k", "y")}
    arch = nr.Architecture({"x": 1, "h": 1, "k": 1, "y": 1}, edges)
    assert hidden_layers(arch) == {"layer1": ("h",), "layer2": ("k",)}


def test_floor_stands_beside_the_candidate(deep):
    run, _ = deep
    far = nr.Trajectory(run.time, run.loss * 1.5, values=run.values)
    near = nr.Trajectory(run.time, run.loss * 1.25, values=run.values)
    found = nr.reln.certify(run, far, floor=near)
    assert found.times_floor == pytest.approx(2.0)
    assert found.holds()  # same outputs
    frame = found.frame().set_index("quantity")
    assert frame.loc["loss", "per_seed"] == pytest.approx(2.0)
    assert np.isnan(frame.loc["outputs", "per_seed"])
    assert found.times_floor_outputs is None  # these seeds have the same outputs
    shifted = {"outputs": {"y": run.outputs["y"] + 0.1}}
    twice = {"outputs": {"y": run.outputs["y"] + 0.2}}
    apart = nr.reln.certify(
        run,
        nr.Trajectory(run.time, run.loss * 1.5, values=twice),
        floor=nr.Trajectory(run.time, run.loss * 1.25, values=shifted),
    )
    assert apart.times_floor_outputs == pytest.approx(2.0)
    assert apart.frame().set_index("quantity").loc["outputs", "per_seed"] == pytest.approx(2.0)
    assert "outputs (2 times as far as another seed)" in apart.sentences()[0].text
    assert len(found.plot(log=False).lines) == 2
    assert nr.reln.certify(run, far, floor=run).times_floor is None


# ---- the trivial ReLN ---------------------------------------------------------------------------


def test_copied_gates_are_exact_at_every_step_and_only_then(deep):
    run, data = deep
    again = nr.reln.copied_gates(run, data, record=nr.reln.evidence(nr.GDLN(run.net.arch), data))
    found = nr.reln.certify(run, again)
    assert found.holds(1e-10)
    assert found.loss.max < 1e-10
    assert max(found.similarity_mean.values()) < 1e-8
    np.testing.assert_allclose(again.final["W2"], run.final["W2"], atol=1e-10)
    assert not nr.reln.certify(run, nr.reln.copied_gates(thinned(run, 50), data)).holds(1e-3)


# ---- horizons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["outputs", "loss"])
def test_gaps_are_those_of_plain_runs(deep, measure):
    run, data = thinned(deep[0], 60), deep[1]
    found = nr.reln.horizons(run, data, tolerance=0.3, measure=measure, boundary=0.0)
    last = len(run.time) - 1
    for i in (0, 2):
        weights = {e: w[i] for e, w in run.values["weights"].items()}
        gates = run.net.activity(weights, data)
        net, steps = nr.GDLN(run.net.arch), 60 * (last - i)
        plain = nr.train(net, weights, data.gated(gates), learning_rate=RATE, steps=steps,
                         record_every=60, record={"outputs": True})  # fmt: skip
        apart = plain.values["outputs"]["y"] - run.values["outputs"]["y"][i:]
        gap = np.sqrt((apart**2).mean(axis=(1, 2)) / (2 * run.loss[0]))
        if measure == "loss":
            gap = np.abs(plain.loss - run.loss[i:]) / run.loss[0]
        past = np.flatnonzero(gap > 0.3)
        seen = past[0] + 1 if len(past) else len(gap)
        np.testing.assert_allclose(found.gap[i, i : i + seen], gap[:seen], atol=1e-10)
        assert np.isinf(found.gap[i, i + seen :]).all()
        assert np.isinf(found.gap[i, :i]).all()
        assert found.reach()[i] == i + seen - 1 - bool(len(past))


def test_a_network_that_diverged_follows_no_further():
    gap = np.array([[0.0, np.nan, np.nan], [np.inf, 0.0, 0.1], [np.inf, np.inf, 0.0]])
    found = nr.reln.Horizons(np.arange(3.0), np.ones(3), gap, 0.2, "outputs", 1e-3)
    assert found.reach().tolist() == [0, 2, 2]


def test_a_network_that_never_gates_needs_one_stage():
    data = nr.tasks.extended_xor(1.0)
    linear = nr.ReLUNetwork((3, 4, 1), leak=1.0)
    run = nr.train(linear, linear.init(jax.random.key(0), scale=0.1), data, learning_rate=RATE,
                   steps=100, record_every=25, record={"weights": True})  # fmt: skip
    found = nr.reln.horizons(run, data, tolerance=1e-6)
    assert found.reach().tolist() == [4] * 5
    assert (len(found.stages()), found.stages().races) == (1, 1)
    assert found.stages().fall[0] == pytest.approx(1 - run.loss[-1] / run.loss[0])
    assert str(found).startswith("1 stage of frozen gates follows the outputs within 1e-06")


def made(reach):
    """Horizons with a given reach, under a loss that falls evenly."""
    count = len(reach)
    gap = np.full((count, count), np.inf)
    for i, end in enumerate(reach):
        gap[i, i : end + 1] = 0.0
    time = np.arange(count, dtype=float)
    return nr.reln.Horizons(time, 1 - time / count, gap, 0.1, "outputs", 1e-3)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12))
def test_stages_are_the_fewest_whatever_the_horizons(ahead):
    last = len(ahead) - 1
    reach = [min(i + a, last) for i, a in enumerate(ahead)]
    stages = made(reach).stages()
    fewest = [0] + [np.inf] * last  # the fewest stages that arrive at each moment
    for i, end in enumerate(reach):
        for j in range(i + 1, end + 1):
            fewest[j] = min(fewest[j], fewest[i] + 1)
    assert stages.start[0] == 0 and stages.end[-1] == last
    assert all(a[1] == b[0] for a, b in pairwise(zip(stages.start, stages.end, strict=True)))
    if np.isfinite(fewest[last]):
        assert len(stages) == fewest[last]
        assert not len(stages.unresolved)
    else:
        assert len(stages.unresolved)
        assert "at least" in str(stages)
    for a, b in zip(stages.start.astype(int), stages.end.astype(int), strict=True):
        assert b <= reach[a] or a in stages.unresolved


def test_picture_of_the_stages():
    ax = made([1, 3, 3, 3]).plot()
    assert ax.get_ylabel() == "hold until"
    assert "2 stages" in [text.get_text() for text in ax.texts]


# ---- errors -------------------------------------------------------------------------------------


def test_errors_say_what_is_missing(deep):
    run, data = deep
    bare = nr.Trajectory([0.0, 1.0], [1.0, 0.5])
    with refuses("found_run"):
        nr.reln.certify(run, bare)
    with refuses("run"):
        nr.reln.certify(run, solution([0.0, 1.0], np.zeros((2, 3, 1))))
    with refuses("data"):
        nr.reln.evidence(run.net, (run.net.arch, data))
    with refuses("measure"):
        nr.reln.horizons(run, data, measure="weights")
    with refuses("tolerance"):
        nr.reln.horizons(run, data, tolerance=0)
    with refuses("tolerance"):
        made([1, 1]).stages(0.5)
    flowed = nr.Trajectory(run.time, run.loss, values=run.values, net=run.net,
                           settings={"method": "gradient flow"})  # fmt: skip
    for call in (nr.reln.horizons, nr.reln.copied_gates):
        with says("cannot take the steps", got="gradient flow", wanted="descent", fix="nr.train"):
            call(flowed, data)


def test_evidence_of_equal_content_is_compiled_once():
    data, relu = nr.tasks.xor(), nr.ReLUNetwork((2, 5, 1))
    first, again = (nr.reln.evidence(relu, nr.tasks.xor())["similarity"] for _ in range(2))
    assert first == again and hash(first) == hash(again)
    twice = nr.Dataset(data.x, data.y, sample_weight=[1, 1, 1, 2])
    assert first != nr.reln.evidence(relu, twice)["similarity"]
    moved = nr.Dataset({"x": 2 * np.asarray(data.x["x"])}, data.y)
    assert first != nr.reln.evidence(relu, moved)["similarity"]
    compiled = []
    with jax.log_compiles():
        import logging

        class Listen(logging.Handler):
            def emit(self, record):
                compiled.append(record.getMessage())

        listen = Listen()
        logging.getLogger("jax").addHandler(listen)
        weights = relu.init(jax.random.key(0))
        for _ in range(2):
            compiled.clear()
            record = nr.reln.evidence(relu, nr.tasks.xor())
            nr.train(relu, weights, nr.tasks.xor(), learning_rate=0.1, steps=7, record=record)
        logging.getLogger("jax").removeHandler(listen)
    assert not [text for text in compiled if "_descend" in text]
