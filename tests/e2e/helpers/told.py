# SPDX-License-Identifier: Apache-2.0
"""Programs that wait to be told by krait ctl."""

import json
import subprocess

import pytest

from recording import Recording
from running import wait_for

# Does what its input says, a line at a time, and answers each line with what came of it.
OBEDIENT = """
import os, sys, threading
def first(): return sum(map(int, "123"))
def second(): return sorted([3, 1, 2])
def third(): return "".join(["a", "b"])
def report(what): print(what, flush=True)
def waits(): gate.wait()
def below():
    for line in sys.stdin:
        eval(line)
def fork():
    if os.fork() == 0:
        report(os.getpid())
        below()
        os._exit(0)
    os.wait()
gate = threading.Event()
threading.Thread(target=waits, name="Waiter", daemon=True).start()
report(os.getpid())
below()
"""


class Told:
    """A recorded program that does what it is told."""

    def __init__(self, krait, process, folder, pid=None):
        self.krait, self.process, self.folder = krait, process, folder
        self.pid = pid or int(process.stdout.readline())

    def tell(self, what):
        self.process.stdin.write(f"report({what})\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def ctl(self, *words, of=None, code=0):
        done = subprocess.run([self.krait, "ctl", str(of or self.pid), *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def status(self, of=None):
        return json.loads(self.ctl("status", "--json", of=of))

    def end(self):
        _, self.stderr = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, self.stderr
        return Recording(self.folder)


@pytest.fixture
def told(krait, record):
    """told(python, *options): a Told."""
    running = []

    def start(python, *options, text=OBEDIENT, interpreter=()):
        words = [python.exe, *interpreter, record.script(text)]
        folder = record.new_trace()
        process = subprocess.Popen(record.command(python, words, folder, options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=record.folder)
        running.append(process)
        return Told(krait, process, folder)

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def attached(programs, krait, record):
    """attached(python, *options): a Told of a program that runs already, and the krait record --pid that records it."""
    recorders = []

    def start(python, *options, text=OBEDIENT):
        running = programs.start(python, text, stdin=subprocess.PIPE)
        folder = record.new_trace()
        words = [krait, "record", "--pid", running.pid, "-o", folder, *options]
        recorders.append(subprocess.Popen([str(w) for w in words], stderr=subprocess.PIPE, text=True))
        app = Told(krait, running.process, folder, pid=running.pid)
        wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
        wait_for(lambda: [p["state"] for p in app.status()["processes"]] == ["on"], "the hooks")
        return app, recorders[-1]

    yield start
    for recorder in recorders:
        recorder.kill()
        recorder.communicate()
