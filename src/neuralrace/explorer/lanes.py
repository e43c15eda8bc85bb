"""Who computes what, in which order: lanes, so that quick answers never wait for long ones.

Each client has at most one request of a kind: a newer one cancels the older. Equal requests are
answered from memory. The event loop hands texts on and reads none that is long.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, final

from neuralrace.explorer.limits import GRACE, KINDS, LANES
from neuralrace.explorer.messages import (
    Memory,
    Message,
    digest,
    ended_badly,
    error_of,
    number_of,
    too_slow,
)
from neuralrace.explorer.trust import Trust
from neuralrace.explorer.workers import Worker


@final
class Job:
    """One request on its way: where its messages go, and whether they are still wanted.

    Its answer depends on its message and on `files`, the digest of those that the study reads.
    """

    def __init__(
        self,
        message: Mapping[str, Any],
        deliver: Callable[[str], None],
        key: str | None = None,
        files: str = "",
    ) -> None:
        self.message, self.kind = message, str(message["kind"])
        self.files = files
        self.key = (digest(message) if key is None else key) + files
        self.cancelled = asyncio.Event()
        self.ended = asyncio.Event()
        self._deliver: Callable[[str], None] | None = deliver
        self.said: list[Message] = []
        """All messages of the answer."""

    def say(self, message: Message) -> None:
        """Hand a message on; nothing is handed on after the end."""
        if self._deliver is not None:
            self.said.append(message)
            self._deliver(message.text)
        if message.last:
            self._deliver = None
            self.ended.set()

    def end(self, **what: Any) -> None:
        """End the request from here, with an error or because it was cancelled."""
        self.say(Message({"id": number_of(self.message), "kind": self.kind, **what}))

    def cancel(self) -> None:
        """The answer is no longer wanted; the client is told at once."""
        if self._deliver is not None:
            self.end(cancelled=True)
        self.cancelled.set()


@final
class Lane:
    """A worker and the requests that wait for it; `hire` starts a worker, `urgent` or not."""

    def __init__(
        self,
        trust: Trust,
        memory: Memory,
        hire: Callable[..., Any] = Worker,
        urgent: bool = True,
    ) -> None:
        self._trust, self._memory, self._hire, self._urgent = trust, memory, hire, urgent
        self._waiting: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._numbers = itertools.count(1)
        self._current: tuple[int, Job] | None = None
        self.worker: Any = None
        self._owner: Any = None
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the worker, and return once it is warm."""
        self._begin()
        await self._warm()

    def put(self, job: Job) -> None:
        """Let a request wait for its turn; the first one starts the worker."""
        self._waiting.append(job)
        self._wake.set()
        self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the worker."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self.worker is not None:
            self.worker.kill()

    async def _warm(self) -> Any:
        """The worker once it is warm; None where several in a row ended before they were."""
        for _ in range(3):
            if self.worker is None:
                self.worker = self._hire(self._trust, self._heard, self._lost, self._urgent)
            worker = self.worker
            await worker.ready.wait()
            if worker is self.worker:
                return worker
        return None

    def _heard(self, number: int, message: Message) -> None:
        if self._current is not None and self._current[0] == number:
            self._current[1].say(message)
            if message.last:
                self._done.set()

    def _lost(self, worker: Any) -> None:
        if self.worker is worker:
            self.worker = None
        worker.ready.set()  # who waits for it must look again
        if self._current is not None and self._owner is worker:
            self._current[1].end(error=ended_badly())
            self._done.set()

    async def _run(self) -> None:
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            job = self._waiting.popleft()
            if job.cancelled.is_set():
                continue
            kept = self._memory.get(job.key)
            if kept is not None:
                replay(job, kept)
                continue
            await self._answer(job)
            fine = not job.cancelled.is_set() and bool(job.said) and job.said[-1].is_fine
            if fine and KINDS[job.kind].kept and job.files == self._trust.digest():
                self._memory.put(job.key, job.said)

    async def _answer(self, job: Job) -> None:
        """Let the worker answer a request, within its time."""
        worker = await self._warm()
        if job.cancelled.is_set():
            return
        if worker is None:
            job.end(error=ended_badly())
            return
        number = next(self._numbers)
        self._owner, self._done = worker, asyncio.Event()
        self._current = (number, job)
        try:  # in a thread, since a worker may be slow to take a long message
            async with asyncio.timeout(KINDS[job.kind].seconds):
                await asyncio.to_thread(worker.ask, number, job.message)
        except (OSError, ValueError):  # its pipe is closed or full: `_lost` is or will be called
            job.end(error=ended_badly())
            self._current = None
            if self.worker is worker:
                self.worker = None
            worker.kill()
            return
        except Exception as error:  # it could not be put into a form that can be sent
            job.end(error=error_of(error))
            self._current = None
            return
        done = asyncio.create_task(self._done.wait())
        dropped = asyncio.create_task(job.cancelled.wait())
        try:
            left = KINDS[job.kind].seconds
            await asyncio.wait({done, dropped}, timeout=left, return_when="FIRST_COMPLETED")
            if not done.done() and dropped.done():
                worker.stop(number)
                await asyncio.wait({done}, timeout=GRACE.get(KINDS[job.kind].lane, 4.0))
            if not done.done():
                job.end(error=too_slow(job.kind))
                self.worker = None
                worker.kill()
        finally:
            self._current = None
            for task in (done, dropped):
                task.cancel()


def replay(job: Job, kept: list[Message]) -> None:
    """Give a kept answer to a request, with its own id."""
    for message in kept:
        job.say(message.again(number_of(job.message)))


@final
class Pool:
    """All lanes. `ask` hands a request to the lane of its kind."""

    def __init__(self, trust: Trust, hire: Callable[..., Any] = Worker) -> None:
        self.memory, self._trust = Memory(), trust
        self._lanes = {name: Lane(trust, self.memory, hire, name == "quick") for name in LANES}
        self._others: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start all workers, and return once quick requests can be answered."""
        await self._lanes["quick"].start()
        self._others = asyncio.create_task(self._start_others())

    async def _start_others(self) -> None:
        """One after another, so that a page that has just been opened is not held up."""
        for lane in self._lanes.values():
            await lane.start()

    async def close(self) -> None:
        """End all workers."""
        if self._others is not None:
            self._others.cancel()
        for lane in self._lanes.values():
            await lane.close()

    def ask(
        self,
        message: Mapping[str, Any],
        deliver: Callable[[str], None],
        key: str | None = None,
    ) -> Job:
        """Answer a request of a known kind; its messages are delivered one by one.

        `key` is the digest of the message, if it is known.
        """
        job = Job(message, deliver, key, self._trust.digest())
        kept = self.memory.get(job.key)
        if kept is not None:
            replay(job, kept)
        else:
            self._lanes[KINDS[job.kind].lane].put(job)
        return job


@final
class Client:
    """Someone who asks: at most one request of each kind, the newest."""

    def __init__(self, pool: Pool, deliver: Callable[[str], None]) -> None:
        self._pool, self._deliver = pool, deliver
        self._latest: dict[str, Job] = {}

    def ask(self, message: Mapping[str, Any], key: str | None = None) -> Job:
        """Answer a request; an older one of the same kind is cancelled."""
        self.cancel(str(message["kind"]))
        job = self._pool.ask(message, lambda text: self._deliver(text), key)
        self._latest[job.kind] = job
        return job

    def cancel(self, kind: str) -> None:
        """Cancel the request of this kind, if there is one."""
        job = self._latest.pop(kind, None)
        if job is not None and not job.ended.is_set():
            job.cancel()

    def close(self) -> None:
        """Cancel everything."""
        self._deliver = lambda text: None
        for kind in list(self._latest):
            self.cancel(kind)
