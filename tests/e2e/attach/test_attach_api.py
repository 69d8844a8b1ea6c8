# SPDX-License-Identifier: Apache-2.0
"""krait.attach(): a script records another process."""

import os
import shutil
import signal
import subprocess

import pytest

from attached_programs import SPIN, WAITS
from conftest import BUILD
from package import PACKAGE
from recording import Recording
from running import wait_for


@pytest.fixture
def script(tmp_path):
    """script(python, text, *args): runs a script that has `import krait`."""

    def run(python, text, *args, **env):
        return python.run("-c", "import sys, krait\n" + text, *args, env={**os.environ, **PACKAGE, **env}, cwd=tmp_path)

    return run


def finish(app, folder):
    (folder / "stop").touch()
    assert (app.process.stdout.read(), app.process.wait(30)) == ("done True\n", 0)


@pytest.mark.few_pythons
def test_a_script_records_another_process_again_and_again(programs, script, python, tmp_path):
    app = programs.start(python, WAITS)
    done = script(
        python,
        """
import os, time
pid = int(sys.argv[1])
with krait.attach(pid, "first", c_calls=False, include=["__main__"]) as other:
    assert other.pid == pid and other.path == os.path.abspath("first") and other.summary is None
    assert "krait._agent" not in sys.modules or not krait.is_recording()
    time.sleep(0.2)
assert "was paused for" in other.summary and other.stop() == other.wait(1) == other.path
assert krait.attach(pid, b"second", for_="200ms").wait() == os.path.abspath("second")
named = krait.attach(pid)
assert named.path.startswith(os.path.abspath(f"krait-{pid}-")) and "recording" in repr(named)
try: named.wait(0.1)
except TimeoutError as e: assert "stop() ends it" in str(e)
print(named.stop())
""",
        app.pid,
    )
    assert done.returncode == 0, done.stderr
    for folder in (tmp_path / "first", tmp_path / "second", done.stdout.strip()):
        assert Recording(folder).check(ended=False).calls()["inner"] > 100
    assert not Recording(tmp_path / "first").calls()["select"] and Recording(tmp_path / "second").calls()["select"]
    finish(app, tmp_path)


@pytest.mark.few_pythons
def test_a_script_switches_the_recording_and_takes_snapshots(programs, script, python, tmp_path):
    app = programs.start(python, SPIN)
    done = script(
        python,
        """
import json, os, subprocess, time
def status(): return json.loads(subprocess.check_output([krait.command(), "ctl", "--json", "trace", "status"]))
def grows():
    before = status()["events"]
    while status()["events"] == before: time.sleep(0.01)
    return True
with krait.attach(int(sys.argv[1]), "trace", idle=True) as other:
    assert (status()["state"], status()["events"]) == ("off", 0)
    assert other.resume() is True and status()["state"] == "on" and grows()
    assert other.snapshot() == os.path.abspath("trace-snapshot-1") and other.snapshot(b"named") == os.path.abspath("named")
    try: other.snapshot("named")
    except RuntimeError as e: assert "krait.attach(%d): " % other.pid in str(e) and "named" in str(e), e
    else: assert False
    assert other.pause() is True and status()["state"] == "off"
    assert other.resume() is True and status()["state"] == "on" and grows()
for late in (other.snapshot, other.pause, other.resume):
    try: late()
    except RuntimeError as e: assert str(e) == "krait.attach(%d): the recording has ended" % other.pid, e
    else: assert False
""",
        app.pid,
    )
    assert done.returncode == 0, done.stderr
    for folder in ("trace", "trace-snapshot-1", "named"):
        assert Recording(tmp_path / folder).check(ended=False).calls()["inner"] > 100
    finish(app, tmp_path)


def test_a_script_that_cannot_ask_the_recording_is_told_why(programs, script, any_python, tmp_path):
    app = programs.start(any_python, SPIN)
    done = script(
        any_python,
        """
import errno, os, resource
with krait.attach(int(sys.argv[1]), "trace", idle=True) as other:
    other.resume()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try: other.pause()
    except RuntimeError as e: why = str(e)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "cannot ask the recording" in why and os.strerror(errno.EMFILE) in why, why
    assert other.pause() is True
assert other.summary.startswith("krait: recorded the process for "), other.summary
""",
        app.pid,
    )
    assert done.returncode == 0, done.stderr
    finish(app, tmp_path)


def test_the_recording_ends_with_the_script(programs, script, any_python, tmp_path):
    app = programs.start(any_python, WAITS)
    for end in ("pass", "raise SystemExit(3)", "1 / 0"):
        done = script(any_python, f"import time\nother = krait.attach(int(sys.argv[1]), sys.argv[2])\ntime.sleep(0.1)\n{end}", app.pid, tmp_path / end[0])
        assert done.returncode == {"p": 0, "r": 3, "1": 1}[end[0]]
        assert Recording(tmp_path / end[0]).check(ended=False).calls()["inner"] > 100
    finish(app, tmp_path)


def test_the_end_of_the_process_ends_the_recording(programs, script, any_python, tmp_path):
    app = programs.start(any_python, SPIN)
    text = "other = krait.attach(int(sys.argv[1]), 'trace')\nopen('stop', 'w').close()\nprint(other.wait(30), other.stop() == other.path)"
    done = script(any_python, text, app.pid)
    assert done.stdout == f"{tmp_path / 'trace'} True\n", done.stderr
    assert app.process.wait(30) == 0


# Somebody kills krait in the block.
KILLED = """
import os, signal
try:
    with krait.attach(int(sys.argv[1]), "trace") as other:
        os.kill(other._krait.pid, signal.SIGKILL)"""


def test_an_exception_of_the_block_is_the_one_that_is_seen(programs, script, any_python, tmp_path):
    """Also where the recording fails: here somebody kills krait."""
    app = programs.start(any_python, SPIN)
    text = KILLED + """
        raise KeyError("mine")
except KeyError as e: print(e)
try: other.stop()
except RuntimeError as e: print(e)
"""
    done = script(any_python, text, app.pid)
    assert done.stdout == f"'mine'\nkrait.attach({app.pid}): it ended with status -9\n", done.stderr
    assert f"krait.attach({app.pid}): it ended with status -9" in done.stderr and "Traceback" not in done.stderr
    finish(app, tmp_path)


def test_a_recording_that_fails_is_an_exception_at_the_end_of_the_block(programs, script, any_python, tmp_path):
    app = programs.start(any_python, SPIN)
    text = KILLED + """
except RuntimeError as e: print(e)
try: other.wait()
except RuntimeError as e: print(e)
"""
    done = script(any_python, text, app.pid)
    assert done.stdout == f"krait.attach({app.pid}): it ended with status -9\n" * 2, done.stderr
    finish(app, tmp_path)


@pytest.mark.parametrize(
    "call, said",
    [
        ("krait.attach(999999999)", "RuntimeError: krait.attach(999999999): no process 999999999"),
        ("krait.attach(sleeper)", "RuntimeError: krait.attach({pid}): process {pid} runs "),
        ("krait.attach(sleeper, max_overhead='much')", "RuntimeError: krait.attach({pid}): max_overhead: 'much'"),
        ("krait.attach(sleeper, kernel='sched,colours')", "RuntimeError: krait.attach({pid}): kernel: "),
        ("krait.attach(sleeper, colour=1)", "TypeError: krait.attach: no option 'colour'"),
        ("krait.attach('x')", "TypeError: "),
        ("krait.attach(os.getpid())", "krait.start() records it"),
    ],
)
def test_what_cannot_be_recorded_is_an_exception_with_kraits_reason(script, any_python, tmp_path, call, said):
    text = f"""
import os, subprocess
sleeper = int(sys.argv[1])
try: {call}
except Exception as e: print(type(e).__name__ + ":", e)
"""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        done = script(any_python, text, sleeper.pid)
        assert sleeper.poll() is None
        sleeper.kill()
    assert said.format(pid=sleeper.pid) in done.stdout and "krait record:" not in done.stdout, done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_the_native_part_is_not_needed_and_the_command_is(programs, script, any_python, tmp_path):
    app = programs.start(any_python, WAITS)
    package = tmp_path / "alone"
    shutil.copytree(BUILD / "python" / "krait", package / "krait", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.p"))
    text = "krait.attach(int(sys.argv[1]), 'trace', for_='500ms').wait()\nprint('krait._agent' in sys.modules)"
    done = script(any_python, text, app.pid, PYTHONPATH=str(package), KRAIT=str(BUILD / "krait"))
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert Recording(tmp_path / "trace").check(ended=False).calls()["inner"] > 100
    done = script(any_python, text, app.pid, PYTHONPATH=str(package), KRAIT="")
    assert "FileNotFoundError: the krait command is not beside its Python package; set KRAIT to its path" in done.stderr
    finish(app, tmp_path)


def test_who_interrupts_a_script_that_waits_leaves_the_process_unrecorded(programs, any_python, tmp_path):
    """It waits for the GIL of a process, which C code holds."""
    app = programs.start(any_python, "import os, re\nprint(os.getpid(), flush=True)\nre.match('(a+)+$', 'a' * 40 + 'b')")
    text = "import sys, krait\nprint(1, flush=True)\nkrait.attach(int(sys.argv[1]), sys.argv[2])"
    words = [any_python.exe, "-c", text, str(app.pid), str(tmp_path / "trace")]
    with subprocess.Popen(words, env={**os.environ, **PACKAGE}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "1\n"
        wait_for(lambda: (tmp_path / "trace").exists(), "krait")
        waiting.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in waiting.communicate(timeout=30)[1]
    assert app.process.poll() is None and not list(tmp_path.glob("trace/*"))
