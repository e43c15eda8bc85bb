"""The command line: one door to studies, sweeps, reports and the papers' figures."""

from __future__ import annotations

import click

from neuralrace import __version__
from neuralrace.cli.citing import cite
from neuralrace.cli.completion import VARIABLE, completion
from neuralrace.cli.exploring import explore
from neuralrace.cli.figures import claims, reproduce, show
from neuralrace.cli.studies import check, new, report, run, status
from neuralrace.errors import NeuralRaceError

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


class _InOrder(click.Group):
    """Commands are listed in the order in which they are added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder)
@click.version_option(__version__)
def commands() -> None:
    """Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones."""


for _command in (
    *(new, check, run, report, status, explore),
    *(show, reproduce, claims, cite, completion),
):
    commands.add_command(_command)


def main() -> None:
    """Run a command; the package's errors become messages, not tracebacks.

    Exit codes: 0 when all is well, 1 for an error, 2 for a command that is not understood, 3 when
    cells of a sweep failed or are missing, 130 after Ctrl-C.
    """
    try:
        code = commands.main(prog_name="neuralrace", complete_var=VARIABLE, standalone_mode=False)
    except NeuralRaceError as error:
        raise SystemExit(f"error: {error}") from error
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except click.Abort as error:
        click.echo("stopped", err=True)
        raise SystemExit(INTERRUPTED) from error
    raise SystemExit(code if isinstance(code, int) else 0)
