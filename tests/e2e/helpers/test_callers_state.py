# SPDX-License-Identifier: Apache-2.0
"""The tests' own manners: what they start does not inherit the caller's state, and ends with them."""

import signal
import subprocess
import sys
from pathlib import Path

import callers_state

HERE = str(Path(__file__).parent)
CHILD = "import signal, os; print(*sorted(n for n in os.environ if n[:6] == 'PYTHON'), *(signal.getsignal(n) for n in (1, 2, 3)))"
PARENT = f"import sys; sys.path.insert(0, {HERE!r}); import callers_state; callers_state.forget()\nimport os, subprocess; "


def test_signals_and_variables_of_the_caller_reach_no_program():
    program = PARENT + f"os.kill(os.getpid(), 1); subprocess.run([sys.executable, '-c', {CHILD!r}])"
    caller = ["sh", "-c", 'trap "" HUP INT QUIT && exec "$@"', "sh", "env", "PYTHONUNBUFFERED=1", sys.executable, "-c", program]
    run = subprocess.run(caller, capture_output=True, text=True, timeout=60)
    plain = subprocess.run(["sh", "-c", 'exec "$@"', "sh", sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, plain.stdout), run.stderr


def runs(pid):
    """Not when it waits, killed, for whoever has to collect it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_left_its_parent_and_its_group_is_ended():
    before = callers_state.processes()
    apart = ["setsid", "--fork", "sh", "-c", "echo $$; exec 1>&2; sleep 1000; :"]
    pid = int(subprocess.run(apart, stdout=subprocess.PIPE, text=True, timeout=60).stdout)
    assert pid in callers_state.processes() - before and runs(pid)
    assert any("sleep 1000" in words for words in callers_state.end_processes(before))
    assert not runs(pid)
    assert callers_state.end_processes(before) == []


def test_a_run_that_is_ended_from_outside_ends_what_it_began(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import subprocess, time\n"
        "def test_it():\n"
        "    subprocess.run(['sh', '-c', 'setsid sleep 1000 & echo $! >pid'])\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(1000)\n"
    )
    (tmp_path / "conftest.py").write_text(
        PARENT + "import pytest\n@pytest.fixture(autouse=True)\ndef ends():\n    yield\n    callers_state.end_processes()\n"
    )
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    while (line := process.stdout.readline()) and "ready" not in line:
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert not runs(int((tmp_path / "pid").read_text()))
