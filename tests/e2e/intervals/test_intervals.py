# SPDX-License-Identifier: Apache-2.0
"""krait intervals: the time between messages, against the same computed in Python."""

import csv
import io
import itertools
import json
import os
import random
import re
import statistics
import subprocess
from xml.etree import ElementTree

import pytest

from conftest import BUILD, verb_json
from intervals_made import marks
from kernel_made import EPOCH, event, write
from terminal import on_terminal

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
    for words, names in (["main", "leaf"], ["app.main", "app.leaf"]), (["app.main", "*a*"], ["app.main", "*a*"]), (["main", "leaf", "--name", "whole"], ["whole", "app.leaf"]):
        found = verb_json(krait, "intervals", folder, "--call", words[0], "--call", *words[1:])["rows"]
        assert {row["name"] for row in found} == set(names)  # as in krait report
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
        (["--start", "a"], "--start 'a' lacks the end of the interval: add --stop REGEX, --stop-call FUNCTION or --stop-return FUNCTION\n"),
        (["--stop", "b"], "--stop 'b' lacks the begin of the interval: add --start REGEX, --start-call FUNCTION or --start-return FUNCTION\n"),
        (["--start", "(a", "--stop", "b"], "--start: '(a' is no regular expression: missing closing parenthesis, at byte 3"),
        (["--start", "a", "--stop", "b", "--key", "2"], "a group 2"),
        (["--start", "a (?P<f>.*)", "--stop", "b (?P<f>.*)", "--by", "key"], "--by key: there is no key; give --key FIELD, or a group (?P<key>...) in both --start and --stop\n"),
        (["--start", "a (?P<key>.*)", "--stop", "b", "--span", "a", "--by", "key"], "--by key: there is no key"),
        (["--call", "a", "--compare", "x", "x"], "--compare: 'x' is compared with itself; name two intervals\n"),
        (["--call", "f", "--by", "key"], "--by key: there is no key; give --key FIELD: an argument that was recorded, a field of the spans, or $thread; each --call and --span has a row anyway\n"),
        (["--start", "a", "--stop", "b", "--nested", "--latest"], "exclude each other"),
        (["--start", "a", "--stop", "b", "--name", "x", "--name", "y"], "more names"),
        (["--start", "a", "--stop", "b", "--by", ", "], "--by: ', ' names no field\n"),
        (["--call", "a", "--by", "a,b"], "--by 'a,b': --call and --span take one field\n"),
        (["--state", "(a)", "--by", "a"], "--by 'a' is for --start and --stop, --call and --span; here: --by key\n"),
        (["--start", "a", "--stop", "b", "--by", "key", "--list"], "--by key does not go with --list, which has a column for the key\n"),
        (["--start", "a", "--stop", "b", "--plot", "x.jpg"], "--plot: 'x.jpg' has to end in .svg or .png\n"),
        (["--state", "(a)", "--graph", "x.dott"], "--graph: 'x.dott' has to end in .svg or .png, or in .dot"),
    ],
)
def test_wrong_usage_is_explained(synth, krait, options, why):
    done = subprocess.run([krait, "intervals", synth(marks((0, 0, "a"))), *options], capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr


def test_patterns_that_may_be_meant_are_up_to_three(synth, krait):
    """Those that are as near, of which a message matches the whole pattern; not only the first message."""
    said = ["order is new", "order 1 is taken", "orders 2 is taken", "ordel 3 is taken", "orded 4 is taken", "ordek 5 is taken", "x"]
    folder = synth(marks(*((0, us, text) for us, text in enumerate(said))))
    done = {}
    for pattern in ("ordr 1", "orders is", r"ordr \d is", r"ordem \d is", r"^ordem \d is (?P<key>.)"):
        run = subprocess.run([krait, "intervals", folder, "--start", pattern, "--stop", "x"], capture_output=True, text=True, check=True)
        done[pattern] = run.stderr.splitlines()[-1].partition("; ")[2]
    assert done == {
        "ordr 1": "did you mean 'order 1'?",  # a word more than the letters up to there
        "orders is": "did you mean 'order is'?",
        r"ordr \d is": r"did you mean 'order \d is'?",
        r"ordem \d is": r"did you mean 'order \d is', 'ordel \d is' or 'orded \d is'?",
        r"^ordem \d is (?P<key>.)": r"did you mean '^order \d is (?P<key>.)', '^ordel \d is (?P<key>.)' or '^orded \d is (?P<key>.)'?",
    }


def test_what_matches_nothing_says_where_to_look(synth, krait):
    code = "code 1 python app work app.py 1\n"
    folder = synth(marks((0, 0, "begin"), (0, 1, "end")).replace("thread", code + "thread", 1) + "20us call 1\n30us return\n50us mark late\n")
    done = subprocess.run([krait, "intervals", folder, "--start", "Begin", "--stop", "end"], capture_output=True, text=True, check=True)
    assert "none of 3 messages matches --start 'Begin'" in done.stderr
    by_key = ["--start", "begi(?P<key>n)", "--by", "key"]
    for pattern, meant in (("Begin", "begin"), ("^bgin", "^begin"), ("lte", "late"), (r"beign|x", None), (r"begn(?P<key>.*)", r"begin(?P<key>.*)"), ("nothing", None)):
        said = subprocess.run([krait, "intervals", folder, "--start", pattern, "--stop", "x"], capture_output=True, text=True, check=True).stderr.splitlines()[-1]
        assert said == f"none of 3 messages matches --start '{pattern}'; " + (f"did you mean '{meant}'?" if meant else "krait report --by mark counts what there is, krait cat shows it")
    for options, why in [
        (["--call", "nobody", "--csv"], "--call: no function 'nobody' in the trace"),
        (["--call", "wrk"], "--call: no function 'wrk' in the trace; did you mean 'work'?\n"),
        (["--call", "ap.work"], "--call: no function 'ap.work' in the trace; did you mean 'app.work'?\n"),
        (["--call", "work", "--until", "10us"], "no call of 'work' in that time\n"),
        (["--call", "work", "--from", "40us", "--thread", "T0", "--json"], "no call of 'work' in that time on those threads\n"),
        (["--start", "Begin", "--stop", "end", "--csv"], "none of 3 messages matches --start 'Begin'"),
        (["--start", "begin", "--stop", "End", "--json"], "none of 3 messages matches --stop 'End'"),
        (["--span", "nobody"], "no span is called 'nobody'"),
        (["--state", "nob(ody)"], "none of 3 messages matches --state 'nob(ody)'"),
        (["--signal", "nob(ody)"], "none of 3 messages matches --signal 'nob(ody)'"),
        ([*by_key, "--stop", "(?P<key>E)nd"], "none of 3 messages matches --stop '(?P<key>E)nd'"),
    ]:
        absent = subprocess.run([krait, "intervals", folder, *options], capture_output=True, text=True)
        assert absent.returncode == 0 and absent.stderr.startswith(why) and absent.stderr.count("\n") == 1, absent.stderr
    sort = subprocess.run([krait, "intervals", folder, *ONE, "--sort", "nothing"], capture_output=True, text=True)
    assert sort.returncode == 1 and "p99" in sort.stderr


@pytest.mark.parametrize(
    "options, told",
    [
        (["--start", "begin (?P<key>.)", "--stop", "end"], ["--stop 'end': it has no group 'key', as --start has; krait ignores that key, and pairs events as without a key"]),
        (["--start", "begin", "--stop", "end (?P<key>.)", "--json"], ["--start 'begin': it has no group 'key', as --stop has; krait ignores that key, and pairs events as without a key"]),
        (["--start", "begin (?P<key>.)", "--stop", "end (?P<key>.)", "--by", "key"], []),
        (["--start", "begin (?P<key>.)", "--stop", "end", "--state", "(a) (?P<key>.)", "--by", "key"], ["--stop 'end': it has no group 'key', as --start has; krait ignores that key, and pairs events as without a key", "none of 2 messages matches --state '(a) (?P<key>.)'; krait report --by mark counts what there is, krait cat shows it"]),
        (["--start", "begin (?P<order>.)", "--stop", "end", "--key", "order"], ["--stop 'end': there is no field 'order' in its events"]),
        (["--start", "begin (?P<order>.)", "--stop", "end", "--key", "txet"], [f"{of}: there is no field 'txet' in its events; did you mean 'text'?" for of in ("--start 'begin (?P<order>.)'", "--stop 'end'")]),
        (["--start", "begin", "--stop", "end", "--key", "fields.order"], []),
        (["--start", "begin", "--stop", "end", "--key", "$thread"], []),
        (["--signal", "end", "--value", "txet"], ["--signal 'end': there is no field 'txet' in its events; did you mean 'text'?"]),
        (["--call", "work", "--key", "n", "--by", "key"], ["--call 'work': no call has recorded arguments, and so a key; krait record --args records them"]),
    ],
)
def test_a_key_that_nothing_has_is_told(synth, krait, options, told):
    code = "code 1 python app work app.py 1\n"
    folder = synth(marks((0, 0, "begin 1"), (0, 10, "end 1")).replace("thread", code + "thread", 1) + "20us call 1\n30us return\n")
    done = subprocess.run([krait, "intervals", folder, *options], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.splitlines() == told, done.stderr


def test_a_damaged_recording_gives_what_is_whole(synth, krait):
    folder = synth(marks((0, 0, "begin"), (0, 10, "end")))
    (stream,) = folder.glob("*/*4711*") if not list(folder.glob("stream*")) else folder.glob("stream_4711")
    stream.write_bytes(stream.read_bytes() + b"\1" * 40)
    done = subprocess.run([krait, "intervals", folder, *ONE], capture_output=True, text=True)
    assert "10.00 us" in done.stdout and "damaged:" in done.stderr


# -- side by side --


def durations(*of, name="a"):
    """Marks of intervals that last so long, in us, one after the other."""
    at, made = 0, []
    for us in of:
        made += [(0, at, f"begin {name}"), (0, at + us, f"end {name}")]
        at += us + 1
    return made


KEYED = ("--start", r"begin (?P<key>\w+)", "--stop", r"end (?P<key>\w+)", "--by", "key")


def bootstrap(a, b, draws=4000):
    """The middle 95 % of the ratio of means of b and a, drawn again; without what krait adds for small sets."""
    choose = random.Random(1)
    ratios = sorted(statistics.mean(choose.choices(b, k=len(b))) / statistics.mean(choose.choices(a, k=len(a))) for _ in range(draws))
    return ratios[draws // 40], ratios[-draws // 40]


def test_two_intervals_are_compared_with_their_confidence(synth, krait):
    choose = random.Random(3)
    a, b = [choose.randrange(90, 110) for _ in range(40)], [choose.randrange(1500, 2500) for _ in range(40)]
    folder = synth(marks(*durations(*a, name="a"), *((1, *rest) for _, *rest in durations(*b, name="b"))))
    (found,) = verb_json(krait, "intervals", folder, *KEYED, "--compare", "a", "b")["compare"]
    assert (found["first"], found["second"]) == ("a", "b")
    assert found["ratio"] == pytest.approx(statistics.mean(b) / statistics.mean(a))
    assert found["difference_ns"] == pytest.approx((statistics.mean(b) - statistics.mean(a)) * 1000)
    low, high = bootstrap(a, b)
    assert found["ratio_low"] == pytest.approx(low, rel=0.02) and found["ratio_high"] == pytest.approx(high, rel=0.02)
    text = subprocess.run([krait, "intervals", folder, *KEYED, "--compare", "a", "b"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^b takes (19|20|21)\.?\d* times as long as a: with 95 % confidence \S+ to \S+ times\.$", text, re.M)
    assert "may be chance" not in text and "another run" in text


@pytest.mark.parametrize(
    "first, told, high",
    [
        ((0, 0, 0, 5), "b takes 5.2 times as long as a: with 95 % confidence at least 1.15 times.\nOn average it takes 5.250 us longer: with", False),
        ((0, 0, 0, 0), "All intervals of a take 0 ns: there is no ratio.\nOn average b takes 6.500 us longer.\nThis holds", False),
        ((1, 2, 1, 2), "b takes 4.333 times as long as a: with 95 % confidence ", True),
    ],
)
def test_durations_of_zero_have_no_ratio(synth, krait, first, told, high):
    folder = synth(marks(*durations(*first, name="a"), *((1, *rest) for _, *rest in durations(5, 6, 7, 8, name="b"))))
    (found,) = verb_json(krait, "intervals", folder, *KEYED, "--compare", "a", "b")["compare"]
    assert (found["ratio"] is None, found["ratio_high"] is not None) == (not any(first), high)
    text = subprocess.run([krait, "intervals", folder, *KEYED, "--compare", "a", "b"], capture_output=True, text=True, check=True).stdout
    assert told in text and "fewer than" not in text
    sheet = subprocess.run([krait, "intervals", folder, *KEYED, "--compare", "a", "b", "--csv"], capture_output=True, text=True, check=True).stdout
    assert "inf" not in sheet


def test_keys_are_compared_only_by_key_which_is_told(synth, krait):
    folder = synth(marks(*durations(10, 12, name="slow"), *((1, *rest) for _, *rest in durations(30, 31, name="fast"))))
    for name, why in (
        ("fast", "--compare: 'fast' is a key, and no interval has that name; add --by key for a row for each key\n"),
        ("fasst", "--compare: no interval has the name 'fasst'; did you mean the key 'fast', with --by key?\n"),
        ("other", "--compare: no interval has the name 'other'; without --compare, krait intervals lists all\n"),
    ):
        done = subprocess.run([krait, "intervals", folder, *KEYED[:4], "--compare", name, "slow"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, f"krait intervals: {why}")
    subprocess.run([krait, "intervals", folder, *KEYED, "--compare", "fast", "slow"], capture_output=True, check=True)


def test_calls_are_compared_by_their_names_with_or_without_module(synth, krait):
    folder = synth("process 7 python3\ncode 1 python app slow app.py 1\ncode 2 python app fast app.py 5\nthread 7\n0us call 1\n1us call 2\n2us return\n9us return\n")
    for names in (["slow", "app.fast"], ["app.slow", "app.fast"]):
        (pair,) = verb_json(krait, "intervals", folder, "--call", "slow", "--call", "app.fast", "--compare", *names)["compare"]
        assert (pair["first"], pair["second"], pair["ratio"]) == ("app.slow", "app.fast", pytest.approx(1 / 9))


def test_what_cannot_be_said_is_said(synth, krait):
    few = synth(marks(*durations(10, 12, name="a"), *((1, *rest) for _, *rest in durations(30, 31, name="b"))), "few")
    same = synth(marks(*durations(10, 30, 20, 15, 40, name="a"), *((1, *rest) for _, *rest in durations(11, 29, 22, 14, 41, name="b"))), "same")
    (found,) = verb_json(krait, "intervals", few, *KEYED, "--compare", "a", "b")["compare"]
    assert found["ratio_low"] is None and found["ratio"] == pytest.approx(30.5 / 11)
    for folder, said in (few, "fewer than 3 intervals"), (same, "may be chance"):
        text = subprocess.run([krait, "intervals", folder, *KEYED, "--compare", "a", "b"], capture_output=True, text=True, check=True).stdout
        assert said in text


def test_two_recordings_are_compared_row_by_row(synth, krait):
    old = synth(marks(*durations(10, 11, 12, 11)), "old")
    new = synth(marks(*durations(20, 22, 24, 22)), "new")
    found = verb_json(krait, "intervals", *ONE, "--name", "work", "--compare", old, new)
    assert [row["name"] for row in found["rows"]] == [f"{old}: work", f"{new}: work"]
    assert found["compare"][0]["ratio"] == pytest.approx(2)
    text = subprocess.run([krait, "intervals", *ONE, "--name", "work", "--compare", old, new], capture_output=True, text=True, check=True)
    assert f"work in {new} takes 2 times as long as work in {old}" in text.stdout
    printed = subprocess.run([krait, "intervals", *ONE, "--name", "work", "--csv", "--compare", old, new], capture_output=True, text=True, check=True).stdout
    first, second = csv.DictReader(io.StringIO(printed))
    assert (first["name"], first["compared_with"], first["ratio"]) == (f"{old}: work", "", "")
    assert (second["mean_ns"], second["compared_with"]) == ("22000", f"work in {old}")
    numbers = {key: value for key, value in found["compare"][0].items() if key not in ("first", "second")}
    assert {key: float(second[key]) for key in numbers} == {key: pytest.approx(value) for key, value in numbers.items()}
    same = subprocess.run([krait, "intervals", *ONE, "--compare", old, f"{old}/."], capture_output=True, text=True)
    assert same.returncode == 2 and f"--compare: '{old}' and '{old}/.' are the same recording\n" in same.stderr


def test_a_difference_from_nothing_is_not_known_and_the_recording_is_told(synth, krait):
    code = marks(*durations(10, 11)).replace("thread", "code 1 python app work app.py 1\nthread", 1) + "30us call 1\n40us return\n"
    old, new = synth(code, "old"), synth(marks(*durations(20, 22)), "new")
    told = f"{new}: --call: no function 'work' in the trace; `krait report --filter TEXT` looks for names\n"
    found = subprocess.run([krait, "intervals", "--call", "work", "--json", "--compare", old, new], capture_output=True, text=True, check=True)
    (pair,) = json.loads(found.stdout)["compare"]
    assert found.stderr == told and {value for key, value in pair.items() if key not in ("first", "second")} == {None}
    printed = subprocess.run([krait, "intervals", "--call", "work", "--csv", "--compare", old, new], capture_output=True, text=True, check=True)
    _, second = csv.DictReader(io.StringIO(printed.stdout))
    assert printed.stderr == told and (second["compared_with"], second["difference_ns"], second["ratio"]) == (f"app.work in {old}", "", "")
    none = subprocess.run([krait, "intervals", "--start", "nope", "--stop", "x", "--csv", "--compare", old, new], capture_output=True, text=True, check=True)
    assert [line.partition(": none of 4 messages matches --start 'nope'")[0] for line in none.stderr.splitlines()] == [str(old), str(new)]


@pytest.mark.parametrize(
    "options, status, why",
    [
        (["--compare", "a", "nobody"], 1, "no interval has the name or key 'nobody'; without --compare"),
        (["--name", "work", "--span", "nope", "--compare", "a", "wrok"], 1, "no span is called 'nope'\nkrait intervals: --compare: no interval has the name or key 'wrok'; did you mean 'work'?\n"),
        (["--span", "nope", "--compare", "a", "nopes"], 1, "no interval has the name or key 'nopes'; without --compare"),
        (["--compare", "a"], 2, "--compare needs A B"),
        (["--name", "work", "--compare", "work", "a"], 1, "--compare: 'work' and 'a' are the same intervals\n"),
        (["--list", "--compare", "a", "b"], 2, "exclude each other"),
        (["--plot", "-", "--csv"], 2, "--plot -"),
    ],
)
def test_what_cannot_be_compared_is_refused(synth, krait, options, status, why):
    folder = synth(marks(*durations(10, 11)))
    done = subprocess.run([krait, "intervals", folder, *(o for o in KEYED if o not in ("--by", "key") or "--list" not in options), *options], capture_output=True, text=True)
    assert done.returncode == status and why in done.stderr, done.stderr


def test_what_is_compared_without_a_trace_has_to_be_recordings(synth, krait):
    folder = synth(marks(*durations(10, 11)))
    done = subprocess.run([krait, "intervals", "--compare", "a", folder, *KEYED], capture_output=True, text=True)
    why = "--compare: without TRACE it takes two recordings, and 'a' is none; to compare intervals of one recording, name that, too\n"
    assert (done.returncode, done.stderr) == (1, f"krait intervals: {why}")


# -- plots --


def test_a_plot_shows_each_interval_and_their_number_by_length(synth, krait, tmp_path):
    folder = synth(marks(*durations(10, 20, 2000, name="<b>&"), *((1, *rest) for _, *rest in durations(5, name="b"))))
    options = ("--start", "begin (?P<key>.*)", "--stop", "end (?P<key>.*)", "--by", "key", "--plot", tmp_path / "p.svg")
    done = subprocess.run([krait, "intervals", folder, *options], capture_output=True, text=True, check=True)
    assert "wrote" in done.stderr and "2,000" not in done.stdout
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    titles = [e.text.replace("\u202f", " ") for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "2.00 ms at 32.0 µs" in titles and "5.00 µs at 0 ns" in titles
    assert sum(int(t.split(" from ")[0]) for t in titles if " from " in t) == 4
    texts = "".join(root.itertext())
    assert "<b>&" in texts and "script" not in {e.tag.rpartition("}")[2] for e in root.iter()}


def test_a_plot_of_many_intervals_keeps_the_extremes(synth, krait, tmp_path):
    script = "process 1 python3\nexit 0 0\nthread 1 M\nrepeat 20000\n0 mark begin\n10us mark end\n20us mark x\nend\n"
    script += f"{20000 * 20 + 50}us mark begin\n{20000 * 20 + 5050}us mark end\n"
    subprocess.run([krait, "intervals", synth(script), "--start", "begin", "--stop", "end", "--plot", tmp_path / "p.svg"], check=True, capture_output=True)
    svg = (tmp_path / "p.svg").read_text()
    assert len(svg) < 200_000 and svg.count('class="range"') > 200 and "20,001 intervals" in svg


@pytest.mark.parametrize("width", [60, 70])
def test_a_narrow_table_keeps_the_total(synth, krait, width):
    folder = synth(marks(*durations(10, 20, 30, 200)))
    text, _ = on_terminal([krait, "intervals", folder, *ONE, "--name", "work", "--sort", "max"], width, ("stdout", "stderr"), env={**os.environ, "NO_COLOR": "1"})
    head, left_out = text.splitlines()[0].split(), text.partition("columns left out: ")[2]
    assert {"total", "median", "max", "name"} <= set(head) and "min" in left_out and "std dev" in left_out


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_plot_in_the_terminal_fits(synth, krait, width):
    folder = synth(marks(*durations(10, 20, 30, 200)))
    command = [krait, "intervals", folder, *ONE, "--name", "work", "--plot", "-"]
    text, _ = on_terminal(command, width, ("stdout", "stderr"), env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TERM": "xterm"})
    assert max(map(len, text.splitlines())) <= width
    assert ("columns left out: " in text) == (width < 140)
    assert "4 intervals, median 25.00 us" in text and "200" in text
    assert sum(line.count("•") for line in text.splitlines()) == 6  # and the legend, and the head of the histogram
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if line.strip() == "• work: intervals by duration"]
    assert len(heads) == 1 and " us █" in lines[heads[0] + 1]
    assert "duration, logarithmic" in [line.strip() for line in lines] and "time after the start" in [line.strip() for line in lines]


def test_each_histogram_in_the_terminal_is_named(synth, krait):
    folder = synth(marks(*durations(10, 20, name="slow"), *((1, *rest) for _, *rest in durations(3, 4, name="fast")), (1, 90, "queue has 7")))
    text = subprocess.run([krait, "intervals", folder, *KEYED, "--name", "run", "--plot", "-"], capture_output=True, text=True, check=True).stdout
    assert [line.split(" ", 1)[1] for line in map(str.strip, text.splitlines()) if "by duration" in line] == ["run slow: intervals by duration", "run fast: intervals by duration"]
    text = subprocess.run([krait, "intervals", folder, "--signal", r"has (\d)", "--name", "length", "--plot", "-"], capture_output=True, text=True, check=True).stdout
    assert "length: values by size\n" in text and "  value\n" in text


def test_a_plot_in_the_terminal_has_a_sign_for_each_row(synth, krait):
    """The first rows of the table, as --sort and --limit choose them; the others are told."""
    folder = synth(marks(*(one for n in range(8) for one in ((1, 2000 * n, f"begin k{n}"), (1, 2000 * n + 10 * 2 ** n, f"end k{n}")))))

    def plotted(*options):
        done = subprocess.run([krait, "intervals", folder, *KEYED, "--name", "run", "--plot", "-", *options], capture_output=True, text=True, check=True)
        return re.findall(r"^ +. run (k\d)  1 interval", done.stdout, re.M), done

    rows, done = plotted("--sort", "max_ns")
    assert rows == ["k7", "k6", "k5", "k4", "k3", "k2"] and "duration, logarithmic\n" in done.stdout
    assert done.stderr == "the plot has the first 6 of 8 rows, one for each sign; --sort puts others first, --plot FILE.svg draws all\n"
    rows, done = plotted("--sort", "max_ns", "--limit", "2")
    assert rows == ["k7", "k6"] and done.stderr == "2 of 8 rows; --limit 0 shows all\n" and "logarithmic" not in done.stdout


@pytest.mark.parametrize("format", [(), ("--csv",)])
def test_a_plot_in_a_file_has_the_rows_of_the_table(synth, krait, tmp_path, format):
    """--limit and --sort choose them; below the picture is how many are missing."""
    folder = synth(marks(*(one for n in range(45) for one in ((1, 2000 * n, f"begin k{n:02}"), (1, 2000 * n + 10 + n, f"end k{n:02}")))))

    def plotted(*options):
        subprocess.run([krait, "intervals", folder, *KEYED, "--name", "run", "--plot", tmp_path / "p.svg", *format, *options], capture_output=True, check=True)
        texts = ["".join(e.itertext()) for e in ElementTree.parse(tmp_path / "p.svg").iter("{http://www.w3.org/2000/svg}text")]
        return [re.match(r"run (k\d\d) ", text)[1] for text in texts if text.startswith("run ")], [text for text in texts if "not drawn" in text]

    missing = "{} of 45 rows are not drawn; --limit 0 draws all, --sort puts others first"
    assert plotted("--sort", "max_ns", "--limit", "2") == (["k44", "k43"], [missing.format(43)])
    rows, note = plotted()
    assert len(rows) == 40 and note == [missing.format(5)]
    rows, note = plotted("--limit", "0")
    assert len(rows) == 45 and not note


def labels_of(svg):
    return [e.text for e in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text") if e.text and re.fullmatch(r"[\d.dhm s]+", e.text)]


def test_a_plot_of_hours_has_the_times_of_a_clock(synth, krait, tmp_path):
    script = "process 1 python3\nexit 0 0\nthread 1 M\n"
    script += "".join(f"{at}s mark begin\n{at + took}s mark end\n" for at, took in ((0, 20), (2000, 900), (5000, 3000), (9000, 6000)))
    folder = synth(script)
    subprocess.run([krait, "intervals", folder, *ONE, "--plot", tmp_path / "p.svg"], check=True, capture_output=True)
    found = labels_of(tmp_path / "p.svg")
    assert {"30m", "1h", "1h 30m", "4h"} <= set(found) and {"20 s", "50 s", "1m", "10m", "1h"} <= set(found)  # of the time; of the lengths
    command = [krait, "intervals", folder, *ONE, "--plot", "-"]
    text, _ = on_terminal(command, 100, env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TERM": "xterm"})
    (axis,) = (line.split("  ") for line in text.splitlines() if re.match(r" +0 .* 1h ", line))
    assert [word.strip() for word in axis if word.strip()] == ["0", "1h", "2h", "3h", "4h"]
    assert not re.search(r"\d{4,} s", text)


def test_no_time_of_a_plot_lies_behind_its_end(synth, krait, tmp_path):
    folder = synth(marks((0, 0, "x"), (0, 9000, "begin"), (0, 9100, "end"), (0, 9900, "begin"), (0, 9998, "end")))
    subprocess.run([krait, "intervals", folder, *ONE, "--plot", tmp_path / "p.svg"], check=True, capture_output=True)
    times = [label for label in labels_of(tmp_path / "p.svg") if label.endswith("ms")]
    assert times[:2] == ["9 ms", "9.1 ms"] and times[-1] == "9.9 ms"


def test_a_plot_of_nothing_fails_and_writes_nothing(synth, krait, tmp_path):
    done = subprocess.run([krait, "intervals", synth(marks((0, 0, "begin"))), *ONE, "--plot", tmp_path / "p.svg"], capture_output=True, text=True)
    assert done.returncode == 1 and "no interval to plot" in done.stderr and not (tmp_path / "p.svg").exists()


# -- states --

CONNECTIONS = [
    (0, 0, "connection 1 is opening"),
    (0, 5, "connection 2 is opening"),
    (1, 10, "connection 1 is ready"),
    (0, 12, "connection 1 is busy"),
    (0, 20, "connection 1 is ready"),
    (0, 22, "connection 2 is failed"),
    (1, 25, "connection 2 is opening"),
    (0, 30, "connection 2 is ready"),
    (0, 70, "connection 1 is closed"),
]
STATE = ("--state", r"connection (?P<key>\d+) is (?P<state>\w+)", "--name", "connection")


def test_messages_are_states_that_last_until_the_next(rows):
    found, _ = rows(CONNECTIONS, *STATE)
    assert [(r["key"], r["intervals"], r["total_ns"] // 1000, r["no_stop"]) for r in found] == [
        ("opening", 3, 10 + 17 + 5, 0),
        ("ready", 2, 2 + 50, 1),
        ("busy", 1, 8, 0),
        ("failed", 1, 3, 0),
        ("closed", 0, 0, 1),
    ]
    by_thread, durations = rows(CONNECTIONS, "--state", r"is (\w+)")  # without a key, of each thread
    assert {r["key"]: r["intervals"] for r in by_thread} == {"opening": 2, "busy": 1, "ready": 3, "failed": 1, "closed": 0}
    assert durations == [5, 7, 15, 8, 2, 8, 40]  # those of thread 1 among those of thread 0, by their begin


def test_states_follow_each_other(synth, krait, tmp_path):
    folder = synth(marks(*CONNECTIONS))
    found = verb_json(krait, "intervals", folder, *STATE, "--transitions")["transitions"]
    assert {(t["from"], t["to"]): (t["count"], t["share"]) for t in found} == {
        ("opening", "ready"): (2, pytest.approx(2 / 3, abs=1e-5)),
        ("opening", "failed"): (1, pytest.approx(1 / 3, abs=1e-5)),
        ("ready", "busy"): (1, 0.5),
        ("ready", "closed"): (1, 0.5),
        ("busy", "ready"): (1, 1),
        ("failed", "opening"): (1, 1),
    }
    for suffix in "svg", "dot":
        subprocess.run([krait, "intervals", folder, *STATE, "--graph", tmp_path / f"g.{suffix}"], check=True, capture_output=True)
    root = ElementTree.parse(tmp_path / "g.svg").getroot()
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"opening", "ready", "busy", "failed", "closed"} <= set(texts)
    assert len([e for e in root.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "arrow"]) == 6
    dot = (tmp_path / "g.dot").read_text()
    assert dot.count("->") == 6 and dot.startswith("digraph states {")
    words = [t.replace("\u202f", " ") for t in (*texts, dot) if t]  # connection 2 is ready until the end
    assert "92.0 µs, 68.1 %, open" in words and "ready\\n92.0 µs, open" in words[-1] and "failed\\n3.00 µs\"" in words[-1]
    piped = subprocess.run([krait, "intervals", folder, *STATE, "--graph", "-"], capture_output=True, text=True, check=True)
    assert piped.stdout == (tmp_path / "g.svg").read_text() and piped.stderr == ""


@pytest.mark.parametrize(
    "options, status, why",
    [
        (["--state", "is ready"], 2, "has no group in round brackets"),
        (["--state", "is (ready"], 2, "--state: 'is (ready' is no regular expression"),
        (["--start", "a", "--stop", "b", "--graph", "x.svg"], 2, "--graph needs --state"),
        (["--state", "is (nothing)", "--graph", "x.svg"], 1, "nothing to draw"),
        (["--state", "is (ready)", "--graph", "-", "--json"], 2, "--graph - writes the picture in place of the table; leave out --csv and --json"),
    ],
)
def test_states_that_cannot_be_are_explained(synth, krait, tmp_path, options, status, why):
    done = subprocess.run([krait, "intervals", synth(marks(*CONNECTIONS)), *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status and why in done.stderr and not (tmp_path / "x.svg").exists()


def test_the_list_tells_in_which_process_an_interval_ends(synth, krait):
    one = "process 7 python3\nexit 0 0\nthread 7 T\n0us mark send%201\n10us mark begin%202\n20us mark end%202\n"
    folders = [synth(one, "one"), synth("process 8 worker\nexit 0 0\nthread 9 W\n0us mark x\n30us mark got%201\n", "two")]
    pairs = ["--start", "(send|begin) (?P<key>.)", "--stop", "(got|end) (?P<key>.)", "--list"]
    ends = [[row[key] for key in ("key", "end_thread", "end_tid", "end_process", "end_pid")] for row in verb_json(krait, "intervals", *folders, *pairs)["list"]]
    assert ends == [["1", "W", 9, "worker", 8], ["2", None, None, None, None]]
    wide = subprocess.run([krait, "intervals", *folders, *pairs], capture_output=True, text=True, check=True).stdout.splitlines()
    assert wide[0].endswith("ends in  in process  in pid") and wide[1].endswith("W        worker           8")
    inside = subprocess.run([krait, "intervals", folders[0], *pairs], capture_output=True, text=True, check=True).stdout
    assert "in process" not in inside


# -- spans --

SPANS = """
import asyncio, gc, krait

async def serve(order):
    with krait.span("serve", order=order, who={"name": "n%d" % (order % 2)}):
        await asyncio.sleep(0.001 * (1 + order % 3))

async def main():
    await asyncio.gather(*(serve(i) for i in range(12)))

asyncio.run(main())
with krait.span("load"):
    gc.collect()
"""


@pytest.mark.few_pythons
def test_spans_are_intervals_with_their_fields_as_keys(record, krait, python):
    run = record.text(python, SPANS, env={"PYTHONPATH": str(BUILD / "python")}, options=["--gc", "--imports"])
    serve, load = verb_json(krait, "intervals", run.path, "--span", "serve", "--span", "load", "--name", "s")["rows"]
    assert (serve["name"], serve["intervals"], load["name"], load["intervals"]) == ("s", 12, "load", 1)
    assert serve["min_ns"] >= 1_000_000 and serve["max_ns"] >= 3_000_000
    by_who = verb_json(krait, "intervals", run.path, "--span", "serve", "--key", "who.name", "--by", "key")["rows"]
    assert {r["key"]: r["intervals"] for r in by_who} == {"n0": 6, "n1": 6}
    for key, told in ("who.nmae", "; did you mean 'who.name'?"), ("nokind", ""):
        wrong = subprocess.run([krait, "intervals", run.path, "--span", "serve", "--key", key], capture_output=True, text=True, check=True)
        assert wrong.stderr == f"--span 'serve': there is no field '{key}' in its spans{told}\n"
    (run.path / "own.toml").write_text("[interval.serving]\nspan = 'serve'\nkey = 'ordr'\n")
    wrong = subprocess.run([krait, "intervals", run.path, "-f", run.path / "own.toml"], capture_output=True, text=True, check=True)
    assert wrong.stderr.endswith("own.toml:3: interval.serving.key: there is no field 'ordr' in its spans; did you mean 'order'?\n")
    (collections,) = verb_json(krait, "intervals", run.path, "--span", "gc generation 2")["rows"]
    assert collections["intervals"] >= 1
    by_generation = verb_json(krait, "intervals", run.path, "--span", "gc gen*", "--key", "generation", "--by", "key")["rows"]
    assert {r["key"]: r["intervals"] for r in by_generation}["2"] == collections["intervals"]
    (imports,) = verb_json(krait, "intervals", run.path, "--span", "asyncio.*")["rows"]
    assert imports["intervals"] > 5

    (run.path / "own.toml").write_text("[interval.serving]\nspan = 'srve'\n")
    for options, status, told in [
        (["intervals", "--span", "nobody"], 0, "no span is called 'nobody'\n"),
        (["intervals", "--span", "srve"], 0, "no span is called 'srve'; did you mean 'serve'?\n"),
        (["intervals", "-f", run.path / "own.toml"], 0, f"{run.path}/own.toml:2: 'serving' finds nothing: no span is called 'srve'; did you mean 'serve'?\n"),
        (["report", "--within", "laod:1"], 1, "krait report: --within: there is no span 'laod', and no call of such a function; did you mean 'load'?\n"),
        (["report", "--why", "load"], 1, "krait report: 'load' is a span, not a function; use --within 'load' with --why and the name of a function\n"),
    ]:
        done = subprocess.run([krait, options[0], run.path, *options[1:]], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, told)


def test_system_calls_are_intervals(both, krait):
    calls = "process 4711 python3\nexit 0 0\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n90us return\n"
    kernel = [event(5, "sched_switch", prev_comm="swapper/0", prev_tid=0, prev_prio=20, prev_state=0, next_comm="python3", next_tid=4711, next_prio=20)]
    for begin, end in (10, 14), (20, 30):
        kernel += [event(begin, "syscall_entry_read", fd=3), event(end, "syscall_exit_read", ret=1)]
    (row,) = verb_json(krait, "intervals", both(calls, kernel), "--span", "read")["rows"]
    assert (row["intervals"], row["total_ns"]) == (2, 14_000)


def test_rows_are_made_of_fields_that_are_no_key(synth, krait, run):
    lines = [(0, "begin", 1, "a", 2), (10, "begin", 2, "b", 2), (15, "begin", 3, None, None), (30, "end", 2, "z", 0), (50, "end", 1, "z", 0), (55, "end", 3, "z", 0)]
    said = [json.dumps({k: v for k, v in {"n": n, "who": who, "size": size}.items() if v is not None}, separators=(",", ":")) for _, _, n, who, size in lines]
    folder = synth("process 7 python3\nthread 7 T\n" + "".join(f"{us}us mark {text} {fields}\n" for (us, text, *_), fields in zip(lines, said)))
    rules = [folder, "--start", "begin", "--stop", "end", "--key", "n"]
    found = {by: [(row["key"], row["total_ns"]) for row in verb_json(krait, "intervals", *rules, "--by", by)["rows"]] for by in ("who", "size,who", "$thread", "n")}
    assert found["who"] == [("a", 50_000), ("b", 20_000), (None, 40_000)]
    assert found["size,who"] == [("2 a", 50_000), ("2 b", 20_000), (None, 40_000)]
    assert found["$thread"] == [("7", 110_000)] and found["n"] == [("1", 50_000), ("2", 20_000), ("3", 40_000)]
    listed = verb_json(krait, "intervals", *rules, "--by", "who", "--list", "--sort", "duration_ns")["list"]
    assert [(row["key"], row["duration_ns"]) for row in listed] == [("a", 50_000), (None, 40_000), ("b", 20_000)]
    wrong = subprocess.run([krait, "intervals", *rules, "--by", "hwo"], capture_output=True, text=True, check=True)
    assert "--by: " in wrong.stderr and "'hwo'" in wrong.stderr and wrong.stdout.splitlines()[1].endswith("-")


def test_a_field_of_the_program_that_an_event_hides_is_told(synth, krait):
    """span:begin has an id of its own, which numbers krait's spans."""
    spans = [(f"{n}0us spanbegin {n} 2 0 %7B%22id%22:{n + 40},%22size%22:1%7D\n", f"{n}5us spanend {n}\n") for n in (1, 2)]
    folder = synth("process 5 python3\ncode 2 name - serve - 0\nthread 5 A\n" + "".join(begin + end for begin, end in spans))

    def made(*options):
        done = subprocess.run([krait, "intervals", folder, "--start", "^span:begin", "--stop", "^span:end", "--json", *options], capture_output=True, text=True, check=True)
        return [row["key"] for row in json.loads(done.stdout)["rows"]], done.stderr

    told = "span:begin has a field 'id' of its own; the program's is fields.id\n"
    assert made("--key", "id", "--by", "key") == (["1", "2"], f"--start '^span:begin': {told}")
    assert made("--by", "id") == (["1", "2"], f"--by: {told}")
    assert made("--key", "id", "--by", "fields.id") == (["41", "42"], f"--start '^span:begin': {told}")
    assert made("--by", "size") == (["1"], "")
