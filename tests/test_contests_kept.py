"""What a contest says of ReLU networks: asked for, with their leak and bias, at a bounded cost."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.contests import Kept, verdicts
from neuralrace.errors import NeuralRaceError
from neuralrace.explorer import racing
from neuralrace.explorer.trust import Trust
from neuralrace.reduction import Race
from neuralrace.reln.explained import settling
from neuralrace.reln.explained.fixed_points import Samples, lines_of
from tests.test_errors import refuses


def gatings(delta: float, total: int = 16) -> dict:
    data = nr.tasks.extended_xor(delta)
    return {
        "linear": nr.tasks.linear_pathways(data, total),
        "xor": nr.tasks.xor_pathways(data, total),
    }


def test_printing_and_drawing_compute_no_check(monkeypatch):
    by_weights = {n: nr.GDLN(a).init(jax.random.key(0), 1e-2) for n, (a, _) in gatings(0.4).items()}
    found = nr.contest(gatings(0.4), start=by_weights)
    phases = nr.phase_diagram(gatings, "delta", [0.4, 1.2], scale=1e-3)
    shown = nr.contest(gatings(0.4), scale=1e-3, check=True)

    def never(*_, **__):
        raise AssertionError("printing computes")

    monkeypatch.setattr(verdicts, "aligned_patterns", never)
    monkeypatch.setattr(Race, "solve", never)
    assert "Not checked" in str(found) and "kept" not in str(found).splitlines()[1]
    assert "Not checked" in str(phases)
    assert "kept" in str(shown).splitlines()[1]
    with pytest.raises(AssertionError, match="computes"):
        found.check()
    with pytest.raises(AssertionError, match="computes"):
        phases.check()


def test_every_verdict_has_words_of_its_own():
    check = nr.contest(gatings(0.4), scale=1e-3, criterion=0.5, relative=True, check=True).checked
    assert check.verdicts == {"linear": Kept.OUTRUN, "xor": Kept.KEPT}
    assert [check.keeps(name) for name in ("linear", "xor")] == [False, True]
    assert check.describe("xor") == "kept" and check.detail("xor") == ""
    assert check.detail("linear") in check.describe("linear")


@pytest.mark.parametrize("leak", [0.3, 0.9])
def test_the_leak_of_the_networks_counts(leak):
    """Gates of 0 and 1 are not those of a leaky neuron, which always passes a part."""
    arch, data = gatings(0.5)["xor"]
    for found in (
        nr.contest({"xor": (arch, data)}, scale=1e-3, leak=leak),
        nr.phase_diagram(
            lambda d: {"xor": nr.tasks.xor_pathways(nr.tasks.extended_xor(d), 16)},
            "delta", [0.5, 0.6], scale=1e-3, leak=leak,
        ).contest_at(0.5),
    ):  # fmt: skip
        share = nr.reln.consistency(arch, data, scale=1e-3, leak=leak).share
        assert found.kept["xor"] == pytest.approx(share, abs=0.01)
        assert found.check().implementable == {"xor": False}
        assert found.kept["aligned"] > 0.9  # the reference has the gates of leaky neurons
    gates = {name: np.where(gate > 0, 1.0, leak) for name, gate in data.gates.items()}
    own = nr.contest({"own": (arch, data.gated(gates))}, scale=1e-3, leak=leak)
    assert own.check().implementable == {"own": True}
    with pytest.raises(NeuralRaceError, match="leak"):
        nr.contest({"xor": (arch, data)}, leak=2.0)


def test_a_bias_of_hidden_neurons_is_one_more_input():
    rng = np.random.default_rng(1)
    data = nr.Dataset({"x": rng.normal(1, 1, size=(12, 2))}, {"y": rng.normal(1, 1, size=(12, 2))})
    ones = nr.Dataset({**data.x, "bias": np.ones((data.n_samples, 1))}, data.y)
    masks = {"a": data.x["x"][:, 0] > 1, "b": None}
    plain, wide = nr.pathways(data, masks, hidden=8), nr.pathways(ones, masks, hidden=8)
    found, wanted = (
        nr.contest(g, scale=1e-3, criterion=0.6, relative=True, bias=bias)
        for g, bias in (({"g": plain}, True), ({"g": wide}, False))
    )
    assert found.times["g"] == pytest.approx(wanted.times["g"], rel=1e-6)
    without = nr.contest({"g": plain}, scale=1e-3, criterion=0.6, relative=True)
    assert found.times["g"] < 0.99 * without.times["g"]
    assert found.kept == pytest.approx(wanted.kept)
    reduced = {"g": nr.reduce(*plain)}
    race = nr.contest(reduced, scale=1e-3, criterion=0.6, relative=True, bias=True)
    assert race.times["g"] == pytest.approx(wanted.times["g"], rel=1e-6)
    assert nr.contest(nr.tasks.parity(3)).winner is None
    assert nr.contest(nr.tasks.parity(3), bias=True).winner == "aligned"  # a bias starts it
    with pytest.raises(NeuralRaceError, match="bias"):
        nr.contest({"g": plain}, bias="yes")


def test_beside_an_output_bias_there_is_no_reference():
    arch, data = gatings(0.5)["xor"]
    full = arch.with_bias()
    start = {"xor": nr.GDLN(full).init(0, scale=1e-3)}
    check = nr.contest({"xor": (full, data)}, start=start, criterion=0.5, relative=True).check()
    assert check.reference is None and "output bias" in check.reason
    assert check.verdict("xor") in (Kept.NOT_KEPT, Kept.UNKNOWN)


def test_ranges_of_other_winners_hold_at_both_ends():
    data = nr.tasks.contextual(contexts=3, items=8, joined=True)
    pairs = nr.tasks.natural_gatings(data)
    level = 1.2
    found = nr.contest(pairs, criterion=level)
    said = [lead for lead in found.leads if lead.name != found.winner]
    texts = [sentence.text for sentence in found.sentences() if sentence.id == "lead"]
    assert texts and len(texts) == len(said)
    for lead, text in zip(said, texts, strict=True):
        assert f"between {lead.low:.2g} and {lead.high:.2g} {lead.name}" in text
    for lead in said:
        for part in (0.1, 0.9):
            at = lead.low + part * (lead.high - lead.low)
            assert lead.name in nr.contest(pairs, criterion=at).tied


def test_a_reference_that_learns_nearly_all_is_not_said_to_learn_only_all():
    data = nr.tasks.extended_xor(0.4)
    check = nr.contest(data, criterion=0.02, relative=True).check()
    assert not any("only 100 %" in said.text for said in check.sentences("aligned"))


def test_an_average_start_needs_no_name():
    data = nr.Dataset({"x": np.eye(2)}, {"y": [[1.0], [2.0]]})
    race = nr.reduce(nr.Architecture.chain(2, 4, 4, 1), data)
    with refuses("the race"):
        nr.contests.expected_start(race, 1e-3)
    with refuses("deep"):
        nr.contest({"deep": race}, scale=1e-3)


# ---- the cost of a check ------------------------------------------------------------------------


def repeated(data: nr.Dataset, times: int, rng: np.random.Generator) -> nr.Dataset:
    """Every sample several times, with inputs of other lengths and targets that are theirs."""
    by = rng.uniform(0.5, 2, size=(times * data.n_samples, 1))
    x = {v: np.repeat(a, times, axis=0) * by for v, a in data.x.items()}
    y = {v: np.repeat(a, times, axis=0) * by for v, a in data.y.items()}
    return nr.Dataset(x, y)


def test_inputs_of_one_direction_cost_as_much_as_one(monkeypatch):
    rng = np.random.default_rng(0)
    data = nr.tasks.gaussian(samples=6, inputs=3, outputs=2, key=1)
    seen = []
    velocity = settling._Flow.velocity

    def watched(self, both):
        seen.append(len(self.x))
        return velocity(self, both)

    monkeypatch.setattr(settling._Flow, "velocity", watched)
    many = repeated(data, 20, rng)
    found = nr.reln.aligned_patterns(many, neurons=50)
    assert set(seen) == {6}
    assert found.gates.shape[1] == 120
    assert (found.gates.reshape(len(found), 6, 20) == found.gates[:, ::20, None]).all()


@pytest.mark.parametrize("leak", [0.0, 0.4])
def test_the_flow_of_neurons_is_that_of_all_samples(leak):
    """dw/dt = ⟨g (a·y) x⟩ and da/dt = ⟨g (w·x) y⟩, summed over all samples by hand."""
    rng = np.random.default_rng(3)
    data = repeated(nr.tasks.gaussian(samples=5, inputs=3, outputs=2, key=2), 4, rng)
    samples = Samples.of(data)
    line, side = samples.lines
    assert len(np.unique(2 * line + (side < 0))) == 5
    settled = settling.settle(samples, np.random.default_rng(0), 40, leak)
    w, a = settled.both[:, :3], settled.both[:, 3:]
    z = w @ samples.x.T
    gate = np.where(z > 0, 1.0, leak) * samples.p
    dw, da = (gate * (a @ samples.y.T)) @ samples.x, (gate * z) @ samples.y
    inside = settled.live & ((settled.on == 0) | (settled.on == 1)).all(axis=1)
    assert inside.any()
    moved = np.concatenate([dw, da], axis=1)[inside]
    unit = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, settled.both[inside], atol=1e-5)  # at rest: along itself


def test_lines_are_those_of_comparing_every_pair():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(12, 4))
    x = np.concatenate([rows, -2 * rows[:5], 3 * rows[3:8], np.zeros((2, 4)), rows[:1] + 1e-6])
    line, side = lines_of(x)
    for m in range(len(x)):
        for n in range(len(x)):
            a, b = (v / max(np.linalg.norm(v), 1e-300) for v in (x[m], x[n]))
            same = min(np.linalg.norm(a - b), np.linalg.norm(a + b)) < 1e-9
            assert (line[m] == line[n]) == same
            if same and a.any():
                assert side[m] * side[n] == np.sign(a @ b)


# ---- above contests -----------------------------------------------------------------------------


STATE = {
    "task": {"builtin": "extended_xor", "parameters": {"delta": 0.5}},
    "network": {"widths": 16, "scale": 1e-3, "leak": 0.9},
    "gatings": {"xor": {"builtin": "xor_pathways"}},
}


def test_a_study_and_the_explorer_pass_the_leak_on(tmp_path):
    arch, data = nr.tasks.xor_pathways(nr.tasks.extended_xor(0.5), 16)
    share = nr.reln.consistency(arch, data, scale=1e-3, leak=0.9).share
    study = nr.Study.of(questions=["contest"], **STATE)
    answer = study.run()["contest"]
    assert answer.numbers["kept_xor"] == pytest.approx(share, abs=0.01)
    assert "would not keep the gates of xor" in " ".join(
        sentence.text for sentence in answer.sentences()
    )
    assert "leak=0.9" in study.script()
    found = racing.kept({"state": STATE}, Trust(tmp_path), lambda *_: None)["gatings"]["xor"]
    assert found["share"] == pytest.approx(share, abs=0.01)
    assert found["standing"] == Kept.NOT_KEPT.value
    parts = [each["share"] for each in found["pathways"].values()]
    assert np.mean(parts) == pytest.approx(found["share"], abs=0.05)


def test_a_study_refuses_the_check_beside_output_biases(tmp_path):
    biased = STATE | {"network": {"widths": 16, "bias": True}}
    with pytest.raises(NeuralRaceError, match="bias"):
        nr.Study.of(questions=["contest"], **biased).check()
    nr.Study.of(questions=["contest"], contest={"check": False}, **biased).check()
    with pytest.raises(NeuralRaceError, match="bias"):
        racing.kept(
            {"state": biased | {"contest": {"check": False}}}, Trust(tmp_path), lambda *_: None
        )
