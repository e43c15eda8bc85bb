"""The gallery of figures and examples: `python -m docs.gallery` writes docs/gallery.md.

Pictures, data and facts are stored in docs/gallery, so that the page needs no computing:

    python -m docs.gallery --from out/figures    # figures whose data lie in the folder
    python -m docs.gallery --examples            # every example, run again
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import runpy
import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from docs import drawn
from neuralrace import papers
from neuralrace.papers.claims import ledger

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/gallery.md"
STORE = ROOT / "docs/gallery"
FACTS = "facts.json"

WIDTHS = (960, 720, 480, 360)
"""Widths of a thumbnail in pixels: the largest that is small enough is taken."""

PICTURE = 40_000
"""The most bytes of a thumbnail."""

CURVES = 60_000
"""The most bytes of the CSV file of a figure."""

DATA = 40_000
"""The most bytes of the netCDF file of a figure that is stored here; larger ones are not."""

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STUDIES = sorted((ROOT / "examples/studies").glob("*.toml"))

Facts = dict[str, dict[str, Any]]
"""What is stored about each figure and example, by its name."""


def stored(folder: Path = STORE) -> Facts:
    """The facts of every figure and example in the gallery."""
    path = folder / FACTS
    return json.loads(path.read_text()) if path.exists() else {}


# ---- the page ------------------------------------------------------------------------------------


def page(facts: Facts) -> str:
    """The whole page: every figure of the papers in their order, then the examples."""
    lines = [
        "# Gallery",
        "",
        "Every figure of the papers, made anew, and every example: what it shows, how it is made",
        "and how long that takes, its data, and the [claims](claims.md) that are measured on it.",
        "[reproduce.md](reproduce.md) says how to change settings and looks. Pictures and data",
        "are stored; `python -m docs.gallery` writes this page.",
        "",
        "A CSV file holds what is drawn: one row per point of a curve, per bar or per entry of a",
        "map. The netCDF file holds all data of a figure, with settings and agreement. It is",
        "linked where it is small, and the command writes it in any case.",
    ]
    for paper, title in papers.TITLES.items():
        lines += ["", f"## {title}"]
        for name in papers.names():
            if name.startswith(f"{paper}/") and name in facts:
                lines += _figure(name, facts[name])
    lines += ["", "## Examples"]
    for script in EXAMPLES:
        if script.stem in facts:
            lines += _example(script, facts[script.stem])
    lines += [
        "",
        "## Studies",
        "",
        "Curves of each report; [studies.md](studies.md) says what a study is.",
    ]
    for file in STUDIES:
        if study_name(file) in facts:
            lines += _study(file, facts[study_name(file)])
    return "\n".join(lines) + "\n"


def _figure(name: str, fact: Mapping[str, Any]) -> list[str]:
    figure = papers.find(name)
    quick = "**A quick version, with smaller settings.** " if fact["quick"] else ""
    judged = [row["holds"] for row in fact["agreement"] if row["holds"] is not None]
    missed = [row["what"] for row in fact["agreement"] if row["holds"] is False]
    links = [f"[{c.split('/')[1]}](claims.md#{c.split('/')[1].lower()})" for c in fact["claims"]]
    return [
        *("", f"### {name}: {figure.title}", "", f"![{figure.title}](gallery/{fact['picture']})"),
        *("", f"{quick}The paper states: {figure.states}", ""),
        f"- Made by `{fact['command']}` in {_seconds(fact['seconds'])}. {_origin(fact)}",
        f"- Agreement: {sum(judged)} of {len(judged)} lines."
        + (f" Not: {'; '.join(missed)}." if missed else ""),
        f"- Data: {_data(fact)}",
        f"- Claims: {', '.join(links) or 'none is measured on it'}.",
    ]


def _example(script: Path, fact: Mapping[str, Any]) -> list[str]:
    name = script.stem
    return [
        *("", f"### {name}", "", f"![{name}](gallery/{fact['picture']})"),
        *("", sentence(script), ""),
        f"- Script: [{name}.py](../examples/{name}.py), in {_seconds(fact['seconds'])}, with"
        f" imports. {_origin(fact)}",
        f"- Data: {_data(fact)}",
    ]


def _study(file: Path, fact: Mapping[str, Any]) -> list[str]:
    title = tomllib.loads(file.read_text())["title"]
    return [
        *("", f"### {study_name(file)}: {title}", "", f"![{title}](gallery/{fact['picture']})"),
        *("", *(line for answer in fact["answers"] for line in (answer, ""))),
        f"- Study: [{file.name}](../examples/studies/{file.name}), in {_seconds(fact['seconds'])}. "
        + _origin(fact),
        f"- Data: {_data(fact)} `neuralrace run examples/studies/{file.name} --out out/{file.stem}`"
        " writes the whole report.",
    ]


def study_name(file: Path) -> str:
    """The name of a study in the gallery, such as `studies/demo`."""
    return f"studies/{file.stem}"


def sentence(script: Path) -> str:
    """What an example is about: the first line of its docstring."""
    return script.read_text().split('"""')[1].split("\n\n")[0].strip()


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def _origin(fact: Mapping[str, Any]) -> str:
    """Where the data come from, and with which versions; what was not recorded is said."""
    versions = ", ".join(f"{k} {v}" for k, v in fact["versions"].items())
    where = fact["device"] or "a device that was not recorded"
    return f"Computed on {where}, commit {fact['commit'] or 'not recorded'}, with {versions}."


def _data(fact: Mapping[str, Any]) -> str:
    parts = []
    if fact["csv"]:
        thin = "" if fact["every"] == 1 else f", one of {fact['every']} points of each curve"
        less = "" if fact["maps"] else ", without maps"
        parts.append(f"[what is drawn (CSV)](gallery/{fact['csv']}){thin}{less}")
    if fact.get("nc"):
        parts.append(f"[all data (netCDF)](gallery/{fact['nc']})")
    elif "command" in fact:
        file = fact["command"].split()[2]
        parts.append(f"the command writes all data to `{file}.nc`")
    return "; ".join(parts) + "." if parts else "none is drawn as curves or maps."


def feeds() -> dict[str, list[str]]:
    """The claims that are measured on each figure, by its name; nothing is computed.

    Every measure of the ledger reads stand-ins, which remember what was asked for. Where types are
    checked at run time, as in the tests, some refuse stand-ins, and fewer claims are found.
    """
    found: dict[str, list[str]] = {}
    for claim in ledger():
        asked: dict[str, None] = {}

        def table(name: str, asked: dict[str, None] = asked, **_: Any) -> MagicMock:
            asked[name] = None
            return MagicMock()

        tables = MagicMock(side_effect=table)
        tables.at_hand = table
        for measure in claim.measures:
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                measure.read(tables)  # fails where it needs numbers, which a stand-in has not
        for name in asked:
            found.setdefault(name, []).append(claim.name)
    return found


# ---- the store -----------------------------------------------------------------------------------


def update(source: Path, folder: Path = STORE) -> list[str]:
    """Store every figure whose data lie in `source` with its own or its quick settings.

    A quick version does not replace a full one. Returns the names of what was stored.
    """
    facts, best = stored(folder), {}
    for path in sorted([*source.rglob("*.nc"), *source.rglob("*.npz")]):
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
        _write(facts, folder)
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
        "agreement": [vars(row) for row in figure.agreement(table)],
        "claims": [],
        "nc": f"{record.name}.nc" if nc.exists() else None,
        **files,
    }


def _quick(name: str) -> str:
    return f"neuralrace reproduce {name} --quick"


def run_examples(names: Sequence[str] = (), folder: Path = STORE) -> None:
    """Run these examples and studies, or all, and store pictures and what is drawn on them."""
    every = {script.stem: (_run_example, script) for script in EXAMPLES}
    every |= {study_name(file): (_run_study, file) for file in STUDIES}
    for name in names or every:
        run, path = every[name]
        _write(stored(folder) | {name: run(path, folder)}, folder)


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
    return _made(seconds) | files


def _run_study(file: Path, folder: Path) -> dict[str, Any]:
    import jax
    import matplotlib.pyplot as plt

    import neuralrace as nr
    from neuralrace.plot import draw_curves, style
    from neuralrace.report import Curves

    with jax.enable_x64(True):  # as on the command line
        result = nr.Study.load(file).run()
        answers = result.answers.values()
        first = next(part for a in answers for part in a.parts if isinstance(part, Curves))
    with style():
        picture, ax = plt.subplots()
        for kind in ("relu", "simulation", "theory"):
            those = [curve for curve in first.curves if curve.kind == kind]
            x, y = {c.name: c.x for c in those}, {c.name: c.y for c in those}
            if those:
                draw_curves(x, y, kind=kind, xlabel=first.xlabel, ylabel=first.ylabel, ax=ax)
        ax.set(xscale="log" if first.xlog else "linear", yscale="log" if first.ylog else "linear")
        files = store_picture(picture, study_name(file), folder)
    plt.close(picture)
    said = [s for answer in answers for s in answer.short or answer.sentences[:1]]
    return _made(result.seconds) | files | {"answers": said}


def _made(seconds: float) -> dict[str, Any]:
    """How long it took here, and where here is."""
    from neuralrace.report import provenance

    made = provenance()
    return {
        "seconds": round(seconds, 1),
        "device": ", ".join(made.devices),
        "commit": made.commit,
        "versions": {"neuralrace": made.version, "jax": made.packages["jax"]},
    }


def store_picture(picture: Any, name: str, folder: Path) -> dict[str, Any]:
    """Write the thumbnail of a picture, and what is drawn on it; returns the names of the files."""
    png, curves = folder / f"{name}.png", folder / f"{name}.csv"
    png.parent.mkdir(parents=True, exist_ok=True)
    png.write_bytes(thumbnail(picture))
    told = drawn.table(picture, CURVES)
    curves.unlink(missing_ok=True)
    if told is not None and told.text.count("\n") > 1:
        curves.write_text(told.text)
    return {
        "picture": f"{name}.png",
        "panels": list(drawn.panels(picture).values()),
        "csv": f"{name}.csv" if curves.exists() else None,
        "every": told.every if told else None,
        "maps": told.maps if told else None,
    }


def thumbnail(picture: Any) -> bytes:
    """A picture as a PNG file with few colours, as wide as the limit on its size allows."""
    from PIL import Image

    content = b""
    for width in WIDTHS:
        full, file = io.BytesIO(), io.BytesIO()
        picture.savefig(full, dpi=width / picture.get_figwidth())
        image = Image.open(full).convert("RGB")
        image.quantize(128, Image.Quantize.FASTOCTREE).save(file, "png", optimize=True)
        content = file.getvalue()
        if len(content) <= PICTURE:
            break
    return content


def _write(facts: Facts, folder: Path) -> None:
    text = json.dumps(dict(sorted(facts.items())), indent=1, ensure_ascii=False)
    (folder / FACTS).write_text(text + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Update the store where asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="a folder with data of figures")
    parser.add_argument("--examples", nargs="*", metavar="NAME", help="run these examples, or all")
    given = parser.parse_args(arguments)
    if given.source is not None:
        sys.stdout.write(f"stored: {', '.join(update(given.source)) or 'nothing'}\n")
    if given.examples is not None:
        run_examples(given.examples)
    facts, fed = stored(), feeds()
    for name in papers.names():
        facts[name]["claims"] = fed.get(name, [])
    _write(facts, STORE)
    PAGE.write_text(page(facts))


if __name__ == "__main__":
    main()
