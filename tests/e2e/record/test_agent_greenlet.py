# SPDX-License-Identifier: Apache-2.0
"""Greenlets: a switch changes the thread's stack without an event of the interpreter."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from package import PACKAGE
from recording import Recording

PROGRAM = """
import greenlet
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
            assert greenlet.gettrace() is None and greenlet.settrace(own) is None and greenlet.gettrace() is own
        one_let, two_let = greenlet.greenlet(one), greenlet.greenlet(two)
        one_let.switch()
        leaf()
main()
assert greenlet.settrace(None) is trace and greenlet.gettrace() is None
assert told.count("switch") == 7, told
"""


def parents_of(process, name):
    """By which function each call of `name` was made, as the stack is said and kept."""
    parents = []
    for thread in process.threads:
        stack, left = [], {}
        for e in thread.events:
            what = e.name.split(":")
            if e.name == "python:frame":
                at = e.fields["depth"]
                if at >= len(stack) or stack[at] != e.code:
                    stack[at:] = [e.code]
            elif e.name == "python:stack":
                del stack[e.fields["depth"]:]
            elif e.name == "python:switch":
                left[e.fields["from"]] = stack
                stack = list(left.get(e.fields["to"], []))
            elif e.name in ("python:call", "python:resume", "python:throw"):
                if process.codes[e.code].qualname == name:
                    parents.append(process.codes[stack[-1]].qualname if stack else None)
                stack.append(e.code)
            elif what[0] == "python" and what[1] in ("return", "yield", "unwind"):
                assert stack, f"{e.name} ends nothing"
                stack.pop()
    return parents


@pytest.mark.pythons(least=(3, 9))
def test_a_log_record_is_recorded_once_if_a_handler_switches_greenlets(record, python, venv):
    """By --log and by krait.Handler, which comes after a handler in which others log: as gevent's sockets do it."""
    if python.origin != "pyenv" or python.number not in ((3, 9), (3, 13)):
        pytest.skip("greenlet is tried with two versions")
    program = """
        import functools, greenlet, krait, logging
        class Switching(logging.Handler):
            def emit(self, record):
                others = lets[1:] if greenlet.getcurrent() is lets[0] else lets[:1]
                [other.switch() for other in others if not other.dead]
        log = logging.getLogger("app")
        log.addHandler(Switching())
        log.addHandler(krait.Handler())
        def say(n):
            for i in range(5):
                log.warning("%d of %d", i, n)
        lets = [greenlet.greenlet(functools.partial(say, n)) for n in range(2)]
        for own in lets:
            while not own.dead:
                own.switch()
    """
    notes = record.text(venv(python, "greenlet"), program, options=["--log"], env={"PYTHONPATH": PACKAGE["PYTHONPATH"]}).check().notes("log:record")
    assert sorted(n["message"] for n in notes) == [f"{i} of {n}" for i in range(5) for n in range(2)]


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


def test_a_trace_function_that_raises_takes_only_itself_away(record, any_python, venv):
    text = """
        import greenlet
        def trace(event, args):
            raise KeyError
        def leaf(): pass
        def one():
            leaf()
            home.switch()
            leaf()
        def main():
            global home
            home = greenlet.getcurrent()
            let = greenlet.greenlet(one)
            let.switch()
            greenlet.settrace(trace)
            try:
                let.switch()
            except KeyError:
                leaf()
            assert greenlet.gettrace() is None
            other = greenlet.greenlet(one)
            other.switch()
            leaf()
            other.switch()
            leaf()
        main()
    """
    run = record.text(venv(any_python, "greenlet"), text)
    assert run.lost == 0
    assert parents_of(run.main, "leaf") == ["one", "main", "one", "main", "one", "main"]


def test_a_stack_that_is_known_is_not_said_again_for_greenlets_without_events(krait, any_python, record, venv, tmp_path):
    """Of those which waited as the recording began nothing is known, and they do nothing but switch back."""
    text = """
        import sys, krait
        from greenlet import getcurrent, greenlet
        home = getcurrent()
        def leaf(): pass
        def waits():
            while True: home.switch()
        def rounds(depth):
            if depth:
                return rounds(depth - 1)
            for _ in range(300):
                for let in lets: let.switch()
                leaf()
        lets = [greenlet(waits) for _ in range(5)]
        for let in lets: let.switch()
        with krait.recording(sys.argv[1], c_calls=False):
            rounds(40)
        """
    environment = {**os.environ, "PYTHONPATH": str(Path(krait).parent / "python"), "PATH": f"{Path(krait).parent}:{os.environ['PATH']}"}
    python = venv(any_python, "greenlet")
    done = python.run(record.script(text), tmp_path / "trace", env=environment)
    assert done.returncode == 0, done.stderr
    run = Recording(tmp_path / "trace")
    names = Counter(event.name for thread in run.main.threads for event in thread.events)
    assert run.lost == 0 and names["python:switch"] == 3000
    assert names["python:frame"] < 200, names
    unknown = [e for thread in run.main.threads for e in thread.events if e.name == "python:switch" and not e.fields["to"]]
    assert len(unknown) < 20
    assert parents_of(run.main, "leaf") == ["rounds"] * 300


DEEP = """
    import os, signal, sys
    from greenlet import getcurrent, greenlet
    def leaf(): pass
    def deep(n):
        if n:
            deep(n - 1)
        while not n:
            leaf()
            home.switch()
    def waits():
        home.switch()
        leaf()
    def rounds(n):
        for i in range(n):
            for let in lets: let.switch()
    home, waiting, lets = getcurrent(), greenlet(waits), [greenlet(deep) for _ in range(4)]
    waiting.switch()
    for let in lets: let.switch(50)
    rounds(200)
    if "lose" in sys.argv:
        os.kill(os.getppid(), signal.SIGSTOP)
        rounds(4000)
        os.kill(os.getppid(), signal.SIGCONT)
    rounds(60_000 if "grow" in sys.argv else 200)
    greenlet(leaf).switch()
    waiting.switch()
    for let in lets: let.throw()
    leaf()
"""


MANY = """
    from greenlet import getcurrent, greenlet
    def leaf(): pass
    def deep(n):
        if n: return deep(n - 1)
        while True:
            home.switch()
            leaf()
    home = getcurrent()
    lets = [greenlet(deep) for _ in range(1500)]
    for let in lets: let.switch(20)
    for _ in range(5):
        for let in lets: let.switch()
"""


@pytest.mark.few_pythons
def test_no_stack_is_said_again_where_many_greenlets_wait(record, python, venv):
    run = record.text(venv(python, "greenlet"), MANY)
    assert run.status == 0 and not run.lost
    assert sum(e.name == "python:frame" for thread in run.main.threads for e in thread.events) < 1000
    assert parents_of(run.main, "leaf") == ["deep"] * 7500


def test_a_switch_says_which_stack_is_there_however_deep(record, any_python, venv):
    """Also after events were lost, and where the stacks of those that wait were said in packets that are dropped."""
    python, script = venv(any_python, "greenlet"), record.script(DEEP)
    small = ["--ring-size", "256K", "--buffer-size", "64K"]
    for word, options in (("", []), ("lose", small), ("grow", ["--max-size", "2M", "--keep", "newest"])):
        run = record(python, script, word, options=options)
        assert run.status == 0 and (word == "lose") == bool(run.lost)
        said = sum(e.name == "python:frame" for thread in run.main.threads for e in thread.events)
        assert said < 1000
        parents = parents_of(run.main, "leaf")
        last = [None, "waits", "<module>"]
        assert set(parents) <= {"deep", *last}
        assert word == "lose" or (parents[-3:] == last and set(parents[:-3]) == {"deep"})


# These take the return of the sys.setprofile that they call for an error, under any tool that watches calls of C functions.
SEE_THE_RETURN = [
    "test_trace_events_from_greenlet_func_sets_profiler",
    "test_trace_events_from_greenlet_subclass_sets_profiler",
    "test_trace_events_into_greenlet_func_already_set",
    "test_trace_events_into_greenlet_subclass_already_set",
    "test_trace_events_multiple_greenlets_switching",
    "test_trace_events_multiple_greenlets_switching_siblings",
    "test_trace_events_trivial",
]


def failures(output):
    """Of `python -m unittest`: the tests' names."""
    assert re.search(r"^Ran \d+ tests", output, re.MULTILINE), output[-2000:]
    return set(re.findall(r"^(?:FAIL|ERROR): (\w+)", output, re.MULTILINE))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("options", [[], ["--no-c-calls"]], ids=["c-calls", "no-c-calls"])
@pytest.mark.pythons(least=(3, 12), most=(3, 13))
def test_greenlets_own_tests_give_the_same_results(record, python, venv, options):
    """Once more where they differ: some fail by themselves on a busy machine."""
    if python.origin != "pyenv":
        pytest.skip("greenlet's tests are run with the versions that it has wheels for")
    inside, words = venv(python, "greenlet", "objgraph", "psutil"), ["-m", "unittest", "discover", "greenlet.tests"]
    expected = set() if options else set(SEE_THE_RETURN)
    for _ in (1, 2):
        theirs = failures(inside.run(*words, timeout=800).stderr)
        ours = failures(record(inside, *words, options=options, timeout=800).stderr)
        if ours == theirs | expected:
            break
    assert ours == theirs | expected
