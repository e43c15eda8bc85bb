"""Where in a study something is wrong: the file and the dotted key, in every message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import final

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, spelled


@final
@door
class StudyError(NeuralRaceError):
    """Something in a study that is wrong, with its file and its dotted key.

    Where several things are wrong, `others` are the errors after the first. The message has all,
    and `alone` is its part about the first.

    ```python
    >>> from neuralrace.study import StudyError
    >>> error = StudyError("a.toml", "task.file", "no such file", got="'b.csv'",
    ...                    wanted="a file that is there", fix="check the name")
    >>> error.file, error.key, str(error).splitlines()[0]
    ('a.toml', 'task.file', 'a.toml, task.file: no such file.')

    ```
    """

    def __init__(
        self,
        file: str,
        key: str,
        problem: str,
        *,
        got: object,
        wanted: object,
        fix: str,
        others: Sequence[StudyError] = (),
    ) -> None:
        self.file, self.key, self.problem, self.others = file, key, problem, tuple(others)
        where = f"{file}, {key}" if key else file
        super().__init__(f"{where}: {problem}", got=got, wanted=wanted, fix=fix)
        self.alone = str(self)
        self.args = ("\n".join(error.alone for error in (self, *self.others)),)

    @property
    def reason(self) -> str:
        """What is wrong and what was got, on one line."""
        return f"{self.problem} ({self.got})"

    def __reduce__(self) -> tuple:
        parts = {"got": str(self.got), "wanted": str(self.wanted), "fix": self.fix}
        made = partial(StudyError, **parts, others=self.others)
        return made, (self.file, self.key, self.problem)


@contextmanager
def collected(errors: list[StudyError]) -> Iterator[None]:
    """Keep an error that is raised inside, to go on and find the others."""
    try:
        yield
    except StudyError as error:
        errors += [error, *error.others]


def together(errors: Iterable[StudyError]) -> StudyError:
    """One error that says all of these, the first one in its parts."""
    first, *others = errors
    parts = {"got": first.got, "wanted": first.wanted, "fix": first.fix}
    others = [*first.others, *others]
    return StudyError(first.file, first.key, first.problem, **parts, others=others)


def raise_all(errors: Iterable[StudyError]) -> None:
    """Raise one error that says all of these; nothing where there is none."""
    if several := list(errors):
        raise together(several)


@final
@dataclass(frozen=True)
class Place:
    """A key of a study; `place / "task"` is the key below it."""

    file: str
    key: str = ""

    def __truediv__(self, name: str) -> Place:
        return Place(self.file, f"{self.key}.{name}" if self.key else name)

    def error(self, problem: str, *, got: object, wanted: object, fix: str) -> StudyError:
        """The error that blames this key."""
        return StudyError(self.file, self.key, problem, got=got, wanted=wanted, fix=fix)

    def require(self, ok: object, problem: str, *, got: object, wanted: object, fix: str) -> None:
        """Blame this key unless something holds."""
        if not ok:
            raise self.error(problem, got=got, wanted=wanted, fix=fix)

    def unknown(self, what: str, name: str, known: Iterable[str]) -> StudyError:
        """The error for a name that is not known, with the nearest one as a hint."""
        names = [str(k) for k in known]
        return self.error(
            f"there is no {what} {name!r:.80}",
            got=f"{name!r:.80}",
            wanted=f"one of {', '.join(names)}" if names else "nothing: there are none",
            fix=spelled(name, names, f"choose one of these, or leave {name!r:.80} out"),
        )

    @contextmanager
    def blamed(self, fix: str = "change this key, or leave it out") -> Iterator[None]:
        """Whatever goes wrong inside is an error of this key."""
        try:
            yield
        except StudyError:
            raise
        except NeuralRaceError as error:
            raise self.error(
                error.what, got=error.got, wanted=error.wanted, fix=error.fix
            ) from error
        except Exception as error:
            text = str(error).strip().splitlines()
            raise self.error(
                "this could not be done",
                got=f"{type(error).__name__}: {text[0] if text else ''}"[:300],
                wanted="something that raises no error",
                fix=fix,
            ) from error
