# SPDX-License-Identifier: Apache-2.0
"""process:cost: what recording a call takes, measured by each program that is executed, out of the recording's sight."""

import os

import pytest

from conftest import BUILD
from recording import Recording

PROGRAM = """
    def f(): return len("")
    for _ in range(10): f()
"""
FIELDS = ["python_inside_ns", "python_outside_ns", "c_inside_ns", "c_outside_ns"]


def costs(run):
    return [[fields[name] for name in FIELDS] for process in run.processes for fields in process.said("process:cost")]


ON_FEW = [pytest.param(options, marks=pytest.mark.few_pythons) for options in (("--exclude", "nothing.*"), ("--max-overhead", "5"))]


@pytest.mark.parametrize("options", [(), *ON_FEW], ids=["short", "filter", "budget"])
def test_a_program_tells_it_once_and_shows_no_trace_of_measuring(record, python, options):
    run = record.text(python, PROGRAM, options=options)
    run.check(ended="--max-overhead" not in options)  # before 3.12 a pause may last to the end
    ((python_inside, python_outside, c_inside, c_outside),) = costs(run)
    assert python_inside + python_outside > 0
    assert not any(code.file == "<krait>" for process in run.processes for code in process.codes.values())
    assert not any(process.calls()[None] for process in run.processes)
    if not options:
        assert run.calls()["f"] == 10


def test_functions_of_c_cost_nothing_where_they_are_not_recorded(record, python):
    (cost,) = costs(record.text(python, PROGRAM, options=("--no-c-calls",)).check())
    assert cost[0] + cost[1] > 0 and cost[2:] == [0, 0]


@pytest.mark.few_pythons
def test_a_forked_child_has_its_parents_cost(record, python):
    run = record.text(
        python,
        """
        import os
        def f(): pass
        child = os.fork()
        f()
        if not child: os._exit(0)
        os.waitpid(child, 0)
        """,
    ).check(ended=False)
    parent, child = costs(run)
    assert parent == child


@pytest.mark.few_pythons
def test_it_is_not_known_of_call_sites_nor_where_the_program_begins_the_recording(record, python, tmp_path):
    assert costs(record.text(python, PROGRAM, options=("--call-sites",))) == []
    program = record.script("import sys, krait\nwith krait.recording(sys.argv[1]): len('')\n")
    done = python.run(program, tmp_path / "own", env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, done.stderr
    assert costs(Recording(tmp_path / "own")) == []


def test_the_program_sees_nothing_of_it(record, python):
    """Neither objects that stay, nor an exception, nor what runs when the interpreter ends."""
    run = record.text(
        python,
        """
        import gc, sys
        left = [o for o in gc.get_objects() if getattr(getattr(o, "__code__", None), "co_filename", "") == "<krait>"]
        assert not left, left
        assert sys.exc_info() == (None, None, None)
        """,
    )
    assert costs(run)
