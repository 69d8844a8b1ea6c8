# SPDX-License-Identifier: Apache-2.0
"""krait states of a recording whose oldest kernel events krait has dropped: --last, and --keep newest."""

import pytest

from conftest import verb_json
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)

pytestmark = pytest.mark.usefixtures("alone")
# Runs until krait has dropped events, and a bit longer.
PROGRAM = """
import glob, threading, time
over = threading.Event()
def dropped(): return glob.glob({below!r} + "/**/carried_0", recursive=True)
def busy():
    limit = time.time() + 60
    while time.time() < limit and not dropped(): sum(range(20000))
    end = time.time() + 0.3
    while time.time() < end: sum(range(20000))
    over.set()
def sleeper(): over.wait()
for f in (busy, sleeper): threading.Thread(target=f, name=f.__name__).start()
"""


@pytest.mark.parametrize("limit", [("--last", "200ms"), ("--max-size", "4M", "--keep", "newest")], ids=["last", "newest"])
def test_what_is_kept_knows_the_programs_threads(krait, kernel, tmp_path, limit):  # noqa: F811
    path = kernel(PROGRAM.format(below=str(tmp_path)), *limit).path
    threads = {t["name"]: t for t in verb_json(krait, "states", path)["threads"]}
    assert (path / "kernel" / "carried_0").exists()
    assert {"busy", "sleeper"} <= set(threads) and len(threads) == 3, threads
    assert len({t["pid"] for t in threads.values()}) == 1 and threads["busy"]["pid"]
    assert threads["busy"]["on_cpu_ns"]
    # It runs at the end alone: in which call it waited is known from events that are gone.
    assert threads["sleeper"]["blocked_lock_ns"] and not threads["sleeper"]["unknown_ns"], threads["sleeper"]
    assert verb_json(krait, "path", path, "--thread", "sleeper")["path"][0]["kind"] != "unknown"
