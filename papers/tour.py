"""A tour: figures of a paper in the order in which a talk shows them, on one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from neuralrace.errors import NeuralRaceError
from neuralrace.report import Code, Page, Part, Picture, Section, Text, write
from papers.gallery import agreeing, measured
from papers.record import Record, command, stored


@final
@dataclass(frozen=True)
class Stop:
    """One slide, or a few that belong together: its heading, a figure, and what to see there.

    `finding` is a sentence of the slides in their own words. `claims` are those of the evidence
    that measure what is said there.

    ```python
    >>> from papers import Stop, find
    >>> stop = Stop("Depth", "talk/depth", "Chains of several edges.")
    >>> find(stop.figure).name == stop.figure, stop.claims
    (True, ())

    ```
    """

    title: str
    figure: str
    caption: str
    finding: str = ""
    claims: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Tour:
    """Figures with captions, in the order of a talk.

    ```python
    >>> from papers import Stop, Tour
    >>> stops = (Stop("XoR", "nrr/fig3", "four pathways"), Stop("Again", "nrr/fig3", "once more"))
    >>> Tour("nrr/tour", "A tour", "What is shown?", stops).figures
    ('nrr/fig3',)

    ```
    """

    name: str
    title: str
    question: str
    stops: tuple[Stop, ...]

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that are shown, each once."""
        return tuple(dict.fromkeys(stop.figure for stop in self.stops))


def write_tour(tour: Tour, folder: Path) -> Path:
    """Write the page of a tour from figures that lie in a folder; nothing is computed.

    **Returns:** the path of the page, `index.html` in the folder named after the tour. Pictures are
    part of the page.

    ```python
    >>> import tempfile
    >>> from pathlib import Path
    >>> import papers
    >>> tour = papers.Tour("talk/short", "One stop", "How does depth slow learning?",
    ...                    (papers.Stop("Depth", "talk/depth", "Chains of several edges."),))
    >>> figure = papers.find("talk/depth")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = figure.run(figure.resolve(quick=True), quick=True)
    ...     written = figure.publish(data, Path(folder))
    ...     papers.write_tour(tour, Path(folder)).relative_to(folder)
    PosixPath('talk/short/index.html')

    ```
    """
    records = {
        record.name: record
        for path, record in stored(folder, "*/*.nc").items()
        if path.with_suffix(".png").is_file()
    }
    missing = [name for name in tour.figures if name not in records]
    if missing:
        raise NeuralRaceError(
            f"figures of {tour.name} are missing in {str(folder)!r}",
            got=", ".join(sorted(records)) or "no figures",
            wanted=", ".join(missing),
            fix=f"`python -m papers tour {tour.name}` makes them all",
        )
    shown = [records[name] for name in tour.figures]
    quick = "Some figures are small versions for a quick look, which settle nothing."
    page = Page(
        tour.title,
        question=tour.question,
        answer=[
            f"{len(tour.stops)} stops, each figure computed anew. {agreeing(shown)}",
            *([quick] if any(record.quick for record in shown) else []),
        ],
        sections=[
            Section(f"{k + 1}. {stop.title}", _stop(stop, records[stop.figure], folder))
            for k, stop in enumerate(tour.stops)
        ],
    )
    return write(page, folder / tour.name)


def _stop(stop: Stop, record: Record, folder: Path) -> list[Part]:
    picture = (folder / f"{record.name}.png").read_bytes()
    named = ", ".join(f"`{name}`" for name in stop.claims)
    return [
        Text(stop.caption),
        *([Text(f"The slides say: “{stop.finding}”")] if stop.finding else []),
        Picture(picture, alt=record.title, caption=record.title),
        *([Text(f"In the evidence: {named}.")] if named else []),
        Section("What was measured", [measured(record), Code(command(record))], folded=True),
    ]
