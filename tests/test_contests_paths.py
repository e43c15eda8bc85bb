"""Phase diagrams of paths inside one network, and over two parameters, against full networks."""

import matplotlib
import numpy as np
import pytest

import neuralrace as nr
from evidence.own import path_races
from evidence.own.path_races import three_pathways
from neuralrace.contests import PathRace
from neuralrace.results import Result
from tests.test_errors import refuses


@pytest.mark.parametrize(("other", "key"), [(1.0, None), (-0.5, None), (-0.5, 3)])
def test_three_pathways_lead_where_the_full_network_says(other, key):
    """Cell by cell: aligned starts of any size, and random weights followed as they are."""
    sizes = np.array([0.01, 0.3, 1.3] if key is None else [0.01, 0.02])
    found = path_races.diagram(sizes, np.array([0.1, 0.8]), other, key)
    assert found.shape == (len(sizes), 2) and set(found.strengths) == {"a-b", "a-c-d", "e-f"}
    wrong, gap = path_races.cells_off(found, other, key)
    assert wrong == 0 and gap < 2e-6
    if key is None:
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
    with refuses("build", "share"):
        nr.phase_diagram(lambda size: build(size), {"share": values}, race="paths")
    with refuses("race"):
        nr.phase_diagram(build, "share", values, race="edges")  # type: ignore
