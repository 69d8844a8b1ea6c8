# SPDX-License-Identifier: Apache-2.0
"""Calls that switch greenlets as intervals: from their begin to their own end, with their arguments, by the program's own clock."""

import json
import subprocess

import pytest

from conftest import BUILD, verb_json

TRIED = ((3, 8), (3, 13))
VERSIONS = {(3, 8): {"greenlet": "greenlet==1.1.3"}}

TIMED = """
import json, time
said = []
class Timed:
    def __init__(self, *what): self.what = what
    def __enter__(self): self.begin = time.perf_counter_ns()
    def __exit__(self, *error): said.append((*self.what, time.perf_counter_ns() - self.begin))
def around(function, n):
    with Timed("around", function.__name__, n): return function(n)
"""

# Greenlets of one function switch to each other, end in another order than they begin, are nested, and get exceptions.
GREENLETS = (
    TIMED
    + """
from greenlet import getcurrent, greenlet
home = getcurrent()
lets = {}
def turns(n):
    with Timed("inside", "turns", n):
        for i in range(n % 3 + 1): lets[n % 4 + 1].switch() if n < 4 and not lets[n % 4 + 1].dead else home.switch()
        return around(deep, n)
def deep(n):
    with Timed("inside", "deep", n):
        if n % 10: return around(deep, n - 1) + 1
        home.switch()
        return 0
def fails(n):
    with Timed("inside", "fails", n):
        home.switch()
        raise ValueError(n)
def outer(n):
    with Timed("inside", "outer", n):
        let = greenlet(lambda: around(straight, n))
        let.switch()
        home.switch()
        let.switch()
def straight(n):
    with Timed("inside", "straight", n): getcurrent().parent.switch()
def main(n):
    with Timed("inside", "main", n):
        for key in (1, 2, 3, 4): lets[key] = greenlet(lambda key=key: around(turns, key))
        lets["fails"] = greenlet(lambda: around(fails, 7))
        lets["outer"] = greenlet(lambda: around(outer, 8))
        while any(not let.dead for let in lets.values()):
            for let in lets.values():
                try: let.dead or let.switch()
                except ValueError: pass
around(main, 9)
print(json.dumps(said))
"""
)
GEVENT = (
    TIMED
    + """
import gevent
def turns(n):
    with Timed("inside", "turns", n):
        gevent.sleep(0.001 * (n % 3))
        around(deep, n)
        gevent.sleep(0)
def deep(n):
    with Timed("inside", "deep", n):
        gevent.sleep(0.001)
        if n % 10: around(deep, n - 1)
def fails(n):
    with Timed("inside", "fails", n):
        gevent.sleep(0)
        raise gevent.GreenletExit
def outer(n):
    with Timed("inside", "outer", n): gevent.spawn(around, straight, n).join()
def straight(n):
    with Timed("inside", "straight", n): gevent.sleep(0.001)
def main(n):
    with Timed("inside", "main", n):
        gevent.joinall([gevent.spawn(around, turns, n) for n in (1, 2, 3, 4)] + [gevent.spawn(around, fails, 7), gevent.spawn(around, outer, 8)])
around(main, 9)
print(json.dumps(said))
"""
)
# Coroutines wait in greenlets that switch to the loop's, as in SQLAlchemy's asyncio extension: util/concurrency.py.
AWAITED = (
    TIMED.replace("def around", "async def around").replace("return function(n)", "return await function(n)")
    + """
import asyncio, sys
from greenlet import getcurrent, greenlet
async def spawn(function, n):
    context = greenlet(function, getcurrent())
    result = context.switch(n)
    while not context.dead:
        try: value = await result
        except BaseException: result = context.throw(*sys.exc_info())
        else: result = context.switch(value)
    return result
def wait(awaitable): return getcurrent().parent.switch(awaitable)
async def read(n):
    with Timed("inside", "read", n):
        await asyncio.sleep(0.001 * (n % 3))
        await asyncio.sleep(0)
        return n
def query(n):
    with Timed("inside", "query", n):
        for i in range(n % 3 + 1): wait(around(read, n * 10 + i))
        return n
async def serve(n):
    with Timed("inside", "serve", n):
        await around(read, n * 10 + 8)
        await spawn(query, n)
        await around(read, n * 10 + 9)
async def stopped(n):
    with Timed("inside", "stopped", n):
        await spawn(endless, n)
def endless(n):
    try:
        while True: wait(around(read, n * 10))
    except asyncio.CancelledError:
        wait(around(read, n * 10 + 1))
        raise
async def main(n):
    with Timed("inside", "main", n):
        task = asyncio.ensure_future(stopped(7))
        await asyncio.gather(*(around(serve, n) for n in range(1, 5)))
        task.cancel()
        try: await task
        except asyncio.CancelledError: pass
asyncio.run(around(main, 9))
print(json.dumps(said))
"""
)
FUNCTIONS = ("turns", "deep", "fails", "outer", "straight", "main")
ARGS = [part for name in FUNCTIONS for part in ("--args", f"__main__.{name}(n) -> return")]


def with_package(venv, python, package):
    if python.origin == "system" or python.number not in TRIED:
        pytest.skip("greenlet is tried with some versions")
    return venv(python, VERSIONS.get(python.number, {}).get(package, package))


def durations(calls):
    """{key: durations, the shortest first}"""
    found = {}
    for key, ns in calls:
        found.setdefault(str(key), []).append(ns)
    return {key: sorted(all_of) for key, all_of in found.items()}


def check_calls(krait, run, functions):
    said = json.loads(run.stdout)
    rows = verb_json(krait, "report", run.path, "--by", "span", "--key", "n", "--limit", "0")["spans"]
    for name in functions:
        least, most = (durations((n, ns) for what, f, n, ns in said if (what, f) == (where, name)) for where in ("inside", "around"))
        list_of = verb_json(krait, "intervals", run.path, "--call", f"__main__.{name}", "--key", "n", "--list")["list"]
        found = durations((call["key"], call["duration_ns"]) for call in list_of)
        assert {key: len(all_of) for key, all_of in found.items()} == {key: len(all_of) for key, all_of in least.items()}, name
        for key, all_of in found.items():
            assert all(a <= b <= c for a, b, c in zip(least[key], all_of, most.get(key, all_of))), (name, key)
        (row,) = verb_json(krait, "intervals", run.path, "--call", f"__main__.{name}")["rows"]
        assert (row["intervals"], row["no_start"], row["no_stop"]) == (len(list_of), 0, 0), name
        mine = {row["key"]: (row["spans"], row["total_ns"]) for row in rows if row["name"] == f"__main__.{name}"}
        assert mine == {key: (len(all_of), sum(all_of)) for key, all_of in found.items()}


@pytest.mark.parametrize("package, program", [("greenlet", GREENLETS), ("gevent", GEVENT)], ids=["greenlet", "gevent"])
def test_calls_that_switch_greenlets_are_those_that_the_program_timed(record, krait, python, venv, package, program):
    run = record.text(with_package(venv, python, package), program, options=[*ARGS, "--no-c-calls"])
    check_calls(krait, run, FUNCTIONS)
    runs = verb_json(krait, "intervals", run.path, "--call", "__main__.straight", "--key", "n", "--steps", "--list")["list"]
    assert len(runs) == 2 and {step["key"] for step in runs} == {"8"}
    within = subprocess.run([krait, "report", run.path, "--within", "__main__.turns:1"], capture_output=True, text=True, check=True)
    assert "within __main__.turns, 1 of 4: " in within.stderr


def test_coroutines_that_wait_in_greenlets_are_those_that_the_program_timed(record, krait, python, venv):
    functions = ("read", "query", "serve", "stopped", "main")
    options = [part for name in functions for part in ("--args", f"__main__.{name}(n) -> return")]
    run = record.text(with_package(venv, python, "greenlet"), AWAITED, options=[*options, "--no-c-calls"])
    check_calls(krait, run, functions)


PAUSED = """
from greenlet import getcurrent, greenlet
import krait, os
home = getcurrent()
def work(n):
    for i in range(2): home.switch()
    return n
lets = {n: greenlet(work) for n in (1, 2, 3, 4)}
lets[1].switch(1)
lets[2].switch(2)
krait.pause()
lets[1].switch(), lets[1].switch()  # it ends
lets[3].switch(3)
krait.resume()
for n in (2, 2, 3, 3, 4, 4, 4): lets[n].switch(*[n] * (n == 4 and not lets[n]))
last = greenlet(work)
last.switch(5)
os._exit(0)
"""


@pytest.mark.few_pythons
def test_greenlets_that_go_on_while_nothing_is_recorded_are_not_paired(record, krait, python, venv):
    options = ["--args", "work(n)", "--no-c-calls"]
    run = record.text(with_package(venv, python, "greenlet"), PAUSED, env={"PYTHONPATH": str(BUILD / "python")}, options=options)
    list_of = verb_json(krait, "intervals", run.path, "--call", "__main__.work", "--key", "n", "--list")["list"]
    assert [call["key"] for call in list_of] == ["4"]
    (row,) = verb_json(krait, "intervals", run.path, "--call", "__main__.work")["rows"]
    assert (row["intervals"], row["no_stop"]) == (1, 3)
    assert row["no_start"] in (0, 2)  # the second and the third: the stack of a greenlet that goes on is stated before Python 3.12


@pytest.mark.few_pythons
def test_without_tasks_the_parts_between_switches_are_steps(record, krait, python, venv):
    run = record.text(with_package(venv, python, "greenlet"), GREENLETS, options=["--no-c-calls", "--no-tasks"])
    done = subprocess.run([krait, "intervals", run.path, "--call", "straight", "--json"], capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (0, 1, 1)
    assert done.stderr.startswith("--call: which steps 1 call of '__main__.straight' had is not known: ")
    (steps,) = verb_json(krait, "intervals", run.path, "--call", "straight", "--steps")["rows"]
    assert (steps["intervals"], steps["no_start"], steps["no_stop"]) == (2, 0, 0)
    within = subprocess.run([krait, "report", run.path, "--within", "straight:2"], capture_output=True, text=True, check=True)
    assert "within straight, 2 of 2: " in within.stderr
