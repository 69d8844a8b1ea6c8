# SPDX-License-Identifier: Apache-2.0
"""sampling_program.py calls|tasks|FRAMES: works in turns (turns.py), with tasks of asyncio, without, or below so many more frames. Calls alternate: never is d() below a()."""

import asyncio
import sys
import time

from turns import rates, serve


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
    for _ in range(50):
        a()
        c()
        for _ in ga():
            pass
        for _ in gc():
            pass
        ma()
        mc()


TASKS = 4


async def worker(end, counts):
    while time.perf_counter() < end:
        turns()
        counts.append(1)
        await asyncio.sleep(0)


async def workers(seconds):
    counts, end = [], time.perf_counter() + seconds
    await asyncio.gather(*[worker(end, counts) for _ in range(TASKS)])
    return len(counts)


loop = asyncio.new_event_loop()


def with_tasks(seconds):
    begin, cpu = time.perf_counter(), time.process_time()
    count = loop.run_until_complete(workers(seconds))
    return count / (time.perf_counter() - begin), count / (time.process_time() - cpu)


def below(frames, seconds):
    return below(frames - 1, seconds) if frames else rates(turns, seconds)


serve(with_tasks if sys.argv[1] == "tasks" else (lambda seconds: below(int(sys.argv[1]), seconds)) if sys.argv[1].isdigit() else lambda seconds: rates(turns, seconds))
