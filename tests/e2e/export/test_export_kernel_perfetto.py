# SPDX-License-Identifier: Apache-2.0
"""krait export --to perfetto of recordings with a kernel part, event by event; read by the published protos."""

import pytest

import kernel_made as made
from conftest import verb_json
from export_readers import perfetto_ftrace, perfetto_slices, perfetto_trace, read_perfetto
from exported_kernel import CALLS, FUNCTIONS, SLEEP, WHO, assert_tracks_nest, complete, export, messages, ns
from kernel_made import EPOCH, begins, dump, ends, event, switch, wake
from trace_processor import FAULTS, ask


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


OFF = [event(120, "krait_off", switched_off=1, cpu=cpu) for cpu in (0, 1)]
RUNS = "select tid, sum(dur) from sched join thread using (utid) where tid != 0 and dur > 0 group by tid order by tid"


@pytest.mark.parametrize(
    "events, options",
    [
        ([switch(101, 0, 5), begins(105, "read"), switch(130, 7, 8, state=1), ends(135, "read"), switch(140, 8, 5), switch(150, 5, 0, state=1)], {"losses": [(0, 105, None)]}),
        ([switch(101, 0, 5), switch(130, 7, 8, state=1), switch(140, 8, 5), switch(150, 5, 0, state=1)], {"losses": [(0, 101, 120)]}),
        ([switch(101, 0, 5), switch(110, 5, 0, state=1), switch(130, 7, 8, state=1), switch(140, 8, 0, state=1)], {}),
        ([switch(101, 0, 5), switch(130, 7, 8, state=1), switch(140, 8, 0, state=1)], {}),
        ([switch(101, 7, 0, state=1, cpu=1), switch(110, 0, 8, cpu=1), switch(120, 5, 0, state=1), switch(140, 8, 0, state=1, cpu=1)], {}),
        ([switch(101, 0, 5), switch(102, 0, 8, cpu=1), *OFF, dump(140, 5, 0, 5), dump(141, 8, 0, 5), switch(150, 0, 5), switch(160, 5, 0, state=1)], {}),
    ],
    ids=["lost between packets", "lost within a packet", "idle to 7 never told", "5 to 7 never told", "who ran first", "switched off"],
)  # fmt: skip
def test_in_the_trace_processor_cpus_run_what_states_says(krait, both, export, events, options):
    """And it finds no loss of data."""
    folder = both(CALLS, events, **options)
    faults, runs = ask(export(folder, "perfetto")[0], FAULTS, RUNS)
    assert not faults
    rows = verb_json(krait, "states", folder, "--all")["threads"]
    ran = {t["tid"]: sum(t[f"{state}_ns"] for state in ("user", "system", "interrupt")) for t in rows}
    assert dict(runs) == {tid: ns for tid, ns in ran.items() if ns}
