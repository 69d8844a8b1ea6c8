# SPDX-License-Identifier: Apache-2.0
"""Programs in namespaces of their own: where the recording's path leads nowhere, a process asks the collector."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import Recorder, found_pythons
from recording import Recording
from running import BEGINS_OTHERS, wait_for

NAMESPACES = {
    "pid": ["--pid", "--fork"],
    "pid and proc": ["--pid", "--fork", "--mount-proc"],
    "user": ["--user", "--map-root-user"],
    "user, pid and proc": ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
    "user without a name": ["--user"],
    "network": ["--net"],
    "user and network": ["--user", "--map-root-user", "--net"],
    "all of a container's but its files": ["--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--cgroup"],
}

APP = """
import os, subprocess, sys, threading

def forked(): pass
def executed(): pass
def threaded(): pass

if len(sys.argv) > 1:
    executed()
else:
    if not (pid := os.fork()):
        forked()
        os._exit(3)
    os.waitpid(pid, 0)
    thread = threading.Thread(target=threaded)
    thread.start()
    thread.join()
    subprocess.run([sys.executable, __file__, "again"], env={}, check=True)
"""


def unshare(python, names):
    words = ["unshare", *NAMESPACES[names]]
    done = subprocess.run([*python.prefix, *words, "true"], capture_output=True, text=True)  # a root of its own may forbid it
    if done.returncode:
        pytest.skip(f"no such namespace can be made here: {done.stderr.strip()}")
    return words


def check_app(run):
    assert run.status == 0, run.stderr
    calls = run.check(ended=False).calls()
    assert {name: calls.get(name, 0) for name in ("forked", "executed", "threaded")} == {"forked": 1, "executed": 1, "threaded": 1}
    assert len(run.processes) == 3


@pytest.mark.parametrize("names", NAMESPACES)
def test_python_in_namespaces_is_recorded_with_its_children(record, any_python, names):
    record.script(APP)
    check_app(record.words(any_python, *unshare(any_python, names), any_python.exe, "app.py"))


@pytest.mark.every_python
def test_every_python_in_another_network_namespace_is_recorded(record, python):
    """In a root of its own it cannot be in a user namespace too: unshare(2)."""
    record.script(APP)
    check_app(record.words(python, *unshare(python, "network" if python.prefix else "user and network"), python.exe, "app.py"))


def test_a_recording_far_below_is_reached_from_another_network_namespace(record, any_python, tmp_path):
    """Its path is longer than the address of a socket may be."""
    record.script(APP)
    trace = tmp_path.joinpath(*["folder" * 10] * 20)
    run = record.words(any_python, *unshare(any_python, "user and network"), any_python.exe, "app.py", trace=trace)
    check_app(run)
    assert not list(trace.glob(".*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_any_user_is_recorded_in_a_user_and_a_network_namespace(everyones_krait, tmp_path):
    theirs = next((p for p in found_pythons()[0] if p.origin == "system"), None)
    if not theirs:
        pytest.skip("no Python that every user may run")
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    words = ["unshare", *NAMESPACES["user and network"]]
    if subprocess.run([*as_nobody, *words, "true"], capture_output=True).returncode:
        pytest.skip("users may make no namespaces here")
    folder = Path(everyones_krait).parent / "nobodys"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    (folder / "app.py").write_text(APP)
    command = Recorder(everyones_krait, folder).command(theirs, [*words, theirs.exe, "app.py"], folder / "trace")
    done = subprocess.run([*as_nobody, *command], cwd=folder, capture_output=True, text=True, timeout=60)
    check_app(Recording(folder / "trace", done))


WAITS = """
import os, time
print(flush=True)
while not os.path.exists("killed"):
    time.sleep(0.01)
"""


def test_a_killed_collector_leaves_programs_and_recording_whole(record, info, any_python, tmp_path):
    """In another network namespace, where processes ask it by a file that nobody has removed."""
    record.script(WAITS + BEGINS_OTHERS + 'open("ended", "w").write("well")\n')
    trace = tmp_path / "trace"
    command = record.command(any_python, [*unshare(any_python, "user and network"), any_python.exe, "app.py"], trace)
    krait = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    krait.stdout.readline()
    assert stat.filemode((trace / ".join").stat().st_mode) == "srw-------"
    wait_for(lambda: list(trace.glob("*/definitions")), "the recording's begin")
    krait.send_signal(signal.SIGKILL)
    krait.wait()
    (tmp_path / "killed").touch()
    assert krait.stdout.read() == "child\nfork\n"
    assert (tmp_path / "ended").read_text() == "well"
    assert (trace / ".join").exists() and info(trace)["processes"] == 1


@pytest.mark.long
def test_lossless_waits_for_the_collector_in_a_pid_namespace(record, any_python, tmp_path):
    """The collector's number says nothing there."""
    (tmp_path / "app.py").write_text("def f(): pass\nfor _ in range(300_000): f()\n")
    run = record.words(any_python, *unshare(any_python, "pid and proc"), any_python.exe, "app.py", options=["--lossless", "--ring-size=64K", "--buffer-size=64K"])
    assert run.status == 0, run.stderr
    assert run.check(ended=False).calls()["f"] == 300_000
