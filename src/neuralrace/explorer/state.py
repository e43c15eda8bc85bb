"""From the state of a page to a study, and back.

A state is a study's own sections and a few more: gates may also be lists of 0 and 1, `table` holds
the text of a dropped table, and `view` is the page's own. Nothing in a state can name code to run
or a file to read, unless the study that was given on the command line names it too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from neuralrace.errors import NeuralRaceError
from neuralrace.explorer import bounds, limits
from neuralrace.explorer.catalogue import (
    GATING_PARAMETERS,
    PARAMETERS,
    check_parameters,
    default_state,
)
from neuralrace.explorer.trust import Trust
from neuralrace.study import Problem, Study, StudyError

SECTIONS = (
    "title",
    "about",
    "questions",
    "task",
    "network",
    "gatings",
    "training",
    "contest",
    "predict",
    "discover",
    "reduce",
    "modes",
    "types",
    "explain",
    "phase_diagram",
)
"""The sections of a study that a state may have, beside its table."""

LEFT_OUT = ("sweep", "quick")
"""Sections of a study that the explorer has no use for."""

TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,80}\.csv")
"""What a table may be called: it becomes the name of a file."""


def wrong(key: str, what: str, got: object, wanted: object, fix: str) -> StudyError:
    """An error of a key of the state."""
    return StudyError("the page", key, what, got=got, wanted=wanted, fix=fix)


# ---- from the page ------------------------------------------------------------------------------


def study_of(state: Any, questions: list[str], trust: Trust) -> Study:
    """The study that a state describes, with these questions; nothing is built yet."""
    sections, folder = _sections(state, trust)
    sections["questions"] = questions
    _check_criterion(sections.get("contest"))
    study = Study.of(folder=folder, **sections)
    bounds.check_settings(study.settings)
    return study


def problem_of(state: Any, questions: list[str], trust: Trust) -> Problem:
    """The study that a state describes, built and within all limits."""
    return built(study_of(state, questions, trust), state)


def built(study: Study, state: Any) -> Problem:
    """A study of a state, built and within all limits; gates are those that the state lists."""
    problem = study.check()
    bounds.check_problem(problem)
    check_lists(problem, state)
    return problem


def questions_of(state: Any) -> list[str]:
    """What a saved study asks: what the state says, or all that it can be asked quickly."""
    if not isinstance(state, Mapping):
        return ["contest"]
    asked = state.get("questions")
    if isinstance(asked, list) and asked:
        return asked
    if not state.get("gatings"):
        return ["train"]
    asked = ["contest", "reduce", "predict", "train"]
    return ["phase_diagram", *asked] if state.get("phase_diagram") else asked


def _sections(state: Any, trust: Trust) -> tuple[dict[str, Any], Path]:
    """The sections of a state as a study has them, and the folder of its files."""
    if not isinstance(state, Mapping):
        raise wrong(
            "",
            "there is no state",
            f"{type(state).__name__} {state!r:.60}",
            "an object with the sections of a study",
            'for example {"task": {"builtin": "xor"}}',
        )
    table, view = state.get("table"), state.get("view")
    if len(repr(view)) > limits.VIEW:
        raise bounds.too_much(
            "view", "what the page keeps", f"{len(repr(view))} characters", "20 kB"
        )
    given = {k: v for k, v in state.items() if k not in ("table", "view", *LEFT_OUT)}
    bounds.check_values(given)
    folder = trust.folder if table is None else put_table(table, trust)
    for place, name in _references(given):
        _check_reference(place, name, table, trust)
    if "task" not in given:
        raise wrong("task", "this key is missing", "no task", "a task", "choose a task")
    _check_builtin(given["task"], PARAMETERS, "task")
    given["gatings"] = _gatings(given.get("gatings", {}))
    training = given.get("training")
    for name, task in _table(training, "evaluate").items():
        _check_builtin(task, PARAMETERS, f"training.evaluate.{name}")
    return given, folder


def _table(section: Any, key: str) -> Mapping[str, Any]:
    value = section.get(key, {}) if isinstance(section, Mapping) else {}
    return value if isinstance(value, Mapping) else {}


def _references(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every key that names a file, code or a folder to write to."""
    tasks = {
        f"training.evaluate.{n}": t for n, t in _table(given.get("training"), "evaluate").items()
    }
    gatings = {f"gatings.{n}": g for n, g in _table(given, "gatings").items()}
    for place, section in {"task": given.get("task"), **tasks, **gatings}.items():
        if isinstance(section, Mapping):
            yield from ((f"{place}.{n}", section[n]) for n in ("file", "python") if n in section)
    training = given.get("training")
    if isinstance(training, Mapping) and "checkpoint" in training:
        yield "training.checkpoint", training["checkpoint"]


def _check_reference(place: str, value: Any, table: Any, trust: Trust) -> None:
    """Raise where a state names a file or a function that was not given on the command line."""
    if value is None:
        return
    name = place.rpartition(".")[2]
    dropped = isinstance(table, Mapping) and value == table.get("name") and place == "task.file"
    given = table is None and isinstance(value, str) and value in trust.files
    if name == "file" and (dropped or given):
        return
    if name == "python" and isinstance(value, str) and value in trust.functions:
        if trust.code:
            return
        raise wrong(
            place,
            "the explorer calls no Python functions of a study",
            f"{value!r:.60}",
            "a builtin task or a table",
            "start it with `neuralrace explore FILE --trust` if you trust this study",
        )
    kinds = {"file": "reads no files", "python": "calls no functions", "checkpoint": "writes none"}
    drop = "drop the study together with its table, or " if name == "file" else ""
    raise wrong(
        place,
        f"a page {kinds[name]} that were not given on the command line",
        f"{value!r:.60}",
        "a builtin task, or a table that is dropped on the page",
        f"{drop}start `neuralrace explore FILE` with the study that names it",
    )


def _check_criterion(contest: Any) -> None:
    """Raise where a criterion that is a share is none; a study would say it of its file."""
    if not isinstance(contest, Mapping) or contest.get("relative") is not True:
        return
    criterion = contest.get("criterion")
    if isinstance(criterion, int | float) and criterion >= 1:
        raise wrong(
            "contest.criterion",
            "the criterion of this task is a share of the initial loss",
            f"{criterion:g}",
            "a share below 1",
            "for example 0.5, for half of the initial loss",
        )


def _check_builtin(section: Any, table: Mapping[str, tuple[Any, ...]], key: str) -> None:
    """Raise where a builtin would be made from values that are not allowed."""
    if isinstance(section, Mapping) and isinstance(section.get("builtin"), str):
        given = section.get("parameters", {})
        if isinstance(given, Mapping):
            check_parameters(given, section["builtin"], table, f"{key}.parameters")


def _gatings(gatings: Any) -> Any:
    """Gatings with an expression in place of every list of 0 and 1."""
    if not isinstance(gatings, Mapping):
        return gatings  # the study says what is wrong
    found = {}
    for name, gating in gatings.items():
        if isinstance(gating, Mapping):
            _check_builtin(gating, GATING_PARAMETERS, f"gatings.{name}")
            gating = dict(gating)
            for way in ("masks", "gates"):
                if isinstance(gating.get(way), Mapping):
                    where = f"gatings.{name}.{way}"
                    gating[way] = {
                        p: expression(_listed(m, f"{where}.{p}")) if isinstance(m, list) else m
                        for p, m in gating[way].items()
                    }
        found[name] = gating
    return found


def _listed(mask: list[Any], key: str) -> np.ndarray:
    if not mask or any(not isinstance(v, int | float) or v not in (0, 1) for v in mask):
        raise wrong(
            key,
            "a gate is on or off",
            f"{mask!r:.60}",
            "a list with 0 or 1 for every sample",
            "for example [1, 0, 0, 1]",
        )
    return np.asarray(mask, bool)


def expression(mask: np.ndarray) -> str:
    """An expression of a study that is true for these samples, by their number.

    ```python
    >>> import numpy as np
    >>> from neuralrace.explorer.state import expression
    >>> expression(np.array([1, 0, 0, 1], bool)), expression(np.ones(4, bool))
    ('sample in [1, 4]', 'always')
    >>> expression(np.arange(1, 101) > 30)
    'sample >= 31'

    ```
    """
    if mask.all():
        return "always"
    on = (np.flatnonzero(mask) + 1).tolist()
    listed = f"sample in [{', '.join(map(str, on))}]" if len(on) != 1 else f"sample == {on[0]}"
    ranges, start = [], 0
    for value, run in groupby(mask.tolist()):
        stop = start + len(list(run))
        if value:
            low = [f"sample >= {start + 1}"] * (start > 0)
            high = [f"sample <= {stop}"] * (stop < len(mask))
            ranges.append(" and ".join([*low, *high]))
        start = stop
    joined = " or ".join(f"({r})" if " and " in r and len(ranges) > 1 else r for r in ranges)
    return min((listed, joined or listed), key=len)


def label_expression(mask: np.ndarray, labels: Mapping[str, Any]) -> str:
    """The expression for a mask, by the values of one label where that is possible.

    ```python
    >>> import numpy as np
    >>> from neuralrace.explorer.state import label_expression
    >>> label_expression(np.array([1, 1, 0, 0], bool), {"context": np.array([1, 1, 2, 3])})
    'context == 1'

    ```
    """
    mask = np.asarray(mask, bool)
    if mask.all():
        return "always"
    for name, values in labels.items():
        values = np.asarray(values)
        on, off = np.unique(values[mask]), np.unique(values[~mask])
        if not name.isidentifier() or values.dtype.kind not in "iuUb" or np.isin(on, off).any():
            continue
        if values.dtype.kind == "b":
            return name if on.tolist() == [True] else f"not {name}"
        least, sign, word = on, "==", "in"
        if len(off) < len(on):
            least, sign, word = off, "!=", "not in"
        shown = [repr(v) for v in least.tolist()]
        return (
            f"{name} {sign} {shown[0]}"
            if len(shown) == 1
            else f"{name} {word} [{', '.join(shown)}]"
        )
    return expression(mask)


def check_lists(problem: Problem, state: Mapping[str, Any]) -> None:
    """Raise where a list of gates has another length than the task, or means other samples."""
    for name, gating in _table(state, "gatings").items():
        if name not in problem.candidates:
            continue
        for way in ("masks", "gates"):
            for pathway, mask in _table(gating, way).items():
                if not isinstance(mask, list):
                    continue
                key, count = f"gatings.{name}.{way}.{pathway}", problem.data.n_samples
                if len(mask) != count:
                    raise wrong(
                        key,
                        "these gates belong to a task of another size",
                        f"{len(mask)} gates",
                        f"{count}, one per sample",
                        "draw the gates again, or go back to the task they were made for",
                    )
                _, data = problem.candidates[name]
                given = np.asarray(data.gates.get(pathway, np.ones(count)))
                if not np.array_equal(given, np.asarray(mask, float)):
                    raise wrong(
                        key,
                        "`sample` is the name of a column, so gates cannot be given by its number",
                        "a column or label called 'sample'",
                        "another name of the column",
                        "rename it in the table",
                    )


# ---- tables -------------------------------------------------------------------------------------


def put_table(table: Any, trust: Trust) -> Path:
    """Write a dropped table into a folder of its own, named by its content; returns the folder."""
    name = table.get("name") if isinstance(table, Mapping) else None
    text = table.get("text") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or not isinstance(text, str):
        raise wrong(
            "table",
            "this is no table",
            f"{table!r:.60}",
            "a name and a text",
            'for example {"name": "fruit.csv", "text": "size,price\\n1,2\\n"}',
        )
    if len(text) > limits.TABLE:
        got = f"{len(text)} characters"
        raise bounds.too_much("table", "this table", got, f"{limits.TABLE} characters")
    if not TABLE_NAME.fullmatch(name) or ".." in name:
        raise wrong(
            "table.name",
            "this cannot be the name of a table",
            f"{name!r:.60}",
            "letters, digits, spaces, '_', '-' and '.', with .csv at its end",
            "for example fruit.csv",
        )
    lines = text.count("\n") + 1
    if lines > 2 * limits.SAMPLES:
        raise bounds.too_much("table", "this table", f"{lines} lines", f"{limits.SAMPLES} lines")
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise wrong(
            "table.text", "this is no text", str(error), "text", "save it as CSV"
        ) from error
    folder = trust.tables / hashlib.sha256(f"{name}\n".encode() + data).hexdigest()[:24]
    try:
        os.utime(folder)  # it is in use
    except OSError:
        _make_room(trust.tables)
    if not (folder / name).is_file():
        trust.tables.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=trust.tables) as draft:
            (Path(draft) / name).write_bytes(data)
            folder.mkdir(exist_ok=True)
            os.replace(Path(draft) / name, folder / name)  # whoever sees it sees all of it
    return folder


def _make_room(tables: Path, most: int = 64) -> None:
    """Remove the dropped tables that are longest unused: a page sends its own again."""

    def used(folder: Path) -> float:
        try:
            return folder.stat().st_mtime
        except OSError:  # another process was quicker
            return 0.0

    kept = sorted(tables.glob("*"), key=used)
    for folder in kept[: max(0, len(kept) - most + 1)]:
        shutil.rmtree(folder, ignore_errors=True)


# ---- to the page --------------------------------------------------------------------------------


def state_of(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The state that shows a study, and what was left out of it, in words."""
    state = {k: _plain(v) for k, v in content.items() if k in SECTIONS}
    notes = [f"The section [{name}] was left out." for name in LEFT_OUT if name in content]
    unknown = [k for k in content if k not in (*SECTIONS, *LEFT_OUT)]
    if unknown:
        raise wrong(
            str(unknown[0])[:60],
            f"a study has no section {unknown[0]!r:.60}",
            f"{unknown[0]!r:.60}",
            f"one of {', '.join(SECTIONS)}",
            "check the spelling",
        )
    return state, notes


def _plain(value: Any) -> Any:
    """A value of a study for JSON."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NeuralRaceError(
        "this cannot be shown on a page",
        got=f"{type(value).__name__} {value!r:.60}",
        wanted="numbers, texts, true or false, lists and tables of these",
        fix="leave it out of the study",
    )


def first_state(trust: Trust) -> dict[str, Any]:
    """What a page shows first: the study of the command line, or the extended XoR."""
    return state_of(trust.content)[0] if trust.content else default_state("extended_xor")
