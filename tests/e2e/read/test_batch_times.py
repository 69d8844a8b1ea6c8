# SPDX-License-Identifier: Apache-2.0
"""Batches of traces whose times do what times should not, and whose ids are the highest there are: each event is there once,
in the order in which single steps reach it."""

import random
import struct

import pytest

from packets_made import BARE, FLAT, LARGE, bare, extended, flat, low, packet, write
from read_checks import batch_check, read_check


def sets(time, clock, number=2):
    return struct.pack("<QQQ", number, time, clock)


def flats(*times):
    return packet(times[0], *map(flat, times))


MOST = 2**64 - 1
SIGN = 2**63  # from here on there are no nanoseconds
LATE = (SIGN - 10**18) // 1000  # from here on microseconds since 10**15 of them

CASES = {
    "backward": (
        dict(),
        [flats(10, 20, 30, 12, 40, 13, 50), flats(60, 20, 70, 80, 90, 11, 100), flats(110, 65, 120, 130)],
        [flats(5, 15, 25, 35, 45, 55), flats(65, 75, 85, 95, 30, 115)],
    ),
    "sign": (dict(), [flats(SIGN - 3, SIGN - 2, SIGN - 1, SIGN, SIGN + 1)], [flats(1, 2, SIGN - 2, SIGN - 1, SIGN, SIGN + 3)]),
    "sign by offset": (
        dict(offset=2**62),
        [flats(2**62 - 3, 2**62 - 2, 2**62 - 1, 2**62, 2**62 + 1)],
        [flats(1, 2, 2**62 - 2, 2**62 - 1, 2**62 + 5)],
    ),
    "sign in microseconds": (
        dict(frequency=10**6, offset=10**15),
        [flats(LATE - 2, LATE - 1, LATE, LATE + 1, LATE + 2)],
        [flats(1, 2, 3, LATE - 1, LATE + 1)],
    ),
    "beyond all nanoseconds": (dict(frequency=10**6), [flats(1, 2, SIGN, MOST)], [flats(MOST, MOST), flats(MOST)]),
    "many beyond all nanoseconds": (dict(frequency=10**6), [flats(*[MOST] * 30_000)], [flats(*[MOST] * 30_000)]),
    "of packets alone": (dict(header=BARE, frequency=10**6), [packet(1000, *[bare()] * 9), packet(2000, bare())]),
    "all the way round": (
        dict(header=LARGE),
        [packet(1, extended(1), extended(2), extended(MOST), low(3), extended(MOST), low(5), low(6))],
        [packet(1, extended(1), low(2), low(3), low(4), low(5), low(6), low(7))],
    ),
    "set back by a field": (
        dict(),
        [packet(90, flat(90), sets(100, 5), flat(6), flat(7), flat(50), flat(110))],
        [flats(1, 5, 6, 7, 51, 91, 100, 120)],
    ),
}


# Those whose times go on behind the last nanosecond of 64 bits: there their streams end.
ENDS = {"sign", "sign by offset", "sign in microseconds", "beyond all nanoseconds", "many beyond all nanoseconds", "all the way round"}


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("case", CASES)
def test_each_event_comes_once_whatever_times_do(case, interpret, tmp_path):
    options, *streams = CASES[case]
    folder = write(tmp_path / "trace", *streams, **options)
    counts, read = batch_check(folder, interpret=interpret), read_check(folder)
    assert counts["events"] == counts["by_stream"] == read["events"]
    assert ("error" in counts) == ("error" in read) == (case in ENDS)
    assert case in ENDS or counts["by_part"] == counts["events"]


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("header, event", [(FLAT, flat), (LARGE, low), (LARGE, extended)], ids=["flat", "large", "extended"])
@pytest.mark.parametrize("frequency", [10**3, 10**9, 2_400_000_000], ids=["1 kHz", "1 GHz", "2.4 GHz"])
def test_rows_have_the_clocks_count(frequency, header, event, interpret, tmp_path):
    """Also where several counts are one nanosecond, or one count is many of them; an offset is no part of it."""
    streams = [[3, 4, 5, 5, 6, 7, 90, 91], [2, 3, 8, 2**32 - 1, 2**32, 2**32 + 1, 2**32 + 2**31]]
    packets = [[packet(times[0], *map(event, times)), packet(times[-1], event(times[-1]))] for times in streams]
    folder = write(tmp_path / "trace", *packets, header=header, frequency=frequency, offset=7 * frequency)
    expected = sum(sum(times) + times[-1] for times in streams)
    for options in ([], ["--some"]):
        counts = batch_check(*options, "--cycles", folder, interpret=interpret)
        assert (counts["events"], counts["cycles"]) == (["17"], [str(expected)])
    assert "cycles" not in batch_check(folder, interpret=interpret)


def busy_or_quiet(rng, backward):
    """Packets of a stream: many events or few, often at the same time, sometimes before the one before."""
    at, times, pace = 1000, [], rng.choice((0, 1, 30, 1000))
    for _ in range(rng.choice((0, 1, 20, 100, 700))):
        at += rng.choice((0, 0, 1, pace)) if rng.random() >= backward else -rng.randrange(100)
        times.append(max(at, 0))
    return [flats(*times[i : i + 90]) for i in range(0, len(times), 90)]


@pytest.mark.parametrize("backward", [0, 0.005, 0.05])
@pytest.mark.parametrize("count", [2, 40, 300])
def test_many_streams_are_merged_as_single_steps_do(count, backward, tmp_path):
    for seed in range(3):
        rng = random.Random(count + seed)
        folder = write(tmp_path / str(seed), *(busy_or_quiet(rng, backward) for _ in range(count)))
        counts, read = batch_check(*(["--whole"] if backward else []), folder), read_check(folder)
        assert counts["events"] == counts["by_stream"] == read["events"]
        assert backward or counts["by_part"] == counts["events"]
        assert int(counts["events"][0]) > count


def test_the_earliest_event_may_follow_one_that_set_the_clock_back(info, tmp_path):
    folder = write(tmp_path / "trace", [packet(100, sets(100, 5), flat(6), flat(50))])
    assert info(folder)["duration_ns"] == 100 - 6


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
def test_the_highest_id_is_one_like_others(interpret, tmp_path):
    folder = write(tmp_path / "trace", [packet(1, flat(1), sets(2, 2, number=MOST), flat(3))], last_id=MOST)
    assert batch_check(folder, interpret=interpret)["events"] == ["3"]
