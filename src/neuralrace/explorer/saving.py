"""What goes in and out of a page as files: tables, studies, scripts and reports."""

from __future__ import annotations

import base64
import io
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuralrace import __version__
from neuralrace.explorer import bounds, limits
from neuralrace.explorer.bounds import check_training
from neuralrace.explorer.catalogue import catalogue
from neuralrace.explorer.opening import opened, parsed, unpacked, with_table
from neuralrace.explorer.showing import Tell, colours
from neuralrace.explorer.state import (
    built,
    first_state,
    label_expression,
    problem_of,
    put_table,
    questions_of,
    state_of,
    study_of,
)
from neuralrace.explorer.trust import Trust
from neuralrace.study import Problem, Study, new_study

TABLE = "fruit.csv"
"""A name for examples."""

LEFT_OUT = "# Left out: "
"""How `new_study` says which columns it did not take."""


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
    folder = put_table(table, trust)
    with tempfile.TemporaryDirectory() as made:
        path = new_study(Path(made) / "study.toml", folder / table["name"])
        text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    content["task"]["file"] = table["name"]
    state, _ = state_of(content)
    shown, target = (", ".join(content["task"][end]) for end in "xy")
    notes = [f"The last column, {target}, was taken as the target; Columns changes that."]
    of_items = "modes" in content["questions"]
    if of_items:
        notes = [
            f"Every row was taken as an item, named by {shown}, and all other columns as its "
            "properties; Columns changes that."
        ]
    notes += [line.removeprefix("# ") for line in text.splitlines() if line.startswith(LEFT_OUT)]
    state = {**state, "title": table["name"], "table": table}
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
        raise bounds.too_much("toml", "this study", f"{type(text).__name__}", "250 kB of text")
    state, notes = state_of(parsed(text))
    state = with_table(state, table)
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
    return {"archive": _archive("report.zip", files), "sentences": list(result.sentences)}


def _archive(name: str, files: Mapping[str, bytes]) -> dict[str, str] | None:
    """Files as one archive; None for a study that reads no files, so that one of them will do."""
    if set(files) == {"study.toml", "study.py"}:
        return None
    size = sum(map(len, files.values()))
    if size > limits.REPORT:
        raise bounds.too_much("", name, f"{size} bytes", f"{limits.REPORT} bytes")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return {"name": name, "base64": base64.b64encode(packed.getvalue()).decode("ascii")}


def _saved(state: Any, trust: Trust) -> tuple[Study, Problem]:
    """The study of a state as it is saved: gates by labels where that is possible."""
    questions = questions_of(state)
    first = study_of(state, questions, trust)
    problem = built(first, state)
    changes = {}
    for name, gating in first.document.content.get("gatings", {}).items():
        given = state["gatings"].get(name, {})
        for pathway, mask in (given.get("masks") or {}).items():
            if isinstance(mask, list):
                text = label_expression(np.asarray(mask), problem.data.labels)
                gating["masks"][pathway] = text
                changes[name] = gating
    if not changes:
        return first, problem
    content = dict(first.document.content)
    made = Study.of(folder=first.document.folder, **content)
    return made, built(made, state)
