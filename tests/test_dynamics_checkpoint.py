"""Runs that are cut off and go on end as if they had not been."""

import errno
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.dynamics import checkpoint
from tests.test_errors import refuses, says

NET = nr.ReLUNetwork((2, 8, 1))
DATA = nr.tasks.xor()
WEIGHTS = NET.init(jax.random.key(0), 0.3)


def norm(w):
    return jnp.sum(w["W1"] ** 2)


def run(folder, *, net=NET, weights=WEIGHTS, data=DATA, **changes):
    settings = {
        "learning_rate": 0.1,
        "steps": 95,
        "record_every": 7,
        "record": {"norm": norm, "weights": True},
        "checkpoint": folder,
        "checkpoint_every": None if folder is None else 10,
    }
    return nr.train(net, weights, data, **(settings | changes))


def assert_identical(one, other):
    parts = [(run.time, run.loss, dict(run.values), dict(run.final)) for run in (one, other)]
    for a, b in zip(*map(jax.tree.leaves, parts), strict=True):
        np.testing.assert_array_equal(a, b)


class KilledError(Exception):
    pass


def killed_after(monkeypatch, writes):
    """Let only so many files be written: the next is begun and never moved into place."""
    count = iter(range(writes))
    whole = checkpoint.write_whole

    def write(path, content):
        if next(count, None) is None:
            path.with_name(f".{path.name}.1.part").write_bytes(content[: len(content) // 2])
            raise KilledError
        whole(path, content)

    monkeypatch.setattr(checkpoint, "write_whole", write)


def test_checkpoints_do_not_change_a_run(tmp_path):
    plain = run(None)
    kept = run(tmp_path)
    assert_identical(plain, kept)
    np.testing.assert_array_equal(kept.time, 0.1 * np.append(np.arange(0, 95, 7), 95))


@pytest.mark.parametrize("writes", [0, 1, 2, 3, 8, 11])
def test_a_killed_run_goes_on_bit_by_bit(tmp_path, monkeypatch, writes):
    whole = run(tmp_path / "whole")
    with monkeypatch.context() as patch:
        killed_after(patch, writes)
        with pytest.raises(KilledError):
            run(tmp_path / "killed")
    assert_identical(run(tmp_path / "killed"), whole)
    assert_identical(run(tmp_path / "killed"), whole)  # ended: read, not run
    assert not list((tmp_path / "killed").glob(".*"))


def test_a_run_that_has_ended_is_only_read(tmp_path, monkeypatch):
    whole = run(tmp_path)
    monkeypatch.setattr(checkpoint, "write_whole", None)
    assert_identical(run(tmp_path), whole)


@pytest.mark.filterwarnings("ignore:float64 data")
def test_a_run_in_single_precision_goes_on(tmp_path):
    with jax.enable_x64(False):
        weights = NET.init(0, 0.3)
        first, again = (run(tmp_path, weights=weights) for _ in range(2))
    assert first.loss.dtype == np.float32
    assert_identical(first, again)


def test_only_two_states_are_kept_and_one_part_for_every_so_many_steps(tmp_path):
    run(tmp_path / "a", record_every=1)
    assert len(list((tmp_path / "a").glob("state-*"))) == 2
    assert len(list((tmp_path / "a").glob("record-*"))) == 10
    irregular = run(tmp_path / "b", record_every=1, record_at=[*range(30), 77])
    assert len(list((tmp_path / "b").glob("record-*"))) == 10
    plain = run(None, record_at=[*range(30), 77])
    assert_identical(irregular, plain)


def test_a_record_of_another_run_is_not_taken(tmp_path):
    whole = run(tmp_path / "a")
    run(tmp_path / "b", weights=NET.init(jax.random.key(1), 0.3))
    (tmp_path / "b" / "record-000000").replace(tmp_path / "a" / "record-000000")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = run(tmp_path / "a")
    assert "record-000000 is damaged" in str(caught[0].message)
    assert_identical(again, whole)


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    whole = run(None)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(nr.NeuralRaceError, match="No space left"):
            run(tmp_path / "run")
        with pytest.raises(nr.NeuralRaceError, match="No space left"):
            whole.save(tmp_path / "run.nc")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert_identical(run(tmp_path / "run"), whole)


def test_a_compressed_run_goes_on(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    net = nr.GDLN(nr.Architecture.chain(3, 60, 2))
    data = nr.Dataset({"x": rng.normal(size=(60, 3))}, {"y": rng.normal(size=(60, 2))})
    task = {"net": net, "weights": net.init(jax.random.key(0), 0.1), "data": data}
    task |= {"record": {"weights": True}, "compress": True}
    whole = run(tmp_path / "whole", **task)
    assert whole.settings["compression"] != "none"
    with monkeypatch.context() as patch:
        killed_after(patch, 5)
        with pytest.raises(KilledError):
            run(tmp_path / "killed", **task)
    assert_identical(run(tmp_path / "killed", **task), whole)


def test_a_diverged_run_is_remembered_as_such(tmp_path):
    ends = []
    for folder in (None, tmp_path, tmp_path):
        with pytest.raises(nr.StoppedError) as caught:
            run(folder, learning_rate=60.0)
        ends.append(caught.value.trajectory)
    for end in ends[1:]:
        np.testing.assert_array_equal(end.loss, ends[0].loss)


# ---- damage ------------------------------------------------------------------------------------


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def test_a_damaged_state_gives_way_to_the_last_good_one(tmp_path):
    whole = run(tmp_path)
    last, before = sorted(tmp_path.glob("state-*"), reverse=True)
    damage(last)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = run(tmp_path)
    said = " ".join(str(w.message) for w in caught)
    assert f"{last.name} is damaged" in said
    assert before.name not in said
    assert_identical(again, whole)


def test_with_no_good_state_the_run_begins_anew_and_says_so(tmp_path):
    whole = run(tmp_path)
    damage(tmp_path / "record-000000")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = run(tmp_path)
    assert "record-000000 is damaged" in str(caught[-1].message)
    assert_identical(again, whole)


# ---- refused -----------------------------------------------------------------------------------


def refused(got):
    wanted, fix = "the same network, weights, data and settings", "another folder, or delete this"
    return says("are not of this run", got=got, wanted=wanted, fix=fix)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"learning_rate": 0.2}, "learning_rate"),
        ({"steps": 90}, "recording_steps', 'steps"),
        ({"weights": NET.init(jax.random.key(1), 0.3)}, "weights"),
        ({}, None),
        ({"record": {"other": norm, "weights": True}}, "record"),
        ({"net": nr.ReLUNetwork((2, 8, 1), leak=0.1)}, "network"),
        ({"checkpoint_every": 20}, "every"),
    ],
)
def test_the_checkpoints_of_another_run_are_refused(tmp_path, changes, named):
    run(tmp_path)
    if named is None:
        changes = {"data": nr.Dataset(DATA.x, {"y": 2 * np.asarray(DATA.y["y"])})}
        named = "data"
    with refused(f"differs in '{named}'"):
        run(tmp_path, **changes)


def test_a_folder_without_its_description_is_refused(tmp_path):
    run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with refused("run.json, which cannot be read"):
        run(tmp_path)
    (tmp_path / "run.json").unlink()
    with refused("run.json, which cannot be read"):
        run(tmp_path)


def test_the_description_can_be_read(tmp_path):
    run(tmp_path)
    described = json.loads((tmp_path / "run.json").read_text())
    assert described["learning_rate"] == 0.1
    assert "jax" in described["versions"]


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", 3):
        with refuses("checkpoint"):
            run(wrong)


def test_checkpoint_every_needs_a_folder():
    got, wanted = "checkpoint_every=10, checkpoint=None", "both, or neither"
    with says("without a folder", got=got, wanted=wanted, fix="checkpoint='runs/first'"):
        run(None, checkpoint_every=10)


def test_checkpoint_every_counts_steps(tmp_path):
    with refuses("checkpoint_every"):
        run(tmp_path, checkpoint_every=0)
