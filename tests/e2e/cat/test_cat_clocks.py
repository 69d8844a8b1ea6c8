# SPDX-License-Identifier: Apache-2.0
"""Clocks: traces whose times cannot be compared are not merged, by babeltrace2 2.1's rule; it is asked too, where it is."""

import json
import os
import struct
import subprocess

import pytest

from conftest import BUILD, found_pythons
from corpus import UTC, cat_bytes
from ctf2_made import PREAMBLE, event, sequence, struct_of, u

UUIDS = ["2a6422d0-6cee-11e0-8c08-cb07d7b3a564", "3a6422d0-6cee-11e0-8c08-cb07d7b3a564"]
SECOND = 1_000_000_000


def write(folder, metadata, *streams):
    folder.mkdir()
    (folder / "metadata").write_bytes(metadata)
    for i, data in enumerate(streams):
        (folder / f"s{i}").write_bytes(data)
    return folder


def packet(*times):
    """All of a stream, with its packet's begin and end."""
    return struct.pack("<QQ", times[0], times[-1]) + b"".join(struct.pack("<QB", t, i) for i, t in enumerate(times))


def tsdl(clock, env=""):
    """CTF 1.8: packets and events in one clock, or in none."""
    begin, end, time = ("timestamp_begin", "timestamp_end", "timestamp") if clock else "bet"
    of = f"integer {{ size = 64; align = 8; {'map = clock.c.value; ' if clock else ''}}}"
    block = f"clock {{ name = c; freq = 1000000000; {clock} }};" if clock else ""
    return (f"/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }}; {env} {block}"
            f"stream {{ packet.context := struct {{ {of} {begin}; {of} {end}; }}; event.header := struct {{ {of} {time}; }}; }};"
            "event { name = e; fields := struct { integer { size = 8; } x; }; };").encode()


def ctf2(clock):
    """The same in CTF 2; `clock` has what is beside its id and frequency."""
    def time(role):
        return u(64, roles=[role]) if clock is not None else u(64)

    stream = {
        "type": "data-stream-class",
        "packet-context-field-class": struct_of(b=time("default-clock-timestamp"), e=time("packet-end-default-clock-timestamp")),
        "event-record-header-field-class": struct_of(t=time("default-clock-timestamp")),
    }
    clocks = [{"type": "clock-class", "id": "c", "frequency": SECOND} | clock] if clock is not None else []
    named = stream | {"default-clock-class-id": "c"} if clocks else stream
    return sequence(PREAMBLE, *clocks, named, event(struct_of(x=u(8))))


def theirs(*traces):
    """What babeltrace2 2.1 makes of them; None where there is none."""
    tool = next((p.prefix + ("babeltrace2",) for p in found_pythons()[0] if p.prefix), None)
    return tool and subprocess.run([*tool, *traces], capture_output=True, env=UTC, timeout=60)


def checks(trace, interpret=""):
    env = os.environ | {"KRAIT_READ_INTERPRET": interpret}
    return subprocess.run([BUILD / "tests" / "batch_check", trace], capture_output=True, text=True, check=True, env=env).stdout


def named(**more):
    return {"namespace": "n", "name": "a", "uid": "1"} | more


LTTNG = 'env { tracer_name = "lttng-ust"; };'
PLAIN, EPOCH, NONE = tsdl("offset_s = 0;"), tsdl("absolute = true;"), tsdl("")
A, B = (tsdl(f'uuid = "{uuid}";') for uuid in UUIDS)

TOGETHER = [
    (EPOCH, EPOCH),
    (EPOCH, ctf2({"origin": "unix-epoch"})),
    (NONE, NONE),
    (NONE, ctf2(None)),
    (A, A),
    (A, tsdl(f'uuid = "{UUIDS[0].upper()}"; description = "x";')),
    (EPOCH, tsdl("offset_s = 0;", LTTNG).replace(b" c;", b" monotonic;").replace(b".c.", b".monotonic.")),
    (ctf2(named()), ctf2(named())),
    (ctf2({"origin": named()}), ctf2({"origin": named()})),
    (ctf2({"origin": named()} | named()), ctf2({"origin": named()} | named(uid="2"))),
]


@pytest.mark.parametrize("pair", TOGETHER, ids=range(len(TOGETHER)))
def test_traces_of_one_origin_are_merged(krait, tmp_path, pair):
    traces = [write(tmp_path / str(i), metadata, packet(i, i + 2)) for i, metadata in enumerate(pair)]
    run, reference = cat_bytes(krait, *traces), theirs(*traces)
    assert run.returncode == 0, run.stderr.decode()
    assert run.stdout.count(b"\n") == 4
    assert reference is None or (reference.returncode, reference.stdout) == (0, run.stdout)


APART = [
    (PLAIN, PLAIN, "of a clock without origin, uuid or uid, another"),
    (PLAIN, EPOCH, "count from the epoch"),
    (PLAIN, A, "are of a clock with a uuid or uid"),
    (PLAIN, NONE, "have no clock"),
    (EPOCH, A, "count from the epoch"),
    (EPOCH, NONE, "have no clock"),
    (A, B, "are of a clock with a uuid or uid, another"),
    (A, A.replace(b" c;", b" d;").replace(b".c.", b".d."), "are of a clock with a uuid or uid, another"),
    (ctf2({}), ctf2({}), "of a clock without origin, uuid or uid, another"),
    (ctf2({"name": "a"}), ctf2({"name": "a"}), "of a clock without origin, uuid or uid, another"),
    (ctf2({"uid": "1"}), ctf2({"uid": "1"}), "of a clock without origin, uuid or uid, another"),
    (ctf2(named()), ctf2(named(uid="2")), "are of a clock with a uuid or uid, another"),
    (ctf2(named()), ctf2({"name": "a", "uid": "1"}), "are of a clock with a uuid or uid, another"),
    (ctf2({"origin": "unix-epoch"}), ctf2({"origin": named()}), "count from an origin of their tracer's"),
    (ctf2({"origin": named()}), ctf2({"origin": named(namespace="m")}), "count from an origin of their tracer's, another"),
    (ctf2({"origin": named()}), ctf2(named()), "are of a clock with a uuid or uid"),
    (ctf2({}), ctf2(None), "have no clock"),
]


@pytest.mark.parametrize("pair", APART, ids=range(len(APART)))
@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]], ids=["text", "json", "csv"])
def test_traces_whose_times_cannot_be_compared_are_refused(krait, tmp_path, pair, form):
    traces = [write(tmp_path / str(i), metadata, packet(i, i + 2)) for i, metadata in enumerate(pair[:2])]
    run = cat_bytes(krait, *form, *traces)
    assert (run.returncode, run.stdout) == (1, b"")
    said = run.stderr.decode()
    assert pair[2] in said and said.endswith("they cannot be compared; print the traces one by one\n")
    assert all(str(trace / "s0") in said for trace in traces)
    assert form or (reference := theirs(*traces)) is None or (reference.returncode, reference.stdout) == (1, b"")
    for trace in traces:
        assert cat_bytes(krait, *form, trace).returncode == 0
    facts = subprocess.run([krait, "info", "--json", *traces], capture_output=True, env=UTC, timeout=60)
    assert facts.returncode == 0 and json.loads(facts.stdout)


def test_two_clocks_of_one_trace_are_compared_too(krait, tmp_path):
    fields = "fields := struct { integer { size = 8; } x; };"
    header = "packet.header := struct { integer { size = 64; align = 8; } stream_id; };"
    metadata = f"/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; {header} }};"
    for i, clock in enumerate("cd"):
        of = f"integer {{ size = 64; align = 8; map = clock.{clock}.value; }}"
        context = f"packet.context := struct {{ {of} timestamp_begin; {of} timestamp_end; }};"
        metadata += (f"clock {{ name = {clock}; }}; stream {{ id = {i}; {context} event.header := struct {{ {of} timestamp; }}; }};"
                     f"event {{ name = e; stream_id = {i}; {fields} }};")
    trace = write(tmp_path / "t", metadata.encode(), *(struct.pack("<Q", i) + packet(i, i + 2) for i in (0, 1)))
    run, reference = cat_bytes(krait, trace), theirs(trace)
    assert (run.returncode, run.stdout) == (1, b"")
    assert run.stderr.endswith(b"they cannot be compared\n")
    assert reference is None or (reference.returncode, reference.stdout) == (1, b"")


# -- where time ends --


def at(clock=None):
    """CTF 2's metadata, of a clock of that offset or frequency."""
    return ctf2({"origin": "unix-epoch"} | (clock or {}))


def offset(seconds, cycles=0):
    return {"offset-from-origin": {"seconds": seconds, "cycles": cycles}}


LAST = 2**63 - 1
BEYOND = "its time from the clock's origin is beyond 64 bits of nanoseconds"

ENDS = [
    (at(), [1, 2**63], 1),
    (at(), [1, LAST - 1, 2**63], 2),
    (at(), [1, 2**64 - 1], 1),
    (at(), [2**63, 2**63 + 5], 0),
    (at(offset(9223372030)), [5, 6 * SECOND, 7 * SECOND], 2),
    (at(offset(9223372030, 5)), [5, 6 * SECOND, 2**63], 2),
    (at({"frequency": 1}), [1, 9223372030, 9223372037], 2),
    (at({"frequency": 1000}), [1, 9223372036000, 9223372036855], 2),
    (at({"frequency": 1000000}), [1, 9223372036000000, 9223372036855000], 2),
]


@pytest.mark.parametrize("metadata, times, good", ENDS, ids=range(len(ENDS)))
def test_events_are_printed_up_to_where_time_ends(krait, tmp_path, metadata, times, good):
    trace = write(tmp_path / "t", metadata, struct.pack("<QQ", times[0], times[0]) + packet(*times)[16:])
    run, reference = cat_bytes(krait, trace), theirs(trace)
    assert run.returncode == 1
    assert run.stderr.decode() == f"krait cat: {trace}/s0: byte {9 * good + 16 if good else 0}, in the packet at byte 0: {BEYOND}\n"
    assert run.stdout.count(b"\n") == good
    assert reference is None or (reference.returncode, reference.stdout) == (1, run.stdout)
    for args in (["cat", "--json"], ["cat", "--csv"], ["cat", "--filter=x >= 0"], ["info"]):
        other = subprocess.run([krait, *args, trace], capture_output=True, env=UTC, timeout=60)
        assert other.returncode == 1 and BEYOND in other.stderr.decode(), args
    assert f"events {good}" in checks(trace) == checks(trace, interpret="1")


def test_a_packet_that_ends_beyond_time_is_told_behind_its_events(krait, tmp_path):
    trace = write(tmp_path / "t", at(), struct.pack("<QQ", 1, 2**63) + packet(1, 2, 3)[16:])
    run, reference = cat_bytes(krait, trace), theirs(trace)
    assert (run.returncode, run.stdout.count(b"\n")) == (1, 3)
    assert BEYOND in run.stderr.decode()
    assert reference is None or (reference.returncode, reference.stdout) == (1, run.stdout)


def tsdl_offset(seconds, cycles, frequency):
    return tsdl(f"offset_s = {seconds}; offset = {cycles}; absolute = true;").replace(b"freq = 1000000000", b"freq = %d" % frequency)


OFFSETS_BEYOND = {
    "nanoseconds for seconds": at(offset(1351530929945824323)),
    "a second after time": at(offset(9223372037)),
    "a second before time": at(offset(-9223372038)),
    "the last second of 64 bits": at(offset(2**63 - 1)),
    "the first second of 64 bits": at(offset(-(2**63))),
    "seconds of CTF 1.8": tsdl_offset(100000000000, 0, 10**9),
    "cycles of a slow clock": tsdl_offset(0, 2**64 - 1, 1000),
    "cycles of a slow clock of CTF 2": at({"frequency": 1000} | offset(0, 999) | {"offset-from-origin": {"seconds": 2**55, "cycles": 999}}),
}


@pytest.mark.parametrize("metadata", OFFSETS_BEYOND.values(), ids=OFFSETS_BEYOND)
def test_events_of_a_clock_whose_offset_is_beyond_time_are_refused(krait, tmp_path, metadata):
    """A time that is printed is true, or none is."""
    trace = write(tmp_path / "t", metadata, packet(0, 2))
    reference = theirs(trace)
    assert reference is None or (reference.returncode, reference.stdout) == (1, b"")
    for args in (["cat"], ["cat", "--clock-cycles"], ["cat", "--json"], ["cat", "--csv"], ["cat", "--filter=x >= 0"], ["info"]):
        run = subprocess.run([krait, *args, trace], capture_output=True, env=UTC, timeout=60)
        assert run.returncode == 1 and BEYOND in run.stderr.decode(), args
        assert args[0] == "info" or args == ["cat", "--csv"] or run.stdout == b"", args
    drawn = subprocess.run([krait, "view", "--svg", tmp_path / "x.svg", trace], capture_output=True, timeout=60)
    assert drawn.returncode == 1 and BEYOND in drawn.stderr.decode()
    assert "events 0" in checks(trace) == checks(trace, interpret="1")


def test_a_clock_whose_offset_is_beyond_time_harms_no_packet_that_says_no_time(krait, tmp_path):
    """There the event's own time is the first that is beyond."""
    metadata = tsdl_offset(100000000000, 0, 10**9).replace(b"packet.context", b"event.context").replace(
        b"event.context := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin; integer { size = 64; align = 8; map = clock.c.value; } timestamp_end; };", b"")
    trace = write(tmp_path / "t", metadata, struct.pack("<QB", 1, 0))
    run = cat_bytes(krait, trace)
    assert (run.returncode, run.stdout) == (1, b"") and BEYOND in run.stderr.decode()
    (trace / "s0").write_bytes(b"")
    assert cat_bytes(krait, trace).returncode == 0
