"""Solving in growing pieces."""

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.reln.explained.fall import stretches


@pytest.mark.parametrize("growth", [1.0, 3.0, 0.7])
@pytest.mark.parametrize("longest", [0.3, 1.0, 29.7, 1e5 / 3])
def test_pieces_follow_each_other_up_to_the_longest_time(growth, longest):
    """dy/dt = −y/9 has one known solution, whatever it is cut into."""

    def solve(y, lasts):
        times = np.linspace(0, lasts, 5)
        return nr.Trajectory(times, y * np.exp(-times / 9))

    pieces = list(
        stretches(solve, lambda _, piece: piece.loss[-1], 2.0, 1.0, longest, growth=growth)
    )
    ends = np.array([begin + piece.time[-1] for begin, _, piece in pieces])
    begins = np.array([begin for begin, _, _ in pieces])
    assert begins[0] == 0 and np.allclose(begins[1:], ends[:-1], rtol=1e-12)
    assert ends[-1] == pytest.approx(longest, rel=1e-12)
    lasts = ends - begins
    assert np.allclose(lasts[1:-1], growth * begins[1:-1]) and (lasts > 1e-9 * longest).all()
    for begin, _, piece in pieces:
        exact = 2 * np.exp(-(begin + piece.time) / 9)
        np.testing.assert_allclose(piece.loss, exact, rtol=1e-9, atol=1e-300)


def test_nothing_is_solved_once_enough_is_known():
    solved = []

    def solve(y, lasts):
        solved.append(lasts)
        return nr.Trajectory([0, lasts], [y, y / 2])

    for begin, _, _ in stretches(solve, lambda _, piece: piece.loss[-1], 8.0, 1.0, 1e9):
        if begin >= 4:
            break
    assert solved == [1.0, 1.0, 2.0, 4.0]
