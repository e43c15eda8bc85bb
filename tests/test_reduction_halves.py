"""Both halves of a start: what decays at first may be what grows in the end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import neuralrace as nr
from evidence.own.learning_times import Task, random_task
from neuralrace.reduction.start import later


@pytest.fixture
def turned():
    """The second sample wants less than the first pathway learns; its own pathway lowers it."""
    base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]})
    arch, data = nr.pathways(base, {"all": [1, 1], "second": [0, 1]}, hidden=20)
    weights = nr.GDLN(arch).init(0, scale=1e-3)
    return arch, data, {e: np.asarray(w, np.float64) for e, w in weights.items()}


def scalar_pathways(x, y, masks, reads, writes, times, criterion=0.0, rate=None):
    """Losses of the full network at the times, and when it reaches the criterion, by SciPy.

    With a rate, by steps of descent. Sample n shows x_n and wants y_n; pathway p has the incoming
    weights `reads[p]`.
    """

    def errors(state):
        r, w = state.reshape(2, *reads.shape)
        return y - masks.T @ (r * w).sum(axis=1) * x

    def velocity(_, state):
        r, w = state.reshape(2, *reads.shape)
        drive = (masks @ (errors(state) * x) / len(x))[:, None]
        return np.concatenate([(drive * w).ravel(), (drive * r).ravel()])

    def above(_, state):
        return (errors(state) ** 2).mean() / 2 - criterion

    above.terminal = True
    begin = np.concatenate([reads.ravel(), writes.ravel()])
    if rate is not None:
        states = [begin]
        for _ in range(round(times[-1] / rate)):
            states.append(states[-1] + rate * velocity(0, states[-1]))
        return [(errors(states[round(t / rate)]) ** 2).mean() / 2 for t in times], np.nan
    found = solve_ivp(
        velocity, (0, times[-1]), begin, "LSODA", times, events=above, rtol=1e-6, atol=1e-10
    )
    losses = [(errors(state) ** 2).mean() / 2 for state in found.y.T]
    return losses, float(found.t_events[0][0]) if len(found.t_events[0]) else np.inf


@pytest.mark.parametrize("rate", [None, 1e-2])
def test_the_half_that_decays_at_first_is_kept_where_the_error_turns(turned, rate):
    arch, data, weights = turned
    times = np.array([0.0, 5.0, 20.0, 50.0])
    found = nr.reduce(arch, data).solve(times=times, start=weights, learning_rate=rate)
    names = ("all", "second")
    parts = [[weights[f"x_{n}"][:, 0] for n in names], [weights[f"{n}_y"][0] for n in names]]
    masks = np.array([[1.0, 1.0], [0.0, 1.0]])
    task = np.ones(2), np.array([3.0, 1.0]), masks
    wanted, _ = scalar_pathways(*task, *map(np.array, parts), times, rate=rate)
    assert found.loss[-1] < 1e-7
    assert_allclose(found.loss, wanted, rtol=1e-3, atol=1e-7)
    assert list(found.values["pathways"]["mode1"]) == ["x_all-all_y", "x_second-second_y"]
    ends = [values[-1] for values in found.values["pathways"]["mode1"].values()]
    assert_allclose(ends, [3.0, -2.0], rtol=1e-4)


def test_scalar_equations_stay_where_no_error_turns(turned):
    arch, data, _ = turned
    data = nr.Dataset(data.x, {"y": [[1.0], [3.0]]}, data.gates)
    race = nr.reduce(arch, data)
    start = race.start(nr.GDLN(arch).init(0, scale=1e-3))
    found = race.solve(times=[0, 50], start=start)
    assert {w.shape for w in found.values["variables"]["mode1"].values()} == {(2, 1, 1)}
    assert len(race.equations(start)["mode1"]) == 2


def test_a_race_that_goes_on_from_a_solution_still_has_both_halves(turned):
    arch, data, weights = turned
    race = nr.reduce(arch, data)
    start = race.start(weights)
    once = race.solve(times=[0, 1, 30], start=start)
    early = race.solve(times=[0, 1], start=start)
    assert early.values["variables"]["mode1"]["x_all"].shape == (2, 1, 1)  # nothing turned so far
    rest = race.solve(times=[0, 29], start=later(race.blocks, start, early))
    assert rest.loss[-1] == pytest.approx(once.loss[-1], rel=1e-4)


def test_no_contest_from_actual_weights_says_falsely_that_a_network_never_learns():
    """Thirty tasks of one input and one output, with pathways that overlap."""
    rng, learned, turns = np.random.default_rng(1), 0, 0
    for key in range(30):
        count, pathways = rng.integers(3, 5), rng.integers(2, 4)
        x, y = rng.choice([0.5, 1.0, 2.0], count), 1 + 2 * rng.normal(size=count)
        masks = (rng.random((pathways, count)) < 0.5).astype(float)
        masks[0], masks[range(pathways), rng.integers(count, size=pathways)] = 1.0, 1.0
        names = [f"m{p}" for p in range(pathways)]
        base = nr.Dataset({"x": x[:, None]}, {"y": y[:, None]})
        race = nr.reduce(*nr.pathways(base, dict(zip(names, masks, strict=True)), hidden=2))
        weights = {e: 1e-2 * rng.normal(size=(2, 1)) for e in race.arch.edges}
        weights = {e: w.T if e.endswith("_y") else w for e, w in weights.items()}
        reads = np.array([weights[f"x_{n}"][:, 0] for n in names])
        writes = np.array([weights[f"{n}_y"][0] for n in names])
        shown = masks.T * x[:, None]
        best = np.linalg.lstsq(shown, y, rcond=None)[0]
        least = ((y - shown @ best) ** 2).mean() / 2
        criterion = least + 0.1 * ((y**2).mean() / 2 - least)
        found = nr.contest({"c": race}, start={"c": weights}, criterion=criterion).entrants["c"]
        end = 1.2 * found.time if np.isfinite(found.time) else 500 / found.strength
        _, wanted = scalar_pathways(x, y, masks, reads, writes, [0, end], criterion)
        assert found.time == pytest.approx(wanted, rel=1e-2), key
        learned += np.isfinite(found.time)
        turns += (best * (masks @ (x * y)) < 0).any()  # a pathway ends on the other side
    assert learned >= 27 and turns >= 5  # the sample has what it is meant to test


def test_modes_that_share_hidden_directions_where_an_error_turns():
    """Alone, with both halves, such modes are late: by 10 to 30 % here, and by more from σ = 1e-5.

    A mode that was learned before has left in the decayed half what its own start had not.
    """
    rng = np.random.default_rng(36)
    tasks = [random_task(rng) for _ in range(53)]
    for task in (tasks[42], tasks[52]):
        race = nr.reduce(*task.pair())
        assert len(race.blocks) > 1 and race.is_decoupled
        options = {"start": {"c": task.weights()}, "criterion": task.criterion, "leads": False}
        found = nr.contest({"c": race}, **options).entrants["c"]
        wanted = task.reaches(task.criterion, 1.5 * found.time)
        assert found.time == pytest.approx(wanted, rel=1e-3)
        solution = race.solve(times=[0, wanted], start=task.weights())
        assert solution.loss[-1] == pytest.approx(task.criterion, rel=1e-3)
        early = race.solve(times=[0, wanted / 2], start=task.weights())
        start = later(race.blocks, race.start(task.weights()), early)
        rest = race.solve(times=[0, wanted / 2], start=start)
        assert rest.loss[-1] == pytest.approx(solution.loss[-1], rel=1e-4)


def test_modes_followed_together_have_the_targets_of_all_alone():
    """One of them is off in a class of samples, where rounding would seem to reach the others'."""
    rng = np.random.default_rng(36)
    tasks = [random_task(rng) for _ in range(45)]
    for task in (tasks[29], tasks[33], tasks[44]):
        options = {"start": {"c": task.weights()}, "criterion": task.criterion, "leads": False}
        found = nr.contest({"c": task.pair()}, **options).entrants["c"]
        assert found.start.joined and found.start.gap < 1e-12 and found.is_exact
        wanted = task.reaches(task.criterion, 1.5 * found.time)
        assert found.time == pytest.approx(wanted, rel=1e-5)
        early = found.race.solve(times=[0, wanted / 2, wanted], start=found.start)
        assert early.loss[-1] == pytest.approx(task.criterion, rel=1e-4)


def between_nodes(rng, directions=2, pathways=2):
    """A task whose directions have an input and an output node each, and share hidden nodes."""
    while True:
        samples = 3 * directions
        along = np.tile(np.arange(directions), 3)
        axes = np.eye(directions)[along]
        x = rng.choice([0.5, 1.0, 2.0], samples)[:, None] * axes
        y = (1 + 2 * rng.normal(size=samples))[:, None] * axes
        masks = (rng.random((pathways, samples)) < 0.5).astype(float)
        masks[0], masks[range(pathways), rng.integers(samples, size=pathways)] = 1.0, 1.0
        reads = 1e-3 * rng.normal(size=(pathways, 20, directions))
        writes = 1e-3 * rng.normal(size=(pathways, directions, 20))
        task = Task(x, y, masks, reads, writes, False)
        if not np.isfinite(task.criterion):
            continue
        ends, hidden = range(directions), [f"m{p}" for p in range(pathways)]
        sizes = {f"x{k}": 1 for k in ends} | dict.fromkeys(hidden, 20) | {f"y{k}": 1 for k in ends}
        edges = {f"x{k}_{m}": (f"x{k}", m) for k in ends for m in hidden}
        edges |= {f"{m}_y{k}": (m, f"y{k}") for k in ends for m in hidden}
        inputs, outputs = ({f"{n}{k}": a[:, [k]] for k in ends} for n, a in (("x", x), ("y", y)))
        data = nr.Dataset(inputs, outputs, dict(zip(hidden, masks, strict=True)))
        weights = {f"x{k}_m{p}": reads[p][:, [k]] for k in ends for p in range(pathways)}
        weights |= {f"m{p}_y{k}": writes[p][[k]] for k in ends for p in range(pathways)}
        yield task, nr.reduce(nr.Architecture(sizes, edges), data), weights


def test_modes_that_share_hidden_nodes_between_other_inputs_and_outputs():
    """Where an error turns they are solved together, as if all ends were one node."""
    problems, together = between_nodes(np.random.default_rng(3)), 0
    for task, race, weights in (next(problems) for _ in range(10)):
        options = {"criterion": task.criterion, "leads": False}
        found = nr.contest({"c": race}, start={"c": weights}, **options).entrants["c"]
        merged = nr.contest({"c": task.pair()}, start={"c": task.weights()}, **options)
        assert found.time == pytest.approx(merged.times["c"], rel=1e-6)
        assert len({tuple(block.basis) for block in race.blocks}) == len(race.blocks) == 2
        solution = race.solve(times=[0, found.time], start=weights)
        variables = [w for v in solution.values["variables"].values() for w in v.values()]
        if max(w.shape[-1] for w in variables) > 1:
            together += 1
            wanted = task.reaches(task.criterion, 1.5 * found.time)
            assert found.time == pytest.approx(wanted, rel=1e-5)
            parts = race.constant + solution.values["losses"].sum(axis=1)
            assert_allclose(parts, solution.loss, rtol=1e-12)
            assert solution.loss[-1] == pytest.approx(task.criterion, rel=1e-4)
    assert together >= 4


def test_what_is_called_exact_is_the_time_of_the_whole_network():
    """Modes that share hidden neurons, of one pathway or several, from weights of many sizes."""
    rng, exact = np.random.default_rng(4), {False: 0, True: 0}
    for _ in range(16):
        task, scale = random_task(rng), rng.choice([0.1, 1.0, 10.0, 50.0])
        few = slice(0, 1 if rng.random() < 0.5 else 3)
        task = Task(
            task.x,
            task.y,
            task.masks[few],
            scale * task.reads[few],
            scale * task.writes[few],
            False,
        )
        options = {"start": {"c": task.weights()}, "criterion": task.criterion, "leads": False}
        if not np.isfinite(task.criterion):
            continue
        found = nr.contest({"c": task.pair()}, **options).entrants["c"]
        if found.is_exact:
            wanted = task.reaches(task.criterion, 1.5 * found.time)
            assert found.time == pytest.approx(wanted, rel=1e-3)
            exact[bool(found.start.joined)] += 1
    assert min(exact.values()) >= 3 and sum(exact.values()) >= 14


def test_modes_too_many_to_be_followed_together_are_not_called_exact():
    """Forty modes of similar strengths: each is disturbed by those that are learned with it."""
    rng = np.random.default_rng(0)
    strengths = np.diag(np.linspace(1, 1.5, 40))
    data = nr.Dataset({"x": np.eye(40)}, {"y": strengths})
    race = nr.reduce(nr.Architecture.chain(40, 60, 40), data)
    weights = {"W1": 1e-3 * rng.normal(size=(60, 40)), "W2": 1e-3 * rng.normal(size=(40, 60))}
    found = nr.contest({"c": race}, start={"c": weights}, criterion=0.5, relative=True)
    start = found.entrants["c"].start
    assert start.mixing > 1e-3 and not start.is_exact and not start.joined
    assert not found.entrants["c"].is_exact and not found.frame()["exact"].any()
    assert race.start(weights).mixing == start.mixing


@pytest.mark.parametrize(("edges", "size"), [(2, 1e-155), (2, 5e-324), (3, -1e-120), (3, 2e-310)])
@pytest.mark.parametrize("as_weights", [False, True])
def test_a_start_whose_products_underflow_is_refused_by_name(edges, size, as_weights):
    arch = nr.Architecture.chain(*[1] * (edges + 1))
    race = nr.reduce(arch, nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    source = {e: np.array([[size]]) for e in arch.edges} if as_weights else size
    with pytest.raises(nr.NeuralRaceError, match="start"):
        race.solve(times=[0, 1], start=source)
    with pytest.raises(nr.NeuralRaceError, match="start"):
        nr.contest({"c": race}, start={"c": source}, criterion=0.1)


@pytest.mark.parametrize("transform", [jax.grad, jax.jit, jax.vmap])
@pytest.mark.parametrize("of", [jnp.sum, lambda b: {"W1": b[None]}, lambda b: {"W1": jnp.sum(b)}])
def test_a_start_that_is_traced_is_refused_by_name(transform, of):
    """A race has no derivative to give, and so none that is wrong."""
    race = nr.reduce(nr.Architecture.chain(1, 1), nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    loss = lambda b: jnp.sum(race.solve(times=[0, 1], start=of(b)).loss)
    with pytest.raises(nr.NeuralRaceError, match="start"):
        transform(loss)(jnp.ones(1))


def test_the_smallest_starts_that_are_accepted_are_right():
    """From b, one mode of strength s is half there at ln(s/b² − 1)/2s."""
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
    found = nr.contest({"c": race}, start=1e-149, criterion=0.125)
    assert found.times["c"] == pytest.approx(149 * np.log(10), rel=1e-9)
    assert nr.contest({"c": race}, start=0.0, criterion=0.125).entrants["c"].lateness == "never"
