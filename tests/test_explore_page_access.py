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
    page.page.get_by_label(label, exact=True).wait_for(state="detached")
    keys.press("Control+z")
    page.page.get_by_label(label, exact=True).wait_for()
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
    page.settled()
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


def _focus(page: Page) -> str:
    """The name of the element that has the focus, after the page has drawn itself anew."""
    page.settled()
    return page.page.evaluate(
        "(e => e === document.body ? 'BODY' : (e.getAttribute('aria-label') "
        "|| e.textContent || e.title))(document.activeElement).trim()"
    )


@pytest.mark.browser
def test_the_focus_stays_where_one_works(page):
    keys = page.page.keyboard
    page.button("linear", ".tabs").click()
    assert _focus(page) == "linear"
    page.button("Add a pathway").click()
    page.page.get_by_label("Gates of path1: on for all samples").wait_for()
    assert _focus(page) == "Add a pathway"
    name = page.page.get_by_label("Name of the pathway path1")
    name.fill("odd")
    name.press("Enter")
    page.page.get_by_label("Gates of odd: on for all samples").wait_for()
    assert _focus(page) == "Name of the pathway odd"
    page.page.get_by_label("Name of the pathway odd").fill("even")
    keys.press("Tab")
    page.page.get_by_label("Gates of even: on for all samples").wait_for()
    assert _focus(page) == "Neurons of even"
    page.page.get_by_label("Remove the pathway even").click()
    page.page.get_by_label(re.compile("^Gates of even")).wait_for(state="detached")
    assert _focus(page).startswith("Remove the pathway")
    page.undo()
    assert _focus(page) == "Redo"

    page.page.locator(".gates .menu summary").click()
    page.page.get_by_role("button", name=re.compile("^Duplicate")).click()
    page.page.locator(".tab", has_text="_2").wait_for()
    assert _focus(page) == "Gatings…"
    page.page.locator(".gates .menu summary").click()
    field = page.page.get_by_label("Name of this gating")
    field.fill("mine")
    field.press("Enter")
    page.page.locator(".tab", has_text="mine").wait_for()
    assert _focus(page) == "Name of this gating"
    keys.press("Escape")
    page.page.locator(".lanes .who", has_text="xor").first.click()
    assert _focus(page).startswith("xor")
    page.page.get_by_label("Zoom in at the time shown").click()
    page.button("whole range").click()
    assert _focus(page) == "Zoom in at the time shown"
    page.page.locator(".legend button", has_text="linear").first.click()
    assert _focus(page).startswith("linear")

    page.page.locator("summary", has_text="Stories").click()
    page.page.get_by_role("button", name=re.compile("^XoR, from")).click()
    page.button("Next", ".story").click()
    page.button("Back", ".story").click()
    assert _focus(page) == "Next"
    page.page.get_by_label("Leave the story").click()
    assert _focus(page) == "Stories"
    page.check()


TITLES = ["Items in contexts", "Routing between domains", "Transitive inference"]


@pytest.mark.browser
def test_words_of_the_page(page):
    """No markup of the documentation; Δ by its sign, with what it means."""
    page.page.get_by_text("Δ: size of the coordinate that separates the answers").wait_for()
    page.button("Draw").click()
    page.page.locator(".phases", has_text="at Δ = 0.8165").wait_for()
    for title in TITLES:
        page.task(title)
        page.page.locator(".gates .menu summary").click()
        page.page.get_by_role("button", name=re.compile("^discover")).wait_for()
        assert "`" not in page.page.locator("body").inner_text(), title
        page.page.keyboard.press("Escape")
    page.check()


@pytest.mark.browser
def test_every_control_can_be_seen_on_a_phone(server, chromium):
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = Page(context.new_page(), server.address)
    for title in TITLES:
        page.task(title)
        for name in ("Copy as Python", "Save study", "Save picture", "Report"):
            box = page.button(name).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390, name
        sliders = page.page.locator(".task input[type=range]:visible")
        widths = sliders.evaluate_all("all => all.map(one => [one.ariaLabel, one.offsetWidth])")
        assert widths and all(width >= 60 for _, width in widths), widths
    page.check()
    context.close()
