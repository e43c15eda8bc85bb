"""Linear convolutions as ties between positions, against a convolution in plain NumPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import neuralrace as nr
from tests.test_errors import refuses

KINDS = [(circular, pooled) for circular in (False, True) for pooled in (False, True)]


def convolved(kernel, readout, x):
    """y of inputs (N, P, C): a kernel (width, H, C) slides over them, `readout` (places, O, H)."""
    places, width = len(readout), len(kernel)
    around = np.concatenate([x, x[:, : width - 1]], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(around, width, axis=1)[:, :places]
    return np.einsum("poh,khc,npck->no", readout, kernel, windows)


def parts(arch, weights):
    """Kernel and readout of the plain network; the readout of every place if it is shared."""
    width = sum(name.startswith("K") for name in weights)
    kernel = np.stack([weights[f"K{k + 1}"] for k in range(width)])
    each = [weights.get(f"{h}_y", weights.get("Wy")) for h in arch.hidden]
    return kernel, np.stack(each)


def loss(arch, weights, x, y):
    return ((y - convolved(*parts(arch, weights), x)) ** 2).sum() / 2 / len(x)


def velocities(arch, weights, x, y):
    """−∂L/∂W by complex steps."""
    found = {}
    for name, w in weights.items():
        found[name] = np.zeros(w.shape)
        for at in np.ndindex(w.shape):
            moved = w.astype(complex)
            moved[at] += 1e-30j
            error = y - convolved(*parts(arch, {**weights, name: moved}), x)
            found[name][at] = -(error**2).sum().imag / 2 / len(x) / 1e-30
    return found


def dataset(x, y):
    return nr.Dataset({f"x{p + 1}": x[:, p] for p in range(x.shape[1])}, {"y": y})


@pytest.mark.parametrize(("circular", "pooled"), KINDS)
@pytest.mark.parametrize("width", [1, 3, 5])
def test_loss_and_velocity(circular, pooled, width):
    rng = np.random.default_rng(width)
    arch = nr.Architecture.convolution(2, 3, 2, 5, width, circular=circular, pooled=pooled)
    assert len(arch.hidden) == (5 if circular else 6 - width)
    x, y = rng.normal(size=(7, 5, 2)), rng.normal(size=(7, 2))
    weights = {name: rng.normal(size=shape) for name, shape in arch.shapes.items()}
    data, net = dataset(x, y), nr.GDLN(arch)
    assert float(net.loss(weights, data)) == pytest.approx(loss(arch, weights, x, y), rel=1e-12)
    by_paths = nr.path_statistics(arch, data).velocity(weights)
    for name, wanted in velocities(arch, weights, x, y).items():
        np.testing.assert_allclose(net.velocity(weights, data)[name], wanted, atol=1e-9)
        np.testing.assert_allclose(by_paths[name], wanted, atol=1e-9)


def teacher(rng, positions, channels, outputs, width, places, shared):
    """Two directions of channels, each with a kernel and weights of positions of its own."""
    v, u = (np.linalg.qr(rng.normal(size=(n, n)))[0][:, :2] for n in (channels, outputs))
    profile = rng.normal(size=(width, 2)) * np.array([2.0, 0.7])
    read = np.ones((places, 2)) if shared else rng.normal(size=(places, 2))
    kernel = np.einsum("km,cm->kmc", profile, v)
    x = np.sqrt(positions * channels) * np.eye(positions * channels)
    x = x.reshape(-1, positions, channels)
    return x, convolved(kernel, np.einsum("om,pm->pom", u, read), x)


@pytest.mark.parametrize(("circular", "pooled"), KINDS)
def test_blocks_are_directions_of_channels(circular, pooled):
    """Each block, from weights of its own, follows the full convolution's flow, by SciPy."""
    rng = np.random.default_rng(3)
    arch = nr.Architecture.convolution(4, 2, 2, 5, 3, circular=circular, pooled=pooled)
    x, y = teacher(rng, 5, 4, 2, 3, len(arch.hidden), pooled)
    data = dataset(x, y)
    race = nr.reduce(arch, data)
    assert race.is_decoupled
    assert race.is_exact
    assert len(race.blocks) == 2
    start = race.start(1e-2)
    times = np.linspace(0, 3, 7)
    run = race.solve(times=times, start=start, rtol=1e-11)
    names = list(arch.shapes)
    ends = np.cumsum([np.prod(arch.shapes[n]) for n in names])[:-1]

    def apart(flat):
        pieces = zip(names, np.split(flat, ends), strict=True)
        return {n: w.reshape(arch.shapes[n]) for n, w in pieces}

    def slope(_, flat):
        w = apart(flat)
        kernel, readout = parts(arch, w)
        error = y - convolved(kernel, readout, x)
        moved = {n: np.zeros_like(a) for n, a in w.items()}
        for p, h in enumerate(arch.hidden):
            for k in range(len(kernel)):
                seen = x[:, (p + k) % x.shape[1]]
                moved[f"K{k + 1}"] += readout[p].T @ error.T @ seen / len(x)
                out = "Wy" if pooled else f"{h}_y"
                moved[out] += error.T @ seen @ kernel[k].T / len(x)
        return np.concatenate([moved[n].ravel() for n in names])

    begun = race.weights(run, 0.0)
    first = np.concatenate([np.asarray(begun[n]).ravel() for n in names])
    flow = solve_ivp(slope, (0, 3), first, t_eval=times, rtol=1e-10, atol=1e-13, method="LSODA")
    truth = np.array([loss(arch, apart(w), x, y) for w in flow.y.T])
    assert truth[-1] < 0.5 * truth[0]
    np.testing.assert_allclose(run.loss, truth, atol=1e-7 * truth[0])


def test_a_teacher_without_common_channels_is_one_block():
    """Where every place of the kernel has directions of its own, no basis of channels is common."""
    rng = np.random.default_rng(4)
    arch = nr.Architecture.convolution(3, 3, 3, 4, 2)
    x = np.sqrt(12) * np.eye(12).reshape(12, 4, 3)
    y = convolved(rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 3, 3)), x)
    race = nr.reduce(arch, dataset(x, y))
    assert not race.is_decoupled
    assert len(race.blocks) == 1


def test_what_cannot_be_a_convolution():
    for change in ({"width": 5}, {"width": 0}, {"positions": 0}):
        with refuses(next(iter(change))):
            _ = nr.Architecture.convolution(
                **{"inputs": 1, "hidden": 1, "outputs": 1, "positions": 4} | change
            )
