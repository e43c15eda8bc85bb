"""The commands of `python -m papers`: figures, tours, claims."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neuralrace.checks import writable_folder
from neuralrace.cli import pairs, print_json, use_float64, with_look
from neuralrace.errors import NeuralRaceError

if TYPE_CHECKING:
    from papers import Written
    from papers.claims import Claim, Entry, Ledger

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
OUT = click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/figures"), show_default=True
)
QUICK = click.option("--quick", is_flag=True, help="A faithful small version, in seconds.")


@click.group()
def commands() -> None:
    """Figures of the papers and claims in them, made anew and measured."""


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
@click.argument("names", nargs=-1, metavar="[PAPER|CLAIM]...")
@click.option("--quick", is_flag=True, help="Small versions of the figures; settles nothing.")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    help="A folder with data of `reproduce`: figures with the same settings are read from there, "
    "and what is computed is kept there, so that the command can be repeated.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Also write the page, such as docs/claims.md; its sections on other papers are kept. If "
    "all claims are measured, their numbers are kept beside it, in docs/claims.json.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="CLAIM",
    help="Do not measure this claim again: its numbers are those beside the page of --out. For "
    "claims on figures that were computed elsewhere; can be given several times.",
)
@JSON
def claims(
    names: tuple[str, ...],
    quick: bool,
    folder: Path | None,
    out: Path | None,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure the claims of the papers, all or those named, and print the verdicts."""
    from papers.claims import (
        QUICK,
        Ledger,
        Tables,
        in_short,
        ledger,
        markdown,
        tally,
    )

    wanted = ledger(*names)
    if out is not None:
        _check_page(out)
        _check_whole(names)
    numbers = None if out is None else out.with_suffix(".json")
    kept = _kept(keep, wanted, numbers, quick)
    replaces = numbers is not None and numbers.exists() and not quick
    tables = Tables(quick, folder, lambda text: click.echo(text, err=True), whole=replaces)
    entries, earlier = [], {entry.claim.name: entry for entry in kept.entries}
    tables.check([claim for claim in wanted if claim.name not in earlier])
    use_float64()
    if quick:
        click.echo(f"Measured with {QUICK}:", err=as_json)
    for claim in wanted:
        entries.append(earlier.get(claim.name) or claim.measure(tables))
        if not as_json:
            _tell_claim(entries[-1])
    click.echo(f"In all: {tally(entries)}.", err=as_json)
    if quick:
        click.echo(f"These were {QUICK}: leave out --quick for verdicts.", err=as_json)
    if as_json:
        print_json([_entry(entry) for entry in entries])
    if out is not None and numbers is not None:
        page = out.read_text() if out.exists() else ""
        same_size = (QUICK in page) == quick
        short = in_short(entries, tables) if not names else ()
        before = page if same_size else ""
        text = markdown(entries, quick=quick, page=before, short=short, origins=tables.origins)
        out.write_text(text)
        if not names and not quick:
            whole = Ledger(tuple(entries), tuple(short), tables.origins)
            values = json.dumps(whole.kept(), indent=1, ensure_ascii=False)
            numbers.write_text(values + "\n")
        click.echo(f"The page: {out}", err=as_json)


def _tell_claim(entry: Entry) -> None:
    claim = entry.claim
    click.echo(f"{entry.verdict.value}: {claim.name} ({claim.where}): {claim.says}")
    marks = {"met": "✓", "missed": "✗", "unclear": "?"}
    for measure, found in entry.pairs:
        mark = marks[measure.outcome(found).value]
        value = f"{found.value:{measure.form}}"
        bound = f"{measure.threshold}, {measure.rests.value}"
        click.echo(f"  {mark} {measure.what}: {value} ({bound})")
    for text in (*entry.qualifications, *entry.doubts, *entry.instead, *entry.remarks):
        click.echo(f"  · {text}")


def _entry(entry: Entry) -> dict[str, Any]:
    claim = entry.claim
    return {
        "name": claim.name,
        "where": claim.where,
        "says": claim.says,
        "quote": claim.quote,
        "inferred": claim.inferred,
        "verdict": entry.verdict.value,
        "measured": [
            {
                "id": m.id,
                "what": m.what,
                "value": found.value,
                "interval": [found.low, found.high],
                "seeds": found.seeds,
                "threshold": m.threshold,
                "rests": m.rests.value,
                "outcome": m.outcome(found).value,
            }
            for m, found in entry.pairs
        ],
        "qualifications": entry.qualifications,
        "doubts": entry.doubts,
        "instead": entry.instead,
        "remarks": entry.remarks,
    }


def _kept(
    keep: tuple[str, ...], wanted: Sequence[Claim], numbers: Path | None, quick: bool
) -> Ledger:
    """The claims that are not to be measured again, with the numbers that are beside a page."""
    from papers.claims import Ledger, ledger

    if not keep:
        return Ledger(())
    if numbers is None or quick or not numbers.exists():
        raise NeuralRaceError(
            "there are no numbers to keep",
            got="--quick" if quick else "no --out" if numbers is None else f"no {numbers}",
            wanted="a page at full size, with its numbers in a JSON file beside it",
            fix="name the page by --out, such as docs/claims.md, or leave out --keep",
        )
    kept = ledger(*keep)
    others = [claim.name for claim in kept if claim not in wanted]
    if others:
        raise NeuralRaceError(
            "only claims that are asked for can be kept",
            got=f"--keep {' '.join(others)}",
            wanted="claims of the papers that are named, or of all papers if none is",
            fix=f"leave it out, or ask for {others[0].split('/')[0]} as well",
        )
    return Ledger.earlier(json.loads(numbers.read_text()), kept)


def _check_whole(names: tuple[str, ...]) -> None:
    """Raise if a page is wanted of single claims."""
    single = [name for name in names if "/" in name]
    if single:
        raise NeuralRaceError(
            "a page has all claims of a paper",
            got=", ".join(single),
            wanted="names of papers, or none for all",
            fix=f"leave out --out, or measure {single[0].split('/')[0]}",
        )


def _check_page(out: Path) -> None:
    """Raise where a page cannot be written, before anything is measured for it."""
    if out.is_dir():
        raise NeuralRaceError(
            f"{str(out)!r} is a folder",
            got="a folder",
            wanted="the path of a page",
            fix=f"name the page: --out {out / 'claims.md'}",
        )
    writable_folder(out.parent)
    if out.exists() and not os.access(out, os.W_OK):
        raise NeuralRaceError(
            f"cannot write to {str(out)!r}",
            got="a file that is read-only",
            wanted="a file that can be written",
            fix="choose another file, or allow writing",
        )


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
    paths = (written.pdf, written.png, *written.others, written.data, written.page)
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
