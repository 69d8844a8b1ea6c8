# SPDX-License-Identifier: Apache-2.0
"""krait states of a recording whose oldest kernel events krait has dropped: --last, and --keep newest."""

import re
import subprocess

import pytest

from conftest import verb_json
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)

pytestmark = pytest.mark.usefixtures("alone")
# Runs until krait has dropped events, and a bit longer. All its threads end at one time: on a loaded machine the end of Python takes
# longer than what is kept.
PROGRAM = """
import glob, os, threading, time
over = threading.Event()
def dropped(): return glob.glob({below!r} + "/**/carried_0", recursive=True)
def busy():
    limit = time.time() + 60
    while time.time() < limit and not dropped(): sum(range(20000))
    end = time.time() + 0.3
    while time.time() < end: sum(range(20000))
    over.set()
    while True: sum(range(20000))
def sleeper():
    over.wait()
    os._exit(0)
for f in (busy, sleeper): threading.Thread(target=f, name=f.__name__).start()
"""


# A kernel that does not trace with the program's counter.
REFUSES = """
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (n == 7 && !memcmp(bytes, "x86-tsc", n)) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_write, fd, bytes, n);
}
"""


@pytest.fixture(params=["counter", "mono"])
def clock(request, tmp_path, monkeypatch):
    """With what clock the kernel traces."""
    if request.param == "mono":
        (tmp_path / "refuses.c").write_text(REFUSES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "refuses.so", tmp_path / "refuses.c"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "refuses.so"))
    return request.param


@pytest.mark.parametrize("limit", [("--last", "200ms"), ("--max-size", "4M", "--keep", "newest")], ids=["last", "newest"])
def test_what_is_kept_knows_the_programs_threads(krait, kernel, tmp_path, limit, clock):  # noqa: F811
    path = kernel(PROGRAM.format(below=str(tmp_path)), *limit).path
    threads = {t["name"]: t for t in verb_json(krait, "states", path)["threads"]}
    assert (path / "kernel" / "carried_0").exists()
    assert {"busy", "sleeper"} <= set(threads) and len(threads) == 3, threads
    assert len({t["pid"] for t in threads.values()}) == 1 and threads["busy"]["pid"]
    assert threads["busy"]["on_cpu_ns"]
    # It runs at the end alone: in which call it waited is known from events that are gone.
    assert threads["sleeper"]["blocked_lock_ns"] and not threads["sleeper"]["unknown_ns"], threads["sleeper"]
    assert verb_json(krait, "path", path, "--thread", "sleeper")["path"][0]["kind"] != "unknown"


def test_both_parts_begin_at_one_time(krait, kernel, tmp_path, clock, info):  # noqa: F811
    run = kernel(PROGRAM.format(below=str(tmp_path)), "--last", "200ms")
    facts, states = info(run.path), verb_json(krait, "states", run.path)
    metadata = (run.path / "kernel" / "metadata").read_text()
    assert ("freq = 1000000000;" in metadata) == (clock == "mono")
    assert abs(states["time_ns"] - facts["kept_from_ns"]) <= 100_000  # clocks are compared by the time of day
    assert 150_000_000 < states["duration_ns"]
    told = int(re.search(r"kernel +([\d,]+) events", run.stderr)[1].replace(",", ""))
    beside = sum(c["count"] for c in info(run.path / "kernel")["event_classes"] if c["name"].startswith(("krait_", "lttng_")))
    assert 0 <= told - (facts["kernel"]["events"] - beside) < 1000, (told, beside)
