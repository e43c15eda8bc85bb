"""Figures drawn from architectures, stages of gates, lesions: small versions of the real thing."""

from pathlib import Path

import jax
import numpy as np
import pytest
import xarray

import neuralrace as nr
import papers
from papers import formalism, read_record
from papers.mhs import depth, fig3
from papers.mhs import fig1 as mhs_fig1
from papers.nrr import fig1, fig2
from tests.test_errors import says

SMALL = {
    "nrr/fig1": {"hidden": 8},
    "nrr/fig2": {"samples": 9},
    "mhs/fig1": {"items": 2, "hidden": 3},
}


def made(name, **changes):
    figure = papers.find(name)
    return figure.run(figure.resolve(quick=True, changes=changes), quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_figure_drawn_from_an_architecture(name, tmp_path):
    table = made(name, **SMALL[name])
    within = papers.find(name).within(table)
    assert within and all(within.values())
    written = papers.find(name).publish(table, tmp_path)
    assert written.png.stat().st_size > 10_000


# ---- NRR Fig. 1: pathway counting ---------------------------------------------------------------


def test_modules_learn_by_the_number_of_their_paths():
    table = made("nrr/fig1", hidden=8)
    assert dict(zip(table["module"].to_numpy(), table["paths"].to_numpy(), strict=True)) == {
        "look": 3, "watch": 3, "hear": 3, "read": 3, "see": 6, "parse": 6, "name": 4, "say": 4,
        "do": 4,
    }  # fmt: skip
    wrong = table.assign(speed=table["speed"] * np.linspace(1, 1.1, 9))
    assert [id for id, held in fig1.FIGURE.within(wrong).items() if not held] == ["first-step"]


def test_the_multi_modal_network_shows_one_modality_and_wants_one_task():
    arch, data = fig1.network(4)
    shown = sum((np.abs(x).sum(axis=1) > 0).astype(int) for x in data.x.values())
    assert (shown == 1).all() and data.n_samples == 4 * 12
    assert {arch.edges[e] for e in arch.edges} == set(fig1.EDGES.values())


# ---- NRR Fig. 2, MHS Fig. 1: gradients path by path ---------------------------------------------


@pytest.mark.parametrize("example", [fig2.example, mhs_fig1.example])
def test_terms_of_paths_add_up_to_a_finite_difference(example):
    settings = {
        k: s.value for k, s in (fig2 if example is fig2.example else mhs_fig1).SETTINGS.items()
    }
    one = example(settings)
    net = nr.GDLN(one.arch)
    weights = {e: np.array(w) for e, w in net.init(jax.random.key(1), 0.5).items()}
    terms = formalism.by_paths(one.arch, one.data, weights, one.edge)
    assert len(terms) == one.arch.path_count(one.edge) == len(one.through)
    step = 1e-5
    for index in ((0, 0), (2, 1)):
        change = np.zeros_like(weights[one.edge])
        change[index] = step
        up, down = (
            float(net.loss({**weights, one.edge: weights[one.edge] + sign * change}, one.data))
            for sign in (1, -1)
        )
        assert -sum(t[index] for t in terms.values()) == pytest.approx(
            (up - down) / (2 * step), rel=1e-6, abs=1e-9
        )


def test_a_gate_at_an_edge_equals_one_at_the_node_behind_it():
    one = mhs_fig1.example({k: s.value for k, s in mhs_fig1.SETTINGS.items()})
    at_edge = dict(one.data.gates)
    at_node = at_edge | {"not3": at_edge["shared_not3"]}
    del at_node["shared_not3"]
    net = nr.GDLN(one.arch)
    weights = net.init(jax.random.key(0), 0.5)
    a, b = (jax.grad(net.loss)(weights, one.data.gated(g)) for g in (at_edge, at_node))
    for edge in one.arch.edges:
        np.testing.assert_allclose(a[edge], b[edge], atol=1e-12)


def test_a_wrong_term_does_not_agree():
    table = made("nrr/fig2", samples=9)
    wrong = table.assign(apart=table["apart"] + 1e-6, counted=table["counted"] + 1)
    assert not any(papers.find("nrr/fig2").within(wrong).values())


# ---- MHS §6: gates in stages --------------------------------------------------------------------


def deep(hidden=6):
    base = nr.tasks.contextual(contexts=3, items=4)
    arch, data = nr.tasks.common_and_all_but_one(base)
    edges = {f"{v}_shared": (v, "shared") for v in arch.inputs}
    edges |= {f"shared_{v}": ("shared", v) for v in arch.hidden}
    edges |= {f"{v}_y": (v, "y") for v in arch.hidden}
    inputs = {v: arch.sizes[v] for v in arch.inputs}
    sizes = inputs | dict.fromkeys(("shared", *arch.hidden), hidden) | {"y": arch.sizes["y"]}
    return nr.Architecture(sizes, edges), data


@pytest.mark.parametrize("opens", [17, 60])
def test_stages_are_those_of_single_runs(opens):
    """Nothing before `begins`, then the common pathway alone, then all; also off the grid."""
    arch, data = deep()
    at = np.arange(0, 41, 5)
    how = {"seeds": 2, "scale": 0.3, "learning_rate": 0.1}
    key = jax.random.key(4)
    loss, outputs = depth.staged_runs(arch, data, at=at, begins=7, opens=opens, key=key, **how)
    assert loss.shape == (2, 9) and outputs.shape == (2, 9, 12, data.y["y"].shape[1])
    net = nr.GDLN(arch)
    for i, seed in enumerate(jax.random.split(key, 2)):
        weights = net.init(seed, 0.3)
        shut = depth.closed(data, arch)
        first = nr.train(net, weights, shut, learning_rate=0.1, steps=min(opens, 40) - 7)
        runs = [first]
        if opens < 40:
            runs.append(nr.train(net, first.final, data, learning_rate=0.1, steps=40 - opens))
        whole = nr.join(*runs).loss
        np.testing.assert_allclose(loss[i], whole[np.maximum(at - 7, 0)], rtol=1e-6)
        for v in ("not1", "not2", "not3"):  # closed pathways do not learn
            np.testing.assert_array_equal(first.final[f"{v}_y"], weights[f"{v}_y"])


def test_stages_out_of_order_are_an_error():
    arch, data = deep(2)
    with says("out of order", got="begins at epoch 9", wanted="begins < opens", fix="opens=12000"):
        depth.staged_runs(arch, data, at=np.arange(3), begins=9, opens=9, key=0, learning_rate=0.1)


@pytest.mark.slow
def test_figure_6_has_both_relns(tmp_path):
    small = {"hidden": 8, "steps": 60, "every": 20, "seeds": 2, "begins": 10, "opens": 30}
    small |= {"scale": 0.3}
    table = made("mhs/fig6", **small)
    assert table["staged"].shape == table["gated"].shape == (2, 4)
    assert (table["staged"][:, 1] < table["staged"][:, 0]).all()
    ids = {row["id"] for row in read_record(table).agreement}
    for part in ("loss", "over-runs", "outputs", "spread", "profiles"):
        assert {f"{part}-staged", f"{part}-gated"} <= ids
    assert papers.find("mhs/fig6").publish(table, tmp_path).png.stat().st_size > 10_000


# ---- MHS Fig. 3: lesions ------------------------------------------------------------------------


def test_a_lesion_is_a_silenced_pathway():
    base = nr.tasks.contextual(contexts=3, items=4)
    arch, data = nr.tasks.common_and_all_but_one(base, 6)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), 0.3)
    alone = [fig3._alone(net, weights, data, v) for v in arch.hidden]
    table = xarray.Dataset(
        {
            "outputs": (("seed", "pathway", "output", "sample"), np.array([alone])),
            "y": (("output", "sample"), data.y["y"].T),
        }
    )
    found = fig3.unbalanced(table, (0.0, 1.0, 1.5))[0]
    zero = nr.dataset.zero_loss(data)
    for k, v in enumerate(arch.hidden):
        on = np.asarray(data.gates.get(v, np.ones(data.n_samples)), float)
        for j, factor in enumerate((0.0, 1.0, 1.5)):
            loss = float(net.loss(weights, data.gated({**data.gates, v: factor * on})))
            assert found[k, j] == pytest.approx(loss / zero, rel=1e-9)


def test_every_figure_of_the_papers_is_there():
    shown = {name.split("/")[1] for name in papers.names() if name.startswith("mhs/")}
    assert {f"fig{n}" for n in range(1, 10)} <= shown
    shown = {name.split("/")[1] for name in papers.names() if name.startswith("nrr/")}
    assert {f"fig{n}" for n in range(1, 11)} <= shown
    assert Path(papers.__file__).is_file()
