# SPDX-License-Identifier: Apache-2.0
"""The public C interface (include/krait/trace_read.h): its examples, and every way to read against the others."""

import os
import shutil
import subprocess

import pytest

from conftest import BUILD
from recording import ROOT
from test_cat import CORPUS, SCRIPT, cat_bytes, corpus_rows

EXAMPLES = BUILD / "docs" / "examples"
KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
needs_corpus = pytest.mark.skipif(not KERNEL.exists(), reason=f"no corpus of CTF traces at {CORPUS}")

# Of the kernel trace, by babeltrace2's text of it: sched_switch by next_comm, and the sum of all fields prev_tid.
SWITCHES = {"swapper/1": 265, "rcu_sched": 249, "kworker/u4:1": 137, "sshd": 125, "swapper/0": 124}
PREV_TIDS = 11039959


def run(tool, *args, env=None):
    return subprocess.run([tool, *map(str, args)], capture_output=True, text=True, timeout=120, env=env)


def found(done):
    """What one of the checks counted; it fails where two ways to read differ."""
    assert done.returncode == 0, done.stderr
    return {words[0]: words[1:] for words in (line.split(" ") for line in done.stdout.splitlines())}


def read_check(*traces):
    return found(run(BUILD / "tests" / "read_check", *traces))


def batch_check(*args, interpret=""):
    return found(run(BUILD / "tests" / "batch_check", *args, env={**os.environ, "KRAIT_READ_INTERPRET": interpret}))


def count_by(*args):
    done = run(EXAMPLES / "count_by", *args)
    assert done.returncode == 0, done.stderr
    rows = (line.split("\t", 1) for line in done.stdout.splitlines())
    return {value: int(count) for count, value in rows}


@pytest.fixture
def recording(synth):
    return synth(SCRIPT)


# -- the examples --


@needs_corpus
def test_count_by_counts_a_kernel_trace():
    counts = count_by("sched_switch", "next_comm", KERNEL)
    assert dict(list(counts.items())[:5]) == SWITCHES


def test_count_by_counts_a_recording_by_function(recording):
    assert count_by("python:call", "code", recording) == {"pkg.mod.Class.method <locals>": 3002, "99": 1, 'm"q.g?h?': 1}
    assert count_by("c:call", "vtid", recording) == {"10": 3000}


@needs_corpus
def test_threads_sum_what_one_thread_sums():
    outputs = {run(EXAMPLES / "parallel_sum", threads, "prev_tid", KERNEL).stdout for threads in (1, 2, 5)}
    assert outputs == {f"events 134500\nsum {PREV_TIDS}\nlost 0\n"}


def test_losses_are_told_once_whoever_reads_the_packet(recording):
    for threads in (1, 3):
        assert run(EXAMPLES / "parallel_sum", threads, "code", recording).stdout.endswith("lost 7\n")
    assert read_check(recording)["lost"] == ["7"]


def test_examples_say_what_is_wrong(recording, tmp_path):
    done = run(EXAMPLES / "count_by", "python:call", "nonsense", recording)
    assert done.returncode == 1 and "events of 'python:call' have no field 'nonsense'" in done.stderr
    done = run(EXAMPLES / "count_by", "no:event", "code", recording)
    assert done.returncode == 1 and "there are no events 'no:event'" in done.stderr
    done = run(EXAMPLES / "count_by", "python:call", "code", tmp_path / "nowhere")
    assert done.returncode == 1 and "nowhere" in done.stderr


# -- every way to read --


@pytest.mark.parametrize("row", corpus_rows())
def test_values_by_handle_are_those_that_stepping_reaches(krait, row):
    trace = row[0]
    counts = read_check(CORPUS / trace)
    text = cat_bytes(krait, CORPUS / trace)
    lines = text.stdout.count(b"\n")
    assert counts.get("events", ["0"]) == [str(lines)]
    assert counts.get("by_stream", ["0"]) == [str(lines)]
    assert ("error" in counts) == (text.returncode == 1)


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("row", corpus_rows())
def test_batches_hold_what_single_events_hold(row, interpret):
    counts = batch_check(CORPUS / row[0], interpret=interpret)
    assert counts.get("events") == counts.get("by_stream") == counts.get("by_part", counts.get("events"))
    assert counts.get("events", ["0"]) == read_check(CORPUS / row[0]).get("events", ["0"])
    some = batch_check("--some", CORPUS / row[0], interpret=interpret)
    assert int(some.get("cells", ["0"])[0]) <= int(counts.get("cells", ["0"])[0])
    same = counts.keys() - {"cells", "selected"}  # selected is one of so many in a batch, and these are of other sizes
    assert {key: some.get(key) for key in same} == {key: counts[key] for key in same}


def test_who_wants_some_fields_has_cells_of_them_alone(recording):
    some, every = batch_check("--some", recording), batch_check(recording)
    assert 0 < int(some["cells"][0]) < int(every["cells"][0])
    assert some["events"] == every["events"]


def test_batches_tell_losses_and_end_with_damage(recording):
    assert batch_check(recording)["lost"] == ["7"]
    stream = max((p for p in recording.rglob("*") if p.is_file() and p.name != "metadata"), key=lambda p: p.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:-9])
    assert batch_check(recording)["error"] == ["-74"]


def test_fields_of_recordings_have_cells(recording):
    counts = batch_check(recording)
    assert int(counts["cells"][0]) > int(counts["events"][0]) / 2 > 0  # calls have one, returns none


def test_packets_add_up_to_the_stream(recording):
    counts = read_check(recording)
    assert counts["by_packet"] == counts["by_stream"] == counts["events"]


# -- damage --


def test_damage_comes_last_with_its_file_and_offset(recording):
    whole = int(read_check(recording)["events"][0])
    stream = max((p for p in recording.rglob("*") if p.is_file() and p.name != "metadata"), key=lambda p: p.stat().st_size)
    data = stream.read_bytes()
    stream.write_bytes(data[:-9])
    counts = read_check(recording)
    code, offset, file = counts["error"]
    assert (code, file) == ("-74", str(stream)) and 0 < int(offset) <= len(data)
    assert whole - 6 <= int(counts["events"][0]) < whole


def test_damaged_metadata_is_named(recording):
    metadata = next(recording.rglob("metadata"))
    metadata.write_bytes(metadata.read_bytes()[:200])
    assert read_check(recording)["error"] == ["-74", "-1", str(metadata)]


def test_a_folder_without_a_trace_is_not_there(tmp_path):
    assert read_check(tmp_path)["error"][0] == "-2"
    assert read_check()["error"][0] == "-22"


# -- the library as it is installed --


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    dest = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", dest, "--tags", "devel", "--quiet"], check=True,
                   capture_output=True)
    return dest


def test_a_program_is_built_with_pkg_config(installed, recording, tmp_path):
    pc = next(installed.rglob("krait-read.pc"))
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(installed)}
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "krait-read"], env=env, capture_output=True, text=True, check=True)
    source = ROOT / "docs" / "examples" / "count_by.c"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, *flags.stdout.split(), "-o", tmp_path / "count_by"],
                   check=True)
    env["LD_LIBRARY_PATH"] = str(next(installed.rglob("libkrait-read.so.1")).parent)
    done = subprocess.run([tmp_path / "count_by", "python:call", "code", recording], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3


def test_only_the_interface_is_exported_and_has_a_version(installed):
    library = next(installed.rglob("libkrait-read.so.1"))
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "[libkrait-read.so.1]" in dynamic
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in names.splitlines()}
    header = (ROOT / "include" / "krait" / "trace_read.h").read_text()
    declared = {line.split("(")[0].split()[-1].lstrip("*") for line in header.split("KRAIT_API ")[1:] if "(" in line}
    declared.discard("__attribute__")
    assert exported - {"KRAIT_READ_1"} == {f"{name}@@KRAIT_READ_1" for name in declared}


@pytest.mark.parametrize("compiler", [["cc", "-std=c99", "-pedantic"], ["c++", "-x", "c++", "-std=c++11", "-pedantic"]], ids=["c", "c++"])
def test_the_header_stands_alone(compiler, tmp_path):
    if not shutil.which(compiler[0]):
        pytest.skip(f"no {compiler[0]}")
    header = ROOT / "include" / "krait" / "trace_read.h"
    (tmp_path / "use.c").write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", tmp_path / "use.c"], check=True)
