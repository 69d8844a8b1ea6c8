# SPDX-License-Identifier: Apache-2.0
"""Traces with damage anywhere: parts of a stream and of its time have the events, the losses and the end of the whole, once the
reader has checked the traces, and so has what comes behind a time that is sought. tests/batch_check.c and tests/seek_check.c compare
them; here are the traces."""

import random

import pytest

from corpus import cat_bytes
from ctf2_made import lossy
from packets_made import BARE, FLAT, LARGE, bare, extended, flat, low, packet, write
from random_trace import Trace
from read_checks import EXAMPLES, batch_check, run, seek_check

FORMS = {
    "flat": (FLAT, flat),
    "large": (LARGE, low),
    "large, extended": (LARGE, extended),
    "without times": (BARE, lambda time: bare()),
}


def stream(dice, form):
    """Packets of events; times may go backward within one."""
    at, packets = 1000, []
    for _ in range(dice.randint(1, 12)):
        begin, times = at, []
        for _ in range(dice.randint(0, 9)):
            at += dice.randrange(30)
            times.append(at)
        if FORMS[form][0] == FLAT and len(times) > 2 and dice.random() < 0.1:
            times[1], times[2] = times[2], times[1]
        packets.append(packet(begin, *map(FORMS[form][1], times)))
    return packets


def damage(folder, dice):
    """A few bytes of ids, sizes, times, or numbers that harm nothing; or the file's end is missing."""
    for file in sorted(path for path in folder.iterdir() if path.name != "metadata"):
        data = bytearray(file.read_bytes())
        for _ in range(dice.randint(0, 3) if data else 0):
            data[dice.randrange(len(data))] = dice.choice([0, 1, 3, 0x7F, 0xFF, dice.randrange(256)])
        file.write_bytes(data[: max(0, len(data) - dice.randint(1, 9))] if dice.random() < 0.1 else data)


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("form", FORMS)
def test_parts_of_damaged_streams_sum_to_the_whole(form, interpret, tmp_path):
    damaged = 0
    for seed in range(40):
        dice = random.Random(seed)
        streams = [stream(dice, form) for _ in range(dice.randint(1, 3))]
        folder = write(tmp_path / str(seed), *streams, header=FORMS[form][0])
        damage(folder, dice)
        damaged += "error" in batch_check("--whole", folder, interpret=interpret)
    assert 10 < damaged < 40


@pytest.mark.parametrize("form", FORMS)
def test_seeking_finds_what_is_whole_of_damaged_streams(form, tmp_path):
    seeks = 0
    for seed in range(40):
        dice = random.Random(seed)
        streams = [stream(dice, form) for _ in range(dice.randint(1, 3))]
        folder = write(tmp_path / str(seed), *streams, header=FORMS[form][0])
        damage(folder, dice)
        seeks += int(seek_check(folder)["seeks"][0])
    assert seeks >= 40 * 36


def test_seeking_tells_the_losses_from_there_on(tmp_path):
    """Also from the step that told one, whose event waits."""
    for seed in range(20):
        dice = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        at, lost, number, packets = 1, 0, 1, []
        for _ in range(dice.randint(1, 9)):
            packets.append((at, at + 10, lost, number))
            at, lost, number = at + dice.randrange(10, 30), lost + dice.randrange(3), number + dice.randint(1, 3)
        lossy(folder, packets)
        seek_check(folder)


@pytest.mark.parametrize("ctf2", [False, True], ids=["ctf1", "ctf2"])
def test_parts_of_damaged_random_traces_sum_to_the_whole(ctf2, tmp_path):
    for seed in range(40):
        dice = random.Random(seed)
        folder = Trace(dice, ctf2).write(tmp_path / str(seed))
        seek_check(folder)
        damage(folder, dice)
        batch_check("--whole", folder)
        seek_check(folder)


def test_threads_sum_of_a_damaged_stream_what_one_cursor_reads(krait, tmp_path):
    """Of ten packets the third has an event of no class: two packets and one event are whole."""
    packets = [packet(100 * i, *[flat(100 * i + k) for k in range(4)]) for i in range(1, 11)]
    packets[2] = packet(300, flat(300), b"\x09" + flat(301)[1:], flat(302), flat(303))
    folder = write(tmp_path / "trace", packets)
    whole = cat_bytes(krait, folder)
    assert (whole.returncode, whole.stdout.count(b"\n")) == (1, 9)
    for threads in (1, 2, 5):
        done = run(EXAMPLES / "parallel_sum", threads, "n", folder)
        assert (done.returncode, done.stdout) == (1, "events 9\nsum 63\nlost 0\n")
    assert batch_check(folder)["events"] == ["9"]
