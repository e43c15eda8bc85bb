"""What a shell offers when the tab key is pressed; nothing heavy is imported for it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import click

from neuralrace.text import dotted

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_NEURALRACE_COMPLETE"
"""The variable of the environment in which a shell asks for words."""


def _beginning(words: Iterable[str], begun: str) -> list[str]:
    return [word for word in words if word.startswith(begun)]


def _words(context: click.Context, name: str) -> list[str]:
    """The words of an argument; click has not given them a name when an option is half typed."""
    given = context.params.get(name) or ()
    return [*map(str, given if isinstance(given, tuple) else (given,)), *context.args]


def keys_of_study(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The dotted keys that stand in the study on the line."""
    files = _words(context, "file")
    try:
        content = tomllib.loads(Path(files[0]).read_text(encoding="utf-8")) if files else {}
    except (OSError, ValueError):
        return []
    return _beginning((f"{key}=" for key, _ in dotted(content)), begun)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print the script that completes commands, options and names in a SHELL.

    \b
    In bash: echo 'eval "$(neuralrace completion bash)"' >> ~/.bashrc
    In zsh:  echo 'eval "$(neuralrace completion zsh)"' >> ~/.zshrc
    In fish: neuralrace completion fish > ~/.config/fish/completions/neuralrace.fish
    """
    from click.shell_completion import get_completion_class

    context = click.get_current_context()
    kind = get_completion_class(shell)
    assert kind is not None  # all shells above come with click
    click.echo(kind(context.find_root().command, {}, "neuralrace", VARIABLE).source())
