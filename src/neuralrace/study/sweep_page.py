"""The report of a sweep: where the winner changes, how the answers change, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralrace.report import (
    Curve,
    Curves,
    File,
    Page,
    Part,
    Section,
    Setting,
    Table,
    Text,
    provenance,
)
from neuralrace.results import Sentence
from neuralrace.study.page import settings_with_sources
from neuralrace.study.questions import NEVER, OUTPUTS, SEE, about, described, output_of
from neuralrace.text import percent

if TYPE_CHECKING:
    import pandas
    import xarray

    from neuralrace.study.study import Study
    from neuralrace.sweeps import Sweep

SEED = "seed"
"""The axis of the repetitions."""

DRAWN = 8
"""Curves of one picture that can be told apart by their colours."""

COMBINATIONS = 4
"""Combinations of the other axes for which a sentence is written; the table has all."""

HEADLINE = ("times", "winner")
"""Sentences at the top of the page."""

DIFFER, FAILED = "seeds have different winners", "no cell has an answer"
"""What stands in the place of a winner."""


def sweep_sentences(found: Sweep) -> tuple[Sentence, ...]:
    """The headline, how the chief outputs change, what failed, and what is missing and why."""
    names = in_order(found)
    chief = [n for n in names if (output := output_of(n)) is not None and output.chief]
    changes = (line for name in chief for line in _change(found, name))
    said = {"times": _times(found), "winner": _winners(found), "change": changes}
    missing = (Sentence("missing", text) for text in _missing(found))
    front = (Sentence(name, text) for name, texts in said.items() for text in texts)
    return *front, *found.sentences(), *missing


def in_order(found: Sweep) -> list[str]:
    """The outputs in the order of the questions; those of no study come last."""
    order = {output.name: i for i, output in enumerate(OUTPUTS)}
    place = lambda name: order[o.name] if (o := output_of(name)) is not None else len(order)
    return sorted(map(str, found.data.data_vars), key=place)


def _times(found: Sweep) -> Iterator[str]:
    """How far the predicted times of the ReLU network are from those of trained ones."""
    if not {"time_wide", "time_trained"} <= {*map(str, found.data.data_vars)}:
        return
    means = [found.data[name].mean(SEED, skipna=False) if SEED in found.data[name].dims
             else found.data[name] for name in ("time_wide", "time_trained")]  # fmt: skip
    wide, trained = (mean.values.ravel() for mean in means)
    there = np.isfinite(wide) & np.isfinite(trained)
    if not there.any():
        return
    wide, trained = wide[there], trained[there]
    off = np.abs(wide / trained - 1)
    yield (
        f"A ReLU network is predicted to learn at t = {wide.min():.4g} to {wide.max():.4g}; "
        f"trained ones do at t = {trained.min():.4g} to {trained.max():.4g}. The two differ by "
        f"{percent(off.max())} at most, and by {percent(off.mean())} on average."
    )


def _winners(found: Sweep) -> Iterator[str]:
    """Where the winner changes over the first axis of numbers."""
    if "winner" not in found.data:
        return
    there = found.done.values & (_refused(found, "contest") == "")
    winners, done = found.data["winner"].where(there, FAILED), int(there.sum())
    known = sorted(set(winners.values.ravel().tolist()) - {FAILED})
    if not known:
        return
    if len(known) == 1:
        yield f"{_who(known[0])} in all {done} cells that have an answer."
        return
    over = _over(winners)
    if over is None:
        counts = [f"{_who(name)} in {int((winners == name).sum())}" for name in known]
        yield f"Of {done} cells: {'; '.join(counts)}."
        return
    for where, part in _parts(winners, over):
        names = [_agreed(part.sel({over: value})) for value in part[over].values]
        places = zip(names, part[over].values.tolist(), strict=True)
        runs = groupby(places, key=lambda place: place[0])
        of = short_name(over, winners.dims)
        told = [f"{_who(name)} {_span(of, [v for _, v in those])}" for name, those in runs]
        yield f"{where}{'; '.join(told)}."
    others = winners.size // winners.sizes[over] // winners.sizes.get(SEED, 1)
    if others > COMBINATIONS:
        yield f"`cells.csv` has the winners of the other {others - COMBINATIONS} combinations."


def _who(name: str) -> str:
    """A winner in words, or why there is none."""
    if name in (DIFFER, FAILED):
        return name
    return f"{name} learns first" if name else "no gating reaches the criterion"


def _agreed(winners: xarray.DataArray) -> str:
    names = set(np.atleast_1d(winners.values).tolist()) - {FAILED} or {FAILED}
    return names.pop() if len(names) == 1 else DIFFER


def short_name(name: str, axes: Iterable[Any]) -> str:
    """The last part of a dotted key that is swept, where no other one ends in it."""
    last = name.rpartition(".")[2]
    return name if [str(axis).rpartition(".")[2] for axis in axes].count(last) > 1 else last


def _span(over: str, values: Sequence[Any]) -> str:
    first, last = _number(values[0]), _number(values[-1])
    return f"at {over} = {first}" if len(values) == 1 else f"from {over} = {first} to {last}"


def _number(value: Any) -> str:
    return f"{value:.4g}" if np.asarray(value).dtype.kind in "fiu" else str(value)


def _over(values: xarray.DataArray) -> str | None:
    """The first axis of several increasing numbers."""
    for name in map(str, values.dims):
        numbers = values[name].dtype.kind in "fiu" and values.sizes[name] > 1
        if name != SEED and numbers and (np.diff(values[name]) > 0).all():
            return name
    return None


def _parts(values: xarray.DataArray, over: str) -> Iterator[tuple[str, xarray.DataArray]]:
    """The values for each combination of the other axes but seeds, with words for it."""
    others = [str(d) for d in values.dims if d not in (over, SEED)]
    combinations = list(product(*(values[d].values for d in others)))
    for those in combinations[:COMBINATIONS]:
        place = dict(zip(others, those, strict=True))
        where = ", ".join(f"{short_name(n, values.dims)} = {_number(v)}" for n, v in place.items())
        yield (f"With {where}: " if where else ""), values.sel(place)


def _change(found: Sweep, name: str) -> Iterator[str]:
    """A chief output from the first to the last value of the first axis, means over seeds."""
    values = found.data[name]
    over = _over(values)
    if over is None or not np.isfinite(values).any():
        return
    seeds = values.sizes.get(SEED, 1)
    mean = values.mean(SEED, skipna=False) if SEED in values.dims else values
    for where, part in _parts(mean, over):
        short = short_name(over, values.dims)
        told = [
            f"{float(part.isel({over: i})):.3g} at {short} = {_number(part[over].values[i])}"
            for i in (0, -1)
            if np.isfinite(part.isel({over: i}))
        ]
        of = f" (means of {seeds} seeds)" if seeds > 1 else ""
        if told:
            yield f"{where}{name}, {about(name)}: {', '.join(told)}{of}."


def _refused(found: Sweep, question: str) -> np.ndarray:
    """Why a question has no answer, for every cell; empty where it has one."""
    reasons = np.full(found.done.shape, "", object)
    if "refused" in found.data:
        for place, text in np.ndenumerate(found.data["refused"].values):
            reasons[place] = json.loads(text or "{}").get(question, "")
    return reasons


def _missing(found: Sweep) -> Iterator[str]:
    """Questions without an answer and outputs without a value, with the reasons."""
    done = found.done.values
    asked = dict.fromkeys(o.question for n in in_order(found) if (o := output_of(n)) is not None)
    refused = {question: _refused(found, question) for question in asked}
    for question, reasons in refused.items():
        those = reasons[done].tolist()
        for reason in filter(None, dict.fromkeys(those)):
            count = f"{those.count(reason)} of {int(done.sum())} cells"
            yield f"`{question}` has no answer in {count}: {reason}."
    for name in in_order(found):
        values, output = found.data[name], output_of(name)
        if values.dtype.kind == "O":
            continue
        there = done if output is None else done & (refused[output.question] == "")
        why = "" if output is None else output.missing
        never, unknown = (int((f(values.values) & there).sum()) for f in (np.isinf, np.isnan))
        for count, reason in ((never, NEVER), (unknown, why)):
            if count and reason != SEE:  # told below
                said = f": {reason}" if reason else ""
                yield f"{name} has no value in {count} of {int(there.sum())} cells{said}."
    if "left_out" in found.data:
        cells = [json.loads(cell or "{}") for cell in found.data["left_out"].values[done]]
        reasons = [f"{row}: {why}" for cell in cells for row, why in cell.items()]
        for reason in dict.fromkeys(reasons):
            yield f"Left out of `explain` in {reasons.count(reason)} cells: {reason}."


# ---- the page -----------------------------------------------------------------------------------


def sweep_page(
    study: Study, found: Sweep, frame: pandas.DataFrame, files: Sequence[File], command: str
) -> Page:
    """The page of a sweep; `frame` is the table of its cells, `files` what the study reads."""
    sentences = sweep_sentences(found)
    headline = [said for said in sentences if said.id in HEADLINE] or [*sentences[:1]]
    others = (said.text for said in sentences if said not in headline)
    over: list[Part] = [Text("\n\n".join(others))]
    for _, names in groupby(in_order(found), key=_chart):
        over += curves(found, list(names))
    # a page shows so many; all are in the CSV file
    cells = Table.of(frame.head(2000), "Cells")
    seeds = found.definition.axes.get(SEED, [1])
    return Page(
        title=study.title,
        question=study.settings.about or "How do the answers change?",
        answer=[said.text for said in headline],
        sections=[
            Section("Over the sweep", over),
            Section("What the outputs are", [_outputs(found)]),
            Section("Every cell", [cells], folded=True),
        ],
        settings=list(_settings(study)),
        files=[*files, File("cells.csv", "every cell", frame.to_csv(index=False))],
        provenance=provenance(seeds=list(seeds), command=command, seconds=found.seconds),
    )


def _chart(name: str) -> str:
    """What an output is drawn with."""
    output = output_of(name)
    return name if output is None else output.chart or output.name


def _settings(study: Study) -> Iterator[Setting]:
    """Every setting; those that are swept say so."""
    axes = study.settings.axes
    for setting in settings_with_sources(study):
        if setting.name == "training.seeds":
            continue  # a cell has one network; `sweep.seeds` counts
        inside = [key for key in axes if key == setting.name or key.startswith(f"{setting.name}.")]
        if inside:
            value = "swept" if setting.name in inside else f"{setting.value}; swept: {inside[0]}"
            yield replace(setting, value=value, source="sweep.over", default=None)
        else:
            yield setting


def _outputs(found: Sweep) -> Table:
    """Every output: what it is, its range, and in how many cells it has no value."""
    rows: list[list[Any]] = []
    for name in in_order(found):
        values, output = found.data[name], output_of(name)
        what = about(name)
        what += "; of the gating `followed`" if output is not None and output.followed else ""
        if values.dtype.kind == "O":
            rows.append([name, what, None, None, None])
            continue
        known = values.values[np.isfinite(values.values)]
        ends = [known.min(), known.max()] if known.size else [None, None]
        gone = int((~np.isfinite(values.values) & found.done.values).sum())
        rows.append([name, what, *map(_cell, ends), gone])
    head = ("output", "what it is", "least", "largest", "cells without a value")
    return Table(head, rows, "Every output of the sweep", "outputs.csv")


def _cell(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def curves(found: Sweep, names: Sequence[str]) -> list[Curves]:
    """Outputs over the first axis that increases, one curve per combination of the others.

    There are several outputs where each gating has its own, and one curve for each. What belongs
    to the gating that is followed has one curve for each such gating.
    """
    drawn = [curve for name in names for curve in _drawn(found, name, names)]
    first = _over(found.data[names[0]])
    if not drawn or first is None:
        return []
    output = output_of(names[0])
    ylabel, what = names[0], described(names[0])
    if output is not None and output.chart:
        ylabel, what = output.chart, "; ".join(map(described, names))
    elif output is not None and len(names) > 1:
        ylabel = output.name.removesuffix("_NAME")
        what = f"{output.name}: {output.what.replace('this gating', 'each gating')}"
    followed = output is not None and output.followed
    what += "; one curve for each gating that is followed" if followed else ""
    many = f": {DRAWN} of {len(drawn)} curves; `cells.csv` has all" if len(drawn) > DRAWN else ""
    return [
        Curves(
            drawn[:DRAWN],
            xlabel=first,
            ylabel=ylabel,
            xlog=is_log_spaced(found.data[first].values),
            caption=f"{what}{many}",
            alt=f"{what}, over {first}.",
            file=f"sweep_{ylabel}.csv",
        )
    ]


def _drawn(found: Sweep, name: str, names: Sequence[str]) -> Iterator[Curve]:
    values, output = found.data[name], output_of(name)
    first = _over(values)
    if values.dtype.kind == "O" or first is None:
        return
    groups: Mapping[str, Any] = {"": values}
    charted = output is not None and bool(output.chart)
    if output is not None and output.followed and "followed" in found.data:
        which = found.data["followed"]
        groups = {n: values.where(which == n) for n in dict.fromkeys(which.values.flat) if n}
    elif output is not None and len(names) > 1 and not charted:
        groups = {name.removeprefix(output.name.removesuffix("NAME")): values}
    others = [d for d in values.dims if d not in (first, SEED)]
    for gating, those in groups.items():
        stacked = those.stack(curve=others) if others else those.expand_dims(curve=1)
        for i in range(stacked.sizes["curve"]):
            part = stacked.isel(curve=i)
            labels = [gating or name] if gating or charted else []
            labels += [f"{d} = {part[d].item()}" for d in others]
            y = part.transpose(SEED, first).values if SEED in part.dims else part.values
            if np.isfinite(y).any():
                y = np.where(np.isfinite(y), y, np.nan)  # a gap
                of = "relu" if output is not None and output.when == "trained" else "theory"
                kind = of if charted else "simulation"
                yield Curve(", ".join(labels) or name, values[first].values, y, kind)


def is_log_spaced(values: Sequence[float] | np.ndarray) -> bool:
    """Whether the logarithms of three or more values are more evenly spaced than the values.

    They range over a decade at least.

    Spacings are compared by their standard deviation over their mean.

    ```python
    >>> from neuralrace.study.sweep_page import is_log_spaced
    >>> is_log_spaced([1e-4, 3e-4, 1e-3]), is_log_spaced([1, 2, 3])
    (True, False)

    ```
    """
    values = np.asarray(values, float)
    if len(values) < 3 or (values <= 0).any() or values.max() < 10 * values.min():
        return False
    linear, logs = np.diff(values), np.diff(np.log(values))
    return bool(logs.std() / logs.mean() < linear.std() / linear.mean())
