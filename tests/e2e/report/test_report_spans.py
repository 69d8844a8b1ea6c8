# SPDX-License-Identifier: Apache-2.0
"""krait report --by span: how long spans took, by kind and name."""

import csv
import io
import subprocess

import pytest

from conftest import verb_json

SPANS = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - load - 0
    code 3 name - step - 0
    code 4 name - json - 0
    code 5 name - gc%20generation%202 - 0
    thread 100 MainThread
    1us call 1
    10us spanbegin 1 2 0
    20us spanbegin 2 3 0
    30us spanend 2
    31us spanbegin 3 3 0
    61us spanend 3
    70us spanbegin 4 4 2
    80us spanend 4
    81us spanbegin 5 5 1
    84us spanend 5
    100us spanend 1
    120us return
    thread 101 Other
    2us call 1
    40us spanbegin 6 3 0
    45us spanend 6
    90us return
    """
TIMES = ("total_ns", "mean_ns", "min_ns", "p50_ns", "p99_ns", "max_ns")


def rows(krait, folder, *options):
    found = verb_json(krait, "report", folder, "--by", "span", *options)["spans"]
    return {(r["kind"], r["name"]): (r["spans"], *(r[t] for t in TIMES)) for r in found}


def test_spans_are_summed_by_name(krait, synth):
    found = rows(krait, synth(SPANS))
    assert list(found) == [("span", "load"), ("span", "step"), ("import", "json"), ("gc", "gc generation 2")]
    count, total, mean, least, p50, p99, most = found["span", "step"]
    assert (count, total, mean, least, most) == (3, 45_000, 15_000, 5_000, 30_000)
    assert p50 == pytest.approx(10_000, rel=0.01) and p99 == pytest.approx(30_000, rel=0.01)
    assert found["span", "load"][:2] == (1, 90_000) and found["import", "json"][:2] == (1, 10_000) and found["gc", "gc generation 2"][:2] == (1, 3_000)


def test_a_range_a_thread_and_a_column_choose(krait, synth):
    folder = synth(SPANS)
    assert rows(krait, folder, "--thread", "Other") == {("span", "step"): (1, *[5_000] * 6)}
    part = rows(krait, folder, "--from", "25us", "--until", "50us")
    assert {key: row[:2] for key, row in part.items()} == {("span", "load"): (1, 25_000), ("span", "step"): (3, 29_000)}
    assert next(iter(rows(krait, folder, "--sort", "calls"))) == ("span", "step")
    assert next(iter(rows(krait, folder, "--sort", "name"))) == ("gc", "gc generation 2")
    assert list(rows(krait, folder, "--sort", "max", "--limit", "1")) == [("span", "load")]


def test_a_table_and_csv(krait, synth):
    folder = synth(SPANS)
    text = subprocess.run([krait, "report", folder, "--by", "span"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert text[0].split() == ["spans", "total", "mean", "min", "p50", "p99", "max", "kind", "span"]
    assert text[1].split()[-2:] == ["span", "load"] and len(text) == 5
    told = subprocess.run([krait, "report", folder, "--by", "span", "--csv"], capture_output=True, text=True, check=True).stdout
    assert [r["name"] for r in csv.DictReader(io.StringIO(told))] == ["load", "step", "json", "gc generation 2"]


def test_without_spans_and_with_other_options(krait, synth):
    folder = synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n9 return\n")
    done = subprocess.run([krait, "report", "--by", "span", folder], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "") and "no spans were recorded" in done.stderr
    wrong = subprocess.run([krait, "report", "--by", "span", "--tree", folder], capture_output=True, text=True)
    assert wrong.returncode and "--by span goes with" in wrong.stderr
    wrong = subprocess.run([krait, "report", "--by", "span", "--sort", "self", folder], capture_output=True, text=True)
    assert wrong.returncode and "no column 'self'" in wrong.stderr
