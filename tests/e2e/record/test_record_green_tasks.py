# SPDX-License-Identifier: Apache-2.0
"""Greenlets as tasks: which one runs, why it is left, its name and its function. Plain ones of greenlet, and gevent's."""

import json
import os
import re
import subprocess
from collections import Counter

import pytest
from exported import export  # noqa: F401  (a fixture)
from pages import blocks, page_text
from recording import Recording
from trace_processor import FAULTS
from trace_processor import ask as query

from conftest import BUILD, verb_json
from package import PACKAGE
from tasks_made import GEVENT, IN_PERFETTO, last_moment, merged, runs

# The program notes its own steps: each function notes the number of its greenlet whenever it begins or goes on.
PROGRAM = """
    import json, sys
    from greenlet import getcurrent, greenlet
    steps, count = [], 0
    def here(me):
        steps.append(me)
    def new(run, *args):
        global count
        count += 1
        let = greenlet(run)
        let.switch(count, *args)
        return let
    def back(me):
        home.switch()
        here(me)
    def turns(me, n):
        here(me)
        for _ in range(n): back(me)
    def deep(me, n):
        if n: return deep(me, n - 1)
        here(me)
        back(me)
    def fails(me):
        here(me)
        back(me)
        raise KeyError("fails")
    def outer(me):
        here(me)
        new(turns, 0)  # the parent goes on after it
        here(me)
        back(me)
    def stubborn(me):
        here(me)
        try: home.switch()
        except ValueError: here(me)
        back(me)
    home = getcurrent()
    def main():
        lets = [new(turns, 3), new(deep, 20), new(fails), new(outer), new(stubborn)]
        lets[4].throw(ValueError)
        try: lets[2].switch()
        except KeyError: pass
        lets[0].switch(), lets[0].switch()
        for let in lets:
            while not let.dead: let.switch()
        for n in range(40):  # those that come and go have each other's addresses
            new(turns, 1).switch()
        new(turns, 1)  # is collected: GreenletExit is thrown into it, which it does not see
    main()
    json.dump(steps, sys.stdout)
"""


TRIED = ((3, 8), (3, 11), (3, 13), (3, 14), (3, 15))


def wanted(python):
    if python.origin == "system" or python.number not in TRIED:
        pytest.skip("greenlet is tried with some versions")


# greenlet's latest is another one for each.
VERSIONS = {(3, 8): "greenlet==1.1.3", (3, 11): "greenlet==2.0.2"}


def tasks_of(process):
    """{id: (name, function)} as the last definition of each says it."""
    said = {d["id"]: d for d in process.said("task:define")}
    return {number: (d["name"], process.codes[d["coroutine"]].qualname if d["coroutine"] else None) for number, d in said.items()}


def threads_of(process):
    return [t for t in process.threads if any(e.name == "task:run" for e in t.read())]


ON_FEW = [pytest.param(options, marks=pytest.mark.few_pythons) for options in (["--no-c-calls"], ["--max-overhead", "90"], ["--exclude", "here"])]


@pytest.mark.parametrize("options", [[], *ON_FEW], ids=["plain", "no-c", "governed", "filtered"])
def test_greenlets_run_as_the_program_says(record, python, venv, options):
    wanted(python)
    run = record.text(venv(python, VERSIONS.get(python.number, "greenlet")), PROGRAM, options=options)
    assert run.status == 0 and not run.lost
    (thread,) = threads_of(run.main)
    tasks = tasks_of(run.main)
    assert [tasks[number][0] for number in sorted(tasks)] == [f"greenlet-{number}" for number in sorted(tasks)]
    steps = runs(thread)
    theirs = json.loads(run.stdout)
    order = {task: number for number, task in enumerate(dict.fromkeys(number for number, _ in steps), 1)}
    assert merged([order[task] for task, _ in steps[:-1]]) == merged(theirs)  # the last one is that of GreenletExit
    assert Counter(function for _, function in tasks.values()) == {"turns": 43, "deep": 1, "fails": 1, "outer": 1, "stubborn": 1}
    reasons = {}
    for number, reason in steps:
        reasons.setdefault(tasks[number][1], []).append(reason)
    assert reasons["fails"] == ["switched", "raised"] and reasons["deep"] == ["switched", "returned"]
    assert reasons["outer"] == ["switched", "switched", "returned"]
    assert Counter(reasons["turns"])["returned"] == 43
    run.main.check_balanced()


@pytest.mark.parametrize("options", [[], ["--no-c-calls"]], ids=["plain", "no-c"])
@pytest.mark.few_pythons
def test_greenlets_of_gevent_wait_for_what_they_wait_for(record, krait, python, venv, options):
    wanted(python)
    run = record.text(venv(python, "gevent"), GEVENT, options=options)
    assert run.status == 0 and not run.lost
    (thread,) = threads_of(run.main)
    runs(thread)
    rows = {(row["coroutine"].split(".")[-1], row["name"]): row for row in verb_json(krait, "report", run.path, "--by", "task")["tasks"]}
    waits = {("sleeps", "the sleeper"): "timer", ("sleeps", None): "timer", ("receives", None): "socket", ("child", None): "child", ("_run", None): "timer"}
    if python.number >= (3, 12) and not options:  # before, CPython does not tell of the functions that gevent compiles
        waits |= {("locks", None): "lock", ("waits", None): "lock", ("takes", None): "queue", ("reads", None): "future", ("joins", None): "task"}
    for name, wait in waits.items():
        least = rows[name]["waiting_ns"] if wait != "child" else 50_000_000  # it reads from the child too
        assert rows[name][f"{wait}_ns"] >= least > 5_000_000, name
        assert rows[name]["steps"] >= 2
    assert ("run", "gevent.hub") in rows and rows["fails", None]["steps"] == 1
    if len(waits) > 5:
        assert rows["yields", None]["waiting_ns"] == 0 < rows["yields", None]["ready_ns"]


# Each way, one greenlet waits for what another one does, or for a timer.
WAKES = """
    import gevent
    from gevent import queue
    from gevent.event import AsyncResult, Event
    from gevent.lock import BoundedSemaphore, Semaphore
    def moment(): pass
    def goes_on(wait):
        wait()
        moment()
    def named(name, *args):
        let = gevent.spawn(*args)
        let.name = name
        return let
    def way(name, wait, wake):
        waiter = named(name, goes_on, wait)
        gevent.sleep(0)
        gevent.joinall([named("waker", wake), waiter])
    def main():
        event, result, lock, bounded, line, full = Event(), AsyncResult(), Semaphore(0), BoundedSemaphore(1), queue.Queue(), queue.Queue(1)
        way("event", lambda: event.wait(), lambda: event.set())
        way("event in time", lambda: Event.wait(later, timeout=100), lambda: later.set())
        way("result", lambda: result.get(), lambda: result.set(1))
        way("lock", lambda: lock.acquire(), lambda: lock.release())
        def enters():
            with lock: pass
        way("with", enters, lambda: lock.release())
        lock.acquire()
        bounded.acquire()
        way("bounded", lambda: bounded.acquire(), lambda: bounded.release())
        way("item", lambda: line.get(), lambda: line.put(1))
        full.put(1)
        way("room", lambda: full.put(2), lambda: full.get())
        ends = named("ends", gevent.sleep, 0.01)
        way("join", lambda: ends.join(), lambda: None)
        way("late", lambda: Event().wait(timeout=0.01), lambda: None)
        way("sleep", lambda: gevent.sleep(0.01), lambda: event.set())
        twice = [named("twice", goes_on, lambda: lock.acquire()) for _ in range(2)]
        gevent.sleep(0)
        gevent.joinall([named("one", lambda: lock.release()), named("other", lambda: lock.release()), *twice])
    later = Event()
    gevent.spawn(main).join()
"""
WOKEN = {
    **dict.fromkeys(["event", "event in time", "result", "lock", "bounded", "item", "room"], "waker"),
    **{"join": "ends", "late": None, "sleep": None, "twice": None},
}


@pytest.mark.few_pythons
def test_a_greenlet_of_gevent_says_who_woke_it(record, krait, python, venv):
    """Not where several may have been it, or where the wait was over in time."""
    wanted(python)
    run = record.text(venv(python, "gevent"), WAKES)
    names = {number: name for number, (name, _) in tasks_of(run.main).items()}
    found = {}
    for call in verb_json(krait, "intervals", run.path, "--call", "moment", "--list")["list"]:
        rows = verb_json(krait, "report", run.path, "--by", "task", "--at", f"{(call['begin_ns'] + 1) / 1e9:.9f}s")["tasks"]
        (row,) = [row for row in rows if row["state"] == "running"]
        found[names[row["id"]]] = names.get(row["woken_by"])
    known = WOKEN if python.number >= (3, 12) else dict.fromkeys(WOKEN)
    assert found == {**known, "with": "waker" if python.number >= (3, 14) else None}


THREADS = """
    import gc, gevent, greenlet, threading
    def sleeps(n):
        for _ in range(n): gevent.sleep(0.001)
    def work(name):
        lets = [gevent.spawn(sleeps, 5) for _ in range(3)]
        for number, let in enumerate(lets): let.name = f"{name}-{number}"
        gevent.joinall(lets)
    threads = [threading.Thread(target=work, args=(f"thread{n}",)) for n in range(3)]
    for thread in threads: thread.start()
    work("main")
    for thread in threads: thread.join()
    left = []
    def waits():
        greenlet.getcurrent().parent.switch()
    def leaves():
        for _ in range(100):
            left.append(greenlet.greenlet(waits))
            left[-1].switch()
        done.wait()
        for _ in range(100):
            greenlet.greenlet(waits).switch()
    done = threading.Event()
    thread = threading.Thread(target=leaves)
    thread.start()
    while len(left) < 100: gevent.sleep(0.001)
    left.clear()  # they are collected here, and not in their own thread
    gc.collect()
    done.set()
    thread.join()
"""


@pytest.mark.few_pythons
def test_each_thread_has_a_hub_and_greenlets_of_its_own(record, python, venv):
    wanted(python)
    run = record.text(venv(python, "gevent"), THREADS)
    assert run.status == 0 and not run.lost
    tasks = tasks_of(run.main)
    assert Counter(name for name, function in tasks.values() if function == "sleeps") == {f"{who}-{n}": 1 for who in ("main", "thread0", "thread1", "thread2") for n in range(3)}
    assert Counter(name for name, function in tasks.values() if function == "Hub.run") == {"gevent.hub": 4}
    assert Counter(function for _, function in tasks.values())["waits"] == 200
    for thread in threads_of(run.main):
        steps, at = [], None
        for e in thread.read():
            assert e.name != "task:run" or at is None
            at = e.fields["task"] if e.name == "task:run" else None if e.name == "task:leave" else at
            if e.name == "task:leave":
                steps.append(e.fields["reason"])
        assert "unseen" not in steps


SUBINTERPRETERS = """
    import sys
    if sys.version_info >= (3, 13): import _interpreters
    else: import _xxsubinterpreters as _interpreters
    work = '''if True:
        from greenlet import getcurrent, greenlet
        home = getcurrent()
        def NAME():
            for _ in range(3): home.switch()
        def turns():
            let = greenlet(NAME)
            while not let.dead: let.switch()
        turns()
    '''
    exec(work.replace("NAME", "ours"))
    # greenlet itself does not load in an isolated one
    other = _interpreters.create("legacy") if sys.version_info >= (3, 13) else _interpreters.create(isolated=False)
    _interpreters.run_string(other, work.replace("NAME", "theirs"))
    turns()
    _interpreters.run_string(other, "turns()")
    _interpreters.destroy(other)
    turns()
"""


@pytest.mark.pythons(least=(3, 9))
def test_greenlets_of_subinterpreters_are_tasks_too(record, python, venv):
    wanted(python)
    run = record.text(venv(python, VERSIONS.get(python.number, "greenlet")), SUBINTERPRETERS)
    assert run.status == 0 and not run.lost, run.stderr
    tasks = tasks_of(run.main)
    assert Counter(function for _, function in tasks.values()) == {"ours": 3, "theirs": 2}
    for thread in threads_of(run.main):
        steps = Counter(number for number, _ in runs(thread))
        assert set(steps.values()) == {4}


def test_a_forked_child_has_tasks_of_its_own(record, any_python, venv):
    run = record.text(
        venv(any_python, "gevent"),
        """
        import gevent, gevent.os, os
        def before(): gevent.sleep(0.01)
        def after(): gevent.sleep(0.01)
        def forks():
            child = gevent.os.fork()
            gevent.joinall([gevent.spawn(after) for _ in range(3)])
            if not child: os._exit(0)
            os.waitpid(child, 0)
        waiting = gevent.spawn(before)
        gevent.spawn(forks).join()
        waiting.join()
        """,
    )
    assert run.status == 0 and not run.lost
    (child,) = [process for process in run.processes if process is not run.main]
    for process, forker in ((run.main, 1), (child, 1)):
        functions = Counter(function for _, function in tasks_of(process).values())
        assert functions["after"] == 3 and functions["forks"] == forker and functions["Hub.run"] == 1
    (thread,) = threads_of(child)
    assert next(e.fields["task"] for e in thread.read() if e.name == "task:run") in {n for n, (_, function) in tasks_of(child).items() if function == "forks"}


def test_no_tasks_leaves_greenlets_out(record, any_python, venv):
    run = record.text(venv(any_python, "greenlet"), PROGRAM, options=["--no-tasks"])
    assert run.status == 0 and not run.main.said("task:define")
    names = Counter(e.name for t in run.main.threads for e in t.read())
    assert names["python:switch"] > 100 and not any(name.startswith("task:") for name in names)


@pytest.mark.few_pythons
def test_greenlets_of_a_recording_that_begins_in_one(python, record, venv, tmp_path):
    program = """
    import krait, sys
    from greenlet import getcurrent, greenlet
    home = getcurrent()
    def waits():
        home.switch()
        leaf()
    def leaf(): pass
    def begins():
        krait.start(sys.argv[1])
        leaf()
        waiting.switch()
        krait.stop()
    waiting = greenlet(waits)
    waiting.switch()
    greenlet(begins).switch()
    greenlet(begins).switch() if len(sys.argv) > 2 else None
    """
    wanted(python)
    trace = tmp_path / "own"
    done = venv(python, "greenlet").run(record.script(program), trace, env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "PATH": f"{BUILD}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    process = Recording(trace).main
    tasks = tasks_of(process)
    assert sorted(function for _, function in tasks.values() if function) == ["begins", "waits"]
    (thread,) = threads_of(process)
    told = [(e.name, tasks[e.fields["task"]][1]) for e in thread.read() if e.name.startswith("task:")]
    assert told[:3] == [("task:run", "begins"), ("task:leave", "begins"), ("task:run", "waits")]


MANY = """
    from greenlet import getcurrent, greenlet
    home = getcurrent()
    def waits():
        home.switch()
        home.switch()
    lets = [greenlet(waits) for _ in range(20_000)]
    for _ in range(3):
        for let in lets: let.switch()
"""


@pytest.mark.long
def test_a_thread_may_have_very_many_greenlets(record, any_python, venv):
    run = record.text(venv(any_python, "greenlet"), MANY, options=["--no-c-calls", "--ring-size", "64M"])
    assert run.status == 0 and not run.lost
    (thread,) = threads_of(run.main)
    steps = Counter(number for number, _ in runs(thread))
    assert len(steps) == 20_000 and set(steps.values()) == {3}


ENDED = """
    from greenlet import getcurrent, greenlet
    home = getcurrent()
    def ends(): home.switch()
    def waits():
        while True: home.switch()
    long = [greenlet(waits) for _ in range(10)]
    kept = []  # so that no greenlet has the address of one before
    for n in range(20_000):
        let = greenlet(ends)
        let.switch()
        let.switch()
        kept.append(let)
        long[n % 10].switch()
"""


def test_greenlets_that_have_ended_are_forgotten_and_no_other(record, any_python, venv):
    run = record.text(venv(any_python, "greenlet"), ENDED, options=["--no-c-calls", "--ring-size", "64M"])
    assert run.status == 0 and not run.lost
    (thread,) = threads_of(run.main)
    steps, tasks = Counter(number for number, _ in runs(thread)), tasks_of(run.main)
    assert Counter(count for number, count in steps.items() if tasks[number][1] == "ends") == {2: 20_000}
    assert Counter(count for number, count in steps.items() if tasks[number][1] == "waits") == {2_000: 10}


def test_the_page_s_greenlets_have_rows_lanes_and_tracks(record, krait, any_python, venv, tmp_path, export):  # noqa: F811
    (program,) = [body for info, body in blocks(page_text("tasks.md")) if info[:2] == ["python", "fetch.py"]]
    program = "import krait\n" + program.replace("    pool.acquire()", "    with krait.span('query'): pool.acquire()")
    run = record.text(venv(any_python, "gevent"), program, env=PACKAGE)
    rows = {row["name"] or row["coroutine"].split(".")[-1]: row for row in verb_json(krait, "report", run.path, "--by", "task")["tasks"]}
    assert {name: row["tasks"] for name, row in rows.items()} == {"gevent.hub": 1, "server": 1, "client": 1, "query": 12}
    assert rows["query"]["timer_ns"] >= 12 * 20_000_000 and rows["client"]["socket_ns"] == rows["client"]["waiting_ns"]
    done = subprocess.run([krait, "view", run.path, "--svg", tmp_path / "t.svg"], capture_output=True, text=True)
    assert done.returncode == 0 and "15 tasks" in done.stderr, done.stderr
    names = re.findall(r'<text class="name"[^>]*>([^<]*)', (tmp_path / "t.svg").read_text())
    assert {"server serve", "gevent.hub Hub.run"} <= {" ".join(name.split()[:2]) for name in names} and sum(name.startswith("query greenlet-") for name in names) == 12
    faults, tracks = query(export(run.path, "perfetto"), FAULTS, IN_PERFETTO)
    assert faults == [] and len(tracks) == 12 and all(name == "spans" and parent.startswith("query greenlet-") for name, parent, *_ in tracks)


def test_gevents_own_trace_function_goes_on(record, any_python, venv):
    run = record.text(
        venv(any_python, "gevent"),
        """
        import gevent, greenlet
        def sleeps():
            for _ in range(10): gevent.sleep(0.001)
        gevent.config.monitor_thread = True
        gevent.config.max_blocking_time = 1000  # then it sets its counter to 0
        tracer = gevent.get_hub().start_periodic_monitoring_thread()._greenlet_tracer
        gevent.spawn(sleeps).join()
        assert greenlet.gettrace() is tracer
        print(tracer.greenlet_switch_counter)
        """,
    )
    assert run.status == 0 and int(run.stdout) >= 20
    steps = Counter(number for thread in threads_of(run.main) for number, _ in runs(thread))
    assert {tasks_of(run.main)[number][1]: count for number, count in steps.items()}["sleeps"] == 11


PAUSES = """
    from greenlet import getcurrent, greenlet
    home = getcurrent()
    def work():
        while True: home.switch()
    def other():
        for _ in range(3): home.switch()
    lets = [greenlet(work) for _ in range(4)]
    for n in range(60_000):
        for let in lets: let.switch()
        if n % 6000 == 0: lets[0] = greenlet(other)
        if lets[0].dead: lets[0] = greenlet(work)
"""


def test_steps_are_whole_around_pauses_of_the_governor(record, any_python, venv):
    """In a pause no switch is told: the task that was running then is left unseen, or goes on."""
    run = record.text(venv(any_python, "greenlet"), PAUSES, options=["--max-overhead", "1", "--ring-size", "16M"])
    assert run.status == 0
    tasks, running, steps = tasks_of(run.main), None, Counter()
    (thread,) = threads_of(run.main)
    for e in thread.read():
        if e.name == "task:run":
            assert running in (None, e.fields["task"]) and e.fields["task"] in tasks
            running = e.fields["task"]
        elif e.name == "task:leave":
            assert e.fields["task"] == running
            steps[e.fields["reason"]] += 1
            running = None
    assert steps["switched"] > 100


OLD = """
    import gevent
    from gevent.event import Event
    from gevent.lock import Semaphore
    from gevent.queue import Queue
    pool, event = Semaphore(1), Event()
    def locked(): pool.acquire()
    def taker(queue): queue.get()
    def sleeper(): gevent.sleep(3600)
    def joiner(other): other.join()
    def leaf(): pass
    def burner():
        for n in range(20):
            for _ in range(40_000): leaf()
            gevent.sleep(0)
    pool.acquire()
    lets = [gevent.spawn(locked), gevent.spawn(taker, Queue()), gevent.spawn(sleeper)]
    lets.append(gevent.spawn(joiner, lets[0]))
    gevent.sleep(0)
    gevent.spawn(burner).join()
    pool.release()
    gevent.joinall([lets[0], lets[3]])
"""


def test_what_greenlets_do_stays_where_the_oldest_events_are_dropped(record, any_python, venv, krait):
    trace = record.text(venv(any_python, "gevent"), OLD, options=["--max-size", "2M", "--keep", "newest"]).path
    assert verb_json(krait, "info", trace)["dropped"] > 100_000
    rows = {r["task"].split()[0].split(".")[-1]: r["state"] for r in verb_json(krait, "report", trace, "--by", "task", "--at", last_moment(krait, trace))["tasks"]}
    assert {name: rows.get(name) for name in ("locked", "taker", "sleeper", "joiner", "burner")} == {"locked": "lock", "taker": "queue", "sleeper": "timer", "joiner": "task", "burner": "running"}
