"""Blocks that are solved once for all that are alike: each has the solution that it has alone."""

from dataclasses import replace

import numpy as np
from scipy.integrate import solve_ivp

import neuralrace as nr
from neuralrace.reduction.scipy_solver import NetworkFlow
from neuralrace.reduction.solve import Request, solve_blocks


def network(sizes, edges, seed=0):
    """A block that is not scalar, and random weights for it."""
    rng = np.random.default_rng(seed)
    ends = {v: rng.normal(size=(4, n)) for v, n in sizes.items() if v in "xy"}
    data = nr.Dataset({"x": ends["x"]}, {"y": ends["y"]})
    (block,) = nr.reduce(nr.Architecture(sizes, edges), data).blocks
    weights = {
        e: 0.1 * rng.normal(size=(sizes[t], sizes[s])) for e, (s, t) in block.arch.edges.items()
    }
    return block, weights


def by_scipy(block, weights, times):
    """Losses and weights of one block as SciPy solves its flow."""
    flow = NetworkFlow(block.arch, weights, block.data)
    found = solve_ivp(
        lambda _, w: flow.velocity(w), (0, times[-1]), flow.start,
        t_eval=times, rtol=1e-11, atol=1e-15, method="DOP853",
    )  # fmt: skip
    return flow.losses(found.y.T), flow.weights(found.y.T)


def together(block, starts, times):
    blocks = [replace(block, name=f"copy{i}") for i in range(len(starts))]
    return solve_blocks(
        blocks, nr.reduction.Start(tuple(starts), None, "all"), Request.of(times), 0.0
    )


DEEP = ({"x": 2, "g": 3, "h": 3, "y": 2}, {"in": ("x", "g"), "mid": ("g", "h"), "out": ("h", "y")})
SHALLOW = ({"x": 2, "h": 3, "y": 2}, {"in": ("x", "h"), "out": ("h", "y")})


def test_weights_between_hidden_nodes_tell_networks_apart():
    block, weights = network(*DEEP)
    starts, times = (weights, {**weights, "mid": 3 * weights["mid"]}), np.linspace(0, 30, 7)
    found = together(block, starts, times)
    assert found.settings["solvers"] == ["LSODA"]
    for i, start in enumerate(starts):
        loss, wanted = by_scipy(block, start, times)
        np.testing.assert_allclose(found.values["losses"][:, i], loss, rtol=1e-6, atol=1e-10)
        for edge, w in wanted.items():
            here = found.values["variables"][f"copy{i}"][edge]
            np.testing.assert_allclose(here, w, rtol=1e-5, atol=1e-8)


def test_starts_that_are_tiny_beside_others_have_their_own_solution():
    """A small start says how long its pathway waits, however large other starts are."""
    x = np.repeat(np.eye(2), 2, axis=0)
    data = nr.Dataset({"x": x}, {"y": x * [[1], [2], [1], [2]]}, {"b": [0, 1, 0, 1]})
    edges = {"xa": ("x", "a"), "ay": ("a", "y"), "xb": ("x", "b"), "by": ("b", "y")}
    race = nr.reduce(nr.Architecture({"x": 2, "a": 2, "b": 2, "y": 2}, edges), data)
    starts = [dict(weights) for weights in race.start(1.0).weights]
    for weights, size in zip(starts, (1e-16, 4e-13), strict=True):
        weights |= {edge: size * weights[edge] for edge in ("xb", "by")}
    times = np.linspace(0, 400, 401)
    found = race.solve(times=times, start=nr.reduction.Start(tuple(starts), None, "two"))
    for i, block in enumerate(race.blocks):
        alone = together(block, starts[i : i + 1], times)
        np.testing.assert_allclose(found.values["losses"][:, i], alone.loss, atol=1e-9)
    late = [np.interp(-0.05, -loss, times) for loss in found.values["losses"].T]
    assert late[0] - late[1] > 30
