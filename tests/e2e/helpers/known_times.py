# SPDX-License-Identifier: Apache-2.0
"""What programs say in which the tests know how long each thread waits and computes."""

MS = 1_000_000

# named() runs work in a thread of that name. spin() computes for so many seconds of its thread's own clock, and returns how
# many nanoseconds that took, and at most how many of them the host of a virtual machine took: the thread's clock leaves them
# out, to the kernel's switches it is on its CPU all the while. The kernel counts what was taken in ticks (proc_stat(5),
# "steal"): at_most_stolen() is nothing as long as it told none.
KNOWN = """
import json, os, socket, subprocess, sys, threading, time

def named(name, work):
    def run():
        open("/proc/thread-self/comm", "w").write(name)
        work()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

def stolen():
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) * TICK

stolen_before = stolen()

def at_most_stolen(since):
    until = stolen()
    return until - since + TICK if until > stolen_before else 0

def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))

def spin(seconds):
    begin, taken = time.perf_counter_ns(), stolen()
    compute(seconds)
    return time.perf_counter_ns() - begin, at_most_stolen(taken)
"""

# wait_for_krait() waits until the krait that records the program has emptied all rings once more: it naps after each time.
EMPTIED = """
import os, time

def naps():
    with open(f"/proc/{os.getppid()}/status") as status:
        return int(status.read().split("\\nvoluntary_ctxt_switches:")[1].split()[0])

def wait_for_krait():
    before = naps()
    while naps() < before + 2:
        time.sleep(0.001)
"""


def assert_spun(thread, seconds, wall, stolen):
    """A thread of `krait states` that did nothing but spin(seconds), which returned the other two."""
    wanted, on_cpu = seconds * 1000 * MS, thread["on_cpu_ns"] + thread.get("interrupt_ns", 0)
    assert wanted - MS <= on_cpu <= wanted * 1.02 + stolen, (thread, stolen)
    assert wall - MS <= on_cpu + thread["ready_ns"], (thread, wall)


def right_once(record, check, tries=5):
    """Makes a recording and checks it, anew until it is as the program meant. A virtual machine's host, or its other work, may
    keep any thread waiting for a while: what krait tells then is right, and other than what was meant; a row that was meant may
    not be there at all."""
    for left in reversed(range(tries)):
        made = record()
        try:
            return check(made)
        except (AssertionError, LookupError):
            if not left:
                raise
