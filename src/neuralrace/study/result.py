"""What a study found: its answers, tables, and the report with everything behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from neuralrace.checks import file_path, not_overwritten, writable_folder
from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, spelled
from neuralrace.report import File, to_json, write
from neuralrace.results import Result as Shown
from neuralrace.results import Sentence, framed
from neuralrace.study.answers import Answer
from neuralrace.study.build import Problem
from neuralrace.study.copies import originals
from neuralrace.study.page import page_of
from neuralrace.study.places import StudyError
from neuralrace.study.script import script_of
from neuralrace.trajectory import save_table

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neuralrace.study.study import Study


KEPT = "page.json"
"""The page as plain values, from which `neuralrace report` writes it again."""


@final
@dataclass(frozen=True, eq=False)
class Result(Shown):
    """The answers of a study; made by `Study.run`.

    `result["contest"]` is one `Answer`; `answers` are all of them, in the order of the report.
    `refused` says by an error why a question has no answer.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["reduce"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> result = study.run()
    >>> list(result.answers), result["reduce"].numbers["blocks_xor"]
    (['reduce'], 4.0)

    ```
    """

    study: Study
    problem: Problem
    answers: Mapping[str, Answer]
    seconds: float
    refused: Mapping[str, StudyError] = field(default_factory=dict)

    def __getitem__(self, question: str) -> Answer:
        if question in self.refused:
            raise self.refused[question]
        if question not in self.answers:
            raise NeuralRaceError(
                f"this study did not ask {question!r}",
                got=repr(question),
                wanted=f"one of {', '.join(self.answers)}",
                fix=spelled(question, self.answers, "add it to the questions of the study"),
            )
        return self.answers[question]

    def frame(self) -> pandas.DataFrame:
        """One row per number of an answer: `question`, `number`, `value`; see docs/studies.md."""
        rows = [
            {"question": question, "number": name, "value": value}
            for question, answer in self.answers.items()
            for name, value in answer.numbers.items()
        ]
        return framed(("question", "number", "value"), rows)

    def sentences(self) -> tuple[Sentence, ...]:
        """All answers in words, and why questions were left out."""
        said = [each for answer in self.answers.values() for each in answer.sentences()]
        left_out = (f"{name} is left out: {e.reason}." for name, e in self.refused.items())
        return *said, *(Sentence("left out", text) for text in left_out)

    @door
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The curves of the first answer."""
        return next(iter(self.answers.values())).plot(ax=ax)

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers of all answers, by name."""
        return {k: v for answer in self.answers.values() for k, v in answer.numbers.items()}

    @property
    def script(self) -> str:
        """A Python script that does the same with the public names of the library."""
        settings = self.problem.settings.model_copy(update={"questions": tuple(self.answers)})
        return script_of(replace(self.problem, settings=settings))

    @door
    def report(self, folder: str | Path, *, command: str = "") -> Path:
        """Write the report, its data and the script into a folder; returns the page.

        `command` is what was typed, for the page. Files that the study reads are copied; none of
        them is overwritten.
        """
        folder = writable_folder(file_path(folder, "out/study"))
        keep = originals(self.problem)
        for answer in self.answers.values():
            for name, table in answer.data.items():
                save_table(table, not_overwritten(folder / name, keep))
        page = page_of(self, command)
        page = replace(page, files=[*page.files, File(KEPT, "this page as JSON")])
        not_overwritten(folder / KEPT, keep).write_text(to_json(page), encoding="utf-8")
        return write(page, folder, keep=keep)
