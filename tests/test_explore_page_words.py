"""The page in a browser: what is drawn and said is true of the state that is shown."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any

import pytest

from neuralrace.explorer.catalogue import default_state
from neuralrace.explorer.trust import Trust
from neuralrace.text import percent
from tests.browser_help import Page, link
from tests.explorer_help import result, xor_state


@contextmanager
def opened(server, chromium, state: Any, width: int = 1280):
    """A page with a state."""
    context = chromium.new_context(viewport={"width": width, "height": 800})
    page = Page(context.new_page(), f"{server.address}#{link(state)}")
    yield page
    page.check()
    context.close()


def story(page: Page, name: str) -> None:
    page.page.locator("summary", has_text="Stories").click()
    page.page.get_by_role("button", name=re.compile(f"^{name}")).click()


BOTH = {"masks": {"all": [1, 1, 1, 1], "first": [1, 0, 0, 0]}}


@pytest.mark.browser
def test_lines_of_all_pathways_have_one_scale(server, chromium, tmp_path):
    """How much thicker than the thinnest a line is goes with the strength of its pathway."""
    state = xor_state(0.4, gatings={"both": BOTH, "xor": {"builtin": "xor_pathways"}})
    predicted = result("predict", Trust(tmp_path), state=state)
    told = predicted["gatings"]
    strength = {p["name"]: p["strength"][-1] for g in told.values() for p in g["pathways"]}
    assert strength["first"] < 0.5 * strength["all"]  # so that scales of their own would be seen
    found = {}
    with opened(server, chromium, {**state, "view": {"time": predicted["end"]}}) as page:
        for gating, pathway in (("both", "all"), ("both", "first"), ("xor", "sample1")):
            page.page.locator(".tab", has_text=gating).click()
            line = page.page.locator(".graph .edge").filter(has_text=f"to {pathway}")
            line.wait_for()
            page.settled()
            found[pathway] = float(line.evaluate("line => line.style.strokeWidth"))
    thinnest = 0.8
    for pathway, width in found.items():
        share = (width - thinnest) / (found["all"] - thinnest)
        assert share == pytest.approx(strength[pathway] / strength["all"], abs=0.01), found


@pytest.mark.browser
def test_a_message_goes_with_the_state_that_it_is_about(page):
    said = page.page.locator(".pointed")
    story(page, "Routing")
    said.get_by_text("These gates are on inputs, outputs or edges").wait_for()
    story(page, "Contexts")
    page.headline("^answer is")
    said.get_by_text("Click or drag on a strip to switch gates.").wait_for()
    page.check()


@pytest.mark.browser
def test_what_was_said_of_a_table_is_not_said_of_a_task(page, tmp_path):
    table = tmp_path / "animals.csv"
    table.write_text("a,b,y\n" + "".join(f"{i % 2},{i % 3},{i % 5}\n" for i in range(12)))
    page.page.locator("input[type=file]").set_input_files(str(table))
    note = page.page.locator(".panel.task").get_by_text("Read animals.csv.")
    note.wait_for()
    page.task("XoR")
    note.wait_for(state="hidden")
    page.check()


@pytest.mark.browser
def test_the_axis_goes_on_until_the_reference_and_the_network_are_there(server, chromium):
    """At a cue of 3, the winner is there at t = 4, what small neurons align to at t = 12."""
    state = default_state("context_decision")
    state["task"]["parameters"] |= {"cue": 3.0}
    state["gatings"] = {"answer": {"masks": {"left": "y < 0", "right": "y > 0"}}}
    state["training"] |= {"steps": 200, "seeds": 1}
    with opened(server, chromium, state) as page:
        told = page.page.locator(".further").get_by_text(re.compile("Expect a ReLU network"))
        told.wait_for()
        expected = float(re.search(r"t = ([\d.]+)", told.inner_text())[1])
        last = _last(page)
        assert expected < last < 40
        page.set("cue", 2.95)  # the axis stays while the check is made again
        page.page.locator(".headline").filter(has_not_text="Predicting").wait_for()
        assert _last(page) > expected
        page.button("Train", ".panel.relu").click()
        page.button("Train again").wait_for()
        lane = page.page.locator(".lanes li", has_text="ReLU network").locator(".when")
        assert float(lane.inner_text().split("=")[1]) < _last(page)


def _last(page: Page) -> float:
    """The last moment of the time axis to which predicted curves go."""
    page.settled()
    page.page.locator(".player .time").fill("1000")
    page.settled()
    shown = page.page.locator(".now").inner_text()
    page.button("Photo finish").click()
    return float(shown.removeprefix("t = "))


@pytest.mark.browser
def test_shares_are_written_as_in_the_sentences(page):
    values = [0.177, 0.0042, 8.6e-6, 0.996, 0.0995, 1e-9, 0.05]
    source = "async (values) => values.map((await import('./web/dom.js')).percent)"
    assert page.page.evaluate(source, values) == [percent(value) for value in values]


@pytest.mark.browser
def test_the_criterion_says_its_unit(page):
    """The words at the line of the criterion, where the page writes them for all to read."""
    page.task("Two streams and a cue")
    page.headline("learn first")
    names = "document.querySelector('.race .chart').getAttribute('aria-label')"
    assert "criterion: a share of 0.5 of the initial loss" in page.page.evaluate(names)
    page.task("Extended XoR")
    page.headline("learn first")
    page.settled()
    assert "criterion: a loss of 0.2" in page.page.evaluate(names)
    page.check()


@pytest.mark.browser
def test_a_link_brings_the_state_back(page):
    page.set("Δ", 1.25)
    page.headline("^linear is")
    page.button("Copy link").click()
    page.page.locator(".toast", has_text="Copied.").wait_for()
    address = page.page.evaluate("navigator.clipboard.readText()")
    other = Page(page.page.context.new_page(), address)
    other.headline("^linear is")
    assert other.value("Δ") == "1.25"
    page.check()


@pytest.mark.browser
def test_why_gates_that_were_found_need_not_be_kept_until_they_are_edited(server, chromium):
    state = xor_state(0.4, gatings={"found": BOTH}, view={"found": [BOTH]})
    with opened(server, chromium, state) as page:
        told = page.page.locator(".gates").get_by_text("rounded to constant ones")
        told.wait_for()
        page.page.locator(".strip").first.focus()
        page.page.keyboard.press("Space")
        told.wait_for(state="hidden")
        page.button("Undo").click()
        told.wait_for()


@pytest.mark.browser
def test_gates_are_shown_at_the_nearest_recorded_moment(page):
    page.page.locator(".more summary").filter(has_text="How it is trained").click()
    page.set("Steps", 300)
    page.set("Networks", 1)
    page.button("Train", ".panel.relu").click()
    page.button("Train again").wait_for()
    title = page.page.locator(".panel.relu h3").first
    for at in (0, 123, 377, 1000):
        page.page.locator(".player .time").fill(str(at))
        page.settled()
        shown = page.page.locator(".now").inner_text().removeprefix("t = ")
        said = title.inner_text().removeprefix("Its gates at t = ")
        assert said == shown or said.endswith(", the nearest recorded moment"), (said, shown)
        recorded = float(said.split(",")[0])
        assert abs(recorded - float(shown)) < 0.5 or recorded == pytest.approx(15), (said, shown)
    page.check()


@pytest.mark.browser
def test_the_reference_is_told_from_a_candidate_of_aligned_gates(page):
    page.task("Two streams and a cue")
    legend = page.page.locator(".race .legend").first
    reference = legend.get_by_role("button", name=re.compile(r"reference \(aligned gates\)"))
    reference.wait_for()
    assert "some lie between on and off" in reference.get_attribute("title")
    page.check()


SLOW = {"builtin": "linear_pathways", "parameters": {"total": 32}}
NAMES = {"masks": {"all_of_the_four": [1, 1, 1, 1], "only_the_first": [1, 0, 0, 0]}}


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_texts_stay_in_their_places(server, chromium, width):
    """Long margins in the panel, names in their boxes, shares beside the ×; on a phone too."""
    gatings = {"names": NAMES, "linear": SLOW, "xor": {"builtin": "xor_pathways"}}
    state = xor_state(0.2, gatings=gatings, contest={"criterion": 0.45}, view={"gating": "names"})
    with opened(server, chromium, state, width) as page:
        page.page.locator(".pathway .kept.low").first.wait_for()
        page.page.locator(".later", has_text="times as long").wait_for()
        inside = """([inner, outer]) => [...document.querySelectorAll(inner)].map((one) => {
          const text = document.createRange();
          text.selectNodeContents(one);  // its words, which may be wider than its box
          const drawn = one.tagName === 'svg' ? one : text;
          const [a, b] = [drawn, one.closest(outer)].map((each) => each.getBoundingClientRect());
          return [a.left - b.left, b.right - a.right];
        })"""
        lanes = page.page.evaluate(inside, [".lanes .when", ".panel"])
        assert len(lanes) == 3 and min(min(each) for each in lanes) > 8, lanes
        tracks = page.page.evaluate(inside, [".lanes .track", ".lanes"])
        assert all(each == pytest.approx(tracks[0]) for each in tracks)  # one finish for all
        boxes = page.page.evaluate(
            """() => [...document.querySelectorAll('.graph .node')].flatMap((node) => {
              const [box, text] = ['.box', 'text'].map((name) =>
                node.querySelector(name)?.getBoundingClientRect());
              return text ? [text.width / box.width] : [];
            })"""
        )
        assert len(boxes) == 4 and max(boxes) < 0.9, boxes
        gaps = page.page.evaluate(
            """() => [...document.querySelectorAll('.pathway:not(.head)')].map((row) => {
              const text = document.createRange();
              text.selectNodeContents(row.querySelector('.kept'));
              return row.querySelector('.remove').getBoundingClientRect().left
                - text.getBoundingClientRect().right;
            })"""
        )
        assert len(gaps) == 2 and min(gaps) >= 3, gaps
