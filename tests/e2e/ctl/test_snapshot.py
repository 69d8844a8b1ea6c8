# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a running recording, and krait record --last: a flight recorder."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest

from pages import run_page
from recording import Recording
from running import wait_for
from told import attached, told  # noqa: F401  (attached, told: fixtures)

# Works at each line of its input; a thread waits all the time.
WORKER = """
import os, sys, threading, time
def report(what): print(what, flush=True)
def waits(): threading.Event().wait()
def leaf(i): return i + 1
def work(n):
    for i in range(n): leaf(i)
    return n
def work_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: work(1000)
def outer(): return work(10)
def below():
    for line in sys.stdin: eval(line)
def fork():
    if os.fork() == 0:
        work(10)
        os._exit(0)
    return os.waitpid(-1, 0) and None
threading.Thread(target=waits, name="Waiter", daemon=True).start()
report(os.getpid())
below()
"""


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def worker(told):  # noqa: F811
    return lambda python, *options: told(python, *options, text=WORKER)


@pytest.mark.few_pythons
def test_a_snapshot_is_a_whole_recording(worker, python, run, report):
    app = worker(python)
    app.tell("outer()")
    said = app.ctl("snapshot")
    folder = app.folder.with_name("trace1-snapshot-1")
    assert re.fullmatch(rf"Snapshot of [\d.]+ \w+, written in [\d.]+ \w+: {folder}\n", said)
    taken = Recording(folder).check(ended=False)
    calls = taken.calls()
    assert (calls["outer"], calls["work"], calls["leaf"]) == (1, 1, 10)
    assert taken.main.ending == ("stop", -1) and taken.main.thread_names[app.pid] == "MainThread"
    assert {f["name"] for f in report(folder)} >= {"outer", "leaf"}
    app.tell("outer()")
    assert Recording(folder).calls()["outer"] == 1, "it does not grow"
    assert app.end().check(ended=False).calls()["outer"] == 2, "and the recording goes on"


@pytest.mark.few_pythons
def test_the_last_seconds_have_stacks_and_names_from_before(worker, python):
    app = worker(python, "--last", "1s")
    app.tell("work(1)")
    app.tell("time.sleep(2.5)")
    app.tell("work(20)")
    taken = Recording(json.loads(app.ctl("snapshot", "--json"))["snapshot"])
    assert taken.calls()["leaf"] < 21 + 1 and taken.calls()["work"] == 1, "the first one is too old"
    by_name = {taken.main.thread_names[t.tid]: t for t in taken.main.threads}
    open_now = {name: taken.main.shape(thread, told=False)[1] for name, thread in by_name.items()}
    assert "below" in open_now["MainThread"] and "waits" in open_now["Waiter"], "calls from before are open"
    app.end()


DROPPED = """
import os, sys, threading, time
def report(what): print(what, flush=True)
def leaf(i, go=None): return go.wait() if go else i
def waits():
    leaf(0, go)
    threading.Event().wait()
def work(n):
    for i in range(n): leaf(i)
go = threading.Event()
threading.Thread(target=waits, daemon=True).start()
report(os.getpid())
for line in sys.stdin: eval(line)
"""


@pytest.mark.pythons(least=(3, 12))
@pytest.mark.few_pythons
def test_a_function_that_max_overhead_drops_does_not_stay_open(told, info, python):  # noqa: F811
    """Another thread is in it then, whose end of it is not recorded."""
    app = told(python, "--last", "300ms", "--max-overhead", "5", text=DROPPED)
    app.tell("work(400_000)")
    app.tell("go.set()")

    def taken_when_its_calls_are_old():
        """A packet may hold what a thread did in a second; it is kept whole."""
        app.tell("time.sleep(0.5)")
        taken = Recording(json.loads(app.ctl("snapshot", "--json"))["snapshot"])
        return None if taken.calls()["leaf"] else taken

    taken = wait_for(taken_when_its_calls_are_old, "a snapshot without its calls")
    assert "leaf" in {f["name"] for f in info(taken.path)["omitted"]}
    waiting = next(t for t in taken.main.threads if t.tid != app.pid)
    still_open = taken.main.shape(waiting, told=False)[1]
    assert "waits" in still_open and "leaf" not in still_open, still_open
    app.end()


def test_the_files_of_a_flight_recorder_are_bounded(worker, any_python, rounds):
    app = worker(any_python, "--last", "1M", "--no-c-calls")
    sizes = []
    for _ in range(rounds(5, 100)):
        app.tell("work(200_000)")
        sizes.append(size_of(app.folder))
    assert app.status()["dropped"] > 0 and max(sizes) < 4 << 20
    answer = json.loads(app.ctl("snapshot", "--json"))
    assert (1 << 20) * 0.8 < answer["bytes"] < (1 << 20) * 1.5
    Recording(answer["snapshot"]).check(ended=False)
    recording = app.end()
    assert size_of(recording.path) < 4 << 20
    recording.check(ended=False)


@pytest.mark.long
def test_by_time_too_and_ended_processes_go(worker, any_python):
    app = worker(any_python, "--last", "200ms")
    app.tell("fork()")
    wait_for(lambda: len(list(app.folder.glob("*-*"))) == 2, "both")
    sizes = []

    def gone():
        app.tell("work_for(0.3)")
        sizes.append(size_of(app.folder))
        return len(list(app.folder.glob("*-*"))) == 1

    wait_for(gone, "the end of the ended")
    app.ctl("snapshot")
    taken = Recording(app.folder.with_name("trace1-snapshot-1"))
    assert len(taken.processes) == 1
    app.end().check(ended=False)


def test_snapshots_at_once_get_folders_of_their_own(worker, any_python):
    app, said = worker(any_python), []
    app.tell("outer()")
    threads = [threading.Thread(target=lambda: said.append(app.ctl("snapshot"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folders = {line.split()[-1] for line in said}
    assert len(folders) == 6
    assert [Recording(folder).calls()["outer"] for folder in folders] == [1] * 6


def test_the_folder_is_of_ones_choice_and_new(worker, any_python, record):
    app = worker(any_python)
    app.ctl("snapshot", "-o", str(record.folder / "here"))
    done = subprocess.run([app.krait, "ctl", str(app.pid), "snapshot", "-o", "there"], cwd=record.folder)
    assert done.returncode == 0 and Recording(record.folder / "there").processes
    assert "here is there already; choose another folder with -o" in app.ctl("snapshot", "-o", str(record.folder / "here"), code=1)
    assert "cannot make the folder" in app.ctl("snapshot", "-o", str(record.folder / "no" / "such"), code=1)
    assert "-o is for snapshot only" in app.ctl("stop", "-o", "x", code=2)
    assert app.status()["state"] == "on"


def test_a_full_disk_leaves_nothing_and_the_recording_runs_on(worker, any_python, small_disk):
    app = worker(any_python)
    app.tell("work(200_000)")
    wait_for(lambda: app.status()["bytes"] > 1 << 20, "events on disk")
    folder = small_disk(256 * 1024)
    said = app.ctl("snapshot", "-o", str(folder / "taken"), code=1)
    assert "cannot write the snapshot" in said and "No space left" in said
    assert not list(folder.glob("taken*"))
    app.tell("outer()")
    assert app.end().check(ended=False).calls()["outer"] == 1


@pytest.mark.few_pythons
def test_a_signal_takes_one_and_does_not_reach_the_program(worker, python):
    app = worker(python, "--snapshot-signal", "SIGUSR1")
    app.tell("outer()")
    os.kill(app.process.pid, signal.SIGUSR1)
    folder = app.folder.with_name("trace1-snapshot-1")
    wait_for(folder.exists, "the snapshot")
    assert Recording(folder).calls()["outer"] == 1
    app.end()
    assert f"in {folder}" in app.stderr


@pytest.mark.few_pythons
def test_a_signal_takes_one_of_a_program_that_runs_already(attached, python):  # noqa: F811
    app, recorder = attached(python, "--snapshot-signal", "SIGUSR1", text=WORKER)
    app.tell("outer()")
    recorder.send_signal(signal.SIGUSR1)
    folder = app.folder.with_name("trace1-snapshot-1")
    wait_for(folder.exists, "the snapshot")
    assert Recording(folder).calls()["outer"] == 1
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0 and f"in {folder}" in said, said


@pytest.mark.few_pythons
def test_a_program_takes_one_of_itself(krait, record, python):
    program = f"""
        import os, sys
        sys.path.insert(0, {str(os.path.join(os.path.dirname(krait), "python"))!r})
        import krait
        def outer(): return 1
        outer()
        print(krait.snapshot())
        print(krait.snapshot("mine"))
        """
    recording = record.text(python, program)
    first, mine = recording.stdout.splitlines()
    assert first == f"{recording.path}-snapshot-1" and mine == str(record.folder / "mine")
    assert [Recording(path).calls()["outer"] for path in (first, mine)] == [1, 1]
    assert python.run(record.folder / "app.py", cwd=record.folder).stdout == "None\nNone\n"


@pytest.mark.few_pythons
def test_a_program_that_cannot_take_one_of_itself_gets_a_warning_and_runs_on(krait, record, python):
    """Whether the collector refuses, as on a full disk, or does not answer; also where warnings are errors."""
    program = f"""
        import os, resource, signal, sys, warnings
        sys.path.insert(0, {str(os.path.join(os.path.dirname(krait), "python"))!r})
        import krait
        def taken(*args):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                print(krait.snapshot(*args), *(f"{{w.category.__name__}} {{w.message}} {{w.filename == __file__}}" for w in said))
        os.mkdir("mine")
        taken("mine")
        taken("file/below")
        try:
            krait.snapshot(3)
        except TypeError:
            print("TypeError")
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit))
        taken()
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        warnings.simplefilter("error")
        print(krait.snapshot("mine"))
        """
    (record.folder / "file").write_text("")
    recording = record.text(python, program)
    there, below, wrong, silent, strict = recording.stdout.splitlines()
    folder = record.folder
    assert there == f"None RuntimeWarning krait.snapshot: {folder / 'mine'} is there already; choose another path True"
    assert below.startswith("None RuntimeWarning krait.snapshot: ") and "Not a directory" in below and below.endswith("True")
    assert wrong == "TypeError"
    assert silent.startswith("None RuntimeWarning krait.snapshot: the recording's collector does not answer: ") and silent.endswith("True")
    assert strict == "None" and "krait.snapshot: " in recording.stderr


def test_last_and_what_it_does_not_go_with(run):
    for words, reason in (
        (["--last", "10x"], "--last: '10x' is not a time"),
        (["--last", "5KB"], "--last is too small: 1M at least"),
        (["--last", "1s", "--keep", "first", "--max-size", "2M"], "does not go with --keep first"),
        (["--last", "1M", "--max-size", "2M"], "leave out --max-size"),
        (["--toggle-signal", "SIGUSR1", "--snapshot-signal", "SIGUSR1"], "are the same signal"),
        (["--snapshot-signal", "SIGKILL"], "is not one of SIGUSR1|SIGUSR2"),
    ):
        assert reason in run("record", *words, "--", "true", code=2).stderr


def test_a_time_and_a_size_bound_it_together(worker, any_python):
    app = worker(any_python, "--last", "1h", "--max-size", "2M")
    for _ in range(4):
        app.tell("work(200_000)")
    assert app.status()["dropped"] > 0 and size_of(app.folder) < 2 << 20
    app.end()


@pytest.mark.long
def test_the_page_says_what_is_printed(krait, any_python, tmp_path):
    taken, report, watched = (run.stdout for run in run_page("flight.md", krait, any_python, tmp_path).values())
    assert re.match(r"krait record: snapshot in \S*/watched-snapshot-1: call:__main__.answer>100ms, a call", watched)
    assert taken.startswith("Snapshot of ") and taken.endswith(f": {tmp_path / 'slow'}\n")
    assert "__main__.answer" in report
    wait_for(lambda: not list(tmp_path.glob("*/.control")), "the end")
