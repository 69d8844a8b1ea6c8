# SPDX-License-Identifier: Apache-2.0
"""python3 wakeups_program.py LIBRARY CPU WAY: on that CPU, wakes up in one way for ever; or, with the way "program", answers each line
"SECONDS HOW" with the share of the time that it lost, HOW being "signal" or "alone". See bench/wakeups.py."""

import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1])
library.lost.argtypes, library.lost.restype = [ctypes.c_uint64], ctypes.c_uint64
os.sched_setaffinity(0, {int(sys.argv[2])})


def answer(line):
    seconds, how = line.split()
    if how == "signal":
        library.signal_begin()
    ns = int(float(seconds) * 1e9)
    print(library.lost(ns) / ns, flush=True)
    if how == "signal":
        library.signal_end()


if sys.argv[3] == "program":
    print(os.getpid(), flush=True)
    for line in iter(sys.stdin.readline, ""):
        answer(line)
else:
    getattr(library, sys.argv[3])()
