# SPDX-License-Identifier: Apache-2.0
"""What krait is attached to.

    attach_program.py gaps THREADS    each thread looks at the clock without end; prints the gaps when its input ends
    attach_program.py work            works in turns (turns.py)
"""

import json
import os
import sys
import threading
import time

import turns

LEAST_NS = 20_000  # a shorter gap is no pause


def watch(gaps, ended):
    now = time.monotonic_ns
    last = now()
    while not ended:
        t = now()
        if t - last > LEAST_NS:
            gaps.append((last, t))
        last = t


def note_gaps(count):
    """Threads hand over the GIL every 0.1 ms, so that each notices more than others' turns."""
    gaps, ended = [[] for _ in range(count)], []
    sys.setswitchinterval(1e-4)
    others = [threading.Thread(target=watch, args=(of, ended)) for of in gaps[1:]]
    for thread in others:
        thread.start()
    threading.Thread(target=lambda: ended.append(sys.stdin.read())).start()
    print(os.getpid(), flush=True)
    watch(gaps[0], ended)
    for thread in others:
        thread.join()
    print(json.dumps(gaps), flush=True)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def work():
    """Calls, allocations of all sizes, exceptions, generators and opened files."""
    fib(10)
    text = json.dumps([{"name": str(i), "values": list(range(20))} for i in range(20)])
    json.loads(text)
    b"".join(bytes(n) for n in range(0, 4000, 100))
    try:
        int("x")
    except ValueError:
        pass
    with open(__file__) as file:
        file.read()


if sys.argv[1] == "gaps":
    note_gaps(int(sys.argv[2]))
else:
    turns.serve(lambda seconds: turns.rates(work, seconds))
