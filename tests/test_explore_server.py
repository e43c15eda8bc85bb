"""The server of the explorer: its door, its messages, its lanes; workers are threads here."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have another client
    from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import neuralrace as nr
from neuralrace.explorer import limits, messages, schema, server
from neuralrace.explorer.guard import Guard
from neuralrace.explorer.handler import answered
from neuralrace.explorer.lanes import Client, Lane, Pool
from neuralrace.explorer.messages import Memory
from neuralrace.explorer.trust import Trust, trust_of
from neuralrace.explorer.workers import Worker
from tests.explorer_help import ThreadWorker, xor_state

ROOT = Path(__file__).parent.parent
TOKEN = "a-token-of-some-length"
HERE = f"/{TOKEN}/"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    trust = Trust(tmp_path_factory.mktemp("tables"))
    app = Guard(server.pages(Pool(trust, ThreadWorker)), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


# ---- the door -----------------------------------------------------------------------------------

REFUSED = {
    "no token": ("/", {}),
    "wrong token": ("/another-token-of-len/", {}),
    "half a token": (f"/{TOKEN[:-1]}/", {}),
    "foreign host": (HERE, {"host": "evil.example:8000"}),
    "host with a prefix": (HERE, {"host": "127.0.0.1.evil.example"}),
    "another address": (HERE, {"host": "192.168.0.7:8000"}),
    "foreign origin": (HERE, {"origin": "http://evil.example"}),
    "null origin": (HERE, {"origin": "null"}),
    "another port of this machine": (HERE, {"origin": "http://127.0.0.1:9999"}),
    "another site": (HERE, {"sec-fetch-site": "cross-site"}),
    "a site of the same name": (HERE, {"sec-fetch-site": "same-site"}),
}


@pytest.mark.parametrize(("path", "headers"), REFUSED.values(), ids=REFUSED)
def test_whoever_is_not_the_page_is_refused(path, headers, client):
    for method, address in (("GET", path), ("POST", f"{path}api/tasks")):
        found = client.request(method, address, headers=headers)
        assert found.status_code == 403
        assert found.json()["error"]["what"] == "this request is refused"
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"{path}api/live", headers=headers),
    ):
        pass


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:8000"},
        {"host": "[::1]:8000"},
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_the_page_itself_is_let_in(headers, client):
    assert client.get(f"{HERE}web/vendor/uPlot.css", headers=headers).status_code == 200


def test_an_open_server_is_reached_by_address_and_by_no_other_name(tmp_path):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    found = TestClient(Guard(app, TOKEN, "0.0.0.0"), base_url="http://192.168.0.7:8000")
    assert found.get(HERE).status_code == 200
    assert found.get(HERE, headers={"host": "evil.example"}).status_code == 403


def test_every_answer_forbids_script_from_elsewhere(client):
    for address in (f"{HERE}web/vendor/uplot.js", "/", f"{HERE}nothing"):
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_only_files_of_the_page_are_served(client):
    names = ["../server.py", "..%2fserver.py", "%2e%2e/server.py", "vendor/../../server.py", ""]
    names += ["server.py", "/etc/passwd", "vendor/uPlot.iife.min.js"]
    for name in [*names, *(n * "a" + end for n in (300, 5000) for end in ("", ".js", "/b.js"))]:
        found = client.get(f"{HERE}web/{name}")
        assert found.status_code in (403, 404, 405, 307), name
        assert b"import" not in found.content and b"neuralrace/" not in found.content
    assert client.get(f"/{TOKEN}", follow_redirects=False).headers["location"] == HERE


def test_an_error_of_the_system_names_no_path():
    for path in ("/nowhere/secret", "/" + 300 * "a"):
        with pytest.raises(OSError, match=path) as raised:
            os.stat(path)
        assert path not in str(messages.error_of(raised.value))


@pytest.mark.parametrize("name", ["a" * 300, "%2e%2e/" * 30 + "a", "a%00b"])
def test_a_file_of_the_page_that_is_not_there_is_an_answer_without_a_path(name, client):
    found = client.get(f"{HERE}web/{name}")
    assert found.status_code in (400, 404)
    assert str(Path(messages.__file__).parent) not in found.text


# ---- requests without a page --------------------------------------------------------------------


def test_a_request_is_answered_with_all_its_parts(client):
    state = xor_state(training={"steps": 10, "seeds": 1})
    found = client.post(f"{HERE}api/train", json={"state": state}).json()
    assert found["parts"][0]["part"] == "begin"
    assert len(found["result"]["final"]) == 1


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff\xfe", b'{"state": NaN}', b"[" * 20000]
)
def test_a_body_that_is_no_request_is_an_error(body, client):
    found = client.post(f"{HERE}api/predict", content=body)
    assert found.status_code == 400 and found.json()["error"]["what"]


NESTED = [limits.NESTED, 300, 600, 951, 3000, 100_000]


@pytest.mark.parametrize("depth", NESTED)
@pytest.mark.parametrize("ends", ["[]", ('{"a":', "}")])
def test_a_message_that_is_nested_deeply_is_refused_and_nothing_dies(depth, ends, client):
    """By both doors; a good request is answered next."""
    value = ends[0] * depth + "0" * (ends != "[]") + ends[1] * depth
    live = client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live")
    with live as page:
        page.receive_json()
        for i, where in enumerate(('"state": {"view": %s}', '"state": %s', '"over": %s')):
            text = f"{{{where % value}}}"
            found = client.post(f"{HERE}api/predict", content=text)
            assert found.status_code == 400
            page.send_text(f'{{"id": {i}, "kind": "predict", {text[1:]}')
            for error in (found.json()["error"], page.receive_json()["error"]):
                assert "inside each other" in error["what"]
                assert error["wanted"] == f"at most {limits.NESTED}"
        page.send_json({"id": 9, "kind": "predict", "state": xor_state(depth / 1e6)})
        assert page.receive_json()["done"]


def test_nesting_within_the_limit_is_no_matter(client):
    value = json.loads("[" * (limits.NESTED - 2) + "]" * (limits.NESTED - 2))
    body = {"state": xor_state(0.31, view=value)}
    assert client.post(f"{HERE}api/predict", json=body).status_code == 200


def test_other_addresses_methods_and_sizes_are_errors(client):
    assert client.post(f"{HERE}api/nothing", json={}).status_code == 400
    assert client.get(f"{HERE}api/predict").status_code == 405
    assert "error" in client.get(f"{HERE}openapi.json").json()
    large = client.post(f"{HERE}api/predict", content=b" " * (limits.MESSAGE + 1))
    assert large.status_code == 413 and "too large" in large.json()["error"]["what"]


# ---- pages --------------------------------------------------------------------------------------


def test_a_page_asks_and_is_answered(client):
    with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as page:
        assert page.receive_json()["kind"] == "hello"
        page.send_json({"id": 3, "kind": "predict", "state": xor_state(0.33)})
        found = page.receive_json()
        assert found["id"] == 3 and found["done"] and found["result"]["winner"] == "xor"
        page.send_json({"id": 4, "kind": "predict", "state": xor_state(0.33, view={"a": 1})})
        again = page.receive_json()
        assert again["kept"] and again["id"] == 4 and again["result"] == found["result"]


def test_a_page_that_talks_nonsense_is_told_so_and_goes_on(client):
    nonsense = ["", "x", "[]", "{}", '{"kind": 5}', '{"id": [], "kind": "none"}', '{"id": 1e999}']
    nonsense += ['{"kind": "cancel"}', '{"kind": "cancel", "of": []}', "[" * 10_000]
    with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as page:
        page.receive_json()
        for text in nonsense:
            page.send_text(text)
            if "cancel" not in text:
                assert page.receive_json()["error"]["what"]
        page.send_bytes(b"\xff\x00")
        assert page.receive_json()["error"]
        page.send_json({"id": 1, "kind": "tasks"})
        assert page.receive_json()["done"]


def test_a_newer_request_cancels_an_older_one_of_the_same_kind(client):
    with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as page:
        page.receive_json()
        for i in range(20):
            page.send_json({"id": i, "kind": "predict", "state": xor_state(0.2 + i / 100)})
        ends = {}
        while 19 not in ends:
            found = page.receive_json()
            ends[found["id"]] = found
        assert sorted(ends) == list(range(20))
        assert ends[19]["done"] and sum("cancelled" in end for end in ends.values()) >= 10


def test_a_training_is_cancelled_where_it_is(client):
    long = xor_state(training={"steps": 20_000, "seeds": 4, "learning_rate": 0.01})
    with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as page:
        page.receive_json()
        page.send_json({"id": 1, "kind": "train", "state": long})
        assert page.receive_json()["part"] == "begin"
        page.send_json({"kind": "cancel", "of": "train"})
        while "part" in (found := page.receive_json()):
            pass
        assert found == {"id": 1, "kind": "train", "cancelled": True}


def test_there_are_so_many_pages_and_no_more(client, monkeypatch):
    monkeypatch.setattr(server, "CLIENTS", 1)
    with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as first:
        first.receive_json()
        with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as second:
            with pytest.raises(WebSocketDisconnect) as refused:
                second.receive_json()
            assert refused.value.code == server.FULL


# ---- files of a study ---------------------------------------------------------------------------

STUDY = """
questions = ["contest"]
[task]
file = "t.csv"
x = ["a", "b"]
y = ["c"]
[gatings.whole.masks]
all = "always"
[contest]
criterion = 0.5
relative = true
[network]
scale = {scale}
"""


@pytest.fixture
def studied(tmp_path):
    """A server that was started with a study and its table, and the folder of both."""
    (tmp_path / "s.toml").write_text(STUDY.format(scale=1e-3))
    (tmp_path / "t.csv").write_text("a,b,c\n1,0,1\n0,1,2\n")
    trust = trust_of(tmp_path / "s.toml", tmp_path / "tables")
    app = Guard(server.pages(Pool(trust, ThreadWorker)), TOKEN)
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found, tmp_path


def time_of(client, state):
    """When the one gating has learned, and whether that was remembered."""
    found = client.post(f"{HERE}api/predict", json={"state": state}).json()
    return found["result"]["gatings"]["whole"]["time"], found.get("kept", False)


def by_the_library(folder):
    return nr.Study.load(folder / "s.toml").run()["contest"].value.times["whole"]


def test_a_table_that_changed_on_disk_is_read_again(studied):
    """Also where its size and the time of its last change look the same."""
    client, folder = studied
    state = client.post(f"{HERE}api/tasks").json()["result"]["state"]
    first, kept = time_of(client, state)
    assert not kept and first == pytest.approx(by_the_library(folder), rel=1e-9)
    assert time_of(client, state) == (first, True)
    table = folder / "t.csv"
    before = table.stat()
    table.write_text("a,b,c\n1,0,2\n0,1,4\n")
    os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))
    second, kept = time_of(client, state)
    assert not kept and second == pytest.approx(by_the_library(folder), rel=1e-9) != first
    table.write_text("a,b,c\n1,0,1\n0,1,2\n")
    assert time_of(client, state) == (first, True)  # what it was at first, and is remembered
    table.unlink()
    gone = client.post(f"{HERE}api/predict", json={"state": state}).json()
    assert "t.csv" in gone["error"]["got"]


def test_a_study_that_changed_on_disk_is_read_again(studied):
    client, folder = studied
    (folder / "s.toml").write_text(STUDY.format(scale=1e-2).replace("t.csv", "other.csv"))
    (folder / "other.csv").write_text("a,b,c\n1,0,3\n0,1,4\n")
    state = client.post(f"{HERE}api/tasks").json()["result"]["state"]
    assert state["network"]["scale"] == 1e-2 and state["task"]["file"] == "other.csv"
    assert time_of(client, state)[0] == pytest.approx(by_the_library(folder), rel=1e-9)
    (folder / "s.toml").write_text("questions = ['contest']\n[task]\nbuiltin = 5\n")
    assert "builtin" in client.post(f"{HERE}api/tasks").json()["error"]["key"]
    (folder / "s.toml").unlink()
    assert client.post(f"{HERE}api/tasks").json()["result"]["state"]["network"]["scale"] == 1e-3


# ---- lanes --------------------------------------------------------------------------------------


class Scripted(ThreadWorker):
    """A worker that does what the message says: answer, hang, or end."""

    started = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        type(self).started += 1

    def ask(self, number, message):
        match message.get("do"):
            case "hang":
                return
            case "fail":
                raise RecursionError("this cannot be sent")
            case "end":
                self._loop.call_soon_threadsafe(self._lost, self)
            case _:
                super().ask(number, message)

    @staticmethod
    def function(message, trust, send):
        head = {"id": message["id"], "kind": message["kind"]}
        if message.get("do") == "parts":
            send({**head, "part": "begin", "result": {"said": ',"ms":1}'}})
            send({**head, "part": "chunk", "result": {"ms": 2}})
        send({**head, "done": True, "result": {"ms": 3}, "ms": 4.25})


def in_a_lane(scenario, tmp_path):
    """Run a scenario in an event loop, with a client of a pool of scripted workers."""

    async def run():
        Scripted.started = 0
        pool = Pool(Trust(tmp_path), Scripted)
        await pool.start()
        await pool._others
        said = []
        client = Client(pool, lambda text: said.append(json.loads(text)))
        await asyncio.wait_for(scenario(client, said), 10)
        await pool.close()
        return said

    return asyncio.run(run())


def test_a_worker_that_ends_is_an_error_and_another_one_goes_on(tmp_path):
    async def scenario(client, said):
        await client.ask({"id": 1, "kind": "kept", "do": "end"}).ended.wait()
        await client.ask({"id": 2, "kind": "kept"}).ended.wait()

    first, second = in_a_lane(scenario, tmp_path)
    assert "ended before it was done" in first["error"]["what"]
    assert second["done"] and Scripted.started == len(limits.LANES) + 1


def test_a_request_that_cannot_be_sent_to_a_worker_leaves_its_lane_alive(tmp_path):
    async def scenario(client, said):
        await client.ask({"id": 1, "kind": "predict", "do": "fail"}).ended.wait()
        await client.ask({"id": 2, "kind": "predict"}).ended.wait()

    first, second = in_a_lane(scenario, tmp_path)
    assert "RecursionError" in first["error"]["got"] and second["done"]


def test_what_takes_too_long_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setitem(limits.KINDS, "kept", limits.KINDS["kept"]._replace(seconds=0.05))

    async def scenario(client, said):
        await client.ask({"id": 1, "kind": "kept", "do": "hang"}).ended.wait()
        monkeypatch.setitem(limits.KINDS, "kept", limits.KINDS["kept"]._replace(seconds=60))
        await client.ask({"id": 2, "kind": "kept"}).ended.wait()

    first, second = in_a_lane(scenario, tmp_path)
    assert "too long" in first["error"]["what"] and second["done"]


def test_what_hangs_and_is_cancelled_does_not_hold_its_lane(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralrace.explorer.lanes.GRACE", dict.fromkeys(limits.LANES, 0.05))

    async def scenario(client, said):
        client.ask({"id": 1, "kind": "train", "do": "hang"})
        await asyncio.sleep(0.02)
        await client.ask({"id": 2, "kind": "train"}).ended.wait()

    first, second = in_a_lane(scenario, tmp_path)
    assert first["cancelled"] and first["id"] == 1 and second["done"]


def test_long_requests_do_not_hold_up_quick_ones(tmp_path):
    async def scenario(client, said):
        client.ask({"id": 1, "kind": "train", "do": "hang"})
        await client.ask({"id": 2, "kind": "predict"}).ended.wait()

    assert [m["id"] for m in in_a_lane(scenario, tmp_path)] == [2]


def test_equations_do_not_wait_for_the_check_of_gates(tmp_path):
    """A page asks for both whenever its state rests."""

    async def scenario(client, said):
        client.ask({"id": 1, "kind": "kept", "do": "hang"})
        await client.ask({"id": 2, "kind": "equations"}).ended.wait()

    assert [m["id"] for m in in_a_lane(scenario, tmp_path)] == [2]


def test_a_request_starts_the_worker_of_its_lane(tmp_path):
    """It does not wait until all workers before it are warm."""

    async def run():
        Scripted.started, said = 0, []
        pool = Pool(Trust(tmp_path), Scripted)
        message = {"id": 1, "kind": "train"}
        job = pool.ask(message, lambda text: said.append(json.loads(text)))
        await asyncio.wait_for(job.ended.wait(), 10)
        await pool.close()
        return said

    assert asyncio.run(run())[-1]["done"] and Scripted.started == 1


def test_a_kept_answer_with_parts_is_given_again_word_for_word(tmp_path):
    async def scenario(client, said):
        await client.ask({"id": 1, "kind": "train", "do": "parts"}).ended.wait()
        await client.ask({"id": "two", "kind": "train", "do": "parts"}).ended.wait()

    said = in_a_lane(scenario, tmp_path)
    first, again = said[: len(said) // 2], said[len(said) // 2 :]
    assert len(first) == 3 and {m["id"] for m in again} == {"two"}
    assert again[-1] == {**first[-1], "id": "two", "ms": 0, "kept": True}
    assert again[:-1] == [{**m, "id": "two"} for m in first[:-1]]


class Watched:
    """Counts what is read and written as JSON in the thread of the event loop."""

    def __init__(self, monkeypatch, thread):
        self.longest, self.elsewhere, self.thread = 0, 0, thread
        for name in ("loads", "dumps"):
            plain = getattr(json, name)
            monkeypatch.setattr(messages.json, name, lambda *a, p=plain, **k: self.seen(p, *a, **k))

    def seen(self, plain, *arguments, **options):
        found = plain(*arguments, **options)
        size = max(len(each) for each in (arguments[0], found) if isinstance(each, str | bytes))
        if threading.get_ident() == self.thread():
            self.longest = max(self.longest, size)
        else:
            self.elsewhere = max(self.elsewhere, size)
        return found


def test_the_event_loop_reads_and_writes_no_long_message(tmp_path, monkeypatch):
    """A long request, its long answer, the same from memory, and both without a page."""
    loop = []
    watched = Watched(monkeypatch, lambda: loop[0] if loop else None)

    class Long(ThreadWorker):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            loop[:] = [threading.get_ident()]

        @staticmethod
        def function(message, trust, send):
            head = {"id": message.get("id"), "kind": message["kind"]}
            send({**head, "part": "some", "result": {"text": "x" * 300_000}})
            send({**head, "done": True, "result": {"text": "y" * 300_000}, "ms": 1.5})

    pages = Guard(server.pages(Pool(Trust(tmp_path), Long)), TOKEN)
    state = {"table": {"name": "a.csv", "text": "1,2\n" * 50_000}, "view": None}
    with TestClient(pages, base_url="http://127.0.0.1:8000") as client:
        with client.websocket_connect(f"ws://127.0.0.1:8000{HERE}api/live") as page:
            page.receive_json()
            for number in (1, 2):
                page.send_text(json.dumps({"id": number, "kind": "predict", "state": state}))
                part, end = page.receive_json(), page.receive_json()
                assert part["id"] == end["id"] == number and len(part["result"]["text"]) == 300_000
                assert end["result"]["text"][0] == "y" and end.get("kept", False) == (number == 2)
        body = {"state": state, "id": 5}
        for kind, kept in (("predict", True), ("data", False)):
            found = client.post(f"{HERE}api/{kind}", json=body).json()
            assert found["parts"][0]["part"] == "some" and found["result"]["text"][0] == "y"
            assert found.get("kept", False) == kept
    assert watched.elsewhere > 200_000
    assert watched.longest <= messages.AT_ONCE


def test_workers_that_never_come_up_are_given_up(tmp_path):
    class Broken(ThreadWorker):
        def __init__(self, trust, heard, lost, urgent):
            super().__init__(trust, heard, lost, urgent)
            self.ready.clear()
            self._loop.call_soon(lost, self)

    async def run():
        lane = Lane(Trust(tmp_path), Memory(), Broken)
        said = []
        client_pool = Pool(Trust(tmp_path), Broken)
        client_pool._lanes["quick"] = lane
        await lane.start()
        job = client_pool.ask({"id": 1, "kind": "predict"}, lambda text: said.append(text))
        await asyncio.wait_for(job.ended.wait(), 5)
        await lane.close()
        return said

    assert "ended before it was done" in asyncio.run(run())[0]


def test_memory_forgets_the_oldest_and_knows_what_an_answer_depends_on():
    memory = Memory(most=100)
    for i in range(50):
        memory.put(str(i), [messages.Message({}, "x" * 10)])
    assert memory.size <= 100 and memory.get("49") and memory.get("0") is None
    same = [{"id": i, "kind": "predict", "state": {"task": 1, "view": i}} for i in range(2)]
    assert messages.digest(same[0]) == messages.digest(same[1])
    assert messages.digest(same[0]) != messages.digest({**same[0], "kind": "kept"})


# ---- anything at all ----------------------------------------------------------------------------


def anything(random, depth=0):
    """A random value of JSON, with words that mean something in a state."""
    words = ["task", "builtin", "xor", "extended_xor", "parameters", "delta", "gatings", "masks"]
    words += ["network", "widths", "training", "steps", "contest", "criterion", "sample in [1]", ""]
    words += ["each", "sample", "<b>", "\ud800", "a.b", "file", "python", "os:system", "table"]
    kind = random.integers(8 if depth < 4 else 5)
    if kind == 0:
        return words[random.integers(len(words))]
    if kind == 1:
        return [None, True, False][random.integers(3)]
    if kind == 2:
        return int(random.choice([0, 1, -1, 3, 10**6, 10**18]))
    if kind == 3:
        return float(random.choice([0.0, 0.5, -2.5, 1e300, 1e-300]))
    if kind == 4:
        return str(random.bytes(5))
    if kind == 5:
        return [anything(random, depth + 1) for _ in range(random.integers(4))]
    keys = [words[random.integers(len(words))] for _ in range(random.integers(5))]
    return {key: anything(random, depth + 1) for key in keys}


def changed(random, state):
    """A state with something else at one of its places."""
    if not isinstance(state, dict) or not state or random.random() < 0.15:
        return anything(random, 2)
    key = list(state)[random.integers(len(state))]
    return {**state, key: changed(random, state[key])}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_page_sends_is_answered_by_a_message(seed, tmp_path):
    random = np.random.default_rng(seed)
    trust = Trust(tmp_path)
    kinds = ["data", "predict", "python", "study", "csv", "phases"]
    for _ in range(25):
        said = []
        message = {"id": 1, "kind": kinds[random.integers(len(kinds))]}
        small = xor_state(training={"steps": 3, "seeds": 1})
        message["state"] = changed(random, small) if random.random() < 0.7 else anything(random)
        message |= {"over": anything(random), "text": anything(random), "name": anything(random)}
        answered(message, trust, said.append)
        end = json.loads(json.dumps(said[-1], allow_nan=False))
        assert "done" in end or end["error"]["what"]
        if "error" in end:
            assert end["error"]["what"] != "this could not be computed", end


# ---- the real thing -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_serves_with_workers_until_it_is_interrupted():
    import signal

    import httpx

    command = [sys.executable, "-m", "neuralrace", "explore", "--no-browser", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        timer = threading.Timer(120, process.kill)
        timer.start()
        address = process.stdout.readline().split()[-1]
        body = {"state": xor_state(0.9)}
        found = httpx.post(f"{address}api/predict", json=body, timeout=60).json()
        assert found["result"]["winner"] == "linear"
        assert httpx.get(address.replace("127.0.0.1", "localhost"), timeout=60).status_code != 403
        process.send_signal(signal.SIGINT)
        process.wait(60)
        timer.cancel()
        assert "Traceback" not in process.stderr.read()


def test_the_schema_names_every_kind_once():
    """Tests of the server's addresses begin with it; the server itself hands it to nobody."""
    found = schema()["paths"]["/api/{kind}"]["post"]
    (kind,) = found["parameters"]
    assert kind["schema"]["enum"] == list(limits.KINDS) and kind["required"]
    body = found["requestBody"]["content"]["application/json"]["schema"]
    assert {"task", "gatings", "table"} <= set(body["properties"]["state"]["properties"])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="processes have no niceness here")
def test_a_worker_that_is_not_urgent_gives_way(tmp_path):
    async def niceness(urgent):
        worker = Worker(Trust(tmp_path), lambda *_: None, lambda _: None, urgent)
        await worker.ready.wait()
        found = os.getpriority(os.PRIO_PROCESS, worker.pid)
        worker.kill()
        return found - os.getpriority(os.PRIO_PROCESS, 0)

    assert asyncio.run(niceness(True)) == 0
    assert asyncio.run(niceness(False)) > 0
