# SPDX-License-Identifier: Apache-2.0
"""krait states: the time in each state, system calls and waits of kernel traces are those that an independent script
(kernel_oracle.py) works out from the trace's text."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from functools import lru_cache

import pytest

from conftest import verb_json
from kernel_made import begins, ends, switch, wake, write
from kernel_oracle import Oracle, quantile, text_of
from recording import ROOT
from states_run import KERNEL, LTTNG, corpus, cut_in_half, run, times_of
from terminal import on_terminal

QUANTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99}


@lru_cache(maxsize=1)
def oracle_of(krait, trace):
    """The last one: several tests read what is worked out from LTTng's trace, which takes seconds."""
    return Oracle(text_of(krait, trace))


@pytest.fixture
def states(krait):
    return lambda folder, *options: verb_json(krait, "states", folder, *options)


def nonzero(sums):
    return {k: v for k, v in sums.items() if v}


def check_spread(row, values):
    assert (row["total_ns"], row["min_ns"], row["max_ns"]) == (sum(values), min(values), max(values))
    assert row["mean_ns"] == sum(values) // len(values)
    for key, share in QUANTILES.items():
        assert row[key] == pytest.approx(quantile(values, share), rel=0.008, abs=1), key


@pytest.mark.parametrize("folder", KERNEL, ids=lambda p: p.name if p.name != "kernel" else p.parent.name)
def test_everything_is_as_the_text_of_the_trace_says(krait, states, folder):
    oracle = oracle_of(krait, corpus(folder))
    found = states(folder)
    assert (found["begin_ns"], found["time_ns"], found["duration_ns"]) == (oracle.begin, 0, oracle.end - oracle.begin)

    expected = sorted((t.tid, sorted(nonzero(t.sums(oracle.end)).items())) for t in oracle.lives)
    expected = [(tid, times) for tid, times in expected if dict(times).get("gone") != found["duration_ns"]]
    assert sorted((t["tid"], sorted(times_of(t).items())) for t in found["threads"]) == expected
    assert {c["cpu"]: times_of(c) for c in found["cpus"]} == {
        n: nonzero(c.sums(oracle.end)) for n, c in oracle.cpus.items()
    }

    by_call = defaultdict(list)
    for (_, call), values in oracle.calls.items():
        by_call[call] += values
    rows = {c["name"]: c for c in found["syscalls"]}
    assert {name: row["calls"] for name, row in rows.items()} == {name: len(v) for name, v in by_call.items()}
    for name, values in by_call.items():
        assert rows[name]["errors"] == sum(n for (_, call), n in oracle.errors.items() if call == name)
        check_spread(rows[name], values)
    assert {r["name"]: r["count"] for r in found["latencies"]} == {name: len(v) for name, v in oracle.late.items()}
    for row in found["latencies"]:
        check_spread(row, oracle.late[row["name"]])


@pytest.mark.long
def test_system_calls_of_each_process_are_as_the_text_says(krait, states):
    oracle = oracle_of(krait, corpus(LTTNG))
    rows = {(c["pid"], c["name"]): c for c in states(LTTNG)["process_syscalls"]}
    assert set(rows) == set(oracle.calls) and len(rows) > 500
    for key, values in oracle.calls.items():
        assert (rows[key]["calls"], rows[key]["errors"]) == (len(values), oracle.errors[key]), key
        check_spread(rows[key], values)


def test_states_add_up_to_the_duration(states):
    found = states(corpus(LTTNG))
    assert len(found["threads"]) > 200
    for row in [*found["threads"], *found["cpus"]]:
        assert sum(times_of(row).values()) == found["duration_ns"], row
    for row in found["threads"]:
        assert row["ready_ns"] == row["woken_ns"] + row["preempted_ns"] + row["throttled_ns"]
        assert row["blocked_ns"] == sum(v for k, v in row.items() if k.startswith("blocked_") and k != "blocked_ns")
    for process in found["processes"]:
        assert sum(times_of(process).values()) == process["threads"] * found["duration_ns"]


def test_parts_of_the_time_add_up_to_all_of_it(states):
    whole = states(corpus(LTTNG))
    parts = [states(LTTNG, "--until", "2s"), states(LTTNG, "--from", "2s", "--to", "4.5s"), states(LTTNG, "--from", "4.5s")]
    assert sum(p["duration_ns"] for p in parts) == whole["duration_ns"]
    assert [p["duration_ns"] for p in parts[:2]] == [2_000_000_000, 2_500_000_000]
    for key in ("idle_ns", "user_ns", "system_ns", "interrupt_ns", "softirq_ns"):
        for cpu in range(2):
            assert sum(p["cpus"][cpu][key] for p in parts) == whole["cpus"][cpu][key], key
    for call in whole["syscalls"]:
        of_parts = [c for p in parts for c in p["syscalls"] if c["name"] == call["name"]]
        assert sum(c["calls"] for c in of_parts) == call["calls"]
        assert max(c["max_ns"] for c in of_parts) == call["max_ns"]


def test_threads_and_processes_can_be_chosen(states):
    whole = {t["tid"]: t for t in states(corpus(LTTNG))["threads"]}
    wget = states(LTTNG, "--process", "wget")
    assert [t["name"] for t in wget["threads"]] == ["wget", "wget"]
    assert {c["name"] for c in wget["syscalls"]} > {"connect", "recvmsg"} and len(wget["processes"]) == 2
    assert sum(c["calls"] for c in wget["syscalls"]) == sum(p["syscalls"] for p in wget["processes"])
    assert [t["tid"] for t in states(LTTNG, "--process", "13662")["threads"]] == [13662]
    compilers = states(LTTNG, "--thread", "cc[0-9]")
    assert compilers["threads"] == sorted(
        (t for t in whole.values() if t["name"] == "cc1"), key=lambda t: (-t["on_cpu_ns"], t["tid"])
    )
    everything = {"cpus", "processes", "threads", "syscalls", "process_syscalls", "latencies"}
    assert everything - wget.keys() == {"cpus", "latencies"}
    assert everything - compilers.keys() == {"cpus", "syscalls", "process_syscalls", "latencies"}


def test_what_chosen_threads_are_no_part_of_is_left_out_and_said(krait, states):
    """Calls are counted by process: of some of its threads they are not known."""
    assert {"syscalls", "errors"} <= states(corpus(LTTNG), "--by", "process", "--process", "wget")["processes"][0].keys()
    partial = states(LTTNG, "--by", "process", "--thread", "wget")["processes"]
    assert [p["name"] for p in partial] == ["wget", "wget"] and not {"syscalls", "errors"} & partial[0].keys()
    header = run(krait, LTTNG, "--by", "process", "--thread", "wget", "--csv").stdout.split("\n")[0].split(",")
    assert header == list(partial[0])
    unsorted = run(krait, LTTNG, "--by", "process", "--thread", "wget", "--sort", "syscalls")
    assert unsorted.returncode == 1 and "no column 'syscalls'" in unsorted.stderr
    shown = run(krait, LTTNG, "--process", "wget")
    assert "System calls" in shown.stdout and "Waiting to run" not in shown.stdout and "CPUs" not in shown.stdout
    assert "left out: CPUs, Waiting to run, which are of more than what was chosen\n" in shown.stderr
    assert "left out: CPUs, System calls, Waiting to run, which" in run(krait, LTTNG, "--thread", "wget").stderr


def test_csv_has_what_json_has(krait, states):
    rows = list(csv.DictReader(io.StringIO(run(krait, corpus(LTTNG), "--by", "thread", "--csv").stdout)))
    assert rows == [{k: "" if v is None else str(v) for k, v in t.items()} for t in states(LTTNG)["threads"]]


def joined(history, end):
    """[(begin, state)] without what takes no time, and neighbours of one state as one."""
    out = []
    for (begin, state), (until, _) in zip(history, [*history[1:], (end, None)]):
        if until > begin and (not out or out[-1][1] != state):
            out.append((begin, state))
    return out


def test_intervals_are_as_the_text_says(krait, states):
    oracle = oracle_of(krait, corpus(LTTNG))
    names = {t["tid"]: t["name"] for t in states(LTTNG)["threads"]}
    expected = {t.tid: joined(t.history, oracle.end) for t in oracle.lives if names.get(t.tid) in ("wget", "bash", "lttng-consumerd")}
    found = defaultdict(list)
    for row in states(LTTNG, "--by", "interval", "--thread", "wget", "--thread", "bash", "--thread", "lttng-consumerd")["intervals"]:
        found[row["tid"]].append((oracle.begin + row["time_ns"], row["state"]))
    assert {tid: joined(rows, oracle.end) for tid, rows in found.items()} == expected and len(expected) > 10


def test_a_column_decides_the_order(krait):
    out = run(krait, corpus(LTTNG), "--by", "syscall", "--sort", "errors", "--limit", "3", "--csv").stdout
    errors = [int(r["errors"]) for r in csv.DictReader(io.StringIO(out))]
    assert len(errors) == 3 and errors == sorted(errors, reverse=True) and errors[0] > 1000
    wrong = run(krait, LTTNG, "--by", "syscall", "--sort", "user")
    assert wrong.returncode == 1 and "no column 'user'" in wrong.stderr and "p99" in wrong.stderr


TABLE = """\
CPUs
cpu      idle      user    system  irq  softirq   unknown
  0  2.000 ms  18.00 ms  4.000 ms    -        -         -
  1         -         -         -    -        -  24.00 ms

Processes
pid    on CPU  ready   blocked      user    system     other   unknown  threads  calls  errors  process
  ?  18.00 ms      -  14.00 ms  15.00 ms  3.000 ms  14.00 ms  16.00 ms        2      3       0  ?
 99  4.000 ms      -  20.00 ms  3.000 ms  1.000 ms  20.00 ms         -        1      1       0  app

Threads
tid    on CPU  ready   blocked      user    system     other   unknown  pid  process  thread
101  14.00 ms      -         -  12.00 ms  2.000 ms         -  10.00 ms    ?  ?        app3
 99  4.000 ms      -  20.00 ms  3.000 ms  1.000 ms  20.00 ms         -   99  app      app
100  4.000 ms      -  14.00 ms  3.000 ms  1.000 ms  14.00 ms  6.000 ms    ?  ?        app2

System calls
calls  errors     total      mean       min       p50       p90       p99       max  system call
    2       0  2.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  read
    1       0  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  open
    1       0  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  write
"""


def test_the_overview_as_people_see_it(krait):
    assert run(krait, corpus(KERNEL[1])).stdout == TABLE


def test_a_trace_without_the_kernel_is_told(krait, synth):
    folder = synth("process 10 app\ncode 1 python m f f.py 3\nthread 10 main\n1us call 1\n4us return\nexit 0 0\n")
    refused = run(krait, folder)
    assert refused.returncode == 1 and "no events of the kernel" in refused.stderr and "--kernel" in refused.stderr


def test_a_damaged_trace_is_read_as_far_as_it_is_whole(krait, tmp_path):
    folder = cut_in_half(corpus(LTTNG), tmp_path / "cut")
    cut = run(krait, folder, "--json")
    assert cut.returncode == 0 and "damaged: " in cut.stderr and "cut/" in cut.stderr
    found, whole = json.loads(cut.stdout), verb_json(krait, "states", LTTNG)
    assert found["damage"] and 0 < found["duration_ns"] < whole["duration_ns"]
    assert 0 < sum(c["calls"] for c in found["syscalls"]) < sum(c["calls"] for c in whole["syscalls"])


@pytest.mark.parametrize(
    "words, why",
    [
        (["--csv"], "--csv needs --by"),
        (["--sort", "calls"], "--sort needs --by"),
        (["--by", "syscall", "--thread", "x"], "--thread does not go with --by syscall"),
        (["--by", "process-syscall", "--thread", "x"], "calls are counted by process; --process chooses"),
        (["--by", "latency", "--thread", "x"], "--thread does not go with --by latency, which is of the whole machine"),
        (["--by", "latency", "--process", "x"], "--process does not go with --by latency"),
        (["--by", "cpu", "--process", "x"], "--process does not go with --by cpu"),
        (["--by", "interval"], "--by interval needs --thread or --process"),
        (["--from", "3s", "--until", "2s"], "the range is empty"),
        (["--by", "colour"], "colour"),
        (["--limit", "many"], "not a whole number"),
    ],
)
def test_wrong_usage_is_told(krait, words, why):
    wrong = run(krait, LTTNG, *words)
    assert wrong.returncode == 2 and why in wrong.stderr


def test_what_leaves_nothing_is_told(krait):
    nobody = run(krait, corpus(LTTNG), "--thread", "nobody")
    assert nobody.returncode == 1 and "no thread matches" in nobody.stderr
    late = run(krait, LTTNG, "--from", "1h")
    assert late.returncode == 1 and "no kernel events in that time" in late.stderr
    absent = run(krait, LTTNG / "nowhere")
    assert absent.returncode == 1 and "nowhere" in absent.stderr


def test_the_examples_of_its_page_work(krait, tmp_path):
    (tmp_path / "trace").symlink_to(corpus(LTTNG))
    lines = re.findall(r"^\$ krait (states .*)$", (ROOT / "docs" / "states.md").read_text(), re.M)
    for line in lines:
        shown = subprocess.run([krait, *shlex.split(line)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert shown.returncode == 0 and len(shown.stdout.splitlines()) >= 1 + ("--json" not in line), f"{line}\n{shown.stderr}"
    assert len(lines) >= 6


def waits_of(tid, waits):
    """Events of a thread that waits so long (us) in each of these calls, one after the other."""
    at, events = 0, [switch(0, 0, tid)]
    for call, took in waits:
        events += [begins(at + 1, call), switch(at + 2, tid, 0, state=1), wake(at + 2 + took, tid), switch(at + 3 + took, 0, tid), ends(at + 4 + took, call)]
        at += 5 + took
    return [*events, switch(at, tid, 0, state=1)]


WAITS = [("fsync", 76_000), ("futex", 2_200_000), ("clock_nanosleep", 1_500_000), ("wait4", 90_000), ("recvmsg", 100_000)]


@pytest.mark.parametrize("columns", [60, 70, 80, 90, 100])
@pytest.mark.parametrize("by", ["thread", "process"])
def test_a_narrow_terminal_keeps_the_states_with_the_most_time(krait, tmp_path, by, columns):
    """Those of the rows that are shown."""
    folder = write(tmp_path / "made", waits_of(5, WAITS))
    text, _ = on_terminal([krait, "states", folder, "--by", by], columns, ("stdout", "stderr"), {**os.environ, "NO_COLOR": "1"})
    shown = [title for title in ("disk", "lock", "timer", "child", "network", "user", "system", "woken") if title in text.splitlines()[0].split()]
    times = {"disk": 76_000, "lock": 2_200_000, "timer": 1_500_000, "child": 90_000, "network": 100_000}
    assert sorted(shown) == sorted(sorted(times, key=times.get)[-len(shown) :] if len(shown) <= len(times) else shown)
    assert "columns left out" in text and (columns < 80 or {"lock", "timer"} <= set(shown))
