# SPDX-License-Identifier: Apache-2.0
"""Processor cycles, where a kernel trace tells the frequency of CPUs: those that the trace's text gives."""

import re
import subprocess
from collections import defaultdict

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import EPOCH, event, switch
from kernel_oracle import Oracle, text_of
from states_run import KERNEL, corpus, run

UNEVEN = KERNEL[3]


class Clocked(Oracle):
    """Goes from event to event and asks each CPU what ran since the last, and how fast."""

    def __init__(self, text):
        self.khz, self.all_khz, self.before = {}, set(), None
        self.of_thread, self.of_cpu = defaultdict(int), defaultdict(int)  # millionths of a cycle
        super().__init__(text)

    def handle(self, name, f):
        passed = self.now - (self.now if self.before is None else self.before)
        self.before = self.now
        for number, cpu in self.cpus.items():
            khz = self.khz.get(number, 0)
            if cpu.history[-1][1] not in ("idle", "unknown"):
                self.of_cpu[number] += passed * khz
            if cpu.thread and cpu.thread.state in ("user", "system"):
                self.of_thread[cpu.thread] += passed * khz
        super().handle(name, f)
        if name == "power_cpu_frequency":
            self.khz[f["of_cpu"]] = f["state"]
            self.all_khz.add(f["state"])


def test_cycles_are_as_the_text_of_the_trace_says(krait):
    oracle = Clocked(text_of(krait, corpus(UNEVEN)))
    found = verb_json(krait, "states", UNEVEN)
    assert {t["tid"]: t["cycles"] for t in found["threads"]} == {t.tid: oracle.of_thread[t] // 10**6 for t in oracle.lives}
    assert {c["cpu"]: c["cycles"] for c in found["cpus"]} == {n: oracle.of_cpu[n] // 10**6 for n in oracle.cpus}
    assert sum(t["cycles"] for t in found["threads"]) > 10**8
    for row in [*found["threads"], *found["cpus"], *found["processes"]]:
        assert 0 <= row["clocked_ns"] <= found["duration_ns"] * row.get("threads", 1)
        if row["clocked_ns"] > 1000:
            assert row["mean_mhz"] == pytest.approx(row["cycles"] / row["clocked_ns"] * 1000, abs=1)
            assert min(oracle.all_khz) <= row["mean_mhz"] * 1000 <= max(oracle.all_khz) + 500


def frequency(us, mhz, of, cpu=0):
    return event(us, "power_cpu_frequency", cpu=cpu, state=mhz * 1000, cpu_id=of)


@pytest.fixture
def states(krait, tmp_path):
    return lambda events, *options: verb_json(krait, "states", made.write(tmp_path / "made", events), *options)


EVENTS = [
    switch(0, 0, 5),
    frequency(10, 1000, 0),
    frequency(20, 2000, 0, cpu=1),  # said by another CPU
    event(30, "irq_handler_entry", irq=1),
    event(35, "irq_handler_exit", irq=1),
    frequency(36, 3000, 1),  # of another CPU
    switch(40, 5, 6, state=1),
    switch(41, 0, 5, cpu=1),
    frequency(45, 1000, 0),
    switch(50, 6, 0, state=1),
    frequency(55, 500, 0),
    switch(61, 5, 0, state=1, cpu=1),
    event(70, "power_cpu_idle", state=1),
]


def test_a_thread_has_the_cycles_of_the_cpus_that_it_runs_on(states):
    found = states(EVENTS)
    threads = {t["tid"]: (t["cycles"], t["mean_mhz"], t["clocked_ns"]) for t in found["threads"]}
    # 5: 10 us at 1 GHz, 10 and 5 at 2, then 20 at 3; 6: 5 us at 2 GHz, 5 at 1.
    assert threads == {5: (10_000 + 30_000 + 60_000, 2222, 45_000), 6: (15_000, 1500, 10_000)}
    cpus = {c["cpu"]: (c["cycles"], c["mean_mhz"], c["clocked_ns"]) for c in found["cpus"]}
    assert cpus == {0: (10_000 + 40_000 + 15_000, 1625, 40_000), 1: (60_000, 3000, 20_000)}


def test_cycles_are_those_of_the_range(states):
    found = states(EVENTS, "--from", "15us", "--to", "45us")
    assert {t["tid"]: t["cycles"] for t in found["threads"]} == {5: 5_000 + 30_000 + 12_000, 6: 10_000}


def test_columns_for_cycles_are_there_where_frequencies_are(krait, states, tmp_path):
    states(EVENTS)
    shown = run(krait, tmp_path / "made", "--by", "thread").stdout
    assert "cycles" in shown and "MHz" in shown and "100,000" in shown and "2,222" in shown
    states([e for e in EVENTS if e[2] != "power_cpu_frequency"])
    assert "cycles" not in run(krait, tmp_path / "made", "--by", "thread").stdout


def test_frequencies_that_are_none_change_nothing(states):
    odd = [frequency(12, -5, 0), frequency(13, 1 << 40, 0), frequency(14, 3000, -1), frequency(15, 3000, 1 << 40)]
    found = states(sorted([*EVENTS, *odd], key=lambda e: e[0]))
    assert {t["tid"]: t["cycles"] for t in found["threads"]} == {5: 100_000, 6: 15_000}


CALLS = """
process 5 app
code 1 python app main app.py 1
code 2 python app fast app.py 10
code 3 python app slow app.py 20
thread 5 MainThread
10us call 1
20us call 2
40us return
50us call 3
100us return
110us call 2
130us return
140us return
exit 0 0
"""
KERNEL_PART = [
    switch(0, 0, 5),
    frequency(5, 1000, 0),
    frequency(45, 2000, 0, cpu=1),
    switch(60, 5, 0, state=1),
    made.wake(80, 5),
    switch(90, 0, 5, cpu=1),
    frequency(95, 3000, 1),
    frequency(120, 500, 1, cpu=0),
    switch(200, 5, 0, state=1, cpu=1),
]


@pytest.fixture
def called(synth):
    folder = synth(CALLS)
    made.write(folder / "kernel", KERNEL_PART, offset=EPOCH)
    return folder


def test_functions_are_reported_in_cycles(krait, called):
    """main runs from 10 to 20 us at 1 GHz, 40 to 50 at 1 and 2, then at 3 and at 0.5; slow is blocked, then on a CPU whose
    frequency is not known for 5 us."""
    found = verb_json(krait, "report", called, "--cycles")
    rows = {r["name"]: r for r in found["functions"]}
    assert rows["fast"]["self_cycles"] == 20_000 + 30_000 + 5_000 == rows["fast"]["total_cycles"]
    assert rows["slow"]["self_cycles"] == 20_000 + 15_000
    assert rows["main"]["self_cycles"] == 10_000 + 5_000 + 10_000 + 30_000 + 5_000
    assert rows["main"]["total_cycles"] == found["self_cycles"] == 150_000
    assert (rows["fast"]["min_cycles"], rows["fast"]["max_cycles"], rows["fast"]["mean_cycles"]) == (20_000, 35_000, 27_500)
    assert rows["fast"]["calls"] == 2 and "self_ns" not in rows["fast"] and "wall_self_ns" not in rows["fast"]
    plain = {r["name"]: r["self_ns"] for r in verb_json(krait, "report", called)["functions"]}
    assert plain == {"main": 40_000, "fast": 40_000, "slow": 50_000}


def report(krait, *words):
    return subprocess.run([krait, "report", *map(str, words)], capture_output=True, text=True, timeout=60)


def test_a_table_in_cycles_says_so(krait, called):
    shown = report(krait, called, "--cycles")
    assert re.search(r"^60,000 +40\.0% +150,000 +100\.0% .*app\.main", shown.stdout, re.M)
    assert "numbers are processor cycles, not time" in shown.stderr and " us" not in shown.stdout
    assert report(krait, called, "--cycles", "--csv").stdout.splitlines()[0].startswith("name,module,file,line,kind,calls,self_cycles,total_cycles")


def test_cycles_take_part_in_ranges_and_groups(krait, called):
    rows = {r["name"]: r for r in verb_json(krait, "report", called, "--cycles", "--until", "30us")["functions"]}
    assert (rows["main"]["self_cycles"], rows["fast"]["self_cycles"]) == (10_000, 10_000)
    assert [r["self_cycles"] for r in verb_json(krait, "report", called, "--cycles", "--by", "thread")["functions"]] == [150_000]


def test_without_frequencies_there_are_no_cycles(krait, synth):
    folder = synth(CALLS)
    refused = report(krait, folder, "--cycles")
    assert refused.returncode == 1 and "does not tell the frequency" in refused.stderr
    made.write(folder / "kernel", [e for e in KERNEL_PART if e[2] != "power_cpu_frequency"], offset=EPOCH)
    refused = report(krait, folder, "--cycles")
    assert refused.returncode == 1 and "does not tell the frequency" in refused.stderr and "virtual machines" in refused.stderr
    wrong = report(krait, folder, "--cycles", "--tree")
    assert wrong.returncode == 2 and "--cycles is for tables of functions" in wrong.stderr
