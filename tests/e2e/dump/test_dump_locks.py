# SPDX-License-Identifier: Apache-2.0
"""krait dump: the locks that threads wait for, who holds them, deadlocks."""

import json
import re
import subprocess

import pytest

from running import wait_for

LOCKS = """
import os, threading, time
first, second, plain, held = threading.RLock(), threading.RLock(), threading.Lock(), threading.RLock()
both = threading.Barrier(2)

class Owner:
    lock = second

def one():
    with first:
        both.wait()
        with Owner.lock:
            pass

def two():
    with second:
        with second:
            both.wait()
            first.acquire(True, 3600)

def wants_plain():
    with plain:
        pass

def wants_held():
    held.acquire()

def sleeps():
    both  # a thread that waits for no lock
    threading.Event().wait()

plain.acquire()
held.acquire()
threads = [threading.Thread(target=f, daemon=True) for f in (one, two, wants_plain, wants_held, sleeps)]
for t in threads: t.start()
while not all(t.ident for t in threads): time.sleep(0.01)
time.sleep(0.2)
print(os.getpid(), [id(lock) for lock in (first, second, plain, held)], flush=True)
time.sleep(60)
"""


@pytest.fixture
def settled(krait, programs):
    """settled(python): the ids of the locks, and by function the threads that wait for them."""

    def start(python, *options):
        app = programs.start(python, LOCKS)

        def look():
            run = subprocess.run([krait, "dump", "--json", *options, str(app.pid)], capture_output=True, text=True, timeout=60)
            threads = json.loads(run.stdout)["threads"]
            by_name = {}
            for t in threads:
                names = [f["function"].rpartition(".")[2] for f in t["frames"]]
                for name in ("one", "two", "wants_plain", "wants_held", "sleeps", "<module>"):
                    if name in names:
                        by_name[name] = t
            return by_name if sum(t["system_call"] == "futex" for t in by_name.values()) == 5 else None

        return app, json.loads(app.ready), wait_for(look, "the locks")

    return start


def test_the_lock_that_a_thread_waits_for_and_its_owner_are_told(settled, python):
    _, (first, second, plain, held), threads = settled(python)
    tid = {name: t["tid"] for name, t in threads.items()}
    assert threads["one"]["waits_for"] == {"lock": "RLock", "id": second, "owner": tid["two"]}
    assert threads["two"]["waits_for"] == {"lock": "RLock", "id": first, "owner": tid["one"]}
    assert threads["wants_held"]["waits_for"] == {"lock": "RLock", "id": held, "owner": tid["<module>"]}
    assert threads["wants_plain"]["waits_for"] == {"lock": "Lock", "id": plain, "owner": None}
    assert threads["sleeps"]["waits_for"]["lock"] == "Lock"  # of the event: nobody holds it
    assert threads["<module>"]["waits_for"] is None
    assert {name for name, t in threads.items() if t["deadlocked"]} == {"one", "two"}


@pytest.mark.few_pythons
def test_native_frames_do_not_hide_the_lock(settled, python):
    _, (first, *_), threads = settled(python, "--native")
    assert threads["two"]["waits_for"]["id"] == first and threads["two"]["deadlocked"]


@pytest.mark.few_pythons
def test_as_text_a_deadlock_stands_below_the_threads_that_are_in_it(settled, run, python):
    app, (first, second, plain, held), threads = settled(python)
    text = run("dump", app.pid).stdout
    found = re.findall(r"^    waits for the (\w+) at 0x(\w+)(?:, which thread (\d+) holds)?(  deadlock)?$", text, re.M)
    by_id = {int(address, 16): (kind, owner, bool(ring)) for kind, address, owner, ring in found}
    assert by_id[first] == ("RLock", str(threads["one"]["tid"]), True) and by_id[second] == ("RLock", str(threads["two"]["tid"]), True)
    assert by_id[held] == ("RLock", str(app.pid), False) and by_id[plain] == ("Lock", "", False)


@pytest.mark.few_pythons
def test_locks_that_change_hands_all_the_time_are_no_deadlock(programs, krait, python):
    app = programs.start(
        python,
        """
        import os, threading
        first, second = threading.RLock(), threading.RLock()
        def work():
            while True:
                with first:
                    with second:
                        pass
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        print(os.getpid(), flush=True)
        threading.Event().wait()
        """,
    )
    words = [krait, "dump", "--json", "--repeat", "100", str(app.pid)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60)
    threads = [t for line in run.stdout.splitlines() for t in json.loads(line)["threads"]]
    waits = [t for t in threads if t["waits_for"] and t["waits_for"]["lock"] == "RLock"]
    assert waits and not [t for t in threads if t["deadlocked"]]
    assert not [t for t in waits if t["waits_for"]["owner"] == t["tid"]]


PLAIN = """
import os, threading, time
first, second, third, twice, running, released, acquired, old = (threading.Lock() for _ in range(8))
condition, event, begun = threading.Condition(released), threading.Event(), threading.Barrier(13)

def one():
    with first:
        begun.wait()
        inner(second)

def inner(lock):
    try:
        with lock:
            pass
    finally:
        pass

def two():
    for i in range(1):
        with third as ignored, second:
            begun.wait()
            try:
                with first:
                    pass
            except ValueError:
                pass

def three():
    begun.wait()
    with third:
        pass

def itself():
    with twice:
        begun.wait()
        inner(twice)

def runs():
    with running:
        begun.wait()
        while True:
            pass

def wants_running():
    begun.wait()
    with running:
        pass

def waits():
    begun.wait()
    with released:
        condition.wait_for(lambda: False)

def takes_released():
    begun.wait()
    while not condition._waiters:
        time.sleep(0.01)
    released.acquire()
    event.wait()

def wants_released():
    begun.wait()
    while not released.locked() or not condition._waiters:
        time.sleep(0.01)
    time.sleep(0.1)
    with released:
        pass

def held_before():
    with old:
        pass
    begun.wait()
    old.acquire()  # its __exit__ still lies in an unused slot of some stack
    event.wait()

def wants_old():
    begun.wait()
    time.sleep(0.2)
    with old:
        pass

def takes_acquired():
    with acquired:
        pass
    acquired.acquire()
    try:
        begun.wait()
        event.wait()
    finally:
        acquired.release()

def wants_acquired():
    begun.wait()
    with acquired:
        pass

functions = (one, two, three, itself, runs, wants_running, waits, takes_released, wants_released, held_before, wants_old,
             takes_acquired, wants_acquired)
threads = [threading.Thread(target=f, daemon=True) for f in functions]
for t in threads: t.start()
names = ("first", "second", "third", "twice", "running", "released", "acquired", "old")
print(os.getpid(), {name: id(globals()[name]) for name in names}, flush=True)
time.sleep(600)
"""
WAITERS = ("one", "two", "three", "itself", "wants_running", "wants_released", "wants_old", "wants_acquired")


@pytest.mark.every_python
def test_the_holder_of_a_plain_lock_is_the_thread_in_its_with_statement(programs, krait, run, python):
    app = programs.start(python, PLAIN)
    ids = json.loads(app.ready.replace("'", '"'))

    def look():
        out = subprocess.run([krait, "dump", "--json", str(app.pid)], capture_output=True, text=True, timeout=60).stdout
        found = {}
        for t in json.loads(out)["threads"]:
            for f in t["frames"]:
                found.setdefault(f["function"], t)
        waits = [found.get(name, {}).get("waits_for") for name in WAITERS]
        return found if all(waits) and found["waits"]["waits_for"] else None

    threads = wait_for(look, "threads that wait for locks")
    tid = {name: t["tid"] for name, t in threads.items()}

    def held(lock, by):
        return {"lock": "Lock", "id": ids[lock], "owner": tid[by] if by else None}

    assert threads["one"]["waits_for"] == held("second", "two")
    assert threads["two"]["waits_for"] == held("first", "one")
    assert threads["three"]["waits_for"] == held("third", "two")
    assert threads["itself"]["waits_for"] == held("twice", "itself")
    assert threads["wants_running"]["waits_for"] == held("running", "runs")
    assert threads["wants_released"]["waits_for"] == held("released", None)  # not the one that waits for the condition
    assert threads["wants_old"]["waits_for"] == held("old", None)
    assert threads["wants_acquired"]["waits_for"] == held("acquired", None)
    assert {name for name in WAITERS if threads[name]["deadlocked"]} == {"one", "two", "itself"}
    text = run("dump", app.pid).stdout
    assert f"    waits for the Lock at 0x{ids['first']:x}, which thread {tid['one']} holds  deadlock\n" in text
    assert f"    waits for the Lock at 0x{ids['twice']:x}, which it holds itself  deadlock\n" in text
    assert f"    waits for the Lock at 0x{ids['old']:x}\n" in text


RELEASED = """
import os, threading, time
lock, kept, taken = threading.Lock(), threading.Lock(), threading.Event()

def takes():
    lock.acquire()
    taken.set()
    time.sleep(600)

def takes_again():
    with kept, lock:
        lock.release()
        threading.Thread(target=takes, daemon=True).start()
        taken.wait()
        lock.acquire()

def wants():
    taken.wait()
    with lock:
        pass

for f in (takes_again, wants): threading.Thread(target=f, daemon=True).start()
taken.wait()
print(os.getpid(), id(lock), flush=True)
time.sleep(600)
"""


@pytest.mark.every_python
def test_a_thread_whose_with_statement_may_have_released_the_lock_is_not_its_holder(programs, krait, python):
    app = programs.start(python, RELEASED)

    def look():
        out = subprocess.run([krait, "dump", "--json", str(app.pid)], capture_output=True, text=True, timeout=60).stdout
        found = {f["function"]: t for t in json.loads(out)["threads"] for f in t["frames"]}
        both = [found[name] for name in ("takes_again", "wants") if name in found]
        return both if len(both) == 2 and all(t["waits_for"] and t["waits_for"]["id"] == int(app.ready) for t in both) else None

    for thread in wait_for(look, "threads that wait for the lock"):
        assert thread["waits_for"]["owner"] is None and not thread["deadlocked"]


CONDITIONS = """
import os, threading, time
elsewhere, kept, same, again, busy = (threading.Lock() for _ in range(5))
far, near, retaken = threading.Condition(elsewhere), threading.Condition(same), threading.Condition(again)
retaken.note = "attributes in a dict"; vars(retaken)[None] = 1
begun = threading.Barrier(9)

library = {}
exec(compile("def wait_for_it(condition): condition.wait()", "/home/me/library.py", "exec"), library)

def waits_far():
    begun.wait()
    with elsewhere:
        library["wait_for_it"](far)

def takes_elsewhere():
    begun.wait()
    while not far._waiters:
        time.sleep(0.01)
    elsewhere.acquire()
    time.sleep(600)

def wants_elsewhere():
    begun.wait()
    while not far._waiters or not elsewhere.locked():
        time.sleep(0.01)
    with elsewhere:
        pass

def waits_near():
    begun.wait()
    with kept, same:
        near.wait_for(lambda: False)

def wants_kept():
    begun.wait()
    while not near._waiters:
        time.sleep(0.01)
    with kept:
        pass

def waits_again():
    begun.wait()
    with again:
        retaken.wait()

def takes_again():
    begun.wait()
    while not retaken._waiters:
        time.sleep(0.01)
    again.acquire()
    retaken.notify()
    time.sleep(600)

def holds_busy():
    begun.wait()
    with busy:
        time.sleep(600)

def wants_busy():
    begun.wait()
    while not busy.locked():
        time.sleep(0.01)
    with busy:
        pass

functions = (waits_far, takes_elsewhere, wants_elsewhere, waits_near, wants_kept, waits_again, takes_again, holds_busy, wants_busy)
for f in functions: threading.Thread(target=f, daemon=True).start()
print(os.getpid(), id(elsewhere), id(kept), id(again), id(busy), flush=True)
time.sleep(600)
"""


@pytest.mark.every_python
def test_a_thread_in_wait_of_a_condition_holds_all_but_the_lock_of_that_one(programs, krait, python):
    app = programs.start(python, CONDITIONS)
    elsewhere, kept, again, busy = map(int, app.ready.split())
    wanted = {"wants_elsewhere": elsewhere, "wants_kept": kept, "waits_again": again, "wants_busy": busy}

    def look():
        out = subprocess.run([krait, "dump", "--json", str(app.pid)], capture_output=True, text=True, timeout=60).stdout
        found = {f["function"]: t for t in json.loads(out)["threads"] for f in t["frames"]}
        waits = {name: (found[name]["waits_for"] or {}).get("id") for name in wanted if name in found}
        return found if waits == wanted else None

    threads = wait_for(look, "threads that wait for the locks")
    owners = {name: threads[name]["waits_for"]["owner"] for name in wanted}
    assert owners == {
        "wants_elsewhere": None,  # not the one whose with statement is in another file than its wait()
        "wants_kept": threads["waits_near"]["tid"],  # though that with statement is in the file that waits for a condition
        "waits_again": None,  # not itself, which waits to have it back
        "wants_busy": threads["holds_busy"]["tid"],
    }
    assert not [t for t in threads.values() if t["deadlocked"]]
