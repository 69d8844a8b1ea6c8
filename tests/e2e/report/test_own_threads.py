# SPDX-License-Identifier: Apache-2.0
"""Which of the kernel's threads bear the names that Python gave: numbers are used again, and in a namespace of its own a
program's thread knows another number than the kernel, where that is another thread's."""

from conftest import verb_json
from kernel_made import begins, ends, event, fork, knows_itself, switch, wake

CALLS = """
process 5 python3
code 1 python app main app.py 1
thread 5 MainThread
100us call 1
400us return
exit 1 0
"""


def test_a_host_thread_of_the_same_number_keeps_its_own_name(krait, both):
    """105 knows itself as 5; the host's own 5 wakes it."""
    events = [
        switch(0, 0, 105),
        *knows_itself(10, 5),
        begins(150, "read"),
        switch(160, 105, 5, state=1, prev_comm="python3", next_comm="kworker"),
        wake(200, 105, name="sched_waking"),
        wake(201, 105),
        switch(250, 5, 105, state=1, prev_comm="kworker"),
        ends(260, "read", ret=1),
        switch(450, 105, 0, state=1),
    ]
    folder = both(CALLS, events)
    assert (5, "kworker") in [(t["tid"], t["name"]) for t in verb_json(krait, "states", folder, "--by", "thread")["threads"]]
    chosen = verb_json(krait, "states", folder, "--by", "thread", "--thread", "MainThread")["threads"]
    assert [t["tid"] for t in chosen] == [105]
    (call,) = verb_json(krait, "report", folder, "--why", "main")["slowest"]
    assert [(w["by_tid"], w["by_name"]) for w in call["waits"] if w["state"] == "other"] == [(5, "kworker")]
    names = {m["name"]: m["tid"] for m in verb_json(krait, "path", folder, "--call", "main")["path"] if m["kind"] == "thread"}
    assert names == {"MainThread": 105, "kworker": 5}


def test_a_number_that_is_used_again_is_another_thread(krait, both):
    events = [
        switch(0, 0, 5),
        event(410, "sched_process_exit", tid=5),
        switch(420, 5, 0, state=0x10),
        event(430, "sched_process_free", tid=5),
        fork(500, 9, 5),
        switch(510, 0, 5),
        switch(600, 5, 0, state=1),
    ]
    folder = both(CALLS, events)
    threads = verb_json(krait, "states", folder, "--by", "thread", "--thread", "MainThread")["threads"]
    assert [t["user_ns"] for t in threads] == [420_000]


def test_the_call_of_the_later_of_two_with_one_number_is_followed(krait, both):
    """Two programs, one after the other, each the fifth in a namespace of its own."""
    calls = CALLS + CALLS.replace("100us call", "700us call").replace("400us return", "900us return").replace("main", "again")
    events = [
        fork(0, 9, 105),
        switch(10, 0, 105),
        *knows_itself(20, 5),
        event(410, "sched_process_exit", tid=105),
        switch(420, 105, 0, state=0x10),
        fork(600, 9, 205),
        switch(610, 0, 205),
        *knows_itself(620, 5),
        switch(1000, 205, 0, state=1),
    ]
    folder = both(calls, events)
    for function, tid in (("main", 105), ("again", 205)):
        assert verb_json(krait, "path", folder, "--call", function)["tid"] == tid


def test_a_later_thread_that_calls_itself_the_same_takes_nothing_over(krait, both):
    """205 is the fifth in another namespace, and recorded nothing."""
    events = [
        switch(0, 0, 105),
        *knows_itself(10, 5),
        switch(160, 105, 0, state=1),
        fork(200, 9, 205, cpu=1),
        switch(210, 0, 205, cpu=1),
        *knows_itself(220, 5, cpu=1),
        wake(300, 105, name="sched_waking"),
        wake(301, 105),
        switch(310, 0, 105),
        switch(450, 105, 0, state=1),
        switch(460, 205, 0, cpu=1, state=1),
    ]
    folder = both(CALLS, sorted(events, key=lambda e: e[0]))
    (call,) = verb_json(krait, "report", folder, "--why", "main")["slowest"]
    assert call["wall_ns"]["on_cpu"] == 150_000
    assert verb_json(krait, "path", folder, "--call", "main")["tid"] == 105
