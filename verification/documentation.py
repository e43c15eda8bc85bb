"""Claims about the documentation and the release: the site in a browser, examples, environments."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

from docs import api
from tools import browse, links
from verification.claim import Measurement, claim

SECTION = "Documentation and release"
TOP = "everything"
ROOT = Path(__file__).parent.parent
TRIALS = ROOT / "docs/trials.json"
"""What newcomers asked, how long they took, and what stood in their way."""

WORDS = """
PyTorch, torch, state_dict, SGD, minibatch, Adam, cross-entropy, softmax, momentum, weight decay,
test set, held-out, accuracy, MNIST, recurrent, RNN, convolution, SLURM, pandas, DataFrame, figsize,
SVG, BibTeX, notebook, Jupyter, widget, slider, animation, Colab, FAQ, glossary, self-consistent,
error bar, PyPI, Windows, macOS
"""
"""What new users searched for."""

MINUTES = 30
"""The most minutes until a newcomer has a right answer."""


@cache
def site() -> tuple[Path, str]:
    """The site, built anew, and what was said while it was built: its warnings."""
    folder = Path(tempfile.mkdtemp()) / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return folder, done.stdout + done.stderr


@claim(
    SECTION,
    "the site, built anew: warnings, and internal links that lead nowhere",
    "none",
    slow=True,
)
def built(full: bool) -> Measurement:
    folder, said = site()
    warnings = len(said.splitlines())
    dead = links.dead_in_sources() + links.dead_in_site(folder)
    return Measurement(f"{warnings} warnings, {len(dead)} dead links", not warnings and not dead)


@claim(
    SECTION,
    "every page of the site in a browser (chromium) at 1280 and 390 pixels, light and dark: pages "
    "wider than the window, missing pictures, errors of scripts",
    "none",
    slow=True,
)
def in_a_browser(full: bool) -> Measurement:
    folder, _ = site()
    names = browse.pages(folder)
    with browse.served(folder) as address, browse.browser() as chromium:
        wrong = browse.faults(chromium, address, names)
    note = "; ".join(wrong[:3])
    return Measurement(f"{len(wrong)} faults of {len(names)} pages", not wrong, note)


@claim(
    SECTION,
    "words that new users searched for and did not find in version 0.1.0, with the search of the "
    "site in a browser",
    "each finds a page",
    slow=True,
)
def words_are_found(full: bool) -> Measurement:
    wanted = [" ".join(word.split()) for word in WORDS.split(",")]
    folder, _ = site()
    with browse.served(folder) as address, browse.browser() as chromium:
        found = browse.hits(chromium, address, wanted)
    lost = [word for word, count in found.items() if not count]
    return Measurement(f"{len(found) - len(lost)} of {len(found)}", not lost, ", ".join(lost))


@claim(SECTION, "public classes and functions without an example", "none")
def examples(full: bool) -> Measurement:
    bare = []
    count = 0
    for room in api.ROOMS:
        module = import_module(f"neuralrace.{room}")
        for name in api.public(room):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                count += 1
                bare += [f"{room}.{name}"] * (">>>" not in (inspect.getdoc(value) or ""))
    return Measurement(f"{len(bare)} of {count}", not bare, ", ".join(bare[:5]))


@claim(
    SECTION,
    "newcomers with tasks that are in no page (a theorist's, a neuroscientist's with PyTorch, a "
    "teacher's), from the README alone: minutes until an answer that an independent check confirms",
    f"at most {MINUTES} each",
)
def trials(full: bool) -> Measurement:
    told = json.loads(TRIALS.read_text())
    text = "; ".join(f"{each['who']} {each['minutes']}" for each in told)
    fine = all(each["right"] and each["minutes"] <= MINUTES for each in told)
    return Measurement(text, fine and len({each["who"] for each in told}) >= 3)


@claim(
    SECTION,
    "the wheel, and the same one built from the source archive, in clean environments: each Python "
    "of the classifiers with the oldest and the newest JAX, alone and with the extras of users",
    "all pass a smoke test",
    slow=True,
)
def released(full: bool) -> Measurement:
    command = [sys.executable, "-m", "tools.release_check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    rows = re.findall(r"^\| (3\S+) \| (.*?) \| (\S+) \| (\w+) \| (\w+) \|", done.stdout, re.M)
    text = "; ".join(f"{p} with JAX {jax}: {alone}/{extras}" for p, _, jax, alone, extras in rows)
    return Measurement(text, done.returncode == 0 and bool(rows))
