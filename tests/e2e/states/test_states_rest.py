# SPDX-License-Identifier: Apache-2.0
"""`krait states` of a recording: the programs that were recorded, and the rest of the machine behind --all."""

import csv
import io
import json
from functools import partial

import pytest
from kernel_made import begins, dump, ends, switch
from reads_made import GIL_CALLS, GIL_KERNEL

CALLS = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n100us call 1\n200us return\n"


@pytest.fixture
def run(run):
    return partial(run, "states")


@pytest.fixture
def busy(both):
    """Thread 5 is recorded, and 7 and 8 have the CPU for longer."""
    return both(
        CALLS,
        [
            dump(0, 5, 0, 5),
            dump(0, 7, 0, 5),
            dump(0, 8, 0, 5),
            switch(0, 0, 5),
            begins(20, "read"),
            ends(30, "read"),
            switch(100, 5, 7),
            begins(120, "fsync"),
            ends(190, "fsync"),
            switch(400, 7, 8),
            switch(900, 8, 0),
        ],
    )


def rows(run, folder, by, *options):
    return list(csv.DictReader(io.StringIO(run(folder, "--by", by, "--csv", *options).stdout)))


def test_the_recorded_processes_are_shown_and_the_rest_is_named(run, busy):
    assert [(row["tid"], row["recorded"]) for row in rows(run, busy, "thread")] == [("5", "1")]
    assert [row["pid"] for row in rows(run, busy, "process")] == ["5"]
    assert [row["name"] for row in rows(run, busy, "syscall")] == ["read"]
    assert [row["name"] for row in rows(run, busy, "process-syscall")] == ["read"]
    overview = run(busy)
    assert "fsync" not in overview.stdout
    assert "are the recorded program's; --all adds 2 threads of the rest of the machine" in overview.stderr


def test_all_adds_the_rest_behind_them(run, busy):
    assert [(row["tid"], row["recorded"]) for row in rows(run, busy, "thread", "--all")] == [("5", "1"), ("8", "0"), ("7", "0")]
    assert [row["name"] for row in rows(run, busy, "syscall", "--all")] == ["fsync", "read"]
    assert [row["tid"] for row in rows(run, busy, "thread", "--all", "--sort", "on_cpu_ns")] == ["8", "7", "5"]
    assert "rest of the machine" not in run(busy, "--all").stderr
    found = json.loads(run(busy, "--all", "--json").stdout)
    assert [t["tid"] for t in found["threads"]] == [5, 8, 7]


def test_a_choice_is_among_all(run, busy):
    assert [row["tid"] for row in rows(run, busy, "thread", "--thread", "8")] == ["8"]
    assert [row["tid"] for row in rows(run, busy, "thread", "--process", "7")] == ["7"]


def test_the_machine_is_told_whole_where_that_is_what_is_asked(run, busy):
    found = json.loads(run(busy, "--json").stdout)
    assert sum(cpu["user_ns"] + cpu["system_ns"] for cpu in found["cpus"]) == 900000
    assert "rest of the machine" not in run(busy, "--by", "cpu").stderr


def test_a_kernel_trace_alone_is_shown_whole(run, busy):
    assert [row["tid"] for row in rows(run, busy / "kernel", "thread")] == ["8", "7", "5"]
    assert "rest of the machine" not in run(busy / "kernel").stderr


def test_rows_are_sorted_by_several_columns(run, busy):
    assert [row["tid"] for row in rows(run, busy, "thread", "--all", "--sort", "process,tid")] == ["5", "7", "8"]
    assert "no column 'none'" in run(busy, "--by", "thread", "--sort", "tid,none", code=1).stderr


def test_the_tables_warn_of_minor_page_faults_where_they_have_user_time(run, busy):
    warning = "user includes the kernel's work for minor page faults, which are not recorded"
    assert warning in run(busy).stderr
    assert all(warning in run(busy, "--by", by).stderr for by in ("cpu", "process", "thread"))
    assert not any(warning in run(busy, *options).stderr for options in (["--by", "syscall"], ["--by", "latency"], ["--json"]))


@pytest.mark.parametrize("edges", [(), ("--from", "120us", "--until", "320us"), ("--within", "load")])
def test_waits_for_the_gil_are_a_column_of_their_own_as_in_report(run, both, edges):
    folder = both(GIL_CALLS, GIL_KERNEL)
    (told,) = [row for row in rows(run, folder, "thread", *edges) if row["tid"] == "5"]
    reported = json.loads(run.func("report", folder, "--by", "thread", "--json", "--thread", "5", *edges).stdout)["wall_ns"]
    assert int(told["gil_ns"]) == reported["gil"] > 0
    assert all(int(told[f"blocked_{name}_ns"]) == reported[name] for name in ("lock", "other", "disk"))
    assert [int(told["on_cpu_ns"]), int(told["ready_ns"])] == [reported["on_cpu"], reported["runnable"]]
    if not edges:
        assert [int(told[name]) for name in ("gil_ns", "blocked_lock_ns", "blocked_other_ns")] == [119_000, 49_000, 0]


def test_where_nobody_waited_for_the_gil_there_is_no_column(run, both):
    without = "".join(line + "\n" for line in GIL_CALLS.splitlines() if "gil" not in line)
    shown = [run(both(calls, GIL_KERNEL, name), "--by", "process").stdout.split("\n")[0].split() for name, calls in (("with", GIL_CALLS), ("without", without))]
    assert "gil" in shown[0] and "gil" not in shown[1]


def test_the_states_one_by_one_are_the_kernels(run, both):
    words = "waits for the GIL are among locks"
    folder = both(GIL_CALLS, GIL_KERNEL)
    assert words in run(folder, "--by", "interval", "--thread", "5").stderr
    assert words not in run(folder).stderr and words not in run(folder, "--by", "interval", "--thread", "5", "--json").stderr
