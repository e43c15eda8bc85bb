"""Build the package and try it in clean environments: `python -m tools.release_check`.

Builds the wheel and the source archive, checks that the archive builds the same wheel and that the
wheel has the package alone and at most 2 MB, and installs it for every Python with the oldest and
the newest JAX that `pyproject.toml` allows, first alone and then with the extras of users.
`tools/smoke.py` says each time whether it works. Prints a table; the exit code is 1 where something
fails. Needs a package index, and some minutes and 1.5 GB of disk per environment, of which there is
one at a time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = Path(__file__).with_name("smoke.py")
EXTRAS = ("explore", "study")
"""The extras of users; `dev` and `docs` are for a checkout."""


@dataclass(frozen=True)
class Row:
    """What came of one environment: its versions, and one word for each try."""

    python: str
    asked: str
    jax: str
    alone: str
    extras: str
    seconds: float

    def __str__(self) -> str:
        cells = (self.python, self.asked, self.jax, self.alone, self.extras, f"{self.seconds:.0f}")
        return f"| {' | '.join(cells)} |"


def oldest_jax(project: dict) -> str:
    """The lower bound of JAX in the dependencies, such as "0.8"."""
    (found,) = (dep for dep in project["dependencies"] if re.match(r"jax\W", dep))
    return found.removeprefix("jax>=")


def supported(project: dict) -> list[str]:
    """The versions of Python that the classifiers name."""
    kinds = " ".join(project["classifiers"])
    return re.findall(r"Python :: (3\.\d+)", kinds)


def build(source: Path, folder: Path, *kinds: str) -> list[Path]:
    """Build `kinds` ("wheel", "sdist") of a source tree into a folder."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *targets]
    _run(command, cwd=source)
    return sorted(folder.iterdir())


def built(folder: Path) -> tuple[Path, bool]:
    """The wheel of this checkout, and whether the source archive builds the same one."""
    archive, wheel = sorted(build(ROOT, folder / "dist", "sdist", "wheel"), key=lambda f: f.suffix)
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    (again,) = build(source, folder / "again", "wheel")
    return wheel, again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


LARGEST = 2_000_000
"""Bytes that the wheel may have."""


def check_wheel(wheel: Path) -> None:
    """Raise where a wheel has more than the package and its metadata, or is too large."""
    with zipfile.ZipFile(wheel) as packed:
        folders = {name.split("/")[0] for name in packed.namelist()}
    others = {name for name in folders - {"neuralrace"} if not name.endswith(".dist-info")}
    if others:
        raise ValueError(f"the wheel also has {', '.join(sorted(others))}")
    if (size := wheel.stat().st_size) > LARGEST:
        raise ValueError(f"the wheel has {size / 1e6:.1f} MB, and may have {LARGEST / 1e6:.0f}")


def tried(python: str, jax: str | None, wheel: Path, folder: Path) -> Row:
    """Install a wheel in a clean environment and run the smoke test, alone and with extras."""
    begun = time.monotonic()
    version = _run([python, "-c", "import platform; print(platform.python_version())"]).strip()
    asked = "newest" if jax is None else f"oldest ({jax})"
    _run([python, "-m", "venv", str(folder)])
    own = str(folder / "bin" / "python")
    words, found = [], "–"
    for extras in ((), EXTRAS):
        name = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        pin = [] if jax is None else [f"jax=={jax}"]
        try:
            _run([own, "-m", "pip", "install", "--quiet", name, *pin])
            said = _run([own, "-I", str(SMOKE), "--extras", ",".join(extras)])
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"Python {version}, JAX {asked}:\n{error.stdout}\n{error.stderr}\n")
            words.append("fails")
        else:
            (found,) = re.findall(r"JAX (\S+)", said)
            words.append("works")
    shutil.rmtree(folder)
    return Row(version, asked, found, *words, time.monotonic() - begun)


def _run(command: list[str], cwd: Path | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def main(arguments: list[str]) -> int:
    """Build, try every environment, and print the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = [f"python{version}" for version in supported(project)]
    parser = argparse.ArgumentParser(description="Try a release in clean environments.")
    parser.add_argument("--python", nargs="+", default=pythons, help="interpreters to try")
    parser.add_argument("--jax", choices=["oldest", "newest"], help="only this one")
    chosen = parser.parse_args(arguments)
    versions = {"oldest": oldest_jax(project), "newest": None}
    with tempfile.TemporaryDirectory(prefix="neuralrace-release-") as there:
        wheel, same = built(Path(there))
        check_wheel(wheel)
        _say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB")
        _say(f"The source archive builds {'the same' if same else 'ANOTHER'} wheel.")
        _say("\n| Python | JAX | installed | alone | with extras | seconds |")
        _say("|---|---|---|---|---|---|")
        rows = []
        for python in chosen.python:
            for name in [chosen.jax] if chosen.jax else versions:
                rows.append(tried(python, versions[name], wheel, Path(there) / "environment"))
                _say(str(rows[-1]))
    return int(not same or any("fails" in (row.alone, row.extras) for row in rows))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
