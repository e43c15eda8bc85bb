"""Shared and frozen weights: graphs, velocities, compression, training; against plain NumPy.

`truth` below is the network in NumPy, analytic in its weights, so that a complex step gives its
derivative to rounding.
"""

import json
import pickle

import jax
import numpy as np
import pytest

import neuralrace as nr
from tests.test_errors import refuses

SEEDS = (0, 1, 2, 3, 4, 6, 11, 12, 14, 16, 21)
"""Graphs of all six kinds of `random_graph`, at all scales from .001 to 1000."""


def matrix(arch: nr.Architecture, weights, edge):
    """What an edge carries, found in the words of `ties` and `frozen` alone."""
    if edge in arch.frozen:
        value = arch.frozen[edge]
        size = arch.sizes[arch.edges[edge][0]]
        return value * np.eye(size) if isinstance(value, float) else np.array(value)
    for tie, members in arch.ties.items():
        if edge in members:
            return weights[tie]
        if edge + ".T" in members:
            return weights[tie].T
    return weights[edge]


def truth(arch: nr.Architecture, weights, data: nr.Dataset):
    """The loss ½ Σ_n p_n ‖y_n − h_n‖² of the gated network."""
    gate = lambda name: np.reshape(data.gates.get(name, np.ones(1)), (-1, 1)) if np.ndim(
        data.gates.get(name, 1.0)
    ) < 2 else np.asarray(data.gates[name])  # fmt: skip
    h = {v: gate(v) * np.asarray(x) for v, x in data.x.items()}
    waiting = [v for v in arch.sizes if v not in h]
    while waiting:
        node = waiting.pop(0)
        into = [e for e, (_, t) in arch.edges.items() if t == node]
        if any(arch.edges[e][0] not in h for e in into):
            waiting.append(node)
            continue
        sent = (gate(e) * (h[arch.edges[e][0]] @ matrix(arch, weights, e).T) for e in into)
        h[node] = gate(node) * sum(sent)
    p = np.ones(data.n_samples) if data.sample_weight is None else np.asarray(data.sample_weight)
    p, counts = p / p.sum(), data.loss_weight
    return sum((p * counts.get(v, 1)) @ ((y - h[v]) ** 2).sum(1) for v, y in data.y.items()) / 2


def slopes(arch, weights, data):
    """∂L/∂W of every matrix, by complex steps."""
    found = {}
    for name, w in weights.items():
        found[name] = np.zeros(w.shape)
        for at in np.ndindex(w.shape):
            moved = w.astype(complex)
            moved[at] += 1e-30j
            found[name][at] = truth(arch, {**weights, name: moved}, data).imag / 1e-30
    return found


def random_graph(rng: np.random.Generator) -> nr.Architecture:
    kind = rng.integers(6)
    inputs, hidden, outputs = rng.integers(1, 4, 3).tolist()
    if kind < 2:
        steps = int(rng.integers(1, 5))
        readout = "all" if rng.integers(2) else [*range(1 + steps // 2, steps + 1)]
        return nr.Architecture.recurrent(
            inputs, hidden, outputs, steps, readout, leak=0.7 if kind else None,
            initial=bool(rng.integers(2)),
        )  # fmt: skip
    if kind == 2:
        return nr.Architecture.siamese(inputs, hidden, outputs, int(rng.integers(2, 4)))
    if kind == 3:
        return nr.Architecture.autoencoder(inputs + 1, hidden, outputs)
    n = hidden + 1
    if kind == 4:  # a tie across depths, and over a skip connection
        return nr.Architecture(
            {"x": n, "a": n, "b": n, "c": n, "y": outputs},
            {"xa": ("x", "a"), "ab": ("a", "b"), "bc": ("b", "c"), "cy": ("c", "y"),
             "ac": ("a", "c"), "xy": ("x", "y")},
            ties={"W": ("ab", "bc", "xa.T"), "V": ("xy", "cy")},
        )  # fmt: skip
    return nr.Architecture(  # a frozen matrix and a residual branch beside a tie of two inputs
        {"x": inputs, "z": inputs, "a": n, "b": n, "y": outputs},
        {"xa": ("x", "a"), "zb": ("z", "b"), "ab": ("a", "b"), "skip": ("a", "b"),
         "mix": ("a", "y"), "by": ("b", "y"), "xb": ("x", "b")},
        ties={"U": ("xa", "zb")},
        frozen={"skip": -0.5, "mix": rng.normal(size=(outputs, n))},
    )  # fmt: skip


def random_task(rng: np.random.Generator, arch: nr.Architecture) -> nr.Dataset:
    n = 6
    gates = {}
    for name in (*arch.sizes, *arch.edges):
        kind = rng.integers(4)
        if kind == 1:
            gates[name] = rng.integers(0, 2, n).astype(float)
        elif kind == 2:
            gates[name] = rng.normal(size=n)
        elif kind == 3 and name in arch.sizes:
            columns = np.stack([np.ones(n), rng.integers(0, 2, n)], axis=1)
            gates[name] = columns[:, rng.integers(0, 2, arch.sizes[name])]
    draw = lambda nodes: {v: rng.normal(size=(n, arch.sizes[v])) for v in nodes}
    weight = rng.uniform(0.1, 1, n) if rng.integers(2) else None
    counts = {v: rng.uniform(0, 2, (n, 1)[rng.integers(2)]) for v in arch.outputs[::2]}
    counts = {v: c.item() if c.size == 1 else c for v, c in counts.items() if rng.integers(2)}
    return nr.Dataset(draw(arch.inputs), draw(arch.outputs), gates, weight, loss_weight=counts)


def random_case(seed: int, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    arch = random_graph(rng)
    data = random_task(rng, arch)
    return arch, data, {n: scale * rng.normal(size=shape) for n, shape in arch.shapes.items()}


def close(found, wanted, tolerance=1e-10):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * (np.abs(wanted).max() or 1))


# ---- the network --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_and_velocity(seed):
    scale = 10.0 ** ((seed % 7) - 3)
    arch, data, weights = random_case(seed, scale)
    net, stats = nr.GDLN(arch), nr.path_statistics(arch, data)
    assert float(net.loss(weights, data)) == pytest.approx(truth(arch, weights, data), rel=1e-10)
    by_step, by_paths, wanted = (
        net.velocity(weights, data), stats.velocity(weights), slopes(arch, weights, data)
    )  # fmt: skip
    assert set(by_step) == set(by_paths) == set(arch.shapes)
    for name, slope in wanted.items():
        close(by_step[name], -slope, 1e-8)
        close(by_paths[name], -slope, 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_compression_changes_nothing(seed):
    arch, data, weights = random_case(seed, 0.5)
    net = nr.GDLN(arch)
    small = nr.compress(net, weights, data)
    for name, w in small.lift(small.weights).items():
        close(w, weights[name], 1e-12)
    assert float(small.net.loss(small.weights, small.data)) == pytest.approx(
        truth(arch, weights, data), rel=1e-10, abs=1e-12
    )
    full, fewer = (
        nr.train(net, weights, data, learning_rate=1e-3, steps=20, compress=compress,
                 record={"weights": True})
        for compress in (False, True)
    )  # fmt: skip
    close(fewer.loss, full.loss)
    for name in weights:
        close(fewer.values["weights"][name], full.values["weights"][name], 1e-9)


def test_compression_of_a_wide_recurrent_network():
    """W_h of rank 2 from 2 inputs to 1 output: 60 hidden neurons shrink, the same at every step."""
    rng = np.random.default_rng(0)
    arch = nr.Architecture.recurrent(2, 60, 1, steps=4)
    weights = {n: rng.normal(size=s) / 8 for n, s in arch.shapes.items()}
    weights["Wh"] = np.outer(*rng.normal(size=(2, 60))) / 60
    draw = lambda nodes: {v: rng.normal(size=(50, arch.sizes[v])) for v in nodes}
    data = nr.Dataset(draw(arch.inputs), draw(arch.outputs))
    small = nr.compress(nr.GDLN(arch), weights, data)
    sizes = small.net.arch.sizes
    assert sizes["h1"] == sizes["h4"] == 5
    assert small.net.arch.ties == arch.ties
    velocity = small.net.velocity(small.weights, small.data)
    step = small.lift({n: w + velocity[n] for n, w in small.weights.items()})
    for name, slope in slopes(arch, weights, data).items():
        close(step[name], weights[name] - slope)


def test_tied_steps_learn_faster_than_untied_ones():
    """x = y = 1, y = V W³ U x, all .3: half of the initial loss at 5.80, untied at 11.94."""
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    sizes = dict.fromkeys(["x", "h1", "h2", "h3", "h4", "y"], 1)
    edges = {"U": ("x", "h1"), "a": ("h1", "h2"), "b": ("h2", "h3"), "c": ("h3", "h4"),
             "V": ("h4", "y")}  # fmt: skip
    times = np.linspace(0, 15, 3001)

    def half(arch):
        net = nr.GDLN(arch)
        run = nr.flow(net, {n: [[0.3]] for n in arch.shapes}, data, times=times, rtol=1e-9)
        return float(np.interp(-run.loss[0] / 2, -run.loss, run.time))

    assert half(nr.Architecture(sizes, edges, {"W": ("a", "b", "c")})) == pytest.approx(
        5.80, abs=0.01
    )
    assert half(nr.Architecture(sizes, edges)) == pytest.approx(11.94, abs=0.01)


def test_steps_cost_the_same_however_many_there_are():
    """The work and the memory of a step grow linearly with T, and weights do not grow at all."""

    def cost(steps):
        arch = nr.Architecture.recurrent(3, 64, 2, steps)
        net = nr.GDLN(arch)
        weights = net.init(0, scale=0.1)
        draw = lambda nodes: {v: np.ones((8, arch.sizes[v])) for v in nodes}
        data = nr.Dataset(draw(arch.inputs), draw(arch.outputs))
        program = jax.jit(lambda w: net.loss_and_step(w, data, 0.1)).lower(weights).compile()
        return program.cost_analysis()["flops"], sum(w.size for w in weights.values())

    (ten, size), (twenty, same), (forty, _) = map(cost, (10, 20, 40))
    assert size == same == 64 * (64 + 3 + 2)
    assert (forty - twenty) / (twenty - ten) == pytest.approx(2.0, rel=0.05)


# ---- everything else that runs weights ----------------------------------------------------------


def case():
    arch = nr.Architecture.recurrent(2, 6, 1, steps=3, readout="all", leak=0.5)
    rng = np.random.default_rng(1)
    draw = lambda nodes: {v: rng.normal(size=(7, arch.sizes[v])) for v in nodes}
    return arch, nr.Dataset(draw(arch.inputs), draw(arch.outputs))


def test_ensembles_kernels_and_files(tmp_path):
    arch, data = case()
    for net in (nr.GDLN(arch), nr.ReLUNetwork(arch, bias=True)):
        many = nr.train_ensemble(net, data, seeds=2, scale=dict.fromkeys(net.arch.shapes, 0.3),
                                 learning_rate=0.05, steps=6, record={"weights": True})  # fmt: skip
        keys = jax.random.split(jax.random.key(0), 2)
        one = nr.train(net, net.init(keys[1], scale=0.3), data, learning_rate=0.05, steps=6)
        np.testing.assert_allclose(many.loss[1], one.loss, rtol=1e-10)
        kernel = nr.analysis.tangent_kernel(net, many.final, data)
        assert kernel.shape == (2, 21, 21)
        again = nr.load(many.save(tmp_path / "run.nc"))
        assert again.net == net
        read, run = nr.from_file(nr.save_weights(net, one.final, tmp_path / "w.npz"), data)
        assert read == net
        np.testing.assert_array_equal(run.final["Wh"], one.final["Wh"])
        moments = {n: w[0] for n, w in many.values["weights"].items()}
        seen = nr.Trajectory.from_weights(net, moments, data, many.time)
        np.testing.assert_allclose(seen.loss, many.loss[0], rtol=1e-6)


def test_relu_network_is_the_gated_one_with_its_activity():
    arch, data = case()
    relu = nr.ReLUNetwork(arch, bias=True)
    assert relu.arch.ties["biases_h1"] == ("bias_h1", "bias_h2", "bias_h3")
    assert relu.arch.ties["biases_y1"] == ("bias_y1", "bias_y2", "bias_y3")
    weights = relu.init(3, scale=0.7)
    gated = data.gated(relu.activity(weights, data))
    known = nr.Dataset({**data.x, "bias": np.ones((7, 1))}, data.y, gated.gates)
    plain = {n: np.asarray(w) for n, w in weights.items()}
    assert float(relu.loss(weights, data)) == pytest.approx(truth(relu.arch, plain, known))
    for name, slope in slopes(relu.arch, plain, known).items():
        close(relu.velocity(weights, data)[name], -slope)


def test_value_semantics():
    arch, _ = case()
    again = nr.Architecture.from_description(json.loads(json.dumps(arch.describe())))
    same = pickle.loads(pickle.dumps(arch))
    assert arch == again == same == nr.Architecture.from_networkx(arch.to_networkx())
    assert hash(arch) == hash(again)
    untied = nr.Architecture(arch.sizes, arch.edges)
    assert arch != untied
    assert arch != nr.Architecture(arch.sizes, arch.edges, arch.ties)
    assert eval(repr(arch), {"Architecture": nr.Architecture}) == arch
    assert untied.path_count() == arch.path_count() == 11  # 1 + (1 + 2) + (1 + 2 + 4)


def test_classes_and_parts():
    arch = nr.Architecture(
        {"x": 3, "a": 3, "b": 3, "y": 3},
        {"xa": ("x", "a"), "ab": ("a", "b"), "by": ("b", "y")},
        ties={"W": ("xa", "by.T")},
    )
    assert dict(arch.class_of) == {"x": "x", "a": "a", "b": "a", "y": "x"}
    frozen = nr.Architecture(arch.sizes, arch.edges, frozen={"ab": np.diag([1.0, 2.0, 3.0])})
    assert dict(frozen.class_of) == {v: v for v in "xaby"}
    assert nr.Architecture(arch.sizes, arch.edges, frozen={"ab": 1}).class_of["b"] == "a"
    deep = nr.Architecture.autoencoder(8, 5, 3)
    assert deep.class_of["h3"] == "h1"
    assert set(deep.with_bias().shapes) == {
        "W1",
        "W2",
        *(f"bias_{v}" for v in deep.sizes if v != "x"),
    }


def test_drawing_names_ties():
    texts = {t.get_text() for t in nr.Architecture.autoencoder(8, 3).draw().texts}
    assert {"W1", "W1ᵀ"} <= texts
    texts = [t.get_text() for t in nr.Architecture.recurrent(2, 3, 1, 4, leak=0.9).draw().texts]
    assert texts.count("Wh") == texts.count("0.9 I") == 3
    texts = [t.get_text() for t in nr.Architecture.recurrent(2, 3, 1, 20).draw().texts]
    assert texts.count("Wh") == 1


# ---- the race -----------------------------------------------------------------------------------


def sequences(sizes, decays, steps=6, inputs=5, outputs=4, seed=0):
    """White inputs; mode k asks for c_k λ_k^{T−t} of the input at step t."""
    rng = np.random.default_rng(seed)
    v, u = (np.linalg.qr(rng.normal(size=(n, n)))[0][:, : len(sizes)] for n in (inputs, outputs))
    n = steps * inputs
    white = np.sqrt(n) * np.eye(n)
    x = {f"x{t + 1}": white[:, inputs * t : inputs * (t + 1)] for t in range(steps)}
    lag = lambda t: np.array(sizes) * np.array(decays) ** (steps - t)
    y = sum(x[f"x{t}"] @ v * lag(t) @ u.T for t in range(1, steps + 1))
    return nr.Dataset(x, {"y": y}), u, v


def gaussian(arch, scale, seed):
    rng = np.random.default_rng(seed)
    return {n: scale * rng.normal(size=shape) for n, shape in arch.shapes.items()}


@pytest.mark.parametrize("seed", range(2))
def test_recurrent_network_from_small_random_weights(seed):
    """5 → 40 → 4, T = 6: nothing fitted."""
    arch = nr.Architecture.recurrent(5, 40, 4, steps=6)
    data, *_ = sequences((3, 2, 1), (0.9, 0.7, 0.5))
    race = nr.reduce(arch, data)
    assert race.is_decoupled
    assert race.is_exact
    np.testing.assert_allclose([b.drive for b in race.blocks], [3, 2, 1])
    weights, times = gaussian(arch, 1e-3, seed), np.linspace(0, 12, 61)
    start = race.start(weights)
    assert start.noise is not None
    assert start.noise < 0.02
    found = race.solve(times=times, start=start, accuracy=None)
    assert found.values["variables"]["mode1"]["Wh"].shape == (61, 1, 1)
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-8)
    off = np.abs(found.loss - trained.loss) / trained.loss[0]
    assert trained.loss[-1] < 1e-3 * trained.loss[0]
    assert off.mean() <= 5e-5
    assert off.max() <= 5e-3


KINDS = {
    "recurrent": lambda: (
        nr.Architecture.recurrent(3, 8, 2, steps=3, leak=0.2),
        sequences((2, 1), (0.9, 0.4), 3, 3, 2)[0],
    ),
    "close": lambda: (
        nr.Architecture.recurrent(2, 8, 2, steps=4),
        sequences((1, 0.9), (0.8, 0.7), 4, 2, 2)[0],
    ),
    "no modes": lambda: (
        nr.Architecture.recurrent(2, 8, 2, steps=2),
        random_task(np.random.default_rng(0), nr.Architecture.recurrent(2, 8, 2, 2)).gated({}),
    ),
    "per cue": lambda: nr.tasks.pathway_per_cue(nr.tasks.cued_accumulation(2, 2), 6),
    "common": lambda: nr.tasks.common_pathway(nr.tasks.cued_accumulation(2, 2), 8),
    "siamese": lambda: (
        nr.Architecture.siamese(3, 8, 2, 2),
        nr.Dataset({"x1": np.eye(3), "x2": np.eye(3)[::-1]}, {"y": np.eye(3)[:, :2] * [2, 1]}),
    ),
    "autoencoder": lambda: (
        nr.Architecture.autoencoder(3, 8),
        nr.Dataset({"x": np.diag([2.0, 1.5, 1.0])}, {"y": np.diag([2.0, 1.5, 1.0])}),
    ),
    "deep": lambda: (
        nr.Architecture(
            {"x": 3, "a": 6, "b": 6, "c": 6, "y": 3},
            {"in": ("x", "a"), "ab": ("a", "b"), "bc": ("b", "c"), "out": ("c", "y")},
            {"W": ("ab", "bc")},
        ),
        nr.Dataset({"x": np.eye(3)}, {"y": np.diag([3.0, 2.0, 0.0])}),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_says_how_far_it_is_off(kind):
    """From random weights of any size: against flow of the whole network, at the times asked."""
    arch, data = KINDS[kind]()
    net, times, race = nr.GDLN(arch), np.linspace(0, 8, 9), nr.reduce(arch, data)
    for scale in (1e-3, 0.03, "torch"):
        drawn = net.init(1, 1.0, kind="torch") if scale == "torch" else gaussian(arch, scale, 1)
        weights = {name: np.asarray(w, np.float64) for name, w in drawn.items()}
        trained = nr.flow(net, weights, data, times=times, rtol=1e-10).loss
        off = lambda run, loss=trained: float(np.abs(run.loss - loss).max() / loss[0])
        alone = off(race.solve(times=times, start=weights, accuracy=None))
        for accuracy in (1e-3, 1e-9):
            run = race.solve(times=times, start=weights, accuracy=accuracy)
            measured = run.settings.get("error_alone", 0.0)
            assert measured == pytest.approx(alone, abs=1e-7)
            assert run.settings.get("error", 0.0) == (measured if measured <= accuracy else 0.0)
            assert off(run) == pytest.approx(run.settings.get("error", 0.0), abs=1e-7)


@pytest.mark.parametrize(("gamma", "delay"), [(0.0, True), (0.5, True), (0.5, False)])
def test_delays_and_weights_near_a_multiple_of_the_identity(gamma, delay):
    """Where one hidden direction per mode is not enough, the network's own weights are followed."""
    arch = nr.Architecture.recurrent(5, 16, 4, steps=4)
    data, *_ = sequences((2, 1), (0.9, 0.6), steps=4)
    if delay:
        last = np.linalg.lstsq(data.x["x4"], data.y["y"], rcond=None)[0]
        data = nr.Dataset(data.x, {"y": data.y["y"] - data.x["x4"] @ last})
    weights = gaussian(arch, 1e-2, 3)
    weights["Wh"] += gamma * np.eye(16)
    times = np.linspace(0, 30 if gamma else 120, 61)
    race = nr.reduce(arch, data)
    start = race.start(weights)
    assert (start.noise > 1) == (delay and not gamma)
    found = race.solve(times=times, start=start)
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-8)
    off = np.abs(found.loss - trained.loss) / trained.loss[0]
    assert trained.loss[-1] < 0.5 * trained.loss[0]
    assert off.max() <= 1e-3


def test_tied_chain_has_one_variable_for_its_tie():
    """x = y = 1, y = V W³ U x: 3 b_W² grows as … and half of the loss is gone at 5.80."""
    sizes = dict.fromkeys(["x", "h1", "h2", "h3", "h4", "y"], 1)
    edges = {"U": ("x", "h1"), "a": ("h1", "h2"), "b": ("h2", "h3"), "c": ("h3", "h4"),
             "V": ("h4", "y")}  # fmt: skip
    arch = nr.Architecture(sizes, edges, {"W": ("a", "b", "c")})
    race = nr.reduce(arch, nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    assert [v.edges for v in race.variables()] == [("U", "V"), ("W",)]
    assert str(race.conserved()["mode1"]) == "[3*B_1**2 - B_2**2]"
    times = np.linspace(0, 15, 1501)
    run = race.solve(times=times, start=0.3)
    assert float(np.interp(-0.25, -run.loss, times)) == pytest.approx(5.80, abs=0.01)


def test_tied_autoencoder_is_a_logistic_of_twice_the_rate():
    arch = nr.Architecture.autoencoder(6, 20)
    variance, times = np.array([4.0, 2.5, 1.5, 1.0, 0.6, 0.4]), np.linspace(0, 15, 151)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    x = np.sqrt(6 * variance)[:, None] * turn.T
    data = nr.Dataset({"x": x}, {"y": x})
    weights = gaussian(arch, 1e-4, 1)
    start = nr.reduce(arch, data).start(weights)
    first = np.array([w["W1"][0, 0] ** 2 for w in start.weights])
    grown = np.exp(-4 * np.outer(times, variance))
    wanted = 1 / (1 + (1 / first - 1) * grown)
    trained = nr.flow(
        nr.GDLN(arch), weights, data, times=times, rtol=1e-9, record={"weights": True}
    )
    w = np.asarray(trained.values["weights"]["W1"]) @ turn
    np.testing.assert_allclose((w**2).sum(1), wanted, atol=0.01)


def test_sequences_without_a_shared_basis_are_one_block_that_says_so():
    rng = np.random.default_rng(0)
    arch = nr.Architecture.recurrent(3, 12, 3, steps=3)
    white = np.sqrt(9) * np.eye(9)
    x = {f"x{t + 1}": white[:, 3 * t : 3 * t + 3] for t in range(3)}
    data = nr.Dataset(x, {"y": sum(v @ rng.normal(size=(3, 3)) for v in x.values())})
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 1
    assert race.is_exact
    assert any("Σ^yx" in failure for failure in race.failures)
    weights, times = gaussian(arch, 0.3, 0), np.linspace(0, 4, 9)
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-9)
    close(race.solve(times=times, start=weights).loss, trained.loss, 1e-6)


def test_a_given_initial_state_fixes_the_hidden_directions():
    arch = nr.Architecture.recurrent(3, 3, 3, steps=2, initial=True)
    white = np.sqrt(9) * np.eye(9)
    x = {"h0": white[:, :3], "x1": white[:, 3:6], "x2": white[:, 6:]}
    data = nr.Dataset(x, {"y": x["h0"] * [1, 0.5, 0.2] + x["x1"] * [1, 0.5, 0.2] + x["x2"]})
    race = nr.reduce(arch, data)
    assert len(race.blocks) == 3
    times = np.linspace(0, 5, 11)
    run = race.solve(times=times, start=0.4)
    weights = race.weights(run, 0.0, key=0)
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-9)
    close(run.loss, trained.loss, 1e-6)
    close(race.solve(times=times, start=weights).loss, trained.loss, 1e-6)
    with refuses("h0"):
        race.start(gaussian(arch, 0.1, 0))


@pytest.mark.parametrize("seed", SEEDS)
def test_reduction_of_random_tied_graphs(seed):
    """Blocks from an aligned start against training from the weights that this means."""
    rng = np.random.default_rng(seed)
    arch = random_graph(rng)
    if any(not isinstance(value, float) for value in arch.frozen.values()):
        with refuses("mix"):
            nr.reduce(arch, random_task(rng, arch))
        return
    ends = {arch.class_of[v] for v in (*arch.inputs, *arch.outputs)}
    sizes = {v: 3 if c in ends else 12 for v, c in arch.class_of.items()}
    arch = nr.Architecture(sizes, arch.edges, arch.ties, arch.frozen)
    data = random_task(rng, arch)
    race = nr.reduce(arch, data)
    times = np.linspace(0, 2, 9)
    run = race.solve(times=times, start=0.3)
    weights = race.weights(run, 0.0, key=0)
    trained = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-9)
    close(run.loss, trained.loss, 1e-6)


# ---- what is refused ----------------------------------------------------------------------------

SIZES = {"x": 2, "z": 3, "a": 4, "b": 4, "y": 1}
EDGES = {"xa": ("x", "a"), "zb": ("z", "b"), "ab": ("a", "b"), "by": ("b", "y")}


@pytest.mark.parametrize(
    ("ties", "frozen", "named"),
    [
        ({"W": ("xa", "zb")}, {}, ["W", "zb"]),  # inputs of other sizes
        ({"W": ("xa", "by")}, {}, ["W", "by"]),
        ({"W": ("ab", "ab")}, {}, ["ab"]),
        ({"W": ("ab",), "V": ("ab",)}, {}, ["ab", "W", "V"]),
        ({"W": ("ab", "ab.T")}, {}, ["ab"]),
        ({"W": ("ac",)}, {}, ["ac"]),
        ({"W": ()}, {}, ["W"]),
        ({"W": "ab"}, {}, ["W"]),
        ({"W": (3,)}, {}, ["W"]),
        ({"ab": ("ab",)}, {}, ["ab"]),
        ({"x": ("ab",)}, {}, ["x"]),
        ({"2": ("ab",)}, {}, ["2"]),
        ({}, {"xa": 1.0}, ["xa"]),
        ({}, {"ab": np.eye(3)}, ["ab"]),
        ({}, {"ab": np.nan}, ["ab"]),
        ({}, {"ab": np.full((4, 4), np.inf)}, ["ab"]),
        ({}, {"q": 1.0}, ["q"]),
        ({"W": ("ab",)}, {"ab": 1.0}, ["ab"]),
        ({}, {"xa": np.ones((4, 2)), "zb": np.ones((4, 3)), "ab": 1, "by": np.ones((1, 4))}, []),
    ],
)
def test_bad_ties(ties, frozen, named):
    with refuses(*named):
        nr.Architecture(SIZES, EDGES, ties, frozen)


def test_bad_builders():
    with refuses("steps"):
        nr.Architecture.recurrent(2, 8, 1, steps=0)
    with refuses("readout"):
        nr.Architecture.recurrent(2, 8, 1, steps=3, readout="first")
    for readout in ((1, 4), (1, 2), (), (3, 3), (0, 3)):
        with refuses("readout"):
            nr.Architecture.recurrent(2, 8, 1, steps=3, readout=readout)
    with refuses("leak"):
        nr.Architecture.recurrent(2, 8, 1, steps=3, leak=np.inf)
    with refuses("branches"):
        nr.Architecture.siamese(2, 8, 1, branches=1)
    with refuses("autoencoder"):
        nr.Architecture.autoencoder(8)


def test_bad_weights_and_targets():
    arch, data = case()
    net = nr.GDLN(arch)
    weights = net.init(0)
    with refuses("h1_h2"):
        net(weights | {"h1_h2": weights["Wh"]}, data)
    with refuses("Wh"):
        net({n: w for n, w in weights.items() if n != "Wh"}, data)
    with refuses("Wh"):
        net(weights | {"Wh": weights["Wh"][:, :2]}, data)
    with refuses("scale"):
        net.init(0, scale=dict.fromkeys(arch.edges, 1.0))
    with refuses("y4"):
        net.loss(weights, nr.Dataset(data.x, {**data.y, "y4": data.y["y1"]}))
    with refuses("y2"):
        net.loss(weights, nr.Dataset(data.x, {v: y for v, y in data.y.items() if v != "y2"}))
    with refuses("Wh"):
        net(weights, data.gated({"Wh": np.ones(7)}))


@pytest.mark.parametrize("seed", range(3))
def test_a_frozen_first_matrix_is_trained_around(seed):
    """The learned half is linear regression on fixed features; checked step by step."""
    rng = np.random.default_rng(seed)
    fixed, x, y = rng.normal(size=(4, 2)), rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    sizes, edges = {"x": 2, "h": 4, "y": 3}, {"in": ("x", "h"), "out": ("h", "y")}
    arch = nr.Architecture(sizes, edges, frozen={"in": fixed})
    for net in (nr.GDLN(arch), nr.ReLUNetwork(arch)):
        w = rng.normal(size=(3, 4))
        run = nr.train(net, {"out": w}, nr.Dataset({"x": x}, {"y": y}), learning_rate=0.05, steps=7)
        h = x @ fixed.T
        h = np.maximum(h, 0) if isinstance(net, nr.ReLUNetwork) else h
        for loss in run.loss:
            error = y - h @ w.T
            assert loss == pytest.approx((error**2).sum() / 18, rel=1e-9)
            w = w + 0.05 * error.T @ h / 9


@pytest.mark.parametrize("seed", range(4))
def test_certificates_of_shared_weights(seed):
    """Outputs, loss and hidden structure of two runs, against the definitions in NumPy."""
    rng = np.random.default_rng(seed)
    arch = nr.Architecture.recurrent(2, 4, 2, 3, readout="all", leak=0.5 if seed % 2 else None)
    draw = lambda nodes: {v: rng.normal(size=(6, arch.sizes[v])) for v in nodes}
    data = nr.Dataset(draw(arch.inputs), draw(arch.outputs))
    relu, gated = nr.ReLUNetwork(arch), nr.GDLN(arch)
    weights = {name: 0.4 * rng.normal(size=shape) for name, shape in arch.shapes.items()}
    gates = {v: rng.integers(0, 2, (6, 4)).astype(float) for v in arch.hidden}
    runs = [
        nr.train(net, weights, on, learning_rate=0.01, steps=12, record_every=3,
                 record={"weights": True, **nr.reln.evidence(net, on)})
        for net, on in ((relu, data), (gated, data.gated(gates)))
    ]  # fmt: skip
    found = nr.reln.certify(*runs)

    def outputs(run, k, gate):
        at = {name: np.asarray(w[k]) for name, w in run.values["weights"].items()}
        h, given, hidden = np.zeros((6, 4)), [], {}
        for t in (1, 2, 3):
            z = data.x[f"x{t}"] @ at["Wx"].T
            if t > 1:
                z = z + h @ at["Wh"].T + (0.5 * h if seed % 2 else 0)
            h = hidden[f"h{t}"] = gate(f"h{t}", z)
            given.append(h @ at["Wy"].T)
        return np.concatenate(given, axis=1), hidden

    wanted = np.concatenate([data.y[f"y{t}"] for t in (1, 2, 3)], axis=1)
    unit = np.linalg.norm(wanted - outputs(runs[0], 0, lambda _, z: np.maximum(z, 0))[0]) / 6**0.5
    for k in range(len(found.time)):
        (ours, mine), (theirs, other) = (
            outputs(runs[0], k, lambda _, z: np.maximum(z, 0)),
            outputs(runs[1], k, lambda node, z: gates[node] * z),
        )
        close(found.outputs[k], np.linalg.norm(ours - theirs, axis=1) / unit, 1e-6)
        if set(found.similarity) == set(arch.hidden):
            for v in arch.hidden:
                a, b = (h[v] @ h[v].T for h in (mine, other))
                a, b = a / (np.linalg.norm(a) or 1), b / (np.linalg.norm(b) or 1)
                assert found.similarity[v][k] == pytest.approx(
                    np.linalg.norm(a - b) / 2**0.5, abs=1e-5
                )
    assert found.similarity and nr.reln.certify(runs[0], runs[0]).holds()


def test_what_does_not_know_ties_says_so():
    """Never silently wrong: an untied answer for a tied network would be."""
    arch, data = case()
    net, relu = nr.GDLN(arch), nr.ReLUNetwork(arch)
    run = nr.train(relu, relu.init(0), data, learning_rate=0.01, steps=4, record={"weights": True})
    auto = nr.Architecture.autoencoder(3, 2)
    eye = nr.Dataset({"x": np.eye(3)}, {"y": np.eye(3)})
    calls = [
        lambda: nr.contest({"a": (arch, data)}, start=0.1, bias=True),
        lambda: nr.reln.sliding_over(run, data),
        lambda: nr.reln.sliding_gates(
            nr.ReLUNetwork(auto), {"W1": np.eye(2, 3)}, eye, learning_rate=0.1
        ),
        lambda: nr.reln.consistency(arch, data, scale=1e-3),
        lambda: nr.linear.balance(nr.GDLN(auto), {"W1": np.eye(2, 3)}),
        lambda: nr.linear.saddles(nr.GDLN(auto), eye),
        lambda: nr.analysis.alignment(net, net.init(0), {v: np.eye(2) for v in arch.inputs}),
        lambda: nr.behaviour.Agent(auto, {"total": ["y"]}, {"W1": "total"}),
    ]
    for call in calls:
        with refuses("ties"):
            call()
    with refuses("tolerance"):
        nr.reduce(arch, data, tolerance=0.01)


@pytest.mark.parametrize(
    ("sizes", "edges", "named"),
    [
        *((3, {}, "sizes"), ({"x": 1, "y": 1}, 4, "edges"), ({"x": 1, "y": 1}, "xyz", "edges")),
        *(({"x": 1, "y": 1}, {"a": ends}, "a") for ends in ("xy", "xyz", ["x"], 3, ["x", "y", 1])),
        *(
            ({"x": 1, "y": 1}, {"a": ["x", 2]}, "a"),
            ({"x": 1, "y": 1}, {1: ["x", "y"]}, "edges"),
        ),
    ],
)
def test_a_damaged_description_of_a_graph_is_refused(sizes, edges, named):
    with refuses(named):
        nr.Architecture.from_description({"sizes": sizes, "edges": edges})


def test_the_steps_that_are_read_may_be_an_array():
    steps = [1, 3]
    assert nr.Architecture.recurrent(2, 3, 1, 3, np.array(steps)) == nr.Architecture.recurrent(
        2, 3, 1, 3, steps
    )


# ---- weights of the loss ------------------------------------------------------------------------


def weighed(seed=0, readout="all"):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(12, 3, 2)), rng.normal(size=(12, 3, 2))
    counts = rng.uniform(0, 2, (12, 3)) * (rng.uniform(size=(12, 3)) < 0.8)
    arch = nr.Architecture.recurrent(2, 5, 2, 3, readout)
    return arch, nr.tasks.sequences(x, y, readout, loss_weight=counts)


@pytest.mark.parametrize("seed", range(2))
def test_weights_of_the_loss_everywhere(seed):
    """Network, training with and without compression, flow, race, records and files."""
    arch, data = weighed(seed)
    weights = gaussian(arch, 0.3, seed)
    assert nr.dataset.zero_loss(data) == pytest.approx(
        truth(arch, {n: 0 * w for n, w in weights.items()}, data)
    )
    for net in (nr.GDLN(arch), nr.ReLUNetwork(arch)):
        run = nr.train(net, weights, data, learning_rate=0.05, steps=5, record={"weights": True})
        again = nr.Trajectory.from_weights(net, run.values["weights"], data, run.time)
        np.testing.assert_allclose(again.loss, run.loss, rtol=1e-9)
        w = {n: a.copy() for n, a in weights.items()}
        for loss in run.loss if isinstance(net, nr.GDLN) else ():
            assert loss == pytest.approx(truth(arch, w, data), rel=1e-10)
            w = {n: a - 0.05 * slope for (n, a), slope in zip(
                w.items(), slopes(arch, w, data).values(), strict=True)}  # fmt: skip
    small = nr.train(nr.GDLN(arch), weights, data, learning_rate=0.05, steps=5, compress=True)
    first = nr.train(nr.GDLN(arch), weights, data, learning_rate=0.05, steps=5)
    close(small.loss, first.loss)
    race, times = nr.reduce(arch, data), np.linspace(0, 2, 5)
    solved = race.solve(times=times, start=weights, evaluate={"again": data})
    flowed = nr.flow(nr.GDLN(arch), weights, data, times=times, rtol=1e-9)
    close(solved.loss, flowed.loss, 1e-6)
    close(solved.values["again"]["loss"], flowed.loss, 1e-6)
    mixed = nr.Dataset.mixture({"a": (0.5, data), "b": (0.5, data)})
    assert float(nr.GDLN(arch).loss(weights, mixed)) == pytest.approx(float(first.loss[0]))
    population = nr.Dataset.from_moments(data.moments())
    assert float(nr.GDLN(arch).loss(weights, population)) == pytest.approx(float(first.loss[0]))


def test_weights_of_the_loss_scale_a_mode():
    """Two outputs, one of weight w: w times the drive, and the same final strength."""
    arch = nr.Architecture.layered({"x": 2}, {"h": 8}, {"a": 1, "b": 1})
    x = np.sqrt(2) * np.eye(2)
    data = nr.Dataset({"x": x}, {"a": x[:, :1], "b": x[:, 1:]}, loss_weight={"b": 4.0})
    race = nr.reduce(arch, data)
    form = race.closed_form(0.01)
    assert [round(b.drive, 9) for b in race.blocks] == [4.0, 1.0]
    times = np.linspace(0, 8, 9)
    run = race.solve(times=times, start=0.01)
    flowed = nr.flow(nr.GDLN(arch), race.weights(run, 0.0), data, times=times, rtol=1e-9)
    close(run.loss, flowed.loss, 1e-6)
    close(form.loss(times), flowed.loss, 1e-6)
    assert data.digest() != nr.Dataset(data.x, data.y).digest()
    assert data.take([0]).loss_weight["b"].shape == (1,)


@pytest.mark.parametrize(
    ("counts", "named"),
    [({"c": 1.0}, "c"), ({"y1": -1.0}, "y1"), ({"y1": np.ones(3)}, "y1"),
     ({"y1": np.ones((12, 1))}, "y1"), ({"y1": np.nan}, "y1"), ([1.0], "loss_weight")],
)  # fmt: skip
def test_bad_weights_of_the_loss(counts, named):
    _, data = weighed()
    with refuses(named):
        nr.Dataset(data.x, data.y, loss_weight=counts)


def test_what_does_not_know_weights_of_the_loss():
    arch, data = weighed()
    with refuses("loss_weight"):
        nr.tasks.sequences(np.ones((4, 3, 1)), np.ones((4, 3, 1)), "all", loss_weight=[1, 2])
    with refuses("y"):
        nr.tasks.sequences(np.ones((4, 3, 1)), np.ones((4, 2, 1)), "all")
    net = nr.GDLN(arch)
    calls = [
        lambda: net.loss(net.init(0), data, "cross_entropy"),
        lambda: nr.reln.aligned(data, width=5),
        lambda: nr.contests.rank_patterns(data, np.ones((1, 12))),
        lambda: nr.predict(data, width=5, scale=1e-3, learning_rate=0.1, steps=10),
    ]
    for call in calls:
        with refuses("loss_weight"):
            call()


@pytest.mark.parametrize("seed", [1, 3, 11, 12, 21])
def test_conserved_matrices_of_classes(seed):
    """Along gradient flow of random tied graphs with gates, also per neuron."""
    rng = np.random.default_rng(seed)
    arch = random_graph(rng)
    if any(not isinstance(value, float) for value in arch.frozen.values()):
        return
    data, net = random_task(rng, arch), nr.GDLN(arch)
    race, weights = nr.reduce(arch, data), gaussian(arch, 0.4, seed)
    run = nr.flow(net, weights, data, times=[0, 1.0], rtol=1e-11, atol=1e-13,
                  record={"weights": True})  # fmt: skip
    first = race.conserved_matrices(weights)
    last = race.conserved_matrices({n: w[-1] for n, w in run.values["weights"].items()})
    free = {arch.class_of[v] for v in arch.hidden} - {
        arch.class_of[v] for v in (*arch.inputs, *arch.outputs)
    }
    turned = any(len({way for _, way in members}) > 1 for members in arch.matrices.values())
    assert bool(first) == bool(free and not turned)
    for node, matrix in first.items():
        np.testing.assert_allclose(last[node], matrix, atol=1e-8)


def test_classes_without_a_conserved_matrix():
    eye = nr.Dataset({"x": np.eye(3)}, {"y": np.eye(3)})
    auto = nr.Architecture.autoencoder(3, 2)
    assert not nr.reduce(auto, eye).conserved_matrices({"W1": np.ones((2, 3))})
    given = nr.Architecture.recurrent(2, 3, 1, 2, initial=True)
    data = random_task(np.random.default_rng(0), given).gated({})
    assert not nr.reduce(given, data).conserved_matrices(gaussian(given, 1, 0))
