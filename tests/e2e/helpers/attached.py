# SPDX-License-Identifier: Apache-2.0
"""Recording a running program by its PID."""

import json
import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def attach(krait, tmp_path):
    """attach(pid, *options): starts krait record --pid; returns the process and the folder."""
    count = 0

    def begin(pid, *options):
        nonlocal count
        count += 1
        folder = tmp_path / f"attached{count}"
        words = [krait, "record", "--pid", pid, "-o", folder, *options]
        return subprocess.Popen([str(w) for w in words], stderr=subprocess.PIPE, text=True), folder

    return begin


# A kernel that refuses what Linux may refuse since 6.12, to write into code through /proc/PID/mem, and since 6.5, to make a stack
# grow by process_vm_writev.
REFUSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_memory(int fd)
{
    char link[64], path[64] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    return n > 4 && strncmp(path, "/proc/", 6) == 0 && strcmp(path + n - 4, "/mem") == 0;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    errno = EIO;
    return is_memory(fd) ? -1 : real(fd, bytes, n, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) { return pwrite64(fd, bytes, n, at); }

ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n, const struct iovec *to, unsigned long m, unsigned long flags)
{
    errno = EFAULT;
    return -1;
}
"""


@pytest.fixture
def refuse_writes(tmp_path, monkeypatch):
    """refuse_writes(): from here on, krait runs on such a kernel."""

    def begin():
        (tmp_path / "refuses.c").write_text(REFUSES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "refuses.so", tmp_path / "refuses.c", "-ldl"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "refuses.so"))

    return begin


def has(pid):
    """What a recording must give back: descriptors, threads, and the recording's memory."""
    maps = open(f"/proc/{pid}/maps").read()
    return sorted(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), maps.count("memfd:")


def functions(run, folder):
    return {f["name"].rpartition(".")[2]: f for f in json.loads(run("report", "--json", "--limit", 0, folder).stdout)["functions"]}


# Of a program: a child that does the work alone.
CHILD = """
def child(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    return pid
"""


def are_recorded(folder, pids):
    return all(any(s.stat().st_size for s in folder.glob(f"*-{pid}/thread*")) for pid in pids)


def seen_pid(process):
    """Of a program that unshare runs, as krait sees it: itself, or its child."""
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    found = Path(children).read_text().split()
    return int(found[0]) if found else process.pid
