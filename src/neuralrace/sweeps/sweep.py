"""A function over a grid of cells: batch by batch, resumable, here or on a cluster."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.checks import file_path, one_of
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require, warn_user
from neuralrace.plot import draw_curves, style
from neuralrace.progress import progress
from neuralrace.results import Result, Sentence
from neuralrace.sweeps.cells import Failure
from neuralrace.sweeps.definition import BATCH, Definition, Function, defined
from neuralrace.sweeps.engine import Engine, check_engine, engine_of, need_packages
from neuralrace.sweeps.results import DONE, MISSING, InMemory, Results
from neuralrace.sweeps.store import read_store, tell, writing

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import xarray

TELLING = 0.5
"""Seconds between notes of how a run goes, for `status`."""


@final
@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """What a sweep has computed; see `nr.sweep`.

    `data` is an `xarray.Dataset` with the axes of the sweep as its dimensions, and NaN where a
    cell failed or is missing (whole numbers become floats there, and text is empty); `done` says of
    each cell whether it was computed; `failed` lists the cells that raised, with their errors;
    `definition` is all that the numbers depend on; `seconds` is how long all calls computed, up to
    the last batch of each that is in the store.

    ```python
    >>> import neuralrace as nr
    >>> def inverses(cells):
    ...     return [{"inverse": 1.0 / cell["x"]} for cell in cells]
    >>> found = nr.sweep(inverses, {"x": [0.0, 2.0]})
    >>> found.data["inverse"].values
    array([nan, 0.5])
    >>> print(found.failed[0])
    x=0.0: ZeroDivisionError: float division by zero

    ```
    """

    data: xarray.Dataset
    done: xarray.DataArray
    failed: tuple[Failure, ...]
    definition: Definition
    seconds: float = 0.0

    @property
    def missing(self) -> int:
        """How many cells were not computed yet; 0 when the sweep is complete."""
        return self.definition.cells - int(self.done.sum()) - len(self.failed)

    @door
    def plot(
        self,
        name: str | None = None,
        *,
        over: str | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """A result over an axis of numbers, every seed faintly; over two axes, a map.

        `name` is the first result of numbers by default, and
        `over`, the horizontal axis, the first axis; one called `seed` is averaged over.
        """
        return draw_sweep(self, name, over, ax)

    def frame(self) -> pandas.DataFrame:
        """One row per cell, and per entry of results that are arrays; NaN where there is none.

        Where cells failed, `error` says why.
        """
        data = self.data
        if self.failed:
            errors = np.full(self.done.shape, "", object)
            axes = self.definition.axes.items()
            for failure in self.failed:
                place = tuple(values.index(failure.cell[name]) for name, values in axes)
                errors[place] = failure.error
            data = data.assign(error=(tuple(self.definition.axes), errors))
        return data.to_dataframe().reset_index()

    def sentences(self) -> tuple[Sentence, ...]:
        """How many cells there are, how many are done, and the first that failed."""
        axes = " × ".join(f"{n} ({len(v)})" for n, v in self.definition.axes.items())
        counts = f"{int(self.done.sum())} done, {len(self.failed)} failed, {self.missing} missing"
        first = f"Sweep of {self.definition.cells} cells: {axes}; {counts}."
        failed = [f"failed: {failure}" for failure in self.failed[:3]]
        more = len(self.failed) - len(failed)
        failed += [f"and {more} more"] if more > 0 else []
        return Sentence("cells", first), *(Sentence("failed", text) for text in failed)


@door
def sweep(
    function: Function | str,
    axes: Mapping[str, Sequence[Any]],
    *,
    settings: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    batch: int | Mapping[str, int] = BATCH,
    dims: Mapping[str, str | Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: Mapping[str, Any] | None = None,
) -> Sweep:
    """Compute a function at every cell of a grid, batch by batch; a second call goes on.

    **What is computed:** `function(cells, **settings)`, a pure function of a list of cells. A
    cell maps the name of every axis to its value there. It returns a list with one
    `{name: array, number or text}` per cell, always with the same names, shapes and types, or an
    exception in the place of a cell that failed. `axes` maps names (also with dots,
    `task.delta`) to their values: numbers, text, or lists and mappings, whose coordinate is their
    JSON. Seeds are an axis like any other. `settings` are fixed and must be what JSON can hold.

    **Batches** are boxes of the grid: `batch` is the most cells of one, or maps axes to its size
    along them (all of an axis that is not named). They depend on nothing else, so neither do the
    numbers: cells of a batch may run as one vmapped program (see `nr.sweeps.train_relu`).

    **Where:** in this process, or on `workers` processes of this machine, or on the workers of a
    dask cluster at the address `scheduler`, or in `workers` jobs of SLURM: `slurm={"partition":
    "cpu", "cores": 8}` and any other option of `dask_jobqueue.SLURMCluster`. Each worker computes
    on one thread and imports the function by its name. The numbers are the same everywhere, bit
    for bit, where the processes have equal machines and versions and XLA uses one thread in this
    process too (`NPROC=1` in the environment): it adds up very long products per thread.

    **The store**, a folder, keeps the results as one labelled dataset in the Zarr format. A batch
    is marked done when all of it is written. After a kill at any moment, the same call computes
    what is missing. A store of another definition (function, axes, settings, batch, precision,
    version) is refused. Without a store the results are kept in memory.

    **Failures:** a cell that raises is recorded in `Sweep.failed`, and the rest goes on. A worker
    that dies is no failed cell: its batch is computed again by another. A batch that kills every
    worker, also when it runs alone, stays missing, and the call raises when the others are done.

    **Returns:** a `Sweep`. `nr.open_sweep(store)` reads it again, `nr.sweeps.status(store)` says
    how far it is. `dims` and `coords` label arrays: `dims={"loss": "time"}`, `coords={"time":
    times}`; otherwise the dimensions of a result `loss` are called `loss.0`, `loss.1`, ….

    ```python
    >>> import neuralrace as nr
    >>> def areas(cells, unit):
    ...     return [{"area": unit * cell["width"] * cell["height"]} for cell in cells]
    >>> grid = {"width": [1.0, 2.0], "height": [1.0, 2.0, 3.0]}
    >>> found = nr.sweep(areas, grid, settings={"unit": 10.0})
    >>> found.data["area"].sel(width=2.0).values
    array([20., 40., 60.])
    >>> print(found.sentences()[0].text)
    Sweep of 6 cells: width (2) × height (3); 6 done, 0 failed, 0 missing.

    ```
    """
    check_engine(workers, scheduler, slurm)
    definition, called = defined(function, axes, settings, batch, dims, coords)
    if store is None:
        path, kept = None, nullcontext(Results(definition, InMemory(definition)))
    else:
        need_packages("zarr")
        path = file_path(store, "store='runs/xor.zarr'")
        kept = writing(path, definition)
    with kept as results:
        todo = results.missing()
        dead = []
        if todo:
            with engine_of(definition, called, workers, scheduler, slurm) as engine:
                dead = _computed(results, engine, todo, path)
        found = _swept(results)
    if dead:
        raise NeuralRaceError(
            f"the workers of {len(dead)} of {definition.batches} batches died again and again",
            got=f"batch {dead[0]} of cells {definition.cells_of(dead[0])[0]} …",
            wanted="workers that live as long as a batch takes",
            fix="a smaller batch, or more memory per worker; the other batches are done",
        )
    if found.failed:
        warn_user(
            f"{len(found.failed)} of {definition.cells} cells failed, the first with "
            f"{found.failed[0]}"
        )
    return found


@door
def open_sweep(store: str | os.PathLike[str]) -> Sweep:
    """The results in a store, complete or not, also while another process writes to it.

    ```python
    >>> import tempfile, neuralrace as nr
    >>> def squares(cells):
    ...     return [{"square": cell["x"] ** 2} for cell in cells]
    >>> store = tempfile.mkdtemp()
    >>> first = nr.sweep(squares, {"x": [1, 2, 3]}, store=store)
    >>> nr.open_sweep(store).data["square"].values
    array([1, 4, 9])

    ```
    """
    need_packages("zarr")
    return _swept(read_store(file_path(store, "open_sweep('runs/xor.zarr')")))


def _computed(results: Results, engine: Engine, todo: list[int], path: Path | None) -> list[int]:
    """Compute and keep these batches; the ones whose workers died."""
    before = int((results.status != MISSING).sum())
    dead, last = [], time.perf_counter()
    with (
        progress(results.definition.cells - before, "sweep", "cells") as advance,
        _telling(path, before, engine),
    ):
        for batch, found in engine.batches(todo):
            if found is None:
                dead.append(batch)
            advance(results.give_up(batch) if found is None else results.write(batch, found))
            last, begin = time.perf_counter(), last
            results.took(last - begin)
    return dead


@contextmanager
def _telling(path: Path | None, before: int, engine: Engine) -> Iterator[None]:
    """Write down every `TELLING` seconds how a run goes, for `status`."""
    if path is None:
        yield
        return
    since, over = time.time(), threading.Event()

    def tell_again() -> None:
        while not over.wait(TELLING):
            tell(path, since, before, engine.running)

    tell(path, since, before, engine.running)
    thread = threading.Thread(target=tell_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _swept(results: Results) -> Sweep:
    import xarray

    data = results.table()
    done = xarray.DataArray(
        np.asarray(results.status == DONE),
        {name: data[name] for name in results.definition.axes},
        tuple(results.definition.axes),
        name="done",
    )
    return Sweep(data, done, results.failures(), results.definition, results.seconds)


# ---- the picture --------------------------------------------------------------------------------


SEED = "seed"
"""The axis that pictures average over."""


def draw_sweep(
    found: Sweep, name: str | None, over: str | None, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """See `Sweep.plot`."""
    if name is None:
        numbers = (n for n, each in found.data.data_vars.items() if each.dtype.kind in "biuf")
        name = str(next(numbers, ""))
    one_of("result", name, map(str, found.data.data_vars), "one of the results of the sweep")
    value = found.data[name]
    axes = [axis for axis in found.definition.axes if axis != SEED] or [SEED]
    over = axes[0] if over is None else one_of("axis", over, found.definition.axes, "an axis")
    others = [axis for axis in axes if axis != over]
    inner = [str(d) for d in value.dims if d not in found.definition.axes]
    arrays = (value, *(found.data[axis] for axis in (over, *others[:1])))
    numbers = [array.dtype.kind in "biuf" for array in arrays]
    require(
        not inner and len(others) <= 1 and all(numbers),
        f"{name!r} has no picture over {over!r} alone",
        got=f"dimensions {listed(value.dims)}",
        wanted="one number per cell, over one or two axes of numbers, and seeds",
        fix="select from sweep.data, and draw that",
    )
    if others:
        return _map(value, over, others[0], name, ax)
    seeds = SEED in value.dims and over != SEED
    drawn = value.transpose(SEED, over) if seeds else value
    return draw_curves(
        found.data[over].values, {name: drawn.values}, ylabel=name, xlabel=over, ax=ax
    )


def _map(value: Any, over: str, other: str, name: str, ax: Any) -> matplotlib.axes.Axes:
    import matplotlib.pyplot as plt

    mean = value.mean(SEED) if SEED in value.dims else value
    with style():
        ax = plt.subplots()[1] if ax is None else ax
        mesh = ax.pcolormesh(
            value[over].values, value[other].values, mean.transpose(other, over).values
        )
        ax.figure.colorbar(mesh, ax=ax, label=name)
        ax.set(xlabel=over, ylabel=other)
    return ax
