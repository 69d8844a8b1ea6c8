# SPDX-License-Identifier: Apache-2.0
"""krait top: shares that the program itself knows, tables, keys, ends."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

import ready
from pages import run_page
from running import wait_for
from subinterpreters import FOREVER, MODULE
from terminal import on_terminal
from top_shown import BUSY, Screen, Shell, rows


@pytest.fixture
def top(krait):
    """top(pid, *options): the lines of `krait top --json`."""

    def read(*words, code=0):
        run = subprocess.run([krait, "top", "--json", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert run.returncode == code, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read


@pytest.mark.few_pythons
def test_shares_are_those_of_the_program(programs, top, python):
    app = programs.start(python, BUSY)
    (table,) = top("--once", "--interval", "3s", "--rate", "300", app.pid)
    found = rows(table)
    assert table["samples"] == table["interval_samples"] > 300 and table["threads"] == 2 and table["command"].endswith("app1.py")
    assert 0.65 < found["long"]["total"] / found["spin"]["total"] < 0.85
    assert found["spin"]["own"] + found["thread_time"]["own"] == pytest.approx(found["spin"]["total"], abs=1e-5)
    assert found["thread_time"]["function"] == "time.thread_time" and found["spin"]["own"] > 0 and found["thread_time"]["file"] == "<built-in>"
    assert found["short"]["own"] < 0.02  # a look may meet it on its way into spin or out of it
    assert found["long"]["total"] <= found["recursive"]["total"] <= 1 and "waits" not in found
    assert found["recursive"]["total"] == pytest.approx(found["long"]["total"], abs=0.05)  # a look may meet it on its way into long
    for row in found.values():
        assert row["own_ns"] == pytest.approx(row["own"] * table["time_ns"], rel=0.01)
        assert row["total_ns"] == pytest.approx(row["total"] * table["time_ns"], rel=0.01)
    assert [f["own"] for f in table["functions"]] == sorted((f["own"] for f in table["functions"]), reverse=True)
    assert all(row["descendants"] == pytest.approx(row["total"] - row["own"], abs=2e-6) for row in found.values()) and found["long"]["descendants"] > 0.5
    assert found["long"]["file"].endswith("app1.py") and BUSY.splitlines()[found["long"]["line"] - 1].startswith("def long")


def test_sleeping_threads_count_if_asked_for(programs, top, any_python):
    app = programs.start(any_python, BUSY)
    (table,) = top("--once", "--idle", app.pid)
    assert rows(table)["waits"]["total"] == 1 and table["interval_stacks"] == 2 * table["samples"]
    (holders,) = top("--once", "--idle", "--gil", app.pid)
    assert "waits" not in rows(holders) and holders["interval_stacks"] <= holders["samples"]


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [[], ["--kernel"]])
def test_threads_that_are_ready_for_a_cpu_count(programs, top, python, options):
    app = ready.start(programs, python)
    kept = ready.Kept(app.pid)
    (table,) = top("--once", "--rate", 1000, *options, app.pid)
    true, found = kept.share(), rows(table)
    sleeps = found["sleep"]["on_cpu"] if options else found["sleep"]["own"]
    waits_for_cpu = true - found["works"]["total"]
    assert waits_for_cpu > 0.1 and waits_for_cpu / 2 < sleeps < waits_for_cpu * 2
    assert options or "waits" not in found


COLLECTING = """
import gc, os, sys
gc.disable()
kept = [[] for i in range(200000)]
print(os.getpid(), flush=True)
while True:
    if len(sys.argv) > 1: gc.collect()
"""


@pytest.mark.every_python
def test_the_share_of_the_garbage_collector_is_told(programs, top, run, python):
    short = ["--once", "--interval", "300ms"]
    app = programs.start(python, COLLECTING, "yes")
    (table,) = top(*short, app.pid)
    assert table["interval_gc"] > 0.5 * table["interval_samples"] > 0
    assert re.search(r", GIL held [\d.]+%, GC \d\d", run("top", *short, app.pid).stdout)
    app.end()
    calm = programs.start(python, COLLECTING)
    assert top(*short, calm.pid)[0]["interval_gc"] == 0


INTERPRETERS = f"{MODULE}import ctypes, os, threading, time\n"


def test_a_thread_that_runs_another_interpreter_counts_once(programs, top, python):
    app = programs.start(python, FOREVER)
    (table,) = top("--once", "--interval", "500ms", app.pid)
    found = rows(table)
    assert table["threads"] == 1 and 0.8 * table["samples"] < min(table["interval_stacks"], table["interval_gil_held"])
    assert max(table["interval_stacks"], table["interval_gil_held"]) <= table["samples"]
    assert found["inside"]["total"] == found["outer"]["total"] == 1 and sum(f["own"] for f in found.values()) == pytest.approx(1, abs=1e-5)
    (table,) = top("--once", "--gil", "--interval", "500ms", app.pid)
    assert rows(table)["inside"]["total"] == rows(table)["outer"]["total"] == 1


@pytest.mark.few_pythons
def test_the_share_of_a_subinterpreters_collector_is_told(programs, top, python):
    """Before Python 3.12 it shares the GIL with the main one, which sleeps, and gives it up only by itself."""
    code = "import gc, time\nkept = [[] for i in range(200000)]\nwhile True: gc.collect(), time.sleep(0)"
    app = programs.start(python, f"{INTERPRETERS}threading.Thread(target=run, args=(interpreters.create(), {code!r}), daemon=True).start()\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    (table,) = top("--once", "--interval", "500ms", app.pid)
    assert table["interval_gc"] > 0.5 * table["interval_samples"] > 0


@pytest.mark.few_pythons
def test_interpreters_that_end_do_not_end_top(programs, top, python):
    """M_MMAP_THRESHOLD (-3): their memory is gone at once."""
    app = programs.start(python, f"{INTERPRETERS}ctypes.CDLL(None).mallopt(-3, 65536)\nprint(os.getpid(), flush=True)\nwhile True:\n    interpreters.destroy(interpreters.create())\n    time.sleep(0.06)\n")
    (table,) = top("--once", "--interval", "500ms", "--idle", app.pid)
    assert table["samples"] > 0


def test_what_reading_costs_the_program_is_told(programs, top, run, any_python):
    """It costs threads that would run, and none of those that sleep."""
    app = programs.start(any_python, BUSY)
    tables = top("--batch", "2", "--interval", "300ms", app.pid)
    assert 0 < tables[0]["cost_ns"] < tables[1]["cost_ns"] < tables[1]["time_ns"]
    assert re.search(r"krait itself CPU [\d.]+%, reading costs the program [\d.]+%", run("top", "--once", app.pid).stdout)
    sleeps = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    wait_for(lambda: "S (sleeping)" in open(f"/proc/{sleeps.pid}/status").read(), "sleep")
    (table,) = top("--once", "--idle", sleeps.pid)
    assert table["interval_stacks"] > 0 and table["cost_ns"] == 0


WAITING = """
import os, select, socket, subprocess, threading, time
one, two = socket.socketpair()
unread, kept = os.pipe()
held = threading.Lock()
held.acquire()
cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
def lock(): held.acquire()
def network(): one.recv(1)
def reads_socket(): os.read(two.fileno(), 1)
def poll(): select.select([unread], [], [])
def timer(): time.sleep(600)
def child(): os.waitpid(cat.pid, 0)
def other(): os.read(unread, 1)
threads = [threading.Thread(target=f, daemon=True) for f in (lock, network, reads_socket, poll, timer, child, other)]
for t in threads: t.start()
print(os.getpid(), *(t.native_id for t in threads), flush=True)
held.acquire()
"""


def test_waits_are_split_by_what_the_kernel_says(programs, top, run, krait, python):
    app = programs.start(python, WAITING)
    wait_for(lambda: all("S (sleeping)" in open(f"/proc/{app.pid}/task/{tid}/status").read() for tid in app.ready.split()), "waits")
    (table,) = top("--once", "--kernel", "--sort", "lock", app.pid)
    found = rows(table)
    states = ["on_cpu", "gil", "lock", "disk", "network", "poll", "timer", "child", "other"]
    names = {name: name for name in ("lock", "network", "child", "other", "poll")} | {"reads_socket": "network"}
    names["timer"] = "timer" if python.number >= (3, 11) else "poll"  # time.sleep calls select() there
    for name, state in names.items():
        assert found[name][state] == pytest.approx(found[name]["total"], abs=0.05) and found[name]["total"] > 0.9, name
    assert all(sum(row[state] for state in states) == pytest.approx(row["total"], abs=1e-5) for row in found.values())
    assert table["functions"][0]["lock"] > 0.9, "sorted by it"
    text = run("top", "--once", "--kernel", app.pid).stdout
    assert re.search(r"own +total +descendants +cpu +lock +net +poll +(?:timer +)?child +other +own time", text)
    narrow, _ = on_terminal([krait, "top", "--once", "--kernel", app.pid], 80, env={**os.environ, "NO_COLOR": "1"})
    head = next(line.split() for line in narrow.splitlines() if "function" in line)
    assert {"lock", "net"} <= set(head) and "cpu" not in head, "two threads wait in each of those, and none runs"


def test_waits_for_the_gil_are_told_from_running(programs, top, any_python):
    app = programs.start(any_python, """
        import os, threading
        def spin():
            while True: pass
        for i in range(2): threading.Thread(target=spin, daemon=True).start()
        print(os.getpid(), flush=True)
        spin()
    """)
    (table,) = top("--once", "--kernel", "--rate", "300", app.pid)
    spin = rows(table)["spin"]
    assert spin["gil"] > 0.3 and spin["on_cpu"] > 0.3 and spin["gil"] + spin["on_cpu"] == pytest.approx(spin["total"], abs=0.2)


def test_each_table_is_of_its_interval_and_times_add_up(programs, top, any_python):
    app = programs.start(any_python, BUSY)

    def all_have_samples():
        """On a loaded machine the program may have no CPU in one interval."""
        begin_ns = time.monotonic_ns()
        tables = top("--batch", "3", "--interval", "300ms", app.pid)
        assert len(tables) == 3
        assert sum(t["interval_samples"] for t in tables) == tables[-1]["samples"]
        assert sum(t["interval_ns"] for t in tables) == tables[-1]["time_ns"]
        assert 0 < tables[0]["time_ns"] < tables[1]["time_ns"] < tables[2]["time_ns"] < time.monotonic_ns() - begin_ns
        spins = [rows(t).get("spin", {"total_ns": 0})["total_ns"] for t in tables]
        assert spins == sorted(spins)
        return 0 < spins[0] < spins[1] < spins[2]

    wait_for(all_have_samples, "samples in three intervals", limit=60)


@pytest.mark.parametrize("words", [[], ["--exact"]], ids=["samples", "exact"])
def test_the_heading_is_of_the_interval_and_tells_the_whole_time(programs, run, any_python, words):
    app = programs.start(any_python, BUSY)
    text = run("top", *words, "--batch", "3", "--interval", "400ms", app.pid).stdout
    one, *others = re.findall(r"^(last )?([\d.]+) ms(?: of ([\d.]+) (m?s))?, (\d+)?", text, re.M)
    assert one[:3:2] == ("", ""), "of the first interval, which is the whole"
    sum_ms = float(one[1])
    for is_last, last, whole, unit, _ in others:
        sum_ms += float(last)
        assert is_last and float(whole) * (1000 if unit == "s" else 1) == pytest.approx(sum_ms, abs=2)
    samples = [int(count) for *_, count in (one, *others) if count]
    assert words or (len(samples) == 3 and max(samples) < 100), "at 100 a second none has those of all"


def test_sorted_and_limited(programs, run, any_python):
    app = programs.start(any_python, BUSY)
    text = run("top", "--once", "--sort", "function", "--limit", "2", app.pid).stdout
    head, *table = text.split("\n\n", 1)[1].splitlines()
    assert head.split() == ["own", "total", "descendants", "own", "time", "total", "time", "function", "line", "file"]
    assert [re.search(r"(<module>|long) +\d+ ", line)[1] for line in table] == ["<module>", "long"]
    assert re.match(rf"process {app.pid}, Python {any_python.version}: \S+ .*app1.py\n[\d.]+ m?s, \d+ samples, CPU \d+%, GIL held", text)


def test_what_functions_called_can_be_sorted_by(programs, top, any_python):
    app = programs.start(any_python, BUSY)
    for exact in ([], ["--exact", "--max-overhead", "100"]):
        (table,) = top("--once", "--sort", "descendants", *exact, app.pid)
        shares = [f["descendants"] for f in table["functions"]]
        assert shares == sorted(shares, reverse=True) and shares[0] > 0.5 and rows(table)["spin"]["descendants"] < shares[0]


def test_the_classic_table(programs, run, any_python):
    app = programs.start(any_python, BUSY)
    text = run("top", "--once", "--classic", "--sort", "total", app.pid).stdout
    head, *table = text.split("\n\n", 1)[1].splitlines()
    assert re.fullmatch(r"function +total time +% +descendants +itself +file +line", head)
    found = {row[0]: row for row in (re.match(r"(\S+) +([\d.]+ m?s) +([\d.]+)% +([\d.]+)% +([\d.]+)%  (\S+) +(\d+|-)$", line).groups() for line in table)}
    assert set(found) >= {"<module>", "long", "spin"} and found["long"][4] == "0.0"
    assert float(found["long"][2]) == float(found["long"][3]) > 0
    assert float(found["spin"][3]) + float(found["spin"][4]) == pytest.approx(float(found["spin"][2]), abs=0.11)
    assert found["time.thread_time"][5:] == ("<built-in>", "-") and found["time.thread_time"][3] == "0.0"


def test_a_program_that_runs_no_python_code_has_an_empty_table(programs, run, any_python):
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    wait_for(lambda: "S (sleeping)" in open(f"/proc/{app.pid}/status").read(), "sleep")
    assert "no thread ran Python code at any sample" in run("top", "--once", "--interval", "200ms", app.pid).stdout


def test_when_the_program_ends_its_table_is_printed(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    with subprocess.Popen([krait, "top", "--once", "--interval", "60s", str(app.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
        time.sleep(0.5)
        app.process.kill()
        app.process.wait()
        out, err = top.communicate(timeout=60)
    assert (top.returncode, err) == (0, f"krait top: process {app.pid} has ended\n") and " spin " in out and "app1.py" in out.splitlines()[0]
    assert ", 2 threads, " in out.splitlines()[1], "those that there were"


@pytest.mark.parametrize(
    "words, why",
    [
        ([], "needs the PID of a running Python program, or a command"),
        (["1", "x"], "'x' is no PID"),
        (["--filter", "re:(", "1"], "egular expression"),
        (["--by", "line", "1"], "line"),
        (["--once", "--batch", "2", "1"], "exclude each other"),
        (["--rate", "10001", "1"], "at most 10000"),
        (["--sort", "nothing", "1"], "nothing"),
        (["--exact", "--lines", "1"], "are of samples, not of --exact"),
        (["--by", "task", "1"], "--by task needs --exact"),
        (["--exact", "--gil", "--kernel", "1"], "are of samples, not of --exact"),
        (["--sort", "owx", "1"], "the columns are own, total, descendants, own_ns, total_ns, function, line, file; did you mean 'own'?"),
        (["--sort", "sef", "1"], "own_ns, total_ns, function, line, file; did you mean 'own', which krait report calls self?"),
        (["--sort", "own_n", "1"], "did you mean 'own_ns'?"),
        (["--sort", "lock", "1"], "lock"),
        (["--exact", "--rate", "100", "1"], "are of samples, not of --exact"),
        (["--exact", "--max-overhead", "101", "1"], "a percentage from 0 to 100"),
        (["--sort", "calls", "1"], "calls"),
        (["--stacks", "--exact", "1"], "--stacks does not go with"),
        (["--stacks", "--json", "1"], "--stacks does not go with"),
        (["--stacks", "--filter", "spin", "1"], "--stacks does not go with --filter, --by, --sort and --limit"),
        (["--stacks", "--by", "thread", "1"], "--stacks does not go with --filter"),
        (["--stacks", "--sort", "own", "1"], "--stacks does not go with --filter"),
        (["--stacks", "--limit", "3", "1"], "--stacks does not go with --filter"),
        *((["--stacks", option, "1"], "--stacks does not go with --idle, --gil and --kernel") for option in ("--idle", "--gil", "--kernel")),
        (["--stacks", "--bars", "1"], "--stacks, --bars and --clock exclude each other"),
        (["--bars", "--json", "1"], "--bars and --clock do not go with --json and --classic"),
        (["--clock", "1"], "--clock needs --exact: samples do not have single calls"),
        (["--turn", "1s", "1"], "--turn is of --clock"),
    ],
)
def test_wrong_usage(run, words, why):
    assert why in run("top", *words, code=2).stderr


@pytest.mark.parametrize("exact", [[], ["--exact"]])
def test_what_is_no_python_is_refused(programs, run, exact):
    app = programs.add(["sh", "-c", "echo $$; exec sleep 60"])
    wait_for(lambda: "sleep" in os.readlink(f"/proc/{app.pid}/exe"), "sleep")
    assert "which is not Python" in run("top", *exact, app.pid, code=1).stderr


FORKING = BUSY.replace("print(os.getpid(), flush=True)", """
import ctypes
workers = [os.fork(), os.fork()] # three children, one of them of a child
if not all(workers): ctypes.CDLL(None).prctl(1, 9) # PR_SET_PDEATHSIG
else: print(os.getpid(), flush=True)
""")


def test_lines_and_threads_have_rows_of_their_own(programs, top, any_python):
    app = programs.start(any_python, BUSY)
    (lines,) = top("--once", "--lines", "--idle", "--rate", "300", app.pid)
    (threads,) = top("--once", "--by", "thread", "--idle", "--rate", "300", app.pid)
    source = BUSY.splitlines()
    spins = {f["line"]: f for f in lines["functions"] if f["function"].endswith("spin")}
    assert spins and all(source[line - 1].startswith("    ") and source[line - 2 : line] != [] for line in spins)
    assert sum(f["own"] for f in spins.values()) == pytest.approx(1, abs=0.2)
    by_function = {f["function"].rpartition(".")[2]: f for f in threads["functions"]}
    assert by_function["waits"]["thread"] != by_function["spin"]["thread"] == app.pid
    assert by_function["spin"]["thread_name"] and "thread" not in lines["functions"][0]


@pytest.mark.few_pythons
def test_children_are_read_and_told_apart(programs, top, run, python):
    app = programs.start(python, FORKING)
    (table,) = top("--once", "--children", "--by", "process", app.pid)
    spins = {f["process"]: f for f in table["functions"] if f["function"].rpartition(".")[2] == "spin"}
    assert table["processes"] >= 3 and len(spins) >= 3 and app.pid in spins and table["memory"] > 1_000_000
    (alone,) = top("--once", "--filter", "short", app.pid)
    assert alone["processes"] == 1 and {f["function"].rpartition(".")[2] for f in alone["functions"]} <= {"short"}
    text = run("top", "--once", "--children", "--filter", "re:^nothing$", app.pid).stdout
    assert re.match(rf"\d+ processes of {app.pid}, Python .*\n.*; only re:", text) and "no function that was met is one of these" in text


SHORT = """
import os, resource, sys, time
def child():
    while time.process_time() < 0.02: pass
    os._exit(0)
print(os.getpid(), flush=True)
for n in range(1, 1000000):
    if not (pid := os.fork()): child()
    os.waitpid(pid, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(f"{sys.argv[1]}/new", "w") as f: print(n, used.ru_utime + used.ru_stime, file=f)
    os.rename(f"{sys.argv[1]}/new", f"{sys.argv[1]}/told")
"""


def test_children_that_end_before_krait_sees_them_are_told(programs, top, run, any_python, tmp_path):
    app = programs.start(any_python, SHORT, tmp_path)

    def told():
        wait_for((tmp_path / "told").exists, "children")
        count, used = (tmp_path / "told").read_text().split()
        return int(count), float(used) * 1e9

    count, used = told()
    (table,) = top("--once", "--children", "--interval", "2s", app.pid)
    count, used = told()[0] - count + 2, told()[1] - used + 0.1e9
    assert 0 < table["unseen_children_cpu_ns"] == table["interval_unseen_children_cpu_ns"] < used
    assert 0 <= table["unseen_children"] < count, "0 where the kernel does not tell them"
    assert re.search(r", (\d+ )?children too short to be read \(CPU [\d.]+%\), memory", run("top", "--once", "--children", app.pid).stdout)


LONG = """
import os, signal, sys, time
pid = os.fork()
while not pid: pass
print(os.getpid(), flush=True)
sys.stdin.readline()
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
time.sleep(600)
"""


def test_children_that_krait_has_seen_are_not_told_as_unseen(programs, krait, any_python):
    app = programs.start(any_python, LONG, stdin=subprocess.PIPE)
    words = [krait, "top", "--json", "--children", "--interval", "300ms", str(app.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
        tables = map(json.loads, run.stdout)
        next(table for table in tables if table["processes"] == 2)
        app.process.stdin.write("\n")
        app.process.stdin.flush()
        next(table for table in tables if table["processes"] == 1)
        *_, last = (next(tables) for _ in range(4))
        run.terminate()
    assert last["unseen_children"] == last["unseen_children_cpu_ns"] == 0


def test_a_command_is_run_with_its_processes_and_ended(run, any_python, tmp_path):
    (tmp_path / "app.py").write_text(BUSY)
    words = " ".join(map(str, [*any_python.prefix, any_python.exe, tmp_path / "app.py"]))
    done = run("top", "--once", "--interval", "500ms", "--", "sh", "-c", f"{words} & wait")
    assert re.match(rf"process \d+, Python {any_python.version}: sh -c .*app.py", done.stdout) and " spin " in done.stdout
    pid = int(done.stderr)  # what the program printed
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the command's processes")


@pytest.mark.parametrize("words", ["", "--exact"])
def test_it_leaves_the_program_when_nobody_reads_the_tables(programs, krait, run, any_python, words):
    app = programs.start(any_python, BUSY)
    with subprocess.Popen([krait, "top", "--interval", "100ms", *words.split(), str(app.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
        assert top.stdout.readline().startswith("process ")
        top.stdout.close()
        assert top.stderr.read() == "" and top.wait(timeout=60) == 128 + signal.SIGPIPE
    assert app.process.poll() is None
    assert "krait" not in open(f"/proc/{app.pid}/maps").read() or run("ctl", app.pid, "status", code=1).stderr


@pytest.mark.parametrize("how", ["pipe", "signal"])
def test_a_command_ends_when_krait_does(krait, any_python, tmp_path, how):
    (tmp_path / "app.py").write_text(BUSY)
    command = [krait, "top", "--interval", "100ms", "--", *any_python.prefix, any_python.exe, tmp_path / "app.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
        pid = int(top.stderr.readline())  # what the program printed
        assert top.stdout.readline().startswith("process ")
        top.stdout.close() if how == "pipe" else top.terminate()
        assert top.wait(timeout=60) == (128 + signal.SIGPIPE if how == "pipe" else 0)
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_without_a_screen_gets_tables(krait, any_python, tmp_path, term):
    (tmp_path / "app.py").write_text("for i in range(5_000_000): pass\n")
    command = [krait, "top", "--interval", "50ms", "--", *any_python.prefix, any_python.exe, tmp_path / "app.py"]
    text, code = on_terminal(command, streams=("stdin", "stdout"), env={**os.environ, "TERM": term, "NO_COLOR": "1"})
    assert code == 0 and text.startswith("process ") and "\x1b" not in text


@pytest.mark.parametrize(
    "command, code, says",
    [
        (["sh", "-c", "exit 3"], 1, "the command has ended with status 3\nkrait top: no Python that krait can read"),
        (["sh", "-c", "kill -9 $$"], 1, "the command was ended by signal 9"),
        (["no-such-command"], 1, "cannot run no-such-command: No such file or directory"),
    ],
)
def test_commands_without_python_are_told(run, command, code, says):
    assert says in run("top", "--", *command, code=code).stderr


def test_the_screen_obeys_its_keys(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid)
    screen.wait_for(r"\x1b\[\?1049h.*\x1b\[H.*own +total.* spin .*q quit  p pause  s sort \(own\)")
    screen.press("s")
    screen.wait_for(r"sort \(total\)")
    screen.press("w")
    screen.wait_for(r" cpu .* waits .*GIL only")
    screen.press("w")
    screen.wait_for(r"\x1b\[H(?!.* cpu ).* spin ")
    screen.press("i")
    screen.wait_for(r" waits .*no sleeping")
    screen.press("g")
    screen.wait_for(r"all threads")
    screen.press("p")
    screen.wait_for(r"PAUSED  q quit  p go on")
    screen.read()
    screen.press("s")
    screen.wait_for(r"PAUSED.*sort \(own_ns\)")
    screen.press("p")
    screen.wait_for(r"q quit  p pause.*\x1b\[H")
    screen.press("r")
    screen.wait_for(r"\x1b\[H.*\x1b\[H.* spin ")
    screen.press("q")
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?25h\x1b\[\?1049lprocess .* spin ", screen.text, re.S)


def test_other_keys_change_what_rows_are(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid, columns=140)
    screen.wait_for(r" spin .*l lines  t threads .* / filter")
    screen.press("t")
    screen.wait_for(r"thread  name .* spin .*t processes")
    screen.press("l")
    screen.wait_for(r" spin .*l functions")
    screen.press("/shortX\x7f")
    screen.wait_for(r"functions: short_ ")
    screen.press("\n")
    screen.wait_for(r"; only \*short\*.* short ")
    screen.press("\x1b")
    screen.wait_for(r"threads, (?:(?!; only).)* spin .*q quit")
    screen.press("i")
    screen.wait_for(r" samples?, of sleeping threads too, ")
    screen.press("i")
    screen.wait_for(r" samples?, CPU")
    screen.press("g")
    screen.wait_for(r" samples? of the GIL's holder, ")
    screen.press("g/q\x1b")
    screen.wait_for(r" samples?, CPU.* spin .*q quit")
    screen.press("?")
    screen.wait_for(r"Keys of krait top.*rows are lines, or functions")
    screen.press("q")
    screen.wait_for(r" spin ")
    screen.press("q")
    assert screen.end() == 0


@pytest.mark.parametrize("words, keys", [([], {"i": "i no sleeping.* waits ", "i ": "i sleeping too"}), (["--idle"], {"g": "g all threads"})])
def test_a_key_that_changes_what_counts_begins_anew(programs, krait, any_python, words, keys):
    """The table that stays is of all that is counted: of what counts now."""
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, *words, app.pid, rows=40, columns=160)
    screen.wait_for(r"\x1b\[H.* waits " if words else r"\x1b\[H.* spin ")
    for key, seen in keys.items():
        screen.press(key.strip())
        screen.wait_for(rf"{seen}.*\x1b\[H.* spin ")
    screen.press("q")
    assert screen.end() == 0
    last = screen.text.rpartition("\x1b[?1049l")[2]
    assert " spin " in last and " waits " not in last


@pytest.mark.parametrize("columns, told", [(60, True), (200, False)])
def test_columns_that_were_left_out_of_a_narrow_screen_are_not_told_of_a_wide_one(programs, krait, any_python, columns, told):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid, rows=20, columns=60)
    screen.wait_for(r"\x1b\[H.* spin ")
    fcntl.ioctl(screen.side, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    screen.wait_for(r"\x1b\[H.* spin .*\x1b\[H.* spin ")
    screen.press("q")
    assert screen.end() == 0
    assert ("columns left out: " in screen.text) == told


def test_keys_of_numbers_are_of_the_columns_that_are_there(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    keys = {"cpu": "on_cpu", "own time": "own_ns", "total time": "total_ns"}
    for columns, words in ((64, ()), (150, ("--kernel",))):  # some are left out for want of room, some have no numbers
        screen = Screen(krait, *words, app.pid, columns=columns)
        head = screen.wait_for(r"\n( *own +total[^\n]*function[^\n]*)\n")[1].replace("\x1b[K", "")
        titles = re.split(r"\s\s+", head.strip())
        titles = titles[: titles.index("function")]
        assert ("descendants" in titles) == bool(words) and "disk" not in titles and len(titles) >= 2
        for number in range(min(len([t for t in titles if t != "line"]), 9), 0, -1):
            screen.press(str(number))
            title = titles[number - 1]
            screen.wait_for(rf"sort \({keys.get(title, title)}( reversed)?\)")
        screen.press("q")
        screen.end()


@pytest.mark.parametrize("words", ["", "--exact"])
def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(programs, krait, any_python, words):
    app = programs.start(any_python, BUSY)
    table, own = r"\x1b\[H.* spin .*\x1b\[20;1Hq quit", r"\x1b\[\?1049h\x1b\[\?25l\x1b\[\?7l"
    with Shell(rows=20, columns=100) as shell:
        shell.press(f"{krait} top --interval 200ms {words} {app.pid}\n")
        shell.wait_for(own + ".*" + table)
        shell.press("\x1a")
        shell.wait_for(r"\x1b\[\?7h\x1b\[\?25h\x1b\[\?1049l.*Stopped.*ready: ")
        shell.press("stty -a\n")
        assert {" icanon", " echo"} <= set(re.findall(r"[ -](?:icanon|echo)\b", shell.wait_for("stty -a.*ready: ")[0]))
        shell.press("fg\n")
        shell.wait_for(own + table)
        shell.wait_for(table)  # it goes on to count
        shell.press("q")
        shell.wait_for(r"\x1b\[\?1049lprocess .* spin .*ready: ")


SIGNAL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

/* The terminal gets another size just before krait waits, which has no end but for signals and keys. */
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
    static int calls;
    int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) = dlsym(RTLD_NEXT, "ppoll");
    const struct winsize size = { .ws_row = 10, .ws_col = 70 };
    if (calls++)
        return real(fds, count, time, mask);
    ioctl(1, TIOCSWINSZ, &size);
    raise(SIGWINCH);
    return real(fds, count, 0, mask);
}
"""


def test_a_size_that_changes_before_krait_waits_is_seen(programs, krait, any_python, tmp_path, monkeypatch):
    (tmp_path / "signal.c").write_text(SIGNAL)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "signal.so", tmp_path / "signal.c", "-ldl"], check=True)
    app = programs.start(any_python, BUSY)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "signal.so"))
    screen = Screen(krait, app.pid, rows=20, columns=100)
    screen.wait_for(r"\x1b\[10;1H")
    screen.press("q")
    assert screen.end() == 0


MANY = """
import os, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
source = "def f{0:02}(): spin({1})"
for i in range(30): exec(source.format(i, 0.001 * (30 - i)))
print(os.getpid(), flush=True)
while True:
    for i in range(30): globals()[f"f{i:02}"]()
"""


@pytest.mark.few_pythons
def test_rows_are_scrolled_and_the_selected_one_stays_on_its_function(programs, krait, python):
    app = programs.start(python, MANY)
    screen = Screen(krait, "--exact", "--max-overhead", "100", "--filter", "re:^f..$", "--sort", "function", app.pid, rows=14)
    screen.wait_for(r" f00 .* f05 .*sort \(function\)")
    screen.press("\x1b[B\x1b[B")
    screen.wait_for(r"\x1b\[7m[^\x1b]* f01 +\d.*row 2 of 30")
    screen.press("\x1b[6~")
    page = int(screen.wait_for(r"\x1b\[7m[^\x1b]* f(\d\d) .*row \d+ of 30")[1]) - 1
    assert 3 <= page <= 10
    screen.press("\x1b[A")
    screen.wait_for(rf"\x1b\[7m[^\x1b]* f{page:02} .*row {page + 1} of 30")
    screen.press("\x1b[F")
    screen.wait_for(r"(?<!f00)(?!.* f00 ).* f28 .*\x1b\[7m[^\x1b]* f29 .*row 30 of 30")
    screen.press("I")  # it is the first row now
    screen.wait_for(r"\x1b\[H[^\x1b]*(?:\x1b\[K[^\x1b]*)*\x1b\[7m[^\x1b]* f29 .* f28 .*row 1 of 30.*sort \(function reversed\)")
    screen.press("3")  # the third column
    screen.wait_for(r"own +total +descendants .*sort \(descendants\)")
    screen.press("1")
    screen.wait_for(r"\x1b\[7m[^\x1b]* f29 .*row \d+ of 30.*sort \(own\)")
    screen.press("1")
    screen.wait_for(r"\x1b\[7m[^\x1b]* f29 .*sort \(own reversed\)")
    screen.press("x")  # the same function with samples, of which it may have none
    screen.press("x")
    screen.wait_for(r"exact: .*\x1b\[7m[^\x1b]* f\d\d ")
    screen.press("\x1bOH")
    screen.wait_for(r"\x1b\[7m[^\x1b]* f\d\d .*row 1 of \d+")
    screen.press("\x1b")
    screen.wait_for(r"\x1b\[H(?!(?:(?!\x1b\[H).)*\x1b\[7m)(?:(?!\x1b\[H).)* f\d\d (?:(?!row)(?!\x1b\[H).)*q quit")
    screen.press("q")
    assert screen.end() == 0


def test_keys_of_more_than_one_byte_may_come_in_parts_and_unknown_ones_do_nothing(programs, krait, any_python):
    app = programs.start(any_python, MANY)
    screen = Screen(krait, "--exact", "--max-overhead", "100", "--filter", "re:^f..$", "--sort", "function", app.pid, rows=14, columns=200)
    screen.wait_for(r" f00 .* f05 ")
    for part in ("\x1b[", "6", "~"):
        screen.press(part)
        screen.read()
    down = int(screen.wait_for(r"\x1b\[7m[^\x1b]* f(\d\d) .*row \d+ of 30")[1])
    # Shift-F5, a mouse, an answer about colours, Alt-q, Delete, F12 of xterm and F5 of Linux; Ctrl-Up is Up
    screen.press("\x1b[15;2~\x1b[<0;3;4M\x1b[?1;2c\x1bq\x1b[3~\x1b[24~\x1b[[E\x1b[1;5A")
    screen.wait_for(rf"\x1b\[7m[^\x1b]* f{down - 1:02} .*row {down} of 30")
    screen.press("/")
    screen.wait_for("functions: _")
    screen.press("re:^f1\x1b[A.$\x1b[5~")
    screen.wait_for(r"functions: re:\^f1\.\$_")
    screen.press("\n")
    screen.wait_for(r"; only(?:\x1b\[K|\s)+re:.* f1\d .*of 10")
    screen.press("\x1bOP")
    screen.wait_for(r"Keys of krait top.*PgUp PgDn.*reverse the order")
    screen.press("\x1b[21~")
    screen.wait_for(r" f1\d ")
    screen.press("\x1b[21~")
    assert screen.end() == 0


def test_a_filter_that_is_typed_is_a_part_of_the_name_unless_it_is_a_pattern(programs, krait, any_python):
    app = programs.start(any_python, MANY)
    screen = Screen(krait, "--exact", "--max-overhead", "100", app.pid, rows=40, columns=200)
    screen.wait_for(r" f00 ")
    screen.press("/f1\n")
    screen.wait_for(r"; only(?:\x1b\[K|\s)+\*f1\*.* f1\d ")
    screen.press("/f2?\n")
    screen.wait_for(r"; only(?:\x1b\[K|\s)+f2\?.* f2\d ")
    screen.press("q")
    assert screen.end() == 0


def test_the_screen_follows_the_terminals_size_at_once(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, "--interval", "1h", app.pid, rows=8, columns=60)
    fcntl.ioctl(screen.side, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 60, 0, 0))
    screen.press("?")
    screen.wait_for(r"Keys of krait top")
    fcntl.ioctl(screen.side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    os.kill(screen.run.pid, signal.SIGWINCH)  # as the kernel does for the processes of a terminal of their own
    screen.wait_for(r"Keys of krait top.*these keys.*\x1b\[30;1H")
    screen.press("qq")
    assert screen.end() == 0


def test_keys_and_reasons_fit_a_narrow_terminal(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid, rows=40, columns=50)
    screen.wait_for(r" spin ")
    screen.press("?")
    frame = screen.wait_for(r"\x1b\[H(Keys of krait top(?:(?!\x1b\[H).)*these keys(?:(?!\x1b\[H).)*)\x1b\[J")[1]
    lines = frame.replace("\x1b[K", "").splitlines()
    assert max(map(len, lines)) <= 50 and " ".join(frame.replace("\x1b[K", "").split()).count("show functions by name or file; Esc shows all") == 1
    screen.press("q")
    with subprocess.Popen([krait, "top", "--exact", "--interval", "100ms", str(app.pid)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline()
        screen.press("x")  # it is recorded already
        note = screen.wait_for(r"\x1b\[J\x1b\[3\d;1H([^\x1b]*(?:\x1b\[K)?\r+\n(?:(?!\x1b\[H).)*)")[1].replace("\x1b[K", "")
        assert max(map(len, note.splitlines())) <= 50 and "watched already by krait top" in " ".join(note.split())
        other.terminate()
        other.stdout.read()
    screen.press("q")
    assert screen.end() == 0


def test_all_keys_fit_a_terminal_of_60_columns(programs, krait, any_python):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid, rows=24, columns=60)
    screen.wait_for(r" spin ")
    screen.press("?")
    lines = screen.frame("q quit")
    assert lines[-1].split() == ["?", "these", "keys"] and all(len(line) <= 60 for line in lines)
    screen.press("qq")
    assert screen.end() == 0


def test_a_commands_output_follows_when_krait_ends(krait, any_python, tmp_path):
    (tmp_path / "app.py").write_text(BUSY)
    screen = Screen(krait, "--", *any_python.prefix, any_python.exe, tmp_path / "app.py")
    screen.wait_for(r"\x1b\[H.* spin ")
    screen.press("q")
    assert screen.end() == 0
    pid = int(re.search(r"\x1b\[\?1049lprocess (\d+), .* spin .*\n(\d+)\r?\n$", screen.text, re.S)[2])
    assert not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("words", ["", "--exact --max-overhead 100", "--by thread", "--classic"])
def test_each_frame_fits_a_terminal_that_is_resized(programs, krait, any_python, words):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, *words.split(), app.pid, rows=8, columns=60)
    for rows, columns in ((8, 60), (24, 200)):
        fcntl.ioctl(screen.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        screen.wait_for(r"\x1b\[H")
        frame = screen.wait_for(rf"\x1b\[H((?:(?!\x1b\[H).)*(?:\n[^\n]*\d%[^\n]*){{2}}\n)\x1b\[J\x1b\[{rows};1H")[1]
        lines = frame.replace("\x1b[K", "").replace("\r", "").splitlines()
        assert len(lines) < rows and max(map(len, lines)) <= columns
        assert len(lines) == 7 or rows > 8, "as many rows as there is room for"
        assert len(lines[lines.index("") :]) >= 4, "an empty line, the table's head, two rows"
        assert words == "--classic" or ("descendants" in lines[lines.index("") + 1]) == (columns == 200), "it is left out first"
    screen.press("q")
    screen.end()


@pytest.mark.parametrize("how", ["program", "krait"])
def test_the_last_table_stays_when_the_program_or_krait_is_ended(programs, krait, any_python, how):
    app = programs.start(any_python, BUSY)
    screen = Screen(krait, app.pid)
    screen.wait_for(r"\x1b\[H.* spin ")
    os.kill(app.pid if how == "program" else screen.run.pid, signal.SIGKILL if how == "program" else signal.SIGTERM)
    app.process.wait() if how == "program" else None
    assert screen.end() == 0
    assert re.search(r"\x1b\[\?1049lprocess .* spin ", screen.text, re.S)
    assert ("has ended" in screen.text) == (how == "program")


@pytest.mark.long
def test_the_commands_of_the_page_work(krait, any_python, tmp_path):
    shown = run_page("top.md", krait, any_python, tmp_path).values()
    once, waits, stacks, exact, bars, clock, batch, as_json, holders, classic, lines, calls, processes = shown
    assert re.search(r"^ *\d+\.\d%.* parse +10 ", once.stdout, re.M) and batch.stdout.count("process ") == 2
    assert json.loads(as_json.stdout)["rate"] == 1000 and " spin " in holders.stdout
    assert re.search(r", exact: .*calls/s.* parse +10 ", exact.stdout, re.S) and json.loads(calls.stdout.splitlines()[-1])["exact"]
    assert re.search(r"^work[━=]", stacks.stdout, re.M) and re.search(r"^spin( \[\+dropped\])? +\d+  [▏▎▍▌▋▊▉█=]", bars.stdout, re.M)
    assert "\na turn is 500.0 ms;" in clock.stdout or "the clock needs braille characters" in clock.stdout
    assert "descendants" in classic.stdout
    assert re.search(r" cpu .* lock .*net .* receive +9 ", waits.stdout, re.S)
    assert re.search(r"^ *\d+ .* parse +11 ", lines.stdout, re.M) and re.search(r"^2 processes of ", processes.stdout)
