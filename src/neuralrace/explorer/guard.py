"""Who may ask: the door in front of the whole application.

A request is let in if its address begins with the token, if its Host is this machine (a page of
another site that points its own name here, by DNS rebinding, has another one), and if it comes from
no other site (Origin, Sec-Fetch-Site). There are no cookies, so nothing is sent by accident.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias, final

from neuralrace.explorer.messages import dumps, error_of, message_error

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""The names of this machine for itself."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""What a page may load: only what this server has, and no script or style inside the page."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
"""What is said with every answer."""

REFUSED = 1008
"""The code with which a WebSocket is refused."""


def new_token() -> str:
    """A random token for an address."""
    return secrets.token_urlsafe(24)


def host_of(header: str) -> str:
    """The name in a Host header, without its port.

    ```python
    >>> from neuralrace.explorer.guard import host_of
    >>> host_of("127.0.0.1:8477"), host_of("[::1]:80"), host_of("Example.org")
    ('127.0.0.1', '::1', 'example.org')

    ```
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    name, sign, port = header.rpartition(":")
    return (name if sign and port.isdigit() else header).lower()


def is_address(name: str) -> bool:
    """Whether a name is an address of the internet itself, which no other site can take."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@final
class Guard:
    """Lets in whoever has the token and comes from this page, and takes the token off the path.

    `host` is what the server binds to. If that is not the loopback address, it may also be reached
    by any address and by the name of this machine.
    """

    def __init__(self, app: App, token: str, host: str = LOOPBACK[0]) -> None:
        self._app, self._token = app, token
        self._open = host not in LOOPBACK
        self._names = {*LOOPBACK, host.lower()} | (
            {socket.gethostname().lower()} if self._open else set()
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        why = self._refusal(scope)
        if why:
            await _refuse(scope, receive, send, why)
            return
        _, _, rest = scope["path"][1:].partition("/")
        if scope["type"] == "http" and scope["path"] == f"/{self._token}":
            await _moved(send, f"/{self._token}/")
            return
        inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}

        async def said(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [(k, v) for k, v in message.get("headers", []) if k.decode() not in HEADERS]
                own = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*given, *own]}
            await send(message)

        await self._app(inner, receive, said)

    def _refusal(self, scope: Scope) -> str:
        """Why a request is not let in; empty where it is."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or not self._is_here(host_of(hosts[0])):
            return "Host"
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins):
            return "Origin"
        if any(v not in ("same-origin", "none") for v in headers.get("sec-fetch-site", [])):
            return "Origin"
        given = scope["path"][1:].partition("/")[0]
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "token"
        return ""

    def _is_here(self, name: str) -> bool:
        return name in self._names or (self._open and is_address(name))


WORDS = {
    "Host": "a Host that is this machine: open the address that `neuralrace explore` prints",
    "Origin": "a request of the explorer's own page",
    "token": "the whole address that `neuralrace explore` prints, with its token",
}
"""What is wanted in place of what was refused."""


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": REFUSED, "reason": why})
        return
    error = message_error("this request is refused", f"another {why}", WORDS[why], "open it again")
    body = dumps({"error": error_of(error)}).encode()
    kind = (b"content-type", b"application/json")
    own = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
    await send({"type": "http.response.start", "status": 403, "headers": [kind, *own]})
    await send({"type": "http.response.body", "body": body})


async def _moved(send: Send, address: str) -> None:
    headers = [(b"location", address.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
