"""Trajectories: files, comparison, joining, members."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import neuralrace as nr
from neuralrace.trajectory import check_name
from tests.test_errors import says

comparing = import_module("neuralrace.trajectory.compare")

THIS_PACKAGE = os.environ | {"PYTHONPATH": str(Path(nr.__file__).parents[1])}
"""The environment of another process that tests these sources."""


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
    with says("the sample weights do not fit", got="(2, 3)", wanted="(N,)"):
        nr.Trajectory([0, 1], [1.0, 0.5], sample_weight=np.ones((2, 3)))
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
    with says("both called 'seed'", got="'seed'", wanted="different"):
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


def names(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_colour_line_and_label_are_passed_on():
    ax = single().plot(color="red", linestyle=":", label="mine", log=True)
    (line,) = ax.lines
    assert (line.get_color(), line.get_linestyle(), line.get_label()) == ("red", ":", "mine")
    assert ax.get_yscale() == "log" and names(ax) == ["mine"]
    assert rates().plot().get_xlabel() == "step" and ax.get_xlabel() == "time"


def test_one_pair_of_axes_has_one_clock():
    def run(time, **more):
        return nr.Trajectory(time, [1.0, 0.5, 0.2], **more)

    adam = run([0, 10, 20], steps=[0, 10, 20], settings={"clock": "steps"})
    descent = run([0.0, 1.0, 2.0], steps=[0, 10, 20])
    ax = adam.plot(label="Adam")
    descent.plot(label="descent", ax=ax)
    assert ax.get_xlabel() == "step"
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [0, 10, 20])
    over_time = descent.plot()
    assert over_time.get_xlabel() == "time"
    with says("another clock", got="over time", wanted="one clock", fix="first"):
        adam.plot(ax=over_time)
    with says("another clock", got="over step", wanted="one clock"):
        run([0.0, 1.0, 2.0]).plot(ax=adam.plot())
    assert len(over_time.lines) == 1


def test_a_second_run_on_the_same_axes_has_the_next_colour():
    ax = single().plot()
    for _ in range(2):
        single().plot(ax=ax)
    colours = [line.get_color() for line in ax.lines]
    assert len(set(map(str, colours))) == 3
    assert names(ax) == ["gradient descent", "gradient descent 2", "gradient descent 3"]


def test_every_curve_of_several_values_over_several_places_is_drawn():
    rng = np.random.default_rng(0)
    values = {"p": {"a": rng.uniform(size=(2, 3, 4)), "b": rng.uniform(size=(2, 3, 4))}}
    run = nr.Trajectory(
        np.arange(4),
        np.ones((2, 3, 4)),
        values=values,
        axes={"delta": [1 / 3, 2 / 3], "seed": [0, 1, 2]},
    )
    ax = run.plot("p")
    assert names(ax) == [f"{v}, delta = {d}" for v in "ab" for d in ("0.333", "0.667")]
    drawn = [line.get_ydata() for line in ax.lines]
    for value in values["p"].values():
        for curve in value.mean(axis=1):
            assert any(np.allclose(line, curve) for line in drawn)


def test_only_seeds_are_averaged_wherever_their_axis_is():
    loss = np.arange(24.0).reshape(2, 3, 4)
    first = nr.Trajectory(np.arange(4), loss, axes={"seed": [0, 1], "width": [10, 20, 30]})
    ax = first.plot()
    assert names(ax) == ["width = 10", "width = 20", "width = 30"]
    assert any(np.array_equal(line.get_ydata(), loss[:, 1].mean(axis=0)) for line in ax.lines)
    widths = nr.Trajectory(np.arange(4), loss[0], axes={"width": [10, 20, 30]})
    assert len(widths.plot().lines) == 3, "widths are no seeds"


def test_arrays_are_drawn_entry_by_entry_or_as_norms():
    rng = np.random.default_rng(0)
    values = {
        "sv": rng.normal(size=(5, 2)),
        "W": rng.normal(size=(5, 9, 9)),
        "on": np.array([True, False, True, True, False]),
        "variables": {"mode1": {"ih": rng.normal(size=(5, 1, 1)), "hy": np.ones((5, 1, 1))}},
    }
    run = nr.Trajectory(np.arange(5), np.ones(5), values=values)
    assert names(run.plot("sv")) == ["sv 1", "sv 2"]
    np.testing.assert_array_equal(run.plot("sv").lines[1].get_ydata(), values["sv"][:, 1])
    (norm,) = run.plot("W").lines
    np.testing.assert_allclose(norm.get_ydata(), np.linalg.norm(values["W"], axis=(1, 2)))
    assert run.plot("on").lines[0].get_ydata().tolist() == [1, 0, 1, 1, 0]
    assert names(run.plot("variables")) == ["mode1.ih", "mode1.hy"]
    assert names(run.plot("variables", label="race")) == ["race, mode1.ih", "race, mode1.hy"]


def test_the_first_quantity_names_shared_axes():
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={"test": {"loss": np.array([1.0, 0.6])}})
    ax = run.plot("test.loss", ax=run.plot(label="train"), label="test")
    assert ax.get_ylabel() == "loss"
    assert names(ax) == ["train", "test"]


def test_many_curves_have_a_colour_bar():
    deltas = np.linspace(0, 1, 20)
    run = nr.Trajectory([0, 1], np.ones((20, 2)), axes={"delta": deltas})
    ax = run.plot()
    assert ax.get_legend() is None and len(ax.lines) == 20
    (bar,) = (other for other in ax.get_figure().axes if other is not ax)
    ticks = [text.get_text() for text in bar.get_yticklabels()]
    assert ticks[0] == "delta = 0" and ticks[-1] == "delta = 1" and len(ticks) == 8
    assert "delta = 0.158" in ticks, "rounded to three digits"
    assert len({str(line.get_color()) for line in ax.lines}) == 20
    theory = nr.Trajectory(run.time, run.loss, axes=run.axes, settings={"method": "race"})
    theory.plot(ax=ax)
    assert len(ax.lines) == 40 and len(ax.get_figure().axes) == 2, "one bar serves both"


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

    def fail(self, **kwargs):
        raise OSError("no space left on the device")

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", fail)
    with pytest.raises(OSError, match="no space left"):
        ensemble().save(path)
    with pytest.raises(OSError, match="no space left"):
        ensemble().save(tmp_path / "new.nc")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


FULL = """
import os, resource, signal, sys
import numpy as np
import neuralrace as nr

folder = sys.argv[1]
before = nr.Trajectory([0, 1], [1.0, 0.5])
before.save(f"{folder}/run.nc")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is then an OSError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    nr.Trajectory([0, 1], [1.0, 0.5], values={"v": np.ones((2, 100_000))}).save(f"{folder}/run.nc")
except OSError as error:
    print("caught", os.listdir(folder), nr.load(f"{folder}/run.nc").loss.tolist())
"""


def test_a_full_disk_is_an_error_that_can_be_caught(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env=THIS_PACKAGE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "caught ['run.nc'] [1.0, 0.5]\n"


KILLED = """
import os, signal, sys
import numpy as np, xarray
import neuralrace as nr

path, how = sys.argv[1:]
run = lambda i: nr.Trajectory([0, 1], [i, i], values={"v": np.full((2, 100_000), float(i))})
if how == "inside":
    run(1.0).save(path)
    def half(file):
        os.truncate(file, os.fstat(file).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.fsync = half
    run(2.0).save(path)
for i in range(1, 10**9):
    run(float(i)).save(path)
"""


def test_a_killed_process_never_leaves_half_a_file(tmp_path):
    paths = {how: tmp_path / how / "run.nc" for how in ("inside", "anywhere")}
    children = {}
    for how, path in paths.items():
        path.parent.mkdir()
        children[how] = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), how], env=THIS_PACKAGE
        )
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
    with says("noise.nc' is not a trajectory", got="Error", wanted="neuralrace trajectory 2"):
        nr.load(noise)
    text = tmp_path / "text.nc"
    text.write_text("time, loss\n0, 1\n")
    with says("text.nc' is not a trajectory", got="Error", wanted="a netCDF file"):
        nr.load(text)
    with says("is not a trajectory", got="Error", wanted="a netCDF file"):
        nr.load(tmp_path)
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


def first_format(**attrs):
    """A file as version 0.1.0 wrote it."""
    settings = {"method": "gradient descent", "time": "steps", "versions": {"neuralrace": "0.1.0"}}
    net = {"sizes": {"x": 2, "y": 1}, "edges": {"W1": ["x", "y"]}}
    return xarray.Dataset(
        {
            "loss": (("learning_rate", "time"), [[1.0, 0.5], [1.0, 0.25]]),
            "outputs.y": (("learning_rate", "time", "outputs.y.0"), np.ones((2, 2, 3))),
            "final.W1": (("learning_rate", "final.W1.0", "final.W1.1"), np.ones((2, 1, 2))),
        },
        {"time": [0.0, 10.0], "learning_rate": [0.1, 0.2]},
        {"format": "neuralrace trajectory 1", "settings": json.dumps(settings)}
        | {"net": json.dumps(net)}
        | attrs,
    )


def test_a_file_of_the_first_format_is_read(tmp_path):
    first_format().to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    run = nr.load(tmp_path / "old.nc")
    assert run.clock == "steps" and run.net == nr.GDLN(nr.Architecture.chain(2, 1))
    assert run.values["outputs"]["y"].shape == (2, 2, 3)
    assert run.isel(learning_rate=1).time.tolist() == [0, 2]
    assert run.settings["versions"] == {"neuralrace": "0.1.0"}, "not those of today"


def test_a_file_without_time_or_loss_is_refused(tmp_path):
    first_format().drop_vars("time").to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with says("a.nc' is not a trajectory", got="it has no time", wanted="netCDF"):
        nr.load(tmp_path / "a.nc")
    first_format().drop_vars("loss").to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    with says("b.nc' is not a trajectory", got="loss", wanted="netCDF"):
        nr.load(tmp_path / "b.nc")
    first_format(net="{").to_netcdf(tmp_path / "c.nc", engine="h5netcdf")
    with says("c.nc' is not a trajectory", got="JSONDecodeError", wanted="netCDF"):
        nr.load(tmp_path / "c.nc")


def test_a_damaged_file_is_refused(tmp_path):
    """Whichever byte is changed."""
    run = single(sample_weight=np.ones(5) / 5, steps=np.arange(4))
    path = run.save(tmp_path / "run.nc")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    value = whole.index(run.final["W1"].tobytes())
    for place in (value, -1, -40, -52, *rng.integers(0, len(whole), 40)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with says("is not a trajectory, or it is damaged", got="checksum", wanted="netCDF"):
            nr.load(path)
    path.write_bytes(whole)
    assert_same(nr.load(path), run)
    with xarray.open_dataset(path, engine="h5netcdf") as table:  # others can read it
        np.testing.assert_array_equal(table["loss"], run.loss)


def test_where_it_came_from_is_saved(tmp_path):
    weights = np.array([0.2, 0.3, 0.5])
    run = nr.Trajectory(
        [0, 1],
        [1.0, 0.5],
        steps=[0, 10],
        sample_weight=weights,
        settings={"clock": "approximate flow", "data": "abc"},
        source=Doubling(),
    )
    again = nr.load(run.save(tmp_path / "run.nc"))
    assert again.steps.tolist() == [0, 10] and again.steps.dtype.kind == "i"
    np.testing.assert_array_equal(again.sample_weight, weights)
    assert again.settings == run.settings and again.clock == "approximate flow"
    assert again.source is None
    assert run.to_xarray()["steps"].dims == ("time",)


@dataclass(frozen=True)
class Scaled(nr.Network):
    """Outputs of a chain, multiplied by a number."""

    factor: float

    def responses(self, weights, data):
        raise NotImplementedError

    def describe(self):
        return {"sizes": list(self.arch.sizes.values()), "factor": self.factor}

    @classmethod
    def from_description(cls, description):
        return cls(nr.Architecture.chain(*description["sizes"]), description["factor"])


@dataclass(frozen=True)
class Slopes(nr.Network):
    """A network with parameters that JSON can hold."""

    slopes: tuple[float, ...]

    def responses(self, weights, data):
        raise NotImplementedError


@dataclass(frozen=True)
class Silent(nr.Network):
    """A network with a parameter that JSON cannot hold."""

    function: object

    def responses(self, weights, data):
        raise NotImplementedError


def test_a_network_of_ones_own_comes_back_or_is_said_not_to(tmp_path, monkeypatch):
    arch = nr.Architecture.chain(2, 3, 1)
    path = single(net=Scaled(arch, 2.5)).save(tmp_path / "run.nc")
    again = nr.load(path)
    assert type(again.net) is Scaled and again.net == Scaled(arch, 2.5)
    monkeypatch.delitem(sys.modules, "tests.test_trajectory")
    with pytest.warns(UserWarning, match=r"'tests.test_trajectory:Scaled', is not restored"):
        assert nr.load(path).net is None
    assert "tests.test_trajectory" not in sys.modules, "no code that a file names is imported"
    monkeypatch.undo()
    plain = Slopes(arch, (0.5, 1.0))
    assert nr.load(single(net=plain).save(tmp_path / "plain.nc")).net == plain
    path = single(net=Silent(arch, len)).save(tmp_path / "silent.nc")
    with pytest.warns(UserWarning, match=r"needs describe\(\)"):
        assert nr.load(path).net is None


def test_half_precision_is_saved_too(tmp_path):
    net, data = nr.GDLN(nr.Architecture.chain(1, 2, 1)), nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    start = net.init(0, scale=0.5, dtype=jnp.bfloat16)
    run = nr.train(net, start, data, learning_rate=0.1, steps=2, record={"weights": True})
    again = nr.load(run.save(tmp_path / "run.nc"))
    assert again.final["W1"].dtype == run.final["W1"].dtype == jnp.bfloat16
    assert (again.final["W1"] == run.final["W1"]).all()
    assert again.values["weights"]["W2"].dtype == jnp.bfloat16


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    run = single()
    with says("cannot write to the folder", got="No such file", wanted="exists", fix="make the"):
        run.save(tmp_path / "missing" / "run.nc")
    (tmp_path / "file").touch()
    with says("cannot write to the folder", got="Not a directory", wanted="folder"):
        run.save(tmp_path / "file" / "run.nc")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
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
    sigmoid = lambda t: 1 / (1 + np.exp(t - 15))
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
    assert nr.compare(*runs).outputs == pytest.approx(wanted, rel=1e-12), "runs know their weights"
    equal = nr.compare(*runs, sample_weight=[1, 1]).outputs
    assert equal != pytest.approx(wanted, rel=1e-3)
    with says("sample weights", got="3 weights", wanted="each of the 2", fix="data.sample_weight"):
        nr.compare(*runs, sample_weight=[1, 1, 1])


def test_compare_reads_the_sample_weights_of_the_runs():
    def run(y, weight):
        outputs = {"y": np.asarray(y, float)[None, :, None] * np.ones((2, 1, 1))}
        return nr.Trajectory([0, 1], [0.5, 0.5], values={"outputs": outputs}, sample_weight=weight)

    weight = [0.25, 0.75]
    near, far = run([0, 0], weight), run([0, 2], weight)
    wanted = np.sqrt(0.75 * 4)  # √(2 L(0)) = 1
    assert nr.compare(near, far).outputs == pytest.approx(wanted, rel=1e-14)
    assert nr.compare(near, run([0, 2], None)).outputs == pytest.approx(wanted, rel=1e-14)
    assert nr.compare(run([0, 0], None), far).outputs == pytest.approx(wanted, rel=1e-14)
    equal = nr.compare(near, far, sample_weight=[1, 1])
    assert equal.outputs == pytest.approx(np.sqrt(0.5 * 4), rel=1e-14)


def test_compare_uses_the_outputs_of_a_theory():
    run = nr.Trajectory([0, 2], [2.0, 2.0], values={"outputs": {"y": np.zeros((2, 3, 1))}})
    theory = nr.Trajectory([0, 1, 2], [2.0, 2.0, 2.0], source=Doubling())
    assert nr.compare(run, theory).outputs == pytest.approx(2 / 2, rel=1e-14)  # mean of 2t over 2


def test_compare_refuses_other_clocks_and_losses():
    def run(**settings):
        return nr.Trajectory([0, 1], [1.0, 0.5], settings=settings)

    with says("different clocks", got="'flow', the other's 'steps'", wanted="of one kind"):
        nr.compare(run(), run(clock="steps"))
    with says("different clocks", got="'steps', the other's 'approximate flow'", wanted="kind"):
        nr.compare(run(clock="steps"), run(clock="approximate flow"))
    assert nr.compare(run(clock="steps"), run(clock="steps")).mean == 0
    about = nr.compare(run(), run(clock="approximate flow"))
    assert str(about) == "mean 0.00 %, max 0.00 % of the initial loss; time is approximate"
    with says("different losses", got="'squared' and 'cross_entropy'", wanted="one loss"):
        nr.compare(run(), run(loss="cross_entropy"))
    assert nr.compare(run(loss="squared"), run()).mean == 0


def test_compare_says_where_the_data_differ():
    def run(digest, samples=3):
        values = {"outputs": {"y": np.zeros((2, samples, 1))}}
        return nr.Trajectory([0, 1], [1.0, 0.5], values=values, settings={"data": digest})

    assert nr.compare(run("a"), run("a")).notes == ()
    assert str(nr.compare(run("a"), run("b"))).endswith("; trained on different data")
    assert nr.compare(run("a"), nr.Trajectory([0, 1], [1.0, 0.5])).notes == ()
    with says("different numbers of samples", got="3 and 4", wanted="same samples"):
        nr.compare(run("a"), run("b", 4))


def test_compare_tells_other_gates_from_other_data():
    data, arch = nr.tasks.xor(), nr.Architecture.chain(2, 4, 1)
    gates = [{"h": np.eye(4)[k]} for k in range(2)]
    weights = nr.GDLN(arch).init(0)
    first, second = (
        nr.train(nr.GDLN(arch), weights, data.gated(g), learning_rate=0.1, steps=2) for g in gates
    )
    assert nr.compare(first, first).notes == ()
    assert nr.compare(first, second).notes == ("with different gates",)
    relu = nr.train(nr.ReLUNetwork(arch), weights, data, learning_rate=0.1, steps=2)
    assert nr.compare(relu, first).notes == ()  # a ReLU network has its own gates
    half = data.take([0, 1, 1, 0]).gated(gates[0])
    other = nr.train(nr.GDLN(arch), weights, half, learning_rate=0.1, steps=2)
    assert nr.compare(first, other).notes == ("trained on different data",)
    digest = data.gated(gates[0]).digest()
    assert len(digest) == 32 and digest[:16] == data.digest()[:16] != digest[16:]


def test_outputs_of_other_losses_are_compared_in_units_of_how_far_they_moved():
    o = np.array([[[0.0, 0.0], [0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]])  # 2 moments, 2 samples

    def run(outputs, loss):
        values = {"outputs": {"y": outputs}}
        return nr.Trajectory([0, 1], [0.7, 0.5], values=values, settings={"loss": loss})

    found = nr.compare(run(o, "cross_entropy"), run(o + 2.0, "cross_entropy"))
    assert found.outputs == pytest.approx(np.sqrt(8) / np.sqrt((25 + 1) / 2))
    assert "outputs 78.45 % of how far they moved" in str(found) and "moved" in found.unit
    plain = nr.compare(run(o, "squared"), run(o + 2.0, "squared"))
    assert plain.outputs == pytest.approx(np.sqrt(8) / np.sqrt(1.4)) and "error" in plain.unit
    still = run(0 * o, "cross_entropy")
    assert nr.compare(still, run(o, "cross_entropy")).outputs is None


def test_the_shift_is_looked_for_only_when_asked_for(monkeypatch):
    def refuse(*_):
        raise AssertionError("the shift was computed")

    a, b = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0]), nr.Trajectory([0, 1, 2], [1.0, 0.6, 0.1])
    found = nr.compare(a, b)
    monkeypatch.setattr(comparing, "_best_shift", refuse)
    assert nr.compare(a, b) == found and str(found) and repr(found)
    with pytest.raises(AssertionError):
        _ = found.shift


def test_outputs_are_compared_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    runs = [
        nr.Trajectory(np.linspace(0, 1, n), np.ones(n), values={"outputs": {"y": v}})
        for n in (7, 11)
        for v in [rng.normal(size=(n, 3, 2))]
    ]
    whole = nr.compare(*runs).outputs
    monkeypatch.setattr(comparing, "GRID_PIECE", 20)
    assert nr.compare(*runs).outputs == pytest.approx(whole, rel=1e-14)


def test_compare_needs_single_overlapping_runs_with_a_loss():
    a = nr.Trajectory([0, 1], [1.0, 0.5])
    with says("must be a single run", got="'delta', 'seed'", wanted="", fix="run.isel(seed=0)"):
        nr.compare(a, ensemble())
    with says("must be a single run", got="an ensemble", wanted="without axes"):
        nr.compare(ensemble(), a)
    with says("no time in common", got="[0, 1] and [1, 2]", wanted="overlap"):
        nr.compare(a, nr.Trajectory([1, 2], [1.0, 0.5]))
    with says("the reference starts without loss", got="0.0", wanted="positive initial loss"):
        nr.compare(nr.Trajectory([0, 1], [0.0, 0.5]), a)


# ---- parts --------------------------------------------------------------------------------------


def test_isel_picks_one_run(tmp_path):
    many = ensemble()
    one = many.isel(delta=1, seed=np.int64(2))
    assert one.axes == {}
    np.testing.assert_array_equal(one.loss, many.loss[1, 2])
    np.testing.assert_array_equal(one.values["outputs"]["y"], many.values["outputs"]["y"][1, 2])
    np.testing.assert_array_equal(one.final["W1"], many.final["W1"][1, 2])
    assert one.settings["at"] == {"delta": 0.8, "seed": 2}
    assert one.settings["key"] == [0, 7]
    assert one.net == many.net
    np.testing.assert_array_equal(many.isel(seed=-2).loss, many.loss[:, 1])
    assert_same(nr.load(one.save(tmp_path / "one.nc")), one)
    with says("no axis 'width'", got="'width'", wanted="'delta', 'seed', 'time'"):
        many.isel(width=0)
    with says("axis 'seed' has no member 3", got="3", wanted="from 0 to 2"):
        many.isel(seed=3)
    with says("axis 'seed' cannot be indexed like this", got="0.5", wanted="an integer, a slice"):
        many.isel(seed=0.5)


@pytest.mark.parametrize(
    "where",
    [
        {"delta": 1, "seed": 2},
        {"delta": [1, 0], "seed": [2, 0]},
        {"delta": slice(0, 1), "seed": [1]},
        {"seed": slice(None, None, 2)},
        {"delta": 0, "time": [1]},
        {"time": slice(1, None)},
    ],
)
def test_selecting_is_xarrays(where):
    many, table = ensemble(), ensemble().to_xarray()
    part, wanted = many.isel(**where), table.isel(where)
    values = {a: table[a].values[i] for a, i in where.items() if not isinstance(i, slice)}
    for found in (part, many.sel(**values) if len(values) == len(where) else part):
        assert list(found.axes) == [d for d in wanted["loss"].dims if d != "time"]
        for name in ("loss", "outputs.y", "final.W1"):
            np.testing.assert_array_equal(found.to_xarray()[name].values, wanted[name].values)
        for axis, coordinates in found.axes.items():
            np.testing.assert_array_equal(coordinates, wanted[axis].values)


def test_sel_by_coordinate():
    many = ensemble()
    np.testing.assert_array_equal(many.sel(delta=0.1 + 0.1, seed=1).loss, many.loss[0, 1])
    np.testing.assert_array_equal(many.sel(delta=0.7, method="nearest").loss, many.loss[1])
    np.testing.assert_array_equal(many.sel(delta=slice(0.2, 0.7)).loss, many.loss[:1])
    np.testing.assert_array_equal(many.sel(seed=slice(1, 2)).loss, many.loss[:, 1:])
    with says("axis 'delta' has no 0.7", got="0.7", wanted="one of 0.2, 0.8", fix="nearest"):
        many.sel(delta=0.7)
    with says("axis 'seed' has no 'a'", got="'a'", wanted="0, 1, 2"):
        many.sel(seed="a")
    with says("unknown method", got="'ffill'", wanted="'nearest'"):
        many.sel(seed=0, method="ffill")
    named = nr.Trajectory([0, 1], [[1.0, 0.5], [2.0, 1.0]], axes={"gating": ["xor", "linear"]})
    assert named.sel(gating="linear").loss[0] == 2


def test_moments_are_picked_in_order():
    run = single(steps=[0, 5, 15, 40], sample_weight=np.ones(5) / 5)
    part = run.sel(time=[0.6, 1.4], method="nearest")
    assert part.time.tolist() == [0.5, 1.5] and part.steps.tolist() == [5, 15]
    assert part.final == {}, "the weights at t = 1.5 were not recorded"
    np.testing.assert_array_equal(part.sample_weight, run.sample_weight)
    assert set(run.isel(time=-1).final) == {"W1", "W2"}
    assert run.isel(time=2).time.tolist() == [1.5]
    path = np.arange(12.0).reshape(2, 2, 3, 1)
    many = nr.Trajectory(
        [0, 1],
        np.ones((2, 2)),
        values={"weights": {"W": path}},
        final={"W": path[:, -1]},
        axes={"seed": [0, 1]},
    )
    np.testing.assert_array_equal(many.isel(seed=1, time=[0]).final["W"], path[1, 0])
    with says("in order", got="[1, 0]", wanted="each later"):
        run.isel(time=[1, 0])


def rates(**settings):
    rates, steps = [0.1, 0.2], np.array([0, 10, 20])
    return nr.Trajectory(
        steps,
        [np.exp(-rate * steps) for rate in rates],
        axes={"learning_rate": rates},
        settings={"clock": "steps", "learning_rate": rates} | settings,
    )


def test_a_member_of_an_ensemble_over_rates_has_its_own_time():
    many = rates()
    for i, rate in enumerate(many.axes["learning_rate"]):
        one = many.isel(learning_rate=i)
        assert one.time.tolist() == pytest.approx([0, 10 * rate, 20 * rate])
        assert one.clock == "flow" and one.steps.tolist() == [0, 10, 20]
        assert one.settings["learning_rate"] == rate
        exact = nr.Trajectory(one.time, np.exp(-one.time))
        assert nr.compare(exact, one).mean < 1e-15
    assert many.isel(learning_rate=[1]).clock == "steps"
    heavy = rates(optimizer="momentum", momentum=0.9).sel(learning_rate=0.2)
    assert heavy.time.tolist() == pytest.approx([0, 20, 40]) and heavy.clock == "approximate flow"
    assert rates(optimizer="other").isel(learning_rate=0).clock == "steps"


def test_settings_that_differ_along_an_axis_are_picked():
    many = nr.Trajectory(
        [0, 1],
        np.ones((2, 3, 2)),
        axes={"delta": [0.0, 1.0], "seed": [0, 1, 2]},
        sample_weight=np.arange(12.0).reshape(2, 3, 2),
        settings={"data": {"delta": ["a", "b"]}, "method": "gradient descent"},
    )
    assert many.isel(delta=1).settings["data"] == "b"
    assert many.isel(delta=[1]).settings["data"] == {"delta": ["b"]}
    assert many.isel(seed=1).settings["data"] == {"delta": ["a", "b"]}
    assert many.isel(delta=1, seed=2).sample_weight.tolist() == [10, 11]


# ---- side by side -------------------------------------------------------------------------------


def test_concat_along_an_axis_undoes_isel(tmp_path):
    many = ensemble()
    for axis in many.axes:
        parts = [many.isel(**{axis: i}) for i in range(len(many.axes[axis]))]
        whole = nr.concat(parts, axis=(axis, many.axes[axis]))
        again = nr.concat([many.isel(**{axis: [0]}), many.isel(**{axis: slice(1, None)})], axis)
        order = list(many.axes)
        np.testing.assert_array_equal(again.loss, many.loss)
        np.testing.assert_array_equal(again.axes[axis], many.axes[axis])
        np.testing.assert_array_equal(np.moveaxis(whole.loss, 0, order.index(axis)), many.loss)
        assert next(iter(whole.axes)) == axis and whole.net == many.net
        assert set(whole.final) == {"W1"} and set(whole.values) == {"outputs"}
        loaded = nr.load(whole.save(tmp_path / "run.nc"))
        assert loaded.settings == whole.settings


def test_concat_keeps_what_differs_along_the_axis():
    def run(rate, digest, weight):
        settings = {"learning_rate": rate, "data": digest, "method": "gradient descent"}
        steps = np.arange(3)
        return nr.Trajectory(
            rate * steps, np.ones(3), steps=steps, sample_weight=weight, settings=settings
        )

    a, b = run(0.1, "a", None), run(0.2, "b", [0.25, 0.75])
    both = nr.concat([a, b], axis=("learning_rate", [0.1, 0.2]))
    assert both.clock == "steps" and both.time.tolist() == [0, 1, 2]
    assert both.settings["learning_rate"] == [0.1, 0.2]
    assert both.settings["data"] == {"learning_rate": ["a", "b"]}
    for part, rate in ((a, 0.1), (b, 0.2)):
        again = both.sel(learning_rate=rate)
        np.testing.assert_allclose(again.time, part.time)
        assert again.clock == "flow" and again.settings["data"] == part.settings["data"]
    assert both.sample_weight.tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert both.isel(learning_rate=1).sample_weight.tolist() == [0.25, 0.75]
    with says("recorded at other times", got="to 0.4", wanted="to 0.2"):
        nr.concat([a, b], axis="width")
    with says("do not fit the parts", got="3 coordinates", wanted="1, one for each"):
        nr.concat([a], axis=("width", [1, 2, 3]))
    with says("same axes", got="'seed'", wanted="one or more"):
        nr.concat([a, ensemble()], axis="width")
    with says("different clocks", got="flow, steps", wanted="one clock"):
        nr.concat([a, nr.Trajectory(a.time, a.loss, settings={"clock": "steps"})], axis="width")
    with says("different coordinates along axis 'delta'", got="0.2", wanted="same coordinates"):
        nr.concat([ensemble().isel(delta=[0]), ensemble().isel(delta=[1])], axis="seed")


def test_join_counts_steps_on_and_refuses_other_clocks():
    run = nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10], sample_weight=[1.0])
    assert nr.join(run, run).steps.tolist() == [0, 10, 20]
    assert nr.join(run, run).sample_weight.tolist() == [1.0]
    assert nr.join(run, nr.Trajectory([0, 1], [1.0, 0.5])).steps is None
    with says("different clocks", got="flow, steps", wanted="one clock"):
        nr.join(run, nr.Trajectory([0, 1], [1.0, 0.5], settings={"clock": "steps"}))


# ---- weights from elsewhere, and how it is shown ------------------------------------------------


def test_weights_from_elsewhere():
    data = nr.Dataset({"x": [[1.0, 0.0], [0.0, 1.0]]}, {"y": [[1.0], [2.0]]}, sample_weight=[1, 3])
    net = nr.GDLN(nr.Architecture.chain(2, 3, 1))
    rng = np.random.default_rng(0)
    weights = {"W2": rng.normal(size=(4, 1, 3)), "W1": rng.normal(size=(4, 3, 2))}
    run = nr.Trajectory.from_weights(net, weights, data, [0, 1, 2, 5])
    y = weights["W2"] @ weights["W1"]
    np.testing.assert_allclose(run.outputs["y"][..., 0], y[:, 0], rtol=1e-12)
    wanted = ((y[:, 0] - [1.0, 2.0]) ** 2) @ [0.25, 0.75] / 2
    np.testing.assert_allclose(run.loss, wanted, rtol=1e-12)
    np.testing.assert_array_equal(run.final["W1"], weights["W1"][-1])
    assert run.settings["method"] == "given weights" and run.settings["data"] == data.digest()
    assert run.sample_weight.tolist() == [0.25, 0.75] and run.net == net
    with says("the times must increase", got="shape (4,)", wanted="increasing"):
        nr.Trajectory.from_weights(net, weights, data, [0, 1, 1, 5])
    with says("the weights do not fit the times", got="(4, 1, 3)", wanted="T = 2"):
        nr.Trajectory.from_weights(net, weights, data, [0, 1])
    with says("weights lack edge 'W1'", got="'W2'", wanted="'W1', 'W2'"):
        nr.Trajectory.from_weights(net, {"W2": weights["W2"]}, data, [0, 1, 2, 5])


def test_it_shows_itself_in_one_line_and_as_a_table():
    assert repr(single()) == (
        "Trajectory(method: gradient descent, time: 0 … 4 (4 moments), loss: 1 → 0.125, "
        "values: sv, norm, on, outputs, deep)"
    )
    many = repr(ensemble())
    assert "axes: delta (2), seed (3)" in many and "net: ReLUNetwork" in many
    assert "steps" in repr(rates())
    page = nr.Trajectory([0, 1], [1.0, 0.5], settings={"method": "<b>"})._repr_html_()
    assert page.startswith("<table>") and "&lt;b&gt;" in page
    jax.jit(lambda run: repr(run) and run.loss)(single())


def test_a_comparison_says_where_it_ends_early():
    a = nr.Trajectory([0, 1, 2], [1.0, 0.5, 0.0])
    short = nr.compare(a, nr.Trajectory([0, 1], [1.0, 0.5]))
    assert not short.whole and str(short).endswith("of the initial loss, up to t = 1 alone")
    assert nr.compare(nr.Trajectory([0, 1], [1.0, 0.5]), a).whole


def test_isel_takes_arrays_and_masks():
    many = nr.Trajectory([0, 1, 2], np.arange(12.0).reshape(4, 3), axes={"seed": np.arange(4)})
    np.testing.assert_array_equal(many.isel(seed=np.array([2, 0])).loss, many.loss[[2, 0]])
    np.testing.assert_array_equal(many.isel(seed=many.loss[:, -1] > 5).axes["seed"], [2, 3])
    assert many.isel(seed=np.int64(1)).axes == {}
    np.testing.assert_array_equal(many.isel(time=np.array([True, False, True])).time, [0, 2])


def test_outputs_are_compared_where_a_schedule_starts_at_zero():
    """A rate of 0 at first: two recorded moments at one time."""
    run = nr.Trajectory([0, 0, 1], [1.0, 1.0, 0.5], values={"outputs": {"y": np.zeros((3, 2, 1))}})
    other = nr.Trajectory([0, 1], [1.0, 0.5], values={"outputs": {"y": np.ones((2, 2, 1))}})
    assert nr.compare(run, other).outputs == pytest.approx(1 / np.sqrt(2))


def test_the_time_at_which_a_loss_falls_to_a_level():
    from neuralrace.trajectory import crossing_time

    time, rate = np.linspace(0, 8, 4001), np.array([0.5, 1.0, 2.0])
    loss = np.exp(-rate[:, None] * time)
    np.testing.assert_allclose(crossing_time(time, loss, 0.1), np.log(10) / rate, rtol=1e-5)
    assert crossing_time(time, loss[0], 2.0) == 0
    steps = np.array([[1.0, 0.5, 0.1, 0.0, 0.0], [1.0, 0.9, 0.8, 0.7, 0.6]])
    np.testing.assert_allclose(crossing_time(np.arange(5.0), steps, 0.2), [1.75, np.nan])
    assert np.isnan(crossing_time(time, np.append(loss[0, :-1], np.nan), 1e-3))
    rise = crossing_time(time, 1 - loss, 0.9, rising=True)
    np.testing.assert_allclose(rise, np.log(10) / rate, rtol=1e-5)
    with says("do not fit the times", got="(2,)", wanted="(…, T)", fix="curves.T"):
        crossing_time([0, 1], np.zeros((2, 3)), 0.5)
