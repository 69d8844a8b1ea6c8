# SPDX-License-Identifier: Apache-2.0
"""import krait: recording from inside a program."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import BUILD
from package import PACKAGE
from recording import Recording


def run(python, record, text, *args):
    env = {**os.environ, **PACKAGE}
    result = python.run(record.script(text), *args, env=env, cwd=record.folder)
    assert result.returncode == 0, result.stderr
    return result


def test_a_part_of_a_program_is_recorded(record, python, tmp_path):
    run(
        python,
        record,
        """
        import sys, krait
        def f(): pass
        def unseen(): pass
        unseen()
        with krait.recording(sys.argv[1]) as path:
            assert krait.is_recording()
            for _ in range(100): f()
        assert not krait.is_recording()
        unseen()
        """,
        tmp_path / "trace",
    )
    recording = Recording(tmp_path / "trace").check(ended=False)
    calls = recording.calls()
    assert calls["f"] == 100 and not calls["unseen"]


@pytest.mark.pythons(most=(3, 11))
@pytest.mark.few_pythons
def test_who_forks_in_a_pause_of_the_budget_has_its_child_recorded(record, python, tmp_path, report):
    result = run(
        python,
        record,
        """
        import os, sys, time, krait
        def leaf(x): return x
        def marked(): pass
        def child():
            for i in range(10): marked()
            os._exit(0)
        krait.start(sys.argv[1], max_overhead=1)
        begin, children = time.monotonic(), 0
        while time.monotonic() < begin + 1.5:
            for i in range(20000): leaf(i)
            if time.monotonic() > begin + children * 0.15:
                children += 1
                os.waitpid(os.fork() or child(), 0)
        krait.stop()
        print(children)
        """,
        tmp_path / "trace",
    )
    marked = next(row for row in report(tmp_path / "trace") if row["name"] == "marked")
    assert marked["calls"] == 10 * int(result.stdout)


def test_starting_in_mid_call_seeds_the_stacks_of_all_threads(record, python, tmp_path, report):
    run(
        python,
        record,
        """
        import sys, threading, krait
        go, there = threading.Event(), threading.Event()
        def other():
            waiting()
        def waiting():
            there.set()
            go.wait()
            work()
        def work(): pass
        def outer():
            inner()
        def inner():
            krait.start(path=sys.argv[1])
            work()
            go.set()
            thread.join()
        thread = threading.Thread(target=other)
        thread.start()
        there.wait()
        outer()
        work()
        krait.stop()
        """,
        tmp_path / "trace",
    )
    recording = Recording(tmp_path / "trace").check(ended=False)
    assert recording.calls()["work"] == 3
    process = recording.main
    frames = {process.codes[e.code].qualname for t in process.threads for e in t.events if e.name == "python:frame"}
    assert {"outer", "inner", "other", "waiting"} <= frames
    functions = {f["name"]: f for f in report(tmp_path / "trace")}
    outer = functions["outer"]
    assert outer["calls"] == 0 and outer["total_ns"] > 0  # it was called before, and ran on


def test_threads_that_threading_does_not_know_are_seeded_too(record, python, tmp_path, report):
    run(
        python,
        record,
        """
        import _thread, sys, time, krait
        def waits(): lock.acquire()
        def is_waiting(): return any(f.f_code is waits.__code__ for f in sys._current_frames().values())
        lock = _thread.allocate_lock()
        lock.acquire()
        _thread.start_new_thread(waits, ())
        while not is_waiting(): time.sleep(0.01)
        krait.start(sys.argv[1])
        krait.stop()
        """,
        tmp_path / "trace",
    )
    waits = next(row for row in report(tmp_path / "trace") if row["name"] == "waits")
    assert waits["calls"] == 0 and waits["total_ns"] > 0


ROUNDS = 2_000_000  # of a loop, each of which takes more than a nanosecond anywhere


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [{}, {"call_sites": True}, {"exclude": ["nothing"]}, {"c_calls": False}], ids=str)
def test_kraits_own_functions_are_not_the_programs(record, python, tmp_path, report, options):
    run(
        python,
        record,
        f"""
        import sys, krait
        def f(): pass
        def outer():
            krait.start(path=sys.argv[1], **{options})
            assert krait.is_recording()
            f()
            compute = 0
            for _ in range({ROUNDS}): compute += 1
            krait.stop()
        def quiet():
            compute = 0
            with krait.recording(sys.argv[1] + "2", **{options}):
                for _ in range({ROUNDS}): compute += 1
        outer()
        quiet()
        """,
        tmp_path / "trace",
    )
    for path, names in ((tmp_path / "trace", ["outer", "<module>", "f"]), (tmp_path / "trace2", ["quiet", "<module>"])):
        recording = Recording(path).check(ended=False)
        assert {c.qualname for c in recording.main.codes.values() if c.kind == "python"} == set(names)
        assert not any("krait" in c.module for c in recording.main.codes.values())
        (thread,) = recording.main.threads
        assert recording.main.shape(thread)[1] == []
        functions = {f["name"]: f for f in report(path)}
        assert functions[names[0]]["self_ns"] > ROUNDS and functions["<module>"]["total_ns"] > ROUNDS


def test_options_are_those_of_the_command(record, any_python, tmp_path):
    run(
        any_python,
        record,
        """
        import sys, krait
        def kept(): len("")
        def left_out(): pass
        krait.start(path=sys.argv[1], c_calls=False, exclude=["left_*"])
        kept(); left_out()
        krait.stop()
        krait.start(path=sys.argv[1] + "2")
        kept()
        krait.stop()
        """,
        tmp_path / "trace",
    )
    calls = Recording(tmp_path / "trace").check(ended=False).calls()
    assert (calls["kept"], calls["left_out"], calls["len"]) == (1, 0, 0)
    calls = Recording(tmp_path / "trace2").check(ended=False).calls()
    assert (calls["kept"], calls["len"]) == (1, 1)


def test_wrong_use_is_said(record, any_python, tmp_path):
    result = run(
        any_python,
        record,
        """
        import sys, krait
        for wrong in (dict(path="/proc/nowhere/trace"), dict(path=sys.argv[1], max_overhead="much")):
            try:
                krait.start(**wrong)
            except RuntimeError as e:
                print(e)
        krait.start(path=sys.argv[1])
        try:
            krait.start(path=sys.argv[1] + "2")
        except RuntimeError as e:
            print(str(e).splitlines()[0])
        krait.stop()
        """,
        tmp_path / "trace",
    )
    first, second, third = result.stdout.splitlines()
    assert first.startswith("krait.start: cannot make the folder /proc/nowhere") and first.endswith("; choose another path")
    assert second.startswith("krait.start: max_overhead: 'much'")
    assert "krait collect" not in result.stdout and "Try: " not in result.stdout
    assert third == f"krait.start('{tmp_path}/trace2'): krait.start() already records this process, into {tmp_path}/trace; call krait.stop() first"


@pytest.mark.pythons(least=(3, 12), most=(3, 13))
def test_a_start_that_fails_leaves_no_folder_and_no_collector(record, python, tmp_path):
    result = run(
        python,
        record,
        """
        import os, sys, krait
        for tool in range(6):
            sys.monitoring.use_tool_id(tool, "other")
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            print(e)
        print(os.path.exists(sys.argv[1]))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = open(f"/proc/{pid}/cmdline").read()
            except OSError:
                continue
            assert "collect" not in command or sys.argv[1] not in command or pid == str(os.getpid()), command
        """,
        tmp_path / "trace",
    )
    why, there = result.stdout.splitlines()
    assert "all tool ids of sys.monitoring are in use" in why and there == "False"


@pytest.mark.few_pythons
def test_an_option_that_there_is_not_is_said_with_those_that_there_are(record, python, tmp_path):
    result = run(
        python,
        record,
        """
        import sys, krait
        def attempt(begin):
            try:
                begin(sys.argv[1], bogus=1)
            except TypeError as e:
                print(e)
        attempt(krait.start)
        attempt(krait.recording)
        assert not krait.is_recording()
        """,
        tmp_path / "trace",
    )
    first, second = result.stdout.splitlines()
    assert first == second and first.startswith("krait.start: no option 'bogus'; there are include, exclude, c_calls, ")
    assert not (tmp_path / "trace").exists()


def test_every_option_of_a_recording_is_one_of_start(krait):
    """Those of the command that the collector of krait.start() takes."""
    said = subprocess.run([krait, "collect", "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", said, re.M)) - {"help", "output"}
    known = subprocess.run(
        [sys.executable, "-c", "import krait; print(*krait._OPTIONS)"], env={**os.environ, **PACKAGE}, capture_output=True, text=True, check=True
    )
    assert {n[3:] if n.startswith("no-") else n for n in names} == {n.rstrip("_").replace("_", "-") for n in known.stdout.split()}


def test_starting_under_krait_record_names_both(record, any_python, tmp_path):
    run = record.text(
        any_python,
        """
        import sys, krait
        def f(): pass
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            print(e)
        f()
        """,
        tmp_path / "inner",
        env=PACKAGE,
    )
    assert run.stdout.startswith(f"krait.start('{tmp_path}/inner'): this process is already recorded by process ")
    assert f" record -o {run.path} -- " in run.stdout and "krait.is_recording()" in run.stdout
    assert run.check().calls()["f"] == 1 and not (tmp_path / "inner").exists()


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [[], ["--no-children"]], ids=str)
def test_a_second_copy_of_krait_sees_that_the_first_records(record, python, tmp_path, options):
    """As pip's package does, when the command is of another build."""
    shutil.copytree(BUILD / "python" / "krait", tmp_path / "copy" / "krait")
    run = record.text(
        python,
        """
        import sys, krait
        def f(): pass
        assert krait.is_recording()
        try:
            krait.start(sys.argv[1])
        except RuntimeError as e:
            print(e)
        assert krait.stop() is None
        f()
        """,
        tmp_path / "inner",
        options=options,
        env={"PYTHONPATH": str(tmp_path / "copy"), "KRAIT": os.environ.get("KRAIT", str(BUILD / "krait"))},
    )
    assert run.stdout.startswith(f"krait.start('{tmp_path}/inner'): this process is already recorded by process ")
    assert run.check().calls()["f"] == 1 and not (tmp_path / "inner").exists()


@pytest.mark.few_pythons
def test_marks_of_a_second_copy_are_recorded_by_the_first(record, python, tmp_path):
    shutil.copytree(BUILD / "python" / "krait", tmp_path / "copy" / "krait", ignore=shutil.ignore_patterns("__pycache__", "*.p"))
    run = record.text(
        python,
        """
        import logging, sys, krait
        assert sys.argv[1] in krait.__file__
        krait.mark("here", n=1)
        with krait.span("work") as span: span.set(done=True)
        @krait.span("call")
        def f(): pass
        f()
        krait.counter("queue", 2); krait.flow(3)
        logging.getLogger().addHandler(krait.Handler())
        logging.getLogger().warning("logged")
        """,
        tmp_path / "copy",
        env={"PYTHONPATH": str(tmp_path / "copy")},
    )
    notes = run.notes("user:mark", "span:begin", "span:end", "user:counter", "user:flow", "log:record")
    assert [n["event"] for n in notes] == ["user:mark", *["span:begin", "span:end"] * 2, "user:counter", "user:flow", "log:record"]
    assert notes[0]["fields"] == '{"n":1}' and notes[2]["fields"] == '{"done":true}' and notes[-1]["message"] == "logged"


@pytest.mark.few_pythons
def test_a_recorder_of_a_build_that_takes_no_marks_is_said(python, tmp_path):
    (tmp_path / "other.c").write_text('const char *krait_agent_session(void) { return "session"; }')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "_agent.abi3.so", tmp_path / "other.c"], check=True, timeout=60)
    program = f"import ctypes; ctypes.CDLL('{tmp_path}/_agent.abi3.so'); import krait; krait.mark('here'); print(krait.is_recording())"
    done = python.run("-c", program, env={**os.environ, **PACKAGE})
    assert done.stdout == "True\n" and "RuntimeWarning: krait: what records this program is another build than the package krait" in done.stderr


@pytest.mark.few_pythons
def test_a_recording_is_finished_when_its_program_has_ended(record, python, tmp_path, info):
    """Without krait.stop(), and with exit functions that run after krait's own."""
    run(
        python,
        record,
        """
        import atexit, sys
        def last(): pass
        atexit.register(last)
        import krait
        def f(): pass
        atexit.register(f)
        krait.start(sys.argv[1])
        f()
        """,
        tmp_path / "trace",
    )
    facts = info(tmp_path / "trace")  # at once
    assert facts["finished"] is True
    calls = Recording(tmp_path / "trace").check(ended=False).calls()
    assert (calls["f"], calls["last"]) == (2, 0)


def test_a_forked_child_that_exits_leaves_its_parents_recording_alone(record, any_python, tmp_path):
    run(
        any_python,
        record,
        """
        import os, sys, krait
        krait.start(sys.argv[1])
        def f(): pass
        pid = os.fork()
        if pid == 0:
            f()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert krait.is_recording()
        f()
        """,
        tmp_path / "trace",
    )
    parent, child = Recording(tmp_path / "trace").check(ended=False).processes
    assert parent.calls()["f"] == child.calls()["f"] == 1


def test_a_collector_that_hangs_does_not_keep_a_program_from_ending(record, any_python, tmp_path):
    result = run(
        any_python,
        record,
        """
        import os, signal, sys, krait
        krait.start(sys.argv[1])
        krait._PATIENCE = 0.2
        print(krait._state["session"], flush=True)
        os.kill(int(krait._state["session"].split("/")[2]), signal.SIGSTOP)
        def f(): pass
        f()
        """,
        tmp_path / "trace",
    )
    os.kill(int(result.stdout.split("/")[2]), signal.SIGCONT)
    wait_for_end(result.stdout.strip())
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] == 1


@pytest.mark.few_pythons
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_program_that_ends_without_stop_leaves_a_whole_recording(record, python, tmp_path, how):
    result = python.run(
        record.script(
            """
            import os, signal, sys, krait
            krait.start(path=sys.argv[1])
            print(krait._state["session"], flush=True)
            def f(): pass
            for _ in range(1000): f()
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            """
        ),
        tmp_path / "trace",
        how,
        env={**os.environ, **PACKAGE},
    )
    wait_for_end(result.stdout.strip())
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] == 1000


def wait_for_end(session):
    """The collector is a process of its own and may still be writing, as long as its file is there."""
    deadline = time.monotonic() + 60
    while os.path.exists(session):
        assert time.monotonic() < deadline, "the collector does not end"
        time.sleep(0.01)


@pytest.mark.few_pythons
def test_a_decorated_function_stands_right_below_its_caller(record, python, tmp_path, report):
    """What the decorator put between them is krait's own."""
    result = run(
        python,
        record,
        """
        import sys, krait
        def g(): pass
        @krait.recording(sys.argv[1])
        def f(n):
            "its text"
            g()
            return n
        def caller(): print(f(n=3), f.__name__, f.__doc__, f.__wrapped__ is not f)
        caller()
        """,
        tmp_path / "trace",
    )
    assert result.stdout == "3 f its text True\n"
    functions = report(tmp_path / "trace", "--callers", "f")
    assert [row["name"] for row in functions] == ["caller"]
    assert {row["name"] for row in report(tmp_path / "trace") if row["kind"] == "python"} == {"<module>", "caller", "f", "g"}


@pytest.mark.parametrize(
    "options, said",
    [
        ({"max_overhead": 101}, "krait.start: max_overhead is a percentage from 0 to 100"),
        ({"keep": "newest"}, "krait.start: keep needs max_size"),
        ({"for_": "soon"}, "krait.start: for_: 'soon'"),
    ],
)
def test_errors_name_the_argument_not_the_commands_option(record, any_python, tmp_path, options, said):
    result = run(
        any_python,
        record,
        f"""
        import sys, krait
        try:
            krait.start(sys.argv[1], **{options})
        except RuntimeError as e:
            print(e)
        """,
        tmp_path / "trace",
    )
    assert result.stdout.startswith(said) and "--" not in result.stdout


def test_each_call_of_a_decorated_function_has_a_folder_of_its_own(record, any_python, tmp_path):
    result = run(
        any_python,
        record,
        """
        import sys, krait
        @krait.recording(sys.argv[1] + "/", c_calls=False)
        def f(n): return n and f(n - 1)  # the inner calls are the outer one's
        print([f(2) for _ in range(3)])
        with krait.recording(sys.argv[1]) as folder, krait.recording(sys.argv[1]) as inner:
            print(folder, inner)
        assert not krait.is_recording()
        """,
        tmp_path / "trace",
    )
    assert result.stdout == f"[0, 0, 0]\n{tmp_path}/trace-4 None\n" and not result.stderr
    assert sorted(p.name for p in tmp_path.glob("trace*")) == ["trace", "trace-2", "trace-3", "trace-4"]
    for name in ("trace", "trace-2", "trace-3"):
        assert Recording(tmp_path / name).check(ended=False).calls()["f"] == 3


def test_the_run_of_a_partial_of_a_coroutine_function_is_recorded(record, any_python, tmp_path):
    """And of an object whose __call__ is one."""
    result = run(
        any_python,
        record,
        """
        import asyncio, functools, inspect, sys, krait
        def step(): pass
        async def wait(n, m):
            for _ in range(n + m):
                step()
                await asyncio.sleep(0)
            return n
        class Waiter:
            async def __call__(self, n):
                return await wait(n, 0)
        def count(n):
            for i in range(n):
                step()
                yield i
        partial = krait.recording(sys.argv[1] + "/partial")(functools.partial(functools.partial(wait, 2), m=1))
        waiter = krait.recording(sys.argv[1] + "/object")(Waiter())
        numbers = krait.recording(sys.argv[1] + "/generator")(functools.partial(count, 3))
        assert inspect.iscoroutinefunction(partial) and inspect.iscoroutinefunction(waiter)
        assert inspect.isgeneratorfunction(numbers)
        print(asyncio.run(partial()), asyncio.run(waiter(3)), list(numbers()))
        """,
        tmp_path,
    )
    assert result.stdout == "2 3 [0, 1, 2]\n" and not result.stderr
    for name in ("partial", "object", "generator"):
        assert Recording(tmp_path / name).check(ended=False).calls()["step"] == 3, name


@pytest.mark.pythons(least=(3, 12))  # before, hooks are not told of what runs while a stack is named
@pytest.mark.few_pythons
def test_a_stack_whose_naming_calls_functions_is_behind_these_calls(record, python, tmp_path):
    """To find a function's module, its globals are searched, which have a key here that compares itself."""
    run(
        python,
        record,
        """
        import sys, krait
        class Key(str):
            def __hash__(self): return hash("__name__")
            def __eq__(self, other): return False
        @krait.recording(sys.argv[1])
        def count(): yield 1
        exec("def f(): return list(count())\\nf()", {Key("key"): 1, "count": count})
        """,
        tmp_path / "trace",
    )
    recording = Recording(tmp_path / "trace").check(ended=False)
    assert recording.calls()["Key.__eq__"] and recording.calls()["count"]


def test_the_run_of_a_decorated_coroutine_or_generator_is_recorded(record, python, tmp_path):
    """Not what makes it; and it behaves as without the decorator."""
    result = run(
        python,
        record,
        """
        import asyncio, inspect, sys, krait
        def step(): pass
        class Told(Exception): pass
        def ways(made):
            "Of a generator: what came in, what goes out."
            @krait.recording(sys.argv[1] + made)
            def numbers():
                got = []
                for n in range(3):
                    step()
                    try:
                        got.append((yield n))
                    except Told as told:
                        got.append(repr(told))
                return got
            return numbers
        @krait.recording(sys.argv[1] + "/coroutine")
        async def wait(n):
            for _ in range(n):
                step()
                await asyncio.sleep(0)
            return n
        @krait.recording(sys.argv[1] + "/async")
        async def arrive():
            for n in range(3):
                step()
                try:
                    print("sent", (yield n))
                except Told as told:
                    print("told", repr(told))
        async def main():
            assert inspect.iscoroutinefunction(wait) and inspect.isasyncgenfunction(arrive)
            print(await wait(3))
            g = arrive()
            print(await g.__anext__(), await g.asend("a"), await g.athrow(Told(1)))
            try:
                await g.asend("b")
            except StopAsyncIteration:
                print("over")
            assert not krait.is_recording()
            g = arrive()
            await g.__anext__()
            assert krait.is_recording()
            await g.aclose()
        g = ways("/generator")()
        assert inspect.isgenerator(g) and not krait.is_recording()
        print(next(g), g.send("a"), g.throw(Told(1)))
        try:
            next(g)
        except StopIteration as end:
            print(end.value)
        assert not krait.is_recording()
        asyncio.run(main())
        assert not krait.is_recording()
        """,
        tmp_path,
    )
    expected = ["0 1 2", "['a', 'Told(1)', None]", "3", "sent a", "told Told(1)", "0 1 2", "sent b", "over"]
    assert result.stdout.splitlines() == expected and not result.stderr
    calls = {name: Recording(tmp_path / name).check(ended=False).calls()["step"] for name in ("generator", "coroutine", "async", "async-2")}
    assert calls == {"generator": 3, "coroutine": 3, "async": 3, "async-2": 1}


def test_recordings_leave_no_memory_behind_where_a_subinterpreter_lives(record, python, tmp_path):
    """Its hooks may still be in what the recording wrote to."""
    run = record.text(
        python,
        """
        import sys, krait
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        execute = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
        i = interpreters.create()
        execute(i, "def inside(): pass\\nfor _ in range(10): inside()")
        krait.stop()
        for n in range(2):
            krait.start(sys.argv[1] + str(n))
            krait.stop()
        execute(i, "inside()")
        print(open("/proc/self/maps").read().count("memfd:krait"))
        """,
        tmp_path / "part",
        env=PACKAGE,
    )
    assert run.stdout == "0\n"
    assert run.calls()["inside"] == 10


def test_threads_and_children_of_a_decorated_function_do_not_disturb_it(record, any_python, tmp_path):
    run(
        any_python,
        record,
        """
        import os, sys, threading, krait
        inside, over = threading.Event(), threading.Event()
        @krait.recording(sys.argv[1])
        def f(first):
            g()
            if first:
                inside.set()
                over.wait()
        def g(): pass
        thread = threading.Thread(target=f, args=[True])
        thread.start()
        inside.wait()
        f(False)  # ends while the thread's is going on
        assert krait.is_recording()
        if not os.fork():
            f(False)
            os._exit(0)
        assert os.wait()[1] == 0
        over.set()
        thread.join()
        assert not krait.is_recording()
        """,
        tmp_path / "trace",
    )
    assert [p.name for p in tmp_path.glob("trace*")] == ["trace"]
    recording = Recording(tmp_path / "trace").check(ended=False)
    assert recording.calls()["g"] == 3


@pytest.mark.parametrize("flags", [[], ["-W", "error"]], ids=str)
@pytest.mark.parametrize(
    "trouble, said",
    [
        ("path = '/proc/nowhere/trace'", "cannot make the folder /proc/nowhere"),
        ("open(path, 'w').close()", "cannot"),
        ("options['max_overhead'] = 'much'", "'much'"),
        ("os.environ['KRAIT'] = '/bin/false'", "the collector did not start"),
        ("krait.command = lambda: '/nowhere/krait'", "No such file"),
        ("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))", "Too many open files"),
        ("sys.modules['krait._agent'] = None", "krait._agent"),
    ],
)
def test_what_keeps_a_function_from_being_recorded_is_told_and_it_runs(record, any_python, tmp_path, trouble, said, flags):
    script = record.script(
        f"""
        import os, sys, krait
        path, options = sys.argv[1], {{}}
        {trouble}
        @krait.recording(path, **options)
        def f(): return "ran"
        print(f(), f())
        with krait.recording(path, **options) as folder:
            print(folder, krait.is_recording(), krait.stop())
        """
    )
    result = any_python.run(*flags, script, tmp_path / "trace", env={**os.environ, **PACKAGE}, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "ran ran\nNone False None\n"), result.stderr
    assert "not recorded: " in result.stderr and said in result.stderr


def test_a_recording_that_reaches_its_limit_ends_by_itself(record, any_python, tmp_path, info):
    run(
        any_python,
        record,
        """
        import sys, time, krait
        def f(): pass
        folder, last = krait.start(sys.argv[1], for_="500ms", max_size="1G", keep="newest"), time.monotonic() + 60
        while krait.is_recording():
            assert time.monotonic() < last
            f()
            time.sleep(0.001)
        assert krait.stop() == folder
        with krait.recording(sys.argv[1]) as second:
            f()
        assert second == sys.argv[1] + "-2"
        """,
        tmp_path / "trace",
    )
    facts = info(tmp_path / "trace")
    assert facts["limit"] == "--for 500.0 ms" and facts["finished"]
    assert Recording(tmp_path / "trace").check(ended=False).calls()["f"] > 0
    assert Recording(tmp_path / "trace-2").check(ended=False).calls()["f"] == 1
