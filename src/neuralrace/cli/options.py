"""What several commands share: options, how values are read, how results are printed."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from neuralrace.errors import NeuralRaceError, require
from neuralrace.text import dotted, plain

FAILED = 3
"""The exit code where all went on, and some cells failed or are missing."""

STUDY = click.Path(path_type=Path)

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


CHANGES = click.option(
    "--set",
    "changes",
    metavar="KEY=VALUE",
    multiple=True,
    shell_complete=keys_of_study,
    help="Change a dotted key, such as training.steps=500.",
)
SEEDS = click.option("--seeds", metavar="N", help="How many networks, or repetitions of a sweep.")
QUICK = click.option("--quick", is_flag=True, help="The small version: section [quick].")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def with_look(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for the look of pictures; the command runs with this look."""

    @click.option(
        "--format",
        "formats",
        metavar="FORMATS",
        help="Pictures also as files: one or more of svg,pdf,png.",
    )
    @click.option("--figsize", metavar="W,H", help="Width and height of pictures in inches.")
    @click.option(
        "--rc",
        metavar="KEY=VALUE",
        multiple=True,
        help="A parameter of matplotlib, such as font.family=serif.",
    )
    @functools.wraps(command)
    def wrapped(
        *args: Any, formats: str | None, figsize: str | None, rc: tuple[str, ...], **others: Any
    ) -> Any:
        with _look(formats, figsize, rc):
            return command(*args, **others)

    return wrapped


@contextmanager
def _look(formats: str | None, figsize: str | None, rc: tuple[str, ...]) -> Iterator[None]:
    if formats is None and figsize is None and not rc:
        yield
        return
    from neuralrace.plot import look

    kinds = () if formats is None else tuple(kind.strip() for kind in formats.split(","))
    size = None if figsize is None else _size(figsize)
    with look(rc=pairs(rc, "--rc font.family=serif"), figsize=size, formats=kinds):
        if rc:
            _try()
        yield


def _size(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(side) for side in text.lower().replace("x", ",").split(","))
    except ValueError as error:
        raise NeuralRaceError(
            "this is no size of a picture",
            got=repr(text),
            wanted="width and height in inches",
            fix="such as --figsize 3.4,2.4",
        ) from error


def _try() -> None:
    """Draw something, so that a look that cannot be drawn is found before anything is computed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from neuralrace.plot import picture_bytes, style

    try:
        with style():
            figure, ax = plt.subplots()
            ax.set_xlabel("time $t$")
            picture_bytes(figure, "svg")
    except Exception as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise NeuralRaceError(
            "nothing can be drawn with these parameters of matplotlib",
            got=told[0][:300],
            wanted="parameters with which this machine can draw",
            fix="leave out --rc, or one of them",
        ) from error
    finally:
        plt.close("all")


def outer_parts(text: str) -> tuple[str, ...]:
    """What commas part, those inside brackets and quotes aside.

    ```python
    >>> from neuralrace.cli.options import outer_parts
    >>> outer_parts("cores=8,job_extra_directives=['-A x,y', '-q long'],memory=8GB")
    ('cores=8', "job_extra_directives=['-A x,y', '-q long']", 'memory=8GB')

    ```
    """
    pieces = re.findall(r"""(?:"[^"]*"|'[^']*'|\[[^\]]*\]|[^,])+""", text)
    return tuple(piece.strip() for piece in pieces)


def pairs(changes: tuple[str, ...], example: str = "--set M=5") -> dict[str, str]:
    """`("M=5", …)` as `{"M": "5", …}`."""
    found = {}
    for change in changes:
        key, sign, value = change.partition("=")
        require(
            sign and key.strip(),
            "a setting is changed by its name and a value",
            got=repr(change),
            wanted="KEY=VALUE",
            fix=f"such as {example}",
        )
        found[key.strip()] = value
    return found


def read_values(given: Mapping[str, str]) -> dict[str, object]:
    """Values of a study, as they are typed."""
    from neuralrace.study import value_of

    return {key: value_of(value) for key, value in given.items()}


def print_json(value: object) -> None:
    """Print a result on one line of JSON."""
    click.echo(json.dumps(plain(value), ensure_ascii=False))


def use_float64() -> None:
    """Compute in float64, and draw without a display."""
    import jax
    import matplotlib

    jax.config.update("jax_enable_x64", True)
    matplotlib.use("Agg")


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
