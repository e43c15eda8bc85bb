"""The page in a browser: keyboard, sizes, themes, and names with markup."""

from __future__ import annotations

import re

import pytest

from tests.browser_help import Page


@pytest.mark.browser
def test_with_the_keyboard_alone(page):
    """Everything of the main loop is reached by Tab, and works without a mouse."""
    keys = page.page.keyboard
    seen: list[str] = []
    for _ in range(60):
        keys.press("Tab")
        seen.append(
            page.page.evaluate(
                "(e => e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent)"
                "(document.activeElement).trim()"
            )
        )
    for wanted in ("Stories", "Copy as Python", "Δ", "Δ, slider", "Gatings…", "Play the race"):
        assert any(name.startswith(wanted) for name in seen), wanted
    assert any(name.startswith("Gates of") for name in seen)
    assert any("Train" in name for name in seen)
    slider = page.page.get_by_label("Δ, slider").first
    slider.focus()
    before = page.page.get_by_label("Δ", exact=True).first.input_value()
    keys.press("ArrowRight")
    assert page.page.get_by_label("Δ", exact=True).first.input_value() != before
    strip = page.page.locator(".strip").first
    label = strip.get_attribute("aria-label")
    strip.focus()
    keys.press("End")
    keys.press("Space")
    page.page.wait_for_timeout(200)
    assert page.page.locator(".strip").first.get_attribute("aria-label") != label
    keys.press("Control+z")
    page.page.wait_for_timeout(200)
    assert page.page.locator(".strip").first.get_attribute("aria-label") == label
    page.page.get_by_label("Play the race").focus()
    keys.press("Enter")
    page.page.get_by_label("Pause the race").wait_for()
    keys.press("Enter")
    page.page.get_by_label("Play the race").wait_for()
    page.check()


@pytest.mark.browser
def test_names_with_markup_are_text(page, tmp_path):
    table = tmp_path / "<img src=x onerror=alert(1)>.csv"
    rows = "\n".join(f"{i % 5},{i % 3},<b>{'ab'[i % 2]}</b>,{i % 7}" for i in range(20))
    table.write_text("size,colour,<script>place,price\n" + rows + "\n")
    page.page.locator("input[type=file]").set_input_files(str(table))
    page.page.locator(".panel.task select").first.locator("option").first.wait_for(state="attached")
    page.page.wait_for_timeout(3000)
    assert page.page.locator(".panel img, .panel b b, .panel script").count() == 0
    page.check()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(server, chromium, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = Page(context.new_page(), server.address)
    wide, main = page.page.evaluate(
        "[document.documentElement.scrollWidth, "
        "document.querySelector('.main').getBoundingClientRect().bottom]"
    )
    assert wide == width
    if width == 1280:
        assert main <= 800  # task, gates and race without scrolling
    ground = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (bright < 60) == (scheme == "dark")
    page.check()
    context.close()
