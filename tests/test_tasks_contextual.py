"""The contextual tasks of MHS §4–5 and their gatings."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks

DIFFERENT = ("hierarchy", "ring", "crossed")


def sum_loss(data):
    """MHS's loss at zero weights, ½ Σ ‖y‖² over samples."""
    return (data.y["y"] ** 2).sum() / 2


def test_sizes_order_and_labels():
    data = tasks.contextual(structures=DIFFERENT)
    assert data.labels["context"].tolist() == [1] * 8 + [2] * 8 + [3] * 8
    assert data.labels["item"].tolist() == [*range(1, 9)] * 3
    np.testing.assert_array_equal(data.x["item"].argmax(axis=1) + 1, data.labels["item"])
    np.testing.assert_array_equal(data.x["context"].argmax(axis=1) + 1, data.labels["context"])
    assert data.y["y"].shape == (24, 60) and data.gates == {}


def test_blocks_of_the_targets():
    data = tasks.contextual(structures=DIFFERENT)
    blocks = [tasks.hierarchy(), tasks.ring(), tasks.crossed_hierarchy()]
    for context in (1, 2, 3):
        y = data.y["y"][data.mask(context=context)].T
        np.testing.assert_array_equal(y[:15], tasks.hierarchy())
        for c, block in enumerate(blocks, start=1):
            shown = y[15 * c : 15 * (c + 1)]
            np.testing.assert_array_equal(shown, block if c == context else 0 * block)


def test_initial_losses():
    assert round(sum_loss(tasks.contextual(structures=DIFFERENT)), 1) == 105.6
    assert sum_loss(tasks.contextual()) == 96.0
    assert sum_loss(tasks.contextual(contexts=5)) == 160.0


@pytest.mark.parametrize("contexts", [2, 3, 4, 5])
def test_same_structure_for_any_number_of_contexts(contexts):
    data = tasks.contextual(contexts=contexts)
    assert data.y["y"].shape == (8 * contexts, 15 * (contexts + 1))
    assert data.x["context"].shape == (8 * contexts, contexts)


def test_joined_inputs_hold_items_and_then_contexts():
    apart, joined = (tasks.contextual(context_scale=1.1, joined=j) for j in (False, True))
    both = np.hstack([apart.x["item"], apart.x["context"]])
    np.testing.assert_array_equal(joined.x["x"], both)
    np.testing.assert_array_equal(joined.y["y"], apart.y["y"])
    np.testing.assert_array_equal(joined.labels["context"], apart.labels["context"])
    relu = nr.ReLUNetwork((11, 20, 60))
    weights = relu.init(jax.random.key(0), scale=0.0)
    assert float(relu.loss(weights, joined)) == pytest.approx(96 / 24)


def test_context_scale():
    assert tasks.contextual(context_scale=1.35).x["context"].max() == 1.35


def test_any_structures_and_items():
    trees = [tasks.random_tree(5, key=seed) for seed in range(4)]
    data = tasks.contextual(structures=trees, common=tasks.partition((2, 3)))
    assert data.y["y"].shape == (20, 2 + 4 * 9)
    same = tasks.contextual(structures=tasks.hierarchy((3, 4)), common=tasks.hierarchy((3, 4)))
    assert same.x["item"].shape == (36, 12)
    assert tasks.contextual(items=16, contexts=2).y["y"].shape == (32, 93)
    stack = np.stack([tasks.hierarchy(), tasks.ring(), tasks.crossed_hierarchy()])
    np.testing.assert_array_equal(
        tasks.contextual(structures=list(stack)).y["y"],
        tasks.contextual(structures=DIFFERENT).y["y"],
    )


@pytest.mark.parametrize("contexts", [2, 3, 4])
def test_where_each_pathway_is_on(contexts):
    base = tasks.contextual(contexts=contexts)
    context = base.labels["context"]
    _, data = tasks.common_and_all_but_one(base)
    assert list(data.gates) == [f"not{c}" for c in range(1, contexts + 1)]
    for c in range(1, contexts + 1):
        np.testing.assert_array_equal(data.gates[f"not{c}"], context != c)
    _, data = tasks.common_and_single(base)
    for c in range(1, contexts + 1):
        np.testing.assert_array_equal(data.gates[f"only{c}"], context == c)
    arch, data = tasks.all_subsets(base)
    assert len(arch.hidden) == 2**contexts - 1
    patterns = {tuple(gate) for gate in data.gates.values()} | {(1.0,) * base.n_samples}
    assert len(patterns) == 2**contexts - 1


def test_all_but_one_pathways_share_the_statistics_of_mhs():
    """Σ^x(j, p) = (C − 2)/(C − 1) Σ^x(p, p)."""
    for contexts in (3, 4, 5):
        _, data = tasks.common_and_all_but_one(tasks.contextual(contexts=contexts))
        x, first, second = data.x["item"], data.gates["not1"], data.gates["not2"]
        alone = (x * first[:, None]).T @ x
        shared = (x * (first * second)[:, None]).T @ x
        np.testing.assert_allclose(shared, (contexts - 2) / (contexts - 1) * alone)


@pytest.mark.parametrize(
    ("gating", "pathways"),
    [
        (tasks.common_and_all_but_one, 4),
        (tasks.common_and_single, 4),
        (tasks.all_subsets, 7),
    ],
)
def test_gatings_run(gating, pathways):
    arch, data = gating(tasks.contextual(structures=DIFFERENT))
    assert [arch.sizes[v] for v in arch.hidden] == [100] * pathways
    assert set(arch.incoming["common"]) == {"item_common", "context_common"}
    for name in arch.hidden[1:]:
        assert arch.incoming[name] == (f"item_{name}",)
    net = nr.GDLN(arch)
    loss = net.loss(net.init(jax.random.key(0), scale=1e-6), data)
    assert float(loss) * 24 == pytest.approx(105.6, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contexts": 1}, "contexts"),
        ({"structures": ("ring",)}, "contexts"),
        ({"contexts": 4, "structures": DIFFERENT}, "(?s)3 structures for 4 contexts"),
        ({"structures": ("ring", "star")}, "unknown structure 'star'"),
        ({"structures": ("ring", tasks.hierarchy(depth=2))}, "the ring of MHS has eight items"),
        (
            {"structures": (tasks.hierarchy(), tasks.hierarchy(depth=2))},
            r"(?s)the structure of context 2 does not fit.*\(7, 4\).*\(properties, 8\)",
        ),
        ({"structures": [np.ones((0, 8))] * 2}, r"(?s)context 1 .*got:    shape \(0, 8\)"),
        ({"items": 4, "common": tasks.hierarchy()}, r"(?s)common does not fit.*\(15, 8\)"),
        ({"items": 6}, "a named hierarchy is binary"),
        ({"context_scale": float("nan")}, "context_scale"),
    ],
)
def test_what_is_impossible_says_so(options, message):
    with pytest.raises(nr.NeuralRaceError, match=message):
        tasks.contextual(**options)


def test_gatings_need_items_apart_and_contexts():
    with pytest.raises(nr.NeuralRaceError, match=r"(?s)no input node 'item'.*joined=False"):
        tasks.all_subsets(tasks.contextual(joined=True))
    with pytest.raises(nr.NeuralRaceError, match="needs the label 'context'"):
        tasks.common_and_single(tasks.xor())
