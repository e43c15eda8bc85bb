"""The gallery's store in docs/gallery: pictures, data and facts."""

from __future__ import annotations

import io
import json
import runpy
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import papers
from evidence.tables import made
from papers.record import row_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL import Image

    from neuralrace.report import Curves

ROOT = Path(__file__).parents[1]
STORE = ROOT / "docs/gallery"
FACTS = "facts.json"

WIDTHS = (960, 840, 720)
"""Widths of a thumbnail in pixels: the largest that is small enough is taken."""

PICTURE = 130_000
"""The most bytes of a thumbnail."""

NEAR = 10
"""How far a palette may move a channel of what has one colour in a picture, of 255.

One pixel in a thousand of such areas may be further away.
"""

DATA = 40_000
"""The most bytes of the netCDF file of a figure that is stored here; larger ones are not."""

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STUDIES = sorted((ROOT / "examples/studies").glob("*.toml"))

Facts = dict[str, dict[str, Any]]
"""What is stored about each figure and example, by its name."""


def study_name(file: Path) -> str:
    """The name of a study in the gallery, such as `studies/demo`."""
    return f"studies/{file.stem}"


def scripts() -> dict[str, Path]:
    """The files of examples and studies by their names."""
    return {s.stem: s for s in EXAMPLES} | {study_name(file): file for file in STUDIES}


def stored(folder: Path = STORE) -> Facts:
    """The facts of every figure and example in the gallery."""
    path = folder / FACTS
    return json.loads(path.read_text()) if path.exists() else {}


def update(source: Path, folder: Path = STORE) -> list[str]:
    """Store every figure whose data lie in `source` with its own or its quick settings.

    A quick version does not replace a full one. Returns the names of what was stored.
    """
    facts, best = stored(folder), {}
    for path in sorted(source.rglob("*.nc")):
        table = papers.load_figure(path)
        record = papers.read_record(table)
        figure = papers.find(record.name)
        small = plain(figure.resolve(quick=True)) == plain(papers.settings_of(table))
        if record.changed and not small:
            continue
        known = best.get(record.name, facts.get(record.name))
        if not record.changed or known is None or known["quick"]:
            best[record.name] = {"quick": bool(record.changed), "table": table}
    for name, found in best.items():
        facts[name] = _store_figure(found["table"], folder)
        write(facts, folder)
    return list(best)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a file has them: lists for tuples."""
    return json.loads(json.dumps(dict(values)))


def _store_figure(table: Any, folder: Path) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    from neuralrace.plot import style
    from neuralrace.trajectory import save_table

    record = papers.read_record(table)
    figure = papers.find(record.name)
    with style():
        picture = figure.draw(table)
        files = store_picture(picture, record.name, folder)
        plt.close(picture)
    nc = folder / f"{record.name}.nc"
    save_table(table, nc)
    if nc.stat().st_size > DATA:
        nc.unlink()
    measured = str(table["device"].item()) if "device" in table and not table["device"].dims else ""
    return {
        "command": papers.command(record) if not record.changed else _quick(record.name),
        "quick": bool(record.changed),
        "settings": plain(papers.settings_of(table)),
        "seconds": round(record.seconds, 1),
        "device": record.device or measured,
        "commit": record.commit,
        "versions": {k: record.versions[k] for k in ("neuralrace", "jax")},
        "agreement": by_id([row_of(*line) for line in figure.lines(table)]),
        "nc": f"{record.name}.nc" if nc.exists() else None,
        **files,
    }


def by_id(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows of a record by their ids, which are all different."""
    found = {row["id"]: {k: v for k, v in row.items() if k != "id"} for row in rows}
    if len(found) < len(rows):
        raise ValueError(f"an id stands twice: {', '.join(row['id'] for row in rows)}")
    return found


def _quick(name: str) -> str:
    return f"python -m papers reproduce {name} --quick"


def run_examples(names: Sequence[str] = (), folder: Path = STORE) -> None:
    """Run these examples and studies, or all, and store their pictures."""
    every = scripts()
    for name in names:
        if name not in every:
            raise papers.unknown("example", name, every)
    for name in names or every:
        path = every[name]
        fact = (_run_example if path.suffix == ".py" else _run_study)(path, folder)
        write(stored(folder) | {name: fact}, folder)


def _run_example(script: Path, folder: Path) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    plt.close("all")
    begin, arguments = time.perf_counter(), sys.argv
    with tempfile.TemporaryDirectory() as out:
        sys.argv = [str(script), out]
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:
            sys.argv = arguments
    seconds = time.perf_counter() - begin
    picture = plt.figure(plt.get_fignums()[-1])
    files = store_picture(picture, script.stem, folder)
    plt.close("all")
    return made(seconds) | files


def _run_study(file: Path, folder: Path) -> dict[str, Any]:
    import jax
    import matplotlib.pyplot as plt

    import neuralrace as nr
    from neuralrace.plot import style

    with jax.enable_x64(True):  # as on the command line
        result = nr.Study.load(file).run()
    parts = {question: answer.parts for question, answer in result.answers.items()}
    with style():
        picture = draw_study(telling(parts))
        files = store_picture(picture, study_name(file), folder)
    plt.close(picture)
    return made(result.seconds) | files


def telling(parts: Mapping[str, Sequence[Any]]) -> Curves:
    """The curves of a report that show most, from the parts of its answers by their questions.

    Those of the phase diagram if the study asks for one, else the first with ReLU networks, else
    the first of all.
    """
    from neuralrace.report import Curves

    every = [(q, part) for q, some in parts.items() for part in some if isinstance(part, Curves)]
    diagram = [part for question, part in every if question == "phase_diagram"]
    relu = [part for _, part in every if any(curve.kind == "relu" for curve in part.curves)]
    return next(iter([*diagram, *relu, *(part for _, part in every)]))


def draw_study(shown: Curves) -> Figure:
    """A picture of curves of a report."""
    import matplotlib.pyplot as plt

    from neuralrace.plot import draw_curves

    picture, ax = plt.subplots()
    for kind in ("relu", "simulation", "theory"):
        those = [curve for curve in shown.curves if curve.kind == kind]
        x, y = {c.name: c.x for c in those}, {c.name: c.y for c in those}
        if those:
            draw_curves(x, y, kind=kind, xlabel=shown.xlabel, ylabel=shown.ylabel, ax=ax)
    ax.set(xscale="log" if shown.xlog else "linear", yscale="log" if shown.ylog else "linear")
    return picture


def store_picture(picture: Any, name: str, folder: Path) -> dict[str, Any]:
    """Write the thumbnail of a picture; returns the name of the file."""
    png = folder / f"{name}.png"
    png.parent.mkdir(parents=True, exist_ok=True)
    png.write_bytes(thumbnail(picture))
    return {"picture": f"{name}.png"}


def thumbnail(picture: Any) -> bytes:
    """A picture as a PNG file, as wide as the limit on its size allows.

    The file says how many pixels are an inch.
    """
    from PIL import Image

    content = b""
    for width in WIDTHS:
        full, file = io.BytesIO(), io.BytesIO()
        dpi = width / picture.get_figwidth()
        picture.savefig(full, dpi=dpi)
        image = with_few_colours(Image.open(full).convert("RGB"))
        image.save(file, "png", optimize=True, dpi=(dpi, dpi))
        content = file.getvalue()
        if len(content) <= PICTURE:
            break
    return content


def with_few_colours(image: Image.Image) -> Image.Image:
    """The image with a palette of 256 colours if areas keep their colours (`NEAR`), else itself.

    An image without areas has nothing to judge a palette by, and is returned itself. An area is
    where a pixel is like the four beside it: cells of maps, not the edges of letters.
    """
    from PIL import Image

    few = image.quantize(256, Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE)
    was, now = (np.asarray(each.convert("RGB"), int) for each in (image, few))
    alike = lambda axis: (np.diff(was, axis=axis) == 0).all(axis=2)
    down, across = alike(0), alike(1)
    area = (down[:-1] & down[1:])[:, 1:-1] & (across[:, :-1] & across[:, 1:])[1:-1]
    moved = np.abs(was - now).max(axis=2)[1:-1, 1:-1][area]
    return few if moved.size and np.quantile(moved, 0.999) <= NEAR else image


def write(facts: Facts, folder: Path) -> None:
    text = json.dumps(dict(sorted(facts.items())), indent=1, ensure_ascii=False)
    (folder / FACTS).write_text(text + "\n")
