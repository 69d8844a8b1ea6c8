# SPDX-License-Identifier: Apache-2.0
"""Recordings with a kernel part, made up, and what krait export makes of them in chrome and perfetto."""

import subprocess
from collections import defaultdict

import pytest

import kernel_made as made
from export_readers import chrome_events, perfetto_ftrace, perfetto_slices
from kernel_made import EPOCH, begins, ends, event, switch, wake

CALLS = """
process 5 python3
code 1 python app main app.py 1
code 2 c time sleep - 0
thread 5 MainThread
100us call 1
130us ccall 2
180us creturn
1000us return
exit 1 0
"""
SLEEP = [
    switch(0, 0, 5),
    begins(135, "clock_nanosleep"),
    switch(140, 5, 7, state=1),
    event(165, "irq_handler_entry", irq=1, name="timer"),
    event(166, "timer_hrtimer_expire_entry"),
    wake(167, 5),
    event(168, "irq_handler_exit", irq=1, ret=1),
    switch(170, 7, 5),
    ends(172, "clock_nanosleep", ret=-4),
    switch(300, 5, 7),
    switch(320, 7, 5),
    switch(1010, 5, 0),
]


FUNCTIONS = [
    switch(0, 0, 5),
    begins(135, "read"),
    event(136, "kernel_function_entry", function=made.Label("vfs_read", 0x1000), depth=0),
    event(138, "kernel_function_entry", function=made.Label("rw_verify_area", 0x2004), depth=1),
    event(140, "kernel_function_exit", function=made.Label("rw_verify_area", 0x2000), depth=1),
    event(150, "kernel_function_exit", function=made.Label("vfs_read", 0x1000), depth=0),
    ends(160, "read", ret=12),
    event(170, "kernel_function_exit", function=made.Label("do_exit", 0x3000), depth=0),
    event(171, "kernel_function_entry", function=0x9000, depth=0),
    event(172, "kernel_function_exit", function=0x9000, depth=0),
    switch(900, 5, 0),
]


@pytest.fixture
def export(krait, tmp_path):
    """export(folder, format, *options) gives the file's path and what was warned of."""

    def to(folder, fmt, *options):
        path = tmp_path / f"out.{fmt}"
        done = subprocess.run([krait, "export", folder, "--to", fmt, "-o", path, *options], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return path, [line.removeprefix("krait export: warning: ") for line in done.stderr.splitlines()[:-1] if "unfinished" not in line]

    return to


def ns(e, key="ts"):
    return round(e[key] * 1000)


def complete(path, category):
    """(thread, name, begin, end in microseconds, further categories, args) of the complete events."""
    found = []
    for e in chrome_events(path):
        cats = e.get("cat", "").split(",")
        if e["ph"] == "X" and cats[0] == category:
            found.append((e["tid"], e["name"], ns(e) / 1000, (ns(e) + ns(e, "dur")) / 1000, *cats[1:], *e.get("args", {}).values()))
    return found


def states(path):
    """(thread, name, begin, end, by) of the asynchronous events of category state."""
    found, begun = [], {}
    for e in chrome_events(path):
        if e.get("cat") == "state":
            key = (e["pid"], e["id2"]["local"], e["name"])
            if e["ph"] == "b":
                assert key not in begun
                begun[key] = e
            else:
                b = begun.pop(key)
                found.append((e["tid"], e["name"], b["ts"], e["ts"], *b.get("args", {}).values()))
    assert not begun
    return found


def chrome_rows(path):
    """{row: [(begin, end, name)]} of all begins and ends and complete events."""
    rows, begun = defaultdict(list), defaultdict(list)
    for e in chrome_events(path):
        row = (e["pid"], e.get("tid"))
        if e["ph"] == "X":
            rows[row].append((ns(e), ns(e) + ns(e, "dur"), e["name"]))
        elif e["ph"] == "B":
            begun[row].append(ns(e))
        elif e["ph"] == "E":
            rows[row].append((begun[row].pop(), ns(e), e["name"]))
    assert not any(begun.values())
    return rows


def assert_nested(rows):
    for row, slices in rows.items():
        around = []
        for begin, end, name in sorted(slices, key=lambda s: (s[0], -s[1])):
            while around and around[-1][1] <= begin:
                around.pop()
            assert not around or end <= around[-1][1], (row, name, begin, end, around[-1])
            around.append((begin, end, name))


def assert_tracks_nest(path):
    """By the trace processor's rule: an end is of what began last in its track."""
    begun = defaultdict(list)
    for s in sorted(perfetto_slices(path), key=lambda s: s.at):
        if s.is_begin:
            begun[s.thread].append(s.sequence)
        else:
            assert begun[s.thread].pop() == s.sequence, s
    assert not any(begun.values())


def messages(path):
    """(CPU, time in microseconds, thread, name of the event, its fields) of the ftrace events."""
    for cpu, e in perfetto_ftrace(path):
        (field,) = (f for f, _ in e.ListFields() if f.name not in ("timestamp", "pid"))
        message = getattr(e, field.name)
        yield cpu, (e.timestamp - EPOCH) / 1000, e.pid, field.name, {f.name: v for f, v in message.ListFields()}


WHO = """
select p.pid, p.name, t.tid, t.name, (select count() from thread_track k join slice s on s.track_id = k.id where k.utid = t.utid)
from thread t join process p using (upid) where t.tid in ({tids}) and t.utid in (select utid from thread_track)
"""
