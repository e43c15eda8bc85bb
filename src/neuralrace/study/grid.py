"""The cells of a sweep: every combination of values, checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from neuralrace.study.build import build
from neuralrace.study.checking import settings_of
from neuralrace.study.document import Document
from neuralrace.study.places import Place, StudyError
from neuralrace.sweeps import Definition

if TYPE_CHECKING:
    from neuralrace.study.model import Settings


def sweep_sentence(settings: Settings) -> str:
    """What a sweep computes: its cells, what is varied, seeds and batches."""
    sweep = settings.sweep
    assert sweep is not None
    axes = {**{key: len(values) for key, values in sweep.axes.items()}, "seed": sweep.seeds}
    batches = Definition.count(axes, sweep.batch)
    told = " × ".join(f"{name} ({count})" for name, count in axes.items())
    many = f"{batches} batches" if batches > 1 else "one batch"
    return f"sweep: {math.prod(axes.values())} cells, {told}, in {many} of at most {sweep.batch}"


def check_grid(settings: Settings, document: Document) -> Iterator[StudyError]:
    """What is wrong with a sweep, a phase diagram or the small version of a study.

    Every value of every axis by itself must make a study that can be built.
    """
    place, diagram = document.place, settings.phase_diagram
    axes = [(key, values, place / "sweep" / "over" / key) for key, values in settings.axes.items()]
    if diagram is not None:
        axes.append((diagram.key, diagram.points, place / "phase_diagram" / "key"))
    for key, values, where in axes:  # the first thing that is wrong
        every = (e for value in values for e in _check_changes({key: value}, document, where))
        yield from islice(every, 1)
    if settings.quick:
        yield from _check_changes(settings.quick, document, place / "quick")


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
