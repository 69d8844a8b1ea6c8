# SPDX-License-Identifier: Apache-2.0
"""krait record --kernel in recordings that are switched off and on: by a script, and with --last."""

import json
import os
from pathlib import Path

import pytest

from conftest import verb_json
from kernel_recorded import ROOMY, assert_nested, kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from package import PACKAGE
from told import told  # noqa: F401  (told: a fixture)

pytestmark = pytest.mark.usefixtures("alone")


def switches(events, folder):
    """How often the kernel's events were switched on, and off on all CPUs, in their order."""
    told = [e["event"] for e in events(folder / "kernel", "name == lttng_statedump_start || name == krait_off")]
    return [name for name, before in zip(told, ["", *told]) if name != before or name == "lttng_statedump_start"]


def test_a_script_switches_the_kernel_of_a_program_that_runs(programs, any_python, events, tmp_path):
    """krait.attach(pid, idle=True, kernel=True)."""
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(0.001)\n")
    text = """
import glob, krait, json, os, subprocess, sys, time
def size(): return sum(map(os.path.getsize, glob.glob("trace/kernel/*_*")))
def grows():
    before = size()
    while size() == before: time.sleep(0.01)
with krait.attach(int(sys.argv[1]), "trace", idle=True, kernel=True) as other:
    time.sleep(0.1)
    assert size() == 0
    other.resume(); grows()
    other.pause()
    before = size()
    time.sleep(0.1)
    assert size() == before
    other.resume(); grows()
"""
    done = any_python.run("-c", text, app.pid, env={**os.environ, **PACKAGE}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert switches(events, tmp_path / "trace") == ["lttng_statedump_start", "krait_off", "lttng_statedump_start"]
    ran = events(tmp_path / "trace" / "kernel", f"name == sched_switch && next_tid == {app.pid}")
    times = [int(e["time_ns"]) for e in events(tmp_path / "trace" / "kernel", "name == krait_off || name == lttng_statedump_start")]
    off, on = min(times[1:]), times[-1]
    assert [e for e in ran if int(e["time_ns"]) < off] and [e for e in ran if int(e["time_ns"]) > on]
    slept = max(times[1:-1]) + 100_000_000  # events are on a little before the state is dumped
    assert on > slept and not [e for e in ran if slept - 100_000_000 < int(e["time_ns"]) < slept]


def test_the_last_of_a_recording_that_was_switched_has_what_was_on(told, any_python, events):  # noqa: F811
    app = told(any_python, "--idle", "--kernel=sched,syscalls", "--last", "60s", *ROOMY)
    app.tell("[os.getppid() for _ in range(2)]")
    app.ctl("start")
    app.tell("[os.getppid() for _ in range(3)]")
    app.ctl("stop")
    app.tell("[os.getppid() for _ in range(5)]")
    app.ctl("start")
    app.tell("[os.getppid() for _ in range(7)]")
    snapshot = Path(json.loads(app.ctl("snapshot", "--json"))["snapshot"])
    app.end()
    assert not (snapshot / "kernel").exists() and (app.folder / "kernel").exists()
    assert switches(events, app.folder) == ["lttng_statedump_start", "krait_off", "lttng_statedump_start"]
    merged = events(app.folder, 'name == "c:*" || name == "syscall_*_getppid"')
    assert_nested(merged, app.pid, 3 + 7)
    assert sum(e["event"] == "syscall_entry_getppid" and e["common_context"]["tid"] == app.pid for e in merged) == 3 + 7
    assert "cut_from" not in (app.folder / "kernel" / "metadata").read_text(), "nothing was dropped"


def test_states_are_unknown_before_the_kernels_first_event(kernel, krait):  # noqa: F811
    """The program's part begins earlier: it switches the recording on."""
    text = "import krait, time\ndef f():\n    krait.resume()\n    time.sleep(0.2)\nf()\n"
    run = kernel(text, "--idle", groups="sched", env={**os.environ, **PACKAGE})
    sleep = next(r for r in verb_json(krait, "report", run.path)["functions"] if r["name"] == "sleep")
    assert sleep["wall_self_ns"]["unknown"] > 0 and sum(sleep["wall_self_ns"].values()) == sleep["self_ns"], sleep
