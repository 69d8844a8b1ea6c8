# SPDX-License-Identifier: Apache-2.0
"""python -m krait.flamegraph: folded stacks by the options of the package flamegraph."""

import re

import pytest

from conftest import BUILD

ENV = {"PYTHONPATH": str(BUILD / "python")}
PROGRAM = """
import sys, threading, time
def load(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def other():
    load(0.02)
thread = threading.Thread(target=other, name="worker")
thread.start(); thread.join()
load(0.04)
print(sys.argv[1:])
sys.exit(3)
"""


@pytest.mark.few_pythons
def test_a_script_is_run_and_its_stacks_are_counted(python, tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    run = python.run("-m", "krait.flamegraph", "-o", tmp_path / "perf.log", "-i", "0.0005", tmp_path / "app.py", "a", "-b", env=ENV)
    assert (run.returncode, run.stdout) == (3, "['a', '-b']\n"), run.stderr
    counts = {stack: int(n) for stack, n in (line.rsplit(" ", 1) for line in (tmp_path / "perf.log").read_text().splitlines())}
    assert counts["MainThread`<module>;MainThread`load"] >= 79
    assert all(stack.startswith("MainThread`<module>") for stack in counts if stack.startswith("MainThread"))
    (worker,) = [n for stack, n in counts.items() if re.match(r"worker`.*;worker`other;worker`load$", stack)]
    assert worker >= 39 and list(counts) == sorted(counts)
    only = python.run("-m", "krait.flamegraph", "-f", "^worker`.*load", tmp_path / "app.py", env=ENV)
    assert [line for line in only.stdout.splitlines() if ";" in line and not line.startswith("worker`")] == []
    assert "worker`other;worker`load" in only.stdout


FORKING = """
import os, subprocess, sys, time
def load(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def forked(): load(0.02)
def itself(): load(0.02)
if not os.fork():
    forked()
    os._exit(0)
os.wait()
subprocess.check_call([sys.executable, "-c", "def started(): sum(range(1000000))\\nstarted()"])
itself()
"""


def test_stacks_are_of_the_script_alone(any_python, tmp_path):
    (tmp_path / "app.py").write_text(FORKING)
    run = any_python.run("-m", "krait.flamegraph", tmp_path / "app.py", env=ENV)
    assert run.returncode == 0, run.stderr
    assert "itself" in run.stdout
    assert "forked" not in run.stdout and "started" not in run.stdout


RECURSIVE = """
import time
class Work:
    def down(self, n):
        if n: self.down(n - 1)
        else: self.load(0.02)
    def load(self, seconds):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
Work().down(3)
"""


def test_frames_have_a_format_and_recursion_collapses(any_python, tmp_path):
    (tmp_path / "app.py").write_text(RECURSIVE)

    def stacks(*words):
        run = any_python.run("-m", "krait.flamegraph", *words, tmp_path / "app.py", env=ENV)
        assert run.returncode == 0, run.stderr
        return [line.rpartition(" ")[0] for line in run.stdout.splitlines()]

    assert "<module>;down;down;down;down;load" in stacks("-F", "%(fun)s")
    assert "__main__.<module>;__main__.Work.down;__main__.Work.load" in stacks("-c", "-F", "%(qualname)s")


def test_what_cannot_be_run_or_written_is_explained(any_python, tmp_path):
    (tmp_path / "app.py").write_text("print('ran')\n")

    def run(*words):
        return any_python.run("-m", "krait.flamegraph", *words, env=ENV)

    bad = run("-f", "(", tmp_path / "app.py")
    assert bad.returncode == 2 and "is no regular expression" in bad.stderr and bad.stdout == ""
    assert "there are threadname, fun and qualname" in run("-F", "%(line)d", tmp_path / "app.py").stderr
    assert "no time above 0" in run("-i", "0", tmp_path / "app.py").stderr
    unwritable = run("-o", tmp_path / "no" / "perf.log", tmp_path / "app.py")
    assert unwritable.returncode == 1 and "perf.log" in unwritable.stderr
    assert run(tmp_path / "absent.py").returncode != 0
