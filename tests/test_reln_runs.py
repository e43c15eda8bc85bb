"""Runs that do not begin at step 0, and gated networks that follow them."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.observed.runs import followed_by


def test_a_gated_network_follows_a_run_from_its_first_recorded_moment():
    """With a leak of 1 the gated network is the network itself, so that all moments agree."""
    data, linear = nr.tasks.extended_xor(1.2), nr.ReLUNetwork((3, 8, 1), leak=1.0)
    weights = linear.init(jax.random.key(0), scale=0.1)
    run = nr.train(
        linear, weights, data, learning_rate=0.1, steps=60, record_every=4, record={"weights": True}
    )
    for begin in (0, 5):
        part = run.isel(time=slice(begin, None))
        found = followed_by(part, data)
        np.testing.assert_array_equal(found.steps, part.steps)
        assert found.time == pytest.approx(part.time)
        assert found.loss == pytest.approx(part.loss, rel=1e-5)
    assert part.loss[-1] < 0.9 * part.loss[0]
