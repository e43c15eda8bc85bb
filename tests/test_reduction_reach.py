"""What the paths of a block can reach of the targets: the losses of all blocks add up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

import neuralrace as nr


def apart_across_classes():
    """Pathways of two inputs that are orthogonal over all samples, but not within a class."""
    ends = {"m0": "xa", "m1": "xb", "m2": "xa"}
    edges = {f"{s}_{m}": (s, m) for m, s in ends.items()} | {f"{m}_y": (m, "y") for m in ends}
    arch = nr.Architecture({"xa": 1, "xb": 1, **dict.fromkeys(ends, 5), "y": 1}, edges)
    x = {"xa": [[1.0], [-1], [0]], "xb": [[0.0], [-1], [1]]}
    masks = {"m0": [1, 0, 0], "m1": [1, 1, 1], "m2": [0, 1, 0]}
    return arch, nr.Dataset(x, {"y": [[-1.0], [1], [-1]]}, masks)


def real_gates():
    base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]})
    return nr.pathways(base, {"all": [1, 1], "second": [-1, 1]}, hidden=5)


def random_problem(rng):
    """Random graphs of one or two inputs and outputs, real gates, and units of any size."""
    count, pathways = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    sizes, edges, gates = {}, {}, {}
    inputs = ["xa", "xb"][: rng.integers(1, 3)]
    outputs = ["ya", "yb"][: rng.integers(1, 3)]
    widths = {v: int(rng.integers(1, 3)) for v in (*inputs, *outputs)}
    for p in range(pathways):
        m = f"m{p}"
        sizes[m] = 4
        values = [[0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 1.0], [-0.5, 0.25, 2.0]][rng.integers(4)]
        gates[m] = rng.choice(values, count)
        gates[m][rng.integers(count)] = 1.0
        for v in rng.choice(inputs, rng.integers(1, len(inputs) + 1), replace=False).tolist():
            edges[f"{v}_{m}"] = (v, m)
        v = str(rng.choice(outputs))
        edges[f"{m}_{v}"] = (m, v)
    used = {v for pair in edges.values() for v in pair}
    scale = {v: 10 ** rng.uniform(-3, 3) for v in ("x", "y")}
    draw = lambda v: scale[v[0]] * rng.integers(-1, 2, (count, widths[v])).astype(float)
    x, y = ({v: draw(v) for v in side if v in used} for side in (inputs, outputs))
    ends = {v: n for v, n in widths.items() if v in used}
    sizes = {v: ends[v] for v in x} | sizes | {v: ends[v] for v in y}
    return nr.Architecture(sizes, edges), nr.Dataset(x, y, gates)


def least(arch, data):
    """The loss that the best linear map of every path leaves."""
    left = 0.0
    for t in arch.outputs:
        columns = [np.zeros((data.n_samples, 1))]
        for m, gate in data.gates.items():
            if (m, t) in arch.edges.values():
                sources = [s for s, end in arch.edges.values() if end == m]
                columns += [gate[:, None] * data.x[s] for s in sources]
        table = np.concatenate(columns, axis=1)
        rest = data.y[t] - table @ np.linalg.lstsq(table, data.y[t], rcond=1e-10)[0]
        left += (rest**2).sum() / data.n_samples / 2
    return left


def full_network(arch, data, weights, times):
    """The losses of the whole network of gated hidden layers, by SciPy."""
    shapes = {e: weights[e].shape for e in arch.edges}
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]
    share = 1 / data.n_samples

    def parts(state):
        return {
            e: part.reshape(shape)
            for (e, shape), part in zip(shapes.items(), np.split(state, cuts), strict=True)
        }

    def errors(w):
        h = dict.fromkeys(arch.hidden, 0.0)
        for e, (s, t) in arch.edges.items():
            if t in h:
                h[t] = h[t] + data.x[s] @ w[e].T
        h = {m: np.asarray(data.gates[m])[:, None] * a for m, a in h.items()}
        gap = {t: y.copy() for t, y in data.y.items()}
        for e, (s, t) in arch.edges.items():
            if t in gap:
                gap[t] -= h[s] @ w[e].T
        return h, gap

    def velocity(_, state):
        w = parts(state)
        h, gap = errors(w)
        pull = dict.fromkeys(arch.hidden, 0.0)
        for e, (s, t) in arch.edges.items():
            if t in gap:
                pull[s] = pull[s] + gap[t] @ w[e]
        pull = {m: np.asarray(data.gates[m])[:, None] * a for m, a in pull.items()}
        moved = [
            gap[t].T @ h[s] if t in gap else pull[t].T @ data.x[s] for s, t in arch.edges.values()
        ]
        return share * np.concatenate([np.ravel(m) for m in moved])

    begin = np.concatenate([weights[e].ravel() for e in arch.edges])
    size = np.abs(begin).max()
    found = solve_ivp(velocity, (0, times[-1]), begin, "LSODA", times, rtol=1e-9, atol=1e-11 * size)
    assert found.success
    gaps = [errors(parts(state))[1].values() for state in found.y.T]
    return np.array([sum((g**2).sum() for g in each) * share / 2 for each in gaps])


@pytest.mark.parametrize("make", [apart_across_classes, real_gates])
def test_blocks_apart_over_all_samples_have_a_part_of_the_target_each(make):
    race = nr.reduce(*make())
    assert len(race.blocks) == 2 and race.is_exact
    zero = sum((y**2).sum() for y in race.data.y.values()) / race.data.n_samples / 2
    assert race.constant == 0
    assert sum(block.initial_loss for block in race.blocks) == pytest.approx(zero, rel=1e-12)
    start = race.start(nr.GDLN(race.arch).init(0, scale=1e-3))
    assert start.gap < 1e-4
    found = nr.contest({"c": race}, start=0.01, criterion=0.1).entrants["c"]
    assert np.isfinite(found.time)
    solution = race.solve(times=[0, found.time], start=0.01)
    assert solution.loss == pytest.approx([zero, 0.1], rel=1e-3)


def test_losses_of_blocks_add_up_and_follow_the_whole_network():
    rng, several, scalar, real = np.random.default_rng(0), 0, 0, 0
    for _ in range(40):
        arch, data = random_problem(rng)
        race = nr.reduce(arch, data)
        zero = sum((y**2).sum() for y in data.y.values()) / data.n_samples / 2
        parts = race.constant + sum(block.initial_loss for block in race.blocks)
        assert parts == pytest.approx(zero, rel=1e-10) and race.constant >= 0
        assert race.constant == pytest.approx(least(arch, data), abs=1e-9 * zero)
        assert race.is_exact
        if not race.blocks:
            continue
        strongest = race.blocks[0]
        begin = 0.05 * strongest.natural_size
        times = np.array([0.0, 1.0, 3.0, 8.0]) / strongest.drive
        solution = race.solve(times=times, start=begin)
        wanted = full_network(arch, data, race.weights(solution, 0.0), times)
        assert_allclose(solution.loss, wanted, rtol=1e-5, atol=1e-7 * zero)
        by_block = race.constant + solution.values["losses"].sum(axis=1)
        assert_allclose(by_block, solution.loss, rtol=1e-12)
        several += len(race.blocks) > 1
        scalar += race.is_decoupled
        real += any(((g != 0) & (g != 1)).any() for g in data.gates.values())
    assert several >= 10 and scalar >= 5 and real >= 10  # the sample has what it is meant to test
