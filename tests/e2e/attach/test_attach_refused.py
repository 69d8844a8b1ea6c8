# SPDX-License-Identifier: Apache-2.0
"""krait record --pid of processes that it cannot attach to: it names the reason and a remedy that works, and the process goes on."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from attached import functions, has, seen_pid
from running import wait_for

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PYTHON = "/usr/bin/python3"  # every user may run it

# Works until it gets a byte. It needs no module that Python would have to load as a library.
RUNS = """
import os, time
def inner(n): return n + 1
def told():
    try: return os.read(0, 1)
    except BlockingIOError: return b""
os.set_blocking(0, False)
print(os.getpid(), flush=True)
n = rounds = 0
while not told():
    for i in range(1000): n = inner(n)
    rounds += 1
    time.sleep(0.001)
print("done", n == rounds * 1000, flush=True)
"""

# Installs a seccomp filter that answers the system calls `calls` with `otherwise`, and allows all others: seccomp(2), bpf(4).
FILTER = """
import ctypes, struct
def install(calls, otherwise):
    libc = ctypes.CDLL(None, use_errno=True)
    rules = [(0x20, 0, 0, 0)]  # load the number
    for number in calls:
        rules += [(0x15, 0, 1, number), (0x06, 0, 0, otherwise)]
    rules += [(0x06, 0, 0, 0x7fff0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(program)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
"""

# Runs a command in which reading and stopping another process fails with EPERM, as Yama and Docker's older filters have it.
WITHOUT_PTRACE = [sys.executable, "-c", f"{FILTER}import os, sys\ninstall((101, 310), 0x50001)\nos.execv(sys.argv[1], sys.argv[1:])"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def start(programs):
    """start(words): a program of RUNS, which these words begin."""
    return lambda *words, **popen: programs.add(words, stdin=subprocess.PIPE, **popen)


@pytest.fixture
def everyones_folder():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture
def refusal(krait, everyones_folder):
    """refusal(pid, *command): what krait says; the process has what it had before, and there is no recording."""

    def refused(pid, *command):
        before, folder = has(pid), everyones_folder / "refused"
        words = [*(command or [krait]), "record", "--pid", pid, "-o", folder]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and not folder.exists(), done.stderr
        assert has(pid) == before
        return done.stderr

    return refused


def records(run, pid, folder):
    run("record", "--pid", pid, "--for", "200ms", "-o", folder)
    assert functions(run, folder)["inner"]["calls"] > 100


def samples(run, pid, folder):
    run("record", "--sample", "--pid", pid, "--for", "300ms", "-o", folder)
    assert "<module>" in functions(run, folder)


def goes_on(app):
    assert (app.process.communicate("x", timeout=60)[0], app.process.returncode) == ("done True\n", 0)


@needs_root
def test_a_process_of_another_user(start, refusal, run, everyones_krait, tmp_path):
    app = start(PYTHON, "-c", RUNS)
    said = refusal(app.pid, *NOBODY, everyones_krait)
    assert said == f"krait record: process {app.pid} belongs to root; run krait as root (sudo)\n"
    records(run, app.pid, tmp_path / "trace")
    goes_on(app)


@needs_root
def test_a_process_that_its_own_user_may_not_read(start, refusal, run, everyones_krait, tmp_path):
    """It has made itself undumpable: prctl(2), PR_SET_DUMPABLE."""
    app = start(*NOBODY, PYTHON, "-c", f"import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{RUNS}")
    said = refusal(app.pid, *NOBODY, everyones_krait)
    assert f"process {app.pid}" in said and "run krait as root (sudo)" in said, said
    samples(run, app.pid, tmp_path / "trace")
    goes_on(app)


@needs_root
@pytest.mark.parametrize("scope, remedy", [(1, "sudo sysctl kernel.yama.ptrace_scope=0"), (3, "boot again")])
def test_yama(start, refusal, run, everyones_krait, tmp_path, scope, remedy):
    """Its number is in a file of the test's own, as not every kernel has Yama; the refusal is a filter's."""
    (tmp_path / "kernel" / "yama").mkdir(parents=True)
    (tmp_path / "kernel" / "yama" / "ptrace_scope").write_text(f"{scope}\n")
    bind = ["unshare", "--mount", "sh", "-c", f"mount --bind {tmp_path}/kernel /proc/sys/kernel && exec \"$@\"", "sh"]
    if subprocess.run([*bind, "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    app = start(*NOBODY, PYTHON, "-c", RUNS)
    said = refusal(app.pid, *bind, *NOBODY, PYTHON, *WITHOUT_PTRACE[1:], everyones_krait)
    assert f"kernel.yama.ptrace_scope is {scope})" in said and remedy in said, said
    samples(run, app.pid, tmp_path / "trace")
    goes_on(app)


@needs_root
def test_root_whom_a_filter_forbids_to_attach_is_not_told_to_become_root(start, refusal, krait):
    app = start(PYTHON, "-c", RUNS)
    said = refusal(app.pid, *WITHOUT_PTRACE, krait)
    assert "docker run --cap-add SYS_PTRACE" in said and "as root (sudo)" not in said, said
    goes_on(app)


@pytest.mark.few_pythons
def test_a_process_with_a_seccomp_filter_that_allows_all(start, refusal, run, krait, python, tmp_path):
    """krait cannot see what the filter allows. Both remedies that it names work."""
    (tmp_path / "app.py").write_text(f"{FILTER}install((), 0)\n{RUNS}")
    app = start(*python.prefix, python.exe, tmp_path / "app.py")
    said = refusal(app.pid)
    assert "has a seccomp filter" in said and f"krait record --sample --pid {app.pid}" in said and "krait record -- COMMAND" in said, said
    samples(run, app.pid, tmp_path / "sampled")
    goes_on(app)
    words = [krait, "record", "-o", tmp_path / "trace", "--", *python.prefix, python.exe, tmp_path / "app.py"]
    done = subprocess.run([str(w) for w in words], input="x", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("done True\n"), done.stderr
    assert "told" in functions(run, tmp_path / "trace")


@pytest.fixture
def static_python(any_python, tmp_path):
    """CPython in a program without shared libraries, and the environment that it needs."""
    variables = "import json, sys, sysconfig; print(json.dumps([sys.prefix, *map(sysconfig.get_config_var, %r)]))" % (
        ["LIBPL", "LIBRARY", "INCLUDEPY", "LIBS", "SYSLIBS"],
    )
    home, folder, library, include, *libs = json.loads(any_python.run("-c", variables).stdout)
    archive = Path(folder or "") / (library or "")
    if not shutil.which("cc") or archive.suffix != ".a" or not archive.exists():
        pytest.skip("no C compiler, or no static library of Python")
    (tmp_path / "main.c").write_text("#include <Python.h>\nint main(int n, char **words) { return Py_BytesMain(n, words); }\n")
    words = ["cc", "-static", "-rdynamic", f"-I{include}", "-o", tmp_path / "python3", tmp_path / "main.c", archive]
    done = subprocess.run([*words, *" ".join(filter(None, libs)).split(), "-lm"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no static Python can be linked here: {done.stderr[-300:]}")
    return tmp_path / "python3", {**os.environ, "PYTHONHOME": home}


@pytest.mark.long
def test_a_static_python(start, refusal, run, static_python, tmp_path):
    exe, env = static_python
    app = start(exe, "-c", RUNS, env=env)
    said = refusal(app.pid)
    assert "linked statically, or with musl" in said and f"sample it: krait record --sample --pid {app.pid}\n" in said, said
    samples(run, app.pid, tmp_path / "trace")
    goes_on(app)


@needs_root
def test_a_container_that_only_root_reaches(start, refusal, run, everyones_krait, tmp_path):
    namespaces = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--net"]
    if subprocess.run([*NOBODY, *namespaces, "true"], capture_output=True).returncode:
        pytest.skip("users may make no namespaces here")
    app = start(*NOBODY, *namespaces, PYTHON, "-c", RUNS)
    pid = seen_pid(app.process)
    said = refusal(pid, *NOBODY, everyones_krait)
    assert "is in a network and a PID namespace of its own" in said and "run krait as root" in said, said
    records(run, pid, tmp_path / "trace")
    goes_on(app)


# Traces the process without stopping it, until its input ends: ptrace(2), PTRACE_SEIZE.
TRACES = """
import ctypes, os, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) == 0
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_traced_already(start, refusal, run, any_python, tmp_path):
    app = start(any_python.exe, "-c", RUNS)
    tracer = start(any_python.exe, "-c", TRACES, app.pid)
    said = refusal(app.pid)
    assert f"already traced by process {tracer.pid} (a debugger or strace); end that one first" in said, said
    tracer.process.communicate(timeout=60)
    records(run, app.pid, tmp_path / "trace")
    goes_on(app)


def test_a_process_that_has_ended_but_is_not_waited_for(start, krait, any_python, tmp_path):
    source = "import os, sys\npid = os.fork()\nif not pid: os._exit(7)\nprint(pid, flush=True)\nsys.stdin.read()\nprint(os.waitpid(pid, 0)[1] >> 8)"
    app = start(any_python.exe, "-c", source)
    wait_for(lambda: "Z (zombie)" in open(f"/proc/{app.pid}/status").read(), "the end")
    for options in [], ["--children"]:
        words = [krait, "record", "--pid", str(app.pid), "-o", str(tmp_path / "refused"), *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "has ended, but its parent has not waited for it yet" in done.stderr, done.stderr
        assert not (tmp_path / "refused").exists()
    assert app.process.communicate("", timeout=60)[0] == "7\n"


def test_a_process_that_ends_at_any_instant_of_the_attach(start, krait, any_python, tmp_path, rounds):
    for i in range(rounds(5, 100)):
        app = start(any_python.exe, "-c", RUNS)
        words = [krait, "record", "--pid", str(app.pid), "-o", str(tmp_path / f"trace{i}")]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as recorder:
            time.sleep(random.random() / 10)
            goes_on(app)
            said = recorder.communicate(timeout=60)[1]
        reasons = (f"process {app.pid} has ended", f"process {app.pid} is ending", f"no process {app.pid};", "cannot be recorded")
        assert recorder.returncode == 0 or any(reason in said for reason in reasons), said


# Starts a process as vfork(2) does, until which has executed its program its parent cannot be stopped. Before that it opens a FIFO.
VFORKS = """
import os, sys
print(os.getpid(), flush=True)
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
print("done", os.wait()[1] == 0, flush=True)
os.read(0, 1)
"""


def test_a_process_whose_threads_do_not_stop(start, refusal, any_python, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    app = start(any_python.exe, "-c", VFORKS, tmp_path / "fifo")
    wait_for(lambda: Path(f"/proc/{app.pid}/stat").read_text().rpartition(")")[2].split()[0] == "D", "the wait of vfork")
    said = refusal(app.pid)
    assert f"no thread of process {app.pid} stopped within 2 s" in said and "try again" in said, said
    (tmp_path / "fifo").write_text("")
    goes_on(app)


# The main thread does the same, by C that holds no GIL, while another one runs Python.
ONE_VFORKS = """
import ctypes, os, sys, threading, time
def inner(n): return n + 1
def work():
    while True: inner(time.sleep(0.001) or 1)
libc, actions, pid = ctypes.CDLL(None), ctypes.create_string_buffer(256), ctypes.c_int()
libc.posix_spawn_file_actions_init(actions)
libc.posix_spawn_file_actions_addopen(actions, 0, sys.argv[1].encode(), os.O_RDONLY, 0)
words = (ctypes.c_char_p * 2)(b"true", None)
threading.Thread(target=work, daemon=True).start()
print(os.getpid(), flush=True)
assert libc.posix_spawn(ctypes.byref(pid), b"/bin/true", actions, None, words, words) == 0
print("spawned", flush=True)
os.waitpid(pid.value, 0)
os.read(0, 1)
print("done True", flush=True)
os._exit(0)
"""


def test_a_thread_that_does_not_stop_goes_on_while_krait_records_the_others(start, krait, any_python, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    app = start(any_python.exe, "-c", ONE_VFORKS, tmp_path / "fifo")
    wait_for(lambda: Path(f"/proc/{app.pid}/stat").read_text().rpartition(")")[2].split()[0] == "D", "the wait of vfork")
    words = [krait, "record", "-q", "--pid", str(app.pid), "-o", tmp_path / "trace"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as recorder:
        try:
            wait_for(lambda: recorder.poll() is not None or any((tmp_path / "trace").glob("*/thread*")), "events")
            (tmp_path / "fifo").write_text("")
            assert select.select([app.process.stdout], [], [], 30)[0], "it stands still"
            assert recorder.poll() is None
        finally:
            recorder.send_signal(signal.SIGINT)
            said = recorder.communicate(timeout=60)[1]
    assert app.process.stdout.readline() == "spawned\n", said
    goes_on(app)


# Sits in a library that is taken for an allocator, by its name, until it is told.
ALLOCATOR = """
#include <unistd.h>
long sits(void) { char byte; return read(0, &byte, 1); }
"""
SITS = """
import ctypes, os, sys
sits = ctypes.CDLL(sys.argv[1]).sits
def inner(n): return n + 1
print(os.getpid(), flush=True)
sits()
print("left", flush=True)
while os.read(0, 1) != b"x":
    for i in range(1000): inner(i)
print("done", True, flush=True)
"""


@pytest.mark.long
def test_a_process_that_is_at_no_safe_place(start, refusal, run, any_python, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    library = tmp_path / "libjemalloc.so.2"
    (tmp_path / "sits.c").write_text(ALLOCATOR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "sits.c"], check=True)
    app = start(any_python.exe, "-c", SITS, library)
    said = refusal(app.pid)
    assert f"process {app.pid} was at no safe place for 10 s" in said and "try again" in said, said
    os.write(app.process.stdin.fileno(), b"a")
    assert app.process.stdout.readline() == "left\n"
    run("record", "--pid", app.pid, "--for", "100ms", "-o", tmp_path / "trace")
    goes_on(app)
