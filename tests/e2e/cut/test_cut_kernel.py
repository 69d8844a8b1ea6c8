# SPDX-License-Identifier: Apache-2.0
"""krait cut of a recording with the kernel: states, wall times and critical paths of the part are those of the range of the whole."""

import json
import subprocess

import pytest

from kernel_recorded import ROOMY, tracefs  # noqa: F401  (tracefs: a fixture)

pytestmark = pytest.mark.usefixtures("alone")
PROGRAM = """
import threading, time
def busy():
    end = time.time() + 0.8
    while time.time() < end: sum(range(2000))
def sleeper(): time.sleep(0.8)
threads = [threading.Thread(target=f, name=f.__name__) for f in (busy, sleeper)]
for thread in threads: thread.start()
time.sleep(0.3)
late = threading.Thread(target=time.sleep, args=(0.2,), name="late")
late.start()
late.join()
for thread in threads: thread.join()
"""
TABLES = ("thread", "process", "cpu", "syscall", "process-syscall", "latency")
OF_THE_WHOLE = {"duration_ns", "begin_ns", "time_ns", "kernel.stolen_ns"}  # of the trace, not of the range


def flat(value, begin, path=""):
    """The numbers and texts of a JSON value by their paths; times count from the range's begin."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, begin, f"{path}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from flat(inner, begin, f"{path}[{i}]")
    elif path[1:] not in OF_THE_WHOLE:
        yield path, value - begin if path.endswith(".time_ns") else value


class Told:
    def __init__(self, krait, trace, begin=0, scope=()):
        self.krait, self.trace, self.begin, self.scope = krait, str(trace), begin, scope

    def json(self, verb, *options):
        run = subprocess.run([self.krait, verb, self.trace, "--json", *options, *self.scope], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def rows(self, verb, *options):
        return dict(flat(self.json(verb, *options), self.begin))

    def threads(self):
        return {t["tid"]: t for t in self.json("states", "--by", "thread")["threads"]}


@pytest.fixture
def cut(krait, tmp_path):
    """Cuts a range, two numbers of nanoseconds, out of a recording: returns the range of the whole and the part. None: the end."""

    def run(whole, begin, end, name):
        scope = ("--from", f"{begin}ns", *(("--until", f"{end}ns") if end else ()))
        subprocess.run([krait, "cut", str(whole), *scope, "-o", tmp_path / name], check=True, capture_output=True, timeout=60)
        return Told(krait, whole, begin, scope), Told(krait, tmp_path / name)

    return run


def assert_same(whole, part):
    for table in TABLES:
        assert part.rows("states", "--by", table, "--all") == whole.rows("states", "--by", table, "--all"), table
    assert part.rows("report", "--by", "thread") == whole.rows("report", "--by", "thread")
    # Behind --until a path may lead to other threads, and over the network: the whole alone knows that.
    for tid in () if "--until" in whole.scope else whole.threads():
        assert part.rows("path", "--thread", str(tid)) == whole.rows("path", "--thread", str(tid)), tid


@pytest.mark.few_pythons
def test_the_threads_of_a_part_are_those_of_the_whole(krait, record, python, info, cut):
    whole = record.text(python, PROGRAM, options=("--kernel", *ROOMY)).path
    duration = info(whole)["duration_ns"]
    for i, (begin, end) in enumerate(((5, 7), (4, None), (2, 9))):
        of_whole, part = cut(whole, duration * begin // 10, end and duration * end // 10, f"part{i}")
        assert {"busy", "sleeper"} <= {t["name"] for t in part.threads().values()}
        assert all(t["pid"] and not t["unknown_ns"] for t in part.threads().values())
        assert_same(of_whole, part)
    # The part of a part: of the last one, which begins at two tenths.
    of_part, part = cut(part.trace, duration * 4 // 10, duration * 5 // 10, "of_part")
    assert {"busy", "sleeper"} <= {t["name"] for t in part.threads().values()}
    assert_same(of_part, part)
    assert subprocess.run(["babeltrace2", part.trace], capture_output=True, timeout=60).returncode == 0
