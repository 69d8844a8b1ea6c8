# SPDX-License-Identifier: Apache-2.0
"""A program that works in turns, when it is told to, and says how much it got done: so what is measured alternates within one run.

In the program: turns.serve(work). In the benchmark: turns.Worker(command).turn(seconds). For every Python from 3.8 on.
"""

import os
import subprocess
import sys
import time


def rates(work, seconds):
    """How often work() can be done in a second of wall time, and of CPU time."""
    count = 0
    begin, cpu = time.perf_counter(), time.process_time()
    end = begin + seconds
    while time.perf_counter() < end:
        work()
        count += 1
    return count / (time.perf_counter() - begin), count / (time.process_time() - cpu)


def serve(turn):
    """turn(seconds) for each line of the input, which says how long; prints what it returns."""
    print(os.getpid(), flush=True)
    for line in iter(sys.stdin.readline, ""):
        print(*turn(float(line)), flush=True)


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen([str(w) for w in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())

    def turn(self, seconds):
        """{wall, cpu: work done in a second of each}"""
        self.process.stdin.write("%g\n" % seconds)
        self.process.stdin.flush()
        return dict(zip(("wall", "cpu"), map(float, self.process.stdout.readline().split())))

    def end(self):
        """What it prints at its end."""
        return self.process.communicate(timeout=60)[0]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate()
