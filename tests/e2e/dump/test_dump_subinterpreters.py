# SPDX-License-Identifier: Apache-2.0
"""krait dump: a thread that runs code in several interpreters is one thread, with one stack."""

import json
import shutil
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


# The first thread makes a state in another interpreter, which a thread of C code then takes that has none of its own.
C_THREAD = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
void Py_Initialize(void), *Py_NewInterpreter(void), *PyThreadState_Get(void), *PyThreadState_Swap(void *);
void *PyEval_SaveThread(void), PyEval_RestoreThread(void *), PyEval_AcquireThread(void *);
int PyRun_SimpleString(const char *);
static void *run(void *state)
{
    printf("%d %ld\\n", getpid(), syscall(SYS_gettid));
    fflush(stdout);
    PyEval_AcquireThread(state);
    PyRun_SimpleString("import time\\ndef inside(): time.sleep(600)\\ninside()");
    return NULL;
}
int main(void)
{
    pthread_t thread;
    Py_Initialize();
    void *first = PyThreadState_Get(), *state = Py_NewInterpreter();
    PyThreadState_Swap(first);
    PyEval_SaveThread();
    pthread_create(&thread, NULL, run, state);
    PyEval_RestoreThread(first);
    return PyRun_SimpleString("import time\\ndef waits(): time.sleep(600)\\nwaits()");
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_a_state_that_another_thread_has_made_is_of_the_thread_that_runs_it(programs, threads, own_pythons, tmp_path):
    python = max((p for p in own_pythons if p.kind == "shared"), key=lambda p: p.number, default=None) or pytest.skip("no libpython")
    home, folder, name = json.loads(python.run("-c", "import json, sys, sysconfig; print(json.dumps([sys.prefix, *map(sysconfig.get_config_var, ('LIBDIR', 'INSTSONAME'))]))").stdout)
    (tmp_path / "app.c").write_text(C_THREAD)
    subprocess.run(["cc", "-o", tmp_path / "app", tmp_path / "app.c", f"{folder}/{name}", f"-Wl,-rpath,{folder}", "-lpthread"], check=True)
    app = programs.add([tmp_path / "app"], env={"PYTHONHOME": home})
    asleep = lambda: len(t := [t for t in threads(app.pid) if t["state"] == "sleeping" and t["frames"][0]["function"] in ("inside", "waits")]) == 2 and t  # noqa: E731
    first, other = wait_for(asleep, "both sleeps")
    assert (first["tid"], names(first), first["interpreter"]) == (app.pid, ["waits", "<module>"], 0)
    assert (other["tid"], names(other), other["interpreter"]) == (int(app.ready), ["inside", "<module>"], 1)
    assert first["proved"] and other["proved"]
