# SPDX-License-Identifier: Apache-2.0
"""krait export of recordings with the kernel's part: what chrome and perfetto hold of it, event by event.

Kernel traces are made up as in test_report_wall.py; perfetto's files are read by the published protos.
"""

import json
import os
import subprocess
import time
from collections import Counter, defaultdict

import pytest

import kernel_made as made
from conftest import verb_json
from export_readers import chrome_events, perfetto_ftrace, perfetto_slices, perfetto_trace, read_chrome, read_perfetto, read_with_speedscope
from kernel_made import EPOCH, begins, ends, event, knows_itself, switch, wake
from peak import peak_kib
from recording import ROOT
from test_record_kernel import ROOMY
from trace_processor import FAULTS, ask

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


@pytest.fixture
def export(krait, tmp_path):
    """export(folder, format, *options) gives the file's path and what was warned of."""

    def to(folder, fmt, *options):
        path = tmp_path / f"out.{fmt}"
        done = subprocess.run([krait, "export", folder, "--to", fmt, "-o", path, *options], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return path, [line.removeprefix("krait export: warning: ") for line in done.stderr.splitlines()[:-1] if "unfinished" not in line]

    return to


# -- chrome --


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


def test_chrome_has_system_calls_in_the_rows_of_their_threads(both, export):
    path, warned = export(both(CALLS, SLEEP), "chrome")
    assert complete(path, "syscall") == [(5, "clock_nanosleep", 135, 172, -4)]
    assert not warned
    assert_nested(chrome_rows(path))
    assert read_chrome(path)["time.sleep"].total_ns == 50_000


def test_chrome_has_a_row_for_each_cpu(both, export):
    events = [*SLEEP[:-1], switch(400, 0, 8, cpu=11), switch(500, 8, 0, cpu=11), SLEEP[-1]]
    path, _ = export(both(CALLS, events), "chrome")
    runs = complete(path, "cpu")
    assert [run for run in runs if run[0] == 1] == [
        (1, "t5", 0, 140, 5),
        (1, "t7", 140, 170, 7),
        (1, "t5", 170, 300, 5),
        (1, "t7", 300, 320, 7),
        (1, "t5", 320, 1010, 5),
    ]
    assert [run for run in runs if run[0] != 1] == [(12, "t8", 400, 500, 8)]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in chrome_events(path) if e["ph"] == "M"}
    (pid,) = {e["pid"] for e in chrome_events(path) if e.get("cat") == "cpu"}
    assert pid > 4194304 and names[("process_name", pid, 1)] == "CPUs"
    assert (names[("thread_name", pid, 1)], names[("thread_name", pid, 12)]) == ("CPU 0", "CPU 11")
    assert len(names) == 5


def test_chrome_has_what_a_thread_did_between(both, export):
    path, _ = export(both(CALLS, SLEEP), "chrome")
    assert states(path) == [
        (5, "MainThread: timer", 140, 167),
        (5, "MainThread: woken", 167, 170),
        (5, "MainThread: preempted", 300, 320, 7),
    ]


def test_after_a_switch_that_was_lost_a_thread_runs_where_it_wakes_another(both, export):
    """Not where the last event was. CPU 200 makes the table of CPUs longer, and move."""
    events = [
        switch(101, 0, 5, **{made.CONTEXT: 0}),
        switch(102, 0, 7, cpu=1, **{made.CONTEXT: 0}),
        switch(103, 5, 0, state=1, **{made.CONTEXT: 5}),
        event(104, "timer_hrtimer_expire_entry", cpu=200, hrtimer=1, **{made.CONTEXT: 0}),
        wake(110, 5, cpu=1, name="sched_waking", **{made.CONTEXT: 8}),
        switch(120, 8, 0, cpu=1, **{made.CONTEXT: 8}),
        switch(130, 0, 5, **{made.CONTEXT: 0}),
    ]
    path, _ = export(both(CALLS, events), "chrome")
    assert [run for run in complete(path, "cpu") if run[0] == 2] == [(2, "t7", 102, 110, 7), (2, "t8", 110, 120, 8)]


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


def test_chrome_has_functions_of_the_kernel_below_system_calls(both, export):
    path, _ = export(both(CALLS, FUNCTIONS), "chrome")
    assert complete(path, "kernel") == [(5, "rw_verify_area", 138, 140), (5, "vfs_read", 136, 150), (5, "0x9000", 171, 172)]
    assert complete(path, "syscall") == [(5, "read", 135, 160, 12)]
    assert_nested(chrome_rows(path))


def test_entries_alone_are_slices_of_no_length(both, export):
    events = [switch(0, 0, 5), event(140, "kernel_function", function=made.Label("vfs_read", 0x1000), caller=1), switch(900, 5, 0)]
    path, _ = export(both(CALLS, events), "chrome")
    assert complete(path, "kernel") == [(5, "vfs_read", 140, 140)]


def test_a_system_call_ends_the_functions_around_it_and_its_end_those_within(both, export):
    """The function that tells of a call begins before the call and ends within it."""
    about, within = made.Label("syscall_trace_enter", 0x1000), made.Label("syscall_exit_work", 0x2000)
    events = [
        switch(0, 0, 5),
        event(134, "kernel_function_entry", function=about),
        begins(135, "read"),
        event(136, "kernel_function_exit", function=about),
        event(150, "kernel_function_entry", function=within),
        ends(151, "read"),
        event(152, "kernel_function_exit", function=within),
        switch(900, 5, 0),
    ]
    path, _ = export(both(CALLS, events), "chrome")
    assert complete(path, "kernel") == [(5, "syscall_trace_enter", 134, 135, "cut"), (5, "syscall_exit_work", 150, 151, "cut")]
    assert complete(path, "syscall") == [(5, "read", 135, 151, 0)]
    assert_nested(chrome_rows(path))


def test_a_range_cuts_system_calls_at_its_edges(both, export):
    folder = both(CALLS, SLEEP)
    path, _ = export(folder, "chrome", "--from", "145us", "--until", "160us")
    assert complete(path, "syscall") == [(5, "clock_nanosleep", 145, 160, "live", "cut")]
    assert complete(path, "cpu") == [(1, "t7", 145, 160, 7)]
    assert states(path) == [(5, "MainThread: timer", 145, 160)]
    path, _ = export(folder, "chrome", "--from", "150us", "--until", "180us")
    assert complete(path, "syscall") == [(5, "clock_nanosleep", 150, 172, "live", -4)]
    assert_nested(chrome_rows(path))
    path, _ = export(folder, "chrome", "--from", "950us", "--until", "960us")
    assert not complete(path, "syscall") and complete(path, "cpu") == [(1, "t5", 950, 960, 5)]


def test_a_range_behind_the_kernels_part_has_nothing_of_it(both, export):
    calls = CALLS.replace("1000us return", "5ms return")
    path, warned = export(both(calls, SLEEP), "chrome", "--from", "3ms")
    assert {e["ph"] for e in chrome_events(path)} == {"M", "B", "E"} and not warned
    path, _ = export(both(calls, SLEEP, "two"), "perfetto", "--from", "3ms")
    assert not list(perfetto_ftrace(path))


def test_system_calls_whose_ends_were_lost_go_as_far_as_is_known(both, export):
    events = [
        switch(0, 0, 5),
        begins(110, "read"),
        switch(115, 5, 7, state=1),
        wake(118, 5, cpu=1),
        switch(120, 7, 5),
        begins(135, "clock_nanosleep"),
        switch(140, 5, 7, state=1),
        wake(150, 5, cpu=1),
        switch(155, 7, 5),
        ends(160, "brk"),
        begins(165, "write"),
        event(166, "kernel_function_entry", function=made.Label("vfs_write", 0x1000)),
        event(167, "kernel_function_exit", function=made.Label("vfs_write", 0x1000)),
        begins(170, "getpid"),
        ends(171, "getpid"),
        switch(1010, 5, 0),
    ]
    path, _ = export(both(CALLS, events), "chrome")
    assert complete(path, "syscall") == [
        (5, "read", 110, 110, "cut"),
        (5, "clock_nanosleep", 135, 135, "cut"),
        (5, "write", 165, 167, "cut"),
        (5, "getpid", 170, 171, 0),
    ]
    assert_nested(chrome_rows(path))


def test_a_signal_handlers_return_has_no_length(both, export):
    """The kernel's tracers do not tell its end; calls go on behind it."""
    events = [switch(0, 0, 5), begins(110, "rt_sigreturn"), event(112, "irq_handler_entry", irq=1), event(114, "irq_handler_exit", irq=1), switch(1010, 5, 0)]
    folder = both(CALLS, events)
    assert complete(export(folder, "chrome")[0], "syscall") == [(5, "rt_sigreturn", 110, 110, "cut")]
    assert complete(export(folder, "chrome", "--from", "111us")[0], "syscall") == []
    assert_tracks_nest(export(folder, "perfetto")[0])


def test_a_call_that_never_returns_ends_with_its_thread(both, export):
    calls = CALLS.replace("exit 1 0\n", "thread 6 worker\n200us call 1\n250us return\n")
    events = [
        switch(0, 0, 5),
        switch(190, 5, 6),
        begins(300, "exit"),
        event(310, "sched_process_exit", tid=6, comm="t6", prio=20),
        switch(320, 6, 5, state=0x10),
        switch(1010, 5, 0),
    ]
    path, _ = export(both(calls, events), "chrome")
    assert complete(path, "syscall") == [(6, "exit", 300, 320, "cut")]


@pytest.mark.parametrize("end", ["exit 1 0\n", ""], ids=["killed", "unfinished"])
def test_a_call_that_outlives_the_calls_around_it_is_cut_with_them(both, export, end):
    """The calls of a thread that is killed end when its process's end is told, or with the last of it; the kernel's part goes on."""
    calls = CALLS.replace("1000us return\nexit 1 0\n", "").replace("180us creturn", "") + "thread 6 worker\n140us call 1\n150us return\n" + end
    events = [
        switch(0, 0, 5),
        begins(135, "clock_nanosleep"),
        event(136, "kernel_function_entry", function=made.Label("do_nanosleep", 0x1000)),
        switch(140, 5, 0, state=1),
        wake(400, 5, cpu=1),
        switch(500, 0, 5),
        event(501, "kernel_function_entry", function=made.Label("do_exit", 0x2000)),
        switch(510, 5, 0, state=0x10),
    ]
    path, _ = export(both(calls, events), "chrome")
    assert complete(path, "syscall") == [(5, "clock_nanosleep", 135, 150, "cut")]
    assert complete(path, "kernel") == [(5, "do_nanosleep", 136, 150, "cut")]
    assert_nested({row: slices for row, slices in chrome_rows(path).items() if row[1] == 5})


def test_only_the_programs_threads_have_system_calls(both, export):
    events = [*SLEEP[:4], begins(155, "openat"), ends(156, "openat"), *SLEEP[4:]]
    path, _ = export(both(CALLS, events), "chrome")
    assert [call[1] for call in complete(path, "syscall")] == ["clock_nanosleep"]


def test_threads_that_are_not_chosen_have_none(both, export):
    calls = CALLS.replace("exit 1 0\n", "thread 6 worker\n200us call 1\n250us return\nexit 1 0\n")
    events = [*SLEEP[:9], switch(190, 5, 6), begins(210, "getpid"), ends(211, "getpid"), switch(240, 6, 5), *SLEEP[9:]]
    folder = both(calls, events)
    assert [call[:2] for call in complete(export(folder, "chrome")[0], "syscall")] == [(5, "clock_nanosleep"), (6, "getpid")]
    assert [call[:2] for call in complete(export(folder, "chrome", "--thread", "worker")[0], "syscall")] == [(6, "getpid")]


def test_a_thread_in_a_namespace_is_the_kernels_thread(both, export):
    """It calls itself 5; the kernel calls it 705, and calls another one 5."""
    events = [
        switch(0, 0, 705),
        *knows_itself(101, 5),
        begins(135, "getpid"),
        ends(136, "getpid", ret=5),
        switch(150, 705, 5),
        begins(160, "openat"),
        ends(161, "openat"),
        switch(170, 5, 705),
        switch(1010, 705, 0),
    ]
    folder = both(CALLS, events)
    path, _ = export(folder, "chrome")
    assert complete(path, "syscall") == [(5, "gettid", 101, 102, 5), (5, "getpid", 135, 136, 5)]
    path, _ = export(folder, "perfetto")
    assert {s.thread for s in perfetto_slices(path)} == {("python3", 705, "MainThread", 705)}
    assert 705 in {e.sched_switch.next_pid for _, e in perfetto_ftrace(path)}


def test_a_thread_that_only_sends_a_packet_is_nobody_else(both, export):
    """It is met by that alone, however the kernel's part is gone through."""

    def in_thread(tid, e):
        return (*e[:3], {made.CONTEXT: tid, **e[3]})

    events = [
        in_thread(0, switch(0, 0, 6)),
        in_thread(99, event(1, "net_dev_queue", skbaddr=1)),
        in_thread(6, switch(10, 6, 5)),
        in_thread(5, begins(135, "read")),
        in_thread(5, ends(136, "read")),
        in_thread(5, switch(1010, 5, 7)),
    ]
    path, _ = export(both(CALLS, events), "chrome")
    assert complete(path, "syscall") == [(5, "read", 135, 136, 0)]


def test_one_number_is_the_thread_that_had_it_then(both, export):
    """After an exec a process goes on with its number, as another one of the trace."""
    calls = CALLS + CALLS.replace("100us", "1100us").replace("130us", "1130us").replace("180us", "1180us").replace("1000us", "1500us")
    events = [switch(0, 0, 5), begins(135, "read"), ends(136, "read"), begins(1135, "read"), ends(1136, "read"), switch(1600, 5, 0)]
    path, _ = export(both(calls, events), "chrome")
    (first, *_), (second, *_) = calls_of_two = complete(path, "syscall")
    assert first == 5 and second > 4194304 and [c[2] for c in calls_of_two] == [135, 1135]


# -- perfetto --


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


def test_perfetto_has_the_kernels_events_as_its_own_recorder_writes_them(both, export):
    events = [
        switch(101, 0, 5, prev_prio=20, next_prio=-100),
        wake(102, 7, name="sched_waking", comm="t7", prio=0, target_cpu=1),
        wake(103, 7, name="sched_wakeup", comm="t7", prio=0, target_cpu=1),
        event(104, "sched_process_fork", parent_comm="t5", parent_tid=5, parent_pid=5, child_comm="t8", child_tid=8, child_pid=5),
        wake(105, 8, name="sched_wakeup_new", comm="t8", prio=0, target_cpu=1),
        event(106, "irq_handler_entry", irq=36, name="virtio"),
        event(107, "irq_handler_exit", irq=36, ret=1),
        event(108, "irq_softirq_entry", vec=7),
        event(109, "irq_softirq_exit", vec=7),
        event(110, "power_cpu_frequency", state=2400000, cpu_id=1),
        event(111, "power_cpu_idle", state=4294967295, cpu_id=1),
        event(112, "sched_process_exec", filename="/bin/true", tid=5, old_tid=5),
        event(113, "sched_process_exit", tid=5, comm="t5", prio=0),
        switch(114, 5, 0, state=0x10, prev_prio=0, next_prio=20),
        event(115, "sched_process_free", tid=5, comm="t5", prio=0),
    ]
    path, _ = export(both(CALLS, events), "perfetto")
    made_comm = {"comm": "t7", "pid": 7, "prio": 100, "target_cpu": 1}
    assert list(messages(path)) == [
        (0, 101, 0, "sched_switch", {"prev_comm": "t0", "prev_pid": 0, "prev_prio": 120, "prev_state": 0, "next_comm": "t5", "next_pid": 5, "next_prio": 0}),
        (0, 102, 5, "sched_waking", made_comm),
        (0, 103, 5, "sched_wakeup", made_comm),
        (0, 104, 5, "task_newtask", {"pid": 8, "comm": "t8", "clone_flags": 0x10000}),
        (0, 104, 5, "sched_process_fork", {"parent_comm": "t5", "parent_pid": 5, "child_comm": "t8", "child_pid": 8}),
        (0, 105, 5, "sched_wakeup_new", {**made_comm, "comm": "t8", "pid": 8}),
        (0, 106, 5, "irq_handler_entry", {"irq": 36, "name": "virtio"}),
        (0, 107, 5, "irq_handler_exit", {"irq": 36, "ret": 1}),
        (0, 108, 5, "softirq_entry", {"vec": 7}),
        (0, 109, 5, "softirq_exit", {"vec": 7}),
        (0, 110, 5, "cpu_frequency", {"state": 2400000, "cpu_id": 1}),
        (0, 111, 5, "cpu_idle", {"state": 4294967295, "cpu_id": 1}),
        (0, 112, 5, "task_rename", {"pid": 5, "newcomm": "true"}),
        (0, 112, 5, "sched_process_exec", {"filename": "/bin/true", "pid": 5, "old_pid": 5}),
        (0, 113, 5, "sched_process_exit", {"comm": "t5", "pid": 5, "prio": 100}),
        (0, 114, 5, "sched_switch", {"prev_comm": "t5", "prev_pid": 5, "prev_prio": 100, "prev_state": 16, "next_comm": "t0", "next_pid": 0, "next_prio": 120}),
        (0, 115, 0, "sched_process_free", {"comm": "t5", "pid": 5, "prio": 100}),
    ]


def test_perfetto_knows_who_woke_whom_by_the_context(both, export):
    context = {made.CONTEXT: 9}
    events = [switch(101, 0, 5, **{made.CONTEXT: 0}), wake(102, 7, name="sched_waking", **context), switch(103, 9, 5, **context)]
    path, _ = export(both(CALLS, events), "perfetto")
    assert [(pid, name) for _, _, pid, name, _ in messages(path)] == [(0, "sched_switch"), (5, "sched_switch"), (9, "sched_waking"), (9, "sched_switch")]


def test_what_happens_in_nobody_knows_which_thread_is_left_out(both, export):
    path, _ = export(both(CALLS, [wake(101, 7, name="sched_waking"), switch(102, 0, 5), wake(103, 7, name="sched_waking")]), "perfetto")
    assert [(at, name) for _, at, _, name, _ in messages(path)] == [(102, "sched_switch"), (103, "sched_waking")]


def test_perfetto_has_system_calls_and_functions_in_the_threads_tracks(both, export):
    path, _ = export(both(CALLS, FUNCTIONS), "perfetto")
    kernels = [s for s in perfetto_slices(path) if s.category in ("syscall", "kernel") or (not s.is_begin and s.sequence == "kernel")]
    assert {s.thread for s in kernels} == {("python3", 5, "MainThread", 5)}
    assert [((s.at - EPOCH) // 1000, s.name, s.category, s.notes) for s in kernels] == [
        (135, "read", "syscall", {}),
        (136, "vfs_read", "kernel", {}),
        (138, "rw_verify_area", "kernel", {}),
        (140, "", "", {}),
        (150, "", "", {}),
        (160, "", "", {"ret": 12}),
        (171, "0x9000", "kernel", {}),
        (172, "", "", {}),
    ]
    assert_tracks_nest(path)
    sums = read_perfetto(path)
    assert sums["time.sleep"].self_ns == 50_000 - 25_000 - 1000 and sums["vfs_read"].self_ns == 12_000


def test_perfetto_marks_what_is_cut_and_has_errors_negative(both, export):
    folder = both(CALLS, SLEEP)
    path, _ = export(folder, "perfetto", "--from", "150us", "--until", "160us")
    notes = [s.notes for s in perfetto_slices(path) if s.sequence == "kernel"]
    assert notes == [{"begin": "live"}, {"end": "cut"}]
    path, _ = export(folder, "perfetto")
    assert [s.notes for s in perfetto_slices(path) if s.sequence == "kernel"] == [{}, {"ret": -4}]


def test_in_perfetto_a_range_begins_with_who_has_the_cpus_then(both, export):
    events = sorted([*SLEEP, switch(20, 0, 8, cpu=1), switch(600, 8, 0, cpu=1)])
    path, _ = export(both(CALLS, events), "perfetto", "--from", "145us", "--until", "180us")
    found = sorted((cpu, at, f["prev_pid"], f["next_pid"]) for cpu, at, _, name, f in messages(path) if name == "sched_switch")
    assert found == [(0, 145, 5, 7), (0, 170, 7, 5), (1, 145, 0, 8)]


def test_in_perfetto_a_range_may_begin_after_all_times(both, export):
    """Its begin is more than 63 bits have: a build with sanitizers tells where that overflows."""
    path, warned = export(both(CALLS, SLEEP), "perfetto", "--from", "8e9")
    assert not list(perfetto_ftrace(path)) and warned == ["no calls were recorded in that time"]


def test_perfetto_knows_other_processes_and_the_kernels_version(both, export):
    events = [made.dump(1, 7, 0, 5), switch(2, 0, 5), *[(us, cpu, name, f) for us, cpu, name, f in SLEEP if us > 2]]
    path, _ = export(both(CALLS, events, release="6.1.0"), "perfetto")
    trees = [p.process_tree for p in perfetto_trace(path).packet if p.HasField("process_tree")]
    assert [[(p.pid, list(p.cmdline)) for p in tree.processes] for tree in trees] == [[(7, ["t7"])]]
    assert [[(t.tid, t.name, t.tgid) for t in tree.threads] for tree in trees] == [[(7, "t7", 7)]]
    (system,) = (p.system_info for p in perfetto_trace(path).packet if p.HasField("system_info"))
    assert (system.utsname.sysname, system.utsname.release) == ("Linux", "6.1.0")


def test_a_process_without_a_call_leaves_the_kernels_part_as_it_is(both, export):
    folder = both("process 5 python3\nexit 1 0\n", SLEEP)
    assert len(perfetto_ftrace(export(folder, "perfetto")[0])) == 9
    assert len(complete(export(folder, "chrome")[0], "cpu")) == 5


def test_many_events_are_many_bundles_of_one_cpu_each(both, export):
    events = [switch(101 + i // 2, *((5, 7) if i % 4 < 2 else (7, 5)), cpu=i % 2) for i in range(6000)]
    path, _ = export(both(CALLS, sorted(events)), "perfetto")
    bundles = [p.ftrace_events for p in perfetto_trace(path).packet if p.HasField("ftrace_events")]
    assert [len(b.event) for b in bundles if b.cpu == 1] == [1024, 1024, 953]  # who runs there first is told too
    for cpu in (0, 1):
        times = [e.timestamp for b in bundles if b.cpu == cpu for e in b.event]
        assert len(times) == 3001 and times == sorted(times)


def test_cpus_that_perfetto_refuses_are_left_out(both, export):
    path, _ = export(both(CALLS, [switch(101, 0, 5, cpu=1023), switch(102, 0, 7, cpu=1024)]), "perfetto")
    assert [cpu for cpu, _ in perfetto_ftrace(path)] == [1023]


WHO = """
select p.pid, p.name, t.tid, t.name, (select count() from thread_track k join slice s on s.track_id = k.id where k.utid = t.utid)
from thread t join process p using (upid) where t.tid in ({tids}) and t.utid in (select utid from thread_track)
"""
STATES = """
select (ts - {epoch}) / 1000, dur / 1000, state, waker.tid
from thread_state s join thread t using (utid) left join thread waker on s.waker_utid = waker.utid where t.tid = {tid} order by ts
"""
TWO_THREADS = (
    CALLS.replace("exit 1 0\n", "")
    + """
thread 6 worker
200us call 1
900us return
exit 1 0
"""
)


def test_the_trace_processor_has_the_threads_states_beside_their_calls(both, export):
    """Of a thread that begins and ends in the recording too: what the kernel tells of it is about its calls' thread."""
    comm = {"comm": "python3"}
    events = [
        *[e for e in SLEEP if e[0] < 180],
        wake(167, 5, name="sched_waking"),
        event(181, "sched_process_fork", parent_comm="python3", parent_tid=5, parent_pid=5, child_comm="python3", child_tid=6, child_pid=5),
        wake(182, 6, name="sched_wakeup_new", **comm),
        switch(183, 5, 6),
        event(950, "sched_process_exit", tid=6, prio=0, **comm),
        switch(951, 6, 5, state=0x10),
        event(952, "sched_process_free", tid=6, prio=0, **comm),
        switch(1010, 5, 0),
    ]
    path, _ = export(both(TWO_THREADS, sorted(events)), "perfetto")
    faults, who, main, worker = ask(
        path, FAULTS, WHO.format(tids="5, 6"), STATES.format(epoch=EPOCH, tid=5), STATES.format(epoch=EPOCH, tid=6)
    )
    assert not faults
    assert sorted(who) == [(5, "python3", 5, "MainThread", 3), (5, "python3", 6, "worker", 1)]
    away_and_back = [(0, 140, "Running", None), (140, 27, "S", None), (167, 3, "R", 7), (170, 13, "Running", None)]
    assert main == [*away_and_back, (183, 768, "R", None), (951, 59, "Running", None), (1010, 0, "R", None)]
    assert worker[:2] == [(181, 2, "R", 5), (183, 768, "Running", None)]


RUNS = "select tid, sum(dur) from sched join thread using (utid) where tid != 0 and dur > 0 group by tid order by tid"


@pytest.mark.parametrize(
    "events, options",
    [
        ([switch(101, 0, 5), begins(105, "read"), switch(130, 7, 8, state=1), ends(135, "read"), switch(140, 8, 5), switch(150, 5, 0, state=1)], {"losses": [(0, 105, None)]}),
        ([switch(101, 0, 5), switch(130, 7, 8, state=1), switch(140, 8, 5), switch(150, 5, 0, state=1)], {"losses": [(0, 101, 120)]}),
        ([switch(101, 0, 5), switch(110, 5, 0, state=1), switch(130, 7, 8, state=1), switch(140, 8, 0, state=1)], {}),
        ([switch(101, 0, 5), switch(130, 7, 8, state=1), switch(140, 8, 0, state=1)], {}),
        ([switch(101, 7, 0, state=1, cpu=1), switch(110, 0, 8, cpu=1), switch(120, 5, 0, state=1), switch(140, 8, 0, state=1, cpu=1)], {}),
    ],
    ids=["lost between packets", "lost within a packet", "idle to 7 never told", "5 to 7 never told", "who ran first"],
)  # fmt: skip
def test_in_the_trace_processor_cpus_run_what_states_says(krait, both, export, events, options):
    """And it finds no loss of data."""
    folder = both(CALLS, events, **options)
    faults, runs = ask(export(folder, "perfetto")[0], FAULTS, RUNS)
    assert not faults
    rows = verb_json(krait, "states", folder)["threads"]
    ran = {t["tid"]: sum(t[f"{state}_ns"] for state in ("user", "system", "interrupt")) for t in rows}
    assert dict(runs) == {tid: ns for tid, ns in ran.items() if ns}


def test_what_the_kernel_did_before_the_programs_first_event_is_told(both, export):
    """But not with a range that begins later."""
    events = [switch(10, 0, 7), begins(20, "read"), switch(40, 7, 5), *SLEEP[1:]]
    folder = both(CALLS, events)
    path, _ = export(folder, "chrome")
    assert complete(path, "cpu")[:2] == [(1, "t7", 10, 40, 7), (1, "t5", 40, 140, 5)]
    path, _ = export(folder, "perfetto")
    assert next(at for _, at, *_ in messages(path)) == 10
    path, _ = export(folder, "chrome", "--from", "50us")
    assert complete(path, "cpu")[0] == (1, "t5", 50, 140, 5)


PERF = [
    event(101, "perf_comm", tid=5, comm="python3", pid=5, **{made.CONTEXT: 5}),
    event(102, "perf_switch_in", tid=5, pid=5, **{made.CONTEXT: 5}),
    event(140, "perf_switch_out", tid=5, preempted=0, **{made.CONTEXT: 5}),
    event(170, "perf_switch_in", tid=5, pid=5, **{made.CONTEXT: 5}),
    event(300, "perf_switch_out", tid=5, preempted=1, **{made.CONTEXT: 5}),
    event(310, "perf_switch_in", tid=5, pid=5, **{made.CONTEXT: 5}),
    event(400, "perf_exit", tid=5, pid=5, **{made.CONTEXT: 5}),
]


def test_one_programs_own_switches(both, export):
    folder = both(CALLS, PERF)
    path, _ = export(folder, "perfetto")
    assert list(messages(path)) == [
        (0, 101, 5, "task_rename", {"pid": 5, "newcomm": "python3"}),
        (0, 102, 0, "sched_switch", {"prev_pid": 0, "prev_state": 0, "next_comm": "python3", "next_pid": 5}),
        (0, 140, 5, "sched_switch", {"prev_pid": 5, "prev_state": 1, "next_pid": 0}),
        (0, 170, 0, "sched_switch", {"prev_pid": 0, "prev_state": 0, "next_comm": "python3", "next_pid": 5}),
        (0, 300, 5, "sched_switch", {"prev_pid": 5, "prev_state": 0, "next_pid": 0}),
        (0, 310, 0, "sched_switch", {"prev_pid": 0, "prev_state": 0, "next_comm": "python3", "next_pid": 5}),
        (0, 400, 5, "sched_switch", {"prev_pid": 5, "prev_state": 16, "next_pid": 0}),
    ]
    path, _ = export(folder, "chrome")
    assert complete(path, "cpu") == [(1, "python3", 101, 140, 5), (1, "python3", 170, 300, 5), (1, "python3", 310, 400, 5)]
    assert states(path) == [(5, "MainThread: other", 140, 170), (5, "MainThread: preempted", 300, 310)]


# -- both --


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_without_the_kernel_the_file_is_as_if_there_were_none(both, export, synth, fmt):
    alone = export(synth(CALLS, "alone"), fmt)[0].read_bytes()
    folder = both(CALLS, SLEEP)
    assert export(folder, fmt, "--no-kernel")[0].read_bytes() == alone
    assert export(folder, fmt)[0].read_bytes() != alone


@pytest.mark.parametrize("fmt", ["folded", "speedscope", "callgrind", "pprof"])
def test_formats_without_the_kernel_say_so_and_stay_as_they_are(krait, both, export, synth, fmt, tmp_path):
    alone = export(synth(CALLS, "alone"), fmt)[0].read_bytes()
    folder = both(CALLS, SLEEP)
    assert export(folder, fmt)[0].read_bytes().replace(b"/both", b"/alone") == alone
    done = subprocess.run([krait, "export", folder, "--to", fmt, "-o", tmp_path / "x", "--no-kernel"], capture_output=True, text=True)
    assert done.returncode == 2 and f"--no-kernel: --to {fmt} holds nothing of the kernel's" in done.stderr


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_lost_events_are_said(both, export, fmt):
    path, warned = export(both(CALLS, SLEEP, lost=1234), fmt)
    assert warned == ["lost: 1,234 events of the kernel's: the changes of state that they told are missing"]
    if fmt == "chrome":
        assert json.loads(path.read_bytes())["otherData"]["kernel_lost"] == "1234"


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_of_a_damaged_kernel_part_what_is_whole_is_there(both, export, fmt):
    folder = both(CALLS, SLEEP)
    stream = folder / "kernel" / "channel0_0"
    stream.write_bytes(stream.read_bytes()[:-100])
    path, (warned,) = export(folder, fmt)
    assert warned.startswith(f"the kernel's part: {stream}: ")
    found = complete(path, "syscall") if fmt == "chrome" else [s for s in perfetto_slices(path) if s.category == "syscall"]
    assert len(found) == 1
    read = read_chrome if fmt == "chrome" else read_perfetto
    assert read(path)["app.main"].total_ns == 900_000


def test_system_calls_alone_are_told_by_their_context(both, export):
    context = {made.CONTEXT: 5}
    path, warned = export(both(CALLS, [begins(135, "read", **context), ends(140, "read", **context), begins(150, "read", **{made.CONTEXT: 6})]), "chrome")
    assert complete(path, "syscall") == [(5, "read", 135, 140, 0)] and not warned


def test_kernel_parts_of_several_hosts_are_said_and_left_out(both, krait, tmp_path):
    one, two = both(CALLS, SLEEP, "one"), both(CALLS, SLEEP, "two", host="other")
    done = subprocess.run([krait, "export", one, two, "--to", "chrome", "-o", tmp_path / "x"], capture_output=True, text=True)
    assert done.returncode == 0 and "is of host made" in done.stderr and "of host other" in done.stderr
    assert not complete(tmp_path / "x", "syscall")


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_a_kernel_part_that_cannot_be_read_is_said_and_left_out(both, export, fmt):
    folder = both(CALLS, SLEEP)
    (folder / "kernel" / "channel0_0").write_bytes(b"no packet" * 50)
    path, warned = export(folder, fmt)
    assert len(warned) == 1 and "channel0_0" in warned[0]
    assert (read_chrome if fmt == "chrome" else read_perfetto)(path)["app.main"].total_ns == 900_000


def test_hostile_names_of_the_kernels_threads(both, export):
    evil = 'a"\\b\n\x1b[31m\u00e9'
    events = [(101, 0, "sched_switch", {"prev_comm": "t0", "prev_tid": 0, "prev_state": 0, "next_comm": evil, "next_tid": 7}), switch(200, 7, 0)]
    folder = both(CALLS, events)
    made_bytes = (folder / "kernel" / "channel0_0").read_bytes()
    (folder / "kernel" / "channel0_0").write_bytes(made_bytes.replace("\u00e9".encode(), b"\xff\xfe"))
    path, _ = export(folder, "chrome")
    (run,) = complete(path, "cpu")
    assert run[1] == 't7' or run[1].startswith('a"\\b\n\x1b[31m')
    path, _ = export(folder, "perfetto")
    assert [f["next_comm"] for _, _, _, _, f in messages(path)][0] == 'a"\\b\n\x1b[31m\ufffd\ufffd'


def test_speedscope_reads_system_calls_as_part_of_the_calls(both, export):
    path, _ = export(both(CALLS, SLEEP), "chrome")
    """It takes arguments for a part of the name."""
    found = read_with_speedscope(path)
    assert found['clock_nanosleep {"ret":-4}'].total_ns == 37_000
    assert found["time.sleep"].self_ns == 50_000 - 37_000
    assert found['t7 {"tid":7}'].total_ns == 50_000


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_memory_does_not_grow_with_the_kernels_part(krait, both, tmp_path, fmt):
    def of(count, name):
        events = [e for i in range(count) for e in (begins(101 + 4 * i, "read"), switch(102 + 4 * i, 5, 7), switch(103 + 4 * i, 7, 5), ends(104 + 4 * i, "read"))]
        folder = both(CALLS, [switch(0, 0, 5), *events], name)
        files = sum(f.stat().st_size for f in (folder / "kernel").iterdir())
        return peak_kib(krait, "export", folder, "--to", fmt, "-o", tmp_path / name / "out") - files // 1024, files // 1024

    (small, few), (large, many) = of(2000, "small"), of(20000, "large")
    assert many > few + 1500
    assert large < small + (many - few) // 2  # the file itself is mapped


# -- recorded --

PROGRAM = """
import os, threading, time
def work():
    for i in range(20):
        os.stat('/')
        time.sleep(0.0005)
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


# Some kernels keep the switches from idle to themselves, but not on their first CPU.
PINNED = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + PROGRAM


@pytest.fixture
def recorded(request, record, any_python, alone):
    if os.geteuid() != 0:
        pytest.skip("tracing the kernel needs root")
    run = record.text(any_python, getattr(request, "param", PROGRAM), options=("--kernel", *ROOMY))
    if not (run.path / "kernel").exists():
        pytest.skip("the kernel cannot be recorded here")
    return run


def test_on_a_recorded_programs_rows_all_slices_nest(recorded, export):
    path, _ = export(recorded.path, "chrome")
    rows = chrome_rows(path)
    assert_nested(rows)
    sleeps = Counter(call[0] for call in complete(path, "syscall") if call[1] in ("clock_nanosleep", "select", "pselect6"))
    assert sorted(sleeps.values())[-2:] == [20, 20]
    cpus = {row: slices for row, slices in rows.items() if row[0] > 4194304}
    assert cpus
    for slices in cpus.values():
        slices.sort()
        assert all(a[1] <= b[0] for a, b in zip(slices, slices[1:]))


def test_a_recorded_programs_threads_are_the_kernels(recorded, export):
    path, _ = export(recorded.path, "perfetto")
    assert_tracks_nest(path)
    tracks = {s.thread[3] for s in perfetto_slices(path)}
    events = list(perfetto_ftrace(path))
    switches = [e.sched_switch for _, e in events if e.HasField("sched_switch")]
    assert len(tracks) == 3 and tracks <= {s.prev_pid for s in switches}  # not next_pid: some kernels keep a CPU's switches from idle to themselves
    stats = [s for s in perfetto_slices(path) if s.is_begin and s.category == "syscall"]
    assert {s.thread[3] for s in stats} == tracks
    begin, end = (f(s.at for s in perfetto_slices(path)) for f in (min, max))
    written = (recorded.path.parent / "app.py").stat().st_mtime_ns  # just before it was recorded
    assert all(written <= e.timestamp <= time.time_ns() for _, e in events)
    assert any(begin < e.timestamp < end for _, e in events)
    calls = read_perfetto(path)
    assert calls["time.sleep"].calls == 40
    wakers = {e.pid for _, e in events if e.HasField("sched_waking") and e.sched_waking.pid in tracks}
    assert wakers


@pytest.mark.parametrize("recorded", [PINNED], indirect=True, ids=["pinned"])
def test_in_the_trace_processor_a_recorded_programs_threads_have_names_calls_and_states(recorded, export):
    path, _ = export(recorded.path, "perfetto")
    tids = [t.tid for t in recorded.main.threads]
    faults, who, states = ask(
        path, FAULTS, WHO.format(tids=", ".join(map(str, tids))), "select distinct tid, state from thread_state join thread using (utid) join thread_track using (utid)"
    )
    assert not faults
    names = {tids[0]: "MainThread", tids[1]: "Thread-1 (work)", tids[2]: "Thread-2 (work)"}
    assert sorted((pid, tid, name) for pid, _, tid, name, _ in who) == [(tids[0], *known) for known in sorted(names.items())]
    assert all(process.startswith("python") and calls > 20 for _, process, _, _, calls in who), who
    assert {(tid, state) for tid in tids for state in ("Running", "S")} <= set(states)


def test_its_page_says_what_is_in_the_formats(krait):
    page = (ROOT / "docs" / "export.md").read_text()
    for name in ("sched_switch", "sched_waking", "irq_handler_entry", "cpu_frequency", "--no-kernel"):
        assert name in page
