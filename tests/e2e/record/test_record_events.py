# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a program's calls, on every Python: the exact order of begins and ends, read from the bytes."""

import textwrap

import pytest
from recording import BEGINS, ENDS


def shape(recording, only="app.py"):
    """Begins and ends of app.py on the main thread, without those of its module body."""
    recording.check()
    process = recording.main
    lines, _ = process.shape(process.threads[0], only)
    assert lines[0] == "call <module>" and lines[-1] in ("return <module>", "unwind <module>")
    return lines[1:-1]


def as_known(lines, python):
    """Before sys.monitoring nobody tells a throw from a resume."""
    return lines if python.has_monitoring else [line.replace("throw", "resume") for line in lines]


def same(lines, expected, python):
    expected = [line.strip() for line in expected.strip().splitlines()]
    assert as_known(lines, python) == as_known(expected, python)


def callers(process, thread, name):
    """What is open where the function is called, each time: app.py's functions, outermost first."""
    found, stack, said = set(), [], []
    for e in thread.events:
        if e.name == "python:frame":
            said.append(e)
        elif e.name == "python:stack":
            stack, said = process.resync(stack, said, e.fields["depth"]), []
        elif e.name in ENDS:
            stack.pop()
        elif e.name in BEGINS:
            if process.name_of(e) == name:
                found.add(tuple(process.codes[code].qualname for _, code in stack if process.codes[code].file.endswith("app.py")))
            stack.append(("python", e.code))
    return found


def test_calls_and_returns_nest(record, python):
    run = record.text(
        python,
        """
        def inner(x):
            return len(x)
        class Box:
            def method(self):
                return inner([1])
        Box().method()
        inner("")
        """,
    )
    lines = [line for line in shape(run) if "Box" not in line or "method" in line]
    lines = [line for line in lines if "__build_class__" not in line]
    same(
        lines,
        """
        call Box.method
        call inner
        c call len
        c return len
        return inner
        return Box.method
        call inner
        c call len
        c return len
        return inner
        """,
        python,
    )


def test_module_file_and_line_are_said(record, python):
    run = record.text(python, "# one\n# two\ndef f():\n    return len('')\nf()\n")
    codes = {c.qualname: c for c in run.main.codes.values()}
    assert (codes["f"].kind, codes["f"].module, codes["f"].line) == ("python", "__main__", 3)
    assert codes["f"].file.endswith("/app.py")
    assert (codes["len"].kind, codes["len"].module, codes["len"].line) == ("c", "builtins", 0)


def test_a_generator_yields_and_resumes(record, python):
    run = record.text(
        python,
        """
        def gen():
            yield 1
            yield 2
        def drive():
            for _ in gen():
                pass
        drive()
        """,
    )
    same(
        shape(run),
        """
        call drive
        call gen
        yield gen
        resume gen
        yield gen
        resume gen
        return gen
        return drive
        """,
        python,
    )


def test_a_generator_that_is_closed_or_collected_ends_once(record, python):
    run = record.text(
        python,
        """
        import gc
        def gen():
            try:
                yield 1
            finally:
                cleanup()
        def cleanup():
            pass
        def close():
            g = gen()
            next(g)
            g.close()
        def collect():
            g = gen()
            next(g)
            del g
        close()
        collect()
        """,
    )
    lines = [line for line in shape(run) if not line.startswith("c ")]
    ends = ["call gen", "yield gen", "throw gen", "call cleanup", "return cleanup", "unwind gen"]
    same(lines, "\n".join(["call close", *ends, "return close", "call collect", *ends, "return collect"]), python)


def test_an_exception_thrown_into_a_generator(record, python):
    run = record.text(
        python,
        """
        def gen():
            try:
                yield 1
            except ValueError:
                yield 2
        def drive():
            g = gen()
            next(g)
            g.throw(ValueError())
            next(g, None)
        drive()
        """,
    )
    lines = [line for line in shape(run) if not line.startswith("c ")]
    same(
        lines,
        """
        call drive
        call gen
        yield gen
        throw gen
        yield gen
        resume gen
        return gen
        return drive
        """,
        python,
    )


def test_who_waited_goes_on_when_what_was_thrown_is_caught(record, python):
    """CPython 3.11 tells nothing of `outer` going on (gen_throw jumps over its RESUME); krait does."""
    run = record.text(
        python,
        """
        def inner():
            try:
                yield 1
            except ValueError:
                return 5
        def leaf():
            pass
        def outer():
            yield from inner()
            leaf()
            yield 2
        def drive():
            g = outer()
            next(g)
            g.throw(ValueError())
        drive()
        """,
    )
    lines = [line for line in shape(run) if not line.startswith("c ")]
    again = "throw" if python.has_monitoring else "resume"
    same(
        lines[: lines.index("return drive") + 1],
        "\n".join(
            ["call drive", "call outer", "call inner", "yield inner", "yield outer"]
            + ["throw inner", "return inner", f"{again} outer", "call leaf", "return leaf", "yield outer"]
            + ["return drive"]
        ),
        python,
    )


@pytest.mark.parametrize("options", [[], ["--exclude", "nothing"], ["--call-sites"]], ids=" ".join)
def test_who_awaits_an_asynchronous_generator_goes_on_when_that_is_cancelled(record, python, options):
    """Python 3.11 tells nothing of that, and the generator's frame does not say who it is."""
    run = record.text(
        python,
        """
        import asyncio
        async def numbers():
            try:
                yield 1
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    yield 2
            finally:
                try:
                    await asyncio.sleep(10)
                except asyncio.CancelledError:
                    pass
        def after(): pass
        async def closer():
            n = numbers()
            await n.__anext__()
            await n.aclose()
            after()
        async def reader():
            n = numbers()
            await n.__anext__()
            assert await n.__anext__() == 2
            after()
            assert await asyncio.sleep(0, "slept") == "slept"
        async def direct():
            await closer()
            after()
        async def main():
            for task in map(asyncio.create_task, (closer(), reader(), direct())):
                await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.wait([task])
                assert not task.cancelled() and not task.exception()
        asyncio.run(main())
        """,
        options=options,
    )
    run.check()
    (thread,) = run.main.threads
    lines, _ = run.main.shape(thread, "app.py")
    ours = [line for line in lines if line.split()[-1] in ("after", "closer", "reader")]
    assert ours.count("call after") == 4
    for at in (i for i, line in enumerate(ours) if line == "call after" and ours[i - 1] != "return closer"):
        assert ours[at - 1] in ("resume closer", "resume reader", "throw closer", "throw reader"), ours


@pytest.mark.parametrize("options", [[], ["--call-sites"]], ids=["", "call-sites"])
def test_what_is_thrown_into_a_generator_that_cleans_up(record, python, options):
    run = record.text(
        python,
        """
        import contextlib
        def cleanup():
            pass
        @contextlib.contextmanager
        def guarded():
            try:
                yield
            finally:
                cleanup()
        def work():
            for _ in range(3):
                try:
                    with guarded():
                        raise KeyError
                except KeyError:
                    pass
        work()
        """,
        options=options,
    )
    lines = [line for line in as_known(shape(run), python) if line.endswith((" guarded", " cleanup", " work"))]
    once = ["call guarded", "yield guarded", "throw guarded", "call cleanup", "return cleanup", "unwind guarded"]
    assert lines == as_known(["call work", *3 * once, "return work"], python)


def test_what_is_thrown_comes_out_after_others_and_a_yield(record, python):
    """The exception was raised where the generator stood then; it has begun again since, and others were thrown."""
    run = record.text(
        python,
        """
        def slow():
            try:
                yield 1
            finally:
                yield 2
        def other():
            yield
        def work():
            g = slow()
            next(g)
            g.throw(KeyError())
            for _ in range(20):
                o = other()
                next(o)
                try:
                    o.throw(ValueError())
                except ValueError:
                    pass
            try:
                next(g)
            except KeyError:
                pass
        work()
        """,
    )
    lines = [line for line in as_known(shape(run), python) if line.endswith((" slow", " work"))]
    runs = ["call slow", "yield slow", "throw slow", "yield slow", "resume slow", "unwind slow"]
    assert lines == as_known(["call work", *runs, "return work"], python)


@pytest.mark.parametrize("options", [[], ["--call-sites"], ["--exclude", "nothing_there"]], ids=lambda options: "".join(options[:1]) or "all")
def test_a_signal_that_raises_as_a_function_begins(record, python, options):
    """CPython from 3.11 on runs the handler before it tells of the begin, but tells of the end. From 3.13 on krait tells
    the begin. On 3.11 it drops the end, but not that of a generator which catches and goes on."""
    run = record.text(
        python,
        """
        import _thread, signal, sys
        def handler(*_):
            raise KeyError
        signal.signal(signal.SIGINT, handler)
        def numbers():
            while True:
                yield 1
        def careful_numbers():
            for number in range(2):
                try:
                    yield number
                except KeyError:
                    pass
        def function(_):
            pass
        def other():
            pass
        interrupts = iter(_thread.interrupt_main, 0)  # next() of it is C alone: nothing looks for signals until later
        def into_a_generator():
            g = numbers()
            next(g)
            for _ in range(50000): other()  # the packet that has its begin is long full
            try:
                next(zip(interrupts, g))
            except KeyError:
                pass
        def into_one_that_catches():
            g = careful_numbers()
            next(g)
            next(zip(interrupts, g))
            list(g)
        def into_a_function():
            try:
                next(map(function, interrupts))
            except KeyError:
                pass
        def by_hand():
            g = numbers()
            next(g)
            try:
                g.throw(KeyError())
            except KeyError:
                pass
            try:
                numbers().throw(KeyError())
            except KeyError:
                pass
        into_a_generator()
        if sys.version_info[:2] != (3, 11):
            into_one_that_catches()
        into_a_function()
        by_hand()
        """,
        options=["--lossless", *options],
    )
    lines = [line for line in shape(run) if not line.startswith("c ") and line.split()[-1] not in ("handler", "other")]
    tells_begins = python.number != (3, 11)
    begun = ["resume numbers", "unwind numbers"] if tells_begins else []
    caught = ["call careful_numbers", "yield careful_numbers", "resume careful_numbers", "yield careful_numbers"]
    caught += ["resume careful_numbers", "return careful_numbers"]
    expected = [
        *["call into_a_generator", "call numbers", "yield numbers", *begun, "return into_a_generator"],
        *(["call into_one_that_catches", *caught, "return into_one_that_catches"] if tells_begins else []),
        *["call into_a_function", *(["call function", "unwind function"] if tells_begins else []), "return into_a_function"],
        *["call by_hand", "call numbers", "yield numbers", "throw numbers", "unwind numbers"],
    ]
    assert lines[: len(expected)] == as_known(expected, python)
    assert lines[-1] == "return by_hand"
    handler = [line for line in shape(run) if line.endswith(" handler")]
    assert handler.count("call handler") == handler.count("unwind handler") == 2 + tells_begins


@pytest.mark.parametrize("times, work", [(400, 0), (20, 6000)])
def test_signals_that_raise_at_any_instant(record, python, times, work):
    """What the handler calls before it raises fills a packet: the begin of what it interrupts is not in the thread's last one."""
    if python.number == (3, 11):
        pytest.skip("Python 3.11 does not tell where a generator goes on that catches what a handler raises as it is resumed")
    run = record.text(
        python,
        """
        import signal, sys
        times, calls = map(int, sys.argv[1:])
        class Tick(Exception):
            pass
        def handler(*_):
            ticks.append(1)
            for _ in range(calls):
                leaf(0)
            raise Tick
        def leaf(n):
            return n
        def numbers():
            n = 0
            while n < 20:
                try:
                    yield leaf(n)
                except Tick:
                    pass
                n += 1
        def outer():
            yield from numbers()
        def work():
            for n in outer():
                sum(leaf(m) for m in (n, n))
        def once(n):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + n * 0.0000005)
            while len(ticks) <= n:
                work()
        ticks = []
        signal.signal(signal.SIGALRM, handler)
        for n in range(times):
            try:
                once(n)
            except Tick:
                pass
        """,
        times,
        work,
        options=["--lossless"],
    )
    shape(run)


def test_an_interrupt_in_a_recursion(record, python):
    """Its handler is C's: nothing stands between the caller's begin and the one that is not told."""
    run = record.text(
        python,
        """
        import signal
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        def once(n):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + n * 0.0000005)
            while True:
                fib(15)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for n in range(300):
            try:
                once(n)
            except KeyboardInterrupt:
                pass
        """,
        options=["--lossless", "--no-c-calls"],
    )
    shape(run)


@pytest.mark.parametrize("tool", [0, 5])
def test_a_tool_that_raises_as_a_function_begins(record, python, tool):
    """Those of higher numbers are called before krait, those of lower ones after it."""
    if not python.has_monitoring:
        pytest.skip("there is no sys.monitoring before Python 3.12")
    run = record.text(
        python,
        """
        import sys
        def quit(code, offset):
            if code.co_name in wanted:
                raise KeyError
        def function():
            pass
        def numbers():
            while True:
                yield 1
        def work():
            try:
                function()
            except KeyError:
                pass
            g = numbers()
            next(g)
            wanted.append("numbers")
            try:
                next(g)
            except KeyError:
                pass
        wanted = ["function"]
        monitoring = sys.monitoring
        monitoring.use_tool_id(int(sys.argv[1]), "quits")
        for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
            monitoring.register_callback(int(sys.argv[1]), event, quit)
        monitoring.set_events(int(sys.argv[1]), monitoring.events.PY_START | monitoring.events.PY_RESUME)
        work()
        """,
        tool,
        options=["--no-c-calls"],
    )
    numbers = ["call numbers", "yield numbers", "resume numbers", "unwind numbers"]
    assert shape(run) == ["call work", "call function", "unwind function", *numbers, "return work"]


def test_a_generator_expression_of_what_cannot_be_iterated(record, python):
    """From 3.15 on its own code says so, before its begin is told."""
    run = record.text(
        python,
        """
        def work():
            try:
                (x for x in 5)
            except TypeError:
                pass
        work()
        """,
        options=["--no-c-calls"],
    )
    inside = ["call work.<locals>.<genexpr>", "unwind work.<locals>.<genexpr>"] if python.number >= (3, 15) else []
    assert shape(run) == ["call work", *inside, "return work"]


def test_a_trace_function_that_raises_as_a_function_begins(record, python):
    """As debuggers' do that are told to quit. Profile hooks are not told of such a call at all, before sys.monitoring."""
    run = record.text(
        python,
        """
        import sys
        def quit(frame, event, arg):
            if frame.f_code.co_name == "function":
                raise KeyError
        def function():
            pass
        def work():
            sys.settrace(quit)
            try:
                function()
            except KeyError:
                pass
        work()
        work()
        """,
        options=["--no-c-calls"],
    )
    lines = [line for line in shape(run) if line.endswith((" function", " work"))]
    told = ["call function", "unwind function"] if python.has_monitoring else []
    assert lines == ["call work", *told, "return work"] * 2


RAISING = {
    "a signal's handler": """
        import signal
        class Timeout(Exception):
            pass
        def handler(signum, frame):
            raise Timeout
        signal.signal(signal.SIGALRM, handler)
        def small(n):
            return n
        def arm(n):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + n * 0.0000005)
        """,
    "a trace function": """
        import sys
        class Timeout(Exception):
            pass
        def small(n):
            return n
        def arm(n):
            def trace(frame, event, arg):
                nonlocal left
                left -= 1
                if not left:
                    raise Timeout
            left = n % 5 + 1
            sys.settrace(trace)
        """,
    "a recursion's trace function": """
        import sys
        Timeout = RecursionError
        def trace(frame, event, arg):
            return None
        def small(n):
            return small(n + 1)
        def arm(n):
            sys.setrecursionlimit(100 + n % 7)
            sys.settrace(trace)
        """,
}


@pytest.mark.parametrize("raising", RAISING)
def test_begins_in_packets_that_are_gone_stay_open(record, python, raising):
    """What is raised as a function begins: the loop around it began long before, in another packet."""
    run = record.text(
        python,
        textwrap.dedent(RAISING[raising])
        + textwrap.dedent(
            """
            def leaf():
                pass
            def main():
                for _ in range(20000):
                    leaf()
                for n in range(200):
                    try:
                        arm(n)
                        while True:
                            small(n)
                    except Timeout:
                        pass
                    sys.settrace(None)
                    leaf()
            import sys
            main()
            """
        ),
        options=["--lossless", "--no-c-calls"],
    )
    run.check()
    thread = run.main.threads[0]
    assert sum(run.main.name_of(e) == "leaf" for e in thread.events if e.name == "python:call") == 20200
    assert callers(run.main, thread, "leaf") == {("<module>", "main")}


@pytest.mark.parametrize("tool", [0, 5])
def test_a_tool_that_fails_in_a_recursion(record, python, tool):
    """Its callback takes a frame: it is the one that meets the limit."""
    if not python.has_monitoring:
        pytest.skip("there is no sys.monitoring before Python 3.12")
    run = record.text(
        python,
        """
        import sys
        def watch(code, offset):
            pass
        def leaf():
            pass
        def down(n):
            return down(n + 1)
        def main():
            for n in range(30):
                sys.setrecursionlimit(100 + n % 7)
                try:
                    down(0)
                except RecursionError:
                    pass
                leaf()
        monitoring = sys.monitoring
        monitoring.use_tool_id(int(sys.argv[1]), "watches")
        monitoring.register_callback(int(sys.argv[1]), monitoring.events.PY_START, watch)
        monitoring.set_events(int(sys.argv[1]), monitoring.events.PY_START)
        main()
        """,
        tool,
        options=["--no-c-calls"],
    )
    run.check()
    assert callers(run.main, run.main.threads[0], "leaf") == {("<module>", "main")}


def test_exceptions_unwind_each_frame(record, python):
    run = record.text(
        python,
        """
        def third():
            raise KeyError(1)
        def second():
            third()
        def first():
            try:
                second()
            except KeyError:
                return None
        first()
        """,
    )
    lines = [line for line in shape(run) if not line.startswith("c ")]
    # Before 3.12 the profile hook says `return` for both; the agent tells them by the value, which is absent.
    same(
        lines,
        """
        call first
        call second
        call third
        unwind third
        unwind second
        return first
        """,
        python,
    )


def test_a_c_function_that_raises(record, python):
    run = record.text(
        python,
        """
        def f():
            try:
                len(5)
            except TypeError:
                pass
        f()
        """,
    )
    same(shape(run), "call f\nc call len\nc raise len\nreturn f", python)


def test_a_recursion_error_leaves_the_stack_balanced(record, python):
    run = record.text(
        python,
        """
        import sys
        sys.setrecursionlimit(200)
        def down(n):
            return down(n + 1)
        for _ in range(3):
            try:
                down(0)
            except RecursionError:
                print("deep")
        """,
    )
    assert run.stdout.split() == ["deep"] * 3
    run.check()
    calls = run.calls()["down"]
    assert 3 * 100 < calls <= 3 * 200


def test_coroutines_run_under_asyncio(record, python):
    run = record.text(
        python,
        """
        import asyncio
        async def worker(n):
            for _ in range(n):
                await asyncio.sleep(0)
            return n
        async def main():
            return sum(await asyncio.gather(*(worker(n) for n in range(4))))
        print(asyncio.run(main()))
        """,
    )
    assert run.stdout.strip() == "6"
    run.check()
    process = run.main
    lines, _ = process.shape(process.threads[0], "app.py")
    assert lines.count("call worker") == 4 and lines.count("return worker") == 4
    assert lines.count("yield worker") == lines.count("resume worker") == 6


def test_an_async_generator_and_a_comprehension(record, python):
    run = record.text(
        python,
        """
        import asyncio
        async def numbers():
            for i in range(3):
                yield i
                await asyncio.sleep(0)
        async def main():
            return [i async for i in numbers()]
        print(asyncio.run(main()))
        """,
    )
    assert run.stdout.strip() == "[0, 1, 2]"
    run.check()
    assert run.calls()["numbers"] == 1


@pytest.mark.few_pythons
def test_every_call_of_a_million_is_there(record, python):
    run = record.text(
        python,
        """
        def f():
            pass
        for _ in range(500_000):
            f()
        """,
        options=["--lossless"],
    )
    run.check()
    assert run.calls()["f"] == 500_000


@pytest.mark.few_pythons
def test_a_call_and_its_return_take_at_most_12_bytes(record, python, info):
    run = record.text(python, "def f():\n    pass\nfor _ in range(300_000):\n    f()\n", options=["--lossless"])
    size = sum(p.stat().st_size for p in run.path.glob("*/thread-*"))
    thread = max((t for p in run.processes for t in p.threads), key=lambda t: len(t.events))
    ours = sum(thread.sizes[name] for name in ("python:call", "python:return"))
    pairs = sum(e.name == "python:return" for e in thread.events)
    assert ours / pairs < 12.05  # the clock's upper bits are said anew now and then
    assert size / pairs < 13  # packets' heads, padding and the interpreter's start included
    assert info(run.path)["bytes"] >= size


def test_c_calls_can_be_left_out(record, python):
    run = record.text(python, "def f():\n    return len('')\nf()\n", options=["--no-c-calls"])
    run.check()
    assert not [e for t in run.main.threads for e in t.events if e.name.startswith("c:")]
    assert run.calls()["f"] == 1


@pytest.mark.few_pythons
@pytest.mark.parametrize(
    "options, kept, gone",
    [
        (["--exclude", "b*"], {"a", "ab"}, {"b", "ba"}),
        (["--include", "a*"], {"a", "ab"}, {"b", "ba"}),
        (["--include", "a*", "--include", "ba", "--exclude", "ab"], {"a", "ba"}, {"b", "ab"}),
        (["--include", "*/app.py"], {"a", "ab", "b", "ba"}, set()),
        (["--exclude", "__main__"], set(), {"a", "ab", "b", "ba"}),
    ],
)
def test_functions_are_chosen_by_module_name_or_file(record, python, options, kept, gone):
    run = record.text(
        python,
        """
        def a(): ab(); b()
        def b(): ba()
        def ab(): pass
        def ba(): pass
        for _ in range(5): a()
        """,
        options=options,
    )
    run.check()
    calls = run.calls()
    assert {name for name in ("a", "ab", "b", "ba") if calls[name]} == kept
    assert all(calls[name] == 5 for name in kept) and not any(calls[name] for name in gone)


def test_sys_setprofile_of_the_program_is_counted_or_lives_beside(record, python):
    run = record.text(
        python,
        """
        import sys
        seen = []
        def f():
            pass
        sys.setprofile(lambda frame, event, arg: seen.append(event))
        for _ in range(100):
            f()
        sys.setprofile(None)
        print(seen.count("call"))
        """,
    )
    assert run.stdout.strip() == "100"
    if python.has_monitoring:
        assert run.check().calls()["f"] == 100
    else:
        reasons = {f["reason"] for p in run.processes for f in p.said("krait:lost") if f["count"]}
        assert run.calls()["f"] == 100 or "displaced" in reasons


DEEP = """
    import os, signal, sys, time
    sys.setrecursionlimit(1 << 30)
    collector = os.getppid()
    def leaf(): pass
    def bottom():
        os.kill(collector, signal.SIGSTOP)
        for _ in range(50_000): leaf()
        os.kill(collector, signal.SIGCONT)
        for _ in range(50):
            leaf()
            time.sleep(0.01)
    def even(n): odd(n - 1) if n else bottom()
    def odd(n): even(n - 1) if n else bottom()
    for depth in (1_000, DEPTH):
        even(depth)
"""


@pytest.mark.parametrize("depth", [5_000, 70_000])
def test_a_loss_in_a_deep_stack_leaves_the_rest_balanced(record, any_python, depth):
    """Depths beyond what a small ring holds at once, and beyond 16 bits."""
    run = record.text(any_python, DEEP.replace("DEPTH", str(depth)), options=["--ring-size", "256K", "--buffer-size", "64K", "--no-c-calls"])
    assert run.losses()["ring full"]
    run.main.check_balanced()
