# SPDX-License-Identifier: Apache-2.0
"""include/krait/annotate.h: what C and C++ code of a program says about itself."""

import json
import os
import shutil
import subprocess

import pytest

from conftest import BUILD
from recording import ROOT, Recording
from running import wait_for

ENV = {"PYTHONPATH": str(BUILD / "python")}
SOURCE = r"""
#include <krait/annotate.h>

#include <pthread.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
int recorded(void) { return krait_annotate_recorder != NULL; }
void mark(const char *text, const char *fields) { krait_annotate_mark(text, fields); }
unsigned long begin(const char *name) { return krait_annotate_span_begin(name, NULL); }
void end(unsigned long span) { krait_annotate_span_end(span, NULL); }
void say(int n)
{
    uint64_t outer = krait_annotate_span_begin("outer", "{\"n\":1}");
#ifdef __cplusplus
    krait::span inner("inner");
#else
    uint64_t inner = krait_annotate_span_begin("inner", NULL);
#endif
    krait_annotate_counter("n", n + 0.5);
    krait_annotate_flow(1ull << 40);
#ifndef __cplusplus
    krait_annotate_span_end(inner, NULL);
#endif
    krait_annotate_span_end(outer, "{\"done\":true}");
}
static int turns, stop;
static void *work(void *none)
{
    for (int i = 0; turns ? i < turns : !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
        say(i);
    return none;
}
void say_on(void) { work(NULL); }
static pthread_t threads[4];
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
/* Another thread asks for the GIL meanwhile, so that dropping it waits until that has it. */
void hold_then_say(int n)
{
    usleep(20000);
    void *state = PyEval_SaveThread();
    say(n);
    PyEval_RestoreThread(state);
}
void start(int n)
{
    turns = n;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
}
void join(void)
{
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
#ifdef __cplusplus
}
#endif
"""


@pytest.fixture(scope="module", params=["c", pytest.param("c++", marks=pytest.mark.few_pythons)])
def library(request, tmp_path_factory):
    """A program's own shared object; its path."""
    compiler, suffix = {"c": ("cc", "c"), "c++": ("c++", "cc")}[request.param]
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    folder = tmp_path_factory.mktemp("library")
    source, made = folder / f"said.{suffix}", folder / "said.so"
    source.write_text(SOURCE)
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-I", ROOT / "include"]
    subprocess.run([compiler, *flags, "-o", made, source], check=True)
    return made


def load(library):
    return f"import ctypes, os, threading; lib = ctypes.CDLL({str(library)!r}); lib.begin.restype = ctypes.c_ulong; lib.end.argtypes = [ctypes.c_ulong]\n"


def test_c_says_what_python_does(record, python, library):
    text = load(library) + "assert lib.recorded()\nlib.mark(b'here', b'{\"a\":1}'); lib.mark(b'', None); lib.mark(None, b''); lib.say(3); lib.mark(b'after', None)\n"
    run = record.text(python, text).check()
    assert [(n["text"], json.loads(n["fields"])) for n in run.notes("user:mark")] == [("here", {"a": 1}), ("-", {}), ("-", {}), ("after", {})]
    begins, ends = run.notes("span:begin"), run.notes("span:end")
    assert [(n["name"], json.loads(n["fields"])) for n in begins] == [("outer", {"n": 1}), ("inner", {})]
    assert {n["id"] for n in begins} == {n["id"] for n in ends} and {"done": True} in [json.loads(n["fields"]) for n in ends]
    assert [(n["name"], n["value"]) for n in run.notes("user:counter")] == [("n", 3.5)] and [n["id"] for n in run.notes("user:flow")] == [2**40]


def test_threads_of_cs_own_and_threads_without_the_gil(record, python, library, rounds):
    times = rounds(100, 500)
    text = load(library) + f"""
def work():
    for n in range({times}):
        lib.say(n)
threads = [threading.Thread(target=work) for _ in range(3)]
lib.start({4 * times})
for t in threads: t.start()
for t in threads: t.join()
lib.join()
"""
    run = record.text(python, text).check()
    per_thread = {}
    for note in run.notes("span:begin"):
        per_thread[note["tid"]] = per_thread.get(note["tid"], 0) + 1
    assert sorted(per_thread.values()) == [2 * times] * 3 + [8 * times] * 4
    assert len(run.notes("span:end")) == 38 * times and len(run.notes("user:counter")) == 19 * times
    assert run.calls()["work"] == 3


def test_a_wait_in_which_the_gil_was_dropped_comes_before_what_c_says_without_it(record, python, library):
    text = load(library) + f"""
over = False
def spins():
    while not over: pass
thread = threading.Thread(target=spins)
thread.start()
holding = ctypes.PyDLL({str(library)!r})
for n in range(10):
    holding.hold_then_say(n)
over = True
thread.join()
"""
    run = record.text(python, text).check()
    (main,) = [t for t in run.main.threads if t.tid == run.main.pid]
    told = [e.name for e in main.events if e.name in ("gil:wait", "gil:switch", "gil:take", "span:begin")]
    assert told.count("span:begin") == 20
    assert told.count("gil:switch") and all(told[i - 1] == "gil:wait" for i, name in enumerate(told) if name == "gil:switch")


def test_nothing_is_written_where_nobody_records(python, library, tmp_path):
    program = tmp_path / "app.py"
    program.write_text(load(library) + "assert not lib.recorded()\nlib.say(1)\nassert lib.begin(b'x') == 0\nlib.end(0); lib.mark(b'x', None)\nprint('done')\n")
    assert python.run(program).stdout == "done\n"


def test_long_texts_are_cut_and_long_fields_left_out(record, any_python, library):
    text = load(library) + "lib.mark(('é' * 5000).encode(), b'{\"a\":\"' + b'x' * 5000 + b'\"}'); lib.end(lib.begin(b'n' * 5000))\n"
    run = record.text(any_python, text).check()
    (mark,) = run.notes("user:mark")
    assert set(mark["text"]) == {"é"} and len(mark["text"]) == 512 and mark["fields"] == "{}"
    assert [n["name"] for n in run.notes("span:begin")] == ["n" * 200]


def test_a_forked_child_says_it_in_its_own_stream(record, python, library):
    text = load(library) + """
lib.say(1)
pid = os.fork()
print(end="")
for n in range(10):
    lib.say(n)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
"""
    run = record.text(python, text).check(ended=False)
    main, child = run.processes
    told = {p.pid: [p.codes[e.fields["name"]].qualname for t in p.threads for e in t.events if e.name == "span:begin"] for p in run.processes}
    assert told[main.pid] == ["outer", "inner"] * 11 and told[child.pid] == ["outer", "inner"] * 10


@pytest.mark.few_pythons
def test_threads_without_the_gil_say_it_in_a_recording_that_begins_while_others_wait(programs, python, library, krait, tmp_path):
    """The stacks of those that wait are written when it begins; the rings for that keep nobody from writing."""
    text = load(library) + """
def says(): lib.say_on()
def waits(): lock.acquire()
lock = threading.Lock()
lock.acquire()
lib.start(0)
threads = [threading.Thread(target=says), threading.Thread(target=waits)]
for t in threads: t.start()
while sum(f.f_code in (says.__code__, waits.__code__) for f in __import__("sys")._current_frames().values()) < 2: pass
print(os.getpid(), flush=True)
input()
lib.join()
lock.release()
for t in threads: t.join()
print("done")
"""
    app = programs.start(python, text, stdin=subprocess.PIPE)
    folder = tmp_path / "attached"
    attached = subprocess.Popen([str(w) for w in (krait, "record", "--max-size", "20M", "--pid", app.pid, "-o", folder)], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len([s for s in folder.glob("*/thread*") if s.stat().st_size]) >= 7, "events of each thread")
    assert app.process.communicate("\n", timeout=60)[0] == "done\n"
    assert attached.wait(60) == 0, attached.stderr.read()
    attached.stderr.close()
    process = Recording(folder).main  # what says it without a pause may lose some of it
    assert not process.unbalanced()
    told = {t.tid: {process.codes[e.code].qualname for e in t.events if e.name == "python:frame"} for t in process.threads if any(e.name == "user:counter" for e in t.events)}
    assert len(told) == 5 and sum("says" in frames for frames in told.values()) == 1, told


@pytest.mark.few_pythons
def test_recordings_begin_and_end_under_threads_that_go_on(python, library, tmp_path, rounds):
    """krait.start() tells what is loaded, and a stop takes rings away from threads that are in the midst of an event."""
    program, times = tmp_path / "app.py", rounds(2, 5)
    program.write_text(
        load(library)
        + f"""
import krait, time
assert not lib.recorded()
lib.start(0)
for n in range({times}):
    krait.start(f"{tmp_path}/trace{{n}}", max_size="50M")
    assert lib.recorded()
    lib.mark(b"in", None)
    time.sleep(0.002)
    krait.stop()
    assert not lib.recorded()
    lib.mark(b"out", None)
lib.join()
print("done")
"""
    )
    done = python.run(program, env={**os.environ, **ENV})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    for n in range(times):
        notes = Recording(tmp_path / f"trace{n}").notes("user:mark", "user:counter")
        assert [note["text"] for note in notes if note["event"] == "user:mark"] == ["in"]
        assert {note["name"] for note in notes if note["event"] == "user:counter"} <= {"n"}
