# SPDX-License-Identifier: Apache-2.0
"""krait states of krait's own kernel recordings: a program that waits for known things, for known times."""

import json

import pytest

from conftest import verb_json
from kernel_oracle import Oracle, text_of
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from known_times import KNOWN, MS, assert_spun, right_once
from states_run import times_of

pytestmark = pytest.mark.usefixtures("alone")
WAITS = KNOWN + """
spun = []

def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0.2, lock.release).start()
    lock.acquire()

def wait_for_socket():
    ours, theirs = socket.socketpair()
    threading.Timer(0.15, theirs.send, [b"x"]).start()
    ours.recv(1)

def wait_for_pipe():
    ours, theirs = os.pipe()
    threading.Timer(0.1, os.write, [theirs, b"x"]).start()
    os.read(ours, 1)

named("sleeper", lambda: time.sleep(0.3))
named("parent", lambda: os.waitpid(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "0.25"), 0))
named("locker", wait_for_lock)
named("receiver", wait_for_socket)
named("reader", wait_for_pipe)
named("spinner", lambda: spun.extend(spin(0.25)))
print(json.dumps(spun))
"""
WAITED = {
    "sleeper": ("blocked_timer", 0.3),
    "parent": ("blocked_child", 0.25),
    "locker": ("blocked_lock", 0.2),
    "receiver": ("blocked_network", 0.15),
    "reader": ("blocked_other", 0.1),
}


def assert_waits(found, spun):
    threads = {t["name"]: t for t in sorted(found, key=lambda t: -t["tid"])}  # threads that they start inherit the name
    for name, (state, seconds) in WAITED.items():
        told = threads[name][f"{state}_ns"]
        wanted = round(seconds * 1000) * MS
        # The thread that wakes it may itself have to wait for a CPU; the kernel's timer does not.
        late = max(MS, wanted // 50) if name == "sleeper" else 100 * MS
        assert wanted - MS <= told <= wanted + late, (name, threads[name])
        others = sum(v for k, v in threads[name].items() if k.startswith("blocked_") and k not in ("blocked_ns", f"{state}_ns"))
        assert others < 100 * MS, (name, threads[name])
    assert_spun(threads["spinner"], 0.25, *spun)
    assert len({threads[name]["pid"] for name in WAITED}) == 1


def test_a_thread_waits_for_what_the_program_says(krait, kernel):  # noqa: F811
    def record():
        run = kernel(WAITS)
        return verb_json(krait, "states", run.path / "kernel")["threads"], json.loads(run.stdout)

    right_once(record, lambda made: assert_waits(*made))


@pytest.mark.long
def test_a_recording_of_ours_is_as_its_text_says(krait, kernel):  # noqa: F811
    waits = kernel(WAITS)
    oracle = Oracle(text_of(krait, waits.path / "kernel"))
    found = verb_json(krait, "states", waits.path / "kernel")
    ours = {t.tid: t.sums(oracle.end) for t in oracle.lives}
    told = {t["tid"]: times_of(t) for t in found["threads"]}
    assert len(told) > 20
    for tid, times in told.items():
        assert {k: v for k, v in ours[tid].items() if v} == times, tid
    calls = sum(len(v) for v in oracle.calls.values())
    assert sum(c["calls"] for c in found["syscalls"]) == calls > 1000


NAMED = """
import threading, time

def work(comm=None):
    if comm:
        open("/proc/thread-self/comm", "w").write(comm)
    time.sleep(0.01)

threads = [threading.Thread(target=work, name="refresher"), threading.Thread(target=work, args=("of-its-own",), name="other")]
for thread in threads:
    thread.start()
    thread.join()
"""


def test_threads_have_pythons_names_but_for_those_with_one_of_their_own_in_the_kernel(krait, kernel):  # noqa: F811
    trace = kernel(NAMED).path

    def names(path, *options):
        return {t["name"] for t in verb_json(krait, "states", path, "--by", "thread", *options)["threads"]}

    assert {"refresher", "of-its-own"} <= names(trace) and "other" not in names(trace)
    assert names(trace, "--thread", "refresher") == {"refresher"}
    assert names(trace, "--thread", "other") == names(trace, "--thread", "of-its-own") == {"of-its-own"}
    [main] = [t for t in verb_json(krait, "states", trace, "--by", "thread", "--thread", "MainThread")["threads"] if t["name"].startswith("python")]
    assert main["tid"] == main["pid"] and main["name"] == main["process"]  # the process's name says more


SIGNALS = """
import signal
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
for _ in range(50):
    sum(range(1_000_000))
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_thread_goes_on_computing_after_a_signals_handler(krait, kernel):  # noqa: F811
    """It makes no other system call for a long while."""
    run = kernel(SIGNALS)
    [main] = [t for t in verb_json(krait, "states", run.path / "kernel")["threads"] if t["tid"] == run.main.pid]
    assert main["user_ns"] > main["system_ns"] > 0, main


EXECS = """
import os, sys, threading

def go():
    print(threading.get_native_id(), flush=True)
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(0.3)"])

thread = threading.Thread(target=go)
thread.start()
thread.join()
"""


def test_a_thread_that_executes_goes_on_under_the_first_ones_number(krait, kernel):  # noqa: F811
    run = kernel(EXECS)
    oracle = Oracle(text_of(krait, run.path / "kernel"))
    lives = {t.tid: t.sums(oracle.end) for t in oracle.lives}
    threads = {t["tid"]: t for t in verb_json(krait, "states", run.path / "kernel")["threads"]}
    first, other = threads[run.main.pid], threads[int(run.stdout)]
    for thread in first, other:
        assert times_of(thread) == {k: v for k, v in lives[thread["tid"]].items() if v}
    assert first["blocked_timer_ns"] >= 300 * MS
    assert other["unknown_ns"] == 0 and other["gone_ns"] > 300 * MS
