# SPDX-License-Identifier: Apache-2.0
"""krait record --pid --for: how long is recorded, wherever the program's threads are."""

import json
import os
import re
import signal
import subprocess

import pytest

from attached import attach  # noqa: F401  (a fixture)
from running import wait_for

# At SIGUSR1 the main thread goes on upon a stack that the program made (ucontext_t has uc_stack behind two words): there krait
# starts no thread.
ELSEWHERE = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
def calls(): pass
def runs():
    while not moved or time.monotonic() < moved + 20: calls()
moved = 0
@ctypes.CFUNCTYPE(None)
def elsewhere(): runs()
def move(*_):
    global moved
    moved = time.monotonic()
    contexts = [ctypes.create_string_buffer(8192) for _ in range(2)]
    stack = ctypes.create_string_buffer(8 << 20)
    libc.getcontext(contexts[0])
    place = ctypes.addressof(contexts[0]) + 16
    ctypes.c_void_p.from_address(place).value = ctypes.addressof(stack)
    ctypes.c_size_t.from_address(place + 16).value = len(stack)
    libc.makecontext(contexts[0], elsewhere, 0)
    libc.swapcontext(contexts[1], contexts[0])
signal.signal(signal.SIGUSR1, move)
print(os.getpid(), flush=True)
runs()
"""


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="knows ucontext_t of these processors")
def test_nothing_is_recorded_after_that_time_if_no_thread_is_at_a_safe_place(programs, attach, run, any_python):  # noqa: F811
    app = programs.start(any_python, ELSEWHERE)
    krait, folder = attach(app.pid, "--for", "1s")
    wait_for(lambda: list(folder.glob("*/thread*")), "the recording")
    os.kill(app.pid, signal.SIGUSR1)
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0 and "--for 1.000 s: the recording ends here" in said, said
    assert 0.5e9 < json.loads(run("info", "--json", folder).stdout)["duration_ns"] < 5e9
    assert float(re.search(r"recorded the process for ([\d.]+) s", said)[1]) < 5


# For three seconds from SIGUSR1 on no other thread runs Python code, krait's neither.
LATE = """
import ctypes, os, signal
def calls(): pass
def holds(*_): ctypes.PyDLL(None).usleep(3_000_000)
signal.signal(signal.SIGUSR1, holds)
print(os.getpid(), flush=True)
while True: calls()
"""


def test_the_time_counts_from_when_the_process_is_recorded(programs, attach, run, any_python):  # noqa: F811
    app = programs.start(any_python, LATE)
    os.kill(app.pid, signal.SIGUSR1)
    krait, folder = attach(app.pid, "--for", "1s")
    said = krait.communicate(timeout=60)[1]
    assert krait.returncode == 0, said
    assert json.loads(run("info", "--json", folder).stdout)["duration_ns"] > 0.9e9
    assert float(re.search(r"recorded the process for ([\d.]+) s", said)[1]) >= 1


def test_the_time_of_one_that_was_off_counts_from_when_it_is_recorded(programs, attach, run, krait, any_python):  # noqa: F811
    app = programs.start(any_python, LATE)
    recorder, folder = attach(app.pid, "--for", "1s", "--idle")
    assert "ready and off" in recorder.stderr.readline()
    os.kill(app.pid, signal.SIGUSR1)
    subprocess.run([krait, "ctl", str(app.pid), "start"], capture_output=True, timeout=60)
    said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    assert json.loads(run("info", "--json", folder).stdout)["duration_ns"] > 0.9e9
