"""A number with its bound, what the bound rests on, and what a measurement says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf, isfinite, isnan, nan, sqrt
from typing import Any, Literal, final

import numpy as np

from neuralrace.errors import NeuralRaceError

FEWEST_SEEDS = 5
"""A number that depends on random weights settles nothing on fewer seeds than this."""

LEEWAY = 2.0
"""A bound of our own choice refutes nothing that a bound this many times as wide would pass."""

FLOOR = 2.0
"""Two networks are told apart if they differ more than this many times as much as two seeds."""


Scale = Literal["linear", "log"]
"""On which scale the mean over seeds and its interval are taken."""


class Basis(Enum):
    """What a bound rests on."""

    THEOREM = "a theorem"
    """An identity, tested to rounding: no seeds are needed."""
    PAPER = "the paper"
    """A number of the paper, or a word that fixes one: faster, more, all, none."""
    SEEDS = "the seed floor"
    """What two seeds of the same network differ by."""
    OURS = "our choice"
    """The paper gives no number, or not what to compare: to be chosen before that is known."""


class Outcome(Enum):
    """What a number says about its bound."""

    MET = "met"
    MISSED = "missed"
    UNCLEAR = "unclear"
    REPORTED = "reported"


@final
@dataclass(frozen=True)
class Found:
    """A number that was found, on how many seeds, and how far it may be off.

    `low` and `high` bound the mean over seeds (95 % by Student's t); they equal `value` if there is
    no list of seeds to take a mean of. `seeds` is None if nothing random is involved. For a ratio
    that some seeds make many times as large as others, `scale="log"` takes mean and interval of
    the logarithms: `value` is the geometric mean.

    `text` is how it is written where a number alone says too little, and `note` explains a miss.

    ```python
    >>> from evidence import Found
    >>> found = Found.of([0.9, 1.0, 1.1, 1.0, 1.0])
    >>> found.value, found.seeds, round(found.low, 3), round(found.high, 3)
    (1.0, 5, 0.912, 1.088)
    >>> skewed = Found.of([1.0, 10.0, 100.0], scale="log")
    >>> round(skewed.value, 9), bool(0 < skewed.low < 1), bool(skewed.high > 100)
    (10.0, True, True)

    ```
    """

    value: float
    low: float = nan
    high: float = nan
    seeds: int | None = None
    text: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if isnan(getattr(self, name)):
                object.__setattr__(self, name, self.value)

    @classmethod
    def of(
        cls,
        numbers: float | Sequence[float] | np.ndarray,
        seeds: int | None = None,
        *,
        scale: Scale = "linear",
    ) -> Found:
        """From one number, or from one number per seed."""
        each = np.asarray(numbers, float)
        if each.ndim == 0:
            return cls(float(each), seeds=seeds)
        if scale == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = cls.of(np.log(each), seeds)
            low, value, high = np.exp([logs.low, logs.value, logs.high]).tolist()
            return cls(value, low, high, logs.seeds)
        count, mean = each.size, float(each.mean()) if each.size else nan
        fewest = count if seeds is None else min(count, seeds)
        if count < 2 or not np.isfinite(each).all():
            return cls(mean, seeds=fewest)
        from scipy.special import stdtrit

        off = float(stdtrit(count - 1, 0.975)) * float(each.std(ddof=1)) / sqrt(count)
        return cls(mean, mean - off, mean + off, fewest)

    def spread(self, drawn: Sequence[float], *, scale: Scale = "linear") -> Found:
        """The number with a 95 % interval from its values when seeds are drawn again.

        Student's t times the standard deviation of `drawn`, times √(n / (n − 1)) for n seeds: the
        interval of `of`, if the number is a mean.

        ```python
        >>> from evidence import Found
        >>> found = Found(1.0, seeds=5).spread([0.9, 1.1, 1.0])
        >>> round(found.low, 2), round(found.high, 2)
        (0.69, 1.31)

        ```
        """
        from scipy.special import stdtrit

        each = np.asarray(drawn, float)
        each = each[np.isfinite(each) & ((each > 0) | (scale == "linear"))]
        if self.seeds is None or self.seeds < 2 or each.size < 2:
            return self
        if scale == "log" and self.value <= 0:
            return self
        of, back = (np.log, np.exp) if scale == "log" else (np.asarray, np.asarray)
        off = of(each).std(ddof=1) * sqrt(self.seeds / (self.seeds - 1))
        off = float(stdtrit(self.seeds - 1, 0.975)) * off
        low, high = back(of(self.value) - off), back(of(self.value) + off)
        return Found(self.value, float(low), float(high), self.seeds)


@final
@dataclass(frozen=True)
class Measure:
    """A number that is read from data, the bounds it must lie within, and what these rest on.

    `id` names it among the measures of its figure, and of a claim that reads it: numbers are stored
    by it, so that it never changes, and `what` may be put in other words.

    `read` returns one number, or one per seed, from which the mean and its interval are taken, or a
    `Found` that says how it is written. It takes the data of a figure if the measure is defined
    beside that figure (`on` then tells the ledger where to read it), otherwise the `Tables` of the
    ledger. Without a bound, a number is only reported. `otherwise` makes the measure a
    limit: a miss does not refute a claim but qualifies it, with this sentence, in which `{}` stands
    for the number. `origin` is the value from which the bound's distance counts when a bound of our
    choice is widened: perfect agreement (0 for a distance, 1 for a share), or no effect. `scale`
    is that of the mean over seeds and its interval. `pooled` marks one number over all seeds, such
    as a correlation: drawing the seeds again gives its interval, as it does for every number that
    rests on the seed floor. The worst of all seeds, counts, and what only one run has need none.
    `seen` marks a bound of ours, or a rule for reading the number, that was set when the number was
    known: it decides nothing, and a limit that is marked so qualifies nothing. `target` says in
    words what the bounds stand for. `words` are the paper's for what is measured, and `beside`
    follows the number where the figure is shown. `line` names the figure, and the measure there,
    from whose data the number is read with the paper's settings.

    ```python
    >>> from evidence import Basis, Found, Measure
    >>> speed = Measure(
    ...     "speed", "time, shared over dedicated", lambda t: 0.04, most=1, rests=Basis.PAPER
    ... )
    >>> speed.threshold, speed.outcome(Found(0.04)).value, speed.outcome(Found(1.7)).value
    ('≤ 1', 'met', 'missed')
    >>> speed.outcome(Found(0.04, seeds=2)).value, speed.outcome(Found(0.9, 0.7, 1.1, 9)).value
    ('unclear', 'unclear')

    ```
    """

    id: str
    what: str
    read: Callable[[Any], Any]
    least: float | None = None
    most: float | None = None
    otherwise: str = ""
    form: str = ".3g"
    rests: Basis = Basis.OURS
    origin: float = 0.0
    scale: Scale = "linear"
    pooled: bool = False
    seen: bool = False
    target: str = ""
    words: str = ""
    beside: str = ""
    line: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        ours = self.rests is Basis.OURS and not self.otherwise
        if self.judges and ours and {self.least, self.most} <= {None, self.origin}:
            raise NeuralRaceError(
                f"no finite number can miss the measure {self.what!r}",
                got=f"a bound of our choice at its origin, {self.origin:g}: it has no width",
                wanted="a bound with a leeway: a measure that cannot fail says nothing",
                fix="pass another origin=…, or otherwise=… for a limit",
            )

    @property
    def judges(self) -> bool:
        """Whether there is a bound; a number without one is only reported."""
        return self.least is not None or self.most is not None

    @property
    def threshold(self) -> str:
        """The bounds, in words."""
        if self.target or not self.judges:
            return self.target or "reported"
        low, high = (f"{b:{self.form}}" for b in (self.least or 0.0, self.most or 0.0))
        if self.least is None:
            return f"≤ {high}"
        return f"≥ {low}" if self.most is None else f"{low} … {high}"

    def met(self, value: float, widened: float = 1.0) -> bool:
        """Whether a number lies between the bounds, moved away from `origin` by a factor.

        A bound at `origin` has no distance to multiply, and is left out where it is widened.
        """
        low = -inf if self.least is None else self._moved(self.least, widened, down=True)
        high = inf if self.most is None else self._moved(self.most, widened, down=False)
        return isfinite(value) and low <= value <= high

    def _moved(self, bound: float, factor: float, *, down: bool) -> float:
        """The bound with its distance from `origin` multiplied or divided: always laxer."""
        away = bound - self.origin
        if away == 0 and factor > 1:
            return -inf if down else inf
        laxer = (away < 0) == down
        return self.origin + (away * factor if laxer else away / factor)

    def outcome(self, found: Found) -> Outcome:
        """Met, missed, unclear (`doubt` says why), or only reported."""
        if not self.judges:
            return Outcome.REPORTED
        if self.doubt(found):
            return Outcome.UNCLEAR
        return Outcome.MET if self.met(found.value) else Outcome.MISSED

    def doubt(self, found: Found) -> str:
        """Why this number settles nothing, or an empty text."""
        if not self.judges:
            return ""
        if isnan(found.value):
            return "not in the data at hand"
        if self.rests is Basis.THEOREM:
            return ""
        if found.seeds is not None and found.seeds < FEWEST_SEEDS:
            return f"{found.seeds} of {FEWEST_SEEDS} seeds"
        within = self.met(found.value)
        if self._straddles(found):
            return "within what seeds differ by"
        if self.seen:
            return "the bound, or a rule for reading it, was set when the number was known"
        ours = self.rests is Basis.OURS and not self.otherwise and not within
        return "a bound of ours, narrowly missed" if ours and self.met(found.value, LEEWAY) else ""

    def _straddles(self, found: Found) -> bool:
        """Whether some numbers of the interval meet the bounds and others do not."""
        low = -inf if self.least is None else self.least
        high = inf if self.most is None else self.most
        touches = found.low <= high and found.high >= low
        return touches and not low <= found.low <= found.high <= high

    def on(
        self, figure: str, *, otherwise: str = "", id: str = "", what: str = "", **changes: Any
    ) -> Measure:
        """This measure for the ledger: read from the data of a figure, with changed settings."""
        read = self.read
        return replace(
            self,
            id=id or self.id,
            what=what or self.what,
            otherwise=otherwise or self.otherwise,
            read=lambda tables: read(tables(figure, **changes)),
            line=("", "") if changes else (figure, self.id),
        )
