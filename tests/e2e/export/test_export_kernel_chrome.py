# SPDX-License-Identifier: Apache-2.0
"""krait export --to chrome of recordings with a kernel part, event by event."""

import pytest

import kernel_made as made
from export_readers import chrome_events, perfetto_ftrace, perfetto_slices, read_chrome
from exported_kernel import CALLS, FUNCTIONS, SLEEP, assert_nested, assert_tracks_nest, chrome_rows, complete, export, states
from kernel_made import begins, ends, event, knows_itself, switch, wake


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
