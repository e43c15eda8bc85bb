"""Another look for all pictures that are drawn inside a block: fonts, size, formats of files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, nearest_name, require

if TYPE_CHECKING:
    import matplotlib.figure

FORMATS = ("svg", "pdf", "png")
"""The formats that a picture can be written in."""

LARGEST = 100.0
"""The longest side of a picture in inches. More is a mistake, such as a size in pixels."""


FONT, LINE = 8.0, 1.5
"""`font.size` and `lines.linewidth` of the package's style, in points."""

SIZES: Mapping[str, float] = {
    "axes.titlesize": 1.0,
    "axes.labelsize": 1.0,
    "xtick.labelsize": 7 / 8,
    "ytick.labelsize": 7 / 8,
    "legend.fontsize": 7 / 8,
}
"""The sizes of text that the package's style sets, as shares of its `font.size`."""

NO_LOOK = (
    *("animation", "backend", "backend_fallback", "docstring", "interactive", "keymap", "macosx"),
    *("timezone", "tk", "toolbar", "webagg"),
    *("figure.max_open_warning", "savefig.directory", "savefig.format"),
)
"""Parameters of matplotlib, or groups of them, that say how it works and not how pictures look."""


@final
@dataclass(frozen=True)
class Look:
    """What `look` changes: parameters of matplotlib, size in inches, formats of files.

    ```python
    >>> from neuralrace.plot import Look
    >>> Look(rc={"font.size": 16}).parameters["legend.fontsize"]
    14.0

    ```
    """

    rc: Mapping[str, Any] = field(default_factory=dict)
    figsize: tuple[float, float] | None = None
    formats: tuple[str, ...] = ()

    @property
    def text_scale(self) -> float:
        """How many times as large as the style's own text is: `font.size` over its 8 points."""
        return float(self.rc.get("font.size", FONT)) / FONT

    @property
    def line_scale(self) -> float:
        """How many times as wide as the style's own lines are: `lines.linewidth` over its 1.5."""
        return float(self.rc.get("lines.linewidth", LINE)) / LINE

    @property
    def parameters(self) -> dict[Any, Any]:
        """The parameters of matplotlib that go over the package's style.

        With another `font.size`, all text keeps its share of it.
        """
        found: dict[Any, Any] = {}
        if self.figsize is not None:
            found["figure.figsize"] = self.figsize
        if "font.size" in self.rc:
            found |= {name: share * self.rc["font.size"] for name, share in SIZES.items()}
        return {**found, **self.rc}


_LOOK: ContextVar[Look] = ContextVar("look")


def current_look() -> Look:
    """The look of the innermost `look` block; the package's own outside of all.

    ```python
    >>> from neuralrace.plot import current_look
    >>> current_look().formats
    ()

    ```
    """
    return _LOOK.get(Look())


@door
@contextmanager
def look(
    *,
    rc: Mapping[str, Any] | None = None,
    figsize: Sequence[float] | None = None,
    formats: Sequence[str] = (),
) -> Iterator[Look]:
    """Inside a `with` block, pictures and reports have this look in place of the package's own.

    **Arguments:** `rc` are parameters of matplotlib, over the package's style. `figsize` is the
    width and height of every picture in inches. `formats` are those in which the report also
    writes its pictures and curves as files: `"svg"`, `"pdf"`, `"png"`.

    ```python
    >>> import matplotlib
    >>> from neuralrace.plot import look, style
    >>> with look(rc={"font.family": "serif"}, figsize=(5, 3)), style():
    ...     matplotlib.rcParams["font.family"], matplotlib.rcParams["figure.figsize"]
    (['serif'], [5.0, 3.0])

    ```
    """
    made = Look(_parameters(rc or {}), _size(figsize), _formats(formats))
    token = _LOOK.set(made)
    try:
        yield made
    finally:
        _LOOK.reset(token)


def _parameters(rc: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, each read as matplotlib reads it."""
    if not rc:
        return {}
    import matplotlib

    known = [n for n in matplotlib.rcParams if n not in NO_LOOK and n.split(".")[0] not in NO_LOOK]
    found = {}
    name: Any  # matplotlib's own type of names lists them all
    for name, value in rc.items():
        if name not in known:
            close = nearest_name(name, known)
            raise NeuralRaceError(
                f"{name!r} is no parameter for the look of a picture",
                got=repr(name),
                wanted="a parameter of matplotlib, such as font.family or axes.labelsize",
                fix=f"did you mean {close!r}?" if close else "see matplotlib.rcParams",
            )
        try:
            found[name] = matplotlib.RcParams({name: value})[name]
        except Exception as error:
            raise NeuralRaceError(
                f"matplotlib does not accept this value of {name!r}",
                got=repr(value),
                wanted=str(error).strip().splitlines()[0]
                if str(error).strip()
                else "another value",
                fix=f"by default it is {matplotlib.rcParamsDefault[name]!r}",
            ) from error
    return found


def _size(figsize: Sequence[float] | None) -> tuple[float, float] | None:
    if figsize is None:
        return None
    try:
        width, height = (float(side) for side in figsize)
        right = 0 < width <= LARGEST and 0 < height <= LARGEST
    except (TypeError, ValueError):
        right, width, height = False, 0.0, 0.0
    require(
        right,
        "this is no size of a picture",
        got=f"{figsize!r:.60}",
        wanted=f"width and height in inches, above 0 and at most {LARGEST:g}",
        fix="for example figsize=(3.4, 2.4), one column of a paper",
    )
    return width, height


def _formats(formats: Sequence[str]) -> tuple[str, ...]:
    given = (formats,) if isinstance(formats, str) else tuple(formats)
    for name in given:
        if name not in FORMATS:
            raise NeuralRaceError(
                "pictures are not written in this format",
                got=f"{name!r:.60}",
                wanted=f"one or more of {', '.join(FORMATS)}",
                fix="for example formats=('svg', 'pdf')",
            )
    return tuple(dict.fromkeys(given))


@door
def picture_bytes(figure: matplotlib.figure.Figure, kind: str) -> bytes:
    """A figure in one of the formats, in the current look; the same bytes each time.

    Text in an SVG file becomes outlines, so that it reads the same everywhere.

    ```python
    >>> from neuralrace.plot import draw_curves, picture_bytes
    >>> picture_bytes(draw_curves([0, 1], {"xor": [1.0, 0.5]}).figure, "svg")[:5]
    b'<?xml'

    ```
    """
    import matplotlib

    current = current_look()
    if current.figsize is not None:
        figure.set_size_inches(current.figsize)
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None},
        "png": {},
    }
    fixed: dict[Any, Any] = {"svg.hashsalt": "neuralrace", "svg.fonttype": "path"}
    buffer = io.BytesIO()
    with matplotlib.rc_context({**fixed, **current.parameters}):
        figure.savefig(buffer, format=kind, metadata=undated[kind])
    return buffer.getvalue()
