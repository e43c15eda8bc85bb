"""Gates that are learned: against GDLNs, finite differences, and the equations in plain NumPy."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from tests.test_errors import refuses

LABELS = {"context": ("home", "work", "none")}
NETS = {
    "free": {"labels": LABELS, "budget": 0.7, "decay": 0.2},
    "signed": {"labels": LABELS, "signed": True, "rate": 3.0},
    "constant": {"budget": 2.0, "rate": 0.5},
    "free neurons": {"labels": LABELS, "neurons": True, "budget": 0.4, "decay": 0.1},
    "sigmoid": {"labels": LABELS, "inputs": ("u",), "kind": "sigmoid", "bias": True, "decay": 0.3},
    "sigmoid neurons": {"inputs": ("u", "x"), "kind": "sigmoid", "neurons": True, "budget": 0.5},
    "softmax": {"labels": LABELS, "kind": "softmax", "nodes": ("a", "b")},
}
every_net = pytest.mark.parametrize("name", NETS)


def graph() -> nr.Architecture:
    """Two inputs, two pathways of which one is deeper, a third hidden node, an edge past them."""
    sizes = {"u": 2, "x": 3, "a": 4, "b": 3, "c": 2, "y": 2}
    edges = {"ua": ("u", "a"), "xa": ("x", "a"), "xb": ("x", "b"), "bc": ("b", "c")}
    return nr.Architecture(
        sizes, {**edges, "ay": ("a", "y"), "cy": ("c", "y"), "ab": ("a", "b"), "xy": ("x", "y")}
    )


def task(seed: int = 0, size: float = 1.0) -> nr.Dataset:
    rng = np.random.default_rng(seed)
    x, y = ({n: size * rng.normal(size=(9, k)) for n, k in s.items()} for s in SIZES)
    where = np.array(["home", "work", "none"] * 3)
    gates = {"xy": rng.normal(size=9)}
    return nr.Dataset(x, y, gates, rng.uniform(0.5, 1.5, 9), labels={"context": where})


SIZES = ({"u": 2, "x": 3}, {"y": 2})


def started(net: nr.LearnedGates, seed: int, scale: float) -> dict:
    """Random weights, with free gates that are all above zero."""
    rng = np.random.default_rng(seed)
    weights = {e: scale * rng.normal(size=shape) for e, shape in net.shapes.items()}
    if net.kind == "free" and not net.signed:
        weights |= {e: 0.1 + np.abs(weights[e]) for e in net.gate_edges}
    return weights


# ---- against finite differences and the GDLN ----------------------------------------------------


@every_net
@pytest.mark.parametrize("scale", [0.05, 2.0])
def test_velocity_is_the_slope_of_loss_and_penalty(name, scale):
    net, data, h = nr.LearnedGates(graph(), **NETS[name]), task(1), 1e-5
    weights = started(net, 2, scale)
    found = net.velocity(weights, data)
    assert set(found) == set(net.arch.matrices)
    total = jax.jit(lambda w: net.loss(w, data) + net.penalty(w, data))
    for edge, w in weights.items():
        slope = np.zeros_like(w)
        for at in np.ndindex(w.shape):
            step = np.zeros_like(w)
            step[at] = h * scale
            slope[at] = (
                total({**weights, edge: w + step}) - total({**weights, edge: w - step})
            ) / (2 * h * scale)
        rate = net.rate if edge in net.gate_edges else 1.0
        tolerance = 1e-7 * max(1.0, np.abs(slope).max())
        np.testing.assert_allclose(found[edge], -rate * slope, rtol=0, atol=tolerance)


@every_net
def test_gates_that_are_held_learn_as_a_gdln(name):
    net = nr.LearnedGates(graph(), **NETS[name] | {"rate": 0.0})
    data, weights = task(3), started(net, 4, 0.5)
    gates = net.activity(weights, data)
    given = data.gated({**data.gates, **gates})
    plain = {e: weights[e] for e in net.graph.matrices}
    assert {g.ndim for g in gates.values()} == {2 if net.neurons else 1}
    run = nr.train(net, weights, data, learning_rate=0.05, steps=60, record={"outputs": True})
    same = nr.train(
        nr.GDLN(net.graph), plain, given, learning_rate=0.05, steps=60, record={"outputs": True}
    )
    np.testing.assert_allclose(run.loss, same.loss, rtol=1e-12)
    np.testing.assert_allclose(
        run.values["outputs"]["y"], same.values["outputs"]["y"], atol=1e-12, rtol=0
    )
    for edge in net.gate_edges:
        np.testing.assert_array_equal(run.final[edge], weights[edge])


def test_gates_are_what_they_are_called():
    data = task(5)
    where = np.asarray(data.labels["context"])
    free = nr.LearnedGates(graph(), labels=LABELS)
    weights = started(free, 6, 1.0)
    found = free.activity(weights, data)
    for n, place in enumerate(where):
        z = LABELS["context"].index(place)
        assert found["b"][n] == weights["context_gates_b"][0, z]
    soft = nr.LearnedGates(graph(), labels=LABELS, inputs=("u",), kind="softmax", neurons=True)
    weights = started(soft, 7, 1.0)
    hot = (where[:, None] == np.array(LABELS["context"])) * 1.0
    z = {
        n: hot @ weights[f"context_gates_{n}"].T + data.x["u"] @ weights[f"u_gates_{n}"].T
        for n in soft.nodes
    }
    total = sum(np.exp(v).sum(axis=1, keepdims=True) for v in z.values())
    for n, gate in soft.activity(weights, data).items():
        np.testing.assert_allclose(gate, np.exp(z[n]) / total, rtol=1e-12)


# ---- against the equations in plain NumPy -------------------------------------------------------


def learner(budget: float, decay: float, rate: float, signed: bool = True):
    """The one-edge learner: ŷ = Σ_p c_p(z) A_p B x, as NumPy integrates it."""
    rng = np.random.default_rng(8)
    x, y, z = rng.normal(size=(12, 3)), rng.normal(size=(12, 2)), np.arange(12) % 2
    arch = nr.Architecture.parallel({"x": 3}, {"a": 2, "b": 2}, {"y": 2})
    data = nr.Dataset({"x": x}, {"y": y}, labels={"z": z})
    net = nr.LearnedGates(
        arch, labels={"z": (0, 1)}, budget=budget, decay=decay, rate=rate, signed=signed
    )
    weights = {e: np.asarray(w) for e, w in net.init(3, scale=0.6).items()}

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        at, w = 0, {}
        for edge, v in weights.items():
            w[edge] = flat[at : at + v.size].reshape(v.shape)
            at += v.size
        move = {e: np.zeros_like(v) for e, v in w.items()}
        for n in range(12):
            c = {p: w[f"z_gates_{p}"][0, z[n]] for p in "ab"}
            h = {p: w[f"x_{p}"] @ x[n] for p in "ab"}
            e = y[n] - sum(c[p] * w[f"{p}_y"] @ h[p] for p in "ab")
            for p in "ab":
                move[f"{p}_y"] += c[p] * np.outer(e, h[p]) / 12
                move[f"x_{p}"] += c[p] * np.outer(w[f"{p}_y"].T @ e, x[n]) / 12
                pull = budget * (sum(c.values()) - 1) + decay * c[p]
                move[f"z_gates_{p}"][0, z[n]] += rate * (e @ w[f"{p}_y"] @ h[p] - pull) / 12
        return np.concatenate([move[e].ravel() for e in weights])

    return net, data, weights, velocity


@pytest.mark.parametrize(("budget", "decay", "rate"), [(0.0, 0.0, 1.0), (2.0, 0.3, 5.0)])
def test_flow_of_free_gates(budget, decay, rate):
    net, data, weights, velocity = learner(budget, decay, rate)
    times = np.linspace(0, 4, 9)
    start = np.concatenate([w.ravel() for w in weights.values()])
    solved = solve_ivp(velocity, (0, 4), start, t_eval=times, rtol=1e-10, atol=1e-12)
    run = nr.flow(net, weights, data, times=times, record={"weights": True})
    found = np.concatenate(
        [run.values["weights"][e].reshape(len(times), -1) for e in weights], axis=1
    )
    np.testing.assert_allclose(found, solved.y.T, rtol=0, atol=1e-7)


def test_what_is_conserved():
    """Without penalties ‖W_e‖² minus the gates squared over their rate, of every pathway."""
    net, data, weights, _ = learner(0.0, 0.0, 4.0)
    run = nr.flow(net, weights, data, times=np.linspace(0, 6, 7), record={"weights": True})
    w = run.values["weights"]
    for p in "ab":
        kept = (w[f"{p}_y"] ** 2).sum((1, 2)) - (w[f"z_gates_{p}"] ** 2).sum((1, 2)) / 4.0
        assert abs(kept - kept[0]).max() < 1e-6
    assert run.loss[-1] < run.loss[0]


def test_gates_stay_non_negative_and_come_back():
    """A pathway that is against the target closes; when the target turns, its gate opens again."""
    net = nr.LearnedGates(nr.Architecture.chain(1, 1, 1), rate=1.0)
    weights = {"W1": [[1.0]], "W2": [[1.0]], "constant_gates_h": [[0.05]]}
    against, along = (nr.Dataset({"x": [[1.0]]}, {"y": [[s]]}) for s in (-0.5, 0.5))
    for run in (
        nr.train(net, weights, against, learning_rate=0.01, steps=300, record={"activity": True}),
        nr.flow(net, weights, against, times=[0, 1, 3], record={"activity": True}),
    ):
        gate = run.values["activity"]["h"]
        assert gate.min() == 0 and gate[0] > 0
        assert run.final["constant_gates_h"][0, 0] > -0.01
        back = nr.train(net, run.final, along, learning_rate=0.01, steps=300)
        assert back.final["constant_gates_h"][0, 0] > 0.2


# ---- a network like any other -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["free", "sigmoid neurons"])
def test_ensembles_files_and_drawings(name, tmp_path):
    net, data = nr.LearnedGates(graph(), **NETS[name]), task(9)
    many = nr.train_ensemble(
        net, data, seeds=2, scale=0.3, learning_rate=0.1, steps=8, record={"activity": True}
    )
    start = net.init(jax.random.split(jax.random.key(0), 2)[1], 0.3)
    one = nr.train(net, start, data, learning_rate=0.1, steps=8, record={"activity": True})
    np.testing.assert_allclose(many.loss[1], one.loss, rtol=1e-12)
    again = nr.load(one.save(tmp_path / "run.nc"))
    assert again.net == net
    assert nr.compare(one, again).max == 0
    assert set(net.arch.edges) - set(net.graph.edges) == set(net.gate_edges)
    net.arch.draw()


def test_populations_learn_as_their_samples_where_labels_make_the_gates():
    base = task(10)
    data = dataclasses.replace(base, gates={}, labels={"part": base.labels["context"]})
    kinds = [data.take(data.mask(part=name)) for name in LABELS["context"]]
    whole = np.asarray(base.probability)
    chances = [whole[data.mask(part=name)].sum() for name in LABELS["context"]]
    moments = [nr.Dataset.from_moments(list(part.moments())) for part in kinds]
    people = nr.Dataset.mixture(
        dict(zip(LABELS["context"], zip(chances, moments, strict=True), strict=True))
    )
    assert people.is_population
    net = nr.LearnedGates(graph(), labels={"part": LABELS["context"]}, budget=1.0)
    start = net.init(0, scale=0.3)
    runs = [nr.flow(net, start, d, times=[0, 2, 5]) for d in (data, people)]
    np.testing.assert_allclose(runs[0].loss, runs[1].loss, rtol=1e-6)
    by_input = nr.LearnedGates(graph(), inputs=("u",), kind="sigmoid")
    with refuses("single"):
        nr.train(by_input, by_input.init(0), people, learning_rate=0.1, steps=2)


def test_labels_inside_compiled_programs():
    data = task(11)
    numbers = dataclasses.replace(data, labels={"context": np.arange(9) % 3})
    for task_, values in ((data, LABELS["context"]), (numbers, (0, 1, 2))):
        net = nr.LearnedGates(graph(), labels={"context": values})
        weights = started(net, 0, 0.5)
        inside = jax.jit(lambda w, d, net=net: net.loss(w, d))(weights, task_)
        assert float(inside) == pytest.approx(float(net.loss(weights, task_)), rel=1e-12)


# ---- what is refused ----------------------------------------------------------------------------


def test_bad_input():
    arch, data = graph(), task()
    for wrong, words in (
        ({"nodes": ("u",)}, ["nodes", "u"]),
        ({"nodes": ("y",)}, ["nodes", "y"]),
        ({"nodes": ("a", "a")}, ["nodes"]),
        ({"nodes": ()}, ["nodes"]),
        ({"inputs": ("a",), "kind": "sigmoid"}, ["inputs", "a"]),
        ({"inputs": ("u",)}, ["free", "inputs"]),
        ({"bias": True}, ["free", "bias"]),
        ({"kind": "relu"}, ["kind"]),
        ({"budget": -1.0}, ["budget"]),
        ({"decay": -0.1}, ["decay"]),
        ({"rate": -2.0}, ["rate"]),
        ({"rate": np.inf}, ["rate"]),
        ({"budget": 1.0, "kind": "softmax"}, ["budget"]),
        ({"labels": {"context": ()}}, ["labels"]),
        ({"labels": {"context": (1, 1)}}, ["labels"]),
        ({"labels": {"x": (1, 2)}}, ["x"]),
        ({"labels": ["context"]}, ["labels"]),
        ({"labels": {"constant": (1, 2)}, "bias": True, "kind": "sigmoid"}, ["constant"]),
    ):
        with refuses(*words):
            nr.LearnedGates(arch, **wrong)
    with refuses("arch"):
        nr.LearnedGates((2, 8, 1))
    net = nr.LearnedGates(arch, labels=LABELS)
    start = net.init(0, scale=0.1)
    steps = {"learning_rate": 0.1, "steps": 2}
    with refuses("place"):
        other = nr.LearnedGates(arch, labels={"place": (1, 2)})
        nr.train(other, other.init(0), data, **steps)
    with refuses("context", "none"):
        other = nr.LearnedGates(arch, labels={"context": ("home", "work")})
        nr.train(other, other.init(0), data, **steps)
    with refuses("a"):
        nr.train(net, start, data.gated({"a": np.ones(9)}), **steps)
    with refuses("context_gates_a"):
        nr.train(net, {e: start[e] for e in net.graph.matrices}, data, **steps)
    with refuses("compress"):
        nr.train(net, start, data, compress=True, **steps)
    with refuses("context"):  # the graph with its gate edges is none that adds up
        nr.reduce(net.arch, data)
    fast = nr.LearnedGates(arch, labels=LABELS, rate=1e6, signed=True)
    with pytest.raises(nr.StoppedError):
        nr.train(fast, fast.init(0), data, learning_rate=1.0, steps=50)
