# SPDX-License-Identifier: Apache-2.0
"""Works for some seconds, then prints turns a second of wall time and of CPU time. Calls alternate: never is d() below a()."""

import os
import sys
import time


def b():
    pass


def d():
    pass


def a():
    b()


def c():
    d()


def ga():
    yield b()


def gc():
    yield d()


def fa(x):
    return b()


def fc(x):
    return d()


def ma():
    list(map(fa, (1,)))


def mc():
    list(map(fc, (1,)))


def turns():
    for _ in range(500):
        a()
        c()
        for _ in ga():
            pass
        for _ in gc():
            pass
        ma()
        mc()


def main(seconds):
    count = 0
    begin, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        turns()
        count += 1
    print(count / (time.perf_counter() - begin), count / (time.process_time() - cpu))


print(os.getpid(), flush=True)
sys.stdin.readline()
main(float(sys.argv[1]))
