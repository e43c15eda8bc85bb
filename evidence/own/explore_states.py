"""Claims about the explorer: what it shows is what the library returns, for any valid state."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import jax
import numpy as np

import neuralrace as nr
from evidence.promise import Measurement, claim
from neuralrace.dataset import zero_loss
from neuralrace.explorer import ask

SECTION = "The explorer"
TOP = "explorer"

State = dict[str, Any]

ACCURATE = 1e-5
"""The largest difference, in parts of the largest value of a curve: races are solved with a
relative tolerance of 1e-8 per step, and curves are sent with six digits."""

TASKS: dict[str, dict[str, tuple[Any, ...]]] = {
    "extended_xor": {"delta": (0.3, 0.5, 0.9, 1.4), "sign": (1.0, -1.0)},
    "xor": {"sign": (1.0, -1.0)},
    "contextual": {"contexts": (2, 3), "items": (2, 4), "context_scale": (0.5, 1.0)},
    "context_decision": {"levels": (2,), "cue": (0.5, 1.0)},
    "parity": {"bits": (2, 3)},
    "transitive_inference": {"items": (3, 4)},
    "ring_classification": {"points": (6,), "classes": (2, 3)},
    "gaussian": {"samples": (4, 6), "inputs": (2, 3), "outputs": (1, 2), "key": (0, 1, 2)},
}
"""Tasks of states, with values of their parameters."""

LABELS = {"contextual": "context", "context_decision": "context", "parity": "answer"}
"""A label with one pathway per value."""


# ---- random states ------------------------------------------------------------------------------


def random_state(random: np.random.Generator) -> State:
    """A valid state: a small task, one to three gatings of any kind, any network and contest."""
    pick = lambda values: values[int(random.integers(len(values)))]
    state: State = {"task": _task(random)}
    width = int(pick((2, 3, 6, 16)))
    state["network"] = {"widths": width, "scale": float(10 ** random.uniform(-4, -1.5))}
    state["network"] |= {} if random.random() < 0.7 else {"leak": float(pick((0.1, 0.5)))}
    state["network"] |= {} if random.random() < 0.8 else {"bias": True}
    state["contest"] = {"criterion": float(random.uniform(0.05, 0.9)), "relative": True}
    if random.random() < 0.4:
        state["contest"]["start"] = float(10 ** random.uniform(-3, -1))
    state["training"] = {"learning_rate": 0.05, "steps": int(pick((5, 30))), "seeds": 1, "key": 3}
    state["training"] |= {} if random.random() < 0.6 else {"until": float(random.uniform(0.1, 0.6))}
    if "file" in state["task"]:
        table(state, random)
    if random.random() < 0.3:
        zero = float(zero_loss(dataset_of(state)))
        state["contest"] |= {"criterion": zero * state["contest"]["criterion"], "relative": False}
    names = ["first", "second", "third"][: int(random.integers(1, 4))]
    state["gatings"] = {name: _gating(state, random) for name in names}
    return state


def _task(random: np.random.Generator) -> State:
    if random.random() < 0.2:
        scale = {"a": float(random.uniform(0.2, 2))} if random.random() < 0.5 else {}
        return {"file": "t.csv", "x": ["a", "b"], "y": ["c"], "labels": ["k"], "scale": scale}
    name = list(TASKS)[int(random.integers(len(TASKS)))]
    values = {n: v[int(random.integers(len(v)))] for n, v in TASKS[name].items()}
    return {"builtin": name, "parameters": values}


def table(state: State, random: np.random.Generator) -> None:
    """Give a state a table of its own."""
    rows = [f"{a:.3f},{b:.3f},{a * b:.3f},{k}" for a, b, k in _rows(random)]
    state["table"] = {"name": "t.csv", "text": "\n".join(["a,b,c,k", *rows]) + "\n"}


def _rows(random: np.random.Generator) -> Iterator[tuple[float, float, int]]:
    for i in range(int(random.integers(4, 8))):
        yield random.uniform(-1, 1), random.uniform(-1, 1), i % 2


def _gating(state: State, random: np.random.Generator) -> State:
    builtin, hidden = state["task"].get("builtin"), int(random.integers(2, 9))
    match int(random.integers(4)):
        case 0 if builtin in ("xor", "extended_xor"):
            name = ("linear_pathways", "xor_pathways")[int(random.integers(2))]
            return {"builtin": name, "parameters": {"total": 4 * hidden}}
        case 0 if builtin == "contextual":
            name = ("common_and_all_but_one", "common_and_single")[int(random.integers(2))]
            return {"builtin": name, "parameters": {"hidden": hidden}}
        case 1:
            return {"each": "sample", "hidden": hidden}
        case 2:
            return {"each": "k" if builtin is None else LABELS.get(builtin, "sample"),
                    "hidden": hidden}  # fmt: skip
    count = dataset_of(state).n_samples
    masks = random.random((int(random.integers(1, 4)), count)) < random.uniform(0.3, 1)
    masks[np.arange(len(masks)), random.integers(count, size=len(masks))] = True
    return {"masks": {f"p{i}": m.astype(int).tolist() for i, m in enumerate(masks)},
            "hidden": hidden}  # fmt: skip


OTHER: dict[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (0, 1, 2, 3, 5, 7, 100, 4096, -1),
    float: (0.0, 1e-6, 1e-3, 0.05, 0.3, 0.999, 1.0, 2.0, 50.0, 1e5, -0.5),
    str: ("sample", "context", "k", "a", "always", "x[0] > 0", "xor", "extended_xor", "xavier"),
    list: ([], [1, 0], [0, 1, 1, 0], ["a"], ["a", "b"], [4, 4]),
    dict: ({}, {"a": 0.5}, {"p0": [1, 0, 0, 1]}, {"p0": "sample > 1"}, {"builtin": "xor"}),
}
"""Values that a place of a state may have, by the kind of what stands there."""

MORE: dict[str, dict[str, tuple[Any, ...]]] = {
    "network": {"kind": ("xavier", "orthogonal"), "depth": (1, 2), "leak": (0.0, 0.3, 1.0)},
    "contest": {"longest": (10.0, 1e4), "tolerance": (1e-8, 0.1), "width": (1, 50),
                "check": OTHER[bool]},
    "training": {"optimizer": ({"name": "adam"},), "batch_size": (1, 2, 64),
                 "loss": ("cross_entropy",),
                 "dtype": ("float32",), "record_every": (1, 1000), "record_at": ([0, 5],)},
    "task": {"standardise": OTHER[bool], "weight": ("a", "k"), "scale": ({"a": 0.0}, {"z": 1.0})},
}  # fmt: skip
"""Keys that a valid state may have beside its own."""


def nearly(random: np.random.Generator) -> State:
    """A valid state with one thing changed: a value, a key that is left out, or one more."""
    state = copy.deepcopy(random_state(random))
    pick = lambda values: values[int(random.integers(len(values)))]
    if random.random() < 0.25:
        section = pick(list(MORE))
        key = pick(list(MORE[section]))
        state.setdefault(section, {})[key] = pick(MORE[section][key])
        return state
    place: Any = state
    while True:
        key = pick(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if isinstance(inner, dict | list) and len(inner) and random.random() < 0.8:
            place = inner
            continue
        if random.random() < 0.2:
            del place[key]
        else:
            place[key] = pick(OTHER[type(inner)])
        return state


# ---- what the library returns -------------------------------------------------------------------


def dataset_of(state: State) -> nr.Dataset:
    """The task of a state, by public names of the library."""
    task = state["task"]
    if "builtin" in task:
        return getattr(nr.tasks, task["builtin"])(**task["parameters"])
    lines = state["table"]["text"].split()
    columns = np.array([line.split(",") for line in lines[1:]], float).T
    named = dict(zip(lines[0].split(","), columns, strict=True))
    x = [task["scale"].get(name, 1.0) * named[name] for name in task["x"]]
    y = [named[name] for name in task["y"]]
    labels = {"k": named["k"].astype(int)}
    return nr.Dataset({"x": np.stack(x, 1)}, {"y": np.stack(y, 1)}, labels=labels)


def gatings_of(state: State) -> dict[str, Any]:
    """Its gatings, by public names of the library."""
    data, made = dataset_of(state), {}
    for name, gating in state["gatings"].items():
        if "builtin" in gating:
            made[name] = getattr(nr.tasks, gating["builtin"])(data, **gating["parameters"])
            continue
        if "each" in gating:
            label = gating["each"]
            values = np.asarray(data.labels.get(label, np.arange(data.n_samples)))
            masks = {f"m{i}": values == value for i, value in enumerate(np.unique(values))}
        else:
            masks = {n: np.array(m, bool) for n, m in gating["masks"].items()}
        made[name] = nr.pathways(data, masks, hidden=gating["hidden"])
    return made


def contest_of(state: State) -> nr.Contest:
    """Its contest, by public names of the library."""
    network, asked = state["network"], state["contest"]
    start = {"start": asked["start"]} if "start" in asked else {"scale": network["scale"]}
    return nr.contest(
        gatings_of(state), criterion=asked["criterion"], relative=asked.get("relative", False),
        width=network["widths"], leak=network.get("leak", 0.0), key=state["training"]["key"],
        **start,
    )  # fmt: skip


# ---- compared -----------------------------------------------------------------------------------


def apart(state: State, trained: bool = False) -> float:
    """The largest difference between what is shown of a state and what the library returns."""
    until = 2.0 / state["contest"]["criterion"]
    answer = ask("predict", state, until=until)
    assert "result" in answer, answer
    shown, contest = answer["result"], contest_of(state)
    assert not shown["failed"], shown["failed"]
    assert shown["winner"] == contest.winner and shown["start"] == contest.start
    times = np.asarray(shown["times"])
    gaps = [_gap(shown["zero_loss"], zero_loss(dataset_of(state)))]
    for name, entrant in contest.entrants.items():
        one, race = shown["gatings"][name], entrant.race
        gaps.append(_gap(one["time"], entrant.time))
        gaps.append(_gap(one["strength"], entrant.strength))
        gaps.append(_gap(one["least"], race.constant))
        gaps.append(_gap(one["loss"], race.solve(times=times, start=entrant.start).loss))
        drives = [block.drive for block in race.blocks][: len(one["modes"])]
        gaps.append(_gap([mode["drive"] for mode in one["modes"]], drives))
    if trained:
        gaps.append(_trained(state))
    if trained and not state["network"].get("bias"):
        kept = ask("kept", state)["result"]["gatings"]
        check = contest.check()
        gaps += [_gap(kept[name]["share"], check.kept[name]) for name in contest.entrants]
        assert all(kept[n]["standing"] == check.verdict(n).value for n in contest.entrants)
    return max(gaps)


def _trained(state: State) -> float:
    """The same of the final losses of trained networks."""
    training, network, data = state["training"], state["network"], dataset_of(state)
    sizes = {"x": data.x["x"].shape[1], "h": network["widths"], "y": data.y["y"].shape[1]}
    arch = nr.Architecture(sizes, {"W1": ("x", "h"), "W2": ("h", "y")})
    net = nr.ReLUNetwork(arch, leak=network.get("leak", 0.0), bias=network.get("bias", False))
    runs = nr.train_ensemble(
        net, data.gated({}), key=jax.random.split(jax.random.key(training["key"]))[0], seeds=1,
        scale=network["scale"], learning_rate=training["learning_rate"], steps=training["steps"],
        until=training.get("until"),
    )  # fmt: skip
    return _gap(ask("train", state)["result"]["final"], runs.loss[:, -1])


def _gap(shown: Any, known: Any) -> float:
    """The largest difference in parts of the largest value; infinite where one is not finite."""
    some = np.atleast_1d(np.array(shown, float))
    known = np.atleast_1d(np.asarray(known, float))
    known = np.where(np.isfinite(known), known, np.nan)
    if some.shape != known.shape or (np.isnan(some) != np.isnan(known)).any():
        return float("inf")
    there = ~np.isnan(known)
    size = np.abs(known[there]).max(initial=0.0) or 1.0
    return float(np.abs(some - known)[there].max(initial=0.0) / size)


@claim(
    "explorer/equal",
    SECTION,
    "200 random valid states (builtin tasks and tables; gatings of every kind; leak, bias, until, "
    "scales, starts and criteria): winner, learning times, strengths, losses over time, and for a "
    "tenth of them final losses of trained networks and kept shares, against calls of the "
    "library's public functions, which read no state",
    f"the largest difference ≤ {ACCURATE:g} of the largest value",
    slow=True,
)
def equal(full: bool) -> Measurement:
    worst = []
    with jax.enable_x64(True):
        for seed in range(200 if full else 6):
            state = random_state(np.random.default_rng(seed))
            worst.append(apart(state, _is_trained(state, seed)))
    return Measurement(f"{max(worst):.1e} over {len(worst)} states", max(worst) <= ACCURATE)


def _is_trained(state: State, seed: int) -> bool:
    return (
        seed % 10 == 0 and set(dataset_of(state).x) == {"x"} and set(dataset_of(state).y) == {"y"}
    )


KINDS = (*["data", "predict", "predict", "python", "study"] * 8, "equations", "equations", "kept")
"""Kinds of requests about states in which one thing is changed, the slow ones less often."""


@claim(
    "explorer/nearly-valid",
    SECTION,
    "20 000 states, each a random valid one with one thing changed to another value of its kind, "
    "left out or added, asked for data, prediction, equations, kept gates, script or study",
    "each answered with a result, or an error that names a key and says what it got, wanted and "
    "how to go on",
    slow=True,
)
def nearly_valid(full: bool) -> Measurement:
    if full:  # seeds side by side, in processes of their own
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            parts = [*pool.map(_answered, (range(n, n + 250) for n in range(0, 20_000, 250)))]
    else:
        parts = [_answered(range(30))]
    results, errors, bad = (sum(those, type(those[0])()) for those in zip(*parts, strict=True))
    text = f"{results} results, {errors} errors with a key, {len(bad)} without"
    return Measurement(text, not bad, "; ".join(bad[:3]))


def _answered(seeds: range) -> tuple[int, int, list[str]]:
    """How many states of these seeds have a result, how many an error, and errors without a key."""
    results, errors, bad = 0, 0, []
    with jax.enable_x64(True):
        for seed in seeds:
            random = np.random.default_rng(seed)
            kind, state = KINDS[int(random.integers(len(KINDS)))], nearly(random)
            answer = ask(kind, state)
            failed = [answer["error"]] if "error" in answer else list(
                answer["result"].get("failed", {}).values())  # fmt: skip
            results += not failed
            errors += bool(failed)
            bad += [f"{seed}, {kind}: {error}" for error in failed if not is_told(error)]
    return results, errors, bad


def is_told(error: dict[str, str]) -> bool:
    """Whether an error is one of ours, of a place, and says what to do."""
    ours = "could not be computed" not in error["what"] and "could not be done" not in error["what"]
    return ours and all(error[part] for part in ("what", "got", "wanted", "fix", "key"))
