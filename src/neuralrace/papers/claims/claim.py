"""A claim of a paper, what would make it true, and the verdict that follows from measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from neuralrace.errors import NeuralRaceError
from neuralrace.papers.record import Record, load_figure, stored

if TYPE_CHECKING:
    import xarray


class Verdict(Enum):
    """What the measurements say about a claim."""

    HOLDS = "holds"
    QUALIFIED = "holds with a qualification"
    FAILS = "does not hold"


@final
@dataclass(frozen=True)
class Measure:
    """A number that is read from the data of figures, and the bounds it must lie within.

    `otherwise` makes it a limit: a miss does not refute the claim but qualifies it, with this
    sentence, in which `{}` stands for the number. Without it, a miss refutes the claim. A number
    that is not finite is a miss.

    ```python
    >>> from neuralrace.papers.claims import Measure
    >>> speed = Measure("half-time, shared over dedicated", lambda tables: 0.04, most=0.5)
    >>> speed.threshold, speed.met(0.04), speed.met(0.7)
    ('≤ 0.5', True, False)

    ```
    """

    what: str
    read: Callable[[Tables], float]
    least: float | None = None
    most: float | None = None
    otherwise: str = ""
    form: str = ".3g"

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise NeuralRaceError(
                f"the measure {self.what!r} has no threshold",
                got="neither least nor most",
                wanted="at least one bound: a measure that cannot fail says nothing",
                fix="pass least=…, most=… or both",
            )

    @property
    def threshold(self) -> str:
        """The bounds, in words."""
        low, high = (f"{b:{self.form}}" for b in (self.least or 0.0, self.most or 0.0))
        if self.least is None:
            return f"≤ {high}"
        return f"≥ {low}" if self.most is None else f"{low} … {high}"

    def met(self, found: float) -> bool:
        """Whether a number lies between the bounds."""
        low = float("-inf") if self.least is None else self.least
        high = float("inf") if self.most is None else self.most
        return bool(low <= found <= high) and abs(found) != float("inf")


@final
@dataclass(frozen=True)
class Claim:
    """One claim: where it is made, what it says in our words, and how it is measured.

    ```python
    >>> from neuralrace.papers.claims import Claim, Measure
    >>> claim = Claim("nrr/even", "§0", "two is even", "by division",
    ...               (Measure("remainder", lambda tables: 0.0, most=0.0),))
    >>> claim.judged([0.0]).verdict.value, claim.judged([1.0]).verdict.value
    ('holds', 'does not hold')

    ```
    """

    name: str
    where: str
    says: str
    how: str
    measures: tuple[Measure, ...]

    def measure(self, tables: Tables) -> Entry:
        """Measure the claim on the data of figures."""
        return self.judged([float(m.read(tables)) for m in self.measures])

    def judged(self, found: list[float]) -> Entry:
        """The entry of the ledger with these numbers, one for each measure."""
        return Entry(self, tuple(found))


@final
@dataclass(frozen=True)
class Entry:
    """A claim with the numbers found; the verdict follows from them alone."""

    claim: Claim
    found: tuple[float, ...]

    @property
    def pairs(self) -> tuple[tuple[Measure, float], ...]:
        """Every measure with its number."""
        return tuple(zip(self.claim.measures, self.found, strict=True))

    @property
    def missed(self) -> tuple[tuple[Measure, float], ...]:
        """The measures whose number is out of bounds."""
        return tuple((measure, value) for measure, value in self.pairs if not measure.met(value))

    @property
    def verdict(self) -> Verdict:
        """A missed measure refutes the claim, a missed limit qualifies it; otherwise it holds."""
        if not self.missed:
            return Verdict.HOLDS
        limits = all(measure.otherwise for measure, _ in self.missed)
        return Verdict.QUALIFIED if limits else Verdict.FAILS

    @property
    def qualifications(self) -> tuple[str, ...]:
        """The sentences of the missed limits."""
        return tuple(m.otherwise.format(value) for m, value in self.missed if m.otherwise)


@final
@dataclass(eq=False)
class Tables:
    """The data of figures, each computed once: `tables("nrr/fig4", init="xavier")`.

    `once` keeps measurements that no figure makes; `at_hand` is for figures that take long to
    compute.

    **Arguments:** `quick` uses the figures' small settings. `folder` holds data that `neuralrace
    reproduce` wrote: a figure stored with exactly the settings wanted is read instead of computed.
    `tell` is called for every figure with a line that says whether it is read or computed.
    """

    quick: bool = False
    folder: Path | None = None
    tell: Callable[[str], None] = lambda _: None
    _kept: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise NeuralRaceError(
                f"there is no folder {str(self.folder)!r} to read figures from",
                got="a file" if self.folder.exists() else "nothing of that name",
                wanted="a folder that `neuralrace reproduce` wrote to, such as out/figures",
                fix="correct the name, or leave it out to compute every figure",
            )

    def look_for(self, names: Collection[str]) -> None:
        """Raise if there is a folder, but it has none of these figures at the wanted size."""
        there = self._shelf.values()
        if self.folder and not any(r.name in names and r.quick == self.quick for r in there):
            found = sorted(f"{r.name}{' (quick)' * r.quick}" for r in there)
            size = "quick" if self.quick else "at full size"
            raise NeuralRaceError(
                f"no figure that is needed is stored in {str(self.folder)!r}",
                got=", ".join(found) or "no figures",
                wanted=f"{size}, one or more of {', '.join(names)}",
                fix="name the folder that `neuralrace reproduce` wrote to, or none to compute all",
            )

    def __call__(self, name: str, **changes: Any) -> xarray.Dataset:
        key = (name, tuple(sorted(changes.items())))
        if key not in self._kept:
            self._kept[key] = self._made(name, changes)
        return self._kept[key]

    def at_hand(self, name: str, **smaller: Any) -> xarray.Dataset:
        """The figure at full size if that is stored, otherwise computed with smaller settings."""
        from neuralrace.papers import find

        if name not in self._kept:
            self._kept[name] = None if self.quick else self._stored(name, find(name).resolve())
        full = self._kept[name]
        return self(name, **smaller) if full is None else full

    def once(self, measurement: Callable[..., Any], **settings: Any) -> Any:
        """The result of a function with these settings, computed once."""
        key = (measurement, tuple(sorted(settings.items())))
        if key not in self._kept:
            self.tell(f"{measurement.__name__.replace('_', ' ')}: computing …")
            self._kept[key] = measurement(**settings)
        return self._kept[key]

    def _made(self, name: str, changes: Mapping[str, Any]) -> xarray.Dataset:
        from neuralrace.papers import find

        figure = find(name)
        values = figure.resolve(quick=self.quick, changes=changes)
        at_hand = self._stored(name, values)
        if at_hand is not None:
            return at_hand
        with_what = ", ".join(f"{k} = {v}" for k, v in changes.items())
        self.tell(f"{name}{f' ({with_what})' if with_what else ''}: computing …")
        return figure.run(values, quick=self.quick)

    @cached_property
    def _shelf(self) -> dict[Path, Record]:
        return stored(self.folder) if self.folder else {}

    def _stored(self, name: str, values: Mapping[str, Any]) -> xarray.Dataset | None:
        wanted = json.loads(json.dumps(dict(values)))  # lists, as they are stored
        for path, record in self._shelf.items():
            has = {k: s["value"] for k, s in record.settings.items()}
            if record.name == name and has == wanted:
                self.tell(f"{name}: read from {path}")
                return load_figure(path)
        return None


Read = Callable[[Tables], float]
"""How a number of a measure is read."""
