"""The documentation's pictures, one module per page, and their common parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import jax
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from neuralrace.plot import letter_panels, style

FOLDER = Path(__file__).parents[1] / "img"


def write(
    page: str, pictures: Iterable[Callable[[], Figure]], folder: Path, *, float64: bool = True
) -> None:
    """Make every picture and write it as `{page}_{its name}.png` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with jax.enable_x64(float64), style():
        for picture in pictures:
            figure = picture()
            letter_panels(figure)
            path = folder / f"{page}_{picture.__name__}.png"
            figure.savefig(path, dpi=150, pil_kwargs={"optimize": True})
            plt.close(figure)
