# SPDX-License-Identifier: Apache-2.0
"""Recordings with --kernel: the machine's tracefs, and buffers in which nothing is lost."""

import os
import subprocess
from pathlib import Path

import pytest

ROOMY = ("--kernel-ring-size", "16M")  # for what all on this machine do while krait waits for a CPU, or for a virtual one's host
IN_TRACEFS = ["unshare", "-m", "sh", "-c", 'mount -t tracefs nodev /mnt && cd /mnt && eval "$0"']


def in_tracefs(command):
    """Runs a shell command in tracefs, mounted for it alone."""
    return subprocess.run([*IN_TRACEFS, command], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", autouse=True)
def tracefs():
    if os.geteuid() != 0:
        pytest.skip("tracing the kernel needs root")
    if "\ttracefs\n" not in Path("/proc/filesystems").read_text():
        pytest.skip("this kernel has no tracefs")
    run = in_tracefs("ls instances")
    if run.returncode:
        pytest.skip(f"tracefs cannot be mounted: {run.stderr.strip()}")


@pytest.fixture
def kernel(record, any_python):
    """Records a program given as text with the kernel."""

    def run(text, *options, groups="", **more):
        option = f"--kernel={groups}" if groups else "--kernel"
        return record.text(any_python, text, options=(option, *ROOMY, *options), **more)

    return run


def assert_nested(merged, pid, count):
    """The last `count` calls of os.getppid each hold their system call."""
    inside, order = False, []
    for event in merged:
        if event["event"].startswith("c:"):
            if event["vpid"] == pid:
                inside = event["event"] == "c:call" and event["payload"]["code"]["label"] == "posix.getppid"
        elif event["common_context"]["tid"] == pid:
            order.append((event["event"], inside))
    made = [("syscall_entry_getppid", True), ("syscall_exit_getppid", True)] * count
    assert order[-2 * count :] == made, sum(not inside for _, inside in order)
