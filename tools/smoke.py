"""Does an installed package work? `python smoke.py [--extras NAMES]`, in half a minute.

Copied into an empty folder, it runs the installed package and not a checkout. Without `--extras`
it tries what needs no extra; `--extras explore,study` also tries those two. Each check prints one
line, and the first that fails ends the run with its traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

DATA = [
    "cli/citations.bib",
    "explorer/web/index.html",
    "explorer/web/app.js",
    "explorer/web/explorer.css",
    "plot/neuralrace.mplstyle",
    "py.typed",
    "reduction/web/race.html",
    "reduction/web/race.js",
    "report/assets/page.css",
    "report/assets/page.js",
    "report/assets/uPlot.LICENSE",
    "report/assets/uPlot.iife.min.js",
    "report/assets/uPlot.min.css",
    "report/templates/page.html",
    "study/templates/new.toml",
]
"""Files that the package reads and that are no Python."""

STUDY = """
title = "Smoke"
questions = ["contest"]
[task]
builtin = "extended_xor"
parameters = { delta = 0.4 }
[network]
widths = 8
scale = 1e-3
[gatings.xor]
each = "sample"
[gatings.linear]
masks = { positive = "y > 0", negative = "y < 0" }
"""


def data_files() -> str:
    """Files beside the code are in the package, and licences in its metadata."""
    root = resources.files("neuralrace")
    missing = [name for name in DATA if not root.joinpath(name).is_file()]
    assert not missing, missing
    licences = [str(file) for file in metadata.files("neuralrace") or [] if "licenses" in str(file)]
    assert any(name.endswith("/LICENSE") for name in licences), licences
    assert any(name.endswith("/uPlot.LICENSE") for name in licences), licences
    return f"{len(DATA)} files, {len(licences)} licences"


def public_names() -> str:
    """Every public name can be imported, and leaves JAX's precision alone."""
    import jax

    import neuralrace as nr

    for name in nr.__all__:
        getattr(nr, name)
    assert not jax.config.jax_enable_x64
    return f"{len(nr.__all__)} names; JAX {jax.__version__}"


def theory() -> str:
    """A contest has the winner that the closed forms give; a race ends where it should."""
    import numpy as np

    import neuralrace as nr

    data = nr.tasks.extended_xor(0.4)
    found = nr.contest(
        {
            "xor": nr.tasks.xor_pathways(data, total=64),
            "linear": nr.tasks.linear_pathways(data, total=64),
        },
        scale=1e-3,
    )
    assert found.winner == "xor", found
    race = nr.reduce(*nr.tasks.xor_pathways(data))
    assert race.is_decoupled
    solved = race.solve(times=np.linspace(0, 60, 5), start=1e-3)
    assert solved.loss[-1] < 1e-3 * solved.loss[0], solved.loss
    return f"{found.winner} first; {len(race.blocks)} blocks"


def training() -> str:
    """A network that is trained follows the race that starts from its weights."""
    import jax

    import neuralrace as nr

    jax.config.update("jax_enable_x64", True)
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
    net = nr.GDLN(arch)
    weights = net.init(0, scale=1e-3)
    run = nr.train(net, weights, data, learning_rate=0.1, steps=400, record_every=20)
    race = nr.reduce(arch, data)
    predicted = race.solve(times=run.time, start=race.start(weights), learning_rate=0.1)
    apart = nr.compare(run, predicted)
    assert run.loss[-1] < run.loss[0] / 10, run.loss
    assert apart.max < 0.02, apart
    run.save("run.nc")
    assert (nr.load("run.nc").loss == run.loss).all()
    return str(apart)


def report_page() -> str:
    """A report is one page that needs nothing beside it."""
    from neuralrace import report

    curve = report.Curve("loss", (0.0, 1.0, 2.0), (1.0, 0.5, 0.1))
    section = report.Section("Learning", [report.Text("A curve."), report.Curves((curve,))])
    path = report.write(report.Page(title="Smoke", sections=[section]), "page")
    text = path.read_text(encoding="utf-8")
    assert "uPlot" in text
    return f"{len(text) // 1000} kB"


def images() -> str:
    """The images that need no file are there."""
    import neuralrace as nr

    digits = nr.tasks.images("digits")
    assert len(digits.train) > 1000 and digits.classes == 10
    return f"images of shape {digits.train.shape}"


def command_line() -> str:
    """The command is installed, knows its version, and says where the papers' commands are."""
    version = neuralrace("--version").split()[-1]
    assert version == metadata.version("neuralrace"), version
    moved = subprocess.run([command(), "list"], capture_output=True, text=True)
    assert moved.returncode == 1 and "python -m papers list" in moved.stderr, moved
    assert importlib.util.find_spec("papers") is None
    assert "@" in neuralrace("cite")
    return version


def no_extras() -> str:
    """Without an extra, what needs it says how to install it."""
    import neuralrace as nr

    if importlib.util.find_spec("pydantic") or importlib.util.find_spec("anywidget"):
        return "left out: packages of the extras are here"
    Path("study.toml").write_text(STUDY)
    fixes = []
    for asked in (lambda: nr.Study.load("study.toml"), nr.explore):
        try:
            asked()
        except nr.NeuralRaceError as error:
            fixes.append(error.fix)
    assert len(fixes) == 2 and all("pip install" in fix for fix in fixes), fixes
    return "two errors with their fix"


def study() -> str:
    """A study is checked and run, and its report written; a store of a sweep can be opened."""
    import dask_jobqueue  # noqa: F401
    import distributed  # noqa: F401
    import zarr  # noqa: F401

    Path("study.toml").write_text(STUDY)
    neuralrace("check", "study.toml")
    said = json.loads(neuralrace("run", "study.toml", "--out", "out", "--json"))
    assert Path("out/index.html").is_file()
    return f"a report, and JSON with {len(said)} keys"


def explore() -> str:
    """The explorer starts, shows its page to who has the address, and to nobody else."""
    import neuralrace as nr

    nr.explore()
    server = subprocess.Popen(
        [command(), "explore", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        said = server.stdout.readline()
        (address,) = re.findall(r"http://\S+", said)
        for name in ("", "web/page.js", "web/vendor/uplot.js", "web/vendor/uPlot.LICENSE.txt"):
            with urllib.request.urlopen(address + name, timeout=20) as answer:
                assert answer.status == 200 and answer.read(), name
        try:
            urllib.request.urlopen(address.rsplit("/", 2)[0] + "/", timeout=20)
        except urllib.error.HTTPError as error:
            return f"four files; {error.code} without the token"
        raise AssertionError("the page is shown without its token")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


# ---- running ------------------------------------------------------------------------------------


def command() -> str:
    """The command `neuralrace` of the environment that runs this script."""
    return str(Path(sysconfig.get_path("scripts")) / "neuralrace")


def neuralrace(*arguments: str) -> str:
    """What the command prints; an error if it fails."""
    done = subprocess.run([command(), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


CORE = [data_files, public_names, theory, training, report_page, images, command_line]
EXTRAS: dict[str, Callable[[], str]] = {"explore": explore, "study": study}


def main(arguments: list[str]) -> None:
    """Run the checks in an empty folder, and print one line for each."""
    parser = argparse.ArgumentParser(description="Try the installed neuralrace.")
    parser.add_argument("--extras", default="", help="extras that are installed: explore,study")
    extras = [name for name in parser.parse_args(arguments).extras.split(",") if name]
    checks = [*CORE, *(EXTRAS[name] for name in extras)] + ([] if extras else [no_extras])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for check in checks:
            sys.stdout.write(f"{check.__name__}: {check()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
