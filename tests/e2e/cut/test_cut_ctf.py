# SPDX-License-Identifier: Apache-2.0
"""krait cut of other tracers' traces: the part has the events of the range and no others, in the same format."""

import random
import re
import shutil
import subprocess

import pytest

import large
from cat_ranges import seconds, text_lines, time_of
from corpus import CORPUS, UTC, cat_bytes, corpus_rows
from random_trace import Trace

# What cannot be trimmed, as krait says it.
WHOLE = ("with events before the range", "copied from the beginning", "copied whole")


def lines_of(krait, trace, *options):
    """Without the time since the line before, which the first of a part does not have. Packets' times decide the order of equal
    times: a part has not all packets."""
    return sorted(re.sub(r" \(\+\S+\)", "", line, count=1) for line in text_lines(cat_bytes(krait, "--clock-seconds", *options, trace)))


def cut(krait, trace, begin, end, to):
    """Nanoseconds after the trace's first event; returns what krait said."""
    words = [krait, "cut", trace, f"--from={begin}ns", f"--until={end}ns", "-o", to]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stderr


def check(krait, trace, tmp_path, some_ranges=((0, 30), (10, 50), (40, 60), (97, 99))):
    lines = lines_of(krait, trace)
    times = sorted(time_of(line) for line in lines)
    for a, b in some_ranges:
        begin, end = times[len(times) * a // 100] - times[0], times[len(times) * b // 100] - times[0] + 1
        part = tmp_path / f"part{a}"
        said = cut(krait, trace, begin, end, part)
        wanted = [line for line in lines if begin <= time_of(line) - times[0] < end]
        found = lines_of(krait, part)
        assert found == wanted or any(why in said for why in WHOLE) and set(wanted) <= set(found), said
        again = lines_of(krait, part, "--begin", seconds(times[0] + begin), "--end", seconds(times[0] + end - 1))
        assert again == wanted


@pytest.mark.parametrize("row", corpus_rows())
def test_parts_of_traces_of_others_have_the_events_of_the_range(krait, row, tmp_path):
    trace = CORPUS / row[0]
    whole = cat_bytes(krait, "--clock-seconds", trace)
    times = [line for line in text_lines(whole) if line.startswith("[")]
    if whole.returncode or not times or time_of(times[0]) < 0:
        pytest.skip("damaged, or without times after the epoch")
    check(krait, trace, tmp_path)


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 40))])
def test_parts_of_any_layout_have_the_events_of_the_range(krait, tmp_path, seed):
    trace = Trace(random.Random(seed), ctf2=seed % 2 == 1).write(tmp_path / "trace")
    check(krait, trace, tmp_path)


def test_packets_are_trimmed_and_babeltrace2_agrees(krait, tmp_path):
    trace = large.make(tmp_path / "trace", streams=2, count=6, size=4096)
    said = cut(krait, trace, 3 * large.PACKET_NS + 9, 4 * large.PACKET_NS + 1, tmp_path / "part")
    assert "warning" not in said
    if not shutil.which("babeltrace2"):
        pytest.skip("no babeltrace2")
    run = subprocess.run(["babeltrace2", tmp_path / "part"], capture_output=True, env=UTC, timeout=60)
    assert run.returncode == 0 and not run.stderr, run.stderr
    assert run.stdout == cat_bytes(krait, tmp_path / "part").stdout and run.stdout


def test_folders_below_keep_their_places(krait, tmp_path):
    session = tmp_path / "session"
    large.make(session / "kernel", streams=1, count=3, size=4096)
    cut(krait, session, large.PACKET_NS, 2 * large.PACKET_NS, tmp_path / "part")
    assert (tmp_path / "part" / "kernel" / "metadata").read_bytes() == (session / "kernel" / "metadata").read_bytes()


def test_damage_is_said_and_what_is_whole_is_copied(krait, tmp_path):
    trace = large.make(tmp_path / "trace", streams=1, count=3, size=4096)
    path = trace / "s0"
    path.write_bytes(path.read_bytes()[: 2 * 4096 + 300])
    run = subprocess.run([krait, "cut", trace, "--from", "0", "-o", tmp_path / "part"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1 and "the packet is cut" in run.stderr
    whole, part = cat_bytes(krait, trace), cat_bytes(krait, tmp_path / "part")
    assert part.returncode == 0 and part.stdout == whole.stdout
