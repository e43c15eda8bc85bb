"""Pictures of trajectories."""

import numpy as np
import pytest

import neuralrace as nr
from tests.test_errors import refuses
from tests.trajectories import ensemble, rates, single


def test_plot_draws_every_member_of_an_ensemble():
    ax = single().plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), single().loss)
    run = ensemble()
    lines = [line.get_ydata() for line in run.plot(log=True).lines]
    for loss in run.loss.reshape(-1, 2):
        assert any(np.array_equal(line, loss) for line in lines)
    for mean in run.loss.mean(axis=1):  # of the seeds, one for each place on the other axis
        assert any(np.allclose(line, mean) for line in lines)


def test_plot_draws_recorded_values_by_name():
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={"paths": {"a": [0.0, 1.0], "b": [0.0, 2.0]}})
    ax = run.plot("paths")
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0.0, 1.0], [0.0, 2.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    with pytest.raises(nr.NeuralRaceError, match=r"nothing to draw under 'pats'"):
        run.plot("pats")


def names(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_colour_line_and_label_are_passed_on():
    ax = single().plot(color="red", linestyle=":", label="mine", log=True)
    (line,) = ax.lines
    assert (line.get_color(), line.get_linestyle(), line.get_label()) == ("red", ":", "mine")
    assert ax.get_yscale() == "log" and names(ax) == ["mine"]
    assert rates().plot().get_xlabel() == "step" and ax.get_xlabel() == "time"


def test_one_pair_of_axes_has_one_clock():
    def run(time, **more):
        return nr.Trajectory(time, [1.0, 0.5, 0.2], **more)

    adam = run([0, 10, 20], steps=[0, 10, 20], settings={"clock": "steps"})
    descent = run([0.0, 1.0, 2.0], steps=[0, 10, 20])
    ax = adam.plot(label="Adam")
    descent.plot(label="descent", ax=ax)
    assert ax.get_xlabel() == "step"
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [0, 10, 20])
    over_time = descent.plot()
    assert over_time.get_xlabel() == "time"
    with refuses("over"):
        adam.plot(ax=over_time)
    with refuses("over"):
        run([0.0, 1.0, 2.0]).plot(ax=adam.plot())
    assert len(over_time.lines) == 1


def test_a_second_run_on_the_same_axes_has_the_next_colour():
    ax = single().plot()
    for _ in range(2):
        single().plot(ax=ax)
    colours = [line.get_color() for line in ax.lines]
    assert len(set(map(str, colours))) == 3
    assert names(ax) == ["gradient descent", "gradient descent 2", "gradient descent 3"]


def test_every_curve_of_several_values_over_several_places_is_drawn():
    rng = np.random.default_rng(0)
    values = {"p": {"a": rng.uniform(size=(2, 3, 4)), "b": rng.uniform(size=(2, 3, 4))}}
    run = nr.Trajectory(
        np.arange(4),
        np.ones((2, 3, 4)),
        values=values,
        axes={"delta": [1 / 3, 2 / 3], "seed": [0, 1, 2]},
    )
    ax = run.plot("p")
    places = [f"{v}, delta = {d}" for v in "ab" for d in ("0.333", "0.667")]
    assert names(ax) == [*places, "single seeds"]
    drawn = [line.get_ydata() for line in ax.lines]
    for value in values["p"].values():
        for curve in value.mean(axis=1):
            assert any(np.allclose(line, curve) for line in drawn)


def test_only_seeds_are_averaged_wherever_their_axis_is():
    loss = np.arange(24.0).reshape(2, 3, 4)
    first = nr.Trajectory(np.arange(4), loss, axes={"seed": [0, 1], "width": [10, 20, 30]})
    ax = first.plot()
    assert names(ax) == ["width = 10", "width = 20", "width = 30", "single seeds"]
    assert any(np.array_equal(line.get_ydata(), loss[:, 1].mean(axis=0)) for line in ax.lines)
    widths = nr.Trajectory(np.arange(4), loss[0], axes={"width": [10, 20, 30]})
    assert len(widths.plot().lines) == 3, "widths are no seeds"


def test_arrays_are_drawn_entry_by_entry_or_as_norms():
    rng = np.random.default_rng(0)
    values = {
        "sv": rng.normal(size=(5, 2)),
        "W": rng.normal(size=(5, 9, 9)),
        "on": np.array([True, False, True, True, False]),
        "variables": {"mode1": {"ih": rng.normal(size=(5, 1, 1)), "hy": np.ones((5, 1, 1))}},
    }
    run = nr.Trajectory(np.arange(5), np.ones(5), values=values)
    assert names(run.plot("sv")) == ["sv 1", "sv 2"]
    np.testing.assert_array_equal(run.plot("sv").lines[1].get_ydata(), values["sv"][:, 1])
    (norm,) = run.plot("W").lines
    np.testing.assert_allclose(norm.get_ydata(), np.linalg.norm(values["W"], axis=(1, 2)))
    assert run.plot("on").lines[0].get_ydata().tolist() == [1, 0, 1, 1, 0]
    assert names(run.plot("variables")) == ["mode1.ih", "mode1.hy"]
    assert names(run.plot("variables", label="race")) == ["race, mode1.ih", "race, mode1.hy"]


def test_the_first_quantity_names_shared_axes():
    run = nr.Trajectory([0, 1], [1.0, 0.5], values={"test": {"loss": np.array([1.0, 0.6])}})
    ax = run.plot("test.loss", ax=run.plot(label="train"), label="test")
    assert ax.get_ylabel() == "loss"
    assert names(ax) == ["train", "test"]


def test_many_curves_have_a_colour_bar():
    deltas = np.linspace(0, 1, 20)
    run = nr.Trajectory([0, 1], np.ones((20, 2)), axes={"delta": deltas})
    ax = run.plot()
    assert ax.get_legend() is None and len(ax.lines) == 20
    (bar,) = (other for other in ax.get_figure().axes if other is not ax)
    ticks = [text.get_text() for text in bar.get_yticklabels()]
    assert ticks[0] == "delta = 0" and ticks[-1] == "delta = 1" and len(ticks) == 8
    assert "delta = 0.158" in ticks, "rounded to three digits"
    assert len({str(line.get_color()) for line in ax.lines}) == 20
    theory = nr.Trajectory(run.time, run.loss, axes=run.axes, settings={"method": "race"})
    theory.plot(ax=ax)
    assert len(ax.lines) == 40 and len(ax.get_figure().axes) == 2, "one bar serves both"
    assert names(ax) == ["simulated", "predicted"]
