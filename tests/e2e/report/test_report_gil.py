# SPDX-License-Identifier: Apache-2.0
"""How much of the waits for the GIL another thread held it, and how much it was free: worked out from the gil:* events alone."""

import re
import shutil
from collections import Counter

import pytest

from conftest import verb_json
from gil_oracle import GilOracle
from kernel_made import begins, ends, switch, wake
from wall_made import CODES, rows_of, text, us, why

# Threads that take turns by force (wait and switch), give it up by themselves, and end while others wait.
PROGRAM = """
import os, threading
def computes(n):
    for _ in range(n):
        sum(range(20000))
def calls(n):
    for _ in range(n):
        os.stat("/")
def both(n):
    computes(n)
    calls(n)
threads = [threading.Thread(target=target, args=(40,)) for target in (computes, computes, calls, both)]
for thread in threads:
    thread.start()
computes(40)
for thread in threads:
    thread.join()
"""
PARTS = ("held", "free", "unknown")


def parts_of(found):
    return {part: found[f"{part}_ns"] for part in PARTS}


def clipped(oracle, calls):
    """The parts of waits inside of calls, as rows of --why have them: (part, who) -> ns; "own": free, but the thread itself takes it."""
    sums = Counter()
    for call in calls:
        begin, end = call["begin_ns"], call["begin_ns"] + call["duration_ns"]
        for since, until, part, who in oracle.parts(call["tid"]):
            sums[part, who] += max(0, min(until, end) - max(since, begin))
    return +sums


def summed(parts):
    sums = dict.fromkeys(PARTS, 0)
    for (part, _), ns in parts.items():
        sums[part] += ns
    return sums


@pytest.mark.every_python
def test_what_is_told_of_waits_is_what_their_events_say(krait, record, python):
    folder = record.text(python, PROGRAM).path
    oracle = GilOracle(krait, folder)
    found = verb_json(krait, "info", folder)["gil"]
    assert parts_of(found) == oracle.split() and sum(parts_of(found).values()) == found["wait_ns"]
    assert found["held_ns"] and found["free_ns"]  # from each drop to the next take it is free
    report = verb_json(krait, "report", folder, "--why", "*", "--limit", "0")  # the outermost calls of all threads
    assert parts_of(report["why"]["gil"]) == summed(clipped(oracle, report["slowest"]))
    for call in report["slowest"]:
        rows = [row for row in call["waits"] if row["state"] == "gil"]
        told = {("free" if row["free"] else "held" if row["by_tid"] else "unknown", row["by_tid"] if not row["free"] else None): 0 for row in rows}
        for row in rows:
            part = "free" if row["free"] else "held" if row["by_tid"] else "unknown"
            told[part, None if row["free"] else row["by_tid"]] += row["ns"]
            assert not row["free"] or row["by_tid"] in (None, call["tid"])
        assert told == clipped(oracle, [call]) and parts_of(call["gil"]) == summed(told)
    for options in ([], ["--tree"], ["--by", "thread"]):
        whole = verb_json(krait, "report", folder, *options, "--limit", "0")
        assert parts_of(whole["gil"]) == parts_of(report["why"]["gil"]), options


# MainThread waits three times. The second time it has dropped the GIL, and goes on when the other has taken it: nobody waits then, so
# that a drop would not be told.
CALLS = (
    CODES
    + """
    100us call 2
    110us gilwait 6
    150us giltake
    160us gildrop
    161us gilwait 0
    180us gilswitch
    181us gilwait 6
    230us giltake
    240us return
    thread 6 other
    50us call 2
    140us gildrop
    155us gilwait 5
    175us giltake
    200us gildrop
    300us return
    """
)
HELD, FREE, UNKNOWN = 30 + (200 - 181), 10 + (175 - 161) + 30, 5
OTHERS_HELD, OTHERS_FREE = 5, 15  # of the other thread's wait


def test_a_wait_is_split_where_the_gil_is_dropped_and_taken(krait, synth):
    folder = synth(CALLS)
    call = why(krait, folder, "--why", "load", "--thread", "MainThread")["slowest"][0]
    assert us(call["gil"]) == {"held_ns": HELD, "free_ns": FREE, "unknown_ns": UNKNOWN}
    assert rows_of(call, "waits", "state", "free", "by_tid", "ns") == [
        ("gil", False, 6, HELD * 1000),
        ("gil", True, 5, 40_000),
        ("gil", True, None, 14_000),
        ("gil", False, None, 5_000),
    ]
    out, notes = text(krait, folder, "--why", "load", "--thread", "MainThread")
    assert re.findall(r"GIL +- +(.*)", out) == [
        "held by other 6",
        "free until this thread ran",
        "free until another took it",
        "not known",
    ]
    assert "gil: of the time in waits, another thread held the GIL for 45.4%; for 50.0% it was free, but no waiting thread was running yet; for 4.6% it is not known\n" in notes
    assert GilOracle(krait, folder).split([5]) == {"held": HELD * 1000, "free": FREE * 1000, "unknown": UNKNOWN * 1000}


def test_the_table_says_how_much_of_the_column_nobody_held(krait, synth):
    folder = synth(CALLS)
    whole = verb_json(krait, "report", folder)
    assert us(whole["gil"]) == {"held_ns": HELD + OTHERS_HELD, "free_ns": FREE + OTHERS_FREE, "unknown_ns": UNKNOWN}
    assert sum(whole["gil"].values()) == whole["wall_ns"]["gil"]
    for options in ([], ["--tree"], ["--callees", "load"]):
        _, notes = text(krait, folder, *options)
        assert len(re.findall("^gil: of the time in waits, another thread held the GIL for ", notes, re.M)) == (options != ["--callees", "load"]), options


def test_without_takes_and_drops_a_wait_is_what_the_wait_says(krait, synth):
    """One recorded thread: who has the GIL is another, of which there is nothing."""
    folder = synth(CODES + "100us call 2\n110us gilwait 77\n150us giltake\n200us return\n")
    assert parts_of(verb_json(krait, "info", folder)["gil"]) == {"held": 40_000, "free": 0, "unknown": 0}


def test_takes_that_contradict_are_not_known(krait, synth):
    """Interpreters with a GIL each, or lost events."""
    other = "thread 6 other\n50us call 2\n130us giltake\n135us gildrop\n300us return\n"
    folder = synth(CODES + "100us call 2\n110us gilwait 7\n150us giltake\n200us return\n" + other)
    assert us(verb_json(krait, "report", folder)["gil"]) == {"held_ns": 20, "unknown_ns": 20}


OWN_GILS = """
thread 6 other
50us call 2
112us gilof 3
112us gilwait 7
140us gilof 3
140us giltake
145us gilof 3
145us gildrop
300us return
thread 7 third
50us call 2
120us gilof 3
120us gildrop
130us gildrop
145us giltake
300us return
"""


def test_interpreters_with_gils_of_their_own_have_their_own_holders(krait, synth, tmp_path, run):
    """Takes and drops of one GIL say nothing of another, also in a part that begins within waits."""
    folder = synth(CODES + "100us call 2\n110us gilwait 7\n150us giltake\n200us return\n" + OWN_GILS)
    oracle = GilOracle(krait, folder)
    assert oracle.split([5]) == {"held": 25_000, "free": 15_000, "unknown": 0} and oracle.split([6]) == {"held": 8_000, "free": 20_000, "unknown": 0}
    waits = {thread: why(krait, folder, "--why", "load", "--thread", thread)["slowest"][0] for thread in ("MainThread", "other")}
    assert rows_of(waits["MainThread"], "waits", "state", "free", "by_tid", "ns") == [("gil", False, 7, 25_000), ("gil", True, None, 15_000)]
    assert rows_of(waits["other"], "waits", "state", "free", "by_tid", "ns") == [("gil", True, 6, 20_000), ("gil", False, 7, 8_000)]
    run("cut", folder, "--from", "115us", "-o", tmp_path / "part")
    assert parts_of(verb_json(krait, "info", tmp_path / "part")["gil"]) == {"held": 25_000, "free": 35_000, "unknown": 0}


def test_a_thread_that_took_it_unseen_leaves_it_unknown_who_had_it(krait, synth):
    """The next that is known after a drop is no take, but that a thread has it."""
    other = "thread 6 other\n50us call 2\n120us gildrop\n300us return\nthread 7 third\n50us call 2\n140us gilwait 8\n150us giltake\n300us return\n"
    folder = synth(CODES + "100us call 2\n110us gilwait 6\n160us giltake\n200us return\n" + other)
    call = why(krait, folder, "--why", "load", "--thread", "MainThread")["slowest"][0]
    assert us(call["gil"]) == {"held_ns": 20, "unknown_ns": 30}
    assert GilOracle(krait, folder).split([5]) == {"held": 20_000, "free": 0, "unknown": 30_000}


WITH_KERNEL = (
    CODES
    + """
    100us call 2
    110us gilwait 6
    180us giltake
    200us return
    thread 6 other
    50us call 2
    150us gildrop
    300us return
    """
)
EVENTS = [
    switch(0, 0, 5),
    begins(111, "futex"),
    switch(112, 5, 0, state=1),
    wake(152, 5, cpu=1),
    switch(170, 0, 5),
    ends(175, "futex"),
    switch(300, 5, 0),
]


def test_with_the_kernel_what_nobody_held_is_ready_or_cpu(krait, both, tmp_path):
    """But for the time until the thread is woken, 2 us here."""
    folder = both(WITH_KERNEL, EVENTS)
    without = shutil.copytree(folder, tmp_path / "without", ignore=shutil.ignore_patterns("kernel"))
    alone, kernel = (why(krait, f, "--why", "load", "--thread", "MainThread")["slowest"][0] for f in (without, folder))
    assert us(alone["wall_ns"]) == {"gil": 70, "unknown": 30} and us(alone["gil"]) == {"held_ns": 40, "free_ns": 30}
    assert us(kernel["wall_ns"]) == {"gil": 40, "runnable": 18, "on_cpu": 42} and us(kernel["gil"]) == {"held_ns": 38, "free_ns": 2}
    assert "gil: of the time" in text(krait, without)[1] and "gil: of the time" not in text(krait, folder)[1]


def test_a_report_of_samples_has_no_split(krait, record, any_python):
    """They say that a thread waited, not whether another had the GIL."""
    folder = record.text(any_python, PROGRAM, options=["--sample"]).path
    assert "gil" not in verb_json(krait, "report", folder)


def test_samples_have_no_calls_to_choose_or_to_time(krait, record, run, any_python):
    folder = record.text(any_python, PROGRAM, options=["--sample"]).path
    name = verb_json(krait, "report", folder)["functions"][0]["name"]
    said = run("report", folder, "--within", f"{name}:slowest", code=1)
    assert said.stdout == "" and f"--within: samples have no calls, so there is none of '{name}'" in said.stderr
    for option in ("--call", "--start-call"):
        said = run("intervals", folder, option, name, *(["--stop", "x"] if option != "--call" else []), code=1)
        assert said.stdout == "" and f"{option} '{name}': samples have no calls; record without --sample" in said.stderr


def test_samples_are_not_sorted_by_what_they_do_not_have(krait, record, run, any_python):
    folder = record.text(any_python, PROGRAM, options=["--sample"]).path
    for words in (["--sort", "calls"], ["--sort", "raised"], ["--sort", "p99", "--json"], ["--diff", folder, "--sort", "calls"]):
        said = run("report", folder, *words, code=1)
        assert said.stdout == "" and "samples have no such column; sort by self, total or name, or by one of the states cpu, gil and other" in said.stderr
    for column in ("self", "total", "name", "cpu"):
        assert verb_json(krait, "report", folder, "--sort", column)["functions"]
