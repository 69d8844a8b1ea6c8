# SPDX-License-Identifier: Apache-2.0
"""What krait top takes of a CPU for itself while a program calls as fast as it can: by ways to look and frames a second.

    python bench/top.py [PYTHON [SECONDS]]      prints a table

Each way watches the same running program. krait's own CPU time is what the kernel has counted from its second second on:
its start, 20 to 200 ms of CPU time once, is not what it takes for as long as it watches.
"""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import lib

FLAT = """
import os
def f(): pass
def g():
    for i in range(1000): f(); len("x")
print(os.getpid(), flush=True)
while True: g()
"""
# Of its calls, a third is without callees, and each is one of a recursion.
NESTED = """
import os
def g(depth):
    if depth: h(depth); h(depth)
def h(depth): g(depth - 1)
print(os.getpid(), flush=True)
while True: g(10)
"""
START_SECONDS = 1
EVERY_CALL = ["--exact", "--max-overhead", "100"]
NESTED_WAYS = [("every call, calls within calls, terminal", EVERY_CALL, 10)]
WAYS = [
    ("krait record, into files", None, 0),
    ("every call, terminal", EVERY_CALL, 1),
    ("every call, terminal", EVERY_CALL, 10),
    ("every call, --json", [*EVERY_CALL, "--json"], 10),
    ("every call, --classic", [*EVERY_CALL, "--classic"], 10),
    ("every call, --max-overhead 5, terminal", ["--exact"], 10),
    ("samples, 100 Hz, terminal", [], 1),
    ("samples, 100 Hz, terminal", [], 10),
    ("samples, 1000 Hz, terminal", ["--rate", "1000"], 10),
]


def words_of(options, frames, pid, folder):
    if options is None:
        return [lib.KRAIT, "record", "-q", "--pid", pid, "-o", folder]
    return [lib.KRAIT, "top", *options, "--interval", "%dms" % (1000 // frames), pid]


def run(options, frames, pid, folder, seconds):
    """(what it printed, its CPU time after the start and how long that was)"""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    piped = options is None or "--json" in options or "--classic" in options
    out = subprocess.PIPE if piped else side
    child = subprocess.Popen([str(w) for w in words_of(options, frames, pid, folder)], stdin=side, stdout=out, stderr=subprocess.DEVNULL)
    os.close(side)
    text = []
    fd = child.stdout.fileno() if piped else main
    reader = threading.Thread(target=read_all, args=(fd, text))
    reader.start()
    time.sleep(START_SECONDS)
    before, begin = cpu_seconds(child.pid), time.monotonic()
    time.sleep(seconds)
    used, took = cpu_seconds(child.pid) - before, time.monotonic() - begin
    child.send_signal(signal.SIGTERM)
    child.wait()
    reader.join()
    os.close(main)
    return b"".join(text).decode(), used, took


def cpu_seconds(pid):
    """Of all its threads until now, as /proc/PID/task/TID/schedstat tells in nanoseconds."""
    return sum(int(open("/proc/%d/task/%s/schedstat" % (pid, tid)).read().split()[0]) for tid in os.listdir("/proc/%d/task" % pid)) / 1e9


def read_all(fd, text):
    try:
        while more := os.read(fd, 1 << 20):
            text.append(more)
    except OSError:  # EIO: the terminal's other end is closed
        pass


def events_per_second(options, text, folder):
    """Of the whole time. Of a recording: how many there are."""
    if options is None:
        return json.loads(lib.quiet([lib.KRAIT, "info", "--json", folder]).stdout)["events"]
    if "--json" in options:
        last = json.loads(text.splitlines()[-1])
        return last["events"] * 1e9 / last["time_ns"]
    found = [int(n.replace(",", "")) for n in re.findall(r"exact: ([\d,]+) events?/s", text)]
    return sum(found) / len(found) if found else 0


def rows(python, seconds, code, ways):
    program = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(program.stdout.readline())
    try:
        for number, (name, options, frames) in enumerate(ways):
            folder = lib.OUT / ("top-%d-%d" % (os.getpid(), number))
            text, used, took = run(options, frames, pid, folder, seconds)
            events = events_per_second(options, text, folder) / (took + START_SECONDS if options is None else 1)
            each = "%.1f" % (used / took / events * 1e9) if events > 1e6 else ""
            print("| %s | %s | %.1f | %.1f %% | %s |" % (name, frames or "", events / 1e6, used / took * 100, each), flush=True)
            lib.quiet(["rm", "-rf", folder])
    finally:
        program.kill()
        program.wait()


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    lib.OUT.mkdir(parents=True, exist_ok=True)
    print("| way | frames/s | million events/s | krait's CPU | ns an event |\n|---|---:|---:|---:|---:|")
    rows(python, seconds, FLAT, WAYS)
    rows(python, seconds, NESTED, NESTED_WAYS)


main()
