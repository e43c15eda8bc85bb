"""Aligned patterns: end points of the alignment flow, against brute force and trained networks."""

from dataclasses import replace

import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks
from neuralrace.reln.explained import aligned
from tests.test_errors import refuses, says


def brute_force(data: nr.Dataset) -> set[tuple[int, ...]]:
    """Patterns g whose leading singular vector v of ⟨g y xᵀ⟩ has the signs of g, over all 2^N."""
    x, y = data.x["x"], data.y["y"]
    found = set()
    for bits in range(1, 2 ** len(x)):
        g = np.array([bits >> n & 1 for n in range(len(x))])
        v = np.linalg.svd((g[:, None] * y).T @ x)[2][0]
        for side in (v, -v):
            z = x @ side
            if ((z > 0) == g).all() and (np.abs(z) > 1e-9).all():
                found.add(tuple(g.tolist()))
    return found


@pytest.mark.parametrize(
    ("samples", "inputs", "outputs", "key"),
    [(7, 2, 3, 2), (7, 3, 1, 3), (8, 4, 2, 11)],
)
def test_inner_end_points_are_those_of_brute_force(samples, inputs, outputs, key):
    """In the last task a neuron slides that is on for less than 2 % of the time."""
    data = tasks.gaussian(samples=samples, inputs=inputs, outputs=outputs, key=key)
    every = nr.reln.aligned_patterns(data, neurons=500)
    drawn = nr.reln.aligned_patterns(data, neurons=500, limit=1)
    assert "all" in every.how
    assert "all" not in drawn.how
    wanted = brute_force(data)
    for found in (every, drawn):
        inner = ~found.sliding.any(axis=1)
        mine = {tuple(g.astype(int).tolist()) for g in found.gates[inner & (found.shares > 0)]}
        assert mine <= wanted
    assert {tuple(g.astype(int).tolist()) for g in every.gates[~every.sliding.any(1)]} == wanted
    assert every.shares.sum() + every.dead == pytest.approx(1)


def test_the_context_decision_has_the_patterns_that_were_counted_before():
    one = nr.reln.aligned_patterns(tasks.context_decision(cue=1.0))
    assert len(one) == 18
    assert one.rates.min() == pytest.approx(0.314, abs=1e-3)
    assert one.rates.max() == pytest.approx(0.319, abs=1e-3)
    assert len(nr.reln.aligned_patterns(tasks.context_decision(cue=3.0), neurons=500)) == 6


def test_sliding_gates_hold_their_neuron_at_the_boundary():
    data = tasks.context_decision(cue=1.0)
    found = nr.reln.aligned_patterns(data)
    assert found.sliding.any()
    x, y = data.x["x"], data.y["y"]
    for g, a, w, slides in zip(found.gates, found.a, found.w, found.sliding, strict=True):
        push = (g * (y @ a)) @ x  # the direction in which w is pushed
        assert np.abs(x[slides] @ push).max(initial=0) < 1e-6 * np.linalg.norm(push)
        assert np.abs(x[slides] @ w).max(initial=0) < 1e-6


def test_opposite_inputs_that_slide_share_one_gate():
    found = nr.reln.aligned_patterns(tasks.xor())
    assert len(found) == 4
    assert (np.sort(found.gates, axis=1) == [0, 0.5, 0.5, 1]).all()
    assert found.rates == pytest.approx(np.sqrt(1 / 8))


def test_nothing_aligns_to_odd_parity():
    found = nr.reln.aligned_patterns(tasks.parity(3), neurons=200)
    assert len(found) == 0
    assert found.fastest == 0
    assert "No neuron learns" in str(found)
    with says("no neuron learns", got="s* = 0", wanted="grows", fix="bias"):
        nr.reln.aligned(tasks.parity(3), width=20, neurons=200)
    biased = tasks.parity(3)
    x = np.hstack([biased.x["x"], np.ones((8, 1))])
    assert nr.reln.aligned_patterns(nr.Dataset({"x": x}, biased.y), neurons=200).fastest > 0.01


@pytest.mark.parametrize("large", [2e3, 2e6])
def test_a_neuron_that_grows_slowly_beside_a_large_feature_learns(large):
    """The sign of the second feature: ⟨g y x₂⟩ = ½, far below the bound √⟨‖x‖²⟩."""
    x = np.array([[a, b] for a in (-large, large) for b in (-1.0, 1.0)])
    found = nr.reln.aligned_patterns(nr.Dataset({"x": x}, {"y": x[:, 1:]}), neurons=200)
    assert found.rates == pytest.approx([0.5, 0.5])
    assert found.dead == 0
    assert {tuple(g) for g in found.gates} == {(0, 1, 0, 1), (1, 0, 1, 0)}
    assert nr.contest(nr.Dataset({"x": x}, {"y": x[:, 1:]})).check().fastest == pytest.approx(0.5)


def test_s_star_is_not_known_where_no_neuron_has_come_to_rest():
    found = nr.reln.aligned_patterns(tasks.extended_xor(0.4), neurons=50)
    none = {name: getattr(found, name)[:0] for name in ("gates", "rates", "shares", "w", "a")}
    moving = replace(found, **none)
    assert np.isnan(moving.fastest)
    assert moving.moving == 1
    with refuses("found"):
        aligned.gating_of(moving, 20)


def test_units_do_not_matter():
    data = tasks.gaussian(samples=8, inputs=3, key=2)
    same = nr.Dataset({"x": 1e-3 * data.x["x"]}, {"y": 1e6 * data.y["y"]})
    a, b = nr.reln.aligned_patterns(data), nr.reln.aligned_patterns(same)
    assert np.allclose(np.sort(a.rates) * 1e3, np.sort(b.rates))


def test_sample_weights_count():
    data = tasks.gaussian(samples=6, inputs=2, key=1)
    twice = data.take([0, 0, 0, 1, 2, 3, 4, 5])
    weighted = nr.Dataset(data.x, data.y, sample_weight=[3, 1, 1, 1, 1, 1])
    a, b = nr.reln.aligned_patterns(twice), nr.reln.aligned_patterns(weighted)
    assert np.sort(a.rates) == pytest.approx(np.sort(b.rates))


def test_a_full_leak_is_a_linear_network():
    data = tasks.gaussian(samples=6, inputs=3, key=0)
    found = nr.reln.aligned_patterns(data, leak=1.0, neurons=200)
    s = np.linalg.svd(data.y["y"].T @ data.x["x"] / 6)[1][0]
    assert found.rates == pytest.approx(s)


def test_the_aligned_gating():
    data = tasks.extended_xor(0.4)
    arch, gated = nr.reln.aligned(data, width=100, neurons=500)
    assert set(gated.gates) == set(arch.hidden)
    assert sum(arch.sizes[v] for v in arch.hidden) == 100
    more, _ = nr.reln.aligned(tasks.gaussian(key=1), width=100, stages=2, neurons=300)
    assert any(name.startswith("later") for name in more.hidden)
    with refuses("stages"):
        nr.reln.aligned(data, width=100, stages=3)


def objects(count: int = 8) -> nr.Dataset:
    """One-hot objects with the properties of a binary tree: of all, of halves, of quarters, …"""
    blocks = [np.kron(np.eye(2**k), np.ones((count // 2**k, 1))) for k in range(4)]
    return nr.Dataset({"x": np.eye(count)}, {"y": np.concatenate(blocks, axis=1)})


KITCHEN = """111101100000 111100000000 111010000000 100001111000
             100001110100 100001111001 100001100010 100000100010"""
"""Twelve yes/no properties of eight kitchen objects."""


def test_neurons_of_one_hot_inputs_have_every_pattern_equally_often():
    """An input of a neuron that is off there never changes: gates are those of the start."""
    found = nr.reln.aligned_patterns(objects())
    assert 250 <= len(found) <= 255 and found.shares.max() < 0.02  # of 2⁸ − 1, if all are drawn
    for width in (16, 30):
        counts = aligned.neurons_of(found, width)
        assert counts.sum() == round(width * found.shares.sum())
        assert (counts @ found.rates) / counts.sum() == pytest.approx(
            found.shares @ found.rates / found.shares.sum(), rel=0.03
        )
    wide = aligned.neurons_of(found, 1000)  # more than a race can have: some stand for others
    assert np.count_nonzero(wide) <= aligned.MOST
    assert wide.sum() == pytest.approx(1000 * found.shares.sum(), abs=1000 / aligned.MOST)


def test_few_patterns_have_their_basins_within_one_neuron():
    found = nr.reln.aligned_patterns(tasks.context_decision(cue=1.0))
    for width in (7, 64, 200):
        counts = aligned.neurons_of(found, width)
        assert counts.sum() == round(width * found.shares.sum())
        assert np.abs(counts - width * found.shares).max() <= 1


def test_one_hot_inputs_are_learned_when_the_aligned_gates_say():
    """One pathway that is always on keeps itself, but a small start does not lead to it."""
    y, width = np.array([list(row) for row in KITCHEN.split()], float), 64
    data = nr.Dataset({"x": np.eye(8)}, {"y": y})
    one = nr.pathways(data, {"all": None}, hidden=width)
    found = nr.contest({"one": one}, scale=1e-3, criterion=0.5, relative=True)
    net = nr.ReLUNetwork((8, width, 12))
    runs = nr.train_ensemble(net, data, seeds=3, scale=1e-3, learning_rate=0.1, steps=400, key=0)
    half = np.mean([runs.time[np.argmax(loss <= 0.5 * loss[0])] for loss in runs.loss])
    assert found.kept["one"] > 0.9
    assert found.times["one"] < half / 1.1
    assert found.verdicts["one"] is nr.contests.Kept.NOT_REACHED
    assert found.check().describe("one").startswith("not reached: the gates that small neurons")
    assert found.check().keeps("one") is False
    assert (
        found.check().expected("one")
        == found.check().reference.time
        == pytest.approx(half, rel=0.15)
    )
    assert "Expect a ReLU network to learn at about" in str(found)


def test_no_reference_where_the_width_is_too_small_for_it():
    """Of two neurons, none is on for some object, although most networks have one that is."""
    data = objects()
    with refuses("width"):
        nr.reln.aligned(data, width=2)
    one = nr.pathways(data, {"all": None}, hidden=2)
    found = nr.contest({"one": one}, scale=1e-3, criterion=0.5, relative=True)
    assert found.check().reference is None and found.check().expected("one") is None
    assert found.check().keeps("one") is None
    assert "There is no reference: the network is too narrow" in str(found)


def test_no_reference_where_most_neurons_have_not_come_to_rest():
    found = nr.reln.aligned_patterns(tasks.extended_xor(0.4), neurons=200)
    few = replace(found, shares=0.8 * found.shares)
    with refuses("rest"):
        aligned.gating_of(few, 20)
    aligned.gating_of(replace(few, dead=0.2), 20)  # dead neurons do not learn


def test_the_second_stage_follows_as_many_neurons(monkeypatch):
    asked = []

    def spy(data, **options):
        asked.append(options["neurons"])
        return nr.reln.aligned_patterns(data, **options)

    monkeypatch.setattr(aligned, "aligned_patterns", spy)
    nr.reln.aligned(tasks.gaussian(samples=8, inputs=3, key=1), width=50, stages=2, neurons=70)
    assert asked == [70, 70]


def test_samples_that_hardly_count_are_not_a_stage():
    """What remains is on a sample whose weight is a billionth of the others'."""
    x, y = np.eye(2), np.array([[1.0], [-1.0]])
    x, y = np.vstack([x, [[1.0, 0.0]]]), np.vstack([y, [[-1.0]]])
    data = nr.Dataset({"x": x}, {"y": y}, sample_weight=[1, 1, 1e-9])
    arch, _ = nr.reln.aligned(data, width=20, stages=2, neurons=100)
    assert all(name.startswith("aligned") for name in arch.hidden)


def test_too_large_a_scale_is_said():
    data = tasks.extended_xor(0.4)
    with pytest.warns(UserWarning, match="too large for neurons to align"):
        nr.reln.aligned(data, width=100, scale=0.3)


def test_several_input_nodes_are_read_side_by_side():
    apart, joined = (tasks.contextual(contexts=3, items=4, joined=j) for j in (False, True))
    a, b = (nr.reln.aligned_patterns(d, neurons=300) for d in (apart, joined))
    assert np.allclose(a.rates, b.rates)
    assert nr.reln.aligned(apart, width=20)[0].inputs == ("item", "context")


def test_identical_inputs_count_as_one_sample_with_their_mean_target():
    data = tasks.xor()
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    order, shift = [0, 0, 1, 2, 3], np.array([[1.0], [-1.0], [0], [0], [0]])
    twice = nr.Dataset({"x": x[order]}, {"y": y[order] + shift})
    weighted = nr.Dataset(data.x, data.y, sample_weight=[2, 1, 1, 1])
    many, few = (nr.reln.aligned_patterns(d, neurons=300) for d in (twice, weighted))
    assert many.sliding[:, 0].any()
    assert (many.gates[:, 0] == many.gates[:, 1]).all()
    assert many.rates == pytest.approx(few.rates)
    assert many.gates[:, 1:] == pytest.approx(few.gates)


def test_targets_that_cancel_teach_nothing():
    data = nr.Dataset({"x": [[1.0, 0], [1, 0], [0, 0]]}, {"y": [[1.0], [-1.0], [2.0]]})
    assert nr.reln.aligned_patterns(data).fastest == 0
    with says("no neuron learns", got="s* = 0", wanted="grows", fix="targets that cancel"):
        nr.reln.aligned(data, width=20)


@pytest.mark.parametrize(("seed", "leak"), [(0, 0.0), (1, 0.2), (2, 0.0)])
def test_every_pattern_holds_itself(seed, leak):
    """By finite differences: on either side of a boundary that slides, the flow leads back."""
    data = tasks.gaussian(samples=10, inputs=3, outputs=2, key=seed)
    x, y = np.asarray(data.x["x"]), np.asarray(data.y["y"])
    found = nr.reln.aligned_patterns(data, leak=leak, neurons=300)
    assert found.moving == pytest.approx(0)
    for g, w, a, rate, slides in zip(
        found.gates, found.w, found.a, found.rates, found.sliding, strict=True
    ):
        assert ((x @ w)[g == 1] > 0).all()
        assert ((x @ w)[g == leak] < 0).all()
        assert (g * (y @ a)) @ x / len(x) == pytest.approx(rate * w)
        assert (g * (x @ w)) @ y / len(x) == pytest.approx(rate * a)
        for n in np.flatnonzero(slides):
            for side in (1.0, -1.0):
                own = np.where(np.arange(len(x)) == n, 1.0 if side > 0 else leak, g)
                assert side * (x[n] @ ((own * (y @ a)) @ x)) < 0


@pytest.mark.parametrize("leak", [-0.1, 1.5, np.nan])
def test_the_leak_is_between_off_and_on(leak):
    with says("leak", got=repr(leak), wanted="at least 0 and at most 1"):
        nr.reln.aligned_patterns(tasks.xor(), leak=leak)


def test_how_large_a_scale_is_too_large():
    found = nr.reln.aligned_patterns(tasks.extended_xor(0.4), neurons=300)
    small, large = found.ratio(200, 1e-3), found.ratio(200, 0.03)
    assert small < large
    # the time to learn is ln(a/a₀)/(2s*) with a₀ ∝ σ²: 30 times the scale saves ln(30)/s*
    saved = found.aligned_at / small - found.aligned_at / large
    assert saved == pytest.approx(np.log(30) / found.fastest)
    assert found.ratio(200, 1.0) == np.inf
    assert found.too_large(200, 1e-3) is None
    assert found.too_large(200, 1.0) is not None
    with refuses("width"):
        found.ratio(-2, 1e-3)
    with refuses("scale"):
        found.ratio(200, 0)


def test_growth_is_that_of_a_trained_network():
    """Squared weights when 1 % of the loss has gone, over those at first."""
    data = tasks.extended_xor(0.4)
    net = nr.ReLUNetwork((3, 400, 1))
    for scale in (1e-3, 3e-3):
        run = nr.train(net, net.init(0, scale=scale), data, learning_rate=0.02, steps=1500,
                       record={"weights": True})  # fmt: skip
        squares = sum((np.asarray(w) ** 2).sum(axis=(1, 2)) for w in run.values["weights"].values())
        gone = np.argmax(run.loss <= 0.99 * run.loss[0])
        said = nr.reln.aligned_patterns(data, neurons=300).growth(400, scale)
        assert squares[gone] / squares[0] == pytest.approx(said, rel=0.25)
    assert np.isnan(nr.reln.aligned_patterns(tasks.parity(3), neurons=100).growth(400, 1e-3))


@pytest.mark.parametrize("zero", ["x", "y"])
def test_nothing_to_learn_is_an_error(zero):
    values = {"x": np.ones((3, 2)), "y": np.ones((3, 1))}
    values[zero] = 0 * values[zero]
    data = nr.Dataset({"x": values["x"]}, {"y": values["y"]})
    what = "all inputs are zero" if zero == "x" else "all targets are zero"
    with says(what, got="all 0", wanted="not 0"):
        nr.reln.aligned_patterns(data)
