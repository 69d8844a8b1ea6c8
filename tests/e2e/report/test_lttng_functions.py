# SPDX-License-Identifier: Apache-2.0
"""LTTng's function events are calls: krait report, flame and export read them as they read krait's own."""

import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections import defaultdict

import pytest

from conftest import BUILD, verb_json
from corpus import CORPUS
from kernel_made import EPOCH, write
from svg import texts
from terminal import on_terminal

GLXGEARS = CORPUS / "tracecompass" / "cyg-profile" / "glxgears-cyg-profile"
FULL, FAST = "lttng_ust_cyg_profile", "lttng_ust_cyg_profile_fast"
APP, LIB = 0x400000, 0x7F0000000000
LOADED = [("/opt/app", APP, 0x10000), ("/usr/lib/libwork.so.1", LIB, 0x1000)]


def whose(tid, pid):
    return {k: v for k, v in {"vtid of context": tid, "vpid of context": pid}.items() if v}


def entry(us, address, tid=7, pid=7, cpu=0, kind=FULL):
    return (us, cpu, f"{kind}:func_entry", {"addr": address, **whose(tid, pid)})


def leave(us, address=None, tid=7, pid=7, cpu=0, kind=FULL):
    fields = {} if address is None else {"addr": address}
    return (us, cpu, f"{kind}:func_exit", {**fields, **whose(tid, pid)})


def loaded(us, tid=7, pid=7, name="lttng_ust_statedump:bin_info"):
    for path, address, size in LOADED:
        yield (us, 0, name, {"baddr": address, "memsz": size, "path": path, **whose(tid, pid)})


@pytest.fixture
def folded(krait):
    def stacks(folder, *options):
        command = [krait, "export", folder, "--to", "folded", "--unit", "us", "-o", "-", *options]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {stack: int(us) for stack, us in (line.rsplit(" ", 1) for line in text.splitlines())}

    return stacks


def made(tmp_path, events, **more):
    return write(tmp_path / "ust", sorted(events, key=lambda e: e[0]), domain="ust", offset=EPOCH, **more)


def test_a_thread_goes_on_when_it_changes_its_cpu(tmp_path, folded):
    folder = made(
        tmp_path,
        [
            *loaded(0),
            entry(10, APP + 0x10, tid=7, cpu=0),
            entry(20, LIB + 0x20, tid=7, cpu=1),
            entry(30, APP + 0x10, tid=8, cpu=0),
            leave(50, LIB + 0x20, tid=7, cpu=0),
            leave(60, APP + 0x10, tid=7, cpu=1),
            leave(90, APP + 0x10, tid=8, cpu=1),
        ],
    )
    assert folded(folder) == {
        "process 7;thread 7;app+0x10": 20,
        "process 7;thread 7;app+0x10;libwork.so.1+0x20": 30,
        "process 7;thread 8;app+0x10": 60,
    }


def test_names_are_of_the_file_that_was_loaded_then(tmp_path, report):
    path, address, _ = LOADED[1]
    again = {"baddr": address, "memsz": 0x1000, "path": "/usr/lib/libother.so", **whose(7, 7)}
    events = [
        *loaded(0, name="lttng_ust_lib:load"),
        entry(10, LIB + 1),
        leave(20, LIB + 1),
        (30, 0, "lttng_ust_lib:unload", {"baddr": address, **whose(7, 7)}),
        (40, 0, "lttng_ust_lib:load", again),
        entry(50, LIB + 2),
        leave(60, LIB + 2),
        entry(70, 0x1234),
        leave(80, 0x1234),
    ]
    rows = {row["name"]: row for row in report(made(tmp_path, events))}
    assert set(rows) == {"libwork.so.1+0x1", "libother.so+0x2", "0x1234"}
    assert rows["libwork.so.1+0x1"]["file"] == path and rows["libwork.so.1+0x1"]["module"] == "libwork.so.1"
    assert {row["kind"] for row in rows.values()} == {"native"}


def test_an_end_cuts_what_is_above_it_and_one_without_a_begin_is_left_out(tmp_path, report):
    events = [leave(5, APP), entry(10, APP + 1), entry(20, APP + 2), leave(40, APP + 1), entry(50, APP + 3), leave(60, APP + 9), leave(70, APP + 3)]
    rows = {row["name"]: (row["calls"], row["total_ns"]) for row in report(made(tmp_path, events))}
    assert rows == {"0x400001": (1, 30_000), "0x400002": (1, 20_000), "0x400003": (1, 20_000)}


def test_ends_of_the_fast_library_are_of_the_innermost(tmp_path, folded):
    events = [entry(10, APP + 1, kind=FAST), entry(20, APP + 2, kind=FAST), leave(50, kind=FAST), leave(60, kind=FAST)]
    assert list(folded(made(tmp_path, events)).values()) == [20, 30]


def test_where_events_were_lost_the_fast_library_s_calls_are_cut(tmp_path, krait):
    events = [entry(10, APP + 1, kind=FAST), entry(20, APP + 2, kind=FAST), leave(40, kind=FAST), entry(50, APP + 3, kind=FAST), leave(70, kind=FAST)]
    found = verb_json(krait, "report", made(tmp_path, events, losses=[(0, 20, 30), (0, 40, 45)]))
    assert {row["name"]: row["total_ns"] for row in found["functions"]} == {"0x400001": 10_000, "0x400002": 0, "0x400003": 20_000}
    assert found["lost"] == {"sub-buffers full": 1}  # of what a stream lost before its first packet, it is not told how much


def test_without_contexts_each_stream_is_a_thread(tmp_path, krait):
    events = [entry(10, APP + 1, tid=0, pid=0), entry(15, APP + 1, tid=0, pid=0, cpu=1), leave(20, APP + 1, tid=0, pid=0), leave(40, APP + 1, tid=0, pid=0, cpu=1)]
    rows = verb_json(krait, "report", made(tmp_path, events), "--by", "thread")["functions"]
    assert [(row["name"].split()[2], row["total_ns"]) for row in rows] == [("channel0_1", 25_000), ("channel0_0", 10_000)]


def test_beside_a_recording_both_are_one_trace(tmp_path, synth, report):
    recording = synth("process 4711 python3\ncode 1 python app main app.py 1\nthread 4711 MainThread\n0 call 1\n9 return\n")
    folder = made(tmp_path, [*loaded(1), entry(10, APP + 1), leave(20, APP + 1)])
    assert {row["name"] for row in report(recording, folder)} == {"main", "app+0x1"}


def oracle(text):
    """{address: (calls, self ns, total ns)} by a stack in a dozen lines."""
    stack, rows, last = [], defaultdict(lambda: [0, 0, 0]), 0
    for line in text.splitlines():
        ns = int(line.split("]")[0].replace("[", "").replace(".", ""))
        if stack:
            rows[stack[-1][0]][1] += ns - last
        last, address = ns, re.search(r"addr = (0x\w+)", line)[1].lower()
        if "func_entry" in line:
            stack.append((address, ns))
            rows[address][0] += 1
        else:
            assert stack[-1][0] == address
            _, begin = stack.pop()
            rows[address][2] += ns - begin if address not in [a for a, _ in stack] else 0
    for address, begin in stack:
        rows[address][2] += last - begin
    return {address: tuple(row) for address, row in rows.items()}


def test_a_recording_of_a_real_program(krait, report):
    if not GLXGEARS.exists():
        pytest.skip("the corpus of traces is not here")
    text = subprocess.run([krait, "cat", "--clock-cycles", GLXGEARS], capture_output=True, text=True, check=True).stdout
    rows = {row["name"]: (row["calls"], row["self_ns"], row["total_ns"]) for row in report(GLXGEARS)}
    assert rows == oracle(text)
    assert rows["0x403760"][0] == 617


def test_flame_draws_them(tmp_path, krait):
    folder = made(tmp_path, [*loaded(1), entry(10, APP + 1), entry(20, LIB + 2), leave(50, LIB + 2), leave(60, APP + 1)])
    done = subprocess.run([krait, "flame", folder, "-o", tmp_path / "f.svg"], capture_output=True, text=True, check=True)
    picture = (tmp_path / "f.svg").read_text()
    assert "app+0x1" in picture and "libwork.so.1+0x2" in picture and "unfinished" not in done.stderr


def test_where_it_is_narrow_the_stem_of_the_file_stays(tmp_path, krait):
    folder = made(tmp_path, [*loaded(1), entry(10, APP + 1), entry(20, LIB + 2), leave(25, LIB + 2), leave(60, APP + 1)])
    env = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    wide, narrow = (on_terminal([krait, "report", folder], columns, env=env)[0] for columns in (120, 32))
    assert "libwork.so.1+0x2" in wide and re.search(r" libwork\+0x2\b", narrow), narrow
    subprocess.run([krait, "view", folder, "--svg", tmp_path / "view.svg"], capture_output=True, check=True)
    picture = ET.parse(tmp_path / "view.svg")
    assert "libwork+0x2" in texts(picture.getroot())


def test_many_threads_in_one_pass_are_as_each_by_itself(tmp_path):
    """More of them than one pass takes, with calls that cross CPUs, at other times, in two processes."""
    events = list(loaded(0))
    for tid in range(10, 310):
        at = 10 + tid % 17
        events += [entry(at, APP + 0x10, tid, 7 + tid % 2, tid % 3), entry(at + tid, LIB + tid % 5, tid, 7 + tid % 2, (tid + 1) % 3)]
        events += [leave(at + tid + 5, LIB + tid % 5, tid, 7 + tid % 2, tid % 2), leave(at + 2 * tid, APP + 0x10, tid, 7 + tid % 2)]
    folder = made(tmp_path, events)
    for span in [(), (50_000, 200_000)]:
        together, single = (
            subprocess.run([BUILD / "tests" / "read_tracks", *flag, folder, *map(str, span)], capture_output=True, text=True, check=True).stdout
            for flag in (["-t"], [])
        )
        assert together == single and together.count("track CALLS") == 300 and " libwork.so.1+0x3 0\n" in together
