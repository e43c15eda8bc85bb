"""The page of a race: what it says, and what the browser solves, against `Race.solve` and SciPy."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from tests.test_errors import refuses


def xor():
    return nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))


def routing():
    return nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=7, K=4)[0]))


def modalities():
    """Late fusion: two inputs of standard deviations 2 and 1 that are hardly correlated."""
    rng = np.random.default_rng(0)
    a, b = 2 * rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
    edges = {"a1": ("xa", "ha"), "a2": ("ha", "y"), "b1": ("xb", "hb"), "b2": ("hb", "y")}
    arch = nr.Architecture({"xa": 1, "xb": 1, "ha": 20, "hb": 20, "y": 1}, edges)
    return nr.reduce(arch, nr.Dataset({"xa": a, "xb": b}, {"y": a + b}))


def contexts():
    """Blocks that are not scalar, of some variables each."""
    return nr.reduce(*nr.tasks.common_and_single(nr.tasks.contextual(2, items=2), hidden=4))


RACES = {"xor": xor, "routing": routing, "modalities": modalities, "contexts": contexts}


def test_a_page_is_one_file(tmp_path):
    text = xor().to_html(tmp_path / "race.html", start=0.01)
    assert (tmp_path / "race.html").read_text() == text
    assert not re.search(r'(src|href)="|https?:|import\(', text)
    frame = text._repr_html_()
    assert frame.startswith("<iframe") and "<script" not in frame  # escaped, within the frame


def test_a_page_leaves_out_what_is_too_large_and_says_so():
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(9, 5))}, {"y": rng.normal(size=(9, 4))})
    race = nr.reduce(nr.Architecture.chain(5, 8, 4), data)
    with refuses("block1"):
        race.to_html(start=0.1)
    arch = nr.Architecture(
        {"x": 5, "h": 8, "y": 4, "u": 1, "k": 2, "v": 1},
        {"a": ("x", "h"), "b": ("h", "y"), "c": ("u", "k"), "d": ("k", "v")},
    )
    u = rng.normal(size=(9, 1))
    race = nr.reduce(arch, nr.Dataset({**data.x, "u": u}, {**data.y, "v": 2 * u}))
    shown = _data(race.to_html(until=1.0, start=0.1))
    (kind,) = shown["kinds"]
    (left_out,) = (block for block in race.blocks if block.name not in kind["modes"])
    assert shown["outside"] == pytest.approx(race.outside + left_out.initial_loss)
    assert left_out.name in race.to_html(until=1.0, start=0.1).split("<script")[0]


def _data(text):
    return json.loads(re.search(r'id="race">(.*?)</script>', text, re.S)[1])


def test_the_default_time_shows_the_whole_race():
    """The loss has settled at the end, and not long before."""
    for make in RACES.values():
        race = make()
        until = _data(race.to_html(start=1e-3))["until"]
        loss = race.solve(times=[0, until / 2, until, 4 * until], start=1e-3).loss
        fall = loss[0] - loss[3]
        assert loss[2] - loss[3] < 0.02 * fall < loss[1] - loss[3]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("until", {"until": 0}),
        ("until", {"until": "long"}),
        ("start", {"start": "small"}),
        ("path", {"path": 3}),
    ],
)
def test_wrong_calls_name_the_argument(name, options):
    with refuses(name):
        xor().to_html(**options)


def opened(chromium, tmp_path, race, width, **options):
    race.to_html(tmp_path / "race.html", **options)
    page = chromium.new_page(viewport={"width": width, "height": 900})
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "race.html").as_uri())
    return page, complaints


@pytest.mark.browser
@pytest.mark.parametrize("name", RACES)
def test_the_browser_solves_the_race(chromium, tmp_path, name):
    """To 1e-6 of the initial loss; nothing is wider than the page."""
    race = RACES[name]()
    page, complaints = opened(chromium, tmp_path, race, 390, start=1e-3)
    times = np.linspace(0, _data((tmp_path / "race.html").read_text())["until"], 50)
    shown = page.evaluate("times => solve(times, settings()).loss", times.tolist())
    wanted = race.solve(times=times, start=1e-3).loss
    np.testing.assert_allclose(shown, wanted, atol=1e-6 * wanted[0])
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#loss .curve").count() == 1
    assert complaints == []
    page.close()


@pytest.mark.browser
def test_sliders_move_the_race(chromium, tmp_path):
    """Drive, brake, start and decay of a mode of two paths, against the equations in SciPy."""
    race = modalities()
    page, complaints = opened(chromium, tmp_path, race, 1280, start=0.01)
    before = page.locator("#end").inner_text()
    moved = {"S 0 mode1": -0.5, "S 1 mode1": 1.0, "D mode1": 0.5, "start mode1": 0.3, "decay": 0.4}
    most = float(page.locator("#decay").get_attribute("max"))
    for slider, value in moved.items():
        value = value * most if slider == "decay" else value
        page.locator(f'[id="{slider}"]').evaluate(
            "(input, x) => { input.value = x; input.dispatchEvent(new Event('input')); }", value
        )
    now = page.evaluate("settings()")
    kind = now["kinds"]["mode1"]
    np.testing.assert_allclose(kind["S"], [2**-0.5, 2.0], rtol=1e-3)
    paths = race._written(race.start(0.01))[0][0].paths
    S, D = paths.S * kind["S"], paths.D * kind["D"]

    def velocity(_, b):
        return b * (S - D @ b**2) - now["decay"] * b

    times = np.linspace(0, 10, 30)
    begin = np.full(2, 0.01 * kind["start"])
    b = solve_ivp(velocity, (0, 10), begin, "DOP853", times, rtol=1e-11, atol=1e-14).y
    T, best = b**2, np.linalg.solve(D, S)
    rest = paths.targets - paths.S @ np.linalg.solve(paths.D, paths.S) / 2
    wanted = rest + np.einsum("gt,gh,ht->t", T - best[:, None], D, T - best[:, None]) / 2
    shown = page.evaluate("times => solve(times, settings())", times.tolist())
    np.testing.assert_allclose(shown["loss"], wanted, atol=1e-6 * wanted[0])
    np.testing.assert_allclose([s["values"] for s in shown["strengths"]], T, atol=1e-7)
    assert page.locator("#end").inner_text() != before
    page.get_by_role("button").click()
    assert page.locator("#end").inner_text() == before
    assert complaints == []
    page.close()


@pytest.mark.browser
def test_the_axis_follows_the_decay(chromium, tmp_path):
    """With λ near the drive of the slower mode the loss settles later, and the page goes on."""
    data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.sqrt(2) * np.diag([3.0, 1.0])})
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    page, _ = opened(chromium, tmp_path, race, 1280, start=1e-3)
    usual = page.evaluate("settings().until")
    page.locator("#decay").evaluate(
        "(input) => { input.value = 0.8; input.dispatchEvent(new Event('input')); }"
    )
    now = page.evaluate("settings()")
    ends = [0.0, usual, now["until"], 4 * now["until"]]
    loss = race.solve(times=ends, start=1e-3, weight_decay=now["decay"]).loss
    fall = loss[0] - loss[3]
    assert abs(loss[2] - loss[3]) < 0.02 * fall < abs(loss[1] - loss[3])
    page.close()


def test_paths_of_a_matrix_block_have_names():
    """Every entry of a stream's matrix by its path and the directions at its ends."""
    rng = np.random.default_rng(0)
    arch = nr.Architecture(
        {"a": 1, "b": 1, "h": 4, "k": 4, "y": 2},
        {"ah": ("a", "h"), "bk": ("b", "k"), "hy": ("h", "y"), "ky": ("k", "y")},
    )
    x = {v: rng.normal(size=(6, 1)) for v in "ab"}
    race = nr.reduce(arch, nr.Dataset(x, {"y": rng.normal(size=(6, 2))}))
    (kind,) = _data(race.to_html(until=1.0, start=0.1))["kinds"]
    streams = ["ah-hy → y 1", "ah-hy → y 2", "bk-ky → y 1", "bk-ky → y 2"]
    assert kind["names"] == [f"block1: {stream}" for stream in streams]


@pytest.mark.parametrize("start", [0.0, {"W1": 0.0, "W2": 1e-3}])
def test_a_start_of_zero_has_a_page(start):
    data = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
    race = nr.reduce(nr.Architecture.chain(2, 8, 2), data)
    assert _data(race.to_html(start=start))["kinds"]
