# SPDX-License-Identifier: Apache-2.0
"""A recording that was switched off for a while: the gap is marked wherever the recording is read."""

import json
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from running import wait_for
from told import told  # noqa: F401  (a fixture)


@pytest.fixture
def gapped(told):  # noqa: F811
    """gapped(python): a recording that was off from the end of first() to the begin of third()."""

    def make(python):
        app = told(python)
        app.tell("first()")
        app.ctl("stop")
        app.tell("second()")
        app.ctl("start")
        app.tell("third()")
        return app.end()

    return make


@pytest.mark.few_pythons
def test_a_gap_is_an_event_of_the_process_and_told_by_report_info_and_exports(gapped, run, python, tmp_path):
    trace = gapped(python)
    assert [f["state"] for f in trace.main.said("recording:switch")] == ["off", "on"]
    off, on = (e.time for e in trace.main.definitions if e.name == "recording:switch")
    assert len(re.findall(r"recording:switch", run("cat", trace.path).stdout)) == 2
    for verb in ("report", "info"):
        found = json.loads(run(verb, "--json", trace.path).stdout)
        assert found["switched_off"] == 1 and 0 < found["recorded_ns"] < found["recorded_of_ns"]
    ticks = int(re.search(rb"freq = (\d+)", next(trace.path.glob("*/metadata")).read_bytes())[1])
    assert found["recorded_of_ns"] - found["recorded_ns"] == pytest.approx((on - off) * 1e9 / ticks, rel=0.001)
    said = run("report", trace.path)
    assert re.search(r"^off: recorded \S+ \S+ of \S+ \S+, switched off 1 time: a call that was open", said.stderr, re.M)
    assert re.search(r"^ *off +recorded .* of .*, switched off 1 time$", run("info", trace.path).stdout, re.M)
    exported = run("export", "--to", "chrome", "-o", tmp_path / "out.json", trace.path)
    assert "off: recorded" in exported.stderr
    events = json.loads((tmp_path / "out.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert "recording off" in {e.get("name") for e in events}


@pytest.mark.parametrize("state", [0, 2], ids=["off", "changes"])
def test_a_call_lasts_to_where_the_recording_is_switched_off(synth, report, state):
    """Also one of a thread that had no event for long: nothing of it is lost up to there."""
    script = f"""
        process 5 python3
        code 1 python app main app.py 1
        code 2 c time sleep - 0
        thread 5 MainThread
        0us call 1
        100us ccall 2
        2000us recording {state}
        2001us stack 0
        thread 6 waits
        0us frame 1 0
        0us stack 1
        2001us stack 0
        7000us recording 1
        thread 5
        7001us frame 1 0
        7001us stack 1
        9000us return
    """
    folder = synth(script)
    for options, main, sleep in (((), 100 + 1999 + 2001, 1901), (("--to", 0.001), 100 + 1000, 900), (("--to", 0.005), 100 + 2001, 1901)):
        own = {f["name"]: f["self_ns"] for f in report(folder, *options)}
        assert own == {"main": main * 1000, "sleep": sleep * 1000}


def test_a_gap_is_drawn_in_each_thread_that_was_there(gapped, krait, any_python, tmp_path):
    trace = gapped(any_python)
    subprocess.run([krait, "view", "--svg", tmp_path / "out.svg", trace.path], check=True, capture_output=True)
    titles = [e.text for e in xml.parse(tmp_path / "out.svg").iter("{http://www.w3.org/2000/svg}title")]
    assert titles.count("the recording was switched off here") == 2  # the main thread, and the one that waits


def test_a_recording_that_was_never_off_says_nothing_of_it(told, run, any_python):  # noqa: F811
    app = told(any_python)
    app.tell("first()")
    app.ctl("set", "exclude=second")
    app.tell("third()")
    trace = app.end()
    assert not [s for s in trace.main.said("recording:switch") if s["state"] == "off"]
    assert "switched_off" not in json.loads(run("report", "--json", trace.path).stdout) and "off:" not in run("report", trace.path).stderr


def test_a_gap_lasts_to_the_end_where_nobody_switches_it_on(told, run, any_python):  # noqa: F811
    app = told(any_python)
    app.tell("first()")
    app.ctl("stop")
    app.tell("second()")
    trace = app.end()
    found = json.loads(run("info", "--json", trace.path).stdout)
    assert found["switched_off"] == 1 and found["recorded_ns"] < found["recorded_of_ns"]


@pytest.mark.few_pythons
def test_a_call_lasts_to_where_what_is_recorded_changes(told, python, krait, run, tmp_path):  # noqa: F811
    """The call of a thread that waits all the time; nothing was lost there."""
    app = told(python)
    app.ctl("set", "include=nosuch*")
    app.tell("0")
    wait_for(lambda: app.status()["set"], "the change")
    trace = app.end()
    assert [f["state"] for f in trace.main.said("recording:switch")] == ["changes", "on"]
    assert "switched_off" not in json.loads(run("report", "--json", trace.path).stdout), "it is no gap"
    changes = next(e.time for e in trace.main.definitions if e.name == "recording:switch")
    waiter = next(t for t in trace.main.threads if trace.main.thread_names.get(t.tid) == "Waiter")
    begin = next(e.time for e in waiter.walk() if e.name == "python:call")
    ticks = int(re.search(rb"freq = (\d+)", next(trace.path.glob("*/metadata")).read_bytes())[1])
    (row,) = [r for r in json.loads(run("report", "--by", "thread", "--json", trace.path).stdout)["functions"] if " Waiter " in r["name"]]
    assert row["total_ns"] >= (changes - begin) * 1e9 / ticks * 0.999
