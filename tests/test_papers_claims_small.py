"""Every measurement of the ledger on a small version of the real thing, against something else."""

import jax
import numpy as np
import pytest

import evidence
import neuralrace as nr
from evidence import Basis, Tables, Verdict
from evidence.measure import FEWEST_SEEDS
from papers import find
from papers.mhs import contextual as places_of
from papers.mhs import depth as two_layers
from papers.mhs.authors import WIDTH, authors_runs, masks
from papers.mhs.claims import (
    contextual,
    depth,
    gatings,
    measurements,
    networks,
    xor,
)
from papers.nrr.claims import contexts, reuse, routing
from papers.nrr.claims import xor as nrr_xor
from papers.talk.claims import balance, saddles, speed, structure
from papers.talk.claims import depth as talk_depth

TINY = {"seeds": 2, "steps": 60, "hidden": 24}


@pytest.fixture
def large_start(monkeypatch):
    """From larger weights, so that something is learned in few steps."""
    usual = networks.case
    monkeypatch.setattr(
        networks, "case", lambda settings, *rest: usual(settings | {"init": 1.5}, *rest)
    )


# ---- the authors' own network -------------------------------------------------------------------


@pytest.mark.usefixtures("large_start")
@pytest.mark.parametrize("kind", ["double", "both"])
def test_the_authors_network_by_plain_descent(kind):
    """Against NumPy: the common pathway sees the targets alone, the others what it leaves."""
    this = networks.section_4(seeds=2, steps=6, hidden=24)
    run = authors_runs(this, jax.random.key(3), 2, kind)[1]
    data, gates = this.data, masks(this.data, kind)
    item = np.asarray(data.x["item"])
    x = {"common": np.hstack([item, data.x["context"]])}
    x |= {name: item * on[:, None] for name, on in gates.items()}
    keys = jax.random.split(jax.random.split(jax.random.key(3), 2)[1], 2 * len(x))
    keys = keys.reshape(len(x), 2)
    w = {}
    for k, (name, seen) in enumerate(x.items()):
        shapes = (seen.shape[1], WIDTH), (WIDTH, 60)
        w[name] = [
            this.scale * np.asarray(jax.random.normal(keys[k][e], shape, np.float32), float)
            for e, shape in enumerate(shapes)
        ]
    y, losses = np.asarray(data.y["y"]), []
    for step in range(7):
        out = {name: x[name] @ a @ b for name, (a, b) in w.items()}
        left = y - out.pop("common")
        rest = left - sum(out.values())
        if step % 2 == 0:
            losses.append(0.5 * (rest**2).sum() / len(y))
        for name, (a, b) in w.items():
            error = left if name == "common" else rest
            w[name] = [
                a + this.step * x[name].T @ error @ b.T,
                b + this.step * (x[name] @ a).T @ error,
            ]
    assert run.loss == pytest.approx(losses, rel=1e-4)
    assert run.loss[-1] < 0.99 * run.loss[0]
    assert set(run.values["maps"]) == set(x)
    alone = rest + sum(out[name] for name in out if name.startswith("only"))
    assert run.values["silenced"][-1] == pytest.approx(0.5 * (alone**2).sum() / len(y), rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("large_start")
def test_the_authors_network_is_compared_with_relu_networks():
    found = networks.own_network(**TINY)
    assert {len(values) for values in found.values()} == {2}
    assert found["floor"][0] == pytest.approx(found["floor"][1], rel=0.05)  # the same two seeds
    assert all(0 < share < 5 for share in found["single"])
    assert all(rise != 0 for rise in found["rise"])


# ---- gates --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("large_start")
def test_shares_of_gates_by_hand():
    """Against patterns that are counted neuron by neuron from the final weights."""
    sizes = {"seeds": 2, "steps": 600, "hidden": 24}
    found = networks.gates_over_time(**sizes)
    this = networks.section_4(**sizes)
    data = nr.tasks.contextual(joined=True, **this.task)
    x, context = np.asarray(data.x["x"]), np.asarray(data.labels["context"])
    for seed, run in enumerate(networks._relu(this, 500, {"weights": True})):
        read, write = (np.asarray(w, float) for w in run.final.values())
        size = np.linalg.norm(read, axis=1) * np.linalg.norm(write, axis=0)
        total = specific = part = exact = 0.0
        for w, strength in zip(read, size, strict=True):
            if strength < 0.01 * size.max():
                continue
            on = x @ w > 1e-3 * np.linalg.norm(w) * np.linalg.norm(x, axis=1)
            each = [on[context == c] for c in (1, 2, 3)]
            total += strength
            specific += strength * (sum(some.any() for some in each) == 1)
            part += strength * any(some.any() and not some.all() for some in each)
            exact += strength * (all(some.all() or not some.any() for some in each) and on.any())
        assert found["specific"][seed] == pytest.approx(specific / total)
        assert found["part"][seed] == pytest.approx(part / total)
        assert found["exact"][seed] == pytest.approx(exact / total)
    for one, two, everywhere in zip(found["one"], found["two"], found["all"], strict=True):
        assert one + two + everywhere == pytest.approx(1)
    assert np.all(np.array(found["admitted"]) >= np.array(found["exact"]) - 1e-12)


@pytest.mark.slow
def test_what_a_network_does_is_explained():
    found = networks.explained(seeds=2, steps=700, hidden=24, neurons=60)
    assert {len(values) for values in found.values()} == {2}
    for name in ("kept", "sliding"):
        assert all(0 <= share <= 1 for share in found[name])
    assert all(0 < gap < 1 for name in ("wide", "floor") for gap in found[name])


# ---- gatings ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("large_start")
def test_a_rival_with_the_same_gates_is_at_the_same_distance(monkeypatch):
    monkeypatch.setattr(networks, "RIVALS", ("reln", "single"))
    found = networks.rivals(**TINY)
    assert found["reln"] == [1.0, 1.0]
    assert all(ratio != 1.0 for ratio in found["single"])


@pytest.mark.slow
@pytest.mark.usefixtures("large_start")
@pytest.mark.parametrize(
    "function", [networks.other_gating, networks.competition, networks.mixed_gating]
)
def test_gatings_are_trained_on_every_seed(function):
    found = function(seeds=2, steps=200, hidden=24)
    assert {len(values) for values in found.values()} == {2}
    values = [v for name in ("gap", "single", "authors") for v in found.get(name, ())]
    assert values and all(v > 0 for v in values)


@pytest.mark.slow
def test_copied_gates_are_exact_and_constant_ones_are_not():
    found = measurements.copied_and_frozen(seeds=2, steps=120)
    assert max(found["copied"]) < 1e-10
    assert min(found["frozen_xor"]) > 0 and min(found["floor_xor"]) > 0
    assert {len(values) for values in found.values()} == {2}


def test_shapes_are_compared_up_to_rotation_and_size():
    rng = np.random.default_rng(0)
    places, other = rng.normal(size=(2, 24, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1, -1])
    assert places_of.disparity(places, 3 * places @ turn + 5) == pytest.approx(0, abs=1e-12)
    assert 0.5 < places_of.disparity(places, other) <= 1
    from scipy.spatial import procrustes

    assert places_of.disparity(places, other) == pytest.approx(procrustes(places, other)[2])


def test_positions_in_all_dimensions_do_not_depend_on_the_order_of_axes():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(24, 3))
    hidden = np.linalg.qr(points - points.mean(axis=0))[0] * [2.0, 1.05, 1.0]
    swapped = hidden * [1.0, 0.95, 1.05]  # the second and third axis change places
    places = [places_of.positions(h @ h.T) for h in (hidden, swapped)]
    np.testing.assert_allclose(
        np.linalg.norm(places[0][:, None] - places[0], axis=-1),
        np.linalg.norm(hidden[:, None] - hidden, axis=-1),
        atol=1e-6,
    )
    first_two = [p[:, -2:] for p in places]
    assert places_of.disparity(*places) < 0.01
    assert places_of.disparity(*first_two) > 0.1


# ---- the whole ledger, small --------------------------------------------------------------------

DESCENT = {"hidden": 24, "init": 1.5, "steps": 120, "every": 20, "seeds": 2}
SMALL = {
    "mhs/fig2": {"deltas": (0.4, 1.2), "shown": (0.4, 1.2), "seeds": 2},
    "mhs/fig4": DESCENT | {"shown": (20, 60)},
    "mhs/fig5": DESCENT | {"hidden": (120, 120, 120)},
    "mhs/fig6": {"hidden": 24, "scale": 0.1, "steps": 400, "every": 20, "seeds": 2, "at_once": 2}
    | {"begins": 20, "opens": 100},
    "mhs/fig8": DESCENT,
    "mhs/fig9": DESCENT | {"most": 6},
    "nrr/fig3": {"seeds": 2, "hidden": 24},
    "nrr/fig4": {"M": 3, "K": 2, "hidden": 24, "seeds": 2, "steps": 400, "learning_rate": 0.1},
    "nrr/fig5": {"M": 5, "P": (1, 25), "K": (1, 2), "hidden": 8, "seeds": 2, "steps": 500},
    "nrr/fig6": {"M": 3, "K": 2, "hidden": 24, "scales": (0.2, 1.0, 2.5), "seeds": 2},
}
LEARNED = {"seeds": 2, "steps": 10_000, "hidden": 48}
"""Enough steps for every loss to fall to 5 %."""

SIZES = {
    **dict.fromkeys(("rivals", "other_gating", "mixed_gating"), LEARNED),
    "copied_and_frozen": {"seeds": 2, "steps": 60},
    "nonlinear_boundary": {"deltas": (0.4, 1.4), "seeds": 1},
    "interlacing": {"trials": 20},
    "growth_on_residual": {"items": 4},
    "census": {},
    "closed_forms_trained": {"seeds": 2, "steps": 40},
    "explained": {"seeds": 2, "steps": 700, "hidden": 24, "neurons": 60},
}
ABSENT = {
    two_layers.MEASURES[name].id
    for name in ("outputs, staged", "outputs, gated", "outputs, twice the slope", "plateaus")
}
"""Measures that have no number at these small sizes: a plateau takes 500 epochs."""

MODULES = {
    "mhs": (xor, contextual, gatings, depth),
    "nrr": (nrr_xor, routing, reuse, contexts),
    "talk": (balance, saddles, speed, structure, talk_depth),
}


def small_tables():
    """Tables that compute every figure and measurement at a small size."""
    tables, made = Tables(quick=True), Tables._made

    def smaller(name, changes):
        few = {k: v for k, v in changes.items() if k in ("rule", "init", "seed", "key")}
        if name == "mhs/fig5":
            few |= {k: (120, 120) if k == "hidden" else v for k, v in changes.items()}
        kept = {k: v for k, v in SMALL.get(name, {}).items() if k in find(name).settings}
        return made(tables, name, kept | few)

    def once(function, **settings):
        sizes = settings | SIZES.get(function.__name__, TINY if "hidden" in settings else {})
        return Tables.once(tables, function, **sizes)

    tables._made, tables.once = smaller, once
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("paper", MODULES)
def test_every_claim_is_measured_on_small_versions_of_the_real_thing(paper, monkeypatch):
    monkeypatch.setattr(evidence.tables, "DRAWS", 3)
    tables = small_tables()
    for claim in (claim for module in MODULES[paper] for claim in module.CLAIMS):
        entry = claim.measure(tables)
        missing = {m.id for m, f in entry.pairs if np.isnan(f.value)}
        assert missing <= ABSENT, claim.name
        settled = [m for m in claim.measures if not m.otherwise and m.rests is not Basis.THEOREM]
        few = [
            f for m, f in entry.pairs if m in settled and (f.seeds or FEWEST_SEEDS) < FEWEST_SEEDS
        ]
        if few:  # on two seeds nothing is settled in its favour
            assert entry.verdict in (Verdict.UNDECIDED, Verdict.FAILS), claim.name
