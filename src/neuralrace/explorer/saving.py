"""What goes in and out of a page as files: tables, studies, scripts and reports."""

from __future__ import annotations

import base64
import io
import lzma
import posixpath
import re
import tempfile
import tomllib
import unicodedata
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuralrace import __version__
from neuralrace.dataset import Dataset
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer import limits
from neuralrace.explorer.catalogue import catalogue
from neuralrace.explorer.limits import check_training
from neuralrace.explorer.showing import Tell, colours, texts
from neuralrace.explorer.state import (
    LEFT_OUT,
    first_state,
    label_expression,
    problem_of,
    put_table,
    questions_of,
    state_of,
    study_of,
    wrong,
)
from neuralrace.explorer.trust import Trust
from neuralrace.study import Problem, Study, draft

HALFWAY = 0.5
"""The criterion of a table that was dropped: its first gatings may not learn much more."""

TABLE = "fruit.csv"
"""A name for examples."""


def tasks(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """What a page can offer, and what it shows first."""
    return {
        "tasks": catalogue(),
        "state": first_state(trust),
        "given": bool(trust.content),
        "limits": limits.table_of_limits(),
        "colours": colours(),
        "version": __version__,
    }


# ---- in -----------------------------------------------------------------------------------------


def csv(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """A state for a table that was dropped: its columns as inputs, target and labels."""
    table = opened({"name": message.get("name", TABLE), "text": message.get("text")})
    content, left_out = draft(put_table(table, trust) / table["name"])
    state = state_of(content)
    shown, target = (", ".join(content["task"][end]) for end in "xy")
    notes = [f"The last column, {target}, was taken as the target; Columns changes that."]
    of_items = "modes" in content["questions"]
    if of_items:
        notes = [
            f"Every row was taken as an item, named by {shown}, and all other columns as its "
            "properties; Columns changes that."
        ]
    notes += [f"Left out: {name!r}, {why}." for name, why in left_out.items()]
    race = {**state.get("contest", {}), "criterion": HALFWAY, "relative": True}
    state = {**state, "title": table["name"], "table": table, "contest": race}
    state.pop("about", None)
    if not of_items:
        state.pop("questions", None)
    problem_of(state, ["contest"], trust)  # raises where the table is too large
    return {"state": state, "notes": notes}


def study(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """A study as a state, or a state as a study.

    A study comes as `toml`, with its `table` where the page has one, or as a `zip` of both.
    """
    if "zip" in message:
        text, table = unpacked(message["zip"])
    elif "toml" in message:
        text, table = message["toml"], message.get("table")
    else:
        files = _saved(message.get("state"), trust)[0].files()
        return {"toml": files["study.toml"].decode(), "archive": _archive("study.zip", files)}
    if not isinstance(text, str) or len(text) > limits.TABLE:
        raise limits.too_much("toml", "this study", f"{type(text).__name__}", "250 kB of text")
    content = parsed(text)
    notes = [f"The section [{name}] was left out." for name in LEFT_OUT if name in content]
    state = with_table(state_of(content), table)
    problem_of(state, state.get("questions") or ["contest"], trust)
    return {"state": state, "notes": notes}


# ---- out ----------------------------------------------------------------------------------------


def python(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The script that gives the same numbers."""
    files = _saved(message.get("state"), trust)[0].files()
    return {"script": files["study.py"].decode(), "archive": _archive("study.zip", files)}


def report(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The study's own report, as one archive."""
    made, problem = _saved(message.get("state"), trust)
    check_training(problem, 2 * problem.settings.training.seeds, recorded=True)
    result = made.run(tell=lambda line: tell("progress", {"line": line}))
    with tempfile.TemporaryDirectory() as folder:
        result.report(Path(folder) / "report")
        paths = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return {"archive": _archive("report.zip", files), "sentences": texts(result)}


def _archive(name: str, files: Mapping[str, bytes]) -> dict[str, str] | None:
    """Files as one archive; None for a study that reads no files, so that one of them will do."""
    if set(files) == {"study.toml", "study.py"}:
        return None
    size = sum(map(len, files.values()))
    limits.within(size <= limits.REPORT, "", name, f"{size} bytes", f"{limits.REPORT} bytes")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return {"name": name, "base64": base64.b64encode(packed.getvalue()).decode("ascii")}


def _saved(state: Any, trust: Trust) -> tuple[Study, Problem]:
    """The study of a state as it is saved: gates by labels where that is possible."""
    questions = questions_of(state)
    problem = problem_of(state, questions, trust)
    gatings = {}
    for name, gating in state.get("gatings", {}).items():
        masks = {p: _written(m, problem.data) for p, m in (gating.get("masks") or {}).items()}
        gatings[name] = {**gating, "masks": masks} if masks else gating
    study = study_of({**state, "gatings": gatings}, questions, trust)
    return study, problem


def _written(mask: Any, data: Dataset) -> Any:
    """A mask as a study has it: a list as an expression on one label, where there is one."""
    if not isinstance(mask, list):
        return mask
    return label_expression(np.asarray(mask), data.labels) or mask


# ---- files that are dropped on the page ----------------------------------------------------------

MEMBERS = 1000
"""Files of an archive that are looked at; a saved study has three, a report some dozens."""

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    RuntimeError,  # encrypted; NotImplementedError, for odd compressions, is one too
    EOFError,
    OSError,
    ValueError,  # not base64, not UTF-8
)
"""What reading an archive raises that is none, or is damaged."""


def table_name(name: str) -> str:
    """The name of a table as a state may have it: other characters become "_".

    ```python
    >>> from neuralrace.explorer.saving import table_name
    >>> table_name("files/größe (1).CSV")
    'gro_e _1_.csv'

    ```
    """
    stem = re.sub(r"\.csv$", "", posixpath.basename(name), flags=re.IGNORECASE)
    plain = [c for c in unicodedata.normalize("NFKD", stem) if not unicodedata.combining(c)]
    stem = re.sub(r"[^A-Za-z0-9_ -]", "_", "".join(plain))[:60]
    return f"{'' if re.match('[A-Za-z0-9_]', stem) else 'table'}{stem}.csv"


def opened(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with a name that a state may have."""
    name = table.get("name")
    return {"name": table_name(name) if isinstance(name, str) else name, "text": table.get("text")}


def parsed(text: str) -> dict[str, Any]:
    """The content of a study's text."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise wrong(
            "toml",
            "this is not valid TOML",
            f"{error}"[:200],
            "one key = value per line",
            "text stands in quotes, lists in [ ], tables in { }",
        ) from error


def with_table(state: Mapping[str, Any], table: Any) -> dict[str, Any]:
    """The state of a study with the table that it names, if that is the one."""
    task, known = state.get("task"), opened(table if isinstance(table, Mapping) else {})
    file = task.get("file") if isinstance(task, Mapping) else None
    if not isinstance(task, Mapping) or not isinstance(file, str):
        return dict(state)
    if table_name(file) != known["name"]:
        return dict(state)
    return {**state, "task": {**task, "file": known["name"]}, "table": known}


def unpacked(archive: Any) -> tuple[str, dict[str, str] | None]:
    """The study of an archive in base64, and the table that it names, if it is there."""
    try:
        data = base64.b64decode(archive, validate=True) if isinstance(archive, str) else b""
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = file.namelist()
            limits.within(
                len(names) <= MEMBERS, "zip", "this archive", f"{len(names)} files", MEMBERS
            )
            studies = sorted((n for n in names if n.endswith(".toml")), key=_place)
            if not studies:
                raise _none(", ".join(names[:6]) or "an empty archive")
            text = _read(file, studies[0])
            task = parsed(text).get("task")
            table = task.get("file") if isinstance(task, Mapping) else None
            if not isinstance(table, str):
                return text, None
            path = posixpath.normpath(posixpath.join(posixpath.dirname(studies[0]), table))
            return text, {"name": table, "text": _read(file, path)} if path in names else None
    except NeuralRaceError:
        raise
    except BROKEN as error:
        raise _none(f"{type(error).__name__}: {error}"[:200]) from error


def _place(name: str) -> tuple[bool, int, str]:
    """Archives of a report have one study as well, in a folder."""
    return posixpath.basename(name) != "study.toml", name.count("/"), name


def _read(file: zipfile.ZipFile, name: str) -> str:
    with file.open(name) as member:
        data = member.read(4 * limits.TABLE + 1)  # at most four bytes a character
    limits.within(
        len(data) <= 4 * limits.TABLE,
        "zip",
        f"{name:.60}",
        "a larger file",
        f"{limits.TABLE} characters",
    )
    return data.decode("utf-8")


def _none(got: str) -> Exception:
    return wrong(
        "zip",
        "this archive holds no study",
        got,
        "study.toml, and the table that it reads",
        "drop the study.zip that Save study writes",
    )
