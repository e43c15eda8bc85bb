"""A study to begin with: commented, with every section, for a task of the papers or for a CSV."""

from __future__ import annotations

import os
from keyword import iskeyword
from pathlib import Path

import numpy as np

from neuralrace.checks import file_path
from neuralrace.errors import NeuralRaceError
from neuralrace.study.document import to_toml, toml_value
from neuralrace.study.files import read_table

FEW = 12
"""A column of numbers with at most this many whole values may be a label."""

_HEAD = """# A study: a question in a file. Lines that begin with # are comments.
#   neuralrace check FILE    says whether it can be run
#   neuralrace run FILE      runs it and writes a report
# docs/studies.md describes every key.

title = {title}
about = {about}

# What to answer. Also: "reduce", "types", "explain", "phase_diagram".
questions = ["contest", "predict", "train", "discover", "certify"]
"""

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

    The last column of the CSV is taken as the target; columns of text and of few whole numbers as
    labels; the other columns as inputs. Change what is not meant. An existing file is not
    overwritten.

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NeuralRaceError(
            f"cannot write {str(path)!r}",
            got=error.strerror or type(error).__name__,
            wanted="a place that can be written to",
            fix="choose another folder",
        ) from error
    return path


def _of_xor() -> str:
    head = _HEAD.replace("{title}", '"Extended XoR"').replace(
        "{about}", '"Which gating does a ReLU network take up: one per class, or one per sample?"'
    )
    rest = _REST.replace("{steps}", "600").replace("{contest}", "criterion = 0.2")
    return head + _TASK + _NETWORK.replace("{width}", "128") + _XOR_GATINGS + rest


def _of_csv(csv: Path, folder: Path) -> str:
    table = read_table(csv)
    *front, target = table
    labels = [name for name in front if _is_label(table[name])]
    inputs = [name for name in front if name not in labels] or labels
    if not inputs:
        raise NeuralRaceError(
            f"{csv.name!r} has one column only",
            got=target,
            wanted="inputs and a target: two columns or more",
            fix="choose another file",
        )
    values = table[target]
    classes = [*np.unique(values)] if values.dtype.kind in "US" else []
    if classes:
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
        + to_toml({"task": lines})
    )
    gatings = _csv_gatings(table, labels, inputs)
    title = toml_value(f"What is learned of {csv.name}?")
    about = toml_value("Which pathways learn this task first, and what do ReLU networks do?")
    head = _HEAD.replace("{title}", title).replace("{about}", about)
    contest = "criterion = 0.5\nrelative = true    # half of the loss of answering zero"
    rest = _REST.replace("{steps}", "1000").replace("{contest}", contest)
    return head + task + _NETWORK.replace("{width}", "64") + gatings + rest


def _is_label(column: np.ndarray) -> bool:
    if column.dtype.kind in "USb":
        return True
    whole = column.dtype.kind in "iu"
    return whole and len(np.unique(column)) <= min(FEW, max(2, len(column) // 3))


def _csv_gatings(table: dict[str, np.ndarray], labels: list[str], inputs: list[str]) -> str:
    """One pathway that is always on, against one per value of the first label, or two halves."""
    text = (
        "\n# Candidate gatings: for each pathway an expression that says where it is on.\n"
        "# Names are the columns of the file. The words are\n"
        "# ==, !=, <, <=, >, >=, in, not in, and, or, not; `always` is on for every sample.\n"
        '[gatings.one]\nmasks = { all = "always" }\n'
    )
    shown = [name for name in labels if name.isidentifier() and len(np.unique(table[name])) > 1]
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
