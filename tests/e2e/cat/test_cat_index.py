# SPDX-License-Identifier: Apache-2.0
"""LTTng's index files: used where they are good and few packets are needed, and never for a different text."""

import shutil
import struct

import pytest

import large
from cat_ranges import K, PER_PACKET, SIZE, seconds, text_lines
from corpus import cat_bytes
from packet_index import ENTRY, HEADER, entries_of, write_index

FIELDS = ["offset", "packet size", "content size", "begin", "end", "discarded", "stream class", "stream", "seq"]
COUNT = 8


@pytest.fixture
def trace(tmp_path):
    """Packets 2 and 6 say that events were discarded before them, packet 5 that two packets are missing."""
    counts = {"discarded": lambda k: 3 * (k >= 2) + 4 * (k >= 6), "seq": lambda k: k + 2 * (k >= 5)}
    return large.make(tmp_path / "trace", streams=2, count=COUNT, size=SIZE, **counts)


RANGES = [(0, 20 * K), (3 * K + 9, 4 * K + 21), (5 * K, 6 * K), (7 * K + 8, 20 * K), (9 * K, 20 * K), (0, K // 2), (4 * K, 4 * K)]


def texts(krait, trace):
    runs = [cat_bytes(krait, "--clock-seconds", f"--begin={seconds(a)}", f"--end={seconds(b)}", trace) for a, b in RANGES]
    return [(run.returncode, run.stdout, run.stderr) for run in runs]


@pytest.fixture
def expected(krait, trace):
    """What is printed without an index."""
    return texts(krait, trace)


def test_a_good_index_is_used_and_changes_nothing(krait, trace, expected):
    for name in ("s0", "s1"):
        write_index(trace / name, entries_of(trace / name))
    assert texts(krait, trace) == expected
    data = bytearray((trace / "s0").read_bytes())
    data[3 * SIZE : 3 * SIZE + 4] = b"none"
    (trace / "s0").write_bytes(data)
    inside = ("--clock-seconds", "--begin", seconds(4 * K + 8), trace)
    run = cat_bytes(krait, *inside)  # packet 3 is not even looked at
    assert run.returncode == 0 and len(text_lines(run)) == 2 * (4 * PER_PACKET - 1)
    shutil.rmtree(trace / "index")
    assert b"no packet begins here" in cat_bytes(krait, *inside).stderr


def test_an_index_of_version_1_0_has_no_sequence_numbers(krait, tmp_path):
    trace = large.make(tmp_path / "trace", count=COUNT, size=SIZE)
    expected = texts(krait, trace)
    entries = b"".join(struct.pack(">7Q", *row[:7]) for row in entries_of(trace / "s0"))
    (trace / "index").mkdir()
    (trace / "index" / "s0.idx").write_bytes(HEADER.pack(0xC1F1DCC1, 1, 0, 56) + entries)
    assert texts(krait, trace) == expected


@pytest.mark.parametrize("field", range(len(FIELDS)), ids=FIELDS)
@pytest.mark.parametrize("at", [0, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 4)), 5, COUNT - 1])
def test_a_wrong_entry_changes_nothing(krait, trace, expected, field, at):
    for wrong in (8, -8, K, -K, 3 * K + 1, 2**63):
        rows = entries_of(trace / "s0")
        rows[at][field] += wrong
        write_index(trace / "s0", rows)
        assert texts(krait, trace) == expected


@pytest.mark.parametrize("field", range(4))
@pytest.mark.parametrize("wrong", [0, 1, 2, 71, 2**31])
def test_a_wrong_header_changes_nothing(krait, trace, expected, field, wrong):
    header = [0xC1F1DCC1, 1, 1, ENTRY.size]
    header[field] = wrong
    write_index(trace / "s0", entries_of(trace / "s0"), header)
    assert texts(krait, trace) == expected


@pytest.mark.parametrize("cut", [1, 8, ENTRY.size, 3 * ENTRY.size, COUNT * ENTRY.size, COUNT * ENTRY.size + 4])
def test_a_cut_index_changes_nothing(krait, trace, expected, cut):
    write_index(trace / "s0", entries_of(trace / "s0"), cut=cut)
    assert texts(krait, trace) == expected


def test_an_index_of_another_file_changes_nothing(krait, trace, expected):
    other = large.make(trace.parent / "other", count=COUNT, size=SIZE, seq=lambda k: k)
    for rows in (entries_of(trace / "s1"), entries_of(other / "s0"), list(reversed(entries_of(trace / "s0")))):
        write_index(trace / "s0", rows)
        assert texts(krait, trace) == expected


def test_packets_without_events_are_looked_at_until_one_has_some(krait, tmp_path):
    """Behind the range a stream is read up to the first event there is."""
    path = large.make(tmp_path / "trace", count=COUNT, size=SIZE) / "s0"
    data = bytearray(path.read_bytes())
    for k in range(3, 6):
        head = list(large.HEAD.unpack_from(data, k * SIZE))
        head[5] = large.HEAD.size * 8
        large.HEAD.pack_into(data, k * SIZE, *head)
    path.write_bytes(data)
    rows = entries_of(path)
    rows[5][2] -= 8  # less than its header
    write_index(path, rows)
    run = cat_bytes(krait, "--clock-seconds", "--end", seconds(2 * K + 16), path.parent)
    assert run.returncode == 0, run.stderr.decode()
    assert len(text_lines(run)) == 2 * PER_PACKET + 3
