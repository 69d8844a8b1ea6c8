# SPDX-License-Identifier: Apache-2.0
"""Calls whose begin or end was not recorded: they count, and so does their time, but nobody knows how long they took."""

import csv
import io
import json
import re
import subprocess

import pytest
from report_made import CODES, CUT_NOTE, figures, report_on_terminal, rows, run  # noqa: F401  (rows, run: fixtures)
from served import serve  # noqa: F401  (a fixture)

WHOLE = "10 call 2\n40 return\n50 call 2\n100 return\n"  # fib: 30 and 50 ns
TIMES = ("min_ns", "mean_ns", "max_ns", "p50_ns", "p99_ns")
CUTS = {
    "killed": CODES + "0 call 1\n" + WHOLE + "200 call 2\n205 ccall 3\n",
    "lost": CODES + "0 call 1\n" + WHOLE + "200 call 2\npacket 5\n900 frame 1 0\n900 stack 1\n1000 return\nexit 0 0\n",
    "attached": CODES + "0 frame 1 0\n0 frame 2 1\n0 stack 2\n5 return\n" + WHOLE + "1000 return\nexit 0 0\n",
    "off": CODES + "0 call 1\n" + WHOLE + "200 call 2\n300 stack 0\n300 recording 0\n700 recording 1\n700 frame 1 0\n700 stack 1\n1000 return\nexit 0 0\n",
}


@pytest.mark.parametrize("why", CUTS)
def test_a_cut_call_is_no_duration(synth, rows, why):
    fib = rows(synth(CUTS[why]))["fib"]
    assert figures(fib, "min_ns", "max_ns", "mean_ns", "p50_ns", "cut_runs", "runs") == (30, 50, 40, 30, 1, 3)
    assert fib["calls"] == (2 if why == "attached" else 3) and fib["total_ns"] == 80 + {"killed": 5, "lost": 0, "attached": 5, "off": 100}[why]


def test_the_edges_of_the_chosen_time_cut(synth, run):
    folder = synth(CODES + "0 call 1\n" + WHOLE + "1000 return\nexit 0 0\n")
    result = run(folder, "--from", "20ns", "--until", "60ns", "--json")
    fib = {row["name"]: row for row in json.loads(result.stdout)["functions"]}["fib"]
    assert figures(fib, "calls", "runs", "cut_runs", "total_ns") == (1, 2, 2, 30) and [fib[key] for key in TIMES] == [None] * 5
    assert run(folder, "--from", "20ns", "--until", "60ns").stderr.endswith(CUT_NOTE % "3 runs")
    assert run(folder).stderr == ""


def test_a_call_that_ends_at_the_edge_is_whole(synth, rows):
    """So that a selected call, and the whole range of a recording, have its duration."""
    folder = synth(CODES + "0 call 1\n" + WHOLE + "100 ccall 3\n100 creturn\n1000 return\nexit 0 0\n")
    for begin, end, times in ("10ns", "40ns", (1, 0, 30, 30)), ("50ns", "100ns", (1, 0, 50, 50)), ("40ns", "50ns", None), ("0ns", "1000ns", (2, 0, 30, 50)):
        got = rows(folder, "--from", begin, "--until", end)
        assert (figures(got["fib"], "runs", "cut_runs", "min_ns", "max_ns") if "fib" in got else None) == times, (begin, end)
    assert figures(got["main"], "cut_runs", "max_ns") == (0, 1000) and figures(got["len"], "calls", "cut_runs") == (1, 0)


def test_what_is_not_known_is_a_dash_and_sorts_last(synth, krait, run):
    folder = synth(CUTS["killed"])
    table = re.sub(r"(?<=\d) (?=[mun]?s\b)", "", report_on_terminal(krait, 140, folder, NO_COLOR="1")).splitlines()
    head = next(line for line in table if "self%" in line).split()
    lines = {line.split()[len(head) - 2]: dict(zip(head, line.split())) for line in table if "100.0%" in line or "app." in line}
    assert [lines["app.main"][title] for title in ("cut", "mean", "min", "p99")] == ["1", "-", "-", "-"]
    assert [lines["app.fib"][title] for title in ("calls", "cut", "mean", "min", "max")] == ["3", "1", "40ns", "30ns", "50ns"]
    data = list(csv.DictReader(io.StringIO(run(folder, "--csv").stdout)))
    main = next(row for row in data if row["name"] == "main")
    assert [main[key] for key in TIMES] == [""] * 5 and main["cut_runs"] == "1"
    for key in ("min", "mean", "p99"):
        names = [row["name"] for row in json.loads(run(folder, "--sort", key, "--json").stdout)["functions"]]
        assert names[0] == "fib", names


def test_a_switch_of_greenlets_cuts_nothing(synth, rows):
    """A call that a switch suspends is like a step of a generator: its begin and its end are known."""
    folder = synth(CODES + "0 call 1\n10 call 2\n40 switch 1 0\n60 call 4\n70 return\n80 switch 2 1\n100 return\n200 return\nexit 0 0\n")
    fib = rows(folder)["fib"]
    assert figures(fib, "calls", "runs", "cut_runs", "total_ns", "min_ns", "max_ns") == (1, 2, 0, 50, 20, 30)


GREENLETS = (
    CODES + "code 5 python app work app.py 20\n0 call 1\n10 call 5\n20 call 2\n40 switch 1 0\n60 call 4\n70 return\n80 switch 2 1\n"
    "100 return\n110 return\n200 call 5\n210 call 2\n240 switch 1 2\n245 switch 2 1\n250 return\n260 return\n300 return\nexit 0 0\n"
)


def test_only_where_greenlets_switch_runs_are_told_of_them(synth, run):
    told = "began, and what goes on when greenlets switch, is a run and no call\n"
    assert told in run(synth(GREENLETS)).stderr
    assert "greenlets" not in run(synth(GREENLETS), "--until", "30ns").stderr


@pytest.mark.parametrize("within, runs", [("work", (4, 5, 30)), ("work:1", (1, 20, 20)), ("work:2", (1, 20, 20)), ("work:4", (1, 5, 5))])
def test_a_switch_of_greenlets_cuts_nothing_in_chosen_intervals(synth, run, within, runs):
    """Each step of work is an interval; the first ends where the switch suspends it."""
    data = json.loads(run(synth(GREENLETS), "--within", within, "--json").stdout)["functions"]
    fib = next(row for row in data if row["name"] == "fib")
    assert figures(fib, "cut_runs", "runs", "min_ns", "max_ns") == (0, *runs)


def test_pictures_and_exports_do_not_say_that_a_switch_of_greenlets_cuts(synth, krait, tmp_path):
    folder = synth(GREENLETS)
    for to, *options in ("line.svg", "view", "--svg"), ("chrome.json", "export", "--to", "chrome", "-o"):
        subprocess.run([krait, *options[:-1], folder, options[-1], tmp_path / to], check=True, capture_output=True, timeout=60)
    titles = re.findall(r"<title>(app\..*?)</title>", (tmp_path / "line.svg").read_text(), re.S)
    assert len([title for title in titles if "goes on from" in title]) == 6
    assert not [title for title in titles if "not seen" in title or "begun before" in title]
    events = json.loads((tmp_path / "chrome.json").read_text())["traceEvents"]
    assert {event["cat"] for event in events if event["ph"] == "B"} == {"python", "python,resume"}
    assert [event["end"] for event in events if event.get("end")] == ["yield"] * 6


@pytest.mark.parametrize("why", CUTS)
def test_the_page_knows_the_same(synth, rows, serve, why):
    folder = synth(CUTS[why])
    known, server = rows(folder), serve(folder)
    table = server.api("functions")
    names = [(f[1], f[0]) for f in server.api("funcs", page=0)]
    for row in (dict(zip(table["columns"], row)) for row in table["rows"]):
        of = known[names[row["func"]][1]]
        assert figures(row, "calls", "runs", "cut", "self", "total") == figures(of, "calls", "runs", "cut_runs", "self_ns", "total_ns")
        assert figures(row, "min", "mean", "max") == tuple(of[key] or 0 for key in ("min_ns", "mean_ns", "max_ns"))
    found = server.api("calls", func=names.index(("app", "fib")))
    assert figures(found, "matched", "cut") == (3, 1) and sum(n for *_, n in found["histogram"]) == 2
    assert sorted(call["cut"] for call in found["calls"]) == [False, False, True]
    assert int(found["fastest"]["end"]) - int(found["fastest"]["begin"]) == 30
    chosen = server.api("calls", func=names.index(("app", "fib")), min=0)
    assert figures(chosen, "matched", "cut") == (2, 0)


def test_the_page_in_a_file_has_dashes(synth, krait, tmp_path):
    path = tmp_path / "page.html"
    subprocess.run([krait, "view", synth(CUTS["killed"]), "--html", path], check=True, capture_output=True, timeout=60)
    body = re.search(r"<h2>Functions</h2>.*?<tbody>(.*?)</tbody>", path.read_text(), re.S)[1]
    main = next(row for row in body.split("<tr>") if "app.main" in row)
    assert main.count("<td>-</td>") == 5


def test_the_slowest_calls_tell_which_are_cut(synth, krait, run):
    folder = synth(CUTS["killed"])
    found = json.loads(run(folder, "--why", "fib", "--json").stdout)["slowest"]
    assert [(call["duration_ns"], call["cut"]) for call in found] == [(50, False), (30, False), (5, True)]
    assert re.search(r"^3\. more than 5 ns, 200 ns after the start", run(folder, "--why", "fib").stdout, re.M)
