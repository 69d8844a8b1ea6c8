# SPDX-License-Identifier: Apache-2.0
"""record --max-overhead: which functions it drops, which never, and that a pause is nobody's time. What it costs is
measured by bench/governor."""

import csv
import gzip
import re
import subprocess

import pytest

BUDGET = ("--max-overhead", "5")


def drops(test):
    """On one Python where functions are dropped and nothing pauses: 3.11's hook costs too much for the first, and all before 3.12
    pause when dropping was not enough."""
    return pytest.mark.few_pythons(pytest.mark.pythons(least=(3, 12))(test))


# leaf is worth nothing of what its record costs; step and other last hundreds of times longer.
THREE = """
    def leaf(x):
        return x
    def step():
        for i in range(400):
            leaf(i)
    def other():
        for i in range(5000):
            pass
    for i in range(1000):
        step()
        other()
"""


def recorded(report, trace):
    """Calls by name, of app.py and of pauses."""
    rows = report(trace)
    return {row["name"]: row for row in rows if row["module"] in ("__main__", "krait")}


def dropped(krait_report):
    return {row["name"] for row in krait_report["omitted"] if row["module"] == "__main__"}


@pytest.fixture
def overview(krait):
    from conftest import verb_json

    return lambda trace: verb_json(krait, "report", trace)


@pytest.fixture
def tree_of(krait):
    from conftest import verb_json

    return lambda trace: verb_json(krait, "report", trace, "--tree", "--min-share", "0")["tree"]


@pytest.mark.pythons(least=(3, 12))
def test_only_what_tells_less_than_it_costs_is_dropped(record, report, overview, python):
    run = record.text(python, THREE, options=BUDGET)
    assert dropped(overview(run.path)) == {"leaf"}
    rows = recorded(report, run.path)
    assert rows["step"]["calls"] == rows["other"]["calls"] == 1000
    assert rows["leaf"]["calls"] < 400_000


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_a_recursion_whose_outermost_call_is_open_is_not_short(record, report, overview, python):
    """Only the outermost call's end says how long its calls last: it is the last of all."""
    run = record.text(
        python,
        """
        def leaf(x):
            return x
        def visit(n):
            for i in range(12):
                leaf(i)
            for i in range(3000):
                pass
            if n:
                visit(n - 1)
                visit(n - 1)
        visit(13)
        """,
        options=("--max-overhead", "0.5"),
    )
    assert dropped(overview(run.path)) == {"leaf"}
    assert recorded(report, run.path)["visit"]["calls"] == 2**14 - 1


@drops
def test_what_holds_dropped_functions_is_marked_everywhere(record, krait, report, info, python):
    run = record.text(python, THREE, options=BUDGET)
    assert re.search(r"--max-overhead dropped \d+ functions?: __main__.leaf \(after ", run.stderr)

    def text(*words):
        return subprocess.run([krait, *map(str, words)], capture_output=True, text=True, check=True)

    mark = "__main__.step [+dropped]"
    for words in (["report"], ["report", "--tree"], ["report", "--callers", "leaf"]):
        shown = text(*words, run.path)
        assert mark in shown.stdout and "__main__.other [+dropped]" not in shown.stdout
        assert "marked [+dropped]: __main__.leaf (after " in shown.stderr
    # Python's own start may drop functions of its own, such as str.rstrip, where the path has many folders.
    assert {row["name"] for row in recorded(report, run.path).values() if row.get("holds_dropped")} == {"step"}
    header, *rows = csv.reader(text("report", "--csv", run.path).stdout.splitlines())
    of_app = [row for row in rows if row[header.index("module")] == "__main__"]
    assert [row[0] for row in of_app if row[header.index("holds_dropped")] == "1"] == ["step"]
    for to in ("folded", "chrome", "speedscope", "callgrind", "perfetto", "pprof"):
        out = run.path.parent / ("out." + to)
        text("export", "--to", to, "-o", out, run.path)
        written = gzip.decompress(out.read_bytes()) if to == "pprof" else out.read_bytes()
        assert mark.encode() in written and b"__main__.other [+dropped]" not in written, to
    picture = run.path.parent / "flame.svg"
    text("flame", "-o", picture, run.path)
    assert "step [+dropped]" in picture.read_text()
    assert dropped(info(run.path)) == {"leaf"}
    assert "__main__.leaf (after " in text("info", run.path).stdout


@drops
def test_times_are_those_of_the_functions_that_had_them(record, report, python):
    """Held against the program's own clock in the same run, so that a busy machine lengthens both alike; there leaf may seem long, and
    stay. A function that is dropped wrongly moves its time to its caller: here most of the program's would be <module>'s own."""
    run = record.text(
        python,
        """
        from time import perf_counter_ns as now
        def leaf(x):
            return x
        def step():
            for i in range(200):
                leaf(i)
            for i in range(1500):
                pass
        def other():
            for i in range(7000):
                pass
        of_step = of_other = 0
        for i in range(800):
            begin = now()
            step()
            between = now()
            other()
            end = now()
            of_step += between - begin
            of_other += end - between
        print(of_step, of_other)
        """,
        options=BUDGET,
    )
    of_step, of_other = map(int, run.stdout.split())
    rows = recorded(report, run.path)
    # The self time of each with what it calls: leaf, as long as that is recorded.
    shown = {name: int(rows[name]["total_ns"]) for name in ("step", "other")}
    error = abs(shown["step"] - of_step) + abs(shown["other"] - of_other)
    assert error < 0.15 * (of_step + of_other), (shown, of_step, of_other)


@pytest.mark.pythons(most=(3, 11))
@pytest.mark.few_pythons
def test_a_pause_is_nobodys_time_and_ends(record, report, overview, python):
    """Before 3.12 a hook that is on costs, whatever is dropped: recording pauses."""
    run = record.text(
        python,
        """
        import time
        def leaf(x):
            return x
        def other():
            for i in range(1000):
                leaf(i)
        end = time.process_time() + 1
        while time.process_time() < end:
            other()
        """,
        options=BUDGET,
    )
    assert dropped(overview(run.path)) <= {"leaf"}
    rows = recorded(report, run.path)
    pauses, module = rows["<paused by --max-overhead>"], rows["<module>"]
    assert pauses["calls"] > 1
    assert pauses["self_ns"] > module["self_ns"]
    assert overview(run.path)["paused"]
    assert "--max-overhead: recording paused" in run.stderr


@pytest.mark.pythons(most=(3, 11))
@pytest.mark.few_pythons
def test_a_call_that_a_pause_begins_at_is_not_recorded(record, report, tree_of, python):
    """Its end is not either: it would stay open through the pause, and what comes next would be called from it."""
    run = record.text(
        python,
        """
        import time
        def leaf():
            pass
        def step():
            for _ in range(1000):
                leaf()
        def other():
            for _ in range(4000):
                pass
        end = time.process_time() + 1
        while time.process_time() < end:
            step()
            other()
        """,
        options=BUDGET,
    )
    assert int(recorded(report, run.path)["<paused by --max-overhead>"]["min_ns"]) > 0
    nodes = {node["id"]: node for node in tree_of(run.path)}
    callers = {(n["name"], nodes[n["parent"]]["name"]) for n in nodes.values() if n["name"] in ("leaf", "step", "other")}
    assert callers == {("leaf", "step"), ("step", "<module>"), ("other", "<module>")}


@pytest.mark.parametrize("percent", ["0.5", pytest.param("5", marks=pytest.mark.few_pythons)])
def test_threads_that_are_born_and_wait_in_pauses_nest(record, python, percent):
    """Before 3.12 a pause takes the hook from all threads: one that is born in it has none, and where one is paused often
    while it waits for the GIL, what it writes of that stays in its packet."""
    run = record.text(
        python,
        """
        import threading, time
        def leaf(x):
            return x
        def numbers(n):
            for i in range(n):
                yield leaf(i)
        def work():
            while time.monotonic() < end:
                sum(numbers(100))
                len([leaf(i) for i in range(100)])
                thread = threading.Thread(target=leaf, args=(1,))
                thread.start()
                thread.join()
        def waits():
            while time.monotonic() < end:
                sum(numbers(100))
        end = time.monotonic() + 0.5
        threads = [threading.Thread(target=f) for f in (work, waits, waits, waits)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        """,
        options=("--max-overhead", percent),
    )
    run.main.check_balanced(ended=False)


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_what_no_function_can_be_dropped_for_pauses_and_forks_go_on(record, report, overview, python):
    """Exceptions that leave functions tell of themselves, whatever is dropped."""
    run = record.text(
        python,
        """
        import os, time
        def fails():
            raise ValueError
        def handles():
            try:
                fails()
            except ValueError:
                pass
        def child():
            for i in range(10):
                os.getpid()
        def before():  # once krait has been told that a fork comes
            for i in range(2_000):
                handles()
        os.register_at_fork(before=before)
        end = time.process_time() + 1.5
        while time.process_time() < end:
            for i in range(10_000):
                handles()
            pid = os.fork()
            if not pid:
                child()
                os._exit(0)
            os.waitpid(pid, 0)
        """,
        options=("--max-overhead", "0.5"),
    )
    assert overview(run.path)["paused"]
    assert "--max-overhead: recording paused" in run.stderr
    assert "multi-threaded" not in run.stderr  # CPython's warning of a fork beside other threads: krait has none then
    assert run.lost == 0
    run.main.check_balanced(ended=False)
    children = run.processes[1:]
    assert children and all("child" in process.calls() for process in children)


@drops
def test_many_short_functions_are_dropped_together(record, overview, python):
    run = record.text(
        python,
        """
        names = {}
        exec("\\n".join(f"def f{i}(x):\\n    return x" for i in range(100)), names)
        functions = [names[f"f{i}"] for i in range(100)]
        for i in range(20000):
            for f in functions:
                f(i)
        """,
        options=BUDGET,
    )
    gone = {row["name"] for row in overview(run.path)["omitted"] if row["name"].startswith("f")}
    assert len(gone) > 50


@pytest.mark.pythons(most=(3, 11))
@pytest.mark.few_pythons
def test_hooks_of_many_dropped_functions_are_charged_what_they_cost(record, python):
    """Each looks its function up in memory that the cache has lost: 16 ns would be too little."""
    run = record.text(
        python,
        """
        import sys
        names = {}
        exec("\\n".join(f"def f{i}(x):\\n    return x" for i in range(10_000)), names)
        functions = [names[f"f{i}"] for i in range(10_000)]
        def once():
            for f in functions:
                f(1)
        for i in range(500):
            once()
        hooked = 0
        for i in range(400):
            once()
            hooked += sys.getprofile() is not None
        print(hooked)
        """,
        options=BUDGET,
    )
    assert int(run.stdout) < 60


@drops
def test_a_dropped_function_that_becomes_long_is_recorded_again(record, report, overview, python):
    run = record.text(
        python,
        """
        import time
        def work(n):
            for i in range(n):
                pass
        for i in range(1000000):
            work(1)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            work(100000)
        """,
        options=BUDGET,
    )
    assert dropped(overview(run.path)) == {"work"}
    rows = recorded(report, run.path)
    assert rows["work"]["max_ns"] > 100_000
    assert rows["work"]["calls"] < 1_000_000


@drops
def test_what_a_function_calls_comes_back_with_it(record, tree_of, python):
    run = record.text(
        python,
        """
        import time
        small, large = [1], list(range(200000))
        def work(values):
            return sorted(values)
        for i in range(300000):
            work(small)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            work(large)
        """,
        options=BUDGET,
    )
    tree = tree_of(run.path)
    long = [row for row in tree if row["name"] == "work" and row["calls"] and row["total_ns"] / row["calls"] > 100_000]
    assert long  # it came back
    inside = [row for row in tree if row["name"] == "sorted" and row["parent"] in {row["id"] for row in long}]
    assert sum(row["calls"] for row in inside) >= sum(row["calls"] for row in long) - 1  # the call at which it came back has begun


@drops
def test_a_c_function_that_comes_back_has_no_end_without_a_begin(record, cat, overview, python):
    run = record.text(
        python,
        """
        import time
        small, large = [1], list(range(200000))
        for i in range(300000):
            sorted(small)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            sorted(large)
        """,
        options=BUDGET,
    )
    assert "sorted" in {row["name"] for row in overview(run.path)["omitted"]}
    lines = cat(run.path)
    assert sum('qualname = "sorted"' in line for line in lines) == 2  # it came back
    step = {"c:call": 1, "c:return": -1, "c:raise_of": -1, "c:raise": -1}
    depth = 0
    for name in (line.split(": {")[0].rsplit(" ", 1)[-1] for line in lines):
        depth = 0 if name == "python:stack" else depth + step.get(name, 0)
        assert depth >= 0


@drops
def test_a_dropped_function_that_is_live_when_it_comes_back_nests(record, tree_of, python):
    """Threads stand in it, and in a C function that was dropped: ends without begins must not unwind their callers."""
    run = record.text(
        python,
        """
        import threading, time
        lock = threading.Lock()
        def work(n):
            lock.acquire()
            for i in range(n):
                pass
            lock.release()
        def outer(n, times):
            for i in range(times):
                work(n)
        def thread(n, times):
            for i in range(10):
                outer(n, times)
        def phase(n, times):
            threads = [threading.Thread(target=thread, args=(n, times)) for _ in range(3)]
            [t.start() for t in threads]
            [t.join() for t in threads]
        phase(1, 50000)
        phase(20000, 100)
        """,
        options=BUDGET,
    )
    assert run.status == 0
    tree = tree_of(run.path)
    by_id = {row["id"]: row for row in tree}
    callers = {(row["name"], by_id[row["parent"]]["name"]) for row in tree if row["parent"] is not None}
    assert {caller for name, caller in callers if name == "outer"} == {"thread"}
    assert {caller for name, caller in callers if name == "work"} == {"outer"}
    assert sum(row["calls"] for row in tree if row["name"] == "outer") == 60


@drops
def test_a_c_call_of_a_function_that_is_dropped_is_over(record, overview, tree_of, python):
    """A thread stands in it meanwhile: its end is not recorded, since its caller is not any more."""
    run = record.text(
        python,
        """
        import threading
        lock, inside = threading.Lock(), threading.Event()
        def call(f, x):
            return f(x)
        def after():
            inside.clear()
        def outer():
            inside.set()
            call(lock.acquire, True)
            for i in range(10):
                after()
        with lock:
            thread = threading.Thread(target=outer)
            thread.start()
            inside.wait()
            for i in range(300000):
                call(len, ())
        thread.join()
        """,
        options=BUDGET,
    )
    assert "call" in dropped(overview(run.path))
    run.main.check_balanced(ended=False)
    by_id = {row["id"]: row for row in tree_of(run.path)}
    assert {by_id[row["parent"]]["name"] for row in by_id.values() if row["name"] == "after"} == {"outer"}


@drops
def test_a_c_call_at_which_its_caller_is_dropped_is_not_recorded(record, overview, python):
    """The governor looks at calls of C functions too. Each of these functions calls another one and is the only one while
    it is hot, so that the governor often drops it where it calls."""
    run = record.text(
        python,
        """
        words = ["a", b"a", bytearray(b"a")]
        names = [n for n in dir(bytes) if n.startswith("is") or n in ("strip", "lstrip", "lower", "upper", "title")]
        exec("\\n".join(f"def of_{name}_{i}(x):\\n    return x.{name}()" for name in names for i in range(3)))
        def hot(f, word):
            for i in range(40_000):
                f(word)
        for name in names:
            for i, word in enumerate(words):
                hot(globals()[f"of_{name}_{i}"], word)
        """,
        options=("--max-overhead", "10"),
    )
    assert len([name for name in dropped(overview(run.path)) if name.startswith("of_")]) > 10
    run.main.check_balanced(ended=False)


@drops
def test_exceptions_are_in_the_budget_and_unwind_no_caller(record, overview, tree_of, python):
    """Where exceptions cost too much krait goes on without RAISE, which tells begins that a signal handler hid."""
    run = record.text(
        python,
        """
        import signal
        def fails():
            raise ValueError
        def handles():
            try:
                fails()
            except ValueError:
                pass
        for i in range(300000):
            handles()
        class Alarm(Exception):
            pass
        def ring(*args):
            raise Alarm
        def victim(n):
            return n
        def inside():
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                victim(1)
        def outside():
            try:
                inside()
            except Alarm:
                pass
        signal.signal(signal.SIGALRM, ring)
        for i in range(300):
            outside()
        """,
        options=BUDGET,
    )
    gone = dropped(overview(run.path))
    assert "fails" in gone and "outside" not in gone
    tree = tree_of(run.path)
    by_id = {row["id"]: row for row in tree}
    callers = {(row["name"], by_id[row["parent"]]["name"]) for row in tree if row["parent"] is not None}
    assert {caller for name, caller in callers if name == "outside"} == {"<module>"}
    assert {caller for name, caller in callers if name == "inside"} == {"outside"}
    assert 0 < sum(row["calls"] for row in tree if row["name"] == "inside") <= 300  # recording may pause


def test_a_pause_that_begins_at_a_switch_of_greenlets_is_called_by_the_live_function(record, tree_of, python, venv):
    """A switch begins and ends no function."""
    text = """
        from greenlet import getcurrent, greenlet
        def waits():
            while True:
                home.switch()
        def rounds():
            for _ in range(300_000):
                let.switch()
        def outer():
            rounds()
        home, let = getcurrent(), greenlet(waits)
        outer()
        """
    run = record.text(venv(python, "greenlet"), text, options=BUDGET)
    nodes = {node["id"]: node for node in tree_of(run.path)}
    pauses = [node for node in nodes.values() if node["name"] == "<paused by --max-overhead>"]
    assert pauses
    assert {nodes[node["parent"]]["name"] for node in pauses} <= {"rounds", "waits", "switch"}
    assert sum(node["self_ns"] for node in nodes.values() if node["name"] == "outer") < sum(node["self_ns"] for node in pauses) / 10
