"""Claims about the race reduction for nodes and features of very different sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import neuralrace as nr
from evidence.own.cases import random_case
from evidence.own.reduction import SECTION, planted
from evidence.promise import Measurement, claim

Weights = Mapping[str, np.ndarray]


def scaled(rng: np.random.Generator, data: nr.Dataset) -> nr.Dataset:
    """One factor of 1e-6 … 1e6 for each node and one of 1e-3 … 1e3 for each feature in it."""

    def drawn(a: Any) -> np.ndarray:
        return np.asarray(a) * 10 ** rng.uniform(-6, 6) * 10 ** rng.uniform(-3, 3, a.shape[1])

    x, y = ({v: drawn(a) for v, a in field.items()} for field in (data.x, data.y))
    return nr.Dataset(x, y, data.gates, data.sample_weight)


def problem(rng: np.random.Generator) -> tuple[nr.Architecture, nr.Dataset]:
    """A random gated network, or planted blocks without rotations, at random scales."""
    if rng.integers(3) == 0:
        case = random_case(rng, samples=6, neurons=False)
        return case.arch, scaled(rng, case.data)
    arch, data, _ = planted(rng, most=2, turned=False)
    return arch, scaled(rng, data)


# ---- brute force: the gated network itself, sample by sample ------------------------------------


def forward(
    arch: nr.Architecture, data: nr.Dataset, weights: Weights, sizes: bool = False
) -> dict[str, np.ndarray]:
    """The activity of every node (NRR §2); with `sizes`, the sums of the sizes of its terms."""
    plain = np.abs if sizes else np.asarray
    h = {}
    for v in arch.order:
        if v in arch.inputs:
            h[v] = plain(_gate(data, v) * np.asarray(data.x[v]))
            continue
        into = [
            plain(_gate(data, e)) * (h[arch.edges[e][0]] @ plain(weights[e]).T)
            for e in arch.incoming[v]
        ]
        h[v] = plain(_gate(data, v)) * sum(into)
    return h


def _gate(data: nr.Dataset, name: str) -> np.ndarray:
    return np.asarray(data.gates.get(name, np.ones(data.n_samples)))[:, None]


def velocity(
    arch: nr.Architecture, data: nr.Dataset, weights: Weights, sizes: bool = False
) -> dict[str, np.ndarray]:
    """−∂L/∂W_e of every edge, by backpropagation through the graph; or the sizes of its terms."""
    plain = np.abs if sizes else np.asarray
    h, p = forward(arch, data, weights, sizes), np.asarray(data.probability)[:, None]
    back, found = {}, {}
    for v in reversed(arch.order):
        gate = plain(_gate(data, v))
        if v in arch.outputs:
            y = plain(np.asarray(data.y[v]))
            back[v] = gate * p * (y + h[v] if sizes else y - h[v])
        else:
            back[v] = gate * sum(
                plain(_gate(data, e)) * (back[arch.edges[e][1]] @ plain(weights[e]))
                for e in arch.outgoing[v]
            )
        for e in arch.incoming[v]:
            found[e] = (plain(_gate(data, e)) * back[v]).T @ h[arch.edges[e][0]]
    return found


def moving(arch: nr.Architecture, data: nr.Dataset, weights: Weights) -> dict[str, np.ndarray]:
    """The entries of the weights whose velocity exceeds the rounding of its sum."""
    found, terms = (velocity(arch, data, weights, sizes) for sizes in (False, True))
    return {e: np.abs(v) > 1e-12 * terms[e] for e, v in found.items()}


MOST_CALLS = 30_000
"""The number of velocities after which an integration counts as too stiff for its method."""


class TooStiffError(Exception):
    """An integration that does not reach its end."""


def flow(
    arch: nr.Architecture,
    data: nr.Dataset,
    weights: Weights,
    times: np.ndarray,
    free: Mapping[str, np.ndarray] | None = None,
) -> list[dict[str, np.ndarray]]:
    """Gradient flow by SciPy, with each edge in units of its start and time in units of the last.

    Only the entries in `free` are integrated, all by default.
    """
    from scipy.integrate import solve_ivp

    units = {e: float(np.sqrt((w**2).mean())) or 1.0 for e, w in weights.items()}
    free = {e: np.ones(w.shape, bool) for e, w in weights.items()} if free is None else free
    ends = np.cumsum([0, *(int(free[e].sum()) for e in weights)])

    def opened(z: np.ndarray) -> dict[str, np.ndarray]:
        found = {e: w.copy() for e, w in weights.items()}
        for i, e in enumerate(weights):
            found[e][free[e]] = units[e] * z[ends[i] : ends[i + 1]]
        return found

    calls = 0

    def moved(_: float, z: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > MOST_CALLS:
            raise TooStiffError
        v = velocity(arch, data, opened(z))
        return np.concatenate([times[-1] / units[e] * v[e][free[e]] for e in weights])

    first = np.concatenate([w[free[e]] / units[e] for e, w in weights.items()])
    done = solve_ivp(moved, (0, 1), first, "LSODA", t_eval=times / times[-1], rtol=1e-9, atol=1e-11)
    if not done.success:
        raise TooStiffError
    return [opened(z) for z in done.y.T]


def node_losses(arch: nr.Architecture, data: nr.Dataset, weights: Weights) -> np.ndarray:
    """½⟨‖y − h‖²⟩ of every output, relative to its loss at zero weights."""
    h, p = forward(arch, data, weights), np.asarray(data.probability)
    return np.array(
        [
            float(p @ ((np.asarray(data.y[t]) - h[t]) ** 2).sum(axis=1))
            / float(p @ (np.asarray(data.y[t]) ** 2).sum(axis=1))
            for t in arch.outputs
        ]
    )


# ---- one block in the whole network -------------------------------------------------------------


def natural(arch: nr.Architecture, data: nr.Dataset) -> dict[str, float]:
    """A size for each edge with which every path alone gives an output of its target's size."""

    def rms(a: Any) -> float:
        return float(np.sqrt((np.asarray(a) ** 2).sum(axis=1).mean()))

    shown = {v: rms(data.x[v]) or 1.0 for v in arch.inputs}
    wanted = {v: rms(data.y[v]) or 1.0 for v in arch.outputs}
    middle = np.sqrt(np.mean([*shown.values()]) * np.mean([*wanted.values()]))
    return {
        e: float(wanted.get(t, middle if s in shown else 1.0) / shown.get(s, 1.0))
        / (middle if t in wanted and s not in shown else 1.0)
        for e, (s, t) in arch.edges.items()
    }


def block_error(
    race: nr.Race, block: nr.reduction.Block, rng: np.random.Generator, solve: bool = True
) -> float:
    """The difference between the block alone and the whole network that starts in the block.

    The whole network sees the raw data and all its directions, and leaves the block if a coupling
    leads out of it. Time is in units of the block's own rate: ‖dW/dt‖/‖W‖ of its fastest edge at
    the start. With `solve`, a scalar block is solved by `race.solve`; all others are solved by
    SciPy, as small networks.

    Zero is an unstable state: a faster block would grow from rounding alone long before a slow one
    has moved, and so would unused hidden directions. So hidden nodes are as wide as the block, and
    weights that have no velocity anywhere in the block are kept at zero. Since features are not
    rotated here, those that are in a basis only by rounding are removed from it. Edges outside the
    block's graph belong to other parts, which must not affect it: they are random and constant.
    """
    units = natural(block.arch, block.data)
    start = {e: 0.37 * units[e] * w for e, w in block.aligned.items()}  # no sum of paths is 1
    moved = velocity(block.arch, block.data, start)
    rate = max(np.linalg.norm(moved[e]) / np.linalg.norm(w) for e, w in start.items() if w.any())
    times = np.array([0.0, 0.5, 2.0, 5.0]) / rate
    place = {
        v: np.where(np.abs(b).max(axis=1, keepdims=True) > 1e-9, b, 0.0)
        for v, b in block.basis.items()
    }
    for v in block.arch.hidden:
        n = start[block.arch.incoming[v][0]].shape[0]
        place[v] = np.linalg.qr(rng.normal(size=(n, n)))[0]
    sizes = {v: place[v].shape[0] if v in place else 1 for v in race.arch.sizes}
    sizes |= {v: race.arch.sizes[v] for v in (*race.arch.inputs, *race.arch.outputs)}
    arch = nr.Architecture(sizes, race.arch.edges)

    apart = natural(arch, race.data)
    others = {
        e: 0.5 * apart[e] * rng.normal(size=(sizes[t], sizes[s])) * (e not in block.arch.edges)
        for e, (s, t) in arch.edges.items()
    }

    def whole(weights: Weights) -> dict[str, np.ndarray]:
        ends = block.arch.edges
        return others | {e: place[ends[e][1]] @ w @ place[ends[e][0]].T for e, w in weights.items()}

    if block.is_scalar and solve:
        alone = nr.Race(
            race.arch, race.data, race.split, (block,), 0.0, {}, race.tolerance, race.exactness
        )
        by_edge = {e: 0.37 * unit for e, unit in units.items()}
        values = alone.solve(times=times, start=by_edge).values["variables"][block.name]
        small = [{e: w[k] for e, w in values.items()} for k in range(len(times))]
    else:
        small = flow(block.arch, block.data, start, times)
    begin = {
        e: np.where(np.abs(w) > 1e-12 * np.abs(w).max(), w, 0.0) for e, w in whole(start).items()
    }
    free = {e: (w != 0) & (e in block.arch.edges) for e, w in begin.items()}
    for _ in range(3):
        inside = {
            e: rng.uniform(0.5, 1.5) * w + 0.1 * units[e] * rng.normal(size=w.shape)
            for e, w in start.items()
        }
        at = moving(arch, race.data, whole(inside))
        free |= {e: free[e] | at[e] for e in block.arch.edges}
    large = flow(arch, race.data, begin, times, free)
    return max(
        float(
            np.abs(node_losses(arch, race.data, whole(a)) - node_losses(arch, race.data, b)).max()
        )
        for a, b in zip(small, large, strict=True)
    )


@claim(
    "reduction/any-scale",
    SECTION,
    "500 random problems, one factor of 1e-6 … 1e6 for each node and 1e-3 … 1e3 for each feature: "
    "every block of an exact reduction against the whole network started in it (SciPy, raw data)",
    "every output within 1e-6 of its own initial loss",
)
def any_scale(full: bool) -> Measurement:
    worst, blocks, reduced, stiff = 0.0, 0, 0, 0
    cases = 500 if full else 30
    for case in range(cases):
        rng = np.random.default_rng([8, case])
        arch, data = problem(rng)
        race = nr.reduce(arch, data)
        reduced += len(race.blocks) > 1
        if not race.exactness.is_split:
            return Measurement("a reduction at the default tolerance is not exact", False)
        for block in race.blocks if full else race.blocks[-1:]:
            try:
                worst = np.maximum(worst, block_error(race, block, rng, solve=full and case < 100))
                blocks += 1
            except TooStiffError:
                stiff += 1
    text = f"{worst:.1g} over {blocks} blocks; {reduced} of {cases} problems have several"
    text += f"; {stiff} blocks too stiff to integrate" * (stiff > 0)
    note = (
        "Weights with no velocity anywhere in the block stay at zero, and hidden nodes are as wide "
        "as the block: a faster block at zero is unstable, and would grow from rounding."
    )
    met = worst <= 1e-6 and reduced >= cases // 3 and stiff <= blocks // 50
    return Measurement(text, met, note)
