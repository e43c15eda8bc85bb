"""The page in a browser: a table of one's own, its columns, diagrams and files."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

from tests.browser_help import Page, link
from tests.explorer_help import xor_state
from tests.test_explore_tables import TEXT


@pytest.fixture
def animals(page, tmp_path) -> Page:
    """The page with a table of animals, which was dropped."""
    table = tmp_path / "animals.csv"
    table.write_text(TEXT)
    page.page.locator("input[type=file]").set_input_files(str(table))
    page.page.locator(".panel.task", has_text="Read animals.csv").wait_for()
    page.headline("^(one|by_season) is")
    return page


def _drawn(page: Page, sentence: str) -> None:
    page.button("Draw").click()
    page.page.locator(".phases .caption", has_text=re.compile(sentence)).first.wait_for()


def _choose(page: Page, column: str, role: str) -> None:
    page.page.locator(".columns").get_by_label(column, exact=True).select_option(label=role)


# ---- the phase diagram --------------------------------------------------------------------------


@pytest.mark.browser
def test_a_diagram_covers_the_slider_and_says_which_range_it_covers(server, chromium):
    """At 0.5 of the initial loss the diagram has a place, and no answer for values not drawn."""
    from playwright.sync_api import expect

    state = xor_state(contest={"criterion": 0.5, "relative": True})
    context = chromium.new_context()
    page = Page(context.new_page(), server.address + "#" + link(state))
    slider = page.page.get_by_label("Criterion, slider")
    page.page.get_by_label("over", exact=True).select_option(value="contest.criterion")
    for word, side, end in (("From", "min", "0.01"), ("To", "max", "0.99")):
        expect(page.page.get_by_label(f"{word} this value of the first number")).to_have_value(end)
        assert slider.get_attribute(side) == end
    _drawn(page, "^xor is first for criterion from 0.01 to 0.99")
    outside = page.page.locator(".phases .outside")
    assert outside.is_hidden() and page.page.locator(".phases .playhead").is_visible()
    page.set("To this value of the first number", 0.4)
    _drawn(page, "^xor is first for criterion from 0.01 to 0.4")
    outside.get_by_text("= 0.5, outside the range that is drawn (0.01 to 0.4)").wait_for()
    assert page.page.locator(".phases .playhead").is_hidden()
    page.set("Criterion", 0.3)
    outside.wait_for(state="hidden")
    page.set("From this value of the first number", 0.9)
    page.page.locator(".toast", has_text="to a larger one").wait_for()
    page.check()
    context.close()


@pytest.mark.browser
def test_a_number_is_varied_once(page):
    first, second = (page.page.get_by_label(name, exact=True) for name in ("over", "and"))
    second.select_option(label="Initial σ")
    first.select_option(label="Initial σ")
    assert second.input_value() == ""
    page.settled()
    assert second.locator("option", has_text="Initial σ").is_disabled()
    assert second.locator("option", has_text="Δ").is_enabled()
    _drawn(page, "is first for σ from 1e-06 to 0.1")
    page.check()


@pytest.mark.browser
def test_the_number_of_a_studys_own_diagram_is_offered_over_its_range(server, chromium):
    diagram = {"key": "task.parameters.delta", "values": [0.7, 0.8, 0.9], "name": "gap"}
    own = xor_state(phase_diagram=diagram)
    context = chromium.new_context()
    page = Page(context.new_page(), server.address + "#" + link(own))
    assert page.value("over") == "task.parameters.delta"
    _drawn(page, "Drawn for Δ from 0.7 to 0.9")
    page.check()
    context.close()


# ---- a table ------------------------------------------------------------------------------------


@pytest.mark.browser
def test_columns_of_a_table_are_chosen(animals):
    sentence = animals.page.locator(".panel.task .caption", has_text="24 samples")
    sentence.get_by_text("output y of 1 number").wait_for()
    sentence.get_by_text("Inputs are standardised").wait_for()
    _choose(animals, "active", "target")
    animals.page.locator(".panel.task", has_text="output y of 2 numbers").wait_for()
    rows = animals.page.locator(".row-names span")
    named = ["size", "night", "season summer", "season winter", "active", "hunts"]
    assert rows.all_inner_texts() == named
    _choose(animals, "hunts", "left out")
    _choose(animals, "active", "left out")
    animals.page.locator(".toast", has_text="at least one target").wait_for()
    assert animals.page.locator(".columns").get_by_label("active").input_value() == "target"
    _choose(animals, "animal", "label")
    animals.page.locator(".panel.task", has_text="Labels: animal, night and season").wait_for()
    animals.page.get_by_label("standardise inputs").uncheck()
    animals.page.locator(".panel.task", has_text="standardised").wait_for(state="detached")
    animals.check()


@pytest.mark.browser
def test_the_scale_of_a_column_is_a_slider_and_an_axis(animals):
    """A diagram of a table shows its own candidates, also after one of another task."""
    animals.task("Extended XoR")
    _drawn(animals, "Drawn for Δ from 0 to 2")
    animals.page.locator(".phases .legend", has_text="linear").wait_for()
    animals.undo(lambda: animals.page.get_by_label("scale of size", exact=True).count() > 0)
    before = animals.headline("^(one|by_season) is")
    animals.set("scale of size", 0.2)
    animals.page.locator(".headline").filter(has_not_text=before).wait_for()
    animals.page.get_by_label("over", exact=True).select_option(label="scale of size")
    _drawn(animals, "scale of size from 0 to 2")
    animals.page.locator(".phases .legend", has_text="by_season").wait_for()
    assert animals.page.locator(".phases .legend", has_text="linear").count() == 0
    assert animals.page.locator(".phases .outside").is_hidden()
    animals.check()


@pytest.mark.browser
def test_unequal_totals_of_neurons_are_said_and_made_equal(animals):
    totals = animals.page.locator(".totals")
    assert totals.is_hidden()
    animals.page.locator(".tab", has_text="one").first.click()
    animals.button("Add a pathway").click()
    totals.get_by_text("one 200 and by_season 100").wait_for()
    animals.button("Add a pathway").click()
    totals.get_by_text("one 300 and by_season 100").wait_for()
    animals.button("Give each 100").click()
    totals.wait_for(state="hidden")
    widths = [field.input_value() for field in animals.page.locator(".pathway .number").all()]
    assert sorted(widths) == ["33", "33", "34"]
    animals.check()


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.browser
def test_a_saved_study_with_its_table_is_opened_again(animals, tmp_path):
    _choose(animals, "active", "target")
    animals.page.locator(".panel.task", has_text="output y of 2 numbers").wait_for()
    animals.settled()
    told = animals.headline("^(one|by_season) is")
    with animals.page.expect_download() as saved:
        animals.button("Save study").click()
    assert saved.value.suggested_filename == "study.zip"
    saved.value.save_as(tmp_path / "study.zip")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "study.zip").read_bytes())) as archive:
        archive.extractall(tmp_path)
    field = animals.page.locator("input[type=file]")
    study, table = (str(tmp_path / name) for name in ("study.toml", "files/animals.csv"))
    for files in ([str(tmp_path / "study.zip")], [study, table]):
        animals.task("Parity")
        animals.page.locator(".headline").filter(has_not_text=told).wait_for()
        field.set_input_files(files)
        animals.page.locator(".headline", has_text=told).wait_for()
    field.set_input_files([table])
    animals.page.locator(".panel.task", has_text="Read animals.csv").wait_for()
    animals.page.locator(".headline").filter(has_not_text=told).wait_for()
    field.set_input_files([study])  # its table is open
    animals.page.locator(".headline", has_text=told).wait_for()
    animals.task("Parity")
    field.set_input_files([study])
    animals.page.locator(".toast", has_text="together with its table").wait_for()
    animals.check()


@pytest.mark.browser
def test_sixteen_samples_are_numbered_and_rows_named(server, chromium, tmp_path):
    """Numbers of two digits are whole, and the legend of the saved picture ends inside of it."""
    lines = [f"i{k // 2},{'home' if k % 2 else 'away'},{k % 2},{k // 8}" for k in range(16)]
    (tmp_path / "things.csv").write_text("\n".join(["item,place,odd,late", *lines]))
    text = 'questions = ["contest"]\n[task]\nfile = "things.csv"\nx = ["item", "place"]\n'
    text += 'y = ["odd", "late"]\nlabels = ["item", "place"]\n[network]\nwidths = 8\n'
    name = "a_gating_with_a_name_that_is_quite_long"
    text += f'scale = 0.01\n[gatings.{name}]\neach = "place"\n'
    (tmp_path / "things.toml").write_text(text)
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = Page(context.new_page(), server.address)
    page.page.locator("input[type=file]").set_input_files(
        [tmp_path / "things.toml", tmp_path / "things.csv"]
    )
    page.headline(f"^{name} is predicted to reach the criterion at")
    numbers = page.page.locator(".samples .numbers span")
    numbers.nth(15).wait_for(state="attached")
    texts = numbers.all_inner_texts()
    assert [t for t in texts if t] == ["1", "5", "10", "15"] and texts[9] == "10"
    rows = page.page.locator(".row-names span").all_inner_texts()
    assert rows[:2] == ["item i0", "item i1"] and rows[-3:] == ["place home", "odd", "late"]
    with page.page.expect_download() as saved:
        page.button("Save picture").click()
    saved.value.save_as(tmp_path / "race.svg")
    drawn = context.new_page()
    drawn.goto((tmp_path / "race.svg").as_uri())
    right = "Math.max(...[...document.querySelectorAll('text')].filter("
    right += (
        f"t => t.textContent === '{name}, theory').map(t => t.getBBox().x + t.getBBox().width))"
    )
    assert 0 < drawn.evaluate(right) <= 510  # the panel of the loss is 900 − 390 wide
    page.check()
    context.close()
