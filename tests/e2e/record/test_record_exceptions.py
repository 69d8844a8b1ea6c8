# SPDX-License-Identifier: Apache-2.0
"""Which exceptions leave which functions: recorded with their types, counted and chosen by `krait report`."""

import csv
import io
import subprocess

import pytest

PROGRAM = """
import json
class Mine(ValueError):
    pass
def inner(i):
    if i % 2:
        raise Mine(i)
    return [][i]  # IndexError, of no function written in C
def outer(i):
    return inner(i)
def steps():
    yield 1
    raise KeyError
def in_c(x):
    return len(x)
def main():
    for i in range(10):
        try:
            outer(i)
        except (Mine, IndexError):
            pass
    for x in 5, "", None:
        try:
            in_c(x)
        except TypeError:
            pass
    try:
        list(steps())
    except KeyError:
        pass
    try:
        json.loads("{")
    except ValueError:
        pass
main()
"""

EXPECTED = {
    "inner": {"__main__.Mine": 5, "IndexError": 5},
    "outer": {"__main__.Mine": 5, "IndexError": 5},
    "in_c": {"TypeError": 2},
    "steps": {"KeyError": 1},
    "loads": {"json.decoder.JSONDecodeError": 1},
}


def exceptions(report, folder, *options):
    rows = report(folder, *options)
    return {row["name"]: row["exceptions"] for row in rows if row["name"] in [*EXPECTED, "len"]}


@pytest.mark.few_pythons
def test_exceptions_are_counted_by_function_and_type(record, python, report):
    for options in (), ("--exclude", "nothing.at.all"):  # the hooks that look each function up
        run = record.text(python, PROGRAM, options=options).check()
        found = exceptions(report, run.path)
        c = found.pop("len")
        if python.has_monitoring:
            assert found == EXPECTED and c["TypeError"] >= 2
        else:  # CPython puts the exception away while a profile function runs
            assert {name: sum(types.values()) for name, types in found.items()} == {name: sum(types.values()) for name, types in EXPECTED.items()}
            assert {type for types in [c, *found.values()] for type in types} == {"?"}


def test_functions_are_chosen_and_sorted_by_exception(record, any_python, report, krait):
    python = any_python
    run = record.text(python, PROGRAM)
    if not python.has_monitoring:
        pytest.skip("needs Python 3.12")
    assert exceptions(report, run.path, "--exception", "*.Mine") == {"inner": {"__main__.Mine": 5}, "outer": {"__main__.Mine": 5}}
    assert exceptions(report, run.path, "--exception", "KeyError", "--filter", "__main__") == {"steps": {"KeyError": 1}}
    words = [krait, "report", run.path, "--exception", "re:^(IndexError|.*Mine)$", "--filter", "__main__", "--sort", "raised", "--limit", "2"]
    table = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "raised" in table[0].split() and "exceptions" in table[0].split()
    assert all(line.count("IndexError 5, __main__.Mine 5") == 1 for line in table[1:]) and len(table) == 3
    text = subprocess.run([*words, "--csv"], capture_output=True, text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["name"], row["raised"], row["exceptions"]) for row in rows} == {(name, "10", "IndexError 5, __main__.Mine 5") for name in ("inner", "outer")}
    nothing = subprocess.run([krait, "report", run.path, "--exception", "NoSuch"], capture_output=True, text=True, check=True)
    assert "no function was left by such an exception" in nothing.stderr
    refused = subprocess.run([krait, "report", run.path, "--exception", "KeyError", "--callers", "inner"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--exception" in refused.stderr
