# SPDX-License-Identifier: Apache-2.0
"""krait path where the program has told its waits for the GIL: each rule by itself, with times known beforehand, on
recordings made up event by event; and the same as the oracles see them."""

import itertools
from collections import defaultdict

import pytest

import kernel_made as made
from conftest import verb_json
from gil_oracle import GilOracle
from kernel_made import EPOCH, begins, event, fork, knows_itself, switch, wake
from kernel_oracle import text_of
from path_compared import expected, first_difference, segments
from path_machine import Machine
from path_made import ASLEEP, irq
from path_oracle import PathOracle


@pytest.fixture
def path(krait, synth):
    """path(gil, events, tid): [(what, tid, from, to, depth)] in microseconds, checked against the oracles. `gil` is
    {tid: "TIME EVENT [HOLDER]; ..."} with times in microseconds."""

    number = itertools.count()

    def find(gil, events, tid, *options, check=True):
        told = "".join(f"thread {t} t{t}\n" + "".join(f"{line.strip().replace(' ', 'us ', 1)}\n" for line in text.split(";")) for t, text in gil.items())
        folder = synth(f"process 5 app\n{told}exit 0 0\n", f"made{next(number)}")
        made.write(folder / "kernel", events, offset=EPOCH)
        found = verb_json(krait, "path", folder, "--thread", tid, *options)
        if check:
            oracle = PathOracle(text_of(krait, folder / "kernel"), GilOracle(krait, folder))
            ours, wanted = segments(found, oracle, EPOCH), expected(oracle, tid)
            assert first_difference(ours, wanted) is None and len(ours) == len(wanted)
        rows = found["segments"]
        assert sum(m["path_ns"] for m in found["path"]) == found["duration_ns"]
        assert all(a["time_ns"] + a["duration_ns"] == b["time_ns"] for a, b in zip(rows, rows[1:]))
        return [(r["kind"], r["tid"], r["time_ns"] // 1000, (r["time_ns"] + r["duration_ns"]) // 1000, r["depth"]) for r in rows]

    return find


def asks(us, tid, until, cpu=0):
    """A thread sleeps, until a timer wakes it; it runs 1 us later."""
    return [switch(us, tid, 0, ASLEEP, cpu), *irq(until - 1, event(until, "timer_hrtimer_expire_entry", cpu=cpu, hrtimer=1), wake(until, tid, cpu), cpu=cpu), switch(until + 1, 0, tid, cpu=cpu)]


def given(us, tid, until, by_cpu, cpu=0):
    """A thread sleeps, until the one on another CPU wakes it."""
    return [switch(us, tid, 0, ASLEEP, cpu), wake(until, tid, cpu=by_cpu), switch(until + 1, 0, tid, cpu=cpu)]


def in_order(*events):
    return sorted(events, key=lambda e: e[0])


# 5 waits for the GIL from 10 to 41, which 6 has and gives up at 40; a timer wakes it at 20 and at 30.
WAITS = [*asks(12, 5, 20), *asks(22, 5, 30), *given(32, 5, 40, by_cpu=1)]
RUNS = [switch(0, 0, 5), switch(1, 0, 6, cpu=1), switch(60, 5, 0, ASLEEP)]
ALONE = [("running", 5, 0, 12, 0), ("woken", 5, 20, 21, 0), ("running", 5, 21, 22, 0), ("woken", 5, 30, 31, 0), ("running", 5, 31, 32, 0), ("woken", 5, 40, 41, 0), ("running", 5, 41, 60, 0)]


def test_what_a_timer_ends_of_a_wait_for_the_gil_is_what_its_holder_does(path):
    found = path({5: "10 gilwait 6; 41 giltake", 6: "40 gildrop"}, in_order(*RUNS, *WAITS), 5)
    assert [s for s in found if s[1] == 5] == ALONE
    assert [s for s in found if s[1] == 6] == [("running", 6, 12, 20, 1), ("running", 6, 22, 30, 1), ("running", 6, 32, 40, 1)]


@pytest.mark.parametrize(
    "gil",
    [
        {5: "10 gilwait 0; 41 giltake", 6: "0 call 1"},  # it is not known who has it
        {5: "10 gilwait 5; 41 giltake", 6: "0 call 1"},  # nonsense
        {5: "10 gilwait 77; 41 giltake", 6: "0 call 1"},  # the kernel knows no such thread
        {5: "10 gilwait 6", 6: "40 gildrop"},  # the wait has no end
        {5: "10 gilwait 0; 41 gilswitch", 6: "11 giltake"},  # it gave it up and waits until another has it: drops are not told
        {5: "1 gilwait 6; 11 giltake; 31 gilwait 6; 41 giltake", 6: "11 gildrop; 40 gildrop"},  # and these are others
    ],
    ids=["nobody", "itself", "unknown", "no end", "switch", "others"],
)
def test_where_nobody_is_known_to_have_the_gil_it_stays_the_timer(path, gil):
    found = path(gil, in_order(*RUNS, *WAITS), 5)
    assert [s[:4] for s in found if s not in ALONE] == [("timer", 5, 12, 20), ("timer", 5, 22, 30), ("running", 6, 32, 40)]


def test_a_recording_without_the_gil_stays_as_it_is(path):
    found = path({5: "0 call 1", 6: "0 call 1"}, in_order(*RUNS, *WAITS), 5)
    assert [s[0] for s in found].count("timer") == 2


def test_the_holder_changes_while_a_thread_sleeps(path):
    """7 waits for it too, and gets it first: 5 waits for 7 from when 6 drops it, which is when 7 is woken."""
    events = in_order(*RUNS, *asks(12, 5, 30), *given(32, 5, 40, by_cpu=2), switch(2, 0, 7, cpu=2), *given(11, 7, 20, by_cpu=1, cpu=2))
    found = path({5: "10 gilwait 6; 41 giltake", 6: "20 gildrop", 7: "9 gilwait 6; 22 giltake; 40 gildrop"}, events, 5)
    assert found[1:6] == [
        ("running", 6, 12, 20, 1),
        ("woken", 7, 20, 21, 1),
        ("running", 7, 21, 30, 1),
        ("woken", 5, 30, 31, 0),
        ("running", 5, 31, 32, 0),
    ]


def test_what_the_holder_waits_for_is_followed_once_it_is_known(path):
    """6 has the GIL and waits for the disk, longer than 5 sleeps at a time; then for 7, which computes."""
    events = in_order(
        *RUNS,
        *asks(12, 5, 20),
        *asks(22, 5, 30),
        *given(32, 5, 50, by_cpu=1),
        begins(14, "read", cpu=1),
        switch(15, 6, 0, ASLEEP, cpu=1),
        *irq(24, event(25, "block_rq_complete", cpu=1, dev=1), wake(25, 6, cpu=1), cpu=1),
        switch(26, 0, 6, cpu=1),
        switch(27, 6, 0, ASLEEP, cpu=1),
        switch(3, 0, 7, cpu=2),
        wake(45, 6, cpu=2),
        switch(46, 0, 6, cpu=1),
    )
    found = path({5: "10 gilwait 6; 51 giltake", 6: "50 gildrop"}, events, 5)
    assert [s for s in found if s[1] != 5] == [
        ("running", 6, 12, 15, 1),
        ("disk", 6, 15, 20, 1),
        ("disk", 6, 22, 25, 1),
        ("woken", 6, 25, 26, 1),
        ("running", 6, 26, 27, 1),
        ("running", 7, 27, 30, 2),
        ("running", 7, 32, 45, 2),
        ("woken", 6, 45, 46, 1),
        ("running", 6, 46, 50, 1),
    ]


def test_a_wait_for_one_that_waits_for_the_gil_leads_to_its_holder(path):
    events = in_order(*RUNS[:2], *WAITS, switch(3, 0, 8, cpu=2), switch(5, 8, 0, ASLEEP, cpu=2), wake(50, 8), switch(52, 0, 8, cpu=2), switch(60, 8, 0, ASLEEP, cpu=2))
    found = path({5: "10 gilwait 6; 41 giltake", 6: "40 gildrop"}, events, 8)
    assert [s for s in found if s[1] == 6] == [("running", 6, 12, 20, 2), ("running", 6, 22, 30, 2), ("running", 6, 32, 40, 2)]


def test_of_gils_that_contradict_each_other_nobody_is_told(path):
    """7 and 8 have another interpreter's: as 6 cannot have it while 8 does, nobody is said to, until 5 has it."""
    gil = {5: "10 gilwait 6; 41 giltake", 6: "40 gildrop", 7: "25 gilwait 8; 35 giltake", 8: "35 gildrop"}
    found = path(gil, in_order(*RUNS, *WAITS), 5)
    assert [s[:4] for s in found if s not in ALONE] == [("running", 6, 12, 20), ("running", 6, 22, 25), ("timer", 5, 25, 30), ("running", 6, 32, 40)]


def test_a_lost_drop_hides_those_who_wait_then_and_no_others(path):
    """That 6 dropped it at 20 is lost: from when 7 takes it nobody is known, until 5 waits anew."""
    gil = {5: "10 gilwait 6; 31 giltake; 32 gilwait 7; 41 giltake", 6: "0 call 1", 7: "9 gilwait 6; 22 giltake; 31 gildrop"}
    events = in_order(*RUNS[:2], *asks(12, 5, 30), *asks(33, 5, 40), switch(60, 5, 0, ASLEEP), switch(2, 0, 7, cpu=2))
    found = path(gil, events, 5)
    assert [s for s in found if s[1] != 5 or s[0] == "timer"] == [("running", 6, 12, 22, 1), ("timer", 5, 22, 30, 0), ("running", 7, 33, 40, 1)]


def test_a_wait_for_the_gil_that_is_waited_for_by_its_holder_ends(path):
    """What cannot be is followed no further: 6 has the GIL, sleeps, and is woken by 5, which waits for the GIL."""
    events = in_order(*RUNS[:2], switch(11, 6, 0, ASLEEP, cpu=1), *asks(12, 5, 20), wake(25, 6, cpu=0), switch(26, 0, 6, cpu=1), switch(60, 5, 0, ASLEEP))
    found = path({5: "10 gilwait 6; 41 giltake", 6: "40 gildrop"}, events, 5)
    assert ("timer", 5, 12, 20, 2) in found


def test_numbers_are_those_of_the_programs_namespace(path):
    """The kernel calls them 105 and 106; there is another 6, which has nothing to do with it."""
    ran = [switch(0, 0, 105), fork(1, 105, 106), switch(2, 0, 106, cpu=1)]
    told = [*knows_itself(3, 5), *knows_itself(4, 6, cpu=1)]
    waits = [*asks(12, 105, 20), *given(22, 105, 40, by_cpu=1)]
    events = in_order(*ran, *told, switch(5, 0, 6, cpu=2), *waits, switch(60, 105, 0, ASLEEP))
    found = path({5: "10 gilwait 6; 41 giltake", 6: "40 gildrop"}, events, 5, check=False)
    assert [s for s in found if s[1] != 105] == [("running", 106, 12, 20, 1), ("running", 106, 22, 40, 1)]


def test_a_range_begins_and_ends_in_a_wait_for_the_gil(path):
    gil, events = {5: "10 gilwait 6; 41 giltake", 6: "40 gildrop"}, in_order(*RUNS, *WAITS)
    assert path(gil, events, 5, "--from", "15us", "--to", "25us", check=False) == [
        ("running", 6, 15, 20, 1),
        ("woken", 5, 20, 21, 0),
        ("running", 5, 21, 22, 0),
        ("running", 6, 22, 25, 1),
    ]
    assert path(gil, events, 5, "--to", "17us", check=False) == [("running", 5, 0, 12, 0), ("running", 6, 12, 17, 1)]


def test_a_trace_ends_in_a_wait_for_the_gil(path):
    """At its second sleep; what it did before is told all the same."""
    found = path({5: "10 gilwait 6; 90 giltake", 6: "40 gildrop"}, in_order(*RUNS[:2], *WAITS[:7], event(25, "power_cpu_idle", state=1)), 5)
    assert found[1] == ("running", 6, 12, 20, 1) and found[-1] == ("blocked", 5, 22, 25, 0)


class Threads(Machine):
    """Threads with a GIL: who waits for it wakes nobody, who drops it wakes one that waits."""

    def __init__(self, seed, losses):
        super().__init__(seed, losses)
        self.gil, self.holder, self.waiting = defaultdict(list), 0, []

    def tell(self, tid, what):
        if self.r.random() >= self.losses:
            self.gil[tid].append(f"{self.now} {what}")

    def turn(self, cpu):
        tid = self.cpus[cpu]
        self.now += 1
        if tid and tid == self.holder:
            self.drop(cpu, tid)
        elif tid and not self.holder:
            if self.waiting:
                self.tell(tid, "giltake")
            self.waiting = [t for t in self.waiting if t != tid]
            self.holder = tid
        elif tid and tid not in self.waiting:
            self.tell(tid, f"gilwait {self.holder}")
            self.waiting.append(tid)

    def drop(self, cpu, tid):
        if self.waiting:
            self.tell(tid, "gildrop")
        self.holder = 0
        asleep = [t for t in self.waiting if t in self.asleep]
        if asleep:
            self.asleep.remove(asleep[0])
            self.put(wake(self.now, asleep[0], cpu=cpu))
            self.ready.append(asleep[0])

    def run(self, steps):
        self.ready = [5, 6, 7, 8]
        for _ in range(steps):
            self.now += self.r.randrange(0, 20)
            cpu = self.r.randrange(len(self.cpus))
            waits = not self.cpus[cpu] or self.cpus[cpu] in self.waiting
            self.r.choice([self.switch, self.interrupt, self.turn] + ([] if waits else [self.end_wait, self.packets, self.turn]))(cpu)
        self.events.append(event(self.now + 10, "power_cpu_idle", state=1))
        return {tid: "; ".join(lines) for tid, lines in self.gil.items()}, self.events


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] * (seed >= 5)) for seed in range(40)])
def test_whatever_happens_the_oracles_find_the_same(path, seed):
    gil, events = Threads(seed, 0).run(600)
    found = [path(gil, events, tid) for tid in (5, 6, 7, 8)]
    assert found != [path({5: "0 call 1"}, events, tid) for tid in (5, 6, 7, 8)]


@pytest.mark.parametrize("seed", range(6))
def test_of_what_was_lost_the_path_is_whole_all_the_same(path, seed):
    """What cannot be is not followed; what is known later than the wait's end is not told."""
    gil, events = Threads(seed, 0.2).run(600)
    for tid in (5, 6, 7, 8):
        assert path(gil, events, tid, check=False)
