# SPDX-License-Identifier: Apache-2.0
"""What a thread loses to whoever wakes up on its CPU a thousand times a second: to one that does nothing there, by each way to be woken
up, and to krait's sampler. The thread looks at the clock all the time, in a C function that Python calls, and sums the pauses.

The ways take turns, so that what else the machine does meets all of them. The least that any sampler can cost on this machine is what the
ways cost that do nothing.
"""

import os
import shutil
import signal
import subprocess
import time

import lib

TURNS, QUICK_TURNS = 60, 10
SECONDS = 0.08  # of a turn
GAP = 0.02  # until a sampler has stopped or goes on
ALONE, SIGNAL = "nothing", "a signal in the thread"
WAKERS = {"a process that sleeps": "wake_by_sleeping", "a process with two timers": "wake_by_two_timers"}
KRAIT = "krait record --sample"


class Program:
    """The thread that loses time."""

    def __init__(self, command):
        self.process = subprocess.Popen([*command, "program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())

    def lost(self, how):
        self.process.stdin.write("%g %s\n" % (SECONDS, how))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def turn(program, name, others):
    """The share of its time that the program loses in one way; all other ways stand still."""
    other = others.get(name)
    if other:
        other.send_signal(signal.SIGCONT)
        time.sleep(GAP)
    share = program.lost("signal" if name == SIGNAL else "alone")
    if other:
        other.send_signal(signal.SIGSTOP)
        time.sleep(GAP)
    return share


def run(python, options):
    """{name of a way: shares that were lost}"""
    cpu = max(os.sched_getaffinity(0))
    library = lib.compile_c("wakeups.so", [lib.HERE / "wakeups.c"], ["-shared", "-fPIC"])
    command = [*python.prefix, python.path, lib.HERE / "wakeups_program.py", library, cpu]
    command = [str(w) for w in command]
    folder = lib.OUT / "wakeups"
    shutil.rmtree(folder, ignore_errors=True)
    program = Program(command)
    others = {name: subprocess.Popen([*command, way]) for name, way in WAKERS.items()}
    others[KRAIT] = subprocess.Popen([lib.KRAIT, "record", "-q", "--sample", "1000", "--pid", str(program.pid), "-o", folder])
    time.sleep(1)
    for other in others.values():
        other.send_signal(signal.SIGSTOP)
    names = [ALONE, SIGNAL, *others]
    shares = {name: [] for name in names}
    for i in range(QUICK_TURNS if options.quick else TURNS):
        for k in range(len(names)):
            name = names[(i + k) % len(names)]
            shares[name].append(turn(program, name, others))
    program.process.kill()
    for other in others.values():
        other.kill()
    for process in (program.process, *others.values()):
        process.wait()
    return {"python": python.version, "shares": shares}
