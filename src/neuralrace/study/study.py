"""A study: what a file asks, checked, ready to run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from neuralrace.checks import file_path, writable_folder
from neuralrace.door import door
from neuralrace.errors import check_kind, require
from neuralrace.study.build import Problem, build
from neuralrace.study.checking import need_pydantic, settings_of
from neuralrace.study.copies import SCRIPT, check_modules, copied_files
from neuralrace.study.document import Document, read_document, to_toml
from neuralrace.study.places import Place, StudyError, collected, raise_all
from neuralrace.study.plan import training_options

if TYPE_CHECKING:
    from neuralrace.study.model import Settings
    from neuralrace.study.result import Result
    from neuralrace.study.sweeping import SweepResult


@final
@dataclass(frozen=True, eq=False)
class Study:
    """A task, gatings and questions from a file, or written down in Python.

    Keys and kinds are checked when a study is made; `check` also builds everything it names.
    `document` is what was written, `settings` the same with all defaults. The file is described
    in docs/studies.md.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(
    ...     questions=["contest"],
    ...     task={"builtin": "extended_xor", "parameters": {"delta": 1.2}},
    ...     gatings={"linear": {"builtin": "linear_pathways"}, "xor": {"builtin": "xor_pathways"}},
    ...     contest={"check": False},
    ... )
    >>> result = study.run()
    >>> result["contest"].sentences()[0].text
    'linear is predicted to learn first, at t = 8.021; xor 33 % later.'
    >>> result["contest"].frame()["candidate"].to_list()
    ['linear', 'xor']

    ```
    """

    document: Document

    def __post_init__(self) -> None:
        check_kind("document", self.document, Document, "use nr.Study.load or nr.Study.of")
        _ = self.settings

    @classmethod
    @door
    def load(cls, path: str | Path) -> Study:
        """The study in a TOML file; paths in it are relative to its folder."""
        return cls(read_document(path))

    @classmethod
    @door
    def of(cls, *, folder: str | Path = "", limited: bool = False, **sections: Any) -> Study:
        """A study of these sections, each a mapping; paths are relative to `folder`.

        That is the current folder by default. One that is `limited` may be only as large as the
        explorer takes on (`study.LIMITS`).
        """
        given = {k: v for k, v in sections.items() if v is not None}
        return cls(Document(given, folder=Path(folder), limited=limited))

    @cached_property
    def settings(self) -> Settings:
        """Every setting, with defaults for those that are not written down."""
        return settings_of(self.document)

    @property
    def title(self) -> str:
        """The study's title, or the name of its file."""
        return self.settings.title or Path(self.document.file).stem

    @door
    def changed(self, changes: Mapping[str, Any], source: str = "Python") -> Study:
        """The study with other values for some dotted keys.

        ```python
        >>> import neuralrace as nr
        >>> study = nr.Study.of(questions=["train"], task={"builtin": "xor"})
        >>> study.changed({"training.steps": 50}).settings.training.steps
        50

        ```
        """
        return Study(self.document.changed(changes, source))

    def quick(self) -> Study:
        """The study in its small version: with the values of its section `[quick]`."""
        return self.changed(self.settings.quick, "quick")

    def check(self) -> Problem:
        """Build all that the study names and compute nothing.

        One error says all that is wrong: with the kinds of values; else with what must fit
        together; else with what cannot be built.
        """
        problem = build(self.settings, self.document)
        errors: list[StudyError] = []
        for checked in (training_options, check_modules):
            with collected(errors):
                checked(problem)
        raise_all([*errors, *check_grid(self.settings, self.document)])
        return problem

    @door
    def run(self, *, tell: Callable[[str], None] | None = None) -> Result:
        """Answer the questions, in this process; `tell` is called with a line at every stage.

        Training follows JAX's precision: turn on float64 first, as the command line does, or set
        `training.dtype`.
        """
        from neuralrace.study.result import Result
        from neuralrace.study.work import Work, answered

        begin, problem = time.perf_counter(), self.check()
        answers, refused = answered(Work(problem, tell or (lambda line: None)), shown=True)
        return Result(self, problem, answers, time.perf_counter() - begin, refused)

    @door
    def sweep(
        self,
        *,
        store: str | Path | None = None,
        workers: int | None = None,
        scheduler: str | None = None,
        slurm: Mapping[str, Any] | None = None,
    ) -> SweepResult:
        """The numbers of all answers at every cell of `[sweep]`, with one network per seed.

        The arguments are those of `nr.sweep`: where results are kept, and who computes.

        ```python
        >>> import neuralrace as nr
        >>> study = nr.Study.of(
        ...     questions=["contest"],
        ...     task={"builtin": "extended_xor", "parameters": {"delta": 1.2}},
        ...     gatings={"linear": {"builtin": "linear_pathways"}},
        ...     contest={"check": False},
        ...     sweep={"over": {"task.parameters.delta": [0.5, 1.0]}},
        ... )
        >>> study.sweep().sweep.data["time_linear"].values.round(2)
        array([[21.  ],
               [ 9.81]])

        ```
        """
        from neuralrace.study.sweeping import run_sweep

        (self.document.place / "sweep").require(
            self.settings.sweep is not None,
            "this study has no sweep",
            got="no section [sweep]",
            wanted="dotted keys and their values",
            fix='add [sweep.over] with "task.parameters.delta" = [0.4, 1.2]',
        )
        return run_sweep(self, store=store, workers=workers, scheduler=scheduler, slurm=slurm)

    def script(self) -> str:
        """A Python script that answers the same questions with the public names of the library.

        Nothing is computed. `Result.script` is the same.

        ```python
        >>> import neuralrace as nr
        >>> study = nr.Study.of(questions=["contest"], task={"builtin": "xor"},
        ...                     gatings={"xor": {"each": "sample"}})
        >>> "who = nr.contest(gatings, scale=0.001, width=100, key=0, check=True)" in study.script()
        True

        ```
        """
        from neuralrace.study.script import script_of

        return script_of(self.check())

    def toml(self) -> str:
        """The study as the text of a file; paths in it are not changed.

        ```python
        >>> import neuralrace as nr
        >>> nr.Study.of(questions=["train"], task={"builtin": "xor"}).toml().splitlines()[-1]
        'builtin = "xor"'

        ```
        """
        return to_toml(self.document.content)

    def files(self) -> dict[str, bytes]:
        """The study, its script and all files that they read, by name, to be used elsewhere.

        They are as in the folder of a report: `study.toml`, `study.py`, and tables and masks in
        `files/`. Nothing is computed, and nothing is written.

        ```python
        >>> import neuralrace as nr
        >>> list(nr.Study.of(questions=["train"], task={"builtin": "xor"}).files())
        ['study.toml', 'study.py']

        ```
        """
        from neuralrace.study.script import script_of

        problem = self.check()
        study, *read = ((file.name, file.content) for file in copied_files(problem))
        files = dict([study, (SCRIPT, script_of(problem)), *read])
        return {n: c if isinstance(c, bytes) else str(c).encode() for n, c in files.items()}

    @door
    def save(self, path: str | Path) -> Path:
        """Write the study as TOML; paths in it are not changed."""
        path = file_path(path, "study.toml")
        text = self.toml()
        writable_folder(path.parent)
        require(
            not path.is_dir(),
            f"{str(path)!r} is a folder",
            got="a folder",
            wanted="the path of a file",
            fix="name the file: study.toml",
        )
        path.write_text(text, encoding="utf-8")
        return path

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema of a study, with which editors complete and check the file."""
        return need_pydantic().schema()


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
