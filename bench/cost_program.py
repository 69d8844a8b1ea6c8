# SPDX-License-Identifier: Apache-2.0
"""A program whose parts say by their own clock how long they take, for bench/cost.py.

    cost_program.py

`plain` calls nothing. The others spend most of their time in calls of short functions, which recording makes longer. All
are timed in turn; the times are printed as JSON, the median of each, in nanoseconds.
"""

import json
import statistics
import time

LOOPS = 2000
ROUNDS = 60


def leaf(x):
    return x


def middle(x):
    return leaf(x) + leaf(x)


def plain():
    x = 0
    for i in range(LOOPS):
        x += i * i % 7
        x ^= i
    return x


def python_calls():
    for i in range(LOOPS):
        leaf(i)


def nested_calls():
    for i in range(LOOPS // 4):
        middle(i)


def c_calls():
    word = "word"
    for i in range(LOOPS):
        word.isalpha()


def steps():
    for i in range(LOOPS):
        yield i


def generator_steps():
    for _ in steps():
        pass


PARTS = [plain, python_calls, nested_calls, c_calls, generator_steps]


def main():
    times = {part.__name__: [] for part in PARTS}
    for _ in range(ROUNDS):
        for part in PARTS:
            begin = time.perf_counter_ns()
            part()
            took = time.perf_counter_ns() - begin
            times[part.__name__].append(took)
    print(json.dumps({name: statistics.median(rounds) for name, rounds in times.items()}))


main()
