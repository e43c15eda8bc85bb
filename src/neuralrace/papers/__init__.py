"""The papers' figures, one module each, and the ledger of their claims."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from neuralrace.papers.figure import (
    Agreement,
    Figure,
    Setting,
    Settings,
    TooSlow,
    settings_of,
    unknown,
)
from neuralrace.papers.gallery import gallery
from neuralrace.papers.record import Record, Written, load_figure, read_record, shown

__all__ = [
    "Agreement",
    "Figure",
    "Record",
    "Setting",
    "Settings",
    "TooSlow",
    "Written",
    "chosen",
    "find",
    "gallery",
    "load_figure",
    "names",
    "read_record",
    "settings_of",
    "shown",
    "unknown",
]

_FIGURES = {
    "nrr": ("fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "appendix_a2"),
    "mhs": ("fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9"),
    "talk": (
        "depth",
        "error_surface",
        "stages",
        "training_speed",
        "structures",
        "differentiation",
        "saddles",
        "decisions",
        "saddle_graph",
        "deep_and_shallow",
        "lambda_trajectories",
        "regimes",
        "delayed_rich",
        "continual",
    ),
}
"""The modules of each paper that have a `FIGURE`, in the order of the paper."""


def names() -> tuple[str, ...]:
    """The names of all figures, in the order of the papers; nothing is imported.

    ```python
    >>> from neuralrace import papers
    >>> papers.names()[0]
    'nrr/fig3'

    ```
    """
    return tuple(f"{paper}/{module}" for paper, modules in _FIGURES.items() for module in modules)


def find(name: str) -> Figure:
    """The figure of that name, such as `nrr/fig4`; imports neither JAX nor matplotlib.

    ```python
    >>> from neuralrace import papers
    >>> papers.find("nrr/fig3").settings["hidden"].value
    128

    ```
    """
    if name not in names():
        raise unknown("figure", name, names())
    return import_module(f"neuralrace.papers.{name.replace('/', '.')}").FIGURE


def chosen(given: Iterable[str]) -> tuple[str, ...]:
    """Names of figures, each once, from names of figures, of papers (all their figures), or `all`.

    ```python
    >>> from neuralrace import papers
    >>> papers.chosen(["nrr", "mhs", "talk"]) == papers.chosen(["all"]) == papers.names()
    True

    ```
    """
    found: dict[str, None] = {}
    for name in given:
        those = [n for n in names() if name in (n, n.split("/")[0], "all")]
        if not those:
            raise unknown("figure", name, (*names(), *_FIGURES, "all"))
        found |= dict.fromkeys(those)
    return tuple(found)
