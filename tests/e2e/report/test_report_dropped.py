# SPDX-License-Identifier: Apache-2.0
"""What is missing from a recording: the marks of rows that hold the time of dropped functions, and what comparisons tell of
either side."""

import csv
import io
import json

import pytest

# work calls leaf, which is dropped; MainThread alone runs them.
DROPPED = """
process 5 python3
code 1 python app main /srv/app.py 1
code 2 python app.sub work /srv/sub.py 9 1 3
code 3 python app.leaves leaf /srv/leaves.py 19 2 12
thread 5 MainThread
0 call 1
10ms call 2
11ms call 3
11001us return
12ms omit 3 12345
20ms return
100ms return
thread 6 other
0 call 1
50ms return
exit 0 0
"""
WHOLE = DROPPED.replace("12ms omit 3 12345\n", "")
MARK = " [+dropped]"


def told(run, *args):
    return json.loads(run("report", *args, "--json").stdout)


def cells(run, *args):
    return list(csv.DictReader(io.StringIO(run("report", *args, "--csv").stdout)))


@pytest.mark.parametrize(
    "by, marked",
    [
        ("function", {"app.sub.work"}),
        ("module", {"app.sub"}),
        ("file", {"/srv/sub.py"}),
        ("thread", {"python3 5: MainThread 5"}),
        ("process", {"python3 5"}),
        ("line-of-call", {"app.py:3 -> work"}),
    ],
)
def test_rows_of_every_kind_are_marked(run, synth, by, marked):
    folder = synth(DROPPED)
    lines = run("report", folder, "--by", by).stdout.splitlines()
    assert {name for name in marked for line in lines if name + MARK in line} == marked
    assert sum(MARK in line for line in lines) == len(marked)
    assert sum(row.get("holds_dropped", False) for row in told(run, folder, "--by", by)["functions"]) == len(marked)
    assert sum(int(row["holds_dropped"]) for row in cells(run, folder, "--by", by)) == len(marked)


def test_a_module_is_marked_only_where_the_function_ran_in_the_chosen_time(run, synth):
    folder = synth(DROPPED)
    assert MARK in run("report", folder, "--by", "module", "--from", "15ms").stdout
    assert MARK not in run("report", folder, "--by", "thread", "--from", "25ms").stdout


@pytest.mark.parametrize("form", [[], ["--tree"], ["--callers", "work"], ["--by", "line-of-call"]])
def test_the_columns_of_csv_are_the_same_whether_something_was_dropped(run, synth, form):
    titles = [run("report", synth(script, name), "--csv", *form).stdout.splitlines()[0] for script, name in ((DROPPED, "a"), (WHOLE, "b"))]
    assert titles[0] == titles[1] and "holds_dropped" in titles[0].split(",")


@pytest.mark.parametrize("form, of", [("--callers", "callers_of"), ("--callees", "callees_of")])
def test_the_function_that_relatives_are_of_is_marked(run, synth, form, of):
    folder = synth(DROPPED)
    assert told(run, folder, form, "work")[of]["holds_dropped"] is True
    assert "holds_dropped" not in told(run, folder, form, "main")[of]
    assert "work [+dropped]: total 10.00 ms" in run("report", folder, form, "work").stderr


def test_a_comparison_marks_rows_and_says_what_either_side_misses(run, synth):
    old, new = synth(WHOLE + "lost 0 12\n", "old"), synth(DROPPED.replace("20ms return", "30ms return"), "new")
    said = run("report", new, "--diff", old)
    assert [line.split("  ")[-1] for line in said.stdout.splitlines() if MARK in line] == ["app.sub.work [+dropped]"]
    assert f"lost: {old}: 12 events (ring full): " in said.stderr and f"lost: {new}" not in said.stderr
    assert f"dropped by --max-overhead: {new}: 1 function; its time is in the self time of its callers, marked [+dropped]: " in said.stderr
    found = told(run, new, "--diff", old)
    assert {row["name"] for row in found["functions"] if row.get("holds_dropped")} == {"work"}
    before, after = found["recordings"]
    assert (before["side"], before["dir"], before["lost"], before["omitted"]) == ("before", str(old), {"ring full": 12}, [])
    assert (after["side"], after["dir"], after["lost"]) == ("after", str(new), {})
    assert [(f["name"], f["calls"]) for f in after["omitted"]] == [("leaf", 12345)]
    assert {row["name"] for row in cells(run, new, "--diff", old) if row["holds_dropped"] == "1"} == {"work"}


def test_a_comparison_says_which_recording_is_damaged(run, synth):
    old, new = synth(WHOLE, "old"), synth(WHOLE, "new")
    broken = next(old.glob("*/thread-5*"))
    broken.write_bytes(broken.read_bytes()[:-2])
    said = run("report", new, "--diff", old)
    assert f"damaged: {old}: " in said.stderr and f"damaged: {new}" not in said.stderr
    damage = [r["damage"] for r in told(run, new, "--diff", old)["recordings"]]
    assert damage[0] and damage[1] is None


def test_a_compared_flame_graph_says_what_either_side_misses(run, synth, tmp_path):
    old, new = synth(WHOLE + "lost 0 12\n", "old"), synth(DROPPED, "new")
    for a, b, picture in ((new, old, "a.svg"), (old, new, "b.svg")):
        said = run("flame", a, "--diff", b, "-o", tmp_path / picture).stderr
        assert f"krait flame: warning: lost: {old}: 12 events (ring full): " in said
        assert f"krait flame: warning: dropped by --max-overhead: {new}: 1 function; " in said
        assert "work [+dropped]" in (tmp_path / picture).read_text()
    assert "the other is incomplete: 12 events lost" in (tmp_path / "a.svg").read_text()
    assert "incomplete: 12 events lost" in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("verb", [["flame"], ["export", "--to", "folded"]])
def test_pictures_and_exports_say_what_was_dropped(run, synth, tmp_path, verb):
    said = run(*verb, synth(DROPPED), "-o", tmp_path / "x.svg").stderr
    assert f"krait {verb[0]}: warning: dropped by --max-overhead: 1 function; its time is in the self time of its callers, marked [+dropped]: " in said
    assert "app.leaves.leaf (after 12,345 calls)" in said
