# SPDX-License-Identifier: Apache-2.0
"""Work that is handed to executors: when it was submitted, begun, done, and its result taken; as arrows and as intervals."""

import json
import os
import re

import pytest

from conftest import BUILD
from exported import export  # noqa: F401  (a fixture)
from package import PACKAGE
from recording import Recording
from trace_processor import ask
from works import STAGES, by_id

PROGRAM = """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    def work(n): return n
    def fail(): raise ValueError("no")
    async def main():
        return await asyncio.get_running_loop().run_in_executor(None, work, 7)
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work, i) for i in range(5)]
        assert [f.result() for f in futures] == list(range(5))
        try: pool.submit(fail).result()
        except ValueError: pass
        pool.submit(work, 8)
    assert asyncio.run(main()) == 7
"""


@pytest.mark.few_pythons
def test_work_is_followed_from_its_submission_to_its_result(record, python):
    run = record.text(python, PROGRAM).check(ended=False)
    works = by_id(run)
    assert sorted(works) == list(range(1, 9))
    for number, stages in works.items():
        assert [s for s, _ in stages] == (STAGES[:3] if number == 7 else STAGES), number
        main, worker = run.main.pid, dict(stages)["work:start"]
        assert worker != main and [tid for _, tid in stages] == [main, worker, worker, main][: len(stages)]


OWN_FUTURES = """
    from concurrent.futures import Future, ThreadPoolExecutor
    def work(): pass
    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            futures = [pool.submit(work) for _ in range(50)]
            for future in futures: future.result()
            were = {id(future) for future in futures}
            del futures, future
            futures = [Future() for _ in range(200)]
            again = sum(id(future) in were for future in futures)
            for future in futures:
                future.set_result(None)
                future.result()
            del futures, future
            if again: break
    print(again)
"""


@pytest.mark.few_pythons
def test_a_future_of_the_programs_own_is_no_work(record, python):
    """It may have the address of one that an executor had."""
    run = record.text(python, OWN_FUTURES).check(ended=False)
    assert int(run.stdout) > 0
    assert {tuple(stage for stage, _ in stages) for stages in by_id(run).values()} == {tuple(STAGES)}


BY_GEVENT = """
    from gevent.threadpool import ThreadPool
    pool = ThreadPool(2)
    results = [pool.spawn(work, n) for n in range(5)]
    assert [result.get() for result in results] == list(range(5))
    try: pool.spawn(fail).get()
    except ValueError: pass
"""
BY_TRIO = """
    import trio
    run, group, start = trio.to_thread.run_sync, trio.open_nursery, trio.run
"""
BY_ANYIO = """
    import anyio, anyio.to_thread
    run, group, start = anyio.to_thread.run_sync, anyio.create_task_group, lambda main: anyio.run(main, backend="trio")
"""
BY_ANYIO_ON_ASYNCIO = BY_ANYIO.replace('"trio"', '"asyncio"')
OTHERS = """
    import contextvars, queue, weakref
    own, seen = queue.Queue(), weakref.WeakSet()
    class Local: pass
    def others():
        local = Local()
        seen.add(local)
        for n in range(3):
            own.put_nowait((contextvars.copy_context(), n, n, object()))
            own.get()
            own.task_done()
    others()
    work_before, work = work, lambda n: (others(), work_before(n))[1]
"""
TO_THREADS = """
    async def one(n):
        assert await run(work, n) == n
    async def main():
        async with group() as own:
            for n in range(5): own.start_soon(one, n)
        try: await run(fail)
        except ValueError: pass
    start(main)
"""
LIBRARIES = {
    "gevent": (BY_GEVENT, ["gevent"]),
    "trio": (BY_TRIO + TO_THREADS, ["trio", "anyio"]),
    "anyio": (BY_ANYIO + TO_THREADS, ["trio", "anyio"]),
    "anyio on asyncio": (OTHERS + BY_ANYIO_ON_ASYNCIO + TO_THREADS + "    assert not seen, 'the frames are kept'\n", ["trio", "anyio"]),
    "anyio on asyncio, no C": (BY_ANYIO_ON_ASYNCIO + TO_THREADS, ["trio", "anyio"], "--no-c-calls"),
}


@pytest.mark.few_pythons
@pytest.mark.parametrize("library", LIBRARIES)
def test_work_for_threads_of_other_libraries_is_followed(record, python, venv, library):
    program, packages, *options = LIBRARIES[library]
    if library == "gevent" and python.number < (3, 12):
        pytest.skip("gevent takes the profile function off its threads after each piece of work")
    run = record.text(venv(python, *packages), "    import time\n    def work(n): time.sleep(0.001); return n\n    def fail(): raise ValueError('no')\n" + program, options=options)
    works = by_id(run)
    assert sorted(works) == list(range(1, 7))
    for number, stages in works.items():
        assert [s for s, _ in stages] == STAGES, number
        main, worker = run.main.pid, dict(stages)["work:start"]
        assert worker != main and [tid for _, tid in stages] == [main, worker, worker, main]


ACROSS = """
    import multiprocessing, os, pickle, sys, threading
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    import krait
    def work(n):
        krait.flow(n)
        print(n, os.getpid(), flush=True)
        pickle.loads(pickle.dumps((0, 0, abs, (), {})))
    def nested(n):
        work(n)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
            give(pool.submit, n + 100, work).result()
    def give(submit, n, function, *arguments):
        krait.flow(n)
        return submit(function, *(arguments or [n]))
    def main():
        with ProcessPoolExecutor(2, mp_context=context) as one, ProcessPoolExecutor(1, mp_context=context) as other:
            futures = [give(pool.submit, 10 * n + i, work) for n in range(1, 4) for i, pool in enumerate([one, other])]
            for future in futures: future.result()
            assert list(one.map(abs, [-1])) == [1]
            give(other.submit, 50, nested).result()
            last = give(one.submit, 60, os._exit)
            try: last.result()
            except BrokenProcessPool: pass
        if how == "spawn" and sys.version_info >= (3, 11):
            with ProcessPoolExecutor(1, max_tasks_per_child=1, mp_context=context) as pool:
                for future in [give(pool.submit, n, work) for n in (70, 80)]: future.result()
"""
ACROSS_POOLS = (
    ACROSS[: ACROSS.index("    def main()")]
    + """
    def hand_out(pool, first):
        for n in range(first, first + 4): give(pool.apply_async, n, work, [n]).get()
    def main():
        with context.Pool(2) as one, context.Pool(1, maxtasksperchild=3) as other:
            threads = [threading.Thread(target=hand_out, args=(pool, 10 * i + 10)) for i, pool in enumerate([one, other] * 2)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert one.map(abs, [-1, -2, -3], chunksize=3) == [1, 2, 3]
"""
)
MAIN = """
    if __name__ == "__main__":
        how = "HOW"
        context = multiprocessing.get_context(how)
        main()
"""


def across(program, how):
    return program + MAIN.replace("HOW", how)


def told_by_flows(run):
    """What was submitted, and what was started, by the flow that the program tells before, or after: {flow: (id, tid)}."""
    last, submitted, started = {}, {}, {}
    for note in run.notes("user:flow", *STAGES):
        before, tid = last.get(note["tid"], {"event": None}), note["tid"]
        if (before["event"], note["event"]) == ("user:flow", "work:submit"):
            submitted[before["id"]] = note["id"], tid
        if (before["event"], note["event"]) == ("work:start", "user:flow"):
            started[note["id"]] = before["id"], tid
        last[tid] = note
    return submitted, started


@pytest.mark.few_pythons
@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
@pytest.mark.parametrize("program", [ACROSS, ACROSS_POOLS], ids=["executors", "pools"])
def test_work_for_processes_is_followed_into_them(record, python, program, how):
    run = record.text(python, across(program, how), env={"PYTHONPATH": str(BUILD / "python")})
    pids = {int(n): int(pid) for n, pid in map(str.split, run.stdout.splitlines())}
    submitted, started = told_by_flows(run)
    assert {n: tid for n, (_, tid) in started.items()} == pids and len(pids) >= 8
    assert {n: id for n, (id, _) in started.items()} == {n: id for n, (id, _) in submitted.items() if n != 60}
    works = by_id(run)
    assert len(works) == len(submitted) + 1
    for stages in works.values():
        assert [s for s, _ in stages] == STAGES
        submit, start, done, result = [tid for _, tid in stages]
        assert submit == result and len({submit, start, done}) == 3


BY_POOLS = """
    import time
    from multiprocessing import TimeoutError, get_context
    from multiprocessing.pool import ThreadPool
    def fail(): raise ValueError("no")
    def use(pool):
        assert pool.map(abs, [-1, -2, -3], chunksize=1) == [1, 2, 3]
        try: pool.apply(fail)
        except ValueError: pass
        late = pool.apply_async(time.sleep, [0.05])
        try: late.get(0)
        except TimeoutError: pass
        while not late.ready(): time.sleep(0.001)
        assert pool.map(abs, []) == []
        assert list(pool.imap(abs, [-1, -2])) == [1, 2]
        assert sorted(pool.imap_unordered(abs, [-1, -2, -3], chunksize=2)) == [1, 2, 3]
    if __name__ == "__main__":
        pools = [get_context("fork").Pool(2), ThreadPool(2)]
        for pool in pools: use(pool)
        for pool in pools: pool.terminate()
"""


@pytest.mark.few_pythons
def test_pools_of_multiprocessing_are_followed(record, python):
    run = record.text(python, BY_POOLS)
    works = list(by_id(run).values())
    part, empty = STAGES[:3], ["work:submit", "work:result"]
    mapped, late, one_by_one = [STAGES, part, part], part, [STAGES, STAGES]  # of imap each item
    assert [[s for s, _ in stages] for stages in works] == [*mapped, STAGES, late, empty, *one_by_one, *one_by_one] * 2
    assert run.main.pid not in [tid for stages in works for stage, tid in stages if stage == "work:start"]
    of_main = [True, False, False, True, True, True, True, False, True, False] * 2
    assert [stages[0][1] == run.main.pid for stages in works] == of_main


ITEMS = """
    import sys, threading, time
    from multiprocessing import TimeoutError, get_context
    from multiprocessing.pool import ThreadPool
    import krait
    def work(n):
        time.sleep(0.02 * (3 - n))  # the last one is the first that is done
        if n == 2: raise ValueError(n)
        return n
    def take(items, tell):
        got, timeouts = [], 0
        while True:
            try: n = items.next(0.001) if tell else next(items)
            except TimeoutError: continue
            except StopIteration: break
            except ValueError as error: n = error.args[0]
            krait.mark("got", part=n)
            got.append(n)
        try: next(items)
        except StopIteration: pass
        return got
    def drain(items):  # at the end, an iterator of imap wakes one thread alone
        while True:
            try: items.next(0.05)
            except (TimeoutError, StopIteration): break
    if __name__ == "__main__":
        for pool in get_context("fork").Pool(3), ThreadPool(3):
            assert take(pool.imap(work, range(1, 4)), True) == [1, 2, 3]
            assert sorted(take(pool.imap_unordered(work, range(1, 4)), False)) == [1, 2, 3]
            assert [n for n in pool.imap(abs, [-1, -2, -3], chunksize=2)] == [1, 2, 3]
            shared = pool.imap(abs, [-1] * 40)
            threads = [threading.Thread(target=drain, args=(shared,)) for _ in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            pool.terminate()
        print(type(type(shared).__next__).__name__, type(shared).next.__name__)
"""


@pytest.mark.few_pythons
def test_each_item_of_imap_has_a_result_where_the_program_takes_it(record, python):
    """Also of imap_unordered, which hands out items as they are done; a timeout and the end are none."""
    run = record.text(python, ITEMS, env={"PYTHONPATH": str(BUILD / "python")})
    assert run.stdout.split() == ["function", "next"]
    notes = run.notes("user:mark", *STAGES)
    submitted = [note["id"] for note in notes if note["event"] == "work:submit"]
    taken, last = {}, None
    for note in notes:
        if note["tid"] == run.main.pid and note["event"] == "user:mark":
            taken.setdefault(int(re.search(r"\d+", str(note["fields"]))[0]), []).append(last)
        elif note["tid"] == run.main.pid:
            last = note["id"] if note["event"] == "work:result" else last
    jobs = {}
    for note in notes:
        if note["event"] == "work:result":
            jobs.setdefault(note["id"], []).append(note["tid"])
    assert all(len(takers) == 1 for takers in jobs.values()) and set(jobs) <= set(submitted)
    assert {n: len(ids) for n, ids in taken.items()} == {1: 4, 2: 4, 3: 4}
    parts = {n: [submitted.index(id) for id in ids] for n, ids in taken.items()}
    assert all(parts[n + 1][i] - parts[n][i] == 1 for n in (1, 2) for i in range(4)), parts  # submitted one after the other


AT_A_TIME = """
    import sys, threading, time
    from multiprocessing.pool import ThreadPool
    def is_setting(thread):
        frame = sys._current_frames().get(thread.ident)
        while frame and frame.f_code.co_name != "_set": frame = frame.f_back
        return frame
    go = threading.Event()
    def work(n): go.wait()
    pool = ThreadPool(1)
    items = pool.imap_unordered(work, [1, 2])
    setters = [threading.Thread(target=items._set, args=(i, (True, i))) for i in range(2)]
    with items._cond:
        for thread in setters:
            thread.start()
            while not is_setting(thread): time.sleep(0.001)
    for thread in setters: thread.join()
    print(sorted([next(items), next(items)]))
    go.set()
    pool.terminate()
"""


@pytest.mark.few_pythons
def test_of_items_that_are_set_at_a_time_nobody_knows_which_is_taken(record, python):
    """A pool sets those that it cannot send in another thread than the results of the others."""
    run = record.text(python, AT_A_TIME)
    assert run.stdout == "[0, 1]\n" and not [note for note in run.notes(*STAGES) if note["event"] == "work:result"]


AGAIN = """
    import os, sys
    from multiprocessing import get_context
    from multiprocessing.pool import ThreadPool
    import krait
    if __name__ == "__main__":
        with get_context("fork").Pool(1, maxtasksperchild=2) as pool, ThreadPool(1) as threads:
            with krait.recording(sys.argv[1] + "1"):
                pool.apply(os.getpid)
                threads.apply(os.getpid)
            with krait.recording(sys.argv[1] + "2"):
                for _ in range(2): pool.apply(os.getpid)  # by the process that was there, then by another one
                threads.apply(os.getpid)
                krait.pause()
                krait.resume()
                threads.apply(os.getpid)
            with krait.recording(sys.argv[1] + "3", include="__main__"):
                threads.map(os.getpgid, [0, 0])
"""


@pytest.mark.few_pythons
def test_a_pool_is_followed_in_a_recording_that_begins_later(record, python, tmp_path):
    ended = python.run(record.script(AGAIN), tmp_path / "trace", env={**os.environ, **PACKAGE}, timeout=60)
    assert ended.returncode == 0, ended.stderr
    unseen = [stage for stage in STAGES if stage != "work:start"]
    stages = [[s for s, _ in stages] for stages in by_id(Recording(tmp_path / "trace2")).values()]
    assert stages == [unseen, STAGES, STAGES, STAGES]
    assert not by_id(Recording(tmp_path / "trace3"))


def test_work_is_left_out_with_the_tasks_or_the_functions(record, any_python):
    assert not by_id(record.text(any_python, PROGRAM, options=["--no-tasks"]))
    assert not by_id(record.text(any_python, PROGRAM, options=["--include", "__main__"]))


@pytest.mark.long
@pytest.mark.parametrize(("program", "works", "arrows"), [(PROGRAM, 8, 8 + 7), (across(ACROSS, "fork"), 10, 3 * 10)], ids=["threads", "processes"])
def test_queue_times_are_intervals_and_flows_are_arrows(record, any_python, export, run, program, works, arrows):
    recording = record.text(any_python, program, env={"PYTHONPATH": str(BUILD / "python")})
    rules = ["--start", "^work:submit", "--stop", "^work:start", "--start", "^work:start", "--stop", "^work:done", "--key", "id"]
    rows = json.loads(run("intervals", recording.path, *rules, "--name", "queued", "--name", "runs", "--json").stdout)["rows"]
    assert [(row["name"], row["intervals"], row["no_stop"], row["no_start"]) for row in rows] == [("queued", works, 0, 0), ("runs", works, 0, 0)]
    told = len(told_by_flows(recording)[1])
    found = [e for e in json.loads(export(recording.path, "chrome").read_text())["traceEvents"] if e["ph"] == "s"]
    assert len(found) == arrows + told
    by_work = "select count(*) from args where key = 'debug.fields' and string_value like '%function = \"__main__.work\"%'"
    ((count,),), ((named,),) = ask(export(recording.path, "perfetto"), "select count(*) from flow", by_work)
    assert count >= arrows + told and named >= 6
