# SPDX-License-Identifier: Apache-2.0
"""The tests' own reader of recordings reads what the writer writes; else what it says of the recorder is worth nothing."""

import pytest

from recording import Recording

SCRIPT = """\
    process 100 app
    code 1 python app main app.py 1
    code 2 c builtins len - 0
    thread 100 MainThread
    1us call 1
    2us ccall 2
    3us creturn
    200ms call 1
    201ms unwind
    {last}
    exit 0 3
    """


def test_names_nesting_and_times_are_read(synth):
    process = Recording(synth(SCRIPT.format(last="202ms return"))).main
    assert (process.name, process.pid, process.ending) == ("app", 100, ("exit", 3))
    thread = process.threads[0]
    lines, still_open = process.shape(thread)
    assert lines == ["call main", "c call len", "c return len", "call main", "unwind main", "return main"]
    assert still_open == []
    assert process.calls() == {"main": 2, "len": 1}
    times = [e.time for e in thread.events if e.name in ("python:call", "python:return")]
    assert times[-1] - times[0] == 202_000_000 - 1_000


def test_a_call_left_open_is_seen(synth):
    process = Recording(synth(SCRIPT.format(last=""))).main
    with pytest.raises(AssertionError, match="open at the end: ..main"):
        process.check_balanced()


def test_an_end_of_the_wrong_kind_is_seen(synth):
    process = Recording(synth(SCRIPT.format(last="202ms creturn"))).main
    with pytest.raises(AssertionError, match="c:return ends"):
        process.check_balanced()
