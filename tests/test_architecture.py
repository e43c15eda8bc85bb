"""The graph: content, order, paths and their number, constructors, bad graphs."""

import copy
import dataclasses
import pickle
from itertools import pairwise

import jax
import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neuralrace as nr
from evidence.own.cases import random_architecture
from tests.test_errors import refuses, says

seeds = st.integers(0, 2**32 - 1)

DIAMOND = nr.Architecture(
    sizes={"a": 2, "b": 3, "h": 4, "k": 5, "y": 1, "z": 2},
    edges={
        "ah": ("a", "h"),
        "ah2": ("a", "h"),
        "bh": ("b", "h"),
        "hk": ("h", "k"),
        "ky": ("k", "y"),
        "hy": ("h", "y"),
        "kz": ("k", "z"),
        "bz": ("b", "z"),
    },
)


def shuffled(arch: nr.Architecture, rng: np.random.Generator) -> nr.Architecture:
    """The same graph written in another order."""

    def mixed(mapping):
        names = list(mapping)
        return {names[i]: mapping[names[i]] for i in rng.permutation(len(names))}

    return nr.Architecture(mixed(arch.sizes), mixed(arch.edges))


def paths_by_recursion(arch: nr.Architecture) -> set[tuple[str, ...]]:
    """Every chain of edges from a node without incoming to one without outgoing edges."""

    def onward(node):
        steps = [(e, t) for e, (s, t) in arch.edges.items() if s == node]
        if not steps:
            yield ()
        for edge, target in steps:
            for rest in onward(target):
                yield (edge, *rest)

    targets = {t for _, t in arch.edges.values()}
    return {p for node in arch.sizes if node not in targets for p in onward(node)}


# ---- content ------------------------------------------------------------------------------------


@given(seeds)
def test_equal_by_content_and_order(seed):
    rng = np.random.default_rng(seed)
    arch = random_architecture(rng)
    again, other = nr.Architecture(dict(arch.sizes), dict(arch.edges)), shuffled(arch, rng)
    assert arch == again
    assert hash(arch) == hash(again)
    assert {arch: 1}[again] == 1
    same = [*other.sizes, *other.edges] == [*arch.sizes, *arch.edges]
    assert (arch == other) == same, "whose outputs come in another order is another graph"
    assert arch.order == other.order
    assert {str(p) for p in arch.paths()} == {str(p) for p in other.paths()}


@pytest.mark.parametrize(
    ("sizes", "edges"),
    [
        ({"x": 2, "h": 3, "y": 2}, {"W1": ("x", "h"), "W2": ("h", "y")}),
        ({"x": 2, "h": 3, "z": 1}, {"W1": ("x", "h"), "W2": ("h", "z")}),
        ({"x": 2, "h": 3, "y": 1}, {"W1": ("x", "h"), "W3": ("h", "y")}),
        ({"x": 2, "h": 3, "y": 1}, {"W1": ("x", "h"), "W2": ("h", "y"), "S": ("x", "y")}),
    ],
)
def test_unequal_when_a_size_name_or_edge_differs(sizes, edges):
    assert nr.Architecture(sizes, edges) != nr.Architecture.chain(2, 3, 1)


def test_unequal_to_other_things():
    assert nr.Architecture.chain(2, 3, 1) != "chain"


def test_pickle_and_copy_keep_the_content_and_the_order_written():
    for again in (pickle.loads(pickle.dumps(DIAMOND)), copy.deepcopy(DIAMOND)):
        assert again == DIAMOND
        assert tuple(again.sizes) == tuple(DIAMOND.sizes)
        assert tuple(again.edges) == tuple(DIAMOND.edges)


def test_immutable_and_apart_from_the_dict_it_came_from():
    sizes, edges = {"x": 2, "y": 1}, {"W": ("x", "y")}
    arch = nr.Architecture(sizes, edges)
    sizes["x"] = 7
    edges["V"] = ("x", "y")
    assert arch == nr.Architecture({"x": 2, "y": 1}, {"W": ("x", "y")})
    with pytest.raises(TypeError):
        arch.sizes["x"] = 3  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        arch.sizes = {}  # type: ignore[misc]


def test_repr_makes_it_again():
    assert eval(repr(DIAMOND), {"Architecture": nr.Architecture}) == DIAMOND


def test_numpy_sizes_become_plain_integers():
    arch = nr.Architecture.chain(*np.array([2, 3, 1]))
    assert arch == nr.Architecture.chain(2, 3, 1)
    assert all(type(size) is int for size in arch.sizes.values())


@pytest.mark.parametrize("make", [nr.GDLN, nr.ReLUNetwork])
def test_a_network_as_argument_compiles_once_for_equal_content(make):
    traces = []

    @jax.jit
    def loss(net, weights, data):
        traces.append(net)
        return net.loss(weights, data)

    data = nr.Dataset(
        {v: np.ones((3, DIAMOND.sizes[v])) for v in DIAMOND.inputs},
        {v: np.ones((3, DIAMOND.sizes[v])) for v in DIAMOND.outputs},
    )
    weights = make(DIAMOND).init(jax.random.key(0))
    values = [loss(make(copy.deepcopy(DIAMOND)), weights, data) for _ in range(4)]
    assert len(traces) == 1
    assert len({float(v) for v in values}) == 1
    changed = nr.Architecture(DIAMOND.sizes, {**DIAMOND.edges, "az": ("a", "z")})
    loss(make(changed), make(changed).init(jax.random.key(0)), data)
    assert len(traces) == 2


def test_an_architecture_is_a_static_argument():
    traces = []

    def double(arch, x):
        traces.append(arch)
        return x * arch.path_count()

    compiled = jax.jit(double, static_argnums=0)
    assert float(compiled(DIAMOND, 1.0)) == DIAMOND.path_count()
    assert float(compiled(copy.deepcopy(DIAMOND), 2.0)) == 2 * DIAMOND.path_count()
    assert len(traces) == 1


# ---- what is where ------------------------------------------------------------------------------


def test_inputs_hidden_outputs_follow_the_order_written():
    assert DIAMOND.inputs == ("a", "b")
    assert DIAMOND.hidden == ("h", "k")
    assert DIAMOND.outputs == ("y", "z")
    assert DIAMOND.incoming["h"] == ("ah", "ah2", "bh")
    assert DIAMOND.outgoing["b"] == ("bh", "bz")
    assert DIAMOND.incoming["a"] == () == DIAMOND.outgoing["z"]


@given(seeds)
def test_every_node_is_one_kind_and_comes_after_its_sources(seed):
    arch = random_architecture(np.random.default_rng(seed))
    kinds = (*arch.inputs, *arch.hidden, *arch.outputs)
    assert sorted(kinds) == sorted(arch.sizes)
    assert sorted(arch.order) == sorted(arch.sizes)
    place = {node: i for i, node in enumerate(arch.order)}
    assert all(place[s] < place[t] for s, t in arch.edges.values())
    sources, targets = ({ends[i] for ends in arch.edges.values()} for i in (0, 1))
    assert set(arch.inputs) == set(arch.sizes) - targets
    assert set(arch.outputs) == set(arch.sizes) - sources


# ---- paths --------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(seeds)
def test_paths_and_counts_agree_with_recursion(seed):
    arch = random_architecture(np.random.default_rng(seed))
    paths = arch.paths()
    wanted = paths_by_recursion(arch)
    assert len(paths) == len(wanted) == arch.path_count()
    assert {p.edges for p in paths} == wanted
    for path in paths:
        assert arch.edges[path.edges[0]][0] == path.source
        assert arch.edges[path.edges[-1]][1] == path.target
        for first, second in pairwise(path.edges):
            assert arch.edges[first][1] == arch.edges[second][0]
    for source in (None, *arch.inputs):
        for target in (None, *arch.outputs):
            for edge in (None, *arch.edges):
                through = [
                    p
                    for p in paths
                    if source in (None, p.source)
                    and target in (None, p.target)
                    and (edge is None or edge in p.edges)
                ]
                assert arch.path_count(edge, source, target) == len(through)


def test_path_count_by_hand():
    # a reaches h by two edges and b by one; h reaches y directly and via k, z only via k; b → z
    assert DIAMOND.path_count() == 3 * 3 + 1
    assert DIAMOND.path_count("ah") == 3
    assert DIAMOND.path_count("hk", source="a") == 4
    assert DIAMOND.path_count(source="b", target="z") == 2
    assert DIAMOND.path_count("bz", target="y") == 0


def test_path_count_is_exact_beyond_machine_integers():
    nodes = [f"n{i}" for i in range(101)]
    edges = {f"{side}{i}": ends for i, ends in enumerate(pairwise(nodes)) for side in "abc"}
    arch = nr.Architecture(dict.fromkeys(nodes, 1), edges)
    assert arch.path_count() == 3**100
    assert arch.path_count("b50") == 3**99
    with says("too many paths", got=str(3**100), wanted="limit=100000", fix="path_count()"):
        arch.paths()


def test_before_and_after_take_a_path_apart():
    path = nr.Path(("p", "q", "r"), "x", "y")
    assert path.before("p") == () == path.after("r")
    assert path.before("q") == ("p",)
    assert path.after("q") == ("r",)
    for edge in path.edges:
        assert (*path.before(edge), edge, *path.after(edge)) == path.edges
    assert str(path) == "x -[p q r]-> y"
    with refuses("edge"):
        path.before("s")


def test_the_limit_is_inclusive_and_names_the_count():
    assert len(DIAMOND.paths(limit=10)) == 10
    with refuses("limit"):
        DIAMOND.paths(limit=9)


# ---- constructors -------------------------------------------------------------------------------


def test_chain():
    assert nr.Architecture.chain(5, 2) == nr.Architecture({"x": 5, "y": 2}, {"W1": ("x", "y")})
    deep = nr.Architecture.chain(5, 4, 3, 2)
    assert deep.sizes == {"x": 5, "h1": 4, "h2": 3, "y": 2}
    assert deep.edges == {"W1": ("x", "h1"), "W2": ("h1", "h2"), "W3": ("h2", "y")}
    assert nr.Architecture.chain(5, 4, 2).hidden == ("h",)


def test_layered_joins_every_module_to_the_next_layer():
    arch = nr.Architecture.layered({"a": 1, "b": 2}, {"h": 3, "k": 4, "m": 5}, {"y": 6, "z": 7})
    assert arch.path_count() == 2 * 3 * 2
    assert arch.edges["b_m"] == ("b", "m")
    assert len(arch.edges) == 2 * 3 + 3 * 2
    assert arch.path_count(source="a", target="z") == 3


def test_parallel_restricts_reading_and_writing():
    arch = nr.Architecture.parallel(
        {"a": 1, "b": 2},
        {"p": 3, "q": 4},
        {"y": 5, "z": 6},
        reads={"p": ("a",)},
        writes={"q": ("z",)},
    )
    assert arch.sizes == {"a": 1, "b": 2, "p": 3, "q": 4, "y": 5, "z": 6}
    assert arch.edges == {
        "a_p": ("a", "p"),
        "p_y": ("p", "y"),
        "p_z": ("p", "z"),
        "a_q": ("a", "q"),
        "b_q": ("b", "q"),
        "q_z": ("q", "z"),
    }


@pytest.mark.parametrize(("M", "P"), [(1, 1), (4, 1), (4, 4), (4, 16), (6, 9), (6, None)])
def test_routing_gives_every_route_one_path_and_shares_it_as_said(M, P):
    arch = nr.Architecture.routing(M, P=P, inputs=2, hidden=3, outputs=5)
    assert arch.path_count() == M * M
    for i in range(1, M + 1):
        for j in range(1, M + 1):
            assert arch.path_count(source=f"x{i}", target=f"y{j}") == 1
    shared = [e for e in arch.edges if e.startswith("hidden")]
    assert len(shared) * (P or M * M) == M * M
    assert {arch.path_count(e) for e in shared} == {P or M * M}
    kinds = {kind: {arch.sizes[v] for v in getattr(arch, kind)} for kind in ("inputs", "hidden")}
    assert kinds == {"inputs": {2}, "hidden": {3}}
    assert {arch.sizes[v] for v in arch.outputs} == {5}


def test_with_bias_joins_one_neuron_to_all_but_the_inputs():
    arch = DIAMOND.with_bias()
    assert arch.sizes == {**DIAMOND.sizes, "bias": 1}
    added = set(arch.edges.items()) - set(DIAMOND.edges.items())
    assert added == {(f"bias_{v}", ("bias", v)) for v in "hkyz"}
    assert arch.inputs == ("a", "b", "bias")
    with refuses("bias"):
        arch.with_bias()


@given(seeds)
def test_networkx_round_trip(seed):
    arch = random_architecture(np.random.default_rng(seed))
    graph = arch.to_networkx()
    assert networkx.is_directed_acyclic_graph(graph)
    assert graph.number_of_edges() == len(arch.edges)
    assert dict(graph.nodes(data="size")) == dict(arch.sizes)
    assert nr.Architecture.from_networkx(graph) == arch


def test_networkx_parallel_edges_and_plain_graphs():
    assert DIAMOND.to_networkx().number_of_edges("a", "h") == 2
    assert nr.Architecture.from_networkx(DIAMOND.to_networkx()) == DIAMOND
    plain = networkx.DiGraph([("x", "h"), ("h", "y")])
    networkx.set_node_attributes(plain, {"x": 2, "h": 3, "y": 1}, "size")
    arch = nr.Architecture.from_networkx(plain)
    assert arch.edges == {"x_h": ("x", "h"), "h_y": ("h", "y")}
    unnamed = networkx.MultiDiGraph([("x", "y"), ("x", "y")])
    networkx.set_node_attributes(unnamed, 1, "size")
    with refuses("graph"):
        nr.Architecture.from_networkx(unnamed)
    unnamed.add_node("h")
    with refuses("graph"):
        nr.Architecture.from_networkx(unnamed)


# ---- bad graphs ---------------------------------------------------------------------------------


def test_a_cycle_is_named_by_its_edges():
    with refuses("edges"):
        nr.Architecture(
            {"x": 1, "h": 1, "k": 1, "l": 1, "y": 1},
            {
                "xh": ("x", "h"),
                "hk": ("h", "k"),
                "kl": ("k", "l"),
                "back": ("l", "h"),
                "ky": ("k", "y"),
            },
        )


def test_a_loop_on_one_node_is_a_cycle():
    with refuses("edges"):
        nr.Architecture({"x": 1, "y": 1}, {"W": ("x", "y"), "loop": ("y", "y")})


@settings(max_examples=50)
@given(seeds)
def test_any_cycle_is_found_and_what_is_named_is_one(seed):
    rng = np.random.default_rng(seed)
    arch = random_architecture(rng)
    path = arch.paths()[rng.integers(arch.path_count())]
    back = (path.target, path.source)
    with pytest.raises(nr.NeuralRaceError, match="cycle") as caught:
        nr.Architecture(arch.sizes, {**arch.edges, "back": back})
    named = caught.value.got.removeprefix("edges ").replace("'", "").split(" -> ")
    ends = [{**arch.edges, "back": back}[edge] for edge in named]
    assert "back" in named
    assert all(a[1] == b[0] for a, b in pairwise([*ends, ends[0]]))


def test_a_node_on_no_path():
    with refuses("sizes"):
        nr.Architecture({"x": 1, "y": 1, "alone": 3}, {"W": ("x", "y")})


def test_no_edges():
    with refuses("edges"):
        nr.Architecture({}, {})


def test_an_edge_to_an_unknown_node():
    with refuses("sizes"):
        nr.Architecture({"x": 1, "h": 1, "y": 1}, {"W1": ("x", "h"), "W2": ("hh", "y")})


def test_a_node_and_an_edge_of_one_name():
    with refuses("h"):
        nr.Architecture({"x": 1, "h": 1, "y": 1}, {"h": ("x", "h"), "W": ("h", "y")})


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "4", None])
def test_sizes_that_are_no_positive_integers(size):
    with says("the size of node 'h'", got=repr(size), wanted="at least 1"):
        nr.Architecture({"x": 1, "h": size, "y": 1}, {"a": ("x", "h"), "b": ("h", "y")})


@pytest.mark.parametrize("size", [0, -1, True])
def test_constructors_check_their_sizes_too(size):
    for make in (
        lambda: nr.Architecture.chain(2, size, 1),
        lambda: nr.Architecture.layered({"x": 2}, {"h": size}, {"y": 1}),
        lambda: nr.Architecture.parallel({"x": 2}, {"h": size}, {"y": 1}),
        lambda: nr.ReLUNetwork((2, size, 1)),
    ):
        with refuses():
            make()


@pytest.mark.parametrize("name", ["", "1h", "h-1", "h 1", "_h", "h\n", "é"])
def test_bad_names(name):
    with says(f"{name!r} cannot name a node", got=repr(name), wanted="a letter first"):
        nr.Architecture({"x": 1, name: 1}, {"W": ("x", name)})
    with says(f"{name!r} cannot name an edge", got=repr(name), wanted="a letter first"):
        nr.Architecture({"x": 1, "y": 1}, {name: ("x", "y")})


def test_unknown_names_in_path_count():
    with refuses("edge"):
        DIAMOND.path_count("W9")
    with refuses("h"):
        DIAMOND.path_count(source="h")
    with refuses("a"):
        DIAMOND.path_count(target="a")


def test_unknown_names_in_parallel():
    nodes = ({"a": 1, "b": 1}, {"p": 1}, {"y": 1})
    with refuses("inputs"):
        nr.Architecture.parallel(*nodes, reads={"q": ("a",)})
    with refuses("inputs"):
        nr.Architecture.parallel(*nodes, reads={"p": ("a", "c")})
    with refuses("outputs"):
        nr.Architecture.parallel(*nodes, writes={"p": ("a",)})


def test_ambiguous_names_of_edges():
    first, second = {"a": 1, "a_b": 1}, {"b_c": 1, "c": 1}
    for make in (
        lambda: nr.Architecture.layered(first, second),
        lambda: nr.Architecture.parallel(first, second, {"y": 1}),
    ):
        with refuses("name"):
            make()


def test_other_bad_constructors():
    with refuses("sizes"):
        nr.Architecture.chain(3)
    with refuses("layers"):
        nr.Architecture.layered({"x": 1}, {"h": 1}, {"h": 1})
    with refuses("routes"):
        nr.Architecture.routing(6, P=16)
    with refuses("M"):
        nr.Architecture.routing(0)
    with refuses("P"):
        nr.Architecture.routing(6, P=-4)


def test_path_lengths_are_those_of_all_paths():
    arch = nr.Architecture(
        sizes={"x": 1, "a": 1, "b": 1, "y": 1, "z": 1},
        edges={
            "xa": ("x", "a"),
            "ab": ("a", "b"),
            "by": ("b", "y"),
            "ay": ("a", "y"),
            "xz": ("x", "z"),
        },
    )
    assert arch.path_lengths == {len(path.edges) for path in arch.paths()} == {1, 2, 3}
