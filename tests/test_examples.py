"""Every script of examples/ runs, says what it should, and is listed where people look."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))

SAYS = {
    "own_task": "4 independent blocks, all of them scalar modes; exact",
    "own_graph": r"B_{1} &= \left(- D B_{1}^{3} + S\right) B_{1}^{2}",
    "own_gating": "a pathway per rule is predicted to learn first",
    "phase_diagram": "by the bits below a cue of 0.816497, by the cue above",
    "explain_my_relu_network": "4 pathways in h",
    "every_verb": "gates found",
    "learned_gates": "context 0 gets pathway",
    "explain_my_torch_network": "no gated network was trained to follow",
}


@pytest.fixture(autouse=True)
def _precision():
    x64 = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", x64)


def test_there_is_a_word_to_look_for_in_each():
    assert {script.stem for script in SCRIPTS} == set(SAYS)


SLOW = {"every_verb", "phase_diagram"}
EACH = [
    pytest.param(script, id=script.stem, marks=[pytest.mark.slow] if script.stem in SLOW else [])
    for script in SCRIPTS
]


@pytest.mark.parametrize("script", EACH)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "pictures")])
    names = runpy.run_path(str(script), run_name="__main__")
    assert SAYS[script.stem] in capsys.readouterr().out
    picture = tmp_path / "pictures" / f"{script.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    if script.stem == "own_task":
        import neuralrace as nr

        assert nr.compare(names["run"], names["sol"]).max < 1e-3
    if script.stem == "own_gating":
        assert names["found"].times["one pathway"] == float("inf")
    if script.stem == "learned_gates":
        assert names["measured"] == pytest.approx(names["found"].growth[0], rel=0.01)
        assert names["run"].time[names["half"]] == pytest.approx(names["predicted"], rel=0.1)


@pytest.mark.slow
def test_a_users_script_passes_the_type_checker_in_strict_mode(tmp_path):
    """The public signatures are precise enough that no type is unknown."""
    settings = {
        "include": [str(ROOT / "examples" / "every_verb.py")],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(project)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_examples_are_short_and_listed():
    page = (ROOT / "docs/examples.md").read_text()
    for script in SCRIPTS:
        assert len(script.read_text().splitlines()) <= (70 if script.stem == "every_verb" else 45)
        assert f"examples/{script.name})" in page
