"""The command line: one door to studies, sweeps, reports and the explorer."""

from __future__ import annotations

import click

from neuralrace import __version__
from neuralrace.cli.citing import cite
from neuralrace.cli.options import (
    VARIABLE,
    completion,
    pairs,
    print_json,
    use_float64,
    with_look,
)
from neuralrace.cli.studies import check, explore, new, report, run, status
from neuralrace.errors import NeuralRaceError

__all__ = ["commands", "main", "pairs", "print_json", "use_float64", "with_look"]

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

MOVED = {
    "list": "python -m papers list",
    "reproduce": "python -m papers reproduce",
    "claims": "python -m evidence --only",
}
"""Commands on the papers, which were here before 0.2, and what they are now."""


class _InOrder(click.Group):
    """Commands are listed in the order in which they are added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MOVED and not ctx.resilient_parsing:
            raise NeuralRaceError(
                f"the command {cmd_name!r} is not part of the package",
                got=f"neuralrace {cmd_name}",
                wanted=", ".join(self.commands),
                fix=f"in a checkout of the repository: {MOVED[cmd_name]}",
            )
        return super().get_command(ctx, cmd_name)


@click.group(cls=_InOrder)
@click.version_option(__version__)
def commands() -> None:
    """Gated deep linear networks, the neural race reduction, and ReLU networks as gated ones."""


for _command in (new, check, run, report, status, explore, cite, completion):
    commands.add_command(_command)


def main(group: click.Group = commands, name: str = "neuralrace") -> None:
    """Run a command of a group; the package's errors become messages, not tracebacks.

    Exit codes: 0 when all is well, 1 for an error, 2 for a command that is not understood, 3 when
    cells of a sweep failed or are missing, 130 after Ctrl-C.
    """
    try:
        code = group.main(prog_name=name, complete_var=VARIABLE, standalone_mode=False)
    except NeuralRaceError as error:
        raise SystemExit(f"error: {error}") from error
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except click.Abort as error:
        click.echo("stopped", err=True)
        raise SystemExit(INTERRUPTED) from error
    raise SystemExit(code if isinstance(code, int) else 0)
