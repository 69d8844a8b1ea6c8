# SPDX-License-Identifier: Apache-2.0
"""CTF 2 traces are read: every field class, role and location, and what is wrong is refused with its place.

The traces are made here, so that each shows one thing; test_cat.py compares with the text of another reader.
"""

import json
import os
import struct
import subprocess

import pytest

from conftest import BUILD, found_pythons
from ctf2_made import PREAMBLE, event, lossy, sequence, struct_of, u

UTC = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}


def s(bits, **more):
    return u(bits, **more) | {"type": "fixed-length-signed-integer"}


def fixed(kind, bits, **more):
    return {"type": f"fixed-length-{kind}", "length": bits, "byte-order": "little-endian"} | more


def path(*names, origin=None):
    return {"path": list(names)} | ({"origin": origin} if origin else {})


class Trace:
    def __init__(self, krait, folder):
        self.krait, self.folder = krait, folder

    def cat(self, metadata, *streams, options=()):
        self.folder.mkdir(exist_ok=True)
        (self.folder / "metadata").write_bytes(metadata)
        for i, data in enumerate(streams):
            (self.folder / f"s{i}").write_bytes(data)
        args = [self.krait, "cat", *options, str(self.folder)]
        return subprocess.run(args, capture_output=True, env=UTC, timeout=60)

    def text(self, metadata, *streams, options=()):
        run = self.cat(metadata, *streams, options=options)
        assert run.returncode == 0, run.stderr.decode()
        # The public interface reads the same events, and each value by its handle as by stepping to it.
        for tool in ("read_check", "batch_check"):
            check = subprocess.run([BUILD / "tests" / tool, self.folder], capture_output=True, text=True, timeout=60)
            assert check.returncode == 0, check.stderr
            assert check.stdout.splitlines()[0] == f"events {len(run.stdout.splitlines())}"
        return run.stdout.decode()

    def payload(self, payload, data):
        """What is printed between the event's braces."""
        text = self.text(sequence(PREAMBLE, {"type": "data-stream-class"}, event(payload)), data)
        assert text.startswith("e: { ") and text.endswith(" }\n") and text.count("\n") == 1
        return text[5:-3]

    def refused(self, metadata, why, data=b""):
        run = self.cat(metadata, data)
        assert run.returncode == 1
        assert run.stdout == b""
        assert why in run.stderr.decode(), run.stderr.decode()

    def payload_refused(self, payload, why, data=b""):
        self.refused(sequence(PREAMBLE, {"type": "data-stream-class"}, event(payload)), why, data)


@pytest.fixture
def trace(krait, tmp_path):
    return Trace(krait, tmp_path / "trace")


# -- a trace as LTTng makes it --

COMPACT = struct_of(
    id=u(5, alignment=1, roles=["event-record-class-id"], mappings={"compact": [[0, 30]], "extended": [[31, 31]]}),
    v={
        "type": "variant",
        "selector-field-location": path("id", origin="event-record-header"),
        "options": [
            {
                "name": "compact",
                "selector-field-ranges": [[0, 30]],
                "field-class": struct_of(timestamp=u(27, alignment=1, roles=["default-clock-timestamp"])),
            },
            {
                "name": "extended",
                "selector-field-ranges": [[31, 31]],
                "field-class": struct_of(
                    id=u(32, roles=["event-record-class-id"]), timestamp=u(64, roles=["default-clock-timestamp"])
                ),
            },
        ],
    },
) | {"minimum-alignment": 8}

LTTNG = [
    PREAMBLE | {"uuid": list(range(16))},
    {
        "type": "trace-class",
        "namespace": "lttng.org,2009",
        "name": "auto",
        "uid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "environment": {"hostname": "box", "domain": "ust", "tracer_major": 2, "vpid": -3},
        "packet-header-field-class": struct_of(
            magic=u(32, roles=["packet-magic-number"]),
            uuid={"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]},
            stream_id=u(32, roles=["data-stream-class-id"]),
            stream_instance_id=u(64, roles=["data-stream-id"]),
        ),
    },
    {
        "type": "clock-class",
        "id": "monotonic",
        "frequency": 1000000000,
        "origin": "unix-epoch",
        "offset-from-origin": {"seconds": 1000, "cycles": 5},
        "precision": 1,
    },
    {
        "type": "data-stream-class",
        "id": 7,
        "default-clock-class-id": "monotonic",
        "packet-context-field-class": struct_of(
            timestamp_begin=u(64, roles=["default-clock-timestamp"]),
            timestamp_end=u(64, roles=["packet-end-default-clock-timestamp"]),
            content_size=u(64, roles=["packet-content-length"]),
            packet_size=u(64, roles=["packet-total-length"]),
            packet_seq_num=u(64, roles=["packet-sequence-number"]),
            events_discarded=u(64, roles=["discarded-event-record-counter-snapshot"]),
            cpu_id=u(32),
        ),
        "event-record-header-field-class": COMPACT,
        "event-record-common-context-field-class": struct_of(vpid=s(32)),
    },
    event(
        struct_of(n=u(32), text={"type": "null-terminated-string"}),
        **{"id": 2, "data-stream-class-id": 7, "name": "tp:two", "attributes": {"lttng.org,2009": {"log-level": "debug:line"}}},
    ),
    event(struct_of(), **{"id": 40, "data-stream-class-id": 7, "name": "tp:forty", "attributes": {"lttng.org,2009": {"log-level": "info", "emf-uri": "http://x"}}}),
]


def packet(seq, discarded, begin, end, body, stream=1):
    head = struct.pack("<I16sIQ", 0xC1FC1FC1, bytes(range(16)), 7, stream)
    size = (len(head) + 52 + len(body)) * 8
    return head + struct.pack("<QQQQQQI", begin, end, size, size + 64, seq, discarded, 3) + body + bytes(8)


def lttng_body(base):
    two = struct.pack("<Ii", 2 | (base & 0x7FFFFFF) << 5, -9) + struct.pack("<I", 77) + b"hi\0"
    return two + struct.pack("<BIQi", 31, 40, base + 10, 8)


def test_a_trace_as_lttng_makes_it_prints_like_one_of_ctf_1(trace):
    data = packet(0, 0, 100, 200, lttng_body(150)) + packet(3, 4, 300, 400, lttng_body(350))
    run = trace.cat(sequence(*LTTNG), data, options=["--fields=all", "--clock-seconds"])
    assert run.returncode == 0, run.stderr.decode()
    assert run.stdout.decode() == (
        "[1000.000000155] (+?.?????????) boxbox:ust:(-3):TRACE_DEBUG_LINE (13) tp:two: { cpu_id = 3 }, { vpid = -9 }, "
        '{ n = 77, text = "hi" }\n'
        "[1000.000000165] (+0.000000010) boxbox:ust:(-3):TRACE_INFO (6):http://x tp:forty: { cpu_id = 3 }, { vpid = 8 }, { }\n"
        "[1000.000000355] (+0.000000190) boxbox:ust:(-3):TRACE_DEBUG_LINE (13) tp:two: { cpu_id = 3 }, { vpid = -9 }, "
        '{ n = 77, text = "hi" }\n'
        "[1000.000000365] (+0.000000010) boxbox:ust:(-3):TRACE_INFO (6):http://x tp:forty: { cpu_id = 3 }, { vpid = 8 }, { }\n"
    )
    losses = run.stderr.decode()
    assert "discarded 4 events" in losses and "discarded 2 packets" in losses
    assert "stream class ID: 7, stream ID: 1" in losses
    assert '(UID: 00010203-0405-0607-0809-0a0b0c0d0e0f) within stream "' in losses


@pytest.mark.parametrize("level", [6, "loud", None, ["info"]])
def test_a_log_level_is_one_of_the_known_words(trace, level):
    said = event(struct_of(x=u(8))) | {"attributes": {"babeltrace.org,2020": {"log-level": level}}}
    metadata = sequence(PREAMBLE, {"type": "data-stream-class"}, said)
    assert trace.text(metadata, b"\x01", options=["--fields=all"]) == "e: { x = 1 }\n"


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("header", [37, 44])
def test_metadata_in_packets_is_read(trace, order, header):
    text, packets = sequence(*LTTNG), b""
    for at in range(0, len(text), 100):
        part = text[at : at + 100]
        sizes = ((header + len(part)) * 8, (header + len(part) + 5) * 8)
        head = struct.pack(order + "I16sIIIBBBBB", 0x75D11D57, bytes(16), 0, *sizes, 0, 0, 0, 2, 0)
        if header == 44:
            head += bytes(3) + struct.pack(order + "I", header * 8)
        packets += head + part + bytes(5)
    assert trace.text(packets, packet(0, 0, 1, 99, lttng_body(50))).count("\n") == 2


def test_several_files_of_one_stream_are_one(trace):
    one, two = packet(0, 0, 100, 200, lttng_body(150)), packet(1, 0, 300, 400, lttng_body(350))
    text = trace.text(sequence(*LTTNG), two, one, options=["--clock-seconds", "--no-delta"])
    assert [line.split("]")[0] for line in text.splitlines()] == [
        "[1000.000000155", "[1000.000000165", "[1000.000000355", "[1000.000000365"
    ]  # fmt: skip


def test_packets_of_another_stream_in_a_file_are_damage(trace):
    one, two = packet(0, 0, 100, 200, lttng_body(150)), packet(1, 0, 300, 400, lttng_body(350), stream=2)
    run = trace.cat(sequence(*LTTNG), one + two)
    assert (run.returncode, run.stdout.count(b"\n")) == (1, 2)
    assert f"/s0: byte {len(one)}: the packet is of another stream than the file's first\n" in run.stderr.decode()


def test_events_before_the_damage_are_printed(trace):
    data = packet(0, 0, 100, 200, lttng_body(150)) + packet(1, 0, 300, 400, lttng_body(350)[:-1])
    run = trace.cat(sequence(*LTTNG), data)
    assert run.returncode == 1
    assert run.stdout.count(b"\n") == 3
    assert b"/s0: byte " in run.stderr


# -- field classes --

UTF16 = "h\u00e9\U0001f40d?"

VALUES = [
    (fixed("bit-array", 12), b"\xbc\x0a", "0xABC"),
    (fixed("bit-map", 8, flags={"a": [[0, 3]]}), b"\x45", '0x45 { "a" }'),
    (fixed("bit-map", 8, flags={"a": [[0, 0]], "b": [[1, 2], [7, 7]]}), b"\x85", '0x85 { "a", "b" }'),
    (fixed("bit-map", 8, flags={"a": [[0, 0]]}), b"\x08", "0x8"),
    (fixed("bit-map", 8, flags={"z": [[0, 0]], "a": [[7, 7]], "m": [[1, 1]]}), b"\x83", '0x83 { "a", "m", "z" }'),
    (fixed("boolean", 8), b"\x02", "true"),
    (fixed("boolean", 8), b"\x00", "false"),
    (u(24), b"\x01\x02\x03", str(0x030201)),
    (u(64), b"\xff" * 8, "18446744073709551615"),
    (s(16, **{"byte-order": "big-endian"}), b"\xff\xfe", "-2"),
    (u(16, **{"preferred-display-base": 16}), b"\x01\xab", "0xAB01"),
    (u(16, **{"preferred-display-base": 8}), b"\x08\x00", "010"),
    (u(4, **{"preferred-display-base": 2}), b"\x05", "0b0101"),
    (u(8, **{"bit-order": "last-to-first"}), b"\x01", "128"),
    (u(8, **{"byte-order": "big-endian", "bit-order": "first-to-last"}), b"\x01", "128"),
    (u(8, mappings={"one": [[1, 1]], "few": [[2, 5], [9, 9]]}), b"\x09", '( "few" : container = 9 )'),
    (u(8, mappings={"low": [[0, 9]], "odd": [[1, 1], [3, 3]]}), b"\x03", '( { "low", "odd" } : container = 3 )'),
    (s(8, mappings={"neg": [[-9, -1]]}), b"\xfe", '( "neg" : container = -2 )'),
    (u(8, mappings={"one": [[1, 1]]}), b"\x09", "( <unknown> : container = 9 )"),
    (u(8, mappings={}), b"\x09", "9"),
    (fixed("floating-point-number", 32), struct.pack("<f", 1.5), "1.5"),
    (fixed("floating-point-number", 64, **{"byte-order": "big-endian"}), struct.pack(">d", -2e300), "-2e+300"),
    ({"type": "variable-length-unsigned-integer"}, b"\xb4\x07", str(0x3B4)),
    ({"type": "variable-length-unsigned-integer"}, b"\xff" * 9 + b"\x01", "18446744073709551615"),
    ({"type": "variable-length-unsigned-integer"}, b"\x80\x80\x00", "0"),
    ({"type": "variable-length-signed-integer"}, b"\x7f", "-1"),
    ({"type": "variable-length-signed-integer"}, b"\x80" * 9 + b"\x7f", "-9223372036854775808"),
    ({"type": "variable-length-signed-integer", "mappings": {"m": [[-5, -1]]}}, b"\x7e", '( "m" : container = -2 )'),
    ({"type": "null-terminated-string"}, b"a\"b\0", '"a\\"b"'),
    ({"type": "null-terminated-string", "encoding": "utf-16le"}, UTF16.encode("utf-16le") + b"\0\0", '"hé\U0001f40d\\?"'),
    ({"type": "null-terminated-string", "encoding": "utf-32be"}, UTF16.encode("utf-32be") + bytes(4), '"hé\U0001f40d\\?"'),
    ({"type": "null-terminated-string", "encoding": "utf-16be"}, b"\xff\xfe\0\0", '"\ufffe"'),
    ({"type": "static-length-string", "length": 6, "encoding": "utf-16be"}, b"\0a\0\0\xd8\x00", '"a"'),
    ({"type": "static-length-string", "length": 4}, b"ab\0c", '"ab"'),
    ({"type": "static-length-string", "length": 0}, b"", '""'),
    ({"type": "static-length-string", "length": 6, "encoding": "utf-16be"}, "aé\0".encode("utf-16be"), '"aé"'),
    ({"type": "static-length-blob", "length": 3, "media-type": "a/b"}, b"\x01\x02\xff", "{ 01 02 ff }"),
    ({"type": "static-length-array", "length": 2, "element-field-class": s(8)}, b"\x01\xff", "[ [0] = 1, [1] = -1 ]"),
    ({"type": "static-length-array", "length": 0, "element-field-class": s(8)}, b"", "[ ]"),
    (struct_of(a=u(8), b=struct_of()), b"\x07", "{ a = 7, b = { } }"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "data", "shown"), VALUES, ids=[f"{v[0]['type']}-{v[2][:20]}" for v in VALUES])
def test_a_field_prints_its_value(trace, field, data, shown):
    assert trace.payload(struct_of(before=u(8), x=field, after=u(8)), b"\x01" + data + b"\x63") == (
        f"before = 1, x = {shown}, after = 99"
    )


def test_alignment_is_of_the_field_and_of_what_holds_it(trace):
    inner = struct_of(x=u(8)) | {"minimum-alignment": 32}
    holder = {"type": "static-length-array", "length": 2, "minimum-alignment": 64, "element-field-class": inner}
    data = b"\x01" + b"\xee" * 7 + b"\x02\xee\xee\xee\x03\xee\x04\x00"
    assert trace.payload(struct_of(a=u(8), h=holder, c=u(16, alignment=16)), data) == (
        "a = 1, h = [ [0] = { x = 2 }, [1] = { x = 3 } ], c = 4"
    )


def test_an_alias_stands_for_its_field_class(trace):
    aliases = [
        {"type": "field-class-alias", "name": "byte", "field-class": u(8)},
        {"type": "field-class-alias", "name": "pair", "field-class": struct_of(a="byte", b="byte")},
    ]
    metadata = sequence(PREAMBLE, *aliases, {"type": "data-stream-class"}, event(struct_of(x="pair", y="byte")))
    assert trace.text(metadata, b"\x01\x02\x03") == "e: { x = { a = 1, b = 2 }, y = 3 }\n"


# -- lengths and selectors --


def sized(where, kind="dynamic-length-array", **more):
    return {"type": kind, "length-field-location": where} | more


def optional(selector, ranges=None, field=None):
    found = {"type": "optional", "selector-field-location": selector, "field-class": field or u(8)}
    return found | ({"selector-field-ranges": ranges} if ranges else {})


def variant(selector, *options):
    rows = [{"selector-field-ranges": ranges, "field-class": field} for ranges, field in options]
    return {"type": "variant", "selector-field-location": selector, "options": rows}


LOCATED = [
    (struct_of(n=u(8), x=sized(path("n"), **{"element-field-class": u(8)})), b"\x02\x05\x06", "n = 2, x = [ [0] = 5, [1] = 6 ]"),
    (struct_of(n=u(8), x=sized(path("n"), "dynamic-length-string")), b"\x02ab", 'n = 2, x = "ab"'),
    (struct_of(n=u(8), x=sized(path("n"), "dynamic-length-string", encoding="utf-16le")), b"\x02a\0", 'n = 2, x = "a"'),
    (struct_of(n=u(8), x=sized(path("n"), "dynamic-length-blob")), b"\x01\xab", "n = 1, x = { ab }"),
    (
        struct_of(n={"type": "variable-length-unsigned-integer"}, x=sized(path("n"), "dynamic-length-string")),
        b"\x81\x00a", 'n = 1, x = "a"',
    ),
    (struct_of(n=u(8), d=struct_of(n=u(8), x=sized(path(None, "n"), "dynamic-length-string"))), b"\x01\x02a", 'n = 1, d = { n = 2, x = "a" }'),
    (
        struct_of(d=struct_of(n=u(8)), x=sized(path("d", None, "d", "n", origin="event-record-payload"), "dynamic-length-string")),
        b"\x01a",
        'd = { n = 1 }, x = "a"',
    ),
    (struct_of(n=u(8), d=struct_of(n=u(8), x=sized(path("n"), "dynamic-length-string"))), b"\x01\x02ab", 'n = 1, d = { n = 2, x = "ab" }'),
    (
        struct_of(n=u(8), d=struct_of(x=sized(path("none", None, "such", None, None, "n"), "dynamic-length-string"))),
        b"\x02ab", 'n = 2, d = { x = "ab" }',
    ),
    (
        struct_of(d=struct_of(n=u(8)), x=sized(path("d", "n", origin="event-record-payload"), "dynamic-length-string")),
        b"\x01a", 'd = { n = 1 }, x = "a"',
    ),
    (struct_of(b=fixed("boolean", 8), x=optional(path("b"))), b"\x01\x05", "b = true, x = { 5 }"),
    (struct_of(b=fixed("boolean", 8), x=optional(path("b"))), b"\x00", "b = false, x = <none>"),
    (struct_of(i=s(8), x=optional(path("i"), [[-3, -1]])), b"\xfe\x05", "i = -2, x = { 5 }"),
    (struct_of(i=s(8), x=optional(path("i"), [[-3, -1]])), b"\x02", "i = 2, x = <none>"),
    (struct_of(i=u(8), x=optional(path("i"), [[1, 9], [2, 3]])), b"\x08\x05", "i = 8, x = { 5 }"),
    (struct_of(i=s(8), x=variant(path("i"), ([[0, 5]], u(16)), ([[-9, -1]], u(8)))), b"\xff\x07", "i = -1, x = { 7 }"),
    (struct_of(i=s(8), x=variant(path("i"), ([[0, 5]], u(16)), ([[-9, -1]], u(8)))), b"\x05\x07\x01", "i = 5, x = { 263 }"),
    (
        struct_of(i=u(8), v=variant(path("i"), ([[1, 1]], struct_of(n=u(8))), ([[2, 2]], struct_of(n=u(16)))), x=sized(path("v", "n"), "dynamic-length-string")),
        b"\x02\x03\x00abc", 'i = 2, v = { { n = 3 } }, x = "abc"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "data", "shown"), LOCATED, ids=[v[2] for v in LOCATED])
def test_a_length_or_selector_is_found(trace, payload, data, shown):
    assert trace.payload(payload, data) == shown


def test_a_length_is_found_in_the_scopes_before(trace):
    stream = {
        "type": "data-stream-class",
        "packet-context-field-class": struct_of(n=u(8)),
        "event-record-header-field-class": struct_of(m=u(8)),
        "event-record-common-context-field-class": struct_of(
            t=sized(path("m", origin="event-record-header"), "dynamic-length-string")
        ),
    }
    payload = struct_of(t=sized(path("n", origin="packet-context"), "dynamic-length-string"))
    text = trace.text(sequence(PREAMBLE, stream, event(payload)), b"\x02\x01xab")
    assert text == 'e: { n = 2 }, { t = "x" }, { t = "ab" }\n'


def test_a_time_of_variable_length_moves_the_clock_by_its_bits(trace):
    clock = {"type": "clock-class", "id": "c", "frequency": 1000}
    header = struct_of(t={"type": "variable-length-unsigned-integer", "roles": ["default-clock-timestamp"]})
    stream = {"type": "data-stream-class", "default-clock-class-id": "c", "event-record-header-field-class": header}
    text = trace.text(
        sequence(PREAMBLE, clock, stream, event(struct_of(x=u(8)))),
        b"\x81\x01\x01" + b"\x02\x02" + b"\x01\x03",
        options=["--clock-cycles", "--no-delta"],
    )
    assert [int(line[1:21]) for line in text.splitlines()] == [129, 130, 257]


def test_values_are_written_as_json(trace):
    payload = struct_of(
        b=fixed("boolean", 8),
        there=optional(path("b")),
        flag=fixed("boolean", 8),
        absent=optional(path("flag")),
        wide={"type": "null-terminated-string", "encoding": "utf-16be"},
        blob={"type": "static-length-blob", "length": 2},
        leb={"type": "variable-length-signed-integer"},
    )
    metadata = sequence(PREAMBLE, {"type": "data-stream-class"}, event(payload))
    data = b"\x01\x07\x00" + "\u00e9".encode("utf-16be") + b"\0\0" + b"\x01\xff" + b"\x7f"
    assert json.loads(trace.text(metadata, data, options=["--json"]))["payload"] == {
        "b": True, "there": 7, "flag": False, "absent": None, "wide": "\u00e9", "blob": [1, 255], "leb": "-1"
    }  # fmt: skip


def test_texts_of_wide_units_have_no_cells(trace):
    payload = struct_of(n=u(8), wide={"type": "null-terminated-string", "encoding": "utf-16be"})
    trace.text(sequence(PREAMBLE, {"type": "data-stream-class"}, event(payload)), b"\x07" + "a".encode("utf-16be") + b"\0\0")
    check = subprocess.run([BUILD / "tests" / "batch_check", trace.folder], capture_output=True, text=True, timeout=60)
    assert "cells 2\n" in check.stdout  # of n, once in its batch and once when its event is selected


# -- roles --

CLOCK = {"type": "clock-class", "id": "c", "frequency": 1000000000, "origin": "unix-epoch"}
LENGTHS = ["packet-content-length", "packet-total-length"]
TIMES = ["default-clock-timestamp", "packet-end-default-clock-timestamp"]
COUNTS = ["packet-sequence-number", "discarded-event-record-counter-snapshot"]


@pytest.mark.parametrize(
    ("roles", "clocks", "head", "times"),
    [
        (LENGTHS, [], 40, ["", "", ""]),
        (COUNTS, [], 0, ["", "", ""]),
        (TIMES, [CLOCK], 40, ["[0.000000040] "] * 3),
        (LENGTHS + TIMES + COUNTS, [CLOCK], 40, ["[0.000000040] "] * 3),
    ],
    ids=["lengths", "counts", "times", "all"],
)
def test_a_field_of_a_packet_context_may_have_several_roles(trace, roles, clocks, head, times):
    stream = {"type": "data-stream-class", "packet-context-field-class": struct_of(s=u(16, roles=roles))}
    stream |= {"default-clock-class-id": "c"} if clocks else {}
    metadata = sequence(PREAMBLE, *clocks, stream, event(struct_of(x=u(8))))
    text = trace.text(metadata, struct.pack("<HBBB", head, 1, 2, 3), options=["--clock-seconds", "--no-delta"])
    assert text == "".join(f"{time}e: {{ x = {i} }}\n" for i, time in enumerate(times, 1))


def test_a_field_of_a_packet_header_may_have_several_roles(trace):
    ids = {"type": "trace-class", "packet-header-field-class": struct_of(i=u(8, roles=["data-stream-class-id", "data-stream-id"]))}
    streams = [{"type": "data-stream-class", "id": i} for i in (4, 7)]
    events = [event(struct_of(x=u(8)), **{"data-stream-class-id": i, "name": f"e{i}"}) for i in (4, 7)]
    text = trace.text(sequence(PREAMBLE, ids, *streams, *events), b"\x07\x01", b"\x04\x02")
    assert sorted(text.splitlines()) == ["e4: { x = 2 }", "e7: { x = 1 }"]


# -- what is refused --

UUID = {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}

BAD = [
    ([{"type": "data-stream-class"}], "byte 1: the first fragment is not a preamble"),
    ([PREAMBLE, PREAMBLE], "a second preamble"),
    ([PREAMBLE | {"version": 3}], "CTF 3"),
    ([PREAMBLE | {"extensions": {"acme": {"zip": {}}}}], "needs the extension 'zip' of 'acme'"),
    ([PREAMBLE | {"uuid": [1, 2]}], "'uuid' is not 16 bytes"),
    ([PREAMBLE, {"type": "nope"}], "a fragment of type 'nope'"),
    ([PREAMBLE, {"type": "trace-class"}, {"type": "trace-class"}], "a second trace class"),
    ([PREAMBLE, {"type": "data-stream-class"}, {"type": "trace-class"}], "follows a data stream class"),
    ([PREAMBLE, {"type": "data-stream-class"}, {"type": "data-stream-class"}], "a second data stream class of id 0"),
    ([PREAMBLE, {"type": "data-stream-class", "default-clock-class-id": "c"}], "no clock class 'c'"),
    ([PREAMBLE, {"type": "data-stream-class", "zap": 1}], "the property 'zap' is not known"),
    ([PREAMBLE, {"type": "data-stream-class"}, event(u(8))], "is not a structure"),
    ([PREAMBLE, event(struct_of())], "no data stream class of id 0"),
    ([PREAMBLE, {"type": "data-stream-class"}, event(struct_of()), event(struct_of())], "a second event record class"),
    ([PREAMBLE, {"type": "clock-class", "id": "c"}], "'frequency' is missing"),
    ([PREAMBLE, {"type": "clock-class", "id": "c", "frequency": 0}], "frequency is 0"),
    (
        [PREAMBLE, {"type": "data-stream-class", "event-record-header-field-class": struct_of(t=u(8, roles=["default-clock-timestamp"]))}],
        "without a default clock class",
    ),
    (
        [PREAMBLE, {"type": "clock-class", "id": "c", "frequency": 1000, "offset-from-origin": {"cycles": 1000}}],
        "byte 113: 'cycles' is a second or more",
    ),
    (
        [PREAMBLE, {"type": "trace-class", "packet-header-field-class": struct_of(u=UUID)}, {"type": "data-stream-class"}],
        "packets have the metadata stream's UUID, but the preamble has none",
    ),
    ([PREAMBLE, 7], "a fragment that is not an object"),
    ([PREAMBLE], "there is no data stream class"),
    ([PREAMBLE, {"type": "clock-class", "id": "c", "frequency": 1}], "there is no data stream class"),
]  # fmt: skip


@pytest.mark.parametrize(("fragments", "why"), BAD, ids=[why for _, why in BAD])
def test_metadata_that_the_specification_forbids_is_refused(trace, fragments, why):
    trace.refused(sequence(*fragments), why)


def named_options(*names):
    rows = [{"name": name, "selector-field-ranges": [[i, i]], "field-class": u(8)} for i, name in enumerate(names)]
    return {"type": "variant", "selector-field-location": path("n"), "options": rows}


BAD_FIELDS = [
    ({"type": "nope"}, "a field class of type 'nope'"),
    ("nope", "no field class alias 'nope'"),
    (u(0), "a field of no bits"),
    (u(65), "a field of 65 bits"),
    (u(8, alignment=3), "not a power of two"),
    (u(8, **{"byte-order": "middle"}), "'middle' is not one of"),
    (u(8, **{"preferred-display-base": 7}), "none of 2, 8, 10 and 16"),
    (u(8, roles=["nope"]), "'nope' is not one of"),
    (u(8, roles=["event-record-class-id"]), "the role 'event-record-class-id' is not for a field of the event-record-payload"),
    (u(8, roles=["default-clock-timestamp"]), "the role 'default-clock-timestamp' is not for a field of the event-record-payload"),
    (UUID, "the role 'metadata-stream-uuid' is not for a field of the event-record-payload"),
    (fixed("bit-map", 4, flags={}), "a bit map without flags"),
    (s(8, roles=["packet-sequence-number"]), "'roles' is not known"),
    (u(8, mappings={"a": [[2, 1]]}), "a range that ends before it begins"),
    (u(8, mappings={"a": [[-1, 1]]}), "values below 0"),
    (s(8, mappings={"a": [[0, 2**63]]}), "values above 2^63 - 1"),
    (u(8, mappings={"a": [1]}), "a range that is not two integers"),
    (fixed("floating-point-number", 16), "floating point number of 16 bits"),
    (fixed("bit-map", 4, flags={"a": [[4, 4]]}), "bits that the map does not have"),
    ({"type": "static-length-string", "length": 3, "encoding": "utf-16le"}, "ends within a character"),
    ({"type": "static-length-string", "length": -1}, "'length' is not an integer of 0 or more"),
    (sized(path("x"), "dynamic-length-string"), "the field 'x' is not there before"),
    (sized(path(None, None, "x"), "dynamic-length-string"), "the field 'x' is not there before"),
    (sized(path("after"), "dynamic-length-string"), "the field 'after' is not there before"),
    (sized(path("neg"), "dynamic-length-string"), "no unsigned integer"),
    (sized(path("text"), "dynamic-length-string"), "no unsigned integer"),
    (sized(path("list", "n"), "dynamic-length-string"), "in an array"),
    (sized({"path": []}, "dynamic-length-string"), "a path that leads to no field"),
    (sized(path("n", None, origin="event-record-payload"), "dynamic-length-string"), "a path that leads to no field"),
    (sized(path(None, "n", origin="event-record-payload"), "dynamic-length-string"), "the field 'n' is not there before"),
    (sized(path("n", origin="nowhere"), "dynamic-length-string"), "'nowhere' is not one of"),
    (sized(path("bits"), "dynamic-length-string"), "no unsigned integer"),
    (optional(path("bits"), [[1, 1]]), "neither integer nor boolean"),
    (variant(path("bits"), ([[0, 5]], u(8))), "is a variant's selector, but no integer"),
    (named_options("a", "b", "a"), "a second option 'a' of a variant"),
    (optional(path("n")), "there are no ranges"),
    (optional(path("bool"), [[1, 1]]), "there are ranges"),
    (optional(path("n"), [[-1, 1]]), "an unsigned selector with ranges below 0"),
    (optional(path("neg"), [[1, 2**63]]), "a signed selector with ranges above"),
    (variant(path("n"), ([[0, 5]], u(8)), ([[5, 9]], u(8))), "two options of a variant"),
    (variant(path("n")), "a variant without options"),
    (variant(path("bool"), ([[0, 5]], u(8))), "is a variant's selector, but no integer"),
]


@pytest.mark.parametrize(("field", "why"), BAD_FIELDS, ids=[why for _, why in BAD_FIELDS])
def test_a_field_class_that_cannot_be_is_refused(trace, field, why):
    before = {
        "n": u(8), "neg": s(8), "bool": fixed("boolean", 8), "text": {"type": "null-terminated-string"}, "bits": fixed("bit-array", 8),
        "list": {"type": "static-length-array", "length": 1, "element-field-class": struct_of(n=u(8))},
    }  # fmt: skip
    trace.payload_refused(struct_of(**before, x=field, after=u(8)), why)


NO_CHARACTER = "what is no character of its encoding"

BAD_DATA = [
    ({"type": "variable-length-unsigned-integer"}, b"\xff" * 9 + b"\x02", "more than 64 bits"),
    ({"type": "variable-length-unsigned-integer"}, b"\xff" * 10 + b"\x00", "more than 64 bits"),
    ({"type": "variable-length-signed-integer"}, b"\x80" * 9 + b"\x01", "more than 64 bits"),
    ({"type": "variable-length-unsigned-integer"}, b"\x80\x80", "longer than the rest"),
    ({"type": "null-terminated-string", "encoding": "utf-16le"}, b"a\0\0", "has no end"),
    ({"type": "static-length-string", "length": 9}, b"ab", "longer than the rest"),
    ({"type": "null-terminated-string", "encoding": "utf-16be"}, b"\xd8\x00\0\0", NO_CHARACTER),
    ({"type": "null-terminated-string", "encoding": "utf-16le"}, b"\x00\xdca\0\0\0", NO_CHARACTER),
    ({"type": "null-terminated-string", "encoding": "utf-32le"}, b"\0\xd8\0\0\0\0\0\0", NO_CHARACTER),
    ({"type": "static-length-string", "length": 4, "encoding": "utf-32be"}, b"\0\x11\0\0", NO_CHARACTER),
    ({"type": "static-length-string", "length": 4, "encoding": "utf-16le"}, b"a\0\x00\xd8", NO_CHARACTER),
]


@pytest.mark.parametrize(("field", "data", "why"), BAD_DATA, ids=range(len(BAD_DATA)))
def test_data_that_cannot_be_is_damage(trace, krait, field, data, why):
    trace.payload_refused(struct_of(x=field), why, data)
    for args in (["cat", "--json"], ["cat", "--csv"], ["cat", "--filter=name == e"], ["info"]):
        run = subprocess.run([krait, *args, trace.folder], capture_output=True, env=UTC, timeout=60)
        assert run.returncode == 1 and why in run.stderr.decode(), args
    for tool in ("read_check", "batch_check"):
        check = subprocess.run([BUILD / "tests" / tool, trace.folder], capture_output=True, text=True, timeout=60)
        assert "error -74" in check.stdout, check.stdout


def test_a_text_of_half_characters_is_damage(trace):
    field = sized(path("n"), "dynamic-length-string", encoding="utf-32le")
    trace.payload_refused(struct_of(n=u(8), x=field), "ends within a character", b"\x05aaaaa")


def test_a_selector_without_an_option_is_damage(trace):
    trace.payload_refused(struct_of(n=u(8), x=variant(path("n"), ([[0, 5]], u(8)))), "none of its options", b"\x07\x01")


def doubling(count):
    """Aliases of which each is twice the one before."""
    aliases = [{"type": "field-class-alias", "name": "a0", "field-class": u(8)}]
    for i in range(1, count):
        aliases.append({"type": "field-class-alias", "name": f"a{i}", "field-class": struct_of(x=f"a{i-1}", y=f"a{i-1}")})
    return aliases


def test_aliases_that_double_each_other_do_not_fill_memory(trace):
    trace.refused(sequence(PREAMBLE, *doubling(60)), "more than 1048576 field classes")


def test_a_context_of_many_fields_and_many_events_do_not_fill_memory(trace):
    stream = {
        "type": "data-stream-class",
        "event-record-header-field-class": struct_of(id=u(16, roles=["event-record-class-id"])),
        "event-record-common-context-field-class": struct_of(c="a14"),
    }
    events = [event(struct_of(), id=i) for i in range(200)]
    why = "more than 4194304 fields in the common contexts of all events"
    trace.refused(sequence(PREAMBLE, *doubling(15), stream, *events), why)


def test_a_wide_class_with_a_variant_has_cells_for_its_first_fields(trace):
    fields = {f"f{i}": u(8) for i in range(300)}
    payload = struct_of(n=u(8), v=variant(path("n"), ([[0, 5]], u(8))), **fields)
    trace.text(sequence(PREAMBLE, {"type": "data-stream-class"}, event(payload)), bytes(302))
    check = subprocess.run([BUILD / "tests" / "batch_check", trace.folder], capture_output=True, text=True, timeout=60)
    assert f"cells {2 * 256}\n" in check.stdout  # each once in its batch and once when its event is selected


def test_field_classes_of_any_depth_do_not_break_the_reader(trace):
    field = u(8)
    for _ in range(100):
        field = struct_of(x=field)
    trace.payload_refused(field, "deeper than 96")


def test_metadata_that_is_no_json_is_refused_with_its_byte(trace):
    trace.refused(b'\x1e{"type": "preamble",}', "/metadata: byte 21: '}' where a key's quote should be")
    trace.refused(b'\x1e{"type": "preamble", "version": 2}\n\x1e{"type"', "byte 44: the text ends")
    trace.refused(b'{"type": "preamble", "version": 2}', "no record separator (0x1e)")
    trace.refused(b"\x1e", "there is no preamble")


ONE_BYTE = sequence(PREAMBLE, {"type": "data-stream-class"}, event(struct_of(x=u(8))))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b'"length": 8', b'"length": 08', "e: { x = 1 }\n"),
        (b"\n\x1e", b"\n\x1e\x1e", "e: { x = 1 }\n"),
        (b'"name": "e", ', b'"name": "", ', ": { x = 1 }\n"),
        (b'"name": "e", ', b'"name": "e\\u0000f", ', "e: { x = 1 }\n"),
        (b'"name": "e", ', b"", "<unknown>: { x = 1 }\n"),
    ],
)
def test_odd_metadata_is_read_as_babeltrace2_reads_it(trace, old, new, text):
    assert old in ONE_BYTE
    assert trace.text(ONE_BYTE.replace(old, new), b"\1") == text


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (b" \n" + ONE_BYTE, "byte 0x1e is not TSDL"),
        (ONE_BYTE + b"\x1e\n", "the text ends where a value should be"),
        (ONE_BYTE.replace(b"\n\x1e", b"\n\x1e \x1e"), "the text ends where a value should be"),
        (ONE_BYTE.replace(b'"name": "e"', b'"name": "e", "namespace": 5'), "'namespace' is not a text"),
        (ONE_BYTE.replace(b'"name": "e"', b'"name": "e", "uid": 5'), "'uid' is not a text"),
    ],
)
def test_odd_metadata_is_refused_as_babeltrace2_refuses_it(trace, metadata, why):
    trace.refused(metadata, why, b"\1")


# -- one trace, one answer: whoever reads --


def test_a_byte_order_that_changes_within_a_byte_is_damage_to_every_reader(trace, krait):
    bits = struct_of(a=fixed("unsigned-integer", 5), n=u(2, alignment=1), b=fixed("unsigned-integer", 8) | {"byte-order": "big-endian"})
    metadata = sequence(PREAMBLE, {"type": "data-stream-class"}, event(bits))
    for args in (["cat"], ["cat", "--json"], ["cat", "--csv"], ["cat", "--filter=a >= 0"], ["info"]):
        trace.cat(metadata, bytes(2))
        run = subprocess.run([krait, *args, trace.folder], capture_output=True, env=UTC, timeout=60)
        assert run.returncode == 1, args
        assert "the byte order changes within a byte" in run.stderr.decode(), args
    check = subprocess.run([BUILD / "tests" / "read_check", trace.folder], capture_output=True, text=True, timeout=60)
    assert check.stdout.splitlines()[-1].startswith("error -74 ")


def test_fields_of_both_byte_orders_are_found_by_their_names(trace):
    both = struct_of(
        a=u(4, alignment=1),
        s={"type": "null-terminated-string"},
        b=u(4, alignment=1) | {"byte-order": "big-endian"},
        c=u(7, alignment=1) | {"byte-order": "big-endian"},
        d={"type": "static-length-array", "length": 2, "element-field-class": struct_of(x=u(3, alignment=1), t={"type": "null-terminated-string"})},
    )
    assert trace.payload(both, b"\x0fhi\0" + b"\x1f\x00" + b"\x07A\0" + b"\x05B\0")


@pytest.mark.parametrize("lengths, refused", [((20, 30, 100), False), ((60000, 60000, 60000), True)])
def test_arrays_of_nothing_within_arrays_come_to_an_end(trace, krait, lengths, refused):
    nothing = struct_of()
    for length in lengths:
        nothing = {"type": "static-length-array", "length": length, "element-field-class": nothing}
    metadata = sequence(PREAMBLE, {"type": "data-stream-class"}, event(struct_of(a=nothing, x=u(8))))
    trace.cat(metadata, b"xyz")
    check = BUILD / "tests" / "read_check"
    for args in ([krait, "cat"], [krait, "cat", "--json"], [krait, "cat", "--csv"], [krait, "info"], [check]):
        run = subprocess.run([*args, trace.folder], capture_output=True, env=UTC, timeout=20)
        said = "an array of many elements that have no bits" in run.stderr.decode() or b"error -74 0" in run.stdout
        assert said == refused, args


def test_events_may_begin_within_a_byte(trace):
    context = struct_of(size=u(8, roles=["packet-content-length"]), bits=u(6, alignment=1))
    stream = {"type": "data-stream-class", "packet-context-field-class": context}
    words = event(struct_of(s={"type": "null-terminated-string"}, n=u(16)))
    assert trace.text(sequence(PREAMBLE, stream, words), b"\x38\x01hi\0\x07\0") == 'e: { bits = 1 }, { s = "hi", n = 7 }\n'


# -- losses, and whose they are --


def cat(krait, *args):
    return subprocess.run([krait, "cat", *map(str, args)], capture_output=True, env=UTC, timeout=60)


PACKETS = [(10, 20, 5, 1), (30, 40, 8, 4), (50, 60, 8, 5)]
LOSSES = {  # (the traces, who they are, their losses)
    "an id": (dict(), 7, ["3 events between [00:00:00.000000020] and [00:00:00.000000040]",
                          "2 packets between [00:00:00.000000020] and [00:00:00.000000030]"]),
    "no id": (dict(instance=False), 0, ["3 events between [00:00:00.000000020] and [00:00:00.000000040]",
                                        "2 packets between [00:00:00.000000020] and [00:00:00.000000030]"]),
    "no clock": (dict(times=False, clock=False), 7, ["3 events (unknown time range)", "2 packets (unknown time range)"]),
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_are_told_as_babeltrace2_tells_them(krait, tmp_path, case):
    """With the id that the packets say; nothing of what was before the first packet, which JSON tells."""
    options, first, losses = LOSSES[case]
    trace = lossy(tmp_path, PACKETS, PACKETS[:1], **options)
    run = cat(krait, trace)
    assert run.returncode == 0
    assert run.stderr.decode().splitlines() == [
        f'WARNING: Tracer discarded {loss} in trace "" (no UID) within stream "{trace}/s0" (stream class ID: 3, stream ID: {first}).'
        for loss in losses]
    objects = [json.loads(line) for line in cat(krait, "--json", trace).stdout.splitlines()]
    assert [(o["lost"], o["count"], o["stream"]) for o in objects if "lost" in o] == [
        ("events", None, 0), ("events", 3, 0), ("packets", 2, 0), ("events", None, 1)]
    newer = next((p.prefix for p in found_pythons()[0] if p.prefix), None)
    if newer:
        theirs = subprocess.run([*newer, "babeltrace2", trace], capture_output=True, env=UTC, timeout=60)
        assert theirs.stdout == run.stdout
        assert [line for line in theirs.stderr.splitlines() if line] == run.stderr.splitlines()


def test_several_labels_are_in_braces(krait, tmp_path):
    """As babeltrace2 2.1 prints them; of CTF 1.8 without, as 2.0."""
    labels = {"mappings": {"A": [[0, 5]], "B": [[3, 9]], "C": [[0, 1], [1, 2]]}}
    (tmp_path / "metadata").write_bytes(sequence(PREAMBLE, {"type": "data-stream-class"}, event(struct_of(x=u(8) | labels))))
    (tmp_path / "s").write_bytes(bytes([0, 1, 3, 4, 6, 77]))
    assert [line.split("x = ")[1] for line in cat(krait, tmp_path).stdout.decode().splitlines()] == [
        '( { "A", "C" } : container = 0 ) }', '( { "A", "C" } : container = 1 ) }', '( { "A", "B" } : container = 3 ) }',
        '( { "A", "B" } : container = 4 ) }', '( "B" : container = 6 ) }', "( <unknown> : container = 77 ) }"]
