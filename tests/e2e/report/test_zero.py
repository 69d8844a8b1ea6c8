# SPDX-License-Identifier: Apache-2.0
"""Times after the start count from one moment in all commands: what one of them says can be given to the others."""

import json
import re
import subprocess

import pytest

from conftest import verb_json
from kernel_made import EPOCH, event, switch, wake
from wall_made import CODES

CALLS = CODES + "100us call 1\n120us call 2\n190us return\n200us return\n"


@pytest.fixture(params=[-5000, 50], ids=["kernel first", "program first"])
def recording(request, both):
    """A recording whose kernel's part begins so many microseconds after the program's, and how many after the beginning
    of both that one begins. load runs from 120 to 190."""
    first = request.param
    events = [
        event(first, "power_cpu_idle", state=1),
        switch(max(first, 60), 0, 5),
        switch(150, 5, 0, state=1),
        wake(170, 5, cpu=1),
        switch(180, 0, 5),
        switch(300, 5, 0),
    ]
    return both(CALLS, sorted(events, key=lambda e: e[0])), max(-first, 0)


def run(krait, verb, folder, *words):
    return subprocess.run([krait, verb, folder, *map(str, words)], capture_output=True, text=True, timeout=60)


def chrome(krait, folder, *words):
    return json.loads(run(krait, "export", folder, "--to", "chrome", "-o", "-", "--no-kernel", *words).stdout)


def test_all_commands_say_the_same_time(krait, recording):
    folder, since = recording
    begin = EPOCH - since * 1000
    report = verb_json(krait, "report", folder)
    assert (report["begin_ns"], report["duration_ns"]) == (begin, (since + 200) * 1000)
    why = verb_json(krait, "report", folder, "--why", "load")
    assert why["slowest"][0]["begin_ns"] - begin == (since + 120) * 1000
    assert f"{(since + 120) / 1000:.3f} ms after" in run(krait, "report", folder, "--why", "load").stdout.replace("120.0 us", "0.120 ms")
    path = verb_json(krait, "path", folder, "--call", "load")
    assert path["segments"][0]["time_ns"] == (since + 120) * 1000
    begins = {0: "120.0 us", 5000: "5.120 ms"}[since]
    assert f"from {begins} on" in run(krait, "path", folder, "--call", "load").stdout
    (blocked,) = (i for i in verb_json(krait, "states", folder, "--by", "interval", "--thread", 5)["intervals"] if i["state"].startswith("blocked"))
    assert blocked["time_ns"] == (since + 150) * 1000
    drawn = chrome(krait, folder)
    assert drawn["otherData"]["begin_ns"] == str(begin)
    (load,) = (e for e in drawn["traceEvents"] if e["ph"] == "B" and e["name"].endswith("load"))
    assert load["ts"] == since + 120
    scope = json.loads(run(krait, "export", folder, "--to", "speedscope", "-o", "-").stdout)
    assert scope["profiles"][0]["events"][1]["at"] == (since + 120) * 1000


def test_all_commands_take_the_same_time(krait, recording):
    """The 70 us of load."""
    folder, since = recording
    words = ["--from", f"{since + 120}us", "--until", f"{since + 190}us"]
    report = {r["name"]: r for r in verb_json(krait, "report", folder, *words)["functions"]}
    assert (report["load"]["self_ns"], report["main"]["total_ns"], report["main"]["self_ns"]) == (70_000, 70_000, 0)
    for verb in ("path", "states"):
        found = verb_json(krait, verb, folder, *words, *(["--thread", 5] if verb == "path" else []))
        assert (found["begin_ns"], found["time_ns"], found["duration_ns"]) == (EPOCH - since * 1000, (since + 120) * 1000, 70_000)
    assert verb_json(krait, "path", folder, "--call", "load", *words)["duration_ns"] == 70_000
    assert run(krait, "export", folder, "--to", "folded", "--unit", "ns", "-o", "-", *words).stdout.split()[-1] == "70000"
    begun = [e["ts"] for e in chrome(krait, folder, *words)["traceEvents"] if e["ph"] == "B"]
    assert begun == [since + 120] * 2
    flame = run(krait, "flame", folder, "-o", "-", *words).stdout
    assert re.findall(r"total (\S+)\sµs", flame) == ["70.0"] * 3


def test_before_the_kernels_first_event_there_is_nothing_of_it(krait, both):
    folder = both(CALLS, [switch(150, 0, 5), switch(300, 5, 0)])
    for verb in ("states", "path"):
        none = run(krait, verb, folder, "--until", "140us")
        assert none.returncode == 1 and "in that time" in none.stderr, none.stderr
    assert verb_json(krait, "states", folder, "--until", "160us")["duration_ns"] == 10_000


def test_a_kernel_part_that_cannot_be_read_leaves_the_programs_beginning(krait, both):
    folder = both(CALLS, [event(-5000, "power_cpu_idle", state=1), switch(150, 0, 5)])
    for stream in (folder / "kernel").glob("channel*"):
        stream.write_bytes(b"\0" * 100)
    words = ["--from", "120us", "--until", "190us", "--filter", "load"]
    (load,) = verb_json(krait, "report", folder, *words)["functions"]
    assert load["self_ns"] == 70_000


@pytest.mark.parametrize("nth, why", [("0", "from 1"), ("-1", "from 1"), ("two", "from 1"), ("3x", "from 1"), ("", "from 1"), ("100001", "the most")])
def test_there_is_no_slowest_call_but_the_first(krait, both, nth, why):  # noqa: F811
    wrong = run(krait, "path", both(CALLS, [switch(0, 0, 5)]), "--call", "load", "--nth", nth)
    assert wrong.returncode == 2 and why in wrong.stderr, wrong.stderr


def test_a_list_of_no_kernel_events_is_refused(krait, tmp_path):
    wrong = subprocess.run([krait, "record", "--kernel=", "-o", tmp_path / "t", "--", "true"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--kernel= is empty" in wrong.stderr and not (tmp_path / "t").exists()
