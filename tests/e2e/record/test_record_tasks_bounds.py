# SPDX-License-Identifier: Apache-2.0
"""What waiting for several tasks of asyncio costs, counted in definitions; and what is told of the tasks all the same."""

from collections import Counter

import pytest

from conftest import verb_json

MANY = 60

FIRST = """
import asyncio, sys

async def turns(n):
    for _ in range(n): await asyncio.sleep(0)

async def main():
    left = {asyncio.ensure_future(turns(n)) for n in range(1, 1 + int(sys.argv[1]))}
    while left:
        _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_a_loop_that_waits_for_the_first_of_many_tasks_names_each_once(record, python):
    run = record.text(python, FIRST, MANY)
    named = Counter(d["task"] for d in run.main.said("task:nursery"))
    assert len(named) == MANY and set(named.values()) == {1}


# main waits for the first of three; then for one of the two others, and a new one; then for that one and the one that it left out.
SUBSETS = """
import asyncio

def moment(): pass

async def turns(n, moments=()):
    for i in range(n):
        if i in moments: moment()
        await asyncio.sleep(0)

def named(name, coroutine):
    task = asyncio.ensure_future(coroutine)
    task.set_name(name)
    return task

async def wait(*tasks): await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

async def main():
    first, second, third = named("first", turns(5)), named("second", turns(20)), named("third", turns(99, (2, 10, 30)))
    await wait(first, second, third)
    fourth = named("fourth", turns(40))
    await wait(second, fourth)
    await wait(third, fourth)
    third.cancel()

asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_a_task_stands_above_those_alone_that_it_waits_for_now(record, krait, python):
    run = record.text(python, SUBSETS)
    found = []
    for moment in verb_json(krait, "intervals", run.path, "--call", "moment", "--list")["list"]:
        rows = verb_json(krait, "report", run.path, "--by", "task", "--at", f"{(moment['begin_ns'] + 1) / 1e9:.9f}s")["tasks"]
        found.append(sorted(row["task"].split()[0] for row in rows if row["depth"] == 1))
    assert found == [["first", "second", "third"], ["fourth", "second"], ["fourth", "third"]]


SHIELDED = """
import asyncio, sys

def moment(): pass

async def inner():
    for _ in range(5): await asyncio.sleep(0)
    moment()

async def waits(future): await future

async def main():
    future = asyncio.shield(asyncio.ensure_future(inner()))
    await asyncio.gather(*(asyncio.ensure_future(waits(future)) for _ in range(int(sys.argv[1]))))

asyncio.run(main())
"""
BOUND = 16  # as many tasks that wait for one future are told what it stands for


@pytest.mark.few_pythons
def test_of_many_that_wait_for_one_shield_the_first_ones_name_its_task(record, krait, python):
    """For each, krait reads what is called when the future is done: as much as there are that wait."""
    run = record.text(python, SHIELDED, MANY)
    (moment,) = verb_json(krait, "intervals", run.path, "--call", "moment", "--list")["list"]
    rows = verb_json(krait, "report", run.path, "--by", "task", "--at", f"{(moment['begin_ns'] + 1) / 1e9:.9f}s")["tasks"]
    (inner,) = [row["id"] for row in rows if "inner" in row["task"]]
    waits = Counter((row["state"], row["waits_for"]) for row in rows if "waits" in row["task"])
    assert waits == {("task", inner): BOUND, ("future", None): MANY - BOUND}
