"""A node that is cut into parts: the same network, so the same losses, times and growth rates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import neuralrace as nr
from neuralrace.contests import expected_start

N, ON = 12, 9


def cut(total: int, parts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The columns 0 … total − 1, in random order, in this many random parts, none empty."""
    ends = np.sort(rng.choice(np.arange(1, total), parts - 1, replace=False))
    return np.split(rng.permutation(total), ends)


def one_layer(rng: np.random.Generator, rank: int) -> tuple[nr.Architecture, nr.Dataset]:
    """One gated hidden layer between one input and one output node, and a map of this rank.

    Inputs are white where the gate is on, or they are not: then blocks are matrices.
    """
    inputs, outputs, hidden = (int(rng.integers(low, 9)) for low in (3, 3, 2 * rank))
    x = rng.normal(size=(N, inputs)) * rng.uniform(0.3, 2)
    if rng.random() < 0.5:
        x[:ON] = np.linalg.qr(x[:ON])[0] * rng.uniform(0.5, 4)
    y = x @ rng.normal(size=(inputs, rank)) @ rng.normal(size=(rank, outputs))
    y[ON:] *= 0.1  # cannot be learned
    gates = {"h": (np.arange(N) < ON).astype(float)}
    sizes = {"x": inputs, "h": hidden, "y": outputs}
    arch = nr.Architecture(sizes, {"i": ("x", "h"), "o": ("h", "y")})
    return arch, nr.Dataset({"x": x}, {"y": y}, gates)


def in_parts(
    arch: nr.Architecture, data: nr.Dataset, parts: dict[str, int], rng: np.random.Generator
) -> tuple[nr.Architecture, nr.Dataset]:
    """The same network with nodes cut into this many parts, each with edges of its own."""
    columns = {v: cut(n, parts.get(v, 1), rng) for v, n in arch.sizes.items()}
    place = {v: {f"{v}{k}": c for k, c in enumerate(many)} for v, many in columns.items()}
    sizes = {name: len(c) for many in place.values() for name, c in many.items()}
    edges = {f"{s}_{t}": (s, t) for a, b in arch.edges.values() for s in place[a] for t in place[b]}
    x, y = (
        {name: np.asarray(a)[:, c] for v, a in field.items() for name, c in place[v].items()}
        for field in (data.x, data.y)
    )
    gates = {name: np.asarray(g) for v, g in data.gates.items() for name in place[v]}
    return nr.Architecture(sizes, edges), nr.Dataset(x, y, gates)


def by_scipy(arch: nr.Architecture, data: nr.Dataset, scale: float, criterion: float) -> float:
    """When the whole layer reaches the criterion, from σ √(N/2) along every singular vector."""
    x, y, g = (np.asarray(a, np.float64) for a in (data.x["x"], data.y["y"], data.gates["h"]))
    yx, xx = (g[:, None] * y).T @ x / N, (g[:, None] * x).T @ x / N
    u, s, vt = np.linalg.svd(yx, full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum())
    b = scale * np.sqrt(arch.sizes["h"] / 2)
    first, second = b * vt[:rank], b * u[:, :rank]

    def weights(state: np.ndarray) -> list[np.ndarray]:
        one, two = np.split(state, [first.size])
        return [one.reshape(first.shape), two.reshape(second.shape)]

    def velocity(_, state):
        w1, w2 = weights(state)
        error = yx - w2 @ w1 @ xx
        return np.concatenate([(w2.T @ error).ravel(), (error @ w1.T).ravel()])

    def left(_, state):
        w1, w2 = weights(state)
        return ((y - g[:, None] * x @ (w2 @ w1).T) ** 2).sum() / 2 / N - criterion

    left.terminal = True  # type: ignore[attr-defined]
    begin = np.concatenate([first.ravel(), second.ravel()])
    found = solve_ivp(velocity, (0, 1e4), begin, "LSODA", events=left, rtol=1e-11, atol=1e-16)
    return float(found.t_events[0][0])


def growth(arch: nr.Architecture, data: nr.Dataset) -> float:
    """The rate at which the fastest direction of small weights grows: autodiff at zero weights."""
    net = nr.GDLN(arch)
    zero = {e: jnp.zeros((arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()}
    flat, shaped = ravel_pytree(zero)
    slopes = jax.jit(jax.vmap(jax.grad(lambda w: net.loss(shaped(w), data))))
    small = 1e-5  # the slope along one weight is linear: there is no path without a zero
    curvature = np.asarray(slopes(small * jnp.eye(len(flat)))) / small
    return float(-np.linalg.eigvalsh(curvature)[0])


CUTS = [{"y": 3}, {"x": 2}, {"x": 3, "y": 3}, {"h": 2}, {"x": 2, "h": 2, "y": 2}]


def cases(parts: dict[str, int], rank: int, count: int):
    """A few layers, whole and in parts, and how large their weights begin."""
    for seed in range(count):
        rng = np.random.default_rng([seed, rank, *map(ord, str(parts))])
        whole = one_layer(rng, rank)
        yield {"whole": whole, "parts": in_parts(*whole, parts, rng)}, 10 ** rng.uniform(-6, -2)


@pytest.mark.parametrize("parts", CUTS, ids=str)
@pytest.mark.parametrize("rank", [1, 2])
def test_random_weights_start_the_parts_of_a_node_where_they_start_the_whole(parts, rank):
    for pairs, scale in cases(parts, rank, 1):
        found = {
            name: nr.contest({name: pair}, scale=scale, criterion=0.6, relative=True)
            for name, pair in pairs.items()
        }
        level = found["whole"].entrants["whole"].criterion
        wanted = by_scipy(*pairs["whole"], scale, level)
        times, losses = np.linspace(0, 2 * wanted, 50), {}
        for name, contest in found.items():
            assert contest.times[name] == pytest.approx(wanted, rel=1e-6)
            race = contest.entrants[name].race
            start = expected_start(race, scale)
            losses[name] = race.solve(times=times, start=start).loss
        np.testing.assert_allclose(losses["parts"], losses["whole"], rtol=1e-6)


@pytest.mark.parametrize("parts", CUTS, ids=str)
@pytest.mark.parametrize("rank", [1, 2])
def test_the_strength_is_the_rate_at_which_small_weights_grow(parts, rank):
    for pairs, scale in cases(parts, rank, 1):
        rate = growth(*pairs["whole"])
        assert growth(*pairs["parts"]) == pytest.approx(rate, rel=1e-9)
        for name, pair in pairs.items():
            found = nr.contest({name: pair}, scale=scale, criterion=0.6, relative=True)
            assert found.strengths[name] == pytest.approx(rate, rel=1e-9)
