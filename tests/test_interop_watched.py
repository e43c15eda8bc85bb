"""Theory over a running training: what is recorded, what is expected, and that nothing raises."""

import json
import math

import numpy as np
import pandas
import pytest

import neuralrace as nr
from neuralrace.interop import Expected, Watched, watching
from neuralrace.interop.recorder import records
from neuralrace.interop.runs import Moment, Trained, imported_run
from neuralrace.interop.watch import Plan, Watcher, expected, gates
from tests.fake_torch import Linear, ReLU, Sequential, Tanh
from tests.test_errors import refuses

DATA = nr.tasks.extended_xor(0.4)


@pytest.fixture
def alone(monkeypatch):
    """No second process: the test looks into the folder itself."""

    class Process:
        def poll(self):
            return None

        def wait(self):
            return 0

    monkeypatch.setattr(watching, "_watcher", lambda folder: Process())


def looked(live):
    watcher = Watcher(live.folder)
    watcher.begin().join()
    watcher.look()
    return watcher


def trained(net, weights, steps, **watch):
    live = nr.live(net, DATA, 10, weights=weights, learning_rate=0.1, steps=steps, **watch)
    for _ in range(steps // 10):
        weights = nr.train(net, weights, DATA, learning_rate=0.1, steps=10).final
        live.step(weights=weights, by=10)
    return live


def test_distances_are_those_of_the_curves():
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(1, 9, 12))
    steps -= steps[0]
    loss, predicted = rng.uniform(0.1, 2, (2, 12))
    networks = rng.uniform(0.1, 2, (4, 12))
    frame = Watched(
        {"step": steps, "loss": loss}, Expected("it", steps, predicted, networks)
    ).frame()
    pairs = [(a, b) for a in range(4) for b in range(a)]
    for k in range(1, 12):
        mean = lambda curve, k=k: np.trapezoid(curve[: k + 1], steps[: k + 1]) / steps[k]
        gap = mean(np.abs(loss - predicted))
        floor = np.mean([mean(np.abs(networks[a] - networks[b])) for a, b in pairs])
        assert frame["distance"][k] == pytest.approx(gap / loss[0])
        assert frame["floors"][k] == pytest.approx(gap / floor)
    assert frame["low"].tolist() == networks.min(axis=0).tolist()


def test_a_relu_network_is_within_the_simulated_ones_of_its_prediction(alone):
    net = nr.ReLUNetwork((3, 64, 1))
    watcher = looked(trained(net, net.init(1, scale=0.02), 200))
    result = watcher.result(ended=True)
    frame = result.frame()
    assert frame["step"].tolist() == [*range(0, 201, 10)]
    assert result.expected.is_known and len(result.expected.networks) == 19
    assert frame["distance"].iloc[-1] < 0.03 and frame["floors"].iloc[-1] < 3
    assert {each.id for each in result.sentences()} == {"answer", "prediction", "columns"}
    rows = [json.loads(line) for line in (watcher.folder / "rows.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == frame["step"].tolist()
    again = nr.from_recording(watcher.folder, DATA)[1]
    np.testing.assert_allclose(again.loss, frame["loss"])


@pytest.mark.parametrize("scale", [1e-6, 1e-3])
def test_a_linear_network_is_raced_from_its_own_weights(alone, scale):
    net = nr.GDLN(nr.Architecture.chain(3, 8, 1))
    found = looked(trained(net, net.init(0, scale=scale), 400)).result().frame()
    assert found["loss"].iloc[-1] < 0.9 * found["loss"].iloc[0]  # it learns meanwhile
    assert found["distance"].iloc[-1] < 1e-3 and found["floors"].isna().all()


def test_a_race_is_known_at_the_first_steps_of_a_long_training():
    net = nr.GDLN(nr.Architecture.chain(3, 8, 1))
    weights = {e: np.asarray(w) for e, w in net.init(0, scale=0.5).items()}
    known = expected(plan(learning_rate=0.3, steps=20_000), net, weights)
    race = nr.reduce(net.arch, DATA)
    loss = race.solve(times=0.3 * np.arange(13), start=weights, learning_rate=0.3).loss
    assert loss[5] < 0.9 * loss[0]  # much is learned in the first of 20 000 steps
    np.testing.assert_allclose(known.at(np.arange(13)), loss, rtol=1e-6)


def test_gates_are_counted_by_the_weight_of_neurons():
    rng = np.random.default_rng(3)
    net = nr.ReLUNetwork((3, 5, 2))
    data = nr.Dataset({"x": rng.normal(size=(6, 3))}, {"y": rng.normal(size=(6, 2))},
                      sample_weight=rng.uniform(1, 2, 6))  # fmt: skip
    first, last = ({e: rng.normal(size=s) for e, s in net.arch.shapes.items()} for _ in "ab")
    on = [data.x["x"] @ w["W1"].T > 0 for w in (first, last)]
    weight = np.linalg.norm(last["W1"], axis=1) * np.linalg.norm(last["W2"], axis=0)
    weight /= weight.sum()
    p = np.asarray(data.probability)
    pair = [Moment("a", net, first), Moment("b", net, last)]
    run = imported_run(pair, data, [0, 1], Trained("here", "squared", None, None))[1]
    row = gates(run, data)
    assert row["kept"] == pytest.approx(p @ (on[0] == on[1]) @ weight)
    assert row["on"] == pytest.approx(p @ on[1] @ weight)
    held = sorted(
        (sum(weight[k] for k in range(5) if (on[1][:, k] == one).all())
         for one in np.unique(on[1].T, axis=0)), reverse=True,
    )  # fmt: skip
    assert row["patterns"] == next(n for n in range(1, 6) if sum(held[:n]) >= 0.9)


def test_a_model_in_a_loop_with_what_the_loop_says(alone):
    x = np.concatenate([DATA.x["x"]], axis=1)
    model = Sequential(Linear(3, 6, seed=1), ReLU(), Linear(6, 1, seed=2))
    live = nr.live(model, nr.Dataset({"x": x}, DATA.y), 2, learning_rate=0.1, steps=50)
    for k in range(4):
        model._modules["0"]._parameters["weight"].array *= 0.9
        live.step(loss=float(k))
    frame = looked(live).result().frame()
    assert frame["step"].tolist() == [0, 2, 4] and frame["told"][1:].tolist() == [1.0, 3.0]
    mine = [np.mean((DATA.y["y"] - model(x)) ** 2) / 2]
    assert frame["loss"].iloc[-1] == pytest.approx(mine[0])
    assert np.isfinite(frame["predicted"]).all()


def test_what_cannot_be_read_is_recorded_by_what_the_loop_says(alone):
    model = Sequential(Linear(3, 6), Tanh(), Linear(6, 1))
    with nr.live(model, DATA, 1, learning_rate=0.1, steps=9) as live:
        live.step(loss=np.float32(0.5))
    result = looked(live).result()
    assert result.frame()["loss"].tolist()[1:] == [0.5]
    assert not result.expected.is_known and "Tanh" in result.expected.reason


SIZES, EDGES = {"x": 3, "h": 4, "y": 1}, {"into": ("x", "h"), "out": ("h", "y")}


def plan(**changes):
    settings = {"data": DATA, "loss": "squared", "learning_rate": 0.1, "steps": 10}
    return Plan(**(settings | {"predict": True, "why": ""} | changes))


@pytest.mark.parametrize(
    ("changes", "net"),
    [
        ({"predict": False}, nr.ReLUNetwork((3, 4, 1))),
        ({"loss": "cross_entropy"}, nr.ReLUNetwork((3, 4, 1))),
        ({"learning_rate": None}, nr.ReLUNetwork((3, 4, 1))),
        ({"steps": None}, nr.ReLUNetwork((3, 4, 1))),
        ({}, nr.ReLUNetwork((3, 4, 4, 1))),
        ({}, nr.ReLUNetwork(nr.Architecture(SIZES, {**EDGES, "skip": ("x", "y")}))),
        ({}, nr.ReLUNetwork(nr.Architecture({"one": 1} | SIZES, {**EDGES, "b": ("one", "h")}))),
        ({}, nr.ReLUNetwork(nr.Architecture(SIZES, EDGES, frozen={"out": np.ones((1, 4))}))),
        ({"learning_rate": 1e4, "steps": 200}, nr.ReLUNetwork((3, 4, 1))),
        ({}, None),
    ],
)
def test_what_is_not_known_has_a_reason(changes, net):
    found = expected(plan(**changes), net, {} if net is None else net.init(0, scale=0.1))
    assert not found.is_known and found.reason and "KeyError" not in found.reason


@pytest.mark.parametrize("every", [1, 4])
def test_what_fails_beside_the_record_makes_no_more_of_them(alone, every):
    net = nr.ReLUNetwork((3, 4, 1))
    live = nr.live(net, DATA, every, weights=net.init(0), predict=False)
    live._process.poll = lambda: 1  # the second process is gone
    with pytest.warns(UserWarning, match="watching process ended"):
        [live.step(weights=net.init(k)) for k in range(1, 11)]
    assert len(records(live.folder)) == 1 + 10 // every


def test_the_last_record_has_the_last_weights(alone):
    net = nr.ReLUNetwork((3, 4, 1))
    live = nr.live(net, DATA, 4, weights=net.init(0), predict=False)
    for k in range(1, 7):
        live.step(weights=net.init(k))
    live.close(), live.close()
    frame = looked(live).result().frame()
    assert frame["step"].tolist() == [0, 4, 6]
    assert frame["loss"].iloc[-1] == pytest.approx(float(net.loss(net.init(6), DATA)), rel=1e-5)


def test_a_failure_never_reaches_the_loop_and_is_said_once(alone):
    model = Sequential(Linear(3, 6, seed=1), ReLU(), Linear(6, 1, seed=2))
    live = nr.live(model, DATA, 1, predict=False)
    good = model.state_dict

    def broken():
        raise OSError("the disk is gone")

    def loop():
        for k in range(5):
            model.state_dict = broken if k in (1, 2) else good
            live.step()

    with pytest.warns(UserWarning, match="the disk is gone") as said:
        loop()
    assert len(said) == 1
    assert looked(live).result().frame()["step"].tolist() == [0, 1, 4, 5]


def test_where_the_rows_go(alone, tmp_path):
    class Writer:
        rows = []

        def add_scalar(self, name, value, step):
            self.rows.append((name, value, step))

    class Wandb:
        rows = []

        def log(self, row):
            self.rows.append(row)

    net, said = nr.ReLUNetwork((3, 4, 1)), []
    for log in (Writer(), Wandb(), said.append, tmp_path / "live.csv"):
        live = nr.live(net, DATA, 1, weights=net.init(0), predict=False, log=log)
        live.step(loss=0.25, weights=net.init(1))
        looked(live)
        live._pass_on(last=True)
    frame = looked(live).result().frame()
    assert [row["step"] for row in said] == [0, 1] and said[1]["told"] == 0.25
    assert ("neuralrace/loss", frame["loss"][1], 1) in Writer.rows
    assert Wandb.rows[1]["neuralrace/loss"] == frame["loss"][1]
    stored = pandas.read_csv(tmp_path / "live.csv")
    np.testing.assert_allclose(stored["loss"], frame["loss"])
    assert list(stored) == list(frame)


def test_by_default_records_are_as_dear_as_they_may_be(alone, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(watching.time, "perf_counter", lambda: clock[0])
    net = nr.ReLUNetwork((3, 4, 1))
    live = nr.live(net, DATA, weights=net.init(0), predict=False, steps=3000)
    record = live._record

    def costly(loss, weights):
        clock[0] += 0.5
        record(loss, weights)

    live._record = costly
    for _ in range(3000):
        clock[0] += 0.1
        live.step(weights=net.init(0))
    assert 0.03 < live.overhead <= 0.05
    steps = [row["step"] for row in looked(live).rows]
    assert len(steps) == pytest.approx(1 + 0.05 * 300 / 0.5, abs=5) and steps[:4] == [0, 1, 2, 3]


def test_the_second_process_draws_the_page(tmp_path):
    net = nr.GDLN(nr.Architecture.chain(3, 4, 1))
    live = nr.live(net, DATA, 5, weights=net.init(0, scale=0.1), folder=tmp_path / "live",
                   learning_rate=0.1, steps=10)  # fmt: skip
    nr.train(net, net.init(0, scale=0.1), DATA, learning_rate=0.1, steps=10, callback=live)
    result = live.close()
    page = live.page.read_text()
    assert result.ended and result.frame()["step"].iloc[-1] == 10
    assert result.expected.is_known and not math.isnan(result.frame()["predicted"].iloc[-1])
    assert "<svg" in page and "refresh" not in page and result.sentences()[0].text in page


def test_bad_calls(tmp_path):
    net = nr.ReLUNetwork((3, 4, 1))
    good = {"weights": net.init(0)}
    with refuses("weights"):
        nr.live(net, DATA)
    with refuses("loss"):
        nr.live(net, DATA, loss="hinge", **good)
    with refuses("log"):
        nr.live(net, DATA, log=3, **good)
    with refuses("every"):
        nr.live(net, DATA, 0, **good)
    with refuses("learning_rate"):
        nr.live(net, DATA, learning_rate=-1, **good)
    (tmp_path / "plan.npz").touch()
    with refuses("folder"):
        nr.live(net, DATA, folder=tmp_path, **good)
