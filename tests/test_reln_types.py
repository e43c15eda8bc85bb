"""Symmetries of tasks and types of neurons, against brute force and trained networks."""

import re
from dataclasses import replace
from itertools import permutations

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.explained.fixed_points import Samples
from neuralrace.reln.explained.types import symmetries
from neuralrace.reln.explained.types.crowd import Crowd, descend
from neuralrace.reln.explained.types.sliding import OFF, ON, SLIDING
from neuralrace.reln.explained.types.symmetries import fold, moved
from neuralrace.reln.explained.types.timeline import (
    events_of,
    states_of,
    strongest,
    together,
    without_chatter,
)
from neuralrace.reln.naming import in_groups, where
from tests.test_errors import refuses

SCALE = float(np.sqrt(4e-8 / 128))  # MHS Fig. 2


def told(found):
    """All sentences of a result."""
    return "\n".join(sentence.text for sentence in found.sentences())


@pytest.fixture(scope="module")
def xor() -> nr.reln.NeuronTypes:
    return nr.reln.types(
        nr.tasks.extended_xor(0.4), width=128, scale=SCALE, learning_rate=0.1, steps=400,
        types=1, neurons=500,
    )  # fmt: skip


@pytest.fixture(scope="module")
def items() -> nr.reln.NeuronTypes:
    """A small contextual task, on which gates change and slide."""
    return nr.reln.types(
        nr.tasks.contextual(contexts=3, items=4, joined=True), width=200, scale=1e-5,
        learning_rate=0.02, steps=3000, types=2, neurons=300,
    )  # fmt: skip


# ---- symmetries ---------------------------------------------------------------------------------


def by_brute_force(samples: Samples) -> set[tuple[int, ...]]:
    """All permutations that leave the inner products and the weights unchanged."""
    grams = [samples.x @ samples.x.T, samples.y @ samples.y.T, np.diag(samples.p)]
    return {
        p
        for p in permutations(range(len(samples.x)))
        if all(np.allclose(g[np.ix_(p, p)], g, atol=1e-12) for g in grams)
    }


TASKS = {
    "xor": nr.tasks.extended_xor(0.4),
    "weighted": nr.Dataset(
        nr.tasks.extended_xor(0.4).x, nr.tasks.extended_xor(0.4).y, sample_weight=[1, 2, 2, 1]
    ),
    "hexagon": nr.Dataset(
        {"x": [[np.cos(t), np.sin(t)] for t in np.arange(6) * np.pi / 3]},
        {"y": [[1.0], [-1.0]] * 3},
    ),
    "generic": nr.Dataset(
        {"x": np.random.default_rng(0).normal(size=(6, 3))},
        {"y": np.random.default_rng(1).normal(size=(6, 2))},
    ),
    "items": nr.tasks.contextual(contexts=3, items=2, joined=True),
}


@pytest.mark.parametrize("name", TASKS)
def test_all_symmetries_are_found(name):
    found = nr.reln.symmetries(TASKS[name])
    wanted = by_brute_force(Samples.of(TASKS[name]))
    assert {tuple(map(int, p)) for p in found.elements} == wanted
    assert str(len(wanted)) in str(found) or found.order == 1


@pytest.mark.parametrize("name", TASKS)
def test_maps_follow_the_permutations_and_outputs_are_averaged(name):
    found = nr.reln.symmetries(TASKS[name])
    x, y = found.samples.x, found.samples.y
    any_outputs = np.random.default_rng(2).normal(size=y.shape) @ np.linalg.pinv(y) @ y
    mean = np.zeros_like(y)
    for permutation in found.elements:
        inputs, outputs = found.inputs(permutation), found.outputs(permutation)
        assert np.allclose(x @ inputs.T, x[permutation])
        assert np.allclose(y @ outputs.T, y[permutation])
        assert np.allclose(outputs @ outputs.T, np.eye(y.shape[1]))
        mean[permutation] += any_outputs @ outputs.T / found.order
    basis = found.basis.reshape(len(found.basis), -1)
    assert np.allclose(basis @ basis.T, np.eye(len(basis)))
    assert np.allclose((basis.T @ (basis @ any_outputs.ravel())).reshape(y.shape), mean)


def test_folded_neurons_of_one_orbit_coincide():
    found = nr.reln.symmetries(TASKS["items"])
    random = np.random.default_rng(0)
    w, a = random.normal(size=5), random.normal(size=9)
    a = (
        np.linalg.pinv(found.samples.y)
        @ found.samples.y
        @ random.normal(size=found.samples.y.shape[1])
    )
    many = found.order
    images = moved(found, found.elements, np.tile(w, (many, 1)), np.tile(a, (many, 1)))
    folded = moved(found, fold(found, [images]), *images)
    assert np.allclose(folded[0], folded[0][0])
    assert np.allclose(folded[1], folded[1][0])


def test_symmetries_of_numbers_in_single_precision():
    """The hexagon's inner products differ by their rounding, which is not a difference."""
    exact = TASKS["hexagon"]
    single = nr.Dataset(
        {"x": np.asarray(exact.x["x"], np.float32)}, {"y": np.asarray(exact.y["y"], np.float32)}
    )
    assert nr.reln.symmetries(single).order == nr.reln.symmetries(exact).order == 12


def test_symmetries_that_may_be_missed_are_said(monkeypatch):
    assert nr.reln.symmetries(TASKS["xor"]).complete
    monkeypatch.setattr(symmetries, "MOST_ELEMENTS", 4)
    some = nr.reln.symmetries(TASKS["xor"])
    assert some.order <= 4
    assert not some.complete
    assert f"at least {some.order} symmetries" in str(some)
    monkeypatch.setattr(symmetries, "MOST_SAMPLES", 3)
    none = nr.reln.symmetries(TASKS["xor"])
    assert (none.complete, none.searched) == (False, False)
    assert "was not searched" in str(none)


def test_a_search_that_gives_up_is_said(monkeypatch):
    monkeypatch.setattr(symmetries, "EFFORT", 0)
    found = nr.reln.symmetries(TASKS["xor"])
    assert found.order == 1
    assert not found.complete
    assert "gave up" in str(found)


def test_contexts_have_the_known_number_of_symmetries():
    assert nr.reln.symmetries(nr.tasks.contextual(contexts=3, joined=True)).order == 768


# ---- the neurons --------------------------------------------------------------------------------


def test_neurons_learn_as_a_trained_network():
    data = nr.tasks.context_decision(cue=1.0)
    net = nr.ReLUNetwork((data.x["x"].shape[1], 30, data.y["y"].shape[1]), leak=0.1)
    weights = net.init(0, scale=0.1)
    run = nr.train(net, weights, data, learning_rate=0.05, steps=200, record_every=50)
    with jax.enable_x64(True):
        crowd = Crowd.of(Samples.of(data), None, 0.1)
    first, second = (np.asarray(w) for w in weights.values())
    done = descend(crowd, {"w": first, "a": second.T}, 0.05, np.array([0, 50, 100, 150, 200]))
    assert np.allclose(done.loss, run.loss, rtol=1e-10)


def test_averaged_outputs_are_those_of_a_network_with_all_images():
    data = nr.tasks.extended_xor(0.4)
    found = nr.reln.symmetries(data)
    random = np.random.default_rng(0)
    w, a = 0.1 * random.normal(size=(3, 3)), 0.1 * random.normal(size=(3, 1))
    many = np.repeat(np.arange(3), found.order)
    images = moved(found, np.tile(found.elements, (3, 1)), w[many], a[many])
    images = {name: v / np.sqrt(found.order) for name, v in zip("wa", images, strict=True)}
    stops = np.array([0, 20, 200])
    with jax.enable_x64(True):
        folded = descend(Crowd.of(found.samples, found, 0.0), {"w": w, "a": a}, 0.1, stops)
        whole = descend(Crowd.of(found.samples, None, 0.0), images, 0.1, stops)
    assert np.allclose(folded.loss, whole.loss, rtol=1e-8)
    assert np.allclose(folded.values["outputs"], whole.values["outputs"], atol=1e-10)
    assert folded.loss[-1] < 0.1 * folded.loss[0]


# ---- types --------------------------------------------------------------------------------------


def test_one_type_predicts_a_network_on_xor(xor):
    net = nr.ReLUNetwork((3, 128, 1))
    many = nr.train_ensemble(
        net, xor.data, key=1, seeds=3, scale=SCALE, learning_rate=0.1, steps=400, record_every=4,
        record={"outputs": True},
    )  # fmt: skip
    runs = [many.isel(seed=i) for i in range(3)]
    floor = np.mean([nr.compare(runs[i], runs[i - 1]).mean for i in range(3)])
    for prediction in (xor.trajectory, xor.wide):
        error = np.mean([nr.compare(run, prediction).mean for run in runs])
        assert error < max(1.5 * floor, 0.002)
    assert len(xor) == 1
    assert np.allclose(xor.shares, 1)


def test_the_event_driven_form_follows_the_types(xor, items):
    for found in (xor, items):
        apart = nr.compare(found.trajectory, found.stages().trajectory)
        assert apart.mean <= 0.002
        assert apart.outputs <= 0.01


def test_gates_slide_and_rounding_them_breaks_the_event_driven_form(items):
    assert (items.states == SLIDING).any()
    assert items.events
    from dataclasses import replace

    rounded = replace(items, gates=np.round(items.gates))
    exact = nr.compare(items.trajectory, items.stages().trajectory)
    assert nr.compare(items.trajectory, rounded.stages().trajectory).mean > 3 * exact.mean


def test_a_stage_is_a_gated_network_that_reduces(xor):
    stages = xor.stages()
    stage = stages[-1]
    race = nr.reduce(stage.arch, stage.data)
    assert race.is_decoupled
    assert "B" in race.latex()
    net = nr.GDLN(stage.arch)
    at = int(np.argmin(np.abs(stages.trajectory.time - stage.start)))
    loss = float(net.loss(stage.weights, stage.data))
    assert loss == pytest.approx(stages.trajectory.loss[at], rel=1e-9)
    steps = round((stage.end - stage.start) / 0.1)
    run = nr.train(net, stage.weights, stage.data, learning_rate=0.1, steps=steps)
    assert run.loss[-1] == pytest.approx(stages.trajectory.loss[-1], rel=1e-6, abs=1e-12)


def test_types_are_reproduced_by_their_key(xor):
    again, other = (
        nr.reln.types(
            xor.data, width=128, scale=SCALE, learning_rate=0.1, steps=400, types=1, neurons=500,
            key=key,
        )
        for key in (0, jax.random.key(1))
    )  # fmt: skip
    assert np.array_equal(again.trajectory.loss, xor.trajectory.loss)
    assert not np.array_equal(other.trajectory.loss, xor.trajectory.loss)


# ---- words and pictures -------------------------------------------------------------------------


def test_states_and_events():
    shares = np.array([[[0.0, 1.0]], [[0.4, 1.0]], [[1.0, 0.5]], [[1.0, 0.6]], [[1.0, 0.0]]])
    states = states_of(shares)
    assert states[:, 0, 0].tolist() == [OFF, ON, ON, ON, ON]
    assert states[:, 0, 1].tolist() == [ON, ON, SLIDING, SLIDING, OFF]
    events = events_of(np.arange(5.0), states)
    told = [(e.time, e.type, e.state, e.samples.tolist()) for e in events]
    assert told == [(1, 1, ON, [0]), (2, 1, SLIDING, [1]), (4, 1, OFF, [1])]


@pytest.mark.parametrize("pattern", [[1, 0.5], [0, 0.5], [1, 1, 0.5], [1, 0.5, 0, 0.5], [1, 0]])
def test_how_often_a_sliding_gate_is_recorded_makes_no_events(pattern):
    """A gate that hops about its boundary, seen over intervals of two or more of its steps."""
    shares = np.tile(pattern, 30).astype(float)[:, None, None]
    time = np.geomspace(5.0, 50.0, len(shares))
    steady = without_chatter(time, states_of(shares))
    assert (steady == SLIDING).all() and events_of(time, steady) == ()


def test_a_single_fraction_between_equal_states_is_no_switch():
    time, dip = np.arange(100.0, 140.0), np.ones(40)
    dip[20] = 0.4
    states = without_chatter(time, states_of(dip[:, None, None]))
    assert (states == ON).all()


def test_a_switch_in_the_last_interval_is_not_sliding(xor):
    """Gates are known between moments, one interval fewer; the last state is repeated."""
    gates = np.zeros_like(xor.gates)
    gates[-2:] = 0.7  # the last interval, and its repetition
    switched = replace(xor, gates=gates)
    assert switched.states.shape == gates.shape
    assert (switched.states[-2:] == ON).all()
    assert {event.state for event in switched.events} == {ON}
    assert "Then follows 1 event;" in told(switched)
    gates[-3] = 0.7
    assert (replace(xor, gates=gates).states[-3:] == SLIDING).all()


def test_gates_that_go_back_and_forth_slide():
    """For long: they slide. Briefly: they switch to what follows. At the end, the last counts."""
    time = np.arange(100, 200, 2.0)
    chatter, late, end = (np.zeros(len(time), int) for _ in range(3))
    chatter[10:40:2] = ON
    late[20], late[22:] = ON, ON
    end[-1] = ON
    states = np.stack([chatter, late, end], axis=1)[:, None]
    found = without_chatter(time, states)[:, 0]
    assert found[:10, 0].tolist() == [OFF] * 10
    assert (found[10:39, 0] == SLIDING).all()
    assert (found[41:, 0] == OFF).all()
    assert found[:, 1].tolist() == [OFF] * 20 + [ON] * (len(time) - 20)
    assert found[:, 2].tolist() == end.tolist()
    assert len(events_of(time, states)) > 30
    told = together(events_of(time, without_chatter(time, states)))
    assert [(e.state, e.samples.tolist()) for e in told] == [(SLIDING, [0]), (ON, [1]), (OFF, [0]),
                                                             (ON, [2])]  # fmt: skip


def test_events_that_follow_each_other_closely_are_one():
    states = np.zeros((6, 1, 3), int)
    states[2:, 0, 0], states[3:, 0, 1], states[5:, 0, 2] = ON, ON, ON
    told = together(events_of(np.array([10.0, 11, 12, 13, 14, 15]), states))
    assert [(e.time, e.samples.tolist()) for e in told] == [(12.0, [0, 1]), (15.0, [2])]


def test_types_that_do_the_same_are_told_as_one():
    states = np.zeros((4, 3, 2), int)
    states[1:, 0, 0], states[2:, 1, 0] = ON, ON  # the same, at another time
    always = lambda *shares: np.tile(shares, (4, 1))
    assert strongest(states, always(0.3, 0.3, 0.4)) == [[0, 1], [2]]
    assert strongest(states, always(0.5, 0.499, 0.001)) == [[0, 1]]
    early = always(0.5, 0.499, 0.001)
    early[0] = 0.2, 0.2, 0.6
    assert strongest(states, early) == [[0, 1], [2]], "it has lost its strength at the end"
    same = nr.reln.types(
        nr.tasks.extended_xor(0.4), width=128, scale=SCALE, learning_rate=0.1, steps=400, types=4,
        neurons=500,
    )  # fmt: skip
    text = told(same)
    assert text.count("of the strength at the end") == 1
    assert "do the same." in text  # without events there are no times
    assert len(same.events) == 0


def test_times_of_several_types_are_those_of_the_strongest(xor):
    """Types of a group switch in one order, but at times of their own."""
    gates = np.zeros((len(xor.time), 2, 4))
    gates[20:, 0, 0], gates[40:, 1, 0] = 1.0, 1.0
    pair = {"w": np.tile(xor.w[:, :1], (1, 2, 1)), "a": np.tile(xor.a[:, :1], (1, 2, 1))}
    text = told(replace(xor, gates=gates, members=np.array([300, 200]), **pair))
    assert f"From t = {xor.time[20]:.4g} on (100 %), they switch on" in text
    assert "do the same, each at its own times; those of type 1 are told." in text


def test_what_a_type_does_while_it_hardly_counts_is_left_out(xor):
    """Type 1 wins in the end, but type 2 carries the network before."""
    moments = len(xor.time)
    gates = np.zeros((moments, 2, 4))
    gates[20:, 0, 0], gates[90:, 0, 1], gates[30:, 1, 2] = 1.0, 1.0, 1.0
    share = np.where(np.arange(moments) < 50, 0.01, 0.9)
    first = np.stack([share, 1 - share], axis=1)[..., None]
    unit = {name: v[:, :1] / np.linalg.norm(v[:, :1], axis=2, keepdims=True)
            for name, v in (("w", xor.w), ("a", xor.a))}  # fmt: skip
    two = replace(xor, gates=gates, members=np.array([300, 200]),
                  **{name: np.sqrt(first) * v for name, v in unit.items()})  # fmt: skip
    assert np.allclose(two.shares[:, 0], share)
    text = told(two)
    lines = text[text.index("Type 1") :].splitlines()
    times = [f"{xor.time[i]:.4g}" for i in (30, 50, 90)]
    assert lines == [
        "Type 1 has 90 % of the strength at the end.",
        f"From t = {times[1]} on it has 2 % or more and is on for sample 1.",
        f"From t = {times[2]} on (90 %), it switches on for sample 2.",
        "1 event is left out: it has less than 2 % of the strength then.",
        "Type 2 has 10 % of the strength at the end. It starts with 99 %, on for no sample.",
        f"From t = {times[0]} on (99 %), it switches on for sample 3.",
    ]
    assert "Then follow 3 events; in brackets is the share" in text


def test_a_type_that_is_strong_for_a_while_says_so(xor):
    moments = len(xor.time)
    share = np.where(np.abs(np.arange(moments) - 50) < 10, 0.6, 0.2)
    share[45] = 0.62
    first = np.sqrt(np.stack([1 - share, share], axis=1))[..., None]
    unit = {name: v[:, :1] / np.linalg.norm(v[:, :1], axis=2, keepdims=True)
            for name, v in (("w", xor.w), ("a", xor.a))}  # fmt: skip
    gates = np.zeros((moments, 2, 4))
    gates[:, 1, 2] = 1.0
    two = replace(xor, gates=gates, members=np.array([300, 200]),
                  **{name: first * v for name, v in unit.items()})  # fmt: skip
    peak = f"at most 62 %, at t = {xor.time[45]:.4g}."
    assert f"Type 2 has 20 % of the strength at the end, {peak} It starts with 20 %" in told(two)


def test_the_strongest_is_told_even_where_all_are_faint():
    """With 300 types that do different things each has a third of a percent."""
    states = np.tile((np.arange(300)[:, None] >> np.arange(9)) & 1, (2, 1, 1))
    assert len(strongest(states, np.full((2, 300), 1 / 300))) == 1


def test_types_that_never_turn_on_are_left_out(xor):
    assert xor.gates.any(axis=(0, 2)).all()
    many = nr.reln.types(
        nr.tasks.context_decision(cue=1.0), width=200, scale=1e-3, learning_rate=0.06, steps=400,
        types=16, neurons=300,
    )  # fmt: skip
    assert many.gates.any(axis=(0, 2)).all()
    error = next(s.text for s in many.sentences() if s.id == "error")
    assert re.match(rf"{len(many)}\b", error)


def test_the_number_of_types_is_chosen_where_none_is_given(xor):
    options = {"width": 128, "scale": SCALE, "learning_rate": 0.1, "steps": 400, "neurons": 500}
    found = nr.reln.types(xor.data, **options)
    assert len(found) == 1
    assert found.error.outputs <= 0.02
    said = {sentence.id: sentence.text for sentence in found.sentences()}
    assert "2 %" in said["error"] and "types=8" in said["chosen"]
    assert "chosen" not in [sentence.id for sentence in xor.sentences()]


def test_the_first_sentence_is_that_of_the_wide_limit_for_any_number_of_types():
    """One type is too few for this task: the answer stays, and it is said that one does not do."""
    data = nr.tasks.contextual(contexts=3, items=4, joined=True)
    options = {"width": 100, "scale": 1e-4, "learning_rate": 0.1, "steps": 600, "neurons": 300}
    one, many = (nr.reln.types(data, types=k, **options) for k in (1, 32))
    answer = lambda found: next(s.text for s in found.sentences() if s.id == "answer")
    assert answer(one) == answer(many)
    assert f"{one.wide.loss[-1]:.4g}" in answer(one)
    assert one.error.outputs > 0.02
    error = next(s.text for s in one.sentences() if s.id == "error")
    assert f"{one.trajectory.loss[-1]:.4g}" in error
    assert f"{many.trajectory.loss[-1]:.4g}" not in next(
        s.text for s in many.sentences() if s.id == "error"
    )


def test_samples_are_named_by_their_labels():
    data = nr.tasks.contextual(contexts=3, items=2, joined=True)
    assert where(np.array([2, 3]), data) == "for context 2"
    assert where(np.array([0, 2, 4]), data) == "for item 1"
    assert where(np.array([3]), data) == "for item 2 and context 2"
    assert where(np.arange(6), data) == "for all samples"
    assert where(np.array([2, 5]), data) == "for samples 3 and 6"
    more = nr.tasks.contextual(contexts=3, items=4, joined=True)
    assert where(np.array([0, 1, 8, 9]), more) == "for item 1 or 2 and context 1 or 3"
    decision = nr.tasks.context_decision(cue=1.0)  # its labels do not name single samples
    assert where(np.array([11]), decision) == "for sample 12"


def test_the_story_names_types_times_and_contexts(items):
    text = told(items)
    assert "2 types of neurons in place of 200" in text
    assert "From t = " in text
    assert "context" in text
    assert "symmetries" in text


def test_the_timeline_has_a_strip_for_every_type(items):
    import matplotlib.pyplot as plt

    figure = items.plot()
    *panels, bar = figure.axes
    assert bar.get_ylabel() == "gate"
    assert [axes.get_title() for axes in panels] == [
        "(a) loss",
        "(b) share of the strength",
        "(c) gates of type 1: black is on, white is off, grey slides",
        "(d) gates of type 2",
    ]
    assert panels[-1].get_xlim()[0] == items.time[0], "there are no types before"
    plt.close(figure)


def test_rows_of_the_timeline_are_grouped_by_a_label(items):
    import matplotlib.pyplot as plt

    order, groups = in_groups(items.data)
    assert groups == {f"item {i}": 3 for i in (1, 2, 3, 4)}
    assert np.asarray(items.data.labels["item"])[order].tolist() == sorted([1, 2, 3, 4] * 3)
    figure = items.plot()
    strip = figure.axes[2]
    assert [text.get_text() for text in strip.get_yticklabels()] == list(groups)
    shown = strip.collections[0].get_array()
    assert np.array_equal(np.reshape(shown, (12, -1)), items.gates[:, 0].T[order])
    plain = nr.Dataset(items.data.x, items.data.y)
    assert in_groups(plain)[1] == {}
    labels = [t.get_text() for t in replace(items, data=plain).plot().axes[2].get_yticklabels()]
    assert labels == ["1", "12"]
    plt.close("all")


# ---- wrong arguments ----------------------------------------------------------------------------

OPTIONS = {
    "width": 64,
    "scale": 1e-4,
    "learning_rate": 0.1,
    "steps": 100,
    "types": 2,
    "neurons": 100,
}


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"width": 3, "types": 4}, "types"),
        ({"scale": 0.5}, "scale"),
        ({"steps": 10}, "steps"),
        ({"width": (64, 64)}, "width"),
        ({"types": 0}, "types"),
        ({"types": 2.5}, "types"),
        ({"neurons": 1}, "neurons"),
        ({"scale": -1.0}, "scale"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"key": "zero"}, "key"),
    ],
)
def test_wrong_arguments(changed, name):
    with refuses(name):
        nr.reln.types(nr.tasks.extended_xor(0.4), **(OPTIONS | changed))


def test_one_rule_says_which_scale_is_too_large():
    """`types` refuses where `aligned` and contests say that neurons do not align in time."""
    data = nr.tasks.extended_xor(0.4)
    with refuses("neurons"):
        nr.reln.types(data, **(OPTIONS | {"scale": 0.05}))
    with pytest.warns(UserWarning, match="squared weights grow by a factor of only"):
        nr.reln.aligned(data, width=64, scale=0.05)
    found = nr.contest(data, scale=0.05, width=64, check=True)
    assert "too large for neurons to align before the loss falls: squared weights" in str(found)


def test_weights_that_align_after_the_loss_has_begun_to_fall():
    """XoR from σ = 1e-3: at a fall by 1e-4 weights have hardly grown, at 1e-3 they have."""
    data = nr.tasks.extended_xor(0.4)
    found = nr.reln.types(data, width=200, scale=1e-3, learning_rate=0.06, steps=600, types=2,
                          neurons=500)  # fmt: skip
    at = np.searchsorted(found.trajectory.time, found.time[0])
    fallen = 1 - found.trajectory.loss[at] / found.trajectory.loss[0]
    assert 1e-4 < fallen < 0.05
    net = nr.ReLUNetwork((3, 200, 1))
    many = nr.train_ensemble(net, data, key=1, seeds=3, scale=1e-3, learning_rate=0.06, steps=600,
                             record_every=5)  # fmt: skip
    assert np.mean([nr.compare(many.isel(seed=i), found.trajectory).mean for i in range(3)]) < 0.01


def test_a_task_on_which_no_neuron_learns():
    with refuses("data"):
        nr.reln.types(nr.tasks.parity(3), **(OPTIONS | {"steps": 300}))
