# SPDX-License-Identifier: Apache-2.0
"""Tasks of trio and anyio: their names, their lanes, whose task a call is of, and what they wait for."""

import os
import re
import subprocess

import pytest
from package import PACKAGE
from recording import Recording

from conftest import verb_json

TRIO = """
import trio
import trio.testing
def leaf():
    pass
async def sleeper():
    await trio.sleep(0.05)
async def holder(lock):
    async with lock:
        await trio.sleep(0.03)
async def taker(receive):
    await receive.receive()
async def reader(stream):
    await stream.receive_some(1)
async def burner():
    for _ in range(3):
        leaf()
        await trio.lowlevel.checkpoint()
async def main():
    lock = trio.Lock()
    send, receive = trio.open_memory_channel(0)
    left, right = trio.socket.socketpair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper, name="first")
        nursery.start_soon(sleeper)
        nursery.start_soon(holder, lock)
        nursery.start_soon(holder, lock)
        nursery.start_soon(taker, receive)
        nursery.start_soon(reader, trio.SocketStream(left))
        nursery.start_soon(burner)
        await trio.sleep(0.01)
        await trio.testing.wait_all_tasks_blocked()
        await send.send(1)
        await trio.SocketStream(right).send_all(b"x")
trio.run(main)
"""

ANYIO = """
import sys
import anyio
import anyio.lowlevel
def leaf():
    pass
async def sleeper():
    await anyio.sleep(0.05)
async def holder(lock):
    async with lock:
        await anyio.sleep(0.03)
async def burner():
    for _ in range(3):
        leaf()
        await anyio.lowlevel.checkpoint()
async def main():
    lock = anyio.Lock()
    async with anyio.create_task_group() as group:
        group.start_soon(sleeper, name="first")
        group.start_soon(sleeper)
        group.start_soon(holder, lock)
        group.start_soon(holder, lock)
        group.start_soon(burner)
anyio.run(main, backend=sys.argv[1])
"""

PROGRAMS = {"trio": (TRIO, ()), "anyio on asyncio": (ANYIO, ("asyncio",)), "anyio on trio": (ANYIO, ("trio",))}
WAITS = ("timer", "lock", "queue", "socket", "child", "task", "future")


def last(name):
    return name.split(".")[-1]


@pytest.mark.few_pythons
@pytest.mark.long
def test_tasks_of_trio_and_anyio(record, krait, python, venv, tmp_path):
    inside = venv(python, "trio", "anyio")
    for which, (text, words) in PROGRAMS.items():
        trace = record.text(inside, text, *words).path
        check_waits(verb_json(krait, "report", trace, "--by", "task")["tasks"], which)
        assert callers_of(Recording(trace).main, "leaf") == ["burner"] * 3, which
        check_lanes(krait, trace, tmp_path / "t.svg")


WRAPPED = """
import sys
import anyio
import krait
async def worker():
    await anyio.sleep(0.01)
@krait.span("work")
async def decorated():
    await anyio.sleep(0.01)
async def starter(*, task_status):
    task_status.started()
    await anyio.sleep(0.01)
class Own:
    async def method(self):
        await anyio.sleep(0.01)
async def main():
    async with anyio.create_task_group() as group:
        group.start_soon(worker)
        group.start_soon(decorated)
        group.start_soon(Own().method)
        await group.start(starter)
anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.few_pythons
def test_a_task_of_anyio_counts_as_one_of_the_programs_coroutine(record, krait, python, venv):
    """And not of the one that anyio puts around it."""
    for backend in ("asyncio", "trio"):
        run = record.text(venv(python, "trio", "anyio"), WRAPPED, backend, env={**os.environ, **PACKAGE}).check()
        found = [row["coroutine"] for row in verb_json(krait, "report", run.path, "--by", "task")["tasks"]]
        assert sorted(name for name in found if not name.startswith(("asyncio.", "trio.", "anyio."))) == [f"__main__.{name}" for name in ("Own.method", "decorated", "main", "starter", "worker")], backend


WAKES = """
import os, sys, time, trio
waited = []
async def waits(event):
    await event.wait()
    waited.append(1)
async def child(begun, pipe):
    process = await trio.lowlevel.open_process([sys.executable, "-S", "-c", "input()"], stdin=pipe)
    begun.set()
    await process.wait()
async def main():
    event, begun = trio.Event(), trio.Event()
    theirs, ours = os.pipe()
    async with trio.open_nursery() as nursery:
        for n in range(3): nursery.start_soon(waits, event)
        nursery.start_soon(child, begun, theirs)
        await begun.wait()
        for n in range(10): await trio.lowlevel.checkpoint()  # all wait by now
        time.sleep(0.02)
        event.set()
        time.sleep(0.1)  # nobody else can run
        while len(waited) < 3: await trio.lowlevel.checkpoint()
        os.write(ours, b"\\n")  # the child ends, and its task last
trio.run(main)
"""


@pytest.mark.few_pythons
@pytest.mark.long
def test_a_wait_of_trio_ends_where_the_task_is_rescheduled(record, krait, python, venv):
    run = record.text(venv(python, "trio", "anyio"), WAKES)
    rows = {last(row["coroutine"]): row for row in verb_json(krait, "report", run.path, "--by", "task")["tasks"]}
    assert rows["waits"]["ready_ns"] >= 300_000_000 and rows["waits"]["lock_ns"] == rows["waits"]["waiting_ns"] >= 3 * 20_000_000
    assert rows["child"]["child_ns"] >= 100_000_000 and rows["child"]["socket_ns"] == 0
    waits = next(d["id"] for d in run.main.said("task:define") if last(d["name"]) == "waits")
    (thread,) = [t for t in run.main.threads if any(e.name == "task:run" for e in t.read())]
    told = [e.name for e in thread.read() if e.fields.get("task") == waits or e.name == "task:wake"]
    assert told.index("task:leave") < told.index("task:wake", told.index("task:leave")) < len(told) - 1
    check_nursery(run)


def check_nursery(run):
    """The task that opened it is woken by the last one in it."""
    names = {d["id"]: last(d["name"]) for d in run.main.said("task:define")}
    woken = [(names[e.fields["task"]], names[e.fields["by"]]) for t in run.main.threads for e in t.read() if e.name == "task:wake_by"]
    assert woken[0] == ("main", "child") and all(name != "waits" for name, _ in woken)


def check_waits(found, which):
    """The tasks have names, and wait from an await until they go on, for what they await."""
    rows = {last(row["name"] or row["coroutine"]): row for row in found}
    waits = {name: {wait for wait in WAITS if row[f"{wait}_ns"]} for name, row in rows.items()}
    assert waits["first"] == waits["sleeper"] == {"timer"}, which
    assert rows["first"]["tasks"] == rows["sleeper"]["tasks"] == 1 and rows["first"]["steps"] == 2
    assert rows["first"]["timer_ns"] >= 25_000_000
    assert waits["holder"] == {"timer", "lock"} and rows["holder"]["tasks"] == 2, which
    assert waits["burner"] == set() and rows["burner"]["ready_ns"] > 0 and rows["burner"]["steps"] == 4, which
    if which == "trio":
        assert waits["taker"] == {"queue"} and waits["reader"] == {"socket"} and {"timer", "task"} <= waits["main"]
    for row in rows.values():
        assert sum(row[f"{wait}_ns"] for wait in WAITS) == row["waiting_ns"]


def callers_of(process, function):
    """In whose steps the function was called."""
    names = {d["id"]: last(d["name"]) for d in process.said("task:define")}
    found, running = [], None
    for e in (e for thread in process.threads for e in thread.read()):
        if e.name == "task:run":
            running = names[e.fields["task"]]
        elif e.name == "task:leave":
            running = None
        elif e.name == "python:call" and process.codes[e.code].qualname == function:
            found.append(running)
    return found


def check_lanes(krait, trace, svg):
    subprocess.run([krait, "view", trace, "--svg", svg], capture_output=True, check=True)
    text = svg.read_text()
    lanes = re.findall(r'<text class="name"[^>]*>([^<]*)', text)
    assert sum("hol" in lane for lane in lanes) == 2 and any(lane.startswith("first ") for lane in lanes), lanes
    words = {word for said in re.findall(r">([^<>]+)</text>", text) for word in said.split(", ")}  # of one colour: "lock, queue"
    assert {"timer", "lock", "running"} <= words, words


STARTS = """
import time, trio
def moment(): time.sleep(0.1)
async def leaf():
    await trio.sleep(0.3)
async def served(handlers):
    handlers.start_soon(leaf, name="late")
    await trio.sleep(0.3)
async def server(task_status=trio.TASK_STATUS_IGNORED):
    moment()
    task_status.started()
    async with trio.open_nursery() as handlers:
        handlers.start_soon(served, handlers)
async def nested():
    async with trio.open_nursery() as first:
        first.start_soon(leaf, name="outside")
        async with trio.open_nursery() as second:
            second.start_soon(leaf, name="inside")
async def probe():
    await trio.sleep(0.05)
    moment()
async def main():
    async with trio.open_nursery() as nursery:
        await nursery.start(server)
        nursery.start_soon(nested)
        nursery.start_soon(probe)
trio.run(main)
"""

GROUPS = """
import sys, time, anyio
def moment(): time.sleep(0.1)
async def leaf():
    await anyio.sleep(0.3)
async def probe():
    await anyio.sleep(0.05)
    moment()
async def nested():
    async with anyio.create_task_group() as group:
        group.start_soon(leaf)
async def main():
    async with anyio.create_task_group() as group:
        group.start_soon(nested)
        group.start_soon(probe)
anyio.run(main, backend=sys.argv[1])
"""


def trees(krait, trace):
    """In the middle of each call of moment: {(depth, task): state}, without what trio itself has above main."""
    calls = verb_json(krait, "intervals", trace, "--call", "moment", "--list")["list"]
    for begin in sorted(call["begin_ns"] for call in calls):
        rows = verb_json(krait, "report", trace, "--by", "task", "--at", f"{(begin + 50_000_000) / 1e9:.9f}s")["tasks"]
        names = [(r["depth"], last(r["task"].split()[0]), r["state"]) for r in rows if not r["task"].startswith("<")]
        top = next((depth for depth, name, _ in names if name == "main"), 0)
        yield {(max(depth - top, 0), name): state for depth, name, state in names}


@pytest.mark.few_pythons
@pytest.mark.long
def test_a_task_of_trio_stands_above_those_of_its_nursery(record, krait, python, venv):
    inside = venv(python, "trio", "anyio")
    before, after = trees(krait, record.text(inside, STARTS).path)
    assert before == {(0, "main"): "task", (1, "server"): "running"}  # main waits for it to start
    assert after == {
        (0, "main"): "task",
        (1, "server"): "task",
        (2, "served"): "timer",
        (2, "late"): "timer",
        (1, "probe"): "running",
        (1, "nested"): "task",
        (2, "inside"): "timer",
        (0, "outside"): "timer",  # nested waits for the inner nursery, not yet for this one
    }
    for backend in ("trio", "asyncio"):
        (tree,) = trees(krait, record.text(inside, GROUPS, backend).path)
        if backend == "trio" or python.number >= (3, 9):  # anyio 4.5, the last one for 3.8, leaves a group by asyncio.wait()
            assert tree == {(0, "main"): "task", (1, "nested"): "task", (2, "leaf"): "timer", (1, "probe"): "running"}
