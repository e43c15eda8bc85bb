"""Runs that are cut off and go on end as if they had not been."""

import functools
import json
import threading
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import neuralrace as nr
from neuralrace.dynamics import checkpoint, fingerprint, setup
from tests.test_errors import says

NET = nr.ReLUNetwork((2, 8, 1))
DATA = nr.tasks.xor()
WEIGHTS = NET.init(jax.random.key(0), 0.3)


def norm(w):
    return jnp.sum(w["W1"] ** 2)


def other_norm(w):
    return jnp.sum(w["W1"] ** 4)


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
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


class KilledError(Exception):
    pass


def killed_after(monkeypatch, writes):
    """Let only so many files be written: the next is begun and never moved into place."""
    count = iter(range(writes))
    whole = checkpoint._write

    def write(path, content):
        if next(count, None) is None:
            path.with_name(f".{path.name}.part").write_bytes(content[: len(content) // 2])
            raise KilledError
        whole(path, content)

    monkeypatch.setattr(checkpoint, "_write", write)


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
    monkeypatch.setattr(checkpoint, "_write", None)
    assert_identical(run(tmp_path), whole)


def test_only_two_states_are_kept_and_one_part_for_every_so_many_steps(tmp_path):
    run(tmp_path / "a", record_every=1)
    assert len(list((tmp_path / "a").glob("state-*"))) == checkpoint.KEPT
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


def test_a_function_is_known_by_its_instructions_in_any_process():
    chosen = compile("lambda w: w in {'a', 'b', 'c'}", "", "eval").co_consts[0]
    turned = chosen.replace(
        co_consts=tuple(
            frozenset(sorted(c, reverse=True)) if isinstance(c, frozenset) else c
            for c in chosen.co_consts
        )
    )
    known = checkpoint.fingerprint
    assert known(chosen) == known(turned)
    assert known(jax.jit(norm)) == known(norm)
    assert known(norm) != known(other_norm)
    assert known(functools.partial(norm, 1)) != known(functools.partial(norm, 2))


SCALE = 1.0
LIMITS = {"a": 1.0}


class Probe:
    def __init__(self, scale):
        self.scale = scale

    def size(self, w):
        return self.scale * norm(w)


def inner(w):
    return (lambda v: LIMITS["a"] * v)(norm(w))


def scaled(w):
    return SCALE * norm(w)


def closing_over(value):
    return lambda w: value * norm(w)


def test_a_function_is_known_by_what_it_closes_over_and_names(monkeypatch):
    known = checkpoint.fingerprint
    assert known(closing_over(2.0)) == known(closing_over(2.0))
    assert known(closing_over(2.0)) != known(closing_over(3.0))
    assert known(closing_over(np.ones(2))) != known(closing_over(np.zeros(2)))
    before = known(scaled)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert known(scaled) != before
    assert known(Probe(1.0).size) == known(Probe(1.0).size) != known(Probe(2.0).size)
    before = known(inner)
    monkeypatch.setitem(LIMITS, "a", 2.0)
    assert known(inner) != before
    assert known(optax.adam(0.1)) == known(optax.adam(0.1))
    assert known(optax.adam(0.1)) != known(optax.adam(0.2))


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


class Cubed:
    def __call__(self, w):
        return norm(w) ** 3


class Squared:
    def __call__(self, w):
        return norm(w) ** 2


def times(factor):
    def decorate(function):
        @functools.wraps(function)
        def scaled(w):
            return factor * function(w)

        return scaled

    return decorate


def total(a, b):
    return jnp.sum(a * b**2)


PROBE = Probe(1.0)


def by_global_object(w):
    return PROBE.scale * norm(w)


def by_other_module(w):
    return fake_helpers.helper(w)


fake_helpers = types.ModuleType("fake_helpers")
fake_helpers.helper = norm


def test_wrappers_are_known_by_what_they_were_given():
    known = checkpoint.fingerprint
    for one, other in (
        (jax.vmap(total, in_axes=(0, None)), jax.vmap(total, in_axes=(None, 0))),
        (jax.grad(total, 0), jax.grad(total, 1)),
        (times(2.0)(norm), times(3.0)(norm)),
        (jax.jit(jax.grad(total, 0)), jax.jit(jax.grad(total, 1))),
        (Slotted(1.0), Slotted(2.0)),
        (Cubed(), Squared()),
    ):
        assert known(one) != known(other)
    assert known(jax.vmap(total, in_axes=0)) == known(jax.vmap(total, in_axes=0))
    assert known(jax.jit(jax.grad(total, 1))) == known(jax.grad(total, 1))
    assert known(times(2.0)(norm)) == known(times(2.0)(norm))
    assert known(Slotted(1.0)) == known(Slotted(1.0)) != checkpoint.UNKNOWN


def test_a_function_is_known_by_the_objects_and_modules_it_names(monkeypatch):
    known = checkpoint.fingerprint
    before, elsewhere = known(by_global_object), known(by_other_module)
    monkeypatch.setattr(PROBE, "scale", 2.0)
    assert known(by_global_object) != before
    monkeypatch.setattr(fake_helpers, "helper", other_norm)
    assert known(by_other_module) != elsewhere
    assert checkpoint.UNKNOWN not in (before, elsewhere)


def test_what_cannot_be_read_equals_itself_alone(tmp_path):
    one, other = (closing_over(threading.Lock()) for _ in range(2))
    assert fingerprint.Known(one) == fingerprint.Known(one) != fingerprint.Known(other)
    assert checkpoint.fingerprint(one) == checkpoint.UNKNOWN

    def make():
        lock = threading.Lock()
        return {"norm": lambda w: norm(w) * (1 if lock else 0)}

    with pytest.warns(UserWarning, match="record"):
        run(tmp_path, record=make())
    with refused("record"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(tmp_path, record=make())


def test_a_network_is_known_by_its_fields():
    one, other = nr.ReLUNetwork((2, 3, 1)), nr.ReLUNetwork((2, 3, 1))
    one(one.init(jax.random.key(0)), DATA)  # which looks things up in the graph
    known = checkpoint.fingerprint
    assert known(one) == known(other) != known(nr.ReLUNetwork((2, 4, 1)))


def test_a_recorder_that_closes_over_other_values_is_another_run(tmp_path):
    run(tmp_path, record={"norm": closing_over(1.0)})
    with refused("differs in 'record'"):
        run(tmp_path, record={"norm": closing_over(2.0)})


def test_a_compressed_run_goes_on_from_the_bits_it_began_with(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "WORTHWHILE", 0.0)
    rng = np.random.default_rng(0)
    net = nr.GDLN(nr.Architecture.chain(3, 600, 2))
    data = nr.Dataset({"x": rng.normal(size=(60, 3))}, {"y": rng.normal(size=(60, 2))})
    task = {"net": net, "weights": net.init(jax.random.key(0), 0.1), "data": data}
    task["record"] = {"weights": True}
    whole = run(tmp_path / "whole", **task)
    assert whole.settings["compression"] != "none"
    with monkeypatch.context() as patch:
        killed_after(patch, 5)
        with pytest.raises(KilledError):
            run(tmp_path / "killed", **task)
    real = setup.compress
    turned = lambda *given, **more: jax.tree.map(
        lambda leaf: leaf * (1 + 1e-15), real(*given, **more)
    )
    monkeypatch.setattr(setup, "compress", turned)  # another machine's last bit
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
    assert f"going on from the last good one, {before.name}" in said
    assert_identical(again, whole)


def test_with_no_good_state_the_run_begins_anew_and_says_so(tmp_path):
    whole = run(tmp_path)
    damage(tmp_path / "record-000000")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = run(tmp_path)
    assert "no good one is left, beginning anew" in str(caught[-1].message)
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
        ({"record": {"norm": other_norm, "weights": True}}, "record"),
        ({"net": nr.ReLUNetwork((2, 8, 1), leak=0.1)}, "network"),
        ({"checkpoint_every": 20}, "checkpoint_every"),
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
    with refused("a run.json that cannot be read"):
        run(tmp_path)
    (tmp_path / "run.json").unlink()
    with refused("without the run.json"):
        run(tmp_path)


def test_the_description_can_be_read(tmp_path):
    run(tmp_path)
    described = json.loads((tmp_path / "run.json").read_text())
    assert described["learning_rate"] == 0.1
    assert "jax" in described["versions"]


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong, got in ((tmp_path / "file", "exists"), (3, "3")):
        with says(
            "checkpoint must be a folder", got=got, wanted="the path of a folder", fix="runs/first"
        ):
            run(wrong)


def test_checkpoint_every_needs_a_folder():
    got, wanted = "checkpoint_every=10, checkpoint=None", "both, or neither"
    with says("without a folder", got=got, wanted=wanted, fix="checkpoint='runs/first'"):
        run(None, checkpoint_every=10)


def test_checkpoint_every_counts_steps(tmp_path):
    with says("checkpoint_every", got="0", wanted="an integer of at least 1", fix="leave it out"):
        run(tmp_path, checkpoint_every=0)
