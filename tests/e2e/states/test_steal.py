# SPDX-License-Identifier: Apache-2.0
"""Steal time: what the host of a virtual machine took from its CPUs. Events made up here; test_steal_recorded.py records."""

import csv
import io
import json

import pytest
from conftest import verb_json
from kernel_made import switch

MS = 1_000_000
CALLS = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n1ms call 1\n90ms return\n"


def steal(ms, cpu, total_ms):
    """The counter of a CPU as it is read at a time."""
    return (ms * 1000, 0, "krait_steal", {"cpu": cpu, "total_ns": total_ms * MS})


SWITCHES = [switch(0, 0, 5), switch(100_000, 5, 0, 1), switch(0, 0, 6, cpu=1), switch(100_000, 6, 0, 1, cpu=1)]
STOLEN = [*SWITCHES, steal(0, 0, 1000), steal(0, 1, 500), steal(50, 0, 1010), steal(50, 1, 500), steal(100, 0, 1040), steal(100, 1, 500)]


@pytest.fixture
def stolen(both):
    return both(CALLS, sorted(STOLEN, key=lambda e: e[0]))


@pytest.mark.parametrize(
    "options, first",
    [
        ([], 40),
        (["--until", "50ms"], 10),
        (["--from", "50ms"], 30),
        (["--from", "25ms", "--until", "50ms"], 5),  # between two readings it is spread evenly
        (["--from", "75ms"], 15),
    ],
)
def test_states_says_how_much_of_a_range_was_stolen(krait, stolen, options, first):
    found = verb_json(krait, "states", stolen, *options)
    assert [cpu["stolen_ns"] for cpu in found["cpus"]] == [first * MS, 0]
    assert found["stolen_ns"] == first * MS


def test_states_and_report_warn_where_any_was_stolen(run, stolen):
    said = run("states", stolen)
    assert "stolen: the host of this virtual machine took 40.00 ms of the CPUs' time (20.0%); it counts as time on CPU\n" in said.stderr
    assert "stolen" in said.stdout.splitlines()[1].split()
    assert "stolen: the host of this virtual machine took 40.00 ms" in run("report", stolen).stderr
    assert json.loads(run("report", stolen, "--json").stdout)["kernel"]["stolen_ns"] == 40 * MS
    (row, _) = csv.DictReader(io.StringIO(run("states", stolen, "--by", "cpu", "--csv").stdout))
    assert row["stolen_ns"] == str(40 * MS)


TWICE = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n1ms call 1\n11ms return\n51ms call 1\n61ms return\n"


@pytest.mark.parametrize("verb", ["states", "report"])
def test_of_parts_the_share_is_that_of_their_time(run, both, verb):
    folder = both(TWICE, sorted(STOLEN, key=lambda e: e[0]))
    said = run(verb, folder, "--within", "main").stderr
    assert "stolen: the host of this virtual machine took 8.000 ms of the CPUs' time (20.0%)" in said


@pytest.mark.parametrize(
    "options, time, share",
    [([], "40.00", "20.0%"), (["--from", "25ms", "--until", "50ms"], "5.000", "10.0%"), (["--until", "60ms"], "16.00", "13.3%"), (["--call", "main"], "33.80", "19.0%")],
)
def test_path_tells_what_was_stolen_from_its_range(krait, run, stolen, options, time, share):
    options = options if "--call" in options else [*options, "--thread", "5"]
    assert f"stolen: the host of this virtual machine took {time} ms of the CPUs' time ({share})" in run("path", stolen, *options).stderr
    assert verb_json(krait, "path", stolen, *options)["stolen_ns"] == round(float(time) * MS)


def test_path_without_steal_time(krait, run, both):
    none = both(CALLS, sorted([*SWITCHES, steal(0, 0, 7), steal(100, 0, 7)], key=lambda e: e[0]), "none")
    unknown = both(CALLS, sorted(SWITCHES, key=lambda e: e[0]), "unknown")
    assert [verb_json(krait, "path", folder, "--thread", "5")["stolen_ns"] for folder in (none, unknown)] == [0, None]
    assert "stolen" not in run("path", none, "--thread", "5").stderr + run("path", unknown, "--thread", "5").stderr


@pytest.mark.parametrize("options, ms", [([], 40), (["--until", "50ms"], 10)])
def test_report_and_flame_graphs_of_time_on_cpu_warn_of_their_range(run, stolen, tmp_path, options, ms):
    note = f"stolen: the host of this virtual machine took {ms}.00 ms of the CPUs' time ("
    assert note in run("report", stolen, *options).stderr
    assert json.loads(run("report", stolen, *options, "--json").stdout)["kernel"]["stolen_ns"] == ms * MS
    assert "krait flame: " + note in " ".join(run("flame", stolen, *options, "--state", "cpu", "-o", tmp_path / "cpu.svg").stderr.split())
    assert "stolen" not in run("flame", stolen, *options, "-o", tmp_path / "all.svg").stderr


def test_nothing_is_said_where_nothing_was_stolen(krait, run, both):
    folder = both(CALLS, sorted([*SWITCHES, steal(0, 0, 7), steal(100, 0, 7)], key=lambda e: e[0]))
    said = run("states", folder)
    assert "stolen" not in said.stdout + said.stderr + run("report", folder).stderr
    assert verb_json(krait, "states", folder)["stolen_ns"] == 0


def test_where_it_was_not_read_it_is_not_known(krait, run, both):
    folder = both(CALLS, sorted(SWITCHES, key=lambda e: e[0]))
    assert verb_json(krait, "states", folder)["stolen_ns"] is None
    assert json.loads(run("report", folder, "--json").stdout)["kernel"]["stolen_ns"] is None


def test_a_counter_that_goes_back_or_a_cpu_that_is_none_counts_nothing(krait, both):
    events = [*SWITCHES, steal(0, 0, 7), steal(10, 0, 5), steal(20, 0, 6), steal(30, -1, 9), steal(40, 1 << 40, 9)]
    found = verb_json(krait, "states", both(CALLS, sorted(events, key=lambda e: e[0])))
    assert found["stolen_ns"] == 1 * MS and len(found["cpus"]) == 2


def test_info_tells_each_cpu(run, stolen):
    metadata = stolen / "kernel" / "metadata"
    metadata.write_text(metadata.read_text().replace('domain = "kernel";', 'domain = "kernel"; recorded_by = "krait 0.1.0";'))
    assert "  stolen     40.00 ms (20.0%) by the host: CPU 0 40.00 ms\n" in run("info", stolen).stdout
    assert json.loads(run("info", stolen, "--json").stdout)["kernel"]["stolen_ns"] == [40 * MS, 0]
