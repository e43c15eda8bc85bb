"""The race at a moment of learned gates, and how equal pathways split: against autodiff."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import neuralrace as nr
from neuralrace.reduction import race_of, splits
from tests.test_errors import refuses


def problem(seed: int, edges: int = 2, contexts: int = 3, size: float = 1.0, **more):
    """Random teachers of several contexts, unequal probabilities, inputs of any covariance."""
    rng = np.random.default_rng(seed)
    z = np.arange(24) % contexts
    x = rng.normal(size=(24, 4)) @ rng.normal(size=(4, 4)) * size
    y = np.einsum("nij,nj->ni", rng.normal(size=(contexts, 3, 4))[z], x)
    y = y + 0.3 * rng.normal(size=y.shape)
    data = nr.Dataset({"x": x}, {"y": y}, None, rng.uniform(0.5, 2, 24), labels={"task": z})
    hidden = {"a": 5, "b": 5} if edges == 2 else {"a": 4, "b": 4}
    arch = nr.Architecture.parallel({"x": 4}, hidden, {"y": 3})
    if edges == 1:
        arch = nr.Architecture(arch.sizes, arch.edges, frozen={"x_a": 1.5, "x_b": 1.5})
    more = {"rate": float(rng.uniform(0.5, 20)), "budget": 2.0} | more
    return nr.LearnedGates(arch, labels={"task": tuple(range(contexts))}, **more), data


@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", [0.1, 3.0])
def test_growth_is_that_of_the_linearised_flow(edges, seed, size):
    """The largest eigenvalues of the Jacobian of the velocity at the state of equal gates."""
    net, data = problem(seed, edges, size=size, decay=0.3 if seed == 2 else 0.0)
    found = splits(net, data)
    flat, back = ravel_pytree({e: np.asarray(w) for e, w in found.weights.items()})
    velocity = lambda v: ravel_pytree(net.velocity(back(v), data))[0]
    speed = np.abs(np.asarray(velocity(flat))).max()
    assert speed < 1e-8 * max(1.0, size**2)  # at rest
    jacobian = np.asarray(jax.jacobian(velocity)(flat))
    rates = np.sort(np.linalg.eigvals(jacobian).real)[::-1]
    np.testing.assert_allclose(rates[: len(found.growth)], found.growth, rtol=1e-5)
    assert len(found.growth) == max((found.totals > 0).sum() - 1, 0) or net.decay
    assert rates[len(found.growth)] < 1e-4 * np.abs(rates).max()


def test_pattern_is_what_a_small_difference_becomes():
    net, data = problem(5, 2, rate=8.0)
    found, rng = splits(net, data), np.random.default_rng(0)
    start = {e: w + 1e-7 * rng.normal(size=w.shape) for e, w in found.weights.items()}
    end = 9.0 / found.growth[0]
    times = np.linspace(0, end, 10)
    run = nr.flow(net, start, data, times=times, record={"weights": True})
    w = run.values["weights"]
    apart = (w["task_gates_a"] - w["task_gates_b"])[:, 0]
    slope = np.log(np.linalg.norm(apart[9]) / np.linalg.norm(apart[6])) / (times[9] - times[6])
    assert slope == pytest.approx(found.growth[0], rel=0.02)
    direction = apart[-1] / np.linalg.norm(apart[-1])
    assert abs(direction @ found.patterns[0]) > 0.99
    assert found.time(1e-3) == pytest.approx(np.log(500) / found.growth[0])
    frame = found.frame()
    assert list(frame["growth"].unique()) == list(found.growth) and len(found.sentences()) == 1
    found.plot()


@pytest.mark.parametrize("edges", [1, 2])
@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e6])
def test_splits_know_no_unit_of_the_targets(edges, unit):
    """Targets u·y with a budget u²·b: F grows by u, and the rate by u^½ for every edge and u^½."""
    net, data = problem(1, edges, rate=3.0)
    scaled, _ = problem(1, edges, rate=3.0, budget=2.0 * unit**2)
    found = splits(net, data)
    other = splits(scaled, nr.Dataset(data.x, {"y": unit * np.asarray(data.y["y"])}, None,
                                      data.probability, labels=data.labels))  # fmt: skip
    assert len(found.growth)
    np.testing.assert_allclose(other.growth, found.growth * unit ** ((edges + 1) / 2), rtol=1e-6)
    np.testing.assert_allclose(other.totals, found.totals, rtol=1e-6)


def test_two_teachers_by_hand():
    """White inputs, one edge: E = ±(T₁ − T₂)/4, so the rate is √rate · ‖T₁ − T₂‖/(2√2)."""
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=(2, 3, 4))
    two *= np.linalg.norm(one) / np.linalg.norm(two)  # gates of both contexts sum alike
    x = np.tile(2 * np.eye(4), (2, 1))
    y = np.concatenate([x[:4] @ one.T, x[4:] @ two.T])
    data = nr.Dataset({"x": x}, {"y": y}, labels={"task": [1] * 4 + [2] * 4})
    sizes = {"x": 4, "a": 4, "b": 4, "y": 3}
    edges = {f"{s}_{t}": (s, t) for s, t in ("xa", "xb", "ay", "by")}
    arch = nr.Architecture(sizes, edges, frozen={"x_a": 1.0, "x_b": 1.0})
    net = nr.LearnedGates(arch, labels={"task": (1, 2)}, rate=5.0, budget=1e9)
    wanted = np.sqrt(5.0) * np.linalg.norm(one - two) / (2 * np.sqrt(2))
    assert splits(net, data).growth == pytest.approx([wanted], rel=1e-6)
    same = nr.Dataset({"x": x}, {"y": x @ one.T}, labels={"task": [1] * 4 + [2] * 4})
    none = splits(net, same)
    assert len(none.growth) == 0 and none.time(1e-3) == np.inf and none.sentences()


def test_race_at_a_moment_is_the_network_with_its_gates_held():
    net, data = problem(3, 2, rate=3.0)
    run = nr.flow(
        net,
        net.init(0, scale=0.3),
        data,
        times=[0, 2, 9],
        record={"weights": True, "outputs": True},
    )
    weights = {e: w[1] for e, w in run.values["weights"].items()}
    race = race_of(run, data, 2.2)
    held = data.gated(net.activity(weights, data))
    of_graph = {e: weights[e] for e in net.graph.matrices}
    by_hand = nr.reduce(net.graph, held)
    assert [b.dims for b in race.blocks] == [b.dims for b in by_hand.blocks]
    later = np.linspace(0, 3, 4)
    solved = race.solve(times=later, start=of_graph)
    flow = nr.flow(nr.GDLN(net.graph), of_graph, held, times=later)
    assert abs(solved.loss - flow.loss).max() < 0.05 * flow.loss[0]
    relu = nr.ReLUNetwork((4, 5, 3))
    descent = nr.train(relu, relu.init(0, scale=0.3), data, learning_rate=0.01, steps=5)
    assert race_of(descent, data).residual < 1e-12


def test_bad_input():
    net, data = problem(0)
    run = nr.flow(net, net.init(0, scale=0.3), data, times=[0, 1])
    with refuses("time"):
        race_of(run, data, 0.5)
    with refuses("run"):
        race_of(nr.Trajectory([0, 1], [1.0, 0.5]), data)
    arch = net.graph
    labels = {"task": (0, 1, 2)}
    for wrong in (
        nr.LearnedGates(arch, labels=labels, kind="softmax"),
        nr.LearnedGates(arch, labels=labels, neurons=True),
        nr.LearnedGates(arch, nodes=("a",), labels=labels),
        nr.LearnedGates(nr.Architecture.chain(4, 5, 3), labels=labels),
    ):
        with refuses("pathways"):
            splits(wrong, data)
    with refuses("net"):
        splits(nr.GDLN(arch), data)
    narrow = nr.Architecture.parallel({"x": 4}, {"a": 2, "b": 2}, {"y": 3})
    with refuses("neurons"):
        splits(nr.LearnedGates(narrow, labels=labels, budget=1.0), data)
    half = nr.Architecture({"x": 4, "a": 4, "b": 4, "y": 3}, arch.edges, frozen={"x_a": 1.0})
    with refuses("pathways"):
        splits(nr.LearnedGates(half, labels=labels), data)
