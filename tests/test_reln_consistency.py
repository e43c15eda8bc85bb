"""Kept shares: whether the weights that a gating learns produce its gates."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks
from neuralrace.reln.explained import fall
from neuralrace.reln.explained.fall import over_the_fall
from neuralrace.reln.explained.handover import handover, kept_by_neurons
from tests.test_errors import refuses, says


def by_hand(z: np.ndarray, drive: np.ndarray, gate: np.ndarray) -> float:
    """The kept share of one neuron, straight from its definition."""
    q = np.abs(z * drive)
    worst = min(sum(abs(g - (s * zn > 0)) * qn for g, zn, qn in zip(gate, z, q, strict=True))
                for s in (1, -1))  # fmt: skip
    return max(0.0, 1 - worst / (gate @ q))


def test_the_share_of_a_neuron_is_its_definition():
    rng = np.random.default_rng(0)
    z, drive = rng.normal(size=(2, 6, 40))
    gate = np.array([1, 0, 0.5, 1, 0, 1.0])
    found, lost, sign = kept_by_neurons(z, drive, gate, np.full(6, 1 / 6), 0.0)
    wanted = [by_hand(z[:, i], drive[:, i], gate) for i in range(40)]
    assert found == pytest.approx(wanted)
    assert 0 < found.min() + found.max() < 2
    some = found > 0
    assert lost.sum(axis=0)[some] == pytest.approx(1 - found[some])
    assert set(sign) == {1, -1}
    assert kept_by_neurons(-z, -drive, gate, np.full(6, 1 / 6), 0.0)[2] == pytest.approx(-sign)


def test_samples_without_weight_do_not_decide_the_sign():
    """Heavy samples agree with the plain sign, light ones with the opposite one."""
    z, drive = np.array([[1.0], [-1.0], [-1.0]]), np.ones((3, 1))
    gate = np.ones(3)
    light, heavy = (np.array(p) for p in ((0.8, 0.1, 0.1), (0.2, 0.4, 0.4)))
    assert kept_by_neurons(z, drive, gate, light, 0.0)[2] == [1]
    assert kept_by_neurons(z, drive, gate, heavy, 0.0)[2] == [-1]


@pytest.mark.parametrize("delta", [0.4, 1.2])
def test_pathways_by_sample_and_by_answer_are_consistent_on_xor(delta):
    """At Δ = .4 the gating by answer is consistent and outrun: `nr.contest` has the verdict."""
    data = tasks.extended_xor(delta)
    for gating in (tasks.xor_pathways(data), tasks.linear_pathways(data)):
        found = nr.reln.consistency(*gating, scale=1e-3)
        assert found.share == pytest.approx(1)
        assert found.is_consistent
        assert "nr.contest says whether a faster gating outruns it" in str(found)
    side = tasks.natural_gatings(data)["side"]
    apart = nr.reln.consistency(*side, scale=1e-3)
    assert not apart.is_consistent
    assert "do not produce" in str(apart)
    assert "nr.contest" not in str(apart)


def test_a_gating_no_neuron_has_is_not_kept():
    data = tasks.context_decision()
    found = nr.reln.consistency(*tasks.natural_gatings(data)["context"], scale=1e-3)
    assert found.share < 0.1
    assert set(found.pathways) == {"context1", "context2"}


def test_the_share_of_one_pathway_is_that_of_the_gating():
    """Its share falls while it learns, so that every moment must count alike in both."""
    data = tasks.context_decision()
    found = nr.reln.consistency(*nr.pathways(data, {"left": data.y["y"][:, 0] < 0}, 40), scale=1e-3)
    assert np.ptp(found.over_time["left"]) > 0.1
    assert found.pathways["left"] == pytest.approx(found.share)
    fall = np.abs(np.gradient(found.loss))
    assert found.share == pytest.approx(np.average(found.over_time["left"], weights=fall))


@pytest.mark.parametrize("name", ["answer", "context"])
def test_the_share_of_a_gating_lies_between_those_of_its_pathways(name):
    """Pathways that are images of each other have one share, which is also that of the gating."""
    data = tasks.context_decision()
    found = nr.reln.consistency(*tasks.natural_gatings(data)[name], scale=1e-3)
    shares = list(found.pathways.values())
    assert min(shares) - 1e-9 <= found.share <= max(shares) + 1e-9, shares
    if np.ptp(shares) < 1e-9:
        assert found.share == pytest.approx(shares[0])
    for pathway, share in found.pathways.items():
        assert found.lost[pathway].sum() == pytest.approx(1 - share, abs=1e-6) or share == 0


@pytest.mark.parametrize("task", [tasks.extended_xor(0.4), tasks.ring_classification(12)])
def test_the_gates_a_network_aligns_to_are_kept(task):
    found = nr.reln.consistency(*nr.reln.aligned(task, width=100, neurons=500), scale=1e-3)
    assert found.share > 0.95


def test_a_single_pathway_that_is_always_on_is_kept_where_inputs_and_targets_are_positive():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(8, 3))
    data = nr.Dataset({"x": x}, {"y": x @ rng.uniform(size=(3, 1))})
    found = nr.reln.consistency(*nr.pathways(data, {"common": None}, hidden=20), scale=1e-4)
    assert found.share > 0.95
    centred = nr.Dataset({"x": x - x.mean(axis=0)}, {"y": data.y["y"] - data.y["y"].mean()})
    found = nr.reln.consistency(*nr.pathways(centred, {"common": None}, hidden=20), scale=1e-4)
    assert found.share < 0.8  # needs pairs of opposite neurons


def test_gates_per_neuron_and_a_start_from_weights():
    data = tasks.extended_xor(1.2)
    arch = nr.Architecture.chain(3, 20, 1)
    positive = data.labels["positive"].astype(float)
    gated = data.gated({"h": np.stack([positive] * 10 + [1 - positive] * 10, axis=1)})
    weights = nr.GDLN(arch).init(jax.random.key(0), scale=1e-3)
    found = nr.reln.consistency(arch, gated, start=weights)
    assert found.share == pytest.approx(1, abs=0.02)
    assert len(found.pathways) == 2


def test_two_hidden_layers():
    arch = nr.Architecture.chain(2, 6, 6, 1)
    x = np.array([[1.0, 0.2], [0.3, 1.0], [1.0, 1.0]])
    data = nr.Dataset({"x": x}, {"y": x @ [[1.0], [1.0]]})
    found = nr.reln.consistency(arch, data, scale=0.05)
    assert set(found.pathways) == set(arch.hidden)
    assert found.share > 0.9


def two_layers(arch, data, width=20):
    """A gating with the same mask on two hidden layers of every pathway."""
    sizes = {v: n for v, n in arch.sizes.items() if v not in arch.hidden}
    edges, gates = {}, {}
    for node in arch.hidden:
        below, above = f"{node}_1", f"{node}_2"
        sizes |= {below: width, above: width}
        edges |= {f"x_{below}": ("x", below), f"{above}_y": (above, "y")}
        edges[f"{node}_12"] = (below, above)
        gates |= {below: data.gates[node], above: data.gates[node]}
    return nr.Architecture(sizes, edges), data.gated(gates)


def test_gates_that_no_first_layer_neuron_can_have_are_not_kept_in_two_layers():
    """Where the second layer's gate is off no error reaches the first, whose neurons are on."""
    data = tasks.context_decision(cue=1.0)
    arch, gated = tasks.natural_gatings(data)["answer"]
    can = [nr.reln.is_implementable(mask, data.x["x"]) for mask in gated.gates.values()]
    assert can == [False, False]
    one = nr.reln.consistency(arch, gated, scale=1e-3).share
    two = nr.reln.consistency(*two_layers(arch, gated), scale=1e-2).share
    assert one < 0.6 and two < 0.6
    task = tasks.extended_xor(0.4)
    kept = nr.reln.consistency(*two_layers(*tasks.xor_pathways(task)), scale=1e-2)
    assert kept.share > 0.99


def test_a_hand_over_to_a_relu_network():
    data = tasks.extended_xor(1.2)
    kept = nr.reln.consistency(*tasks.linear_pathways(data, 4), scale=0.02, check="handover")
    assert kept.handover == pytest.approx(1, abs=0.05)
    assert "takes over" in str(kept)
    assert kept.is_consistent
    assert replace(kept, share=0.5).is_consistent  # the hand-over decides
    for ratio in (0.84, 1.16, np.inf):
        assert not replace(kept, handover=ratio).is_consistent
    with refuses("start"):
        nr.reln.consistency(*tasks.linear_pathways(data), start=0.01, check="handover")


def test_a_hand_over_waits_until_the_loss_has_fallen():
    """At rates of 1 and a start of 1e-300 (squared) the loss begins to fall at t = 690."""
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    arch = nr.Architecture.chain(1, 1, 1)
    with jax.enable_x64(True):
        tiny = {edge: np.full((1, 1), 1e-300) for edge in arch.edges}
        assert handover(arch, data, tiny, 0.0) == pytest.approx(1, abs=0.05)
    nothing = {edge: np.zeros((1, 1)) for edge in arch.edges}
    with refuses("weights"):
        handover(arch, data, nothing, 0.0)


def test_the_picture_shows_every_pathway():
    figure = nr.reln.consistency(*tasks.xor_pathways(tasks.extended_xor(0.4)), scale=1e-3).plot()
    left, right = figure.axes[:2]
    assert left.get_ylabel() == "kept share"
    assert [text.get_text() for text in left.texts] == ["kept from 0.9"]
    assert left.get_title().startswith("(a)") and right.get_title().startswith("(b)")
    assert [t.get_text() for t in right.get_yticklabels()] == [f"sample{i}" for i in range(1, 5)]
    by_side = tasks.natural_gatings(tasks.extended_xor(0.4), 16)["side"]
    lossy = nr.reln.consistency(*by_side, scale=1e-3).plot().axes[1]
    assert lossy.images[0].colorbar.ax.get_ylabel() == "share lost"


def test_what_is_not_possible_is_said():
    arch, data = tasks.xor_pathways(tasks.xor())
    with refuses("start"):
        nr.reln.consistency(arch, data)
    with refuses("check"):
        nr.reln.consistency(arch, data, scale=1e-3, check="hand")
    with refuses("scale"):
        nr.reln.consistency(arch, data, scale=-1)
    edge = data.gated({"x_sample1": [1, 0, 0, 0]})
    with says("hidden neurons only", got="'x_sample1'", wanted="'sample1'"):
        nr.reln.consistency(arch, edge, scale=1e-3)
    still = nr.pathways(tasks.parity(3), {"common": None}, hidden=4)
    with refuses("data"):
        nr.reln.consistency(*still, scale=1e-3)


def test_a_start_too_large_for_neurons_to_align_is_warned_of():
    arch, data = tasks.xor_pathways(tasks.extended_xor(0.4), 40)
    with pytest.warns(UserWarning, match="scale=0.5"):
        nr.reln.consistency(arch, data, scale=0.5)
    nr.reln.consistency(arch, data, scale=1e-3)  # a warning would be an error


def test_identical_inputs_with_different_gates_are_not_kept():
    data = nr.Dataset({"x": [[1.0, 0], [1, 0], [0, 1]]}, {"y": [[2.0], [1.0], [1.0]]})
    first, other = [1, 0, 1], [0, 1, 0]
    apart = nr.pathways(data, {"one": first, "two": other}, hidden=4)
    assert not nr.reln.consistency(*apart, scale=1e-3).is_consistent
    together = nr.pathways(data, {"one": [1, 1, 0], "two": [0, 0, 1]}, hidden=4)
    assert nr.reln.consistency(*together, scale=1e-3).share == pytest.approx(1)


@pytest.mark.parametrize("zero", ["x", "y"])
def test_nothing_to_learn_is_an_error(zero):
    x, y = np.ones((3, 2)) * (zero != "x"), np.ones((3, 1)) * (zero != "y")
    gating = nr.pathways(nr.Dataset({"x": x}, {"y": y}), {"all": None}, hidden=4)
    what = "all inputs are zero" if zero == "x" else "all targets are zero"
    with says(what, got="all 0", wanted="not 0"):
        nr.reln.consistency(*gating, scale=1e-3)


def test_gates_of_a_leaky_network():
    data = tasks.extended_xor(1.2)
    arch, gated = tasks.linear_pathways(data, 8)
    leaky = gated.gated({v: np.where(np.asarray(g) > 0, 1.0, 0.1) for v, g in gated.gates.items()})
    assert nr.reln.consistency(arch, leaky, scale=1e-3, leak=0.1).share == pytest.approx(1)
    assert nr.reln.consistency(arch, leaky, scale=1e-3).share < 0.999
    with refuses("leak"):
        nr.reln.consistency(arch, gated, scale=1e-3, leak=-1)


def test_biases_are_edges_like_any_other():
    arch = nr.ReLUNetwork((2, 8, 1), bias=True).arch
    x = np.array([[1.0, 0.2], [0.3, 1.0], [1.0, 1.0]])
    data = nr.Dataset({"x": x}, {"y": x @ [[1.0], [1.0]]})
    found = nr.reln.consistency(arch, data, scale=1e-3)
    assert set(found.pathways) == {"h"}
    assert found.share > 0.9


def test_a_race_that_takes_long_is_solved_in_stretches():
    """The losses of all stretches together are those of one solution at the same times."""
    race = nr.reduce(*tasks.natural_gatings(tasks.gaussian(samples=8, key=1))["answer"])
    start = race.start(1e-6)
    found = over_the_fall(race, start)
    assert len(found.time) > 30
    assert (np.diff(found.time) > 0).all()
    once = race.solve(times=np.concatenate([[0.0], found.time]), start=start)
    assert found.loss == pytest.approx(once.loss[1:], rel=1e-6)
    gaps = -np.diff(found.loss)
    assert gaps.max() < 1.5 * np.median(gaps)


def test_gates_that_no_neuron_can_have_are_not_kept_with_one_hot_targets():
    """Wrong gates on samples of another class change no error of the gated network itself."""
    bits = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], float)
    same = bits[:, 0] == bits[:, 1]
    inputs = {"x": np.hstack([bits, np.ones((4, 1))])}
    for targets in (np.eye(2)[same.astype(int)], 2.0 * same[:, None] - 1):
        data = nr.Dataset(inputs, {"y": targets})
        arch, gated = nr.pathways(data, {"same": same, "other": ~same}, hidden=20)
        assert not nr.reln.is_implementable(same, inputs["x"])
        assert nr.reln.consistency(arch, gated, scale=1e-4).share < 0.9


def test_a_race_at_rest_is_told_from_one_that_creeps():
    """Waiting is over where nothing moves, and not at a saddle, which a small weight leaves."""
    from neuralrace.reln.explained.fall import _Stretch

    def rests(small, grown):
        w = np.array([[[1.0, small]], [[1.0, grown]]])
        solution = nr.Trajectory([0, 1], [1.0, 1.0], values={"variables": {"mode": {"e": w}}})
        return _Stretch(solution.time, None, solution).rests(1e-14)  # type: ignore[arg-type]

    assert rests(0.5, 0.5) and rests(0.5, 0.5 * (1 + 1e-8))
    assert rests(0.0, 1e-15)
    assert not rests(1e-9, 1.01e-9)
    assert not rests(0.5, 0.49)


@pytest.mark.parametrize("start", [1e-14, 1e-5])
def test_the_fall_goes_on_past_a_saddle_that_tiny_weights_leave(start):
    """At the saddle between two modes, the weights of the second are tiny, and grow."""
    data = nr.Dataset({"x": np.diag([1.0, 0.02])}, {"y": np.eye(2)})
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    found = over_the_fall(race, race.start(start))
    assert found.loss[-1] == pytest.approx(0.1 * found.loss[0], rel=1e-2)


def test_waiting_for_a_race_ends_where_it_rests(monkeypatch):
    """Stretches double: without an end at rest there would be 14 of them, up to 1e5."""
    edges = {"a": ("x", "h"), "b": ("h", "y"), "c": ("x", "k"), "d": ("k", "y")}
    arch = nr.Architecture({"x": 1, "h": 1, "k": 1, "y": 1}, edges)
    gates = {"h": np.ones(4), "k": np.array([0.0, 0.0, 1.0, 1.0])}
    data = nr.Dataset({"x": np.ones((4, 1))}, {"y": [[3.0], [3.0], [0.5], [0.5]]}, gates)
    race = nr.reduce(arch, data)  # from equal starts, k cannot become negative
    begun, later = [], fall.later
    monkeypatch.setattr(fall, "later", lambda *args: begun.append(args) or later(*args))
    over_the_fall(race, race.start(0.1))
    assert 1 <= len(begun) < 10


@pytest.mark.parametrize("depth", [1, 2])
def test_gates_that_no_first_neuron_can_have_are_not_kept_at_any_depth(depth):
    """Masks by answer are not separable, by a linear program of SciPy; by context they are."""
    from scipy.optimize import linprog

    data = nr.tasks.context_decision(levels=2, cue=1.0)
    x, answer = np.asarray(data.x["x"]), nr.tasks.answers(data)

    def separable(mask):
        side = np.where(mask, -1.0, 1.0)[:, None] * x
        bound = np.where(mask, -1.0, 0.0)
        return linprog(np.zeros(x.shape[1]), side, bound, bounds=(None, None)).success

    masks = {f"answer{a}": answer == a for a in np.unique(answer)}
    masks["first"] = np.asarray(data.labels["context"]) == 1
    for name, mask in masks.items():
        pair = nr.pathways(data, {name: mask, "all": None}, hidden=6, depth=depth)
        found = nr.reln.consistency(*pair, scale={1: 1e-3, 2: 0.1}[depth])
        first = name if depth == 1 else f"{name}_1"
        assert found.implementable[first] == separable(mask)
        assert set(found.implementable) == {
            v for v in pair[0].hidden if v in (first, "all", "all_1")
        }
        frame = found.frame().set_index("pathway")["implementable"]
        assert frame[first] == separable(mask)
    assert not any(separable(masks[name]) for name in masks if name != "first")
    by_answer = nr.pathways(data, {k: m for k, m in masks.items() if k != "first"}, hidden=6,
                            depth=depth)  # fmt: skip
    assert nr.reln.consistency(*by_answer, scale={1: 1e-3, 2: 0.1}[depth]).share < 0.85
