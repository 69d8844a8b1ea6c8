# SPDX-License-Identifier: Apache-2.0
"""krait top --exact: every call counted, as krait report counts them in a recording; into a running program and out of it."""

import json
import os
import re
import shlex
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest

from conftest import BUILD
from running import wait_for
from top_shown import BUSY, Screen, rows

ALL = ("--max-overhead", "100")

# Calls of every kind, as many each time it runs.
CALLS = """
import sys, threading
def leaf(n): return n
def loop(n):
    for i in range(n): leaf(i)
def recursive(n): return recursive(n - 1) if n else 0
def generate():
    for i in range(300): yield i
def fails(): raise ValueError
def caught():
    try: fails()
    except ValueError: pass
    try: int("x")
    except ValueError: pass
async def step(): return leaf(1)
async def steps():
    for i in range(20): await step()
threads = [threading.Thread(target=loop, args=(200,)) for i in range(3)]
for t in threads: t.start()
for t in threads: t.join()
loop(500)
recursive(40)
sum(generate())
for i in range(5): caught()
try: steps().send(None)
except StopIteration: pass
"""


@contextmanager
def tables_of(krait, *words):
    """The tables of `krait top --exact --json`, as they come."""
    words = [krait, "top", "--exact", "--json", "--interval", "100ms", *map(str, words)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as top:
        yield map(json.loads, top.stdout)
        top.terminate()
        top.stdout.read()
        assert top.wait(timeout=30) == 0


def run_top(krait, *words):
    return subprocess.run([krait, "top", "--exact", *map(str, words)], capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture
def exact(krait):
    """exact(*words): the tables of `krait top --exact --json`."""

    def read(*words, code=0, cwd=None):
        run = subprocess.run([krait, "top", "--exact", "--json", *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd)
        assert run.returncode == code, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read


@pytest.mark.every_python
def test_a_commands_calls_are_those_of_its_recording(exact, record, report, python):
    recorded = {f["name"]: f["calls"] for f in report(record.text(python, CALLS).path) if f["file"].endswith("app.py")}
    table = exact("--batch", "99", *ALL, "--", *python.prefix, python.exe, record.folder / "app.py")[-1]
    counted = {f["function"]: f["calls"] for f in table["functions"] if f["file"].endswith("app.py")}
    assert counted == recorded and counted["leaf"] == 1120 and counted["recursive"] == 41
    assert table["exact"] and not table["lost"] and table["threads"] == 4 and table["processes"] == 1
    found = {f["function"]: f for f in table["functions"] if f["file"].endswith("app.py") or f["function"] == "sum"}
    assert found["recursive"]["total_ns"] <= found["<module>"]["total_ns"] and found["recursive"]["own_ns"] <= found["recursive"]["total_ns"]
    assert found["generate"]["calls"] == 1 and found["sum"]["calls"] == 1 and found["fails"]["calls"] == 5


@pytest.mark.few_pythons
def test_a_command_that_is_over_before_krait_looks_for_it_is_counted(exact, python, tmp_path):
    app = tmp_path / "app.py"
    app.write_text(CALLS)
    words = shlex.join([*python.prefix, python.exe, str(app)])
    table = exact("--batch", "99", *ALL, "--", "sh", "-c", f"kill -STOP $PPID; {words}; kill -CONT $PPID")[-1]
    assert {f["function"]: f["calls"] for f in table["functions"]}["leaf"] == 1120 and table["lost"] == table["lost_events"] == 0


@pytest.mark.few_pythons
def test_a_running_program_is_counted_and_left_as_it_was(programs, exact, python):
    app = programs.start(python, BUSY)
    before = len(os.listdir(f"/proc/{app.pid}/fd"))
    for _ in range(2):  # again and again
        tables = exact("--batch", "2", "--interval", "300ms", *ALL, app.pid)
        found = rows(tables[-1])
        assert len(tables) == 2 and tables[-1]["interval_events"] > 0 and tables[-1]["time_ns"] > tables[0]["time_ns"]
        assert abs(found["spin"]["calls"] - found["long"]["calls"] - found["short"]["calls"]) <= 1
        assert found["waits"]["total"] == pytest.approx(1, abs=0.01), "an open call counts as long as it lasts"
        assert found["long"]["total_ns"] > found["short"]["total_ns"] and found["spin"]["total"] <= 1
        assert found["recursive"]["calls"] == pytest.approx(6 * found["long"]["calls"], abs=6)
        wait_for(lambda: len(os.listdir(f"/proc/{app.pid}/fd")) == before, "its descriptors as they were")
    assert app.process.poll() is None


@pytest.mark.few_pythons
def test_a_call_that_is_open_when_the_program_pauses_lasts_until_then(exact, python, tmp_path):
    """The table is that of the end: none before it has counted the call up to then."""
    (tmp_path / "app.py").write_text(f"import sys\nsys.path.insert(0, {str(BUILD / 'python')!r})\n" + """
import krait, threading, time
def waits(): lock.acquire()
lock = threading.Lock()
lock.acquire()
thread = threading.Thread(target=waits)
thread.start()
while not any(f.f_code is waits.__code__ for f in sys._current_frames().values()): time.sleep(0.01)
begin = time.monotonic_ns()
time.sleep(0.5)
told = time.monotonic_ns() - begin
assert krait.pause()
lock.release()
thread.join()
print(told, file=open("told", "w"))
""")
    table = exact("--batch", "99", "--interval", "1h", *ALL, "--", *python.prefix, python.exe, tmp_path / "app.py", cwd=tmp_path)[-1]
    assert rows(table)["waits"]["total_ns"] >= int((tmp_path / "told").read_text())


def test_threads_and_processes_have_rows_of_their_own(exact, any_python, tmp_path):
    (tmp_path / "app.py").write_text("import subprocess, sys\nif not sys.argv[1:]: subprocess.run([sys.executable, __file__, 'x'])\n" + CALLS)
    words = ("--batch", "99", *ALL, "--by")
    by_thread = exact(*words, "thread", "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")[-1]
    leaves = [f for f in by_thread["functions"] if f["function"] == "leaf"]
    assert sorted(f["calls"] for f in leaves) == [200] * 6 + [520] * 2 and len({f["process"] for f in leaves}) == 2
    assert {f["thread_name"] for f in leaves} >= {"MainThread", "Thread-1 (loop)"} and by_thread["threads"] == 8
    by_process = exact(*words, "process", "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")[-1]
    assert [f["calls"] for f in by_process["functions"] if f["function"] == "leaf"] == [1120, 1120] and by_process["processes"] == 2


def test_a_server_is_joined_with_its_workers(programs, exact, any_python):
    app = programs.start(any_python, BUSY.replace("print(os.getpid()", "import ctypes\nif not os.fork(): ctypes.CDLL(None).prctl(1, 9)\nelse: print(os.getpid()"))
    (table,) = exact("--once", "--children", "--by", "process", *ALL, app.pid)
    spins = [f for f in table["functions"] if f["function"] == "spin"]
    assert table["processes"] == 2 and len({f["process"] for f in spins}) == 2 and all(f["calls"] for f in spins)
    (alone,) = exact("--once", *ALL, app.pid)
    assert alone["processes"] == 1


LOOP = """
import asyncio, gc, time
async def slow():
    time.sleep(0.06)
    gc.collect()
async def main():
    for i in range(3): await asyncio.gather(slow(), asyncio.sleep(0))
asyncio.run(main())
"""


def test_the_heading_tells_of_the_event_loop_and_the_collector(exact, run, any_python, tmp_path):
    (tmp_path / "app.py").write_text(LOOP)
    words = (*any_python.prefix, any_python.exe, tmp_path / "app.py")
    tables = exact("--batch", "99", *ALL, "--", *words)
    assert max(t["interval_longest_step_ns"] for t in tables) >= 60e6 and tables[-1]["interval_steps"] >= 9 and tables[-1]["interval_gc_ns"] > 0
    text = run("top", "--exact", *ALL, "--", *words).stdout
    assert re.search(r", exact: [\d,]+ events/s, .*GIL held by Python code .*GIL waits .*GC .*event-loop lag .*longest task step ", text)


TURNS = """
import asyncio, time
async def slow(n):
    for i in range(n):
        time.sleep(0.06)
        await asyncio.sleep(0)
async def main():
    await asyncio.gather(*(slow(STEPS) for i in range(TASKS)))
asyncio.run(main())
"""


@pytest.mark.parametrize("tasks, steps", [(4, 1), (1, 4)])
def test_the_lag_of_an_event_loop_is_its_longest_turn(exact, any_python, tmp_path, tasks, steps):
    """Tasks that are ready at once are of one turn; a task that gives way is of a new one."""
    (tmp_path / "app.py").write_text(TURNS.replace("STEPS", str(steps)).replace("TASKS", str(tasks)))
    tables = exact("--batch", "99", *ALL, "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")
    lag, step = (max(t[f"interval_{key}_ns"] for t in tables) for key in ("loop_lag", "longest_step"))
    assert lag >= 240e6 if tasks == 4 else 60e6 <= step <= lag < step + 60e6


HELD = """
import threading
def spin():
    while not over: pass
over = False
threads = [threading.Thread(target=spin) for i in range(2)]
for t in threads: t.start()
for i in range(3): threading.Event().wait(0.3)
over = True
"""


def test_python_code_of_one_thread_at_a_time_holds_the_gil(exact, any_python, tmp_path):
    (tmp_path / "app.py").write_text(HELD)
    tables = exact("--interval", "10s", *ALL, "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")
    (spin,) = (f for f in tables[-1]["functions"] if f["function"] == "spin")
    held, waits, whole = (tables[-1][f"interval_{name}ns"] for name in ("gil_held_", "gil_wait_", ""))
    assert min(spin["own_ns"] - waits, whole) <= held <= whole and waits > 0  # of both it would be twice


LOCKED = """
import threading
def waits():
    with lock: pass
lock = threading.Lock()
lock.acquire()
threads = [threading.Thread(target=waits) for i in range(3)]
for t in threads: t.start()
for i in range(20): threading.Event().wait(0.02)
lock.release()
"""


def test_no_more_than_one_thread_holds_the_gil(exact, any_python, tmp_path):
    (tmp_path / "app.py").write_text(LOCKED)
    table = exact("--interval", "10s", *ALL, "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")[-1]
    assert 0 < table["interval_gil_held_ns"] <= table["interval_ns"]


TWO = """
import os, signal, ctypes, time
parent = os.fork()
if not parent: ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
def spin(n):
    for i in range(n): i * i
if parent: print(os.getpid(), flush=True)
while True: spin(1000)
"""


def test_each_process_has_a_gil_of_its_own(programs, exact, any_python):
    app = programs.start(any_python, TWO)
    (table,) = exact("--once", "--interval", "400ms", "--children", *ALL, app.pid)
    assert table["processes"] == 2 and 1.5 < table["interval_gil_held_ns"] / table["interval_ns"] < 2.001


IDLE = """
import os, threading, time
def waits(): lock.acquire()
lock = threading.Lock()
lock.acquire()
threads = [threading.Thread(target=waits, daemon=True) for i in range(5)]
for t in threads: t.start()
print(os.getpid(), *(t.native_id for t in threads), flush=True)
def spin(n):
    for i in range(n): abs(i)
while True: spin(1000)
"""


@pytest.mark.few_pythons
def test_threads_that_sleep_since_krait_came_do_not_hold_the_gil(programs, exact, python):
    app = programs.start(python, IDLE)
    wait_for(lambda: all("S (sleeping)" in open(f"/proc/{app.pid}/task/{tid}/status").read() for tid in app.ready.split()), "waits")
    tables = exact("--batch", "3", "--interval", "200ms", *ALL, app.pid)
    for table in tables:
        assert 0 < table["interval_gil_held_ns"] <= table["interval_ns"]
        assert rows(table)["waits"]["own"] == pytest.approx(5, abs=0.01), "they are in it all the same"


TASKS = """
import asyncio
async def handle(n):
    for i in range(4): await asyncio.sleep(0)
async def main():
    await asyncio.gather(*(handle(i) for i in range(3)), asyncio.create_task(handle(9), name="last"))
asyncio.run(main())
"""


@pytest.mark.few_pythons
def test_tasks_have_rows_by_their_names_and_coroutines(exact, run, python, tmp_path):
    """Also those of a decorated function."""
    path = f"import sys\nsys.path.append({str(BUILD / 'python')!r})\nimport krait"
    (tmp_path / "app.py").write_text(path + TASKS.replace("async def handle", "@krait.span('handle')\nasync def handle"))
    words = (*ALL, "--by", "task", "--", *python.prefix, python.exe, tmp_path / "app.py")
    table = exact("--batch", "99", *words)[-1]
    found = {(t["coroutine"], t["name"]): t for t in table["tasks"] if t["file"].endswith("app.py")}
    assert set(found) == {("handle", None), ("handle", "last"), ("main", None)} and "functions" not in table
    unnamed, named = found["handle", None], found["handle", "last"]
    assert (unnamed["tasks"], unnamed["steps"], named["tasks"], named["steps"]) == (3, 15, 1, 5)
    assert unnamed["mean_ns"] <= unnamed["running_ns"] and table["cost_ns"] > 0
    text = run("top", "--exact", *words).stdout
    assert re.search(r"running +steps/s +longest +mean +steps +running time +tasks +name +coroutine", text) and re.search(r"5 .* 1  last +handle +5 ", text)


def test_tasks_that_ran_before_krait_came_count_once(programs, exact, any_python):
    app = programs.start(any_python, """
        import asyncio, os
        async def turns():
            while True: await asyncio.sleep(0.001)
        async def main():
            await asyncio.gather(turns(), turns())
        print(os.getpid(), flush=True)
        asyncio.run(main())
    """)
    tables = exact("--batch", "2", "--interval", "300ms", "--by", "task", *ALL, app.pid)
    assert [[t["tasks"] for t in table["tasks"] if t["coroutine"] == "turns"] for table in tables] == [[2], [2]]


def test_what_max_overhead_leaves_out_is_told(programs, krait, python):
    """The recorder drops functions, or pauses: then not every call is there, and the heading says so."""
    app = programs.start(python, "import os\nprint(os.getpid(), flush=True)\ndef f(): pass\nwhile True:\n for i in range(1000): f()\n")
    with subprocess.Popen([krait, "top", "--exact", "--max-overhead", "1", "--interval", "200ms", str(app.pid)], stdout=subprocess.PIPE, text=True) as top:
        told = next(line for line in top.stdout if re.search(r"--max-overhead (dropped \d+ functions?|paused for )", line))
        top.terminate()
        text = told + top.stdout.read()
        assert "exact: " in told and top.wait(timeout=30) == 0
        assert ("paused for" in text) == ("<paused by --max-overhead>" in text)  # a row too, so that the table adds up


HOLDER = """
import os
def leaf(n): return n
def caller():
    for i in range(2000): leaf(i)
MANY = range(10000)  # so that no call in calm is short enough to be dropped
def calm(): return sum(MANY)
print(os.getpid(), flush=True)
while True:
    caller()
    calm()
"""


@pytest.mark.few_pythons
@pytest.mark.pythons(least=(3, 12))  # before, on some machines the recorder pauses in place of dropping leaf
@pytest.mark.long
def test_callers_of_dropped_functions_are_marked(programs, krait, python):
    """As in krait report: their time holds that of what they call."""
    app = programs.start(python, HOLDER)
    with tables_of(krait, "--max-overhead", "3", app.pid) as tables:
        found = next(f for f in map(rows, tables) if "caller" in f and f["caller"]["holds_dropped"])
    assert not found["calm"]["holds_dropped"] and not found.get("leaf", {}).get("holds_dropped")
    text = run_top(krait, "--max-overhead", "3", "--batch", "4", "--interval", "300ms", app.pid)
    assert re.search(r" caller \[\+dropped\] ", text) and not re.search(r" calm \[", text)


EXECUTES = """
import os, sys
def first(): pass
def second(): pass
print(os.getpid(), flush=True)
while len(sys.argv) < 2 and not os.path.exists("go"): first()
if len(sys.argv) < 2: os.execv(sys.executable, [sys.executable, __file__, "again"])
while True: second()
"""


@pytest.mark.few_pythons
def test_a_process_that_executes_another_program_is_joined_again(programs, krait, python, tmp_path):
    app = programs.start(python, EXECUTES)
    with tables_of(krait, *ALL, app.pid) as tables:
        next(t for t in tables if "first" in rows(t))
        (tmp_path / "go").touch()
        table = next(t for t in tables if "second" in rows(t))
    assert not table["stopped_recording"] and not table["not_recorded"]


@pytest.mark.few_pythons
def test_a_command_that_has_ended_has_not_stopped_its_recording(run, python):
    text = run("top", "--once", "--exact", "--", *python.prefix, python.exe, "-c", "import time; time.sleep(0.3)").stdout
    assert "exact: " in text and "stopped recording" not in text


STOPS = """
import os
import krait
def first(): pass
print(os.getpid(), flush=True)
while not os.path.exists("go"): first()
krait.stop()
os.rename("go", "gone")
while True: first()
"""


@pytest.mark.few_pythons
def test_a_process_that_stops_its_recording_is_told_and_left_alone(programs, krait, python, tmp_path):
    app = programs.start(python, STOPS, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    with tables_of(krait, *ALL, app.pid) as tables:
        assert not next(t for t in tables if "first" in rows(t))["stopped_recording"]
        (tmp_path / "go").touch()
        assert next(t for t in tables if t["stopped_recording"])["stopped_recording"] == 1
        assert not [next(tables) for _ in range(10)][-1]["interval_events"]
    screen = Screen(krait, "--exact", *ALL, app.pid, columns=120)
    screen.wait_for(r"exact: .* first ")  # who asks for it gets it again
    screen.press("q")
    assert screen.end() == 0


UNSAFE = "#include <unistd.h>\nvoid hold(void) { while (access(\"released\", F_OK)) usleep(1000); }\n"
BESIDE = """
import ctypes, os
hold = ctypes.CDLL("./libtcmalloc-hold.so").hold
def f(): pass
if not os.fork():
    hold()
    os._exit(0)
print(os.getpid(), flush=True)
while True:
    for i in range(1000): f()
"""


@pytest.mark.long
@pytest.mark.few_pythons
def test_rings_are_emptied_while_another_process_keeps_krait_out(programs, krait, python, tmp_path):
    """It is in what krait takes for an allocator, for the ten seconds that krait tries."""
    (tmp_path / "hold.c").write_text(UNSAFE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libtcmalloc-hold.so", tmp_path / "hold.c"], check=True)
    app = programs.start(python, BESIDE)
    table = json.loads(run_top(krait, "--once", "--json", "--children", *ALL, app.pid))
    (tmp_path / "released").touch()
    assert table["not_recorded"] == 1 and not table["lost"]


def test_a_process_is_watched_once(programs, krait, run, any_python):
    app = programs.start(any_python, BUSY)
    with subprocess.Popen([krait, "top", "--exact", "--interval", "100ms", str(app.pid)], stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout.readline()
        assert f"watched already by krait top, process {top.pid}" in run("top", "--exact", "--once", app.pid, code=1).stderr
        assert "keeps no events" in run("ctl", app.pid, "snapshot", code=1).stderr
        assert json.loads(run("ctl", app.pid, "status", "--json").stdout)["folder"] is None
        assert "watched by krait top" in run("ctl", app.pid, "status").stdout
        top.terminate()
        top.stdout.read()
        assert top.wait(timeout=30) == 0
    assert run("ctl", app.pid, "status", code=1).stderr
    assert app.process.poll() is None


def test_a_key_switches_between_samples_and_every_call(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, "--max-overhead", "100", app.pid, columns=120)
    screen.wait_for(r"samples, .* spin .*x exact")
    screen.press("x")
    screen.wait_for(r"exact: [\d,]+ events/s.*own +total +(?:descendants +)?calls/s.* spin .*x samples")
    screen.press("s")
    screen.wait_for(r"sort \(total\)")
    screen.press("t")
    screen.wait_for(r"thread  name .* MainThread .* spin ")
    screen.press("r")
    screen.wait_for(r"\x1b\[H.* spin ")
    screen.press("x")
    screen.wait_for(r"samples, .* spin .*x exact")
    screen.press("x")
    screen.wait_for(r"exact: .* spin ")
    screen.press("q")
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?1049lprocess .*exact: .* spin ", screen.text, re.S) and app.process.poll() is None


def cpu_of(pid):
    return sum(map(int, open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:13]))


@pytest.mark.parametrize("words, keys", [(["--exact", *ALL], "IIBBtttt"), (["--exact", *ALL, "--kernel"], "BB"), ([], "IIBBtttll")])
def test_a_paused_table_stays_that_of_one_moment(programs, krait, any_python, words, keys):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, *words, app.pid, rows=40, columns=200)
    screen.wait_for(" spin ")
    before = screen.frames("q quit  p pause")
    screen.press("p")
    *before, paused = before + screen.frames("PAUSED")
    assert paused == before[-1]
    used = cpu_of(app.pid)
    wait_for(lambda: cpu_of(app.pid) > used + 50, "packets of events")
    for key in keys:  # back to what was shown
        screen.press(key)
        shown = screen.frame("PAUSED")
        assert shown[:2] == paused[:2], f"{key}: the heading"
    assert shown == paused
    screen.press("/spin\n")
    screen.wait_for("functions: spin_")
    (spin,) = [line for line in paused if " spin " in line]
    assert screen.frame("PAUSED")[-1].split()[:2] == spin.split()[:2]
    for key in "xrw":
        screen.press(key)
        screen.wait_for("paused: that key needs new counts; press p")
    screen.press("p")
    screen.frame("q quit  p pause")
    now = screen.frame("q quit  p pause")
    assert now[1] != paused[1] and now[-1].split() != spin.split()
    screen.press("q")
    assert screen.end() == 0


def test_keys_of_samples_change_nothing_with_every_call(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, "--exact", *ALL, app.pid, columns=160)
    screen.wait_for(r"exact: .* spin .*x samples")
    for key, what in (("l", "lines of code"), ("i", "sleeping threads"), ("g", "the holder of the GIL")):
        screen.press(key)
        screen.wait_for(what + ": only with samples, press x")
    screen.press("x")
    screen.wait_for(r"samples, .* spin .*x exact  l lines  .* i sleeping too  g GIL only")
    screen.press("q")
    assert screen.end() == 0


WAITS = """
import os, threading, time
lock = threading.Lock()
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def naps(): time.sleep(0.3)
def takes():
    with lock: pass
def again(n):
    if n: again(n - 1)
    else: takes()
lock.acquire()
threading.Thread(target=again, args=(5,), daemon=True).start()
print(os.getpid(), flush=True)
while True:
    spin(0.1)
    naps()
"""
STATES = ("on_cpu", "gil", "lock", "disk", "network", "poll", "timer", "child", "other")


def test_exact_time_is_split_by_what_threads_wait_for(programs, krait, exact, python):
    app = programs.start(python, WAITS)
    expected = {"naps": "timer" if python.number >= (3, 11) else "poll", "spin": "on_cpu", "takes": "lock", "again": "lock"}
    times, looks = {name: Counter() for name in expected}, 0
    with tables_of(krait, *ALL, "--kernel", app.pid) as tables:

        def is_split():
            """A table of a loaded machine may have no look at a function."""
            nonlocal looks
            table = next(tables)
            found = {name: row for name, row in rows(table).items() if any(row[state] for state in STATES)}
            assert all(sum(row[state] for state in STATES) == pytest.approx(row["total"], abs=1e-5) for row in found.values())
            looks += table["interval_state_samples"]
            for name in times.keys() & found.keys():
                times[name].update({state: found[name][state] * table["interval_ns"] for state in STATES})
            most = {name: max(STATES, key=time.__getitem__) for name, time in times.items() if time}
            return most == expected and looks > 10 and rows(table).get("spin", {"calls": 0})["calls"]

        wait_for(is_split, "looks at each function")
    assert "on_cpu" not in exact(*ALL, "--once", app.pid)[0]["functions"][0]


def test_a_key_splits_exact_time(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, "--exact", *ALL, app.pid, columns=160)
    screen.wait_for(r"exact: .* spin .*x samples .*w waits")
    screen.press("w")
    screen.wait_for(r"split by [\d,]+ samples.* total +descendants +cpu .*calls/s.* spin .*w no waits")
    screen.press("x")
    screen.wait_for(r"samples, .* cpu .* spin .*x exact")
    screen.press("q")
    assert screen.end() == 0


def test_the_last_table_stays_when_the_program_is_killed(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, "--exact", *ALL, app.pid)
    screen.wait_for(r"exact: .* spin ")
    app.process.kill()
    app.process.wait()
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?1049lprocess .*exact: .* spin .*has ended", screen.text, re.S)


def test_the_options_of_krait_are_not_the_commands(run, any_python, tmp_path):
    (tmp_path / "app.py").write_text("import sys\nprint(sys.argv[1:], file=sys.stderr)\n")
    done = run("top", "--exact", "--limit", "3", "--", *any_python.prefix, any_python.exe, tmp_path / "app.py", "--its-own")
    assert "['--its-own']" in done.stderr
