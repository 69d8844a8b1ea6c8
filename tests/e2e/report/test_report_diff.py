# SPDX-License-Identifier: Apache-2.0
"""`krait report NEW... --diff OLD...`: what changed between recordings whose times are known, and what can be told of it."""

import csv
import io
import json
from functools import partial

import pytest
from kernel_made import switch

SCRIPT = """
process 5 python3
code 1 python app main /srv/app.py 1
code 2 python app work /srv/app.py {line}
code 3 c builtins len - 0
thread 5 MainThread
0 call 1
10ms call 2
{work} return
{work} ccall 3
{len} creturn
100ms return
exit 0 0
"""
T_95_4 = 2.7764451  # Student's t, both tails 5 %, of 4 degrees of freedom


@pytest.fixture
def run(run):
    return partial(run, "report")


@pytest.fixture
def recording(synth):
    """recording(name, us): work takes from 10 ms on, so long; len a millisecond after it."""
    return lambda name, us, line=9: synth(SCRIPT.format(work=f"{10000 + us}us", len=f"{11000 + us}us", line=line), name)


def sides(old, new):
    return [*new, *(w for folder in old for w in ("--diff", folder))]


def told(run, *args):
    found = json.loads(run(*args, "--json").stdout)
    return found, {row["name"]: row for row in found["functions"]}


def test_the_change_and_its_interval(run, recording):
    """By hand: both sides spread by 100 us around their mean, so the standard error is 100 * sqrt(2 / 3) us."""
    old = [recording(f"o{i}", us) for i, us in enumerate((900, 1000, 1100))]
    new = [recording(f"n{i}", us, line=12) for i, us in enumerate((1900, 2000, 2100))]
    found, rows = told(run, *sides(old, new))
    work = rows["work"]
    assert (work["before"], work["after"], work["change"]) == (1e6, 2e6, 1e6)
    assert work["each_before"] == [900000, 1000000, 1100000] and work["each_after"] == [1900000, 2000000, 2100000]
    margin = T_95_4 * 1e5 * (2 / 3) ** 0.5
    assert abs(work["low"] - (1e6 - margin)) < 100 and abs(work["high"] - (1e6 + margin)) < 100
    assert work["certain"] is True
    assert (rows["len"]["change"], rows["len"]["certain"]) == (0, False)
    assert rows["main"]["change"] == -1e6 and rows["main"]["certain"] is True
    assert found["measure"] == "wall_ns" and found["all"]["change"] == 0
    assert (found["recordings_before"], found["recordings_after"], found["confidence"]) == (3, 3, 0.95)


def test_a_change_within_the_spread_is_not_certain(run, recording):
    old = [recording(f"o{i}", us) for i, us in enumerate((900, 1000, 1100))]
    new = [recording(f"n{i}", us) for i, us in enumerate((950, 1050, 1150))]
    _, rows = told(run, *sides(old, new))
    assert rows["work"]["low"] < 0 < rows["work"]["high"] and rows["work"]["certain"] is False
    said = run(*sides(old, new))
    assert "of 3 functions, none changed beyond chance" in said.stderr
    assert "  no " in said.stdout and "  yes " not in said.stdout


def test_of_one_recording_nothing_is_certain_and_that_is_said(run, recording):
    args = sides([recording("o", 1000)], [recording("n", 2000)])
    found, rows = told(run, *args)
    assert rows["work"]["change"] == 1e6
    assert (rows["work"]["low"], rows["work"]["high"], rows["work"]["certain"]) == (None, None, None)
    said = run(*args)
    assert "1 recording before, 1 recording after" in said.stderr and "one recording cannot tell a change from chance" in said.stderr
    assert said.stdout.splitlines()[0].split() == ["before", "after", "change", "change%", "function"]


def test_the_table_in_words(run, recording):
    old = [recording(f"o{i}", us) for i, us in enumerate((900, 1000, 1100))]
    new = [recording(f"n{i}", us) for i, us in enumerate((1900, 2000, 2100))]
    said = run(*sides(old, new))
    assert said.stdout == (
        "  before     after     change       +/-  beyond chance  change%  function\n"
        "98.00 ms  97.00 ms  -1.000 ms  226.7 us            yes    -1.0%  app.main\n"
        "1.000 ms  2.000 ms  +1.000 ms  226.7 us            yes  +100.0%  app.work\n"
    )
    assert said.stderr.splitlines() == [
        "3 recordings before, 3 recordings after; comparing wall time, waits included: no recording has on-CPU time (krait record --kernel)",
        "in all: wall time of all threads 100.0 ms before and 100.0 ms after, the same",
        "of 3 functions, 2 changed beyond chance",
        "beyond chance: of many functions some change by chance alone, so krait judges each among all 3; a change larger than its +/- "
        "may be 'no', and one 'yes' in twenty is still chance",
    ]


def test_what_is_new_or_gone(run, synth):
    one = "process 5 p\ncode 1 python m {} /m.py 1\nthread 5 T\n0 call 1\n5ms return\nexit 0 0\n"
    said = run(*sides([synth(one.format("old"), "a")], [synth(one.format("new"), "b")])).stdout
    rows = {line.split()[-1]: line.split()[-2] for line in said.splitlines()[1:]}
    assert rows == {"m.old": "gone", "m.new": "new"}


def test_the_table_says_what_its_rows_are(run, synth):
    one = "process 5 p\ncode 1 python m f /m.py 1\nthread 5 T\n0 call 1\n{}ms return\nexit 0 0\n"
    args = sides([synth(one.format(5), "a")], [synth(one.format(7), "b")])
    for by in ("function", "module", "file"):
        assert run(*args, "--by", by).stdout.splitlines()[0].split()[-1] == by


def test_time_on_the_cpu_is_compared_where_all_recordings_tell_it(run, both, recording):
    def clocked(name, off):
        """main runs 100 us, `off` us of them not on a CPU."""
        calls = "process 5 python3\ncode 1 python app main app.py 1\nthread 5 MainThread\n100us call 1\n200us return\n"
        return both(calls, [switch(0, 0, 5), switch(150, 5, 0, state=1), switch(150 + off, 0, 5), switch(300, 5, 0)], name)

    old, new = [clocked("o", 10)], [clocked("n", 30)]
    found, rows = told(run, *sides(old, new))
    assert found["measure"] == "on_cpu_ns" and (rows["main"]["before"], rows["main"]["after"]) == (90000, 70000)
    assert "time on the CPU is compared" in run(*sides(old, new)).stderr
    found, rows = told(run, *sides([*old, recording("plain", 1000)], new))
    assert found["measure"] == "wall_ns"
    said = run(*sides([*old, recording("again", 1000)], new)).stderr
    assert "comparing wall time, waits included: only 2 of 3 recordings have on-CPU time" in said


def test_calls_and_total_time_are_compared_when_asked(run, recording):
    args = sides([recording("o", 1000)], [recording("n", 2000)])
    found, rows = told(run, *args, "--sort", "calls")
    assert found["measure"] == "calls" and rows["work"]["change"] == 0
    found, rows = told(run, *args, "--sort", "total")
    assert rows["main"]["change"] == 0 and rows["work"]["change"] == 1e6
    assert "in all" not in run(*args, "--sort", "total").stderr and "all" not in found


def test_equal_calls_are_the_same_in_any_number_of_recordings(run, recording):
    """Ten times a tenth of 1 is not 1: of a mean that is rounded so, every function seems to change."""
    old, new = [recording(f"o{i}", 1000) for i in range(2)], [recording(f"n{i}", 1000) for i in range(10)]
    found, rows = told(run, *sides(old, new), "--sort", "calls")
    assert {(row["change"], row["certain"]) for row in [*rows.values(), found["all"]]} == {(0, False)}
    said = run(*sides(old, new), "--sort", "calls")
    assert not said.stdout and "of 3 functions, none changed" in said.stderr


def test_csv_has_what_json_has(run, recording):
    args = sides([recording("o0", 900), recording("o1", 1000)], [recording("n0", 1900), recording("n1", 2000)])
    _, rows = told(run, *args)
    read = {row["name"]: row for row in csv.DictReader(io.StringIO(run(*args, "--csv").stdout))}
    assert {n: [float(r[k]) for k in ("before", "after", "change", "low", "high")] for n, r in read.items()} == {
        n: [r[k] for k in ("before", "after", "change", "low", "high")] for n, r in rows.items()
    }


def test_modules_filters_and_limits(run, recording):
    args = sides([recording("o", 1000)], [recording("n", 2000)])
    assert set(told(run, *args, "--by", "module")[1]) == {"app", "builtins"}
    twice = sides([recording(f"o{i}", 1000) for i in range(2)], [recording(f"n{i}", 1000) for i in range(2)])
    assert "of 2 modules, none changed beyond chance" in run(*twice, "--by", "module").stderr
    assert set(told(run, *args, "--filter", "work")[1]) == {"work"}
    assert "in all that match: wall time of all threads 1.000 ms before" in run(*args, "--filter", "work").stderr
    assert "1 of 2 rows; --limit 0 shows all" in run(*args, "--limit", "1").stderr


def test_a_filter_that_matches_nothing_says_that_alone(run, recording):
    said = run(*sides([recording("o", 1000)], [recording("n", 2000)]), "--filter", "nowhere")
    assert not said.stdout
    assert said.stderr.splitlines() == ["no function matches the filter", "a word means whole parts of names, between dots: '*nowhere*' finds it in any"]


def test_units_stand_under_units(run, synth):
    one = "process 5 p\ncode 1 python m f /m.py 1\ncode 2 python m g /m.py 9\nthread 5 T\n0 call 1\n{}ms call 2\n{}ms return\n10s return\nexit 0 0\n"
    said = run(*sides([synth(one.format(5, 105), "a")], [synth(one.format(5, 1505), "b")])).stdout
    assert said == (
        "  before    after    change   change%  function\n"
        "9.900 s   8.500 s  -1.400 s    -14.1%  m.f\n"
        "100.0 ms  1.500 s  +1.400 s  +1400.0%  m.g\n"
    )


@pytest.mark.parametrize(
    "options, why",
    [
        (["--tree"], "--diff is for tables of functions"),
        (["--sort", "p99"], "--diff compares --sort self, total, calls or raised, not p99"),
        (["--by", "thread"], "--diff goes with --by function, module or file"),
    ],
)
def test_wrong_usage(run, recording, options, why):
    assert why in run(*sides([recording("o", 1000)], [recording("n", 2000)]), *options, code=2).stderr


def test_a_folder_that_is_not_there_is_an_error(run, recording):
    assert "nowhere" in run(recording("n", 1), "--diff", "nowhere", code=1).stderr
