"""The server of the explorer: pages, files and one WebSocket per page.

This module imports FastAPI, which comes with the extra `explore`; `serving.serve` imports it where
it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from neuralrace import __version__
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer.guard import LOOPBACK, App, Guard
from neuralrace.explorer.lanes import Client, Pool
from neuralrace.explorer.limits import CLIENTS, KINDS, MESSAGE, POSTS, WAITING
from neuralrace.explorer.messages import (
    dumps,
    error_of,
    joined,
    kind_of,
    message_error,
    number_of,
    read,
)
from neuralrace.explorer.page import served
from neuralrace.explorer.trust import Trust

TOO_SLOW = 1013
"""The code with which a page is let go that takes no messages."""

FULL = 1013
"""The code with which a page is refused where there are too many."""


Kind = Annotated[str, Path(json_schema_extra={"enum": list(KINDS)})]
"""The kind of a request in an address; others are answered in our own words."""

BODY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                **{
                    name: {"type": "object"}
                    for name in ("task", "network", "gatings", "training", "contest", "predict")
                },
                "table": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "text": {"type": "string"}},
                },
                "view": {},
            },
        },
        "gating": {"type": "string"},
        "over": {"type": "array", "items": {"type": "object"}},
        "until": {"type": "number"},
        "name": {"type": "string"},
        "text": {"type": "string"},
        "toml": {"type": "string"},
        "table": {"type": "object"},
        "zip": {"type": "string"},
    },
}
"""What the body of a request may hold."""


def application(trust: Trust, token: str, host: str = LOOPBACK[0]) -> App:
    """The whole application behind its door."""
    return Guard(pages(Pool(trust)), token, host)


def pages(pool: Pool) -> FastAPI:
    """The application without its door: its addresses begin where the token ends."""
    clients: set[Client] = set()
    posts = asyncio.Semaphore(POSTS)

    @contextlib.asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        app.state.pool, app.state.clients = pool, clients
        await pool.start()
        yield
        await pool.close()

    app = FastAPI(
        title="neuralrace explorer",
        version=__version__,
        lifespan=alive,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        wanted = "an address of the explorer"
        said = message_error(str(error.detail), f"{request.method} {request.url.path:.80}", wanted,
                             "open the page")  # fmt: skip
        return JSONResponse({"error": error_of(said)}, error.status_code)

    @app.exception_handler(Exception)
    async def other_error(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": error_of(error)}, 500)

    @app.get("/")
    async def index() -> Response:
        return _file("index.html")

    @app.get("/web/{name:path}")
    async def web(name: str) -> Response:
        return _file(name)

    @app.post(
        "/api/{kind}",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": BODY}},
            },
        },
        responses={
            400: {"description": "an error"},
            413: {"description": "a message too large"},
            503: {"description": "too many requests at a time"},
        },
    )
    async def ask(kind: Kind, request: Request) -> Response:
        try:
            message, key = await read(await _body(request) or b"{}", kind)
            kind_of(message)
        except NeuralRaceError as error:
            large = getattr(error, "large", False)
            return JSONResponse({"error": error_of(error)}, 413 if large else 400)
        if posts.locked():
            error = message_error("too many requests at a time", f"more than {POSTS}",
                                  "fewer", "wait, and ask again")  # fmt: skip
            return JSONResponse({"error": error_of(error)}, 503)
        async with posts:
            return await _whole(pool, message, key, request)

    @app.websocket("/api/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if len(clients) >= CLIENTS:
            await socket.close(FULL, f"more than {CLIENTS} pages are open")
            return
        await _converse(socket, pool, clients)

    return app


def _file(name: str) -> Response:
    found = served(name)
    if found is None:
        raise HTTPException(404, "there is no such file")
    content, kind = found
    return Response(content, media_type=kind)


async def _body(request: Request) -> bytes:
    """The body of a request, as far as it may be long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MESSAGE:
            error = message_error(
                "this message is too large",
                f"more than {MESSAGE} bytes",
                f"at most {MESSAGE} bytes",
                "send less; the command line has no such limit",
            )
            error.large = True  # type: ignore[attr-defined]
            raise error
        parts.append(part)
    return b"".join(parts)


async def _whole(pool: Pool, message: Mapping[str, Any], key: str, request: Request) -> Response:
    """All messages of one answer together."""
    job = pool.ask(message, lambda text: None, key)
    try:
        while not job.ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.ended.wait(), 1.0)
            if await request.is_disconnected():
                break
    finally:
        job.cancel()
    status = 200 if job.said[-1].is_fine else 400
    return Response(joined(job.said), status, media_type="application/json")


async def _converse(socket: WebSocket, pool: Pool, clients: set[Client]) -> None:
    """Answer the messages of one page until it goes."""
    waiting: asyncio.Queue[str | None] = asyncio.Queue(WAITING)

    def deliver(text: str) -> None:
        try:
            waiting.put_nowait(text)
        except asyncio.QueueFull:
            client.close()
            sender.cancel()

    async def speak() -> None:
        while (text := await waiting.get()) is not None:
            await socket.send_text(text)

    client = Client(pool, deliver)
    clients.add(client)
    sender = asyncio.create_task(speak())
    listener = asyncio.create_task(_listen(socket, client, deliver))
    deliver(dumps({"kind": "hello", "version": __version__, "ready": True}))
    try:
        await asyncio.wait({sender, listener}, return_when="FIRST_COMPLETED")
    finally:
        clients.discard(client)
        client.close()
        for task in (sender, listener):
            task.cancel()
        await asyncio.wait({sender, listener})
        for task in (sender, listener):
            if not task.cancelled():
                task.exception()  # the page has gone: nobody is left to be told
        with contextlib.suppress(Exception):
            await socket.close(TOO_SLOW)


async def _listen(socket: WebSocket, client: Client, deliver: Any) -> None:
    while True:
        try:
            received = await socket.receive()
        except (WebSocketDisconnect, RuntimeError):
            return
        if received["type"] == "websocket.disconnect":
            return
        text = received.get("text")
        if text is None:
            text = received.get("bytes") or b""
        await hear(text, client, deliver)


async def hear(text: str | bytes, client: Client, deliver: Any) -> None:
    """Take one message of a page: a request, or that one is to be cancelled."""
    message: Any = None
    try:
        if len(text) > MESSAGE:
            raise message_error(
                "this message is too large", f"{len(text)} bytes", f"at most {MESSAGE}", "send less"
            )
        message, key = await read(text)
        if isinstance(message, Mapping) and message.get("kind") == "cancel":
            client.cancel(str(message.get("of")))
            return
        kind_of(message)
        client.ask(message, key)
    except Exception as error:
        kind = message.get("kind") if isinstance(message, Mapping) else None
        kind = kind[:40] if isinstance(kind, str) else None
        deliver(dumps({"id": number_of(message), "kind": kind, "error": error_of(error)}))
