"""The command line: a thin door."""

from __future__ import annotations

from pathlib import Path

import click

from neuralrace import __version__
from neuralrace.errors import NeuralRaceError


@click.group()
@click.version_option(__version__)
def commands() -> None:
    """Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones."""


@commands.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/demo"), show_default=True)
def demo(out: Path) -> None:
    """XoR by ReLU networks, by a gated linear network, and by the race that predicts it."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from neuralrace.demo import demo as run

    found = run(out)
    click.echo(found.sentence)
    click.echo(f"The picture: {found.picture}; the equations beside it in LaTeX.")


def main() -> None:
    """Run a command; an error of the package's own is a message, not a traceback."""
    try:
        commands()
    except NeuralRaceError as error:
        raise SystemExit(f"error: {error}") from error
