"""The page in a browser: the race, trained networks and the phase diagram."""

from __future__ import annotations

import re

import pytest

import neuralrace as nr
from tests.browser_help import Page, Server, link
from tests.explorer_help import xor_state


@pytest.mark.browser
def test_a_chart_is_zoomed_and_clicked(page):
    page.settled()  # what comes later moves the chart
    over = page.page.locator(".race .u-over").first
    box = over.bounding_box()
    middle = box["y"] + box["height"] / 2
    assert page.button("whole range").is_disabled()
    page.page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.page.mouse.up()
    page.settled()
    assert page.button("whole range").is_enabled()
    page.button("whole range").click()
    page.settled()
    before = page.page.locator(".now").inner_text()
    page.page.mouse.click(box["x"] + 0.9 * box["width"], middle)
    page.page.locator(".now").filter(has_not_text=before).wait_for()
    assert page.page.locator(".lanes li.arrived").count() == 2
    page.button("Photo finish").click()
    page.page.locator(".now", has_text=before).wait_for()
    page.check()


@pytest.mark.browser
def test_what_belongs_to_an_earlier_state_says_so(page):
    """The lane of a network follows the criterion; a diagram of another state is marked."""
    page.page.locator(".more summary").filter(has_text="How it is trained").click()
    page.set("Steps", 400)
    page.set("Networks", 1)
    page.button("Train", ".panel.relu").click()
    page.button("Train again").wait_for()
    lane = page.page.locator(".lanes li", has_text="ReLU network").locator(".when")
    before = float(lane.inner_text().split("=")[1])
    page.button("Draw").click()
    page.page.locator(".phases .curves").wait_for()
    earlier = page.page.locator(".phases .earlier")
    page.set("Δ", 0.6)
    page.headline("^xor is")
    page.settled()
    assert earlier.is_hidden()  # Δ is what the diagram varies
    page.button("Undo").click()
    page.set("Criterion", 0.4)
    earlier.wait_for()
    page.page.locator(".panel.relu", has_text="criterion has changed").wait_for()
    lane.filter(has_not_text=f"{before:g}").wait_for()
    assert 0 < float(lane.inner_text().split("=")[1]) < before
    page.page.get_by_role("combobox", name="Task", exact=True).select_option(label="XoR")
    page.page.locator(".phases .curves").wait_for(state="hidden")
    assert earlier.is_hidden()
    page.check()


@pytest.mark.browser
def test_the_page_leads_with_the_relu_network_as_soon_as_its_wide_limit_is_there(server, chromium):
    """The race is shown at once; the network's time follows, and is that of the library."""
    state = xor_state(training={"learning_rate": 0.1, "steps": 300, "seeds": 1, "key": 3})
    context = chromium.new_context()
    page = Page(context.new_page(), server.address + "#" + link(state))
    own = lambda scale: nr.predict(
        nr.tasks.extended_xor(0.5), width=32, scale=scale, learning_rate=0.1, steps=300,
        criterion=0.4, neurons=500, networks=9, key=3,
    ).time_to(0.4).mean  # fmt: skip
    curve = page.page.locator(".race .legend", has_text="ReLU network, predicted")
    for scale in (1e-3, 1e-2):
        page.set("Initial σ", scale)
        page.page.wait_for_function(
            "(time) => document.querySelector('.foreseen').textContent.includes(time)",
            arg=f"t = {own(scale):.4g} (",
        )
        curve.wait_for()
    assert page.page.locator(".lanes li").count() == 2
    page.check()
    context.close()


@pytest.mark.browser
def test_steps_of_an_optimizer_are_not_drawn_on_the_time_of_the_prediction(server, chromium):
    adam = {"optimizer": {"name": "adam", "learning_rate": 0.01}, "steps": 50, "seeds": 1}
    context = chromium.new_context()
    page = Page(context.new_page(), server.address + "#" + link(xor_state(training=adam)))
    page.button("Train", ".panel.relu").click()
    page.page.locator(".panel.relu", has_text="counts steps, not time").wait_for()
    page.page.locator(".foreseen", has_text="left out").wait_for()  # it is known for descent
    assert page.page.locator(".lanes li", has_text="ReLU network").count() == 0
    assert page.page.locator(".legend", has_text="ReLU network").count() == 0
    context.close()


@pytest.mark.browser
def test_a_server_that_is_killed_and_comes_back(chromium):
    server = Server()
    server.start()
    try:
        context = chromium.new_context()
        page = Page(context.new_page(), server.address)
        page.page.locator(".more summary").filter(has_text="How it is trained").click()
        page.set("Steps", 20000)
        page.button("Train", ".panel.relu").click()
        page.page.locator(".status, .caption", has_text=re.compile("Training: [^0]")).wait_for()
        server.kill()
        page.page.locator(".lost", has_text="does not answer").wait_for()
        server.start()
        page.page.locator(".lost").wait_for(state="hidden")
        page.page.locator(".caption", has_text=re.compile("Training: [^0]")).wait_for()
        page.button("Stop", ".panel.relu").click()
        page.set("Δ", 1.5)
        page.headline(r"^linear is predicted")
        assert all("WebSocket" in error or "ERR_" in error for error in page.errors)
        context.close()
    finally:
        server.kill()


@pytest.mark.browser
def test_a_click_on_a_diagram_over_two_numbers_is_one_step(page):
    before = page.value("Δ"), page.value("Initial σ")
    page.page.get_by_label("and", exact=True).select_option(label="Initial σ")
    page.button("Draw").click()
    page.page.locator(".phases .caption", has_text="Click a cell").wait_for()
    assert page.button("Undo").is_disabled()
    cells = page.page.locator(".phase-map > svg")
    box = cells.bounding_box()
    cells.click(position={"x": 0.9 * box["width"], "y": 0.1 * box["height"]})
    page.headline("^linear is")
    after = page.value("Δ"), page.value("Initial σ")
    assert after[0] != before[0] and after[1] != before[1]
    page.button("Undo").click()
    page.headline("^xor is")
    assert (page.value("Δ"), page.value("Initial σ")) == before
    assert page.button("Undo").is_disabled()
    page.check()


@pytest.mark.browser
def test_curves_that_are_left_out_are_counted(page):
    """112 routes: the page draws twelve of their curves, and says so."""
    left_out = page.page.locator(".race .left-out")
    assert left_out.is_hidden()  # four pathways, all drawn
    page.task("Routing between domains")
    page.button("dedicated", ".tabs").click()
    left_out.get_by_text("The first 12 of 49 pathways are drawn.").wait_for()
    page.button("by mode").click()
    left_out.get_by_text("The strongest 12 of 112 modes are drawn.").wait_for()
    assert page.page.locator(".race .curves").nth(1).locator(".legend li").count() == 12
    page.check()
