"""The cells of a sweep: every combination of values, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.study.build import build
from neuralrace.study.checking import settings_of
from neuralrace.study.document import Document
from neuralrace.study.places import Place, StudyError

if TYPE_CHECKING:
    from neuralrace.study.model import Settings

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


def check_grid(settings: Settings, document: Document) -> None:
    """Every value of every axis by itself makes a study that can be built."""
    place = document.place
    if settings.sweep is not None:
        here = place / "sweep" / "over"
        if settings.training.checkpoint is not None:
            raise (place / "training" / "checkpoint").error(
                "all cells of a sweep would use the same checkpoint",
                got=repr(settings.training.checkpoint),
                wanted="no checkpoint: a sweep continues from its own store",
                fix="leave out checkpoint",
            )
        for key, values in settings.sweep.over.items():
            _check_spread(values, here / key)
        axes = axes_of(settings)
        if not axes and settings.sweep.seeds == 1:
            raise here.error(
                "the sweep varies nothing",
                got="no keys, and one seed",
                wanted="at least one dotted key with values, or several seeds",
                fix='for example "task.parameters.delta" = [0.4, 1.2]',
            )
        cells = settings.sweep.seeds * int(np.prod([len(v) for v in axes.values()], dtype=float))
        if cells > MOST:
            raise here.error(
                "the sweep has too many cells",
                got=f"{cells} cells",
                wanted=f"at most {MOST}",
                fix="take fewer values, or split the study",
            )
        for key, values in axes.items():
            _check_axis(key, values, document, here)
    if settings.phase_diagram is not None:
        here = place / "phase_diagram"
        _check_spread(settings.phase_diagram.values, here / "values")
        values = spread(settings.phase_diagram.values)
        if len(values) < 2 or any(b <= a for a, b in pairwise(values)):
            raise (here / "values").error(
                "the values must increase",
                got=f"{values[:6]}",
                wanted="two or more increasing numbers",
                fix="sort them, and leave out what stands twice",
            )
        _check_axis(settings.phase_diagram.key, values, document, here, named="key")
        at = settings.phase_diagram.networks_at
        if at is not None and not set(at) <= set(values):
            odd = sorted(set(at) - set(values))
            raise (here / "networks_at").error(
                "networks are trained at some of the values",
                got=f"{odd[:4]}",
                wanted="values of the phase diagram",
                fix="add them to values, or leave them out",
            )
    if settings.quick:
        _check_changes(settings.quick, document, place / "quick")


def _check_spread(values: Any, place: Place) -> None:
    if isinstance(values, tuple):
        if not values:
            raise place.error(
                "there are no values", got="[]", wanted="at least one", fix="list some values"
            )
        return
    if values.stop <= values.start or (values.log and values.start <= 0):
        raise place.error(
            "these values do not increase" if values.stop <= values.start else "no logarithm",
            got=f"start = {values.start:g}, stop = {values.stop:g}",
            wanted="start below stop" + (", both positive" if values.log else ""),
            fix="exchange them" if values.stop <= values.start else "leave out log",
        )


def _check_axis(
    key: str, values: list[Any], document: Document, place: Place, named: str = ""
) -> None:
    where = place / (named or key)
    if named and key.split(".")[0] not in ("task", "gatings"):
        raise where.error(
            "a phase diagram varies the task or its gatings",
            got=key,
            wanted="a key of task or gatings",
            fix="for example task.parameters.delta; [sweep] varies any key",
        )
    fixed = ("sweep", "phase_diagram", "quick", "questions", "title", "about")
    if key.split(".")[0] in fixed or key == "training.seeds":
        raise where.error(
            "this key cannot be varied",
            got=key,
            wanted="a key of task, network, gatings, training or contest",
            fix="set sweep.seeds" if key == "training.seeds" else "try task.parameters.delta",
        )
    for value in values:
        _check_changes({key: value}, document, where)


def _check_changes(changes: Mapping[str, Any], document: Document, place: Place) -> None:
    """The changed study can be built; what is wrong with it is an error of this place."""
    plain = {k: v for k, v in document.content.items() if k not in ("sweep", "quick")}
    try:
        made = Document(plain, document.file, document.folder).changed(changes, "sweep")
        build(settings_of(made), made)
    except StudyError as error:
        said = ", ".join(f"{k} = {v!r:.40}" for k, v in changes.items())
        raise place.error(
            f"with {said:.120} the study is wrong: {error.key}: {error.problem}",
            got=error.got,
            wanted=error.wanted,
            fix=error.fix,
        ) from error
