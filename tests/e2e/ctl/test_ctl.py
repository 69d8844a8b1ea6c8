# SPDX-License-Identifier: Apache-2.0
"""krait ctl: a running recording is looked at, switched off and on; and when there is none to ask."""

import json
import os
import pathlib
import pwd
import re
import signal
import socket
import stat
import subprocess
import threading

import pytest

from pages import run_page
from recording import Recording
from running import wait_for
from told import OBEDIENT, attached, told  # noqa: F401  (attached, told: fixtures)


@pytest.mark.every_python
def test_what_happens_while_it_is_off_is_not_recorded(told, python):
    app = told(python)
    assert app.tell("first()") == "6"
    assert app.ctl("stop").startswith("Recording is off")
    assert app.tell("second()") == "[1, 2, 3]"
    assert app.status()["processes"][0]["state"] == "off"
    assert app.ctl("start") == "Recording is on in 1 process\n"
    assert app.tell("third()") == "ab"
    recording = app.end().check(ended=False)
    calls = recording.calls()
    assert (calls["first"], calls["second"], calls["third"]) == (1, 0, 1)
    assert len(recording.processes) == 1, "it is one process, before and after"


def test_a_thread_that_waits_is_said_when_it_is_switched_on(told, python):
    app = told(python)
    app.ctl("stop")
    app.tell("0")
    app.ctl("start")
    app.tell("0")
    recording = app.end()
    (thread,) = [t for t in recording.main.threads if recording.main.thread_names.get(t.tid) == "Waiter"]
    events = list(thread.walk())
    switched = max(i for i, e in enumerate(events) if e.name == "python:stack" and not e.fields["depth"])
    said = [recording.main.name_of(e) for e in events[switched:] if e.name == "python:frame"]
    assert "waits" in said, "after it was switched on"


def test_a_thread_that_threading_does_not_know_is_said_when_an_idle_recording_is_switched_on(told, python, report):
    app = told(python, "--idle", text=OBEDIENT.replace("report(os.getpid())\nbelow", """
import _thread, time
def unknown_waits(): lock.acquire()
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(unknown_waits, ())
while not any(f.f_code is unknown_waits.__code__ for f in sys._current_frames().values()): time.sleep(0.01)
report(os.getpid())
below"""))
    app.ctl("start")
    app.tell("first()")
    app.end()
    found = {row["name"]: row for row in report(app.folder)}
    assert found["first"]["calls"] == 1
    assert found["unknown_waits"]["calls"] == 0 and found["unknown_waits"]["total_ns"] > 0


@pytest.mark.few_pythons
def test_stacks_balance_and_results_stay_however_often(told, python, rounds):
    app = told(python, text="""
        import os, sys, threading
        from concurrent.futures import ThreadPoolExecutor
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        def gen(n):
            for i in range(n): yield i
        def report(what): print(what, flush=True)
        def work(n):
            try:
                sum(gen(n)); fib(n); int("x")
            except ValueError:
                return fib(n)
        def all_of():
            with ThreadPoolExecutor(4) as pool: return sum(pool.map(work, [14] * 40))
        def facts():
            return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), len(open("/proc/self/maps").readlines())
        report(os.getpid())
        for line in sys.stdin: eval(line)
        """)
    expected = app.tell("all_of()")
    before = None
    for i in range(rounds(5, 60)):
        app.process.stdin.write("report(all_of())\n")
        app.process.stdin.flush()
        app.ctl("stop")
        app.ctl("start")
        app.ctl("set", f"exclude={'*gen' if i % 2 else ''}")
        assert app.process.stdout.readline().strip() == expected
        if i == 3:
            before = eval(app.tell("facts()"))
    wait_for(lambda: app.tell("0") and app.status()["set"], "the change")  # which events of the program bring
    after = eval(wait_for(lambda: (text := app.tell("facts()")).startswith("(1,") and text, "the end of the thread"))
    assert after[0] == 1 and after[1] == before[1] and after[2] <= before[2] + 8, "no thread, file or mapping stays"
    recording = app.end()
    recording.main.check_balanced(ended=False)


@pytest.mark.few_pythons
def test_children_of_a_fork_are_switched_on_and_python_does_not_warn(told, python):
    of_one_thread = "".join(line for line in OBEDIENT.splitlines(keepends=True) if "Waiter" not in line)
    app = told(python, interpreter=["-W", "always"], text=of_one_thread)
    app.ctl("stop")
    app.tell("0")
    child = int(app.tell("fork()"))
    assert app.tell("second()") == "[1, 2, 3]"
    states = {p["pid"]: p["state"] for p in app.status(of=child)["processes"]}
    assert states == {app.pid: "off", child: "ready"}
    assert app.ctl("start", of=child) == "Recording is on in 2 processes\n"
    assert app.tell("third()") == "ab"
    recording = app.end()
    assert "Warning" not in app.stderr, "the thread that waits was counted"
    assert [p.calls()["third"] for p in recording.processes if p.pid == child] == [1]
    assert recording.calls()["second"] == 0


@pytest.mark.few_pythons
def test_the_thread_that_waits_is_back_after_a_fork(told, python):
    app = told(python)
    app.ctl("stop")
    app.tell("0")
    app.tell("os.waitpid(os.fork() or os._exit(0), 0) and None")
    wait_for(lambda: len(os.listdir(f"/proc/{app.pid}/task")) == 3, "the thread")
    app.ctl("start")
    app.tell("third()")
    assert app.end().calls()["third"] == 1


def test_a_program_that_is_executed_while_it_is_off_is_ready(told, any_python):
    app = told(any_python)
    app.ctl("stop")
    app.tell("0")
    app.process.stdin.write("os.execv(sys.executable, [sys.executable, *sys.argv])\n")
    app.process.stdin.flush()
    assert int(app.process.stdout.readline()) == app.pid
    wait_for(lambda: "ready" in [p["state"] for p in app.status()["processes"]], "the new program")
    app.ctl("start")
    assert app.tell("third()") == "ab"
    assert app.end().calls()["third"] == 1


def test_the_status_is_found_by_any_of_its_names(told, any_python):
    app = told(any_python, "--exclude", "os*", "--no-c-calls")
    wait_for(lambda: app.status()["processes"][0]["threads"] == 2, "the threads")
    by_pid, by_krait, by_folder = app.status(), app.status(of=app.process.pid), app.status(of=app.folder)
    assert by_pid["collector"] == by_krait["collector"] == by_folder["collector"] == app.process.pid
    assert by_pid["folder"] == str(app.folder) and by_pid["state"] == "on"
    assert by_pid["lost"] == by_pid["lost_events"] == by_pid["processes"][0]["lost_events"] == 0
    assert by_pid["recorded"]["exclude"] == ["os*"] and not by_pid["recorded"]["c_calls"]
    (process,) = by_pid["processes"]
    assert (process["pid"], process["state"], process["threads"]) == (app.pid, "on", 2)
    wait_for(lambda: app.status()["events"] > 10, "events")
    rated = app.status()
    if rated["duration_ns"] < 5_000_000_000:  # else the rate is of the last five seconds
        assert rated["rate_window_ns"] == rated["duration_ns"] and rated["events_per_s"] == pytest.approx(rated["events"] * 1e9 / rated["duration_ns"], abs=1)
    text = re.sub(r"[\d.]+ (ns|us|ms|s|B|KiB|MiB)", "N", re.sub(r"[\d,]+ events, [\d,]+/s in the last \d\.\d s", "N events", app.ctl()))
    text = re.sub(rf"{app.pid}  on           2  +[\d,]+ ", "PID  on           2  N ", text.replace(str(app.folder.parent), "DIR"))
    assert text.replace(any_python.exe, "python").splitlines() == [
        "Recording is on for N",
        "  folder     DIR/trace1",
        "  recorded   N events",
        "  on disk    N",
        "  lost       nothing",
        "  records    calls, no C calls, --exclude os*",
        "",
        *text.splitlines()[7:8],
        *text.splitlines()[8:9],
    ]
    assert text.splitlines()[7].split() == ["pid", "state", "threads", "events", "lost", "command"]
    assert not (app.end().path / ".control").exists()


def test_many_ask_at_once(told, any_python):
    app, answers = told(any_python), []
    words = ["status", "stop", "start", "status"] * 8
    threads = [threading.Thread(target=lambda w=w: answers.append(app.ctl(w))) for w in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(words)
    app.ctl("start")
    app.tell("third()")
    assert app.end().calls()["third"] == 1


def test_what_cannot_be_asked_says_why(told, run, any_python, record, tmp_path):
    app = told(any_python)
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert run("ctl", gone.pid, code=1).stderr == f"krait ctl: there is no process {gone.pid}\n"
    assert "is neither recorded by krait nor a krait record" in run("ctl", os.getpid(), code=1).stderr
    assert "is not being recorded" in run("ctl", tmp_path, "stop", code=1).stderr
    assert "is neither a PID nor a folder: No such file" in run("ctl", tmp_path / "none", code=1).stderr
    assert "'begin' is none of status, start, stop" in run("ctl", app.pid, "begin", code=2).stderr
    assert "takes nothing more" in run("ctl", app.pid, "stop", "now", code=2).stderr
    assert "no recording" in run("ctl", code=2).stderr
    os.kill(app.process.pid, signal.SIGKILL)
    app.process.wait()
    assert (app.folder / ".control").exists(), "what a killed collector leaves"
    os.kill(app.pid, signal.SIGSTOP)  # there, whatever it makes of its closed pipes
    for operand in (app.folder, app.pid):
        assert "nobody collects this recording any more" in run("ctl", operand, "start", code=1).stderr
    os.kill(app.pid, signal.SIGKILL)


def test_a_recording_is_controlled_by_its_folder_from_another_network_namespace(told, krait, any_python):
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    app = told(any_python)
    assert stat.filemode((app.folder / ".ctl").stat().st_mode) == "srw-------"

    def ask(operand, verb):
        return subprocess.run([*apart, krait, "ctl", str(operand), verb], capture_output=True, text=True, timeout=60)

    assert ask(app.folder, "stop").stdout.startswith("Recording is off")
    assert app.status()["state"] == "off"
    assert ask(app.folder, "start").stdout == "Recording is on in 1 process\n"
    assert "where krait ctl takes the folder of the recording" in " ".join(ask(app.pid, "stop").stderr.split())
    assert not list(app.end().path.glob(".*"))


@pytest.mark.few_pythons
def test_a_program_outlives_the_collector_while_it_is_off(told, python):
    app = told(python)
    app.ctl("stop")
    app.tell("0")
    os.kill(app.process.pid, signal.SIGKILL)
    app.process.wait()
    assert app.tell("second()") == "[1, 2, 3]"
    app.process.communicate(timeout=60)
    wait_for(lambda: not os.path.exists(f"/proc/{app.pid}"), "its end")


@pytest.mark.skipif(os.getuid() != 0, reason="needs two users")
def test_another_user_is_refused(told, everyones_krait, any_python):
    app = told(any_python)
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chmod(app.folder.parent, 0o755)

    def ask(operand):
        return subprocess.run([everyones_krait, "ctl", str(operand), "stop"], capture_output=True, text=True, user=nobody)

    for operand in (app.pid, app.folder):
        done = ask(operand)
        assert done.returncode == 1 and "root" in done.stderr, done.stderr
    # One who knows the socket's name all the same.
    inode = (app.folder / ".control").read_text().strip()
    code = (f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0krait-ctl-{inode}'); s.sendall(b'stop');"
            "s.shutdown(1); print(s.recv(1000).decode())")
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, user=nobody)
    assert "another user" in json.loads(done.stdout)["error"]
    assert app.status()["state"] == "on"


def test_what_is_no_request_is_refused(told, any_python):
    app = told(any_python)
    inode = (app.folder / ".control").read_text().strip()
    for request, expected in ((b"", "error"), (b"nonsense", "error"), (b"status" * 10000, None), (b"\0\xff\0", "error")):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"\0krait-ctl-{inode}")
            try:
                s.sendall(request)
                s.shutdown(socket.SHUT_WR)
                answer = s.recv(1 << 16)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
            assert (expected is None) or expected in json.loads(answer)
    assert app.status()["state"] == "on"


def test_a_recording_that_the_program_began_is_controlled_too(krait, programs, any_python, tmp_path):
    app = programs.start(any_python, f"""
        import os, sys
        sys.path.insert(0, {str(os.path.join(os.path.dirname(krait), "python"))!r})
        import krait
        def first(): pass
        def second(): pass
        krait.start({str(tmp_path / "own")!r})
        first()
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        second()
        print(krait.is_recording(), krait.stop(), flush=True)
        """, stdin=subprocess.PIPE)
    told = subprocess.run([krait, "ctl", str(app.pid), "stop"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    app.process.stdin.write("\n")
    app.process.stdin.flush()
    assert app.process.stdout.readline().split() == ["True", str(tmp_path / "own")]
    calls = Recording(tmp_path / "own").calls()
    assert (calls["first"], calls["second"]) == (1, 0)


@pytest.mark.few_pythons
def test_idle_records_nothing_until_it_is_switched_on(told, python):
    app = told(python, "--idle")
    assert app.tell("first()") == "6"
    (process,) = app.status()["processes"]
    assert (app.status()["state"], process["state"], process["events"]) == ("off", "ready", 0)
    assert not list(app.folder.glob("*-*")), "nothing is written"
    assert app.ctl("start") == "Recording is on in 1 process\n"
    assert app.tell("third()") == "ab"
    recording = app.end().check(ended=False)
    calls = recording.calls()
    assert (calls["first"], calls["third"]) == (0, 1)
    assert recording.main.thread_names[app.pid] == "MainThread"


def test_idle_that_is_never_switched_on_says_so_and_leaves_nothing(told, any_python):
    app = told(any_python, "--idle")
    app.tell("first()")
    _, said = app.process.communicate()
    assert app.process.returncode == 0
    assert f"krait record: ready and off; krait ctl {app.process.pid} start switches it on" in said
    assert "0 processes" in said and "never switched on" in said
    assert not app.folder.exists()


@pytest.mark.few_pythons
@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_a_signal_switches_and_does_not_reach_the_program(told, python, name):
    app = told(python, "--idle", "--toggle-signal", name)
    states = lambda: [p["state"] for p in app.status()["processes"]]
    os.kill(app.process.pid, getattr(signal, name))
    wait_for(lambda: states() == ["on"], "the switch")
    app.tell("third()")
    os.kill(app.process.pid, getattr(signal, name))
    wait_for(lambda: app.status()["state"] == "off", "the switch")
    app.tell("second()")
    calls = app.end().calls()
    assert (calls["second"], calls["third"]) == (0, 1)


@pytest.mark.few_pythons
def test_a_signal_switches_the_recording_of_a_program_that_runs_already(attached, python):
    app, recorder = attached(python, "--toggle-signal", "SIGUSR2")
    app.tell("first()")
    recorder.send_signal(signal.SIGUSR2)
    wait_for(lambda: app.status()["state"] == "off", "the switch")
    app.tell("second()")
    recorder.send_signal(signal.SIGUSR2)
    wait_for(lambda: [p["state"] for p in app.status()["processes"]] == ["on"], "the switch")
    app.tell("third()")
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    calls = Recording(app.folder).calls()
    assert (calls["first"], calls["second"], calls["third"]) == (1, 0, 1)
    assert app.tell("third()") == "ab", "the program goes on"


@pytest.mark.few_pythons
def test_a_program_switches_its_recording_itself(krait, record, python):
    program = f"""
        import os, sys
        sys.path.insert(0, {str(os.path.join(os.path.dirname(krait), "python"))!r})
        import krait
        def first(): pass
        def second(): pass
        def third(): pass
        def inner():
            assert krait.resume()
            first()
            assert krait.pause() and krait.pause()
            second()
            assert krait.is_recording()
            assert krait.resume() and krait.resume()
            third()
        inner()
        """
    recording = record.text(python, program, options=["--idle"])
    calls = recording.check().calls()
    assert (calls["first"], calls["second"], calls["third"]) == (1, 0, 1)
    assert not [name for name in calls if name in ("pause", "resume", "_switch")], "krait's own are not recorded"


@pytest.mark.few_pythons
def test_a_thread_may_wait_for_another_that_switches_while_it_switches(krait, record, python):
    """An audit hook of the program's runs in the middle of resume(), and waits there for a thread that calls pause()."""
    program = f"""
        import sys, threading
        sys.path.insert(0, {str(os.path.join(os.path.dirname(krait), "python"))!r})
        import krait
        def before(): pass
        def after(): pass
        def other():
            inside.acquire()
            print(krait.pause(), krait.resume())
            back.release()
        def hook(event, arguments):
            if event == "sys._current_frames" and inside.locked() and back.locked():
                inside.release()
                back.acquire()
        inside, back = threading.Lock(), threading.Lock()
        inside.acquire(), back.acquire()
        thread = threading.Thread(target=other)
        thread.start()
        before()
        krait.pause()
        sys.addaudithook(hook)
        krait.resume()
        thread.join()
        after()
        """
    recording = record.text(python, program)
    calls = recording.check().calls()
    assert recording.stdout == "True True\n" and (calls["before"], calls["after"]) == (1, 1)


def test_where_nothing_is_recorded_nothing_is_switched(krait, any_python):
    code = f"import sys; sys.path.insert(0, {os.path.join(os.path.dirname(krait), 'python')!r}); import krait; print(krait.pause(), krait.resume())"
    assert any_python.run("-c", code).stdout == "False False\n"


@pytest.mark.few_pythons
def test_a_thread_that_waits_is_said_at_the_first_start(told, python):
    app = told(python, "--idle")
    app.ctl("start")
    recording = app.end()
    (thread,) = [t for t in recording.main.threads if recording.main.thread_names.get(t.tid) == "Waiter"]
    assert "waits" in [recording.main.name_of(e) for e in thread.walk() if e.name == "python:frame"]


@pytest.mark.few_pythons
def test_workers_that_come_and_go_while_idle_leave_nothing(told, python):
    app = told(python, "--idle")
    for _ in range(30):
        app.tell("os.waitpid(os.fork() or os._exit(0), 0) and None")
    assert not list(app.folder.glob("*-*"))
    wait_for(lambda: len(app.status()["processes"]) == 1, "the end of the others")
    app.ctl("start")
    app.tell("third()")
    assert [p.calls()["third"] for p in app.end().processes] == [1]


@pytest.mark.few_pythons
def test_without_children_a_forked_child_stays_off(told, python):
    app = told(python, "--idle", "--no-children")
    child = int(app.tell("fork()"))
    assert [p["pid"] for p in app.status()["processes"]] == [app.pid]
    app.ctl("start")
    assert app.tell("third()") == "ab"
    assert child not in [p.pid for p in app.end().processes]


@pytest.mark.long
def test_the_page_says_what_is_printed(krait, any_python, tmp_path):
    status, stop, start, later, changed, part = (run.stdout for run in run_page("control.md", krait, any_python, tmp_path).values())
    assert "Recording is on for" in later and "begun" in later
    assert changed == "  records    calls, --include __main__.spin, a limited slowdown (--max-overhead)\n"
    assert "__main__.serve" in part and "load" not in part
    assert re.match(r"Recording is on for [\d.]+ m?s\n  folder ", status)
    assert (stop, start) == ("Recording is off in 1 process\n", "Recording is on in 1 process\n")
    wait_for(lambda: not list(tmp_path.glob("*/.control")), "their ends")


@pytest.mark.few_pythons
def test_what_is_recorded_can_be_changed(told, python):
    app = told(python)
    app.tell("first()")
    said = app.ctl("set", "exclude=__main__.second", "exclude=__main__.first")
    records = "  records    calls, --exclude __main__.second, --exclude __main__.first\n"
    later = f"  {app.pid} follows at its next call of a recorded function: "
    assert said.startswith(records + later), "it waits for input"
    assert later in app.ctl("status") and not app.status()["set"] and [p["set"] for p in app.status()["processes"]] == [False]
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    assert "follows" not in app.ctl("status") and app.status()["processes"][0]["set"]
    assert app.ctl("set", "exclude=__main__.second", "exclude=__main__.first") == records, "it is so already"
    app.tell("first()")
    app.tell("second()")
    app.tell("third()")
    app.ctl("set", "exclude=", "c-calls=off", "overhead=50")
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    app.tell("second()")
    recorded = app.status()["recorded"]
    assert (recorded["exclude"], recorded["c_calls"], recorded["max_overhead"]) == ([], False, 50)
    app.ctl("set", "exclude=x" + 100 * "é")
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    recording = app.end()
    recording.check(ended=False)
    calls = recording.calls()
    assert (calls["first"], calls["second"], calls["third"]) == (1, 1, 1)
    assert [event["what"] for event in recording.main.said("recording:set")] == [
        "exclude=__main__.second exclude=__main__.first c-calls=on", "c-calls=off overhead=50", "exclude=x" + 99 * "é" + "... c-calls=off overhead=50",
    ]


@pytest.mark.few_pythons
def test_keys_that_commas_divide_are_set_each(told, python):
    app = told(python)
    app.ctl("set", "include=__main__.s*,include=__main__.t[h,i]*,overhead=50,c-calls=off")
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    recorded = app.status()["recorded"]
    assert recorded["include"] == ["__main__.s*", "__main__.t[h,i]*"], "a glob's own comma stays"
    assert (recorded["max_overhead"], recorded["c_calls"]) == (50, False)
    for name in ("first", "second", "third"):
        app.tell(f"{name}()")
    calls = app.end().calls()
    assert (calls["first"], calls["second"], calls["third"]) == (0, 1, 1)


@pytest.mark.parametrize("words, reason", [
    ([], "set what? As in"),
    (["tea=5"], "is none of include=GLOB, exclude=GLOB, overhead=PERCENT, c-calls=on|off"),
    (["include=app.*,tea=5"], "'tea=5' is none of include=GLOB, exclude=GLOB, overhead=PERCENT, c-calls=on|off"),
    (["include=app.*,exlude=app.x"], "'exlude=app.x' is none of include=GLOB, exclude=GLOB, overhead=PERCENT, c-calls=on|off; did you mean exclude=?"),
    (["overhaed=5"], "; did you mean overhead=?"),
    (["overhead=much"], "'overhead=much' is no percentage"),
    (["include=__main__.*,overhead=much"], "'overhead=much' is no percentage"),
    (["c-calls=maybe"], "is neither on nor off"),
    (["include=" + "x" * 9000], "the globs take more than"),
])
def test_what_cannot_be_set_says_why(told, any_python, words, reason):
    app = told(any_python)
    before = app.status()["recorded"]
    assert reason in app.ctl("set", *words, code=1)
    assert app.status()["recorded"] == before
    app.end()


@pytest.mark.few_pythons
def test_what_is_set_holds_for_what_is_switched_on_later(told, python):
    app = told(python, "--idle", "--log", "nobody")
    app.ctl("set", "include=__main__.*", "c-calls=off")
    app.ctl("start")
    app.tell("third()")
    recording = app.end()
    assert recording.main.said("recording:set") == [], "nothing was recorded before"
    assert "--log 'nobody': no logger of that name" in app.stderr
    assert {c.module for c in recording.main.codes.values() if c.kind == "python"} == {"__main__"}
    assert recording.calls()["third"] == 1


# A thread that calls functions which were called before, and nothing new.
STEPS = OBEDIENT.replace("report(os.getpid())\nbelow", """
import time
def step(): time.sleep(0.002)
def steps():
    while True: step()
threading.Thread(target=steps, name="Steps", daemon=True).start()
time.sleep(0.1)
report(os.getpid())
sys.stdin.readline() and below""")


def follows(app, *items):
    """Sets what is recorded; the process follows, though it runs no function that is recorded and none for the first time."""
    app.ctl("set", *items)
    wait_for(lambda: app.status()["set"], "the change")


def counts_on(app):
    events = app.status()["events"]
    wait_for(lambda: app.status()["events"] > events, "events")


@pytest.mark.few_pythons
@pytest.mark.parametrize("none", ["include=nosuch*", "exclude=*"])
def test_what_leaves_out_everything_can_be_changed_again(told, python, none):
    app = told(python, text=STEPS)
    follows(app, none)
    follows(app, "include=", "exclude=")
    counts_on(app)
    follows(app, none)
    assert app.ctl("stop") == "Recording is off in 1 process\n"
    app.ctl("start")
    follows(app, "include=*.step", "exclude=")
    counts_on(app)
    assert app.end().check(ended=False).calls()["step"]


@pytest.mark.every_python
def test_an_include_that_matches_nothing_can_be_changed(told, python):
    app = told(python, "--include", "nosuch*", text=STEPS)
    follows(app, "include=*.step")
    counts_on(app)
    assert app.end().calls()["step"]


@pytest.mark.few_pythons
def test_what_leaves_out_everything_of_an_attached_program_can_be_changed_again(attached, python):
    app, recorder = attached(python, text=STEPS)
    follows(app, "include=nosuch*")
    follows(app, "include=*.step")
    counts_on(app)
    app.process.stdin.close()
    recorder.wait(60)


@pytest.mark.few_pythons
def test_a_child_forked_while_everything_is_left_out_follows_too(told, python):
    text = STEPS.replace("sys.stdin.readline() and below", """
def child():
    threading.Thread(target=steps, daemon=True).start()
    sys.stdin.readline()
    os._exit(0)
sys.stdin.readline()
if os.fork() == 0: child()
os.wait() and set""")
    app = told(python, "--include", "nosuch*", text=text)
    app.process.stdin.write("fork\n")
    app.process.stdin.flush()
    wait_for(lambda: app.ctl("set", "include=*.step") and len(app.status()["processes"]) == 2, "the child")
    assert [p.calls()["step"] > 0 for p in app.end().processes] == [True, True]


@pytest.mark.few_pythons
def test_no_thread_of_the_recorder_stays_where_an_include_matches(told, python):
    app = told(python, "--include", "__main__.step*", text=STEPS)
    names = lambda: {(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{app.pid}/task").iterdir()}
    wait_for(lambda: "krait" not in names(), "its end")
    app.end()


@pytest.mark.few_pythons
def test_a_stop_and_a_set_that_never_took_effect_are_told_at_the_end(told, python):
    """No hook runs while it waits for input, and no function is called after that."""
    app = told(python, "--no-c-calls", text="""
        import os
        print(os.getpid(), flush=True)
        os.read(0, 100)
        os._exit(0)
        """)
    said = app.ctl("set", "overhead=5")
    assert f"  {app.pid} follows at its next call of a recorded function: " in said
    said = app.ctl("stop")
    assert said.startswith(f"Recording is off in 0 processes\n  {app.pid} follows at its next call of a recorded function: ")
    assert re.match(r"Recording is off for .*, not yet in 1 process\n", app.ctl("status"))
    app.end()
    for verb in "stop", "set":
        assert f"krait ctl {verb} never took effect in 1 process: it called no recorded function after it\n" in app.stderr


@pytest.mark.few_pythons
def test_what_was_set_and_matches_nothing_is_told_at_the_end(told, python):
    app = told(python, "--exclude", "__main__.second")
    app.ctl("set", "include=__main__.*", "include=nosuch*", "exclude=neither", "exclude=__main__.first")
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    app.tell("first()")
    app.tell("third()")
    app.end()
    assert re.findall(r"krait ctl set (\S+) matched no function", app.stderr) == ["include='nosuch*'", "exclude='neither'"]
    assert "--exclude" not in app.stderr
