"""The pages of the seminar kit hold the races that they are said to hold, and their answers."""

import json
import re

import jax
import numpy as np
import pytest

from docs import teach


@pytest.fixture(scope="module")
def races():
    return {name: race() for name, race in teach.PAGES.items()}


def held(page):
    text = re.search(r'<script type="application/json" id="race">(.*?)</script>', page)[1]
    return json.loads(text)["kinds"]


@pytest.mark.parametrize("name", teach.PAGES)
def test_a_stored_page_is_that_of_its_race(races, name):
    stored = held((teach.FOLDER / f"{name}.html").read_text())
    now = held(races[name].to_html(start=teach.START[name]))
    leaves, tree = jax.tree.flatten(now)
    assert jax.tree.structure(stored) == tree
    for old, new in zip(jax.tree.leaves(stored), leaves, strict=True):
        assert old == new if isinstance(new, str) else old == pytest.approx(new, abs=1e-9)


def drives(race):
    return np.unique(race.frame()["s"].round(9))


def test_the_answers_about_the_chain_and_the_transition(races):
    half = races["chain"].modes(1e-3).frame()["half_time"]
    s = np.array([3.0, 2, 1])
    np.testing.assert_allclose(half, np.log(s / 1e-3**2 - 1) / (2 * s), rtol=1e-9)
    np.testing.assert_allclose(half.round(1), [2.5, 3.6, 6.9])
    np.testing.assert_allclose(drives(races["xor"]), [0.3, 0.384], atol=5e-4)
    assert len(drives(teach.xor(np.sqrt(2 / 3)))) == 1


def test_the_answers_about_routing_modalities_and_steps(races):
    times = np.linspace(0, 60, 61)
    run = races["routing"].solve(times=times, start=teach.START["routing"])
    weights = list(run.values["variables"]["mode1"].values())
    first, second = np.abs(weights[0])[-1].max(), max(np.abs(w)[-1].max() for w in weights)
    assert second == pytest.approx(np.sqrt(3) * first, rel=0.02)

    times = np.linspace(0, 60, 6001)
    run = races["modalities"].solve(times=times, start=1e-6)
    seen, heard = (np.abs(path) for path in run.values["pathways"]["mode1"].values())
    half = [times[np.argmax(each > 0.5)] for each in (seen, heard)]
    assert half[1] / half[0] == pytest.approx(5, rel=0.05) and seen.max() > 1.2 > 1.01 > seen[-1]

    half = races["recurrent"].modes(1e-3).frame().set_index("mode")["half_time"]
    assert half["mode1"] < half["mode2"]
