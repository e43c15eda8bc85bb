"""Claims about the explorer: how quick it is, by its server and in a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator
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


BOUNDS = {"extended_xor": 100, "contextual": 250, "routing": 250}
"""Milliseconds until the prediction is redrawn, by task."""

SLIDERS = {"extended_xor": "Δ", "contextual": "context scale", "routing": "Criterion"}
"""The slider that is moved, by task."""

CHANGES = 7
"""Moves of which the last ones but two are counted."""

FRAME = 8
"""Milliseconds of script per animation frame."""

PLAYED = 30
"""Animation frames of a race that is played."""

SPY = """
window.frames_of_script = [];
const plain = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (act) => plain((now) => {
  const begun = performance.now();
  act(now);
  window.frames_of_script.push(performance.now() - begun);
});
window.redrawn = [];
document.addEventListener("DOMContentLoaded", () => document.body.addEventListener(
  "redrawn", (event) => event.detail.since !== null && window.redrawn.push(event.detail)));
"""
"""Times every animation frame, and every way from a change to its redrawn prediction."""


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _opened(browser: Any, address: str, task: str) -> Any:
    """A page with this task, whose prediction is drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(60_000)
    page.add_init_script(SPY)
    page.goto(address)
    page.locator(".lanes li").first.wait_for()
    page.evaluate("window.redrawn.length = 0")
    page.get_by_role("combobox", name="Task", exact=True).select_option(task)
    if task != "extended_xor":  # the page begins with it
        page.wait_for_function("() => window.redrawn.length >= 1")
    return page


def _moves(page: Any, acts: Iterator[Callable[[], None]]) -> dict[str, float]:
    """The medians of what the page says of changes, which follow one another."""
    page.wait_for_load_state("networkidle")
    for act in acts:
        before = page.evaluate("window.redrawn.length")
        act()
        page.wait_for_function("n => window.redrawn.length > n", arg=before)
        time.sleep(0.5)  # somebody looks at it, and slow questions are asked meanwhile
    drawn = page.evaluate(f"window.redrawn.slice(-{CHANGES - 2})")
    return {name: median(one[name] for one in drawn) for name in ("since", "script")}


def _keys(page: Any, label: str) -> Iterator[Callable[[], None]]:
    """A slider is moved by a key."""
    page.get_by_label(f"{label}, slider").first.focus()
    yield from [lambda: page.keyboard.press("ArrowRight")] * CHANGES


def _clicks(page: Any) -> Iterator[Callable[[], None]]:
    """Gates of one sample after another are switched, so that the pathways differ each time."""
    strip = page.locator(".gates [aria-label^='Gates of ']").last
    box = strip.bounding_box()
    for i in range(CHANGES):
        x = box["x"] + (i + 0.5) / (CHANGES + 1) * box["width"]
        yield lambda x=x: page.mouse.click(x, box["y"] + box["height"] / 2)


def _played(page: Any) -> float:
    page.evaluate("window.frames_of_script.length = 0")
    page.get_by_role("button", name="Play the race", exact=True).click()
    page.wait_for_function("n => window.frames_of_script.length >= n", arg=PLAYED)
    return median(page.evaluate("window.frames_of_script"))


@claim(
    "explorer/browser",
    SECTION,
    "a key moves a slider in a browser (chromium) until the prediction is redrawn: Δ of extended "
    "XoR, the context scale of items in contexts, the criterion of routing; median of five moves",
    "XoR ≤ 100 ms, the others ≤ 250 ms; script per animation frame ≤ 8 ms in the median",
    timing=True,
    slow=True,
)
def in_a_browser(full: bool) -> Measurement:
    scripts: list[float] = []

    def measured(page: Any, task: str) -> float:
        found = _moves(page, _keys(page, SLIDERS[task]))
        scripts.extend([found["script"], _played(page)])
        return found["since"]

    text, quick = _each(measured, BOUNDS)
    return Measurement(f"{text}; script {max(scripts):.1f} ms", quick and max(scripts) <= FRAME)


@claim(
    "explorer/new-shape",
    SECTION,
    "a click switches the gate of a sample, which makes pathways that were not there before, until "
    "the prediction is redrawn in a browser (chromium): extended XoR, items in contexts; median of "
    "five clicks",
    "XoR ≤ 100 ms, items in contexts ≤ 250 ms",
    timing=True,
    slow=True,
)
def new_shapes(full: bool) -> Measurement:
    tasks = {task: BOUNDS[task] for task in ("extended_xor", "contextual")}
    return Measurement(*_each(lambda page, task: _moves(page, _clicks(page))["since"], tasks))


def _each(measured: Callable[[Any, str], float], bounds: dict[str, int]) -> tuple[str, bool]:
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright, served() as (address, _, _said):
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        time.sleep(10)  # the other workers are warm as well
        for task in bounds:
            found[task] = measured(_opened(browser, address, task), task)
        browser.close()
    text = "; ".join(f"{task} {value:.0f} ms" for task, value in found.items())
    return text, all(found[task] <= bound for task, bound in bounds.items())
