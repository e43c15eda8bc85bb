"""Patterns as bits, in blocks, and clusters found on drawn samples, against everything at once."""

import contextlib
import inspect
import itertools

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.observed import packed_patterns as packing

CLUSTERS = inspect.getmodule(nr.reln.Clusters)
KINDS, SIZE, SAMPLES, MOMENTS = 4, 40, 300, 3


@pytest.fixture(scope="module")
def planted():
    """A run of a network whose neurons are noisy copies of a few, and the kind of each neuron."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(SAMPLES, 20))}, {"y": rng.normal(size=(SAMPLES, 2))})
    kind = rng.integers(0, KINDS, SIZE)
    w = rng.normal(size=(KINDS, 20))[kind] + 0.3 * rng.normal(size=(MOMENTS, SIZE, 20))
    states = [{"0.weight": w[k], "2.weight": rng.normal(size=(2, SIZE))} for k in range(MOMENTS)]
    _, run = nr.from_torch(states, data, times=range(MOMENTS))
    return run, data, kind


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 30])
def test_bits_hold_what_booleans_hold(samples):
    on = np.random.default_rng(samples).random((3, samples, 50)) > 0.5
    bits = packing.packed(on)
    assert bits.shape == (3, 50, -(-samples // 8))
    np.testing.assert_array_equal(np.swapaxes(packing.unpacked(bits, samples), 1, 2), on)
    np.testing.assert_array_equal(packing.on_for(bits), on.sum(axis=1))
    rows = np.swapaxes(on, 1, 2).reshape(-1, samples)
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    ours = packing.different(bits)
    np.testing.assert_array_equal(ours[0], first)
    np.testing.assert_array_equal(ours[1], which.ravel())
    kept = packing.PackedPatterns({"h": bits}, samples)
    assert list(kept) == ["h"] and len(kept) == 1 and f"(3, {samples}, 50)" in repr(kept)
    np.testing.assert_array_equal(kept["h"], on)
    np.testing.assert_array_equal(kept.moment("h", 1), on[1])


def test_activity_block_by_block_is_the_same(planted, monkeypatch):
    run, data, _ = planted
    whole = nr.reln.activity(run, data, boundary=0.1)
    monkeypatch.setattr(packing, "BLOCK", 16 * SIZE)  # 16 samples at a time
    assert len(list(packing.blocks(SAMPLES, SIZE, 8))) == 19
    parts = nr.reln.activity(run, data, boundary=0.1)
    np.testing.assert_array_equal(parts.on["h"], whole.on["h"])
    np.testing.assert_allclose(parts.undecided["h"], whole.undecided["h"], 1e-12)
    assert whole.undecided["h"][0] > 0.01  # otherwise it is not compared
    assert str(parts) == str(whole)


def test_a_bar_counts_every_sample_of_every_moment(planted, monkeypatch):
    run, data, _ = planted
    seen = []

    @contextlib.contextmanager
    def bar(total, what, unit):
        seen.append([total, 0])
        yield lambda amount: seen[-1].__setitem__(1, seen[-1][1] + amount)

    monkeypatch.setattr(inspect.getmodule(nr.reln.Activity), "progress", bar)
    monkeypatch.setattr(packing, "BLOCK", 16 * SIZE)
    nr.reln.activity(run, data)
    assert seen == [[MOMENTS * SAMPLES, MOMENTS * SAMPLES]]


def test_clusters_on_drawn_samples_are_those_of_all(planted, monkeypatch):
    run, data, kind = planted
    exact = nr.reln.discover(run, data, pathways=KINDS).layers["h"]
    assert exact.sampling is None
    monkeypatch.setattr(CLUSTERS, "WHOLE", 4000)
    monkeypatch.setattr(CLUSTERS, "FIRST", 4000)
    monkeypatch.setattr(CLUSTERS, "FEWEST", 64)
    monkeypatch.setattr(packing, "BLOCK", 1000)
    found = nr.reln.discover(run, data, pathways=KINDS)
    drawn = found.layers["h"]
    assert drawn.sampling.samples == 64 and drawn.sampling.of == SAMPLES
    assert drawn.sampling.moved == 0
    assert "first guess on 64 of 300 samples (distances to ± 5.55 %), 0 % moved" in str(found)
    np.testing.assert_array_equal(drawn.member, exact.member)
    np.testing.assert_array_equal(drawn.pattern, exact.pattern)
    np.testing.assert_allclose(drawn.centroid, exact.centroid, 0, 1e-12)
    np.testing.assert_allclose(drawn.share, exact.share, 1e-12)
    np.testing.assert_allclose(drawn.mismatch, exact.mismatch, 1e-12)
    assert all(len(set(drawn.member[0][kind == k])) == 1 for k in range(KINDS))


def test_what_moved_is_the_part_that_changed_in_the_last_round(planted, monkeypatch):
    """With neurons of no kind the first guess is poor; what is said of it is checked by hand."""
    _, data, _ = planted
    random = np.random.default_rng(1)
    on = random.random((1, SAMPLES, 500)) > 0.5
    weights = {"W1": np.zeros((1, 500, 20)), "W2": np.zeros((1, 2, 500))}
    net = nr.GDLN(nr.Architecture.chain(20, 500, 2))
    alone = nr.Trajectory([0.0], [1.0], values={"weights": weights}, net=net)
    monkeypatch.setattr(CLUSTERS, "WHOLE", 8000)
    monkeypatch.setattr(CLUSTERS, "FIRST", 8000)
    monkeypatch.setattr(CLUSTERS, "FEWEST", 16)
    layer = CLUSTERS.activity_of([alone], data.gated({"h": on[0].astype(float)}), 0.0)["h"]
    samples = CLUSTERS.ActivitySamples.of(layer, data, True)
    moved = []
    for rounds in (1, 2, 3):
        monkeypatch.setattr(CLUSTERS, "ROUNDS", rounds)
        _, label, sampling = CLUSTERS._means(samples, 5, 0)
        moved.append((label, sampling.moved))
    assert moved[0][1] > 0.01  # otherwise nothing is checked
    for (before, _), (after, part) in itertools.pairwise(moved):
        assert part == pytest.approx(np.mean(before != after))
    rows = on[0].T[samples.first].astype(float)
    means = np.stack([rows[moved[1][0] == k].mean(axis=0) for k in range(5)])
    nearest = ((rows[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(moved[2][0], nearest)


def test_the_error_of_drawn_samples_is_the_spread_of_distances():
    random = np.random.default_rng(0)
    differs = np.arange(1000) < 500  # two patterns that differ on half of the samples
    drawn = [random.permutation(differs)[:200].mean() for _ in range(4000)]
    said = nr.reln.Sampling(samples=200, of=1000, moved=0.0).error
    assert np.std(drawn) == pytest.approx(said, rel=0.05)


def test_samples_without_weight_still_have_gates(planted, monkeypatch):
    run, data, _ = planted
    some = nr.Dataset(data.x, data.y, sample_weight=np.arange(SAMPLES) % 3 > 0)
    _, run = nr.from_torch(
        {"0.weight": run.values["weights"]["W1"][0], "2.weight": run.values["weights"]["W2"][0]},
        some,
    )
    exact = nr.reln.discover(run, some, pathways=KINDS).layers["h"]
    monkeypatch.setattr(CLUSTERS, "WHOLE", 2000)
    monkeypatch.setattr(CLUSTERS, "FIRST", 2000)
    monkeypatch.setattr(CLUSTERS, "FEWEST", 64)
    drawn = nr.reln.discover(run, some, pathways=KINDS).layers["h"]
    assert drawn.sampling.of == 200
    np.testing.assert_array_equal(drawn.pattern, exact.pattern)
    np.testing.assert_allclose(drawn.centroid, exact.centroid, 0, 1e-12)
