"""A small seeded sample of every claim of `make evidence`."""

import json

import pytest

from evidence import Claim, Tables, Verdict, claims
from evidence import __main__ as command
from evidence.own import documentation, kept
from tests.test_errors import says

SMALL = [pytest.param(c, id=c.name) for c in claims("own") if not c.slow]


@pytest.mark.slow
@pytest.mark.parametrize("claim", SMALL)
def test_claim(claim: Claim):
    entry = claim.measure(Tables(quick=True))
    found, target = entry.found[0], claim.measures[0].target
    assert claim.timing or entry.verdict is Verdict.HOLDS, f"{found.text}, target {target}"


def test_claims_about_kept_gates_can_fail(monkeypatch):
    """None of two tasks within 15 %; and nothing close to the networks is not a success."""
    row = {"gating": "aligned", "relu": 10.0, "time": 20.0, "share": 1.0, "loss": 0.5}
    never = row | {"task": "parity", "relu": None, "time": None, "expected": float("inf")}
    found = [row | {"task": task, "kept": False, "expected": 20.0} for task in "ab"]
    other = found[0] | {"gating": "other"}
    monkeypatch.setattr(kept, "rows", lambda full: (*found, never | {"kept": False}, other))
    assert kept.aligned_half_times(False).text.startswith("0 of 2")
    for claim in (
        kept.aligned_half_times, kept.kept_are_right, kept.right_are_kept, kept.sentences_are_right
    ):  # fmt: skip
        assert not claim(False).met
    right = [each | {"time": 10.0} for each in found]
    monkeypatch.setattr(kept, "rows", lambda full: (*right, never | {"kept": False}))
    assert kept.aligned_half_times(False).met


# ---- trials -------------------------------------------------------------------------------------

GOOD = {"who": "theorist", "minutes": 12.5, "right": True}


def trials(folder, told, monkeypatch):
    path = folder / "trials.json"
    path.write_text(json.dumps(told))
    monkeypatch.setattr(documentation, "TRIALS", path)
    return documentation.trials(True)


def test_trials_that_are_not_there_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(documentation, "TRIALS", tmp_path / "trials.json")
    (claim,) = claims("documentation/trials")
    entry = command.measured(claim, Tables())
    assert entry.verdict is Verdict.FAILS
    assert entry.found[0].text == "failed: NeuralRaceError: trials.json is not there."


@pytest.mark.parametrize(
    ("entry", "got"),
    [
        (GOOD | {"who": ""}, "''"),
        (GOOD | {"minutes": "12"}, "'12'"),
        (GOOD | {"minutes": True}, "True"),
        (GOOD | {"minutes": -1}, "-1"),
        (GOOD | {"right": "yes"}, "'yes'"),
        (GOOD | {"right": 1}, "1"),
        ({"who": "theorist"}, "None"),
        ("theorist", "None"),
    ],
)
def test_a_trial_that_cannot_be_read_is_told(tmp_path, monkeypatch, entry, got):
    with says("trial 1 of trials.json", got=got, wanted="a", fix="correct it in trials.json"):
        trials(tmp_path, [GOOD, entry], monkeypatch)
    with says("trials.json has no trials", got="[]", wanted="a list", fix="one entry"):
        trials(tmp_path, [], monkeypatch)


def test_trials_are_met_where_three_were_right_in_time(tmp_path, monkeypatch):
    three = [GOOD | {"who": who} for who in ("theorist", "neuroscientist", "teacher")]
    assert trials(tmp_path, three, monkeypatch).met
    assert not trials(tmp_path, three[:2], monkeypatch).met
    assert not trials(tmp_path, [*three, GOOD | {"right": False}], monkeypatch).met
    assert not trials(tmp_path, [*three, GOOD | {"minutes": 31}], monkeypatch).met
