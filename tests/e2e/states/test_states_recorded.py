# SPDX-License-Identifier: Apache-2.0
"""krait states of krait's own kernel recordings: a program that waits for known things, for known times."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import verb_json
from kernel_oracle import Oracle, text_of
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from known_times import KNOWN, MS, assert_spun, right_once
from running import wait_for
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
    # Python sleeps until a time; on a busy machine it may wait for a CPU before it begins to.
    assert first["blocked_timer_ns"] > 200 * MS and sum(first[s] for s in ("blocked_timer_ns", "ready_ns", "user_ns", "system_ns")) >= 300 * MS
    assert other["unknown_ns"] == 0 and other["gone_ns"] > 300 * MS


def test_a_thread_that_waits_all_the_time_waits_for_what_it_waited_for_before(kernel, krait):  # noqa: F811
    """It has no event but the state dump's: which system call it is in."""
    waits = {  # the kernel's function in which it waits, and the program
        "blocked_timer": ("nanosleep", "import time; time.sleep(600)"),
        "blocked_lock": ("futex", "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"),
        "blocked_network": ("accept", "import socket; socket.create_server(('127.0.0.1', 0)).accept()"),
        "blocked_other": ("pipe_read", "input()"),
    }
    programs = {state: subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE) for state, (_, text) in waits.items()}
    stopped = subprocess.Popen(["sleep", "600"])
    try:
        for state, (function, _) in waits.items():
            wait_for(lambda: function in Path(f"/proc/{programs[state].pid}/wchan").read_text(), function)
        stopped.send_signal(signal.SIGSTOP)
        wait_for(lambda: ") T " in Path(f"/proc/{stopped.pid}/stat").read_text(), "the stop")
        run = kernel("pass\n")
    finally:
        for program in (*programs.values(), stopped):
            program.kill()
            program.communicate()
    threads = verb_json(krait, "states", run.path, "--all")["threads"]
    found = {t["tid"]: {key for key, ns in t.items() if key.startswith("blocked_") and ns and key != "blocked_ns"} for t in threads}
    assert {state: found[program.pid] for state, program in programs.items()} == {state: {f"{state}_ns"} for state in programs}
    assert found[stopped.pid] == {"blocked_stopped_ns"}
    sleeper = programs["blocked_timer"].pid
    one = verb_json(krait, "states", run.path, "--all", "--by", "interval", "--thread", sleeper)
    assert [(i["state"], i["syscall"]) for i in one["intervals"]][-1] == ("blocked_timer", "clock_nanosleep")
