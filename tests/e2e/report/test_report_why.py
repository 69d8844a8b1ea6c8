# SPDX-License-Identifier: Apache-2.0
"""krait report --why of calls and kernel events together: the slowest calls, and what their threads did."""

import csv
import io
import re
import subprocess
import textwrap

import pytest

from kernel_made import switch, used_again, wake
from wall_made import CODES, EVENTS, WHY_CALLS, WHY_EVENTS, rows_of, text, us, why


def test_why_lists_the_slowest_calls_the_slowest_first(krait, both):
    found = why(krait, both(WHY_CALLS, WHY_EVENTS), "--why", "load")
    assert [(c["name"], c["duration_ns"], c["tid"]) for c in found["slowest"]] == [
        ("load", 100_000, 5),
        ("load", 50_000, 5),  # of recursion the outermost alone
        ("load", 10_000, 5),
    ]
    assert found["slowest"][0]["begin_ns"] - found["begin_ns"] == 100_000
    assert (found["why"]["runs"], found["why"]["total_ns"], found["why"]["matched"]) == (3, 160_000, 1)
    assert us(found["why"]["wall_ns"]) == {"on_cpu": 101, "disk": 22, "lock": 24, "runnable": 13}


def test_why_says_what_a_call_did(krait, both):
    call = why(krait, both(WHY_CALLS, WHY_EVENTS), "--why", "load")["slowest"][0]
    assert us(call["wall_ns"]) == {"on_cpu": 41, "disk": 22, "lock": 24, "runnable": 13}
    assert rows_of(call, "syscalls", "syscall", "count", "ns", "longest_ns") == [
        ("read", 1, 38_000, 38_000),
        ("futex", 2, 32_000, 22_000),
    ]
    told = rows_of(call, "waits", "state", "preempted", "syscall", "by_name", "by_tid", "count", "ns", "longest_ns")
    assert told == [
        ("lock", False, "futex", "waker", 7, 2, 24_000, 18_000),
        ("disk", False, "read", None, None, 1, 22_000, 22_000),
        ("runnable", True, None, "hog", 9, 1, 7_000, 7_000),
        ("runnable", False, "read", "hog", 9, 1, 3_000, 3_000),
        ("runnable", False, "futex", None, None, 2, 3_000, 2_000),
    ]
    assert rows_of(call, "waits", "idle") == [(False,)] * 4 + [(True,)]


def test_why_in_words(krait, both):
    out, notes = text(krait, both(WHY_CALLS, WHY_EVENTS), "--why", "load", "--limit", "1")
    assert out.splitlines() == [
        "app.load  160.0 us in 3 calls",
        "on CPU 63.1%, lock 15.0%, disk 13.8%, ready 8.1%",
        "",
        "1. 100.0 us, 100.0 us after the start, MainThread 5",
        "   on CPU 41.0%, lock 24.0%, disk 22.0%, ready 13.0%",
        "",
        "       time  times   longest  waited for  in     who",
        "   24.00 us      2  18.00 us  lock        futex  woken by waker 7",
        "   22.00 us      1  22.00 us  disk        read   woken by the disk",
        "   7.000 us      1  7.000 us  a CPU       -      preempted by hog 9",
        "   3.000 us      1  3.000 us  a CPU       read   after it was woken, behind hog 9",
        "   3.000 us      2  2.000 us  a CPU       futex  after it was woken, its CPU stood idle",
        "",
        "       time  calls   longest  system call",
        "   38.00 us      1  38.00 us  read",
        "   32.00 us      2  22.00 us  futex",
    ]
    assert "the slowest 1 of 3 calls" in notes


def test_why_names_all_who_had_the_gil_in_a_wait(krait, synth):
    threads = """
        thread 5 MainThread
        0us call 1
        100us gilwait 6
        500us giltake
        900us return
        thread 6 six
        0us call 2
        200us gildrop
        600us return
        thread 7 seven
        0us call 2
        50us gilwait 6
        201us giltake
        499us gildrop
        700us return
        """
    folder = synth("process 5 python3\ncode 1 python app main app.py 1\ncode 2 python app other app.py 9\n" + textwrap.dedent(threads))
    (call,) = why(krait, folder, "--why", "main")["slowest"]
    assert [(w["ns"] // 1000, w["by_tid"], w["free"]) for w in call["waits"]] == [(298, 7, False), (100, 6, False), (1, None, True), (1, 5, True)]
    out, _ = text(krait, folder, "--why", "main")
    assert re.findall(r"held by (.*)", out) == ["seven 7", "six 6"]
    assert re.findall(r"free until (.*)", out) == ["another took it", "this thread ran"]


def test_why_says_who_it_was_by_its_life(krait, both):
    """The numbers of who woke it and of who took its CPU are others' later."""
    events = [e for e in WHY_EVENTS if e[0] < 1000]
    again = [switch(500, 0, 7, cpu=1, next_comm="waker"), *used_again(501, 7, 5, cpu=1), *used_again(510, 9, 5, cpu=1)]
    call = why(krait, both(WHY_CALLS, [*events, *again, switch(1000, 5, 0)]), "--why", "load")["slowest"][0]
    told = rows_of(call, "waits", "state", "by_name", "by_tid", "ns")
    assert [row for row in told if row[1]] == [("lock", "first", 7, 24_000), ("runnable", "first", 9, 7_000), ("runnable", "first", 9, 3_000)]


def test_why_of_several_functions_says_which(krait, both):
    out, _ = text(krait, both(WHY_CALLS, WHY_EVENTS), "--why", "app.*", "--limit", "1")
    assert out.startswith("app.* (2 functions)  1.000 ms in 1 call\n")
    assert "1. 1.000 ms, 0 ns after the start, app.main, MainThread 5" in out


def test_why_has_five_calls_unless_more_are_asked_for(krait, both):
    calls = "".join(f"{n * 10}us call 2\n{n * 10 + n}us return\n" for n in range(1, 9))
    folder = both(CODES + calls, EVENTS)
    for options, wanted in (((), range(8, 3, -1)), (("--limit", "2"), (8, 7)), (("--limit", "0"), range(8, 0, -1))):
        assert [c["duration_ns"] // 1000 for c in why(krait, folder, "--why", "load", *options)["slowest"]] == list(wanted)


def test_why_names_all_who_preempted_longest_first(krait, both):
    """Each with its part of the time, not the first for all of it; and nobody where the CPU stood idle."""
    events = [
        switch(0, 0, 5),
        switch(110, 5, 8, next_comm="first"),
        switch(111, 8, 9, prev_comm="first", next_comm="hog"),
        switch(141, 9, 8, prev_comm="hog", next_comm="first"),
        switch(145, 8, 0, 1, prev_comm="first"),
        switch(155, 0, 5),
        switch(1000, 5, 0),
    ]
    folder = both(CODES + "100us call 2\n200us return\n", events)
    call = why(krait, folder, "--why", "load")["slowest"][0]
    assert rows_of(call, "waits", "state", "preempted", "by_name", "ns", "count") == [
        ("runnable", True, "hog", 30_000, 1),
        ("runnable", True, None, 10_000, 1),
        ("runnable", True, "first", 5_000, 1),
    ]
    assert rows_of(call, "waits", "idle") == [(False,), (True,), (False,)]
    out = subprocess.run([krait, "report", folder, "--why", "load"], capture_output=True, text=True, check=True).stdout
    assert "preempted by hog 9\n" in out and "preempted by first 8\n" in out and "nobody: its CPU stood idle\n" in out


def test_why_names_all_who_had_the_cpu_after_a_wake_up(krait, both):
    """By the CPU that it was queued on, for longest first."""
    events = [
        switch(0, 0, 5),
        switch(0, 0, 7, cpu=1),
        switch(110, 5, 0, state=1),
        wake(120, 5, target_cpu=1),
        switch(125, 7, 8, cpu=1),
        switch(160, 8, 5, state=1, cpu=1),
        switch(1000, 5, 0, cpu=1),
    ]
    folder = both(CODES + "100us call 2\n200us return\n", events)
    call = why(krait, folder, "--why", "load")["slowest"][0]
    assert rows_of(call, "waits", "state", "preempted", "by_name", "ns")[:2] == [
        ("runnable", False, "t8", 35_000),
        ("other", False, None, 10_000),
    ]
    out, _ = text(krait, folder, "--why", "load")
    assert "after it was woken, behind t8 8\n" in out and "after it was woken, behind t7 7\n" in out


def test_why_tells_who_had_the_cpu_in_the_part_of_a_wait_that_a_call_covers(krait, both):
    """One call ends in the wait, the next begins in it: nobody is told for time outside of a call."""
    events = [
        switch(0, 0, 5),
        switch(110, 5, 8, next_comm="early"),
        switch(140, 8, 9, prev_comm="early", next_comm="late"),
        switch(180, 9, 5, prev_comm="late"),
        switch(1000, 5, 0),
    ]
    folder = both(CODES + "100us call 2\n130us return\n150us call 2\n200us return\n", events)
    second, first = why(krait, folder, "--why", "load")["slowest"]
    assert rows_of(first, "waits", "by_name", "ns") == [("early", 20_000)]
    assert rows_of(second, "waits", "by_name", "ns") == [("late", 30_000)]


def test_why_names_any_number_of_threads_that_preempted(krait, both):
    """More than a log of 1,024 switches, more than 64 threads; and where the CPU was not idle nobody says so."""
    others, rounds = range(100, 300), 10
    turns = [tid for _ in range(rounds) for tid in others]
    events = [switch(0, 0, 5), switch(1000, 5, turns[0])]
    events += [switch(1001 + i, before, tid) for i, (before, tid) in enumerate(zip(turns, turns[1:]))]
    events += [switch(1000 + len(turns), turns[-1], 5), switch(4000, 5, 0)]
    (call,) = why(krait, both(CODES + "500us call 2\n3500us return\n", events), "--why", "load")["slowest"]
    assert sorted(rows_of(call, "waits", "by_tid", "ns", "idle")) == [(tid, rounds * 1000, False) for tid in others]


def test_why_of_threads_that_take_turns_tells_each_its_own_waits(krait, both):
    """The slowest are in the order of how long they took, whoever's they are."""
    calls, threads = CODES, {5: range(8), 6: range(8)}
    for tid, numbers in threads.items():
        calls += f"thread {tid}\n"
        for n in numbers:
            begin = 100 * n + 50 * (tid - 5)
            calls += f"{begin}us call 2\n{begin + 40 + n}us return\n"
    events = [switch(100 * n + 50 * half + 20, 5 + half, 6 - half) for n in range(8) for half in (0, 1)]
    events += [switch(2000, 5, 0)]
    found = why(krait, both(calls, events), "--why", "load", "--limit", "0")["slowest"]
    assert [(c["duration_ns"] // 1000, c["tid"]) for c in found] == [(40 + n, tid) for n in range(7, -1, -1) for tid in (5, 6)]
    for call in found[:-2]:  # before the first switch of each it is not known who runs
        other = 11 - call["tid"]
        assert rows_of(call, "waits", "state", "preempted", "by_tid") == [("runnable", True, other)]


def test_why_without_a_kernel_part_lists_the_calls_and_says_what_to_do(krait, synth):
    out, notes = text(krait, synth(WHY_CALLS), "--why", "load")
    *head, first, second, third = out.splitlines()
    assert head == [
        "app.load  160.0 us in 3 calls",
        "What these calls waited for is not known, since the kernel was not recorded.",
        "Record it with: krait record --kernel -- COMMAND",
        "",
    ]
    assert first == "1. 100.0 us, 100.0 us after the start, MainThread 5" and (second[:3], third[:3]) == ("2. ", "3. ")
    assert "%" not in out and "kernel" not in notes
    found = why(krait, synth(WHY_CALLS, "again"), "--why", "load")
    assert len(found["slowest"]) == 3 and "waits" not in found["slowest"][0] and "wall_ns" not in found["why"]


def test_why_counts_steps_of_generators_as_runs(krait, synth):
    steps = "thread 5 MainThread\n0us call 2\n100us yield\n200us resume 2\n250us yield\n300us resume 2\n310us return\n"
    out, notes = text(krait, synth(CODES + steps), "--why", "load", "--limit", "1")
    assert out.splitlines()[0] == "app.load  160.0 us in 3 runs"
    assert "the slowest 1 of 3 runs" in notes and "runs from each resume to the next yield" in notes


def test_why_as_csv_has_a_line_for_each_call_with_what_json_says_of_it(krait, both):
    folder = both(WHY_CALLS, WHY_EVENTS)
    text = subprocess.run([krait, "report", folder, "--why", "load", "--csv"], capture_output=True, text=True, check=True).stdout
    lines = list(csv.DictReader(io.StringIO(text)))
    calls = why(krait, folder, "--why", "load")["slowest"]
    assert len(lines) == len(calls) == 3
    for line, call in zip(lines, calls):
        assert {key: str(call[key]).replace("False", "false") for key in line if not key.startswith("wall_")} == {
            key: line[key] for key in line if not key.startswith("wall_")
        }
        split = {state: line[f"wall_total_{state}_ns"] for state in call["wall_ns"]}
        assert split == {state: str(ns) for state, ns in call["wall_ns"].items()}
        assert sum(map(int, split.values())) == call["duration_ns"] == int(line["duration_ns"])


def test_why_as_csv_without_a_kernel_part_has_no_split(krait, synth):
    run = subprocess.run([krait, "report", synth(WHY_CALLS), "--why", "load", "--csv", "--limit", "1"],
                         capture_output=True, text=True, check=True)
    head, line = run.stdout.splitlines()
    assert head == "name,module,file,line,kind,begin_ns,duration_ns,pid,tid,thread,cut"
    assert line.split(",")[0] == "load" and line.split(",")[6] == "100000"


def test_why_counts_within_the_chosen_time(krait, both):
    found = why(krait, both(WHY_CALLS, WHY_EVENTS), "--why", "load", "--from", "185us", "--until", "195us")
    (call,) = found["slowest"]
    assert call["duration_ns"] == 10_000 and us(call["wall_ns"]) == {"on_cpu": 5, "runnable": 5} and not call["syscalls"]
    assert rows_of(call, "waits", "state", "by_name", "ns") == [("runnable", "hog", 5_000)]


@pytest.mark.parametrize("more", [["--tree"], ["--callers", "f"], ["--sort", "self"], ["--by", "module"], ["--filter", "f"]])
def test_what_does_not_go_with_why_is_wrong_usage(krait, both, more):
    run = subprocess.run([krait, "report", both(WHY_CALLS, WHY_EVENTS), "--why", "load", *more], capture_output=True, text=True)
    assert run.returncode == 2 and "--why" in run.stderr and not run.stdout


def test_why_of_a_function_that_is_not_there_fails(krait, both):
    run = subprocess.run([krait, "report", both(WHY_CALLS, WHY_EVENTS), "--why", "nothing"], capture_output=True, text=True)
    assert run.returncode == 1 and "no function 'nothing'" in run.stderr
