"""Starting the server of the explorer."""

from __future__ import annotations

import re
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuralrace.checks import switch
from neuralrace.errors import NeuralRaceError, install_extra, require
from neuralrace.explorer.guard import LOOPBACK, new_token
from neuralrace.explorer.limits import CLIENTS, MESSAGE
from neuralrace.explorer.trust import Trust, trust_of

PORT = 8477
"""The port of the explorer, if it is free; otherwise any that is."""

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")
"""What a token of one's own must be."""


def serve(
    study: str | Path | None = None,
    *,
    host: str = LOOPBACK[0],
    port: int | None = None,
    token: str | None = None,
    trust: bool = False,
    browser: bool = True,
    tell: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the explorer until it is interrupted.

    **Arguments:** `study`, the file of a study to show first, or a table (.csv), of which a study
    is drafted as by `neuralrace new`. `host`, the address to bind to: the loopback address by
    default, which no other machine can reach. `port`, 8477 by default if that is free. `token`, a
    secret in the address, by default a random one; give your own to have the same address after a
    restart. `trust`, whether the study may call its own Python functions. `browser`, whether to
    open the page. `tell` is called with the address once it can be opened.

    ```python
    >>> from neuralrace.explorer import serve
    >>> serve("missing.toml")
    Traceback (most recent call last):
    ...
    neuralrace.study.places.StudyError: missing.toml: this study cannot be read.
      got:    No such file or directory
      wanted: a TOML file
      fix:    check the name; `neuralrace new` writes a study to begin with

    ```
    """
    with tempfile.TemporaryDirectory(prefix="neuralrace-") as tables:
        trusted = trust_of(study, Path(tables), switch("trust", trust))
        uvicorn, application = _needed()
        secret = _checked_token(token)
        bound = _bound(host, port)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{bound.getsockname()[1]}/{secret}/"
        config = uvicorn.Config(
            application(trusted, secret, host),
            ws_max_size=MESSAGE,
            ws_max_queue=8,
            ws_per_message_deflate=False,  # to compress takes longer than to send within a machine
            limit_concurrency=4 * CLIENTS,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)

        def opened() -> None:
            while not server.started:
                if server.should_exit or stop.wait(0.05):
                    return
            tell(address)
            if browser:
                webbrowser.open(address)

        stop = threading.Event()
        threading.Thread(target=opened, daemon=True).start()
        try:
            server.run(sockets=[bound])
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            bound.close()


def schema() -> dict[str, Any]:
    """The OpenAPI schema of the server's addresses, which begin after the token.

    The server does not hand it out; it is for tests and for programs that ask without a page.

    ```python
    >>> from neuralrace.explorer import schema
    >>> sorted(schema()["paths"])
    ['/', '/api/{kind}', '/web/{name}']

    ```
    """
    _needed()
    from neuralrace.explorer.lanes import Pool
    from neuralrace.explorer.server import pages

    return pages(Pool(Trust(Path()))).openapi()


def ask(kind: str, state: Any, **more: Any) -> dict[str, Any]:
    """What the explorer answers to one request of a page, computed in this process.

    **Arguments:** `kind` is one of `"data"`, `"predict"`, `"kept"` and the others of
    docs/explorer.md, `state` is the state of a page, and `more` is what else the request has.

    **Returns** the end of the answer as plain JSON: a `"result"` or an `"error"`.

    ```python
    >>> from neuralrace.explorer import ask
    >>> ask("data", {"task": {"builtin": "xor"}})["result"]["samples"]
    4
    >>> ask("data", {"task": {"builtin": "xr"}})["error"]["key"]
    'task.builtin'

    ```
    """
    import jax

    from neuralrace.explorer.handler import answered
    from neuralrace.explorer.messages import dumps, loads

    said: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="neuralrace-") as tables, jax.enable_x64(True):
        answered({"kind": kind, "state": state, **more}, Trust(Path(tables)), said.append)
    return loads(dumps(said[-1]))


def _needed() -> tuple[Any, Any]:
    """The packages of the extra `explore`."""
    try:
        import uvicorn
        import websockets  # noqa: F401

        from neuralrace.explorer.server import application
    except ImportError as error:
        raise NeuralRaceError(
            "the explorer needs other packages",
            got=str(error),
            wanted="fastapi, uvicorn and websockets",
            fix=install_extra("explore"),
        ) from error
    return uvicorn, application


def _checked_token(token: str | None) -> str:
    if token is None:
        return new_token()
    require(
        TOKEN.fullmatch(token),
        "this cannot be a token",
        got=f"{len(token)} characters",
        wanted="16 letters, digits, '-' and '_' or more",
        fix="leave it out for a random one",
    )
    return token


def _bound(host: str, port: int | None) -> socket.socket:
    """A socket that listens at this address; without a port, at 8477 or any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in (PORT, 0) if port is None else (port,):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, choice))
        except (OSError, OverflowError) as error:
            made.close()
            if port is None and choice:
                continue
            raise NeuralRaceError(
                f"the explorer cannot listen at {host}, port {choice}",
                got=str(error),
                wanted="an address of this machine, and a port that is free",
                fix="leave out --host and --port",
            ) from error
        made.listen(128)
        made.set_inheritable(False)
        return made
    raise AssertionError("the loop returns or raises")
