# SPDX-License-Identifier: Apache-2.0
"""krait cat --begin and --end: the events in the range, and only packets that may have some are read."""

import re
import shutil
import subprocess

import pytest

import large
from cat_ranges import K, PER_PACKET, SIZE, seconds, text_lines, time_of
from corpus import CORPUS, UTC, cat_bytes, corpus_rows


def lines_in_range(krait, trace, begin, end):
    """What has to be printed, taken from all that there is: the first line has no time before it."""
    lines = text_lines(cat_bytes(krait, "--clock-seconds", trace))
    kept = [line for line in lines if line.startswith("[") and begin <= time_of(line) <= end]
    return [re.sub(r"\(\+\S+\)", "(+?.?????????)", line, count=1) for line in kept[:1]] + kept[1:]


@pytest.fixture
def trace(tmp_path):
    return large.make(tmp_path / "trace", streams=2, count=6, size=SIZE)


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


# -- times as they are written --

HOUR, DAY = 3600 * 10**9, 86400 * 10**9
STEP = 1 << 41  # between packets: 36.65 minutes


@pytest.fixture(scope="module")
def two_days(tmp_path_factory):
    """A packet each 36.65 minutes, of 1970-01-01 and 1970-01-02."""
    trace = large.make(tmp_path_factory.mktemp("days") / "trace", count=60, size=SIZE)

    def later(k, head):
        head[BEGIN], head[END] = k * STEP, k * STEP + 8 * PER_PACKET

    rewrite(trace / "s0", later)
    return trace


def babeltrace(*args, env=UTC):
    """None where there is none."""
    tool = shutil.which("babeltrace2")
    return tool and subprocess.run([tool, *map(str, args)], capture_output=True, env=env, timeout=120)


WRITTEN = {
    "1970-01-01": 0,
    "1970-01-02": DAY,
    "1970-01-01 12:34": 12 * HOUR + 34 * 60 * 10**9,
    "1970-01-02 01:02:03": DAY + HOUR + 123 * 10**9,
    "1970-01-01 12:50:00.5": 12 * HOUR + 3000 * 10**9 + 500000000,
    "1970-01-01 00:36:39.023255552": STEP,
    "1970-01-01 00:36:39.02325556": STEP + 8,
    "12:34": 12 * HOUR + 34 * 60 * 10**9,
    "12:34:56": 12 * HOUR + 2096 * 10**9,
    "00:36:39.023255560": STEP + 8,
    "00:36:39.1": 2199 * 10**9 + 100000000,
    "2199.023255552": STEP,
    "2199.02325556": STEP + 8,
    "02199": 2199 * 10**9,
    "-7": -7 * 10**9,
    "-0.5": -500000000,
}


@pytest.mark.parametrize("option", ["--begin", "--end"])
@pytest.mark.parametrize("text", WRITTEN)
def test_times_are_read_as_babeltrace2_reads_them(krait, two_days, option, text):
    args = ("--clock-seconds", f"{option}={text}", two_days)
    run = cat_bytes(krait, *args)
    assert run.returncode == 0, run.stderr.decode()
    begin, end = (WRITTEN[text], 10 * DAY) if option == "--begin" else (-DAY, WRITTEN[text])
    assert text_lines(run) == lines_in_range(krait, two_days, begin, end)
    theirs = babeltrace(*args)
    assert not theirs or (theirs.returncode, theirs.stdout) == (0, run.stdout)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("text", ["1970-01-02", "1970-01-01 19:43", "1970-01-01 22:13:14.5", "20:01", "23:00:59"])
def test_times_without_a_zone_are_local(krait, two_days, zone, text):
    here = {**UTC, "TZ": zone}
    run = subprocess.run([krait, "cat", "--begin", text, two_days], capture_output=True, env=here, timeout=120)
    theirs = babeltrace("--begin", text, two_days, env=here)
    if not theirs:
        pytest.skip("babeltrace2 is not installed")
    assert (run.returncode, run.stdout) == (theirs.returncode, theirs.stdout) and run.stdout


@pytest.mark.parametrize(
    "text",
    ["", "7.", ".5", "7.1234567890", "+7", " 7", "7 ", "0x7", "1e3", "7s", "--7", "- 7", "0:0:7", "1:02", "01:2", "00:00:7", "19:43.", "19:43.5", "19:43:",
     "19:43:10.", "19:43:10.1234567891", "19:43:10,5", "-19:43", "+19:43", "1970-1-1 0:0:7", "1970-01-01  00:00:07", "1970-01-01T00:00:07", "1970-01-01 ",
     "1970-01-01 19", "1970-01-01 19:43:", "1970-01-01 19:43.5", "1970-01-01 7", "19700-01-01", "70-01-01", "1970-01", "1970/01/01", "yesterday"],
)  # fmt: skip
def test_what_babeltrace2_takes_for_no_time_is_none(krait, two_days, text):
    for option in ("--begin", "--end"):
        run = cat_bytes(krait, f"{option}={text}", two_days)
        assert run.returncode == 2 and run.stdout == b""
        assert run.stderr.startswith(f"krait cat: {option}: '{text}' is neither ".encode())
        theirs = babeltrace(f"{option}={text}", two_days)
        assert not theirs or theirs.returncode == 1


@pytest.mark.parametrize("text", ["1600-01-01", "9999-12-31 23:59", "9223372037", "-9223372037", "12345678901234567890"])
def test_times_that_64_bits_do_not_hold_are_refused(krait, two_days, text):
    run = cat_bytes(krait, f"--begin={text}", two_days)
    assert (run.returncode, run.stdout) == (2, b"") and f"--begin: '{text}' is too far from 1970".encode() in run.stderr
    assert cat_bytes(krait, "--begin=-9223372036.8", "--end=2262-04-11 23:47", two_days).stdout == cat_bytes(krait, two_days).stdout


@pytest.mark.parametrize(
    "begin, end",
    [("8", "7"), ("8", "7.999999999"), ("02:00", "01:00:00.5"), ("1970-01-02", "23:59"), ("01:00", "1970-01-01"), ("1970-01-02 00:00", "1970-01-01")],
)
@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)], ids=["text", "json", "csv"])
def test_a_range_that_ends_before_it_begins_is_wrong_usage(krait, two_days, begin, end, form):
    run = cat_bytes(krait, *form, "--begin", begin, "--end", end, two_days)
    assert (run.returncode, run.stdout) == (2, b"")
    assert f"krait cat: the range is empty: --begin {begin} is after --end {end}".encode() in run.stderr
    assert (b"of the first event's day" in run.stderr) == ((":" in begin and "-" not in begin) != (":" in end and "-" not in end))
    theirs = babeltrace("--begin", begin, "--end", end, two_days)
    assert not theirs or theirs.returncode == 1 and b"beginning time is greater than end time" in theirs.stderr


def test_a_range_may_end_where_it_begins_and_have_no_events(krait, tmp_path, two_days):
    assert cat_bytes(krait, "--begin=1970-01-01", "--end=1970-01-01", two_days).stdout.count(b"\n") == 1
    assert cat_bytes(krait, "--begin=1970-01-09", "--end=1970-01-10", two_days).returncode == 0
    empty = large.make(tmp_path / "empty", count=0)
    run = cat_bytes(krait, "--begin=2026-01-01", "--end=19:00", empty)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


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
