# SPDX-License-Identifier: Apache-2.0
"""For which greenlets others wait, at one moment: krait report --by task --at. Plain greenlets, and gevent's."""

import itertools
from collections import Counter

import pytest

from conftest import verb_json

TRIED = ((3, 8), (3, 11), (3, 13), (3, 14), (3, 15))
VERSIONS = {(3, 8): "greenlet==1.1.3", (3, 11): "greenlet==2.0.2"}


def wanted(python):
    if python.origin == "system" or python.number not in TRIED:
        pytest.skip("greenlet is tried with some versions")


def trees(krait, path, call="moment"):
    """The rows of each moment: right behind the begin of each call of that function."""
    for moment in verb_json(krait, "intervals", path, "--call", call, "--list")["list"]:
        yield verb_json(krait, "report", path, "--by", "task", "--at", f"{(moment['begin_ns'] + 1) / 1e9:.9f}s")["tasks"]


def label(row):
    return row["task"].split()[0]


PLAIN = """
    from greenlet import getcurrent, greenlet
    home = getcurrent()
    def moment(): pass
    def leaf():
        moment()
        home.switch()
        moment()
        lets["side"].switch()
    def branch():
        lets["leaf"] = greenlet(leaf)
        lets["leaf"].switch()
    def root():
        lets["branch"] = greenlet(branch)
        lets["branch"].switch()
    def side():
        moment()
        home.switch()
    lets = {"root": greenlet(root), "side": greenlet(side)}
    lets["root"].switch()
    moment()
    lets["leaf"].parent = lets["root"]
    lets["leaf"].switch()
    moment()
"""


def plain_tree(rows):
    """{function: (depth, state, and of the others by their functions: whom it waits for, to which it switched, its parent)}."""
    names = {0: "main", None: None} | {row["id"]: label(row) for row in rows}
    return {label(row): (row["depth"], row["state"], *(names[row[key]] for key in ("waits_for", "switched_to", "parent"))) for row in rows}


def test_a_greenlet_stands_above_the_one_that_it_switched_to_as_its_parent(record, krait, python, venv):
    """A switch to another one says no more than that, nor does one to the parent."""
    wanted(python)
    run = record.text(venv(python, VERSIONS.get(python.number, "greenlet")), PLAIN)
    assert run.status == 0 and not run.lost
    first, home, again, side, last = (plain_tree(rows) for rows in trees(krait, run.path))
    above = {"root": (0, "switch", "branch", "branch", "main"), "branch": (1, "switch", "leaf", "leaf", "root")}
    assert first == {**above, "leaf": (2, "running", None, None, "branch")}
    assert home == {**above, "leaf": (2, "switch", None, "main", "branch")}
    # The leaf's new parent shows when it is left again.
    assert again == {**above, "leaf": (2, "running", None, None, "branch")}
    moved = {"root": (0, "switch", "branch", "branch", "main"), "branch": (1, "switch", None, "leaf", "root"), "leaf": (0, "switch", None, "side", "root")}
    assert side == {**moved, "side": (0, "running", None, None, "main")}
    assert last == {**moved, "side": (0, "switch", None, "main", "main")}


# Each begins to wait before the two others have begun. One of them ends, and the other one, `late`, has a moment before that and one
# after it.
WAYS = """
    import gevent, sys
    from gevent.pool import Group, Pool
    def moment(): pass
    def named(name, *args):
        let = gevent.spawn(*args)
        let.name = name
        return let
    def turns(n):
        for _ in range(n): gevent.sleep(0)
    def short(): turns(4)
    def late():
        try: turns(2)
        except gevent.GreenletExit: turns(2)
        moment()
        turns(8)
        moment()
        turns(2)
    def join(lets): lets[1].join()
    def join_in_time(lets): lets[1].join(timeout=100)
    def get(lets): lets[1].get()
    def kill(lets):
        turns(1)
        lets[1].kill()
    def joinall(lets): gevent.joinall(lets)
    def joinall_raises(lets): gevent.joinall(tuple(lets), raise_error=True)
    def joinall_set(lets): gevent.joinall(greenlets=set(lets))
    def joinall_values(lets): gevent.joinall(dict(enumerate(lets)).values())
    def killall(lets):
        turns(1)
        gevent.killall(lets)
    def wait(lets): gevent.wait(lets)
    def wait_each(lets):
        left = list(lets)
        while left: left = [let for let in left if let not in gevent.wait(left, count=1)]
    def iwait(lets):
        for _ in gevent.iwait(lets): pass
    def group(lets):
        group = Group()
        for let in lets: group.add(let)
        group.join()
    def pool(lets):
        pool = Pool(10)
        for let in lets: pool.add(let)
        pool.join(raise_error=True)
    def main():
        for way in sys.argv[1:]:
            lets = []
            waiter = named(way, globals()[way], lets)
            lets += [named("short", short), named("late", late)]
            waiter.join()
            lets[1].join()
    gevent.spawn(main).join()
"""
ONE, SEVERAL = (["late"], ["late"], True), (["late", "short"], ["late"], False)
FOUND = {
    **dict.fromkeys(["join", "join_in_time", "get", "kill"], ONE),
    **dict.fromkeys(["joinall", "joinall_raises", "joinall_set", "joinall_values", "wait", "wait_each", "group", "pool"], SEVERAL),
    "killall": (["late"], ["late"], False),  # the other one ends at once
    "iwait": ([], [], False),
}


def below(rows, name):
    """What is below a greenlet of that name, at once, and the name of the one that it waits for."""
    (at,) = [i for i, row in enumerate(rows) if label(row) == name]
    found = list(itertools.takewhile(lambda row: row["depth"] > rows[at]["depth"], rows[at + 1 :]))
    assert all(row["depth"] == rows[at]["depth"] + 1 for row in found)
    names = {row["id"]: label(row) for row in rows}
    return rows[at], sorted(map(label, found)), names.get(rows[at]["waits_for"])


@pytest.mark.parametrize("options", [[], pytest.param(["--no-c-calls"], marks=pytest.mark.few_pythons)], ids=["plain", "no-c"])
def test_a_greenlet_of_gevent_stands_above_those_that_it_waits_for(record, krait, python, venv, options):
    """Before 3.12, CPython does not tell of the functions that gevent compiles; those of a group's are Python's."""
    wanted(python)
    run = record.text(venv(python, "gevent"), WAYS, *FOUND, options=options)
    assert run.status == 0 and not run.lost
    moments, found = trees(krait, run.path), {}
    for way in FOUND:
        (row, before, whom), (_, after, still) = (below(rows, way) for rows in itertools.islice(moments, 2))
        assert row["state"] == ("task" if before else row["state"]) and row["switched_to"] is row["parent"] is None
        found[way] = (before, after, whom == still == "late")
    assert next(moments, None) is None
    has_calls = python.number >= (3, 12) and not options
    assert found == {way: FOUND[way] if has_calls or way in ("group", "pool") else ([], [], False) for way in FOUND}


THREADS = """
    from gevent import monkey
    monkey.patch_all()
    import threading, time
    def moment(): pass
    def late():
        time.sleep(0.01)
        moment()
    def joins(): thread.join()
    thread = threading.Thread(target=late)
    joiner = threading.Thread(target=joins)
    thread.start()
    joiner.start()
    joiner.join()
"""


@pytest.mark.pythons(least=(3, 13))
@pytest.mark.few_pythons
def test_a_thread_that_gevent_runs_stands_above_the_one_that_it_joins(record, krait, python, venv):
    wanted(python)
    run = record.text(venv(python, "gevent"), THREADS, options=["--no-c-calls"])
    (rows,) = trees(krait, run.path)
    (late,) = [row["id"] for row in rows if row["state"] == "running"]
    assert [(row["state"], row["depth"]) for row in rows if row["waits_for"] == late] == [("task", 0)]
    assert [row["depth"] for row in rows if row["id"] == late] == [1]


FIRST = """
    import gevent, sys
    def turns(n):
        for _ in range(n): gevent.sleep(0)
    def main():
        left = [gevent.spawn(turns, n) for n in range(1, 1 + int(sys.argv[1]))]
        while left:
            done = set(gevent.wait(left, count=1))
            left = [let for let in left if let not in done]
    gevent.spawn(main).join()
"""


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_a_loop_that_waits_for_the_first_of_many_names_each_once(record, python, venv):
    wanted(python)
    run = record.text(venv(python, "gevent"), FIRST, "60")
    assert run.status == 0 and not run.lost
    named = Counter(d["task"] for d in run.main.said("task:nursery"))
    assert len(named) == 60 and set(named.values()) == {1}


# The first one joins another that is killed before it has begun; then others may have its address.
REUSED = """
    import gevent, gc
    def moment(): pass
    def never(): pass
    def others():
        for n in range(50):
            let = gevent.spawn(moment)
            let.name = f"other-{n}"
            let.join()
    def joins():
        let = gevent.spawn_later(100, never)
        let.name = "never"
        let.join(timeout=0.001)
        let.kill()
    gevent.spawn(joins).join()
    gc.collect()
    gevent.spawn(others).join()
"""


@pytest.mark.few_pythons
def test_a_greenlet_that_never_began_is_no_other_one(record, python, venv):
    wanted(python)
    run = record.text(venv(python, "gevent"), REUSED)
    assert run.status == 0 and not run.lost
    names = {}
    for d in run.main.said("task:define"):
        names.setdefault(d["id"], set()).add(d["name"])
    assert all(len(each) == 1 for each in names.values())
    assert sum("other-" in name for each in names.values() for name in each) == 50
