"""Figures of routing with images: stored cells, cells that are computed, and the predictions."""

import json

import numpy as np
import pytest

from neuralrace import tasks
from papers import find
from papers.nrr import fig7, image_routes
from papers.nrr.image_panels import where_from
from papers.nrr.image_routes import Cell, find_cell, measure, stored_rows, too_slow
from papers.nrr.transition import (
    STRENGTHS,
    begun_at,
    escape_time,
    shared_chance,
    transfer_from_equal_starts,
    transferred,
)
from tests.test_errors import refuses

SMALL = {
    "M": 4, "hidden": 8, "time": 20.0, "seeds": 2, "images": "digits", "stored": False,
    "methods": ("statistics",), "shares": (0.5,), "few": (2,), "scale": 0.3, "slow": True,
}  # fmt: skip


def test_the_chance_of_the_shared_mode_is_that_of_random_starts():
    routes, hidden = tasks.circulant_routes(10, 3), 40
    ratios = np.linalg.svd(routes.astype(float), compute_uv=False) / 3
    starts = np.linalg.norm(np.random.default_rng(0).normal(size=(20_000, 10, hidden)), axis=2)
    first = (starts * ratios).argmax(axis=1) == 0
    assert shared_chance(routes, hidden) == pytest.approx(first.mean(), abs=0.02)
    assert shared_chance(np.ones((5, 5), bool), 8) == pytest.approx(1.0)
    assert shared_chance(np.eye(5, dtype=bool), 8) == pytest.approx(0.2)


def test_transfer_from_equal_starts_is_that_of_the_integrated_modes():
    routes, hidden, scale, s = tasks.circulant_routes(10, 3), 64, 0.2, 0.3
    M, K = 10, 3
    p, sigma, q = np.linalg.svd(routes.astype(float))
    x = np.full(M, M / (s * escape_time(s, M, scale, hidden)))
    while (sigma / K) @ x**3 < M * s:
        x = x + 1e-4 * (sigma / K) * x**2 / x.max()
    answers = p @ np.diag(x**3) @ q  # of every route, by brute force
    trained, untrained = answers[routes].mean(), answers[~routes].mean()
    found = transfer_from_equal_starts(routes, hidden, scale, s)
    assert found == pytest.approx(untrained / trained, abs=1e-3) and 0.1 < found < 0.9
    assert transfer_from_equal_starts(np.eye(10, dtype=bool), 64, 0.1, s) == pytest.approx(0)
    assert transfer_from_equal_starts(np.ones((5, 5), bool), 64, 0.1, s) == 1


def test_the_escape_time_is_that_of_three_factors():
    M, s, scale, hidden = 10, 0.3, 0.02, 64
    a, w, c = 0.0, scale, scale * np.sqrt(2 * hidden / (hidden + 10))
    time = 0.0
    while a < 1e3:
        step = 1e-3 * M / s / max(a, w, c)
        a, w, c = (v + step * s / M * p for v, p in ((a, w * c), (w, a * c), (c, a * w)))
        time += step
    assert escape_time(s, M, scale, hidden) == pytest.approx(time, rel=0.01)


def test_learning_begins_between_two_records():
    course = {"elapsed": [0, 10, 20], "loss": [1.0, 0.98, 0.92]}
    assert begun_at({"course": course}) == pytest.approx(15)
    assert begun_at({"course": course | {"loss": [1.0, 1.0, 0.96]}}) == float("inf")
    rows = {row["scale"]: row for row in stored_rows()
            if (row["plan"], row["method"]) == ("plateau", "statistics")}  # fmt: skip
    for scale in (0.1, 0.03, 0.02, 0.0125):  # ∝ 1 / gain, a fifth before the prediction
        predicted = escape_time(STRENGTHS["statistics"], 40, scale)
        assert begun_at(rows[scale]) == pytest.approx(0.8 * predicted, rel=0.1)
    assert begun_at(rows[0.01]) == begun_at(rows[0.001]) == float("inf")


def test_transfer_follows_the_gain_and_the_predicted_chance_does_not():
    rows = [row for row in stored_rows() if row["plan"] == "starts"]
    found = {r["scale"]: transferred(np.mean(r["trained"]), np.mean(r["untrained"])) for r in rows}
    scales = sorted(found, reverse=True)
    assert scales == [0.3, 0.1, 0.03, 0.01]
    assert (np.diff([found[scale] for scale in scales]) > 0.1).all()
    assert all(row["elapsed"][0] == pytest.approx(187.5 / row["scale"]) for row in rows)


def test_learning_begins_at_one_time_with_either_loss():
    rows = [row for row in stored_rows() if row["plan"] == "digits_gains"]
    times = {(row["method"], row["scale"]): begun_at(row) for row in rows}
    for scale in (0.1, 0.03, 0.01):
        assert times["cross", scale] == pytest.approx(times["statistics", scale], rel=0.1)
        assert scale * times["cross", scale] == pytest.approx(40, rel=0.05)  # ∝ 1 / gain


def test_stored_cells_are_the_measured_ones_and_say_so():
    assert all({"device", "commit"} <= set(row) for row in stored_rows())
    figure = find("nrr/fig7")
    table = figure.run(figure.resolve())
    assert table.attrs["missing"] == 0 and table.sizes["seed"] == 10
    assert set(table["origin"].to_numpy()) == {"NVIDIA H200, commit 36630e8"}
    one = image_routes.rows_of(table, method="cross", routes="random", K=4)
    assert one.sizes["cell"] == 1 and float(one["ratio"][0]) == pytest.approx(0.8233, abs=1e-4)
    assert image_routes.means(one, "untrained")[0] == pytest.approx(0.8670, abs=1e-4)
    missed = [id for id, held in figure.within(table).items() if not held]
    assert missed == ["circulant-cross-enough"]
    fewer = find_cell(Cell("race", 8, 40, seeds=3), stored_rows())
    assert fewer is not None and fewer.trained.shape == (3,)
    assert find_cell(Cell("race", 8, 40, seeds=11), stored_rows()) is None


def test_cells_are_computed_once_and_kept(tmp_path, monkeypatch):
    file = tmp_path / "cells.jsonl"
    figure = find("nrr/fig7")
    settings = figure.resolve(quick=True, changes=SMALL | {"cells": str(file)})
    first = figure.run(settings)
    assert list(first["routes"].to_numpy()) == ["circulant", "random"]
    assert [json.loads(line)["K"] for line in file.read_text().splitlines()] == [2, 2]
    with file.open("a") as more:
        more.write('{"method": "cro')  # cut off
    monkeypatch.setattr(image_routes, "Made", None)  # nothing can be computed any more
    again = figure.run(settings)
    np.testing.assert_array_equal(first["trained"], again["trained"])
    assert isinstance(fig7.transfer(again), np.ndarray)
    picture = figure.draw(again)
    assert len(picture.axes) == 3
    with pytest.raises(TypeError):
        figure.run(settings | {"images": "digits", "key": 1})


def test_missing_images_are_told_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("NEURALRACE_DATA", raising=False)
    figure, file = find("nrr/fig7"), tmp_path / "cells.jsonl"
    changes = SMALL | {"images": "mnist", "data": str(tmp_path), "cells": str(file)}
    with refuses("file"):
        figure.run(figure.resolve(quick=True, changes=changes))
    assert not list(tmp_path.iterdir())


def test_features_of_ones_own_take_the_place_of_images(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    train = rng.normal(size=(60, 5)) + 3 * np.eye(5)[labels]
    path = tmp_path / "own.npz"
    np.savez(path, train=train, labels=labels, test=train[:20], test_labels=labels[:20])
    figure = find("nrr/fig8")
    changes = {k: v for k, v in SMALL.items() if k != "few"} | {"features": str(path)}
    table = figure.run(figure.resolve(quick=True, changes=changes | {"time": 200.0}))
    assert table["inputs"].to_numpy().tolist() == ["permuted"]  # features cannot be rotated
    assert table["images"].to_numpy().tolist() == [str(path)]
    assert image_routes.means(table, "trained")[0] > 0.9
    assert [ax.get_title() for ax in figure.draw(table).axes] == ["own, permuted, M = 4"]


def test_cells_with_fewer_seeds_are_told():
    origin = {"origin": "here", "elapsed": 10.0}
    few = image_routes.Found(Cell("race", 2, 4), np.array([0.9]), np.array([0.5]), **origin)
    two = image_routes.Found(
        Cell("cross", 2, 4), np.array([0.8, 0.6]), np.array([0.1, 0.3]), **origin
    )
    table = image_routes.tabled([few, two]).assign_attrs(missing=0)
    np.testing.assert_allclose(image_routes.means(table, "trained"), [0.9, 0.7])
    told = {measure.id: measure.read(table).text for measure in where_from(table)}
    assert "race permuted" in told["fewer-seeds"]
    assert "0.0013 of the time" in told["ended-early"]


def test_without_a_gpu_it_says_what_it_would_take(monkeypatch):
    monkeypatch.setattr("papers.cells.product_speed", lambda: 1e10)
    cells = [Cell("cross", 3, 100)] * 5
    with refuses("cells"):
        raise too_slow(cells)
    assert "days" in too_slow(cells).got
    assert too_slow([Cell("race", 3, 4, time=10.0, seeds=1)]) is None
    settings = find("nrr/fig7").resolve()
    with refuses("cells"):
        measure(cells[:1], settings)
    table = measure([Cell("cross", 2, 40), *cells], settings)  # what is stored is drawn
    assert table.sizes["cell"] == 1 and table.attrs["missing"] == 1
