# SPDX-License-Identifier: Apache-2.0
"""krait report --by task: what tasks of asyncio ran and waited for."""

import itertools
import json
import re
import subprocess

import pytest

from conftest import verb_json
from exported import export  # noqa: F401  (a fixture)
from report_made import report_on_terminal
from tasks_made import GREENLETS, THREE_GREENLETS, last_moment

PROGRAM = """
import asyncio, time

async def sleeper():
    await asyncio.sleep(0.05)

async def holder(lock):
    async with lock:
        await asyncio.sleep(0.03)

async def taker(queue):
    await queue.get()

async def burner():
    time.sleep(0.02)  # the first steps of the other tasks are over, and no wait of theirs ends before the next turn of the loop
    for _ in range(3):
        sum(range(20000))
        await asyncio.sleep(0)

async def main():
    lock, queue = asyncio.Lock(), asyncio.Queue()
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(c) for c in (sleeper(), sleeper(), holder(lock), holder(lock), taker(queue), burner())]
    tasks[0].set_name("first")
    await asyncio.sleep(0.01)
    await queue.put(1)
    await asyncio.gather(*tasks)

asyncio.run(main())
"""

BLOCKED = 20_000_000  # for as long, at least, the burner keeps all others waiting

WAITS = {"timer_ns", "lock_ns", "queue_ns", "socket_ns", "child_ns", "task_ns", "future_ns"}


def test_a_narrow_terminal_keeps_what_was_waited_for_longest(record, krait, any_python):
    """Before the waits it leaves out the steps; what the order is by stays."""
    trace = record.text(any_python, PROGRAM).path

    def titles(*options):
        text = re.sub("\033\\[[0-9;]*m", "", report_on_terminal(krait, 80, trace, "--by", "task", *options, notes=True))
        left_out = re.findall(r"\w+", text.partition("columns left out: ")[2].partition(";")[0])
        return next(line.split() for line in text.splitlines() if "coroutine" in line), left_out

    rows = verb_json(krait, "report", trace, "--by", "task")["tasks"]
    waits = sorted(WAITS, key=lambda wait: -sum(row[wait] for row in rows))
    shown, left_out = titles()
    assert "steps" in left_out and waits[0][:-3] in shown and waits[1][:-3] in shown
    times = {key: sum(row[f"{key}_ns"] for row in rows) for key in [wait[:-3] for wait in WAITS] + ["ready"]}
    assert min(times[title] for title in shown if title in times) >= max(times[title] for title in left_out if title in times)
    assert "lock" in titles("--sort", "lock")[0]


@pytest.mark.few_pythons
def test_tasks_are_split_by_what_they_waited_for(record, krait, python):
    trace = record.text(python, PROGRAM).path
    rows = {(row["coroutine"].split(".")[-1], row["name"]): row for row in verb_json(krait, "report", trace, "--by", "task")["tasks"]}

    named, other = rows["sleeper", "first"], rows["sleeper", None]
    assert (named["tasks"], named["steps"]) == (other["tasks"], other["steps"]) == (1, 2)
    assert named["timer_ns"] == named["waiting_ns"] >= BLOCKED
    assert named["running_ns"] + named["timer_ns"] >= 49_900_000  # the step that begins to sleep, and the sleep; clocks may differ by a little

    holders = rows["holder", None]
    assert holders["tasks"] == 2 and holders["steps"] == 5
    assert holders["timer_ns"] >= BLOCKED and holders["lock_ns"] >= BLOCKED
    assert holders["running_ns"] + holders["timer_ns"] >= 59_900_000 and holders["waiting_ns"] == holders["timer_ns"] + holders["lock_ns"]
    assert rows["taker", None]["queue_ns"] == rows["taker", None]["waiting_ns"] >= BLOCKED
    burner = rows["burner", None]
    assert burner["steps"] == 4 and burner["waiting_ns"] == 0 and burner["ready_ns"] > 0
    assert BLOCKED <= burner["longest_ns"] <= burner["running_ns"]
    for row in rows.values():
        assert sum(row[wait] for wait in WAITS) == row["waiting_ns"]


UNNAMED = """
import asyncio, sys

class Own(asyncio.tasks._PyTask):
    pass

async def child():
    await asyncio.sleep(0.001)

async def main():
    loop = asyncio.get_running_loop()
    made = [Own(child(), loop=loop), asyncio.Task(child(), loop=loop), asyncio.Task(child(), loop=loop, name="")]
    if sys.version_info >= (3, 12):
        made += [kind(child(), loop=loop, eager_start=True) for kind in (Own, asyncio.Task)]
    made.append(asyncio.Task(child(), loop=loop, name="named"))
    await asyncio.gather(*made)

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_tasks_without_a_name_are_one_row(record, krait, python):
    trace = record.text(python, UNNAMED).path
    rows = [row for row in verb_json(krait, "report", trace, "--by", "task")["tasks"] if row["coroutine"].endswith("child")]
    assert {row["name"]: row["tasks"] for row in rows} == {None: 5 if python.number >= (3, 12) else 3, "named": 1}


IN_EACH_OTHER = """
import asyncio

class Own(asyncio.tasks._PyTask):
    pass

async def helper():
    await asyncio.sleep(0)

async def inner():
    await helper()
    await helper()

async def outer(kind):
    await helper()
    task = kind(inner(), loop=asyncio.get_running_loop(), eager_start=True)
    await helper()
    await task

async def main():
    loop = asyncio.get_running_loop()
    await asyncio.gather(asyncio.Task(outer(Own), loop=loop), Own(outer(asyncio.Task), loop=loop))

asyncio.run(main())
"""


@pytest.mark.few_pythons
@pytest.mark.pythons(least=(3, 12))
def test_tasks_of_python_and_of_c_begin_in_each_other(record, krait, python):
    """asyncio knows them apart from 3.14 on."""
    trace = record.text(python, IN_EACH_OTHER).path
    rows = verb_json(krait, "report", trace, "--by", "task")["tasks"]
    found = {row["coroutine"].split(".")[-1]: (row["tasks"], row["steps"]) for row in rows if row["coroutine"].startswith("__main__")}
    assert found == {"main": (1, 2), "outer": (2, 8), "inner": (2, 6)}


def test_a_range_cuts_what_tasks_did(record, krait, any_python):
    trace = record.text(any_python, PROGRAM).path
    whole = verb_json(krait, "report", trace, "--by", "task")["tasks"]
    assert whole and not verb_json(krait, "report", trace, "--by", "task", "--until", "1ns")["tasks"]


def test_a_thread_chooses_the_tasks_that_ran_in_it(synth, krait, run):
    folder = synth(
        """
        process 7 python3
        code 1 python m work m.py 1
        task 1 1 one
        task 2 1 other
        thread 7 first
        1us run 1
        2us leave 1 3
        thread 8 second
        1us run 2
        2us leave 2 3
        """
    )

    def ran(*options):
        return [row["name"] for row in verb_json(krait, "report", folder, "--by", "task", "--sort", "name", *options)["tasks"]]

    assert (ran(), ran("--thread", "8"), ran("--thread", "f*")) == (["one", "other"], ["other"], ["one"])
    assert "no tasks were recorded on those threads" in run("report", folder, "--by", "task", "--thread", "9").stderr


def test_a_recording_without_tasks_says_so(record, krait, synth, any_python):
    """And where to look for work for executors, if there is some; that command works."""
    trace = record.text(any_python, "print(1)").path
    done = subprocess.run([krait, "report", trace, "--by", "task"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "") and "no tasks were recorded" in done.stderr and "executors" not in done.stderr
    work = synth("process 5 python3\nthread 5 A\n10us submit 1\n20us result 1\nthread 6 B\n15us start 1\nexit 0 0\n")
    said = subprocess.run([krait, "report", work, "--by", "task"], capture_output=True, text=True).stderr
    start, stop, key = re.search(r"no tasks were recorded\nwork for executors does not count as tasks; .*: krait intervals TRACE --start '(.*)' --stop '(.*)' --key (.*) --by function\n", said).groups()
    (row,) = verb_json(krait, "intervals", work, "--start", start, "--stop", stop, "--key", key, "--by", "function")["rows"]
    assert (row["intervals"], row["total_ns"]) == (1, 5000)
    done = subprocess.run([krait, "report", trace, "--by", "task", "--tree"], capture_output=True, text=True)
    assert done.returncode == 2 and "--tree goes with --by function, thread, process or span" in done.stderr


@pytest.mark.few_pythons
def test_the_tasks_at_one_moment_are_a_tree_of_who_waits_for_whom(record, python, run, krait):
    recording = record.text(
        python,
        """
        import asyncio, time
        async def leaf():
            await asyncio.sleep(0)
            time.sleep(0.2)  # the moment: it runs, and blocks the others
        async def middle(): await asyncio.create_task(leaf())
        async def locked(lock):
            async with lock: pass
        async def main():
            lock = asyncio.Lock()
            await lock.acquire()
            other = asyncio.create_task(locked(lock))
            await asyncio.create_task(middle())
            lock.release()
            await other
        asyncio.run(main())
        """,
    )
    steps = verb_json(krait, "intervals", recording.path, "--call", "leaf", "--list")["list"]
    blocking = max(steps, key=lambda step: step["duration_ns"])
    assert blocking["duration_ns"] >= 200_000_000
    at = ["--by", "task", "--at", f"{(blocking['begin_ns'] + 100_000_000) / 1e9:.9f}s"]
    rows = verb_json(krait, "report", recording.path, *at)["tasks"]
    assert [(r["state"], r["depth"], r["task"].split()[0].split(".")[-1]) for r in rows] == [("task", 0, "main"), ("task", 1, "middle"), ("running", 2, "leaf"), ("lock", 0, "locked")]
    assert rows[0]["waits_for"] == rows[1]["id"] and rows[1]["waits_for"] == rows[2]["id"] and rows[2]["waits_for"] is None
    assert 90_000_000 < rows[2]["for_ns"] < 110_000_000
    table = run("report", recording.path, *at).stdout.splitlines()
    assert re.search(r"^running +\d.* ms +\d+ +- +Task-\d +    __main__.leaf$", table[3])
    columns = [lines[0].split()[-2:] for lines in (table, run("report", recording.path, "--by", "task").stdout.splitlines())]
    assert columns == [["name", "coroutine"]] * 2
    assert [(r["name"], r["coroutine"]) for r in rows[:2]] == [("Task-1", "__main__.main"), (rows[1]["task"].split()[-1], "__main__.middle")]
    assert "no tasks at that time" in run("report", recording.path, "--by", "task", "--at", "99999").stderr


NURSERIES = """
process 7 python3
code 1 python m main m.py 1
code 2 python trio._core._run Nursery._nested_child_finished run.py 1
task 1 1 main
task 2 1 starter
task 3 1 child
task 4 1 other
thread 7
0us nursery 2 64
0us nursery 3 128
0us nursery 4 64
1us run 1
2us leave 1 1 64 2
3us run 2
4us leave 2 1 128 2
5us run 4
6us leave 4 1 998
7us run 3
20us nursery 3 64
21us wake 128
50us leave 3 3
60us run 2
70us leave 2 3
"""


def test_a_task_stands_above_those_of_the_nursery_that_it_waits_for(synth, krait):
    """One of them moves there when it has started."""
    folder = synth(NURSERIES)

    def at(us):
        return [(r["depth"], r["task"].split()[0], r["state"]) for r in verb_json(krait, "report", folder, "--by", "task", "--at", f"{us}us")["tasks"]]

    assert at(10) == [(0, "main", "task"), (1, "starter", "task"), (2, "child", "running"), (1, "other", "future")]
    assert at(30) == [(0, "main", "task"), (1, "starter", "ready"), (1, "child", "running"), (1, "other", "future")]
    assert at(55) == [(0, "main", "task"), (1, "starter", "ready"), (1, "other", "future")]


def test_a_quiet_task_of_a_recording_without_an_end_still_waits(synth, krait, run):
    """The recording still runs, or its collector was killed. Where the end is known, nothing is behind it."""
    at = ["--by", "task", "--at", "1s"]
    folder = synth(NURSERIES)
    done = run("report", folder, *at)
    assert "nothing was recorded after 70.00 us: these tasks are as they were then\n" in done.stderr and "unfinished: " in done.stderr
    assert [(row["name"], row["state"], row["for_ns"]) for row in verb_json(krait, "report", folder, *at)["tasks"]] == [("main", "task", 999_998_000), ("other", "future", 999_994_000)]
    assert "the recording is from 0 to 70.00 us\n" in run("report", synth(NURSERIES.replace("python3\n", "python3\nexit 0 0\n"), "ended"), *at).stderr


SEVERAL = """
process 7 python3
code 1 python m main m.py 1
task 1 1 main
task 2 1 first
task 3 1 last
task 4 1 later
thread 7
0us nursery 2 64
0us nursery 3 64
1us run 1
2us leave 1 7 64 1
3us run 2
5us leave 2 3
6us run 3
8us leave 3 3
9us wakeby 1 2
10us wake 64
20us run 1
30us leave 1 3
31us run 4
32us leave 4 1 64 1
34us wake 64
40us run 4
41us leave 4 3
"""


def test_a_task_that_waits_for_several_says_whose_end_woke_it(synth, krait):
    """The loop ends the wait, outside of all tasks; the one that ended last need not be the one. Another future may have the address later."""
    folder = synth(SEVERAL)

    def at(us):
        return [(r["depth"], r["task"].split()[0], r["state"], r["woken_by"]) for r in verb_json(krait, "report", folder, "--by", "task", "--at", f"{us}us")["tasks"]]

    assert at(4) == [(0, "main", "task", None), (1, "first", "running", None)]
    assert at(7) == [(0, "main", "task", None), (1, "last", "running", None)]
    assert at(15) == [(0, "main", "ready", 2)]
    assert at(33) == [(0, "later", "future", None)] and at(36) == [(0, "later", "ready", None)]


SHARED = """
process 7 python3
code 1 python m main m.py 1
task 1 1 first
task 2 1 second
task 3 1 third
task 4 1 ender
thread 7
0us call 1
1us run 1
2us leave 1 2 4
3us run 2
4us leave 2 2 4
5us run 3
6us leave 3 1 64
7us run 1
8us leave 1 1 64
9us run 4
10us leave 4 3
12us run 4
13us wake 64
14us leave 4 3
15us run 1
16us leave 1 1 80
17us run 4
18us wake 64
19us leave 4 3
20us return
"""


def tasks_at(krait, folder, us, *keys):
    """What is told of each task at that time, by the first word of its label."""
    rows = verb_json(krait, "report", folder, "--by", "task", "--at", f"{us}us")["tasks"]
    return {row["task"].split()[0]: tuple(row[key] for key in keys) for row in rows}


def test_all_that_wait_for_one_task_or_future_are_woken_by_it(synth, krait):
    """One that has gone on, and waits for something else now, is not."""
    folder = synth(SHARED)

    def at(us):
        return {name: told for name, told in tasks_at(krait, folder, us, "state", "waits_for", "woken_by").items() if name != "ender"}

    assert at(6.5) == {"first": ("task", 4, None), "second": ("task", 4, None), "third": ("future", None, None)}
    assert at(11) == {"first": ("future", None, None), "second": ("ready", None, 4), "third": ("future", None, None)}
    assert at(13.5) == {"first": ("ready", None, 4), "second": ("ready", None, 4), "third": ("ready", None, 4)}
    assert at(18.5)["first"] == ("future", None, None)


def test_a_greenlet_that_runs_says_who_switched_to_it(synth, krait):
    """The hub tells nothing, nor does the main greenlet, which is no task."""
    folder = synth(GREENLETS)

    def at(us):
        return tasks_at(krait, folder, us, "state", "woken_by")

    assert at(5) == {"first": ("running", None)}
    assert at(15) == {"first": ("switch", None), "second": ("running", 1)}
    assert at(25) == {"first": ("running", 2), "second": ("switch", None)}
    assert at(35)["gevent.hub"] == ("running", None)
    assert at(45)["second"] == at(65)["second"] == ("running", None)


PARENTS = (
    THREE_GREENLETS
    + """
1us parent 1 0
1us parent 2 1
1us run 1
10us leave 1 5 2
10us run 2
20us leave 2 5 0
25us parent 2 3
30us run 1
40us leave 1 5 2
40us run 2
50us leave 2 5 3
50us await 2 1 0
50us nursery 1 77
50us run 3
60us leave 3 5 0
70us run 2
80us leave 2 5 3
80us await 2 0 77
80us run 3
85us leave 3 5 1
85us run 1
90us leave 1 3
95us return
"""
)


def test_greenlets_say_whom_they_switched_to_and_their_parents(synth, krait, run, tmp_path):
    """Those of the hub are left out. A part of the recording says the same."""
    folder = synth(PARENTS)

    def at(us, of=folder):
        return tasks_at(krait, of, us, "state", "depth", "waits_for", "switched_to", "parent")

    assert at(15) == {"first": ("switch", 0, 2, 2, 0), "second": ("running", 1, None, None, 1)}
    assert at(22)["second"] == ("switch", 1, None, 0, 1)
    assert at(45) == {"first": ("switch", 0, None, 2, 0), "second": ("running", 0, None, None, None)}
    assert at(55)["second"] == ("task", 0, 1, None, None) and at(55)["first"][1] == 1
    assert at(75)["second"] == ("running", 0, None, None, None)
    assert at(82)["second"] == ("task", 0, None, None, None) and at(82)["first"][1] == 1
    assert (at(92)["second"], "first" in at(92)) == (("task", 0, None, None, None), False)
    part = tmp_path / "part"
    run("cut", folder, "-o", part, "--from", "53us", "--until", "83us")
    assert (at(2, part), at(27, part)) == (at(55), at(80))
    (row,) = [r for r in verb_json(krait, "report", folder, "--by", "task")["tasks"] if r["name"] == "second"]
    assert (row["task_ns"], row["switch_ns"]) == (35_000, 20_000)
    assert "switched to" in run("report", folder, "--by", "task", "--at", "22us").stdout.splitlines()[0]


HUB = THREE_GREENLETS + """
1us run 2
5us leave 2 5 1
5us run 1
10us leave 1 5 3
10us run 3
20us leave 3 5 2
20us wakeby 2 1
20us run 2
30us leave 2 5 3
30us run 3
40us leave 3 5 2
40us wakeby 2 3
40us run 2
50us leave 2 3
60us return
"""


def test_a_greenlet_that_the_hub_runs_says_for_whom(synth, krait):
    """A callback of the hub's own says nothing."""
    folder = synth(HUB)

    def at(us):
        return tasks_at(krait, folder, us, "state", "woken_by")

    assert at(25)["second"] == ("running", 1) and at(45)["second"] == ("running", None)
    (row,) = [r for r in verb_json(krait, "report", folder, "--by", "task")["tasks"] if r["name"] == "second"]
    assert (row["running_ns"], row["switch_ns"], row["ready_ns"]) == (24_000, 25_000, 0)


CHILDREN = """
import asyncio, sys, time

def blocks(): time.sleep(0.2)  # the moment: nobody else can run

async def ends(): pass
async def waits(event): await event.wait()
async def busy(event):
    for _ in range(3): await asyncio.sleep(0)  # the others have begun by then
    blocks()
    event.set()
async def nested(event): await asyncio.gather(waits(event), ends())
def all_of(event): return [ends(), busy(event), waits(event), nested(event)]

async def gathers(event, before): await asyncio.gather(before, *all_of(event))
async def groups(event, before):
    async with asyncio.TaskGroup() as group:
        for each in all_of(event): group.create_task(each)

async def main(how):
    event, before = asyncio.Event(), asyncio.ensure_future(ends())
    await before  # its address may come again, and it is not there any more
    outside = asyncio.ensure_future(waits(event))
    outside.set_name("outside")
    await {"gather": gathers, "group": groups}[how](event, before)
    await outside

asyncio.run(main(sys.argv[1]))
"""


def check_children(record, python, krait, how):
    recording = record.text(python, CHILDREN, how)
    (call,) = verb_json(krait, "intervals", recording.path, "--call", "blocks", "--list")["list"]
    rows = verb_json(krait, "report", recording.path, "--by", "task", "--at", f"{(call['begin_ns'] + 100_000_000) / 1e9:.9f}s")["tasks"]
    found = [(r["depth"], r["task"].split()[0].split(".")[-1], r["state"]) for r in rows]
    assert found[0] == (0, "main", "task") and (0, "outside", "lock") in found
    below = [row for row in found[1:] if row[1] != "outside"]
    assert sorted(below) == [(1, "busy", "running"), (1, "nested", "task"), (1, "waits", "lock"), (2, "waits", "lock")]
    assert below.index((2, "waits", "lock")) == below.index((1, "nested", "task")) + 1
    tasks = verb_json(krait, "report", recording.path, "--by", "task")["tasks"]
    counts = {row["coroutine"].split(".")[-1]: row["tasks"] for row in tasks if row["name"] is None and row["coroutine"].startswith("__main__")}
    assert counts == {"main": 1, "ends": 3, "busy": 1, "waits": 2, "nested": 1}


@pytest.mark.every_python
def test_a_task_stands_above_those_that_it_gathers(record, python, krait):
    check_children(record, python, krait, "gather")


@pytest.mark.every_python
@pytest.mark.pythons(least=(3, 11))
def test_a_task_stands_above_those_of_its_group(record, python, krait):
    check_children(record, python, krait, "group")


# Each waits in its own way; `busy` is at the moment while it does.
WAYS = """
import asyncio, sys

this_task = asyncio.current_task

def moment(): pass

def started(*coroutines):
    tasks = [asyncio.ensure_future(c) for c in coroutines]
    for task, coroutine in zip(tasks, coroutines): task.set_name(coroutine.__name__)
    return tasks

async def ends(): pass
async def waits(event): await event.wait()
async def busy(event):
    for _ in range(5): await asyncio.sleep(0)  # the others have begun by then
    moment()
    event.set()
async def fails():
    await asyncio.sleep(0)
    moment()
    raise KeyError
async def spawns(group, event):
    for c in (busy, waits): group.create_task(c(event)).set_name(c.__name__)

async def wait(event): await asyncio.wait(started(ends(), busy(event), waits(event)))
async def wait_first(event): await asyncio.wait(started(waits(event), busy(event)), return_when=asyncio.FIRST_COMPLETED)
async def wait_timeout(event):
    tasks = started(ends(), busy(event), waits(asyncio.Event()))
    await asyncio.wait(tasks, timeout=0.05)
    tasks[2].cancel()
async def wait_future(event):
    future = asyncio.get_running_loop().create_future()
    async def does():
        moment()
        future.set_result(1)
    await asyncio.wait([future, *started(does())], return_when=asyncio.FIRST_COMPLETED)
async def wait_for(event): await asyncio.wait_for(started(busy(event))[0], 100)
async def shield(event): await asyncio.shield(started(busy(event))[0])
async def shield_cancelled(event):
    async def protects(): await asyncio.shield(started(busy(event))[0])
    (task,) = started(protects())
    for _ in range(2): await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await event.wait()
async def completed(event):
    for each in asyncio.as_completed(started(busy(event), waits(event))): await each
async def gather(event): await asyncio.gather(*started(ends(), busy(event), waits(event)))
async def gather_fails(event):
    try: await asyncio.gather(*started(fails(), waits(event)))
    except KeyError: event.set()
async def gather_cancelled(event):
    asyncio.get_running_loop().call_later(0.05, this_task().cancel)
    try: await asyncio.gather(*started(ends(), busy(event), waits(asyncio.Event())))
    except asyncio.CancelledError: pass
async def gathers_gather(event):
    (task,) = started(busy(event))
    await asyncio.gather(asyncio.shield(task), asyncio.gather(*started(waits(event), ends())))
async def group(event):
    async with asyncio.TaskGroup() as group: group.create_task(spawns(group, event)).set_name("spawns")
async def group_fails(event):
    try:
        async with asyncio.TaskGroup() as group:
            for c in (fails(), waits(event)): group.create_task(c).set_name(c.__name__)
    except Exception: pass

async def main():
    for way in sys.argv[1:]:
        task = asyncio.ensure_future(globals()[way](asyncio.Event()))
        task.set_name(way)
        await task

asyncio.run(main())
"""

# What is below it at the moment, by depth; whose end, or whose cancellation, ended its wait. In wait_timeout that was the timer.
FOUND = {
    "wait": ([(1, "busy"), (1, "waits")], "waits"),
    "wait_first": ([(1, "busy"), (1, "waits")], "busy"),
    "wait_timeout": ([(1, "busy"), (1, "waits")], None),
    "wait_future": ([(1, "does")], "does"),
    "wait_for": ([(1, "busy")], "busy"),
    "shield": ([(1, "busy")], "busy"),
    "completed": ([], "busy"),
    "gather": ([(1, "busy"), (1, "waits")], "waits"),
    "gather_fails": ([(1, "fails"), (1, "waits")], "fails"),
    "gather_cancelled": ([(1, "busy"), (1, "waits")], "waits"),
    "gathers_gather": ([(1, "busy"), (1, "waits")], "waits"),
    "group": ([(1, "busy"), (1, "waits")], "waits"),
    "group_fails": ([(1, "fails"), (1, "waits")], "fails"),
}


def children(rows, name):
    """What is below a task of that name, with the depth counted from it."""
    (at,) = [i for i, row in enumerate(rows) if row["task"].startswith(name + " ")]
    below = list(itertools.takewhile(lambda row: row["depth"] > rows[at]["depth"], rows[at + 1 :]))
    return rows[at], sorted((row["depth"] - rows[at]["depth"], row["task"].split()[0]) for row in below)


def wakers(path, names):
    """{task: the one that ended its first wait for tasks}, by their names; tasks in an export are called by name and function."""
    found, waited = {}, set()
    for e in json.loads(path.read_text())["traceEvents"]:
        label, _, state = e["name"].partition(": ")
        if e["ph"] != "b" or e.get("cat") != "task":
            continue
        if state == "task":
            waited.add(label)
        elif state == "ready" and label in waited:
            found.setdefault(label.split()[0], names.get(e.get("args", {}).get("woken_by")))
    return found


@pytest.mark.every_python
def test_a_wait_for_tasks_names_them_and_whose_end_ended_it(record, python, krait, export):  # noqa: F811
    ways = [way for way in FOUND if python.number >= (3, 11) or not way.startswith("group")]
    recording = record.text(python, WAYS, *ways, "shield_cancelled")
    names = {task["id"]: task["name"] for task in recording.main.said("task:define")}
    woken_by = wakers(export(recording.path, "chrome"), names)
    calls = verb_json(krait, "intervals", recording.path, "--call", "moment", "--list")["list"]
    found = {}
    for way, call in zip(ways, calls):
        rows = verb_json(krait, "report", recording.path, "--by", "task", "--at", f"{(call['begin_ns'] + 1) / 1e9:.9f}s")["tasks"]
        row, below = children(rows, way)
        assert row["state"] == "task"
        found[way] = (below, woken_by[way])
    assert found == {way: FOUND[way] for way in ways}
    assert woken_by["protects"] == "shield_cancelled"


GATHERED_OFTEN = """
import asyncio

async def inner(): await asyncio.sleep(0.001)

async def main():
    future = asyncio.create_task(inner())
    for _ in range(4): future = asyncio.gather(*[future] * 1000)
    await future

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_a_future_that_is_gathered_often_does_not_stop_the_program(record, python):
    """Its children are the same task, a million of millions of times."""
    record.text(python, GATHERED_OFTEN)


@pytest.mark.few_pythons
def test_a_task_that_is_ready_says_who_woke_it(record, python, run, krait):
    recording = record.text(
        python,
        """
        import asyncio, time
        def blocks(): time.sleep(0.2)  # the moment: the waiter cannot go on yet
        async def waiter(event): await event.wait()
        async def waker(event):
            event.set()
            blocks()
        async def main():
            event = asyncio.Event()
            first = asyncio.create_task(waiter(event))
            await asyncio.sleep(0)
            await asyncio.gather(first, asyncio.create_task(waker(event)))
        asyncio.run(main())
        """,
    )
    (call,) = verb_json(krait, "intervals", recording.path, "--call", "blocks", "--list")["list"]
    at = ["--by", "task", "--at", f"{(call['begin_ns'] + 100_000_000) / 1e9:.9f}s"]
    rows = {r["task"].split()[0].split(".")[-1]: r for r in verb_json(krait, "report", recording.path, *at)["tasks"]}
    assert (rows["waiter"]["state"], rows["waiter"]["woken_by"], rows["waker"]["state"]) == ("ready", rows["waker"]["id"], "running")
    assert rows["waker"]["woken_by"] is None and rows["waiter"]["waits_for"] is None
    assert "woken by" in run("report", recording.path, *at).stdout.splitlines()[0]
    after = run("report", recording.path, "--by", "task", "--at", "99s").stderr
    assert re.search(r"no tasks at that time were recorded\nthe recording is from 0 to [\d.]+ m?s$", after, re.M), after


@pytest.mark.parametrize(
    "options, why",
    [
        (["--at", "1s"], "--at goes with --by task"),
        (["--by", "task", "--at", "soon"], "'soon' is not a time"),
        (["--by", "task", "--at", "1s", "--from", "1s"], "--at is one moment: it goes with --by task, --process and --limit alone"),
        (["--by", "task", "--at", "1s", "--thread", "Main"], "--at is one moment"),
        (["--by", "task", "--at", "1s", "--tree"], "--at is one moment"),
        (["--by", "task", "--at", "1s", "--sort", "name"], "--at is one moment"),
        (["--key", "n"], "--key goes with --by span"),
    ],
)
def test_wrong_usage_of_at_and_key_is_said(run, synth, options, why):
    assert why in run("report", synth("process 1 python3\nthread 1 Main\n"), *options, code=2).stderr


# Tasks wait from the begin on, for a lock, a queue, a timer, another task; one is woken, and not let go on. What they did is in
# events that are dropped.
OLD = """
import asyncio, time

async def locked(lock):
    async with lock: pass
async def taker(queue): await queue.get()
async def sleeper(): await asyncio.sleep(3600)
async def joiner(task): await task
async def waiter(event): await event.wait()
def leaf(): pass
def works(last):
    for n in range(last): leaf()
async def burner(event, lock):
    for n in range(20):
        works(20_000)
        await asyncio.sleep(0)
    event.set()
    works(400_000)

async def main():
    lock, event = asyncio.Lock(), asyncio.Event()
    await lock.acquire()
    tasks = [asyncio.ensure_future(c) for c in (locked(lock), taker(asyncio.Queue()), sleeper(), waiter(event))]
    tasks.append(asyncio.ensure_future(joiner(tasks[0])))
    await asyncio.sleep(0)
    await asyncio.ensure_future(burner(event, lock))
    lock.release()
    for task in tasks[1:3]: task.cancel()
    await asyncio.wait(tasks)

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_what_tasks_do_stays_where_the_oldest_events_are_dropped(record, python, krait):
    trace = record.text(python, OLD, options=["--max-size", "2M", "--keep", "newest"]).path
    assert verb_json(krait, "info", trace)["dropped"] > 100_000
    found = verb_json(krait, "report", trace, "--by", "task", "--at", last_moment(krait, trace))["tasks"]
    rows = {r["task"].split()[0].split(".")[-1]: r for r in found}
    assert {name: row["state"] for name, row in rows.items()} == {
        **{"locked": "lock", "taker": "queue", "sleeper": "timer", "joiner": "task"},
        **{"main": "task", "burner": "running", "waiter": "ready"},
    }
    assert rows["joiner"]["waits_for"] == rows["locked"]["id"] and rows["main"]["waits_for"] == rows["burner"]["id"]
    sums = {row["coroutine"].split(".")[-1]: row for row in verb_json(krait, "report", trace, "--by", "task")["tasks"]}
    assert sums["locked"]["lock_ns"] > 0 and sums["locked"]["lock_ns"] == sums["locked"]["waiting_ns"] and sums["joiner"]["task_ns"] > sums["locked"]["lock_ns"]
