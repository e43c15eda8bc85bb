"""Figures about learned gates: the prediction is what the code says, small versions run."""

import numpy as np
import pytest

import neuralrace as nr
import papers
from papers.learned_gates import learners, phase, systematic, winner


def test_the_prediction_is_that_of_the_code():
    settings = phase.FIGURE.resolve()
    for rate in (1.0, 16.0):
        assert phase.boundary(settings, rate) == pytest.approx(phase.PREDICTED[rate], rel=1e-3)


def test_where_a_row_crosses_one_half():
    lengths = np.array([0.1, 1.0, 10.0])
    assert phase.crossing(lengths, np.array([0.0, 0.25, 0.75])) == pytest.approx(10**0.5)
    assert np.isnan(phase.crossing(lengths, np.array([0.0, 0.1, 0.2])))


def test_cosines_and_likeness():
    maps = np.random.default_rng(0).normal(size=(2, 2, 3))
    assert learners.cosine({"a_y": maps[1], "b_y": 2 * maps[0]}, maps) == pytest.approx(1.0)
    _, _, candidates = winner.problems(winner.FIGURE.resolve())["XoR, Δ = 0.4"]
    arch, gated = candidates["xor"]
    gates = {f"p{k}": np.asarray(gated.gates[n]) for k, n in enumerate(arch.hidden)}
    assert winner.likeness(gates, dict.fromkeys(gates, 1.0), arch, gated) == pytest.approx(1.0)
    other = winner.likeness(gates, dict.fromkeys(gates, 1.0), *candidates["linear"])
    assert other == pytest.approx(np.sqrt(0.5))


def test_a_small_version_of_the_learners_runs():
    figure = papers.find("learned_gates/learners")
    changes = {"seeds": 1, "blocks": 20, "inputs": 4, "outputs": 2, "moments": 20}
    table = figure.run(figure.resolve(quick=True, changes=changes), quick=True)
    assert table["time"].shape == (2, 1, 1, 20) and (np.abs(table["cosine"]) <= 1 + 1e-9).all()


def test_what_modules_know_of_combinations_never_seen():
    figure = systematic.FIGURE
    table = figure.run(figure.resolve(quick=True, changes={"seeds": 1, "steps": 2000}), quick=True)
    known = table["known"].sel(seed=0)
    assert (known <= 1 + 1e-12).all() and known.sel(network="given").min() > 0.5
    data = nr.tasks.combinations(key=0)  # no linear map knows more of what it is trained on
    seen, _ = nr.tasks.split_held_out(data)
    x, y = (np.hstack([*d.values()]) for d in (seen.x, seen.y))
    left = y - x @ np.linalg.lstsq(x, y)[0]
    best = 1 - (left**2).sum() / (y**2).sum()
    assert best - 0.05 < float(known.sel(network="linear", part="trained")) <= best + 1e-9
