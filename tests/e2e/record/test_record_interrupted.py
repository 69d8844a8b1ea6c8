# SPDX-License-Identifier: Apache-2.0
"""What is recorded of calls that a signal, a tool or a trace function breaks off, on every Python."""

import textwrap

import pytest

from conftest import BUILD
from shapes import as_known, callers, shape


ON_FEW = [pytest.param(options, marks=pytest.mark.few_pythons) for options in (["--call-sites"], ["--exclude", "nothing_there"])]


@pytest.mark.parametrize("options", [[], *ON_FEW], ids=lambda options: "".join(options[:1]) or "all")
def test_a_signal_that_raises_as_a_function_begins(record, python, options):
    """CPython from 3.11 on runs the handler before it tells of the begin, but tells of the end. krait tells the begin, but
    for functions on 3.11: there it drops the end."""
    run = record.text(
        python,
        """
        import _thread, signal
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
                except (KeyError, KeyboardInterrupt):
                    pass
        def function(_):
            pass
        def other():
            pass
        interrupts = iter(_thread.interrupt_main, 0)  # next() of it is C alone: nothing looks for signals until later
        def into_a_generator():
            g = numbers()
            next(g)
            for _ in range(20000): other()  # the packet that has its begin is long full
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
        into_one_that_catches()
        into_a_function()
        by_hand()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which is written in C
        into_one_that_catches()
        """,
        options=["--lossless", *options],
    )
    lines = [line for line in shape(run) if not line.startswith("c ") and line.split()[-1] not in ("handler", "other")]
    tells_begins = python.number != (3, 11)
    caught = ["call careful_numbers", "yield careful_numbers", "resume careful_numbers", "yield careful_numbers"]
    caught += ["resume careful_numbers", "return careful_numbers"]
    into_one_that_catches = ["call into_one_that_catches", *caught, "return into_one_that_catches"]
    expected = [
        *["call into_a_generator", "call numbers", "yield numbers", "resume numbers", "unwind numbers", "return into_a_generator"],
        *into_one_that_catches,
        *["call into_a_function", *(["call function", "unwind function"] if tells_begins else []), "return into_a_function"],
        *["call by_hand", "call numbers", "yield numbers", "throw numbers", "unwind numbers"],
    ]
    assert lines[: len(expected)] == as_known(expected, python)
    assert lines[-1 - len(into_one_that_catches) :] == ["return by_hand", *into_one_that_catches]
    handler = [line for line in shape(run) if line.endswith(" handler")]
    assert handler.count("call handler") == handler.count("unwind handler") == 3


@pytest.mark.parametrize("times, work", [(400, 0), (20, 6000)])
def test_signals_that_raise_at_any_instant(record, python, rounds, times, work):
    """What the handler calls before it raises fills a packet: the begin of what it interrupts is not in the thread's last one."""
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
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + 0.0002 * n / times)
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
        rounds(max(times // 8, 5), times),
        work,
        options=["--lossless"],
    )
    shape(run)


def test_an_interrupt_in_a_recursion(record, python, rounds):
    """Its handler is C's: nothing stands between the caller's begin and the one that is not told."""
    run = record.text(
        python,
        """
        import signal, sys
        times = int(sys.argv[1])
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        def once(n):
            signal.setitimer(signal.ITIMER_REAL, 0.00002 + 0.00015 * n / times)
            while True:
                fib(15)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for n in range(times):
            try:
                once(n)
            except KeyboardInterrupt:
                pass
        """,
        rounds(40, 300),
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


@pytest.mark.every_python
def test_a_trace_function_that_raises_as_a_function_begins(record, python):
    """As debuggers' do that are told to quit. Profile hooks are not told of such a call at all, before sys.monitoring."""
    run = record.text(
        python,
        """
        import sys
        asked = []  # for a traceback's frame, which only krait does here: it may not be seen
        sys.addaudithook(lambda event, args: asked.append(args) if event == "object.__getattr__" and args[1] == "tb_frame" else None)
        def quit(frame, event, arg):
            if frame.f_code.co_name == "function":
                raise KeyError
        def function():
            pass
        def other():
            pass
        def once():
            sys.settrace(quit)
            try:
                function()
            except KeyError:
                pass
        def work():
            for _ in range(12000): other()  # the packet that has its begin is long full
            for _ in range(9):
                sys.settrace(quit)
                try:
                    function()
                except KeyError:
                    pass
        once()
        work()
        print(asked)
        """,
        options=["--no-c-calls", "--lossless"],
    )
    assert run.stdout == "[]\n"
    lines = [line for line in shape(run) if line.endswith((" function", " once", " work"))]
    told = ["call function", "unwind function"] if python.has_monitoring else []
    ends = ["unwind function"] if python.number == (3, 11) else told  # there the begin may be in a packet before
    assert lines == ["call once", *told, "return once", "call work", *ends * 9, "return work"]


def test_a_recording_that_begins_in_a_signals_handler(record, python):
    """The function that the handler interrupted is said then, and has begun with that, although CPython has not told it."""
    run = record.text(
        python,
        f"""
        import _thread, signal, sys
        sys.path.insert(0, {str(BUILD / 'python')!r})
        import krait
        def handler(*_):
            krait.pause()
            krait.resume()
            raise KeyError
        signal.signal(signal.SIGINT, handler)
        def function(_):
            pass
        def other():
            pass
        interrupts = iter(_thread.interrupt_main, 0)  # next() of it is C alone: nothing looks for signals until later
        def into_a_function():
            try:
                next(map(function, interrupts))
            except KeyError:
                pass
        def main():
            into_a_function()
            other()
            into_a_function()
            other()
        main()
        """,
        options=["--no-c-calls"],
    )
    run.check()
    thread = run.main.threads[0]
    assert callers(run.main, thread, "into_a_function") == callers(run.main, thread, "other") == {("<module>", "main")}


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
def test_begins_in_packets_that_are_gone_stay_open(record, python, rounds, raising):
    """What is raised as a function begins: the loop around it began long before, in another packet."""
    times = rounds(40, 200)
    run = record.text(
        python,
        textwrap.dedent(RAISING[raising])
        + textwrap.dedent(
            """
            def leaf():
                pass
            def main():
                for _ in range(12000):
                    leaf()
                for n in range(int(sys.argv[1])):
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
        times,
        options=["--lossless", "--no-c-calls"],
    )
    run.check()
    thread = run.main.threads[0]
    assert sum(run.main.name_of(e) == "leaf" for e in thread.events if e.name == "python:call") == 12000 + times
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
