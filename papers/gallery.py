"""The gallery: every figure whose data lie in a folder, on one page, with its agreement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from neuralrace.report import Code, File, Page, Part, Picture, Section, Table, Text, write
from papers.record import Record, command, shown, stored

TITLES = {
    "nrr": "The Neural Race Reduction (Saxe, Sodhani and Lewallen, 2022)",
    "mhs": "Make Haste Slowly (Jarvis, Klein, Rosman and Saxe, 2025)",
    "talk": "Models of representation learning dynamics (Saxe, talk)",
    "rnn": "Linear recurrent networks (our own)",
    "attention": "In-context regression in linear attention (our own)",
    "multimodal": "Two modalities in one network (our own)",
    "learned_gates": "Gates that are learned (our own)",
}
"""The papers, by the folder of their figures."""

ABOUT = {"pdf": "", "png": "", "svg": "", "nc": "the data"}
"""The files of a figure, by how their names end, and what they are."""


CHANGED = "Bounds are those for the default settings, of which some are changed here."
"""What is said below the agreement of a figure with other settings."""


def gallery(folder: Path, order: Sequence[str] = ()) -> Path:
    """Write `index.html` into the folder: every figure whose data lie there, with its agreement.

    `order` names figures in the order in which they are shown; others come after them.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import papers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     papers.gallery(Path(folder)).name
    'index.html'

    ```
    """
    places = {name: i for i, name in enumerate(order)}
    records = sorted(
        stored(folder, "*/*.nc").values(), key=lambda r: (places.get(r.name, len(places)), r.name)
    )
    papers = groupby(records, lambda record: record.name.split("/")[0])
    page = Page(
        "The papers’ figures, made anew",
        question="Does what the papers state hold when it is computed again?",
        answer=[
            agreeing(records),
            "Nothing is fitted: every prediction starts from the task, the gating, the initial "
            "weights and the step. Each figure comes with what the paper states, what was "
            "measured, and the data.",
        ],
        sections=[
            Section(TITLES.get(paper, paper), [_section(record, folder) for record in those])
            for paper, those in papers
        ],
    )
    return write(page, folder)


def agreeing(records: Sequence[Record]) -> str:
    """How many numbers lie within their bounds, over all figures, as a sentence."""
    lines = [row["holds"] for record in records for row in record.agreement]
    judged = [bool(holds) for holds in lines if holds is not None]
    figures = f"{len(records)} figure{'s' * (len(records) != 1)}"
    if not judged:
        return f"{figures}, with nothing to judge."
    return f"{sum(judged)} of {len(judged)} measured lines agree with the papers, in {figures}."


def measured(record: Record) -> Table:
    """What was measured on a figure, and how much of it agrees."""
    rows = [(r["what"], r["measured"], r["target"], r["holds"]) for r in record.agreement]
    return Table(
        ("", "measured", "target", "agrees"), rows, caption=f"Agreement: {record.verdict}."
    )


def _section(record: Record, folder: Path) -> Section:
    there = [end for end in ABOUT if (folder / f"{record.name}.{end}").is_file()]
    small = "A small version for a quick look; settings differ from the paper's."
    parts: list[Part] = [
        *([Text(small)] if record.quick else []),
        *([Picture(f"{record.name}.png", alt=record.title)] if "png" in there else []),
        Text(f"The paper states: {record.states}"),
        measured(record),
        *([Text(CHANGED)] if record.changed else []),
        *(File(f"{record.name}.{end}", ABOUT[end]) for end in there),
        Section("Settings, and how it was made", _making(record), folded=True),
    ]
    return Section(f"{record.name}: {record.title}", parts)


def _making(record: Record) -> list[Part]:
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return [
        Table(
            ("setting", "value", "default", "what it is", "from"),
            [
                (f"`{name}`", shown(s["value"]), shown(s["default"]), s["about"], s["source"])
                for name, s in record.settings.items()
            ],
        ),
        Code(command(record)),
        Text(f"Computed in {record.seconds:.1f} s{record.origin}, with {versions}."),
    ]
