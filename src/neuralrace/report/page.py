"""What a report is made of: plain values, which `write` turns into one page.

Every text is plain text: it is escaped, so that it reads on the page as it was given. Words between
backticks are set as code, and an empty line begins a new paragraph.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from neuralrace.checks import entries, one_of, real_array, shown
from neuralrace.errors import NeuralRaceError, check_kind, require
from neuralrace.plot import FORMATS, current_look, picture_bytes
from neuralrace.results import Result, as_text
from neuralrace.text import plain

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    from matplotlib.axes import Axes

PAGE = "index.html"
"""The name of the page itself."""

KINDS = ("simulation", "theory", "relu")
"""What a curve can be: solid, dashed, or solid and wide."""

Kind: TypeAlias = Literal["simulation", "theory", "relu"]
Cell: TypeAlias = str | int | float | bool | None


@final
@dataclass(frozen=True)
class Text:
    """Sentences. An empty line begins a new paragraph; words between backticks are code.

    ```python
    >>> from neuralrace import report
    >>> report.Text("The winner is `xor`.").text
    'The winner is `xor`.'

    ```
    """

    text: str


@final
@dataclass(frozen=True)
class Code:
    """Text whose line breaks and spaces are kept: a script, or what a program printed.

    ```python
    >>> from neuralrace import report
    >>> report.Code("print(race)").text
    'print(race)'

    ```
    """

    text: str


@final
@dataclass(frozen=True)
class Table:
    """Rows under a head; wide tables scroll on a phone.

    **Arguments:** `rows` hold texts, numbers (shown to four digits), True and False (shown as a
    tick and a cross) and None (a dash). `caption` stands above. If `file` names a CSV file,
    `write` puts the table into it, with every digit, and links it: `data`, if that is given, which
    may have more columns. `right` names columns whose texts are numbers.

    ```python
    >>> from neuralrace import report
    >>> table = report.Table(("gating", "time"), [("xor", 1.25), ("linear", None)])
    >>> print(table.csv())
    gating,time
    xor,1.25
    linear,
    <BLANKLINE>

    ```
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    file: str = ""
    data: str = ""
    right: Collection[str] = ()

    def __post_init__(self) -> None:
        for i, row in enumerate(self.rows):
            require(
                len(row) == len(self.head),
                f"row {i + 1} of a table does not fit its head",
                got=f"{len(row)} cells",
                wanted=f"{len(self.head)} cells: {', '.join(map(str, self.head))}",
                fix="give one cell per column, None where there is nothing to show",
            )
        _check_optional_file(self.file)

    @classmethod
    def of(cls, found: Result | pandas.DataFrame, caption: str = "", file: str = "") -> Table:
        """The table of a result as it is printed; its CSV is that of `frame()`, with all columns.

        ```python
        >>> import pandas
        >>> from neuralrace import report
        >>> frame = pandas.DataFrame({"gating": ["xor", "linear"], "time": [1.25, float("inf")]})
        >>> report.Table.of(frame).csv() == frame.to_csv(index=False)
        True

        ```
        """
        is_result = isinstance(found, Result)
        frame, table = (found.frame(), found._printed()) if is_result else (found, found)
        shown = as_text(frame if table is None else table)
        rows, right = shown.to_numpy().tolist(), tuple(shown.attrs["right"])
        return cls(list(shown), rows, caption, file, frame.to_csv(index=False), right)

    def csv(self) -> str:
        """The table as CSV, numbers to the last digit."""
        return self.data or _csv([self.head, *self.rows])


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """One named curve, or the same curve of several seeds.

    Colours are those of `nr.plot.draw_curves`: a lone curve of its kind has that of its role; of
    several, those of the same name have the same one, so that a simulation and its theory belong
    together: `Curve("xor", t, a)` and `Curve("xor", t, b, "theory")`.

    **Arguments:** `x` is (T,), from least to largest. `y` is (T,), or (S, T) for S seeds, of which
    the mean is drawn and the range shaded. NaN is a gap. `kind` is `"simulation"` (solid),
    `"theory"` (dashed) or `"relu"` (solid and wide).

    ```python
    >>> from neuralrace import report
    >>> report.Curve("xor", [0, 1, 2], [[1.0, 0.5, 0.0], [1.0, 0.7, 0.2]]).mean
    array([1. , 0.6, 0.1])

    ```
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    kind: Kind = "simulation"

    def __post_init__(self) -> None:
        fix = "give one number per moment, seeds first"
        x = real_array(f"x of curve {self.name!r}", self.x, wanted="shape (T,)", fix=fix)
        y = real_array(f"y of curve {self.name!r}", self.y, wanted="(T,) or (S, T)", fix=fix)
        one_of("kind of curve", self.kind, KINDS, "solid: 'simulation'; dashed: 'theory'")
        fits = x.ndim == 1 and y.ndim in (1, 2) and y.shape[-1:] == x.shape and y.size > 0
        require(
            fits,
            f"curve {self.name!r} does not fit its x",
            got=f"x of shape {x.shape}, y of shape {y.shape}",
            wanted="x (T,) and y (T,) or (S, T), not empty",
            fix="record both at the same moments",
        )
        if not (np.isfinite(x).all() and (np.diff(x) >= 0).all()):
            raise NeuralRaceError(
                f"x of curve {self.name!r} is out of order",
                got=f"{shown(self.x)}",
                wanted="finite numbers, none smaller than the one before",
                fix="sort the points by x",
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    @property
    def seeds(self) -> np.ndarray:
        """The values of every seed, (S, T)."""
        return np.atleast_2d(np.asarray(self.y))

    @property
    def mean(self) -> np.ndarray:
        """The mean over seeds, (T,)."""
        return self.seeds.mean(axis=0)


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Curves on shared axes; on the page they can be hovered, zoomed and hidden.

    **Arguments:** `xlog` and `ylog` make an axis logarithmic; values that are not positive are then
    left out. `alt` says in a sentence what is to be seen, for those who cannot see it. If `file`
    names a CSV file, `write` puts every point into it and links it.

    ```python
    >>> from neuralrace import report
    >>> curves = report.Curves([report.Curve("xor", [0, 1], [1.0, 0.5])], ylabel="loss")
    >>> print(curves.csv())
    curve,kind,seed,time,loss
    xor,simulation,1,0.0,1.0
    xor,simulation,1,1.0,0.5
    <BLANKLINE>

    ```
    """

    curves: Sequence[Curve]
    xlabel: str = "time"
    ylabel: str = "loss"
    xlog: bool = False
    ylog: bool = False
    caption: str = ""
    alt: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        require(
            self.curves,
            "there are no curves to draw",
            got="an empty list",
            wanted="at least one Curve",
            fix="for example Curves([Curve('loss', time, loss)])",
        )
        pairs = [(curve.name, curve.kind) for curve in self.curves]
        for pair in pairs:
            require(
                pairs.count(pair) <= 1,
                "two curves of the same kind have the same name",
                got=f"{pair[0]!r}, {pair[1]}, {pairs.count(pair)} times",
                wanted="a name and a kind for each curve that no other has",
                fix="name them apart, or give the seeds of one curve together as (S, T)",
            )
        _check_optional_file(self.file)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The curves as matplotlib draws them: the kinds in their order, theory on top."""
        from neuralrace.report.chart import drawn_curves

        return drawn_curves(self, ax)

    def csv(self) -> str:
        """Every point of every curve as CSV, one line per point, numbers to the last digit."""
        rows: list[Sequence[Cell]] = [("curve", "kind", "seed", self.xlabel, self.ylabel)]
        for curve in self.curves:
            for seed, values in enumerate(curve.seeds.tolist()):
                points = zip(np.asarray(curve.x).tolist(), values, strict=True)
                rows += [(curve.name, curve.kind, seed + 1, x, y) for x, y in points]
        return _csv(rows)


@final
@dataclass(frozen=True)
class Picture:
    """A picture with a text in its place for those who cannot see it.

    **Arguments:** `source` is the picture itself, SVG or PNG, as bytes; it becomes part of the
    page. A text is instead the path of a file beside the page, relative to its folder. `copies`
    are the same picture in other formats, which `write` puts beside the page.

    ```python
    >>> from neuralrace import report
    >>> report.Picture("nrr/fig4.png", alt="Loss over time").source
    'nrr/fig4.png'

    ```
    """

    source: bytes | str
    alt: str
    caption: str = ""
    copies: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for kind in self.copies:
            one_of("format of a copy", kind, FORMATS, "make them with Picture.of")
        if isinstance(self.source, str):
            file_name(self.source)
        elif not self.source.startswith(b"\x89PNG") and b"<svg" not in self.source[:2000]:
            raise NeuralRaceError(
                "a page cannot show this picture",
                got=f"bytes that begin with {self.source[:12]!r}",
                wanted="an SVG or a PNG file as bytes",
                fix="Picture.of(figure, alt=…) makes one from a figure of matplotlib",
            )

    @classmethod
    def of(cls, figure: matplotlib.figure.Figure, alt: str, caption: str = "") -> Picture:
        """A figure of matplotlib as a picture in SVG, the same bytes each time; it is closed.

        `neuralrace.plot.look` says in which other formats it is kept, and how large it is.

        ```python
        >>> from neuralrace import report
        >>> from neuralrace.plot import draw_curves
        >>> axes = draw_curves([0, 1], {"xor": [1.0, 0.5]})
        >>> report.Picture.of(axes.figure, alt="The loss falls.").source[:5]
        b'<?xml'

        ```
        """
        import matplotlib.pyplot as plt

        others = [kind for kind in current_look().formats if kind != "svg"]
        copies = {kind: picture_bytes(figure, kind) for kind in others}
        source = picture_bytes(figure, "svg")
        plt.close(figure)
        return cls(source, alt, caption, copies)


@final
@dataclass(frozen=True)
class Equation:
    """One SymPy expression or equation, or several below each other, typeset on the page.

    ```python
    >>> import sympy
    >>> from neuralrace import report
    >>> a, t = sympy.symbols("a t")
    >>> report.Equation(sympy.Eq(a, t**2), caption="Growth").caption
    'Growth'

    ```
    """

    expressions: Any
    caption: str = ""


@final
@dataclass(frozen=True)
class File:
    """A file beside the page, with a link to it.

    **Arguments:** `name` is its path relative to the page's folder. `about` says what it is.
    `content`, text or bytes, is what `write` puts into it; None means that it is there already.

    ```python
    >>> from neuralrace import report
    >>> report.File("study.py", "does the same in Python", "import neuralrace as nr").name
    'study.py'

    ```
    """

    name: str
    about: str = ""
    content: bytes | str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        file_name(self.name)


DEFAULT = "default"
"""The source of a setting that nobody has changed."""


@final
@dataclass(frozen=True)
class Setting:
    """A setting: its value, where that came from, and what it is.

    `source` is such as `"study.toml"`, `"--set"` or `"NRR Fig. 4"`; settings with the source
    `"default"` are folded. A `default` is shown where it is given and the value is another one.

    ```python
    >>> from neuralrace import report
    >>> report.Setting("training.steps", 500, "study.toml", default=2000).is_default
    False

    ```
    """

    name: str
    value: Any
    source: str
    about: str = ""
    default: Any = None

    @property
    def is_default(self) -> bool:
        """Whether no default is given, or the value equals it; lists and tuples are alike."""
        return self.default is None or plain(self.value) == plain(self.default)


@final
@dataclass(frozen=True)
class Provenance:
    """How the numbers came about, so that somebody else can get them again.

    **Arguments:** `version` and `commit` are those of this package, `date` any text, `seeds` the
    random seeds or words on them, `devices` what computed, `packages` names and versions,
    `command` what was typed, `seconds` how long it took. What is empty is left out. `provenance`
    collects all this.

    ```python
    >>> from neuralrace import report
    >>> report.Provenance(version="0.2.0", date="2026-01-31", seeds=(0, 1)).seeds
    (0, 1)

    ```
    """

    version: str = ""
    commit: str = ""
    date: str = ""
    seeds: Sequence[int] | str = ()
    devices: Sequence[str] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    seconds: float | None = None


@final
@dataclass(frozen=True)
class Section:
    """A heading and what stands under it: parts in order, other sections among them.

    A `folded` section shows its heading alone until it is opened. Files that follow each other
    stand in one line of links.

    ```python
    >>> from neuralrace import report
    >>> report.Section("Contest", [report.Text("The winner is `xor`.")]).title
    'Contest'

    ```
    """

    title: str
    parts: Sequence[Part]
    folded: bool = False

    def __post_init__(self) -> None:
        for part in entries(f"the parts of section {self.title!r}", self.parts):
            check_kind(f"a part of section {self.title!r}", part, PARTS, "Text('…') for sentences")


Part: TypeAlias = Text | Code | Table | Curves | Picture | Equation | File | Section
"""What a section can hold."""

PARTS = (Text, Code, Table, Curves, Picture, Equation, File, Section)


@final
@dataclass(frozen=True)
class Page:
    """A report: a question, its answer in sentences, and everything behind the answer.

    The answer stands first, then the sections, then every setting with its source, then the files
    and how the numbers came about.

    ```python
    >>> from neuralrace import report
    >>> page = report.Page("XoR", question="Which gating wins?", answer=["`xor` wins."])
    >>> page.answer
    ['`xor` wins.']

    ```
    """

    title: str
    question: str = ""
    answer: Sequence[str] = ()
    sections: Sequence[Section] = ()
    settings: Sequence[Setting] = ()
    files: Sequence[File] = ()
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        kinds = {"answer": str, "sections": Section, "settings": Setting, "files": File}
        for name, kind in kinds.items():
            for one in entries(name, getattr(self, name), f"pass a list: {name}=[…]"):
                check_kind(f"an entry of {name}", one, kind, f"give {kind.__name__}s in {name}")

    def parts(self) -> Iterator[Part]:
        """All parts of all sections, in their order; a section comes before what is in it."""
        left: list[Part] = list(reversed(self.sections))
        while left:
            yield (part := left.pop())
            left += [*part.parts][::-1] if isinstance(part, Section) else []


def file_name(name: object) -> str:
    """The name of a file in the folder of a page, or below it."""
    text = name if isinstance(name, str) else ""
    path = PurePosixPath(text)
    outside = path.is_absolute() or ".." in path.parts
    require(
        path.name and not outside and text != PAGE and not re.search(r"[\x00-\x1f\\:]", text),
        "this cannot be the name of a file beside the page",
        got=f"{name!r:.80}",
        wanted=f"a path below the page's folder, with slashes, other than {PAGE!r}",
        fix="for example 'losses.csv' or 'data/run.nc'",
    )
    return text


def _check_optional_file(name: str) -> None:
    if name:
        file_name(name)


def _csv(rows: Sequence[Sequence[Cell]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
