"""What several answers share: the contest, the trained networks, the prediction; each made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

import neuralrace
from neuralrace.architecture import Architecture
from neuralrace.contests import Contest, contest
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.reduction import Race, reduce
from neuralrace.reln import Discovery
from neuralrace.study.build import Problem, build
from neuralrace.study.checking import settings_of
from neuralrace.study.places import Place, StudyError
from neuralrace.study.plan import STEPS, Seeds, count_of, learning_rate, start_keys
from neuralrace.study.questions import QUESTIONS
from neuralrace.study.steps import entries, value
from neuralrace.trajectory import Trajectory

if TYPE_CHECKING:
    from neuralrace.study.answers import Answer


@final
class Work:
    """The computations of one study: every step is made when it is first asked for.

    `problem` is what `Study.check` returns. `work["who"]` is what the script of the study calls
    `who`.

    ```python
    >>> import neuralrace as nr
    >>> study = nr.Study.of(questions=["contest"], task={"builtin": "xor"},
    ...                     gatings={"xor": {"each": "sample"}})
    >>> work = nr.study.Work(study.check())
    >>> work["who"] is work.contest, work.contest.winner
    (True, 'xor')

    ```
    """

    @door
    def __init__(
        self,
        problem: Problem,
        tell: Callable[[str], None] = lambda line: None,
        seeds: list[int] | None = None,
        relu: Trajectory | None = None,
        *,
        reducing: Callable[..., Race] = reduce,
        rtol: float | None = None,
    ) -> None:
        """`seeds` are those of a cell of a sweep; `relu` are its networks, where they are known.

        `reducing` is called in place of `reduce`, for example to remember reductions. `rtol` is the
        tolerance of races that the contest solves.
        """
        self.problem, self.settings, self.tell = problem, problem.settings, tell
        self.reducing, self.rtol = reducing, rtol
        self.seeds: Seeds = self.settings.training.seeds if seeds is None else seeds
        self.made: dict[str, Any] = {
            "data": problem.data,
            "graph": problem.relu.arch,
            "gatings": problem.candidates,
            "nr": _Library(self),
            "np": np,
            "jax": jax,
            "zip": zip,
            "narrow": self.narrow,
            "task": lambda value: self.at(value).data,
            "candidates": lambda value: self.at(value).candidates,
        }
        if self.settings.phase_diagram is not None:
            self.made["values"] = self.settings.phase_diagram.points
            self.made["networks_at"] = self.settings.phase_diagram.trained_at
        if relu is not None:
            self.made["relu_runs"] = relu

    def __getitem__(self, name: str) -> Any:
        """What a step makes."""
        if name not in self.made:
            if name == "pair":
                _ = self.followed  # or an error that says why there is none
            step = STEPS[name](self.problem, self.seeds)
            if step.told:
                self.tell(f"{step.told.format(work=self)} …")
            place = Place(self.problem.place.file, step.key)
            if name == "races":  # an error is that of its gating
                self.made[name] = races = {}
                for gating, make in entries(step.makes, self.__getitem__):
                    with (place / gating).blamed():
                        races[gating] = make()
            else:
                with place.blamed():
                    self.made[name] = value(step.makes, self.__getitem__)
        return self.made[name]

    def asks(self, *questions: str) -> bool:
        """Whether one of these questions is to be answered."""
        return any(question in self.settings.answerable for question in questions)

    def at(self, value: float) -> Problem:
        """The study's task and gatings at a value of the number that is varied."""
        assert self.settings.phase_diagram is not None
        key = self.settings.phase_diagram.key
        made = self.problem.document.changed({key: value}, "phase_diagram")
        return build(settings_of(made), made)

    # ---- theory --------------------------------------------------------------------------------

    @property
    def contest(self) -> Contest:
        """All gatings, or the aligned gates alone where there is none."""
        return self["who"]

    def _contest(self, task: Any, *, check: bool = False, **options: Any) -> Contest:
        """`nr.contest` of races that are reduced here; whether gates are kept is asked later."""
        how = {name: options[name] for name in ("tolerance",) if name in options}
        if not isinstance(task, Dataset):
            task = {name: self.reducing(*pair, **how) for name, pair in task.items()}
        return contest(task, leads=False, rtol=self.rtol, **options)

    @property
    def followed(self) -> str:
        """The gating that is predicted and certified."""
        chosen = self.settings.predict.gating
        if chosen is not None:
            return chosen
        if len(self.problem.candidates) == 1:
            return next(iter(self.problem.candidates))
        if self.contest.winner is None:
            raise (self.problem.place / "contest" / "criterion").error(
                "no gating reaches the criterion, so there is no winner to follow",
                got=", ".join(f"{n}: {e.lateness}" for n, e in self.contest.entrants.items()),
                wanted="a criterion that a gating reaches, or the name of the gating to follow",
                fix='set [contest] criterion higher, or [predict] gating = "NAME"',
            )
        return self.contest.winner

    @property
    def gated_network(self) -> tuple[Architecture, Dataset]:
        """The gated network that is followed, with its data."""
        return self["pair"]

    @property
    def race(self) -> Race:
        """The reduction of the gating that is followed."""
        with (self.problem.place / "gatings" / self.followed).blamed():
            return self["race"]

    @property
    def reduced(self) -> dict[str, Race]:
        """The reduction of every gating, or of the graph where there is none."""
        return self["races"]

    # ---- simulation ----------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many networks of each kind are trained."""
        return count_of(self.seeds)

    @property
    def relu(self) -> Trajectory:
        """The ReLU networks on the task, an ensemble over seeds."""
        return self._finite(self["relu_runs"])

    @property
    def gated(self) -> Trajectory:
        """Gated networks with the gating that is followed, an ensemble over seeds."""
        return self._finite(self["gated_runs"])

    @property
    def predicted(self) -> list[Trajectory]:
        """The race from the initial weights of each gated network."""
        _ = self.gated, self.race
        return self["predicted"]

    def _finite(self, runs: Trajectory) -> Trajectory:
        """The runs, or an error where one of them diverged: no answer would mean anything."""
        gone = ~np.isfinite(np.atleast_2d(runs.loss))
        if gone.any():
            first = float(runs.time[gone.any(axis=0).argmax()])
            own = self.settings.training.optimizer
            how = f"learning rate {learning_rate(self.settings.training):g}"
            how = how if own is None else f"the optimizer {own.name}"
            key = "learning_rate" if own is None else "optimizer"
            raise (self.problem.place / "training" / key).error(
                f"the loss of {gone.any(axis=1).sum()} of {len(gone)} networks became infinite",
                got=f"{how}; not finite from t = {first:.4g} on",
                wanted="a descent that converges",
                fix="a smaller learning rate, or smaller initial weights",
            )
        return runs

    @property
    def discovered(self) -> Discovery:
        """The gates in the activity of the ReLU networks."""
        _ = self.relu
        return self["found"]

    @property
    def dtype(self) -> str | None:
        """The precision of the training, where it is not that of JAX."""
        dtype = self.settings.training.dtype
        return None if dtype == "float64" else dtype

    def start_keys(self, which: int) -> list[Any]:
        """The key of every network's initial weights: ReLU networks, 0, or gated ones, 1."""
        return start_keys(self.problem, self.seeds, which).value

    def narrow(self, data: Dataset) -> Dataset:
        """The data in the precision of the training; labels are kept."""
        dtype = self.settings.training.dtype
        if dtype == "float64":
            return data
        cut = lambda arrays: {name: np.asarray(a, dtype) for name, a in arrays.items()}
        return replace(data, x=cut(data.x), y=cut(data.y), gates=cut(data.gates))


class _Library(SimpleNamespace):
    """The library as the steps of a study see it, with reductions that are remembered."""

    def __init__(self, work: Work) -> None:
        super().__init__(contest=work._contest, reduce=work.reducing)

    def __getattr__(self, name: str) -> Any:
        return getattr(neuralrace, name)


def members(runs: Trajectory) -> list[Trajectory]:
    """The single runs of an ensemble over seeds."""
    return [runs.isel(seed=i) for i in range(len(runs.axes["seed"]))]


def answered(work: Work, *, shown: bool) -> tuple[dict[str, Answer], dict[str, StudyError]]:
    """The answers by question, and why each of the others is left out.

    With `shown`, what a report shows is made as well. Where no question has an answer, the first
    error is raised.
    """
    answers: dict[str, Answer] = {}
    refused = work.problem.refused
    for question, row in QUESTIONS.items():
        if not work.asks(question):
            continue
        work.tell(f"{question} …")
        try:
            with (work.problem.place / "questions").blamed(f"leave out {question!r}"):
                made = row.answer(work)
                _ = made.parts if shown else ()
            answers[question] = made
        except StudyError as error:
            error.add_note(f"while answering {question!r}")
            refused[question] = error
    if not answers:
        raise next(iter(refused.values()))
    return answers, refused
