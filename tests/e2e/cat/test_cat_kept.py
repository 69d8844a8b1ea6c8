# SPDX-License-Identifier: Apache-2.0
"""krait cat and krait info of recordings of which krait kept a part: what is in front of it is not shown as if it had happened."""

import json
import re
import subprocess

import pytest

# Runs until krait has dropped events, and a bit longer.
PROGRAM = """
import glob, time
def leaf(): pass
def outer():
    limit = time.time() + 60
    while time.time() < limit and not any("kept_from" in open(path).read() for path in glob.glob({below!r} + "/**/metadata", recursive=True)):
        leaf(); time.sleep(0.002)
    end = time.time() + 0.3
    while time.time() < end: leaf(); time.sleep(0.002)
outer()
"""


@pytest.fixture
def cat(krait):
    def run(trace, *options):
        done = subprocess.run([krait, "cat", str(trace), *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def kept(record, any_python, tmp_path):
    return record.text(any_python, PROGRAM.format(below=str(tmp_path)), options=("--last", "200ms")).path


def events(run):
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_the_events_from_when_on_all_are_there(kept, cat):
    ticks = [int(re.match(r"\[(\d+)\]", line)[1]) for line in cat(kept, "--clock-cycles", "--begin", "0").stdout.splitlines()]
    begin = int(re.search(r"kept_from = (\d+);", next(kept.glob("*/metadata")).read_text())[1])
    found, everything = cat(kept, "--json"), cat(kept, "--json", "--begin", "0")
    assert 0 < len(events(found)) == sum(tick >= begin for tick in ticks) < len(events(everything)) == len(ticks)
    assert not {"python:frame", "python:stack"} & {event["event"] for event in events(found)}
    assert {"python:frame", "code:define", "process:start"} <= {event["event"] for event in events(everything)}
    told = int(re.match(r"krait cat: ([\d,]+) events not printed: ", found.stderr)[1].replace(",", ""))
    assert told == len(ticks) - len(events(found)) and not everything.stderr


def test_all_events_may_be_older_than_what_is_kept(kept, run):
    """While a program does nothing, or where krait was killed then."""
    metadata = next(kept.glob("*/metadata"))
    metadata.write_text(re.sub(r"(?<=kept_from = )\d+", lambda tick: "9" * len(tick[0]), metadata.read_text()))
    assert re.search(r"kept +the last 0 ns, from ", run("info", kept).stdout)


def test_a_filter_counts_what_it_would_have_selected(kept, cat):
    found = cat(kept, "--filter", 'name == "process:start"')
    assert not found.stdout and found.stderr.startswith("krait cat: 1 event not printed: ")
    assert len(cat(kept, "--filter", 'name == "process:start"', "--begin", "0").stdout.splitlines()) == 1


def test_with_begin_it_prints_what_babeltrace2_prints(kept, cat):
    assert cat(kept, "--begin", "0").stdout == subprocess.run(["babeltrace2", kept], capture_output=True, text=True, timeout=60).stdout


def test_a_part_has_the_events_of_its_range(record, any_python, krait, cat, tmp_path):
    whole = record.text(any_python, "def leaf(): pass\ndef outer():\n    for _ in range(500): leaf()\nouter()\n").path
    calls = [event for event in events(cat(whole, "--json", "--filter", 'name == "python:call"')) if event["payload"]["code"]["label"].endswith("leaf")]
    first = int(events(cat(whole, "--json"))[0]["time_ns"])
    begin = int(calls[250]["time_ns"]) - first - 1  # both times are rounded
    subprocess.run([krait, "cut", whole, "--from", f"{begin}ns", "-o", tmp_path / "part"], check=True, capture_output=True, timeout=60)
    found = cat(tmp_path / "part", "--json")
    assert len([event for event in events(found) if event["event"] == "python:call" and event["payload"]["code"]["label"].endswith("leaf")]) == 250
    assert all(int(event["time_ns"]) >= first + begin for event in events(found)) and "not printed" in found.stderr


def test_info_tells_how_long_the_part_that_is_kept_is(kept, krait, info):
    facts = info(kept)
    assert abs(facts["kept_ns"] - (facts["duration_ns"] - facts["kept_from_ns"])) <= 2 and facts["kept_ns"] <= 200_000_001  # rounded
    text = subprocess.run([krait, "info", kept], capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"duration +\S+ m?s from the beginning of the recording to the last event\n", text), text
    assert re.search(r"kept +the last 200\.0 ms, from \S+ m?s after the recording began\n", text), text


def test_of_a_whole_recording_all_is_kept(record, any_python, krait, info):
    whole = record.text(any_python, "print(1)\n").path
    facts = info(whole)
    assert facts["kept_ns"] == facts["duration_ns"] and facts["kept_from_ns"] == 0
    text = subprocess.run([krait, "info", whole], capture_output=True, text=True, timeout=60).stdout
    assert "from the first event to the last\n" in text and "kept " not in text
