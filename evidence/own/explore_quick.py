"""Claims about the explorer: how quick it is. Each row names the slider that is moved."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from evidence.own.explore import served
from evidence.promise import Measurement, claim

SECTION = "The explorer"

MOVES = 30
"""Moves of a slider of which the median is taken, after two that are not counted."""

State = dict[str, Any]


def _set(state: State, section: str, name: str, value: float) -> State:
    """A state with another value of a parameter of its task, or of a key of a section."""
    if section != "task":
        return {**state, section: {**state[section], name: value}}
    task = state["task"]
    return {**state, "task": {**task, "parameters": {**task["parameters"], name: value}}}


def _scaled(section: str, name: str) -> Callable[[State, int], State]:
    """A slider that moves by a hundredth of its first value at a time."""

    def moved(state: State, i: int) -> State:
        where = state["task"]["parameters"] if section == "task" else state[section]
        return _set(state, section, name, where[name] * (1 + 0.01 * i))

    return moved


def _stepped(name: str, values: tuple[int, ...], fresh: str) -> Callable[[State, int], State]:
    """A slider over whole numbers; `fresh` is another each time, so that no task comes twice."""

    def moved(state: State, i: int) -> State:
        other = _scaled("task", fresh)(state, i)
        return _set(other, "task", name, values[i % len(values)])

    return moved


def _routed(state: State) -> State:
    """Routing with M = 7, K = 4 and one shared pathway."""
    state = _set(_set(state, "task", "M", 7), "task", "K", 4)
    return {**state, "gatings": {"shared": state["gatings"]["shared"]}}


def _rows(address: str, count: int, rows: dict[str, tuple[Any, ...]], bound: float) -> Measurement:
    found = asyncio.run(_timed(address, count, rows))
    text = "; ".join(f"{name} {value:.0f} ms" for name, value in found.items())
    return Measurement(text, max(found.values()) <= bound)


async def _timed(address: str, count: int, rows: dict[str, tuple[Any, ...]]) -> dict[str, float]:
    import websockets

    found = {}
    live = address.replace("http://", "ws://") + "api/live"
    async with websockets.connect(live, max_size=None) as socket:
        await socket.recv()
        await asyncio.sleep(10)  # the other workers are warm as well
        tasks = {t["name"]: t["state"] for t in (await _asked(socket, {"kind": "tasks"}))["tasks"]}
        for name, (task, prepared, moved) in rows.items():
            first, times = prepared(tasks[task]), []
            for i in range(count + 2):
                message = {"kind": "predict", "state": moved(first, i)}
                began = time.perf_counter()
                await _asked(socket, message)
                times.append(1e3 * (time.perf_counter() - began))
            found[name] = median(times[2:])
    return found


async def _asked(socket: Any, message: dict[str, Any]) -> dict[str, Any]:
    await socket.send(json.dumps({"id": 1, **message}))
    while True:
        answer = json.loads(await socket.recv())
        if "part" not in answer:
            assert "result" in answer, answer
            return answer["result"]


def _measured(full: bool, rows: dict[str, tuple[Any, ...]], bound: float) -> Measurement:
    with served() as (address, _, _said):
        return _rows(address, MOVES if full else 3, rows, bound)


WARM = f"median of {MOVES} warm requests through a WebSocket"


@claim(
    "explorer/xor",
    SECTION,
    f"extended XoR, a slider of the task (Δ) and one of the contest (criterion) moves, and the "
    f"prediction is back: {WARM}",
    "each ≤ 100 ms",
    timing=True,
    slow=True,
)
def xor(full: bool) -> Measurement:
    rows = {
        "Δ": ("extended_xor", dict, _scaled("task", "delta")),
        "criterion": ("extended_xor", dict, _scaled("contest", "criterion")),
    }
    return _measured(full, rows, 100)


@claim(
    "explorer/contexts",
    SECTION,
    f"items in C = 3 contexts, a slider of the task (context scale; 2, 4 or 8 items) and one of "
    f"the contest (criterion) moves, and the prediction is back: {WARM}",
    "each ≤ 300 ms",
    timing=True,
    slow=True,
)
def contexts(full: bool) -> Measurement:
    rows = {
        "context scale": ("contextual", dict, _scaled("task", "context_scale")),
        "items": ("contextual", dict, _stepped("items", (2, 4, 8), "context_scale")),
        "criterion": ("contextual", dict, _scaled("contest", "criterion")),
    }
    return _measured(full, rows, 300)


@claim(
    "explorer/routing",
    SECTION,
    f"routing with M = 7 and one shared pathway, a slider of the contest (start, criterion) moves, "
    f"and the prediction is back: {WARM}",
    "each ≤ 300 ms",
    timing=True,
    slow=True,
)
def routing(full: bool) -> Measurement:
    rows = {
        "start": ("routing", _routed, _scaled("contest", "start")),
        "criterion": ("routing", _routed, _scaled("contest", "criterion")),
    }
    return _measured(full, rows, 300)


@claim(
    "explorer/routing-task",
    SECTION,
    "routing with M = 7 and one shared pathway, a slider of the task (K = 2 … 7) moves, and the "
    "prediction of a task that was not asked before is back: median of five",
    "≤ 300 ms",
    timing=True,
    slow=True,
)
def routing_task(full: bool) -> Measurement:
    """After the first two, which are not counted, every K is new."""

    def moved(state: State, i: int) -> State:
        return _set(state, "task", "K", (1, 4, 2, 3, 5, 6, 7)[i])

    with served() as (address, _, _said):
        return _rows(address, 5 if full else 1, {"K": ("routing", _routed, moved)}, 300)


@claim(
    "explorer/usable",
    SECTION,
    "the server says that it is up, and a fresh browser (chromium) opens the page: until its first "
    "prediction is drawn, median of five servers",
    "≤ 2 s",
    timing=True,
    slow=True,
)
def usable(full: bool) -> Measurement:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    times = []
    with sync_playwright() as playwright:
        for _ in range(5 if full else 1):
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_page()
            with served() as (address, _, _said):
                began = time.perf_counter()
                page.goto(address)
                page.locator(".lanes li").first.wait_for()
                times.append(time.perf_counter() - began)
            browser.close()
    return Measurement(f"{median(times):.2f} s", median(times) <= 2)
