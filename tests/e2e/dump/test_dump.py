# SPDX-License-Identifier: Apache-2.0
"""krait dump: the stacks of a running program, against what the program itself knows of them."""

import json
import os
import re
import signal
import subprocess

import pytest

from dumped import dumps  # noqa: F401  (a fixture)
from pages import run_page
from pairs import LOOPS, PAIRS, never_was
from running import wait_for
from terminal import on_terminal


def names(thread):
    return [frame["function"].rpartition(".")[2] for frame in thread["frames"]]


# Threads that wait at places of every kind; then the program prints where they are, by its own means.
PLACES = """
import json, os, sys, threading, time, traceback

forever = threading.Event()

class Thing:
    def __enter__(self):
        return self
    def __exit__(self, *a):
        forever.wait()
    @property
    def attribute(self):
        forever.wait()
    def method(self):
        return [
            1,
            2,
            self.attribute,
        ]
    def __add__(self, other):
        return self.method()

def with_block():
    with Thing():
        pass

def operator():
    x = (
        Thing()
        + 1
    )
    return x

def generator():
    yield 1
    yield forever.wait()

def through_generator():
    def outer():
        yield from generator()
    return sum(x for x in outer())

def through_c():
    return max([3, 1],
               key=lambda x: forever.wait())

def comprehension():
    return [
        forever.wait()
        for _ in range(3)
    ]

def handler():
    try:
        1 / 0
    except ZeroDivisionError:
        raise_again()
    finally:
        pass

def raise_again():
    try:
        raise ValueError
    except ValueError: forever.wait()

def recursive(n):
    if n:
        return recursive(n - 1)
    forever.wait()

def deep():
    recursive(500)

def \u00fcn\u00efc\u00f6de\u4e2d():
    forever.wait()

FAR

places = [with_block, operator, through_generator, through_c, comprehension, handler, deep, \u00fcn\u00efc\u00f6de\u4e2d, far]
threads = [threading.Thread(target=f, daemon=True) for f in places]
for t in threads: t.start()

def stacks():
    return {str(i): [(s.name, s.filename, s.lineno) for s in reversed(traceback.extract_stack(f))]
            for i, f in sys._current_frames().items() if i != threading.get_ident()}

def settled():
    return all(s[0][0] == 'wait' and s[0][1].endswith('threading.py') for s in stacks().values())

before = None
while not (settled() and before == stacks()):
    before = stacks()
    time.sleep(0.2)
print(os.getpid(), json.dumps(stacks()), flush=True)
forever.wait()
"""
FAR = "def far():\n    x = 0\n" + "    x += 1\n" * 3 + "\n" * 400 + "    forever.wait()\n" + "\n" * 300 + "    return x\n"


@pytest.mark.every_python
def test_every_frame_has_the_function_file_and_line_that_the_program_itself_knows(programs, dumps, python):  # noqa: F811
    app = programs.start(python, PLACES.replace("FAR", FAR))
    expected = {int(i): [tuple(f) for f in stack] for i, stack in json.loads(app.ready).items()}
    wait_for(lambda: all(t["system_call"] for t in dumps(app.pid)[0]["threads"]), "sleep")
    (dump,) = dumps(app.pid)
    assert python.version.startswith(dump["python"]) and dump["pid"] == app.pid
    found = {t["ident"]: [(name, f["file"], f["line"]) for name, f in zip(names(t), t["frames"])] for t in dump["threads"]}
    assert len(expected) == 9 and {i: found[i] for i in expected} == expected
    (main,) = [t for t in dump["threads"] if t["ident"] not in expected]
    assert main is dump["threads"][0] and main["tid"] == app.pid and names(main)[-1] == "<module>"
    assert {t["system_call"] for t in dump["threads"]} == {"futex"} and not any(t["holds_gil"] for t in dump["threads"])
    assert len({t["tid"] for t in dump["threads"]}) == 10 == len(os.listdir(f"/proc/{app.pid}/task"))
    if python.number >= (3, 11):
        assert {"Thing.__exit__", "Thing.method", "through_c.<locals>.<lambda>"} <= {
            f["function"] for t in dump["threads"] for f in t["frames"]
        }


# -- stacks that never were --

def test_no_dump_shows_a_stack_that_never_was(programs, dumps, python, rounds):  # noqa: F811
    """Calls that last some 50 ns, in turns: a() of b(), c() of d(); never is d() below a()."""
    all_seen, times = set(), rounds(250, 500)
    for loop in LOOPS:
        app = programs.start(python, PAIRS, loop)
        seen = dumps(app.pid, "--repeat", times)
        app.end()
        threads = [t for d in seen for t in d["threads"]]
        assert len(seen) == times == len(threads) and all(t["proved"] for t in threads)
        stacks = [names(t) for t in threads]
        assert not [s for s in stacks if never_was(s)]
        all_seen |= {f for s in stacks for f in s}
    assert {"a", "c", "ga", "gc", "ma", "mc", "fa", "fc", "b", "d"} <= all_seen


@pytest.mark.few_pythons
def test_one_thread_holds_the_gil_and_the_others_wait_for_it(programs, dumps, python):  # noqa: F811
    app = programs.start(
        python,
        """
        import os, threading
        def spin():
            while True: pass
        for _ in range(2): threading.Thread(target=spin, daemon=True).start()
        print(os.getpid(), flush=True)
        spin()
        """,
    )
    seen = dumps(app.pid, "--repeat", 100, "--every", "3ms")
    assert all(sum(t["holds_gil"] for t in d["threads"]) <= 1 for d in seen)
    assert sum(any(t["holds_gil"] for t in d["threads"]) for d in seen) > 50
    states = [sorted(t["state"] for t in d["threads"]) for d in seen]
    assert states.count(["running", "waiting for GIL", "waiting for GIL"]) > 20


@pytest.mark.few_pythons
def test_a_running_program_is_neither_stopped_nor_changed(programs, dumps, python):  # noqa: F811
    app = programs.start(
        python,
        """
        import os, sys
        print(os.getpid(), flush=True)
        for line in sys.stdin:
            print(len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(open("/proc/self/maps").readlines()), flush=True)
        """,
        stdin=subprocess.PIPE,
    )

    def state():
        app.process.stdin.write("?\n")
        app.process.stdin.flush()
        return app.process.stdout.readline()

    def switches():
        return re.findall(r"^(State:.*sleeping|\w*voluntary.*)", open(f"/proc/{app.pid}/status").read(), re.M)

    state()
    before = state()
    asleep = wait_for(lambda: len(one := switches()) == 3 and one, "sleep")
    dumps(app.pid, "--repeat", 200)
    assert switches() == asleep
    assert state() == before
    app.process.stdin.close()


def test_a_thread_between_functions_has_no_frames(programs, dumps, any_python):  # noqa: F811
    app = programs.start(
        any_python,
        """
        import _thread, os, threading
        lock = threading.Lock()
        lock.acquire()
        _thread.start_new_thread(lock.acquire, ())
        print(os.getpid(), flush=True)
        threading.Event().wait()
        """,
    )
    two = wait_for(lambda: [d for d in dumps(app.pid) if len(d["threads"]) == 2], "the second thread")[0]
    assert [t["frames"] for t in two["threads"]][1] == [] and two["threads"][1]["read"]


@pytest.mark.few_pythons
def test_a_stack_that_cannot_be_proved_says_so(programs, run, python):
    """A program of a real-time priority runs before krait: krait cannot read it while it waits for its CPU."""
    source = """
    import os
    print(os.getpid(), flush=True)
    while True: pass
    """
    app = programs.start(python, source)
    try:
        os.sched_setaffinity(app.pid, {max(os.sched_getaffinity(0))})
        os.sched_setscheduler(app.pid, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pytest.skip("no right to give a real-time priority")
    text = run("dump", app.pid)
    data = run("dump", "--json", app.pid)
    app.end()
    assert "not proved: krait could not keep it from running meanwhile\n    <module>" in text.stdout
    (thread,) = json.loads(data.stdout)["threads"]
    assert thread["read"] and not thread["proved"] and names(thread) == ["<module>"]


# -- processes --


def test_the_programs_that_a_process_started_are_dumped_with_it(programs, dumps, any_python, run):  # noqa: F811
    app = programs.start(
        any_python,
        """
        import os, subprocess, sys, time
        def child():
            subprocess.Popen(["sleep", "60"])
            print(os.getppid(), flush=True)
            time.sleep(60)
        if sys.argv[1:]: child()
        subprocess.Popen([sys.executable, __file__, "child"])
        time.sleep(60)
        """,
    )
    parent, child = dumps("--children", app.pid)
    assert parent["pid"] == app.pid and "child" in names(child["threads"][0]) and "child" in child["command"]
    assert [d["pid"] for d in dumps(child["pid"], app.pid)] == [child["pid"], app.pid]
    text = run("dump", child["pid"], app.pid).stdout
    assert [int(pid) for pid in re.findall(r"^Process (\d+): ", text, re.M)] == [child["pid"], app.pid]
    subprocess.run(["kill", *open(f"/proc/{child['pid']}/task/{child['pid']}/children").read().split(), str(child["pid"])], check=True)


def test_a_program_in_a_pid_namespace_of_its_own_is_read(programs, dumps, any_python):  # noqa: F811
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no right to make a PID namespace")
    source = "import os, time\ndef nap(): time.sleep(60)\nprint(os.getpid(), flush=True)\nnap()\n"
    app = programs.start(any_python, source, before=unshare)
    assert app.pid == 1
    wait_for(lambda: names(dumps("--children", app.process.pid)[0]["threads"][0]) == ["nap", "<module>"], "sleep")
    (dump,) = dumps("--children", app.process.pid)
    (thread,) = dump["threads"]
    assert thread["tid"] == dump["pid"] != 1


def test_a_stopped_program_is_dumped(programs, dumps, any_python):  # noqa: F811
    app = programs.start(any_python, "import os\nprint(os.getpid(), flush=True)\nwhile True: pass\n")
    os.kill(app.pid, signal.SIGSTOP)
    wait_for(lambda: "T (stopped)" in open(f"/proc/{app.pid}/status").read(), "the stop")
    (dump,) = dumps(app.pid)
    assert dump["threads"][0]["state"] == "stopped" and names(dump["threads"][0]) == ["<module>"]


def test_a_program_whose_file_was_deleted_is_dumped(programs, dumps, any_python, tmp_path, venv):  # noqa: F811
    if os.geteuid():
        pytest.skip("only root may open a file that was deleted")
    copy = tmp_path / "python3"
    copy.write_bytes(open(os.path.realpath(any_python.exe), "rb").read())
    copy.chmod(0o755)
    home = any_python.run("-c", "import sys; print(sys.base_prefix)").stdout.strip()
    script = tmp_path / "app.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    app = programs.add([copy, script], env={**os.environ, "PYTHONHOME": home})
    copy.unlink()
    assert names(dumps(app.pid)[0]["threads"][0]) == ["<module>"]


CHURN = """
import os, threading, time
def leaf(): sum(range(300))
def work():
    for _ in range(3): leaf()
def spawn():
    while True:
        threads = [threading.Thread(target=work) for _ in range(5)]
        for t in threads: t.start()
        for t in threads: t.join()
print(os.getpid(), flush=True)
spawn()
"""


def test_threads_that_begin_and_end_all_the_time_are_each_themselves(programs, dumps, python):  # noqa: F811
    """Not one that has ended, one that has not begun, one twice, or the main thread missing."""
    app = programs.start(python, CHURN)
    for dump in dumps(app.pid, "--repeat", 300):
        main, *others = dump["threads"]
        tids = [t["tid"] for t in dump["threads"]]
        assert main["tid"] == app.pid and None not in tids and len(set(tids)) == len(tids)
        assert not main["read"] or names(main)[-1] == "<module>"
        assert all(names(t)[-1] == "_bootstrap" for t in others if t["frames"])


def test_the_child_of_a_fork_is_dumped(programs, dumps, python):  # noqa: F811
    app = programs.start(
        python,
        """
        import os, threading, time
        def nap(): time.sleep(60)
        threading.Thread(target=nap, daemon=True).start()
        pid = os.fork()
        if not pid: nap()
        print(pid, flush=True)
        nap()
        """,
    )
    wait_for(lambda: names(dumps(app.pid)[0]["threads"][0]) == ["nap", "<module>"], "sleep")
    assert [t["tid"] for t in dumps(app.pid)[0]["threads"]] == [app.pid]
    os.kill(app.pid, signal.SIGKILL)


# -- text --

TEXT = """
import os, threading, time
def rec(n):
    if n:
        rec(n - 1)
    time.sleep(60)
class AVeryLongNameOfAClass:
    def with_a_method_of_a_very_long_name_too(self):
        exec(compile("import time; time.sleep(60)", "/a/path/with\\x1b[31m/many/parts/in/it/which/is/so/long/that/no/terminal/shows/it.py", "exec"))
for f in (lambda: rec(20), AVeryLongNameOfAClass().with_a_method_of_a_very_long_name_too):
    threading.Thread(target=f, daemon=True).start()
time.sleep(0.1)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def text_of_sleepers(run, app):
    """When all three threads of TEXT sleep."""
    asleep = "Thread._bootstrap_inner"
    return wait_for(lambda: (t := run("dump", app.pid).stdout).count("sleeps in clock_nanosleep") == 3 and asleep in t and t, "sleep")


def test_the_text_is_what_people_read(programs, run, any_python):
    app = programs.start(any_python, TEXT)
    text = text_of_sleepers(run, app)
    text = re.sub(r"\b\d{3,7}\b", "N", text.replace(str(programs.folder), "/tmp"))
    text = re.sub(r"\S+/threading.py:N", "/lib/threading.py:N", text).replace(any_python.exe.rpartition("/")[2], "python3")
    text = text.replace(any_python.version, "3.N.N")
    assert text.splitlines()[:16] == [
        "Process N: python3 /tmp/app1.py",
        "Python 3.N.N, 3 threads",
        "",
        "Thread N (main)  sleeps in clock_nanosleep",
        "    time.sleep (C)",
        "    <module>  /tmp/app1.py:14",
        "",
        "Thread N  sleeps in clock_nanosleep",
        "    time.sleep (C)",
        "    rec                      /tmp/app1.py:6",
        "    rec                      /tmp/app1.py:5  (20 times)",
        "    <lambda>                 /tmp/app1.py:10",
        "    Thread.run               /lib/threading.py:N",
        "    Thread._bootstrap_inner  /lib/threading.py:N",
        "    Thread._bootstrap        /lib/threading.py:N",
        "",
    ]
    assert r"/a/path/with\x1b[31m/many" in text and "\x1b" not in text


CALLS = """
import os, select, threading, time
def sleeps(): time.sleep(600)
def nested(): return [1, len([2, time.sleep(600), 3])]
def by_star(args=(600,)): time.sleep(*args)
def by_another_name():
    wait = time.sleep
    wait(600)
def takes(): return lock.acquire(True, 600)
def by_keyword(): lock.acquire(timeout=600)
def polls(): select.select([], [], [], 600)
def in_except():
    try: raise ValueError
    except ValueError: time.sleep(600)
def comprehends(): return [time.sleep(n) for n in (600,)]
def reads(): os.read(os.pipe()[0], 1)
lock = threading.Lock()
lock.acquire()
for f in (sleeps, nested, by_star, by_another_name, takes, by_keyword, polls, in_except, comprehends, reads):
    threading.Thread(target=f, daemon=True).start()
print(os.getpid(), flush=True)
sleeps()
"""


@pytest.mark.few_pythons
@pytest.mark.every_python
def test_the_c_functions_that_threads_have_called(programs, dumps, run, python):  # noqa: F811
    app = programs.start(python, CALLS)
    thread_of = {"sleeps": "time.sleep", "takes": "_thread.lock.acquire", "polls": "select.select", "reads": "posix.read", "by_keyword": "_thread.lock.acquire"}

    def called():
        """Once all sleep: by the name of the function that has called it."""
        threads = dumps(app.pid)[0]["threads"]
        found = {t["frames"][0]["function"]: t["c_function"] for t in threads if t["state"] == "sleeping"}
        return found if len(threads) == 11 and len(found) == 10 and all(found.values()) else None

    found = {name: f"{f['module']}.{f['function']}" for name, f in wait_for(called, "the calls").items()}
    assert found == {name: thread_of.get(name, "time.sleep") for name in found}
    text = run("dump", app.pid).stdout
    assert re.search(r"^    posix.read \(C\)\n    reads +/", text, re.M) and text.count("    time.sleep (C)\n") == 7
    assert all(t["c_function"] is None for t in dumps("--native", app.pid)[0]["threads"])


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_longer_than_the_terminal(programs, krait, run, any_python, columns):
    app = programs.start(any_python, TEXT)
    text_of_sleepers(run, app)
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    text, status = on_terminal([krait, "dump", app.pid], columns, env={k: v for k, v in env.items() if k != "NO_COLOR"})
    assert status == 0 and "\x1b[1mThread" in text
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(map(len, lines)) <= columns and any("…" in line for line in lines) and "\x1b[31m/" not in text


@pytest.mark.long
def test_the_commands_of_the_page_work(krait, any_python, tmp_path):
    first, repeated, children, as_json, local, native = run_page("dump.md", krait, any_python, tmp_path).values()
    assert re.search(r"^    load +\S*hangs.py:13\n", native.stdout, re.M) and "libc.so" in native.stdout
    assert re.search(r"^Thread \d+ \(main\)  sleeps in futex\n    waits for the Lock at 0x\w+, which thread \d+ holds\n    load +\S*hangs.py:13$", first.stdout, re.M)
    assert repeated.stdout.count(" refresh ") == 3 and children.stdout.count(" refresh ") == 2
    assert json.loads(as_json.stdout)["threads"][1]["frames"][0]["function"] == "refresh"
    assert "        self = <Thread object at 0x" in local.stdout
