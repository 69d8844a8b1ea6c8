# SPDX-License-Identifier: Apache-2.0
"""krait dump: tasks of asyncio, against what the program itself knows of them."""

import json
import os
import re
import subprocess

import pytest

from conftest import BUILD
from running import wait_for

TASKS = """
import asyncio, json, os, threading, time

async def leaf(queue):
    await queue.get()

async def middle(queue):
    try:
        return await leaf(queue)
    finally:
        pass

async def produces():
    await asyncio.sleep(600)
    yield 1

async def consumes():
    async for x in produces():
        pass

class Awaitable:
    def __await__(self):
        return (yield from asyncio.sleep(600).__await__())

async def awaits_object():
    await Awaitable()

def inner():
    while True:
        yield

class YieldsInLoop:  # what its generator yields in a loop over another one, it does not await
    def __await__(self):
        for _ in inner():
            yield

async def yields_in_loop():
    await YieldsInLoop()

async def deep(n):
    await (deep(n - 1) if n else asyncio.sleep(600))

def chain(coroutine):
    frames = []
    while hasattr(coroutine, "cr_frame") or hasattr(coroutine, "gi_frame") or hasattr(coroutine, "ag_frame"):
        kind = "cr" if hasattr(coroutine, "cr_frame") else "gi" if hasattr(coroutine, "gi_frame") else "ag"
        frame = getattr(coroutine, kind + "_frame")
        frames.insert(0, (getattr(frame.f_code, "co_qualname", frame.f_code.co_name), frame.f_code.co_filename, frame.f_lineno))
        coroutine = getattr(coroutine, kind + ("_yieldfrom" if kind == "gi" else "_await"))
    return frames

async def never():
    await asyncio.sleep(600)

async def main():
    queue = asyncio.Queue()
    begun = [middle(queue), awaits_object(), deep(30), yields_in_loop()]
    tasks = [asyncio.create_task(c, name=c.__name__) for c in begun]
    generator = asyncio.create_task(consumes(), name="consumes \\u4e2d")
    unnamed = asyncio.create_task(leaf(queue))
    await asyncio.sleep(0.2)
    known = {t.get_name(): chain(t.get_coro()) for t in tasks + [unnamed]}
    print(os.getpid(), json.dumps(known), flush=True)
    asyncio.create_task(never(), name="never")
    time.sleep(600)

asyncio.run(main())
"""


def dump(krait, *words):
    run = subprocess.run([krait, "dump", "--json", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and not run.stderr, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def stack(task):
    return [(f["function"], f["file"], f["line"]) for f in task["frames"]]


@pytest.mark.every_python
def test_tasks_are_where_the_program_itself_knows_them_to_be(krait, programs, python, run):
    app = programs.start(python, TASKS)
    expected = {name: [tuple(f) for f in frames] for name, frames in json.loads(app.ready).items()}
    tasks = {t["name"]: t for t in dump(krait, app.pid)[0]["tasks"]}
    waiting = {name: stack(tasks[name]) for name in expected}
    assert waiting["awaits_object"].pop(0)[0] == "sleep"  # the wrapper that __await__() returns does not tell the program
    assert waiting == expected and len(expected["deep"]) == 32 and len(expected["yields_in_loop"]) == 2
    assert {t["tid"] for t in tasks.values()} == {app.pid} and all(t["read"] for t in tasks.values())
    assert [f[0] for f in stack(tasks["consumes \u4e2d"])] == ["sleep", "produces", "consumes"]
    states = {name: t["state"] for name, t in tasks.items()}
    assert [name for name, state in states.items() if state == "running"] == ["Task-1"] and states["never"] == "created"
    assert set(states.values()) == {"running", "created", "waiting"} and len(states) == len(expected) + 3
    text = run("dump", app.pid).stdout
    assert re.search(rf"^Task middle of thread {app.pid}  waits\n    (?:Queue\.)?get .*\n    leaf .*\n    middle .*:9$", text, re.M)
    assert re.search(r"^    deep +\S*:\d+  \(31 times\)$", text, re.M)
    assert re.search(rf"^Task never of thread {app.pid}  has not begun\n", text, re.M)


PAIRS = """
import asyncio, os
async def b(): await asyncio.sleep(0)
async def d(): await asyncio.sleep(0)
async def a(): await b()
async def c(): await d()
async def turns():
    while True:
        await a()
        await c()
async def short(): await b()
async def makes():
    while True:
        await asyncio.gather(*(asyncio.create_task(short()) for _ in range(8)))
async def main():
    print(os.getpid(), flush=True)
    await asyncio.gather(makes(), *(turns() for _ in range(3)))
asyncio.run(main())
"""
CALLER = {"__sleep0": {"sleep"}, "sleep": {"b", "d"}, "b": {"a", "short"}, "d": {"c"}, "a": {"turns"}, "c": {"turns"}}


def test_no_task_has_a_stack_that_never_was(krait, programs, python):
    app = programs.start(python, PAIRS)
    wait_for(lambda: len(dump(krait, app.pid)[0]["tasks"]) >= 5, "the tasks")
    seen = dump(krait, "--repeat", 200, "--every", "1ms", app.pid)
    stacks = [[f["function"] for f in t["frames"]] for d in seen for t in d["tasks"] if t["frames"]]
    assert len(stacks) > 300 and {"b", "d", "short"} <= {f for s in stacks for f in s}
    assert not [s for s in stacks if s[-1] not in ("turns", "main", "short", "makes") or any(below not in CALLER[f] for f, below in zip(s, s[1:]))]


NAMES = """
import asyncio, os
async def brief():
    await asyncio.sleep(0)
    await asyncio.sleep(0)
async def main():
    tasks = set()
    print(os.getpid(), flush=True)
    for n in range(1 << 60):
        tasks.add(asyncio.create_task(brief(), name="abcdefghijklmnopqrst"[n % 20] * (40 + n % 20)))
        if len(tasks) > 30:
            await asyncio.sleep(0)
            tasks = {t for t in tasks if not t.done()}
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_no_task_has_a_name_that_never_was(krait, programs, python, rounds):
    """Before 3.13 create_task() names a task when it has made it: until then it is Task-1."""
    app = programs.start(python, NAMES)
    seen = dump(krait, "--repeat", rounds(300, 3000), "--every", "1ms", app.pid)
    names = {t["name"] for d in seen for t in d["tasks"] if t["read"]}
    given = {letter * (40 + i) for i, letter in enumerate("abcdefghijklmnopqrst")}
    assert len(given & names) > 10 and not [name for name in names - given if not re.fullmatch(r"Task-\d+", name)]


def test_programs_without_tasks_have_none(krait, programs, python):
    app = programs.start(python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    assert dump(krait, app.pid)[0]["tasks"] == []


LOOPS = """
import asyncio, os, threading, time

async def waits():
    await asyncio.sleep(600)

async def other(begun):
    asyncio.create_task(waits()).set_name("in the thread")
    await asyncio.sleep(0)
    begun.set()
    await asyncio.sleep(600)

begun = threading.Event()
loop = asyncio.new_event_loop()
kept = loop.create_task(waits())
kept.set_name("of a loop that does not run")
loop.run_until_complete(asyncio.sleep(0))
thread = threading.Thread(target=lambda: asyncio.run(other(begun)), daemon=True)
thread.start()
begun.wait()
print(os.getpid(), thread.native_id, flush=True)
time.sleep(600)
"""


def test_a_task_is_of_the_thread_that_runs_its_loop(krait, programs, python, run):
    app = programs.start(python, LOOPS)
    tasks = {t["name"]: t for t in dump(krait, app.pid)[0]["tasks"]}
    assert tasks["in the thread"]["tid"] == int(app.ready)
    if python.number < (3, 14):  # later ones keep a task with the thread that made it
        assert tasks["of a loop that does not run"]["tid"] is None
        assert "\nTask of a loop that does not run  waits\n" in run("dump", app.pid).stdout
    assert {t["state"] for t in tasks.values()} == {"waiting"}


TREE = """
import asyncio, json, os

SUBCLASS = PYTHON = False  # which
if PYTHON:
    asyncio.Task = asyncio.tasks.Task = asyncio.tasks._PyTask
    asyncio.Future = asyncio.futures.Future = asyncio.futures._PyFuture

async def leaf():
    await asyncio.sleep(600)

async def awaits(*tasks):
    for task in tasks:
        await task

async def gathers(*tasks):
    await asyncio.gather(*tasks)

async def groups():
    if not hasattr(asyncio, "TaskGroup"):
        return await gathers(*(asyncio.create_task(leaf(), name=f"in group {i}") for i in (1, 2)))
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="in group 1")
        group.create_task(leaf(), name="in group 2")

async def waits(*tasks):
    await asyncio.wait(tasks)

async def waits_for(task):
    await asyncio.wait_for(task, 600)

async def shields(task):
    await asyncio.shield(task)

class Written(asyncio.Task):
    pass

def written(loop, coroutine, **more):
    return Written(coroutine, loop=loop, **more)

async def main():
    if SUBCLASS:
        asyncio.get_running_loop().set_task_factory(written)
    shared = asyncio.create_task(leaf(), name="shared")
    one = asyncio.create_task(awaits(shared), name="one")
    two = asyncio.create_task(gathers(one, shared), name="two")
    group = asyncio.create_task(groups(), name="group")
    shield = asyncio.create_task(shields(shared), name="shield")
    wait = asyncio.create_task(waits(shield, shared), name="wait")
    limit = asyncio.create_task(waits_for(wait), name="limit")
    ring = [None]
    async def waits_for_ring():
        await ring[0]
    other = asyncio.create_task(waits_for_ring(), name="ring 2")
    ring[0] = asyncio.create_task(awaits(other), name="ring 1")
    await asyncio.sleep(0.2)
    print(os.getpid(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main(), debug=False)
"""
AWAITS = {
    "one": {"shared"},
    "two": {"one", "shared"},
    "group": {"in group 1", "in group 2"},
    "shield": {"shared"},
    "wait": {"shield", "shared"},
    "limit": {"wait"},
    "ring 1": {"ring 2"},
    "ring 2": {"ring 1"},
}


def awaited(dumped):
    """{name: names of what it awaits}; both directions say the same."""
    name = {t["id"]: t["name"] for t in dumped}
    by = {(name[i], t["name"]) for t in dumped for i in t["awaited_by"]}
    awaits = {t["name"]: {name[i] for i in t["awaits"]} for t in dumped if t["awaits"]}
    assert by == {(awaiter, one) for awaiter, names in awaits.items() for one in names}
    return awaits


@pytest.mark.every_python
def test_below_a_task_are_the_tasks_that_it_awaits(krait, programs, python, run):
    """One of their functions is decorated."""
    decorated = TREE.replace("import asyncio", "import asyncio, krait", 1).replace("async def leaf", "@krait.span('leaf')\nasync def leaf")
    app = programs.start(python, decorated, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    tasks = dump(krait, app.pid)[0]["tasks"]
    assert "recorded" not in str(tasks) + run("dump", app.pid).stdout
    assert len({t["name"] for t in tasks}) == len(tasks) == 12 and awaited(tasks) == AWAITS
    found = re.findall(rf"^( *)Task (.+) of thread {app.pid}  (.*)$", run("dump", app.pid).stdout, re.M)
    tree = [(len(indent) // 4, task) for indent, task, _ in found]
    again = sorted(task for _, task, what in found if what == "is shown above")
    assert tree[tree.index((0, "two")) + 1] in [(1, "one"), (1, "shared")]
    group = tree.index((0, "group")) + 1
    assert sorted(tree[group : group + 2]) == [(1, "in group 1"), (1, "in group 2")]
    assert again[0].startswith("ring ") and again[1:] == ["shared"] * 3
    assert {task for depth, task in tree if depth == 0} - {"ring 1", "ring 2"} == {"Task-1", "two", "group", "limit"}
    assert re.search(r"^        sleep .*\n        leaf .*$", run("dump", app.pid).stdout, re.M)


@pytest.mark.pythons(most=(3, 13))
@pytest.mark.parametrize("kind", ["PYTHON", "SUBCLASS"])
def test_tasks_of_other_classes_await_as_well(krait, programs, python, kind):
    app = programs.start(python, TREE.replace("False  # which", f"False; {kind} = True"))
    tasks = {t["name"]: t for t in dump(krait, app.pid)[0]["tasks"]}
    assert awaited(tasks.values()) == AWAITS and {t["tid"] for t in tasks.values()} == {app.pid}
    assert [f[0] for f in stack(tasks["shared"])][-2:] == ["sleep", "leaf"]  # below a method of a future that is written in Python
