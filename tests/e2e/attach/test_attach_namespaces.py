# SPDX-License-Identifier: Apache-2.0
"""krait record --pid of a process in namespaces of its own, in another root, of another user, or with a seccomp filter."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from attached import refuse_writes, seen_pid  # noqa: F401  (refuse_writes: a fixture)
from attached_programs import WAITS
from conftest import Interpreter
from recording import Recording
from running import Running, wait_for

NAMESPACES = {
    "pid": ["--pid", "--fork"],
    "mount": ["--mount"],
    "user": ["--user", "--map-root-user"],
    "all but the network": ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--ipc", "--uts"],
    "network": ["--net"],
    "a container's": ["--pid", "--fork", "--mount-proc", "--net", "--ipc", "--uts"],
}


@pytest.fixture
def inside(tmp_path):
    """inside(words, python): starts the program by these words; returns what runs and its number here. An interpreter with a root
    of its own enters that inside: from a chroot no namespace of users can be made, nor one of mounts by unshare, see unshare(2)."""
    started = []

    def start(words, python, source=WAITS):
        done = subprocess.run([*words, "true"], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this cannot be made here: {done.stderr.strip()}")
        (tmp_path / "app.py").write_text(source)
        started.append(Running([*words, *python.prefix, python.exe, tmp_path / "app.py"], tmp_path))
        return started[-1], seen_pid(started[-1].process)

    yield start
    for program in started:
        program.end()


def has(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), open(f"/proc/{pid}/maps").read().count("memfd:krait (")


def record(krait, pid, folder, code=0):
    words = [krait, "record", "-v", "--pid", str(pid), "--for", "300ms", "-o", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stderr


def calls(krait, folder):
    done = subprocess.run([krait, "report", "--json", "--limit", "0", str(folder)], capture_output=True, text=True, timeout=60)
    return {f["name"].rpartition(".")[2]: f["calls"] for f in json.loads(done.stdout)["functions"]}


def records_twice(krait, app, pid, folder, brought):
    """Again, as what was brought once is used again, and leaves nothing besides."""
    before = has(pid)
    for i in range(2):
        said = record(krait, pid, folder / f"trace{i}")
        assert ("brings it along by a memfd" in said) == (brought and not i), said
        assert calls(krait, folder / f"trace{i}")["inner"] > 100
        Recording(folder / f"trace{i}").check(ended=False)
        wait_for(lambda: has(pid) == before, "the end of what the recording needed")
    assert sum("memfd:krait-agent" in line and " r-xp " in line for line in open(f"/proc/{pid}/maps")) == brought
    (folder / "stop").touch()


@pytest.mark.few_pythons
@pytest.mark.parametrize("names", NAMESPACES)
def test_a_process_in_namespaces_of_its_own_is_recorded(inside, krait, python, tmp_path, names):
    app, pid = inside(["unshare", *NAMESPACES[names]], python)
    records_twice(krait, app, pid, tmp_path, brought=False)
    assert app.process.stdout.read() == "done True\n"


@pytest.mark.few_pythons
def test_all_processes_of_a_container_are_watched_at_once(inside, krait, python, tmp_path):
    both = ["unshare", *NAMESPACES["a container's"], "sh", "-c", '"$@" & exec "$@"', "sh"]
    app, pid = inside(both, python)
    child = wait_for(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split(), "the other one")[0]
    wait_for(lambda: all("python" in os.readlink(f"/proc/{p}/exe") for p in (pid, child)), "Python")
    words = [krait, "top", "--exact", "--json", "--once", "--by", "process", "--limit", "1000", str(pid), child]
    table = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert {f["process"] for f in table["functions"] if f["function"] == "inner" and f["calls"]} == {pid, int(child)}
    assert not table["not_recorded"]
    (tmp_path / "stop").touch()
    app.process.wait(timeout=30)


@pytest.mark.few_pythons
@pytest.mark.parametrize("refused", [False, True], ids=["", "a kernel that lets only tracers write into code"])
def test_a_process_that_does_not_see_kraits_files_gets_the_agent_by_a_memfd(inside, krait, python, tmp_path, refuse_writes, refused):
    """It has an empty folder where krait's package is."""
    package = Path(krait).resolve().parent / "python"
    script = f"mount -t tmpfs none {package} && exec \"$@\""
    app, pid = inside(["unshare", "--mount", "sh", "-c", script, "sh"], python)
    if refused:
        refuse_writes()
    records_twice(krait, app, pid, tmp_path, brought=True)
    assert app.process.stdout.read() == "done True\n"


# It knows krait's PID, and has a file of the name that krait looks for.
IN_THE_WAY = """
import os, subprocess
def name(): return "memfd:krait-agent-" + open("pid").read().strip()
def of_memory(): return os.memfd_create(name()[6:])
def of_a_folder():
    fd = os.open("other/" + name() + " x", os.O_RDWR | os.O_CREAT)
    subprocess.run(["umount", "--lazy", "other"], check=True)  # from here on its path begins with its name
    return fd
print(os.getpid(), flush=True)
while not os.path.exists("pid"): pass
fd = KIND()
os.write(fd, b"mine")
open("ready", "w").close()
while not os.path.exists("stop"): pass
print("done", os.pread(fd, 9, 0) == b"mine", flush=True)
"""


@pytest.mark.parametrize("kind", ["of_memory", "of_a_folder"])
def test_krait_writes_its_agent_into_no_file_that_the_process_puts_there(inside, krait, any_python, tmp_path, kind):
    """Else root would write into it for the process."""
    package = Path(krait).resolve().parent / "python"
    (tmp_path / "other").mkdir()
    script = f"mount -t tmpfs none {package} && mount -t tmpfs none {tmp_path}/other && exec \"$@\""
    app, pid = inside(["unshare", "--mount", "sh", "-c", script, "sh"], any_python, IN_THE_WAY.replace("KIND", kind))
    begin = f"cd {tmp_path} && echo $$ > new && mv new pid && while [ ! -e ready ]; do sleep 0.01; done; exec \"$@\""
    words = ["sh", "-c", begin, "sh", krait, "record", "--pid", str(pid), "-o", str(tmp_path / "trace")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"into process {pid}: Bad file descriptor" in done.stderr, done.stderr
    (tmp_path / "stop").touch()
    assert app.process.stdout.read() == "done True\n"


def test_a_chroot_is_recorded_and_without_proc_refused(inside, krait, any_python, tmp_path):
    root = tmp_path / "root"
    places = ["usr", "lib", "lib64", "root", "etc", str(tmp_path)[1:]]
    for place in places:
        (root / place).mkdir(parents=True)
    binds = " && ".join(f"mount --rbind /{place} {root / place}" for place in places if place != "root")
    home = any_python.exe.split("/versions/")[0] if "/versions/" in any_python.exe else "/usr"
    (root / home[1:]).mkdir(parents=True, exist_ok=True)
    base = f"mount --make-rprivate / && {binds} && mount --rbind {home} {root}{home}"
    without = f"{base} && exec chroot {root} sh -c 'cd {tmp_path} && exec \"$@\"' sh \"$@\""
    app, pid = inside(["unshare", "--mount", "sh", "-c", without, "sh"], any_python)
    before = has(pid)
    said = record(krait, pid, tmp_path / "refused", code=1)
    assert "without /proc" in said and "mount /proc there" in said and has(pid) == before
    subprocess.run(["nsenter", f"--target={pid}", "--mount", "sh", "-c", f"mkdir -p {root}/proc"], check=False)
    os.makedirs(root / "proc", exist_ok=True)
    subprocess.run(["nsenter", f"--target={pid}", "--mount", "mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    records_twice(krait, app, pid, tmp_path, brought=not Path(f"/proc/{pid}/root{krait}").exists())
    assert app.process.stdout.read() == "done True\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_records_a_process_of_another_user(inside, everyones_krait, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/tmp") and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    tmp_path.chmod(0o777)
    exe = shutil.which("python3", path="/usr/bin") or pytest.skip("no Python that others may run")
    app, pid = inside(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], Interpreter("", (), exe, ""))
    records_twice(everyones_krait, app, pid, tmp_path, brought=True)
    assert app.process.stdout.read() == "done True\n"


FILTERED = """
import ctypes, os, struct
def inner(n): return n + 1
if os.geteuid() == 0:
    os.setgroups(range(100000, 101000))  # 7 kB of /proc/PID/status, before its line of the filter
libc = ctypes.CDLL(None, use_errno=True)
NUMBER, ALLOW, KILL = 0x20, 0x7fff0000, 0x80000000
rules = [(NUMBER, 0, 0, 0), *[(0x15, 0, 1, call) if i % 2 == 0 else (0x06, 0, 0, KILL) for call in CALLS for i in range(2)], (0x06, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
prog = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(program))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
print(os.getpid(), flush=True)
while not os.path.exists("stop"):
    for i in range(1000): inner(i)
print("done", True, flush=True)
"""


@pytest.mark.few_pythons
def test_a_process_with_a_seccomp_filter_is_refused_and_goes_on(programs, krait, python, tmp_path):
    """This filter kills the process for mmap, clone, clone3 and openat2: what a new thread and a library need."""
    app = programs.start(python, FILTERED.replace("CALLS", "(9, 56, 435, 437)"))
    before = has(app.pid)
    said = record(krait, app.pid, tmp_path / "trace", code=1)
    assert "seccomp filter" in said and "krait record -- COMMAND" in said and "--sample" in said, said
    assert has(app.pid) == before and not (tmp_path / "trace").exists()
    (tmp_path / "stop").touch()
    assert (app.process.stdout.read(), app.process.wait(30)) == ("done True\n", 0)
