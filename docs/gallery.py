"""The gallery of figures and examples: `python -m docs.gallery` writes docs/gallery.md.

Pictures, data and facts are stored in docs/gallery, so that the page needs no computing:

    python -m docs.gallery --from out/figures    # figures whose data lie in the folder
    python -m docs.gallery --examples            # every example, run again
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import papers
from docs.store import (
    EXAMPLES,
    ROOT,
    STORE,
    STUDIES,
    Facts,
    run_examples,
    stored,
    study_name,
    update,
    write,
)
from papers.claims import ledger, table_file

PAGE = ROOT / "docs/gallery.md"
LEDGER = ROOT / "docs/claims.json"

# ---- the page ------------------------------------------------------------------------------------


def page(facts: Facts) -> str:
    """The whole page: every figure of the papers in their order, then the examples."""
    lines = [
        "# Gallery",
        "",
        "Every figure of the papers, made anew, and every example: what it shows, how it is made",
        "and how long that takes, its data, and the [claims](claims.md) that are measured on it.",
        "[reproduce.md](reproduce.md) says how to change settings and looks. Pictures and data",
        "are stored; `python -m docs.gallery` writes this page. Times are those of one run, some",
        "of them on a machine that others were using.",
    ]
    below: list[str] = []
    about = [
        "",
        "## Data files",
        "",
        "A CSV file holds what is drawn: one row per point of a curve or an area (with both its",
        "edges), per bar, error bar or entry of a map. An entry says where curves have more points",
        "than are kept. Contours, graphs and panels in three dimensions have no rows. The netCDF",
        "file holds all data of a figure, with settings and agreement. It is linked where it is",
        "small, and the command writes it in any case.",
    ]
    for paper, title in papers.TITLES.items():
        below += ["", f"## {title}"]
        for name in papers.names():
            if name.startswith(f"{paper}/") and name in facts:
                below += _figure(name, facts[name])
    below += ["", "## Examples"]
    for script in EXAMPLES:
        if script.stem in facts:
            below += _example(script, facts[script.stem])
    below += [
        "",
        "## Studies",
        "",
        "Curves of each report; [studies.md](studies.md) says what a study is.",
    ]
    for file in STUDIES:
        if study_name(file) in facts:
            below += _study(file, facts[study_name(file)])
    parts = _overview(below) + about + below
    return "\n".join([*lines, "", _parts(parts), *parts]) + "\n"


def _parts(lines: list[str]) -> str:
    """Links to the headings of the page: it is long, above all on a phone."""
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    return "Parts: " + ", ".join(f"[{each}](#{anchor(each)})" for each in headings) + "."


COLUMNS = 4
"""Thumbnails side by side in the overview, where the page is not laid out by the site's style."""


def _overview(below: list[str]) -> list[str]:
    """A table of thumbnails, each with a link to its entry further down."""
    cells, heading = [], ""
    for line in below:
        if line.startswith("### "):
            heading = line.removeprefix("### ")
        elif line.startswith("!["):
            name, _, title = heading.partition(": ")
            cells.append(f"[{line} {name}](#{anchor(heading)}) {title}".rstrip())
    rows = [cells[i : i + COLUMNS] for i in range(0, len(cells), COLUMNS)]
    told = [f"| {' | '.join(row + [''] * (COLUMNS - len(row)))} |" for row in rows]
    return ["", "## Overview", "", "| " * COLUMNS + "|", "|---" * COLUMNS + "|", *told]


def anchor(heading: str) -> str:
    """The name by which a heading of a page in Markdown is linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _figure(name: str, fact: Mapping[str, Any]) -> list[str]:
    figure = papers.find(name)
    marks = "**A quick version, with smaller settings.** " if fact["quick"] else ""
    judged = [row["holds"] for row in fact["agreement"].values() if row["holds"] is not None]
    missed = [row["what"] for row in fact["agreement"].values() if row["holds"] is False]
    links = [f"[{c.split('/')[1]}](claims.md#{c.split('/')[1].lower()})" for c in fact["claims"]]
    return [
        *("", f"### {name}: {figure.title}", "", f"![{figure.title}](gallery/{fact['picture']})"),
        *("", f"{marks}The paper states: {figure.states}", ""),
        f"- Script: [{name}.py](../papers/{name}.py). `{fact['command']}` runs it"
        f" in {_seconds(fact['seconds'])}. {_origin(fact)}",
        f"- Agreement: {sum(judged)} of {len(judged)} lines agree with the paper."
        + (f" Missed: {'; '.join(missed)}." if missed else ""),
        f"- Data: {_data(fact)}",
        f"- Claims: {', '.join(links) or 'none is measured on it'}.",
    ]


def _example(script: Path, fact: Mapping[str, Any]) -> list[str]:
    name = script.stem
    return [
        *("", f"### {name}", "", f"![{name}](gallery/{fact['picture']})"),
        *("", sentence(script), ""),
        f"- Script: [{name}.py](../examples/{name}.py); it takes {_seconds(fact['seconds'])}, with"
        f" imports. {_origin(fact)}",
        f"- Data: {_data(fact)}",
    ]


def _study(file: Path, fact: Mapping[str, Any]) -> list[str]:
    title = tomllib.loads(file.read_text())["title"]
    return [
        *("", f"### {study_name(file)}: {title}", "", f"![{title}](gallery/{fact['picture']})"),
        "",
        *(line for answer in fact["answers"] for line in (answer, "")),
        f"- Study: [{file.name}](../examples/studies/{file.name}); it takes"
        f" {_seconds(fact['seconds'])}. {_origin(fact)}",
        f"- Data: {_data(fact)} `neuralrace run examples/studies/{file.name} --out out/{file.stem}`"
        " writes the whole report.",
    ]


def sentence(script: Path) -> str:
    """What an example is about: the first line of its docstring."""
    return script.read_text().split('"""')[1].split("\n\n")[0].strip()


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def _origin(fact: Mapping[str, Any]) -> str:
    """Where the data come from, and with which versions; what was not recorded is said."""
    versions = ", ".join(f"{k} {v}" for k, v in fact["versions"].items())
    where = fact["device"].replace("cpu (cpu)", "a CPU") or "a device that was not recorded"
    commit, adopted, _ = fact["commit"].partition(" (adopted)")
    at = f"at commit {commit}" if commit else "at a commit that was not recorded"
    at += ", which first reported its numbers, or before" if adopted else ""
    cells = fact.get("agreement", {}).get(CELLS, {"measured": ""})["measured"]
    if "commit" in cells:
        told = cells.replace(" cells: ", " on ")
        return f"Stored cells: {told}. Put together on {where}, {at}, with {versions}."
    return f"Computed on {where}, {at}, with {versions}."


CELLS = "origins"
"""The id of the line of agreement that names device and commit of stored cells."""


def _data(fact: Mapping[str, Any]) -> str:
    parts = []
    if fact["csv"]:
        thin = f", at most {fact['points']} points of each curve" if fact["points"] else ""
        less = "" if fact["maps"] else ", without maps"
        parts.append(f"[what is drawn (CSV)](gallery/{fact['csv']}){thin}{less}")
    if fact.get("nc"):
        parts.append(f"[all data (netCDF)](gallery/{fact['nc']})")
    elif "command" in fact:
        file = fact["command"].split()[4]
        parts.append(f"the command writes all data to `{file}.nc`")
    if not parts:
        return "its map is too large to be kept here." if fact["maps"] is False else "none."
    return "; ".join(parts) + "."


def feeds() -> dict[str, list[str]]:
    """The claims that are measured on each figure, by its name; nothing is computed.

    Every measure of the ledger reads stand-ins, which remember what was asked for. Where types are
    checked at run time, as in the tests, some refuse stand-ins, and fewer claims are found.
    """
    found: dict[str, list[str]] = {}
    for claim in ledger():
        asked: dict[str, None] = {}

        def table(name: str, asked: dict[str, None] = asked, **_: Any) -> MagicMock:
            asked[name] = None
            return MagicMock()

        tables = MagicMock(side_effect=table)
        tables.at_hand = table
        for measure in claim.measures:
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                measure.read(tables)  # fails where it needs numbers, which a stand-in has not
        for name in asked:
            found.setdefault(name, []).append(claim.name)
    return found


def with_ledger(facts: Facts, kept: Mapping[str, Any]) -> Facts:
    """Facts with the claims of each figure, and with what the ledger knows of its table.

    `kept` is docs/claims.json. It has the commit of every table, which is taken where a figure's
    data, stored by the ledger, have none.
    """
    fed, found = feeds(), dict(facts)
    for name in (name for name in papers.names() if name in facts):
        fact: dict[str, Any] = {**facts[name], "claims": fed.get(name, [])}
        made = kept["tables"].get(table_file(name, fact["settings"]))
        if made and not fact["commit"]:
            fact["commit"] = made["commit"]
        found[name] = fact
    return found


def main(arguments: list[str] | None = None) -> None:
    """Update the store where asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="a folder with data of figures")
    parser.add_argument("--examples", nargs="*", metavar="NAME", help="run these examples, or all")
    given = parser.parse_args(arguments)
    if given.source is not None:
        sys.stdout.write(f"stored: {', '.join(update(given.source)) or 'nothing'}\n")
    if given.examples is not None:
        run_examples(given.examples)
    facts = with_ledger(stored(), json.loads(LEDGER.read_text()))
    write(facts, STORE)
    PAGE.write_text(page(facts))


if __name__ == "__main__":
    main()
