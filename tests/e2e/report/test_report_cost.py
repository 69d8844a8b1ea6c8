# SPDX-License-Identifier: Apache-2.0
"""What recording took is taken off: counts of calls times the cost that the recording tells, in every table and export of
sums, whatever the times are."""

import json
import re
import subprocess

import pytest
from conftest import verb_json

PYTHON_IN, PYTHON_OUT, C_IN, C_OUT = COST = 20, 60, 10, 40
LEAVES, LENS = 100, 50
HEAD = """
process 100 python3
code 1 python app main app.py 1
code 2 python app leaf app.py 5
code 3 c builtins len - 0
code 4 python app steps app.py 9
thread 100 MainThread
"""


def calls(leaf_ns=300, between_ns=200):
    """main calls leaf 100 times, then len 50 times."""
    t, lines = 0, ["0 call 1"]
    for i in range(LEAVES + LENS):
        begin, end = ("call 2", "return") if i < LEAVES else ("ccall 3", "creturn")
        lines += [f"{t + between_ns} {begin}", f"{t + between_ns + leaf_ns} {end}"]
        t += between_ns + leaf_ns
    return "\n".join([*lines, f"{t + between_ns} return", "exit 0 0", ""])


def costly(script=None, head=HEAD, cost=COST):
    said = "cost %d %d %d %d\n" % cost if cost else ""
    return head + said + (script or calls())


def times(rows):
    return {row["name"]: (row["calls"], row["self_ns"], row["total_ns"]) for row in rows}


OUTSIDE = LEAVES * PYTHON_OUT + LENS * C_OUT
MAIN_SELF = (LEAVES + LENS + 1) * 200
RAW = {
    "main": (1, MAIN_SELF, MAIN_SELF + (LEAVES + LENS) * 300),
    "leaf": (LEAVES, LEAVES * 300, LEAVES * 300),
    "len": (LENS, LENS * 300, LENS * 300),
}
LEAF, LEN, MAIN = LEAVES * (300 - PYTHON_IN), LENS * (300 - C_IN), MAIN_SELF - PYTHON_IN - OUTSIDE
TRUE = {"main": (1, MAIN, MAIN + LEAF + LEN), "leaf": (LEAVES, LEAF, LEAF), "len": (LENS, LEN, LEN)}


def test_a_call_costs_its_function_the_inside_and_its_caller_the_outside(report, synth):
    folder = synth(costly())
    assert times(report(folder, "--compensate")) == TRUE
    assert times(report(folder)) == RAW
    (leaf,) = [row for row in report(folder, "--compensate") if row["name"] == "leaf"]
    assert {leaf[key] for key in ("min_ns", "mean_ns", "max_ns", "p50_ns")} == {300 - PYTHON_IN}


def test_a_recording_that_does_not_tell_the_cost_is_refused(krait, report, synth, tmp_path):
    old = synth(costly(cost=None))
    assert times(report(old)) == RAW
    assert "recording_cost_ns" not in verb_json(krait, "report", old)
    for verb in ["report", old], ["report", "--diff", old, old], ["flame", old, "-o", tmp_path / "x.svg"], ["export", old, "--to", "folded"]:
        done = subprocess.run([krait, *map(str, verb), "--compensate"], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 1 and "this recording does not tell what recording took" in done.stderr, done.stderr


@pytest.fixture
def run(krait):
    def verb(*args):
        done = subprocess.run([krait, *map(str, args)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done

    return verb


def test_tables_trees_relatives_and_exports_agree(krait, run, synth):
    folder = synth(costly())
    tree = verb_json(krait, "report", folder, "--tree", "--compensate")
    assert times(tree["tree"]) == TRUE
    assert tree["recording_cost_ns"] == {"python": PYTHON_IN + PYTHON_OUT, "c": C_IN + C_OUT}
    callers = verb_json(krait, "report", folder, "--callers", "leaf", "--compensate")["functions"]
    assert [(row["name"], row["total_ns"]) for row in callers] == [("main", LEAF)]
    for by in ("process", "thread", "file"):
        assert sum(row["self_ns"] for row in verb_json(krait, "report", folder, "--by", by, "--compensate")["functions"]) == TRUE["main"][2]
    for options, wanted in (("--compensate",), TRUE), ((), RAW):
        folded = run("export", folder, "--to", "folded", *options, "-o", "-").stdout
        own = {line.rsplit(" ", 1)[0].split(";")[-1]: int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()}
        assert {name: own[key] for name, key in (("main", "app.main"), ("leaf", "app.leaf"), ("len", "builtins.len"))} == {
            name: row[1] for name, row in wanted.items()
        }
        callgrind = run("export", folder, "--to", "callgrind", *options, "-o", "-").stdout
        assert re.search(r"^(summary|totals): %d$" % wanted["main"][2], callgrind, re.M), callgrind


def test_flame_graphs_are_drawn_from_it_and_say_so(run, synth, tmp_path):
    folder = synth(costly())
    texts = {}
    for options in (), ("--compensate",):
        run("flame", folder, *options, "-o", tmp_path / "flame.svg")
        texts[options] = (tmp_path / "flame.svg").read_text()
    assert "recording cost taken off: 80 ns a call, 50 ns a call of a C function" in texts["--compensate",]
    assert "recording cost" not in texts[()]
    assert texts[()] != texts["--compensate",]


def test_a_line_below_the_table_says_it(run, synth):
    folder = synth(costly())
    said = "recording cost is taken off: 80 ns a call, 50 ns a call of a C function"
    assert said in run("report", folder, "--compensate").stderr.splitlines()
    assert said in run("report", folder, "--tree", "--compensate").stderr.splitlines()
    assert "recording cost" not in run("report", folder).stderr
    info = run("info", folder).stdout
    assert "recording took 80 ns a call, 50 ns a call of a C function" in info
    assert json.loads(run("info", "--json", folder).stdout)["recording_cost_ns"] == {"python": 80, "c": 50}


def test_no_time_becomes_negative(report, synth):
    folder = synth(costly(calls(leaf_ns=5, between_ns=7)))
    found = times(report(folder, "--compensate"))
    assert found["leaf"] == (LEAVES, 0, 0) and found["len"] == (LENS, 0, 0) and found["main"] == (1, 0, 0)


def test_what_was_not_recorded_costs_nothing(report, synth):
    """main was live when the recording began, and is cut at its end."""
    folder = synth(costly("0 frame 1 0\n0 stack 1\n1000 call 2\n1500 return\n3000 mark here\nexit 3 0\n"))
    found = times(report(folder, "--compensate"))
    assert found["leaf"] == (1, 500 - PYTHON_IN, 500 - PYTHON_IN)
    raw = times(report(folder))
    assert raw["main"][1] - found["main"][1] == PYTHON_OUT


def test_nothing_is_taken_off_for_steps_of_generators(report, synth):
    """Their cost was not measured: only the call that begins one costs, half of its parts on each side."""
    steps = "".join(f"{1000 * n} {'resume' if n > 1 else 'call'} 4\n{1000 * n + 400} yield\n" for n in range(1, 4))
    found = times(report(synth(costly("0 call 1\n" + steps + "5000 return\nexit 0 0\n")), "--compensate"))
    assert found["steps"] == (1, 3 * 400 - PYTHON_IN // 2, 3 * 400 - PYTHON_IN // 2)
    assert found["main"][1] == 5000 - 3 * 400 - PYTHON_OUT // 2 - PYTHON_IN


def test_each_process_has_its_own_cost(krait, report, run, synth):
    second = HEAD.replace("100", "200").replace("app ", "other ")
    folder = synth(costly() + costly(head=second, cost=(10, 20, 10, 40)))
    leaves = {row["module"]: row["self_ns"] for row in report(folder, "--compensate") if row["name"] == "leaf"}
    assert leaves == {"app": LEAF, "other": LEAVES * (300 - 10)}
    assert "30 to 80 ns a call, 50 ns a call of a C function" in run("report", folder, "--compensate").stderr


def test_a_chosen_time_is_corrected_for_what_was_recorded_in_it(report, synth):
    folder = synth(costly())
    found = times(report(folder, "--from", "0", "--until", "500ns", "--compensate"))
    assert found["leaf"][0] == 1
    assert found["leaf"][1] in (300, 300 - PYTHON_IN, 300 - PYTHON_IN // 2)


WAITS = """
process 100 python3
code 1 python app main app.py 1
code 2 python app leaf app.py 5
cost 20 60 10 40
thread 100 MainThread
0 call 1
1000 call 2
2000 gilwait 101
9000 giltake
10000 return
12000 return
thread 101 worker
0 call 1
12000 return
exit 0 0
"""


def test_waits_for_the_gil_keep_their_length(krait, synth):
    found = {row["name"]: row for row in verb_json(krait, "report", synth(WAITS), "--thread", "100", "--compensate")["functions"]}
    for row in found.values():
        assert sum(row["wall_self_ns"].values()) == row["self_ns"]
        assert sum(row["wall_total_ns"].values()) == row["total_ns"]
    assert found["leaf"]["self_ns"] == 9000 - PYTHON_IN and found["leaf"]["wall_self_ns"]["gil"] == 7000
    assert found["main"]["total_ns"] == 12000 - 2 * PYTHON_IN - PYTHON_OUT
    tree = verb_json(krait, "report", synth(WAITS, "again"), "--thread", "100", "--tree", "--compensate")["tree"]
    for row in tree:
        assert sum(row["wall_total_ns"].values()) == row["total_ns"] == found[row["name"]]["total_ns"]


def test_comparisons_are_of_corrected_times(run, synth):
    before, after = synth(costly()), synth(costly(cost=(10, 20, 10, 40)), "after")
    diff = json.loads(run("report", "--diff", before, after, "--compensate", "--json").stdout)
    raw = json.loads(run("report", "--diff", before, after, "--json").stdout)
    assert diff != raw


def test_it_is_refused_where_times_are_always_as_recorded(krait, synth, tmp_path):
    done = subprocess.run(
        [krait, "export", synth(costly()), "--to", "speedscope", "--compensate", "-o", tmp_path / "x.json"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "--compensate: --to speedscope always has the times as they were recorded" in done.stderr
    for other, said in (["--why", "leaf"], "--compensate does not go with"), (["--cycles"], "--compensate does not go with"), (["--by", "mark"], "--compensate is for functions, not for --by mark; leave out one of the two\n"):
        done = subprocess.run([krait, "report", synth(costly(), "_".join(other)), "--compensate", *other], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr
