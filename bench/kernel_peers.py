# SPDX-License-Identifier: Apache-2.0
"""The kernel's events without krait: what its tracing costs by itself, and under perf.

`unread` is what no recorder of the kernel can go below: the events that krait has the kernel write, in rings of the
same size that overwrite themselves and that nobody reads. perf records the same, system calls as `perf trace record` does.
"""

import atexit
import contextlib
import functools
import shutil
import signal
import subprocess
import time

import lib

RING_KIB = 4096  # a CPU, as krait's
SYSTEM_CALLS = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]
# The kernel refuses these to perf, which makes them itself (arch/x86/include/asm/trace/irq_vectors.h).
NOT_FOR_PERF = {"irq_vectors:irq_work_entry", "irq_vectors:irq_work_exit"}


@functools.lru_cache(maxsize=None)
def tracefs():
    """A mount of our own, whatever is mounted elsewhere."""
    path = lib.OUT / "tracing"
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tracefs", "none", path], check=True)
    atexit.register(subprocess.run, ["umount", path])
    return path


@functools.lru_cache(maxsize=None)
def events():
    """What krait --kernel switches on here, as folder:event: its own instance says it while it records."""
    folder = lib.OUT / "events-trace"
    shutil.rmtree(folder, ignore_errors=True)
    show = "cat %s/instances/krait-*/set_event" % tracefs()
    answer = lib.quiet([lib.KRAIT, "record", "-q", "--kernel", "-o", folder, "--", "sh", "-c", show])
    shutil.rmtree(folder, ignore_errors=True)
    if answer.returncode or not answer.stdout:
        raise RuntimeError("krait record --kernel: exit status %d, %s" % (answer.returncode, answer.stderr.strip()))
    return sorted(set(answer.stdout.split()))


@contextlib.contextmanager
def unread():
    instance = tracefs() / "instances" / "bench"
    instance.mkdir()
    try:
        (instance / "trace_clock").write_text("x86-tsc")
        (instance / "buffer_size_kb").write_text(str(RING_KIB))
        for event in events():
            (instance / "events" / event.replace(":", "/") / "enable").write_text("1")
        yield
    finally:
        (instance / "events" / "enable").write_text("0")
        instance.rmdir()


@contextlib.contextmanager
def perf():
    others = [e for e in events() if not e.startswith("syscalls:") and e not in NOT_FOR_PERF]
    data = lib.OUT / "perf.data"
    command = ["perf", "record", "-q", "-a", "-m", "%dK" % RING_KIB, "-o", data, "-e", ",".join(others + SYSTEM_CALLS)]
    with open(lib.OUT / "perf.log", "w") as log:
        child = subprocess.Popen([str(w) for w in command], stdout=log, stderr=log)
    try:
        while not data.exists() or not data.stat().st_size:  # its header is written once all events are open
            if child.poll() is not None:
                raise RuntimeError("perf record: %s" % lib.last_line(lib.OUT / "perf.log"))
            time.sleep(0.01)
        yield
    finally:
        child.send_signal(signal.SIGINT)
        child.wait()
        data.unlink(missing_ok=True)


# name -> what records the kernel while the program runs, and what that needs
PEERS = {"krait, unread": (unread, None), "krait, perf": (perf, "perf")}


def running(tool):
    """A context in which the kernel is recorded so; nothing for krait itself."""
    return PEERS[tool][0]() if tool in PEERS else contextlib.nullcontext()


def there():
    """Those that can be had here."""
    return tuple(name for name, (_, command) in PEERS.items() if not command or shutil.which(command))
