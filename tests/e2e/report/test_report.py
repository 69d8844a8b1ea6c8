# SPDX-License-Identifier: Apache-2.0
"""`krait report` on recordings whose times are known: every figure is checked to the nanosecond."""

import csv
import io
import json
import re
import subprocess

import pytest

from conftest import verb_json
from peak import peak_kib
from report_made import CODES, TWO, figures, report_on_terminal, rows, run  # noqa: F401  (rows, run: fixtures)


def test_self_total_and_calls_of_nested_calls(synth, rows):
    folder = synth(
        CODES
        + """
        0 call 1
        100 call 2
        150 ccall 3
        160 creturn
        200 return
        1000 return
        """
    )
    got = rows(folder)
    assert figures(got["main"], "calls", "self_ns", "total_ns") == (1, 900, 1000)
    assert figures(got["fib"], "calls", "self_ns", "total_ns") == (1, 90, 100)
    assert figures(got["len"], "calls", "self_ns", "total_ns") == (1, 10, 10)


def test_a_row_says_what_the_function_is(synth, report):
    folder = synth(CODES + "0 call 1\n5 ccall 3\n7 creturn\n10 return\n")
    main, length = report(folder)
    assert {k: main[k] for k in ("name", "module", "file", "line", "kind")} == {
        "name": "main",
        "module": "app",
        "file": "app.py",
        "line": 1,
        "kind": "python",
    }
    assert {k: length[k] for k in ("name", "module", "file", "line", "kind")} == {
        "name": "len",
        "module": "builtins",
        "file": "",
        "line": 0,
        "kind": "c",
    }
    assert all(isinstance(main[k], int) for k in main if k.endswith("_ns") or k == "calls")


def test_recursion_counts_once_in_the_total(synth, rows):
    folder = synth(CODES + "0 call 2\n10 call 2\n20 call 2\n30 return\n40 return\n50 return\n60 call 2\n65 return\n")
    fib = rows(folder)["fib"]
    assert figures(fib, "calls", "self_ns", "total_ns") == (4, 55, 55)
    assert figures(fib, "min_ns", "max_ns", "mean_ns") == (5, 50, 24)  # 50, 30, 10, 5: 23.75


def test_indirect_recursion_counts_once_for_each_function(synth, rows):
    folder = synth(CODES + "0 call 1\n10 call 2\n20 call 1\n30 call 2\n40 return\n50 return\n60 return\n70 return\n")
    got = rows(folder)
    assert figures(got["main"], "self_ns", "total_ns") == (10 + 10 + 10 + 10, 70)
    assert figures(got["fib"], "self_ns", "total_ns") == (10 + 10 + 10, 50)


def test_a_generator_counts_only_while_it_runs(synth, rows):
    folder = synth(
        CODES
        + """
        0 call 1
        10 call 4
        20 yield
        500 resume 4
        505 yield
        900 resume 4
        915 return
        1000 return
        """
    )
    got = rows(folder)
    gen = got["numbers"]
    assert figures(gen, "calls", "runs", "self_ns", "total_ns") == (1, 3, 30, 30)
    assert figures(gen, "min_ns", "p50_ns", "max_ns") == (5, 10, 15)
    assert figures(got["main"], "self_ns", "total_ns") == (970, 1000)


def test_a_throw_and_an_unwind_are_a_run(synth, rows):
    folder = synth(CODES + "0 call 1\n10 call 4\n12 yield\n50 throw 4\n57 unwind\n90 unwind\n")
    got = rows(folder)
    assert figures(got["numbers"], "calls", "runs", "self_ns") == (1, 2, 9)
    assert figures(got["main"], "self_ns", "total_ns") == (81, 90)


def test_an_unwind_ends_the_c_calls_it_leaves(synth, rows):
    folder = synth(CODES + "0 call 1\n10 call 2\n20 ccall 3\n30 unwind\n40 creturn\n50 return\n")
    got = rows(folder)
    assert figures(got["len"], "calls", "total_ns") == (1, 10)
    assert figures(got["fib"], "total_ns", "self_ns") == (20, 10)
    assert figures(got["main"], "total_ns", "self_ns") == (50, 30)


def test_a_raise_ends_a_c_call(synth, rows):
    folder = synth(CODES + "0 call 1\n10 ccall 3\n14 craise\n50 return\n")
    assert figures(rows(folder)["len"], "calls", "total_ns") == (1, 4)


def test_percentiles_of_many_calls(synth, rows):
    lines = []
    for i in range(1, 101):  # durations 1000 to 100000
        lines += ["0 call 2", f"{i * 1000} return", "packet"]
    at, script = 0, CODES
    for i in range(1, 101):
        script += f"{at} call 2\n{at + i * 1000} return\n"
        at += i * 1000 + 7
    fib = rows(synth(script))["fib"]
    assert figures(fib, "calls", "min_ns", "max_ns", "mean_ns") == (100, 1000, 100000, 50500)
    assert fib["p50_ns"] == pytest.approx(50000, rel=0.01)
    assert fib["p99_ns"] == pytest.approx(99000, rel=0.01)


def test_times_beyond_what_a_compact_header_holds(synth, rows):
    folder = synth(CODES + "0 call 1\n134217727 call 2\n134217729 return\n10s call 2\n11s return\n3600s return\n")
    got = rows(folder)
    assert figures(got["fib"], "calls", "min_ns", "max_ns", "total_ns") == (2, 2, 10**9, 10**9 + 2)
    assert got["main"]["total_ns"] == 3600 * 10**9


def test_calls_open_at_the_end_last_until_the_process_exits(synth, rows):
    folder = synth(CODES + "0 call 1\n10 ccall 3\n1000 omit 99 0\nexit 1 9\n")
    got = rows(folder)
    assert figures(got["len"], "calls", "total_ns") == (1, 990)
    assert figures(got["main"], "self_ns", "total_ns") == (10, 1000)


def test_of_an_unfinished_process_they_last_as_long_as_anything_is_known_of_it(synth, rows):
    folder = synth(CODES + "0 call 1\n10 ccall 3\nthread 4712 other\n20 call 2\n1000 return\n")
    got = rows(folder)
    assert figures(got["len"], "calls", "total_ns") == (1, 990)
    assert figures(got["main"], "self_ns", "total_ns") == (10, 1000)
    assert figures(got["fib"], "calls", "total_ns") == (1, 980)


def test_frames_that_were_live_before_are_no_calls(synth, rows):
    folder = synth(CODES + "100 frame 1 0\n100 frame 2 1\n100 stack 2\n150 return\n200 return\n")
    got = rows(folder)
    assert figures(got["fib"], "calls", "runs", "total_ns") == (0, 1, 50)
    assert figures(got["main"], "calls", "runs", "total_ns") == (0, 1, 100)


def test_after_a_loss_the_stack_is_taken_up_as_it_is(synth, rows, run):
    folder = synth(
        CODES
        + """
        0 call 1
        10 call 2
        packet 7
        100 frame 1 0
        100 frame 4 1
        100 stack 2
        120 return
        200 return
        """
    )
    got = rows(folder)
    assert figures(got["main"], "calls", "total_ns") == (1, 200)
    assert figures(got["fib"], "calls", "total_ns") == (1, 0)  # it is gone: cut where the gap begins
    assert figures(got["numbers"], "calls", "total_ns") == (0, 20)
    assert "lost: 7 events (ring full)" in run(folder).stderr


def test_functions_left_out_count_as_ended(synth, rows, run):
    folder = synth(
        CODES
        + """
        0 call 1
        10 call 2
        20 ccall 3
        50 omit 2 12345
        100 return
        """
    )
    got = rows(folder)
    assert figures(got["fib"], "self_ns", "total_ns") == (10, 40)
    assert figures(got["len"], "calls", "total_ns") == (1, 30)  # what it called in C ends with it
    assert figures(got["main"], "self_ns", "total_ns") == (60, 100)
    result = run(folder)
    assert "dropped by --max-overhead: 1 function" in result.stderr
    assert "app.fib (after 12,345 calls)" in result.stderr
    omitted = json.loads(run(folder, "--json").stdout)["omitted"]
    assert figures(omitted[0], "name", "calls", "reason") == ("fib", 12345, "max-overhead")


def test_code_that_was_not_defined_is_a_question_mark(synth, rows):
    got = rows(synth(CODES + "0 call 77\n10 return\n"))
    assert figures(got["?"], "kind", "calls", "total_ns") == ("python", 1, 10)


def test_the_same_function_of_two_processes_is_one_row(synth, rows):
    got = rows(synth(TWO))
    assert figures(got["main"], "calls", "self_ns", "total_ns") == (2, 1150, 1200)
    assert set(got) == {"main", "work", "serve"}


def test_rows_by_thread_process_module_and_file(synth, rows):
    folder = synth(TWO)
    threads = rows(folder, "--by", "thread")
    assert {name: row["total_ns"] for name, row in threads.items()} == {
        "python3 100: MainThread 100": 1000,
        "python3 100: worker 101": 300,
        "gunicorn 200: MainThread 200": 200,
    }
    processes = rows(folder, "--by", "process")
    assert {name: row["total_ns"] for name, row in processes.items()} == {"python3 100": 1300, "gunicorn 200": 200}
    modules = rows(folder, "--by", "module")
    assert figures(modules["app"], "calls", "self_ns", "total_ns") == (4, 1500, 1500)
    files = rows(folder, "--by", "file")
    assert figures(files["app.py"], "calls", "self_ns", "total_ns") == (4, 1500, 1500)


@pytest.mark.parametrize(
    "options, names",
    [
        (["--thread", "worker"], {"work"}),
        (["--thread", "101"], {"work"}),
        (["--process", "gunicorn"], {"main", "serve"}),
        (["--process", "200"], {"main", "serve"}),
        (["--process", "100", "--thread", "MainThread"], {"main"}),
    ],
)
def test_threads_and_processes_are_chosen_by_name_or_id(synth, rows, options, names):
    assert set(rows(synth(TWO), *options)) == names


def test_a_thread_that_is_not_there_is_an_error_that_names_those_that_are(synth, run):
    result = run(synth(TWO), "--thread", "nobody")
    assert result.returncode == 1
    assert "--thread" in result.stderr and "worker 101 of python3 100" in result.stderr
    assert result.stdout == ""


SITES = """
process 4711 python3
code 1 python app main app.py 1
code 2 python app work app.py 10 1 3
code 3 python app work app.py 10 1 5
thread 4711
0 call 1
10 call 2
20 return
30 call 3
70 return
100 return
"""


def test_rows_by_line_of_call(synth, report):
    got = {(row["name"], row["line"]): row for row in report(synth(SITES), "--by", "line-of-call")}
    assert figures(got["main", 3], "calls", "total_ns") == (1, 10)
    assert figures(got["main", 5], "calls", "total_ns") == (1, 40)


def test_call_sites_of_one_function_are_one_row_by_function(synth, rows):
    assert figures(rows(synth(SITES))["work"], "calls", "total_ns") == (2, 50)


def test_line_of_call_without_call_sites_says_how_to_record_them(synth, run):
    result = run(synth(CODES + "0 call 1\n1 return\n"), "--by", "line-of-call")
    assert result.returncode == 1
    assert "--call-sites" in result.stderr


RANGE = CODES + "0 call 1\n1ms call 2\n3ms return\n4ms call 2\n5ms return\n10ms return\n"


@pytest.mark.parametrize(
    "options, main, fib",
    [
        (["--until", "2ms"], (1, 1000000, 2000000), (1, 1000000, 1000000)),
        (["--from", "2ms"], (0, 6000000, 8000000), (1, 2000000, 2000000)),
        (["--to", "2ms"], (1, 1000000, 2000000), (1, 1000000, 1000000)),
        (["--from", "0.002", "--to", "0.0045s"], (0, 1000000, 2500000), (1, 1500000, 1500000)),
        (["--from", "4ms", "--to", "5ms"], (0, 0, 1000000), (1, 1000000, 1000000)),
    ],
)
def test_a_range_cuts_calls_at_its_edges(synth, rows, options, main, fib):
    got = rows(synth(RANGE), *options)
    assert figures(got["main"], "calls", "self_ns", "total_ns") == main
    assert figures(got["fib"], "calls", "self_ns", "total_ns") == fib


@pytest.mark.parametrize(
    "options, where",
    [
        (["--from", "1s"], " in that time"),
        (["--from", "1s", "--thread", "*"], " in that time on those threads"),
    ],
)
def test_where_nothing_is_found_it_is_said_where_it_was_looked_for(synth, run, options, where):
    assert run(synth(RANGE), *options).stderr.startswith(f"no calls were recorded{where}\n")
    assert run(synth(RANGE), *options, "--filter", "fib").stderr.startswith(f"no function matches the filter{where}\n")
    assert run(synth(RANGE), *options, "--tree").stderr.startswith(f"no calls were recorded{where}\n")
    assert run(synth(RANGE), *options, "--tree", "--filter", "fib").stderr.startswith(f"no function matches the filter{where}\n")


@pytest.mark.parametrize("marks", ["10us mark order 7\n", ""], ids=["marks", "nothing"])
def test_a_recording_without_calls_tells_what_shows_the_rest(run, synth, marks):
    said = run(synth(f"process 5 python3\nthread 5 A\n{marks}exit 0 0\n")).stderr
    more = "other events were recorded: krait report --by mark, krait report --by span and krait view show them\n" if marks else ""
    assert said == "no calls were recorded\n" + more


@pytest.mark.parametrize("options", [["--from", "x"], ["--to", "-1"], ["--from", "2s", "--to", "1s"]])
def test_a_range_that_cannot_be_is_an_error(synth, run, options):
    result = run(synth(RANGE), *options)
    assert result.returncode == 2
    assert options[1] in result.stderr


@pytest.mark.parametrize(
    "pattern, names",
    [
        ("fib", {"fib"}),
        ("app", {"main", "fib"}),
        ("app.*", {"main", "fib"}),
        ("lib/*", {"numbers"}),
        ("re:^(main|len)$", {"main", "len"}),
        ("builtins.len", {"len"}),
        ("nothing", set()),
        ("ma", set()),  # a word means whole parts, between dots or slashes
        ("*ma*", {"main"}),
        ("lib", {"numbers"}),
        ("app.py", {"main", "fib"}),
        ("pp.main", set()),
    ],
)
def test_the_filter_knows_names_modules_files_globs_and_expressions(synth, rows, pattern, names):
    folder = synth(CODES + "0 call 1\n1 call 2\n2 return\n3 ccall 3\n4 creturn\n5 call 4\n6 return\n9 return\n")
    assert set(rows(folder, "--filter", pattern)) == names


@pytest.mark.parametrize(
    "words, told",
    [
        (["--filter", "mian"], "no function matches the filter; did you mean 'main'?\n"),
        (["--filter", "mian", "--tree"], "no function matches the filter; did you mean 'main'?\n"),
        (["--filter", "nosuch"], "no function matches the filter\n"),
        (["--filter", "umber"], "no function matches the filter\na word means whole parts of names, between dots: '*umber*' finds it in any\n"),
        (["--filter", "fib", "--until", "1us"], "no function matches the filter in that time\n"),
    ],
)
def test_a_filter_that_matches_nothing_says_what_may_be_meant(synth, run, words, told):
    """What it says is true: '*WORD*' is named only where it finds something."""
    folder = synth(CODES + "0 call 1\n2us call 2\n3us return\n4us call 4\n6us return\n9us return\nexit 0 0\n")
    assert run(folder, *words).stderr.startswith(told) and run(folder, *words).stdout == ""


APPEND = """
    process 100 python3
    code 1 python app main /src/app.py 1
    code 2 c builtins list.append - 0
    code 3 python lib <lambda> /src/lib.py 3
    code 4 python app Class.run.<locals>.step /src/app.py 9
    thread 100 MainThread
    0 call 1
    1 ccall 2
    2 creturn
    3 call 3
    4 return
    5 call 4
    6 return
    9 return
"""


@pytest.mark.parametrize(
    "word, names",
    [("app", {"main", "Class.run.<locals>.step"}), ("append", {"list.append"}), ("list", {"list.append"}), ("lambda", {"<lambda>"}),
     ("<lambda>", {"<lambda>"}), ("step", {"Class.run.<locals>.step"}), ("Class.run", {"Class.run.<locals>.step"}), ("pen", set())],
)
def test_a_word_means_whole_parts_of_names(synth, rows, run, word, names):
    assert set(rows(synth(APPEND), "--filter", word)) == names
    said = run(synth(APPEND, "again"), "--filter", word).stderr
    assert ("'*pen*' finds it in any" in said) == (not names)


def test_a_bad_expression_is_wrong_usage(synth, run):
    result = run(synth(RANGE), "--filter", "re:(")
    assert result.returncode == 2
    assert "regular expression" in result.stderr


def test_rows_are_sorted_and_limited(synth, report):
    folder = synth(CODES + "0 call 1\n1 call 2\n2 return\n3 call 2\n4 return\n5 ccall 3\n25 creturn\n100 return\n")
    names = lambda *options: [row["name"] for row in report(folder, *options)]
    assert names() == ["main", "len", "fib"]
    assert names("--sort", "calls") == ["fib", "main", "len"]
    assert names("--sort", "name") == ["fib", "main", "len"]
    assert names("--sort", "min")[0] == "main"
    assert names("--limit", "1") == ["main"]


def test_the_tree_has_a_node_for_each_distinct_stack(synth, run):
    folder = synth(CODES + "0 call 1\n10 call 2\n20 call 2\n30 return\n40 return\n50 ccall 3\n60 creturn\n100 return\n")
    tree = json.loads(run(folder, "--tree", "--json").stdout)["tree"]
    got = {(node["name"], node["depth"]): figures(node, "calls", "self_ns", "total_ns") for node in tree}
    assert got == {("main", 0): (1, 60, 100), ("fib", 1): (1, 20, 30), ("fib", 2): (1, 10, 10), ("len", 1): (1, 10, 10)}
    assert [node["parent"] for node in tree] == [None, 0, 1, 0]


def test_in_a_filtered_tree_the_matching_functions_are_the_roots(synth, run):
    """Wherever they were called from; shares stay those of the whole."""
    folder = synth(CODES + "0 call 1\n10 call 2\n20 call 2\n30 return\n40 return\n50 call 4\n55 call 2\n60 ccall 3\n65 creturn\n70 return\n80 return\n100 return\n")
    tree = json.loads(run(folder, "--tree", "--filter", "fib", "--json").stdout)
    assert tree["self_ns"] == 100
    got = {(node["name"], node["depth"]): figures(node, "calls", "self_ns", "total_ns") for node in tree["tree"]}
    assert got == {("fib", 0): (2, 30, 45), ("fib", 1): (1, 10, 10), ("len", 1): (1, 5, 5)}
    assert run(folder, "--tree", "--filter", "fib", LC_ALL="C").stdout == (
        "total  total%   self  calls  function\n"
        "45 ns   45.0%  30 ns      2  app.fib\n"
        "10 ns   10.0%  10 ns      1  |- app.fib\n"
        " 5 ns    5.0%   5 ns      1  `- builtins.len (C)\n"
    )


def test_in_a_filtered_tree_small_branches_are_those_of_the_matching_functions(synth, run):
    """However little of the whole these are: here 50 ns of 100 us."""
    folder = synth(CODES + "0 call 1\n10 call 2\n20 ccall 3\n30 creturn\n60 return\n100000 return\n")
    result = run(folder, "--tree", "--filter", "fib", LC_ALL="C")
    assert result.stdout == (
        "total  total%   self  calls  function\n"
        "50 ns    0.1%  40 ns      1  app.fib\n"
        "10 ns   <0.1%  10 ns      1  > builtins.len (C)\n"
    )
    assert "left out" not in result.stderr


@pytest.mark.parametrize("options", [["--filter", "nosuch"], ["--tree", "--filter", "nosuch"], ["--from", "1s"], ["--tree", "--from", "1s"]])
def test_a_table_without_rows_has_no_header(synth, run, options):
    result = run(synth(CODES + "0 call 1\n100 return\n"), *options)
    assert result.stdout == "" and result.stderr.startswith(("no function matches the filter\n", "no calls were recorded in that time\n"))


def test_in_a_filtered_tree_groups_stay_above(synth, run):
    tree = json.loads(run(synth(TWO), "--tree", "--by", "thread", "--filter", "serve", "--json").stdout)["tree"]
    whole = json.loads(run(synth(TWO, "again"), "--tree", "--by", "thread", "--json").stdout)["tree"]
    groups = lambda nodes: [(n["name"], n["depth"], n["total_ns"]) for n in nodes if not n.get("kind")]
    assert {n["name"] for n in tree if n.get("kind")} == {"serve"} and set(groups(tree)) <= set(groups(whole))


def test_the_tree_as_text(synth, run):
    folder = synth(CODES + "0 call 1\n10 call 2\n20 call 2\n30 return\n40 return\n50 ccall 3\n60 creturn\n100 return\n")
    assert run(folder, "--tree", LC_ALL="C").stdout == (
        " total  total%   self  calls  function\n"
        "100 ns  100.0%  60 ns      1  app.main\n"
        " 30 ns   30.0%  20 ns      1  |- app.fib\n"
        " 10 ns   10.0%  10 ns      1  |  > app.fib\n"
        " 10 ns   10.0%  10 ns      1  `- builtins.len (C)\n"
    )


def test_trees_by_thread(synth, run):
    tree = json.loads(run(synth(TWO), "--tree", "--by", "thread", "--json").stdout)["tree"]
    assert [node["name"] for node in tree if node["depth"] == 0] == ["python3 100", "gunicorn 200"]
    assert {node["name"] for node in tree if node["depth"] == 1} == {"MainThread 100", "worker 101", "MainThread 200"}


RELATIVES = CODES + "0 call 1\n10 call 2\n20 call 2\n30 return\n40 return\n50 call 4\n60 call 2\n65 return\n70 return\n100 return\n"


def test_callers_of_a_function(synth, rows):
    got = rows(synth(RELATIVES), "--callers", "fib")
    assert {name: figures(row, "calls", "self_ns", "total_ns") for name, row in got.items()} == {
        "main": (1, 20, 30),
        "fib": (1, 10, 10),
        "numbers": (1, 5, 5),
    }


def test_callees_of_a_function(synth, rows):
    got = rows(synth(RELATIVES), "--callees", "app.main")
    assert {name: figures(row, "calls", "self_ns", "total_ns") for name, row in got.items()} == {
        "fib": (1, 20, 30),
        "numbers": (1, 15, 20),
    }


def test_callers_of_the_outermost_function_is_the_thread(krait, synth):
    (outside,) = verb_json(krait, "report", synth(RELATIVES), "--callers", "main")["functions"]
    assert (outside["name"], outside["kind"]) == ("(thread)", "thread")
    text = subprocess.run([krait, "report", synth(RELATIVES, "again"), "--callers", "main", "--csv"], capture_output=True, text=True).stdout
    (outside,) = csv.DictReader(io.StringIO(text))
    assert (outside["name"], outside["kind"]) == ("(thread)", "thread")


def test_the_time_at_the_top_is_that_of_what_is_told_of(synth, run):
    folder = synth(RELATIVES)

    def told(*options):
        return json.loads(run(folder, "--json", *options).stdout)

    assert [told(*options)["self_ns"] for options in ([], ["--filter", "len"], ["--by", "module"], ["--tree"])] == 4 * [100]
    for option, key in (("--callers", "callers_of"), ("--callees", "callees_of")):
        got = told(option, "fib")
        assert got[key] == {"pattern": "fib", "matched": 1, "calls": 3, "self_ns": 35, "total_ns": 35}
        assert got["self_ns"] == 35
    assert told("--callees", "app.main")["self_ns"] == 50
    got = told("--why", "fib")
    assert got["why"] == {"pattern": "fib", "matched": 1, "runs": 2, "total_ns": 35} and got["self_ns"] == 35
    assert told("--why", "app.main")["self_ns"] == 100


RELATIVE_KEYS = {"name", "module", "file", "line", "kind", "calls", "self_ns", "total_ns"}


def test_the_keys_of_callers_and_slowest_calls_are_those_that_the_documentation_has(synth, run):
    folder = synth(RELATIVES)
    (row,) = json.loads(run(folder, "--json", "--callees", "numbers").stdout)["functions"]
    assert set(row) == RELATIVE_KEYS
    (call,) = json.loads(run(folder, "--json", "--why", "numbers").stdout)["slowest"]
    assert set(call) == {"name", "module", "file", "line", "kind", "begin_ns", "duration_ns", "pid", "tid", "thread", "cut"}


def test_callers_of_no_function_is_an_error(synth, run):
    result = run(synth(RELATIVES), "--callers", "nothing_like_it")
    assert result.returncode == 1
    assert "nothing_like_it" in result.stderr


def test_the_table_as_text(synth, run):
    folder = synth(CODES + "0 call 1\n10us call 2\n20us return\n30us ccall 3\n40us creturn\n1234us return\nexit 0 0\n")
    result = run(folder)
    assert result.stdout == (
        "    self  self%     total  total%  calls      mean       min       max       p50       p99  function          where\n"
        "1.214 ms  98.4%  1.234 ms  100.0%      1  1.234 ms  1.234 ms  1.234 ms  1.234 ms  1.234 ms  app.main          app.py:1\n"
        "10.00 us   0.8%  10.00 us    0.8%      1  10.00 us  10.00 us  10.00 us  10.00 us  10.00 us  app.fib           app.py:10\n"
        "10.00 us   0.8%  10.00 us    0.8%      1  10.00 us  10.00 us  10.00 us  10.00 us  10.00 us  builtins.len (C)\n"
    )
    assert result.stderr == ""


def test_csv_quotes_what_needs_it(synth, run):
    folder = synth(
        """
        process 1 python3
        code 1 python a,b x"y%0Az f.py 1
        thread 1
        0 call 1
        10 return
        """
    )
    (row,) = csv.DictReader(io.StringIO(run(folder, "--csv").stdout, newline=""))
    assert (row["module"], row["name"], row["self_ns"], row["kind"]) == ("a,b", 'x"y\nz', "10", "python")


def test_json_of_names_that_are_no_text_is_valid(synth, report):
    folder = synth("process 1 python3\ncode 1 python m %FF%1B%22 f 1\nthread 1\n0 call 1\n1 return\n")
    assert report(folder)[0]["name"] == '\ufffd\x1b"'


def test_lost_events_are_said_on_stderr_and_in_json(synth, run):
    folder = synth(CODES + "0 call 1\n9 return\nlost 0 12\nlost 2 5\n")
    result = run(folder)
    assert "lost: 12 events (ring full)" in result.stderr
    assert "lost: 5 events (disk)" in result.stderr
    assert "lost" not in result.stdout
    found = json.loads(run(folder, "--json").stdout)
    assert found["lost"] == {"ring full": 12, "disk": 5} and found["lost_events"] == 17


# A real program, added up a second time by a reader that shares no code with krait.

PROGRAM = """
import json, threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(n):
    for i in range(n):
        yield fib(i % 5)


def fails(n):
    try:
        {}[n]
        json.loads("x" * n)
    except (KeyError, ValueError):
        return sorted(numbers(20), key=lambda x: -x)


def work():
    for i in range(50):
        fails(i)
        json.dumps({"a": [i] * 10})

threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
work()
for t in threads: t.join()
"""


def clock_of(process):
    """Ticks to ns, exactly, by the metadata's clock."""
    clock = re.search(r"\nclock \{(.*?)\n\}", process.metadata, re.S).group(1)
    freq, seconds, ticks = (int(re.search(rf"\b{key} = (\d+);", clock).group(1)) for key in ("freq", "offset_s", "offset"))
    return lambda t: seconds * 10**9 + (ticks + t) * 10**9 // freq


def add_up(process):
    """{function: [calls, runs, self, total, min, max]}, the plain way."""
    ns = clock_of(process)
    names = {code: (c.kind, c.module, c.qualname, c.file, c.line) for code, c in process.codes.items()}
    sums = {}
    for thread in process.threads:
        stack = []  # [function, begin, time of callees]
        for e in thread.events:
            if e.name in ("python:call", "python:resume", "python:throw", "c:call", "python:frame"):
                name = names[e.code]
                sums.setdefault(name, [0, 0, 0, 0, 10**18, 0])[0] += e.name.endswith(":call")
                stack.append([name, ns(e.time), 0])
            elif e.name != "python:stack" and not e.name.startswith("gil:"):
                name, begin, below = stack.pop()
                took, row = ns(e.time) - begin, sums[name]
                row[1] += 1
                row[2] += took - below
                row[3] += took * all(s[0] != name for s in stack)
                row[4:] = [min(row[4], took), max(row[5], took)]
                if stack:
                    stack[-1][2] += took
        assert not stack
    return sums


@pytest.mark.few_pythons
@pytest.mark.pythons(least=(3, 12))  # before, code that starts the recording is live in C calls that were not seen
def test_a_real_recording_adds_up_the_same_by_another_reader(record, report, python):
    recording = record.text(python, PROGRAM)
    (process,) = recording.processes
    assert len(process.threads) == 3
    got = {
        tuple(row[k] for k in ("kind", "module", "name", "file", "line")): list(
            figures(row, "calls", "runs", "self_ns", "total_ns", "min_ns", "max_ns")
        )
        for row in report(recording.path)
    }
    assert got == add_up(process)


# What people see on a terminal.


LONG = """
process 1 python3
code 1 python a_package.with.quite_a_long.path_of_modules SomeClass.with_a_long_method_name /srv/app/a_package/with/file.py 1
code 2 python m f m.py 2
thread 1
0 call 1
1s call 2
2s return
3s return
"""


@pytest.mark.parametrize("columns", [20, 60, 80, 100, 140, 200])
def test_the_table_fits_the_terminal(synth, krait, columns):
    """Those columns for which there is no room are named on stderr."""
    folder = synth(LONG)
    text = re.sub("\033\\[[0-9;]*m", "", report_on_terminal(krait, columns, folder, notes=True))
    text, note, left_out = text.partition("columns left out: ")
    widths = [len(line) for line in text.splitlines()]
    assert max(widths) <= max(columns, 40)  # notes
    titles = next(line.split() for line in subprocess.check_output([krait, "report", folder], text=True).splitlines() if "self%" in line)
    shown = next(line.split() for line in text.splitlines() if "self" in line)
    assert [t for t in titles if t not in [*shown, "function"]] == re.findall(r"[\w%]+", left_out.partition(";")[0]), text + note + left_out
    assert "function" in text or columns < 60
    if columns >= 60:
        assert "method_name" in text


def test_colour_is_for_terminals_without_no_color(synth, krait, run):
    folder = synth(LONG)
    assert "\033[" in report_on_terminal(krait, 100, folder)
    assert "\033[" not in report_on_terminal(krait, 100, folder, NO_COLOR="1")
    assert "\033[" not in report_on_terminal(krait, 100, folder, TERM="dumb")
    assert "\033[" not in run(folder).stdout


def test_names_cannot_command_the_terminal(synth, krait):
    folder = synth("process 1 p\ncode 1 python m %1B]0;owned%07%9B f%1B[2J 1\nthread 1\n0 call 1\n1 return\n")
    text = report_on_terminal(krait, 100, folder, NO_COLOR="1")
    assert "\033" not in text and "\x07" not in text
    assert "\\x1b]0;owned\\x07" in text


def test_memory_does_not_grow_with_the_recording(krait, tmp_path):
    from conftest import BUILD

    peaks = []
    for events in (100_000, 4_000_000):
        folder = tmp_path / str(events)
        subprocess.run([BUILD / "tests" / "gen_trace", folder, str(events), "100"], check=True)
        peaks.append(peak_kib(krait, "report", folder))
    size = sum(f.stat().st_size for f in folder.glob("*/*"))
    assert size > 20_000_000
    assert peaks[1] - peaks[0] < 10_000  # KiB: the window of the file that is mapped in, and larger histograms


@pytest.mark.parametrize("seconds, status", [(100_000_000_000, 1), (9_223_372_036, 0)])
def test_a_clock_whose_offset_is_beyond_time_gives_no_times(krait, synth, tmp_path, seconds, status):
    """The second one is beyond it at the packets alone: they are damaged."""
    folder = synth("process 10 python3\ncode 1 python m f /m.py 1\nexit 0 0\nthread 10\n2000s call 1\n2001s return\n")
    for path in folder.rglob("metadata"):
        path.write_text(re.sub(r"offset_s = \d+;", f"offset_s = {seconds};", path.read_text()))
    for verb in (["report"], ["export", "--to", "perfetto", "-o", tmp_path / "x"]):
        run = subprocess.run([krait, *verb, folder], capture_output=True, text=True)
        assert run.returncode == status and "beyond 64 bits of nanoseconds" in run.stderr, (verb, run.stderr)
    assert "m.f" not in subprocess.run([krait, "report", folder], capture_output=True, text=True).stdout
