# SPDX-License-Identifier: Apache-2.0
"""Reading takes the same memory whatever the trace's size: mapped pages are let go of too."""

import os
import resource
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import large
from conftest import BUILD
from packet_index import entries_of, write_index

PACKET = 256 * 1024
MEGABYTES = 100
EVENTS = 4 * large.events_per_packet(PACKET) * (MEGABYTES * 1000 * 1000 // 4 // PACKET)


def temporary_folder():
    """In memory where there is room: it is read, and its pages counted, all the same."""
    room = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 * MEGABYTES * 1000 * 1000
    return Path(tempfile.mkdtemp(dir="/dev/shm" if room else None))


@pytest.fixture(scope="module")
def trace():
    folder = temporary_folder()
    yield large.make(folder / "trace", streams=4, count=MEGABYTES * 1000 * 1000 // 4 // PACKET, size=PACKET)
    shutil.rmtree(folder)


def test_memory_is_bounded_where_an_index_tells_of_the_packets(trace):
    for path in trace.glob("s*"):
        write_index(path, entries_of(path, PACKET))
    peak, line = peak_kib(BUILD / "krait", "cat", "--begin=0.001", "--filter=n == 32758", trace)
    assert "tick" in line
    assert peak < 64 * 1024, f"{peak} KiB for a trace of {MEGABYTES} MB"


@pytest.fixture(scope="module")
def many_streams():
    """As many as a machine with 256 CPUs has."""
    folder = temporary_folder()
    yield large.make(folder / "trace", streams=256, count=4, size=PACKET // 2)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "command, last",
    [
        (["{build}/krait", "info", "{trace}"], "tick"),
        (["{build}/krait", "cat", "--filter=n == 16000", "{trace}"], "tick"),
        (["{build}/docs/examples/parallel_sum", "2", "n", "{trace}"], "lost 0"),
        (["{build}/tests/read_trace", "time", "1", "{trace}"], '"events": '),
        (["{build}/tests/read_trace", "time", "2", "{trace}"], '"events": '),
    ],
    ids=["info", "cat", "threads", "batches-by-time", "threads-by-time"],
)
def test_memory_is_bounded_however_many_the_streams(many_streams, command, last):
    peak, line = peak_kib(*(part.format(build=BUILD, trace=many_streams) for part in command))
    assert last in line
    assert peak < 64 * 1024, f"{peak} KiB for 256 streams"


ONE_PACKET = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = m; freq = 1000000000; };
stream { event.header := struct { u8 id; integer { size = 16; align = 8; map = clock.m.value; } timestamp; }; };
event { name = tick; id = 0; fields := struct { u32 n; string name; u8 count; u32 more[count]; }; };
event { name = last; id = 1; fields := struct { u32 n; u8 done; }; };
"""


@pytest.fixture(scope="module")
def one_packet():
    """Two streams, each of which is one packet to its end: nothing says how long packets are."""
    folder = temporary_folder()
    (folder / "metadata").write_text(ONE_PACKET)
    for stream in range(2):
        name = b"a name that is long enough for few of them to fill the trace: " * 4 + b"\0"
        tail = name + struct.pack("<B16I", 16, *range(16))
        body = b"".join(struct.pack("<BHI", 0, k * 16 + stream, k) + tail for k in range(4096))
        with open(folder / f"s{stream}", "wb") as file:
            for _ in range(MEGABYTES * 500 * 1000 // len(body)):
                file.write(body)
            file.write(struct.pack("<BHIB", 1, 0, 7, 1))
    yield folder
    shutil.rmtree(folder)


def peak_kib(*command):
    """The most pages that it had at once, of files and of its own, and its last line."""
    with tempfile.TemporaryFile() as out, subprocess.Popen([*map(str, command)], stdout=out) as process:
        peak = 0
        while process.poll() is None:
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if ":" in line)
            peak = max(peak, int(fields.get("VmHWM", "0 kB").split()[0]))
            time.sleep(0.002)
        assert process.returncode == 0
        out.seek(max(out.seek(0, os.SEEK_END) - 200, 0))
        return peak, out.read().decode().splitlines()[-1]


@pytest.mark.parametrize(
    "command, last",
    [
        (["{build}/krait", "info", "{trace}"], "tick"),
        (["{build}/krait", "cat", "--filter=n == 32758", "{trace}"], "tick"),
        (["{build}/docs/examples/parallel_sum", "2", "n", "{trace}"], "lost 0"),
    ],
    ids=["info", "cat", "threads"],
)
def test_memory_is_bounded_whatever_the_size(trace, command, last):
    peak, line = peak_kib(*(part.format(build=BUILD, trace=trace) for part in command))
    assert last in line
    assert peak < 64 * 1024, f"{peak} KiB for a trace of {MEGABYTES} MB"


@pytest.mark.parametrize(
    "command, last",
    [
        (["{build}/krait", "info", "{trace}"], "last"),
        (["{build}/krait", "cat", "{trace}"], "last: { n = 7, done = 1 }"),
        (["{build}/krait", "cat", "--json", "{trace}"], '"done":1'),
        (["{build}/krait", "cat", "--csv", "{trace}"], "last"),
        (["{build}/krait", "cat", "--filter=done == 1", "{trace}"], "last: { n = 7, done = 1 }"),
        (["{build}/krait", "cat", "--begin=0.002", "{trace}"], "last: { n = 7, done = 1 }"),
        (["{build}/docs/examples/parallel_sum", "2", "n", "{trace}"], "lost 0"),
        (["{build}/tests/read_trace", "stream", "1", "{trace}"], '"events": '),
        (["{build}/tests/read_trace", "time", "2", "{trace}"], '"events": '),
        (["env", "KRAIT_READ_INTERPRET=1", "{build}/krait", "info", "{trace}"], "last"),
        (["env", "KRAIT_READ_INTERPRET=1", "{build}/docs/examples/parallel_sum", "2", "n", "{trace}"], "lost 0"),
    ],
    ids=["info", "cat", "json", "csv", "filter", "begin", "threads", "batches", "batches-by-time", "info-no-code", "threads-no-code"],
)
def test_memory_is_bounded_within_one_packet(one_packet, command, last):
    peak, line = peak_kib(*(part.format(build=BUILD, trace=one_packet) for part in command))
    assert last in line
    assert peak < 64 * 1024, f"{peak} KiB for a trace of {MEGABYTES} MB"


SMALL_PACKETS = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; map = clock.c.value; } := t64;
clock { name = c; freq = 1000000000; };
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
stream { packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u32 content_size; u32 packet_size; u32 NUMBER; };
  event.header := struct { u8 id; t64 timestamp; }; };
event { name = tick; id = 0; fields := struct { string s; }; };
"""


def small_packets(folder, count, number):
    folder.mkdir()
    (folder / "metadata").write_text(SMALL_PACKETS.replace("NUMBER", number))
    packet = struct.Struct("<IQQIIIBQ8s")
    bits = packet.size * 8
    with open(folder / "s", "wb") as file:
        for k in range(0, count * 10, 10):
            file.write(packet.pack(0xC1FC1FC1, k, k + 5, bits, bits, k // 10, 0, k + 3, b"abcdefg"))
    return folder


@pytest.mark.parametrize("verb, number, most", [("info", "n", 44), ("cat", "n", 44), ("info", "packet_seq_num", 60)])
def test_a_packet_takes_few_bytes(tmp_path, verb, number, most):
    few, many = 400_000, 1_400_000
    peaks = [peak_kib(BUILD / "krait", verb, small_packets(tmp_path / str(n), n, number))[0] for n in (few, many)]
    each = (peaks[1] - peaks[0]) * 1024 / (many - few)
    assert each < most, f"{each:.1f} bytes"


def test_selecting_events_does_not_let_go_of_pages_that_are_read(tmp_path):
    """An event of another stream each time: the pages of all are needed again at once."""
    trace = large.make(tmp_path / "trace", streams=4, count=16, size=16 * 1024)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    done = subprocess.run([BUILD / "tests" / "batch_check", trace], capture_output=True, text=True, timeout=60)
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before
    assert done.returncode == 0, done.stderr
    selected = int(done.stdout.partition("selected ")[2].split()[0])
    assert faults < selected / 2, f"{faults} page faults for {selected} events"
