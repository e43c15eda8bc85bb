"""Routing networks on images: moments against images, folded permutations, the race, the clock."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralrace import NeuralRaceError, tasks
from papers.nrr.bounded import Batch
from papers.nrr.image_routing import image_routing
from papers.nrr.routed import RoutedMoments, accuracies
from papers.nrr.routing import (
    _of_images,
    drawn,
    initial_shapes,
    initial_stds,
    routing_system,
    train_routing,
)
from tests.test_errors import refuses

M, K, H = 4, 2, 6


def small_task(**how):
    return image_routing(tasks.images("digits").take(200, 60), M=M, K=K, **how)


def system_of(task, **how):
    moments = task.moments(**how)
    arrays = {
        name: jnp.asarray(getattr(moments, name))
        for name in ("variance", "cross", "power", "test_labels")
    }
    test = jnp.asarray(moments.test)
    routes = jnp.asarray(task.routes, float)
    return moments, RoutedMoments(routes=routes, test=test, horizon=1e9, **arrays)


def weights_of(size, key=0, scale=0.3):
    draw = lambda i, *shape: (
        scale * jax.random.normal(jax.random.fold_in(jax.random.key(key), i), shape)
    )
    return {"encoders": draw(0, M, H, size), "hidden": draw(1, H, H), "decoders": draw(2, M, 10, H)}


def loss_of_images(task):
    """The mean over images and trained routes, one by one, permutations and all."""
    routes = [tuple(map(int, r)) for r in np.argwhere(task.routes)]
    samples = [tuple(map(jnp.asarray, task.samples(i, j))) for i, j in routes]

    def loss(w):
        each = []
        for (i, j), (x, y) in zip(routes, samples, strict=True):
            answers = x @ w["encoders"][i].T @ w["hidden"].T @ w["decoders"][j].T
            each.append(jnp.mean(jnp.sum((y - answers) ** 2, axis=1)) / 2)
        return jnp.mean(jnp.asarray(each))

    return loss


def in_moments(task, moments, w):
    """Weights on pixels as weights on the coordinates of the moments, permutations folded in."""
    basis = np.asarray(moments.basis)
    encoders = []
    for i in range(M):
        pixels = np.asarray(w["encoders"][i])
        if len(basis) == 1:
            pixels = pixels[:, np.argsort(task.inputs[i])]
        encoders.append(pixels @ basis[min(i, len(basis) - 1)].T)
    decoders = [np.asarray(w["decoders"][j])[task.outputs[j]] for j in range(M)]
    return w | {
        "encoders": jnp.asarray(np.stack(encoders)),
        "decoders": jnp.asarray(np.stack(decoders)),
    }


@pytest.mark.parametrize("inputs", ["permuted", "rotated"])
def test_gradients_from_moments_are_those_of_the_images(inputs):
    task = small_task(inputs=inputs, outputs="random")
    moments, system = system_of(task)
    w = weights_of(64)
    loss, gradient = jax.value_and_grad(loss_of_images(task))(w)
    seen, step = system.loss_and_step(in_moments(task, moments, w), -1.0)
    assert float(seen) == pytest.approx(float(loss), rel=1e-8)
    assert float(system.loss(in_moments(task, moments, w))) == pytest.approx(float(loss), rel=1e-8)
    wanted = in_moments(task, moments, gradient)
    for name in wanted:
        scale = np.abs(wanted[name]).max()
        np.testing.assert_allclose(step[name], wanted[name], atol=1e-6 * scale)


@pytest.mark.parametrize("inputs", ["permuted", "rotated"])
def test_a_run_on_images_is_a_run_on_moments(inputs):
    """Permuted pixels and classes give the unpermuted run up to names, over 200 steps."""
    task = small_task(inputs=inputs, outputs="random")
    moments, system = system_of(task)
    w = weights_of(64, scale=0.2)
    small = in_moments(task, moments, w)
    descend = jax.jit(jax.value_and_grad(loss_of_images(task)))
    step = jax.jit(lambda s: system.loss_and_step(s, 0.2))
    losses = []
    for _ in range(200):
        loss, gradient = descend(w)
        w = jax.tree.map(lambda a, g: a - 0.2 * g, w, gradient)
        other, change = step(small)
        small = jax.tree.map(jnp.add, small, change)
        losses.append((float(loss), float(other)))
    images, statistics = np.array(losses).T
    assert images[-1] < 0.9 * images[0]  # it has learned something
    np.testing.assert_allclose(statistics, images, rtol=1e-5)
    wanted = in_moments(task, moments, w)
    np.testing.assert_allclose(small["hidden"], wanted["hidden"], atol=1e-5)
    np.testing.assert_allclose(small["decoders"], wanted["decoders"], atol=1e-5)


def test_accuracy_is_the_share_of_correct_answers_on_test_images():
    task = small_task(inputs="rotated", outputs="random")
    moments, system = system_of(task)
    w = weights_of(64)
    found = np.asarray(accuracies(in_moments(task, moments, w), system.test, system.test_labels))
    for i, j in [(0, 0), (1, 3), (3, 2)]:
        x, y = task.samples(i, j, test=True)
        answers = x @ w["encoders"][i].T @ w["hidden"].T @ w["decoders"][j].T
        right = np.asarray(answers).argmax(axis=1) == y.argmax(axis=1)
        assert float(found[i, j]) == pytest.approx(right.mean(), abs=1 / 60 + 1e-6)
    seen = system.observe(in_moments(task, moments, w) | {"time": 0.0})
    assert float(seen["trained"]) == pytest.approx(found[task.routes].mean(), abs=1e-6)
    assert float(seen["untrained"]) == pytest.approx(found[~task.routes].mean(), abs=1e-6)


def test_the_curvature_bounds_that_of_the_loss():
    task = small_task(inputs="rotated")
    moments, system = system_of(task)
    w = weights_of(moments.variance.shape[1], scale=0.5)
    state, curvature = w | {"probe": system.probe(w)}, jax.jit(lambda s: system.curvature(s))
    for _ in range(100):
        bound, state["probe"] = curvature(state)

    def outputs(w):  # √(n G_ij λ) F_j A_i: its Jacobian J has JᵀJ = the Gauss–Newton matrix
        maps = jnp.einsum("jch,hk,ikd->ijcd", w["decoders"], w["hidden"], w["encoders"])
        scale = system.routes[:, :, None] * system.variance[:, None] / jnp.sum(system.routes)
        return maps * jnp.sqrt(scale)[:, :, None]

    _, forward = jax.linearize(outputs, w)
    back = jax.linear_transpose(forward, w)
    vector, turn = jax.tree.map(jnp.ones_like, w), jax.jit(lambda v: back(forward(v))[0])
    for _ in range(200):
        vector = turn(vector)
        size = jnp.sqrt(sum(jnp.sum(v**2) for v in vector.values()))
        vector = jax.tree.map(lambda v, size=size: v / size, vector)
    assert size <= bound * 1.001 and bound < 5 * size


def test_steps_end_at_the_horizon_and_members_are_single_runs():
    task = small_task()
    moments = task.moments()
    routes = [tasks.circulant_routes(M, k) for k in (1, 3)]
    how = {"time": 20.0, "hidden": 8, "record_every": 5, "dtype": np.float64}
    many = train_routing(
        moments, routes=routes, axis=("K", [1, 3]), scale=[0.5, 1.0], seeds=2, key=7, **how
    )
    assert list(many.axes) == ["K", "scale", "seed"] and many.loss.shape[:3] == (2, 2, 2)
    np.testing.assert_allclose(many.values["elapsed"][..., -1], 20.0)
    one = train_routing(moments, routes=[routes[1]], scale=1.0, seeds=2, key=7, **how)
    n = one.loss.shape[-1]
    np.testing.assert_allclose(many.loss[1, 1][:, : n - 1], one.loss[0][:, :-1], rtol=1e-9)
    np.testing.assert_allclose(
        many.final["hidden"][1, 1], one.final["hidden"][0], rtol=1e-6, atol=1e-9
    )


def test_added_inputs_are_not_seen_and_change_nothing():
    """Sizes that are no multiple of eight, against steps of the moments as they are."""
    moments, system = system_of(small_task(outputs="random"))
    size = moments.variance.shape[-1]
    assert size % 8, "the task should need added inputs"
    run = train_routing(
        moments, time=3.0, largest_step=0.2, hidden=H, record_every=1, key=3, dtype=np.float64
    )
    assert run.final["encoders"].shape == (1, M, H, size)
    stds = initial_stds(64, size, H, 10, M=M, decoders="xavier")
    key = jax.random.split(jax.random.key(3), 1)[0]
    w = drawn(key, 0.1, stds, initial_shapes(64, size, H, 10, M=M), float)
    taken = np.diff(run.values["elapsed"][0])
    step = jax.jit(lambda w, rate: jax.tree.map(jnp.add, w, system.loss_and_step(w, rate)[1]))
    for rate in taken:
        w = step(w, rate)
    assert len(taken) >= 15 and np.abs(w["hidden"]).max() > 0
    for name in w:
        np.testing.assert_allclose(run.final[name][0], w[name], rtol=1e-8, atol=1e-12)
    right = accuracies(w, system.test, system.test_labels)
    trained = (np.asarray(right) * system.routes).sum() / system.routes.sum()
    assert float(run.values["trained"][0, -1]) == pytest.approx(float(trained), abs=1e-6)


def test_the_start_is_xaviers_or_the_authors():
    shapes = initial_shapes(784, 700, 128, 10, M=40)
    for decoders, fan in (("xavier", 138), ("authors", 10 * (128 + 40))):
        stds = initial_stds(784, 700, 128, 10, M=40, decoders=decoders)
        start = drawn(jax.random.key(0), 0.1, stds, shapes, float)
        assert float(start["encoders"].std()) == pytest.approx(0.1 * np.sqrt(2 / 912), rel=0.01)
        assert float(start["hidden"].std()) == pytest.approx(0.1 * np.sqrt(2 / 256), rel=0.02)
        assert float(start["decoders"].std()) == pytest.approx(0.1 * np.sqrt(2 / fan), rel=0.02)
        assert start["encoders"].shape == (40, 128, 700)


def test_the_class_modes_learn_what_all_white_pixels_learn():
    white = small_task().moments(whiten=True)
    how = {"time": 150.0, "hidden": 24, "seeds": 4, "scale": 0.3, "record_every": 10}
    whole = train_routing(white, **how)
    race = train_routing(white.class_modes(), **how)
    final = lambda run: float(run.loss[:, -1].mean())
    assert final(whole) < 0.6 * float(whole.loss[0, 0])
    assert final(race) == pytest.approx(final(whole), rel=0.05)


def images_system(task, **how):
    how = {"leak": 1.0, "sampled": None, "products": "float64"} | how
    return _of_images(task, task.routes, 1e9, np.dtype(float), **how)


def everything(task, n=None):
    n = len(task.images.train) if n is None else n
    return Batch(jnp.arange(n), jnp.ones(n))


@pytest.mark.parametrize(("inputs", "leak"), [("permuted", 1.0), ("rotated", 0.1)])
def test_cross_entropy_is_that_of_every_route_and_image(inputs, leak):
    task = small_task(inputs=inputs, outputs="random")
    system = images_system(task, leak=leak)
    routes = [tuple(map(int, r)) for r in np.argwhere(task.routes)]
    samples = [tuple(map(jnp.asarray, task.samples(i, j))) for i, j in routes]
    slope = lambda h: jnp.maximum(h, leak * h)

    def lost(w):
        total = 0.0
        for (i, j), (x, y) in zip(routes, samples, strict=True):
            hidden = slope(slope(x @ w["encoders"][i].T) @ w["hidden"].T)
            answers = jax.nn.log_softmax(hidden @ w["decoders"][j].T)
            total -= jnp.mean(jnp.take_along_axis(answers, y.argmax(axis=1)[:, None], 1))
        return total / len(routes)

    w = weights_of(64)
    folded = dict(w)
    if inputs == "permuted":
        order = [np.argsort(table) for table in task.inputs]
        folded["encoders"] = jnp.stack([w["encoders"][i][:, order[i]] for i in range(M)])
    folded["decoders"] = jnp.stack([w["decoders"][j][task.outputs[j]] for j in range(M)])
    loss, gradient = jax.value_and_grad(lost)(w)
    seen, step = system.loss_and_step(folded, -1.0, everything(task))
    assert float(seen) == pytest.approx(float(loss), rel=1e-5)
    np.testing.assert_allclose(step["hidden"], gradient["hidden"], atol=1e-5)
    wanted = [gradient["decoders"][j][task.outputs[j]] for j in range(M)]
    np.testing.assert_allclose(step["decoders"], jnp.stack(wanted), atol=1e-5)
    assert float(system.loss(folded)) == pytest.approx(float(loss), rel=1e-5)


def test_a_few_sampled_outputs_have_the_right_gradient_on_average():
    task = small_task(
        routes=np.array([[1, 1, 1, 0], [0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 1]], bool)
    )
    w = weights_of(64)
    order = np.random.default_rng(0)
    exact = images_system(task).loss_and_step(w, -1.0, everything(task, 50))[1]["decoders"]
    few = images_system(task, sampled=2)
    step = jax.jit(lambda index: few.loss_and_step(w, -1.0, Batch(index, jnp.ones(50)))[1])
    each = [step(jnp.asarray(order.permutation(50)))["decoders"] for _ in range(400)]
    spread = np.std(each, axis=0) / np.sqrt(400)
    assert (np.abs(np.mean(each, axis=0) - exact) <= 5 * spread + 1e-9).all()
    assert spread.max() > 1e-6


def test_the_curvature_of_images_bounds_that_of_their_loss():
    task = small_task()
    system = images_system(task)
    w = weights_of(64, scale=0.5)
    state, batch = w | {"probe": system.probe(w)}, everything(task)
    curvature = jax.jit(lambda state: system.curvature(state, batch))
    for _ in range(100):
        bound, state["probe"] = curvature(state)
    gradient = lambda w: {k: system.loss_and_step(w, -1.0, batch)[1][k] for k in w}
    vector = jax.tree.map(jnp.ones_like, w)
    turn = jax.jit(lambda v: jax.jvp(gradient, (w,), (v,))[1])
    for _ in range(100):
        vector = turn(vector)
        size = jnp.sqrt(sum(jnp.sum(v**2) for v in vector.values()))
        vector = jax.tree.map(lambda v, size=size: v / size, vector)
    assert size <= bound


@pytest.mark.slow
def test_the_authors_protocol_and_ours_end_alike():
    optax = pytest.importorskip("optax")
    task = small_task(inputs="rotated")
    how = {"time": 60.0, "hidden": 16, "scale": 0.5, "seeds": 2}
    ours = train_routing(task, batch_size=64, sampled=1, record_every=50, **how)
    theirs = train_routing(
        task, batch_size=8, sampled=None, optimizer=optax.sgd(0.01, momentum=0.9), steps=600,
        record_every=600, **how,
    )  # fmt: skip
    np.testing.assert_allclose(theirs.values["elapsed"][:, -1], 60.0, rtol=0.02)
    np.testing.assert_allclose(ours.loss[:, -1], theirs.loss[:, -1], atol=0.15)
    assert (ours.loss[:, -1] < 0.7 * ours.loss[:, 0]).all()


def test_bad_calls_are_told():
    moments = small_task().moments()
    with refuses("task"):
        train_routing(np.zeros(3), time=1.0)
    with refuses("batch_size"):
        train_routing(small_task(), time=1.0)
    with refuses("routes"):
        train_routing(moments, routes=[np.ones((3, 3), bool)], time=1.0)
    with refuses("routes"):
        train_routing(moments, routes=[moments.routes] * 2, axis=("K", [1]), time=1.0)
    with refuses("time"):
        train_routing(moments, time=0)


def test_the_loss_that_is_recorded_is_that_of_all_images():
    """1437 images, and weights that answer those after the first 1000 otherwise."""
    base = tasks.images("digits")
    later = replace(base, labels=np.where(np.arange(1437) < 1000, base.labels, 9 - base.labels))
    task = image_routing(later, M=2, K=1, inputs="same", outputs="same")
    system, w = images_system(task), weights_of(64)
    w = w | {"encoders": w["encoders"][:2], "decoders": w["decoders"][:2]}
    x = later.train - later.train.mean(axis=0)
    each = []
    for i, j in np.argwhere(task.routes):
        answers = x @ (w["decoders"][j] @ w["hidden"] @ w["encoders"][i]).T
        lost = np.log(np.exp(answers).sum(axis=1)) - answers[np.arange(1437), later.labels]
        each.append(lost)
    assert float(system.loss(w)) == pytest.approx(np.mean(each), rel=1e-5)
    assert abs(np.mean(each) - np.mean([lost[:1000] for lost in each])) > 1e-2


def test_an_optimizer_moves_weights_and_not_the_clock():
    optax = pytest.importorskip("optax")
    moments = small_task().moments()
    how = {"time": 2.0, "hidden": 8, "scale": 0.5, "seeds": 2, "record_every": 5, "steps": 1000}
    plain = train_routing(moments, optimizer=optax.sgd(0.1), **how)
    np.testing.assert_allclose(plain.values["elapsed"], [0.1 * plain.steps] * 2, rtol=1e-6)
    assert plain.steps[-1] == 20  # the first recorded step at which the time is over
    heavy = train_routing(moments, optimizer=optax.sgd(0.01, momentum=0.9), **how)
    np.testing.assert_allclose(heavy.values["elapsed"], [0.1 * heavy.steps] * 2, rtol=1e-6)
    wanted = {k: np.asarray(v[0], float) for k, v in plain.final.items()}
    system = routing_system(moments, dtype="float64")
    keys = jax.random.split(jax.random.key(0), 2)
    sizes = (64, moments.inputs_seen, 8, 10)
    shapes, stds = initial_shapes(*sizes, M=M), initial_stds(*sizes, M=M, decoders="xavier")
    state = drawn(keys[0], jnp.asarray(0.5, jnp.float32), stds, shapes, "float32")
    state = jax.tree.map(lambda a: a.astype(float), state)
    slope = jax.jit(jax.grad(lambda w: system.loss(w)))
    for _ in range(20):
        state = jax.tree.map(lambda w, g: w - 0.1 * g, state, slope(state))
    for name, value in wanted.items():
        np.testing.assert_allclose(value, state[name], atol=1e-5)
    for other in (optax.clip_by_global_norm(1.0), optax.adam(0.1)):
        with pytest.raises(NeuralRaceError) as caught:
            train_routing(moments, optimizer=other, **how)
        assert "optimizer" in str(caught.value)
