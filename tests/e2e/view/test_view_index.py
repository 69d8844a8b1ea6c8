# SPDX-License-Identifier: Apache-2.0
"""The index of a view (src/view/index.h) answers as walks over the whole trace do, on traces of all kinds; tests/view_check.c
compares tiles of all tracks at all levels, and does it again with the index from its cache file."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD
from corpus import CORPUS
from kernel_made import switch, wake
from kernel_made import write as write_kernel
from served import Server

TRACES = {
    "lttng-kernel": CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel",
    "perf": CORPUS / "tracecompass" / "perf-taskset2",
    "picotrace": CORPUS / "lttng-ref-traces" / "picotrace" / "kernel",
    "other": CORPUS / "babeltrace" / "succeed" / "2packets",
}


def view_check(*traces):
    done = subprocess.run([BUILD / "tests" / "view_check", *traces], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    first, again = done.stdout.splitlines()
    assert again.endswith("from the cache") and not first.endswith("from the cache")
    return {kind: int(n) for n, kind in re.findall(r"(\d+) (\w+),", first)}


@pytest.mark.parametrize("name", TRACES)
def test_traces_of_other_tracers(tmp_path, name):
    if not TRACES[name].exists():
        pytest.skip("not in the corpus")
    shutil.copytree(TRACES[name], tmp_path / "trace", ignore=shutil.ignore_patterns(".krait-*"))
    looked = view_check(tmp_path / "trace")
    assert looked["states"] or looked["instants"]


def described(krait, *traces):
    """What api/trace says of the recording, and whether the index came from its file; and the path of a thread, which takes a run of its own."""
    server = Server(krait, *traces)
    trace = server.built()
    states = [t["id"] for t in trace["tracks"] if t["kind"] == "states" and t["of"] == "thread"]
    trace["path"] = [server.ask(f"api/path?track={track}")[::2] for track in states[:3]]
    assert server.end()[0] == 0
    return trace.pop("index")["cached"], trace


def kernel_of(tmp_path, name):
    if not TRACES[name].exists():
        pytest.skip("not in the corpus")
    return [shutil.copytree(TRACES[name], tmp_path / name, ignore=shutil.ignore_patterns(".krait-*"))]


def two_machines(tmp_path, _):
    events = [switch(0, 0, 7), wake(100, 9), switch(2000, 7, 0), switch(2500, 0, 9), switch(3000, 9, 0)]
    return [write_kernel(tmp_path / name, events, host=name) for name in ("web", "db")]


@pytest.mark.parametrize("name, make", [("lttng-kernel", kernel_of), ("perf", kernel_of), ("picotrace", kernel_of), ("two machines", two_machines)])
def test_a_warm_open_lists_the_lanes_that_a_first_one_finds(tmp_path, krait, monkeypatch, name, make):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    traces = make(tmp_path, name)
    first, again = described(krait, *traces), described(krait, *traces)
    assert (first[0], again[0]) == (False, True)
    assert again[1] == first[1] and first[1]["tracks"] and any(status == 200 for status, _ in first[1]["path"])


def test_a_warm_open_lists_recorded_threads_among_the_kernels(tmp_path, krait, both):
    calls = "process 5 python3\ncode 1 python app main app.py 1\nthread 5\n0us call 1\n2000us return\n"
    trace = both(calls, [switch(0, 0, 5), switch(400, 5, 6, 1), wake(490, 5), switch(495, 6, 5), switch(2100, 5, 0, 1)])
    first, again = described(krait, trace), described(krait, trace)
    assert (first[0], again[0]) == (False, True)
    assert again[1] == first[1]
    assert {t["thread"] for t in first[1]["tracks"] if t["kind"] == "states" and t["number"] == 5} == {0}


def test_a_recording_with_threads_and_waits(tmp_path, krait, any_python):
    program = tmp_path / "a.py"
    program.write_text(
        "import threading\n"
        "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n"
        "threads = [threading.Thread(target=f, args=(19,)) for _ in range(3)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
    )
    subprocess.run([krait, "record", "-o", tmp_path / "trace", "--", any_python.exe, program], check=True, timeout=100)
    looked = view_check(tmp_path / "trace")
    assert looked["calls"] >= 4


def test_a_cache_file_is_no_part_of_the_trace(tmp_path, krait, synth):
    trace = synth("process 5 python3\ncode 1 python app main app.py 1\nthread 5\n1us call 1\n9us return\n")
    before = subprocess.run([krait, "cat", trace], capture_output=True, check=True).stdout
    (trace / ".krait-view").write_bytes(b"no index")
    assert subprocess.run([krait, "cat", trace], capture_output=True, check=True).stdout == before
    view_check(trace)
    assert (trace / ".krait-view").stat().st_size > 8
    assert subprocess.run([krait, "cat", trace], capture_output=True, check=True).stdout == before
