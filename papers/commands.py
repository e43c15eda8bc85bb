"""The commands of `python -m papers`: figures and tours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuralrace.checks import writable_folder
from neuralrace.cli import pairs, print_json, use_float64, with_look
from neuralrace.errors import NeuralRaceError

if TYPE_CHECKING:
    from papers import Written

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
OUT = click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/figures"), show_default=True
)
QUICK = click.option("--quick", is_flag=True, help="A faithful small version, in seconds.")


@click.group()
def commands() -> None:
    """Figures of the papers, made anew and measured."""


@commands.command(name="list")
@click.argument("names", nargs=-1)
@click.option("--settings", is_flag=True, help="Also every setting, its value and its source.")
@JSON
def show(names: tuple[str, ...], settings: bool, as_json: bool) -> None:
    """List the figures that can be reproduced, one per line."""
    import papers
    from papers import shown

    found = {name: papers.find(name) for name in papers.chosen(names or ("all",))}
    if as_json:
        rows: list[dict[str, Any]] = [{"name": n, "title": f.title} for n, f in found.items()]
        for row in rows if settings else ():
            row["settings"] = {
                key: {"value": s.value, "about": s.about, "source": s.source}
                for key, s in found[row["name"]].settings.items()
            }
        print_json(rows)
        return
    width = max(map(len, found))
    for name, figure in found.items():
        click.echo(f"{name:<{width}}  {figure.title}")
        for key, setting in figure.settings.items() if settings else ():
            click.echo(f"    {key}={shown(setting.value)}  {setting.about} ({setting.source})")


@commands.command()
@click.argument("names", nargs=-1)
@QUICK
@click.option("--seeds", metavar="N", help="How many repetitions, where a figure has any.")
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting; `python -m papers list --settings` shows them. Lists: 1,2,3.",
)
@click.option(
    "--from",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Draw stored data (.nc) again, without computing.",
)
@OUT
@JSON
@with_look
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    seeds: str | None,
    changes: tuple[str, ...],
    files: tuple[Path, ...],
    out: Path,
    as_json: bool,
) -> None:
    """Make figures of the papers: PDF, PNG, the data, a page with the agreement, and a gallery.

    NAMES are figures such as nrr/fig4, a paper such as nrr, or all.
    """
    wanted = pairs(changes) | ({} if seeds is None else {"seeds": seeds})
    if files:
        if names or wanted or quick:
            raise NeuralRaceError(
                "stored data are drawn as they are",
                got="--from together with " + ("names" if names else "other settings"),
                wanted="--from FILE and --out, --format, --figsize, --rc alone",
                fix="leave out --from to compute anew",
            )
        written = _redraw(files, out, as_json)
    else:
        written = _make(names, quick, wanted, out, as_json)
    if as_json:
        print_json([_row(one) for one in written])
    else:
        click.echo(f"The gallery: {out / 'index.html'}")


@commands.command()
@click.argument("name")
@QUICK
@OUT
@with_look
def tour(name: str, quick: bool, out: Path) -> None:
    """Make the figures of a talk, and one page with them in the order of its slides.

    NAME is that of a tour, such as mhs/tour.
    """
    import papers

    found = papers.find_tour(name)
    _make(found.figures, quick, {}, out, quiet=False)
    click.echo(f"The tour: {papers.write_tour(found, out)}")


@commands.command()
@click.argument("plans", nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file of cells.")
@click.option("--minutes", type=float, default=9.0, show_default=True)
@click.option("--data", help="Folder of the images; NEURALRACE_DATA if none.")
def cells(plans: tuple[str, ...], out: Path, minutes: float, data: str | None) -> None:
    """Compute cells of routing with images (NRR §5), one by one, into a file.

    PLANS are names such as must or digits. The same call goes on from there.
    """
    from papers import unknown
    from papers.nrr import image_plans

    there = image_plans.plans(10)
    for name in plans:
        if name not in there:
            raise unknown("plan", name, there)
    missing = image_plans.compute(plans, out, minutes=minutes, data=data, tell=click.echo)
    click.echo(f"{missing} cells are missing." if missing else "All cells are there.")


def _make(
    names: tuple[str, ...], quick: bool, changes: Mapping[str, str], out: Path, quiet: bool
) -> list[Written]:
    import papers
    from papers import unknown

    if not names:
        raise NeuralRaceError(
            "nothing was named",
            got="no figure",
            wanted=f"one or more of {', '.join(papers.names())}",
            fix="`python -m papers reproduce all --quick` makes a small version of every one",
        )
    figures = [papers.find(name) for name in papers.chosen(names)]
    known = dict.fromkeys(key for figure in figures for key in figure.settings)
    for key in changes:
        if key not in known:
            those = ", ".join(figure.name for figure in figures)
            if key == "seeds":
                raise _no_seeds(those, known)
            raise unknown("setting", key, known, f"of {those}")
    # every setting is read before the first figure is computed
    values = [
        figure.resolve(
            quick=quick, changes={k: v for k, v in changes.items() if k in figure.settings}
        )
        for figure in figures
    ]
    writable_folder(out)
    use_float64()
    found = []
    for i, (figure, those) in enumerate(zip(figures, values, strict=True)):
        click.echo(f"[{i + 1}/{len(figures)}] {figure.name}: computing …", err=True)
        try:
            table = figure.run(those, quick=quick)
        except papers.TooSlow as error:
            if len(figures) == 1:
                raise
            click.echo(f"{figure.name} is left out: {error}", err=True)
            continue
        found.append(figure.publish(table, out))
        _tell(found[-1], quiet)
        _gallery(out)
    return found


def _no_seeds(those: str, known: Iterable[str]) -> NeuralRaceError:
    return NeuralRaceError(
        f"there are no seeds in {those}: nothing is repeated there",
        got="a number of seeds",
        wanted=f"what can be set there: {', '.join(known) or 'nothing'}",
        fix="leave out the seeds; `python -m papers list --settings` has every setting",
    )


def _redraw(files: Iterable[Path], out: Path, quiet: bool) -> list[Written]:
    import papers
    from papers import load_figure, read_record

    tables = [load_figure(file) for file in files]
    writable_folder(out)
    found = []
    for table in tables:
        found.append(papers.find(read_record(table).name).publish(table, out))
        _tell(found[-1], quiet)
    _gallery(out)
    return found


def _gallery(out: Path) -> None:
    import papers
    from papers import gallery

    gallery(out, papers.names())


def _files(written: Written) -> list[str]:
    paths = (written.pdf, written.png, *written.others, written.data)
    return [str(path) for path in paths]


def _tell(written: Written, quiet: bool) -> None:
    if quiet:
        return
    record = written.record
    click.echo(f"{record.name}: {record.verdict} (computed in {record.seconds:.1f} s)")
    for row in record.agreement:
        mark = {True: "✓", False: "✗", None: "·"}[row["holds"]]
        click.echo(f"  {mark} {row['what']}: {row['measured']} ({row['target']})")
    if record.changed:
        other = ", ".join(record.changed)
        click.echo(f"  (bounds are those for the default settings; not default: {other})")
    click.echo("  " + ", ".join(_files(written)))


def _row(written: Written) -> dict[str, Any]:
    record = written.record
    return {
        "name": record.name,
        "verdict": record.verdict,
        "quick": record.quick,
        "changed": record.changed,
        "agreement": [dict(row) for row in record.agreement],
        "seconds": record.seconds,
        "files": _files(written),
    }
