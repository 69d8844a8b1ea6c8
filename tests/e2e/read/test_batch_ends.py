# SPDX-License-Identifier: Apache-2.0
"""Batches of packets whose content ends at any byte of their last event: in its header, whatever the header's form, in its
fields, or behind it. What was whole is there, and what was not is damage, as single steps find."""

import struct

import pytest

from read_checks import batch_check, read_check

METADATA = """/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; }} := u8;
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 32; align = 8; }} := u32;
typealias integer {{ size = 64; align = 8; }} := u64;
typealias integer {{ size = 27; align = 1; map = clock.c.value; }} := low27;
typealias integer {{ size = 32; align = 8; map = clock.c.value; }} := low32;
typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
trace {{ major = 1; minor = 8; byte_order = le; }};
clock {{ name = c; }};
stream {{
    packet.context := struct {{ u64 content_size; u64 packet_size; time timestamp_begin; }};
    event.header := {header};
}};
event {{ name = number; id = 1; fields := struct {{ u16 n; u32 m; }}; }};
event {{ name = text; id = 2; fields := struct {{ string s; u8 n; }}; }};
event {{ name = list; id = 3; fields := struct {{ u8 n; u16 list[n]; }}; }};
event {{ name = nothing; id = {last_id}; fields := struct {{ }}; }};
"""

COMPACT = """struct { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
    variant <id> { struct { low27 timestamp; } compact; struct { u32 id; time timestamp; } extended; } v; } align(8)"""
LARGE = """struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> { struct { low32 timestamp; } compact; struct { u32 id; time timestamp; } extended; } v; } align(8)"""
FLAT = "struct { u64 id; time timestamp; }"


def wide(size):
    """A flat header of so many bytes."""
    more = " ".join(f"u8 more{i};" for i in range(size - 16))
    return f"struct {{ u64 id; time timestamp; {more} }}"


def compact(number, time):
    return struct.pack("<I", number | (time & (1 << 27) - 1) << 5)


def compact_extended(number, time):
    return struct.pack("<BIQ", 31, number, time)


def large(number, time):
    return struct.pack("<HI", number, time)


def large_extended(number, time):
    return struct.pack("<HIQ", 65535, number, time)


def flat(size=16):
    return lambda number, time: struct.pack("<QQ", number, time).ljust(size, b"\5")


# name: the header, how it is written, the highest id, to how many bytes events are aligned
FORMS = {
    "compact, few ids": (COMPACT, compact, 4, 1),
    "compact, few ids, extended": (COMPACT, compact_extended, 4, 1),
    "compact, many ids": (COMPACT, compact, 40, 1),
    "compact, many ids, extended": (COMPACT, compact_extended, 40, 1),
    "large, few ids": (LARGE, large, 4, 1),
    "large, few ids, extended": (LARGE, large_extended, 4, 1),
    "large, all ids": (LARGE, large, 65535, 1),
    "large, all ids, extended": (LARGE, large_extended, 65535, 1),
    "flat": (FLAT, flat(), 4, 1),
    "flat, aligned": (FLAT + " align(64)", flat(), 4, 8),
    "flat, the widest": (wide(57), flat(57), 4, 1),
    "flat, wider": (wide(58), flat(58), 4, 1),
}
FIELDS = {1: b"\1\2\3\4\5\6", 2: b"text\0\7", 3: b"\2\1\0\2\0", 4: b""}


def events(form, last):
    """The bytes of some events, and where all but the last of them end."""
    header, write, last_id, align = FORMS[form]
    body = b""
    for time, number in enumerate([1, 2, 3, 4, 1, last], 10):
        begin = len(body)
        body += bytes(-len(body) % align)
        tagged = number < 4 or last_id == 4 or write in (compact_extended, large_extended)
        body += (write if tagged else extended_of(write))(last_id if number == 4 else number, time) + FIELDS[number]
    return body, begin


def extended_of(write):
    """Ids beyond the highest tag have no short header."""
    return {compact: compact_extended, large: large_extended}[write]


@pytest.mark.parametrize("interpret", ["", "1"], ids=["code", "interpreter"])
@pytest.mark.parametrize("last", FIELDS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_whole_is_read_up_to_any_byte(form, last, interpret, tmp_path, rounds):
    body, begin = events(form, last)
    metadata = METADATA.format(header=FORMS[form][0], last_id=FORMS[form][2])
    for end in sorted({begin, len(body), *range(begin + 1, len(body), rounds(11, 1))}):
        folder = tmp_path / str(end)
        folder.mkdir()
        (folder / "metadata").write_text(metadata)
        (folder / "stream").write_bytes(struct.pack("<QQQ", (24 + end) * 8, (24 + len(body)) * 8, 1) + body)
        counts, read = batch_check(folder, interpret=interpret), read_check(folder)
        assert counts["events"] == counts["by_stream"] == read["events"] == ["6" if end == len(body) else "5"], end
        assert ("error" in counts) == ("error" in read) == (begin < end < len(body)), end
