"""The questions of a study at every cell of a sweep: the numbers of their answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from neuralrace.checks import file_path, writable_folder
from neuralrace.door import door
from neuralrace.dynamics import train_ensemble
from neuralrace.report import write
from neuralrace.results import Result, Sentence
from neuralrace.study.answers.gates import rows_asked
from neuralrace.study.answers.theory import ALIGNED
from neuralrace.study.build import UNGATED, Problem, build
from neuralrace.study.checking import settings_of
from neuralrace.study.copies import copied_files, copies, originals
from neuralrace.study.document import Document
from neuralrace.study.plan import key_of, plain, record_of, training_options
from neuralrace.study.questions import OUTPUTS, TRAINED, output_of
from neuralrace.study.steps import value
from neuralrace.study.sweep_page import SEED, in_order, short_name, sweep_page, sweep_sentences
from neuralrace.study.work import Work, answered
from neuralrace.sweeps import Sweep, sweep
from neuralrace.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from neuralrace.study.study import Study

VECTORS = ("network.scale", "training.learning_rate")
"""Keys, besides those of the task, whose values can run side by side in one program."""

STORE = "sweep.zarr"
"""The store of a sweep in the folder of its report."""

WORDS = ("title", "about", "sweep", "quick")
"""Sections that the numbers of a cell do not depend on."""


def answer_cells(
    cells: Sequence[Mapping[str, Any]], *, study: Mapping[str, Any], folder: str, **files: str
) -> list[Any]:
    """The numbers of every cell; ReLU networks of cells that differ only in numbers together.

    A cell of which no question can be answered has its exception in its place. `files` are
    fingerprints of the files of the study, so that other files make another sweep.
    """
    document = Document(study, "the study", Path(folder))
    problems: list[Any] = []
    for cell in cells:
        changes = {key: value for key, value in cell.items() if key != SEED}
        try:
            made = document.changed(changes, "sweep")
            problems.append(build(settings_of(made), made))
        except Exception as error:
            problems.append(error)
    networks = _trained_together(cells, problems)
    return [
        problem
        if isinstance(problem, Exception)
        else _numbers(problem, int(cell[SEED]), networks.get(i))
        for i, (cell, problem) in enumerate(zip(cells, problems, strict=True))
    ]


def _numbers(problem: Problem, seed: int, relu: Trajectory | None) -> Any:
    """The numbers of one cell; those of a refused question are NaN, and `refused` says why."""
    try:
        work = Work(problem, seeds=[seed], relu=relu)
        answers, refused = answered(work, shown=False)
        found: dict[str, float | str] = dict.fromkeys(_names(work), np.nan)
        for made in answers.values():
            found |= {k: float(v) for k, v in made.numbers.items()}
        asked = problem.settings.questions
        if "contest" in asked:
            found["winner"] = answers["contest"].value.winner or "" if "contest" in answers else ""
        if {"predict", "certify"} & {*asked}:
            found["followed"] = work.followed if {"predict", "certify"} & set(answers) else ""
        if "explain" in asked:
            gone = answers["explain"].value.left_out if "explain" in answers else {}
            found["left_out"] = json.dumps(dict(gone)) if gone else ""
        if len(asked) > 1:
            reasons = {question: error.reason for question, error in refused.items()}
            found["refused"] = json.dumps(reasons) if reasons else ""
    except Exception as error:
        return error
    return found


def _names(work: Work) -> list[str]:
    """The names of the numbers of a cell, which are the same in all cells, answered or not."""
    asked = work.settings.questions
    trained = bool({*TRAINED} & {*asked})
    there = {"": True, "checked": work.settings.contest.check, "trained": trained}
    ungated = {"contest": [ALIGNED], "reduce": [UNGATED], "modes": [UNGATED]}
    found: list[str] = []
    for output in OUTPUTS:
        if not there.get(output.when, False) or output.question not in asked:
            continue
        if output.question == "explain":
            found += [f"error_{row}" for row in rows_asked(work)] * (output.name == "error_NAME")
        elif output.name.endswith("NAME"):
            gatings = work.problem.candidates or ungated[output.question]
            found += [f"{output.name.removesuffix('NAME')}{name}" for name in gatings]
        elif not output.text:
            found.append(output.name)
    return found


def _trained_together(
    cells: Sequence[Mapping[str, Any]], problems: Sequence[Any]
) -> dict[int, Trajectory]:
    """The ReLU networks of cells by their place, trained as one program where that is possible."""
    groups: dict[Any, list[int]] = {}
    for i, problem in enumerate(problems):
        if isinstance(problem, Problem) and _can_share(problem):
            options = training_options(problem)
            shared = {k: repr(v) for k, v in options.items() if k not in ("scale", "learning_rate")}
            shapes = [
                (n, a.shape) for part in (problem.data.x, problem.data.y) for n, a in part.items()
            ]
            key = problem.settings.training.key
            name = problem.relu, key, repr(sorted(shared.items())), repr(shapes)
            groups.setdefault((name, problem.data.sample_weight is None), []).append(i)
    found: dict[int, Trajectory] = {}
    for members in groups.values():
        if len(members) > 1:
            found |= _group(members, cells, problems)
    return found


def _can_share(problem: Problem) -> bool:
    settings = problem.settings
    trained = {"train", "discover", "explain"} & set(settings.answerable)
    alone = "certify" in settings.answerable or problem.evaluated
    # with `until`, networks that run together run until the last of them may end
    return bool(trained) and not alone and settings.training.until is None


def _group(
    members: list[int], cells: Sequence[Mapping[str, Any]], problems: Sequence[Any]
) -> dict[int, Trajectory]:
    digests = [problems[i].data.digest() for i in members]
    datasets = {d: problems[i].data for d, i in zip(digests, members, strict=True)}
    options = {i: plain(training_options(problems[i])) for i in members}
    axes: dict[str, list[Any]] = {"data": list(datasets)}
    for name in ("scale", "learning_rate"):
        axes[name] = list(dict.fromkeys(options[i].get(name) for i in members))
    axes[SEED] = list(dict.fromkeys(int(cells[i][SEED]) for i in members))
    work = Work(problems[members[0]], seeds=axes[SEED])
    several = {n: v for n, v in axes.items() if n in ("scale", "learning_rate") and v != [None]}
    together: dict[str, Any] = {**options[members[0]], "seeds": axes[SEED], **several}
    runs = train_ensemble(
        work.problem.relu,
        [work.narrow(data.gated({})) for data in datasets.values()],
        axis=("data", np.arange(len(datasets))),
        key=key_of(work.problem, 0).value,
        record=value(record_of(work.problem, "relu", "samples"), work.__getitem__),
        **together,
    )
    found = {}
    for i, digest in zip(members, digests, strict=True):
        place: dict[str, Any] = {"data": axes["data"].index(digest)}
        place |= {n: axes[n].index(options[i][n]) for n in several}
        run = runs.isel(**place, seed=[axes[SEED].index(int(cells[i][SEED]))])
        found[i] = run
    return found


# ---- the whole sweep ----------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class SweepResult(Result):
    """What a sweep of a study found: the numbers of all answers at every cell.

    `sweep.data` is a labelled `xarray.Dataset`; see `nr.sweep`.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(
    ...     questions=["contest"],
    ...     task={"builtin": "extended_xor", "parameters": {"delta": 1.2}},
    ...     gatings={"linear": {"builtin": "linear_pathways"}},
    ...     contest={"check": False},
    ...     sweep={"over": {"task.parameters.delta": [0.5, 1.0]}},
    ... )
    >>> table = study.sweep().frame()
    >>> table[["task.parameters.delta", "seed"]].values.tolist()
    [[0.5, 1.0], [1.0, 1.0]]
    >>> bool(table["time_linear"][0] > table["time_linear"][1])  # a larger offset is learned faster
    True

    ```
    """

    study: Study
    sweep: Sweep

    def frame(self) -> pandas.DataFrame:
        """One row per cell; where cells failed, with a column of their errors."""
        return self.sweep.frame()

    def _printed(self) -> pandas.DataFrame:
        """What is swept, the winner, and the chief output of every question."""
        table, axes = self.frame(), [*self.sweep.definition.axes]
        chief = [n for n in in_order(self.sweep) if (output := output_of(n)) and output.chief]
        shown = [*axes, *(name for name in ("winner", *chief, "error") if name in table)]
        table = table.loc[:, shown]
        table.columns = [short_name(name, axes) if name in axes else name for name in shown]
        return table

    def sentences(self) -> tuple[Sentence, ...]:
        """Where the winner changes, how the answers change, what failed and what is missing."""
        return sweep_sentences(self.sweep)

    @door
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The first output over what is swept."""
        return self.sweep.plot(ax=ax)

    @door
    def report(self, folder: str | Path, *, command: str = "") -> Path:
        """Write the report and a CSV file of all cells into a folder; returns the page."""
        folder = writable_folder(file_path(folder, "out/study"))
        problem = build(self.study.settings, self.study.document)
        page = sweep_page(self.study, self.sweep, self.frame(), copied_files(problem), command)
        return write(page, folder, keep=originals(problem))


def run_sweep(
    study: Study,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    slurm: Mapping[str, Any] | None = None,
) -> SweepResult:
    """All cells of a study's sweep; see `nr.sweep` for where they are computed."""
    problem, settings = study.check(), study.settings
    assert settings.sweep is not None
    content = {k: v for k, v in study.document.content.items() if k not in WORDS}
    files = {
        f"file_{i}": hashlib.sha256(path.read_bytes()).hexdigest()
        for i, path in enumerate(copies(problem))
    }
    found = sweep(
        answer_cells,
        {**settings.axes, SEED: list(range(1, settings.sweep.seeds + 1))},
        settings={"study": content, "folder": str(study.document.folder.resolve()), **files},
        store=store,
        batch=settings.sweep.batch,
        workers=workers,
        scheduler=scheduler,
        slurm=slurm,
    )
    return SweepResult(study, found)
