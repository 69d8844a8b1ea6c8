# SPDX-License-Identifier: Apache-2.0
"""krait path on traces made up event by event: each rule of docs/path.md by itself, with times known beforehand; and
the same traces as the oracle sees them."""

import json

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import begins, dump, ends, event, fork, switch, used_again, wake
from path_compared import run
from path_machine import Machine
from path_made import ASLEEP, irq, path  # noqa: F401  (path: fixture)
from peak import peak_kib


def test_a_wait_for_another_thread_is_what_that_one_did(path):
    assert path(
        [
            switch(0, 0, 5),
            switch(5, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            wake(40, 5, cpu=1, name="sched_waking"),
            wake(41, 5),
            switch(45, 0, 5),
            switch(60, 5, 0, ASLEEP),
        ],
        5,
    ) == [("running", 5, 0, 10, 0), ("running", 6, 10, 40, 1), ("woken", 5, 40, 45, 0), ("running", 5, 45, 60, 0)]


def test_a_thread_that_executes_goes_on_as_the_first(path):
    """6 executes another program: it kills 5, which waits for it, and is 5 from then on."""
    assert path(
        [
            switch(0, 0, 5),
            switch(5, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            begins(20, "execve", cpu=1),
            wake(25, 5, cpu=1, name="sched_waking"),
            wake(26, 5),
            switch(28, 0, 5),
            event(29, "sched_process_exit", tid=5),
            switch(30, 5, 0, state=0x20),
            event(40, "sched_process_exec", cpu=1, tid=5, old_tid=6),
            ends(42, "execve", cpu=1),
            switch(60, 5, 0, ASLEEP, cpu=1),
        ],
        5,
    ) == [
        ("running", 5, 0, 10, 0),
        ("running", 6, 10, 25, 1),
        ("woken", 5, 25, 28, 0),
        ("running", 5, 28, 30, 0),
        ("unknown", 5, 30, 40, 0),
        ("running", 5, 40, 60, 0),
    ]


def test_a_chain_is_followed_to_its_end(path):
    """5 waits for 6, which waits for the disk; before, 6 waited for 7, which slept."""
    assert path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            begins(10, "futex"),
            switch(12, 5, 7, ASLEEP),
            begins(14, "nanosleep"),
            switch(15, 7, 0, ASLEEP),
            switch(16, 6, 0, ASLEEP, cpu=1),
            *irq(30, event(31, "timer_hrtimer_expire_entry", hrtimer=1), wake(31, 7)),
            switch(35, 0, 7),
            wake(40, 6),
            switch(42, 0, 6, cpu=1),
            switch(50, 7, 0, ASLEEP),
            begins(55, "read", cpu=1),
            switch(56, 6, 0, ASLEEP, cpu=1),
            *irq(70, event(71, "block_rq_complete", cpu=1, dev=1), wake(71, 6, cpu=1), cpu=1),
            switch(75, 0, 6, cpu=1),
            wake(80, 5, cpu=1),
            switch(81, 0, 5),
            ends(82, "futex"),
            switch(90, 5, 0, ASLEEP),
        ],
        5,
    ) == [
        ("running", 5, 0, 12, 0),
        ("running", 6, 12, 16, 1),
        ("timer", 7, 16, 31, 2),
        ("woken", 7, 31, 35, 2),
        ("running", 7, 35, 40, 2),
        ("woken", 6, 40, 42, 1),
        ("running", 6, 42, 56, 1),
        ("disk", 6, 56, 71, 1),
        ("woken", 6, 71, 75, 1),
        ("running", 6, 75, 80, 1),
        ("woken", 5, 80, 81, 0),
        ("running", 5, 81, 90, 0),
    ]


def test_what_lies_before_the_wait_is_not_followed(path):
    """6 is woken by 7 before 5 waits: how 6 came to run is none of 5's."""
    assert path(
        [
            switch(0, 0, 5),
            switch(1, 0, 7, cpu=1),
            wake(5, 6, cpu=1),
            switch(8, 7, 6, ASLEEP, cpu=1),
            switch(10, 5, 0, ASLEEP),
            wake(20, 5, cpu=1),
            switch(21, 0, 5),
            event(30, "power_cpu_idle", state=1),
        ],
        5,
    ) == [("running", 5, 0, 10, 0), ("running", 6, 10, 20, 1), ("woken", 5, 20, 21, 0), ("running", 5, 21, 30, 0)]


def ping_pong(turns):
    """Two threads hand a token to and fro on one CPU, 10 us each."""
    events = [switch(0, 0, 5)]
    for i in range(turns):
        mine, other = (5, 6) if i % 2 == 0 else (6, 5)
        events += [wake(10 * i + 9, other), switch(10 * i + 10, mine, other, ASLEEP)]
    return events


def test_two_threads_in_turns_are_one_after_the_other(path):
    found = path(ping_pong(8), 5)
    runs = [s for s in found if s[0] == "running"]
    assert [s[1] for s in runs] == [5, 6] * 4 and {s[4] for s in runs} == {0, 1}
    assert found[-1][3] == 80 and found[0][2] == 0


def test_a_long_exchange_takes_no_longer_than_its_events(path):
    """Each wait is followed once: 20,000 turns take 20,000 steps."""
    found = path(ping_pong(20_000), 5, "--to", "1h")  # without the oracle, which takes its time
    assert len([s for s in found if s[0] == "running"]) == 20_000


def test_a_trace_without_interrupts_is_told(krait, tmp_path):
    without = run(krait, made.write(tmp_path / "a", ping_pong(4)), "--thread", "5")
    assert without.returncode == 0 and "missing: interrupts (not recorded)" in without.stderr
    assert not run(krait, made.write(tmp_path / "b", [*ping_pong(4), *irq(50)]), "--thread", "5").stderr


def test_behind_whom_is_told_by_its_life(krait, path, tmp_path):
    events = [
        switch(0, 0, 5),
        switch(10, 5, 7, next_comm="first"),
        switch(20, 7, 5, prev_comm="first"),
        switch(30, 5, 7, ASLEEP, next_comm="first"),
        *irq(33, event(34, "timer_expire_entry", timer=1), wake(35, 5)),
        *used_again(40, 7, 5),
        switch(50, 7, 5),
        switch(60, 5, 7, ASLEEP),
    ]
    path(events, 5)
    rows = verb_json(krait, "path", tmp_path / "made", "--thread", 5)["segments"]
    told = [(r["kind"], r["by_tid"], r["by_name"]) for r in rows if r["by_tid"]]
    assert told == [("preempted", 7, "first"), ("woken", 7, "t7")]


def test_behind_whom_names_all_who_had_the_cpu_longest_first(krait, tmp_path):
    """Not who got it first, for a moment. Of one that is woken, who had the CPU that it was queued on."""
    events = [
        switch(0, 0, 5),
        switch(10, 5, 8),
        switch(11, 8, 9),
        switch(41, 9, 8),
        switch(50, 8, 5),
        switch(60, 5, 9, ASLEEP),
        switch(61, 0, 7, cpu=1),
        wake(70, 5, target_cpu=1),
        switch(80, 7, 6, ASLEEP, cpu=1),
        switch(100, 6, 5, ASLEEP, cpu=1),
        switch(120, 5, 0, ASLEEP, cpu=1),
    ]
    folder = made.write(tmp_path / "made", events)
    rows = [r for r in verb_json(krait, "path", folder, "--thread", 5)["segments"] if r["behind"]]
    told = [(r["kind"], r["by_tid"], r["behind"]) for r in rows]
    assert told == [("preempted", 9, "t9 9: 30000, t8 8: 10000"), ("woken", 6, "t6 6: 20000, t7 7: 10000")]
    table = run(krait, folder, "--thread", "5", "--segments").stdout
    assert "t9 75.0%, t8 25.0%" in table and "t6 66.7%, t7 33.3%" in table


def test_behind_whom_is_of_the_part_of_the_wait_that_is_on_the_path(krait, tmp_path):
    """The range ends in the wait, or who waits for the one that is ready begins to wait in the middle of it."""
    events = [
        switch(0, 0, 5),
        switch(10, 5, 8),
        switch(20, 8, 9),
        switch(50, 9, 5),
        switch(90, 5, 0, ASLEEP),
    ]
    cut = made.write(tmp_path / "cut", events)
    rows = [r for r in verb_json(krait, "path", cut, "--thread", 5, "--until", "30us")["segments"] if r["behind"]]
    assert [(r["time_ns"], r["duration_ns"], r["behind"]) for r in rows] == [(10000, 20000, "t8 8: 10000, t9 9: 10000")]
    assert "t8 50.0%, t9 50.0%" in run(krait, cut, "--thread", "5", "--segments", "--until", "30us").stdout
    events = [
        switch(0, 0, 5),
        switch(0, 0, 6, cpu=1),
        switch(35, 6, 8, cpu=1),
        switch(45, 8, 9, cpu=1),
        switch(55, 5, 0, ASLEEP),
        switch(75, 9, 6, cpu=1),
        wake(80, 5, cpu=1, target_cpu=0),
        switch(81, 0, 5),
        switch(90, 5, 0, ASLEEP),
    ]
    waker = made.write(tmp_path / "waker", events)
    rows = [r for r in verb_json(krait, "path", waker, "--thread", 5)["segments"] if r["behind"]]
    assert [(r["tid"], r["time_ns"], r["duration_ns"], r["behind"]) for r in rows] == [(6, 55000, 20000, "t9 9: 20000")]
    assert " t9 " in run(krait, waker, "--thread", "5", "--segments").stdout


def test_behind_whom_says_when_nobody_had_the_cpu(krait, tmp_path):
    events = [switch(0, 0, 5), switch(10, 5, 8), switch(20, 8, 0, ASLEEP), switch(50, 0, 5), switch(90, 5, 0, ASLEEP)]
    folder = made.write(tmp_path / "made", events)
    (row,) = [r for r in verb_json(krait, "path", folder, "--thread", 5)["segments"] if r["behind"]]
    assert (row["by_tid"], row["behind"], row["duration_ns"]) == (8, "t8 8: 10000", 40_000)
    assert "idle 75.0%, t8 25.0%" in run(krait, folder, "--thread", "5", "--segments").stdout


def test_behind_whom_knows_any_number_of_threads_and_switches(krait, tmp_path):
    others, rounds = range(100, 300), 10
    turns = [tid for _ in range(rounds) for tid in others]
    times = {10 + i: tid for i, tid in enumerate(turns)}
    events = [switch(0, 0, 5), switch(10, 5, turns[0])]
    events += [switch(us, times[us - 1], tid) for us, tid in times.items() if us > 10]
    events += [switch(10 + len(turns), turns[-1], 5), switch(3000, 5, 0, ASLEEP)]
    folder = made.write(tmp_path / "made", events)
    (row,) = [r for r in verb_json(krait, "path", folder, "--thread", 5)["segments"] if r["behind"]]
    assert row["behind"] == ", ".join(f"t{tid} {tid}: {rounds * 1000}" for tid in others)


def test_preempted_is_behind_whom(krait, path, tmp_path):
    events = [
        switch(0, 0, 5),
        switch(10, 5, 8),
        switch(30, 8, 5),
        switch(40, 5, 8, ASLEEP),
        *irq(44, event(45, "timer_expire_entry", timer=1), wake(45, 5)),
        switch(50, 8, 5),
        switch(60, 5, 0, ASLEEP),
    ]
    assert path(events, 5) == [
        ("running", 5, 0, 10, 0),
        ("preempted", 5, 10, 30, 0),
        ("running", 5, 30, 40, 0),
        ("timer", 5, 40, 45, 0),
        ("woken", 5, 45, 50, 0),
        ("running", 5, 50, 60, 0),
    ]
    rows = verb_json(krait, "path", tmp_path / "made", "--thread", 5)["segments"]
    assert [(r["kind"], r["by_tid"], r["by_name"]) for r in rows if r["by_tid"]] == [("preempted", 8, "t8"), ("woken", 8, "t8")]


X86 = "x86_irq_vectors_"


@pytest.mark.parametrize(
    "call, around, kind",
    [
        ("read", irq(40, event(41, "block_rq_complete", dev=1), wake(41, 5)), "disk"),
        ("futex", irq(40, event(41, "hrtimer_expire_entry", hrtimer=1), wake(41, 5)), "timer"),
        ("epoll_wait", [event(40, "irq_softirq_entry", vec=3), wake(41, 5)], "network"),
        ("epoll_wait", [event(40, "irq_softirq_entry", vec=1), wake(41, 5)], "timer"),
        ("read", [event(40, "irq_softirq_entry", vec=4), wake(41, 5)], "disk"),
        ("read", [event(40, "irq_softirq_entry", vec=6), wake(41, 5)], "interrupt"),
        ("nanosleep", irq(40, wake(41, 5)), "timer"),
        ("nanosleep", [wake(41, 5)], "timer"),
        ("recvfrom", irq(40, wake(41, 5)), "network"),
        ("read", irq(40, wake(41, 5)), "interrupt"),
        ("read", [event(40, X86 + "reschedule_entry", vector=253), wake(41, 5)], "ipi"),
        ("read", [event(40, X86 + "call_function_single_entry", vector=251), wake(41, 5)], "ipi"),
        ("read", [event(40, X86 + "local_timer_entry", vector=236), wake(41, 5)], "interrupt"),
        ("fsync", [event(40, X86 + "call_function_single_entry", vector=251), wake(41, 5)], "disk"),
        ("read", [wake(41, 5)], "blocked"),
        ("futex", [wake(41, 5)], "blocked"),
    ],
)
def test_what_ends_a_wait_says_what_it_was(path, call, around, kind):
    events = [switch(0, 0, 5), begins(10, call), switch(20, 5, 0, ASLEEP), *around, switch(50, 0, 5), event(60, "power_cpu_idle", state=1)]
    assert [s[:4] for s in path(events, 5)] == [
        ("running", 5, 0, 20),
        (kind, 5, 20, 41),
        ("woken", 5, 41, 50),
        ("running", 5, 50, 60),
    ]


def test_an_interrupt_on_the_way_is_told(path):
    assert path(
        [switch(0, 0, 5), event(10, "irq_softirq_entry", vec=7), event(14, "irq_softirq_exit", vec=7), switch(20, 5, 0, ASLEEP)], 5
    ) == [("running", 5, 0, 10, 0), ("interrupted", 5, 10, 14, 0), ("running", 5, 14, 20, 0)]


def test_what_a_thread_did_before_it_was_made_is_its_parents(path):
    assert path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            fork(30, 6, 7, cpu=1),
            wake(31, 7, name="sched_wakeup_new", cpu=1),
            switch(35, 6, 7, cpu=1),
            wake(50, 5, cpu=1),
            switch(52, 0, 5),
            switch(60, 5, 0, ASLEEP),
        ],
        5,
    ) == [
        ("running", 5, 0, 10, 0),
        ("running", 6, 10, 30, 2),
        ("woken", 7, 30, 35, 1),
        ("running", 7, 35, 50, 1),
        ("woken", 5, 50, 52, 0),
        ("running", 5, 52, 60, 0),
    ]


def test_who_wakes_a_thread_first_has_made_it(path):
    """Though its fork was lost: what it did before is its parent's."""
    found = path(
        [
            switch(0, 0, 5),
            switch(1, 0, 6, cpu=1),
            switch(10, 5, 0, ASLEEP),
            wake(31, 7, name="sched_wakeup_new", cpu=1),
            switch(35, 6, 7, cpu=1),
            wake(50, 5, cpu=1),
            switch(52, 0, 5),
            switch(60, 5, 0, ASLEEP),
        ],
        5,
    )
    assert found[1:3] == [("running", 6, 10, 31, 2), ("woken", 7, 31, 35, 1)]


def test_the_path_is_of_the_first_thread_of_a_number(path):
    """That it is another's later is not told by a fork."""
    found = path([switch(0, 0, 5), event(8, "sched_process_exit", tid=5), switch(10, 5, 0, 0x80), wake(30, 5), switch(32, 0, 5)], 5)
    assert found == [("running", 5, 0, 10, 0)]


def test_before_a_thread_whose_fork_was_lost_nothing_is_forgotten(krait, tmp_path):
    """It has the number of one that has ended in the same wait: what it did at first is unknown, not forgotten."""
    events = [
        switch(0, 0, 6, cpu=1),
        switch(0, 0, 5),
        switch(1, 5, 0, ASLEEP),
        event(2, "sched_process_exit", tid=6, cpu=1),
        switch(3, 6, 0, 0x80, cpu=1),
        switch(6, 0, 6, cpu=1),
        wake(8, 5, cpu=1),
        switch(9, 0, 5),
        switch(20, 5, 0, ASLEEP),
    ]
    told = run(krait, made.write(tmp_path / "made", events), "--thread", "5", "--json")
    found = json.loads(told.stdout)
    assert ("unknown", 6) in [(row["kind"], row["tid"]) for row in found["segments"]]
    assert found["forgotten_ns"] == 0 and "forgotten" not in told.stderr


def test_a_path_is_as_long_as_the_thread_is_there(path):
    assert path(
        [
            switch(0, 0, 6),
            fork(10, 6, 5),
            switch(20, 6, 5, ASLEEP),
            begins(30, "exit_group"),
            event(35, "sched_process_exit", tid=5),
            switch(40, 5, 0, state=0x80),
            event(90, "power_cpu_idle", state=1),
        ],
        5,
    ) == [("woken", 5, 10, 20, 0), ("running", 5, 20, 40, 0)]


def test_of_a_number_that_is_used_again_the_first_is_taken(path):
    end = event(35, "sched_process_exit", tid=5)
    events = [switch(0, 0, 6), fork(10, 6, 5), switch(20, 6, 5, ASLEEP), end, switch(40, 5, 0, state=0x80), switch(41, 0, 6), fork(50, 6, 5), switch(60, 6, 5, ASLEEP), switch(70, 5, 0, ASLEEP)]
    assert path(events, 5) == [("woken", 5, 10, 20, 0), ("running", 5, 20, 40, 0)]
    assert path(events, 5, "--from", "45us") == [("woken", 5, 50, 60, 0), ("running", 5, 60, 70, 0)]


def test_a_range_cuts_a_wait_that_is_followed_to_its_end(path):
    events = [
        switch(0, 0, 5),
        switch(5, 0, 6, cpu=1),
        switch(10, 5, 0, ASLEEP),
        switch(20, 6, 0, ASLEEP, cpu=1),
        *irq(30, event(31, "block_rq_complete", cpu=1, dev=1), wake(31, 6, cpu=1), cpu=1),
        switch(33, 0, 6, cpu=1),
        wake(40, 5, cpu=1),
        switch(45, 0, 5),
        switch(60, 5, 0, ASLEEP),
    ]
    assert path(events, 5, "--from", "15us", "--to", "25us") == [("running", 6, 15, 20, 1), ("disk", 6, 20, 25, 1)]
    assert path(events, 5, "--from", "32us", "--to", "50us") == [
        ("woken", 6, 32, 33, 1),
        ("running", 6, 33, 40, 1),
        ("woken", 5, 40, 45, 0),
        ("running", 5, 45, 50, 0),
    ]
    assert path(events, 5, "--to", "5us") == [("running", 5, 0, 5, 0)]


def test_a_wait_that_nobody_ends_is_said(path):
    assert path([switch(0, 0, 5), begins(5, "futex"), switch(10, 5, 0, ASLEEP), event(50, "power_cpu_idle", state=1)], 5) == [
        ("running", 5, 0, 10, 0),
        ("blocked", 5, 10, 50, 0),
    ]


def test_wake_ups_that_end_no_wait_change_nothing(path):
    """Of one that runs, of one that is ready, of numbers that are none, of itself, of threads that nobody ever sees."""
    noise = [wake(12, 5), wake(22, 5), wake(23, -3), wake(24, 1 << 40), *(wake(25, 1000 + i) for i in range(300))]
    events = [
        switch(0, 0, 5),
        switch(5, 0, 6, cpu=1),
        switch(20, 5, 0, ASLEEP),
        *noise[:1],
        wake(21, 5, cpu=1),
        *noise[1:],
        wake(26, 6, cpu=1),
        switch(30, 0, 5),
        switch(40, 5, 0, ASLEEP),
    ]
    events.sort(key=lambda e: e[0])
    assert path(events, 5) == [("running", 5, 0, 20, 0), ("running", 6, 20, 21, 1), ("woken", 5, 21, 30, 0), ("running", 5, 30, 40, 0)]


def test_a_thread_cannot_wake_itself(path):
    """Its switch is there, the next one's is lost: the trace says that it runs where it is woken."""
    assert path(
        [switch(0, 0, 5), switch(10, 5, 6, ASLEEP), switch(15, 7, 5, cpu=1), switch(20, 5, 0, ASLEEP), wake(30, 5, cpu=1), switch(35, 0, 5), switch(40, 5, 0, ASLEEP)],
        5,
    )[-3:-1] == [("blocked", 5, 20, 30, 0), ("woken", 5, 30, 35, 0)]


def test_a_wake_up_that_was_lost_leaves_the_wait_unexplained(krait, path, tmp_path):
    events = [switch(0, 0, 5), switch(10, 5, 6, ASLEEP), switch(30, 6, 5, ASLEEP), switch(40, 5, 0, ASLEEP)]
    assert path(events, 5, lost=3) == [("running", 5, 0, 10, 0), ("blocked", 5, 10, 30, 0), ("running", 5, 30, 40, 0)]
    assert "lost: 3 events" in run(krait, tmp_path / "made", "--thread", "5").stderr


def test_a_packet_that_is_sent_says_who_runs_but_not_who_ran_before(path, krait, tmp_path):
    """The switch to 5 was lost: whom it had to wait for is not known, neither by this CPU's last switch nor by another's."""
    events = [
        switch(0, 0, 5, **{made.CONTEXT: 0}),
        switch(5, 8, 0, cpu=1, **{made.CONTEXT: 8}),
        switch(10, 5, 0, ASLEEP, **{made.CONTEXT: 5}),
        wake(20, 5, cpu=1, **{made.CONTEXT: 0}),
        switch(24, 6, 7, cpu=0, **{made.CONTEXT: 6}),
        event(30, "net_dev_queue", skbaddr=1, cpu=1, **{made.CONTEXT: 5}),
        switch(50, 5, 0, ASLEEP, cpu=1, **{made.CONTEXT: 5}),
    ]
    assert path(events, 5)[-2:] == [("woken", 5, 20, 30, 0), ("running", 5, 30, 50, 0)]
    rows = verb_json(krait, "path", tmp_path / "made", "--thread", 5)["segments"]
    assert [r["by_tid"] for r in rows if r["kind"] == "woken"] == [None]


def test_a_waker_whose_switch_was_lost_is_unknown_before(path):
    """That 6 runs, only its context says, when it calls."""
    assert path(
        [
            switch(0, 0, 5, **{made.CONTEXT: 0}),
            switch(5, 7, 0, ASLEEP, cpu=1, **{made.CONTEXT: 7}),
            switch(10, 5, 0, ASLEEP, **{made.CONTEXT: 5}),
            begins(20, "write", cpu=1, **{made.CONTEXT: 6}),
            wake(30, 5, cpu=1, **{made.CONTEXT: 6}),
            switch(40, 0, 5),
            switch(50, 5, 0, ASLEEP),
        ],
        5,
        "--to",
        "1h",  # without the oracle, which knows of no losses
        losses=[(1, 5, None)],
    )[1:3] == [("unknown", 6, 10, 20, 1), ("running", 6, 20, 30, 1)]


def test_a_waker_that_runs_since_before_the_trace(path):
    """Only its context says so, when it calls."""
    assert path(
        [
            switch(0, 0, 5, **{made.CONTEXT: 0}),
            switch(10, 5, 0, ASLEEP, **{made.CONTEXT: 5}),
            begins(20, "write", cpu=1, **{made.CONTEXT: 6}),
            wake(30, 5, cpu=1, **{made.CONTEXT: 6}),
            switch(40, 0, 5),
            switch(50, 5, 0, ASLEEP),
        ],
        5,
    )[1:2] == [("running", 6, 10, 30, 1)]


def test_a_thread_that_was_asleep_before_the_trace_began_waits(path):
    """The state dump says so."""
    assert path(
        [dump(0, 5, 0, 5), switch(1, 0, 6, cpu=1), wake(20, 5, cpu=1), switch(22, 0, 5), switch(30, 5, 0, ASLEEP)], 5
    )[1:] == [("running", 6, 1, 20, 1), ("woken", 5, 20, 22, 0), ("running", 5, 22, 30, 0)]


@pytest.mark.parametrize("losses", [0, 0.05, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_the_oracle_finds_the_same(path, seed, losses):
    events = Machine(seed, losses).run(400)
    for tid in (5, 6, 7, 8, 12):
        assert path(events, tid)


def at_times(found, times):
    """What the path is in at each of these times."""
    rows = iter(found["segments"])
    row = next(rows)
    for ns in times:
        while row["time_ns"] + row["duration_ns"] <= ns:
            row = next(rows)
        yield {key: row[key] for key in ("kind", "tid", "depth", "device", "by_tid", "syscall")}


@pytest.mark.parametrize("losses", [0, 0.05, 0.4])
def test_what_is_forgotten_in_a_long_wait_is_unknown_and_nothing_else_changes(krait, tmp_path, losses):
    forgotten = 0
    for seed, tid in [(seed, tid) for seed in range(6) for tid in (5, 6, 7, 12)]:
        folder = tmp_path / f"made{seed}"
        if not folder.exists():
            made.write(folder, Machine(seed, losses).run(2000))
        whole, little = (verb_json(krait, "path", folder, "--thread", tid, *more) for more in ((), ("--memory", "512")))
        assert whole["forgotten_ns"] == 0
        assert [whole[key] for key in ("time_ns", "duration_ns")] == [little[key] for key in ("time_ns", "duration_ns")]
        times = sorted({row["time_ns"] for found in (whole, little) for row in found["segments"]})
        ends = [*times[1:], whole["time_ns"] + whole["duration_ns"]]
        unknown = 0
        for begin, end, was, now in zip(times, ends, at_times(whole, times), at_times(little, times)):
            assert now == was or now["kind"] == "unknown"
            unknown += end - begin if now != was else 0
        assert unknown <= little["forgotten_ns"] <= little["duration_ns"]
        forgotten += unknown
    assert forgotten


def long_wait(turns):
    """5 waits while 6 and 7 take turns, and 6 wakes it in the end."""
    events = [switch(0, 0, 5), switch(1, 0, 6, cpu=1), switch(2, 5, 0, ASLEEP)]
    for us in range(10, 10 + 20 * turns, 20):
        events += [switch(us, 6, 7, cpu=1), switch(us + 10, 7, 6, cpu=1)]
    end = 10 + 20 * turns
    return [*events, wake(end, 5, cpu=1), switch(end + 1, 0, 5), switch(end + 5, 5, 0, ASLEEP)]


def test_a_long_wait_has_its_last_part_where_memory_is_little(krait, tmp_path):
    folder = made.write(tmp_path / "made", long_wait(1000))
    run_ = run(krait, folder, "--thread", "5", "--memory", "4K", "--json")
    found = json.loads(run_.stdout)
    first, unknown, *rest = [(r["kind"], r["tid"], r["depth"], r["duration_ns"]) for r in found["segments"]]
    assert first == ("running", 5, 0, 2000)
    assert unknown == ("unknown", 6, 1, found["forgotten_ns"])
    assert 30 < len(rest) < 140 and rest[-4:] == [
        ("preempted", 6, 1, 10_000), ("running", 6, 1, 10_000), ("woken", 5, 0, 1000), ("running", 5, 0, 4000)
    ]  # fmt: skip
    assert "forgotten: what happened in 19." in run_.stderr and "--memory" in run_.stderr


def test_memory_does_not_grow_with_a_long_wait(krait, tmp_path):
    folder = made.write(tmp_path / "made", long_wait(60_000))
    little, much = (peak_kib(krait, "path", folder, "--thread", "5", "--csv", "--memory", size) for size in ("256K", "256M"))
    assert much - little > 120_000 * 2 * 32 / 1024 * 0.8
