"""Trajectories as files."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import neuralrace as nr
from tests.test_errors import refuses
from tests.trajectories import Doubling, assert_same, ensemble, single

THIS_PACKAGE = os.environ | {"PYTHONPATH": str(Path(nr.__file__).parents[1])}
"""The environment of another process that tests these sources."""


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
nr.compare(before, before).save(f"{folder}/compared.npz")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is then an OSError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    nr.Trajectory([0, 1], [1.0, 0.5], values={"v": np.ones((2, 100_000))}).save(f"{folder}/run.nc")
except nr.NeuralRaceError as error:
    print("caught", sorted(os.listdir(folder)), nr.load(f"{folder}/run.nc").loss.tolist())
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    nr.compare(before, nr.Trajectory([0, 1], [1.0, 0.0])).save(f"{folder}/compared.npz")
except nr.NeuralRaceError as error:
    mean = nr.results.Result.load(f"{folder}/compared.npz").mean
    print("caught", sorted(os.listdir(folder)), mean)
"""


def test_a_full_disk_is_an_error_that_can_be_caught(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env=THIS_PACKAGE,
    )
    assert done.returncode == 0, done.stderr
    files = "caught ['compared.npz', 'run.nc']"
    assert done.stdout == f"{files} [1.0, 0.5]\n{files} 0.0\n"


def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with refuses("file"):
            nr.Trajectory([0, 1], [1.0, 0.5]).save(path)
    assert (tmp_path / "pipe").is_fifo()


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
        assert children["inside"].wait(timeout=600) == -signal.SIGKILL
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
    with refuses("noise.nc"):
        nr.load(noise)
    text = tmp_path / "text.nc"
    text.write_text("time, loss\n0, 1\n")
    with refuses("text.nc"):
        nr.load(text)
    with refuses("trajectory"):
        nr.load(tmp_path)
    other = tmp_path / "other.nc"
    xarray.Dataset({"loss": ("time", [1.0, 2.0])}).to_netcdf(other, engine="h5netcdf")
    with refuses("other.nc"):
        nr.load(str(other))
    half = tmp_path / "half.nc"
    half.write_bytes(single().save(tmp_path / "run.nc").read_bytes()[:3000])
    with refuses("half.nc"):
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
    with refuses("a.nc"):
        nr.load(tmp_path / "a.nc")
    first_format().drop_vars("loss").to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    with refuses("b.nc"):
        nr.load(tmp_path / "b.nc")
    first_format(net="{").to_netcdf(tmp_path / "c.nc", engine="h5netcdf")
    with refuses("c.nc"):
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
        with refuses("trajectory"):
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
    monkeypatch.delitem(sys.modules, "tests.test_trajectory_files")
    with pytest.warns(UserWarning, match=r"'tests.test_trajectory_files:Scaled', is not restored"):
        assert nr.load(path).net is None
    assert "tests.test_trajectory_files" not in sys.modules, "no code that a file names is imported"
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
    with refuses("folder"):
        run.save(tmp_path / "missing" / "run.nc")
    (tmp_path / "file").touch()
    with refuses("folder"):
        run.save(tmp_path / "file" / "run.nc")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with refuses("folder"):
        run.save(tmp_path / "run.nc")
    monkeypatch.undo()
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


def test_files_that_version_0_1_wrote():
    """Written by version 0.1.0 itself; the losses are those that it printed."""
    folder = Path(__file__).parent / "fixtures" / "v0_1"
    run = nr.load(folder / "run.nc")
    assert run.settings["versions"]["neuralrace"] == "0.1.0"
    assert run.loss.tolist() == [0.462492665641398, 0.03986420298371887, 1.7162975680809396e-05]
    assert run.net == nr.GDLN(nr.Architecture.chain(2, 3, 1))
    assert run.time.tolist() == [0.0, 2.0, 4.0] and run.clock == "flow"
    data = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})
    again = nr.Trajectory.from_weights(run.net, run.values["weights"], data, run.time)
    np.testing.assert_allclose(again.loss, run.loss, rtol=1e-12)
    np.testing.assert_allclose(again.outputs["y"], run.outputs["y"], rtol=1e-12)
    many = nr.load(folder / "ensemble.nc")
    assert many.net == nr.ReLUNetwork((2, 3, 1), leak=0.1)
    assert many.sel(scale=0.2, seed=1).loss.tolist()[0] == 0.5402610278598876
    rows = nr.Dataset({"x": np.arange(15.0).reshape(5, 3) / 15}, {"y": np.zeros((5, 2))})
    net, recorded = nr.from_recording(folder / "recording", rows)
    assert net == nr.ReLUNetwork((3, 4, 2), bias=True) and recorded.steps.tolist() == [0, 2, 4]
    expected = [0.10971347882483498, 0.10962102125649882, 0.10939372057462977]
    np.testing.assert_allclose(recorded.loss, expected, rtol=1e-12)
    assert nr.Study.load(folder / "study.toml").check().candidates
