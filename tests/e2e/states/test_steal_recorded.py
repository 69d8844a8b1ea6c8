# SPDX-License-Identifier: Apache-2.0
"""Steal time as krait record --kernel reads it: the numbers are /proc/stat's."""

import json
import os
import subprocess
from pathlib import Path

from conftest import verb_json
from kernel_recorded import kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def proc_stat():
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return {int(row[0][3:]): int(row[8]) * TICK_NS for row in rows if row[0].startswith("cpu") and row[0] != "cpu"}


def test_steal_time_is_read_before_during_and_after(krait, kernel):  # noqa: F811
    before = proc_stat()
    run = kernel("import time\ntime.sleep(1.2)\n", groups="sched")
    after = proc_stat()
    text = subprocess.run([krait, "cat", run.path / "kernel", "--json", "--filter", 'name == "krait_steal"'], capture_output=True, text=True, check=True).stdout
    read = {}
    for line in text.splitlines():
        payload = json.loads(line)["payload"]
        read.setdefault(payload["cpu"], []).append(int(payload["total_ns"]))
    assert read.keys() == before.keys()
    for cpu, totals in read.items():
        assert len(totals) >= 3 and totals == sorted(totals)
        assert before[cpu] <= totals[0] and totals[-1] <= after[cpu]
    taken = {cpu: totals[-1] - totals[0] for cpu, totals in read.items()}
    found = verb_json(krait, "states", run.path)
    assert {row["cpu"]: row["stolen_ns"] for row in found["cpus"]}.items() <= taken.items()
    assert found["stolen_ns"] == sum(taken.values())
    about = verb_json(krait, "info", run.path)
    assert about["kernel"]["stolen_ns"] == [taken[cpu] for cpu in sorted(taken)]
    out = subprocess.run([krait, "info", run.path], capture_output=True, text=True, check=True).stdout
    assert ("  stolen " in out) == (sum(taken.values()) > 0)
