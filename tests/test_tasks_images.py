"""Images, their transforms, label maps and routes: against brute force and by hand."""

import gzip
import json

import numpy as np
import pytest

from neuralrace import tasks
from papers.nrr.image_routing import image_routing
from papers.nrr.transforms import label_maps, permutations, rotations
from tests.test_errors import refuses
from tests.test_errors import says as said


def says(what, got="", wanted="", fix=""):
    return said(what, got=got, wanted=wanted, fix=fix)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def small_mnist(tmp_path, monkeypatch):
    """Four idx files of a few random images, with their own checksums."""
    import hashlib
    import importlib

    module = importlib.import_module("neuralrace.tasks.images")
    rng = np.random.default_rng(0)
    parts = [
        rng.integers(256, size=(20, 3, 4)),
        np.arange(20) % 10,
        rng.integers(256, size=(10, 3, 4)),
        np.arange(10),
    ]
    sums = {}
    for name, part in zip(module.MNIST, parts, strict=True):
        (tmp_path / name).write_bytes(idx(part))
        sums[name] = hashlib.md5(idx(part)).hexdigest()
    monkeypatch.setattr(module, "MNIST", sums)
    return tmp_path, parts


# ---- files --------------------------------------------------------------------------------------


def test_idx_files_are_read_plain_and_compressed(small_mnist):
    folder, (train, labels, test, test_labels) = small_mnist
    first = tasks.images("mnist", folder)
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    for read in (first, tasks.images("mnist", folder)):
        np.testing.assert_allclose(read.train, train.reshape(20, 12) / 255, atol=1e-7)
        np.testing.assert_allclose(read.test, test.reshape(10, 12) / 255, atol=1e-7)
        np.testing.assert_array_equal(read.labels, labels)
        np.testing.assert_array_equal(read.test_labels, test_labels)
        assert read.shape == (3, 4)


def test_the_folder_may_come_from_the_environment(small_mnist, monkeypatch):
    folder, _ = small_mnist
    inner = folder / "mnist"
    inner.mkdir()
    for file in [f for f in folder.iterdir() if f.is_file()]:
        file.rename(inner / file.name)
    monkeypatch.setenv("NEURALRACE_DATA", str(folder))
    assert tasks.images("mnist").train.shape == (20, 12)


def test_missing_truncated_and_changed_files_are_told(small_mnist, monkeypatch):
    folder, _ = small_mnist
    path = folder / "t10k-images-idx3-ubyte"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with says("t10k-images-idx3-ubyte cannot be read", got="131 bytes", wanted="136 bytes"):
        tasks.images("mnist", folder)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with says("the checksum of", fix="get the file again"):
        tasks.images("mnist", folder)
    path.write_bytes(gzip.compress(whole)[:-9])
    with says("t10k-images-idx3-ubyte cannot be read", got="EOFError"):
        tasks.images("mnist", folder)
    packed = bytearray(gzip.compress(whole))
    packed[10] = 7  # a kind of block that deflate does not have
    path.write_bytes(bytes(packed))
    with refuses("data"):
        tasks.images("mnist", folder)
    path.write_bytes(b"")
    with says("cannot be read", got="begins with b''", wanted="an idx file"):
        tasks.images("mnist", folder)
    path.write_bytes(b"<html>")
    with says("cannot be read", got="begins with b'<htm'", wanted="an idx file"):
        tasks.images("mnist", folder)
    path.unlink()
    with refuses("mnist"):
        tasks.images("mnist", folder)
    monkeypatch.delenv("NEURALRACE_DATA", raising=False)
    with refuses("name"):
        tasks.images("cifar10")
    with refuses("mnits"):
        tasks.images("mnits")


N = 20
"""Images in a file of the small CIFAR-10 of the tests."""


def test_cifar_comes_the_same_from_bytes_and_from_sheets(tmp_path, monkeypatch):
    import hashlib
    import importlib

    from PIL import Image

    module = importlib.import_module("neuralrace.tasks.images")
    rng = np.random.default_rng(1)
    names = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"]
    one = rng.integers(256, size=(N, 3072), dtype=np.uint8)
    labels = rng.integers(10, size=N)
    rows = np.concatenate([labels.astype(np.uint8)[:, None], one], axis=1)
    binary, sheets = tmp_path / "binary", tmp_path / "sheets"
    binary.mkdir(), sheets.mkdir()
    picture = one.reshape(N, 3, 1024).transpose(0, 2, 1)
    Image.fromarray(picture).save(sheets / "test_batch.png", compress_level=0)
    (binary / "test_batch.bin").write_bytes(rows.tobytes())
    for name in names:
        (binary / f"{name}.bin").symlink_to(binary / "test_batch.bin")
        (sheets / f"{name}.png").symlink_to(sheets / "test_batch.png")
    (sheets / "train_labels.json").write_text(json.dumps(labels.tolist() * 5))
    (sheets / "test_labels.json").write_text(json.dumps(labels.tolist()))
    five = hashlib.md5(rows.tobytes() * 5).hexdigest()
    sums = {"train": five, "test": hashlib.md5(rows.tobytes()).hexdigest()}
    monkeypatch.setattr(module, "CIFAR", sums)
    monkeypatch.setattr(module, "SHEET", N)
    for folder in (binary, sheets):
        read = tasks.images("cifar10", folder)
        np.testing.assert_array_equal(np.rint(read.test * 255), one)
        np.testing.assert_array_equal(read.labels[N : 2 * N], labels)
        assert read.train.shape == (5 * N, 3072) and read.shape == (3, 32, 32)
    whole = (sheets / "test_batch.png").read_bytes()
    changed = picture.copy()
    changed[3, 4, 0] ^= 1
    Image.fromarray(changed).save(sheets / "test_batch.png", compress_level=0)
    with refuses("cifar10"):
        tasks.images("cifar10", sheets)
    Image.fromarray(picture[:, :1000]).save(sheets / "test_batch.png")
    with says(".png cannot be read", got="shape (20, 1000, 3)", wanted="shape (20, 1024, 3)"):
        tasks.images("cifar10", sheets)
    (sheets / "test_batch.png").write_bytes(whole[: len(whole) // 2])
    with says(".png cannot be read", wanted="a PNG sheet", fix="truncated"):
        tasks.images("cifar10", sheets)
    (sheets / "test_batch.png").write_text("no picture")
    with says(".png cannot be read", got="UnidentifiedImageError", wanted="a PNG sheet"):
        tasks.images("cifar10", sheets)
    (sheets / "test_batch.png").write_bytes(whole)
    (sheets / "test_labels.json").write_text("[1, 2]")
    with says("test_labels.json cannot be read", got="shape (2,)", wanted="20 classes"):
        tasks.images("cifar10", sheets)
    (sheets / "test_labels.json").write_text("[1, 2")
    with says("test_labels.json cannot be read", got="no JSON", wanted="20 classes"):
        tasks.images("cifar10", sheets)
    (sheets / "test_labels.json").unlink()
    with refuses("cifar10"):
        tasks.images("cifar10", sheets)
    (binary / "test_batch.bin").write_bytes(rows.tobytes()[:-1])
    with says("cannot be read", got="61459 bytes", wanted="61460 bytes"):
        tasks.images("cifar10", binary)


def test_some_images_are_drawn_without_repeats():
    whole = tasks.images("digits")
    some = whole.take(100, 50, key=3)
    assert len(np.unique(some.train, axis=0)) == 100 and some.labels.shape == (100,)
    place = {row.tobytes(): label for row, label in zip(whole.train, whole.labels, strict=True)}
    assert [place[row.tobytes()] for row in some.train] == some.labels.tolist()
    with refuses("test"):
        whole.take(test=361)


# ---- transforms ---------------------------------------------------------------------------------


def test_rotations_by_quarters_are_those_of_numpy():
    image = np.arange(25.0)
    tables = rotations(4, (5, 5), span=360.0)
    for quarter, table in enumerate(tables):
        np.testing.assert_array_equal(
            image[table].reshape(5, 5), np.rot90(image.reshape(5, 5), quarter)
        )


def test_rotations_leave_the_corners_empty_and_treat_channels_alike():
    table = rotations(4, (2, 8, 8), span=180.0)[1].reshape(2, 8, 8)
    assert (table[:, 0, 0] == -1).all() and (table[:, 3:5, 3:5] >= 0).all()
    np.testing.assert_array_equal(np.where(table[0] < 0, -1, table[0] + 64), table[1])


def test_permutations_are_different_and_not_more_than_there_are():
    found = permutations(24, 4, key=1)
    assert len(np.unique(found, axis=0)) == 24
    with refuses("M"):
        permutations(25, 4)
    with refuses("M"):
        label_maps(7, 3)


def test_the_authors_label_maps_never_move_the_first_classes():
    maps = label_maps(100)
    assert (maps[:, :5] == np.arange(5)).all() and len(np.unique(maps, axis=0)) == 100
    assert (label_maps(100, kind="random")[:, :5] != np.arange(5)).any()


# ---- routes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("M", "K"), [(10, 1), (10, 3), (40, 8), (7, 7)])
def test_random_routes_are_regular_and_less_regular_than_circulant_ones(M, K):
    routes = tasks.random_routes(M, K, key=2)
    assert (routes.sum(axis=0) == K).all() and (routes.sum(axis=1) == K).all()
    if 1 < K < M:
        assert tasks.route_ratio(routes) < tasks.route_ratio(tasks.circulant_routes(M, K))
        assert (routes != tasks.random_routes(M, K, key=3)).any()


def test_the_ratio_of_singular_values():
    blocks = np.kron(np.eye(2), np.ones((3, 3))).astype(bool)
    assert tasks.route_ratio(blocks) == pytest.approx(1)
    assert tasks.route_ratio(np.ones((4, 4), bool)) == pytest.approx(0)
    K, M = 3, 12  # of a circulant, the Fourier transform of a row
    row = np.abs(np.fft.fft(np.arange(M) < K))
    assert tasks.route_ratio(tasks.circulant_routes(M, K)) == pytest.approx(np.sort(row)[-2] / K)


# ---- the task -----------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", ["permuted", "rotated"])
@pytest.mark.parametrize("fold", [True, False])
def test_moments_are_those_of_the_images(inputs, fold):
    task = image_routing(tasks.images("digits").take(300), M=4, K=2, inputs=inputs)
    found = task.moments(fold=fold)
    assert len(found.variance) == (1 if fold and inputs == "permuted" else 4)
    for i in range(4):
        x, y = task.samples(i, 0)
        k = min(i, len(found.basis) - 1)
        if fold and inputs == "permuted":  # names of pixels are folded into the encoders
            x = x[:, np.argsort(task.inputs[i])]
        z = x @ found.basis[k].T
        np.testing.assert_allclose(z.T @ z / 300, np.diag(found.variance[k]), atol=1e-6)
        np.testing.assert_allclose(y.T @ z / 300, found.cross[k], atol=1e-6)
        assert (z**2).sum() == pytest.approx((x**2).sum())  # nothing is lost
    assert found.power == pytest.approx((y**2).sum(axis=1).mean())


def test_white_inputs_have_one_mode_fewer_than_classes():
    task = image_routing(tasks.images("digits"), M=3, K=2)
    white = task.moments(whiten=True)
    modes = white.class_modes()
    assert modes.cross.shape == (1, 10, 9) and modes.pixels == 64
    x, y = task.samples(0, 0)
    z = x[:, np.argsort(task.inputs[0])] @ modes.basis[0].T
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(9), atol=1e-6)
    rest = y - x @ np.linalg.lstsq(x, y, rcond=1e-6)[0]  # the modes do all that regression can
    assert (rest**2).sum() / len(x) == pytest.approx(white.power - (modes.cross**2).sum())
    with refuses("whiten"):
        task.moments().class_modes()


def test_label_maps_rename_the_classes_of_an_output():
    task = image_routing(M=3, K=1, outputs="random", key=5)
    plain, renamed = task.samples(0, 0, test=True)[1], task.samples(0, 2, test=True)[1]
    first = np.argsort(task.outputs[0])
    np.testing.assert_array_equal(
        task.outputs[2][first[plain.argmax(axis=1)]], renamed.argmax(axis=1)
    )


def test_bad_tasks_are_told():
    base = tasks.images("digits").take(50, 10)
    with refuses("M"):
        image_routing(base, M=4, K=5)
    with refuses("M"):
        tasks.random_routes(4, 5)
    with refuses("routes"):
        image_routing(base, M=4, routes=np.ones((3, 4), bool))
    with refuses("inputs"):
        image_routing(base, inputs="twisted")
    with refuses("inputs"):
        image_routing(base, M=4, K=2, inputs=np.zeros((2, 64), int))
    with says("a label map must be a permutation"):
        image_routing(base, M=4, K=2, outputs=np.zeros((4, 10), int))
    with refuses("base"):
        image_routing(np.zeros((3, 3)), M=4, K=2)
