# SPDX-License-Identifier: Apache-2.0
"""krait record --kernel by a user without rights: the program's own switches and page faults, and what is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import no_perf_events
from conftest import verb_json
from known_times import EMPTIED, KNOWN, MS, assert_spun, right_once

pytestmark = pytest.mark.usefixtures("alone")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module", autouse=True)
def nobody():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("dropping rights needs root and setpriv")
    if subprocess.run([*NOBODY, PYTHON, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"a user without rights may not run {PYTHON}")


@pytest.fixture(scope="module")
def krait(nobody, everyones_krait):
    return everyones_krait


@pytest.fixture
def folder():
    """One that a user without rights may write to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture
def own(krait, folder):
    """own(text): a recording of a program given as text, by nobody."""

    def run(text, *options, before=()):
        shutil.rmtree(folder / "t", ignore_errors=True)
        (folder / "program.py").write_text(text)
        command = [krait, "record", "--kernel", *options, "-o", folder / "t", "--", PYTHON, "program.py"]
        done = subprocess.run([*before, *NOBODY, *command], capture_output=True, text=True, cwd=folder, timeout=120)
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def events(krait, folder):
    def read(expression):
        command = [krait, "cat", "--json", "--filter", expression, folder / "t"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return read


def test_beside_a_process_that_runs_already_nothing_is_recorded_of_it(krait, folder):
    program = "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(0.001)\n"
    app = subprocess.Popen([*NOBODY, PYTHON, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        words = [*NOBODY, krait, "record", "--kernel", "--pid", app.stdout.readline().strip(), "--for", "300ms", "-o", folder / "t"]
        run = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and "krait record: the kernel is not recorded, the program is: " in run.stderr, run.stderr
        assert not (folder / "t" / "kernel").exists() and list(folder.glob("t/*/thread*"))
    finally:
        app.kill()
        app.communicate()


# ---- what is in it ----

WAITS = KNOWN + """
spun = []
named("sleeper", lambda: time.sleep(0.3))
named("spinner", lambda: spun.extend(spin(0.25)))
subprocess.run(["sleep", "0.1"])
if not (child := os.fork()):
    open("/proc/self/comm", "w").write("forked")
    time.sleep(0.05)
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps(spun))
"""


def assert_waits(found, spun):
    threads = {t["name"]: t for t in found["threads"]}
    assert {"python3", "sleeper", "spinner", "sleep", "forked"} <= set(threads)
    assert_spun(threads["spinner"], 0.25, *spun)
    for name, waited in (("sleeper", 300), ("sleep", 100), ("forked", 50)):
        assert waited * MS - MS <= threads[name]["blocked_other_ns"] <= (waited + 100) * MS, threads[name]
    assert threads["sleeper"]["pid"] == threads["python3"]["tid"] != threads["forked"]["pid"]
    assert found["own_only"] is True and found["lost"] == 0
    for thread in found["threads"]:
        assert thread["gone_ns"] > 0 or thread["name"] == "python3", thread


def test_threads_children_and_programs_are_followed(krait, own, folder):
    def record():
        spun = json.loads(own(WAITS).stdout)
        return verb_json(krait, "states", folder / "t"), spun

    right_once(record, lambda made: assert_waits(*made))


def assert_switches_within(merged):
    pid = next(e["vpid"] for e in merged if e["event"].startswith("c:"))
    inside, waits = False, []
    for event in merged:
        fields = event["payload"]
        if event["event"].startswith("c:"):
            inside = event["event"] == "c:call" and fields["code"]["label"] == "time.sleep"
            if inside:
                waits.append([])
        elif inside and fields["tid"] == pid and not fields.get("preempted"):
            waits[-1].append((event["event"], int(event["time_ns"])))
    assert len(waits) == 200
    for wait in waits:
        # A thread that was preempted before it slept comes back once more.
        left = next((i for i, (name, _) in enumerate(wait) if name == "perf_switch_out"), None)
        assert left is not None and wait[left + 1][0] == "perf_switch_in", wait
        assert wait[left + 1][1] - wait[left][1] > 0.9 * MS, wait


def test_switches_lie_within_the_calls_that_wait(own, events):
    """One that is kept from its CPU between setting the timer and leaving it leaves it for less, or not at all."""

    def record():
        own("import time\nfor _ in range(200):\n    time.sleep(0.001)\n")
        return events('name == "c:*" || name == "perf_switch_*"')

    right_once(record, assert_switches_within)


FAULTS = EMPTIED + """
import mmap
PAGES = 20000
with open("file", "wb") as file:
    file.write(os.urandom(4096 * 64))
    file.flush()
    os.fsync(file.fileno())
with open("file", "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    view.madvise(mmap.MADV_RANDOM)
    assert len({view[4096 * i] for i in range(64)}) > 1
memory = mmap.mmap(-1, 4096 * PAGES)
memory.madvise(15)  # MADV_NOHUGEPAGE: a fault for each page
if STOP:
    os.kill(os.getppid(), 19)  # krait: its rings run over
for i in range(PAGES):
    memory[4096 * i] = 1
    if not STOP and i % 2000 == 0:
        wait_for_krait()
if STOP:
    os.kill(os.getppid(), 18)
"""


def test_page_faults_are_told_one_by_one_the_disks_apart(krait, own, events, folder):
    def record():
        own(FAULTS.replace("STOP", "False"))
        return events("name == perf_page_fault")

    def assert_told(faults):
        assert len(faults) > 20000
        where = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip()
        if where in ("tmpfs", "overlayfs"):
            pytest.skip(f"{where} has no disk to read from")
        assert sum(e["payload"]["major"] for e in faults) >= 64
        thread = max(verb_json(krait, "states", folder / "t")["threads"], key=lambda t: t["on_cpu_ns"])
        assert thread["blocked_page_fault_ns"] > 0  # unless a disk was faster each time than its reader fell asleep

    right_once(record, assert_told)


def test_losses_are_counted(krait, own, events, info, folder):
    run = own(FAULTS.replace("STOP", "True"), "--kernel-ring-size", "64K")
    lost = re.search(r"lost +([\d,]+) kernel events on \d+ CPUs?: .*--kernel-ring-size", run.stderr)
    assert lost and "--kernel=sched" not in run.stderr, run.stderr
    kept = len(events("name == perf_page_fault"))
    facts = info(folder / "t")["kernel"]
    assert facts["lost"] == int(lost[1].replace(",", "")) > 10000
    assert kept + facts["lost"] >= 20000
    assert facts["lost"] == verb_json(krait, "states", folder / "t")["lost"]


def test_rings_are_of_one_size_where_not_all_have_what_was_asked_for(krait, own, folder):
    """The first CPU's ring fits into what a user may lock, the next one's does not any more."""
    allowed = int(Path("/proc/sys/kernel/perf_event_mlock_kb").read_text()) * os.cpu_count()
    wanted = 1 << ((allowed - 4).bit_length() - 1)
    limit = f"--memlock={wanted // 2 * 1024 + 65536}"
    run = own(FAULTS.replace("STOP", "False"), "--kernel-ring-size", f"{wanted}K", before=["prlimit", limit])
    assert "lost" not in run.stderr
    found = verb_json(krait, "info", folder / "t" / "kernel")
    assert found["duration_ns"] < 60_000 * MS and found["events"] > 20000


# ---- what is said ----


def test_a_recording_that_begins_switched_off_has_none_of_it_and_says_so(own, folder):
    done = own("pass", "--idle")
    assert "the kernel is not recorded, the program is: " in done.stderr and "never switched on" in done.stderr
    assert not (folder / "t").exists()


def test_it_is_said_what_is_missing_and_why(krait, own, folder):
    run = own("pass")
    assert "only the program's own context switches and page faults are recorded, no other kernel events: tracefs" in run.stderr
    assert re.search(r"^  missing +system calls, wake-ups, interrupts, other programs", run.stderr, re.M)
    assert "run krait as root" in run.stderr and "krait states" in run.stderr and "krait path" not in run.stderr
    states = subprocess.run([krait, "states", folder / "t"], capture_output=True, text=True)
    assert states.returncode == 0 and "python3" in states.stdout
    assert "missing: system calls, wake-ups, interrupts, other programs" in states.stderr


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="babeltrace2 is not installed")
def test_babeltrace2_reads_it_as_one_with_the_program(krait, own, folder):
    own("import time\ntime.sleep(0.01)\n")
    theirs = subprocess.run(["babeltrace2", folder / "t"], capture_output=True, text=True)
    ours = subprocess.run([krait, "cat", folder / "t"], capture_output=True, text=True)
    assert theirs.returncode == 0 and theirs.stderr == "" and ours.stdout == theirs.stdout
    assert "perf_switch_out" in ours.stdout and "python:call" in ours.stdout


# ---- where it is refused ----


def refused(krait, folder, paranoid, *words):
    """A krait whose perf events are refused, and that sees `paranoid` in its file."""
    (folder / "paranoid").write_text(f"{paranoid}\n")
    mount = f"mount --bind {folder}/paranoid /proc/sys/kernel/perf_event_paranoid && exec \"$@\""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace of its own can be made (a container without the right, or a chroot)")
    command = ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, no_perf_events.__file__, "setpriv"]
    return subprocess.run([*command, *NOBODY[1:], krait, *words], capture_output=True, text=True, cwd=folder, timeout=60)


@pytest.mark.parametrize(
    "paranoid, said",
    [(4, "perf_event_paranoid is 4.*sudo sysctl kernel.perf_event_paranoid=2"), (2, "perf_event_open is refused.*seccomp")],
)
def test_where_perf_events_are_refused_it_is_said_what_to_do(krait, folder, paranoid, said):
    words = ["record", "--kernel", "-o", folder / "t", "--", "sh", "-c", "echo done; exit 3"]
    run = refused(krait, folder, paranoid, *words)
    assert run.returncode == 3 and run.stdout == "done\n"
    assert "the kernel is not recorded, the program is: " in run.stderr
    assert "run krait as root" in run.stderr and re.search(said, run.stderr)
    assert not (folder / "t").exists()  # sh is no Python: there is nothing in it
    checks = json.loads(refused(krait, folder, paranoid, "doctor", "--json").stdout)["checks"]
    row = next(c for c in checks if c["name"] == "perf events")
    assert row["state"] == "warn" and re.search(said, row["fix"])


def test_doctor_tells_that_own_programs_can_be_recorded(krait):
    run = subprocess.run([*NOBODY, krait, "doctor", "--json"], capture_output=True, text=True, cwd="/tmp")
    rows = {c["name"]: c for c in json.loads(run.stdout)["checks"]}
    assert rows["perf events"]["state"] == "ok" and "own processes" in rows["perf events"]["value"]
    assert rows["tracefs"]["state"] == "warn"
