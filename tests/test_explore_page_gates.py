"""The page in a browser: gatings made by hand."""

from __future__ import annotations

import re

import pytest

from tests.browser_help import Page, link
from tests.explorer_help import xor_state


@pytest.mark.browser
def test_a_gating_made_by_hand(page):
    """Duplicate, rename, add and remove pathways, other widths, paint by dragging and by label."""
    page.button("linear", ".tabs").click()
    page.page.locator(".gates .menu summary").click()
    page.page.get_by_role("button", name=re.compile("^Duplicate")).click()
    page.page.locator(".tab", has_text="linear_2").wait_for()
    page.page.locator(".gates .menu summary").click()
    name = page.page.get_by_label("Name of this gating")
    name.fill("mine")
    name.press("Enter")
    page.page.locator(".tab[aria-pressed=true]", has_text="mine").wait_for()
    page.page.keyboard.press("Escape")

    page.button("Add a pathway").click()
    page.page.get_by_label("Gates of path1: on for all samples").wait_for()
    pathway = page.page.get_by_label("Name of the pathway path1")
    pathway.fill("odd")
    pathway.press("Enter")
    box = page.page.get_by_label("Gates of odd: on for all samples").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 0.1 * box["width"], middle)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=6)
    page.page.mouse.up()
    page.page.get_by_label("Gates of odd: on for sample 4").wait_for()
    page.page.get_by_label("Switch gates by").select_option("positive")
    page.page.mouse.click(box["x"] + 0.4 * box["width"], middle)
    page.page.get_by_label("Gates of odd: on for samples 2–4").wait_for()

    width = page.page.get_by_label("Neurons of odd")
    before = page.page.locator(".lanes li", has_text="mine").locator(".when").inner_text()
    width.fill("999")
    width.press("Enter")
    lane = page.page.locator(".lanes li", has_text="mine").locator(".when")
    lane.filter(has_not_text=before).wait_for()
    page.page.get_by_label("Remove the pathway odd").click()
    page.page.get_by_label(re.compile("^Gates of odd")).wait_for(state="detached")
    page.undo()
    page.page.locator(".tab", has_text="mine").wait_for(state="detached")
    page.check()


@pytest.mark.browser
def test_a_ninth_gating(server, chromium):
    """The limit is said where the buttons are, before anything is asked of the server."""
    gatings = {f"g{k}": {"each": "sample", "hidden": 4 + k} for k in range(8)}
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = Page(context.new_page(), server.address + "#" + link(xor_state(gatings=gatings)))
    menu = page.page.locator(".gates .menu")
    full = menu.get_by_text("At most 8 gatings can race: remove one to add another.")
    menu.locator("summary").click()
    full.wait_for()
    for name in ("Duplicate", "whole", "aligned", "discover"):
        assert menu.get_by_role("button", name=re.compile(f"^{name}")).is_disabled(), name
    menu.get_by_role("button", name=re.compile("^Remove")).click()
    page.page.locator(".tab").nth(7).wait_for(state="detached")
    menu.locator("summary").click()
    assert full.count() == 0
    assert menu.get_by_role("button", name=re.compile("^Duplicate")).is_enabled()
    page.check()
    context.close()


@pytest.mark.browser
def test_a_pathway_that_is_on_for_no_sample(page):
    page.button("xor ★", ".tabs").click()
    told = page.page.locator(".gates .never")
    assert told.is_hidden()
    page.page.locator(".strip").first.focus()
    page.page.keyboard.press("Space")
    told.get_by_text("sample1 is on for no sample, so it learns nothing.").wait_for()
    assert "Switch a gate on, or remove the pathway" in told.inner_text()
    page.button("Undo").click()
    told.wait_for(state="hidden")
    page.check()
