# SPDX-License-Identifier: Apache-2.0
"""krait record --pid: exact recordings of programs that run already."""

import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from attached import CHILD, attach, functions, has, refuse_writes  # noqa: F401  (attach, refuse_writes: fixtures)
from attached_programs import DEEP, HOLDS, JOIN, SPIN, WAITS
from conftest import BUILD
from pages import run_page
from recording import Recording
from running import wait_for

PROGRAMS = {"spin": SPIN, "join": JOIN, "waits": WAITS, "deep": DEEP}


@pytest.fixture
def run_krait_record(krait):
    return lambda *words: subprocess.run([krait, "record", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def ended(app, tmp_path):
    """What the program says when it is told to end."""
    (tmp_path / "stop").touch()
    said = app.process.stdout.read()
    assert app.process.wait(30) == 0
    return said


def has_events(folder):
    return any(stream.stat().st_size for stream in folder.glob("*/thread*"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_running_program_is_recorded_again_and_again_and_left_as_it_was(programs, attach, run, python, tmp_path, rounds, name):
    app = programs.start(python, PROGRAMS[name])
    before = has(app.pid)
    for _ in range(rounds(2, 3)):
        krait, folder = attach(app.pid, "--for", "200ms")
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0, said
        assert "was paused for" in said and "detach" not in said, said
        assert functions(run, folder)["inner"]["calls"] > 100
        assert not json.loads(run("info", "--json", folder).stdout).get("problems")
        wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


def test_a_program_asleep_in_epoll_wait_is_at_a_safe_place(programs, attach, any_python, tmp_path):
    """The kernel does not repeat that call: it returns EINTR when krait stops the thread."""
    os.mkfifo(tmp_path / "wake")
    app = programs.start(any_python, """
        import os, select
        poll = select.epoll()
        poll.register(os.open("wake", os.O_RDWR), select.EPOLLIN)
        print(os.getpid(), flush=True)
        print("done", len(poll.poll()) == 1, flush=True)
    """)
    calls = ("232", "281")  # epoll_wait and epoll_pwait on x86-64, to which alone krait attaches
    wait_for(lambda: open(f"/proc/{app.pid}/syscall").read().startswith(calls), "the sleep in epoll_wait")
    krait, _ = attach(app.pid, "--for", "20ms", "-v")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    first = next(line for line in said.splitlines() if "was stopped for" in line and "while krait wrote" not in line)
    assert first.endswith("starts a thread that calls krait_agent_attach"), said
    (tmp_path / "wake").write_text("x")
    assert app.process.stdout.read() == "done True\n" and app.process.wait(30) == 0


@pytest.mark.few_pythons
@pytest.mark.parametrize("name", ["join", "waits"])
def test_a_kernel_that_lets_only_tracers_write_into_code(programs, attach, run, python, tmp_path, refuse_writes, name):
    app = programs.start(python, PROGRAMS[name])
    before = has(app.pid)
    refuse_writes()
    for _ in range(2):
        krait, folder = attach(app.pid, "--for", "100ms", "-v")
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0, said
        assert re.search(r"thread \d+ was stopped for [0-9.]+ .s, while krait wrote \d+ bytes\n", said), said
        assert functions(run, folder)["inner"]["calls"] > 100
        Recording(folder).check(ended=False)
        wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


@pytest.mark.every_python
def test_ctrl_c_ends_the_recording_and_not_the_program(programs, attach, run, python, tmp_path):
    app = programs.start(python, SPIN)
    krait, folder = attach(app.pid, "--include", "__main__")
    wait_for(lambda: has_events(folder), "events")
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    assert "inner" in functions(run, folder)
    assert ended(app, tmp_path) == "done True\n"


def test_the_end_of_the_program_ends_the_recording(programs, attach, run, python, tmp_path):
    app = programs.start(python, SPIN)
    krait, folder = attach(app.pid)
    wait_for(lambda: has_events(folder), "events")
    assert ended(app, tmp_path) == "done True\n"
    assert krait.wait(60) == 0
    assert "inner" in functions(run, folder)


def test_krait_may_be_killed_at_any_instant(programs, attach, run, python, tmp_path):
    app = programs.start(python, JOIN)
    for _ in range(10):
        krait, _ = attach(app.pid)
        time.sleep(random.uniform(0, 0.1))
        krait.kill()
        krait.communicate()
    assert ended(app, tmp_path) == "done True\n"


def test_what_cannot_be_attached_is_refused_with_the_reason(attach, python, krait, tmp_path):
    other = subprocess.Popen(["sleep", "60"])
    for pid, reason in ((other.pid, "Python"), (999999999, "no process"), ("x", "is no PID")):
        refused, folder = attach(pid)
        said = refused.communicate(timeout=60)[1]
        assert refused.returncode and reason in said and not folder.exists()
    assert other.poll() is None
    other.kill()
    other.wait()


def hold_gil(folder, seconds):
    (folder / "new").write_text(str(seconds))
    (folder / "new").rename(folder / "hold")
    wait_for(lambda: (folder / "holding").exists(), "the call that holds the GIL")


@pytest.mark.few_pythons
def test_a_gil_that_c_code_holds_does_not_hold_krait(programs, attach, run, python, tmp_path):
    """The hooks and the memory go when it is over; krait tells so, and does not wait for that."""
    app = programs.start(python, HOLDS)
    before = has(app.pid)
    krait, folder = attach(app.pid)
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    hold_gil(tmp_path, 5)
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and f"C code holds the GIL of process {app.pid}: krait's hooks" in said, said
    assert (tmp_path / "holding").exists()
    assert functions(run, folder)["inner"]["calls"] > 100
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


@pytest.mark.few_pythons
@pytest.mark.long
def test_a_gil_that_c_code_holds_for_long_keeps_krait_out(programs, attach, run, python, tmp_path):
    app = programs.start(python, HOLDS)
    before = has(app.pid)
    hold_gil(tmp_path, 15)
    krait, folder = attach(app.pid)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 1 and "because C code holds the GIL; krait dump" in said, said
    assert (tmp_path / "holding").exists() and not folder.exists()
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


# In place of the first package that Python imports, before it is initialized: waits until it is told to go on.
STARTS_SLOWLY = """
import posix, sys, time
folder = {folder!r}
def is_there(name):
    try:
        return bool(posix.stat(folder + "/" + name))
    except OSError:
        return False
posix.write(1, b"%d\\n" % posix.getpid())
while not is_there("go"):
    time.sleep(0.01)
sys.path.remove(folder + "/slow")
del sys.modules["encodings"]
import encodings
"""


@pytest.fixture
def starting(programs, python, tmp_path):
    """A process whose Python is not initialized before the file `go` is there."""
    package = tmp_path / "slow" / "encodings"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STARTS_SLOWLY.format(folder=str(tmp_path)))
    return programs.start(python, SPIN, env={**os.environ, "PYTHONPATH": str(package.parent)})


def has_agent(pid):
    return "_agent.abi3" in open(f"/proc/{pid}/maps").read()


def test_a_python_that_is_starting_is_recorded_once_it_is_there(starting, attach, run, tmp_path):
    krait, folder = attach(starting.pid)
    wait_for(lambda: has_agent(starting.pid), "krait's agent in the process")
    (tmp_path / "go").touch()
    wait_for(lambda: any(b"\0inner\0" in path.read_bytes() for path in folder.glob("*/definitions")), "a call of the program's")
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    assert "inner" in functions(run, folder)
    assert ended(starting, tmp_path).endswith("done True\n")


@pytest.mark.few_pythons
@pytest.mark.long
def test_a_python_that_starts_for_long_is_refused_with_the_reason(starting, attach, tmp_path):
    krait, folder = attach(starting.pid)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 125 and "cannot be recorded: its Python is still starting after 7 s" in said, said
    (tmp_path / "go").touch()
    assert ended(starting, tmp_path).endswith("done True\n")


# Two threads, each in one C call until it is told, of a program that does not import threading.
IN_C = """
import _thread, os, sys, time
def main_waits(): return os.read(0, 1)
def other_waits(): return lock.acquire()
def after(): pass
def other():
    other_waits()
    ended.append(other.__name__)
ended, lock, before = [], _thread.allocate_lock(), set(sys.modules)  # site may import threading
lock.acquire()
_thread.start_new_thread(other, ())
while not any(f.f_code is other_waits.__code__ for f in sys._current_frames().values()): time.sleep(0.01)
print(os.getpid(), flush=True)
main_waits()
lock.release()
after()
while not ended: time.sleep(0.01)
print("done", ended, set(sys.modules) - before, flush=True)
"""


@pytest.fixture
def in_c(programs, python):
    """A process of IN_C, whose input ends its waits."""
    return programs.start(python, IN_C, stdin=subprocess.PIPE)


def told_to_end(app):
    said = app.process.communicate("x", timeout=30)[0]
    assert app.process.returncode == 0
    return said


def test_threads_that_stay_in_one_c_call_are_in_each_recording(in_c, attach, run):
    """No event of theirs comes while the recording runs: their stacks are written when it begins."""
    for _ in range(2):
        krait, folder = attach(in_c.pid, "--for", "300ms")
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0, said
        found = functions(run, folder)
        assert not json.loads(run("info", "--json", folder).stdout).get("problems")
        for name in "main_waits", "other_waits", "other":
            assert found[name]["calls"] == 0 and found[name]["total_ns"] > 0, (name, found[name])
    assert told_to_end(in_c) == "done ['other'] set()\n"


def test_a_thread_that_returns_from_its_c_call_goes_on_in_the_stack_that_was_written_for_it(in_c, attach, run):
    krait, folder = attach(in_c.pid)
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    assert told_to_end(in_c) == "done ['other'] set()\n"
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    found = functions(run, folder)
    assert found["after"]["calls"] == 1 and [found[name]["calls"] for name in ("main_waits", "other_waits", "other")] == [0, 0, 0]
    process = Recording(folder).check(ended=False).main
    frames = [(t.tid, process.codes[e.code].qualname) for t in process.threads for e in t.events if e.name == "python:frame"]
    assert len({tid for tid, _ in frames}) == 2
    assert [sum(name == one for _, one in frames) for name in ("main_waits", "other_waits", "other")] == [1, 1, 1], frames


# Begins threads once it is told to: by threading, by _thread, and from C.
BEGINS_THREADS = """
import _thread, ctypes, os, sys, threading
def by_threading(): done.release()
def by_thread(): done.release()
def by_c(none):
    done.release()
    return 0
done = threading.Semaphore(0)
print(os.getpid(), flush=True)
sys.stdin.readline()
threading.Thread(target=by_threading).start()
_thread.start_new_thread(by_thread, ())
libc = ctypes.CDLL(None)
start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(by_c)
thread = ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, start, None)
libc.pthread_join(thread, None)
for _ in range(3): done.acquire()
print("done", True, flush=True)
"""


def test_threads_that_begin_in_the_recording_are_recorded(programs, attach, run, python):
    app = programs.start(python, BEGINS_THREADS, stdin=subprocess.PIPE)
    krait, folder = attach(app.pid)
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    assert app.process.communicate("\n", timeout=30)[0] == "done True\n"
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    found = functions(run, folder)
    assert [found[name]["calls"] for name in ("by_threading", "by_thread", "by_c")] == [1, 1, 1]


# Threads that end without an event where only `inner` is recorded, and then others.
SITS = """
import _thread, os, sys, time
def inner(n): return n + 1
def sits():
    sit.acquire()
    sit.release()
    left.append(1)
def works():
    while not os.path.exists("stop"):
        inner(1)
        time.sleep(0.01)
    left.append(2)
sit, left = _thread.allocate_lock(), []
sit.acquire()
def begin(function, n):
    for i in range(n): _thread.start_new_thread(function, ())
    while sum(f.f_code is function.__code__ for f in sys._current_frames().values()) < n: time.sleep(0.01)
begin(sits, 60)
print(os.getpid(), flush=True)
sys.stdin.readline()
sit.release()
while len(left) < 60: time.sleep(0.01)
begin(works, 30)
while len(left) < 90:
    inner(1)
    time.sleep(0.01)
print("done", True, flush=True)
"""


def test_threads_that_end_without_an_event_give_their_rings_to_others(programs, attach, run, python, tmp_path):
    """There are 64 rings: the recording takes one for each of 60 threads that wait."""
    app = programs.start(python, SITS, stdin=subprocess.PIPE)
    krait, folder = attach(app.pid, "--include", "__main__.inner", "--max-threads", 32)
    wait_for(lambda: len(list(folder.glob("*/thread*"))) >= 60, "the stacks of the threads that wait")
    app.process.stdin.write("\n")
    app.process.stdin.flush()
    wait_for(lambda: len(list(folder.glob("*/thread*"))) >= 60 + 31, "the calls of the other threads")
    assert ended(app, tmp_path) == "done True\n"
    krait.communicate(timeout=60)
    assert functions(run, folder)["inner"]["calls"] > 0


# Has a child before the recording, and forks another one in it.
PARENT = """
import os, sys, time
def first(): time.sleep(600)
def second(): pass
""" + CHILD + """
waits = child(first)
print(os.getpid(), flush=True)
sys.stdin.readline()
os.waitpid(child(second), 0)
os.kill(waits, 9)
print("done", True, flush=True)
"""


@pytest.mark.parametrize("options", [[], ["--no-children"]], ids=["children", "no children"])
def test_children_that_the_process_forks_from_then_on_are_recorded(programs, attach, run, python, options):
    app = programs.start(python, PARENT, stdin=subprocess.PIPE)
    krait, folder = attach(app.pid, *options)
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    assert app.process.communicate("\n", timeout=30)[0] == "done True\n"
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    found = functions(run, folder)
    assert "child" in found and "first" not in found and ("second" in found) == (not options)


FORKED = """
import os, threading, time
def inner(): pass
def works():
    while True:
        for _ in range(100): inner()
        time.sleep(0.001)
def waits(lock): lock.acquire()
pid = os.fork()
if pid: os._exit(os.waitpid(pid, 0)[1])
lock = threading.Lock()
lock.acquire()
waiter = threading.Thread(target=waits, args=(lock,), daemon=True)
waiter.start()
print(os.getpid(), waiter.native_id, flush=True)
works()
"""


def test_a_forked_child_has_its_own_threads_alone(programs, attach, run, python):
    """threading of CPython may keep the number of the parent's thread there."""
    app = programs.start(python, FORKED)
    pid, waiter = app.pid, int(app.ready)
    krait, folder = attach(pid, "--for", "200ms")
    said = krait.communicate(timeout=60)[1]
    os.kill(pid, signal.SIGKILL)
    assert krait.returncode == 0, said
    threads = [t.tid for process in Recording(folder).processes for t in process.threads]
    assert sorted(threads) == sorted([pid, waiter])


def test_a_process_that_cannot_be_told_leaves_the_recording_by_itself(programs, attach, run, python, tmp_path):
    """Here it is stopped when the recording ends."""
    app = programs.start(python, WAITS)
    before = has(app.pid)
    krait, folder = attach(app.pid)
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    os.kill(app.pid, signal.SIGSTOP)
    wait_for(lambda: open(f"/proc/{app.pid}/stat").read().rpartition(")")[2].split()[0] == "T", "the stop")
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "could not be told to detach" in said, said
    assert has(app.pid) != before
    os.kill(app.pid, signal.SIGCONT)
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


def test_a_krait_that_is_killed_leaves_nothing_in_a_program_that_runs(programs, attach, python, tmp_path):
    """The program notices when it has filled its ring, which nobody empties."""
    app = programs.start(python, SPIN)
    before = has(app.pid)
    krait, folder = attach(app.pid, "--ring-size", "256K", "--buffer-size", "1")
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    krait.kill()
    krait.communicate()
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


# It acts while a recording begins: `hook` runs in krait's thread, which imports and compiles on its way.
WHILE_IT_BEGINS = """
import _thread, os, select, signal, sys, threading, time
main, rounds, acted = _thread.get_native_id(), 0, []
def inner(n): return n + 1
def hook(event, args):
    if event == EVENT and _thread.get_native_id() != main and not acted:
        acted.append(1)
        act()
ACT
sys.addaudithook(hook)
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    select.select([], [], [], 0.001)
    for i in range(1000): inner(i)
    rounds += 1
print("done", bool(acted), flush=True)
"""

KILLS = """
def act():
    while not os.path.exists("krait"): time.sleep(0.001)
    krait = int(open("krait").read())
    os.kill(krait, signal.SIGKILL)
    while os.path.exists("krait"): time.sleep(0.001)
    end = rounds + 500
    while rounds < end: time.sleep(0.001)
"""


def test_a_krait_that_is_killed_while_the_recording_begins_leaves_nothing(programs, attach, python, tmp_path):
    """The program fills its ring, and its hooks go, before the beginning is over."""
    app = programs.start(python, WHILE_IT_BEGINS.replace("EVENT", "'sys._current_frames'").replace("ACT", KILLS))
    before = has(app.pid)
    krait, folder = attach(app.pid, "--gc", "--ring-size", "256K", "--buffer-size", "1")
    (tmp_path / "pid").write_text(str(krait.pid))
    (tmp_path / "pid").rename(tmp_path / "krait")
    assert krait.wait(60) == -signal.SIGKILL
    (tmp_path / "krait").unlink()
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    krait.stderr.close()
    assert ended(app, tmp_path) == "done True\n"


STOPS = """
import krait
def stop():
    krait.stop()
    stopped.append(krait.is_recording())
stopped, early = [], []
def act():
    thread = threading.Thread(target=stop)
    thread.start()
    end = rounds + 20
    while rounds < end and not stopped: time.sleep(0.001)
    early.extend(stopped)
"""


@pytest.mark.parametrize("event", ["compile", "sys._current_frames"])
def test_a_program_may_stop_the_recording_while_it_begins(programs, attach, python, tmp_path, event):
    """krait.stop() waits until it has begun, and ends it then."""
    source = WHILE_IT_BEGINS.replace("EVENT", repr(event)).replace("ACT", STOPS).replace("bool(acted)", "stopped == [False] and not early")
    app = programs.start(python, source, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    before = has(app.pid)
    krait, folder = attach(app.pid, "--gc")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


ASKS = """
def act():
    open("begins", "w").close()
    while not os.path.exists("off"): time.sleep(0.001)
"""


@pytest.mark.parametrize("event", ["compile", "sys._current_frames"])
@pytest.mark.few_pythons
def test_a_recording_that_is_switched_off_while_it_begins_in_a_process_can_be_switched_on(programs, attach, run, krait, python, tmp_path, event):
    """The process has joined it by then: its name, and those of its functions, are in it."""
    app = programs.start(python, WHILE_IT_BEGINS.replace("EVENT", repr(event)).replace("ACT", ASKS))
    attached, folder = attach(app.pid, "--gc")
    wait_for((tmp_path / "begins").exists, "the begin")
    run("ctl", attached.pid, "stop")
    (tmp_path / "off").touch()
    wait_for(lambda: json.loads(run("ctl", attached.pid, "status", "--json").stdout)["processes"][0]["state"] == "off", "the process to be off")
    run("ctl", attached.pid, "start")
    wait_for(lambda: has_events(folder), "events")
    attached.send_signal(signal.SIGINT)
    said = attached.communicate(timeout=60)[1]
    assert attached.returncode == 0, said
    assert functions(run, folder)["inner"]["calls"] > 0
    process = Recording(folder).check(ended=False).main
    assert [e.name for e in process.definitions if e.name == "process:start"] == ["process:start"]
    assert [f["state"] for f in process.said("recording:switch")] == ["off", "on"]
    assert ended(app, tmp_path) == "done True\n"


@pytest.mark.few_pythons
@pytest.mark.long
def test_the_end_may_come_while_the_recording_begins(programs, attach, python, tmp_path, rounds):
    """With these options its begin imports modules, and drops the GIL meanwhile."""
    # Imported before the first line is printed: no file of an import is open while it is looked at.
    app = programs.start(python, WAITS.replace("threading\n", "threading, json\n").replace("sit()\n    for", "import json; sit()\n    for"))
    before = has(app.pid)
    for _ in range(rounds(8, 100)):
        krait, _ = attach(app.pid, "--for", "1ms", "--log", "--gc", "--audit", "--imports")
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0, said
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


@pytest.mark.few_pythons
def test_verbose_tells_each_step_and_each_pause(programs, attach, python):
    """A process that sleeps does not leave by itself."""
    app = programs.start(python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    krait, _ = attach(app.pid, "--for", "100ms", "-v")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    for function in ("krait_agent_attach", "krait_agent_detach"):
        assert re.search(rf"krait record: thread {app.pid} was stopped for [0-9.]+ .s, and starts a thread that calls {function}\n", said), said
    assert re.search(rf"process {app.pid} is recorded, after [0-9.]+ ", said) and re.search(r"has left the process, after [0-9.]+ ", said)


def test_verbose_is_for_a_running_process(run_krait_record):
    done = run_krait_record("-v", "--", "true")
    assert done.returncode == 2 and "--verbose needs --pid" in done.stderr


@pytest.mark.few_pythons
def test_a_process_that_is_recorded_already_is_refused_with_who_records_it(programs, attach, run, python, krait, tmp_path):
    app = programs.start(python, SPIN, before=(krait, "record", "-q", "-o", tmp_path / "first", "--"))
    refused, folder = attach(app.pid)
    said = refused.communicate(timeout=60)[1]
    assert refused.returncode == 1 and not folder.exists()
    assert f"by process {app.process.pid} into {tmp_path / 'first'}" in said and f"krait ctl {app.pid} status" in said
    assert ended(app, tmp_path) == "done True\n"
    assert "inner" in functions(run, tmp_path / "first")


def test_what_another_attach_left_when_it_was_killed_does_not_keep_the_next_out(programs, attach, run, python, tmp_path):
    app = programs.start(python, WAITS)
    first, folder = attach(app.pid)
    wait_for(lambda: list(folder.glob("*/thread*")), "the first recording")
    first.kill()
    first.communicate()
    second, folder = attach(app.pid, "--for", "300ms")
    said = second.communicate(timeout=60)[1]
    assert second.returncode == 0, said
    assert functions(run, folder)["inner"]["calls"] > 100
    assert ended(app, tmp_path) == "done True\n"


def test_a_stopped_program_is_refused_with_the_remedy(programs, attach, python, tmp_path):
    app = programs.start(python, SPIN)
    os.kill(app.pid, signal.SIGSTOP)
    wait_for(lambda: open(f"/proc/{app.pid}/stat").read().rpartition(")")[2].split()[0] == "T", "the stop")
    krait, _ = attach(app.pid)
    assert "kill -CONT" in krait.communicate(timeout=60)[1] and krait.returncode
    os.kill(app.pid, signal.SIGCONT)
    assert ended(app, tmp_path) == "done True\n"


def test_options_of_a_command_do_not_go_with_a_process(attach):
    krait, _ = attach(1, "--wait", "--idle")
    assert "--wait does not go with --pid, which records until the process ends" in krait.communicate(timeout=60)[1] and krait.returncode == 2


def states(run, folder):
    return {row["pid"]: row["state"] for row in json.loads(run("ctl", "--json", folder, "status").stdout)["processes"]}


def test_an_idle_recording_begins_when_it_is_switched_on(programs, attach, run, python, tmp_path):
    app = programs.start(python, WAITS)
    before = has(app.pid)
    for _ in range(2):
        krait, folder = attach(app.pid, "--idle", "--for", "300ms")
        assert krait.stderr.readline() == f"krait record: ready and off; krait ctl {app.pid} start switches it on\n"
        assert states(run, folder) == {app.pid: "ready"} and not has_events(folder)
        assert run("ctl", app.pid, "start").stdout == "Recording is on in 1 process\n"
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0 and "was paused for" in said and "detach" not in said, said
        assert functions(run, folder)["inner"]["calls"] > 100
        wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    assert ended(app, tmp_path) == "done True\n"


@pytest.mark.few_pythons
def test_an_idle_recording_that_is_never_switched_on_leaves_nothing(programs, attach, run, python, tmp_path):
    app = programs.start(python, WAITS)
    before = has(app.pid)
    krait, folder = attach(app.pid, "--idle")
    krait.stderr.readline()
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "The recording was never switched on" in said and "holds the GIL" not in said, said
    assert not folder.exists()
    wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    krait, folder = attach(app.pid, "--idle")
    krait.stderr.readline()
    assert ended(app, tmp_path) == "done True\n"  # with a recording that is off
    assert "The recording was never switched on" in krait.communicate(timeout=60)[1] and krait.returncode == 0


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_an_idle_recording_fails_if_the_process_cannot_be_recorded_when_it_is_switched_on(programs, attach, run, python):
    app = programs.start(
        python,
        """
        import os, sys, time
        for i in range(6): sys.monitoring.use_tool_id(i, "another")
        print(os.getpid(), flush=True)
        while True: time.sleep(0.01)
        """,
    )
    krait, folder = attach(app.pid, "--idle")
    krait.stderr.readline()
    run("ctl", app.pid, "start")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 125 and f"Process {app.pid} was not recorded: all tool ids of sys.monitoring" in said and "Next:" not in said, said


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_a_recording_that_cannot_go_on_when_it_is_switched_on_again_tells_the_reason(programs, attach, run, python):
    app = programs.start(
        python,
        """
        import os, sys, time
        def inner(n): return n + 1
        print(os.getpid(), flush=True)
        while any(map(sys.monitoring.get_tool, range(6))) or not os.path.exists("take"): inner(time.sleep(0.001) or 1)
        for i in range(6): sys.monitoring.use_tool_id(i, "another")
        open("taken", "w").close()
        while True: time.sleep(0.01)
        """,
    )
    krait, folder = attach(app.pid)
    wait_for(lambda: has_events(folder), "events")
    run("ctl", app.pid, "stop")
    (folder.parent / "take").touch()
    wait_for(lambda: (folder.parent / "taken").exists(), "tool ids that are taken")
    run("ctl", app.pid, "start")
    said = " ".join(krait.communicate(timeout=60)[1].split())
    assert f"Process {app.pid} was not recorded after the recording was switched on again: all tool ids of sys.monitoring" in said, said
    assert krait.returncode == 0 and functions(run, folder)["inner"]["calls"] > 0


REFUSES = (
    CHILD
    + """
import ctypes, os, sys, time

def spin():
    while True: time.sleep(0.01)

def spin_as_long_as_its_parent():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    spin()

def use_tool_id(*words):
    time.sleep(0.05)  # it has joined the recording by now
    raise ValueError("it has an owner")

other = child(spin_as_long_as_its_parent)
sys.monitoring.use_tool_id = use_tool_id
print(os.getpid(), other, flush=True)
spin()
"""
)


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [(), ("--children",)])
def test_a_process_that_is_refused_when_it_has_joined_is_told_once_and_not_as_recorded(programs, attach, python, options):
    app = programs.start(python, REFUSES)
    krait, folder = attach(app.pid, "-v", "--for", "1s", *options)
    said = krait.communicate(timeout=60)[1]
    assert said.count("all tool ids of sys.monitoring are in use") == 1 and f"process {app.pid} is recorded" not in said, said
    assert f"process {app.pid} cannot be recorded: all tool ids" in said
    assert (f"process {app.ready.strip()} is recorded" in said) == bool(options) and krait.returncode == (0 if options else 125), said


def test_an_idle_recording_ends_where_the_process_executes_another_program(programs, attach, any_python, tmp_path):
    app = programs.start(
        any_python,
        """
        import os, time
        print(os.getpid(), flush=True)
        while not os.path.exists("stop"): time.sleep(0.01)
        os.execvp("sh", ["sh", "-c", "echo executed; exec sleep 60"])
        """,
    )
    krait, folder = attach(app.pid, "--idle")
    krait.stderr.readline()
    (tmp_path / "stop").touch()
    assert app.process.stdout.readline() == "executed\n"
    assert "The recording was never switched on" in krait.communicate(timeout=60)[1] and krait.returncode == 0


def test_an_idle_recording_of_a_family(programs, attach, run, any_python, tmp_path):
    app = programs.start(
        any_python,
        """
        import os, subprocess, sys, time
        def inner(n): return n + 1
        if not sys.argv[1:]: subprocess.Popen([sys.executable, __file__, "child"])
        print(os.getpid(), flush=True)
        while not os.path.exists("stop"):
            time.sleep(0.01)
            for i in range(100): inner(i)
        """,
    )
    child = int(app.process.stdout.readline())
    krait, folder = attach(app.pid, "--idle", "--children", "--for", "300ms")
    krait.stderr.readline()
    assert states(run, folder) == {app.pid: "ready", child: "ready"}
    assert run("ctl", child, "start").stdout == "Recording is on in 2 processes\n"
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "2 processes" in said, said
    (tmp_path / "stop").touch()


@pytest.mark.long
def test_the_page_holds(krait, any_python, tmp_path):
    runs = run_page("attach.md", krait, any_python, tmp_path)
    assert all("handle" in run.stdout for command, run in runs.items() if " report " in command) and len(runs) == 10
