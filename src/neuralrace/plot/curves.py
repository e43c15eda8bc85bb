"""Curves over time, theory told from simulation even in grey, and matrices of a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from neuralrace.door import door
from neuralrace.errors import NeuralRaceError, listed, require
from neuralrace.plot.look import current_look
from neuralrace.plot.style import (
    COLOURS,
    DASHES,
    SHADES,
    colour_places,
    cycle_colour,
    is_lone,
    is_unpaired,
    shade,
    style,
)

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.typing import ColorType, LineStyleType

_LINES: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "relu": {"linestyle": "-", "linewidth": 4.0, "zorder": 1.7},
        "simulation": {"linestyle": "-", "linewidth": 2.4, "zorder": 1.8},
        "theory": {"linestyle": (0, (3.2, 1.6)), "linewidth": 1.1, "zorder": 1.9},
    }
)
"""How each kind is drawn: theory above simulation, and both below lines that users add (2)."""

_KINDS = MappingProxyType({"relu": "ReLU", "simulation": "simulated", "theory": "predicted"})
"""What the legend calls the lines of a name that has several."""

_BANDS = MappingProxyType(
    {"seeds": "single seeds", "std": "± standard deviation", "range": "range over seeds"}
)
"""What the legend calls the spread around a mean."""

_ALONE = (2.2, 2.0, 1.8, 1.6, 1.4, 1.2, 1.1, 1.0)
"""Their widths in points: of lines that coincide, the lower one is seen below the upper."""


@door
def draw_curves(
    time: ArrayLike | Mapping[str, ArrayLike],
    curves: Mapping[str, ArrayLike],
    *,
    kind: str | Mapping[str, str] = "simulation",
    ylabel: str = "loss",
    log: bool = False,
    band: Literal["seeds", "std", "range"] | None = "seeds",
    color: ColorType | Mapping[str, ColorType] | None = None,
    linestyle: LineStyleType | None = None,
    xlabel: str = "time",
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw named curves over time: simulation solid, wide and light; theory dashed and dark on top.

    A lone curve of its kind has the colour of its role; several have the colours of the cycle in
    their order, so that the i-th simulation and the i-th theory match. Several theories without a
    simulation of their names are not darkened, and each has dashes of its own. Curves that are
    added to axes go on with the next colours. A name drawn twice on the same axes (once simulated,
    once predicted) keeps its colour and has one entry in the legend, showing both lines; two grey
    entries then say which line is simulated and which is predicted, and another one names the
    lines of single seeds. A legend of more than four lines is beside the axes, where these are
    alone. More than eight curves have a colour bar with their names instead.

    **Arguments:** `time` is (T,), or maps each name to its own (T,). `curves` maps names to (T,),
    or to (S, T) for S seeds, of which the mean is drawn together with `band`: every seed faintly
    (`"seeds"`), one standard deviation (`"std"`), from least to largest (`"range"`), or `None`.
    `kind` is `"simulation"`, `"theory"` or `"relu"`, for all curves or by name. `log` makes the
    vertical axis logarithmic. `color` and `linestyle`, of matplotlib, replace the chosen ones;
    `color` may map names to colours, which have to be given again where a name is drawn twice.

    **Returns** the axes.

    ```python
    >>> t = np.linspace(0, 1, 50)
    >>> ax = draw_curves(t, {"trained": np.exp(-t), "race": np.exp(-t)},
    ...                  kind={"trained": "simulation", "race": "theory"})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['trained', 'race']

    ```
    """
    given = color if isinstance(color, Mapping) else dict.fromkeys(curves, color)
    _check_look(given.values(), linestyle)
    times = time if isinstance(time, Mapping) else dict.fromkeys(curves, time)
    kinds = kind if isinstance(kind, Mapping) else dict.fromkeys(curves, kind)
    series = {name: _series(name, times, kinds, values) for name, values in curves.items()}
    with style():
        new, ax = ax is None, axes_or_new(ax)
        colours, dashes = _colours(ax, kinds, list(series))
        crowded = len(series) > NAMED and color is None
        fresh = not set(series) & {name for _, name in _drawn(ax)}
        for name, (t, seeds) in series.items():
            role = kinds[name]
            colour = colours[name] if given.get(name) is None else given[name]
            line: dict[str, Any] = _scaled(_LINES[role] | dashes.get(name, {}))
            if linestyle is not None:
                line["linestyle"] = linestyle
            if len(seeds) > 1:
                _draw_band(ax, t, seeds, colour, line["linestyle"], band)
            label = f"_{name}" if crowded else name
            gid = f"curve:{role}:{name}"
            ax.plot(t, seeds.mean(axis=0), color=colour, label=label, gid=gid, **line)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ax.get_ylabel() or ylabel)  # the first quantity names shared axes
        if log:
            ax.set_yscale("log")
        if crowded and fresh:
            _colour_bar(ax, colours)
        together: dict[str, Any] = {}
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            together[name] = (*together.get(name, ()), handle)
        if named := together | _keys(ax):
            _legend(ax, named, new)
    return ax


BESIDE = 4
"""A legend with more entries than this is put beside the axes, where these are alone."""


def _legend(ax: matplotlib.axes.Axes, named: Mapping[str, Any], new: bool) -> None:
    """The legend, inside the axes or beside them; a new figure is made wider for it.

    Only a figure that is laid out by constraints, as ours are, makes room for what is outside.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    alone = len(figure.axes) == 1 and figure.get_layout_engine() is not None
    if len(named) <= BESIDE or not alone:
        ax.legend(list(named.values()), list(named))
        return
    ax.legend(list(named.values()), list(named), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if new:
        longest = max(map(len, named))
        figure.set_size_inches(
            figure.get_figwidth() + 0.5 + 0.065 * longest, figure.get_figheight()
        )


def _scaled(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line as wide as the look asks for: `lines.linewidth` scales all widths alike."""
    return {**line, "linewidth": current_look().line_scale * line["linewidth"]}


NAMED = 8
"""Up to this number of curves have a legend and the colours of the cycle; more, a colour bar."""


def _drawn(ax: matplotlib.axes.Axes) -> list[tuple[str, str]]:
    """Kind and name of the curves that are on the axes already, in order."""
    gids = (str(line.get_gid() or "").split(":", 2) for line in ax.lines)
    return list(dict.fromkeys((gid[1], gid[2]) for gid in gids if gid[0] == "curve"))


def _keys(ax: matplotlib.axes.Axes) -> dict[str, Any]:
    """Grey samples of the lines that the names of curves leave open: kinds, and bands."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    grey = COLOURS["neutral"]
    roles: dict[str, set[str]] = {}
    for role, name in _drawn(ax):
        roles.setdefault(name, set()).add(role)
    several = set().union(*(those for those in roles.values() if len(those) > 1))
    found: dict[str, Any] = {
        word: Line2D([], [], color=shade(grey, SHADES[role]), **_scaled(_LINES[role]))
        for role, word in _KINDS.items()
        if role in several
    }
    drawn = {artist.get_gid() for artist in (*ax.lines, *ax.collections)}
    for band, word in _BANDS.items():
        if f"band:{band}" in drawn:
            found[word] = Patch(color=grey, **_FILL)
            if band == "seeds":
                line = next(each for each in ax.lines if each.get_gid() == "band:seeds")
                look: dict[str, Any] = _scaled(_SEED) | {"linestyle": line.get_linestyle()}
                found[word] = Line2D([], [], color=grey, **look)
    return found


def _colours(
    ax: matplotlib.axes.Axes, kinds: Mapping[str, str], names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The colour of each name: its role's if alone, the one it has, or the next of the cycle.

    Also the lines of theories that no simulation of the same name goes with.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    there = [*_drawn(ax), *((kinds[name], name) for name in names)]
    places = colour_places(there)
    found, dashes = {}, {}
    for name in names:
        curve = role, _ = kinds[name], name
        place = places[curve]
        alone, unpaired = is_lone(curve, there), is_unpaired(curve, there)
        if unpaired and not alone:  # beyond eight, other dashes go with each colour
            which = (place + place // len(DASHES)) % len(DASHES)
            dashes[name] = {"linestyle": (0, DASHES[which]), "linewidth": _ALONE[which]}
        if alone:
            found[name] = COLOURS[role]
        elif len(names) > NAMED:
            last = max(p for (kind, _), p in places.items() if kind == role)
            colour = to_hex(colormaps["viridis"](0.92 * place / max(1, last)))
            found[name] = shade(colour, SHADES[role] / 2)
        else:
            colour = cycle_colour(place)
            found[name] = colour if unpaired else shade(colour, SHADES[role])
    return found, dashes


def _colour_bar(ax: matplotlib.axes.Axes, colours: Mapping[str, Any]) -> None:
    """A bar with a field for each curve, some of which are named."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    names, count = list(colours), len(colours)
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    fields = ScalarMappable(norm, ListedColormap(list(colours.values())))
    bar = ax.figure.colorbar(fields, ax=ax, aspect=18)
    ticks = np.unique(np.linspace(0, count - 1, NAMED).round().astype(int))
    bar.set_ticks(ticks.tolist(), labels=[names[i] for i in ticks], minor=False)
    bar.minorticks_off()
    bar.ax.tick_params(length=0)
    bar.outline.set_linewidth(0.5)  # pyright: ignore[reportCallIssue]


@door
def draw_matrix(
    matrix: ArrayLike,
    *,
    rows: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    title: str | None = None,
    blocks: Mapping[Literal["rows", "columns"], Mapping[str, int]] | None = None,
    scale: str | bool = True,
    ax: matplotlib.axes.Axes | None = None,
) -> matplotlib.axes.Axes:
    """Draw a matrix as a heatmap, such as the inputs or targets of a task, one column per sample.

    Matrices with negative entries have a diverging map with white at zero, others a sequential map
    from white at zero; a scale stands beside them unless every entry is 0 or 1.

    **Arguments:** `matrix` is (R, C). `rows` and `columns` name an axis (one text) or each of its
    lines (R or C texts). `blocks` maps `"rows"` and `"columns"` to groups of neighbouring lines,
    name to how many, which thin lines separate and whose names stand beside them. `scale` is the
    name of the scale, or False for none.

    **Returns** the axes.

    ```python
    >>> ax = draw_matrix(np.eye(4), columns="sample", blocks={"rows": {"item": 3, "context": 1}})
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['item', 'context']

    ```
    """
    values = np.asarray(matrix, dtype=float)
    require(
        values.ndim == 2 and values.size,
        "this is not a matrix",
        got=f"shape {values.shape}",
        wanted="shape (R, C)",
        fix="reshape it, or take one matrix of the stack",
    )
    blocks = blocks or {}
    with style():
        ax = axes_or_new(ax)
        signed = values.min() < 0
        top = np.abs(values).max() or 1.0
        cmap, low = ("RdBu_r", -top) if signed else ("Blues", 0.0)
        image = ax.imshow(values, cmap=cmap, vmin=low, vmax=top, aspect="auto")
        _name_lines(ax, "rows", rows, blocks.get("rows"), values.shape[0])
        _name_lines(ax, "columns", columns, blocks.get("columns"), values.shape[1])
        ax.spines[:].set_visible(True)
        if scale and not np.isin(values, (0, 1)).all():
            name = scale if isinstance(scale, str) else ""
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, aspect=18, label=name)
            bar.outline.set_linewidth(0.5)
        if title is not None:
            ax.set_title(title)
    return ax


def _check_look(colours: Iterable[Any], linestyle: Any) -> None:
    """Raise where matplotlib knows no such colour or line."""
    from matplotlib.colors import is_color_like
    from matplotlib.lines import Line2D

    unknown = [colour for colour in colours if colour is not None and not is_color_like(colour)]
    if unknown:
        raise NeuralRaceError(
            "matplotlib knows no such colour",
            got=f"{unknown[0]!r:.80}",
            wanted="a name such as 'C0' or 'black', or three numbers from 0 to 1",
            fix="leave color out for the colours of the style",
        )
    try:
        Line2D([], [], linestyle=linestyle)
    except (AttributeError, TypeError, ValueError) as error:
        raise NeuralRaceError(
            "matplotlib knows no such line style",
            got=f"{linestyle!r:.80}",
            wanted="such as 'solid', 'dashed', 'dotted'",
            fix="leave linestyle out for that of the style",
        ) from error


def axes_or_new(ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    import matplotlib.pyplot as plt

    return plt.subplots()[1] if ax is None else ax


def _series(
    name: str, times: Mapping[str, ArrayLike], kinds: Mapping[str, str], values: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Time (T,) and values (S, T) of one curve, checked."""
    if name not in times or kinds.get(name) not in _LINES:
        raise NeuralRaceError(
            f"curve {name!r} has no time, or a kind that is not known",
            got=f"time of {listed(times)}; kind {kinds.get(name)!r}",
            wanted=f"a time for each curve and a kind among {listed(_LINES)}",
            fix="give one time and one kind for all curves, or both for each name",
        )
    t, seeds = np.asarray(times[name]), np.atleast_2d(np.asarray(values))
    require(
        seeds.ndim == 2 and t.shape == seeds.shape[1:],
        f"curve {name!r} does not fit its time",
        got=f"time {t.shape}, curve {np.shape(values)}",
        wanted="time (T,) and curve (T,) or (S, T)",
        fix="record both at the same moments, or map each name to its own time",
    )
    return t, seeds


_SEED: Mapping[str, Any] = MappingProxyType({"alpha": 0.55, "linewidth": 0.8, "zorder": 1.6})
"""The line of a single seed."""

_FILL: Mapping[str, Any] = MappingProxyType({"alpha": 0.25, "linewidth": 0})
"""The area of a band."""


def _draw_band(
    ax: matplotlib.axes.Axes,
    t: np.ndarray,
    seeds: np.ndarray,
    colour: Any,
    linestyle: Any,
    band: str | None,
) -> None:
    gid = f"band:{band}"
    if band == "seeds":
        ax.plot(t, seeds.T, color=colour, linestyle=linestyle, gid=gid, **_scaled(_SEED))
    elif band is not None:
        mean, std = seeds.mean(axis=0), seeds.std(axis=0)
        ends = (mean - std, mean + std) if band == "std" else (seeds.min(axis=0), seeds.max(axis=0))
        ax.fill_between(t, *ends, color=colour, gid=gid, **_FILL)


def _name_lines(
    ax: matplotlib.axes.Axes,
    which: Literal["rows", "columns"],
    names: str | Sequence[str] | None,
    groups: Mapping[str, int] | None,
    count: int,
) -> None:
    """Ticks and labels along one side of a matrix, and the lines between its groups."""
    down = which == "rows"
    axis, separator = (ax.yaxis, ax.axhline) if down else (ax.xaxis, ax.axvline)
    axis.set_ticks([])
    if isinstance(names, str):
        axis.set_label_text(names)
    elif names is not None:
        _check_count(which, names, len(names), count)
        axis.set_ticks(range(count), names, rotation=0 if down else 90)
        axis.set_tick_params(length=0)
    if groups is None:
        return
    _check_count(which, groups, sum(groups.values()), count)
    ends = np.cumsum(list(groups.values()))
    centres = ends - np.array(list(groups.values())) / 2 - 0.5
    for end in ends[:-1]:
        separator(end - 0.5, color=COLOURS["neutral"], linewidth=0.7)
    if names is None or isinstance(names, str):
        axis.set_ticks(centres, list(groups))
        axis.set_tick_params(length=0)
    else:
        other = ax.secondary_yaxis("right") if down else ax.secondary_xaxis("top")
        far = other.yaxis if down else other.xaxis
        far.set_ticks(centres, list(groups))
        far.set_tick_params(length=0)


def _check_count(which: str, names: Iterable[str], got: int, count: int) -> None:
    require(
        got == count,
        f"the names of the {which} do not add up",
        got=f"{listed(names)}: {got} {which}",
        wanted=f"{count} {which}",
        fix="name every line once, or give block sizes that sum to the matrix's",
    )
