"""The explorer against the library: equal numbers for random valid states, and no use of texts."""

import jax
import numpy as np
import pytest

from evidence.own.explore_states import (
    ACCURATE,
    KINDS,
    apart,
    is_told,
    nearly,
    random_state,
)
from neuralrace.explorer import ask
from neuralrace.results import Sentence


@pytest.fixture(autouse=True)
def accurate():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("seed", [2, 3, 5, 6, 7, 8, 11])
def test_what_is_shown_is_what_the_library_returns(seed):
    assert apart(random_state(np.random.default_rng(seed))) <= ACCURATE


def test_the_random_states_have_what_they_should():
    states = [random_state(np.random.default_rng(seed)) for seed in range(200)]
    has = lambda section, key: sum(key in state[section] for state in states)
    assert has("network", "leak") > 20 and has("network", "bias") > 20
    assert has("training", "until") > 20 and has("contest", "start") > 20
    assert has("task", "file") > 20
    assert len({state["network"]["scale"] for state in states}) == 200
    ways = {way for state in states for gating in state["gatings"].values() for way in gating}
    assert {"builtin", "each", "masks"} <= ways


@pytest.mark.parametrize("seed", range(6))
def test_a_state_that_is_nearly_valid_has_a_result_or_an_error_of_its_key(seed):
    random = np.random.default_rng(seed)
    kind, state = KINDS[int(random.integers(len(KINDS)))], nearly(random)
    kind = "predict" if kind in ("kept", "equations") else kind
    answer = ask(kind, state)
    errors = [answer["error"]] if "error" in answer else answer["result"].get("failed", {}).values()
    assert all(map(is_told, errors))


# ---- texts --------------------------------------------------------------------------------------

TEXTS = ("sentences", "sentence", "detail", "start", "lateness", "reduction")
"""What is text alone in answers."""


def without_texts(value):
    if isinstance(value, dict):
        return {k: without_texts(v) for k, v in value.items() if k not in TEXTS}
    return [without_texts(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", ["predict", "kept", "phases", "train"])
def test_no_answer_depends_on_a_sentence(kind, monkeypatch):
    state = random_state(np.random.default_rng(4))
    state |= {
        "task": {"builtin": "extended_xor", "parameters": {"delta": 0.5}},
        "network": {"widths": 16, "scale": 1e-3},
        "gatings": {
            "linear": {"builtin": "linear_pathways", "parameters": {"total": 16}},
            "xor": {"each": "sample", "hidden": 4},
        },
        "training": {"learning_rate": 0.1, "steps": 20, "seeds": 2, "key": 0},
    }
    over = {"over": [{"key": "task.parameters.delta", "start": 0.4, "stop": 1.2, "count": 3}]}
    more = over if kind == "phases" else {}
    plain = ask(kind, state, **more)
    assert "result" in plain, plain
    monkeypatch.setattr(Sentence, "text", property(lambda sentence: "x"))
    answer = ask(kind, state, **more)
    assert without_texts(answer["result"]) == without_texts(plain["result"])
    if kind in ("kept", "phases"):
        assert "x" in str(answer["result"]["sentences"])
