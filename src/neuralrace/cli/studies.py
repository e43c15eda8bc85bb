"""Commands on studies: check, new, run, report, status."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neuralrace.checks import writable_folder
from neuralrace.cli.options import (
    CHANGES,
    FAILED,
    JSON,
    QUICK,
    SEEDS,
    STUDY,
    outer_parts,
    pairs,
    print_json,
    read_values,
    use_float64,
    with_look,
)
from neuralrace.errors import NeuralRaceError, require
from neuralrace.text import several

if TYPE_CHECKING:
    from neuralrace.study import Study


COMMAND = "command.txt"
"""A file beside the store of a sweep with the command that goes on with it."""


@click.command()
@click.argument("file", type=STUDY, required=False)
@CHANGES
@SEEDS
@QUICK
@click.option("--schema", is_flag=True, help="Print the JSON schema of a study, for editors.")
@JSON
def check(
    file: Path | None,
    changes: tuple[str, ...],
    seeds: str | None,
    quick: bool,
    schema: bool,
    as_json: bool,
) -> None:
    """Check a study without computing: keys, kinds, files, expressions, sweeps."""
    if schema:
        from neuralrace.study import Study

        click.echo(json.dumps(Study.schema(), indent=1, ensure_ascii=False))
        return
    if file is None:
        raise NeuralRaceError(
            "no study was named", got="no file", wanted="a TOML file", fix="neuralrace new"
        )
    study = _study(file, changes, seeds, quick)
    problem = study.check()
    if as_json:
        print_json(
            {
                "file": file,
                "title": study.title,
                "questions": study.settings.questions,
                "found": list(problem.sentences),
            }
        )
        return
    click.echo(f"{file}: {study.title}")
    click.echo("\n".join(problem.sentences))


@click.command()
@click.argument("file", type=STUDY, default=Path("study.toml"))
@click.option("--csv", type=STUDY, help="A table to write the study for.")
@click.option("--items", metavar="COLUMN", help="The column that names the items of the table.")
@click.option("--x", multiple=True, metavar="COLUMN", help="An input; may be given many times.")
@click.option("--y", multiple=True, metavar="COLUMN", help="A target; may be given many times.")
def new(
    file: Path, csv: Path | None, items: str | None, x: tuple[str, ...], y: tuple[str, ...]
) -> None:
    """Write a commented study to begin with; FILE is study.toml by default."""
    from neuralrace.study import new_study

    path = new_study(file, csv, items=items, x=x, y=y)
    if csv is not None:
        task = tomllib.loads(path.read_text())["task"]
        inputs, targets = several(task["x"]), several(task["y"])
        click.echo(f"Inputs: {inputs}. Targets: {targets}. --x and --y change that.")
    click.echo(f"{path}: change it to your question, then run")
    click.echo(f"  neuralrace check {path}")
    click.echo(f"  neuralrace run {path}")


@click.command()
@click.argument("file", type=STUDY)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The folder of the report; out/NAME for the study NAME.toml by default.",
)
@CHANGES
@SEEDS
@QUICK
@click.option("--workers", type=int, help="Processes of a sweep on this machine, or SLURM jobs.")
@click.option("--scheduler", metavar="ADDRESS", help="A dask cluster that computes the sweep.")
@click.option("--slurm", metavar="OPTIONS", help="Such as partition=cpu,cores=8,memory=8GB.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers of all answers as JSON.")
@with_look
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
    study = _study(file, changes, seeds, quick)
    swept = study.settings.sweep is not None
    study.check()
    writable_folder(folder)
    typed = _typed("run", file, changes, seeds, quick)
    if swept:
        from neuralrace.study import STORE

        jobs = None if slurm is None else read_values(pairs(outer_parts(slurm)))
        again = ["--out", str(folder), *_workers(workers, scheduler, slurm)]
        (folder / COMMAND).write_text(f"{typed} {shlex.join(again)}\n", encoding="utf-8")
        found = study.sweep(store=folder / STORE, workers=workers, scheduler=scheduler, slurm=jobs)
        numbers = found.frame().to_dict("list")
        failed = len(found.sweep.failed) + found.sweep.missing
    else:
        require(
            workers is None and scheduler is None and slurm is None,
            f"{file} has no sweep to share among workers",
            got="--workers, --scheduler or --slurm",
            wanted="a section [sweep]",
            fix="leave them out: a single study runs in this process",
        )
        found = study.run(tell=lambda line: click.echo(line, err=True))
        numbers, failed = found.numbers, len(found.refused)
    page = found.report(folder, command=typed)
    if as_json:
        print_json(numbers)
    else:
        for sentence in found.sentences():
            click.echo(f"• {sentence.text}")
    click.echo(f"The report: {page.resolve().as_uri()}", err=as_json)
    if failed:
        raise SystemExit(FAILED)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Another folder to write to.")
@JSON
@with_look
def report(folder: Path, out: Path | None, as_json: bool) -> None:
    """Write the report in FOLDER again, without computing: a new look, or a sweep so far."""
    from neuralrace.plot import Look, current_look
    from neuralrace.study import write_again

    use_float64()
    found = write_again(folder, out)
    if found.pictures and current_look() != Look():
        click.echo(
            f"curves have the new look; pictures ({found.pictures}) stay as they were drawn: "
            f"`neuralrace run {folder / 'study.toml'}` draws them anew",
            err=True,
        )
    if as_json:
        print_json({"page": found.page, "missing": found.missing, "failed": found.failed})
        return
    if found.missing or found.failed:
        click.echo(f"{found.missing} cells are missing, {found.failed} failed")
    click.echo(f"The report: {found.page.resolve().as_uri()}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@JSON
def status(folder: Path, as_json: bool) -> None:
    """How far a sweep is: done, running, failed, time left. FOLDER is that of its report."""
    from neuralrace.study import STORE
    from neuralrace.sweeps import status as how_far

    inside = folder / STORE
    store = inside if inside.exists() else folder
    require(
        (store / "zarr.json").exists(),
        f"there is no sweep in {str(folder)!r}",
        got="a folder without one" if folder.is_dir() else "no such folder",
        wanted="the folder of a report, such as out/NAME for the study NAME.toml",
        fix="`neuralrace run FILE` begins the sweep of a study with a section [sweep]",
    )
    found, command = how_far(store), store.parent / COMMAND
    if as_json:
        print_json({**asdict(found), "missing": found.missing})
        return
    stopped = not found.active and not found.is_complete and command.is_file()
    click.echo(f"{found}:\n  {command.read_text(encoding='utf-8').strip()}" if stopped else found)


def _workers(workers: int | None, scheduler: str | None, slurm: str | None) -> list[str]:
    """The options that say who computes, as they are typed."""
    given = {"--workers": workers, "--scheduler": scheduler, "--slurm": slurm}
    return [word for name, v in given.items() if v is not None for word in (name, str(v))]


def _typed(
    command: str, file: Path, changes: tuple[str, ...], seeds: str | None, quick: bool
) -> str:
    """The command that gives the same numbers, as it is typed."""
    words = ["neuralrace", command, str(file)]
    for change in changes:
        words += ["--set", change]
    words += [] if seeds is None else ["--seeds", seeds]
    return shlex.join([*words, *(["--quick"] if quick else [])])


def _study(file: Path, changes: tuple[str, ...], seeds: str | None, quick: bool) -> Study:
    """The study with what was typed on the command line."""
    from neuralrace.study import Study

    use_float64()
    study = Study.load(file)
    if quick:
        study = study.quick()
    typed = read_values(pairs(changes, "--set training.steps=500"))
    if typed:
        study = study.changed(typed, "--set")
    if seeds is None:
        return study
    key = "training.seeds" if study.settings.sweep is None else "sweep.seeds"
    return study.changed(read_values({key: seeds}), "--seeds")


@click.command()
@click.argument("file", type=STUDY, required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to bind to.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 8477 or any that is free.")
@click.option("--token", help="The secret in the address; a random one by default.")
@click.option("--trust", is_flag=True, help="Call the Python functions that the study names.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
def explore(
    file: object, host: str, port: int | None, token: str | None, trust: bool, no_browser: bool
) -> None:
    """Open the explorer in the browser: draw gates, move sliders, watch the race.

    FILE is a study, or a table (.csv), to show first. The explorer runs on this machine until
    Ctrl-C and can be reached from no other, unless --host says so. The address holds a secret:
    whoever knows it can use it.
    """
    from neuralrace.explorer import serve

    if host not in ("127.0.0.1", "localhost", "::1"):
        click.echo(f"Bound to {host}: other machines can reach it if they know the address.")
    serve(
        None if file is None else str(file),
        host=host,
        port=port,
        token=token,
        trust=trust,
        browser=not no_browser,
        tell=lambda address: click.echo(f"The explorer is at {address}\nCtrl-C ends it."),
    )
