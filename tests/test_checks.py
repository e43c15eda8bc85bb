"""Arguments are checked at the public door, in the package's own words; bugs are not hidden."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float, jaxtyped

import neuralrace as nr
from neuralrace import checks
from neuralrace.door import door
from neuralrace.types import Array, Key
from tests.test_errors import refuses, says

ARCH = nr.Architecture.chain(2, 2, 2)
NET = nr.GDLN(ARCH)
DATA = nr.Dataset({"x": np.eye(2)}, {"y": np.diag([3.0, 1.0])})
WEIGHTS = {"W1": np.eye(2), "W2": np.eye(2)}
FIX = "as the example shows"

# ---- the checks themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 2.5, np.float32(1), np.int64(3), np.array(2.0), jnp.ones(())])
def test_real_numbers_are_taken(value):
    assert checks.real_number("n", value, fix=FIX) == float(value)


@pytest.mark.parametrize(
    "value",
    [None, True, "1", b"1", 1j, np.nan, np.inf, [1.0], np.ones(1), np.ma.masked, object(), {}],
)
def test_other_values_are_no_real_numbers(value):
    with says("n must be one finite number", got="", wanted="one finite number", fix=FIX):
        checks.real_number("n", value, fix=FIX)


def test_bounds_of_real_numbers():
    assert checks.real_number("n", np.inf, infinite=True, fix=FIX) == np.inf
    for bound in ({"least": 1}, {"above": 0.5}, {"most": -1}, {"below": 0.5}):
        with says("n must be", got="0.5", wanted=next(iter(bound.values())).__format__("g")):
            checks.real_number("n", 0.5, **bound, fix=FIX)


@pytest.mark.parametrize(
    "value", [[[1.0], [1.0, 2.0]], ["a"], 1j, [None], object(), jax.random.key(0)]
)
def test_what_is_no_real_array(value):
    with refuses("fix"):
        checks.real_array("n", value, fix=FIX)


def test_masked_and_traced_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    with refuses("fix"):
        checks.real_array("n", masked, fix=FIX)
    with refuses("fix"):
        jax.jit(lambda x: checks.real_array("n", x, fix=FIX))(1.0)


def test_switches():
    assert [checks.switch("s", v) for v in (True, False, np.True_, 1, 0)] == [1, 0, 1, 1, 0]
    for value in (None, 2, "yes", np.ones(2), []):
        with says("s is either True or False", got=repr(value)[:9], wanted="True or False"):
            checks.switch("s", value)


def test_random_keys():
    for key in (jax.random.key(1), jax.random.PRNGKey(1), 1, np.int64(1), jnp.array(1)):
        assert jax.random.normal(checks.random_key(key)) == jax.random.normal(jax.random.key(1))
    for key in (None, True, 1.5, "a", jnp.ones(2), jax.random.split(jax.random.key(0)), 2**40):
        with refuses("key"):
            checks.random_key(key)


def test_whole_numbers_are_no_arrays():
    for value in (np.ones((2, 2)), np.array([3]), jnp.ones(()), "3"):
        with refuses("steps"):
            nr.train(NET, WEIGHTS, DATA, learning_rate=0.1, steps=value)


# ---- nothing is lost or overflows silently ------------------------------------------------------


def test_masked_weights_times_gates_and_masks():
    masked = np.ma.masked_array(np.eye(2), [[True, False], [False, False]])
    with refuses("W1"):
        NET({**WEIGHTS, "W1": masked}, DATA)
    times = np.ma.masked_array([1.0, 2.0], [False, True])
    with refuses("times"):
        nr.flow(NET, WEIGHTS, DATA, times=times)
    gate = np.ma.masked_array([1.0, 0.0], [False, True])
    with refuses("gates"):
        DATA.gated({"h": gate})
    with refuses("a"):
        nr.pathways(DATA, {"a": gate}, hidden=2)


def test_imaginary_parts_are_not_dropped():
    for call in (
        lambda: nr.flow(NET, WEIGHTS, DATA, times=[1.0, 2.0 + 1j]),
        lambda: nr.linear.balance(NET, {**WEIGHTS, "W2": np.eye(2) * 1j}),
        lambda: nr.analysis.similarity(np.eye(2) * 1j),
        lambda: nr.Trajectory([0.0, 1.0], [1j, 0.0]),
        lambda: nr.reln.patterns(np.eye(2) * 1j),
    ):
        with says("", got="complex", wanted="", fix="real part"):
            call()


def test_data_whose_squares_overflow_say_so():
    huge = nr.Dataset({"x": [[1e200]]}, {"y": [[1e200]]})
    arch = nr.Architecture.chain(1, 1, 1)
    for call in (
        lambda: nr.reduce(arch, huge),
        lambda: nr.path_statistics(arch, huge),
        lambda: nr.linear.saddles(nr.GDLN(arch), huge),
    ):
        with refuses("x"):
            call()


def test_starts_that_overflow_say_so():
    race = nr.reduce(ARCH, DATA)
    with refuses("start"):
        race.solve(times=[1.0], start=1e308)
    with says("the loss would overflow", got="1e+200", wanted="paths of 2 edges", fix="small"):
        race.start({edge: 1e200 * w for edge, w in WEIGHTS.items()})
    assert np.isfinite(race.solve(times=[1.0], start=10.0).loss).all()


def test_theory_under_jit_says_so():
    def reduced(x):
        return len(nr.reduce(ARCH, nr.Dataset({"x": x}, {"y": np.eye(2)})).blocks)

    with says("must be known before tracing", got="'x'", wanted="read", fix="outside jit"):
        jax.jit(reduced)(jnp.eye(2))


# ---- files --------------------------------------------------------------------------------------


def test_files_that_are_none(tmp_path):
    run = nr.Trajectory([0.0, 1.0], [2.0, 1.0])
    whole = run.save(tmp_path / "run.nc").read_bytes()
    for content in (b"", b"text", whole[:-500], whole[:100], whole[:-1] + b"x"):
        (tmp_path / "damaged.nc").write_bytes(content)
        with refuses("damaged.nc"):
            nr.load(tmp_path / "damaged.nc")
    with says("is not a trajectory", got="", wanted="netCDF"):
        nr.load(tmp_path)
    with refuses("file"):
        run.save(tmp_path)
    for path in (None, 3, b"run.nc", ["run.nc"], ""):
        with refuses("path"):
            nr.load(path)
        with refuses("path"):
            run.save(path)


def test_a_checkpoint_in_place_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("no checkpoint")
    options = {"learning_rate": 0.1, "steps": 2, "checkpoint_every": 1}
    for place in (tmp_path / "file", 3):
        with pytest.raises(nr.NeuralRaceError):
            nr.train(NET, WEIGHTS, DATA, checkpoint=place, **options)


# ---- bugs surface as themselves -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "helper", "call"),
    [
        ("reduction.find_blocks", "shared_basis", lambda: nr.reduce(ARCH, DATA)),
        ("reduction.find_blocks", "class_factor", lambda: nr.reduce(ARCH, DATA)),
        (
            "dynamics.train",
            "take_steps",
            lambda: nr.train(NET, WEIGHTS, DATA, learning_rate=0.1, steps=1),
        ),
        ("dynamics.setup", "as_arrays", lambda: nr.flow(NET, WEIGHTS, DATA, times=[1.0])),
        (
            "contests.times",
            "reduce",
            lambda: nr.contest({"xor": nr.tasks.xor_pathways(nr.tasks.xor(), 4)}, start=0.01),
        ),
        ("gdln", "_gated", lambda: NET(WEIGHTS, DATA)),
        ("linear.chain", "chain_edges", lambda: nr.linear.saddles(NET, DATA)),
        ("analysis.representations", "ratio", lambda: nr.analysis.similarity(np.eye(2), "cosine")),
        ("reln.possible.patterns", "enumerated", lambda: nr.reln.patterns(np.eye(2))),
        ("tasks.structures", "_levels", lambda: nr.tasks.hierarchy()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bug_in_a_private_function_surfaces_as_itself(monkeypatch, module, helper, call):
    def broken(*_, **__):
        raise ZeroDivisionError("planted")

    place = importlib.import_module(f"neuralrace.{module}")
    monkeypatch.setattr(place, helper, broken, raising=False)
    with pytest.raises(ZeroDivisionError, match="planted"):
        call()


def test_missing_and_unknown_arguments_are_named():
    arch, data = nr.tasks.xor_pathways(nr.tasks.xor())
    with refuses("data"):
        nr.reduce(arch)
    with refuses("arch"):
        nr.reduce(nr.tasks.xor())
    with refuses("tolerence", "tolerance"):
        nr.reduce(arch, data, tolerence=0.1)
    with refuses("reduce"):
        nr.reduce(arch, data, 0.1)
    with refuses("reduce", "arch"):
        nr.reduce(arch, data, arch=arch)


@pytest.mark.parametrize("form", [np.array, np.float32, jnp.asarray])
def test_arrays_without_axes_are_numbers_of_python_where_numbers_are_asked_for(form, tmp_path):
    """Results keep them as settings, so that they print and can be stored."""
    half, four = form(0.5), np.asarray(4)
    few = {"width": four, "scale": half, "learning_rate": half, "steps": 2}
    runs = [
        nr.train(NET, WEIGHTS, DATA, learning_rate=half, steps=four),
        nr.flow(NET, WEIGHTS, DATA, times=[0.0, 1.0], rtol=form(2.0**-10), weight_decay=half),
        nr.predict(DATA, **few, networks=0).trajectory,
        nr.reduce(ARCH, DATA).solve(times=[0.0, 1.0], start=form(0.25)),
    ]
    for k, run in enumerate(runs):
        assert not any(hasattr(value, "dtype") for value in run.settings.values())
        run.save(tmp_path / f"{k}.nc")
        assert nr.load(tmp_path / f"{k}.nc").settings == run.settings
    assert runs[0].settings["learning_rate"] == 0.5 and len(runs[0].time) == 5


def test_which_arrays_without_axes_are_left_as_they_are():
    """Those that are traced, and those of arguments that may be arrays."""

    @door
    def kinds(number: float, several: float | Array, key: Key) -> tuple[type, ...]:
        return type(number), type(several), type(key)

    one = jnp.asarray(1)
    assert kinds(one, one, one) == (int, type(one), type(one))
    assert kinds(number=np.float64(1), several=np.ones(()), key=1) == (float, np.ndarray, int)
    seen = []
    jax.jit(lambda value: seen.append(kinds(value, value, 0)))(1.0)
    assert all(issubclass(kind, jax.core.Tracer) for kind in seen[0][:2])
    with refuses("number"):
        kinds(np.ones(1), 1.0, 1)


def test_transforms_go_through_the_door():
    """`jit`, `grad` and `vmap` of public functions, against finite differences and a loop."""
    net, data = nr.ReLUNetwork((2, 4, 1)), nr.tasks.xor()
    weights = net.init(0, 0.5)
    loss = lambda w: net.loss(w, data)
    assert float(jax.jit(loss)(weights)) == pytest.approx(float(loss(weights)))
    step = 1e-6
    raised = weights | {"W2": weights["W2"].at[0, 1].add(step)}
    slope = float(loss(raised) - loss(weights)) / step
    assert float(jax.grad(loss)(weights)["W2"][0, 1]) == pytest.approx(slope, abs=1e-5)
    several = [net.init(seed, 0.5) for seed in range(3)]
    stack = jax.tree.map(lambda *each: jnp.stack(each), *several)
    np.testing.assert_allclose(jax.vmap(loss)(stack), [float(loss(w)) for w in several])

    def after(rate):
        system = nr.dynamics.NetworkSystem(net, data)
        return loss(nr.dynamics.unrolled_steps(system, weights, nr.dynamics.Descent(rate), 5))

    slope = float(after(0.1 + step) - after(0.1 - step)) / (2 * step)
    assert float(jax.grad(after)(0.1)) == pytest.approx(slope, rel=1e-5)


def test_axes_of_a_callers_own_annotations_are_others():
    @door
    def total(numbers: Float[np.ndarray, " n"]) -> float:
        return float(numbers.sum())

    with jaxtyped("context"):
        assert isinstance(np.ones(3), Float[np.ndarray, " n"])
        assert total(np.ones(4)) == 4
        assert not isinstance(np.ones(4), Float[np.ndarray, " n"])
