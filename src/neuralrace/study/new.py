"""A study to begin with: commented, with every section, for a task of the papers or for a CSV."""

from __future__ import annotations

import os
from keyword import iskeyword
from pathlib import Path

import numpy as np

from neuralrace.checks import file_path, put_file
from neuralrace.errors import NeuralRaceError
from neuralrace.study.document import to_toml, toml_value
from neuralrace.study.files import read_table

FEW = 8
"""A column of text or of whole numbers with at most this many values may be a label, and may have
one pathway per value."""

_HEAD = """# A study: a question in a file. Lines that begin with # are comments.
#   neuralrace check FILE    says whether it can be run
#   neuralrace run FILE      runs it and writes a report
# docs/studies.md describes every key.

title = {title}
about = {about}

# What to answer. Also: {also}.
questions = ["contest", "predict", "train", "discover", "certify"]
"""

ALSO = '"reduce", "types", "explain"'
"""Questions that a new study does not ask."""

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


def new_study(path: str | os.PathLike[str], csv: str | os.PathLike[str] | None = None) -> Path:
    """Write a commented study to begin with; for a CSV file, its columns are filled in.

    The last column of the CSV is taken as the target, the others as inputs; columns of text and of
    few whole numbers are also labels. Columns that count the rows, are constant, or are text with
    another value in (nearly) every row are left out, and a comment says why. Change what is not
    meant. An existing file is not overwritten.

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
    text = _of_csv(file_path(csv, "my.csv"), path.parent) if csv is not None else _of_xor()
    return put_file(path, text.encode())


def _of_xor() -> str:
    head = _HEAD.replace("{also}", f'{ALSO}, "phase_diagram"').replace("{title}", '"Extended XoR"')
    head = head.replace(
        "{about}", '"Which gating does a ReLU network take up: one per class, or one per sample?"'
    )
    rest = _REST.replace("{steps}", "600").replace("{contest}", "criterion = 0.2")
    return head + _TASK + _NETWORK.replace("{width}", "128") + _XOR_GATINGS + rest


def _of_csv(csv: Path, folder: Path) -> str:
    table = read_table(csv)
    *front, target = table
    left_out = {name: why for name in front if (why := _useless(table[name]))}
    inputs = [name for name in front if name not in left_out]
    if not inputs:
        raise NeuralRaceError(
            f"{csv.name!r} has no column that can be an input",
            got="; ".join(f"{n}: {why}" for n, why in left_out.items()) or f"{target} alone",
            wanted="inputs and a target: two columns or more",
            fix="choose another file, or write x and y by hand",
        )
    labels = [name for name in inputs if _is_label(table[name])]
    if table[target].dtype.kind in "US":
        labels.append(target)
    file = os.path.relpath(csv, folder or Path())
    lines = {
        "file": file,
        "x": inputs,
        "y": [target],
        "labels": labels,
        "standardise": True,
    }
    task = (
        "\n# The task: a table with one row per sample. The last column was taken as the target;\n"
        "# text is one column of 0 and 1 per value. Inputs are shifted and scaled.\n"
        + "".join(f"# Left out: {name!r}, {why}.\n" for name, why in left_out.items())
        + to_toml({"task": lines})
    )
    gatings = _csv_gatings(table, labels, inputs)
    title = toml_value(f"What is learned of {csv.name}?")
    about = toml_value("Which pathways learn this task first, and what do ReLU networks do?")
    head = _HEAD.replace("{also}", ALSO).replace("{title}", title).replace("{about}", about)
    contest = "criterion = 0.5\nrelative = true    # half of the loss of answering zero"
    rest = _REST.replace("{steps}", "1000").replace("{contest}", contest)
    return head + task + _NETWORK.replace("{width}", "64") + gatings + rest


def _useless(column: np.ndarray) -> str:
    """Why a column says nothing that a network could learn from; nothing where it may."""
    values, rows = len(np.unique(column)), len(column)
    if column.dtype.kind in "iu" and rows > 2 and (np.diff(np.sort(column)) == 1).all():
        return "it counts the rows"
    if column.dtype.kind in "US":
        if values == rows:
            return "every row has another value"
        if values > max(FEW, rows // 3):
            return f"it is text with {values} values in {rows} rows"
    return "all its values are the same" if values == 1 else ""


def _is_label(column: np.ndarray) -> bool:
    values = len(np.unique(column))
    if column.dtype.kind in "USb":
        return values <= FEW
    return column.dtype.kind in "iu" and values <= min(FEW, max(2, len(column) // 3))


def _csv_gatings(table: dict[str, np.ndarray], labels: list[str], inputs: list[str]) -> str:
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
