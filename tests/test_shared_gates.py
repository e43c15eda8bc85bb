"""Recurrent networks with gates: who wins the race, and what a ReLU network's own gates are."""

import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks
from neuralrace.contests import Kept
from neuralrace.contests.times import learning_time
from tests.test_errors import refuses


def cued(width=12, steps=3):
    base = tasks.cued_accumulation(2, steps)
    return {
        "cue": tasks.pathway_per_cue(base, width),
        "common": tasks.common_pathway(base, 2 * width),
    }


def when(arch, data, weights, criterion, end):
    """When the loss of gradient flow of the whole network falls to the criterion."""
    times = np.linspace(0, end, 401)
    run = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-9)
    return float(np.interp(-criterion, -run.loss, run.time))


def gaussian(arch, scale, seed):
    rng = np.random.default_rng(seed)
    return {n: scale * rng.normal(size=shape) for n, shape in arch.shapes.items()}


def test_times_of_recurrent_gatings_are_those_of_their_flows():
    candidates = cued()
    found = nr.contest(candidates, start=0.1, criterion=0.6, relative=True, leads=False)
    assert found.winner == "common"  # it learns half of the task, but sooner
    for name, (arch, data) in candidates.items():
        entrant = found.entrants[name]
        run = entrant.race.solve(times=[0, entrant.time], start=0.1)
        weights = entrant.race.weights(run, 0.0)
        at = when(arch, data, weights, entrant.criterion, 1.1 * entrant.time)
        assert entrant.time == pytest.approx(at, rel=1e-4)
    assert found.entrants["common"].learns == pytest.approx(0.5)
    assert found.check().verdict("cue") is Kept.UNKNOWN
    assert np.isnan(found.kept["cue"])


def test_times_from_small_random_weights():
    """Nothing fitted: the start is what the weights of each candidate are."""
    candidates = cued()
    starts = {name: gaussian(arch, 1e-3, 1) for name, (arch, _) in candidates.items()}
    found = nr.contest(candidates, start=starts, criterion=0.6, relative=True, leads=False)
    for name, (arch, data) in candidates.items():
        entrant = found.entrants[name]
        at = when(arch, data, starts[name], entrant.criterion, 1.1 * entrant.time)
        assert entrant.time == pytest.approx(at, rel=2e-3)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_average_start_is_that_of_many_draws(steps):
    """r = ½ (W_x v + W_yᵀu) of Gaussian weights has the expected squared length N σ²/2."""
    arch = nr.Architecture.recurrent(3, 30, 3, steps)
    data = tasks.sequence_teacher(3, 3, steps, strengths=(1.0,), decays=(0.8,))
    race = nr.reduce(arch, data)
    start = nr.contests.expected_start(race, 1e-3)
    seen = [race.start(gaussian(arch, 1e-3, k)).weights[0]["Wx"].item() ** 2 for k in range(200)]
    error = np.std(seen) / len(seen) ** 0.5
    assert start.weights[0]["Wx"].item() ** 2 == pytest.approx(30 * 1e-6 / 2)
    assert abs(np.mean(seen) - 30 * 1e-6 / 2) < 4 * error
    if steps > 1:
        assert start.weights[0]["Wh"].item() == 0
        assert 0 < start.noise < 0.1
        assert not start.is_exact


def test_the_average_start_of_an_autoencoder():
    """W v alone grows: its expected squared length is N σ²."""
    arch = nr.Architecture.autoencoder(3, 20)
    x = np.diag([3.0, 2.0, 1.0])
    race = nr.reduce(arch, nr.Dataset({"x": x}, {"y": x}))
    start = nr.contests.expected_start(race, 1e-2)
    for weights in start.weights:
        assert weights["W1"].item() ** 2 == pytest.approx(20 * 1e-4)


def test_no_average_start_after_a_delay():
    base = tasks.delayed_report(2, steps=4)
    with refuses("late"):
        nr.contest({"late": tasks.common_pathway(base, 8)}, scale=1e-3)


def test_a_race_that_is_followed_in_pieces_keeps_what_its_start_leaves_out():
    """After a delay random weights decide: the time is that of the network, however it is found."""
    base = tasks.delayed_report(1, steps=2)
    arch, data = tasks.common_pathway(base, 4)
    weights = gaussian(arch, 0.05, 0)
    race = nr.reduce(arch, data)
    criterion = 0.5 * nr.dataset.zero_loss(data)
    found = learning_time(race, race.start(weights), criterion, 1e4)
    at = when(arch, data, weights, criterion, 1.1 * found.time)
    assert found.time == pytest.approx(at, rel=1e-3)


def test_candidates_side_by_side_keep_their_ties():
    candidates = cued(4, 2)
    found = nr.contest(candidates, scale=1e-2, criterion=0.6, relative=True, leads=False)
    together = found.joint(times=np.linspace(0, 20, 11))
    assert set(together.arch.ties) == {
        *(f"cue__cue{c}_{w}" for c in (1, 2) for w in ("Wx", "Wh", "Wy")),
        *(f"common__common_{w}" for w in ("Wx", "Wh", "Wy")),
    }
    loss = nr.GDLN(together.arch).loss(together.runs[0].final, together.data)
    assert float(loss) == pytest.approx(together.runs[0].loss[-1])
    carried = sum(part[0, -1] for part in together.carried.values())
    assert carried == pytest.approx(1.0, abs=0.05)


def test_what_a_contest_does_not_know_of_shared_weights():
    candidates = cued(4, 2)
    with refuses("ties"):
        nr.contest(candidates, start=0.1, bias=True)
    with refuses("ties"):
        nr.reln.consistency(*candidates["cue"], start=0.1)


# ---- ReLU networks ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case():
    arch = nr.Architecture.recurrent(2, 10, 1, steps=3, leak=0.2)
    x = np.random.default_rng(0).normal(size=(9, 3, 2))
    data = tasks.sequences(x, np.abs(x[:, :, 0]).sum(1)[:, None])
    net = nr.ReLUNetwork(arch)
    run = nr.train(
        net, net.init(0, scale=0.3), data, learning_rate=0.02, steps=120, record_every=5,
        record={"weights": True},
    )  # fmt: skip
    return net, data, run


def active(data, weights):
    """Pre-activations of every neuron at every step, (T, N, size)."""
    h, found = 0.0, []
    for t in (1, 2, 3):
        z = data.x[f"x{t}"] @ weights["Wx"].T
        if t > 1:
            z = z + h @ weights["Wh"].T + 0.2 * h
        h = np.maximum(z, 0)
        found.append(z)
    return np.stack(found)


def test_activity_over_samples_and_steps(case):
    _, data, run = case
    found = nr.reln.activity(run, data, boundary=0.0)
    for k in (0, 7, -1):
        at = {n: np.asarray(w[k]) for n, w in run.values["weights"].items()}
        z = active(data, at)
        for t in range(3):
            np.testing.assert_array_equal(found.on[f"h{t + 1}"][k], z[t] > 0)
        into = at["Wx"] ** 2
        middle = np.sqrt(into.sum(1) + (at["Wh"] ** 2).sum(1) + 0.04)
        out = np.sqrt((at["Wh"] ** 2).sum(0) + 0.04)
        np.testing.assert_allclose(found.weight["h2"][k], middle * out)


@pytest.mark.parametrize("pathways", [1, 3])
def test_pathways_over_samples_and_steps(case, pathways):
    net, data, run = case
    found = nr.reln.discover(run, data, pathways)
    first = {n: np.asarray(w[0]) for n, w in run.values["weights"].items()}
    members = [layer.member for layer in found.layers.values()]
    assert all((member == members[0]).all() for member in members)  # one pathway at all steps
    z = [active(data, {n: np.asarray(w[k]) for n, w in run.values["weights"].items()}) > 0
         for k in range(len(run.time))]  # fmt: skip
    on = np.stack(z).transpose(0, 3, 1, 2).reshape(len(z), 10, -1)  # moments, neurons, steps · N
    gates = np.concatenate([found.patterns[f"h{t}"] for t in (1, 2, 3)], axis=1)
    if pathways == 1:
        seen = nr.reln.activity(run, data, boundary=0.0)
        votes = np.mean([seen.counted(v, 0.0) for v in net.arch.hidden], axis=0)
        mean = np.einsum("tm,tmn->n", votes, on) / votes.sum()
        sure = np.abs(mean - 0.5) > 1e-9
        np.testing.assert_array_equal(gates[0][sure], (mean > 0.5)[sure])
    whole = nr.train(
        nr.GDLN(net.arch), first, data.gated(found.gates()), learning_rate=0.02, steps=120,
        record_every=5,
    )  # fmt: skip
    split = found.network()
    apart = nr.train(
        nr.GDLN(split.arch), split.split(first), split.data, learning_rate=0.02, steps=120,
        record_every=5,
    )  # fmt: skip
    np.testing.assert_allclose(apart.loss, whole.loss, rtol=1e-9)
    assert found.followed[0].mean == pytest.approx(nr.compare(run, whole).mean, rel=1e-6)
    assert {name[:2] for name in split.arch.hidden} == {"h1", "h2", "h3"}


def test_explanations_and_copied_gates(case):
    _, data, run = case
    fine = nr.reln.copied_gates(run, data)
    assert nr.compare(run, fine).mean < 0.02
    found = nr.explain(run, data=data, rows=("discovered", "narrow", "types"), seeds=1, most=2)
    assert "types" in found.left_out
    kinds = {row.kind for row in found.rows}
    assert len(found.rows) == 2 and kinds == {"gating", "narrow"}
    for row in found.rows:
        assert np.isfinite(row.error)


def test_pathways_of_steps_must_agree(case):
    _, data, run = case
    with refuses("pathways"):
        nr.reln.discover(run, data, {"h1": 1, "h2": 2, "h3": 2})
    with refuses("ties"):
        nr.reln.sliding_over(run, data)
    with refuses("ties"):
        nr.reln.staged(run, data, stages=2)
