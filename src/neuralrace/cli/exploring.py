"""The command that opens the explorer."""

from __future__ import annotations

import click

from neuralrace.cli.options import STUDY


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
