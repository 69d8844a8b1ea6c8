# SPDX-License-Identifier: Apache-2.0
"""`krait report --within`: the threads in which the interval begins and ends come before those that only waited meanwhile."""

import csv
import io
import json
import re
import subprocess

import pytest
from conftest import verb_json
from report_made import report_on_terminal

# serve() in MainThread from 10 to 50 us, which log Start and Stop; the worker logs that order 7 is got at 40 us. Two threads wait.
SCRIPT = """process 4711 python3
exit 0 0
code 1 python app main app.py 1
code 2 python app serve app.py 9
code 3 python app work app.py 12
code 4 c _thread lock.acquire - 0
thread 4711 MainThread
0 call 1
10us call 2
12us mark put%207
50us return
100us return
thread 4712 worker
0 call 3
1us call 4
20us return
40us mark got%207
100us return
thread 4713 idle-1
0 call 4
100us return
thread 4714 idle-2
0 call 4
100us return
"""
KEYED = r"put (?P<key>\d+) .. got (?P<key>\d+)"


@pytest.fixture
def waits(synth):
    return synth(SCRIPT)


def rows(krait, trace, *options):
    return [(row["name"], row.get("threads"), row["self_ns"] // 1000) for row in verb_json(krait, "report", trace, *options)["functions"]]


def test_the_threads_of_the_interval_come_first(waits, krait):
    grouped = [("serve", "end", 40), ("main", "end", 0), ("lock.acquire", "other", 90), ("work", "other", 30)]
    assert rows(krait, waits, "--within", "serve:slowest") == grouped
    assert rows(krait, waits, "--within", "serve") == grouped  # the only one of all
    text = subprocess.run([krait, "report", waits, "--csv", "--within", "serve:1"], capture_output=True, text=True, check=True).stdout
    assert [(row["name"], row["threads"]) for row in csv.DictReader(io.StringIO(text))] == [row[:2] for row in grouped]


def test_the_line_that_names_the_interval_fits_a_terminal(waits, krait):
    lines = report_on_terminal(krait, 50, waits, "--within", "serve:1", notes=True, NO_COLOR="1").splitlines()
    assert lines[:2] == ["krait report: within serve, 1 of 1: 40.00 us from", "  10.00 us on, thread MainThread"], lines


def test_of_an_interval_over_threads_the_one_of_its_end_is_first(waits, krait):
    assert rows(krait, waits, "--within", KEYED + ":slowest") == [
        ("work", "end", 20), ("lock.acquire", "end", 8), ("serve", "begin", 28), ("main", "begin", 0), ("lock.acquire", "other", 56)]  # fmt: skip
    threads = rows(krait, waits, "--within", KEYED + ":1", "--by", "thread")
    assert threads == [(f"python3 4711: {name}", group, 28) for name, group in (("worker 4712", "end"), ("MainThread 4711", "begin"), ("idle-1 4713", "other"), ("idle-2 4714", "other"))]


@pytest.mark.parametrize("sort", ["self", "total"])
def test_an_order_that_is_asked_for_is_of_all_threads(waits, krait, sort):
    (first, *rest) = rows(krait, waits, "--within", "serve:1", "--sort", sort)
    assert first == ("lock.acquire", None, 90) and ("serve", None, 40) in rest
    assert all("threads" not in row for row in verb_json(krait, "report", waits)["functions"])


def test_a_table_has_a_line_above_each_group(waits, krait):
    run = subprocess.run([krait, "report", waits, "--within", "serve:1"], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    rules = [i for i, line in enumerate(lines) if re.match("──|--", line)]
    assert rules == [1, 4] and "MainThread 4711, in which the interval begins and ends" in lines[1] and "3 other threads, meanwhile" in lines[4]
    assert "the thread in which the interval ends comes first; --sort self orders by the time of all threads" in run.stderr
    run = subprocess.run([krait, "report", waits, "--within", KEYED + ":1"], capture_output=True, text=True, check=True)
    assert "worker 4712, in which the interval ends" in run.stdout and "MainThread 4711, in which the interval begins" in run.stdout and "2 other threads, meanwhile" in run.stdout
    alone = subprocess.run([krait, "report", waits, "--within", "serve:1", "--thread", "MainThread"], capture_output=True, text=True, check=True)
    assert "meanwhile" not in alone.stdout and "comes first" not in alone.stderr


def test_the_tree_has_a_branch_for_each_group(waits, krait):
    nodes = verb_json(krait, "report", waits, "--tree", "--within", KEYED + ":1")["tree"]
    tops = [(node["name"], node["total_ns"] // 1000) for node in nodes if node["depth"] == 0]
    assert tops == [("worker 4712, in which the interval ends", 28), ("MainThread 4711, in which the interval begins", 28), ("2 other threads, meanwhile", 56)]
    assert nodes[1]["name"] == "work" and nodes[1]["parent"] == nodes[0]["id"]
    run = subprocess.run([krait, "report", waits, "--tree", "--within", "serve:1"], capture_output=True, text=True, check=True)
    assert "comes first" in run.stderr and run.stdout.index("app.serve") < run.stdout.index("3 other threads, meanwhile")
    alone = verb_json(krait, "report", waits, "--tree", "--within", "serve:1", "--thread", "MainThread")["tree"]
    assert [node["name"] for node in alone] == ["main", "serve"]


@pytest.mark.parametrize("by", ["thread", "process"])
def test_a_tree_of_threads_begins_with_that_of_the_interval(waits, krait, by):
    nodes = verb_json(krait, "report", waits, "--tree", "--by", by, "--within", KEYED + ":1")["tree"]
    tops = [node["name"] for node in nodes if re.search(r" \d+$", node["name"])]
    assert tops == ["python3 4711", "worker 4712", "MainThread 4711", "idle-1 4713", "idle-2 4714"][: len(tops)] and len(tops) == (5 if by == "thread" else 1)


def test_json_is_the_same_text_for_the_same_threads(waits, krait):
    runs = [json.dumps(verb_json(krait, "report", waits, "--within", "serve:1", "--thread", "MainThread", *sort)["functions"]) for sort in ([], ["--sort", "self"])]
    assert runs[0].replace(', "threads": "end"', "") == runs[1]


def test_of_a_span_and_a_function_of_one_name_it_is_told_which_is_taken(synth, krait):
    codes = "process 5 python3\nexit 0 0\ncode 1 python app serve app.py 1\ncode 2 name - serve - 0\ncode 3 name - other - 0\nthread 5 A\n"
    spans = "".join(f"{n}0us call 1\n{n}1us spanbegin {n} 2 0 \n{n}2us spanbegin {n + 5} 3 0\n{n}5us spanend {n + 5}\n{n}6us spanend {n}\n{n}9us return\n" for n in (1, 2))
    folder = synth(codes + spans)

    def told(within):
        return subprocess.run([krait, "report", folder, "--within", within], capture_output=True, text=True, check=True).stderr.splitlines()[0]

    assert told("serve:2").endswith("thread A; it is a span: --within app.serve takes the function of that name")
    assert told("serve").endswith("all 2: 10.00 us; they are spans: --within app.serve takes the function of that name")
    assert told("app.serve:2") == "krait report: within app.serve, 2 of 2: 9.000 us from 20.00 us on, thread A"
    assert told("other:1").endswith("thread A")
