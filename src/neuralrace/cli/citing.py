"""How to cite the package and the papers that it computes, as BibTeX."""

from __future__ import annotations

import re
from pathlib import Path

import click

from neuralrace import __version__
from neuralrace.cli.options import JSON, print_json
from neuralrace.errors import NeuralRaceError, nearest_name

FILE = Path(__file__).with_name("citations.bib")
"""All entries; they say the same as CITATION.cff."""

PAPERS = {"nrr": "saxe2022race", "mhs": "jarvis2025haste", "talk": "saxe_talk"}
PAPERS |= dict.fromkeys(("rnn", "attention", "multimodal", "learned_gates"), "neuralrace")
"""What figures cite: the paper that they are from, or this package, whose own they are."""


def entries() -> dict[str, str]:
    """Every entry by its key.

    ```python
    >>> from neuralrace.cli.citing import entries
    >>> list(entries())[:2]
    ['neuralrace', 'saxe2022race']

    ```
    """
    text = FILE.read_text(encoding="utf-8").replace("VERSION", __version__)
    found = re.findall(r"^@\w+\{(\w+),\n.*?^\}$", text, re.MULTILINE | re.DOTALL)
    whole = re.split(r"\n\n(?=@)", text.strip())
    return dict(zip(found, whole, strict=True))


def _names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    return [name for name in (*PAPERS, *entries()) if name.startswith(begun)]


@click.command()
@click.argument("names", nargs=-1, shell_complete=_names)
@JSON
def cite(names: tuple[str, ...], as_json: bool) -> None:
    """Print BibTeX: of the package, of the papers it computes, and of those they build on.

    NAMES choose: a paper such as nrr, a figure such as nrr/fig4, or the key of an entry.
    """
    known = entries()
    chosen = {_key(name, known): None for name in names} or dict.fromkeys(known)
    if as_json:
        print_json({key: known[key] for key in chosen})
    else:
        click.echo("\n\n".join(known[key] for key in chosen))


def _key(name: str, known: dict[str, str]) -> str:
    """The key of the entry that is meant."""
    paper = name.split("/")[0]
    if paper in PAPERS or name in known:
        return PAPERS.get(paper, name)
    there = [*PAPERS, *known]
    close = nearest_name(name, there)
    raise NeuralRaceError(
        f"there is nothing to cite called {name!r}",
        got=repr(name),
        wanted=f"one or more of {', '.join(there)}, or a figure",
        fix=f"did you mean {close!r}?" if close else "leave out the name for all entries",
    )
