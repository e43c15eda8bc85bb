"""Phase diagrams of paths inside one network, and over two parameters, against full networks."""

import matplotlib
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from neuralrace.contests import PathRace
from neuralrace.results import Result
from tests.test_errors import refuses

PATHS = {"a-b": "ab", "a-c-d": "acd", "e-f": "ef"}


def three_pathways(share: float, other: float = 1.0, units: int = 3):
    """x→h₁→y, x→h₁→h₂→y, and x→g→y, on for a share; y = 2x when g is on and 2·other·x when off."""
    arch = nr.Architecture(
        {"x": 1, "h1": units, "h2": units, "g": units, "y": 1},
        {"a": ("x", "h1"), "b": ("h1", "y"), "c": ("h1", "h2"), "d": ("h2", "y"),
         "e": ("x", "g"), "f": ("g", "y")},
    )  # fmt: skip
    on = {"g": [1.0, 0.0]}
    x, y = {"x": [[1.0], [1.0]]}, {"y": [[2.0], [2 * other]]}
    return arch, nr.Dataset(x, y, on, [share, 1 - share])


def by_hand(weights, share: float, other: float, level: float) -> dict[str, float]:
    """The three products of the full network's matrices when its loss falls to a level."""
    shapes = {e: np.shape(weights[e]) for e in "abcdef"}
    ends = np.cumsum([np.prod(s) for s in shapes.values()])[:-1]
    chances, targets, gates = [share, 1 - share], [2.0, 2 * other], [1.0, 0.0]

    def matrices(flat):
        parts = zip(shapes.items(), np.split(flat, ends), strict=True)
        return {e: part.reshape(shape) for (e, shape), part in parts}

    def loss(t, flat):
        w = matrices(flat)
        always, gated = w["b"] @ w["a"] + w["d"] @ w["c"] @ w["a"], w["f"] @ w["e"]
        each = zip(chances, targets, gates, strict=True)
        return sum(p * (y - (always + g * gated).item()) ** 2 / 2 for p, y, g in each) - level

    def velocity(t, flat):
        w = matrices(flat)
        always, gated = w["b"] @ w["a"] + w["d"] @ w["c"] @ w["a"], w["f"] @ w["e"]
        errors = [y - (always + g * gated).item() for y, g in zip(targets, gates, strict=True)]
        on = sum(p * e for p, e in zip(chances, errors, strict=True))
        own = chances[0] * errors[0]
        pulls = {
            "a": on * (w["b"] + w["d"] @ w["c"]).T, "b": on * w["a"].T,
            "c": on * w["d"].T @ w["a"].T, "d": on * (w["c"] @ w["a"]).T,
            "e": own * w["f"].T, "f": own * w["e"].T,
        }  # fmt: skip
        return np.concatenate([pulls[e].ravel() for e in "abcdef"])

    loss.terminal = True
    flat = np.concatenate([np.ravel(weights[e]) for e in "abcdef"])
    if loss(0, flat) > 0:
        found = solve_ivp(velocity, [0, 1e4], flat, events=loss, rtol=1e-10, atol=1e-14)
        flat = found.y_events[0][0]
    w = matrices(flat)
    return {"a-b": (w["b"] @ w["a"]).item(), "a-c-d": (w["d"] @ w["c"] @ w["a"]).item(),
            "e-f": (w["f"] @ w["e"]).item()}  # fmt: skip


@pytest.mark.parametrize(("how", "other"), [("start", 1.0), ("start", -0.5), ("scale", -0.5)])
def test_three_pathways_lead_where_the_full_network_says(how, other):
    """Cell by cell: aligned starts of any size, and random weights followed as they are."""
    sizes = [0.01, 0.3, 1.3] if how == "start" else [0.01, 0.02]
    found = nr.phase_diagram(
        lambda share: three_pathways(share, other), {how: sizes, "share": [0.1, 0.8]},
        race="paths", criterion=0.5, relative=True, key=3,
    )  # fmt: skip
    assert found.shape == (len(sizes), 2) and set(found.strengths) == set(PATHS)
    for k, (size, share) in enumerate(found.points):
        arch, data = three_pathways(share, other)
        race = nr.reduce(arch, data)
        if how == "start":
            weights = race.weights(race.solve(times=[0.0, 1.0], start=size), 0.0)
        else:
            weights = nr.GDLN(arch).init(3, scale=size)
        level = 0.25 * (4 * share + 4 * other**2 * (1 - share))
        wanted = by_hand({e: np.asarray(w) for e, w in weights.items()}, share, other, level)
        got = {name: values.ravel()[k] for name, values in found.strengths.items()}
        np.testing.assert_allclose([got[n] for n in wanted], list(wanted.values()), atol=2e-6)
        assert found.winners[k] == max(wanted, key=lambda n: abs(wanted[n]))
    if how == "start":
        assert set(found.winners) >= ({"a-b", "a-c-d"} if other == 1 else {"a-b", "e-f"})


def test_the_boundary_of_small_starts_is_where_growth_rates_are_equal():
    """|3p − 1| = 2p: the gated path of 2x grows as fast as the ungated one of (3p − 1)x."""
    share = lambda size: [
        c.value for c in nr.phase_diagram(
            lambda p: three_pathways(p, -0.5), "p", [0.1, 0.3], race="paths", start=size,
            criterion=0.9, relative=True, precision=1e-4,
        ).crossovers
    ]  # fmt: skip
    gaps = [abs(share(size)[0] - 0.2) for size in (1e-2, 1e-4, 1e-8)]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 0.02


def test_a_map_of_gatings_agrees_with_contests_and_its_lines_with_diagrams_of_one_parameter():
    def gatings(delta):
        data = nr.tasks.extended_xor(delta)
        return {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}

    starts = np.array([1e-6, 1e-2])
    found = nr.phase_diagram(gatings, {"start": starts, "delta": [0.5, 2.0]}, precision=1e-7)
    for (start, delta), winner in zip(found.points, found.winners, strict=True):
        contest = nr.contest(gatings(delta), start=start, leads=False)
        assert contest.winner == winner
        at = found.points.index((start, delta))
        assert {n: t.ravel()[at] for n, t in found.times.items()} == contest.times
    for start in starts:
        (alone,) = nr.phase_diagram(gatings, "delta", [0.5, 2.0], start=start).crossovers
        (here,) = (c for c in found.crossovers if c.at == {"start": start})
        assert here.value == pytest.approx(alone.value, abs=1e-6) and here.along == "delta"
    assert found.winner_at(1e-6, 0.5) == "xor" and sum(found.counts.values()) == 4
    ax = found.plot()
    assert ax.get_xlabel() == "start" and ax.get_ylabel() == "delta"
    drawn = next(c for c in ax.collections if isinstance(c, matplotlib.collections.QuadMesh))
    assert drawn.get_array().shape == (2, 2)
    frame = found.frame()
    assert len(frame) == 8 and frame["strength"].isna().all()
    assert frame.loc[frame["first"], "candidate"].tolist() == list(found.winners)


def test_networks_that_differ_in_their_start_alone_are_reduced_once(monkeypatch):
    calls, reduced = [], []
    build = lambda share: calls.append(share) or three_pathways(share)
    plain = nr.contests.times.reduce
    monkeypatch.setattr(
        nr.contests.times, "reduce", lambda *a, **k: reduced.append(1) or plain(*a, **k)
    )
    ax = nr.phase_diagram(
        build, {"start": [1e-3, 1e-2, 1e-1], "share": [0.3, 0.6]}, race="paths", at=2.0
    ).plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert calls == [0.3, 0.6] and len(reduced) == 2


def test_a_diagram_of_paths_is_a_result(tmp_path):
    found = nr.phase_diagram(
        three_pathways, "share", [0.2, 0.8], race="paths", start=0.01, at=3.0, mode="mode1"
    )
    cell = found.contest_at(0.2)
    assert isinstance(cell, PathRace) and cell.moment == 3.0 and cell.winner == "a-b"
    frame = found.frame()
    assert frame["time"].tolist() == [3.0] * 6 and frame["other"].isna().all()
    assert frame["strength"].tolist()[:3] == [cell.strengths[name] for name in found.strengths]
    assert "t = 3" in str(found) and "Not checked" not in str(found)
    assert found.plot().get_ylabel() == "strength at t = 3"
    again = Result.load(found.save(tmp_path / "map.npz"))
    assert again.winners == found.winners and again.frame().equals(frame)
    for ask in (lambda: found.times, found.check):
        with pytest.raises(nr.NeuralRaceError, match="paths"):
            ask()


def test_what_a_diagram_refuses():
    build, values = three_pathways, [0.2, 0.8]
    with refuses("mode"):
        nr.phase_diagram(build, "share", values, race="paths", start=0.1, mode="mode9")
    with refuses("check"):
        nr.phase_diagram(build, "share", values, race="paths", check=True)
    with refuses("at"):
        nr.phase_diagram(build, "share", values, at=2.0)
    with refuses("parameter"):
        nr.phase_diagram(build, "share", race="paths")
    with refuses("parameter"):
        nr.phase_diagram(build, {"a": values, "b": values, "c": values}, race="paths")
    with refuses("build"):
        nr.phase_diagram(build, "share", values)
    with refuses("race"):
        nr.phase_diagram(build, "share", values, race="edges")  # type: ignore
