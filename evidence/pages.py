"""The pages of the evidence: a summary, one page for each paper, one for our own promises."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isclose, isnan, nan
from pathlib import Path
from typing import Any

from evidence.claim import Claim, Entry, Verdict
from evidence.measure import FEWEST_SEEDS, LEEWAY, Found, Measure, Outcome
from evidence.store import OWN, ROOT, STORE, of_topic, read, restored, topics
from evidence.tables import figures

RULES = f"""\
- Every number has a bound, and the bound rests on one of four things. *A theorem*: the sentence is
  an identity, tested to rounding. *The paper*: its number, or a word that fixes one (faster, all,
  none). *The seed floor*: what two seeds of the same network differ by. *Our choice*: the paper
  says “close” or “similar” and gives no number.
- A number that depends on random weights needs {FEWEST_SEEDS} seeds. Where there is one number per
  seed, their mean is shown with its 95 % interval (Student's t). Ratios that some seeds make many
  times as large as others have a geometric mean, with the interval of the logarithms in brackets.
  One number over all seeds, such as a correlation, has an interval from drawing the seeds again
  (the bootstrap). If the bound lies inside the interval, the number is *unclear*.
- A bound of our choice refutes only what a bound {LEEWAY:g} times as wide would also refute. One
  that was set when the number was known decides nothing in either direction. Such numbers are
  *unclear*. Limits refute nothing and need no leeway.
- A missed measure refutes a claim (*does not hold*); an unclear one leaves it *undecided*. A missed
  *limit* qualifies a claim that holds otherwise; an unclear one is named and changes nothing.
- *Inferred* marks a claim whose sentence is ours, as for a slide that has only a title.
- For our own promises, *holds* reads *met*, and *does not hold* reads *missed*. Targets are not
  moved to meet a measurement."""
"""What a reader must know about verdicts."""

CHANGED = """\
Every claim of 0.1 is here with the numbers and the verdict that it had. A number that was listed
twice under different rules now has one verdict: that a small embedding and a large readout shorten
grokking (it took {:.2f} times as long) was *no* in the gallery, *missed* among our promises, and is
[undecided](talk.md#grokking) everywhere. Promises about the pages of 0.1 became tests."""
"""What changed against 0.1, by hand, but for a number; a test compares its verdict."""

RETIRED = {
    "ledger/places": "a test of `evidence.pages`",
    "ledger/seeds": "a test of the stored numbers",
    "ledger/verdicts": "verdicts are computed where they are shown",
    "ledger/numbers": "a test of the rules, with examples worked out by hand",
    "ledger/changes": "the table of changes is gone; this page names what changed",
    "ledger/page": "a test: pages follow from the stored numbers",
    "talk/grokking-times": "the claim `talk/grokking`, measure `sooner`",
}
"""Ids of 0.1 that are no promises any more, and what has taken their place."""

WORD = {
    Verdict.HOLDS: "met",
    Verdict.QUALIFIED: "met with a qualification",
    Verdict.FAILS: "missed",
    Verdict.UNDECIDED: "undecided",
}
"""How the verdict on a promise is written."""

OUTCOME = {Outcome.MET: "met", Outcome.MISSED: "**missed**", Outcome.UNCLEAR: "*unclear*"}
"""How each outcome is written in a table."""


def word(entry: Entry) -> str:
    """The verdict of an entry in words: that of a claim, or whether a promise is met."""
    return WORD[entry.verdict] if entry.claim.topic == OWN else entry.verdict.value


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    line = lambda cells: "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return [line(head), "|" + "---|" * len(head), *map(line, rows)]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Lines that are shown when their title is opened."""
    return ["", "<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def anchor(name: str) -> str:
    """The last part of a claim's id, by which its heading is linked to."""
    return re.sub(r"[^\w-]", "", name.split("/", 1)[1].lower() if "/" in name else name.lower())


def shown(measure: Measure, found: Found) -> str:
    """A number as it is read on the page, with half its interval, or the interval of a ratio.

    ```python
    >>> from evidence import Found, Measure
    >>> from evidence.pages import shown
    >>> shown(Measure("gap", "gap", lambda t: 0, most=1), Found(0.5, 0.25, 0.75, 9))
    '0.5 ± 0.25'

    ```
    """
    if found.text or isnan(found.value):
        return found.text or "–"
    value = f"{found.value:{measure.form}}"
    off = (found.high - found.low) / 2
    if off > 0 and not isclose(found.high - found.value, off, rel_tol=1e-6):
        return f"{value} ({found.low:.2g} … {found.high:.2g})"
    return f"{value} ± {off:.2g}" if off > 0 else value


# ---- pages ---------------------------------------------------------------------------------------


def pages(folder: Path = STORE) -> dict[str, str]:
    """Every page by its name, from the numbers that are stored."""
    kept = read(folder)
    each = {t: {c.name: restored(c, kept.get(c.name)) for c in of_topic(t)} for t in topics()}
    every = {topic: [e for e in some.values() if e is not None] for topic, some in each.items()}
    open_ = {topic: [n for n, e in some.items() if e is None] for topic, some in each.items()}
    facts = json.loads((ROOT / "docs/gallery/facts.json").read_text())
    papers = {t: _paper(t, each, facts) for t, each in every.items() if t != OWN}
    whole = {"index": _summary(every, open_), **papers, OWN: _own(every[OWN], open_[OWN])}
    return {name: "\n".join(lines) + "\n" for name, lines in whole.items()}


def write(folder: Path = STORE) -> None:
    """Write all pages."""
    for name, text in pages(folder).items():
        (folder / f"{name}.md").write_text(text)


def _summary(every: Mapping[str, Sequence[Entry]], open_: Mapping[str, Sequence[str]]) -> list[str]:
    heads = ("", "claims", "holds", "qualified", "does not hold", "undecided", "not measured yet")
    rows, fails, missed = [], [], []
    for topic, each in every.items():
        count = Counter(entry.verdict for entry in each)
        numbers = [str(count[verdict] or "–") for verdict in Verdict]
        title = _title(topic).partition(" (")[0]
        whole, left = str(len(each) + len(open_[topic])), str(len(open_[topic]) or "–")
        rows.append((f"[{title}]({topic}.md)", whole, *numbers, left))
        lost = [entry for entry in each if entry.verdict is Verdict.FAILS]
        link = lambda claim, at, topic=topic: f"[{claim.name}]({topic}.md#{at})"
        if topic == OWN:
            missed = [f"- {link(e.claim, _id(e.claim))}: {_why(e)}" for e in lost]
        else:
            fails += [f"- {link(e.claim, anchor(e.claim.name))}: *{e.claim.says}*" for e in lost]
    return [
        "# Evidence",
        "",
        "What the papers claim and what this project promises, with numbers. `make evidence` "
        "measures all at full size; `python -m evidence --only ID` one of them.",
        "",
        *table(heads, rows),
        "",
        "**What does not hold.**",
        "",
        *fails,
        *folded(f"{len(missed)} missed promises, and why", missed),
        *_left([name for names in open_.values() for name in names]),
        *folded("What changed against 0.1", [" ".join(CHANGED.split()).format(_longer(every))]),
        *folded("How a verdict follows from the numbers", RULES.split("\n")),
    ]


def _left(names: Sequence[str]) -> list[str]:
    """What has no stored number yet."""
    return folded(f"{len(names)} not measured yet", [", ".join(names)]) if names else []


def _longer(every: Mapping[str, Sequence[Entry]]) -> float:
    """How many times as long grokking takes with a small embedding and a large readout."""
    pairs = [pair for e in every["talk"] if e.claim.name == "talk/grokking" for pair in e.pairs]
    return next((found.value for measure, found in pairs if measure.id == "sooner"), nan)


def _why(entry: Entry) -> str:
    """In a few words, why a claim does not hold: what was missed, or the note."""
    number = entry.found[0]
    if number.text:
        return _short(number.note or f"{number.text} (target {entry.claim.measures[0].target})")
    lost = [
        f"{m.what} {shown(m, f)} (bound {m.threshold})"
        for m, f in entry.pairs
        if not m.otherwise and m.outcome(f) is Outcome.MISSED
    ]
    return lost[0]


def _short(text: str, most: int = 110) -> str:
    return text if len(text) <= most else text[: text.rindex(" ", 0, most)] + " …"


def _title(topic: str) -> str:
    return "What this project promises" if topic == OWN else figures().TITLES[topic]


def _paper(topic: str, each: Sequence[Entry], facts: Mapping[str, Any]) -> list[str]:
    seeds = lambda entry: "–" if entry.seeds is None else str(entry.seeds)
    link = lambda entry: f"[{entry.claim.name.split('/')[1]}](#{anchor(entry.claim.name)})"
    rows = [(link(entry), seeds(entry), entry.verdict.value) for entry in each]
    count = Counter(text for e in each if not e.stands for text in e.instead)
    several = [text for text, times in count.items() if times > 1]
    also = [f'<a id="also-{k + 1}"></a>{k + 1}. {t}' for k, t in enumerate(several)]
    earlier: dict[Any, str] = {}
    lines = [
        f"# {_title(topic)}",
        "",
        f"{len(each)} claims: {tally(each)}. [What it says, in a page]"
        f"(../../papers/{topic}/README.md); [how a verdict follows](index.md).",
        "",
        *table(("claim", "seeds", "verdict"), rows),
        "",
        "## Claims",
        *(line for entry in each for line in told(entry, several, earlier)),
        *(folded("What is said of several claims", also) if several else []),
        "",
        "## Figures",
    ]
    lined = {m.line: e for e in each for m in e.claim.measures if m.line[0]}
    for name in figures().names():
        if name.startswith(f"{topic}/") and name in facts:
            lines += _figure(name, facts[name], lined)
    return lines


def tally(entries: Sequence[Entry]) -> str:
    """How many claims have each verdict, in words.

    ```python
    >>> from evidence import claims
    >>> from evidence.pages import tally
    >>> (claim,) = claims("mhs/always-a-reln")
    >>> tally([claim.judged([0.0, 1.0, 1.0])] * 2)
    '2 hold'

    ```
    """
    count = Counter(entry.verdict for entry in entries)
    many = lambda v, n: v.value.replace("does", "do").replace("holds", "hold") if n > 1 else v.value
    return ", ".join(f"{n} {many(verdict, n)}" for verdict in Verdict if (n := count[verdict]))


def told(
    entry: Entry, several: Sequence[str] = (), earlier: dict[Any, str] | None = None
) -> list[str]:
    """A claim: its sentence, its verdict, and below it how and with which numbers.

    Left out are numbers that are met where the verdict is not due to them, and those of `earlier`
    claims, which are linked. `several` are remarks on other claims too.
    """
    claim, earlier, rows = entry.claim, {} if earlier is None else earlier, []
    met, others = 0, dict[str, None]()
    for measure, found in entry.pairs:
        number, name = shown(measure, found), anchor(claim.name)
        before, _, after = measure.what.partition(": ")
        key = (after if before in earlier.values() else measure.what, number)
        if measure.outcome(found) is Outcome.MET and (measure.otherwise or not entry.stands):
            met += 1
        elif (first := earlier.setdefault(key, name)) != name:
            others[f"[{first}](#{first})"] = None
        else:
            what = ("limit: " if measure.otherwise else "") + measure.what
            bound = f"{measure.threshold}, {measure.rests.value}"
            outcome = OUTCOME[measure.outcome(found)] + _because(measure, found)
            rows.append((what, bound, number, outcome))
    detail = [f"> “{claim.quote}”", ""] if claim.quote else []
    detail += ["*Inferred:* the sentence is ours.", ""] if claim.inferred else []
    detail += [f"*How:* {claim.how}"]
    detail += ["", *table(("what", "bound", "found", ""), rows)] if rows else []
    left = [f"{met} that {'are' if met > 1 else 'is'} met"] if met else []
    left += [f"those of {', '.join(others)}"] if others else []
    detail += ["", f"*Other numbers:* {', and '.join(left)}."] if left else []
    detail += ["", "*Beside it:* " + " ".join(entry.remarks)] if entry.remarks else []
    if entry.instead and not entry.stands:
        open_ = entry.verdict is Verdict.UNDECIDED
        title = "What the networks do" if open_ else "What happens instead"
        own = [text for text in entry.instead if text not in several]
        more = [f"[{k + 1}](#also-{k + 1})" for k, t in enumerate(several) if t in entry.instead]
        also = [f"See also {', '.join(more)} of what is said of several claims."] if more else []
        detail += ["", f"*{title}:* " + " ".join([*own, *also])]
    detail += ["", f"*Measured:* {_origins(entry)}."]
    lines = ["", f"### {claim.name.split('/')[1]}", "", f"{claim.says} ({claim.where})", ""]
    lines += [f"**{entry.verdict.value.capitalize()}.**"]
    lines += [f"- {text}" for text in entry.qualifications]
    return lines + folded("Numbers", detail)


def _because(measure: Measure, found: Found) -> str:
    """Why a number is unclear, after that word."""
    doubt = measure.doubt(found)
    return f": {doubt}" if doubt else ""


def _origins(entry: Entry) -> str:
    """Where the numbers of an entry come from: commits, with the number of tables, and devices."""
    of = [made for made in entry.tables.values() if made] or [entry.made]
    at = Counter(made.get("commit") or "unknown" for made in of)
    devices = sorted({made["device"] for made in of if made.get("device")})
    commits = ", ".join(f"{commit} ({n})" if len(of) > 1 else commit for commit, n in at.items())
    return f"at {commits}" + (f", on {'; '.join(devices)}" if devices else "")


def _figure(name: str, fact: Mapping[str, Any], lined: Mapping[Any, Entry]) -> list[str]:
    """A figure: its picture, what the paper states, and what was measured on it."""
    figure, short = figures().find(name), name.split("/")[1]
    lines = [row for id, row in fact["agreement"].items() if (name, id) not in lined]
    count = Counter(row["holds"] for row in lines)
    rows = [(r["what"], r["measured"], r["target"]) for r in lines if r["holds"] is False]
    read = dict.fromkeys(e.claim.name for line, e in lined.items() if line[0] == name)
    links = ", ".join(f"[{claim.split('/')[1]}](#{anchor(claim)})" for claim in read)
    script = f"[{short}.py](../../papers/{name}.py)"
    made = ", ".join(x for x in (fact["device"], fact["commit"] and f"at {fact['commit']}") if x)
    data = f" [Its data](../gallery/{fact['nc']})." if fact["nc"] else ""
    return [
        *("", f"### {short} (figure)", "", f"![{figure.title}](../gallery/{fact['picture']})", ""),
        figure.states,
        "",
        f"`{fact['command']}` runs {script} in {fact['seconds']:.0f} s ({made}), and tells what is "
        f"measured on it.{data}{links and f' Its numbers with bounds are those of {links}.'}"
        f"{f' Of its other numbers, {count[True]} agree' if lines else ''}"
        f"{' and these differ:' if rows else '.' if lines else ''}",
        *(["", *table(("", "measured", "target"), rows)] if rows else []),
    ]


# ---- our own promises ----------------------------------------------------------------------------


def _id(claim: Claim) -> str:
    return claim.name.replace("/", "-").replace(".", "")


def _own(each: Sequence[Entry], open_: Sequence[str]) -> list[str]:
    sections: dict[str, list[Entry]] = {}
    for entry in each:
        sections.setdefault(entry.claim.where, []).append(entry)
    count = Counter(map(word, each))
    rest = [f"{n} are {said}" for said in WORD.values() if (n := count[said])]
    rest += [f"{len(open_)} are not measured yet"] if open_ else []
    lines = [
        f"# {_title(OWN)}",
        "",
        f"Of {len(each) + len(open_)} promises, {', '.join(rest)}. Each is followed by what was "
        "measured at full size and, in brackets, by its target. What is long is cut here: "
        "[own.json](own.json) has all. [How a verdict follows](index.md).",
        *_left(open_),
    ]
    for section, some in sections.items():
        commits = dict.fromkeys(e.made.get("commit") or "an unknown commit" for e in some)
        lines += ["", f"## {section}", "", f"Measured at {', '.join(commits)}."]
        lines += [line for entry in some for line in _promise(entry)]
    gone = [f"- `{id}`: now {where}" for id, where in RETIRED.items()]
    return [*lines, *folded("Ids of 0.1 that are no promises any more", gone)]


def _promise(entry: Entry) -> list[str]:
    """A promise in one line: what was measured, its target, and why that is missed if it is."""
    claim, number, met = entry.claim, entry.found[0], entry.verdict is Verdict.HOLDS
    mark = "" if met else f"**{word(entry)}**, "
    note = f" {_short(number.note)}" if number.note and not met else ""
    measured, target = _short(number.text, 50 if met else 110), claim.measures[0].target
    line = f'<a id="{_id(claim)}"></a>{mark}*{claim.name}*: {claim.says}. '
    return ["", f"{line}**{measured}** ({_short(target, 160)}).{note}"]
