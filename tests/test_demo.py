"""The demo: one small arc for all tests, what is said of it, and the page."""

import re

import jax
import numpy as np
import pytest
from click.testing import CliRunner

import neuralrace as nr
from neuralrace import cli
from neuralrace.demo import arc, main, pictures, sentences
from neuralrace.demo.arc import members
from neuralrace.demo.page import Part, Step, page
from neuralrace.trajectory import crossing_time
from tests.test_errors import says

DELTA = 1.2


@pytest.fixture(scope="module")
def found():
    data = nr.tasks.extended_xor(DELTA)
    gatings = main.xor_gatings(DELTA, 32)
    return arc(
        "Δ = 1.2",
        data,
        gatings,
        hidden=32,
        scale=1e-3,
        learning_rate=0.1,
        steps=200,
        record_every=2,
        key=jax.random.key(0),
        most=3,
    )


@pytest.fixture(scope="module")
def phases():
    return nr.phase_diagram(
        lambda delta: main.xor_gatings(delta, 32), "Δ", [0.5, 1.0, 1.5], scale=1e-3
    )


# ---- what the arc holds -------------------------------------------------------------------------


def test_the_winner_is_the_one_that_theory_names(found):
    """Above √(2/3) the linear gating grows faster (MHS Eq. 26): rates Δ/2 and √(1/8 + Δ²/16)."""
    assert (found.winner, found.second) == ("linear", "XoR")
    growth = found.contest.strengths
    assert growth["linear"] == pytest.approx(DELTA / 2)
    assert growth["XoR"] == pytest.approx(np.sqrt(1 / 8 + DELTA**2 / 16))


def test_the_prediction_is_of_the_weights_that_were_trained(found):
    assert max(c.max for c in found.theory) < 1e-3
    one, two = (p.loss for p in found.predicted)
    assert np.abs(one - two).max() > 1e-2  # two starts, two predictions
    net, weights = found.gated.net, members(found.gated)[0]
    again = net.init(jax.random.split(jax.random.split(jax.random.key(0))[1], 2)[0], 1e-3)
    data = found.contest.candidates["linear"][1]
    assert float(net.loss(again, data)) == pytest.approx(float(weights.loss[0]), abs=1e-15)


def test_the_gates_found_are_those_of_the_winner(found):
    positive = nr.tasks.extended_xor(DELTA).y["y"][:, 0] > 0
    assert found.recovered == (2, 2, 2)
    patterns = found.found.patterns["h"] > 0.5
    assert any((row == positive).all() for row in patterns)
    assert (found.prototypes["positive"] == positive).all()


def test_the_floor_is_another_seed(found):
    first, second = members(found.relu)
    both = nr.compare(first, second).mean, nr.compare(second, first).mean
    assert found.floor == pytest.approx(np.mean(both))


def test_times_to_a_level():
    loss = np.array([[1.0, 0.5, 0.0], [1.0, 0.9, 0.8], [0.1, 0.1, 0.1]])
    run = nr.Trajectory([0, 2, 4], loss, axes={"seed": [0, 1, 2]})
    np.testing.assert_allclose(crossing_time(run.time, run.loss, 0.25), [3.0, np.nan, 0.0])


def small(base=None, gatings=None, **changes):
    """An arc that does as little as it can."""
    settings = {"hidden": 16, "scale": 1e-2, "learning_rate": 0.1, "steps": 60, "most": 2}
    base = nr.tasks.extended_xor(DELTA) if base is None else base
    gatings = main.xor_gatings(DELTA, 16) if gatings is None else gatings
    return arc("small", base, gatings, key=jax.random.key(0), **(settings | changes))


def test_with_one_seed_the_rest_is_said():
    found = small(seeds=1)
    assert found.floor is None and found.certificates[0].floor is None
    told = " ".join(
        of(found)
        for of in (sentences.on_contest, sentences.on_prediction, sentences.on_certificate)
    )
    assert "One ReLU network of the same scale is" in told
    assert "each other" not in told and "two seeds" not in told and "nan" not in told
    assert "not the same function to the last digit" in told


def test_what_an_arc_cannot_do():
    with says("no candidate reaches", got="never", wanted="criterion=1e-30", fix="relative=True"):
        small(criterion=1e-30)
    task = nr.tasks.extended_xor(DELTA)
    apart = nr.Dataset({"a": task.x["x"][:, :2], "b": task.x["x"][:, 2:]}, task.y)
    with says("one input and one output", got="'a', 'b'", wanted="'x' alone", fix="np.hstack"):
        small(apart)
    one = {"linear": nr.tasks.linear_pathways(task, 16)}
    with says("a winner and a second", got="'linear'", wanted="at least two", fix="another gating"):
        small(gatings=one)


# ---- what is said -------------------------------------------------------------------------------


def test_sentences_have_the_numbers_measured(found):
    text = sentences.on_prediction(found)
    assert "The linear gating reduces to 2 independent scalar modes, exactly" in text
    away = np.mean([c.mean for c in found.follows])
    assert f"are {sentences.percent(away)} from the prediction" in text
    assert f"{sentences.percent(found.floor)} from each other" in text
    text = sentences.on_contest(found)
    assert f"at t = {found.contest.times['linear']:.4g}" in text
    assert "exactly the 2 patterns of the linear gating" in sentences.on_gates(found)
    own = np.mean([c.outputs_mean for c in found.certificates])
    other = np.mean([c.floor.outputs_mean for c in found.certificates])
    assert f"{own / other:.2g} times as far" in sentences.on_certificate(found)


def test_percent():
    assert [sentences.percent(v) for v in (0.5, 0.0951, 0.1, 0.0123, 2e-7)] == [
        "50 %",
        "9.5 %",
        "10 %",
        "1.2 %",
        "less than 0.0001 %",
    ]


def test_a_sentence_over_the_parameter(phases):
    deltas = np.array([0.5, 1.5])
    fast = np.array([min(t[k] for t in phases.times.values()) for k in (0, 2)])
    slow = np.array([max(t[k] for t in phases.times.values()) for k in (0, 2)])
    times = np.stack([fast * 1.02, fast * 0.9, slow], axis=1)
    text = sentences.on_phases(phases, deltas, times)
    assert "from XoR to linear at Δ = 0.8165" in text
    assert "Of 6 ReLU networks trained at 2 values of Δ, 4 are nearer" in text


# ---- pictures and page --------------------------------------------------------------------------


def test_the_picture_of_the_losses(found):
    import matplotlib.pyplot as plt

    ax = pictures.losses(found, ax=plt.subplots()[1])
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"ReLU networks", "gated networks", "predicted", "runner-up"} <= set(lines)
    drawn = lines["predicted"].get_ydata()
    np.testing.assert_allclose(drawn, np.mean([p.loss for p in found.predicted], axis=0))


def test_an_equation_that_can_be_drawn(found):
    text = pictures._equation(found.equations)
    assert text is not None and r"S = \frac{6}{5}, D = \frac{36}{25}" in text
    assert pictures._equation("\\begin{aligned}\nx \\\\\ny\n\\end{aligned}") is None


def test_the_page_needs_nothing_beside_it_and_escapes_text():
    step = Step("One", "a < b?", {"XoR": "<b>no</b> & yes"}, b"PNG", {"more": "x > y"})
    text = page(b"PNG", [Part("XoR", "about", [step])], "made")
    assert "&lt;b&gt;no&lt;/b&gt; &amp; yes" in text and "x &gt; y" in text
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == []
    assert "{" not in re.sub(r"<style>.*</style>", "", text, flags=re.DOTALL)


@pytest.mark.slow
def test_the_demo_writes_its_report(found, phases, tmp_path, monkeypatch):
    """The command end to end; the arcs, tested above, are put in ready-made."""
    import matplotlib.pyplot as plt

    times = np.full((2, 1), 10.0)
    monkeypatch.setattr(main, "xor_phases", lambda s: (phases, np.array([0.5, 1.5]), times))
    monkeypatch.setattr(main, "xor_arc", lambda s, delta: found)
    monkeypatch.setattr(main, "contextual_arc", lambda s: found)
    monkeypatch.setattr(main, "png", lambda figure: plt.close(figure) or b"PNG")
    result = CliRunner().invoke(cli.commands, ["demo", "--quick", "--out", str(tmp_path / "demo")])
    assert result.exception is None, result.exception
    report = tmp_path / "demo" / "report.html"
    assert report.resolve().as_uri() in result.output
    shown = report.read_text(encoding="utf-8")
    assert shown.count("data:image/png") == 9
    told = [line[2:] for line in result.output.splitlines() if line.startswith("• ")]
    assert any(sentences.on_certificate(found) in line for line in told)
    assert sentences.on_gates(found).replace("'", "&#x27;") in shown
    assert "\\begin{aligned}" in (tmp_path / "demo" / "equations.tex").read_text()


def test_the_settings_lie_on_either_side_of_the_crossover():
    for settings in (main.Settings(), main.QUICK):
        low, high = settings.deltas
        assert low < np.sqrt(2 / 3) < high
        assert settings.total % 4 == 0
        arch, _ = main.table.gated_network(settings.contextual, "gated", "sign")
        assert sum(arch.sizes[v] for v in arch.hidden) <= settings.contextual.hidden[0]
