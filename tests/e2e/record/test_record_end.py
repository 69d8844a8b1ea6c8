# SPDX-License-Identifier: Apache-2.0
"""When krait record says that its command has ended."""

import os
import signal
import subprocess
import time
from pathlib import Path

from running import wait_for


def test_a_command_that_was_stopped_has_not_ended_then(record, any_python, events):
    """The kernel tells a stopped krait of one child alone, here not of the command's end."""
    script = record.script(
        """
        import os, time
        def f(): pass
        def until(name):
            while not os.path.exists(name): time.sleep(0.01)
        os.kill(os.getpid(), 0)
        if not (parent := os.fork()):
            if not os.fork():
                print("other", os.getpid(), flush=True)
                until("other")
            os._exit(0)
        os.waitpid(parent, 0)
        f()
        print("app", os.getpid(), flush=True)
        until("last")
        f()
        os.kill(os.getpid(), 9)
        """
    )
    command = record.command(any_python, [any_python.exe, script], trace := record.new_trace(), ["--wait"])
    krait = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=record.folder)
    pids = dict(krait.stdout.readline().split() for _ in range(2))
    app, other = int(pids["app"]), int(pids["other"])

    def wait_until(pid, state):
        wait_for(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == state, state)

    os.kill(app, signal.SIGSTOP)
    wait_until(app, "T")
    time.sleep(0.1)  # krait, told of it, may look at the time
    krait.send_signal(signal.SIGSTOP)
    wait_until(krait.pid, "T")
    (record.folder / "other").touch()
    wait_until(other, "Z")
    os.kill(app, signal.SIGCONT)
    (record.folder / "last").touch()
    wait_until(app, "Z")
    krait.send_signal(signal.SIGCONT)
    assert krait.communicate(timeout=60)[1] and krait.returncode == -9
    found = events(trace)
    of_app = [event for event in found if event["packet_context"].get("vtid") == app and event["event"].startswith("python:")]
    end = next(event for event in found if event["event"] == "process:exit" and event["payload"]["status"] == 9)
    assert int(end["time_ns"]) >= max(int(event["time_ns"]) for event in of_app)
