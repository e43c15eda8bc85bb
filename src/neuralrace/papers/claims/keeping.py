"""The numbers behind the ledger's page, kept beside it: the page follows from them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

from neuralrace.papers.claims.claim import Claim, Entry
from neuralrace.papers.claims.page import markdown
from neuralrace.papers.claims.sources import Origin
from neuralrace.papers.measure import Found


@final
@dataclass(frozen=True)
class Ledger:
    """Everything that is on the page: entries, the summary, devices, and the code of tables.

    `kept` turns it into plain values for JSON, and `restored` turns these back.

    ```python
    >>> from neuralrace.papers.claims import Ledger, ledger
    >>> (claim,) = ledger("mhs/interlacing")
    >>> whole = Ledger((claim.judged([0.0, 0.0, 0.0]),))
    >>> Ledger.restored(whole.kept(), [claim]) == whole
    True

    ```
    """

    entries: tuple[Entry, ...]
    short: tuple[str, ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def page(self) -> str:
        """The page."""
        return markdown(self.entries, short=self.short, devices=self.devices, origins=self.origins)

    def kept(self) -> dict[str, Any]:
        """Plain values: for each claim the numbers of its measures, in order, and its sentences."""
        return {
            "short": list(self.short),
            "devices": dict(self.devices),
            "tables": {name: asdict(made) for name, made in sorted(self.origins.items())},
            "claims": {
                entry.claim.name: {
                    "found": [[f.value, f.low, f.high, f.seeds] for f in entry.found],
                    "instead": list(entry.instead),
                    "remarks": list(entry.remarks),
                }
                for entry in self.entries
            },
        }

    @classmethod
    def restored(cls, kept: Mapping[str, Any], claims: Sequence[Claim]) -> Ledger:
        """From what `kept` returned, for these claims; those without numbers are left out."""
        there = [(claim, kept["claims"].get(claim.name)) for claim in claims]
        entries = tuple(
            Entry(
                claim,
                tuple(Found(*each) for each in was["found"]),
                tuple(was["instead"]),
                tuple(was["remarks"]),
            )
            for claim, was in there
            if was is not None and len(was["found"]) == len(claim.measures)
        )
        origins = {name: Origin(**made) for name, made in kept["tables"].items()}
        return cls(entries, tuple(kept["short"]), kept["devices"], origins)
