"""The ledger as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isclose, isnan

from papers.claims.changes import change_lines
from papers.claims.claim import Entry, Verdict
from papers.claims.sources import Origin
from papers.measure import FEWEST_SEEDS, LEEWAY, Found, Measure, Outcome
from papers.record import table_lines

PAPERS = {
    "nrr": "Saxe, Sodhani and Lewallen, *The Neural Race Reduction* (ICML 2022)",
    "mhs": "Jarvis, Klein, Rosman and Saxe, *Make Haste Slowly* (ICLR 2025)",
    "talk": "Saxe, *Models of representation learning dynamics* (talk)",
}
"""The papers that have a module in the ledger with its `CLAIMS`."""

QUICK = "quick settings, which settle nothing"
"""The note on a page that was measured with `--quick`."""

RULES = f"""\
How a verdict follows from the numbers:

- Every number has a bound, and the bound rests on one of four things. *A theorem*: the sentence is
  an identity, tested to rounding. *The paper*: its number, or a word that fixes one (faster, all,
  none). *The seed floor*: what two seeds of the same network differ by. *Our choice*: the paper
  says “close” or “similar” and gives no number.
- A number that depends on random weights needs {FEWEST_SEEDS} seeds. Where there is one number per
  seed, their mean is shown with its 95 % interval (Student's t). Ratios that some seeds make many
  times as large as others have a geometric mean, with the interval of the logarithms in brackets.
  One number over all seeds, such as a correlation, has an interval from drawing the seeds again
  (the bootstrap). A number relative to the seed floor has the spread of the floor in its interval.
  If the bound lies inside the interval, the number is *unclear*.
- A bound of our choice refutes only what a bound {LEEWAY:g} times as wide would also refute. A
  bound of our choice, or a rule for reading a number, that was set when the number was known
  decides nothing in either direction. Such numbers are *unclear*. Limits refute nothing and need no
  leeway.
- A missed measure refutes a claim (*does not hold*); an unclear one leaves it *undecided*. A missed
  *limit* qualifies a claim that holds otherwise; an unclear one is named and changes nothing.
- *Inferred* marks a claim whose sentence is ours, as for a slide that has only a title.
- Entries under “What changed” were read again, and their bounds kept or settled, with the numbers
  of the earlier ledger in view. The numbers of measures that are new were not known, except where
  that table or the entry says so."""
"""What a reader must know about verdicts."""

EARLIER = (
    "Their numbers are those that stood in the ledger before, with the tables, commits and devices "
    "named in each entry: figures that were computed on another machine and whose files are not at "
    "hand. Their bounds and verdicts are those of today."
)
"""What is to be known of entries whose numbers were kept."""

SHORT = "In short"
"""The title of the summary."""

CHANGED = "What changed"
"""The title of the comparison with an earlier ledger."""


def markdown(
    entries: Sequence[Entry],
    *,
    quick: bool = False,
    page: str = "",
    short: Sequence[str] = (),
    origins: Mapping[str, Origin] | None = None,
) -> str:
    """The ledger as a page: a table of verdicts, then every claim with its measurements.

    Sections of an earlier `page` on papers that have no entry here are kept, and so is its summary
    if none is given as `short` (`in_short` writes it). `origins` has the code that computed each
    table, and its device (`Tables.origins`).
    """
    from neuralrace import __version__

    size = QUICK if quick else "the papers' settings unless a claim says otherwise"
    lines = [
        "# The papers' claims, measured",
        "",
        f"Written by `python -m papers claims{' --quick' * quick} --out docs/claims.md`, version "
        f"{__version__}, with {size}. Verdicts are computed from the numbers below them.",
        *_made(origins or {}),
        *_earlier(entries),
    ]
    lines += ["", f"## {SHORT}", "", *short] if short else _section(page, SHORT)
    lines += ["", "## Verdicts", "", RULES]
    for paper, title in PAPERS.items():
        mine = [entry for entry in entries if entry.claim.name.startswith(f"{paper}/")]
        if mine:
            tallied = f"{len(mine)} claims: {tally(mine)}."
            lines += ["", f"## {title}", "", tallied, "", *_summary(mine)]
            lines += [line for entry in mine for line in _entry(entry)]
        else:
            lines += _section(page, title)
    whole = {entry.claim.name.split("/")[0] for entry in entries} == set(PAPERS)
    if whole:
        lines += ["", f"## {CHANGED}", "", *change_lines(entries)]
    else:
        lines += _section(page, CHANGED)
    return "\n".join(lines) + "\n"


def _made(origins: Mapping[str, Origin]) -> list[str]:
    """A paragraph on the commits at which tables were computed, and on devices."""
    if not origins:
        return []
    commits = Counter(made.commit or "unknown" for made in origins.values())
    ordered = sorted(commits.items(), key=lambda each: (-each[1], each[0]))
    counts = ", ".join(f"{n} at {commit}" for commit, n in ordered)
    where = "".join(
        f" `{name}` was computed on: {made.device}."
        for name, made in sorted(origins.items())
        if made.device
    )
    return ["", f"Tables by the commit that computed them: {counts}.{where}"]


def _earlier(entries: Sequence[Entry]) -> list[str]:
    """A paragraph on the entries whose numbers are those of an earlier ledger."""
    named = ", ".join(f"`{e.claim.name}`" for e in entries if e.earlier is not None)
    return ["", f"Not measured again: {named}. {EARLIER}"] if named else []


def _told(origins: Mapping[str, Origin]) -> str:
    """Tables with what is known of each: commit and device."""
    facts = lambda made: (made.commit or "commit unknown", made.device)
    return ", ".join(
        f"`{name}` ({', '.join(filter(None, facts(made)))})"
        for name, made in sorted(origins.items())
    )


def _section(page: str, title: str) -> list[str]:
    """The lines of a page on one paper, after an empty line; no lines if the page has none."""
    for part in page.split("\n## ")[1:]:
        if part.startswith(title + "\n"):
            return ["", *f"## {part}".rstrip("\n").split("\n")]
    return []


def tally(entries: Sequence[Entry]) -> str:
    """How many claims have each verdict, in words.

    ```python
    >>> from papers.claims import ledger, tally
    >>> (claim,) = ledger("mhs/always-a-reln")
    >>> tally([claim.judged([0.0, 1.0, 1.0])] * 2)
    '2 hold'

    ```
    """
    count = Counter(entry.verdict for entry in entries)
    return ", ".join(f"{n} {_number(verdict, n)}" for verdict in Verdict if (n := count[verdict]))


def _number(verdict: Verdict, count: int) -> str:
    """The verdict as it is said of so many claims: 9 do not hold, 1 does not hold."""
    if count == 1:
        return verdict.value
    return verdict.value.replace("does not hold", "do not hold").replace("holds", "hold")


def _summary(entries: Iterable[Entry]) -> list[str]:
    rows = [
        (
            _link(e),
            e.claim.where + (", *inferred*" if e.claim.inferred else ""),
            e.claim.says,
            "–" if e.seeds is None else str(e.seeds),
            f"**{e.verdict.value}**",
        )
        for e in entries
    ]
    return table_lines(("claim", "where", "says", "seeds", "verdict"), rows)


def _link(entry: Entry) -> str:
    short = entry.claim.name.split("/")[1]
    return f"[{short}](#{short.lower()})"


def _entry(entry: Entry) -> list[str]:
    claim = entry.claim
    rows = [
        (
            measure.what,
            "limit" if measure.otherwise else "measure",
            measure.threshold,
            measure.rests.value,
            shown(measure, found),
            "–" if found.seeds is None else str(found.seeds),
            _OUTCOME[measure.outcome(found)],
        )
        for measure, found in entry.pairs
    ]
    lines = ["", f"### {claim.name.split('/')[1]}", "", f"{claim.says} ({claim.where})", ""]
    if claim.quote:
        lines += [f"> “{claim.quote}” ({claim.where})", ""]
    if claim.inferred:
        lines += ["*Inferred:* the sentence is ours.", ""]
    lines += [f"*How:* {claim.how}", ""]
    lines += table_lines(("what", "kind", "bound", "rests on", "found", "seeds", ""), rows)
    lines += ["", f"**{entry.verdict.value.capitalize()}.**"]
    lines += [f"- {text}" for text in entry.qualifications]
    lines += [f"- Unclear: {text}." for text in entry.doubts]
    if entry.remarks:
        lines += ["", "*Beside it:* " + " ".join(entry.remarks)]
    if entry.instead and not entry.stands:
        open_ = entry.verdict is Verdict.UNDECIDED
        title = "What the networks do" if open_ else "What happens instead"
        lines += ["", f"*{title}:* " + " ".join(entry.instead)]
    if entry.earlier is not None:
        tables = _told(entry.earlier) or "tables that are not known"
        lines += ["", f"*Not measured again:* the numbers rest on {tables}."]
    return lines


_OUTCOME = {Outcome.MET: "met", Outcome.MISSED: "**missed**", Outcome.UNCLEAR: "*unclear*"}
"""How each outcome is written in a table."""


def shown(measure: Measure, found: Found) -> str:
    """A number as it is read on the page, with half its interval, or the interval of a ratio.

    ```python
    >>> from papers.claims import Found, Measure
    >>> from papers.claims.page import shown
    >>> shown(Measure("gap", "gap", lambda t: 0, most=1), Found(0.5, 0.25, 0.75, 9))
    '0.5 ± 0.25'

    ```
    """
    if isnan(found.value):
        return "–"
    value = f"{found.value:{measure.form}}"
    off = (found.high - found.low) / 2
    if off > 0 and not isclose(found.high - found.value, off, rel_tol=1e-6):
        return f"{value} ({found.low:.2g} … {found.high:.2g})"
    return f"{value} ± {off:.2g}" if off > 0 else value
