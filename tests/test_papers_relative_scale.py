"""Relative scale in practice: networks, measures of filters, cells, and the two figures."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
import papers
from evidence import Tables, Verdict
from papers.talk import convolution, early_layers, filters, grokking, relative_scale
from papers.talk.claims import practice
from papers.talk.relative_scale import Cells, early_and_late, ratio_label
from tests.test_errors import refuses, says

NET = convolution.Convolutional.of(
    (2, 9, 7), 3, channels=(4, 5), kernels=(3, 2), strides=(2, 1)
)  # fmt: skip
RNG = np.random.default_rng(0)
DATA = nr.Dataset({"x": RNG.normal(size=(6, 126))}, {"y": RNG.normal(size=(6, 3))})

TINY = {
    "p": 5, "hidden": 8, "epochs": 40, "every": 10, "seeds": 2, "ratios": (0.25, 1.0, 4.0),
    "stored": False, "slow": True,
}  # fmt: skip
SMALL = {"epochs": 1, "seeds": 2, "ratios": (0.25, 1.0, 4.0), "channels": (3, 4)}


# ---- the convolutional network ------------------------------------------------------------------


def by_jax(weights, rows):
    """The same network by JAX's own convolutions."""
    h = rows.reshape(-1, 2, 9, 7)
    for kernel, stride in (("K1", 2), ("K2", 1)):
        h = jax.nn.relu(jax.lax.conv(h, weights[kernel], (stride, stride), "VALID"))
    return h.mean(axis=(2, 3)) @ weights["readout"].T


@pytest.mark.slow
def test_the_network_is_that_of_ordinary_convolutions():
    weights = NET.init(0, 0.5)
    assert {edge: w.shape for edge, w in weights.items()} == NET.shapes
    np.testing.assert_allclose(NET(weights, DATA)["y"], by_jax(weights, DATA.x["x"]), atol=1e-12)
    other = jax.grad(lambda w: 0.5 * jnp.sum((by_jax(w, DATA.x["x"]) - DATA.y["y"]) ** 2) / 6)
    for edge, step in NET.velocity(weights, DATA).items():
        np.testing.assert_allclose(step, -other(weights)[edge], atol=1e-12)
    responses = NET.responses(weights, DATA)
    assert {node: h.shape[1] for node, h in responses.items()} == dict(NET.arch.sizes)


def test_many_samples_are_taken_in_parts(monkeypatch):
    weights = NET.init(0, 0.5)
    whole = NET(weights, DATA)["y"]
    monkeypatch.setattr(convolution, "AT_ONCE", 4)
    np.testing.assert_allclose(NET(weights, DATA)["y"], whole, atol=1e-14)


def test_kernels_have_their_own_shapes_in_the_base():
    with refuses("K1"):
        NET({**NET.init(0), "K1": np.ones((4, 18))}, DATA)
    kernel = NET.init(0, 2.0, "orthogonal")["K1"].reshape(4, 18)
    np.testing.assert_allclose(kernel @ kernel.T, 4 * np.eye(4), atol=1e-12)
    wide = convolution.Convolutional.of(
        (8, 9, 9), 3, channels=(64,), kernels=(5,), strides=(1,)
    )  # fmt: skip
    spread = float(wide.init(0, 1.0, "xavier")["K1"].std())
    assert spread == pytest.approx(np.sqrt(2 / (8 * 25 + 64 * 25)), rel=0.02)


def test_it_trains_and_is_saved_like_any_other(tmp_path):
    run = nr.train(
        NET, NET.init(0, 0.3), DATA, learning_rate=0.1, steps=20, record_every=10,
        record={"weights": True},
    )  # fmt: skip
    assert run.loss[-1] < run.loss[0]
    again = nr.Trajectory.from_weights(NET, run.values["weights"], DATA, run.time)
    np.testing.assert_allclose(again.loss, run.loss, rtol=1e-12)
    run.save(tmp_path / "run.nc")


@pytest.mark.parametrize(
    ("net", "first", "last", "data"),
    [
        (NET, ("K1",), "readout", DATA),
        (grokking.network(5, 8), ("embed_a", "embed_b"), "readout", grokking.sums(5, 0.5, 0)[0]),
    ],
)
def test_the_ratio_leaves_the_initial_outputs_as_they_are(net, first, last, data):
    outputs = []
    for ratio in (1 / 50, 1.0, 7.0):
        early, late = early_and_late(ratio)
        assert late / early == pytest.approx(ratio)
        scales = dict.fromkeys(net.arch.edges, 0.3)
        scales |= {**dict.fromkeys(first, 0.3 * early), last: 0.3 * late}
        outputs.append(net(net.init(3, scales), data)["y"])
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(outputs[2], outputs[1], rtol=1e-10, atol=1e-12)


# ---- how structured filters are -----------------------------------------------------------------


def test_noise_has_its_share_of_low_frequencies():
    noise = RNG.normal(size=(4000, 3, 9, 9))
    share = filters.low_frequency_share(noise)
    assert share.mean() == pytest.approx(21 / 81, abs=0.003)
    y, x = np.mgrid[:9, :9]
    slow = np.cos(2 * np.pi * 2 * x / 9 + 0.3)
    fast = np.cos(2 * np.pi * 3 * (x + y) / 9)
    both = filters.low_frequency_share(np.stack([slow, fast, slow + fast])[:, None])
    np.testing.assert_allclose(both, [1, 0, 0.5], atol=1e-12)


def test_a_gabor_function_is_found_whatever_its_phase_and_colour():
    size = 9
    y, x = (np.mgrid[:size, :size] + 0.5) / size
    envelope = np.exp(-((x - 0.3) ** 2 + (y - 0.7) ** 2) / (2 * 0.2**2))
    angle = np.pi * 3 / 8
    wave = lambda phase: np.cos(
        2 * np.pi * 0.18 * size * (np.cos(angle) * x + np.sin(angle) * y) + phase
    )
    one = np.stack([a * envelope * wave(1.1) for a in (0.2, -3.0, 1.0)])
    share = filters.gabor_share(np.stack([one, 100 * one]))
    np.testing.assert_allclose(share, 1.0, atol=1e-12)
    noise = filters.gabor_share(RNG.normal(size=(200, 3, 9, 9)))
    assert noise.max() < 0.3
    mixed = one / np.linalg.norm(one) + RNG.normal(size=one.shape) / np.sqrt(one.size)
    assert 0.35 < filters.gabor_share(mixed[None])[0] < 0.7


def test_the_floor_of_white_noise_depends_on_the_size_of_filters():
    """Against other draws; more than the share 2 / k² of a single pair among k² pixels."""
    other = np.random.default_rng(9)
    for channels, size, about in ((1, 5, 0.36), (3, 9, 0.082)):
        found = filters.of_noise(filters.gabor_share, channels, size)
        again = filters.gabor_share(other.normal(size=(300, channels, size, size))).mean()
        assert found == pytest.approx(again, rel=0.05) and found == pytest.approx(about, rel=0.05)
        assert found > 2 / size**2
    low = filters.of_noise(filters.low_frequency_share, 3, 9)
    assert low == pytest.approx(21 / 81, abs=0.01)


# ---- cells --------------------------------------------------------------------------------------


def test_sums_are_all_pairs_once():
    trained, others = grokking.sums(7, 0.4, 1)
    assert trained.n_samples == 20 and others.n_samples == 29
    pairs = []
    for data in (trained, others):
        a, b, y = (np.asarray(v).argmax(axis=1) for v in (*data.x.values(), data.y["y"]))
        assert ((a + b) % 7 == y).all()
        pairs += list(zip(a.tolist(), b.tolist(), strict=True))
    assert len(set(pairs)) == 49
    assert not np.array_equal(trained.x["a"], grokking.sums(7, 0.4, 2)[0].x["a"])


def test_the_first_epoch_that_is_good_enough():
    epochs = np.array([0, 10, 20, 30])
    assert grokking.first_at(epochs, np.array([0.1, 0.96, 0.9, 1.0]), 0.95) == 10
    assert grokking.first_at(epochs, np.array([0.1, 0.2, 0.3, 0.4]), 0.95) is None


def fake_cells(calls):
    """Cells whose training is noted and gives the product of ratio and seed."""

    def train(settings, seed, ratios):
        calls.append((seed, list(ratios)))
        return [{"number": r * seed} for r in ratios]

    return Cells("nothing.jsonl", ("p",), train, lambda settings: 1e9)


def test_cells_are_computed_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(relative_scale, "made", lambda: {"device": "D", "commit": "C"})
    calls, file = [], tmp_path / "cells.jsonl"
    cells = fake_cells(calls)
    settings = {
        "p": 5, "ratios": (1.0, 2.0), "seeds": 2, "stored": True, "cells": str(file), "slow": True
    }  # fmt: skip
    first = cells.rows(settings)
    assert calls == [(0, [1.0, 2.0]), (1, [1.0, 2.0])]
    with file.open("a") as more:
        more.write('{"p": 5, "rat')  # cut off
    assert cells.rows(settings) == first and len(calls) == 2
    more = cells.rows(settings | {"ratios": (2.0, 3.0), "seeds": 3})
    assert calls[2:] == [(0, [3.0]), (1, [3.0]), (2, [2.0, 3.0])]
    table = cells.table(settings | {"seeds": 3}, ("number",), {**more, **first})
    assert table["number"].sel(ratio=2.0).to_numpy().tolist() == [0, 2, 4]
    assert str(table["origin"].to_numpy()[0, 0]) == "D, commit C"
    assert np.isnan(table["number"].sel(ratio=1.0).to_numpy()[2])
    cells.rows(settings | {"p": 7})
    assert len(calls) == 7  # other settings are other cells


def test_without_a_gpu_only_stored_cells_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr("papers.cells.product_speed", lambda: 1e6)
    calls = []
    cells = fake_cells(calls)
    file = tmp_path / "cells.jsonl"
    settings = {
        "p": 5, "ratios": (1.0, 2.0), "seeds": 1, "stored": False, "cells": str(file),
        "slow": False,
    }  # fmt: skip
    with says("too much for a processor", got="2 cells", wanted="a GPU", fix="slow=true"):
        cells.rows(settings)
    file.write_text(json.dumps({"p": 5, "ratio": 2.0, "seed": 0, "number": 3.0}) + "\n")
    rows = cells.rows(settings)
    table = cells.table(settings, ("number",), rows)
    assert list(rows) == [(2.0, 0)] and table.attrs["missing"] == 1 and not calls


def test_ratios_are_written_as_fractions():
    assert [ratio_label(r) for r in (1 / 64, 0.25, 1.0, 16.0)] == ["1/64", "1/4", "1", "16"]


def test_stored_cells_are_whole_and_say_where_they_come_from():
    for name in ("talk/grokking", "talk/early_layers"):
        figure = papers.find(name)
        table = figure.run(figure.resolve())
        assert table.attrs["missing"] == 0 and table.sizes["seed"] == 5
        assert all("NVIDIA H200, commit" in place for place in np.unique(table["origin"]))
        assert all(ax.has_data() for ax in figure.draw(table).axes)
    entries = {claim.name: claim.measure(Tables()) for claim in practice.CLAIMS}
    assert entries["talk/early-layers"].verdict is Verdict.HOLDS
    assert entries["talk/grokking"].verdict is Verdict.UNDECIDED  # which scales to compare is ours
    instead = entries["talk/grokking"].instead[0]
    assert "1.47 times as long" in instead and "1.10 at the largest" in instead
    assert entries["talk/grokking"].seeds == 5


# ---- the figures --------------------------------------------------------------------------------


def held(figure, table, id):
    return figure.within(table)[id]


@pytest.mark.slow
def test_grokking_is_judged_by_its_times(tmp_path):
    figure = papers.find("talk/grokking")
    file = tmp_path / "cells.jsonl"
    settings = figure.resolve(quick=True, changes=TINY | {"cells": str(file)})
    table = figure.run(settings, quick=True)
    assert table["others"].shape == (3, 2, 5) and len(figure.draw(table).axes) == 2
    assert table.equals(figure.run(settings, quick=True))
    early = table.assign(
        fitted=table["fitted"].fillna(0) * 0 + 10,
        generalised=(("ratio", "seed"), [[30, np.nan], [20, 20], [10, 10]]),
    )
    assert held(figure, early, "sooner") and held(figure, early, "in-order")
    late = early.assign(generalised=early["generalised"][::-1].to_numpy() + 0 * early["fitted"])
    assert held(figure, early, "seeds") and held(figure, late, "seeds") is False
    all_late = late.assign(generalised=(("ratio", "seed"), [[10, 10], [20, 20], [60, 60]]))
    assert held(figure, all_late, "sooner") is False
    assert held(figure, all_late, "in-order") is False
    assert held(figure, late, "fits")


@pytest.mark.slow
def test_early_layers_are_judged_by_both_measures():
    figure = papers.find("talk/early_layers")
    settings = figure.resolve(quick=True, changes=SMALL)
    table = figure.run(settings, quick=True)
    assert table["filters"].shape == (3, 3, 1, 5, 5)
    assert np.abs(table["filters"]).max() == early_layers.LEVELS
    assert all(ax.get_title() or ax.get_title("left") for ax in figure.draw(table).axes)
    grown = (("ratio", "seed"), [[0.2, 0.2], [0.3, 0.3], [0.5, 0.49]])
    better = table.assign(low=grown, gabor=grown)
    noise = np.array([table[f"{name}_of_noise"] for name in ("low", "gabor")])
    np.testing.assert_allclose(noise, [0.2, 0.36], atol=0.02)
    labels = [text.get_text() for text in figure.draw(table).axes[3].get_legend().get_texts()]
    assert "white noise" in labels
    assert held(figure, better, "gabor-over-noise")
    noisy = better.assign(gabor=0.65 * better["gabor"])  # 0.32, while noise of this size has 0.36
    assert held(figure, noisy, "gabor-over-noise") is False
    for name in ("low", "gabor"):
        assert held(figure, better, f"{name}-gain")
        worse = better.isel(ratio=[2, 1, 0]).assign_coords(ratio=better["ratio"].to_numpy())
        assert held(figure, worse, f"{name}-gain") is False
        assert held(figure, worse, f"{name}-in-order") is False
