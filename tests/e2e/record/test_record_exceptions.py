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


@pytest.mark.every_python
def test_exceptions_are_counted_by_function_and_type(record, python, report):
    for options in (), ("--exclude", "nothing.at.all"):  # the hooks that look each function up
        run = record.text(python, PROGRAM, options=options).check()
        found = exceptions(report, run.path)
        c = found.pop("len")
        assert found == EXPECTED and c["TypeError"] >= 2


# What comes of it where C code stands between who raises and who catches.
PASSED_ON = """
import operator, sys, threading
class Own(Exception):
    def __init__(self, *args): super().__init__(*args)
class Sequence:
    def __getitem__(self, i):
        raise IndexError  # the end of `for`, which catches it
class Steps:
    def __iter__(self): return self
    def __next__(self): raise StopIteration  # the same, but CPython tells it
class Named:
    def __set_name__(self, owner, name): raise Own  # before 3.12 `class` makes a RuntimeError of it
class Added:
    def __add__(self, other): raise Own
def key(x):
    raise Own
def by_sorted():
    return sorted([1], key=key)
def by_map():
    return list(map(key, [1]))
def by_operator():
    return Added() + 1
def by_class():
    class Made:
        named = Named()
def generator():
    yield 1
    raise StopIteration  # who asks for the next gets a RuntimeError
def by_generator():
    list(generator())
def reraises():
    try:
        key(1)
    except Own as error:
        raise KeyError from error
def kept():
    try:
        key(1)
    finally:
        len("")
def in_thread():
    for f in by_sorted, kept:
        caught(f)
def caught(f):
    try:
        f()
    except Exception:
        pass
def main():
    for _ in Sequence(): pass
    for _ in Steps(): pass
    for f in by_sorted, by_map, by_operator, by_class, by_generator, reraises, kept:
        caught(f)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert sys.gettrace() is None
main()
"""


def by_function(report, folder):
    return {row["name"]: row["exceptions"] for row in report(folder) if row["exceptions"] and row["module"] in ("__main__", "builtins")}


@pytest.mark.every_python
def test_a_type_is_of_the_exception_that_left_not_of_what_c_code_made_of_it(record, python, report):
    found = by_function(report, record.text(python, PASSED_ON).check().path)
    own = "__main__.Own"
    told = {
        **{name: {own: 1} for name in ("by_map", "by_operator", "Added.__add__")},
        **{name: {own: 2} for name in ("by_sorted", "sorted", "kept")},
        "key": {own: 6},
        "reraises": {"KeyError": 1},
        "by_generator": {"RuntimeError": 1},
        "Steps.__next__": {"StopIteration": 1},
    }
    assert {name: found[name] for name in told} == told
    hidden = {  # name: from 3.12 on, before
        "Sequence.__getitem__": ("IndexError", "?"),
        "Named.__set_name__": (own, "?"),
        "by_class": (own, "RuntimeError"),
        "generator": ("RuntimeError", "?"),
    }
    assert {name: found[name] for name in hidden} == {name: {types[not python.has_monitoring]: 1} for name, types in hidden.items()}


# What the program's own trace function sees: also where it is set just after an exception that C code caught.
TRACED = """
import sys
class Sequence:
    def __getitem__(self, i): raise IndexError
def inner():
    raise KeyError
def outer():
    try:
        inner()
    except KeyError:
        pass
    try:
        len(5)
    except TypeError:
        return 1
def trace(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        told.append((frame.f_code.co_name, event, frame.f_lineno, arg[0].__name__ if event == "exception" else None))
    return trace
def work():
    for _ in Sequence(): pass
    sys.settrace(trace)
    outer()
    sys.settrace(None)
    for _ in Sequence(): pass
    outer()
told = []
work()
work()
for line in told: print(*line)
"""


@pytest.mark.pythons(most=(3, 11))
@pytest.mark.every_python
def test_the_programs_trace_function_sees_what_it_sees_without_krait(record, python, report):
    run = record.text(python, TRACED).check()
    assert run.stdout == python.run(run.path.parent / "app.py").stdout and run.stdout.count("exception") == 6
    found = by_function(report, run.path)
    assert found["inner"] == {"KeyError": 2, "?": 2} and found["len"] == {"TypeError": 2, "?": 2}


def test_functions_are_chosen_and_sorted_by_exception(record, any_python, report, krait):
    python = any_python
    run = record.text(python, PROGRAM)
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
