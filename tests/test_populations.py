"""Populations: second moments in place of samples, and what refuses them."""

import dataclasses

import numpy as np
import optax
import pytest

import neuralrace as nr
from tests.test_errors import refuses

RNG = np.random.default_rng(0)
ARCH = nr.Architecture.chain(3, 6, 2)
NET = nr.GDLN(ARCH)
SAMPLES = nr.Dataset({"x": RNG.normal(size=(20, 3))}, {"y": RNG.normal(size=(20, 2))})
POPULATION = nr.Dataset.from_moments(SAMPLES.moments())
RELU = nr.ReLUNetwork((3, 6, 2))


def second_moments(data):
    """The moments of all rows together, with gates left aside: by hand."""
    rows = np.concatenate([*data.x.values(), *data.y.values()], axis=1)
    return (rows * np.asarray(data.probability)[:, None]).T @ rows


def test_rows_have_the_moments():
    rng = np.random.default_rng(1)
    joint = rng.normal(size=(7, 7))
    joint = joint @ joint.T
    xx = {("a", "a"): joint[:2, :2], "b": joint[2:5, 2:5], ("b", "a"): joint[2:5, :2]}
    yx = {("y", "a"): joint[5:, :2], ("y", "b"): joint[5:, 2:5]}
    data = nr.Dataset.from_moments(xx, yx, joint[5:, 5:])
    np.testing.assert_allclose(second_moments(data), joint, atol=1e-12)
    assert data.n_samples == 7 and data.is_population
    (again,) = data.moments()
    np.testing.assert_allclose(again.yx["y", "b"], joint[5:, 2:5], atol=1e-12)


def test_without_yy_targets_are_linear_in_the_inputs():
    xx, yx = np.diag([2.0, 1.0, 0.0]), np.array([[1.0, 0.5, 0.0]])
    data = nr.Dataset.from_moments(xx, yx)
    (found,) = data.moments()
    np.testing.assert_allclose(found.yy["y", "y"], yx @ np.linalg.pinv(xx) @ yx.T)
    assert nr.reduce(nr.Architecture.chain(3, 2, 1), data).constant < 1e-12


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_units_of_features_do_not_matter(size):
    unit = np.array([1.0, size, 1 / size])
    xx = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]) * unit[:, None] * unit
    yx = np.array([[0.4, 0.3, 0.1]]) * unit * size
    data = nr.Dataset.from_moments(xx, yx, [[size**2]])
    expected = np.block([[xx, yx.T], [yx, np.array([[size**2]])]])
    root = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        second_moments(data) / root[:, None] / root, expected / root[:, None] / root, atol=1e-12
    )


def test_chunks_are_the_moments_of_all_samples():
    x, y, gate = RNG.normal(size=(50, 3)), RNG.normal(size=(50, 2)), np.arange(50) % 3 > 0
    whole = nr.Dataset({"x": x}, {"y": y}, {"h": gate})
    chunks = (whole.take(slice(low, low + 7)) for low in range(0, 50, 7))
    data = nr.Dataset.from_moments(chunks)
    for ours, theirs in zip(data.moments(), whole.moments(), strict=True):
        assert ours.probability == pytest.approx(theirs.probability)
        assert ours.gates["h"] == theirs.gates["h"]
        np.testing.assert_allclose(ours.xx["x", "x"], theirs.xx["x", "x"], atol=1e-12)
        np.testing.assert_allclose(ours.yx["y", "x"], theirs.yx["y", "x"], atol=1e-12)


def test_moments_of_a_class_by_hand():
    gate = np.array([0.0, 0.5] * 10)
    weight = RNG.uniform(size=20)
    data = nr.Dataset(SAMPLES.x, SAMPLES.y, {"h": gate}, weight)
    off, half = data.moments()
    on = gate == 0.5
    share = weight[on] / weight[on].sum()
    expected = np.einsum("n,ni,nj->ij", share, data.y["y"][on], data.x["x"][on])
    np.testing.assert_allclose(half.yx["y", "x"], expected)
    assert half.probability == pytest.approx(weight[on].sum() / weight.sum())
    assert (off.gates["h"], half.gates["h"]) == (0.0, 0.5)


def test_a_mixture_weighs_its_parts():
    other = nr.Dataset.from_moments(np.eye(3), np.ones((2, 3)) / 3, gates={"h": 0.5})
    data = nr.Dataset.mixture({"samples": (0.25, SAMPLES), "moments": (0.75, other)})
    assert data.is_population and set(data.labels["part"]) == {"samples", "moments"}
    expected = 0.25 * second_moments(SAMPLES) + 0.75 * second_moments(other)
    np.testing.assert_allclose(second_moments(data), expected, atol=1e-12)
    np.testing.assert_array_equal(data.gates["h"][: SAMPLES.n_samples], 1.0)
    assert data.take(data.mask(part="moments")).n_samples == other.n_samples
    assert not nr.Dataset.mixture({"all": (1.0, SAMPLES)}).is_population


def test_a_population_learns_as_its_samples_do():
    weights = NET.init(0, scale=0.3)
    runs = [
        nr.train(NET, weights, data, learning_rate=0.1, steps=50) for data in (SAMPLES, POPULATION)
    ]
    np.testing.assert_allclose(runs[0].loss, runs[1].loss, rtol=1e-9)
    small = nr.compress(NET, weights, POPULATION)
    assert small.data.is_population
    clocks = [nr.contest({"one": (ARCH, data)}, scale=1e-2) for data in (SAMPLES, POPULATION)]
    times = [clock.frame()["time"].to_numpy() for clock in clocks]
    np.testing.assert_allclose(times[0], times[1], rtol=1e-6)


def test_generalisation_of_race_flow_and_descent():
    """Few samples are learned; the loss on the population follows, and so does that by hand."""
    rng = np.random.default_rng(3)
    teacher, x = rng.normal(size=(1, 8)), rng.normal(size=(5, 8))
    data = nr.Dataset({"x": x}, {"y": x @ teacher.T + 0.5 * rng.normal(size=(5, 1))})
    population = nr.Dataset.from_moments(np.eye(8), teacher, teacher @ teacher.T + 0.25)
    net = nr.GDLN(nr.Architecture.chain(8, 12, 1))
    weights, others = net.init(0, scale=1e-4), {"population": population}
    times = np.linspace(0.0, 40.0, 41)
    race = nr.reduce(net.arch, data).solve(times=times, start=weights, evaluate=others)
    flow = nr.flow(net, weights, data, times=times, evaluate=others, record={"weights": True})
    descent = nr.train(
        net, weights, data, learning_rate=0.01, steps=4000, record_every=100, evaluate=others
    )
    seen = [run.values["population"]["loss"] for run in (race, flow, descent)]
    scale = seen[1][0]
    assert np.abs(seen[0] - seen[1]).max() < 1e-3 * scale
    assert np.abs(seen[2] - seen[1]).max() < 0.03 * scale
    assert set(flow.values["population"]) == {"loss"}
    kept = flow.values["weights"]
    apart = np.array([b @ a for a, b in zip(kept["W1"], kept["W2"], strict=True)])[:, 0] - teacher
    np.testing.assert_allclose(seen[1], ((apart**2).sum(axis=1) + 0.25) / 2, rtol=1e-6)


NEEDS_SAMPLES = {
    "relu": lambda d: nr.train(RELU, RELU.init(0), d, learning_rate=0.1, steps=1),
    "relu flow": lambda d: nr.flow(RELU, RELU.init(0), d, times=[0, 1]),
    "relu ensemble": lambda d: nr.train_ensemble(RELU, d, seeds=2, learning_rate=0.1, steps=1),
    "relu outputs": lambda d: RELU(RELU.init(0), d),
    "activity": lambda d: RELU.activity(RELU.init(0), d),
    "evaluate": lambda d: nr.train(
        RELU, RELU.init(0), SAMPLES, learning_rate=0.1, steps=1, evaluate={"all": d}
    ),
    "cross-entropy": lambda d: nr.train(
        NET, NET.init(0), d, learning_rate=0.1, steps=1, loss="cross_entropy"
    ),
    "loss": lambda d: NET.loss(NET.init(0), d, "cross_entropy"),
    "batches": lambda d: nr.train(
        NET, NET.init(0), d, learning_rate=0.1, steps=1, batch_size=2, key=0
    ),
    "outputs": lambda d: nr.train(
        NET, NET.init(0), d, learning_rate=0.1, steps=1, record={"outputs": True}
    ),
    "accuracy": lambda d: nr.losses.accuracy(NET(NET.init(0), d), d),
    "predict": lambda d: nr.predict(d, width=10),
    "explain": lambda d: nr.explain(d),
    "rank_patterns": lambda d: nr.rank_patterns(d),
    "check": lambda d: nr.contest({"one": (ARCH, d)}, scale=1e-3).check(),
    "types": lambda d: nr.reln.types(d, width=10, scale=1e-3, learning_rate=0.1, steps=10),
    "aligned_patterns": lambda d: nr.reln.aligned_patterns(d),
    "consistency": lambda d: nr.reln.consistency(ARCH, d),
    "symmetries": lambda d: nr.reln.symmetries(d),
    "hidden": lambda d: nr.analysis.hidden(NET, NET.init(0), d, "h"),
    "tangent_kernel": lambda d: nr.analysis.tangent_kernel(NET, NET.init(0), d),
    "to_torch": lambda d: nr.to_torch(NET, NET.init(0), d),
    "one_per_sample": lambda d: d.one_per_sample(),
    "take": lambda d: d.take([0, 1]),
}


@pytest.mark.parametrize("call", NEEDS_SAMPLES.values(), ids=NEEDS_SAMPLES.keys())
def test_what_needs_single_samples_refuses_a_population(call):
    with refuses("samples"):
        call(POPULATION)


def test_a_network_of_ones_own_needs_samples():
    class Tanh(nr.Network):
        def responses(self, weights, data):
            return self.prepared(weights, data)[1]

    with refuses("samples", "Tanh"):
        Tanh(ARCH).responses(NET.init(0), POPULATION)
    adam = optax.adam(0.1)
    run = nr.train(NET, NET.init(0), POPULATION, optimizer=adam, steps=2)
    assert run.outputs is None and len(run.loss) == 3


def test_gates_within_a_part_and_missing_means_are_refused():
    with refuses("gates"):
        POPULATION.gated({"h": np.arange(POPULATION.n_samples)})
    with refuses("bias"):
        nr.reduce(ARCH.with_bias(), POPULATION)
    moments = {"x": np.eye(3), "bias": [[1.0]], ("x", "bias"): np.full((3, 1), 0.5)}
    means = nr.Dataset.from_moments(
        moments, {("y", "x"): np.zeros((2, 3)), ("y", "bias"): [[0.1], [0.2]]}
    )
    assert nr.reduce(ARCH.with_bias(), means).blocks


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("xx", ([[1.0, 0.2], [0.3, 1.0]], [[0.1, 0.1]])),
        ("xx", ([[1.0, 2.0], [2.0, 1.0]], [[0.1, 0.1]])),
        ("xx", ([[-1.0]], [[0.1]])),
        ("xx", ([[0.0, 0.1], [0.1, 1.0]], [[0.1, 0.1]])),
        ("xx", ([[1.0, 0.0]], [[0.1, 0.1]])),
        ("xx", ({("x",): [[1.0]]}, [[0.1]])),
        ("xx", ([[np.nan]], [[0.1]])),
        ("yx", ([[1.0]], [[1.1]], [[1.0]])),
        ("yx", ([[0.0, 0.0], [0.0, 1.0]], [[0.1, 0.1]])),
        ("yx", ([[1.0]], [[0.1, 0.2]])),
        ("yx", ([[1.0]],)),
        ("yy", ([[1.0]], [[0.1], [0.2]], [[1.0, 0.5], [0.4, 1.0]])),
        ("yy", ([[1.0]], [[0.1]], [[1.0, 0.0], [0.0, 1.0]])),
        ("gates", ([[1.0]], [[0.1]], None, {"h": [[1.0]]})),
    ],
)
def test_moments_that_no_distribution_has(argument, arguments):
    with refuses(argument):
        nr.Dataset.from_moments(*arguments)


def test_bad_mixtures_and_chunks():
    other = nr.Dataset.from_moments(np.eye(2), [[0.1, 0.1]])
    with refuses("parts"):
        nr.Dataset.mixture({"a": (0.5, POPULATION), "b": (0.4, POPULATION)})
    with refuses("a"):
        nr.Dataset.mixture({"a": (-0.5, POPULATION), "b": (1.5, POPULATION)})
    with refuses("parts"):
        nr.Dataset.mixture({"a": POPULATION})
    with refuses("mixture"):
        nr.Dataset.mixture({"a": (0.5, POPULATION), "b": (0.5, other)})
    with refuses("chunks"):
        nr.Dataset.from_moments(iter([]))
    with refuses("chunks"):
        nr.Dataset.from_moments(iter([1, 2]))
    with refuses("chunk"):
        nr.Dataset.from_moments(iter([POPULATION]))


def test_the_explorer_refuses_a_population():
    with refuses("data"):
        nr.explore((ARCH, POPULATION))


def test_parts_of_a_mixture_have_gates_of_one_width():
    part = lambda width: nr.Dataset({"x": np.eye(2)}, {"y": np.eye(2)}, {"h": np.ones((2, width))})
    with refuses("h"):
        nr.Dataset.mixture({"a": (0.5, part(3)), "b": (0.5, part(4))})


def test_moments_without_yy_stay_without_noise():
    """Taken and given again, one by one or beside moments that have them."""
    whole = nr.Dataset.from_moments([[1.0]], [[1.0]])
    bare = dataclasses.replace(whole.moments()[0], yy=None)
    (again,) = nr.Dataset.from_moments([bare]).moments()
    np.testing.assert_allclose(again.yy["y", "y"], 1.0)
    with refuses("yy"):
        nr.Dataset.from_moments([bare, whole.moments()[0]])
