"""Claims about the explorer: what it survives, and how many it serves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evidence.own.explore_states import nearly
from evidence.promise import Measurement, claim

SECTION = "The explorer"

ROOT = Path(__file__).parents[2]

WORDS = (
    *("task", "builtin", "xor", "extended_xor", "contextual", "parity", "parameters", "delta"),
    *(
        "gatings",
        "masks",
        "gates",
        "each",
        "hidden",
        "network",
        "widths",
        "graph",
        "sizes",
        "edges",
    ),
    *("training", "steps", "seeds", "contest", "criterion", "relative", "start", "table", "view"),
    *("sample in [1]", "always", "not x", "", "<script>alert(1)</script>", "\ud800", "../../etc"),
    *("file", "python", "os:system", "checkpoint", "name", "text", "a" * 300, "a.b.c", "💥"),
)
"""Words that mean something in a state, and words that should not."""

WAIT = 120.0
"""Seconds after which a request counts as not answered."""

KINDS = ("data", "predict", "equations", "python", "study", "csv", "tasks", "phases", "aligned")
"""Kinds of requests that take milliseconds to seconds."""

QUICK = ("data", "predict", "python", "study")
"""Those of them that take milliseconds."""


# ---- a server of its own ------------------------------------------------------------------------


@contextlib.contextmanager
def served() -> Iterator[tuple[str, subprocess.Popen[str], Any]]:
    """A server with its workers: its address, its process, and the file of what it says."""
    command = [sys.executable, "-m", "neuralrace", "explore", "--no-browser", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment
        )
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            yield address, process, said
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def memory_of(process: int) -> float:
    """Bytes that a process and those it started hold."""
    total, pids = 0.0, [process]
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
            total += float(pages) * os.sysconf("SC_PAGE_SIZE")
            for tasks in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(c) for c in (tasks / "children").read_text().split()]
    return total


# ---- anything at all ----------------------------------------------------------------------------


def anything(random: np.random.Generator, depth: int = 0) -> Any:
    """A random value of JSON."""
    match int(random.integers(8 if depth < 5 else 5)):
        case 0 | 1:
            return WORDS[random.integers(len(WORDS))]
        case 2:
            return (None, True, False)[random.integers(3)]
        case 3:
            return int(random.choice([0, 1, 2, 3, -1, 10**6, 10**18]))
        case 4:
            return float(random.choice([0.0, 0.3, -2.5, 1e300, 1e-300, 0.8165]))
        case 5:
            return [anything(random, depth + 1) for _ in range(random.integers(5))]
    names = [WORDS[random.integers(len(WORDS))] for _ in range(random.integers(6))]
    return {name: anything(random, depth + 1) for name in names}


def changed(random: np.random.Generator, value: Any) -> Any:
    """A value with something else at one of its places."""
    if not isinstance(value, dict) or not value or random.random() < 0.1:
        return anything(random, 3)
    key = list(value)[random.integers(len(value))]
    return {**value, key: changed(random, value[key])}


def request(random: np.random.Generator, states: list[dict[str, Any]]) -> dict[str, Any]:
    """A request: a state that is valid but for one thing, one with a few changes, or anything."""
    if random.random() < 0.5:
        return {"kind": str(random.choice(QUICK)), "state": nearly(random)}
    state = states[random.integers(len(states))]
    for _ in range(random.integers(1, 4)):
        state = changed(random, state)
    message = {"kind": str(random.choice(KINDS)), "state": state}
    if random.random() < 0.2:
        message["state"] = anything(random)
    if random.random() < 0.3:
        key = random.choice(["over", "text", "name", "toml", "gating", "kind"])
        message[str(key)] = anything(random)
    if message["kind"] == "csv":
        message |= {"name": "a.csv", "text": table(random)}
    return message


def table(random: np.random.Generator) -> str:
    """A table that may be one, with names that may be markup; sometimes a huge one."""
    match int(random.integers(40)):
        case 0:
            return "a,b\n" + "1,2\n" * 100_000  # more than a table may have
        case 1:
            return ",".join(f"c{i}" for i in range(20_000)) + "\n"
        case 2:
            return "a,b\n" + "1,2\n" * 1_500
    names = [WORDS[random.integers(len(WORDS))] or "c" for _ in range(random.integers(1, 5))]
    cell = lambda: str(random.choice(["1", "2.5", "x", "", "<b>", "1e400", '"', "nan"]))
    rows = [",".join(cell() for _ in names) for _ in range(random.integers(0, 12))]
    return "\n".join([",".join(names), *rows]).encode("utf-8", "replace").decode()


def nested(random: np.random.Generator) -> str:
    """A request with up to 3000 lists inside each other."""
    depth = int(random.integers(3000))
    return f'{{"id": 1, "kind": "predict", "state": {"[" * depth}{"]" * depth}}}'


def small_states() -> list[dict[str, Any]]:
    """States of tasks that take no time."""
    training = {"steps": 5, "seeds": 1}
    xor = {"builtin": "extended_xor", "parameters": {"delta": 0.5}}
    contexts = {"builtin": "contextual", "parameters": {"contexts": 2, "items": 2}}
    return [
        {
            "task": xor,
            "network": {"widths": 16, "scale": 1e-3},
            "gatings": {
                "linear": {"builtin": "linear_pathways", "parameters": {"total": 16}},
                "mine": {"masks": {"a": [1, 0, 0, 1], "b": "sample in [2, 3]"}, "hidden": 4},
            },
            "training": training,
            "contest": {"criterion": 0.2},
        },
        {
            "task": contexts,
            "network": {"widths": [8, 8], "scale": 1e-2},
            "gatings": {"each": {"each": "context"}, "whole": {"masks": {"all": "always"}}},
            "training": training,
            "contest": {"criterion": 0.5, "relative": True},
        },
    ]


@claim(
    "explorer/abuse",
    SECTION,
    "20 000 fuzzed requests to a server with its workers: schemathesis on its OpenAPI schema, "
    "states that are valid but for one thing, changed and random states, malformed and deeply "
    "nested JSON, huge and malformed tables, markup in names, wrong tokens, hosts and origins, "
    "large bodies, WebSockets",
    "every one answered in JSON within 2 minutes, strangers refused, no traceback, memory of all "
    "processes below 4 GB, then a page and a prediction as before",
    slow=True,
)
def abuse(full: bool) -> Measurement:
    count = 20_000 if full else 400
    with served() as (address, process, said):
        time.sleep(10 if full else 3)  # the other workers are warm as well
        before = memory_of(process.pid)
        found = asyncio.run(_abused(address, count))
        memory = memory_of(process.pid)
        said.seek(0)
        tracebacks = said.read().count("Traceback")
    bad, kinds = found["bad"], ("schemathesis", "posted", "pages")
    text = (
        f"{found['count']} answered ({', '.join(f'{n} {found[n]}' for n in kinds)}), {bad} not in "
        f"JSON or with a code of 500, {found['strangers']} strangers of whom {found['let_in']} "
        f"let in, {tracebacks} tracebacks, {found['untold']} errors without words of their own, "
        f"slowest {found['slowest']:.0f} s, {before / 1e9:.1f} → {memory / 1e9:.1f} GB, "
        f"prediction {'the same' if found['same'] else 'changed'}"
    )
    met = bad == tracebacks == found["let_in"] == 0 and found["same"]
    met = met and found["count"] == count == sum(found[name] for name in kinds)
    met = met and found["slowest"] < WAIT
    return Measurement(text, bool(met and memory < 4e9))


async def _abused(address: str, count: int) -> dict[str, Any]:
    import httpx
    import websockets

    names = ("count", "bad", "untold", "schemathesis", "posted", "pages", "strangers", "let_in")
    states, results = small_states(), dict.fromkeys(names, 0) | {"slowest": 0.0}
    live = address.replace("http://", "ws://") + "api/live"

    def seen(text: str, way: str, began: float, status: int = 200) -> None:
        results["count"] += 1
        results[way] += 1
        results["slowest"] = max(results["slowest"], time.monotonic() - began)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if answer is None or status >= 500 or "Traceback" in text:
            results["bad"] += 1
        elif "could not be computed" in text or "could not be done" in text:
            results["untold"] += 1

    async def post(client: httpx.AsyncClient, random: np.random.Generator) -> None:
        message = request(random, states)
        kind = message.pop("kind") if isinstance(message.get("kind"), str) else "predict"
        body, headers, path = json.dumps(message).encode(), {}, address
        way = int(random.integers(12))
        match way:
            case 0:
                body = random.bytes(int(random.integers(200)))
            case 1:
                body = body[: int(random.integers(len(body)))]
            case 2:
                headers = {"origin": "http://evil.example"}
            case 3:
                headers = {"host": "evil.example"}
            case 4:
                path = address[:-3] + "x/"
            case 5 if random.random() < 0.05:
                body = b" " * 2_000_000
            case 6:
                body = nested(random).encode()
        kind = kind.replace("/", "_")[:50] or "predict"
        name = httpx.URL(path).join(f"api/{kind.encode('ascii', 'ignore').decode() or 'x'}")
        began = time.monotonic()
        found = await client.post(name, content=body, headers=headers)
        seen(found.text, "posted", began, found.status_code)
        results["strangers"] += way in (2, 3, 4)
        results["let_in"] += way in (2, 3, 4) and found.status_code != 403

    async def page(random: np.random.Generator, many: int) -> None:
        async with websockets.connect(live, max_size=None) as socket:
            await socket.recv()
            for i in range(many):
                message = request(random, states) | {"id": i}
                text = json.dumps(message)
                if random.random() < 0.1:
                    text = text[: int(random.integers(len(text)))]
                elif random.random() < 0.1:
                    text = nested(random)
                began = time.monotonic()
                await socket.send(text)
                while True:
                    answer = json.loads(await asyncio.wait_for(socket.recv(), WAIT))
                    if "part" not in answer:
                        break
                seen(json.dumps(answer), "pages", began)

    async def poster(random: np.random.Generator, many: int) -> None:
        async with httpx.AsyncClient(timeout=WAIT) as client:
            for _ in range(many):
                await post(client, random)

    def case(text: str, began: float, status: int, is_page: bool) -> None:
        """An answer to schemathesis; pages and their files are not in JSON."""
        seen("{}" if is_page and status == 200 else text, "schemathesis", began, status)

    good = {"state": states[0]}
    async with httpx.AsyncClient(timeout=WAIT) as client:
        before = (await client.post(f"{address}api/predict", json=good)).json()["result"]
        each = (count - count // 5) // 8
        jobs = [poster(np.random.default_rng(i), each) for i in range(4)]
        jobs += [page(np.random.default_rng(100 + i), each) for i in range(4)]
        await asyncio.gather(*jobs)
        await asyncio.to_thread(_by_schema, address, count - 8 * each, case)
        after = (await client.post(f"{address}api/predict", json=good)).json()["result"]
        shown = await client.get(address)
    return results | {"same": before == after and shown.status_code == 200}


def _by_schema(address: str, count: int, told: Callable[[str, float, int, bool], None]) -> None:
    """Requests that schemathesis makes up from the OpenAPI schema, half of them against it."""
    import hypothesis
    import schemathesis
    from hypothesis.errors import Unsatisfiable

    from neuralrace.explorer import schema

    made = schemathesis.openapi.from_dict(schema())
    found: Any = made.get_all_operations()  # the schema is ours, so that each of them is fine
    operations = [each.ok() for each in found]
    left = count

    def tried(operation: Any, mode: Any, seed: int, most: int) -> None:
        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=most,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=[
                hypothesis.HealthCheck.too_slow,
                hypothesis.HealthCheck.filter_too_much,
            ],
        )
        @hypothesis.given(operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            nonlocal left
            if left:
                left -= 1
                began = time.monotonic()
                found = case.call(base_url=address.rstrip("/"), timeout=WAIT)
                told(found.text, began, found.status_code, operation.path != "/api/{kind}")

        with contextlib.suppress(Unsatisfiable):  # none is against the schema
            ask()

    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    ways = [(operation, mode) for operation in operations for mode in modes]
    for seed in range(count):
        for way in list(ways):
            before = left
            if left:
                tried(*way, seed, min(left, max(20, count // 20)))
            if left and before - left < 2:  # there are no others of this kind
                ways.remove(way)


# ---- many pages ---------------------------------------------------------------------------------


@claim(
    "explorer/crowd",
    SECTION,
    "50 WebSocket clients, 3 of them moving a slider as fast as they can, for a minute",
    "every request ends, every last one with the prediction for its own value, no error",
    slow=True,
)
def crowd(full: bool) -> Measurement:
    with served() as (address, _, said):
        found = asyncio.run(_crowded(address, 60 if full else 5, 50 if full else 8))
        said.seek(0)
        tracebacks = said.read().count("Traceback")
    text = (
        f"{found['asked']} asked, {found['ended']} ended, {found['wrong']} wrong at the end, "
        f"{found['errors']} errors, {tracebacks} tracebacks"
    )
    lost = found["asked"] - found["ended"]
    return Measurement(text, lost == found["wrong"] == found["errors"] == tracebacks == 0)


async def _crowded(address: str, seconds: float, count: int) -> dict[str, int]:
    import websockets

    live = address.replace("http://", "ws://") + "api/live"
    total = {"asked": 0, "ended": 0, "wrong": 0, "errors": 0}

    async def client(which: int) -> None:
        random = np.random.default_rng(which)
        wait = 0.02 if which < 3 else 5.0
        async with websockets.connect(live, max_size=None) as socket:
            await socket.recv()
            end, number, last = time.monotonic() + seconds, 0, 0.0
            ends: dict[int, dict[str, Any]] = {}

            async def listen() -> None:
                while number not in ends or time.monotonic() < end:
                    answer = json.loads(await asyncio.wait_for(socket.recv(), 90))
                    ends[answer["id"]] = answer

            state, listener = small_states()[0], None
            while time.monotonic() < end:
                number, last = number + 1, round(float(random.uniform(0.1, 2.0)), 6)
                state["task"]["parameters"]["delta"] = last
                await socket.send(json.dumps({"id": number, "kind": "predict", "state": state}))
                listener = listener or asyncio.create_task(listen())
                await asyncio.sleep(wait * random.uniform(0.5, 1.5))
            assert listener is not None
            with contextlib.suppress(TimeoutError):
                while len(ends) < number:
                    await asyncio.sleep(0.05)
                    if time.monotonic() > end + 90:
                        break
            listener.cancel()
            total["asked"] += number
            total["ended"] += len(ends)
            total["errors"] += sum("error" in answer for answer in ends.values())
            shown = ends.get(number, {}).get("result", {}).get("gatings", {}).get("linear", {})
            drive = shown.get("strength")
            total["wrong"] += drive is None or abs(drive - last / 2) > 1e-9

    await asyncio.gather(*(client(i) for i in range(count)))
    return total
