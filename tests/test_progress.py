"""Progress: silent outside a terminal and for short work, a rate and the time left otherwise."""

import importlib
import io
import sys
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import progress as module
from neuralrace.progress import progress

NET = nr.GDLN(nr.Architecture.chain(2, 4, 1))
DATA = nr.Dataset({"x": [[1.0, 1.0], [1.0, -1.0]]}, {"y": [[1.0], [-1.0]]})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch) -> Terminal:
    """A terminal in place of the standard error, in which every wait is long enough for a bar."""
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    return terminal


def train(steps: int = 64) -> nr.Trajectory:
    return nr.train(
        NET, NET.init(jax.random.key(0), 0.1), DATA, learning_rate=0.1, steps=steps, record_every=2
    )


def flow() -> nr.Trajectory:
    return nr.flow(NET, NET.init(jax.random.key(0), 0.1), DATA, times=np.linspace(0, 6, 11))


def test_silent_outside_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    with progress(10, "work") as advance:
        advance(5)
    train()
    flow()
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


def test_a_terminal_shows_name_share_rate_and_time_left(monkeypatch):
    terminal = watched(monkeypatch)
    clock = SimpleNamespace(monotonic=map(float, count()).__next__)
    monkeypatch.setattr(module, "time", clock)
    with progress(8, "long work") as advance:
        for _ in range(4):
            advance(1)  # one a second
    shown = terminal.getvalue()
    assert "long work" in shown
    assert "1 steps/s" in shown
    assert "50 %" in shown
    assert ":" in shown, "the time that remains"


def test_short_work_shows_nothing(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    with progress(10, "short work") as advance:
        advance(10)
    assert "short work" not in terminal.getvalue()


def test_the_bar_goes_away_when_work_fails(monkeypatch):
    terminal = watched(monkeypatch)

    def work():
        with progress(10, "work") as advance:
            advance(1)
            raise KeyError("work")

    with pytest.raises(KeyError):
        work()
    assert terminal.getvalue().endswith(("\x1b[2K", "\x1b[?25h", "\r"))


@contextmanager
def listening(monkeypatch, where: str, seen: list):
    """Every advance of the progress that a module shows, and its total first."""

    @contextmanager
    def spy(total, what, unit="steps"):
        seen.append(total)
        with progress(total, what, unit) as advance:
            yield lambda amount: (seen.append(amount), advance(amount))

    monkeypatch.setattr(importlib.import_module(where), "progress", spy)
    yield


def test_descent_advances_by_all_its_steps(monkeypatch):
    terminal = watched(monkeypatch)
    seen = []
    monkeypatch.setattr("neuralrace.dynamics.loop.TRIAL", 1.0)  # a run of any length is long
    monkeypatch.setattr("neuralrace.dynamics.loop.SECONDS", 1e-6)
    with listening(monkeypatch, "neuralrace.dynamics.train", seen):
        train(steps=101)
    total, *amounts = seen
    assert total == sum(amounts) == 101
    assert len(amounts) > 10
    assert "gradient descent" in terminal.getvalue()
    assert "steps/s" in terminal.getvalue()


def test_an_ensemble_advances_by_the_steps_of_all_members(monkeypatch):
    watched(monkeypatch)
    seen = []
    with listening(monkeypatch, "neuralrace.dynamics.ensemble", seen):
        nr.train_ensemble(
            NET,
            DATA,
            key=jax.random.key(0),
            seeds=5,
            learning_rate=0.1,
            steps=10,
            members_at_once=2,
        )
    total, *amounts = seen
    assert total == sum(amounts) == 50


def test_a_flow_advances_by_about_one(monkeypatch):
    terminal = watched(monkeypatch)
    quiet = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", quiet)
        wanted = flow()
    seen = []
    with listening(monkeypatch, "neuralrace.dynamics.flow", seen):
        run = flow()
    total, *amounts = seen
    assert total == 1
    assert min(amounts) >= 0.0099
    assert 0.98 < sum(amounts) <= 1 + 1e-6
    assert "gradient flow" in terminal.getvalue()
    assert "of the time/s" in terminal.getvalue()
    assert quiet.getvalue() == ""
    np.testing.assert_allclose(run.loss, wanted.loss, rtol=1e-12)
