# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while krait record --pid has a thread stopped."""

import signal
import subprocess

import pytest

from attached import attach  # noqa: F401  (a fixture)
from running import wait_for

# Makes krait send a signal just before it lets go of a thread that it has stopped, if the signals before that are handled, so that none of
# them are taken for one. A byte of the file `sent` is one signal, one of `handled` too.
SENDS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

static long size(const char *path)
{
    struct stat file;
    return stat(path, &file) ? 0 : file.st_size;
}

static void send(void)
{
    if (size(getenv("SENT")) != size(getenv("HANDLED")))
        return;
    int fd = open(getenv("SENT"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(fd, "x", 1) != 1 || kill(atoi(getenv("SENT_TO")), atoi(getenv("SIGNAL"))))
        abort();
    close(fd);
}

long ptrace(enum __ptrace_request request, ...)
{
    long (*real)(enum __ptrace_request, pid_t, void *, void *) = dlsym(RTLD_NEXT, "ptrace");
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    if (request == PTRACE_DETACH)
        send();
    return real(request, pid, address, data);
}
"""

# Handlers of Python run in the main thread, once that no longer waits.
HANDLES = """
import ctypes, os, signal, sys, threading, time
def note(file, text="x"):
    with open(file, "a") as to:
        to.write(text)
def handle(number, frame):
    note("handled", "y" if os.path.exists("told") else "x")
signal.signal(signal.SIGUSR1, handle)
def others():
    while True:
        time.sleep(60)
for _ in range(int(sys.argv[2])):
    threading.Thread(target=others, daemon=True).start()
waits = {"pause": signal.pause, "sleep": lambda: time.sleep(60), "read": lambda: os.read(os.open("wake", os.O_RDWR), 1),
         "loop": lambda: sum(range(100)), "c": ctypes.CDLL(None).pause}[sys.argv[1]]
if sys.argv[1] == "read":
    os.mkfifo("wake")
    signal.siginterrupt(signal.SIGUSR1, sys.argv[3] == "interrupts")
print(os.getpid(), flush=True)
while True:
    waits()
    if sys.argv[1] == "c":
        note("returned")
"""


class Signals:
    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch

    def send(self, app, number=signal.SIGUSR1):
        """From here on, krait does."""
        (self.folder / "sends.c").write_text(SENDS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / "sends.so", self.folder / "sends.c", "-ldl"], check=True)
        files = {"LD_PRELOAD": self.folder / "sends.so", "SENT": self.folder / "sent", "HANDLED": self.folder / "handled"}
        for name, value in {**files, "SENT_TO": app.pid, "SIGNAL": int(number)}.items():
            self.monkeypatch.setenv(name, str(value))

    def noted(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def signals(tmp_path, monkeypatch):
    return Signals(tmp_path, monkeypatch)


@pytest.mark.parametrize("waits,threads", [("pause", 0), ("sleep", 0), ("read", 0), ("loop", 0), ("pause", 2), ("loop", 2)])
def test_a_signal_to_a_stopped_program_is_handled_once_and_at_once(programs, attach, signals, python, rounds, waits, threads):  # noqa: F811
    app = programs.start(python, HANDLES, waits, threads, "interrupts")
    signals.send(app)
    for i in range(rounds(2, 50)):
        krait, _ = attach(app.pid, "--for", "20ms")
        assert krait.wait(60) == 0, krait.stderr.read()
        assert len(signals.noted("sent")) > i
        wait_for(lambda: len(signals.noted("handled")) >= len(signals.noted("sent")), "the handler")
    assert signals.noted("handled") == signals.noted("sent")


def test_a_call_that_signals_do_not_interrupt_goes_on(programs, attach, signals, any_python, tmp_path):  # noqa: F811
    """SA_RESTART: the handler of Python runs when the call returns."""
    app = programs.start(any_python, HANDLES, "read", 0, "restarts")
    signals.send(app)
    krait, _ = attach(app.pid, "--for", "20ms")
    assert krait.wait(60) == 0 and signals.noted("sent") == "x" and not signals.noted("handled")
    (tmp_path / "told").touch()
    (tmp_path / "wake").write_text("w")
    wait_for(lambda: signals.noted("handled") == "y", "the handler")


def test_a_signal_that_is_ignored_interrupts_nothing(programs, attach, signals, any_python):  # noqa: F811
    app = programs.start(any_python, HANDLES, "c", 0)
    signals.send(app, signal.SIGCHLD)
    krait, _ = attach(app.pid, "--for", "20ms")
    assert krait.wait(60) == 0 and signals.noted("sent") == "x" and not signals.noted("returned")
    app.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: signals.noted("returned") == "x", "the end of the wait")
