# SPDX-License-Identifier: Apache-2.0
"""krait record --kernel on Debian sid's kernel, in a virtual machine (tools/vm): what this machine's may not have or not
give away. Its function tracers, and texts of system calls (Linux 6.19)."""

import json
import os
import subprocess

import pytest
from machine import run_in_vm

pytestmark = pytest.mark.long  # the machine takes minutes to start

NAME = "a ñame"
APP = "import os\nfor _ in range(20):\n    os.stat(%r)\n" % NAME
SWITCHED = """
import os, subprocess, sys
def look(n):
    for _ in range(n): os.stat("/")
look(3)
for word, n in (("stop", 5), ("start", 7)):
    subprocess.run([sys.argv[1], "ctl", "switched", word], check=True, stdout=subprocess.DEVNULL)
    look(n)
print(os.getpid())
"""
COMMANDS = """
"$1" record -q -o trace --kernel=sched,syscalls --kernel-functions 'vfs_*stat*' -- /usr/bin/python3 -I -S app.py 2>record
echo $? >ended
"$1" record -q -o switched --kernel=sched,syscalls --kernel-functions 'vfs_*stat*' -- /usr/bin/python3 -I -S switched.py "$1" >switched.pid
"$1" record -q -o none --kernel=sched --kernel-functions 'no_such_*' -- true 2>none.record
"$1" doctor --json >doctor
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory, krait):
    """What the commands left, after one start of the machine."""
    folder = tmp_path_factory.mktemp("vm")
    (folder / "app.py").write_text(APP)
    (folder / "switched.py").write_text(SWITCHED)
    (folder / NAME).touch()
    run_in_vm(folder, COMMANDS, os.path.abspath(krait))
    return folder


def check_functions(told):
    """Each call has the functions that worked for it between its entry and its exit: whole, and their depth is right."""
    kinds = [e["event"] for e in told]
    calls = [i for i, e in enumerate(told) if e["event"] == "syscall_entry_newfstatat" and e["payload"]["filename"] == NAME]
    assert len(calls) == 20
    for at in calls:
        within = told[at + 1 : kinds.index("syscall_exit_newfstatat", at)]
        stack = []
        for event in within:
            label = event["payload"]["function"]["label"]
            if event["event"] == "kernel_function_entry":
                assert event["payload"]["depth"] == len(stack)
                stack.append(label)
            else:
                assert event["event"] == "kernel_function_exit" and stack.pop() == label
        labels = {e["payload"]["function"]["label"] for e in within}
        assert not stack and {"vfs_fstatat", "vfs_statx"} <= labels


def slices(track):
    """{name: [(begin, end)]} of a thread's events of Chrome's."""
    found, open_ = {}, []
    for event in track:
        if event["ph"] == "X":
            found.setdefault(event["name"], []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "B":
            open_.append(event)
        elif event["ph"] == "E":
            begun = open_.pop()
            found.setdefault(begun["name"], []).append((begun["ts"], event["ts"]))
    return found


def check_export(krait, folder, pid):
    """In a thread's track: os.stat, the system call, the function, each within one of those before."""
    subprocess.run([krait, "export", folder / "trace", "--to", "chrome", "-o", folder / "f.json"], check=True, capture_output=True)
    track = slices(e for e in json.loads((folder / "f.json").read_text())["traceEvents"] if e.get("tid") == pid)
    for outer, inner in [("posix.stat", "newfstatat"), ("newfstatat", "vfs_fstatat"), ("vfs_fstatat", "vfs_statx")]:
        within = [i for i in track[inner] if any(o[0] <= i[0] and i[1] <= o[1] for o in track[outer])]
        assert len(within) >= 20


@pytest.mark.timeout(1800)
def test_the_newest_kernel_tells_functions_and_the_texts_of_calls(machine, krait, events):
    checks = {c["name"]: c for c in json.loads((machine / "doctor").read_text())["checks"]}
    assert (checks["functions"]["state"], checks["functions"]["value"]) == ("ok", "entry and exit")
    assert checks["left behind"]["value"] == "nothing"
    assert (machine / "ended").read_text() == "0\n" and "not recorded" not in (machine / "record").read_text()
    assert "this kernel has no function that matches 'no_such_*'" in " ".join((machine / "none.record").read_text().split())
    told = events(machine / "trace" / "kernel", 'name == "kernel_function*" || name == "syscall_*_newfstatat"')
    pid = next(e for e in told if e["payload"].get("filename") == NAME)["common_context"]["tid"]
    check_functions([e for e in told if e["common_context"]["tid"] == pid])
    check_export(krait, machine, pid)


@pytest.mark.timeout(1800)
def test_functions_are_switched_with_the_recording(machine, events):
    """Between `krait ctl stop` and `krait ctl start` there are none, and then each call has its own again."""
    told = events(machine / "switched" / "kernel", 'name == "kernel_function*" || name == "syscall_entry_newfstatat" || name == krait_off || name == lttng_statedump_start')
    pid = int((machine / "switched.pid").read_text())
    own = [e for e in told if e.get("common_context", {}).get("tid") == pid and e["event"] not in ("krait_off", "lttng_statedump_start")]
    calls = [i for i, e in enumerate(own) if e["payload"].get("filename") == "/"]
    assert len(calls) == 3 + 7 and all(own[at + 1]["event"] == "kernel_function_entry" for at in calls)
    off, on = (max(int(e["time_ns"]) for e in told if e["event"] == name) for name in ("krait_off", "lttng_statedump_start"))
    assert off < on and not [e for e in told if off < int(e["time_ns"]) < on]
