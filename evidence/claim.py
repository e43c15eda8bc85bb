"""A claim of a paper, what would make it true, and the verdict that follows from measurements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, final

from evidence.measure import Found, Measure, Outcome
from evidence.tables import Tables
from neuralrace.errors import require

if TYPE_CHECKING:
    from collections.abc import Sequence


class Verdict(Enum):
    """What the measurements say about a claim."""

    HOLDS = "holds"
    QUALIFIED = "holds with a qualification"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@final
@dataclass(frozen=True)
class Remark:
    """A sentence with measured numbers: `{}` in the text stands for what each `reads` returns.

    A read may also return a word.

    ```python
    >>> from evidence import Remark
    >>> Remark("{:.0%} of the weight.", (lambda tables: 0.25,)).said(None)
    '25 % of the weight.'

    ```
    """

    text: str
    reads: tuple[Callable[[Any], Any], ...] = ()

    def said(self, tables: Any) -> str:
        """The sentence with its numbers: means, if there is one number per seed."""
        found = (read(tables) for read in self.reads)
        return _written(self.text, *(f if isinstance(f, str) else Found.of(f).value for f in found))


def _written(text: str, *numbers: float | str) -> str:
    """The text with its numbers, and a space before each sign of per cent."""
    return re.sub(r"(\d)%", r"\1 %", text.format(*numbers))


@final
@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, in which words, what it says in ours, and its measures.

    `quote` has the paper's own words. `inferred` marks a claim whose sentence is ours, as for the
    titles of slides. `instead` says what the networks do if the claim does not hold. `remarks` are
    said whatever the verdict: numbers beside the claim, which it does not speak of. `topic` names
    the page, if it is not that of the paper that the name begins with. `timing` marks a ratio of
    running times, and `slow` what has no small version.

    ```python
    >>> from evidence import Basis, Claim, Measure
    >>> even = Measure("remainder", "remainder", lambda tables: 0.0, most=0.0, rests=Basis.THEOREM)
    >>> claim = Claim("nrr/even", "§0", "two is even", "by division", (even,), quote="2 is even")
    >>> claim.judged([0.0]).verdict.value, claim.judged([1.0]).verdict.value
    ('holds', 'does not hold')

    ```
    """

    name: str
    where: str
    says: str
    how: str
    measures: tuple[Measure, ...]
    quote: str = ""
    inferred: bool = False
    instead: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()
    topic: str = ""
    timing: bool = False
    slow: bool = False

    def __post_init__(self) -> None:
        loose = [measure.what for measure in self.measures if not measure.judges]
        require(
            not loose,
            f"a measure of the claim {self.name!r} has no bound",
            got=", ".join(loose),
            wanted="at least one bound: a measure that cannot fail says nothing of a claim",
            fix="pass least=…, most=… or both, or make it a `Remark`",
        )

    def measure(self, tables: Tables) -> Entry:
        """Measure the claim on the data of figures."""
        entry, files = tables.tracked(lambda: self._measured(tables))
        return replace(entry, tables={file: tables.origins.get(file, {}) for file in files})

    def _measured(self, tables: Tables) -> Entry:
        entry = Entry(self, tuple(tables.found(measure) for measure in self.measures))
        said = lambda remarks: tuple(remark.said(tables) for remark in remarks)
        return replace(
            entry, instead=said(() if entry.stands else self.instead), remarks=said(self.remarks)
        )

    def judged(self, found: Sequence[float | Found]) -> Entry:
        """The entry of the ledger with these numbers, one for each measure."""
        return Entry(self, tuple(f if isinstance(f, Found) else Found(f) for f in found))


@final
@dataclass(frozen=True)
class Entry:
    """A claim with the numbers found; the verdict follows from them alone.

    `tables` says for each table that the numbers were read from where it comes from, and `made` the
    same of the entry: commit, date, versions and device, as far as they are known.
    """

    claim: Claim
    found: tuple[Found, ...]
    instead: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> tuple[tuple[Measure, Found], ...]:
        """Every measure with its number."""
        return tuple(zip(self.claim.measures, self.found, strict=True))

    def _with(self, outcome: Outcome) -> list[tuple[Measure, Found]]:
        return [(m, found) for m, found in self.pairs if m.outcome(found) is outcome]

    @property
    def verdict(self) -> Verdict:
        """A missed measure refutes the claim; an unclear one leaves it open; a missed limit
        qualifies it; otherwise it holds."""
        missed, unclear = self._with(Outcome.MISSED), self._with(Outcome.UNCLEAR)
        if any(not measure.otherwise for measure, _ in missed):
            return Verdict.FAILS
        if any(not measure.otherwise for measure, _ in unclear):
            return Verdict.UNDECIDED
        return Verdict.QUALIFIED if missed else Verdict.HOLDS

    @property
    def stands(self) -> bool:
        """Whether the claim can be relied on, with a qualification or without."""
        return self.verdict in (Verdict.HOLDS, Verdict.QUALIFIED)

    @property
    def qualifications(self) -> tuple[str, ...]:
        """The sentences of the missed limits."""
        missed = self._with(Outcome.MISSED)
        return tuple(_written(m.otherwise, found.value) for m, found in missed if m.otherwise)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why measures, and limits, are unclear. An unclear limit does not change the verdict."""
        unclear = self._with(Outcome.UNCLEAR)
        return tuple(
            f"{'limit, ' if m.otherwise else ''}{m.what}: {m.doubt(found)}" for m, found in unclear
        )

    @property
    def seeds(self) -> int | None:
        """The fewest seeds that any of the numbers rests on; None if nothing is random."""
        return min((f.seeds for f in self.found if f.seeds is not None), default=None)


Read = Callable[[Tables], Any]
"""How the number of a measure, or one number per seed, is read."""


def once(measurement: Callable[..., Any], name: str, **sizes: Any) -> Read:
    """A number of a measurement that is made once for all claims that read it.

    ```python
    >>> from evidence import Tables, once
    >>> once(lambda seeds: {"gap": [0.1] * seeds}, "gap", seeds=2)(Tables())
    [0.1, 0.1]

    ```
    """
    return lambda tables: tables.once(measurement, **sizes)[name]
