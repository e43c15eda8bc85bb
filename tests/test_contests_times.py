"""Learning times that are known, those that are not, and those that are proved never to come."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import neuralrace as nr
from evidence.own.learning_times import matrix_races
from neuralrace.contests import Kept
from neuralrace.errors import NeuralRaceError
from tests.test_errors import refuses

SECOND = {"all": [1, 1, 1], "second": [0, 1, 1]}


def overlapping(unit=1.0):
    """Two pathways of one input; the second must lower what the first learns."""
    base = nr.Dataset({"x": np.ones((3, 1))}, {"y": unit * np.array([[3.0], [1.5], [1.0]])})
    return nr.pathways(base, SECOND, hidden=3)


def matrix_contests():
    """Races whose blocks are matrices, some of which rest at saddles from an aligned start."""
    rng = np.random.default_rng(0)
    for _ in range(9):
        count, inputs = rng.integers(4, 7), rng.integers(2, 4)
        outputs, pathways = rng.integers(1, 3), rng.integers(2, 4)
        x = rng.integers(-1, 2, (count, inputs)).astype(float)
        y = rng.integers(-2, 3, (count, outputs)).astype(float)
        masks = {"m0": np.ones(count)}
        for p in range(1, pathways):
            masks[f"m{p}"] = (rng.random(count) < 0.6).astype(float)
            masks[f"m{p}"][rng.integers(count)] = 1.0
        yield nr.reduce(*nr.pathways(nr.Dataset({"x": x}, {"y": y}), masks, hidden=4))


def test_no_printed_time_depends_on_the_tolerance():
    unknown = known = 0
    for race in matrix_contests():
        loss = race.constant + sum(block.initial_loss for block in race.blocks)
        criterion = race.constant + 0.1 * (loss - race.constant)
        loose, tight = (
            nr.contest({"c": race}, start=0.01, criterion=criterion, rtol=rtol).entrants["c"]
            for rtol in (1e-8, 1e-12)
        )
        if loose.is_unknown or tight.is_unknown:
            assert loose.unknown == tight.unknown == "the race rests at a saddle"
            unknown += 1
            continue
        digit = 10.0 ** (np.floor(np.log10(tight.time)) - 4)  # the last of five
        assert abs(loose.time - tight.time) <= digit
        known += 1
    assert unknown >= 2 and known >= 5  # the sample has both


def test_a_race_that_hardly_rests_at_a_saddle_has_no_time_that_rounding_decides():
    """Its plateau moves too fast to count as rest, and yet rounding decides when it leaves."""
    *_, (race, criterion) = matrix_races(np.random.default_rng(777), 17)
    loose, tight = (
        nr.contest({"c": race}, start=0.01, criterion=criterion, rtol=rtol, leads=False).entrants[
            "c"
        ]
        for rtol in (1e-6, 1e-13)
    )
    assert loose.unknown == tight.unknown == "the race rests at a saddle"


def test_a_race_at_a_saddle_is_said_to_be_there():
    race = list(matrix_contests())[5]
    found = nr.contest({"c": race}, start=0.01, criterion=race.constant + 0.01)
    assert found.winner is None
    assert found.entrants["c"].lateness == "unknown"
    assert "c: when it learns is not known: the race rests at a saddle." in str(found)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_never_does_not_depend_on_units(unit):
    """Targets times k learn k times as fast, from weights times √k."""
    masks = {"all": [1, 1, 1], "second": [0, 1, 0]}
    start = {"x_all": 0.01, "all_y": 0.01, "x_second": 0.02, "second_y": 0.02}
    times = []
    for k in (1.0, unit):
        y = k * np.array([[1.0], [3.0], [1.0]])
        pair = nr.pathways(nr.Dataset({"x": np.ones((3, 1))}, {"y": y}), masks, hidden=3)
        begin = {edge: b * np.sqrt(k) for edge, b in start.items()}
        found = nr.contest({"c": pair}, start={"c": begin}, criterion=0.01, relative=True)
        assert found.entrants["c"].method == "solved race"
        times.append(k * found.times["c"])
    assert np.isfinite(times[0])
    assert times[1] == pytest.approx(times[0], rel=1e-6)


@pytest.mark.parametrize("unit", [1e-5, 1.0])
def test_a_race_that_was_not_followed_for_longer_is_unknown(unit):
    """From an aligned start the second pathway keeps its sign, but that is no proof."""
    arch, data = overlapping(unit)
    options = {"criterion": 0.05, "relative": True, "start": 0.01 * np.sqrt(unit)}
    found = nr.contest({"c": (arch, data)}, longest=1e3, **options).entrants["c"]
    assert found.time == np.inf and found.is_unknown
    end = 1e3 / found.strength
    assert found.unknown == f"not before t = {end:.3g}"
    assert found.race.solve(times=[0, end], start=found.start).loss[-1] > found.criterion


def test_never_is_proved():
    """The best weights of these gates leave a loss of 1/48 here: ¼ on the last two samples."""
    arch, data = overlapping()
    race = nr.reduce(arch, data)
    assert race.constant == pytest.approx(2 * 0.25**2 / 6, rel=1e-12)
    weights = nr.GDLN(arch).init(0, scale=1e-2)
    below, above = (
        nr.contest({"c": race}, start={"c": weights}, criterion=factor / 48).entrants["c"]
        for factor in (0.999, 1.1)
    )
    assert below.time == np.inf and below.lateness == "never"
    assert np.isfinite(above.time)


def test_no_random_weights_have_a_loss_below_the_least():
    for race in matrix_contests():
        net, least = nr.GDLN(race.arch), race.constant
        for key in range(3):
            assert float(net.loss(net.init(key, scale=1.0), race.data)) >= least
        shown = np.concatenate(
            [np.asarray(g)[:, None] * race.data.x["x"] for g in race.data.gates.values()]
            + [np.asarray(race.data.x["x"])] * (len(race.data.gates) < len(race.arch.hidden)),
            axis=1,
        )
        y = np.asarray(race.data.y["y"])
        rest = y - shown @ np.linalg.lstsq(shown, y, rcond=None)[0]
        assert least == pytest.approx((rest**2).sum(axis=1).mean() / 2, abs=1e-10)


def turned_or_not():
    """From an average start it is not known when `turned` learns, and known when `apart` does."""
    base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]})
    masks = {
        "turned": {"all": [1, 1], "second": [0, 1]},
        "apart": {"first": [1, 0], "second": [0, 1]},
    }
    return {name: nr.pathways(base, each, hidden=20) for name, each in masks.items()}


def test_nothing_is_certain_where_a_time_is_not_known():
    pairs = turned_or_not()
    both = nr.contest(pairs, scale=1e-3, criterion=0.1)
    alone = nr.contest({"turned": pairs["turned"]}, scale=1e-3, criterion=0.1)
    certain = nr.contest({"apart": pairs["apart"]}, scale=1e-3, criterion=0.1)
    assert [f.is_unsure for f in (both, alone, certain)] == [True, True, False]
    assert "apart is predicted to learn first of those whose time is known" in str(both)
    assert "known" not in certain.sentences()[0].text
    for said in (str(alone), alone.plot().get_title()):
        assert "is known to reach the criterion" in said and "reaches" not in said
    with pytest.raises(NeuralRaceError, match="known to reach"):
        alone.joint()


def test_a_phase_diagram_tells_unknown_times_from_those_that_never_come():
    def pairs(second):
        base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [second]]})
        return {"turned": nr.pathways(base, {"all": [1, 1], "second": [0, 1]}, hidden=20)}

    found = nr.phase_diagram(pairs, "second", [1.0, 4.0], scale=1e-3, criterion=0.05)
    assert found.unknown == {"turned": (1.0,)}
    rows = str(found).splitlines()[2:4]
    assert "no gating is known to reach the criterion" in rows[0]
    assert rows[1].endswith("turned")
    assert "no candidate is known to learn" in [text.get_text() for text in found.plot().texts]


def test_gates_are_not_said_to_be_kept_where_the_time_of_the_reference_is_not_known():
    apart = {"apart": turned_or_not()["apart"]}
    check = nr.contest(apart, scale=1e-3, criterion=0.5, relative=True, check=True).checked
    assert check.reference is not None
    unknown = replace(check, reference=replace(check.reference, time=np.inf, unknown="a reason"))
    shares = replace(unknown, kept={**check.kept, "apart": 1.0})
    assert shares.verdict("apart") is Kept.UNKNOWN and shares.keeps("apart") is None
    assert "not known: a reason" in " ".join(said.text for said in shares.sentences("apart"))


def test_a_scale_has_the_loss_of_random_weights_on_average():
    """The gap of an average start is the distance from the mean over random networks."""
    rng = np.random.default_rng(5)
    x = {"a": rng.normal(size=(6, 2)), "b": rng.normal(size=(6, 3))}
    edges = {f"{s}_{t}": (s, t) for s, t in (("a", "h"), ("b", "h"), ("a", "g"))}
    edges |= {"h_y": ("h", "y"), "g_y": ("g", "y"), "h_z": ("h", "z")}
    arch = nr.Architecture({"a": 2, "b": 3, "h": 6, "g": 4, "y": 2, "z": 1}, edges)
    y = {"y": rng.normal(size=(6, 2)), "z": rng.normal(size=(6, 1))}
    gates = {"h": rng.choice([0.0, 1.0, -0.5], 6), "g": rng.choice([0.0, 2.0], 6)}
    race, scale, losses = nr.reduce(arch, nr.Dataset(x, y, gates)), 0.4, []
    for _ in range(20_000):
        w = {
            e: scale * rng.normal(size=(arch.sizes[t], arch.sizes[s]))
            for e, (s, t) in edges.items()
        }
        h = {
            "h": gates["h"][:, None] * (x["a"] @ w["a_h"].T + x["b"] @ w["b_h"].T),
            "g": gates["g"][:, None] * (x["a"] @ w["a_g"].T),
        }
        off = y["y"] - h["h"] @ w["h_y"].T - h["g"] @ w["g_y"].T, y["z"] - h["h"] @ w["h_z"].T
        losses.append(sum((part**2).sum() for part in off) / 12)
    start = nr.contests.expected_start(race, scale)
    predicted = race.solve(times=[0.0, 1e-9], start=start).loss[0]
    assert start.gap == pytest.approx(abs(predicted / np.mean(losses) - 1), abs=0.02)


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_a_contest_from_a_large_start_claims_nothing(scale):
    data = nr.tasks.extended_xor(0.5)
    pairs = {"linear": nr.tasks.linear_pathways(data), "xor": nr.tasks.xor_pathways(data)}
    weights = {n: nr.GDLN(pair[0]).init(0, scale=scale) for n, pair in pairs.items()}
    for start in ({"scale": scale}, {"start": weights}):
        found = nr.contest(pairs, criterion=0.1, relative=True, **start)
        said = [sentence.id for sentence in found.sentences()]
        assert said[0] == "large" and "lead" not in said
        assert not found.frame()["exact"].any()
        assert "never" not in said and not np.isinf(found.frame()["time"]).any()
    small = nr.contest(pairs, criterion=0.1, relative=True, scale=1e-3)
    assert small.sentences()[0].id == "first" and small.frame()["exact"].all()
    assert any("nr.predict" in sentence.text for sentence in small.sentences())


@pytest.mark.parametrize("scale", [1e-3, 0.1])
def test_phases_and_half_times_say_that_a_start_is_large(scale):
    pair = lambda delta: {"linear": nr.tasks.linear_pathways(nr.tasks.extended_xor(delta))}
    phases = nr.phase_diagram(pair, "delta", [0.5, 1.0], scale=scale, criterion=0.1, relative=True)
    race = nr.reduce(*pair(0.5)["linear"])
    weights = nr.GDLN(race.arch).init(0, scale=scale)
    assert phases.large == (() if scale < 0.01 else (0.5, 1.0))
    for found in (phases, race.modes(scale=scale), race.modes(weights)):
        assert (found.sentences()[0].id == "large") == (scale > 0.01)


def test_a_race_from_a_large_start_that_does_not_learn_is_unknown_and_not_never():
    """Two pathways of one drive with opposite signs in their start: only the start is large."""
    base = nr.Dataset({"x": [[1.0], [1.0]]}, {"y": [[3.0], [1.0]]})
    pair = nr.pathways(base, {"all": [1, 1], "second": [0, 1]}, hidden=20)
    found = nr.contest({"c": pair}, scale=0.5, criterion=0.01, leads=False).entrants["c"]
    assert found.start.is_large and found.time == np.inf and found.lateness == "unknown"


@pytest.mark.parametrize("sizes", [(2, 6, 2), (2, 6, 6, 2)])
def test_times_under_weight_decay_are_those_of_the_full_network(sizes):
    """By a closed form for two edges, solved for three; against the flow from the same start."""
    data = nr.Dataset({"x": np.sqrt(2) * np.eye(2)}, {"y": np.sqrt(2) * np.diag([3.0, 2.0])})
    arch = nr.Architecture.chain(*sizes)
    found = nr.contest({"it": (arch, data)}, start=0.3, criterion=1.0, weight_decay=0.2)
    race = found.entrants["it"].race
    weights = race.weights(race.solve(times=[0.0, 1.0], start=0.3), 0.0)
    times = np.linspace(0.0, 2 * found.times["it"], 4001)
    with jax.enable_x64(True):
        run = nr.flow(nr.GDLN(arch), weights, data, times=times, weight_decay=0.2)
    wanted = nr.trajectory.crossing_time(run.time, run.loss, 1.0)
    assert found.times["it"] == pytest.approx(float(wanted), rel=1e-5)
    assert (
        found.times["it"] > nr.contest({"it": (arch, data)}, start=0.3, criterion=1.0).times["it"]
    )
    assert found.curves["it"].settings["weight_decay"] == 0.2
    for ask in (found.check, lambda: found.keeps("it")):
        with refuses("weight"):
            ask()
