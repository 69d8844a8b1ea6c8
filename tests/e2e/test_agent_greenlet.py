# SPDX-License-Identifier: Apache-2.0
"""Greenlets: a switch changes the thread's stack without an event of the interpreter."""

import pytest

PROGRAM = """
import greenlet, time
told = []
def trace(event, args):
    told.append(event)
def one():
    leaf()
    two_let.switch()
    leaf()
    two_let.switch()
    leaf()
def two():
    inner()
def inner():
    one_let.switch()
    leaf()
    one_let.switch()
def leaf():
    pass
def main():
    for own in (None, trace):
        global one_let, two_let
        if own:
            greenlet.settrace(own)
            time.sleep(0.2)  # more than the clock's window
        one_let, two_let = greenlet.greenlet(one), greenlet.greenlet(two)
        one_let.switch()
        leaf()
main()
assert told.count("switch") == 7, told
"""


def parents_of(process, name):
    """By which function each call of `name` was made, as the stack is said and kept."""
    parents = []
    for thread in process.threads:
        stack = []
        for e in thread.events:
            what = e.name.split(":")
            if e.name == "python:frame":
                at = e.fields["depth"]
                if at >= len(stack) or stack[at] != e.code:
                    stack[at:] = [e.code]
            elif e.name == "python:stack":
                del stack[e.fields["depth"]:]
            elif e.name in ("python:call", "python:resume", "python:throw"):
                if process.codes[e.code].qualname == name:
                    parents.append(process.codes[stack[-1]].qualname if stack else None)
                stack.append(e.code)
            elif what[0] == "python" and what[1] in ("return", "yield", "unwind"):
                assert stack, f"{e.name} ends nothing"
                stack.pop()
    return parents


@pytest.mark.parametrize("options", [[], ["--no-c-calls"]], ids=["c-calls", "no-c-calls"])
@pytest.mark.pythons(least=(3, 9))
def test_each_call_has_the_caller_of_its_own_greenlet(record, python, venv, options):
    if python.origin != "pyenv" or python.number not in ((3, 9), (3, 13)):
        pytest.skip("greenlet is tried with two versions")
    run = record.text(venv(python, "greenlet"), PROGRAM, options=options)
    assert run.lost == 0
    once = ["one", "one", "inner", "one", "main"]
    assert parents_of(run.main, "leaf") == 2 * once  # then with a trace function of the program's own
    assert parents_of(run.main, "inner") == ["two", "two"]
