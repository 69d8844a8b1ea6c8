# SPDX-License-Identifier: Apache-2.0
"""A program that has to wait for its CPU each time it is woken up, and what the kernel says of it."""

import pathlib
import time

PINNED = "import os, threading, time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
HOG = PINNED + "print(os.getpid(), flush=True)\nwhile True: pass\n"
NAPS = (
    PINNED
    + """
def works():
    end = time.thread_time() + 0.001  # stands still while the thread is off the CPU
    while time.thread_time() < end: pass
def naps():
    while True:
        works()
        time.sleep(0.004)
def waits():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
os.nice(10)
threading.Thread(target=waits, daemon=True).start()
print(os.getpid(), flush=True)
naps()
"""
)
HOGS = 2


def start(programs, python):
    """The program; hogs run on its CPU."""
    for _ in range(HOGS):
        programs.start(python, HOG)
    return programs.start(python, NAPS)


class Kept:
    """The share of the time in which the program's main thread ran or was ready to, by the kernel's count."""

    def __init__(self, pid):
        self.path = pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat")
        self.begin = self.now()

    def now(self):
        ran, ready, _ = self.path.read_text().split()
        return time.monotonic_ns(), int(ran) + int(ready)

    def share(self):
        (begin, before), (end, after) = self.begin, self.now()
        return (after - before) / (end - begin)
