"""From the state of a page to a study, and back.

A state is a study's own sections and two more: `table` holds the text of a dropped table, and
`view` is the page's own. Nothing in a state can name code to run or a file to read, unless the
study that was given on the command line names it too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuralrace.explorer import limits
from neuralrace.explorer.catalogue import check_builtin, default_state
from neuralrace.explorer.trust import Trust
from neuralrace.study import Problem, Study, StudyError
from neuralrace.text import plain

LEFT_OUT = ("sweep", "quick")
"""Sections of a study that the explorer has no use for."""

TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,80}\.csv")
"""What a table may be called: it becomes the name of a file."""


def wrong(key: str, what: str, got: object, wanted: object, fix: str) -> StudyError:
    """An error of a key of the state."""
    return StudyError("the page", key, what, got=got, wanted=wanted, fix=fix)


def need(ok: object, key: str, what: str, got: object, wanted: object, fix: str) -> None:
    """Blame a key of the state unless something holds."""
    if not ok:
        raise wrong(key, what, got, wanted, fix)


# ---- from the page ------------------------------------------------------------------------------


def study_of(state: Any, questions: list[str], trust: Trust) -> Study:
    """The study that a state describes, with these questions; nothing is built yet.

    Its contest is checked only where that is possible, which it is not for networks with a bias.
    """
    sections, folder = _sections(state, trust)
    network, contest = sections.get("network"), sections.get("contest", {})
    if isinstance(network, Mapping) and network.get("bias") is True and isinstance(contest, dict):
        sections["contest"] = {"check": False, **contest}
    return Study.of(folder=folder, limited=True, **(sections | {"questions": questions}))


def problem_of(state: Any, questions: list[str], trust: Trust) -> Problem:
    """The study that a state describes, built and within all limits."""
    problem = study_of(state, questions, trust).check()
    limits.check_problem(problem)
    return problem


def checked(state: Any) -> Mapping[str, Any]:
    """The state, or an error where it is none."""
    if not isinstance(state, Mapping):
        raise wrong(
            "",
            "there is no state",
            f"{type(state).__name__} {state!r:.60}",
            "an object with the sections of a study",
            'for example {"task": {"builtin": "xor"}}',
        )
    return state


def without(state: Any, *sections: str) -> dict[str, Any]:
    """The state without some sections, and without what may name a gating."""
    left_out = ("predict", "phase_diagram", *sections)
    return {k: v for k, v in checked(state).items() if k not in left_out}


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
    state = checked(state)
    table, view = state.get("table"), state.get("view")
    limits.within(
        len(repr(view)) <= limits.VIEW,
        "view",
        "what the page keeps",
        f"{len(repr(view))} characters",
        "20 kB",
    )
    given = {k: v for k, v in state.items() if k not in ("table", "view", *LEFT_OUT)}
    limits.check_values(given)
    folder = trust.folder if table is None else put_table(table, trust)
    for place, section in _parts(given):
        for name in {"file", "python", "checkpoint"} & set(section):
            _check_reference(f"{place}.{name}", section[name], table, trust)
        check_builtin(section, place)
    return given, folder


def _parts(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every table of a state that may name a file, code, a builtin or a folder to write to."""
    parts = {name: given.get(name) for name in ("task", "training")}
    inner = {"gatings": given, "evaluate": parts["training"]}
    for name, section in inner.items():
        several = section.get(name) if isinstance(section, Mapping) else None
        key = "training.evaluate" if name == "evaluate" else name
        parts |= {f"{key}.{n}": v for n, v in several.items()} if isinstance(several, dict) else {}
    yield from ((place, part) for place, part in parts.items() if isinstance(part, Mapping))


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


# ---- masks in words -----------------------------------------------------------------------------


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
    edges = np.flatnonzero(np.diff(np.pad(mask.astype(int), 1))).reshape(-1, 2).tolist()
    ranges = []
    for start, stop in edges:
        low = [f"sample >= {start + 1}"] * (start > 0)
        high = [f"sample <= {stop}"] * (stop < len(mask))
        ranges.append(" and ".join([*low, *high]))
    joined = " or ".join(f"({r})" if " and " in r and len(ranges) > 1 else r for r in ranges)
    return min((listed, joined or listed), key=len)


def label_expression(mask: np.ndarray, labels: Mapping[str, Any]) -> str | None:
    """The expression for a mask by the values of one label; None where no label has it.

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
        least, one, several = (off, "!=", "not in") if len(off) < len(on) else (on, "==", "in")
        shown = least.tolist()
        return f"{name} {one} {shown[0]!r}" if len(shown) == 1 else f"{name} {several} {shown!r}"
    return None


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
        raise limits.too_much("table", "this table", got, f"{limits.TABLE} characters")
    need(
        TABLE_NAME.fullmatch(name) and ".." not in name,
        "table.name",
        "this cannot be the name of a table",
        f"{name!r:.60}",
        "letters, digits, spaces, '_', '-' and '.', with .csv at its end",
        "for example fruit.csv",
    )
    lines = text.count("\n") + 1
    limits.within(
        lines <= 2 * limits.SAMPLES,
        "table",
        "this table",
        f"{lines} lines",
        f"{limits.SAMPLES} lines",
    )
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


def state_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The state that shows a study: all of it but what the explorer has no use for."""
    return {k: plain(v) for k, v in content.items() if k not in LEFT_OUT}


def first_state(trust: Trust) -> dict[str, Any]:
    """What a page shows first: the study of the command line, or the extended XoR."""
    return state_of(trust.content) if trust.content else default_state("extended_xor")
