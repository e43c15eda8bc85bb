"""NRR Fig. 5 and 6: a pathway alone stands for all, and how the numbers are read off the data."""

import json

import numpy as np
import pytest
import xarray

import neuralrace as nr
from papers import find
from papers.nrr import fig5, fig6
from papers.nrr.routes import make_routes, map_of_all_routes
from papers.record import Record, stamped
from tests.test_errors import refuses


def with_settings(name: str, variables: dict, coords: dict, **changes) -> xarray.Dataset:
    """Made-up data of a figure, with its settings."""
    figure = find(name)
    values = figure.resolve(changes=changes)
    settings = {k: {"value": v, "default": v, "about": "", "source": ""} for k, v in values.items()}
    record = Record(
        name=name, title="", states="", settings=settings, quick=True, versions={}, seconds=0.0
    )
    return stamped(xarray.Dataset(variables, coords), record)


def test_one_pathway_of_P_routes_stands_for_all():
    """The velocity of the whole network with P = 4 of M = 4 is that of each part, times P/M²."""
    M, P, rng = 4, 4, np.random.default_rng(0)
    arch, data = nr.tasks.routing_pathways(nr.tasks.routing(M, M)[0], P=P, hidden=3)
    part = make_routes(2, 2, hidden=3)
    small = {
        e: rng.normal(size=(part.net.arch.sizes[t], part.net.arch.sizes[s]))
        for e, (s, t) in part.net.arch.edges.items()
    }
    own = part.net.velocity(small, part.trained)
    whole = {edge: small[in_group(edge)] for edge in arch.edges}
    for edge, velocity in nr.GDLN(arch).velocity(whole, data).items():
        wanted = np.asarray(own[in_group(edge)]) * P / M**2
        np.testing.assert_allclose(velocity, wanted, atol=1e-12)


def in_group(edge: str) -> str:
    """`in3_2_1` of the whole network as `in1` of a pathway with two domains."""
    if edge.startswith("hidden"):
        return "hidden"
    end, number = ("in", edge[2]) if edge.startswith("in") else ("out", edge[3])
    return f"{end}{(int(number) - 1) % 2 + 1}"


def test_strength_and_map_against_the_outputs():
    routes = make_routes(2, 2, hidden=5)
    rng = np.random.default_rng(1)
    weights = {
        e: rng.normal(size=(routes.net.arch.sizes[t], routes.net.arch.sizes[s]))
        for e, (s, t) in routes.net.arch.edges.items()
    }
    whole = map_of_all_routes(weights)
    said = routes.net(weights, routes.trained)
    label = routes.trained.labels
    for n in range(routes.trained.n_samples):
        i, j, item = label["input"][n] - 1, label["output"][n] - 1, label["item"][n] - 1
        block = whole[7 * j : 7 * j + 7, 4 * i + item]
        np.testing.assert_allclose(said[f"y{j + 1}"][n], block, atol=1e-12)
    u, s, vt = np.linalg.svd(routes.target)
    blocks = whole.reshape(2, 7, 2, 4).mean(axis=(0, 2))
    assert float(routes.strength(weights)) == pytest.approx(u[:, 0] @ blocks @ vt[0] / s[0])
    perfect = {"in1": np.eye(5, 4), "in2": np.eye(5, 4), "hidden": np.eye(5)}
    perfect |= {f"out{j}": np.hstack([routes.target, np.zeros((7, 1))]) for j in (1, 2)}
    assert float(routes.strength(perfect)) == pytest.approx(1.0)
    assert float(routes.errors(perfect).trained_share) == pytest.approx(0.0, abs=1e-12)
    assert float(routes.shared(perfect)) == pytest.approx(1.0)
    assert np.isnan(routes.shared(perfect, apart=True))


def test_time_to_a_level_is_interpolated():
    assert fig5.time_to(np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.25, 0.75])) == 2.0
    assert fig5.time_to(np.array([1.0, 2.0]), np.array([0.6, 0.7])) == 1.0
    assert np.isnan(fig5.time_to(np.array([0.0, 1.0]), np.array([0.0, 0.4])))


def test_a_seed_that_still_moves_has_not_converged():
    grid = ("K", "seed")
    table = with_settings(
        "nrr/fig5",
        {
            "trained": (grid, [[1e-6, 1e-6, 1e-4]]),
            "drift": (grid, [[1e-4, 1e-2, 1e-4]]),
            "untrained": (grid, [[0.5, 0.009, 0.011]]),
        },
        {"K": [3]},
    )
    assert fig5.converged(table).tolist() == [[True, False, False]]
    assert fig5.generalising(table) == pytest.approx([1 / 3])


def test_the_crossing_is_interpolated_in_the_logarithm():
    errors = np.array([[1e-4], [1e-2], [1.0]])
    table = with_settings(
        "nrr/fig6", {"untrained": (("scale", "seed"), errors)}, {"scale": [0.0, 1.0, 2.0]}
    )
    assert fig6.crossing(table, 1e-3) == pytest.approx(0.5)
    assert fig6.crossing(table, 0.1) == pytest.approx(1.5)
    assert np.isnan(fig6.crossing(table, 10.0))


def test_a_loss_in_stages_rests_and_an_exponential_one_does_not():
    time = np.linspace(0, 1, 201)
    stages = np.where(time < 0.3, 1.0, np.where(time < 0.6, 0.25, 0.0))
    assert fig6.resting(stages) == pytest.approx(0.5, abs=0.07)
    assert fig6.resting(np.exp(-20 * time)) == 0.0


def test_the_quick_figures_take_lists_from_the_command_line():
    values = find("nrr/fig5").resolve(quick=True, changes={"K": "1,2", "P": "1"})
    assert (values["K"], values["P"]) == ((1, 2), (1,))
    assert json.dumps(find("nrr/fig6").resolve(quick=True))


@pytest.mark.slow
def test_a_tiny_figure_6_draws_its_panels():
    import matplotlib.pyplot as plt

    figure = find("nrr/fig6")
    changes = {"M": 2, "K": 1, "hidden": 8, "scales": (0.2, 1.0, 2.5), "seeds": 1, "steps": 20}
    table = figure.run(figure.resolve(changes=changes))
    assert table["similarity"].shape == (3, 8, 8)
    assert table["outputs"].shape == (3, 14, 8)
    np.testing.assert_allclose(
        table["loss"][:, :, -1], table["trained"], rtol=1e-9
    )  # the last loss is the final error
    picture = figure.draw(table)
    assert len(picture.axes) == 9  # (a), (b), three of (c) and (d) each, and their colour bar
    label = picture.axes[8].get_xlabel()
    assert label == "entry / 99 % quantile of its map; framed in (d): not trained"
    letters = [ax.get_title().split()[0] for ax in picture.axes[:8]]
    assert letters == ["(a)", "(b)", "(c1)", "(c2)", "(c3)", "(d1)", "(d2)", "(d3)"]
    losses, errors = picture.axes[:2]
    assert errors.get_ylabel() == "error / error of zero output"
    assert len({str(line._dash_pattern) for line in losses.lines}) == 3  # grey tells them apart
    plt.close(picture)


def test_figure_5_draws_and_judges_what_it_is_given():
    import matplotlib.pyplot as plt

    time = np.linspace(0, 10, 50)
    rise = np.stack([1 / (1 + np.exp(5 - time)), 1 / (1 + np.exp(2 - time))])
    grid = ("K", "seed")
    variables = {
        "time": time,
        "theory": (("P", "time"), rise),
        "decoupled": (("P", "time"), rise),
        "random": (("P", "seed", "time"), np.stack([rise, rise], axis=1)),
        "trained": (grid, np.full((3, 2), 1e-7)),
        "untrained": (grid, [[1.0, 1.0], [0.02, 0.001], [1e-5, 1e-6]]),
        "drift": (grid, np.zeros((3, 2))),
        "steps": ("K", [10, 20, 20]),
        "paths": (("P", "layer"), [[1, 1], [4, 2]]),
    }
    coords = {"P": [1, 4], "K": [1, 3, 4]}
    table = with_settings("nrr/fig5", variables, coords)
    within = fig5.FIGURE.within
    assert all(within(table).values()) and "generalising" in within(table)
    assert "generalising" not in within(table.isel(K=slice(1)))  # no K/M of 0.4 or above
    picture = fig5.draw(table)
    above, below = picture.axes[3:]  # after the three schemes of (a)
    assert [ax.get_title()[:4] for ax in picture.axes[:3]] == ["(a1)", "(a2)", "(a3)"]
    assert "smaller drawn here" in below.get_legend_handles_labels()[1]
    assert [text.get_text() for text in below.texts] == ["0%", "50%", "100%"]
    assert {"P = 1", "P = 4"} <= set(above.get_legend_handles_labels()[1])
    plt.close(picture)
    turned = {name: table[name].copy(data=table[name][::-1]) for name in ("theory", "random")}
    late = table["untrained"].copy(data=[[1.0, 1.0], [1.0, 1.0], [1.0, 1e-6]])
    wrong = table.assign(turned | {"untrained": late, "drift": table["drift"] + 1})
    assert {id for id, held in within(wrong).items() if held} == {"paths"}


def test_values_of_P_and_K_that_do_not_fit_M():
    figure = find("nrr/fig5")
    with refuses("P"):
        figure.run(figure.resolve(quick=True, changes={"P": (1, 2, 16)}))
    with refuses("K"):
        figure.run(figure.resolve(quick=True, changes={"K": (2, 6)}))
