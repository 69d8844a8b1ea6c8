# SPDX-License-Identifier: Apache-2.0
"""krait report of calls and kernel events together: made up event by event, each rule of docs/report.md by itself."""

import csv
import io
import subprocess

import pytest

from conftest import verb_json
from kernel_made import begins, ends, event, fork, knows_itself, switch, used_again, wake
from terminal import on_terminal
from report_made import report_on_terminal
from wall_made import CODES, EVENTS, SLEEP_CALLS, SLEEP_EVENTS, WHY_CALLS, WHY_EVENTS, rows_of, text, us, why

SPREAD = {"on_cpu", "runnable", "gil", "lock", "disk", "network", "timer", "child", "page_fault", "stopped", "throttled", "other", "unknown"}


@pytest.fixture
def rows(krait):
    """rows(folder, *options) is {name: row}, with splits in microseconds, without zeros."""

    def read(folder, *options):
        found = verb_json(krait, "report", folder, *options)["functions"]
        for row in found:
            for key in ("wall_self_ns", "wall_total_ns"):
                assert set(row[key]) == SPREAD
                assert sum(row[key].values()) == row[key.removeprefix("wall_")]
            row["self"], row["total"] = (us(row[f"wall_{k}_ns"]) for k in ("self", "total"))
        return {row["name"]: row for row in found}

    return read


def test_calls_are_split_by_what_the_thread_did(both, rows):
    folder = both(SLEEP_CALLS, [*SLEEP_EVENTS, switch(195, 5, 6), switch(198, 6, 5), switch(300, 5, 0)])
    found = rows(folder)
    assert found["sleep"]["self"] == {"on_cpu": 20, "timer": 27, "runnable": 3}
    assert found["load"]["self"] == {"on_cpu": 20}
    assert found["load"]["total"] == {"on_cpu": 40, "timer": 27, "runnable": 3}
    assert found["main"]["self"] == {"on_cpu": 27, "runnable": 3}
    assert found["main"]["total"] == {"on_cpu": 67, "timer": 27, "runnable": 6}


def test_an_interrupt_that_stops_a_thread_is_on_the_cpu(both, rows):
    folder = both(
        CODES + "10us call 1\n90us return\n",
        [
            switch(0, 0, 5),
            event(20, "irq_handler_entry", irq=1),
            event(30, "irq_handler_exit", irq=1),
            event(95, "irq_handler_entry", irq=1),
        ],
    )
    assert rows(folder)["main"]["self"] == {"on_cpu": 80}


@pytest.mark.parametrize(
    "call, state",
    [
        ("futex", "lock"),
        ("wait4", "child"),
        ("recvfrom", "network"),
        ("fsync", "disk"),
        ("clock_nanosleep", "timer"),
        ("read", "other"),
    ],
)
def test_what_a_thread_waits_for_is_what_states_says(both, rows, call, state):
    folder = both(
        CODES + "10us call 1\n90us return\n",
        [
            switch(0, 0, 5),
            begins(15, call),
            switch(20, 5, 0, state=1),
            wake(60, 5, cpu=1),
            switch(65, 0, 5),
            ends(70, call),
            switch(100, 5, 0),
        ],
    )
    assert rows(folder)["main"]["self"] == {"on_cpu": 35, state: 40, "runnable": 5}


def asleep_until_the_disk_is_done(calls):
    """A thread that calls so much, and then sleeps undisturbed."""
    return [
        switch(0, 0, 5),
        *calls,
        switch(20, 5, 0, state=2),
        event(55, "irq_handler_entry", irq=1),
        event(56, "block_rq_complete"),
        wake(60, 5),
        event(61, "irq_handler_exit", irq=1),
        switch(65, 0, 5),
        switch(100, 5, 0),
    ]


def test_who_sleeps_undisturbed_outside_of_system_calls_waits_for_a_page(both, rows):
    events = asleep_until_the_disk_is_done([begins(1, "read"), ends(2, "read")])
    folder = both(CODES + "10us call 1\n90us return\n", events)
    assert rows(folder)["main"]["self"] == {"on_cpu": 35, "page_fault": 40, "runnable": 5}


@pytest.mark.parametrize("calls", [[], [begins(1, "read")]])
def test_but_not_who_may_be_in_a_system_call(both, rows, calls):
    """Without system calls in the trace it is not known; within one it waits for what it read."""
    folder = both(CODES + "10us call 1\n90us return\n", asleep_until_the_disk_is_done(calls))
    assert rows(folder)["main"]["self"] == {"on_cpu": 35, "disk": 40, "runnable": 5}


STOPPED_AND_THROTTLED = [
    switch(0, 0, 5),
    switch(20, 5, 0, state=4),
    wake(60, 5, cpu=1),
    switch(65, 0, 5),
    switch(70, 5, 0),  # it could run, and its CPU is idle
    switch(85, 0, 5),
    switch(100, 5, 0),
]


def test_stopped_and_throttled_threads_have_states_of_their_own(krait, both, rows):
    folder = both(CODES + "10us call 1\n90us return\n", STOPPED_AND_THROTTLED)
    assert rows(folder)["main"]["self"] == {"on_cpu": 20, "stopped": 40, "runnable": 5, "throttled": 15}
    out, _ = text(krait, folder)
    assert {"stopped", "throttled"} < set(out.splitlines()[0].split())
    assert "stopped" not in text(krait, both(CODES + "10us call 1\n90us return\n", EVENTS, "other"))[0]
    call = why(krait, folder, "--why", "main")["slowest"][0]
    assert rows_of(call, "waits", "state", "ns") == [("stopped", 40_000), ("throttled", 15_000), ("runnable", 5_000)]
    assert "throttled   -   the CPU quota of its cgroup was used up\n" in text(krait, folder, "--why", "main")[0]


def test_a_wait_for_the_gil_does_not_cover_a_stop(both, rows):
    calls = CODES + "5us gilwait 6\n10us call 1\n50us giltake\n90us return\n"
    assert "stopped" in rows(both(calls, STOPPED_AND_THROTTLED))["main"]["self"]


def test_time_that_the_kernel_part_does_not_cover_is_unknown(both, rows):
    folder = both(
        CODES + "10us call 1\n20us call 2\n90us return\n100us return\n",
        [event(30, "power_cpu_idle", state=1), switch(50, 0, 5), switch(60, 5, 6), event(80, "power_cpu_idle", state=1)],
    )
    found = rows(folder)
    assert found["load"]["self"] == {"unknown": 30 + 10, "on_cpu": 10, "runnable": 20}
    assert found["main"]["self"] == {"unknown": 20}


def test_a_thread_that_the_kernel_part_does_not_know_is_unknown(both, rows):
    folder = both(CODES + "10us call 1\n90us return\n", [switch(0, 0, 77), switch(100, 77, 0)])
    assert rows(folder)["main"]["self"] == {"unknown": 80}


def test_a_number_that_is_used_again_is_another_thread(both, rows):
    folder = both(
        CODES + "10us call 1\n20us return\nprocess 5 python3\ncode 2 python app load app.py 10\nthread 5 MainThread\n110us call 2\n150us return\n",
        [
            switch(0, 0, 1),
            fork(2, 1, 5),
            switch(4, 1, 5),
            event(28, "sched_process_exit", tid=5),
            switch(30, 5, 1, state=0x10),
            fork(100, 1, 5),
            switch(104, 1, 5),
            switch(120, 5, 1),
            switch(130, 1, 5),
            switch(200, 5, 1),
        ],
    )
    found = rows(folder)
    assert found["main"]["self"] == {"on_cpu": 10}
    assert found["load"]["self"] == {"on_cpu": 30, "runnable": 10}


def test_a_number_that_is_used_again_is_another_thread_also_of_one_that_had_asked_for_it(both, rows):
    folder = both(
        CODES + "110us call 2\n150us return\n",
        [
            switch(0, 0, 1),
            fork(2, 1, 5),
            switch(4, 1, 5),
            *knows_itself(5, 5),
            event(28, "sched_process_exit", tid=5),
            switch(30, 5, 1, state=0x10),
            fork(100, 1, 5),
            switch(104, 1, 5),
            switch(120, 5, 1),
            switch(130, 1, 5),
            switch(200, 5, 1),
        ],
    )
    assert rows(folder)["load"]["self"] == {"on_cpu": 30, "runnable": 10}


def test_what_executes_another_program_ends_where_that_begins(both, rows):
    """That it has is seen late: its exit is of the other's time, which waits then."""
    first = "thread 6\n0us call 4\n200us return\nexit 2 0\nthread 5\n0us call 1\n10us call 2\n60us ccall 3\n"
    second = "process 5 python3\nthread 5 MainThread\n65us call 1\n90us return\n"
    calls = CODES + "code 4 python app other app.py 30\n" + first + second + "code 1 python app main app.py 1\n"
    found = rows(both(calls, [switch(0, 0, 5), switch(70, 5, 0, state=1), switch(85, 0, 5), switch(200, 5, 0)]))
    assert found["sleep"]["self"] == {} and found["load"]["self"] == {"on_cpu": 50}
    assert found["main"]["self"] == {"on_cpu": 10 + 10, "other": 15}


def test_a_thread_of_another_namespace_is_known_by_the_number_that_it_was_told(both, rows):
    """It is 5 there and 4005 in the kernel's events, where 5 is another."""
    folder = both(
        CODES + "10us call 1\n90us return\n",
        [
            switch(0, 0, 4005),
            switch(0, 0, 5, cpu=1),
            *knows_itself(2, 5),
            switch(20, 4005, 6),
            switch(60, 6, 4005),
            switch(100, 4005, 0),
        ],
    )
    assert rows(folder)["main"]["self"] == {"on_cpu": 40, "runnable": 40}


def test_recursion_and_steps_of_generators_count_as_in_the_other_columns(both, rows):
    calls = """
    code 4 python app numbers app.py 20
    10us call 2
    20us call 2
    30us return
    40us return
    50us call 1
    52us call 4
    54us yield
    80us resume 4
    82us yield
    90us return
    """
    events = [switch(0, 0, 5), switch(25, 5, 6), switch(35, 6, 5), switch(53, 5, 6), switch(81, 6, 5), switch(100, 5, 0)]
    found = rows(both(CODES + calls, events))
    assert found["load"]["total"] == {"on_cpu": 20, "runnable": 10}
    assert found["numbers"]["total"] == {"on_cpu": 2, "runnable": 2}
    assert found["main"]["self"] == {"on_cpu": 10, "runnable": 26}


def test_a_chosen_time_cuts_the_split_too(both, rows):
    folder = both(
        CODES + "0us call 1\n100us return\n", [switch(0, 0, 5), switch(40, 5, 6), switch(60, 6, 5), switch(100, 5, 0)]
    )
    assert rows(folder, "--from", "50us", "--until", "70us")["main"]["self"] == {"on_cpu": 10, "runnable": 10}


@pytest.mark.parametrize("by, name", [("module", "app"), ("file", "app.py"), ("process", "python3 5")])
def test_other_rows_are_split_too(both, rows, by, name):
    folder = both(
        CODES + "0us call 1\n50us call 2\n80us return\n100us return\n",
        [switch(0, 0, 5), switch(40, 5, 6), switch(60, 6, 5), switch(100, 5, 0)],
    )
    row = rows(folder, "--by", by)[name]
    assert row["self"] == row["total"] == {"on_cpu": 80, "runnable": 20}


def test_branches_of_the_tree_are_split(krait, both):
    folder = both(
        CODES + "0us call 1\n50us call 2\n80us return\n90us call 2\n95us return\n100us return\n",
        [switch(0, 0, 5), switch(40, 5, 6), switch(60, 6, 5), switch(92, 5, 6), switch(93, 6, 5), switch(100, 5, 0)],
    )
    main, load = verb_json(krait, "report", folder, "--tree")["tree"]
    assert us(main["wall_total_ns"]) == {"on_cpu": 79, "runnable": 21}
    assert us(load["wall_total_ns"]) == {"on_cpu": 24, "runnable": 11}
    out, _ = text(krait, folder, "--tree")
    assert [line.split()[:6] for line in out.splitlines()] == [
        ["total", "total%", "cpu", "ready", "self", "calls"],
        ["100.0", "us", "100.0%", "79%", "21%", "65.00"],
        ["35.00", "us", "35.0%", "69%", "31%", "35.00"],
    ]
    header, row, _ = (line.split(",") for line in text(krait, folder, "--tree", "--csv")[0].splitlines())
    assert dict(zip(header, row))["wall_total_runnable_ns"] == "21000"


def test_folded_imports_keep_their_split(krait, both):
    folder = both(
        CODES
        + """
        code 4 python importlib._bootstrap _find_and_load <frozen> 1
        code 5 python importlib._bootstrap _load_unlocked <frozen> 2
        0us call 4
        10us call 5
        20us call 1
        80us return
        90us return
        100us return
        """,
        [switch(0, 0, 5), switch(5, 5, 6), switch(15, 6, 5), switch(40, 5, 6), switch(60, 6, 5), switch(100, 5, 0)],
    )
    top, main = verb_json(krait, "report", folder, "--tree", "--fold-imports")["tree"]
    assert top["name"] == "<import>" and us(top["wall_total_ns"]) == {"on_cpu": 70, "runnable": 30}
    assert us(main["wall_total_ns"]) == {"on_cpu": 40, "runnable": 20}


# ---- what is printed ----

CALLS = CODES + "0us call 1\n100us call 2\n200us return\n1000us return\n"


def test_the_table_has_a_column_for_each_state_that_there_was(krait, both):
    out, notes = text(krait, both(CALLS, EVENTS))
    head, main, load = (line.split() for line in out.splitlines())
    assert head[:5] == ["self", "self%", "cpu", "ready", "disk"] and head[5] == "total"
    assert main[2:6] == ["90.0%", "100%", "-", "-"]
    assert load[2:6] == ["10.0%", "30%", "10%", "60%"]
    assert "shares of the self time" in notes


def test_by_total_time_the_split_is_of_that(krait, both):
    out, notes = text(krait, both(CALLS, EVENTS), "--sort", "total")
    head, main, *_ = (line.split() for line in out.splitlines())
    assert head[:6] == ["total", "total%", "cpu", "ready", "disk", "self"]
    assert main[2:6] == ["100.0%", "93%", "1%", "6%"]
    assert "shares of the total time" in notes


def test_rows_can_be_sorted_by_what_their_threads_did(krait, both):
    out, _ = text(krait, both(CALLS, EVENTS), "--sort", "disk", "--limit", "1")
    assert "app.load" in out


def test_there_is_no_order_by_what_is_not_known(krait, synth):
    run = subprocess.run([krait, "report", synth(CALLS), "--sort", "disk"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "--sort disk: the trace has no thread states" in run.stderr and not run.stdout


def test_csv_says_the_same_as_json(krait, both, rows):
    folder = both(CALLS, EVENTS)
    out, _ = text(krait, folder, "--csv")
    found = rows(folder)
    for row in csv.DictReader(io.StringIO(out)):
        for part in ("self", "total"):
            told = {state: int(row[f"wall_{part}_{state}_ns"]) for state in SPREAD}
            assert told == found[row["name"]][f"wall_{part}_ns"]


def test_all_states_fit_a_terminal(krait, both):
    """What does not fit goes: first what is no state, then the states with least time. The line above wraps."""
    calls, events = "", [switch(0, 0, 5)]
    waits = ("futex", "fsync", "recvfrom", "clock_nanosleep", "wait4", "read")
    for n, call in enumerate(waits):
        at = 100 * n
        calls += f"{at}us call 2\n{at + 90}us return\n"
        events += [begins(at + 5, call), switch(at + 10, 5, 0, state=1), wake(at + 70 - n, 5, cpu=1), switch(at + 75, 0, 5), ends(at + 80, call)]
    folder = both(CODES + calls, [*events, switch(1000, 5, 0)])
    for columns, titles in (
        (80, "self cpu ready lock disk net timer child other"),
        (140, "self self% cpu ready lock disk net timer child other total total% calls"),
    ):
        out = report_on_terminal(krait, columns, folder, NO_COLOR="1")
        assert max(map(len, out.splitlines())) <= columns, out
        assert titles in (" ".join(line.split()[: len(titles.split())]) for line in out.splitlines()), out
        out = report_on_terminal(krait, columns, folder, "--why", "load", NO_COLOR="1")
        assert max(map(len, out.splitlines())) <= columns, out


@pytest.mark.parametrize("columns", [40, 80])
def test_notes_fit_a_terminal_too(krait, both, columns):
    out = report_on_terminal(krait, columns, both(CALLS, EVENTS, lost=7), notes=True, NO_COLOR="1")
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("lost: "))
    assert max(map(len, lines[first:])) <= columns, out
    assert "shares of the self time; with --sort total, of the total time" in " ".join(map(str.strip, lines)), out


def test_the_note_on_shares_names_only_columns_that_the_table_shows(krait, both):
    out = report_on_terminal(krait, 40, both(CALLS, EVENTS), notes=True, NO_COLOR="1")
    head = next(line.split() for line in out.splitlines() if line.split()[:1] == ["self"])
    note = next(line for line in out.splitlines() if ": share" in line or ": the share" in line)
    named = note.split(":")[0].replace(" and ", ", ").split(", ")
    assert named == [title for title in head if title in ("cpu", "ready", "disk")], out


def test_without_a_kernel_part_nothing_is_said_of_it(krait, synth):
    folder = synth(CALLS)
    out, notes = text(krait, folder)
    assert "cpu" not in out and "shares" not in notes and "threads" not in notes
    assert not any(key.startswith("wall") for key in verb_json(krait, "report", folder)["functions"][0])
    assert "wall" not in text(krait, folder, "--csv")[0] and "kernel" not in verb_json(krait, "report", folder)


def test_a_kernel_part_without_scheduling_says_why_nothing_is_split(krait, both):
    out, notes = text(krait, both(CALLS, [begins(1, "read", tid=5), ends(2, "read")]))
    assert "cpu" not in out and "what threads did is not known: there is no sched_switch" in notes


def test_lost_events_and_damage_are_said(krait, both):
    folder = both(CALLS, EVENTS, lost=7)  # on each of two CPUs
    assert text(krait, folder)[1].count("lost: 14 events of the kernel's: the changes of state that they told are missing; LTTng dropped them; larger or more sub-buffers keep them: ") == 1
    assert verb_json(krait, "report", folder)["lost"] == {"sub-buffers full": 14}  # as every reader of the model has it
    assert verb_json(krait, "report", folder)["kernel"] == {"own_only": False, "lost": 14, "lost_events": 14, "stolen_ns": None, "damage": None}
    stream = folder / "kernel" / "channel0_0"
    stream.write_bytes(stream.read_bytes()[:-20])
    out, notes = text(krait, folder)
    assert "damaged: " in notes and "app.load" in out
    assert verb_json(krait, "report", folder)["kernel"]["damage"]


def test_the_number_of_lost_events_has_the_same_key_in_every_verb(krait, both):
    folder = both(CALLS, EVENTS, lost=7)
    for words in (["report"], ["report", "--tree"], ["report", "--by", "mark"], ["info"], ["states"], ["path", "--thread", "5"]):
        assert verb_json(krait, words[0], folder, *words[1:])["lost_events"] == 14, words
    compared = verb_json(krait, "report", folder, "--diff", folder)
    assert [recording["lost_events"] for recording in compared["recordings"]] == [14, 14]


# ---- --callers and --callees ----

RELATED = (
    CODES
    + """
    code 4 python app work app.py 30
    code 5 python app rest app.py 40
    0us call 1
    100us call 2
    150us call 4
    190us call 2
    200us call 4
    210us return
    220us return
    240us return
    300us return
    400us call 5
    420us call 4
    450us return
    480us return
    1000us return
    """
)
RELATED_EVENTS = [
    switch(0, 0, 5),
    begins(110, "futex"),
    switch(120, 5, 0, state=1),
    wake(140, 5, cpu=1),
    switch(142, 0, 5),
    ends(143, "futex"),
    begins(160, "nanosleep"),
    switch(165, 5, 0, state=1),
    wake(205, 5),
    switch(206, 0, 5),
    ends(207, "nanosleep"),
    switch(430, 5, 9),
    switch(440, 9, 5),
    switch(1000, 5, 0),
]


def split_of(row):
    return {part: us(row[f"wall_{part}_ns"]) for part in ("self", "total")}


def test_what_threads_did_is_told_of_callers(krait, both):
    """A call of `work` within another from the same caller counts once in the total."""
    folder = both(RELATED, RELATED_EVENTS)
    found = verb_json(krait, "report", folder, "--callers", "work")
    assert {f["name"]: split_of(f) for f in found["functions"]} == {
        "load": {"self": {"on_cpu": 39, "timer": 30, "runnable": 1}, "total": {"on_cpu": 49, "timer": 40, "runnable": 1}},
        "rest": {"self": {"on_cpu": 20, "runnable": 10}, "total": {"on_cpu": 20, "runnable": 10}},
    }
    assert split_of(found["callers_of"]) == {
        "self": {"on_cpu": 59, "timer": 30, "runnable": 11},
        "total": {"on_cpu": 69, "timer": 40, "runnable": 11},
    }
    assert found["kernel"]["lost"] == 0


def test_what_threads_did_is_told_of_callees(krait, both):
    found = verb_json(krait, "report", both(RELATED, RELATED_EVENTS), "--callees", "work")
    assert {f["name"]: split_of(f) for f in found["functions"]} == {
        "load": {"self": {"on_cpu": 10, "timer": 10}, "total": {"on_cpu": 14, "timer": 15, "runnable": 1}}
    }


@pytest.mark.parametrize("which", ["--callers", "--callees"])
@pytest.mark.parametrize("function", ["main", "load", "work", "rest", "app.*"])
def test_states_of_callers_and_callees_add_up(krait, both, which, function):
    """Those of the function itself are the ones that the table has."""
    folder = both(RELATED, RELATED_EVENTS)
    found = verb_json(krait, "report", folder, which, function)
    of = found[f"{which[2:]}_of"]
    for row in [*found["functions"], of]:
        for part in ("self", "total"):
            assert sum(row[f"wall_{part}_ns"].values()) == row[f"{part}_ns"]
    for row in verb_json(krait, "report", folder)["functions"]:
        if row["name"] == function:
            assert (split_of(row), row["total_ns"]) == (split_of(of), of["total_ns"])
    lines = subprocess.run([krait, "report", folder, which, function, "--csv"], capture_output=True, text=True, check=True).stdout
    for line, row in zip(csv.DictReader(io.StringIO(lines)), found["functions"], strict=True):
        for part in ("self", "total"):
            assert {k: int(line[f"wall_{part}_{k}_ns"]) for k in SPREAD} == row[f"wall_{part}_ns"]


def test_callers_have_columns_of_what_threads_did(krait, both):
    out, notes = text(krait, both(RELATED, RELATED_EVENTS), "--callers", "work")
    head, load, rest = (line.split() for line in out.splitlines())
    assert head == ["total", "total%", "cpu", "ready", "timer", "self", "calls", "caller", "where"]
    assert load[2:7] + load[8:10] == ["75.0%", "54%", "1%", "44%", "70.00", "2", "app.load"]
    assert rest[2:6] == ["25.0%", "67%", "33%", "-"]
    assert "cpu, ready and timer: shares of the total time" in notes


# ---- the GIL ----

GIL_CALLS = (
    CODES
    + """
    100us call 2
    120us gilwait 6
    180us giltake
    200us return
    thread 6 holder
    50us call 1
    300us return
    """
)
GIL_EVENTS = [
    switch(0, 0, 5),
    begins(110, "futex"),
    switch(112, 5, 0, state=1),
    wake(115, 5, cpu=1),
    switch(116, 0, 5),
    ends(117, "futex"),
    begins(121, "futex"),
    switch(122, 5, 0, state=1),
    wake(150, 5, cpu=1),
    switch(152, 0, 5),
    switch(153, 5, 0, state=1),
    wake(175, 5, cpu=1),
    switch(178, 0, 5),
    ends(179, "futex"),
    switch(300, 5, 0),
]


def test_why_of_a_wait_for_a_cpu_that_a_wait_for_the_gil_cuts(krait, both):
    """Who had the CPU is told for the part that is left."""
    events = [
        switch(0, 0, 5),
        switch(110, 5, 9, next_comm="hog"),
        switch(150, 9, 5, prev_comm="hog"),
        switch(152, 5, 0, state=1),
        wake(170, 5),
        switch(172, 0, 5),
        switch(1000, 5, 0),
    ]
    folder = both(GIL_CALLS.replace("180us giltake", "175us giltake"), events)
    call = why(krait, folder, "--why", "load")["slowest"][0]
    preempted = [row for row in rows_of(call, "waits", "state", "preempted", "by_name", "ns") if row[1]]
    assert preempted == [("runnable", True, "hog", 10_000)]


def test_what_is_blocked_while_it_waits_for_the_gil_waits_for_that(both, rows):
    """And who is woken just to ask for it, and sleeps on; but not who is ready and then has it."""
    split = rows(both(GIL_CALLS, GIL_EVENTS))["load"]["self"]
    assert split == {"on_cpu": 41, "lock": 3, "gil": 28 + 2 + 22, "runnable": 1 + 3}


def test_a_wait_for_the_gil_covers_a_part_of_what_is_blocked(both, rows):
    events = [switch(0, 0, 5), begins(105, "futex"), switch(110, 5, 0, state=1), wake(190, 5, cpu=1), switch(191, 0, 5), switch(300, 5, 0)]
    assert rows(both(GIL_CALLS, events))["load"]["self"] == {"on_cpu": 19, "lock": 10 + 10, "gil": 60, "runnable": 1}


def test_waits_for_the_gil_whose_times_go_back_do_not_overlap(synth, rows):
    calls = "0us call 1\n1000us gilwait 6\n2000us giltake\npacket\n100us gilwait 6\n200us giltake\n3000us return\nthread 6\n10us call 2\n20us return\n"
    found = rows(synth(CODES + calls), "--from", "1900us", "--until", "2050us")
    assert found["main"]["self"] == {"gil": 100, "unknown": 50}


@pytest.mark.parametrize("number", [-7, 0, 2**31, 2**63 - 1])
def test_what_is_no_threads_number_preempts_nobody(krait, both, number):
    folder = both(CODES + "10us call 2\n90us return\n", [switch(0, 0, 5), switch(20, 5, number), switch(60, 9, 5), switch(100, 5, 0)])
    (call,) = why(krait, folder, "--why", "load")["slowest"]
    assert rows_of(call, "waits", "state", "preempted", "by_tid", "by_name", "ns") == [
        ("runnable", True, None, None, 40_000) if number else ("throttled", False, None, None, 40_000)
    ]


def test_who_woke_a_thread_is_not_sure_without_interrupts(krait, both):
    events = [e for e in WHY_EVENTS if not e[2].startswith("irq_")]
    out, _ = text(krait, both(WHY_CALLS, events), "--why", "load", "--limit", "1")
    assert "futex  woken by waker 7 or an interrupt\n" in out and "preempted by hog 9\n" in out


def test_why_names_who_had_the_gil(krait, both):
    folder = both(GIL_CALLS, GIL_EVENTS)
    (call,) = why(krait, folder, "--why", "load")["slowest"]
    gil = [row for row in call["waits"] if row["state"] == "gil"]
    assert [(row["by_tid"], row["by_name"], row["syscall"], row["ns"]) for row in gil] == [(6, "holder", "futex", 52_000)]
    assert "GIL         futex  held by holder 6" in text(krait, folder, "--why", "load")[0]


def test_why_names_who_had_the_gil_by_its_life(krait, both):
    """The number of who had it is another's later, that the program did not tell of."""
    events = [switch(0, 0, 6, cpu=1), *GIL_EVENTS[:-1], *used_again(310, 6, 5, cpu=1), switch(320, 5, 0)]
    (call,) = why(krait, both(GIL_CALLS, events), "--why", "load")["slowest"]
    assert [row["by_name"] for row in call["waits"] if row["state"] == "gil"] == ["holder"]


@pytest.mark.parametrize(
    "options",
    [["--callers", "main"], ["--callees", "main"], ["--from", "100s"], ["--filter", "nosuch"], ["--thread", "holder", "--by", "thread"], ["--thread", "holder", "--tree"]],
    ids=" ".join,
)
def test_what_shares_are_of_is_not_said_of_a_table_without_them(krait, synth, options):
    out, notes = text(krait, synth(GIL_CALLS), *options)
    assert "gil" not in out.partition("\n")[0] and "gil" not in notes


def test_what_shares_are_of_is_not_said_where_there_is_no_room_for_them(krait, both):
    folder = both(GIL_CALLS, GIL_EVENTS)
    for columns, shown in (200, True), (24, False):
        said, _ = on_terminal([krait, "report", folder], columns, ("stdout", "stderr"))
        assert (": shares of the" in said) == shown, said


def test_calls_without_waits_for_the_gil_have_one_line_each(krait, synth):
    """An empty line stands beside calls that have more than one."""
    more = "thread 7 more\n0us call 1\n1us call 2\n10us return\n20us call 2\n23us return\n30us call 2\n80us gilwait 6\n85us giltake\n90us return\n95us return\nthread 8 calm\n0us ccall 3\n9us creturn\n"
    folder = synth(GIL_CALLS + more)
    out, _ = text(krait, folder, "--why", "load")
    calls = out.partition("COMMAND\n")[2]
    assert [" ..." if line.startswith(" ") else line for line in calls.split("\n")] == [
        "",
        "1. 100.0 us, 100.0 us after the start, MainThread 5", " ...", "", " ...", " ...",
        "",
        "2. 60.00 us, 30.00 us after the start, more 7", " ...", "", " ...", " ...",
        "",
        "3. 9.000 us, 1.000 us after the start, more 7",
        "4. 3.000 us, 20.00 us after the start, more 7",
        "",
    ]  # fmt: skip
    lines = text(krait, folder, "--why", "sleep")[0].splitlines()
    assert lines[1] == "These calls did not wait for the GIL." and lines[2].startswith("What else ")
    assert lines[4:] == ["", "1. 9.000 us, 0 ns after the start, calm 8"]


def test_without_a_kernel_part_the_waits_for_the_gil_are_told(krait, synth):
    folder = synth(GIL_CALLS)
    found = {f["name"]: f for f in verb_json(krait, "report", folder)["functions"]}
    assert us(found["load"]["wall_self_ns"]) == {"gil": 60, "unknown": 40}
    out, notes = text(krait, folder)
    head, main, load = (line.split() for line in out.splitlines())
    assert head[:4] == ["self", "self%", "gil", "total"] and load[2:5] == ["28.6%", "60%", "100.0"]
    assert "gil: the share that waited for it, of the self time" in notes
    out, notes = text(krait, folder, "--why", "load")
    assert "   GIL 60.0%" in out and "held by holder 6" in out
    assert "What else these calls waited for is not known, since the kernel was not recorded." in out
