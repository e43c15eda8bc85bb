"""Claims about the explorer: how quick it is in a browser, as its own test measures it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

from verification.claim import Measurement, claim

SECTION = "The explorer"

BOUNDS = {"Extended XoR": 100, "Items in contexts": 300, "Routing between domains": 300}
"""Milliseconds until the prediction is redrawn, by the title of the task."""

FRAME = 8
"""Milliseconds of script per animation frame."""

COMMAND = (
    *(sys.executable, "-m", "pytest", "-q", "-o", "log_cli=true", "-o", "log_cli_level=INFO"),
    *("tests/test_explore_page_sliders.py", "-k", "every_move"),
)


@claim(
    "explorer/browser",
    SECTION,
    "a key moves a slider in a browser (chromium) until the prediction is redrawn: Δ of extended "
    "XoR, the context scale of items in contexts, the criterion of routing; median of five moves",
    "XoR ≤ 100 ms, the others ≤ 300 ms; script per animation frame ≤ 8 ms in the median",
    timing=True,
    slow=True,
)
def in_a_browser(full: bool) -> Measurement:
    """The test sees to it that the page has no error, whatever the times are."""
    printed = subprocess.run(COMMAND, capture_output=True, text=True, check=True).stdout
    told = re.findall(r"\.py:\d+ (.+), median ms: (\{.*\})", printed)
    found = {task: ast.literal_eval(times) for task, times in told}
    text = "; ".join(f"{task} {times['redrawn']:.0f} ms" for task, times in found.items())
    script = max(max(times["script"], times["played"]) for times in found.values())
    quick = all(found[task]["redrawn"] <= bound for task, bound in BOUNDS.items())
    return Measurement(f"{text}; script {script:.1f} ms", quick and script <= FRAME)
