# SPDX-License-Identifier: Apache-2.0
"""What a recording that is switched off costs a program: instructions by callgrind, wall time in alternating runs.

    python3 bench/idle.py            prints a table; docs/benchmarks.md has one
"""

import os
import shutil
import statistics
import subprocess
import sys
import time

import lib

# Calls, allocations of all sizes, exceptions, generators and opened files; audit events reach krait also while it is off.
PROGRAM = """
import json, sys
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    fib(15)
    text = json.dumps([{"name": str(i), "values": list(range(20))} for i in range(100)])
    json.loads(text)
    b"".join(bytes(n) for n in range(0, 4000, 40))
    try: int("x")
    except ValueError: pass
    with open(__file__) as file: file.read()
for _ in range(int(sys.argv[1])): work()
"""
ROUNDS = 7


def command(python, path, times, idle, trace):
    words = [*python.prefix, python.path, path, str(times)]
    shutil.rmtree(trace, ignore_errors=True)
    return [lib.KRAIT, "record", "-q", "--idle", "-o", trace, "--", *words] if idle else words


def instructions(python, path, idle):
    """Of one round of the work: the difference of two runs, so that starts do not count."""
    counts = []
    for times in (10, 40):
        out, trace = lib.OUT / "idle.callgrind", lib.OUT / "idle-trace"
        words = command(python, path, times, idle, trace)
        at = words.index(python.path)
        words[at:at] = ["valgrind", "--tool=callgrind", "--callgrind-out-file=%s" % out]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        line = [text for text in done.stderr.splitlines() if "Collected :" in text]
        if done.returncode or not line:
            raise RuntimeError("callgrind: %s" % lib.last_line_of(done.stderr))
        counts.append(int(line[-1].rsplit(":", 1)[1]))
    return (counts[1] - counts[0]) / 30


def seconds(python, path, idle, times):
    words = [str(w) for w in command(python, path, times, idle, lib.OUT / "idle-trace")]
    begin = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - begin


def wall(python, path):
    """(without, with, the median of the ratios of neighbours), of long runs without the short ones' time."""
    rows = []
    for _ in range(ROUNDS):
        plain, idle = (seconds(python, path, i, 300) - seconds(python, path, i, 1) for i in (False, True))
        rows.append((plain, idle))
    return statistics.median(p for p, _ in rows), statistics.median(i for _, i in rows), statistics.median(i / p for p, i in rows)


def main():
    lib.OUT.mkdir(exist_ok=True)
    path = lib.OUT / "idle_program.py"
    path.write_text(PROGRAM)
    print("| Python | instructions, plain | idle | more | seconds, plain | idle | more |\n|---|---|---|---|---|---|---|")
    for python in lib.pythons():
        if sys.argv[1:] and not python.version.startswith(tuple(sys.argv[1:])):
            continue
        plain, idle = instructions(python, path, False), instructions(python, path, True)
        before, after, ratio = wall(python, path)
        print("| %s | %d | %d | %+.3f %% | %.3f | %.3f | %+.2f %% |"
              % (python.version, plain, idle, 100 * (idle / plain - 1), before, after, 100 * (ratio - 1)), flush=True)


if __name__ == "__main__":
    main()
