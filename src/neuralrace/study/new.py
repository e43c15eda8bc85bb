"""A study to begin with: commented, with every section, for a task of the papers or for a CSV."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any, final

import numpy as np

from neuralrace.checks import file_path, list_of_names, one_of, put_file
from neuralrace.errors import NeuralRaceError
from neuralrace.study.document import to_toml, toml_value
from neuralrace.study.files import read_table

FEW = 8
"""A column of text or of whole numbers with at most this many values may be a label, and may have
one pathway per value."""

DISTINCT = "every row has another value"
"""Why a column that names the rows is left out."""

_HEAD = """# A study: a question in a file. Lines that begin with # are comments.
#   neuralrace check FILE    says whether it can be run
#   neuralrace run FILE      runs it and writes a report
# docs/studies.md describes every key.

title = {title}
about = {about}

# What to answer. Also: {also}.
questions = {questions}
"""

ASKED = '["contest", "predict", "train", "discover", "certify"]'
"""The questions of a new study."""

ALSO = '"reduce", "modes", "types", "explain"'
"""Questions that a new study does not ask."""

ASKED_OF_ITEMS = '["modes", "predict", "train"]'
"""The questions of a new study of items and their properties."""

ALSO_OF_ITEMS = '"contest", "reduce", "types", "discover", "certify", "explain"'
"""Questions that a new study of items does not ask."""

_TASK = """
# The task: a function of nr.tasks with its parameters. Or a table,
#   file = "my.csv"          (also .npz and .nc)
#   x = ["size", "weight"]   columns that are inputs; text becomes one column per value
#   y = ["sweet"]            columns that are targets
#   labels = ["kind"]        columns that say what a sample is, for the masks below
# or a function of your own: python = "my_task:make" for `def make():` in my_task.py.
[task]
builtin = "extended_xor"
parameters = { delta = 0.4 }
"""

_NETWORK = """
# The ReLU network. `widths = [64, 64]` has two hidden layers; [network.graph] is a graph.
[network]
widths = {width}
scale = 1e-3    # standard deviation of the initial weights; small is the rich regime
"""

_XOR_GATINGS = """
# Candidate gatings: for each pathway an expression that says where it is on.
# Names are labels, columns of the file, and nodes: x[0] is the first input. The words are
# ==, !=, <, <=, >, >=, in, not in, and, or, not; `always` is on for every sample.
[gatings.linear]
masks = { positive = "y > 0", negative = "y < 0" }

# One pathway for every value of a label; "sample" has one for each sample.
[gatings.xor]
each = "sample"
"""

_ITEMS = """
# How many random starts say which neighbours in the order are ties.
[modes]
seeds = 10

# One pathway that is always on: a linear network.
[gatings.one]
masks = { all = "always" }
"""

_REST = """
# Any option of nr.train, and how many networks.
[training]
learning_rate = 0.1
steps = {steps}
seeds = 2
key = 0         # all randomness comes from this number

# 'First' means first to reach the criterion.
[contest]
{contest}

# The small version, for `--quick`.
[quick]
training.steps = 100
network.widths = 32
discover.most = 3

# The same questions over a grid, on several workers: `neuralrace run FILE --workers 4`.
# [sweep]
# seeds = 10
# [sweep.over]
# "network.scale" = [1e-4, 1e-3, 1e-2]
"""


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
    if path.exists():
        raise NeuralRaceError(
            f"{str(path)!r} exists already",
            got="a file of that name",
            wanted="a name that is not taken",
            fix="choose another name, or remove the file",
        )
    given = list_of_names("x", x), list_of_names("y", y)
    if csv is None and (items is not None or any(given)):
        raise NeuralRaceError(
            "columns are those of a table, and there is none",
            got=f"items = {items!r}, x = {given[0]}, y = {given[1]}",
            wanted="a CSV file",
            fix="--csv my.csv, or new_study(path, 'my.csv', items='object')",
        )
    if csv is None:
        return put_file(path, _of_xor().encode())
    csv = file_path(csv, "my.csv")
    columns = _columns(csv.name, read_table(csv), items, *given)
    return put_file(path, _of_csv(csv, path.parent, columns).encode())


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
    return tomllib.loads(_of_csv(csv, csv.parent, columns)), columns.left_out


def _of_xor() -> str:
    head = _head(
        "Extended XoR",
        "Which gating does a ReLU network take up: one per class, or one per sample?",
        ASKED,
        f'{ALSO}, "phase_diagram"',
    )
    rest = _REST.replace("{steps}", "600").replace("{contest}", "criterion = 0.2")
    return head + _TASK + _NETWORK.replace("{width}", "128") + _XOR_GATINGS + rest


def _head(title: str, about: str, asked: str, also: str) -> str:
    parts = {"also": also, "title": toml_value(title), "about": toml_value(about)}
    text = _HEAD.replace("{questions}", asked)
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


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
    if items is not None and (x or table[items].dtype.kind not in "US"):
        raise NeuralRaceError(
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
    if not inputs or not targets:
        raise NeuralRaceError(
            f"{file!r} has no column that can be {'an input' if targets else 'a target'}",
            got="; ".join(f"{n}: {why}" for n, why in left_out.items())
            or f"{', '.join(targets or inputs)} alone",
            wanted="inputs and a target: two columns or more",
            fix="choose another file, or write x and y by hand",
        )
    return _Columns(table, inputs, targets, left_out)


def _of_csv(csv: Path, folder: Path, columns: _Columns) -> str:
    table, items = columns.table, columns.items
    labels = [name for name in columns.x if name == items or _is_label(table[name])]
    labels += [n for n in columns.y if table[n].dtype.kind in "US" and items is None]
    lines: dict[str, Any] = {
        "file": os.path.relpath(csv, folder or Path()),
        "x": columns.x,
        "y": columns.y,
        "labels": labels,
        "standardise": items is None,
    }
    task = f"\n{_said(csv, columns)}{to_toml({'task': lines})}"
    network = _NETWORK.replace("{width}", "64")
    contest = "criterion = 0.5\nrelative = true    # half of the loss of answering zero"
    rest = _REST.replace("{contest}", contest)
    if items is not None:
        title = f"Which distinctions of {csv.name} are learned first?"
        about = "In which order are the items told apart, when, and how sure is that?"
        head = _head(title, about, ASKED_OF_ITEMS, ALSO_OF_ITEMS)
        return head + task + network + _ITEMS + rest.replace("{steps}", "3000")
    title = f"What is learned of {csv.name}?"
    about = "Which pathways learn this task first, and what do ReLU networks do?"
    gatings = _csv_gatings(table, labels, columns.x)
    return (
        _head(title, about, ASKED, ALSO)
        + task
        + network
        + gatings
        + rest.replace("{steps}", "1000")
    )


def _said(csv: Path, columns: _Columns) -> str:
    """What the columns were taken for, as comments."""
    if columns.items is not None:
        return (
            "# The task: a table of items and their properties. Every row is an item, named by\n"
            f"# {columns.items!r}: the input is 1 for its name and 0 for all others. All other\n"
            "# columns are targets, as they are. If a column is to be predicted from the others,\n"
            f"#   neuralrace new FILE --csv {csv.name} --y COLUMN\n"
        )
    last = columns.y == list(columns.table)[-1:]
    taken = "The last column was taken as the target;" if last else "Inputs are x, targets y;"
    named = [n for n, why in columns.left_out.items() if why == DISTINCT]
    return (
        f"# The task: a table with one row per sample. {taken}\n"
        "# text is one column of 0 and 1 per value. Inputs are shifted and scaled.\n"
        + "".join(f"# Left out: {name!r}, {why}.\n" for name, why in columns.left_out.items())
        + "".join(
            f"# If {name!r} names items whose properties are to be learned,\n"
            f"#   neuralrace new FILE --csv {csv.name} --items {name}\n"
            for name in named[:1]
        )
    )


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


def _csv_gatings(table: Mapping[str, np.ndarray], labels: list[str], inputs: list[str]) -> str:
    """One pathway that is always on, against one per value of a label, or two halves.

    The label is the first text, else the first of whole numbers; the target comes last.
    """
    text = (
        "\n# Candidate gatings: for each pathway an expression that says where it is on.\n"
        "# Names are the columns of the file. The words are\n"
        "# ==, !=, <, <=, >, >=, in, not in, and, or, not; `always` is on for every sample.\n"
        '[gatings.one]\nmasks = { all = "always" }\n'
    )
    shown = [n for n in labels if n.isidentifier() and 1 < len(np.unique(table[n])) <= FEW]
    shown.sort(key=lambda n: (n not in inputs, table[n].dtype.kind not in "US"))
    if shown:
        name = f"by_{shown[0]}" if shown[0].isascii() else "by_label"
        return text + f"\n[gatings.{name}]\neach = {toml_value(shown[0])}\n"
    for name in inputs:
        column = table[name]
        if not name.isidentifier() or iskeyword(name) or column.dtype.kind not in "fiu":
            continue  # no name that a mask can have, or no number
        middle = f"{float(column.mean()):.6g}"
        if (column <= float(middle)).any() and (column > float(middle)).any():
            masks = f'{{ low = "{name} <= {middle}", high = "{name} > {middle}" }}'
            return text + f"\n[gatings.halves]\nmasks = {masks}\n"
    return text + '\n[gatings.by_sample]\neach = "sample"\n'
