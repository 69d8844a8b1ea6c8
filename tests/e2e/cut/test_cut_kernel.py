# SPDX-License-Identifier: Apache-2.0
"""krait cut of a recording with the kernel: states, wall times and critical paths of the part are those of the range of the whole."""

import json
import re
import struct
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
OF_THE_WHOLE = {"duration_ns", "begin_ns", "time_ns", "kernel.stolen_ns"} | {"lost", "lost_events", "kernel.lost", "kernel.lost_events"}  # of the trace, not of the range


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


def assert_same(whole, part, *options):
    for table in TABLES:
        assert part.rows("states", "--by", table, *options) == whole.rows("states", "--by", table, *options), table
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
        assert_same(of_whole, part, "--all")
    # The part of a part: of the last one, which begins at two tenths.
    of_part, part = cut(part.trace, duration * 4 // 10, duration * 5 // 10, "of_part")
    assert {"busy", "sleeper"} <= {t["name"] for t in part.threads().values()}
    assert_same(of_part, part, "--all")
    assert subprocess.run(["babeltrace2", part.trace], capture_output=True, timeout=60).returncode == 0


def events_of(krait, trace, *names):
    """(ns since the trace's first event, event) of each with such a name."""
    wanted = " || ".join(f'name == "{name}"' for name in ("krait_steal", *names))  # its first one is the trace's first event
    run = subprocess.run([krait, "cat", str(trace), "--json", "--filter", wanted], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    events = [json.loads(line) for line in run.stdout.splitlines()]
    begin = int(events[0]["time_ns"])
    return [(int(event["time_ns"]) - begin, event) for event in events if event["event"] in names]


@pytest.mark.few_pythons
def test_a_part_within_one_wait_for_the_gil_is_of_that_wait(krait, record, python, cut):
    whole = record.text(python, PROGRAM, options=("--kernel", *ROOMY)).path
    begun, waits = {}, []
    for t, event in events_of(krait, whole, "gil:wait", "gil:take"):
        tid = event["packet_context"]["vtid"]
        if event["event"] == "gil:wait":
            begun[tid] = t
        elif tid in begun:
            waits.append((t - begun[tid], begun.pop(tid), tid))
    gil_ns = 0
    for i, (long_ns, begin, tid) in enumerate(sorted(waits, reverse=True)[:5]):
        of_whole, part = cut(whole, begin + long_ns // 4, begin + long_ns // 2, f"part{i}")
        assert part.threads()[tid] == of_whole.threads()[tid]
        gil_ns += part.threads()[tid]["gil_ns"]
    assert gil_ns > 0  # of one alone it may be none: a thread may have a CPU, and ask for the GIL


SLEEPERS = """
import threading, time
def sleeper():
    while True: time.sleep(0.0002)
for i in range(8): threading.Thread(target=sleeper).start()
"""


@pytest.mark.few_pythons
def test_the_states_of_a_part_that_begins_in_the_state_dump_are_those_of_the_whole(krait, record, python, cut):
    """Ends of system calls are recorded once it is over: who runs before that may be in another one by then."""
    sleeper = subprocess.Popen(["python3", "-c", SLEEPERS])
    try:
        whole = record.text(python, PROGRAM, options=("--kernel", *ROOMY)).path
    finally:
        sleeper.kill()
        sleeper.wait()
    told = events_of(krait, whole, "krait_dumped_wait", "lttng_statedump_end")
    of_whole, part = cut(whole, told[-2][0] + 1000, None, "part")
    assert part.rows("states", "--by", "process", "--all") == of_whole.rows("states", "--by", "process", "--all")


# No thread waits for the GIL.
ALONE = """
import subprocess, time
child = subprocess.Popen(["sleep", "0.8"])
end = time.time() + 0.8
while time.time() < end:
    sum(range(20000))
    time.sleep(0.001)
child.wait()
"""
HEAD = struct.Struct("<I16sIQQQQQQQI")  # magic, uuid, stream, instance, begin, end, content, size, sequence, discarded, CPU


def heads(path):
    stream, at = path.read_bytes(), 0
    while at < len(stream):
        head = HEAD.unpack_from(stream, at)
        yield head
        at += head[7] // 8


def lose(path, lost):
    """Takes packets out of a CPU's stream as if the kernel's ring had been full then: those for whose number, begin and end `lost` is true."""
    stream, out, number, gone, at = path.read_bytes(), b"", 0, 0, 0
    while at < len(stream):
        magic, uuid, cls, instance, begin, end, content, size, _, discarded, cpu = HEAD.unpack_from(stream, at)
        if lost(number, begin, end):
            gone += 100
        else:
            out += HEAD.pack(magic, uuid, cls, instance, begin, end, content, size, number, discarded + gone, cpu)
            out += stream[at + HEAD.size : at + size // 8]
        number += 1
        at += size // 8
    path.write_bytes(out)
    return gone


def test_a_part_tells_of_events_that_were_lost_where_it_begins_or_ends(krait, record, any_python, info, cut):
    """Who else has run and ended meanwhile, the whole may learn later."""
    whole = record.text(any_python, ALONE, options=("--kernel", *ROOMY)).path
    streams = sorted((whole / "kernel").glob("channel0_*"))
    duration, freq = info(whole)["duration_ns"], float(re.search(r"freq = (\d+);", (whole / "kernel" / "metadata").read_text())[1]) / 1e9
    first = min(head[4] for path in (whole / "kernel").glob("*_?") for head in heads(path) if head[6] > HEAD.size * 8)
    begin, end = first + int(duration * 0.5 * freq), first + int(duration * 0.6 * freq)
    assert all(lose(path, lambda _, b, e: e >= begin and b <= end) for path in streams)
    unknown = Told(krait, whole).json("states", "--by", "cpu")["cpus"]
    assert all(cpu["unknown_ns"] > duration // 20 for cpu in unknown), unknown
    for i, (from_, until) in enumerate(((55, None), (30, 55), (20, 90), (52, 58))):
        of_whole, part = cut(whole, duration * from_ // 100, until and duration * until // 100, f"part{i}")
        cpus = part.json("states", "--by", "cpu")["cpus"]
        assert all(cpu["unknown_ns"] > duration // 50 for cpu in cpus), cpus
        if until in (None, 90):  # what a thread did that waits at the end, events behind the range may tell
            assert_same(of_whole, part)


def test_a_part_tells_of_events_that_were_lost_before_the_first(krait, record, any_python, info, cut):
    whole = record.text(any_python, ALONE, options=("--kernel", *ROOMY)).path
    for path in sorted((whole / "kernel").glob("channel0_*")):
        lose(path, lambda number, *_: number == 1)
    of_whole, part = cut(whole, 0, info(whole)["duration_ns"] // 2, "part")
    assert_same(of_whole, part)
    assert info(part.trace)["lost"] == info(whole)["lost"]
