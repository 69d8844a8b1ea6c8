# SPDX-License-Identifier: Apache-2.0
"""krait dump --locals: variables and their values, against what repr() shows in the program itself."""

import json
import re

import pytest

from dumped import dumps  # noqa: F401  (a fixture)
from running import wait_for

LOCALS = """
import os, time
class Thing: pass
def outer(a, taken):
    def inner(text, big, *rest, key=b"ab\\x00'"):
        many = list(range(100))
        counts = {1: 2}
        three = {1, 2, 3}
        thing = Thing()
        pair = ([], (1.5, None))
        long = "y" * 5000
        negative, large = -2**40, 2**59
        also = taken
        yes, no = True, False
        \u00fc = "\u4e2d\\n\\x1b[31m"
        print(os.getpid(), flush=True)
        time.sleep(60)
        unbound = 1
    inner("hello", 2**100, 7, 8)
outer(12, "cell")
"""


def test_local_variables_have_the_values_that_they_have(programs, dumps, run, python):  # noqa: F811
    app = programs.start(python, LOCALS)

    def inner():
        frames = dumps("--locals", app.pid)[0]["threads"][0]["frames"]
        return frames[0]["function"].endswith("inner") and frames[0]["line"] == 17 and frames

    frames = wait_for(inner, "sleep")
    found = {local["name"]: local["value"] for local in frames[0]["locals"]}
    thing = found.pop("thing")
    assert re.fullmatch("<Thing object at 0x[0-9a-f]+>", thing)
    assert found == {
        "text": "'hello'",
        "big": "1267650600228229401496703205376",
        "rest": "(7, 8)",
        "key": 'b"ab\\x00\'"',
        "many": "[0, 1, 2, 3, 4, ... 100 in all]",
        "counts": "{1: 2}",
        "three": "{1, 2, 3}",
        "pair": "([], (1.5, None))",
        "long": "'" + "y" * 60 + "'...",
        "negative": "-1099511627776",
        "large": "576460752303423488",
        "also": "'cell'",
        "taken": "'cell'",
        "yes": "True",
        "no": "False",
        "\u00fc": "'\u4e2d\\n\\x1b[31m'",
    }
    assert {local["name"]: local["value"] for local in frames[1]["locals"]}["a"] == "12" and frames[2]["locals"] == []
    text = run("dump", "--locals", app.pid).stdout
    assert "\n        text = 'hello'\n" in text and "\x1b" not in text
    assert "locals" not in dumps(app.pid)[0]["threads"][0]["frames"][0]


@pytest.mark.few_pythons
def test_local_variables_of_a_thread_that_runs_are_of_its_function(programs, dumps, python):  # noqa: F811
    app = programs.start(
        python,
        """
        import os
        def f(f_a):
            f_b = [f_a]
            return f_b
        def g(g_a, g_b):
            g_c = g_a + g_b
            return g_c
        print(os.getpid(), flush=True)
        while True:
            f(1)
            g(2, 3)
        """,
    )
    told = [f for d in dumps("--locals", "--repeat", 300, "--every", "1ms", app.pid) for t in d["threads"] for f in t["frames"] if f["locals"]]
    assert all(local["name"].startswith(f["function"] + "_") for f in told for local in f["locals"])
    assert {f["function"] for f in told} <= {"f", "g"} and told


VALUES = """
import json, os, random, struct, time
few = random.Random(1)
def of_bits(): return struct.unpack("d", struct.pack("Q", few.getrandbits(64)))[0]
numbers = [0, -1, 2**30, -(2**60), 2**64, -(10**100), 2**479, 0.0, -0.0, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 0.1, 5e-324, float("inf"), float("nan")]
numbers += [2.0 ** n for n in range(-1074, 1024, 3)] + [of_bits() for _ in range(200)] + [few.random() * 10 ** n for n in range(-8, 20)]
numbers += [1j, -1j, 1 + 2j, 1.5 - 2.5j, complex(-0.0, 1), complex(1, float("nan")), complex(float("inf"), -0.0), True, False, None, ..., NotImplemented]
texts = ["", "it's", 'say "x"', "both ' and \\"", "a\\0b", "\\t\\n\\r\\\\", "\\x1b[31m", "\\x7f\\x80\\xa0\\xad", "\\u200b\\u2028", "\\ud800", "\\U0001f600", "x" * 60]
texts += ["".join(chr(few.randrange(few.choice((0x100, 0x3000, 0x110000)))) for _ in range(30)) for _ in range(300)]
texts += [b"", b"it's", b'"', b"'\\"", *(bytes(few.randrange(256) for _ in range(60)) for _ in range(20))]
endless, itself, within = [1], {}, ([],)
endless.append(endless); itself["itself"] = itself; within[0].append(within)
emptied, less = {n: n for n in range(300)}, set(range(300))
for n in range(298): del emptied[n]; less.discard(n)
items = [(), (1,), ("a",), ((1,),), [], {}, set(), frozenset(), {1}, {"a", 2, None}, frozenset({2}), {1: 2, "a": [1, 2]}, {(1,): {2: {3}}}, {None: b"x"}]
items += [endless, itself, within, [endless], {1: {}}, [1, [2, [3, 4]]], [None, True, ...], [1.0, -0.0], emptied, less, dict.fromkeys("edcba"), {"x": 1, 2: "y"}]
values = numbers + texts + items
groups = [values[i : i + 90] for i in range(0, len(values), 90)]
def holds(i):
    if i == len(groups):
        print(os.getpid(), json.dumps([[repr(value) for value in group] for group in groups]), flush=True)
        time.sleep(600)
    names = [f"v{k}" for k in range(len(groups[i]))]
    made = {"holds": holds}
    exec(f"def values({', '.join(names)}): holds({i + 1})", made)
    made["values"](*groups[i])
holds(0)
"""


@pytest.mark.every_python
def test_values_are_shown_as_repr_shows_them(programs, dumps, python):  # noqa: F811
    app = programs.start(python, VALUES)
    frames = [f for f in dumps("--locals", app.pid)[0]["threads"][0]["frames"] if f["function"] == "values"]
    groups = json.loads(app.ready)
    assert len(frames) == len(groups) > 9
    shown = [(own, local["value"]) for frame, group in zip(frames[::-1], groups) for own, local in zip(group, frame["locals"])]
    assert len(shown) == sum(map(len, groups)) and not [pair for pair in shown if pair[0] != pair[1]]


CUT = """
import os, time
class list(list): pass
def f():
    text, data = "x" * 61, b"'" + b"x" * 60
    many, pairs, some = [0] * 6, dict.fromkeys(range(6)), {1, 2, 3, 4, 5, 6}
    deep = [[[[[]], (1, 2), {3}, frozenset({4}), {5: 6}, "x", {}]]]
    huge = -(1 << 600)
    own = list("ab")
    print(os.getpid(), flush=True)
    time.sleep(60)
f()
"""


def test_what_is_cut_has_a_mark(programs, dumps, any_python):  # noqa: F811
    app = programs.start(any_python, CUT)
    frames = wait_for(lambda: [f for f in dumps("--locals", app.pid)[0]["threads"][0]["frames"] if f["line"] == 11], "sleep")
    found = {local["name"]: local["value"] for local in frames[0]["locals"]}
    assert re.fullmatch("<list object at 0x[0-9a-f]+>", found.pop("own"))
    assert found == {
        "text": "'" + "x" * 60 + "'...",
        "data": "b\"'" + "x" * 59 + '"...',
        "many": "[0, 0, 0, 0, 0, ... 6 in all]",
        "pairs": "{0: None, 1: None, 2: None, 3: None, 4: None, ... 6 in all}",
        "some": "{1, 2, 3, 4, 5, ... 6 in all}",
        "deep": "[[[<list of 1>, <tuple of 2>, <set of 1>, <frozenset of 1>, <dict of 1>, ... 7 in all]]]",
        "huge": "-<int of about 630 bits>",
    }


# So much to read that the program runs meanwhile, whatever CPU it is on.
CHANGES = """
import os, threading, time
def works():
    n = 0
    while True:
        n += 1
        shared[:] = [n, n, n, n, n]
def waits(): time.sleep(600)
names = [f"v{k}" for k in range(30)]
shared = [0] * 5
much = [[shared] * 5] * 5
exec(f"def holds(then, {', '.join(names)}): then()")
threading.Thread(target=holds, args=(waits, *[much] * 29, "constant"), daemon=True).start()
print(os.getpid(), flush=True)
holds(works, *[much] * 30)
"""


@pytest.mark.few_pythons
def test_what_changes_while_it_is_read_is_not_shown_as_true(programs, dumps, run, python):  # noqa: F811
    app = programs.start(python, CHANGES)

    def read():
        threads = dumps("--locals", app.pid)[0]["threads"]
        found = [local for t in threads for f in t["frames"] if f["function"] == "holds" for local in f["locals"]]
        return any(local["changed"] for local in found) and found

    found = wait_for(read, "a change", limit=60)
    assert not next(local for local in found if local["value"] == "'constant'")["changed"]
    true = [json.loads(local["value"]) for local in found if local["value"][0] == "[" and not local["changed"]]
    assert all(items == much[0][0] for much in true for more in much for items in more)
    shown = r"^        v\d+ = \[.*\]  \(changed while krait read it\)$"
    wait_for(lambda: re.search(shown, run("dump", "--locals", app.pid).stdout, re.M), "a change", limit=60)


@pytest.mark.few_pythons
def test_variables_that_may_be_newer_than_their_line_are_told(programs, dumps, run, python):  # noqa: F811
    app = programs.start(python, CHANGES)
    assert "ran_on" not in dumps(app.pid)[0]["threads"][0]
    threads = wait_for(lambda: (t := dumps("--locals", app.pid)[0]["threads"])[0]["ran_on"] and t, "a thread that ran on")
    assert [t["ran_on"] for t in threads] == [True, False]
    told = "ran on before krait read its variables: they may be newer than its lines"
    wait_for(lambda: run("dump", "--locals", app.pid).stdout.count(told) == 1, "the same as text")
