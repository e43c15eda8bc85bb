"""The reference of studies in docs/studies.md: `python -m docs.study_keys` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neuralrace import Study
from neuralrace.study import OUTPUTS

PAGE = Path(__file__).with_name("studies.md")
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"

SECTIONS = {
    "": "At the top",
    "Task": "`[task]`, and `[training.evaluate.NAME]`",
    "Network": "`[network]`",
    "Graph": "`[network.graph]`",
    "Gating": "`[gatings.NAME]`",
    "Training": "`[training]`",
    "ContestOptions": "`[contest]`",
    "PredictOptions": "`[predict]`",
    "DiscoverOptions": "`[discover]`",
    "ReduceOptions": "`[reduce]`",
    "ModesOptions": "`[modes]`",
    "TypesOptions": "`[types]`",
    "ExplainOptions": "`[explain]`",
    "PhaseOptions": "`[phase_diagram]`",
    "Sweep": "`[sweep]`",
    "Spread": "Evenly spaced values",
}
"""Names of sections in the schema, in the order of the page."""


def reference() -> str:
    """Every key of every section, from the schema."""
    schema = Study.schema()
    lines: list[str] = []
    for name, title in SECTIONS.items():
        section = schema if not name else schema["$defs"][name]
        lines += ["", f"### {title}", "", section["description"], ""]
        lines += ["| key | default | what it is |", "|---|---|---|", *_rows(section)]
    return "\n".join(lines).strip()


def outputs() -> str:
    """What every output of a sweep is."""
    lines = ["| output | question | what it is | missing where |", "|---|---|---|---|"]
    for output in OUTPUTS:
        what = f"{output.what}; of the gating `followed`" if output.followed else output.what
        question = f"`{output.question}`" if output.question else "–"
        cells = (f"`{output.name}`", question, what, output.missing or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows(section: dict[str, Any]) -> Iterator[str]:
    for key, entry in section["properties"].items():
        default = "needed" if key in section.get("required", ()) else _shown(entry)
        yield f"| `{key}` | {default} | {entry.get('description', '')} |"


def _shown(entry: dict[str, Any]) -> str:
    default = entry.get("default")
    if default in (None, "", [], {}) or isinstance(default, dict):
        return "–"
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, list):
        return ", ".join(f"`{value}`" for value in default)
    return f"`{default}`"


def page() -> str:
    """The page with the reference of today."""
    text = PAGE.read_text()
    for name, inner in (("outputs", outputs()), ("keys", reference())):
        begin, end = BEGIN.format(name), END.format(name)
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = f"{before}{begin}\n{inner}\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
