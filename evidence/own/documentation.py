"""Claims about the documentation and the release: the site in a browser, examples, environments."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docs import api
from evidence.promise import Measurement, claim
from neuralrace import NeuralRaceError
from tools import browse, links

SECTION = "Documentation and release"
ROOT = Path(__file__).parents[2]
TRIALS = ROOT / "docs/trials.json"
"""What newcomers asked, how long they took, and what stood in their way."""

WORDS = """
PyTorch, torch, state_dict, SGD, minibatch, Adam, cross-entropy, softmax, momentum, weight decay,
test set, held-out, accuracy, MNIST, recurrent, RNN, convolution, SLURM, pandas, DataFrame, figsize,
SVG, BibTeX, notebook, Jupyter, widget, slider, animation, Colab, FAQ, glossary, self-consistent,
error bar, PyPI, Windows, macOS
"""
"""What new users searched for."""

TRIAL: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "who": ("a word", lambda value: isinstance(value, str) and bool(value)),
    "minutes": ("a number above 0", lambda value: type(value) in (int, float) and value > 0),
    "right": ("true or false", lambda value: isinstance(value, bool)),
}
"""What every trial says, what that must be, and whether it is."""

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
    "documentation/site",
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
    "documentation/browser",
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
    "documentation/search",
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


@claim("documentation/examples", SECTION, "public classes and functions without an example", "none")
def examples(full: bool) -> Measurement:
    bare = []
    count = 0
    for room in api.ROOMS:
        module = import_module(f"neuralrace.{room}")
        for name in api.public(room):
            value = getattr(module, name)
            ours = getattr(value, "__module__", "").startswith("neuralrace")
            if ours and (inspect.isclass(value) or inspect.isfunction(value)):
                count += 1
                bare += [f"{room}.{name}"] * (">>>" not in (inspect.getdoc(value) or ""))
    return Measurement(f"{len(bare)} of {count}", not bare, ", ".join(bare[:5]))


def read_trials(path: Path) -> list[dict[str, Any]]:
    """The stored trials: who (a word), how many minutes, and whether the answer was right."""
    if not path.exists():
        raise NeuralRaceError(
            f"{path.name} is not there",
            got="no such file",
            wanted='a list of trials, such as [{"who": "theorist", "minutes": 20, "right": true}]',
            fix="store what newcomers did",
        )
    told = json.loads(path.read_text())
    if not isinstance(told, list) or not told:
        raise NeuralRaceError(
            f"{path.name} has no trials", got=told, wanted="a list", fix="one entry per newcomer"
        )
    for number, each in enumerate(told):
        for name, (wanted, fits) in TRIAL.items():
            value = each.get(name) if isinstance(each, dict) else None
            if not fits(value):
                raise NeuralRaceError(
                    f"trial {number} of {path.name} has no {name!r} that can be read",
                    got=repr(value),
                    wanted=wanted,
                    fix=f"correct it in {path.name}",
                )
    return told


@claim(
    "documentation/trials",
    SECTION,
    "newcomers with tasks that are in no page (a theorist's, a neuroscientist's with PyTorch, a "
    "teacher's), from the README alone: minutes until an answer that an independent check confirms",
    f"at most {MINUTES} each",
)
def trials(full: bool) -> Measurement:
    told = read_trials(TRIALS)
    text = "; ".join(f"{each['who']} {each['minutes']}" for each in told)
    fine = all(each["right"] and each["minutes"] <= MINUTES for each in told)
    note = (
        "Roles played by quick readers, once each: not a study with people, who read more slowly."
    )
    return Measurement(text, fine and len({each["who"] for each in told}) >= 3, note)


@claim(
    "documentation/wheel",
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
