"""Combinations that are held out, and who learns them: modules do, a map that adds up cannot."""

import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks
from tests.test_errors import refuses


@pytest.mark.parametrize(("items", "contexts", "roles", "share"), [(6, 3, 2, 0.25), (4, 2, 4, 0.3)])
def test_what_is_held_out(items, contexts, roles, share):
    data = tasks.combinations(items, contexts, roles, features=3, held_out=share, key=2)
    new = np.asarray(data.labels["held_out"]).astype(bool)
    assert new.sum() == round(share * items * contexts * roles)
    labels = np.array([data.labels[n] for n in ("item", "context", "role")]).T
    for pair in ([0, 1], [0, 2], [1, 2]):  # every pair is seen
        every = {tuple(row) for row in labels[:, pair].tolist()}
        assert {tuple(row) for row in labels[~new][:, pair].tolist()} == every
    seen, unseen = tasks.split_held_out(data)
    assert (seen.n_samples, unseen.n_samples) == ((~new).sum(), new.sum())
    for n, (i, c, r) in enumerate(labels):  # one role of an item in a context tells of the others
        part = data.y["y"][n].reshape(roles, 3)
        assert not np.delete(part, r - 1, axis=0).any() and (np.abs(part[r - 1]) == 1).all()
        alike = (labels[:, 0] == i) & (labels[:, 1] == c)
        same = data.y["y"][alike].reshape(-1, roles, 3).sum(axis=1)
        assert (same == part[r - 1]).all()


def test_modules_generalise_and_a_linear_map_does_not():
    data = tasks.combinations(features=3, key=1)
    arch, gated = tasks.modular(data, hidden=12)
    seen, new = tasks.split_held_out(gated)
    none = 0.5 * (new.y["y"] ** 2).sum(axis=1).mean()
    net = nr.GDLN(arch)
    run = nr.flow(net, net.init(0, scale=1e-3), seen, times=[0, 600], evaluate={"new": new})
    assert run.loss[-1] < 1e-4 * run.loss[0]
    assert run.values["new"]["loss"][-1] < 0.02 * none
    dense, unseen = tasks.split_held_out(data)
    x, y = (np.hstack([*d.values()]) for d in (dense.x, dense.y))
    others = np.hstack([*unseen.x.values()])
    wrong = others @ np.linalg.lstsq(x, y)[0] - unseen.y["y"]
    assert 0.5 * (wrong**2).sum(axis=1).mean() > 0.3 * none
    free, plain = tasks.modular(data, hidden=12, gated=False)
    learned = nr.LearnedGates(
        free, [n for n in free.hidden if n != "shared"], kind="sigmoid",
        labels={"context": (1, 2, 3), "role": (1, 2)},
    )  # fmt: skip
    assert plain.gates == {} and learned.loss(learned.init(0, 0.1), plain) > 0


def test_bad_input():
    with refuses("held_out"):
        tasks.combinations(held_out=0.9)
    with refuses("held_out"):
        tasks.split_held_out(tasks.xor())
    with refuses("modular"):
        tasks.modular(tasks.xor())
    with refuses("roles"):
        tasks.combinations(roles=1)
