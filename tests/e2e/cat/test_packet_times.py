# SPDX-License-Identifier: Apache-2.0
"""Packets whose begins and ends contradict their events: babeltrace2 2.1 merges begins and ends of packets by time as it
does events, so that an early event waits behind its packet's late begin. krait cat's order is the same; the C interface goes
by the events' own times."""

import random
import re
import struct

import pytest

from corpus import cat_bytes
from read_checks import batch_check, read_check

METADATA = """/* CTF 1.8 */
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 64; align = 8; }} := u64;
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
trace {{ major = 1; minor = 8; byte_order = le; uuid = "{uuid}"; }};
env {{ {env} }};
clock {{ name = c; freq = 1000000000; offset_s = 1000; absolute = true; }};
stream {{ packet.context := struct {{ u64 content_size; u64 packet_size; time timestamp_begin; time timestamp_end; }};
  event.header := struct {{ u16 id; time timestamp; }}; }};
event {{ name = e; id = 1; fields := struct {{ u16 n; }}; }};
"""


def write(folder, *streams, env="", uuid="2a6422d0-6cee-11e0-8c08-cb07d7b3a564"):
    """Each stream is a list of packets: (begin, end, [(time, n)])."""
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(METADATA.format(env=env, uuid=uuid))
    for i, packets in enumerate(streams):
        with open(folder / f"s{i:02}", "wb") as file:
            for begin, end, events in packets:
                body = b"".join(struct.pack("<HQH", 1, time, n) for time, n in events)
                size = (32 + len(body)) * 8
                file.write(struct.pack("<QQQQ", size, size, begin, end) + body)
    return folder


def messages(packets, begins_late):
    """What is merged of a stream: (time, n), n None for the begin and the end of a packet."""
    for begin, end, events in packets:
        yield (min([begin, *(time for time, _ in events[:1])]) if begins_late else begin), None
        yield from events
        yield end, None


def merged(streams, begins_late=False):
    """The events' numbers, as a merge of all messages hands them out."""
    rest = [list(messages(packets, begins_late)) for packets in streams]
    while any(rest):
        _, first = min((stream[0][0], i) for i, stream in enumerate(rest) if stream)
        number = rest[first].pop(0)[1]
        if number is not None:
            yield number


def shown(krait, *args):
    done = cat_bytes(krait, *args)
    assert done.returncode == 0, done.stderr.decode()
    return [int(n) for n in re.findall(rb"n = (\d+)", done.stdout)]


CASES = {
    "an end behind the next begin": ([(0, 60, [(10, 1)]), (20, 90, [(20, 2), (70, 3)])], [(0, 99, [(15, 4), (30, 5), (59, 6), (60, 7), (61, 8)])]),
    "a begin behind its first event": ([(40, 90, [(10, 1), (20, 2), (50, 3)])], [(0, 99, [(15, 4), (40, 5), (45, 6)])]),
    "an empty packet between": ([(0, 9, [(5, 1)]), (30, 50, []), (10, 90, [(20, 2)])], [(0, 99, [(6, 3), (29, 4), (31, 5), (49, 6), (51, 7)])]),
    "both wait": ([(30, 30, [(1, 1), (2, 2)])], [(30, 30, [(3, 3), (31, 4)])], [(29, 99, [(4, 5), (30, 6), (32, 7)])]),
    "an end of 0, as a crash leaves it": ([(5, 0, [(5, 1)]), (20, 0, [(20, 2)])], [(0, 0, [(7, 3), (21, 4)])]),
}


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("case", CASES)
def test_events_wait_behind_what_their_packets_say(krait, tmp_path, case, interpret):
    folder = write(tmp_path / "trace", *CASES[case])
    assert shown(krait, folder) == list(merged(CASES[case]))
    counts = batch_check(folder, interpret=interpret)
    assert counts["events"] == counts["by_stream"] == read_check(folder)["events"]


@pytest.mark.parametrize(
    ("version", "late"), [((1, 9, 9), True), ((2, 2, 5), True), ((2, 3, 0), True), ((2, 3, 1), False), ((2, 4, 0), False), ((3, 0, 0), False)]
)
def test_begins_of_old_barectf_are_not_believed(krait, tmp_path, version, late):
    env = 'tracer_name = "barectf"; tracer_major = {}; tracer_minor = {}; tracer_patch = {};'.format(*version)
    streams = CASES["a begin behind its first event"]
    assert shown(krait, write(tmp_path / "trace", *streams, env=env)) == list(merged(streams, begins_late=late))


def contradicting(rng, numbers):
    """Packets of events in order, whose begins and ends are where they like: no packet begins before the last event of another."""
    at, packets = rng.randrange(50), []
    for _ in range(rng.randrange(1, 40)):
        at += rng.randrange(3)
        begin, times = at, []
        for _ in range(rng.choice((0, 1, 5, 40))):
            at += rng.randrange(12)
            times.append(at)
        begin = (times or [begin])[0] + rng.choice((0, 0, 9, 30))
        packets.append((begin, max(begin, at + rng.choice((-20, 0, 0, 9, 60))), [(time, next(numbers)) for time in times]))
    return packets


@pytest.mark.parametrize("count", [2, 3, 40])
def test_packets_that_contradict_their_events_are_all_read(krait, tmp_path, count):
    for seed in range(6):
        rng, numbers = random.Random(seed * 100 + count), iter(range(1 << 16))
        streams = [contradicting(rng, numbers) for _ in range(count)]
        folder = write(tmp_path / str(seed), *streams)
        assert shown(krait, folder) == list(merged(streams))
        counts = batch_check(folder)
        assert counts["events"] == counts["by_stream"] == counts["by_part"] == read_check(folder)["events"]


@pytest.mark.parametrize("seed", range(12))
def test_a_range_has_the_order_of_the_whole(krait, tmp_path, seed):
    rng, numbers = random.Random(seed), iter(range(1 << 16))
    streams = [contradicting(rng, numbers) for _ in range(3)]
    folder = write(tmp_path / "trace", *streams)
    times = {n: time for packets in streams for _, _, events in packets for time, n in events}
    begin = rng.randrange(max(times.values()))
    end = begin + rng.randrange(max(times.values()))
    wanted = [n for n in merged(streams) if begin <= times[n] <= end]
    assert shown(krait, f"--begin=1000.{begin:09}", f"--end=1000.{end:09}", folder) == wanted


def test_equal_times_go_by_the_uuids_of_traces(krait, tmp_path):
    """As babeltrace2 2.0 has it; 2.1 has the names first: the host and the way to the trace's folder."""
    for n, (way, host, first) in enumerate([("a", "z", "5"), ("b", "y", "9"), ("c/2", "y", "5"), ("c/10", "x", "5"), ("d", "", "1")]):
        folder = tmp_path / "all" / way
        write(folder, [(0, 9, [(5, n)])], env=f'hostname = "{host}";', uuid=f"{first}a6422d0-6cee-11e0-8c08-cb07d7b3a5{n:02}")
    assert shown(krait, tmp_path / "all") == [4, 0, 2, 3, 1]
    alone = [write(tmp_path / way, [(0, 9, [(5, n)])], uuid=f"{9 - n}a6422d0-6cee-11e0-8c08-cb07d7b3a564") for n, way in enumerate("xyz")]
    assert shown(krait, *alone) == [2, 1, 0]


@pytest.mark.parametrize(("args", "known"), [((), b"(+?.?????????)"), (("--clock-cycles",), b"(+????????????)")])
def test_one_tick_back_is_shown_as_babeltrace2_shows_it(krait, tmp_path, args, known):
    folder = write(tmp_path / "trace", [(0, 9, [(5, 1), (4, 2), (6, 3)])])
    lines = cat_bytes(krait, *args, folder).stdout.splitlines()
    assert [known in line for line in lines] == [True, True, False]
