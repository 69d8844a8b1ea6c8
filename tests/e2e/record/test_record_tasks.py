# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio: which one runs, when it stops, what for, and who ends its wait."""

import json
import os

import pytest

from conftest import BUILD, Recorder, verb_json
from package import PACKAGE
from recording import Recording
from tasks_made import merged, runs, spans

# The program notes its own steps: each coroutine here notes its task's name whenever it begins or goes on.
PROGRAM = """
import asyncio, json, sys

steps = []

def here():
    task = asyncio.current_task()
    steps.append(task.get_name())

async def worker(lock, queue):
    here()
    async with lock:
        here()
        await asyncio.sleep(0.001)
        here()
    here()
    await queue.put(1)
    here()

async def kid():
    here()
    await asyncio.sleep(0)
    here()
    raise KeyError("kid")

async def deep(n):
    here()
    if n:
        await deep(n - 1)
        here()
    else:
        await asyncio.sleep(0.002)
        here()

async def inner(stubborn):
    here()
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        here()
        if not stubborn:
            raise
        await asyncio.sleep(0.001)
        here()

async def cancelled(stubborn):
    here()
    await inner(stubborn)
    here()

async def main():
    here()
    lock, queue = asyncio.Lock(), asyncio.Queue()
    workers = [asyncio.get_running_loop().create_task(worker(lock, queue)) for _ in range(3)]
    for number, task in enumerate(workers):
        task.set_name("worker-%d" % number)
    try:
        await asyncio.create_task(kid(), name="kid")
    except KeyError:
        pass
    here()
    await deep(3)
    here()
    for _ in workers:
        await queue.get()
        here()
    for stubborn in (False, True):
        task = asyncio.create_task(cancelled(stubborn), name="stubborn" if stubborn else "cancelled")
        await asyncio.sleep(0.001)
        here()
        task.cancel()
        await asyncio.wait([task])
        here()
    for n in range(40):  # tasks that come and go have each other's addresses
        await asyncio.create_task(deep(0), name="brief-%d" % n)
        here()

asyncio.run(main())
json.dump(steps, sys.stdout)
"""


@pytest.fixture(scope="module")
def recorded(krait, tmp_path_factory):
    """recorded(python): the recording of PROGRAM, one for all that only read it."""
    made = {}

    def once(python):
        if python not in made:
            made[python] = Recorder(krait, tmp_path_factory.mktemp("recorded")).text(python, PROGRAM)
        return made[python]

    return once


ON_FEW = [pytest.param(options, marks=pytest.mark.few_pythons) for options in (["--no-c-calls"], ["--max-overhead", "90"])]


@pytest.mark.parametrize("options", [[], *ON_FEW], ids=["plain", "no-c", "governed"])
def test_tasks_run_as_the_program_says(record, recorded, python, options):
    run = record.text(python, PROGRAM, options=options) if options else recorded(python)
    process = run.main
    names = {d["id"]: d["name"] for d in process.said("task:define")}
    (thread,) = [t for t in process.threads if any(e.name == "task:run" for e in t.read())]
    mine = set(json.loads(run.stdout))
    assert merged([names[t] for t, _ in runs(thread) if names[t] in mine]) == merged(json.loads(run.stdout))
    roots = {d["name"]: process.codes[d["coroutine"]].qualname for d in process.said("task:define") if d["coroutine"]}
    assert roots["cancelled"] == roots["stubborn"] == "cancelled"
    assert roots["kid"] == "kid" and roots["worker-1"] == "worker" and roots["brief-39"] == "deep"
    process.check_balanced()
    assert run.lost == 0


@pytest.mark.every_python
def test_a_wait_says_which_coroutine_waits(recorded, python):
    process = recorded(python).main
    names = {d["id"]: d["name"] for d in process.said("task:define")}
    at = {}
    for e in (e for t in process.threads for e in t.read() if e.name == "task:leave"):
        code = process.codes.get(e.fields["at"])
        at.setdefault(names[e.fields["task"]], []).append(code and f"{code.module}.{code.qualname}")
    assert at["worker-2"] == ["asyncio.locks.Lock.acquire", "asyncio.tasks.sleep", None]
    assert at["brief-3"] == ["asyncio.tasks.sleep", None]
    assert at["kid"][0].endswith("sleep0")


@pytest.mark.few_pythons
def test_steps_end_by_what_ended_them(recorded, python):
    run = recorded(python)
    process = run.main
    names = {d["id"]: d["name"] for d in process.said("task:define")}
    (thread,) = [t for t in process.threads if any(e.name == "task:run" for e in t.read())]
    by_task = {}
    for task, reason in runs(thread):
        by_task.setdefault(names[task], []).append(reason)
    assert by_task["kid"] == ["yielded", "raised"]
    assert by_task["cancelled"] == ["future", "raised"]
    assert by_task["stubborn"] == ["future", "future", "returned"]
    assert by_task["brief-0"] == ["future", "returned"]
    assert by_task["worker-0"] == ["future", "returned"]
    assert by_task["worker-2"] == ["future", "future", "returned"]  # the lock, the sleep
    (main,) = [reasons for reasons in by_task.values() if "task" in reasons]
    assert main[0] == "task" and main[-1] == "returned"


@pytest.mark.few_pythons
def test_a_wait_is_ended_by_a_wake_before_the_task_goes_on(recorded, python):
    run = recorded(python)
    waits, ended = {}, 0
    (thread,) = [t for t in run.main.threads if any(e.name == "task:run" for e in t.read())]
    woken = set()
    for e in thread.read():
        if e.name == "task:wake":
            woken.add(e.fields["on"])
        elif e.name == "task:leave" and e.fields["reason"] == "future":
            waits[e.fields["task"]] = e.fields["on"]
            woken.discard(e.fields["on"])
        elif e.name == "task:run" and e.fields["task"] in waits:
            assert waits.pop(e.fields["task"]) in woken
            ended += 1
    assert ended > 40


def test_a_task_that_is_cancelled_before_it_begins_begins_once(record, python):
    run = record.text(
        python,
        """
        import asyncio
        async def never(): pass
        async def main():
            task = asyncio.get_running_loop().create_task(never())
            task.cancel()
            await asyncio.wait([task])
        asyncio.run(main())
        """,
    )
    run.check()
    told = [e.name for t in run.main.threads for e in t.events if run.main.name_of(e) == "never"]  # the end names the exception alone
    assert told == ["python:throw" if python.number >= (3, 12) else "python:call"]


THROWN = """
import asyncio

class Passes:
    def __await__(self): yield

async def raises(n):
    await (raises(n - 1) if n else asyncio.sleep(10))

async def swallows(n):
    try: await (swallows(n - 1) if n else asyncio.sleep(10))
    except asyncio.CancelledError: pass

async def goes_on(n):
    try: await (goes_on(n - 1) if n else asyncio.sleep(10))
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        raise

async def drives(n):
    if n > 1: await drives(n - 1)
    elif n == 1:
        try: await asyncio.sleep(10)
        except asyncio.CancelledError:
            one = drives(0)
            one.send(None)
            try: one.throw(KeyError())
            except KeyError: raise asyncio.CancelledError
    elif n == 0: await drives(-1)
    else: await Passes()

async def main():
    for function in (raises, swallows, goes_on, drives):
        task = asyncio.get_running_loop().create_task(function(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
asyncio.run(main())
"""


@pytest.mark.pythons(least=(3, 10))  # before, the frames that an exception is thrown past are not all linked
def test_a_task_is_one_though_its_root_calls_itself_and_is_thrown_into(record, python):
    run = record.text(python, THROWN)
    process = run.main
    roots = {d["id"]: process.codes[d["coroutine"]].qualname for d in process.said("task:define") if d["coroutine"]}
    (thread,) = [t for t in process.threads if any(e.name == "task:run" for e in t.read())]
    steps = {}
    for task, reason in runs(thread):
        steps.setdefault((roots[task], task), []).append(reason)
    found = [(root, reasons) for (root, _), reasons in steps.items() if root in THROWN]
    assert [step for step in found if step[0] != "main"] == [
        ("raises", ["future", "raised"]),
        ("swallows", ["future", "returned"]),
        ("goes_on", ["future", "yielded", "yielded", "yielded", "raised"]),
        ("drives", ["future", "raised"]),
    ]
    process.check_balanced()


def test_no_tasks_leaves_them_out(record, any_python):
    run = record.text(any_python, PROGRAM, options=["--no-tasks"])
    assert not [e for t in run.main.threads for e in t.read() if e.name.startswith("task:")]
    assert not run.main.said("task:define")


@pytest.mark.few_pythons
def test_tasks_of_a_recording_that_begins_in_mid_program(record, python, tmp_path):
    program = """
    import asyncio, krait, sys
    async def late():
        await asyncio.sleep(0.001)
    async def main():
        await asyncio.sleep(0.001)
        krait.start(sys.argv[1])
        for n in range(3):
            await asyncio.create_task(late(), name="late-%d" % n)
        krait.stop()
    asyncio.run(main())
    """
    trace = tmp_path / "own"
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    done = python.run(record.script(program), trace, env=env)
    assert done.returncode == 0, done.stderr
    assert {"late-0", "late-1", "late-2"} <= {d["name"] for d in Recording(trace).main.said("task:define")}


# In its own step each task begins a recording; then it begins coroutines, ends some without a wait, and waits. It may call itself,
# or begin a task of the same coroutine in its own step.
BEGINS_IN_STEP = """
import asyncio, krait, sys
trace, how = sys.argv[1:]
async def nothing(): pass
async def deep(n):
    if n: await deep(n - 1)
    else: await asyncio.sleep(0.001)
async def late(begins):
    if begins: krait.start(trace)
    for n in range(3):
        await nothing()
        await asyncio.sleep(0.001)
        await deep(2)
async def recursive(n):
    if n == 3:
        krait.start(trace)
        await recursive(0)
    if n:
        await recursive(n - 1)
        await asyncio.sleep(0.001)
        await recursive(n - 1)
async def cancelled(begins):
    for n in range(3):
        try: await asyncio.sleep(10)
        except asyncio.CancelledError: await nothing()
async def main():
    made = {"late": lambda: late(True), "recursive": lambda: recursive(3), "cancelled": lambda: cancelled(True)}[how]()
    task = asyncio.get_running_loop().create_task(made)
    task.set_name("mine")
    if how == "cancelled":
        await asyncio.sleep(0)
        krait.start(trace)
    for n in range(3 if how == "cancelled" else 0):
        task.cancel()
        await asyncio.sleep(0)
    await task
    krait.stop()
asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["late", "recursive", "cancelled"])
def test_a_task_is_one_though_the_recording_begins_in_its_step(record, krait, python, tmp_path, how):
    trace = tmp_path / "own"
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    done = python.run(record.script(BEGINS_IN_STEP), trace, how, env=env)
    assert done.returncode == 0, done.stderr
    rows = verb_json(krait, "report", trace, "--by", "task")["tasks"]
    assert sorted((row["name"], row["coroutine"], row["tasks"]) for row in rows if row["name"] == "mine") == [("mine", f"__main__.{how}", 1)]
    process = Recording(trace).main
    process.check_balanced()
    (mine,) = {d["id"] for d in process.said("task:define") if d["name"] == "mine"}
    (thread,) = [t for t in process.threads if any(e.name == "task:run" for e in t.read())]
    told = [(e.name, e.fields.get("reason")) for e in thread.read() if e.name in ("task:run", "task:leave") and e.fields["task"] == mine]
    assert [name for name, _ in told] == ["task:run", "task:leave"] * (len(told) // 2)
    assert told[-1][1] == "returned" and [why for _, why in told].count("returned") == 1


LOSES = """
import asyncio, krait, os, signal, time
def leaf():
    pass
async def first():
    with krait.span("first"): pass
    os.kill(os.getppid(), signal.SIGSTOP)
    for _ in range(200_000): leaf()  # the ring is full
    await asyncio.sleep(0)  # so nobody hears of this switch
    leaf()
    with krait.span("first"): pass
async def second():
    os.kill(os.getppid(), signal.SIGCONT)
    time.sleep(0.5)
    for _ in range(10): leaf()
    with krait.span("second"): pass
    time.sleep(0.1)
    await asyncio.sleep(0)
async def main():
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(first()), loop.create_task(second())]
    for task, name in zip(tasks, ("first", "second")): task.set_name(name)
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_after_a_loss_it_is_known_again_which_task_runs(record, krait, python):
    run = record.text(python, LOSES, options=["--ring-size", "256K", "--buffer-size", "64K"], env=PACKAGE)
    assert run.lost > 1000
    names = {d["id"]: d["name"] for d in run.main.said("task:define") if d["coroutine"]}
    lanes = {names[number]: {name for *_, name in entries} for (place, number, _), entries in spans(run.path).items() if place == "TASK"}
    assert lanes == {"first": {"first"}, "second": {"second"}}
    rows = {row["name"]: row for row in verb_json(krait, "report", run.path, "--by", "task")["tasks"]}
    assert 100_000_000 <= rows["second"]["running_ns"] and rows["first"]["running_ns"] < 500_000_000  # not up to where events are there again


# Steps are long enough that pauses begin in them, and tasks go on and end meanwhile.
PAUSES = """
import asyncio, json, sys

def leaf(n): return n

async def worker(name, turns):
    for n in range(turns):
        for _ in range(3000): leaf(n)
        await asyncio.sleep(0)
        await inner(n)

async def inner(n):
    for _ in range(500): leaf(n)
    await asyncio.sleep(0)
    leaf(n)

async def main():
    for n in range(30):
        await asyncio.gather(*(worker(name, 20) for name in "abc"))

asyncio.run(main())
"""


@pytest.mark.pythons(most=(3, 11))  # later ones leave functions out instead
def test_no_task_runs_in_a_pause_of_the_governor(record, python):
    run = record.text(python, PAUSES, options=["--max-overhead", "10", "--ring-size", "16M"])
    assert run.status == 0 and not run.lost
    main, running, unseen, ends = run.main, None, 0, {}
    (thread,) = [t for t in main.threads if any(e.name == "task:run" for e in t.read())]
    events = list(thread.read())
    is_pause = {number for number, code in main.codes.items() if code.module == "krait"}
    for i, e in enumerate(events):
        if e.name == "task:run":
            assert running in (None, e.fields["task"])
            running = e.fields["task"]
        elif e.name == "task:leave":
            assert running == e.fields["task"]
            ends[e.fields["reason"]] = ends.get(e.fields["reason"], 0) + 1
            running = None
        elif e.name == "python:call" and e.code in is_pause and running:
            assert (events[i + 1].name, events[i + 1].fields.get("reason")) == ("task:leave", "unseen")
            unseen += 1
    assert unseen and unseen == ends["unseen"]


# The stack after the pause has the coroutine above all functions of asyncio, so krait defines it before them.
IMPORTED_IN_PAUSE = """
import sys

def leaf(n): return n

while sys.getprofile():
    for n in range(1000): leaf(n)
import asyncio

class Turn:
    def __await__(self): yield

async def worker():
    for n in range(20):
        while not sys.getprofile(): pass
        leaf(n)
        await Turn()

asyncio.run(worker())
"""


@pytest.mark.pythons(most=(3, 11))  # later ones leave functions out instead
def test_tasks_are_seen_where_asyncio_is_imported_in_a_pause(record, python):
    run = record.text(python, IMPORTED_IN_PAUSE, options=["--max-overhead", "10", "--ring-size", "16M"])
    assert run.status == 0
    assert "worker" in {run.main.codes[d["coroutine"]].qualname for d in run.main.said("task:define") if d["coroutine"]}


# The first event after the pause is the end of a task's step: no call is recorded between. Three tasks begin outside of a pause.
ENDS_AFTER_PAUSE = """
import asyncio, sys

def leaf(n): return n

async def worker():
    if not sys.getprofile(): return False
    while sys.getprofile():
        for n in range(1000): leaf(n)
    while not sys.getprofile(): pass
    return True

async def main():
    begun = 0
    while begun < 3: begun += await asyncio.get_running_loop().create_task(worker())

asyncio.run(main())
"""


@pytest.mark.pythons(most=(3, 11))  # later ones leave functions out instead
def test_a_step_ends_though_its_end_is_the_first_event_after_a_pause(record, python):
    run = record.text(python, ENDS_AFTER_PAUSE, options=["--max-overhead", "10", "--ring-size", "16M", "--no-c-calls"])
    assert run.status == 0 and not run.lost
    (worker,) = {d["coroutine"] for d in run.main.said("task:define") if d["coroutine"] and run.main.codes[d["coroutine"]].qualname == "worker"}
    workers = {d["id"] for d in run.main.said("task:define") if d["coroutine"] == worker}
    (thread,) = [t for t in run.main.threads if any(e.name == "task:run" for e in t.read())]
    running, returned = None, set()
    for e in thread.read():
        if e.name == "task:run":
            assert running in (None, e.fields["task"])
            running = e.fields["task"]
        elif e.name == "task:leave":
            running = None
            if e.fields["reason"] == "returned":
                returned.add(e.fields["task"])
    assert len(workers) == 3 and workers <= returned
