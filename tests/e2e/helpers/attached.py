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
