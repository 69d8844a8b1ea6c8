# SPDX-License-Identifier: Apache-2.0
"""krait cat --begin and --end: the events in the range, and only packets that may have some are read."""

import re

import pytest

import large
from test_cat import CORPUS, cat_bytes, corpus_rows

SIZE = 4096
PER_PACKET = large.events_per_packet(SIZE)


def seconds(ns):
    return f"{'-' * (ns < 0)}{abs(ns) // 10**9}.{abs(ns) % 10**9:09}"


def text_lines(run):
    return run.stdout.decode(errors="surrogateescape").split("\n")[:-1]


def time_of(line):
    sign, s, ns = re.match(r"\[(-?)(\d+)\.(\d{9})\]", line).groups()
    return int(sign + s + ns)


def lines_in_range(krait, trace, begin, end):
    """What has to be printed, taken from all that there is: the first line has no time before it."""
    lines = text_lines(cat_bytes(krait, "--clock-seconds", trace))
    kept = [line for line in lines if line.startswith("[") and begin <= time_of(line) <= end]
    return [re.sub(r"\(\+\S+\)", "(+?.?????????)", line, count=1) for line in kept[:1]] + kept[1:]


@pytest.fixture
def trace(tmp_path):
    return large.make(tmp_path / "trace", streams=2, count=6, size=SIZE)


K = large.PACKET_NS


@pytest.mark.parametrize(
    "begin, end",
    [(0, 9 * K), (3 * K, 4 * K), (3 * K + 9, 3 * K + 21), (K - 1, K - 1), (2 * K, 2 * K), (6 * K, 9 * K), (2 * K + 8 * (PER_PACKET - 1), 3 * K)],
)
def test_a_range_is_what_all_the_text_has_of_it(krait, trace, begin, end):
    run = cat_bytes(krait, "--clock-seconds", "--begin", seconds(begin), "--end", seconds(end), trace)
    assert run.returncode == 0, run.stderr.decode()
    assert text_lines(run) == lines_in_range(krait, trace, begin, end)


def break_packet(path, k):
    """Its events get ids that the metadata has not; its header and context stay."""
    data = bytearray(path.read_bytes())
    at = k * SIZE + large.HEAD.size
    data[at : at + 64] = b"\x1e" * 64
    path.write_bytes(data)


def test_packets_outside_the_range_are_not_read(krait, trace):
    for k in (0, 1, 5):
        break_packet(trace / "s0", k)
    inside = ("--clock-seconds", "--begin", seconds(2 * K + 8), "--end", seconds(4 * K - 1))
    run = cat_bytes(krait, *inside, trace)
    assert run.returncode == 0 and run.stdout.count(b"\n") == 2 * (2 * PER_PACKET - 1), run.stderr.decode()
    assert cat_bytes(krait, *inside, "--json", trace).returncode == 0
    break_packet(trace / "s0", 3)
    run = cat_bytes(krait, *inside, trace)
    assert run.returncode == 1 and b"an event has id 30" in run.stderr
    assert run.stdout.count(b"\n") == 3 * PER_PACKET - 2


def test_times_of_day_are_of_the_first_event_whatever_is_passed_over(krait, tmp_path):
    trace = large.make(tmp_path / "trace", count=40, size=SIZE)  # 0 to 5.3 s
    args = ("--clock-gmt", "--begin", "00:00:02", "--end", "00:00:03.5", trace)
    assert text_lines(cat_bytes(krait, "--clock-seconds", *args)) == lines_in_range(krait, trace, 2 * 10**9, 3500000000)
    break_packet(trace / "s0", 5)
    break_packet(trace / "s0", 38)
    assert cat_bytes(krait, *args).returncode == 0


def test_losses_are_told_whatever_the_range(krait, tmp_path):
    trace = large.make(tmp_path / "trace", count=6, size=SIZE, discarded=lambda k: 3 * k, seq=lambda k: 2 * k)
    all_of_it = cat_bytes(krait, trace)
    run = cat_bytes(krait, "--begin", seconds(4 * K), trace)
    assert run.stderr == all_of_it.stderr and run.stderr.count(b"discarded 3 events") == 5


def rewrite(path, change):
    """Packet by packet: change(k, fields of its head)."""
    data = bytearray(path.read_bytes())
    for k in range(len(data) // SIZE):
        fields = list(large.HEAD.unpack_from(data, k * SIZE))
        change(k, fields)
        large.HEAD.pack_into(data, k * SIZE, *fields)
    path.write_bytes(data)


BEGIN, END = 3, 4


@pytest.mark.parametrize(
    "change",
    [
        lambda k, head: head.__setitem__(END, 0),
        lambda k, head: head.__setitem__(END, head[BEGIN]),
        lambda k, head: head.__setitem__(END, head[BEGIN] + (3 * K if k == 2 else 9)),
    ],
    ids=["no end", "the begin", "beyond the next begin"],
)
def test_ends_that_cannot_be_are_not_believed(krait, tmp_path, change):
    trace = large.make(tmp_path / "trace", count=6, size=SIZE)
    rewrite(trace / "s0", change)
    begin = 2 * K + 1600
    run = cat_bytes(krait, "--clock-seconds", "--begin", seconds(begin), trace)
    kept = text_lines(run)
    assert kept[-3 * PER_PACKET :] == lines_in_range(krait, trace, begin, 9 * K)[-3 * PER_PACKET :]


def test_partial_times_are_read_from_the_beginning(krait, tmp_path):
    trace = large.make(tmp_path / "trace", count=6, size=SIZE)
    metadata = large.METADATA.replace("t64 timestamp_begin; t64 timestamp_end;", "t32 timestamp_begin; u32 pad; t64 timestamp_end;")
    metadata = metadata.replace("stream {", "typealias integer { size = 32; align = 8; map = clock.m.value; } := t32;\nstream {")
    (trace / "metadata").write_text(metadata)
    begin, end = 3 * K + 9, 4 * K
    run = cat_bytes(krait, "--clock-seconds", "--begin", seconds(begin), "--end", seconds(end), trace)
    assert text_lines(run) == lines_in_range(krait, trace, begin, end)
    break_packet(trace / "s0", 1)
    assert cat_bytes(krait, "--clock-seconds", "--begin", seconds(begin), "--end", seconds(end), trace).returncode == 1


@pytest.mark.parametrize("row", corpus_rows())
def test_ranges_of_traces_of_others_are_what_all_their_text_has(krait, row):
    trace = CORPUS / row[0]
    times = sorted(time_of(line) for line in text_lines(cat_bytes(krait, "--clock-seconds", trace)) if line.startswith("["))
    if row[1] == "refuse" or not times:
        pytest.skip("damaged, or without times")
    for a, b in ((1, 3), (40, 60), (97, 99)):
        begin, end = times[len(times) * a // 100], times[len(times) * b // 100]
        run = cat_bytes(krait, "--clock-seconds", f"--begin={seconds(begin)}", f"--end={seconds(end)}", trace)
        assert text_lines(run) == lines_in_range(krait, trace, begin, end)
