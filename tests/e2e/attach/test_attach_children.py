# SPDX-License-Identifier: Apache-2.0
"""krait record --pid --children: a process with all the Python programs that it has started, in one recording."""

import json
import os
import signal
import subprocess

import pytest

from attached import CHILD, are_recorded, attach, has  # noqa: F401  (attach: a fixture)
from package import PACKAGE
from recording import Recording
from running import wait_for
from works import STAGES, by_id

# What is below `begins` is there before the recording; the files `fork` and `spawn` ask for one more of each.
FAMILY = """
import json, os, signal, subprocess, sys, time
def inner(n): return n + 1
def works():
    while not os.path.exists("stop"):
        for i in range(100): inner(i)
        time.sleep(0.001)
def first(): works()
def second(): works()
def stopped(): works()
def late(): works()
def spawned():
    open("begin", "w").close()
    os.rename("begin", "begun")
    works()
def later(): works()
""" + CHILD + """
def spawn(work): return subprocess.Popen([sys.executable, __file__, work.__name__]).pid
if sys.argv[1:]:
    globals()[sys.argv[1]]()
    sys.exit()
begins = {"first": child(first), "second": child(second), "spawned": spawn(spawned), "stopped": child(stopped),
          "sleep": subprocess.Popen(["sleep", "600"]).pid, "gone": child(lambda: None)}
os.kill(begins["stopped"], signal.SIGSTOP)
while not os.path.exists("begun"): time.sleep(0.001)
while os.waitid(os.P_PID, begins["gone"], os.WEXITED | os.WNOWAIT) is None: pass
print(os.getpid(), json.dumps(begins), flush=True)
asked = {"fork": lambda: child(late), "spawn": lambda: spawn(later)}
while not os.path.exists("stop"):
    for i in range(100): inner(i)
    time.sleep(0.001)
    for name in [n for n in asked if os.path.exists(n)]: asked.pop(name)()
os.kill(begins["sleep"], signal.SIGTERM)
os.kill(begins["stopped"], signal.SIGCONT)
try:
    while True: os.wait()
except ChildProcessError: pass
print("done", True, flush=True)
"""


class Family:
    def __init__(self, app):
        self.app, self.pid, self.children = app, app.pid, json.loads(app.ready)
        self.recorded = [self.pid, *(self.children[name] for name in ("first", "second", "spawned"))]

    def before(self):
        return {pid: has(pid) for pid in self.recorded}


@pytest.fixture
def family(programs, python):
    yield Family(programs.start(python, FAMILY))
    (programs.folder / "stop").touch()


def called(folder):
    """Of each process the functions that were called, or open."""
    return {p.pid: {c.qualname for c in p.codes.values()} for p in Recording(folder).processes}


def finish(family, tmp_path):
    (tmp_path / "stop").touch()
    assert (family.app.process.stdout.read(), family.app.process.wait(30)) == ("done True\n", 0)


@pytest.mark.few_pythons
def test_a_process_is_recorded_with_all_that_it_has_started_and_starts(family, attach, tmp_path):  # noqa: F811
    before = family.before()
    krait, folder = attach(family.pid, "--children")
    wait_for(lambda: are_recorded(folder, family.recorded), "the recording of each")
    for name in "fork", "spawn":
        (tmp_path / name).touch()
    wait_for(lambda: len({s.parent for s in folder.glob("*/thread*")}) >= 6, "the recording of those that begin later")
    os.kill(family.children["first"], signal.SIGKILL)
    del before[family.children["first"]]
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "recorded the processes for" in said, said
    found = called(folder)
    for name in "first", "second", "spawned":
        assert {name, "works", "inner"} <= found.pop(family.children[name])
    assert "fork" in found.pop(family.pid)
    assert len(found) == 2 and [sum(name in names for names in found.values()) for name in ("late", "later", "stopped")] == [1, 1, 0]
    wait_for(lambda: {pid: has(pid) for pid in before} == before, "the end of what the recording needed")
    finish(family, tmp_path)


@pytest.mark.few_pythons
def test_a_child_that_cannot_be_recorded_is_named_with_its_reason(family, attach, tmp_path):  # noqa: F811
    """What runs no Python, or has ended, is passed over."""
    krait, folder = attach(family.pid, "--children")
    stopped = family.children["stopped"]
    assert krait.stderr.readline() == f"krait record: process {stopped} is stopped; continue it: kill -CONT {stopped}\n"
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    assert not any(f"process {family.children[name]} " in said for name in ("sleep", "gone")), said
    assert sorted(called(folder)) == sorted(family.recorded)
    finish(family, tmp_path)


@pytest.mark.few_pythons
def test_without_the_option_only_the_process_itself_is(family, attach, tmp_path):  # noqa: F811
    krait, folder = attach(family.pid, "--for", "300ms")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "recorded the process for" in said, said
    assert list(called(folder)) == [family.pid]
    finish(family, tmp_path)


@pytest.mark.few_pythons
def test_the_end_of_all_ends_the_recording_also_where_nobody_waits_for_the_process(family, attach, tmp_path):  # noqa: F811
    krait, folder = attach(family.pid, "--children")
    wait_for(lambda: are_recorded(folder, family.recorded), "the recording of each")
    (tmp_path / "stop").touch()
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    finish(family, tmp_path)


@pytest.mark.few_pythons
def test_the_process_itself_need_not_run_python(programs, attach, python, tmp_path):  # noqa: F811
    """The recording ends with the last of its programs."""
    (tmp_path / "app.py").write_text(FAMILY)
    words = " ".join([*python.prefix, python.exe, "app.py"])
    app = programs.add(["sh", "-c", f"{words} & wait"])
    family = Family(app)  # noqa: F841
    shell = app.process.pid
    refused, folder = attach(shell)
    assert f"process {shell} runs " in refused.communicate(timeout=60)[1] and refused.returncode == 1 and not folder.exists()
    krait, folder = attach(shell, "--children")
    wait_for(lambda: are_recorded(folder, family.recorded), "the recording of each")
    finish(family, tmp_path)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and f"process {shell} " not in said, said
    assert sorted(called(folder)) == sorted(family.recorded)


def test_where_none_runs_python_that_is_the_reason(attach, programs, tmp_path):  # noqa: F811
    app = programs.add(["sh", "-c", "echo $$; sleep 600 & wait"])
    krait, folder = attach(app.pid, "--children")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 1 and f"neither process {app.pid} nor a process that it started runs Python" in said and not folder.exists(), said
    assert subprocess.run(["pkill", "-P", str(app.pid)], check=False).returncode == 0


def test_each_process_is_recorded_when_krait_attach_returns(family, python, tmp_path):
    text = """
import sys, krait, os
with krait.attach(int(sys.argv[1]), "trace", children=True) as family: pass
print(family.summary)
"""
    done = python.run("-c", text, family.pid, env={**os.environ, **PACKAGE}, cwd=tmp_path)
    assert done.returncode == 0 and "kill -CONT" in done.stdout, done.stderr
    assert sorted(called(tmp_path / "trace")) == sorted(family.recorded)
    finish(family, tmp_path)


WORKERS = """
import json, multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import ThreadPool
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool, ProcessPoolExecutor(1, mp_context=context) as executor, ThreadPool(1) as threads:
        def work(): return pool.apply(os.getpid), executor.submit(os.getpid).result(), threads.apply(os.getpid)
        print(os.getpid(), json.dumps(work()), flush=True)
        while not os.path.exists("stop"):
            work()
            time.sleep(0.001)
        for i in range(3): work()
"""


@pytest.mark.few_pythons
def test_workers_that_wait_for_work_are_seen_to_start_it(programs, attach, python, tmp_path):
    app = programs.start(python, WORKERS)
    pids = json.loads(app.ready)
    krait, folder = attach(app.pid, "--children")
    wait_for(lambda: are_recorded(folder, pids), "the recording of each")
    (tmp_path / "stop").touch()
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    works = by_id(Recording(folder)).values()
    starters = [dict(stages)["work:start"] for stages in works if [stage for stage, _ in stages] == STAGES]
    assert len(set(starters)) == 3 and {*pids[:2]} < {*starters} and app.pid not in starters


@pytest.mark.parametrize("words", ["record --pid {} --sample --children", "dump --children {}"])
def test_a_process_without_python_in_it_or_below_is_told(krait, tmp_path, words):
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        done = subprocess.run([krait, *words.format(sleeper.pid).split()], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        sleeper.kill()
    assert done.returncode and f"neither process {sleeper.pid} nor a process that it started runs Python" in done.stderr
    assert "--children" not in done.stderr


@pytest.mark.parametrize(
    "options, said",
    [
        (["--children", "--", "true"], "--children needs --sample or --pid"),
        (["--pid", "1", "--children", "--no-children"], "--children and --no-children exclude each other"),
    ],
)
def test_the_option_needs_a_process(krait, options, said):
    done = subprocess.run([krait, "record", *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr
