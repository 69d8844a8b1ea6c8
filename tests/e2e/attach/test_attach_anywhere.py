# SPDX-License-Identifier: Apache-2.0
"""krait record --pid at random instants, of made programs and of real ones: they go on, and their results are as without it."""

import os
import random
import subprocess
import time

import pytest

from attached_programs import PLAIN, REAL, WAITS
from recording import Recording
from running import wait_for

# With --long, on each version of Python, all programs together.
ATTACHES = int(os.environ.get("KRAIT_ATTACHES", "500"))
ATTACHES_EACH = -(-ATTACHES // (len(PLAIN) + len(REAL)))

# Each way to record has hooks of its own.
OPTIONS = ([], ["--call-sites"], ["--log", "--gc", "--audit", "--imports"], ["--include", "__main__"], ["--no-gil"], ["--args", "*(n)"])


def has(pid):
    """What a recording must give back. What the program itself opens and begins is its own."""
    return len(os.listdir(f"/proc/{pid}/task")), open(f"/proc/{pid}/maps").read().count("memfd:")


class Attacher:
    """Attaches to one program."""

    def __init__(self, krait, pid, folder):
        self.krait, self.pid, self.folder, self.count = krait, pid, folder, 0

    def start(self, *options):
        self.count += 1
        self.trace = self.folder / f"trace{self.count}"
        words = [self.krait, "record", "--pid", self.pid, "--max-size", "4M", "-o", self.trace, *options]
        return subprocess.Popen([str(w) for w in words], stderr=subprocess.PIPE, text=True)

    def record(self):
        """Returns whether there is a recording: in a program that is at no safe place there is none."""
        krait = self.start("--for", f"{random.choice((10, 30, 100))}ms", *random.choice(OPTIONS))
        said = krait.communicate(timeout=60)[1]
        assert krait.returncode == 0 or "no safe place" in said or "matched no function" in said, said
        if not krait.returncode:
            Recording(self.trace).check(ended=False)
        return krait.returncode == 0

    def kill(self):
        """The earlier the more often."""
        krait = self.start()
        time.sleep(random.random() ** 2 / 7)
        krait.kill()
        krait.communicate()


def finish(app, folder):
    (folder / "stop").touch()
    said = app.process.stdout.read()
    assert (app.process.wait(60), said) == (0, "done True\n")


def at_random(app, krait, tmp_path, rounds):
    attacher, recorded = Attacher(krait, app.pid, tmp_path), 0
    for _ in range(rounds):
        time.sleep(random.random() / 20)
        recorded += attacher.record()
        wait_for(lambda: has(app.pid)[1] == 0, "the end of what the recording needed")
    for _ in range(rounds // 4):
        attacher.kill()
    finish(app, tmp_path)
    assert recorded


@pytest.mark.few_pythons
@pytest.mark.parametrize("name", PLAIN)
def test_at_any_instant_the_program_goes_on(programs, krait, python, tmp_path, rounds, name):
    at_random(programs.start(python, PLAIN[name]), krait, tmp_path, rounds(2, ATTACHES_EACH))


@pytest.mark.parametrize("name", ["uvloop"])  # test_at_many_instants_a_real_program_goes_on takes all of them
@pytest.mark.long
def test_at_any_instant_a_real_program_goes_on(programs, krait, any_python, venv, tmp_path, name):
    source, packages = REAL[name]
    at_random(programs.start(venv(any_python, *packages), source), krait, tmp_path, 4)


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_at_many_instants_a_real_program_goes_on(programs, krait, python, venv, tmp_path, name):
    source, packages = REAL[name]
    at_random(programs.start(venv(python, *packages), source), krait, tmp_path, ATTACHES_EACH)


@pytest.mark.few_pythons
def test_a_hundred_recordings_leave_nothing(programs, krait, python, tmp_path, rounds):
    """The first leaves the agent, and the stack and heap of a thread, for the next ones. Now and then two threads of krait's meet:
    then libc makes a second stack and heap, and keeps them. What leaks in each recording grows with their number."""
    app = programs.start(python, WAITS)

    def holds():
        lines = open(f"/proc/{app.pid}/maps").read().splitlines()
        return len(os.listdir(f"/proc/{app.pid}/fd")), len(lines)

    attacher, seen = Attacher(krait, app.pid, tmp_path), []
    for _ in range(rounds(20, 100)):
        krait_process = attacher.start("--for", "20ms")
        said = krait_process.communicate(timeout=60)[1]
        assert krait_process.returncode == 0, said
        wait_for(lambda: has(app.pid) == (1, 0), "the end of what the recording needed")
        seen.append(holds())
    files, maps = zip(*seen)
    assert len(set(files)) == 1 and maps[-1] - maps[4] < len(maps[5:]) / 2, seen
    finish(app, tmp_path)
