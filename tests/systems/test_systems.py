"""Every system is asked the same questions of every way to solve it; the truth is `truth.py`.

Ways: the race from an aligned start, as a flow and with a step; flow and descent at full size;
an ensemble; the closed form and the λ-balanced solution where there is one.
"""

import functools

import numpy as np
import pytest

import neuralrace as nr
from tests.systems.rows import ROWS, System
from tests.systems.truth import Weights
from tests.trajectories import assert_same

RATE, STEPS = 0.05, 24
X, Y = 1e-3, 1e3
"""Factors of inputs and targets; where paths have several lengths, both are the first."""


def race(s: System, data: nr.Dataset, size: float = 1.0, time: float = 1.0, step: bool = False):
    found = nr.reduce(s.arch, data)
    times = RATE * time * np.arange(STEPS + 1) if step else time * moments(s)
    return found.solve(
        times=times, start=start_of(s, found, size), learning_rate=RATE * time if step else None
    )


def flow(s: System, data: nr.Dataset, size: float = 1.0, time: float = 1.0):
    times, weights = time * moments(s), scaled(s.weights(1), size)
    return nr.flow(s.net, weights, data, times=times, rtol=1e-8, record={"weights": True})


def train(s: System, data: nr.Dataset, size: float = 1.0, time: float = 1.0):
    return nr.train(s.net, scaled(s.weights(1), size), data, learning_rate=RATE * time, steps=STEPS)


def ensemble(s: System, data: nr.Dataset, size: float = 1.0, time: float = 1.0):
    return nr.train_ensemble(
        s.net, data, key=0, seeds=2, scale=0.5 * size, learning_rate=RATE * time, steps=STEPS,
        record_every=STEPS, record={"weights": True},
    )  # fmt: skip


WAYS = {
    "race": race,
    "race with a step": functools.partial(race, step=True),
    "flow": flow,
    "train": train,
    "ensemble": ensemble,
}
every_way = pytest.mark.parametrize("way", WAYS)
every_system = pytest.mark.parametrize("name", ROWS)


def moments(s: System) -> np.ndarray:
    return np.linspace(0, s.horizon, 9)


def scaled(weights: Weights, size: float) -> Weights:
    return {e: size * w for e, w in weights.items()}


def start_of(s: System, found: nr.Race, size: float) -> nr.reduction.Start:
    if isinstance(s.start, float):
        return found.start(size * s.start)
    return found.start({e: size * b for e, b in s.start.items()})


@functools.cache
def asked(name: str, way: str) -> nr.Trajectory:
    return WAYS[way](ROWS[name], ROWS[name].data)


@functools.cache
def decoupled(name: str, at: int = 0) -> Weights:
    """Full-size weights of the race at one of the moments."""
    s = ROWS[name]
    run = asked(name, "race")
    return nr.reduce(s.arch, s.data).weights(run, run.time[at], key=0)


def close(found, wanted, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@functools.cache
def wanted(name: str, way: str) -> tuple[np.ndarray, list[Weights]]:
    """Losses, and weights where the way knows them, in plain NumPy."""
    s, net = ROWS[name], ROWS[name].truth()
    if way in ("race", "flow"):
        return net.flow(decoupled(name) if way == "race" else s.weights(1), moments(s))
    if way == "ensemble":
        first = asked(name, way).values["weights"]
        seeds = [{e: np.asarray(w[i, 0]) for e, w in first.items()} for i in range(2)]
        return np.array([net.descent(w, RATE, STEPS)[[0, -1]] for w in seeds]), []
    start = s.weights(1) if way == "train" else decoupled(name)
    return net.descent(start, RATE, STEPS), []


# ---- the truth itself, and the statistics --------------------------------------------------------


@every_system
def test_velocity_is_minus_the_slope_of_the_loss(name):
    s, net, h = ROWS[name], ROWS[name].truth(), 1e-5
    weights = s.weights(2)
    assert s.net.loss(weights, s.data) == pytest.approx(net.loss(weights), rel=1e-12)
    found = nr.path_statistics(s.arch, s.data).velocity(weights)
    for edge, w in weights.items():
        slope = np.zeros_like(w)
        for at in np.ndindex(w.shape):
            step = h * np.eye(w.size)[np.ravel_multi_index(at, w.shape)].reshape(w.shape)
            high, low = (net.loss({**weights, edge: w + sign * step}) for sign in (1, -1))
            slope[at] = (high - low) / (2 * h)
        np.testing.assert_allclose(found[edge], -slope, atol=1e-8)
        np.testing.assert_allclose(net.velocity(weights)[edge], -slope, atol=1e-8)


@every_system
def test_blocks(name):
    s = ROWS[name]
    found = nr.reduce(s.arch, s.data)
    assert sorted(tuple(b.dims.values()) for b in found.blocks) == sorted(s.blocks)
    assert found.is_exact
    zero = s.truth().loss(scaled(s.weights(0), 0.0))
    assert found.constant + sum(b.initial_loss for b in found.blocks) == pytest.approx(zero)


# ---- every way -----------------------------------------------------------------------------------


@every_way
@every_system
def test_losses(name, way):
    run, (losses, weights) = asked(name, way), wanted(name, way)
    close(run.loss, losses, 1e-7)
    assert (run.loss[..., -1] < 0.99 * run.loss[..., 0]).all()  # something was learned
    if way == "flow":
        for edge, w in run.values["weights"].items():
            close(w, [at[edge] for at in weights], 1e-6)


@every_way
@every_system
def test_units(name, way):
    """Weights go with the root of y/x of as many edges as a path has, losses with y²."""
    s, x = ROWS[name], X
    y = X if s.depth is None else Y
    size = (y / x) ** (1 / (s.depth or 1))
    data = nr.Dataset(
        {v: x * np.asarray(a) for v, a in s.data.x.items()},
        {v: y * np.asarray(a) for v, a in s.data.y.items()},
        s.data.gates,
        s.data.sample_weight,
    )
    run = WAYS[way](s, data, size, (size / y) ** 2)
    close(run.loss / y**2, asked(name, way).loss, 1e-6)


@pytest.mark.parametrize("way", ["race", "train"])
@every_system
def test_samples_in_another_order(name, way):
    s = ROWS[name]
    order = np.random.default_rng(0).permutation(s.data.n_samples)
    close(WAYS[way](s, s.data.take(order)).loss, asked(name, way).loss, 1e-7)


@every_system
def test_saved_and_loaded(name, tmp_path):
    run = asked(name, "race")
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


# ---- the race ------------------------------------------------------------------------------------


@every_system
def test_the_race_is_what_theory_says(name):
    """Against the equations of the modes, written by hand, and their closed form."""
    s, run = ROWS[name], asked(name, "race")
    found = nr.reduce(s.arch, s.data)
    start = start_of(s, found, 1.0)
    form = found.closed_form(start)
    assert {mode.kind for mode in form.modes.values()} == ({s.closed} if s.closed else set())
    if s.closed:
        close(form.loss(moments(s)), wanted(name, "race")[0], 1e-7)
    if s.curve:
        values = {e: float(b[0, 0]) for e, b in start.weights[0].items()}
        zero = s.truth().loss(scaled(s.weights(0), 0.0))
        close(run.loss, zero + s.curve(moments(s), values), 1e-7)


@every_system
def test_blocks_are_networks_whose_losses_add_up(name):
    s, run = ROWS[name], asked(name, "race")
    found, parts = nr.reduce(s.arch, s.data), run.values["losses"]
    close(parts.sum(axis=1) + found.constant, run.loss, 1e-12)
    for i, block in enumerate(found.blocks):
        variables = run.values["variables"][block.name]
        small = System(block.arch, block.data, ()).truth()
        losses = [small.loss({e: w[k] for e, w in variables.items()}) for k in range(len(run.time))]
        close(parts[:, i], losses, 1e-9)


@every_system
def test_weights_of_the_race_are_those_of_the_network(name):
    s, run, (_, weights) = ROWS[name], asked(name, "race"), wanted(name, "race")
    for edge, w in decoupled(name, -1).items():
        np.testing.assert_allclose(w, weights[-1][edge], atol=1e-7)
    assert s.truth().loss(decoupled(name, 4)) == pytest.approx(run.loss[4], rel=1e-9, abs=1e-14)
    found = nr.reduce(s.arch, s.data)
    again = found.start(decoupled(name))
    assert (again.alignment, again.gap) == (pytest.approx(1), pytest.approx(0, abs=1e-9))
    stepped = asked(name, "race with a step")
    close(found.solve(times=stepped.time, start=again, learning_rate=RATE).loss, stepped.loss, 1e-8)


# ---- what flow conserves, and what compressing leaves --------------------------------------------


@pytest.mark.parametrize("way", ["flow", "race"])
@every_system
def test_conserved_matrices(name, way):
    """Σ_out WᵀW − Σ_in WWᵀ at every hidden node whose neurons share their gates.

    Nodes that share weights count as one, with each matrix once; not where it is also transposed.
    """
    s = ROWS[name]
    weights = asked(name, "flow").values["weights"]
    if way == "race":
        states = [decoupled(name, at) for at in (0, 4, -1)]
        weights = {e: np.stack([w[e] for w in states]) for e in weights}
    of, both = s.arch.class_of, {e[:-2] for t in s.arch.ties.values() for e in t if e[-2:] == ".T"}
    for node in dict.fromkeys(of[h] for h in s.arch.hidden if np.ndim(s.data.gates.get(h, 0)) < 2):
        if both:
            continue
        ends = [(name, of[a], of[b]) for name, (a, b) in s.arch.matrix_ends.items()]
        into = [np.asarray(weights[e]) for e, _, target in ends if target == node]
        out = [np.asarray(weights[e]) for e, source, _ in ends if source == node]
        kept = sum(w.mT @ w for w in out) - sum(w @ w.mT for w in into)
        np.testing.assert_allclose(kept, kept[:1].repeat(len(kept), 0), atol=1e-6)


@every_system
def test_compressed_networks_move_as_the_whole(name):
    s, h = ROWS[name], 1e-3
    weights = s.weights(3)
    small = nr.compress(s.net, weights, s.data)
    part, whole = System(small.net.arch, small.data, ()).truth(), s.truth()
    narrow = {e: np.asarray(w) for e, w in small.weights.items()}
    assert part.loss(narrow) == pytest.approx(whole.loss(weights), rel=1e-12)
    moved = small.lift({e: narrow[e] + h * v for e, v in part.velocity(narrow).items()})
    for edge, v in whole.velocity(weights).items():
        np.testing.assert_allclose(moved[edge], weights[edge] + h * v, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, s in ROWS.items() if s.white])
@pytest.mark.parametrize("lam", [-0.5, 0.0, 0.3])
def test_lambda_balanced_weights(name, lam):
    s = ROWS[name]
    weights = nr.linear.balanced_weights(s.net, lam, scale=0.4, key=1)
    found = nr.linear.lambda_balanced(s.net, weights, s.data, times=moments(s))
    close(found.loss, s.truth().flow(weights, moments(s))[0], 1e-8)
