"""The page in a browser: a story told by clicks alone, and the guided ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.browser_help import HOME


@pytest.mark.browser
def test_a_story_by_clicks_alone(page, tmp_path):
    """XoR: the winner changes at Δ = 0.8165; gates switch; networks train; Python agrees."""
    page.set("Δ", 0.81)
    page.headline(r"^xor is predicted to learn first")
    page.set("Δ", 0.82)
    page.headline(r"^linear is predicted to learn first")
    page.set("Δ", 0.4)
    page.headline(r"^xor is predicted to learn first")

    page.button("xor ★", ".tabs").click()
    strip = page.page.locator(".strip").first
    before = strip.get_attribute("aria-label")
    box = strip.bounding_box()
    page.page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    page.page.locator(".strip").first.and_(
        page.page.get_by_label(re.compile("on for samples 1, 4"))
    ).wait_for()
    assert before == "Gates of sample1: on for sample 1"
    page.page.locator(".pointed", has_text="sample1 is on").wait_for()
    page.button("Undo").click()
    page.page.get_by_label("Gates of sample1: on for sample 1").wait_for()

    page.page.locator(".more summary").filter(has_text="How it is trained").click()
    page.set("Steps", 300)
    page.set("Networks", 1)
    page.button("Train", ".panel.relu").click()
    page.page.locator(".legend", has_text="ReLU network").wait_for()
    page.button("Train again").wait_for()
    assert page.page.locator(".gate-map .cells .on").first.get_attribute("d")

    winner = page.headline(r"learn first")
    page.button("Copy as Python").click()
    page.page.locator("dialog .caption", has_text="Copied").wait_for()
    script = page.page.evaluate("navigator.clipboard.readText()")
    file = tmp_path / "race.py"
    file.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(HOME / "src")}
    run = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    first = re.search(r"at t = ([\d.]+)", winner)
    assert first is not None and first[1] in run.stdout
    page.check()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("story", "wins"), [("XoR", "xor"), ("Contexts", "answer"), ("Routing", "shared")]
)
def test_a_guided_story(page, story, wins):
    """Every step shows its text, its sliders and numbers, and no error."""
    page.page.locator("summary", has_text="Stories").click()
    page.page.get_by_role("button", name=re.compile(f"^{story}")).click()
    page.page.locator(".headline", has_text=re.compile(f"^{wins} is")).wait_for()
    panel = page.page.locator(".panel.story")
    steps = int(panel.get_by_text(re.compile(r"^1 of \d$")).inner_text()[-1])
    assert steps >= 3 and page.page.locator(".panel.task").is_hidden()
    assert panel.locator("input[type=range]").count() >= 1
    titles = set()
    for step in range(1, steps + 1):
        panel.get_by_text(f"{step} of {steps}", exact=True).wait_for()
        titles.add(panel.locator("h3").inner_text())
        assert len(panel.locator(".story-text").inner_text()) > 80
        for action in panel.locator(".act").all():
            action.click()
        if panel.get_by_role("button", name="Add the aligned gates").count():
            page.page.locator(".tab", has_text="aligned_rounded").wait_for()
        if "A contest that is right" in titles:
            kept = panel.get_by_text("A ReLU network would keep the gates of by_answer.")
            kept.wait_for()
        assert page.page.locator(".headline.bad, .toast.bad:visible").count() == 0
        panel.get_by_role("button", name="End" if step == steps else "Next").click()
    assert len(titles) == steps
    page.page.locator(".panel.task").wait_for()
    page.check()
