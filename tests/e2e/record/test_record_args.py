# SPDX-License-Identifier: Apache-2.0
"""--args: arguments and return values of functions that the user names."""

import json
import subprocess

import pytest

PROGRAM = """
    class Owner:
        __slots__ = ("slot",)
        def __init__(self): self.slot = 3

    class Own:
        def __repr__(self): print("ran"); raise SystemExit
        def __eq__(self, other): print("ran")
        def __hash__(self): print("ran"); return 1

    class Meta(type):
        def __getattribute__(cls, name): print("ran"); return type.__getattribute__(cls, name)

    class Cart(metaclass=Meta):
        kind = "cart"
        def __init__(self):
            self.owner = Owner()
            self.size = 0
        @property
        def heavy(self): print("ran"); return 1
        def __getattr__(self, name): print("ran"); return 1
        def add(self, item, n=1, *rest, **more):
            self.size += n
            return {"item": item, "n": n}

    def other(x): return x
    cart = Cart()
    cart.add("pen", 2, 7, 8, color="red")
    cart.add(Own())
    for i in range(3): other(i)
"""


def told(run):
    return [(n["code"], json.loads(n["args"])) for n in run.notes("call:args")]


def returned(run):
    return [(n["code"], json.loads(n["result"])) for n in run.notes("call:result")]


@pytest.mark.parametrize("pattern, near", [("Cart.ad(item)", "Cart.add"), ("__main__.Cart.addd -> return", "__main__.Cart.add"), ("nothing.like.it(x)", None)])
def test_a_pattern_that_matches_no_function_is_told(krait, record, any_python, pattern, near):
    run = record.text(any_python, PROGRAM, options=["--args", "other(x)", "--args", pattern])
    told = f"--args '{pattern}' matched no recorded function" + (f"; did you mean '{near}'?" if near else "")
    assert [line.strip() for line in run.stderr.splitlines() if "--args" in line] == [told]
    info = [krait, "info", str(run.path)]
    assert told in " ".join(subprocess.run(info, capture_output=True, text=True, timeout=60).stdout.split())
    assert json.loads(subprocess.run([*info, "--json"], capture_output=True, text=True, timeout=60).stdout)["args_unmet"] == [pattern]


@pytest.mark.every_python
def test_named_arguments_are_recorded_without_running_the_program(record, python):
    spec = "Cart.add(item, n, *rest, ** more, self.kind, self.size, self.owner.slot, self.owner, self.heavy, self.missing, missing)"
    run = record.text(python, PROGRAM, options=["--args", spec, "--args", "__main__.other( x ) -> return"]).check(ended=False)
    assert "ran" not in run.stdout
    add = ("Cart.add", {"item": "pen", "n": 2, "rest": [7, 8], "more": {"color": "red"}, "self.kind": "cart", "self.size": 0, "self.owner.slot": 3,
                                 "self.owner": "<Owner>", "self.heavy": "<property>"})
    add_own = (add[0], {**add[1], "item": "<Own>", "n": 1, "rest": [], "more": {}, "self.size": 2})
    assert told(run) == [add, add_own] + [("other", {"x": i}) for i in range(3)]
    assert returned(run) == [("other", {"return": i}) for i in range(3)]


def test_no_arguments_leave_the_calls_as_they_are(krait, record, python):
    asked = record.text(python, PROGRAM, options=["--args", "other(x)"]).check(ended=False)
    plain = record.text(python, PROGRAM).check(ended=False)
    assert asked.calls() == plain.calls() and told(plain) == []
    assert [args for _, args in told(asked)] == [{"x": 0}, {"x": 1}, {"x": 2}] and returned(asked) == []
    for options, why in (
        (["nobody"], "--call: no function 'nobody' in the trace"),
        (["Cart.add"], "--call 'Cart.add': no call of it has recorded arguments, and so a key; krait record --args records them\n"),
        (["other", "--until", "1ns"], "--call 'other': no call of it in that time has recorded arguments, and so a key\n"),
    ):
        done = subprocess.run([krait, "intervals", str(asked.path), "--key", "x", "--call", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr.startswith(why) and done.stderr.count("\n") == 1, done.stderr


def test_lists_are_keys_that_tables_bound(krait, record, any_python):
    run = record.text(any_python, "def f(x): return list(range(x))\ndef g(x): return {'a': x}\nf(60); f(3); g(1)\n", options=["--args", "f(x) -> return", "--args", "g(x) -> return"]).check(ended=False)
    for words in (["report", "--by", "span"], ["intervals", "--by", "key", "--call", "f"]):
        ran = [subprocess.run([krait, *words, "--key", "return", *more, str(run.path)], capture_output=True, text=True, check=True).stdout for more in ([], ["--json"])]
        keys = [row["key"] for row in json.loads(ran[1])["spans" if words[0] == "report" else "rows"]]
        long = max((key for key in keys if key), key=len)
        assert "[0,1,2]" in keys and len(long) > 80 and long.startswith("[0,1,2,3,")
        assert long not in ran[0] and max(map(len, ran[0].splitlines())) < 200 and " [0,1,2]" in ran[0]
    wrong = subprocess.run([krait, "intervals", "--call", "g", "--key", "return", str(run.path)], capture_output=True, text=True, check=True)
    assert wrong.stderr == "--call 'g': there is no argument 'return' in its calls; did you mean 'return.a'?\n"


def test_repr_runs_the_program_on_request_and_raises_nothing(record, python):
    run = record.text(
        python,
        """
        import os, signal
        class Fails:
            def __repr__(self): raise ValueError("no")
        class Stops:
            def __repr__(self): raise SystemExit(3)
        class Says:
            def __repr__(self): return "says"
            @property
            def far(self): return helper()
        class Interrupts:
            def __repr__(self): os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(100)]; return "late"
        def helper(): return "near"
        def f(x): return x
        for x in Fails(), Stops(), Says():
            f(x)
        try:
            f(Interrupts())
            [0 for _ in range(1000)]
        except KeyboardInterrupt:
            print("interrupted")
        """,
        options=["--args", "f(x!r, x.far!r) -> return!r"],
    ).check(ended=False)
    assert run.stdout.split() == ["interrupted"]
    assert told(run)[:3] == [("f", {"x": "<Fails>"}), ("f", {"x": "<Stops>"}), ("f", {"x": "says", "x.far": "near"})]
    assert returned(run)[2] == ("f", {"return": "says"})
    assert "helper" not in run.calls()  # it is krait that calls it


def test_a_hash_stands_for_a_value(record, python):
    run = record.text(python, "def f(word, n): pass\nfor w in 'secret', 'other', 'secret': f(w, n=1)", options=["--args", "f(word!h, n)"]).check(ended=False)
    first, second, third = [args for _, args in told(run)]
    assert first == third != second and first["word"].startswith("#") and len(first["word"]) == 17
    assert not any(b"secret" in p.read_bytes() for p in run.path.rglob("thread*"))


@pytest.mark.few_pythons
def test_values_are_bounded(record, python):
    run = record.text(
        python,
        """
        def f(a, b, c, d, e): return "r" * 10**6
        deep = []
        for i in range(100): deep = [deep]
        loop = []; loop.append(loop)
        f("x" * 10**6, list(range(10**5)), {str(i): "v" * 999 for i in range(99)}, deep, loop)
        """,
        options=["--args", "f(a, b, c, d, e) -> return"],
    ).check(ended=False)
    ((_, args),) = told(run)
    assert args["a"].startswith("xxx") and "1000000 characters" in args["a"] and len(str(args)) < 5000
    assert len(str(returned(run))) < 1000


@pytest.mark.few_pythons
def test_generators_coroutines_threads_and_exceptions(record, python):
    run = record.text(
        python,
        """
        import asyncio, threading
        def gen(n):
            for i in range(n): yield i
            return "done"
        async def co(n):
            await asyncio.sleep(0)
            return n * 2
        def fails(x): raise KeyError(x)
        def deep(n): return deep(n - 1) if n else (lambda: n)
        list(gen(2))
        asyncio.run(co(21))
        thread = threading.Thread(target=deep, args=(2,)); thread.start(); thread.join()
        try: fails(1)
        except KeyError: pass
        """,
        options=["--args", "gen(n)->return", "--args", "co(n)->return", "--args", "fails(x)->return", "--args", "deep(n) -> return"],
    ).check(ended=False)
    assert sorted(told(run), key=str) == [("co", {"n": 21}), *(("deep", {"n": n}) for n in range(3)), ("fails", {"x": 1}), ("gen", {"n": 2})]
    assert sorted(returned(run), key=str) == [("co", {"return": 42}), *[("deep", {"return": "<function>"})] * 3, ("gen", {"return": "done"})]


def test_functions_come_and_go_and_forks_go_on(record, python):
    run = record.text(
        python,
        """
        import os
        for i in range(300):
            space = {"__name__": "made"}
            exec(f"def f{i}(x): pass\\ndef g(x): pass", space)
            space[f"f{i}"](i); space["g"](i)
        pid = os.fork()
        space["g"]("child" if pid == 0 else "parent")
        if pid == 0: os._exit(0)
        os.wait()
        """,
        options=["--args", "made.g(x)"],
    )
    assert sorted((args["x"] for _, args in told(run)), key=str) == sorted([*range(300), "child", "parent"], key=str)


def test_what_is_no_function_is_left_alone(record, python):
    """The bodies of modules and classes have no arguments: what they call locals is the program's own."""
    run = record.text(
        python,
        """
        x = 1
        class C:
            x = 2
            def f(self, x): return self.x + x
        assert x == 1 and C.x == 2 and C().f(3) == 5 and (lambda x: x)(4) == 4
        """,
        options=["--args", "*(x) -> return"],
    ).check(ended=False)
    assert [args for code, args in told(run) if code in ("C.f", "<lambda>")] == [{"x": 3}, {"x": 4}]
    assert not [code for code, _ in told(run) if code in ("<module>", "C")]


def test_a_functions_locals_are_its_own(record, python):
    run = record.text(
        python,
        """
        import gc, sys, weakref
        class Big: pass
        def f(big, n):
            seen = locals()
            assert set(seen) == {"big", "n"} and sys._getframe().f_locals["n"] == n
            gone = weakref.ref(big)
            del seen, big
            gc.collect()
            return gone() is None
        def g(n):
            def inner(): return n
            n += 1
            return inner()
        assert f(Big(), 1) in (True, False) and g(1) == 2
        def h(big):
            gone = weakref.ref(big)
            del big
            return gone() is None
        print(h(Big()))
        """,
        options=["--args", "f(big, n)", "--args", "g(n)", "--args", "h(big)"],
    ).check(ended=False)
    assert run.stdout == python.run(record.folder / "app.py").stdout != "" and len(told(run)) == 3


@pytest.mark.parametrize(
    "spec, why",
    [
        ("Cart.add", "--args: 'Cart.add' names no argument; write 'Cart.add(ARGUMENT)', or 'Cart.add -> return' for the result\n"),
        ("(x)", "the function is missing"),
        ("f(x", "a ')' is missing, at the end\n"),
        ("f(x.)", "a name is missing, at ')'"),
        ("f(1)", "a name is missing, at '1)'"),
        ("f(***x)", "a name is missing, at '*x)'"),
        ("f(*)", "a name is missing, at ')'"),
        ("f(x!s)", "only !r and !h can follow a name"),
        ("f(x) -> y", "only 'return' can follow '->'"),
        ("f(x) y", "this is not understood, at 'y'"),
        ("f(" + ", ".join("abcdefghijklmnopq") + ")", "too many names"),
        ("f" * 300 + "(x)", "the function's name is too long"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(krait, spec, why):
    done = subprocess.run([krait, "record", "--args", spec, "--", "echo", "ran"], capture_output=True, text=True, timeout=60)
    assert why in done.stderr and done.returncode == 2 and done.stdout == ""
