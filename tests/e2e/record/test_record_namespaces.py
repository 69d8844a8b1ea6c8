# SPDX-License-Identifier: Apache-2.0
"""Programs in namespaces of their own: where the recording's path leads nowhere, a process asks the collector."""

import subprocess

import pytest

NAMESPACES = {
    "pid": ["--pid", "--fork"],
    "pid and proc": ["--pid", "--fork", "--mount-proc"],
    "user": ["--user", "--map-root-user"],
    "user, pid and proc": ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
    "user without a name": ["--user"],
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


@pytest.mark.parametrize("names", NAMESPACES)
def test_python_in_namespaces_is_recorded_with_its_children(record, any_python, tmp_path, names):
    (tmp_path / "app.py").write_text(APP)
    run = record.words(any_python, *unshare(any_python, names), any_python.exe, "app.py")
    assert run.status == 0, run.stderr
    calls = run.check(ended=False).calls()
    assert {name: calls.get(name, 0) for name in ("forked", "executed", "threaded")} == {"forked": 1, "executed": 1, "threaded": 1}
    assert len(run.processes) == 3


@pytest.mark.long
def test_lossless_waits_for_the_collector_in_a_pid_namespace(record, any_python, tmp_path):
    """The collector's number says nothing there."""
    (tmp_path / "app.py").write_text("def f(): pass\nfor _ in range(300_000): f()\n")
    run = record.words(any_python, *unshare(any_python, "pid and proc"), any_python.exe, "app.py", options=["--lossless", "--ring-size=64K", "--buffer-size=64K"])
    assert run.status == 0, run.stderr
    assert run.check(ended=False).calls()["f"] == 300_000
