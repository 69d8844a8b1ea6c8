# SPDX-License-Identifier: Apache-2.0
"""krait record --kernel: the kernel's events beside the program's, on one clock, and nothing left behind."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from itertools import islice
from pathlib import Path

import pytest

from conftest import BUILD
from kernel_recorded import IN_TRACEFS, ROOMY, assert_nested, in_tracefs, kernel, tracefs  # noqa: F401  (kernel, tracefs: fixtures)
from known_times import right_once
from pages import page_text, run_page
from recording import ROOT
from told import told  # noqa: F401  (told: a fixture)

pytestmark = pytest.mark.usefixtures("alone")
CORPUS = ROOT.parent / "shared" / "ctf-corpus" / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"


def instances():
    return set(in_tracefs("ls instances").stdout.split())


@contextlib.contextmanager
def holder(take):
    """Somebody who opens a file of tracefs by that command of a shell, and keeps it."""
    process = subprocess.Popen([*IN_TRACEFS, f"{take} && echo held && read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.communicate("\n", timeout=30)


@contextlib.contextmanager
def reader(instance):
    """Somebody who has a file of it open: the kernel does not remove it then."""
    try:
        with holder(f"exec 3< instances/{instance}/trace_pipe"):
            yield
    finally:
        in_tracefs(f"rmdir instances/{instance}")


def ns(event):
    return int(event["time_ns"])


def tid(event):
    return event["common_context"]["tid"]


# ---- what is in it ----


def test_system_calls_lie_within_the_calls_that_make_them(kernel, events):
    run = kernel("import os\nfor _ in range(1000):\n    os.getppid()\n")
    assert_nested(events(run.path, 'name == "c:*" || name == "syscall_*_getppid"'), run.main.pid, 1000)


CALLING = "import os, time\nprint(os.getpid(), flush=True)\nwhile os.getppid(): time.sleep(0.001)\n"


def assert_each_call_holds_one(merged, pid):
    """The calls are no longer recorded a moment before the kernel's events are: the last call may have no end."""
    inside, held = False, []
    last = max(i for i, event in enumerate(merged) if "vpid" in event and event["vpid"] == pid)
    for event in merged[:last]:
        if event["event"] == "syscall_entry_getppid":
            held[-1:] = [count + inside for count in held[-1:]]
        elif event["vpid"] == pid:
            inside = event["event"] == "c:call" and event["payload"]["code"]["label"] == "posix.getppid"
            held += [0] if inside else []
    assert len(held) > 20 and set(held) == {1}


def test_so_they_do_in_a_process_that_runs_already(programs, krait, any_python, events, tmp_path):
    app = programs.start(any_python, CALLING)
    words = [krait, "record", "--pid", app.pid, "--kernel=syscalls", *ROOMY, "--for", "500ms", "-o", tmp_path / "trace"]
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and re.search(r"\n  kernel +[\d,]+ events", run.stderr), run.stderr
    assert_each_call_holds_one(events(tmp_path / "trace", 'name == "c:*" || name == "syscall_entry_getppid"'), app.pid)


def test_so_they_do_once_a_recording_that_was_off_is_switched_on(programs, krait, any_python, events, tmp_path):
    app = programs.start(any_python, CALLING)
    words = [krait, "record", "--pid", app.pid, "--idle", "--kernel=syscalls", *ROOMY, "--for", "500ms", "-o", tmp_path / "trace"]
    recorder = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, text=True)
    assert "ready and off" in recorder.stderr.readline()
    subprocess.run([krait, "ctl", str(app.pid), "start"], check=True, capture_output=True, timeout=60)
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and re.search(r"\n  kernel +[\d,]+ events", said), said
    assert_each_call_holds_one(events(tmp_path / "trace", 'name == "c:*" || name == "syscall_entry_getppid"'), app.pid)


def test_the_kernel_is_switched_off_and_on_with_the_recording(told, any_python, events):
    app = told(any_python, "--idle", "--kernel=sched,syscalls", *ROOMY)
    is_on = lambda: in_tracefs(f"cat instances/krait-{app.process.pid}/events/enable").stdout.strip() != "0"
    app.tell("os.getppid()")
    assert not is_on() and not any(stream.stat().st_size for stream in app.folder.glob("kernel/*_*"))
    app.ctl("start")
    assert is_on()
    app.tell("[os.getppid() for _ in range(3)]")
    app.ctl("stop")
    assert not is_on()
    app.tell("[os.getppid() for _ in range(5)]")
    app.ctl("start")
    app.tell("[os.getppid() for _ in range(7)]")
    app.end()
    assert_nested(events(app.folder, 'name == "c:*" || name == "syscall_*_getppid"'), app.pid, 3 + 7)
    assert len([e for e in events(app.folder / "kernel", "name == syscall_entry_getppid") if tid(e) == app.pid]) == 3 + 7
    switches = [e["event"] for e in events(app.folder / "kernel", "name == lttng_statedump_start || name == krait_off")]
    cpus = switches.count("krait_off")
    assert cpus >= len(os.sched_getaffinity(0)) and switches == ["lttng_statedump_start", *["krait_off"] * cpus, "lttng_statedump_start"]
    assert f"krait-{app.process.pid}" not in instances()


def test_a_recording_that_is_never_switched_on_leaves_nothing_of_the_kernel(told, any_python):
    app = told(any_python, "--idle", "--kernel=sched")
    app.tell("first()")
    _, said = app.process.communicate(timeout=60)
    assert app.process.returncode == 0 and "never switched on" in said and "kernel" not in said, said
    assert not app.folder.exists() and f"krait-{app.process.pid}" not in instances()


def test_a_script_that_attaches_records_the_kernel_too(programs, any_python, events, tmp_path):
    app = programs.start(any_python, CALLING)
    for i, (value, has_calls) in enumerate((("True", True), ("'sched'", False), ("['sched', 'syscalls']", True))):
        folder = tmp_path / f"trace{i}"
        text = f"import krait; krait.attach({app.pid}, {str(folder)!r}, kernel={value}, kernel_ring_size='1M', for_='300ms').wait()"
        run = any_python.run("-c", text, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        assert run.returncode == 0, run.stderr
        said = events(folder, 'name == "sched_switch" || name == "syscall_entry_getppid"')
        names = {event["event"] for event in said if "event" in event}  # else a loss
        assert names == {"sched_switch"} | ({"syscall_entry_getppid"} if has_calls else set())


def test_so_they_do_in_a_process_that_ends_early(kernel, events):
    """Its metadata is written long before the kernel's: both say the same clock."""
    run = kernel(
        """
        import os, subprocess, sys, time
        time.sleep(2)
        text = "import os\\nfor _ in range(1000):\\n    os.getppid()\\n"
        child = subprocess.Popen([sys.executable, "-c", text])
        child.wait()
        print(child.pid)
        time.sleep(2)
        """,
        groups="syscalls",
    )
    assert_nested(events(run.path, 'name == "c:*" || name == "syscall_*_getppid"'), int(run.stdout), 1000)
    clocks = [re.search(r"^clock \{.*?^\};", path.read_text(), re.M | re.S)[0] for path in run.path.glob("*/metadata")]
    assert len(clocks) == 3 and len(set(clocks)) == 1


def assert_all_there(kernel, events):
    run = kernel("import os\nfor _ in range(20000):\n    os.getppid()\n", groups="syscalls")
    main = run.main.pid
    calls = [e for e in events(run.path / "kernel", 'name == "syscall_*_getppid"') if tid(e) == main][-40000:]
    assert [e["event"] for e in calls] == ["syscall_entry_getppid", "syscall_exit_getppid"] * 20000
    assert len({e["payload"]["ret"] for e in calls[1::2]}) == 1  # the same parent all the time


def test_every_event_of_a_thread_is_there(kernel, events):
    assert_all_there(kernel, events)


def test_so_it_is_where_others_have_larger_pages_in_their_ring(kernel, events):
    read = in_tracefs("cat buffer_subbuf_size_kb")
    if read.returncode:
        pytest.skip("this kernel's rings have pages of one size: Linux 6.8 has others")
    size = "echo {} > buffer_subbuf_size_kb"
    made = in_tracefs(size.format(64))
    try:
        assert made.returncode == 0, made.stderr
        assert_all_there(kernel, events)
    finally:
        in_tracefs(size.format(read.stdout.strip()))


def assert_sleep(told, main):
    """Of a thread that sleeps once. Some switches of a virtual machine's own are never told: what it does tells that it is back."""
    call = next(i for i, e in enumerate(told) if e["event"] == "c:call" and e["payload"]["code"]["label"] == "time.sleep")
    end = next(i for i, e in enumerate(told) if i > call and e["event"] == "c:return")
    inside = told[call + 1 : end]
    left = [i for i, e in enumerate(inside) if e["event"] == "sched_switch" and e["payload"]["prev_tid"] == main and e["payload"]["prev_state"] == "1"]
    assert len(left) == 1, inside  # interruptible; it may be preempted besides
    away = inside[left[0] + 1 :]
    back = next((i for i, e in enumerate(away) if main in (e["payload"].get("next_tid"), tid(e))), len(away))
    wakes = [i for i, e in enumerate(away[:back]) if e["event"] == "sched_waking" and e["payload"]["tid"] == main]
    assert len(wakes) == 1 and ns(away[wakes[0]]) - ns(told[call]) >= 0.2e9, inside
    before = [e["event"] for e in away[: wakes[0]] if e["packet_context"] == away[wakes[0]]["packet_context"]]
    assert "timer_hrtimer_expire_entry" in before[-3:], before


def test_a_sleep_is_a_switch_away_and_a_wake_up_by_the_timer(kernel, events):
    def record():
        run = kernel("import time\ntime.sleep(0.2)\n", groups="sched,irq")
        return events(run.path, 'name == "sched_*" || name == timer_hrtimer_expire_entry || name == "c:*"'), run.main.pid

    right_once(record, lambda made: assert_sleep(*made))


MARKING = r"""
import os, sys, threading
marker = os.open(sys.argv[1], os.O_WRONLY)
def work(n):
    os.write(marker, b"begin %d" % n)
    os.write(marker, b"end %d\n" % n)
thread = threading.Thread(target=work, args=(7,), name="worker")
thread.start(); thread.join()
work(8)
os.write(marker, b'"\xff\\ ' + b"x" * 900)
os.system("echo of a shell > " + sys.argv[1])
"""


@pytest.fixture
def marked(krait, tmp_path, any_python):
    """A recording of a program that writes to the machine's trace_marker."""
    if in_tracefs("test -e options/copy_trace_marker").returncode:
        pytest.skip("this kernel does not pass trace_marker on to instances: Linux 6.16 does")
    (tmp_path / "marking.py").write_text(MARKING)
    run = in_tracefs(f"cd {tmp_path}; {krait} record -q --kernel=sched -o trace -- {any_python.exe} marking.py /mnt/trace_marker")
    assert run.returncode == 0, run.stderr
    return tmp_path / "trace"


def test_texts_written_to_trace_marker_are_marks_of_their_threads(marked, krait, events):
    texts = [(tid(e), e["payload"]["text"]) for e in events(marked, "name == ftrace_print")]
    main, worker, shell = texts[2][0], texts[0][0], texts[-1][0]
    assert [t for t in texts if not t[1].startswith('"')] == [
        (worker, "begin 7"), (worker, "end 7"), (main, "begin 8"), (main, "end 8"), (shell, "of a shell"),
    ]  # fmt: skip
    odd = texts[4][1]
    assert odd[0] == '"' and odd.endswith("\\ " + "x" * 900)
    assert len({main, worker, shell}) == 3
    command = [krait, "intervals", marked, "--start", r"^begin (\d)", "--stop", r"^end (\d)", "--key", "1", "--list", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert [(i["tid"], i["thread"], i["key"]) for i in found["list"]] == [(worker, "worker", "7"), (main, "MainThread", "8")]
    run = subprocess.run([krait, "report", marked, "--by", "mark", "--json"], check=True, capture_output=True, text=True)
    assert sorted((m["name"], m["text"], m["marks"]) for m in json.loads(run.stdout)["marks"]) == sorted(("ftrace_print", text, 1) for _, text in texts)


def test_a_recording_without_marks_does_not_declare_them(kernel, events):
    run = kernel("pass\n", groups="sched")
    assert "ftrace_print" not in (run.path / "kernel" / "metadata").read_text()


def test_processes_and_threads_have_their_makers(kernel, events):
    run = kernel(
        """
        import os, subprocess, threading
        t = threading.Thread(target=os.getppid)
        t.start(); t.join()
        pid = os.fork()
        if not pid:
            os._exit(7)
        os.waitpid(pid, 0)
        subprocess.run(["true"])
        print(pid)
        """,
        groups="sched",
    )
    main, child = run.main.pid, int(run.stdout)
    forks = [e["payload"] for e in events(run.path / "kernel", f"name == sched_process_fork && parent_pid == {main}")]
    threads = [f for f in forks if f["child_pid"] == main]
    assert len(threads) == 1 and threads[0]["child_tid"] != main
    assert [f["child_pid"] for f in forks if f["child_tid"] == child] == [child]
    assert {f["parent_tid"] for f in forks} == {main}
    execs = events(run.path / "kernel", "name == sched_process_exec")
    assert any(e["payload"]["filename"].endswith("/true") for e in execs)
    exits = events(run.path / "kernel", f"name == sched_process_exit && tid == {child}")
    assert [e["payload"]["tid"] for e in exits] == [child]


def test_the_state_dump_knows_who_was_there(kernel, events):
    sleeper = subprocess.Popen(["sleep", "60"])
    while ") S " not in Path(f"/proc/{sleeper.pid}/stat").read_text():
        time.sleep(0.001)
    try:
        run = kernel("pass\n", groups="sched")
        dump = events(run.path / "kernel", 'name == "lttng_statedump_*"')
    finally:
        sleeper.kill()
        sleeper.wait()
    assert dump[0]["event"] == "lttng_statedump_start" and dump[-1]["event"] == "lttng_statedump_end"
    states = {e["payload"]["tid"]: e["payload"] for e in dump if e["event"] == "lttng_statedump_process_state"}
    state = states[sleeper.pid]
    assert (state["name"], state["pid"], state["vpid"], state["ppid"]) == ("sleep", sleeper.pid, sleeper.pid, os.getpid())
    assert (state["type"], state["status"]) == (0, 5)  # a user's thread, waiting
    assert states[2]["name"] == "kthreadd" and states[2]["type"] == 1 or 2 not in states
    assert {e["payload"]["cpu_id"] for e in dump if e["event"] == "lttng_statedump_cpu_topology"} >= set(os.sched_getaffinity(0))


def test_what_krait_tells_of_the_machine_says_of_no_thread_that_it_ran_there(kernel, events):
    """Readers take the first context of a CPU for the thread that ran there since before."""
    told = events(kernel("pass").path, 'name == "lttng_statedump_*" || name == krait_steal')
    assert {e["event"] for e in told} >= {"lttng_statedump_process_state", "krait_steal"}
    assert {tid(e) for e in told} == {-1}


def test_groups_choose_the_events(kernel, events):
    run = kernel("import os\nos.getppid()\n", groups="sched")
    names = {e["event"] for e in events(run.path / "kernel")}
    assert "sched_switch" in names
    assert all(name.startswith(("sched_", "lttng_statedump_", "krait_steal", "krait_dumped_wait")) for name in names), names


def test_a_group_that_is_none_is_wrong_usage(krait, tmp_path):
    run = subprocess.run([krait, "record", "--kernel=sched,disk", "-o", tmp_path / "t", "true"], capture_output=True, text=True)
    assert run.returncode == 2
    assert "'disk' is not one of sched, syscalls" in run.stderr
    assert not (tmp_path / "t").exists()


TEXT = re.compile(r"-\d+ +\[(\d+)\] \S+ +(\d+): (\w+): (.*)")
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 32, "Z": 32, "P": 64, "I": 128, "R+": 256}


def kernels_text(lines):
    """The kernel's own rendering of its events: CPU to [(ticks, what)]."""
    found = {}
    for cpu, ticks, name, text in (match.groups() for match in map(TEXT.search, lines) if match):
        number = {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)\b", text)}
        if name == "sched_switch":
            state = re.search(r"prev_state=(\S+)", text)[1]
            what = (number["prev_pid"], number["prev_prio"] - 100, STATES[state], number["next_pid"], number["next_prio"] - 100)
        elif name.startswith("sched_wak"):
            what = (number["pid"], number["prio"] - 100, number["target_cpu"])
        else:
            name, what = f"irq_{name}", int(re.search(r"vec=(\d+)", text)[1])
        found.setdefault(int(cpu), []).append((int(ticks), (name, what)))
    return found


def krait_text(krait, folder):
    """The same of what krait recorded."""
    wanted = 'name == sched_switch || name == sched_waking || name == sched_wakeup || name == "irq_softirq_*"'
    command = [krait, "cat", "--clock-cycles", "--no-delta", "-f", "none", "--filter", wanted, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    fields = {"sched_switch": ("prev_tid", "prev_prio", "prev_state", "next_tid", "next_prio")}
    found = {}
    for line in run.stdout.splitlines():
        ticks, name, cpu = re.match(r"\[(\d+)\] (\w+): \{ cpu_id = (\d+) \}", line).groups()
        number = {key: int(value) for key, value in re.findall(r"(\w+) = (-?\d+)\b", line.split("}, {", 2)[-1])}
        if number.get("prev_state") == 16:
            number["prev_state"] = 32  # a zombie that is reaped between one instance's look and the other's
        if name.startswith("irq_softirq_"):
            what = number["vec"]
        else:
            what = tuple(number[f] for f in fields.get(name, ("tid", "prio", "target_cpu")))
        found.setdefault(int(cpu), []).append((int(ticks), (name, what)))
    return found


NAPS = """
import subprocess, threading, time
def naps():
    for _ in range(300):
        time.sleep(0.001)
threads = [threading.Thread(target=naps) for _ in range(4)]
for t in threads: t.start()
for _ in range(5): subprocess.run(["true"])
for t in threads: t.join()
"""


def recorded_twice(kernel):
    """A recording, and what the kernel prints of another instance with the same events."""
    names = "sched/sched_switch sched/sched_waking sched/sched_wakeup irq/softirq_entry irq/softirq_exit irq/softirq_raise"
    made = in_tracefs(
        "mkdir instances/text && cd instances/text && echo 16384 > buffer_size_kb && echo x86-tsc > trace_clock && "
        f"for e in {names}; do echo 1 > events/$e/enable || exit 1; done"
    )
    assert made.returncode == 0, made.stderr
    try:
        run = kernel(NAPS, groups="sched,irq")
        text = in_tracefs("echo 0 > instances/text/tracing_on; cat instances/text/trace").stdout
    finally:
        in_tracefs("rmdir instances/text")
    return run, kernels_text(text.splitlines())


def assert_same(ours, theirs):
    """But for the order of neighbours and their times: each instance takes an event for itself, and an interrupt, or a virtual
    machine's host, may come between the two."""
    first = [what for _, what in ours[:20]]
    starts = [i for i in range(len(theirs)) if [what for _, what in theirs[i : i + 20]] == first]
    assert starts, first
    rest = iter(theirs[min(starts, key=lambda i: abs(theirs[i][0] - ours[0][0])) :])
    near, apart = list(islice(rest, 16)), 0
    for ticks, what in ours:
        same = next((event for event in near if event[1] == what), None)
        assert same, (ticks, what, near)
        near.remove(same)
        near += islice(rest, 1)
        apart += abs(ticks - same[0]) >= 2_000_000
    assert not [event for event in near if event[0] < ours[-16][0]], "events that krait does not have"
    assert apart <= len(ours) // 100


def test_the_kernels_own_text_says_the_same(kernel, krait):
    """Another instance records the same events, and the kernel prints them."""
    if "x86-tsc" not in in_tracefs("cat trace_clock").stdout:
        pytest.skip("this kernel's clock is not the program's counter")

    def check(made):
        run, theirs = made
        wanted = {what[0] for events in theirs.values() for _, what in events}
        found = krait_text(krait, run.path / "kernel")
        ours = {cpu: [event for event in events if event[1][0] in wanted][5:-5] for cpu, events in found.items()}
        assert sum(map(len, ours.values())) > 2000
        for cpu, events in ours.items():
            if len(events) >= 20:  # of one that slept all the while there are next to none
                assert_same(events, theirs[cpu])

    right_once(lambda: recorded_twice(kernel), check)


# ---- how it is read ----


def declared(metadata):
    """Event name to [(field, bits or text)] of TSDL as LTTng and krait write it."""
    sizes = dict(re.findall(r"integer \{ size = (\d+);[^}]*\} := (\w+);", metadata))
    sizes = {name: bits for bits, name in sizes.items()} | {n: b for b, n in re.findall(r"integer \{ size = (\d+);[^}]*\} := (\w+);", metadata)}
    found = {}
    for block in re.findall(r"^event \{\n(.*?)^\};", metadata, re.M | re.S):
        name = re.search(r'name = "([^"]+)"', block)[1]
        fields = re.findall(r"^\s+(integer \{ size = (\d+);[^}]*\}|string(?: <[^>]*>)?|\w+) _(\w+)(\[16\])?;", block, re.M)
        found[name] = {field: bits or sizes.get(kind, "text") + (array or "") if not bits else bits + (array or "") for kind, bits, field, array in fields}
    return found


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="babeltrace2 is not installed")
def test_names_and_widths_are_lttngs(kernel):
    if not CORPUS.exists():
        pytest.skip("no reference traces of LTTng here: ../shared/ctf-corpus")
    run = kernel("pass\n")
    theirs = declared(subprocess.run(["babeltrace2", "-o", "ctf-metadata", CORPUS], capture_output=True, text=True, check=True).stdout)
    ours = declared((run.path / "kernel" / "metadata").read_text())
    compared = 0
    for name in set(theirs) & set(ours):
        if name.startswith("syscall_entry_"):
            continue  # addresses where LTTng has strings, and arguments' types went on since
        for field in set(theirs[name]) & set(ours[name]):
            assert ours[name][field] == theirs[name][field], (name, field)
            compared += 1
    assert compared > 100
    assert set(theirs["sched_switch"]) == set(ours["sched_switch"])
    assert set(theirs["lttng_statedump_process_state"]) == set(ours["lttng_statedump_process_state"])


@pytest.mark.skipif(not shutil.which("babeltrace2"), reason="babeltrace2 is not installed")
def test_babeltrace2_reads_both_parts_as_one_without_a_message(kernel, krait):
    run = kernel("import subprocess, time\nsubprocess.run(['true'])\ntime.sleep(0.01)\n")
    reference = subprocess.run(["babeltrace2", run.path], capture_output=True, text=True)
    assert reference.returncode == 0 and reference.stderr == ""
    ours = subprocess.run([krait, "cat", run.path], capture_output=True, text=True)
    assert ours.stdout == reference.stdout and "sched_switch" in ours.stdout and "python:call" in ours.stdout


OPENS = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
time.sleep(0.01)
for _ in range(100):
    os.getppid()
    with open("/proc/self/stat") as file:
        file.read()
time.sleep(0.3)
"""


def lttng_analysis(name, run, *options):
    """What one of lttng-analyses' commands prints. They take the time alone that all streams have."""
    tool = shutil.which(name) or pytest.skip(f"no {name} here; it comes with Debian's python3-lttnganalyses")
    done = subprocess.run([tool, "--no-progress", *options, run.path / "kernel"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Error" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_lttngs_analyses_take_all_of_a_recording(kernel):
    run = kernel(OPENS).check()
    counted = lttng_analysis("lttng-syscallstats", run, "--tid", str(run.main.pid))
    counts = dict(re.findall(r"^ - (\w+) +(\d+) ", counted, re.M))
    assert 100 <= int(counts["getppid"]) <= 102 and int(counts["openat"]) >= 100  # the agent asks too
    begin, end = re.search(r"Timerange: \[\S+ \S+:([\d.]+), \S+ \S+:([\d.]+)\]", counted).groups()
    assert (float(end) - float(begin)) % 60 > 0.3
    read = lttng_analysis("lttng-iousagetop", run, "--limit", "100").split("Per-process I/O Write")[0]
    assert re.search(rf" \({run.main.pid}\) ", read)
    for name in ("lttng-cputop", "lttng-schedstats", "lttng-irqstats", "lttng-iolatencystats"):
        assert "Timerange" in lttng_analysis(name, run)


def test_names_in_system_calls_are_texts(kernel, events):
    """The address where the kernel tells no more: LTTng's readers want a text."""
    run = kernel(OPENS)
    opened = [e["payload"]["filename"] for e in events(run.path, "name == syscall_entry_openat") if tid(e) == run.main.pid]
    assert len(opened) > 100 and all(re.fullmatch("0x[0-9a-f]{5,16}|/.*", name) for name in opened)
    buffers = [e["payload"]["buf"] for e in events(run.path, "name == syscall_entry_read") if tid(e) == run.main.pid]
    assert len(buffers) > 100 and all(re.fullmatch(r"\d+", str(address)) for address in buffers)


def test_the_other_verbs_see_the_program_alone(kernel, krait, report):
    run = kernel("def f():\n    pass\nfor _ in range(100):\n    f()\n")
    assert [row["calls"] for row in report(run.path) if row["name"].endswith("f") and row["module"] == "__main__"] == [100]
    flame = subprocess.run([krait, "flame", run.path, "-o", run.path.parent / "f.svg"], capture_output=True, text=True)
    assert flame.returncode == 0 and "warning" not in flame.stderr
    alone = subprocess.run([krait, "report", run.path / "kernel"], capture_output=True, text=True)
    assert alone.returncode == 1 and "`krait states` and `krait cat` read it" in alone.stderr


def test_info_and_the_summary_tell_the_kernels_part(kernel, krait, info):
    run = kernel("pass\n")
    said = re.search(r"^  kernel +([\d,.]+) events, [\d.]+ \wi?B", run.stderr, re.M)
    text = subprocess.run([krait, "info", run.path], capture_output=True, text=True).stdout
    assert "recorded   by krait" in text
    told = re.search(r"^  kernel +([\d,]+) events in (\d+) streams$", text, re.M)
    assert said and told and said[1] == told[1]
    facts = info(run.path)
    assert facts["kernel"]["events"] == int(told[1].replace(",", "")) and facts["kernel"]["lost"] == 0
    assert facts["processes"] == 1 and facts["finished"] is True
    assert any(row["name"] == "sched_switch" for row in facts["event_classes"])


# ---- the kernel's functions ----


def test_functions_of_the_kernel_or_why_there_are_none(kernel, krait, events):
    checks = json.loads(subprocess.run([krait, "doctor", "--json"], capture_output=True, text=True).stdout)["checks"]
    row = next(c for c in checks if c["name"] == "functions")
    run = kernel("import os\nfor _ in range(100):\n    os.stat('/')\n", "--kernel-functions", "vfs_*stat*")
    told = events(run.path / "kernel", 'name == "kernel_function*" || name == "syscall_*stat*"')
    calls = [e for e in told if e["event"].startswith("syscall_entry_") and tid(e) == run.main.pid]
    assert len(calls) >= 100
    functions = [e for e in told if e["event"].startswith("kernel_function")]
    if "not the kernel's" in row["value"]:
        assert not functions and row["state"] == "warn"
        assert f"the kernel's functions are not recorded: {row['fix']}" in run.stderr
        return
    own = [e for e in told if tid(e) == run.main.pid]
    inside = [b for a, b in zip(own, own[1:]) if a["event"].startswith("syscall_entry_")]
    assert all(e["event"] in ("kernel_function", "kernel_function_entry") for e in inside[-100:])
    assert all("stat" in e["payload"]["function"]["label"] for e in functions)
    assert ("entries alone" in run.stderr) == (row["value"] == "entry alone")


@pytest.mark.parametrize(
    "options, why",
    [
        (["--kernel-functions", "vfs_*"], "--kernel-functions needs --kernel"),
        (["--kernel-ring-size", "1M"], "--kernel-ring-size needs --kernel"),
        (["--kernel", "--kernel-ring-size", "1"], "--kernel-ring-size is too small: 4K at least"),
        (["--kernel=sched,foo"], "'foo' is not one of sched"),
    ],
)
def test_options_of_the_kernel_that_cannot_be(krait, options, why):
    run = subprocess.run([krait, "record", *options, "--", "true"], capture_output=True, text=True)
    assert run.returncode == 2 and why in run.stderr


def test_groups_without_a_sign_of_equality_are_no_command(krait, tmp_path):
    for options, guessed in [(["--kernel", "sched,irq"], True), (["--kernel", "nosuchcommand"], False), (["sched"], False)]:
        run = subprocess.run([krait, "record", "-o", tmp_path / options[-1], *options], capture_output=True, text=True)
        assert run.returncode == 127 and "cannot run" in run.stderr
        assert ("Did you mean --kernel=sched,irq?" in run.stderr) == guessed


# ---- losses ----


def test_losses_are_counted_where_they_happen(kernel, krait, info, events):
    """krait is stopped for a while, and its small rings run over."""
    text = """
        import os, signal, time
        parent = os.getppid()
        os.kill(parent, signal.SIGSTOP)
        for _ in range(50000):
            os.getppid()
        os.kill(parent, signal.SIGCONT)
        time.sleep(0.1)
        """
    run = kernel(text, "--kernel-ring-size", "64K", groups="syscalls")
    lost = re.search(r"lost +([\d,]+) kernel events on \d+ CPUs?: .*--kernel-ring-size makes it larger, --kernel=sched\s+records fewer events", run.stderr)
    assert lost, run.stderr
    facts = info(run.path)
    assert facts["kernel"]["lost"] == facts["kernel"]["lost_events"] == int(lost[1].replace(",", "")) == facts["lost"]["kernel ring full"]
    shown = subprocess.run([krait, "info", run.path], capture_output=True, text=True).stdout
    assert "kernel ring full" in shown and "--kernel=sched" in shown
    told = subprocess.run([krait, "cat", run.path / "kernel"], capture_output=True, text=True).stderr
    assert "discarded" in told
    printed = subprocess.run([krait, "cat", "--json", run.path / "kernel"], capture_output=True, text=True).stdout
    told = [event for event in map(json.loads, printed.splitlines()) if event.get("event", "").endswith("getppid")]
    kept = sum(tid(event) == run.main.pid for event in told)
    assert kept < 100000 <= kept + facts["kernel"]["lost"]


def test_losses_are_as_many_as_the_kernel_counts(record, any_python):
    """Pages that are full to the end do not tell how many are missing before them."""
    script = record.script(
        """
        import os
        print("up", flush=True)
        input()
        for _ in range(400000):
            os.getppid(), os.getpgid(0), os.getpriority(0, 0)
        """
    )
    options = ("--kernel=syscalls", "--kernel-ring-size", "64K", "--no-c-calls")
    process, _ = record.start(any_python, script, options=options, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "up\n"
    mine = f"krait-{process.pid}"
    with reader(mine):
        _, stderr = process.communicate("\n", timeout=120)
        stats = in_tracefs(f"cat instances/{mine}/per_cpu/cpu*/stats").stdout
    told = re.search(r"lost +([\d,]+) kernel events on \d+ CPUs?: ", stderr)
    assert told, stderr
    assert int(told[1].replace(",", "")) == sum(map(int, re.findall(r"^overrun: (\d+)", stats, re.M)))


def test_a_full_disk_loses_events_and_harms_nothing(record, krait, any_python, small_disk, info):
    """The rings have room for all of the program's events, some 48 bytes each: krait may get no CPU until its end."""
    folder = small_disk("3m")
    options = ("--kernel", "--no-c-calls", *ROOMY)
    run = record.text(any_python, "import os\nfor _ in range(100000):\n    os.getppid()\n", options=options, trace=folder / "t")
    assert run.status == 0
    assert re.search(r"lost +[\d,]+ kernel events: the disk did not take them", run.stderr), run.stderr
    assert "cannot write the kernel's events" in run.stderr
    lost = info(folder / "t")["lost"]
    assert lost["kernel disk"] > 1000 and "kernel ring full" not in lost
    cat = subprocess.run([krait, "cat", folder / "t" / "kernel"], capture_output=True, text=True)
    assert cat.returncode == 0 and "sched_switch" in cat.stdout


# ---- a guest of the kernel ----


def test_nothing_is_left_behind(record, any_python):
    process, _ = record.start(any_python, record.script("pass\n"), options=("--kernel",))
    process.communicate(timeout=60)
    assert process.returncode == 0 and f"krait-{process.pid}" not in instances()


def test_ctrl_c_ends_the_recording_of_the_kernel(record, any_python, events):
    script = record.script("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process, trace = record.start(any_python, script, options=("--kernel=sched",), start_new_session=True)
    assert process.stdout.readline() == "up\n"
    mine = f"krait-{process.pid}"
    assert mine in instances()
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert "kernel " in stderr and mine not in instances()
    assert events(trace / "kernel", "name == sched_process_exit")


def test_a_signal_before_the_program_begins_ends_the_recording(record, any_python):
    script = record.script("import time\ntime.sleep(60)\n")
    process, trace = record.start(any_python, script, options=("--kernel",))
    while not (trace / "kernel").exists() and process.poll() is None:
        time.sleep(0.001)
    process.terminate()
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM, stderr
    assert f"krait-{process.pid}" not in instances()


def killed(record, any_python, seconds):
    """A recording whose recorder was killed; the program is ended too. Its folder, and the recorder's pid."""
    script = record.script("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process, trace = record.start(any_python, script, options=("--kernel",), start_new_session=True)
    assert process.stdout.readline() == "up\n"
    time.sleep(seconds)
    process.kill()
    when = time.time_ns()
    process.wait()
    os.killpg(process.pid, signal.SIGKILL)
    return trace, process.pid, when


def test_a_killed_recorder_leaves_an_instance_that_doctor_shows_and_the_next_removes(record, any_python, krait, kernel):
    _, pid, _ = killed(record, any_python, 0.1)
    mine = f"krait-{pid}"
    assert mine in instances()
    checks = json.loads(subprocess.run([krait, "doctor", "--json"], capture_output=True, text=True).stdout)["checks"]
    row = next(c for c in checks if c["name"] == "left behind")
    assert row["state"] == "warn" and mine in row["value"] and "krait record --kernel" in row["fix"]
    kernel("pass\n")
    assert mine not in instances()
    checks = json.loads(subprocess.run([krait, "doctor", "--json"], capture_output=True, text=True).stdout)["checks"]
    assert next(c for c in checks if c["name"] == "left behind")["state"] == "ok"


def test_an_instance_that_is_in_use_is_left_on_though_its_maker_is_not_seen(kernel):
    """A krait in another container made it: its processes have no number here."""
    other = "instances/krait-4194304"  # one more than there can be: PID_MAX_LIMIT
    with holder(f"mkdir {other} && echo 1 > {other}/events/sched/sched_switch/enable && exec 3> {other}/tracing_on"):
        kernel("pass\n")
        assert in_tracefs(f"cat {other}/events/sched/sched_switch/enable {other}/tracing_on").stdout == "1\n1\n"
    kernel("pass\n")
    assert "krait-4194304" not in instances()


def test_a_killed_recorder_leaves_all_but_the_last_second(record, any_python, kernel, events):
    def record_killed():
        trace, _, when = killed(record, any_python, 3)
        kernel("pass\n")  # takes the instance away
        return when - ns(events(trace / "kernel", "name == sched_switch")[-1])

    def check(late):
        assert late < 2.5e9  # what else the machine does comes on top of that second

    right_once(record_killed, check)


def test_what_others_trace_is_left_as_it_was(kernel):
    state = "cat instances/other/tracing_on instances/other/events/sched/sched_switch/enable instances/other/trace_clock events/enable tracing_on trace_clock"
    made = in_tracefs("mkdir instances/other && echo 1 > instances/other/events/sched/sched_switch/enable && " + state)
    assert made.returncode == 0, made.stderr
    try:
        kernel("pass\n")
        assert in_tracefs(state).stdout == made.stdout
        assert "other" in instances()
        assert "sched_switch" in in_tracefs("head -c 100000 instances/other/trace").stdout
    finally:
        in_tracefs("rmdir instances/other")


def test_an_instance_that_somebody_reads_is_switched_off_and_said(record, any_python):
    """The kernel keeps it then; events that go on in it would make all of the machine slower."""
    script = record.script("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process, _ = record.start(any_python, script, options=("--kernel=sched,syscalls",), start_new_session=True)
    assert process.stdout.readline() == "up\n"
    mine = f"krait-{process.pid}"
    with reader(mine):
        assert in_tracefs(f"cat instances/{mine}/events/enable").stdout == "X\n"  # some
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
        assert mine in instances()
        assert in_tracefs(f"cat instances/{mine}/events/enable").stdout == "0\n"
        assert f"krait record: tracing's instances/{mine} is left behind (Device or resource busy)" in " ".join(stderr.split())


def test_two_recordings_at_once(record, any_python, events):
    script = record.script("import os, time\nfor _ in range(300):\n    os.getppid(); time.sleep(0.001)\n")
    both = [record.start(any_python, script, options=("--kernel=syscalls", *ROOMY)) for _ in range(2)]
    for process, _ in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    for _, trace in both:
        assert len(events(trace / "kernel", "name == syscall_entry_getppid")) >= 300
    assert not instances() & {f"krait-{process.pid}" for process, _ in both}


def test_the_commands_of_its_page_work(krait, any_python, tmp_path):
    said = list(run_page("kernel.md", krait, any_python, tmp_path).values())
    assert len(said) == 8
    assert "  kernel " in said[0].stderr and "  timer  " in said[1].stdout and "  kernel " in said[2].stdout
    assert re.search(r"c:call: .*posix\.stat", said[3].stdout) and "syscall_entry_" in said[3].stdout
    switched = [json.loads(line) for line in said[4].stdout.splitlines()]
    assert 1 <= len(switched) <= 3  # it goes to sleep once; that it is back is not always told, what else preempts it is the machine's affair
    assert all(e["event"] == "sched_switch" and "python3" in (e["payload"]["prev_comm"], e["payload"]["next_comm"]) for e in switched)


def test_its_page_lists_the_events(kernel):
    table = (ROOT / "src" / "kernel" / "kernel_events.def").read_text()
    names = [n for n in re.findall(r'^KRAIT_KERNEL_EVENT\(\w+, "[^"]+", "([^"]*)"\)', table, re.M) if n]
    said = []
    for cell in re.findall(r"^\| (?:`[\w-]+`|always) \| (.*) \|$", page_text("kernel.md"), re.M):
        first = ""
        for word in re.findall(r"`([^`]+)`", cell):
            first = word if not word.startswith("_") else first
            said.append(first[: first.rindex("_")] + word if word.startswith("_") else word)
    assert len(names) > 40
    for name in names:
        assert any(re.fullmatch(word.replace("*", ".*"), name) for word in said), name
