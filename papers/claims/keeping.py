"""The numbers behind the ledger's page, kept beside it: the page follows from them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, final

from neuralrace.errors import NeuralRaceError
from papers.claims.claim import Claim, Entry
from papers.claims.page import markdown
from papers.claims.sources import Origin
from papers.measure import Found


@final
@dataclass(frozen=True)
class Ledger:
    """Everything that is on the page: entries, the summary, and the origins of tables.

    `kept` turns it into plain values for JSON, and `restored` turns these back. A number is known
    by the id of its measure.

    ```python
    >>> from papers.claims import Ledger, ledger
    >>> (claim,) = ledger("mhs/interlacing")
    >>> whole = Ledger((claim.judged([0.0, 0.0, 0.0]),))
    >>> Ledger.restored(whole.kept(), [claim]) == whole
    True

    ```
    """

    entries: tuple[Entry, ...]
    short: tuple[str, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def page(self) -> str:
        """The page."""
        return markdown(self.entries, short=self.short, origins=self.origins)

    def kept(self) -> dict[str, Any]:
        """Plain values: for each claim its numbers by the ids of their measures, and the rest."""
        return {
            "short": list(self.short),
            "tables": _plain(self.origins),
            "claims": {
                entry.claim.name: {
                    "found": {m.id: [f.value, f.low, f.high, f.seeds] for m, f in entry.pairs},
                    "instead": list(entry.instead),
                    "remarks": list(entry.remarks),
                    "tables": list(entry.tables),
                    "earlier": None if entry.earlier is None else _plain(entry.earlier),
                }
                for entry in self.entries
            },
        }

    @classmethod
    def restored(cls, kept: Mapping[str, Any], claims: Sequence[Claim]) -> Ledger:
        """From what `kept` returned, for these claims; those without all numbers are left out."""
        entries = tuple(
            Entry(
                claim,
                tuple(Found(*was["found"][measure.id]) for measure in claim.measures),
                tuple(was["instead"]),
                tuple(was["remarks"]),
                tuple(was["tables"]),
                None if was["earlier"] is None else _origins(was["earlier"]),
            )
            for claim in claims
            if (was := kept["claims"].get(claim.name)) is not None and not _without(claim, was)
        )
        return cls(entries, tuple(kept["short"]), _origins(kept["tables"]))

    @classmethod
    def earlier(cls, kept: Mapping[str, Any], claims: Sequence[Claim]) -> Ledger:
        """These claims with the numbers of an earlier ledger, each with the origins of its tables.

        For claims whose tables are not at hand. It is an error if a number is missing.
        """
        for claim in claims:
            was = kept["claims"].get(claim.name)
            lost = ["the whole entry"] if was is None else _without(claim, was)
            if lost:
                raise NeuralRaceError(
                    f"the numbers of {claim.name!r} cannot be kept",
                    got=f"without a number: {'; '.join(lost)}",
                    wanted="a number for each measure of the claim, under its id",
                    fix="measure the claim again: leave it out of what is to be kept",
                )
        whole = cls.restored(kept, claims)
        of = lambda entry: {name: whole.origins.get(name, Origin()) for name in entry.tables}
        return cls(tuple(replace(e, earlier=e.earlier or of(e)) for e in whole.entries))


def _plain(origins: Mapping[str, Origin]) -> dict[str, Any]:
    return {name: asdict(made) for name, made in sorted(origins.items())}


def _origins(plain: Mapping[str, Any]) -> dict[str, Origin]:
    return {name: Origin(**made) for name, made in plain.items()}


def _without(claim: Claim, was: Mapping[str, Any]) -> list[str]:
    """The measures of a claim for which no number was kept."""
    return [measure.id for measure in claim.measures if measure.id not in was["found"]]
