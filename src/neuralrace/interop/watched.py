"""A running training beside what theory expects of it, as a result: `Watched`."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, final, overload

import numpy as np
from jaxtyping import Float, Int

from neuralrace.checks import write_whole
from neuralrace.plot import COLOURS, draw_curves, letter_panels, style
from neuralrace.plot.look import picture_bytes
from neuralrace.results import SHARE, Result, Sentence, framed
from neuralrace.text import percent

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "step", "seconds", "loss", "told", "predicted", "low", "high", "distance", "floors",
    "kept", "on", "patterns",
)  # fmt: skip
"""The columns of `Watched.frame`."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>neuralrace: a running training</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}
<style>
:root {{ color-scheme: light }}
body {{ font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 1rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}
div {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: .85rem }}
td, th {{ padding: .1rem .6rem; text-align: right; white-space: nowrap }}
</style></head><body>{body}</body></html>
"""
"""The page of a watched training. It is light, as its pictures are."""

REFRESH = '<meta http-equiv="refresh" content="2">'
"""A page whose training goes on loads itself again every two seconds."""


@final
@dataclass(frozen=True, eq=False)
class Expected:
    """What theory expects of a training, computed from how it started.

    `by` names the theory, `loss` is the loss at `steps`, and `networks` are simulated networks that
    started alike, one row each, where there are any. Where nothing can be expected `reason` says
    why, and the arrays are empty.

    ```python
    >>> from neuralrace.interop import Expected
    >>> Expected(reason="no learning rate was given").is_known
    False
    >>> import numpy as np
    >>> known = Expected("the race", np.array([0, 10]), np.array([1.0, 0.5]))
    >>> known.at(np.array([5, 20])).tolist()
    [0.75, nan]

    ```
    """

    by: str = ""
    steps: Int[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0, int))
    loss: Float[np.ndarray, " T"] = field(default_factory=lambda: np.zeros(0))
    networks: Float[np.ndarray, "n T"] = field(default_factory=lambda: np.zeros((0, 0)))
    reason: str = ""

    @property
    def is_known(self) -> bool:
        """Whether anything is expected."""
        return len(self.steps) > 0

    def at(self, steps: np.ndarray) -> Float[np.ndarray, " K"]:
        """The expected loss at these steps, between its own linearly; NaN beyond its end."""
        if not self.is_known:
            return np.full(len(steps), np.nan)
        return np.interp(steps, self.steps, self.loss, right=np.nan)

    def range_at(self, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest of the simulated networks at these steps."""
        if not len(self.networks):
            return np.full(len(steps), np.nan), np.full(len(steps), np.nan)
        every = np.stack([np.interp(steps, self.steps, one, right=np.nan) for one in self.networks])
        return every.min(axis=0), every.max(axis=0)

    def floors(self, steps: np.ndarray) -> Float[np.ndarray, " K"]:
        """How far two simulated networks are apart, in mean |ΔL| up to each of these steps.

        The mean over all pairs. NaN where there are fewer than two networks.
        """
        if len(self.networks) < 2:
            return np.full(len(steps), np.nan)
        every = np.stack([np.interp(steps, self.steps, one, right=np.nan) for one in self.networks])
        first, second = np.triu_indices(len(every), 1)
        return mean_so_far(np.abs(every[first] - every[second]).mean(axis=0), steps)


@final
@dataclass(frozen=True, eq=False)
class Watched(Result):
    """A training at the moments that were recorded, beside what theory expects of it; see `live`.

    `rows` are the columns of `frame()` that were measured, by name; `expected` is the prediction,
    None while it is being computed. `ended` says whether the training has ended, `failures` what
    could not be done.

    ```python
    >>> import numpy as np
    >>> from neuralrace.interop import Expected, Watched
    >>> rows = {"step": np.array([0, 10, 20]), "loss": np.array([1.0, 0.5, 0.3])}
    >>> known = Expected("the race", np.array([0, 10, 20]), np.array([1.0, 0.5, 0.2]))
    >>> found = Watched(rows, known)
    >>> found.frame()["distance"].round(3).tolist()
    [0.0, 0.0, 0.025]

    ```
    """

    rows: Mapping[str, np.ndarray]
    expected: Expected | None = None
    ended: bool = False
    failures: tuple[str, ...] = ()

    @property
    def steps(self) -> Int[np.ndarray, " K"]:
        """The steps that were recorded."""
        return np.asarray(self.rows.get("step", np.zeros(0, int)))

    def _column(self, name: str) -> np.ndarray:
        return np.asarray(self.rows.get(name, np.full(len(self.steps), np.nan)), np.float64)

    def frame(self) -> pandas.DataFrame:
        """One row per recorded moment.

        `step`; `seconds` since the start; `loss` on the data, or the one that the loop passed where
        weights cannot be read; `told`, what the loop passed; `predicted`, with simulated networks
        from `low` to `high`; `distance`, the mean |loss − predicted| up to this step, as a part of
        the first loss; `floors`, the same as a multiple of how far two simulated networks are
        apart. Of a ReLU network, averaged over neurons by their weight ‖w_in‖‖w_out‖: `kept`, the
        part of gates that are as they were at the record before; `on`, the part of samples for
        which a neuron is on; and `patterns`, how many patterns hold nine tenths of that weight.
        """
        steps, loss = self.steps, self._column("loss")
        known = self.expected or Expected()
        predicted, (low, high) = known.at(steps), known.range_at(steps)
        apart = mean_so_far(np.abs(loss - predicted), steps)
        with np.errstate(divide="ignore", invalid="ignore"):
            floors = np.where(steps > 0, apart / known.floors(steps), np.nan)
        first = loss[0] if len(loss) and loss[0] > 0 else math.nan
        columns = {name: self._column(name) for name in COLUMNS} | {
            "step": steps, "predicted": predicted, "low": low, "high": high,
            "distance": apart / first, "floors": floors,
        }  # fmt: skip
        rows = [{n: columns[n][k].item() for n in COLUMNS} for k in range(len(steps))]
        return framed(COLUMNS, rows, dict.fromkeys(("distance", "kept", "on"), SHARE))

    def _printed(self) -> pandas.DataFrame:
        frame = self.frame()
        last = frame.tail(10)
        last.attrs.update(frame.attrs)
        return last

    def sentences(self) -> tuple[Sentence, ...]:
        """How near the training is to what was expected of it."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[Sentence]:
        steps = self.steps
        if not len(steps):
            yield Sentence("answer", "Nothing is recorded yet.")
        else:
            last = self.frame().iloc[-1]
            state = "The training ended" if self.ended else "The training is"
            yield Sentence("answer", f"{state} at step {steps[-1]}: {_near(last)}.")
        if self.expected is None:
            yield Sentence("prediction", "The prediction is being computed.")
        elif not self.expected.is_known:
            yield Sentence("prediction", f"There is no prediction: {self.expected.reason}.")
        else:
            yield Sentence("prediction", f"The prediction is that of {self.expected.by}.")
            if len(self.expected.networks) < 2:
                yield Sentence(
                    "floors", "It starts from these very weights, so that there is no seed floor."
                )
            if len(steps) and steps[-1] > self.expected.steps[-1]:
                yield Sentence("beyond", f"It ends at step {self.expected.steps[-1]}.")
        for failure in self.failures:
            yield Sentence("failed", failure)
        if self.expected is not None and self.expected.is_known:
            yield Sentence(
                "columns",
                "Told is the loss that the loop passed; distance, how far the loss was from the "
                "predicted one so far, as a part of the first loss; floors, the same compared with "
                "two simulated networks; kept, the part of gates that are as they were one record "
                "before; on, the part of samples for which a neuron is on.",
            )

    @overload
    def plot(self, *, ax: None = None) -> Figure: ...
    @overload
    def plot(self, *, ax: Axes) -> Axes: ...
    def plot(self, *, ax: Axes | None = None) -> Axes | Figure:
        """The loss on the expected one and, on a figure of its own, the gates below it."""
        frame, gates = self.frame(), int(np.isfinite(self._column("on")).any())
        with style():
            if ax is not None:
                return self._draw_loss(frame, ax)
            from matplotlib import pyplot as plt

            figure, panels = plt.subplots(
                1 + gates, 1, figsize=(6.5, 3.4 + 2.2 * gates), squeeze=False, sharex=True
            )
            self._draw_loss(frame, panels[0, 0])
            if gates:
                draw_curves(
                    frame["step"],
                    {"gates as before": frame["kept"], "samples a neuron is on for": frame["on"]},
                    ylabel="part",
                    xlabel="step",
                    ax=panels[1, 0],
                )
                panels[1, 0].set(ylim=(0, 1.05))
                letter_panels(figure)
            plt.close(figure)
        return figure

    def _draw_loss(self, frame: pandas.DataFrame, ax: Axes) -> Axes:
        draw_curves(frame["step"], {"measured": frame["loss"]}, xlabel="step", ax=ax)
        if self.expected is not None and self.expected.is_known:
            known = self.expected
            draw_curves(known.steps, {"predicted": known.loss}, kind="theory", xlabel="step", ax=ax)
            if len(known.networks):
                ax.fill_between(
                    known.steps, *known.range_at(known.steps), alpha=0.25, linewidth=0,
                    color=COLOURS["neutral"], label=f"{len(known.networks)} simulated networks",
                )  # fmt: skip
        ax.set(ylim=(0, None))
        if len(frame) and _is_early(frame["step"].to_numpy(), frame["loss"].to_numpy()):
            ax.set_xscale("symlog", linthresh=1)
            ax.set_xlim(left=0)
        ax.legend()
        return ax

    def body(self) -> str:
        """The first sentence, the picture, the table and the other sentences, as HTML."""
        first, table, below = self._shown()
        picture = picture_bytes(self.plot(), "svg").decode()
        cells = "" if table is None else table.to_html(index=False, border=0)
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in below)
        picture = picture[picture.index("<svg") :]
        return f"<p>{html.escape(first)}</p>{picture}<div>{cells}</div>{lines}"

    def to_html(self, path: Path) -> Path:
        """Write a page that loads itself again until the training has ended."""
        refresh = "" if self.ended else REFRESH
        return write_whole(path, PAGE.format(body=self.body(), refresh=refresh).encode())


def _near(row: pandas.Series) -> str:
    """The last row in words."""
    said = f"the loss is {row.loss:.4g}"
    if np.isfinite(row.predicted):
        said += f", predicted {row.predicted:.4g}; so far they differ by {percent(row.distance)} "
        said += "of the first loss on average"
        if np.isfinite(row.floors):
            said += f", {row.floors:.2g} times as much as two networks that start alike"
    return said


def _is_early(steps: np.ndarray, loss: np.ndarray) -> bool:
    """Whether half of the fall of the loss is in the first tenth of the steps."""
    half = (loss[0] + np.nanmin(loss)) / 2
    return bool(steps[np.argmax(loss <= half)] < steps[-1] / 10)


def mean_so_far(values: np.ndarray, steps: np.ndarray) -> Float[np.ndarray, " K"]:
    """The mean over steps of what is given at some of them, by trapezia; the first is its own.

    ```python
    >>> import numpy as np
    >>> from neuralrace.interop.watched import mean_so_far
    >>> mean_so_far(np.array([0.0, 2.0, 2.0]), np.array([0, 1, 3])).round(3).tolist()
    [0.0, 1.0, 1.667]

    ```
    """
    if len(steps) < 2:
        return np.asarray(values, np.float64)
    lasted = np.diff(steps)
    areas = np.cumsum(lasted * (values[1:] + values[:-1]) / 2)
    return np.concatenate([values[:1], areas / np.cumsum(lasted)])
