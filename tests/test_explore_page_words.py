"""The page in a browser: what is drawn and said is true of the state that is shown."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any

import pytest

from neuralrace.explorer.trust import Trust
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
    told = result("predict", Trust(tmp_path), state=state)["gatings"]
    strength = {p["name"]: p["strength"][-1] for g in told.values() for p in g["pathways"]}
    assert strength["first"] < 0.5 * strength["all"]  # so that scales of their own would be seen
    found = {}
    with opened(server, chromium, {**state, "view": {"time": 1e3}}) as page:
        for gating, pathway in (("both", "all"), ("both", "first"), ("xor", "sample1")):
            page.page.locator(".tab", has_text=gating).click()
            line = page.page.locator(".graph .edge").filter(has_text=f"to {pathway}")
            line.wait_for()
            page.page.wait_for_timeout(300)
            found[pathway] = float(line.evaluate("line => line.style.strokeWidth"))
    thinnest = 0.8
    most = max(max(p["strength"]) for g in told.values() for p in g["pathways"])
    for pathway, width in found.items():
        assert width - thinnest == pytest.approx(3.4 * strength[pathway] / most, abs=0.01), found


@pytest.mark.browser
def test_a_message_goes_with_the_state_that_it_is_about(page):
    said = page.page.locator(".pointed")
    story(page, "Routing")
    said.get_by_text("These gates are on inputs, outputs or edges").wait_for()
    story(page, "Contexts")
    page.headline("^answer is")
    said.get_by_text("Click or drag on a strip to switch gates.").wait_for(timeout=5000)
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
