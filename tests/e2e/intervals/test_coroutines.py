# SPDX-License-Identifier: Apache-2.0
"""Calls of coroutines as intervals: from their first step to their last, with their arguments, by the program's own clock."""

import json
import subprocess

import pytest

from conftest import BUILD, verb_json
from peak import peak_kib

PROGRAM = """
import asyncio, json, time, types

said = []

class Timed:
    def __init__(self, *what): self.what = what
    def __enter__(self): self.begin = time.perf_counter_ns()
    def __exit__(self, *error): said.append((*self.what, self.begin, time.perf_counter_ns() - self.begin))

async def around(function, n):
    with Timed("around", function.__name__, n):
        return await function(n)

async def read(n):
    with Timed("inside", "read", n):
        await asyncio.sleep(0.001 * (n % 3))
        await asyncio.sleep(0)
        said.append(("returns", "read", n, 0, 0))
        return n * 2

async def deep(n):
    with Timed("inside", "deep", n):
        await asyncio.sleep(0.001)
        if n % 10: await around(deep, n - 1)
        await asyncio.sleep(0)

async def fails(n):
    with Timed("inside", "fails", n):
        await asyncio.sleep(0)
        raise ValueError(n)

async def stopped(n):
    with Timed("inside", "stopped", n):
        try:
            await around(read, n)
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await around(read, n + 1)
            raise

async def numbers(n):
    for i in range(2):
        await around(read, n + i)
        yield i

async def serve(n):
    with Timed("inside", "serve", n):
        for i in range(3): await around(read, n * 100 + i)
        async for i in numbers(n * 100 + 10): await around(read, n * 100 + 20 + i)
        await around(deep, n * 10 + 3)
        try: await around(fails, n)
        except ValueError: pass
        task = asyncio.ensure_future(stopped(n * 100 + 50))
        await asyncio.sleep(0.004)
        task.cancel()
        try: await task
        except asyncio.CancelledError: pass
        ready = asyncio.ensure_future(turns(n))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ready.cancel()
        try: await ready
        except asyncio.CancelledError: pass

async def turns(n):
    with Timed("inside", "turns", n):
        try:
            while True: await asyncio.sleep(0)
        finally:
            await around(read, n * 100 + 60)

@types.coroutine
def passes(): yield

async def driven(n):
    await passes()
    return n

async def main():
    await asyncio.gather(*(around(serve, n) for n in range(4)))

asyncio.run(main())
each = [driven(n) for n in (1, 2)]
for turn in range(2):
    for one in each:
        try: one.send(None)
        except StopIteration: pass
print(json.dumps(said))
"""
FUNCTIONS = ("read", "deep", "fails", "stopped", "turns", "serve")
ARGS = [part for name in (*FUNCTIONS, "driven") for part in ("--args", f"__main__.{name}(n) -> return")]


def told(run):
    """What the program says: by function the keys in the order of their begins, and the bounds of each call's duration."""
    said = json.loads(run.stdout)
    order = {name: [n for what, f, n, *_ in sorted(said, key=lambda s: s[3]) if (what, f) == ("inside", name)] for name in FUNCTIONS}
    bounds = {(f, n): [None, None] for _, f, n, *_ in said}
    for what, f, n, _, ns in said:
        if what != "returns":
            bounds[f, n][what == "around"] = ns
    return order, bounds


def calls(krait, run, name, *options):
    return verb_json(krait, "intervals", run.path, "--call", f"__main__.{name}", "--key", "n", "--list", *options)["list"]


@pytest.mark.few_pythons
def test_calls_of_coroutines_are_those_that_the_program_timed(record, krait, python):
    run = record.text(python, PROGRAM, options=ARGS)
    order, bounds = told(run)
    rows = verb_json(krait, "report", run.path, "--by", "span", "--key", "n", "--limit", "0")["spans"]
    for name in FUNCTIONS:
        found = calls(krait, run, name)
        assert [int(call["key"]) for call in found] == order[name], name
        for call in found:
            least, most = bounds[name, int(call["key"])]
            assert least <= call["duration_ns"] <= (most or call["duration_ns"]), (name, call)
        (row,) = verb_json(krait, "intervals", run.path, "--call", f"__main__.{name}")["rows"]
        assert (row["intervals"], row["no_start"], row["no_stop"]) == (len(found), 0, 0)
        mine = {row["key"]: (row["spans"], row["total_ns"]) for row in rows if row["name"] == f"__main__.{name}"}
        assert mine == {call["key"]: (1, call["duration_ns"]) for call in found}
    steps = calls(krait, run, "read", "--steps")
    assert {int(step["key"]) for step in steps} == set(order["read"]) and len(steps) >= 2 * len(order["read"])
    by_result = verb_json(krait, "intervals", run.path, "--call", "__main__.read", "--key", "return", "--by", "key")["rows"]
    assert {int(row["key"]): row["intervals"] for row in by_result if row["key"] is not None} == {2 * n: 1 for what, _, n, *_ in json.loads(run.stdout) if what == "returns"}
    within = subprocess.run([krait, "report", run.path, "--within", "__main__.serve:slowest"], capture_output=True, text=True, check=True)
    slowest = max(calls(krait, run, "serve"), key=lambda call: call["duration_ns"])
    assert f"within __main__.serve, {calls(krait, run, 'serve').index(slowest) + 1} of 4: " in within.stderr


@pytest.mark.few_pythons
def test_coroutines_that_no_task_runs_have_steps_alone(record, krait, python):
    run = record.text(python, PROGRAM, options=[*ARGS, "--call-sites"])
    assert [int(call["key"]) for call in calls(krait, run, "read")] == told(run)[0]["read"]  # however many sites they are called from
    done = subprocess.run([krait, "intervals", run.path, "--call", "__main__.driven", "--json"], capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (0, 2, 2)
    assert done.stderr == (
        "--call: which steps 2 calls of '__main__.driven' had is not known: no task ran them, or events are missing; --steps takes each step\n"
    )
    (steps,) = verb_json(krait, "intervals", run.path, "--call", "__main__.driven", "--steps")["rows"]
    assert steps["intervals"] == 4
    within = subprocess.run([krait, "report", run.path, "--within", "__main__.passes:2"], capture_output=True, text=True, check=True)
    assert "2 of 4" in within.stderr


SWAPPED = """
import asyncio, types
@types.coroutine
def passes(): yield
async def alone(n): await passes()
def drives(one):
    try:
        while True: one.send(None)
    except StopIteration: pass
async def driven(n):
    for i in range(3): await passes()
    return n
async def main():
    for n in range(2): drives(alone(n))
    async def drive(first, other):
        first.send(None)
        for i in range(6):
            await passes()
            try: other.send(None)
            except StopIteration: return
    a, b = driven(1), driven(2)
    await asyncio.gather(drive(a, b), drive(b, a))
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_coroutines_that_others_drive_in_turn_are_not_paired(record, krait, python):
    run = record.text(python, SWAPPED, options=["--no-c-calls", "--args", "driven(n)"])
    assert calls(krait, run, "driven") == []
    within = subprocess.run([krait, "report", run.path, "--within", "__main__.alone:2"], capture_output=True, text=True, check=True)
    assert "within __main__.alone, 2 of 4: " in within.stderr


PAUSED = """
import asyncio, json, krait, time

ends = {}

async def read(n):
    for event in waits[n]: await event.wait()

async def reads():
    for n in (1, 2, 3): await read(n)

async def main():
    global waits
    waits = {n: [asyncio.Event(), asyncio.Event()] for n in (1, 2, 3)}
    task = asyncio.ensure_future(reads())
    await asyncio.sleep(0)
    krait.pause()
    for event in (*waits[1], waits[2][0]):  # the first read ends, and the second one begins and goes on
        event.set()
        await asyncio.sleep(0.001)
    krait.resume()
    for event in (waits[2][1], *waits[3]):
        event.set()
        await asyncio.sleep(0.001)
    await task

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_what_ends_while_nothing_is_recorded_is_not_paired(record, krait, python):
    run = record.text(python, PAUSED, env={"PYTHONPATH": str(BUILD / "python")}, options=["--args", "read(n)"])
    assert [call["key"] for call in calls(krait, run, "read")] == ["3"]
    (row,) = verb_json(krait, "intervals", run.path, "--call", "__main__.read")["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (1, 1, 1)


def test_tasks_that_have_ended_take_no_memory(krait, synth):
    tasks = 12_000
    each = (f"{i * 4}us call 1\n{i * 4 + 1}us run {i}\n{i * 4 + 2}us leave {i} 3\n{i * 4 + 3}us return\n" for i in range(1, tasks + 1))
    folder = synth(f"process 7 python3\ncode 1 python m work m.py 1\nsuspends 1 0\nthread 7\n{''.join(each)}exit 0 0\n")
    (row,) = verb_json(krait, "intervals", folder, "--call", "m.work")["rows"]
    assert (row["intervals"], row["no_start"], row["no_stop"]) == (tasks, 0, 0)
    report = peak_kib(krait, "report", folder)
    for options in ([], ["--steps"]):
        assert (peak_kib(krait, "intervals", folder, "--call", "m.work", *options) - report) * 1024 < 112 * tasks, options
