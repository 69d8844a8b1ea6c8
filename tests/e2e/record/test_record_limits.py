# SPDX-License-Identifier: Apache-2.0
"""What bounds a recording: the memory of its rings, its time, its size, the disk."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from browser import served
from conftest import is_offline
from recording import ROOT, Recording
from running import BEGINS_OTHERS

# Bursts of calls, as many as a line of input says, each answered.
BURSTS = """\
    import sys
    def f(): pass
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)): f()
        print("done", flush=True)
    """


def answer(process, text):
    """Sends a line, if any, and waits for one."""
    if text:
        process.stdin.write(f"{text}\n")
        process.stdin.flush()
    return process.stdout.readline()


def end(process):
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, ""), errors
    return errors


# -- rings --

BURST = 2_000_000  # calls of 12 bytes: 24 MB


def test_nothing_is_lost_while_the_collector_is_kept_from_running(record, any_python, krait, info):
    process, trace = record.start(any_python, record.script(BURSTS), stdin=subprocess.PIPE)
    assert answer(process, None) == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert answer(process, BURST) == "done\n"
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert answer(process, BURST // 2) == "done\n"
    assert "  lost" not in end(process)
    facts = info(trace)
    assert facts["lost"] == {} and facts["event_classes"][0]["count"] > 1.5 * BURST
    assert facts["rings"]["ring_bytes"] == 2 << 20 and facts["rings"]["buffer_bytes"] == 256 << 20
    assert 20 << 20 < facts["rings"]["grown_bytes"] <= 64 << 20
    text = subprocess.run([krait, "info", trace], capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"rings +2.0 MiB a thread; grew by \d+.* MiB, of 256.0 MiB allowed", text), text


def test_rings_that_may_not_grow_at_all(record, any_python, info):
    run = record.text(any_python, "print()", options=["--buffer-size", "0"])
    assert info(run.path)["rings"]["buffer_bytes"] == 0


def test_rings_grow_no_further_than_they_may(record, any_python, info):
    process, trace = record.start(
        any_python, record.script(BURSTS), options=["--buffer-size", "4M"], stdin=subprocess.PIPE
    )
    assert answer(process, None) == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert answer(process, BURST) == "done\n"
    finally:
        os.kill(process.pid, signal.SIGCONT)
    errors = end(process)
    facts = info(trace)
    assert facts["rings"]["grown_bytes"] == facts["rings"]["buffer_bytes"] == 4 << 20
    assert facts["lost"]["ring full"] > BURST and "use --buffer-size" in " ".join(errors.split())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_beside_four_processes_that_compute_for_ever_no_program_loses_an_event(krait, tmp_path):
    """The programs that krait is measured with, on two CPUs."""
    two = sorted(os.sched_getaffinity(0))[:2]
    results, env = tmp_path / "results.json", {**os.environ, "KRAIT": krait, "KRAIT_BENCH_DIR": str(tmp_path / "bench")}
    command = [ROOT / "bench" / "run", "--parts", "busy", "--quick", "--out", results]
    done = subprocess.run(command, env=env, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, two))
    if done.returncode and is_offline(done.stderr):
        pytest.skip("no network to install the programs from")
    assert done.returncode == 0, done.stderr[-2000:]
    busy = json.loads(results.read_text())["busy"]
    assert busy["hogs"] == 4 and len(busy["programs"]) == 15
    runs = {name: run for name, (run,) in busy["programs"].items()}
    assert {name: run["lost"] for name, run in runs.items() if run["lost"]} == {}
    assert all(run["events"] for run in runs.values())


# -- time and size --


def size_of(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def wait_until(condition):
    """Of what another process does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_ended(trace):
    """Whether the recording is finished though its program runs: the reserve goes when all streams are written."""
    return any("recording_limit" in p.read_text() for p in trace.glob("*/metadata")) and not (trace / ".reserve").exists()


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [["--for", "2s"], ["--max-size", "4M"]], ids=lambda o: o[0][2:])
def test_a_recording_ends_at_its_limit_and_the_program_runs_on(record, python, krait, info, report, options):
    """It is whole and readable then, and the program is hooked no more."""
    script = record.script(BURSTS)
    process, trace = record.start(python, script, options=options, stdin=subprocess.PIPE)
    assert answer(process, None) == "ready\n"

    def worked_on():
        assert answer(process, 20_000) == "done\n"
        return is_ended(trace)

    wait_until(worked_on)
    told, last = "", time.monotonic() + 60
    while "waits for the command" not in told:  # the program holds standard error open
        assert select.select([process.stderr], [], [], max(last - time.monotonic(), 0))[0], told
        part = os.read(process.stderr.fileno(), 65536).decode()
        assert part, told
        told += part
    facts, size = info(trace), size_of(trace)
    assert facts["limit"].startswith(options[0]) and facts["process_list"][0]["end"] == "stop"
    assert facts["finished"] and facts["damage"] is None and (options[0] == "--for" or size <= 4 << 20)
    before = {f["name"]: f["calls"] for f in report(trace)}["f"]
    assert before >= 20_000
    for _ in range(3):
        assert answer(process, 100_000) == "done\n"
    errors = told + end(process)
    assert f"{facts['limit']}: the recording ends here" in " ".join(errors.split()) and "--wait" not in errors
    assert f"The recording is complete: read it now. krait (process {process.pid}) waits for the command" in errors and "passes SIGTERM" in errors
    assert errors.startswith("krait: recorded the command for ")  # not how long it took: it went on
    assert size_of(trace) == size and {f["name"]: f["calls"] for f in report(trace)}["f"] == before
    text = subprocess.run([krait, "info", trace], capture_output=True, text=True, timeout=60).stdout
    assert f"by {facts['limit']}; the program ran on" in text


def test_of_what_is_too_much_at_once_the_rest_is_counted(record, any_python, info):
    process, trace = record.start(any_python, record.script(BURSTS), options=["--max-size", "1M"], stdin=subprocess.PIPE)
    assert answer(process, None) == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert answer(process, BURST) == "done\n"
    finally:
        os.kill(process.pid, signal.SIGCONT)
    wait_until(lambda: is_ended(trace))
    end(process)
    facts = info(trace)
    assert facts["lost"]["size limit"] > BURST and size_of(trace) <= 1 << 20


def test_each_thread_has_its_begin_at_the_size_limit(record, any_python, info):
    """The collector reads one ring after another; what the first one holds is more than the limit."""
    text = """\
        import sys, threading
        def f(): pass
        def burst(n):
            for _ in range(n): f()
        print("ready", flush=True)
        for line in sys.stdin:
            burst(int(line))
            for n in range(4):
                thread = threading.Thread(target=burst, args=[int(line) // 50 + n * 100])
                thread.start()
                thread.join()
            print("done", flush=True)
        """
    process, trace = record.start(any_python, record.script(text), options=["--max-size", "8M"], stdin=subprocess.PIPE)
    assert answer(process, None) == "ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert answer(process, BURST // 2) == "done\n"
    finally:
        os.kill(process.pid, signal.SIGCONT)
    wait_until(lambda: is_ended(trace))
    end(process)
    assert info(trace)["lost"]["size limit"] and size_of(trace) <= 8 << 20
    taken = Recording(trace).main
    assert len(taken.threads) == 5 and all(thread.events for thread in taken.threads)


def test_the_programs_status_passes_through_after_the_limit(record, any_python):
    run = record(any_python, "-c", "import sys, time; time.sleep(0.5); sys.exit(3)", options=["--for", "100ms"])
    assert run.status == 3 and "--for 100" in run.stderr


def test_what_begins_after_the_limit_is_not_recorded(record, any_python, info):
    text = """
        import os, sys, time
        while not any("recording_limit" in open(p).read() for p in [sys.argv[1] + "/" + d + "/metadata" for d in os.listdir(sys.argv[1]) if d[0] != "."]):
            time.sleep(0.01)
        """
    trace = record.new_trace()
    run = record.text(any_python, textwrap.dedent(text) + BEGINS_OTHERS, trace, options=["--for", "2s"], trace=trace)
    assert sorted(run.stdout.split()) == ["child", "fork"] and info(trace)["processes"] == 1


def test_nobody_waits_for_the_collector_after_the_limit(record, any_python):
    """In namespaces of their own, processes ask it by a socket (join.h)."""
    text = """
        import os, sys, time
        name = "@krait-" + os.environ["KRAIT_SESSION"].split("@")[1][:8]
        def is_open(): return any(line.endswith(name) for line in open("/proc/net/unix").read().splitlines())
        print(is_open())
        last = time.monotonic() + 60
        while is_open() and time.monotonic() < last:
            time.sleep(0.01)
        print(is_open())
        """
    run = record.text(any_python, text, options=["--for", "2s"])
    assert run.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("options", [["--for", "soon"], ["--for", "0"], ["--max-size", "4K"], ["--max-size", "0"]], ids=" ".join)
def test_limits_that_cannot_be_are_wrong_usage(krait, tmp_path, options):
    run = subprocess.run([krait, "record", "-o", tmp_path / "t", *options, "--", "true"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and options[0] in run.stderr


@pytest.mark.parametrize("options, most", [(["--for", "2s"], None), (["--max-size", "8M"], 8 << 20)], ids=["for", "max-size"])
def test_the_kernels_part_ends_at_the_limit_too(record, any_python, krait, info, alone, options, most):
    if os.geteuid() != 0:
        pytest.skip("recording the kernel needs root")
    text = """
        import glob, os, sys, time
        def ended(): return time.monotonic() > last or any("recording_limit" in open(p).read() for p in glob.glob(sys.argv[1] + "/*/metadata"))
        last = time.monotonic() + 60
        while not ended():
            for _ in range(1000): os.getppid()
        for _ in range(100_000): os.getppid()
        """
    trace = record.new_trace()
    run = record.text(any_python, text, trace, options=["--kernel", "--no-c-calls", *options], trace=trace)
    facts = info(trace)
    assert facts["limit"].startswith(options[0]) and facts["finished"] and facts["damage"] is None, run.stderr
    assert facts["kernel"]["events"] > 100 and (most is None or size_of(trace) <= most)
    states = subprocess.run([krait, "states", trace], capture_output=True, text=True, timeout=60)
    assert states.returncode == 0, states.stderr


@pytest.mark.parametrize("keep", ["first", "newest"])
def test_the_kernels_rings_hold_more_than_the_size_while_krait_is_kept_from_running(record, any_python, krait, info, alone, keep):
    if os.geteuid() != 0:
        pytest.skip("recording the kernel needs root")
    text = """
        import os, signal
        os.kill(os.getppid(), signal.SIGSTOP)
        try:
            for _ in range(200_000): os.getpgid(0)
            os.umask(0)
        finally:
            os.kill(os.getppid(), signal.SIGCONT)
        """
    bounds = ["--kernel-ring-size", "32M", "--max-size", "4M", "--keep", keep]
    run = record.text(any_python, text, options=["--kernel=syscalls", "--no-c-calls", *bounds])
    facts, text = info(run.path), " ".join(run.stderr.split())
    assert size_of(run.path) <= 4 << 20 and facts["damage"] is None, text
    no_room = facts["lost"].get("kernel size limit", 0)
    assert facts["kernel"]["events"] > 1000 and (no_room > 10_000) == (keep == "first"), facts["lost"]
    assert (f"lost {no_room:,} kernel events, size limit: " in text) == (keep == "first"), text
    cat = subprocess.run([krait, "cat", run.path / "kernel"], capture_output=True, text=True, timeout=60)
    assert cat.returncode == 0 and (keep == "first" or "syscall_entry_umask" in cat.stdout)
    if keep == "first":
        assert cat.stdout.count("syscall_entry_") + cat.stdout.count("syscall_exit_") + sum(facts["lost"].values()) >= 400_000


# -- the disk --


def test_little_room_on_the_disk_is_told_at_once(record, any_python, small_disk):
    run = record(any_python, "-c", "pass", trace=small_disk("20m") / "trace")
    assert re.search(r"the disk has 1\d\.\d MiB left.* --max-size", run.stderr), run.stderr


def test_there_is_no_word_of_a_disk_with_room(record, any_python):
    run = record(any_python, "-c", "pass")
    assert "the disk has" not in run.stderr


# -- the newest --

DEEP = """\
    import os, sys, threading
    def leaf(n): pass
    def early(): leaf(0)
    def level(n):
        if n: level(n - 1)
        else: base()
    def base():
        for line in sys.stdin:
            for _ in range(int(line)): leaf(n=1)
            print("done", flush=True)
        last()
    def last(): pass
    def waits(go):
        go.wait()
        last()
    go = threading.Event()
    waiting = threading.Thread(target=waits, args=[go])
    waiting.start()
    thread = threading.Thread(target=early)
    thread.start()
    thread.join()
    print("ready", flush=True)
    level(3)
    go.set()
    waiting.join()
    """
MOST = 4 << 20


@pytest.mark.few_pythons
def test_the_newest_events_are_kept_with_the_stacks_they_stand_on(record, python, krait, info, report, rounds):
    options = ["--max-size", "4M", "--keep", "newest", "--no-gil"]
    process, trace = record.start(python, record.script(DEEP), options=options, stdin=subprocess.PIPE)
    assert answer(process, None) == "ready\n"
    sizes, times = [], rounds(12, 30)  # what is written is 10 MB at least
    for _ in range(times):
        assert answer(process, 100_000) == "done\n"
        sizes.append(size_of(trace))
    errors = end(process)
    sizes.append(size_of(trace))
    assert max(sizes) <= MOST and sizes[-1] >= MOST // 4
    facts = info(trace)
    assert facts["lost"] == {} and facts["damage"] is None and facts["limit"] is None
    calls = {f["name"]: f["calls"] for f in report(trace) if f["module"] == "__main__"}
    assert {"level", "base", "waits", "<module>"} <= set(calls) and "early" not in calls
    assert calls["last"] == 2 and calls["base"] == 0 and calls["leaf"] > 50_000
    assert calls["leaf"] + facts["dropped"] // 2 > times * 100_000 * 29 // 30
    assert "the oldest: --keep newest" in errors and f" {facts['events']:,} events, " in errors
    recording = Recording(trace)
    for process in recording.processes:
        process.check_balanced(True)
    if shutil.which("babeltrace2"):
        read = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, timeout=60)
        assert read.returncode == 0 and "ERROR" not in read.stderr and read.stdout.count("__main__.last") == 2


@pytest.mark.few_pythons
def test_a_c_call_whose_end_was_lost_does_not_go_on_in_what_is_kept(record, python, info, report):
    script = record.script(
        """\
        import os, signal
        def leaf(n): return n
        def loses():
            os.kill(os.getppid(), signal.SIGSTOP)
            sorted(range(100_000), key=leaf)
            os.kill(os.getppid(), signal.SIGCONT)
            for n in range(800_000): abs(n)
        loses()
        """
    )
    small = ["--ring-size", "256K", "--buffer-size", "64K", "--no-gil"]
    run = record(python, script, options=[*small, "--max-size", "2M", "--keep", "newest"])
    assert run.status == 0 and run.lost and info(run.path)["dropped"]
    names = {f["name"] for f in report(run.path) if f["total_ns"]}
    assert "loses" in names and "sorted" not in names


NEW_FUNCTIONS = """\
    import os, signal, sys
    count = int(sys.argv[1])
    names = {"__name__": "__main__"}
    exec("\\n".join(f"def f{i}(): return {i}" for i in range(count)), names)
    functions = [names[f"f{i}"] for i in range(count)]
    os.kill(os.getppid(), signal.SIGSTOP)
    try:
        for f in functions: f()
    finally:
        os.kill(os.getppid(), signal.SIGCONT)
    """


@pytest.mark.parametrize("count, ring", [(5_000, "128K"), pytest.param(100_000, "2M", marks=pytest.mark.long)])
def test_all_functions_have_names_that_begin_while_the_collector_is_kept_from_running(record, any_python, report, info, count, ring):
    """The ring of definitions grows as those of threads do: the names alone are several times what a ring holds."""
    run = record(any_python, record.script(NEW_FUNCTIONS), count, options=["--ring-size", ring])
    assert run.status == 0 and run.lost == 0, run.stderr
    calls = {f["name"]: f["calls"] for f in report(run.path) if f["module"] == "__main__"}
    assert sum(calls.get(f"f{i}") == 1 for i in range(count)) == count
    assert info(run.path)["rings"]["grown_bytes"] > 0


@pytest.mark.few_pythons
def test_c_calls_between_python_calls_are_kept_too(record, python, report):
    text = """
        def leaf(n): return n
        def key(n):
            for n in range(800_000): leaf(n)
            return 0
        def outer(): sorted([1], key=key)
        outer()
        """
    run = record.text(python, text, options=["--no-gil", "--max-size", "2M", "--keep", "newest"])
    assert "--keep newest" in run.stderr
    process = run.check().main
    base = []
    for event in process.threads[0].events:
        if event.name == "python:call":
            break
        if event.code:
            base.append((event.name.split(":")[0], process.codes[event.code].qualname))
    assert base[:4] == [("python", "<module>"), ("python", "outer"), ("c", "sorted"), ("python", "key")], base
    totals = {f["name"]: f["total_ns"] for f in report(run.path)}
    assert totals["outer"] >= totals["sorted"] >= totals["key"] > 0


@pytest.mark.parametrize("options", [["--last", "1200ms"], ["--last", "1M"], ["--max-size", "2M", "--keep", "newest"]], ids=["time", "size", "max"])
def test_what_is_kept_of_all_threads_begins_at_one_time(record, python, info, options):
    """Of those that wait too: they write one packet in all that time."""
    text = """
        import threading, time
        def f():
            for _ in range(20): pass
        def works():
            end = time.monotonic() + 3.2
            while time.monotonic() < end:
                for _ in range(200): f()
        def waits(): time.sleep(3.2)
        def last(): time.sleep(0.1)
        threads = [threading.Thread(target=t) for t in (works, waits)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        last()
        """
    run = record.text(python, text, options=options)
    threads = run.check().main.threads
    assert len(threads) == 3 and len({t.events[0].time for t in threads}) == 1
    assert run.calls()["last"] == 1 and run.calls()["waits"] == 0
    facts = info(run.path)
    assert facts["damage"] is None and facts["dropped"] > 1000 and facts["dropped"] + facts["events"] > 100_000
    assert 0 < facts["kept_from_ns"] < facts["duration_ns"]


@pytest.mark.few_pythons
def test_no_less_is_kept_than_the_size_that_was_asked_for(record, python, info):
    for calls in range(800_000, 1_300_000, 100_000):
        run = record.text(python, f"def f(): pass\nfor _ in range({calls}): f()", options=["--last", "1M"])
        assert info(run.path)["dropped"] > 0
        assert 1 << 20 <= size_of(run.path) <= 4 << 20


def test_what_was_open_when_all_that_is_kept_begins_is_no_call(record, any_python, report, krait):
    text = """
        import threading, time
        waiter = threading.Thread(target=time.sleep, args=(1.6,))
        waiter.start()
        waiter.join()
        def last(): pass
        last()
        """
    run = record.text(any_python, text, options=["--last", "300ms"])
    rows = {f["name"]: f for f in report(run.path)}
    assert (rows["sleep"]["calls"], rows["sleep"]["runs"], rows["last"]["calls"]) == (0, 1, 1)
    text = subprocess.run([krait, "info", run.path], capture_output=True, text=True, timeout=60).stdout
    assert "the oldest: --last\n" in text and re.search(r"kept +the last \S+ ms, from 1\.\d+ s after the recording began\n", text), text
    assert re.search(r"the oldest: --last; kept: the last \S+ ms", " ".join(run.stderr.split()))
    drawn = subprocess.run([krait, "view", run.path, "--svg", "-"], capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"\b300\sms in 2 threads", drawn)
    flames = subprocess.run([krait, "flame", run.path, "-o", "-"], capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"recorded over 300\sms", flames)
    with served(krait, run.path) as link:
        assert re.fullmatch(r"r=\d{10},\d{9}", link.partition("/#")[2])


@pytest.mark.few_pythons
def test_what_a_killed_krait_leaves_begins_at_one_time(record, python, info, krait):
    script = record.script(
        """\
        import sys, threading
        def f(): pass
        def works():
            while waiter.is_alive():
                for _ in range(200): f()
        waiter = threading.Thread(target=sys.stdin.read, name="waiter")
        waiter.start()
        worker = threading.Thread(target=works)
        worker.start()
        worker.join()
        """
    )
    process, trace = record.start(python, script, options=["--last", "100ms"], stdin=subprocess.PIPE)
    try:
        while not any("kept_from" in path.read_text() for path in trace.glob("*/metadata")):
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    finally:
        process.communicate(timeout=60)
    facts = info(trace)
    report = json.loads(subprocess.run([krait, "report", trace, "--by", "thread", "--json"], capture_output=True, text=True, timeout=60).stdout)
    kept, totals = report["duration_ns"] - facts["kept_from_ns"], [row["total_ns"] for row in report["functions"]]
    assert facts["dropped"] and len(totals) == 3 and all(0 < total <= kept < report["duration_ns"] for total in totals), (totals, kept)


def test_a_process_that_did_nothing_in_the_time_that_is_kept_stays(record, any_python, info):
    """Python's own end takes longer."""
    run = record.text(any_python, "def f(): pass\nf()\n", options=["--last", "1ms"])
    (process,) = info(run.path)["process_list"]
    assert process["end"] == "exit" and process["pid"] == run.main.pid


def test_folders_of_processes_that_ended_long_ago_go_too(record, any_python, info):
    text = """
        import os
        def f(): pass
        for _ in range(45):
            if not os.fork():
                for _ in range(30_000): f()
                os._exit(0)
            os.wait()
        """
    run = record.text(any_python, text, options=["--max-size", "8M", "--keep", "newest"])
    assert size_of(run.path) <= 8 << 20 and 2 < len(list(run.path.iterdir())) < 40
    assert info(run.path)["damage"] is None and run.calls()["f"] > 30_000


def test_the_kernels_part_keeps_the_newest_too(record, any_python, krait, info, alone):
    if os.geteuid() != 0:
        pytest.skip("recording the kernel needs root")
    text = "import os\nfor _ in range(200_000): os.getppid()\nos.umask(0)"
    run = record.text(any_python, text, options=["--kernel", "--no-c-calls", "--max-size", "8M", "--keep", "newest"])
    facts = info(run.path)
    assert size_of(run.path) <= 8 << 20 and facts["damage"] is None and facts["kernel"]["events"] > 1000
    cat = subprocess.run([krait, "cat", run.path / "kernel"], capture_output=True, text=True, timeout=60)
    assert cat.returncode == 0 and "syscall_entry_umask" in cat.stdout


def test_what_is_kept_is_of_a_size(krait, tmp_path):
    run = subprocess.run([krait, "record", "--keep", "newest", "--", "true"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert run.returncode == 2 and "--keep needs --max-size" in run.stderr
