# SPDX-License-Identifier: Apache-2.0
"""krait record --pid at random instants of programs that are in malloc, in the loader, or in fork most of the time."""

import os
import random
import subprocess
import time

import pytest

from recording import Recording
from running import wait_for

# Each counts what it did, and says at the end whether all of it was right.
ALLOCATES = """
import os, threading
wrong = []
def churn(seed):
    while not os.path.exists("stop"):
        blocks = [bytes([seed]) * n for n in (700, 5000, 70000, 300000)]
        if any(set(b) != {seed} for b in blocks): wrong.append(seed)
threads = [threading.Thread(target=churn, args=(n,)) for n in range(3)]
for t in threads: t.start()
print(os.getpid(), flush=True)
for t in threads: t.join()
print("done", not wrong, flush=True)
"""

LOADS = """
import _ctypes, ctypes, os, threading
wrong = []
def load():
    while not os.path.exists("stop"):
        handle = _ctypes.dlopen("libm.so.6", 2)
        if not _ctypes.dlsym(handle, "cos"): wrong.append(1)
        _ctypes.dlclose(handle)
thread = threading.Thread(target=load)
thread.start()
print(os.getpid(), flush=True)
load()
thread.join()
print("done", not wrong, flush=True)
"""

FORKS = """
import os
wrong = []
def child(n): return n % 7
print(os.getpid(), flush=True)
n = 0
while not os.path.exists("stop"):
    n += 1
    pid = os.fork()
    if not pid: os._exit(child(n))
    if os.waitpid(pid, 0)[1] >> 8 != n % 7: wrong.append(n)
print("done", not wrong, flush=True)
"""

PROGRAMS = {"allocates": ALLOCATES, "loads": LOADS, "forks": FORKS}


def has(pid):
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), open(f"/proc/{pid}/maps").read().count("memfd:")


@pytest.mark.few_pythons
@pytest.mark.parametrize("name", PROGRAMS)
def test_at_any_instant_the_program_goes_on(programs, krait, python, tmp_path, rounds, name):
    app = programs.start(python, PROGRAMS[name])
    before, recorded = has(app.pid), 0
    for n in range(rounds(4, 100)):
        time.sleep(random.random() / 20)
        folder = tmp_path / f"trace{n}"
        words = [krait, "record", "--pid", app.pid, "--for", "50ms", "--max-size", "20M", "-o", folder]
        done = subprocess.run([str(w) for w in words], stderr=subprocess.PIPE, text=True, timeout=60)
        if done.returncode:
            assert "no safe place" in done.stderr, done.stderr
        else:
            recorded += 1
            Recording(folder).check(ended=False)
        wait_for(lambda: has(app.pid) == before, "the end of what the recording needed")
    (tmp_path / "stop").touch()
    said = app.process.stdout.read()
    assert (app.process.wait(30), said) == (0, "done True\n") and recorded
