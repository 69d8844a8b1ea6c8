# SPDX-License-Identifier: Apache-2.0
"""Work that is handed to executors: the name of what it calls, and what does it."""

import json
import subprocess

import pytest
from works import STAGES, names

# Each callable, and its name. What is of the program's own raises where krait would run it.
CALLABLES = r"""
    import functools, threading, time
    from concurrent.futures import ThreadPoolExecutor
    ran = []
    def refuse(*args):
        ran.append(args)
        raise AssertionError("the program's code runs")
    def work(n): return n
    def outer():
        def inner(n): return n
        return inner
    class Thing:
        def method(self, n): return n
        @staticmethod
        def static(n): return n
        @classmethod
        def of_class(cls, n): return n
        def __call__(self, n): return n
    class Refusing:
        __name__ = __doc__ = __wrapped__ = func = property(refuse)
        __getattr__ = __repr__ = __eq__ = refuse
        __hash__ = None
        def __call__(self, n): return n
    class Meta(type):
        __getattribute__ = __repr__ = __instancecheck__ = __subclasscheck__ = mro_entries = refuse
    class Odd(metaclass=Meta):
        def __call__(self, n): return n
    class Part(functools.partial):
        func = args = property(refuse)
    class Renamed:
        def __call__(self, n): return n
    Renamed.__qualname__ = "Re\udcff\0named"
    Renamed.__module__ = "mo\udcfe"
    Long = type("L" * 5000, (), {"__call__": lambda self, n: n, "__module__": "long"})
    class NoModule:
        __module__ = 7
        def __call__(self, n): return n
    @functools.lru_cache(None)
    def cached(n): return n
    @functools.wraps(work)
    def wrapping(n): return n
    circle = functools.partial(work)
    circle.__setstate__((circle, (), {}, {}))
    thing = Thing()
    CASES = [
        (work, "__main__.work"), (lambda n: n, "__main__.<lambda>"), (outer(), "__main__.outer.<locals>.inner"),
        (thing.method, "__main__.Thing.method"), (Thing.static, "__main__.Thing.static"), (Thing.of_class, "__main__.Thing.of_class"),
        (thing, "__main__.Thing"), (Thing, "__main__.Thing"), (Refusing(), "__main__.Refusing"), (Odd(), "__main__.Odd"), (Odd, "__main__.Odd"),
        (time.sleep, "time.sleep"), (abs, "builtins.abs"), (dict, "builtins.dict"), ([].append, "builtins.list.append"), (str.upper, "builtins.str.upper"),
        (str.__len__, "builtins.str.__len__"), ("x".__add__, "builtins.method-wrapper"), (dict.fromkeys, "builtins.dict.fromkeys"),
        (functools.partial(work), "__main__.work"), (functools.partial(functools.partial(work, n=1), n=2), "__main__.work"), (Part(work), "__main__.work"),
        (Part(Part(thing.method)), "__main__.Thing.method"), (functools.partial(time.sleep, 0), "time.sleep"), (circle, "functools.partial"),
        (cached, "__main__.cached"), (wrapping, "__main__.wrapping"), (Renamed(), "mo\\udcfe.Re\\udcff"), (NoModule(), "<unknown>.NoModule"), (Long(), "long.LLL"),
    ]
    ready = threading.Event()
    ran.clear()
    def hold(n): ready.wait()
    with ThreadPoolExecutor(1) as pool:
        for call, _ in CASES * 2:
            if call is circle:  # it would never end
                ready.clear()
                pool.submit(hold, 0)
                pool.submit(call, 0).cancel()
                ready.set()
            else:
                pool.submit(call, 0).exception()
    assert not ran, len(ran)
    print(*(name for _, name in CASES), sep="\n")
"""


@pytest.mark.every_python
@pytest.mark.parametrize("options", [(), ("--no-c-calls", "--exclude", "__main__")], ids=["recorded", "not recorded"])
def test_work_has_the_name_of_what_it_calls(record, python, options):
    run = record.text(python, CALLABLES, options=list(options))
    wanted = run.stdout.splitlines() * 2
    found = [name for name, pool in names(run) if pool == "threads" and name != "__main__.hold"]
    assert [name if len(name) < 500 else name[:8] for name in found] == wanted
    assert {name for name, _ in names(run, "work:start")} <= {*found, "__main__.hold"}


POOLS = """
    import asyncio, functools, sys, time
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    from multiprocessing.pool import ThreadPool
    def one(n): return n
    def two(a, b): return b
    async def main():
        if sys.version_info >= (3, 9): await asyncio.to_thread(one, 3)
        await asyncio.get_running_loop().run_in_executor(None, functools.partial(two, 1), 3)
    if __name__ == "__main__":
        context = get_context("fork")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            assert list(pool.map(one, [1], chunksize=1)) == [1]
            assert pool.submit(abs, -1).result() == 1
        for pool in context.Pool(1), ThreadPool(1):
            assert pool.map(one, [1, 2], chunksize=1) == [1, 2]
            assert pool.starmap(two, [(1, 2)]) == [2]
            assert pool.apply(abs, [-1]) == 1
            assert list(pool.imap(one, [1])) == [1]
            assert list(pool.imap_unordered(one, [1, 2], chunksize=2)) == [1, 2]
            pool.terminate()
        asyncio.run(main())
"""


@pytest.mark.every_python
def test_work_of_pools_has_the_name_of_what_they_were_given(record, python):
    run = record.text(python, POOLS)
    of_pool = ["__main__.one", "__main__.one", "__main__.two", "builtins.abs", "__main__.one", "__main__.one"]
    submitted = [(name, "processes") for name in ["__main__.one", "builtins.abs", *of_pool]] + [(name, "threads") for name in of_pool]
    to_thread = [("__main__.one", "threads")] * (python.number >= (3, 9))
    for stage in STAGES[:3]:
        assert sorted(names(run, stage)) == sorted([*submitted, *to_thread, ("__main__.two", "threads")]), stage
    assert (None, "threads") not in names(run, "work:result")


LIBRARIES = {
    "gevent": "    from gevent.threadpool import ThreadPool\n    assert ThreadPool(1).spawn(work, 1).get() == 1\n",
    "trio": "    import trio\n    assert trio.run(trio.to_thread.run_sync, work, 1) == 1\n",
    "anyio on trio": "    import anyio, anyio.to_thread\n    assert anyio.run(anyio.to_thread.run_sync, work, 1, backend='trio') == 1\n",
    "anyio": "    import anyio, anyio.to_thread\n    assert anyio.run(anyio.to_thread.run_sync, work, 1) == 1\n",
}


@pytest.mark.few_pythons
@pytest.mark.parametrize("library", LIBRARIES)
def test_work_for_threads_of_libraries_has_the_name_of_what_they_were_given(record, python, venv, library):
    packages = ["gevent"] if library == "gevent" else ["trio", "anyio"]
    run = record.text(venv(python, *packages), "    def work(n): return n\n" + LIBRARIES[library])
    stages = STAGES if library != "gevent" or python.number >= (3, 12) else STAGES[:1]
    assert [names(run, stage) for stage in stages] == [[("__main__.work", "threads")]] * len(stages)


AUDITED = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    seen = []
    def work(n): return n
    def outer():
        x = 1
        return lambda n: x
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work, 0).result()
        sys.addaudithook(lambda event, args: seen.append((event, args)) if event.startswith("object.") else None)
        pool.submit(outer(), 0).result()
        pool.submit(work, 0).result()
        print(seen)
"""


@pytest.mark.few_pythons
def test_audit_hooks_do_not_see_krait_read_a_function(record, python):
    assert record.text(python, AUDITED).stdout == "[]\n"


FORKED = """
    import os, threading
    from concurrent.futures import ThreadPoolExecutor
    def fork(n):
        pid = os.fork()
        if pid: os.waitpid(pid, 0)
        else:
            with ThreadPoolExecutor(1) as pool: pool.submit(int, "1").result()
            os._exit(0)
    with ThreadPoolExecutor(1) as pool: pool.submit(fork, 0).result()
"""


@pytest.mark.few_pythons
def test_a_child_names_its_own_work(record, python):
    assert names(record.text(python, FORKED)) == [("__main__.fork", "threads"), ("builtins.int", "threads")]


LATE = """
    import os
    from concurrent.futures import ThreadPoolExecutor
    def work(): pass
    with ThreadPoolExecutor(1) as pool: future = pool.submit(work)
    future.result()
    pid = os.fork()
    future.result()
    if pid: os.waitpid(pid, 0)
    else: os._exit(0)
"""


@pytest.mark.few_pythons
def test_a_child_does_not_know_what_its_parent_has_submitted(record, python, run):
    """Its ids of names are others than its parent's."""
    recording = record.text(python, LATE)
    assert sorted(names(recording, "work:result")) == [("<unknown>", "threads"), *[("__main__.work", "threads")] * 2]


OLD = """
    process 5 python3
    code 1 python app main app.py 1
    thread 5 MainThread
    0us call 1
    10us oldsubmit 7
    15us submit 8 1 1
    900us oldresult 7
    thread 6 worker
    0us call 1
    100us oldstart 7
    120us start 8 1 1
    700us olddone 7
"""


def test_recordings_that_do_not_tell_the_function_are_read(synth, run, krait):
    folder = synth(OLD)
    rules = ["intervals", folder, "--start", "^work:submit", "--stop", "^work:start", "--key", "id", "--json"]
    (both,) = json.loads(run(*rules).stdout)["rows"]
    assert (both["intervals"], both["no_stop"], both["total_ns"]) == (2, 0, 195_000)
    rows = json.loads(run(*rules, "--by", "function,pool").stdout)["rows"]
    assert [(row["key"], row["intervals"]) for row in rows] == [(None, 1), ("app.main processes", 1)]
    folder.parent.joinpath("own.toml").write_text('[interval.a]\nstart = { event = "work:submit", key = "id" }\nstop = { event = "work:start", key = "id" }\nby = ["function", "pool"]\n')
    assert {row["key"] for row in json.loads(run("intervals", folder, "-f", folder.parent / "own.toml", "--json").stdout)["rows"]} == {None, "app.main processes"}
    table = rules[:-1]
    heads = [run(*table, *more).stdout.split("\n")[0].split()[-1] for more in ([], ["--by", "function,pool"], ["--by", "function", "--sort", "function"], ["--by", "key"])]
    assert heads == ["name", "function,pool", "function", "key"]
    listed = run(*table, "--by", "function", "--list").stdout.split("\n")[0].split()
    assert "function" in listed and "key" not in listed and "key" in run(*table, "--list").stdout.split("\n")[0].split()
    mixed = run(*table, "--by", "function", "-f", folder.parent / "own.toml").stdout.split("\n")[0].split()
    assert mixed[-1] == "key"  # the file's rows have others
    assert json.loads(run(*rules, "--by", "function").stdout)["rows"][0].keys() >= {"key"}
    assert "function" not in subprocess.run([krait, "cat", folder, "--filter", "id == 7"], capture_output=True, text=True, check=True).stdout
    assert "2 pieces for executors: 2 started, 1 done, 1 results read" in " ".join(run("info", folder).stdout.split())


def test_the_list_of_waits_tells_what_and_who(record, any_python, run):
    recording = record.text(any_python, POOLS)
    rules = ["intervals", recording.path, "--start", "^work:submit", "--stop", "^work:start", "--key", "id", "--list", "--by", "function", "--sort", "duration_ns"]
    rows = json.loads(run(*rules, "--json").stdout)["list"]
    assert [row["duration_ns"] for row in rows] == sorted((row["duration_ns"] for row in rows), reverse=True)
    assert {row["key"] for row in rows} == {"__main__.one", "__main__.two", "builtins.abs"}
    elsewhere = [row for row in rows if row["end_pid"]]
    assert len(elsewhere) == 8 and all(row["end_pid"] != row["pid"] and row["end_tid"] == row["end_pid"] for row in elsewhere)
    assert run(*rules).stdout.splitlines()[0].split()[-6:] == "ends in in process in pid".split()
