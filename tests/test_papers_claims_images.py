"""Claims on routing with images: how numbers are read from cells, and what stored cells say."""

import numpy as np
import pytest

from evidence import Tables, Verdict, claims
from papers.figure import TooSlow
from papers.nrr.claims import images
from papers.nrr.image_routes import Cell, Found, tabled


def table_of(*cells):
    """Cells with given accuracies: (what tells the cell, trained, untrained)."""
    found = [
        Found(Cell(**{"method": "cross", "K": 4, "M": 10} | which), np.array(t), np.array(u), "", 1)
        for which, t, u in cells
    ]
    return tabled(found)


@pytest.fixture
def standing(monkeypatch):
    """Tables in which one table stands for every figure."""

    def made(table):
        monkeypatch.setattr(Tables, "__call__", lambda self, name: table)
        return Tables()

    return made


def test_transfer_is_read_from_the_cell_that_is_meant(standing):
    full = [0.9, 0.8, 0.9]
    table = table_of(
        ({"K": 1}, full, [0.1, 0.1, 0.1]),
        ({"K": 4}, full, [0.9, 0.45, 0.5]),
        ({"K": 4, "inputs": "rotated"}, [0.7], [0.7]),
        ({"K": 4, "routes": "random"}, full, [0.2, 0.2, 0.2]),
        ({"K": 4, "images": "cifar10", "inputs": "rotated"}, [0.6, 0.6], [0.1, 0.35]),
    )
    tables = standing(table)
    read = lambda **which: images.transfer("nrr/fig8", share=0.4, **which)(tables)
    np.testing.assert_allclose(read(**images.PERMUTED), [1.0, 0.5, 0.5])
    np.testing.assert_allclose(read(**images.ROTATED), [1.0])  # seeds that are not there are left
    np.testing.assert_allclose(read(images="cifar10", **images.ROTATED), [0.0, 0.5])
    assert np.isnan(images.transfer("nrr/fig8", share=0.6, **images.PERMUTED)(tables))
    least = images.least_trained("nrr/fig8", **images.PERMUTED)(tables)
    np.testing.assert_allclose(least, full)


def test_scales_are_compared_seed_by_seed(standing):
    race = {"method": "race", "inputs": "rotated"}
    table = table_of(
        ({**race, "scale": 0.1}, [0.9, 0.9], [0.9, 0.5]),
        ({**race, "scale": 1.0}, [0.7, 0.8], [0.1, 0.1]),
        ({**race, "scale": 10.0}, [0.6, 0.6], [0.1, 0.1]),
        ({**race, "scale": 0.01}, [0.1, 0.1], [0.1, 0.1]),
    )
    tables = standing(table)
    np.testing.assert_allclose(images._gained(tables), [1.0, 0.5])
    np.testing.assert_allclose(images._good_scales(tables), [0.7, 0.8])


def test_what_was_not_measured_leaves_a_claim_open(monkeypatch):
    def refused(self, name):
        raise TooSlow("too much", got="days", wanted="a GPU", fix="--quick")

    monkeypatch.setattr(Tables, "__call__", refused)
    each = [claim for claim in claims("nrr") if claim.name.startswith("nrr/images")]
    assert len(each) == 4
    for claim in each:
        numbers = [measure.read(Tables()) for measure in claim.measures]
        assert np.isnan(numbers).all()
        assert claim.judged(numbers).verdict is Verdict.UNDECIDED


def test_the_stored_cells_say_that_forty_per_cent_depend_on_the_routes():
    (claim,) = (claim for claim in claims("nrr") if claim.name == "nrr/images-40-percent")
    entry = claim.measure(Tables())
    assert entry.verdict is Verdict.QUALIFIED
    assert any("property of the circulant routes" in text for text in entry.qualifications)
    permuted = entry.found[0]
    assert permuted.value == pytest.approx(0.982, abs=0.001) and permuted.seeds == 10
