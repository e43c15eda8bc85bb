"""Processes that compute, so that pages stay live: one per lane, restarted when it must be.

A worker imports JAX once and stays warm. It answers one request at a time and looks at a flag
before every message: an answer that is no longer wanted ends there. One that does not look for too
long is ended with its process.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, final

from neuralrace.explorer.limits import WORKER
from neuralrace.explorer.messages import Message
from neuralrace.explorer.trust import Trust

READY = -1
"""The number under which a worker says that it is warm."""

NOTHING = -2
"""The number of a request that there is none of."""


def work(pipe: Any, stopped: Any, trust: Trust, urgent: bool) -> None:
    """What a worker process does until its pipe is closed."""
    import signal
    import warnings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    warnings.simplefilter("ignore")
    if not urgent and hasattr(os, "nice"):
        os.nice(10)
    import jax
    import matplotlib

    jax.config.update("jax_enable_x64", True)
    matplotlib.use("Agg")
    from neuralrace.explorer.handler import CancelledError, answered, warm

    try:
        warm(trust)
        pipe.send((READY, Message({})))
        while True:
            number, message = pipe.recv()
            ended = False

            def send(answer: dict[str, Any], number: int = number) -> None:
                nonlocal ended
                said = Message.of(answer)
                if stopped.value == number and not said.last:
                    raise CancelledError
                ended = ended or said.last
                pipe.send((number, said))

            answered(message, trust, send)
            assert ended, "every answer has an end"
            if memory() > WORKER:
                return  # a fresh one is started
    except (EOFError, BrokenPipeError, OSError):
        return


def memory() -> float:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0


@final
class Worker:
    """A worker process, seen from the server.

    `ready` is set once it is warm. One that is not `urgent` gives way to others. Its messages are
    handed to `heard(number, message)` in the event loop, and `lost()` is called there when it
    has ended.
    """

    def __init__(
        self,
        trust: Trust,
        heard: Callable[[int, Message], None],
        lost: Callable[[Worker], None],
        urgent: bool,
    ) -> None:
        context = mp.get_context("spawn")
        self.ready = asyncio.Event()
        self._heard, self._lost = heard, lost
        self._loop = asyncio.get_running_loop()
        self._pipe, other = context.Pipe()
        self._stopped = context.Value("q", NOTHING)
        self._process = context.Process(
            target=work,
            args=(other, self._stopped, trust, urgent),
            daemon=True,
            name="neuralrace-explorer",
        )
        self._process.start()
        other.close()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def ask(self, number: int, message: Mapping[str, Any]) -> None:
        """Send a request; its messages are heard under this number."""
        self._stopped.value = NOTHING
        self._pipe.send((number, message))

    def stop(self, number: int) -> None:
        """The answer of this number is no longer wanted."""
        self._stopped.value = number

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def _listen(self) -> None:
        """In a thread of its own: hand what the worker says to the event loop."""
        while True:
            try:
                number, message = self._pipe.recv()
            except (EOFError, OSError):
                break
            if not self._call(self._said, number, message):
                break
        self._pipe.close()
        self._process.join()
        self._call(self._lost, self)

    def _call(self, function: Callable[..., None], *arguments: Any) -> bool:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the server has ended
            return False
        return True

    def _said(self, number: int, message: Message) -> None:
        if number == READY:
            self.ready.set()
        else:
            self._heard(number, message)
