"""Trajectories: files, comparison, joining, members."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import neuralrace as nr
from neuralrace.trajectory import check_name
from tests.test_errors import says


def single(**more) -> nr.Trajectory:
    rng = np.random.default_rng(0)
    values = {
        "sv": rng.normal(size=(4, 2)),
        "norm": rng.normal(size=4),
        "on": rng.normal(size=(4, 3)) > 0,
        "outputs": {"y": rng.normal(size=(4, 5, 1)), "z": rng.normal(size=(4, 5, 2))},
        "deep": {"a": {"b": rng.normal(size=(4, 1)).astype(np.float32)}},
    }
    return nr.Trajectory(
        [0, 0.5, 1.5, 4],
        [1.0, 0.5, 0.25, 0.125],
        values=values,
        final={"W1": rng.normal(size=(3, 2)), "W2": rng.normal(size=(1, 3))},
        settings={"method": "gradient descent", "learning_rate": 0.1},
        **more,
    )


def ensemble(seeds: int = 3) -> nr.Trajectory:
    rng = np.random.default_rng(1)
    return nr.Trajectory(
        [0, 1],
        rng.uniform(size=(2, seeds, 2)),
        values={"outputs": {"y": rng.normal(size=(2, seeds, 2, 4, 1))}},
        final={"W1": rng.normal(size=(2, seeds, 3, 2))},
        net=nr.ReLUNetwork((2, 3, 1), leak=0.1),
        axes={"delta": [0.2, 0.8], "seed": np.arange(seeds)},
        settings={"key": [0, 7], "seeds": seeds},
    )


def assert_same(a: nr.Trajectory, b: nr.Trajectory) -> None:
    assert a.settings == b.settings
    assert a.net == b.net
    assert list(a.axes) == list(b.axes)
    for x, y in ((a.values, b.values), (a.final, b.final), (a.axes, b.axes)):
        assert jax.tree.structure(x) == jax.tree.structure(y)
        for left, right in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
    np.testing.assert_array_equal(a.time, b.time)
    np.testing.assert_array_equal(a.loss, b.loss)


# ---- what it holds ------------------------------------------------------------------------------


def test_loss_must_fit_the_times_and_axes():
    with says("the loss does not fit", got="shape (2,)", wanted="shape (3,)"):
        nr.Trajectory([0, 1, 2], [1.0, 0.5])
    with says("the loss does not fit", got="shape (2,)", wanted="shape (2, 2)"):
        nr.Trajectory([0, 1], [1.0, 0.5], axes={"seed": [0, 1]})


def test_steps_and_clock_must_fit():
    assert nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10]).steps.tolist() == [0, 10]
    with says("the steps do not fit", got="shape (3,)", wanted="shape (2,)"):
        nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10, 20])
    with says("the steps do not fit", got="dtype float64", wanted="integers"):
        nr.Trajectory([0, 1], [1.0, 0.5], steps=[0.0, 1.5])
    assert single().clock == "flow"
    with says("unknown clock 'hours'", got="'hours'", wanted="'approximate flow', 'flow', 'steps'"):
        nr.Trajectory([0, 1], [1.0, 0.5], settings={"clock": "hours"})


class Doubling:
    """A theory that says every output is twice the time, on three samples."""

    def outputs(self, run):
        return {"y": 2 * run.time[:, None, None] * np.ones((1, 3, 1))}


def test_outputs_are_those_recorded_or_those_of_the_source():
    assert nr.Trajectory([0, 1], [1.0, 0.5]).outputs is None
    assert nr.Trajectory([0, 1], [1.0, 0.5], source=Doubling()).outputs["y"][1, 2, 0] == 2
    recorded = nr.Trajectory(
        [0, 1], [1.0, 0.5], values={"outputs": {"y": np.zeros((2, 3, 1))}}, source=Doubling()
    )
    assert recorded.outputs["y"][1, 2, 0] == 0


@pytest.mark.parametrize("name", ["a/b", "", ".", "a.b", "a\0", "\ud800", "loss", "time"])
def test_names_that_cannot_be_saved_are_refused(name):
    with pytest.raises(nr.NeuralRaceError, match=r"cannot be saved|is taken"):
        check_name(name)
    with pytest.raises(nr.NeuralRaceError, match=r"cannot be saved|is taken"):
        nr.Trajectory([0, 1], [1.0, 0.5], values={name: [0.0, 1.0]})


@pytest.mark.parametrize("name", ["a b", "σ_1", "a-b", " a", "W1·W2", "a\\b", "_x", "1", "@"])
def test_names_that_are_not_refused_come_back(name, tmp_path):
    check_name(name)
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={name: np.eye(2), "v": {name: np.ones(2)}})
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


def test_inner_names_are_checked_and_axes_are_not_values():
    with says("the name 'a.b' cannot be saved", got="'a.b'", wanted="dots", fix="'a_b'"):
        nr.Trajectory([0, 1], [1.0, 0.5], values={"v": {"a.b": [0.0, 1.0]}})
    nr.Trajectory([0, 1], [1.0, 0.5], values={"v": {"loss": [0.0, 1.0]}})
    with says("both called 'seed'", got="'seed'", wanted="names of their own"):
        nr.Trajectory([0, 1], [[1.0, 0.5]], values={"seed": [[0.0, 1.0]]}, axes={"seed": [0]})


def test_settings_hold_the_versions():
    versions = single().settings["versions"]
    assert versions["neuralrace"] == nr.__version__
    assert versions["jax"] == jax.__version__
    assert versions["numpy"] == np.__version__
    assert versions["python"].startswith("3.")
    assert versions["optax"][0].isdigit()


def test_it_is_a_pytree():
    run = single(net=nr.GDLN(nr.Architecture.chain(2, 3, 1)))
    twice = jax.tree.map(lambda leaf: 2 * leaf, run)
    assert isinstance(twice, nr.Trajectory)
    np.testing.assert_array_equal(twice.loss, 2 * run.loss)
    np.testing.assert_array_equal(twice.final["W1"], 2 * run.final["W1"])
    assert twice.net == run.net
    assert twice.settings == run.settings
    through = jax.jit(lambda r: (r, jnp.sum(r.loss) + jnp.sum(r.values["outputs"]["y"])))(run)
    assert_same(jax.tree.map(np.asarray, through[0]), run)
    total = run.loss.sum() + run.values["outputs"]["y"].sum()
    assert float(through[1]) == pytest.approx(total, rel=1e-12)


def test_plot_draws_every_member_of_an_ensemble():
    ax = single().plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), single().loss)
    run = ensemble()
    lines = [line.get_ydata() for line in run.plot(log=True).lines]
    for loss in run.loss.reshape(-1, 2):
        assert any(np.array_equal(line, loss) for line in lines)
    for mean in run.loss.mean(axis=1):  # of the seeds, one for each place on the other axis
        assert any(np.allclose(line, mean) for line in lines)


def test_plot_draws_recorded_values_by_name():
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={"paths": {"a": [0.0, 1.0], "b": [0.0, 2.0]}})
    ax = run.plot("paths")
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0.0, 1.0], [0.0, 2.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(nr.NeuralRaceError, match=r"nothing to draw under 'pats'"):
        run.plot("pats")


# ---- xarray and files ---------------------------------------------------------------------------


def test_xarray_has_the_axes_as_dimensions():
    table = ensemble().to_xarray()
    assert table["loss"].dims == ("delta", "seed", "time")
    assert table["outputs.y"].dims[:3] == ("delta", "seed", "time")
    assert table["final.W1"].dims[:2] == ("delta", "seed")
    assert table["delta"].values.tolist() == [0.2, 0.8]
    picked = table["loss"].sel(delta=0.8, seed=1, time=1.0)
    assert float(picked) == ensemble().loss[1, 1, 1]


@pytest.mark.parametrize(
    "run",
    [
        single(),
        single(net=nr.GDLN(nr.Architecture.chain(2, 3, 1))),
        single(net=nr.ReLUNetwork((2, 3, 1), leak=0.25, bias=True)),
        ensemble(),
        nr.Trajectory([0, 1], np.float32([1.0, np.nan])),
    ],
    ids=["bare", "gdln", "relu", "ensemble", "float32 and NaN"],
)
def test_save_and_load(run, tmp_path):
    path = run.save(tmp_path / "run.nc")
    assert path == tmp_path / "run.nc"
    assert_same(nr.load(path), run)
    assert os.listdir(tmp_path) == ["run.nc"]


def test_an_ensemble_over_named_things_comes_back(tmp_path):
    run = nr.Trajectory([0, 1], [[1.0, 0.5]] * 2, axes={"gating": ["xor", "linear"]})
    again = nr.load(run.save(str(tmp_path / "run.nc")))
    assert again.axes["gating"].tolist() == ["xor", "linear"]


def test_a_real_run_comes_back(tmp_path):
    net = nr.ReLUNetwork((2, 4, 1), leak=0.1)
    record = {"outputs": True, "weights": True, "activity": True, "sv": lambda w: w["W1"][0]}
    weights = net.init(jax.random.key(0), 0.1)
    run = nr.train(net, weights, nr.tasks.xor(), learning_rate=0.1, steps=3, record=record)
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


def test_a_saved_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "other").touch()
    path = single().save(tmp_path / "run.nc")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = single().save(tmp_path / "run.nc")
    before = path.read_bytes()

    def fail(self, draft, **kwargs):
        Path(draft).write_bytes(before[:100])
        raise OSError("no space left on the device")

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", fail)
    with pytest.raises(OSError, match="no space left"):
        ensemble().save(path)
    with pytest.raises(OSError, match="no space left"):
        ensemble().save(tmp_path / "new.nc")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


KILLED = """
import os, signal, sys
import numpy as np, xarray
import neuralrace as nr

path, how = sys.argv[1:]
run = lambda i: nr.Trajectory([0, 1], [i, i], values={"v": np.full((2, 100_000), float(i))})
if how == "inside":
    run(1.0).save(path)
    whole = xarray.Dataset.to_netcdf
    def half(self, draft, **kwargs):
        whole(self, draft, **kwargs)
        os.truncate(draft, os.path.getsize(draft) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    xarray.Dataset.to_netcdf = half
    run(2.0).save(path)
for i in range(1, 10**9):
    run(float(i)).save(path)
"""


def test_a_killed_process_never_leaves_half_a_file(tmp_path):
    paths = {how: tmp_path / how / "run.nc" for how in ("inside", "anywhere")}
    children = {}
    for how, path in paths.items():
        path.parent.mkdir()
        children[how] = subprocess.Popen([sys.executable, "-c", KILLED, str(path), how])
    try:
        assert children["inside"].wait(timeout=60) == -signal.SIGKILL
        assert nr.load(paths["inside"]).loss.tolist() == [1.0, 1.0]
        seen = set()
        while len(seen) < 10:
            assert children["anywhere"].poll() is None
            if paths["anywhere"].exists():
                run = nr.load(paths["anywhere"])
                assert (run.values["v"] == run.loss[0]).all()
                seen.add(float(run.loss[0]))
            else:
                time.sleep(0.05)
    finally:
        for child in children.values():
            child.kill()
            child.wait()
    run = nr.load(paths["anywhere"])
    assert (run.values["v"] == run.loss[0]).all()


def test_what_is_not_a_trajectory(tmp_path):
    noise = tmp_path / "noise.nc"
    noise.write_bytes(np.random.default_rng(0).bytes(1000))
    with says("noise.nc' is not a trajectory", got="Error", wanted="neuralrace trajectory 1"):
        nr.load(noise)
    other = tmp_path / "other.nc"
    xarray.Dataset({"loss": ("time", [1.0, 2.0])}).to_netcdf(other, engine="h5netcdf")
    with says("other.nc' is not a trajectory", got="format None", wanted="neuralrace trajectory"):
        nr.load(str(other))
    half = tmp_path / "half.nc"
    half.write_bytes(single().save(tmp_path / "run.nc").read_bytes()[:3000])
    with says("half.nc' is not a trajectory", got="Error", wanted="a netCDF file"):
        nr.load(half)
    with pytest.raises(FileNotFoundError):
        nr.load(tmp_path / "nothing.nc")


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    run = single()
    with says("cannot write to the folder", got="No such file", wanted="exists", fix="make the"):
        run.save(tmp_path / "missing" / "run.nc")
    (tmp_path / "file").touch()
    with says("cannot write to the folder", got="Not a directory", wanted="folder"):
        run.save(tmp_path / "file" / "run.nc")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with says(f"folder '{tmp_path}'", got="Permission denied", wanted="is writable"):
        run.save(tmp_path / "run.nc")
    monkeypatch.undo()
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


# ---- join ---------------------------------------------------------------------------------------


def test_join_puts_runs_on_one_time_axis():
    a = nr.Trajectory([1, 2], [1.0, 0.5], values={"v": {"w": [[1.0], [2.0]]}, "only": [0.0, 0.0]})
    b = nr.Trajectory([0, 3, 4], [0.6, 0.3, 0.2], values={"v": {"w": [[7.0], [3.0], [4.0]]}})
    c = nr.Trajectory(
        [10, 11], [0.2, 0.1], values={"v": {"w": [[4.0], [5.0]]}}, final={"W": np.eye(2)}
    )
    both = nr.join(a, b, c)
    assert both.time.tolist() == [1, 2, 5, 6, 7]
    assert both.loss.tolist() == [1.0, 0.5, 0.3, 0.2, 0.1]
    assert set(both.values) == {"v"}
    assert both.values["v"]["w"][:, 0].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(both.final["W"], np.eye(2))
    assert [part["method"] for part in nr.join(single(), single()).settings["parts"]] == [
        "gradient descent"
    ] * 2


def test_join_of_one_run_is_that_run():
    both = nr.join(single())
    np.testing.assert_array_equal(both.loss, single().loss)
    np.testing.assert_array_equal(both.time, single().time)
    assert jax.tree.structure(both.values) == jax.tree.structure(single().values)


def test_join_of_ensembles():
    both = nr.join(ensemble(), ensemble())
    assert both.loss.shape == (2, 3, 3)
    assert both.values["outputs"]["y"].shape == (2, 3, 3, 4, 1)
    np.testing.assert_array_equal(both.loss[..., :2], ensemble().loss)
    np.testing.assert_array_equal(both.loss[..., 2], ensemble().loss[..., 1])
    assert list(both.axes) == ["delta", "seed"]


def test_join_leaves_out_values_of_other_shapes():
    a = nr.Trajectory([0, 1], [1.0, 0.5], values={"o": np.zeros((2, 4)), "n": np.zeros(2)})
    b = nr.Trajectory([0, 1], [1.0, 0.5], values={"o": np.zeros((2, 3)), "n": np.ones(2)})
    both = nr.join(a, b)
    assert set(both.values) == {"n"}
    assert both.values["n"].tolist() == [0, 0, 1]


def test_join_needs_equal_axes():
    with says("only runs with the same axes", got="'delta'", wanted="same axes"):
        nr.join(ensemble(), single())
    with says("only runs with the same axes", got="[0, 1, 2, 3]", wanted="same axes"):
        nr.join(ensemble(3), ensemble(4))
    with says("only runs", got="[]", wanted="one or more runs"):
        nr.join()


# ---- compare ------------------------------------------------------------------------------------


def test_compare_by_hand_on_different_grids():
    a = nr.Trajectory([0, 1, 2], [2.0, 1.0, 0.0])
    b = nr.Trajectory([0, 2], [2.0, 0.4])  # 1.2 at t = 1: the gaps are 0, 0.2, 0.4
    found = nr.compare(a, b)
    assert found.mean == pytest.approx((0.1 + 0.3) / 2 / 2, rel=1e-14)
    assert found.max == pytest.approx(0.4 / 2, rel=1e-14)
    assert found.outputs is None
    assert found.end == 2
    assert nr.compare(a, a).mean == nr.compare(a, a).max == nr.compare(a, a).shift == 0
    assert nr.compare(a, a).mean_after_shift == 0
    # the reference gives the unit, and only the time that both cover counts
    later = nr.Trajectory([0.5, 5], [1.0, 1.0])
    found = nr.compare(a, later)  # gaps 0.5, 0, 1 at t = 0.5, 1, 2
    assert found.mean == pytest.approx((0.125 + 0.5) / 1.5 / 2, rel=1e-14)
    assert found.max == pytest.approx(0.5, rel=1e-14)
    assert nr.compare(later, a).mean == pytest.approx((0.125 + 0.5) / 1.5, rel=1e-14)
    assert str(found) == "mean 20.83 %, max 50.00 % of the initial loss"


@pytest.mark.parametrize("delay", [1.3, -2.7])
def test_compare_finds_a_delay(delay):
    sigmoid = lambda t: 1 / (1 + np.exp(t - 15))  # noqa: E731
    t, other_t = np.linspace(0, 30, 601), np.linspace(0, 30, 431)
    found = nr.compare(
        nr.Trajectory(t, sigmoid(t)), nr.Trajectory(other_t, sigmoid(other_t - delay))
    )
    assert found.shift == pytest.approx(delay, abs=2e-3)
    assert found.mean == pytest.approx(abs(delay) / 30, rel=1e-3)  # the area between the two
    assert found.mean_after_shift < found.mean / 300


def test_compare_of_outputs_by_hand():
    def run(times, y, z):
        y, z = (np.asarray(v, float)[:, None, None] for v in (y, z))
        outputs = {"y": y * np.ones((1, 3, 2)), "z": z * np.ones((1, 3, 1))}
        return nr.Trajectory(times, np.full(len(times), 8.0), values={"outputs": outputs})

    a, b = run([0, 1, 2], [0, 0, 0], [1, 1, 1]), run([0, 2], [0, 4], [1, 1])
    # ‖o_a − o_b‖ = √2 · 2t on every sample, and √(2 L(0)) = 4
    found = nr.compare(a, b)
    assert found.outputs == pytest.approx(np.sqrt(2) * 2 / 4, rel=1e-14)
    assert "outputs 70.71 %" in str(found)
    c = run([0, 2], [0, 0], [3, 3])
    assert nr.compare(a, c).outputs == pytest.approx(2 / 4, rel=1e-14)
    fewer = nr.Trajectory([0, 1], [1.0, 0.5], values={"outputs": {"y": np.zeros((2, 2, 2))}})
    assert nr.compare(a, fewer).outputs is None, "outputs on other samples cannot be compared"


def test_compare_of_outputs_with_sample_weights():
    """Weights count samples: twice the weight is the sample shown twice."""
    data = nr.Dataset({"x": [[1.0], [2.0]]}, {"y": [[1.0], [0.0]]}, sample_weight=[1, 2])
    twice = nr.Dataset({"x": [[1.0], [2.0], [2.0]]}, {"y": [[1.0], [0.0], [0.0]]})
    net = nr.GDLN(nr.Architecture.chain(1, 1))

    def gap(data):
        starts = ({"W1": np.array([[w]])} for w in (0.1, 0.7))
        runs = [
            nr.train(net, w, data, learning_rate=0.1, steps=20, record={"outputs": True})
            for w in starts
        ]
        return nr.compare(*runs, sample_weight=data.sample_weight).outputs, runs

    (found, runs), (wanted, _) = gap(data), gap(twice)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert nr.compare(*runs).outputs != pytest.approx(wanted, rel=1e-3)
    with says("sample weights", got="3 weights", wanted="each of the 2", fix="data.sample_weight"):
        nr.compare(*runs, sample_weight=[1, 1, 1])


def test_compare_needs_single_overlapping_runs_with_a_loss():
    a = nr.Trajectory([0, 1], [1.0, 0.5])
    with says("compare takes single runs", got="'delta', 'seed'", wanted="", fix="nr.member"):
        nr.compare(a, ensemble())
    with says("compare takes single runs", got="an ensemble", wanted="without axes"):
        nr.compare(ensemble(), a)
    with says("no time in common", got="[0, 1] and [1, 2]", wanted="overlap"):
        nr.compare(a, nr.Trajectory([1, 2], [1.0, 0.5]))
    with says("the reference starts without loss", got="0.0", wanted="positive initial loss"):
        nr.compare(nr.Trajectory([0, 1], [0.0, 0.5]), a)


# ---- member -------------------------------------------------------------------------------------


def test_member_picks_one_run(tmp_path):
    many = ensemble()
    one = nr.member(many, delta=1, seed=np.int64(2))
    assert one.axes == {}
    np.testing.assert_array_equal(one.loss, many.loss[1, 2])
    np.testing.assert_array_equal(one.values["outputs"]["y"], many.values["outputs"]["y"][1, 2])
    np.testing.assert_array_equal(one.final["W1"], many.final["W1"][1, 2])
    assert one.settings["member"] == {"delta": 1, "seed": 2}
    assert one.net == many.net
    np.testing.assert_array_equal(nr.member(many, seed=1).loss, many.loss[0, 1])
    assert_same(nr.load(one.save(tmp_path / "one.nc")), one)
    with says("no axis 'width'", got="'width'", wanted="'delta', 'seed'"):
        nr.member(many, width=0)


def test_a_comparison_says_where_it_ends_early():
    a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    short = nr.compare(a, nr.Trajectory([0, 1], [1.0, 0.5]))
    assert not short.whole and str(short).endswith("of the initial loss, up to t = 1 alone")
    assert nr.compare(nr.Trajectory([0, 1], [1.0, 0.5]), a).whole
