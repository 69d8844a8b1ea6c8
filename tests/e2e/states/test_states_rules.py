# SPDX-License-Identifier: Apache-2.0
"""krait states on traces made up event by event: each rule of docs/states.md by itself, with times known beforehand."""

import csv
import io
import struct
import subprocess

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import begins, dump, dumped_wait, ends, event, fork, switch, used_again, wake
from states_run import run, times_of


@pytest.fixture
def states(krait, tmp_path):
    """states(events): what krait states finds, times in microseconds."""

    def find(events, **options):
        return verb_json(krait, "states", made.write(tmp_path / "made", events, **options))

    return find


def us(row):
    return {state: ns // 1000 for state, ns in times_of(row).items()}


def threads(found):
    return {t["tid"]: us(t) for t in found["threads"]}


def test_an_interrupt_stops_a_soft_interrupt_and_both_a_thread(states):
    found = states(
        [
            switch(0, 0, 5),
            event(10, "irq_softirq_entry", vec=3),
            event(12, "irq_handler_entry", irq=1),
            event(15, "irq_handler_exit", irq=1),
            event(20, "irq_softirq_exit", vec=3),
            switch(30, 5, 0, state=1),
            event(40, "power_cpu_idle", state=1),
        ]
    )
    assert us(found["cpus"][0]) == {"user": 20, "softirq": 7, "interrupt": 3, "idle": 10}
    assert threads(found) == {5: {"user": 20, "interrupt": 10, "blocked_other": 10}}


@pytest.mark.parametrize(
    "prev_state, kind, after",
    [
        (0, 0, "preempted"),
        (0x100, 0, "preempted"),  # TASK_REPORT_MAX, from 4.14 on
        (0x400, 0, "preempted"),  # TASK_STATE_MAX of 3.x
        (0x1000, 0, "preempted"),  # and of 4.x
        (1, 0, "blocked_other"),
        (2, 0, "blocked_other"),
        (4, 0, "blocked_stopped"),
        (0x402, 1, "blocked_other"),  # TASK_IDLE of 4.2 to 4.13
        (0x80, 1, "blocked_other"),  # the same from 4.14 on
        (0x200, 1, "blocked_other"),  # TASK_PARKED of 3.9 to 4.13
        (0x40, 1, "blocked_other"),  # TASK_PARKED from 4.14 on, where only the kernel's threads go
        (0x40, 0, "gone"),  # TASK_DEAD before 4.14
        (0x10, 0, "gone"),
        (0x20, 0, "gone"),
    ],
)
def test_what_a_thread_does_after_a_switch(states, prev_state, kind, after):
    found = states([dump(0, 5, kind, 6), switch(10, 0, 5), switch(20, 5, 6, state=prev_state), event(50, "power_cpu_idle", state=1)])
    ran = "system" if kind else "user"
    assert threads(found)[5] == {"unknown": 10, ran: 10, after: 30}


@pytest.mark.parametrize(
    "prev_state, after",
    [
        (0, "preempted"),
        (0x400, "preempted"),
        (2, "blocked_other"),
        (0x82, "blocked_other"),  # TASK_KILLABLE before 4.14
        (0x10, "gone"),
        (0x40, "gone"),
        (0x80, "gone"),  # TASK_DEAD from 4.14 on
    ],
)
def test_a_thread_may_go_on_after_its_exit_was_told(states, prev_state, after):
    """sched_process_exit comes before it closes its files and frees the rest."""
    exits = [switch(0, 0, 5), event(10, "sched_process_exit", tid=5), switch(20, 5, 6, state=prev_state)]
    found = states([*exits, event(50, "power_cpu_idle", state=1)])
    assert threads(found)[5] == {"user": 20, after: 30}


IRQ = event(30, "irq_handler_entry", irq=1)


@pytest.mark.parametrize(
    "call, before_waking, state",
    [
        ("read", [], "blocked_other"),
        ("read", [IRQ], "blocked_other"),
        ("read", [IRQ, event(31, "block_rq_complete", dev=1)], "blocked_disk"),
        ("select", [IRQ, event(31, "timer_hrtimer_expire_entry", hrtimer=1)], "blocked_timer"),
        ("select", [event(30, "irq_softirq_entry", vec=1)], "blocked_timer"),
        ("select", [event(30, "irq_softirq_entry", vec=3)], "blocked_network"),
        ("read", [event(30, "irq_softirq_entry", vec=4)], "blocked_disk"),
        ("read", [event(30, "irq_softirq_entry", vec=7)], "blocked_other"),
        ("read", [event(30, "irq_softirq_entry", vec=99)], "blocked_other"),
        ("read", [event(30, "irq_softirq_entry", vec=7), event(31, "net_if_receive_skb", len=1)], "blocked_network"),
        ("poll", [event(29, "irq_softirq_entry", vec=3), IRQ, event(31, "timer_hrtimer_expire_entry", hrtimer=1)], "blocked_timer"),
        (
            "poll",
            [
                event(28, "irq_softirq_entry", vec=3),
                event(29, "irq_handler_entry", irq=1),
                event(30, "block_rq_complete", dev=1),
                event(31, "irq_handler_exit", irq=1),
            ],
            "blocked_network",
        ),
        ("futex", [IRQ, event(31, "timer_hrtimer_expire_entry", hrtimer=1)], "blocked_lock"),
        ("clock_nanosleep", [], "blocked_timer"),
        ("wait4", [], "blocked_child"),
        ("recvmsg", [], "blocked_network"),
        ("fsync", [], "blocked_disk"),
        ("futex_waitv_of_another_kind", [], "blocked_other"),
        ("nanosleep clock_nanosleep", [], "blocked_other"),
        (" nanosleep", [], "blocked_other"),
    ],
)
def test_what_a_thread_waited_for_is_known_when_it_is_woken(states, call, before_waking, state):
    found = states([switch(0, 0, 5), begins(10, call), switch(20, 5, 0, state=1), *before_waking, wake(40, 5), switch(50, 0, 5)])
    assert threads(found)[5] == {"user": 10, "system": 10, state: 20, "woken": 10}


@pytest.mark.parametrize("cmd, state", [(7, "lock"), (38, "lock"), (14, "lock"), (6, "other"), (3, "other")])
@pytest.mark.parametrize("call", ["fcntl", "fcntl64"])
def test_record_locks_are_waited_for_as_locks(states, call, cmd, state):
    """F_SETLKW, F_OFD_SETLKW and the old F_SETLKW64; another call of that thread is none."""
    found = states([switch(0, 0, 5), begins(10, call, cmd=cmd), switch(20, 5, 6, state=1), wake(40, 5), switch(50, 6, 5), ends(55, call),
                    begins(60, "read"), switch(70, 5, 6, state=1), wake(80, 5)])  # fmt: skip
    expected = {"blocked_lock": 20, "blocked_other": 10} if state == "lock" else {"blocked_other": 30}
    assert threads(found)[5] == {"user": 15, "system": 25, "woken": 10, **expected}


@pytest.mark.parametrize("call", ["poll", "epoll_wait", "select", "read", "recvmsg"])
@pytest.mark.parametrize("by, state", [("sendto", "network"), ("sendmsg", "network"), ("write", "other"), ("futex", "other")])
def test_who_is_woken_by_one_that_sends_waits_for_the_network(states, call, by, state):
    """Of a Unix socket no interrupt tells."""
    found = states([switch(0, 0, 5), begins(10, call), switch(20, 5, 6, state=1), begins(30, by), wake(40, 5), event(50, "power_cpu_idle", state=1)])
    told = "network" if call == "recvmsg" else state
    assert threads(found)[5] == {"user": 10, "system": 10, f"blocked_{told}": 20, "woken": 10}


@pytest.mark.parametrize("bits", [4, 8, 0x104])
def test_who_is_stopped_by_a_signal_is(states, bits):
    found = states([switch(0, 0, 5), begins(5, "read"), ends(10, "read"), switch(20, 5, 6, state=bits), begins(30, "kill"), wake(40, 5), switch(45, 6, 5)])
    assert threads(found)[5] == {"user": 15, "system": 5, "blocked_stopped": 20, "woken": 5}


def test_who_could_run_where_the_cpu_idles_is_throttled(states):
    """By its cgroup's quota: nobody else has the CPU."""
    found = states([switch(0, 0, 5), switch(10, 5, 0), switch(40, 0, 5), switch(50, 5, 6), switch(60, 6, 5), switch(70, 5, 0, state=1)])
    assert threads(found)[5] == {"user": 30, "throttled": 30, "preempted": 10}
    row = next(t for t in found["threads"] if t["tid"] == 5)
    assert row["ready_ns"] == 40_000
    assert {r["name"]: (r["count"], r["total_ns"]) for r in found["latencies"]} == {"preempted to running": (2, 40_000)}


@pytest.mark.parametrize("call", ["write", "fsync", "pwrite64", "openat", "poll"])
@pytest.mark.parametrize("bits, kind", [(2, 1), (1, 1), (2, 0)])
def test_what_the_kernels_own_threads_do_for_a_file_is_the_disk(states, call, bits, kind):
    """O_DSYNC: a kworker writes it, and wakes who waits, which is not to be disturbed meanwhile."""
    found = states([dump(0, 6, kind, 6), switch(1, 0, 5), begins(10, call), switch(20, 5, 6, state=bits), wake(40, 5), event(50, "power_cpu_idle", state=1)])
    told = "disk" if call == "fsync" or ((bits, kind) == (2, 1) and call != "poll") else "other"
    assert threads(found)[5][f"blocked_{told}"] == 20


SLEEPERS = [
    switch(0, 0, 5),
    begins(5, "read"),
    switch(10, 5, 6, state=1),
    begins(12, "futex"),
    switch(15, 6, 7, state=1),
    begins(18, "poll"),
    switch(20, 7, 0, state=1),
    fork(45, 5, 9),
    event(50, "irq_handler_entry", irq=1),
    event(51, "block_rq_complete", dev=1),
    wake(52, 5),
    event(53, "irq_handler_exit", irq=1),
    switch(60, 0, 5),
    ends(62, "read", ret=1),
    event(70, "irq_softirq_entry", vec=3),
    wake(71, 7),
    event(72, "irq_softirq_exit", vec=3),
    switch(90, 5, 0, state=1),
]


def test_a_wait_that_goes_on_at_the_ranges_end_is_what_ended_it_then(krait, tmp_path):
    """So halves add up to the whole: what happened behind the range leaves nothing else there."""
    folder = made.write(tmp_path / "made", SLEEPERS)
    whole, first, second = (verb_json(krait, "states", folder, *of) for of in ([], ["--until", "40us"], ["--from", "40us"]))
    assert threads(first) == {
        5: {"user": 5, "system": 5, "blocked_disk": 30},
        6: {"unknown": 10, "user": 2, "system": 3, "blocked_lock": 25},
        7: {"unknown": 15, "user": 3, "system": 2, "blocked_network": 20},
    }
    assert us(first["cpus"][0]) == {"user": 10, "system": 10, "idle": 20} and not first["syscalls"]
    for key, of in (("threads", "tid"), ("cpus", "cpu")):
        for row in whole[key]:
            halves = [us(r) for half in (first, second) for r in half[key] if r[of] == row[of]]
            if len(halves) == 2:  # 9 is made in the second
                assert us(row) == {state: sum(h.get(state, 0) for h in halves) for state in us(row)}
    rows = verb_json(krait, "states", folder, "--by", "interval", "--thread", "5", "--until", "40us")["intervals"]
    assert [(r["state"], r["duration_ns"]) for r in rows] == [("user", 5000), ("system", 5000), ("blocked_disk", 30_000)]


def test_how_far_it_looks_is_bounded(krait, tmp_path):
    """Ten seconds."""
    for seconds, state in ((9, "blocked_disk"), (11, "blocked_other")):
        late = [(us + seconds * 10**6 * (us > 40), *rest) for us, *rest in SLEEPERS]
        found = verb_json(krait, "states", made.write(tmp_path / state, late), "--until", "40us")
        assert threads(found)[5][state] == 30


def test_who_waits_at_the_end_of_the_trace_waits_for_what_its_call_tells(states):
    found = states([switch(0, 0, 5), begins(5, "futex"), switch(10, 5, 0, state=1), event(30, "power_cpu_idle", state=1)])
    assert threads(found)[5] == {"user": 5, "system": 5, "blocked_lock": 20}


def test_one_cpu_wakes_what_another_runs(states):
    found = states(
        [
            switch(0, 0, 5),
            switch(20, 5, 0, state=1),
            event(30, "irq_softirq_entry", cpu=1, vec=3),
            wake(40, 5, cpu=1, name="sched_waking"),
            wake(44, 5),
            switch(50, 0, 5),
            switch(60, 5, 6, state=0x100),
            switch(67, 6, 5, state=1),
        ]
    )
    assert threads(found)[5] == {"user": 30, "blocked_network": 20, "woken": 10, "preempted": 7}
    assert {row["name"]: row["total_ns"] for row in found["latencies"]} == {
        "waking to wake-up": 4000,
        "wake-up to running": 6000,
        "preempted to running": 7000,
    }
    assert us(found["cpus"][1]) == {"unknown": 30, "softirq": 37}


INTERVALS = """\
       time      took  state            system call  by  tid  thread
0.000000000  10.00 us  user             -            -     5  t5
0.000010000  10.00 us  system           read         -     5  t5
0.000020000  20.00 us  blocked_network  read         -     5  t5
0.000040000  10.00 us  woken            read         -     5  t5
0.000050000  10.00 us  system           read         -     5  t5
0.000060000  10.00 us  preempted        read         t6    5  t5
0.000070000  5.000 us  system           read         -     5  t5
0.000075000  10.00 us  blocked_other    read         -     5  t5
0.000085000  5.000 us  woken            read         t6    5  t5
"""


def test_who_it_was_is_told_by_its_life(krait, tmp_path):
    """Whose number is another's later."""
    events = [
        switch(0, 0, 5),
        switch(10, 5, 7, next_comm="first"),
        switch(20, 7, 5, prev_comm="first", state=1),
        switch(30, 5, 0, state=1),
        switch(30, 0, 7, next_comm="first", cpu=1),
        wake(40, 5, cpu=1),
        switch(42, 0, 5),
        *used_again(50, 7, 5, cpu=1),
        switch(60, 5, 7),
    ]
    folder = made.write(tmp_path / "made", events)
    rows = verb_json(krait, "states", folder, "--by", "interval", "--thread", "5")["intervals"]
    told = [(r["state"], r["by_tid"], r["by_name"]) for r in rows if r["by_tid"]]
    assert told == [("preempted", 7, "first"), ("woken", 7, "first")]


def test_intervals_say_the_call_and_who_it_was(krait, tmp_path):
    folder = made.write(
        tmp_path / "made",
        [
            switch(0, 0, 5),
            begins(10, "read"),
            switch(20, 5, 0, state=1),
            event(30, "irq_softirq_entry", vec=3),
            wake(40, 5),
            switch(50, 0, 5),
            switch(60, 5, 6),
            switch(70, 6, 5),
            switch(75, 5, 6, state=1),
            wake(85, 5),
            wake(90, 5),
        ],
    )
    assert run(krait, folder, "--by", "interval", "--thread", "5").stdout == INTERVALS


def test_a_child_is_there_from_its_fork_to_its_end(states):
    found = states(
        [
            switch(0, 0, 5),
            begins(10, "clone"),
            fork(15, 5, 6),
            wake(16, 6, name="sched_wakeup_new"),
            ends(20, "clone", ret=6),
            switch(30, 5, 6, state=1),
            ends(32, "clone", ret=0),
            begins(40, "exit_group"),
            event(42, "sched_process_exit", tid=6),
            switch(50, 6, 0, state=0x80),
            fork(70, 5, 6),
            event(90, "power_cpu_idle", state=1),
        ]
    )
    lives = [us(t) for t in found["threads"] if t["tid"] == 6]
    assert lives == [{"gone": 15 + 40, "woken": 15, "system": 2 + 10, "user": 8}, {"gone": 70, "woken": 20}]
    assert [(c["name"], c["calls"]) for c in found["syscalls"]] == [("clone", 1)]


ENDS = [event(42, "sched_process_exit", tid=6), switch(50, 6, 0, state=0x80)]
PARKED = [switch(50, 6, 0, state=0x40)]  # or dead, before 4.14: a thread of the kernel's, as far as it is known


@pytest.mark.parametrize(
    "ends, again, lives",
    [
        (ENDS, wake(70, 6, name="sched_wakeup_new"), [{"gone": 40}, {"gone": 70, "woken": 20}]),
        (ENDS, wake(70, 6), [{"gone": 40}, {"gone": 50, "unknown": 20, "woken": 20}]),
        (ENDS, wake(70, 6, name="sched_waking"), [{"gone": 40}, {"gone": 50, "unknown": 20, "woken": 20}]),
        (ENDS, switch(70, 0, 6), [{"gone": 40}, {"gone": 50, "unknown": 20, "user": 20}]),
        ([switch(50, 6, 0, state=0x10)], wake(70, 6), [{"gone": 40}, {"gone": 50, "unknown": 20, "woken": 20}]),
        (PARKED, wake(70, 6), [{"gone": 20, "woken": 20}]),
        ([switch(50, 6, 0, state=1), event(60, "sched_process_free", tid=6)], wake(70, 6),
         [{"blocked_other": 10, "gone": 30}, {"gone": 60, "unknown": 10, "woken": 20}]),
        ([switch(50, 6, 0, state=1)], wake(70, 6, name="sched_wakeup_new"), [{"blocked_other": 20, "gone": 20}, {"gone": 70, "woken": 20}]),
        ([switch(50, 6, 0)], wake(70, 6), [{"throttled": 40}]),
    ],
)  # fmt: skip
def test_a_number_is_used_again_though_no_fork_is_told(states, ends, again, lives):
    found = states([switch(0, 0, 6), *ends, again, event(90, "power_cpu_idle", state=1)])
    assert [us(t) for t in found["threads"]] == [{"user": 50, **lives[0]}, *lives[1:]]


def test_a_thread_whose_fork_was_lost_is_there_from_its_first_wake_up(states):
    """It is in the system call of who wakes it, which made it."""
    events = [switch(0, 0, 5), begins(10, "clone"), wake(16, 6, name="sched_wakeup_new", comm="new"), ends(20, "clone", ret=6)]
    found = states([*events, switch(30, 5, 6, state=1), ends(32, "clone", ret=0), switch(40, 6, 0, state=1)])
    assert threads(found)[6] == {"gone": 16, "woken": 14, "system": 2, "user": 8}


def test_calls_are_counted_with_their_errors_and_times(states):
    calls = [3, 5, 9, 30]
    events, now = [switch(0, 0, 5), ends(1, "read")], 10  # the first one's begin is not there
    for i, took in enumerate(calls):
        events += [begins(now, "read"), ends(now + took, "read", ret=-5 if i % 2 else 7)]
        now += 100
    events += [begins(now, "mmap"), ends(now + 1, "mmap", ret=-4096), begins(now + 2, "read")]
    rows = {c["name"]: c for c in states(events)["syscalls"]}
    read = rows["read"]
    assert (read["calls"], read["errors"], read["total_ns"]) == (4, 2, 47_000)
    assert (read["min_ns"], read["max_ns"], read["mean_ns"]) == (3000, 30_000, 11_750)
    assert read["p50_ns"] == pytest.approx(5000, rel=0.008) and read["p90_ns"] == read["p99_ns"] == pytest.approx(30_000, rel=0.008)
    assert (rows["mmap"]["calls"], rows["mmap"]["errors"]) == (1, 0)


def test_a_signal_handler_returns_to_user_mode(states):
    """The kernel's tracers do not tell the end of that call."""
    found = states([switch(0, 0, 5), begins(10, "rt_sigreturn"), begins(40, "read"), ends(45, "read", ret=1), switch(50, 5, 0, state=1)])
    assert threads(found)[5] == us(found["cpus"][0]) == {"user": 45, "system": 5}
    assert [c["name"] for c in found["syscalls"]] == ["read"]


def test_names_of_old_tracers_mean_the_same(states):
    found = states(
        [
            switch(0, 0, 5),
            event(10, "sys_nanosleep"),
            switch(20, 5, 0, state=1),
            event(30, "softirq_entry", vec=1),
            wake(40, 5),
            event(45, "softirq_exit", vec=1),
            switch(50, 0, 5),
            event(60, "exit_syscall", ret=-4),
        ]
    )
    assert [(c["name"], c["calls"], c["errors"]) for c in found["syscalls"]] == [("nanosleep", 1, 1)]
    assert threads(found)[5] == {"user": 10, "system": 20, "blocked_timer": 20, "woken": 10}
    assert us(found["cpus"][0])["softirq"] == 15


def test_the_context_says_who_runs_before_the_first_switch(states):
    more = {made.CONTEXT: 5}
    found = states([begins(0, "read", **more), ends(10, "read", ret=1, **more), switch(30, 5, 0, state=1, **more)])
    assert threads(found) == {5: {"system": 10, "user": 20}}
    assert [c["calls"] for c in found["syscalls"]] == [1]


def test_the_context_says_who_runs_where_a_switch_was_never_told(states):
    """6 takes the CPU from 5 and leaves it without a word: the next event there is 5's."""
    more = {made.CONTEXT: 5}
    taken = [switch(0, 0, 5), switch(10, 5, 6, **more)]
    found = states([*taken, begins(30, "read", **more), ends(40, "read", ret=1, **more), switch(50, 5, 0, state=1, **more)])
    assert threads(found) == {5: {"user": 20, "preempted": 20, "system": 10}, 6: {"user": 20, "unknown": 30}}
    assert [c["calls"] for c in found["syscalls"]] == [1]
    ticks = [event(30, "irq_handler_entry", irq=1, **more), event(31, "irq_handler_exit", irq=1, **more)]
    found = states([*taken, *ticks, switch(50, 5, 0, state=1, **more)])
    assert threads(found)[5] == {"user": 29, "preempted": 20, "interrupt": 1}


def test_who_is_known_by_the_context_of_a_wake_up_computes_at_that_cpus_speed(states):
    speeds = [event(0, "power_cpu_frequency", state=khz, cpu_id=cpu) for cpu, khz in enumerate((1_000_000, 3_000_000))]
    found = states(
        [
            *speeds,
            switch(1, 0, 7, cpu=1, **{made.CONTEXT: 0}),
            switch(2, 0, 5, **{made.CONTEXT: 0}),
            wake(10, 9, cpu=1, name="sched_waking", **{made.CONTEXT: 8}),
            switch(30, 8, 0, cpu=1, state=1, **{made.CONTEXT: 8}),
        ]
    )
    assert {t["tid"]: t["mean_mhz"] for t in found["threads"] if t["mean_mhz"]} == {5: 1000, 7: 3000, 8: 3000}


def test_names_that_are_no_text_are_clean_in_csv_and_json(krait, tmp_path):
    """One that the kernel cut in the middle of a character, and one of any bytes."""
    names = {5: b"worker-number-\xc3", 6: b'a,\xff"\xfe"'}
    events = [(0, 0, "sched_switch", {"prev_comm": "t0", "prev_tid": 0, "prev_state": 0, "next_comm": "x" * 15, "next_tid": 5})]
    events += [(9, 0, "sched_switch", {"prev_comm": "x" * 15, "prev_tid": 5, "prev_state": 0, "next_comm": "y" * 7, "next_tid": 6})]
    trace = made.write(tmp_path / "bytes", events)
    stream = trace / "channel0_0"
    stream.write_bytes(stream.read_bytes().replace(b"x" * 15, names[5]).replace(b"y" * 7, names[6]))
    expected = {str(tid): name.decode(errors="replace") for tid, name in names.items()}
    out = subprocess.run([krait, "states", trace, "--by", "thread", "--csv"], capture_output=True, check=True).stdout.decode()
    assert {r["tid"]: r["name"] for r in csv.DictReader(io.StringIO(out, newline=""))} == expected
    assert {str(t["tid"]): t["name"] for t in verb_json(krait, "states", trace)["threads"]} == expected


def test_a_switch_that_was_lost_leaves_the_unknown(krait, states, tmp_path):
    found = states([switch(0, 0, 5), switch(30, 7, 8, state=1), event(40, "power_cpu_idle", state=1)], lost=3)
    assert threads(found) == {5: {"user": 30, "unknown": 10}, 7: {"unknown": 30, "blocked_other": 10}, 8: {"unknown": 30, "user": 10}}
    assert found["lost"] == 3
    assert "lost: 3 events" in run(krait, tmp_path / "made").stderr


@pytest.mark.parametrize("numbered, since", [(0, 0), (3, 5)], ids=["the first packet", "a later one"])
def test_who_a_cpu_switches_away_from_first_ran_there_before(states, numbered, since):
    """Since before the trace; but where packets before are gone, since the first that is there."""
    stopped = [event(5, "irq_handler_entry", cpu=1, irq=1), event(8, "irq_handler_exit", cpu=1, irq=1)]
    found = states([switch(0, 0, 5), *stopped, switch(20, 6, 0, state=1, cpu=1), switch(30, 5, 0)], numbered=numbered)
    before = {"user": 17} if not since else {"unknown": 5, "user": 12}
    assert threads(found)[6] == {**before, "interrupt": 3, "blocked_other": 10}
    assert us(found["cpus"][1]) == {**before, "interrupt": 3, "idle": 10}


@pytest.mark.parametrize("names", [("channel0_0", "channel1_0"), ("channel1_0", "channel0_0")], ids=["it comes first", "it comes last"])
def test_of_several_channels_the_earliest_event_says_who_ran_before(krait, tmp_path, names):
    """Whichever of the CPU's streams is read first: its thread 5 blocks before 7 reads."""
    earlier, later = switch(10, 5, 7, state=1, **{made.CONTEXT: 5}), begins(20, "read", cpu=9, **{made.CONTEXT: 7})
    trace = made.write(tmp_path / "made", [earlier, later, event(0, "power_cpu_idle", cpu=1, state=1, **{made.CONTEXT: 0})])
    streams = [(trace / f"channel0_{cpu}").read_bytes() for cpu in (0, 9)]
    streams[1] = streams[1].replace(struct.pack("<I", 9), bytes(4), 1)  # a stream of CPU 0 too
    (trace / "channel0_9").unlink()
    for name, stream in zip(names, streams):
        (trace / name).write_bytes(stream)
    assert threads(verb_json(krait, "states", trace)) == {5: {"user": 10, "blocked_other": 10}, 7: {"unknown": 10, "user": 10}}


LATER = event(60, "power_cpu_idle", state=1)


@pytest.mark.parametrize("end", [None, 25], ids=["between packets", "within a packet"])
def test_what_runs_is_unknown_from_where_events_were_lost(states, end):
    events = [switch(0, 0, 5), begins(10, "read"), switch(30, 7, 8, state=1), ends(35, "read"), switch(40, 8, 5), switch(50, 5, 0, state=1), LATER]
    found = states(events, losses=[(0, 10, end)])
    assert us(found["cpus"][0]) == {"user": 10 + 20, "unknown": 20, "idle": 10}
    assert threads(found) == {
        5: {"user": 10 + 10, "unknown": 30, "blocked_other": 10},
        7: {"unknown": 30, "blocked_other": 30},
        8: {"unknown": 30, "user": 10, "preempted": 20},
    }


DUMPED = [dump(0, 5, 0, 5), dumped_wait(1, 5, "futex"), dump(1, 6, 0, 5), dumped_wait(2, 6, "")]
DUMP_OVER = event(5, "lttng_statedump_end", cpu=0)


def test_a_dump_tells_in_which_system_call_a_thread_waits(states):
    """Until it runs it is in that call, whose end is not counted."""
    found = states([*DUMPED, DUMP_OVER, wake(10, 5), switch(12, 0, 5), ends(15, "futex"), switch(20, 5, 0, state=1), LATER])
    assert threads(found)[5] == {"blocked_lock": 10, "woken": 2, "system": 3, "user": 5, "blocked_other": 40}
    assert threads(found)[6] == {"unknown": 1, "blocked_other": 59}
    assert found["syscalls"] == []


def test_a_thread_that_runs_before_all_calls_are_recorded_may_have_left_the_dumped_one(states):
    """It runs while the dump goes on, which is before system calls are recorded; or they never are."""
    ran = [wake(3, 5), switch(4, 0, 5)]
    found = states([*DUMPED, *ran, DUMP_OVER, switch(20, 5, 0, state=1), begins(25, "getppid"), LATER])
    assert threads(found)[5] == {"blocked_lock": 3, "woken": 1, "user": 16, "blocked_other": 40}
    found = states([*DUMPED, DUMP_OVER, wake(10, 5), switch(12, 0, 5), switch(20, 5, 0, state=1), LATER])
    assert threads(found)[5] == {"blocked_lock": 10, "woken": 2, "user": 8, "blocked_other": 40}


@pytest.mark.parametrize("numbered, state", [(0, "blocked_lock"), (3, "blocked_other")], ids=["all", "the newest"])
def test_a_dumped_call_is_forgotten_where_the_first_events_of_a_cpu_were_dropped(states, numbered, state):
    """As `krait record --last` drops them: the thread may have run, and wait for something else since."""
    before = [(us, 1, name, fields) for us, _, name, fields in [*DUMPED, DUMP_OVER]]
    found = states([*before, switch(100, 0, 7), switch(110, 7, 0, state=1), event(160, "power_cpu_idle", state=1)], numbered=numbered)
    assert threads(found)[5] == {state: 160}


@pytest.mark.parametrize("call, prev_state, cmd, state", [("fcntl", 1, 7, "lock"), ("fcntl", 1, 1, "other"), ("", 2, 0, "page_fault"), ("futex", 4, 0, "stopped"), ("syscall_999", 1, 0, "other")])
def test_what_a_dumped_thread_waits_for_follows_as_from_its_switch(states, call, prev_state, cmd, state):
    found = states([switch(0, 0, 7), dump(0, 5, 0, 5), dumped_wait(1, 5, call, prev_state, cmd), DUMP_OVER, LATER])
    assert threads(found)[5] == {f"blocked_{state}": 60}


def test_while_the_recording_is_off_nothing_is_known_of_any_thread(states):
    """Not even that a thread slept on; the state dump says what they do when it is on again."""
    off = [event(20, "krait_off", switched_off=1, cpu=cpu) for cpu in (0, 1)]
    before = [switch(0, 0, 6), switch(5, 6, 5, state=1), switch(6, 0, 8, cpu=1)]
    found = states([*before, *off, dump(40, 6, 0, 5), dump(41, 5, 0, 5), switch(50, 0, 5), LATER])
    assert found["lost"] == 0
    assert threads(found) == {
        5: {"unknown": 5 + 21, "user": 15 + 10, "blocked_other": 9},
        6: {"user": 5, "blocked_other": 15 + 20, "unknown": 20},
        8: {"unknown": 6 + 40, "user": 14},
    }
    assert us(found["cpus"][0]) == {"user": 20 + 10, "unknown": 30}


def test_who_slept_and_is_found_running_was_woken_in_what_was_lost(states):
    """What 5 did since the loss is not known; 6, of which nothing contradicts that, slept on."""
    asleep = [switch(0, 0, 6), switch(5, 6, 5, state=1), switch(10, 5, 7, state=1)]
    found = states([*asleep, switch(30, 5, 7, state=1), wake(40, 6), LATER], losses=[(0, 20, None)])
    assert found["lost"] == 1
    assert threads(found) == {
        5: {"unknown": 5 + 10, "user": 5, "blocked_other": 10 + 30},
        6: {"user": 5, "blocked_other": 35, "woken": 20},
        7: {"unknown": 10 + 10, "user": 10 + 30},
    }


def test_who_runs_and_nobody_woke_it_was_woken_in_what_was_lost(states):
    found = states([switch(0, 0, 5), switch(10, 5, 7, state=1), switch(30, 7, 5), LATER], losses=[(0, 20, None)])
    assert threads(found)[5] == {"user": 10 + 30, "blocked_other": 10, "unknown": 10}


@pytest.mark.parametrize("between", [[], [switch(22, 0, 9, cpu=1)]], ids=["the loss is the last", "then others"])
def test_a_range_that_begins_after_a_loss_does_not_know_more_than_the_whole(krait, states, tmp_path, between):
    """Nobody woke 5, and 7 ran when events were lost."""
    states([switch(0, 0, 5), switch(10, 5, 7, state=1), *between, switch(30, 8, 5), LATER], losses=[(0, 20, None)])
    found = verb_json(krait, "states", tmp_path / "made", "--from", "25us")
    assert threads(found)[5] == {"user": 30, "unknown": 5} and threads(found)[7] == {"unknown": 35}
    assert us(found["cpus"][0]) == {"user": 30, "unknown": 5}


@pytest.mark.parametrize("then", [begins(30, "read"), ends(30, "read"), switch(30, 5, 5)], ids=["begin", "end", "switch"])
def test_an_interrupt_whose_end_was_lost_has_ended(states, then):
    found = states([switch(0, 0, 5), event(10, "irq_handler_entry", irq=1), event(12, "irq_softirq_entry", vec=1), then, wake(50, 9)])
    after = "system" if "entry" in then[2] else "user"
    expected = {"user": 10, "interrupt": 20}
    expected[after] = expected.get(after, 0) + 20
    assert threads(found)[5] == expected and us(found["cpus"][0]) == expected


def test_numbers_that_are_none_change_nothing(states):
    found = states(
        [
            switch(0, 0, 5),
            wake(5, -7),
            wake(6, 1 << 40),
            switch(10, 0, 9, cpu=100_000),
            fork(15, 5, 0),
            event(16, "irq_handler_exit", irq=1),
            event(17, "irq_softirq_exit", vec=1),
            dump(18, -1, 0, 5),
            switch(20, 5, 0, state=1),
        ]
    )
    assert threads(found) == {5: {"user": 20}} and [c["cpu"] for c in found["cpus"]] == [0]
    assert us(found["cpus"][0]) == {"user": 20}


def test_hosts_are_not_mixed(krait, tmp_path):
    made.write(tmp_path / "a", [switch(0, 0, 5)], host="one")
    made.write(tmp_path / "b", [switch(0, 0, 5)], host="two")
    mixed = run(krait, tmp_path)
    assert mixed.returncode == 1 and "is of host one" in mixed.stderr and "of host two" in mixed.stderr
    assert run(krait, tmp_path / "a", tmp_path / "a").returncode == 0


def test_a_trace_without_events_is_told(krait, tmp_path):
    folder = made.write(tmp_path / "made", [switch(0, 0, 5)])
    (folder / "channel0_0").unlink()
    empty = run(krait, folder)
    assert (empty.returncode, empty.stderr) == (1, "krait states: there are no kernel events\n")


@pytest.mark.parametrize("words", [("states",), ("path", "--thread", "5"), ("cut", "-o", "part", "--from", "1us"), ("view", "--svg", "x.svg")], ids=lambda words: words[0])
def test_damage_that_leaves_no_event_is_the_reason(krait, tmp_path, words):
    folder = made.write(tmp_path / "made", [switch(0, 0, 5), switch(5, 5, 0)], offset=2**64 - 1)
    refused = subprocess.run([krait, *words, folder], capture_output=True, text=True, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "channel0_0: byte" in refused.stderr and "beyond 64 bits of nanoseconds" in refused.stderr and "in that time" not in refused.stderr


# ---- one program's own switches, from perf events ----


def own_in(us, tid, cpu=0, pid=5):
    return event(us, "perf_switch_in", cpu, tid=tid, pid=pid)


def own_out(us, tid, preempted=0, cpu=0):
    return event(us, "perf_switch_out", cpu, tid=tid, pid=5, preempted=preempted)


def own_name(us, tid, name, **more):
    return event(us, "perf_comm", comm=name, tid=tid, pid=5, exec=1, **{made.CONTEXT: tid, **more})


def test_what_others_do_between_a_programs_own_switches_is_unknown(states):
    found = states([own_name(0, 5, "prog"), own_out(10, 5), own_in(30, 5), own_out(40, 5, preempted=1), own_in(47, 5), own_out(50, 5)])
    assert threads(found) == {5: {"user": 23, "blocked_other": 20, "preempted": 7}}
    assert us(found["cpus"][0]) == {"user": 23, "unknown": 27}
    assert found["own_only"] is True and found["processes"][0]["pid"] == 5 and found["processes"][0]["name"] == "prog"


def test_a_thread_that_ends_gives_its_cpu_back(states):
    found = states([own_name(0, 5, "prog"), fork(10, 5, 6), own_in(15, 6, cpu=1), event(35, "perf_exit", 1, tid=6, pid=5), own_out(50, 5)])
    assert threads(found) == {5: {"user": 50}, 6: {"gone": 25, "woken": 5, "user": 20}}
    assert us(found["cpus"][1]) == {"unknown": 30, "user": 20}


def test_a_thread_named_by_another_does_not_run_there(states):
    named = own_name(20, 6, "other", **{made.CONTEXT: 5})
    found = states([own_in(0, 5), own_in(5, 6, cpu=1), own_out(10, 6, cpu=1), named, own_out(30, 5)])
    assert threads(found) == {5: {"user": 30}, 6: {"unknown": 5, "user": 5, "blocked_other": 20}}


def own_fault(us, tid, major):
    return event(us, "perf_page_fault", address=4096, ip=8, major=major, **{made.CONTEXT: tid})


def test_a_wait_that_ends_with_a_page_from_the_disk_was_for_it(states):
    name = own_name(0, 5, "prog")
    disk = [own_out(10, 5), own_in(30, 5), own_fault(31, 5, 1)]
    other = [own_out(40, 5), own_in(45, 5), own_fault(46, 5, 0), own_fault(47, 5, 1), own_out(50, 5)]
    found = states([name, *disk, *other])
    assert threads(found) == {5: {"user": 25, "blocked_page_fault": 20, "blocked_other": 5}}


def test_a_page_fault_is_of_the_thread_that_has_it(states):
    found = states([own_name(0, 5, "prog"), own_out(10, 5), own_in(30, 5), own_fault(31, 6, 1), own_out(40, 5)])
    assert threads(found)[5] == {"user": 20, "blocked_other": 20}


def test_the_interval_of_such_a_wait_is_told_so(krait, tmp_path):
    events = [own_name(0, 5, "prog"), own_out(10, 5), own_in(30, 5), own_fault(31, 5, 1), own_out(40, 5)]
    trace = made.write(tmp_path / "made", events)
    out = run(krait, trace, "--by", "interval", "--thread", "5", "--csv").stdout
    assert [line.split(",")[2] for line in out.splitlines()[1:]] == ["user", "blocked_page_fault", "user"]


def test_a_switch_of_its_own_that_was_lost(states):
    found = states([own_in(0, 5), own_in(10, 6), own_out(20, 6), own_in(25, 5), own_out(30, 5)])
    assert threads(found) == {5: {"user": 15, "unknown": 15}, 6: {"unknown": 10, "user": 10, "blocked_other": 10}}


@pytest.mark.parametrize(
    "between, by_six, by_five",
    [
        ([], {"system": 30, "gone": 21}, {"user": 14, "gone": 20}),
        # it bears the number before that is told
        ([switch(40, 5, 0), switch(45, 0, 5)], {"system": 20, "gone": 31}, {"user": 19, "throttled": 5, "gone": 10}),
    ],
)
def test_a_thread_that_executes_takes_the_number_of_the_first(states, between, by_six, by_five):
    found = states(
        [
            switch(0, 0, 5),
            fork(1, 5, 6),
            switch(5, 5, 6, state=1),
            begins(20, "execve"),
            wake(25, 5, cpu=1, name="sched_waking"),
            switch(26, 0, 5, cpu=1),
            event(27, "sched_process_exit", cpu=1, tid=5),
            switch(30, 5, 0, state=0x20, cpu=1),
            *between,
            event(50, "sched_process_exec", tid=5, old_tid=6),
            ends(55, "execve"),
            switch(60, 5, 0, state=1),
            event(70, "power_cpu_idle", state=1),
        ]
    )
    assert threads(found)[6] == {"woken": 4, "user": 15, **by_six}
    assert threads(found)[5] == {"woken": 1, "system": 5, "blocked_other": 30, **by_five}
    assert [(c["name"], c["calls"], c["total_ns"]) for c in found["syscalls"]] == [("execve", 1, 35_000)]


# ---- perf's own traces ----


def perfs(us, tid, name, /, cpu=0, **fields):
    """As `perf data convert --to-ctf` writes them: all in the payload, threads called pid."""
    return event(us, name, cpu, perf_ip=1, perf_tid=tid, perf_pid=5, perf_id=9, perf_period=1, common_pid=tid, perf_cpu=cpu, **fields)


def perf_switch(us, before, after, state=0):
    fields = {"prev_comm": f"t{before}", "prev_pid": before, "prev_prio": 120, "prev_state": state}
    return perfs(us, before, "sched:sched_switch", **fields, next_comm=f"t{after}", next_pid=after, next_prio=120)


def test_what_perf_tells_before_its_first_tracepoint_is_no_time(states):
    """As `perf data convert --to-ctf --all` has it: what perf found, at time 0, and what happened until it enabled the tracepoints."""
    events = [
        event(0, "perf_mmap2", pid=5, start=1),
        event(0, "perf_comm", pid=5, tid=5, comm="app"),
        event(90_000, "perf_exit", pid=7, tid=7),
        perf_switch(91_000, 0, 5),
        event(91_010, "perf_mmap2", pid=5, start=2),
        perf_switch(91_100, 5, 0),
    ]
    found = states(events, tracer="perf")
    assert us(found["cpus"][0]) == {"user": 100}
    assert threads(found)[5] == {"user": 100}


def test_system_calls_and_interrupts_of_perf_are_read(states):
    found = states(
        [
            perf_switch(0, 0, 5),
            perfs(10, 5, "syscalls:sys_enter_write", __syscall_nr=1, fd=1, buf=0, count=8),
            perfs(20, 5, "irq_vectors:local_timer_entry", vector=236),
            perfs(23, 5, "irq_vectors:local_timer_exit", vector=236),
            perfs(30, 5, "syscalls:sys_exit_write", __syscall_nr=1, ret=-4),
            perfs(40, 5, "irq_vectors:reschedule_entry", vector=253),
            perfs(41, 5, "irq_vectors:reschedule_exit", vector=253),
            perfs(50, 5, "irq:softirq_entry", vec=3),
            perfs(52, 5, "irq:softirq_exit", vec=3),
            perfs(60, 5, "irq:irq_handler_entry", irq=1, name="disk"),
            perfs(64, 5, "irq:irq_handler_exit", irq=1, ret=1),
            perf_switch(100, 5, 0, state=1),
        ]
    )
    assert threads(found)[5] == {"user": 73, "system": 17, "interrupt": 10}
    assert us(found["cpus"][0]) == {"user": 73, "system": 17, "interrupt": 8, "softirq": 2}
    (call,) = found["syscalls"]
    assert (call["name"], call["calls"], call["errors"], call["total_ns"]) == ("write", 1, 1, 20_000)
