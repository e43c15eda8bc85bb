"""The papers' figures, one module each, and what they claim.

This folder lies beside the package and uses its public names; `python -m papers` in a checkout of
the repository runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from papers import attention, learned_gates, mhs, multimodal, nrr, rnn, talk
from papers.figure import (
    Figure,
    Setting,
    Settings,
    TooSlow,
    settings_of,
    stated,
    unknown,
)
from papers.gallery import TITLES, gallery
from papers.record import (
    Record,
    Written,
    command,
    load_figure,
    pack,
    read_record,
    row_of,
    shown,
    stored,
    unpack,
)
from papers.tour import Stop, Tour, write_tour

__all__ = [
    "TITLES",
    "Figure",
    "Record",
    "Setting",
    "Settings",
    "Stop",
    "TooSlow",
    "Tour",
    "Written",
    "chosen",
    "command",
    "find",
    "find_tour",
    "gallery",
    "load_figure",
    "names",
    "pack",
    "read_record",
    "row_of",
    "settings_of",
    "shown",
    "stated",
    "stored",
    "tours",
    "unknown",
    "unpack",
    "write_tour",
]


_FIGURES = {
    "nrr": nrr.FIGURES,
    "mhs": mhs.FIGURES,
    "talk": talk.FIGURES,
    "rnn": rnn.FIGURES,
    "attention": attention.FIGURES,
    "multimodal": multimodal.FIGURES,
    "learned_gates": learned_gates.FIGURES,
}
"""The modules of each paper that have a `FIGURE`, in the order of the paper."""


_TOURS = ("mhs/tour", "talk/tour")
"""The modules that have a `TOUR`: figures of a paper in the order of a talk, with captions."""


def names() -> tuple[str, ...]:
    """The names of all figures, in the order of the papers; nothing is imported.

    ```python
    >>> import papers
    >>> papers.names()[0]
    'nrr/fig1'

    ```
    """
    return tuple(f"{paper}/{module}" for paper, modules in _FIGURES.items() for module in modules)


def find(name: str) -> Figure:
    """The figure of that name, such as `nrr/fig4`; imports neither JAX nor matplotlib.

    ```python
    >>> import papers
    >>> papers.find("nrr/fig3").settings["hidden"].value
    128

    ```
    """
    if name not in names():
        raise unknown("figure", name, names())
    return import_module(f"papers.{name.replace('/', '.')}").FIGURE


def tours() -> tuple[str, ...]:
    """The names of all tours; nothing is imported.

    ```python
    >>> import papers
    >>> papers.tours()[0]
    'mhs/tour'

    ```
    """
    return _TOURS


def find_tour(name: str) -> Tour:
    """The tour of that name: figures of a paper in the order of a talk, with captions.

    ```python
    >>> import papers
    >>> papers.find_tour("mhs/tour").figures[0]
    'mhs/fig1'

    ```
    """
    if name not in tours():
        raise unknown("tour", name, tours())
    return import_module(f"papers.{name.replace('/', '.')}").TOUR


def chosen(given: Iterable[str]) -> tuple[str, ...]:
    """Names of figures, each once, from names of figures, papers (all figures), or `all`.

    ```python
    >>> import papers
    >>> papers.chosen(["all"]) == papers.names()
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
