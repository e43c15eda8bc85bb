"""Trajectories: what they hold, parts of them, and several as one."""

import dataclasses

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.trajectory import check_name
from tests.test_errors import refuses
from tests.trajectories import Doubling, assert_same, ensemble, rates, single


def test_loss_must_fit_the_times_and_axes():
    with refuses("loss"):
        nr.Trajectory([0, 1, 2], [1.0, 0.5])
    with refuses("loss"):
        nr.Trajectory([0, 1], [1.0, 0.5], axes={"seed": [0, 1]})


def test_steps_and_clock_must_fit():
    assert nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10]).steps.tolist() == [0, 10]
    with refuses("steps"):
        nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10, 20])
    with refuses("steps"):
        nr.Trajectory([0, 1], [1.0, 0.5], steps=[0.0, 1.5])
    with refuses("sample_weight"):
        nr.Trajectory([0, 1], [1.0, 0.5], sample_weight=np.ones((2, 3)))
    assert single().clock == "flow"
    with refuses("clock"):
        nr.Trajectory([0, 1], [1.0, 0.5], settings={"clock": "hours"})


def test_outputs_are_those_recorded_or_those_of_the_source():
    assert nr.Trajectory([0, 1], [1.0, 0.5]).outputs is None
    assert nr.Trajectory([0, 1], [1.0, 0.5], source=Doubling()).outputs["y"][1, 2, 0] == 2
    recorded = nr.Trajectory(
        [0, 1], [1.0, 0.5], values={"outputs": {"y": np.zeros((2, 3, 1))}}, source=Doubling()
    )
    assert recorded.outputs["y"][1, 2, 0] == 0


@pytest.mark.parametrize("name", ["a/b", "", ".", "a.b", "a\0", "\ud800", "loss", "time"])
def test_names_that_cannot_be_saved_are_refused(name):
    with pytest.raises(nr.NeuralRaceError, match=r"cannot be saved|is taken"):
        check_name(name)
    with pytest.raises(nr.NeuralRaceError, match=r"cannot be saved|is taken"):
        nr.Trajectory([0, 1], [1.0, 0.5], values={name: [0.0, 1.0]})


@pytest.mark.parametrize("name", ["a b", "σ_1", "a-b", " a", "W1·W2", "a\\b", "_x", "1", "@"])
def test_names_that_are_not_refused_come_back(name, tmp_path):
    check_name(name)
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={name: np.eye(2), "v": {name: np.ones(2)}})
    assert_same(nr.load(run.save(tmp_path / "run.nc")), run)


def test_inner_names_are_checked_and_axes_are_not_values():
    with refuses("a.b"):
        nr.Trajectory([0, 1], [1.0, 0.5], values={"v": {"a.b": [0.0, 1.0]}})
    nr.Trajectory([0, 1], [1.0, 0.5], values={"v": {"loss": [0.0, 1.0]}})
    with refuses("seed"):
        nr.Trajectory([0, 1], [[1.0, 0.5]], values={"seed": [[0.0, 1.0]]}, axes={"seed": [0]})


def test_settings_hold_the_versions():
    versions = single().settings["versions"]
    assert versions["neuralrace"] == nr.__version__
    assert versions["jax"] == jax.__version__
    assert versions["numpy"] == np.__version__
    assert versions["python"].startswith("3.")
    assert versions["optax"][0].isdigit()


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        single().loss = np.zeros(4)


def test_join_puts_runs_on_one_time_axis():
    a = nr.Trajectory([1, 2], [1.0, 0.5], values={"v": {"w": [[1.0], [2.0]]}, "only": [0.0, 0.0]})
    b = nr.Trajectory([0, 3, 4], [0.6, 0.3, 0.2], values={"v": {"w": [[7.0], [3.0], [4.0]]}})
    c = nr.Trajectory(
        [10, 11], [0.2, 0.1], values={"v": {"w": [[4.0], [5.0]]}}, final={"W": np.eye(2)}
    )
    both = nr.join(a, b, c)
    assert both.time.tolist() == [1, 2, 5, 6, 7]
    assert both.loss.tolist() == [1.0, 0.5, 0.3, 0.2, 0.1]
    assert set(both.values) == {"v"}
    assert both.values["v"]["w"][:, 0].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(both.final["W"], np.eye(2))
    assert [part["method"] for part in nr.join(single(), single()).settings["parts"]] == [
        "gradient descent"
    ] * 2


def test_join_of_one_run_is_that_run():
    both = nr.join(single())
    np.testing.assert_array_equal(both.loss, single().loss)
    np.testing.assert_array_equal(both.time, single().time)
    assert jax.tree.structure(both.values) == jax.tree.structure(single().values)


def test_join_of_ensembles():
    both = nr.join(ensemble(), ensemble())
    assert both.loss.shape == (2, 3, 3)
    assert both.values["outputs"]["y"].shape == (2, 3, 3, 4, 1)
    np.testing.assert_array_equal(both.loss[..., :2], ensemble().loss)
    np.testing.assert_array_equal(both.loss[..., 2], ensemble().loss[..., 1])
    assert list(both.axes) == ["delta", "seed"]


def test_join_leaves_out_values_of_other_shapes():
    a = nr.Trajectory([0, 1], [1.0, 0.5], values={"o": np.zeros((2, 4)), "n": np.zeros(2)})
    b = nr.Trajectory([0, 1], [1.0, 0.5], values={"o": np.zeros((2, 3)), "n": np.ones(2)})
    both = nr.join(a, b)
    assert set(both.values) == {"n"}
    assert both.values["n"].tolist() == [0, 0, 1]


def test_join_needs_equal_axes():
    with refuses("runs"):
        nr.join(ensemble(), single())
    with refuses("seed"):
        nr.join(ensemble(3), ensemble(4))
    with refuses("runs"):
        nr.join()


def test_isel_picks_one_run(tmp_path):
    many = ensemble()
    one = many.isel(delta=1, seed=np.int64(2))
    assert one.axes == {}
    np.testing.assert_array_equal(one.loss, many.loss[1, 2])
    np.testing.assert_array_equal(one.values["outputs"]["y"], many.values["outputs"]["y"][1, 2])
    np.testing.assert_array_equal(one.final["W1"], many.final["W1"][1, 2])
    assert one.settings["at"] == {"delta": 0.8, "seed": 2}
    assert one.settings["key"] == [0, 7]
    assert one.net == many.net
    np.testing.assert_array_equal(many.isel(seed=-2).loss, many.loss[:, 1])
    assert_same(nr.load(one.save(tmp_path / "one.nc")), one)
    with refuses("width"):
        many.isel(width=0)
    with refuses("seed"):
        many.isel(seed=3)
    with refuses("seed"):
        many.isel(seed=0.5)


@pytest.mark.parametrize(
    "where",
    [
        {"delta": 1, "seed": 2},
        {"delta": [1, 0], "seed": [2, 0]},
        {"delta": slice(0, 1), "seed": [1]},
        {"seed": slice(None, None, 2)},
        {"delta": 0, "time": [1]},
        {"time": slice(1, None)},
    ],
)
def test_selecting_is_xarrays(where):
    many, table = ensemble(), ensemble().to_xarray()
    part, wanted = many.isel(**where), table.isel(where)
    values = {a: table[a].values[i] for a, i in where.items() if not isinstance(i, slice)}
    for found in (part, many.sel(**values) if len(values) == len(where) else part):
        assert list(found.axes) == [d for d in wanted["loss"].dims if d != "time"]
        for name in ("loss", "outputs.y", "final.W1"):
            np.testing.assert_array_equal(found.to_xarray()[name].values, wanted[name].values)
        for axis, coordinates in found.axes.items():
            np.testing.assert_array_equal(coordinates, wanted[axis].values)


def test_sel_by_coordinate():
    many = ensemble()
    np.testing.assert_array_equal(many.sel(delta=0.1 + 0.1, seed=1).loss, many.loss[0, 1])
    np.testing.assert_array_equal(many.sel(delta=0.7, method="nearest").loss, many.loss[1])
    np.testing.assert_array_equal(many.sel(delta=slice(0.2, 0.7)).loss, many.loss[:1])
    np.testing.assert_array_equal(many.sel(seed=slice(1, 2)).loss, many.loss[:, 1:])
    with refuses("delta"):
        many.sel(delta=0.7)
    with refuses("seed"):
        many.sel(seed="a")
    with refuses("method"):
        many.sel(seed=0, method="ffill")
    named = nr.Trajectory([0, 1], [[1.0, 0.5], [2.0, 1.0]], axes={"gating": ["xor", "linear"]})
    assert named.sel(gating="linear").loss[0] == 2


def test_moments_are_picked_in_order():
    run = single(steps=[0, 5, 15, 40], sample_weight=np.ones(5) / 5)
    part = run.sel(time=[0.6, 1.4], method="nearest")
    assert part.time.tolist() == [0.5, 1.5] and part.steps.tolist() == [5, 15]
    assert part.final == {}, "the weights at t = 1.5 were not recorded"
    np.testing.assert_array_equal(part.sample_weight, run.sample_weight)
    assert set(run.isel(time=-1).final) == {"W1", "W2"}
    assert run.isel(time=2).time.tolist() == [1.5]
    path = np.arange(12.0).reshape(2, 2, 3, 1)
    many = nr.Trajectory(
        [0, 1],
        np.ones((2, 2)),
        values={"weights": {"W": path}},
        final={"W": path[:, -1]},
        axes={"seed": [0, 1]},
    )
    np.testing.assert_array_equal(many.isel(seed=1, time=[0]).final["W"], path[1, 0])
    with refuses("times"):
        run.isel(time=[1, 0])


def test_a_member_of_an_ensemble_over_rates_has_its_own_time():
    many = rates()
    for i, rate in enumerate(many.axes["learning_rate"]):
        one = many.isel(learning_rate=i)
        assert one.time.tolist() == pytest.approx([0, 10 * rate, 20 * rate])
        assert one.clock == "flow" and one.steps.tolist() == [0, 10, 20]
        assert one.settings["learning_rate"] == rate
        exact = nr.Trajectory(one.time, np.exp(-one.time))
        assert nr.compare(exact, one).mean < 1e-15
    assert many.isel(learning_rate=[1]).clock == "steps"
    heavy = rates(optimizer="momentum", momentum=0.9).sel(learning_rate=0.2)
    assert heavy.time.tolist() == pytest.approx([0, 20, 40]) and heavy.clock == "approximate flow"
    assert rates(optimizer="other").isel(learning_rate=0).clock == "steps"


def test_settings_that_differ_along_an_axis_are_picked():
    many = nr.Trajectory(
        [0, 1],
        np.ones((2, 3, 2)),
        axes={"delta": [0.0, 1.0], "seed": [0, 1, 2]},
        sample_weight=np.arange(12.0).reshape(2, 3, 2),
        settings={"data": {"delta": ["a", "b"]}, "method": "gradient descent"},
    )
    assert many.isel(delta=1).settings["data"] == "b"
    assert many.isel(delta=[1]).settings["data"] == {"delta": ["b"]}
    assert many.isel(seed=1).settings["data"] == {"delta": ["a", "b"]}
    assert many.isel(delta=1, seed=2).sample_weight.tolist() == [10, 11]


def test_concat_along_an_axis_undoes_isel(tmp_path):
    many = ensemble()
    for axis in many.axes:
        parts = [many.isel(**{axis: i}) for i in range(len(many.axes[axis]))]
        whole = nr.concat(parts, axis=(axis, many.axes[axis]))
        again = nr.concat([many.isel(**{axis: [0]}), many.isel(**{axis: slice(1, None)})], axis)
        order = list(many.axes)
        np.testing.assert_array_equal(again.loss, many.loss)
        np.testing.assert_array_equal(again.axes[axis], many.axes[axis])
        np.testing.assert_array_equal(np.moveaxis(whole.loss, 0, order.index(axis)), many.loss)
        assert next(iter(whole.axes)) == axis and whole.net == many.net
        assert set(whole.final) == {"W1"} and set(whole.values) == {"outputs"}
        loaded = nr.load(whole.save(tmp_path / "run.nc"))
        assert loaded.settings == whole.settings


def test_concat_keeps_what_differs_along_the_axis():
    def run(rate, digest, weight):
        settings = {"learning_rate": rate, "data": digest, "method": "gradient descent"}
        steps = np.arange(3)
        return nr.Trajectory(
            rate * steps, np.ones(3), steps=steps, sample_weight=weight, settings=settings
        )

    a, b = run(0.1, "a", None), run(0.2, "b", [0.25, 0.75])
    both = nr.concat([a, b], axis=("learning_rate", [0.1, 0.2]))
    assert both.clock == "steps" and both.time.tolist() == [0, 1, 2]
    assert both.settings["learning_rate"] == [0.1, 0.2]
    assert both.settings["data"] == {"learning_rate": ["a", "b"]}
    for part, rate in ((a, 0.1), (b, 0.2)):
        again = both.sel(learning_rate=rate)
        np.testing.assert_allclose(again.time, part.time)
        assert again.clock == "flow" and again.settings["data"] == part.settings["data"]
    assert both.sample_weight.tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert both.isel(learning_rate=1).sample_weight.tolist() == [0.25, 0.75]
    with refuses("times"):
        nr.concat([a, b], axis="width")
    with refuses("width"):
        nr.concat([a], axis=("width", [1, 2, 3]))
    with refuses("parts"):
        nr.concat([a, ensemble()], axis="width")
    with refuses("clock"):
        nr.concat([a, nr.Trajectory(a.time, a.loss, settings={"clock": "steps"})], axis="width")
    with refuses("delta"):
        nr.concat([ensemble().isel(delta=[0]), ensemble().isel(delta=[1])], axis="seed")


def test_join_counts_steps_on_and_refuses_other_clocks():
    run = nr.Trajectory([0, 1], [1.0, 0.5], steps=[0, 10], sample_weight=[1.0])
    assert nr.join(run, run).steps.tolist() == [0, 10, 20]
    assert nr.join(run, run).sample_weight.tolist() == [1.0]
    assert nr.join(run, nr.Trajectory([0, 1], [1.0, 0.5])).steps is None
    with refuses("clock"):
        nr.join(run, nr.Trajectory([0, 1], [1.0, 0.5], settings={"clock": "steps"}))


def test_weights_from_elsewhere():
    data = nr.Dataset({"x": [[1.0, 0.0], [0.0, 1.0]]}, {"y": [[1.0], [2.0]]}, sample_weight=[1, 3])
    net = nr.GDLN(nr.Architecture.chain(2, 3, 1))
    rng = np.random.default_rng(0)
    weights = {"W2": rng.normal(size=(4, 1, 3)), "W1": rng.normal(size=(4, 3, 2))}
    run = nr.Trajectory.from_weights(net, weights, data, [0, 1, 2, 5])
    y = weights["W2"] @ weights["W1"]
    np.testing.assert_allclose(run.outputs["y"][..., 0], y[:, 0], rtol=1e-12)
    wanted = ((y[:, 0] - [1.0, 2.0]) ** 2) @ [0.25, 0.75] / 2
    np.testing.assert_allclose(run.loss, wanted, rtol=1e-12)
    np.testing.assert_array_equal(run.final["W1"], weights["W1"][-1])
    assert run.settings["method"] == "given weights" and run.settings["data"] == data.digest()
    assert run.sample_weight.tolist() == [0.25, 0.75] and run.net == net
    with refuses("times"):
        nr.Trajectory.from_weights(net, weights, data, [0, 1, 1, 5])
    with refuses("weights"):
        nr.Trajectory.from_weights(net, weights, data, [0, 1])
    with refuses("W1"):
        nr.Trajectory.from_weights(net, {"W2": weights["W2"]}, data, [0, 1, 2, 5])


def test_it_shows_itself_in_one_line_and_as_a_table():
    assert repr(single()) == (
        "Trajectory(method: gradient descent, time: 0 … 4 (4 moments), loss: 1 → 0.125, "
        "values: sv, norm, on, outputs, deep)"
    )
    assert "time: 4 (1 moment), loss: 0.125, " in repr(single().isel(time=[-1]))
    many = repr(ensemble())
    assert "axes: delta (2), seed (3)" in many and "net: ReLUNetwork" in many
    assert "steps" in repr(rates())
    page = nr.Trajectory([0, 1], [1.0, 0.5], settings={"method": "<b>"})._repr_html_()
    assert page.startswith("<table>") and "&lt;b&gt;" in page


def test_isel_takes_arrays_and_masks():
    many = nr.Trajectory([0, 1, 2], np.arange(12.0).reshape(4, 3), axes={"seed": np.arange(4)})
    np.testing.assert_array_equal(many.isel(seed=np.array([2, 0])).loss, many.loss[[2, 0]])
    np.testing.assert_array_equal(many.isel(seed=many.loss[:, -1] > 5).axes["seed"], [2, 3])
    assert many.isel(seed=np.int64(1)).axes == {}
    np.testing.assert_array_equal(many.isel(time=np.array([True, False, True])).time, [0, 2])


def test_the_time_at_which_a_loss_falls_to_a_level():
    from neuralrace.trajectory import crossing_time

    time, rate = np.linspace(0, 8, 4001), np.array([0.5, 1.0, 2.0])
    loss = np.exp(-rate[:, None] * time)
    np.testing.assert_allclose(crossing_time(time, loss, 0.1), np.log(10) / rate, rtol=1e-5)
    assert crossing_time(time, loss[0], 2.0) == 0
    steps = np.array([[1.0, 0.5, 0.1, 0.0, 0.0], [1.0, 0.9, 0.8, 0.7, 0.6]])
    np.testing.assert_allclose(crossing_time(np.arange(5.0), steps, 0.2), [1.75, np.nan])
    assert np.isnan(crossing_time(time, np.append(loss[0, :-1], np.nan), 1e-3))
    rise = crossing_time(time, 1 - loss, 0.9, rising=True)
    np.testing.assert_allclose(rise, np.log(10) / rate, rtol=1e-5)
    path = time * np.exp(1 - time)  # rises to 1 at t = 1, and falls again
    there = [crossing_time(time, path, 0.5, rising=up) for up in (True, False)]
    np.testing.assert_allclose(there, [0.231961, 2.678347], atol=1e-5)
    both = crossing_time(time, 1 - np.array([path, path / 4]), 0.5, rising=True)
    np.testing.assert_allclose(both, [2.678347, 0.0], atol=1e-5)  # one leaves, one stays
    with refuses("times"):
        crossing_time([0, 1], np.zeros((2, 3)), 0.5)
    both = np.stack([loss[0], 1 - loss[0]])
    with refuses("rising"):
        crossing_time(time, both, 0.5)
    with refuses("rising"):
        crossing_time(time, both, 0.5, rising=True)
    assert crossing_time(time, np.append(1 - loss[0, :-1], np.nan), 0.5) == 0  # it diverged
    assert crossing_time(np.arange(4.0), [0.99, 0.5, 0.2, 1.01], 1.0) == 0  # it fell far first
    assert crossing_time(np.arange(3.0), [1 - 1e-16, 1.0, 1 + 1e-15], 1.0) == 0  # rounding
