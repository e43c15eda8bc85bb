"""A study's result as a page of the report: answers, settings with their sources, provenance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.plot import draw_matrix, style
from neuralrace.report import (
    DEFAULT,
    File,
    Page,
    Part,
    Picture,
    Section,
    Setting,
    Table,
    Text,
    provenance,
)
from neuralrace.study.answers.answer import picture_size
from neuralrace.study.copies import SCRIPT, copied_files
from neuralrace.study.naming import feature_names, sample_names

if TYPE_CHECKING:
    from neuralrace.study.result import Result
    from neuralrace.study.study import Study

NAMED = 20
"""Rows or columns of that picture that are named one by one at most."""

UNUSED = ("sweep", "quick", "title", "about")
"""Keys that are no settings of the computation."""


def page_of(result: Result, command: str = "") -> Page:
    """The whole page."""
    study = result.study
    settings = study.settings
    asked = settings.about or " ".join(answer.title for answer in result.answers.values())
    joined = lambda said, sign: sign.join(each.text for each in said)
    answers = [joined(answer.top, " ") for answer in result.answers.values()]
    answers += [f"{question} is left out, see below." for question in result.refused]
    sections = [
        Section(answer.title, [Text(joined(answer.sentences(), "\n\n")), *answer.parts])
        for answer in result.answers.values()
    ]
    if result.refused:
        rows = [(q, e.problem, str(e.got), str(e.wanted), e.fix) for q, e in result.refused.items()]
        table = Table(("question", "why", "got", "wanted", "fix"), rows)
        sections.append(Section("What is left out, and why", [table]))
    return Page(
        title=study.title,
        question=asked,
        answer=answers,
        sections=[*sections, Section("The task", list(_task(result)))],
        settings=list(settings_with_sources(study)),
        files=_files(result),
        provenance=provenance(seeds=_seeds(settings), command=command, seconds=result.seconds),
    )


def _seeds(settings: Any) -> str:
    """How many networks of each kind there are, and the key that they are drawn from."""
    training = settings.training
    return f"{training.seeds}, drawn from key {training.key}"


def _task(result: Result) -> Iterator[Part]:
    """What is to be learned: sizes, and a picture of the targets."""
    data = result.problem.data
    yield Text("\n\n".join(f"{line[:1].upper()}{line[1:]}." for line in result.problem.sentences))
    targets = np.hstack([np.asarray(y, float) for y in data.y.values()]).T
    inputs = np.hstack([np.asarray(x, float) for x in data.x.values()]).T
    if max(*targets.shape, *inputs.shape) <= 400:  # more would not be seen
        import matplotlib.pyplot as plt

        with style():
            width, height = picture_size()
            figure, axes = plt.subplots(2, 1, figsize=(width, 2 * height))
            known, samples = feature_names(result.problem), sample_names(data)
            below = samples if samples and len(samples) <= NAMED else "sample"
            for ax, title, word, values, nodes in (
                (axes[0], "inputs", "feature", inputs, data.x),
                (axes[1], "targets", "target", targets, data.y),
            ):
                names = [name for node in nodes for name in known.get(node, [])]
                rows = names if 0 < len(names) == len(values) <= NAMED else word
                last = ax is axes[-1] or isinstance(below, str)
                draw_matrix(values, rows=rows, columns=below if last else None, ax=ax)
                ax.set_title(title)
        alt = f"Inputs and targets of {data.n_samples} samples, one column per sample."
        yield Picture.of(figure, alt=alt, caption="The task: one column per sample")
    rows = [
        (name, len(np.unique(np.asarray(label))), _some(np.unique(np.asarray(label)).tolist()))
        for name, label in data.labels.items()
    ]
    if rows:
        yield Table(("label", "values", "which"), rows, "What is known of the samples")


def _some(values: list[Any]) -> str:
    return ", ".join(map(str, values[:8])) + (" …" if len(values) > 8 else "")


def settings_with_sources(study: Study) -> Iterator[Setting]:
    """Every setting with its value and where that came from."""
    document = study.document
    asked = set(study.settings.questions)

    def walk(model: Any, before: str) -> Iterator[Setting]:
        for name, field in type(model).model_fields.items():
            key = f"{before}{name}"
            value = getattr(model, name)
            if key in UNUSED or (key in OPTIONS and not asked & set(OPTIONS[key])):
                continue
            if hasattr(type(value), "model_fields"):
                yield from walk(value, f"{key}.")
            elif isinstance(value, dict) and any(hasattr(v, "model_dump") for v in value.values()):
                for inner, section in value.items():
                    yield from walk(section, f"{key}.{inner}.")
            elif before.startswith(("gatings.", "task")) and not document.has(key):
                continue  # the other ways to name a task or a gating
            elif key in ("network.widths", "network.depth") and model.graph is not None:
                continue  # a graph has its own sizes
            else:
                yield _setting(key, value, field, _source(document, key))

    yield from walk(study.settings, "")
    sweep = study.settings.sweep
    if sweep is not None:
        about = "a key that is varied"
        for key, values in sweep.axes.items():
            source = _source(document, "sweep.over")
            yield Setting(f"sweep.over.{key}", values, source, about)
        for name in ("seeds", "batch"):
            field, key = type(sweep).model_fields[name], f"sweep.{name}"
            yield _setting(key, getattr(sweep, name), field, _source(document, key))


def _setting(key: str, value: Any, field: Any, source: str) -> Setting:
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    default = None if default in ({}, ()) else _plain(default)  # nothing to compare with
    return Setting(key, _plain(value), source, field.description or "", default)


OPTIONS = {
    "relu": ("relu",),
    "contest": ("relu", "contest", "phase_diagram", "predict", "train", "certify"),
    "predict": ("predict", "certify"),
    "discover": ("discover",),
    "reduce": ("reduce", "modes", "predict"),
    "modes": ("modes",),
    "types": ("types",),
    "explain": ("explain",),
    "phase_diagram": ("phase_diagram",),
}
"""Sections of options, and the questions that use them; others are not shown."""


def _source(document: Any, key: str) -> str:
    for changed, source in document.sources.items():
        if key == changed or changed.startswith(f"{key}.") or key.startswith(f"{changed}."):
            return source
    return Path(document.file).name if document.has(key) else DEFAULT


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        if set(value) == {""}:  # one input or one target that needs no name
            return _plain(value[""])
        return ", ".join(f"{k} = {_inside(_plain(v))}" for k, v in value.items())
    return value


def _inside(value: Any) -> str:
    """A value inside another one."""
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _files(result: Result) -> list[File]:
    files = [
        *copied_files(result.problem),
        File(SCRIPT, "a Python script that does the same", result.script),
    ]
    for answer in result.answers.values():
        files += [File(name, "every run, as netCDF") for name in answer.data]
    return files
