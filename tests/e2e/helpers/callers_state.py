# SPDX-License-Identifier: Apache-2.0
"""What the tests' caller set for himself does not reach the programs that they run, and nothing that they run outlives them."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

MARK = "KRAIT_TEST"  # in the environment of all that a process of pytest starts: /ITS_PID, of a worker /CONTROLLER/ITS_PID


def forget():
    """Once in each process of pytest, before it starts others."""
    for name in [n for n in os.environ if n.startswith(("PYTHON", "LC_")) or n in ("NO_COLOR", "COLUMNS", "LINES", "LANG", "LANGUAGE")]:
        del os.environ[name]
    os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
    os.environ[MARK] = f"{os.environ.get(MARK, '') if 'PYTEST_XDIST_WORKER' in os.environ else ''}/{os.getpid()}"
    os.umask(0o022)
    if threading.current_thread() is threading.main_thread():
        ordinary_signals()


def ordinary_signals():
    """Ignored and blocked signals are inherited (by what nohup starts, or `&` in a script); handlers are not."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    pythons_own = {signal.SIGPIPE, signal.SIGXFSZ}  # subprocess gives them back
    for number in signal.valid_signals() - pythons_own:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else lambda number, frame: None)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)


def interrupt(number, frame):
    """pytest ends as after Ctrl-C, fixtures undone."""
    raise KeyboardInterrupt


def processes():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def started_here(pid, below):
    """Whether this process, or with `below` one that it started, started that one."""
    mark = f"\0{MARK}={os.environ[MARK]}".encode()
    try:
        environment = b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    except OSError:
        return False
    return mark + b"\0" in environment or (below and mark + b"/" in environment)


def wait_for(pids, below, seconds):
    """Those that have not ended then."""
    until = time.monotonic() + seconds
    while (pids := [pid for pid in pids if started_here(pid, below)]) and time.monotonic() < until:
        time.sleep(0.01)
    return pids


def end_processes(since=frozenset(), below=False, grace=0.5):
    """Kills what was started here, is not among `since`, and does not end by itself; returns what it was."""
    left = {}
    # What is killed may have started another one meanwhile.
    while mine := [pid for pid in processes() - since - left.keys() - {os.getpid()} if started_here(pid, below)]:
        for pid in wait_for(mine, below, grace):
            with contextlib.suppress(OSError):
                left[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                os.kill(pid, signal.SIGKILL)
        wait_for(left, below, 5)
    return [words for words in left.values() if words]
