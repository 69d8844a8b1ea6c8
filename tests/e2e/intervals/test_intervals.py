# SPDX-License-Identifier: Apache-2.0
"""krait intervals: the time between messages, against the same computed in Python."""

import csv
import io
import itertools
import random
import re
import statistics
import subprocess

import pytest

from conftest import verb_json
from kernel_made import EPOCH, event, write

PROGRAM = """
import logging, threading, time
log = logging.getLogger("app")
log.setLevel("INFO")
def work(n):
    for i in range(n):
        log.info("Start %s %d", threading.current_thread().name, i, extra={"order": i})
        log.info("Stop %s %d", threading.current_thread().name, i, extra={"order": i})
threads = [threading.Thread(target=work, args=(20,), name=name) for name in ("left", "right")]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def marks(*of):
    """A script for synth: (thread, us, text) or with fields."""
    lines = ["process 4711 python3", "exit 0 0"]
    for thread in sorted({m[0] for m in of}):
        lines.append(f"thread {4711 + thread} T{thread}")
        for _, us, text, *fields in (m for m in of if m[0] == thread):
            lines.append(" ".join([f"{us}us mark {text.replace(' ', '%20')}", *(f.replace(" ", "%20") for f in fields)]))
    return "\n".join(lines) + "\n"


@pytest.fixture
def rows(synth, krait):
    """rows(marks, "--start", ...): the rows, and the durations of all intervals in us, by their begin."""

    names = itertools.count()

    def of(made, *options):
        folder = synth(marks(*made), f"synth{next(names)}")
        found = verb_json(krait, "intervals", folder, *options)
        listed = verb_json(krait, "intervals", folder, *(o for o in options if o not in ("--by", "key")), "--list")["list"]
        return found["rows"], [row["duration_ns"] // 1000 for row in listed]

    return of


ONE = ("--start", "^begin", "--stop", "^end")


def test_a_stop_ends_the_oldest_start_the_newest_or_the_only_one(rows):
    crossing = [(0, 0, "begin a"), (0, 10, "begin b"), (0, 30, "end"), (0, 100, "end")]
    assert rows(crossing, *ONE)[1] == [30, 90]
    assert rows(crossing, *ONE, "--nested")[1] == [100, 20]
    (row,), durations = rows(crossing, *ONE, "--latest")
    assert durations == [20] and (row["no_stop"], row["no_start"]) == (1, 1)
    assert (row["starts"], row["stops"]) == (2, 2)


def test_what_has_no_partner_is_counted(rows):
    (row,), durations = rows([(0, 0, "end"), (0, 10, "begin"), (0, 15, "end"), (0, 20, "begin"), (0, 30, "begin")], *ONE)
    assert durations == [5] and (row["no_start"], row["no_stop"], row["intervals"]) == (1, 2, 1)


def test_threads_pair_by_themselves_unless_there_is_a_key(rows):
    crossing = [(0, 0, "begin 1"), (1, 5, "begin 2"), (0, 20, "end 2"), (1, 50, "end 1")]
    assert rows(crossing, *ONE)[1] == [20, 45]
    keyed = ("--start", r"begin (?P<key>\d)", "--stop", r"end (?P<key>\d)")
    assert rows(crossing, *keyed)[1] == [50, 15]
    assert rows(crossing, "--start", r"begin (\d)", "--stop", r"end (\d)", "--key", "1")[1] == [50, 15]
    found, _ = rows(crossing, *keyed, "--by", "key")
    assert [(row["key"], row["mean_ns"]) for row in found] == [("1", 50_000), ("2", 15_000)]


def test_a_key_may_be_a_field_or_what_is_in_its_json(rows):
    made = [(0, 0, "begin", '{"order":{"id":7}}'), (1, 5, "begin", '{"order":{"id":8}}'), (1, 9, "end", '{"order":{"id":7}}'), (0, 11, "end", "{}")]
    (row,), durations = rows(made, *ONE, "--key", "fields.order.id")
    assert durations == [9] and (row["no_stop"], row["no_key"]) == (1, 1)


def test_one_pattern_for_both_takes_the_time_between_messages(rows):
    (row,), durations = rows([(0, at, "tick") for at in (0, 10, 30, 60)], "--start", "tick", "--stop", "tick")
    assert durations == [10, 20, 30] and (row["no_start"], row["no_stop"]) == (0, 1)


def test_sums_are_exact(rows):
    choose = random.Random(7)
    at, made, expected = 0, [], []
    for _ in range(501):
        took = choose.choice((3, 3, 10, choose.randrange(1, 5000)))
        made += [(0, at, "begin"), (0, at + took, "end")]
        expected.append(took * 1000)
        at += took + 1
    (row,), durations = rows(made, *ONE)
    assert [d * 1000 for d in durations] == expected
    ordered = sorted(expected)
    assert (row["intervals"], row["total_ns"], row["min_ns"], row["max_ns"]) == (501, sum(expected), ordered[0], ordered[-1])
    assert row["median_ns"] == statistics.median(expected)
    assert (row["p90_ns"], row["p99_ns"]) == (ordered[450], ordered[495])  # the nearest rank: ceil(share * n)
    assert row["mean_ns"] == pytest.approx(statistics.mean(expected), abs=1)
    assert row["deviation_ns"] == pytest.approx(statistics.stdev(expected), abs=1)
    (even,), _ = rows([(0, 0, "begin"), (0, 4, "end"), (0, 5, "begin"), (0, 15, "end")], *ONE)
    assert even["median_ns"] == 7_000


def test_calls_of_a_function_are_intervals(synth, krait):
    folder = synth(
        "process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\ncode 2 python app leaf app.py 9\nthread 4711 MainThread\n"
        "0 call 1\n10us call 2\n15us call 2\n20us return\n40us return\n50us call 2\n"
    )
    leaf, main = verb_json(krait, "intervals", folder, "--call", "leaf", "--call", "app.main", "--name", "small", "--name", "whole")["rows"]
    assert (leaf["name"], leaf["intervals"], leaf["total_ns"], leaf["no_stop"]) == ("small", 2, 35_000, 1)
    assert (main["name"], main["intervals"], main["no_stop"]) == ("whole", 0, 1)


def test_log_records_of_threads_pair_by_thread_and_by_extra(record, krait, any_python):
    run = record.text(any_python, PROGRAM, options=["--log", "app"])
    by_thread = ("--start", "^Start", "--stop", "^Stop")
    (row,) = verb_json(krait, "intervals", run.path, *by_thread)["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (40, 0, 0)
    listed = verb_json(krait, "intervals", run.path, *by_thread, "--list")["list"]
    assert sorted({i["thread"] for i in listed}) == ["left", "right"] and [i["begin_ns"] for i in listed] == sorted(i["begin_ns"] for i in listed)
    orders = verb_json(krait, "intervals", run.path, *by_thread, "--key", "extra.order", "--by", "key")["rows"]
    assert sorted(int(row["key"]) for row in orders) == list(range(20)) and all(row["intervals"] == 2 for row in orders)
    only = verb_json(krait, "intervals", run.path, *by_thread, "--thread", "left")["rows"][0]
    assert only["intervals"] == 20


def test_events_of_another_tracer_pair_within_their_threads(tmp_path, krait):
    """LTTng's streams are of CPUs: what its thread was is a field of the event's context."""

    def said(us, cpu, thread, text):
        return event(us, "lttng_python:event", cpu=cpu, msg=text, **{"vtid of context": thread})

    folder = write(
        tmp_path / "ust",
        [said(0, 0, 7, "begin"), said(5, 1, 8, "begin"), said(20, 0, 8, "end"), said(90, 1, 7, "end")],
        domain="ust",
        offset=EPOCH,
    )
    listed = verb_json(krait, "intervals", folder, *ONE, "--list")["list"]
    assert [row["duration_ns"] for row in listed] == [90_000, 15_000]


def test_a_range_cuts_what_is_looked_at(synth, krait):
    folder = synth(marks((0, 0, "begin"), (0, 10, "end"), (0, 20, "begin"), (0, 30, "end")))
    (row,) = verb_json(krait, "intervals", folder, *ONE, "--from", "5us", "--until", "25us")["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (0, 1, 1)


def test_text_and_csv_have_the_rows(synth, krait):
    folder = synth(marks((0, 0, "begin"), (0, 10, "end"), (0, 20, "begin")))
    text = subprocess.run([krait, "intervals", folder, *ONE, "--name", "work"], capture_output=True, text=True, check=True)
    head, row = text.stdout.splitlines()
    assert re.split(r" {2,}", head.strip()) == ["intervals", "total", "min", "mean", "median", "p90", "p99", "max", "std dev", "no stop", "name"]
    assert row.split() == ["1", *["10.00", "us"] * 7, "-", "1", "work"] and text.stderr == ""
    out = subprocess.run([krait, "intervals", folder, *ONE, "--csv"], capture_output=True, text=True, check=True).stdout
    (line,) = csv.DictReader(io.StringIO(out))
    assert (line["intervals"], line["total_ns"], line["no_stop"], line["name"]) == ("1", "10000", "1", "^begin .. ^end")


def test_a_pattern_that_explodes_is_given_up_and_told(synth, krait):
    folder = synth(marks((0, 0, "a" * 5000), (0, 5, "begin"), (0, 9, "end")))
    done = subprocess.run([krait, "intervals", folder, "--start", "(a|aa)+$|(a+)+b|begin", "--stop", "end"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "4.000 us" in done.stdout
    assert "warning: 1 search" in done.stderr and "given up" in done.stderr


def test_a_message_of_ten_megabytes_is_searched_in_its_first_part(tmp_path, krait):
    long = "x" * 10_000_000
    events = [event(0, "app:say", msg="begin " + long), event(30, "app:say", msg=long + " end"), event(50, "app:say", msg="end")]
    folder = write(tmp_path / "app", events, domain="ust", offset=EPOCH)
    done = subprocess.run([krait, "intervals", folder, "--start", "begin", "--stop", "(x*)*y|end", "--json"], capture_output=True, text=True, timeout=60)
    assert '"total_ns":50000' in done.stdout, done.stderr


@pytest.mark.parametrize(
    "options, why",
    [
        ([], "no interval given"),
        (["--start", "a"], "each --start needs a --stop"),
        (["--start", "(a", "--stop", "b"], "--start: '(a' is no regular expression: missing closing parenthesis, at byte 3"),
        (["--start", "a", "--stop", "b", "--key", "2"], "a group 2"),
        (["--start", "a", "--stop", "b", "--nested", "--latest"], "exclude each other"),
        (["--start", "a", "--stop", "b", "--name", "x", "--name", "y"], "more names"),
        (["--start", "a", "--stop", "b", "--by", "thread"], "--by: 'thread' is not"),
    ],
)
def test_wrong_usage_is_explained(synth, krait, options, why):
    done = subprocess.run([krait, "intervals", synth(marks((0, 0, "a"))), *options], capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr


def test_what_matches_nothing_says_where_to_look(synth, krait):
    folder = synth(marks((0, 0, "begin"), (0, 1, "end")))
    done = subprocess.run([krait, "intervals", folder, "--start", "Begin", "--stop", "end"], capture_output=True, text=True, check=True)
    assert "none of 2 messages matches --start 'Begin'" in done.stderr
    absent = subprocess.run([krait, "intervals", folder, "--call", "nobody"], capture_output=True, text=True)
    assert absent.returncode == 1 and "nobody" in absent.stderr
    sort = subprocess.run([krait, "intervals", folder, *ONE, "--sort", "nothing"], capture_output=True, text=True)
    assert sort.returncode == 1 and "p99_ns" in sort.stderr


def test_a_damaged_recording_gives_what_is_whole(synth, krait):
    folder = synth(marks((0, 0, "begin"), (0, 10, "end")))
    (stream,) = folder.glob("*/*4711*") if not list(folder.glob("stream*")) else folder.glob("stream_4711")
    stream.write_bytes(stream.read_bytes() + b"\1" * 40)
    done = subprocess.run([krait, "intervals", folder, *ONE], capture_output=True, text=True)
    assert "10.00 us" in done.stdout and "damaged:" in done.stderr
