# SPDX-License-Identifier: Apache-2.0
"""krait report of recordings made with --kernel: a program that does known things, measured by its own clocks, and the
same splits worked out from the recording's bytes and text without krait's own reading side."""

import bisect
import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict

import pytest

from conftest import verb_json
from gil_oracle import GilOracle
from kernel_oracle import Oracle, events_of, text_of
from kernel_recorded import ROOMY, kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from known_times import KNOWN, MS, right_once
from pages import run_page
from recording import BEGINS, ENDS

pytestmark = pytest.mark.usefixtures("alone")

# Each function is timed by the thread's own clocks: perf_counter_ns, thread_time_ns, and the scheduler's count of the
# nanoseconds that it waited for a CPU (proc_pid_schedstat(5); the first number there is a tick old). What it waited for is
# known from both sides: `least` and `most`. PyDLL keeps the GIL while it reads that count, which is asked for so often.
PROGRAM = KNOWN + """
import ctypes, mmap

now = time.perf_counter_ns
told = {}
pread = ctypes.PyDLL(None).pread
pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)
ALL_THE_WHILE = 100_000

def delay(stat):
    text = ctypes.create_string_buffer(100)
    assert pread(stat.fileno(), text, len(text), 0) > 0
    return int(text.value.split()[1])

def clocks(stat):
    while True:
        ready, cpu, at = delay(stat), time.thread_time_ns(), now()
        if delay(stat) == ready and now() - at < ALL_THE_WHILE:  # it went on: the three are of one moment
            return at, cpu, ready

def measured(work):
    def run():
        taken = stolen()
        with open("/proc/thread-self/schedstat", "rb") as stat:
            before = clocks(stat)
            least, most = work() or (0, 0)
            wall, cpu, ready = (b - a for a, b in zip(before, clocks(stat)))
        told[work.__name__] = {
            "wall": wall, "cpu": cpu, "ready": ready, "least": least, "most": most, "stolen": at_most_stolen(taken)
        }
    return run

@measured
def computes():
    compute(0.2)

@measured
def sleeps():
    begin = now()
    time.sleep(0.3)
    return 300_000_000, now() - begin

def forget(file):
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

@measured
def reads():
    with open("cold", "rb", buffering=0) as file:
        forget(file)
        while file.read(1 << 20):
            pass

@measured
def touches():
    with open("cold", "rb") as file:
        forget(file)
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
            for at in range(0, len(pages), 1 << 17):
                pages[at]

def until_thread(wait, act):
    \"\"\"How long a wait takes at the least and at the most that another thread ends, 0.2 s after it begins.\"\"\"
    acts = []
    def run():
        time.sleep(0.2)
        acts.append(now())
        act()
        acts.append(now())
    thread = threading.Thread(target=run)
    thread.start()
    begin = now()
    wait()
    thread.join()
    return acts[0] - begin, acts[1] - begin

@measured
def waits_for_socket():
    ours, theirs = socket.socketpair()
    return until_thread(lambda: ours.recv(1), lambda: theirs.send(b"x"))

@measured
def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    return until_thread(lock.acquire, lock.release)

@measured
def waits_for_child():
    ours, theirs = os.pipe()
    begin = now()
    child = os.fork()
    if not child:
        time.sleep(0.25)
        os.write(theirs, now().to_bytes(8, "little"))
        os._exit(0)
    os.waitpid(child, 0)
    end = now()
    return int.from_bytes(os.read(ours, 8), "little") - begin, end - begin

@measured
def shares_its_cpu():
    hog = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    compute(0.2)
    hog.kill()
    hog.wait()

def fights_for_gil():
    def one():
        compute(0.15)
    def two():
        compute(0.15)
    threads = [threading.Thread(target=measured(work)) for work in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

with open("cold", "wb") as file:
    file.write(os.urandom(8 << 20))
    file.flush()
    os.fsync(file.fileno())
for work in (computes, sleeps, reads, touches, waits_for_socket, waits_for_lock, waits_for_child, fights_for_gil):
    work()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
shares_its_cpu()
print(json.dumps(told))
"""
WAITS = {
    "sleeps": "timer",
    "reads": "disk",
    "touches": "page_fault",
    "waits_for_socket": "network",
    "waits_for_lock": "lock",
    "waits_for_child": "child",
    "one": "gil",
    "two": "gil",
}


def wrong_splits(krait, run):
    """The functions whose split is not within 2 % of their time, or 1 ms, of what their own clocks say, and what the host of
    a virtual machine took from its CPUs: these clocks leave that out."""
    told = json.loads(run.stdout)
    assert len(told) == 10
    found = {f["name"].split(".")[-1]: f for f in verb_json(krait, "report", run.path, "--process", run.main.pid)["functions"]}
    wrong = {}
    for name, clocks in told.items():
        split, wall = found[name]["wall_total_ns"], clocks["wall"]
        late = max(MS, wall // 50) + clocks["stolen"]
        waited = wall - clocks["cpu"] - clocks["ready"]
        state = split.get(WAITS.get(name))
        wanted = {"on_cpu": clocks["cpu"], "runnable": clocks["ready"] - split["throttled"], "unknown": 0}
        if WAITS.get(name) == "gil":  # while it is ready just to ask for the GIL, it waits for that
            wanted["runnable"], waited = split["runnable"], wall - clocks["cpu"] - split["runnable"]
        near = [abs(split[key] - ns) <= late for key, ns in wanted.items()]
        near.append(abs(found[name]["total_ns"] - wall) <= late)
        if clocks["most"]:
            near.append(clocks["least"] - late <= state <= clocks["most"] + late)
        elif state is not None:
            near.append(abs(state - waited) <= late)
        if not all(near):
            wrong[name] = (near, clocks, split)
    return wrong


def test_the_split_of_each_function_is_as_its_own_clocks_say(krait, kernel):  # noqa: F811
    """The program reads its clocks a moment before a function begins and after it ends. Where another thread has the CPU in
    that moment, they tell of another time: each is right once in five times."""
    wrong = None

    def assert_right(run):
        nonlocal wrong
        still = wrong_splits(krait, run)
        wrong = still if wrong is None else {name: why for name, why in still.items() if name in wrong}
        assert not wrong, wrong

    right_once(lambda: kernel(PROGRAM), assert_right)


# ---- worked out anew ----


class Clock:
    """Ticks to nanoseconds since the epoch, exactly."""

    def __init__(self, metadata):
        clock = re.search(r"^clock \{.*?^\};", metadata, re.M | re.S)[0]
        numbers = {key: int(value) for key, value in re.findall(r"(\w+)\s*=\s*(-?\d+)\s*;", clock)}
        self.freq, self.offset = numbers["freq"], numbers.get("offset_s", 0) * numbers["freq"] + numbers.get("offset", 0)

    def ns(self, ticks):
        return (self.offset + ticks) * 10**9 // self.freq


STATE = {
    **dict.fromkeys(("user", "system", "interrupt"), "on_cpu"),
    **dict.fromkeys(("woken", "preempted"), "runnable"),
    **dict.fromkeys(("unknown", "gone"), "unknown"),
    "blocked_other": "other",
}


def state_of(kernels):
    return STATE.get(kernels) or kernels.removeprefix("blocked_")


class History:
    """What a thread did, [(since, state), ...], asked for in the order of time."""

    def __init__(self, history):
        self.history, self.at = [*history, (1 << 63, None)], 0

    def passed(self, begin, end):
        split = defaultdict(int)
        while self.history[self.at + 1][0] <= begin:
            self.at += 1
        at = self.at
        while self.history[at][0] < end:
            (since, state), (until, _) = self.history[at : at + 2]
            split[state] += min(until, end) - max(since, begin)
            at += 1
        return split


def split_calls(events, history, splits):
    """Adds to splits[function] what the thread did while it was innermost, and while it was on the stack."""
    stack, last = [], None
    for ns, function in events:
        if stack and ns > last:
            now = history.passed(last, ns)
            for outer in set(stack):
                for state, part in now.items():
                    splits[outer]["total"][state] += part
                    if outer == stack[-1]:
                        splits[outer]["self"][state] += part
        last = ns
        if function:
            stack.append(function)
        else:
            stack.pop()
    assert not stack


def begins_and_ends(process, thread, clock):
    """(time, function) of a begin, (time, None) of an end."""
    for event in thread.events:
        if event.name in BEGINS:
            code = process.codes[event.code]
            yield clock.ns(event.time), (code.kind, code.module, code.qualname, code.file, code.line)
        elif event.name in ENDS:
            yield clock.ns(event.time), None


def gil_waits(thread, clock):
    """[(begin, end), ...]"""
    waits, begun = [], None
    for event in thread.events:
        if event.name == "gil:wait":
            begun = clock.ns(event.time)
        elif event.name in ("gil:take", "gil:switch") and begun is not None:
            waits.append((begun, clock.ns(event.time)))
            begun = None
    return waits


RUNS = ("on_cpu", "runnable")


def with_gil(history, waits):
    """The history, with the GIL for what a thread waited for while it waited for that, and where it was ready just to ask
    for it, and slept on."""
    borders = sorted({ns for ns, _ in history} | {ns for wait in waits for ns in wait})
    times, result = [ns for ns, _ in history], []
    for ns in borders:
        state = history[bisect.bisect_right(times, ns) - 1][1]
        at = bisect.bisect_right(waits, (ns, 1 << 63)) - 1
        inside = at >= 0 and waits[at][0] <= ns < waits[at][1]
        sleeps_on = inside and any(s not in RUNS for t, s in history[bisect.bisect_right(times, ns) :] if t < waits[at][1])
        result.append((ns, "gil" if inside and (state not in RUNS or (state == "runnable" and sleeps_on)) else state))
    return result


SHORT = """
import os, subprocess, threading, time

def wait(n):
    time.sleep(0.002)
    return n and wait(n - 1)

def steps():
    for n in range(20):
        time.sleep(0.001)
        yield n

def ask():
    for _ in range(300):
        os.stat("/")
    return subprocess.run(["sleep", "0.01"]).returncode

def work():
    wait(5)
    ask()
    return sum(steps())

told, heard = [], []

def tells():  # keeps the GIL until the other has had it
    told.append(True)
    while not heard:
        pass

def hears():
    while not told:
        time.sleep(0.001)
    heard.append(True)

threads = [threading.Thread(target=target) for target in (work, work, work, work, tells, hears)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
"""


@pytest.mark.long
def test_a_recordings_splits_are_those_of_its_bytes_and_text(krait, kernel):  # noqa: F811
    run = kernel(SHORT).check()
    oracle = Oracle(text_of(krait, run.path / "kernel"))
    lives = {life.tid: life for life in oracle.lives}
    clock, wanted = Clock(run.main.metadata), defaultdict(lambda: {"self": defaultdict(int), "total": defaultdict(int)})
    for thread in run.main.threads:
        history = [(0, "unknown"), *((ns, state_of(state)) for ns, state in lives[thread.tid].history)]
        history = with_gil(history, gil_waits(thread, clock))
        split_calls(begins_and_ends(run.main, thread, clock), History(history), wanted)
    assert len(wanted) > 100 and any(split["self"]["gil"] for split in wanted.values())
    for row in verb_json(krait, "report", run.path, "--process", run.main.pid)["functions"]:
        key = tuple(row[k] for k in ("kind", "module", "name", "file", "line"))
        told = {part: {k: v for k, v in row[f"wall_{part}_ns"].items() if v} for part in ("self", "total")}
        assert told == {part: {k: v for k, v in wanted[key][part].items() if v} for part in told}, key


def parts_in_calls(run, thread, clock, oracle):
    """(from, to, part) of the thread's waits for the GIL, by what the recording's own events tell, inside of calls."""
    depth, begun, calls = 0, 0, []
    for ns, function in begins_and_ends(run.main, thread, clock):
        begun = begun if depth else ns
        depth += 1 if function else -1
        if not depth:
            calls.append((begun, ns))
    for since, until, part, _ in oracle.parts(thread.tid):
        for begin, end in calls:
            if max(since, begin) < min(until, end):
                yield max(since, begin), min(until, end), part


def test_what_nobody_held_of_the_gil_is_ready_or_cpu_with_the_kernel(krait, kernel, tmp_path):  # noqa: F811
    """But for the time until the thread is woken, or while another is meant to take it."""
    run = kernel(SHORT).check()
    oracle, gil = Oracle(text_of(krait, run.path / "kernel")), GilOracle(krait, run.path)
    lives = {life.tid: life for life in oracle.lives}
    clock, alone, beside, runs = Clock(run.main.metadata), Counter(), Counter(), 0
    for thread in run.main.threads:
        states = [(0, "unknown"), *((ns, state_of(state)) for ns, state in lives[thread.tid].history)]
        history = with_gil(states, gil_waits(thread, clock))
        for since, until, part in sorted(parts_in_calls(run, thread, clock, gil)):
            alone[f"{part}_ns"] += until - since
            passed = History(history).passed(since, until)
            beside[f"{part}_ns"] += passed["gil"]
            runs += (passed["runnable"] + passed["on_cpu"]) * (part == "free")
    without = shutil.copytree(run.path, tmp_path / "without", ignore=shutil.ignore_patterns("kernel"))
    told = {folder: verb_json(krait, "report", folder, "--process", run.main.pid) for folder in (without, run.path)}
    assert +Counter(told[without]["gil"]) == +alone and +Counter(told[run.path]["gil"]) == +beside
    assert all(sum(found["gil"].values()) == found["wall_ns"]["gil"] for found in told.values())
    assert alone["free_ns"] - beside["free_ns"] == runs > 0


WHO = """
import json, os, subprocess, threading, time

def asks():
    for _ in range(100):
        os.getppid()

def sleeps():
    time.sleep(0.05)

def waits_for_lock():
    lock = threading.Lock()
    lock.acquire()
    def release():
        time.sleep(0.05)
        lock.release()
    thread = threading.Thread(target=release, name="releaser")
    thread.start()
    lock.acquire()
    return thread.native_id

def waits_for_child():
    child = os.fork()
    if not child:
        time.sleep(0.05)
        os._exit(0)
    os.waitpid(child, 0)
    return child

def spins():
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        sum(range(1000))

def fights(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))

asks()
sleeps()
threads = [threading.Thread(target=fights, args=[0.1], name=name) for name in ("red", "blue")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
who = {"waits_for_lock": waits_for_lock(), "waits_for_child": waits_for_child()}
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
hog = subprocess.Popen(["sh", "-c", "while :; do :; done"])
spins()
hog.kill()
who["spins"] = hog.pid
print(json.dumps(who))
"""


def assert_names_who(krait, run):
    who = json.loads(run.stdout)

    def longest(function, **like):
        (call,) = verb_json(krait, "report", run.path, "--process", run.main.pid, "--why", function)["slowest"]
        rows = [row for row in call["waits"] if all(row[k] == v for k, v in like.items())]
        return sorted(rows, key=lambda row: row["ns"])[-1]

    assert longest("sleeps")["state"] == "timer" and longest("sleeps")["by_tid"] is None
    lock = longest("waits_for_lock")
    assert (lock["state"], lock["syscall"], lock["by_tid"], lock["by_name"]) == ("lock", "futex", who["waits_for_lock"], "releaser")
    child = longest("waits_for_child")
    assert (child["state"], child["syscall"], child["by_tid"]) == ("child", "wait4", who["waits_for_child"])
    hog = longest("spins", state="runnable", preempted=True, by_tid=who["spins"])
    assert hog["by_name"] == "sh" and hog["ns"] > 20 * MS, hog
    for call in verb_json(krait, "report", run.path, "--why", "fights")["slowest"]:
        gil = max((row for row in call["waits"] if row["state"] == "gil"), key=lambda row: row["ns"])
        assert {call["thread"], gil["by_name"]} == {"red", "blue"} and gil["ns"] > 20 * MS, call
    (asks,) = verb_json(krait, "report", run.path, "--why", "asks")["slowest"]
    assert [row["count"] for row in asks["syscalls"] if row["syscall"] == "getppid"] == [100]


@pytest.mark.long
def test_why_names_who_woke_a_thread_and_who_took_its_cpu(krait, kernel):  # noqa: F811
    right_once(lambda: kernel(WHO), lambda run: assert_names_who(krait, run))


def test_the_system_calls_of_a_call_are_those_of_the_text(krait, kernel):  # noqa: F811
    """Each as often as it begins there in the call's time, on the call's thread."""
    run = kernel(SHORT)
    begun = [
        (ns, name.removeprefix("syscall_entry_"), fields["context_tid"])
        for ns, name, fields in events_of(text_of(krait, run.path / "kernel"))
        if name.startswith("syscall_entry_")
    ]
    calls = verb_json(krait, "report", run.path, "--process", run.main.pid, "--why", "work", "--limit", "0")["slowest"]
    assert len(calls) == 5
    for call in calls:
        end = call["begin_ns"] + call["duration_ns"]
        wanted = Counter(name for ns, name, tid in begun if tid == call["tid"] and call["begin_ns"] <= ns < end)
        assert {row["syscall"]: row["count"] for row in call["syscalls"]} == wanted and sum(wanted.values()) > 300


@pytest.mark.parametrize("inside", ["program", "krait"])
def test_threads_in_a_pid_namespace_of_their_own_are_known(krait, record, any_python, tmp_path, inside):
    """They bear other numbers there than in the kernel's events."""
    script = record.script("import time\ndef sleeps():\n    time.sleep(0.2)\nsleeps()\n")
    apart = ["unshare", "--pid", "--fork", *(["--mount-proc"] if inside == "krait" else [])]
    run = [krait, "record", "--kernel", *ROOMY, "-o", tmp_path / "trace", "--"]
    words = [*apart, *run] if inside == "krait" else [*run, *apart]
    done = subprocess.run([*words, any_python.exe, script], capture_output=True, text=True, timeout=60)
    if "\nunshare: " in f"\n{done.stderr}":
        pytest.skip(f"no namespace of processes can be made: {done.stderr.strip()}")
    (row,) = (f for f in verb_json(krait, "report", tmp_path / "trace")["functions"] if f["name"] == "sleeps")
    split = row["wall_total_ns"]
    assert split["unknown"] == 0 and 199 * MS <= split["timer"] <= row["total_ns"], split


def test_the_examples_of_its_page_work(krait, any_python, tmp_path):
    ran = run_page("report.md", krait, any_python, tmp_path, programs_of="kernel.md")
    assert len(ran) >= 5
    for line, run in ran.items():
        assert "timer" in run.stdout or "record" in line, (line, run.stdout, run.stderr)
