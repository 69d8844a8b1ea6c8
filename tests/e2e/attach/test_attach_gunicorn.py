# SPDX-License-Identifier: Apache-2.0
"""krait record --pid MASTER --children of gunicorn: the arbiter, its workers, and those that it forks in place of others."""

import os
import signal
from pathlib import Path

import pytest

from attached import are_recorded, attach, has  # noqa: F401  (attach: a fixture)
from recording import Recording
from running import answer_of, wait_for

# Prints the PID of gunicorn's arbiter; what a worker answers is its own.
SERVICE = """
import os
def answer(): return str(os.getpid()).encode()
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer()]
"""
SERVES = """
import os, sys
print(os.getpid(), flush=True)
os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "--log-level", "error", "--workers", "2", "--bind", "unix:socket", "service:app"])
"""


def ask(path):
    """The PID of the worker that answers."""
    return int(answer_of(path).rpartition(b"\r\n\r\n")[2])


def workers(arbiter):
    return {int(pid) for pid in Path(f"/proc/{arbiter}/task/{arbiter}/children").read_text().split()}


def of_krait(pid):
    """Threads, and the recording's memory; gunicorn opens descriptors of its own as it serves."""
    return has(pid)[1:]


def krait_files(pid):
    found = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if os.path.islink(f"/proc/{pid}/fd/{fd}"))
    return [name for name in found if "krait" in name and "socket" not in name]


@pytest.mark.long
def test_gunicorn_with_its_workers(programs, attach, any_python, venv, tmp_path):  # noqa: F811
    (tmp_path / "service.py").write_text(SERVICE)
    app = programs.start(venv(any_python, "gunicorn==23.0.0"), SERVES)
    wait_for(lambda: len(workers(app.pid)) == 2, "two workers")
    ask(tmp_path / "socket")
    first = workers(app.pid)
    before = {pid: of_krait(pid) for pid in (app.pid, *first)}
    krait, folder = attach(app.pid, "--children")
    wait_for(lambda: are_recorded(folder, [app.pid, *first]), "the recording of each")
    asked = [ask(tmp_path / "socket") for _ in range(20)]
    assert set(asked) <= first
    ended = min(first)
    os.kill(ended, signal.SIGTERM)
    new = wait_for(lambda: len(workers(app.pid) - {ended}) == 2 and workers(app.pid) - first, "a new worker").pop()
    wait_for(lambda: are_recorded(folder, [new]), "the recording of the new worker")
    while asked[-1] != new:  # either of the two may answer
        asked.append(ask(tmp_path / "socket"))
    krait.send_signal(signal.SIGINT)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    assert {p.pid for p in Recording(folder).processes} == {app.pid, *first, new}
    answered = {p.pid: p.calls()["answer"] for p in Recording(folder).processes}
    assert answered == {pid: asked.count(pid) for pid in answered}
    left = (app.pid, *(first - {ended}), new)
    wait_for(lambda: all(of_krait(pid) == before[app.pid] for pid in left), "the end of what the recording needed")
    assert not [name for pid in left for name in krait_files(pid)]
    assert ask(tmp_path / "socket") in workers(app.pid)
    os.kill(app.pid, signal.SIGTERM)
    assert app.process.wait(60) == 0
