"""Cells in one file: what is added is found, whatever happened to the file before."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralrace.sweeps import CellFile
from tests.test_errors import refuses

NUMBERS = st.one_of(st.integers(-9, 9), st.floats(-9, 9), st.text(max_size=3), st.none())
CELLS = st.dictionaries(st.sampled_from("abc"), NUMBERS, min_size=1)


@given(cells=st.lists(CELLS, max_size=6))
def test_the_last_row_with_all_the_values_is_found(cells, tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "cells.jsonl"
    for number, cell in enumerate(cells):
        CellFile(path).add(cell, {"number": number})
    for cell in cells:
        fits = [k for k, other in enumerate(cells) if cell.items() <= other.items()]
        assert CellFile(path).find(cell)["number"] == fits[-1]
    assert CellFile(path).find({"d": 0}) is None


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "complex128", "<U3"])
def test_arrays_come_back_as_they_were(tmp_path, kind):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)
    for file in (CellFile(), CellFile(tmp_path / "cells.jsonl")):
        file.add({"k": (1, 2)}, {"deep": {"array": array}, "one": np.float64(0.5)})
        row = file.find({"k": [1, 2]})
        assert row["deep"]["array"].dtype == array.dtype and row["one"] == 0.5
        np.testing.assert_array_equal(row["deep"]["array"], array)


def test_a_line_that_a_crash_cut_off_is_skipped_and_can_be_computed_again(tmp_path):
    path = tmp_path / "cells.jsonl"
    file = CellFile(path)
    file.add({"k": 0}, {"x": 1})
    file.add({"k": 1}, {"x": 2})
    path.write_bytes(path.read_bytes()[:-4])
    again = CellFile(path)
    assert again.find({"k": 0})["x"] == 1 and again.find({"k": 1}) is None
    again.add({"k": 1}, {"x": 3})
    assert again.find({"k": 1})["x"] == 3 == CellFile(path).find({"k": 1})["x"]


def test_processes_may_share_a_file(tmp_path):
    path = tmp_path / "cells.jsonl"
    code = (
        "import sys; from neuralrace.sweeps import CellFile; file = CellFile(sys.argv[1]);"
        "[file.add({'process': sys.argv[2], 'k': k}, {'text': 'x' * 5000}) for k in range(40)]"
    )
    command = [sys.executable, "-c", code, str(path)]
    both = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    reader = CellFile(path)
    while any(each.poll() is None for each in both):
        assert all(len(row["text"]) == 5000 for row in reader)
    assert len(list(reader)) == 80 == len(path.read_text().splitlines())
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_name_that_stands_twice_is_refused():
    with refuses("seed"):
        CellFile().add({"seed": 0}, {"seed": 1})


def test_what_is_no_number_text_or_array_is_refused():
    with refuses("object"):
        CellFile().add({"k": 0}, {"x": object()})


@pytest.mark.parametrize(
    "line",
    [
        *("5", "null", '"a cat"', "[1]", '{"__array__": ["<f8", [2], "eJw="]}'),
        *('{"k": 1, "x": {"__array__": 5}}', '{"k": 1, "x": {"__array__": ["<f8", [2], 5]}}'),
        *('{"k": 1, "x": {"__array__": ["<f8", [2], "AAAA"]}}', '{"k": 1, "x": {"__array__": []}}'),
        '{"k": 1, "x": {"__array__": ["no kind", [2], "eJxjYGBgAAAABAAB"]}}',
    ],
)
def test_a_line_that_is_no_row_is_skipped(tmp_path, line):
    path = tmp_path / "cells.jsonl"
    file = CellFile(path)
    file.add({"k": 0}, {"x": 1})
    path.write_text(f"{path.read_text()}{line}\n")
    assert file.find({"k": 1}) is None and file.find({"k": 0})["x"] == 1
    file.add({"k": 1}, {"x": 2})
    assert file.find({"k": 1})["x"] == 2 and len(list(CellFile(path))) == 2


@pytest.mark.parametrize(
    "number", [1 + 2j, np.complex64(1j), np.datetime64("2020-01-01"), np.longdouble(0.1)]
)
def test_numbers_that_json_does_not_know_come_back(tmp_path, number):
    file = CellFile(tmp_path / "cells.jsonl")
    file.add({"k": number}, {"x": number})
    row = file.find({"k": 0})
    assert row is None and [each["x"] for each in file] == [number]


@pytest.mark.parametrize(
    "value", [np.ones(2), math.nan, np.float32("nan"), [np.ones(2)], {"a": [1, np.ones(1)]}]
)
def test_a_cell_that_would_never_be_found_is_refused(value):
    file = CellFile()
    with refuses("delta"):
        file.add({"delta": value}, {"x": 1})
    with refuses("delta"):
        file.find({"delta": value})
    assert not list(file)
    file.add({"k": 0}, {"delta": value})
    assert file.find({"delta": 1}) is None and file.find({"delta": [1, 1]}) is None


@pytest.mark.parametrize("again", [1, 3])
def test_a_file_that_is_made_anew_is_read_anew(tmp_path, again):
    path = tmp_path / "cells.jsonl"
    file = CellFile(path)
    file.add({"k": 0}, {"x": 1})
    assert file.find({"k": 0})["x"] == 1
    path.unlink()
    assert file.find({"k": 0}) is None
    for number in range(again):
        CellFile(path).add({"k": 1}, {"x": number})
    assert file.find({"k": 0}) is None and len(list(file)) == again
    path.write_text("")
    assert file.find({"k": 1}) is None
