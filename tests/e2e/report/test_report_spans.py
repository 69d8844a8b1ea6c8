# SPDX-License-Identifier: Apache-2.0
"""krait report --by span: how long spans took, by kind and name."""

import csv
import io
import subprocess

import pytest

from conftest import verb_json
from report_made import report_on_terminal

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
    assert found["span", "load"] == (1, *[90_000] * 6)  # not the middle of a class of the histogram, which is less
    assert found["import", "json"][:2] == (1, 10_000) and found["gc", "gc generation 2"][:2] == (1, 3_000)


def test_a_narrow_table_keeps_the_column_that_it_is_sorted_by(krait, synth):
    folder = synth(SPANS)
    assert " min " not in report_on_terminal(krait, 60, folder, "--by", "span", NO_COLOR="1").splitlines()[0]
    assert " min " in report_on_terminal(krait, 60, folder, "--by", "span", "--sort", "min", NO_COLOR="1").splitlines()[0]


def test_a_range_a_thread_and_a_column_choose(krait, synth):
    folder = synth(SPANS)
    assert rows(krait, folder, "--thread", "Other") == {("span", "step"): (1, *[5_000] * 6)}
    part = rows(krait, folder, "--from", "25us", "--until", "50us")
    assert {key: row[:2] for key, row in part.items()} == {("span", "load"): (1, 25_000), ("span", "step"): (3, 29_000)}
    assert next(iter(rows(krait, folder, "--sort", "calls"))) == ("span", "step")
    for heading in ("name", "span"):
        assert next(iter(rows(krait, folder, "--sort", heading))) == ("gc", "gc generation 2")
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
    for options, why in (["--cycles"], "--cycles is for functions, not for --by span; leave out"), (["--tree", "--filter", "app"], "--filter is for functions, not for --by span --tree; krait intervals --span NAME selects spans\n"), (["--tree", "--key", "n"], "--key goes with --by span, without --tree"):
        wrong = subprocess.run([krait, "report", "--by", "span", *options, folder], capture_output=True, text=True)
        assert wrong.returncode == 2 and why in wrong.stderr
    wrong = subprocess.run([krait, "report", "--by", "span", "--sort", "self", folder], capture_output=True, text=True)
    assert wrong.returncode and "no column 'self'" in wrong.stderr


# Equal times nest by their ends; what ends as another begins is beside it.
NESTED = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - app - 0
    code 3 name - json - 0
    code 4 name - re - 0
    code 5 name - enum - 0
    thread 100 MainThread
    1us call 1
    10us spanbegin 1 2 2
    10us spanbegin 2 3 2
    12us spanbegin 3 4 2
    15us spanend 3
    20us spanend 2
    20us spanbegin 4 4 2
    21us spanbegin 5 5 2
    26us spanend 5
    27us spanend 4
    30us spanend 1
    40us spanbegin 6 3 2
    41us spanend 6
    120us return
    thread 101 Other
    2us call 1
    11us spanbegin 7 5 2
    19us spanend 7
    30us spanbegin 8 2 2
    31us spanbegin 9 3 2
    33us spanend 9
    34us spanend 8
    90us return
    """


def tree(krait, folder, *options):
    found = verb_json(krait, "report", folder, "--by", "span", "--tree", *options)["spans"]
    return [(r["depth"], r["name"], r["spans"], r["total_ns"] // 1000, r["self_ns"] // 1000) for r in found]


def test_spans_within_spans_are_a_tree(krait, synth):
    folder = synth(NESTED)
    whole = [(0, "app", 2, 24, 5), (1, "json", 2, 12, 9), (2, "re", 1, 3, 3), (1, "re", 1, 7, 2), (2, "enum", 1, 5, 5), (0, "enum", 1, 8, 8), (0, "json", 1, 1, 1)]
    assert tree(krait, folder) == whole
    assert tree(krait, folder, "--thread", "Other") == [(0, "enum", 1, 8, 8), (0, "app", 1, 4, 2), (1, "json", 1, 2, 2)]
    assert tree(krait, folder, "--from", "13us", "--until", "22us") == [(0, "app", 1, 9, 0), (1, "json", 1, 7, 5), (2, "re", 1, 2, 2), (1, "re", 1, 2, 1), (2, "enum", 1, 1, 1), (0, "enum", 1, 6, 6)]
    done = subprocess.run([krait, "report", folder, "--by", "span", "--tree", "--min-share", "20"], capture_output=True, text=True, check=True)
    assert [line.split("import", 1)[1].rstrip() for line in done.stdout.splitlines()[1:]] == ["  app", "    json", "    re", "  enum"]
    assert "3 branches below 20% of the time are left out" in done.stderr


@pytest.mark.few_pythons
def test_imports_of_a_program_are_a_tree(record, python, krait):
    run = record.text(python, "import sys\nsys.modules.pop('json', 0), sys.modules.pop('json.decoder', 0)\nimport json", options=["--imports"])
    found = tree(krait, run.path)
    at = [name for _, name, *_ in found].index("json")
    assert found[at][0] == 0 and (1, "json.decoder") in [row[:2] for row in found[at + 1 :]]
    flat = {row["name"]: row["total_ns"] // 1000 for row in verb_json(krait, "report", run.path, "--by", "span")["spans"] if row["spans"] == 1}
    assert all(total == flat[name] for _, name, _, total, _ in found if name in flat)
    for i, (depth, _, _, total, own) in enumerate(found):
        below = found[i + 1 :]
        inside = below[: next((n for n, row in enumerate(below) if row[0] <= depth), len(below))]
        assert abs(total - own - sum(row[3] for row in inside if row[0] == depth + 1)) <= 1 + len(inside)  # rounded to us
