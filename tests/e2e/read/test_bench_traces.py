# SPDX-License-Identifier: Apache-2.0
"""The traces that bench/run measures readers with: other readers read them without a message, and all see the same."""

import json
import shutil
import subprocess

import pytest

from conftest import BUILD, found_pythons
from corpus import CORPUS, UTC, cat_bytes
from recording import ROOT

KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
EVENTS = {"ust": 60_000, "kernel": 200_000, "krait": 30_000}
REPEATED = 134_500  # events of the kernel trace, which comes in whole repetitions


def tool(name, *args):
    done = subprocess.run([BUILD / "tests" / name, *map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ust(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ust")
    tool("gen_ust", folder, EVENTS["ust"])
    return folder


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    if not KERNEL.exists():
        pytest.skip(f"no corpus of CTF traces at {CORPUS}")
    folder = tmp_path_factory.mktemp("kernel") / "trace"
    tool("gen_kernel", KERNEL, folder, EVENTS["kernel"])
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    tool("gen_trace", folder, EVENTS["krait"], 100, 3)
    return next(p for p in folder.iterdir() if p.is_dir())


def babeltrace_2_0():
    return (shutil.which("babeltrace2"),)


def babeltrace_2_1():
    """How to run Debian sid's; empty where it is not."""
    return next((p.prefix + ("babeltrace2",) for p in found_pythons()[0] if p.prefix), (None,))


def babeltrace(command, trace):
    """Its text; it may say nothing besides."""
    if not command[-1]:
        pytest.skip("no babeltrace2 that reads this")
    done = subprocess.run([*command, str(trace)], capture_output=True, env=UTC, timeout=120)
    assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()
    return done.stdout


def text_of(krait, trace, *options):
    done = cat_bytes(krait, *options, trace)
    assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()
    return done.stdout


def times(text):
    return [line.split("]")[0] for line in text.decode().splitlines()]


def check_text(text, trace):
    """babeltrace2 before 2.0.5 prints an empty string as the one that its field object held before: of its text the
    times are compared alone."""
    assert times(text) == times(babeltrace(babeltrace_2_0(), trace))
    assert text == babeltrace(babeltrace_2_1(), trace)


def test_user_space_events_print_as_babeltrace2_prints_them(krait, ust):
    text = text_of(krait, ust / "ctf1")
    assert text == babeltrace(babeltrace_2_0(), ust / "ctf1")
    assert text.count(b"\n") == EVENTS["ust"]


def test_user_space_events_are_the_same_in_ctf_2(krait, ust):
    text = text_of(krait, ust / "ctf2")
    assert text == text_of(krait, ust / "ctf1")
    assert text == babeltrace(babeltrace_2_1(), ust / "ctf2")
    levels = [text_of(krait, ust / version, "--fields=loglevel") for version in ("ctf1", "ctf2")]
    assert levels[0] == levels[1] != text


def test_recordings_of_any_size_print_as_babeltrace2_prints_them(krait, own):
    text = text_of(krait, own)
    assert text.count(b"\n") > EVENTS["krait"]  # and the definitions
    check_text(text, own)


def test_repeated_kernel_events_print_as_babeltrace2_prints_them(krait, kernel):
    text = text_of(krait, kernel)
    assert text.count(b"\n") == 2 * REPEATED
    check_text(text, kernel)


def test_a_repetition_is_the_kernel_trace_later(krait, kernel):
    once = text_of(krait, KERNEL).splitlines()
    both = text_of(krait, kernel).splitlines()
    fields = [line.split(b") ", 1)[1] for line in both]
    assert both[: len(once)] == once
    assert fields[len(once) :] == fields[: len(once)]
    assert times(b"\n".join(both)) == sorted(times(b"\n".join(both)))


@pytest.mark.parametrize("made", ["ust", "kernel", "own"])
def test_the_measured_program_reads_the_same_in_every_mode(request, krait, made):
    folder = request.getfixturevalue(made)
    trace = folder / "ctf2" if made == "ust" else folder
    info = json.loads(subprocess.run([krait, "info", "--json", trace], capture_output=True, timeout=60).stdout)
    modes = [("single", 1), ("stream", 1), ("stream", 2), ("time", 1), ("time", 3), ("count", 1), ("count", 2)]
    modes += [("check", 1), ("check", 2), ("check-time", 1), ("check-time", 3)]
    runs = {(mode, threads): json.loads(tool("read_trace", mode, threads, trace)) for mode, threads in modes}
    assert {run["events"] for run in runs.values()} == {info["events"]}
    assert len({run["times"] for (mode, _), run in runs.items() if mode != "count"}) == 1
    sums = {(run["numbers"], run["text"]) for run in runs.values() if "numbers" in run}
    assert len(sums) == 1 and all(sums.pop())
    assert len({run["classes"] for (mode, _), run in runs.items() if mode == "count"}) == 1
    tool("batch_check", trace)  # of two stream classes in one trace, among others


def test_a_reader_that_finds_something_else_ends_the_measurement(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    import read

    agreed = {}
    read.check("a trace", "one", {"events": 7, "numbers": 20}, agreed)
    read.check("a trace", "two", {"events": 7}, agreed)
    with pytest.raises(RuntimeError, match="a trace: numbers is 21 by three, but 20 by one"):
        read.check("a trace", "three", {"events": 7, "numbers": 21}, agreed)
