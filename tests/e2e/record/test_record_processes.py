# SPDX-License-Identifier: Apache-2.0
"""Threads and processes: one recording holds them all, however they came to be."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import Recorder, found_pythons
from recording import Recording
from running import answer_of


def with_function(recording, name):
    """The processes that called a function."""
    return [p for p in recording.processes if p.calls()[name]]


@pytest.mark.few_pythons
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(record, python, method):
    run = record.text(
        python,
        f"""
        import multiprocessing as mp
        def work(n):
            return n * n
        if __name__ == "__main__":
            with mp.get_context({method!r}).Pool(2) as pool:
                print(sum(pool.map(work, range(20), chunksize=1)))
                pool.close()
                pool.join()
        """,
    )
    assert run.stdout.strip() == str(sum(n * n for n in range(20)))
    workers = with_function(run, "work")
    assert sum(p.calls()["work"] for p in workers) == 20
    assert len(workers) in (1, 2)  # one worker may have taken all
    assert all(p.pid != run.main.pid for p in workers)
    assert run.check(ended=False)
    if method == "fork":
        assert {p.origin for p in workers} == {"fork"}


@pytest.mark.few_pythons
def test_subprocesses_and_their_ends(record, python):
    run = record.text(
        python,
        """
        import subprocess, sys
        code = "def child(n):\\n    raise SystemExit(n)\\nchild(%d)"
        print([subprocess.run([sys.executable, "-c", code % n]).returncode for n in (0, 7)])
        """,
    )
    assert run.stdout.strip() == "[0, 7]"
    run.check()
    children = with_function(run, "child")
    assert len(children) == 2 and {p.origin for p in children} == {"exec"}
    assert [p.ending[0] for p in children] == ["gone", "gone"]  # their status is known to their parent alone
    assert all(p.said("process:start")[0]["vppid"] == run.main.pid for p in children)


@pytest.mark.few_pythons
def test_children_are_left_out_when_asked(record, python):
    run = record.text(
        python,
        """
        import os, subprocess, sys
        def child():
            pass
        pid = os.fork()
        if not pid:
            child()
            os._exit(0)
        os.waitpid(pid, 0)
        subprocess.run([sys.executable, "-c", "def grandchild(): pass\\ngrandchild()"], check=True)
        """,
        options=["--no-children"],
    )
    run.check()
    assert len(run.processes) == 1
    assert not run.calls()["child"] and not run.calls()["grandchild"]


@pytest.mark.few_pythons
def test_executors(record, python):
    run = record.text(
        python,
        """
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        def in_thread(n):
            return n
        def in_process(n):
            return n
        if __name__ == "__main__":
            with ThreadPoolExecutor(3) as pool:
                print(sum(pool.map(in_thread, range(30))))
            with ProcessPoolExecutor(2) as pool:
                print(sum(pool.map(in_process, range(10))))
        """,
    )
    assert run.stdout.split() == ["435", "45"]
    run.check(ended=False)
    assert run.calls()["in_thread"] == 30 and run.calls()["in_process"] == 10
    assert not run.main.calls()["in_process"]


def test_threads_and_their_names(record, python):
    run = record.text(
        python,
        """
        import threading
        def work():
            for _ in range(100):
                step()
        def step():
            pass
        threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        work()
        """,
    )
    run.check()
    process = run.main
    assert process.calls()["step"] == 500
    counts = sorted(sum(e.name == "python:call" and process.name_of(e) == "step" for e in t.events) for t in process.threads)
    assert counts == [100] * 5
    names = set(process.thread_names.values())
    assert {"MainThread", "worker 0", "worker 1", "worker 2", "worker 3"} <= names


@pytest.mark.few_pythons
def test_a_thread_that_is_renamed_while_it_runs(record, python, info):
    run = record.text(
        python,
        """
        import threading, time
        def step(): time.sleep(0.001)
        def work(name):
            threading.current_thread().name = name
            end = time.monotonic() + 0.3  # longer than the clock's window
            while time.monotonic() < end: step()
        t = threading.Thread(target=work, args=["renamed \N{GREEK SMALL LETTER LAMDA}"], name="first")
        t.start()
        t.join()
        work("main")
        """,
    )
    names = [(n["vtid"], n["name"]) for n in run.check().main.said("thread:name")]
    other = next(tid for tid, name in names if name == "first")
    assert names == [(run.main.pid, "MainThread"), (other, "first"), (other, "renamed λ"), (run.main.pid, "main")]


@pytest.mark.few_pythons
def test_a_process_that_is_renamed_while_it_runs(record, python, info):
    """As prctl(PR_SET_NAME) and setproctitle do it; what it executes then has a name of its own."""
    run = record.text(
        python,
        """
        import ctypes, glob, os, sys, time
        def work(): time.sleep(0.3)
        def is_told():
            return any("kitchen: chef" in open(path).read() for path in glob.glob(sys.argv[1] + "/*/metadata"))
        work()
        assert ctypes.CDLL(None).prctl(15, b"chef", 0, 0, 0) == 0
        begin, end = map(int, open("/proc/self/stat").read().rpartition(")")[2].split()[45:47])
        ctypes.memmove(begin, b"kitchen: chef".ljust(end - begin, bytes(1)), end - begin)
        for _ in range(200):
            if not is_told(): work()
        if not os.fork():
            os.execv("/bin/sleep", ["sleep", "0.6"])
        os.wait()
        """,
        trace := record.new_trace(),
        trace=trace,
    )
    first, *others = info(run.check(ended=False).path)["process_list"]
    assert (first["name"], first["command"]) == ("chef", "kitchen: chef")
    assert [p["command"] for p in others] in ([], ["kitchen: chef"])


@pytest.mark.few_pythons
@pytest.mark.long
def test_a_thousand_threads_one_after_the_other(record, python):
    run = record.text(
        python,
        """
        import threading
        def step():
            pass
        for _ in range(1500):
            t = threading.Thread(target=step)
            t.start()
            t.join()
        """,
    )
    assert run.check().calls()["step"] == 1500


@pytest.mark.long
def test_five_thousand_forks_in_a_row(record, any_python, report, info):
    """Children end faster than their traces can be written: what is lost of them is said, with the reason that it has."""
    run = record.text(
        any_python,
        """
        import os
        def child():
            pass
        for _ in range(5000):
            pid = os.fork()
            if not pid:
                child()
                os._exit(0)
            os.waitpid(pid, 0)
        """,
        timeout=600,
    )
    calls = sum(f["calls"] for f in report(run.path) if f["name"].endswith("child"))
    lost = info(run.path)["lost"]
    assert set(lost) <= {"no ring", "no process slot"}, lost
    assert calls + sum(lost.values()) >= 5000 and calls > 2048, (calls, lost)  # there are rings for 2,048 at once


def test_threads_that_c_code_makes(record, python):
    run = record.text(
        python,
        """
        import ctypes
        def from_c(argument):
            return 0
        callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(from_c)
        libc = ctypes.CDLL(None)
        thread = ctypes.c_ulong()
        create = libc.pthread_create
        for _ in range(3):
            assert create(ctypes.byref(thread), None, callback, None) == 0
            libc.pthread_join(thread, None)
        print("joined")
        """,
    )
    assert run.stdout.strip() == "joined"
    run.check()
    process = run.main
    elsewhere = [t for t in process.threads if any(process.name_of(e) == "from_c" for e in t.events)]
    assert process.calls()["from_c"] == 3
    assert process.pid not in {t.tid for t in elsewhere}


SUBINTERPRETER = """
    import sys
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    def outside():
        pass
    outside()
    i = interpreters.create()
    failed = (interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string)(
        i, "def inside(): pass\\nfor _ in range(10): inside()")
    interpreters.destroy(i)
    outside()
    print(failed)
    """


def test_subinterpreters(record, python):
    run = record.text(python, SUBINTERPRETER)
    assert run.stdout.strip() == "None"
    run.check()
    assert run.calls()["outside"] == 2
    assert run.calls()["inside"] == 10


def test_fork_from_a_thread(record, python):
    run = record.text(
        python,
        """
        import os, threading
        def child():
            pass
        def fork():
            pid = os.fork()
            if not pid:
                child()
                os._exit(3)
            print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
        t = threading.Thread(target=fork)
        t.start()
        t.join()
        """,
    )
    assert run.stdout.strip() == "3"
    run.check(ended=False)
    run.main.check_balanced()
    (child,) = with_function(run, "child")
    assert child.origin == "fork" and child.pid != run.main.pid


@pytest.mark.few_pythons
def test_exec_begins_a_new_image_of_the_same_process(record, python):
    run = record.text(
        python,
        """
        import os, sys
        def before():
            pass
        before()
        os.execv(sys.executable, [sys.executable, "-c", "def after(): pass\\nafter()"])
        """,
    )
    run.check(ended=False)
    (first,), (second,) = with_function(run, "before"), with_function(run, "after")
    assert first.pid == second.pid and first.folder != second.folder


@pytest.mark.few_pythons
@pytest.mark.parametrize(
    "end, statuses, ending",
    [
        ("import os; os._exit(9)", [9], ("exit", 9)),
        ("import ctypes; ctypes.string_at(0)", [-signal.SIGSEGV, 128 + signal.SIGSEGV], ("signal", signal.SIGSEGV)),
    ],
    ids=["os._exit", "segmentation fault"],
)
def test_a_sudden_end_loses_nothing(record, python, end, statuses, ending):
    run = record.text(python, f"def f():\n    pass\nfor _ in range(1000):\n    f()\n{end}\n", ok=False)
    assert run.status in statuses
    assert run.check(ended=False).calls()["f"] == 1000
    assert run.main.ending == ending


@pytest.mark.few_pythons
def test_a_program_that_forks_and_never_waits(record, python):
    run = record.text(
        python,
        """
        import os, time
        def orphan():
            pass
        if not os.fork():
            time.sleep(0.3)
            orphan()
            os._exit(0)
        """,
    )
    run.check(ended=False)
    assert run.calls()["orphan"] in (0, 1)  # it may be stopped with its parent, but harms nothing


@pytest.mark.few_pythons
def test_each_event_of_a_process_that_outlives_the_recording_has_its_function(record, python):
    """It goes on to define functions and to call them while the recording ends: seldom just then, so more than once."""
    script = record.script(
        """
        import os, sys, time
        begun, ended = sys.argv[1:]
        def define():
            while not os.path.exists(ended):
                for n in range(100):
                    exec(f"def f{n}(): pass\\nf{n}()")
                open(begun, "w").close()
        if not os.fork():
            os.closerange(0, 3)
            define()
            os._exit(0)
        while not os.path.exists(begun): time.sleep(0.01)
        """
    )
    for again in range(3):
        run = record(python, script, f"begun{again}", f"ended{again}", options=["--lossless"])
        (record.folder / f"ended{again}").touch()
        (child,) = with_function(run, "define")
        called = {e.code for thread in child.threads for e in thread.events if "code" in e.fields}
        assert called <= set(child.codes) and child.ending == ("stop", -1)
        run.check(ended=False)


@pytest.mark.long
def test_gunicorn_with_workers(record, any_python, venv, tmp_path):
    python = venv(any_python, "gunicorn==23.0.0")
    record.script(
        """
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [answer()]
        def answer():
            return b"krait"
        """,
        "service.py",
    )
    socket = tmp_path / "port"
    gunicorn = os.path.join(os.path.dirname(python.exe), "gunicorn")
    trace = record.new_trace()
    command = record.command(python, [gunicorn, "--workers", "2", "--bind", f"unix:{socket}", "service:app"], trace)
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        answers = [answer_of(socket) for _ in range(10)]
        assert all(a.endswith(b"krait") for a in answers)
    finally:
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
    recording = Recording(trace)
    recording.check(ended=False)
    assert recording.calls()["answer"] == 10, errors
    assert recording.main.calls()["answer"] == 0
    assert len(recording.processes) == 3


@pytest.mark.long
def test_pytest_with_tests_of_its_own(record, any_python, venv, tmp_path):
    python = venv(any_python, "pytest==8.3.5")
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test_one(n):\n    assert n < 4\n")
    pytest_command = os.path.join(os.path.dirname(python.exe), "pytest")
    run = record.words(python, pytest_command, "-q", "-p", "no:cacheprovider", "test_it.py", options=["--lossless", "--no-c-calls"])
    assert run.status == 1 and "1 failed, 4 passed" in run.stdout
    assert run.check().calls()["test_one"] == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
def test_a_root_without_krait_makes_no_error_of_the_loader(record, any_python, tmp_path):
    """What begins there cannot load krait's library, and must not be asked to."""
    jail = tmp_path / "jail"
    for words in subprocess.run(["ldd", "/bin/cat"], capture_output=True, text=True, check=True).stdout.split("\n"):
        for path in re.findall(r"/\S+", words.replace("=>", ""))[:1]:
            (jail / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, jail / path[1:])
    (jail / "bin").mkdir(exist_ok=True)
    shutil.copy("/bin/cat", jail / "bin" / "cat")
    run = record.text(
        any_python,
        f"""
        import os, subprocess
        os.chroot({str(jail)!r})
        os.chdir("/")
        twice = os.environ["LD_PRELOAD"] + ":" + os.environ["LD_PRELOAD"]
        for env in (None, {{**os.environ, "LD_PRELOAD": twice}}):
            done = subprocess.run(["/bin/cat", "/proc/none"], env=env, capture_output=True, text=True)
            print(done.stderr.count("\\n"), "preload" in done.stderr)
        """,
    )
    assert run.stdout == "1 False\n" * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
def test_threads_that_begin_after_chroot_and_setuid(record, any_python, tmp_path):
    (tmp_path / "jail").mkdir(mode=0o755)
    run = record.text(
        any_python,
        f"""
        import os, sys, threading
        def work():
            pass
        before = sorted(int(n) for n in os.listdir("/proc/self/fd"))
        os.chroot({str(tmp_path / "jail")!r})
        os.setuid(65534)
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(before)
        """,
    )
    assert run.check().calls()["work"] == 3
    assert run.lost == 0
    assert run.stdout.strip() == "[0, 1, 2, 3]"  # the listing's own is the last


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_children_of_another_user_are_named_with_the_reason(everyones_krait, any_python, tmp_path):
    """They may not write into the recorded programs. That forks of a program that has changed its user wait for nothing
    is in join_test.c."""
    theirs = next((p.exe for p in found_pythons()[0] if p.origin == "system"), None)
    if not theirs:
        pytest.skip("no Python that every user may run")
    run = Recorder(everyones_krait, tmp_path).text(
        any_python,
        """
        import os, subprocess, sys
        def forked(): pass
        os.setuid(65534)
        if not (pid := os.fork()):
            forked()
            os._exit(0)
        os.waitpid(pid, 0)
        for i in range(10):
            subprocess.run([sys.argv[1], "-c", "pass"], check=True)
        """,
        theirs,
    )
    assert run.check(ended=False).calls()["forked"] == 1 and len(run.processes) == 2
    said = " ".join(run.stderr.split())
    assert re.search(r"Processes \d+(, \d+){7} were not recorded: running as user 65534, krait as user 0; start krait as that user", said)
    assert "2 processes more were not recorded" in said


def test_a_child_that_libc_did_not_fork_gets_a_trace_of_its_own(record, any_python):
    """_Fork() runs no handlers: parent and child would write one ring."""
    run = record.text(
        any_python,
        """
        import ctypes, os
        fork = getattr(ctypes.PyDLL(None), "_Fork", None)
        def first(): pass
        def work():
            for _ in range(1000): leaf()
        def leaf(): pass
        def main():
            pid = fork()
            if not pid:
                first()
                work()
                os._exit(0)
            os.waitpid(pid, 0)
            work()
        if fork:
            main()
        else:
            print("no _Fork")
        """,
    )
    if "no _Fork" in run.stdout:
        pytest.skip("this libc has no _Fork")
    parent, child = run.processes
    assert run.losses() == {"raw fork": 1}
    assert child.origin == "fork" and child.calls()["leaf"] == 1000 and parent.calls()["leaf"] == 1000
    child.check_balanced(ended=False)
    events = [parent.name_of(e) if e.code else e.name for e in parent.threads[0].events]
    assert "python:stack" in events[events.index("main") : events.index("leaf")]  # the child's first events are before that
