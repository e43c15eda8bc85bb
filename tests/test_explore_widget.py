"""The explorer in a notebook: the same page and the same answers, without a server."""

import base64
import json
import time
from typing import Any

import pytest

import neuralrace as nr
from neuralrace.explorer import widget
from neuralrace.explorer.trust import Trust
from tests.explorer_help import xor_state
from tests.test_errors import says


def answers_of(messages, tmp_path):
    """What an answerer says to messages that come at once."""
    said = []
    answerer = widget.Answerer(Trust(tmp_path), said.append)
    for message in messages:
        answerer.hear(message)
    answerer.wait()
    return said


def test_messages_of_a_notebook_have_the_answers_of_the_server(tmp_path):
    message = {"id": 4, "kind": "predict", "state": xor_state(0.9)}
    (found,) = answers_of([message], tmp_path)
    assert found["id"] == 4 and found["result"]["winner"] == "linear"
    data = nr.tasks.extended_xor(0.9)
    who = nr.contest({"linear": nr.tasks.linear_pathways(data, total=32)}, scale=1e-3)
    assert found["result"]["gatings"]["linear"]["time"] == who.times["linear"]


def test_a_newer_message_cancels_an_older_one_in_a_notebook_too(tmp_path):
    messages = [{"id": i, "kind": "predict", "state": xor_state(0.3 + i / 50)} for i in range(10)]
    found = {m["id"]: m for m in answers_of(messages, tmp_path)}
    assert sorted(found) == list(range(10))
    assert found[9]["done"] and sum("cancelled" in m for m in found.values()) >= 5


def test_a_notebook_that_talks_nonsense_is_told_so(tmp_path):
    found = answers_of([5, {}, {"id": 1, "kind": "nothing"}, {"kind": "cancel"}], tmp_path)
    assert len(found) == 3 and all(m["error"]["what"] for m in found)


def test_precision_is_that_of_the_explorer_and_no_setting_is_changed(tmp_path):
    import jax

    jax.config.update("jax_enable_x64", False)
    try:
        state = xor_state(training={"steps": 5, "seeds": 1})
        found = answers_of([{"id": 1, "kind": "train", "state": state}], tmp_path)
        assert found[-1]["done"] and not jax.config.jax_enable_x64
    finally:
        jax.config.update("jax_enable_x64", True)
    again = answers_of([{"id": 1, "kind": "train", "state": state}], tmp_path)
    assert found[-1]["result"] == again[-1]["result"]


def test_what_cannot_be_explored_is_an_error():
    with says("cannot be explored", got="int", wanted="a Study", fix="nr.explore"):
        nr.explore(5)


def test_the_modules_of_the_page_are_one_for_a_notebook():
    pytest.importorskip("anywidget")
    text = widget.bundle()
    sources = json.loads(text.split("const sources = ", 1)[1].split(";\nconst addresses", 1)[0])
    names = [name for name, _ in sources]
    assert names[-1] == widget.ENTRY and widget.CHARTS in names
    for name, source in sources:  # every module comes after those that it imports
        if name != widget.CHARTS:
            assert set(widget.IMPORT.findall(source)) <= set(names[: names.index(name)])
    assert ".uplot" in widget.styles()


def test_a_widget_shows_a_study_and_gives_back_what_it_shows():
    pytest.importorskip("anywidget")
    study = nr.Study.of(
        questions=["contest"], task={"builtin": "xor"}, gatings={"xor": {"each": "sample"}}
    )
    page = nr.explore(study)
    assert page.state["task"] == {"builtin": "xor"}
    page.state = {**page.state, "task": {"builtin": "extended_xor", "parameters": {"delta": 0.1}}}
    assert page.study().settings.task.parameters == {"delta": 0.1}
    assert nr.explore().state["task"]["builtin"] == "extended_xor"


@pytest.mark.browser
def test_the_page_of_a_notebook_answers_in_a_browser(tmp_path):
    """The one module that a notebook loads, with the answers of a kernel, in a real browser."""
    from pathlib import Path

    playwright = pytest.importorskip("playwright.sync_api")
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("no chromium")
    said, errors = [], []
    answerer = widget.Answerer(Trust(tmp_path), said.append)
    code = base64.b64encode(widget.bundle().encode()).decode()
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.expose_function("toKernel", answerer.hear)
        page.set_content("<html><body><div id='here'></div></body></html>")
        page.add_style_tag(content=widget.styles())
        page.evaluate(
            """async ([code, state]) => {
              const text = new TextDecoder().decode(
                Uint8Array.from(atob(code), (c) => c.charCodeAt(0)));
              const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
              const listeners = [], values = { state };
              window.fromKernel = (message) => listeners.forEach((each) => each(message));
              const model = {
                get: (name) => values[name], set: (name, value) => { values[name] = value; },
                save_changes() {}, send: (message) => window.toKernel(message),
                on: (name, each) => listeners.push(each), off() {},
              };
              window.values = values;
              const el = document.querySelector("#here");
              (await import(address)).default.render({ model, el });
            }""",
            [code, xor_state(0.9)],
        )
        end, seen = time.monotonic() + 60, 0
        while time.monotonic() < end and "learn first" not in page.inner_text("body"):
            answerer.wait()
            for message in said[seen:]:
                page.evaluate("(message) => window.fromKernel(message)", message)
                seen += 1
            page.wait_for_timeout(100)
        text = page.inner_text("body")
        browser.close()
    assert "linear is predicted to learn first" in text and not errors


CELL = """<!doctype html><style>/* CSS */</style><div></div><div></div><script type="module">
const found = await import(URL.createObjectURL(new Blob([BUNDLE], { type: "text/javascript" })));
window.heard = [];
document.querySelectorAll("div").forEach((el, k) => {
  const listeners = [];
  window.heard.push((message) => listeners.forEach((listener) => listener(message)));
  const state = {};
  const model = {
    get: (name) => state[name], set: (name, value) => (state[name] = value), save_changes() {},
    on: (name, listener) => listeners.push(listener), off() {},
    send: (message) => window.asked(k, message),
  };
  found.default.render({ model, el });
});
</script>"""


@pytest.mark.browser
def test_two_widgets_on_one_page(chromium, tmp_path):
    """The same page as a widget: two of them share a document and do not hear each other."""
    from neuralrace.explorer.trust import Trust
    from neuralrace.explorer.widget import Answerer, bundle, styles

    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: said.type == "error" and errors.append(said.text))
    answers: list[tuple[int, Any]] = []
    kernels = [
        Answerer(Trust(tmp_path), lambda answer, k=k: answers.append((k, answer))) for k in (0, 1)
    ]
    page.expose_function("asked", lambda k, message: kernels[k].hear(message))
    text = CELL.replace("BUNDLE", json.dumps(bundle()).replace("</", "<\\/"))
    page.set_content(text.replace("/* CSS */", styles()))

    def until(ready: Any) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            while answers:
                k, answer = answers.pop(0)
                page.evaluate("([k, answer]) => window.heard[k](answer)", [k, answer])
            if ready():
                return
            page.wait_for_timeout(50)
        raise AssertionError("the widget does not answer")

    first, second = (page.locator(".in-notebook").nth(k) for k in (0, 1))
    until(lambda: first.locator(".lanes li").count() and second.locator(".lanes li").count())
    field = first.get_by_label("Δ", exact=True)
    field.fill("1.25")
    field.press("Enter")
    until(lambda: first.locator(".headline").inner_text().startswith("linear"))
    assert second.locator(".headline").inner_text().startswith("xor")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids)) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert errors == []
    context.close()
