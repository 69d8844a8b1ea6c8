# SPDX-License-Identifier: Apache-2.0
"""`krait report` of what is no recording, of damaged ones, and of several at once."""

import json
import subprocess

import pytest

from recording import break_event
from report_made import CODES, TWO, rows, run  # noqa: F401  (rows, run: fixtures)

# Usage and damage.


def test_no_folder_is_wrong_usage(run):
    assert run().returncode == 2
    assert run("--csv", "--json", "x").returncode == 2
    assert run("--tree", "--callers", "f", "x").returncode == 2
    assert run("--limit", "many", "x").returncode == 2
    assert run("--tree", "--by", "module", "x").returncode == 2
    assert run("--callers", "re:(", "x").returncode == 2


def test_what_is_no_recording_is_an_error_that_says_why(run, tmp_path):
    absent = run(tmp_path / "absent")
    assert absent.returncode == 1 and "No such file" in absent.stderr
    (tmp_path / "empty").mkdir()
    empty = run(tmp_path / "empty")
    assert empty.returncode == 1 and "empty" in empty.stderr
    (tmp_path / "file").write_text("x")
    assert "not a folder" in run(tmp_path / "file").stderr
    (tmp_path / "other" / "sub").mkdir(parents=True)
    assert "not a recording" in run(tmp_path / "other").stderr


def test_a_process_folder_is_a_recording_too(synth, rows):
    folder = synth(TWO)
    assert set(rows(folder / "gunicorn-200")) == {"main", "serve"}


def test_several_folders_are_one_recording_and_none_counts_twice(synth, rows, run):
    one, two = synth(TWO, "one"), synth(CODES + "0 call 2\n9 return\n", "two")
    functions = json.loads(run(one, two, one, one / "gunicorn-200", "--json").stdout)["functions"]
    assert {row["name"]: row["calls"] for row in functions} == {"main": 2, "work": 1, "serve": 1, "fib": 1}


PACKETS = CODES + "".join(f"{i}000 call 1\n{i}500 return\npacket\n" for i in range(10))


def test_a_last_packet_cut_short_gives_what_is_whole(synth, run):
    folder = synth(PACKETS)
    stream = next(folder.glob("*/thread-*"))
    stream.write_bytes(stream.read_bytes()[:-2])
    result = run(folder, "--json")
    assert result.returncode == 0
    got = json.loads(result.stdout)
    assert got["functions"][0]["calls"] == 10
    assert "cut short" in got["damage"] and "thread-4711" in got["damage"]
    assert "damaged:" in result.stderr


def test_a_damaged_event_loses_the_rest_of_its_packet_alone(synth, run):
    folder = synth(PACKETS)
    break_event(next(folder.glob("*/thread-*")), packet=3)
    got = json.loads(run(folder, "--json").stdout)
    assert got["functions"][0]["calls"] == 9
    assert "byte 372" in got["damage"]


DAMAGED = [[], ["--tree"], ["--tree", "--fold-imports"], ["--callers", "fib"], ["--callees", "fib"], ["--why", "fib"]]


@pytest.mark.parametrize("what", DAMAGED, ids=" ".join)
def test_every_report_says_the_damage_that_it_meets(synth, run, what):
    folder = synth(PACKETS)
    break_event(next(folder.glob("*/thread-*")), packet=3)
    result = run(folder, "--json", *what)
    assert "byte 372" in (json.loads(result.stdout)["damage"] or "")
    assert "damaged:" in result.stderr and "byte 372" in result.stderr


@pytest.mark.parametrize("at", [0, 5, 48, 52, 56])  # magic, uuid, sizes
def test_after_a_bad_head_the_next_packet_is_found(synth, run, at):
    folder = synth(PACKETS)
    stream = next(folder.glob("*/thread-*"))
    bytes_ = bytearray(stream.read_bytes())
    bytes_[4 * 96 + at] ^= 0xFF
    stream.write_bytes(bytes_)
    got = json.loads(run(folder, "--json").stdout)
    assert got["functions"][0]["calls"] >= 9
    assert "byte 384" in got["damage"]


def test_without_definitions_the_times_remain(synth, run):
    folder = synth(PACKETS)
    next(folder.glob("*/definitions")).unlink()
    got = json.loads(run(folder, "--json").stdout)
    assert [(row["name"], row["calls"], row["total_ns"]) for row in got["functions"]] == [("?", 10, 5000)]
    assert "no names" in got["damage"]


def test_one_process_without_metadata_does_not_hide_the_others(synth, run):
    folder = synth(TWO)
    (folder / "gunicorn-200" / "metadata").write_text("/* CTF 1.8 */ trace {")
    result = run(folder, "--json")
    assert {row["name"] for row in json.loads(result.stdout)["functions"]} == {"main", "work"}
    assert "gunicorn-200" in result.stderr and "left out" in result.stderr


def test_flipped_bytes_never_crash(synth, krait):
    """Whatever is flipped: it ends soon, with 0 or 1, and what it prints is JSON. The seed says which bytes."""
    import random

    folder = synth(
        CODES
        + "0 call 1\n10 frame 1 0\n11 frame 2 1\n12 stack 2\n20 call 4\n30 yield\n50 omit 2 3\n"
        + PACKETS.removeprefix(CODES)
        + "lost 0 3\nexit 0 0\n"
    )
    files = [f for f in sorted(folder.glob("*/*")) if f.is_file()]
    originals = {f: f.read_bytes() for f in files}
    dice = random.Random(20260101)
    for round_ in range(150):
        victim = files[round_ % len(files)]
        damaged = bytearray(originals[victim])
        for _ in range(dice.choice([1, 1, 2, 8, 64])):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        victim.write_bytes(damaged[: dice.randrange(len(damaged))] if dice.random() < 0.2 else damaged)
        for mode in (["--json"], ["--tree", "--by", "thread"]):
            run = subprocess.run([krait, "report", folder, *mode], capture_output=True, timeout=20)
            assert run.returncode in (0, 1), (round_, victim.name, run.returncode, run.stderr)
            assert b"Sanitizer" not in run.stderr, run.stderr
            if run.returncode == 0 and mode == ["--json"]:
                json.loads(run.stdout)
        victim.write_bytes(originals[victim])
