"""The five findings of the slides of MHS, each judged by the entries that measure it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evidence import Claim, Measure, Remark
from papers.mhs.claims import contextual, depth, gatings, xor

_ENTRIES = {
    claim.name: claim for module in (xor, contextual, gatings, depth) for claim in module.CLAIMS
}
"""The entries on the paper itself."""


def finding(
    number: int, slide: str, quote: str, says: str, *entries: str, without: str = ""
) -> Claim:
    """A finding of the slides, judged by the measures of these entries of the ledger.

    Measures of what the slide does not speak of are left out: with `without="outputs"`, those
    whose ids begin with it.
    """
    named = ", ".join(f"`{name.split('/')[1]}`" for name in entries)
    left = f", except those on {without}" if without else ""
    return Claim(
        f"mhs/finding-{number}",
        f"slides, “{slide}”",
        says,
        f"The measures of the entries {named}, which have the details{left}.",
        tuple(
            _from(name, measure)
            for name in entries
            for measure in _ENTRIES[name].measures
            if not (without and measure.id.startswith(f"{without}-"))
        ),
        quote=f"Finding {number}: {quote}",
        instead=_each(remark for name in entries for remark in _ENTRIES[name].instead),
        remarks=_each(remark for name in entries for remark in _ENTRIES[name].remarks),
    )


def _each(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Every remark once."""
    return tuple(dict.fromkeys(remarks))


def _from(name: str, measure: Measure) -> Measure:
    """The measure, with the entry it comes from."""
    entry = name.split("/")[1]
    return replace(measure, id=f"{entry}/{measure.id}", what=f"{entry}: {measure.what}")


CLAIMS = (
    finding(
        1,
        "Setting 1: Extended XoR",
        "ReLU networks will sometimes choose nonlinear solution even when a linear option is "
        "possible but always favours the fastest learner.",
        "On extended XoR, ReLU networks learn like the faster of the two gatings, also where that "
        "is the nonlinear one although a linear one exists.",
        "mhs/xor-faster-gating",
        "mhs/xor-boundary",
    ),
    finding(
        2,
        "Setting 2: Contextual Task",
        "ReLU networks in this setting have a preference towards structured mixed-selectivity due "
        "to the learning speed boost.",
        "On the contextual task, neurons are active in several contexts, because pathways that "
        "are shared by contexts learn faster.",
        "mhs/context-pure",
        "mhs/shared-faster",
    ),
    finding(
        3,
        "Setting 3: More Contexts",
        "ReLU networks still prefer structured mixed-selective representations as the number of "
        "contexts grows.",
        "With more contexts, ReLU networks still follow the ReLN whose pathways are shared by all "
        "contexts but one.",
        "mhs/more-contexts",
    ),
    finding(
        4,
        "Setting 4: Depth",
        "Additional hidden layers makes the network dynamics inconsistent. We can still design a "
        "GDLN which fits the distribution of dynamics.",
        "With two hidden layers runs differ, and a gated network has the same stereotype and the "
        "same spread.",
        "mhs/depth-variance",
        "mhs/depth-follows",
        without="outputs",
    ),
    finding(
        5,
        "Finding the Gates",
        "We provide a preliminary algorithm to identify ReLNs from ReLU Networks.",
        "K-means on the activity of ReLU networks finds the gating of the ReLN.",
        "mhs/algorithm-1",
    ),
)
