"""The page in a browser: its address, links, undo and redo."""

from __future__ import annotations

import pytest

from tests.browser_help import link


@pytest.mark.browser
def test_the_address_holds_the_state(page, server, chromium):
    page.set("Δ", 1.25)
    told = page.headline(r"^linear is predicted")
    page.page.wait_for_function("() => location.hash.length > 1")
    page.settled()
    link = page.page.url
    assert "#" in link and len(link) < 2000
    page.page.reload()
    page.page.get_by_label("Δ", exact=True).first.wait_for()
    assert page.headline(r"^linear is predicted") == told
    assert page.page.get_by_label("Δ", exact=True).first.input_value() == "1.25"
    page.page.goto("about:blank")
    page.page.goto(server.address + "#nonsense")
    page.page.locator(".toast", has_text="no state").wait_for()
    page.headline("xor is predicted")
    page.check()


@pytest.mark.browser
def test_a_state_that_is_too_large_for_the_address(page, tmp_path):
    """An address that would bring back an older state is cleared, and the page says so."""
    import random

    draw = random.Random(0)
    rows = "\n".join(",".join(f"{draw.random():.15f}" for _ in range(8)) for _ in range(1000))
    table = tmp_path / "größe (1).csv"
    table.write_text("a,b,c,d,e,f,g,h\n" + rows + "\n")
    page.set("Δ", 1.25)
    page.page.wait_for_function("() => location.hash.length > 1")
    page.page.locator("input[type=file]").set_input_files(str(table))
    page.page.locator(".toast", has_text="too large for the address").wait_for()
    assert "#" not in page.page.url
    page.page.locator(".panel.task", has_text="Read größe (1).csv").wait_for()


ODD = [
    {"task": 5},
    {"task": {"builtin": "extended_xor"}, "gatings": [1]},
    {"task": {"builtin": "extended_xor"}, "gatings": {"a": {"masks": 7}}},
    {"task": {"builtin": "nothing", "parameters": []}, "view": {"zoom": "x", "story": 3}},
    {
        "task": {"builtin": "extended_xor", "parameters": {"delta": "<b>1</b>"}},
        "gatings": {"<i>": {"masks": {"<b>": [1, "x", None]}, "hidden": "no"}},
        "view": {"time": "now", "zoom": [2, 1], "over": [5], "paint": {}, "log": 1},
    },
]


@pytest.mark.browser
@pytest.mark.parametrize("state", ODD)
def test_a_link_that_was_tampered_with(server, chromium, state):
    """The page says what is wrong, runs nothing, and goes on."""
    context = chromium.new_context()
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(server.address + "#" + link(state))
    told = opened.locator(".headline.bad, .message:visible, .toast.bad:visible").first
    told.wait_for(timeout=60_000)
    assert opened.locator("main b b, main i").count() == 0
    opened.get_by_role("combobox", name="Task", exact=True).select_option(label="XoR")
    opened.locator(".headline", has_text="xor is predicted").wait_for(timeout=60_000)
    assert errors == []
    context.close()


@pytest.mark.browser
def test_undo_in_a_field_and_after_a_drag(page):
    """Ctrl+Z undoes what a field has committed; a drag is one step, however slow."""
    field = page.page.get_by_label("Δ", exact=True).first
    first = field.input_value()
    page.set("Δ", 1.25)
    page.headline("^linear is")
    field.press("Control+z")
    page.headline("^xor is")
    assert field.input_value() == first

    box = page.page.get_by_label("Δ, slider").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    page.page.mouse.down()
    for share in (0.5, 0.6):
        page.page.mouse.move(box["x"] + share * box["width"], middle, steps=3)
        page.settled()
    page.page.mouse.up()
    assert field.input_value() != first
    page.button("Undo").click()
    page.settled()
    assert field.input_value() == first and page.button("Undo").is_disabled()
    page.check()
