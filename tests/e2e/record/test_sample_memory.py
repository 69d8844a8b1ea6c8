# SPDX-License-Identifier: Apache-2.0
"""How much memory krait record --sample takes while code objects come and go in the program."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from running import wait_for

# Functions that are compiled anew, each of which runs for a while, and how many there have been.
COMPILES = """
import os, sys, time
NAMES = sys.argv[1]
def made(i):
    name = f"made_{i}" if NAMES == "others" else "made"
    space = {}
    exec(compile(f"def {name}(x):\\n    for k in range(10): x += k\\n    return sorted([x])", f"<{name}>", "exec"), space)
    end = time.perf_counter() + 0.0002
    while time.perf_counter() < end:
        space[name](3)
print(os.getpid(), flush=True)
i = 0
while True:
    i += 1
    made(i)
    if i % 1000 == 0:
        with open("count.new", "w") as file:
            file.write(str(i))
        os.rename("count.new", "count")
"""


def kib(pid):
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


@pytest.mark.parametrize("names", ["others", "same"])
def test_functions_that_come_and_go_take_no_memory(programs, krait, run, any_python, tmp_path, names):
    app = programs.start(any_python, COMPILES, names)
    made = lambda: int((tmp_path / "count").read_text()) if (tmp_path / "count").exists() else 0
    words = [krait, "record", "-q", "--sample", "10000", "--pid", app.pid, "-o", tmp_path / "samples"]
    with subprocess.Popen([str(word) for word in words]) as recorder:
        wait_for(lambda: any(tmp_path.glob("samples/*/metadata")), "the recording")
        sizes = []
        for _ in range(2):
            more = made() + 5000
            wait_for(lambda: made() >= more, "the functions", limit=120)
            sizes.append(kib(recorder.pid))
        recorder.send_signal(signal.SIGINT)
    assert sizes[1] - sizes[0] < 1000, sizes
    functions = {line.split(";")[-1].split()[0] for line in run("export", "--to", "folded", "-o", "-", tmp_path / "samples").stdout.splitlines()}
    assert len([f for f in functions if "made_" in f]) > 3000 if names == "others" else any(f.endswith("made") for f in functions)
