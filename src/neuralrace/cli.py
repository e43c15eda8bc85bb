"""The command line."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuralrace import __version__
from neuralrace.checks import writable_folder
from neuralrace.errors import NeuralRaceError

if TYPE_CHECKING:
    from neuralrace.papers import Written
    from neuralrace.study import Study

FOLDER = Path("out/figures")

COMMAND = "command.txt"
"""A file beside the store of a sweep with the command that goes on with it."""


@click.group()
@click.version_option(__version__)
def commands() -> None:
    """Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones."""


_FILE = click.argument("file", type=click.Path(path_type=Path))
_CHANGES = click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a dotted key, such as training.steps=500.",
)
_QUICK = click.option("--quick", is_flag=True, help="The small version: section [quick].")


@commands.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@_CHANGES
@_QUICK
@click.option("--schema", is_flag=True, help="Print the JSON schema of a study, for editors.")
def check(file: Path | None, changes: tuple[str, ...], quick: bool, schema: bool) -> None:
    """Check a study without computing: keys, kinds, files, expressions, sweeps."""
    if schema:
        from neuralrace.study import Study

        click.echo(json.dumps(Study.schema(), indent=1, ensure_ascii=False))
        return
    if file is None:
        raise NeuralRaceError(
            "no study was named", got="no file", wanted="a TOML file", fix="neuralrace new"
        )
    study = _study(file, changes, quick)
    problem = study.check()
    click.echo(f"{file}: {study.title}")
    click.echo("\n".join(problem.sentences))


@commands.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("study.toml"))
@click.option("--csv", type=click.Path(path_type=Path), help="A table to write the study for.")
def new(file: Path, csv: Path | None) -> None:
    """Write a commented study to begin with; FILE is study.toml by default."""
    from neuralrace.study import new_study

    path = new_study(file, csv)
    click.echo(f"{path}: change it to your question, then run")
    click.echo(f"  neuralrace check {path}")
    click.echo(f"  neuralrace run {path}")


@commands.command()
@_FILE
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The folder of the report; out/NAME for the study NAME.toml by default.",
)
@_CHANGES
@click.option("--seeds", metavar="N", help="How many networks, or repetitions of a sweep.")
@_QUICK
@click.option("--workers", type=int, help="Processes of a sweep on this machine, or SLURM jobs.")
@click.option("--scheduler", metavar="ADDRESS", help="A dask cluster that computes the sweep.")
@click.option("--slurm", metavar="OPTIONS", help="Such as partition=cpu,cores=8,memory=8GB.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of all answers as JSON.")
def run(
    file: Path,
    out: Path | None,
    changes: tuple[str, ...],
    seeds: str | None,
    quick: bool,
    workers: int | None,
    scheduler: str | None,
    slurm: str | None,
    as_json: bool,
) -> None:
    """Run a study and write its report; a sweep goes on where it was stopped."""
    folder = Path("out") / file.stem if out is None else out
    study = _study(file, changes, quick)
    swept = study.settings.sweep is not None
    if seeds is not None:
        key = "sweep.seeds" if swept else "training.seeds"
        study = study.changed(_read_values({key: seeds}), "--seeds")
    study.check()
    writable_folder(folder)
    typed = _typed("run", file, changes, seeds, quick)
    if swept:
        from neuralrace.study import STORE

        jobs = _slurm_options(slurm)
        again = ["--out", str(folder), *_workers(workers, scheduler, slurm)]
        (folder / COMMAND).write_text(f"{typed} {shlex.join(again)}\n", encoding="utf-8")
        found = study.sweep(store=folder / STORE, workers=workers, scheduler=scheduler, slurm=jobs)
        numbers = found.table.to_dict("list")
        failed = len(found.sweep.failed) + found.sweep.missing
    else:
        if workers is not None or scheduler is not None or slurm is not None:
            raise NeuralRaceError(
                f"{file} has no sweep to share among workers",
                got="--workers, --scheduler or --slurm",
                wanted="a section [sweep]",
                fix="leave them out: a single study runs in this process",
            )
        found = study.run(tell=lambda line: click.echo(line, err=True))
        numbers, failed = found.numbers, 0
    page = found.report(folder, command=typed)
    if as_json:
        click.echo(json.dumps(_finite(numbers), ensure_ascii=False))
    else:
        for sentence in found.sentences:
            click.echo(f"• {sentence}")
    click.echo(f"The report: {page.resolve().as_uri()}", err=as_json)
    if failed:
        raise SystemExit(2)


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
def status(folder: Path) -> None:
    """How far a sweep is: done, running, failed, time left. FOLDER is that of its report."""
    from neuralrace.study import STORE
    from neuralrace.sweeps import status as how_far

    inside = folder / STORE
    store = inside if inside.exists() else folder
    if not (store / "zarr.json").exists():
        raise NeuralRaceError(
            f"there is no sweep in {str(folder)!r}",
            got="a folder without one" if folder.is_dir() else "no such folder",
            wanted="the folder of a report, such as out/NAME for the study NAME.toml",
            fix="`neuralrace run FILE` begins the sweep of a study with a section [sweep]",
        )
    found, command = how_far(store), store.parent / COMMAND
    stopped = not found.active and not found.is_complete and command.is_file()
    click.echo(f"{found}:\n  {command.read_text(encoding='utf-8').strip()}" if stopped else found)


def _workers(workers: int | None, scheduler: str | None, slurm: str | None) -> list[str]:
    """The options that say who computes, as they are typed."""
    given = {"--workers": workers, "--scheduler": scheduler, "--slurm": slurm}
    return [word for name, v in given.items() if v is not None for word in (name, str(v))]


def _slurm_options(text: str | None) -> dict[str, object] | None:
    """`partition=cpu,cores=8` as options of a SLURM cluster."""
    return None if text is None else _read_values(_pairs(tuple(text.split(","))))


def _finite(value: object) -> object:
    """Numbers for JSON, which knows neither infinity nor NaN: they become null."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_values(pairs: Mapping[str, str]) -> dict[str, object]:
    from neuralrace.study import value_of

    return {key: value_of(value) for key, value in pairs.items()}


def _typed(
    command: str, file: Path, changes: tuple[str, ...], seeds: str | None, quick: bool
) -> str:
    """The command that gives the same numbers, as it is typed."""
    words = ["neuralrace", command, str(file)]
    for change in changes:
        words += ["--set", change]
    words += [] if seeds is None else ["--seeds", seeds]
    return shlex.join([*words, *(["--quick"] if quick else [])])


def _study(file: Path, changes: tuple[str, ...], quick: bool) -> Study:
    """The study with what was typed on the command line."""
    from neuralrace.study import Study

    _use_float64()
    study = Study.load(file)
    if quick:
        study = study.quick()
    typed = _read_values(_pairs(changes))
    return study.changed(typed, "--set") if typed else study


@commands.command(name="list")
@click.argument("names", nargs=-1)
@click.option("--settings", is_flag=True, help="Also every setting, its value and its source.")
def show(names: tuple[str, ...], settings: bool) -> None:
    """List the figures that can be reproduced, one per line."""
    from neuralrace import papers
    from neuralrace.papers import shown

    found = papers.chosen(names or ("all",))
    width = max(map(len, found))
    for name in found:
        figure = papers.find(name)
        click.echo(f"{name:<{width}}  {figure.title}")
        for key, setting in figure.settings.items() if settings else ():
            click.echo(f"    {key}={shown(setting.value)}  {setting.about} ({setting.source})")


@commands.command()
@click.argument("names", nargs=-1)
@click.option("--quick", is_flag=True, help="A faithful small version, in seconds.")
@click.option("--seeds", metavar="N", help="How many repetitions, where a figure has any.")
@click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a setting; `neuralrace list --settings` shows them. Lists: 1,2,3.",
)
@click.option(
    "--from",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Draw stored data (.nc) again, without computing.",
)
@click.option("--out", type=click.Path(path_type=Path), default=FOLDER, show_default=True)
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    seeds: str | None,
    changes: tuple[str, ...],
    files: tuple[Path, ...],
    out: Path,
) -> None:
    """Make figures of the papers: PDF, PNG, the data, a page with the agreement, and a gallery.

    NAMES are figures such as nrr/fig4, a paper such as nrr, or all.
    """
    wanted = _pairs(changes) | ({} if seeds is None else {"seeds": seeds})
    if files:
        if names or wanted or quick:
            raise NeuralRaceError(
                "stored data are drawn as they are",
                got="--from together with " + ("names" if names else "other settings"),
                wanted="--from FILE and --out alone",
                fix="leave out --from to compute anew",
            )
        _redraw(files, out)
    else:
        _make(names, quick, wanted, out)


@commands.command()
@click.argument("names", nargs=-1, metavar="[PAPER]...")
@click.option("--quick", is_flag=True, help="Small versions of the figures; settles nothing.")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    help="Where `reproduce` wrote its data: figures with the same settings are read from there.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Also write the page, such as docs/claims.md; its sections on other papers are kept.",
)
def claims(names: tuple[str, ...], quick: bool, folder: Path | None, out: Path | None) -> None:
    """Measure the claims of the papers, all or those named, and print the verdicts."""
    from neuralrace import papers
    from neuralrace.papers.claims import QUICK, Tables, ledger, markdown

    wanted = ledger(*names)
    tables = Tables(quick, folder, tell=lambda text: click.echo(text, err=True))
    tables.look_for(papers.chosen(names or ("all",)))
    if out is not None:
        _check_page(out)
    _use_float64()
    if quick:
        click.echo(f"Measured with {QUICK}:")
    entries = []
    for claim in wanted:
        entry = claim.measure(tables)
        entries.append(entry)
        click.echo(f"{entry.verdict.value}: {claim.name} ({claim.where}): {claim.says}")
        for measure, value in entry.pairs:
            mark = "✓" if measure.met(value) else "✗"
            click.echo(f"  {mark} {measure.what}: {value:{measure.form}} ({measure.threshold})")
        for text in entry.qualifications:
            click.echo(f"  · {text}")
    count = Counter(entry.verdict.value for entry in entries)
    click.echo("In all: " + ", ".join(f"{n} {verdict}" for verdict, n in count.items()) + ".")
    if quick:
        click.echo(f"These were {QUICK}: leave out --quick for verdicts.")
    if out is not None:
        page = out.read_text() if out.exists() else ""
        same_size = (QUICK in page) == quick
        out.write_text(markdown(entries, quick=quick, page=page if same_size else ""))
        click.echo(f"The page: {out}")


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


def _make(names: tuple[str, ...], quick: bool, changes: Mapping[str, str], out: Path) -> None:
    from neuralrace import papers
    from neuralrace.papers import unknown

    if not names:
        raise NeuralRaceError(
            "nothing was named",
            got="no figure",
            wanted=f"one or more of {', '.join(papers.names())}",
            fix="`neuralrace reproduce all --quick` makes a small version of every one",
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
    _use_float64()
    for i, (figure, those) in enumerate(zip(figures, values, strict=True)):
        click.echo(f"[{i + 1}/{len(figures)}] {figure.name}: computing …", err=True)
        _tell(figure.publish(figure.run(those, quick=quick), out))
        _gallery(out)
    click.echo(f"The gallery: {out / 'index.html'}")


def _no_seeds(those: str, known: Iterable[str]) -> NeuralRaceError:
    return NeuralRaceError(
        f"there are no seeds in {those}: nothing is repeated there",
        got="a number of seeds",
        wanted=f"what can be set there: {', '.join(known) or 'nothing'}",
        fix="leave out the seeds; `neuralrace list --settings` has every setting",
    )


def _redraw(files: Iterable[Path], out: Path) -> None:
    from neuralrace import papers
    from neuralrace.papers import load_figure, read_record

    tables = [load_figure(file) for file in files]
    writable_folder(out)
    for table in tables:
        _tell(papers.find(read_record(table).name).publish(table, out))
    click.echo(f"The gallery: {_gallery(out)}")


def _gallery(out: Path) -> Path:
    from neuralrace import papers
    from neuralrace.papers import gallery

    return gallery(out, papers.names())


def _tell(written: Written) -> None:
    record = written.record
    click.echo(f"{record.name}: {record.verdict} (computed in {record.seconds:.1f} s)")
    for row in record.agreement:
        mark = {True: "✓", False: "✗", None: "·"}[row["holds"]]
        click.echo(f"  {mark} {row['what']}: {row['measured']} ({row['target']})")
    if record.changed:
        other = ", ".join(record.changed)
        click.echo(f"  (bounds are those for the default settings; not default: {other})")
    click.echo("  " + ", ".join(map(str, (written.pdf, written.png, written.data, written.page))))


def _pairs(changes: tuple[str, ...]) -> dict[str, str]:
    """`("M=5", …)` as `{"M": "5", …}`."""
    found = {}
    for change in changes:
        key, sign, value = change.partition("=")
        if not sign or not key.strip():
            raise NeuralRaceError(
                "a setting is changed by its name and a value",
                got=repr(change),
                wanted="KEY=VALUE",
                fix="such as --set M=5",
            )
        found[key.strip()] = value
    return found


def _use_float64() -> None:
    """Compute in float64, and draw without a display."""
    import jax
    import matplotlib

    jax.config.update("jax_enable_x64", True)
    matplotlib.use("Agg")


def main() -> None:
    """Run a command; the package's errors become messages, not tracebacks."""
    try:
        commands()
    except NeuralRaceError as error:
        raise SystemExit(f"error: {error}") from error
