# SPDX-License-Identifier: Apache-2.0
"""krait export of recordings with a kernel part: what all formats have in common, and real recordings."""

import json
import os
import subprocess
import time
from collections import Counter

import pytest

import kernel_made as made
from export_readers import perfetto_ftrace, perfetto_slices, read_chrome, read_perfetto, read_with_speedscope
from exported_kernel import CALLS, SLEEP, WHO, assert_nested, assert_tracks_nest, chrome_rows, complete, export, messages, states
from kernel_made import begins, ends, event, switch
from kernel_recorded import ROOMY
from peak import peak_kib
from recording import ROOT
from trace_processor import FAULTS, ask


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
    assert done.returncode == 2 and f"--no-kernel: --to {fmt} has no kernel events" in done.stderr


@pytest.mark.parametrize("fmt", ["chrome", "perfetto"])
def test_lost_events_are_said(both, export, fmt):
    path, warned = export(both(CALLS, SLEEP, lost=1234), fmt)
    (line,) = warned
    assert line.startswith("lost: 1,234 events of the kernel's: the changes of state that they told are missing; LTTng dropped them; ")
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
