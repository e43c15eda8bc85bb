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
from neuralrace.explorer.showing import Tell, colours
from neuralrace.explorer.state import (
    built,
    first_state,
    label_expression,
    problem_of,
    put_table,
    state_of,
    study_of,
    wrong,
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
    table = {"name": message.get("name", TABLE), "text": message.get("text")}
    folder = put_table(table, trust)
    with tempfile.TemporaryDirectory() as made:
        path = new_study(Path(made) / "study.toml", folder / str(table["name"]))
        text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    content["task"]["file"] = table["name"]
    state, _ = state_of(content)
    notes = [line.removeprefix("# ") for line in text.splitlines() if line.startswith(LEFT_OUT)]
    state = {**state, "title": str(table["name"]), "table": table}
    state.pop("about", None)
    state.pop("questions", None)
    problem_of(state, ["contest"], trust)  # raises where the table is too large
    return {"state": state, "notes": notes}


def study(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """A study as a state, or a state as a study."""
    if "toml" not in message:
        made, problem = _saved(message.get("state"), trust)
        return {"toml": made.toml(), "files": _files(message, problem)}
    text = message["toml"]
    if not isinstance(text, str) or len(text) > limits.TABLE:
        raise bounds.too_much("toml", "this study", f"{type(text).__name__}", "250 kB of text")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise wrong(
            "toml",
            "this is not valid TOML",
            f"{error}"[:200],
            "one key = value per line",
            "text stands in quotes, lists in [ ], tables in { }",
        ) from error
    state, notes = state_of(content)
    problem_of(state, state.get("questions") or ["contest"], trust)
    return {"state": state, "notes": notes}


# ---- out ----------------------------------------------------------------------------------------


def python(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The script that gives the same numbers."""
    made, problem = _saved(message.get("state"), trust)
    return {"script": made.script(), "files": _files(message, problem, "files/")}


def report(message: Mapping[str, Any], trust: Trust, tell: Tell) -> dict[str, Any]:
    """The study's own report, as one archive."""
    made, problem = _saved(message.get("state"), trust)
    check_training(problem, 2 * problem.settings.training.seeds, recorded=True)
    result = made.run(tell=lambda line: tell("progress", {"line": line}))
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        result.report(Path(folder) / "report")
        files = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        size = sum(path.stat().st_size for path in files)
        if size > limits.REPORT:
            raise bounds.too_much("", "this report", f"{size} bytes", f"{limits.REPORT} bytes")
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(folder))
    return {
        "name": "report.zip",
        "base64": base64.b64encode(packed.getvalue()).decode("ascii"),
        "sentences": list(result.sentences),
    }


def _saved(state: Any, trust: Trust) -> tuple[Study, Problem]:
    """The study of a state as it is saved: gates by labels where that is possible."""
    questions = _questions(state)
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


def _questions(state: Any) -> list[str]:
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


def _files(message: Mapping[str, Any], problem: Problem, before: str = "") -> dict[str, str]:
    """The table of a state, which lies beside the study or script."""
    state: Any = message.get("state")
    table = state.get("table")
    if table is None or problem.settings.task.file is None:
        return {}
    return {f"{before}{table['name']}": table["text"]}
