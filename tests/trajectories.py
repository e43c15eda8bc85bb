"""Small trajectories that tests share."""

import jax
import numpy as np

import neuralrace as nr


def single(**more) -> nr.Trajectory:
    rng = np.random.default_rng(0)
    values = {
        "sv": rng.normal(size=(4, 2)),
        "norm": rng.normal(size=4),
        "on": rng.normal(size=(4, 3)) > 0,
        "outputs": {"y": rng.normal(size=(4, 5, 1)), "z": rng.normal(size=(4, 5, 2))},
        "deep": {"a": {"b": rng.normal(size=(4, 1)).astype(np.float32)}},
    }
    return nr.Trajectory(
        [0, 0.5, 1.5, 4],
        [1.0, 0.5, 0.25, 0.125],
        values=values,
        final={"W1": rng.normal(size=(3, 2)), "W2": rng.normal(size=(1, 3))},
        settings={"method": "gradient descent", "learning_rate": 0.1},
        **more,
    )


def ensemble(seeds: int = 3) -> nr.Trajectory:
    rng = np.random.default_rng(1)
    return nr.Trajectory(
        [0, 1],
        rng.uniform(size=(2, seeds, 2)),
        values={"outputs": {"y": rng.normal(size=(2, seeds, 2, 4, 1))}},
        final={"W1": rng.normal(size=(2, seeds, 3, 2))},
        net=nr.ReLUNetwork((2, 3, 1), leak=0.1),
        axes={"delta": [0.2, 0.8], "seed": np.arange(seeds)},
        settings={"key": [0, 7], "seeds": seeds},
    )


def assert_same(a: nr.Trajectory, b: nr.Trajectory) -> None:
    assert a.settings == b.settings
    assert a.net == b.net
    assert list(a.axes) == list(b.axes)
    for x, y in ((a.values, b.values), (a.final, b.final), (a.axes, b.axes)):
        assert jax.tree.structure(x) == jax.tree.structure(y)
        for left, right in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
    np.testing.assert_array_equal(a.time, b.time)
    np.testing.assert_array_equal(a.loss, b.loss)


class Doubling:
    """A theory that says every output is twice the time, on three samples."""

    def outputs(self, run):
        return {"y": 2 * run.time[:, None, None] * np.ones((1, 3, 1))}


def rates(**settings):
    rates, steps = [0.1, 0.2], np.array([0, 10, 20])
    return nr.Trajectory(
        steps,
        [np.exp(-rate * steps) for rate in rates],
        axes={"learning_rate": rates},
        settings={"clock": "steps", "learning_rate": rates} | settings,
    )
