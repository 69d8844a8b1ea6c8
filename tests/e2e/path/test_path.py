# SPDX-License-Identifier: Apache-2.0
"""krait path: the critical path of threads of kernel traces is what an independent script (path_oracle.py) works out
from the trace's text."""

import csv
import io
import json
import re

import pytest

import kernel_made as made
from conftest import verb_json
from kernel_made import EPOCH, switch, wake
from kernel_oracle import text_of
from path_compared import expected, first_difference, run, segments
from path_oracle import PathOracle
from states_run import KERNEL, LTTNG, corpus, cut_in_half


@pytest.fixture
def path(krait):
    return lambda folder, *options: verb_json(krait, "path", folder, *options)


@pytest.mark.parametrize("folder", KERNEL, ids=lambda p: p.name if p.name != "kernel" else p.parent.name)
def test_the_path_of_each_thread_is_as_the_text_of_the_trace_says(krait, path, folder, rounds):
    oracle = PathOracle(text_of(krait, corpus(folder)))
    busiest = sorted({t.tid for t in oracle.lives}, key=lambda tid: -sum(len(t.history) for t in oracle.lives if t.tid == tid))
    depth = 0
    for tid in busiest[: rounds(15, 40)]:
        wanted = expected(oracle, tid)
        if not wanted:
            continue
        found = path(folder, "--thread", tid)
        ours = segments(found, oracle)
        assert first_difference(ours, wanted) is None and len(ours) == len(wanted), tid
        assert found["begin_ns"] == oracle.begin
        assert (found["time_ns"], found["duration_ns"]) == (wanted[0].begin - oracle.begin, wanted[-1].end - wanted[0].begin)
        assert sum(m["path_ns"] for m in found["path"]) == found["duration_ns"]
        depth = max(depth, *(s.depth for s in wanted))
    assert depth >= (2 if folder == LTTNG else 0)


TABLE = """\
app3 101  14.00 ms, from 10.00 ms on

app3 101  ██████████████████████████████████████████████████████████████████████████████████████████
          0           2 ms         4 ms         6 ms         8 ms         10 ms        12 ms
          █ runs

 share      time      runs  parts  tid  pid  process  who
100.0%  14.00 ms  14.00 ms      1  101    -  -        app3
"""


def test_a_path_as_people_see_it(krait):
    shown = run(krait, corpus(KERNEL[1]), "--thread", "101", env={"PATH": "/usr/bin", "LANG": "C.UTF-8"})
    assert shown.stdout == TABLE and not shown.stderr
    plain = run(krait, KERNEL[1], "--thread", "101", env={"PATH": "/usr/bin", "LANG": "C"})
    assert plain.stdout == TABLE.replace("█", "#")


WGET = """\
wget 13662  435.3 ms, from 3.038 s on

wget 13662  ████▂                        ▇       ░             ░███▁    ░▁  ▁▃            ▂    ░░▄░█
network         ▆████████████████████████▁███████▄█████████████▇   ▇████▆▇███▅████████████▆████▃ ▄
            0         50 ms     100 ms    150 ms    200 ms    250 ms    300 ms    350 ms    400 ms
            █ runs  ░ ready to run

share      time      runs     woken  preempted       irq  waited for  parts    tid    pid  process  who
83.8%  364.8 ms         -         -          -         -    364.8 ms     10      -      -  -        network
16.2%  70.47 ms  46.31 ms  1.316 ms   20.31 ms  2.543 ms           -    240  13662  13662  wget     wget
"""


@pytest.mark.parametrize("seconds, axis", [
    (8000, ["0", "20m", "40m", "1h", "1h 20m", "1h 40m", "2h"]),
    (90, ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "1m", "1m 10s", "1m 20s"]),
    (900000, ["0", "1d", "2d", "3d", "4d", "5d", "6d", "7d", "8d", "9d", "10d"]),
])  # fmt: skip
def test_the_axis_of_a_long_path_has_the_times_of_a_clock(krait, tmp_path, seconds, axis):
    folder = made.write(tmp_path / "kernel", [switch(0, 0, 7), switch(seconds * 1000000, 7, 0)])
    shown = run(krait, folder, "--thread", "7", env={"PATH": "/usr/bin", "LANG": "C.UTF-8"})
    assert [word for word in re.split("  +", shown.stdout.splitlines()[3].strip())] == axis


def test_lanes_of_who_takes_part(krait):
    shown = run(krait, corpus(LTTNG), "--thread", "13662", env={"PATH": "/usr/bin", "LANG": "C.UTF-8"})
    assert shown.stdout == WGET and not shown.stderr


def test_many_who_take_part_share_a_lane(krait, path):
    shown = run(krait, corpus(LTTNG), "--thread", "11925").stdout
    lanes = shown.split("\n\n")[1].splitlines()
    members = path(LTTNG, "--thread", "11925")["path"]
    assert len(lanes) == 12 + 2 and lanes[-3].startswith(f"{len(members) - 11} others") and len(members) > 12


def test_csv_has_what_json_has(krait, path):
    found = path(corpus(LTTNG), "--thread", "13662")
    for options, key in ([], "path"), (["--segments"], "segments"):
        rows = list(csv.DictReader(io.StringIO(run(krait, LTTNG, "--thread", "13662", "--csv", *options).stdout)))
        assert len(rows) == len(found[key]) > 1
        for row, json_row in zip(rows, found[key]):
            share = json_row.pop("share", None)
            assert share is None or float(row.pop("share")) == share
            assert row == {k: "" if v is None else str(v) for k, v in json_row.items()}


def test_parts_of_a_range_add_up(path):
    whole = path(corpus(LTTNG), "--thread", "13662")
    parts = [path(LTTNG, "--thread", "13662", "--to", "3.2s"), path(LTTNG, "--thread", "13662", "--from", "3.2s")]
    assert sum(p["duration_ns"] for p in parts) == whole["duration_ns"]
    assert parts[1]["time_ns"] == parts[0]["time_ns"] + parts[0]["duration_ns"] and parts[1]["begin_ns"] == parts[0]["begin_ns"]


CALLS = """
process 5 app
code 1 python app main app.py 1
code 2 python app load app.py 10
code 3 python app load_all app.py 20
thread 5 MainThread
10us call 1
20us call 2
30us call 2
40us return
60us return
100us call 3
110us call 2
190us return
195us return
200us return
thread 6 helper
10us call 2
15us return
exit 0 0
"""


@pytest.fixture
def called(synth):
    """A recording with the kernel's part, whose first event is at 5 us; thread 5 waits for 6 from 50 to 150 us."""
    folder = synth(CALLS)
    made.write(
        folder / "kernel",
        [
            switch(5, 0, 5),
            switch(6, 0, 6, cpu=1),
            switch(50, 5, 0, 1),
            wake(150, 5, cpu=1),
            switch(160, 0, 5),
            switch(250, 5, 0, 1),
        ],
        offset=EPOCH,
    )
    return folder


def parts(found):
    return [(r["kind"], r["name"], (found["begin_ns"] + found["time_ns"] - EPOCH) // 1000) for r in found["segments"][:1]] + [
        (r["kind"], r["name"], r["duration_ns"] // 1000) for r in found["segments"]
    ]


def test_a_call_says_thread_and_time(path, called):
    found = path(called, "--call", "load")
    assert parts(found) == [
        ("running", "helper", 110),
        ("running", "helper", 40),
        ("woken", "MainThread", 10),
        ("running", "MainThread", 30),
    ]
    call = found["call"]
    assert (call["name"], call["module"], call["calls"], call["duration_ns"]) == ("load", "app", 3, 80_000)
    assert call["begin_ns"] == EPOCH + 110_000


def test_the_nth_slowest_call_is_taken(path, krait, called):
    """The inner call of a call is part of it; the helper's is the shortest."""
    assert parts(path(called, "--call", "load", "--nth", "2")) == [
        ("running", "MainThread", 20),
        ("running", "MainThread", 30),
        ("running", "helper", 10),
    ]
    assert parts(path(called, "--call", "load", "--nth", "3")) == [("running", "helper", 10), ("running", "helper", 5)]
    assert parts(path(called, "--call", "load", "--thread", "helper")) == [("running", "helper", 10), ("running", "helper", 5)]
    for words, why in [
        (["--nth", "4"], "there are only 3 calls of 'load'\n"),
        (["--nth", "4", "--from", "0"], "there are only 3 calls of 'load' in that time\n"),
        (["--from", "1s"], "there is no call of 'load' in that time\n"),
    ]:
        none = run(krait, called, "--call", "load", *words)
        assert none.returncode == 1 and none.stderr.endswith(why), none.stderr
    shown = run(krait, called, "--call", "load", "--nth", "2").stdout
    assert shown.startswith("app.load on MainThread 5\n40.00 us") and "call 2 of 3 by time taken" in shown


def test_calls_are_looked_for_in_the_range(path, called):
    """After the recording's beginning, which is the program's, 5 us before the kernel's first event."""
    found = path(called, "--call", "load", "--to", "60us")
    assert found["call"]["begin_ns"] == EPOCH + 20_000 and found["call"]["calls"] == 2


@pytest.mark.parametrize("to", ["8e9", "1e10", "1e300"])
def test_a_range_may_end_after_the_end_of_all_times(path, called, to):
    """In nanoseconds after 1970 these are more than 63 bits have."""
    assert path(called, "--to", to) == path(called)
    assert path(called, "--call", "load", "--until", to) == path(called, "--call", "load")


def test_without_a_thread_it_is_the_main_thread(path, called):
    assert path(called)["name"] == "MainThread" and path(called)["duration_ns"] == 245_000
    assert path(called, "--thread", "helper")["tid"] == 6
    assert path(called, "--thread", "t6")["tid"] == 6  # the kernel's name


@pytest.mark.parametrize(
    "words, why",
    [
        (["--csv", "--json"], "exclude each other"),
        (["--nth", "2"], "--nth needs --call"),
        (["--call", "f", "--nth", "1000000"], "is the most"),
        (["--from", "3s", "--to", "2s"], "the range is empty"),
        (["--limit", "many"], "not a whole number"),
    ],
)
def test_wrong_usage_is_told(krait, words, why):
    wrong = run(krait, LTTNG, *words)
    assert wrong.returncode == 2 and why in wrong.stderr


def test_what_is_not_there_is_told(krait, called):
    for words, why in [
        ([corpus(LTTNG)], "no thread chosen"),
        ([LTTNG, "--thread", "wget"], "match 2: 13662 wget of wget, 13667 wget"),
        ([LTTNG, "--thread", "nobody"], "no thread matches"),
        ([LTTNG, "--thread", "999999"], "know of no thread 999999"),
        ([LTTNG, "--thread", "13662", "--from", "1h"], "no kernel events in that time"),
        ([LTTNG, "--thread", "13662", "--to", "1s"], "know of no thread 13662"),
        ([LTTNG, "--call", "load"], "--call needs the program's calls"),
        ([called, "--call", "nothing"], "no function 'nothing'"),
        ([called, "--call", "load", "--thread", "nobody"], "no thread matches"),
        ([called / "nowhere"], "nowhere"),
    ]:
        refused = run(krait, *words)
        assert refused.returncode == 1 and why in refused.stderr, refused.stderr


def test_a_recording_without_the_kernel_is_told(krait, synth):
    refused = run(krait, synth(CALLS))
    assert refused.returncode == 1 and "no events of the kernel" in refused.stderr and "--kernel" in refused.stderr


def test_a_damaged_trace_is_read_as_far_as_it_is_whole(krait, tmp_path):
    folder = cut_in_half(corpus(LTTNG), tmp_path / "cut")
    cut = run(krait, folder, "--thread", "11925", "--json")
    assert cut.returncode == 0 and "damaged: " in cut.stderr and json.loads(cut.stdout)["damage"]
