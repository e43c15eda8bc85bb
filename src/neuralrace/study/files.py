"""Tasks and masks from files: CSV, npz and netCDF."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuralrace.checks import by_name, file_path, list_of_names, real_number
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, spelled

Columns: TypeAlias = str | Iterable[str] | Mapping[str, str | Iterable[str]]
"""Names of columns: for one node, or `{node: columns}`."""

SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""What stands between columns in tables that are not separated by commas."""

KINDS = (".csv", ".npz", ".nc")


@door
def read_task(
    path: str | Path,
    x: Columns,
    y: Columns,
    labels: Iterable[str] = (),
    weight: str | None = None,
    standardise: bool = False,
    scale: Mapping[str, float] | None = None,
    groups: Mapping[str, Iterable[str]] | None = None,
) -> Dataset:
    """A task from a table: CSV (one row per sample), npz or netCDF (arrays, samples first).

    A column of text stands for one column of 0 and 1 per value, in alphabetical order, so that
    classes can be inputs or targets.

    **Arguments:** `x` and `y`, the columns (arrays) that are inputs and targets: a list for one
    node called `x` or `y`, or `{node: columns}`. `labels`, columns that say what a sample is.
    `weight`, the column of sample weights. `standardise` shifts and scales every input column to
    mean 0 and standard deviation 1; a column that is constant is only shifted, and one of −1, 0 and
    1 alone, such as a sign or a part of a one-hot code, stays as it is. `scale` multiplies columns
    of inputs and targets, by name, after that: `{"side": 0.5}` halves a cue, 0 takes it away, and 2
    makes a property that is a target twice as strong. `groups` names several columns at once:
    `groups={"cue": ["rule1", "rule2"]}` with `scale={"cue": 0.5}` multiplies both.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neuralrace import study
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("size,kind,sweet\\n1.0,pear,yes\\n2.0,fig,no\\n")
    >>> data = study.read_task(path, x=["size"], y=["sweet"], labels=["kind"])
    >>> data.y["y"], data.mask(kind="fig")
    (array([[0., 1.],
           [1., 0.]]), array([False,  True]))

    ```
    """
    table, named = read_table(path), list_of_names("labels", labels)
    nodes = {"x": _by_node(x, "x"), "y": _by_node(y, "y")}
    for end, columns in nodes.items():
        require(
            any(columns.values()),
            f"{'inputs' if end == 'x' else 'targets'} of the file are not named",
            got=f"no {end}",
            wanted=f"columns among {', '.join(table)}",
            fix=f'for example {end} = ["{next(iter(table), "column")}"]',
        )
    used = [name for end in nodes.values() for names in end.values() for name in names]
    factors = _scale(scale, used, _groups(groups, used))
    shown, wanted = (
        {node: _numbers(table, names) for node, names in nodes[end].items()} for end in "xy"
    )
    if standardise:
        shown = {node: _standard(values) for node, values in shown.items()}
    for end, values in (("x", shown), ("y", wanted)):
        for node, names in nodes[end].items():
            values[node] = values[node] * _factors(table, names, factors)
    weights = None if weight is None else _numbers(table, [weight])[:, 0]
    return Dataset(shown, wanted, None, weights, {name: _label(table, name) for name in named})


@door
def read_masks(path: str | Path) -> dict[str, np.ndarray]:
    """Masks of pathways from a file: one column (or array) of numbers per pathway.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neuralrace import study
    >>> path = Path(tempfile.mkdtemp()) / "masks.csv"
    >>> _ = path.write_text("left,right\\n1,0\\n0,1\\n")
    >>> study.read_masks(path)
    {'left': array([1., 0.]), 'right': array([0., 1.])}

    ```
    """
    table = read_table(path)
    found = {}
    for name, column in table.items():
        require(
            column.dtype.kind in "fiub" and column.ndim == 1 and np.isfinite(column).all(),
            f"the mask {name!r} does not hold one number per sample",
            got=f"{column.dtype} of shape {column.shape}",
            wanted="0 and 1, or real gates, none missing",
            fix="write 1 where the pathway is on, and 0 elsewhere",
        )
        found[name] = column.astype(float)
    return found


@door
def read_table(path: str | Path) -> dict[str, np.ndarray]:
    """The columns of a file by name: CSV, npz or netCDF.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neuralrace import study
    >>> path = Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("size,kind\\n1.0,pear\\n2.0,fig\\n")
    >>> study.read_table(path)["kind"]
    array(['pear', 'fig'], dtype='<U4')

    ```
    """
    path = file_path(path, "my.csv")
    require(
        path.suffix in KINDS,
        f"{path.name!r} is of an unknown kind",
        got=path.suffix or "no ending",
        wanted=f"a file that ends in {', '.join(KINDS)}",
        fix="save the table as CSV",
    )
    if not path.is_file():
        there = sorted(p.name for p in path.parent.glob("*") if p.suffix in KINDS)
        raise NeuralRaceError(
            f"there is no file {path.name!r}",
            got=str(path),
            wanted=f"a file that is there: {', '.join(there[:8]) or 'no table is in this folder'}",
            fix=spelled(path.name, there, "paths are relative to the folder of the study"),
        )
    try:
        table = {".csv": _csv, ".npz": _npz, ".nc": _netcdf}[path.suffix](path)
    except NeuralRaceError:
        raise
    except Exception as error:
        said = str(error).strip().splitlines()
        raise NeuralRaceError(
            f"{path.name!r} cannot be read",
            got=f"{type(error).__name__}: {said[0] if said else ''}"[:200],
            wanted=f"a table as {path.suffix[1:]}, one row per sample",
            fix="open it by hand, and save it again",
        ) from error
    require(
        table and all(len(column) for column in table.values()),
        f"{path.name!r} has no rows",
        got=f"columns {', '.join(table) or '–'}",
        wanted="one row per sample below a line with the names of the columns",
        fix="check that the file is the one you mean",
    )
    return table


def _csv(path: Path) -> dict[str, np.ndarray]:
    import pandas

    frame = pandas.read_csv(path, skipinitialspace=True)
    for sign, name in SEPARATORS.items():
        require(
            len(frame.columns) != 1 or sign not in str(frame.columns[0]),
            f"the columns of {path.name!r} are separated by {name}",
            got=f"{str(frame.columns[0])!r:.80}",
            wanted="commas between columns, and points in numbers",
            fix="save the table as CSV with commas",
        )
    found = {}
    for name in frame.columns:
        column = frame[name]
        missing = np.flatnonzero(column.isna())
        if len(missing):
            raise NeuralRaceError(
                f"column {str(name)!r} of {path.name!r} has missing values",
                got=f"nothing in sample {missing[0] + 1} (line {missing[0] + 2} of the file)"
                + (f", and {len(missing) - 1} more" if len(missing) > 1 else ""),
                wanted="a value in every row",
                fix="fill them in, or leave out these rows",
            )
        numeric = column.dtype.kind in "fiub"
        found[str(name)] = np.asarray(column if numeric else column.astype(str).to_list())
    return found


def _npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(file[name]) for name in file.files}


def _netcdf(path: Path) -> dict[str, np.ndarray]:
    import xarray

    with xarray.open_dataset(path, engine="h5netcdf") as opened:
        table = opened.load()
    found = {str(name): np.asarray(table[name]) for name in table.variables}
    return {n: np.asarray(a.tolist(), str) if a.dtype.kind == "O" else a for n, a in found.items()}


def _by_node(columns: Columns, node: str) -> dict[str, list[str]]:
    if not isinstance(columns, Mapping):
        columns = {node: columns}
    named = by_name(node, columns, f"for example {node}={{'{node}': ['size']}}")
    return {
        name or node: [those] if isinstance(those, str) else list_of_names(node, those)
        for name, those in named.items()
    }


def _column(table: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    require(
        isinstance(name, str) and name in table,
        f"the file has no column {name!r:.80}",
        got=f"{name!r:.80}",
        wanted=f"one of {', '.join(table)}",
        fix=spelled(name, table, "check the spelling"),
    )
    return table[name]


def _numbers(table: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray:
    """Columns side by side, shape (N, number of columns); text as 0 and 1 per value."""
    parts: list[Any] = []
    for name in names:
        column = _column(table, name)
        if column.dtype.kind in "US":
            parts.append(column[:, None] == np.unique(column))
        elif column.dtype.kind in "fiub" and column.ndim in (1, 2):
            parts.append(column if column.ndim == 2 else column[:, None])
        else:
            raise NeuralRaceError(
                f"column {name!r} does not hold numbers",
                got=f"{column.dtype} of shape {column.shape}",
                wanted="one number per sample, or an array of shape (N, size)",
                fix="name another column",
            )
    rows = {len(part) for part in parts}
    require(
        len(rows) <= 1,
        "these columns are not of one length",
        got=", ".join(f"{n}: {len(_column(table, n))}" for n in names),
        wanted="one row per sample in each",
        fix="check the arrays in the file",
    )
    return np.concatenate([np.asarray(part, float) for part in parts], axis=1)


def _groups(
    groups: Mapping[str, Iterable[str]] | None, used: list[str]
) -> dict[str, tuple[str, ...]]:
    """The columns of every group, checked."""
    fix = "for example groups={'cue': ['rule1', 'rule2']}"
    named = by_name("groups", groups or {}, fix)
    found = {name: tuple(list_of_names(f"group {name}", each)) for name, each in named.items()}
    for name, columns in found.items():
        unknown = [column for column in columns if column not in used]
        require(
            not unknown and name not in used,
            f"the group {name!r:.80} does not name columns of x or y",
            got=listed(unknown) if unknown else f"a column that is called {name!r:.80}",
            wanted=f"columns among {', '.join(used)}, and a name of its own",
            fix=fix,
        )
    return found


def _scale(
    scale: Mapping[str, float] | None, used: list[str], groups: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """The factors of columns that are inputs or targets, checked; those of groups multiply."""
    found: dict[str, float] = {}
    for name, factor in by_name("scale", scale or {}, "for example scale={'side': 0.5}").items():
        number = real_number(f"scale of {name}", factor, fix="for example 0.5")
        if name not in used and name not in groups:
            raise NeuralRaceError(
                f"{name!r:.80} is no input or target column, so that it cannot be scaled",
                got=f"{name!r:.80}",
                wanted=f"one of {', '.join([*used, *groups])}",
                fix=spelled(name, [*used, *groups], "name a column of x or y"),
            )
        for column in groups.get(name, (name,)):
            found[column] = found.get(column, 1.0) * number
    return found


def _factors(
    table: Mapping[str, np.ndarray], names: Iterable[str], factors: Mapping[str, float]
) -> np.ndarray:
    """The factor of every column of a node; text has as many columns as values."""
    widths = [(name, _numbers(table, [name]).shape[1]) for name in names]
    return np.concatenate([np.full(width, factors.get(name, 1.0)) for name, width in widths])


def _label(table: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    column = _column(table, name)
    require(
        column.ndim == 1,
        f"the label {name!r} is not one value per sample",
        got=f"shape {column.shape}",
        wanted="shape (N,)",
        fix="name another column",
    )
    return column


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1, but for those of −1, 0 and 1 alone, such as codes."""
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.where(np.isin(values, (-1, 0, 1)).all(axis=0), values, standard)
