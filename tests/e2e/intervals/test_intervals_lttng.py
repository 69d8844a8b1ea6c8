# SPDX-License-Identifier: Apache-2.0
"""A trace of LTTng's Python agent, recorded here: krait's intervals are those that the program itself measured."""

import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from conftest import verb_json
from kernel_oracle import text_of

AGENT = Path("/usr/lib/python3/dist-packages/lttngust/__init__.py")  # for Debian's Python alone
PROGRAM = """
import lttngust
import logging, threading, time, sys
logging.raiseExceptions = False
log = logging.getLogger("app")
log.setLevel("INFO")
measured = []
def work(name):
    for i in range(8):
        begin = time.monotonic_ns()
        log.info("Start %s %d", name, i)
        time.sleep(0.002 * (1 + i % 3))
        log.info("Stop %s %d", name, i)
        measured.append((name, i, time.monotonic_ns() - begin))
threads = [threading.Thread(target=work, args=(name,)) for name in ("left", "right")]
[t.start() for t in threads]
[t.join() for t in threads]
for row in measured:
    print(*row)
"""


@pytest.fixture
def lttng(tmp_path):
    """lttng(*words) as an ordinary user with a session daemon and a home of its own; the daemon is gone behind the test."""
    if not shutil.which("lttng-sessiond") or not AGENT.exists():
        pytest.skip("lttng-tools or python3-lttngust is not installed")
    home = tmp_path / "home"
    home.mkdir()
    user = {}
    if os.getuid() == 0:
        for folder in (tmp_path, *tmp_path.parents[:3], home):
            folder.chmod(0o755)
        os.chown(home, 65534, 65534)
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    options = {"env": {**os.environ, "HOME": str(home), "LTTNG_HOME": str(home)}, "cwd": home, **user}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], **options, **quiet)

    def run(*words, check=True):
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60, check=check, **options)

    try:
        for _ in range(200):
            if run("lttng", "--no-sessiond", "list", check=False).returncode == 0:
                break
            time.sleep(0.05)
        else:
            pytest.skip("lttng-sessiond does not start here")
        run.home = home
        yield run
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def durations(text):
    """Between Start and Stop of the same words, of the text that babeltrace2 prints, in the order of the stops."""
    begun, took = {}, {}
    for s, ns, what, key in re.findall(r'^\[(\d+)\.(\d{9})\].* msg = "(Start|Stop) (\w+ \d+)"', text, re.M):
        at = int(s) * 10**9 + int(ns)
        if what == "Start":
            begun[key] = at
        else:
            took[key] = at - begun.pop(key)
    assert not begun
    return took


def check_sums(row, took):
    assert (row["intervals"], row["total_ns"], row["min_ns"], row["max_ns"]) == (len(took), sum(took), min(took), max(took))
    assert row["median_ns"] == int(statistics.median(took))
    assert row["mean_ns"] == pytest.approx(statistics.mean(took), abs=1) and row["deviation_ns"] == pytest.approx(statistics.stdev(took), abs=1)


def test_intervals_of_lttngs_python_agent_are_those_that_the_program_measured(lttng, krait):
    (lttng.home / "app.py").write_text(PROGRAM)
    client = ("lttng", "--no-sessiond", "--quiet")
    lttng(*client, "create", "krait", "-o", lttng.home / "trace")
    lttng(*client, "enable-event", "--python", "app")
    lttng(*client, "start")
    printed = lttng("/usr/bin/python3", "app.py").stdout
    lttng(*client, "stop")
    lttng(*client, "destroy")
    measured = {(name, i): int(ns) for name, i, ns in map(str.split, printed.splitlines())}
    assert len(measured) == 16
    by_thread = verb_json(krait, "intervals", lttng.home / "trace", "--start", "^Start", "--stop", "^Stop")["rows"][0]
    assert (by_thread["intervals"], by_thread["no_start"], by_thread["no_stop"]) == (16, 0, 0)
    marks = verb_json(krait, "report", lttng.home / "trace", "--by", "mark")["marks"]
    assert sorted((m["text"], m["marks"]) for m in marks if m["name"] == "lttng_python:event") == [("Start ...", 16), ("Stop ...", 16)]
    keyed = ("--start", r"^Start (?P<key>\w+ \d+)", "--stop", r"^Stop (?P<key>\w+ \d+)")
    found = {row["key"]: row["duration_ns"] for row in verb_json(krait, "intervals", lttng.home / "trace", *keyed, "--list")["list"]}
    assert found.keys() == {f"{name} {i}" for name, i in measured}
    took = durations(text_of(krait, lttng.home / "trace"))
    assert found == took
    check_sums(by_thread, took.values())
    words = ("--start", r"^Start (?P<key>\w+)", "--stop", r"^Stop (?P<key>\w+)", "--by", "key")
    rows = {row["key"]: row for row in verb_json(krait, "intervals", lttng.home / "trace", *words)["rows"]}
    assert rows.keys() == {"left", "right"}
    for word, row in rows.items():
        check_sums(row, [ns for key, ns in took.items() if key.split()[0] == word])
    for (name, i), around in measured.items():  # the program's own clock is read outside of both records
        assert 2_000_000 * (1 + int(i) % 3) <= found[f"{name} {i}"] <= around


TELLING = """
import ctypes
ust = ctypes.CDLL("liblttng-ust.so.1")
def log(level, text):  # what the macro tracelog() calls (lttng/tracelog.h)
    getattr(ust, "lttng_ust__tracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_" + level)(b"app.c", 7, b"work", b"%s", text)
for i in range(3):
    ust.lttng_ust__tracef(b"begin %d", i)  # tracef() (lttng/tracef.h)
    log("WARNING", b'a "warning"')
    ust.lttng_ust__tracef(b"end %d", i)
log("INFO", b"done")
"""


def test_tracef_and_tracelog_are_marks_with_their_message(lttng, krait):
    (lttng.home / "app.py").write_text(TELLING)
    client = ("lttng", "--no-sessiond", "--quiet")
    lttng(*client, "create", "krait", "-o", lttng.home / "trace")
    lttng(*client, "enable-event", "--userspace", "lttng_ust_tracef:*,lttng_ust_tracelog:*")
    lttng(*client, "start")
    lttng("/usr/bin/python3", "app.py")
    lttng(*client, "stop")
    lttng(*client, "destroy")
    trace = lttng.home / "trace"
    marks = {m["name"]: (m["marks"], m["text"]) for m in verb_json(krait, "report", trace, "--by", "mark")["marks"]}
    level = "lttng_ust_tracelog:LTTNG_UST_TRACEPOINT_LOGLEVEL_"
    assert marks == {"lttng_ust_tracef:event": (6, "..."), level + "WARNING": (3, 'a "warning"'), level + "INFO": (1, "done")}
    pairs = ("--start", r"^begin (?P<key>\d)$", "--stop", r"^end (?P<key>\d)$", "--list")
    assert [row["key"] for row in verb_json(krait, "intervals", trace, *pairs)["list"]] == ["0", "1", "2"]
    warned = ("--start", r'^a "warning"$', "--stop", "^done$", "--latest")
    assert verb_json(krait, "intervals", trace, *warned)["rows"][0]["intervals"] == 1
