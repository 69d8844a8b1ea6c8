# SPDX-License-Identifier: Apache-2.0
"""The public C interface (include/krait/trace_read.h): its examples, and every way to read against the others."""

import os
import shutil
import struct
import subprocess
from functools import lru_cache

import pytest

from conftest import BUILD
from corpus import CORPUS, SCRIPT, cat_bytes, corpus_rows
from ctf2_made import PREAMBLE, event, lossy, sequence, struct_of, u
from read_checks import EXAMPLES, batch_check, read_check, run, seek_check
from recording import ROOT

KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
needs_corpus = pytest.mark.skipif(not KERNEL.exists(), reason=f"no corpus of CTF traces at {CORPUS}")

# Of the kernel trace, by babeltrace2's text of it: sched_switch by next_comm, and the sum of all fields prev_tid.
SWITCHES = {"swapper/1": 265, "rcu_sched": 249, "kworker/u4:1": 137, "sshd": 125, "swapper/0": 124}
PREV_TIDS = 11039959


@lru_cache(maxsize=4)
def checked_once(trace):
    """Of a trace that nobody changes."""
    return read_check(trace)


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
    assert counts.get("events", ["0"]) == checked_once(CORPUS / row[0]).get("events", ["0"])
    some = batch_check("--some", CORPUS / row[0], interpret=interpret)
    assert int(some.get("cells", ["0"])[0]) <= int(counts.get("cells", ["0"])[0])
    same = counts.keys() - {"cells", "selected"}  # selected is one of so many in a batch, and these are of other sizes
    assert {key: some.get(key) for key in same} == {key: counts[key] for key in same}
    assert batch_check("--cycles", CORPUS / row[0], interpret=interpret).get("events") == counts.get("events")


def test_who_wants_some_fields_has_cells_of_them_alone(recording):
    some, every = batch_check("--some", recording), batch_check(recording)
    assert 0 < int(some["cells"][0]) < int(every["cells"][0])
    assert some["events"] == every["events"]


def test_batches_tell_losses_and_end_with_damage(recording):
    assert batch_check(recording)["lost"] == ["7"]
    stream = max((p for p in recording.rglob("*") if p.is_file() and p.name != "metadata"), key=lambda p: p.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:-9])
    assert batch_check(recording)["error"] == ["-74"]


@pytest.mark.parametrize("damaged", range(4))
def test_losses_around_damage_are_told_by_batches_as_by_steps(tmp_path, damaged):
    """A packet whose first event is damaged tells what was lost before it, and those behind it tell theirs."""
    lossy(tmp_path, [(10, 20, 0, 1), (30, 40, 3, 2), (50, 60, 7, 3), (70, 80, 8, 6)])
    data = (tmp_path / "s0").read_bytes()
    size = len(data) // 4
    packets = [bytearray(data[i:i + size]) for i in range(0, len(data), size)]
    del packets[damaged][-1]
    packets[damaged][6] = (size - 1) * 8
    (tmp_path / "s0").write_bytes(b"".join(packets))
    for interpret in ("", "1"):
        counts = batch_check(tmp_path, interpret=interpret)
        assert (counts["events"], counts["lost"], counts["error"]) == ([str(damaged)], ["8"], ["-74"])


def test_fields_of_recordings_have_cells(recording):
    counts = batch_check(recording)
    assert int(counts["cells"][0]) > int(counts["events"][0]) / 2 > 0  # calls have one, returns none


def test_packets_add_up_to_the_stream(recording):
    counts = read_check(recording)
    assert counts["by_packet"] == counts["by_stream"] == counts["events"]


SCHEMA_METADATA = """/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"; };
env { hostname = "here"; vpid = 7; };
clock { name = c; freq = 1000000; offset_s = 5; offset = 12; absolute = true; };
stream { event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; };
event { name = "e"; fields := struct {
    enum : integer { size = 8; signed = true; } { A = -1, B = 3 ... 5 } kind;
    integer { size = 32; base = 16; byte_order = be; } at;
    floating_point { exp_dig = 8; mant_dig = 24; align = 8; } ratio;
    string name; integer { size = 8; encoding = UTF8; } word[6];
    integer { size = 8; } n; struct { integer { size = 16; } x; } list[n];
    variant <kind> { string A; integer { size = 8; } B; } either; }; };"""

SCHEMA = """stream 0
  hostname = here
  vpid = 7
  clock c: 1000000 Hz, offset 5 s 12 cycles, absolute
  uuid 2a64...64
e
  : struct
    kind: signed, 8 bits
      A = -1 ... -1
      B = 3 ... 5
    at: unsigned, 32 bits, base 16, big-endian
    ratio: double, 32 bits
    name: text
    word: text, length 6
    n: unsigned, 8 bits
    list: array
      : struct
        x: unsigned, 16 bits
    either: variant
      A: text
      B: unsigned, 8 bits
"""


def test_a_class_is_described_without_an_event(tmp_path):
    (tmp_path / "metadata").write_text(SCHEMA_METADATA)
    (tmp_path / "s").write_bytes(b"")
    assert run(EXAMPLES / "schema", tmp_path).stdout == SCHEMA[SCHEMA.index("e\n  : struct"):]
    (tmp_path / "s").write_bytes(struct.pack("<QbIf", 0, 3, 1, 0.5) + bytes(1 + 6 + 1 + 1))
    assert run(EXAMPLES / "schema", tmp_path).stdout == SCHEMA


@pytest.mark.parametrize("row", [row for row in corpus_rows()[::4] if "basic-kernel" not in row[0]])
def test_cursors_of_all_kinds_seek_forward_and_backward(row):
    counts = seek_check(CORPUS / row[0])
    assert counts.get("events", ["0"]) == batch_check(CORPUS / row[0]).get("events", ["0"])


def test_cursors_seek_in_recordings(recording):
    assert int(seek_check(recording)["seeks"][0]) >= 36


def test_a_cursor_seeks_to_a_time(recording):
    """To the first event of it or later, backward too: what cat prints first from there."""
    times = [int(line.split("]")[0].lstrip("[").replace(".", "")) for line in
             cat_bytes(BUILD / "krait", "--clock-seconds", "--no-delta", recording).stdout.decode().splitlines()]
    for ns in [times[0] - 5, *times[:: len(times) // 40], times[-1]]:
        assert run(EXAMPLES / "schema", recording, ns).stdout.split()[0] == str(next(t for t in times if t >= ns))
    assert run(EXAMPLES / "schema", recording, times[-1] + 1).stdout == ""


# -- names that paths have to quote --

ODD = ["a.b", "c[0]", "d e", "`q`", "back\\slash", "", "name", "payload", "$ctx.x", "x == 1", "ü", "plain"]


def quoted(name):
    return "`%s`" % name.replace("\\", "\\\\").replace("`", "\\`")


@pytest.fixture
def odd(tmp_path):
    """CTF 2: every odd name, in the payload and in a struct in it, and as an array's."""
    inner = struct_of(**{name: u(8) for name in ODD})
    array = {"type": "static-length-array", "length": 2, "element-field-class": struct_of(**{"in.ner": u(8)})}
    fields = {name: u(8) for name in ODD} | {"s.t": inner, "ar[r]": array}
    (tmp_path / "metadata").write_bytes(sequence(PREAMBLE, {"type": "data-stream-class"}, event(struct_of(**fields))))
    (tmp_path / "s").write_bytes(bytes(range(2 * len(ODD) + 2)))
    return tmp_path


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
def test_paths_of_cells_are_taken_whatever_is_in_the_names(odd, interpret):
    counts = batch_check(odd, interpret=interpret)
    assert counts["events"] == ["1"] and int(counts["cells"][0]) >= 2 * len(ODD)
    assert batch_check("--some", odd, interpret=interpret)["events"] == ["1"]


def test_fields_that_are_shown_alike_have_paths_of_their_own(tmp_path):
    """LTTng's underscore is not shown: `_a` and `a` are both a."""
    (tmp_path / "metadata").write_text(
        "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { name = e; fields := struct { "
        "integer { size = 8; } _a; integer { size = 8; } a; struct { integer { size = 8; } b; integer { size = 8; } _b; } _s; }; };")
    (tmp_path / "s").write_bytes(bytes(range(8)))
    for interpret in ("", "1"):
        assert int(batch_check(tmp_path, interpret=interpret)["cells"][0]) >= 8
    for field, value, events in (("a", 0, 1), ("`a`", 1, 1), ("`_a`", 0, 1), ("`_s`.`b`", 2, 1), ("s.`_b`", 3, 1), ("`a`", 0, 0)):
        assert cat_bytes(BUILD / "krait", f"--filter={field} == {value}", tmp_path).stdout.count(b"\n") == events, field


def test_filters_take_quoted_names(krait, odd):
    for i, name in enumerate(ODD):
        assert cat_bytes(krait, f"--filter={quoted(name)} == {i}", odd).stdout.count(b"\n") == 1, name
        assert cat_bytes(krait, f"--filter=`s.t`.{quoted(name)} != {len(ODD) + i}", odd).stdout == b"", name
    assert cat_bytes(krait, f"--filter=(`ar[r]`[1].`in.ner`=={2 * len(ODD) + 1})&&!(`d e`<1)", odd).stdout.count(b"\n") == 1
    for wrong, why in (("`a.b == 1", "a name in backquotes has no end"), ("`no such` == 1", "has a field"), ("`a.b`x == 1", "has a field")):
        run = cat_bytes(krait, f"--filter={wrong}", odd)
        assert run.returncode != 0 and why in run.stderr.decode(), wrong


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
    env["LD_LIBRARY_PATH"] = str(next(installed.rglob("libkrait-read.so.2")).parent)
    done = subprocess.run([tmp_path / "count_by", "python:call", "code", recording], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3


def test_only_the_interface_is_exported_and_has_a_version(installed):
    library = next(installed.rglob("libkrait-read.so.2"))
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "[libkrait-read.so.2]" in dynamic
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in names.splitlines()}
    header = (ROOT / "include" / "krait" / "trace_read.h").read_text()
    declared = {line.split("(")[0].split()[-1].lstrip("*") for line in header.split("KRAIT_READER_API ")[1:] if "(" in line}
    declared.discard("__attribute__")
    versions = {name for name in exported if name.startswith("KRAIT_READ_")}
    assert versions == {"KRAIT_READ_2"}
    assert {name.split("@@")[0] for name in exported - versions} == declared
    assert all(name.startswith("krait_reader_") for name in declared)


@pytest.mark.parametrize("compiler", [["cc", "-std=c99", "-pedantic"], ["c++", "-x", "c++", "-std=c++11", "-pedantic"]], ids=["c", "c++"])
def test_the_header_stands_alone(compiler, tmp_path):
    if not shutil.which(compiler[0]):
        pytest.skip(f"no {compiler[0]}")
    header = ROOT / "include" / "krait" / "trace_read.h"
    (tmp_path / "use.c").write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", tmp_path / "use.c"], check=True)
