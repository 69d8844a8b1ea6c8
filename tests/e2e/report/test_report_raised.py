# SPDX-License-Identifier: Apache-2.0
"""What exceptions left, in trees and comparisons; tests/e2e/record/test_record_exceptions.py has the tables of real programs."""

import csv
import io
import json
from functools import partial

import pytest

CODES = """
process 10 app
code 1 python m f f.py 3
code 2 c builtins len - 0
code 3 exception builtins KeyError - 0
code 4 exception m Mine - 0
code 5 python m g f.py 9
thread 10 main
"""
# len leaves g by a KeyError, which makes it one of its own; then g raises one itself, then none.
RAISES = CODES + """
0 call 1
1ms call 5
1ms ccall 2
2ms craiseof 3
3ms unwindof 4
4ms call 5
5ms unwindof 3
6ms call 5
7ms return
8ms ccall 2
9ms creturn
10ms return
exit 0 0
"""


@pytest.fixture
def run(run):
    return partial(run, "report")


def test_a_tree_has_what_such_exceptions_left_and_who_called_it(run, synth):
    folder = synth(RAISES)
    assert run(folder, "--tree", "--exception", "*").stdout == (
        "   total  total%      self  calls  raised  function            exceptions\n"
        "10.00 ms  100.0%  5.000 ms      1       -  m.f\n"
        "4.000 ms   40.0%  3.000 ms      3       2  > m.g               KeyError 1, m.Mine 1\n"
        "1.000 ms   10.0%  1.000 ms      1       1  > builtins.len (C)  KeyError 1\n"
    )
    assert [line.split()[-1] for line in run(folder, "--tree", "--exception", "Mine").stdout.splitlines()[1:]] == ["m.f", "1"]
    nothing = run(folder, "--tree", "--exception", "ValueError")
    assert "no function was left by such an exception" in nothing.stderr and not nothing.stdout


def test_a_tree_for_programs_has_exceptions_where_they_were_asked_for(run, synth):
    folder = synth(RAISES)
    tree = json.loads(run(folder, "--tree", "--exception", "*Error", "--json").stdout)["tree"]
    assert [(n["name"], n["raised"], n["exceptions"]) for n in tree] == [("f", 0, {}), ("g", 1, {"KeyError": 1}), ("len", 1, {"KeyError": 1})]
    rows = list(csv.DictReader(io.StringIO(run(folder, "--tree", "--exception", "*Error", "--csv").stdout)))
    assert [(r["name"], r["raised"], r["exceptions"]) for r in rows] == [("f", "0", ""), ("g", "1", "KeyError 1"), ("len", "1", "KeyError 1")]
    assert "raised" not in run(folder, "--tree", "--json").stdout


def test_a_tree_of_chosen_roots_keeps_their_exceptions(run, synth):
    tree = json.loads(run(synth(RAISES), "--tree", "--exception", "*", "--filter", "g", "--json").stdout)["tree"]
    assert [(n["name"], n["depth"], n["exceptions"]) for n in tree] == [("g", 0, {"KeyError": 1, "m.Mine": 1}), ("len", 1, {"KeyError": 1})]


def raising(synth, name, keys, mine):
    """f is left by so many exceptions of each type, 1 ms apart."""
    calls = ["0 call 1"]
    for i, code in enumerate([3] * keys + [4] * mine):
        calls += [f"{i + 1}ms call 5", f"{i + 1}500us unwindof {code}"]
    return synth(CODES + "\n".join(calls) + "\n900ms return\nexit 0 0\n", name)


def test_comparisons_of_exceptions_tell_their_types(run, synth):
    old = [raising(synth, "o0", 1, 2), raising(synth, "o1", 1, 2)]
    new = [raising(synth, "n0", 1, 7), raising(synth, "n1", 1, 7)]
    sides = [*new, *(w for folder in old for w in ("--diff", folder))]
    said = run(*sides, "--sort", "raised")
    assert said.stdout == (
        "before  after  change  +/-  beyond chance  change%  function  exceptions\n"
        "     3      8      +5    0            yes  +166.7%  m.g       m.Mine 2 -> 7, KeyError 1 -> 1\n"
    )
    assert "how often exceptions left each is compared" in said.stderr and "in all" not in said.stderr
    found = json.loads(run(*sides, "--exception", "Mine", "--json").stdout)
    (row,) = found["functions"]
    assert (found["measure"], row["name"], row["change"], row["exceptions"]) == ("raised", "g", 5, {"m.Mine": {"before": 2, "after": 7}})
    (row,) = csv.DictReader(io.StringIO(run(*sides, "--exception", "Mine", "--csv").stdout))
    assert (row["measure"], row["exceptions"]) == ("raised", "m.Mine 2 -> 7")


def test_comparisons_say_that_there_was_no_such_exception(run, synth):
    folder = raising(synth, "x", 1, 1)
    assert run(folder, "--diff", folder, "--exception", "OSError").stderr == "no function was left by such an exception\n"
    plain = synth(CODES + "0 call 1\n1ms return\nexit 0 0\n", "plain")
    assert run(plain, "--diff", plain, "--sort", "raised").stderr == "no function was left by an exception\n"
    assert "--diff compares --sort raised with --exception, not self" in run(folder, "--diff", folder, "--exception", "*", "--sort", "self", code=2).stderr
