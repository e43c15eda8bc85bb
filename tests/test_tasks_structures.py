"""Structures among items, against the matrices of MHS Fig. 3 and NRR Fig. 4c."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from neuralrace import tasks


def members(row):
    return set((np.flatnonzero(row) + 1).tolist())


def test_hierarchy_of_mhs():
    rows = tasks.hierarchy()
    assert rows.shape == (15, 8) and rows.dtype == np.float64
    assert rows.sum(axis=1).tolist() == [8] + [4] * 2 + [2] * 4 + [1] * 8
    assert [members(row) for row in rows[3:7]] == [{1, 2}, {3, 4}, {5, 6}, {7, 8}]
    assert (rows.sum(axis=0) == 4).all()


def test_hierarchy_of_nrr():
    rows = tasks.hierarchy(depth=2, amplitudes=(6.0, 4.0, 3.0))
    assert rows.shape == (7, 4)
    assert (rows**2).sum() == 244
    np.testing.assert_allclose(
        np.linalg.svd(rows, compute_uv=False), [13.60, 6.40, 3, 3], atol=0.005
    )


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_any_hierarchy_has_a_row_a_node_and_nested_groups(branching):
    rows = tasks.hierarchy(branching)
    nodes = np.cumprod([1, *branching])
    assert rows.shape == (nodes.sum(), nodes[-1])
    assert set(np.unique(rows)) <= {0.0, 1.0}
    assert (rows.sum(axis=0) == len(nodes)).all()
    overlap = rows @ rows.T
    size = np.diag(overlap)
    assert np.isin(overlap / np.minimum.outer(size, size), (0, 1)).all()


def test_one_branching_for_all_levels_or_one_for_each():
    np.testing.assert_array_equal(tasks.hierarchy(3, depth=2), tasks.hierarchy((3, 3)))


def test_crossed_hierarchy_of_mhs():
    plain, crossed = tasks.hierarchy(), tasks.crossed_hierarchy()
    assert [members(row) for row in crossed[3:7]] == [{1, 3}, {2, 4}, {5, 7}, {6, 8}]
    same = [0, 1, 2, *range(7, 15)]
    np.testing.assert_array_equal(crossed[same], plain[same])


def test_crossed_hierarchy_takes_uneven_branching_and_amplitudes():
    rows = tasks.crossed_hierarchy((2, 3), amplitudes=(3.0, 2.0, 1.0))
    assert [members(row) for row in rows[1:4]] == [{1, 4}, {2, 5}, {3, 6}]
    assert rows[1].max() == 2


def test_ring_of_mhs():
    rows = tasks.ring()
    assert rows.shape == (15, 8)
    assert (rows[0] == 1).all()
    assert rows[1].tolist() == [0, 0.33, 0.66, 1, 1, 0.66, 0.33, 0]
    for k, row in enumerate(rows[1:]):
        np.testing.assert_array_equal(row, np.roll(rows[1], -(k % 8)))


def test_ring_with_another_profile_and_number_of_rows():
    rows = tasks.ring((1.0, 0.0, 0.0), rows=3)
    assert rows.tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 1]]


def test_partition():
    rows = tasks.partition((3, 1, 2))
    assert [members(row) for row in rows] == [{1, 2, 3}, {4}, {5, 6}]


@given(st.integers(1, 12), st.integers(0, 1000))
def test_random_trees_are_binary_trees(items, seed):
    rows = tasks.random_tree(items, key=seed)
    assert rows.shape == (2 * items - 1, items)
    assert (rows[0] == 1).all()
    assert (np.diff(rows.sum(axis=1)) <= 0).all()
    np.testing.assert_array_equal(rows[items - 1 :], np.eye(items))
    overlap = rows @ rows.T
    size = np.diag(overlap)
    assert np.isin(overlap / np.minimum.outer(size, size), (0, 1)).all()
    np.testing.assert_array_equal(rows, tasks.random_tree(items, key=seed))


def test_random_trees_differ():
    assert len({tasks.random_tree(8, key=seed).tobytes() for seed in range(20)}) == 20


@pytest.mark.parametrize("name", ["hierarchy", "ring", "crossed"])
def test_named_structures_have_as_many_rows(name):
    assert tasks.structure(name).shape == (15, 8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tasks.partition(()), "a partition needs a group"),
        (lambda: tasks.partition((2, 0)), "groups"),
        (lambda: tasks.hierarchy(0), "branching"),
        (lambda: tasks.hierarchy(()), "branching"),
        (lambda: tasks.hierarchy(depth=0), "depth"),
        (lambda: tasks.hierarchy((2, 2), depth=3), "branching and depth disagree"),
        (lambda: tasks.hierarchy(amplitudes=(1.0, 2.0)), "(?s)2 amplitudes.*wanted: 4"),
        (lambda: tasks.crossed_hierarchy(depth=1), "(?s)at least two levels.*got:    depth 1"),
        (lambda: tasks.ring(()), "profile"),
        (lambda: tasks.ring((0.0, np.nan)), "profile"),
        (lambda: tasks.ring(rows=0), "rows"),
        (lambda: tasks.random_tree(0), "items"),
        (lambda: tasks.structure("rings"), "(?s)'rings'.*'crossed', 'hierarchy', 'ring'"),
        (lambda: tasks.structure("hierarchy", 12), r"(?s)12 items.*tasks.hierarchy\(\(3, 4\)\)"),
        (lambda: tasks.structure("hierarchy", 1), "a named hierarchy is binary"),
        (lambda: tasks.structure("ring", 6), "(?s)eight items.*got:    6 items"),
        (lambda: tasks.structure("ring", 0), "items"),
    ],
)
def test_what_is_impossible_says_so(call, message):
    with pytest.raises(nr.NeuralRaceError, match=message):
        call()
