# SPDX-License-Identifier: Apache-2.0
"""Waiting for the GIL: programs whose threads wait for a known time, for a known other, or not at all."""

import json
import os
import re
import subprocess
import textwrap
import time
from collections import defaultdict
from dataclasses import dataclass

import pytest

from conftest import BUILD, verb_json
from known_times import EMPTIED
from pages import page_text, run_page
from recording import Recording

GIL = {"gil:wait", "gil:take", "gil:drop", "gil:switch"}

# burn(seconds) computes for so much of its thread's own time, without giving the GIL up of itself.
BURN = """\
import os, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(2000): pass
def thread(target, *args):
    made = threading.Thread(target=target, args=args)
    made.start()
    return made
"""


def burning(record, python, text, ended=True, **options):
    """The recording of a program that has burn and thread."""
    return record.text(python, BURN + textwrap.dedent(text), **options).check(ended)


@dataclass
class Wait:
    begin: float  # seconds
    end: float
    holder: int
    taken: bool

    @property
    def seconds(self):
        return self.end - self.begin


def gil_events(process):
    """(seconds, tid, event) of all threads, in the order of time."""
    frequency = int(re.search(r"freq = (\d+)", process.metadata)[1])
    return sorted(
        ((e.time / frequency, t.tid, e) for t in process.threads for e in t.events if e.name in GIL), key=lambda row: row[0]
    )


def waits_of(process):
    """tid -> its waits; checks that each has an end and that nothing is between."""
    waits, since = defaultdict(list), {}
    for seconds, tid, event in gil_events(process):
        if event.name == "gil:wait":
            assert tid not in since, "a wait in a wait"
            since[tid] = (seconds, event.fields["holder"])
        elif event.name in ("gil:take", "gil:switch") and tid in since:
            begin, holder = since.pop(tid)
            waits[tid].append(Wait(begin, seconds, holder, event.name == "gil:take"))
        elif event.name == "gil:switch":
            pytest.fail("a switch that ends nothing")
    assert not since, "a wait without an end"
    return waits


def waited(process):
    return sum(w.seconds for waits in waits_of(process).values() for w in waits)


def tids(process):
    """name -> tid"""
    return {name: tid for tid, name in process.thread_names.items()}


def check_one_holder(process, since=0.0):
    """While others wait the GIL has one holder, who took it after the one before had dropped it."""
    holder, waiting = "not known", set()
    for _, tid, event in (row for row in gil_events(process) if row[0] >= since):
        said = event.fields.get("holder")
        if event.name == "gil:wait" and said:
            assert said != tid and holder in (said, "not known"), f"{tid} waits for {said}, but {holder} has it"
            waiting.add(tid)
            holder = said
        elif event.name == "gil:take":
            assert holder in ("nobody", "not known"), f"{tid} takes what {holder} has"
            waiting.discard(tid)
            holder = tid if waiting else "not known"
        elif event.name == "gil:drop":
            assert holder in (tid, "not known"), f"{tid} drops what {holder} has"
            holder = "nobody"


def nobodys(process):
    """Seconds from a drop to the next who takes it."""
    seconds, dropped = 0, None
    for at, _, event in gil_events(process):
        if event.name == "gil:take" and dropped is not None:
            seconds += at - dropped
        dropped = at if event.name == "gil:drop" else None if event.name == "gil:take" else dropped
    return seconds


@pytest.mark.few_pythons
def test_two_threads_that_compute_wait_for_each_other(record, python):
    run = burning(record, python, "other = thread(burn, 0.3); burn(0.3); other.join()")
    process = run.main
    waits = waits_of(process)
    one, two = waits
    for waiter, holder in (one, two), (two, one):  # 0: nobody has it yet
        assert holder in {w.holder for w in waits[waiter] if w.taken} <= {holder, 0}
    assert {w.holder for ws in waits.values() for w in ws if not w.taken} <= {0}
    check_one_holder(process)
    # At each instant one of them waits, and both only while nobody has it.
    begin, end = max(ws[0].begin for ws in waits.values()), min(ws[-1].end for ws in waits.values())
    inside = sum(max(0, min(w.end, end) - max(w.begin, begin)) for ws in waits.values() for w in ws)
    assert 0.4 * (end - begin) < inside <= 1.001 * (end - begin) + nobodys(process)
    assert all(sum(w.seconds for w in ws) > 0.1 for ws in waits.values())


# What the C library does if the other side of the GIL has no CPU: it keeps a thread that signals, or that locks a mutex.
SLEEPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
static int signals, locks;
static __thread int is_busy;
void sleep_in(int in_signals, int in_locks) { signals = in_signals, locks = in_locks; }
static void doze(void) { nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL); }
int pthread_cond_signal(pthread_cond_t *cond)
{
    static int (*real)(pthread_cond_t *);
    void *newer = real ? (void *)real : dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
    real = newer ? newer : dlsym(RTLD_NEXT, "pthread_cond_signal");
    if (signals)
        doze();
    return real(cond);
}
int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    real = real ? real : dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    is_busy = locks;
    return locks ? EBUSY : real(mutex);
}
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    real = real ? real : dlsym(RTLD_NEXT, "pthread_mutex_lock");
    if (is_busy)
        doze();
    is_busy = 0;
    return real(mutex);
}
"""


@pytest.fixture(scope="module")
def sleeps(tmp_path_factory):
    path = tmp_path_factory.mktemp("sleeps") / "sleeps.so"
    path.with_suffix(".c").write_text(SLEEPS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, path.with_suffix(".c"), "-ldl", "-lpthread"], check=True, timeout=60)
    return path


@pytest.mark.few_pythons
@pytest.mark.every_python
@pytest.mark.parametrize("where", ["signals", "locks"])
def test_handing_the_gil_over_is_waiting_for_it(record, python, sleeps, where):
    """A thread that was asked for the GIL may sleep in the GIL's own locks and conditions until it may wait for it again; one that takes
    it, before it has it."""
    text = f"""
        import ctypes
        sleep_in = ctypes.PyDLL({str(sleeps)!r}).sleep_in
        threads = [thread(burn, 0.05) for _ in range(2)]
        sleep_in({int(where == "signals")}, {int(where == "locks")})
        for made in threads: made.join()
        sleep_in(0, 0)
        """
    process = burning(record, python, text, env={**os.environ, "LD_PRELOAD": str(sleeps)}).main
    check_one_holder(process)
    events = gil_events(process)
    nap, seen, free, dropped = 0.003, 0, 0, None
    for at, tid, event in events:
        own = [(t, e.name) for t, of, e in events if of == tid and t >= at]
        if event.name == "gil:drop" and [name for _, name in own[1:3]] == ["gil:wait", "gil:switch"]:
            seen += own[2][0] - own[1][0] >= nap and (own[1][0] == at or where == "locks")
        if event.name == "gil:take" and dropped is not None:
            free += at - dropped >= (2 if where == "signals" else 1) * nap
        dropped = at if event.name == "gil:drop" else None if event.name == "gil:take" else dropped
    assert seen >= 3 and free >= 3


@pytest.mark.few_pythons
def test_a_thread_alone_waits_for_nobody(record, python):
    run = burning(record, python, "burn(0.1)\nfor _ in range(2000): os.stat('/')\ntime.sleep(0.01)")
    assert not gil_events(run.main)


@pytest.mark.few_pythons
@pytest.mark.every_python
def test_threads_one_after_the_other_wait_at_their_start_and_end_alone(record, python):
    run = burning(record, python, "for _ in range(5): thread(burn, 0.05).join()")
    assert sum(map(len, waits_of(run.main).values())) <= 5 * 6


@pytest.mark.few_pythons
def test_a_c_function_that_keeps_the_gil_is_waited_for(record, python):
    """ctypes.PyDLL calls with the GIL held."""
    run = burning(
        record,
        python,
        """
        import ctypes
        ready, over = threading.Event(), []
        def other():
            ready.set()
            while not over: time.sleep(0.05)
        made = thread(other)
        ready.wait()
        ctypes.PyDLL(None).usleep(500000)
        over.append(True)
        made.join()
        """,
    )
    main = tids(run.main)["MainThread"]
    (other,) = (tid for tid in waits_of(run.main) if tid != main)
    longest = max(waits_of(run.main)[other], key=lambda w: w.seconds)
    assert longest.holder == main and longest.taken and longest.seconds > 0.2


@pytest.mark.few_pythons
def test_waiting_for_anything_else_is_no_wait_for_the_gil(record, python):
    """Sleeping, a condition and a lock with a timeout, an event, a queue, a pipe, joining."""
    run = burning(
        record,
        python,
        """
        import queue
        def other():
            time.sleep(0.1)
            condition = threading.Condition()
            with condition: condition.wait(0.1)
            lock = threading.Lock()
            lock.acquire()
            lock.acquire(timeout=0.1)
            threading.Event().wait(0.1)
            try: queue.Queue().get(timeout=0.1)
            except queue.Empty: pass
            os.read(r, 1)
        r, w = os.pipe()
        made = thread(other)
        time.sleep(0.7)
        os.write(w, b"x")
        made.join()
        """,
    )
    waits = [w for ws in waits_of(run.main).values() for w in ws]
    assert len(waits) < 20 and sum(w.seconds for w in waits) < 0.35  # of its 0.6 seconds


@pytest.mark.few_pythons
def test_a_thread_that_takes_the_gil_back_after_a_system_call_waits(record, python):
    run = burning(
        record,
        python,
        """
        over = []
        def reads():
            while not over: os.stat("/")
        other = thread(reads)
        burn(0.2)
        over.append(True)
        other.join()
        """,
    )
    process = run.main
    main = tids(process)["MainThread"]
    (other,) = (tid for tid in waits_of(process) if tid != main)
    waits = [w for w in waits_of(process)[other] if w.taken and w.seconds > 0.004]
    # of some, nobody has it yet when they begin
    assert {w.holder for w in waits} <= {main, 0} and sum(w.holder == main for w in waits) > 2
    assert sum(w.seconds for w in waits) > 0.03


@pytest.mark.few_pythons
@pytest.mark.long
def test_with_many_threads_each_take_has_its_drop(record, python):
    run = burning(record, python, "all = [thread(burn, 0.2) for _ in range(6)]\nfor t in all: t.join()")
    check_one_holder(run.main)
    known = set(run.main.thread_names)
    assert {w.holder for ws in waits_of(run.main).values() for w in ws} <= known | {0}
    assert waited(run.main) > 0.2 * 3  # of the six five wait


@pytest.mark.few_pythons
def test_waits_lie_in_their_threads_time(record, python):
    """recording.py checks the order of time in each stream; threads that begin while others compute wait first."""
    run = burning(
        record,
        python,
        """
        over = []
        def until_over():
            while not over: pass
        others = [thread(until_over) for _ in range(3)]
        for _ in range(10): thread(burn, 0.001).join()
        over.append(True)
        for t in others: t.join()
        """,
    )
    first = [t.events[0].name for t in run.main.threads if t.tid != tids(run.main)["MainThread"]]
    assert "gil:wait" in first


@pytest.mark.few_pythons
def test_a_forked_child_has_its_own_threads_and_waits(record, python):
    run = burning(
        record,
        python,
        """
        made = [thread(burn, 0.4) for _ in range(2)]
        time.sleep(0.1)
        pid = os.fork()
        if pid == 0:
            burn(0.2)
            other = thread(burn, 0.2); burn(0.2); other.join()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        for t in made: t.join()
        """,
        ended=False,
    )
    parent, child = run.processes
    check_one_holder(child)
    assert set(waits_of(child)) == {t.tid for t in child.threads} and len(waits_of(child)) == 2
    assert {w.holder for ws in waits_of(child).values() for w in ws} <= set(waits_of(child)) | {0}
    assert waited(child) > 0.05 and waited(parent) > 0.2


# Before 3.13 an interpreter that imports threading when it runs in a thread never ends.
COUNT = """\
import _thread, time
def count(lock=None):
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        for _ in range(2000): pass
    if lock: lock.release()
"""
COUNT_TWICE = """\
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(count, (lock,))
count()
lock.acquire()
time.sleep(0.05)
"""
SUBINTERPRETER = """\
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
run = getattr(interpreters, "exec", None) or interpreters.run_string
"""


@pytest.mark.few_pythons
def test_interpreters_that_share_the_gil_wait_for_each_other(record, python):
    create = "interpreters.create()" if python.number < (3, 12) else "interpreters.create('legacy')"
    if python.number == (3, 12):
        create = "interpreters.create(isolated=False)"
    run = burning(record, python, SUBINTERPRETER + f"one = {create}; t = thread(run, one, {COUNT + 'count()'!r}); burn(0.3); t.join()")
    assert waited(run.main) > 0.1
    check_one_holder(run.main)


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_an_interpreter_with_a_gil_of_its_own_waits_within_itself(record, python):
    create = "interpreters.create(isolated=True)" if python.number == (3, 12) else "interpreters.create('isolated')"

    def record_one(text):
        program = SUBINTERPRETER + f"one = {create}; t = thread(run, one, {COUNT + text!r}); burn(0.3); t.join()"
        return burning(record, python, program, ended=False).main

    assert sum(map(len, waits_of(record_one("count()")).values())) < 20
    fight = record_one(COUNT_TWICE)
    main = tids(fight)["MainThread"]
    waits = {tid: [w for w in ws if w.taken and w.holder != main] for tid, ws in waits_of(fight).items() if tid != main}
    one, two = (tid for tid, ws in waits.items() if ws)
    assert {w.holder for w in waits[one]} == {two} and {w.holder for w in waits[two]} == {one}


@pytest.mark.pythons(least=(3, 12))
def test_nobody_waits_for_a_thread_that_never_had_that_gil(record, python, krait):
    """Threads of two interpreters with a GIL each fight for them at the same time; one thread uses both."""
    create = "interpreters.create(isolated=True)" if python.number == (3, 12) else "interpreters.create('isolated')"
    program = SUBINTERPRETER + f"one = {create}; t = thread(run, one, {COUNT + COUNT_TWICE!r}); u = thread(burn, 0.3); burn(0.3); u.join(); t.join()"
    run = burning(record, python, program, ended=False)
    process = run.main
    told = {t.tid: sum(e.name == "gil:interpreter" for e in t.events) for t in process.threads}
    inside = {tid for tid, n in told.items() if n and tid not in process.thread_names}  # the second thread of the interpreter, which never imports threading
    outside = {tid for tid, n in told.items() if not n}
    assert len(inside) == 1 and len(outside) == 2
    holders = {}
    for function in "burn", "count":
        for call in verb_json(krait, "report", run.path, "--why", function, "--limit", "0")["slowest"]:
            holders.setdefault(call["tid"], set()).update(row["by_tid"] for row in call["waits"] if row["state"] == "gil" and row["by_tid"])
    assert all(holders[tid] and not holders[tid] & outside for tid in inside)
    assert all(holders[tid] and not holders[tid] & inside for tid in outside)


@pytest.mark.few_pythons
def test_a_wait_in_which_the_recording_is_switched_on_is_behind_the_stack_that_this_states(record, python):
    """The stack is stated by the thread that switches on, the wait by who waits, when it is over."""
    run = burning(
        record,
        python,
        f"""
        sys.path.insert(0, {str(BUILD / 'python')!r})
        import krait
        def sleeper():
            while not done:
                time.sleep(0.001)
        def hook(event, arguments):
            if event == "sys._current_frames":  # the recording is on, the stacks are not stated yet
                time.sleep(0.01)
                burn(0.03)  # and the sleeper waits
        sys.setswitchinterval(100)
        done = []
        other = thread(sleeper)
        sys.addaudithook(hook)
        for i in range(5):
            krait.pause()
            krait.resume()
        done.append(1)
        other.join()
        """,
    )
    (sleeper,) = [t for t in run.main.threads if t.tid != run.main.pid]
    assert any(e.name == "gil:wait" for e in sleeper.events) and run.lost == 0


@pytest.mark.pythons(most=(3, 10))  # these look for a method's class, whose functions' code an audit hook may see
def test_a_stack_within_whose_naming_the_recording_is_switched_off_and_on_is_behind_the_one_that_this_states(record, python):
    run = burning(
        record,
        python,
        f"""
        sys.path.insert(0, {str(BUILD / 'python')!r})
        import krait
        def hook(event, arguments):
            if event == "object.__getattr__" and arguments[1] == "__code__" and not seen:
                seen.append(1)
                krait.pause()
                krait.resume()
        seen = []
        krait.pause()
        class Unseen:
            def method(self):
                krait.resume()
        sys.addaudithook(hook)
        Unseen().method()
        print(seen)
        """,
    )
    assert run.stdout.strip() == "[1]" and run.lost == 0


@pytest.mark.few_pythons
def test_after_a_loss_the_stack_is_said_before_the_next_call(record, python):
    """The collector is stopped for a while; then a thread's first event is of the GIL as often as not."""
    run = record.text(
        python,
        BURN
        + EMPTIED
        + textwrap.dedent("""
        import signal
        def leaf(): sum(range(300))
        def deep(n, i):
            if n: return deep(n - 1, i)
            while not over:
                leaf()
                calls[i] += 1
        def more_calls(n):
            until = [done + n for done in calls]
            while any(done < n for done, n in zip(calls, until)): time.sleep(0.001)
        over, calls = [], [0, 0]
        made = [thread(deep, 5, i) for i in range(2)]
        for _ in range(4):
            os.kill(os.getppid(), signal.SIGSTOP)
            more_calls(5000)
            os.kill(os.getppid(), signal.SIGCONT)
            wait_for_krait()
            more_calls(100)
        over.append(True)
        for t in made: t.join()
        """),
        options=["--ring-size", "64K", "--buffer-size", "64K"],
    )
    firsts = []
    for t in run.main.threads:
        for at in t.after_losses:
            firsts.append([e.name for e in t.events[at:] if e.name not in GIL][:1])
    assert run.lost and len(firsts) >= 4 * 2
    assert {name for names in firsts for name in names} <= {"python:frame", "python:stack"}


def told_waits(process):
    """How many waits the metadata's env tells; None where it does not."""
    told = re.search(r"^    gil_waits = (\d+);$", process.metadata, re.M)
    return int(told[1]) if told else None


@pytest.mark.few_pythons
def test_the_metadata_tells_how_many_waits_there_are(record, python):
    for text, least in [("other = thread(burn, 0.1); burn(0.1); other.join()", 1), ("burn(0.05)", 0)]:
        process = burning(record, python, text).main
        there = sum(e.name == "gil:wait" for _, _, e in gil_events(process))
        assert told_waits(process) == there >= least


def has_waits_so_far(trace):
    """Of any process: there is none yet until the collector has come by."""
    threads = [t for process in Recording(trace, torn=True).processes for t in process.threads]
    return any(e.name == "gil:wait" for t in threads for e in t.events)


def test_the_metadata_of_a_recording_that_goes_on_tells_no_waits(record, any_python):
    text = BURN + "print('ready', flush=True); other = thread(burn, 0.2); burn(0.2); other.join(); sys.stdin.read()"
    process, trace = record.start(any_python, record.script(text), stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    while not has_waits_so_far(trace):
        time.sleep(0.05)
    assert told_waits(Recording(trace, torn=True).main) is None
    process.communicate()
    assert told_waits(Recording(trace).main) > 0


@pytest.mark.few_pythons
def test_no_gil_leaves_it_out(record, python):
    run = burning(record, python, "other = thread(burn, 0.1); burn(0.1); other.join()", options=["--no-gil"])
    assert not gil_events(run.main)


def krait_program(python, record, text, *args):
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    result = python.run(record.script(BURN + textwrap.dedent(text)), *args, env=env, cwd=record.folder, timeout=60)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.few_pythons
def test_a_recording_that_starts_among_waiting_threads_has_their_waits(record, python, tmp_path):
    """Without the preloaded library; three recordings, the second without the GIL; threads wait all the time."""
    krait_program(
        python,
        record,
        """
        import krait
        turns = [0, 0]
        def forever(i):
            while True:
                burn(0.001)
                turns[i] += 1
        made = [thread(forever, i) for i in range(2)]
        for n in range(3):
            with krait.recording(sys.argv[1] + str(n), gil=n != 1):
                for _ in range(2):  # waits of before it are over, then the first that it has
                    before = list(turns)
                    while any(now == was for now, was in zip(turns, before)): burn(0.01)
                burn(0.1)
        os._exit(0)
        """,
        tmp_path / "trace",
    )
    for n in range(3):
        process = Recording(f"{tmp_path}/trace{n}").check(ended=False).main
        assert bool(gil_events(process)) == (n != 1)
        if n != 1:
            first = {tid: waits[0].begin for tid, waits in waits_of(process).items()}
            assert len(first) == 3
            check_one_holder(process, since=max(first.values()))  # until then one waited that was not seen
            assert waited(process) > 0.05


@pytest.mark.few_pythons
def test_threads_that_wait_when_the_program_ends_do_not_keep_it(record, python):
    run = burning(
        record,
        python,
        "for _ in range(3): threading.Thread(target=burn, args=(60,), daemon=True).start()\nburn(0.2)",
        ended=False,
        timeout=30,
    )
    assert waited(run.main) > 0.1


def test_text_of_the_events_is_babeltraces(record, any_python, krait):
    run = burning(record, any_python, "other = thread(burn, 0.2); burn(0.2); other.join()")
    ours = subprocess.run([krait, "cat", run.path], capture_output=True, text=True)
    theirs = subprocess.run(["babeltrace2", run.path], capture_output=True, text=True)
    assert theirs.returncode == 0 and not theirs.stderr
    assert ours.stdout == theirs.stdout and len(re.findall(r"gil:wait: .*holder = \d+", ours.stdout)) > 4


def test_the_commands_of_the_page_work(krait, any_python, tmp_path):
    outputs = {line.split()[1]: run.stdout for line, run in run_page("gil.md", krait, any_python, tmp_path).items()}
    assert re.search(r"GIL +waited for .* by 4 threads\n +held by another thread .*, free .*\n +most in python-[01]: ", outputs["info"])
    assert outputs["cat"].count('"holder":') == 3
    said = set(re.findall(r"^\| `(gil:\w+)`", page_text("gil.md"), re.M))
    assert said == GIL | {"gil:interpreter"}


def test_the_agent_calls_what_it_redirects_by_its_own_table(tmp_path):
    """Even if a distribution compiles everything with -fno-plt: to the addresses that this calls, an executable without PIE may have
    given the entries of its own table, which lead back to the agent."""
    (row,) = (row for row in json.loads((BUILD / "compile_commands.json").read_text()) if row["output"].endswith("gil.c.o") and "_agent" in row["output"])
    command = row["command"].replace(" -std=", " -fno-plt -std=").replace(row["output"], str(tmp_path / "gil.o"))
    subprocess.run(command, shell=True, cwd=row["directory"], check=True, timeout=60)
    subprocess.run(["cc", "-shared", "-o", "gil.so", "gil.o"], cwd=tmp_path, check=True, timeout=60)
    slots = subprocess.run(["readelf", "-rW", "gil.so"], cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True).stdout
    calls = re.findall(r" R_[A-Z0-9]+(?:_64)?_(\w+) +\w+ +(pthread_cond_signal|pthread_cond_wait|pthread_cond_timedwait|pthread_mutex_lock)\b", slots)
    assert len(calls) == 4 and {how[:9] for how, _ in calls} == {"JUMP_SLOT"}
