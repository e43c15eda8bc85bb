"""States of the explorer: from a page to a study and back, and what is refused."""

import inspect
import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

import neuralrace as nr
from neuralrace.explorer import limits
from neuralrace.explorer.catalogue import (
    GATING_PARAMETERS,
    GATINGS,
    PARAMETERS,
    TITLES,
    catalogue,
    default_state,
    offered,
)
from neuralrace.explorer.showing import state_of_pair
from neuralrace.explorer.state import (
    expression,
    label_expression,
    problem_of,
    put_table,
    study_of,
)
from neuralrace.explorer.trust import Trust
from tests.explorer_help import error, result, xor_state


@pytest.fixture
def trust(tmp_path):
    return Trust(tmp_path)


# ---- what is offered ----------------------------------------------------------------------------


def test_every_builtin_task_and_gating_of_studies_is_offered():
    assert set(TITLES) == set(PARAMETERS) == set(nr.study.TASKS)
    assert set(GATING_PARAMETERS) == set(nr.study.GATINGS)
    assert {name for names in GATINGS.values() for name in names} == set(nr.study.GATINGS)


@pytest.mark.parametrize("task", TITLES)
def test_the_default_state_of_every_task_can_be_built_with_every_gating_offered(task, trust):
    state = default_state(task)
    for gating in offered(task):
        state["gatings"] = {gating["short"]: gating["gating"]}
        if gating["name"] == "all_subsets":
            state["task"]["parameters"]["contexts"] = 3
        problem = problem_of(json.loads(json.dumps(state)), ["contest"], trust)
        assert list(problem.candidates) == [gating["short"]]


@pytest.mark.parametrize("task", TITLES)
def test_the_largest_values_of_all_sliders_together_make_a_task_within_the_limits(task, trust):
    values = {
        p.name: p.choices[-1] if p.kind == "choice" else (True if p.kind == "switch" else p.most)
        for p in PARAMETERS[task]
    }
    several = {p.name: p.default for p in PARAMETERS[task] if p.several and p.kind == "number"}
    values |= {name: [values[name]] * len(default) for name, default in several.items()}
    state = {"task": {"builtin": task, "parameters": {k: _whole(v) for k, v in values.items()}}}
    found = result("data", trust, state=state)
    assert found["samples"] <= limits.SAMPLES


def _whole(value):
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_the_catalogue_is_json_and_says_what_each_parameter_is():
    for task in json.loads(json.dumps(catalogue())):
        assert task["about"].endswith(".")
        for parameter in task["parameters"]:
            assert parameter["kind"] in ("number", "integer", "switch", "choice")
            assert parameter["about"]


def test_sizes_and_decays_of_modes_are_sliders(trust):
    (task,) = (one for one in catalogue() if one["name"] == "sequence_teacher")
    names = [p["name"] for p in task["parameters"]]
    assert {"steps", "strengths.0", "strengths.3", "decays.0", "decays.3"} <= set(names)
    state = task["state"]
    assert state["task"]["parameters"]["strengths"] == [1.0, 0.8, 0.6, 0.4]
    state["task"]["parameters"] |= {"strengths": [3, 2], "decays": [0.5, 0.25]}
    data = problem_of(json.loads(json.dumps(state)), ["contest"], trust).data
    for t, part in ((6, 1.0), (5, 0.5)):
        moment = data.y["y"].T @ data.x[f"x{t}"] / data.n_samples
        wanted = (3 * part, 2 * part**2)
        np.testing.assert_allclose(np.linalg.svd(moment, compute_uv=False)[:2], wanted, atol=1e-9)
    for wrong in ([], 3, [1.0] * 5, {"0": 1.0}, [-1.0], [1e4], ["a"]):
        state["task"]["parameters"]["strengths"] = wrong
        found = error("data", trust, state=state)
        assert found["key"].startswith("task.parameters.strengths")


# ---- gates as lists -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_list_of_gates_is_the_same_gating_as_its_expression(seed, trust):
    random = np.random.default_rng(seed)
    mask = random.random(24) < random.random()
    mask[random.integers(24)] = True
    state = {
        "task": {"builtin": "contextual", "parameters": {"contexts": 3}},
        "gatings": {"mine": {"masks": {"one": mask.astype(int).tolist(), "all": [1] * 24}}},
    }
    arch, data = problem_of(state, ["contest"], trust).candidates["mine"]
    given = np.asarray(data.gates.get("one", np.ones(24)))
    np.testing.assert_array_equal(given, mask)
    assert arch.hidden == ("one", "all")
    state["gatings"]["mine"]["masks"]["one"] = expression(mask)
    _, again = problem_of(state, ["contest"], trust).candidates["mine"]
    np.testing.assert_array_equal(np.asarray(again.gates.get("one", np.ones(24))), mask)


def test_gates_are_written_by_labels_where_these_say_it():
    labels = nr.tasks.contextual(contexts=3).labels
    context = np.asarray(labels["context"])
    assert label_expression(context == 2, labels) == "context == 2"
    assert label_expression(context != 2, labels) == "context != 2"
    assert label_expression(np.asarray(labels["item"]) < 3, labels) == "item in [1, 2]"
    odd = (context == 1) & (np.asarray(labels["item"]) == 1)
    assert label_expression(odd, labels) is None
    answer = {"positive": np.array([True, False])}
    assert label_expression(np.array([0, 1]), answer) == "not positive"


def test_a_saved_study_has_expressions_on_labels_and_the_same_gates(trust):
    context = np.asarray(nr.tasks.contextual(contexts=2, items=4).labels["context"])
    masks = {"first": (context == 1).astype(int).tolist(), "odd": [1, 0] * 4}
    state = {
        "task": {"builtin": "contextual", "parameters": {"contexts": 2, "items": 4}},
        "gatings": {"mine": {"masks": masks, "hidden": {"first": 8, "odd": 4}}},
    }
    text = result("study", trust, state=state)["toml"]
    assert 'first = "context == 1"' in text and 'odd = "item in [1, 3]"' in text
    again = result("study", trust, toml=text)["state"]
    _, data = problem_of(again, ["contest"], trust).candidates["mine"]
    for name, mask in masks.items():
        np.testing.assert_array_equal(np.asarray(data.gates[name]), mask)


def test_gates_of_another_number_of_samples_are_an_error_of_their_key(trust):
    state = xor_state(gatings={"mine": {"masks": {"a": [1, 0, 0]}}})
    found = result("predict", trust, state=state)["failed"]["mine"]
    assert found["key"] == "gatings.mine.masks.a"


def test_gates_are_lists_also_where_a_column_is_called_sample(trust):
    text = "sample,y\n3,1\n2,0\n1,1\n"
    state = {
        "task": {"file": "t.csv", "x": ["sample"], "y": ["y"]},
        "table": {"name": "t.csv", "text": text},
        "gatings": {"mine": {"masks": {"a": [1, 0, 0], "b": [0, 1, 1]}}},
    }
    _, data = problem_of(state, ["contest"], trust).candidates["mine"]
    np.testing.assert_array_equal(np.asarray(data.gates["a"]), [1, 0, 0])
    saved = result("study", trust, state=state)["toml"]
    assert tomllib.loads(saved)["gatings"]["mine"]["masks"]["a"] == [1, 0, 0]


@pytest.mark.parametrize("mask", [[0, 2, 0, 0], [0.5, 0, 0, 0], ["1", 0, 0, 0], [], [None] * 4])
def test_gates_are_on_or_off(mask, trust):
    state = xor_state(gatings={"mine": {"masks": {"a": mask}}})
    assert result("predict", trust, state=state)["failed"]["mine"]["key"] == "gatings.mine.masks.a"


# ---- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "python task": ({"task": {"python": "os:getcwd"}}, "task.python"),
    "python gating": ({"gatings": {"a": {"python": "os:getcwd"}}}, "gatings.a.python"),
    "file": ({"task": {"file": "/etc/passwd", "x": ["a"], "y": ["b"]}}, "task.file"),
    "a file that is no text": ({"task": {"file": {"a": 1}}}, "task.file"),
    "masks from a file": ({"gatings": {"a": {"file": "masks.csv"}}}, "gatings.a.file"),
    "other task": (
        {"training": {"evaluate": {"t": {"python": "os:getcwd"}}}},
        "training.evaluate.t.python",
    ),
    "checkpoint": ({"training": {"checkpoint": "kept"}}, "training.checkpoint"),
    "a table's other name": (
        {
            "task": {"file": "../b.csv", "x": ["a"], "y": ["b"]},
            "table": {"name": "a.csv", "text": "a,b\n1,2\n"},
        },
        "task.file",
    ),
}


@pytest.mark.parametrize(("change", "key"), REFUSED.values(), ids=REFUSED)
def test_no_state_names_code_or_files(change, key, trust):
    state = xor_state() | change
    for kind in ("predict", "train", "python", "report", "phases", "data"):
        if kind == "data" and "gatings" in change:
            continue  # the task alone is shown
        if kind == "train" and "gatings" in change:
            continue
        more = {"over": [{"key": "contest.criterion", "start": 0.1, "stop": 0.3}]}
        end = None
        if kind == "predict" and "gatings" in change:
            end = result(kind, trust, state=state)["failed"]["a"]
        else:
            end = error(kind, trust, state=state, **(more if kind == "phases" else {}))
        assert end["key"] == key


@pytest.mark.parametrize(
    "name", ["../a.csv", "a/b.csv", "/a.csv", "a.txt", ".csv", "a\x00.csv", "a" * 99 + ".csv", 5]
)
def test_a_table_has_a_plain_name(name, trust):
    state = {
        "task": {"file": name, "x": ["a"], "y": ["b"]},
        "table": {"name": name, "text": "a,b\n1,2\n"},
    }
    assert error("data", trust, state=state)["key"].startswith("table")
    assert not list(trust.tables.iterdir())


def test_what_the_study_of_the_command_line_names_is_allowed_and_its_code_only_if_trusted(tmp_path):
    (tmp_path / "own_task.py").write_text(
        "import neuralrace as nr\ndef make():\n    return nr.tasks.xor()\n"
    )
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,1\n")
    code = {"task": {"python": "own_task:make"}}
    file = {"task": {"file": "t.csv", "x": ["a"], "y": ["b"]}}
    for content, trusted in ((code, True), (file, False)):
        trust = Trust(tmp_path / "tables", content, tmp_path, trusted)
        assert result("data", trust, state=content)["samples"] > 1
        assert result("tasks", trust)["state"] == content
    careful = Trust(tmp_path / "tables", code, tmp_path, False)
    assert "--trust" in error("data", careful, state=code)["fix"]
    other = {"task": {"python": "own_task:other"}}
    assert error("data", Trust(tmp_path / "t", code, tmp_path, True), state=other)["key"]


@pytest.mark.parametrize("kind", ["data", "predict", "kept", "train", "phases", "study"])
@pytest.mark.parametrize("state", [None, [], "x", 3])
def test_what_is_no_state_is_refused(kind, state, trust):
    told = error(kind, trust, state=state, over=[{"key": "a", "start": 0, "stop": 1}])
    assert "could not be" not in told["what"] and told["wanted"] and told["fix"]


LARGE = {
    "samples": ({"task": {"builtin": "parity", "parameters": {"bits": 30}}}, "bits"),
    "no parameter": ({"task": {"builtin": "routing", "parameters": {"base": [[1]]}}}, "base"),
    "kind": ({"task": {"builtin": "parity", "parameters": {"bits": "3"}}}, "bits"),
    "a switch for a number": (
        {"task": {"builtin": "parity", "parameters": {"bits": True}}},
        "bits",
    ),
    "width": ({"network": {"widths": 10**6}}, "network.widths"),
    "layers": ({"network": {"widths": [2] * 9}}, "network.widths"),
    "depth": ({"network": {"depth": 50}}, "network.depth"),
    "steps": ({"training": {"steps": 10**9}}, "training.steps"),
    "seeds": ({"training": {"seeds": 1000}}, "training.seeds"),
    "work": ({"training": {"steps": 50000, "seeds": 8}, "network": {"widths": [2048, 2048]}}, ""),
    "types": ({"types": {"neurons": 10**7}}, "types.neurons"),
    "longest": ({"contest": {"longest": 1e12}}, "contest.longest"),
    "scale": ({"network": {"scale": 1e18}}, "network.scale"),
    "start": ({"contest": {"start": 1e18}}, "contest.start"),
    "recorded": ({"training": {"record": ["weights"]}}, "training.record"),
    "gatings": ({"gatings": {f"g{i}": {"each": "sample"} for i in range(20)}}, "gatings"),
    "pathways": (
        {"gatings": {"g": {"masks": {f"p{i}": "always" for i in range(99)}}}},
        "gatings.g.masks",
    ),
    "a pathway": ({"gatings": {"g": {"each": "sample", "hidden": 10**7}}}, "gatings.g.hidden"),
    "total": (
        {"gatings": {"g": {"builtin": "xor_pathways", "parameters": {"total": 10**8}}}},
        "gatings.g.parameters.total",
    ),
    "view": ({"view": {"a": "x" * 50_000}}, "view"),
    "text": ({"title": "x" * 50_000}, "title"),
    "values": ({"gatings": {"g": {"masks": {"a": [0] * 200_000}}}}, ""),
    "nesting": ({"quickly": json.loads("[" * 50 + "]" * 50)}, ""),
    "table": ({"table": {"name": "a.csv", "text": "a" * 300_000}}, "table"),
}


@pytest.mark.parametrize(("change", "key"), LARGE.values(), ids=LARGE)
def test_every_size_is_bounded_with_a_message(change, key, trust):
    state = xor_state() | change
    kind = "train" if "training" in change else "predict"
    end = ask_one(kind, trust, state)
    assert key in end["key"]
    assert end["what"] and end["wanted"] and end["fix"]


def ask_one(kind, trust, state):
    """The error of a request, or that of its first gating."""
    try:
        return error(kind, trust, state=state)
    except AssertionError:
        return next(iter(result(kind, trust, state=state)["failed"].values()))


# ---- tables and pairs ---------------------------------------------------------------------------


def test_a_dropped_table_becomes_a_task(trust):
    rows = [f"{i},{i % 5},{'ab'[i % 2]},{(i % 5) * (i % 2)}" for i in range(20)]
    text = "id,size,place,price\n" + "\n".join(rows)
    found = result("csv", trust, name="frücht&veg.csv", text=text)
    assert found["notes"][0].startswith("The last column, price, was taken as the target")
    assert found["notes"][1:] == ["Left out: 'id', it counts the rows."]
    state = found["state"]
    assert state["task"]["y"] == ["price"] and state["table"]["text"] == text
    contest = {"criterion": 0.1, "relative": True}  # the price depends on size at one place alone
    assert result("predict", trust, state=state | {"contest": contest})["winner"] == "by_place"
    assert state["table"]["name"] == "frucht_veg.csv"
    assert "HERE / 'files/frucht_veg.csv'" in result("python", trust, state=state)["script"]


@pytest.mark.parametrize("text", ["", "a\n1\n", "a;b\n1;2\n", "\x00\x01", "a,b\n1\n2,3,4\n", None])
def test_a_table_that_is_none_is_an_error(text, trust):
    assert error("csv", trust, name="a.csv", text=text)["what"]


def test_a_table_is_there_as_a_whole_or_not_at_all(trust, monkeypatch):
    """Whoever finds the file, another process or this one after an error, finds all of it."""
    table = {"name": "t.csv", "text": "a,b\n" + "1,2\n" * 500}
    write = Path.write_bytes

    def half(path, data):
        write(path, data[: len(data) // 2])
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half)
        with pytest.raises(OSError, match="no space"):
            put_table(table, trust)
        assert not list(trust.tables.rglob("t.csv"))
    assert (put_table(table, trust) / "t.csv").read_text() == table["text"]
    assert [path.name for path in trust.tables.rglob("*.csv")] == ["t.csv"]


def test_tables_that_are_used_stay(trust):
    """Room is made by removing those that were not asked for longest; one may vanish meanwhile."""
    table = lambda i: {"name": "t.csv", "text": f"a,b\n1,{i}\n"}
    first = put_table(table(0), trust)
    os.utime(first, (0, 0))
    put_table(table(0), trust)
    for i in range(1, 80):
        os.utime(put_table(table(i), trust), (i, i))
    assert first.is_dir() and len(list(trust.tables.iterdir())) <= 64


@pytest.mark.slow
def test_names_with_markup_stay_text(trust):
    bad = "<img src=x onerror=alert(1)>"
    text = f'"{bad}",k,y\n1.5,"{bad}",1\n2,b,0\n3,"{bad}",1\n4.5,b,0\n'
    state = result("csv", trust, name="a.csv", text=text)["state"]
    assert bad in state["task"]["x"]
    for kind in ("predict", "data", "equations"):
        result(kind, trust, state=state)


def test_a_pair_becomes_a_state_with_the_same_race(trust):
    for pair in (
        nr.tasks.common_and_single(nr.tasks.contextual(contexts=2, items=4), hidden=8),
        nr.tasks.xor_pathways(nr.tasks.extended_xor(0.7), total=8),
    ):
        state = state_of_pair(*pair)
        arch, data = problem_of(state, ["contest"], trust).candidates["given"]
        assert arch.sizes == pair[0].sizes
        first, again = (nr.reduce(*one) for one in (pair, (arch, data)))
        np.testing.assert_allclose(
            [b.drive for b in first.blocks], [b.drive for b in again.blocks], rtol=1e-12
        )


def test_a_pair_with_gates_on_nodes_is_a_graph(trust):
    pair = nr.tasks.routing_pathways(nr.tasks.routing(M=2, K=1)[0], hidden=4)
    state = state_of_pair(*pair)
    arch, _ = problem_of(state, ["contest"], trust).candidates["given"]
    assert dict(arch.edges) == dict(pair[0].edges)
    assert result("predict", trust, state=state)["winner"] == "given"


# ---- `sample` in studies ------------------------------------------------------------------------


def test_sample_is_the_number_of_a_sample_where_nothing_else_has_that_name():
    study = nr.Study.of(
        questions=["contest"],
        task={"builtin": "parity", "parameters": {"bits": 2}},
        gatings={"a": {"masks": {"one": "sample in [1, 4]", "two": "sample == 2"}}},
        contest={"check": False},
    )
    _, data = study.check().candidates["a"]
    np.testing.assert_array_equal(data.gates["one"], [1, 0, 0, 1])
    scope = {}
    exec(study.script(), scope)
    np.testing.assert_array_equal(scope["gatings"]["a"][1].gates["two"], [0, 1, 0, 0])


def test_the_text_of_a_study_is_that_of_its_file(tmp_path):
    study = nr.Study.of(questions=["train"], task={"builtin": "xor"})
    assert study.save(tmp_path / "a.toml").read_text() == study.toml()
    again = nr.Study.load(tmp_path / "a.toml").script()
    assert again.splitlines()[1:] == study.script().splitlines()[1:]


def test_a_study_has_the_folder_it_is_given(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,1\n")
    task = {"file": "t.csv", "x": ["a"], "y": ["b"]}
    study = nr.Study.of(folder=tmp_path, questions=["train"], task=task)
    assert study.check().data.n_samples == 2


def test_a_state_that_is_none_is_an_error(trust):
    for state in (None, 5, "x", [], {}, {"task": 1}, {"task": {}}, {"task": {"builtin": 1}}):
        assert error("predict", trust, state=state)["what"]
    with pytest.raises(nr.NeuralRaceError):
        study_of(None, ["train"], trust)


@pytest.mark.parametrize("task", PARAMETERS)
def test_defaults_of_parameters_are_those_of_the_library(task):
    known = inspect.signature(getattr(nr.tasks, task)).parameters
    for parameter in PARAMETERS[task]:
        if known[parameter.name].default not in (inspect.Parameter.empty, None):
            assert parameter.default == known[parameter.name].default
