"""The cells of a sweep: every combination of values, checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.study.build import build
from neuralrace.study.checking import settings_of
from neuralrace.study.document import Document
from neuralrace.study.places import Place, StudyError
from neuralrace.sweeps import Definition

if TYPE_CHECKING:
    from neuralrace.study.model import PhaseOptions, Settings, Sweep

MOST = 1_000_000
"""Cells of a sweep. More would be a slip of the pen."""


def spread(values: Any) -> list[Any]:
    """The values of an axis: those listed, or evenly spaced ones.

    ```python
    >>> from neuralrace.study.grid import spread
    >>> from neuralrace.study.model import Spread
    >>> spread(Spread(start=0.0, stop=2.0, count=5)), spread((1, 2))
    ([0.0, 0.5, 1.0, 1.5, 2.0], [1, 2])

    ```
    """
    if isinstance(values, tuple):
        return list(values)
    if values.log:
        return np.geomspace(values.start, values.stop, values.count).tolist()
    return np.linspace(values.start, values.stop, values.count).round(12).tolist()


def axes_of(settings: Settings) -> dict[str, list[Any]]:
    """The keys that a sweep varies, with their values."""
    return {} if settings.sweep is None else {k: spread(v) for k, v in settings.sweep.over.items()}


def sweep_sentence(settings: Settings) -> str:
    """What a sweep computes: its cells, what is varied, seeds and batches."""
    sweep = settings.sweep
    assert sweep is not None
    axes = {**{key: len(values) for key, values in axes_of(settings).items()}, "seed": sweep.seeds}
    batches = Definition.count(axes, sweep.batch)
    told = " × ".join(f"{name} ({count})" for name, count in axes.items())
    many = f"{batches} batches" if batches > 1 else "one batch"
    return f"sweep: {math.prod(axes.values())} cells, {told}, in {many} of at most {sweep.batch}"


def check_grid(settings: Settings, document: Document) -> Iterator[StudyError]:
    """What is wrong with a sweep, a phase diagram or the small version of a study.

    Every value of every axis by itself must make a study that can be built.
    """
    place = document.place
    if settings.sweep is not None:
        if settings.training.checkpoint is not None:
            yield (place / "training" / "checkpoint").error(
                "all cells of a sweep would use the same checkpoint",
                got=repr(settings.training.checkpoint),
                wanted="no checkpoint: a sweep continues from its own store",
                fix="leave out checkpoint",
            )
        yield from _check_sweep(settings, settings.sweep, document, place / "sweep" / "over")
    if settings.phase_diagram is not None:
        yield from _check_phases(settings.phase_diagram, document, place / "phase_diagram")
    if settings.quick:
        yield from _check_changes(settings.quick, document, place / "quick")


def _check_sweep(
    settings: Settings, sweep: Sweep, document: Document, here: Place
) -> Iterator[StudyError]:
    wrong = [e for key, values in sweep.over.items() for e in _check_spread(values, here / key)]
    yield from wrong
    if wrong:
        return
    axes = axes_of(settings)
    if not axes and sweep.seeds == 1:
        yield here.error(
            "the sweep varies nothing",
            got="no keys, and one seed",
            wanted="at least one dotted key with values, or several seeds",
            fix='for example "task.parameters.delta" = [0.4, 1.2]',
        )
    cells = sweep.seeds * int(np.prod([len(v) for v in axes.values()], dtype=float))
    if cells > MOST:
        yield here.error(
            "the sweep has too many cells",
            got=f"{cells} cells",
            wanted=f"at most {MOST}",
            fix="take fewer values, or split the study",
        )
        return
    for key, values in axes.items():
        yield from _check_axis(key, values, document, here)


def _check_phases(options: PhaseOptions, document: Document, here: Place) -> Iterator[StudyError]:
    wrong = list(_check_spread(options.values, here / "values"))
    yield from wrong
    if wrong:
        return
    values = spread(options.values)
    if len(values) < 2 or any(b <= a for a, b in pairwise(values)):
        yield (here / "values").error(
            "the values must increase",
            got=f"{values[:6]}",
            wanted="two or more increasing numbers",
            fix="sort them, and leave out what stands twice",
        )
    yield from _check_axis(options.key, values, document, here, named="key")
    at = options.networks_at
    if at is not None and not set(at) <= set(values):
        odd = sorted(set(at) - set(values))
        yield (here / "networks_at").error(
            "networks are trained at some of the values",
            got=f"{odd[:4]}",
            wanted="values of the phase diagram",
            fix="add them to values, or leave them out",
        )


def _check_spread(values: Any, place: Place) -> Iterator[StudyError]:
    if isinstance(values, tuple):
        if not values:
            yield place.error(
                "there are no values", got="[]", wanted="at least one", fix="list some values"
            )
        return
    if values.stop <= values.start or (values.log and values.start <= 0):
        yield place.error(
            "these values do not increase" if values.stop <= values.start else "no logarithm",
            got=f"start = {values.start:g}, stop = {values.stop:g}",
            wanted="start below stop" + (", both positive" if values.log else ""),
            fix="exchange them" if values.stop <= values.start else "leave out log",
        )


def _check_axis(
    key: str, values: list[Any], document: Document, place: Place, named: str = ""
) -> Iterator[StudyError]:
    """The first thing that is wrong with an axis."""
    where = place / (named or key)
    if named and key.split(".")[0] not in ("task", "gatings"):
        yield where.error(
            "a phase diagram varies the task or its gatings",
            got=key,
            wanted="a key of task or gatings",
            fix="for example task.parameters.delta; [sweep] varies any key",
        )
        return
    fixed = ("sweep", "phase_diagram", "quick", "questions", "title", "about")
    if key.split(".")[0] in fixed or key == "training.seeds":
        yield where.error(
            "this key cannot be varied",
            got=key,
            wanted="a key of task, network, gatings, training or contest",
            fix="set sweep.seeds" if key == "training.seeds" else "try task.parameters.delta",
        )
        return
    every = (e for value in values for e in _check_changes({key: value}, document, where))
    yield from islice(every, 1)


def _check_changes(
    changes: Mapping[str, Any], document: Document, place: Place
) -> Iterator[StudyError]:
    """The changed study can be built; what is wrong with it is an error of this place."""
    plain = {k: v for k, v in document.content.items() if k not in ("sweep", "quick")}
    try:
        made = Document(plain, document.file, document.folder).changed(changes, "sweep")
        build(settings_of(made), made)
    except StudyError as error:
        said = ", ".join(f"{k} = {v!r:.40}" for k, v in changes.items())
        yield place.error(
            f"with {said:.120} the study is wrong: {error.key}: {error.problem}",
            got=error.got,
            wanted=error.wanted,
            fix=error.fix,
        )
