"""Sentences and numbers of answers, where networks do not do what is usual."""

from types import SimpleNamespace

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.contests import PhaseDiagram
from neuralrace.contests.phases import Crossover
from neuralrace.explanation import Explanation, Row
from neuralrace.study import QUESTIONS
from neuralrace.study.answers.gates import Match, gates_and_curves
from neuralrace.study.answers.networks import against_prediction, remaining_error
from neuralrace.study.answers.phases import phase_sentences
from neuralrace.study.work import Work
from tests.test_errors import says
from tests.test_study import texts, xor

NO_ONE = SimpleNamespace(entrants={})


def phases(times, crossovers=()):
    """What sentences are made of, as `nr.phase_diagram` returns it."""
    table = {name: np.array(values, float) for name, values in times.items()}
    values = np.arange(len(next(iter(table.values()))), dtype=float)
    return PhaseDiagram(
        {"d": values},
        "gatings",
        table,
        crossovers,
        "start",
        "criterion",
        0.0,
        dict.fromkeys(map(float, values), NO_ONE),
    )


def test_networks_that_never_learn_are_counted_among_the_trained():
    trained = np.array([0.0, 1.0]), np.array([[1.0, np.nan], [2.0, 2.0]])
    said = phase_sentences(phases({"a": [1, 2], "b": [5, 5]}), trained)[1].text
    assert "Of 4 ReLU networks trained at 2 values of d, 3 reach the criterion" in said
    assert "3 are nearer to the time of the fastest gating" in said


def test_a_gating_that_never_learns_is_not_what_a_slow_network_is_near_to():
    trained = np.array([0.0]), np.array([[3.0]])
    said = phase_sentences(phases({"a": [1], "b": [np.inf]}), trained)[1].text
    assert "1 is nearer to the time of the fastest gating" in said


def test_one_gating_is_neither_fastest_nor_slowest():
    trained = np.array([0.0]), np.array([[3.0]])
    said = phase_sentences(phases({"a": [1]}), trained)[1].text
    assert "nearer" not in said and "200 %" in said


def test_a_range_without_a_winner_is_told_as_such():
    found = phases({"a": [1, np.inf]}, (Crossover(0.5, "a", None),))
    assert "from a to no gating at d = 0.5000" in phase_sentences(found, None)[0].text


def test_a_relative_criterion_is_that_of_the_task_at_each_value(tmp_path, monkeypatch):
    """The loss of answering zero changes with the task: half of it is another loss each time."""
    text = "import neuralrace as nr\n\n\ndef make(size=1.0):\n    data = nr.tasks.xor()\n"
    text += "    return nr.Dataset(data.x, {'y': size * data.y['y']}, labels=data.labels)\n"
    (tmp_path / "sized.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    study = xor(
        ["phase_diagram"],
        task={"python": "sized:make", "parameters": {"size": 1.0}},
        gatings={"xor": {"each": "sample"}},
        network={"widths": 16, "scale": 0.3},
        training={"steps": 100, "learning_rate": 0.2, "record_every": 1},
        contest={"check": False, "criterion": 0.5, "relative": True},
        phase_diagram={"key": "task.parameters.size", "values": [0.5, 1.0], "networks": 1},
    )
    work = Work(study.check())
    found = work["learning_times"]
    # alone, with the criterion of its own task
    small = study.changed({"task.parameters.size": 0.5, "questions": ["train"]})
    runs = Work(small.changed({"training.seeds": 1}).check()).relu
    level = 0.5 * nr.dataset.zero_loss(small.check().data)
    alone = nr.trajectory.crossing_time(runs.time, runs.loss, level)
    np.testing.assert_allclose(found[0], alone, rtol=1e-9)


def test_the_time_to_half_is_that_of_each_network():
    time = np.array([0.0, 1.0, 2.0])
    loss = np.array([[1.0, 0.5, 0.0], [4.0, 2.0, 0.0]])
    np.testing.assert_allclose(nr.trajectory.half_time(time, loss), [1.0, 1.0])


@pytest.mark.parametrize(
    ("exact", "batch", "words"),
    [(True, None, "aligned"), (False, None, "couplings"), (True, 4, "batches")],
)
def test_what_remains_is_blamed_on_what_it_comes_from(exact, batch, words):
    assert words in remaining_error(exact, batch)


def test_names_of_gatings_are_identifiers():
    for name in ("a b", "größe", "aligned", "../x"):
        with says("cannot be the name", got=name, wanted="letters", fix="rename"):
            xor(["contest"], gatings={name: {"each": "sample"}})


def test_theory_of_gaussian_starts_is_not_used_for_others():
    network = {"widths": 16, "scale": 0.5, "kind": "xavier"}
    with says("Gaussian", got="xavier", wanted="gaussian", fix="kind"):
        xor(["contest"], network=network)
    assert xor(["train"], network=network).settings.network.kind == "xavier"


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([8.0, 8.5], "18 % earlier than predicted for a (t = 10), which is outside the spread"),
        ([11.0, 9.5], "2.5 % later than predicted for a (t = 10), which is within the spread"),
        ([12.0, 12.4, np.nan], "22 % later than predicted for a (t = 10), which is outside"),
        ([12.0], "20 % later than predicted for a (t = 10); one network does not tell"),
        ([np.nan], "For a, t = 10 was predicted."),
    ],
)
def test_times_of_networks_are_set_beside_the_predicted_time(times, said):
    assert said in against_prediction(np.array(times), 10.0, "a")


def test_a_study_with_one_gating_says_when_and_how_far_networks_were_from_that():
    study = xor(
        ["contest", "predict", "train"],
        gatings={"xor": {"each": "sample"}},
        training={"steps": 400, "learning_rate": 0.2, "seeds": 2},
        contest={"check": False, "criterion": 0.1},
    )
    result = study.run()
    contest, said = result["contest"], texts(result["train"].sentences())
    predicted = contest.numbers["time_xor"]
    assert contest.title == "When is the task learned?"
    first, basis = texts(contest.sentences())
    assert first == f"xor is predicted to reach the criterion at t = {predicted:.4g}."
    assert "loss 0.1;" in basis
    runs = result["train"].value
    times = nr.trajectory.crossing_time(runs.time, runs.loss, 0.1)
    assert np.isfinite(times).all()
    assert said[1].startswith(against_prediction(times, predicted, "xor"))
    assert said[1] in texts(result["train"].top)
    assert "2 gated networks with the gates of xor reached it at t = " in said[1]


def test_gates_that_match_and_a_curve_that_does_not_are_told_together():
    rows = [
        Row(name, "gating", None, 10, outputs=error) for name, error in (("a", 0.03), ("b", 0.05))
    ]
    found = Explanation(tuple(rows), (0.1, 0.02), (), "made")
    said = lambda *matches: gates_and_curves(list(matches), found)
    exact = lambda name: Match(name, 3, 3, 3, 0.0)
    assert said(exact("b")).startswith("The gates found are those of b, and yet it is 2.5 times")
    assert said(exact("a")) == "" and said() == ""  # near: at most twice as far as a seed
    assert said(Match("b", 3, 3, 2, 0.1)) == ""


def test_the_picture_of_a_task_names_rows_and_samples(tmp_path, monkeypatch):
    from neuralrace.study import page

    drawn = []
    monkeypatch.setattr(page, "draw_matrix", lambda values, **named: drawn.append(named))
    (tmp_path / "cups.csv").write_text("thing,place,sharp\nknife,home,1\ncup,away,0\n")
    task = {"file": "cups.csv", "x": ["thing"], "y": ["sharp"], "labels": ["thing", "place"]}
    nr.Study.of(
        folder=tmp_path, questions=["train"], task=task, training={"steps": 2}
    ).run().report(tmp_path / "out")
    inputs, targets = drawn
    assert inputs["rows"] == ["thing cup", "thing knife"] and targets["rows"] == ["sharp"]
    assert targets["columns"] == ["knife, home", "cup, away"]
    drawn.clear()
    xor(["train"], training={"steps": 2}).run().report(tmp_path / "xor")
    assert [one["rows"] for one in drawn] == ["feature", "target"]
    assert drawn[1]["columns"] == "sample"


@pytest.mark.parametrize(("side", "folded"), [(2, False), (4, True)])
def test_many_blocks_are_folded_away_and_their_table_is_still_there(tmp_path, side, folded):
    lines = [
        f"i{k},{','.join('1' if k == j else '0' for j in range(side**2))}" for k in range(side**2)
    ]
    names = [f"y{j}" for j in range(side**2)]
    (tmp_path / "eye.csv").write_text("\n".join([f"item,{','.join(names)}", *lines]))
    task = {"file": "eye.csv", "x": ["item"], "y": names, "labels": ["item"]}
    study = nr.Study.of(
        folder=tmp_path, questions=["reduce"], task=task, gatings={"a": {"each": "item"}}
    )
    answer = study.run()["reduce"]
    assert len(answer.frame()) == side**2 == answer.numbers["blocks_a"]
    first = answer.parts[0]
    assert isinstance(first, nr.report.Section if folded else nr.report.Table)
    if isinstance(first, nr.report.Section):
        assert first.folded and first.title == "16 blocks of one gating, with their equations"


def test_a_time_that_is_not_known_is_missing_and_one_that_never_comes_is_infinite():
    base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]})
    masks = {"turned": {"all": [1, 1], "second": [0, 1]}, "first": {"first": [1, 0]}}
    pairs = {name: nr.pathways(base, each, hidden=20) for name, each in masks.items()}
    work = Work(xor(["contest"]).check())
    work.made["who"] = nr.contest(pairs, scale=1e-3, criterion=0.1)
    numbers = QUESTIONS["contest"].answer(work).numbers
    assert np.isnan(numbers["time_turned"]) and numbers["time_first"] == np.inf
