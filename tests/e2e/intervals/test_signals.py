# SPDX-License-Identifier: Apache-2.0
"""krait intervals --signal: numbers that messages have, against the same computed in Python."""

import csv
import io
import itertools
import json
import math
import os
import random
import re
import statistics
import subprocess
from xml.etree import ElementTree

import pytest

from conftest import verb_json
from terminal import on_terminal

DEPTH = ("--signal", r"queue (?P<key>\w+) has (\S+)", "--name", "depth")


@pytest.fixture
def queue(synth):
    """queue((us, name, number), ...): a recording whose program logs how long its queues are."""
    names = itertools.count()

    def of(*samples):
        lines = ["process 4711 python3", "exit 0 0", "thread 4711 T0", "0us mark begin"]
        lines += [f"{us}us mark queue%20{name}%20has%20{number} {json.dumps({'size': number}, separators=(',', ':'))}" for us, name, number in samples]
        return synth("\n".join(lines) + "\n", f"queue{next(names)}")

    return of


def rank(values, share):
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def test_values_have_the_statistics_that_python_computes(queue, krait):
    random.seed(7)
    samples = [(10 * i + 5, random.choice("ab"), round(random.uniform(-50, 1000), 3)) for i in range(400)]
    folder = queue(*samples)
    by_key = {row["key"]: row for row in verb_json(krait, "intervals", folder, *DEPTH, "--by", "key")["signals"]}
    (together,) = verb_json(krait, "intervals", folder, *DEPTH)["signals"]
    for row, of in [(by_key["a"], "a"), (by_key["b"], "b"), (together, "ab")]:
        chosen = [s for s in samples if s[1] in of]
        values = [s[2] for s in chosen]
        assert row["values"] == len(values) and (row["min"], row["max"], row["last"]) == (min(values), max(values), values[-1])
        assert (row["p90"], row["p99"]) == (rank(values, 0.9), rank(values, 0.99))
        assert row["median"] == pytest.approx(statistics.median(values), rel=1e-12)
        assert row["mean"] == pytest.approx(statistics.fmean(values), rel=1e-12)
        assert row["deviation"] == pytest.approx(statistics.stdev(values), rel=1e-9)
        assert row["per_s"] == pytest.approx((len(values) - 1) / ((chosen[-1][0] - chosen[0][0]) * 1e-6), rel=1e-4)


def test_each_value_is_listed_with_its_time(queue, krait):
    folder = queue((10, "a", "7"), (20, "b", "-2.5"), (35, "a", "1e3"))
    listed = verb_json(krait, "intervals", folder, *DEPTH, "--list")["values"]
    assert [(v["t_ns"] // 1000, v["key"], v["value"], v["thread"]) for v in listed] == [(10, "a", 7, "T0"), (20, "b", -2.5, "T0"), (35, "a", 1000, "T0")]
    text = subprocess.run([krait, "intervals", folder, *DEPTH, "--list", "--csv"], capture_output=True, text=True, check=True).stdout
    assert [row["value"] for row in csv.DictReader(io.StringIO(text))] == ["7", "-2.5", "1000"]


def test_a_field_may_have_the_number_and_others_are_counted(queue, krait):
    folder = queue((10, "a", "7"), (20, "a", "many"), (30, "a", "nan"), (40, "a", "1e300"), (50, "a", "-1.1e140"), (60, "a", "-1e140"), (70, "a", "1e140"))
    (row,) = verb_json(krait, "intervals", folder, "--signal", "queue", "--value", "fields.size")["signals"]
    assert (row["values"], row["no_number"], row["min"], row["last"]) == (3, 4, -1e140, 1e140) and row["deviation"] == pytest.approx(1e140)
    (row,) = verb_json(krait, "intervals", folder, "--signal", r"has (\d+)", "--key", "nothing")["signals"]
    assert (row["values"], row["no_key"], row["min"]) == (0, 3, None)


def test_signals_stand_below_intervals(queue, krait):
    folder = queue((10, "a", "7"), (20, "a", "9"))
    done = subprocess.run([krait, "intervals", folder, *DEPTH, "--start", "begin", "--stop", "has 9"], capture_output=True, text=True, check=True)
    above, below = done.stdout.split("\n\n")
    assert above.splitlines()[0].split()[:2] == ["intervals", "total"] and below.splitlines()[0].split()[0] == "values"
    both = verb_json(krait, "intervals", folder, *DEPTH, "--start", "begin", "--stop", "has 9")
    assert len(both["rows"]) == len(both["signals"]) == 1


@pytest.mark.parametrize("numbers, labels", [((3, 5, 9), {"0", "10"}), ((-4, 0, 4), {"-4", "0", "4"}), ((7, 7), {"0", "10"}), ((1000001, 1000002), {"1e+06"})])
def test_a_plot_holds_each_value_until_the_next(queue, krait, tmp_path, numbers, labels):
    folder = queue(*((10 * i, "a", n) for i, n in enumerate(numbers)))
    subprocess.run([krait, "intervals", folder, *DEPTH, "--plot", tmp_path / "p.svg"], check=True, capture_output=True)
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    texts = {"".join(e.itertext()) for e in root.iter(f"{svg}text")}
    assert labels <= texts and f"depth {len(numbers)} values, median {sorted(numbers)[len(numbers) // 2]:.6g}" in texts or len(numbers) == 2
    steps = [e for e in root.iter(f"{svg}line") if e.get("class") == "span"]
    assert len(steps) == len(numbers) and all(a.get("x2") == b.get("x1") for a, b in zip(steps, steps[1:]))


@pytest.mark.parametrize(
    "numbers, bars",
    [
        ((0, 3, 3, 1, 5), [(0, 1), (1, 1), (2, 0), (3, 2), (4, 0), (5, 1)]),
        ((0, 1, 1), [(0, 1), (1, 2)]),
        ((-3, 4), [(-3, 1), *((n, 0) for n in range(-2, 4)), (4, 1)]),
        ((1000001, 1000002), [(1000001, 1), (1000002, 1)]),
        ((0, 49, 50, 100), [(0, 1), (10, 0), (20, 0), (30, 0), (40, 1), (50, 1), (60, 0), (70, 0), (80, 0), (90, 0), (100, 1)]),
        ((0.5, 3), None),
    ],
)
def test_whole_numbers_are_counted_between_whole_numbers(queue, krait, numbers, bars):
    folder = queue(*((10 * i, "a", n) for i, n in enumerate(numbers)))
    text = subprocess.run([krait, "intervals", folder, *DEPTH, "--plot", "-"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(-?[\d.]+) [█#]*\s([\d,]+)$", text.partition("values by size")[2], re.M)
    assert sum(int(count) for _, count in found) == len(numbers)
    assert any("." in edge for edge, _ in found) if bars is None else [(int(edge), int(count)) for edge, count in found] == bars


@pytest.mark.parametrize("width", [80, 140])
def test_a_plot_in_the_terminal_fits(queue, krait, width):
    folder = queue((10, "a", "7"), (20, "a", "9.25"), (30, "a", "9"))
    text, _ = on_terminal([krait, "intervals", folder, *DEPTH, "--plot", "-"], width, env={**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TERM": "xterm"})
    assert max(map(len, text.splitlines())) <= width and "3 values, median 9" in text


@pytest.mark.parametrize(
    "options, status, why",
    [
        (["--signal", "has"], 2, "has no group in round brackets for the number; --value names a field"),
        (["--signal", r"queue (?P<key>\w+)"], 2, "has no group in round brackets for the number"),
        (["--signal", "has (7"], 2, "--signal: 'has (7' is no regular expression"),
        (["--value", "size"], 2, "no interval given"),
        (["--start", "a", "--stop", "b", "--value", "size"], 2, "--value needs --signal"),
        ([*DEPTH, "--start", "a", "--stop", "b", "--csv"], 2, "--csv has either intervals or signals"),
        ([*DEPTH, "--transitions"], 2, "--transitions needs --state"),
        ([*DEPTH, "--compare", "a", "b"], 2, "does not go with --signal"),
        (["--signal", "(nothing)", "--plot", "-"], 1, "there is no value to plot"),
    ],
)
def test_what_cannot_be_is_explained(queue, krait, options, status, why):
    done = subprocess.run([krait, "intervals", queue((10, "a", "7")), *options], capture_output=True, text=True)
    assert done.returncode == status and why in done.stderr


def test_a_signal_that_nothing_matches_is_told(queue, krait):
    done = subprocess.run([krait, "intervals", queue((10, "a", "7")), "--signal", "(nothing)"], capture_output=True, text=True, check=True)
    assert "none of 2 messages matches --signal '(nothing)'" in done.stderr
