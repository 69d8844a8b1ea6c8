# SPDX-License-Identifier: Apache-2.0
"""The C functions that samples show, against a program that says which ones each of its lines calls."""

import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from recording import Recording

PROGRAM = Path(__file__).parents[1] / "helpers" / "called_functions.py"
CALLED = [{name.rpartition(".")[2] for name in line.partition("#:")[2].split()} for line in ["", *PROGRAM.read_text().splitlines()]]


def samples_of(folder):
    """(line, codes of the stack, the outermost first) of each sample that has read the stack."""
    process = Recording(folder).main
    for thread in process.threads:
        stack, line = [], None
        for event in thread.events:
            if event.name == "python:sample":
                if line is not None:
                    yield line, [process.codes[code] for code in stack]
                line = event.fields["line"]
            elif event.name in ("python:frame", "python:deep_frame"):
                stack = [*stack[: event.fields["depth"]], event.code]
            elif event.name in ("python:stack", "python:deep_stack"):
                stack = stack[: event.fields["depth"]]


def sample(krait, app, folder, *options):
    words = [krait, "record", "--sample", *options, "--pid", app.pid, "-o", folder]
    subprocess.run([str(word) for word in words], capture_output=True, timeout=60, check=True)


@pytest.mark.parametrize("rate", [pytest.param(1000, marks=pytest.mark.few_pythons), 10000])
def test_the_function_that_a_sample_shows_is_called_in_its_line(programs, krait, python, tmp_path, rate):
    app = programs.add([*python.prefix, python.exe, PROGRAM, 60])
    sample(krait, app, tmp_path / "samples", rate, "--for", "2s")
    app.end()
    shown, wrong = defaultdict(Counter), Counter()
    for line, stack in samples_of(tmp_path / "samples"):
        if len(stack) < 2 or stack[-1].kind != "c" or not stack[-2].file.endswith(PROGRAM.name):
            assert all(code.kind == "python" for code in stack[:-1])
            continue
        name = stack[-1].qualname.rpartition(".")[2]
        shown[name][line] += 1
        wrong[line, stack[-1].qualname] += name not in CALLED[line] or stack[-1].qualname == "ContextVar.get"
    assert not +wrong and {"sum", "sleep", "sorted"} <= set(shown)
    if rate == 10000:
        assert {"max", "print", "list"} <= set(shown)


NAMES = """
import collections, functools, math, operator, os, re, sys, time
class Sub(list): pass
text, sub, deque, big = "x" * 3000000, Sub(range(300000)), collections.deque(range(300000)), 10 ** 30000
write, alias = str.encode, math.factorial
def method(): text.count("y")
def static(): str.count(text, "y")
def inherited(): sub.index(-1) if -1 in sub else sub.count(-1)
def of_module(): math.factorial(4000)
def by_another_name():
    local = alias
    local(4000)
def of_other_type(): deque.count(-1)
def of_pattern(): re.compile("x*y").match(text[:2000])
def a_class(): list(text)
def by_keywords(): sorted(sub, key=None, reverse=True)
def with_star(args=(text, "y")): str.count(*args)
def no_function(): big * big
def python_function(): time.sleep(0) if False else [x for x in text[:50000]]
print(os.getpid(), flush=True)
while True:
    for f in (method, static, inherited, of_module, by_another_name, of_other_type, of_pattern, a_class, by_keywords, with_star, no_function,
              python_function): f()
"""

SHOWN = {
    "method": {("builtins", "str.count")},
    "static": {("builtins", "str.count")},
    "inherited": {("builtins", "list.count")},
    "of_module": {("math", "factorial"), ("math.integer", "factorial")},
    "by_another_name": {("math", "factorial"), ("math.integer", "factorial")},
    "of_other_type": {("collections", "deque.count")},
    "of_pattern": {("re", "Pattern.match"), ("re", "compile"), ("builtins", "isinstance")},
    "a_class": {("builtins", "list")},
    "by_keywords": {("builtins", "sorted")},
    "with_star": {("builtins", "str.count")},
    "no_function": set(),
    "python_function": set(),
}


@pytest.mark.few_pythons
@pytest.mark.every_python
def test_functions_have_the_names_of_exact_recordings(programs, krait, python, tmp_path):
    app = programs.start(python, NAMES)
    sample(krait, app, tmp_path / "samples", 5000, "--for", "3s")
    app.end()
    shown = defaultdict(set)
    for _, stack in samples_of(tmp_path / "samples"):
        if len(stack) > 1 and stack[-1].kind == "c" and stack[-2].qualname in SHOWN:
            assert (stack[-1].file, stack[-1].line) == ("<built-in>", 0)
            shown[stack[-2].qualname].add((stack[-1].module, stack[-1].qualname))
    assert all(shown[name] <= functions for name, functions in SHOWN.items()), shown
    assert all(shown[name] for name, functions in SHOWN.items() if functions and name != "of_pattern"), shown


def test_native_frames_replace_the_function(programs, krait, run, any_python, tmp_path):
    app = programs.start(any_python, NAMES)
    sample(krait, app, tmp_path / "samples", 500, "--native-stacks", "--for", "1s")
    app.end()
    functions = json.loads(run("report", "--json", "--limit", 0, tmp_path / "samples").stdout)["functions"]
    assert functions and not [f for f in functions if f["file"] == "<built-in>"]


@pytest.mark.few_pythons
@pytest.mark.every_python
def test_the_table_of_opcodes_is_that_of_the_interpreter(python):
    check = python.run(Path(__file__).parents[3] / "tools" / "opcodes", "check")
    assert check.returncode == 0, check.stdout + check.stderr
