"""Tasks for recurrent networks: statistics, targets and gatings against their definitions."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks
from tests.test_errors import refuses


def steps_of(data):
    """The inputs as an array (N, T, d)."""
    return np.stack([np.asarray(data.x[f"x{t + 1}"]) for t in range(len(data.x))], axis=1)


def moments(data, node="y"):
    """Σ^{y x_t} (T, outputs, inputs) and the covariance of all inputs, with their means."""
    x, y = steps_of(data), np.asarray(data.y[node])
    flat = x.reshape(len(x), -1)
    return np.einsum("no,nti->toi", y, x) / len(x), flat.T @ flat / len(x), flat.mean(axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_a_teacher_has_the_statistics_of_its_modes(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs, steps = rng.integers(1, 7, 3).tolist()
    modes = rng.integers(1, min(inputs, outputs) + 1)
    c, decay = rng.uniform(0.5, 3, modes), rng.uniform(-1.2, 1.2, modes)
    data = tasks.sequence_teacher(
        inputs, outputs, steps, strengths=c, decays=decay, readout="all", key=seed
    )
    for end in range(1, steps + 1):
        yx, xx, mean = moments(data, f"y{end}")
        np.testing.assert_allclose(xx, np.eye(steps * inputs), atol=1e-12)
        np.testing.assert_allclose(mean, 0, atol=1e-12)
        last = yx[end - 1]
        for t in range(steps):
            parts = np.abs(c * decay ** (end - 1 - t)) if t < end else np.zeros(modes)
            found = np.linalg.svd(yx[t], compute_uv=False)[:modes]
            np.testing.assert_allclose(found, np.sort(parts)[::-1], atol=1e-10)
            for product in (yx[t].T @ last, yx[t] @ last.T):  # one basis per end for all steps
                np.testing.assert_allclose(product, product.T, atol=1e-10)
    alone = tasks.sequence_teacher(inputs, outputs, steps, strengths=c, decays=decay, key=seed)
    np.testing.assert_allclose(alone.y["y"], data.y[f"y{steps}"])


def test_a_linear_recurrent_network_can_be_the_teacher():
    """W_h with the decays as eigenvalues has the loss 0 on its task."""
    c, decay = np.array([2.0, 1.0, -0.5]), np.array([0.9, 0.5, -0.7])
    data = tasks.sequence_teacher(4, 3, 5, strengths=c, decays=decay, readout=(2, 5), key=3)
    arch = nr.Architecture.recurrent(4, 3, 3, steps=5, readout=(2, 5))
    u, s, vt = np.linalg.svd(moments(data, "y5")[0][-1])  # |c| falls, so do these
    weights = {"Wx": vt[:3], "Wh": np.diag(decay), "Wy": u * s}
    assert float(nr.GDLN(arch).loss(weights, data)) < 1e-20


def test_integration_sums():
    rng = np.random.default_rng(0)
    for keep in (1.0, *rng.uniform(-1, 1, 2)):
        data = tasks.integration(3, 4, readout=(2, 4), keep=keep, samples=50, key=1)
        x = steps_of(data)
        np.testing.assert_allclose(data.y["y2"], keep * x[:, 0] + x[:, 1])
        np.testing.assert_allclose(
            data.y["y4"], sum(keep ** (3 - t) * x[:, t] for t in range(4)), atol=1e-12
        )


@pytest.mark.parametrize("distractors", [False, True])
def test_a_delayed_report_depends_on_one_step(distractors):
    data = tasks.delayed_report(2, 5, shown=2, distractors=distractors)
    yx, xx, mean = moments(data)
    for t in range(5):
        np.testing.assert_allclose(yx[t], np.eye(2) * (t == 1), atol=1e-14)
    seen = np.ones(10) if distractors else np.repeat([0, 1, 0, 0, 0], 2)
    np.testing.assert_allclose(xx, np.diag(seen), atol=1e-14)
    np.testing.assert_allclose(mean, 0, atol=1e-14)


def test_the_state_before_the_first_step_is_read_through_the_recurrent_weights():
    rng = np.random.default_rng(5)
    x, y, h = rng.normal(size=(6, 3, 2)), rng.normal(size=(6, 1)), rng.normal(size=(6, 4))
    net = nr.GDLN(nr.Architecture.recurrent(2, 4, 1, steps=3, initial=True))
    w = {name: rng.normal(size=shape) for name, shape in net.arch.shapes.items()}
    for initial in (h, h[0]):
        state = np.broadcast_to(initial, h.shape)
        for t in range(3):
            state = state @ w["Wh"].T + x[:, t] @ w["Wx"].T
        loss = net.loss(w, tasks.sequences(x, y, initial=initial))
        assert float(loss) == pytest.approx(((y - state @ w["Wy"].T) ** 2).sum() / 12)
    for wrong in (h[:5], np.ones(()), h[None]):
        with refuses("initial"):
            _ = tasks.sequences(x, y, initial=wrong)


@pytest.mark.parametrize("samples", [None, 20])
def test_cued_accumulation_sums_the_channel_of_the_cue(samples):
    data = tasks.cued_accumulation(3, 4, cue=0.7, cue_steps=2, samples=samples, key=5)
    x, cue = steps_of(data), np.asarray(data.labels["cue"])
    np.testing.assert_allclose(
        data.y["y"][:, 0], [x[n, :, cue[n] - 1].sum() for n in range(len(x))]
    )
    for t in range(4):
        told = 0.7 * np.eye(3)[cue - 1] * (t < 2)
        np.testing.assert_array_equal(x[:, t, 3:], told)
    assert np.bincount(cue)[1:].tolist() == [len(x) // 3] * 3
    if samples is None:
        for c in (1, 2, 3):
            seen = x[cue == c, :, :3].reshape(-1, 12)
            np.testing.assert_allclose(seen.T @ seen / len(seen), np.eye(12), atol=1e-14)
            np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-14)


def test_drawn_samples_tend_to_the_same_statistics():
    exact, drawn = (
        tasks.sequence_teacher(3, 2, 3, (2, 1), (0.9, 0.3), samples=n, key=2)
        for n in (None, 100_000)
    )
    np.testing.assert_allclose(moments(drawn)[1], moments(exact)[1], atol=0.02)
    np.testing.assert_allclose(moments(drawn)[0], moments(exact)[0], atol=0.05)


def test_pathways_are_recurrent_networks_of_their_own():
    """The output of gated pathways, against a loop over time for each of them."""
    rng = np.random.default_rng(4)
    base = tasks.cued_accumulation(2, 4, samples=6, key=0)
    masks = {"a": base.mask(cue=1), "b": rng.normal(size=(12, 4)), "c": None}
    arch, data = tasks.recurrent_pathways(base, masks, hidden=5, leak=0.3)
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(1), scale=0.5)
    x, out = steps_of(base), np.zeros((12, 1))
    for name, mask in masks.items():
        gate = np.broadcast_to(
            np.ones((12, 1)) if mask is None else np.reshape(mask, (12, -1)), (12, 4)
        )
        wx, wh, wy = (np.asarray(weights[f"{name}_{w}"]) for w in ("Wx", "Wh", "Wy"))
        h = np.zeros((12, 5))
        for t in range(4):
            h = gate[:, t, None] * (x[:, t] @ wx.T + h @ wh.T + 0.3 * h)
        out += h @ wy.T
    np.testing.assert_allclose(net(weights, data)["y"], out, rtol=1e-5, atol=1e-5)


def test_one_pathway_per_cue_solves_what_a_common_one_cannot():
    base = tasks.cued_accumulation(2, 3)
    arch, data = tasks.pathway_per_cue(base, hidden=1)
    ways = {
        f"cue{c}_{name}": np.array(value)
        for c in (1, 2)
        for name, value in {"Wx": [np.eye(4)[c - 1]], "Wh": [[1.0]], "Wy": [[1.0]]}.items()
    }
    assert float(nr.GDLN(arch).loss(ways, data)) < 1e-20
    arch, data = tasks.common_pathway(base, hidden=1)
    x = steps_of(data).reshape(data.n_samples, -1)
    left = data.y["y"] - x @ np.linalg.lstsq(x, data.y["y"], rcond=None)[0]
    half = {"common_Wx": [[0.5, 0.5, 0, 0]], "common_Wh": [[1.0]], "common_Wy": [[1.0]]}
    half = {name: np.array(value) for name, value in half.items()}
    assert float(nr.GDLN(arch).loss(half, data)) == pytest.approx((left**2).mean() / 2)
    assert (left**2).mean() == pytest.approx(1.5)


def test_arrays_fit_a_recurrent_architecture():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(7, 4, 3)), rng.normal(size=(7, 2, 2))
    data = tasks.sequences(x, y, readout=(4, 2), labels={"item": np.arange(7)})
    net = nr.GDLN(nr.Architecture.recurrent(3, 5, 2, steps=4, readout=(4, 2)))
    assert set(data.y) == set(net.arch.outputs)
    assert np.isfinite(net.loss(net.init(jax.random.key(0), scale=0.1), data))
    np.testing.assert_array_equal(steps_of(data), x)


def test_what_does_not_fit_is_named():
    x, y = np.ones((5, 3, 2)), np.ones((5, 1))
    base = tasks.cued_accumulation(2, 3)
    with refuses("x must"):
        tasks.sequences(x[:, 0], y)
    with refuses("y must"):
        tasks.sequences(x, y, readout="all")
    with refuses("y must"):
        tasks.sequences(x, y[1:])
    with refuses("readout"):
        tasks.sequences(x, y, readout=(4,))
    with refuses("decays"):
        tasks.sequence_teacher(strengths=(1,), decays=(1, 2))
    with refuses("strengths"):
        tasks.sequence_teacher(1, 1)
    with refuses("shown"):
        tasks.delayed_report(steps=2, shown=3)
    with refuses("cue_steps"):
        tasks.cued_accumulation(steps=2, cue_steps=3)
    with refuses("masks"):
        tasks.recurrent_pathways(base, {})
    with refuses("masks"):
        tasks.recurrent_pathways(base, {"a": np.ones(3)})
    with refuses("data"):
        tasks.common_pathway(tasks.xor())
    with refuses("cue"):
        tasks.pathway_per_cue(tasks.integration())
