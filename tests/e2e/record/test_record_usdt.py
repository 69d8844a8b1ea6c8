# SPDX-License-Identifier: Apache-2.0
"""krait record --usdt: static probes by name, those that Debian's python3 has, as marks with their arguments."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("alone")
PYTHON = "/usr/bin/python3"
IN_TRACEFS = ["unshare", "-m", "sh", "-c", 'mount -t tracefs nodev /mnt && cd /mnt && eval "$0"']
PROGRAM = """
import gc, sys, threading
gc.disable()
def collect():
    gc.collect(0)
    gc.collect(1)
sys.audit("shop.order", 7)
thread = threading.Thread(target=collect, name="worker")
thread.start(); thread.join()
"""


def probes_set():
    run = subprocess.run([*IN_TRACEFS, "cat uprobe_events"], capture_output=True, text=True, timeout=60)
    return [line for line in run.stdout.splitlines() if line.startswith("p:krait_")]


@pytest.fixture(scope="module", autouse=True)
def tracefs():
    if os.geteuid() != 0:
        pytest.skip("probes need root")
    if subprocess.run([*IN_TRACEFS, "test -e uprobe_events"]).returncode:
        pytest.skip("this kernel has no uprobe events")
    notes = subprocess.run(["readelf", "-n", PYTHON], capture_output=True, text=True).stdout
    if "gc__start" not in notes:
        pytest.skip(f"{PYTHON} has no probes")


@pytest.fixture
def usdt(krait, tmp_path):
    """usdt(probe, ...): a recording of PROGRAM with these."""

    def run(*probes, program=PROGRAM):
        (tmp_path / "program.py").write_text(program)
        options = [word for probe in probes for word in ("--usdt", probe)]
        command = [krait, "record", "-q", "--kernel=sched", *options, "-o", "trace", "--", PYTHON, "-I", "-S", "program.py"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        assert done.returncode == 0, done.stderr
        return done, tmp_path / "trace"

    return run


def payloads(events, trace, name):
    return [(e["common_context"]["tid"], e["payload"]) for e in events(trace, f'name == "usdt:python:{name}"')]


def test_arguments_are_named_and_texts_are_read(usdt, events, krait):
    done, trace = usdt("python:gc__start(generation)", "python:audit(event:str)", "python:import__find__load__*(module:str, found)")
    assert not done.stderr and not probes_set()
    collected = {}
    for tid, payload in payloads(events, trace, "gc__start"):
        collected.setdefault(tid, []).append(payload)
    ordered = [(tid, p) for tid, p in payloads(events, trace, "audit") if p["event"] == "shop.order"]
    assert len(ordered) == 1 and set(ordered[0][1]) == {"event", "arg2"}
    assert [{"generation": 0}, {"generation": 1}] in [p for tid, p in collected.items() if tid != ordered[0][0]]  # of the worker
    assert {"module": "threading", "found": 1} in [p for _, p in payloads(events, trace, "import__find__load__done")]
    run = subprocess.run([krait, "report", trace, "--by", "mark", "--json"], capture_output=True, text=True, check=True)
    counted = {(m["name"], m["text"]): m["marks"] for m in json.loads(run.stdout)["marks"]}
    assert counted["usdt:python:audit", f'event = "shop.order", arg2 = {ordered[0][1]["arg2"]}'] == 1
    assert ("usdt:python:gc__start", "generation = ...") in counted


def test_probes_are_the_ends_of_intervals(usdt, krait):
    _, trace = usdt(f"{Path(PYTHON).resolve()}:python:gc__*")
    command = [krait, "intervals", trace, "--start", "^usdt:python:gc__start", "--stop", "^usdt:python:gc__done", "--list", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [i["thread"] for i in json.loads(run.stdout)["list"]].count("worker") == 2


@pytest.mark.parametrize("where", ["here", "mounts of its own"])
def test_probes_of_a_program_that_runs_are_those_of_its_file(krait, events, tmp_path, where):
    program = "import gc\nprint(1, flush=True)\nwhile True: gc.collect(1)"
    words = [PYTHON, "-I", "-S", "-c", program]
    if where != "here":  # a path that nobody else has
        words = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs nodev /mnt && cp {PYTHON} /mnt/own && exec /mnt/own -I -S -c "$0"', program]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as app:
        try:
            app.stdout.readline()
            command = [krait, "record", "-q", "--kernel=sched", "--usdt", "python:gc__start(generation)", "-o", "trace", "--for", "200ms", "--pid", str(app.pid)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        finally:
            app.kill()
    assert (done.returncode, done.stderr) == (0, "") and not probes_set()
    seen = payloads(events, tmp_path / "trace", "gc__start")
    assert (app.pid, {"generation": 1}) in seen


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ("python:gc_start", "has no probe 'python:gc_start'; did you mean 'python:gc__start'?"),
        ("/bin/true:a:b", "has no probe 'a:b'; readelf -n"),
        ("nothing", "'nothing' is not [FILE:]PROVIDER:NAME"),
        ("python:audit(event", "'python:audit(event' is not"),
        ("/no/such:a:b", "cannot read /no/such: No such file"),
        ("/etc/passwd:a:b", "it is no program or library"),
        ("python:audit(a-b)", "the kernel does not take the probe usdt:python:audit"),
    ],
)
def test_a_probe_that_cannot_be_set_is_said_and_the_rest_is_recorded(usdt, probe, why):
    done, trace = usdt(probe, program="pass")
    text = " ".join(done.stderr.split())
    assert "the probes are not recorded: " in text and why in text
    assert (trace / "kernel").is_dir() and not probes_set()


@pytest.mark.parametrize("idle", [(), ("--idle",)], ids=["on", "idle"])
def test_probes_are_switched_off_and_on_with_the_recording(krait, events, tmp_path, idle):
    (tmp_path / "program.py").write_text("import sys\nprint('up', flush=True)\nfor line in sys.stdin:\n    sys.audit('shop.' + line.strip())\n    print(flush=True)\n")
    command = [krait, "record", "-q", "--kernel=sched", *idle, "--usdt", "python:audit(event:str)", "-o", "trace", "--", PYTHON, "-I", "-S", "program.py"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as run:
        try:
            assert run.stdout.readline() == "up\n"
            for word, line in ((None, "first"), ("stop", "gap"), ("start", "last"), ("stop", "end")):
                if word:
                    subprocess.run([krait, "ctl", tmp_path / "trace", word], check=True, capture_output=True, timeout=60)
                run.stdin.write(line + "\n")
                run.stdin.flush()
                assert run.stdout.readline() == "\n"
            _, said = run.communicate(timeout=60)
        finally:
            run.kill()
    assert (run.returncode, said) == (0, "") and not probes_set()
    shop = [p["event"] for _, p in payloads(events, tmp_path / "trace", "audit") if p["event"].startswith("shop.")]
    assert shop == (["shop.last"] if idle else ["shop.first", "shop.last"])


def test_without_the_kernel_it_is_wrong_usage(krait):
    run = subprocess.run([krait, "record", "--usdt", "python:audit", "--", PYTHON], capture_output=True, text=True)
    assert run.returncode != 0 and "--usdt needs --kernel" in run.stderr


def test_the_next_recording_takes_away_what_a_killed_one_left(usdt, krait, tmp_path):
    program = "print('up', flush=True)\nimport time\ntime.sleep(60)\n"
    command = [krait, "record", "-q", "--kernel=sched", "--usdt", "python:gc__start", "-o", tmp_path / "killed", "--", PYTHON, "-c", program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert probes_set()
    usdt("python:gc__start", program="pass")
    assert not probes_set()
