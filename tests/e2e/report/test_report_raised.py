# SPDX-License-Identifier: Apache-2.0
"""What exceptions left, in trees and comparisons; tests/e2e/record/test_record_exceptions.py has the tables of real programs."""

import csv
import io
import json
import subprocess

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
def run(krait):
    def report(*args, code=0):
        done = subprocess.run([krait, "report", *map(str, args)], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        return done

    return report


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
    assert "no function was left by such an exception" in nothing.stderr and len(nothing.stdout.splitlines()) == 1


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
