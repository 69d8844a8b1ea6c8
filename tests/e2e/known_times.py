# SPDX-License-Identifier: Apache-2.0
"""What programs say in which the tests know how long each thread waits and computes."""

MS = 1_000_000
TICK = 10 * MS  # what the kernel's counts of /proc/stat are told in

# named() runs work in a thread of that name. spin() computes for so many seconds of its thread's own clock, and returns how
# many nanoseconds that took, and how many of those the host of a virtual machine took from its CPUs: the thread's clock
# leaves them out, to the kernel's switches it is on its CPU all the while (proc_stat(5), "steal").
KNOWN = """
import json, os, socket, subprocess, sys, threading, time

def named(name, work):
    def run():
        open("/proc/thread-self/comm", "w").write(name)
        work()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def stolen():
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))

def spin(seconds):
    begun, taken, until = time.perf_counter_ns(), stolen(), time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return time.perf_counter_ns() - begun, stolen() - taken
"""


def assert_spun(thread, seconds, wall, stolen):
    """A thread of `krait states` that did nothing but spin(seconds), which returned the other two."""
    wanted, on_cpu = seconds * 1000 * MS, thread["on_cpu_ns"] + thread.get("interrupt_ns", 0)
    assert wanted - MS <= on_cpu <= wanted * 1.02 + stolen + TICK, (thread, stolen)
    assert wall - MS <= on_cpu + thread["ready_ns"], (thread, wall)


def right_once(record, check, tries=5):
    """Makes a recording and checks it, anew until it is as the program meant. A virtual machine's host, or its other work, may
    keep any thread waiting for a while: what krait tells then is right, and other than what was meant."""
    for left in reversed(range(tries)):
        made = record()
        try:
            return check(made)
        except AssertionError:
            if not left:
                raise
