# SPDX-License-Identifier: Apache-2.0
"""krait dump: a thread that runs code in several interpreters is one thread, with one stack."""

import json
import subprocess

import pytest

from running import wait_for
from subinterpreters import NESTED, NESTED_STACK, THREADS


@pytest.fixture
def threads(krait):
    """threads(pid, *options): those of `krait dump --json`."""

    def read(*words):
        run = subprocess.run([krait, "dump", "--json", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0 and not run.stderr, run.stderr
        return json.loads(run.stdout)["threads"]

    return read


def names(thread):
    return [f["function"].rpartition(".")[2] for f in thread["frames"] if not f.get("native")]


@pytest.mark.every_python
def test_an_interpreters_frames_are_above_those_that_called_it(programs, threads, run, python):
    app = programs.start(python, NESTED)
    (thread,) = wait_for(lambda: (t := threads(app.pid)) and "third" in names(t[0]) and t[0]["state"] == "sleeping" and t, "the sleep in the third interpreter")
    assert names(thread) == NESTED_STACK and thread["proved"] and thread["tid"] == app.pid
    assert thread["interpreter"] == 5 and thread["c_function"] == {"function": "sleep", "module": "time"}
    text = run("dump", app.pid).stdout
    assert ", 1 thread\n" in text and text.count("\nThread ") == 1 and " (main) of interpreter 5  sleeps in " in text


@pytest.mark.every_python
def test_each_thread_has_the_interpreter_that_it_runs(programs, threads, python):
    """Up to 3.12 an interpreter's state names the thread that made it, not the one that runs it."""
    app = programs.start(python, THREADS.replace("WHAT", "time.sleep(600)"))

    def found():
        first, *others = threads(app.pid)
        inside = sorted(names(t)[:3] for t in others if t["state"] == "sleeping")
        return inside == [[f"inside{k}", "<module>", "outer"] for k in range(3)] and (first, others)

    first, others = wait_for(found, "the calls in the interpreters")
    assert "waits" in names(first) and not {"outer", "inside0", "inside1", "inside2"} & set(names(first)) and first["interpreter"] == 0
    assert {t["interpreter"] for t in others} == {1, 2, 3} and len({t["tid"] for t in [first, *others]}) == 4
    assert all(t["proved"] for t in [first, *others])


@pytest.mark.parametrize("what", ["pass", "time.sleep(0)"])
def test_threads_in_interpreters_that_run_count_once(programs, threads, python, what):
    app = programs.start(python, THREADS.replace("WHAT", what))

    def found():
        ones = threads(app.pid)
        inside = [names(t) for t in ones if t["proved"] and any(name.startswith("inside") for name in names(t))]
        assert len({t["tid"] for t in ones}) == len(ones) <= 4, ones
        assert all("outer" in n and n.index("outer") > 1 and "waits" not in n for n in inside), inside
        return inside

    for _ in range(10):
        wait_for(found, "a thread in an interpreter")


def test_native_frames_stand_between_those_of_the_interpreters(programs, threads, python):
    app = programs.start(python, NESTED)
    (thread,) = wait_for(lambda: (t := threads("--native", app.pid)) and "third" in names(t[0]) and t, "the call in the third interpreter")
    assert thread["native"] == "whole" and names(thread) == NESTED_STACK
    frames = [(f["native"], f["function"]) for f in thread["frames"]]
    callers = [i for i, (native, name) in enumerate(frames) if not native and name in ("second", "first")]
    assert all(frames[i - 1][0] for i in callers), frames
