"""A study to begin with: commented, with every section, for a task of the papers or for a CSV."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from keyword import iskeyword
from pathlib import Path
from typing import Any, final

import numpy as np

from neuralrace.checks import file_path, list_of_names, one_of, put_file
from neuralrace.door import door
from neuralrace.errors import require
from neuralrace.study.document import toml_value
from neuralrace.study.files import read_table
from neuralrace.study.questions import QUESTIONS

FEW = 8
"""A column of text or of whole numbers with at most this many values may be a label, and may have
one pathway per value."""

DISTINCT = "every row has another value"
"""Why a column that names the rows is left out."""

ASKED = ("relu", "contest", "train")
"""The questions of a new study."""

ASKED_OF_ITEMS = ("relu", "modes", "predict", "train")
"""The questions of a new study of items and their properties."""

GATINGS = 3
"""A new study has at most as many gatings that are made from columns."""


@door
def new_study(
    path: str | os.PathLike[str],
    csv: str | os.PathLike[str] | None = None,
    *,
    items: str | None = None,
    x: Iterable[str] = (),
    y: Iterable[str] = (),
) -> Path:
    """Write a commented study to begin with; for a CSV file, its columns are filled in.

    The last column of the CSV is taken as the target, the others as inputs; columns of text and of
    few whole numbers are also labels. Columns that count the rows, are constant, or are text with
    another value in (nearly) every row are left out, and a comment says why. But if one column of
    text has another value in every row, and all others, at least two, hold 0 and 1 alone, the
    table is one of items and their properties: its names are the inputs, one of them on for each
    row, and all other columns are targets, as they are. Change what is not meant. An existing file
    is not overwritten.

    **Arguments:** `items` is the column of names of a table of items whose properties are other
    numbers. `x` and `y` are the columns that are inputs and targets; without one of them, it is
    all others.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import neuralrace as nr
    >>> path = nr.study.new_study(Path(tempfile.mkdtemp()) / "study.toml")
    >>> nr.Study.load(path).settings.task.builtin
    'extended_xor'

    ```
    """
    path = file_path(path, "study.toml")
    require(
        not path.exists(),
        f"{str(path)!r} exists already",
        got="a file of that name",
        wanted="a name that is not taken",
        fix="choose another name, or remove the file",
    )
    given = list_of_names("x", x), list_of_names("y", y)
    require(
        not (csv is None and (items is not None or any(given))),
        "columns are those of a table, and there is none",
        got=f"items = {items!r}, x = {given[0]}, y = {given[1]}",
        wanted="a CSV file",
        fix="--csv my.csv, or new_study(path, 'my.csv', items='object')",
    )
    if csv is None:
        return put_file(path, _written(**XOR).encode())
    csv = file_path(csv, "my.csv")
    columns = _columns(csv.name, read_table(csv), items, *given)
    return put_file(path, _written(**_of_csv(csv, path.parent, columns)).encode())


@door
def draft(csv: str | os.PathLike[str]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The content of the study that `new_study` writes for a CSV file, and what it leaves out.

    Nothing is written. Columns that are left out come with the reason.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import neuralrace as nr
    >>> csv = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = csv.write_text("id,size,sweet\\n1,0.5,0\\n2,0.1,1\\n3,0.7,0\\n")
    >>> content, left_out = nr.study.draft(csv)
    >>> content["task"]["x"], left_out
    (['size'], {'id': 'it counts the rows'})

    ```
    """
    csv = file_path(csv, "my.csv")
    columns = _columns(csv.name, read_table(csv), None, [], [])
    return tomllib.loads(_written(**_of_csv(csv, csv.parent, columns))), columns.left_out


XOR: Mapping[str, Any] = {
    "csv": None,
    "items": None,
    "title": "Extended XoR",
    "about": "Which gating does a ReLU network take up: one per class, or one per sample?",
    "asked": ASKED,
    "steps": 600,
    "groups": {},
}
"""What a study says that is not for a table."""


def _written(**values: Any) -> str:
    """The template with these values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("neuralrace.study"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"repr": repr, "toml": toml_value}
    other = [question for question in QUESTIONS if question not in values["asked"]]
    also = [question for question in other if question != "phase_diagram"]  # needs a section
    return environment.get_template("new.toml").render(values, also=also)


# ---- the columns of a table ---------------------------------------------------------------------


@final
@dataclass(frozen=True)
class _Columns:
    """What the columns of a table are taken for; `items` is the one that names items, if any."""

    table: Mapping[str, np.ndarray]
    x: list[str]
    y: list[str]
    left_out: Mapping[str, str]
    items: str | None = None


def items_column(table: Mapping[str, np.ndarray]) -> str | None:
    """The column that names the items, if this is a table of items and their properties.

    It is the only one of text, with another value in every row; all others, at least two, hold 0
    and 1 alone.

    ```python
    >>> import numpy as np
    >>> from neuralrace.study.new import items_column
    >>> yes_no = {"long": np.array([1, 0]), "round": np.array([0, 1])}
    >>> items_column({"object": np.array(["fork", "cup"])} | yes_no)
    'object'

    ```
    """
    text = [name for name, column in table.items() if column.dtype.kind in "US"]
    rest = [column for name, column in table.items() if name not in text]
    if len(text) != 1 or len(rest) < 2 or len(np.unique(table[text[0]])) < len(table[text[0]]):
        return None
    yes_no = all(c.dtype.kind in "fiub" and bool(np.isin(c, (0, 1)).all()) for c in rest)
    return text[0] if yes_no else None


def _columns(
    file: str, table: Mapping[str, np.ndarray], items: str | None, x: list[str], y: list[str]
) -> _Columns:
    for name in (*([] if items is None else [items]), *x, *y):
        one_of(f"column of {file}", name, table, "check the spelling")
    require(
        not (items is not None and (x or table[items].dtype.kind not in "US")),
        "items are one column of text, in place of inputs",
        got=f"x = {x}" if x else f"numbers in {items!r}",
        wanted="a column with the name of the item in each row",
        fix="leave out x, or write names such as item1 in place of 1",
    )
    if items is None and not x and not y:
        items = items_column(table)
    if items is not None:
        return _Columns(table, [items], y or [n for n in table if n != items], {}, items)
    targets = y or [name for name in table if name not in x][-1:]
    others = [name for name in table if name not in targets]
    left_out = {} if x else {name: why for name in others if (why := _useless(table[name]))}
    inputs = x or [name for name in others if name not in left_out]
    require(
        inputs and targets,
        f"{file!r} has no column that can be {'an input' if targets else 'a target'}",
        got="; ".join(f"{n}: {why}" for n, why in left_out.items())
        or f"{', '.join(targets or inputs)} alone",
        wanted="inputs and a target: two columns or more",
        fix="choose another file, or write x and y by hand",
    )
    return _Columns(table, inputs, targets, left_out)


def _of_csv(csv: Path, folder: Path, columns: _Columns) -> dict[str, Any]:
    """The values of the template for a table."""
    table, items = columns.table, columns.items
    labels = [name for name in columns.x if name == items or _is_label(table[name])]
    labels += [n for n in columns.y if table[n].dtype.kind in "US" and items is None]
    task = {
        "file": os.path.relpath(csv, folder or Path()),
        "x": columns.x,
        "y": columns.y,
        "labels": labels,
        "standardise": items is None,
    }
    groups = {} if items else _groups(table, columns.x)
    task |= {"groups": groups} if groups else {}
    shared = {"csv": csv.name, "items": items, "task": task, "groups": groups}
    if items is not None:
        return shared | {
            "title": f"Which distinctions of {csv.name} are learned first?",
            "about": "In which order are the items told apart, when, and how sure is that?",
            "asked": ASKED_OF_ITEMS,
            "steps": 3000,
        }
    return shared | {
        "title": f"When is {csv.name} learned?",
        "about": "When will a ReLU network learn this, and how near do gated networks come to it?",
        "asked": ASKED,
        "steps": 1000,
        "last": columns.y == [*table][-1:],
        "left_out": columns.left_out,
        "named": [n for n, why in columns.left_out.items() if why == DISTINCT][:1],
        "gatings": _csv_gatings(table, labels, columns.x, groups),
    }


def _useless(column: np.ndarray) -> str:
    """Why a column says nothing that a network could learn from; nothing where it may."""
    values, rows = len(np.unique(column)), len(column)
    if column.dtype.kind in "iu" and rows > 2 and (np.diff(np.sort(column)) == 1).all():
        return "it counts the rows"
    if column.dtype.kind in "US":
        if values == rows:
            return DISTINCT
        if values > max(FEW, rows // 3):
            return f"it is text with {values} values in {rows} rows"
    return "all its values are the same" if values == 1 else ""


def _is_label(column: np.ndarray) -> bool:
    values = len(np.unique(column))
    if column.dtype.kind in "USb":
        return values <= FEW
    return column.dtype.kind in "iu" and values <= min(FEW, max(2, len(column) // 3))


def _groups(table: Mapping[str, np.ndarray], inputs: list[str]) -> dict[str, list[str]]:
    """Neighbouring inputs of 0 and 1 of which one is on in every row, by what their names share."""
    groups: dict[str, list[str]] = {}
    start = 0
    while start < len(inputs):
        on, members = np.zeros(len(next(iter(table.values())))), []
        for name in inputs[start:]:
            if table[name].dtype.kind not in "fiub" or not np.isin(table[name], (0, 1)).all():
                break
            on, members = on + table[name], [*members, name]
            if on.max() > 1 or on.min() == 1:
                break
        one_hot = len(members) > 1 and (on == 1).all()
        alike = takewhile(lambda letters: len({*letters}) == 1, zip(*members, strict=False))
        shared = "".join(letters[0] for letters in alike).rstrip("_")
        if one_hot and all(n.isidentifier() and not iskeyword(n) for n in members):
            fits = shared.isidentifier() and shared.isascii() and shared not in table
            groups[shared if fits and shared not in groups else f"group{len(groups) + 1}"] = members
        start += len(members) if one_hot else 1
    return groups


def _csv_gatings(
    table: Mapping[str, np.ndarray],
    labels: list[str],
    inputs: list[str],
    groups: Mapping[str, list[str]],
) -> dict[str, dict[str, Any]]:
    """One pathway per member of a group, and per value of a label.

    Labels are those of text, else the first of whole numbers, inputs before targets. Where there
    is neither group nor label, it is two halves of a column of numbers, or a pathway per sample.
    """
    made: dict[str, dict[str, Any]] = {
        f"by_{group}": {"masks": {_ascii(n, i): f"{n} == 1" for i, n in enumerate(members)}}
        for group, members in groups.items()
    }
    shown = [n for n in labels if n.isidentifier() and 1 < len(np.unique(table[n])) <= FEW]
    shown.sort(key=lambda n: n not in inputs)
    text = [n for n in shown if table[n].dtype.kind in "US"]
    text = [n for n in text if n in inputs] or text[:1]
    for i, name in enumerate(text if text or made else shown[:1]):
        made[f"by_{_ascii(name, i, 'label')}"] = {"each": name}
    if made:
        return dict([*made.items()][:GATINGS])
    for name in inputs:
        column = table[name]
        if not name.isidentifier() or iskeyword(name) or column.dtype.kind not in "fiu":
            continue  # no name that a mask can have, or no number
        middle = f"{float(column.mean()):.6g}"
        if (column <= float(middle)).any() and (column > float(middle)).any():
            masks = {"low": f"{name} <= {middle}", "high": f"{name} > {middle}"}
            return {"halves": {"masks": masks}}
    return {"by_sample": {"each": "sample"}}


def _ascii(name: str, place: int, instead: str = "on") -> str:
    """A name that gatings and pathways can have."""
    return name if name.isascii() else f"{instead}{place + 1}"
