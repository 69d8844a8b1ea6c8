# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a program's calls, on every Python: the exact order of begins and ends, read from the bytes."""

import pytest

from shapes import as_known, same, shape


@pytest.mark.every_python
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


@pytest.mark.few_pythons
def test_functions_that_suspend_are_told(record, python):
    run = record.text(
        python,
        """
        import types
        def gen(): yield 1
        async def co(): pass
        async def agen(): yield 1
        @types.coroutine
        def old(): yield 1
        def plain(): pass
        plain(); list(gen()); list(old())
        for one in co(), agen().__anext__():
            try: one.send(None)
            except StopIteration: pass
        """,
    )
    names = {number: code.qualname for number, code in run.main.codes.items()}
    told = {names[fields["code"]]: fields["as"] for fields in run.main.said("code:suspends")}
    kinds = {"gen": "generator", "co": "coroutine", "agen": "async generator", "old": "generator"}
    assert {name: told.get(name) for name in (*kinds, "plain")} == {**kinds, "plain": None}


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


@pytest.mark.parametrize("options", [[], *(pytest.param(words, marks=pytest.mark.few_pythons) for words in (["--exclude", "nothing"], ["--call-sites"]))], ids=" ".join)
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


@pytest.mark.parametrize("options", [[], pytest.param(["--call-sites"], marks=pytest.mark.few_pythons)], ids=["", "call-sites"])
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
@pytest.mark.timeout(1800)  # the tests' reader takes its time for a million calls
def test_every_call_of_many_is_there(record, python, rounds):
    calls = rounds(100_000, 1_000_000)
    run = record.text(python, f"def f():\n    pass\nfor _ in range({calls}):\n    f()\n", options=["--lossless"])
    run.check()
    assert run.calls()["f"] == calls


@pytest.mark.few_pythons
def test_a_call_and_its_return_take_at_most_12_bytes(record, python, info):
    run = record.text(python, "def f():\n    pass\nfor _ in range(100_000):\n    f()\n", options=["--lossless"])
    size = sum(p.stat().st_size for p in run.path.glob("*/thread-*"))
    thread = max((t for p in run.processes for t in p.threads), key=lambda t: len(t.events))
    ours = sum(thread.sizes[name] for name in ("python:call", "python:return"))
    pairs = sum(e.name == "python:return" for e in thread.events)
    assert ours / pairs < 12.05  # the clock's upper bits are said anew now and then
    calls = sum(e.name in ("python:return", "c:return") for e in thread.events)
    assert size / calls < 13  # packets' heads, padding and the interpreter's start included
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
