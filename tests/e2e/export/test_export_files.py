# SPDX-License-Identifier: Apache-2.0
"""The file that `krait export` writes: where, under which name, and what is left when that fails."""

import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import time

import pytest

from export_readers import run
from exported import FORMATS, STREAMED, export, export_to, random_program  # noqa: F401  (export: fixture)
from terminal import open_terminal

# -- writing --


@pytest.fixture
def big(synth):
    return synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\nrepeat 100000\n1us call 1\n3us return\nend\n")


@pytest.mark.parametrize("fmt", FORMATS)
def test_standard_output_gets_the_same_bytes(export, krait, synth, fmt):
    folder = synth(random_program(1, events=300).script())
    assert run(krait, "export", folder, "--to", fmt, "-o", "-") == export(folder, fmt).read_bytes()


@pytest.mark.parametrize("fmt", STREAMED)
def test_when_the_disk_is_full_the_old_file_stays_and_nothing_else(krait, big, tmp_path, fmt):
    def only_100_kb():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "trace"
    target.write_text("old")
    done = export_to(krait, big, fmt, target, preexec_fn=only_100_kb)
    assert done.returncode == 1
    assert done.stderr == f"krait export: {target}: cannot write: File too large\n"
    assert [p.name for p in target.parent.iterdir()] == ["trace"] and target.read_text() == "old"


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_device_that_is_full_is_said(krait, big, fmt):
    done = export_to(krait, big, fmt, "/dev/full")
    assert (done.returncode, done.stderr) == (1, "krait export: /dev/full: cannot write: No space left on device\n")


def test_a_reader_that_goes_away_is_said(krait, big):
    read, write = os.pipe()
    os.close(read)
    done = export_to(krait, big, "chrome", "-", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "krait export: standard output: cannot write: Broken pipe\n")


def test_a_killed_export_leaves_nothing(krait, big, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    for milliseconds in range(0, 40, 2):
        process = subprocess.Popen([krait, "export", big, "--to", "chrome", "-o", folder / "trace.json"])
        time.sleep(milliseconds / 1000)
        process.kill()
        process.wait()
        for path in folder.iterdir():
            assert path.name == "trace.json" and json.loads(path.read_bytes())
            path.unlink()


def test_a_folder_that_is_not_there_is_named(krait, big, tmp_path):
    target = tmp_path / "no" / "trace.json"
    done = export_to(krait, big, "chrome", target)
    assert (done.returncode, done.stderr) == (1, f"krait export: {target}: cannot write: No such file or directory\n")


@pytest.mark.parametrize(
    "args, said",
    [
        ([], "no recording given"),
        (["DIR"], "no format given; choose one with --to folded|chrome"),
        (["DIR", "-o", "x.svg"], "the name 'x.svg' does not tell the format; choose one with --to folded|chrome"),
        (["DIR", "-o", "-"], "the name '-' does not tell the format; choose one with --to folded|chrome"),
        (["DIR", "--to", "svg", "-o", "x"], "'svg' is not one of folded|chrome"),
        (["DIR", "--to", "chrome", "--unit", "us", "-o", "x"], "has a unit of its own"),
    ],
)
def test_wrong_usage_says_what_is_missing(krait, args, said):
    done = subprocess.run([krait, "export", *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr and "Try: krait export --help" in done.stderr


@pytest.mark.parametrize(
    "name, fmt",
    [("a.folded", "folded"), ("a.FOLDED", "folded"), ("a.Pb.GZ", "pprof"), ("a.collapsed", "folded"), ("a.json", "chrome"), ("a.speedscope.json", "speedscope"), ("a.pftrace", "perfetto"),
     ("callgrind.out.a", "callgrind"), ("a.pb.gz", "pprof")],
)
def test_the_files_name_tells_the_format(krait, synth, tmp_path, name, fmt):
    folder = synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\n1us call 1\n3us return\n", name="a")
    told = subprocess.run([krait, "export", folder, "-o", name], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0 and f"wrote {name} (" in told.stderr
    named = subprocess.run([krait, "export", folder, "--to", fmt, "-o", "-"], cwd=tmp_path, capture_output=True, timeout=60)
    assert (tmp_path / name).read_bytes() == named.stdout


@pytest.mark.parametrize(
    "fmt, name",
    [("folded", "a.folded"), ("chrome", "a.json"), ("perfetto", "a.pftrace"), ("speedscope", "a.speedscope.json"),
     ("callgrind", "callgrind.out.a"), ("pprof", "a.pb.gz")],
)
def test_without_a_file_it_is_named_after_the_recording(krait, synth, tmp_path, fmt, name):
    folder = synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\n1us call 1\n3us return\n", name="a")
    (tmp_path / "here").mkdir()
    for words, cwd in ((f"{folder}/", tmp_path / "here"), (".", folder)):
        done = subprocess.run([krait, "export", words, "--to", fmt], cwd=cwd, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and f"wrote {name} (" in done.stderr and (cwd / name).exists()


def test_a_file_that_was_not_named_is_not_replaced(krait, synth, tmp_path):
    folder = synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\n1us call 1\n3us return\nexit 0 0\n", name="a")
    mine = tmp_path / "a.json"
    mine.write_text("mine")
    refused = subprocess.run([krait, "export", folder, "--to", "chrome"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, refused.stderr) == (1, "krait export: a.json is there already; choose a name with -o, or replace it with -o a.json\n")
    assert mine.read_text() == "mine"
    named = subprocess.run([krait, "export", folder, "--to", "chrome", "-o", "a.json"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert named.returncode == 0 and mine.read_text() != "mine"


def test_progress_is_told_on_a_terminal_and_leaves_no_trace_there(krait, synth, tmp_path):
    """The reader of a pipe keeps the export waiting for as long as it takes until there is something to tell."""
    script = "process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\nrepeat 200000\n1us call 1\n3us return\nend\n"
    pipe = tmp_path / "trace.json"
    os.mkfifo(pipe)
    main, side = open_terminal()
    process = subprocess.Popen([krait, "export", synth(script), "-o", pipe], stderr=side)
    os.close(side)
    said = b""
    with open(pipe, "rb") as reader:
        while b"left" not in said and process.poll() is None:
            reader.read(1 << 16)
            time.sleep(0.05)
            while select.select([main], [], [], 0)[0]:
                said += os.read(main, 4096)
        while reader.read(1 << 20):
            pass
    with contextlib.suppress(OSError):
        while more := os.read(main, 4096):
            said += more
    os.close(main)
    assert process.wait(timeout=60) == 0
    assert re.search(rb"\rkrait export: \d+%, about \d+ s left +", said)
    blank, rest = said.decode().rsplit("left", 1)[1].split("\r")[1:3]
    assert not blank.strip() and rest.startswith("krait export: ")


def test_a_wrong_time_or_thread_is_named(krait, big, tmp_path):
    def said(status, *options):
        done = subprocess.run([krait, "export", big, "--to", "chrome", "-o", tmp_path / "x", *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == status and not (tmp_path / "x").exists()
        return done.stderr

    assert "'soon' is not a time" in said(2, "--from", "soon")
    assert "the range is empty: 2s is not before 1s" in said(2, "--from", "2s", "--until", "1s")
    assert "no thread matches" in said(1, "--thread", "nobody")


@pytest.mark.parametrize("fmt, status", [("pprof", 2), ("perfetto", 2), ("folded", 0)])
def test_binary_formats_are_not_for_a_terminal(krait, synth, fmt, status):
    folder = synth("process 1 python3\ncode 1 python app f /src/app.py 1\nthread 1 main\n1us call 1\n3us return\n")
    main, side = open_terminal()
    done = subprocess.run([krait, "export", folder, "--to", fmt, "-o", "-"], stdout=side, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(side)
    os.close(main)
    assert done.returncode == status
    assert not status or f"{fmt} is binary, and standard output is a terminal" in done.stderr
