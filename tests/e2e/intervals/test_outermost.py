# SPDX-License-Identifier: Apache-2.0
"""The outermost calls of a recursive function: --call F --outermost, `outermost = true` in a file, --within F:outermost."""

import json
import subprocess

import pytest

from conftest import verb_json
from intervals_made import declare  # noqa: F401  (a fixture)

# f from 1 to 20 us with f inside, g from 30 to 50 us with f and g inside, f from 60 us without an end.
CALLS = """process 4711 python3
exit 0 0
code 1 python app main app.py 1
code 2 python app f app.py 9
code 3 python app g app.py 12
thread 4711 MainThread
0 call 1
1us call 2
2us call 2
3us call 2
5us return
9us return
20us return
30us call 3
31us call 2
32us call 3
33us return
34us return
50us return
60us call 2
61us call 2
"""

ASYNC = """
import asyncio, json

counts = {"walk": 0, "stop": 0}

async def walk(n):
    await asyncio.sleep(0)
    if n: await walk(n - 1)
    await asyncio.sleep(0)

async def stop(n):
    await asyncio.sleep(0)
    try:
        if n: await stop(n - 1)
        else: await asyncio.sleep(10)
    finally:
        await asyncio.sleep(0)

async def main():
    for function, n in (walk, 3), (walk, 0), (stop, 2):
        task = asyncio.ensure_future(function(n))
        counts[function.__name__] += 1
        for turn in range(4): await asyncio.sleep(0)
        if function is stop: task.cancel()
        try: await task
        except asyncio.CancelledError: pass
    if hasattr(asyncio, "eager_task_factory"):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        counts["walk"] += 1
        await walk(1)
    print(json.dumps(counts))

asyncio.run(main())
"""


@pytest.fixture
def calls(synth):
    return synth(CALLS)


def rows(krait, trace, *options):
    return [(row["name"], row["intervals"], row["total_ns"] // 1000, row["no_stop"]) for row in verb_json(krait, "intervals", trace, *options)["rows"]]


def test_inner_calls_count_only_without_the_option(calls, krait):
    assert rows(krait, calls, "--call", "f") == [("app.f", 4, 19 + 7 + 2 + 3, 2)]
    assert rows(krait, calls, "--call", "f", "--outermost") == [("app.f", 2, 19 + 3, 1)]
    both = rows(krait, calls, "--call", "re:^app.[fg]$", "--outermost")
    assert both == [("re:^app.[fg]$", 2, 19 + 20, 1)]  # f inside g is no outermost call of the pattern
    found = verb_json(krait, "intervals", calls, "--call", "f", "--outermost", "--list", "--key", "$thread")["list"]
    assert [(call["begin_ns"] // 1000, call["duration_ns"] // 1000) for call in found] == [(1, 19), (31, 3)]


def test_a_part_of_the_recording_has_its_own_outermost_calls(calls, krait):
    assert rows(krait, calls, "--call", "f", "--outermost", "--from", "2us", "--until", "35us") == [("app.f", 1, 3, 0)]


def test_a_file_declares_it(calls, krait, declare):  # noqa: F811
    own = declare("[interval.outer]\ncall = 'f'\noutermost = true\n[interval.each]\ncall = 'f'\noutermost = false\n")
    assert rows(krait, calls, "-f", own) == [("each", 4, 31, 2), ("outer", 2, 22, 1)]
    for text, why in (
        ("[interval.a]\ncall = 'f'\noutermost = 'yes'\n", "own.toml:3: interval.a.outermost: it has to be true or false"),
        ("[interval.a]\nspan = 'f'\noutermost = true\n", "own.toml:3: interval.a.outermost: 'outermost' goes with 'call'"),
        ("[interval.a]\nstart = 'x'\nstop = 'y'\noutermost = true\n", "own.toml:4: interval.a.outermost: 'outermost' goes with 'call'"),
    ):
        run = subprocess.run([krait, "intervals", calls, "-f", declare(text)], capture_output=True, text=True)
        assert run.returncode != 0 and why in run.stderr
    own = declare("[interval.outer]\ncall = 'f'\n")
    run = subprocess.run([krait, "report", calls, "-f", own, "--within", "outer:outermost"], capture_output=True, text=True)
    assert run.returncode != 0 and "'outer' is declared, and :outermost goes with functions" in run.stderr


def test_within_takes_one_of_them_or_all(calls, krait):
    for within, said, ns in (
        ("f:outermost:2", "within f:outermost, 2 of 2: 3.000 us from 31.00 us on", 3000),
        ("f:outermost:slowest", "within f:outermost, 1 of 2: 19.00 us from 1.000 us on", 19000),
        ("app.f:outermost", "within app.f:outermost, all 2: 22.00 us", 22000),
    ):
        run = subprocess.run([krait, "report", calls, "--json", "--within", within], capture_output=True, text=True, check=True)
        assert said in run.stderr and {f["name"]: f["total_ns"] for f in json.loads(run.stdout)["functions"]}["f"] == ns
    for within, why in (
        ("f:outmost", "did you mean 'f:outermost'?"),
        ("f:outermost:3", "there are 2 of 'f:outermost', and no number 3"),
        ("ff:outermost", "did you mean 'f'?"),
    ):
        run = subprocess.run([krait, "report", calls, "--within", within], capture_output=True, text=True)
        assert run.returncode != 0 and why in run.stderr


def test_it_needs_a_function(calls, krait):
    run = subprocess.run([krait, "intervals", calls, "--span", "f", "--outermost"], capture_output=True, text=True)
    assert run.returncode == 2 and "--outermost needs --call" in run.stderr


@pytest.mark.few_pythons
def test_a_coroutine_that_awaits_its_own_function_is_the_outermost_call(record, krait, python):
    """Also if an exception is thrown into the innermost one, which no step of the others precedes."""
    run = record.text(python, ASYNC)
    for name, count in json.loads(run.stdout).items():
        (row,) = verb_json(krait, "intervals", run.path, "--call", name, "--outermost")["rows"]
        assert (row["intervals"], row["no_stop"], row["no_start"]) == (count, 0, 0), name
