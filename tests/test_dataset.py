"""What samples show, want and gate; gate classes; pathways; bad data."""

import tracemalloc
from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import random_case
from neuralrace.dataset import matched
from tests.test_errors import refuses, says

seeds = st.integers(0, 2**32 - 1)
CHAIN = nr.Architecture.chain(2, 3, 1)


def simple(n: int = 4, **more) -> nr.Dataset:
    """N samples for a chain with two inputs and one output."""
    rng = np.random.default_rng(n)
    return nr.Dataset({"x": rng.normal(size=(n, 2))}, {"y": rng.normal(size=(n, 1))}, **more)


# ---- what is kept -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_is_kept(dtype):
    x = np.array([[1 / 3, 2], [3, 4]], dtype)
    data = nr.Dataset({"x": x}, {"y": x}, gates={"h": x[:, 0]}, sample_weight=x[:, 0])
    for value in (data.x["x"], data.y["y"], data.gates["h"], data.sample_weight):
        assert isinstance(value, np.ndarray)
        assert value.dtype == dtype
    np.testing.assert_array_equal(data.x["x"], x)


def test_float64_numpy_stays_where_jax_would_narrow_it():
    x = np.array([[1 + 1e-12]])
    with jax.enable_x64(False):
        data = nr.Dataset({"x": x}, {"y": x}, gates={"h": x[:, 0]})
    assert data.x["x"][0, 0] == data.gates["h"][0] == 1 + 1e-12


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64])
def test_integers_and_booleans_become_floats_but_labels_stay(kind):
    x = np.array([[1, 0], [0, 1]], kind)
    data = nr.Dataset({"x": x}, {"y": x}, gates={"h": x[:, 0]}, labels={"c": x[:, 0]})
    for value in (data.x["x"], data.y["y"], data.gates["h"]):
        assert value.dtype == np.float64
    np.testing.assert_array_equal(data.x["x"], np.eye(2))
    assert data.labels["c"].dtype == kind


def test_jax_arrays_stay_jax_arrays():
    data = nr.Dataset({"x": jnp.ones((2, 3), jnp.float32)}, {"y": jnp.ones((2, 1), int)})
    assert isinstance(data.x["x"], jax.Array)
    assert data.x["x"].dtype == jnp.float32
    assert data.y["y"].dtype == jnp.float64


def test_sample_weights_are_normalised():
    data = simple(3, sample_weight=[1, 0, 3])
    np.testing.assert_array_equal(data.sample_weight, [0.25, 0, 0.75])
    np.testing.assert_array_equal(data.probability, [0.25, 0, 0.75])
    plain = simple(4)
    assert plain.sample_weight is None
    np.testing.assert_array_equal(plain.probability, [0.25] * 4)


def test_gated_replaces_all_gates_and_keeps_the_rest():
    data = simple(2, gates={"h": [1, 0], "W1": [2, 3]}, sample_weight=[1, 3], labels={"c": [5, 6]})
    other = data.gated({"W2": [0, 1]})
    assert set(other.gates) == {"W2"}
    assert data.gated({}).gates == {}
    assert set(data.gates) == {"h", "W1"}
    np.testing.assert_array_equal(other.sample_weight, [0.25, 0.75])
    np.testing.assert_array_equal(other.labels["c"], [5, 6])
    np.testing.assert_array_equal(other.x["x"], data.x["x"])


# ---- a pytree -----------------------------------------------------------------------------------


def test_through_jit_with_labels_and_gates():
    data = simple(3, gates={"h": [1.0, 0.5, 0]}, sample_weight=[1, 1, 2], labels={"c": [1, 2, 1]})

    @jax.jit
    def f(d):
        assert isinstance(d, nr.Dataset)
        assert d.n_samples == 3
        total = jnp.sum(d.x["x"][:, 0] * (d.labels["c"] == 1) * d.gates["h"] * d.probability)
        return total, d

    total, back = f(data)
    x = data.x["x"]
    assert float(total) == pytest.approx(x[0, 0] * 0.25)
    assert isinstance(back, nr.Dataset)
    assert jax.tree.structure(back) == jax.tree.structure(data)
    for one, two in zip(jax.tree.leaves(back), jax.tree.leaves(data), strict=True):
        np.testing.assert_array_equal(one, two)


def test_jit_compiles_once_for_other_values_of_the_same_shapes():
    traces = []

    @jax.jit
    def f(d):
        traces.append(d)
        return d.x["x"].sum()

    first = simple(3, labels={"c": [1, 2, 3]})
    second = nr.Dataset({"x": first.x["x"] + 1}, first.y, labels={"c": [3, 2, 1]})
    assert float(f(second) - f(first)) == pytest.approx(6)
    assert len(traces) == 1


def test_built_under_jit_and_differentiated():
    net = nr.GDLN(CHAIN)
    weights = net.init(jax.random.key(0))
    data = simple(4)

    @jax.jit
    def loss(gate, weight):
        built = nr.Dataset(data.x, data.y, gates={"h": gate}, sample_weight=weight)
        return net.loss(weights, built)

    gate, weight = jnp.array([0.3, 1, 0, 2.0]), jnp.array([1, 2, 3, 4.0])
    found = jax.grad(loss, argnums=(0, 1))(gate, weight)
    for which in range(2):
        for i in range(4):
            step = 1e-6 * jnp.eye(4)[i]
            up, down = (
                loss(*(a + sign * step if k == which else a for k, a in enumerate((gate, weight))))
                for sign in (1, -1)
            )
            assert float(found[which][i]) == pytest.approx(float(up - down) / 2e-6, abs=1e-7)


def test_vmap_over_a_stack_of_datasets():
    net = nr.GDLN(CHAIN)
    weights = net.init(jax.random.key(0))
    several = [
        simple(3, gates={"h": g}, sample_weight=[1, 2, i + 1.0], labels={"c": [i, i, 0]})
        for i, g in enumerate([[1.0, 0, 1], [0.5, 0.5, 0], [1, 1, 1]])
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *several)
    losses, labels = jax.vmap(lambda d: (net.loss(weights, d), d.labels["c"][0]))(stacked)
    np.testing.assert_allclose(losses, [net.loss(weights, d) for d in several], rtol=1e-14)
    np.testing.assert_array_equal(labels, [0, 1, 2])


def test_shapes_and_names_are_checked_under_jit():
    @jax.jit
    def f(x):
        return matched(CHAIN, nr.Dataset({"x": x}, {"y": jnp.zeros((3, 1))})).n_samples

    assert int(f(jnp.zeros((3, 2)))) == 3
    with refuses("y"):
        f(jnp.zeros((4, 2)))
    with refuses("x"):
        f(jnp.zeros((3, 5)))


# ---- masks and gate classes ---------------------------------------------------------------------


def test_mask_by_labels():
    data = simple(6, labels={"context": [1, 2, 3, 1, 2, 3], "old": [1, 1, 1, 0, 0, 0]})
    np.testing.assert_array_equal(data.mask(context=2), [0, 1, 0, 0, 1, 0])
    np.testing.assert_array_equal(data.mask(context=(1, 3)), [1, 0, 1, 1, 0, 1])
    np.testing.assert_array_equal(data.mask(context={1, 3}, old=0), [0, 0, 0, 1, 0, 1])
    np.testing.assert_array_equal(data.mask(context=np.array([3])), [0, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(data.mask(context=range(5)), [1] * 6)
    assert data.mask().all()
    assert not data.mask(context=3, old=1)[3:].any()
    with says("no sample has this label 'context'", got="[7]", wanted="[1, 2, 3]"):
        data.mask(context=7)
    flags = simple(2, labels={"on": np.array([True, False])})
    np.testing.assert_array_equal(flags.mask(on=True), [1, 0])


def test_one_pathway_a_sample():
    masks = simple(3).one_per_sample("row")
    assert list(masks) == ["row1", "row2", "row3"]
    np.testing.assert_array_equal(np.stack(list(masks.values())), np.eye(3))
    arch, data = nr.pathways(simple(3), masks, hidden=2)
    assert arch.hidden == ("row1", "row2", "row3")
    assert len(data.gate_classes()) == 3


def classes_by_dict(data: nr.Dataset) -> list[list[int]]:
    groups = defaultdict(list)
    for n in range(data.n_samples):
        row = [(name, *np.ravel(np.asarray(g)[n]).tolist()) for name, g in data.gates.items()]
        groups[tuple(row)].append(n)
    return sorted(groups.values())


@given(
    seed=seeds,
    n=st.integers(1, 12),
    names=st.lists(st.sampled_from(["h", "k", "W1"]), unique=True),
    weighted=st.booleans(),
)
def test_gate_classes_against_grouping_in_a_dict(seed, n, names, weighted):
    rng = np.random.default_rng(seed)
    values = np.array([0.0, 1.0, -0.0, 0.5])  # zero of either sign is the same gate
    gates = {v: rng.choice(values, size=(n, 2) if v == "k" else n) for v in names}
    data = simple(n, gates=gates, sample_weight=rng.uniform(0.1, 1, n) if weighted else None)
    classes = data.gate_classes()
    groups = [np.flatnonzero(classes.index == c).tolist() for c in range(len(classes))]
    assert sorted(groups) == classes_by_dict(data)
    assert set(classes.gates) == set(names)
    for c, members in enumerate(groups):
        assert classes.weight[c] == pytest.approx(data.probability[members].sum(), rel=1e-14)
        for name, gate in classes.gates.items():
            np.testing.assert_array_equal(data.gates[name][members], [gate[c]] * len(members))


def test_gate_classes_by_hand():
    gates = {"h": [1.0, 1 + 1e-15, 1.0, 1.0], "k": [[1, 0], [1, 0], [0, 1], [1, 0]]}
    classes = simple(4, gates=gates).gate_classes()
    assert len(classes) == 3
    assert classes.index[0] == classes.index[3]
    assert len({int(i) for i in classes.index[:3]}) == 3
    assert classes.weight[classes.index[0]] == 0.5
    np.testing.assert_array_equal(classes.gates["k"][classes.index[2]], [0, 1])
    ungated = simple(5).gate_classes()
    assert len(ungated) == 1
    np.testing.assert_allclose(ungated.weight, [1])


# ---- meeting an architecture --------------------------------------------------------------------


def test_bias_is_filled_in_only_where_missing():
    arch = CHAIN.with_bias()
    data = simple(3, gates={"h": [1, 0, 1]}, labels={"c": [1, 2, 3]})
    full = matched(arch, data)
    np.testing.assert_array_equal(full.x["bias"], np.ones((3, 1)))
    assert set(data.x) == {"x"}
    np.testing.assert_array_equal(full.gates["h"], [1, 0, 1])
    own = nr.Dataset({**data.x, "bias": [[2.0]] * 3}, data.y)
    assert matched(arch, own) is own


def test_matching_data_come_back_as_they_are():
    data = simple(3, gates={"x": [1, 0, 1], "W2": [1, 0, 2], "y": [[0], [1], [2]]})
    assert matched(CHAIN, data) is data


@given(seeds)
def test_any_random_case_matches_its_own_graph(seed):
    case = random_case(np.random.default_rng(seed))
    assert matched(case.arch, case.data) is case.data


# ---- pathways -----------------------------------------------------------------------------------


def context_task() -> nr.Dataset:
    context = np.repeat([1, 2, 3], 2)
    return nr.Dataset(
        {"item": np.tile(np.eye(2), (3, 1)), "context": np.eye(3)[context - 1]},
        {"y": np.arange(24.0).reshape(6, 4), "z": np.ones((6, 1))},
        sample_weight=[1, 2, 3, 4, 5, 6],
        labels={"context": context},
    )


def test_pathways_gates_and_graph():
    base = context_task()
    c = base.labels["context"]
    arch, data = nr.pathways(
        base,
        {"common": None, "not1": c != 1, "soft": c / 2},
        hidden={"soft": 5, "common": 7, "not1": 6},
        inputs={"not1": ("item",)},
        outputs={"soft": ("z",)},
    )
    assert arch == nr.Architecture(
        {"item": 2, "context": 3, "common": 7, "not1": 6, "soft": 5, "y": 4, "z": 1},
        {
            "item_common": ("item", "common"),
            "context_common": ("context", "common"),
            "common_y": ("common", "y"),
            "common_z": ("common", "z"),
            "item_not1": ("item", "not1"),
            "not1_y": ("not1", "y"),
            "not1_z": ("not1", "z"),
            "item_soft": ("item", "soft"),
            "context_soft": ("context", "soft"),
            "soft_z": ("soft", "z"),
        },
    )
    assert arch.hidden == ("common", "not1", "soft")
    assert set(data.gates) == {"not1", "soft"}
    np.testing.assert_array_equal(data.gates["not1"], [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(data.gates["soft"], [0.5, 0.5, 1, 1, 1.5, 1.5])
    np.testing.assert_allclose(data.sample_weight, np.arange(1, 7) / 21, rtol=1e-15)
    np.testing.assert_array_equal(data.labels["context"], c)


def test_pathways_leave_out_inputs_that_none_reads_with_their_gates():
    base = context_task().gated({"context": [1, 0, 1, 0, 1, 0], "item": [1, 1, 0, 0, 1, 1]})
    inputs = {"a": ("item",), "b": ("item",)}
    arch, data = nr.pathways(base, {"a": None, "b": [1, 0, 0, 0, 0, 0]}, hidden=2, inputs=inputs)
    assert arch.inputs == ("item",)
    assert set(data.x) == {"item"}
    assert set(data.gates) == {"item", "b"}
    kept, _ = nr.pathways(base, {"a": None, "b": None}, hidden=2, inputs={"a": ("item",)})
    assert kept.inputs == ("item", "context")


def test_pathways_compute_what_their_masks_say():
    base = context_task()
    on = base.mask(context=(1, 3))
    arch, data = nr.pathways(base, {"a": None, "b": on}, hidden=3)
    net = nr.GDLN(arch)
    w = net.init(jax.random.key(0))
    shown = {
        p: sum(np.asarray(base.x[v]) @ w[f"{v}_{p}"].T for v in ("item", "context"))
        for p in ("a", "b")
    }
    wanted = shown["a"] @ w["a_y"].T + on[:, None] * (shown["b"] @ w["b_y"].T)
    np.testing.assert_allclose(net(w, data)["y"], wanted, rtol=1e-12, atol=1e-12)


# ---- bad data -----------------------------------------------------------------------------------


def test_zero_samples():
    with refuses("x"):
        nr.Dataset({"x": np.zeros((0, 2))}, {"y": np.zeros((0, 1))})


def test_nothing_shown_or_wanted():
    with refuses("x"):
        nr.Dataset({}, {"y": np.zeros((2, 1))})
    with refuses("x"):
        nr.Dataset({"x": np.zeros((2, 1))}, {})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_nan_and_infinity(bad, kind):
    make = np.array if kind == "numpy" else jnp.array
    good = {"x": {"x": np.zeros((3, 2))}, "y": {"y": np.zeros((3, 1))}}
    where = {
        "x['x']": ({"x": {"x": make([[0, 0], [0, bad], [bad, 0]])}}, "2 such values", "(1, 1)"),
        "y['y']": ({"y": {"y": make([[0], [0], [bad]])}}, "1 such values", "(2, 0)"),
        "gates['h']": ({"gates": {"h": make([1, bad, 1])}}, "1 such values", "(1,)"),
        "sample_weight": ({"sample_weight": make([bad, 1, 1])}, "1 such values", "(0,)"),
        "labels['c']": ({"labels": {"c": make([1, 1, bad])}}, "1 such values", "(2,)"),
    }
    for name, (fields, count, index) in where.items():
        with says(f"{name} holds NaN or infinity", got=count, wanted="finite"):
            nr.Dataset(**{**good, **fields})
        with says(name, got=f"index {index}", wanted="finite"):
            nr.Dataset(**{**good, **fields})


@pytest.mark.parametrize(
    ("weight", "got"),
    [([1, -2, 3], "minimum -2"), ([0, 0, 0], "sum 0"), ([-1, -1, -1], "minimum -1")],
)
def test_bad_sample_weights(weight, got):
    with says("sample weights must be non-negative", got=got, wanted="positive sum", fix="None"):
        simple(3, sample_weight=weight)


def test_sample_weights_of_the_wrong_shape():
    with refuses("sample_weight"):
        simple(3, sample_weight=[1, 2])
    with refuses("sample_weight"):
        simple(3, sample_weight=np.ones((3, 1)))


def test_gates_and_labels_of_the_wrong_length():
    with refuses("gates"):
        simple(4, gates={"h": np.ones(5)})
    with refuses("gates"):
        simple(4, gates={"h": np.ones((3, 4))})
    with refuses("labels"):
        simple(4, labels={"c": [1]})
    with refuses("x"):
        nr.Dataset({"x": np.zeros((4, 2))}, {"y": np.zeros((3, 1))})


def test_wrong_number_of_axes():
    with refuses("x"):
        nr.Dataset({"x": np.zeros(4)}, {"y": np.zeros((4, 1))})
    with refuses("y"):
        nr.Dataset({"x": np.zeros((4, 1))}, {"y": np.zeros((4, 1, 1))})
    with refuses("gates"):
        simple(4, gates={"h": 1.0})
    with refuses("labels"):
        simple(4, labels={"c": np.ones((4, 1))})


def test_labels_and_values_that_are_no_numbers():
    with refuses("labels"):
        simple(3, labels={"c": ["cat", None, "cat"]})
    with refuses("x"):
        nr.Dataset({"x": np.ones((2, 1)) * 1j}, {"y": np.zeros((2, 1))})
    with refuses("gates"):
        simple(2, gates={"h": [1, None]})
    with refuses("x"):
        nr.Dataset({"x": [[1.0, 2.0], [3.0]]}, {"y": np.zeros((2, 1))})


def test_unknown_label():
    with refuses("contxt"):
        simple(2, labels={"context": [1, 2]}).mask(contxt=1)


def test_missing_and_unknown_names_of_x_and_y():
    two, one = np.zeros((3, 2)), np.zeros((3, 1))
    both = nr.Architecture({"a": 2, "x": 2, "y": 1}, {"ay": ("a", "y"), "xy": ("x", "y")})
    with refuses("x"):
        matched(both, nr.Dataset({"a": two}, {"y": one}))
    with refuses("x"):
        matched(CHAIN, nr.Dataset({"X": two}, {"y": one}))
    with refuses("x"):
        matched(CHAIN, nr.Dataset({"x": two, "h": np.zeros((3, 3))}, {"y": one}))
    with refuses("y"):
        matched(CHAIN, nr.Dataset({"x": two}, {"z": one}))
    with refuses("y"):
        matched(CHAIN, nr.Dataset({"x": two}, {"y": one, "z": one}))


def test_sizes_that_do_not_match_the_arrays():
    with refuses("x"):
        matched(CHAIN, nr.Dataset({"x": np.zeros((3, 4))}, {"y": np.zeros((3, 1))}))
    with refuses("y"):
        matched(CHAIN, nr.Dataset({"x": np.zeros((3, 2))}, {"y": np.zeros((3, 2))}))
    with refuses("gates"):
        matched(CHAIN, simple(4, gates={"h": np.ones((4, 2))}))


def test_gates_that_the_graph_cannot_have():
    with refuses("gates"):
        matched(CHAIN, simple(4, gates={"k": np.ones(4)}))
    with refuses("gates"):
        matched(CHAIN, simple(4, gates={"W1": np.ones((4, 3))}))


@pytest.mark.parametrize("hidden", [(16, 16), {"a": (16, 16)}, {"a": 0}, 2.5])
def test_the_width_of_a_pathway_is_one_number(hidden):
    with refuses("hidden"):
        nr.pathways(context_task(), {"a": None}, hidden=hidden)


def test_bad_pathways():
    base = context_task()
    with refuses("pathways"):
        nr.pathways(base, {}, hidden=3)
    with refuses("hidden"):
        nr.pathways(base, {"a": None, "b": None}, hidden={"a": 3, "c": 4})
    with refuses("item"):
        nr.pathways(base, {"item": None}, hidden=3)
    with refuses("y"):
        nr.pathways(base, {"y": None}, hidden=3)
    with says("'not 1' cannot name a node", got="'not 1'", wanted="underscores"):
        nr.pathways(base, {"not 1": None}, hidden=3)
    with refuses("a"):
        nr.pathways(base, {"a": [1, 0]}, hidden=3)
    with refuses("a"):
        nr.pathways(base, {"a": [1, np.nan, 0, 0, 0, 0]}, hidden=3)
    with refuses("a"):
        nr.pathways(base, {"a": None}, hidden=3, outputs={"a": ("y",)})


@pytest.mark.parametrize("others", [{}, {"a": ("item",)}])
def test_unknown_names_of_pathways_and_their_ends(others):
    """Found whether or not some input is left out."""
    base = context_task()
    with refuses("inputs"):
        nr.pathways(base, {"a": None}, hidden=3, inputs={**others, "q": ("item",)})
    with refuses("inputs"):
        nr.pathways(base, {"a": None}, hidden=3, inputs={**others, "a": ("itm",)})
    with refuses("outputs"):
        nr.pathways(base, {"a": None}, hidden=3, inputs=others, outputs={"q": ("y",)})
    with refuses("outputs"):
        nr.pathways(base, {"a": None}, hidden=3, inputs=others, outputs={"a": ("item",)})


# ---- digests ------------------------------------------------------------------------------------


FOUR = np.arange(12.0).reshape(4, 3)


def with_weights(x=FOUR, **more):
    x = x if isinstance(x, dict) else {"a": x, "b": x + 1}
    given = {"y": {"y": FOUR[:, :1]}, "gates": {"h": [1, 0, 1, 0]}, "sample_weight": [1, 2, 3, 4]}
    return nr.Dataset(x, **(given | more))


def test_digest_is_of_content_whatever_holds_it(monkeypatch):
    data, x = with_weights(), FOUR
    same = [
        with_weights(jnp.asarray(x)),
        with_weights(np.asfortranarray(x)),
        with_weights(x.astype(">f8")),
        with_weights(x={"b": x + 1, "a": x}),
        with_weights(labels={"item": [1, 2, 3, 4]}),
    ]
    assert {d.digest() for d in same} == {data.digest()}
    monkeypatch.setattr("neuralrace.dataset.checks.PIECE", 5)  # pieces of one row
    assert with_weights().digest() == data.digest()


def test_digest_tells_apart_what_differs():
    x = FOUR
    moved = x.copy()
    moved[3, 2] += 1e-12
    different = [
        with_weights(),
        with_weights(x.astype(np.float32)),
        with_weights(moved),
        with_weights(x={"a": x, "c": x + 1}),
        with_weights(x={"a": x, "b": x}),
        with_weights(gates={}),
        with_weights(gates={"k": [1, 0, 1, 0]}),
        with_weights(gates={"h": [1, 0, 1, 1]}),
        with_weights(gates={"h": np.array([[1.0], [0.0], [1.0], [0.0]])}),
        with_weights(sample_weight=None),
        with_weights(sample_weight=[4, 3, 2, 1]),
        with_weights(y={"y": x[:, 1:2]}),
    ]
    assert len({d.digest() for d in different}) == len(different)


# ---- tables, parts, files -----------------------------------------------------------------------


FRAME = pandas.DataFrame(
    {
        "size": [1.0, 2.0, 3.0],
        "height": [4, 5, 6],
        "on": [True, False, True],
        "cost": [7.0, 8.0, 9.0],
        "kind": ["pear", "fig", "pear"],
        "month": pandas.Categorical(["feb", "jan", "jan"], categories=["jan", "feb"]),
        "count": [1, 1, 2],
    }
)


def test_from_a_table():
    data = nr.Dataset.from_frame(
        FRAME,
        x={"a": ["size", "height"], "b": ["on"]},
        y=["cost"],
        labels=["kind", "month", "height"],
        sample_weight="count",
    )
    assert data.x["a"].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert data.x["b"].tolist() == [[1], [0], [1]]
    assert data.y["y"].tolist() == [[7], [8], [9]]
    assert data.sample_weight.tolist() == [0.25, 0.25, 0.5]
    assert data.labels["kind"].tolist() == FRAME["kind"].tolist()
    assert data.mask(kind="pear").tolist() == [True, False, True]
    assert data.take([1, 2]).gated({}).mask(kind="pear").tolist() == [False, True]
    sorted_months = data.sorted_by("month").labels["month"].tolist()
    assert sorted_months == ["jan", "jan", "feb"], "in the order of the categories"
    assert data.labels["height"].tolist() == [4, 5, 6]


def test_labels_may_be_text():
    labels = {"place": ["work", "home", "home", "away"]}
    data = with_weights(labels=labels)
    assert data.mask(place="home").tolist() == [False, True, True, False]
    assert data.mask(place=("home", "away")).tolist() == [False, True, True, True]
    assert data.sorted_by("place").labels["place"].tolist() == ["away", "home", "home", "work"]
    assert (data.labels["place"] == "home").tolist() == [False, True, True, False]
    assert list(data.labels["place"]) == labels["place"] and data.labels["place"][0] == "work"
    assert {*data.labels["place"][1:]} == {"home", "away"}
    again = jax.jit(lambda d: d)(data)
    assert again.mask(place="away").tolist() == [False, False, False, True]
    with refuses("place"):
        data.mask(place="hom")


def test_what_a_table_cannot_give():
    with refuses("width"):
        nr.Dataset.from_frame(FRAME, x=["width"], y=["cost"])
    with refuses("frame"):
        nr.Dataset.from_frame(FRAME, x=["kind"], y=["cost"])
    with refuses("heigt"):
        nr.Dataset.from_frame(FRAME, x=["heigt"], y=["cost"])
    with refuses("x", "list"):
        nr.Dataset.from_frame(FRAME, x="size", y=["cost"])
    holes = FRAME.assign(kind=["pear", None, "fig"], size=[1.0, np.nan, 2.0])
    with refuses("frame"):
        nr.Dataset.from_frame(holes, x=["height"], y=["cost"], labels=["kind"])
    with refuses("frame"):
        nr.Dataset.from_frame(holes, x=["size"], y=["cost"])
    nullable = FRAME.assign(height=pandas.array([1, None, 3], "Int64"))
    with pytest.raises(nr.NeuralRaceError, match="column 'height'"):
        nr.Dataset.from_frame(nullable, x=["height"], y=["cost"])


def test_unknown_names_come_with_the_nearest_one():
    arch = nr.Architecture(
        {"x": 1, "hidden": 2, "y": 1}, {"a": ("x", "hidden"), "b": ("hidden", "y")}
    )
    net, y = nr.GDLN(arch), {"y": np.ones((2, 1))}
    data = nr.Dataset({"x": np.ones((2, 1))}, y)
    with refuses("gates"):
        net(net.init(0), data.gated({"hiden": [0, 1]}))
    with refuses("sizes"):
        nr.Architecture({"x": 1, "hidden": 2}, {"a": ("x", "hiden")})
    with refuses("y"):
        net(net.init(0), nr.Dataset(data.x, {**y, "y2": y["y"]}))


def test_some_of_the_samples():
    data = with_weights(labels={"item": [1, 2, 3, 4]})
    part = data.take([3, 1])
    for name in ("a", "b"):
        np.testing.assert_array_equal(part.x[name], data.x[name][[3, 1]])
    assert part.y["y"][:, 0].tolist() == [9, 3]
    assert part.gates["h"].tolist() == [0, 0] and part.labels["item"].tolist() == [4, 2]
    np.testing.assert_allclose(part.sample_weight, [4 / 6, 2 / 6])
    masked = data.take(data.mask(item=(2, 4)))
    assert masked.digest() == data.take([1, 3]).digest() == data.take(slice(1, None, 2)).digest()
    with refuses("samples"):
        data.take([0, 4])
    with refuses("samples"):
        data.take([True, False, True])
    with refuses("samples"):
        data.take([0.5])


def test_sorted_by_labels():
    labels = {"context": [2, 1, 2, 1], "item": [1, 2, 0, 1]}
    data = with_weights(labels=labels)
    assert data.sorted_by("context", "item").labels["item"].tolist() == [1, 2, 0, 1]
    assert data.sorted_by("context").labels["item"].tolist() == [2, 1, 1, 0], "equal ones stay"
    assert data.sorted_by("item", "context").x["a"][:, 0].tolist() == [6, 9, 0, 3]
    assert data.sorted_by() is data
    with refuses("colour"):
        data.sorted_by("colour")


def test_a_memory_mapped_file_stays_one(tmp_path, monkeypatch):
    stored = np.memmap(tmp_path / "x", np.float32, "w+", shape=(100, 4))
    stored[:] = np.arange(400).reshape(100, 4)
    data = nr.Dataset({"x": stored}, {"y": stored[:, :1]})
    for array in (data.x["x"], data.gated({}).y["y"], data.take(slice(10, 20)).x["x"]):
        assert np.shares_memory(array, stored)
    assert data.digest() == nr.Dataset({"x": stored + 0}, {"y": stored[:, :1] + 0}).digest()
    monkeypatch.setattr("neuralrace.dataset.checks.PIECE", 40)
    stored[57, 3] = np.inf
    stored[90] = np.nan
    with refuses("x"):  # fmt: skip
        nr.Dataset({"x": stored}, {"y": np.ones((100, 1))})


def test_reading_a_large_file_takes_little_memory(tmp_path):
    """Neither the checks nor the digest copy the file, or as much as a byte for each number."""
    rows = 4000
    stored = np.memmap(tmp_path / "x", np.float64, "w+", shape=(rows, 5000))  # 160 MB, sparse
    tracemalloc.start()
    nr.Dataset({"x": stored}, {"y": np.ones((rows, 1))}).digest()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < stored.size / 2


def test_a_memory_mapped_file_of_integers_is_refused(tmp_path):
    stored = np.memmap(tmp_path / "x", np.uint8, "w+", shape=(10, 4))
    with refuses("x"):
        nr.Dataset({"x": stored}, {"y": np.ones((10, 1))})
    nr.Dataset({"x": np.asarray(stored, np.float32)}, {"y": np.ones((10, 1))})


def test_masks_and_imaginary_parts_are_not_dropped():
    y = {"y": np.ones((2, 1))}
    masked = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    with refuses("x"):
        nr.Dataset({"x": masked}, y)
    assert nr.Dataset({"x": np.ma.array([[1.0], [2.0]])}, y).x["x"].tolist() == [[1], [2]]
    with refuses("x"):
        nr.Dataset({"x": np.array([[1.0], [2.0 + 1e-9j]])}, y)


def test_gate_classes_are_equal_by_content():
    data = with_weights()
    assert data.gate_classes() == with_weights().gate_classes()
    assert data.gate_classes() != with_weights(gates={"h": [1, 0, 1, 1]}).gate_classes()
    assert data.gate_classes() != with_weights(gates={"k": [1, 0, 1, 0]}).gate_classes()
    assert data.gate_classes() != with_weights(sample_weight=None).gate_classes()
    assert data.gate_classes() != 3


def test_a_dataset_of_arrays_on_a_device_can_be_made_under_jit(monkeypatch):
    monkeypatch.setattr("neuralrace.dataset.checks.PIECE", 3)
    x, y = jnp.ones((4, 3)), jnp.ones((4, 1))

    @jax.jit
    def total(scale):
        made = nr.Dataset({"x": x}, {"y": y})
        return scale * made.x["x"].sum()

    assert total(2.0) == 24


# ---- in one line --------------------------------------------------------------------------------


def test_a_dataset_is_shown_in_one_line():
    conditions = [(odour, room) for odour in "ABCD" for room in (1, 2)]
    data = nr.Dataset(
        {"odour": np.ones((8, 4)), "room": np.ones((8, 2))},
        {"act": np.ones((8, 2))},
        gates={"h": np.ones(8)},
        labels={"odour": [o for o, _ in conditions], "room": [r for _, r in conditions]},
    )
    line = (
        "Dataset(8 samples; x: odour 4, room 2; y: act 2; gates: h; labels: odour (A, B, C, D), "
        "room (1, 2))"
    )
    assert repr(data) == str(data) == line
    assert repr(data.take(data.mask(odour="B"))).endswith("labels: odour (B), room (1, 2))")
    assert repr(simple(1)) == "Dataset(1 sample; x: x 2; y: y 1)"
    assert "sample weights" in repr(simple(2, sample_weight=[1, 2]))


def test_the_line_of_large_data_is_short():
    n = 100_000
    labels = {"item": np.arange(n), "name": [f"n{i % 50}" for i in range(n)]}
    data = simple(n, labels=labels, gates={f"h{i}": np.ones(n) for i in range(40)})
    assert len(repr(data)) < 200
    assert repr(data).endswith("and 32 more; labels: item (100000 values), name (50 values))")
    long = simple(2, labels={"why": ["because " * 9, "since " * 9]})
    assert repr(long).endswith("labels: why (2 values))")


def test_the_line_of_a_traced_dataset():
    seen = []
    data = simple(4, labels={"odour": ["A", "A", "B", "B"], "room": [1, 2, 1, 2]})
    jax.jit(lambda d: seen.append(repr(d)) or d)(data)
    assert seen == ["Dataset(4 samples; x: x 2; y: y 1; labels: odour, room)"]
    assert "? samples" in repr(jax.tree.map(lambda _: 0.0, data))
