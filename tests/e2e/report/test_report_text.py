# SPDX-License-Identifier: Apache-2.0
"""What `krait report` looks like: whole tables, at the widths that people have."""

import json
import os
import re
import subprocess

import pytest

from conftest import verb_json
from report_made import CODES, CUT_NOTE, figures, report_on_terminal, run  # noqa: F401  (run is a fixture)


def screen(krait, columns, *args):
    """The lines of the table on a terminal, without the heading that says what was recorded."""
    return report_on_terminal(krait, columns, *args, NO_COLOR="1").split("\n\n", 1)[1].splitlines()


SITES = """
process 4711 python3
code 1 python json.encoder _make_iterencode.<locals>._iterencode /usr/lib/python3.13/json/encoder.py 200
code 2 python json.encoder JSONEncoder.default /usr/lib/python3.13/json/encoder.py 161 1 258
code 3 c _io TextIOWrapper.write - 0 1 258
code 4 python json dumps /usr/lib/python3.13/json/__init__.py 183
code 5 python json.encoder JSONEncoder.default /usr/lib/python3.13/json/encoder.py 161 4 238
code 6 python importlib._bootstrap _find_spec <frozen%20importlib._bootstrap> 1240
code 7 python app <module> /srv/app.py 1 6 488
thread 4711
0 call 1
10us call 2
60us return
61us ccall 3
71us creturn
80us return
80us call 4
80us call 5
100us return
100us return
100us call 6
100us call 7
104us return
104us return
"""


def test_a_line_of_call_names_the_line_and_what_it_calls(synth, krait):
    lines = screen(krait, 80, synth(SITES), "--by", "line-of-call")
    assert lines == [
        "    self  self%  total%  calls  line of call",
        "50.00 us  48.1%   48.1%      1  encoder.py:258 -> JSONEncoder.default",
        "20.00 us  19.2%   76.9%      1  (not from Python) -> _make_…<locals>._iterencode",
        "20.00 us  19.2%   19.2%      1  json/__init__.py:238 -> JSONEncoder.default",
        "10.00 us   9.6%    9.6%      1  encoder.py:258 -> _io.TextIOWrapper.write (C)",
        "4.000 us   3.8%    3.8%      1  <_bootstrap>:488 -> app.<module>",
        "    0 ns   0.0%   19.2%      1  (not from Python) -> dumps",
        "    0 ns   0.0%    3.8%      1  (not from Python) -> _find_spec",
    ]


def test_lines_of_call_say_the_callee_in_json_and_csv(synth, run):
    folder = synth(SITES)
    row = json.loads(run(folder, "--by", "line-of-call", "--json").stdout)["functions"][0]
    assert figures(row, "name", "line", "calls") == ("_make_iterencode.<locals>._iterencode", 258, 1)
    assert figures(row["callee"], "name", "module", "line", "kind") == ("JSONEncoder.default", "json.encoder", 161, "python")
    head, first = run(folder, "--by", "line-of-call", "--csv").stdout.splitlines()[:2]
    assert head.endswith(",callee_name,callee_module,cut_runs") and first.endswith(",JSONEncoder.default,json.encoder,0")


def test_a_filter_means_callers_and_callees_of_lines(synth, run):
    rows = json.loads(run(synth(SITES), "--by", "line-of-call", "--filter", "TextIOWrapper*", "--json").stdout)["functions"]
    assert [row["callee"]["name"] for row in rows] == ["TextIOWrapper.write"]


def deep(depth):
    """`depth` functions that call each other, each with a leaf of its own beside: a tree as deep as it gets."""
    codes = "".join(f"code {i} python a_package.some_module function_{i} m.py {i}\n" for i in range(1, depth + 2))
    calls = "".join(f"{i}ms call {i}\n" for i in range(1, depth + 1))
    at = depth + 1
    ends = ""
    for i in range(depth):
        ends += f"{at}ms call {depth + 1}\n{at + 1}ms return\n{at + 2}ms return\n"
        at += 3
    return f"process 1 python3\n{codes}thread 1\n{calls}{ends}"


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_branches_of_a_deep_tree_are_whole(synth, krait, columns):
    lines = screen(krait, columns, synth(deep(30)), "--tree", "--min-share", "0")
    assert len(lines) == 41  # header and the rows of a table
    assert max(map(len, lines)) <= columns
    names = [re.split(r"  +", line, maxsplit=4)[-1] if line[0] == " " else line for line in lines[1:]]
    for line in lines[1:]:
        drawing, name = re.search(r"(?:  |\] )((?:│  |   )*(?:├─ |└─ |> )?)(\S*function_\d+|\S*…\S*)$", line).groups()
        assert len(name) >= 8, names
    assert any(re.search(r"  \[\d+\] ", line) for line in lines)  # the drawing was moved, and says so


def test_a_moved_tree_keeps_its_branches_in_line(synth, krait):
    got = [line.split("  1  ", 1)[-1] for line in screen(krait, 80, synth(deep(9)), "--tree", "--min-share", "0")[1:]]
    got = [re.sub(r"a_pac.*?(\d+)$", r"f\1", line) for line in got]
    assert got == [
        "f1",
        "├─ f2",
        "│  ├─ f3",
        "│  │  ├─ f4",
        "│  │  │  ├─ f5",
        "│  │  │  │  ├─ f6",
        "[4] │  ├─ f7",
        "[4] │  │  ├─ f8",
        "[4] │  │  │  ├─ f9",
        "[4] │  │  │  │  > f10",
        "[4] │  │  │  └─ f10",
        "[4] │  │  └─ f10",
        "[4] │  └─ f10",
        "[4] └─ f10",
        "│  │  │  └─ f10",
        "│  │  └─ f10",
        "│  └─ f10",
        "└─ f10",
    ]


def test_only_children_stand_below_and_not_beside(synth, run):
    folder = synth(CODES + "0 call 1\n1 call 4\n2 call 2\n3 ccall 3\n5 creturn\n6 call 2\n7 return\n8 return\n9 return\n10 return\n")
    assert run(folder, "--tree", LC_ALL="C").stdout == (
        "total  total%  self  calls  function\n"
        "10 ns  100.0%  2 ns      1  app.main\n"
        " 8 ns   80.0%  2 ns      1  > lib.gen.numbers\n"
        " 6 ns   60.0%  3 ns      1  > app.fib\n"
        " 2 ns   20.0%  2 ns      1  |- builtins.len (C)\n"
        " 1 ns   10.0%  1 ns      1  `- app.fib\n"
    )


GENERATOR = CODES + "0 call 1\n10us call 4\n20us yield\n30us resume 4\n50us return\n60us ccall 3\n61us creturn\n90us return\nexit 0 0\n"


def test_runs_are_shown_where_a_generator_is_in_the_table(synth, run):
    result = run(synth(GENERATOR))
    assert result.stdout == (
        "    self  self%     total  total%  calls  runs      mean       min       max       p50       p99  function          where\n"
        "59.00 us  65.6%  90.00 us  100.0%      1     1  90.00 us  90.00 us  90.00 us  90.00 us  90.00 us  app.main          app.py:1\n"
        "30.00 us  33.3%  30.00 us   33.3%      1     2  15.00 us  10.00 us  20.00 us  10.05 us  20.00 us  lib.gen.numbers   lib/gen.py:5\n"
        "1.000 us   1.1%  1.000 us    1.1%      1     1  1.000 us  1.000 us  1.000 us  1.000 us  1.000 us  builtins.len (C)\n"
    )
    assert result.stderr == "mean to p99 are of runs: a generator or coroutine runs from each resume to the next yield\n"
    without = run(synth(GENERATOR), "--filter", "builtins.*")
    assert "runs" not in without.stdout + without.stderr


def test_a_call_that_was_open_at_the_beginning_is_no_generator(synth, run):
    folder = synth(CODES + "0 call 1\n10us call 2\n20us return\n90us return\nexit 0 0\n")
    result = run(folder, "--from", "15us")
    assert "  runs  " in result.stdout
    assert result.stderr == "runs: what was open already when recording, or the chosen time, began, is a run and no call\n" + CUT_NOTE % "2 runs"
    assert run(folder).stderr == ""


def test_shares_of_a_recursion_that_add_up_to_more_are_explained(synth, run):
    """main calls fib and numbers, which calls fib again, inside of fib."""
    folder = synth(CODES + "0 call 1\n10us call 2\n20us call 4\n30us call 2\n40us return\n50us return\n60us return\n90us return\nexit 0 0\n")
    said = run(folder, "--callers", "fib").stderr.splitlines()
    assert said[1] == (
        "total% adds up to 120%: in a recursion, the time of an inner call counts in its own row and in that of the call around it"
    )
    assert len(run(folder, "--callers", "numbers").stderr.splitlines()) == 1


def test_a_long_list_of_choices_takes_several_lines(krait):
    done = subprocess.run([krait, "report", "x", "--by", "zzzzzz"], capture_output=True, text=True, timeout=60)
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 2 and first == "krait report: --by: 'zzzzzz' is not one of"
    assert all(len(line) < 80 for line in rest) and len(rest) == 2
    assert rest[0].strip().split("|")[0] == "function" and rest[0].endswith("|span")


def test_a_column_to_sort_by_that_no_table_has(krait, synth):
    """Known before a trace is read where rows are functions; else by what the table has."""
    done = subprocess.run([krait, "report", "x", "--sort", "totl"], capture_output=True, text=True, timeout=60)
    said, *_ = done.stderr.splitlines()
    assert done.returncode == 2 and said.startswith("krait report: --sort: no column 'totl'; the columns are self, ")
    assert {"total", "calls", "runs", "cpu", "unknown", "name"} <= set(said.partition("columns are ")[2].partition(";")[0].split(", "))
    assert said.endswith("; did you mean 'total'?")


def test_functions_are_sorted_by_each_column_that_tables_show(krait, synth):
    codes = "process 5 python3\ncode 1 python app main app.py 1\ncode 2 python app part app.py 9\nthread 5 A\n"
    folder = synth(codes + "0 call 1\n1us call 2\n2us yield\n3us resume 2\n4us yield\n5us resume 2\n6us return\n100us return\nexit 0 0\n")
    heads = next(line for line in screen(krait, 200, folder) if "self%" in line).split()
    assert "runs" in heads and "total%" in heads
    for column in heads:
        names = [row["name"] for row in verb_json(krait, "report", folder, *(("--sort", column) if column not in ("function", "where") else ()))["functions"]]
        assert names == (["part", "main"] if column == "runs" else ["main", "part"]), column


@pytest.mark.parametrize("by, title", [("module", "module"), ("thread", "thread"), ("file", "file")])
def test_groups_have_no_times_of_single_calls(synth, run, by, title):
    result = run(synth(GENERATOR), "--by", by)
    assert result.stdout.splitlines()[0].split() == ["self", "self%", "total", "total%", "calls", title]
    assert result.stderr == ""


def test_processes_show_their_command_lines(synth, run, krait):
    command = "/usr/local/bin/python3%20-m%20pip%20list"
    folder = synth(f"process 7 python3 1 {command}\ncode 1 python m f m.py 1\nthread 7\n0 call 1\n1us return\n")
    assert run(folder, "--by", "process").stdout == (
        "    self   self%     total  total%  calls  process    command\n"
        "1.000 us  100.0%  1.000 us  100.0%      1  python3 7  python3 -m pip list\n"
    )
    assert json.loads(run(folder, "--by", "process", "--json").stdout)["functions"][0]["command"].startswith("/usr/local/bin/")
    assert "python3 -m pip list" in "\n".join(screen(krait, 80, folder, "--by", "process"))


def test_callers_and_callees_say_where(synth, run):
    folder = synth(GENERATOR)
    assert run(folder, "--callers", "numbers").stdout == (
        "   total  total%      self  calls  caller    where\n"
        "30.00 us  100.0%  30.00 us      1  app.main  app.py:1\n"
    )
    assert run(folder, "--callees", "app.main").stdout.splitlines()[1].endswith("lib.gen.numbers   lib/gen.py:5")


def test_where_stays_at_140_columns_and_the_sorted_column_anywhere(synth, krait):
    folder = synth(GENERATOR)
    assert screen(krait, 140, folder)[0].endswith("where")
    long = synth(deep(3), "long")
    assert "where" in screen(krait, 140, long)[0].split()
    assert "p99" not in screen(krait, 80, long)[0].split()
    assert "p99" in screen(krait, 80, long, "--sort", "p99")[0].split()


def test_a_folder_of_recordings_names_them(synth, run):
    one, two = synth(GENERATOR, "one"), synth(GENERATOR, "two")
    assert one.parent == two.parent
    result = run(f"{one.parent}/")
    assert result.returncode == 1
    assert result.stderr.splitlines()[1:] == [f"  {one}", f"  {two}"]


IMPORTS = """
process 1 python3
code 1 python app <module> app.py 1
code 2 python _frozen_importlib _find_and_load <frozen%20importlib._bootstrap> 1349
code 3 python _frozen_importlib_external SourceLoader.exec_module <frozen%20importlib._bootstrap_external> 1020
code 4 c builtins exec - 0
code 5 python lib <module> lib.py 1
code 6 c posix stat - 0
code 7 python importlib._bootstrap _handle_fromlist <frozen%20importlib._bootstrap> 1400
code 8 c builtins __import__ - 0
code 9 python lib.part <module> lib/part.py 1
thread 1 MainThread
0 call 1
1us call 2
3us ccall 6
6us creturn
7us call 3
8us ccall 4
10us call 5
12us ccall 4
14us creturn
16us call 2
17us call 3
18us ccall 4
19us call 9
29us return
30us creturn
31us return
32us return
33us return
34us creturn
36us return
37us return
38us call 7
39us ccall 8
40us call 2
44us return
45us creturn
46us return
50us return
"""


def test_import_machinery_is_folded_and_what_it_runs_stays(synth, run):
    folder = synth(IMPORTS)
    assert run(folder, "--tree", "--fold-imports", LC_ALL="C").stdout == (
        "   total  total%      self  calls  function\n"
        "50.00 us  100.0%  6.000 us      1  app.<module>\n"
        "44.00 us   88.0%  18.00 us      2  > <import>\n"
        "23.00 us   46.0%  5.000 us      1  |- lib.<module>\n"
        "16.00 us   32.0%  6.000 us      1  |  |- <import>\n"
        "10.00 us   20.0%  10.00 us      1  |  |  > lib.part.<module>\n"
        "2.000 us    4.0%  2.000 us      1  |  `- builtins.exec (C)\n"
        "3.000 us    6.0%  3.000 us      1  `- posix.stat (C)\n"
    )


def leaves(folded):
    """{frames without the machinery: time} of folded stacks."""
    machinery = ("_frozen_importlib", "importlib._bootstrap", "<import>", "builtins.exec", "builtins.__import__")
    sums = {}
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        key = tuple(frame for frame in stack.split(";") if not frame.startswith(machinery))
        sums[key] = sums.get(key, 0) + int(value)
    return sums


@pytest.mark.parametrize("options", [[], ["--from", "5us", "--until", "41us"]])
def test_folding_imports_changes_no_time(synth, krait, options):
    folder = synth(IMPORTS)
    export = [krait, "export", folder, "--to", "folded", "-o", "-", *options]
    whole, folded = (subprocess.run([*export, *more], capture_output=True, text=True, check=True).stdout for more in ([], ["--fold-imports"]))
    assert leaves(whole) == leaves(folded)
    assert "_frozen_importlib" in whole and "_frozen_importlib" not in folded
    assert ";app.<module>;<import>;lib.<module>;<import>;lib.part.<module> " in folded


@pytest.mark.few_pythons
def test_a_real_program_folds_to_the_same_time(record, krait, python):
    recording = record.text(python, "import json.tool, argparse")
    export = [krait, "export", recording.path, "--to", "folded", "-o", "-"]
    whole, folded = (subprocess.run([*export, *more], capture_output=True, text=True, check=True).stdout for more in ([], ["--fold-imports"]))
    assert leaves(whole) == leaves(folded)
    assert "<import>" in folded and len(folded) < len(whole)


def test_a_flame_graph_folds_imports_too(synth, krait):
    picture = subprocess.run([krait, "flame", synth(IMPORTS), "--fold-imports", "-o", "-"], capture_output=True, text=True, check=True).stdout
    assert "&lt;import&gt;" in picture and "_find_and_load" not in picture


def test_a_least_share_is_refused_where_it_does_nothing(synth, run):
    done = run(synth(IMPORTS), "--min-share", "1")
    assert done.returncode == 2 and "--min-share needs --tree" in done.stderr


def test_folding_is_refused_where_it_does_nothing(synth, run, krait):
    assert run(synth(IMPORTS), "--fold-imports").returncode == 2
    done = subprocess.run([krait, "export", "x", "--to", "pprof", "--fold-imports", "-o", "y"], capture_output=True, text=True)
    assert done.returncode == 2 and "--to folded can" in done.stderr


def test_tasks_are_sorted_by_each_column_that_the_table_shows(synth, krait):
    folder = synth(
        """
        process 7 python3
        code 1 python m work m.py 1
        task 1 1 long
        task 2 1 often
        thread 7 first
        1us run 1
        9us leave 1 3
        10us run 2
        11us leave 2 3
        12us run 2
        13us leave 2 3
        40us run 1
        41us leave 1 3
        42us run 2
        43us leave 2 3
        """
    )

    def order(column):
        return [row["name"] for row in verb_json(krait, "report", folder, "--by", "task", "--sort", column)["tasks"]]

    wide = {"env": {**os.environ, "COLUMNS": "200"}}
    heads = next(line for line in subprocess.run([krait, "report", folder, "--by", "task"], capture_output=True, text=True, **wide).stdout.splitlines() if "steps" in line)
    assert {"running", "steps", "waiting", "longest", "name", "coroutine"} <= set(heads.split())
    orders = {column: order(column) for column in heads.split()}
    assert orders["steps"] == ["often", "long"] and orders["running"] == orders["longest"] == ["long", "often"]
    wrong = subprocess.run([krait, "report", folder, "--by", "task", "--sort", "runing"], capture_output=True, text=True)
    assert wrong.returncode and "--sort: no column 'runing'; the columns are tasks, running, steps, " in wrong.stderr
    assert wrong.stderr.splitlines()[0].endswith("; did you mean 'running'?")
