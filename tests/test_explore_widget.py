"""The explorer in a notebook: the same page and the same answers, without a server."""

import json
import time

import pytest

import neuralrace as nr
from neuralrace.explorer import widget
from neuralrace.explorer.page import CHARTS, ENTRY, IMPORT, bundle, styles
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
    text = bundle()
    sources = json.loads(text.split("const sources = ", 1)[1].split(";\nconst addresses", 1)[0])
    names = [name for name, _ in sources]
    assert names[-1] == ENTRY and CHARTS in names
    for name, source in sources:  # every module comes after those that it imports
        if name != CHARTS:
            assert set(IMPORT.findall(source)) <= set(names[: names.index(name)])
    assert ".uplot" in styles()


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


def test_the_study_of_a_page_asks_what_the_study_that_it_shows_asks():
    pytest.importorskip("anywidget")
    questions = ["contest", "reduce", "predict", "train"]
    gatings = {"xor": {"each": "sample"}}
    study = nr.Study.of(questions=questions, task={"builtin": "xor"}, gatings=gatings)
    page = nr.explore(study)
    assert list(page.study().settings.questions) == questions
    assert list(page.study(["train"]).settings.questions) == ["train"]


CELL = """<!doctype html><style>/* CSS */</style>DIVS<script type="module">
const found = await import(URL.createObjectURL(new Blob([BUNDLE], { type: "text/javascript" })));
window.heard = [];
window.values = STATES;
document.querySelectorAll("body > div").forEach((el, k) => {
  const listeners = [], values = window.values[k];
  window.heard.push((message) => listeners.forEach((listener) => listener(message)));
  const model = {
    get: (name) => values[name], set: (name, value) => (values[name] = value), save_changes() {},
    on: (name, listener) => listeners.push(listener), off() {},
    send: (message) => window.asked(k, message),
  };
  found.default.render({ model, el });
});
</script>"""
"""A page on which widgets are drawn as a notebook does it, from the one module that it loads."""


class Notebook:
    """Widgets in a real browser, one per state, each with a kernel of its own that answers it."""

    def __init__(self, page, trust, states):
        self.page, self.errors, self._answers = page, [], []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self._kernels = [
            widget.Answerer(trust, lambda answer, k=k: self._answers.append((k, answer)))
            for k in range(len(states))
        ]
        page.expose_function("asked", lambda k, message: self._kernels[k].hear(message))
        text = CELL.replace("BUNDLE", json.dumps(bundle()).replace("</", "<\\/"))
        text = text.replace("STATES", json.dumps([{"state": s} if s else {} for s in states]))
        text = text.replace("DIVS", "<div></div>" * len(states))
        page.set_content(text.replace("/* CSS */", styles()))
        self.widgets = [page.locator(".in-notebook").nth(k) for k in range(len(states))]

    def until(self, ready):
        """Hand answers on until something is so."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            while self._answers:
                k, answer = self._answers.pop(0)
                self.page.evaluate("([k, answer]) => window.heard[k](answer)", [k, answer])
            if ready():
                return
            self.page.evaluate("new Promise((done) => requestAnimationFrame(done))")
        raise AssertionError("the widget does not answer")


@pytest.fixture
def notebook(chromium, tmp_path):
    """A function that shows widgets of these states."""
    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    yield lambda *states: Notebook(context.new_page(), Trust(tmp_path), states)
    context.close()


def headline(shown):
    found = shown.locator(".headline")
    return found.inner_text() if found.count() else ""


@pytest.mark.browser
def test_a_widget_shows_its_state_and_gives_back_what_is_changed(notebook):
    made = notebook(xor_state(0.9))
    (shown,) = made.widgets
    made.until(lambda: headline(shown).startswith("linear is predicted to learn first"))
    field = shown.get_by_label("Δ", exact=True)
    field.fill("0.5")
    field.press("Enter")
    made.until(lambda: headline(shown).startswith("xor is predicted to learn first"))
    delta = "window.values[0].state.task.parameters.delta"
    made.until(lambda: made.page.evaluate(delta) == 0.5)
    assert made.errors == []


@pytest.mark.browser
def test_two_widgets_on_one_page(notebook):
    """They share a document and do not hear each other."""
    made = notebook(None, None)
    page, (first, second) = made.page, made.widgets
    made.until(lambda: all(each.locator(".lanes li").count() for each in made.widgets))
    field = first.get_by_label("Δ", exact=True)
    field.fill("1.25")
    field.press("Enter")
    made.until(lambda: headline(first).startswith("linear"))
    assert headline(second).startswith("xor")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids)) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert made.errors == []
