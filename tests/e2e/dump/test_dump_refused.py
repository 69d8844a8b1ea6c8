# SPDX-License-Identifier: Apache-2.0
"""krait dump: what it cannot read, why, and what to do."""

import os
import re
import shutil
import subprocess

import pytest

from running import wait_for


@pytest.fixture
def refused(krait):
    """refused(words, status): what stands on stderr."""

    def read(*words, status=1):
        run = subprocess.run([krait, "dump", *map(str, words)], capture_output=True, text=True, timeout=60)
        assert run.returncode == status and run.stdout == "", run
        return run.stderr

    return read


@pytest.fixture
def made_up(programs, tmp_path):
    """made_up(source, *options): a program in C that runs, as one whose Python krait does not know."""

    def make(source, *options, name="python3"):
        if not shutil.which("cc"):
            pytest.skip("no C compiler")
        code = tmp_path / "made_up.c"
        code.write_text(f"#include <stdio.h>\n#include <unistd.h>\n{source}\nint main(void) {{ printf(\"%d\\n\", getpid()); fflush(stdout); pause(); }}\n")
        subprocess.run(["cc", "-rdynamic", *options, "-o", tmp_path / name, code], check=True)
        return programs.add([tmp_path / name]).pid

    return make


def test_no_pid_or_none_that_is_one_is_wrong_usage(refused):
    assert "needs the PID" in refused(status=2)
    for word in ("abc", "0", "12x", "99999999999", ""):
        assert f"'{word}' is no PID" in refused(word, status=2)


def test_a_process_that_is_not_there(refused):
    with open("/proc/sys/kernel/pid_max") as most:
        pid = next(pid for pid in range(int(most.read()) - 1, 1, -1) if not os.path.exists(f"/proc/{pid}"))
    assert refused(pid) == f"krait dump: no process {pid}; it has ended, or is in another PID namespace\n"


def test_a_process_that_runs_no_python(refused, programs):
    app = programs.add(["sh", "-c", "echo $$; exec sleep 60"])
    wait_for(lambda: "sleep" in os.readlink(f"/proc/{app.pid}/exe"), "sleep")
    assert refused(app.pid).startswith(f"krait dump: process {app.pid} runs {os.path.realpath(shutil.which('sleep'))}, which is not Python")
    assert "nor a process that it started runs Python" in refused("--children", app.pid)


def test_a_process_that_has_ended_but_is_not_waited_for(refused, programs, any_python):
    source = "import os, time\npid = os.fork()\nif not pid: os._exit(0)\nprint(pid, flush=True)\ntime.sleep(60)\n"
    app = programs.start(any_python, source)
    wait_for(lambda: "Z (zombie)" in open(f"/proc/{app.pid}/status").read(), "the end")
    assert "has ended, but its parent has not waited" in refused(app.pid)


def test_a_program_of_another_user(krait, everyones_krait, programs, any_python):
    if os.geteuid():
        pytest.skip("only root can start a program as another user")
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", everyones_krait, "dump", str(app.pid)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"krait dump: process {app.pid} belongs to root; run krait as root (sudo)\n"


def test_a_program_that_may_not_be_read_by_its_own_user(everyones_krait, programs):
    """It has made itself undumpable: prctl(2)."""
    if os.geteuid():
        pytest.skip("only root can start a program as another user")
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    source = "import ctypes, os, time; ctypes.CDLL(None).prctl(4, 0); print(os.getpid(), flush=True); time.sleep(60)"
    app = programs.add([*as_nobody, "/usr/bin/python3", "-c", source])
    run = subprocess.run([*as_nobody, everyones_krait, "dump", str(app.pid)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "run krait as root (sudo)" in run.stderr


@pytest.mark.parametrize(
    "source, options, why",
    [
        ("void *PyGILState_GetThisThreadState(void) { return 0; }", (), "runs a Python before 3.8; krait reads CPython 3.8 to 3.15"),
        ("char _PyRuntime[4096]; unsigned long Py_Version = 0x031000f0; char PyCode_Type[8];", (), "runs Python 3.16.0; krait reads CPython 3.8 to 3.15"),
        ("char _PyRuntime[4096] = \"xdebugpy\"; unsigned long Py_Version = 0x030e00f0;", (), "cannot find CPython's state in process"),
        ("char _PyRuntime[4096] = \"xdebugpy\\0\\0\\0\\0\\0\\0\\0\\0\\1\"; unsigned long Py_Version = 0x030e00f0;", (), "free-threaded build"),
        ("char _PyRuntime[4096]; unsigned long Py_Version = 0x030d00f0;", (), "its table of offsets is not where it should be"),
        ("", ("-s",), "has no symbols (they were stripped)"),
    ],
)
def test_a_python_that_krait_does_not_read(refused, made_up, source, options, why):
    assert why in refused(made_up(source, *options))


def test_what_has_no_symbols_and_another_name_is_no_python(refused, made_up):
    assert "which is not Python" in refused(made_up("", name="server"))


def test_a_program_that_ends_while_it_is_dumped(krait, programs, any_python):
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    words = [krait, "dump", "--repeat", "1000000", "--every", "1ms", str(app.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as dump:
        assert dump.stdout.readline().startswith("Process ")
        app.process.kill()
        app.process.wait()
        out, err = dump.communicate(timeout=60)
    assert dump.returncode == 1
    assert re.fullmatch(rf"krait dump: (no process {app.pid}; it has ended|process {app.pid} (is ending|has ended)).*\n", err)


def test_a_thread_of_the_kernel(refused):
    if not open("/proc/2/stat").read().startswith("2 (kthreadd)"):
        pytest.skip("the kernel's threads cannot be seen from here")
    assert refused(2) == "krait dump: process 2 is a kernel thread, which runs no Python\n"


def test_of_several_processes_those_that_can_be_read_are_dumped(krait, programs, any_python):
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    run = subprocess.run([krait, "dump", "1", str(app.pid), str(os.getppid())], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and f"Process {app.pid}: " in run.stdout and re.search(r"^krait dump: .*process 1\b", run.stderr, re.M)


def test_a_full_disk_is_told(krait, programs, any_python):
    app = programs.start(any_python, "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    with open("/dev/full", "w") as full:
        run = subprocess.run([krait, "dump", str(app.pid)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 1 and "No space left" in run.stderr
