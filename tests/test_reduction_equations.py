"""Equations, conserved quantities and LaTeX of merged races."""

import gc
import re
import weakref

import jax
import numpy as np
import pytest
import sympy

import neuralrace as nr
from neuralrace import report
from neuralrace.reduction.merging import block_system
from neuralrace.reduction.symbols import number


@pytest.fixture(scope="module")
def routing() -> nr.Race:
    return nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=5, K=3)[0], hidden=8))


@pytest.fixture(scope="module")
def contexts() -> nr.Race:
    return nr.reduce(*nr.tasks.all_but_one(nr.tasks.contextual(4), hidden=10))


def test_variables_and_their_multiplicities(routing):
    first = [v for v in routing.variables() if v.mode == "mode1"]
    assert [(v.name, v.multiplicity) for v in first] == [("B1", 10), ("B2", 1)]
    assert first[1].edges == ("hidden",)
    start = routing.start({e: 0.1 if e.startswith("in") else 0.2 for e in routing.arch.edges})
    three = [v for v in routing.variables(start) if v.mode == "mode1"]
    assert [v.multiplicity for v in three] == [5, 1, 5]
    assert [v.start for v in three] == [0.1, 0.2, 0.2]


def test_equations_are_the_velocity_of_the_network(routing):
    """Numbers put into the printed equations against autodiff of the block itself."""
    block = routing.blocks[0]
    values = {"B_1": 0.7, "B_2": 1.3}
    drive = np.linalg.svd(nr.tasks.hierarchy(2, 2, amplitudes=(6, 4, 3)))[1][0] / 4
    weights = {e: [[values["B_2" if e == "hidden" else "B_1"]]] for e in block.arch.edges}
    velocity = nr.GDLN(block.arch).velocity(weights, block.data)
    for equation, edge in zip(routing.equations()["mode1"], ("in1", "hidden"), strict=True):
        plain = {f: values[f.func.__name__] for f in equation.rhs.atoms(sympy.Function)}
        found = equation.rhs.subs(plain).subs({"S": drive, "D": 0.25})
        symbols = {s: {"S": drive, "D": 0.25}[s.name] for s in found.free_symbols}
        assert float(found.subs(symbols)) == pytest.approx(float(velocity[edge][0, 0]), rel=1e-9)


def test_conserved_quantities_do_not_change(routing):
    start = routing.start({e: 0.1 if e.startswith("in") else 0.3 for e in routing.arch.edges})
    solution = routing.solve(times=np.linspace(0, 40, 21), start=start)
    at = solution.values["variables"]["mode1"]
    values = {"B_1": at["in1"], "B_2": at["hidden"], "B_3": at["out1"]}
    kept = routing.conserved(start)["mode1"]
    assert len(kept) == 2
    for form in kept:
        names = sorted(form.free_symbols, key=str)
        path = sympy.lambdify(names, form)(*(values[str(n)][:, 0, 0] for n in names))
        assert np.ptp(path) < 1e-7 * np.abs(path).max()
        assert np.ptp(values[str(names[0])]) > 0.1


def test_conserved_is_empty_where_nothing_is(contexts):
    assert contexts.conserved()["block1"] == []


def test_latex_writes_equal_modes_once(routing):
    text = routing.latex()
    assert text.count(r"\begin{aligned}") == 1
    assert r"\frac{\left(- D B_{1}^{2} B_{2} + S\right) B_{1} B_{2}}{5}" in text
    assert r"\mathrm{mode3, mode4}: S = \frac{3}{4}" in text


def test_contexts_merge_to_one_variable_by_a_closed_subspace(contexts):
    system, start = block_system(contexts.blocks[0])
    assert len(system.parts) == 1
    assert start.tolist() == pytest.approx([1.0])
    b = np.array([0.4])
    weights = system.expanded(b)
    velocity = nr.GDLN(contexts.blocks[0].arch).velocity(weights, contexts.blocks[0].data)
    moved = system.expanded(system.velocity_at(b))
    for edge, v in velocity.items():
        np.testing.assert_allclose(v, moved[edge], atol=1e-12)
    loss = nr.GDLN(contexts.blocks[0].arch).loss(weights, contexts.blocks[0].data)
    assert float(loss) == pytest.approx(float(system.loss_at(b)), rel=1e-10)


def test_different_layers_need_two_variables(contexts):
    numbers = {e: 0.1 if e.startswith("item") else 0.2 for e in contexts.split.arch.edges}
    found = block_system(contexts.blocks[0], contexts.start(numbers).weights[0])
    assert found is not None
    assert len(found[0].parts) == 2
    for edge, w in found[0].expanded(found[1]).items():
        np.testing.assert_allclose(w, contexts.start(numbers).weights[0][edge], atol=1e-12)
    form = contexts.closed_form(contexts.start(numbers))
    times = np.linspace(0, 60, 13)
    assert form.is_complete
    flow = contexts.solve(times=times, start=contexts.start(numbers))
    np.testing.assert_allclose(form.loss(times), flow.loss, atol=1e-7 * flow.loss[0])


def test_blocks_too_large_to_write_out_are_named():
    base = nr.tasks.contextual(structures=("hierarchy", "ring", "crossed"))
    race = nr.reduce(*nr.tasks.common_and_all_but_one(base, hidden=5))
    assert "too many variables to be written out" in race.latex()
    form = race.closed_form(0.01)
    assert not form.is_complete and "block1" in form.without


@pytest.mark.parametrize("written", ["variables", "equations", "coefficients", "conserved"])
def test_a_race_that_cannot_be_written_out_says_so(written):
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(9, 5))}, {"y": rng.normal(size=(9, 4))})
    race = nr.reduce(nr.Architecture.chain(5, 8, 4), data)
    with pytest.raises(nr.NeuralRaceError, match="block1"):
        getattr(race, written)(0.1)
    assert report.equations_of(race)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 1), (3, 2), (1, 4)])
def test_blocks_of_a_dozen_variables_are_written_out(inputs, outputs):
    """From weights without symmetry; the equations are the gradient of the network's loss."""
    rng = np.random.default_rng(inputs)
    data = nr.Dataset({"x": rng.normal(size=(9, inputs))}, {"y": rng.normal(size=(9, outputs))})
    arch = nr.Architecture.chain(inputs, 2, outputs)
    gates = {"W1": rng.uniform(0.5, 1.5, 9)}
    data = nr.Dataset(data.x, data.y, gates)
    weights = {
        e: 0.3 * rng.normal(size=(arch.sizes[t], arch.sizes[s])) for e, (s, t) in arch.edges.items()
    }
    race = nr.reduce(arch, data)
    start = race.start(weights)
    (block,), (begin,) = race.blocks, start.weights
    hidden = nr.Architecture.chain(block.dims["x"], len(begin["W1"]), block.dims["y"])
    velocity = jax.grad(nr.GDLN(hidden).loss)(begin, block.data)
    variables = race.variables(start)
    t = sympy.Symbol("t", real=True)
    at = {sympy.Function(f"B_{v.name[1:]}")(t): v.start for v in variables}
    at |= race.coefficients(start).get(block.name, {})
    rates = [float(equation.rhs.subs(at)) for equation in race.equations(start)[block.name]]
    found = {e: np.zeros_like(w) for e, w in begin.items()}
    for variable, rate in zip(variables, rates, strict=True):
        for edge, direction in variable.directions.items():
            found[edge] += rate * direction
    for edge, slope in velocity.items():
        np.testing.assert_allclose(found[edge], -slope, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize(
    ("value", "text"),
    [(1 / 7, "1/7"), (np.sqrt(2) / 4, "sqrt(2)/4"), (-0.25, "-1/4"), (0.0, "0"), (3.0, "3")],
)
def test_numbers_are_recognised(value, text):
    assert str(number(value)) == text


def test_numbers_that_are_not_simple_stay_decimal():
    assert str(number(np.pi)) == "3.14159"


def test_summary_says_what_a_person_wants_to_know(routing, contexts):
    text = str(routing)
    for part in (
        "4 independent blocks, all of them scalar modes",
        "exact",
        "B1: 10 edges",
        "5*B_1**2",
    ):
        assert part in text
    assert "s: largest singular value" in text
    assert "quadrature" in text and "logistic" in str(contexts)
    assert "Assumption 2.1.1" in str(contexts)


def test_rounding_beside_a_term_is_never_written(contexts):
    """Conserved forms and equations of exact races have no coefficient that is noise."""
    base = nr.tasks.contextual(3, items=4)
    for race in (contexts, nr.reduce(*nr.tasks.common_and_all_but_one(base, hidden=6))):
        for forms in (race.conserved(), race.equations()):
            for found in forms.values():
                for form in found:
                    right = getattr(form, "rhs", form)
                    sizes = [abs(float(c)) for c in right.atoms(sympy.Number) if c]
                    assert min(sizes, default=1.0) > 1e-7 * max(sizes, default=1.0)


def test_a_system_in_tiny_units_is_recognised():
    """Inputs of 1e-6 make the brake 1e-12 of nothing: sizes are compared in natural units."""
    data = nr.Dataset({"x": [[1e-6]]}, {"y": [[1e4]]})
    race = nr.reduce(nr.Architecture.chain(1, 1, 1), data)
    assert race.closed_form(1.0).modes["mode1"].kind == "logistic"


def test_all_edges_are_named_on_request():
    race = nr.reduce(*nr.tasks.routing_pathways(nr.tasks.routing(M=4, K=2)[0], hidden=4))
    edges = ", ".join(f"{side}{i}" for side in ("in", "out") for i in range(1, 5))
    assert edges not in str(race) and edges in race.describe(full=True)
    assert edges not in race.latex() and edges in race.latex(full=True)
    unequal = race.start({e: 0.01 * (i + 1) for i, e in enumerate(race.arch.edges)})
    text = race.latex(unequal, full=True)
    assert all(rf"\text{{{edge}}}" in text for edge in race.arch.edges)
    assert "given that the path is on" in race.latex()


def test_a_race_with_very_many_gates_is_printed():
    """8000 gatings of one neuron, and 150 neurons with gates of their own."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 2))
    arch = nr.Architecture.chain(2, 3, 2)
    many = nr.reduce(arch, nr.Dataset({"x": x}, {"y": x}, {"h": rng.uniform(0.5, 1.5, 8000)}))
    gates = rng.integers(0, 2, size=(12, 150)).astype(float)
    wide = nr.reduce(
        nr.Architecture.chain(1, 150, 1),
        nr.Dataset({"x": x[:12, :1]}, {"y": x[:12, :1]}, {"h": gates}),
    )
    assert "block1  x 2 → y 2" in str(many) and "mode1  x 1 → y 1" in str(wide)


def test_a_race_is_forgotten_with_its_last_name():
    race = nr.reduce(*nr.tasks.linear_pathways(nr.tasks.extended_xor(1.0)))
    race.solve(times=[1.0], start=0.1)
    assert str(race) and race.latex()
    seen = weakref.ref(race.blocks[0])
    del race
    gc.collect()
    assert seen() is None


def test_overlapping_paths_have_merged_coefficients():
    """Two pathways that are always on share the drive 1 and brake each other: D = 2."""
    data = nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]})
    race = nr.reduce(*nr.pathways(data, {"a": None, "b": None}, hidden=1))
    text = race.latex()
    assert "S = 1, D = 2" in text and "coefficients of the merged equations" in text
    assert "given that the path is on" not in text
    assert "s = 1, d = 2" in repr(race.closed_form(0.1))


def test_polynomials_of_matrix_blocks_are_checked_at_fresh_points(contexts, monkeypatch):
    """An error that is no polynomial of the known degree is not written as one."""
    from neuralrace.reduction.merging import closed_subspace, subspace_system
    from neuralrace.reduction.scipy_solver import NetworkFlow

    block = contexts.blocks[0]
    parts = closed_subspace(block, block.aligned)
    assert parts is not None and subspace_system(block, parts) is not None
    plain = NetworkFlow.errors
    monkeypatch.setattr(
        NetworkFlow, "errors", lambda self, w: plain(self, w) * (1 + 1e-4 * np.sin(9 * w[0]))
    )
    assert subspace_system(block, parts) is None


def test_overlapping_paths_are_written_as_a_weight_times_what_is_left_to_learn():
    """NRR Eq. 10 of two overlapping pathways, against the slope of the loss by autodiff."""
    arch = nr.Architecture(
        {"x": 1, "a": 1, "b": 1, "y": 1},
        {"xa": ("x", "a"), "ay": ("a", "y"), "xb": ("x", "b"), "by": ("b", "y")},
    )
    gates = {"a": [1.0, 1.0, 0.0], "b": [0.0, 1.0, 1.0]}
    data = nr.Dataset({"x": [[1.0], [2.0], [1.0]]}, {"y": [[1.0], [2.0], [3.0]]}, gates)
    start = {"xa": 0.4, "ay": 0.4, "xb": 0.7, "by": 0.7}
    race = nr.reduce(arch, data)
    weights = {edge: np.full((1, 1), value) for edge, value in start.items()}
    slope = jax.grad(nr.GDLN(arch).loss)(weights, data)
    found, letters = race.equations(start)["mode1"], race.coefficients(start)["mode1"]
    assert [v.edges for v in race.variables(start)] == [("xa", "ay"), ("xb", "by")]
    for equation, edge, b in zip(found, ("xa", "xb"), (0.4, 0.7), strict=True):
        values = {
            f: 0.4 if f.func.__name__ == "B_1" else 0.7 for f in equation.atoms(sympy.Function)
        }
        rate = float(equation.rhs.subs(letters).subs(values))
        assert rate == pytest.approx(-float(slope[edge][0, 0]))
        assert equation.rhs.is_Mul, "the weight is not taken out of the sum"
        own = [f for f in equation.rhs.args if f.is_Function]
        assert [values[f] for f in own] == [b]
    text = race.latex(start)
    assert r"&= \left(- " in text and r"\right) B_{1}" in text and r"\right) B_{2}" in text
    assert "direction" not in text


def test_variables_of_a_matrix_block_are_called_directions_in_latex():
    race = nr.reduce(*nr.tasks.common_and_single(nr.tasks.contextual(2, items=2), hidden=4))
    assert not race.is_decoupled
    assert r"$B$ is the size of a direction in the weights of its edges" in race.latex()
    mode = nr.reduce(*nr.tasks.xor_pathways(nr.tasks.xor()))
    assert "direction" not in mode.latex()


def heads(q=0.4, gated=True):
    """A shared layer, then a module and an output for each of two heads, asked with 1 − q and q."""
    S = np.array([[3.0, 2.0], [2.6, 1.1]])
    x = np.sqrt(2) * np.vstack([np.eye(2)] * 2)
    asked = np.array([1, 1, 2, 2])
    y = {f"y{h}": np.where(asked[:, None] == h, x * S[h - 1], 0.0) for h in (1, 2)}
    gates = {f"{v}{h}": asked == h for h in (1, 2) for v in ("m", "y") if gated or v == "m"}
    weight = np.where(asked == 1, 1 - q, q) / 2
    edges = {"in": ("x", "h")}
    edges |= {f"a{h}": ("h", f"m{h}") for h in (1, 2)} | {
        f"b{h}": (f"m{h}", f"y{h}") for h in (1, 2)
    }
    sizes = {"x": 2, "h": 8, "m1": 8, "m2": 8, "y1": 2, "y2": 2}
    return nr.Architecture(sizes, edges), nr.Dataset({"x": x}, y, gates, weight)


def test_modes_that_differ_in_their_numbers_share_one_system():
    """Two modes of two heads: Σ^yx of a path is its share of the samples times S."""
    race = nr.reduce(*heads())
    text = race.latex()
    assert text.count("begin{aligned}") == 1 and len(race.blocks) == 2
    told = dict(re.findall(r"mathrm\{(mode\d)\}: (S_.*?)(?:, D|,\\quad|\n|$)", text))
    for mode, drives in {"mode1": (0.6 * 3.0, 0.4 * 2.6), "mode2": (0.6 * 2.0, 0.4 * 1.1)}.items():
        numbers = [
            a / b for a, b in map(_fraction, re.findall(r"frac\{(\d+)\}\{(\d+)\}", told[mode]))
        ]
        assert sorted(numbers) == pytest.approx(sorted(drives))


def _fraction(pair):
    return tuple(map(float, pair))


def test_an_output_that_is_trained_to_be_silent_is_named():
    assert "trained to be zero" not in str(nr.reduce(*heads()))
    told = str(nr.reduce(*heads(gated=False)))
    assert "y1 is on, and its target zero, on 40 % of the samples" in told  # by their weights
    assert "y2 is on, and its target zero, on 60 % of the samples" in told
    assert "give it a gate of 0" in told


def several_paths(rng, scale):
    """Two routes that share an edge, and one that is gated, with random data of this size."""
    arch = nr.Architecture(
        dict.fromkeys("xhkgy", 1),
        {
            e: tuple(ends)
            for e, ends in zip("abcdef", ("xh", "hy", "hk", "ky", "xg", "gy"), strict=True)
        },
    )
    x = scale * rng.normal(size=(6, 1))
    y = rng.normal(size=(6, 1)) / scale
    return arch, nr.Dataset(
        {"x": x}, {"y": y}, {"g": rng.integers(0, 2, 6), "c": rng.uniform(size=6)}
    )


@pytest.mark.parametrize("seed", range(4))
def test_equations_by_paths_and_merged_are_the_gradient_of_the_loss(seed):
    """Of random graphs, gates and scales, from starts that merge edges, against autodiff."""
    rng = np.random.default_rng(seed)
    arch, data = several_paths(rng, 10.0 ** rng.integers(-2, 3))
    race = nr.reduce(arch, data)
    start = {e: float(rng.choice([0.3, 0.5, -0.7])) for e in arch.edges}
    t = sympy.Symbol("t", real=True)
    variables = race.variables(start)
    values = rng.uniform(0.2, 1.0, len(variables))
    weights = {
        e: b * d for v, b in zip(variables, values, strict=True) for e, d in v.directions.items()
    }
    (block,) = race.blocks
    slope = jax.grad(nr.GDLN(block.arch).loss)(weights, block.data)
    at = {sympy.Function(f"B_{v.name[1:]}")(t): b for v, b in zip(variables, values, strict=True)}
    for form in ("paths", "merged"):
        letters = race.coefficients(start, form=form)["mode1"]
        for variable, eq in zip(variables, race.equations(start, form=form)["mode1"], strict=True):
            rate = float(eq.rhs.subs(letters).subs(at))
            for edge, direction in variable.directions.items():
                wanted = -float(slope[edge][0, 0])
                assert rate * float(direction[0, 0]) == pytest.approx(wanted, rel=1e-5, abs=1e-9)


def test_letters_belong_to_paths():
    """S_g is Σ^yx of every path of group g, and D_gh is Σ^x between paths of two groups."""
    arch, data = several_paths(np.random.default_rng(3), 1.0)
    race = nr.reduce(arch, data)
    groups, values = race.paths()["mode1"], race.coefficients()["mode1"]
    assert sorted(p for names in groups for p in names) == ["a-b", "a-c-d", "e-f"]
    stats = nr.path_statistics(arch, data)
    paths = {"-".join(path.edges): path for path in stats.paths}
    sign = float(np.prod([race.blocks[0].basis[v][0, 0] for v in "xy"]))
    for g, names in enumerate(groups, 1):
        for name in names:
            S = float(stats.yx[paths[name]][0, 0]) * sign
            assert float(values[sympy.Symbol(f"S_{g}", real=True)]) == pytest.approx(S)
        for h, others in enumerate(groups[g - 1 :], g):
            D = float(stats.x[paths[names[0]], paths[others[0]]][0, 0])
            assert float(values.get(sympy.Symbol(f"D_{g}{h}", real=True), 0)) == pytest.approx(D)


def test_equations_of_too_many_paths_are_polynomials():
    """Sixteen pathways that overlap in their own ways: no letters, and never an empty answer."""
    rng = np.random.default_rng(0)
    data = nr.Dataset({"x": rng.normal(size=(40, 1))}, {"y": rng.normal(size=(40, 1))})
    masks = {f"p{i}": rng.integers(0, 2, 40).astype(bool) for i in range(16)}
    race = nr.reduce(*nr.pathways(data, masks, hidden=1))
    assert len(race.equations()["mode1"]) == 16 and race.coefficients()["mode1"] == {}
