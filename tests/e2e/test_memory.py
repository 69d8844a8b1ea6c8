# SPDX-License-Identifier: Apache-2.0
"""Reading takes the same memory whatever the trace's size: mapped pages are let go of too."""

import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import large
from conftest import BUILD

PACKET = 256 * 1024
MEGABYTES = 320
EVENTS = 4 * large.events_per_packet(PACKET) * (MEGABYTES * 1000 * 1000 // 4 // PACKET)


@pytest.fixture(scope="module")
def trace():
    """In memory where there is room: it is read, and its pages counted, all the same."""
    room = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 2 * MEGABYTES * 1000 * 1000
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if room else None))
    yield large.make(folder / "trace", streams=4, count=MEGABYTES * 1000 * 1000 // 4 // PACKET, size=PACKET)
    shutil.rmtree(folder)


def peak_kib(*command):
    """The most pages that it had at once, of files and of its own, and its last line."""
    with tempfile.TemporaryFile() as out, subprocess.Popen([*map(str, command)], stdout=out) as process:
        peak = 0
        while process.poll() is None:
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if ":" in line)
            peak = max(peak, int(fields.get("VmHWM", "0 kB").split()[0]))
            time.sleep(0.002)
        assert process.returncode == 0
        out.seek(max(out.seek(0, os.SEEK_END) - 200, 0))
        return peak, out.read().decode().splitlines()[-1]


@pytest.mark.parametrize(
    "command, last",
    [
        (["{build}/krait", "info", "{trace}"], "tick"),
        (["{build}/krait", "cat", "--filter=n == 32758", "{trace}"], "tick"),
        (["{build}/docs/examples/parallel_sum", "2", "n", "{trace}"], "lost 0"),
    ],
    ids=["info", "cat", "threads"],
)
def test_memory_is_bounded_whatever_the_size(trace, command, last):
    peak, line = peak_kib(*(part.format(build=BUILD, trace=trace) for part in command))
    assert last in line
    assert peak < 64 * 1024, f"{peak} KiB for a trace of {MEGABYTES} MB"


def test_selecting_events_does_not_let_go_of_pages_that_are_read(tmp_path):
    """An event of another stream each time: the pages of all are needed again at once."""
    trace = large.make(tmp_path / "trace", streams=4, count=16, size=16 * 1024)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    done = subprocess.run([BUILD / "tests" / "batch_check", trace], capture_output=True, text=True, timeout=60)
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
    assert done.returncode == 0, done.stderr
    selected = int(done.stdout.partition("selected ")[2].split()[0])
    assert faults < selected / 2, f"{faults} page faults for {selected} events"
