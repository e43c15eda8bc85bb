"""The race against the full network: losses, flow, descent, weights; and bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from evidence.own.cases import random_case
from evidence.own.reduction import planted
from tests.systems.rows import System
from tests.test_errors import refuses

KEY = jax.random.key(0)
TIMES = np.linspace(0, 6, 13)
START = 0.3


def hierarchy() -> tuple[nr.Architecture, nr.Dataset]:
    data = nr.Dataset({"x": np.eye(4)}, {"y": nr.tasks.hierarchy(depth=2).T})
    return nr.Architecture.chain(4, 6, 7), data


def three_edges() -> tuple[nr.Architecture, nr.Dataset]:
    return nr.Architecture.chain(4, 5, 6, 7), hierarchy()[1]


def contexts() -> tuple[nr.Architecture, nr.Dataset]:
    return nr.tasks.common_and_all_but_one(nr.tasks.contextual(3, items=2), hidden=8)


def routing() -> tuple[nr.Architecture, nr.Dataset]:
    base = np.eye(2), np.array([[2.0, 1.0], [2.0, -1.0]])
    return nr.tasks.routing_pathways(nr.tasks.routing(3, 2, base=base)[0], hidden=4)


def skip() -> tuple[nr.Architecture, nr.Dataset]:
    """Paths of one, two and three edges; matrix blocks on gated, correlated data."""
    rng = np.random.default_rng(1)
    x = np.kron(np.eye(2), rng.normal(size=(6, 2)))
    y = np.kron(np.eye(2), rng.normal(size=(6, 2)))
    turned = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
    x, y = (a @ q for a, q in zip((x, y), turned, strict=True))
    arch = nr.Architecture(
        {"x": 4, "a": 7, "b": 8, "y": 4},
        {"xa": ("x", "a"), "ab": ("a", "b"), "by": ("b", "y"), "ay": ("a", "y"), "xy": ("x", "y")},
    )
    return arch, nr.Dataset({"x": x}, {"y": y}, {"b": np.tile([1.0, 0.5, 0.0], 4)})


def scalar_skip() -> tuple[nr.Architecture, nr.Dataset]:
    """Paths of one and two edges between modes."""
    arch = nr.Architecture(
        {"x": 4, "h": 5, "y": 7}, {"xh": ("x", "h"), "hy": ("h", "y"), "xy": ("x", "y")}
    )
    return arch, hierarchy()[1]


PROBLEMS = {f.__name__: f for f in (hierarchy, three_edges, contexts, routing, skip, scalar_skip)}


@functools.cache
def solved(name: str) -> tuple[nr.Race, nr.Trajectory]:
    race = nr.reduce(*PROBLEMS[name]())
    return race, race.solve(times=TIMES, start=START)


def loss(race: nr.Race, weights: dict) -> float:
    return float(nr.GDLN(race.arch).loss(weights, race.data))


def descended(race: nr.Race, start, weights=None) -> tuple[nr.Trajectory, nr.Trajectory]:
    """The network trained, from a decoupled start or these weights, and the race with its step."""
    rate = 0.05
    solution = race.solve(times=rate * np.arange(0, 101, 5), start=start, learning_rate=rate)
    weights = race.weights(solution, 0.0, KEY) if weights is None else weights
    run = nr.train(
        nr.GDLN(race.arch), weights, race.data, learning_rate=rate, steps=100, record_every=5
    )
    return run, solution


# ---- the race is the network (see also tests/systems) -------------------------------------------


def test_blocks_of_a_planted_structure_run_by_themselves():
    """Matrix blocks on a random graph, from a start with unequal values, against descent."""
    rng = np.random.default_rng(31)
    arch, data, _ = planted(rng)
    arch = nr.Architecture(
        {v: 30 if v in arch.hidden else n for v, n in arch.sizes.items()}, arch.edges
    )
    race = nr.reduce(arch, data)
    assert len(race.blocks) > 1 and not race.is_decoupled
    start = race.start(0.2)
    uneven = nr.reduction.Start(
        tuple(
            {e: w + 0.1 * rng.normal(size=w.shape) for e, w in weights.items()}
            for weights in start.weights
        ),
        None,
        "uneven",
    )
    rate = 0.02
    times = rate * np.arange(0, 101, 20)
    solution = race.solve(times=times, start=uneven, learning_rate=rate)
    weights = race.weights(solution, 0.0, KEY)
    run = nr.train(nr.GDLN(arch), weights, data, learning_rate=rate, steps=100, record_every=20)
    np.testing.assert_allclose(solution.loss, run.loss, rtol=1e-10)
    assert run.loss[-1] < run.loss[0] - 1e-3
    assert solution.settings["start"] == "uneven"


# ---- what a solution holds ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["routing", "skip", "contexts"])
def test_pathways_are_products_of_variables(name):
    race, solution = solved(name)
    for block in race.blocks:
        variables = solution.values["variables"][block.name]
        assert set(variables) == set(block.arch.edges)
        strengths = solution.values["pathways"][block.name]
        assert set(strengths) == {"-".join(p.edges) for p in block.arch.paths()}
        for path in block.arch.paths():
            product = functools.reduce(
                lambda before, e: variables[e] @ before,
                path.edges[1:],
                variables[path.edges[0]],
            )
            expected = (
                product[:, 0, 0]
                if product.shape[1:] == (1, 1)
                else np.sqrt((product**2).sum(axis=(1, 2)))
            )
            np.testing.assert_allclose(strengths["-".join(path.edges)], expected, rtol=1e-12)


def test_variables_start_where_the_start_says():
    race, solution = solved("skip")
    for block, weights in zip(race.blocks, race.start(START).weights, strict=True):
        for e, w in weights.items():
            np.testing.assert_allclose(solution.values["variables"][block.name][e][0], w)


def test_solution_is_saved_and_loaded(tmp_path):
    race, solution = solved("contexts")
    solution.save(tmp_path / "race.nc")
    again = nr.load(tmp_path / "race.nc")
    assert isinstance(solution, nr.Trajectory)
    assert nr.compare(solution, again).max == 0
    assert again.settings["method"] == "race"
    assert again.settings["blocks"] == len(race.blocks)
    for t in (0.0, 6.0):
        one, other = (race.weights(s, t, KEY) for s in (solution, again))
        for e in one:
            np.testing.assert_array_equal(one[e], other[e])


def test_times_are_rounded_to_whole_steps():
    race = solved("hierarchy")[0]
    solution = race.solve(times=[0.0, 0.1, 0.14, 0.26, 0.5], start=START, learning_rate=0.1)
    np.testing.assert_allclose(solution.time, [0.0, 0.1, 0.3, 0.5])
    later = race.solve(times=[0.3, 0.5], start=START, learning_rate=0.1)
    np.testing.assert_allclose(later.loss, solution.loss[2:], rtol=1e-12)


def test_times_need_not_begin_at_zero():
    race, solution = solved("hierarchy")
    later = race.solve(times=np.linspace(3, 6, 13), start=START)
    np.testing.assert_allclose(later.loss[::2], solution.loss[6:], rtol=1e-7)


def test_weights_keep_hidden_directions_by_key():
    race, solution = solved("hierarchy")
    same, other = (race.weights(solution, 2.0, jax.random.key(k)) for k in (0, 1))
    again = race.weights(solution, 2.0, KEY)
    assert all((same[e] == again[e]).all() for e in same)
    assert np.abs(same["W1"] - other["W1"]).max() > 1e-3
    np.testing.assert_allclose(same["W2"] @ same["W1"], other["W2"] @ other["W1"], atol=1e-12)


# ---- approximate reductions ---------------------------------------------------------------------


def test_error_of_an_approximate_reduction_falls_with_the_coupling_dropped():
    errors = []
    for epsilon in (1e-1, 1e-2):
        x = np.linalg.cholesky(np.array([[1.0, epsilon], [epsilon, 1.0]])).T
        y = np.linalg.solve(x.T, np.diag([2.0, 1.0]))
        arch, data = nr.Architecture.chain(2, 4, 2), nr.Dataset({"x": x}, {"y": y})
        race = nr.reduce(arch, data, tolerance=0.3)
        assert race.is_decoupled and not race.is_exact
        run, solution = descended(race, 0.1)
        errors.append(nr.compare(run, solution).max)
    assert errors[1] < 0.2 * errors[0] < 0.2
    assert errors[1] > 0


# ---- bad input, and what is right nevertheless --------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        nr.Dataset({"x": np.eye(3)}, {"y": np.zeros((3, 2))}),
        nr.Dataset({"x": np.eye(3)}, {"y": np.ones((3, 2))}, {"h": np.zeros(3)}),
    ],
    ids=["zero targets", "closed gates"],
)
def test_no_signal(data):
    """Nothing is learned from aligned weights: the loss is what it is at zero, for ever."""
    size = next(iter(data.y.values())).shape[1]
    arch = nr.Architecture.chain(3, 4, size)
    race = nr.reduce(arch, data)
    assert race.blocks == ()
    assert "No signal" in str(race) and "Nothing is learned" in str(race)
    zero = {e: np.zeros((arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()}
    assert race.constant == pytest.approx(loss(race, zero))
    assert race.silent == {"x": 3, "y": size}
    for rate in (None, 0.1):
        solution = race.solve(times=[0.0, 1.0, 2.0], start=0.1, learning_rate=rate)
        np.testing.assert_allclose(solution.loss, loss(race, zero))
    weights = race.weights(solution, 1.0, KEY)
    assert all(not w.any() for w in weights.values())
    assert race.start(nr.GDLN(arch).init(KEY)).alignment == 0


def test_rank_deficient_inputs_race_like_the_flow():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(7, 2)) @ rng.normal(size=(2, 5))
    arch, data = nr.Architecture.chain(5, 6, 3), nr.Dataset({"x": x}, {"y": x[:, :3] - 1.0})
    race = nr.reduce(arch, data)
    run, solution = descended(race, 0.1)
    assert nr.compare(run, solution).max < 1e-10


@pytest.mark.parametrize("rate", [None, 0.1])
def test_a_start_at_the_saddle_stays_there(rate):
    race = solved("hierarchy")[0]
    solution = race.solve(times=10 * TIMES, start=0.0, learning_rate=rate)
    np.testing.assert_array_equal(solution.loss, solution.loss[0])
    assert solution.loss[0] == pytest.approx(
        race.constant + sum(b.initial_loss for b in race.blocks)
    )
    zero = race.weights(solution, 0.0, KEY)
    assert all(not w.any() for w in zero.values())
    again = race.start(zero)
    assert again.alignment is None
    np.testing.assert_allclose(race.solve(times=TIMES, start=again).loss, solution.loss[0])


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("as_weights", [False, True])
def test_an_edge_from_input_to_output_learns_from_zero(size, as_weights):
    """Zero is no saddle of a skip connection: it learns alone, exponentially."""
    arch = nr.Architecture(
        {"x": 2, "h": 4, "y": 2}, {"in": ("x", "h"), "out": ("h", "y"), "skip": ("x", "y")}
    )
    x = np.diag([1.0, 2.0]) * size
    race = nr.reduce(arch, nr.Dataset({"x": x}, {"y": np.diag([3.0, 1.0])}))
    start = {e: np.zeros((arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()}
    times = np.linspace(0, 3, 7) / size**2
    solution = race.solve(times=times, start=start if as_weights else 0.0)
    rates = np.array([0.5, 2.0]) * size**2  # ⟨x²⟩ of each input
    expected = np.exp(-2 * np.outer(times, rates)) @ [9.0 / 4, 1.0 / 4]
    np.testing.assert_allclose(solution.loss, expected, rtol=1e-6)
    for paths in solution.values["pathways"].values():
        assert not paths["in-out"].any()


def test_paths_of_a_mode_have_signs_and_add_up_to_it():
    """From weights too, where a mode keeps the vectors of its hidden neurons."""
    arch, data = scalar_skip()
    race = nr.reduce(arch, data)
    weights = nr.GDLN(arch).init(jax.random.key(2), scale=0.4)
    solution = race.solve(times=[0.0, 500.0], start=weights)
    w = {e: np.asarray(a) for e, a in weights.items()}
    maps = {"xh-hy": w["hy"] @ w["xh"], "xy": w["xy"]}
    best = np.asarray(data.y["y"]).T @ np.linalg.pinv(np.asarray(data.x["x"]).T)
    signs = set()
    for block in race.blocks:
        paths = solution.values["pathways"][block.name]
        along = lambda whole, b=block: float((b.basis["y"].T @ whole @ b.basis["x"])[0, 0])
        for path, whole in maps.items():
            assert paths[path][0] == pytest.approx(along(whole))
            signs.add(np.sign(along(whole)))
        assert sum(p[-1] for p in paths.values()) == pytest.approx(along(best))
    assert signs == {-1.0, 1.0}


@pytest.mark.parametrize("name", ["hierarchy", "three_edges", "scalar_skip", "contexts"])
def test_negative_starts(name):
    """An odd number of negative edges starts on the wrong side; the flow says what happens."""
    race = solved(name)[0]
    solution = race.solve(times=TIMES, start=-START)
    truth = System(race.arch, race.data, ()).truth()
    losses, _ = truth.flow(race.weights(solution, 0.0, KEY), TIMES)
    assert np.abs(losses - solution.loss).max() < 1e-7 * losses[0]
    positive = solved(name)[1]
    if name in ("hierarchy", "contexts"):  # two edges: the signs cancel
        np.testing.assert_allclose(solution.loss, positive.loss, rtol=1e-8)
    else:
        assert solution.loss[-1] > positive.loss[-1] + 1e-4


def test_paths_of_different_lengths_have_no_growing_half():
    """A skip connection: actual weights are restricted, and the race follows them."""
    arch, data = scalar_skip()
    race = nr.reduce(arch, data)
    weights = nr.GDLN(arch).init(jax.random.key(4), scale=0.01)
    start = race.start(weights)
    assert "restricted" in start.description
    run, solution = descended(race, start, weights)
    assert nr.compare(run, solution).max < 1e-3


def test_thousands_of_gate_classes_are_solved():
    rng, n = np.random.default_rng(7), 3000
    item = np.tile(np.arange(2), n // 2)
    data = nr.Dataset(
        {"x": np.eye(2)[item]},
        {"y": np.diag([2.0, 1.0])[item]},
        {"h": rng.uniform(0.5, 1.5, n)},
    )
    arch = nr.Architecture.chain(2, 3, 2)
    race = nr.reduce(arch, data)
    assert race.is_decoupled and len(race.blocks) == 2
    run, solution = descended(race, START)
    assert nr.compare(run, solution).max < 1e-10


def test_hidden_nodes_too_narrow_for_every_block():
    arch, data = nr.Architecture.chain(4, 3, 7), hierarchy()[1]
    race = nr.reduce(arch, data)
    solution = race.solve(times=[0.0, 1.0], start=0.1)
    with refuses("h"):
        race.weights(solution, 0.0, KEY)


def test_weights_of_a_run_that_is_no_race():
    race = solved("hierarchy")[0]
    run = nr.Trajectory([0.0, 1.0], [1.0, 0.5], settings={"method": "gradient descent"})
    with refuses("race"):
        race.weights(run, 0.0, KEY)


@pytest.mark.parametrize("times", [[1.0, 0.5], [0.0, 1.0, 1.0], [-1.0, 1.0], [0.0, np.nan], [0.0]])
@pytest.mark.parametrize("rate", [None, 0.1])
def test_times_must_increase(times, rate):
    with refuses("times"):
        solved("hierarchy")[0].solve(times=times, start=0.1, learning_rate=rate)


@pytest.mark.parametrize("rate", [0.0, -0.1, float("nan"), float("inf")])
def test_learning_rate_must_be_positive(rate):
    with refuses("learning_rate"):
        solved("hierarchy")[0].solve(times=[0.0, 1.0], start=0.1, learning_rate=rate)


def test_a_learning_rate_that_diverges():
    with refuses("learning"):
        solved("hierarchy")[0].solve(times=[0.0, 3000.0], start=1.0, learning_rate=30.0)


def test_pathways_without_their_gates_are_said_to_be_one_node():
    task = nr.tasks.extended_xor(1.0)
    arch, data = nr.tasks.linear_pathways(task, total=8)
    said = "the data has no gates: positive, negative are always on, and learn as one node would"
    assert said in str(nr.reduce(arch, task))
    assert "no gates" not in str(nr.reduce(arch, data))
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.1)
    nr.train(net, weights, data, learning_rate=0.1, steps=1)
    with pytest.warns(UserWarning, match=said):
        nr.train(net, weights, task, learning_rate=0.1, steps=1)
    assert "no gates" not in str(nr.reduce(nr.Architecture.chain(3, 8, 1), task))
    nothing = str(nr.reduce(nr.tasks.xor_pathways(nr.tasks.xor(), total=8)[0], nr.tasks.xor()))
    assert "No signal" in nothing and "no gates: sample1, sample2, sample3, sample4" in nothing


# ---- numbers that were wrong --------------------------------------------------------------------


@pytest.mark.parametrize("when", [np.inf, np.nan, -np.inf])
def test_weights_at_a_time_that_is_no_number_are_refused(when):
    race, solution = solved("hierarchy")
    with refuses("t"):
        race.weights(solution, when, KEY)


@pytest.mark.parametrize("number", [np.float32(0.25), np.array(0.25), jnp.asarray(0.25)])
def test_a_start_may_be_a_number_of_any_library(number):
    race, _ = solved("hierarchy")
    for source in (number, dict.fromkeys(race.arch.edges, number)):
        start = race.start(source)
        for mine, plain in zip(start.weights, race.start(0.25).weights, strict=True):
            for edge, w in mine.items():
                np.testing.assert_array_equal(w, plain[edge])
    assert race.start(number).description == "aligned, 0.25"


@pytest.mark.parametrize("name", ["hierarchy", "contexts"])
def test_a_descent_that_diverges_stops_with_all_that_was_finite(name):
    race, _ = solved(name)
    times = 50.0 * np.arange(200)
    with pytest.raises(nr.StoppedError, match=r"after step [1-9]") as caught:
        race.solve(times=times, start=0.3, learning_rate=50.0)
    run = caught.value.trajectory
    assert 1 < len(run.time) < len(times)
    np.testing.assert_array_equal(run.time, times[: len(run.time)])
    assert np.isfinite(run.loss).all()
    for leaf in jax.tree.leaves(run.values):
        assert len(leaf) == len(run.time) and np.isfinite(leaf).all()
    first = race.solve(times=times[:2], start=0.3, learning_rate=50.0)
    np.testing.assert_allclose(run.loss[:2], first.loss, rtol=1e-12)


# ---- outputs of a solution ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_outputs_of_a_solution_are_those_of_its_weights(seed):
    """Random graphs, real gates per node and edge, several ends: W(t) in the full network."""
    case = random_case(np.random.default_rng(seed), neurons=False)
    sizes = {v: 40 if v in case.arch.hidden else n for v, n in case.arch.sizes.items()}
    arch = nr.Architecture(sizes, case.arch.edges)  # wide enough for every block
    race = nr.reduce(arch, case.data)
    sol = race.solve(times=[0.0, 0.3, 1.0], start=0.2)
    for k, t in enumerate(sol.time):
        wanted = nr.GDLN(arch)(race.weights(sol, t, jax.random.key(0)), case.data)
        for node, found in sol.outputs.items():
            np.testing.assert_allclose(found[k], wanted[node], rtol=1e-9, atol=1e-10)


def test_theory_is_compared_and_certified_by_its_outputs():
    data = nr.tasks.extended_xor(0.6)
    arch, gated = nr.tasks.xor_pathways(data, total=32)
    net, race = nr.GDLN(arch), nr.reduce(arch, gated)
    times = 0.05 * np.arange(0, 401, 10)
    decoupled = race.solve(times=times, start=0.05)
    weights = race.weights(decoupled, 0.0, jax.random.key(0))
    run = nr.train(
        net, weights, gated, learning_rate=0.05, steps=400, record_every=10,
        record={"outputs": True},
    )  # fmt: skip
    sol = race.solve(times=times, start=0.05, learning_rate=0.05)
    assert nr.compare(run, sol).outputs < 1e-10
    assert nr.reln.certify(run, sol).holds(1e-9)
    part = sol.isel(time=slice(0, 5))
    np.testing.assert_array_equal(part.outputs["y"], sol.outputs["y"][:5])
    assert sol.settings["data"] == gated.digest() == run.settings["data"]


# ---- other samples and gates ---------------------------------------------------------------------


def test_the_loss_on_untrained_routes_is_that_of_the_network():
    """Routing: the race and the network that starts as the race does, on every route."""
    trained, every = nr.tasks.routing(M=4, K=2)
    arch, data = nr.tasks.routing_pathways(trained)
    untrained = nr.tasks.routing_pathways(every)[1]
    race, net = nr.reduce(arch, data), nr.GDLN(arch)
    times = np.linspace(0, 90, 31)
    solution = race.solve(times=times, start=0.05, evaluate={"all": untrained, "same": data})
    np.testing.assert_allclose(
        solution.values["same"]["loss"], solution.loss, rtol=1e-8, atol=1e-12
    )
    weights = race.weights(solution, 0.0, key=0)
    run = nr.flow(net, weights, data, times=times, evaluate={"all": untrained})
    wanted = run.values["all"]["loss"]
    np.testing.assert_allclose(solution.values["all"]["loss"], wanted, rtol=1e-5, atol=1e-7)
    assert wanted[-1] < 0.05 * wanted[0], "untrained routes are learned too"


@pytest.mark.parametrize("seed", [2, 4, 12, 14, 22, 27, 31, 37])
def test_the_loss_on_other_samples_is_that_of_full_size_weights(seed):
    """Random graphs with gates per neuron: other inputs, targets, gates and sample weights.

    Their hidden nodes have a neuron for every block.
    """
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    race = nr.reduce(case.arch, case.data)
    times = np.array([0.0, 0.5, 1.0])
    n = case.data.n_samples
    order = rng.integers(0, n, 2 * n)  # other samples, with gates that neurons of one part share
    other = nr.Dataset(
        {v: rng.normal(size=(2 * n, case.arch.sizes[v])) for v in case.arch.inputs},
        {v: rng.normal(size=(2 * n, case.arch.sizes[v])) for v in case.arch.outputs},
        {name: np.asarray(g)[order] for name, g in case.data.gates.items()},
        rng.random(2 * n) + 0.1,
    )
    solution = race.solve(times=times, start=0.1, evaluate={"other": other})
    for k, t in enumerate(times):
        weights = race.weights(solution, t, key=0)
        wanted = float(nr.GDLN(case.arch).loss(weights, other))
        assert solution.values["other"]["loss"][k] == pytest.approx(wanted, rel=1e-8)


def test_evaluations_that_do_not_fit():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor(), total=8)
    race = nr.reduce(arch, data)
    with refuses("losses"):
        race.solve(times=[1.0], start=0.1, evaluate={"losses": data})
    with refuses("test"):
        race.solve(times=[1.0], start=0.1, evaluate={"test": [data]})  # type: ignore
    net = nr.ReLUNetwork((2, 3, 1))
    gates = net.activity(net.init(0, scale=1.0), nr.tasks.xor())["h"]
    per_neuron = nr.Architecture.chain(2, 3, 1)
    gated = nr.tasks.xor().gated({"h": np.repeat(np.asarray(gates)[:, :1], 3, axis=1)})
    with refuses("neurons"):
        nr.reduce(per_neuron, gated).solve(
            times=[1.0],
            start=0.1,
            evaluate={"t": gated.gated({"h": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]})},
        )
