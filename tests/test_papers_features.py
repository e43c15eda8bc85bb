"""Features of images: the residual network against loops, files of features, tasks of features."""

import importlib.util
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace import tasks
from papers.nrr.bounded import Batch
from papers.nrr.features import LAYERS, convolved, layer_shapes, read_features, residual_features
from papers.nrr.image_routing import image_routing
from papers.nrr.routing import _of_images
from tests.test_errors import refuses
from tests.test_errors import says as said


def says(what, got="", wanted="", fix=""):
    return said(what, got=got, wanted=wanted, fix=fix)


def weights(path, **changed):
    """A file of random weights of the residual network."""
    rng = np.random.default_rng(0)
    arrays = {
        "readout": rng.normal(size=(64, 10)), "readout_bias": rng.normal(size=10),
        "mean": np.array([0.5, 0.4, 0.3]), "spread": np.array([0.2, 0.25, 0.3]),
        "about": np.array(json.dumps({"seed": 3, "accuracy": 0.1})),
    }  # fmt: skip
    for k, (low, high) in enumerate(layer_shapes()):
        arrays[f"kernel{k}"] = rng.normal(size=(3, 3, low, high)) * np.sqrt(1 / (9 * low))
        arrays[f"bias{k}"] = rng.normal(size=high) / 5
    np.savez(path, **{k: v for k, v in (arrays | changed).items() if v is not None})
    return path


def by_loops(x, kernel, stride):
    """A convolution of one image (height, width, channels), as its definition says."""
    height, width, _ = x.shape
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    out = np.zeros((height // stride, width // stride, kernel.shape[3]))
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            part = padded[row * stride : row * stride + 3, column * stride : column * stride + 3]
            out[row, column] = np.einsum("abc,abcd->d", part, kernel)
    return out


def test_a_convolution_is_its_definition():
    rng = np.random.default_rng(1)
    x, kernel = rng.normal(size=(6, 8, 2)), rng.normal(size=(3, 3, 2, 5))
    for stride in (1, 2):
        found = convolved(jnp.asarray(x)[None], kernel, stride)[0]
        # zeros stand around the image, so that a stride of two begins at its first pixel
        np.testing.assert_allclose(found, by_loops(x, kernel, stride), atol=1e-6)


def test_features_and_classes_are_those_of_resnet20_by_loops(tmp_path):
    network = residual_features(weights(tmp_path / "w.npz"))
    assert LAYERS == 19 and network.about["seed"] == 3
    image = np.random.default_rng(2).random((1, 3072)).astype(np.float32)
    x = (image.reshape(3, 32, 32).transpose(1, 2, 0) - network.mean) / network.spread
    layer = lambda k, x, stride=1: by_loops(x, network.kernels[k], stride) + network.biases[k]
    relu = lambda x: np.maximum(x, 0)
    x, k = relu(layer(0, x)), 1
    for stage, channels in enumerate((16, 32, 64)):
        for block in range(3):
            halved = stage > 0 and block == 0
            inner = layer(k + 1, relu(layer(k, x, 2 if halved else 1)))
            past = x
            if halved:  # every second pixel, new channels of zeros on both sides
                past = np.zeros_like(inner)
                past[..., channels // 4 : -channels // 4] = x[::2, ::2]
            x, k = relu(inner + past), k + 2
        if stage == 1:
            means = x.reshape(4, 4, 4, 4, 32).mean(axis=(1, 3))
            wanted = means.transpose(2, 0, 1).reshape(-1)
    found = np.asarray(network(image))
    assert found.shape == (1, 512)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-3, atol=1e-4)
    answers = x.mean(axis=(0, 1)) @ network.readout + network.readout_bias
    assert network.classes(image).tolist() == [answers.argmax()]


def test_many_images_are_those_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("papers.nrr.features.ROWS", 2)
    network = residual_features(weights(tmp_path / "w.npz"))
    images = np.random.default_rng(3).random((3, 3072)).astype(np.float32)
    each = np.concatenate([np.asarray(network(one[None])) for one in images])
    np.testing.assert_allclose(network(images), each, rtol=1e-4, atol=1e-5)


def test_weights_of_another_network_are_told(tmp_path):
    with refuses("path"):
        residual_features(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("PK no zip")
    with refuses("path"):
        residual_features(tmp_path / "text.npz")
    with refuses("w"):
        residual_features(weights(tmp_path / "w.npz", bias4=None))
    wide = np.zeros((3, 3, 16, 17))
    with refuses("w"):
        residual_features(weights(tmp_path / "w.npz", kernel2=wide))
    network = residual_features(weights(tmp_path / "w.npz"))
    with says("for other images", got="(5, 64)", wanted="(N, 3072)", fix="cifar10"):
        network(np.zeros((5, 64), np.float32))
    with refuses("images"):
        network._in_parts(network._answers, [1.0, [2.0, 3.0]])
    with refuses("features"):
        image_routing(tasks.images("digits"), 4, 2, features=network)


OWN = {
    "train": np.arange(12.0).reshape(4, 3), "labels": np.array([0, 1, 0, 1]),
    "test": np.ones((2, 3)), "test_labels": np.array([1, 0]),
}  # fmt: skip


def test_own_features_are_read_and_permuted(tmp_path):
    np.savez(tmp_path / "own.npz", **OWN)
    read = read_features(tmp_path / "own.npz")
    assert read.name == "own" and read.shape == (3,) and read.classes == 2
    task = image_routing(read, 2, 1)
    x, _ = task.samples(1, 0)
    np.testing.assert_allclose(x, (OWN["train"] - OWN["train"].mean(0))[:, task.inputs[1]])
    with says("not the shape of an image", got="(3,)"):
        image_routing(read, 2, 1, inputs="rotated")


@pytest.mark.parametrize(
    ("changed", "got", "wanted"),
    [
        ({"test": np.ones((2, 5))}, "3 features of each training image, 5 of", "as many features"),
        ({"labels": np.array([0, 1])}, "labels of shape (2,)", "4 whole numbers from 0 on"),
        ({"test_labels": np.array([0.5, 1])}, "float64", "2 whole numbers"),
        ({"labels": np.array([0, -1, 0, 1])}, "labels of shape", "from 0 on"),
        ({"train": np.full((4, 3), np.nan)}, "not all finite", "finite numbers"),
        ({"train": np.ones(4)}, "train of shape (4,)", "one row per image"),
        ({"test": None}, "test missing", "the arrays train, labels, test, test_labels"),
    ],
)
def test_features_that_do_not_fit_are_told(tmp_path, changed, got, wanted):
    arrays = {k: v for k, v in (OWN | changed).items() if v is not None}
    np.savez(tmp_path / "own.npz", **arrays)
    with says("own.npz does not hold what is needed", got=got, wanted=wanted, fix="numpy.savez"):
        read_features(tmp_path / "own.npz")


# ---- tasks of features --------------------------------------------------------------------------


def squared(images):
    """Features that no linear map of pixels gives: squares of sums over pairs of rows."""
    rows = jnp.asarray(images).reshape(len(images), 4, 16)
    return rows.sum(axis=2) ** 2 / 16


@pytest.mark.parametrize("centre", [True, False])
def test_domains_show_features_of_transformed_images(centre):
    base = tasks.images("digits").take(90, 20)
    task = image_routing(base, 3, 2, inputs="rotated", features=squared, centre=centre)
    assert task.pixels == 4 and not task.alike
    for i in range(3):
        for test, pixels in ((False, base.train), (True, base.test)):
            table = task.inputs[i]
            through = lambda a, table=table: np.where(table < 0, 0, a[:, table])
            wanted = np.asarray(squared(through(pixels)), float)
            middle = np.asarray(squared(through(base.train)), float).mean(axis=0)
            found, _ = task.samples(i, 0, test=test)
            np.testing.assert_allclose(found, wanted - centre * middle, atol=1e-4)
    moments = task.moments()
    x, y = task.samples(2, 0)
    z = x @ moments.basis[2].T
    np.testing.assert_allclose(z.T @ z / len(z), np.diag(moments.variance[2]), atol=1e-3)
    named = y[:, task.outputs[0]]
    np.testing.assert_allclose(named.T @ z / len(z), moments.cross[2], atol=1e-4)
    largest = max(np.linalg.eigvalsh(a.T @ a / len(a))[-1] for a in map(task.shown, range(3)))
    assert task.largest_variance == pytest.approx(largest, rel=1e-5)


def test_cross_entropy_on_features_is_what_the_samples_say():
    """With all outputs and one batch of all images; label maps only rename rows of decoders."""
    base = tasks.images("digits").take(60, 20)
    how = {"inputs": "rotated", "outputs": "random", "features": squared, "key": 4}
    task = image_routing(base, 3, 2, **how)
    system = _of_images(task, task.routes, 1e9, float, 1.0, None, "float32")
    draw = lambda i, *shape: jax.random.normal(jax.random.key(i), shape) / 2
    w = {"encoders": draw(0, 3, 5, 4), "hidden": draw(1, 5, 5), "decoders": draw(2, 3, 10, 5)}

    samples = [(i, j, *task.samples(i, j)) for i, j in np.argwhere(task.routes).tolist()]

    def lost(w):
        each = []
        for i, j, x, y in samples:
            maps = w["decoders"][j][np.argsort(task.outputs[j])]  # rows by their new names
            answers = x @ w["encoders"][i].T @ w["hidden"].T @ maps.T
            chosen = jnp.sum(answers * (y > 0), axis=1)
            each.append(jnp.mean(jax.nn.logsumexp(answers, axis=1) - chosen))
        return jnp.mean(jnp.asarray(each))

    loss, gradient = jax.jit(jax.value_and_grad(lost))(w)
    batch = Batch(jnp.arange(60), jnp.ones(60))
    shown, (seen, change) = jax.jit(
        lambda w: (system.loss(w), system.loss_and_step(w, -1.0, batch))
    )(w)
    assert float(shown) == pytest.approx(float(loss), rel=1e-5)
    assert float(seen) == pytest.approx(float(loss), rel=1e-5)
    for name, wanted in gradient.items():
        np.testing.assert_allclose(change[name], wanted, atol=1e-4 * np.abs(wanted).max())


def test_features_must_be_rows_of_finite_numbers():
    base = tasks.images("digits")
    with refuses("features"):
        image_routing(base, 4, 2, features=lambda x: x[:, 0])
    with refuses("features"):
        image_routing(base, 4, 2, features=lambda x: x + np.nan)
    with refuses("features"):
        image_routing(base, 4, 2, features="resnet")


# ---- the tool -----------------------------------------------------------------------------------


@pytest.fixture
def tool(monkeypatch):
    folder = Path(__file__).parent.parent / "tools"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("train_features", folder / "train_features.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("origin", None)


@pytest.mark.slow
def test_the_folded_network_is_the_trained_one(tool, tmp_path, monkeypatch):
    monkeypatch.setattr("papers.nrr.features.BLOCKS", 1)  # 7 convolutions, for speed
    monkeypatch.setattr("papers.nrr.features.LAYERS", 7)
    state = tool.begin(jax.random.key(0))
    rng = np.random.default_rng(5)
    pixels = rng.integers(256, size=(2, 32, 32, 3)).astype(np.uint8)
    gains = state["weights"]["gain"]
    state["weights"] |= {
        "readout": jnp.asarray(rng.normal(size=(64, 10))),
        "gain": [rng.uniform(0.5, 1.5, g.shape) for g in gains],
        "shift": [rng.normal(size=g.shape) / 5 for g in gains],
    }
    x = (pixels / 255 - np.array(tool.MEAN)) / np.array(tool.SPREAD)
    wanted, (means, variances) = tool.answers(state["weights"], jnp.asarray(x), "float32")
    found = tool.folded(state | {"means": means, "variances": variances}, {"seed": 1})
    tool.write(found, tmp_path / "w.npz")
    network = residual_features(tmp_path / "w.npz")
    flat = (pixels / 255).transpose(0, 3, 1, 2).reshape(2, 3072).astype(np.float32)
    np.testing.assert_allclose(network._answers(jnp.asarray(flat)), wanted, rtol=2e-3, atol=2e-3)
    assert network.about == {"seed": 1}


def test_crops_and_flips_are_pieces_of_the_image(tool):
    rng = np.random.default_rng(6)
    image = rng.integers(256, size=(1, 40, 40, 3)).astype(np.uint8)
    pieces = {
        np.ascontiguousarray(flipped).tobytes()
        for row in range(9)
        for column in range(9)
        for flipped in (
            image[0, row : row + 32, column : column + 32],
            image[0, row : row + 32, column : column + 32][:, ::-1],
        )
    }
    seen = tool.shown(jnp.asarray(image), jnp.zeros(40, int), jax.random.key(0))
    back = np.rint((np.asarray(seen) * tool.SPREAD + tool.MEAN) * 255).astype(np.uint8)
    found = {one.tobytes() for one in back}
    assert found <= pieces and len(found) > 25
