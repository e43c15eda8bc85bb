"""XoR and its gatings: MHS Eqs. 11–17, NRR Eqs. 18–20."""

import jax
import numpy as np
import pytest

import neuralrace as nr
from neuralrace import tasks


def correlations(data, gate=None):
    """Σ^yx(p) and Σ^x(p, p) of the pathway with this gate, shapes (1, d) and (d, d)."""
    weight = data.probability * (1 if gate is None else gate)
    x, y = data.x["x"], data.y["y"]
    return (y * weight[:, None]).T @ x, (x * weight[:, None]).T @ x


def test_xor_is_that_of_the_papers():
    data = tasks.xor()
    assert data.x["x"].tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    assert data.y["y"][:, 0].tolist() == [-1, 1, 1, -1]
    assert data.labels["sample"].tolist() == [1, 2, 3, 4]
    assert data.labels["positive"].tolist() == [False, True, True, False]
    assert data.gates == {}


@pytest.mark.parametrize("delta", [0.0, 0.4, 1.2])
def test_extended_xor_is_mhs_equations_11_and_12(delta):
    data = tasks.extended_xor(delta)
    wanted = [[-1, 1, -1, 1], [-1, -1, 1, 1], [-delta, delta, delta, -delta]]
    np.testing.assert_array_equal(data.x["x"].T, wanted)
    np.testing.assert_array_equal(data.y["y"], tasks.xor().y["y"])


def test_sign_swaps_the_targets_alone():
    one, other = tasks.extended_xor(0.3), tasks.extended_xor(0.3, sign=-1.0)
    np.testing.assert_array_equal(one.x["x"], other.x["x"])
    np.testing.assert_array_equal(one.y["y"], -other.y["y"])
    assert (one.labels["positive"] != other.labels["positive"]).all()


def test_xor_pathways_have_the_statistics_of_nrr_equations_18_and_19():
    _, data = tasks.xor_pathways(tasks.xor(sign=-1.0))  # the sign of NRR's worked example
    yx, x = correlations(data, data.gates["sample4"])
    np.testing.assert_allclose(yx, [[1 / 4, 1 / 4]])
    np.testing.assert_allclose(x, [[1 / 4, 1 / 4], [1 / 4, 1 / 4]])


@pytest.mark.parametrize("delta", [0.0, 0.5, 2.0])
def test_extended_xor_pathways_have_the_mended_variance(delta):
    _, data = tasks.xor_pathways(tasks.extended_xor(delta))
    yx, x = correlations(data, data.gates["sample4"])
    s = np.linalg.norm(yx)
    v = yx / s
    np.testing.assert_allclose(s, np.sqrt(1 / 8 + delta**2 / 16))
    np.testing.assert_allclose(v @ x @ v.T, (2 + delta**2) / 4)


def test_linear_pathways_have_the_statistics_of_mhs_equations_14_and_16():
    delta = 0.7
    _, data = tasks.linear_pathways(tasks.extended_xor(delta))
    yx, x = correlations(data, data.gates["positive"])
    np.testing.assert_allclose(yx, [[0, 0, delta / 2]])
    np.testing.assert_allclose(x, np.array([[1, -1, 0], [-1, 1, 0], [0, 0, delta**2]]) / 2)
    np.testing.assert_array_equal(data.gates["positive"] + data.gates["negative"], np.ones(4))


@pytest.mark.parametrize("gating", [tasks.xor_pathways, tasks.linear_pathways])
@pytest.mark.parametrize("task", [tasks.xor(), tasks.extended_xor(0.5)])
def test_gatings_run_and_have_equal_total_width(gating, task):
    arch, data = gating(task)
    assert sum(arch.sizes[v] for v in arch.hidden) == 128
    net = nr.GDLN(arch)
    weights = net.init(jax.random.key(0), scale=0.0)
    assert float(net.loss(weights, data)) == 0.5


def test_one_pathway_is_on_for_each_sample():
    _, data = tasks.xor_pathways(tasks.xor(), total=8)
    np.testing.assert_array_equal(np.stack(list(data.gates.values())), np.eye(4))


@pytest.mark.parametrize("delta", [-0.1, np.inf, np.nan])
def test_impossible_margins(delta):
    with pytest.raises(nr.NeuralRaceError, match="delta"):
        tasks.extended_xor(delta)


@pytest.mark.parametrize("sign", [0.0, np.inf])
def test_impossible_signs(sign):
    with pytest.raises(nr.NeuralRaceError, match="sign"):
        tasks.xor(sign)


def test_widths_that_cannot_be_divided():
    with pytest.raises(nr.NeuralRaceError, match="divided equally among 4 pathways") as error:
        tasks.xor_pathways(tasks.xor(), total=130)
    assert error.value.fix == "use total=132"
    with pytest.raises(nr.NeuralRaceError, match=r"(?s)total width.*at least 2"):
        tasks.linear_pathways(tasks.xor(), total=1)


def test_linear_pathways_need_classes():
    with pytest.raises(nr.NeuralRaceError, match="needs the label 'positive'"):
        tasks.linear_pathways(nr.Dataset({"x": [[1.0]]}, {"y": [[1.0]]}))
